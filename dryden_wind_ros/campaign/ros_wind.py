"""The wind of a live flight through the ROS nodes: `ros: true` in the plan.

``dryden_wind``, ``mavlink_bridge`` and ``wind_record`` run as a user runs them, in processes of
their own under keepers, in a ROS domain that no other flight has. What blew is read from the bag.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dryden_wind_ros.campaign.embedded_flight import NAN, Samples
from dryden_wind_ros.campaign.entry import Entry
from dryden_wind_ros.campaign.processes import kept, numbered
from dryden_wind_ros.campaign.recorder import LATE
from dryden_wind_ros.gusts.tick_grid import TICK_S
from dryden_wind_ros.logs.flight import Air, RecordError
from dryden_wind_ros.logs.reader import read_flights

DOMAINS = range(20, 100)
"""ROS domains of flights: above those that people use, with ports below Linux's own."""

BAG = 'wind'
BEGUN = 20_000
"""A bag of this size holds wind: it blows, and is recorded, bytes."""

_ROUNDED = 0.0075
"""The bridge rounds to 0.001 m/s and 0.01 degrees, and SITL to single precision."""

ON_DISK = 1.5
"""What wind_record heard is on disk after this wall time, s."""


def missing() -> str:
    """Return what is missing for flights through the ROS nodes; '' if nothing is."""
    left = [name for name in ('rclpy', 'dryden_wind_interfaces', 'rosbags')
            if importlib.util.find_spec(name) is None]
    return f'needs {" and ".join(left)}, which cannot be imported here' if left else ''


@contextmanager
def nodes(entry: Entry, port: int, folder: Path) -> Iterator[Path]:
    """Run the nodes for the vehicle at a port; return the folder of the bag."""
    wind = entry.wind
    bag = folder / BAG
    parameters: dict[str, dict[str, object]] = {
        'dryden_wind': {
            'mean_wind.speed': wind.speed, 'mean_wind.from_direction': wind.from_deg,
            'mean_wind.up': wind.up, 'gusts': wind.gusts, 'model': wind.model,
            'severity': f'"{wind.severity}"', 'scale': wind.scale, 'seed': entry.seed,
            **({'scenario': wind.scenario} if wind.scenario else {})},
        'mavlink_bridge': {
            'connection': f'tcp:127.0.0.1:{port}', 'publish_clock': 'true',
            'state_dir': folder / 'state'},
        'wind_record': {'bag': bag}}
    with numbered('domains', DOMAINS) as domain, ExitStack() as stack:
        # The recorder first: it is to hear all
        for name in reversed(parameters):
            command = [sys.executable, '-m', f'dryden_wind_ros.nodes.{name}', '--ros-args']
            for key, value in parameters[name].items():
                command += ['-p', f'{key}:={value}']
            stack.enter_context(kept(
                folder, name, command, entry.wall_limit, ROS_DOMAIN_ID=str(domain),
                # Shared memory would be left behind by nodes that are killed
                FASTDDS_BUILTIN_TRANSPORTS='UDPv4'))
        try:
            yield bag
        finally:
            time.sleep(ON_DISK)


def blows(bag: Path) -> bool:
    """Return whether the wind blows, and is recorded."""
    return any(file.stat().st_size > BEGUN for file in bag.glob('*.mcap'))


def with_wind(samples: Samples, bag: Path,
              flown: Air | None) -> tuple[Samples, dict[str, bytes]]:
    """Return samples with the wind that a bag holds, and the files of the bag.

    A tick is missed if the wind node missed it, or if the bag holds none for a sample. It is late
    if the vehicle still flies an older wind `LATE` after it.

    Parameters
    ----------
    samples : Samples
    bag : Path
    flown : Air or None
        What the vehicle was given, as it said itself.
    """
    files: dict[str, bytes] = {}
    with contextlib.suppress(OSError):
        files = {f'{BAG}.mcap': next(bag.glob('*.mcap')).read_bytes()} if bag.is_dir() else {}
    try:
        flight = read_flights(bag)[-1]
    except (RecordError, IndexError) as error:
        return _failed(samples, f'the nodes left no wind: {error}'), files
    air, columns = flight.air, samples.columns
    if not len(air):
        return _failed(samples, 'the nodes gave no wind'), files
    ticks = np.rint(columns['t'] / 0.05).astype(np.int64)
    at = np.clip(np.searchsorted(air.tick, ticks), 0, len(air) - 1)
    there = air.tick[at] == ticks

    def of(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(there, values[at], NAN)

    blown = air.mean_enu + air.gust_enu
    for axis, name in enumerate(('wind_east', 'wind_north', 'wind_up')):
        columns[name] = of(blown[axis])
    for row, name in enumerate(('sim_wind_spd', 'sim_wind_dir', 'sim_wind_dir_z')):
        columns[name] = of(air.sim_wind[row])
    columns['airspeed'] = of(air.airspeed)
    measured = columns['measured'] > 0.0
    lacking = int(np.count_nonzero(measured & ~there))
    first, last = ((ticks[measured][0], ticks[measured][-1]) if measured.any() else (0, -1))
    during = (air.tick >= first) & (air.tick <= last)
    counted = air.missed[during]
    missed = int(counted[-1] - counted[0]) if len(counted) else 0
    return Samples(columns, samples.failure, samples.sim_seconds,
                   max(missed, lacking, samples.ticks_missed),
                   late_ticks(air, flown, ticks[measured])), files


def late_ticks(made: Air, flown: Air | None, ticks: NDArray[np.int64]) -> int:
    """Return for how many ticks the vehicle flew an older wind too long.

    Parameters
    ----------
    made, flown : Air
        What the wind node made, and what the vehicle was given.
    ticks : ndarray of int, shape (N,)
        Of these.
    """
    winds = dict(zip(made.tick.tolist(), made.sim_wind.T.tolist(), strict=True))
    given = {} if flown is None else dict(
        zip(flown.tick.tolist(), flown.sim_wind.T.tolist(), strict=True))
    allowed, late = round(LATE / TICK_S), 0
    for tick in ticks.tolist():
        wind = given.get(tick + allowed, given.get(tick))  # the last ones have no later row
        late += wind is None or not any(
            np.allclose(winds.get(newer, [NAN]), wind, rtol=0.0, atol=_ROUNDED)
            for newer in range(tick + allowed, tick - 1, -1))
    return late


def _failed(samples: Samples, failure: str) -> Samples:
    return Samples(samples.columns, samples.failure or failure, samples.sim_seconds,
                   samples.ticks_missed, samples.ticks_late)
