"""Which times of a record may be believed, and where a new flight begins.

A log's records come in order of time, nearly: tasks that log at once come a little out of order, a
pause leaves a gap, and a restart of the vehicle begins again at zero. One flipped bit makes a time
that is none of these, hours or millennia away from what stands before and after it. Such a time has
no support from its neighbours and is left out; everything else is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dryden_wind_ros.logs.flight import BoolArray, FloatArray, IntArray

MAX_T = 1e10
"""s: no clock in use, Unix time included, is beyond it."""

JUMP = 10.0
"""Least step, s, that begins another stretch of times, in logs whose tasks overtake each other."""

FEW = 30
"""A stretch of so few records (less in a short log) must fit between its neighbours, or it is left
out."""

_LONE = 3       # records at the very end, away from all others
_PAUSE = 60.0   # s, how far away these may be all the same
_CLOSE = 0.5    # s, neighbours that certainly support each other
_AROUND = 5     # neighbours asked on either side


@dataclass(frozen=True)
class SortedOut:
    """What became of a row of times.

    Attributes
    ----------
    kept : ndarray of bool, shape (N,)
        Times that may be believed.
    flight : ndarray of int, shape (N,)
        Number of the flight, from 0: a new one begins where time went back and stayed there. Of
        times that are not kept it says nothing.
    """

    kept: BoolArray
    flight: IntArray

    @property
    def flights(self) -> int:
        """Number of flights."""
        return int(self.flight[self.kept].max()) + 1 if self.kept.any() else 0


def sort_out(t: FloatArray, jump: float = JUMP) -> SortedOut:
    """Find the times that their neighbours support, and the flights.

    Parameters
    ----------
    t : ndarray, shape (N,)
        Times as they stand in the file, s.
    jump : float
        A step of more than this, s, either way, begins another stretch of times.

    Examples
    --------
    >>> found = sort_out(np.array([1.0, 1.1, 9e6, 1.2, 1.3]))
    >>> found.kept.tolist()
    [True, True, False, True, True]
    """
    kept = np.isfinite(t) & (t >= 0.0) & (t < MAX_T)
    flight = np.zeros(len(t), dtype=np.int64)
    if kept.all() and not (np.abs(np.diff(t)) > jump).any():
        kept[_lonely(t)] = False  # most logs are like this, and take little memory
        return SortedOut(kept, flight)
    rows = np.flatnonzero(kept)
    good, number = _stretches(t[rows], jump)
    kept[rows[~good]] = False
    flight[rows] = number
    rows = rows[good]
    ends = np.flatnonzero(np.diff(flight[rows])) + 1
    for mine in np.split(rows, ends):
        kept[mine[_lonely(t[mine])]] = False
    return SortedOut(kept, flight)


def _stretches(t: FloatArray, jump: float) -> tuple[BoolArray, IntArray]:
    """Drop short stretches that do not fit between the others; number the flights."""
    good = np.ones(len(t), dtype=bool)
    number = np.zeros(len(t), dtype=np.int64)
    begins = np.concatenate([[0], np.flatnonzero(np.abs(np.diff(t)) > jump) + 1]).astype(np.int64)
    ends = np.append(begins[1:], len(t))
    few = min(FEW, max(_LONE, len(t) // 8))
    long_ones = np.flatnonzero(ends - begins > few)
    last: float | None = None
    flight = 0
    for at, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
        if begin == end:
            continue
        first = float(t[begin])
        if end - begin <= few:
            following = np.searchsorted(long_ones, at, side='right')
            if end < len(t):
                # Where no long stretch follows, most of what does must be later.
                next_time = t[begins[long_ones[following]]] if following < len(long_ones) \
                    else np.median(t[end:])
                fits = (last is None or first >= last - jump) \
                    and float(t[end - 1]) <= float(next_time) + jump
            else:
                fits = last is None or end - begin > _LONE \
                    or last - jump <= first <= last + _PAUSE
            if not fits:
                good[begin:end] = False
                continue
        if last is not None and first < last - jump:
            flight += 1
        number[begin:end] = flight
        last = float(t[end - 1])
    return good, number


def _lonely(t: FloatArray) -> IntArray:
    """Return the rows whose times are away from those of the records around them."""
    n = len(t)
    if n < 2 * _AROUND + 1:
        return np.empty(0, dtype=np.int64)
    away = np.abs(np.diff(t)) > _CLOSE
    alone = np.flatnonzero(np.append(away, True) & np.insert(away, 0, True))
    start = np.clip(alone - _AROUND, 0, n - 2 * _AROUND - 1)
    window = start[:, None] + np.arange(2 * _AROUND + 1)
    around = np.sort(t[window[window != alone[:, None]].reshape(-1, 2 * _AROUND)], axis=1)
    low, high = around[:, 2], around[:, -3]
    slack = np.maximum(_CLOSE, np.minimum(high - low, 3.0 * JUMP))
    found: IntArray = alone[(t[alone] < low - slack) | (t[alone] > high + slack)]
    return found
