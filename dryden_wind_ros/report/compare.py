"""Two flights of an A/B pair: did they meet the same air, and what set them apart.

Ticks are compared by their number, as the seed's draws are numbered by it. The draws themselves
are recovered from the gusts (see `analysis.recover_draws`), so they can be compared also where
height or airspeed made the gusts differ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from dryden_wind_ros.gusts.tick_grid import TICK_S
from dryden_wind_ros.report.analysis import Analysis
from dryden_wind_ros.report.flight import AXES, FlightRecord, FloatArray, IntArray, Settings

SAME_GUST = 1e-9
"""Gusts that differ by less are the same, m/s: rounding of files and messages."""

CLOSE_GUST = 0.05
"""Gusts that differ by less are close, m/s."""

_SAME_DRAW = 1e-6


@dataclass(frozen=True)
class Parted:
    """How far one quantity parted the flights over their common ticks.

    Attributes
    ----------
    name, unit : str
        What it is.
    mean : float
        Mean of b - a.
    rms, largest : float
        Root mean square, and largest size, of b - a.
    largest_at : float
        Sim time of the largest, s on flight a's clock.
    """

    name: str
    unit: str
    mean: float
    rms: float
    largest: float
    largest_at: float


@dataclass(frozen=True)
class Comparison:
    """Flight b beside flight a.

    Attributes
    ----------
    verdict : {'same', 'same draws', 'other draws', 'unknown'}
        The same gusts; the same draws but other gusts; other draws; cannot be told.
    text : str
        The verdict in a sentence or two.
    common : int
        Ticks that both recorded.
    draws : int
        Ticks whose draws can be told in both.
    draws_same : int
        How many of them are equal.
    settings : tuple of (str, str, str)
        Settings that differ: name, in a, in b.
    gusts_same, gusts_close : int
        Common ticks with equal u, v, w (within 1e-9 m/s), and with u, v, w within 0.05 m/s.
    parted : tuple of Parted
        Height, airspeed, u, v, w.
    correlation : ndarray, shape (3,)
        Correlation of u, v, w; NaN where there is none.
    row_a, row_b : ndarray of int, shape (common,)
        Rows of the common ticks.
    """

    verdict: str
    text: str
    common: int
    draws: int
    draws_same: int
    settings: tuple[tuple[str, str, str], ...]
    gusts_same: int
    gusts_close: int
    parted: tuple[Parted, ...]
    correlation: FloatArray
    row_a: IntArray
    row_b: IntArray


def compare(a: FlightRecord, in_a: Analysis, b: FlightRecord, in_b: Analysis) -> Comparison:
    """Compare two flights tick by tick; of a tick flown twice (a restart), the last."""
    row_a, row_b = _common_rows(a.air.tick, b.air.tick)
    draw_a, draw_b = _common_rows(in_a.draws.tick, in_b.draws.tick)
    apart = np.abs(in_a.draws.values[:, draw_a] - in_b.draws.values[:, draw_b]).max(
        axis=0, initial=0.0)
    same = int((apart < _SAME_DRAW).sum())
    gust_a, gust_b = a.air.gust[:, row_a], b.air.gust[:, row_b]
    gust_apart = np.abs(gust_a - gust_b).max(axis=0, initial=0.0)
    gusts_same = int((gust_apart < SAME_GUST).sum())
    t = a.air.t[row_a]
    parted = [found for found in (
        _part('height', 'm', t, a.air.height[row_a], b.air.height[row_b]),
        _part('airspeed', 'm/s', t, a.air.airspeed[row_a], b.air.airspeed[row_b]),
        *(_part(axis, 'm/s', t, gust_a[i], gust_b[i]) for i, axis in enumerate(AXES)))
        if found is not None]
    settings = _differences(a.settings, b.settings)
    verdict, text = _judge(a, b, len(row_a), gusts_same, len(draw_a), same, settings, parted)
    return Comparison(
        verdict, text, len(row_a), len(draw_a), same, settings, gusts_same,
        int((gust_apart < CLOSE_GUST).sum()), tuple(parted),
        np.array([_correlation(gust_a[i], gust_b[i]) for i in range(3)]), row_a, row_b)


def _common_rows(a: IntArray, b: IntArray) -> tuple[IntArray, IntArray]:
    last_a, last_b = ({int(tick): row for row, tick in enumerate(ticks)} for ticks in (a, b))
    ticks = sorted(last_a.keys() & last_b.keys())
    return (np.array([last_a[k] for k in ticks], dtype=np.int64),
            np.array([last_b[k] for k in ticks], dtype=np.int64))


def _part(name: str, unit: str, t: FloatArray, a: FloatArray, b: FloatArray) -> Parted | None:
    apart = b - a
    there = np.flatnonzero(np.isfinite(apart))
    if not len(there):
        return None
    apart = apart[there]
    worst = int(np.abs(apart).argmax())
    return Parted(name, unit, float(apart.mean()), math.sqrt(float((apart**2).mean())),
                  float(abs(apart[worst])), float(t[there[worst]]))


def _correlation(a: FloatArray, b: FloatArray) -> float:
    size = math.sqrt(float((a @ a) * (b @ b))) if len(a) else 0.0
    return float(a @ b) / size if size > 0.0 else math.nan


def _differences(a: tuple[Settings, ...],
                 b: tuple[Settings, ...]) -> tuple[tuple[str, str, str], ...]:
    def values(settings: tuple[Settings, ...], name: str) -> str:
        return ', then '.join(dict.fromkeys(_text(getattr(s, name)) for s in settings)) or 'unknown'

    if not a or not b:
        return ()
    names = [field.name for field in fields(Settings)]
    return tuple((name, values(a, name), values(b, name)) for name in names
                 if values(a, name) != values(b, name))


def _text(value: object) -> str:
    return f'{value:g}' if isinstance(value, float) else str(value) or '(none)'


def _judge(a: FlightRecord, b: FlightRecord, common: int, gusts_same: int, draws: int, same: int,
           settings: tuple[tuple[str, str, str], ...],
           parted: list[Parted]) -> tuple[str, str]:
    if not (a.settings and b.settings):
        lacking = ' and '.join(f.name for f in (a, b) if not f.settings)
        return 'unknown', (f'Cannot be told: {lacking} has no wind/state, so neither seed nor '
                           'draws are known.')
    if not common:
        return 'unknown', ('Cannot be told: the flights have no tick number in common '
                           f'({_range(a)}; {_range(b)}).')
    if not draws:
        return 'unknown', 'Cannot be told: Dryden gusts never blew in both at the same tick.'
    seconds = common * TICK_S
    span = f'{common} ticks in common ({seconds:.0f} s)'
    if same == draws and gusts_same == common:
        return 'same', f'The same air: the gusts are equal at each of the {span}.'
    if same >= 0.999 * draws:
        which = 'all' if same == draws else f'{same} of'
        why = [f'{name} ({x} and {y})' for name, x, y in settings
               if name in ('method', 'scale', 'mean_speed', 'gusts')]
        why += [f'{p.name} (up to {p.largest:.2g} {p.unit} apart)' for p in parted[:2]
                if p.largest > 0.0 and p.name in ('height', 'airspeed')]
        starts = [int(f.air.tick[0]) for f in (a, b)]
        if starts[0] != starts[1] and any((f.air.gust[:, 0] == 0.0).all() for f in (a, b)):
            why.append(f'the start from rest at ticks {starts[0]} and {starts[1]}, which fades')
        cause = f' What parted the gusts: {", ".join(why)}.' if why else ''
        return 'same draws', (f'The same draws in {which} {draws} ticks compared, '
                              f'but not the same gusts: {gusts_same} of {span} are equal.{cause}')
    seeds = next((f' The seeds are {x} and {y}.' for name, x, y in settings if name == 'seed'), '')
    return 'other draws', (f'Not the same air: only {same} of {draws} draws compared are '
                           f'equal.{seeds}')


def _range(flight: FlightRecord) -> str:
    ticks = flight.air.tick
    return (f'{flight.name}: ticks {ticks.min()} to {ticks.max()}' if len(ticks)
            else f'{flight.name}: none')
