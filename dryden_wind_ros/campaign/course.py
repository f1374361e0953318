"""Which way the set point of a copter goes, of a flight's manoeuvre."""

from __future__ import annotations

from dryden_wind_ros.campaign.entry import Manoeuvre
from dryden_wind_ros.emulator.course import ACCELERATION, Circle, Legs

__all__ = ['ACCELERATION', 'Circle', 'Legs', 'course_of']


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
