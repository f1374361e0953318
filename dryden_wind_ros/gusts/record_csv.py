"""Recorded winds as CSV files: reading, judging and writing them."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

from dryden_wind_ros.gusts.air_settings import MAX_MEAN_WIND, MAX_UPDRAFT
from dryden_wind_ros.gusts.frames import Vector, mean_wind_enu
from dryden_wind_ros.gusts.inputs import short
from dryden_wind_ros.gusts.mean_wind import Record

MAX_RECORD_BYTES = 50_000_000
"""Size of the largest record; three hours at 20 Hz have about 10 MB."""

MAX_MISTAKES = 20
"""How many mistakes of one file are named."""

_ENU = ('east', 'north', 'up')
_SPEED = ('speed', 'from', 'up')


class ScenarioError(ValueError):
    """A scenario cannot be used.

    Attributes
    ----------
    mistakes : tuple of str
        What is wrong, and where.
    """

    def __init__(self, path: Path | str, mistakes: Sequence[str]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__(f'{path}: ' + '; '.join(self.mistakes))


def text_of(path: Path, most: int, what: str) -> str:
    """Return the text of a file of at most `most` bytes; refuse all else without reading it."""
    try:
        if not path.exists():
            raise ScenarioError(path, ['there is no such file'])
        if not path.is_file():
            raise ScenarioError(path, [f'this is not a file; {what} was expected'])
        size = path.stat().st_size
        if size > most:
            raise ScenarioError(path, [f'it has {size / 1e6:.0f} MB; {what} has at most '
                                       f'{most / 1e6:g} MB'])
        return path.read_text(encoding='utf-8-sig')
    except OSError as error:
        raise ScenarioError(path, [f'cannot be read: {error.strerror}']) from None
    except UnicodeDecodeError as error:
        raise ScenarioError(path, [f'this is not text: {error.reason} at byte {error.start}'
                                   ]) from None


def read_csv(path: Path, by: str = 'time') -> Record:
    """Read a recorded wind.

    Parameters
    ----------
    path : Path
        A CSV file: lines that begin with # are passed over, then the names of the columns: ``t``
        (s, rising) or ``height`` (m, rising), and ``east, north`` (m/s) or ``speed, from`` (m/s,
        degrees), and ``up`` (m/s; 0 where it is missing).
    by : {'time', 'height'}, optional
        Which of the two.

    Raises
    ------
    ScenarioError
        Naming every mistake with its line.
    """
    text = text_of(path, MAX_RECORD_BYTES, 'a record')
    first = 't' if by == 'time' else 'height'
    lines = ((number, line) for number, line in enumerate(text.splitlines(), 1)
             if line.strip() and not line.startswith('#'))
    number, header = next(lines, (1, ''))
    names = [name.strip() for name in next(csv.reader([header]), [])]
    columns = _ENU if {'east', 'north'} & set(names) else _SPEED
    missing = [name for name in (first, *columns[:2]) if name not in names]
    unknown = [name for name in names if name not in (first, *columns)]
    mistakes = []
    if missing:
        mistakes.append(f'line {number}: no column {", ".join(missing)}; needed are {first} and '
                        'east, north or speed, from')
    if unknown:
        name = short(unknown[0]) or 'without a name'
        mistakes.append(f'line {number}: column {name} is unknown; known are {first}, '
                        f'{", ".join(columns)}')
    if len(set(names)) < len(names):
        mistakes.append(f'line {number}: a column is there twice')
    if mistakes:
        raise ScenarioError(path, mistakes)
    xs: list[float] = []
    winds: list[Vector] = []
    places = [names.index(name) for name in (first, *columns) if name in names]
    for number, line in lines:
        try:
            x, *wind = _row(line, places, len(names))
            winds.append(_checked_wind(columns, wind))
            if xs and not x > xs[-1]:
                raise ValueError(f'{first} is {x:g}, not above the {xs[-1]:g} of the row before; '
                                 f'{"times" if by == "time" else "heights"} must rise')
            xs.append(x)
        except ValueError as error:
            mistakes.append(f'line {number}: {error}')
            if len(mistakes) == MAX_MISTAKES:
                mistakes.append('and maybe more')
                break
    if not xs and not mistakes:
        mistakes.append('there is no row below the names of the columns')
    if mistakes:
        raise ScenarioError(path, mistakes)
    return Record(by, tuple(xs), tuple(winds), source=path.name)


def _row(line: str, places: Sequence[int], width: int) -> list[float]:
    fields = line.split(',')
    if len(fields) != width:
        raise ValueError(f'{len(fields)} columns instead of {width}')
    numbers = []
    for place in places:
        try:
            number = float(fields[place])
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise ValueError(f'{short(fields[place].strip()) or "nothing"} in column {place + 1} '
                             'is not a finite number')
        numbers.append(number)
    return numbers


def _checked_wind(columns: Sequence[str], wind: Sequence[float]) -> Vector:
    first, second = wind[:2]
    up = wind[2] if len(wind) > 2 else 0.0
    if columns is _SPEED:
        if not (first >= 0.0 and abs(second) <= 360.0):
            raise ValueError(f'speed is {first:g} m/s, from is {second:g} deg; allowed are 0 to '
                             f'{MAX_MEAN_WIND:g} m/s and -360 to 360 deg')
        first, second, up = mean_wind_enu(first, second, up)
    speed = math.hypot(first, second)
    if not (speed <= MAX_MEAN_WIND and abs(up) <= MAX_UPDRAFT):
        raise ValueError(f'the wind is {speed:g} m/s with an updraft of {up:g} m/s; allowed are '
                         f'{MAX_MEAN_WIND:g} and {MAX_UPDRAFT:g} m/s')
    return first, second, up


def write_csv(record: Record, path: Path, remarks: Sequence[str] = ()) -> None:
    """Write a record so that `read_csv` reads the same numbers.

    Parameters
    ----------
    record : Record
        The samples.
    path : Path
        Where to.
    remarks : sequence of str, optional
        Lines to begin with, for people.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    lines = [f'# {remark}' for remark in remarks]
    lines.append(','.join(('t' if record.by == 'time' else 'height', *_ENU)))
    lines += [','.join(map(repr, (x, *wind)))
              for x, wind in zip(record.x, record.enu, strict=True)]
    path.write_text('\n'.join(lines) + '\n', encoding='utf-8')
