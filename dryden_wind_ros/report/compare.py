"""Two flights of an A/B pair: did they meet the same air, and what set them apart.

Ticks are compared by their number, as the seed's draws are numbered by it: the gust, the wind (mean
and gust, east, north, up) and the settings in force, tick by tick. The draws themselves are
recovered from the gusts (see `draws.recover_draws`), so they can be compared also where height or
airspeed made the gusts differ. Where a record holds no settings (a vehicle's own log), what is left
to compare is the wind that SITL was given.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from dryden_wind_ros.gusts.tick_grid import TICK_S
from dryden_wind_ros.report.analysis import Analysis
from dryden_wind_ros.report.flight import (
    AXES,
    Air,
    BoolArray,
    FlightRecord,
    FloatArray,
    IntArray,
    Settings,
)
from dryden_wind_ros.report.words import WORDS

SAME_GUST = 1e-9
"""Gusts and winds that differ by less are the same, m/s: rounding of files and messages."""

CLOSE_GUST = 0.05
"""Gusts that differ by less are close, m/s."""

SAME_GIVEN = 0.05
"""SIM_WIND_* in logs that differ by less, as a vector, are the same, m/s: they are stored as floats
of 32 bits, and SITL takes each of the three up on whichever loop follows."""

FAIR = {
    'same': 'the same wind, gusts and settings at every tick',
    'same draws': 'the same draws and settings; height, airspeed or the start parted the gusts',
    'same settings': 'the same seed and settings of an air whose draws cannot be recovered',
    'same given': 'the same SIM_WIND_*, which is all that the records hold',
}
"""Verdicts on which two flights make a fair pair, and what they mean."""

_SAME_DRAW = 1e-6
_SHIFT = 2  # ticks by which SITL may have taken up the same wind earlier or later
_ENU = ('east', 'north', 'up')


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
class Differs:
    """A setting that was not the same in both flights at the same tick.

    Attributes
    ----------
    name : str
        Field of `Settings`.
    a, b : str
        What it was in each flight over the common ticks, with the times of its changes.
    ticks : int
        Common ticks at which it differs.
    first : float
        Sim time of the first of them, s on flight a's clock.
    """

    name: str
    a: str
    b: str
    ticks: int
    first: float


@dataclass(frozen=True)
class Comparison:
    """Flight b beside flight a.

    Attributes
    ----------
    verdict : str
        One of `FAIR`, or 'other settings': the same draws, but another mean wind or strength was
        asked for; 'other': other draws, or another wind; 'other given': another SIM_WIND_*;
        'unknown': it cannot be told.
    text : str
        The verdict in a sentence or two.
    common : int
        Ticks that both recorded.
    draws : int
        Ticks whose draws can be told in both.
    draws_same : int
        How many of them are equal.
    settings : tuple of Differs
        Settings that differ at common ticks.
    gusts_same, gusts_close : int
        Common ticks with equal u, v, w (within 1e-9 m/s), and with u, v, w within 0.05 m/s.
    wind_same : int
        Common ticks with equal wind: east, north, up within 1e-9 m/s; of SIM_WIND_*, within 0.05.
    parted : tuple of Parted
        Height, airspeed, u, v, w, and the wind to the east, to the north and up.
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
    settings: tuple[Differs, ...]
    gusts_same: int
    gusts_close: int
    wind_same: int
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
    told = bool(a.settings and b.settings)
    t = a.air.t[row_a]
    gust_a, gust_b = a.air.gust[:, row_a], b.air.gust[:, row_b]
    wind_a, wind_b = _wind(a.air)[:, row_a], _wind(b.air)[:, row_b]
    gust_apart = np.abs(gust_a - gust_b).max(axis=0, initial=0.0)
    if told:
        wind_same = np.abs(wind_a - wind_b).max(axis=0, initial=0.0) < SAME_GUST
    else:
        wind_same = _same_given(wind_a, wind_b, row_a, row_b)
    compared = [('height', 'm', a.air.height[row_a], b.air.height[row_b]),
                ('airspeed', 'm/s', a.air.airspeed[row_a], b.air.airspeed[row_b])]
    if told:  # without settings, u and v are along and across each record's own mean
        compared += [(axis, 'm/s', gust_a[i], gust_b[i]) for i, axis in enumerate(AXES)]
    compared += [(f'wind {to}', 'm/s', wind_a[i], wind_b[i]) for i, to in enumerate(_ENU)]
    parted = tuple(part for name, unit, x, y in compared
                   if (part := _part(name, unit, t, x, y)) is not None)
    found = Comparison(
        verdict='unknown', text='', common=len(row_a), draws=len(draw_a), draws_same=same,
        settings=_differences(a, b, row_a, row_b) if told else (),
        gusts_same=int((gust_apart < SAME_GUST).sum()) if told else 0,
        gusts_close=int((gust_apart < CLOSE_GUST).sum()) if told else 0,
        wind_same=int(wind_same.sum()), parted=parted,
        correlation=np.array([_correlation(gust_a[i], gust_b[i]) for i in range(3)]),
        row_a=row_a, row_b=row_b)
    verdict, text = _judge(a, b, found) if told else _judge_given(a, b, found, wind_a, wind_b)
    return replace(found, verdict=verdict, text=text)


def _wind(air: Air) -> FloatArray:
    return air.mean_enu + air.gust_enu


def _same_given(a: FloatArray, b: FloatArray, row_a: IntArray, row_b: IntArray) -> BoolArray:
    """Return at which ticks the winds agree, each with one of the other's of up to 0.1 s away."""
    if not len(row_a):
        return np.zeros(0, dtype=bool)

    def near(x: FloatArray, y: FloatArray) -> BoolArray:
        found = np.zeros(x.shape[1], dtype=bool)
        places = np.arange(x.shape[1])
        for shift in range(-_SHIFT, _SHIFT + 1):
            other = y[:, np.clip(places + shift, 0, x.shape[1] - 1)]
            found |= np.sqrt(((x - other)**2).sum(axis=0)) < SAME_GIVEN
        return found

    calm = np.isnan(a).all(axis=0) & np.isnan(b).all(axis=0)  # before the wind, in both
    return np.asarray((near(a, b) & near(b, a)) | calm)


def pair_up(files: Sequence[Sequence[FlightRecord]]) -> tuple[list[tuple[int, int]], list[str]]:
    """Say which flights to compare: those of the first file with those of each other one.

    Vehicles of a fleet are paired by the names of their namespaces, flights of one vehicle in one
    file by their number; a single flight on each side is a pair whatever its name.

    Parameters
    ----------
    files : sequence of sequence of FlightRecord
        The flights in each file.

    Returns
    -------
    pairs : list of (int, int)
        Places in the list of all flights.
    left : list of str
        What has no partner, in words.
    """
    pairs, left = [], []
    start = len(files[0]) if files else 0
    for flights in files[1:]:
        if len(flights) == len(files[0]) == 1:
            pairs.append((0, start))
        else:
            there = {(f.namespace, max(f.number, 1)): start + at for at, f in enumerate(flights)}
            for at, flight in enumerate(files[0]):
                other = there.pop((flight.namespace, max(flight.number, 1)), None)
                if other is None:
                    left.append(f'{flight.name} has no partner in {flights[0].source}')
                else:
                    pairs.append((at, other))
            left += [f'{flights[at - start].name} has no partner in {files[0][0].source}'
                     for at in there.values()]
        start += len(flights)
    return pairs, left


def natural(name: str) -> list[tuple[int, str]]:
    """Return a key that puts drone2 before drone10."""
    return [(int(part), '') if part.isdigit() else (-1, part) for part in re.split(r'(\d+)', name)]


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


def _differences(a: FlightRecord, b: FlightRecord, row_a: IntArray,
                 row_b: IntArray) -> tuple[Differs, ...]:
    """Return the settings that were not the same at the same tick."""
    found = []
    in_a, in_b = a.air.setting[row_a], b.air.setting[row_b]
    t = a.air.t[row_a]
    for name in (field.name for field in fields(Settings)):
        numbers: dict[object, int] = {}
        of_a, of_b = (np.array([numbers.setdefault(getattr(s, name), len(numbers))
                                for s in flight.settings], dtype=np.int64)[setting]
                      for flight, setting in ((a, in_a), (b, in_b)))
        differs = np.flatnonzero(of_a != of_b)
        if len(differs):
            values = list(numbers)
            found.append(Differs(name, _course(of_a, values, t), _course(of_b, values, t),
                                 len(differs), float(t[differs[0]])))
    return tuple(found)


def _course(numbers: IntArray, values: list[object], t: FloatArray) -> str:
    """Say what a setting was over time."""
    starts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist()]
    words = [_text(values[int(numbers[starts[0]])])]
    words += [f'from {t[at]:.2f} s {_text(values[int(numbers[at])])}' for at in starts[1:6]]
    more = f', and {len(starts) - 6} changes more' if len(starts) > 6 else ''
    return ', '.join(words) + more


def _text(value: object) -> str:
    return f'{value:g}' if isinstance(value, float) else str(value) or '(none)'


_OF_THE_AIR = frozenset(WORDS) - {'seed', 'clock_origin', 'frame_id'}


def _judge(a: FlightRecord, b: FlightRecord, found: Comparison) -> tuple[str, str]:
    """Return the verdict on two flights whose settings are known, and say why."""
    common, draws, same = found.common, found.draws, found.draws_same
    if not common:
        return 'unknown', ('Cannot be told: the flights have no tick number in common '
                           f'({_range(a)}; {_range(b)}).')
    span = f'{common} ticks in common ({common * TICK_S:.0f} s)'
    of_sitl = [f.name for f, rows in ((a, found.row_a), (b, found.row_b))
               if any(f.settings[int(s)].gusts == 'sitl' for s in np.unique(f.air.setting[rows])
                      if s >= 0)]
    if of_sitl:
        return 'unknown', (f'Cannot be told: {" and ".join(of_sitl)} flew SITL’s own turbulence, '
                           'which has no seed and is not recorded.')
    causes = [f'{WORDS.get(d.name, d.name)} ({d.a} and {d.b})' for d in found.settings
              if d.name in _OF_THE_AIR]
    because = f' What differs: {"; ".join(causes)}.' if causes else ''
    mean_apart = np.abs(a.air.mean_enu[:, found.row_a] - b.air.mean_enu[:, found.row_b]).max()
    equal = found.gusts_same == common
    if draws and same < 0.999 * draws:
        seeds = next((f' The seeds are {d.a} and {d.b}.' for d in found.settings
                      if d.name == 'seed'), '')
        return 'other', f'Not the same air: only {same} of {draws} draws compared are equal.{seeds}'
    if causes or mean_apart > SAME_GUST:
        alike = ('the gusts u, v and w are equal' if equal and draws else
                 'the draws are the same' if draws else 'no Dryden gusts blew in both')
        return 'other settings', (f'Not the same air: {alike}, but the wind is equal at '
                                  f'{found.wind_same} of the {span} only.{because}'
                                  if found.wind_same < common else
                                  f'Not the same air: the wind asked for is equal at each of the '
                                  f'{span}, but not all that makes it felt.{because}')
    if equal and found.wind_same == common:
        blew = bool((a.air.gust[:, found.row_a] != 0.0).any())
        what = 'the gusts and the wind are' if blew else 'no gusts blew, and the wind is'
        return 'same', f'The same air: {what} equal at each of the {span}.'
    if not draws and not any(d.name == 'seed' for d in found.settings):
        return 'same settings', (
            f'The same seed and settings, but not the same gusts: {found.gusts_same} of {span} are '
            'equal. The draws of this kind of air cannot be recovered, so it is not proved.')
    if not draws:
        return 'other', (f'Not the same air: the wind is equal at {found.wind_same} of the {span} '
                         'only.')
    which = 'all' if same == draws else f'{same} of'
    why = [f'{p.name} (up to {p.largest:.2g} {p.unit} apart)' for p in found.parted
           if p.largest > 0.0 and p.name in ('height', 'airspeed')]
    starts = [int(f.air.tick[0]) for f in (a, b)]
    if starts[0] != starts[1] and any((f.air.gust[:, 0] == 0.0).all() for f in (a, b)):
        why.append(f'the start from rest at ticks {starts[0]} and {starts[1]}, which fades')
    cause = f' What parted the gusts: {", ".join(why)}.' if why else ''
    return 'same draws', (f'The same draws in {which} {draws} ticks compared, but not the same '
                          f'gusts: {found.gusts_same} of {span} are equal.{cause}')


def _judge_given(a: FlightRecord, b: FlightRecord, found: Comparison, wind_a: FloatArray,
                 wind_b: FloatArray) -> tuple[str, str]:
    """Return the verdict on two flights of which SIM_WIND_* is all that both know."""
    lacking = ' and '.join(f.name for f in (a, b) if not f.settings)
    first = (f'{lacking} has no wind/state, so neither seed nor draws are known; what can be '
             'compared is SIM_WIND_*')
    known = np.isfinite(wind_a).all(axis=0) & np.isfinite(wind_b).all(axis=0)
    if not known.any():
        return 'unknown', (f'Cannot be told: {lacking} has no wind/state, so neither seed nor '
                           'draws are known, and no SIM_WIND_* at the same time in both.')
    one = np.isfinite(wind_a).all(axis=0) | np.isfinite(wind_b).all(axis=0)
    count, same = int(one.sum()), int(found.wind_same - (~one).sum())
    rms = math.sqrt(float(((wind_a - wind_b)[:, known]**2).sum(axis=0).mean()))
    span = (f'{same} of {count} ticks ({100.0 * same / count:.1f} % of {count * TICK_S:.0f} s; '
            f'rms difference {rms:.2g} m/s)')
    if same >= 0.99 * count:
        return 'same given', f'The same wind was given: {first}, and it agrees at {span}.'
    return 'other given', f'Not the same wind: {first}, and it agrees at {span} only.'


def _range(flight: FlightRecord) -> str:
    ticks = flight.air.tick
    return (f'{flight.name}: ticks {ticks.min()} to {ticks.max()}' if len(ticks)
            else f'{flight.name}: none')
