"""What the embedded vehicle says of itself: one function a MAVLink message.

Each takes the vehicle and returns the message, or None where there is nothing to be said yet. What
is sent often has its fields in the order of the wire (`sitl.wire`).
SIM_STATE tells the truth; what an autopilot cannot know, the others say as EKF3 has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.emulator.config import Home, VehicleConfig
from dryden_wind_ros.emulator.flight import (
    CRUISE_AIRSPEED,
    GRAVITY,
    LOITER_RADIUS,
    Flight,
    Motion,
)
from dryden_wind_ros.emulator.modes import GUIDED_MODES
from dryden_wind_ros.sitl import wire

if TYPE_CHECKING:
    from dryden_wind_ros.emulator.autopilot import Autopilot

EPOCH_US = 1767225600_000000
"""GPS time at boot: 2026-01-01T00:00:00Z, so that a flight can be repeated."""


def heartbeat(vehicle: Autopilot) -> Any:
    flight, mode = vehicle.flight, vehicle.modes[vehicle.mode]
    base = mavlink.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED | mavlink.MAV_MODE_FLAG_STABILIZE_ENABLED
    if mode in GUIDED_MODES:
        base |= mavlink.MAV_MODE_FLAG_GUIDED_ENABLED
    if mode != 'MANUAL':
        base |= mavlink.MAV_MODE_FLAG_MANUAL_INPUT_ENABLED
    if flight.armed:
        base |= mavlink.MAV_MODE_FLAG_SAFETY_ARMED
    # A quadplane says fixed wing here too: only vtol_state tells it apart
    kind = (mavlink.MAV_TYPE_QUADROTOR if vehicle.config.kind == 'copter'
            else mavlink.MAV_TYPE_FIXED_WING)
    state = (mavlink.MAV_STATE_STANDBY if flight.motion is Motion.GROUND
             else mavlink.MAV_STATE_ACTIVE)
    return wire.HEARTBEAT.of(
        vehicle.mode, kind, mavlink.MAV_AUTOPILOT_ARDUPILOTMEGA, base, state, 3)


def sys_status(vehicle: Autopilot) -> Any:
    errors = vehicle.internal_errors
    return mavlink.MAVLink_sys_status_message(
        320994335, 318865439, 320994335, 0, 12600, 0, 100, 0, 0,
        errors & 0xffff, errors >> 16, 0, vehicle.internal_error_count)


def system_time(vehicle: Autopilot) -> Any:
    unix = EPOCH_US + vehicle.t_us if vehicle.ekf.gps_fix else 0
    return wire.SYSTEM_TIME.of(unix, vehicle.time_boot_ms)


def _position(vehicle: Autopilot) -> tuple[float, float, float]:
    """True north, east, up now: the physics' last step, carried on to this loop tick."""
    flight = vehicle.flight
    ahead = (vehicle.t_us - vehicle.physics_us) * 1e-6
    return (flight.north + flight.v_north * ahead, flight.east + flight.v_east * ahead,
            flight.up + flight.v_up * ahead)


def _estimate(vehicle: Autopilot) -> tuple[float, float, float, float, float]:
    """North, east, up, and the velocity north and east, as EKF3 has them."""
    flight, error = vehicle.flight, vehicle.reckoning
    north, east, up = _position(vehicle)
    ahead = (vehicle.t_us - vehicle.physics_us) * 1e-6
    return (north + error.north + error.v_north * ahead, east + error.east + error.v_east * ahead,
            up, flight.v_north + error.v_north, flight.v_east + error.v_east)


def _latitude_longitude(home: Home, north: float, east: float) -> tuple[int, int]:
    latitude, longitude = home.degrees_at(north, east)
    return round(latitude * 1e7), round(longitude * 1e7)


def gps_raw_int(vehicle: Autopilot) -> Any:
    if vehicle.time_s < 0.3 * vehicle.config.origin_after:
        return mavlink.MAVLink_gps_raw_int_message(0, 0, 0, 0, 0, 65535, 65535, 0, 0, 0)
    flight = vehicle.flight
    north, east, up = _position(vehicle)
    latitude, longitude = _latitude_longitude(vehicle.config.home, north, east)
    fix = vehicle.ekf.gps_fix
    course = math.degrees(math.atan2(flight.v_east, flight.v_north)) % 360.0
    return mavlink.MAVLink_gps_raw_int_message(
        vehicle.t_us, 6 if fix else 1, latitude, longitude,
        round((vehicle.config.home.altitude + up) * 1000.0), 121, 200,
        round(min(flight.ground_speed, 600.0) * 100.0), round(course * 100.0) % 36000,
        10 if fix else 3)


def attitude(vehicle: Autopilot) -> Any:
    flight = vehicle.flight
    return wire.ATTITUDE.of(
        vehicle.time_boot_ms, flight.roll, flight.pitch, _signed(flight.yaw), flight.roll_rate,
        flight.pitch_rate, flight.yaw_rate)


def _quaternion(flight: Flight) -> tuple[float, float, float, float]:
    half = [(math.cos(a / 2.0), math.sin(a / 2.0))
            for a in (flight.roll, flight.pitch, flight.yaw)]
    (cr, sr), (cp, sp), (cy, sy) = half
    return (cr * cp * cy + sr * sp * sy, sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy, cr * cp * sy - sr * sp * cy)


def attitude_quaternion(vehicle: Autopilot) -> Any:
    flight = vehicle.flight
    return mavlink.MAVLink_attitude_quaternion_message(
        vehicle.time_boot_ms, *_quaternion(flight), flight.roll_rate, flight.pitch_rate,
        flight.yaw_rate)


def sim_state(vehicle: Autopilot) -> Any:
    """Return the truth. It carries no time: it belongs to the SYSTEM_TIME sent beside it."""
    flight, home = vehicle.flight, vehicle.config.home
    north, east, up = _position(vehicle)
    latitude, longitude = _latitude_longitude(home, north, east)
    sin_roll, cos_roll = math.sin(flight.roll), math.cos(flight.roll)
    sin_pitch, cos_pitch = math.sin(flight.pitch), math.cos(flight.pitch)
    return wire.SIM_STATE.of(
        *_quaternion(flight), flight.roll, flight.pitch, _signed(flight.yaw),
        GRAVITY * sin_pitch, -GRAVITY * sin_roll * cos_pitch, -GRAVITY * cos_roll * cos_pitch,
        flight.roll_rate, flight.pitch_rate, flight.yaw_rate,
        latitude * 1e-7, longitude * 1e-7, home.altitude + up, 0.0, 0.0,
        flight.v_north, flight.v_east, 0.0 - flight.v_up, latitude, longitude)


def local_position_ned(vehicle: Autopilot) -> Any:
    if not vehicle.ekf.has_origin or vehicle.ekf.no_aiding:
        return None
    north, east, up, v_north, v_east = _estimate(vehicle)
    return wire.LOCAL_POSITION_NED.of(
        vehicle.time_boot_ms, north, east, 0.0 - up, v_north, v_east, 0.0 - vehicle.flight.v_up)


def global_position_int(vehicle: Autopilot) -> Any:
    flight, home = vehicle.flight, vehicle.config.home
    north, east, up, v_north, v_east = _estimate(vehicle)
    latitude = longitude = altitude = 0
    if vehicle.ekf.has_origin:
        latitude, longitude = _latitude_longitude(home, north, east)
        altitude = round((home.altitude + up) * 1000.0)
    return wire.GLOBAL_POSITION_INT.of(
        vehicle.time_boot_ms, latitude, longitude, altitude,
        round(up * 1000.0), _centi(v_north), _centi(v_east), _centi(-flight.v_up),
        round(math.degrees(flight.yaw) % 360.0 * 100.0) % 36000)


def vfr_hud(vehicle: Autopilot) -> Any:
    flight, ekf = vehicle.flight, vehicle.ekf
    _, _, up, v_north, v_east = _estimate(vehicle)
    ground_speed = math.hypot(v_north, v_east)
    if ekf.airspeed_used(flight):
        airspeed = flight.airspeed
    elif ekf.estimates_wind:
        airspeed = math.hypot(v_north - ekf.wind_north, v_east - ekf.wind_east)
    else:
        airspeed = ground_speed
    return wire.VFR_HUD.of(
        airspeed, ground_speed, vehicle.config.home.altitude + up, flight.v_up,
        int(math.degrees(flight.yaw) % 360.0), int(flight.throttle))


def ekf_status_report(vehicle: Autopilot) -> Any:
    ekf = vehicle.ekf
    return wire.EKF_STATUS_REPORT.of(
        ekf.velocity_variance, ekf.position_variance, ekf.height_variance, ekf.compass_variance,
        0.0, ekf.flags, ekf.airspeed_variance)


def wind(vehicle: Autopilot) -> Any:
    ekf = vehicle.ekf
    if vehicle.config.kind == 'copter' and (not ekf.has_origin or ekf.no_aiding):
        return None
    north, east = (ekf.wind_north, ekf.wind_east) if ekf.active else vehicle.dcm_wind
    # -0.0 on purpose: no wind reads as direction -180, as ArduPilot sends it
    direction = math.degrees(math.atan2(-east, -north))
    return wire.WIND.of(direction, math.hypot(north, east), 0.0)


def position_target_local_ned(vehicle: Autopilot) -> Any:
    """Return where it is to be: of a copter with dynamics, which can be somewhere else."""
    flight = vehicle.flight
    if flight.dynamics is None or flight.motion is not Motion.ROTORS:
        return None
    north, east, up, v_up = flight.set_point
    return mavlink.MAVLink_position_target_local_ned_message(
        vehicle.time_boot_ms, mavlink.MAV_FRAME_LOCAL_NED, 0, north, east, 0.0 - up, 0.0, 0.0,
        0.0 - v_up, 0.0, 0.0, 0.0, 0.0, 0.0)


def nav_controller_output(vehicle: Autopilot) -> Any:
    """Return how far it is off its height, its airspeed (cm/s) and its circle."""
    flight, circle = vehicle.flight, vehicle.flight.circle
    off = 0.0 if circle is None else math.hypot(
        flight.north - circle[0], flight.east - circle[1]) - LOITER_RADIUS
    up = flight.set_point[2] if flight.dynamics is not None else flight.target_up
    return mavlink.MAVLink_nav_controller_output_message(
        math.degrees(flight.roll), math.degrees(flight.pitch),
        round(math.degrees(_signed(flight.yaw))), 0, 0, up - flight.up,
        (CRUISE_AIRSPEED - flight.airspeed) * 100.0 if flight.kind != 'copter' else 0.0, off)


def extended_sys_state(vehicle: Autopilot) -> Any:
    return wire.EXTENDED_SYS_STATE.of(vehicle.flight.vtol, vehicle.flight.landed)


def autopilot_version(vehicle: Autopilot) -> Any:
    capabilities = (mavlink.MAV_PROTOCOL_CAPABILITY_PARAM_FLOAT
                    | mavlink.MAV_PROTOCOL_CAPABILITY_COMMAND_INT
                    | mavlink.MAV_PROTOCOL_CAPABILITY_MAVLINK2)
    version = 4 << 24 | 7 << 16
    return mavlink.MAVLink_autopilot_version_message(
        capabilities, version, 0, 0, 3 << 16, [0] * 8, [0] * 8, [0] * 8, 0, 0, 0)


def home_position(vehicle: Autopilot) -> Any:
    if not vehicle.ekf.has_origin:
        return None
    home, nan = vehicle.config.home, math.nan
    return mavlink.MAVLink_home_position_message(
        round(home.latitude * 1e7), round(home.longitude * 1e7), round(home.altitude * 1000.0),
        0.0, 0.0, 0.0, [nan] * 4, 0.0, 0.0, 0.0, vehicle.t_us)


def gps_global_origin(vehicle: Autopilot) -> Any:
    if not vehicle.ekf.has_origin:
        return None
    home = vehicle.config.home
    return mavlink.MAVLink_gps_global_origin_message(
        round(home.latitude * 1e7), round(home.longitude * 1e7), round(home.altitude * 1000.0),
        vehicle.t_us)


def parameter_value(vehicle: Autopilot, name: str, index: int = 65535) -> Any:
    table = vehicle.parameters
    return wire.PARAM_VALUE.of(
        table.values[name], len(table.names), index, name, table.types[name])


def _signed(angle: float) -> float:
    return (angle + math.pi) % (2.0 * math.pi) - math.pi


def _centi(speed: float) -> int:
    return round(min(max(speed * 100.0, -32768.0), 32767.0))


ENCODERS: dict[int, Callable[[Autopilot], Any]] = {
    mavlink.MAVLINK_MSG_ID_HEARTBEAT: heartbeat,
    mavlink.MAVLINK_MSG_ID_SYS_STATUS: sys_status,
    mavlink.MAVLINK_MSG_ID_SYSTEM_TIME: system_time,
    mavlink.MAVLINK_MSG_ID_GPS_RAW_INT: gps_raw_int,
    mavlink.MAVLINK_MSG_ID_ATTITUDE: attitude,
    mavlink.MAVLINK_MSG_ID_ATTITUDE_QUATERNION: attitude_quaternion,
    mavlink.MAVLINK_MSG_ID_SIM_STATE: sim_state,
    mavlink.MAVLINK_MSG_ID_LOCAL_POSITION_NED: local_position_ned,
    mavlink.MAVLINK_MSG_ID_GLOBAL_POSITION_INT: global_position_int,
    mavlink.MAVLINK_MSG_ID_VFR_HUD: vfr_hud,
    mavlink.MAVLINK_MSG_ID_EKF_STATUS_REPORT: ekf_status_report,
    mavlink.MAVLINK_MSG_ID_WIND: wind,
    mavlink.MAVLINK_MSG_ID_EXTENDED_SYS_STATE: extended_sys_state,
    mavlink.MAVLINK_MSG_ID_MISSION_CURRENT:
        lambda vehicle: mavlink.MAVLink_mission_current_message(vehicle.mission.current),
    mavlink.MAVLINK_MSG_ID_POSITION_TARGET_LOCAL_NED: position_target_local_ned,
    mavlink.MAVLINK_MSG_ID_NAV_CONTROLLER_OUTPUT: nav_controller_output,
    mavlink.MAVLINK_MSG_ID_AUTOPILOT_VERSION: autopilot_version,
    mavlink.MAVLINK_MSG_ID_HOME_POSITION: home_position,
    mavlink.MAVLINK_MSG_ID_GPS_GLOBAL_ORIGIN: gps_global_origin,
}


def encoders_of(config: VehicleConfig) -> dict[int, Callable[[Autopilot], Any]]:
    """Return the messages that this vehicle has; one that is no simulator has no SIM_STATE."""
    return {message_id: encode for message_id, encode in ENCODERS.items()
            if config.simulator or encode is not sim_state}
