"""The bridge node as a process, between an embedded vehicle and a real ROS graph."""

from __future__ import annotations

import itertools
import os
import signal
import time

import pytest
from support import free_port, wait_until
from support.vehicle import Emulator, Probe, Process

pytestmark = pytest.mark.ros2

USERS = {'SIM_WIND_SPD': 3.25, 'SIM_WIND_DIR': 77.0, 'SIM_WIND_T': 2.0}
AS_THE_USER_LEFT_IT = [option for name, value in USERS.items()
                       for option in ('--param', f'{name}={value}')]


def bridge(*parameters: str, namespace: str = '/v') -> Process:
    arguments = ['-m', 'dryden_wind_ros.nodes.mavlink_bridge', '--ros-args', '-r',
                 f'__ns:={namespace}']
    for parameter in parameters:
        arguments += ['-p', parameter]
    return Process(arguments)


class Listener:
    """A node beside the bridge that keeps what it hears."""

    def __init__(self) -> None:
        import rclpy
        from builtin_interfaces.msg import Time
        from diagnostic_msgs.msg import DiagnosticArray
        from nav_msgs.msg import Odometry
        from rclpy.executors import SingleThreadedExecutor
        from rosgraph_msgs.msg import Clock

        from dryden_wind_ros.nodes import common

        self._context = rclpy.Context()
        rclpy.init(context=self._context)
        self.node = rclpy.create_node('listener', context=self._context, namespace='/v')
        self.executor = SingleThreadedExecutor(context=self._context)
        self.executor.add_node(self.node)
        self.messages = common.interfaces()
        self.clocks: list[float] = []
        self.odometry: list = []
        self.armed: list[int] = []
        self.ekf: list = []
        self.diagnostics: dict = {}
        self.node.create_subscription(Clock, 'clock', lambda message: self.clocks.append(
            message.clock.sec + message.clock.nanosec / 1e9), common.STREAM_QOS)
        self.node.create_subscription(
            Odometry, 'odom', self.odometry.append, common.STREAM_QOS)
        self.node.create_subscription(Time, 'armed_at', lambda message: self.armed.append(
            message.sec * 10**9 + message.nanosec), common.LATCHED_QOS)
        self.node.create_subscription(
            self.messages.EkfWind, 'ekf_wind', self.ekf.append, common.LATCHED_QOS)
        self.node.create_subscription(
            DiagnosticArray, '/diagnostics', lambda message: self.diagnostics.update(
                {entry.name: entry for entry in message.status}), common.STREAM_QOS)
        self.winds = self.node.create_publisher(
            self.messages.SimWind, 'sim_wind', common.LATCHED_QOS)

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_) -> None:
        self.executor.shutdown()
        self.node.destroy_node()
        self._context.try_shutdown()

    def wait(self, condition, timeout: float, what: str) -> None:
        def spun() -> object:
            self.executor.spin_once(timeout_sec=0.02)
            return condition()
        wait_until(spun, timeout, what, interval=0.0)

    def send(self, speed: float, direction: float, direction_z: float = 0.0,
             profile: str = 'uniform') -> None:
        message = self.messages.SimWind(
            speed=speed, direction=direction, direction_z=direction_z, profile=profile)
        self.winds.publish(message)

    def call_check(self) -> str:
        from std_srvs.srv import Trigger
        client = self.node.create_client(Trigger, 'ekf_wind/check')
        self.wait(client.service_is_ready, 10, 'the service ekf_wind/check')
        future = client.call_async(Trigger.Request())
        self.wait(future.done, 10, 'an answer of ekf_wind/check')
        assert future.result().success
        return future.result().message

    def entry(self, what: str):
        return self.diagnostics.get(f'/v/mavlink_bridge: {what}')


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_clock_odometry_wind_and_a_clean_end(number, tmp_path):
    with Emulator('--speedup', '5', '--flight', 'hover', *AS_THE_USER_LEFT_IT) as emulator, \
            Probe(emulator) as probe, Listener() as listener, \
            bridge(f'connection:={emulator.connection}', 'publish_clock:=true',
                   f'state_dir:={tmp_path}') as process:
        listener.wait(lambda: len(listener.clocks) > 100, 30, '5 s of clock')
        ticks = [int(t / 0.05 + 1e-6) for t in listener.clocks]
        # One message a tick, each tick once. A listener that has no turn on a busy machine misses a
        # run of them.
        steps = [b - a for a, b in itertools.pairwise(ticks[10:100])]
        assert min(steps) == 1
        assert steps.count(1) > 60
        listener.send(8.5, 200.0, 3.0)
        listener.wait(lambda: probe.read('SIM_WIND_SPD') == 8.5, 10, 'the wind in SITL')
        listener.wait(lambda: probe.read('SIM_WIND_T') == 1.0, 10, 'SIM_WIND_T in SITL')
        listener.wait(lambda: listener.odometry and listener.odometry[-1].pose.pose.position.z > 9,
                      20, 'the hover in the odometry')
        # Heartbeats tell, before it has climbed. (The listener does not hear of all of the climb.)
        [armed] = [t for t in listener.armed if t]
        hover = listener.odometry[-1].header.stamp
        assert 0.0 < armed / 1e9 < hover.sec
        odometry = listener.odometry[-1]
        assert (odometry.header.frame_id, odometry.child_frame_id) == ('map', 'base_link')
        q = odometry.pose.pose.orientation
        assert q.x ** 2 + q.y ** 2 + q.z ** 2 + q.w ** 2 == pytest.approx(1)
        listener.wait(lambda: listener.entry('wind parameters') is not None
                      and 'SIM_WIND_SPD 8.5' in str(listener.entry('wind parameters')), 10,
                      'the wind in diagnostics')
        assert 'SIM_WIND_SPD 3.25' in str(listener.entry('wind parameters'))
        assert listener.entry('link').level == b'\0'
        assert process.end(number) == 0
        assert 'put back and confirmed' in process.text
        assert 'Traceback' not in process.text
        assert {name: probe.read(name) for name in USERS} == pytest.approx(USERS)


def test_ekf_wind_with_its_error_and_advice(tmp_path):
    with Emulator('--speedup', '10', '--flight', 'hover', '--drag') as emulator, \
            Listener() as listener, \
            bridge(f'connection:={emulator.connection}', f'state_dir:={tmp_path}') as process:
        listener.send(6.0, 270.0)
        listener.wait(lambda: listener.ekf and listener.ekf[-1].phase_name == 'learning', 40,
                      'the learning phase')
        # From the west: the air moves east.
        listener.wait(lambda: listener.ekf[-1].flown_e == pytest.approx(6.0, abs=0.1), 20,
                      'the wind to be flown')
        listener.wait(lambda: listener.ekf[-1].settled and listener.ekf[-1].error_speed < 3.0, 40,
                      'a settled estimate of it')
        message = listener.ekf[-1]
        assert message.flown_n == pytest.approx(0.0, abs=0.1)
        assert message.error_speed == pytest.approx(
            ((message.wind_e - message.flown_e) ** 2
             + (message.wind_n - message.flown_n) ** 2) ** 0.5, abs=1e-6)
        stamps = [m.header.stamp.sec + m.header.stamp.nanosec / 1e9 for m in listener.ekf[-20:]]
        steps = [b - a for a, b in itertools.pairwise(stamps)]
        assert sorted(steps)[len(steps) // 2] == pytest.approx(0.2, abs=0.11)
        assert 'EK3_DRAG' not in listener.call_check()
        emulator.kill()
        listener.wait(lambda: listener.ekf[-1].phase_name == 'unknown', 10,
                      'the phase to be unknown without a vehicle')
        process.end()


def test_a_copter_without_drag_fusion_is_told_what_would_change_it(tmp_path):
    with Emulator('--speedup', '10', '--flight', 'hover') as emulator, Listener() as listener, \
            bridge(f'connection:={emulator.connection}', f'state_dir:={tmp_path}') as process:
        listener.wait(lambda: listener.ekf and listener.ekf[-1].phase_name == 'not_estimated', 20,
                      'the phase not_estimated')
        assert listener.ekf[-1].speed != listener.ekf[-1].speed
        process.wait_for('EKF3 will never estimate wind on this copter')
        assert 'EK3_DRAG_BCOEF_X' in listener.call_check()
        time.sleep(1.5)
        assert process.text.count('EKF3 will never estimate wind on this copter') == 1
        process.end()


def test_it_warns_when_the_vehicle_does_not_feel_the_wind_it_is_given(tmp_path):
    from diagnostic_msgs.msg import DiagnosticStatus
    with Emulator('--speedup', '20', '--flight', 'hover', '--ignore-wind') as emulator, \
            Listener() as listener, \
            bridge(f'connection:={emulator.connection}', f'state_dir:={tmp_path}') as process:
        listener.send(8.0, 250.0)
        listener.wait(lambda: (entry := listener.entry('wind effect')) is not None
                      and entry.level == DiagnosticStatus.WARN, 40,
                      'the warning after a minute of hover')
        assert 'leaning 0.0 degrees into the wind of 8.0 m/s' in listener.entry(
            'wind effect').message
        process.end()
    assert process.text.count('ignores SIM_WIND_*') == 1


def test_a_wind_that_is_none_is_refused_and_the_one_before_stays(tmp_path):
    with Emulator('--speedup', '10') as emulator, Probe(emulator) as probe, \
            Listener() as listener, \
            bridge(f'connection:={emulator.connection}', f'state_dir:={tmp_path}') as process:
        listener.send(5.0, 90.0)
        listener.wait(lambda: probe.read('SIM_WIND_SPD') == 5.0, 20, 'the wind in SITL')
        listener.send(float('nan'), 90.0)
        process.wait_for('sim_wind speed = nan')
        listener.wait(lambda: 'sim_wind speed' in str(listener.entry('wind parameters')), 10,
                      'the refused wind in diagnostics')
        assert probe.read('SIM_WIND_SPD') == 5.0
        process.end()


def test_a_killed_wind_node_leaves_the_mean_wind_and_a_lost_vehicle_an_exit_code(tmp_path):
    with Emulator('--speedup', '5', '--flight', 'hover', *AS_THE_USER_LEFT_IT) as emulator, \
            Probe(emulator) as probe, Listener() as listener, \
            bridge(f'connection:={emulator.connection}', 'publish_clock:=true', 'gust_timeout:=1',
                   f'state_dir:={tmp_path}') as process, \
            Process(['-m', 'dryden_wind_ros.nodes.dryden_wind', '--ros-args', '-r', '__ns:=/v',
                     '-p', 'mean_wind.speed:=8.0', '-p', 'mean_wind.from_direction:=200.0']) as air:
        listener.wait(lambda: abs(probe.read('SIM_WIND_SPD') - 8.0) > 0.05
                      and probe.read('SIM_WIND_TC') < 0.2, 30, 'gusts in SITL')
        air.process.kill()
        process.wait_for('The gust is taken away; the mean wind of 8.0 m/s from 200 deg stays')
        listener.wait(lambda: probe.read('SIM_WIND_SPD') == pytest.approx(8.0, abs=1e-3), 10,
                      'the mean wind in SITL')
        assert probe.read('SIM_WIND_DIR') == pytest.approx(200.0, abs=0.01)
        assert probe.read('SIM_WIND_DIR_Z') == pytest.approx(0.0, abs=0.01)
        listener.wait(lambda: 'no sim_wind for' in str(listener.entry('wind parameters')), 10,
                      'the missing winds in diagnostics')
        assert listener.entry('wind parameters').level == b'\1'
        emulator.kill()
        process.wait_for('connection lost')
        assert process.end() == 1
        assert '(no vehicle there); the values found are kept in' in process.text
        assert 'SIM_WIND_SPD 3.25' in process.text.split('could not put everything back')[1]


@pytest.mark.parametrize(('parameter', 'words'), [
    ('connection:=tcp:127.0.0.1', "connection 'tcp:127.0.0.1': host:port is needed"),
    ('connection:=tcp:192.0.2.1:5762', "parameter 'allow_remote'"),
    ('source_system:=255', 'source_system is 255'),
    ('system_id:=256', 'system_id is 256'),
    ('sim_wind_tc:=0.05', 'sim_wind_tc is 0.05'),
    ('found_in:=port', "found_in is 'port'; it must be one of auto, vehicle, file"),
    ('odometry_rate:=.nan', 'odometry_rate is nan')])
def test_a_bad_parameter_ends_it_with_one_message(parameter, words):
    with bridge(parameter) as process:
        assert process.process.wait(20) == 2
        process._reader.join(5)
        assert words in process.text
        assert len([line for line in process.output if 'FATAL' in line or 'ERROR' in line]) == 1
        assert 'Traceback' not in process.text


def test_an_unknown_parameter_is_reported():
    with bridge('conection:=tcp:127.0.0.1:5762',
                f'connection:=tcp:127.0.0.1:{free_port()}') as process:
        process.wait_for('parameter conection is unknown and has no effect')
        process.wait_for('connection refused')
        assert process.end() == 0


def test_without_the_interfaces_it_says_how_to_build_them(tmp_path):
    (tmp_path / 'dryden_wind_interfaces').mkdir()
    (tmp_path / 'dryden_wind_interfaces' / '__init__.py').write_text('')
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join([
        str(tmp_path), os.environ.get('PYTHONPATH', '')])}
    with Process(['-m', 'dryden_wind_ros.nodes.mavlink_bridge'], environment) as process:
        assert process.process.wait(20) != 0
        process._reader.join(5)
        assert process.text.count('colcon build') == 1
        assert 'Traceback' not in process.text
