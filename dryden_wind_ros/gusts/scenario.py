"""Scenarios: how the mean wind changes, and which discrete gusts blow when.

`dryden_wind_ros.gusts.scenario_file` reads one from a file; `Scenario.mean_wind` and
`ScenarioGusts` are what the air is given of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dryden_wind_ros.gusts.conditions import ZERO, MeanWind, Moment
from dryden_wind_ros.gusts.discrete import LEAD, BlowingGust, DiscreteGust
from dryden_wind_ros.gusts.frames import Vector
from dryden_wind_ros.gusts.mean_wind import (
    HIGHEST,
    LOWEST,
    Change,
    Clock,
    LogProfile,
    ObservedSource,
    PowerProfile,
    Record,
    RecordedWind,
    ScheduledWind,
    TableProfile,
)

LATE = 2.0
"""A gust whose time has gone by this long when it becomes known does not blow any more, s. Arming
is known up to a second late."""


@dataclass(frozen=True)
class Trigger:
    """When a discrete gust of a scenario begins.

    Attributes
    ----------
    at : float or None
        At this time of the scenario, s.
    height : float or None
        Once the vehicle passes this height above the ground, m.
    going : {'up', 'down', 'either'}
        Which way it must pass it.
    east, north, within : float or None
        Once the vehicle comes within this horizontal distance, m, of a place in the odometry's
        frame, m.
    """

    at: float | None = None
    height: float | None = None
    going: str = 'either'
    east: float | None = None
    north: float | None = None
    within: float | None = None

    def in_words(self) -> str:
        """Return when that is."""
        if self.at is not None:
            return f'at {self.at:g} s'
        if self.height is not None:
            way = '' if self.going == 'either' else f' going {self.going}'
            return f'once it passes {self.height:g} m{way}'
        return f'once within {self.within:g} m of ({self.east:g}, {self.north:g}) m'


@dataclass(frozen=True)
class PlannedGust:
    """A discrete gust and when it begins."""

    trigger: Trigger
    gust: DiscreteGust


@dataclass(frozen=True)
class Scenario:
    """What a scenario says.

    Attributes
    ----------
    name : str
        Its name.
    path : str
        Where it was read from.
    clock : Clock
        What its times count from.
    speed, from_deg, up : float or None
        The mean wind at the beginning; None: the node's parameters.
    changes : tuple of Change
        Steps and ramps, in the order of time.
    profile : LogProfile, PowerProfile, TableProfile or None
        The mean wind by height.
    gusts : tuple of PlannedGust
        Discrete gusts.
    record : Record or None
        A recorded wind in place of all of that but the gusts.
    offset : float
        Added to the times of the record, s.
    """

    name: str
    path: str = ''
    clock: Clock = Clock.BOOT
    speed: float | None = None
    from_deg: float | None = None
    up: float | None = None
    changes: tuple[Change, ...] = ()
    profile: LogProfile | PowerProfile | TableProfile | None = None
    gusts: tuple[PlannedGust, ...] = ()
    record: Record | None = None
    offset: float = 0.0

    @property
    def by_height(self) -> bool:
        """Whether the mean wind depends on height."""
        return self.profile is not None or (self.record is not None and self.record.by == 'height')

    @property
    def smoothing(self) -> float:
        """Time constant, s, of what its record already holds of the turbulence; 0: nothing."""
        return self.record.smoothing if self.record is not None else 0.0

    def mean_wind(self, base: MeanWind) -> ObservedSource:
        """Return the mean wind; what the file leaves open is that of `base`."""
        if self.record is not None:
            return RecordedWind(self.record, self.clock, self.offset)
        return ScheduledWind(self.start(base), self.changes, self.profile, self.clock)

    def start(self, base: MeanWind) -> MeanWind:
        """Return the scheduled wind at the beginning, at the reference height."""
        speed, from_deg, up = self.speed, self.from_deg, self.up
        if isinstance(self.profile, TableProfile):
            table = self.profile.wind(self.profile.reference_height)
            speed = table[0] if speed is None else speed
            from_deg = table[1] if from_deg is None else from_deg
        return MeanWind.of(base.speed if speed is None else speed,
                           base.from_deg if from_deg is None else from_deg,
                           base.up if up is None else up)

    def strongest(self, base: MeanWind) -> float:
        """Return the highest speed that a profile by height makes of the schedule, m/s."""
        speeds = [self.start(base).speed,
                  *(change.speed for change in self.changes if change.speed is not None)]
        profile = self.profile
        if profile is None:
            return max(speeds)
        heights = profile.heights if isinstance(profile, TableProfile) else [LOWEST, HIGHEST]
        return max(speeds) * max(map(profile.factor, heights))

    def in_words(self) -> str:
        """Return what it is, for a log."""
        if self.record is not None:
            wind = f'a recorded wind by {self.record.by}, {len(self.record.x)} samples'
            if self.smoothing:
                wind += (f', smoothed with {self.smoothing:g} s: of the turbulence, what is slower '
                         'is left out')
        else:
            count = len(self.changes)
            wind = f'{count} change{"s" * (count != 1)} of the wind'
            if self.profile is not None:
                wind += ', a profile by height'
        clock = f', times counted from {self.clock.value}'
        count = len(self.gusts)
        return f'scenario {self.name}: {wind}, {count} discrete gust{"s" * (count != 1)}{clock}'


class ScenarioGusts:
    """The discrete gusts of a scenario, each let go when its time or place has come.

    Each blows once; all are waiting again when the scenario's time begins anew (arming, restart,
    simulated time gone back).

    Parameters
    ----------
    scenario : Scenario
        What it says.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._waiting = list(scenario.gusts)
        self._blowing: list[BlowingGust] = []
        self._last: Moment | None = None
        self._news: list[str] = []
        self._ended = False

    def at(self, moment: Moment, mean: MeanWind) -> Vector:
        """Return what they add at a moment, ENU, m/s; the moments must go on."""
        last, self._last = self._last, moment
        clock = self._scenario.clock
        if self._ended:
            return ZERO
        if last is not None and _begun_anew(last, moment, clock):
            self._waiting, self._blowing = list(self._scenario.gusts), []
            last = last if last.time <= moment.time else None
        time = clock.time(moment)
        if time is not None and self._waiting:
            self._let_go(last, moment, time)
        if not self._blowing:
            return ZERO
        east, north, up = map(sum, zip(
            *[gust.at(moment, mean) for gust in self._blowing], strict=True))
        self._blowing = [gust for gust in self._blowing if not gust.over(moment)]
        return east, north, up

    def end(self) -> None:
        """Let none of them blow any more."""
        self._ended, self._waiting, self._blowing = True, [], []

    def over(self, moment: Moment) -> bool:
        """Return whether they were ended: until then they may wait for another arming."""
        return self._ended

    def news(self) -> list[str]:
        """Return what a user should read, each once."""
        news, self._news = self._news, []
        return news

    def _let_go(self, last: Moment | None, moment: Moment, time: float) -> None:
        """Let those begin whose time or place has come since the last moment."""
        known = moment.time if last is None else last.time
        waiting, self._waiting = self._waiting, []
        for planned in waiting:
            trigger, start = planned.trigger, moment.time
            if trigger.at is not None:
                if time < trigger.at - LEAD - 1e-6:
                    self._waiting.append(planned)
                    continue
                due = moment.time - time + trigger.at
                if due >= known - 1e-6:
                    start = due
                elif moment.time - due > LATE:
                    self._news.append(f'{planned.gust.in_words()}, {trigger.in_words()}: that is '
                                      'over, it will not blow')
                    continue
            elif not _passed(trigger, last, moment):
                self._waiting.append(planned)
                continue
            self._blowing.append(BlowingGust(planned.gust, start))
            self._news.append(f'{planned.gust.in_words()} begins at {start:.2f} s, '
                              f'{trigger.in_words()}')


def _begun_anew(last: Moment, moment: Moment, clock: Clock) -> bool:
    if moment.time < last.time or moment.tick < last.tick:
        return True
    if clock is Clock.ARMING:
        return moment.armed_at is not None and moment.armed_at != last.armed_at
    return clock is Clock.RESTART and moment.restarted_at != last.restarted_at


def _passed(trigger: Trigger, last: Moment | None, moment: Moment) -> bool:
    if trigger.height is not None:
        if last is None:
            return False
        before, now = last.height - trigger.height, moment.height - trigger.height
        if not last.sampled_at and moment.sampled_at:
            return False  # the first odometry: the vehicle was up there already
        up, down = before < 0.0 <= now, before > 0.0 >= now
        return (up and trigger.going != 'down') or (down and trigger.going != 'up')
    east, north, within = trigger.east, trigger.north, trigger.within
    assert east is not None  # see _trigger
    assert north is not None
    assert within is not None
    return math.dist(moment.position[:2], (east, north)) <= within
