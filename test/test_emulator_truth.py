"""What the embedded vehicle tells of its true place, and what becomes of EKF3's without GPS."""

from __future__ import annotations

import itertools
import math

import pytest
from pymavlink.dialects.v20 import ardupilotmega as mavlink
from support.autopilot import Pilot, param_set
from transforms3d.euler import quat2euler

from dryden_wind_ros.emulator.config import Home, VehicleConfig
from dryden_wind_ros.emulator.options import command_line, configurations, joined

SIM_STATE = mavlink.MAVLINK_MSG_ID_SIM_STATE
GPS_GLOBAL_ORIGIN = mavlink.MAVLINK_MSG_ID_GPS_GLOBAL_ORIGIN
HOME_POSITION = mavlink.MAVLINK_MSG_ID_HOME_POSITION
WIND = (('SIM_WIND_SPD', 8.0), ('SIM_WIND_DIR', 250.0), ('SIM_WIND_T', 1.0),
        ('SIM_WIND_TC', 0.1))
EARTH = 6378100.0
"""ArduPilot's radius of the Earth, m."""


def metres(home: Home, latitude: int, longitude: int) -> tuple[float, float]:
    """North and east of home, from 1e-7 degrees, on ArduPilot's sphere."""
    north = math.radians(latitude * 1e-7 - home.latitude) * EARTH
    east = (math.radians(longitude * 1e-7 - home.longitude) * EARTH
            * math.cos(math.radians(home.latitude)))
    return north, east


@pytest.fixture(scope='module')
def outage() -> tuple[Pilot, float, float]:
    """A plane that circles, 40 s without GPS: the pilot, and when GPS went and came."""
    pilot = Pilot(VehicleConfig(kind='plane', flight='loiter', parameters=WIND))
    for message_id in (SIM_STATE, mavlink.MAVLINK_MSG_ID_LOCAL_POSITION_NED,
                       mavlink.MAVLINK_MSG_ID_ATTITUDE):
        assert pilot.ask(message_id, 0.025) == mavlink.MAV_RESULT_ACCEPTED
    pilot.run(75.0)
    assert pilot.autopilot.flight.up == pytest.approx(80.0, abs=5.0)
    pilot.set('SIM_GPS1_ENABLE', 0)
    gone = pilot.t
    pilot.run(40.0)
    pilot.set('SIM_GPS1_ENABLE', 1)
    back = pilot.t
    pilot.run(10.0)
    return pilot, gone, back


def test_sim_state_is_the_true_place_velocity_and_attitude(
        outage: tuple[Pilot, float, float]) -> None:
    pilot, gone, _ = outage
    states = [(t, m) for t, m in pilot.log if m.get_type() == 'SIM_STATE' and 40.0 < t < gone]
    attitudes = {t: m for t, m in pilot.log if m.get_type() == 'ATTITUDE'}
    # 20, 20, 20, 40 ms apart, as a 50 Hz loop has it
    assert len(states) / (states[-1][0] - states[0][0]) == pytest.approx(40.0, abs=0.5)
    home = pilot.autopilot.config.home
    for (t0, before), (t1, state) in zip(states[:-1:50], states[1::50], strict=False):
        north, east = metres(home, state.lat_int, state.lon_int)
        north0, east0 = metres(home, before.lat_int, before.lon_int)
        # 1e-7 degrees are 1.1 cm
        assert (north - north0) / (t1 - t0) == pytest.approx(state.vn, abs=1.2)
        assert (east - east0) / (t1 - t0) == pytest.approx(state.ve, abs=1.2)
        assert state.lat == pytest.approx(state.lat_int * 1e-7, abs=4e-6)
        assert quat2euler((state.q1, state.q2, state.q3, state.q4)) == pytest.approx(
            (state.roll, state.pitch, state.yaw), abs=1e-5)
        shown = attitudes[t1]
        assert (state.roll, state.pitch, state.yaw) == (shown.roll, shown.pitch, shown.yaw)
        assert math.hypot(state.xacc, state.yacc, state.zacc) == pytest.approx(9.80665, abs=1e-4)
        assert state.alt == pytest.approx(584.0 + 80.0, abs=6.0)


def test_without_gps_the_estimate_leaves_the_truth_and_comes_back_in_one_step(
        outage: tuple[Pilot, float, float]) -> None:
    pilot, gone, back = outage
    home = pilot.autopilot.config.home
    true = {t: metres(home, m.lat_int, m.lon_int) for t, m in pilot.log
            if m.get_type() == 'SIM_STATE'}
    off = [(t, math.dist((m.x, m.y), true[t])) for t, m in pilot.log
           if m.get_type() == 'LOCAL_POSITION_NED' and t in true]
    assert max(distance for t, distance in off if t < gone) < 0.02
    # Recorded: below 2 m after 5 s, 7 m after 8.5 s, 79 m after 40 s
    assert max(distance for t, distance in off if t < gone + 5.0) < 3.0
    assert 20.0 < next(d for t, d in off if t > back) < 100.0
    assert max(distance for t, distance in off if t > back + 0.6) < 0.02
    # The truth has no step: 40 ms at 35 m/s
    places = [place for _, place in sorted(true.items())]
    assert max(map(math.dist, places, places[1:])) < 1.5


def test_a_copter_without_aiding_has_no_local_position_but_its_truth() -> None:
    pilot = Pilot(VehicleConfig(kind='copter', flight='hover', parameters=WIND))
    pilot.ask(SIM_STATE, 0.05)
    pilot.ask(mavlink.MAVLINK_MSG_ID_LOCAL_POSITION_NED, 0.05)
    pilot.run(15.0)
    pilot.set('SIM_GPS1_ENABLE', 0)
    gone = pilot.t
    pilot.run(25.0)
    local = [t for t, m in pilot.log if m.get_type() == 'LOCAL_POSITION_NED']
    # 15 s after the last sample, which is at most 0.2 s older than the failure and 0.22 s delayed
    assert local[-1] - gone == pytest.approx(15.1, abs=0.3)
    states = [t for t, m in pilot.log if m.get_type() == 'SIM_STATE' and t > gone + 16.0]
    assert max(b - a for a, b in itertools.pairwise(states)) < 0.06
    pilot.set('SIM_GPS1_ENABLE', 1)
    pilot.log.clear()
    pilot.run(2.0)
    assert len(pilot.of('LOCAL_POSITION_NED')) > 25


def test_a_vehicle_that_is_no_simulator_has_no_sim_state() -> None:
    pilot = Pilot(VehicleConfig(kind='copter', simulator=False))
    assert pilot.ask(SIM_STATE, 0.05) == mavlink.MAV_RESULT_DENIED
    assert pilot.command(mavlink.MAV_CMD_REQUEST_MESSAGE, SIM_STATE) == mavlink.MAV_RESULT_FAILED


def test_the_origin_is_told_once_a_second_and_with_home_on_request() -> None:
    home = Home(52.5, -13.25, 40.0, 0.0)
    pilot = Pilot(VehicleConfig(kind='copter', home=home))
    assert pilot.command(mavlink.MAV_CMD_REQUEST_MESSAGE, GPS_GLOBAL_ORIGIN) == (
        mavlink.MAV_RESULT_FAILED)
    pilot.run(14.0)
    told = [t for t, m in pilot.log if m.get_type() == 'GPS_GLOBAL_ORIGIN']
    assert len(told) == pytest.approx(14 - 3 + 1, abs=1)
    pilot.log.clear()
    for message_id in (GPS_GLOBAL_ORIGIN, HOME_POSITION):
        assert pilot.command(mavlink.MAV_CMD_REQUEST_MESSAGE, message_id) == (
            mavlink.MAV_RESULT_ACCEPTED)
    for message in (pilot.of('GPS_GLOBAL_ORIGIN')[0], pilot.of('HOME_POSITION')[0]):
        assert (message.latitude, message.longitude, message.altitude) == (
            525_000_000, -132_500_000, 40_000)


def homes(*arguments: str) -> list[Home]:
    options = command_line().parse_args(joined(arguments))
    return [config.home for config in configurations(options, print)]


@pytest.mark.parametrize(('formation', 'places'), [
    ('line', [(0, 0), (0, 15), (0, 30), (0, 45), (0, 60)]),
    ('square', [(0, 0), (0, 15), (0, 30), (15, 0), (15, 15)])])
def test_a_fleet_stands_apart_and_each_vehicle_tells_its_own_place(
        formation: str, places: list[tuple[int, int]]) -> None:
    found = homes('--count', '5', '--spacing', '15', '--formation', formation,
                  '--home', '-35.363261,149.16523,584')
    for number, (home, place) in enumerate(zip(found, places, strict=True)):
        pilot = Pilot(VehicleConfig(kind='copter', home=home, sysid=number + 1))
        pilot.send(mavlink.MAVLink_command_long_message(
            number + 1, 1, mavlink.MAV_CMD_REQUEST_MESSAGE, 0, SIM_STATE, *[0.0] * 6))
        pilot.run(0.1)
        state, = pilot.of('SIM_STATE')
        assert metres(Home(), state.lat_int, state.lon_int) == pytest.approx(place, abs=0.012)


def test_each_vehicle_can_have_a_home_of_its_own() -> None:
    first, second = homes('--count', '2', '--home', '-35,149,500,90', '--home=48,11,520')
    assert first == Home(-35.0, 149.0, 500.0, 90.0)
    assert second == Home(48.0, 11.0, 520.0, 270.0)
    assert homes() == [Home()]


def test_the_air_is_that_of_the_true_place_while_the_estimate_is_lost() -> None:
    # SIM_WIND_T 2: the wind grows by 0.1 m/s per metre of true height
    pilot = Pilot(VehicleConfig(kind='copter', flight='hover', parameters=(
        *WIND[:2], ('SIM_WIND_T', 2.0), ('SIM_WIND_T_COEF', 0.1), ('SIM_WIND_TC', 0.1))))
    pilot.run(20.0)
    pilot.send(param_set('SIM_GPS1_ENABLE', 0))
    pilot.run(30.0)
    assert pilot.autopilot.flight.up == 10.0
    east, north, _ = pilot.autopilot.true_wind()
    assert math.hypot(east, north) == pytest.approx(8.0 - 0.1 * (60.0 - 10.0), abs=1e-3)
