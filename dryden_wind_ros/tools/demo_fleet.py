"""The demo with several vehicles: a formation in one air, and the gust passing along it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.table import Table

SPACING_M = 16.0
TICK_S = 0.05

FloatArray = npt.NDArray[np.float64]


def fleet_file(folder: Path, names: Sequence[str], connection: Callable[[int], str]) -> Path:
    """Write the list of vehicles for ``wind_fleet`` and return its path."""
    path = folder / 'fleet.yaml'
    path.write_text('\n'.join(
        f'- {{name: {name}, connection: "{connection(i)}"}}' for i, name in enumerate(names)))
    return path


def gusts_by_time(states: Sequence[Sequence[Any]]) -> tuple[FloatArray, FloatArray]:
    """Return common times of the air, s, shape (T,), and gusts u, shape (vehicles, T)."""
    tables = [{round(s.air_time / TICK_S): s.u for s in heard} for heard in states]
    ticks = sorted(set.intersection(*(set(table) for table in tables)))
    return (np.array(ticks) * TICK_S,
            np.array([[table[tick] for tick in ticks] for table in tables]))


def delay(first: FloatArray, later: FloatArray, longest: float = 8.0) -> tuple[float, float]:
    """Return after how many s the second meets the gusts of the first, and how alike they are."""
    steps = min(round(longest / TICK_S), len(first) // 2)
    alike = [float(np.corrcoef(first[:len(first) - k], later[k:])[0, 1]) for k in range(steps)]
    best = int(np.argmax(alike))
    return best * TICK_S, alike[best]


def passing_table(gusts: FloatArray, wind: float, field: bool) -> Table:
    """Return a table of how the gusts pass from one vehicle to the next."""
    table = Table(title='Gusts along the wind (u), from each vehicle to the next',
                  title_justify='left')
    table.add_column('vehicles')
    for heading in ('apart, m', 'met after, s', 'distance / wind, s', 'correlation then'):
        table.add_column(heading, justify='right')
    for i in range(len(gusts) - 1):
        lag, alike = delay(gusts[i], gusts[i + 1])
        table.add_row(f'{i + 1} to {i + 2}', f'{SPACING_M:g}', f'{lag:.2f}',
                      f'{SPACING_M / wind:.2f}' if field and wind else '', f'{alike:.2f}')
    return table


def passing_picture(times: FloatArray, gusts: FloatArray, title: str, path: Path) -> Path:
    """Draw u of all vehicles below each other, downwind ones lower, and return the path."""
    from matplotlib.figure import Figure
    shown = times - times[0] <= 60.0
    figure = Figure(figsize=(10.0, 1.2 + 1.5 * len(gusts)), layout='constrained')
    axes = figure.subplots(len(gusts), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for i, (one, gust) in enumerate(zip(axes, gusts, strict=True)):
        one.plot(times[shown], gust[shown], linewidth=1.1, color=f'C{i}')
        one.set_ylabel(f'{i * SPACING_M:g} m downwind\nu, m/s')
        one.grid(alpha=0.3)
        one.margins(x=0)
    axes[0].set_title(title, loc='left')
    axes[-1].set_xlabel('time of the air, s')
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return path.resolve()
