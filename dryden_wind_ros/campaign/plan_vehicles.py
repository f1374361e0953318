"""What flies in a plan: the vehicle, its variants, how it is flown."""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from dryden_wind_ros.campaign.course import course_of
from dryden_wind_ros.campaign.entry import (
    FIRMWARE,
    Manoeuvre,
    Vehicle,
    vehicle_config,
    with_digest,
)
from dryden_wind_ros.campaign.mission import read_mission
from dryden_wind_ros.campaign.plan_reader import PlanReader, alike
from dryden_wind_ros.emulator.parameters import default_parameters, read_parameter_file
from dryden_wind_ros.gusts.inputs import short

KINDS = ('copter', 'plane')
PATHS = ('hover', 'circle', 'box')

_VEHICLE = ('kind', 'dynamics', 'drag', 'airspeed', 'altitude', 'home', 'parameters',
            'parameter_files', 'seed', 'sitl', 'executable', 'firmware', 'speedup')
_OWN = ('baseline', 'script')  # of a variant, beside those of a vehicle
_PARAMETER = re.compile('[A-Z0-9_]{1,16}')

Script = tuple[str, str]


class Variant(NamedTuple):
    """One of what is compared.

    Attributes
    ----------
    name : str
    vehicle : Vehicle
    script, script_path : str
        As in `Entry`.
    """

    name: str
    vehicle: Vehicle
    script: str
    script_path: str


class VehicleReader(PlanReader):
    """Reads `vehicle`, `flight` and `variants` of a plan."""

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
        flags.update(self.programs(values, what, base))
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
                    if own is None or not self.parameter(key, what, own):
                        continue
                    number = self.number({own: value}, own, f'{what}: parameters', -1e12, 1e12)
                    if number is not None:
                        parameters[own] = number
        made = with_digest(replace(base, **flags, parameters=tuple(sorted(parameters.items()))))
        try:
            config = vehicle_config(made, 0)
            if not made.sitl:  # what another vehicle knows, it says itself
                default_parameters(config)
        except ValueError as error:
            self.wrong(node, f'{what}: {error}')
        return made

    def parameter(self, node: yaml.Node, what: str, name: str) -> bool:
        """Return whether a text can name a parameter; a mistake if not."""
        if _PARAMETER.fullmatch(name):
            return True
        self.wrong(node, f'{what}: {short(repr(name))} is no name of a parameter; it must be 1 to '
                         '16 of A-Z, 0-9 and _')
        return False

    def programs(self, values: Mapping[str, yaml.Node], what: str,
                 base: Vehicle) -> dict[str, Any]:
        """Read what is run as another vehicle: a command, and programs in it by their files."""
        found: dict[str, Any] = {}
        sitl = self.text(values, 'sitl', what)
        if sitl is not None:
            try:
                words = shlex.split(sitl)
                if not words or '\0' in sitl:
                    raise ValueError('it is empty' if not words else 'it has a character NUL')
                found.update(sitl=sitl, dynamics=False, executable='')
                if '/' in words[0]:
                    path = self.program(values['sitl'], f'{what}: sitl', words[0])
                    found['executable'] = '' if path is None else str(path)
            except ValueError as error:
                self.wrong(values['sitl'], f'{what}: sitl is no command: {error}')
        for key in ('executable', 'firmware'):
            node = values.get(key)
            if node is None:
                continue
            text = node.value if isinstance(node, yaml.ScalarNode) else ''
            command = found.get('sitl', base.sitl)
            if not command and 'sitl' not in values:
                self.wrong(node, f'{what}: {key} is for a vehicle of sitl:; there is none, and the '
                                 'embedded vehicle is part of this package: it has no other')
            elif key == 'firmware' and FIRMWARE not in command:
                self.wrong(node, f'{what}: firmware takes the place of {FIRMWARE} in the command '
                                 f'of sitl, and {short(repr(command))} has none')
            else:
                path = self.program(node, f'{what}: {key}', text, run=key == 'executable')
                if path is not None:
                    found[key] = str(path)
        return found

    def program(self, node: yaml.Node, what: str, text: str, *, run: bool = True) -> Path | None:
        """Return the file of a program, beside the plan unless absolute; None, and a mistake."""
        path = Path(os.path.abspath(self._path.parent / Path(text).expanduser())) if text else None
        if path is None or not path.is_file():
            self.wrong(node, f'{what} {path or short(repr(text))}: there is no such file')
        elif not os.access(path, os.R_OK | (os.X_OK if run else 0)):
            self.wrong(node, f'{what} {path}: it cannot be {"run" if run else "read"}; '
                             f'allow it: chmod {"+rx" if run else "+r"}')
        else:
            return path
        return None

    def script(self, node: yaml.Node, what: str) -> Script:
        """Return text and path of a script; two times nothing, and a mistake, without one."""
        file = self.file(node, f'{what}: script')
        if file is None:
            return '', ''
        return file.read_text(encoding='utf-8', errors='replace'), str(file)

    def variants(self, node: yaml.Node | None, base: Vehicle, script: Script) -> list[Variant]:
        """Read the variants, the baseline first."""
        if node is None:
            return []
        if not isinstance(node, yaml.MappingNode) or not node.value:
            self.wrong(node, 'variants must be a mapping of at least one name to what it changes')
            return []
        found: list[Variant] = []
        baseline: str | None = None
        for key, value in node.value:
            name = self.key(key, 'variants')
            if name is None:
                continue
            self.name(key, 'variants: the name of a variant', name)
            twin = next((one.name for one in found if alike(one.name) == alike(name)), None)
            if twin is not None:
                self.wrong(key, f'variants: {short(name)} is there twice' if twin == name else
                           f'variants: {short(name)} and {short(twin)} differ by upper and lower '
                           'case only; names must differ by more')
                continue
            what = f'variant {short(name)}'
            rest, own = value, dict[str, yaml.Node]()
            if isinstance(value, yaml.ScalarNode) and value.value in ('', '~', 'null'):
                rest = None
            elif isinstance(value, yaml.MappingNode):
                own = {one[0].value: one[1] for one in value.value
                       if isinstance(one[0], yaml.ScalarNode) and one[0].value in _OWN}
                others = [one for one in value.value if not (
                    isinstance(one[0], yaml.ScalarNode) and one[0].value in _OWN)]
                rest = yaml.MappingNode(value.tag, others, value.start_mark, value.end_mark)
            if self.truth(own, 'baseline', what):
                if baseline is not None:
                    self.wrong(own['baseline'], f'variants: {baseline} is the baseline already')
                baseline = name
            vehicle = self.vehicle(rest, what, base)
            if FIRMWARE in vehicle.sitl and not vehicle.firmware:
                self.wrong(key, f'{what}: its command has {FIRMWARE}, and no firmware is given')
            found.append(Variant(name, vehicle, *(
                self.script(own['script'], what) if 'script' in own else script)))
        first = baseline or (found[0].name if found else None)
        return sorted(found, key=lambda one: one.name != first)

    def manoeuvre(self, node: yaml.Node | None) -> tuple[Manoeuvre | None, Script]:
        """Read how it is flown, and the script that flies it if there is one."""
        script = '', ''
        if node is None:
            return Manoeuvre(), script
        if isinstance(node, yaml.ScalarNode):
            path = self.text({'flight': node}, 'flight', 'plan', PATHS)
            return None if path is None else Manoeuvre(path=path), script
        values = self.mapping(node, 'flight', (
            'path', 'mission', 'script', 'radius', 'side', 'speed', 'seconds', 'settle'))
        ways = [key for key in ('path', 'mission', 'script') if key in values]
        if len(ways) > 1:
            self.wrong(node, f'flight: {" and ".join(ways)} cannot stand beside each other')
        if 'script' in values:
            script = self.script(values['script'], 'flight')
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
                return None, script
            try:
                made.update(path='mission', waypoints=read_mission(file))
            except ValueError as error:
                self.wrong(values['mission'], f'flight: {error}')
                return None, script
            if 'seconds' not in made:
                course = course_of(replace(Manoeuvre(), **made))
                assert course is not None  # it is a mission
                made['seconds'] = math.ceil(course.seconds)
        return replace(Manoeuvre(), **made), script
