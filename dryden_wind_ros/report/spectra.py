"""Spectra of the gust beside the model's.

Welch's method, with Hann windows that overlap by half [1]_. What it gives on average is computed
from the model's autocovariance and the window; the scatter about it is chi-squared, with the
degrees of freedom of overlapping windows of unequal power and averaged neighbours.

References
----------
.. [1] Welch, The use of fast Fourier transform for the estimation of power spectra, IEEE
   Transactions on Audio and Electroacoustics 15, 1967.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dryden_wind_ros.gusts.tick_grid import TICK_S
from dryden_wind_ros.report.chance import CONFIDENCE, chi_squared
from dryden_wind_ros.report.flight import AXES, Air, FloatArray, IntArray
from dryden_wind_ros.report.model_steps import MAX_STEPS, ModelSteps, model_covariance, some

MIN_WINDOW, MAX_WINDOW = 128, 4096

_MODEL_ROWS = 400  # rows over which a model curve is averaged
_WINDOW_ROWS = 16  # the same, for one window of a spectrum


@dataclass(frozen=True)
class Spectrum:
    """Power spectral density of one axis, one-sided, (m/s)^2/Hz.

    Attributes
    ----------
    axis : str
        'u', 'v' or 'w'.
    frequency, measured : ndarray, shape (M,)
        Hz, and Welch's estimate.
    low, high : ndarray, shape (M,)
        Between these lie 95 % of the estimates of the model's own process.
    windows : int
        Number of windows averaged.
    interpolated : float
        Share of the ticks that were not recorded and were filled in, 0 to 1.
    curve_frequency, curve : ndarray, shape (K,)
        The model: 4 sigma^2 T / (1 + (2 pi f T)^2), averaged over the flight.
    """

    axis: str
    frequency: FloatArray
    measured: FloatArray
    low: FloatArray
    high: FloatArray
    windows: int
    interpolated: float
    curve_frequency: FloatArray
    curve: FloatArray

    @property
    def inside(self) -> float:
        """Share of the estimates between `low` and `high`, 0 to 1."""
        return float(((self.measured >= self.low) & (self.measured <= self.high)).mean())


def spectra(air: Air, steps: ModelSteps) -> list[Spectrum]:
    """Estimate each axis' spectrum; empty for less than half a minute of Dryden gusts."""
    stretches = _stretches(air, steps)
    longest = max((gust.shape[1] for gust, _, _ in stretches), default=0)
    total = sum(gust.shape[1] for gust, _, _ in stretches)
    if longest < 4 * MIN_WINDOW:
        return []
    size = min(MAX_WINDOW, max(MIN_WINDOW, 2 ** int(math.log2(total / 12))),
               2 ** int(math.log2(longest)))
    window = np.hanning(size + 1)[:-1]
    places = (np.arange(_WINDOW_ROWS) * size + size // 2) // _WINDOW_ROWS
    weights = window[places]**2 / (window[places]**2).sum()
    lags = np.arange(size)
    power: list[FloatArray] = []  # of each window, shape (3, size / 2 + 1)
    expected: list[list[FloatArray]] = []
    for gust, row, _ in stretches:
        for start in range(0, gust.shape[1] - size + 1, size // 2):
            part = slice(start, start + size)
            power.append(np.abs(np.fft.rfft(gust[:, part] * window, axis=1))**2)
            expected.append([_expected_periodogram(
                model_covariance(steps, i, row[part][places], weights, lags), window)
                for i in range(3)])
    windows = len(power)
    density = 2.0 * TICK_S / (window @ window)
    frequency = np.asarray(np.fft.rfftfreq(size, TICK_S), dtype=np.float64)
    groups = _frequency_groups(frequency)
    overlap = 1.0 + 2.0 * _correlation_of_windows(window) * (windows - 1) / windows
    filled = sum(holes for _, _, holes in stretches) / total
    found = []
    for i, axis in enumerate(AXES):
        measured = density * np.mean([p[i] for p in power], axis=0)
        each = np.array([e[i] for e in expected])  # shape (windows, frequencies)
        # Windows of little power (another height) count for less than one.
        freedom = 2.0 * each.sum(axis=0)**2 / (each**2).sum(axis=0) / overlap
        mean, middle, value, dof = np.array([
            (each[:, a:b].mean(), frequency[a:b].mean(), measured[a:b].mean(),
             freedom[a:b].mean() * _independent_bins(b - a)) for a, b in groups]).T
        curve_f = np.geomspace(frequency[1], frequency[-1], 120)
        found.append(Spectrum(
            axis, middle, value, mean * chi_squared(dof, -CONFIDENCE) / dof,
            mean * chi_squared(dof, CONFIDENCE) / dof, windows, filled, curve_f,
            _model_curve(steps, i, curve_f)))
    return found


def _stretches(air: Air, steps: ModelSteps) -> list[tuple[FloatArray, IntArray, int]]:
    """Return stretches of even ticks: gust (3, M), rows (M,), how many were filled in.

    Gaps of up to 0.5 s are filled.
    """
    rows = np.flatnonzero(steps.blowing)
    if not len(rows):
        return []
    gap, run = np.diff(air.tick[rows]), np.diff(air.run[rows])
    found = []
    for part in np.split(rows, np.flatnonzero((gap > MAX_STEPS) | (gap < 1) | (run != 0)) + 1):
        tick = air.tick[part]
        grid = np.arange(tick[0], tick[-1] + 1)
        found.append((np.array([np.interp(grid, tick, axis) for axis in air.gust[:, part]]),
                      part[np.searchsorted(tick, grid)], len(grid) - len(tick)))
    return found


def _frequency_groups(frequency: FloatArray, per_decade: int = 14) -> list[tuple[int, int]]:
    """Group neighbouring frequencies into about even steps of their logarithm, without zero."""
    edges = [1]
    while edges[-1] < len(frequency) - 1:
        last = edges[-1]
        edges.append(max(last + 1, round(last * 10.0 ** (1.0 / per_decade))))
    edges[-1] = len(frequency) - 1  # the last is half a bin
    return [(a, b) for a, b in pairwise(edges) if b > a]


def _correlation_of_windows(window: FloatArray) -> float:
    """Return the correlation of two estimates whose windows overlap by half."""
    half = len(window) // 2
    return float((window[:half] @ window[half:] / (window @ window))**2)


def _independent_bins(count: int) -> float:
    # A Hann window's neighbours correlate by (2/3)^2, the next by (1/6)^2.
    total = count + 2.0 * (count - 1) * 4.0 / 9.0 + 2.0 * max(0, count - 2) / 36.0
    return count * count / total


def _expected_periodogram(covariance: FloatArray, window: FloatArray) -> FloatArray:
    """Return what a windowed periodogram gives on average for an autocovariance."""
    size = len(window)
    own = np.fft.irfft(np.abs(np.fft.rfft(window, 2 * size))**2, 2 * size)[:size]
    weighted = covariance * own / own[0]
    both_sides = np.concatenate([weighted, [0.0], weighted[:0:-1]])
    return 2.0 * TICK_S * np.asarray(np.fft.rfft(both_sides).real[::2])


def _model_curve(steps: ModelSteps, axis: int, frequency: FloatArray) -> FloatArray:
    rows = some(np.flatnonzero(steps.blowing), _MODEL_ROWS)
    tau = steps.tau[axis, rows, None]
    variance = (steps.scale[rows]**2 * steps.variance[axis, rows])[:, None]
    return np.asarray((4.0 * variance * tau / (
        1.0 + (2.0 * math.pi * frequency * tau)**2)).mean(axis=0))
