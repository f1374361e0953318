"""The embedded vehicle on real sockets: ports, clients, restarts, speed, the command line."""

from __future__ import annotations

import itertools
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pymavlink import mavutil
from pymavlink.dialects.v20 import ardupilotmega as mavlink
from support import free_port, wait_until

from dryden_wind_ros.emulator.main import (
    EmbeddedVehicle,
    PortError,
    VehicleConfig,
    VehicleLoop,
    main,
)


@contextmanager
def running(**options: Any) -> Iterator[EmbeddedVehicle]:
    """Run a vehicle in a thread on free ports (two unless told otherwise)."""
    if 'connections' not in options:
        options['connections'] = tuple(f'tcp:127.0.0.1:{free_port()}' for _ in range(2))
    vehicle = EmbeddedVehicle(VehicleConfig(**options))
    errors: list[BaseException] = []

    def run() -> None:
        try:
            vehicle.run()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert vehicle.started.wait(5), 'the vehicle did not start'
        yield vehicle
    finally:
        vehicle.stop()
        thread.join(5)
        assert not thread.is_alive(), 'the vehicle did not stop'
    assert not errors


@contextmanager
def client(endpoint: str, **options: Any) -> Iterator[Any]:
    link = mavutil.mavlink_connection(endpoint, source_system=200, retries=20, **options)
    try:
        yield link
    finally:
        link.close()


def port_of(vehicle: EmbeddedVehicle, number: int = 0) -> int:
    return int(vehicle.config.endpoints[number].rpartition(':')[2])


def receive(link: Any, kind: str, timeout: float = 5.0) -> Any:
    message = link.recv_match(type=kind, blocking=True, timeout=timeout)
    assert message is not None, f'no {kind} within {timeout:g} s'
    return message


def command(link: Any, number: int, *values: float) -> int:
    link.mav.command_long_send(1, 1, number, 0, *values, *[0.0] * (7 - len(values)))
    deadline = time.monotonic() + 5.0
    while time.monotonic() < deadline:
        answer = receive(link, 'COMMAND_ACK')
        if answer.command == number:
            return int(answer.result)
    raise AssertionError(f'command {number} was not acknowledged')


def ask(link: Any, message_id: int, seconds: float) -> int:
    return command(link, mavlink.MAV_CMD_SET_MESSAGE_INTERVAL, message_id, seconds * 1e6)


# ---------------------------------------------------------------------- ports


def test_a_pymavlink_script_can_fly_it() -> None:
    with running(speedup=20.0) as vehicle, client(vehicle.config.endpoints[0]) as link:
        link.wait_heartbeat(timeout=5)
        wait_until(lambda: vehicle.autopilot.ekf.using_gps, 5, 'GPS')
        link.set_mode('GUIDED')
        link.arducopter_arm()
        wait_until(lambda: (link.recv_match() or True) and link.motors_armed(), 5, 'arming')
        assert command(link, mavlink.MAV_CMD_NAV_TAKEOFF, 0, 0, 0, 0, 0, 0, 5) == 0
        wait_until(lambda: vehicle.autopilot.flight.up == 5.0, 5, 'height of 5 m')


def test_every_port_has_its_own_rates_and_sequence_numbers() -> None:
    with running(speedup=10.0) as vehicle, client(
            vehicle.config.endpoints[0]) as first, client(vehicle.config.endpoints[1]) as second:
        assert ask(first, mavlink.MAVLINK_MSG_ID_SYSTEM_TIME, 0.05) == 0
        assert ask(second, mavlink.MAVLINK_MSG_ID_SYSTEM_TIME, 0.5) == 0
        spacings = []
        for link in (first, second):
            times = [receive(link, 'SYSTEM_TIME').time_boot_ms for _ in range(6)][2:]
            spacings.append([b - a for a, b in itertools.pairwise(times)])
        assert spacings == [[50, 50, 50], [500, 500, 500]]
        assert (first.mav_loss, second.mav_loss) == (0, 0)


def test_second_client_connects_but_gets_no_byte_until_the_first_leaves() -> None:
    with running(speedup=10.0) as vehicle:
        first = socket.create_connection(('127.0.0.1', port_of(vehicle)), 5)
        assert first.recv(1000)
        second = socket.create_connection(('127.0.0.1', port_of(vehicle)), 5)
        second.settimeout(0.5)
        with pytest.raises(TimeoutError):
            second.recv(1)
        first.close()
        second.settimeout(5)
        assert second.recv(1000)[:1] == b'\xfd'
        second.close()


def test_intervals_survive_a_reconnect() -> None:
    with running(speedup=10.0) as vehicle:
        with client(vehicle.config.endpoints[0]) as link:
            assert ask(link, mavlink.MAVLINK_MSG_ID_SYSTEM_TIME, 0.05) == 0
        with client(vehicle.config.endpoints[0]) as link:
            times = [receive(link, 'SYSTEM_TIME').time_boot_ms for _ in range(5)]
        assert [b - a for a, b in itertools.pairwise(times)] == [50] * 4


def test_waiting_for_a_client_keeps_the_other_ports_closed() -> None:
    with running(wait_for_client=True) as vehicle:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(('127.0.0.1', port_of(vehicle, 1)), 5)
        first = socket.create_connection(('127.0.0.1', port_of(vehicle)), 5)
        assert first.recv(1000)

        def second() -> socket.socket | None:
            try:
                return socket.create_connection(('127.0.0.1', port_of(vehicle, 1)), 5)
            except ConnectionRefusedError:
                return None

        other = wait_until(second, 5, 'second port')
        # and it stays when the first client goes
        first.close()
        assert isinstance(other, socket.socket)
        other.settimeout(5)
        assert other.recv(1000)
        other.close()


@pytest.mark.parametrize('scheme', ['udpout', 'udpin'])
def test_udp(scheme: str) -> None:
    port = free_port(socket.SOCK_DGRAM)
    theirs = {'udpout': 'udpin', 'udpin': 'udpout'}[scheme]
    with client(f'{theirs}:127.0.0.1:{port}') as link, running(
            connections=(f'{scheme}:127.0.0.1:{port}',), speedup=10.0):
        link.mav.heartbeat_send(6, 8, 0, 0, 4)
        receive(link, 'HEARTBEAT')
        link.mav.param_set_send(1, 1, b'SIM_WIND_SPD', 3.5, 9)
        assert receive(link, 'PARAM_VALUE').param_value == 3.5


def test_port_in_use_is_said_clearly() -> None:
    with running() as vehicle:
        with pytest.raises(PortError, match=f'port {port_of(vehicle)} is in use'):
            EmbeddedVehicle(VehicleConfig(connections=vehicle.config.connections)).run()
        # and the first one is none the worse
        with client(vehicle.config.endpoints[0]) as link:
            receive(link, 'HEARTBEAT')


@pytest.mark.parametrize('bad', ['tcp:127.0.0.1', 'serial:/dev/ttyUSB0', 'tcp:127.0.0.1:x', '',
                                 'tcp:127.0.0.1:70000'])
def test_bad_connection_is_refused_by_name(bad: str) -> None:
    with pytest.raises(ValueError, match='connection'):
        EmbeddedVehicle(VehicleConfig(connections=(bad,)))


def test_instances_have_sitl_ports() -> None:
    assert VehicleConfig(instance=0).endpoints == (
        'tcp:127.0.0.1:5760', 'tcp:127.0.0.1:5762', 'tcp:127.0.0.1:5763')
    assert VehicleConfig(instance=3).endpoints[1] == 'tcp:127.0.0.1:5792'


# ---------------------------------------------------------------------- restart


def test_reboot_on_command() -> None:
    with running(speedup=5.0) as vehicle:
        with client(vehicle.config.endpoints[0]) as link:
            assert ask(link, mavlink.MAVLINK_MSG_ID_SYSTEM_TIME, 0.05) == 0
            link.mav.param_set_send(1, 1, b'SIM_WIND_SPD', 3.5, 9)
            assert receive(link, 'PARAM_VALUE').param_value == 3.5
            wait_until(lambda: receive(link, 'SYSTEM_TIME').time_boot_ms > 3000, 5, '3 s of time')
            assert command(link, mavlink.MAV_CMD_PREFLIGHT_REBOOT_SHUTDOWN, 1) == 0
        wait_until(lambda: vehicle.boots == 2, 5, 'second boot')
        with client(vehicle.config.endpoints[0]) as link:
            times = [receive(link, 'SYSTEM_TIME').time_boot_ms for _ in range(3)]
            # time has gone back, the interval is gone, what was saved is not
            assert times[0] < 3000
            assert [b - a for a, b in itertools.pairwise(times)] == [1000, 1000]
            assert vehicle.autopilot.parameters.values['SIM_WIND_SPD'] == 3.5


def test_reboot_closes_the_connection_and_listens_again_on_the_same_port() -> None:
    with running() as vehicle:
        peer = socket.create_connection(('127.0.0.1', port_of(vehicle)), 5)
        peer.settimeout(5)
        vehicle.reboot()
        deadline = time.monotonic() + 5.0
        while peer.recv(65536):
            assert time.monotonic() < deadline, 'no EOF'
        peer.close()

        def again() -> bool:
            try:
                socket.create_connection(('127.0.0.1', port_of(vehicle)), 5).close()
            except ConnectionRefusedError:
                return False
            return True

        wait_until(again, 5, 'the port to be open again')


def test_twenty_reboots_in_a_row() -> None:
    with running(speedup=20.0) as vehicle:
        for number in range(20):
            wait_until(lambda n=number: vehicle.boots == n + 1, 5, f'boot {number + 1}')
            vehicle.reboot()
        wait_until(lambda: vehicle.boots == 21, 5, 'last boot')
        with client(vehicle.config.endpoints[0]) as link:
            receive(link, 'HEARTBEAT')


def test_armed_vehicle_refuses_to_reboot() -> None:
    with running(speedup=20.0, flight='hover') as vehicle, client(
            vehicle.config.endpoints[0]) as link:
        wait_until(lambda: vehicle.autopilot.flight.armed, 5, 'arming')
        assert command(link, mavlink.MAV_CMD_PREFLIGHT_REBOOT_SHUTDOWN, 1) == 4
        assert vehicle.boots == 1


# ---------------------------------------------------------------------- time


@pytest.mark.parametrize('speedup', [1.0, 10.0])
def test_sim_time_keeps_pace_with_the_wall(speedup: float) -> None:
    with running(speedup=speedup) as vehicle:
        wall, sim = time.monotonic(), vehicle.autopilot.time_s
        time.sleep(1.0)
        rate = (vehicle.autopilot.time_s - sim) / (time.monotonic() - wall)
    # never faster than asked for; slower only where the machine is busy
    assert 0.3 * speedup < rate < 1.1 * speedup


def test_speed_can_be_changed_by_sim_speedup() -> None:
    with running(speedup=0.1) as vehicle, client(vehicle.config.endpoints[0]) as link:
        link.mav.param_set_send(1, 1, b'SIM_SPEEDUP', 50.0, 9)
        wait_until(lambda: vehicle.autopilot.time_s > 10.0, 5, '10 s of sim time')


def test_as_fast_as_possible() -> None:
    with running(speedup=0.0) as vehicle:
        wait_until(lambda: vehicle.autopilot.time_s > 100.0, 10, '100 s of sim time')


def test_time_can_stand_still_and_jump() -> None:
    with running(speedup=10.0) as vehicle, client(vehicle.config.endpoints[0]) as link:
        assert ask(link, mavlink.MAVLINK_MSG_ID_SYSTEM_TIME, 0.05) == 0
        vehicle.shift_clock(100.0)
        wait_until(lambda: receive(link, 'SYSTEM_TIME').time_boot_ms > 100_000, 5, 'jump')
        vehicle.shift_clock(-100.0)
        wait_until(lambda: receive(link, 'SYSTEM_TIME').time_boot_ms < 100_000, 5, 'jump back')
        vehicle.freeze(True)
        wait_until(lambda: vehicle._frozen, 5, 'freezing')
        sim = vehicle.autopilot.t_us
        time.sleep(0.2)
        assert vehicle.autopilot.t_us == sim
        vehicle.freeze(False)
        wait_until(lambda: vehicle.autopilot.t_us > sim, 5, 'time to go on')


def test_a_stalled_process_is_not_followed_by_a_burst() -> None:
    with running(speedup=1.0) as vehicle:
        vehicle.post(lambda: time.sleep(1.0))
        time.sleep(1.2)
        # 1 s was lost: it is not caught up
        assert vehicle.autopilot.time_s < 0.7


# ---------------------------------------------------------------------- bad clients


def test_garbage_half_messages_and_vanishing_clients() -> None:
    packet = mavlink.MAVLink_param_set_message(1, 1, b'SIM_WIND_SPD', 9.0, 9).pack(
        mavlink.MAVLink(None, 200, 1))
    with running(speedup=10.0) as vehicle:
        for number in range(30):
            peer = socket.create_connection(('127.0.0.1', port_of(vehicle)), 5)
            peer.sendall(bytes(range(256)) * 20 + packet[:number])
            if number % 2:
                # RST instead of FIN
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\x01\0\0\0\0\0\0\0')
            peer.close()
        with client(vehicle.config.endpoints[0]) as link:
            receive(link, 'HEARTBEAT')
            link.mav.param_set_send(1, 1, b'SIM_WIND_SPD', 9.0, 9)
            assert receive(link, 'PARAM_VALUE').param_value == 9.0


def test_a_client_that_never_reads_does_not_stop_the_vehicle() -> None:
    with running(speedup=0.0) as vehicle:
        peer = socket.create_connection(('127.0.0.1', port_of(vehicle)), 5)
        wait_until(lambda: vehicle.autopilot.time_s > 2000.0, 20, '2000 s of sim time')
        assert len(vehicle._ports[0]._unsent) < 10_000
        # what it finds when it reads at last is whole messages
        parser = mavlink.MAVLink(None)
        peer.settimeout(0.2)
        for _ in range(20):
            parser.parse_buffer(peer.recv(65536))
        assert parser.total_packets_received > 100
        peer.close()


def test_connections_can_be_cut() -> None:
    with running() as vehicle:
        peer = socket.create_connection(('127.0.0.1', port_of(vehicle)), 5)
        peer.settimeout(5)
        assert peer.recv(1000)
        vehicle.drop_clients()
        while peer.recv(65536):
            pass
        peer.close()


# ---------------------------------------------------------------------- many vehicles


def test_ten_vehicles_in_one_loop_are_told_apart_by_their_system_ids() -> None:
    loop = VehicleLoop()
    vehicles = [EmbeddedVehicle(VehicleConfig(
        sysid=number + 1, speedup=5.0, connections=(f'tcp:127.0.0.1:{free_port()}',)))
        for number in range(10)]
    for vehicle in vehicles:
        loop.add(vehicle)
    thread = threading.Thread(target=loop.run)
    thread.start()
    try:
        for vehicle in vehicles:
            with client(vehicle.config.endpoints[0]) as link:
                assert receive(link, 'HEARTBEAT').get_srcSystem() == vehicle.config.sysid
    finally:
        loop.stop()
        thread.join(5)
        loop.close()
    assert not thread.is_alive()


# ---------------------------------------------------------------------- command line


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, '-m', 'dryden_wind_ros.emulator.main', *arguments],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_command_line_runs_and_ends_cleanly(number: int, tmp_path: Path) -> None:
    port, eeprom, truth = free_port(), tmp_path / 'eeprom', tmp_path / 'truth.csv'
    process = start('--connection', f'tcp:127.0.0.1:{port}', '--speedup', '20', '--quiet',
                    '--flight', 'hover', '--drag', '--eeprom', str(eeprom), '--truth', str(truth))
    try:
        with client(f'tcp:127.0.0.1:{port}') as link:
            receive(link, 'HEARTBEAT', 10)
            link.mav.param_set_send(1, 1, b'SIM_WIND_SPD', 6.5, 9)
            assert receive(link, 'PARAM_VALUE').param_value == 6.5
            wait_until(lambda: 'learning' in truth.read_text(), 10, 'learning in the truth file')
        process.send_signal(number)
        out, err = process.communicate(timeout=5)
    finally:
        process.kill()
        process.wait(5)
    assert (process.returncode, out, err) == (0, '', '')
    assert '6.5' in eeprom.read_text()
    rows = truth.read_text().splitlines()
    assert rows[0] == 't_boot_s,phase,V22,V23,VWN,VWE'
    assert rows[1].split(',')[:2] == ['0.500', 'ground']


def test_command_line_says_which_port_is_in_use() -> None:
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen()
        port = taken.getsockname()[1]
        process = start('--connection', f'tcp:127.0.0.1:{port}')
        _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert f'port {port} is in use' in err
    assert 'Traceback' not in err


@pytest.mark.parametrize(('arguments', 'words'), [
    (['--speedup', '-1'], 'speedup -1.0'), (['--param', 'SIM_WIND_SPD'], 'NAME=VALUE'),
    (['--param', 'NOPE=1'], "no parameter 'NOPE'"), (['--vehicle', 'boat'], 'boat'),
    (['--connection', 'nowhere'], "connection 'nowhere'"), (['--home', '1,2'], 'LAT,LON'),
    (['--home', '-91,0,0'], "'-91,0,0' is not on Earth"), (['--spacing', '-2'], '--spacing -2'),
    (['--count', '3', '--home', '1,2,3', '--home', '2,2,3'], '--home is given 2 times for 3'),
    (['--count', '2', '--home', '1,2,3', '--home', '2,2,3', '--spacing', '5'], '--spacing is for'),
    (['--count', '0'], '--count 0'), (['--sysid', '300'], 'sysid 300'),
    (['--defaults', '/no/such.parm'], '/no/such.parm')])
def test_bad_options_are_refused_by_name(arguments: list[str], words: str,
                                         capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err
