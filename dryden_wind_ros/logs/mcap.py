"""MCAP files from the first record to the last, in the order of recording, whole or damaged.

An MCAP file is a row of records (one byte of kind, eight of length, the content), most of them
chunks that hold records in turn, and ends with a summary and a footer. The summary is not needed
here: a killed recorder has not written it, some writers leave out the index, and the times by which
an index sorts go back where a bag was recorded with sim time over a restart.

Source: the MCAP format specification, https://mcap.dev/spec.
"""

from __future__ import annotations

import mmap
import struct
import sys
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dryden_wind_ros.logs.messages import Contents, Definition, Progress, Raw

MAGIC = b'\x89MCAP0\r\n'
_HEADER, _FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _DATA_END = 1, 2, 3, 4, 5, 6, 15
_PREFIX = 9
_WINDOW = 1 << 20
_MESSAGE_HEAD = struct.Struct('<HIQQ')
_CHUNK_HEAD = struct.Struct('<QQQII')


class McapFile:
    """The messages of an MCAP file.

    Parameters
    ----------
    path : Path
        A file that starts as an MCAP file does.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.contents = Contents()
        self._schemas: dict[int, str] = {}
        self._channels: dict[int, tuple[str, str]] = {}
        self._lost = self._holes = self._bad_chunks = 0
        self._cut = False

    def messages(self, kinds: Collection[str], progress: Progress) -> Iterator[Raw]:
        """Yield the messages of these types in the order in which they were recorded."""
        with open(self.path, 'rb') as file, \
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            size = len(view)
            at, ended = len(MAGIC), False
            while at + _PREFIX <= size:
                kind, length = view[at], int.from_bytes(view[at + 1:at + _PREFIX], 'little')
                begin, end = at + _PREFIX, at + _PREFIX + length
                if kind in (_DATA_END, _FOOTER) and length <= 40:
                    ended = True
                    break
                if not _may_be(kind) or end > size:
                    found = _next_record(view, at + 1)
                    if found is None:
                        self._cut = True
                        if kind == _CHUNK and end > size:
                            yield from self._of_chunk(view[begin:size], kinds, cut=True)
                        break
                    self._lost += found - at
                    self._holes += 1
                    at = found
                    continue
                if kind == _CHUNK:
                    yield from self._of_chunk(view[begin:end], kinds)
                    progress(at / size)
                else:
                    raw = self._record(kind, view[begin:end], kinds)
                    if raw is not None:
                        yield raw
                at = end
            if not ended or view[-len(MAGIC):] != MAGIC:
                self._cut = True
        self._note()

    def _note(self) -> None:
        name, notes = self.path.name, self.contents.notes
        if self._cut:
            notes.append(f'{name} is cut off; everything up to there was read')
        if self._holes:
            notes.append(f'{name} is damaged: {self._lost} bytes in {self._holes} places were '
                         'passed over')
        if self._bad_chunks:
            notes.append(f'{name} is damaged: of {self._bad_chunks} chunks not all messages could '
                         'be read')

    def _of_chunk(self, content: bytes, kinds: Collection[str], cut: bool = False) -> Iterator[Raw]:
        if len(content) < _CHUNK_HEAD.size:
            return
        _, _, size, crc, name_length = _CHUNK_HEAD.unpack_from(content)
        name = content[32:32 + name_length].decode('ascii', 'replace')
        packed = content[40 + name_length:]
        records, whole = _unpacked(packed, name)
        bad = not whole or len(records) != size or (crc != 0 and zlib.crc32(records) != crc)
        at = 0
        while at + _PREFIX <= len(records):
            kind, length = records[at], int.from_bytes(records[at + 1:at + _PREFIX], 'little')
            end = at + _PREFIX + length
            if not _may_be(kind) or end > len(records):
                break
            if kind in (_SCHEMA, _CHANNEL, _MESSAGE):
                raw = self._record(kind, records[at + _PREFIX:end], kinds)
                if raw is not None:
                    yield raw
            at = end
        if not cut and (bad or at < len(records)):
            self._bad_chunks += 1

    def _record(self, kind: int, content: bytes, kinds: Collection[str]) -> Raw | None:
        """Take one record; return the message if it is one that is wanted."""
        try:
            if kind == _MESSAGE:
                channel, _, log_time, _ = _MESSAGE_HEAD.unpack_from(content)
                topic, of = self._channels.get(channel, ('', ''))
                if topic:
                    self.contents.counts[topic] = self.contents.counts.get(topic, 0) + 1
                return Raw(topic, of, log_time, content[22:]) if of in kinds else None
            if kind == _SCHEMA:
                number = int.from_bytes(content[:2], 'little')
                name, at = _text(content, 2)
                encoding, at = _text(content, at)
                text, _ = _text(content, at)
                self._schemas[number] = name
                self.contents.definitions[name] = Definition(encoding, text)
            elif kind == _CHANNEL:
                channel, schema = struct.unpack_from('<HH', content)
                topic, _ = _text(content, 4)
                of = self._schemas.get(schema, '')
                self._channels[channel] = topic, of
                self.contents.topics[topic] = of
        except (struct.error, UnicodeDecodeError):
            self._lost += len(content)
            self._holes += 1
        return None


def _may_be(kind: int) -> bool:
    return _HEADER <= kind <= _DATA_END or kind >= 0x80  # from 0x80 on: private records


def _text(content: bytes, at: int) -> tuple[str, int]:
    length, = struct.unpack_from('<I', content, at)
    if at + 4 + length > len(content):
        raise struct.error('a text goes beyond its record')
    return content[at + 4:at + 4 + length].decode(), at + 4 + length


def _unpacked(packed: bytes, compression: str) -> tuple[bytes, bool]:
    """Return what is in a chunk, as far as it can be unpacked, and whether that is all."""
    if not compression:
        return packed, True
    machine = _machine(compression)
    if machine is None:
        return b'', False
    parts: list[bytes] = []
    try:
        # Piece by piece: what comes before the damage is given out.
        for at in range(0, len(packed), 4096):
            if machine.eof:
                break
            parts.append(machine.decompress(packed[at:at + 4096]))
    except Exception:  # whatever the libraries make of broken data
        return b''.join(parts), False
    return b''.join(parts), bool(machine.eof)


def _machine(compression: str) -> Any:
    if compression == 'lz4':
        import lz4.frame
        return lz4.frame.LZ4FrameDecompressor()
    if compression == 'zstd':
        return zstd().ZstdDecompressor()
    return None


def zstd() -> Any:
    """Return Python's zstd module, or its backport for Python before 3.14, which rosbags brings."""
    if sys.version_info >= (3, 14):
        from compression import zstd as module
    else:
        from backports import zstd as module
    return module


def _next_record(view: mmap.mmap, at: int) -> int | None:
    """Return where the next records begin after damage: three that follow one another."""
    size = len(view)
    for begin in range(at, size, _WINDOW):
        part = np.frombuffer(view[begin:begin + _WINDOW + _PREFIX], dtype=np.uint8)
        count = len(part) - _PREFIX
        if count <= 0:
            return None
        lengths = np.ndarray((count,), '<u8', part.tobytes(), offset=1, strides=(1,))
        likely = np.flatnonzero((part[:count] >= _SCHEMA) & (part[:count] <= _DATA_END)
                                & (lengths < size) & (lengths > 0))
        for place in likely.tolist():
            if _follow(view, begin + place, 3):
                return begin + int(place)
    return None


def _follow(view: mmap.mmap, at: int, count: int) -> bool:
    size = len(view)
    for _ in range(count):
        if at + _PREFIX > size:
            return False
        kind, length = view[at], int.from_bytes(view[at + 1:at + _PREFIX], 'little')
        at += _PREFIX + length
        if not _HEADER <= kind <= _DATA_END or at > size or (not length and kind != 2):
            return False
        if kind == _FOOTER:
            return True
    return True
