"""SIM_WIND_* of a real vehicle process: found, kept, set, confirmed, put back."""

from __future__ import annotations

import json
import math
import os
import signal
import struct
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymavlink.dialects.v20 import ardupilotmega as mavlink
from support import wait_until
from support.served import AS_THE_USER_LEFT_IT, FLYING, USERS, environment, files, served
from support.vehicle import Emulator, Probe, Process, free_instance

from dryden_wind_ros.gusts.frames import from_direction
from dryden_wind_ros.gusts.sitl_wind import sitl_wind_enu
from dryden_wind_ros.sitl.connection import parse_connection
from dryden_wind_ros.sitl.parameter_reader import validate_name, validate_value
from dryden_wind_ros.sitl.parameters import Phase
from dryden_wind_ros.sitl.sim_wind import Wind
from dryden_wind_ros.sitl.state_file import StateFile, state_directory, vehicle_key

# -- one bridge, one vehicle

def test_nothing_is_written_before_a_wind_comes(tmp_path):
    with Emulator('--speedup', '10', *AS_THE_USER_LEFT_IT) as emulator, Probe(emulator) as probe:
        with served(emulator.connection, tmp_path) as one:
            one.wait_phase(Phase.READY)
            time.sleep(0.5)
            assert probe.wind() == pytest.approx(USERS)
            assert one.status.sent == 0
            assert files(tmp_path) == []
        assert probe.wind() == pytest.approx(USERS)


@pytest.mark.parametrize('options', [[], ['--echo-loss', '0.3']], ids=['', '30 % of echoes lost'])
def test_found_set_confirmed_and_put_back(tmp_path, options):
    with Emulator('--speedup', '5', *FLYING, *AS_THE_USER_LEFT_IT, *options) as emulator, \
            Probe(emulator) as probe:
        with served(emulator.connection, tmp_path) as one:
            one.session.set_wind(Wind(8.1234, 359.999, 3.456, 0.0))
            one.wait_steady()
            assert probe.wind() == pytest.approx({
                'SIM_WIND_SPD': 8.123, 'SIM_WIND_DIR': 0.0, 'SIM_WIND_DIR_Z': 3.46,
                'SIM_WIND_TURB': 0.0, 'SIM_WIND_TC': 0.1, 'SIM_WIND_T': 1.0})
            assert dict(one.status.found) == pytest.approx(USERS)
            [name] = files(tmp_path)
            assert json.loads((tmp_path / name).read_text())['found'] == pytest.approx(USERS)
            begun = time.monotonic()
        assert time.monotonic() - begun < 8.0
        assert 'put back and confirmed' in one.text
        assert probe.wind() == pytest.approx(USERS)
        assert files(tmp_path) == []


def test_profile_sitl_leaves_the_profile_and_hands_turbulence_over(tmp_path):
    with Emulator('--speedup', '5', *AS_THE_USER_LEFT_IT) as emulator, Probe(emulator) as probe, \
            served(emulator.connection, tmp_path) as one:
        one.session.set_wind(Wind(8, 90, 0, 0.8, 'uniform'))
        one.wait_steady()
        assert probe.read('SIM_WIND_T') == 1.0
        one.session.set_wind(Wind(8, 90, 0, 0.8, 'sitl'))
        wait_until(lambda: probe.read('SIM_WIND_T') == USERS['SIM_WIND_T'], 10,
                   'SIM_WIND_T as it was found')
        assert probe.read('SIM_WIND_TURB') == pytest.approx(0.8)


def test_a_version_without_the_newer_parameters_works(tmp_path):
    with Emulator('--speedup', '5', '--without-param', 'SIM_WIND_TC', '--without-param',
                  'SIM_WIND_T', '--refusal', 'silence') as emulator, Probe(emulator) as probe, \
            served(emulator.connection, tmp_path) as one:
        one.session.set_wind(Wind(6, 45))
        one.wait_steady()
        assert 'this SITL has no SIM_WIND_T, SIM_WIND_TC; going on without' in one.text
        assert probe.read('SIM_WIND_SPD') == 6.0
        assert 'SIM_WIND_TC' not in dict(one.status.found)


@pytest.mark.parametrize('refusal', ['error', 'silence'])
def test_what_is_no_simulator_is_not_written_to(tmp_path, refusal):
    with Emulator('--speedup', '5', '--no-sim-params', '--refusal', refusal) as emulator, \
            served(emulator.connection, tmp_path) as one:
        one.session.set_wind(Wind(6, 45))
        one.wait_said('vehicle 1 has no SIM_WIND_SPD: that one is not a simulator')
        assert one.status.phase is Phase.NOT_A_SIMULATOR
        time.sleep(0.3)
        assert one.status.sent == 0
        assert files(tmp_path) == []


@pytest.mark.parametrize('refusal', ['error', 'value'])
def test_a_refused_parameter_is_told_and_the_others_go_on(tmp_path, refusal):
    with Emulator('--speedup', '10', '--refuse', 'SIM_WIND_TC', '--refusal', refusal) as emulator, \
            Probe(emulator) as probe, served(emulator.connection, tmp_path) as one:
        one.session.set_wind(Wind(6, 45))
        one.wait_said('refused SIM_WIND_TC = 0.1: ' if refusal == 'error'
                      else 'SIM_WIND_TC stays at 5 though 0.1 was set')
        assert any('SIM_WIND_TC' in problem for problem in one.status.problems)
        assert probe.read('SIM_WIND_SPD') == 6.0
        assert probe.read('SIM_WIND_T') == 1.0


@pytest.mark.parametrize(('refused', 'refusal', 'loss', 'told'), [
    ('SIM_WIND_SPD', 'silence', '0', True), ('SIM_WIND_DIR', 'value', '0', True),
    ('SIM_WIND_TC', 'error', '1', False)],
    ids=['refused in silence', 'refused by the old value', 'taken, but every echo is lost'])
def test_a_gust_that_the_vehicle_does_not_take_is_told(tmp_path, refused, refusal, loss, told):
    def on_tick(milliseconds: int) -> None:
        ticks.append(milliseconds)
        one.session.set_wind(Wind(5 + milliseconds % 1000 / 1000, milliseconds / 50 % 360))

    ticks: list[int] = []
    words = f'{refused} stays at {USERS[refused]:g} whatever is written to it'
    with Emulator('--speedup', '5', *AS_THE_USER_LEFT_IT, '--refuse', refused, '--refusal', refusal,
                  '--echo-loss', loss) as emulator, \
            served(emulator.connection, tmp_path, on_tick=on_tick) as one:
        one.wait_phase(Phase.WRITING)
        if told:
            one.wait_said(words)
            assert any(words in problem for problem in one.status.problems)
        begun = len(ticks)
        wait_until(lambda: len(ticks) > begun + 800, 30, '40 s of vehicle time')
        assert one.text.count('whatever is written to it') == told


def test_a_steady_wind_arrives_though_the_write_was_lost(tmp_path):
    """Half of all answers are lost, and somebody undoes the wind once: it is set again."""
    with Emulator('--speedup', '10', '--echo-loss', '0.5') as emulator, Probe(emulator) as probe, \
            served(emulator.connection, tmp_path) as one:
        one.session.set_wind(Wind(6, 45))
        one.wait_steady()
        probe.set('SIM_WIND_SPD', 1.0)
        wait_until(lambda: probe.read('SIM_WIND_SPD') == 6.0, 15, 'the wind to be set again')
        one.wait_said('somebody else set SIM_WIND_SPD to 1; set back to 6')


def test_a_new_wind_every_tick_all_arrive_and_none_twice(tmp_path):
    ticks = []

    def wind(milliseconds: int) -> Wind:
        return Wind(5 + milliseconds % 1000 / 1000, milliseconds / 50 % 360, 0.0)

    def on_tick(milliseconds: int) -> None:
        ticks.append(milliseconds)
        one.session.set_wind(wind(milliseconds))

    def together():
        """Return the status at a moment when the wind of every tick was taken."""
        return wait_until(lambda: (now := one.status).winds == len(ticks) and now, 30,
                          lambda: f'{len(ticks)} winds to be taken, not {one.status.winds}')

    with Emulator('--speedup', '10', *FLYING, '--vehicle', 'copter') as emulator, \
            Probe(emulator) as probe, served(emulator.connection, tmp_path,
                                             on_tick=on_tick) as one:
        one.wait_phase(Phase.WRITING)
        before = together()
        wait_until(lambda: len(ticks) > before.winds + 400, 60, '20 s of vehicle time')
        after = together()
        count = after.winds - before.winds
        # Speed and direction change at every tick, the tilt never. On a busy machine a newer wind
        # takes the place of one not sent yet.
        dropped = after.winds_dropped - before.winds_dropped
        assert after.sent - before.sent == pytest.approx(2 * (count - dropped), rel=0.05)
        newest = wind(ticks[-1])
        assert probe.read('SIM_WIND_SPD') == pytest.approx(newest.speed, abs=1.0)
        assert one.status.problems == ()


# -- restarts, stalls, kills

def test_a_restart_is_set_up_again_and_the_users_values_are_not_forgotten(tmp_path):
    eeprom = tmp_path / 'eeprom.json'
    state = tmp_path / 'state'
    with Emulator('--speedup', '10', '--eeprom', str(eeprom)) as emulator:
        with Probe(emulator) as probe:
            for name, value in USERS.items():
                probe.set(name, value)
        with served(emulator.connection, state) as one:
            one.session.set_wind(Wind(8, 90, 1))
            one.wait_steady()
            for restarts in (1, 2):
                with Probe(emulator) as probe:
                    probe.command(mavlink.MAV_CMD_PREFLIGHT_REBOOT_SHUTDOWN, 1)
                wait_until(lambda: one.session.status()[0].restarts == restarts,  # noqa: B023
                           20, f'restart {restarts}')
                one.wait_steady()
            assert dict(one.status.found) == pytest.approx(USERS)
        assert 'put back and confirmed' in one.text
        with Probe(emulator) as probe:
            assert probe.wind() == pytest.approx(USERS)


def test_a_killed_bridge_leaves_a_file_and_the_next_one_puts_the_users_values_back(tmp_path):
    with Emulator('--speedup', '10', *FLYING, *AS_THE_USER_LEFT_IT) as emulator, \
            Probe(emulator) as probe:
        with Process(['-m', 'support.wind_writer', emulator.connection, str(tmp_path)],
                     environment()) as bridge:
            bridge.wait_for('SENT')
            bridge.end(signal.SIGKILL)
        assert probe.read('SIM_WIND_SPD') >= 5.0
        assert len(files(tmp_path)) == 1
        with served(emulator.connection, tmp_path) as one:
            one.session.set_wind(Wind(2, 10))
            one.wait_steady()
            assert 'a bridge ended without putting its wind back' in one.text
            assert one.status.found_in_file
        assert probe.wind() == pytest.approx(USERS)
        assert files(tmp_path) == []


def test_what_a_state_file_does_not_name_is_found_in_the_vehicle(tmp_path):
    # An older SITL without SIM_WIND_TC was left, a newer one is met.
    with Emulator('--speedup', '10', *AS_THE_USER_LEFT_IT) as emulator, Probe(emulator) as probe:
        state = StateFile(tmp_path, vehicle_key(parse_connection(emulator.connection), 1), '')
        state.save({name: value for name, value in USERS.items() if name != 'SIM_WIND_TC'})
        with served(emulator.connection, tmp_path) as one:
            one.session.set_wind(Wind(8, 90, 1))
            one.wait_steady()
            assert probe.read('SIM_WIND_TC') == pytest.approx(0.1)
            assert state.load().found == pytest.approx(USERS)
        assert probe.wind() == pytest.approx(USERS)


def test_what_a_killed_bridge_left_is_put_back_even_if_no_wind_comes(tmp_path):
    with Emulator('--speedup', '10', *AS_THE_USER_LEFT_IT) as emulator, Probe(emulator) as probe:
        with Process(['-m', 'support.wind_writer', emulator.connection, str(tmp_path)],
                     environment()) as bridge:
            bridge.wait_for('SENT')
            bridge.end(signal.SIGKILL)
        with served(emulator.connection, tmp_path) as one:
            one.wait_phase(Phase.READY)
        assert probe.wind() == pytest.approx(USERS)
        assert files(tmp_path) == []


def test_a_stalled_bridge_does_not_catch_up_in_a_burst(tmp_path):
    """Stopped for 2 s (120 ticks), then on: the emulator counts the writes that come at once."""
    with Emulator('--speedup', '3', '--vehicle', 'plane', '--flight', 'loiter') as emulator, \
            Probe(emulator) as probe, \
            Process(['-m', 'support.wind_writer', emulator.connection, str(tmp_path)],
                    environment()) as bridge:
        bridge.wait_for('SENT')
        wait_until(lambda: probe.message('HEARTBEAT').base_mode
                   & mavlink.MAV_MODE_FLAG_SAFETY_ARMED, 20, 'the vehicle to be armed')
        bridge.process.send_signal(signal.SIGSTOP)
        time.sleep(2.0)
        said = len(bridge.output)
        bridge.process.send_signal(signal.SIGCONT)
        wait_until(lambda: len(bridge.output) > said + 5, 10, 'gusts to flow again')
        assert probe.read('SIM_WIND_T') == 1.0
        assert bridge.end(signal.SIGTERM) == 0
        assert 'RESTORED True' in bridge.text
        assert 'ERROR' not in bridge.text
        assert probe.read('SIM_WIND_SPD') == 0.0


def test_the_second_bridge_on_a_vehicle_is_told_and_takes_over_when_the_first_ends(tmp_path):
    """The second one comes by another port of the same SITL instance."""
    instance = free_instance()
    with Emulator('-I', str(instance), '--speedup', '10', *AS_THE_USER_LEFT_IT, sitl_ports=True), \
            served(f'tcp:127.0.0.1:{5762 + 10 * instance}', tmp_path) as first:
        first.session.set_wind(Wind(8, 90))
        first.wait_steady()
        with served(f'tcp:127.0.0.1:{5763 + 10 * instance}', tmp_path) as second:
            second.session.set_wind(Wind(3, 30))
            second.wait_said('another bridge (process')
            assert second.status.phase is Phase.BUSY
            assert second.status.sent == 0
            first.session.begin_restore()
            assert first.session.wait_restored()
            second.wait_said('taking over')
            second.wait_steady()
            assert dict(second.status.found) == pytest.approx(USERS)
        assert 'put back and confirmed' in second.text


def test_a_vehicle_that_is_gone_at_the_end_leaves_its_file(tmp_path):
    with Emulator('--speedup', '10', *AS_THE_USER_LEFT_IT) as emulator:
        with served(emulator.connection, tmp_path) as one:
            one.session.set_wind(Wind(8, 90))
            one.wait_steady()
            emulator.kill()
            one.wait_phase(Phase.NO_VEHICLE)
            begun = time.monotonic()
        assert time.monotonic() - begun < 8.0
        assert not one.session.parameters.restored
        assert one.session.left.endswith('(no vehicle there)')
        assert 'the values found are kept in' in one.text
        assert len(files(tmp_path)) == 1


def test_a_state_file_that_cannot_be_read_is_moved_aside(tmp_path):
    with Emulator('--speedup', '10', *AS_THE_USER_LEFT_IT) as emulator, Probe(emulator) as probe:
        key = vehicle_key(parse_connection(emulator.connection), 1)
        (tmp_path / f'{key}.json').write_text('{"version": 1, "found": {"SIM_WIND_SPD": ')
        with served(emulator.connection, tmp_path) as one:
            one.session.set_wind(Wind(8, 90))
            one.wait_steady()
            assert 'moved aside' in one.text
        assert probe.wind() == pytest.approx(USERS)
        assert len(files(tmp_path)) == 1
        assert 'corrupt' in files(tmp_path)[0]


def test_a_directory_that_cannot_be_used_stops_writing_and_says_how_to_go_on(tmp_path):
    (tmp_path / 'file').write_text('')
    with Emulator('--speedup', '10') as emulator, \
            served(emulator.connection, tmp_path / 'file') as one:
        one.session.set_wind(Wind(8, 90))
        one.wait_said("Parameter 'state_dir' names another place")
        assert one.status.sent == 0




# -- names, values, winds

@given(st.text(max_size=20))
def test_names_are_parameter_names_or_refused(name):
    good = (1 <= len(name) <= 16 and name[0] in 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
            and set(name) <= set('ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_'))
    if good:
        assert validate_name(name) == name
    else:
        with pytest.raises(ValueError, match='parameter name'):
            validate_name(name)


def test_a_trailing_blank_is_another_name():
    with pytest.raises(ValueError, match='blanks'):
        validate_name('SIM_WIND_SPD ')


@given(st.floats())
def test_values_are_32_bit_floats_or_refused(value):
    if math.isfinite(value) and abs(value) <= 3.4028234663852886e38:
        assert validate_value('X', value) == struct.unpack('<f', struct.pack('<f', value))[0]
    elif not math.isfinite(value) or abs(value) > 3.4028236e38:
        with pytest.raises(ValueError, match='X = '):
            validate_value('X', value)


@given(st.floats(0, 200), st.floats(-1e6, 1e6), st.floats(-90, 90), st.floats(0, 200))
def test_a_wind_is_sent_to_a_thousandth_and_a_hundredth(speed, direction, tilt, turbulence):
    values = dict(Wind(speed, direction, tilt, turbulence).values())
    assert abs(values['SIM_WIND_SPD'] - speed) <= 0.0005001
    assert 0 <= values['SIM_WIND_DIR'] < 360
    turn = (values['SIM_WIND_DIR'] - direction + 180) % 360 - 180
    assert abs(turn) <= 0.0051
    assert abs(values['SIM_WIND_DIR_Z'] - tilt) <= 0.0051


@pytest.mark.parametrize(('field', 'value'), [
    ('speed', math.nan), ('speed', -0.1), ('speed', 201.0), ('speed', math.inf),
    ('direction', math.nan), ('direction', -math.inf), ('direction_z', 90.1),
    ('direction_z', math.nan), ('turbulence', -1.0), ('turbulence', math.nan),
    ('profile', 'square'), ('profile', '')])
def test_a_wind_that_is_none_is_refused_by_the_name_of_its_field(field, value):
    good = {'speed': 5.0, 'direction': 10.0, 'direction_z': 0.0, 'turbulence': 0.0,
            'profile': 'uniform'}
    with pytest.raises(ValueError, match=f'sim_wind {field} = ') as caught:
        Wind(**{**good, field: value})
    assert 'allowed' in str(caught.value) or 'needed' in str(caught.value)


@pytest.mark.parametrize(('mean', 'gust'), [
    # speed, direction, tilt of the mean wind, and what blows on top of it.
    ((8.0, 270.0, 0.0), (1.5, -2.0, 0.5)),
    ((10.0, 30.0, 10.0), (-3.0, 1.0, -2.0)),
    ((5.0, 180.0, -20.0), (0.0, 0.0, 0.0)),
    ((0.0, 123.0, 0.0), (2.0, 1.0, 0.3))])
def test_without_its_gust_a_wind_is_the_mean_wind(mean, gust):
    east, north, up = (a + b for a, b in zip(sitl_wind_enu(*mean), gust, strict=True))
    level = math.hypot(east, north)
    whole = Wind(math.hypot(level, up), from_direction(east, north),
                 math.degrees(math.atan2(up, level)), 0.7, 'sitl', gust)
    assert whole.gusty
    left = whole.without_gust()
    assert (left.speed, left.direction_z) == pytest.approx((mean[0], mean[2]), abs=1e-9)
    assert mean[0] == 0.0 or left.direction == pytest.approx(mean[1], abs=1e-9)
    assert (left.turbulence, left.profile, left.gusty) == (0.0, 'sitl', False)


# -- the state file

@pytest.mark.parametrize(('one', 'other', 'same'), [
    (('tcp:127.0.0.1:5762', 1), ('tcp:localhost:5763', 1), True),
    (('tcp:127.0.0.1:5762', 1), ('udp:127.0.0.1:14550', 1), True),
    (('tcp:127.0.0.1:5762', 1), ('tcp:127.0.0.1:5772', 1), False),
    (('tcp:127.0.0.1:5762', 1), ('tcp:127.0.0.1:5762', 2), False),
    (('tcp:127.0.0.1:40001', 1), ('tcp:127.0.0.1:40002', 1), False)])
def test_a_vehicle_has_one_key_whichever_way_it_is_reached(one, other, same):
    keys = [vehicle_key(parse_connection(text), system) for text, system in (one, other)]
    assert (keys[0] == keys[1]) is same


@given(st.dictionaries(st.sampled_from(sorted(USERS)), st.floats(allow_nan=False,
                                                                 allow_infinity=False,
                                                                 width=32), min_size=1))
def test_what_is_saved_is_loaded(tmp_path_factory, found):
    state = StateFile(tmp_path_factory.mktemp('state'), 'vehicle', 'tcp:127.0.0.1:5762')
    state.save(found)
    assert state.load().found == found
    state.remove()
    assert state.load().found == {}


@given(st.binary(max_size=200))
def test_any_file_is_read_or_moved_aside(tmp_path_factory, content):
    directory = tmp_path_factory.mktemp('state')
    state = StateFile(directory, 'vehicle', '')
    state.path.write_bytes(content)
    leftover = state.load()
    assert leftover.warning
    assert leftover.found == {}
    assert not state.path.exists()
    assert [path.read_bytes() for path in directory.iterdir()] == [content]


@pytest.mark.parametrize('found', [
    {}, {'SIM_WIND_SPD': None}, {'SIM_WIND_SPD': True}, {'SIM_WIND_SPD': 'NaN'},
    {'ARMING_CHECK': 0}, [], 5])
def test_a_file_with_other_things_in_it_is_not_trusted(tmp_path, found):
    state = StateFile(tmp_path, 'vehicle', '')
    state.path.write_text(json.dumps({'version': 1, 'found': found}))
    assert state.load().found == {}


def test_state_lives_where_xdg_says(monkeypatch, tmp_path):
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path))
    assert state_directory() == tmp_path / 'dryden_wind_ros'
    monkeypatch.setenv('XDG_STATE_HOME', 'relative')
    monkeypatch.setenv('HOME', str(tmp_path / 'home'))
    assert state_directory() == tmp_path / 'home/.local/state/dryden_wind_ros'
    assert state_directory('/somewhere') == Path('/somewhere')


def test_a_lock_is_held_by_one_and_released_by_its_end(tmp_path):
    first, second = (StateFile(tmp_path, 'vehicle', f'connection {n}') for n in (1, 2))
    assert first.acquire() == ''
    assert f'process {os.getpid()} on connection 1' in second.acquire()
    first.release()
    assert second.acquire() == ''
    second.release()
