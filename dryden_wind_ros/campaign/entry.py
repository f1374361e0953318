"""What one flight of a campaign is: frozen, complete, and with a name of its own.

An `Entry` holds everything that decides how its flight goes, so its `key` (a digest of all that)
tells whether that flight was flown already, on whatever machine.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dryden_wind_ros.emulator.config import Home, VehicleConfig

FIRMWARE = '{firmware}'
"""In the command of another vehicle: the place of its firmware's path."""

FORMAT = 1
"""Changes when the same entry is flown or measured in another way."""


@dataclass(frozen=True)
class Event:
    """A parameter that changes in flight.

    Attributes
    ----------
    at : float
        Sim time since the measured part began, s.
    parameter : str
    value : float
    """

    at: float
    parameter: str
    value: float


@dataclass(frozen=True)
class Vehicle:
    """What flies.

    Attributes
    ----------
    kind : {'copter', 'plane'}
    dynamics, drag, airspeed : bool
        As in `VehicleConfig`.
    altitude : float or None
        Of the flight, m above home; None: the kind's own.
    home : str
        LAT,LON,ALT,HEADING.
    parameters : tuple of (str, float)
    seed : int
        Of the vehicle's own noise; the wind's seed is added.
    sitl : str
        Command of another vehicle that takes SITL's options; '' for the embedded one.
    executable, firmware : str
        Paths of files: of the program in the place of that command's first word, and of what
        takes the place of `FIRMWARE` in it; '' for none.
    digest : str
        Of the content of these two files.
    speedup : float
        Of live flights, sim seconds a wall second, at first.
    """

    kind: str = 'copter'
    dynamics: bool = True
    drag: bool = False
    airspeed: bool = True
    altitude: float | None = None
    home: str = '-35.363261,149.165230,584,270'
    parameters: tuple[tuple[str, float], ...] = ()
    seed: int = 0
    sitl: str = ''
    speedup: float = 5.0
    executable: str = ''
    firmware: str = ''
    digest: str = ''


def with_digest(vehicle: Vehicle) -> Vehicle:
    """Return the vehicle with the digest of its files' content."""
    files = [Path(path) for path in (vehicle.executable, vehicle.firmware) if path]
    content = b''.join(hashlib.sha256(path.read_bytes()).digest() for path in files)
    return replace(vehicle, digest=hashlib.sha256(content).hexdigest()[:16] if files else '')


@dataclass(frozen=True)
class Wind:
    """The air of one flight, without its seed.

    Attributes
    ----------
    speed, from_deg, up : float
        Mean wind, m/s and degrees.
    gusts, model, severity : str
    scale : float
        As in `AirSettings`.
    scenario : str
        Path of a scenario file; '' for none.
    scenario_digest : str
        Of that file's content.
    """

    speed: float = 0.0
    from_deg: float = 270.0
    up: float = 0.0
    gusts: str = 'dryden'
    model: str = 'first_order'
    severity: str = 'light'
    scale: float = 1.0
    scenario: str = ''
    scenario_digest: str = ''

    @property
    def name(self) -> str:
        """What it is, in a few words."""
        words = [f'{self.speed:g} m/s from {self.from_deg:g}']
        if self.up:
            words.append(f'{self.up:+g} up')
        words.append(self.gusts if self.gusts != 'dryden' or self.model == 'first_order'
                     else self.model)
        if self.severity != 'light':
            words.append(self.severity)
        if self.scale != 1.0:
            words.append(f'x{self.scale:g}')
        if self.scenario:
            words.append(self.scenario.rpartition('/')[2])
        return ' '.join(words)


@dataclass(frozen=True)
class Manoeuvre:
    """How it is flown.

    Attributes
    ----------
    path : {'hover', 'circle', 'box', 'mission'}
    radius, side, speed : float
        Of a circle, m; of a box, m; over the ground, m/s.
    seconds : float
        Sim time that is measured, s.
    settle : float
        Sim time in the air before, s.
    waypoints : tuple of (float, float, float)
        Of a mission: north, east, up of home, m.
    """

    path: str = 'hover'
    radius: float = 20.0
    side: float = 30.0
    speed: float = 3.0
    seconds: float = 60.0
    settle: float = 20.0
    waypoints: tuple[tuple[float, float, float], ...] = ()


@dataclass(frozen=True)
class Extra:
    """A measure of the user's own: a function in a Python file.

    Attributes
    ----------
    name, path, function : str
    source : str
        The file's content, so that a worker elsewhere has it too.
    """

    name: str
    path: str
    function: str
    source: str


@dataclass(frozen=True)
class Entry:
    """One flight.

    Attributes
    ----------
    index : int
        Place in the plan, from 0; not part of its key.
    variant : str
        Name; not part of its key but by what it sets.
    vehicle, wind, manoeuvre : Vehicle, Wind, Manoeuvre
    seed : int
        Of the air.
    events : tuple of Event
    extras : tuple of Extra
    script, script_path : str
        Text of the script that flies it; '' for none.
    ros : bool
        Whether the wind comes through the ROS nodes.
    sim_limit, wall_limit : float
        Longest flight, s of sim and of wall time.
    """

    index: int
    variant: str
    vehicle: Vehicle
    wind: Wind
    manoeuvre: Manoeuvre
    seed: int
    events: tuple[Event, ...] = ()
    extras: tuple[Extra, ...] = ()
    script: str = ''
    script_path: str = ''
    ros: bool = False
    sim_limit: float = 600.0
    wall_limit: float = 300.0
    key: str = field(init=False, default='', compare=False)

    def __post_init__(self) -> None:
        content: dict[str, Any] = asdict(self)
        for name in ('index', 'key', 'wall_limit', 'script_path'):
            content.pop(name)
        if not self.ros:
            content.pop('ros')  # as it was before there was a choice
        vehicle = content['vehicle']
        vehicle.pop('executable'), vehicle.pop('firmware')  # their content counts
        if not vehicle['digest']:
            vehicle.pop('digest')
        content['wind'].pop('scenario')  # its content counts, not where it lies
        for extra in content['extras']:
            extra.pop('path')
        text = json.dumps([FORMAT, content], sort_keys=True)
        object.__setattr__(self, 'key', hashlib.sha256(text.encode()).hexdigest()[:12])

    @property
    def live(self) -> bool:
        """Whether the vehicle is a process with a clock of its own."""
        return bool(self.script or self.vehicle.sitl or self.ros)

    @property
    def pair(self) -> str:
        """Names the air: flights of the same pair meet the same wind."""
        return f'{self.wind.name} seed {self.seed}'


def vehicle_config(vehicle: Vehicle, seed: int) -> VehicleConfig:
    """Return the configuration of the embedded vehicle.

    Raises
    ------
    ValueError
        If there is no such vehicle.
    """
    return VehicleConfig(
        kind=vehicle.kind, dynamics=vehicle.dynamics, drag=vehicle.drag, airspeed=vehicle.airspeed,
        takeoff_altitude=vehicle.altitude, home=Home.parse(vehicle.home), speedup=0.0,
        flight='hover' if vehicle.kind == 'copter' else 'loiter',
        # The wind as it is given, at once and at every height, as a bridge sets it
        parameters=(('SIM_WIND_TC', 0.1), ('SIM_WIND_T', 1.0), *vehicle.parameters),
        seed=vehicle.seed + seed)
