"""wind_markers, run for real: wind and odometry in, arrows out."""

import contextlib
import importlib.util
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import rclpy
import yaml
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Vector3
from nav_msgs.msg import Odometry
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from support import free_port, wait_until
from visualization_msgs.msg import Marker, MarkerArray

from dryden_wind_interfaces.msg import WindState
from dryden_wind_ros.gusts.field import TurbulenceField
from dryden_wind_ros.nodes import common
from dryden_wind_ros.nodes.wind_markers import NAMES, WindMarkersNode

pytestmark = pytest.mark.ros2

CONFIG = Path(__file__).parents[1] / 'config'

needs_ros2_launch = pytest.mark.skipif(
    shutil.which('ros2') is None or importlib.util.find_spec('launch_ros') is None,
    reason='ros2 launch is not installed')


class Scene:
    """The node, somebody who publishes wind and odometry, and a viewer."""

    def __init__(self, **parameters):
        self.node = WindMarkersNode(
            namespace='painted', parameter_overrides=[
                Parameter(k, value=v) for k, v in ({'rate': 50.0} | parameters).items()])
        self.user = rclpy.create_node('user', namespace='painted')
        self.state_pub = self.user.create_publisher(WindState, 'wind/state', common.STREAM_QOS)
        self.odom_pub = self.user.create_publisher(Odometry, 'odom', common.STREAM_QOS)
        self.arrays = []
        self.user.create_subscription(
            MarkerArray, '/painted/wind/markers', self.arrays.append, 10)
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)
        self.executor.add_node(self.user)
        self.thread = threading.Thread(target=self.executor.spin)
        self.thread.start()
        wait_until(lambda: self.state_pub.get_subscription_count() == 1
                   and self.odom_pub.get_subscription_count() == 1
                   and self.node._markers_pub.get_subscription_count() == 1,
                   10, 'publishers, wind_markers and viewer to find each other')

    def close(self):
        self.executor.shutdown()
        self.thread.join(10)
        self.node.destroy_node()
        self.user.destroy_node()

    def odom(self, x, y, z, frame='map'):
        message = Odometry()
        message.header.frame_id = frame
        p = message.pose.pose.position
        p.x, p.y, p.z = x, y, z
        self.odom_pub.publish(message)
        wait_until(lambda: self.node._odometry == message, 5, 'the odometry to arrive')

    def wind(self, t, mean=(8.0, 0.0, 0.0), gust=(0.0, 1.0, 0.5), height=10.0, frame='map'):
        """Publish a tick of wind and return the markers drawn for it, by namespace."""
        message = WindState(
            t=t, height=height, mean=Vector3(x=mean[0], y=mean[1], z=mean[2]),
            gust=Vector3(x=gust[0], y=gust[1], z=gust[2]), mean_wind_speed=math.hypot(*mean[:2]),
            mean_wind_from_deg=270.0, sigma_u=1.0, sigma_v=1.0, sigma_w=0.5)
        message.header.frame_id = frame
        message.header.stamp = Time(sec=int(t), nanosec=round((t - int(t)) * 1e9))
        self.state_pub.publish(message)
        return wait_until(lambda: next(
            (m for a in reversed(self.arrays) if (m := {x.ns: x for x in a.markers})
             and 'total' in m and m['total'].header.stamp == message.header.stamp), None),
            5, f'markers of t = {t}')


@pytest.fixture
def make_scene():
    rclpy.init()
    made = []

    def make(**parameters):
        made.append(Scene(**parameters))
        return made[-1]
    yield make
    for scene in made:
        scene.close()
    rclpy.try_shutdown()


def xyz(point):
    return point.x, point.y, point.z


def test_arrows_stand_at_the_vehicle_and_add_up_to_the_whole_wind(make_scene):
    scene = make_scene(scale=0.5)
    scene.odom(100.0, 20.0, 30.0)
    drawn = scene.wind(5.0, mean=(8.0, -2.0, 0.0), gust=(1.0, 2.0, -1.0))

    assert tuple(drawn) == NAMES
    assert xyz(drawn['mean'].points[0]) == (100.0, 20.0, 30.0)
    assert xyz(drawn['mean'].points[1]) == (104.0, 19.0, 30.0)
    assert drawn['gust'].points[0] == drawn['mean'].points[1]
    assert xyz(drawn['gust'].points[1]) == (104.5, 20.0, 29.5)
    assert drawn['total'].points[0] == drawn['mean'].points[0]
    assert drawn['total'].points[1] == drawn['gust'].points[1]
    assert {m.header.frame_id for m in drawn.values()} == {'map'}
    assert drawn['label'].text == '8.2 m/s from 270 deg, gust 2.4 m/s'
    assert xyz(drawn['vehicle'].pose.position) == (100.0, 20.0, 30.0)
    assert all(m.color.a > 0 for m in drawn.values())


def test_trails_reach_back_as_long_as_asked_and_begin_anew_when_time_goes_back(make_scene):
    scene = make_scene(trail=2.0)
    for i in range(6):
        scene.odom(float(i), 0.0, 10.0)
        drawn = scene.wind(10.0 + i)
    assert [p.x for p in drawn['path'].points] == [3.0, 4.0, 5.0]
    assert [p.x for p in drawn['trail'].points] == [11.0, 12.0, 13.0]
    assert len(drawn['trail'].colors) == 3
    assert drawn['trail'].colors[0].a < drawn['trail'].colors[-1].a == 1.0

    drawn = scene.wind(1.0)
    assert drawn['trail'].action == Marker.DELETE


def test_a_wind_of_zero_has_no_arrow(make_scene):
    scene = make_scene()
    scene.odom(0.0, 0.0, 5.0)
    drawn = scene.wind(1.0, mean=(0.0, 0.0, 0.0), gust=(0.0, 0.0, 0.0))
    assert [drawn[n].action for n in ('total', 'mean', 'gust')] == [Marker.DELETE] * 3
    assert drawn['label'].action == Marker.ADD


def test_without_odometry_the_wind_is_drawn_at_its_own_height(make_scene):
    drawn = make_scene().wind(3.0, height=42.0, frame='world')
    assert xyz(drawn['total'].points[0]) == (0.0, 0.0, 42.0)
    assert drawn['total'].header.frame_id == 'world'


def test_the_frame_is_the_odometrys_unless_the_parameter_says_otherwise(make_scene):
    scene = make_scene()
    scene.odom(1.0, 2.0, 3.0, frame='odom')
    assert scene.wind(1.0)['total'].header.frame_id == 'odom'
    client = scene.user.create_client(SetParametersAtomically,
                                      'wind_markers/set_parameters_atomically')
    assert client.wait_for_service(10)
    future = client.call_async(SetParametersAtomically.Request(
        parameters=[Parameter('frame_id', value='earth').to_parameter_msg()]))
    wait_until(future.done, 10, 'an answer')
    assert future.result().result.successful
    assert scene.wind(2.0)['total'].header.frame_id == 'earth'


def test_when_the_wind_node_leaves_the_arrows_are_taken_away(make_scene):
    scene = make_scene()
    scene.odom(0.0, 0.0, 5.0)
    scene.wind(1.0)
    scene.user.destroy_publisher(scene.state_pub)
    wait_until(lambda: scene.arrays[-1].markers[0].action == Marker.DELETEALL, 10,
               'the markers to be deleted')


def test_a_bad_scale_is_refused_with_what_is_allowed():
    run = subprocess.run(
        [sys.executable, '-m', 'dryden_wind_ros.nodes.wind_markers', '--ros-args', '-p',
         'scale:=0.0'], capture_output=True, text=True, timeout=120)
    assert run.returncode == 2
    assert 'scale is 0.0; it must be a number from above 0 to 100' in run.stderr
    assert 'Traceback' not in run.stderr


def test_after_a_signal_in_the_middle_of_drawing_a_node_can_still_draw():
    run = subprocess.run(
        [sys.executable, '-c', 'import os, signal, sys\n'
         'from dryden_wind_ros import ending\n'
         'from dryden_wind_ros.nodes import common\n'
         'from dryden_wind_ros.nodes.wind_markers import WindMarkersNode\n'
         'def spin(node):\n'
         '    os.kill(os.getpid(), signal.SIGTERM)\n'
         '    while not ending.told():\n'
         '        node.clear()\n'
         '    node.clear()\n'
         'sys.exit(common.run(WindMarkersNode, [], spin=spin))'],
        capture_output=True, text=True, timeout=120)
    assert 'Traceback' not in run.stderr
    assert run.returncode == 0


def test_the_rviz_configuration_shows_the_markers_of_its_own_namespace():
    config = yaml.safe_load((CONFIG / 'dryden_wind.rviz').read_text())['Visualization Manager']
    displays = {d['Class']: d for d in config['Displays']}
    wind = displays['rviz_default_plugins/MarkerArray']
    assert wind['Topic']['Value'] == 'wind/markers'  # relative: resolved in the node's namespace
    assert set(wind['Namespaces']) == set(NAMES)
    # Nothing else listens to a topic that only one namespace has.
    assert all('Topic' not in d for name, d in displays.items() if d is not wind)
    assert config['Global Options']['Fixed Frame'] == 'map'


# ------------------------------------------------------------------------------ the launch file


@contextlib.contextmanager
def launched(*arguments, **environment):
    """Run the launch file, without any vehicle to be found."""
    process = subprocess.Popen(
        ['ros2', 'launch', 'dryden_wind_ros', 'sitl.launch.py', f'connection:=tcp:127.0.0.1:'
         f'{free_port()}', *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=os.environ | environment)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=120)
        finally:
            process.kill()


def with_rviz2(prefix, said):
    """Install a package rviz2 whose program writes down how it was called."""
    program = prefix / 'lib' / 'rviz2' / 'rviz2'
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {said}.new\nmv {said}.new {said}\n'
                       'exec sleep 60\n')
    program.chmod(0o755)
    marker = prefix / 'share' / 'ament_index' / 'resource_index' / 'packages' / 'rviz2'
    marker.parent.mkdir(parents=True)
    marker.touch()
    return f'{prefix}{os.pathsep}{os.environ["AMENT_PREFIX_PATH"]}'


@needs_ros2_launch
def test_rviz_is_started_in_the_vehicles_namespace_with_the_markers_beside_it(tmp_path):
    said = tmp_path / 'arguments'
    path = with_rviz2(tmp_path / 'prefix', said)
    rclpy.init()
    node = rclpy.create_node('looking_on')
    try:
        with launched('namespace:=drone1', 'rviz:=true', AMENT_PREFIX_PATH=path):
            wait_until(said.exists, 30, 'rviz2 to be started')
            arguments = said.read_text().split('\n')
            assert arguments[0] == '-d'
            assert Path(arguments[1]).name == 'dryden_wind.rviz'
            assert Path(arguments[1]).is_file()
            assert '__ns:=/drone1' in arguments
            wait_until(lambda: node.count_publishers('/drone1/wind/markers'), 30,
                       'wind_markers to publish in the namespace')
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


@needs_ros2_launch
def test_where_rviz_is_not_installed_the_launch_file_says_so_and_starts_nothing():
    if shutil.which('rviz2'):
        pytest.skip('RViz is installed')
    with launched('rviz:=true') as process:
        output = process.communicate(timeout=120)[0]
    assert process.returncode != 0
    assert 'the package rviz2 is not installed' in output
    assert 'wind_top' in output
    assert 'process started' not in output


def test_a_slice_of_the_field_around_the_vehicle_is_drawn_as_arrows(make_scene):
    scene = make_scene(slice='vertical', slice_size=8.0, slice_spacing=4.0, scale=2.0)
    scene.odom(1.0, 2.0, 30.0)
    message = WindState(
        t=5.0, height=30.0, mean=Vector3(x=8.0), gusts='field', seed=7, field_spectrum='dryden',
        field_modes=512, field_life=0.5, severity='light', scale=1.0, drift=Vector3(x=40.0),
        age=0.1, sigma_u=1.0, sigma_v=1.0, sigma_w=0.5)
    message.header.stamp = Time(sec=5)
    scene.state_pub.publish(message)
    drawn = wait_until(lambda: next((
        m for a in reversed(scene.arrays) for m in a.markers if m.ns == 'slice' and m.points),
        None), 5, 'the slice')
    assert drawn.type == Marker.LINE_LIST
    # Three by three places, whole multiples of 4 m around the vehicle, three lines each.
    assert len(drawn.points) == len(drawn.colors) == 9 * 6
    start, tip = drawn.points[0], drawn.points[1]
    assert (start.x, start.y, start.z) == (-4.0, 2.0, 28.0)
    gust = TurbulenceField(7, modes=512).gust(
        [[-4.0, 2.0, 28.0]], 0.0, (8.0, 0.0, 0.0), drift=(40.0, 0.0, 0.0), age=0.1)[0]
    assert (tip.x - start.x, tip.y - start.y, tip.z - start.z) == pytest.approx(
        tuple(2.0 * gust), abs=1e-4)
