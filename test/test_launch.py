"""The launch files with the real launch packages: what a user types, and how it ends."""

import os
import signal
import socket
import subprocess
import time

import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor
from support import wait_until

from dryden_wind_interfaces.msg import WindState
from dryden_wind_ros.nodes import common

pytestmark = [pytest.mark.ros2, pytest.mark.ros2launch]


def free_instance():
    """Return a SITL instance whose ports are free."""
    for instance in range(100 + os.getpid() % 400, 900):
        try:
            for port in range(5760 + 10 * instance, 5790 + 10 * instance):
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(('127.0.0.1', port))
        except OSError:
            continue
        return instance
    raise AssertionError('no SITL instance with free ports')


class Launched:
    """``ros2 launch`` in a process group of its own, as in a terminal."""

    def __init__(self, folder, *arguments):
        self.log = folder / 'launch.log'
        with self.log.open('wb') as output:
            self.process = subprocess.Popen(
                ['ros2', 'launch', 'dryden_wind_ros', *arguments], stdout=output,
                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
                cwd=folder)

    @property
    def text(self):
        return self.log.read_text(errors='replace')

    def ctrl_c(self):
        """Do what a terminal does: SIGINT to everybody in the group."""
        os.killpg(self.process.pid, signal.SIGINT)
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            raise AssertionError(f'launch did not end:\n{self.text[-3000:]}') from None

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(10)


@pytest.fixture
def launch(tmp_path):
    launched = []

    def start(*arguments):
        launched.append(Launched(tmp_path, *arguments))
        return launched[-1]
    yield start
    for each in launched:
        each.close()


def hear(topics, count, launched):
    """Return `count` WindState messages of each topic."""
    rclpy.init()
    node = rclpy.create_node('launch_user')
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    heard = {topic: [] for topic in topics}
    for topic in topics:
        node.create_subscription(WindState, topic, heard[topic].append, common.STREAM_QOS)

    def enough():
        executor.spin_once(timeout_sec=0.05)
        assert launched.process.poll() is None, launched.text[-3000:]
        return all(len(states) >= count for states in heard.values())
    try:
        wait_until(enough, 60, f'{count} ticks on each of {", ".join(topics)}', interval=0.0)
    finally:
        node.destroy_node()
        rclpy.try_shutdown()
    return heard


def test_one_vehicle_flies_in_gusts_and_ctrl_c_leaves_everything_as_it_was(launch):
    launched = launch(
        'sitl.launch.py', 'emulator:=true', f'instance:={free_instance()}', 'mean_wind_speed:=8',
        'gusts:=dryden', 'seed:=7', 'namespace:=scout',
        'emulator_arguments:=--flight hover --speedup 4 --param SIM_WIND_SPD=2')
    states = hear(['/scout/wind/state'], 60, launched)['/scout/wind/state']
    assert {(s.seed, s.mean_wind_speed, s.gusts) for s in states} == {(7, 8.0, 'dryden')}
    assert any(s.u != 0.0 for s in states)
    assert launched.ctrl_c() == 0
    assert 'put back and confirmed' in launched.text
    assert 'SIM_WIND_SPD 2' in launched.text.split('put back and confirmed')[1]
    assert 'Traceback' not in launched.text
    assert 'process has died' not in launched.text


@pytest.mark.parametrize('processes', ['auto', '2'])
def test_three_vehicles_from_one_file(launch, processes):
    launched = launch(
        'multi_vehicle.launch.py', 'vehicles:=3', 'emulator:=true',
        f'first_instance:={free_instance()}', 'mean_wind_speed:=6', 'seed:=2',
        f'processes:={processes}', 'gusts:=field', 'origin:=-35.363262, 149.165237, 584')
    heard = hear([f'/vehicle_{i}/wind/state' for i in (1, 2, 3)], 30, launched)
    for states in heard.values():
        newest = states[-1]
        assert (newest.origin_latitude, newest.origin_longitude) == (-35.363262, 149.165237)
        assert newest.seed == 2  # one air for all, however many processes
    assert launched.ctrl_c() == 0
    assert launched.text.count('put back and confirmed') == 3
    assert 'Traceback' not in launched.text
    if processes == '2':
        assert '3 of 3 vehicles in 2 processes ended well' in launched.text


def test_a_running_vehicle_is_found_by_its_connection(launch, tmp_path):
    instance = free_instance()
    vehicle = launch('sitl.launch.py', 'emulator:=true', f'instance:={instance}',
                     'namespace:=first', 'mean_wind_speed:=3')
    hear(['/first/wind/state'], 5, vehicle)
    (tmp_path / 'second').mkdir()
    second = Launched(tmp_path / 'second', 'sitl.launch.py',
                      f'connection:=tcp:127.0.0.1:{5763 + 10 * instance}', 'namespace:=second',
                      'mean_wind_speed:=5')
    try:
        # The clock and the air are there, but the vehicle belongs to the first bridge.
        hear(['/second/wind/state'], 5, second)
        wait_until(lambda: 'another bridge' in second.text.lower(), 20,
                   'the second bridge to be told of the first')
        assert second.ctrl_c() == 0
    finally:
        second.close()
    assert vehicle.ctrl_c() == 0
    assert 'put back and confirmed' in vehicle.text


@pytest.mark.parametrize(('arguments', 'named'), [
    (['mean_wind_speed:=strong'], "launch argument mean_wind_speed is 'strong'"),
    (['seed:=1.5'], "launch argument seed is '1.5'"),
    (['gusts:=gale'], 'gusts'),
    (['params_file:=/no/such.yaml'], "params_file is '/no/such.yaml'"),
    (['emulator:=true', 'sitl_command:=x'], 'exclude each other'),
    (['instance:=-1'], "instance is '-1'"),
    (['mean_wind_speed:=80'], "mean_wind_speed is '80'; it must be a number from 0 to 60")])
def test_a_bad_argument_is_named_and_nothing_is_started(launch, arguments, named):
    launched = launch('sitl.launch.py', *arguments)
    assert launched.process.wait(30) == 1
    assert named in launched.text
    assert 'process started' not in launched.text


def test_a_node_that_cannot_start_ends_the_launch_with_its_reason(launch):
    begun = time.monotonic()
    launched = launch('sitl.launch.py', 'connection:=tcp:nowhere', 'mean_wind_speed:=8')
    launched.process.wait(30)
    assert time.monotonic() - begun < 30
    assert 'tcp:nowhere' in launched.text
    assert 'Traceback' not in launched.text
