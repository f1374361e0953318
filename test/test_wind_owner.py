"""Whose wind it is: vehicles that take each other's place, two bridges on one, and a bad end."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest
from pymavlink.dialects.v20 import ardupilotmega as mavlink
from support import free_port, wait_until
from support.relay import Relay, make_frame, message_id
from support.served import AS_THE_USER_LEFT_IT, FLYING, USERS, environment, files, served
from support.vehicle import Emulator, Probe, Process

from dryden_wind_ros.sitl.connection import parse_connection
from dryden_wind_ros.sitl.parameters import Phase, WindParameters
from dryden_wind_ros.sitl.patience import Patience
from dryden_wind_ros.sitl.sim_wind import Wind
from dryden_wind_ros.sitl.state_file import WIND_NAMES, StateFile, vehicle_key
from dryden_wind_ros.sitl.wind_watch import WindWatch

#: Somebody else's plane.
PLANES = {'SIM_WIND_SPD': 4.5, 'SIM_WIND_DIR': 310.0, 'SIM_WIND_DIR_Z': 0.0,
          'SIM_WIND_TURB': 0.0, 'SIM_WIND_TC': 5.0, 'SIM_WIND_T': 0.0}
THE_PLANE = ['--vehicle', 'plane', '--speedup', '10', *[
    option for name, value in PLANES.items() for option in ('--param', f'{name}={value}')]]
THE_COPTER = ['--speedup', '10', *AS_THE_USER_LEFT_IT]


def kill_a_bridge(connection: str, folder: Path, *words: str) -> None:
    """Let a bridge write wind to a vehicle, and kill it."""
    with Process(['-m', 'support.wind_writer', connection, str(folder), *words],
                 environment()) as bridge:
        bridge.wait_for('SENT')
        bridge.end(signal.SIGKILL)


def is_written(probe: Probe, **values: float) -> None:
    wait_until(lambda: probe.wind() == pytest.approx(
        {**probe.wind(), **{f'SIM_WIND_{name}': value for name, value in values.items()}}), 20,
        lambda: f'{values}; the vehicle has {probe.wind()}')


# -- vehicles that take each other's place

def test_another_vehicle_on_the_port_keeps_its_own_values_and_the_first_gets_its_back(tmp_path):
    """A copter's bridge is killed, a plane starts on the port, later the copter again."""
    state, eeprom = tmp_path / 'state', ('--eeprom', str(tmp_path / 'eeprom.json'))
    with Emulator(*THE_COPTER, *eeprom) as copter:
        kill_a_bridge(copter.connection, state)
    with Emulator(*THE_PLANE, port=copter.port) as plane, Probe(plane) as probe:
        with served(plane.connection, state) as one:
            one.session.set_wind(Wind(8, 90))
            one.wait_steady()
            assert dict(one.status.found) == pytest.approx(PLANES)
            assert not one.status.found_in_file
            one.wait_said('are those of another vehicle')
        assert one.session.parameters.restored
        assert probe.wind() == pytest.approx(PLANES)
    with Emulator(*THE_COPTER, *eeprom, port=copter.port) as again, Probe(again) as probe:
        assert probe.read('SIM_WIND_TC') == pytest.approx(0.1)
        with served(again.connection, state) as one:
            one.wait_phase(Phase.READY)
        assert probe.wind() == pytest.approx(USERS)
    assert files(state) == []


def test_another_vehicle_while_the_bridge_runs_keeps_its_own_values(tmp_path):
    with Emulator(*THE_COPTER) as copter, served(copter.connection, tmp_path) as one:
        one.session.set_wind(Wind(8, 90))
        one.wait_steady()
        copter.kill()
        one.wait_phase(Phase.NO_VEHICLE)
        with Emulator(*THE_PLANE, port=copter.port) as plane, Probe(plane) as probe:
            is_written(probe, SPD=8.0, DIR=90.0, TC=0.1, T=1.0)
            one.wait_steady()
            assert dict(one.status.found) == pytest.approx(PLANES)
            one.session.begin_restore()
            assert one.session.wait_restored()
            assert probe.wind() == pytest.approx(PLANES)
    [name] = files(tmp_path)
    assert json.loads((tmp_path / name).read_text())['found'] == pytest.approx(USERS)


def test_who_changes_the_wind_while_the_link_is_down_has_not_changed_the_vehicle(tmp_path):
    with Emulator(*THE_COPTER) as emulator, Probe(emulator) as probe, \
            Relay([emulator.port]) as relay, served(relay.connection, tmp_path) as one:
        one.session.set_wind(Wind(8, 90))
        one.wait_steady()
        relay.cut()
        one.wait_phase(Phase.NO_VEHICLE)
        probe.set('SIM_WIND_SPD', 1.25)
        relay.restore()
        is_written(probe, SPD=8.0)
        assert dict(one.status.found) == pytest.approx(USERS)


def test_a_wind_is_noted_on_disk_before_it_goes_out(tmp_path):
    """A bridge that is killed as it sends must know its own wind again."""
    vehicle, answers, noted = {**USERS, 'SIM_WIND_T_ALT': 60.0}, [], []

    def send(*messages):
        seen = StateFile(tmp_path, 'vehicle', '')
        seen.holder()
        for message in messages:
            name = str(message.param_id).rstrip('\0')
            if message.get_type() == 'PARAM_SET':
                if name in WIND_NAMES:
                    noted.append((name, seen.was_sent(name, message.param_value)))
                vehicle[name] = message.param_value
            answers.append(mavlink.MAVLink_param_value_message(
                name.encode(), vehicle.get(name, 0.0), mavlink.MAV_PARAM_TYPE_REAL32, 1, 0))
        return True

    parameters = WindParameters(send, lambda event: None)
    parameters.vehicle(1, 1, StateFile(tmp_path, 'vehicle', 'here'), 'here')
    for tick in range(1, 100):
        parameters.set_wind(Wind(tick / 8, tick, tick % 7, 0.0))
        parameters.poll(tick / 20, tick / 20, tick / 20)
        while answers:
            parameters.on_message(answers.pop(0), tick / 20)
    assert vehicle['SIM_WIND_SPD'] == 99 / 8
    assert len(noted) > 200
    assert all(known for _, known in noted)


# -- two bridges

@pytest.fixture(params=['tcp and udp', 'another folder'])
def two_links(request, tmp_path):
    """Yield an emulator with two links, and the folders of two bridges."""
    port = free_port()
    second = f'udpout:127.0.0.1:{port}'
    with Emulator(*THE_COPTER, '--connection', second) as emulator:
        same = request.param == 'tcp and udp'
        yield (emulator, f'udpin:127.0.0.1:{port}', tmp_path / 'one',
               tmp_path / ('one' if same else 'two'), same)


def test_a_second_bridge_by_another_link_is_refused_until_the_first_has_ended(two_links):
    """Seen by the winds of the first, or, where its files are not, by how the vehicle looks."""
    emulator, other_way, folder, other_folder, seen = two_links
    with Probe(emulator) as probe, served(emulator.connection, folder) as first:
        first.session.set_wind(Wind(8, 90, 2))
        first.wait_steady()
        with served(other_way, other_folder) as second:
            second.session.set_wind(Wind(3, 30))
            second.wait_said('another bridge (process' if seen else 'another bridge seems to drive')
            assert seen or "'found_in' as 'vehicle'" in second.text
            assert second.status.phase is Phase.BUSY
            assert second.status.sent == 0
            first.session.begin_restore()
            assert first.session.wait_restored()
            second.wait_said('taking over')
            second.wait_steady()
            assert dict(second.status.found) == pytest.approx(USERS)
        assert probe.wind() == pytest.approx(USERS)


@pytest.mark.parametrize('two_links', ['tcp and udp'], indirect=True)
def test_of_two_bridges_that_begin_in_one_moment_one_gives_way(two_links):
    emulator, other_way, folder, _, _ = two_links
    with Probe(emulator) as probe, served(emulator.connection, folder) as one, \
            served(other_way, folder) as other:
        both = one, other
        for each in both:
            each.wait_phase(Phase.READY)
        for each, wind in zip(both, (Wind(8, 90, 2), Wind(3, 30, 1)), strict=True):
            each.session.set_wind(wind)  # both read the user's values before either writes
        wait_until(lambda: sorted(each.status.phase.name for each in both) == ['BUSY', 'WRITING'],
                   20, lambda: f'one to stay; they are {[each.status for each in both]}')
        stays, gives_way = sorted(both, key=lambda each: each.status.phase is Phase.BUSY)
        gives_way.wait_said('another bridge (process')
        stays.wait_steady()
        assert dict(stays.status.found) == pytest.approx(USERS)
        stays.session.begin_restore()
        assert stays.session.wait_restored()
        gives_way.wait_steady()
        assert dict(gives_way.status.found) == pytest.approx(USERS)
        gives_way.session.begin_restore()
        assert gives_way.session.wait_restored()
        assert probe.wind() == pytest.approx(USERS)
    assert files(folder) == []


def test_what_a_killed_bridge_left_is_found_by_another_link_too(tmp_path):
    with Emulator(*THE_COPTER, *FLYING) as emulator:
        kill_a_bridge(emulator.connection, tmp_path)
        with served(f'tcp:127.0.0.1:{emulator.probe_port}', tmp_path) as one:
            one.wait_phase(Phase.READY)
        assert 'a bridge ended without putting its wind back' in one.text
        with Probe(emulator) as probe:
            assert probe.wind() == pytest.approx(USERS)
    assert files(tmp_path) == []


@pytest.mark.parametrize(('found_in', 'found'), [
    ('auto', {}), ('vehicle', {'SIM_WIND_SPD': 6.5, 'SIM_WIND_TC': 0.1}), ('file', USERS)])
def test_whoever_knows_better_says_what_counts_as_found(tmp_path, found_in, found):
    """A bridge was killed, and then somebody set another wind by hand."""
    with Emulator(*THE_COPTER) as emulator, Probe(emulator) as probe:
        kill_a_bridge(emulator.connection, tmp_path, 'steady')
        probe.set('SIM_WIND_SPD', 6.5)
        with served(emulator.connection, tmp_path, found_in=found_in) as one:
            one.session.set_wind(Wind(2, 10))
            if found:
                one.wait_steady()
                assert {**dict(one.status.found), **found} == pytest.approx(
                    dict(one.status.found), rel=1e-6)
            else:
                one.wait_said('no kept values of its own fit')
                assert 'takes those kept in' in one.text
                assert one.status.sent == 0
        if found:
            assert {**probe.wind(), **found} == pytest.approx(probe.wind(), rel=1e-6)


# -- vehicles that are not what they should be, and messages for others

def test_a_vehicle_that_is_no_simulator_is_not_put_back_and_costs_no_kept_values(tmp_path):
    with Emulator('--speedup', '5', '--no-sim-params') as emulator:
        state = StateFile(tmp_path, vehicle_key(parse_connection(emulator.connection), 1), '')
        state.save(USERS)
        with served(emulator.connection, tmp_path) as one:
            one.session.set_wind(Wind(6, 45))
            one.wait_phase(Phase.NOT_A_SIMULATOR)
        assert 'put back' not in one.text
        assert (one.status.sent, one.session.left) == (0, '')
        assert state.load().found == USERS


def test_an_end_while_parameters_are_read_writes_nothing_and_says_what_is_left(tmp_path):
    """The answers are lost on the way, so it is not known whose parameters they are."""
    with Emulator(*THE_COPTER) as emulator, Relay([emulator.port]) as relay:
        relay.filter = lambda frame: (
            b'' if message_id(frame) == mavlink.MAVLINK_MSG_ID_PARAM_VALUE else frame)
        state = StateFile(tmp_path, vehicle_key(parse_connection(relay.connection), 1), '')
        state.save(USERS)
        with served(relay.connection, tmp_path) as one:
            one.wait_phase(Phase.READING)
            one.session.begin_restore()
            # It gives up asking after a while, and then it is no simulator for all that is known.
            one.session.wait_restored()
        assert one.status.sent == 0
        assert 'put back and confirmed' not in one.text
        assert state.load().found == USERS


def refused(target: tuple[int, int], name: str, sequence: int) -> bytes:
    codec = mavlink.MAVLink(None, 1, 1)
    message = mavlink.MAVLink_param_error_message(
        *target, name.encode(), -1, mavlink.MAV_PARAM_ERROR_VALUE_OUT_OF_RANGE)
    frame = message.pack(codec)
    return make_frame(message.get_msgId(), frame[10:-2], sequence=sequence)


def test_refusals_for_another_ground_station_stop_nothing(tmp_path):
    told = []

    def instead(frame: bytes) -> bytes:
        if message_id(frame) != mavlink.MAVLINK_MSG_ID_ATTITUDE:
            return frame
        told.append(frame)
        name = ('SIM_WIND_SPD', 'SIM_WIND_DIR', 'SIM_WIND_TC')[len(told) % 3]
        return refused(((255, 190), (245, 190))[len(told) % 2], name, frame[4])

    with Emulator(*THE_COPTER) as emulator, Probe(emulator) as probe, \
            Relay([emulator.port]) as relay, served(relay.connection, tmp_path) as one:
        one.session.set_wind(Wind(8, 90))
        one.wait_steady()
        relay.filter = instead
        for speed in range(2, 12):
            one.session.set_wind(Wind(speed, 10.0 * speed))
            is_written(probe, SPD=speed)
        assert len(told) > 10
        one.session.begin_restore()
        assert one.session.wait_restored()
        assert 'refused' not in one.text
        assert probe.wind() == pytest.approx(USERS)
    assert files(tmp_path) == []


def test_values_that_the_vehicle_refuses_to_take_back_stay_kept_and_are_named(tmp_path):
    """From the end on every write of the speed is answered with a refusal, for us."""
    def instead(frame: bytes) -> bytes:
        if message_id(frame) == mavlink.MAVLINK_MSG_ID_PARAM_VALUE and b'SIM_WIND_SPD' in frame:
            return refused((245, 191), 'SIM_WIND_SPD', frame[4])
        return frame

    with Emulator(*THE_COPTER) as emulator, Relay([emulator.port]) as relay, \
            served(relay.connection, tmp_path) as one:
        one.session.set_wind(Wind(8, 90))
        one.wait_steady()
        relay.filter = instead
        one.session.begin_restore()
        assert not one.session.wait_restored()
    assert one.session.left == 'SIM_WIND_SPD 3.25 (which the vehicle refused)'
    [name] = files(tmp_path)
    assert json.loads((tmp_path / name).read_text())['found'] == pytest.approx(USERS)


# -- the wind node is gone

def test_without_winds_the_gust_is_taken_away_and_the_mean_wind_stays(tmp_path):
    with Emulator(*THE_COPTER) as emulator, Probe(emulator) as probe, \
            served(emulator.connection, tmp_path, gust_timeout=0.5) as one:
        # 8 m/s from the west and a gust of 2 m/s along it, 1 up.
        one.session.set_wind(Wind(10.05, 270.0, 5.71, gust=(2.0, 0.0, 1.0)))
        one.wait_said('The gust is taken away; the mean wind of 8.0 m/s from 270 deg stays')
        assert any('no sim_wind for' in problem for problem in one.status.problems)
        wait_until(lambda: probe.read('SIM_WIND_SPD') == pytest.approx(8.0, abs=0.01), 20,
                   'the mean wind in the vehicle')
        wind = probe.wind()
        assert wind['SIM_WIND_DIR'] == pytest.approx(270.0, abs=0.01)
        assert wind['SIM_WIND_DIR_Z'] == pytest.approx(0.0, abs=0.02)
        one.session.set_wind(Wind(7.0, 260.0))
        one.wait_said('winds come again')
        is_written(probe, SPD=7.0)
        assert one.status.problems == ()


def watched(timeout: float, pace: float, winds_every: float, seconds: float = 60.0) -> WindWatch:
    """Return a watch after `seconds` of winds and then silence, at `pace` vehicle seconds a second.
    """
    watch = WindWatch(timeout)
    next_wind = 0.0
    for step in range(int(seconds / 0.05)):
        now = 100.0 + step * 0.05
        if now - 100.0 >= next_wind:
            watch.wind()
            next_wind += winds_every
        watch.overdue(now, (now - 100.0) * pace, True)
    return watch


@pytest.mark.parametrize(('pace', 'winds_every', 'gusty', 'overdue_after'), [
    (1.0, 0.05, True, 5.0), (20.0, 0.05, True, 5.0),
    # At a tenth of real time the next wind may take 10 s; the last one came 10 s ago here.
    (0.1, 10.0, True, 15.0),
    # A steady wind that was repeated, and one that a user set by hand now and then.
    (1.0, 1.0, False, 5.0), (1.0, 20.0, False, None)])
def test_missing_winds_are_noticed_by_the_steady_clock(pace, winds_every, gusty, overdue_after):
    watch = watched(5.0, pace, winds_every)
    begun = 160.0
    noticed = None
    for step in range(2000):
        now = begun + step * 0.05
        if watch.overdue(now, (now - 100.0) * pace, gusty):
            noticed = now - begun
            break
    assert (noticed is None) is (overdue_after is None)
    assert noticed is None or noticed == pytest.approx(overdue_after, abs=2.5)


def test_a_paused_vehicle_misses_no_wind():
    watch = watched(5.0, 1.0, 0.05)
    assert not any(watch.overdue(160.0 + step, 60.0, True) for step in range(100))


# -- the end

def test_a_vehicle_that_stops_for_a_while_is_waited_for_and_nothing_else_is_worked_on(tmp_path):
    ticks: list[int] = []
    with Emulator(*THE_COPTER) as emulator, Probe(emulator) as probe, \
            served(emulator.connection, tmp_path, on_tick=ticks.append) as one:
        one.session.set_wind(Wind(8, 90))
        one.wait_steady()
        emulator.signal(signal.SIGSTOP)
        one.session.begin_restore()
        time.sleep(2.5)
        assert not one.session.finished
        count = len(ticks)
        emulator.signal(signal.SIGCONT)
        assert one.session.wait_restored()
        assert probe.wind() == pytest.approx(USERS)
        assert len(ticks) <= count + 1
    assert files(tmp_path) == []


def test_who_has_no_turn_has_not_waited():
    patience = Patience(silent=2.0, stuck=5.0)
    # A busy machine gives one turn in 3 s: 19 of them are not 2 s of waiting.
    assert not any(patience.over(3.0 * turn, 0, 0) for turn in range(19))
    assert any(patience.over(60.0 + 0.05 * turn, 0, 0) for turn in range(60))


def test_waiting_ends_with_silence_or_without_progress():
    def ends(progress, heard):
        patience = Patience(silent=2.0, stuck=5.0)
        return next((0.05 * turn for turn in range(400)
                     if patience.over(0.05 * turn, progress(turn), heard(turn))), None)

    assert ends(lambda turn: 0, lambda turn: 0) == pytest.approx(2.0, abs=0.1)
    assert ends(lambda turn: 0, lambda turn: turn) == pytest.approx(5.0, abs=0.1)
    assert ends(lambda turn: turn, lambda turn: turn) is None


# -- files and folders that cannot be used

@pytest.mark.parametrize('number', ['1e39', '1' + 400 * '0', '-1e400', 'NaN'])
def test_absurd_numbers_in_a_kept_file_are_not_trusted(tmp_path, number):
    state = StateFile(tmp_path, 'vehicle', '')
    state.path.write_text(f'{{"version": 1, "found": {{"SIM_WIND_SPD": {number}}}}}')
    leftover = state.load()
    assert leftover.found == {}
    assert 'moved aside' in leftover.warning
    assert len(leftover.warning) < 400


def test_a_lock_that_cannot_be_used_is_told_when_a_wind_is_left_behind(tmp_path):
    with Emulator(*THE_COPTER) as emulator:
        kill_a_bridge(emulator.connection, tmp_path, 'steady')
        key = vehicle_key(parse_connection(emulator.connection), 1)
        (tmp_path / f'{key}.lock').unlink()
        (tmp_path / f'{key}.lock').mkdir()
        with served(emulator.connection, tmp_path) as one:
            one.wait_phase(Phase.READY)
        assert not one.session.parameters.restored
        assert 'the folder of kept values cannot be used' in one.session.left
        assert 'SIM_WIND_SPD 9.5' in one.session.left
        assert StateFile(tmp_path, key, '').load().found == pytest.approx(USERS)
