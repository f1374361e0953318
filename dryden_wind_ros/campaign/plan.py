"""Plans: which variants are flown in which winds, read from one YAML file and judged as a whole.

``docs/campaigns.md`` describes the format. Every mistake is named with its line, and nothing is
flown from a plan that has one: the vehicles, the air and the user's own measures are made once
while it is checked.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from dryden_wind_ros.campaign.entry import Entry, Event, Extra, Vehicle, vehicle_config
from dryden_wind_ros.campaign.flight import TAKEN
from dryden_wind_ros.campaign.measures import MEASURES
from dryden_wind_ros.campaign.plan_reader import MAX_NAME, alike
from dryden_wind_ros.campaign.plan_vehicles import VehicleReader
from dryden_wind_ros.campaign.plan_winds import MAX_FLIGHTS, WindReader
from dryden_wind_ros.campaign.ros_wind import missing
from dryden_wind_ros.emulator.parameters import default_parameters
from dryden_wind_ros.gusts.inputs import short
from dryden_wind_ros.gusts.record_csv import ScenarioError
from dryden_wind_ros.gusts.yaml_nodes import compose

MAX_FILE_BYTES = 1_000_000
KEEP = ('failures', 'all', 'none')
SIM_SECONDS_PER_CPU_SECOND = 300.0
"""Of the embedded vehicle, for the estimate before the first flight is done."""

LIVE_START = 5.0
"""What it takes to start the processes of a live flight and to end them, s."""

PlanError = ScenarioError
"""A plan cannot be used; every mistake is in it."""

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


class _Reader(VehicleReader, WindReader):
    def plan(self, root: yaml.Node) -> Plan | None:
        top = self.mapping(root, 'plan', (
            'name', 'vehicle', 'flight', 'variants', 'winds', 'events', 'measures', 'limits',
            'time_limit', 'keep', 'ros'))
        ros = bool(self.truth(top, 'ros', 'plan')) if 'ros' in top else False
        if ros and missing():
            self.wrong(top['ros'], f'ros: true {missing()}')
        self.needed(root, top, 'plan', 'variants', 'winds')
        vehicle = self.vehicle(top.get('vehicle'), 'vehicle', Vehicle())
        manoeuvre, script = self.manoeuvre(top.get('flight'))
        variants = self.variants(top.get('variants'), vehicle, script)
        limit = self.mapping(top['time_limit'], 'time_limit', ('sim', 'wall')) if (
            'time_limit' in top) else {}
        sim = self.number(limit, 'sim', 'time_limit', 1.0, 1e5, 's')
        wall = self.number(limit, 'wall', 'time_limit', 0.1, 1e5, 's')
        own, extras = self.measures(top.get('measures'))
        if 'events' in top and any(one.script for one in variants):
            self.wrong(top['events'], 'events are for flights without a script, which can set '
                                      'parameters itself')
        keep = self.text(top, 'keep', 'plan', KEEP) or 'failures'
        events = self.events(top.get('events'), [one.vehicle for one in variants])
        winds = self.winds(top.get('winds'))
        names = tuple(one.name for one in variants)
        name = self.text(top, 'name', 'plan') or self._path.stem
        self.name(top.get('name', root), 'plan: name' if 'name' in top else
                  "plan: name is missing and the file's name", name)
        limits = self.limits(top.get('limits'), {*MEASURES, *own, 'failed'}, names)
        count = len(variants) * len(winds)
        if count > MAX_FLIGHTS:
            self.wrong(top['winds'], f'{count} flights are more than {MAX_FLIGHTS}')
        if self.mistakes or manoeuvre is None:
            return None
        flight_seconds = 60.0 + manoeuvre.settle + manoeuvre.seconds
        flights = itertools.product(variants, winds)
        return Plan(
            name=name, path=str(self._path.resolve()),
            variants=names, limits=limits, keep=keep, entries=tuple(
                Entry(index=index, variant=one.name, vehicle=one.vehicle, wind=wind,
                      manoeuvre=manoeuvre, seed=seed, events=events, extras=extras,
                      script=one.script, script_path=one.script_path, ros=ros,
                      sim_limit=sim or 2.0 * flight_seconds + 60.0, wall_limit=wall or 300.0)
                for index, (one, (wind, seed)) in enumerate(flights)))

    def events(self, node: yaml.Node | None, vehicles: Sequence[Vehicle]) -> tuple[Event, ...]:
        found = []
        for entry in self.sequence(node, 'events'):
            values = self.mapping(entry, 'event', ('at', 'parameter', 'value'))
            self.needed(entry, values, 'event', 'at', 'parameter', 'value')
            at = self.number(values, 'at', 'event', 0.0, 1e5, 's')
            name = self.text(values, 'parameter', 'event')
            value = self.number(values, 'value', 'event', -1e12, 1e12)
            if at is None or name is None or value is None or not self.parameter(
                    values['parameter'], 'event', name):
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
        found: list[Extra] = []
        for key, value in node.value:
            name = self.key(key, 'measures')
            text = str(value.value) if isinstance(value, yaml.ScalarNode) else ''
            if name is None:
                continue
            file, colon, function = text.rpartition(':')
            path = self._path.parent / Path(file).expanduser()
            if not (name.isidentifier() and len(name) <= MAX_NAME):
                self.wrong(key, f'measures: {short(repr(name))} is no name; it must be a word of '
                                f'up to {MAX_NAME} letters, digits and _, not beginning with a '
                                'digit')
            elif alike(name) in {alike(one) for one in
                                 (*MEASURES, *TAKEN, *(one.name for one in found))}:
                self.wrong(key, f'measures: {name} is taken: the table has such a column already '
                                '(upper and lower case are the same there)')
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
