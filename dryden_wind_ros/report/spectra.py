"""Spectra of the gust beside the model's.

Welch's method [1]_: Hann windows that overlap by half at most, neighbouring frequencies averaged.
The windows are long enough to show the corner of the model's spectrum, 1 / (2 pi tau), where the
flight is; a shorter flight is one window.

What the method gives on average is not the model's curve: a window smears low frequencies over
its neighbours (leakage), an air that began from calm is not stationary, and 20 samples a second
fold what is above 10 Hz back. So it is computed from the model's own process. With the factors of
`model_steps`, the transform of a window is a sum over independent draws,

    X(f) = sum_k g_k n_k H_k(f),    H_k(f) = w_k exp(-2 pi i f k dt) + phi_{k+1} H_{k+1}(f)

and so are its mean square and the covariances of neighbouring frequencies, which say with how many
degrees of freedom the estimate scatters (see `chance`).

References
----------
.. [1] Welch, The use of fast Fourier transform for the estimation of power spectra, IEEE
   Transactions on Audio and Electroacoustics 15, 1967.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from dryden_wind_ros.gusts.tick_grid import TICK_S
from dryden_wind_ros.report.chance import chi_squared_range
from dryden_wind_ros.report.flight import AXES, Air, BoolArray, FloatArray, IntArray
from dryden_wind_ros.report.model_steps import MAX_STEPS, ModelSteps, some

MIN_WINDOW = 512
"""Ticks; of a flight of less (26 s) no spectrum is estimated."""

MAX_WINDOW = 65_536

_BELOW_CORNER = 4.0  # a window's lowest frequency is so many times below the corner
_MODEL_ROWS = 400  # rows over which a model curve is averaged
_EXACT_BINS = 6  # groups of at most so many frequencies: all their covariances are computed
_SAMPLED_BINS = 4  # of a wider group
_BLOCK = 64  # ticks taken at once
_LEAST_PHI = 1e-4  # so that the product of a block is not 0; far below any time constant's
_PROFILE = 512  # points by which the course of the power within a window is known


@dataclass(frozen=True)
class Spectrum:
    """Power spectral density of one axis, one-sided, (m/s)^2/Hz.

    Attributes
    ----------
    axis : str
        'u', 'v' or 'w'.
    frequency, measured : ndarray, shape (M,)
        Hz, and Welch's estimate.
    expected : ndarray, shape (M,)
        What the estimate of the model's own process is on average, leakage and start included.
    low, high : ndarray, shape (M,)
        Between these lie 95 % of such estimates.
    freedom : ndarray, shape (M,)
        Degrees of freedom with which they scatter.
    windows : int
        Number of windows averaged.
    window : float
        Length of one, s.
    corner : float
        The model's corner, 1 / (2 pi tau), Hz; of the mean time constant.
    interpolated : float
        Share of the ticks that were not recorded and were filled in, 0 to 1.
    curve_frequency, curve : ndarray, shape (K,)
        The model: 4 sigma^2 T / (1 + (2 pi f T)^2), averaged over the flight.
    """

    axis: str
    frequency: FloatArray
    measured: FloatArray
    expected: FloatArray
    low: FloatArray
    high: FloatArray
    freedom: FloatArray
    windows: int
    window: float
    corner: float
    interpolated: float
    curve_frequency: FloatArray
    curve: FloatArray

    @property
    def inside(self) -> float:
        """Share of the estimates between `low` and `high`, 0 to 1."""
        return float(((self.measured >= self.low) & (self.measured <= self.high)).mean())


def spectra(air: Air, steps: ModelSteps) -> list[Spectrum]:
    """Estimate each axis' spectrum; empty for less than half a minute of Dryden gusts."""
    stretches = [s for s in stretches_of(air, steps.blowing) if len(s.rows) >= MIN_WINDOW]
    if not stretches:
        return []
    return [_spectrum(stretches, steps, axis) for axis in range(3)]


@dataclass(frozen=True)
class Stretch:
    """Even ticks of one run: gust (3, M), the rows that tell of them (M,), how many are filled."""

    gust: FloatArray
    rows: IntArray
    filled: int


def stretches_of(air: Air, blowing: BoolArray) -> list[Stretch]:
    """Return stretches of even ticks; gaps of up to 0.5 s are filled."""
    rows = np.flatnonzero(blowing)
    if not len(rows):
        return []
    gap, run = np.diff(air.tick[rows]), np.diff(air.run[rows])
    gust = air.turbulence
    found = []
    for part in np.split(rows, np.flatnonzero((gap > MAX_STEPS) | (gap < 1) | (run != 0)) + 1):
        tick = air.tick[part]
        grid = np.arange(tick[0], tick[-1] + 1)
        found.append(Stretch(np.array([np.interp(grid, tick, axis) for axis in gust[:, part]]),
                              part[np.searchsorted(tick, grid)], len(grid) - len(tick)))
    return found


def _spectrum(stretches: list[Stretch], steps: ModelSteps, axis: int) -> Spectrum:
    rows = np.concatenate([s.rows for s in stretches])
    tau = float(steps.tau[axis, rows].mean())
    size = window_size([len(s.rows) for s in stretches], tau)
    window = np.hanning(size + 1)[:-1]
    # Which rows each window is of, and how far it lies behind the one before in the same stretch.
    parts: list[IntArray] = []
    behind: list[int] = []
    gust: list[FloatArray] = []
    for stretch in stretches:
        spare = len(stretch.rows) - size
        if spare < 0:
            continue
        starts = np.linspace(0, spare, 1 + 2 * spare // size).astype(int)
        behind += [size, *np.diff(starts).tolist()]
        for start in starts.tolist():
            parts.append(stretch.rows[start:start + size])
            gust.append(stretch.gust[axis, start:start + size])
    frequency = np.asarray(np.fft.rfftfreq(size, TICK_S), dtype=np.float64)
    groups = frequency_groups(frequency)
    power = np.abs(np.fft.rfft(np.array(gust) * window, axis=1))**2
    density = 2.0 * TICK_S / float(window @ window)
    measured = density * np.array([power[:, a:b].mean() for a, b in groups])
    mean, variance = _moments(steps, axis, np.array(parts), window, groups)
    expected = density * mean.mean(axis=0)
    # Overlapping windows are related a little, windows of little power count for less than one.
    related = np.array([(window[:size - s] @ window[s:] / (window @ window))**2
                        for s in behind[1:]])[:, None]
    total = variance.sum(axis=0) + 2.0 * (
        related * np.sqrt(variance[1:] * variance[:-1])).sum(axis=0)
    freedom = 2.0 * mean.sum(axis=0)**2 / total
    low, high = chi_squared_range(freedom)
    middle = np.array([frequency[a:b].mean() for a, b in groups])
    curve_frequency = np.geomspace(min(frequency[1], 0.5 / (2.0 * math.pi * tau)), frequency[-1],
                                   120)
    return Spectrum(
        AXES[axis], middle, measured, expected, expected * low, expected * high, freedom,
        len(parts), size * TICK_S, 1.0 / (2.0 * math.pi * tau),
        sum(s.filled for s in stretches) / len(rows), curve_frequency,
        _model_curve(steps, axis, curve_frequency))


def window_size(lengths: list[int], tau: float) -> int:
    """Return how many ticks a window is to have: the corner shown, if the stretches allow it."""
    wanted = _BELOW_CORNER * 2.0 * math.pi * tau / TICK_S
    # Half of the ticks or more are in stretches at least as long as this.
    longest = np.sort(lengths)[::-1]
    there = int(longest[np.searchsorted(np.cumsum(longest), 0.5 * longest.sum())])
    return int(min(max(wanted, MIN_WINDOW), MAX_WINDOW, there)) // 2 * 2


def frequency_groups(frequency: FloatArray, per_decade: int = 14) -> list[tuple[int, int]]:
    """Group neighbouring frequencies into about even steps of their logarithm, without zero."""
    edges = [1]
    while edges[-1] < len(frequency) - 1:
        last = edges[-1]
        edges.append(max(last + 1, round(last * 10.0 ** (1.0 / per_decade))))
    edges[-1] = len(frequency) - 1  # the last is half a bin
    return [(a, b) for a, b in pairwise(edges) if b > a]


def _moments(steps: ModelSteps, axis: int, parts: IntArray, window: FloatArray,
             groups: list[tuple[int, int]]) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of each window's power, averaged over each group of frequencies.

    Parameters
    ----------
    steps : ModelSteps
        The model's factors.
    axis : int
        0, 1, 2 for u, v, w.
    parts : ndarray of int, shape (W, N)
        Rows of each window.
    window : ndarray, shape (N,)
        The window.
    groups : list of (int, int)
        First frequency of each group, and first after it.

    Returns
    -------
    mean, variance : ndarray, shape (W, number of groups)
        Of the mean of |X|^2 over the group.
    """
    size = len(window)
    phi = steps.step[axis, parts]
    weight = window * steps.scale[parts]
    added = steps.aim[axis, parts] * (1.0 - phi**2)
    profile = added.copy()
    # What the process had before the window; nothing where it began from calm.
    added[:, 0] = steps.variance[axis, parts[:, 0]]
    narrow = [(a, b) for a, b in groups if b - a <= _EXACT_BINS]
    wide = groups[len(narrow):]
    exact = np.arange(narrow[0][0], narrow[-1][1]) if narrow else np.arange(0)
    sampled = [np.unique(np.linspace(a, b - 1, 2 * _SAMPLED_BINS + 1)[1::2].astype(int))
               for a, b in wide]
    start = narrow[0][0] if narrow else 0
    pairs = np.array([(i - start, j - start) for a, b in narrow for i in range(a, b)
                      for j in range(a, b)], dtype=np.int64).reshape(-1, 2)
    power, squares = _process_moments(
        phi, weight, added, np.concatenate([exact, *sampled]) / size, pairs)
    mean = np.empty((len(parts), len(groups)))
    variance = np.empty_like(mean)
    done = 0
    for g, (a, b) in enumerate(narrow):
        mean[:, g] = power[:, a - start:b - start].mean(axis=1)
        variance[:, g] = squares[:, done:done + (b - a)**2].mean(axis=1)
        done += (b - a)**2
    # Of many frequencies far above the window's own: their covariance is the transform of the
    # course of the power within the window.
    places = (np.arange(min(_PROFILE, size)) * size) // min(_PROFILE, size)
    column = len(exact)
    for g, ((a, b), bins) in enumerate(zip(wide, sampled, strict=True), len(narrow)):
        mean[:, g] = power[:, column:column + len(bins)].mean(axis=1)
        column += len(bins)
        turn = np.exp(-2j * np.pi * 0.5 * (a + b) / size)
        course = (profile * weight**2)[:, places] / np.abs(1.0 - phi[:, places] * turn)**2
        apart = np.abs(np.fft.rfft(course, axis=1))**2
        apart = (apart / apart[:, :1])[:, :b - a]
        count = 2.0 * (b - a - np.arange(apart.shape[1]))
        count[0] = b - a
        variance[:, g] = mean[:, g]**2 * (apart * count).sum(axis=1) / (b - a)**2
    return mean, variance


def _process_moments(phi: FloatArray, weight: FloatArray, added: FloatArray, frequency: FloatArray,
                     pairs: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the second moments of the weighted process' transform at some frequencies.

    Parameters
    ----------
    phi, weight, added : ndarray, shape (W, N)
        Factor on the value before, the window, and the variance added, of each tick.
    frequency : ndarray, shape (F,)
        Cycles per tick.
    pairs : ndarray of int, shape (P, 2)
        Which two of the frequencies the covariance of the power is wanted of.

    Returns
    -------
    power : ndarray, shape (W, F)
        E |X(f)|^2.
    squares : ndarray, shape (W, P)
        Covariance of |X(f)|^2 and |X(g)|^2: |E X(f) X(g)*|^2 + |E X(f) X(g)|^2.
    """
    windows, size = phi.shape
    phi = np.where(np.abs(phi) < _LEAST_PHI, _LEAST_PHI, phi)
    power = np.zeros((windows, len(frequency)))
    covariance = np.zeros((windows, len(pairs)), dtype=np.complex128)
    relation = np.zeros_like(covariance)
    # H of the tick after.
    later: npt.NDArray[Any] = np.zeros((windows, 1, len(frequency)), dtype=np.complex128)
    turns = np.exp(-2j * np.pi * frequency * np.arange(_BLOCK)[:, None])
    for first in reversed(range(0, size, _BLOCK)):
        part = slice(first, min(first + _BLOCK, size))
        # Products of phi after the block's first tick.
        product = np.cumprod(np.where(np.arange(part.stop - first) > 0, phi[:, part], 1.0), axis=1)
        after = phi[:, part.stop, None, None] if part.stop < size else 0.0
        terms = ((product * weight[:, part])[:, :, None] * turns[:part.stop - first]
                 * np.exp(-2j * np.pi * frequency * first))
        terms[:, -1] += (product[:, -1, None] * (after * later)[:, 0])
        h = np.cumsum(terms[:, ::-1], axis=1)[:, ::-1] / product[:, :, None]
        later = h[:, :1]
        drawn = h * np.sqrt(added[:, part])[:, :, None]
        power += (drawn.real**2 + drawn.imag**2).sum(axis=1)
        one, other = drawn[:, :, pairs[:, 0]], drawn[:, :, pairs[:, 1]]
        covariance += (one * other.conj()).sum(axis=1)
        relation += (one * other).sum(axis=1)
    return power, np.abs(covariance)**2 + np.abs(relation)**2


def _model_curve(steps: ModelSteps, axis: int, frequency: FloatArray) -> FloatArray:
    rows = some(np.flatnonzero(steps.blowing), _MODEL_ROWS)
    tau = steps.tau[axis, rows, None]
    variance = (steps.scale[rows]**2 * steps.aim[axis, rows])[:, None]
    return np.asarray((4.0 * variance * tau / (
        1.0 + (2.0 * math.pi * frequency * tau)**2)).mean(axis=0))
