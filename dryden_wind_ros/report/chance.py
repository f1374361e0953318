"""How far off a right measurement may be by chance."""

from __future__ import annotations

import numpy as np

from dryden_wind_ros.report.flight import FloatArray

CONFIDENCE = 1.96
"""Standard errors either side within which 95 % of right measurements lie."""


def chi_squared(freedom: FloatArray, z: float) -> FloatArray:
    """Return the chi-squared value as unlikely as `z` standard deviations of a normal one.

    By Wilson and Hilferty (1931): within 1 % from about 10 degrees of freedom on.
    """
    part = 2.0 / (9.0 * freedom)
    return np.asarray(freedom * np.maximum(1.0 - part + z * np.sqrt(part), 0.0)**3)
