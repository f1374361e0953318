"""One frame for several vehicles, and the true place of a vehicle in it."""

import math

import pytest
from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.sitl.frame import Frame, Origin, parse_origin
from dryden_wind_ros.sitl.odometry import OdometryBuilder

LAT, LON, ALT = -353632620, 1491652370, 584.0
NORTH = 1000.0 / 0.011131884502145034  # 1e-7 degrees in 1000 m


def attitude(ms):
    return mavlink.MAVLink_attitude_message(ms, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def local(ms, north, east, down):
    return mavlink.MAVLink_local_position_ned_message(ms, north, east, down, 1.0, 2.0, -3.0)


def global_position(ms, lat, lon, alt, home_alt=ALT):
    return mavlink.MAVLink_global_position_int_message(
        ms, lat, lon, round(alt * 1000), round((alt - home_alt) * 1000), 0, 0, 0, 0)


def ekf_origin(lat=LAT, lon=LON, alt=ALT):
    return mavlink.MAVLink_gps_global_origin_message(lat, lon, round(alt * 1000))


def sim_state(lat, lon, alt, velocity=(1.0, 2.0, -3.0)):
    return mavlink.MAVLink_sim_state_message(
        1.0, 0.0, 0.0, 0.0, 0.1, 0.2, 0.3, 0.0, 0.0, -9.81, 0.01, 0.02, 0.03,
        lat * 1e-7, lon * 1e-7, alt, 0.0, 0.0, *velocity, lat, lon)


def hear(builder, *messages, now=None):
    """Return the odometry of the last message."""
    for message in messages:
        sample = builder.update(message, now)
    return sample


# ---- the frame

def test_distances_are_those_of_ardupilot_and_short_over_the_date_line():
    frame = Frame(Origin(0, 1_799_999_000, 0.0))
    assert frame.east_north(round(NORTH), -1_799_999_000) == pytest.approx(
        (2000 * 0.011131884502145034, 1000.0), abs=0.01)
    frame = Frame(Origin(600_000_000, 0, 0.0))
    assert frame.east_north(600_000_000, round(NORTH)) == pytest.approx((500.0, 0.0), abs=0.01)


@pytest.mark.parametrize(('text', 'message'), [
    ('384400000, 0, 0', 'origin has the latitude 3.844e.08 deg; it must be from -90 to 90 deg'),
    ('0, 0, 384400000', 'origin has the altitude 3.844e.08 m; it must be from -1000 to 20000 m'),
    ('0, 200, 0', 'origin has the longitude 200 deg; it must be from -180 to 180 deg'),
    ('nan, 0, 0', 'origin has the latitude nan deg'), ('here', "origin is 'here'; it must be lat"),
    ('1, 2', "origin is '1, 2'; it must be latitude, longitude")])
def test_an_origin_that_is_not_on_the_earth_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_origin(text)


def test_an_origin_is_read_as_users_write_it():
    assert parse_origin(' -35.363262, 149.165237, 584 ') == Origin(LAT, LON, ALT)
    assert parse_origin('') is None


def test_a_frame_of_a_fleet_keeps_the_first_origin_and_one_of_a_vehicle_its_newest():
    shared, own = Frame(shared=True), Frame()
    for frame in (shared, own):
        frame.place_heard(1, 2)
        assert frame.origin is None
        frame.origin_heard(3, 4)
        frame.restarted()
        frame.origin_heard(5, 6)
    assert (shared.origin.latitude, own.origin.latitude) == (3, 5)


# ---- the true place

def test_the_truth_counts_where_it_comes_and_ekf3_where_it_stops():
    builder = OdometryBuilder()
    hear(builder, attitude(1000), ekf_origin(), global_position(1000, LAT, LON, ALT))
    true = hear(builder, sim_state(LAT + round(NORTH), LON, ALT + 30.0), now=1020)
    assert true.true
    assert not true.local
    assert true.time_ms == 1020
    assert true.position == pytest.approx((0.0, 1000.0, 30.0), abs=0.02)
    assert true.velocity_enu == (2.0, 1.0, 3.0)
    assert true.attitude == pytest.approx((0.1, 0.2, 0.3))
    assert true.angular_velocity == pytest.approx((0.01, -0.02, -0.03))
    assert hear(builder, local(1040, 990.0, 0.0, -30.0)) is None
    believed = hear(builder, attitude(3000), local(3000, 990.0, 0.0, -30.0))
    assert not believed.true
    assert believed.position == pytest.approx((0.0, 990.0, 30.0), abs=0.02)


def test_until_the_frame_has_its_zero_everything_is_as_without_the_truth():
    builder = OdometryBuilder()
    hear(builder, attitude(1000), global_position(1000, LAT, LON, ALT))
    assert hear(builder, sim_state(LAT, LON, ALT + 3.0), now=1020) is None
    assert hear(builder, local(1040, 1.0, 2.0, -3.0)).position == pytest.approx((2.0, 1.0, 3.0))


@pytest.mark.parametrize('given', [None, Origin(LAT, LON, ALT)])
def test_an_altitude_that_is_not_known_yet_is_no_height(given):
    """Before EKF3 has an origin, GLOBAL_POSITION_INT has no place: latitude, longitude, alt 0."""
    builder = OdometryBuilder(Frame(given, shared=given is not None))
    early = hear(builder, attitude(1000), global_position(1000, 0, 0, 0.0, home_alt=0.0), now=1000)
    if given is None:
        assert early.position == (0.0, 0.0, 0.0)
        # Where home is nobody knows.
        assert hear(builder, ekf_origin(), sim_state(LAT, LON, ALT + 2.0), now=1020) is None
    else:
        assert early is None
    true = hear(builder, global_position(1040, LAT, LON, ALT + 2.0), sim_state(LAT, LON, ALT + 2.0),
                now=1040)
    assert true.true
    assert true.position == pytest.approx((0.0, 0.0, 2.0), abs=1e-3)


def test_single_precision_of_mavlink_1_is_better_than_nothing():
    builder = OdometryBuilder()
    hear(builder, attitude(1000), ekf_origin(), global_position(1000, LAT, LON, ALT))
    message = sim_state(LAT, LON, ALT)
    message.lat_int = message.lon_int = 0
    assert hear(builder, message, now=1000).position == pytest.approx((0.0, 0.0, 0.0), abs=3.0)
    message.alt = math.nan
    assert hear(builder, message, now=1000) is None


def test_vehicles_of_a_fleet_are_in_the_frame_of_the_first_by_truth_or_belief():
    """The second one's home is 1000 m north; its EKF3 has an origin of its own."""
    frame = Frame(shared=True)
    first, second = OdometryBuilder(frame), OdometryBuilder(frame)
    there = LAT + round(NORTH)
    hear(first, attitude(1000), ekf_origin(), global_position(1000, LAT, LON, ALT))
    hear(second, attitude(1000), global_position(1000, there, LON, ALT + 2.0))
    # Its own local frame means nothing until its origin is known: then GLOBAL_POSITION_INT counts.
    assert hear(second, local(1020, 5.0, 0.0, -2.0)) is None
    assert hear(second, global_position(1060, there, LON, ALT + 2.0)).position == pytest.approx(
        (0.0, 1000.0, 2.0), abs=0.02)
    hear(second, ekf_origin(there))
    assert hear(second, local(1080, 5.0, 0.0, -2.0)).position == pytest.approx(
        (0.0, 1005.0, 2.0), abs=0.02)
    assert hear(second, sim_state(there, LON, ALT + 2.0), now=1100).position == pytest.approx(
        (0.0, 1000.0, 2.0), abs=0.02)


def test_with_a_given_origin_heights_count_from_it():
    frame = Frame(parse_origin('-35.363262, 149.165237, 500'))
    builder = OdometryBuilder(frame)
    hear(builder, attitude(1000), global_position(1000, LAT, LON, ALT))
    true = hear(builder, sim_state(LAT, LON, ALT + 10.0), now=1000)
    assert true.position[2] == pytest.approx(94.0)
    believed = OdometryBuilder(frame)
    hear(believed, attitude(1000), ekf_origin())
    assert hear(believed, local(1000, 0.0, 0.0, -10.0)).position[2] == pytest.approx(94.0)
