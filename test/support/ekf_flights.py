"""The recorded flights under test/data/ekf, and what can be done to their messages."""

from __future__ import annotations

import copy
import csv
import functools
import gzip
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.logs.tlog import TlogReader

DATA = Path(__file__).resolve().parent.parent / 'data' / 'ekf'

MEAN_WIND_FROM = {'plane_tas': 250.0, 'plane_no_tas': 300.0, 'copter_drag': 225.0,
                  'copter_nodrag': 45.0, 'quadplane': 290.0, 'plane_crosswind_takeoff': 180.0}
"""The flights, and where their mean wind of 8 m/s comes from (README.md there)."""

MEAN_WIND_SPEED = 8.0

STEPS = 'plane_wind_steps'
"""The flight whose wind steps."""

WIND_STEPS = ((94.8, 8.0, 250.0), (174.8, 3.0, 250.0), (224.8, 7.0, 120.0), (294.8, 7.0, 200.0))
"""When (s since boot) its wind became how strong (m/s) and from where (degrees); calm before."""

Messages = Sequence[tuple[float, Any]]


def tlog_path(name: str) -> Path:
    return DATA / f'{name}.tlog.gz'


@functools.cache
def messages(name: str) -> Messages:
    """Return (stamp, message) of a flight, stamps in s since boot. Not to be changed in place."""
    return tuple((stamp - 1767225600.0, message) for stamp, message in TlogReader(tlog_path(name)))


@functools.cache
def truth_table(name: str) -> list[dict[str, str]]:
    with gzip.open(DATA / f'{name}.truth.csv.gz', 'rt', newline='') as file:
        return list(csv.DictReader(file))


def truth(name: str) -> list[tuple[float, str]]:
    """Return (time, phase) of each row of the onboard log."""
    return [(float(row['t_boot_s']), row['phase']) for row in truth_table(name)]


def mean_wind(name: str) -> tuple[float, float]:
    """Return the mean wind flown, m/s towards north and east."""
    angle = math.radians(MEAN_WIND_FROM[name])
    return -MEAN_WIND_SPEED * math.cos(angle), -MEAN_WIND_SPEED * math.sin(angle)


def without(flight: Messages, *types: str) -> Messages:
    return [one for one in flight if one[1].get_type() not in types]


def drop(flight: Messages, share: float, seed: int) -> Messages:
    """Lose a share of all messages at random."""
    draw = random.Random(seed)
    return [one for one in flight if draw.random() >= share]


def jitter(flight: Messages, most: float, seed: int) -> Messages:
    """Let each message come up to ``most`` s late, so that they overtake each other."""
    draw = random.Random(seed)
    late = sorted((t + draw.uniform(0.0, most), at) for at, (t, _) in enumerate(flight))
    return [flight[at] for _, at in late]


def thin(flight: Messages, rate: float, *types: str) -> Messages:
    """Keep messages of these types at ``rate`` Hz at most."""
    last: dict[str, float] = {}
    kept = []
    for t, message in flight:
        kind = message.get_type()
        if kind in types:
            if t - last.get(kind, -math.inf) < 1.0 / rate - 1e-3:
                continue
            last[kind] = t
        kept.append((t, message))
    return kept


def edit(flight: Messages, kind: str, change: Callable[[float, Any], None]) -> Messages:
    """Return the flight with copies of the messages of one type changed by ``change(t, copy)``."""
    edited = []
    for t, message in flight:
        if message.get_type() == kind:
            message = copy.copy(message)
            change(t, message)
        edited.append((t, message))
    return edited


def without_gps(flight: Messages, *outages: tuple[float, float]) -> Messages:
    """Freeze what EKF_STATUS_REPORT shows of GPS samples between the times of each outage."""
    held: dict[tuple[float, float], tuple[float, float]] = {}

    def change(t: float, message: Any) -> None:
        for outage in outages:
            if outage[0] <= t < outage[1]:
                frozen = held.setdefault(
                    outage, (message.velocity_variance, message.pos_horiz_variance))
                message.velocity_variance, message.pos_horiz_variance = frozen

    return edit(flight, 'EKF_STATUS_REPORT', change)


def message(kind: str, system: int = 1, component: int = 1, **fields: Any) -> Any:
    """Make one decoded message; fields that are not given are zero."""
    maker = getattr(mavlink, f'MAVLink_{kind.lower()}_message')
    values = {name: '' if name in ('text', 'param_id') else 0
              for name in maker.fieldnames if name != 'mavlink_version'}
    if 'mavlink_version' in maker.fieldnames:
        values['mavlink_version'] = 3
    values.update(fields)
    made = maker(**{name: value.encode() if isinstance(value, str) else value
                    for name, value in values.items()})
    made._header.srcSystem, made._header.srcComponent = system, component
    return made
