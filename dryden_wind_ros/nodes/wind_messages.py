"""The messages of a wind node, filled from the air."""

from __future__ import annotations

import math
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Vector3

from dryden_wind_ros.gusts.air import AirTick, SeededAir
from dryden_wind_ros.gusts.frames import Vector, wrap_360

TRUE_VARIANCE = 1e-4
"""Variance of the position in 'odom', m^2, where it is the truth that SITL tells (to 1 cm). Where
it is what EKF3 believes, the variance is 0: unknown, as ROS has it."""


def tells_truth(odometry: Any) -> bool:
    """Return whether an Odometry tells where the vehicle really is; see `TRUE_VARIANCE`.

    A bool of Python's own: messages that `colcon build` makes without a build type abort the
    process where a bool of NumPy is put into them.
    """
    return bool(0.0 < odometry.pose.covariance[0] <= TRUE_VARIANCE)


def fill_state(state: Any, air: SeededAir, tick: AirTick, tick_rate: float) -> Any:
    """Fill a WindState message with everything about the newest tick of an air, and return it.

    Parameters
    ----------
    state : WindState
        To be filled; its header is not touched.
    air : SeededAir
        Which it is the newest tick of.
    tick : AirTick
        That tick.
    tick_rate : float
        Rate at which winds are really given, Hz of sim time.
    """
    settings, at, wind = air.settings, tick.at, tick.sim_wind
    scales = air.scales(tick.height)
    state.tick, state.t, state.draws = tick.tick, tick.time_ns * 1e-9, tick.draws
    state.clock_origin = air.grid.origin_ns * 1e-9
    state.gusts, state.method, state.profile = settings.gusts, settings.method, settings.profile
    state.model, state.severity, state.span = settings.model, settings.severity, settings.span
    state.field_spectrum, state.field_modes = settings.field_spectrum, settings.field_modes
    state.field_life = settings.field_life
    state.seed, state.scale = settings.seed, settings.scale
    state.mean_wind_speed, state.mean_wind_up = tick.mean.speed, tick.mean.up
    state.mean_wind_from_deg = wrap_360(tick.mean.from_deg)
    state.ground_height = settings.ground_height
    state.origin_latitude = state.origin_longitude = state.origin_altitude = math.nan
    state.position = point(at.position)
    state.position_is_true = at.position_is_true
    state.air_time, state.time_offset = at.time + at.offset, at.offset
    asked = tick.asked
    if asked is not None:
        state.position, state.air_time = point(asked.position), asked.air_time
        state.drift, state.age = vector(asked.drift), asked.age
    state.height, state.airspeed = tick.height, tick.airspeed
    state.u, state.v, state.w = tick.gust
    state.rates, state.discrete = vector(tick.rates), vector(tick.discrete_enu)
    state.sigma_u, state.sigma_v, state.sigma_w = scales.sigma_u, scales.sigma_v, scales.sigma_w
    state.length_u, state.length_v, state.length_w = (
        scales.length_u, scales.length_v, scales.length_w)
    state.mean, state.gust = vector(tick.mean.enu), vector(tick.gust_enu)
    state.sim_wind_spd, state.sim_wind_dir = wind.speed, wind.direction
    state.sim_wind_dir_z = wind.direction_z
    state.missed_ticks, state.tick_rate = air.grid.missed, tick_rate
    state.restarts = air.restarts
    return state


def vector(values: Vector) -> Vector3:
    """Return a vector as a message."""
    return Vector3(x=values[0], y=values[1], z=values[2])


def point(values: Vector) -> Point:
    """Return a position as a message."""
    return Point(x=values[0], y=values[1], z=values[2])


def no_ekf_wind(messages: Any) -> Any:
    """Return the EkfWind that says that none was heard."""
    message = messages.EkfWind(phase_name='unknown', reason='no ekf_wind was heard')
    for name in ('since', 'wind_e', 'wind_n', 'speed', 'from_deg', 'flown_e', 'flown_n',
                 'error_speed', 'error_direction'):
        setattr(message, name, math.nan)
    return message


def ns_of(stamp: Time) -> int:
    """Return a stamp in ns."""
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def time_of(time_ns: int) -> Time:
    """Return a time in ns as a stamp."""
    sec, nanosec = divmod(time_ns, 1_000_000_000)
    return Time(sec=sec, nanosec=nanosec)
