"""Dataflash logs (.BIN, .log): chosen columns of chosen records, in one pass, whole or damaged.

A binary log is a row of records ``0xA3 0x95 type payload``; FMT records (type 128) say how long the
records of each type are and what is in them. The file is read block by block. In each block every
place that looks like the head of a known record is found at once with NumPy; a record counts if
another head (or the end of the file) follows where it ends. Where that chain breaks, reading goes
on at the next such place, and what was passed over is counted. Only the columns asked for are
unpacked.

Source: ``AP_Logger/LogStructure.h`` of ArduPilot, and its documentation of the format characters.
"""

from __future__ import annotations

import gzip
import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from dryden_wind_ros.logs.flight import FloatArray, IntArray, RecordError
from dryden_wind_ros.logs.times import SortedOut, sort_out

BLOCK = 8 << 20
"""Bytes read at a time."""

Progress = Callable[[float], None]
Bytes = npt.NDArray[np.uint8]

_HEAD = (0xA3, 0x95)
_FMT = 128
_FMT_LENGTH = 89
_SPARSE = 16  # of the records not asked for, every so manieth helps to judge the times

# Format character: NumPy type, factor.
_FIELDS: Mapping[str, tuple[str, float]] = {
    'a': ('(32,)<i2', 1.0), 'b': ('i1', 1.0), 'B': ('u1', 1.0), 'h': ('<i2', 1.0),
    'H': ('<u2', 1.0), 'i': ('<i4', 1.0), 'I': ('<u4', 1.0), 'f': ('<f4', 1.0), 'd': ('<f8', 1.0),
    'g': ('<f2', 1.0), 'n': ('S4', 0.0), 'N': ('S16', 0.0), 'Z': ('S64', 0.0), 'c': ('<i2', 0.01),
    'C': ('<u2', 0.01), 'e': ('<i4', 0.01), 'E': ('<u4', 0.01), 'L': ('<i4', 1e-7),
    'M': ('u1', 1.0), 'q': ('<i8', 1.0), 'Q': ('<u8', 1.0)}


@dataclass(frozen=True)
class Table:
    """Records of one type, by column, in order of flight and time.

    Attributes
    ----------
    t : ndarray, shape (N,)
        Vehicle time, s since boot.
    flight : ndarray of int, shape (N,)
        Number of the flight, from 0.
    columns : mapping of str to ndarray, shape (N,)
        Those asked for that the log has, in its units; texts as bytes.
    """

    t: FloatArray
    flight: IntArray
    columns: Mapping[str, npt.NDArray[Any]]

    def of_flight(self, number: int) -> Table:
        """Return the records of one flight."""
        rows = self.flight == number
        if rows.all():
            return self
        return Table(self.t[rows], self.flight[rows],
                     {name: values[rows] for name, values in self.columns.items()})


@dataclass(frozen=True)
class DataflashLog:
    """What was asked for of a dataflash log.

    Attributes
    ----------
    tables : mapping of str to Table
        By name of the record, of those asked for that there are.
    counts : mapping of str to int
        How many records of each type there are, of all types.
    flights : int
        Number of flights; more than one where the vehicle's time went back and stayed there.
    seconds : float
        From the first to the last record, s, all flights together.
    notes : tuple of str
        Damage, with how much.
    """

    tables: Mapping[str, Table]
    counts: Mapping[str, int]
    flights: int
    seconds: float
    notes: tuple[str, ...]


def read_dataflash(path: Path, wanted: Mapping[str, Sequence[str]],
                   progress: Progress | None = None) -> DataflashLog:
    """Read chosen columns of chosen records.

    Parameters
    ----------
    path : Path
        A binary log, a text log, or either in gzip.
    wanted : mapping of str to sequence of str
        Names of records, and of the columns of each.
    progress : callable, optional
        Called with the fraction read, 0 to 1, now and then.

    Raises
    ------
    RecordError
        If there is no dataflash record in the file.
    """
    if progress is not None:
        progress(0.0)
    with open(path, 'rb') as raw:
        size = raw.seek(0, 2)
        raw.seek(0)
        packed = raw.read(2) == b'\x1f\x8b'
        raw.seek(0)
        file: Any = gzip.GzipFile(fileobj=raw) if packed else raw
        start = file.read(4)
        file.seek(0)
        gather: _Gatherer = _TextGatherer(wanted) if start == b'FMT,' else _BinaryGatherer(wanted)
        try:
            while gather.take(file):
                if progress is not None and size:
                    progress(min(1.0, raw.tell() / size))
        except (EOFError, OSError, zlib.error) as error:
            if not packed:
                raise
            gather.notes.append(f'the compressed file is damaged ({error})')
        gather.end()
    if progress is not None:
        progress(1.0)
    if not gather.counts:
        raise RecordError(f'{path}: no dataflash records in it; not a dataflash log?')
    return gather.log()


def is_dataflash(head: bytes) -> bool:
    """Tell a dataflash log by its first bytes, at least four."""
    return head.startswith((bytes(_HEAD), b'FMT,'))


@dataclass(frozen=True)
class _Format:
    """What an FMT record says of a type."""

    number: int
    length: int
    name: str
    layout: str
    columns: tuple[str, ...]

    @property
    def time_factor(self) -> float:
        """Seconds per unit of the time that a record begins with; 0 if it begins with none."""
        if self.columns[:1] == ('TimeUS',) and self.layout[:1] == 'Q':
            return 1e-6
        if self.columns[:1] == ('TimeMS',) and self.layout[:1] == 'I':
            return 1e-3
        return 0.0

    def dtype(self, names: Sequence[str]) -> np.dtype[Any] | None:
        """Return the NumPy type of a whole record with the columns of these names."""
        types = [np.dtype(_FIELDS[one][0]) for one in self.layout]
        offsets = np.cumsum([3, *(one.itemsize for one in types)]).tolist()
        chosen = [at for at, name in enumerate(self.columns) if name in names]
        if not chosen:
            return None
        return np.dtype({'names': [self.columns[at] for at in chosen],
                         'formats': [types[at] for at in chosen],
                         'offsets': [offsets[at] for at in chosen], 'itemsize': self.length})

    def scaled(self, name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return values of a column in its unit."""
        factor = _FIELDS[self.layout[self.columns.index(name)]][1]
        if values.dtype.kind == 'S' or factor == 0.0:
            return values
        with np.errstate(invalid='ignore'):  # a damaged number may be a signalling NaN
            numbers = values.astype(np.float64)
        # Divided, as ArduPilot's own tools do: 7.65 is 765 / 100 and not 765 * 0.01.
        return numbers / (1.0 / factor) if factor != 1.0 else numbers


def _parse_format(record: bytes) -> _Format | None:
    """Return what a binary FMT record says; None if it contradicts itself."""
    try:
        name, layout, columns = (record[begin:end].split(b'\0')[0].decode('ascii')
                                 for begin, end in ((5, 9), (9, 25), (25, 89)))
    except UnicodeDecodeError:
        return None
    names = tuple(columns.split(',')) if columns else ()
    if not name.isalnum() or any(one not in _FIELDS for one in layout):
        return None
    length = 3 + sum(np.dtype(_FIELDS[one][0]).itemsize for one in layout)
    if length != record[4] or len(names) != len(layout):
        return None
    return _Format(record[3], length, name, layout, names)


@dataclass
class _Gatherer:
    """Collects what was asked for, part by part; common to binary and text logs."""

    wanted: Mapping[str, Sequence[str]]
    notes: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    _times: list[FloatArray] = field(default_factory=list)
    _count: int = 0
    # Of each record asked for: (place in the row of times, column by name).
    _parts: dict[str, list[tuple[npt.NDArray[Any], dict[str, npt.NDArray[Any]]]]] = field(
        default_factory=dict)
    _packed: dict[str, _Format] = field(default_factory=dict)

    def take(self, file: BinaryIO) -> bool:
        """Read on; false at the end."""
        raise NotImplementedError

    def end(self) -> None:
        """Take what is left, and note the damage."""
        raise NotImplementedError

    def log(self) -> DataflashLog:
        times = np.concatenate(self._times) if self._times else np.empty(0)
        self._times.clear()
        found = sort_out(times)
        tables = {}
        bad: Counter[str] = Counter()
        for name in list(self._parts):
            parts = self._parts.pop(name)  # a long log has many: not all of them twice
            at = np.concatenate([part[0] for part in parts])
            bad[name] = int((~found.kept[at]).sum())
            columns = {}
            for column in [one for one in parts[0][1] if all(one in part[1] for part in parts)]:
                values = np.concatenate([part[1].pop(column) for part in parts])
                packed = self._packed.get(name)
                columns[column] = values if packed is None else packed.scaled(column, values)
            tables[name] = _table(times, found, at, columns)
        if bad.total():
            which = ', '.join(f'{name} {count}' for name, count in bad.items() if count)
            self.notes.append(
                f'{bad.total()} {"record" if bad.total() == 1 else "records"} with a time that '
                f'those around them do not support left out ({which})')
        seconds = sum(float(np.ptp(times[found.kept & (found.flight == one)]))
                      for one in range(found.flights))
        return DataflashLog(tables, dict(self.counts), found.flights, seconds, tuple(self.notes))


def _table(times: FloatArray, found: SortedOut, at: npt.NDArray[Any],
           columns: Mapping[str, npt.NDArray[Any]]) -> Table:
    t, flight, kept = times[at], found.flight[at], found.kept[at]
    if kept.all() and (np.diff(t) >= 0.0).all() and (at[1:] > at[:-1]).all():
        return Table(t, flight, columns)
    rows = np.flatnonzero(kept)
    rows = rows[np.lexsort((at[rows], t[rows], flight[rows]))]
    return Table(t[rows], flight[rows], {name: values[rows] for name, values in columns.items()})


@dataclass
class _BinaryGatherer(_Gatherer):
    _formats: dict[int, _Format] = field(default_factory=dict)
    _lengths: IntArray = field(default_factory=lambda: np.zeros(256, dtype=np.int64))
    _rest: bytes = b''
    _in_hole: bool = False
    _holes: int = 0
    _lost: int = 0
    _cut: int = 0

    def __post_init__(self) -> None:
        self._define(_Format(_FMT, _FMT_LENGTH, 'FMT', 'BBnNZ', (
            'Type', 'Length', 'Name', 'Format', 'Columns')))

    def take(self, file: BinaryIO) -> bool:
        block = file.read(BLOCK)
        if not block:
            return False
        self._walk(self._rest + block if self._rest else block, final=False)
        return True

    def end(self) -> None:
        self._walk(self._rest, final=True)
        if self._lost:
            one = self._holes == 1
            self.notes.append(
                f'damaged: {self._lost} bytes in {self._holes} {"place" if one else "places"} are '
                f'no records and were passed over, so at least {self._holes} '
                f'{"record is" if one else "records are"} lost')
        if self._cut:
            self.notes.append('cut off in the middle of a record; read up to there')

    def _define(self, new: _Format) -> None:
        self._formats[new.number] = new
        self._lengths[new.number] = new.length

    def _walk(self, content: bytes, final: bool) -> None:
        """Take the records of a block; keep what may go on in the next one."""
        data = np.frombuffer(content, dtype=np.uint8)
        heads = np.flatnonzero(data[:-2] == _HEAD[0])
        heads = heads[data[heads + 1] == _HEAD[1]]
        at = 0
        for stop in [*self._learn(content, data, heads), len(content)]:
            at = self._walk_up_to(content, data, heads, at, stop, final)
        self._rest = content[at:] if not final else b''

    def _learn(self, content: bytes, data: Bytes, heads: IntArray) -> Iterator[int]:
        """Take the formats in a block; yield where one changes, before it holds."""
        for at in heads[data[heads + 2] == _FMT].tolist():
            new = _parse_format(content[at:at + _FMT_LENGTH]) \
                if at + _FMT_LENGTH <= len(content) else None
            if new is None or new.number == _FMT:
                continue
            old = self._formats.get(new.number)
            if old is not None and old != new:
                yield at  # logs put one behind the other, by versions that differ
            self._define(new)

    def _walk_up_to(self, content: bytes, data: Bytes, heads: IntArray, at: int, stop: int,
                    final: bool) -> int:
        """Take the records that begin from `at` to before `stop`; return where to go on."""
        size = len(content)
        kinds = data[heads + 2]
        known = (self._lengths[kinds] > 0) & (heads >= at) & (heads < stop)
        heads_here, kinds = heads[known], kinds[known]
        ends = heads_here + self._lengths[kinds]
        # Followed by a head of whatever type, by the end, or by what is not read yet.
        inside = np.minimum(ends, max(size - 2, 0))
        followed = (ends > size - 2) | (
            (data[inside] == _HEAD[0]) & (data[np.minimum(inside + 1, size - 1)] == _HEAD[1]))
        if final:
            followed &= (ends <= size - 2) | (ends == size)
        follower = np.searchsorted(heads_here, ends)
        follower[follower == len(heads_here)] = -1
        follower[heads_here[follower] != ends] = -1
        chain, at = self._chain(heads_here.tolist(), ends.tolist(), follower.tolist(),
                                followed, at, stop, final, size)
        rows = np.array(chain, dtype=np.int64)
        self._take(data, heads_here[rows], kinds[rows])
        return at

    def _chain(self, begins: list[int], ends: list[int], follower: list[int],
               followed: npt.NDArray[np.bool_], at: int, stop: int, final: bool,
               size: int) -> tuple[list[int], int]:
        """Follow the records from one to the next; return them, and where to go on."""
        likely = np.flatnonzero(followed).tolist()
        places = [begins[one] for one in likely]
        chain: list[int] = []
        while True:
            found = bisect_left(places, at)
            if found == len(places):
                # Nothing more here. The last bytes may be the beginning of a head, or of a record
                # that is cut off.
                rest = stop if stop < size or final else max(at, size - 2)
                if final and stop == size and rest > at and begins and begins[-1] >= at \
                        and ends[-1] > size:
                    self._hole(begins[-1] - at)
                    self._cut = 1
                elif rest > at:
                    self._hole(rest - at)
                return chain, rest
            one = likely[found]
            self._hole(begins[one] - at)
            self._in_hole = False
            while ends[one] <= size:
                chain.append(one)
                if follower[one] < 0:
                    break
                one = follower[one]
            else:
                if final:
                    self._cut = 1
                return chain, begins[one]  # goes on in the next block
            at = ends[one]
            if at >= stop or (at > size - 2 and not final):
                return chain, at
            if not followed[one] and not (final and at == size):
                # Neither a head nor the end follows: the record itself is doubtful.
                chain.pop()
                at = begins[one] + 2
                self._hole(2)

    def _hole(self, count: int) -> None:
        if count <= 0:
            return
        self._holes += not self._in_hole
        self._in_hole = True
        self._lost += count

    def _take(self, data: Bytes, begins: IntArray, kinds: Bytes) -> None:
        if not len(begins):
            return
        for number, count in enumerate(np.bincount(kinds, minlength=256).tolist()):
            if count:
                self.counts[self._formats[number].name] += count
        chosen = {number for number, one in self._formats.items() if one.name in self.wanted}
        factors = np.zeros(256)
        for number, one in self._formats.items():
            factors[number] = one.time_factor
        is_chosen = np.zeros(256, dtype=bool)
        is_chosen[list(chosen)] = True
        timed = factors[kinds] > 0.0
        keep = timed & (is_chosen[kinds] | (np.arange(len(kinds)) % _SPARSE == 0))
        begins, kinds = begins[keep], kinds[keep]
        self._times.append(_times(data, begins, factors[kinds]))
        for number in chosen:
            rows = np.flatnonzero(kinds == number)
            one = self._formats[number]
            dtype = one.dtype(self.wanted[one.name])
            if not len(rows) or dtype is None:
                continue
            raw = data[begins[rows][:, None] + np.arange(one.length)].view(dtype)[:, 0]
            # As stored, for that takes a quarter of the room; scaled when all are there.
            self._parts.setdefault(one.name, []).append((
                (rows + self._count).astype(np.uint32),
                {name: np.ascontiguousarray(raw[name]) for name in dtype.names or ()}))
            self._packed[one.name] = one
        self._count += len(begins)


def _times(data: Bytes, begins: IntArray, factors: FloatArray) -> FloatArray:
    """Return the times, s, that records begin with."""
    # Eight bytes from every place, whether aligned or not, without a copy.
    every = np.ndarray((max(len(data) - 10, 0),), '<u8', data.data, offset=3, strides=(1,)) \
        if len(data) > 10 else np.empty(0, dtype='<u8')
    long = np.zeros(len(begins), dtype=np.uint64)
    inside = begins < len(every)
    long[inside] = every[begins[inside]]
    short = long & np.uint64(0xFFFFFFFF)
    return np.where(factors < 1e-4, long, short).astype(np.float64) * factors


@dataclass
class _TextGatherer(_Gatherer):
    _formats: dict[str, _Format] = field(default_factory=dict)
    _unread: int = 0

    def take(self, file: BinaryIO) -> bool:
        lines = file.readlines(BLOCK)
        times: list[float] = []
        rows: dict[str, tuple[list[int], list[list[str]]]] = {}
        for line in lines:
            words = [word.strip() for word in line.decode('latin-1').split(',')]
            name = words[0]
            if name == 'FMT':
                self._define(words)
            known = self._formats.get(name)
            if known is None or len(words) < 1 + len(known.columns):
                self._unread += bool(line.strip()) and name != 'FMT'
                continue
            self.counts[name] += 1
            if not known.time_factor:
                continue
            try:
                times.append(float(words[1]) * known.time_factor)
            except ValueError:
                self._unread += 1
                continue
            if name in self.wanted:
                at, values = rows.setdefault(name, ([], []))
                at.append(self._count + len(times) - 1)
                values.append(words[1:1 + len(known.columns)])
        for name, (at, values) in rows.items():
            known = self._formats[name]
            columns = {column: _of_text([row[place] for row in values], known.layout[place])
                       for place, column in enumerate(known.columns)
                       if column in self.wanted[name]}
            self._parts.setdefault(name, []).append((np.array(at, dtype=np.int64), columns))
        self._times.append(np.array(times))
        self._count += len(times)
        return bool(lines)

    def _define(self, words: list[str]) -> None:
        # FMT, 133, 43, PARM, QNff, TimeUS,Name,Value,Default
        if len(words) > 5 and words[1].isdigit() and words[2].isdigit():
            self._formats[words[3]] = _Format(int(words[1]), int(words[2]), words[3], words[4],
                                              tuple(words[5:]))
            self.counts['FMT'] += 1

    def end(self) -> None:
        if self._unread:
            self.notes.append(f'damaged: {self._unread} lines are no records and were passed over')


def _of_text(values: list[str], kind: str) -> npt.NDArray[Any]:
    if kind in 'nNZ':
        return np.array([value.encode('latin-1') for value in values], dtype='S64')

    def number(value: str) -> float:
        try:
            return float(value)
        except ValueError:
            return np.nan
    return np.array([number(value) for value in values])
