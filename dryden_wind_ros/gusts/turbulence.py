"""The kinds of turbulence that `SeededAir` can be made of; see `dryden_wind_ros.gusts.conditions`.

Here the models, which know nothing of ticks, are given the project's rules for them: random draws
belong to tick numbers, so that the same seed meets the same draws at the same simulated time in
every flight, whenever the clock was first heard and whatever was missed.
"""

from __future__ import annotations

from dryden_wind_ros.gusts.air_settings import MODELS, AirSettings
from dryden_wind_ros.gusts.conditions import ZERO, Conditions, MeanWind, Turbulence
from dryden_wind_ros.gusts.dryden import DrydenGust, TurbulenceScales, low_altitude_scales
from dryden_wind_ros.gusts.field_turbulence import FieldTurbulence
from dryden_wind_ros.gusts.frames import Vector
from dryden_wind_ros.gusts.scales import LOW_M, turbulence_scales
from dryden_wind_ros.gusts.shared_air import SharedAir
from dryden_wind_ros.gusts.standard import StandardGust
from dryden_wind_ros.gusts.tick_grid import TICK_S


def turbulence_of(settings: AirSettings, shared: SharedAir, rank: int = 0) -> Turbulence:
    """Return the turbulence that the settings ask for; it also passes the time while none blows.

    Parameters
    ----------
    settings : AirSettings
    shared : SharedAir
        Time and drift of the air, where it is a field.
    rank : int, optional
        Which vehicle of those that share it.
    """
    if settings.gusts == 'field':
        return FieldTurbulence(settings, shared, rank)
    if settings.model != 'first_order':
        return StandardTurbulence(settings.seed, MODELS[settings.model], settings.severity,
                                  settings.span)
    return FirstOrderTurbulence(settings.seed, settings.method)


class FirstOrderTurbulence:
    """The first-order model: tick k takes the k-th triple of the seed's stream.

    Parameters
    ----------
    seed : int
        Seed of the stream.
    method : {'exact', 'euler'}
        Update of the model.

    Notes
    -----
    It starts from calm. While there is no mean wind the state is kept and nothing blows.
    """

    rates: Vector = ZERO

    def __init__(self, seed: int, method: str) -> None:
        self._seed, self._method = seed, method
        self._gust = DrydenGust(seed, method)
        self._draws = 0

    @property
    def draws(self) -> int:
        """How many triples of the seed's stream were used up."""
        return self._draws

    def begin(self, now: Conditions) -> None:
        """Start from calm at a tick; the draws of that tick and before are passed over."""
        self._gust = DrydenGust(self._seed, self._method)
        self._draws = 0
        self._gust.step(now.at.tick * TICK_S, 0.0, 0.0, 0.0)
        self._use_draws(now.at.tick)

    def step(self, now: Conditions) -> None:
        """Go on to a later tick, which is stepped alone; missed ones use up their draws."""
        tick = now.at.tick
        # Without wind this passes the time; after a longer gap it leaves one tick to be stepped.
        self._gust.step((tick - 1) * TICK_S, 0.0, 0.0, 0.0)
        self._use_draws(tick - 1)
        if now.mean.speed > 0.0:
            self._gust.step(tick * TICK_S, now.mean.speed, now.at.height, now.airspeed)
            self._draws = tick
        self._use_draws(tick)

    def gust(self, mean: MeanWind) -> Vector:
        """Return the gust (u, v, w), m/s; zero without a mean wind."""
        return self._gust.state if mean.speed > 0.0 else ZERO

    def scales(self, height: float, mean: MeanWind) -> TurbulenceScales:
        """Return the strengths and lengths that the model aims at."""
        return low_altitude_scales(height, mean.speed)

    def _use_draws(self, count: int) -> None:
        self._gust.skip(max(0, count - self._draws))
        self._draws = max(count, self._draws)


class StandardTurbulence:
    """The standards' models: tick k takes the k-th five of the seed's stream, counted from 0.

    Parameters
    ----------
    seed : int
        Seed of the stream.
    standard : str
        One of `gusts.scales.STANDARDS`.
    severity : str
        Strength above 1000 ft.
    span : float
        m, 0 for no rates.

    Notes
    -----
    It blows in full from the first tick. Without wind below 1000 ft the state is kept.
    """

    def __init__(self, seed: int, standard: str, severity: str, span: float) -> None:
        self._settings = seed, standard, severity, span
        self._gust = StandardGust(*self._settings)
        self._draws = 0
        self._wind_20ft = 0.0
        self._blows = False

    @property
    def draws(self) -> int:
        """How many fives of the seed's stream were used up."""
        return self._draws

    @property
    def rates(self) -> Vector:
        """Rates (p, q, r) of the gust, rad/s."""
        return self._gust.rates if self._blows else ZERO

    def begin(self, now: Conditions) -> None:
        """Start in full at a tick; the draws of the ticks before are passed over."""
        self._gust = StandardGust(*self._settings)
        self._draws = 0
        self._step(now)

    def step(self, now: Conditions) -> None:
        """Go on to a later tick, which is stepped alone; missed ones use up their draws."""
        # Without wind this passes the time; after a longer gap it leaves one tick to be stepped.
        self._gust.step((now.at.tick - 1) * TICK_S, 0.0, 0.0, 0.0)
        self._step(now)

    def _step(self, now: Conditions) -> None:
        tick, wind, height = now.at.tick, now.mean_20ft.speed, now.at.height
        self._wind_20ft = wind
        self._use_draws(tick)
        # What StandardGust takes for nothing, and draws nothing for.
        self._blows = wind > 0.0 or height > LOW_M
        if self._blows:
            self._gust.step(tick * TICK_S, wind, height, now.airspeed)
            self._draws = tick + 1
        self._use_draws(tick + 1)

    def gust(self, mean: MeanWind) -> Vector:
        """Return the gust (u, v, w), m/s."""
        return self._gust.state if self._blows else ZERO

    def scales(self, height: float, mean: MeanWind) -> TurbulenceScales:
        """Return the strengths and lengths that the model aims at."""
        _, standard, severity, _ = self._settings
        return turbulence_scales(height, self._wind_20ft, severity, standard)

    def _use_draws(self, count: int) -> None:
        self._gust.skip(max(0, count - self._draws))
        self._draws = max(count, self._draws)
