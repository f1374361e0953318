"""What the embedded vehicle says and does, tick by tick, against what was measured on SITL."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pymavlink.dialects.v20 import ardupilotmega as mavlink
from support.autopilot import Pilot, param_set

from dryden_wind_ros.emulator.config import Home, VehicleConfig
from dryden_wind_ros.emulator.parameters import read_parameter_file

DENIED = mavlink.MAV_RESULT_DENIED
ACCEPTED = mavlink.MAV_RESULT_ACCEPTED
FAILED = mavlink.MAV_RESULT_FAILED
SYSTEM_TIME = mavlink.MAVLINK_MSG_ID_SYSTEM_TIME
LOITER, LAND, TAKEOFF, QLOITER, QLAND = 12, 9, 13, 19, 20


def copter(**options: Any) -> Pilot:
    return Pilot(VehicleConfig(kind='copter', **options))


def plane(**options: Any) -> Pilot:
    return Pilot(VehicleConfig(kind='plane', **options))


def spacings(pilot: Pilot, seconds: float) -> list[int]:
    times = [message.time_boot_ms for message in pilot.run(seconds)
             if message.get_type() == 'SYSTEM_TIME']
    return [after - before for before, after in itertools.pairwise(times)]


# ---------------------------------------------------------------------- clock and intervals


def test_plane_sends_a_20_hz_clock_40_and_60_ms_apart_in_turn() -> None:
    pilot = plane()
    pilot.ask(SYSTEM_TIME, 0.05)
    found = spacings(pilot, 5.0)
    assert set(found) == {40, 60}
    assert all(before != after for before, after in itertools.pairwise(found))
    assert sum(found) / len(found) == pytest.approx(50.0, abs=0.3)


def test_plane_sends_a_25_ms_clock_as_20_20_20_40() -> None:
    pilot = plane()
    pilot.ask(SYSTEM_TIME, 0.025)
    found = spacings(pilot, 4.0)[:160]
    assert [sorted(found[i:i + 4]) for i in range(0, 160, 4)] == [[20, 20, 20, 40]] * 40


@pytest.mark.parametrize('interval', [0.020, 0.025, 0.050])
def test_copter_sends_its_clock_evenly(interval: float) -> None:
    pilot = copter()
    assert pilot.ask(SYSTEM_TIME, interval) == ACCEPTED
    assert set(spacings(pilot, 3.0)) == {round(interval * 1000)}


def test_quadplane_sends_a_20_hz_clock_47_to_53_ms_apart() -> None:
    pilot = Pilot(VehicleConfig(kind='quadplane'))
    assert pilot.ask(SYSTEM_TIME, 0.05) == ACCEPTED
    found = spacings(pilot, 20.0)
    assert min(found) >= 47
    assert max(found) <= 54
    assert sum(found) / len(found) == pytest.approx(50.0, abs=0.5)


def test_plane_with_an_even_clock() -> None:
    pilot = plane(clock='even')
    assert pilot.ask(SYSTEM_TIME, 0.02) == ACCEPTED
    assert set(spacings(pilot, 2.0)) == {20}


def test_interval_too_short_for_the_loop_is_denied_and_the_old_rate_stays() -> None:
    pilot = plane()
    pilot.ask(SYSTEM_TIME, 0.1)
    assert pilot.ask(SYSTEM_TIME, 0.020) == DENIED
    assert ('Requested rate for message ID 2 too fast. Increase SCHED_LOOP_RATE'[:50]
            in pilot.texts())
    assert set(spacings(pilot, 2.0)) == {100}


@pytest.mark.parametrize(('message_id', 'interval'), [(SYSTEM_TIME, math.nan), (60001, 0.1),
                                                      (-1, 0.1), (SYSTEM_TIME, math.inf)])
def test_interval_of_nonsense_is_denied(message_id: int, interval: float) -> None:
    assert copter().ask(message_id, interval) == DENIED


def test_interval_minus_one_stops_a_message_and_zero_brings_the_default_back() -> None:
    pilot = copter()
    pilot.command(mavlink.MAV_CMD_SET_MESSAGE_INTERVAL, SYSTEM_TIME, -1)
    assert not [m for m in pilot.run(3.0) if m.get_type() == 'SYSTEM_TIME']
    pilot.command(mavlink.MAV_CMD_SET_MESSAGE_INTERVAL, SYSTEM_TIME, 0)
    assert set(spacings(pilot, 4.0)) == {1000}


def test_a_stream_that_is_asked_for_undoes_the_intervals_of_its_messages() -> None:
    """As MAVProxy does every 15 s; EXTENDED_SYS_STATE is in no stream and stays."""
    pilot = copter()
    extended = mavlink.MAVLINK_MSG_ID_EXTENDED_SYS_STATE
    assert pilot.ask(SYSTEM_TIME, 0.025) == ACCEPTED
    assert pilot.ask(extended, 0.1) == ACCEPTED
    pilot.send(mavlink.MAVLink_request_data_stream_message(
        1, 1, mavlink.MAV_DATA_STREAM_ALL, 4, 1))
    pilot.run(0.1)
    assert set(spacings(pilot, 3.0)) == {250}
    assert len([m for m in pilot.run(3.0) if m.get_type() == 'EXTENDED_SYS_STATE']) == 30
    assert pilot.ask(SYSTEM_TIME, 0.025) == ACCEPTED
    assert set(spacings(pilot, 3.0)) == {25}
    assert pilot.ask(SYSTEM_TIME, 0.0) == ACCEPTED
    assert set(spacings(pilot, 3.0)) == {250}


def test_default_streams_are_1_hz_and_extended_sys_state_is_in_none() -> None:
    pilot = copter(origin_after=0.5)
    pilot.run(2.0)
    found = [m.get_type() for m in pilot.run(10.0)]
    for kind in ('HEARTBEAT', 'SYSTEM_TIME', 'ATTITUDE', 'VFR_HUD', 'GLOBAL_POSITION_INT',
                 'LOCAL_POSITION_NED', 'EKF_STATUS_REPORT', 'SYS_STATUS', 'GPS_RAW_INT'):
        assert abs(found.count(kind) - 10) <= 1, kind
    assert 'EXTENDED_SYS_STATE' not in found


def test_a_client_that_comes_back_finds_its_rates() -> None:
    pilot = copter()
    pilot.ask(SYSTEM_TIME, 0.05)
    pilot.channel.forget_client()
    pilot.run(1.0)
    pilot.autopilot.client_joined(pilot.channel)
    assert set(spacings(pilot, 2.0)) == {50}


def test_time_stamps_of_positions_are_those_of_the_clock() -> None:
    pilot = plane(origin_after=0.5)
    for message_id in (SYSTEM_TIME, mavlink.MAVLINK_MSG_ID_LOCAL_POSITION_NED):
        pilot.ask(message_id, 0.1)
    pilot.run(3.0)
    times = {m.time_boot_ms for m in pilot.of('SYSTEM_TIME')}
    late = [m.time_boot_ms for m in pilot.of('LOCAL_POSITION_NED')]
    assert late
    assert all(any(abs(t - s) <= 100 for s in times) for t in late)


def test_lost_clock_messages() -> None:
    pilot = copter(clock_loss=0.05, seed=3)
    pilot.ask(SYSTEM_TIME, 0.05)
    found = spacings(pilot, 100.0)
    lost = 2000 - len(found)
    assert 60 < lost < 140
    assert set(found) <= {50, 100, 150, 200, 250}


# ---------------------------------------------------------------------- parameters


def echoes(found: list[Any]) -> list[tuple[str, float]]:
    return [(m.param_id, m.param_value) for m in found if m.get_type() == 'PARAM_VALUE']


def test_write_is_applied_and_echoed_with_its_type() -> None:
    pilot = copter()
    assert echoes(pilot.set('SIM_WIND_SPD', 7.25)) == [('SIM_WIND_SPD', 7.25)]
    assert pilot.of('PARAM_VALUE')[-1].param_type == mavlink.MAV_PARAM_TYPE_REAL32
    assert pilot.of('PARAM_VALUE')[-1].param_index == 65535
    assert echoes(pilot.set('SIM_WIND_T', 1.0)) == [('SIM_WIND_T', 1.0)]
    assert pilot.of('PARAM_VALUE')[-1].param_type == mavlink.MAV_PARAM_TYPE_INT8


def test_write_that_changes_nothing_has_no_echo() -> None:
    pilot = copter()
    pilot.set('SIM_WIND_SPD', 7.25)
    assert echoes(pilot.set('SIM_WIND_SPD', 7.25)) == []


@pytest.mark.parametrize(('name', 'value', 'stored'), [
    ('SIM_WIND_T', 1.99, 2.0), ('SIM_WIND_T', 1.5, 1.0), ('SIM_WIND_T', 300.0, 127.0),
    ('SIM_WIND_T', -300.0, -128.0), ('SIM_WIND_SPD', 0.1, pytest.approx(0.1, rel=1e-7))])
def test_value_is_stored_as_its_type(name: str, value: float, stored: float) -> None:
    pilot = copter()
    pilot.set(name, value)
    assert pilot.get(name) == stored


@pytest.mark.parametrize(('name', 'value', 'error'), [
    ('SIM_WIND_SPEED', 1.0, mavlink.MAV_PARAM_ERROR_DOES_NOT_EXIST),
    ('SIM_WIND_SPD ', 1.0, mavlink.MAV_PARAM_ERROR_DOES_NOT_EXIST),
    ('SIM_WIND_SPD', math.nan, mavlink.MAV_PARAM_ERROR_VALUE_OUT_OF_RANGE),
    ('SIM_WIND_SPD', math.inf, mavlink.MAV_PARAM_ERROR_VALUE_OUT_OF_RANGE),
    ('SIM_WIND_TC', 1.0, mavlink.MAV_PARAM_ERROR_READ_ONLY)])
def test_bad_write_gets_param_error_and_changes_nothing(name: str, value: float,
                                                       error: int) -> None:
    pilot = copter(refused_parameters=('SIM_WIND_TC',))
    before = dict(pilot.autopilot.parameters.values)
    found = pilot.set(name, value)
    errors = [m for m in found if m.get_type() == 'PARAM_ERROR']
    assert [(m.param_id, m.error) for m in errors] == [(name, error)]
    assert echoes(found) == []
    assert pilot.autopilot.parameters.values == before


def test_bad_write_gets_silence_where_asked() -> None:
    pilot = copter(refusal='silence', refused_parameters=('SIM_WIND_TC',))
    found = pilot.set('SIM_WIND_TC', 1.0) + pilot.set('NOPE', 1.0)
    assert not [m for m in found if m.get_type() in ('PARAM_ERROR', 'PARAM_VALUE')]


def test_refused_write_gets_the_old_value_of_older_versions() -> None:
    pilot = copter(refusal='value', refused_parameters=('SIM_WIND_TC',))
    assert echoes(pilot.set('SIM_WIND_TC', 1.0)) == [('SIM_WIND_TC', 5.0)]
    pilot.run(0.1)
    assert 'Param write denied (SIM_WIND_TC)' in pilot.texts()


def test_read_by_name_and_by_index_and_all() -> None:
    pilot = copter()
    pilot.send(mavlink.MAVLink_param_request_read_message(1, 1, b'SIM_WIND_DIR', -1))
    assert echoes(pilot.run(0.1)) == [('SIM_WIND_DIR', 180.0)]
    pilot.send(mavlink.MAVLink_param_request_read_message(1, 1, b'', 3))
    by_index = next(m for m in pilot.run(0.1) if m.get_type() == 'PARAM_VALUE')
    assert by_index.param_index == 3
    pilot.send(mavlink.MAVLink_param_request_list_message(1, 1))
    every = [m for m in pilot.run(3.0) if m.get_type() == 'PARAM_VALUE']
    assert [m.param_index for m in every] == list(range(every[0].param_count))
    assert every[3].param_id == by_index.param_id
    assert {m.param_id for m in every} >= {
        'SIM_WIND_SPD', 'SIM_WIND_DIR', 'SIM_WIND_DIR_Z', 'SIM_WIND_TURB', 'SIM_WIND_TC',
        'SIM_WIND_T', 'SIM_GPS1_ENABLE', 'AHRS_EKF_TYPE', 'EK3_ENABLE', 'ARSPD_USE',
        'EK3_DRAG_BCOEF_X', 'EK3_WIND_P_NSE', 'EK3_SRC1_POSXY', 'MAV_SYSID'}


@pytest.mark.parametrize('option', [{'without_parameters': ('SIM_WIND_TC', 'SIM_WIND_T')},
                                    {'simulator': False}])
def test_parameters_of_other_versions_are_missing(option: dict[str, Any]) -> None:
    pilot = copter(**option)
    found = pilot.set('SIM_WIND_TC', 1.0)
    assert [m.error for m in found if m.get_type() == 'PARAM_ERROR'] == [
        mavlink.MAV_PARAM_ERROR_DOES_NOT_EXIST]
    assert ('SIM_WIND_SPD' in pilot.autopilot.parameters.values) == ('simulator' not in option)


def writes(count: int) -> list[Any]:
    """Distinct writes that all need saving."""
    names = ('SIM_WIND_SPD', 'SIM_WIND_DIR', 'SIM_WIND_DIR_Z')
    return [param_set(names[i % 3], 1.0 + 0.25 * i) for i in range(count)]


def test_thirty_writes_at_once_while_armed_are_fine() -> None:
    pilot = copter()
    pilot.fly(5.0)
    pilot.send(*writes(30))
    pilot.run(1.0)
    assert not [text for text in pilot.texts() if 'Internal' in text]


def test_forty_five_writes_at_once_while_armed_raise_internal_errors() -> None:
    # facts: 45 at once give the text, the values still apply, and the vehicle arms no more
    pilot = copter()
    pilot.fly(5.0)
    pilot.send(*writes(60))
    found = pilot.run(0.5)
    assert [(m.severity, m.text) for m in found if m.get_type() == 'STATUSTEXT'] == [
        (mavlink.MAV_SEVERITY_CRITICAL, 'Internal Errors 0x100000')]
    assert pilot.get('SIM_WIND_DIR_Z') == 1.0 + 0.25 * 59
    assert pilot.eeprom.values['SIM_WIND_DIR_Z'] == 1.0 + 0.25 * 59
    pilot.command(mavlink.MAV_CMD_COMPONENT_ARM_DISARM, 0, 21196)
    pilot.run(5.0)
    assert pilot.command(mavlink.MAV_CMD_COMPONENT_ARM_DISARM, 1) == FAILED


def test_a_hundred_writes_at_once_while_disarmed_are_all_saved() -> None:
    pilot = copter()
    pilot.run(1.0)
    pilot.send(*writes(100))
    found = pilot.run(0.5)
    assert not [text for text in pilot.texts() if 'Internal' in text]
    assert len(echoes(found)) > 60


def test_three_writes_a_tick_for_half_a_minute_of_flight_are_fine() -> None:
    pilot = copter()
    pilot.fly(5.0)
    for number in range(600):
        pilot.send(param_set('SIM_WIND_SPD', 5 + number % 7 / 7), param_set('SIM_WIND_DIR', number),
                   param_set('SIM_WIND_DIR_Z', number % 5))
        pilot.run(0.05)
    assert not [text for text in pilot.texts() if 'Internal' in text]


def test_same_parameter_at_the_head_of_the_queue_skips_the_echo() -> None:
    pilot = copter()
    pilot.send(param_set('SIM_WIND_SPD', 1.0), param_set('SIM_WIND_SPD', 2.0))
    assert echoes(pilot.run(0.1)) == [('SIM_WIND_SPD', 2.0)]


def test_lost_echoes() -> None:
    pilot = copter(echo_loss=0.3, seed=2)
    for number in range(300):
        pilot.send(param_set('SIM_WIND_SPD', number + 1.0))
        pilot.run(0.02)
    assert 160 < len(echoes([m for _, m in pilot.log])) < 250


def test_saved_values_are_kept_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / 'eeprom.json'
    first = Pilot(VehicleConfig(), file)
    first.set('SIM_WIND_SPD', 4.5)
    first.eeprom.flush()
    assert Pilot(VehicleConfig(), file).get('SIM_WIND_SPD') == 4.5


def test_defaults_file_and_its_errors(tmp_path: Path) -> None:
    file = tmp_path / 'x.parm'
    file.write_text('# wind\nSIM_WIND_SPD 8\nSIM_WIND_DIR,270 # from the west\n\n')
    assert read_parameter_file(file) == [('SIM_WIND_SPD', 8.0), ('SIM_WIND_DIR', 270.0)]
    file.write_text('SIM_WIND_SPD fast\n')
    with pytest.raises(ValueError, match=r'line 1: .*fast'):
        read_parameter_file(file)


@pytest.mark.parametrize(('options', 'words'), [
    ({'kind': 'boat'}, "kind 'boat'"), ({'speedup': 0.05}, 'speedup 0.05'),
    ({'speedup': math.nan}, 'speedup nan'), ({'sysid': 0}, 'sysid 0'),
    ({'echo_loss': 1.5}, 'echo_loss 1.5'), ({'kind': 'plane', 'flight': 'hover'}, 'loiter'),
    ({'instance': -1}, 'instance -1')])
def test_bad_configuration_is_refused_by_name(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        VehicleConfig(**options)


def test_unknown_parameter_default_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match='SIM_WIND_SPEED'):
        Pilot(VehicleConfig(parameters=(('SIM_WIND_SPEED', 1.0),)))


@pytest.mark.parametrize('text', ['', '1,2', '1,2,3,x', '1,2,3,4,5', '95,0,0,0', 'nan,0,0,0'])
def test_bad_home_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match='home'):
        Home.parse(text)


def test_file_transfer_is_declined_at_once() -> None:
    # a GCS then asks for the parameter list instead of waiting
    pilot = copter()
    request = bytes((7, 0, 3, 4)) + bytes(247)
    pilot.send(mavlink.MAVLink_file_transfer_protocol_message(0, 1, 1, request))
    answer = next(m for m in pilot.run(0.1) if m.get_type() == 'FILE_TRANSFER_PROTOCOL')
    # sequence 8, same session, NAK to opcode 4, error 10: no such file
    assert bytes(answer.payload[:6]) == bytes((8, 0, 3, 129, 1, 4))
    assert answer.payload[12] == 10


# ---------------------------------------------------------------------- wind in the vehicle


def set_wind(pilot: Pilot, speed: float, direction: float, tilt: float = 0.0,
             profile: float = 1.0, constant: float = 0.1) -> None:
    pilot.send(param_set('SIM_WIND_SPD', speed), param_set('SIM_WIND_DIR', direction),
               param_set('SIM_WIND_DIR_Z', tilt), param_set('SIM_WIND_T', profile),
               param_set('SIM_WIND_TC', constant))
    pilot.run(0.1)


def test_first_five_seconds_are_calm() -> None:
    pilot = copter()
    set_wind(pilot, 8.0, 270.0)
    pilot.run(4.8)
    assert pilot.autopilot.true_wind() == (0.0, 0.0, 0.0)
    pilot.run(0.5)
    assert pilot.autopilot.true_wind()[0] == pytest.approx(8.0, abs=0.01)


def test_wind_follows_with_the_real_time_constant() -> None:
    pilot = copter(parameters=(('SIM_WIND_T', 1), ('SIM_WIND_TC', 5), ('SIM_WIND_DIR', 270)))
    pilot.run(7.0)
    pilot.send(param_set('SIM_WIND_SPD', 10.0))
    pilot.run(0.82)
    assert pilot.autopilot.true_wind()[0] == pytest.approx(10.0 * (1 - math.exp(-1.0)), abs=0.3)


def test_profile_0_leaves_0_41_of_the_wind_at_10_m() -> None:
    pilot = copter()
    set_wind(pilot, 8.0, 270.0, profile=0.0)
    pilot.fly(10.0)
    pilot.run(5.0)
    assert pilot.autopilot.true_wind()[0] == pytest.approx(0.41 * 8.0, abs=0.03)
    pilot.set('SIM_WIND_T', 1.0)
    assert pilot.autopilot.true_wind()[0] == pytest.approx(8.0)


def test_sim_wind_turb_shakes_the_air_off_the_ground_only() -> None:
    pilot = copter(parameters=(('SIM_WIND_TURB', 2.0), ('SIM_WIND_T', 1)))
    pilot.run(6.0)
    assert pilot.autopilot.true_wind() == (0.0, 0.0, 0.0)
    pilot.fly(10.0)
    seen = set()
    for _ in range(20):
        pilot.run(0.1)
        seen.add(pilot.autopilot.true_wind())
    assert len(seen) == 20


# ---------------------------------------------------------------------- copter


def test_copter_hovers_exactly_where_it_was_told_in_any_wind_it_can_hold() -> None:
    pilot = copter()
    pilot.ask(mavlink.MAVLINK_MSG_ID_LOCAL_POSITION_NED, 0.05)
    pilot.fly(10.0)
    for speed in (0.0, 8.0, 19.0):
        set_wind(pilot, speed, 225.0, 10.0)
        found = [m for m in pilot.run(5.0) if m.get_type() == 'LOCAL_POSITION_NED']
        assert {(m.x, m.y, m.z, m.vx, m.vy, m.vz) for m in found} == {(0, 0, -10, 0, 0, 0)}


def test_copter_leans_into_the_wind() -> None:
    pilot = copter(home=Home(heading=0.0))
    pilot.fly(10.0)
    set_wind(pilot, 8.0, 0.0)
    pilot.run(3.0)
    assert pilot.autopilot.flight.pitch < -0.1
    assert abs(pilot.autopilot.flight.roll) < 1e-6
    set_wind(pilot, 8.0, 90.0)
    pilot.run(3.0)
    assert pilot.autopilot.flight.roll > 0.1
    level = pilot.autopilot.flight.throttle
    set_wind(pilot, 8.0, 90.0, 30.0)
    pilot.run(3.0)
    assert pilot.autopilot.flight.throttle < level - 5.0


def test_copter_drifts_in_a_wind_it_cannot_hold_and_comes_back() -> None:
    pilot = copter()
    pilot.fly(10.0)
    set_wind(pilot, 25.0, 270.0)
    pilot.run(10.0)
    flight = pilot.autopilot.flight
    assert flight.v_east == pytest.approx(5.0, abs=0.1)
    assert flight.east > 30.0
    set_wind(pilot, 8.0, 270.0)
    pilot.run(60.0)
    assert (flight.north, flight.east, flight.v_east) == (0.0, 0.0, 0.0)


def test_copter_climbs_at_2_5_m_s_smoothly() -> None:
    pilot = copter()
    pilot.ask(mavlink.MAVLINK_MSG_ID_LOCAL_POSITION_NED, 0.05)
    pilot.fly(30.0)
    climbs = [-m.vz for m in pilot.of('LOCAL_POSITION_NED')]
    assert max(climbs) == pytest.approx(2.5)
    steps = [abs(b - a) for a, b in itertools.pairwise(climbs)]
    assert max(steps) < 0.2


def test_copter_lands_and_disarms() -> None:
    pilot = copter()
    pilot.fly(6.0)
    assert pilot.command(mavlink.MAV_CMD_DO_SET_MODE, 1, LAND) == ACCEPTED
    assert pilot.autopilot.flight.landed == mavlink.MAV_LANDED_STATE_LANDING
    pilot.run_until(lambda: not pilot.autopilot.flight.armed, 40, 'disarming')
    assert pilot.autopilot.flight.up == 0.0
    assert any(text.startswith('SIM Hit ground at 0.5') for text in pilot.texts())


def test_arming_needs_a_position() -> None:
    pilot = copter()
    pilot.run(1.0)
    assert pilot.command(mavlink.MAV_CMD_COMPONENT_ARM_DISARM, 1) == FAILED
    assert 'Arm: Need Position Estimate' in pilot.texts()


def test_disarming_in_flight_needs_force() -> None:
    pilot = copter()
    pilot.fly(10.0)
    assert pilot.command(mavlink.MAV_CMD_COMPONENT_ARM_DISARM, 0) == FAILED
    assert pilot.command(mavlink.MAV_CMD_COMPONENT_ARM_DISARM, 0, 21196) == ACCEPTED
    pilot.run_until(lambda: pilot.autopilot.flight.up == 0.0, 20, 'fall')


def test_take_off_on_the_ground_disarmed_fails() -> None:
    pilot = copter()
    pilot.command(mavlink.MAV_CMD_DO_SET_MODE, 1, 4)
    assert pilot.command(mavlink.MAV_CMD_NAV_TAKEOFF, 0, 0, 0, 0, 0, 0, 10) == FAILED


def test_unknown_command_and_mode_are_answered() -> None:
    pilot = copter()
    assert pilot.command(31010) == mavlink.MAV_RESULT_UNSUPPORTED
    assert pilot.command(mavlink.MAV_CMD_DO_SET_MODE, 1, 99) == FAILED


def test_throttle_stick_climbs_in_loiter() -> None:
    pilot = copter()
    pilot.fly(5.0)
    pilot.command(mavlink.MAV_CMD_DO_SET_MODE, 1, 5)
    pilot.send(mavlink.MAVLink_rc_channels_override_message(1, 1, 1500, 1500, 1800, 1500, 0, 0,
                                                            0, 0))
    pilot.run(5.0)
    pilot.send(mavlink.MAVLink_rc_channels_override_message(1, 1, 1500, 1500, 1500, 1500, 0, 0,
                                                            0, 0))
    pilot.run(2.0)
    assert pilot.autopilot.flight.up == pytest.approx(5.0 + 5.0 * 1.5, abs=0.5)
    assert pilot.autopilot.flight.v_up == 0.0


@pytest.mark.parametrize('kind', ['copter', 'plane', 'quadplane'])
def test_flight_does_not_depend_on_what_is_asked_for(kind: str) -> None:
    states = []
    for intervals in ((), ((SYSTEM_TIME, 0.026), (mavlink.MAVLINK_MSG_ID_ATTITUDE, 0.031))):
        pilot = Pilot(VehicleConfig(kind=kind, flight='loiter', parameters=(
            ('SIM_WIND_SPD', 23.0), ('SIM_WIND_T', 1), ('SIM_WIND_TURB', 1))))
        for message_id, interval in intervals:
            pilot.ask(message_id, interval)
        while pilot.autopilot.next_due() < 30_000_000:
            pilot.tick()
        pilot.autopilot.advance(30_000_000)
        flight, ekf = pilot.autopilot.flight, pilot.autopilot.ekf
        states.append((flight.north, flight.east, flight.up, flight.v_east, flight.roll,
                       ekf.wind_north, ekf.velocity_variance))
    assert states[0] == states[1]
    assert states[0][2] > 5.0


# ---------------------------------------------------------------------- plane and quadplane


def test_plane_flies_at_22_m_s_through_the_air_it_is_given() -> None:
    pilot = plane(parameters=(('SIM_WIND_SPD', 8), ('SIM_WIND_DIR', 250), ('SIM_WIND_T', 1)))
    pilot.ask(mavlink.MAVLINK_MSG_ID_VFR_HUD, 0.1)
    pilot.fly(mode=TAKEOFF)
    pilot.command(mavlink.MAV_CMD_DO_SET_MODE, 1, LOITER)
    pilot.run(20.0)
    found = [m for m in pilot.run(120.0) if m.get_type() == 'VFR_HUD']
    assert all(m.airspeed == pytest.approx(22.0, abs=0.2) for m in found)
    # 22 m/s against and with 8 m/s
    assert min(m.groundspeed for m in found) == pytest.approx(14.0, abs=0.5)
    assert max(m.groundspeed for m in found) == pytest.approx(30.0, abs=0.5)
    assert all(m.alt == pytest.approx(664.0, abs=1.0) for m in found)


def test_plane_airspeed_follows_a_gust_and_the_throttle_brings_it_back() -> None:
    pilot = plane()
    pilot.fly(mode=TAKEOFF)
    pilot.command(mavlink.MAV_CMD_DO_SET_MODE, 1, LOITER)
    pilot.run(20.0)
    heading = math.degrees(pilot.autopilot.flight.yaw)
    set_wind(pilot, 4.0, heading)
    assert pilot.autopilot.flight.airspeed > 25.0
    pilot.run(15.0)
    assert pilot.autopilot.flight.airspeed == pytest.approx(22.0, abs=0.8)


def test_plane_lands_and_disarms() -> None:
    pilot = plane(takeoff_altitude=40.0)
    pilot.fly(mode=TAKEOFF)
    pilot.command(mavlink.MAV_CMD_DO_SET_MODE, 1, LOITER)
    pilot.run(10.0)
    pilot.command(mavlink.MAV_CMD_NAV_LAND)
    pilot.run_until(lambda: not pilot.autopilot.flight.armed, 120, 'landing')
    assert pilot.autopilot.flight.up == 0.0
    assert pilot.autopilot.flight.ground_speed == 0.0


def test_quadplane_says_fixed_wing_and_vtol_state_tells_it_apart() -> None:
    pilot = Pilot(VehicleConfig(kind='quadplane', flight='auto'))
    pilot.ask(mavlink.MAVLINK_MSG_ID_EXTENDED_SYS_STATE, 0.2)
    pilot.run_until(lambda: pilot.t > 20 and not pilot.autopilot.flight.armed, 300, 'landing')
    assert {m.type for m in pilot.of('HEARTBEAT')} == {mavlink.MAV_TYPE_FIXED_WING}
    states = [m.vtol_state for m in pilot.of('EXTENDED_SYS_STATE')]
    # on the ground in FBWA, climb and hover, transition, wings, back on rotors
    assert [a for a, b in zip(states, [None, *states], strict=False) if a != b] == [4, 3, 1, 4, 3]
    assert pilot.autopilot.flight.up == 0.0
    assert 'Transition done' in pilot.texts()


@pytest.mark.parametrize(('kind', 'flight'), [('copter', 'auto'), ('plane', 'auto')])
def test_flight_plan_takes_off_flies_and_lands(kind: str, flight: str) -> None:
    pilot = Pilot(VehicleConfig(kind=kind, flight=flight))
    pilot.run_until(lambda: pilot.autopilot.flight.landed == 2, 60, 'take-off')
    pilot.run(30.0)
    assert pilot.autopilot.flight.up == pytest.approx(pilot.autopilot.config.altitude, abs=1.0)
    pilot.run_until(lambda: not pilot.autopilot.flight.armed, 200, 'landing')
    assert pilot.autopilot.flight.up == 0.0


# ---------------------------------------------------------------------- robustness


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.binary(max_size=400), max_size=5))
def test_garbage_is_no_exception_and_costs_no_memory(chunks: list[bytes]) -> None:
    pilot = GARBAGE
    for chunk in chunks:
        pilot.channel.receive(chunk)
        pilot.tick()
    pilot.run(0.2)
    assert len(pilot.channel._parser._buffer) < 10_000
    pilot.log.clear()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(mavlink.mavlink_map)), st.binary(max_size=255),
       st.integers(0, 255))
def test_any_message_with_any_content_is_no_exception(message_id: int, payload: bytes,
                                                      seq: int) -> None:
    pilot = GARBAGE
    kind = mavlink.mavlink_map[message_id]
    payload = payload[:kind.unpacker.size] or b'\0'
    head = bytes([len(payload), 0, 0, seq, 254, 1, message_id & 255, message_id >> 8 & 255,
                  message_id >> 16])
    crc = mavlink.x25crc(head + payload + bytes([kind.crc_extra])).crc
    packet = b'\xfd' + head + payload + crc.to_bytes(2, 'little')
    pilot.channel.receive(packet[:7])
    pilot.tick()
    pilot.channel.receive(packet[7:])
    pilot.run(0.05)
    assert math.isfinite(pilot.autopilot.flight.up)
    pilot.log.clear()


GARBAGE = Pilot(VehicleConfig(kind='quadplane', flight='loiter'))


def test_nan_in_every_command_is_no_exception() -> None:
    pilot = Pilot(VehicleConfig(kind='quadplane', flight='loiter'))
    pilot.run(20.0)
    for number in (16, 20, 21, 22, 84, 85, 176, 400, 410, 510, 511, 512, 520, 246, 3000, 43004):
        pilot.command(number, *[math.nan] * 7)
    pilot.run(5.0)
    assert math.isfinite(pilot.autopilot.flight.up)


def test_messages_for_another_system_are_not_obeyed() -> None:
    pilot = copter(sysid=5)
    pilot.send(param_set('SIM_WIND_SPD', 3.0))
    pilot.run(0.2)
    assert pilot.get('SIM_WIND_SPD') == 0.0
    assert {m.get_srcSystem() for _, m in pilot.log} == {5}
