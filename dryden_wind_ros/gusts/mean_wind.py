"""Mean winds that depend on time and height: schedules, profiles and records.

Each is a `MeanWindSource`, asked at every tick; see `dryden_wind_ros.gusts.conditions`.

* `ScheduledWind`: speed, direction and updraft by time, in steps and ramps, at a reference height;
  a `Profile` makes of it the wind at other heights.
* `RecordedWind`: samples of a wind, by time or by height, linear in between.
* `HandSet`: another source, of which some parts were set by hand.

Times count from boot, from the last arming or from the last ``wind/restart``; see `Clock`.
"""

from __future__ import annotations

import enum
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dryden_wind_ros.gusts.conditions import MeanWind, MeanWindSource, Moment
from dryden_wind_ros.gusts.frames import Vector, from_direction, wrap_180, wrap_360
from dryden_wind_ros.gusts.tick_grid import EPOCH_CLOCK_S, TICK_S

LOWEST, HIGHEST = 0.9144, 304.8
"""Heights between which the laws of the boundary layer are used, m: 3 and 1000 ft as in
MIL-F-8785C; below and above, the wind is that of the limit."""

REFERENCE_HEIGHT = 10.0
"""Height that a scheduled wind belongs to, m, unless the profile says otherwise."""

_NOT_BEGUN = -1.0

TURNS = ('short', 'clockwise', 'counterclockwise')


class Clock(enum.Enum):
    """What the times of a scenario count from."""

    BOOT = 'boot'
    """Simulated time 0, or the first tick heard of a clock that counts from the epoch."""
    ARMING = 'arming'
    """The last arming; before it, nothing has begun."""
    RESTART = 'restart'
    """The last ``wind/restart``; before it, as BOOT."""

    def time(self, moment: Moment) -> float | None:
        """Return the scenario's time at a moment, s; None before it has begun."""
        if self is Clock.ARMING:
            armed_at = moment.armed_at
            return None if armed_at is None or armed_at > moment.time else moment.time - armed_at
        # A clock that counts from the epoch has its tick 0 at the first time heard.
        zero = moment.time - moment.tick * TICK_S
        zero = zero if zero > EPOCH_CLOCK_S else 0.0
        if self is Clock.RESTART:
            zero = max(zero, moment.restarted_at)
        return moment.time - zero


# ---------------------------------------------------------------------- by height


class Profile(Protocol):
    """How the wind of a reference height changes with height."""

    @property
    def reference_height(self) -> float:
        """The height that the schedule belongs to, m above the ground."""

    def factor(self, height: float) -> float:
        """Return the speed at a height over that at the reference height."""

    def turn(self, height: float) -> float:
        """Return how far the direction at a height is clockwise of that at the reference."""


@dataclass(frozen=True)
class LogProfile:
    """The logarithmic law: speed goes with ln(height / z0), as the shear of MIL-F-8785C does.

    Attributes
    ----------
    z0 : float
        Roughness length, m, above 0 and below 0.9 m. MIL-F-8785C has 0.0457 m (0.15 ft) for
        landing and 0.61 m (2 ft) otherwise.
    reference_height : float
        m above the ground.
    """

    z0: float
    reference_height: float = REFERENCE_HEIGHT

    def factor(self, height: float) -> float:
        """Return the speed at a height over that at the reference height."""
        held = min(max(height, LOWEST), HIGHEST)
        return math.log(held / self.z0) / math.log(self.reference_height / self.z0)

    def turn(self, height: float) -> float:
        """Return 0: the law says nothing about direction."""
        return 0.0


@dataclass(frozen=True)
class PowerProfile:
    """The power law: speed goes with height ** exponent.

    Attributes
    ----------
    exponent : float
        0 to 1; 1/7 over open land.
    reference_height : float
        m above the ground.
    """

    exponent: float
    reference_height: float = REFERENCE_HEIGHT

    def factor(self, height: float) -> float:
        """Return the speed at a height over that at the reference height."""
        return float((min(max(height, LOWEST), HIGHEST) / self.reference_height)**self.exponent)

    def turn(self, height: float) -> float:
        """Return 0: the law says nothing about direction."""
        return 0.0


class TableProfile:
    """A table of height, speed and direction, linear in between and held outside.

    Parameters
    ----------
    heights : sequence of float
        m above the ground, rising.
    speeds : sequence of float
        m/s; above 0 at the reference height.
    from_deg : sequence of float
        Degrees the wind comes from; between two rows it turns the short way.
    reference_height : float, optional
        m above the ground. The schedule's speed and direction are those at this height.

    Raises
    ------
    ValueError
        If there is no wind at the reference height.
    """

    def __init__(self, heights: Sequence[float], speeds: Sequence[float],
                 from_deg: Sequence[float], reference_height: float = REFERENCE_HEIGHT) -> None:
        self.reference_height = reference_height
        self.heights = list(heights)
        self._speeds = list(speeds)
        self._from_deg = list(from_deg[:1])
        for direction in from_deg[1:]:
            last = self._from_deg[-1]
            self._from_deg.append(last + wrap_180(direction - last))
        self._speed, self._from = self.wind(reference_height)
        if not self._speed > 0.0:
            raise ValueError(f'the wind at the reference height of {reference_height:g} m is '
                             f'{self._speed:g} m/s; it must be above 0')

    def wind(self, height: float) -> tuple[float, float]:
        """Return what the table says: speed, m/s, and the direction it comes from, degrees."""
        return (interpolated(self.heights, self._speeds, height),
                interpolated(self.heights, self._from_deg, height))

    def factor(self, height: float) -> float:
        """Return the speed at a height over that at the reference height."""
        return self.wind(height)[0] / self._speed

    def turn(self, height: float) -> float:
        """Return how far the direction at a height is clockwise of that at the reference."""
        return self.wind(height)[1] - self._from


def interpolated(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
    """Return the value at `x` on the lines between points (xs rising), held outside.

    Where two points have the same x, the later one counts from there on: a step.
    """
    i = bisect_right(xs, x)
    if i == 0:
        return ys[0]
    if i == len(xs) or xs[i - 1] == x:
        return ys[i - 1]
    part = (x - xs[i - 1]) / (xs[i] - xs[i - 1])
    return ys[i - 1] + part * (ys[i] - ys[i - 1])


# ---------------------------------------------------------------------- by time


@dataclass(frozen=True)
class Change:
    """A step or ramp of the wind.

    Attributes
    ----------
    at : float
        When it begins, s of the scenario's time.
    over : float
        How long it takes, s; 0: a step.
    speed, from_deg, up : float or None
        What it leads to, m/s, degrees, m/s; None: that stays as it is.
    turn : {'short', 'clockwise', 'counterclockwise'}
        Which way round the direction goes. Half a turn the short way is clockwise.
    """

    at: float
    over: float = 0.0
    speed: float | None = None
    from_deg: float | None = None
    up: float | None = None
    turn: str = 'short'


class Timeline:
    """One quantity by time: lines between points, held outside. Times of points do not fall."""

    def __init__(self, start: float) -> None:
        self.times = [0.0]
        self.values = [start]

    def lead_to(self, value: float, at: float, over: float) -> None:
        """Go from what it is at a time to a value, cutting off whatever was still under way."""
        now = self.at(at)
        while self.times and self.times[-1] >= at:
            self.times.pop()
            self.values.pop()
        self.times += [at, at + over]
        self.values += [now, value]

    def at(self, time: float) -> float:
        """Return the value at a time."""
        return interpolated(self.times, self.values, time)


class ScheduledWind:
    """Steps and ramps of speed, direction and updraft, and a profile by height.

    Parameters
    ----------
    start : MeanWind
        The wind at the beginning, at the reference height.
    changes : sequence of Change, optional
        In the order of their times.
    profile : Profile, optional
        The wind at other heights; None: the same at all.
    clock : Clock, optional
        What the times count from.
    """

    def __init__(self, start: MeanWind, changes: Sequence[Change] = (),
                 profile: Profile | None = None, clock: Clock = Clock.BOOT) -> None:
        self._clock, self._profile = clock, profile
        self._speed, self._from, self._up = map(Timeline, (start.speed, start.from_deg, start.up))
        for change in changes:
            if change.speed is not None:
                self._speed.lead_to(change.speed, change.at, change.over)
            if change.from_deg is not None:
                now = self._from.at(change.at)
                self._from.lead_to(
                    now + turn_angle(now, change.from_deg, change.turn), change.at, change.over)
            if change.up is not None:
                self._up.lead_to(change.up, change.at, change.over)
        self._timed = bool(changes)
        self._last: tuple[float, float, MeanWind] | None = None

    def at(self, moment: Moment) -> MeanWind:
        """Return the mean wind at a moment."""
        time = _NOT_BEGUN
        if self._timed:
            now = self._clock.time(moment)
            time = _NOT_BEGUN if now is None else now
        height = moment.height if self._profile else 0.0
        if self._last is None or self._last[:2] != (time, height):
            self._last = time, height, self._wind(time, height)
        return self._last[2]

    def _wind(self, time: float, height: float) -> MeanWind:
        speed, direction = self._speed.at(time), self._from.at(time)
        if self._profile is not None:
            speed *= self._profile.factor(height)
            direction += self._profile.turn(height)
        return MeanWind.of(speed, wrap_360(direction), self._up.at(time))

    @property
    def points(self) -> list[float]:
        """Times at which something begins or ends, s of the scenario's time."""
        return sorted({*self._speed.times, *self._from.times, *self._up.times})

    def news(self) -> list[str]:
        """Return nothing: a schedule goes on for ever."""
        return []


def turn_angle(old: float, new: float, turn: str) -> float:
    """Return the angle from one direction to another, degrees clockwise, the way told."""
    if turn == 'clockwise':
        return (new - old) % 360.0
    if turn == 'counterclockwise':
        return -((old - new) % 360.0)
    return wrap_180(new - old)


# ---------------------------------------------------------------------- recorded


@dataclass(frozen=True)
class Record:
    """Samples of a wind.

    Attributes
    ----------
    by : {'time', 'height'}
        What `x` is.
    x : tuple of float
        Times, s, or heights above the ground, m; rising.
    enu : tuple of tuple of float
        The wind at each, east, north, up, m/s.
    smoothing : float
        Time constant of the low-pass that the samples were smoothed with, s; 0: they hold no
        turbulence at all. See `Remainder`.
    source : str
        What it was read from.
    """

    by: str
    x: tuple[float, ...]
    enu: tuple[Vector, ...]
    smoothing: float = 0.0
    source: str = ''


class RecordedWind:
    """A record, linear between its samples (in east, north and up), held before and after.

    Parameters
    ----------
    record : Record
        The samples.
    clock : Clock, optional
        What its times count from.
    offset : float, optional
        Added to its times, s.
    """

    def __init__(self, record: Record, clock: Clock = Clock.BOOT, offset: float = 0.0) -> None:
        self.record = record
        self._clock, self._offset = clock, offset
        self._columns = tuple(list(column) for column in zip(*record.enu, strict=True))
        self._told = False
        self._news: list[str] = []

    def at(self, moment: Moment) -> MeanWind:
        """Return the mean wind at a moment."""
        record = self.record
        if record.by == 'height':
            return self.sample(moment.height)
        time = self._clock.time(moment)
        time = record.x[0] if time is None else time - self._offset
        if time > record.x[-1] + 1e-6 and not self._told:
            self._told = True
            self._news.append(
                f'the recorded wind ({record.source}) ends at {record.x[-1] + self._offset:.2f} s; '
                'its last value goes on from here')
        return self.sample(time)

    def sample(self, x: float) -> MeanWind:
        """Return the wind at a time or height of the record."""
        east, north, up = (interpolated(self.record.x, column, x) for column in self._columns)
        return MeanWind(math.hypot(east, north), from_direction(east, north), up,
                        (east, north, up))

    def news(self) -> list[str]:
        """Return what a user should read, each once."""
        news, self._news = self._news, []
        return news


class ObservedSource(MeanWindSource, Protocol):
    """A mean wind that may have something to say."""

    def news(self) -> list[str]:
        """Return what a user should read, each once."""


class HandSet:
    """Another mean wind, of which some parts were set by hand and stay so.

    Parameters
    ----------
    source : ObservedSource
        The other one.
    speed, from_deg, up : float or None
        What was set, m/s, degrees, m/s; None: as the source has it.
    """

    def __init__(self, source: ObservedSource, speed: float | None = None,
                 from_deg: float | None = None, up: float | None = None) -> None:
        self._source = source
        self._hand = speed, from_deg, up

    def at(self, moment: Moment) -> MeanWind:
        """Return the mean wind at a moment."""
        mean = self._source.at(moment)
        speed, from_deg, up = (
            theirs if own is None else own for own, theirs in zip(self._hand, mean[:3],
                                                                  strict=True))
        return MeanWind.of(speed, wrap_360(from_deg), up)

    def news(self) -> list[str]:
        """Return what a user should read, each once; nothing where nothing of it is left."""
        news = self._source.news()
        return [] if None not in self._hand else news


class Remainder:
    """What turbulence adds to a record that already holds the slow part of it.

    The record was smoothed with a first-order low-pass of time constant T, whose gain is
    1 / sqrt(1 + (w T)^2). The turbulence goes through the high-pass that belongs to it,
    w T / sqrt(1 + (w T)^2): the squares of the two gains add up to 1 at every frequency w, so that
    record and turbulence together have the spectrum of the turbulence where the record is made of
    the same. The step from tick to tick is exact for a gust held between them.

    Parameters
    ----------
    smoothing : float
        T, s, above 0.
    """

    def __init__(self, smoothing: float) -> None:
        self._keep = math.exp(-TICK_S / smoothing)
        self._tick: int | None = None
        self._slow: Vector = (0.0, 0.0, 0.0)

    def begin(self) -> None:
        """Begin anew, from calm."""
        self._tick = None

    def step(self, tick: int, gust: Vector) -> Vector:
        """Take the turbulence of a tick and return its fast part, in the same axes, m/s."""
        if self._tick is None or tick < self._tick:
            self._slow = (0.0, 0.0, 0.0)
        elif tick > self._tick:
            keep = self._keep**(tick - self._tick)
            u, v, w = (new + keep * (old - new)
                       for old, new in zip(self._slow, gust, strict=True))
            self._slow = u, v, w
        self._tick = tick
        return self.of(gust)

    def of(self, gust: Vector) -> Vector:
        """Return the fast part of a turbulence of the last tick that was taken, m/s."""
        u, v, w = (new - old for new, old in zip(gust, self._slow, strict=True))
        return u, v, w
