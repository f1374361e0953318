"""The air over one vehicle: settings, clock and odometry in, ticks of wind out.

Data flow of one clock message::

    time -> TickGrid -> numbers of the ticks gone by
                 each:  odometry of that time -> place, height, airspeed
                        mean wind there, turbulence, further gusts (gusts.conditions)
                        their sum -> ENU vectors, SIM_WIND_* -> AirTick, WindHistory
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from dryden_wind_ros.gusts.air_settings import AirSettings
from dryden_wind_ros.gusts.conditions import (
    ZERO,
    AddedGust,
    Conditions,
    ConstantMeanWind,
    MeanWind,
    MeanWindSource,
    Moment,
)
from dryden_wind_ros.gusts.dryden import TurbulenceScales
from dryden_wind_ros.gusts.field_turbulence import Asked, FieldTurbulence
from dryden_wind_ros.gusts.frames import SimWind, Vector, gust_enu, gust_uvw, sim_wind
from dryden_wind_ros.gusts.history import WindHistory
from dryden_wind_ros.gusts.mean_wind import Remainder
from dryden_wind_ros.gusts.sampling import FieldSample
from dryden_wind_ros.gusts.shared_air import SharedAir
from dryden_wind_ros.gusts.tick_grid import TICK_NS, TICK_S, Step, TickGrid
from dryden_wind_ros.gusts.turbulence import turbulence_of

MAX_HEIGHT = 100_000.0
"""Odometry beyond this height, m, is taken for a fault of its source, not for a vehicle."""

MAX_DISTANCE = 10_000_000.0
"""The same for the horizontal distance from the frame's zero, m."""

MAX_GROUND_SPEED = 10_000.0
"""The same for speed over the ground, m/s."""

MAX_STEPS = 10
"""After a gap, only this many of the ticks missed are stepped (0.5 s); all use up their draws."""

_20_FT_M = 6.096
_ODOMETRY_KEPT = 128
_ODOMETRY_AGE_NS = 2_000_000_000


class AirTick(NamedTuple):
    """The air at one tick; see WindState.msg for units.

    Attributes
    ----------
    at : Moment
        When and where.
    time_ns : int
        Simulated time of the tick, ns.
    draws : int
        Triples of the seed's stream used up.
    airspeed : float
        What the model was given, m/s.
    mean : MeanWind
        The mean wind.
    gust : tuple of float
        (u, v, w) of all gusts, m/s, scale included; zero where none of this package blow.
    rates : tuple of float
        (p, q, r) of the gust, rad/s, scale included.
    gust_enu, discrete_enu : tuple of float
        East, north, up, m/s: of all gusts, and the part that discrete gusts have in it.
    sim_wind : SimWind
        What SITL is to be given.
    asked : Asked or None
        Where and when a field was asked for; None with other gusts.
    """

    at: Moment
    time_ns: int
    draws: int
    airspeed: float
    mean: MeanWind
    gust: Vector
    rates: Vector
    gust_enu: Vector
    discrete_enu: Vector
    sim_wind: SimWind
    asked: Asked | None = None

    @property
    def tick(self) -> int:
        """Number of the tick."""
        return self.at.tick

    @property
    def height(self) -> float:
        """Height above the ground that the model was given, m."""
        return self.at.height

    @property
    def mean_enu(self) -> Vector:
        """The mean wind, ENU, m/s."""
        return self.mean.enu


class Advanced(NamedTuple):
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


class _Odometry(NamedTuple):
    time_ns: int
    position: Vector
    velocity_enu: Vector
    is_true: bool = False
    orientation: Callable[[], tuple[float, float, float, float]] | None = None


_NO_ODOMETRY = _Odometry(0, ZERO, ZERO)


class SeededAir:
    """The air over one vehicle.

    Parameters
    ----------
    settings : AirSettings
        What the air is to be like at first.
    shared : SharedAir, optional
        Time and drift of the field that a fleet flies in.
    rank : int, optional
        Which vehicle of the fleet this is, from 0.

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
    armed_at : float or None
        Simulated time at which the vehicle was armed, s; for winds that count from there.

    Notes
    -----
    A tick is stepped with the odometry of its own time: the newest sample at least one tick older
    than it. So the air does not depend on which of two messages happened to arrive first, and a
    tick whose clock message was lost is stepped with what held then. Odometry whose stamps have
    nothing to do with the clock is used as it arrives.
    """

    def __init__(self, settings: AirSettings, shared: SharedAir | None = None,
                 rank: int = 0) -> None:
        self.settings = settings
        self.history = WindHistory()
        self.grid = TickGrid()
        self.restarts = 0
        self.armed_at: float | None = None
        self._restarted_at = 0.0
        self._odometry: deque[_Odometry] = deque(maxlen=_ODOMETRY_KEPT)
        self._shared = SharedAir() if shared is None else shared
        self._rank = rank
        self._offset = 0.0
        self._turbulence = turbulence_of(settings, self._shared, rank)
        self._mean_source: MeanWindSource = ConstantMeanWind(settings.mean)
        self._mean = settings.mean
        self._remainder: Remainder | None = None
        self._added: list[AddedGust] = []
        self._discrete_enu: Vector = ZERO
        self._gust_enu: Vector = ZERO
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
        scales = self._turbulence.scales(height, self._mean)
        factor = self.settings.scale if self.settings.blows else 0.0
        return TurbulenceScales(
            factor * scales.sigma_u, factor * scales.sigma_v, factor * scales.sigma_w,
            scales.length_u, scales.length_v, scales.length_w)

    def configure(self, settings: AirSettings) -> bool:
        """Change the air; return whether it began anew (another seed or model).

        A mean wind that differs from the one set before takes the place of whatever
        `follow_mean_wind` gave.
        """
        old, self.settings = self.settings, settings
        if settings.mean != old.mean:
            self.follow_mean_wind(None)
        self._gust_enu = gust_enu(self._blowing(self._mean), self._mean.from_deg)
        if settings.air == old.air:
            return False
        self._turbulence = turbulence_of(settings, self._shared, self._rank)
        if self.grid.tick is not None:
            self._offset = self._shared.join_again(
                self._rank, self.grid.tick * TICK_S, self._offset)
        self.restart()
        return True

    def follow_mean_wind(self, source: MeanWindSource | None, smoothing: float = 0.0) -> None:
        """Take the mean wind from a source from the next tick on; None: from the settings.

        Parameters
        ----------
        source : MeanWindSource or None
            Where from.
        smoothing : float, optional
            Time constant of a low-pass, s: turbulence that is slower is in that mean wind already,
            and left out; see `Remainder`.
        """
        self._mean_source = source or ConstantMeanWind(self.settings.mean)
        self._remainder = Remainder(smoothing) if smoothing > 0.0 else None
        if source is None:
            self._mean = self.settings.mean

    def add_gust(self, gust: AddedGust) -> None:
        """Let a further gust blow on top of turbulence, until it is over."""
        self._added.append(gust)

    def restart(self) -> None:
        """Begin the seed's air anew at the present tick; what was recorded is kept."""
        self.restarts += 1
        if self.grid.tick is not None:
            at = self._moment(self.grid.tick, self._odometry_of(self.grid.tick))
            self._restarted_at = at.time
            self._begin(at._replace(restarted_at=at.time))

    def odometry(self, time_ns: int, position: Vector, velocity_enu: Vector, is_true: bool = False,
                 orientation: Callable[[], tuple[float, float, float, float]] | None = None,
                 ) -> None:
        """Take in where the vehicle is and how it moves.

        Parameters
        ----------
        time_ns : int
            Stamp, ns.
        position : tuple of float, shape (3,)
            East, north, up in the odometry's frame, m.
        velocity_enu : tuple of float, shape (3,)
            Velocity over the ground, m/s.
        is_true : bool, optional
            Whether that is where the vehicle really is, not what it believes.
        orientation : callable, optional
            Returns its attitude, a quaternion x, y, z, w from forward-left-up to ENU; asked for
            the rates of a gust only.

        Raises
        ------
        ValueError
            If a number is not finite, or of nothing that flies; the sample is not used.
        """
        x, y, height = position
        east, north, up = velocity_enu
        # Written so that NaN is refused too.
        if not (abs(height) <= MAX_HEIGHT and abs(x) + abs(y) <= MAX_DISTANCE
                and abs(east) + abs(north) + abs(up) <= MAX_GROUND_SPEED):
            raise ValueError(f'position is ({x:g}, {y:g}), height is {height:g} m, velocity '
                             f'({east:g}, {north:g}, {up:g}) m/s; allowed are distances within '
                             f'{MAX_DISTANCE:g} m, heights within {MAX_HEIGHT:g} m and velocities '
                             f'within {MAX_GROUND_SPEED:g} m/s')
        if self._odometry and time_ns < self._odometry[-1].time_ns:
            self._odometry.clear()  # its clock went back
        self._odometry.append(_Odometry(
            time_ns, position, velocity_enu, is_true, orientation))

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
                now = self._conditions(self._moment(tick, self._odometry_of(tick)))
                self._turbulence.step(now)
                self._record(now)
            self._shared.note(self._rank, step.tick * TICK_S + self._offset)
            return Advanced(self._newest)
        back = step.step is Step.BACK
        if back:
            self.restarts += 1
            self.history.clear()
            self._restarted_at, self.armed_at = 0.0, None
            while self._odometry and self._odometry[-1].time_ns > time_ns + _ODOMETRY_AGE_NS:
                self._odometry.pop()
        self._offset = self._shared.join(self._rank, step.tick * TICK_S)
        self._record(self._begin(self._moment(step.tick, self._odometry_of(step.tick))))
        return Advanced(self._newest, restarted=back)

    def field_sample(self) -> FieldSample:
        """Return the field as it is now, to be asked for other places and times.

        Raises
        ------
        ValueError
            If no field blows, or not yet.
        """
        if not isinstance(self._turbulence, FieldTurbulence):
            raise ValueError(f'gusts is {self.settings.gusts!r}; only a field has a gust at other '
                             "places: set gusts to 'field'")
        if self._newest is None:
            raise ValueError('no tick yet: the air has not begun')
        return FieldSample(
            self._turbulence.field, self._mean_source, self._shared, self.settings.ground_height,
            self.settings.scale, self.grid.origin_ns * 1e-9, self._offset, self._newest.at)

    def _begin(self, at: Moment) -> Conditions:
        """Begin the seed's air at a tick."""
        self._mean = self._mean_source.at(at)
        self._gust_enu = self._discrete_enu = ZERO
        if self._remainder is not None:
            self._remainder.begin()
        now = self._conditions(at)
        self._turbulence.begin(now)
        return now

    def _moment(self, tick: int, sample: _Odometry) -> Moment:
        return Moment(
            tick, (self.grid.origin_ns + tick * TICK_NS) * 1e-9, sample.position, sample.is_true,
            sample.position[2] - self.settings.ground_height, sample.velocity_enu, self.armed_at,
            self._restarted_at, sample.time_ns * 1e-9, sample.orientation, self._offset)

    def _conditions(self, at: Moment) -> Conditions:
        mean = self._mean_source.at(at)
        if mean != self._mean:
            # As after `configure`: what blows turns with the mean wind. So a flight whose wind was
            # set by hand is the same again where the same mean wind comes from a record.
            self._gust_enu = gust_enu(self._blowing(mean), mean.from_deg)
            self._mean = mean
        gust, ground = self._gust_enu, at.velocity
        return Conditions(at, mean, math.sqrt(
            (mean.enu[0] + gust[0] - ground[0])**2 + (mean.enu[1] + gust[1] - ground[1])**2
            + (mean.enu[2] + gust[2] - ground[2])**2), self._near_ground(at, mean))

    def _near_ground(self, at: Moment, mean: MeanWind) -> MeanWind:
        """Return the mean wind at 20 ft, which the standards go by."""
        if isinstance(self._mean_source, ConstantMeanWind) or self.settings.air[0] == 'first_order':
            return mean
        return self._mean_source.at(at._replace(height=_20_FT_M))

    def _record(self, now: Conditions) -> None:
        at, mean = now.at, now.mean
        self._discrete_enu = self._added_up(at, mean) if self._added else ZERO
        if self._remainder is not None:
            self._remainder.step(at.tick, self._turbulence.gust(mean))
        gust = self._blowing(mean)
        scale = self.settings.scale
        p, q, r = self._turbulence.rates if self.settings.blows else ZERO
        newest = AirTick(
            at=at, time_ns=self.grid.origin_ns + at.tick * TICK_NS, draws=self._turbulence.draws,
            airspeed=now.airspeed, mean=mean, gust=gust, rates=(scale * p, scale * q, scale * r),
            gust_enu=gust_enu(gust, mean.from_deg), discrete_enu=self._discrete_enu,
            sim_wind=sim_wind(mean.speed, mean.from_deg, gust, mean.up),
            asked=(self._turbulence.asked if isinstance(self._turbulence, FieldTurbulence)
                   else None))
        self._newest = newest
        self._gust_enu = newest.gust_enu
        wind = newest.sim_wind
        self.history.record(at.tick, [
            at.time, *gust, *newest.gust_enu, wind.speed, wind.direction, wind.direction_z,
            at.height, now.airspeed])

    def _added_up(self, at: Moment, mean: MeanWind) -> Vector:
        """Return the sum of the further gusts at a tick, ENU, m/s; forget those that are over."""
        east, north, up = map(sum, zip(*[gust.at(at, mean) for gust in self._added], strict=True))
        self._added = [gust for gust in self._added if not gust.over(at)]
        return east, north, up

    def _blowing(self, mean: MeanWind) -> Vector:
        """Return the gust (u, v, w) about a mean wind that blows with the present settings, m/s."""
        u = v = w = 0.0
        if self.settings.blows:
            scale = self.settings.scale
            u, v, w = self._turbulence.gust(mean)
            if self._remainder is not None:
                u, v, w = self._remainder.of((u, v, w))
            u, v, w = scale * u, scale * v, scale * w
        if self._discrete_enu != ZERO:
            along, right, up = gust_uvw(self._discrete_enu, mean.from_deg)
            u, v, w = u + along, v + right, w + up
        return u, v, w

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
