"""Stretches of equal phases: the one place that says where a phase begins and ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Stretch:
    """Rows with the same phase, one after the other.

    Attributes
    ----------
    rows : slice
        The rows.
    start, end : float
        Their first time, s, and the first time of the next stretch; of the last stretch, the last
        time there is.
    """

    rows: slice
    start: float
    end: float


def stretches(t: Sequence[float] | npt.NDArray[np.float64], *keys: Sequence[object] |
              npt.NDArray[np.generic]) -> list[Stretch]:
    """Return the runs of rows in which none of the keys changes.

    Parameters
    ----------
    t : sequence of float, length N
        Times, s, in order.
    *keys : sequence, length N
        Phase, and whatever else begins a new stretch (the core of EKF3, for example).

    Examples
    --------
    >>> [(s.start, s.end) for s in stretches([0.0, 1.0, 2.0], ['init', 'init', 'coast'])]
    [(0.0, 2.0), (2.0, 2.0)]
    """
    count = len(t)
    news = np.zeros(count, dtype=bool)
    news[:1] = True
    for key in keys:
        values = np.asarray(key)
        news[1:] |= values[1:] != values[:-1]
    begins = np.flatnonzero(news).tolist()
    return [Stretch(slice(begin, end), float(t[begin]), float(t[min(end, count - 1)]))
            for begin, end in zip(begins, [*begins[1:], count], strict=True)]
