"""The folder of a campaign: what was flown, each flight once, none half written.

::

    results/
      flights/KEY/row.json, entry.json, flight.csv     one folder a flight
      flights.parquet                                  one table, a row a flight
      verdict.json, index.html                         see `compare` and `page`

A flight's folder is written under another name and renamed when it is whole; so is the table. What
a process that was killed left behind is removed when the next one begins, and a lock keeps two from
writing at once.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from dryden_wind_ros.campaign.entry import Entry
from dryden_wind_ros.campaign.flight import Outcome, Value, is_kept

MISSING = ('campaigns need the Python packages dask, distributed, pandas and pyarrow. Install '
           'them: python3 -m pip install dask distributed pandas pyarrow')
_PART = '.part-'


class ResultsError(Exception):
    """The folder cannot be used; the text says why."""


class Results:
    """The folder of a campaign, locked as long as it is open.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._flights = folder / 'flights'
        self._lock = -1

    def __enter__(self) -> Results:
        try:
            self._flights.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.folder / '.lock', os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise ResultsError(f'{self.folder} cannot be written: {error.strerror}') from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise ResultsError(f'{self.folder}: another campaign writes there now') from None
        for left in self._flights.glob(f'{_PART}*'):
            shutil.rmtree(left, ignore_errors=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        os.close(self._lock)

    def has(self, entry: Entry) -> bool:
        """Whether a flight is there, whole."""
        return self._row_file(entry.key).is_file()

    def put(self, outcome: Outcome, keep: str) -> None:
        """Write a flight; nothing, or all of it, is there then."""
        part = self._flights / f'{_PART}{outcome.key}'
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        whole = is_kept(str(outcome.row['failure']), keep)
        files = outcome.files if whole else {'entry.json': outcome.files['entry.json']}
        for name, data in files.items():
            _write(part / name, data)
        _write(part / 'row.json', json.dumps(outcome.row).encode())
        target = self._flights / outcome.key
        if target.exists():  # flown again, with its files
            shutil.rmtree(target)
        os.rename(part, target)
        _sync(self._flights)

    def rows(self, entries: Iterable[Entry]) -> list[dict[str, Value]]:
        """Return the rows of those flights that are there, in the order of the plan."""
        found = []
        for entry in entries:
            file = self._row_file(entry.key)
            if file.is_file():
                # A plan may have changed since: names and order are those of now.
                row = json.loads(file.read_text())
                row.update(index=entry.index, variant=entry.variant)
                found.append(row)
        return found

    def write_table(self, rows: Sequence[dict[str, Value]]) -> Path:
        """Write the table of all rows, in one go."""
        pandas = _pandas()
        file = self.folder / 'flights.parquet'
        part = self.folder / '.flights.parquet.part'
        pandas.DataFrame(list(rows)).to_parquet(part, index=False)
        os.replace(part, file)
        return file

    def write(self, name: str, text: str) -> Path:
        """Write a file beside the table, in one go."""
        part = self.folder / f'.{name}.part'
        _write(part, text.encode())
        file = self.folder / name
        os.replace(part, file)
        return file

    def _row_file(self, key: str) -> Path:
        return self._flights / key / 'row.json'


def _pandas() -> Any:
    try:
        import pandas
        import pyarrow  # noqa: F401
    except ImportError:
        raise ResultsError(MISSING) from None
    return pandas


def _write(path: Path, data: bytes) -> None:
    with path.open('wb') as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def number(value: Any) -> float:
    """Return a value of a row as a number; NaN for what is none."""
    return float(value) if isinstance(value, int | float) else math.nan
