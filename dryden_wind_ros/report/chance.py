"""How far off a right measurement may be by chance.

A mean square, and a spectrum, is a sum of squares of Gaussian numbers, some of them related. It is
distributed nearly as its mean times chi-squared / n, with n such that the variance is right:
n = 2 mean^2 / variance, the effective degrees of freedom [1]_. So its range is never below zero,
and lies around the model, which is what is asked about, not around the measurement.

References
----------
.. [1] Satterthwaite, An approximate distribution of estimates of variance components, Biometrics
   Bulletin 2, 1946.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dryden_wind_ros.report.flight import FloatArray

COVERAGE = 0.95
"""Share of right measurements that lie in the ranges stated."""

CONFIDENCE = 1.96
"""Standard errors either side within which as many Gaussian numbers lie."""

MIN_SAMPLES = 8.0
"""Fewer independent samples than this are shown, but not judged."""


def chi_squared_range(freedom: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the range of chi-squared / n that holds `COVERAGE` of its values.

    Parameters
    ----------
    freedom : array_like
        Degrees of freedom n, above 0; not necessarily whole.

    Returns
    -------
    low, high : ndarray
        Of the shape of `freedom`.
    """
    # Here, not above: it takes a second to load, and reading a record does not need it.
    from scipy.special import gammaincinv

    half = 0.5 * np.asarray(freedom, dtype=np.float64)
    tail = 0.5 * (1.0 - COVERAGE)
    return (np.asarray(gammaincinv(half, tail) / half),
            np.asarray(gammaincinv(half, 1.0 - tail) / half))
