"""Missions and set points of the embedded vehicle, over its MAVLink without sockets."""

from __future__ import annotations

import math

import pytest
from pymavlink.dialects.v20 import ardupilotmega as mavlink
from support.autopilot import Pilot

from dryden_wind_ros.emulator.config import METRES_PER_1E7_DEGREES, VehicleConfig

LOITER = 5


@pytest.fixture
def pilot():
    """A copter with dynamics, hovering 5 m above home."""
    pilot = Pilot(VehicleConfig(dynamics=True, flight='hover', takeoff_altitude=5.0))
    pilot.run_until(lambda: pilot.autopilot.flight.up > 4.9, 30.0, 'height')
    pilot.run(2.0)
    return pilot


def item(number, command, north=0.0, east=0.0, up=0.0, param2=0.0):
    home = VehicleConfig().home
    return mavlink.MAVLink_mission_item_int_message(
        1, 1, number, mavlink.MAV_FRAME_GLOBAL_RELATIVE_ALT, command, 0, 1, 0.0, param2, 0.0, 0.0,
        round(home.latitude * 1e7 + north / METRES_PER_1E7_DEGREES),
        round(home.longitude * 1e7 + east / METRES_PER_1E7_DEGREES
              / math.cos(math.radians(home.latitude))), up)


def answers(pilot, message, *kinds):
    pilot.send(message)
    return [one for one in pilot.run(0.2) if one.get_type() in kinds]


def set_point(north, east, up, v_north=0.0, frame=mavlink.MAV_FRAME_LOCAL_NED):
    return mavlink.MAVLink_set_position_target_local_ned_message(
        0, 1, 1, frame, 0b110111000000, north, east, -up, v_north, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
        0.0)


def test_a_mission_is_taken_item_by_item_given_back_and_flown_in_auto(pilot):
    items = [item(0, mavlink.MAV_CMD_NAV_WAYPOINT),
             item(1, mavlink.MAV_CMD_DO_CHANGE_SPEED, param2=4.0),
             item(2, mavlink.MAV_CMD_NAV_WAYPOINT, 12.0, 0.0, 8.0),
             item(3, mavlink.MAV_CMD_NAV_WAYPOINT, 12.0, -6.0, 8.0)]
    asked = 'MISSION_REQUEST', 'MISSION_ACK'
    found = answers(pilot, mavlink.MAVLink_mission_count_message(1, 1, 4), *asked)
    assert [one.seq for one in found] == [0]
    found = answers(pilot, items[2], *asked)  # out of order: the same is asked for again
    assert [one.seq for one in found] == [0]
    for number in range(3):
        assert [one.seq for one in answers(pilot, items[number], *asked)] == [number + 1]
    acknowledged, = answers(pilot, items[3], *asked)
    assert acknowledged.type == mavlink.MAV_MISSION_ACCEPTED
    count, = answers(pilot, mavlink.MAVLink_mission_request_list_message(1, 1), 'MISSION_COUNT')
    assert count.count == 4
    back, = answers(pilot, mavlink.MAVLink_mission_request_int_message(1, 1, 3), 'MISSION_ITEM_INT')
    assert (back.x, back.y, back.z) == (items[3].x, items[3].y, items[3].z)
    begun = pilot.t
    pilot.send(mavlink.MAVLink_command_long_message(
        1, 1, mavlink.MAV_CMD_MISSION_START, 0, 0, 0, 0, 0, 0, 0, 0))
    pilot.run_until(lambda: len(pilot.of('MISSION_ITEM_REACHED')) == 2, 30.0, 'last waypoint')
    reached = [(one.seq, t - begun) for t, one in pilot.log
               if one.get_type() == 'MISSION_ITEM_REACHED']
    # 12 m at 3.5 m/s (sqrt of 12 m x 1 m/s^2 is less than 4) and 6 m: 12/v + v s each
    first, second = (length / (v := min(4.0, math.sqrt(length))) + v for length in (12.0, 6.0))
    assert [number for number, _ in reached] == [2, 3]
    assert [at for _, at in reached] == pytest.approx([first, first + second], abs=0.3)
    pilot.run(5.0)
    flight = pilot.autopilot.flight
    assert (flight.north, flight.east, flight.up) == pytest.approx((12.0, -6.0, 8.0), abs=0.2)


def test_a_mission_that_is_too_long_or_an_item_that_is_not_there_is_refused(pilot):
    refused, = answers(pilot, mavlink.MAVLink_mission_count_message(1, 1, 5000), 'MISSION_ACK')
    assert refused.type == mavlink.MAV_MISSION_NO_SPACE
    refused, = answers(pilot, mavlink.MAVLink_mission_request_int_message(1, 1, 0), 'MISSION_ACK')
    assert refused.type == mavlink.MAV_MISSION_INVALID_SEQUENCE


def test_set_points_are_followed_in_guided_only_and_their_velocity_is_stopped(pilot):
    flight = pilot.autopilot.flight
    pilot.send(set_point(3.0, -2.0, 6.0))
    pilot.run(12.0)
    assert (flight.north, flight.east, flight.up) == pytest.approx((3.0, -2.0, 6.0), abs=0.1)
    pilot.send(set_point(3.0, -2.0, 6.0, v_north=1.0))
    pilot.run(12.0)  # after 3 s (GUID_TIMEOUT) without another, it stops
    assert flight.north == pytest.approx(6.0, abs=0.1)
    pilot.send(set_point(50.0, 0.0, 6.0, frame=mavlink.MAV_FRAME_BODY_NED))
    pilot.autopilot.change_mode(LOITER)
    pilot.send(set_point(50.0, 0.0, 6.0))
    pilot.run(3.0)
    assert flight.north == pytest.approx(6.0, abs=0.1)
