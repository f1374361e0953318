"""Where the set point of a copter goes: paths as functions of time, with gentle ends."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dryden_wind_ros.campaign.entry import Manoeuvre

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
        m; the first leg begins over home. `up` None: the height stays.
    speed : float
        m/s.
    again : bool
        Whether it begins anew at the end.
    """

    def __init__(self, corners: Sequence[tuple[float, float, float | None]], speed: float,
                 again: bool = False) -> None:
        self._legs: list[tuple[float, float, float, float, float, float | None, float, float]] = []
        start, begin = (0.0, 0.0), 0.0
        for north, east, up in corners:
            length = math.hypot(north - start[0], east - start[1])
            if length > 0.0:
                fast = min(speed, math.sqrt(ACCELERATION * length))
                duration = length / fast + fast / ACCELERATION
                self._legs.append((begin, duration, *start, length, up,
                                   (north - start[0]) / length, (east - start[1]) / length))
                begin += duration
                start = (north, east)
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


def course_of(manoeuvre: Manoeuvre) -> Circle | Legs | None:
    """Return the course of a copter; None for a hover."""
    if manoeuvre.path == 'circle':
        return Circle(manoeuvre.radius, manoeuvre.speed)
    if manoeuvre.path == 'box':
        side = manoeuvre.side
        return Legs([(side, 0.0, None), (side, side, None), (0.0, side, None), (0.0, 0.0, None)],
                    manoeuvre.speed, again=True)
    if manoeuvre.path == 'mission':
        return Legs(manoeuvre.waypoints, manoeuvre.speed)
    return None
