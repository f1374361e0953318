"""Part `field`: one air for everybody, against the sines and cosines that it cannot do without."""

from __future__ import annotations

import time

import numpy as np

from dryden_wind_ros.gusts.field import TurbulenceField
from dryden_wind_ros.tools.bench_parts.stage import Bench
from dryden_wind_ros.tools.bench_parts.table import Row, compare

_LIMITED = 100
_BLOCK = 16384  # numbers whose sines are taken at once: they stay in the cache


def run_field(bench: Bench) -> list[Row]:
    """Compare `TurbulenceField.gust` with one bare sine and cosine for each mode and vehicle."""
    field = TurbulenceField(7)
    rows = []
    for vehicles in (1, 10, 100, 1000):
        repeats = bench.repeats(max(5, 300 // vehicles))
        rows.append(_compare(field, vehicles, repeats))
    rows.append(_compare(TurbulenceField(7, spectrum='von_karman'), _LIMITED, bench.repeats(5)))
    return rows


def _compare(field: TurbulenceField, vehicles: int, repeats: int) -> Row:
    random = np.random.default_rng(1)
    positions = random.uniform(3.0, 120.0, (vehicles, 3))
    numbers = vehicles * field.modes
    blocks, rest = divmod(numbers, _BLOCK)
    sizes = [_BLOCK] * blocks + [rest] * bool(rest)
    phases = random.uniform(-np.pi, np.pi, max(sizes)).astype(np.float32)
    result = np.empty_like(phases)
    clock = 0.0

    def ours() -> float:
        nonlocal clock
        clock += 0.05
        start = time.perf_counter()
        field.gust(positions, clock, (8.0, 0.0, 0.0))
        return (time.perf_counter() - start) / vehicles

    def floor() -> float:
        start = time.perf_counter()
        for size in sizes:
            np.sin(phases[:size], out=result[:size])
            np.cos(phases[:size], out=result[:size])
        return (time.perf_counter() - start) / vehicles

    name = f'TurbulenceField.gust, {vehicles} vehicle{"s" if vehicles > 1 else ""}'
    limited = vehicles == _LIMITED and field.spectrum == 'dryden'
    return compare('field', name + (', von Karman' if field.spectrum != 'dryden' else ''), ours,
                   f'float32 sine and cosine of {numbers} numbers', floor, repeats,
                   limit=6.0 if limited else None)
