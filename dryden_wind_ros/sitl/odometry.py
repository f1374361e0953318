"""Odometry out of ArduPilot's MAVLink messages.

ArduPilot speaks north, east, down and forward, right, down; ROS (REP-103) wants east, north, up and
forward, left, up. Yaw is counted from north clockwise there and from east anticlockwise here, so

    roll = roll,   pitch = -pitch,   yaw = pi/2 - yaw,

with roll, pitch and yaw applied in the same order (z, y', x'') in both.

SITL tells where the vehicle really is in SIM_STATE, also while EKF3 is lost: that counts where it
comes, once the frame has its zero. It carries no time and belongs to the newest time heard. Else
position and velocity come from LOCAL_POSITION_NED. It starts only when EKF3 has an origin, 20 to
30 s after boot; until then, and when it stops, GLOBAL_POSITION_INT is used. Height is above home in
all of them, unless the frame has an altitude of its own: the local frame's origin need not be home,
so the difference is measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink
from transforms3d.euler import euler2quat
from transforms3d.quaternions import quat2mat

from dryden_wind_ros.sitl.frame import Frame

ATTITUDE = mavlink.MAVLINK_MSG_ID_ATTITUDE
LOCAL_POSITION_NED = mavlink.MAVLINK_MSG_ID_LOCAL_POSITION_NED
GLOBAL_POSITION_INT = mavlink.MAVLINK_MSG_ID_GLOBAL_POSITION_INT
SIM_STATE = mavlink.MAVLINK_MSG_ID_SIM_STATE
GPS_GLOBAL_ORIGIN = mavlink.MAVLINK_MSG_ID_GPS_GLOBAL_ORIGIN

_LOCAL_AGE_MS = 1000
_TRUE_AGE_MS = 1000
_SAME_TIME_MS = 30

Vector = tuple[float, float, float]


@dataclass(frozen=True)
class Odometry:
    """Where the vehicle is and how it moves.

    Attributes
    ----------
    time_ms : int
        Vehicle time since its boot, ms.
    position : tuple of float
        East, north, up in the frame (`sitl.frame`), m.
    attitude : tuple of float
        Roll, pitch, yaw of forward-right-down against NED, rad.
    velocity_enu : tuple of float
        Towards east, north and up, m/s.
    angular_velocity : tuple of float
        In the body frame (forward, left, up), rad/s.
    local : bool
        Whether it comes from LOCAL_POSITION_NED.
    true : bool
        Whether it is where the vehicle really is (SIM_STATE), not what EKF3 believes.
    """

    time_ms: int
    position: Vector
    attitude: Vector
    velocity_enu: Vector
    angular_velocity: Vector
    local: bool
    true: bool = False

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
    """Puts ATTITUDE and the positions together.

    Parameters
    ----------
    frame : Frame, optional
        Where positions count from; one of this vehicle's own unless given.
    """

    def __init__(self, frame: Frame | None = None) -> None:
        self.frame = Frame() if frame is None else frame
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
        self._true_ms: int | None = None
        self._home_altitude: float | None = None
        self._ekf_origin: tuple[int, int, float] | None = None
        self.frame.restarted()

    def update(self, message: Any, time_ms: int | None = None) -> Odometry | None:
        """Take one message; return the odometry if it carries a new position.

        Parameters
        ----------
        message : MAVLink message
        time_ms : int, optional
            Newest vehicle time heard, ms, for messages that carry none.

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
            if self._knows_truth(message.time_boot_ms):
                return None
            place = self._in_frame(position)
            if place is None:
                self._local_ms = None
                return None
            return self._odometry(message.time_boot_ms, place, velocity, True)
        if ident == SIM_STATE:
            return self._truth(message, time_ms)
        if ident == GPS_GLOBAL_ORIGIN:
            self._ekf_origin = (message.latitude, message.longitude, message.altitude / 1000)
            self.frame.origin_heard(message.latitude, message.longitude)
            return None
        if ident == GLOBAL_POSITION_INT:
            up = message.relative_alt / 1000
            if message.lat or message.lon:
                # Before EKF3 has an origin, `alt` is zero like the place, and tells nothing.
                self._home_altitude = (message.alt - message.relative_alt) / 1000
            self._global_ms, self._global_up = message.time_boot_ms, up
            if self._knows_truth(message.time_boot_ms):
                self._compare_heights()
                return None
            if self._local_ms is not None and (
                    abs(message.time_boot_ms - self._local_ms) < _LOCAL_AGE_MS):
                self._compare_heights()
                return None
            if not message.lat and not message.lon:
                if not math.isnan(self._altitude):
                    return None  # somewhere in a frame with a place of its own
                east = north = 0.0
            else:
                self.frame.place_heard(message.lat, message.lon)
                east, north = self.frame.east_north(message.lat, message.lon)
            return self._odometry(
                message.time_boot_ms, (east, north, self._up(message.alt / 1000, up)),
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

    def _knows_truth(self, time_ms: int) -> bool:
        return self._true_ms is not None and abs(time_ms - self._true_ms) < _TRUE_AGE_MS

    def _truth(self, message: Any, time_ms: int | None) -> Odometry | None:
        """Return the odometry of a SIM_STATE."""
        # MAVLink 1 has only single precision, 2 m steps.
        lat = message.lat_int or round(message.lat * 1e7)
        lon = message.lon_int or round(message.lon * 1e7)
        numbers = (message.alt, message.vn, message.ve, message.vd, message.roll, message.pitch,
                   message.yaw, message.xgyro, message.ygyro, message.zgyro)
        if time_ms is None or not (lat or lon) or not all(map(math.isfinite, numbers)) \
                or self.frame.origin is None:
            return None
        if self._home_altitude is None and math.isnan(self._altitude):
            return None
        self._true_ms = time_ms
        east, north = self.frame.east_north(lat, lon)
        return Odometry(
            time_ms, (east, north, self._up(message.alt, message.alt - (
                self._home_altitude or 0.0))),
            (message.roll, message.pitch, message.yaw), (message.ve, message.vn, -message.vd),
            (message.xgyro, -message.ygyro, -message.zgyro), False, True)

    @property
    def _altitude(self) -> float:
        """Altitude of the frame's zero, m; NaN: that of home."""
        return math.nan if self.frame.given is None else self.frame.given.altitude

    def _up(self, altitude: float, above_home: float) -> float:
        zero = self._altitude
        return above_home if math.isnan(zero) else altitude - zero

    def _in_frame(self, position: Vector) -> Vector | None:
        """Return a position of EKF3's local frame in ours; None while it is not known where."""
        east, north, up = position
        if not self.frame.common:
            return east, north, up + (self._origin_up or 0.0)
        if self._ekf_origin is None:
            return None
        latitude, longitude, altitude = self._ekf_origin
        dx, dy = self.frame.east_north(latitude, longitude)
        return east + dx, north + dy, self._up(altitude + up, up + (self._origin_up or 0.0))

    def _odometry(self, time_ms: int, position: Vector, velocity: Vector,
                  local: bool) -> Odometry | None:
        attitude = self._attitude
        if attitude is None:
            return None
        return Odometry(
            time_ms, position, (attitude.roll, attitude.pitch, attitude.yaw), velocity,
            (attitude.rollspeed, -attitude.pitchspeed, -attitude.yawspeed), local)
