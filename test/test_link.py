"""The link to a real vehicle process: found, lost, restarted, refused, explained."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
import tty

import pytest
from pymavlink.dialects.v20 import ardupilotmega as mavlink
from support import free_port, wait_until
from support.vehicle import Emulator, Probe
from support.watched import Watched

from dryden_wind_ros.sitl.line import validate_source_system
from dryden_wind_ros.sitl.link_status import LinkState

SYSTEM_TIME = mavlink.MAVLINK_MSG_ID_SYSTEM_TIME
ATTITUDE = mavlink.MAVLINK_MSG_ID_ATTITUDE


@pytest.mark.parametrize('vehicle', ['plane', 'copter'])
def test_every_tick_is_reached_at_the_rates_asked_for(vehicle):
    with Emulator('--vehicle', vehicle, '--speedup', '5') as emulator, \
            Watched(emulator.connection, intervals={ATTITUDE: 50_000}) as watched:
        watched.wait_up()
        wait_until(lambda: watched.settled == {'SYSTEM_TIME': 25_000, 'ATTITUDE': 50_000}, 10,
                   'both intervals to be acknowledged')
        begun = len(watched.times())
        wait_until(lambda: len(watched.times()) > begun + 400, 20, '10 s of vehicle time')
        times = watched.times()[begun + 2:]
        ticks = {int(ms / 50 + 1e-6) for ms in times}
        assert ticks == set(range(min(ticks), max(ticks) + 1))
        status = watched.link.status()
        assert status.speedup == pytest.approx(5, rel=0.3)
        assert status.bad_frames == 0
        assert not status.problems


def test_a_rate_that_is_denied_is_told_and_a_slower_one_taken():
    # 10 ms is more than a plane's 50 Hz loop gives; the facts: DENIED, the old rate stays.
    with Emulator('--vehicle', 'plane', '--speedup', '5') as emulator, \
            Watched(emulator.connection, intervals={ATTITUDE: 10_000}) as watched:
        watched.wait_said('ATTITUDE every 10 ms was denied as too fast')
        wait_until(lambda: watched.settled['ATTITUDE'] >= 20_000, 10, 'a slower rate')
        assert any('ATTITUDE' in problem for problem in watched.link.status().problems)


def test_our_heartbeat_comes_once_a_second_and_not_from_a_ground_station():
    with contextlib.closing(socket.socket()) as server:
        server.bind(('127.0.0.1', 0))
        server.listen()
        with Watched(f'tcp:127.0.0.1:{server.getsockname()[1]}'):
            client, _ = server.accept()
            client.settimeout(0.5)
            parser = mavlink.MAVLink(None)
            beats, until = [], time.monotonic() + 2.5
            while time.monotonic() < until:
                with contextlib.suppress(TimeoutError):
                    beats += parser.parse_buffer(client.recv(4096)) or []
            client.close()
    assert len(beats) in (2, 3)
    assert {(beat.get_srcSystem(), beat.type) for beat in beats} == {
        (245, mavlink.MAV_TYPE_ONBOARD_CONTROLLER)}


@pytest.mark.parametrize('bad', [0, 255, 256, -1, True, 1.5, '7'])
def test_a_source_system_that_is_not_ours_to_use_is_refused(bad):
    with pytest.raises(ValueError, match=r'1(\.\.| to )254'):
        validate_source_system(bad)


def test_a_restart_is_recognised_and_set_up_again():
    with Emulator('--speedup', '10') as emulator, Watched(emulator.connection) as watched, \
            Probe(emulator) as probe:
        watched.wait_up()
        wait_until(lambda: (watched.link.time or 0) > 5, 20, 'some seconds of vehicle time')
        before = watched.link.time
        probe.command(mavlink.MAV_CMD_PREFLIGHT_REBOOT_SHUTDOWN, 1)
        watched.wait_said('was restarted (its time went back')
        wait_until(lambda: watched.settled['SYSTEM_TIME'] == 25_000, 10,
                   'the interval to be set again')
        begun = len(watched.times())
        wait_until(lambda: len(watched.times()) > begun + 50, 10, 'the clock at its rate again')
        steps = [b - a for a, b in zip(watched.times()[begun:], watched.times()[begun + 1:],
                                       strict=False)]
        assert sorted(steps)[len(steps) // 2] == 25
        # At this speedup the new time soon passes the old one: that is no second vehicle.
        wait_until(lambda: watched.link.time > before + 10, 10, 'time to pass the old one')
        assert watched.link.status().restarts == 1
        assert not watched.link.status().problems


def test_five_kills_and_starts_of_the_vehicle_are_five_new_connections():
    with Emulator('--speedup', '20') as emulator, Watched(emulator.connection) as watched:
        for round_ in range(5):
            watched.wait_up()
            assert watched.link.status().connections == round_ + 1
            emulator.kill()
            wait_until(lambda: watched.link.status().state is LinkState.CONNECTING, 5,
                       'the loss to be noticed')
            emulator.start()
        watched.wait_up()
        assert watched.vehicles.count(False) == 5


def test_a_refused_connection_says_what_sitl_would_need():
    # Bound but not listening: refused, and nobody else can take it meanwhile.
    with contextlib.closing(socket.socket()) as taken:
        taken.bind(('127.0.0.1', 0))
        with Watched(f'tcp:127.0.0.1:{taken.getsockname()[1]}') as watched:
            watched.wait_said('connection refused. Nothing listens there')
            wait_until(lambda: watched.link.status().problems, 5, 'a lasting problem')
            time.sleep(1.0)
            # Tried again several times, said once.
            assert len(watched.events) == 1


def test_connected_but_nothing_heard_is_explained():
    with contextlib.closing(socket.socket()) as server:
        server.bind(('127.0.0.1', 0))
        server.listen()
        with Watched(f'tcp:127.0.0.1:{server.getsockname()[1]}') as watched:
            watched.wait_said('SITL serves one client per port')
            assert watched.link.status().state is LinkState.NOTHING_HEARD


def test_what_is_not_mavlink_is_called_so():
    with contextlib.closing(socket.socket()) as server:
        server.bind(('127.0.0.1', 0))
        server.listen()
        with Watched(f'tcp:127.0.0.1:{server.getsockname()[1]}') as watched:
            client, _ = server.accept()
            client.sendall(b'HTTP/1.1 400 Bad Request\r\n\r\n')
            watched.wait_said('not MAVLink')
            client.close()


def test_another_system_id_is_ignored_and_named():
    with Emulator('--speedup', '5', '--sysid', '3') as emulator, \
            Watched(emulator.connection, system_id=7) as watched:
        watched.wait_said('heard a vehicle (system id 3), but not an autopilot with system id 7')
        assert not watched.messages
        assert watched.link.status().system_id == 0


def test_the_vehicle_asked_for_is_taken():
    with Emulator('--speedup', '5', '--sysid', '3') as emulator, \
            Watched(emulator.connection, system_id=3) as watched:
        watched.wait_up()
        assert watched.link.status().system_id == 3


def test_udp_both_ways():
    port = free_port(socket.SOCK_DGRAM)
    with Watched(f'udp:127.0.0.1:{port}') as watched, \
            Emulator('--connection', f'udpout:127.0.0.1:{port}', '--speedup', '5'):
        watched.wait_up()
        wait_until(lambda: watched.settled['SYSTEM_TIME'] == 25_000, 10, 'an answer over UDP')
    port = free_port(socket.SOCK_DGRAM)
    with Emulator('--connection', f'udpin:127.0.0.1:{port}', '--speedup', '5'), \
            Watched(f'udpout:127.0.0.1:{port}') as watched:
        watched.wait_up()
        wait_until(lambda: watched.settled['SYSTEM_TIME'] == 25_000, 10, 'an answer over UDP')


class Talker:
    """A vehicle that only talks: one UDP socket, its own clock."""

    def __init__(self, port: int, first_ms: int, system: int = 1, component: int = 1,
                 autopilot: int = mavlink.MAV_AUTOPILOT_ARDUPILOTMEGA,
                 kind: int = mavlink.MAV_TYPE_QUADROTOR) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.connect(('127.0.0.1', port))
        self.ms = first_ms
        self._beat = mavlink.MAVLink_heartbeat_message(kind, autopilot, 0, 0, 3, 3)
        self._codec = mavlink.MAVLink(None, system, component)

    def say(self) -> None:
        for message in (
                self._beat,
                mavlink.MAVLink_system_time_message(0, self.ms)):
            with contextlib.suppress(ConnectionError):
                self._socket.send(message.pack(self._codec))
        self.ms += 25


def test_two_senders_with_one_system_id_on_a_udp_port_are_told_apart():
    port = free_port(socket.SOCK_DGRAM)
    first, second = Talker(port, 100_000), Talker(port, 5_000)
    with Watched(f'udp:127.0.0.1:{port}') as watched:
        first_only = time.monotonic() + 5
        while not watched.link.up and time.monotonic() < first_only:
            first.say()
            time.sleep(0.01)
        for _ in range(40):
            first.say()
            second.say()
            time.sleep(0.005)
        watched.wait_said('sends here too')
        assert min(watched.times()) >= 100_000
        assert watched.link.status().restarts == 0


@pytest.mark.parametrize(('other', 'called'), [
    ({'autopilot': mavlink.MAV_AUTOPILOT_PX4}, 'an autopilot that is not ArduPilot (PX4)'),
    ({'kind': mavlink.MAV_TYPE_ANTENNA_TRACKER}, 'an antenna tracker'),
    ({'kind': mavlink.MAV_TYPE_GIMBAL, 'component': 154}, 'something that is no autopilot'),
    ({'kind': mavlink.MAV_TYPE_GCS, 'autopilot': mavlink.MAV_AUTOPILOT_INVALID,
      'component': 190}, 'a ground station'),
])
def test_what_is_no_ardupilot_vehicle_is_not_taken_though_heard_first(other, called):
    with Watched(f'udp:127.0.0.1:{free_port(socket.SOCK_DGRAM)}') as watched:
        stranger = Talker(watched.link.target.port, 100_000, system=5, **other)
        wait_until(lambda: stranger.say() or watched.link.status().frames > 5, 5, 'its frames')
        assert watched.link.status().system_id == 0
        assert not watched.messages
        vehicle = Talker(watched.link.target.port, 5_000)
        wait_until(lambda: stranger.say() or vehicle.say() or watched.times(), 5, 'the vehicle')
        assert watched.link.status().system_id == 1
        assert max(watched.times()) < 100_000
        assert called in watched.link._vehicle.choice.explain()


def test_a_udp_port_stays_with_its_first_vehicle():
    """It has our wind, and keeps it if nobody puts it back."""
    with Watched(f'udp:127.0.0.1:{free_port(socket.SOCK_DGRAM)}') as watched:
        port = watched.link.target.port
        first, second = Talker(port, 100_000), Talker(port, 5_000, system=2)
        wait_until(lambda: first.say() or watched.times(), 5, 'the first vehicle')
        silent = time.monotonic()
        wait_until(lambda: second.say() or time.monotonic() > silent + 4.5, 10, 'its silence',
                   interval=0.05)
        assert watched.link.status().system_id == 1
        assert watched.link.status().state is LinkState.SILENT
        assert min(watched.times()) >= 100_000
        # The same vehicle from another port, as after a restart, is the same vehicle.
        again = Talker(port, 500)
        wait_until(lambda: second.say() or again.say() or watched.times()[-1] < 5_000, 5,
                   'the first vehicle again')
        assert watched.link.status().system_id == 1
        assert watched.link.status().restarts == 1


def test_two_vehicles_behind_one_router_with_one_system_id_are_refused():
    """One stream carries both: time jumps to and fro, and nobody knows whose parameters are set."""
    with contextlib.closing(socket.socket()) as server:
        server.bind(('127.0.0.1', 0))
        server.listen()
        with Watched(f'tcp:127.0.0.1:{server.getsockname()[1]}') as watched:
            client, _ = server.accept()
            codec = mavlink.MAVLink(None, 1, 1)
            beat = mavlink.MAVLink_heartbeat_message(
                2, mavlink.MAV_AUTOPILOT_ARDUPILOTMEGA, 0, 0, 3, 3).pack(codec)
            for step in range(100):
                client.sendall(beat)
                for base in (500_000, 20_000):
                    client.sendall(mavlink.MAVLink_system_time_message(
                        0, base + 25 * step).pack(codec))
                time.sleep(0.005)
            watched.wait_said('two vehicles seem to answer with system id 1')
            assert watched.link.ambiguous
            client.close()


def test_late_packets_are_no_restart():
    port = free_port(socket.SOCK_DGRAM)
    talker = Talker(port, 10_000)
    with Watched(f'udp:127.0.0.1:{port}') as watched:
        until = time.monotonic() + 5
        while not watched.link.up and time.monotonic() < until:
            talker.say()
            time.sleep(0.01)
        for _ in range(20):
            talker.say()
            talker.ms -= 200
            talker.say()
            talker.ms += 400
        newest = talker.ms - 225
        wait_until(lambda: newest in watched.times() or watched.link.time, 5, 'the last packet')
        time.sleep(0.1)
        assert watched.link.status().restarts == 0


def test_a_vehicle_that_stands_still_is_told_and_heard_again():
    with Emulator('--speedup', '5') as emulator, Watched(emulator.connection) as watched:
        watched.wait_up()
        emulator.signal(signal.SIGSTOP)
        watched.wait_said('nothing from vehicle 1 for 3 s: paused')
        assert watched.link.status().state is LinkState.SILENT
        emulator.signal(signal.SIGCONT)
        watched.wait_said('is heard again')
        # The same connection: a paused SITL must not lose its only client.
        assert watched.link.status().connections == 1


def test_a_peer_that_does_not_read_gets_no_burst_later():
    """Refused frames are not kept: ArduPilot raises internal errors at 45 writes at once."""
    def write(number: int) -> list:
        return [mavlink.MAVLink_param_set_message(1, 1, b'SIM_WIND_SPD', 3 * number + step, 9)
                for step in range(3)]

    def received(timeout: float) -> list[float]:
        client.settimeout(timeout)
        data = b''
        with contextlib.suppress(TimeoutError):
            while True:
                data += client.recv(65536)
        return [message.param_value for message in parser.parse_buffer(data) or []
                if message.get_type() == 'PARAM_SET']

    parser = mavlink.MAVLink(None)
    with contextlib.closing(socket.socket()) as server:
        # The smallest there is, so that soon nothing more fits.
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        server.bind(('127.0.0.1', 0))
        server.listen()
        watched = Watched(f'tcp:127.0.0.1:{server.getsockname()[1]}')
        link = watched.link

        def connected() -> bool:
            link.poll(time.monotonic())
            return link.status().state is LinkState.NOTHING_HEARD

        wait_until(connected, 5, 'a connection')
        client, _ = server.accept()
        taken, refused, longest = [], 0, 0.0
        for number in range(20_000):
            begun = time.monotonic()
            if link.send(*write(number)):
                taken += [3 * number + step for step in range(3)]
            else:
                refused += 1
            longest = max(longest, time.monotonic() - begun)
            if refused > 1000:
                break
        assert refused > 1000
        assert longest < 0.5
        # What was taken arrives, whole, once and in order; of what was refused, nothing. What the
        # peer's own kernel holds (2304 bytes at least) is not ours to say; ours holds few.
        arrived = received(0.3)
        assert arrived == taken
        assert len(taken) < 2304 / 33 + 45
        # And it goes on at once, with the newest.
        wait_until(lambda: link.send(*write(900_000)), 5, 'the link to take frames again')
        assert received(0.3) == [2_700_000, 2_700_001, 2_700_002]
        client.close()
        link.close()


def test_a_port_that_sends_to_one_address_hears_nobody_else():
    """`udpout` is no open door: a stranger's heartbeat must not become the vehicle."""
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as vehicle:
        vehicle.bind(('127.0.0.1', 0))
        vehicle.settimeout(5)
        with Watched(f'udpout:127.0.0.1:{vehicle.getsockname()[1]}') as watched:
            _, bridge = vehicle.recvfrom(4096)
            stranger = Talker(bridge[1], 5_000, system=66)
            for _ in range(20):
                stranger.say()
                time.sleep(0.01)
            assert watched.link.status().frames == 0
            codec = mavlink.MAVLink(None, 7, 1)
            vehicle.sendto(mavlink.MAVLink_heartbeat_message(
                2, mavlink.MAV_AUTOPILOT_ARDUPILOTMEGA, 0, 0, 3, 3).pack(codec), bridge)
            wait_until(lambda: watched.link.status().system_id == 7, 5, 'the vehicle itself')


@pytest.mark.parametrize(('connection', 'said'), [
    # TEST-NET-1 belongs to nobody's machine, .invalid is no domain.
    ('udpin:192.0.2.7:14550', '192.0.2.7 is no address of this machine. Listen on 127.0.0.1'),
    ('tcpin:192.0.2.7:14550', '192.0.2.7 is no address of this machine. Listen on 127.0.0.1'),
    ('tcp:no-such-host.invalid:5762', "host 'no-such-host.invalid' cannot be resolved ("),
])
def test_an_address_that_cannot_be_is_called_so(connection, said):
    with Watched(connection, allow_remote=True) as watched:
        watched.wait_said(said)
        assert 'Unknown error' not in watched.text


def test_ten_thousand_random_frames_on_the_link_do_no_harm():
    import random
    rng = random.Random(3)
    codec = mavlink.MAVLink(None, 1, 1)
    kinds = [kind for kind in mavlink.mavlink_map.values() if kind.msgname != 'HEARTBEAT']
    beat = bytes(mavlink.MAVLink_heartbeat_message(
        2, mavlink.MAV_AUTOPILOT_ARDUPILOTMEGA, 0, 0, 3, 3).pack(codec))
    with contextlib.closing(socket.socket()) as server:
        server.bind(('127.0.0.1', 0))
        server.listen()
        with Watched(f'tcp:127.0.0.1:{server.getsockname()[1]}', intervals={ATTITUDE: 50_000},
                     wanted=[kind.id for kind in kinds]) as watched:
            client, _ = server.accept()
            stop = threading.Event()

            def swallow() -> None:
                client.settimeout(0.1)
                while not stop.is_set():
                    with contextlib.suppress(OSError):
                        client.recv(65536)

            reader = threading.Thread(target=swallow)
            reader.start()
            client.sendall(beat)
            for _ in range(10_000):
                kind = rng.choice(kinds)
                payload = rng.randbytes(min(kind.unpacker.size, 255))
                head = bytes([0xFD, len(payload), 0, 0, rng.randrange(256), 1, 1,
                              kind.id & 255, kind.id >> 8 & 255, kind.id >> 16])
                crc = mavlink.x25crc(head[1:] + payload + bytes([kind.crc_extra])).crc
                frame = bytearray(head + payload + bytes([crc & 255, crc >> 8]))
                if rng.random() < 0.5:
                    frame[rng.randrange(len(frame))] = rng.randrange(256)
                client.sendall(frame)
            # A vehicle at its restart: plain times again.
            for step in range(10):
                client.sendall(beat + bytes(
                    mavlink.MAVLink_system_time_message(0, 25 * step).pack(codec)))
            wait_until(lambda: 225 in watched.times(), 20, 'the last good frame')
            stop.set()
            reader.join()
            client.close()


def test_a_serial_device_is_a_link_too():
    pytest.importorskip('serial', reason='pyserial is optional')
    master, slave = os.openpty()
    tty.setraw(slave)
    codec = mavlink.MAVLink(None, 9, 1)
    beat = mavlink.MAVLink_heartbeat_message(
        2, mavlink.MAV_AUTOPILOT_ARDUPILOTMEGA, 0, 0, 3, 3).pack(codec)
    try:
        with Watched(f'{os.ttyname(slave)},57600', allow_remote=True) as watched:
            def found() -> bool:
                os.write(master, beat)
                return watched.link.status().system_id == 9
            wait_until(found, 5, 'the vehicle on the serial device', interval=0.05)
            answers = os.read(master, 4096)
            assert mavlink.MAVLink(None).parse_buffer(answers)
    finally:
        os.close(slave)
        os.close(master)
