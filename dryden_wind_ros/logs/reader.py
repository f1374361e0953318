"""Any recorded flight to arrays: the one door to bags, dataflash logs and telemetry logs."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path

from dryden_wind_ros.logs.bag import read_bag
from dryden_wind_ros.logs.dataflash import is_dataflash
from dryden_wind_ros.logs.flight import FlightRecord, RecordError

_BAG_HEADS = (b'\x89MCAP0\r\n', b'SQLite format 3', b'#ROSBAG V')
_BAG_NAMES = ('.mcap', '.db3', '.mcap.zstd', '.db3.zstd')


def read_flights(path: Path, progress: Callable[[float], None] | None = None, *,
                 system: int | None = None, replayed: bool = False) -> list[FlightRecord]:
    """Read the flights in a bag, a dataflash log or a telemetry log.

    What a file is, is told by what is in it, not by its name.

    Parameters
    ----------
    path : Path
        The file, or the folder of a bag.
    progress : callable, optional
        Called with the fraction read, 0 to 1, now and then.
    system : int, optional
        Of a telemetry log with several vehicles: the one to read.
    replayed : bool
        Of a dataflash log that ArduPilot's Replay has added its filters to: read those.

    Returns
    -------
    list of FlightRecord
        One for each vehicle, and for each start of its clock.

    Raises
    ------
    RecordError
        Naming the file and what is wrong with it.
    """
    if not path.exists():
        raise RecordError(f'{path}: there is no such file or folder')
    try:
        if path.is_dir():
            return read_bag(path, progress)
        with open(path, 'rb') as file:
            head = file.read(16)
        if head.startswith(_BAG_HEADS) or path.name.endswith(_BAG_NAMES):
            return read_bag(path, progress)
        return read_log(path, progress, system=system, replayed=replayed)
    except OSError as error:
        raise RecordError(f'{path}: {error.strerror or error}') from error


def read_log(path: Path, progress: Callable[[float], None] | None = None, *,
             system: int | None = None, replayed: bool = False) -> list[FlightRecord]:
    """Read the flights in a dataflash log or a telemetry log; see `read_flights`."""
    try:
        head = _head(path)
    except OSError as error:
        raise RecordError(f'{path}: {error.strerror or error}') from error
    if not head:
        raise RecordError(f'{path}: the file is empty')
    if is_dataflash(head):
        from dryden_wind_ros.logs.dataflash_flights import read_dataflash_flights
        return read_dataflash_flights(path, progress, replayed=replayed)
    if not _may_be_telemetry(path, head):
        raise RecordError(
            f'{path}: neither a bag (MCAP, SQLite), nor a dataflash log (.BIN), nor a telemetry '
            f'log (.tlog), no MAVLink messages in it; it starts with {head[:8]!r}')
    from dryden_wind_ros.logs.tlog_flights import read_tlog_flights
    return read_tlog_flights(path, progress, system=system)


def _head(path: Path) -> bytes:
    """Return the first bytes of a file, of what is in it if it is packed."""
    with open(path, 'rb') as file:
        head = file.read(16)
    if head[:2] != b'\x1f\x8b':
        return head
    try:
        with gzip.open(path, 'rb') as packed:
            return packed.read(16) or head
    except (OSError, EOFError, zlib.error) as error:
        raise RecordError(f'{path}: not a gzip file after all ({error})') from error


def _may_be_telemetry(path: Path, head: bytes) -> bool:
    # A stamp of eight bytes, then the first byte of a MAVLink packet.
    names = ''.join(path.suffixes[-2:])
    return names.endswith(('.tlog', '.tlog.gz')) or (len(head) > 8 and head[8] in (0xFD, 0xFE))
