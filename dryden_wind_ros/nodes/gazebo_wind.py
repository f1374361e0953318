"""Node ``gazebo_wind``: the wind of one or many vehicles in, Gazebo's wind or forces out.

Two ways, by the parameter ``mode``:

* ``wind``: the world's one wind, over Gazebo Transport (`dryden_wind_ros.gazebo.transport`). For
  one vehicle, or for several that are to share a wind (parameter ``combine``).
* ``wrench``: for each vehicle the drag of its own wind, as a force on one link, over ros_gz_bridge
  (`dryden_wind_ros.gazebo.drag`). ``<enable_wind>`` of the model has to be off, or the wind pushes
  it twice.

At the end the world gets back the wind it was found with, and no force is left.
"""

from __future__ import annotations

import importlib
import math
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import TwistWithCovarianceStamped, Vector3Stamped
from nav_msgs.msg import Odometry
from rclpy.clock import Clock, ClockType
from rclpy.duration import Duration
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.subscription import Subscription

from dryden_wind_ros.gazebo import transport
from dryden_wind_ros.gazebo.drag import SEA_LEVEL_DENSITY, DragModel
from dryden_wind_ros.gazebo.transport import BindingsMissing, Wind, WindLink
from dryden_wind_ros.gazebo.vehicles import Vehicle, parse_vehicles
from dryden_wind_ros.gazebo.world_wind import COMBINATIONS, REFUSE, WorldWind, check_combination
from dryden_wind_ros.gazebo.wrench_cycle import Target, WrenchCycle
from dryden_wind_ros.gusts.frames import body_to_enu
from dryden_wind_ros.nodes import common
from dryden_wind_ros.nodes.common import Parameter

PARAMETERS = (
    Parameter('world', 'dryden_wind', "Name of the Gazebo world: <world name='...'> of its SDF.",
              read_only=True),
    Parameter('mode', 'wind', "'wind': the one wind of the world; 'wrench': for each vehicle the "
              'drag of its own wind, as a force.', choices=('wind', 'wrench'), read_only=True),
    Parameter('vehicles', '', 'Namespaces of the vehicles, separated by commas; in mode wrench '
              'each with its model and canonical link, as in "uav1=iris_1::base_link". Empty in '
              "mode wind: one vehicle in this node's namespace.", read_only=True),
    Parameter('combine', REFUSE, "How several vehicles' winds become the world's one in mode wind: "
              "'leader' that of the first, 'average', 'mean' without gusts, or 'refuse'.",
              choices=COMBINATIONS, read_only=True),
    Parameter('gazebo', transport.AUTO, "Gazebo release whose Python bindings are used; 'auto': "
              'that of the ROS distribution, or whichever is installed.',
              choices=(transport.AUTO, *transport.RELEASES), read_only=True),
    Parameter('drag_area.x', 0.05, 'Drag coefficient times frontal area from the front, m^2, of '
              'each vehicle in mode wrench.', low=0.0, high=1000.0),
    Parameter('drag_area.y', 0.05, 'The same from the side, m^2.', low=0.0, high=1000.0),
    Parameter('drag_area.z', 0.1, 'The same from above, m^2.', low=0.0, high=1000.0),
    Parameter('air_density', SEA_LEVEL_DENSITY, 'Density of the air, kg/m^3.', low=0.0, high=2.0),
)

PATIENCE_S = 5.0
"""Wall time after which silence is reported, and a force that nobody renews is taken away, s."""

ASK_S = 0.2
"""How long the world is given to say what wind it has, s."""

RESTORE_S = 2.0
"""How long is tried at the end to put the world's wind back, s."""

INTERFACES_MISSING = """\
mode:=wrench needs the messages of ros_gz_interfaces, and there is no such Python module. On Ubuntu:
    sudo apt install ros-$ROS_DISTRO-ros-gz-interfaces ros-$ROS_DISTRO-ros-gz-bridge
and source /opt/ros/$ROS_DISTRO/setup.bash again. Without them, mode:=wind gives the world its one
wind through the Python bindings of Gazebo Transport."""

Vector = tuple[float, float, float]


@dataclass
class _Source:
    """What was heard of one vehicle."""

    vehicle: Vehicle
    wind_sub: Subscription
    odom_sub: Subscription | None = None
    odometry: tuple[Vector, tuple[float, float, float, float]] | None = None
    wind_at: float | None = None
    odometry_at: float | None = None
    difference: float = math.nan
    force: Vector | None = None
    cycle: WrenchCycle | None = None
    problem: str = ''
    said: set[str] = field(default_factory=set)


class GazeboWindNode(Node):
    """Gives a Gazebo world, or each of its vehicles, the wind of the wind nodes.

    Parameters
    ----------
    link : dryden_wind_ros.gazebo.transport.WindLink, optional
        The world in mode ``wind``. Default: Gazebo Transport.
    **kwargs
        As for ``rclpy.node.Node``.

    Raises
    ------
    common.BadParameter
        If a parameter is not allowed, or several winds cannot become one.
    common.InterfacesMissing
        If the bindings of Gazebo Transport, or ros_gz_interfaces, are not installed.
    """

    def __init__(self, link: WindLink | None = None, **kwargs: Any) -> None:
        super().__init__('gazebo_wind', **kwargs)
        self.parameters = common.ParameterTable(self, PARAMETERS, apply=self._on_parameters)
        values = self.parameters.values
        self._wrench_mode = values['mode'] == 'wrench'
        try:
            vehicles = parse_vehicles(values['vehicles'], links=self._wrench_mode)
            if not self._wrench_mode:
                check_combination([v.name for v in vehicles], values['combine'])
        except ValueError as error:
            raise common.BadParameter(str(error)) from None
        self._world = values['world']
        self._drag = _drag(values)
        self._started_at = time.monotonic()
        self._sent = 0
        self._found: Wind | None = None
        self._answer: Wind | None = None
        self._recent: deque[Wind] = deque(maxlen=100)
        self._link: WindLink | None = None
        self._world_wind: WorldWind | None = None
        if self._wrench_mode:
            self._begin_wrench()
        else:
            self._begin_wind(vehicles, values, link)
        self._sources = [self._listen(index, v) for index, v in enumerate(vehicles)]
        self._diagnostics_pub = self.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self.create_timer(1.0, self._on_second, clock=Clock(clock_type=ClockType.STEADY_TIME))
        topics = ', '.join(source.wind_sub.topic_name for source in self._sources)
        if self._wrench_mode:
            for source in self._sources:
                self._clear(source)  # one that was killed may have left its force
            self.get_logger().info(
                f'world {self._world}: {topics} as forces of drag; <enable_wind> of the models '
                'must be off')
        else:
            how = f', combined as {values["combine"]}' if len(vehicles) > 1 else ''
            self.get_logger().info(f'world {self._world}: {topics} as its wind{how}')
            self._find()

    def _begin_wind(self, vehicles: Sequence[Vehicle], values: Mapping[str, Any],
                    link: WindLink | None) -> None:
        self._with_mean = values['combine'] == 'mean' and len(vehicles) > 1
        self._world_wind = WorldWind([v.name for v in vehicles], values['combine'])
        try:
            self._link = link or transport.GazeboWorld(self._world, values['gazebo'])
        except BindingsMissing as error:
            raise common.InterfacesMissing(str(error)) from error

    def _begin_wrench(self) -> None:
        self._with_mean = False
        try:
            self._messages: Any = importlib.import_module('ros_gz_interfaces.msg')
        except ImportError as error:
            raise common.InterfacesMissing(INTERFACES_MISSING) from error
        topic = f'/world/{self._world}/wrench'
        self._wrench_pub = self.create_publisher(
            self._messages.EntityWrench, f'{topic}/persistent', common.STREAM_QOS)
        self._clear_pub = self.create_publisher(
            self._messages.Entity, f'{topic}/clear', common.STREAM_QOS)

    def _listen(self, index: int, vehicle: Vehicle) -> _Source:
        # In mode wind only the leader wakes the node; the others are looked up when it speaks.
        polled = common.Polled()
        wakes = self._wrench_mode or index == 0
        message, name = (Vector3Stamped, 'wind/mean') if self._with_mean else (
            TwistWithCovarianceStamped, 'wind')
        source = _Source(vehicle, self.create_subscription(
            message, vehicle.topic(name), lambda newest: self._on_wind(index, newest),
            common.STREAM_QOS, callback_group=None if wakes else polled))
        if self._wrench_mode:
            source.cycle = WrenchCycle(vehicle.model, vehicle.link)
            source.odom_sub = self.create_subscription(
                Odometry, vehicle.topic('odom'), lambda _message: None, common.SENSOR_QOS,
                callback_group=polled)
        return source

    # ------------------------------------------------------------------ inputs

    def _on_parameters(self, values: Mapping[str, Any]) -> None:
        self._drag = _drag(values)

    def _on_wind(self, index: int, message: Any) -> None:
        source = self._sources[index]
        # After a pause only the newest counts: Gazebo takes commands that wait in the wrong order.
        self._take_wind(source, index, _newest(source.wind_sub) or message)
        if not self._wrench_mode:
            self._take_others()
            self._send_world_wind()

    def _take_others(self) -> None:
        for index, source in enumerate(self._sources[1:], start=1):
            newest = _newest(source.wind_sub)
            if newest is not None:
                self._take_wind(source, index, newest)

    def _take_wind(self, source: _Source, index: int, message: Any) -> None:
        vector = message.vector if self._with_mean else message.twist.twist.linear
        wind = (vector.x, vector.y, vector.z)
        try:
            if self._world_wind is not None:
                stamp = message.header.stamp
                self._world_wind.take(index, wind, stamp.sec * 1_000_000_000 + stamp.nanosec)
            else:
                self._send_force(source, wind)
        except ValueError as error:
            source.problem = f'{source.wind_sub.topic_name}: {error}'
            self._say_once(source, 'bad', f'{source.problem}; the message was not used')
            return
        source.wind_at = time.monotonic()
        source.problem = ''
        source.said -= {'bad', 'silent'}

    def _take_odometry(self, source: _Source) -> None:
        assert source.odom_sub is not None
        newest = _newest(source.odom_sub)
        if newest is None:
            return
        q, v = newest.pose.pose.orientation, newest.twist.twist.linear
        orientation = (q.x, q.y, q.z, q.w)
        velocity = body_to_enu(orientation, (v.x, v.y, v.z))
        length = math.hypot(*orientation)
        source.odometry = velocity, (q.x / length, q.y / length, q.z / length, q.w / length)
        source.odometry_at = time.monotonic()
        source.said.discard('no odometry')

    # ------------------------------------------------------------------ the world's wind

    def _find(self) -> None:
        """Ask which wind the world has: the first time, it is the one to be put back."""
        assert self._link is not None
        answer = self._answer = self._link.ask(ASK_S)
        if answer is None or self._found is not None:
            return
        if any(_same(answer, wind) for wind in self._recent):
            self._found = Wind((0.0, 0.0, 0.0))
            self.get_logger().info(f'world {self._world} answers, but has the wind sent to it '
                                   'already: it will be left with none')
        else:
            self._found = answer
            self.get_logger().info(f'world {self._world} was found with {_in_words(answer)}')

    def _send_world_wind(self) -> None:
        assert self._world_wind is not None
        assert self._link is not None
        now = self._world_wind.next()
        if now is None:
            return
        for source, difference in zip(self._sources, now.differences, strict=True):
            source.difference = difference
        wind = Wind(now.wind)
        self._recent.append(wind)
        if self._link.send(wind):
            self._sent += 1

    def _restore_world(self) -> None:
        assert self._link is not None
        if not self._sent:
            return
        found = self._found or Wind((0.0, 0.0, 0.0))
        deadline = time.monotonic() + RESTORE_S
        if not found.enabled:
            # A wind that is switched off stays as it was for LiftDrag and the motor models.
            self._put_back(Wind((0.0, 0.0, 0.0)), deadline)
        if self._put_back(found, deadline):
            text = f'world {self._world} has {_in_words(found)} again'
            if self._found is None:
                text = f'world {self._world} was left with {_in_words(found)}'
            self.get_logger().info(text)
        else:
            self.get_logger().warning(
                f'world {self._world} did not say that it has {_in_words(found)} again: it is gone '
                'or stands still')

    def _put_back(self, wind: Wind, deadline: float) -> bool:
        """Send a wind until the world has it: what waits in its queue may come after it."""
        assert self._link is not None
        while True:
            self._link.send(wind)
            time.sleep(0.05)  # a few physics steps, in which commands before this one are used up
            answer = self._link.ask(ASK_S)
            if answer is not None and _same(answer, wind):
                return True
            if time.monotonic() >= deadline:
                return False

    # ------------------------------------------------------------------ forces

    def _send_force(self, source: _Source, wind: Vector) -> None:
        if not all(map(math.isfinite, wind)):
            raise ValueError(f'wind is {wind} m/s; it must be finite numbers')
        self._take_odometry(source)
        if source.odometry is None:
            return
        velocity, orientation = source.odometry
        source.force = self._drag.force(wind, velocity, orientation)
        assert source.cycle is not None
        turn = source.cycle.turn()
        message = self._messages.EntityWrench(entity=self._entity(turn.add))
        force = message.wrench.force
        force.x, force.y, force.z = source.force
        self._wrench_pub.publish(message)
        self._clear_pub.publish(self._entity(turn.clear))
        self._sent += 1

    def _clear(self, source: _Source) -> None:
        assert source.cycle is not None
        source.force = None
        for target in source.cycle.targets:
            self._clear_pub.publish(self._entity(target))

    def _entity(self, target: Target) -> Any:
        return self._messages.Entity(name=target.name, type=target.kind)

    # ------------------------------------------------------------------ watching

    def _on_second(self) -> None:
        if not self._wrench_mode:
            self._find()
            self._take_others()
        name, now = self.get_fully_qualified_name(), time.monotonic()
        message = DiagnosticArray(status=[self._judge_gazebo(name, now)] + [
            self._judge_source(name, source, now) for source in self._sources])
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics_pub.publish(message)

    def _judge_gazebo(self, name: str, now: float) -> DiagnosticStatus:
        name, values = f'{name}: Gazebo', {'world': self._world, 'sent': self._sent}
        waited = now - self._started_at
        if self._wrench_mode:
            topic = self._wrench_pub.topic_name
            if self._wrench_pub.get_subscription_count():
                return common.status(name, DiagnosticStatus.OK, f'{topic} is listened to', values)
            text = (f'nobody listens on {topic}: start ros_gz_bridge with '
                    'config/gazebo_bridge.yaml of this package, or gazebo.launch.py')
            level = DiagnosticStatus.WARN if waited < PATIENCE_S else DiagnosticStatus.ERROR
            if waited >= PATIENCE_S:
                self._say_once(self._sources[0], 'no bridge', text)
            return common.status(name, level, text, values)
        if self._recent:
            values['wind east, north, up (m/s)'] = ', '.join(
                f'{x:.2f}' for x in self._recent[-1].velocity)
        if self._answer is None:
            text = (f'/world/{self._world}/wind_info does not answer: is Gazebo running, is '
                    f'{self._world} the name of its world, and does that load '
                    'gz-sim-wind-effects-system?')
            if waited < PATIENCE_S:
                return common.status(name, DiagnosticStatus.WARN, text, values)
            self._say_once(self._sources[0], 'no world', text)
            return common.status(name, DiagnosticStatus.ERROR, text, values)
        self._sources[0].said.discard('no world')
        if self._sent and not any(_same(self._answer, wind) for wind in self._recent) \
                and not _same(self._answer, self._found or self._answer):
            text = (f'world {self._world} has {_in_words(self._answer)}, which was not sent from '
                    'here: somebody else sets it too')
            self._say_once(self._sources[0], 'other wind', text)
            return common.status(name, DiagnosticStatus.WARN, text, values)
        self._sources[0].said.discard('other wind')
        return common.status(name, DiagnosticStatus.OK, f'world {self._world} answers', values)

    def _judge_source(self, name: str, source: _Source, now: float) -> DiagnosticStatus:
        name, topic = f'{name}: {source.vehicle.name}', source.wind_sub.topic_name
        values: dict[str, object] = {}
        if source.force is not None:
            values['force east, north, up (N)'] = ', '.join(f'{x:.2f}' for x in source.force)
        if math.isfinite(source.difference):
            values["world's wind minus its own (m/s)"] = f'{source.difference:.2f}'
        if source.problem:
            return common.status(name, DiagnosticStatus.WARN, source.problem, values)
        heard = source.wind_at or self._started_at
        if now - heard >= PATIENCE_S:
            text = f'no wind on {topic} for {now - heard:.0f} s'
            if source.force is not None and self._moves(source, now):
                self._clear(source)
                text += '; its force was taken away, for the vehicle goes on'
            self._say_once(source, 'silent', text)
            return common.status(name, DiagnosticStatus.WARN, text, values)
        if self._wrench_mode and source.odometry is None and source.wind_at is not None \
                and now - self._started_at >= PATIENCE_S:
            assert source.odom_sub is not None
            text = (f'no odometry on {source.odom_sub.topic_name}: without its velocity the '
                    'vehicle gets no force')
            self._say_once(source, 'no odometry', text)
            return common.status(name, DiagnosticStatus.WARN, text, values)
        if source.difference > 0.0 and self._world_wind is not None:
            return common.status(name, DiagnosticStatus.OK,
                                 "feels the world's wind, not its own", values)
        return common.status(name, DiagnosticStatus.OK, f'{topic} is served', values)

    def _moves(self, source: _Source, now: float) -> bool:
        """Whether odometry goes on though the wind has ended; a paused simulation sends neither."""
        try:
            self._take_odometry(source)
        except ValueError:
            return True
        return source.odometry_at is not None and now - source.odometry_at < PATIENCE_S / 2

    def _say_once(self, source: _Source, key: str, text: str) -> None:
        if key not in source.said:
            source.said.add(key)
            self.get_logger().warning(text)

    # ------------------------------------------------------------------ the end

    def close(self) -> None:
        """Give the world back the wind it was found with; leave no force."""
        if not self._wrench_mode:
            self._restore_world()
            return
        for source in self._sources:
            self._clear(source)
        self._clear_pub.wait_for_all_acked(Duration(seconds=1))
        if self._sent:
            self.get_logger().info(f'world {self._world}: all forces are taken away')


def _drag(values: Mapping[str, Any]) -> DragModel:
    return DragModel((values['drag_area.x'], values['drag_area.y'], values['drag_area.z']),
                     values['air_density'])


def _newest(subscription: Subscription) -> Any:
    waiting = list(common.take_all(subscription))
    return waiting[-1] if waiting else None


def _same(one: Wind, other: Wind) -> bool:
    return one.enabled == other.enabled and math.dist(one.velocity, other.velocity) < 1e-6


def _in_words(wind: Wind) -> str:
    east, north, up = wind.velocity
    return (f'wind ({east:g}, {north:g}, {up:g}) m/s east, north, up'
            + ('' if wind.enabled else ', switched off'))


def _close(node: Node) -> None:
    assert isinstance(node, GazeboWindNode)
    node.close()


def _spin_until(stopping: threading.Event, node: Node) -> None:
    """Serve the node in a thread, so that a signal finds ROS still there for the last messages."""
    failures: list[BaseException] = []
    executor = SingleThreadedExecutor()
    executor.add_node(node)

    def serve() -> None:
        try:
            executor.spin()
        except BaseException as error:
            failures.append(error)
            stopping.set()

    thread = threading.Thread(target=serve, name='executor')
    thread.start()
    stopping.wait()
    executor.shutdown()
    thread.join()
    executor.remove_node(node)
    if failures:
        raise failures[0]


def main(args: Sequence[str] | None = None) -> int:
    """Run the node."""
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    return common.run(GazeboWindNode, args, stop=_close, signals=SignalHandlerOptions.NO,
                      rows=PARAMETERS, about=__doc__,
                      spin=lambda node: _spin_until(stopping, node))


if __name__ == '__main__':
    sys.exit(main())
