"""How to fly the same air again: the settings of a flight as commands."""

from __future__ import annotations

import shlex
from pathlib import Path

from dryden_wind_ros.report.flight import FlightRecord, Settings

PARAMETERS = (
    ('mean_speed', 'mean_wind.speed', 'mean_wind_speed'),
    ('mean_from_deg', 'mean_wind.from_direction', 'mean_wind_from'),
    ('mean_up', 'mean_wind.up', 'mean_wind_up'),
    ('gusts', 'gusts', 'gusts'), ('method', 'method', 'method'), ('scale', 'scale', 'scale'),
    ('seed', 'seed', 'seed'), ('profile', 'profile', 'profile'),
    ('ground_height', 'ground_height', 'ground_height'),
    ('scenario', 'scenario', 'scenario'))
"""Field of `Settings`, parameter of the wind node, argument of sitl.launch.py."""


def fly_again(flight: FlightRecord) -> list[str]:
    """Return the commands that fly the same air again, with the changes made in flight."""
    if not flight.settings:
        return []
    namespace = flight.namespace
    first = flight.settings[int(flight.air.setting[0])]
    words = ['ros2 launch dryden_wind_ros sitl.launch.py']
    if namespace:
        words.append(shlex.quote(f'namespace:={namespace}'))
    words += [shlex.quote(f'{argument}:={_value(first, name)}')
              for name, _, argument in PARAMETERS if getattr(first, name) != '']
    commands = [' '.join(words)]
    node = f'/{namespace}/dryden_wind' if namespace else '/dryden_wind'
    now = first
    for at, run_began, settings in changes(flight):
        commands += [f'ros2 param set {shlex.quote(node)} {parameter} '
                     f'{shlex.quote(_value(settings, name))}  '
                     f'# at sim time {at:.2f} s' for name, parameter, _ in PARAMETERS
                     if getattr(settings, name) != getattr(now, name)]
        if run_began and (settings.seed, settings.method) == (now.seed, now.method):
            service = f'/{namespace}/wind/restart' if namespace else '/wind/restart'
            commands.append(f'ros2 service call {service} std_srvs/srv/Trigger  '
                            f'# at sim time {at:.2f} s')
        now = settings
    return commands


def _value(settings: Settings, name: str) -> str:
    """Return a setting as a command has it; of a file, its name: the page is passed on."""
    value = str(getattr(settings, name))
    return Path(value).name if name == 'scenario' else value


def changes(flight: FlightRecord) -> list[tuple[float, bool, Settings]]:
    """Return (time, whether the air was restarted in flight, settings) of each change in flight."""
    air = flight.air
    found = []
    for row in range(1, len(air)):
        other = air.setting[row] != air.setting[row - 1]
        restarted = air.run[row] != air.run[row - 1] and air.tick[row] > air.tick[row - 1]
        if other or restarted:
            found.append((float(air.t[row]), bool(restarted),
                          flight.settings[int(air.setting[row])]))
    return found
