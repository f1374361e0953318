"""Any recorded flight to arrays: the one door to bags, dataflash logs and telemetry logs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dryden_wind_ros.logs.bag import read_bag
from dryden_wind_ros.logs.flight import FlightRecord, RecordError
from dryden_wind_ros.logs.vehicle_log import read_log

_LOG_HEADS = (b'\xa3\x95', b'FMT,')
_BAG_HEADS = (b'\x89MCAP0\r\n', b'SQLite format 3', b'#ROSBAG V')


def read_flights(path: Path, progress: Callable[[float], None] | None = None) -> list[FlightRecord]:
    """Read the flights in a bag (one for each namespace), or the flight in a log.

    What a file is, is told by what is in it, not by its name.

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
        if head.startswith(_BAG_HEADS) or path.suffix in ('.mcap', '.db3') or not head:
            return read_bag(path, progress)
        if not head.startswith(_LOG_HEADS) and not _may_be_telemetry(path, head):
            raise RecordError(
                f'{path}: neither a bag (MCAP, SQLite), nor a dataflash log (.BIN), nor a '
                f'telemetry log (.tlog); it starts with {head[:8]!r}')
        return [read_log(path, progress)]
    except OSError as error:
        raise RecordError(f'{path}: {error.strerror or error}') from error


def _may_be_telemetry(path: Path, head: bytes) -> bool:
    # A stamp of eight bytes, then the first byte of a MAVLink packet; or that in gzip.
    names = ''.join(path.suffixes[-2:])
    return names.endswith(('.tlog', '.tlog.gz')) or head[:2] == b'\x1f\x8b' or (
        len(head) > 8 and head[8] in (0xFD, 0xFE))
