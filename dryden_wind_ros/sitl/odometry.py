"""Odometry out of ArduPilot's MAVLink messages.

ArduPilot speaks north, east, down and forward, right, down; ROS (REP-103) wants east, north, up and
forward, left, up. Yaw is counted from north clockwise there and from east anticlockwise here, so

    roll = roll,   pitch = -pitch,   yaw = pi/2 - yaw,

with roll, pitch and yaw applied in the same order (z, y', x'') in both.

Position and velocity come from LOCAL_POSITION_NED where there is one. It starts only when EKF3 has
an origin, 20 to 30 s after boot; until then, and when it stops, GLOBAL_POSITION_INT is used. Height
is above home in both: the local frame's origin need not be home, so the difference is measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink
from transforms3d.euler import euler2quat
from transforms3d.quaternions import quat2mat

ATTITUDE = mavlink.MAVLINK_MSG_ID_ATTITUDE
LOCAL_POSITION_NED = mavlink.MAVLINK_MSG_ID_LOCAL_POSITION_NED
GLOBAL_POSITION_INT = mavlink.MAVLINK_MSG_ID_GLOBAL_POSITION_INT

_LOCAL_AGE_MS = 1000
_SAME_TIME_MS = 30
_METRES_PER_DEGREE = 111_194.93  # of latitude, on a sphere of 6 371 000 m

Vector = tuple[float, float, float]


@dataclass(frozen=True)
class Odometry:
    """Where the vehicle is and how it moves.

    Attributes
    ----------
    time_ms : int
        Vehicle time since its boot, ms.
    position : tuple of float
        East, north, up of home, m. East and north are counted from the origin of EKF3, or from the
        first position heard while there is none.
    attitude : tuple of float
        Roll, pitch, yaw of forward-right-down against NED, rad.
    velocity_enu : tuple of float
        Towards east, north and up, m/s.
    angular_velocity : tuple of float
        In the body frame (forward, left, up), rad/s.
    local : bool
        Whether it comes from LOCAL_POSITION_NED.
    """

    time_ms: int
    position: Vector
    attitude: Vector
    velocity_enu: Vector
    angular_velocity: Vector
    local: bool

    # The gusts need neither of these, and they cost more than all else here.

    @cached_property
    def orientation(self) -> tuple[float, float, float, float]:
        """Quaternion x, y, z, w that turns body (forward, left, up) to ENU."""
        return enu_orientation(*self.attitude)

    @cached_property
    def velocity(self) -> Vector:
        """Velocity in the body frame (forward, left, up), m/s."""
        x, y, z, w = self.orientation
        east, north, up = self.velocity_enu
        forward, left, upward = (
            row[0] * east + row[1] * north + row[2] * up
            for row in quat2mat((w, x, y, z)).T.tolist())
        return forward, left, upward


def enu_orientation(roll: float, pitch: float, yaw: float) -> tuple[float, float, float, float]:
    """Return the quaternion (x, y, z, w) from forward-left-up to ENU of an ArduPilot attitude.

    Parameters
    ----------
    roll, pitch, yaw : float
        rad, of forward-right-down against NED, as ATTITUDE has them.
    """
    w, x, y, z = euler2quat(roll, -pitch, math.pi / 2 - yaw)
    return float(x), float(y), float(z), float(w)


class OdometryBuilder:
    """Puts ATTITUDE and the positions together."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything, as after a restart of the vehicle."""
        self._attitude: Any = None
        self._local_ms: int | None = None
        self._local_up = 0.0
        self._global_ms: int | None = None
        self._global_up = 0.0
        #: Height of the local frame's origin above home, m.
        self._origin_up: float | None = None
        self._first: tuple[int, int] | None = None

    def update(self, message: Any) -> Odometry | None:
        """Take one message; return the odometry if it carries a new position.

        Returns None for other messages, before an attitude was heard, and for numbers that are not
        finite.
        """
        ident = message.get_msgId()
        if ident == ATTITUDE:
            numbers = (message.roll, message.pitch, message.yaw,
                       message.rollspeed, message.pitchspeed, message.yawspeed)
            if all(map(math.isfinite, numbers)):
                self._attitude = message
            return None
        if ident == LOCAL_POSITION_NED:
            position = (message.y, message.x, -message.z)
            velocity = (message.vy, message.vx, -message.vz)
            if not all(map(math.isfinite, (*position, *velocity))):
                return None
            self._local_ms, self._local_up = message.time_boot_ms, position[2]
            self._compare_heights()
            return self._odometry(
                message.time_boot_ms,
                (position[0], position[1], position[2] + (self._origin_up or 0.0)), velocity, True)
        if ident == GLOBAL_POSITION_INT:
            up = message.relative_alt / 1000
            self._global_ms, self._global_up = message.time_boot_ms, up
            if self._local_ms is not None and (
                    abs(message.time_boot_ms - self._local_ms) < _LOCAL_AGE_MS):
                self._compare_heights()
                return None
            east, north = self._from_first(message.lat, message.lon)
            return self._odometry(
                message.time_boot_ms, (east, north, up),
                (message.vy / 100, message.vx / 100, -message.vz / 100), False)
        return None

    def _compare_heights(self) -> None:
        if self._local_ms is None or self._global_ms is None \
                or abs(self._local_ms - self._global_ms) > _SAME_TIME_MS:
            return
        difference = self._global_up - self._local_up
        if self._origin_up is None or abs(difference - self._origin_up) > 5.0:
            # First, or home was set anew.
            self._origin_up = difference
        else:
            self._origin_up += 0.05 * (difference - self._origin_up)

    def _from_first(self, lat: int, lon: int) -> tuple[float, float]:
        if not lat and not lon:
            return 0.0, 0.0
        if self._first is None:
            self._first = (lat, lon)
        north = (lat - self._first[0]) * 1e-7 * _METRES_PER_DEGREE
        east = ((lon - self._first[1]) * 1e-7 * _METRES_PER_DEGREE
                * math.cos(math.radians(self._first[0] * 1e-7)))
        return east, north

    def _odometry(self, time_ms: int, position: Vector, velocity: Vector,
                  local: bool) -> Odometry | None:
        attitude = self._attitude
        if attitude is None:
            return None
        return Odometry(
            time_ms, position, (attitude.roll, attitude.pitch, attitude.yaw), velocity,
            (attitude.rollspeed, -attitude.pitchspeed, -attitude.yawspeed), local)
