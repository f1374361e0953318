"""Odometry against the formulas of REP-103, for four headings and in general."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.sitl.odometry import OdometryBuilder, enu_orientation

NED_TO_ENU = np.array([[0, 1, 0], [1, 0, 0], [0, 0, -1]], float)
FRD_TO_FLU = np.diag([1.0, -1.0, -1.0])


def attitude(roll=0.0, pitch=0.0, yaw=0.0, rates=(0.0, 0.0, 0.0), ms=1000):
    return mavlink.MAVLink_attitude_message(ms, roll, pitch, yaw, *rates)


def local(position, velocity, ms=1000):
    return mavlink.MAVLink_local_position_ned_message(ms, *position, *velocity)


def rotation(q) -> np.ndarray:
    """Rotation matrix of a quaternion x, y, z, w, from the textbook formula."""
    x, y, z, w = q
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])


def ned_rotation(roll, pitch, yaw) -> np.ndarray:
    """Body (FRD) to NED as in any book on flight mechanics: Rz(yaw) Ry(pitch) Rx(roll)."""
    cr, sr, cp, sp = math.cos(roll), math.sin(roll), math.cos(pitch), math.sin(pitch)
    cy, sy = math.cos(yaw), math.sin(yaw)
    return (np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
            @ np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
            @ np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]]))


@pytest.mark.parametrize(('compass', 'nose_enu'), [
    (0, (0, 1, 0)), (90, (1, 0, 0)), (180, (0, -1, 0)), (270, (-1, 0, 0))])
def test_the_nose_points_where_the_compass_says(compass, nose_enu):
    builder = OdometryBuilder()
    builder.update(attitude(yaw=math.radians(compass)))
    # Flying 12 m/s along its nose, wherever that points.
    north, east = 12 * nose_enu[1], 12 * nose_enu[0]
    odometry = builder.update(local((100, 20, -30), (north, east, -1.5)))
    assert rotation(odometry.orientation) @ (1, 0, 0) == pytest.approx(nose_enu, abs=1e-6)
    assert odometry.velocity == pytest.approx((12, 0, 1.5), abs=1e-5)
    assert odometry.position == pytest.approx((20, 100, 30))


@pytest.mark.parametrize(('name', 'message', 'body_up_enu'), [
    # Heading north: the right wing goes down, so the body's up leans east.
    ('roll right', attitude(roll=0.3), (math.sin(0.3), 0, math.cos(0.3))),
    # Nose up: the body's up leans back, south.
    ('nose up', attitude(pitch=0.2), (0, -math.sin(0.2), math.cos(0.2)))])
def test_tilt_leans_to_the_right_side(name, message, body_up_enu):
    up = rotation(enu_orientation(message.roll, message.pitch, message.yaw)) @ (0, 0, 1)
    assert up == pytest.approx(body_up_enu, abs=1e-6)


angle = st.floats(-math.pi, math.pi)


@given(angle, st.floats(-1.5, 1.5), angle)
def test_orientation_is_the_change_of_frames_on_both_sides(roll, pitch, yaw):
    expected = NED_TO_ENU @ ned_rotation(roll, pitch, yaw) @ FRD_TO_FLU
    assert rotation(enu_orientation(roll, pitch, yaw)) == pytest.approx(expected, abs=1e-9)


@given(angle, st.floats(-1.5, 1.5), angle, st.tuples(*[st.floats(-80, 80)] * 3))
def test_velocity_turned_back_is_the_vehicles_own(roll, pitch, yaw, ned):
    builder = OdometryBuilder()
    builder.update(attitude(roll, pitch, yaw, (0.1, 0.2, 0.3)))
    odometry = builder.update(local((0, 0, 0), ned))
    enu = rotation(odometry.orientation) @ odometry.velocity
    assert enu == pytest.approx(NED_TO_ENU @ ned, abs=1e-6)
    assert odometry.angular_velocity == pytest.approx((0.1, -0.2, -0.3))


def position(ms, up, north=5.0, lat=473977418):
    return mavlink.MAVLink_global_position_int_message(
        ms, lat, 85455939, 500_000, round(up * 1000), round(north * 100), 200, -100, 0)


def test_odometry_exists_before_ekf3_has_an_origin():
    builder = OdometryBuilder()
    builder.update(attitude(yaw=math.pi / 2))
    odometry = builder.update(position(2000, 12.5))
    assert odometry.position == pytest.approx((0, 0, 12.5))
    # Heading east: 5 m/s north is to the left, 2 m/s east is forward.
    assert odometry.velocity == pytest.approx((2, 5, 1), abs=1e-6)
    # 1e-4 deg of latitude is 11.1 m.
    moved = builder.update(position(2100, 12.5, lat=473977418 + 1000))
    assert moved.position[1] == pytest.approx(11.12, abs=0.02)


def test_height_is_above_home_in_both_kinds_of_position():
    builder = OdometryBuilder()
    builder.update(attitude())
    builder.update(position(2000, 30.0))
    # The local origin lies 10 m above home.
    odometry = builder.update(local((0, 0, -20), (0, 0, 0), ms=2000))
    assert odometry.local
    assert odometry.position[2] == pytest.approx(30.0)
    assert builder.update(position(2020, 30.0)) is None
    # Local positions stop; the global ones take over.
    assert builder.update(position(3500, 31.0)).position[2] == pytest.approx(31.0)


def test_no_odometry_from_numbers_that_are_none():
    builder = OdometryBuilder()
    assert builder.update(local((0, 0, 0), (0, 0, 0))) is None
    builder.update(attitude())
    assert builder.update(local((math.nan, 0, 0), (0, 0, 0))) is None
    builder.update(attitude(yaw=math.nan))
    # The attitude before that stays: heading north, flying north.
    assert builder.update(local((0, 0, 0), (1, 0, 0))).velocity == pytest.approx((1, 0, 0))
