"""How a vehicle moved, by column: what `ekf.vehicle_state.VehicleState` would keep of each message.

Attitude, position and speed are most of a telemetry log, and of almost all of them only the newest
counts when the phase of EKF3's wind is decided. So they are put together with NumPy for the moments
at which it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dryden_wind_ros.ekf.vehicle_state import TAKE_OFF_SPEED
from dryden_wind_ros.logs.flight import BoolArray, FloatArray, IntArray
from dryden_wind_ros.logs.tlog_vehicle import Vehicle

_BLOCK = 8192  # moments that are made to numbers of Python at once
_MIX_LATE = 1.0  # s after which another message stands in for one that is not sent any more


@dataclass(frozen=True)
class _Events:
    """Values of messages, in order of the log."""

    rows: IntArray
    t: FloatArray
    flight: IntArray
    values: FloatArray  # (N,) or (N, M)

    def where(self, chosen: BoolArray) -> _Events:
        return _Events(self.rows[chosen], self.t[chosen], self.flight[chosen],
                       self.values[chosen])

    def before(self, rows: IntArray, flight: IntArray) -> IntArray:
        """Return the newest of the same flight up to each row, -1 where there is none."""
        found = np.searchsorted(self.rows, rows, side='right') - 1
        if len(self.rows):
            found[(found >= 0) & (self.flight[found] != flight)] = -1
        return found

    def time_before(self, other: _Events) -> FloatArray:
        """Return the time of the newest of these before each of the others."""
        return _pick(self.t, self.before(other.rows, other.flight), -math.inf)


def _pick(values: FloatArray, which: IntArray, otherwise: float) -> FloatArray:
    if not len(values):
        return np.full((len(which), *values.shape[1:]), otherwise)
    picked: FloatArray = values[which]
    picked[which < 0] = otherwise
    return picked


def _merged(*parts: _Events) -> _Events:
    rows = np.concatenate([part.rows for part in parts])
    order = np.argsort(rows)
    return _Events(rows[order], np.concatenate([part.t for part in parts])[order],
                   np.concatenate([part.flight for part in parts])[order],
                   np.concatenate([part.values for part in parts])[order])


def _columns(vehicle: Vehicle, name: str, make: Callable[[npt.NDArray[np.void]], FloatArray],
             width: int = 0) -> _Events:
    one = vehicle.heard.get(name)
    if one is None:
        empty = np.empty(0)
        return _Events(np.empty(0, dtype=np.int64), empty, np.empty(0, dtype=np.int64),
                       np.empty((0, width)) if width else empty)
    rows, fields = one.rows, one.fields
    if vehicle.bad:
        good = ~np.isin(rows, list(vehicle.bad))
        rows, fields = rows[good], fields[good]
    t, flight = vehicle.clock(rows)
    return _Events(rows, t, flight, make(fields))


def _stack(*columns: npt.NDArray[np.generic]) -> FloatArray:
    return np.stack([column.astype(np.float64) for column in columns], axis=1)


def _speeds(velocity: FloatArray) -> FloatArray:
    # As the monitor computes it, to the last bit.
    return np.fromiter(map(math.hypot, velocity[:, 0].tolist(), velocity[:, 1].tolist()),
                       dtype=np.float64, count=len(velocity))


Moment = tuple[float, float, float, float, float, float, float, float, int, int]
"""Yaw (rad), velocity to north and east (m/s), speed over the ground (m/s), since when it is above
the take-off speed (s, NaN if it is not), its maximum since the moment before (m/s), airspeed (m/s),
height above home (m), and the first and the last of the :meth:`Motion.heights` since then."""


class Motion:
    """The motion of a vehicle at given rows of its log.

    Parameters
    ----------
    vehicle : Vehicle
        The vehicle.
    rows : ndarray of int
        The moments, in order.
    flight : ndarray of int
        Flight of each.
    """

    def __init__(self, vehicle: Vehicle, rows: IntArray, flight: IntArray) -> None:
        attitude = _columns(vehicle, 'ATTITUDE', lambda of: of['yaw'].astype(np.float64))
        attitude = attitude.where(np.isfinite(attitude.values))
        # North and east, then up.
        local = _columns(vehicle, 'LOCAL_POSITION_NED',
                         lambda of: _stack(of['vx'], of['vy'], -of['z']), 3)
        local_moves = local.where(np.isfinite(local.values[:, 0])
                                  & np.isfinite(local.values[:, 1]))
        around = _columns(vehicle, 'GLOBAL_POSITION_INT', lambda of: np.stack(
            [of['vx'] * 0.01, of['vy'] * 0.01, of['relative_alt'] * 1e-3, of['hdg'] * 1.0], axis=1),
            4)
        late = around.where(around.t - local_moves.time_before(around) > _MIX_LATE)
        hud = _columns(vehicle, 'VFR_HUD', lambda of: _stack(
            of['airspeed'], of['groundspeed'], of['heading']), 3)

        turned = around.where((around.values[:, 3] != 65535)
                              & (around.t - attitude.time_before(around) > _MIX_LATE))
        yaw = _merged(attitude, _Events(turned.rows, turned.t, turned.flight, _radians(
            turned.values[:, 3] * 0.01)))
        headed = hud.where(hud.t - yaw.time_before(hud) > _MIX_LATE)
        yaw = _merged(yaw, _Events(headed.rows, headed.t, headed.flight,
                                   _radians(headed.values[:, 2])))

        moves = _merged(*(_Events(one.rows, one.t, one.flight, one.values[:, :2])
                          for one in (local_moves, late)))
        shown = hud.where(np.isfinite(hud.values[:, 1]))
        speed = _merged(
            _Events(moves.rows, moves.t, moves.flight, _speeds(moves.values)),
            _Events(shown.rows, shown.t, shown.flight, shown.values[:, 1]))
        heights = _merged(*(_Events(one.rows, one.t, one.flight, one.values[:, 2])
                            for one in (local, late)))
        self._heights = heights.where(np.isfinite(heights.values))
        air = hud.where(np.isfinite(hud.values[:, 0]))

        at_speed = speed.before(rows, flight)
        velocity = _pick(moves.values, moves.before(rows, flight), math.nan)
        self._table = np.stack([
            _pick(yaw.values, yaw.before(rows, flight), math.nan), velocity[:, 0], velocity[:, 1],
            _pick(speed.values, at_speed, math.nan),
            _pick(_fast_since(speed), at_speed, math.nan), _most(speed, rows, flight),
            _pick(air.values[:, 0], air.before(rows, flight), math.nan),
            _pick(around.values[:, 2], around.before(rows, flight), math.nan)], axis=1)
        ends = np.searchsorted(self._heights.rows, rows, side='right')
        begins = np.concatenate([np.zeros(min(len(rows), 1), dtype=np.int64), ends[:-1]])
        # What was heard before a restart is forgotten by it.
        begins = np.maximum(begins, np.searchsorted(self._heights.flight, flight))
        self._since = np.stack([begins, ends], axis=1)

    def heights(self, begin: int, end: int) -> Iterator[tuple[float, float]]:
        """Yield (time in s, height in m) of some of the heights heard."""
        return zip(self._heights.t[begin:end].tolist(), self._heights.values[begin:end].tolist(),
                   strict=True)

    def moments(self) -> Iterator[Moment]:
        """Yield the motion at each of the rows."""
        for begin in range(0, len(self._table), _BLOCK):
            end = begin + _BLOCK
            yield from zip(*self._table[begin:end].T.tolist(), *self._since[begin:end].T.tolist(),
                           strict=True)


def _radians(degrees: FloatArray) -> FloatArray:
    return np.fromiter(map(math.radians, degrees.tolist()), dtype=np.float64, count=len(degrees))


def _fast_since(speed: _Events) -> FloatArray:
    """Return since when each speed is above that of a take-off; NaN where it is not."""
    count = len(speed.rows)
    if not count:
        return np.empty(0)
    fast = ~(speed.values <= TAKE_OFF_SPEED)
    first = fast.copy()
    first[1:] &= ~fast[:-1] | (np.diff(speed.flight) != 0)
    since = np.maximum.accumulate(np.where(first, np.arange(count), 0))
    return np.where(fast, speed.t[since], math.nan)


def _most(speed: _Events, rows: IntArray, flight: IntArray) -> FloatArray:
    """Return the highest speed between the moment before and each; minus infinity without any."""
    most = np.full(len(rows), -math.inf)
    after = np.searchsorted(rows, speed.rows)
    use = after < len(rows)
    use[use] = flight[after[use]] == speed.flight[use]
    after, values = after[use], speed.values[use]
    if len(after):
        begins = np.flatnonzero(np.diff(after, prepend=-1))
        most[after[begins]] = np.maximum.reduceat(values, begins)
    return most
