"""Plans: which variants are flown in which winds, read from one YAML file and judged as a whole.

``docs/campaigns.md`` describes the format. Every mistake is named with its line, and nothing is
flown from a plan that has one: the vehicles, the air and the user's own measures are made once
while it is checked.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from dryden_wind_ros.campaign.course import course_of
from dryden_wind_ros.campaign.entry import (
    Entry,
    Event,
    Extra,
    Manoeuvre,
    Vehicle,
    Wind,
    vehicle_config,
)
from dryden_wind_ros.campaign.measures import MEASURES
from dryden_wind_ros.campaign.mission import read_mission
from dryden_wind_ros.campaign.ros_wind import missing
from dryden_wind_ros.emulator.parameters import default_parameters, read_parameter_file
from dryden_wind_ros.gusts.air_settings import MAX_SEED, MODELS, AirSettings
from dryden_wind_ros.gusts.inputs import short
from dryden_wind_ros.gusts.record_csv import ScenarioError
from dryden_wind_ros.gusts.scenario_file import load as load_scenario
from dryden_wind_ros.gusts.yaml_nodes import NodeReader, compose

MAX_FILE_BYTES = 1_000_000
MAX_FLIGHTS = 100_000
KEEP = ('failures', 'all', 'none')
KINDS = ('copter', 'plane')
PATHS = ('hover', 'circle', 'box')
GUSTS = ('off', 'dryden', 'field')
SIM_SECONDS_PER_CPU_SECOND = 300.0
"""Of the embedded vehicle, for the estimate before the first flight is done."""

LIVE_START = 5.0
"""What it takes to start the processes of a live flight and to end them, s."""

PlanError = ScenarioError
"""A plan cannot be used; every mistake is in it."""

_VEHICLE = ('kind', 'dynamics', 'drag', 'airspeed', 'altitude', 'home', 'parameters',
            'parameter_files', 'seed', 'sitl', 'speedup')


@dataclass(frozen=True)
class Limit:
    """What must hold.

    Attributes
    ----------
    measure : str
        A measure, or 'failed'.
    most : float
        Largest value that passes.
    share : float
        Part of the flights that must pass, above 0 to 1.
    variants : tuple of str
        Whose flights; all of them if empty.
    """

    measure: str
    most: float
    share: float = 1.0
    variants: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """A campaign.

    Attributes
    ----------
    name, path : str
    variants : tuple of str
        The baseline first.
    entries : tuple of Entry
        Every flight, in order: each variant in all winds.
    limits : tuple of Limit
    keep : {'failures', 'all', 'none'}
        Whose files are kept beside the table.
    """

    name: str
    path: str
    variants: tuple[str, ...]
    entries: tuple[Entry, ...]
    limits: tuple[Limit, ...] = ()
    keep: str = 'failures'

    @property
    def baseline(self) -> str:
        """What the others are compared with."""
        return self.variants[0]

    @property
    def sim_seconds(self) -> float:
        """About how long all flights take together, s of sim time."""
        return sum(_sim_seconds(entry) for entry in self.entries)

    @property
    def wall_seconds(self) -> float:
        """About how long all flights take one after the other, s: live ones as they begin."""
        return sum(_sim_seconds(entry) / entry.vehicle.speedup + LIVE_START if entry.live
                   else _sim_seconds(entry) / SIM_SECONDS_PER_CPU_SECOND
                   for entry in self.entries)


def _sim_seconds(entry: Entry) -> float:
    return 30.0 + entry.manoeuvre.settle + entry.manoeuvre.seconds


def load(path: Path | str) -> Plan:
    """Read and check a plan.

    Raises
    ------
    PlanError
        Naming every mistake with its line.
    """
    path = Path(path).expanduser()
    root = compose(path, MAX_FILE_BYTES, 'a plan')
    reader = _Reader(path)
    plan = reader.plan(root)
    if reader.mistakes:
        raise PlanError(path, reader.named())
    assert plan is not None  # None comes with a mistake
    return plan


class _Reader(NodeReader):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self.script = self.script_path = ''

    def plan(self, root: yaml.Node) -> Plan | None:
        top = self.mapping(root, 'plan', (
            'name', 'vehicle', 'flight', 'variants', 'winds', 'events', 'measures', 'limits',
            'time_limit', 'keep', 'ros'))
        ros = bool(self.truth(top, 'ros', 'plan')) if 'ros' in top else False
        if ros and missing():
            self.wrong(top['ros'], f'ros: true {missing()}')
        self.needed(root, top, 'plan', 'variants', 'winds')
        vehicle = self.vehicle(top.get('vehicle'), 'vehicle', Vehicle())
        manoeuvre = self.manoeuvre(top.get('flight'))
        variants = self.variants(top.get('variants'), vehicle)
        limit = self.mapping(top['time_limit'], 'time_limit', ('sim', 'wall')) if (
            'time_limit' in top) else {}
        sim = self.number(limit, 'sim', 'time_limit', 1.0, 1e5, 's')
        wall = self.number(limit, 'wall', 'time_limit', 0.1, 1e5, 's')
        own, extras = self.measures(top.get('measures'))
        if self.script and 'events' in top:
            self.wrong(top['events'], 'events are for flights without a script, which can set '
                                      'parameters itself')
        keep = self.text(top, 'keep', 'plan', KEEP) or 'failures'
        events = self.events(top.get('events'), [one for _, one in variants])
        winds = self.winds(top.get('winds'))
        names = tuple(name for name, _ in variants)
        limits = self.limits(top.get('limits'), {*MEASURES, *own, 'failed'}, names)
        count = len(variants) * len(winds)
        if count > MAX_FLIGHTS:
            self.wrong(top['winds'], f'{count} flights are more than {MAX_FLIGHTS}')
        if self.mistakes or manoeuvre is None:
            return None
        flight_seconds = 60.0 + manoeuvre.settle + manoeuvre.seconds
        flights = itertools.product(variants, winds)
        return Plan(
            name=self.text(top, 'name', 'plan') or self._path.stem, path=str(self._path.resolve()),
            variants=names, limits=limits, keep=keep, entries=tuple(
                Entry(index=index, variant=name, vehicle=one, wind=wind, manoeuvre=manoeuvre,
                      seed=seed, events=events, extras=extras,
                      script=self.script, script_path=self.script_path, ros=ros,
                      sim_limit=sim or 2.0 * flight_seconds + 60.0, wall_limit=wall or 300.0)
                for index, ((name, one), (wind, seed)) in enumerate(flights)))

    # ------------------------------------------------------------------ small things

    def truth(self, values: Mapping[str, yaml.Node], key: str, what: str) -> bool | None:
        text = self.text(values, key, what, ('true', 'false', 'yes', 'no', 'on', 'off'))
        return None if text is None else text in ('true', 'yes', 'on')

    def many(self, values: Mapping[str, yaml.Node], key: str,
             read: Callable[[Mapping[str, yaml.Node], str], Any], default: Any) -> list[Any]:
        """Return a value, or each of a list of values."""
        node = values.get(key)
        if node is None:
            return [default]
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        if not nodes:
            self.wrong(node, f'winds: {key} has no value')
        found = [read({key: one}, key) for one in nodes]
        return [one for one in found if one is not None]

    def file(self, node: yaml.Node, what: str) -> Path | None:
        if not isinstance(node, yaml.ScalarNode) or not node.value:
            self.wrong(node, f'{what} must be the name of a file')
            return None
        path = self._path.parent / Path(node.value).expanduser()
        if not path.is_file():
            self.wrong(node, f'{what} {path}: there is no such file')
            return None
        return path

    # ------------------------------------------------------------------ what flies

    def vehicle(self, node: yaml.Node | None, what: str, base: Vehicle) -> Vehicle:
        if node is None:
            return base
        values = self.mapping(node, what, _VEHICLE)
        kind = self.text(values, 'kind', what, KINDS)
        flags: dict[str, Any] = {}
        if kind is not None:
            flags['kind'] = kind
            if kind != base.kind:
                flags['dynamics'] = kind == 'copter'
        for name in ('dynamics', 'drag', 'airspeed'):
            value = self.truth(values, name, what)
            if value is not None:
                flags[name] = value
        altitude = self.number(values, 'altitude', what, 1.0, 10_000.0, 'm')
        if altitude is not None:
            flags['altitude'] = altitude
        home = self.text(values, 'home', what)
        if home is not None:
            flags['home'] = home
        seed = self.number(values, 'seed', what, 0.0, 1e9)
        if seed is not None:
            flags['seed'] = int(seed)
        sitl = self.text(values, 'sitl', what)
        if sitl is not None:
            try:
                if not shlex.split(sitl):
                    raise ValueError('it is empty')
                flags.update(sitl=sitl, dynamics=False)
            except ValueError as error:
                self.wrong(values['sitl'], f'{what}: sitl is no command: {error}')
        speedup = self.number(values, 'speedup', what, 0.1, 100.0)
        if speedup is not None:
            flags['speedup'] = speedup
        parameters = dict(base.parameters)
        for entry in self.sequence(values.get('parameter_files'), f'{what}: parameter_files'):
            path = self.file(entry, f'{what}: parameter file')
            if path is not None:
                try:
                    parameters.update(read_parameter_file(path))
                except ValueError as error:
                    self.wrong(entry, f'{what}: {error}')
        given = values.get('parameters')
        if given is not None:
            if not isinstance(given, yaml.MappingNode):
                self.wrong(given, f'{what}: parameters must be a mapping NAME: VALUE')
            else:
                for key, value in given.value:
                    own = self.key(key, f'{what}: parameters')
                    if own is None:
                        continue
                    number = self.number({own: value}, own, f'{what}: parameters', -1e12, 1e12)
                    if number is not None:
                        parameters[own] = number
        made = replace(base, **flags, parameters=tuple(sorted(parameters.items())))
        try:
            config = vehicle_config(made, 0)
            if not made.sitl:  # what another vehicle knows, it says itself
                default_parameters(config)
        except ValueError as error:
            self.wrong(node, f'{what}: {error}')
        return made

    def variants(self, node: yaml.Node | None, base: Vehicle) -> list[tuple[str, Vehicle]]:
        if node is None:
            return []
        if not isinstance(node, yaml.MappingNode) or not node.value:
            self.wrong(node, 'variants must be a mapping of at least one name to what it changes')
            return []
        found: list[tuple[str, Vehicle]] = []
        baseline: str | None = None
        for key, value in node.value:
            name = self.key(key, 'variants')
            if name is None:
                continue
            if name in [other for other, _ in found]:
                self.wrong(key, f'variants: {name} is there twice')
                continue
            rest = value
            if isinstance(value, yaml.ScalarNode) and value.value in ('', '~', 'null'):
                rest = None
            elif isinstance(value, yaml.MappingNode):
                flag = [one for one in value.value if one[0].value == 'baseline']
                others = [one for one in value.value if one[0].value != 'baseline']
                rest = yaml.MappingNode(value.tag, others, value.start_mark, value.end_mark)
                if flag and self.truth({'baseline': flag[0][1]}, 'baseline', f'variant {name}'):
                    if baseline is not None:
                        self.wrong(flag[0][0], f'variants: {baseline} is the baseline already')
                    baseline = name
            found.append((name, self.vehicle(rest, f'variant {name}', base)))
        first = baseline or (found[0][0] if found else None)
        return sorted(found, key=lambda one: one[0] != first)

    def manoeuvre(self, node: yaml.Node | None) -> Manoeuvre | None:
        if node is None:
            return Manoeuvre()
        if isinstance(node, yaml.ScalarNode):
            path = self.text({'flight': node}, 'flight', 'plan', PATHS)
            return None if path is None else Manoeuvre(path=path)
        values = self.mapping(node, 'flight', (
            'path', 'mission', 'script', 'radius', 'side', 'speed', 'seconds', 'settle'))
        ways = [key for key in ('path', 'mission', 'script') if key in values]
        if len(ways) > 1:
            self.wrong(node, f'flight: {" and ".join(ways)} cannot stand beside each other')
        if 'script' in values:
            file = self.file(values['script'], 'flight: script')
            if file is not None:
                self.script = file.read_text(encoding='utf-8', errors='replace')
                self.script_path = str(file)
        made: dict[str, Any] = {'path': self.text(values, 'path', 'flight', PATHS) or 'hover'}
        for name, low, high, unit in (('radius', 2.0, 1000.0, 'm'), ('side', 2.0, 1000.0, 'm'),
                                      ('speed', 0.2, 15.0, 'm/s'), ('seconds', 1.0, 1e5, 's'),
                                      ('settle', 0.0, 1e4, 's')):
            value = self.number(values, name, 'flight', low, high, unit)
            if value is not None:
                made[name] = value
        if 'mission' in values:
            file = self.file(values['mission'], 'flight: mission')
            if file is None:
                return None
            try:
                made.update(path='mission', waypoints=read_mission(file))
            except ValueError as error:
                self.wrong(values['mission'], f'flight: {error}')
                return None
            if 'seconds' not in made:
                course = course_of(replace(Manoeuvre(), **made))
                assert course is not None  # it is a mission
                made['seconds'] = math.ceil(course.seconds)
        return replace(Manoeuvre(), **made)

    # ------------------------------------------------------------------ the air

    def winds(self, node: yaml.Node | None) -> list[tuple[Wind, int]]:
        if node is None:
            return []
        groups = node.value if isinstance(node, yaml.SequenceNode) else [node]
        found = [wind for group in groups for wind in self.group(group)]
        if len(set(found)) < len(found):
            self.wrong(node, 'winds: the same wind and seed are there twice')
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
        found = []
        for one in itertools.product(*axes):
            path, digest = one[-1]
            wind = replace(Wind(*one[:-1]), scenario=path, scenario_digest=digest)
            try:
                AirSettings(mean_speed=wind.speed, mean_from_deg=wind.from_deg, mean_up=wind.up,
                            gusts=wind.gusts, model=wind.model, severity=wind.severity,
                            scale=wind.scale)
            except ValueError as error:
                self.wrong(node, f'winds: {error}')
                return []
            found += [(wind, seed) for seed in seeds]
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

    # ------------------------------------------------------------------ the rest

    def events(self, node: yaml.Node | None, vehicles: Sequence[Vehicle]) -> tuple[Event, ...]:
        found = []
        for entry in self.sequence(node, 'events'):
            values = self.mapping(entry, 'event', ('at', 'parameter', 'value'))
            self.needed(entry, values, 'event', 'at', 'parameter', 'value')
            at = self.number(values, 'at', 'event', 0.0, 1e5, 's')
            name = self.text(values, 'parameter', 'event')
            value = self.number(values, 'value', 'event', -1e12, 1e12)
            if at is None or name is None or value is None:
                continue
            if name.startswith('SIM_WIND_'):
                self.wrong(entry, f'event: {name} is what the wind is written to')
            for one in vehicles:
                if one.sitl:
                    continue  # what it knows, it says itself
                try:
                    known = default_parameters(vehicle_config(one, 0))
                except ValueError:
                    continue  # said already
                if name not in known:
                    self.wrong(entry, f'event: this {one.kind} has no parameter '
                                      f'{short(repr(name))}')
                    break
            found.append(Event(at, name, value))
        return tuple(found)

    def measures(self, node: yaml.Node | None) -> tuple[list[str], tuple[Extra, ...]]:
        """Read the user's own measures: ``NAME: FILE.py:FUNCTION``."""
        if node is None:
            return [], ()
        if not isinstance(node, yaml.MappingNode):
            self.wrong(node, 'measures must be a mapping NAME: FILE.py:FUNCTION; those of the '
                             'package are always there')
            return [], ()
        found = []
        for key, value in node.value:
            name = self.key(key, 'measures')
            text = str(value.value) if isinstance(value, yaml.ScalarNode) else ''
            if name is None:
                continue
            file, colon, function = text.rpartition(':')
            path = self._path.parent / Path(file).expanduser()
            if name in MEASURES or not name.isidentifier():
                self.wrong(key, f'measures: {short(name)} is taken, or is no name')
            elif not colon or not function.isidentifier():
                self.wrong(value, f'measures: {short(text) or "this"} is not FILE.py:FUNCTION')
            elif not path.is_file():
                self.wrong(value, f'measures: {path}: there is no such file')
            else:
                source = path.read_text(encoding='utf-8', errors='replace')
                try:
                    compile(source, str(path), 'exec')
                except (SyntaxError, ValueError) as error:
                    self.wrong(value, f'measures: {path}: {error}')
                found.append(Extra(name, str(path), function, source))
        return [one.name for one in found], tuple(found)

    def limits(self, node: yaml.Node | None, measures: set[str],
               variants: tuple[str, ...]) -> tuple[Limit, ...]:
        found = []
        for entry in self.sequence(node, 'limits'):
            values = self.mapping(entry, 'limit', ('measure', 'most', 'share', 'variants'))
            self.needed(entry, values, 'limit', 'measure', 'most')
            measure = self.text(values, 'measure', 'limit', sorted(measures))
            most = self.number(values, 'most', 'limit', -1e12, 1e12)
            share = self.number(values, 'share', 'limit', 1e-6, 1.0)
            whose = [self.text({'variants': one}, 'variants', 'limit', variants)
                     for one in self.sequence(values.get('variants'), 'limit: variants')]
            if measure is not None and most is not None:
                found.append(Limit(measure, most, 1.0 if share is None else share,
                                   tuple(name for name in whose if name is not None)))
        return tuple(found)
