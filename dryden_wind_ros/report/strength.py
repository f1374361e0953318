"""Strength of the gust beside the model's, by band of height.

The mean square of a Gaussian process has the variance 2 sum C_ij^2 / N^2 [1]_, with C the
covariance of its samples (see `model_steps`). With a constant time constant tau over a T >> tau
this is 2 sigma^4 / n with n = T / tau independent samples: sigma is uncertain by 1 / sqrt(2 n) of
itself. The mean square is distributed as chi-squared with n degrees of freedom, nearly.

References
----------
.. [1] Bendat and Piersol, Random Data, chapter 8 (errors of mean square estimates).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dryden_wind_ros.gusts.tick_grid import TICK_S
from dryden_wind_ros.report.chance import MIN_SAMPLES, chi_squared_range
from dryden_wind_ros.report.flight import Air, BoolArray, FloatArray
from dryden_wind_ros.report.model_steps import ModelSteps

HEIGHT_EDGES = (3.5, 7.0, 14.0, 28.0, 56.0, 112.0, 224.0, 448.0)
"""Limits of the bands of height, m; chosen so that usual heights (5, 10, 20 m ...) lie inside."""


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
    least, most : ndarray
        Between these lie 95 % of measurements of the model's own process, m/s; never below 0.
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
    least: FloatArray
    most: FloatArray
    samples: FloatArray

    @property
    def enough(self) -> BoolArray:
        """Whether there are enough independent samples to judge, shape (3,)."""
        return self.samples >= MIN_SAMPLES

    @property
    def agrees(self) -> BoolArray:
        """Whether `measured` lies where 95 % of right measurements do, shape (3,)."""
        return (self.least <= self.measured) & (self.measured <= self.most)


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
    bands = bands_of(air, blowing)
    weights = np.where([rows for _, _, rows in bands], np.nan_to_num(steps.scale), 0.0)
    squares = _squares_of_covariances(steps, weights)
    found = []
    for b, (lowest, highest, rows) in enumerate(bands):
        count = int(rows.sum())
        model2 = (steps.scale**2 * steps.variance)[:, rows].mean(axis=1)
        variance = 2.0 * squares[:, b] / count**2
        with np.errstate(invalid='ignore', divide='ignore'):
            samples = 2.0 * model2**2 / variance
            least, most = chi_squared_range(samples)
            found.append(Strength(
                low=lowest, high=highest,
                height=float(air.height[rows].mean()), seconds=count * TICK_S,
                measured=np.sqrt((air.turbulence[:, rows]**2).mean(axis=1)), model=np.sqrt(model2),
                aimed=np.sqrt((air.sigma[:, rows]**2).mean(axis=1)),
                least=np.sqrt(model2 * least), most=np.sqrt(model2 * most), samples=samples))
    return found[0], found[1:]


def bands_of(air: Air, blowing: BoolArray) -> list[tuple[float, float, BoolArray]]:
    """Return lowest and highest height (m) and rows of all that blew, then of each band."""
    edges = np.array([-math.inf, *HEIGHT_EDGES, math.inf])
    band = np.searchsorted(edges, np.nan_to_num(air.height), side='right') - 1
    chosen = [blowing, *(m for b in range(len(edges) - 1)
                         if (m := blowing & (band == b)).sum() * TICK_S >= 2.0)]
    return [(float(edges[band[rows].min()]), float(edges[band[rows].max() + 1]), rows)
            for rows in chosen]


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
