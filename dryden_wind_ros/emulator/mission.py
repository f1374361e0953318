"""Missions of the embedded vehicle, as MAVLink's mission protocol brings them, and set points.

A copter with dynamics flies the waypoints of its mission in AUTO, at the speed of a DO_CHANGE_SPEED
item (else 5 m/s), with a stop at each; in GUIDED it follows SET_POSITION_TARGET_LOCAL_NED. What
else a mission asks for is kept, given back, and passed over.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.emulator.config import METRES_PER_1E7_DEGREES
from dryden_wind_ros.emulator.course import Legs
from dryden_wind_ros.emulator.flight import Motion

if TYPE_CHECKING:
    from dryden_wind_ros.emulator.autopilot import Autopilot
    from dryden_wind_ros.emulator.channel import Channel

MAX_ITEMS = 700
DEFAULT_SPEED = 5.0
"""WPNAV_SPEED's default, m/s."""

SET_POINT_TIMEOUT_US = 3_000_000
"""GUID_TIMEOUT: a velocity that is not renewed for so long is stopped, us."""

_POSITION_IGNORED = 0b111
_VELOCITY_IGNORED = 0b111000


class Mission:
    """The items that a vehicle has, and an upload that is under way.

    Attributes
    ----------
    items : list of MISSION_ITEM_INT
        Item 0 is home.
    current : int
        Number of the item that is flown.
    """

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.current = 0
        self._coming: list[Any] = []
        self._count = 0

    def on_count(self, channel: Channel, message: Any) -> None:
        """Begin an upload."""
        if message.count > MAX_ITEMS:
            self._acknowledge(channel, message, mavlink.MAV_MISSION_NO_SPACE)
            return
        self._coming, self._count = [], message.count
        self._go_on(channel, message)

    def on_item(self, channel: Channel, message: Any) -> None:
        """Take an item; one that is out of order is asked for again."""
        if not self._count:
            return
        if message.seq == len(self._coming):
            self._coming.append(message)
        self._go_on(channel, message)

    def on_request(self, channel: Channel, message: Any) -> None:
        """Give an item back."""
        if not 0 <= message.seq < len(self.items):
            self._acknowledge(channel, message, mavlink.MAV_MISSION_INVALID_SEQUENCE)
            return
        item = self.items[message.seq]
        channel.send(mavlink.MAVLink_mission_item_int_message(
            message.get_srcSystem(), message.get_srcComponent(), item.seq, item.frame,
            item.command, int(item.seq == self.current), item.autocontinue, item.param1,
            item.param2, item.param3, item.param4, item.x, item.y, item.z))

    def on_clear(self, channel: Channel, message: Any) -> None:
        """Forget all items."""
        self.items, self.current = [], 0
        self._acknowledge(channel, message, mavlink.MAV_MISSION_ACCEPTED)

    def _go_on(self, channel: Channel, message: Any) -> None:
        if len(self._coming) < self._count:
            channel.send(mavlink.MAVLink_mission_request_message(
                message.get_srcSystem(), message.get_srcComponent(), len(self._coming)))
            return
        self.items, self._coming, self._count, self.current = self._coming, [], 0, 0
        self._acknowledge(channel, message, mavlink.MAV_MISSION_ACCEPTED)

    @staticmethod
    def _acknowledge(channel: Channel, message: Any, result: int) -> None:
        channel.send(mavlink.MAVLink_mission_ack_message(
            message.get_srcSystem(), message.get_srcComponent(), result))

    def legs(self, vehicle: Autopilot) -> tuple[Legs, list[int]] | None:
        """Return the way from here over the waypoints, and their numbers; None without any."""
        home, flight = vehicle.config.home, vehicle.flight
        per_metre = METRES_PER_1E7_DEGREES
        speed, corners, numbers = DEFAULT_SPEED, [], []
        for item in self.items[1:]:
            if item.command == mavlink.MAV_CMD_DO_CHANGE_SPEED and item.param2 > 0.0:
                speed = item.param2
            elif item.command == mavlink.MAV_CMD_NAV_WAYPOINT:
                corners.append((
                    (item.x - home.latitude * 1e7) * per_metre,
                    (item.y - home.longitude * 1e7) * per_metre
                    * math.cos(math.radians(home.latitude)),
                    item.z if item.z > 0.0 else None))
                numbers.append(item.seq)
        if not corners:
            return None
        return Legs(corners, speed, start=(flight.north, flight.east)), numbers


class _MissionCourse:
    """Where the set point is in AUTO; tells each waypoint that is reached."""

    def __init__(self, vehicle: Autopilot, legs: Legs, numbers: list[int]) -> None:
        self._vehicle, self._legs, self._left = vehicle, legs, list(
            zip(legs.reached, numbers, strict=True))
        self._begun_us = vehicle.physics_us
        vehicle.mission.current = numbers[0]

    def __call__(self) -> tuple[float, float, float, float]:
        vehicle = self._vehicle
        t = (vehicle.physics_us - self._begun_us) * 1e-6
        while self._left and t >= self._left[0][0]:
            _, number = self._left.pop(0)
            vehicle.mission.current = self._left[0][1] if self._left else number
            for channel in vehicle.channels:
                channel.send(mavlink.MAVLink_mission_item_reached_message(number))
            vehicle.say(6, f'Reached command #{number}')
        height = self._legs.height(t)
        if height is not None:
            vehicle.flight.command_altitude(height)
        return self._legs.at(t)


def fly_mission(vehicle: Autopilot) -> None:
    """Begin the mission from here, if there is one that this vehicle can fly."""
    found = vehicle.mission.legs(vehicle)
    if found is not None and vehicle.flight.dynamics is not None:
        vehicle.flight.course = _MissionCourse(vehicle, *found)


def on_set_point(vehicle: Autopilot, _: Channel, message: Any) -> None:
    """Follow SET_POSITION_TARGET_LOCAL_NED: a position, and a velocity if there is one."""
    flight, mask = vehicle.flight, message.type_mask
    if (vehicle.modes[vehicle.mode] != 'GUIDED' or flight.motion is not Motion.ROTORS
            or flight.dynamics is None or message.coordinate_frame != mavlink.MAV_FRAME_LOCAL_NED
            or mask & _POSITION_IGNORED):
        return
    north, east, up = message.x, message.y, -message.z
    moves = mask & _VELOCITY_IGNORED == 0
    v_north, v_east = (message.vx, message.vy) if moves else (0.0, 0.0)
    if not all(map(math.isfinite, (north, east, up, v_north, v_east))):
        return
    begun = vehicle.t_us

    def at() -> tuple[float, float, float, float]:
        since_us = vehicle.physics_us - begun
        if since_us > SET_POINT_TIMEOUT_US:
            t = SET_POINT_TIMEOUT_US * 1e-6
            return north + v_north * t, east + v_east * t, 0.0, 0.0
        t = since_us * 1e-6
        return north + v_north * t, east + v_east * t, v_north, v_east

    flight.course = at
    flight.command_altitude(up)
