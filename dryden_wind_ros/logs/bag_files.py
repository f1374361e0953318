"""Files of a bag: which of them to read, in which order, and what has to be done to them before.

What a file is, is told by what is in it. ``metadata.yaml`` only says in which order the files come;
if it is missing, empty, cut off or about other files, the files are read all the same.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from dryden_wind_ros.logs import database, mcap
from dryden_wind_ros.logs.flight import RecordError
from dryden_wind_ros.logs.messages import MessageFile

_ZSTD = b'\x28\xb5\x2f\xfd'
_ROS_1 = b'#ROSBAG V'
_HEADS = (mcap.MAGIC, database.MAGIC, _ZSTD)
_PIECE = 1 << 20


class BagFiles:
    """The files of a bag, ready to be read.

    Parameters
    ----------
    path : Path
        Folder of a bag, or one of its files.
    stack : ExitStack
        Repaired and unpacked copies are kept until it ends.

    Attributes
    ----------
    files : list of MessageFile
        In the order of recording.
    notes : list of str
        What was wrong.

    Raises
    ------
    RecordError
        There is no bag.
    """

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.notes: list[str] = []
        self._stack = stack
        if not path.exists():
            raise RecordError(f'{path}: there is no such file or folder')
        if not path.is_dir():
            self.files = [self._open(path)]
            return
        found = sorted((file for file in path.iterdir() if file.is_file() and _is_bag(file)),
                       key=_natural)
        if not found:
            there = ', '.join(sorted(file.name for file in path.iterdir())[:5])
            raise RecordError(f'{path}: no bag: no MCAP or SQLite file in this folder, only {there}'
                              if there else f'{path}: the folder is empty')
        ordered = self._in_order(path / 'metadata.yaml', found)
        self.files = []
        problems: list[RecordError] = []
        for file in ordered:
            try:
                self.files.append(self._open(file))
            except RecordError as error:
                problems.append(error)
        if not self.files:
            raise problems[0]
        self.notes += [str(error) for error in problems]

    def _in_order(self, metadata: Path, found: list[Path]) -> list[Path]:
        """Return the files in the order that metadata.yaml gives; by name where it gives none."""
        if not metadata.is_file():
            self.notes.append('metadata.yaml is missing: the recording was not ended properly')
            return found
        listed, problem = _listed(metadata)
        if not problem:
            missing = [name for name in listed if not (metadata.parent / name).is_file()]
            if missing:
                problem = f'there is no {missing[0]}'
        if problem:
            self.notes.append(f'metadata.yaml was not used ({problem}); the files were read as '
                              'they are')
            return found
        place = {name: at for at, name in enumerate(listed)}
        return sorted(found, key=lambda file: (place.get(file.name, len(place)), _natural(file)))

    def _open(self, path: Path) -> MessageFile:
        with open(path, 'rb') as file:
            start = file.read(16)
        if not start:
            raise RecordError(f'{path}: the file is empty (0 bytes): nothing was recorded')
        if start.startswith(mcap.MAGIC):
            return mcap.McapFile(path)
        if start.startswith(database.MAGIC):
            return database.DatabaseFile(self._database(path))
        if start.startswith(_ZSTD):
            return self._open(self._unpacked(path))
        if start.startswith(_ROS_1):
            raise RecordError(f'{path}: a bag of ROS 1; only bags of ROS 2 can hold a flight')
        if mcap.MAGIC.startswith(start):
            raise RecordError(f'{path}: cut off after {len(start)} bytes, before the first message')
        raise RecordError(f'{path}: neither an MCAP nor an SQLite bag (it starts with '
                          f'{start[:8]!r})')

    def _unpacked(self, path: Path) -> Path:
        """Return an unpacked copy of a file that was compressed as a whole."""
        target = self._scratch() / (path.name.removesuffix('.zstd') or path.name)
        machine = mcap.zstd().ZstdDecompressor()
        problem = ''
        with open(path, 'rb') as source, open(target, 'wb') as out:
            while not machine.eof and (piece := source.read(_PIECE)):
                try:
                    out.write(machine.decompress(piece))
                except Exception as error:  # whatever the library makes of broken data
                    problem = f'is damaged ({error})'
                    break
        if problem or not machine.eof:
            self.notes.append(f'{path.name} {problem or "is cut off"}; it was read up to there')
        if not target.stat().st_size:
            raise RecordError(f'{path}: nothing of it can be unpacked')
        return target

    def _database(self, path: Path) -> Path:
        """Return a database that can be read: this one, or a repaired copy."""
        log = path.with_name(path.name + '-wal')
        has_log = log.exists() and log.stat().st_size > 0
        lacking = _lacking(path)
        if not has_log and not lacking:
            return path
        target = self._scratch() / f'{path.stem}.db3'
        shutil.copyfile(path, target)
        if lacking:
            # SQLite refuses a file that is shorter than it says; empty pages are just unreadable.
            with open(target, 'r+b') as file:
                file.truncate(target.stat().st_size + lacking)
            self.notes.append(f'{path.name} is cut off: {lacking} bytes at its end are missing')
        if has_log:
            # What a killed recorder had written but not yet merged.
            shutil.copyfile(log, target.with_name(target.name + '-wal'))
            try:
                with sqlite3.connect(target) as connection:
                    connection.execute('PRAGMA wal_checkpoint(TRUNCATE)')
                    connection.execute('PRAGMA journal_mode=DELETE')
            except sqlite3.Error as error:
                self.notes.append(f'{log.name} cannot be read ({error})')
            else:
                self.notes.append(f'{path.name} was not closed; its {log.name} was read too')
        return target

    def _scratch(self) -> Path:
        return Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix='wind_report-')))


def _is_bag(path: Path) -> bool:
    if path.name.endswith(('-wal', '-shm', '-journal')):
        return False
    with open(path, 'rb') as file:
        start = file.read(16)
    return start.startswith(_HEADS) or path.name.endswith(('.mcap', '.db3'))


def _natural(path: Path) -> list[tuple[int, str]]:
    return [(int(part), '') if part.isdigit() else (-1, part)
            for part in re.split(r'(\d+)', path.name)]


def _listed(metadata: Path) -> tuple[list[str], str]:
    """Return the names of the files in metadata.yaml, or what is wrong with it."""
    import yaml

    try:
        said: Any = yaml.safe_load(metadata.read_text(encoding='utf-8'))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        return [], f'it cannot be read: {str(error).splitlines()[0]}'
    if said is None:
        return [], 'it is empty'
    try:
        about = said['rosbag2_bagfile_information']
        names = [Path(str(name)).name for name in about['relative_file_paths']]
        storage, topics = about['storage_identifier'], about['topics_with_message_count']
    except (KeyError, TypeError, ValueError) as error:
        return [], f'it is not whole: no {str(error) or type(error).__name__}'
    if not names:
        return [], 'it names no file'
    if not storage:
        return [], 'it names no storage'
    if not topics:
        return [], 'it names no topics'
    return names, ''


def _lacking(path: Path) -> int:
    """Return how many bytes an SQLite file is shorter than its head says."""
    with open(path, 'rb') as file:
        head = file.read(100)
    if len(head) < 100:
        return 0
    page = int.from_bytes(head[16:18], 'big')
    size = (65536 if page == 1 else page) * int.from_bytes(head[28:32], 'big')
    # A count that was not kept up to date is not to be believed (SQLite's file format, 1.3.7).
    if head[24:28] != head[92:96] or (page < 512 and page != 1):
        return 0
    return min(max(size - path.stat().st_size, 0), 1 << 36)
