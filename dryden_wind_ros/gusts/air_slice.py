"""A slice of a field around a vehicle as arrows, for drawing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dryden_wind_ros.gusts.field import TurbulenceField

PLANES = ('off', 'horizontal', 'vertical')
MOST_ARROWS = 900

FloatArray = npt.NDArray[np.float64]


def grid(center: Sequence[float], plane: str, size: float, spacing: float) -> FloatArray:
    """Return the places of a square grid around a place, m, shape (N, 3).

    Parameters
    ----------
    center : sequence of float, shape (3,)
        ENU, m. The grid stands still while the vehicle flies through it: its places are whole
        multiples of the spacing.
    plane : {'horizontal', 'vertical'}
        The vertical one goes east and up.
    size, spacing : float
        m. With more than `MOST_ARROWS` places the spacing is made wider.
    """
    spacing = max(spacing, size / (math.isqrt(MOST_ARROWS) - 1))
    half = int(0.5 * size / spacing)
    steps = np.arange(-half, half + 1) * spacing
    axes = (0, 2) if plane == 'vertical' else (0, 1)
    places = np.empty((steps.size**2, 3))
    places[:] = center
    for axis, offsets in zip(axes, np.meshgrid(steps, steps), strict=True):
        places[:, axis] = round(center[axis] / spacing) * spacing + offsets.ravel()
    return places


def arrows(field: TurbulenceField, places: FloatArray, heights: FloatArray, mean: Sequence[float],
           drift: Sequence[float], age: float, factor: float,
           scale: float) -> tuple[FloatArray, FloatArray]:
    """Return the arrows of the gusts at places as line segments.

    Parameters
    ----------
    field : TurbulenceField
    places, heights : ndarray, shape (N, 3) and (N,)
        ENU, and above the ground, m.
    mean, drift, age
        As for `TurbulenceField.gust`.
    factor : float
        On the gust.
    scale : float
        Length of an arrow, m per m/s.

    Returns
    -------
    segments : ndarray, shape (N, 3, 2, 3)
        Of each arrow the shaft and two barbs: from, to.
    speed : ndarray, shape (N,)
        Of the gust, m/s.
    """
    gusts = factor * field.gust(places, 0.0, mean, drift=drift, age=age, heights=heights)
    shaft = scale * gusts
    tips = places + shaft
    # Barbs in the plane of the arrow and the sideways direction.
    side = np.stack((-shaft[:, 1], shaft[:, 0], np.zeros(len(shaft))), axis=1)
    segments = np.empty((len(places), 3, 2, 3))
    segments[:, 0, 0], segments[:, 0, 1] = places, tips
    for barb, sign in ((1, 1.0), (2, -1.0)):
        segments[:, barb, 0] = tips
        segments[:, barb, 1] = tips - 0.25 * shaft + sign * 0.12 * side
    return segments, np.linalg.norm(gusts, axis=1)
