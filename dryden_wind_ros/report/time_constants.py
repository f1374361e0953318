"""Time constants of the gust beside the model's.

One factor r on all rates 1 / tau_k is fitted, phi_k = exp(-r dt / tau_k), by least squares of
x_k - phi_k x_{k-1}, weighted by 1 / g_k^2 (see `model_steps`): with a constant tau, the
autocorrelation at a lag of one tick. Its variance is 1 / sum (dt phi_k / (tau_k g_k))^2 P_{k-1}, so
tau is uncertain by sqrt(2 tau / T) of itself: 1 / sqrt(n) with n = T / (2 tau). The factor is the
Gaussian number, not tau, so the range of tau reaches farther up than down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dryden_wind_ros.gusts.tick_grid import TICK_S
from dryden_wind_ros.report.chance import CONFIDENCE, MIN_SAMPLES
from dryden_wind_ros.report.flight import AXES, Air, BoolArray, FloatArray, IntArray
from dryden_wind_ros.report.model_steps import ModelSteps, model_covariance, some

_MODEL_ROWS = 400  # rows over which the model's curve is averaged


@dataclass(frozen=True)
class TimeConstant:
    """Time constant of one axis.

    Attributes
    ----------
    axis : str
        'u', 'v' or 'w'.
    measured, model : float
        The model's divided by the factor fitted, and the model's (its mean over the flight), s;
        `measured` is infinite where the gust returned to its mean at no rate.
    least, most : float
        Between these lie 95 % of such fits to the model's own process, s; `most` may be infinite.
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
    least: float
    most: float
    samples: float
    lag: FloatArray
    autocorrelation: FloatArray
    model_curve: FloatArray

    @property
    def agrees(self) -> bool:
        """Whether `measured` lies where 95 % of right fits do."""
        return self.least <= self.measured <= self.most

    @property
    def enough(self) -> bool:
        """Whether there are enough independent samples to judge."""
        return self.samples >= MIN_SAMPLES


def time_constants(air: Air, steps: ModelSteps) -> list[TimeConstant]:
    """Fit each axis' time constant; empty if there are fewer than a second of ticks in a row."""
    pair = np.flatnonzero(steps.known & steps.single & np.isfinite(steps.tau).all(axis=0))
    if len(pair) < 20:
        return []
    grid, blowing = _on_grid(air, steps)
    found = []
    for i, axis in enumerate(AXES):
        rate = TICK_S / steps.tau[i, pair]
        before, now = steps.state[i, pair - 1], steps.state[i, pair]
        factor = _fit_rate(before, now, rate, steps.gain[i, pair], steps.euler[pair])
        slope = rate * np.where(steps.euler[pair], 1.0, steps.phi[i, pair]) / steps.gain[i, pair]
        samples = float(slope**2 @ steps.variance[i, pair - 1])
        tau_model = float(steps.tau[i, pair].mean())
        spread = CONFIDENCE / math.sqrt(samples)  # of the factor, which is on 1 / tau
        lags = np.arange(0, max(20, min(round(5.0 * tau_model / TICK_S), len(grid[i]) // 4)))
        lags = lags[::max(1, len(lags) // 150)]
        rows = some(np.flatnonzero(steps.blowing), _MODEL_ROWS)
        curve = model_covariance(steps, i, rows, np.ones(len(rows)), lags)
        found.append(TimeConstant(
            axis, tau_model / factor if factor > 0.0 else math.inf, tau_model,
            tau_model / (1.0 + spread), tau_model / (1.0 - spread) if spread < 1.0 else math.inf,
            samples,
            np.asarray(lags * TICK_S, dtype=np.float64),
            _autocorrelation(grid[i], blowing, lags), curve / curve[0]))
    return found


def _fit_rate(before: FloatArray, now: FloatArray, rate: FloatArray, gain: FloatArray,
              euler: BoolArray) -> float:
    """Return the factor on `rate` that fits best (Gauss-Newton); 0 if none above 0 does."""
    factor = 1.0
    for _ in range(50):
        phi = np.where(euler, 1.0 - factor * rate, np.exp(-factor * rate))
        slope = -rate * np.where(euler, 1.0, phi) * before / gain
        residual = (now - phi * before) / gain
        weight = float(slope @ slope)
        if not weight > 0.0:
            return 0.0
        step = float(slope @ residual) / weight
        factor += max(step, -0.5 * factor)  # stays positive
        if abs(step) < 1e-9:
            return factor
    return 0.0


def _on_grid(air: Air, steps: ModelSteps) -> tuple[FloatArray, BoolArray]:
    """Lay the gust out on an even grid of ticks, 0 where it is not known; runs one by one."""
    step = np.diff(air.tick)
    step[(step <= 0) | (step > 72_000)] = 1  # another run, or a damaged number
    place = np.concatenate(([0], np.cumsum(step)))
    there = np.zeros(int(place[-1]) + 1, dtype=bool)
    there[place] = steps.blowing
    grid = np.zeros((3, there.size))
    grid[:, place] = np.where(steps.blowing, air.turbulence, 0.0)
    return grid, there


def _autocorrelation(x: FloatArray, there: BoolArray, lags: IntArray) -> FloatArray:
    size = 1 << (2 * len(x) - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(x, size))**2
    pairs = np.abs(np.fft.rfft(there.astype(float), size))**2
    covariance = np.fft.irfft(spectrum, size)[lags] / np.maximum(
        np.rint(np.fft.irfft(pairs, size)[lags]), 1.0)
    return np.asarray(covariance / covariance[0])
