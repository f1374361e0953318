"""The embedded vehicle's EKF3: every phase of its wind, and what EKF_STATUS_REPORT says of it.

Times are those measured on SITL: a source is used for 7 s after its last sample, dead reckoning is
flagged at 10 s, aiding is given up at 15 s.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from pymavlink.dialects.v20 import ardupilotmega as mavlink
from support.autopilot import Pilot, param_set

from dryden_wind_ros.emulator.config import VehicleConfig

LOITER, LAND, TAKEOFF, QLOITER = 12, 9, 13, 19
WIND = (('SIM_WIND_SPD', 8), ('SIM_WIND_DIR', 250), ('SIM_WIND_T', 1), ('SIM_WIND_TC', 0.1))
TRUE_NORTH, TRUE_EAST = -8 * math.cos(math.radians(250)), -8 * math.sin(math.radians(250))


def make(kind: str, **options: Any) -> Pilot:
    pilot = Pilot(VehicleConfig(kind=kind, parameters=WIND, **options))
    look(pilot)
    pilot.run(8.0)
    return pilot


def look(pilot: Pilot) -> None:
    for message_id in (mavlink.MAVLINK_MSG_ID_EKF_STATUS_REPORT, mavlink.MAVLINK_MSG_ID_WIND,
                       mavlink.MAVLINK_MSG_ID_VFR_HUD):
        pilot.ask(message_id, 0.05)


def flying_plane(**options: Any) -> Pilot:
    pilot = Pilot(VehicleConfig(kind='plane', parameters=WIND, **options))
    pilot.run(8.0)
    pilot.fly(mode=TAKEOFF)
    pilot.command(mavlink.MAV_CMD_DO_SET_MODE, 1, LOITER)
    pilot.run(60.0)
    look(pilot)
    return pilot


def hovering_copter(**options: Any) -> Pilot:
    pilot = Pilot(VehicleConfig(kind='copter', parameters=WIND, **options))
    pilot.run(8.0)
    pilot.fly(10.0)
    pilot.run(20.0)
    look(pilot)
    return pilot


def outage(pilot: Pilot, seconds: float, after: float = 30.0) -> tuple[float, float]:
    """Take GPS away for so long; return the times of the last sample accepted and of the end."""
    pilot.log.clear()
    pilot.phases.clear()
    pilot.run(1.0)
    pilot.send(param_set('SIM_GPS1_ENABLE', 0))
    pilot.run(seconds)
    last = accepted(pilot)[-1]
    pilot.send(param_set('SIM_GPS1_ENABLE', 1))
    back = pilot.t
    pilot.run(after)
    return last, back


def accepted(pilot: Pilot) -> list[float]:
    """Times of accepted GPS samples, as MAVLink shows them: the ratio changes, to below 1."""
    times, before = [], None
    for t, message in pilot.log:
        if message.get_type() == 'EKF_STATUS_REPORT':
            now = message.pos_horiz_variance
            if before is not None and now != before and now < 1.0 and not message.flags & 128:
                times.append(t)
            before = now
    return times


def flag_changes(pilot: Pilot) -> list[tuple[float, int]]:
    found: list[tuple[float, int]] = []
    for t, message in pilot.log:
        if message.get_type() == 'EKF_STATUS_REPORT' and (
                not found or found[-1][1] != message.flags):
            found.append((t, message.flags))
    return found


def start_of(pilot: Pilot, phase: str) -> float:
    return next(t for t, name in pilot.phases if name == phase)


def names(pilot: Pilot) -> list[str]:
    return [name for _, name in pilot.phases]


def values(pilot: Pilot, field: str) -> list[tuple[float, float]]:
    return [(t, getattr(m, field)) for t, m in pilot.log if m.get_type() == 'EKF_STATUS_REPORT']


# ---------------------------------------------------------------------- before flight


def test_flags_from_boot_to_gps() -> None:
    pilot = make('plane', origin_after=5.0)
    assert [flags for _, flags in flag_changes(pilot)] == [1024, 0, 167, 831]
    assert {m.flags for t, m in pilot.log if m.get_type() == 'EKF_STATUS_REPORT' and t < 5.0} == {
        1024, 0, 167}


def test_local_position_starts_with_the_origin_and_the_others_at_once() -> None:
    pilot = Pilot(VehicleConfig(kind='copter', origin_after=20.0))
    pilot.run(19.5)
    kinds = {m.get_type() for _, m in pilot.log}
    assert {'GLOBAL_POSITION_INT', 'VFR_HUD'} <= kinds
    assert not kinds & {'LOCAL_POSITION_NED', 'WIND', 'GPS_GLOBAL_ORIGIN'}
    pilot.run(3.0)
    assert {'LOCAL_POSITION_NED', 'WIND', 'GPS_GLOBAL_ORIGIN', 'HOME_POSITION'} <= {
        m.get_type() for _, m in pilot.log}
    assert 'AHRS: EKF3 active' in pilot.texts()
    assert 'EKF3 IMU0 is using GPS' in pilot.texts()


def test_without_gps_there_is_no_aiding() -> None:
    pilot = Pilot(VehicleConfig(kind='copter', parameters=(('SIM_GPS1_ENABLE', 0),)))
    pilot.run(20.0)
    assert pilot.autopilot.ekf.flags == 167
    assert not pilot.of('LOCAL_POSITION_NED')
    assert pilot.of('GPS_RAW_INT')[-1].fix_type == 1


# ---------------------------------------------------------------------- plane


def test_plane_starts_to_estimate_a_quarter_second_after_5_m_s_from_a_snapshot() -> None:
    pilot = make('plane')
    assert names(pilot) == ['ground']
    assert pilot.command(mavlink.MAV_CMD_DO_SET_MODE, 1, TAKEOFF) == 0
    pilot.command(mavlink.MAV_CMD_COMPONENT_ARM_DISARM, 1)
    pilot.run_until(lambda: pilot.autopilot.ekf.phase == 'init', 20, 'init')
    fast = next(t for t, m in pilot.log if m.get_type() == 'VFR_HUD' and m.groundspeed > 5.0)
    assert start_of(pilot, 'init') - fast == pytest.approx(0.25, abs=0.1)
    # (ground speed - TAS) along the heading: due west, into a wind from 250
    ekf, flight = pilot.autopilot.ekf, pilot.autopilot.flight
    along = flight.ground_speed - flight.airspeed
    assert ekf.wind_east == pytest.approx(-along, abs=0.6)
    assert ekf.wind_north == pytest.approx(0.0, abs=0.6)
    assert ekf.v22 < 2.0
    pilot.run(1.5)
    assert names(pilot) == ['ground', 'inhibited', 'init', 'learning']
    assert start_of(pilot, 'learning') - start_of(pilot, 'init') == pytest.approx(1.0, abs=0.05)


def test_plane_learns_the_wind() -> None:
    pilot = flying_plane()
    wind = pilot.of('WIND')[-1]
    assert wind.speed == pytest.approx(8.0, abs=1.0)
    assert wind.direction == pytest.approx(250.0 - 360.0, abs=8.0)


def test_plane_with_airspeed_40_s_outage() -> None:
    pilot = flying_plane()
    last, back = outage(pilot, 40.0)
    changes = flag_changes(pilot)
    assert [flags for _, flags in changes] == [831, 303, 831]
    assert changes[1][0] - last == pytest.approx(10.0, abs=0.15)
    assert names(pilot) == ['learning', 'coast', 'relearn', 'learning']
    assert start_of(pilot, 'coast') - last == pytest.approx(7.0, abs=0.12)
    # recorded flight: GPS back at 212.725, relearning before 213.365
    assert 0.15 < start_of(pilot, 'relearn') - back < 0.65
    # facts: below 1 within about 2.3 s with airspeed
    relearn = [t for t, name in pilot.phases if name == 'learning'][1] - start_of(pilot, 'relearn')
    assert 0.3 < relearn < 6.0


def test_coast_freezes_the_estimate_and_its_ratios_but_not_the_airspeed() -> None:
    pilot = flying_plane()
    outage(pilot, 20.0)
    begin, end = start_of(pilot, 'coast') + 0.1, start_of(pilot, 'relearn') - 0.1
    winds = {(m.speed, m.direction) for t, m in pilot.log
             if m.get_type() == 'WIND' and begin < t < end}
    assert len(winds) == 1
    for field in ('velocity_variance', 'pos_horiz_variance'):
        assert len({v for t, v in values(pilot, field) if begin < t < end}) == 1
    assert len({v for t, v in values(pilot, 'airspeed_variance') if begin < t < end}) > 50
    assert pilot.autopilot.ekf.v22 > 0.0


def test_first_sample_after_a_long_outage_resets_both_ratios_to_zero() -> None:
    pilot = flying_plane()
    outage(pilot, 12.0)
    at = start_of(pilot, 'relearn')
    first = next(m for t, m in pilot.log if m.get_type() == 'EKF_STATUS_REPORT' and t >= at)
    assert (first.velocity_variance, first.pos_horiz_variance) == (0.0, 0.0)


@pytest.mark.parametrize('seconds', [3.0, 6.0])
def test_outage_below_7_s_never_coasts(seconds: float) -> None:
    pilot = flying_plane()
    outage(pilot, seconds)
    assert names(pilot) == ['learning']
    assert [flags for _, flags in flag_changes(pilot)] == [831]


def test_outage_of_8_5_s_coasts_with_no_flag_change_at_all() -> None:
    pilot = flying_plane()
    outage(pilot, 8.5)
    assert names(pilot) == ['learning', 'coast', 'relearn', 'learning']
    assert [flags for _, flags in flag_changes(pilot)] == [831]


def test_plane_without_airspeed_20_s_outage() -> None:
    pilot = flying_plane(airspeed=False)
    pilot.ask(mavlink.MAVLINK_MSG_ID_EKF_STATUS_REPORT, 0.025)
    last, _ = outage(pilot, 20.0, after=40.0)
    changes = flag_changes(pilot)
    assert [flags for _, flags in changes] == [831, 37, 303, 831]
    assert changes[1][0] - last == pytest.approx(7.0, abs=0.12)
    assert changes[2][0] - changes[1][0] <= 0.061
    assert names(pilot)[:3] == ['learning', 'coast', 'relearn']
    # airspeed_variance: without a sensor its first change is the start of the coast
    first = next(t for t, v in values(pilot, 'airspeed_variance') if v != 0.0)
    assert first - start_of(pilot, 'coast') == pytest.approx(0.0, abs=0.15)
    # facts: 14 s until the variance is below 1 again
    learning = [t for t, name in pilot.phases if name == 'learning']
    assert 4.0 < learning[1] - start_of(pilot, 'relearn') < 20.5


def test_plane_without_airspeed_starts_from_what_it_had() -> None:
    pilot = make('plane', airspeed=False)
    pilot.command(mavlink.MAV_CMD_DO_SET_MODE, 1, TAKEOFF)
    pilot.command(mavlink.MAV_CMD_COMPONENT_ARM_DISARM, 1)
    pilot.run_until(lambda: pilot.autopilot.ekf.phase == 'init', 20, 'init')
    assert pilot.autopilot.ekf.v23 > 100.0


def test_forced_disarming_in_the_air_is_ground() -> None:
    pilot = flying_plane()
    pilot.command(mavlink.MAV_CMD_COMPONENT_ARM_DISARM, 0, 21196)
    pilot.run(1.0)
    assert pilot.autopilot.ekf.phase == 'ground'
    assert pilot.autopilot.ekf.v22 == 0.0
    # plane goes on sending the old values
    assert pilot.of('WIND')[-1].speed > 5.0


def test_external_wind_estimate_is_accepted_and_does_nothing() -> None:
    pilot = flying_plane()
    before = pilot.autopilot.ekf.wind_east
    assert pilot.command(43004, 30.0, 1.0, 90.0, 1.0) == mavlink.MAV_RESULT_ACCEPTED
    pilot.run(1.0)
    assert pilot.autopilot.ekf.wind_east == pytest.approx(before, abs=0.5)


# ---------------------------------------------------------------------- copter


def test_copter_with_drag_starts_with_the_in_flight_yaw_alignment() -> None:
    pilot = make('copter', drag=True)
    pilot.fly(10.0)
    aligned = next(t for t, m in pilot.log if m.get_type() == 'STATUSTEXT'
                   and m.text == 'EKF3 IMU0 MAG0 in-flight yaw alignment complete')
    assert start_of(pilot, 'init') - aligned == pytest.approx(0.2, abs=0.15)
    pilot.run(20.0)
    assert names(pilot) == ['ground', 'inhibited', 'init', 'learning']
    ekf = pilot.autopilot.ekf
    assert math.hypot(ekf.wind_north - TRUE_NORTH, ekf.wind_east - TRUE_EAST) < 1.0


def test_copter_with_drag_25_s_outage() -> None:
    pilot = hovering_copter(drag=True)
    last, _ = outage(pilot, 25.0)
    changes = flag_changes(pilot)
    assert [flags for _, flags in changes] == [831, 303, 831]
    assert changes[1][0] - last == pytest.approx(10.0, abs=0.15)
    assert names(pilot) == ['learning', 'coast', 'relearn', 'learning']
    # facts: 0.5 s with drag
    learning = [t for t, name in pilot.phases if name == 'learning'][1]
    assert learning - start_of(pilot, 'relearn') < 1.0


def test_copter_without_drag_never_estimates_and_says_0_from_minus_180() -> None:
    pilot = hovering_copter()
    assert names(pilot) == ['ground', 'inhibited']
    assert {(m.speed, m.direction) for m in pilot.of('WIND')} == {(0.0, -180.0)}


def test_copter_without_drag_20_s_outage() -> None:
    pilot = hovering_copter()
    last, _ = outage(pilot, 20.0)
    changes = flag_changes(pilot)
    assert [flags for _, flags in changes] == [831, 37, 167, 831]
    assert changes[1][0] - last == pytest.approx(7.0, abs=0.12)
    assert changes[2][0] - last == pytest.approx(15.0, abs=0.12)
    assert {v for _, v in values(pilot, 'airspeed_variance')} == {0.0}


def test_copter_with_drag_is_on_the_ground_again_after_landing() -> None:
    pilot = hovering_copter(drag=True)
    pilot.command(mavlink.MAV_CMD_DO_SET_MODE, 1, LAND)
    pilot.run_until(lambda: not pilot.autopilot.flight.armed, 60, 'landing')
    pilot.run(1.0)
    assert names(pilot)[-1] == 'ground'


def test_drag_parameters_set_in_flight_switch_the_estimator_on() -> None:
    pilot = hovering_copter()
    pilot.set('EK3_DRAG_MCOEF', 0.082)
    pilot.run(3.0)
    assert pilot.autopilot.ekf.phase == 'learning'


# ---------------------------------------------------------------------- quadplane


def test_quadplane_is_inhibited_on_rotors_and_takes_a_new_snapshot_each_time() -> None:
    pilot = make('quadplane')
    pilot.fly(30.0, mode=QLOITER)
    pilot.run(5.0)
    assert names(pilot) == ['ground', 'inhibited']
    pilot.command(mavlink.MAV_CMD_DO_SET_MODE, 1, LOITER)
    pilot.run(40.0)
    assert names(pilot)[2:4] == ['init', 'learning']
    done = next(t for t, m in pilot.log if m.get_type() == 'STATUSTEXT'
                and m.text == 'Transition done')
    assert start_of(pilot, 'init') - done == pytest.approx(0.25, abs=0.1)
    pilot.command(mavlink.MAV_CMD_DO_SET_MODE, 1, QLOITER)
    pilot.run(20.0)
    assert names(pilot)[-1] == 'inhibited'
    assert pilot.autopilot.flight.ground_speed == 0.0
    pilot.command(mavlink.MAV_CMD_DO_SET_MODE, 1, LOITER)
    pilot.run_until(lambda: pilot.autopilot.ekf.phase == 'init', 30, 'second init')
    along = pilot.autopilot.flight.ground_speed - pilot.autopilot.flight.airspeed
    assert math.hypot(pilot.autopilot.ekf.wind_north, pilot.autopilot.ekf.wind_east
                      ) == pytest.approx(abs(along), abs=1.0)


def test_dcm_in_use_means_its_wind_is_sent() -> None:
    pilot = Pilot(VehicleConfig(kind='plane', parameters=(*WIND, ('AHRS_EKF_TYPE', 0))))
    pilot.run(8.0)
    assert 'AHRS: DCM active' in pilot.texts() or not pilot.autopilot.ekf.active
    assert 'AHRS: EKF3 active' not in pilot.texts()
