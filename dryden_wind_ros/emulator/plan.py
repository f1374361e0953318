"""What the embedded vehicle does by itself: take off, hover or loiter, and with 'auto' land."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryden_wind_ros.emulator.flight import Landed
from dryden_wind_ros.gusts.sitl_wind import CALM_AFTER_BOOT

if TYPE_CHECKING:
    from dryden_wind_ros.emulator.autopilot import Autopilot


class FlightPlan:
    """The stages of ``--flight``, flown by mode changes and commands as a pilot would.

    Parameters
    ----------
    vehicle : Autopilot
        Read at each :meth:`step`, and told what to do.
    """

    def __init__(self, vehicle: Autopilot) -> None:
        self._vehicle = vehicle
        self._stage = 0
        self._timer = 0.0

    def step(self, dt: float) -> None:
        """Go on by ``dt`` s."""
        vehicle, flight = self._vehicle, self._vehicle.flight
        stage, kind, plan = self._stage, vehicle.config.kind, vehicle.config.flight
        self._timer += dt
        if stage == 0:
            self._take_off()
        elif not flight.armed:
            self._stage = -1
        elif stage == 1:
            if flight.landed is Landed.IN_AIR:
                self._next()
                if kind == 'plane':
                    vehicle.change_mode(12)
        elif stage == 2:
            if kind == 'quadplane' and plan != 'hover' and self._timer >= 10.0:
                vehicle.change_mode(12)
                self._next()
            elif kind != 'quadplane' and plan == 'auto' and self._timer >= 60.0:
                vehicle.change_mode({'copter': 9, 'plane': 11}[kind])
                if kind == 'plane':
                    flight.command_land()
                self._stage = 9
        elif stage == 3 and plan == 'auto' and self._timer >= 75.0:
            vehicle.change_mode(19)
            self._next()
        elif stage == 4 and self._timer >= 15.0:
            vehicle.change_mode(20)
            self._stage = 9

    def _take_off(self) -> None:
        vehicle, kind = self._vehicle, self._vehicle.config.kind
        # Wings wait for the wind: SITL has none in its first seconds
        calm = 0.0 if kind == 'copter' else CALM_AFTER_BOOT + 2.0
        if vehicle.ekf.using_gps and self._timer >= calm and not vehicle.arming_problem():
            vehicle.change_mode({'copter': 4, 'plane': 13, 'quadplane': 19}[kind])
            vehicle.arm()
            if kind != 'plane':
                vehicle.flight.command_take_off(vehicle.config.altitude)
            self._next()

    def _next(self) -> None:
        self._stage += 1
        self._timer = 0.0
