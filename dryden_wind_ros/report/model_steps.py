"""What the gust model made of the flight, tick by tick: the base of every comparison with it.

The gust model is a first-order process stepped once a tick with known factors,

    x_k = phi_k x_{k-1} + g_k n_k,   P_k = phi_k^2 P_{k-1} + g_k^2,   C_ij = P_i phi_{i+1} ... phi_j

(P the variance, C the covariance of two ticks i < j), whatever the vehicle's height and airspeed
did. So the model foretells not only each measured number but also how far off it may be by chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dryden_wind_ros.gusts.dryden import EULER_FT_PER_M, MAX_HEIGHT_FT, MIN_HEIGHT_M, MIN_SPEED
from dryden_wind_ros.gusts.tick_grid import TICK_S
from dryden_wind_ros.report.flight import Air, BoolArray, FloatArray, IntArray, Settings

_REST = 1e-12  # m/s: rounding, where a discrete gust was taken off

MAX_STEPS = 10
"""Of a gap in the clock the model steps so many ticks at most, as gusts.air has it."""


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
    aim : ndarray, shape (3, N)
        Variance that the state tends to, (m/s)^2, without `scale`: sigma^2, a little more by
        ``euler``. A process that starts from calm has 1 - exp(-2 t / tau) of it after a time t.
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
    aim: FloatArray
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
    scale = np.array([s.scale if s.blows_first_order else math.nan
                      for s in settings] or [math.nan])[index]
    # Of the tick, not of the settings: a scenario changes it without them.
    mean = np.hypot(air.mean_enu[0], air.mean_enu[1])
    euler = np.array([s.method == 'euler' for s in settings] or [False])[index]
    scale = np.where((index < 0) | ~(mean > 0.0), np.nan, scale)

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
        gust = air.turbulence
        first_at_rest = ~known & blowing & (np.abs(gust) < _REST).all(axis=0)
        # The clock missed these ticks (only the last few were stepped), or the recorder did.
        missed = np.diff(air.missed, prepend=air.missed[:1]) > 0
        steps = np.where(missed, np.minimum(gap, MAX_STEPS), gap)
        many = steps > 1
        phi_n = np.where(many, phi ** np.maximum(steps, 1), phi)
        gain2 = np.where(many, stationary * (1.0 - phi_n**2), gain2)
        state = gust / scale
    from_rest = first_at_rest | begun
    variance = _variances(blowing, known, from_rest, phi_n**2, gain2, stationary)
    return ModelSteps(
        known=known, single=(known | begun) & (gap == 1), from_rest=from_rest, phi=phi_n,
        gain=np.sqrt(gain2), variance=variance, tau=tau, step=phi,
        aim=stationary, euler=euler, state=state, scale=scale)


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


def some(rows: IntArray, most: int) -> IntArray:
    """Return at most `most` of the rows, evenly spread."""
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(int)]


def model_covariance(steps: ModelSteps, axis: int, rows: IntArray, weights: FloatArray,
                      lags: IntArray) -> FloatArray:
    """Return the model's autocovariance at `lags` ticks, (m/s)^2: a weighted sum over rows."""
    variance = weights * steps.scale[rows]**2 * steps.variance[axis, rows]
    return np.asarray(variance @ steps.step[axis, rows, None] ** lags)
