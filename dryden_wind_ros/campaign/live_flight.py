"""One flight of a vehicle in a process of its own, in its wind, flown by a pilot or a script.

The vehicle is the embedded one, or any command that takes SITL's ``-I``. It has a folder, ports
and parameters of its own: its instance comes from a pool of lock files. The seed's wind is written
at every tick of the vehicle's clock by a `Recorder` here, or by the ROS nodes (`ros: true`). A
manoeuvre is flown by a `Pilot`; a script of the user's is given a connection string, and the flight
is over when it ends. Whatever is started runs under a `keeper`: nothing of it outlives the flight.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np

from dryden_wind_ros.campaign import keeper
from dryden_wind_ros.campaign.embedded_flight import WALL_LIMIT, Samples
from dryden_wind_ros.campaign.entry import Entry
from dryden_wind_ros.campaign.pace import SLOWEST, pace_of
from dryden_wind_ros.campaign.pilot import Pilot
from dryden_wind_ros.campaign.processes import instance, kept, vehicle_command
from dryden_wind_ros.campaign.recorder import Recorder
from dryden_wind_ros.campaign.ros_wind import blows, nodes, with_wind
from dryden_wind_ros.campaign.telemetry_log import NAME
from dryden_wind_ros.emulator.config import SERIAL_PORTS
from dryden_wind_ros.logs.dataflash import read_dataflash
from dryden_wind_ros.logs.flight import RecordError

MAX_OUTPUT = 100_000
"""Bytes of the output of script and vehicle that are kept: the last."""

MAX_LOG = 200_000_000
"""A dataflash log larger than this is not kept, bytes."""

VEHICLE_WITHIN = 120.0
"""The vehicle must be heard within this wall time, s."""

NODES_WITHIN = 120.0
"""The ROS nodes must let the wind blow within this wall time, s."""

LATE_SHARE = 0.05
"""So large a part of the measured ticks may come late, 0 to 1: one hiccup of a busy machine in a
short flight is less, and a link that cannot keep up is more."""

_ERR = {5: 'failsafe: radio', 6: 'failsafe: battery', 8: 'failsafe: GCS',
        16: 'failsafe: EKF check', 17: 'failsafe: EKF', 12: 'crash', 24: 'EKF lane change'}
"""Subsystems of ArduPilot's ERR records (AP_Logger's LogErrorSubsystem) that fail a flight."""

Files = dict[str, bytes]


def fly_live(entry: Entry) -> tuple[Samples, Files]:
    """Fly an entry; return what was recorded, and the files of it.

    It begins at the speedup at which the flights before it went well, and is flown again at half,
    down to real time, while ticks were missed or came late.
    """
    vehicle = entry.vehicle
    pace = pace_of(f'{vehicle.sitl or vehicle.kind} {vehicle.digest} {entry.ros}', vehicle.speedup)
    speedup = pace.speedup
    while True:
        samples, files = _fly(entry, speedup)
        samples = replace(samples, speedup=speedup)
        ticks = int(np.count_nonzero(samples.columns['measured']))
        well = not samples.ticks_missed and samples.ticks_late <= LATE_SHARE * ticks
        if samples.failure:
            return samples, files
        pace.went(speedup, well)
        if well:
            return samples, files
        if speedup <= SLOWEST:
            return replace(samples, failure=f'{samples.ticks_missed} ticks missed, '
                                            f'{samples.ticks_late} late'), files
        speedup = max(speedup / 2.0, SLOWEST)


def _fly(entry: Entry, speedup: float) -> tuple[Samples, Files]:
    began = time.monotonic()
    with instance() as number, tempfile.TemporaryDirectory(prefix='wind_campaign-') as name:
        folder = Path(name)
        ports = [port + 10 * number for port in SERIAL_PORTS]
        recorder = Recorder(entry, blows=not entry.ros)
        failure, bag = '', folder
        with ExitStack() as running:
            vehicle = running.enter_context(kept(
                folder, 'vehicle', vehicle_command(entry, number, speedup, folder),
                entry.wall_limit))
            if entry.ros:
                bag = running.enter_context(nodes(entry, ports[0], folder))
            running.enter_context(recorder.session(ports[2 if entry.ros else 0], folder))

            def over() -> str:
                return _over(entry, recorder, vehicle, began)

            if not _comes(recorder.heard.is_set, over, VEHICLE_WITHIN):
                failure = over() or f'the vehicle was not heard within {VEHICLE_WITHIN:g} s'
            elif entry.ros and not _comes(lambda: blows(bag), over, NODES_WITHIN):
                failure = over() or f'the nodes gave no wind within {NODES_WITHIN:g} s'
            elif entry.script:
                failure = _by_script(entry, ports[1], folder, began, over)
            else:
                failure = _by_pilot(entry, ports[1], recorder, over)
        samples = recorder.samples(failure, folder)
        files = {NAME: recorder.log.content}
        if entry.ros:
            samples, found = with_wind(samples, bag, recorder.flown)
            files.update(found)
        samples = _with_dataflash(samples, folder, files)
        for path in folder.glob('*.txt'):
            with contextlib.suppress(OSError), path.open('rb') as output:
                output.seek(max(os.fstat(output.fileno()).st_size - MAX_OUTPUT, 0))
                files[path.name] = output.read()
    return samples, files


def _comes(there: Callable[[], bool], over: Callable[[], str], within: float) -> bool:
    """Wait for something; return whether it came before the flight was over."""
    deadline = time.monotonic() + within
    while not there():
        if over() or time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _over(entry: Entry, recorder: Recorder, vehicle: subprocess.Popen[bytes],
          began: float) -> str:
    """Return what a flight is over by, whatever flies it; '' if it goes on."""
    if time.monotonic() - began > entry.wall_limit:
        return f'{WALL_LIMIT}, {entry.wall_limit:g} s)'
    if vehicle.poll() is not None:
        # Both have the same limit: whoever meets it first, it is the flight's.
        if vehicle.returncode == keeper.TIME_UP:
            return f'{WALL_LIMIT}, {entry.wall_limit:g} s)'
        return f'the vehicle ended with {vehicle.returncode}'
    if recorder.trouble:
        return f'{type(recorder.trouble[0]).__name__}: {recorder.trouble[0]}'
    if recorder.time > entry.sim_limit:
        return 'time limit (sim)'
    return ''


def _by_script(entry: Entry, port: int, folder: Path, began: float,
               over: Callable[[], str]) -> str:
    """Let the script fly; return why the flight failed, or ''."""
    # In a folder of its own: whatever it is called, no output is written over it
    path = folder / 'script' / Path(entry.script_path).name
    path.parent.mkdir()
    path.write_text(entry.script, encoding='utf-8')
    command = [sys.executable, str(path), f'tcp:127.0.0.1:{port}']
    left = max(began + entry.wall_limit - time.monotonic(), 0.1)
    with kept(folder, 'script', command, left) as script:
        while script.poll() is None:
            failure = over()
            if failure:
                return failure
            time.sleep(0.02)
    if script.returncode == keeper.TIME_UP:
        return f'{WALL_LIMIT}, {entry.wall_limit:g} s)'
    return '' if script.returncode == 0 else f'the script ended with {script.returncode}'


def _by_pilot(entry: Entry, port: int, recorder: Recorder, over: Callable[[], str]) -> str:
    try:
        pilot = Pilot(f'tcp:127.0.0.1:{port}', entry, recorder, over)
    except OSError as error:
        return over() or f'no link to fly the vehicle by: {error}'
    return pilot.fly()


def _with_dataflash(samples: Samples, folder: Path, files: Files) -> Samples:
    """Keep the newest dataflash log that the vehicle wrote, and judge the flight by it too."""
    logs = sorted((path for path in folder.rglob('*.BIN') if path.is_file()),
                  key=lambda path: path.stat().st_mtime)
    if not logs:
        return samples
    if logs[-1].stat().st_size <= MAX_LOG:
        files['flight.BIN'] = logs[-1].read_bytes()
    failure = samples.failure or failure_logged(logs[-1])
    return replace(samples, failure=failure)


def failure_logged(path: Path) -> str:
    """Return what a dataflash log says a flight failed by (ERR records), '' if by nothing."""
    try:
        log = read_dataflash(path, {'ERR': ('Subsys', 'ECode')})
    except (RecordError, OSError):
        return ''
    table = log.tables.get('ERR')
    if table is None:
        return ''
    for subsystem, code in zip(np.asarray(table.columns['Subsys']).astype(int).tolist(),
                               np.asarray(table.columns['ECode']).astype(int).tolist(),
                               strict=True):
        if code and subsystem in _ERR:
            return f'{_ERR[subsystem]} (ERR {subsystem}, {code})'
    return ''
