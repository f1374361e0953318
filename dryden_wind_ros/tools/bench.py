"""How fast it is, as ratios: ``python -m dryden_wind_ros.tools.bench``.

Every figure is a time divided by the time of a floor that the table names, both taken in the same
run and in turns, so that a slow or busy machine slows both. A part is a function that returns rows;
`PARTS` lists them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from dryden_wind_ros.gusts.dryden import METHODS, DrydenGust, DrydenGustFleet


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
        Times behind the ratio.
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

    @property
    def held(self) -> bool | None:
        """Whether the limit is held; None without one."""
        if self.limit is None:
            return None
        return self.ratio >= self.limit if self.faster else self.ratio <= self.limit


@dataclass(frozen=True)
class Part:
    """A group of figures that can be asked for by name."""

    name: str
    description: str
    run: Callable[[], list[Row]]


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
    low, ratio, high = statistics.quantiles(ratios, n=4)
    mean_a, mean_b = (statistics.median(side) for side in zip(*pairs, strict=True))
    note = f'{_time(mean_a)} against {_time(mean_b)}'
    return Row(part, what, floor_name, ratio, low, high, faster, limit, note)


def _time(seconds: float) -> str:
    for unit, name in ((1.0, 's'), (1e-3, 'ms'), (1e-6, 'µs')):
        if seconds >= unit:
            return f'{seconds / unit:.3g} {name}'
    return f'{seconds * 1e9:.3g} ns'


# ---- model: what the class costs over its arithmetic


def _bare_exact(u: float, v: float, w: float, last: float, t: float, mean_wind: float,
                height: float, airspeed: float, gauss: Callable[[float, float], float],
                ) -> tuple[float, float, float]:
    if t <= last or mean_wind == 0.0:
        return u, v, w
    dt = t - last
    if dt > 0.5:
        dt = 0.5
    speed = airspeed if airspeed > mean_wind else mean_wind
    if speed < 1.0:
        speed = 1.0
    if height < 3.0:
        height = 3.0
    if height > 304.8:
        height = 304.8
    power = (0.177 + 0.000823 / 0.3048 * height) ** 0.4
    sigma_w = 0.1 * mean_wind
    sigma_u = sigma_w / power
    a_w = dt * speed / height
    phi_u = math.exp(-a_w * power * power * power)
    phi_v = phi_u * phi_u
    phi_w = math.exp(-a_w)
    return (phi_u * u + sigma_u * math.sqrt(1.0 - phi_v) * gauss(0.0, 1.0),
            phi_v * v + sigma_u * math.sqrt(1.0 - phi_v * phi_v) * gauss(0.0, 1.0),
            phi_w * w + sigma_w * math.sqrt(1.0 - phi_w * phi_w) * gauss(0.0, 1.0))


def _bare_euler(u: float, v: float, w: float, last: float, t: float, mean_wind: float,
                height: float, airspeed: float, gauss: Callable[[float, float], float],
                ) -> tuple[float, float, float]:
    if t <= last or mean_wind == 0.0:
        return u, v, w
    dt = t - last
    if dt > 0.5:
        dt = 0.5
    speed = airspeed if airspeed > mean_wind else mean_wind
    if speed < 1.0:
        speed = 1.0
    if height < 3.0:
        height = 3.0
    height_ft = height * 3.281
    if height_ft > 1000.0:
        height_ft = 1000.0
    base = 0.177 + 0.000823 * height_ft
    sigma_w = 0.1 * mean_wind
    sigma_u = sigma_w / base**0.4
    a_u = dt * speed / (height_ft / base**1.2 * 0.3048)
    a_v = 2.0 * a_u
    a_w = dt * speed / (height_ft * 0.3048)
    return ((1.0 - a_u) * u + sigma_u * math.sqrt(2.0 * a_u) * gauss(0.0, 1.0),
            (1.0 - a_v) * v + sigma_u * math.sqrt(2.0 * a_v) * gauss(0.0, 1.0),
            (1.0 - a_w) * w + sigma_w * math.sqrt(2.0 * a_w) * gauss(0.0, 1.0))


def run_model() -> list[Row]:
    """Compare `DrydenGust.step` with its arithmetic written as one function."""
    steps = 100  # short turns: a busy machine then disturbs few of them
    rows = []
    for method, bare in zip(METHODS, (_bare_exact, _bare_euler), strict=True):
        gust = DrydenGust(7, method)
        gauss = random.Random(7).gauss
        clock = 0.0

        def ours(gust: DrydenGust = gust) -> float:
            nonlocal clock
            t = clock
            step = gust.step
            start = time.perf_counter()
            for _ in range(steps):
                t += 0.05
                step(t, 8.0, 20.0, 12.0)
            clock = t
            return (time.perf_counter() - start) / steps

        def floor(bare: Callable[..., tuple[float, float, float]] = bare,
                  gauss: Callable[[float, float], float] = gauss) -> float:
            u = v = w = t = 0.0
            start = time.perf_counter()
            for _ in range(steps):
                last = t
                t += 0.05
                u, v, w = bare(u, v, w, last, t, 8.0, 20.0, 12.0, gauss)
            return (time.perf_counter() - start) / steps

        rows.append(compare('model', f'DrydenGust.step, {method}', ours,
                            'the same arithmetic as one bare function', floor, 1000, limit=1.15))
    return rows


# ---- fleet: what stepping together saves


def run_fleet() -> list[Row]:
    """Compare `DrydenGustFleet.step` with a loop over as many `DrydenGust`."""
    n = 1000
    return [
        _compare_fleet(n, 'the same inputs for all', changing=False, limit=50.0),
        _compare_fleet(n, 'an array for each input, new at every step', changing=True, limit=None),
    ]


def _compare_fleet(n: int, inputs: str, *, changing: bool, limit: float | None) -> Row:
    fleet_steps, loop_steps = 512, 10  # two blocks of draws for the fleet
    fleet = DrydenGustFleet(range(n))
    gusts = [DrydenGust(seed) for seed in range(n)]
    height, wind, airspeed = (np.linspace(a, b, n) for a, b in ((3, 100), (4, 9), (0, 20)))
    fleet_clock = loop_clock = 0.0

    def ours() -> float:
        nonlocal fleet_clock, height, wind, airspeed
        start = time.perf_counter()
        for _ in range(fleet_steps):
            fleet_clock += 0.05
            if changing:
                height += 0.001
                wind += 1e-5
                airspeed += 1e-4
                fleet.step(fleet_clock, wind, height, airspeed)
            else:
                fleet.step(fleet_clock, 8.0, 20.0, 12.0)
        fleet._draws.finish()  # which would go on at the expense of the other side
        return (time.perf_counter() - start) / (fleet_steps * n)

    def floor() -> float:
        nonlocal loop_clock
        winds, heights, airspeeds = wind.tolist(), height.tolist(), airspeed.tolist()
        start = time.perf_counter()
        for _ in range(loop_steps):
            loop_clock += 0.05
            if changing:
                for gust, a, b, c in zip(gusts, winds, heights, airspeeds, strict=True):
                    gust.step(loop_clock, a, b, c)
            else:
                for gust in gusts:
                    gust.step(loop_clock, 8.0, 20.0, 12.0)
        return (time.perf_counter() - start) / (loop_steps * n)

    return compare('fleet', f'DrydenGustFleet.step, {n} vehicles, {inputs}', ours,
                   f'a loop over {n} DrydenGust', floor, 30, faster=True, limit=limit)


PARTS: list[Part] = [
    Part('model', 'DrydenGust.step against its bare arithmetic', run_model),
    Part('fleet', 'DrydenGustFleet.step against a loop over DrydenGust', run_fleet),
]
"""All parts, in the order of the table."""


def table(rows: list[Row]) -> Table:
    """Return the rows as a table for the terminal."""
    result = Table(title='Ratios, median of the repeats (quartiles)', title_justify='left')
    for column in ('part', 'what', 'against'):
        result.add_column(column)
    for column in ('ratio', 'limit', 'times'):
        result.add_column(column, justify='right')
    for row in rows:
        unit = ' x faster' if row.faster else ' x the time'
        style = {True: 'green', False: 'bold red', None: ''}[row.held]
        limit = '' if row.limit is None else f'{"≥" if row.faster else "≤"} {row.limit:g}'
        ratio = f'{row.ratio:.3g}{unit}\n({row.low:.3g} to {row.high:.3g})'
        result.add_row(row.part, row.what, row.floor, f'[{style}]{ratio}[/]' if style else ratio,
                       limit, row.note)
    return result


def main(args: list[str] | None = None) -> int:
    """Run the chosen parts and print the table.

    Parameters
    ----------
    args : list of str, optional
        Command line, without the program's name.

    Returns
    -------
    int
        0, or 1 if a limit was not held.
    """
    names = [part.name for part in PARTS]
    parser = argparse.ArgumentParser(
        prog='python -m dryden_wind_ros.tools.bench', description=__doc__.split('\n')[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog='parts:\n' + '\n'.join(f'  {part.name:10} {part.description}' for part in PARTS))
    parser.add_argument('--part', nargs='+', choices=names, action='extend', metavar='NAME',
                        help='run only these parts: ' + ', '.join(names))
    parser.add_argument('--json', metavar='FILE', help='write the rows there too; - is stdout')
    options = parser.parse_args(args)
    chosen = [part for part in PARTS if options.part is None or part.name in options.part]

    console = Console(stderr=options.json == '-')
    rows: list[Row] = []
    with Progress(TextColumn('{task.description}'), BarColumn(), MofNCompleteColumn(),
                  TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task('', total=len(chosen))
        for part in chosen:
            progress.update(task, description=f'{part.name}: {part.description}')
            rows += part.run()
            progress.advance(task)
    console.print(table(rows))

    if options.json is not None:
        text = json.dumps({
            'python': platform.python_version(), 'numpy': np.__version__, 'cpus': os.cpu_count(),
            'rows': [{**asdict(row), 'held': row.held} for row in rows]}, indent=2)
        if options.json == '-':
            print(text)
        else:
            Path(options.json).write_text(text + '\n', encoding='utf-8')
    return 1 if any(row.held is False for row in rows) else 0


if __name__ == '__main__':
    sys.exit(main())
