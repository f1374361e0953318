"""Telemetry logs (.tlog, .tlog.gz): the MAVLink messages in them, in one pass, whole or damaged.

A telemetry log is a row of packets, each with eight bytes of time before it. Where packets begin is
found with NumPy for megabytes at a time; where that chain breaks, reading goes on at the next place
where one packet follows another. Checksums and fields are computed for all packets of a kind at
once: pymavlink's description of the messages says what is in them.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from bisect import bisect_left
from collections import Counter, namedtuple
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.ekf.state import ARDUPILOT, NO_VEHICLE
from dryden_wind_ros.logs.flight import IntArray, RecordError

MESSAGES = ('ATTITUDE', 'EKF_STATUS_REPORT', 'EXTENDED_SYS_STATE', 'GLOBAL_POSITION_INT',
            'HEARTBEAT', 'LOCAL_POSITION_NED', 'PARAM_VALUE', 'STATUSTEXT', 'SYSTEM_TIME',
            'VFR_HUD', 'WIND')
"""Message types that the monitor of EKF3's wind takes part in."""

Progress = Callable[[float], None]
Source = tuple[int, int]
"""System and component that a message is from."""

_V1, _V2 = 0xFE, 0xFD
_STAMP = 8             # bytes of big-endian microseconds before each packet
_WINDOW = 4 << 20
_AT_ONCE = 8192        # packets that are decoded at once
_FOREIGN_AFTER = 4096  # bytes without a packet at the start of a file that is no telemetry log

_TYPES = {'b': 'i1', 'B': 'u1', 'h': '<i2', 'H': '<u2', 'i': '<i4', 'I': '<u4', 'q': '<i8',
          'Q': '<u8', 'f': '<f4', 'd': '<f8'}


# -- where the packets are -------------------------------------------------------------------------


@dataclass(frozen=True)
class Packets:
    """Where the packets of a log are; entry i of every array belongs to the same packet.

    Attributes
    ----------
    begin, end : ndarray of int
        Bytes of the packet, without the stamp before it.
    number : ndarray of int
        Message id.
    system, component : ndarray of int
        Who sent it.
    lost : int
        Bytes that belong to no packet.
    cut : bool
        The file ends in the middle of one.
    """

    begin: IntArray
    end: IntArray
    number: IntArray
    system: IntArray
    component: IntArray
    lost: int
    cut: bool


def find_packets(data: npt.NDArray[np.uint8], progress: Progress | None = None) -> Packets:
    """Find all packets of a log."""
    size = len(data)
    found: list[IntArray] = []
    at = lost = 0
    cut = False
    while at + _STAMP < size and not cut:
        stop = min(at + _WINDOW, size)
        begins = at + _STAMP + np.flatnonzero(data[at + _STAMP:stop] >= _V2)
        begins = begins[data[begins] != 0xFF]
        ends = begins + _lengths(data, begins)
        chain, after, gap, cut = _follow(data, begins, ends, at, stop)
        found.append(chain)
        lost += gap
        at = max(after, at + 1)
        if progress is not None:
            progress(at / size)
    begin = np.concatenate(found) if found else np.empty(0, dtype=np.int64)
    if not cut and 0 < size - at < _STAMP + 1 and len(begin):
        cut = True
    first = data[begin] == _V1 if len(begin) else np.empty(0, dtype=bool)

    def byte(of_v1: int, of_v2: int) -> IntArray:
        return data[begin + np.where(first, of_v1, of_v2)].astype(np.int64)

    number = np.where(first, byte(5, 7), byte(7, 7) | byte(8, 8) << 8 | byte(9, 9) << 16) \
        if len(begin) else np.empty(0, dtype=np.int64)
    return Packets(begin, begin + _lengths(data, begin), number, byte(3, 5), byte(4, 6), lost, cut)


def _lengths(data: npt.NDArray[np.uint8], begins: IntArray) -> IntArray:
    last = len(data) - 1
    payload = data[np.minimum(begins + 1, last)].astype(np.int64)
    is_signed = data[np.minimum(begins + 2, last)] & 1
    return np.where(data[begins] == _V1, payload + 8, payload + 12 + 13 * is_signed)


def _follow(data: npt.NDArray[np.uint8], begins: IntArray, ends: IntArray, at: int,
            stop: int) -> tuple[IntArray, int, int, bool]:
    """Follow the packets from one to the next: their places, where to go on, bytes lost, cut."""
    size = len(data)
    follows = ends + _STAMP
    inside = np.minimum(follows, size - 1)
    followed = (ends == size) | ((follows < size) & (data[inside] >= _V2) & (data[inside] != 0xFF))
    follower = np.searchsorted(begins, follows)
    follower[follower == len(begins)] = -1
    if len(begins):
        follower[begins[follower] != follows] = -1
    likely = np.flatnonzero(followed)
    places = begins[likely].tolist()
    after = follower.tolist()
    chain: list[int] = []
    add = chain.append
    lost = 0

    def found_so_far() -> IntArray:
        return begins[np.array(chain, dtype=np.int64)]

    while at + _STAMP < stop:
        found = bisect_left(places, at + _STAMP)
        one = int(likely[found]) if found < len(places) else -1
        here = int(np.searchsorted(begins, at + _STAMP))
        if here < len(begins) and begins[here] == at + _STAMP and ends[here] > size and chain:
            return found_so_far(), size, lost, True
        if one < 0:
            return found_so_far(), stop, lost + stop - at, False
        lost += int(begins[one]) - _STAMP - at
        while one >= 0:
            last = one
            add(one)
            one = after[one]
        if ends[last] > size:  # nothing follows it, and so it can only be the last
            chain.pop()
            at = int(begins[last]) - _STAMP
        else:
            at = int(ends[last])
    return found_so_far(), at, lost, False


# -- what is in them -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """How a message type is packed, as pymavlink describes it."""

    name: str
    number: int
    crc_extra: int
    dtype: np.dtype[Any]


@cache
def kind_of(number: int) -> Kind | None:
    """Return how the type with this id is packed; None if it is not known."""
    known = mavlink.mavlink_map.get(number)
    if known is None:
        return None
    layout = known.native_format.decode().lstrip('<')
    fields: list[Any] = []
    for name, one, count in zip(known.ordered_fieldnames, layout, known.array_lengths, strict=True):
        if one == 'c':
            fields.append((name, f'S{count}'))
        else:
            fields.append((name, _TYPES[one], (count,)) if count else (name, _TYPES[one]))
    return Kind(known.msgname, number, known.crc_extra, np.dtype(fields))


def _crc_table() -> npt.NDArray[np.uint16]:
    table = np.arange(256, dtype=np.uint16)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ 0x8408, table >> 1)
    return table.astype(np.uint16)


_CRC = _crc_table()


def decode(data: npt.NDArray[np.uint8], packets: Packets, rows: IntArray,
           kind: Kind) -> tuple[IntArray, npt.NDArray[Any]]:
    """Decode packets of one type.

    Parameters
    ----------
    data : ndarray of uint8
        The log.
    packets : Packets
        Where its packets are.
    rows : ndarray of int
        Those to decode, all of this type.
    kind : Kind
        The type.

    Returns
    -------
    rows : ndarray of int
        Those with a right checksum.
    fields : structured ndarray
        Their fields.
    """
    # A part after the other stays within the processor's cache.
    parts = [_decode_some(data, packets.begin[part], part, kind)
             for part in (rows[at:at + _AT_ONCE] for at in range(0, len(rows), _AT_ONCE))]
    if not parts:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=kind.dtype)
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _decode_some(data: npt.NDArray[np.uint8], begin: IntArray, rows: IntArray,
                 kind: Kind) -> tuple[IntArray, npt.NDArray[Any]]:
    form = data[begin].astype(np.int64) << 8 | data[begin + 1]
    good, parts = [], []
    for one in np.unique(form).tolist():
        magic, length = one >> 8, one & 0xFF
        if length > kind.dtype.itemsize:
            continue
        mine = np.flatnonzero(form == one)
        head = 9 if magic == _V2 else 5  # bytes between the magic and the payload
        raw = np.lib.stride_tricks.sliding_window_view(data, head + length + 2)[begin[mine] + 1]
        crc = np.full(len(mine), 0xFFFF, dtype=np.uint16)
        for column in [*range(head + length), -1]:
            byte = raw[:, column] if column >= 0 else np.uint8(kind.crc_extra)
            crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
        right = crc == raw[:, -2] | raw[:, -1].astype(np.uint16) << 8
        body = np.zeros((int(right.sum()), kind.dtype.itemsize), dtype=np.uint8)
        body[:, :length] = raw[right, head:head + length]
        good.append(rows[mine[right]])
        parts.append(body.view(kind.dtype)[:, 0])
    if not good:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=kind.dtype)
    which = np.concatenate(good)
    order = np.argsort(which)
    return which[order], np.concatenate(parts)[order]


@cache
def _message_class(name: str, fields: tuple[str, ...], source: Source) -> Any:
    """Return a class of messages that answer as pymavlink's do, as far as readers ask."""
    base: Any = namedtuple(name, fields)  # type: ignore[misc]
    return type(name, (base,), {
        '__slots__': (), 'get_type': lambda self: name, 'get_srcSystem': lambda self: source[0],
        'get_srcComponent': lambda self: source[1]})


@dataclass(frozen=True)
class Heard:
    """Messages of one type from one source.

    Attributes
    ----------
    rows : ndarray of int, shape (N,)
        Which packets of the log these are.
    fields : structured ndarray, shape (N,)
        Their fields.
    """

    kind: Kind
    source: Source
    rows: IntArray
    fields: npt.NDArray[Any]

    def messages(self, begin: int, end: int) -> list[Any]:
        """Return some as objects with ``get_type()`` and the fields as attributes."""
        names = self.fields.dtype.names or ()
        make = _message_class(self.kind.name, names, self.source)._make
        texts = [at for at, name in enumerate(names) if self.fields.dtype[name].kind == 'S']
        rows = self.fields[begin:end].tolist()
        if not texts:
            return [make(row) for row in rows]
        return [make([value.decode('utf-8', 'replace') if at in texts else value
                      for at, value in enumerate(row)]) for row in rows]


class Telemetry:
    """A telemetry log that was read: who speaks in it, and what they say.

    Parameters
    ----------
    path : Path
        The log.
    progress : callable, optional
        Called with the fraction read, 0 to 1, now and then.

    Attributes
    ----------
    packets : Packets
        All packets.
    problem : str
        What is wrong with the file as a whole; '' if nothing is.

    Raises
    ------
    RecordError
        The file holds no MAVLink.
    """

    def __init__(self, path: Path, progress: Progress | None = None) -> None:
        self.path = path
        content, self.problem = _content(path)
        self.data = np.frombuffer(content, dtype=np.uint8)
        self.packets = find_packets(self.data, progress)
        if self.packets.cut:
            self.problem = self.problem or 'cut off in the middle of a message'
        if not self._holds_mavlink():
            raise RecordError(f'{path}: no MAVLink messages in it; not a telemetry log?')

    def _holds_mavlink(self) -> bool:
        """Whether one of the first packets has a right checksum."""
        packets = self.packets
        for row in range(min(len(packets.begin), 500)):
            kind = kind_of(int(packets.number[row]))
            if kind is not None and len(decode(self.data, packets, np.array([row]), kind)[0]):
                return True
        return False

    def __len__(self) -> int:
        return len(self.packets.begin)

    def sources(self) -> Mapping[Source, Mapping[str, int]]:
        """Return who is in the log, and how many messages of which type are from each."""
        packets = self.packets
        keys = packets.system << 40 | packets.component << 32 | packets.number
        found: dict[Source, Counter[str]] = {}
        for key, count in zip(*np.unique(keys, return_counts=True), strict=True):
            kind = kind_of(int(key & 0xFFFFFFFF))
            name = kind.name if kind is not None else f'type {key & 0xFFFFFFFF}'
            found.setdefault((int(key >> 40), int(key >> 32 & 0xFF)), Counter())[name] += int(count)
        return found

    def heard(self, name: str, source: Source | None = None) -> list[Heard]:
        """Return the messages of a type, by source: of all, or of one."""
        packets = self.packets
        number = getattr(mavlink, f'MAVLINK_MSG_ID_{name}')
        kind = kind_of(number)
        assert kind is not None
        chosen = packets.number == number
        if source is not None:
            chosen &= (packets.system == source[0]) & (packets.component == source[1])
        rows, fields = decode(self.data, packets, np.flatnonzero(chosen), kind)
        if source is not None:
            return [Heard(kind, source, rows, fields)] if len(rows) else []
        of = packets.system[rows] << 8 | packets.component[rows]
        return [Heard(kind, (one >> 8, one & 0xFF), rows[of == one], fields[of == one])
                for one in np.unique(of).tolist()]

    def autopilots(self) -> list[tuple[int, Source]]:
        """Return (row of the first HEARTBEAT, source) of each ArduPilot vehicle, as they come."""
        found = []
        for heard in self.heard('HEARTBEAT'):
            rows = heard.rows[(heard.fields['autopilot'] == ARDUPILOT)
                              & ~np.isin(heard.fields['type'], list(NO_VEHICLE))]
            if len(rows) and heard.source[1] == 1:
                found.append((int(rows[0]), heard.source))
        return sorted(found)


def in_order(heard: Iterable[Heard], block: int = 50_000) -> Iterator[tuple[int, Any]]:
    """Yield (row, message) of several types in the order of the log."""
    several = [one for one in heard if len(one.rows)]
    if not several:
        return
    last = max(int(one.rows[-1]) for one in several) + 1
    for begin in range(0, last, block):
        part: list[tuple[int, Any]] = []
        for one in several:
            at, end = np.searchsorted(one.rows, [begin, begin + block]).tolist()
            part.extend(zip(one.rows[at:end].tolist(), one.messages(at, end), strict=True))
        part.sort(key=itemgetter(0))
        yield from part


# -- message by message ----------------------------------------------------------------------------


@dataclass
class TlogReader:
    """Messages of a MAVLink telemetry log (.tlog, or .tlog.gz) as pymavlink decodes them.

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
        Packets in the log.
    bad_bytes : int
        Bytes that belonged to no packet.
    problem : str
        What is wrong with the file, if anything ("" if it is whole).

    Raises
    ------
    RecordError
        While iterating: the file cannot be opened or holds no MAVLink.
    """

    path: Path
    types: Collection[str] | None = None
    progress: Progress | None = None
    messages: int = field(default=0, init=False)
    bad_bytes: int = field(default=0, init=False)
    problem: str = field(default='', init=False)

    def __iter__(self) -> Iterator[tuple[float, Any]]:
        """Yield (stamp in s, message)."""
        log = Telemetry(self.path)
        self.problem, self.bad_bytes = log.problem, log.packets.lost
        content = log.data.tobytes()
        parser = mavlink.MAVLink(None)
        packets = log.packets
        for row, (begin, end, number) in enumerate(zip(
                packets.begin.tolist(), packets.end.tolist(), packets.number.tolist(),
                strict=True)):
            if self.progress is not None and not row % 2000:
                self.progress(begin / len(content))
            kind = kind_of(number)
            if kind is None:
                continue
            if self.types is not None and kind.name not in self.types:
                self.messages += 1
                continue
            message = _decode(parser, content[begin:end])
            if message is not None:
                self.messages += 1
                yield int.from_bytes(content[begin - _STAMP:begin], 'big') * 1e-6, message
        if self.progress is not None:
            self.progress(1.0)


def _decode(parser: Any, packet: bytes) -> Any:
    """Return the message of a packet, None if its checksum or its kind is wrong."""
    try:
        message = parser.decode(bytearray(packet))
    except (mavlink.MAVError, struct.error, UnicodeDecodeError):
        return None
    # The checksum of an unknown kind cannot be checked: it could be anything.
    unknown = getattr(mavlink, 'MAVLink_unknown', ())  # older pymavlink raises instead
    return None if isinstance(message, unknown) else message


def _content(path: Path) -> tuple[bytes, str]:
    """Return the bytes of a log, unpacked, and what is wrong with the packing."""
    try:
        with open(path, 'rb') as file:
            content = file.read()
    except OSError as error:
        raise RecordError(f'{path}: {error.strerror or error}') from error
    if content[:2] != b'\x1f\x8b':
        return content, ''
    whole = zlib.decompressobj(wbits=31)
    try:
        text = whole.decompress(content)
    except zlib.error as error:
        return _broken_gzip(path, error)
    return text, '' if whole.eof else 'the compressed file is cut off'


def _broken_gzip(path: Path, error: Exception) -> tuple[bytes, str]:
    parts = []
    try:
        with gzip.open(path, 'rb') as file:
            while part := file.read(4096):
                parts.append(part)
    except (OSError, EOFError, zlib.error):
        pass
    if not parts:
        raise RecordError(f'{path}: not a gzip file after all ({error})') from error
    return b''.join(parts), f'the compressed file is damaged ({error})'
