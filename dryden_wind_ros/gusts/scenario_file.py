"""Scenario files.

A scenario is one YAML file, read once and judged as a whole: every mistake in it is named with its
line, and a file with a mistake changes nothing. ``docs/scenarios.md`` describes the format. All
keys are optional:

    name: morning              # default: the file's name
    clock: boot                # what times count from: boot, arming or restart
    wind: {speed: 5, from: 250, up: 0}       # at the beginning; default: the node's parameters
    changes:                   # in the order of time
      - {at: 60, over: 30, speed: 9, from: 300, turn: short}
    profile:                   # by height: log, power or table
      log: {z0: 0.03, reference_height: 10}
    gusts:                     # discrete gusts
      - {at: 120, length: 15, direction: up}
      - {once: {height: 50, going: up}, shape: ramp, amplitude: 4, duration: 2}
    record: {file: wind.csv, by: time}       # in place of wind, changes and profile
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from dryden_wind_ros.gusts.air_settings import MAX_MEAN_WIND, MAX_UPDRAFT
from dryden_wind_ros.gusts.conditions import MeanWind
from dryden_wind_ros.gusts.discrete import DIRECTIONS, SHAPES, DiscreteGust
from dryden_wind_ros.gusts.mean_wind import (
    HIGHEST,
    LOWEST,
    REFERENCE_HEIGHT,
    TURNS,
    Change,
    Clock,
    LogProfile,
    PowerProfile,
    Record,
    TableProfile,
)
from dryden_wind_ros.gusts.record_csv import ScenarioError, read_csv
from dryden_wind_ros.gusts.scenario import PlannedGust, Scenario, Trigger
from dryden_wind_ros.gusts.yaml_nodes import NodeReader, compose

MAX_FILE_BYTES = 1_000_000
"""Size of the largest scenario file."""

MAX_TIME = 1e7
"""Largest time in a scenario, s."""


ReadRecord = Callable[[Path, str], Record]
"""Reads a record by 'time' or 'height' and raises ScenarioError where it cannot."""


def load(path: Path | str, read_record: ReadRecord = read_csv) -> Scenario:
    """Read a scenario file and the record that it names.

    Parameters
    ----------
    path : Path or str
        The YAML file. A record's path is relative to it.
    read_record : callable, optional
        Reads the record; CSV files without it.

    Returns
    -------
    Scenario
        What it says.

    Raises
    ------
    ScenarioError
        Naming every mistake with its line.
    """
    path = Path(path).expanduser()
    root = compose(path, MAX_FILE_BYTES, 'a scenario file')
    reader = _Reader(read_record)
    scenario = _scenario(reader, root, path)
    if reader.mistakes:
        raise ScenarioError(path, reader.named())
    assert scenario is not None  # None comes with a mistake
    return scenario


class _Reader(NodeReader):
    """Takes a scenario apart; `read_record` reads the record that it names."""

    def __init__(self, read_record: ReadRecord) -> None:
        super().__init__()
        self.read_record = read_record


def _scenario(reader: _Reader, root: yaml.Node, path: Path) -> Scenario | None:
    top = reader.mapping(root, 'scenario', (
        'name', 'clock', 'wind', 'changes', 'profile', 'gusts', 'record'))
    clock = reader.text(top, 'clock', 'scenario', [one.value for one in Clock])
    scenario = Scenario(
        name=reader.text(top, 'name', 'scenario') or path.stem, path=str(path),
        clock=Clock(clock) if clock else Clock.BOOT,
        gusts=tuple(_gusts(reader, top.get('gusts'))))
    if 'record' in top:
        beside = [key for key in ('wind', 'changes', 'profile') if key in top]
        for key in beside:
            reader.wrong(top[key], f'{key} cannot stand beside record, which takes its place')
        record, offset = _record(reader, top['record'], path)
        return None if record is None else replace(scenario, record=record, offset=offset)
    wind: dict[str, yaml.Node] = {}
    if 'wind' in top:
        wind = reader.mapping(top['wind'], 'wind', ('speed', 'from', 'up'))
    speed, from_deg, up = _wind(reader, wind, 'wind')
    scenario = replace(
        scenario, speed=speed, from_deg=from_deg, up=up,
        changes=tuple(_changes(reader, top.get('changes'))))
    if 'profile' not in top:
        return scenario
    scenario = replace(scenario, profile=_profile(reader, top['profile']))
    strongest = scenario.strongest(MeanWind.of(0.0, 0.0))
    if strongest > MAX_MEAN_WIND:
        reader.wrong(top['profile'], f'profile: the wind would reach {strongest:.1f} m/s; allowed '
                                     f'are {MAX_MEAN_WIND:g} m/s')
    return scenario


def _wind(reader: _Reader, values: Mapping[str, yaml.Node],
          what: str) -> tuple[float | None, float | None, float | None]:
    return (reader.number(values, 'speed', what, 0.0, MAX_MEAN_WIND, 'm/s'),
            reader.number(values, 'from', what, -360.0, 360.0, 'deg'),
            reader.number(values, 'up', what, -MAX_UPDRAFT, MAX_UPDRAFT, 'm/s'))


def _changes(reader: _Reader, node: yaml.Node | None) -> Iterator[Change]:
    last = 0.0
    for entry in reader.sequence(node, 'changes'):
        values = reader.mapping(
            entry, 'change', ('at', 'over', 'speed', 'from', 'up', 'turn'))
        reader.needed(entry, values, 'change', 'at')
        at = reader.number(values, 'at', 'change', 0.0, MAX_TIME, 's')
        over = reader.number(values, 'over', 'change', 0.0, MAX_TIME, 's')
        speed, from_deg, up = _wind(reader, values, 'change')
        turn = reader.text(values, 'turn', 'change', TURNS)
        if values and not {'speed', 'from', 'up'} & set(values):
            reader.wrong(entry, 'change: one of speed, from, up is missing')
        if 'turn' in values and 'from' not in values:
            reader.wrong(values['turn'], 'change: turn needs a direction: from is missing')
        if at is None:
            continue
        if at < last:
            reader.wrong(values['at'], f'change: at is {at:g} s, before the {last:g} s of the '
                                       'change above; times must not go back')
        last = max(last, at)
        yield Change(at, over or 0.0, speed, from_deg, up, turn or 'short')


def _profile(reader: _Reader,
             node: yaml.Node) -> LogProfile | PowerProfile | TableProfile | None:
    kinds = reader.mapping(node, 'profile', ('log', 'power', 'table', 'reference_height'))
    kind = [name for name in kinds if name != 'reference_height']
    if len(kind) != 1:
        if isinstance(node, yaml.MappingNode):
            reader.wrong(node, 'profile must have exactly one of log, power, table')
        return None
    name, inner = kind[0], kinds[kind[0]]
    if name == 'table':
        at = reader.number(kinds, 'reference_height', 'profile', 0.0, 100_000.0, 'm')
        return _table(reader, inner, REFERENCE_HEIGHT if at is None else at)
    if 'reference_height' in kinds:
        reader.wrong(kinds['reference_height'],
                     f'profile: reference_height belongs into {name} here')
    own = 'z0' if name == 'log' else 'exponent'
    values = reader.mapping(inner, name, (own, 'reference_height'))
    reader.needed(inner, values, name, own)
    at = reader.number(values, 'reference_height', name, LOWEST, HIGHEST, 'm')
    at = REFERENCE_HEIGHT if at is None else at
    if name == 'log':
        z0 = reader.number(values, 'z0', name, 1e-6, 0.9, 'm')
        return None if z0 is None else LogProfile(z0, at)
    exponent = reader.number(values, 'exponent', name, 0.0, 1.0)
    return None if exponent is None else PowerProfile(exponent, at)


def _table(reader: _Reader, node: yaml.Node, reference: float) -> TableProfile | None:
    rows: list[tuple[float, float, float]] = []
    good = True
    for entry in reader.sequence(node, 'table'):
        values = reader.mapping(entry, 'row of the table', ('height', 'speed', 'from'))
        reader.needed(entry, values, 'row of the table', 'height', 'speed', 'from')
        height = reader.number(values, 'height', 'row of the table', 0.0, 100_000.0, 'm')
        speed, from_deg, _up = _wind(reader, values, 'row of the table')
        if height is None or speed is None or from_deg is None:
            good = False
            continue
        if rows and height <= rows[-1][0]:
            reader.wrong(values['height'], f'row of the table: height is {height:g} m, not above '
                                           f'the {rows[-1][0]:g} m of the row before')
            good = False
        rows.append((height, speed, from_deg))
    if not good:
        return None
    if not rows:
        if isinstance(node, yaml.SequenceNode):
            reader.wrong(node, 'table has no row')
        return None
    heights, speeds, directions = zip(*rows, strict=True)
    try:
        return TableProfile(heights, speeds, directions, reference)
    except ValueError as error:
        reader.wrong(node, f'table: {error}')
        return None


def _gusts(reader: _Reader, node: yaml.Node | None) -> Iterator[PlannedGust]:
    for entry in reader.sequence(node, 'gusts'):
        values = reader.mapping(entry, 'gust', (
            'at', 'once', 'shape', 'amplitude', 'length', 'duration', 'direction', 'azimuth',
            'altitude', 'alleviation'))
        if not isinstance(entry, yaml.MappingNode):
            continue
        before = len(reader.mistakes)
        trigger = _trigger(reader, entry, values)
        big = 1e6  # the gust itself knows its limits
        numbers = {name: reader.number(values, name, 'gust', -big, big) for name in (
            'amplitude', 'length', 'duration', 'azimuth', 'altitude', 'alleviation')}
        shape = reader.text(values, 'shape', 'gust', SHAPES)
        direction = reader.text(values, 'direction', 'gust', DIRECTIONS)
        if (direction == 'azimuth') != ('azimuth' in values):
            reader.wrong(entry, 'gust: direction azimuth and azimuth (deg) belong together')
        if len(reader.mistakes) > before or trigger is None:
            continue
        given: dict[str, Any] = {name: x for name, x in numbers.items() if x is not None}
        try:
            gust = DiscreteGust(shape=shape or SHAPES[0], direction=direction or DIRECTIONS[0],
                                **given)
        except ValueError as error:
            reader.wrong(entry, f'gust: {error}')
            continue
        yield PlannedGust(trigger, gust)


def _trigger(reader: _Reader, entry: yaml.Node,
             values: Mapping[str, yaml.Node]) -> Trigger | None:
    if ('at' in values) == ('once' in values):
        reader.wrong(entry, 'gust: it needs either at (a time) or once (a height or a place), and '
                            'not both')
        return None
    if 'at' in values:
        return Trigger(at=reader.number(values, 'at', 'gust', 0.0, MAX_TIME, 's'))
    node = values['once']
    once = reader.mapping(node, 'once', ('height', 'going', 'east', 'north', 'within'))
    if not isinstance(node, yaml.MappingNode):
        return None
    if 'height' in once:
        for key in ('east', 'north', 'within'):
            if key in once:
                reader.wrong(once[key], f'once: {key} cannot stand beside height')
        return Trigger(
            height=reader.number(once, 'height', 'once', -1000.0, 100_000.0, 'm'),
            going=reader.text(once, 'going', 'once', ('up', 'down', 'either')) or 'either')
    if 'going' in once:
        reader.wrong(once['going'], 'once: going needs a height')
    reader.needed(node, once, 'once', 'east', 'north', 'within')
    far = 1e7
    return Trigger(east=reader.number(once, 'east', 'once', -far, far, 'm'),
                   north=reader.number(once, 'north', 'once', -far, far, 'm'),
                   within=reader.number(once, 'within', 'once', 0.1, far, 'm'))


def _record(reader: _Reader, node: yaml.Node, path: Path) -> tuple[Record | None, float]:
    values = reader.mapping(node, 'record', ('file', 'by', 'offset', 'smoothing'))
    reader.needed(node, values, 'record', 'file')
    by = reader.text(values, 'by', 'record', ('time', 'height')) or 'time'
    offset = reader.number(values, 'offset', 'record', -MAX_TIME, MAX_TIME, 's')
    smoothing = reader.number(values, 'smoothing', 'record', 0.0, 3600.0, 's')
    if by == 'height':
        for key in ('offset', 'smoothing'):
            if key in values:
                reader.wrong(values[key], f'record: {key} is for records by time')
    name = reader.text(values, 'file', 'record')
    if name is None:
        return None, 0.0
    file = path.parent / Path(name).expanduser()
    try:
        return replace(reader.read_record(file, by), smoothing=smoothing or 0.0), offset or 0.0
    except ScenarioError as error:
        for mistake in error.mistakes:
            reader.wrong(values['file'], f'record {file}: {mistake}')
        return None, 0.0
