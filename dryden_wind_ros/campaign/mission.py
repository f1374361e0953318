"""Missions as ground stations save them: QGC WPL files and QGroundControl's plans."""

from __future__ import annotations

import json
import math
from pathlib import Path

from pymavlink import mavwp
from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.emulator.config import METRES_PER_1E7_DEGREES

MAX_BYTES = 10_000_000


def read_mission(path: Path) -> tuple[tuple[float, float, float], ...]:
    """Return the waypoints: north, east, up, m, of the first item (home).

    Raises
    ------
    ValueError
        If it cannot be read, or has no waypoint that can be flown here.
    """
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f'{path} is too large for a mission')
    spots = _of_plan(path) if path.suffix == '.plan' else _of_wpl(path)
    if len(spots) < 2:
        raise ValueError(f'{path} has no waypoint (MAV_CMD_NAV_WAYPOINT) after its home')
    (latitude, longitude, _), *rest = spots
    per_degree = 1e7 * METRES_PER_1E7_DEGREES
    found = tuple(((to_latitude - latitude) * per_degree,
                   (to_longitude - longitude) * per_degree * math.cos(math.radians(latitude)), up)
                  for to_latitude, to_longitude, up in rest)
    for north, east, up in found:
        if not (math.hypot(north, east) <= 1e5 and 1.0 <= up <= 1e4):
            raise ValueError(f'{path}: a waypoint {math.hypot(north, east):.0f} m away and '
                             f'{up:g} m above home; allowed are 100 km, and 1 to 10000 m')
    return found


def _of_wpl(path: Path) -> list[tuple[float, float, float]]:
    loader = mavwp.MAVWPLoader()
    try:
        loader.load(str(path))
    except Exception as error:  # mavwp has errors of its own, and lets others through
        raise ValueError(f'{path} is no QGC WPL file: {error}') from None
    items = [loader.wp(number) for number in range(loader.count())]
    return [(item.x, item.y, item.z) for number, item in enumerate(items)
            if number == 0 or item.command == mavlink.MAV_CMD_NAV_WAYPOINT]


def _of_plan(path: Path) -> list[tuple[float, float, float]]:
    try:
        mission = json.loads(path.read_text())['mission']
        home = mission['plannedHomePosition']
        return [(float(home[0]), float(home[1]), float(home[2])), *(
            (float(item['params'][4]), float(item['params'][5]), float(item['params'][6]))
            for item in mission['items'] if item.get('command') == mavlink.MAV_CMD_NAV_WAYPOINT)]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise ValueError(f'{path} is no plan of QGroundControl: {error!r}') from None
