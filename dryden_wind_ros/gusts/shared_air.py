"""What the vehicles of a fleet have in common where they fly in one field: its time and its drift.

SITLs boot at different times. The first vehicle heard gives the common time; the others' offsets to
it are measured when they are first heard, and kept. A vehicle that comes back after a restart is
measured anew: it meets the air that it would have met, and the others' air does not jump.

The drift is the integral of the mean wind over the common time, the age that of sigma / L. One
vehicle, the first that lives, integrates; the others look up what it was at their own time.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from collections import deque
from time import monotonic
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dryden_wind_ros.gusts.frames import Vector
from dryden_wind_ros.gusts.tick_grid import TICK_S

FloatArray = npt.NDArray[np.float64]

_SILENT_S = 1.0
_KNOTS = 4096


class Drifted(NamedTuple):
    """How far the air has come.

    Attributes
    ----------
    drift : tuple of float, shape (3,)
        ENU, m, since air time 0.
    age : float
        Turnover times since air time 0.
    """

    drift: Vector
    age: float


class _Knot(NamedTuple):
    time: float
    drift: Vector
    age: float
    velocity: Vector
    rate: float

    def at(self, time: float) -> Drifted:
        dt = time - self.time
        (x, y, z), (u, v, w) = self.drift, self.velocity
        return Drifted((x + u * dt, y + v * dt, z + w * dt), self.age + self.rate * dt)


class Anchor(NamedTuple):
    """Where the common air of a fleet is, for those in other processes of this machine.

    Attributes
    ----------
    time : float
        Common time, s, at `wall`.
    wall : float
        Steady time of the machine (CLOCK_MONOTONIC), s.
    knots : tuple of tuple of float
        The newest pieces of the drift: time, drift (3), age, velocity (3), rate.
    speed : float
        Common seconds per steady second, lately; NaN: not known yet.
    """

    time: float
    wall: float
    knots: tuple[tuple[float, ...], ...]
    speed: float = math.nan


_ANCHORED = 8
#: So often, and so far apart (s of steady time), common times are kept to tell its speed.
_PACED, _PACED_S = 10, 0.25


class SharedAir:
    """Common time and drift of the air that several vehicles, or one, fly in.

    Parameters
    ----------
    own_clocks : bool, optional
        Whether each vehicle counts its time from its own boot. Where one clock drives all, times
        are common as they are.
    follows : bool, optional
        Whether time and drift are those of another process, told by `follow`.

    Notes
    -----
    May be used from several threads.
    """

    def __init__(self, own_clocks: bool = True, follows: bool = False) -> None:
        self._own_clocks = own_clocks
        self._follows = follows
        self._anchors: list[Anchor] = []
        self._lock = threading.Lock()
        self._newest: dict[int, float] = {}
        #: Steady time of the machine at which that was, s.
        self._newest_at: dict[int, float] = {}
        #: Some of both of the past seconds, to tell how fast the common time goes.
        self._paced: deque[tuple[float, float]] = deque(maxlen=_PACED)
        self._knots: list[_Knot] = []
        self._leader = -1
        self._led_at = 0.0

    def join(self, rank: int, time: float) -> float:
        """Take note of a vehicle that begins, or begins anew; return its offset to the common time.

        Parameters
        ----------
        rank : int
            Which vehicle; the lowest that lives integrates the drift.
        time : float
            Its own time, s.

        Returns
        -------
        float
            Common time less its own, s, a whole number of ticks.
        """
        with self._lock:
            if self._follows and self._own_clocks and self._anchors:
                offset = round((self._common_now() - time) / TICK_S) * TICK_S
                self.note(rank, time + offset)
                return offset
            others = [newest for other, newest in self._newest.items() if other != rank]
            if not self._own_clocks or not others:
                # Alone, or timed by everybody's clock: the air begins with it, also once more.
                if not others:
                    self._knots.clear()
                self.note(rank, time)
                return 0.0
            offset = round((max(others) - time) / TICK_S) * TICK_S
            self.note(rank, time + offset)
            return offset

    def join_again(self, rank: int, time: float, offset: float) -> float:
        """Return the offset of a vehicle that has flown in other gusts until now.

        It is what it was, except where another process has told the common time since.
        """
        return self.join(rank, time) if self._follows and self._anchors else offset

    def note(self, rank: int, time: float) -> None:
        """Take note of how far a vehicle is, at a common time (s); whatever gusts it has."""
        self._newest[rank], self._newest_at[rank] = time, monotonic()

    def history(self, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return drift (N, 3) and age (N,) at common times, also of the past and the future."""
        with self._lock:
            knots = self._knots or [_Knot(0.0, (0.0, 0.0, 0.0), 0.0, (0.0, 0.0, 0.0), 0.0)]
            since = np.array([knot.time for knot in knots])
            table = np.array([(*knot.drift, knot.age, *knot.velocity, knot.rate)
                              for knot in knots])
        row = np.maximum(np.searchsorted(since, times, side='right') - 1, 0)
        come = table[row, :4] + table[row, 4:] * (times - since[row])[:, None]
        return come[:, :3], come[:, 3]

    def at(self, rank: int, time: float, velocity: Vector, rate: float) -> Drifted:
        """Return how far the air has come at a common time.

        Parameters
        ----------
        rank : int
            Who asks.
        time : float
            Common time, s.
        velocity : tuple of float, shape (3,)
            Mean wind that moves the air, ENU, m/s: counts from here on, if this one integrates. At
            first it is taken to have held since time 0.
        rate : float
            Turnover times a second, in the same way.
        """
        with self._lock:
            knots = self._knots
            if self._follows and self._anchors and knots:
                place = bisect_right(knots, time, key=lambda knot: knot.time)
                return knots[max(place - 1, 0)].at(time)
            if not knots:
                knots.append(_Knot(0.0, (0.0, 0.0, 0.0), 0.0, velocity, rate))
                self._leader, self._led_at = rank, time
            if rank <= self._leader or abs(time - self._led_at) > _SILENT_S:
                self._leader, self._led_at = rank, time
                last = knots[-1]
                if (velocity, rate) != (last.velocity, last.rate) and time >= last.time:
                    # The wind of the tick before held until it.
                    since = max(last.time, time - TICK_S)
                    knots.append(_Knot(since, *last.at(since), velocity, rate))
                    del knots[:-_KNOTS]
            place = bisect_right(knots, time, key=lambda knot: knot.time)
            return knots[max(place - 1, 0)].at(time)

    def anchor(self) -> Anchor | None:
        """Return where the air is, for `follow` in another process; None while nobody has begun.

        Without knots where no vehicle flies in a field: the time is common all the same.
        """
        with self._lock:
            if not self._newest:
                return None
            rank = max(self._newest, key=self._newest.__getitem__)
            time, wall = self._newest[rank], self._newest_at[rank]
            return Anchor(time, wall, tuple(
                (knot.time, *knot.drift, knot.age, *knot.velocity, knot.rate)
                for knot in self._knots[-_ANCHORED:]), self._speed(time, wall))

    def _speed(self, time: float, wall: float) -> float:
        """Return how fast the common time goes, having got so far; NaN while it is not known."""
        paced = self._paced
        if paced and time < paced[-1][0]:
            paced.clear()  # begun anew
        speed = math.nan
        if paced and wall - paced[0][1] >= _PACED_S:
            speed = (time - paced[0][0]) / (wall - paced[0][1])
        if not paced or wall - paced[-1][1] >= _PACED_S:
            paced.append((time, wall))
        return speed

    def follow(self, anchor: Anchor) -> None:
        """Take time and drift from another process from here on."""
        with self._lock:
            if self._anchors and anchor.time < self._anchors[-1].time:
                self._anchors.clear()  # their air began anew
            self._anchors = [*self._anchors[-1:], anchor]
            if not anchor.knots:
                return
            self._knots = [_Knot(t, (x, y, z), age, (u, v, w), rate)
                           for t, x, y, z, age, u, v, w, rate in anchor.knots]

    def _common_now(self) -> float:
        newest = self._anchors[-1]
        speed = 1.0 if math.isnan(newest.speed) else newest.speed
        if len(self._anchors) > 1 and newest.wall > self._anchors[0].wall:
            first = self._anchors[0]
            speed = (newest.time - first.time) / (newest.wall - first.wall)
        return newest.time + speed * (monotonic() - newest.wall)
