"""The air over one vehicle: settings, clock and odometry in, ticks of wind out.

Data flow of one clock message::

    time -> TickGrid -> numbers of the ticks gone by
                 each:  odometry of that time -> height, airspeed -> DrydenGust -> gust
                        gust + mean wind -> ENU vectors, SIM_WIND_* -> AirTick, WindHistory

Random draws belong to tick numbers: tick k takes the k-th triple of the seed's stream, so the same
seed meets the same draws at the same simulated time in every flight, whenever the clock was first
heard and whatever was missed.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, fields

from dryden_wind_ros.gusts.dryden import (
    MAX_SCALE,
    METHODS,
    DrydenGust,
    TurbulenceScales,
    low_altitude_scales,
)
from dryden_wind_ros.gusts.frames import (
    SimWind,
    Vector,
    gust_enu,
    mean_wind_enu,
    sim_wind,
)
from dryden_wind_ros.gusts.history import WindHistory
from dryden_wind_ros.gusts.tick_grid import TICK_NS, TICK_S, Step, TickGrid

GUSTS = ('off', 'dryden', 'sitl')
PROFILES = ('uniform', 'sitl')
MAX_MEAN_WIND = 60.0
MAX_UPDRAFT = 20.0
MAX_SEED = 2**63 - 1

MAX_HEIGHT = 100_000.0
"""Odometry beyond this height, m, is taken for a fault of its source, not for a vehicle."""

MAX_GROUND_SPEED = 10_000.0
"""The same for speed over the ground, m/s."""

MAX_STEPS = 10
"""After a gap, only this many of the ticks missed are stepped (0.5 s); all use up their draws."""

_ODOMETRY_KEPT = 128
_ODOMETRY_AGE_NS = 2_000_000_000


@dataclass(frozen=True)
class AirSettings:
    """What the air is to be like.

    Attributes
    ----------
    mean_speed : float
        Horizontal mean wind, m/s, 0..60.
    mean_from_deg : float
        Where it comes from, degrees.
    mean_up : float
        Updraft, m/s, -20..20.
    gusts : {'off', 'dryden', 'sitl'}
        No gusts, this model's, or SITL's own turbulence.
    method : {'exact', 'euler'}
        Update of the model.
    scale : float
        Factor on the gust, above 0, at most 5.
    seed : int
        Seed of the draws, 0..2^63 - 1.
    profile : {'uniform', 'sitl'}
        The same wind at every height, or SITL's own profile (SIM_WIND_T as found).
    ground_height : float
        Height of the ground in the odometry's frame, m.

    Raises
    ------
    ValueError
        Naming what is wrong, its value and what is allowed.
    """

    mean_speed: float = 0.0
    mean_from_deg: float = 270.0
    mean_up: float = 0.0
    gusts: str = 'dryden'
    method: str = 'exact'
    scale: float = 1.0
    seed: int = 1
    profile: str = 'uniform'
    ground_height: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f'{field.name} is {value}; it must be a finite number')
        _within('mean_speed', self.mean_speed, 0.0, MAX_MEAN_WIND, 'm/s')
        _within('mean_up', self.mean_up, -MAX_UPDRAFT, MAX_UPDRAFT, 'm/s')
        _one_of('gusts', self.gusts, GUSTS)
        _one_of('method', self.method, METHODS)
        _one_of('profile', self.profile, PROFILES)
        if not 0.0 < self.scale <= MAX_SCALE:
            raise ValueError(f'scale is {self.scale:g}; it must be above 0 and at most '
                             f'{MAX_SCALE:g}')
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise ValueError(f'seed is {self.seed!r}; it must be a whole number')
        if not 0 <= self.seed <= MAX_SEED:
            raise ValueError(f'seed is {self.seed}; it must be from 0 to 2^63 - 1')

    @property
    def turbulence(self) -> float:
        """SIM_WIND_TURB to go with it, m/s."""
        return 0.1 * self.mean_speed * self.scale if self.gusts == 'sitl' else 0.0


@dataclass(frozen=True)
class AirTick:
    """The air at one tick; see WindState.msg for units.

    Attributes
    ----------
    tick, time_ns : int
        Number of the tick and its simulated time, ns.
    draws : int
        Triples of the seed's stream used up.
    height, airspeed : float
        What the model was given, m above the ground and m/s.
    gust : tuple of float
        (u, v, w), m/s, times scale; zero where no Dryden gusts blow.
    mean_enu, gust_enu : tuple of float
        East, north, up, m/s.
    sim_wind : SimWind
        What SITL is to be given.
    """

    tick: int
    time_ns: int
    draws: int
    height: float
    airspeed: float
    gust: Vector
    mean_enu: Vector
    gust_enu: Vector
    sim_wind: SimWind


@dataclass(frozen=True)
class Advanced:
    """What a clock message brought.

    Attributes
    ----------
    tick : AirTick or None
        The newest tick if a new number was reached.
    restarted : bool
        Whether simulated time had gone back, so that the air began anew.
    """

    tick: AirTick | None
    restarted: bool = False


@dataclass(frozen=True)
class _Odometry:
    time_ns: int
    height: float
    velocity_enu: Vector


_NO_ODOMETRY = _Odometry(0, 0.0, (0.0, 0.0, 0.0))


class SeededAir:
    """The air over one vehicle.

    Parameters
    ----------
    settings : AirSettings
        What the air is to be like at first.

    Attributes
    ----------
    settings : AirSettings
        In force now; change with `configure`.
    history : WindHistory
        The last two minutes.
    grid : TickGrid
        Tick numbers, missed ticks and the rate of the clock.
    restarts : int
        How often the air began anew.

    Notes
    -----
    A tick is stepped with the odometry of its own time: the newest sample at least one tick older
    than it. So the air does not depend on which of two messages happened to arrive first, and a
    tick whose clock message was lost is stepped with what held then. Odometry whose stamps have
    nothing to do with the clock is used as it arrives.
    """

    def __init__(self, settings: AirSettings) -> None:
        self.settings = settings
        self.history = WindHistory()
        self.grid = TickGrid()
        self.restarts = 0
        self._odometry: deque[_Odometry] = deque(maxlen=_ODOMETRY_KEPT)
        self._gust = DrydenGust(settings.seed, settings.method)
        self._draws = 0
        self._mean_enu = _mean_enu(settings)
        self._gust_enu: Vector = (0.0, 0.0, 0.0)
        self._newest: AirTick | None = None

    @property
    def newest(self) -> AirTick | None:
        """The newest tick, None before the first."""
        return self._newest

    def scales(self, height: float) -> TurbulenceScales:
        """Return the strengths and lengths that the model aims at, scale included.

        Parameters
        ----------
        height : float
            Above the ground, m.
        """
        scales = low_altitude_scales(height, self.settings.mean_speed)
        factor = self.settings.scale if self.settings.gusts == 'dryden' else 0.0
        return TurbulenceScales(
            factor * scales.sigma_u, factor * scales.sigma_v, factor * scales.sigma_w,
            scales.length_u, scales.length_v, scales.length_w)

    def configure(self, settings: AirSettings) -> bool:
        """Change the air; return whether it began anew (another seed or method)."""
        old, self.settings = self.settings, settings
        self._mean_enu = _mean_enu(settings)
        self._gust_enu = gust_enu(self._blowing(), settings.mean_from_deg)
        if (settings.seed, settings.method) == (old.seed, old.method):
            return False
        self.restart()
        return True

    def restart(self) -> None:
        """Begin the seed's air anew at the present tick; what was recorded is kept."""
        self.restarts += 1
        if self.grid.tick is not None:
            self._begin(self.grid.tick)

    def odometry(self, time_ns: int, height: float, velocity_enu: Vector) -> None:
        """Take in where the vehicle is and how it moves.

        Parameters
        ----------
        time_ns : int
            Stamp, ns.
        height : float
            Height in the odometry's frame, m.
        velocity_enu : tuple of float, shape (3,)
            Velocity over the ground, m/s.

        Raises
        ------
        ValueError
            If a number is not finite, or of nothing that flies; the sample is not used.
        """
        east, north, up = velocity_enu
        # Written so that NaN is refused too.
        if not (abs(height) <= MAX_HEIGHT
                and abs(east) + abs(north) + abs(up) <= MAX_GROUND_SPEED):
            raise ValueError(f'height is {height:g} m, velocity ({east:g}, {north:g}, {up:g}) m/s; '
                             f'allowed are heights within {MAX_HEIGHT:g} m and velocities within '
                             f'{MAX_GROUND_SPEED:g} m/s')
        if self._odometry and time_ns < self._odometry[-1].time_ns:
            self._odometry.clear()  # its clock went back
        self._odometry.append(_Odometry(time_ns, height, velocity_enu))

    def advance(self, time_ns: int) -> Advanced:
        """Take in the clock, and step the ticks it has reached.

        Parameters
        ----------
        time_ns : int
            Simulated time, ns.

        Returns
        -------
        Advanced
            The newest tick, if a new one was reached.
        """
        step = self.grid.advance(time_ns)
        if step.step is Step.NONE:
            return Advanced(None)
        if step.step is Step.FORWARD:
            for tick in range(max(step.tick - step.gap, step.tick - MAX_STEPS) + 1, step.tick + 1):
                self._step(tick)
            return Advanced(self._newest)
        back = step.step is Step.BACK
        if back:
            self.restarts += 1
            self.history.clear()
            while self._odometry and self._odometry[-1].time_ns > time_ns + _ODOMETRY_AGE_NS:
                self._odometry.pop()
        self._begin(step.tick)
        sample = self._odometry_of(step.tick)
        self._record(step.tick, sample, self._airspeed(sample))
        return Advanced(self._newest, restarted=back)

    def _begin(self, tick: int) -> None:
        """Start a new stepper at a tick; the draws of that tick and before are passed over."""
        self._gust = DrydenGust(self.settings.seed, self.settings.method)
        self._gust_enu = (0.0, 0.0, 0.0)
        self._draws = 0
        self._gust.step(tick * TICK_S, 0.0, 0.0, 0.0)
        self._use_draws(tick)

    def _use_draws(self, count: int) -> None:
        self._gust.skip(max(0, count - self._draws))
        self._draws = max(count, self._draws)

    def _step(self, tick: int) -> None:
        settings = self.settings
        sample = self._odometry_of(tick)
        airspeed = self._airspeed(sample)
        # Without wind this passes the time; after a longer gap it leaves one tick to be stepped.
        self._gust.step((tick - 1) * TICK_S, 0.0, 0.0, 0.0)
        self._use_draws(tick - 1)
        if settings.mean_speed > 0.0:
            self._gust.step(tick * TICK_S, settings.mean_speed,
                            sample.height - settings.ground_height, airspeed)
            self._draws = tick
        self._use_draws(tick)
        self._record(tick, sample, airspeed)

    def _record(self, tick: int, sample: _Odometry, airspeed: float) -> None:
        settings = self.settings
        gust = self._blowing()
        newest = AirTick(
            tick=tick, time_ns=self.grid.origin_ns + tick * TICK_NS, draws=self._draws,
            height=sample.height - settings.ground_height, airspeed=airspeed, gust=gust,
            mean_enu=self._mean_enu, gust_enu=gust_enu(gust, settings.mean_from_deg),
            sim_wind=sim_wind(settings.mean_speed, settings.mean_from_deg, gust,
                              settings.mean_up))
        self._newest = newest
        self._gust_enu = newest.gust_enu
        wind = newest.sim_wind
        self.history.record(tick, [
            newest.time_ns * 1e-9, *gust, *newest.gust_enu, wind.speed, wind.direction,
            wind.direction_z, newest.height, airspeed])

    def _blowing(self) -> Vector:
        """Return the gust (u, v, w) that blows with the present settings, m/s."""
        settings = self.settings
        if settings.gusts != 'dryden' or settings.mean_speed == 0.0:
            return 0.0, 0.0, 0.0
        u, v, w = self._gust.state
        return settings.scale * u, settings.scale * v, settings.scale * w

    def _airspeed(self, sample: _Odometry) -> float:
        """Speed of the vehicle through the air that blows now, m/s."""
        mean, gust, ground = self._mean_enu, self._gust_enu, sample.velocity_enu
        return math.sqrt((mean[0] + gust[0] - ground[0])**2 + (mean[1] + gust[1] - ground[1])**2
                         + (mean[2] + gust[2] - ground[2])**2)

    def _odometry_of(self, tick: int) -> _Odometry:
        """Return the sample that a tick is stepped with."""
        if not self._odometry:
            return _NO_ODOMETRY
        newest = self._odometry[-1]
        latest_ns = self.grid.origin_ns + (tick - 1) * TICK_NS
        if abs(newest.time_ns - latest_ns) > _ODOMETRY_AGE_NS:
            return newest
        for sample in reversed(self._odometry):
            if sample.time_ns <= latest_ns:
                return sample
        return self._odometry[0]


def _mean_enu(settings: AirSettings) -> Vector:
    return mean_wind_enu(settings.mean_speed, settings.mean_from_deg, settings.mean_up)


def _within(name: str, value: float, low: float, high: float, unit: str) -> None:
    if not low <= value <= high:
        raise ValueError(f'{name} is {value:g} {unit}; it must be from {low:g} to {high:g} {unit}')


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f'{name} is {value!r}; it must be one of {", ".join(allowed)}')
