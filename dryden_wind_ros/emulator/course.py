"""Where the set point of a copter goes: paths as functions of time, with gentle ends."""

from __future__ import annotations

import math
from collections.abc import Sequence

ACCELERATION = 1.0
"""Of the set point along its path, m/s^2."""

Spot = tuple[float, float, float, float]
"""North, east, m, and their velocity, m/s."""


class Circle:
    """A circle to the right that begins and has its end where the vehicle hovers.

    Parameters
    ----------
    radius, speed : float
        m, m/s.
    """

    seconds = math.inf

    def __init__(self, radius: float, speed: float) -> None:
        self._radius, self._speed = radius, speed

    def at(self, t: float) -> Spot:
        """Return where the set point is after ``t`` s."""
        way, speed = _begun(t, self._speed)
        angle = way / self._radius
        return (self._radius * math.sin(angle), self._radius * (1.0 - math.cos(angle)),
                speed * math.cos(angle), speed * math.sin(angle))

    def height(self, t: float) -> float | None:
        """Return the height wanted, m; None: as it is."""
        return None


class Legs:
    """Straight legs, with a stop at every corner.

    Parameters
    ----------
    corners : sequence of (north, east, up)
        m. `up` None: the height stays.
    speed : float
        m/s.
    again : bool
        Whether it begins anew at the end.
    start : (north, east), optional
        Where the first leg begins, m.
    """

    def __init__(self, corners: Sequence[tuple[float, float, float | None]], speed: float,
                 again: bool = False, start: tuple[float, float] = (0.0, 0.0)) -> None:
        self._legs: list[tuple[float, float, float, float, float, float | None, float, float]] = []
        begin = 0.0
        #: When each corner is reached, s.
        self.reached: list[float] = []
        for north, east, up in corners:
            length = math.hypot(north - start[0], east - start[1])
            if length > 0.0:
                fast = min(speed, math.sqrt(ACCELERATION * length))
                duration = length / fast + fast / ACCELERATION
                self._legs.append((begin, duration, *start, length, up,
                                   (north - start[0]) / length, (east - start[1]) / length))
                begin += duration
                start = (north, east)
            self.reached.append(begin)
        self._speed, self._end, self._whole = speed, start, begin
        self._again = again
        self.seconds = math.inf if again else begin

    def _leg(self, t: float) -> tuple[float, float, float, float, float, float | None, float,
                                      float] | None:
        if self._again and self._whole:
            t %= self._whole
        return next((leg for leg in self._legs if leg[0] <= t < leg[0] + leg[1]), None)

    def at(self, t: float) -> Spot:
        """Return where the set point is after ``t`` s."""
        leg = self._leg(t)
        if leg is None:
            return (*self._end, 0.0, 0.0)
        begin, duration, north, east, length, _, to_north, to_east = leg
        since = (t % self._whole if self._again else t) - begin
        fast = min(self._speed, math.sqrt(ACCELERATION * length))
        if since <= duration / 2.0:
            way, speed = _begun(since, fast)
        else:
            way, speed = _begun(duration - since, fast)
            way = length - way
        return (north + way * to_north, east + way * to_east, speed * to_north, speed * to_east)

    def height(self, t: float) -> float | None:
        """Return the height wanted, m; None: as it is."""
        leg = self._leg(t)
        return None if leg is None else leg[5]


def _begun(t: float, speed: float) -> tuple[float, float]:
    """Return way and speed after ``t`` s from rest, up to a speed."""
    ramp = speed / ACCELERATION
    if t < ramp:
        return ACCELERATION * t * t / 2.0, ACCELERATION * t
    return speed * (t - ramp / 2.0), speed
