"""Parts `field` and `arriving`: what one air for everybody costs, and where it is asked for."""

from __future__ import annotations

import math
import time

import numpy as np

from dryden_wind_ros.gusts.air_settings import DEFAULT_LEAD
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


# ---- arriving: what it is worth to ask for the air where it will be felt

_SPEED, _DELAY, _TICK = 25.0, 0.02, 0.05


def run_arriving(bench: Bench) -> list[Row]:
    """Compare the wind that acts on a plane with that of where it is, asked with and without lead.

    The plane circles at 25 m/s. At each tick the air is asked for with a position one tick old, is
    felt 20 ms later and then held for a tick, as SITL does.
    """
    seconds = 20 if bench.quick else 120
    field = TurbulenceField(7)
    errors = {lead: _error_without(field, lead, seconds) for lead in (0.0, DEFAULT_LEAD)}
    ratio = errors[DEFAULT_LEAD] / errors[0.0]
    return [Row(
        'arriving', f'error of the wind at a plane at 25 m/s, asked {DEFAULT_LEAD:g} s ahead',
        'asked at the tick, where it was last heard', ratio, ratio, ratio, limit=1.0,
        note=f'{errors[DEFAULT_LEAD]:.2f} m/s against {errors[0.0]:.2f} m/s rms',
        unit='the error')]


def _error_without(field: TurbulenceField, lead: float, seconds: float) -> float:
    """Return the rms error of the wind that acts, m/s, over a flight of a circle of 60 m."""
    def place(t: np.ndarray) -> np.ndarray:
        turn = _SPEED / 60.0 * t
        return np.column_stack((60.0 * np.sin(turn), 60.0 * np.cos(turn), np.full(len(t), 30.0)))

    def gust(places: np.ndarray, t: np.ndarray) -> np.ndarray:
        return field.gust(places, t, (8.0, 0.0, 0.0))

    ticks = np.arange(round(seconds / _TICK)) * _TICK
    heard = ticks - _TICK
    positions = place(heard)
    if lead:
        turn = _SPEED / 60.0 * heard
        velocity = _SPEED * np.column_stack((np.cos(turn), -np.sin(turn), np.zeros(len(turn))))
        positions = positions + (_TICK + lead) * velocity
    held = gust(positions, ticks + lead)
    parts = 5
    squares = 0.0
    for part in range(parts):
        felt = ticks + _DELAY + (part + 0.5) / parts * _TICK
        squares += float(((held - gust(place(felt), felt)) ** 2).sum(axis=1).mean()) / parts
    return math.sqrt(squares)
