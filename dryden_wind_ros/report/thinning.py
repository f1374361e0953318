"""Long lines in few points that show the same."""

from __future__ import annotations

import numpy as np

from dryden_wind_ros.report.flight import FloatArray, IntArray


def thin(y: FloatArray, points: int) -> IntArray:
    """Return the rows of the least and the greatest value in each of `points` / 2 stretches.

    Parameters
    ----------
    y : ndarray, shape (N,)
        Values; NaN where there are none.
    points : int
        How many rows to return at most, about.

    Returns
    -------
    ndarray of int
        Rows in order, the first and the last among them.
    """
    if len(y) <= points:
        return np.arange(len(y))
    edges = np.linspace(0, len(y), points // 2 + 1).astype(int)[:-1]
    low = np.minimum.reduceat(np.where(np.isnan(y), np.inf, y), edges)
    high = np.maximum.reduceat(np.where(np.isnan(y), -np.inf, y), edges)
    stretch = np.searchsorted(edges, np.arange(len(y)), side='right') - 1
    rows = np.arange(len(y))
    is_low = np.where(y == low[stretch], rows, len(y))
    is_high = np.where(y == high[stretch], rows, len(y))
    found = np.concatenate([np.minimum.reduceat(is_low, edges), np.minimum.reduceat(is_high, edges),
                            [0, len(y) - 1]])
    return np.unique(found[found < len(y)])
