"""What was found in a vehicle, kept on disk until it has been put back.

SITL keeps parameters in its eeprom.bin. A bridge that is killed leaves its last gust there, and the
next bridge must not take that for the user's own wind. So the values found are written to a small
file before the first write to the vehicle, and the file goes away once they are confirmed back.

A lock beside the file (released by the kernel however its holder ends) keeps two bridges from
driving one vehicle.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dryden_wind_ros.sitl.connection import ConnectionTarget

_VERSION = 1


def state_directory(given: str = '') -> Path:
    """Return where state files live: `given`, or the user's state directory by the XDG rules."""
    if given:
        return Path(given).expanduser()
    base = os.environ.get('XDG_STATE_HOME', '')
    root = Path(base) if base and os.path.isabs(base) else Path.home() / '.local' / 'state'
    return root / 'dryden_wind_ros'


def vehicle_key(target: ConnectionTarget, system_id: int) -> str:
    """Return a file name stem that means the same vehicle whichever way it is reached.

    SITL's ports tell its instance: 5762, 5763 and MAVProxy's 14550 are one vehicle, 5772 is another
    one even if both have system id 1, as they have by default. Other ports stand for themselves.
    """
    host = target.host if target.host not in ('', 'localhost', '0.0.0.0') else '127.0.0.1'
    if target.kind in ('serial', 'uds'):
        where = target.device
    elif target.sitl_instance is not None:
        where = f'{host}-sitl{target.sitl_instance}'
    else:
        where = f'{host}-{target.port}'
    return re.sub(r'[^\w.-]+', '_', where).strip('_') + f'-sysid{system_id}'


@dataclass(frozen=True)
class Leftover:
    """What a state file said when it was looked at.

    Attributes
    ----------
    found : dict of str to float
        The values to put back; empty if there was no usable file.
    warning : str
        What was wrong with the file, '' if nothing.
    """

    found: dict[str, float] = field(default_factory=dict)
    warning: str = ''


class StateFile:
    """The state file of one vehicle, and its lock.

    Parameters
    ----------
    directory : Path
        Where it lives; made when needed.
    key : str
        From `vehicle_key`.
    connection : str
        Written into the file, for the reader.
    """

    def __init__(self, directory: Path, key: str, connection: str) -> None:
        self.path = directory / f'{key}.json'
        self._lock_path = directory / f'{key}.lock'
        self._connection = connection
        self._lock: int | None = None

    @property
    def locked(self) -> bool:
        """Whether we hold the lock."""
        return self._lock is not None

    def acquire(self) -> str:
        """Try to take the lock; return '' if it is ours, else who holds it.

        Raises
        ------
        OSError
            If the directory cannot be used.
        """
        if self._lock is not None:
            return ''
        self._lock_path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 200).decode('utf-8', 'replace').strip()
            os.close(descriptor)
            return holder or 'another process'
        except OSError:
            os.close(descriptor)
            raise
        self._lock = descriptor
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f'process {os.getpid()} on {self._connection}\n'.encode(), 0)
        return ''

    def release(self) -> None:
        """Give the lock back."""
        if self._lock is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._lock, 0)
            os.close(self._lock)
            self._lock = None

    def load(self) -> Leftover:
        """Read the file. One that cannot be understood is moved aside, not trusted and not lost."""
        try:
            text = self.path.read_bytes().decode('utf-8')
        except FileNotFoundError:
            return Leftover()
        except (OSError, UnicodeDecodeError) as error:
            return Leftover(warning=self._move_aside(str(error)))
        try:
            return Leftover(_found(json.loads(text)))
        except (ValueError, RecursionError) as error:
            return Leftover(warning=self._move_aside(str(error)))

    def _move_aside(self, why: str) -> str:
        aside = self.path.with_name(f'{self.path.name}.corrupt-{time.time_ns()}')
        try:
            os.replace(self.path, aside)
        except OSError as error:
            return f'{self.path} cannot be used ({why}), nor moved aside ({error})'
        return f'{self.path} cannot be used ({why}); moved aside to {aside.name}'

    def save(self, found: Mapping[str, float]) -> None:
        """Write `found`, all of it or nothing.

        Raises
        ------
        OSError
            If that failed; an older file is then still there.
        """
        content = json.dumps({
            'version': _VERSION, 'connection': self._connection,
            'written': time.strftime('%Y-%m-%dT%H:%M:%S%z'), 'found': dict(found)}, indent=2)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_name(f'{self.path.name}.new-{os.getpid()}')
        try:
            with open(new, 'w', encoding='utf-8') as file:
                file.write(content + '\n')
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, self.path)
        except OSError:
            with contextlib.suppress(OSError):
                new.unlink()
            raise

    def remove(self) -> None:
        """Remove the file; the values are back."""
        self.path.unlink(missing_ok=True)


def _found(content: object) -> dict[str, float]:
    if not isinstance(content, dict) or content.get('version') != _VERSION:
        raise ValueError(f'not a state file of version {_VERSION}')
    found = content.get('found')
    if not isinstance(found, dict) or not found:
        raise ValueError("no values under 'found'")
    for name, value in found.items():
        if not re.fullmatch(r'SIM_WIND_[A-Z_]{1,7}', name):
            raise ValueError(f'{name!r} is not a SIM_WIND_ parameter')
        if isinstance(value, bool) or not isinstance(value, (int, float)) \
                or not math.isfinite(value):
            raise ValueError(f'{name} is {value!r}, not a finite number')
    return {name: float(value) for name, value in found.items()}
