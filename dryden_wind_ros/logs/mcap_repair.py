"""Save what is whole in an MCAP file that was cut off: the recorder was killed, or the disk full.

An MCAP file is a row of records (one byte of kind, eight of length, the content), most of them
chunks that hold records in turn, and ends with a summary and a footer, which a killed recorder has
not written. The whole records are copied and a footer without summary put behind them; readers
then scan the file instead of its index. Of a chunk that is cut off, the whole records inside are
kept if it is not compressed.

Source: the MCAP format specification, https://mcap.dev/spec.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

MAGIC = b'\x89MCAP0\r\n'
_HEADER, _FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _DATA_END = 1, 2, 3, 4, 5, 6, 15
_KEPT = frozenset((_HEADER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK))
_PREFIX = 9
_BLOCK = 1 << 20


def is_whole(path: Path) -> bool:
    """Tell whether an MCAP file ends as it should."""
    with open(path, 'rb') as file:
        if file.seek(0, 2) < 2 * len(MAGIC):
            return False
        file.seek(-len(MAGIC), 2)
        return file.read() == MAGIC


def save_whole_records(path: Path, target: Path) -> int:
    """Copy the whole records of `path` to a readable file `target`; return their number.

    Parameters
    ----------
    path : Path
        A file that starts as an MCAP file does.
    target : Path
        Written over.
    """
    size = path.stat().st_size
    count = 0
    with open(path, 'rb') as source, open(target, 'wb') as out:
        out.write(source.read(len(MAGIC)))
        while len(prefix := source.read(_PREFIX)) == _PREFIX:
            kind, length = prefix[0], int.from_bytes(prefix[1:], 'little')
            start = source.tell()
            if kind in (_FOOTER, _DATA_END):
                break
            if start + length > size:
                if kind == _CHUNK:
                    count += _copy_inner(source, out)
                break
            if kind in _KEPT:
                out.write(prefix)
                _copy(source, out, length)
                count += 1
            source.seek(start + length)
        out.write(struct.pack('<BQI', _DATA_END, 4, 0))
        out.write(struct.pack('<BQQQI', _FOOTER, 20, 0, 0, 0))
        out.write(MAGIC)
    return count


def _copy_inner(source: BinaryIO, out: BinaryIO) -> int:
    """Copy the whole records of an uncompressed chunk that is cut off."""
    head = source.read(32)
    if len(head) < 32 or int.from_bytes(head[28:], 'little'):  # length of the compression's name
        return 0
    source.read(8)
    count = 0
    while len(prefix := source.read(_PREFIX)) == _PREFIX:
        length = int.from_bytes(prefix[1:], 'little')
        content = source.read(length) if length < _BLOCK * 64 else b''
        if len(content) < length:
            break
        if prefix[0] in _KEPT:
            out.write(prefix + content)
            count += 1
    return count


def _copy(source: BinaryIO, out: BinaryIO, length: int) -> None:
    while length > 0:
        block = source.read(min(length, _BLOCK))
        out.write(block)
        length -= len(block)
