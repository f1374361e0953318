"""Node ``gazebo_wind``: the wind of one or many vehicles in, Gazebo's wind or forces out.

Two ways, by the parameter ``mode``:

* ``wind``: the world's one wind, over Gazebo Transport (`dryden_wind_ros.gazebo.transport`). For
  one vehicle, or for several that are to share a wind (parameter ``combine``).
* ``wrench``: for each vehicle the drag of its own wind, as a force on one link, over ros_gz_bridge
  (`dryden_wind_ros.gazebo.drag`). ``<enable_wind>`` of the model has to be off, or the wind pushes
  it twice.

At the end the world gets back the wind it was found with, and no force is left. The wind that the
world really has is published as ``world_wind`` in mode ``wind``.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import TwistWithCovarianceStamped, Vector3Stamped
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.subscription import Subscription

from dryden_wind_ros.gazebo import transport
from dryden_wind_ros.gazebo.drag import SEA_LEVEL_DENSITY
from dryden_wind_ros.gazebo.transport import BindingsMissing, SceneLink, WindLink
from dryden_wind_ros.gazebo.vehicles import Vehicle, parse_vehicles
from dryden_wind_ros.gazebo.world_name import check_world
from dryden_wind_ros.gazebo.world_wind import COMBINATIONS, REFUSE, WorldWind, check_combination
from dryden_wind_ros.gazebo.world_writer import WorldWriter, in_words
from dryden_wind_ros.nodes import common
from dryden_wind_ros.nodes.common import Parameter
from dryden_wind_ros.nodes.gazebo_forces import Force, Forces

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
    Parameter('turn_area.x', 0.0, 'Mode wrench: second moment of the drag area about the forward '
              "axis, m^4, by which the gust's rates (span of the wind node) turn the vehicle; "
              'drag area x span^2 / 12 for a wing. 0: no torque.', low=0.0, high=1000.0),
    Parameter('turn_area.y', 0.0, 'The same about the axis to the left, m^4.',
              low=0.0, high=1000.0),
    Parameter('turn_area.z', 0.0, 'The same about the axis up, m^4.', low=0.0, high=1000.0),
    Parameter('air_density', SEA_LEVEL_DENSITY, 'Density of the air, kg/m^3.', low=0.0, high=2.0),
)

PATIENCE_S = 5.0
"""Wall time after which silence is reported, s."""


@dataclass
class _Source:
    """What was heard of one vehicle."""

    vehicle: Vehicle
    wind_sub: Subscription
    force: Force | None = None
    wind_at: float | None = None
    difference: float = math.nan
    problem: str = ''
    said: set[str] = field(default_factory=set)


class GazeboWindNode(Node):
    """Gives a Gazebo world, or each of its vehicles, the wind of the wind nodes.

    Parameters
    ----------
    link : dryden_wind_ros.gazebo.transport.WindLink, optional
        The world in mode ``wind``. Default: Gazebo Transport.
    scene : dryden_wind_ros.gazebo.transport.SceneLink, optional
        What there is in the world, in mode ``wrench``. Default: Gazebo Transport.
    **kwargs
        As for ``rclpy.node.Node``.

    Raises
    ------
    common.BadParameter
        If a parameter is not allowed, or several winds cannot become one.
    common.InterfacesMissing
        If the bindings of Gazebo Transport, or ros_gz_interfaces, are not installed.
    """

    def __init__(self, link: WindLink | None = None, scene: SceneLink | None = None,
                 **kwargs: Any) -> None:
        super().__init__('gazebo_wind', **kwargs)
        self.parameters = common.ParameterTable(self, PARAMETERS, apply=self._on_parameters)
        values = self.parameters.values
        wrench = values['mode'] == 'wrench'
        try:
            check_world(values['world'], wrench=wrench)
            vehicles = parse_vehicles(values['vehicles'], links=wrench)
            if not wrench:
                check_combination([v.name for v in vehicles], values['combine'])
        except ValueError as error:
            raise common.BadParameter(str(error)) from None
        self._world = values['world']
        self._with_mean = not wrench and values['combine'] == 'mean' and len(vehicles) > 1
        self._started_at = time.monotonic()
        self._forces: Forces | None = None
        self._writer: WorldWriter | None = None
        if wrench:
            self._forces = Forces(self, self._world, values['gazebo'], scene)
            self._forces.configure(values)
        else:
            self._begin_wind(vehicles, values, link)
        self._sources = [self._listen(index, v) for index, v in enumerate(vehicles)]
        self._diagnostics_pub = self.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self.create_timer(1.0, self._on_second, clock=Clock(clock_type=ClockType.STEADY_TIME))
        topics = ', '.join(source.wind_sub.topic_name for source in self._sources)
        if wrench:
            self.get_logger().info(
                f'world {self._world}: {topics} as forces of drag; <enable_wind> of the models '
                'must be off')
        else:
            how = f', combined as {values["combine"]}' if len(vehicles) > 1 else ''
            self.get_logger().info(f'world {self._world}: {topics} as its wind{how}')

    def _begin_wind(self, vehicles: Sequence[Vehicle], values: Mapping[str, Any],
                    link: WindLink | None) -> None:
        self._world_wind = WorldWind([v.name for v in vehicles], values['combine'])
        self._world_wind_pub = self.create_publisher(
            TwistWithCovarianceStamped, 'world_wind', common.STREAM_QOS)
        try:
            world = link or transport.GazeboWorld(self._world, values['gazebo'])
        except BindingsMissing as error:
            raise common.InterfacesMissing(str(error)) from error
        self._writer = WorldWriter(
            self._world, world, self.get_logger().info, self.get_logger().warning)

    def _listen(self, index: int, vehicle: Vehicle) -> _Source:
        # In mode wind only the leader wakes the node; the others are looked up when it speaks.
        wakes = self._forces is not None or index == 0
        message, name = (Vector3Stamped, 'wind/mean') if self._with_mean else (
            TwistWithCovarianceStamped, 'wind')
        source = _Source(vehicle, self.create_subscription(
            message, vehicle.topic(name), lambda newest: self._on_wind(index, newest),
            common.STREAM_QOS, callback_group=None if wakes else common.Polled()))
        if self._forces is not None:
            source.force = self._forces.listen(vehicle)
        return source

    # ------------------------------------------------------------------ inputs

    def _on_parameters(self, values: Mapping[str, Any]) -> None:
        if self._forces is not None:
            self._forces.configure(values)

    def _on_wind(self, index: int, message: Any) -> None:
        source = self._sources[index]
        # After a pause only the newest counts.
        self._take_wind(source, index, _newest(source.wind_sub) or message)
        if self._writer is not None:
            self._take_others()
            self._give_world_wind(self._writer)

    def _take_others(self) -> None:
        for index, source in enumerate(self._sources[1:], start=1):
            newest = _newest(source.wind_sub)
            if newest is not None:
                self._take_wind(source, index, newest)

    def _take_wind(self, source: _Source, index: int, message: Any) -> None:
        vector = message.vector if self._with_mean else message.twist.twist.linear
        wind = (vector.x, vector.y, vector.z)
        try:
            if source.force is not None:
                turning = message.twist.twist.angular
                source.force.blow(wind, (turning.x, turning.y, turning.z))
            else:
                stamp = message.header.stamp
                self._world_wind.take(index, wind, stamp.sec * 1_000_000_000 + stamp.nanosec)
        except ValueError as error:
            source.problem = f'{source.wind_sub.topic_name}: {error}'
            self._say_once(source, 'bad', f'{source.problem}; the message was not used')
            return
        source.wind_at = time.monotonic()
        source.problem = ''
        source.said -= {'bad', 'silent'}

    def _give_world_wind(self, writer: WorldWriter) -> None:
        now = self._world_wind.next()
        if now is None:
            return
        for source, difference in zip(self._sources, now.differences, strict=True):
            source.difference = difference
        writer.put(now.wind, now.stamp_ns)
        if self._world_wind_pub.get_subscription_count():
            message = TwistWithCovarianceStamped()
            sec, nanosec = divmod(now.stamp_ns, 1_000_000_000)
            message.header.stamp.sec, message.header.stamp.nanosec = sec, nanosec
            message.header.frame_id = 'map'
            linear = message.twist.twist.linear
            linear.x, linear.y, linear.z = now.wind
            self._world_wind_pub.publish(message)

    # ------------------------------------------------------------------ watching

    def _on_second(self) -> None:
        now = time.monotonic()
        if self._forces is not None:
            self._forces.check([source.force for source in self._sources
                                if source.force is not None])
            level, text, values = self._forces.judge(now - self._started_at)
            if level == DiagnosticStatus.ERROR:
                self._say_once(self._sources[0], 'no bridge', text)
        else:
            self._take_others()
            level, text, values = self._judge_world(now)
        name = self.get_fully_qualified_name()
        message = DiagnosticArray(
            status=[common.status(f'{name}: Gazebo', level, text, values)] + [
                self._judge_source(name, source, now) for source in self._sources])
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics_pub.publish(message)

    def _judge_world(self, now: float) -> tuple[bytes, str, dict[str, object]]:
        assert self._writer is not None
        status, first = self._writer.status(), self._sources[0]
        values: dict[str, object] = {
            'world': self._world, 'sent': status.sent, 'seen in the world': status.arrived,
            'left out for a newer one': status.replaced}
        if math.isfinite(status.delay_sim):
            values |= {'delay from tick to world (ms of sim time)': f'{1e3 * status.delay_sim:.1f}',
                       'delay (ms of wall time)': f'{1e3 * status.delay:.1f}',
                       'speed (sim s per s)': f'{status.speed:.2f}',
                       'every tick arrives up to a speed of': f'{status.holds_to_speed:.1f}'}
        if status.answer is not None:
            values['wind east, north, up (m/s)'] = ', '.join(
                f'{x:.2f}' for x in status.answer.velocity)
        if status.answer is None:
            text = (f'/world/{self._world}/wind_info does not answer: is Gazebo running, is '
                    f'{self._world} the name of its world, and does that load '
                    'gz-sim-wind-effects-system?')
            if now - self._started_at < PATIENCE_S:
                return DiagnosticStatus.WARN, text, values
            self._say_once(first, 'no world', text)
            return DiagnosticStatus.ERROR, text, values
        first.said.discard('no world')
        if status.foreign:
            text = (f'world {self._world} has {in_words(status.answer)}, which was not sent from '
                    'here: somebody else sets it too')
            self._say_once(first, 'other wind', text)
            return DiagnosticStatus.WARN, text, values
        first.said.discard('other wind')
        if status.speed > 1.0 and status.speed > status.holds_to_speed:
            text = (f'the world gets its wind {1e3 * status.delay_sim:.0f} ms of sim time after '
                    f'the tick, and not every tick: the simulation runs at {status.speed:.1f} '
                    f'times real time, and this holds up to {status.holds_to_speed:.1f}')
            self._say_once(first, 'late', text)
            return DiagnosticStatus.WARN, text, values
        first.said.discard('late')
        return DiagnosticStatus.OK, f'world {self._world} answers', values

    def _judge_source(self, name: str, source: _Source, now: float) -> DiagnosticStatus:
        name, topic = f'{name}: {source.vehicle.name}', source.wind_sub.topic_name
        force = source.force
        values: dict[str, object] = {}
        if force is not None and force.newest is not None:
            values['force east, north, up (N)'] = ', '.join(f'{x:.2f}' for x in force.newest)
        if math.isfinite(source.difference):
            values["world's wind minus its own (m/s)"] = f'{source.difference:.2f}'
        if force is not None and force.missing:
            return common.status(name, DiagnosticStatus.ERROR, force.missing, values)
        if source.problem:
            return common.status(name, DiagnosticStatus.WARN, source.problem, values)
        heard = source.wind_at or self._started_at
        if now - heard >= PATIENCE_S:
            text = f'no wind on {topic} for {now - heard:.0f} s'
            if force is not None and force.newest is not None and force.abandoned():
                force.clear()
                text += '; its force was taken away, for the vehicle goes on'
                source.said.discard('silent')
            self._say_once(source, 'silent', text)
            return common.status(name, DiagnosticStatus.WARN, text, values)
        if force is not None and not force.moves and source.wind_at is not None \
                and now - self._started_at >= PATIENCE_S:
            text = (f'no odometry on {force.odom_topic}: without its velocity the vehicle gets no '
                    'force')
            if force.no_odometry_system:
                text += ('; Gazebo publishes none: the model needs '
                         'gz-sim-odometry-publisher-system')
            self._say_once(source, 'no odometry', text)
            return common.status(name, DiagnosticStatus.WARN, text, values)
        source.said.discard('no odometry')
        if source.difference > 0.0 and self._writer is not None:
            return common.status(name, DiagnosticStatus.OK,
                                 "feels the world's wind, not its own", values)
        return common.status(name, DiagnosticStatus.OK, f'{topic} is served', values)

    def _say_once(self, source: _Source, key: str, text: str) -> None:
        if key not in source.said:
            source.said.add(key)
            self.get_logger().warning(text)

    # ------------------------------------------------------------------ the end

    def close(self) -> None:
        """Give the world back the wind it was found with; leave no force."""
        if self._writer is not None:
            self._writer.close()
        if self._forces is not None:
            self._forces.close([source.force for source in self._sources
                                if source.force is not None])


def _newest(subscription: Subscription) -> Any:
    waiting = list(common.take_all(subscription))
    return waiting[-1] if waiting else None


def _close(node: Node) -> None:
    assert isinstance(node, GazeboWindNode)
    node.close()


def main(args: Sequence[str] | None = None) -> int:
    """Run the node."""
    return common.run(GazeboWindNode, args, stop=_close, rows=PARAMETERS, about=__doc__)


if __name__ == '__main__':
    sys.exit(main())
