"""The scenario of a wind node: opened when the parameter says so, and given to the air.

Parameters set by hand win over it from then on, each for itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from typing import Any

from dryden_wind_ros.gusts.air import SeededAir
from dryden_wind_ros.gusts.air_settings import MAX_MEAN_WIND
from dryden_wind_ros.gusts.conditions import MeanWind
from dryden_wind_ros.gusts.discrete import BlowingGust, DiscreteGust
from dryden_wind_ros.gusts.mean_wind import Clock, HandSet, ObservedSource
from dryden_wind_ros.gusts.scenario import Scenario, ScenarioGusts
from dryden_wind_ros.gusts.tick_grid import TICK_S
from dryden_wind_ros.logs.recorded_wind import open_scenario
from dryden_wind_ros.nodes import common

HAND = {'mean_wind.speed': 'speed', 'mean_wind.from_direction': 'from_deg', 'mean_wind.up': 'up'}
"""Parameter: the part of the mean wind that it sets."""

MAX_DELAY = 3600.0
"""Longest delay of a discrete gust that is asked for, s."""


class ScenarioFollower:
    """Keeps the air of one wind node on its scenario.

    Parameters
    ----------
    namespace : str
        Of the node: whose wind is taken of a bag with several vehicles.
    say : callable
        Called with what a user should read; the second argument tells whether it is a warning.

    Attributes
    ----------
    scenario : Scenario or None
        The one in force.
    file : str
        Its path, from the root, so that others find it too; '' for none.
    """

    def __init__(self, namespace: str, say: Callable[[str, bool], None]) -> None:
        self.scenario: Scenario | None = None
        self.file = ''
        self._namespace, self._say = namespace, say
        self._path = ''
        self._opened: dict[str, Scenario] = {}
        self._source: ObservedSource | None = None
        self._gusts: ScenarioGusts | None = None
        self._hand: dict[str, float] = {}

    @property
    def counts_from_arming(self) -> bool:
        """Whether arming has to be known."""
        return self.scenario is not None and self.scenario.clock is Clock.ARMING

    def judge(self, values: Mapping[str, Any]) -> None:
        """Refuse a scenario that cannot be flown; the one in force stays.

        Raises
        ------
        common.BadParameter
            Naming every mistake and its line.
        """
        path = values['scenario']
        if not path:
            return
        scenario = self.scenario if path == self._path else None
        if scenario is None:
            try:
                scenario = open_scenario(os.path.expanduser(path), self._namespace)
            except ValueError as error:
                raise common.BadParameter(f'scenario: {error}') from None
        if scenario.by_height and values['profile'] == 'sitl':
            raise common.BadParameter(
                f"profile is 'sitl', and scenario {scenario.name} has a profile by height of its "
                "own: SITL would apply both. Set profile to 'uniform'")
        if path == self._path:
            return  # a speed set by hand is that at all heights
        base = MeanWind.of(*(values[name] for name in HAND))
        strongest = scenario.strongest(base)
        if strongest > MAX_MEAN_WIND:
            raise common.BadParameter(
                f'mean_wind.speed is {base.speed:g}, of which the profile of scenario '
                f'{scenario.name} would make {strongest:.1f} m/s at some height; allowed are '
                f'{MAX_MEAN_WIND:g} m/s')
        self._opened = {path: scenario}

    def follow(self, air: SeededAir, values: Mapping[str, Any],
               set_now: Collection[str] = ()) -> bool:
        """Let the air follow what the parameters say; return whether another scenario began.

        Parameters
        ----------
        air : SeededAir
            Configured already with the parameters.
        values : mapping of str to value
            All parameters, as judged.
        set_now : collection of str, optional
            Those that were set just now.
        """
        path = values['scenario']
        begun = path != self._path
        if begun:
            self._begin(air, path)
        scenario = self.scenario
        if scenario is None or self._source is None:
            return begun
        if not begun:
            by_hand = {HAND[name]: float(values[name]) for name in HAND if name in set_now}
            if by_hand:
                self._hand |= by_hand
                self._say(f'set by hand, in place of scenario {scenario.name} from now on: '
                          + ', '.join(f'{name} {values[name]:g}' for name in HAND
                                      if name in set_now), False)
        source = HandSet(self._source, **self._hand) if self._hand else self._source
        all_by_hand = len(self._hand) == len(HAND)
        air.follow_mean_wind(source, 0.0 if all_by_hand else scenario.smoothing)
        return begun

    def _begin(self, air: SeededAir, path: str) -> None:
        if self._gusts is not None:
            self._gusts.end()
        self._path, self._hand = path, {}
        self.file = os.path.abspath(os.path.expanduser(path)) if path else ''
        self.scenario = self._opened.get(path) if path else None
        self._source = self._gusts = None
        self._opened = {}
        if self.scenario is None:
            air.follow_mean_wind(None)
            return
        self._source = self.scenario.mean_wind(air.settings.mean)
        if self.scenario.gusts:
            self._gusts = ScenarioGusts(self.scenario)
            air.add_gust(self._gusts)

    def tell(self) -> None:
        """Say what the scenario has to say: gusts that begin, a record that ends."""
        if self._gusts is not None:
            for text in self._gusts.news():
                self._say(text, False)
        if self._source is not None:
            for text in self._source.news():
                if len(self._hand) < len(HAND):
                    self._say(text, True)


def gust_asked_for(request: Any, air: SeededAir) -> tuple[BlowingGust, str]:
    """Return the gust that a request of DiscreteGust stands for, and what it is, in words.

    Raises
    ------
    ValueError
        Naming what is wrong, its value and what is allowed; or if the air has not begun.
    """
    newest = air.newest
    if newest is None:
        raise ValueError('the air has not begun: no tick of sim time was heard yet')
    if not 0.0 <= request.delay <= MAX_DELAY:
        raise ValueError(f'delay is {request.delay:g}; it must be from 0 to {MAX_DELAY:g} s')
    if request.length < 0.0 or request.duration < 0.0:
        raise ValueError(f'length is {request.length:g} m, duration is {request.duration:g} s; '
                         'neither may be below 0')
    gust = DiscreteGust(
        shape=request.shape or 'one_minus_cosine', amplitude=request.amplitude or None,
        length=request.length or None,
        duration=None if request.length else request.duration or None,
        direction=request.direction or 'along', azimuth=request.azimuth)
    start = newest.at.time + max(TICK_S, request.delay)
    return BlowingGust(gust, start), f'{gust.in_words()}, begins at {start:.2f} s'
