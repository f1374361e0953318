"""sitl_wind_relay in a real ROS graph, between a SITL and a physics on real sockets.

With the environment variable DRYDEN_WIND_ARDUPLANE naming ArduPlane's SITL binary, it is also tried
with that: half a minute until EKF3 has its position, take-off, and a minute of turns.
"""

import contextlib
import json
import math
import os
import shutil
import socket
import subprocess
from functools import partial

import pytest
import rclpy
from geometry_msgs.msg import TwistWithCovarianceStamped
from pymavlink import mavutil
from support import PATIENCE, free_port, wait_until
from support.json_plane import CRUISE, GRAVITY, JsonPlane, ScriptedSitl
from support.processes import Program
from test_json_relay import Physics, servos
from transforms3d.euler import euler2mat
from transforms3d.quaternions import axangle2quat, mat2quat, qmult, quat2mat

from dryden_wind_ros.nodes import common

pytestmark = pytest.mark.ros2

MODULE = 'dryden_wind_ros.nodes.sitl_wind_relay'

ARDUPLANE = os.environ.get('DRYDEN_WIND_ARDUPLANE', '')

PARAMETERS = """\
AHRS_EKF_TYPE 3
EK2_ENABLE 0
EK3_ENABLE 1
ARMING_CHECK 0
ARMING_REQUIRE 1
ARSPD_TYPE 2
ARSPD_PIN 1
ARSPD_USE 1
ARSPD_RATIO 2
FS_LONG_ACTN 0
FS_SHORT_ACTN 3
THR_FAILSAFE 0
LOG_DISARMED 0
"""
"""An airspeed sensor as SITL's planes have it, EKF3, and nothing that would end the flight."""


def parameters(**values):
    return ['--ros-args', *(word for name, value in values.items()
                            for word in ('-p', f'{name}:={value}'))]


def test_each_sitl_gets_the_wind_of_its_own_vehicle_and_the_relay_ends_cleanly(tmp_path):
    sitl_port, physics_port = free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_DGRAM)
    program = Program(tmp_path / 'relay.log', MODULE, *parameters(
        vehicles='one=0,two=1', sitl_port=sitl_port, physics_port=physics_port))
    physics = []
    rclpy.init()
    user = rclpy.create_node('user')
    sitl = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sitl.settimeout(5.0)
    try:
        physics += [Physics(physics_port), Physics(physics_port + 10)]
        publishers = [user.create_publisher(
            TwistWithCovarianceStamped, f'/{name}/wind', common.STREAM_QOS)
            for name in ('one', 'two')]
        wait_until(lambda: program.alive() and all(p.get_subscription_count() for p in publishers),
                   30, 'the relay to hear the winds')
        for publisher, east in zip(publishers, (8.0, -3.0), strict=True):
            message = TwistWithCovarianceStamped()
            message.twist.twist.linear.x, message.twist.twist.linear.z = east, 0.5
            publisher.publish(message)

        def told(instance):
            sitl.sendto(servos(1), ('127.0.0.1', sitl_port + 10 * instance))
            return json.loads(sitl.recv(65_507)).get('velocity_wind')

        # NED of winds towards the east with an updraft of half a metre per second.
        for instance, wind in ((0, [0.0, 8.0, -0.5]), (1, [0.0, -3.0, -0.5])):
            wait_until(lambda instance=instance, wind=wind: told(instance) == wind, 10,
                       f'the wind {wind} in the answers of instance {instance}')
        assert program.stop() == 0
        assert 'Traceback' not in program.text
    finally:
        program.process.kill()
        sitl.close()
        user.destroy_node()
        rclpy.shutdown()
        for side in physics:
            side.close()


@pytest.mark.parametrize(('values', 'words'), [
    ({'physics_address': '10.0.0.7'}, 'physics_address is 10.0.0.7, which is not of this machine'),
    ({'sitl_address': 'here'}, "sitl_address is 'here'"),
    ({'vehicles': 'one=0,two=0'}, 'the instance 0 is in it twice'),
    ({'sitl_port': 9002}, 'sitl_port and physics_port are both 9002'),
    ({'vehicles': 'one=999', 'physics_port': 60000}, 'up to 69990'),
])
def test_a_bad_parameter_ends_it_with_one_message(tmp_path, values, words):
    program = Program(tmp_path / 'relay.log', MODULE, *parameters(**values))
    assert program.wait(30.0) == 2
    assert words in program.text
    assert 'Traceback' not in program.text


# ------------------------------------------------------------------ with SITL, real or of a script

@contextlib.contextmanager
def arduplane(folder, port, relay_port):
    """Run ArduPlane's SITL with `--model JSON`; its first serial port is TCP `port`."""
    binary = shutil.which(ARDUPLANE)
    assert binary, f'DRYDEN_WIND_ARDUPLANE is {ARDUPLANE!r}: there is no such program'
    (folder / 'plane.parm').write_text(PARAMETERS)
    with (folder / 'arduplane.log').open('wb') as log:
        process = subprocess.Popen(
            [os.path.abspath(binary), '--model', 'JSON:127.0.0.1', '--wipe', '--speedup', '2',
             '--base-port', str(port), '--rc-in-port', str(free_port(socket.SOCK_DGRAM)),
             '--sim-port-in', str(free_port(socket.SOCK_DGRAM)),
             '--sim-port-out', str(relay_port), '--defaults', str(folder / 'plane.parm'),
             '--home', '-35.363261,149.165230,584,0'],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield
        finally:
            process.kill()
            process.wait()


@contextlib.contextmanager
def scripted(folder, port, relay_port):
    with ScriptedSitl(port, relay_port) as sitl:
        yield
    # All that SITL got in flight had the wind in it.
    told = [answer for answer in sitl.answers if 'velocity_wind' in answer]
    assert len(told) > 80 * ScriptedSitl.RATE
    assert sitl.answers[-len(told):] == told


class Ground:
    """A ground station on SITL's link that keeps the newest message of each kind."""

    KINDS = frozenset({'HEARTBEAT', 'EKF_STATUS_REPORT', 'VFR_HUD', 'WIND', 'STATUSTEXT'})

    def __init__(self, port):
        self.link = mavutil.mavlink_connection(
            f'tcp:127.0.0.1:{port}', source_system=250, retries=100, autoreconnect=True)
        self.newest, self.texts = {}, []
        assert self.link.wait_heartbeat(timeout=30 * PATIENCE), 'no heartbeat of SITL'
        self.link.target_component = mavutil.mavlink.MAV_COMP_ID_AUTOPILOT1
        for kind in ('EKF_STATUS_REPORT', 'VFR_HUD', 'WIND'):
            number = getattr(mavutil.mavlink, f'MAVLINK_MSG_ID_{kind}')
            self.command(mavutil.mavlink.MAV_CMD_SET_MESSAGE_INTERVAL, number, 200_000)

    def command(self, number, *values):
        self.link.mav.command_long_send(
            self.link.target_system, self.link.target_component, number, 0,
            *values, *[0] * (7 - len(values)))

    def hear(self):
        """Read what has arrived; return the newest by kind."""
        while (message := self.link.recv_match(type=set(self.KINDS))) is not None:
            self.newest[message.get_type()] = message
            if message.get_type() == 'STATUSTEXT':
                self.texts.append(message.text)
        return self.newest

    def has_position(self):
        report = self.hear().get('EKF_STATUS_REPORT')
        flags = mavutil.mavlink
        return report is not None and report.flags & flags.EKF_POS_HORIZ_ABS \
            and not report.flags & flags.EKF_CONST_POS_MODE

    def arm(self):
        self.command(mavutil.mavlink.MAV_CMD_COMPONENT_ARM_DISARM, 1, 21196)

    def armed(self):
        return 'HEARTBEAT' in self.hear() \
            and self.newest['HEARTBEAT'].base_mode & mavutil.mavlink.MAV_MODE_FLAG_SAFETY_ARMED


@pytest.mark.parametrize('sitl', [
    pytest.param(scripted, id='scripted'),
    pytest.param(arduplane, id='arduplane', marks=pytest.mark.skipif(
        not ARDUPLANE, reason="DRYDEN_WIND_ARDUPLANE does not name ArduPlane's SITL binary"))])
def test_after_a_minute_of_turns_sitl_knows_the_wind_and_its_pitot_reads_the_airspeed(
        sitl, tmp_path):
    north, east = 3.0, -5.0
    relay_port, physics_port = free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_DGRAM)
    port = free_port()
    program = Program(tmp_path / 'relay.log', MODULE, *parameters(
        vehicles='plane=0', sitl_port=relay_port, physics_port=physics_port))
    rclpy.init()
    user = rclpy.create_node('user')
    try:
        publisher = user.create_publisher(
            TwistWithCovarianceStamped, '/plane/wind', common.STREAM_QOS)
        wait_until(lambda: program.alive() and publisher.get_subscription_count(), 30,
                   'the relay to hear the wind')
        with JsonPlane(physics_port, (north, east)) as plane, sitl(tmp_path, port, relay_port):
            ground = Ground(port)
            news = partial(_news, ground, plane)
            wait_until(ground.has_position, 90, lambda: f'a position of EKF3; {news()}')
            # The pitot was zeroed in still air; the wind begins only now.
            message = TwistWithCovarianceStamped()
            message.twist.twist.linear.x, message.twist.twist.linear.y = east, north
            publisher.publish(message)
            ground.arm()
            wait_until(ground.armed, 20, lambda: f'it to be armed; {news()}')
            plane.take_off()
            wait_until(lambda: ground.hear() and plane.turned > 60.0, 120,
                       lambda: f'a minute of turns; {news()}')
            # From now on, not what was on its way.
            ground.newest.clear()
            wait_until(lambda: {'WIND', 'VFR_HUD'} <= ground.hear().keys(), 10,
                       lambda: f'wind and airspeed; {news()}')
            wind, hud = ground.newest['WIND'], ground.newest['VFR_HUD']
            ground.link.close()
        to = math.radians(wind.direction + 180.0)
        off = math.hypot(wind.speed * math.cos(to) - north, wind.speed * math.sin(to) - east)
        assert off < 1.0, f'{wind.speed:.2f} m/s from {wind.direction:.0f}; {news()}'
        assert hud.airspeed == pytest.approx(CRUISE, abs=1.0), news()
        assert program.stop() == 0
        assert 'Traceback' not in program.text
    finally:
        program.kill()
        user.destroy_node()
        rclpy.shutdown()


def _news(ground, plane):
    return (f'physics at {plane.time:.1f} s, turned for {plane.turned:.1f} s; newest '
            f'{ {kind: str(message) for kind, message in ground.newest.items()} }; '
            f'texts {ground.texts[-8:]}')


def test_the_plane_of_that_flight_moves_as_its_sensors_say():
    """Strapdown navigation by gyro and accelerometer alone leads where the physics says it is."""
    wind = (3.0, -5.0)
    with JsonPlane(free_port(socket.SOCK_DGRAM), wind) as plane:
        dt = 0.01
        said = json.loads(plane.answer())
        attitude = mat2quat(euler2mat(*reversed(said['attitude']), 'rzyx'))
        velocity, position = list(said['velocity']), list(said['position'])
        plane.take_off()
        for _ in range(7000):
            plane.step(dt)
            said = json.loads(plane.answer())
            turn = [rate * dt for rate in said['imu']['gyro']]
            angle = math.hypot(*turn)
            half = axangle2quat(turn, angle / 2.0) if angle else (1.0, 0.0, 0.0, 0.0)
            middle = qmult(attitude, half)
            attitude = qmult(middle, half)
            force = quat2mat(middle) @ said['imu']['accel_body']
            before = velocity
            velocity = [v + dt * (f + g) for v, f, g in zip(
                velocity, force, (0.0, 0.0, GRAVITY), strict=True)]
            position = [x + dt / 2.0 * (old + new) for x, old, new in zip(
                position, before, velocity, strict=True)]
    assert plane.turned > 30.0
    assert velocity == pytest.approx(said['velocity'], abs=0.02)
    assert position == pytest.approx(said['position'], abs=0.5)
    assert quat2mat(attitude) == pytest.approx(
        euler2mat(*reversed(said['attitude']), 'rzyx'), abs=1e-3)
    # Through the air it flies along its nose, at the airspeed.
    nose = quat2mat(attitude)[:, 0]
    air = [v - w for v, w in zip(said['velocity'], (*wind, 0.0), strict=True)]
    assert air == pytest.approx(list(CRUISE * nose), abs=0.05)


def test_the_physics_of_that_flight_answers_once_for_each_step_and_begins_anew_with_sitl():
    port = free_port(socket.SOCK_DGRAM)
    with JsonPlane(port, (0.0, 0.0)), \
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sitl:
        sitl.settimeout(5.0 * PATIENCE)

        def time_at(frame):
            sitl.sendto(servos(frame), ('127.0.0.1', port))
            return json.loads(sitl.recv(65_507))['timestamp']

        sitl.sendto(b'no servo packet', ('127.0.0.1', port))
        assert [time_at(frame) for frame in (0, 1, 1, 2, 0, 1)] == pytest.approx(
            [0.001, 0.002, 0.002, 0.003, 0.001, 0.002])
