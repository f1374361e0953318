"""Wind for a SITL whose physics is elsewhere: what passes, what is put in, what is left alone."""

import json
import math
import socket
import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import free_port, wait_until

from dryden_wind_ros.emulator.config import VehicleConfig
from dryden_wind_ros.emulator.flight import Flight
from dryden_wind_ros.gazebo.json_relay import (
    MAX_DATAGRAM,
    NotAnAnswer,
    Relay,
    RelayError,
    RelayLoop,
    with_wind,
)
from dryden_wind_ros.gazebo.vehicles import parse_instances

# What ardupilot_gazebo sends for a vehicle that flies north at 20 m/s and sinks at 1.
ANSWER = (b'\n{"timestamp":12.345,"imu":{"gyro":[0.0,0.0,0.0],"accel_body":[0.0,0.0,-9.8]},'
          b'"position":[1.0,2.0,-10.0],"quaternion":[1.0,0.0,0.0,0.0],"velocity":[20.0,0.0,1.0]}\n')


def servos(count):
    """A servo packet as SITL sends it: magic, frame rate, frame count, 16 values."""
    return struct.pack('<HHI16H', 18458, 1000, count, *[1500] * 16)


def test_wind_and_airspeed_are_put_in_and_all_else_stays():
    # Wind from the north, 5 m/s, in an updraft of 2: 25 m/s and 3 m/s through the air.
    blown = with_wind(ANSWER, (-5.0, 0.0, -2.0))
    content = json.loads(blown)
    assert content.pop('velocity_wind') == [-5.0, 0.0, -2.0]
    assert content.pop('airspeed') == pytest.approx(math.hypot(25.0, 3.0), abs=1e-6)
    assert content == json.loads(ANSWER)
    # SITL takes the last line between two line ends.
    assert blown.startswith(b'\n{')
    assert blown.endswith(b'}\n')


@pytest.mark.parametrize('own', [b'"airspeed":16.0', b'"velocity_wind":[1.0,0.0,0.0]'])
def test_a_physics_that_knows_its_wind_is_left_alone(own):
    answer = ANSWER.replace(b'"velocity"', own + b',"velocity"')
    assert with_wind(answer, (5.0, 0.0, 0.0)) is answer


@pytest.mark.parametrize(('answer', 'why'), [
    (ANSWER[:60], 'not JSON'), (b'', 'not JSON'), (b'\xff\xfe\x00', 'not JSON'),
    (b'[1, 2]', 'not a JSON object'), (b'{"timestamp": 1.0}', 'no velocity'),
    (b'{"velocity": "fast"}', 'not three numbers'), (b'{"velocity": [1.0, 2.0]}', 'three numbers'),
    (b'{"velocity": [NaN, 0.0, 0.0]}', 'not finite'), (b'{"velocity": null}', 'three numbers'),
    (b'{"velocity": [true, true, true]}', 'three numbers'),
    (b'{"velocity": [1e300, 1e300, 0.0]}', 'not finite'), (b'[' * 100_000, 'not JSON'),
])
def test_what_is_no_answer_is_refused_with_the_reason(answer, why):
    with pytest.raises(NotAnAnswer, match=why):
        with_wind(answer, (5.0, 0.0, 0.0))


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(answer):
    try:
        blown = with_wind(answer, (1.0, 2.0, 3.0))
    except NotAnAnswer:
        return
    assert json.loads(blown)['velocity_wind']


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3),
       st.tuples(*[st.floats(-80.0, 80.0)] * 3))
def test_airspeed_is_the_length_of_the_velocity_through_the_air(velocity, wind):
    answer = json.dumps({'velocity': velocity, 'timestamp': 1.0}).encode()
    content = json.loads(with_wind(answer, wind))
    assert content['airspeed'] == pytest.approx(math.dist(velocity, wind), rel=1e-6, abs=1e-5)
    assert content['velocity_wind'] == pytest.approx(wind, abs=1e-6)


class Physics:
    """A JSON physics: the embedded vehicle's flight, one step for each servo packet."""

    def __init__(self, port, answer=None):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(('127.0.0.1', port))
        self.socket.settimeout(0.1)
        self.port = self.socket.getsockname()[1]
        # A plane in the wind that the physics flies in; SITL's sensors are told by the relay.
        self.flight = Flight(VehicleConfig(kind='plane', flight='loiter'), lambda *_: None)
        self.flight.arm()
        self.flight.command_take_off(30.0)
        self.answer = answer
        self.packets = []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while not self.ended.is_set():
            try:
                packet, sender = self.socket.recvfrom(2000)
            except TimeoutError:
                continue
            self.packets.append(packet)
            self.socket.sendto(self.answer or self.step(), sender)

    def step(self):
        flight = self.flight
        flight.step(0.001, 0.0, 3.0, 0.0)
        return json.dumps({
            'timestamp': len(self.packets) * 0.001,
            'velocity': [flight.v_north, flight.v_east, -flight.v_up],
        }).encode() + b'\n'

    def close(self):
        self.ended.set()
        self.thread.join()
        self.socket.close()


class Stand:
    """A relay between a SITL (this test) and a physics."""

    def __init__(self, physics_port, wind=(0.0, 3.0, 0.0)):
        self.told = []
        self.relay = Relay('uav1', ('127.0.0.1', 0), ('127.0.0.1', physics_port), self.told.append)
        self.relay.wind_ned = wind
        self.failures = []
        self.loop = RelayLoop([self.relay], self.failures.append)
        self.sitl = self.new_sitl()

    def new_sitl(self):
        sitl = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sitl.settimeout(10.0)
        return sitl

    def ask(self, packet=None, sitl=None):
        sitl = sitl or self.sitl
        sitl.sendto(packet or servos(1), ('127.0.0.1', self.relay.port))
        return sitl.recv(MAX_DATAGRAM)

    def close(self):
        self.loop.close()
        self.sitl.close()
        assert not self.failures


@pytest.fixture
def closing():
    """Close what is appended, last first."""
    things = []
    yield things
    for thing in reversed(things):
        thing.close()


def test_servo_packets_arrive_unchanged_and_each_step_is_answered_with_wind(closing):
    physics = Physics(0)
    closing.append(physics)
    stand = Stand(physics.port)
    closing.append(stand)
    sent = [servos(i) for i in range(4000)]
    for i, packet in enumerate(sent, 1):
        content = json.loads(stand.ask(packet))
        assert content['timestamp'] == i * 0.001
        assert content['velocity_wind'] == [0.0, 3.0, 0.0]
        assert content['airspeed'] == pytest.approx(
            math.dist(content['velocity'], (0.0, 3.0, 0.0)), abs=1e-5)
    assert physics.packets == sent
    # The flight model knows its own airspeed: the pitot reads that.
    assert physics.flight.airspeed > 5.0
    assert content['airspeed'] == pytest.approx(physics.flight.airspeed, rel=0.02)
    assert stand.relay.status().with_wind == 4000
    assert stand.told == []


def test_both_sides_may_be_started_again(closing):
    port = free_port(socket.SOCK_DGRAM)
    stand = Stand(port)
    closing.append(stand)
    for _ in range(3):  # nobody there: SITL asks again
        stand.sitl.sendto(servos(0), ('127.0.0.1', stand.relay.port))
    wait_until(lambda: stand.relay.status().refused, 10, 'a refusal of the missing physics')
    assert len(stand.told) == 1
    assert 'physics is not there' in stand.told[0]
    for _ in range(2):
        physics = Physics(port)
        try:
            wait_until(lambda: b'airspeed' in stand.ask(), 10, 'an answer with wind')
            again = stand.new_sitl()  # a new SITL has another port
            assert b'airspeed' in stand.ask(servos(7), again)
            again.close()
        finally:
            physics.close()


@pytest.mark.parametrize(('answer', 'told'), [
    (b'{"timestamp": 1.0, "velo', 'passed on without wind'),
    (b'\x00\x01\x02', 'passed on without wind'),
    (json.dumps({'velocity': [1.0, 0.0, 0.0], 'pad': 'x' * (MAX_DATAGRAM - 60)}).encode(),
     'no room'),
])
def test_what_wind_cannot_be_put_into_passes_as_it_is_with_one_message(closing, answer, told):
    physics = Physics(0, answer)
    closing.append(physics)
    stand = Stand(physics.port)
    closing.append(stand)
    for _ in range(5):
        assert stand.ask() == answer
    assert len(stand.told) == 1
    assert told in stand.told[0]


def test_without_a_wind_everything_passes_as_it_is(closing):
    physics = Physics(0, ANSWER)
    closing.append(physics)
    stand = Stand(physics.port, wind=None)
    closing.append(stand)
    assert stand.ask() == ANSWER


def test_a_taken_port_is_named():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(('127.0.0.1', 0))
        with pytest.raises(RelayError, match=str(taken.getsockname()[1])):
            Relay('uav1', taken.getsockname(), ('127.0.0.1', 9), print)


@pytest.mark.parametrize(('text', 'instances'), [
    ('', (('', 0),)), ('uav1', (('uav1', 0),)), ('a=2, /fleet/b=0', (('a', 2), ('fleet/b', 0))),
    ('a,b', (('a', 0), ('b', 1))),
])
def test_vehicles_have_instances(text, instances):
    assert parse_instances(text) == instances


@pytest.mark.parametrize(('text', 'why'), [
    ('a=b', 'SITL instance'), ('a=-1', 'SITL instance'), ('a=1000', 'SITL instance'),
    ('a,,b', 'SITL instance'), ('a=0,b=0', 'instance 0 is in it twice'),
    ('a=0,a=1', "namespace 'a' is in it twice"), ('a b', 'SITL instance'),
])
def test_bad_instances_are_refused_with_the_reason(text, why):
    with pytest.raises(ValueError, match=why):
        parse_instances(text)
