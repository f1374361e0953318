"""Rows of the bench's table: ratios, and what they are ratios of."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.table import Table


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    part : str
        Name of the part.
    what : str
        What was timed.
    floor : str
        What it is compared with.
    ratio : float
        Time of `what` over the time of `floor`, or the other way round if `faster`.
    low, high : float
        Quartiles of the ratio over the repeats.
    faster : bool
        The ratio says how many times faster `what` is.
    limit : float or None
        Largest ratio that is allowed, or smallest if `faster`. None if nothing is promised.
    note : str
        What was measured on the two sides.
    unit : str
        What the ratio is of, e.g. ``the CPU``; time unless given.
    """

    part: str
    what: str
    floor: str
    ratio: float
    low: float
    high: float
    faster: bool = False
    limit: float | None = None
    note: str = ''
    unit: str = ''

    @property
    def held(self) -> bool | None:
        """Whether the limit is held; None without one."""
        if self.limit is None:
            return None
        return self.ratio >= self.limit if self.faster else self.ratio <= self.limit


def compare(part: str, what: str, ours: Callable[[], float], floor_name: str,
            floor: Callable[[], float], repeats: int, *, faster: bool = False,
            limit: float | None = None) -> Row:
    """Time two sides in turns and return the median of the ratios.

    Parameters
    ----------
    part, what, floor_name : str
        For the row.
    ours, floor : callable
        Do a piece of work and return the time it took for one unit of it, s.
    repeats : int
        Number of turns. One more of each goes first and is not counted.
    faster : bool, optional
        Give the ratio as floor over ours.
    limit : float, optional
        For the row.

    Returns
    -------
    Row
    """
    ours()
    floor()
    pairs = []
    for turn in range(repeats):
        if turn % 2:
            a, b = ours(), floor()
        else:
            b, a = floor(), ours()
        pairs.append((a, b))
    ratios = [b / a if faster else a / b for a, b in pairs]
    mean_a, mean_b = (statistics.median(side) for side in zip(*pairs, strict=True))
    return ratio_row(part, what, floor_name, ratios, faster=faster, limit=limit,
               note=f'{time_text(mean_a)} against {time_text(mean_b)}')


def ratio_row(part: str, what: str, floor: str, ratios: Sequence[float], *, faster: bool = False,
              limit: float | None = None, note: str = '', unit: str = '') -> Row:
    """Return the row of several ratios: their median and quartiles."""
    if len(ratios) > 1:
        low, ratio, high = statistics.quantiles(ratios, n=4)
    else:
        low = ratio = high = ratios[0]
    return Row(part, what, floor, ratio, low, high, faster, limit, note, unit)


def time_text(seconds: float) -> str:
    """Return a time with a unit that suits it."""
    for unit, name in ((1.0, 's'), (1e-3, 'ms'), (1e-6, 'µs')):
        if seconds >= unit:
            return f'{seconds / unit:.3g} {name}'
    return f'{seconds * 1e9:.3g} ns'


def table(rows: list[Row]) -> Table:
    """Return the rows as a table for the terminal."""
    result = Table(title='Ratios, median of the repeats (quartiles)', title_justify='left')
    for column in ('part', 'what', 'against'):
        result.add_column(column)
    for column in ('ratio', 'limit', 'measured'):
        result.add_column(column, justify='right')
    for row in rows:
        unit = f' x {row.unit or ("faster" if row.faster else "the time")}'
        style = {True: 'green', False: 'bold red', None: ''}[row.held]
        limit = '' if row.limit is None else f'{"≥" if row.faster else "≤"} {row.limit:g}'
        ratio = f'{row.ratio:.3g}{unit}\n({row.low:.3g} to {row.high:.3g})'
        result.add_row(row.part, row.what, row.floor, f'[{style}]{ratio}[/]' if style else ratio,
                       limit, row.note)
    return result


BEGIN, END = '<!-- bench -->', '<!-- /bench -->'


def markdown(rows: Sequence[Row], heading: str) -> str:
    """Return the rows as a Markdown table below a line of text."""
    lines = [heading, '', '| what | against | ratio | limit | measured |', '|---|---|---|---|---|']
    for row in rows:
        unit = row.unit or ('faster' if row.faster else 'the time')
        limit = '' if row.limit is None else (
            f'{"≥" if row.faster else "≤"} {row.limit:g}' + ('' if row.held else ' **missed**'))
        lines.append(f'| {row.what} | {row.floor} | {row.ratio:.3g} x {unit} | {limit} '
                     f'| {row.note} |')
    return '\n'.join(lines) + '\n'


def put_between_marks(text: str, new: str) -> str:
    """Return `text` with what is between `BEGIN` and `END` replaced; `new` alone without them."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f'{before}{begin}\n{new}{end}{after}' if begin and end else new
