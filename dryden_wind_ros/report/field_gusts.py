"""Flights in a field: whether the gusts are the seed's own, and whether two flights fit one air."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dryden_wind_ros.gusts.field import TurbulenceField, structure
from dryden_wind_ros.gusts.scales import TurbulenceAloft
from dryden_wind_ros.report.flight import FlightRecord, FloatArray, IntArray, Settings
from dryden_wind_ros.report.model_steps import some

_SAME_GUST = 1e-3
_MOST_ROWS = 36_000  # half an hour: a second or two at 4096 modes
_AT_ONCE = 4096
_MOST_OF_BIN = 200  # rows over which theory is averaged
_LEAST_ROWS = 100
_EARTH_M = 6_371_000.0


@dataclass(frozen=True)
class FieldGusts:
    """Recorded gusts of a field, compared with the field computed again.

    Attributes
    ----------
    row : ndarray of int, shape (M,)
        Rows of the record that were looked at: all, or as many evenly spread.
    off : ndarray, shape (M,)
        How far the recorded gust is off, m/s.
    of_seed : int
        How many are the seed's own, to 1 mm/s.
    """

    row: IntArray
    off: FloatArray
    of_seed: int

    def __len__(self) -> int:
        return len(self.row)


def check_field(flight: FlightRecord) -> FieldGusts:
    """Compute the gusts of a flight again from place, time and settings, and compare them.

    Parameters
    ----------
    flight : FlightRecord

    Returns
    -------
    FieldGusts
        Of no rows where no field flew, or the record does not say where it was asked for.
    """
    air = flight.air
    rows, off = [], []
    if air.asked is not None:
        for index, settings in enumerate(flight.settings):
            chosen = np.flatnonzero((air.setting == index) & np.isfinite(air.asked).all(axis=0))
            if settings.gusts != 'field' or not chosen.size:
                continue
            chosen = chosen[np.linspace(0, chosen.size - 1, min(chosen.size, _MOST_ROWS)).astype(
                int)]
            again = np.concatenate([
                _gusts_again(flight, settings, chosen[first:first + _AT_ONCE])
                for first in range(0, chosen.size, _AT_ONCE)])
            recorded = air.gust_enu[:, chosen]
            if air.discrete_enu is not None:
                recorded = recorded - air.discrete_enu[:, chosen]
            rows.append(chosen)
            off.append(np.linalg.norm(recorded - again.T, axis=0))
    row = np.concatenate(rows) if rows else np.empty(0, dtype=np.int64)
    distance = np.concatenate(off) if off else np.empty(0)
    return FieldGusts(row, distance, int((distance < _SAME_GUST).sum()))


def _gusts_again(flight: FlightRecord, settings: Settings, rows: IntArray) -> FloatArray:
    air = flight.air
    assert air.asked is not None
    east, north, up, time, *drift, age = air.asked[:, rows]
    field = TurbulenceField(
        settings.seed, spectrum=settings.field_spectrum or 'dryden',
        modes=settings.field_modes or 4096, life=settings.field_life,
        severity=settings.severity or 'light')
    heights = up - settings.ground_height
    # The wind at 20 ft, from the strength that it gave: below 1000 ft they are in proportion.
    aloft = TurbulenceAloft(settings.severity or 'light', settings.field_spectrum or 'dryden')
    calm, unit = (np.asarray(aloft.scales_of(heights, speed).sigma_w) for speed in (0.0, 1.0))
    with np.errstate(invalid='ignore', divide='ignore'):
        wind = np.where(unit > calm, (air.sigma[2, rows] / settings.scale - calm) / (unit - calm),
                        0.0)
    mean = np.column_stack((np.maximum(wind, 0.0), np.zeros((len(rows), 2))))
    return settings.scale * field.gust(
        np.column_stack((east, north, up)), time, mean, drift=np.column_stack(drift), age=age,
        heights=heights)


@dataclass(frozen=True)
class Together:
    """Two flights in one field, by how far apart they were at the same time of the air.

    Attributes
    ----------
    distance : ndarray, shape (B,)
        Mean distance of the rows of each bin, m.
    rows : ndarray of int, shape (B,)
        How many.
    measured, theory : ndarray, shape (B, 3)
        Root mean square of the difference of the gusts u, v, w, m/s.
    correlation, correlation_theory : ndarray, shape (B, 3)
        1 - (difference / sigma)^2 / 2.
    error : ndarray, shape (B, 3)
        Half the range around theory that holds 95 % of such correlations by chance.
    moved : float
        How far apart the zeros of the two frames are on the earth, m; NaN: not recorded.
    fits : bool
        Whether all differences are within their sampling error of theory.
    """

    distance: FloatArray
    rows: IntArray
    measured: FloatArray
    theory: FloatArray
    correlation: FloatArray
    correlation_theory: FloatArray
    error: FloatArray
    moved: float
    fits: bool


def together(a: FlightRecord, b: FlightRecord, bins: int = 6) -> Together | str:
    """Compare the gusts of two flights in one field with what theory gives for their distance.

    Distances are those in the air: less the drift, so that two flights at other times are compared
    too. The sampling error is that of as many independent samples as lengths of air went by.

    Parameters
    ----------
    a, b : FlightRecord
        Two vehicles of a fleet, or an A/B pair.
    bins : int, optional
        At most so many groups of like distance.

    Returns
    -------
    Together or str
        Why it cannot be, as text.
    """
    one, other = _only_field(a), _only_field(b)
    for found in (one, other):
        if isinstance(found, str):
            return found
    assert not isinstance(one, str)
    assert not isinstance(other, str)
    for name in ('seed', 'field_spectrum', 'field_modes', 'field_life', 'severity', 'scale'):
        if getattr(one, name) != getattr(other, name):
            return f'{name} is {getattr(one, name)} and {getattr(other, name)}: two airs'
    asked_a, asked_b = a.air.asked, b.air.asked
    assert asked_a is not None
    assert asked_b is not None
    times_a, times_b = (np.round(asked[3] / 0.05).astype(np.int64) for asked in (asked_a, asked_b))
    _, i, j = np.intersect1d(times_a, times_b, return_indices=True)
    if len(i) < _LEAST_ROWS:
        return f'{len(i)} ticks of one time of the air: too few to compare'
    apart = (asked_a[:3, i] - asked_a[4:7, i]) - (asked_b[:3, j] - asked_b[4:7, j])
    distance = np.linalg.norm(apart, axis=0)
    difference = a.air.turbulence[:, i] - b.air.turbulence[:, j]
    edges = np.quantile(distance, np.linspace(0.0, 1.0, bins + 1))
    group = np.clip(np.searchsorted(edges, distance, side='right') - 1, 0, bins - 1)
    rows, where, measured, theory, correlation, expected, error = [], [], [], [], [], [], []
    fits = True
    speed = np.hypot(*a.air.mean_enu[:2, i])
    unit = a.air.mean_enu[:2, i] / np.maximum(speed, 1e-9)
    line = np.array([apart[0] * unit[0] + apart[1] * unit[1],
                     apart[0] * unit[1] - apart[1] * unit[0], apart[2]])
    for number in range(bins):
        members = np.flatnonzero(group == number)
        if members.size < _LEAST_ROWS // 2:
            continue
        height = float(np.mean(a.air.height[i[members]] + b.air.height[j[members]])) / 2.0
        sigma = np.maximum(np.mean(a.air.sigma[:, i[members]], axis=1), 1e-9)
        few = some(members, _MOST_OF_BIN)
        at_once = structure(distance[few], height, 8.0, _axis(line[:, few]),
                            spectrum=one.field_spectrum or 'dryden',
                            severity=one.severity or 'light')
        wanted = sigma * np.sqrt(np.mean(2.0 - 2.0 * at_once.correlation, axis=0))
        rms = np.sqrt(np.mean(difference[:, members] ** 2, axis=1))
        # As many samples as lengths of air passed by; a variance of n of them is off by sqrt(2/n).
        length = np.mean(a.air.length[:, i[members]], axis=1)
        passed = 0.05 * members.size * float(np.mean(np.maximum(
            speed[members], a.air.airspeed[i[members]])))
        scale = np.minimum(length, np.maximum(float(np.mean(distance[members])), 1.0))
        samples = np.maximum(passed / (2.0 * scale), 1.0)
        fits &= bool((abs(rms**2 - wanted**2) <= 3.0 * wanted**2 * np.sqrt(2.0 / samples)
                      + 1e-6).all())
        where.append(float(np.mean(distance[members])))
        rows.append(members.size)
        measured.append(rms)
        theory.append(wanted)
        correlation.append(1.0 - (rms / sigma) ** 2 / 2.0)
        expected.append(1.0 - (wanted / sigma) ** 2 / 2.0)
        error.append(1.96 * (wanted / sigma) ** 2 / 2.0 * np.sqrt(2.0 / samples))
    return Together(np.array(where), np.array(rows), np.array(measured), np.array(theory),
                    np.array(correlation), np.array(expected), np.array(error), _moved(a, b), fits)


def _axis(line: FloatArray) -> FloatArray:
    """Return directions (N, 3); any where there is no distance."""
    return np.where(np.linalg.norm(line, axis=0) > 1e-9, line, [[1.0], [0.0], [0.0]]).T


def _moved(a: FlightRecord, b: FlightRecord) -> float:
    """Return how far apart the zeros of two flights' frames are, m; NaN: not known."""
    zeros = []
    for flight in (a, b):
        further = flight.air.further
        if further is None:
            return math.nan
        known = np.flatnonzero(np.isfinite(further[5:8]).all(axis=0))
        if not known.size:
            return math.nan
        zeros.append(further[5:8, known[-1]])
    north, east, up = zeros[1] - zeros[0]
    metre = math.radians(1.0) * _EARTH_M
    return math.hypot(north * metre, east * metre * math.cos(math.radians(zeros[0][0])), up)


def _only_field(flight: FlightRecord) -> Settings | str:
    settings = [one for one in flight.settings if one.gusts == 'field']
    if len(settings) != 1 or len(flight.settings) != 1 or flight.air.asked is None:
        return f'{flight.name} is no flight in one field with one setting'
    return settings[0]


def fields_apart(flights: Sequence[FlightRecord]) -> list[tuple[FlightRecord, FlightRecord]]:
    """Return the pairs of vehicles that flew in one field in the same file."""
    flown = [one for one in flights if not isinstance(_only_field(one), str)]
    return [(a, b) for n, a in enumerate(flown) for b in flown[n + 1:] if a.source == b.source]
