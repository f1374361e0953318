"""Gusts as an anemometer has them: the 1-minute gust factor, and the wind rose."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dryden_wind_ros.gusts.tick_grid import TICK_S
from dryden_wind_ros.report.flight import Air, FloatArray

CALM = 0.5
"""m/s: of a weaker wind the direction is noise."""


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
    moving = speed > CALM
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
