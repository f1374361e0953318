"""gazebo_wind in a real ROS graph.

Gazebo is not here, and its Python bindings cannot be had from PyPI or Debian: that alone is why the
world of mode wind is a `Recorder` in its place. It behaves as gz-sim 8's WindEffects does with what
it is sent. Mode wrench speaks ROS only, and is run with the messages of ros_gz_interfaces where
they are installed.
"""

import importlib.util
import itertools
import math
import signal
import threading

import pytest
import rclpy
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import TwistWithCovarianceStamped, Vector3Stamped
from nav_msgs.msg import Odometry
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from support import wait_until
from support.processes import Program

from dryden_wind_ros.gazebo.transport import Scene as SceneNames
from dryden_wind_ros.gazebo.transport import Wind
from dryden_wind_ros.gusts.field import TurbulenceField
from dryden_wind_ros.nodes import common
from dryden_wind_ros.nodes.dryden_wind import DrydenWindNode
from dryden_wind_ros.nodes.gazebo_wind import GazeboWindNode

pytestmark = pytest.mark.ros2

MODULE = 'dryden_wind_ros.nodes.gazebo_wind'
needs_ros_gz = pytest.mark.skipif(
    importlib.util.find_spec('ros_gz_interfaces') is None,
    reason='ros_gz_interfaces is not installed (a package of ROS 2, not on PyPI)')
needs_no_gz = pytest.mark.skipif(
    importlib.util.find_spec('gz') is not None, reason='the bindings of Gazebo are installed')


class Recorder:
    """A Gazebo world, as far as its wind goes: WindLink without a Gazebo."""

    def __init__(self, wind=None, steps=True):
        self.wind = wind or Wind((0.0, 0.0, 0.0))
        self.sent = []
        self.steps = steps
        self._waiting = []

    def send(self, wind):
        self.sent.append(wind)
        self._waiting.append(wind)
        return True

    def ask(self, timeout):
        if not self.steps:
            return None
        # One command a physics step, the newest first; between two questions many steps pass.
        while self._waiting:
            self.wind = self._waiting.pop()
        return self.wind


class Scene:
    """The node, and somebody who publishes wind and odometry and watches."""

    def __init__(self, link=None, namespace='', scene=None, **parameters):
        self.sim_time = 0.0
        self.node = GazeboWindNode(link, scene, namespace=namespace, parameter_overrides=[
            Parameter(name, value=value) for name, value in parameters.items()])
        self.user = rclpy.create_node('user')
        self.diagnostics = {}
        self.user.create_subscription(DiagnosticArray, '/diagnostics', self._on_diagnostics, 10)
        self.publishers = {}
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)
        self.executor.add_node(self.user)
        self.thread = threading.Thread(target=self.executor.spin)
        self.thread.start()

    def _on_diagnostics(self, message):
        self.diagnostics |= {s.name: s for s in message.status}

    def publish(self, kind, topic, message):
        if topic not in self.publishers:
            made = self.publishers[topic] = self.user.create_publisher(
                kind, topic, common.STREAM_QOS)
            wait_until(lambda: made.get_subscription_count() > 0, 10, f'a reader of {topic}')
        self.publishers[topic].publish(message)

    def wind(self, topic, east, north, up=0.0, t=1.0):
        message = TwistWithCovarianceStamped()
        message.header.stamp = Time(sec=int(t), nanosec=round(t % 1 * 1e9))
        v = message.twist.twist.linear
        v.x, v.y, v.z = east, north, up
        self.publish(TwistWithCovarianceStamped, topic, message)

    def odom(self, topic, forward, step=0.5):
        """The vehicle points north and moves forward; sim time goes on by a step, s."""
        message = Odometry()
        self.sim_time += step
        message.header.stamp = Time(
            sec=int(self.sim_time), nanosec=round(self.sim_time % 1 * 1e9))
        q = message.pose.pose.orientation
        q.z = q.w = math.sqrt(0.5)
        message.twist.twist.linear.x = forward
        self.publish(Odometry, topic, message)

    def odom_until(self, condition, what, topic, forward, then=lambda: None):
        """Publish odometry (best effort: one message may be lost) until a condition holds."""
        def again():
            self.odom(topic, forward)
            then()
            return condition()
        return wait_until(again, 20, what, interval=0.1)

    def judged(self, what, level, words, timeout=120):
        name = f'{self.node.get_fully_qualified_name()}: {what}'
        return wait_until(
            lambda: (s := self.diagnostics.get(name)) and s.level == level and words in s.message,
            timeout, f'{name} at level {level} with {words!r}')

    def close(self):
        self.node.close()
        self.executor.shutdown()
        self.thread.join(10)
        self.node.destroy_node()
        self.user.destroy_node()


@pytest.fixture
def make_scene():
    rclpy.init()
    made = []

    def make(*args, **parameters):
        made.append(Scene(*args, **parameters))
        return made[-1]
    yield make
    for scene in made:
        scene.close()
    rclpy.try_shutdown()


# ---------------------------------------------------------------------- mode wind

def test_the_world_gets_each_tick_of_the_wind_switched_on_and_the_old_wind_back(make_scene):
    world = Recorder(Wind((1.0, 2.0, 0.0)))
    scene = make_scene(world, namespace='/uav')
    for tick in range(20):
        scene.wind('/uav/wind', 8.0 + 0.1 * tick, -1.0, 0.25, t=0.05 * tick)
        wait_until(lambda: len(world.sent) == tick + 1, 5, f'tick {tick} in the world')  # noqa: B023
        assert world.sent[-1] == Wind((8.0 + 0.1 * tick, -1.0, 0.25), enabled=True)
    scene.judged('Gazebo', DiagnosticStatus.OK, 'answers')

    def told():
        return {v.key: v.value for v in scene.diagnostics['/uav/gazebo_wind: Gazebo'].values}
    wait_until(lambda: told()['seen in the world'] == '20', 20,
               lambda: f'all 20 to be seen in the world; told are {told()}')
    values = told()
    assert float(values['delay (ms of wall time)']) < 1000.0
    scene.node.close()
    assert world.ask(0.1) == Wind((1.0, 2.0, 0.0))


@pytest.mark.parametrize('air', ['field', 'scenario'])
def test_the_air_of_a_field_and_of_a_scenario_blows_in_the_world(make_scene, tmp_path, air):
    """With a real wind node, at a place where the vehicle stands still."""
    place = (20.0, -10.0, 15.0)
    scenario = tmp_path / 'rising.yaml'
    scenario.write_text('clock: boot\nwind: {speed: 4, from: 270}\n'
                        'changes:\n  - {at: 1, over: 10, speed: 14}\n')
    settings = {'gusts': 'field', 'mean_wind.speed': 8.0, 'seed': 5, 'field.modes': 256,
                'field.life': 0.0, 'field.lead': 0.0} if air == 'field' else {
                    'gusts': 'off', 'scenario': str(scenario)}
    world = Recorder()
    scene = make_scene(world, namespace='/uav')
    node = DrydenWindNode(namespace='/uav', parameter_overrides=[
        Parameter(name, value=value) for name, value in settings.items()])
    scene.executor.add_node(node)
    try:
        odometry, clock = Odometry(), Clock()
        position = odometry.pose.pose.position
        position.x, position.y, position.z = place
        odometry.pose.pose.orientation.w = 1.0
        for tick in range(30, 80):
            for stamp in (odometry.header.stamp, clock.clock):
                stamp.sec, stamp.nanosec = divmod(tick * 50_000_000, 1_000_000_000)
            scene.publish(Odometry, '/uav/odom', odometry)
            scene.publish(Clock, '/uav/clock', clock)
            wait_until(lambda: world.sent, 20, 'the first wind in the world')
        t = 79 * 0.05
        gust = TurbulenceField(5, modes=256, life=0.0).gust([place], t, (8.0, 0.0, 0.0))[0]
        wanted = (8.0 + gust[0], gust[1], gust[2]) if air == 'field' else (
            4.0 + (t - 1.0), 0.0, 0.0)
        wait_until(lambda: world.sent[-1].velocity == pytest.approx(wanted, abs=1e-4), 20,
                   lambda: f'{wanted} in the world; it has {world.sent[-1]}')
        assert air == 'scenario' or max(map(abs, gust)) > 0.1
    finally:
        scene.executor.remove_node(node)
        node.destroy_node()


def test_a_wind_that_was_off_is_off_again_and_still(make_scene):
    world = Recorder(Wind((3.0, 0.0, 0.0), enabled=False))
    scene = make_scene(world)
    scene.wind('/wind', 8.0, 0.0)
    wait_until(lambda: world.sent, 5, 'the wind in the world')
    scene.node.close()
    # First none, still switched on: LiftDrag would go on feeling the last wind otherwise. It is
    # sent again where the tick before it, which waited too, came after it.
    none, found = Wind((0.0, 0.0, 0.0)), Wind((3.0, 0.0, 0.0), enabled=False)
    assert list(dict.fromkeys(world.sent[1:])) == [none, found]
    assert world.ask(0.1) == found


def test_a_world_that_answers_late_is_left_without_wind(make_scene):
    world = Recorder(Wind((0.0, 0.0, 0.0)), steps=False)
    scene = make_scene(world)
    scene.wind('/wind', 8.0, 0.0)
    scene.judged('Gazebo', DiagnosticStatus.ERROR, 'is Gazebo running')
    wait_until(lambda: world.sent, 15, 'the wind to be sent')
    world.steps = True
    scene.judged('Gazebo', DiagnosticStatus.OK, 'answers')
    scene.node.close()
    assert world.ask(0.1) == Wind((0.0, 0.0, 0.0))


def test_nothing_is_changed_in_a_world_when_no_wind_came(make_scene):
    world = Recorder(Wind((1.0, 0.0, 0.0)))
    scene = make_scene(world)
    scene.node.close()
    assert world.sent == []


def test_somebody_elses_wind_in_the_world_is_reported(make_scene):
    world = Recorder()
    scene = make_scene(world)
    scene.wind('/wind', 8.0, 0.0)
    scene.judged('Gazebo', DiagnosticStatus.OK, 'answers')
    world.wind = Wind((0.0, 5.0, 0.0))
    scene.judged('Gazebo', DiagnosticStatus.WARN, 'somebody else')


def test_the_leaders_wind_is_everybodys_and_the_others_are_told(make_scene):
    world = Recorder()
    scene = make_scene(world, vehicles='a, b', combine='leader')
    scene.wind('/b/wind', 4.0, 3.0)
    scene.judged('b', DiagnosticStatus.OK, 'served')  # heard, though it wakes nobody
    scene.wind('/a/wind', 4.0, 0.0)
    wait_until(lambda: world.sent, 5, 'the wind in the world')
    assert world.sent == [Wind((4.0, 0.0, 0.0))]
    told = scene.judged('b', DiagnosticStatus.OK, "the world's wind, not its own")
    assert told is True
    values = {v.key: v.value for v in scene.diagnostics['/gazebo_wind: b'].values}
    assert values["world's wind minus its own (m/s)"] == '3.00'


def test_mean_winds_are_taken_from_the_topic_of_the_mean_wind(make_scene):
    world = Recorder()
    scene = make_scene(world, vehicles='a, b', combine='mean')
    for name, east in (('b', 6.0), ('a', 10.0)):
        message = Vector3Stamped()
        message.header.stamp.sec = 1
        message.vector.x = east
        scene.publish(Vector3Stamped, f'/{name}/wind/mean', message)
        scene.judged(name, DiagnosticStatus.OK, '')
    wait_until(lambda: world.sent, 5, 'the wind in the world')
    assert world.sent[-1].velocity in ((8.0, 0.0, 0.0), (10.0, 0.0, 0.0))
    message.header.stamp.sec = 2
    scene.publish(Vector3Stamped, '/a/wind/mean', message)
    wait_until(lambda: world.sent[-1].velocity == (8.0, 0.0, 0.0), 5, 'the mean of both')


def test_a_wind_that_is_not_a_number_does_not_reach_the_world(make_scene):
    world = Recorder()
    scene = make_scene(world)
    scene.wind('/wind', math.nan, 0.0)
    scene.judged('the vehicle', DiagnosticStatus.WARN, 'must be finite')
    assert world.sent == []


# ---------------------------------------------------------------------- mode wrench

VEHICLES = 'a=iris_1::base_link, b=iris_2::base_link'


class Bridge:
    """What ros_gz_bridge would hear."""

    def __init__(self, scene, world='dryden_wind'):
        from ros_gz_interfaces.msg import Entity, EntityWrench
        self.wrenches, self.clears = [], []
        topic = f'/world/{world}/wrench'
        scene.user.create_subscription(
            EntityWrench, f'{topic}/persistent', self.wrenches.append, common.STREAM_QOS)
        scene.user.create_subscription(
            Entity, f'{topic}/clear', self.clears.append, common.STREAM_QOS)
        forces = scene.node._forces
        wait_until(lambda: forces._wrench_pub.get_subscription_count()
                   and forces._clear_pub.get_subscription_count(), 10, 'the bridge to be found')

    def of(self, model):
        return [w for w in self.wrenches if w.entity.name.split('::')[0] == model]


@needs_ros_gz
def test_each_vehicle_gets_the_drag_of_its_own_wind(make_scene):
    scene = make_scene(mode='wrench', vehicles=VEHICLES, **{
        'drag_area.x': 0.02, 'drag_area.y': 0.1, 'air_density': 1.0})
    bridge = Bridge(scene)
    scene.odom_until(lambda: bridge.of('iris_1'), 'a force on a', '/a/odom', 4.0,
                     lambda: scene.wind('/a/wind', 3.0, 0.0))
    scene.odom_until(lambda: bridge.of('iris_2'), 'a force on b', '/b/odom', 0.0,
                     lambda: scene.wind('/b/wind', 0.0, -10.0))
    # a: air (3, -4) m/s relative to it; 0.5 x 5 x 0.1 x 3 east, 0.5 x 5 x 0.02 x -4 north.
    # b: 0.5 x 10 x 0.02 x -10 north.
    forces = {w.entity.name.split('::')[0]: (w.wrench.force.x, w.wrench.force.y)
              for w in bridge.wrenches}
    assert forces['iris_1'] == pytest.approx((0.75, -0.2))
    assert forces['iris_2'] == pytest.approx((0.0, -1.0))


@needs_ros_gz
def test_the_force_of_the_tick_before_is_cleared_and_all_at_the_end(make_scene):
    scene = make_scene(mode='wrench', vehicles='a=iris::base_link')
    bridge = Bridge(scene)
    scene.odom_until(lambda: bridge.wrenches, 'a force', '/a/odom', 0.0,
                     lambda: scene.wind('/a/wind', 8.0, 0.0, t=0.0))
    for tick in range(1, 5):
        count = len(bridge.wrenches)
        scene.wind('/a/wind', 8.0, 0.0, t=0.05 * tick)
        wait_until(lambda: len(bridge.wrenches) > count, 5, f'tick {tick}')  # noqa: B023
    added = [(w.entity.name, w.entity.type) for w in bridge.wrenches]
    assert set(added) == {('iris::base_link', 3), ('iris', 2)}
    assert all(one != other for one, other in itertools.pairwise(added))
    # In each tick the other name is cleared, the one that got the force before.
    wait_until(lambda: [(e.name, e.type) for e in bridge.clears][-len(added) + 1:] == added[:-1], 5,
               'the forces before to be cleared')
    bridge.clears.clear()
    scene.node.close()
    wait_until(lambda: {e.name for e in bridge.clears} == {'iris', 'iris::base_link'}, 5,
               'both names to be cleared')


@needs_ros_gz
def test_no_force_without_odometry_and_none_after_the_wind_node_has_gone(make_scene):
    scene = make_scene(mode='wrench', vehicles='a=iris::base_link')
    bridge = Bridge(scene)
    scene.wind('/a/wind', 8.0, 0.0)
    scene.judged('a', DiagnosticStatus.WARN, 'without its velocity')
    assert bridge.wrenches == []
    scene.odom_until(lambda: bridge.wrenches, 'a force', '/a/odom', 0.0,
                     lambda: scene.wind('/a/wind', 8.0, 0.0, t=2.0))
    # A pause: nothing comes for longer than patience, then odometry a little before the next wind.
    bridge.clears.clear()
    scene.judged('a', DiagnosticStatus.WARN, 'no wind on')
    scene.odom('/a/odom', 1.0, step=0.02)
    scene.judged('a', DiagnosticStatus.WARN, 'no wind on')
    assert scene.node._sources[0].force.newest is not None
    scene.odom_until(lambda: {e.name for e in bridge.clears} == {'iris', 'iris::base_link'},
                     'the force to be taken away', '/a/odom', 1.0)


class Contents:
    """What there is in a world: SceneLink without a Gazebo."""

    def __init__(self):
        self.names = SceneNames(frozenset({'ground'}), frozenset({'ground::link'}))

    def scene(self, timeout):
        return self.names

    def topics(self):
        return frozenset({'/clock'})


@needs_ros_gz
def test_a_model_that_the_world_does_not_have_gets_no_force_until_it_is_spawned(make_scene):
    contents = Contents()
    scene = make_scene(mode='wrench', vehicles='a=iris::base_link', scene=contents)
    bridge = Bridge(scene)
    scene.judged('a', DiagnosticStatus.ERROR, "no model 'iris'; it has ground")
    scene.odom_until(lambda: scene.node._sources[0].force.moves, 'odometry to be heard', '/a/odom',
                     0.0, lambda: scene.wind('/a/wind', 8.0, 0.0))
    assert bridge.wrenches == []
    contents.names = SceneNames(frozenset({'iris'}), frozenset({'iris::base_link'}))
    scene.odom_until(lambda: bridge.wrenches, 'a force on the spawned model', '/a/odom', 0.0,
                     lambda: scene.wind('/a/wind', 8.0, 0.0))


@needs_ros_gz
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_no_force_behind(make_scene, tmp_path, number):
    scene = make_scene(Recorder(), namespace='/unused')
    from ros_gz_interfaces.msg import Entity
    clears = []
    scene.user.create_subscription(
        Entity, '/world/dryden_wind/wrench/clear', clears.append, common.STREAM_QOS)
    program = Program(tmp_path / 'log', MODULE, '--ros-args', '-p', 'mode:=wrench', '-p',
                      'vehicles:=a=iris::base_link')
    try:
        scene.odom_until(lambda: program.alive() and clears, 'a force, and a name cleared',
                         '/a/odom', 0.0, lambda: scene.wind('/a/wind', 8.0, 0.0))
        clears.clear()
        program.signal(number)
        assert program.wait() == 0
        assert 'all forces are taken away' in program.text
        wait_until(lambda: {e.name for e in clears} == {'iris', 'iris::base_link'}, 5,
                   'both names to be cleared')
    finally:
        program.kill()


# ---------------------------------------------------------------------- what cannot be

@pytest.mark.parametrize(('parameters', 'words'), [
    (['vehicles:=a,b'], 'a Gazebo world has one wind'),
    (['mode:=wrench', 'vehicles:=a=iris'], 'does not say which link'),
    (['mode:=wrench'], 'does not say which link'),
    (['vehicles:=a,a'], "the namespace 'a' is in it twice"),
    (['mode:=storm'], "mode is 'storm'; it must be one of wind, wrench"),
    (['drag_area.x:=-1.0'], 'drag_area.x is -1.0; it must be a number from 0 to 1000')])
def test_a_bad_parameter_ends_it_with_one_message(tmp_path, parameters, words):
    arguments = [part for parameter in parameters for part in ('-p', parameter)]
    program = Program(tmp_path / 'log', MODULE, '--ros-args', *arguments)
    assert program.wait(20) == 2
    assert words in program.text
    assert 'Traceback' not in program.text


@needs_no_gz
def test_without_the_bindings_it_says_what_to_install(tmp_path):
    program = Program(tmp_path / 'log', MODULE)
    assert program.wait(20) == 2
    for package in ('python3-gz-transport13', 'python3-gz-msgs10'):
        assert package in program.text
    assert 'mode:=wrench' in program.text


@pytest.mark.skipif(importlib.util.find_spec('ros_gz_interfaces') is not None,
                    reason='ros_gz_interfaces is installed')
def test_without_ros_gz_interfaces_it_says_what_to_install(tmp_path):
    program = Program(tmp_path / 'log', MODULE, '--ros-args', '-p', 'mode:=wrench', '-p',
                      'vehicles:=a=iris::base_link')
    assert program.wait(20) == 2
    assert 'ros-$ROS_DISTRO-ros-gz-interfaces' in program.text
