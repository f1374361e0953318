"""Telemetry logs: the MAVLink messages in a .tlog or .tlog.gz, whole or damaged."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink

_MAGIC_V1 = 0xFE
_MAGIC_V2 = 0xFD
_STAMP = 8           # bytes of big-endian microseconds before each packet
_FOREIGN_AFTER = 4096  # bytes without a packet at the start of a file that is no telemetry log

MESSAGES = ('ATTITUDE', 'EKF_STATUS_REPORT', 'EXTENDED_SYS_STATE', 'GLOBAL_POSITION_INT',
            'HEARTBEAT', 'LOCAL_POSITION_NED', 'PARAM_VALUE', 'STATUSTEXT', 'SYSTEM_TIME',
            'VFR_HUD', 'WIND')
"""Message types that the monitor takes part in."""



class LogFileError(Exception):
    """A log cannot be read; the message names the file and what was wrong with it."""


@dataclass
class TlogReader:
    """Messages of a MAVLink telemetry log (.tlog, or .tlog.gz), one vehicle or several.

    Parameters
    ----------
    path : Path
        The log: for each message an 8-byte big-endian time in microseconds and the packet.
    types : collection of str, optional
        Only messages of these types are decoded. Default: all.
    progress : callable, optional
        Called with the fraction read, 0 to 1, now and then.

    Attributes
    ----------
    messages : int
        Packets read so far.
    bad_bytes : int
        Bytes that belonged to no packet.
    problem : str
        What was wrong with the file's end, if anything ("" if it is whole).

    Raises
    ------
    LogFileError
        While iterating: the file cannot be opened or holds no MAVLink.
    """

    path: Path
    types: Iterable[str] | None = None
    progress: Callable[[float], None] | None = None
    messages: int = field(default=0, init=False)
    bad_bytes: int = field(default=0, init=False)
    problem: str = field(default='', init=False)

    def __iter__(self) -> Iterator[tuple[float, Any]]:
        """Yield (stamp in s, message)."""
        data = self._read()
        wanted = None
        if self.types is not None:
            names = frozenset(self.types)
            wanted = {number for number, kind in mavlink.mavlink_map.items()
                      if kind.msgname in names}
        parser = mavlink.MAVLink(None)
        at, size, tick = 0, len(data), 0
        in_step = False  # the last packet was good, so the next begins where it ends
        while at + _STAMP + 8 <= size:
            length = _packet_length(data, at + _STAMP)
            end = at + _STAMP + length
            if length and end > size and in_step:
                self.problem = self.problem or 'cut off in the middle of a message'
                break
            message = None
            if length and end <= size:
                packet = data[at + _STAMP:end]
                number = (int.from_bytes(packet[7:10], 'little') if packet[0] == _MAGIC_V2
                          else packet[5])
                if in_step and wanted is not None and number not in wanted \
                        and number in mavlink.mavlink_map:
                    self.messages += 1
                    at = end
                    continue
                message = _decode(parser, packet)
            if message is None:
                # In step, a bad packet (or one of an unknown kind) is left out as a whole.
                if in_step and length:
                    at = end
                else:
                    at = self._skip(at)
                in_step = False
                continue
            in_step = True
            self.messages += 1
            if wanted is None or number in wanted:
                yield int.from_bytes(data[at:at + _STAMP], 'big') * 1e-6, message
            at = end
            tick += 1
            if self.progress is not None and not tick % 2000:
                self.progress(at / size)
        if not self.messages:
            raise LogFileError(f'{self.path}: no MAVLink messages in it; not a telemetry log?')
        if 0 < size - at < _STAMP + 8:
            self.problem = self.problem or 'cut off in the middle of a message'
        if self.progress is not None:
            self.progress(1.0)

    def _skip(self, at: int) -> int:
        self.bad_bytes += 1
        if not self.messages and at > _FOREIGN_AFTER:
            raise LogFileError(f'{self.path}: no MAVLink messages in its first {_FOREIGN_AFTER} '
                               'bytes; not a telemetry log?')
        return at + 1

    def _read(self) -> bytes:
        try:
            with open(self.path, 'rb') as file:
                data = file.read()
        except OSError as error:
            raise LogFileError(f'{self.path}: {error.strerror or error}') from error
        if data[:2] != b'\x1f\x8b':
            return data
        whole = zlib.decompressobj(wbits=31)
        try:
            text = whole.decompress(data)
        except zlib.error as error:
            return self._read_broken_gzip(error)
        if not whole.eof:
            self.problem = 'the compressed file is cut off'
        return text

    def _read_broken_gzip(self, error: Exception) -> bytes:
        parts = []
        try:
            with gzip.open(self.path, 'rb') as file:
                while part := file.read(4096):
                    parts.append(part)
        except (OSError, EOFError, zlib.error):
            pass
        if not parts:
            raise LogFileError(f'{self.path}: not a gzip file after all ({error})') from error
        self.problem = f'the compressed file is damaged ({error})'
        return b''.join(parts)


def _decode(parser: Any, packet: bytes) -> Any:
    """Return the message of a packet, None if its checksum or its kind is wrong."""
    try:
        message = parser.decode(bytearray(packet))
    except (mavlink.MAVError, struct.error, UnicodeDecodeError):
        return None
    # The checksum of an unknown kind cannot be checked: it could be anything.
    unknown = getattr(mavlink, 'MAVLink_unknown', ())  # older pymavlink raises instead
    return None if isinstance(message, unknown) else message


def _packet_length(data: bytes, at: int) -> int:
    """Return the length of the MAVLink packet that starts here, 0 if none does."""
    if data[at] == _MAGIC_V2:
        return data[at + 1] + 12 + (13 if data[at + 2] & 1 else 0)
    if data[at] == _MAGIC_V1:
        return data[at + 1] + 8
    return 0
