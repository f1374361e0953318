"""The air of a flight from what a vehicle's own log says of it: SIM_WIND_*, height and airspeed."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from dryden_wind_ros.gusts.tick_grid import TICK_S
from dryden_wind_ros.logs.flight import MAX_GRID, Air, BoolArray, FloatArray, IntArray

Series = tuple[FloatArray, FloatArray]
"""Times, s, ascending, and the values that hold from then on."""

SIM_WIND_DEFAULTS: Mapping[str, float] = {
    'SIM_WIND_SPD': 0.0, 'SIM_WIND_DIR': 180.0, 'SIM_WIND_DIR_Z': 0.0}

_MOST = 1e3
"""Of speeds (m/s) and directions (degrees): beyond it is damage."""


def empty_air() -> Air:
    """Return an `Air` of no rows."""
    return air_of_sim_wind(np.empty(0), np.empty(0, dtype=np.int64), np.empty((3, 0)))


def air_of_log(winds: Mapping[str, Series], height: Series, airspeed: Series,
               notes: list[str]) -> Air:
    """Put what a log says on the grid of ticks.

    Parameters
    ----------
    winds : mapping of str to Series
        Values that SIM_WIND_SPD, SIM_WIND_DIR and SIM_WIND_DIR_Z took; empty where not known.
    height, airspeed : Series
        m above home, m/s.
    notes : list of str
        Is added to where not everything can be shown.

    Returns
    -------
    Air
        From the first to the last time that any of them has.
    """
    winds = {name: _possible(name, series, notes) for name, series in winds.items()}
    times = [series[0] for series in (*winds.values(), height, airspeed) if len(series[0])]
    if not times:
        return empty_air()
    first = int(min(float(t[0]) for t in times) / TICK_S)
    last = int(max(float(t[-1]) for t in times) / TICK_S)
    if last - first >= MAX_GRID:
        hours, most = ((last - first) * TICK_S / 3600.0, MAX_GRID * TICK_S / 3600.0)
        notes.append(f'the log spans {hours:.0f} h; the air of its first {most:.0f} h is shown')
        last = first + MAX_GRID - 1
    tick = np.arange(first, last + 1, dtype=np.int64)
    t: FloatArray = (tick * TICK_S).astype(np.float64)
    wind = np.full((3, len(t)), math.nan)
    if any(len(series[0]) for series in winds.values()):
        for row, (name, default) in enumerate(SIM_WIND_DEFAULTS.items()):
            series = winds.get(name, (np.empty(0), np.empty(0)))
            wind[row] = held(t, series, math.nan if len(series[0]) else default)
    return air_of_sim_wind(t, tick, wind, held(t, height), held(t, airspeed))


def _possible(name: str, series: Series, notes: list[str]) -> Series:
    """Return a series without the values that no wind can have."""
    times, values = series
    good = np.abs(values) <= _MOST  # NaN is none either
    if good.all():
        return series
    notes.append(f'{name}: {np.count_nonzero(~good)} values that cannot be were left out')
    return times[good], values[good]


def held(t: FloatArray, series: Series, default: float = math.nan) -> FloatArray:
    """Return the newest value at each time; `default` before the first."""
    at = np.searchsorted(series[0], t + 1e-9, side='right')
    return np.concatenate([[default], series[1]])[at]


def air_of_sim_wind(t: FloatArray, tick: IntArray, sim_wind: FloatArray,
                    height: FloatArray | None = None, airspeed: FloatArray | None = None) -> Air:
    """Make an `Air` of the SIM_WIND_* values alone; the gust is what differs from their mean.

    The calm before anybody gave a wind, and after it was taken back, is no air of the flight: NaN.

    Parameters
    ----------
    t : ndarray, shape (N,)
        Time, s.
    tick : ndarray of int, shape (N,)
        Number of the tick.
    sim_wind : ndarray, shape (3, N)
        Speed (m/s), direction (degrees, from), tilt (degrees, up).
    height, airspeed : ndarray, shape (N,), optional
        m above the ground, m/s.
    """
    n = len(t)
    wind = np.where(_given(sim_wind[0]), _enu(sim_wind), math.nan)
    mean = _mean_wind(wind)
    gust_enu = wind - mean
    speed = np.hypot(mean[0], mean[1])
    with np.errstate(invalid='ignore', divide='ignore'):
        along = np.where(speed > 0.0, mean[:2] / speed, [[1.0], [0.0]])
    u = gust_enu[0] * along[0] + gust_enu[1] * along[1]
    v = gust_enu[0] * along[1] - gust_enu[1] * along[0]
    unknown = np.full(n, math.nan)
    nothing = np.full((3, n), math.nan)
    minus_one = np.full(n, -1, dtype=np.int64)
    return Air(
        tick=tick, run=np.concatenate([np.zeros(min(1, n), dtype=np.int64),
                                       np.cumsum(np.diff(tick) < 0)]),
        setting=minus_one, t=t, draws=minus_one,
        height=unknown if height is None else height,
        airspeed=unknown if airspeed is None else airspeed,
        gust=np.array([u, v, gust_enu[2]]), sigma=nothing, length=nothing,
        mean_enu=mean, gust_enu=gust_enu, sim_wind=sim_wind,
        missed=minus_one, restarts=minus_one, rate=unknown)


def _given(speed: FloatArray) -> BoolArray:
    """Return where somebody gave a wind: not in the calm before the first and after the last."""
    blows = np.flatnonzero(np.nan_to_num(speed) != 0.0)
    given = np.zeros(len(speed), dtype=bool)
    if len(blows):
        given[blows[0]:blows[-1] + 1] = True
    return given


_JUMP = 1.0
"""m/s: a wind that changes by this, and by far more than gusts do, within a tick was set anew."""

_JUMP_OVER_GUSTS = 12.0
_FEW_CHANGES = 100  # fewer are changes of the mean wind, each of them
_SETTLES = 10  # ticks within which SPD, DIR and DIR_Z of one wind have all arrived


def _mean_wind(wind: FloatArray) -> FloatArray:
    """Return the mean wind at each tick, east, north, up, shape (3, N).

    Gusts pass from tick to tick without a jump. Where the wind jumps, another mean wind was asked
    for, so between two jumps the mean is what it was on average.
    """
    mean = np.full(wind.shape, math.nan)
    rows = np.flatnonzero(np.isfinite(wind).all(axis=0))
    if not len(rows):
        return mean
    known = wind[:, rows]
    steps = np.sqrt((np.diff(known, axis=1)**2).sum(axis=0))
    moving = steps[steps > 0.0]
    usual = float(np.median(moving)) if len(moving) > _FEW_CHANGES else 0.0
    jumps = np.flatnonzero(steps > max(_JUMP, _JUMP_OVER_GUSTS * usual)) + 1
    # The three parameters of one change arrive one after the other.
    jumps = jumps[np.diff(jumps, append=len(rows) + _SETTLES) > _SETTLES]
    for part in np.split(np.arange(len(rows)), jumps):
        if len(part):
            mean[:, rows[part]] = known[:, part].mean(axis=1, keepdims=True)
    return mean


def _enu(sim_wind: FloatArray) -> FloatArray:
    """Return `gusts.sitl_wind.sitl_wind_enu` of many at once, shape (3, N)."""
    speed = sim_wind[0]
    heading, tilt = np.radians(sim_wind[1]), np.radians(sim_wind[2])
    level = speed * np.cos(tilt)
    return np.array([-level * np.sin(heading), -level * np.cos(heading), speed * np.sin(tilt)])
