"""The processes of a live flight: the vehicle's command, its keeper, and numbers of its own."""

from __future__ import annotations

import fcntl
import os
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dryden_wind_ros.campaign.entry import FIRMWARE, Entry, Vehicle, vehicle_config
from dryden_wind_ros.emulator.config import SERIAL_PORTS

FIRST_INSTANCE, INSTANCES = 300, 200
"""Instances of vehicles: far from those that people use."""


def vehicle_command(entry: Entry, number: int, speedup: float, folder: Path) -> list[str]:
    """Return the command of a flight's vehicle; its parameters are written into the folder."""
    vehicle = entry.vehicle
    common = ['-I', str(number), '--home', vehicle.home, '--speedup', f'{speedup:g}']
    parameters = folder / 'campaign.parm'
    parameters.write_text(''.join(f'{name} {value:.9g}\n' for name, value in vehicle.parameters))
    if vehicle.sitl:
        return [*program_of(vehicle), '-w', *common,
                *(['--defaults', str(parameters)] if vehicle.parameters else [])]
    config = vehicle_config(vehicle, entry.seed)
    # The home begins with a minus: as one word, it is no option
    common[2:4] = [f'--home={vehicle.home}']
    return [sys.executable, '-m', 'dryden_wind_ros.emulator.main', *common,
            '--vehicle', config.kind, '--seed', str(config.seed), '--flight', 'none',
            '--defaults', str(parameters), *(['--dynamics'] if config.dynamics else []),
            *(['--drag'] if config.drag else []),
            *([] if config.airspeed else ['--no-airspeed'])]


def program_of(vehicle: Vehicle) -> list[str]:
    """Return the words of another vehicle's own command: its programs are those of the variant."""
    words = [word.replace(FIRMWARE, vehicle.firmware) for word in shlex.split(vehicle.sitl)]
    return [vehicle.executable or words[0], *words[1:]]


@contextmanager
def kept(folder: Path, what: str, command: list[str], seconds: float,
         **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command in a folder under a keeper; its output goes into a file.

    Parameters
    ----------
    folder : Path
        Where it runs.
    what : str
        Its output goes into ``what.txt`` there.
    command : list of str
    seconds : float
        Longest wall time, s.
    **environment
        Further variables.
    """
    with (folder / f'{what}.txt').open('wb') as output:
        process = subprocess.Popen(
            [sys.executable, '-m', 'dryden_wind_ros.campaign.keeper', f'{seconds:.3f}', *command],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path), **environment})
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


@contextmanager
def instance() -> Iterator[int]:
    """Keep an instance number whose ports are free, for this process alone.

    Raises
    ------
    OSError
        If there is none.
    """
    numbers = range(FIRST_INSTANCE, FIRST_INSTANCE + INSTANCES)
    with numbered('instances', numbers, lambda number: all(
            _free(port + 10 * number) for port in SERIAL_PORTS)) as number:
        yield number


@contextmanager
def numbered(what: str, numbers: Iterable[int],
             usable: Callable[[int], bool] = lambda number: True) -> Iterator[int]:
    """Keep one of some numbers for this process alone, by a lock file for each.

    Raises
    ------
    OSError
        If there is none.
    """
    pool = Path(tempfile.gettempdir()) / f'wind_campaign-{what}-{os.getuid()}'
    pool.mkdir(mode=0o700, exist_ok=True)
    for number in numbers:
        lock = os.open(pool / f'{number}.lock', os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if usable(number):
                yield number
                return
        except BlockingIOError:
            pass
        finally:
            os.close(lock)
    raise OSError(f'all {what} are in use')


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(('127.0.0.1', port))
        except OSError:
            return False
    return True
