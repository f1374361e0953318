"""What was found in a vehicle, kept on disk until it has been put back.

SITL keeps parameters in its eeprom.bin. A bridge that is killed leaves its last gust there, and the
next bridge must not take that for the user's own wind. So the values found are written to a small
file before the first write to the vehicle, and the file goes away once they are confirmed back.

A lock beside the file (released by the kernel however its holder ends) keeps two bridges from
driving one vehicle. The lock file also holds the newest winds that were sent. By them a vehicle is
known again, whichever way it is reached: values found are another vehicle's unless this one shows
what the bridge wrote.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import re
import struct
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dryden_wind_ros.sitl.connection import ConnectionTarget
from dryden_wind_ros.sitl.parameter_reader import validate_value

_VERSION = 1
_HOLDER_BYTES = 256
#: So many winds are kept: a SITL that was killed has from its eeprom one that is some ticks old.
_WINDS = 1024
_WIND = struct.Struct('<4f')
_NO_WIND = _WIND.pack(*[math.nan] * 4)
#: What a wind in the lock file consists of.
WIND_NAMES = ('SIM_WIND_SPD', 'SIM_WIND_DIR', 'SIM_WIND_DIR_Z', 'SIM_WIND_TURB')


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
    constants : dict of str to float
        What the bridge wrote and never changed.
    warning : str
        What was wrong with the file, '' if nothing.
    """

    found: dict[str, float] = field(default_factory=dict)
    constants: dict[str, float] = field(default_factory=dict)
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
        self._winds = bytearray(_NO_WIND * _WINDS)
        self._sent = 0

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
            holder = _holder(descriptor)
            os.close(descriptor)
            return holder
        except OSError:
            os.close(descriptor)
            raise
        self._lock = descriptor
        self._take_winds(descriptor)
        name = f'process {os.getpid()} on {self._connection}\n'.encode()
        with contextlib.suppress(OSError):
            # All of it, so that there is room on the disk for what comes later.
            os.pwrite(descriptor, name[:_HOLDER_BYTES].ljust(_HOLDER_BYTES) + self._winds, 0)
        return ''

    def release(self) -> None:
        """Give the lock back. The winds sent stay as long as there is a state file."""
        if self._lock is not None:
            with contextlib.suppress(OSError):
                if self.exists():
                    os.pwrite(self._lock, b' ' * _HOLDER_BYTES, 0)
                else:
                    os.ftruncate(self._lock, 0)
            os.close(self._lock)
            self._lock = None

    def holder(self) -> str:
        """Return who holds the lock, '' if nobody does; creates nothing."""
        try:
            descriptor = os.open(self._lock_path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return ''
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return _holder(descriptor)
        finally:
            self._take_winds(descriptor)
            os.close(descriptor)
        return ''

    def _take_winds(self, descriptor: int) -> None:
        kept = os.pread(descriptor, len(self._winds), _HOLDER_BYTES)
        self._winds[:len(kept)] = kept

    def note_sent(self, values: Mapping[str, float]) -> None:
        """Keep a wind that is being sent; it outlives us, though not the machine."""
        entry = _WIND.pack(*[values.get(name, math.nan) for name in WIND_NAMES])
        place = self._sent % _WINDS * _WIND.size
        self._sent += 1
        self._winds[place:place + _WIND.size] = entry
        if self._lock is not None:
            with contextlib.suppress(OSError):
                os.pwrite(self._lock, entry, _HOLDER_BYTES + place)

    def was_sent(self, name: str, value: float) -> bool:
        """Return whether a wind sent lately had this value (as a 32-bit float)."""
        column = WIND_NAMES.index(name)
        # Newest first: what a vehicle shows is nearly always one of the last few.
        places = ((self._sent - age) % _WINDS * _WIND.size for age in range(1, _WINDS + 1))
        return any(_WIND.unpack_from(self._winds, place)[column] == value for place in places)

    @property
    def winds_known(self) -> bool:
        """Whether any wind sent is known."""
        return self._winds != _NO_WIND * _WINDS

    def load(self) -> Leftover:
        """Read the file. One that cannot be understood is moved aside, not trusted and not lost."""
        try:
            return self.peek()
        except (OSError, ValueError, RecursionError) as error:
            return Leftover(warning=self._move_aside(str(error)))

    def peek(self) -> Leftover:
        """Read the file and leave it where it is.

        Raises
        ------
        OSError, ValueError, RecursionError
            If it cannot be read or understood.
        """
        try:
            text = self.path.read_bytes().decode('utf-8')
        except (FileNotFoundError, NotADirectoryError):
            return Leftover()
        return Leftover(*_contents(json.loads(text)))

    def exists(self) -> bool:
        """Return whether there is such a file, as far as that can be seen."""
        return os.path.exists(self.path)

    def _move_aside(self, why: str) -> str:
        aside = self.path.with_name(f'{self.path.name}.corrupt-{time.time_ns()}')
        try:
            os.replace(self.path, aside)
        except OSError as error:
            return f'{self.path} cannot be used ({why}), nor moved aside ({error})'
        return f'{self.path} cannot be used ({why}); moved aside to {aside.name}'

    def others(self) -> Iterator[StateFile]:
        """Yield the other state files of the directory."""
        try:
            names = sorted(os.listdir(self.path.parent))
        except OSError:
            return
        for path in (self.path.parent / name for name in names if name.endswith('.json')):
            if path != self.path:
                yield StateFile(path.parent, path.name.removesuffix('.json'), '')

    def set_aside(self) -> StateFile:
        """Make room for another vehicle's; return the file under which this one's are kept now."""
        key = self.path.name.removesuffix('.json').removesuffix('.left') + '.left'
        aside = StateFile(self.path.parent, key, self._connection)
        aside._winds[:] = self._winds
        with contextlib.suppress(OSError):
            aside._lock_path.write_bytes(b' ' * _HOLDER_BYTES + bytes(self._winds))
            os.replace(self.path, aside.path)
        self._winds[:] = _NO_WIND * _WINDS
        return aside

    def adopt(self, other: StateFile) -> None:
        """Take over the winds of a file that proved to be this vehicle's."""
        self._winds[:] = other._winds

    def save(self, found: Mapping[str, float],
             constants: Mapping[str, float] | None = None) -> None:
        """Write `found`, all of it or nothing.

        Raises
        ------
        OSError
            If that failed; an older file is then still there.
        """
        content = json.dumps({
            'version': _VERSION, 'connection': self._connection,
            'written': time.strftime('%Y-%m-%dT%H:%M:%S%z'), 'found': dict(found),
            'constants': dict(constants or {})}, indent=2)
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


def _holder(descriptor: int) -> str:
    text = os.pread(descriptor, _HOLDER_BYTES, 0).decode('utf-8', 'replace').strip()
    return text or 'another process'


def _contents(content: object) -> tuple[dict[str, float], dict[str, float]]:
    if not isinstance(content, dict) or content.get('version') != _VERSION:
        raise ValueError(f'not a state file of version {_VERSION}')
    found = _values(content.get('found'))
    if not found:
        raise ValueError("no values under 'found'")
    # Older versions kept no constants.
    return found, _values(content.get('constants', {}))


def _values(values: object) -> dict[str, float]:
    if not isinstance(values, dict):
        raise ValueError(f'{str(values)[:40]} is not a mapping of values')
    for name in values:
        if not re.fullmatch(r'SIM_WIND_[A-Z_]{1,7}', name):
            raise ValueError(f'{name!r} is not a SIM_WIND_ parameter')
    return {name: validate_value(name, value) for name, value in values.items()}
