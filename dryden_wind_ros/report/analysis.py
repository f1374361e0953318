"""Numbers of a flight: strength, spectrum and time constant beside the model's, and their errors.

The gust model is a first-order process stepped once a tick with known factors,

    x_k = phi_k x_{k-1} + g_k n_k,   P_k = phi_k^2 P_{k-1} + g_k^2,   C_ij = P_i phi_{i+1} ... phi_j

(P the variance, C the covariance of two ticks i < j), whatever the vehicle's height and airspeed
did. So the model foretells not only each measured number but also how far off it may be by chance:

* *Strength*: the mean square of a Gaussian process has the variance 2 sum C_ij^2 / N^2 [1]_. With a
  constant time constant tau over a time T >> tau this is 2 sigma^4 / n with n = T / tau independent
  samples, so sigma is uncertain by 1 / sqrt(2 n) of itself.
* *Time constant*: one factor r on all rates 1 / tau_k is fitted, phi_k = exp(-r dt / tau_k), by
  least squares of x_k - phi_k x_{k-1}, weighted by 1 / g_k^2: with a constant tau, the
  autocorrelation at a lag of one tick. Its variance is 1 / sum (dt phi_k / (tau_k g_k))^2 P_{k-1},
  so tau is uncertain by sqrt(2 tau / T) of itself: 1 / sqrt(n) with n = T / (2 tau).
* *Spectrum*: Welch's method, with Hann windows that overlap by half [2]_. What it gives on average
  is computed from the model's autocovariance and the window; the scatter about it is chi-squared,
  with the degrees of freedom of overlapping windows of unequal power and averaged neighbours.

References
----------
.. [1] Bendat and Piersol, Random Data, chapter 8 (errors of mean square estimates).
.. [2] Welch, The use of fast Fourier transform for the estimation of power spectra, IEEE
   Transactions on Audio and Electroacoustics 15, 1967.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dryden_wind_ros.ekf.phase import WindPhase
from dryden_wind_ros.gusts.dryden import EULER_FT_PER_M, MAX_HEIGHT_FT, MIN_HEIGHT_M, MIN_SPEED
from dryden_wind_ros.gusts.tick_grid import TICK_S
from dryden_wind_ros.report.flight import (
    AXES,
    Air,
    BoolArray,
    Ekf,
    FlightRecord,
    FloatArray,
    IntArray,
    Settings,
)

HEIGHT_EDGES = (3.5, 7.0, 14.0, 28.0, 56.0, 112.0, 224.0, 448.0)
"""Limits of the bands of height, m; chosen so that usual heights (5, 10, 20 m ...) lie inside."""

MIN_SAMPLES = 8.0
"""Fewer independent samples than this are shown, but not judged."""

CONFIDENCE = 1.96
"""Standard errors either side within which 95 % of right measurements lie."""

_MAX_STEPS = 10  # of a gap in the clock, as gusts.air has it
_MODEL_ROWS = 400  # rows over which a model curve is averaged
_WINDOW_ROWS = 16  # the same, for one window of a spectrum


# ------------------------------------------------------------------------------------- the model


@dataclass(frozen=True)
class ModelSteps:
    """How the model came to each row from the row before.

    Attributes
    ----------
    known : ndarray of bool, shape (N,)
        Whether it did: false in the first row of a record or run and where no Dryden gusts blew.
    single : ndarray of bool, shape (N,)
        Whether by one step, so that its draw can be told.
    from_rest : ndarray of bool, shape (N,)
        Whether the state before this row was zero: the air had just begun.
    phi, gain : ndarray, shape (3, N)
        Factor on the state before, and standard deviation of what was added, m/s, without `scale`.
    variance : ndarray, shape (3, N)
        Variance of the state that the model foretells, (m/s)^2, without `scale`.
    tau : ndarray, shape (3, N)
        Time constant, s.
    step : ndarray, shape (3, N)
        Factor of one step; differs from `phi` where a gap was stepped at once.
    euler : ndarray of bool, shape (N,)
        Whether by method ``euler``.
    state : ndarray, shape (3, N)
        Gust without `scale`, m/s.
    scale : ndarray, shape (N,)
        Factor on the gust; NaN where no Dryden gusts blew.
    """

    known: BoolArray
    single: BoolArray
    from_rest: BoolArray
    phi: FloatArray
    gain: FloatArray
    variance: FloatArray
    tau: FloatArray
    step: FloatArray
    euler: BoolArray
    state: FloatArray
    scale: FloatArray

    @property
    def blowing(self) -> BoolArray:
        """Rows in which the model's gust blew, shape (N,)."""
        return np.isfinite(self.scale)


def model_steps(air: Air, settings: Sequence[Settings]) -> ModelSteps:
    """Work out the model's factors of each row from what the record says the model was given."""
    n = len(air)
    index = air.setting
    scale = np.array([s.scale if s.gusts == 'dryden' and s.mean_speed > 0.0 else math.nan
                      for s in settings] or [math.nan])[index]
    mean = np.array([s.mean_speed for s in settings] or [math.nan])[index]
    euler = np.array([s.method == 'euler' for s in settings] or [False])[index]
    scale = np.where(index < 0, np.nan, scale)

    with np.errstate(invalid='ignore', divide='ignore', over='ignore'):
        speed = np.maximum(np.maximum(air.airspeed, mean), MIN_SPEED)
        sigma, length = air.sigma / scale, air.length
        if euler.any():
            sigma, length = _euler_scales(air, mean, euler, sigma, length)
        tau = length / speed
        a = TICK_S / tau
        phi = np.where(euler, 1.0 - a, np.exp(-a))
        stationary = np.where(euler, sigma**2 / (1.0 - 0.5 * a), sigma**2)
        gain2 = np.where(euler, 2.0 * a * sigma**2, -sigma**2 * np.expm1(-2.0 * a))

        gap = np.diff(air.tick, prepend=air.tick[:1])
        same_run = np.diff(air.run, prepend=air.run[:1]) == 0
        begun = np.zeros(n, dtype=bool)
        if n > 1:
            # Restarted in flight: the tick before was the old air's, this one comes from rest.
            begun[1:] = ~same_run[1:] & (gap[1:] > 0) & (np.diff(air.restarts) > 0)
        blowing = np.isfinite(scale)
        before = np.concatenate([[False], blowing[:-1]])
        known = same_run & (gap > 0) & blowing & before
        first_at_rest = ~known & blowing & (air.gust == 0.0).all(axis=0)
        # The clock missed these ticks (only the last few were stepped), or the recorder did.
        missed = np.diff(air.missed, prepend=air.missed[:1]) > 0
        steps = np.where(missed, np.minimum(gap, _MAX_STEPS), gap)
        many = steps > 1
        phi_n = np.where(many, phi ** np.maximum(steps, 1), phi)
        gain2 = np.where(many, stationary * (1.0 - phi_n**2), gain2)
        state = air.gust / scale
    from_rest = first_at_rest | begun
    variance = _variances(blowing, known, from_rest, phi_n**2, gain2, stationary)
    return ModelSteps(
        known=known, single=(known | begun) & (gap == 1), from_rest=from_rest, phi=phi_n,
        gain=np.sqrt(gain2), variance=variance, tau=tau, step=phi, euler=euler,
        state=state, scale=scale)


def _variances(blowing: BoolArray, known: BoolArray, from_rest: BoolArray, phi2: FloatArray,
               gain2: FloatArray, stationary: FloatArray) -> FloatArray:
    found = np.full(phi2.shape, np.nan)
    for axis, row in enumerate(found):
        p = 0.0
        for k, (moves, rest, factor2, added, last) in enumerate(zip(
                known.tolist(), from_rest.tolist(), phi2[axis].tolist(), gain2[axis].tolist(),
                stationary[axis].tolist(), strict=True)):
            if moves:
                p = factor2 * p + added
            elif rest:
                p = 0.0
            else:
                p = last
            row[k] = p
    found[:, ~blowing] = np.nan
    return found


def _euler_scales(air: Air, mean: FloatArray, euler: BoolArray, sigma: FloatArray,
                  length: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return strengths and lengths with the feet that method ``euler`` keeps."""
    feet = np.minimum(np.maximum(air.height, MIN_HEIGHT_M) * EULER_FT_PER_M, MAX_HEIGHT_FT)
    base = 0.177 + 0.000823 * feet
    sigma_u, length_u = 0.1 * mean / base**0.4, feet / base**1.2 * 0.3048
    return (np.where(euler, [sigma_u, sigma_u, 0.1 * mean], sigma),
            np.where(euler, [length_u, 0.5 * length_u, feet * 0.3048], length))


def _squares_of_covariances(steps: ModelSteps, weights: FloatArray) -> FloatArray:
    """Return the sum of C_ij^2 of the gust over chosen rows, shape (3, B).

    `weights`, shape (B, N), holds the scale where a row is chosen and 0 where not.
    """
    total = np.zeros((3, len(weights)))
    linked = np.zeros_like(total)  # sum over the rows so far of (w_i P_i)^2 times phi^2 up to here
    phi2, variance2, weights2 = (steps.phi**2).T, (steps.variance**2).T, (weights**2).T
    known = steps.known
    for k in np.flatnonzero(steps.blowing):
        if known[k]:
            linked *= phi2[k][:, None]
        else:
            linked[:] = 0.0
        own = weights2[k] * variance2[k][:, None]
        total += weights2[k] * (own + 2.0 * linked)
        linked += own
    return total


# -------------------------------------------------------------------------------------- strength


@dataclass(frozen=True)
class Strength:
    """Standard deviation of the gust in one band of height, all of shape (3,) for u, v, w.

    Attributes
    ----------
    low, high : float
        Limits of the band, m.
    height : float
        Mean height in it, m.
    seconds : float
        Time spent in it, s.
    measured : ndarray
        Root of the mean square, m/s (the model's mean is zero).
    model : ndarray
        What the model makes of its settings on average, m/s, the start from rest included.
    aimed : ndarray
        What it aims at (sigma in wind/state), m/s.
    error : ndarray
        Standard error of `measured`, m/s.
    samples : ndarray
        Number of independent samples that the band amounts to.
    """

    low: float
    high: float
    height: float
    seconds: float
    measured: FloatArray
    model: FloatArray
    aimed: FloatArray
    error: FloatArray
    samples: FloatArray

    @property
    def enough(self) -> BoolArray:
        """Whether there are enough independent samples to judge, shape (3,)."""
        return self.samples >= MIN_SAMPLES

    @property
    def agrees(self) -> BoolArray:
        """Whether measured and model agree within 1.96 standard errors, shape (3,)."""
        return np.abs(self.measured - self.model) <= CONFIDENCE * self.error


def strengths(air: Air, steps: ModelSteps) -> tuple[Strength | None, list[Strength]]:
    """Measure the gust's strength in the whole flight and by bands of height.

    Returns
    -------
    whole : Strength or None
        Of the whole flight; None if no Dryden gusts blew.
    bands : list of Strength
        Those with at least 2 s in them, lowest first.
    """
    blowing = steps.blowing
    if not blowing.any():
        return None, []
    edges = np.array([-math.inf, *HEIGHT_EDGES, math.inf])
    band = np.searchsorted(edges, np.nan_to_num(air.height), side='right') - 1
    chosen = [blowing, *(m for b in range(len(edges) - 1)
                         if (m := blowing & (band == b)).sum() * TICK_S >= 2.0)]
    weights = np.where(chosen, np.nan_to_num(steps.scale), 0.0)
    squares = _squares_of_covariances(steps, weights)
    found = []
    for b, rows in enumerate(chosen):
        count = int(rows.sum())
        model2 = (steps.scale**2 * steps.variance)[:, rows].mean(axis=1)
        variance = 2.0 * squares[:, b] / count**2
        with np.errstate(invalid='ignore', divide='ignore'):
            found.append(Strength(
                low=float(edges[band[rows].min()]), high=float(edges[band[rows].max() + 1]),
                height=float(air.height[rows].mean()), seconds=count * TICK_S,
                measured=np.sqrt((air.gust[:, rows]**2).mean(axis=1)), model=np.sqrt(model2),
                aimed=np.sqrt((air.sigma[:, rows]**2).mean(axis=1)),
                error=np.sqrt(variance) / (2.0 * np.sqrt(model2)),
                samples=2.0 * model2**2 / variance))
    return found[0], found[1:]


# --------------------------------------------------------------------------------- time constant


@dataclass(frozen=True)
class TimeConstant:
    """Time constant of one axis.

    Attributes
    ----------
    axis : str
        'u', 'v' or 'w'.
    measured, model, error : float
        The model's times the factor fitted, the model's (its mean over the flight), and the
        standard error, s.
    samples : float
        Independent samples, T / (2 tau) where tau is constant.
    lag : ndarray, shape (M,)
        Lags of the curves, s.
    autocorrelation, model_curve : ndarray, shape (M,)
        Measured, and the model's.
    """

    axis: str
    measured: float
    model: float
    error: float
    samples: float
    lag: FloatArray
    autocorrelation: FloatArray
    model_curve: FloatArray

    @property
    def agrees(self) -> bool:
        """Whether measured and model agree within 1.96 standard errors."""
        return abs(self.measured - self.model) <= CONFIDENCE * self.error


def time_constants(air: Air, steps: ModelSteps) -> list[TimeConstant]:
    """Fit each axis' time constant; empty if there are fewer than a second of ticks in a row."""
    pair = np.flatnonzero(steps.known & steps.single)
    if len(pair) < 20:
        return []
    grid, blowing = _on_grid(air, steps)
    found = []
    for i, axis in enumerate(AXES):
        rate = TICK_S / steps.tau[i, pair]
        before, now = steps.state[i, pair - 1], steps.state[i, pair]
        factor = _fit_rate(before, now, rate, steps.gain[i, pair], steps.euler[pair])
        if not math.isfinite(factor):
            continue
        slope = rate * np.where(steps.euler[pair], 1.0, steps.phi[i, pair]) / steps.gain[i, pair]
        samples = float(slope**2 @ steps.variance[i, pair - 1])
        tau_model = float(steps.tau[i, pair].mean())
        tau, error = tau_model / factor, tau_model / math.sqrt(samples)
        lags = np.arange(0, max(20, min(round(5.0 * tau_model / TICK_S), len(grid[i]) // 4)))
        lags = lags[::max(1, len(lags) // 150)]
        rows = _some(np.flatnonzero(steps.blowing), _MODEL_ROWS)
        curve = _model_covariance(steps, i, rows, np.ones(len(rows)), lags)
        found.append(TimeConstant(
            axis, tau, tau_model, error, samples,
            np.asarray(lags * TICK_S, dtype=np.float64),
            _autocorrelation(grid[i], blowing, lags), curve / curve[0]))
    return found


def _fit_rate(before: FloatArray, now: FloatArray, rate: FloatArray, gain: FloatArray,
              euler: BoolArray) -> float:
    """Return the factor on `rate` that fits best (Gauss-Newton); NaN if there is none."""
    factor = 1.0
    for _ in range(50):
        phi = np.where(euler, 1.0 - factor * rate, np.exp(-factor * rate))
        slope = -rate * np.where(euler, 1.0, phi) * before / gain
        residual = (now - phi * before) / gain
        weight = float(slope @ slope)
        if not weight > 0.0:
            return math.nan
        step = float(slope @ residual) / weight
        factor += max(step, -0.5 * factor)  # stays positive
        if abs(step) < 1e-9:
            return factor
    return math.nan


def _on_grid(air: Air, steps: ModelSteps) -> tuple[FloatArray, BoolArray]:
    """Lay the gust out on an even grid of ticks, 0 where it is not known; runs one by one."""
    tick = air.tick.copy()
    for start in np.flatnonzero(np.diff(air.run)) + 1:
        if tick[start] <= tick[start - 1] or tick[start] - tick[start - 1] > 72_000:
            tick[start:] += tick[start - 1] + 1 - tick[start]
    place = tick - tick[0]
    there = np.zeros(int(place[-1]) + 1, dtype=bool)
    there[place] = steps.blowing
    grid = np.zeros((3, there.size))
    grid[:, place] = np.where(steps.blowing, air.gust, 0.0)
    return grid, there


def _autocorrelation(x: FloatArray, there: BoolArray, lags: IntArray) -> FloatArray:
    size = 1 << (2 * len(x) - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(x, size))**2
    pairs = np.abs(np.fft.rfft(there.astype(float), size))**2
    covariance = np.fft.irfft(spectrum, size)[lags] / np.maximum(
        np.rint(np.fft.irfft(pairs, size)[lags]), 1.0)
    return np.asarray(covariance / covariance[0])


def _some(rows: IntArray, most: int) -> IntArray:
    """Return at most `most` of the rows, evenly spread."""
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(int)]


def _model_covariance(steps: ModelSteps, axis: int, rows: IntArray, weights: FloatArray,
                      lags: IntArray) -> FloatArray:
    """Return the model's autocovariance at `lags` ticks, (m/s)^2: a weighted sum over rows."""
    variance = weights * steps.scale[rows]**2 * steps.variance[axis, rows]
    return np.asarray(variance @ steps.step[axis, rows, None] ** lags)


# -------------------------------------------------------------------------------------- spectrum


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


MIN_WINDOW, MAX_WINDOW = 128, 4096


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
                _model_covariance(steps, i, row[part][places], weights, lags), window)
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
    for part in np.split(rows, np.flatnonzero((gap > _MAX_STEPS) | (gap < 1) | (run != 0)) + 1):
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
    rows = _some(np.flatnonzero(steps.blowing), _MODEL_ROWS)
    tau = steps.tau[axis, rows, None]
    variance = (steps.scale[rows]**2 * steps.variance[axis, rows])[:, None]
    return np.asarray((4.0 * variance * tau / (
        1.0 + (2.0 * math.pi * frequency * tau)**2)).mean(axis=0))


def chi_squared(freedom: FloatArray, z: float) -> FloatArray:
    """Return the chi-squared value as unlikely as `z` standard deviations of a normal one.

    By Wilson and Hilferty (1931): within 1 % from about 10 degrees of freedom on.
    """
    part = 2.0 / (9.0 * freedom)
    return np.asarray(freedom * np.maximum(1.0 - part + z * np.sqrt(part), 0.0)**3)


# ----------------------------------------------------------------------------------------- draws


@dataclass(frozen=True)
class Draws:
    """The random draws, recovered from the gusts, and whether they are those of the seed.

    Attributes
    ----------
    tick : ndarray of int, shape (M,)
        Ticks whose draws can be told.
    values : ndarray, shape (3, M)
        Draws of u, v, w.
    row : ndarray of int, shape (M,)
        Their rows in the record.
    of_seed : int
        How many are the triple of that number of the seed's stream.
    """

    tick: IntArray
    values: FloatArray
    row: IntArray
    of_seed: int

    def __len__(self) -> int:
        return len(self.tick)


_SAME_DRAW = 1e-6
_MOST_DRAWS = 20_000_000


def recover_draws(air: Air, settings: Sequence[Settings], steps: ModelSteps) -> Draws:
    """Solve the model's update for the draws, and compare them with the seed's stream."""
    with np.errstate(invalid='ignore', divide='ignore'):
        before = np.where(steps.known, np.roll(steps.state, 1, axis=1), 0.0)
        values = (steps.state - steps.phi * before) / steps.gain
    rows = np.flatnonzero(steps.single & np.isfinite(values).all(axis=0))
    tick, values = air.tick[rows], values[:, rows]
    seeds = np.array([s.seed for s in settings] or [0], dtype=np.int64)[air.setting[rows]]
    same = 0
    for seed in np.unique(seeds):
        chosen = seeds == seed
        last = int(tick[chosen].max())
        if 3 * last > _MOST_DRAWS:
            continue
        gauss = random.Random(int(seed)).gauss
        stream = np.array([gauss(0.0, 1.0) for _ in range(3 * last)]).reshape(-1, 3)
        wanted = stream[tick[chosen] - 1].T
        same += int((np.abs(values[:, chosen] - wanted) < _SAME_DRAW).all(axis=0).sum())
    return Draws(tick, values, rows, same)


# --------------------------------------------------------------------- gusts as an anemometer has


@dataclass(frozen=True)
class GustFactor:
    """Highest 3 s mean of the horizontal wind over its mean, minute by minute (WMO No. 8).

    Attributes
    ----------
    start : ndarray, shape (M,)
        Start of each whole minute, s.
    factor : ndarray, shape (M,)
        Gust factor.
    """

    start: FloatArray
    factor: FloatArray


def gust_factors(air: Air) -> GustFactor:
    """Compute the 1-minute gust factors of a flight; minutes with over 3 s missing are left out."""
    wind = air.mean_enu + air.gust_enu
    speed = np.hypot(wind[0], wind[1])
    t = air.timeline()
    starts, factors = [], []
    if not len(t):
        return GustFactor(np.empty(0), np.empty(0))
    grid = np.arange(0.0, 60.0, TICK_S)
    kernel = np.full(round(3.0 / TICK_S), TICK_S / 3.0)
    for start in np.arange(t[0], t[-1] - 60.0 + 2 * TICK_S, 60.0):
        first, last = np.searchsorted(t, [start - 1e-6, start + 60.0 - 1e-6])
        if last - first < 2 or np.diff(t[first:last]).max() > 3.0:
            continue
        even = np.interp(start + grid, t[first:last], speed[first:last])
        if even.mean() > 0.1:
            starts.append(start)
            factors.append(np.convolve(even, kernel, 'valid').max() / even.mean())
    return GustFactor(np.array(starts), np.array(factors))


@dataclass(frozen=True)
class WindRose:
    """How often the wind came from where, how strong.

    Attributes
    ----------
    direction : ndarray, shape (36,)
        Middles of the sectors, degrees the wind comes from.
    edges : ndarray, shape (B + 1,)
        Limits of the classes of speed, m/s.
    share : ndarray, shape (B, 36)
        Share of the time, 0 to 1; sums to 1.
    """

    direction: FloatArray
    edges: FloatArray
    share: FloatArray


def wind_rose(air: Air) -> WindRose | None:
    """Sort the whole wind (mean and gust) into 36 sectors and up to 6 classes of speed."""
    wind = air.mean_enu + air.gust_enu
    speed = np.hypot(wind[0], wind[1])
    moving = speed > 0.1
    if not moving.any():
        return None
    speed = speed[moving]
    sector = np.rint(np.degrees(np.arctan2(-wind[0, moving], -wind[1, moving])) / 10.0) % 36
    low, high = np.quantile(speed, [0.02, 0.98])
    step = next(s for s in (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0) if (high - low) / s <= 5.0)
    edges = np.arange(math.floor(low / step), math.ceil(max(high, low + step) / step) + 1) * step
    inner = np.clip(np.searchsorted(edges, speed, side='right') - 1, 0, len(edges) - 2)
    share = np.zeros((len(edges) - 1, 36))
    np.add.at(share, (inner, sector.astype(int)), 1.0 / len(speed))
    return WindRose(np.arange(0.0, 360.0, 10.0), np.asarray(edges, dtype=np.float64), share)


# ------------------------------------------------------------------------------------------- EKF3


@dataclass(frozen=True)
class PhaseSpan:
    """One phase of EKF3's wind.

    Attributes
    ----------
    phase : int
        As in EkfWind.msg.
    start, end : float
        s, on the flight's clock.
    reason : str
        Why, as first given.
    settled : float
        Share of the time in which the estimate might be believed, 0 to 1.
    error_mean, error_max : float
        Length of (estimate - wind flown), m/s; NaN without an estimate.
    direction_mean : float
        Mean size of the error of the direction, degrees.
    """

    phase: int
    start: float
    end: float
    reason: str
    settled: float
    error_mean: float
    error_max: float
    direction_mean: float


def phase_name(phase: int) -> str:
    """Return the name of a phase in plain words."""
    return (WindPhase(phase).name.lower().replace('_', ' ') if phase in list(WindPhase)
            else f'phase {phase}')


def phase_spans(ekf: Ekf) -> list[PhaseSpan]:
    """Return the phases in order; each ends where the next begins."""
    if not len(ekf):
        return []
    starts = [0, *(np.flatnonzero(np.diff(ekf.phase) != 0) + 1).tolist()]
    found = []
    for first, last in zip(starts, [*starts[1:], len(ekf)], strict=True):
        error = ekf.error_speed[first:last]
        turn = np.abs(ekf.error_direction[first:last])
        error, turn = error[np.isfinite(error)], turn[np.isfinite(turn)]
        found.append(PhaseSpan(
            phase=int(ekf.phase[first]), start=float(ekf.t[first]),
            end=float(ekf.t[min(last, len(ekf) - 1)]), reason=ekf.reason[first],
            settled=float(ekf.settled[first:last].mean()),
            error_mean=float(error.mean()) if len(error) else math.nan,
            error_max=float(error.max()) if len(error) else math.nan,
            direction_mean=float(turn.mean()) if len(turn) else math.nan))
    return found


# ---------------------------------------------------------------------------------- everything


@dataclass(frozen=True)
class Tally:
    """What the record says about the ticks.

    Attributes
    ----------
    seconds : float
        From first to last tick of each run, summed, s.
    recorded : int
        Ticks recorded.
    missed : int or None
        Ticks for which the node heard no clock, all runs; None: not known.
    lost : int
        Ticks that are in the clock's count but not in the record: missed, or lost by the recorder.
    rate : float
        Median of the tick rate, Hz of sim time; NaN: not known.
    runs : int
        How many times the air began.
    """

    seconds: float
    recorded: int
    missed: int | None
    lost: int
    rate: float
    runs: int


def tally(air: Air) -> Tally:
    """Count the ticks of a flight."""
    seconds, lost, missed = 0.0, 0, 0
    # Where the clock went back; the air restarted in flight goes on with its count of ticks.
    bounds = [0, *(np.flatnonzero((np.diff(air.tick) <= 0) | (np.diff(air.missed) < 0)) + 1),
              len(air)]
    for first, last in pairwise(bounds):
        if last > first:
            seconds += float(air.t[last - 1] - air.t[first])
            lost += int(air.tick[last - 1] - air.tick[first]) - (last - first - 1)
            missed += int(air.missed[last - 1])
    rates = air.rate[air.rate > 0.0]
    return Tally(seconds, len(air), missed if len(air) and (air.missed >= 0).all() else None, lost,
                 float(np.median(rates)) if len(rates) else math.nan,
                 int(air.run[-1]) + 1 if len(air) else 0)


@dataclass(frozen=True)
class Analysis:
    """All numbers of a flight."""

    tally: Tally
    steps: ModelSteps
    strength: Strength | None
    bands: list[Strength]
    time_constants: list[TimeConstant]
    spectra: list[Spectrum]
    draws: Draws
    gust_factor: GustFactor
    rose: WindRose | None
    phases: list[PhaseSpan]


def analyse(flight: FlightRecord) -> Analysis:
    """Work out all numbers of a flight."""
    air = flight.air
    steps = model_steps(air, flight.settings)
    whole, bands = strengths(air, steps)
    return Analysis(
        tally=tally(air), steps=steps, strength=whole, bands=bands,
        time_constants=time_constants(air, steps), spectra=spectra(air, steps),
        draws=recover_draws(air, flight.settings, steps), gust_factor=gust_factors(air),
        rose=wind_rose(air), phases=phase_spans(flight.ekf) if flight.ekf is not None else [])
