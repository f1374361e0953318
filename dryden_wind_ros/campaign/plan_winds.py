"""The winds of a plan: products of what its file names, each a wind and a seed."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import yaml

from dryden_wind_ros.campaign.entry import Wind
from dryden_wind_ros.campaign.plan_reader import PlanReader, alike
from dryden_wind_ros.gusts.air_settings import MAX_SEED, MODELS, AirSettings
from dryden_wind_ros.gusts.inputs import short
from dryden_wind_ros.gusts.record_csv import ScenarioError
from dryden_wind_ros.gusts.scenario_file import load as load_scenario

GUSTS = ('off', 'dryden', 'field')
MAX_FLIGHTS = 100_000


class WindReader(PlanReader):
    """Reads `winds` of a plan."""

    def winds(self, node: yaml.Node | None) -> list[tuple[Wind, int]]:
        if node is None:
            return []
        groups = node.value if isinstance(node, yaml.SequenceNode) else [node]
        found = [wind for group in groups for wind in self.group(group)]
        if len(set(found)) < len(found):
            self.wrong(node, 'winds: the same wind and seed are there twice')
        else:
            # Pairs are found by these names
            named: dict[str, Wind] = {}
            for wind, _ in found:
                other = named.setdefault(alike(wind.name), wind)
                if other != wind:
                    apart = (f'their scenarios are {other.scenario} and {wind.scenario}: give '
                             'their files different names' if wind.scenario != other.scenario
                             else 'they must differ by more')
                    self.wrong(node, f'winds: two of them would have the same name '
                                     f'{short(repr(wind.name))}; {apart}')
                    break
        if not found and not self.mistakes:
            self.wrong(node, 'winds: there is none')
        return found

    def group(self, node: yaml.Node) -> list[tuple[Wind, int]]:
        """Return the product of what a group of winds names."""
        values = self.mapping(node, 'winds', (
            'speed', 'from', 'up', 'gusts', 'model', 'severity', 'scale', 'scenario', 'seeds'))

        def number(low: float, high: float, unit: str = '') -> Callable[..., Any]:
            return lambda one, key: self.number(one, key, 'winds', low, high, unit)

        def words(choices: Sequence[str] = ()) -> Callable[..., Any]:
            return lambda one, key: self.text(one, key, 'winds', choices)

        def scenario(one: Mapping[str, yaml.Node], key: str) -> tuple[str, str] | None:
            path = self.file(one[key], 'winds: scenario')
            if path is None:
                return None
            try:
                load_scenario(path)
            except ScenarioError as error:
                self.wrong(one[key], f'winds: scenario {error}')
                return None
            return str(path.resolve()), hashlib.sha256(path.read_bytes()).hexdigest()[:16]

        axes: list[list[Any]] = [self.many(values, 'speed', number(0.0, 60.0, 'm/s'), 0.0),
                self.many(values, 'from', number(-360.0, 360.0, 'deg'), 270.0),
                self.many(values, 'up', number(-20.0, 20.0, 'm/s'), 0.0),
                self.many(values, 'gusts', words(GUSTS), 'dryden'),
                self.many(values, 'model', words(tuple(MODELS)), 'first_order'),
                self.many(values, 'severity', words(), 'light'),
                self.many(values, 'scale', number(0.01, 5.0), 1.0),
                self.many(values, 'scenario', scenario, ('', ''))]
        seeds = self.seeds(values.get('seeds'))
        found: list[tuple[Wind, int]] = []
        winds: list[Wind] = []
        for one in itertools.product(*axes):
            path, digest = one[-1]
            wind = replace(Wind(*one[:-1]), scenario=path, scenario_digest=digest)
            if wind.gusts == 'off':  # what gusts would be like makes no difference
                wind = replace(wind, model='first_order', severity='light', scale=1.0)
            try:
                AirSettings(mean_speed=wind.speed, mean_from_deg=wind.from_deg, mean_up=wind.up,
                            gusts=wind.gusts, model=wind.model, severity=wind.severity,
                            scale=wind.scale)
            except ValueError as error:
                self.wrong(node, f'winds: {error}')
                return []
            found += [(wind, seed) for seed in seeds if wind not in winds]
            winds.append(wind)
        return found

    def seeds(self, node: yaml.Node | None) -> list[int]:
        if node is None:
            return [1]
        if isinstance(node, yaml.MappingNode):
            values = self.mapping(node, 'seeds', ('first', 'count'))
            self.needed(node, values, 'seeds', 'count')
            first = self.whole(values.get('first'), 0, MAX_SEED) if 'first' in values else 1
            count = self.whole(values.get('count'), 1, MAX_FLIGHTS)
            if first is None or count is None:
                return []
            return list(range(first, first + count))
        if isinstance(node, yaml.ScalarNode):
            one = self.whole(node, 0, MAX_SEED)
            return [] if one is None else [one]
        found = [self.whole(one, 0, MAX_SEED) for one in node.value]
        return [one for one in found if one is not None]

    def whole(self, node: yaml.Node | None, low: int, high: int) -> int | None:
        if node is None:
            return None
        text = node.value if isinstance(node, yaml.ScalarNode) else ''
        if not (text.isascii() and text.isdigit() and len(text) < 20 and low <= int(text) <= high):
            self.wrong(node, f'seeds: {short(text) or "this"} must be a whole number from {low} '
                             f'to {high}')
            return None
        return int(text)
