"""Directions and axes of the wind, written down once.

* A *direction* in degrees is where the wind comes **from**, true, clockwise from north, [0, 360).
* A *vector* is ENU (east, north, up) in m/s and says where the air moves **to**.
* A *gust* (u, v, w) is along the mean wind (the way the air moves), to its right seen from above,
  and up.
* SIM_WIND_SPD is the length of the whole vector, SIM_WIND_DIR where its horizontal part comes from,
  SIM_WIND_DIR_Z the angle of the way it moves above the horizontal: +90 is a pure updraft.
* NED (north, east, down) appears only where a name says so.

A wind *from* 270 (a west wind) of 8 m/s moves *to* the east: the ENU vector is (8, 0, 0).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from transforms3d.quaternions import rotate_vector

CALM = 0.01
"""Horizontal wind below this has no direction of its own, m/s."""

Vector = tuple[float, float, float]


@dataclass(frozen=True)
class SimWind:
    """A wind as ArduPilot SITL takes it.

    Attributes
    ----------
    speed : float
        SIM_WIND_SPD, m/s.
    direction : float
        SIM_WIND_DIR, degrees the wind comes from, [0, 360).
    direction_z : float
        SIM_WIND_DIR_Z, degrees above the horizontal that the air moves, [-90, 90].
    """

    speed: float
    direction: float
    direction_z: float


def wrap_360(degrees: float) -> float:
    """Return the same direction in [0, 360)."""
    wrapped = degrees % 360.0
    return 0.0 if wrapped == 360.0 else wrapped  # -1e-20 % 360 is 360.0


def wrap_180(degrees: float) -> float:
    """Return the same angle in (-180, 180]."""
    wrapped = wrap_360(degrees)
    return wrapped - 360.0 if wrapped > 180.0 else wrapped


def mean_wind_enu(speed: float, from_deg: float, up: float = 0.0) -> Vector:
    """Return the ENU vector of a wind of `speed` m/s from `from_deg`, with an updraft `up`, m/s."""
    angle = math.radians(from_deg)
    # Rounded to 1e-12 m/s, so that a west wind has no north component of 1e-15 to wonder about.
    return round(-speed * math.sin(angle), 12), round(-speed * math.cos(angle), 12), up


def gust_enu(gust: Sequence[float], from_deg: float) -> Vector:
    """Return a gust (u, v, w) about a mean wind from `from_deg` as an ENU vector, m/s."""
    u, v, w = gust
    sine, cosine = math.sin(math.radians(from_deg)), math.cos(math.radians(from_deg))
    return -u * sine - v * cosine, -u * cosine + v * sine, w


def gust_uvw(enu: Sequence[float], from_deg: float) -> Vector:
    """Return an ENU vector as a gust (u, v, w) about a mean wind from `from_deg`, m/s."""
    east, north, up = enu
    sine, cosine = math.sin(math.radians(from_deg)), math.cos(math.radians(from_deg))
    return -east * sine - north * cosine, -east * cosine + north * sine, up


def from_direction(east: float, north: float) -> float:
    """Return where a wind that moves to (east, north) comes from, degrees, [0, 360)."""
    return wrap_360(math.degrees(math.atan2(-east, -north)))


def sim_wind(mean_speed: float, from_direction: float, gust: Sequence[float] = (0.0, 0.0, 0.0),
             up: float = 0.0) -> SimWind:
    """Return the SIM_WIND_* values of a mean wind with a gust and an updraft.

    Parameters
    ----------
    mean_speed : float
        Horizontal mean wind, m/s.
    from_direction : float
        Degrees the mean wind comes from.
    gust : sequence of float, shape (3,), optional
        Gust (u, v, w), m/s.
    up : float, optional
        Updraft, m/s.

    Returns
    -------
    SimWind
        With less than 0.01 m/s of horizontal wind the direction is the mean wind's; with no wind at
        all the tilt is 0.

    Raises
    ------
    ValueError
        If a number is not finite.

    Examples
    --------
    >>> sim_wind(8.0, 270.0)
    SimWind(speed=8.0, direction=270.0, direction_z=0.0)
    """
    u, v, w = gust
    along, vertical = mean_speed + u, up + w
    if not math.isfinite(along + v + vertical + from_direction):
        raise ValueError(
            f'mean wind {mean_speed} m/s from {from_direction} deg, gust {tuple(gust)} m/s, '
            f'updraft {up} m/s; all must be finite numbers')
    horizontal = math.hypot(along, v)
    speed = math.hypot(horizontal, vertical)
    direction = from_direction
    if horizontal >= CALM:
        direction += math.degrees(math.atan2(v, along))
    tilt = math.degrees(math.atan2(vertical, horizontal)) if speed > 0.0 else 0.0
    return SimWind(speed, wrap_360(direction), tilt)


def enu_of_sim_wind(wind: SimWind) -> Vector:
    """Return the ENU vector of a wind given as SIM_WIND_* values, m/s."""
    tilt = math.radians(wind.direction_z)
    return mean_wind_enu(
        wind.speed * math.cos(tilt), wind.direction, wind.speed * math.sin(tilt))


def body_to_enu(orientation: Sequence[float], velocity: Sequence[float]) -> Vector:
    """Turn a velocity from the body axes of an odometry message into its world frame.

    Parameters
    ----------
    orientation : sequence of float, shape (4,)
        Quaternion x, y, z, w of the body in the world (ENU) frame; need not be of unit length.
    velocity : sequence of float, shape (3,)
        Forward, left, up, m/s.

    Returns
    -------
    tuple of float, shape (3,)
        East, north, up, m/s.

    Raises
    ------
    ValueError
        If a number is not finite or the quaternion is all zeros.
    """
    x, y, z, w = orientation
    if not all(map(math.isfinite, velocity)):
        raise ValueError(f'velocity is {tuple(velocity)}; it must be finite numbers')
    length = math.sqrt(x * x + y * y + z * z + w * w)
    if not math.isfinite(length) or length < 1e-6:
        raise ValueError(
            f'orientation (x, y, z, w) is {tuple(orientation)}; it must be a quaternion of unit '
            'length')
    east, north, up = rotate_vector(
        velocity, (w / length, x / length, y / length, z / length), is_normalized=True)
    return float(east), float(north), float(up)
