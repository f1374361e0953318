"""Which vehicles there are: names, SITL instances, connections and seeds.

A fleet is a number of vehicles by SITL's rules, or a YAML list:

    - name: scout                # namespace; default vehicle_<i>, counted from 1
      instance: 0                # SITL instance; default: one more than the vehicle before
      system_id: 0               # 0: the first autopilot heard on the connection
      connection: tcp:127.0.0.1:5762   # default: tcp:127.0.0.1:(5762 + 10 x instance)
      seed: 12                   # default: derived from the fleet's seed
      wind: {mean_wind.speed: 9.0, gusts: 'off'}   # parameters of its wind node; the path of a
                                 # scenario counts from this file's folder
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from dryden_wind_ros.sitl.connection import ConnectionStringError, parse_connection

MAX_VEHICLES = 250
"""MAVLink has no more system ids than that for vehicles."""

VEHICLES_PER_PROCESS = 50
"""One interpreter carries about sixty vehicles with comfort on one core."""

_NAME = re.compile(r'[A-Za-z][A-Za-z0-9_]*(/[A-Za-z][A-Za-z0-9_]*)*')
_KEYS = ('name', 'instance', 'system_id', 'connection', 'seed', 'wind')


class FleetError(ValueError):
    """A fleet is described wrongly; the text names the vehicle, the value and what is allowed."""


@dataclass(frozen=True)
class Vehicle:
    """One vehicle of a fleet.

    Attributes
    ----------
    name : str
        Namespace, without a leading slash.
    instance : int
        SITL instance.
    system_id : int
        MAVLink system id, 0 for the first autopilot heard.
    connection : str
        pymavlink connection string.
    seed : int
        Seed of its gusts.
    wind : mapping of str to value
        Further parameters of its wind node.
    has_own_seed : bool
        Whether its seed was given, not derived from the fleet's: then its field is its own, too.
    """

    name: str
    instance: int
    system_id: int
    connection: str
    seed: int
    wind: Mapping[str, Any] = field(default_factory=dict)
    has_own_seed: bool = False


def sitl_connection(instance: int) -> str:
    """Return where a SITL instance listens for a second client: SERIAL1."""
    return f'tcp:127.0.0.1:{5762 + 10 * instance}'


def derived_seed(seed: int, index: int) -> int:
    """Return the seed of the vehicle `index` (from 0) of a fleet with `seed`, below 2^32.

    A hash rather than a sum, so that the vehicles of fleets with neighbouring seeds differ too.
    """
    digest = hashlib.sha256(f'{seed}/{index}'.encode()).digest()
    return int.from_bytes(digest[:4], 'big')


def numbered(count: int, seed: int, same_air: bool = False,
             first_instance: int = 0) -> list[Vehicle]:
    """Return `count` vehicles by SITL's rules.

    Raises
    ------
    FleetError
        If the count is not in 1..250.
    """
    if not 1 <= count <= MAX_VEHICLES:
        raise FleetError(f'vehicles is {count}; it must be from 1 to {MAX_VEHICLES}')
    return listed([{} for _ in range(count)], seed, same_air, first_instance)


def deal(vehicles: Sequence[Vehicle], parts: int) -> list[list[Vehicle]]:
    """Deal a fleet to several processes.

    Parameters
    ----------
    vehicles : sequence of Vehicle
        The whole fleet.
    parts : int
        How many processes, from 1.

    Returns
    -------
    list of list of Vehicle
        One a process, alike in size, each in the order of the fleet. Vehicles that share a
        connection stay together, for a port belongs to one process; so a part may be empty.
    """
    groups: dict[str, list[int]] = {}
    for index, vehicle in enumerate(vehicles):
        groups.setdefault(vehicle.connection, []).append(index)
    dealt: list[list[int]] = [[] for _ in range(parts)]
    for group in groups.values():
        min(dealt, key=len).extend(group)
    return [[vehicles[index] for index in sorted(part)] for part in dealt]


def processes_for(vehicles: int, cores: int) -> int:
    """Return how many processes a fleet is best dealt to on a machine of so many cores."""
    return max(1, min(cores, math.ceil(vehicles / VEHICLES_PER_PROCESS)))


def load(path: Path, seed: int, same_air: bool = False, first_instance: int = 0) -> list[Vehicle]:
    """Return the vehicles that a YAML file lists, see the module.

    Raises
    ------
    FleetError
        If the file cannot be read or a vehicle in it is wrong.
    """
    try:
        content = yaml.safe_load(path.read_text())
    except OSError as error:
        raise FleetError(f'{path} cannot be read: {error.strerror}') from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise FleetError(f'{path} is not YAML: {error}') from None
    if isinstance(content, Mapping) and set(content) == {'vehicles'}:
        content = content['vehicles']
    if not isinstance(content, list):
        raise FleetError(f'{path} must hold a list of vehicles')
    try:
        vehicles = listed(content, seed, same_air, first_instance)
    except FleetError as error:
        raise FleetError(f'{path}: {error}') from None
    return [replace(vehicle, wind=_beside(path, vehicle.wind)) for vehicle in vehicles]


def _beside(path: Path, wind: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parameters of a vehicle with a scenario's path taken from the file's folder."""
    scenario = wind.get('scenario')
    if not isinstance(scenario, str) or not scenario:
        return wind
    return {**wind, 'scenario': str(path.resolve().parent / Path(scenario).expanduser())}


def listed(entries: Sequence[Any], seed: int, same_air: bool = False,
           first_instance: int = 0) -> list[Vehicle]:
    """Return the vehicles of a list of mappings with the keys of the module's example.

    Raises
    ------
    FleetError
        If a key is unknown, a value is not allowed, or two vehicles share a name or the same
        system id on one connection.
    """
    if not 1 <= len(entries) <= MAX_VEHICLES:
        raise FleetError(f'there are {len(entries)} vehicles; allowed are 1 to {MAX_VEHICLES}')
    vehicles: list[Vehicle] = []
    instance = first_instance
    for index, entry in enumerate(entries):
        where = f'vehicle {index + 1}'
        if entry is None:
            entry = {}
        if not isinstance(entry, Mapping):
            raise FleetError(f'{where} is {entry!r}; it must be a mapping with {", ".join(_KEYS)}')
        unknown = [str(key) for key in entry if key not in _KEYS]
        if unknown:
            raise FleetError(f'{where}: {unknown[0]} is unknown; known are {", ".join(_KEYS)}')
        name = entry.get('name', f'vehicle_{index + 1}')
        if not isinstance(name, str) or not _NAME.fullmatch(name.strip('/')):
            raise FleetError(f'{where}: name is {name!r}; it must be a ROS namespace: letters, '
                             'digits and _, beginning with a letter')
        instance = _whole(where, entry, 'instance', instance, 0, 999)
        wind = {} if entry.get('wind') is None else entry['wind']
        if not isinstance(wind, Mapping):
            raise FleetError(f'{where}: wind is {wind!r}; it must be a mapping of parameters')
        for key, value in wind.items():
            if not isinstance(key, str) or not isinstance(value, (bool, int, float, str)):
                raise FleetError(f'{where}: wind has {key!r}: {value!r}; it must be the full name '
                                 'of a parameter, such as mean_wind.speed, and a number, text or '
                                 'truth value')
        connection = entry.get('connection', sitl_connection(instance))
        if not isinstance(connection, str) or not connection:
            raise FleetError(f'{where}: connection is {connection!r}; it must be a connection '
                             'string')
        vehicles.append(Vehicle(
            name=name.strip('/'), instance=instance,
            system_id=_whole(where, entry, 'system_id', 0, 0, 255), connection=connection,
            seed=_whole(where, entry, 'seed', seed if same_air else derived_seed(seed, index),
                        0, 2**63 - 1),
            wind=dict(wind), has_own_seed='seed' in entry))
        instance += 1
    _no_two(vehicles)
    return vehicles


def _whole(where: str, entry: Mapping[str, Any], key: str, default: int, low: int,
           high: int) -> int:
    value = entry.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise FleetError(f'{where}: {key} is {value!r}; it must be a whole number from {low} to '
                         f'{high}')
    return value


def _identity(connection: str) -> str:
    """Return the same text for all strings that mean the same connection."""
    try:
        return parse_connection(connection, allow_remote=True).identity
    except ConnectionStringError:
        return connection  # refused with its reason by whoever opens it


def _no_two(vehicles: Sequence[Vehicle]) -> None:
    names: dict[str, int] = {}
    links: dict[str, dict[int, int]] = {}
    for number, vehicle in enumerate(vehicles, 1):
        if names.setdefault(vehicle.name, number) != number:
            raise FleetError(f'vehicles {names[vehicle.name]} and {number} are both named '
                             f'{vehicle.name}')
        on_link = links.setdefault(_identity(vehicle.connection), {})
        for system_id, other in on_link.items():
            # 0 takes whoever is heard first, so it can share a connection with nobody.
            if system_id == vehicle.system_id or not system_id or not vehicle.system_id:
                raise FleetError(
                    f'vehicles {other} and {number} may be the same system on '
                    f'{vehicle.connection} (system_id {system_id} and {vehicle.system_id}): give '
                    'each a connection or a system_id of its own')
        on_link[vehicle.system_id] = number
