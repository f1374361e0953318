"""One vehicle through everything that goes wrong: real processes, real sockets, a test a fault.

Each test flies in gusts, does harm, and checks at the end (`Stage.flight`) that gusts flow again,
that SIM_WIND_* are as the user left them by the vehicle's own word, and that no program raised an
exception.
"""

from __future__ import annotations

import contextlib
import random
import resource
import signal
import socket
import subprocess
import sys
import time

import pytest
from pymavlink.dialects.v20 import ardupilotmega as mavlink
from support import free_port, wait_until
from support.bags import fly, write_bag
from support.relay import Relay, make_frame, message_id
from support.stage import USERS, WITH_FILE_SIZE_LIMIT, HostedVehicle, Stage, environment
from support.vehicle import Emulator, Probe

from dryden_wind_ros.gusts.air_settings import AirSettings

pytestmark = pytest.mark.ros2


@pytest.fixture(scope='module')
def shared(tmp_path_factory):
    stage = Stage(tmp_path_factory.mktemp('stage'))
    yield stage
    stage.close()


@pytest.fixture
def stage(shared):
    yield shared
    shared.tidy()


def test_sitl_restarted_20_times(stage):
    with stage.flight() as bridge:
        for round_ in range(20):
            # Not sooner, or the new clock may have passed the old one when it is heard first.
            stage.until(lambda: stage.states[-1].t > 5, 'the vehicle to run for 5 s')
            found = bridge.text.count('vehicle 1 found')
            if round_ % 5 == 4:
                stage.vehicle.kill()
                stage.vehicle.start()
            else:
                stage.vehicle.do('reboot')
            stage.until(lambda: bridge.text.count('vehicle 1 found') > found,  # noqa: B023
                        f'the vehicle to be found after restart {round_ + 1}')
            stage.ticks_on(10)
            assert bridge.text.count('connection lost') == round_ + 1
        assert bridge.text.count('was restarted (its time went back') >= 10


def test_link_cut_and_restored_20_times(stage):
    with Relay([stage.vehicle.ports[1]]) as relay, stage.flight(relay.connection) as bridge:
        restarts = stage.restarts
        for round_ in range(20):
            before = stage.history()
            if round_ % 4 == 3:
                relay.hold(True)
                time.sleep(0.3)
                relay.hold(False)
            else:
                relay.cut()
                stage.until(lambda: bridge.text.count('connection lost') == relay.connections,
                            f'cut {round_ + 1} to be noticed')
                joined = relay.connections
                relay.restore()
                stage.until(lambda: relay.connections > joined,  # noqa: B023
                            f'the bridge to come back after cut {round_ + 1}')
            stage.ticks_on(10)
            stage.kept(before)
        assert relay.connections == 16
        assert stage.restarts == restarts


def test_bridge_killed_and_restarted_3_times(stage):
    with contextlib.ExitStack() as flight:
        flight.enter_context(stage.flight())
        restarts = stage.restarts
        for _ in range(3):
            before = stage.history()
            stage.bridge.end(signal.SIGKILL)
            # What was found is on disk, so that the next one can put it back.
            assert len(list(stage.state_dir.glob('*.json'))) == 1
            stage.start_bridge()
            stage.ticks_on()
            stage.kept(before)
        wait_until(lambda: 'a bridge ended without putting its wind back' in stage.bridge.text, 20,
                   'the bridge to say whose values it puts back')
        assert stage.restarts == restarts


def test_wind_node_killed_and_restarted_3_times(stage):
    with stage.flight() as bridge:
        for _ in range(3):
            known = {state.tick: (state.u, state.draws) for state in list(stage.states)}
            stage.wind.end(signal.SIGKILL)
            stage.start_wind()
            stage.ticks_on()
            # Time went on, and so did the seed's draws: tick k has used up k of them.
            assert stage.states[-1].tick > max(known)
            assert stage.states[-1].draws == stage.states[-1].tick
        assert len(list(stage.state_dir.glob('*.json'))) == 1
        assert 'another' not in bridge.text


def test_clock_stopped_3_times(stage):
    with stage.flight() as bridge:
        restarts = stage.restarts
        for round_, stop, go in ((1, 'freeze', 'thaw'), (2, signal.SIGSTOP, signal.SIGCONT),
                                 (3, 'freeze', 'thaw')):
            before = stage.history()
            for fault in (stop, go):
                if isinstance(fault, str):
                    stage.vehicle.do(fault)
                else:
                    stage.vehicle.process.process.send_signal(fault)
                if fault is stop and round_ == 1:
                    bridge.wait_for('nothing from vehicle 1 for 3 s: paused')
                    stage.wind.wait_for('stands still for')
                time.sleep(0.2)
            stage.ticks_on()
            stage.kept(before)
        assert stage.restarts == restarts
        assert bridge.text.count('connection lost') == 0


def test_clock_jumped_back_and_forward_10_times(stage):
    with stage.flight() as bridge:
        for seconds in (100, -50, 3600, -2, 0.2, -0.2, 5, -3500, 86400, -86400):
            before, restarts = stage.history(), stage.restarts
            tick = stage.states[-1].tick
            stage.vehicle.do(f'shift {seconds}')
            if seconds < -1:
                stage.until(lambda: stage.restarts == restarts + 1,  # noqa: B023
                            f'the air to begin anew at a clock {-seconds} s back')
            else:
                stage.until(lambda: stage.states[-1].tick > tick + 20 * seconds + 5,  # noqa: B023
                            f'the clock {seconds} s on')
                assert stage.restarts == restarts
            stage.ticks_on()
            if seconds > -1:
                stage.kept(before)
        assert 'two vehicles' not in bridge.text


LISTENED = [mavlink.mavlink_map[ident] for ident in (
    mavlink.MAVLINK_MSG_ID_SYSTEM_TIME, mavlink.MAVLINK_MSG_ID_HEARTBEAT,
    mavlink.MAVLINK_MSG_ID_ATTITUDE, mavlink.MAVLINK_MSG_ID_LOCAL_POSITION_NED,
    mavlink.MAVLINK_MSG_ID_GLOBAL_POSITION_INT, mavlink.MAVLINK_MSG_ID_PARAM_VALUE,
    mavlink.MAVLINK_MSG_ID_COMMAND_ACK, mavlink.MAVLINK_MSG_ID_EKF_STATUS_REPORT,
    mavlink.MAVLINK_MSG_ID_VFR_HUD, mavlink.MAVLINK_MSG_ID_WIND,
    mavlink.MAVLINK_MSG_ID_EXTENDED_SYS_STATE, mavlink.MAVLINK_MSG_ID_GPS_RAW_INT,
    mavlink.MAVLINK_MSG_ID_SYS_STATUS, mavlink.MAVLINK_MSG_ID_STATUSTEXT)]


def hostile(rng, real):
    """Return a frame that no vehicle sent: noise, a true frame spoilt, or a right one of nonsense.
    """
    kind = rng.random()
    if kind < 0.25:
        return rng.choice((b'\xfd', b'\xfe', b'')) + rng.randbytes(rng.randrange(1, 280))
    if kind < 0.75:
        frame = bytearray(rng.choice(real))
        harm = rng.randrange(4)
        if harm == 0:
            frame[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)
        elif harm == 1:
            del frame[rng.randrange(1, len(frame)):]
        elif harm == 2:
            frame[1] = rng.randrange(256)
        else:
            at = rng.randrange(1, len(frame))
            frame[at:at] = rng.randbytes(rng.randrange(1, 20))
        return bytes(frame)
    message = rng.choice(LISTENED if rng.random() < 0.5 else list(mavlink.mavlink_map.values()))
    size = min(message.unpacker.size, 255)
    return make_frame(message.id, rng.randbytes(rng.randrange(1, size + 1)),
                      rng.choice((1, 1, 2, 255, rng.randrange(256))),
                      rng.choice((1, 1, rng.randrange(256))), rng.randrange(256))


def test_10000_random_and_mutated_frames_on_the_link(stage):
    rng = random.Random(20)
    real = []
    with Relay([stage.vehicle.ports[1]]) as relay, stage.flight(relay.connection) as bridge:
        relay.filter = lambda frame: real.append(frame) or frame
        wait_until(lambda: len(real) > 500, 20, '500 frames of the vehicle')
        relay.filter = lambda frame: frame
        before, restarts = stage.history(), stage.restarts
        frames = [hostile(rng, real) for _ in range(10_000)]
        for begin in range(0, len(frames), 5):
            relay.inject(b''.join(frames[begin:begin + 5]))
        wait_until(lambda: not relay.injecting, 60, 'all of it to be sent')
        stage.ticks_on()
        stage.kept(before)
        assert stage.restarts == restarts, bridge.text
        assert relay.connections == 1
        assert bridge.process.poll() is None


def test_30_percent_of_parameter_echoes_lost(stage):
    rng = random.Random(5)
    lost = []

    def lossy(frame):
        if message_id(frame) == mavlink.MAVLINK_MSG_ID_PARAM_VALUE and rng.random() < 0.3:
            lost.append(frame)
            return b''
        return frame

    with Relay([stage.vehicle.ports[1]]) as relay:
        relay.filter = lossy
        with stage.flight(relay.connection) as bridge:
            stage.until(lambda: len(lost) > 100, '100 lost echoes')
        assert 'stays at' not in bridge.text
        assert 'refused' not in bridge.text


def test_2_bridges_on_one_vehicle_and_the_second_is_told(stage):
    with stage.flight() as first:
        second = stage.node('mavlink_bridge', {
            'connection': f'tcp:127.0.0.1:{stage.vehicle.ports[2]}',
            'state_dir': stage.state_dir})
        second.wait_for(f'another bridge (process {first.process.pid} on')
        stage.flows()
        assert second.end() == 0
        # Its message rates are given back, but no parameter.
        assert 'put back and confirmed' not in second.text
        # On the very port of the first one nothing is heard, and it is told why.
        third = stage.node('mavlink_bridge', {
            'connection': stage.vehicle.connection, 'state_dir': stage.state_dir})
        third.wait_for('SITL serves one client per port')
        assert third.end() == 0
        with Probe(stage.vehicle) as probe:
            assert probe.read('SIM_WIND_T') == 1.0  # still the first one's


def test_disk_full_and_with_room_again(stage):
    """No file can be written: the bridge warns before its first write, and flies."""
    with stage.flight(full_disk=True) as bridge:
        warned = [line for line in bridge.output if 'cannot be written (File too large)' in line]
        assert len(warned) == 1
        assert 'a bridge that is killed now leaves its wind in SITL' in warned[0]
        assert list(stage.state_dir.glob('*.json*')) == []
        resource.prlimit(bridge.process.pid, resource.RLIMIT_FSIZE,
                         (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        wait_until(lambda: list(stage.state_dir.glob('*.json')), 20,
                   'the values found to be kept once there is room')


def full_disk(room, module, *arguments):
    """Run a program on a disk with room for files of so many bytes; return it, ended."""
    return subprocess.run(
        [sys.executable, '-c', WITH_FILE_SIZE_LIMIT, str(room), module, *map(str, arguments)],
        env={**environment(), 'COLUMNS': '200'}, capture_output=True, text=True, timeout=100,
        check=False)


def test_disk_full_at_the_end_of_a_demo(tmp_path):
    # Room for logs and for what was found, not for the record of 400 ticks (280 kB) nor for the
    # picture (100 kB).
    demo = full_disk(40_000, 'dryden_wind_ros.tools.demo', '--seconds', 20, '--speedup', 20,
                     '--output', tmp_path / 'pictures')
    assert demo.returncode == 1
    assert 'Nothing more is recorded' in demo.stdout
    assert 'cannot write the picture' in demo.stdout
    assert 'File too large' in demo.stdout
    assert 'Traceback' not in demo.stdout + demo.stderr
    # What was recorded is kept; of the picture nothing is left.
    assert not [path for path in (tmp_path / 'pictures').iterdir() if path.is_file()]


def test_disk_full_at_the_end_of_a_report_keeps_the_old_one(tmp_path):
    pytest.importorskip('plotly')
    bag = write_bag(tmp_path / 'bag', fly(AirSettings(mean_speed=8.0), 10.0))
    page = tmp_path / 'page.html'
    page.write_text('the old one')
    report = full_disk(100_000, 'dryden_wind_ros.tools.wind_report', bag, '-o', page)
    assert report.returncode == 1
    # Progress may come before it on a slow machine.
    assert report.stderr.strip().splitlines()[-1] == f'wind_report: {page}: File too large'
    assert page.read_text() == 'the old one'
    assert sorted(path.name for path in tmp_path.iterdir()) == ['bag', 'page.html']


@pytest.mark.ros2launch
def test_disk_full_while_ros2_bag_records(stage, tmp_path):
    with stage.flight():
        before = stage.history()
        topics = [f'{stage.NAME}/{name}' for name in ('wind/state', 'sim_wind', 'odom', 'clock')]
        recorder = subprocess.Popen(
            ['sh', '-c', 'ulimit -f 400; exec "$@"', 'sh', 'ros2', 'bag', 'record', '--storage',
             'mcap', '--output', str(tmp_path / 'bag'), '--disable-keyboard-controls',
             '--topics', *topics],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            stage.until(lambda: recorder.poll() is not None or any(
                path.stat().st_size >= 200_000 for path in tmp_path.glob('bag/*.mcap')),
                'the recorder to meet the end of its room')
            stage.ticks_on(100)
            stage.kept(before)
        finally:
            recorder.kill()
            recorder.wait()


# -- two vehicles, one system id

def test_2_vehicles_with_one_system_id_on_a_stream_are_refused(stage, tmp_path):
    """Both started together, behind one router: nobody could say whose wind is set."""
    other = HostedVehicle(tmp_path / 'eeprom.json')
    try:
        with Relay([stage.vehicle.ports[1], other.ports[1]]) as relay:
            bridge = stage.start_bridge(relay.connection)
            bridge.wait_for('two vehicles seem to answer with system id 1')
            stage.ticks_on()
            for vehicle in (stage.vehicle, other):
                with Probe(vehicle) as probe:
                    assert probe.wind() == pytest.approx(USERS)
            assert bridge.end() == 0
            stage.no_exceptions()
    finally:
        other.close()


def test_2_vehicles_with_one_system_id_on_a_udp_port_are_told_apart(stage, tmp_path):
    port = free_port(socket.SOCK_DGRAM)
    vehicles = [
        Emulator('--connection', f'udpout:127.0.0.1:{port}', '--speedup', '10',
                 *(option for name, value in USERS.items()
                   for option in ('--param', f'{name}={value}'))) for _ in range(2)]
    with vehicles[0] as one, vehicles[1] as other, Probe(one) as first, Probe(other) as second:
        bridge = stage.start_bridge(f'udp:127.0.0.1:{port}')
        bridge.wait_for('sends here too; only')
        stage.ticks_on()
        flown = []

        def flies():
            flown[:] = [probe.read('SIM_WIND_T') == 1.0 for probe in (first, second)]
            return any(flown)

        stage.until(flies, 'wind in one of the vehicles')
        stage.ticks_on(100)
        assert flies()
        assert not all(flown)
        still = second if flown[0] else first
        assert still.wind() == pytest.approx(USERS)
        assert bridge.end() == 0
        assert 'put back and confirmed' in bridge.text, bridge.text
        for probe in (first, second):
            assert probe.wind() == pytest.approx(USERS)
        stage.no_exceptions()
