"""Node ``sitl_wind_relay``: lets a SITL that flies in Gazebo's physics feel the wind, too.

It stands between SITLs started with ``--model JSON`` and their physics (ardupilot_gazebo, or any
other), passes everything on, and puts the wind of each vehicle into what its SITL is told: then the
pitot and EKF3 know of it. Tell SITL to speak to the relay instead of the physics::

    sim_vehicle.py -v ArduPlane -f gazebo-zephyr --model JSON -A "--sim-port-out 9102"

The n-th instance has its ports 10 n higher. See `dryden_wind_ros.gazebo.json_relay`.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import TwistWithCovarianceStamped
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from dryden_wind_ros.gazebo import json_relay
from dryden_wind_ros.gazebo.json_relay import Relay, RelayError, RelayLoop, RelayStatus
from dryden_wind_ros.gazebo.vehicles import parse_instances
from dryden_wind_ros.nodes import common
from dryden_wind_ros.nodes.common import Parameter

PARAMETERS = (
    Parameter('vehicles', '', 'Namespaces of the vehicles and their SITL instances, as in '
              '"uav1=0, uav2=1". Empty: instance 0 in the namespace of this node.',
              read_only=True),
    Parameter('wind_topic', '', 'One wind topic for all vehicles, such as /world_wind; empty: '
              'each has the wind of its own namespace.', read_only=True),
    Parameter('sitl_address', '127.0.0.1', 'Address on which SITL is heard.', read_only=True),
    Parameter('sitl_port', json_relay.SITL_PORT, 'UDP port on which the SITL of instance 0 is '
              "heard: SITL's --sim-port-out.", low=1, high=65_535, read_only=True),
    Parameter('physics_address', '127.0.0.1', 'Address of the physics.', read_only=True),
    Parameter('physics_port', json_relay.PHYSICS_PORT, 'UDP port of the physics of instance 0: '
              '<fdm_port_in> of ardupilot_gazebo.', low=1, high=65_535, read_only=True),
    Parameter('allow_remote', False, 'Whether the addresses may be of other machines.',
              read_only=True),
)

PATIENCE_S = 5.0
"""Wall time after which silence is reported, s."""


@dataclass
class _Vehicle:
    """What is known of one vehicle."""

    relay: Relay
    topic: str = ''
    wind_at: float | None = None
    before: RelayStatus = field(default_factory=RelayStatus)
    said: set[str] = field(default_factory=set)


class SitlWindRelay(Node):
    """Puts the wind into the answers of the physics of one or many SITLs.

    Raises
    ------
    common.BadParameter
        If a parameter is not allowed, or a port cannot be had.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__('sitl_wind_relay', **kwargs)
        self.parameters = common.ParameterTable(self, PARAMETERS)
        values = self.parameters.values
        for name in ('sitl_address', 'physics_address'):
            _check_address(name, values[name], values['allow_remote'])
        try:
            instances = parse_instances(values['vehicles'])
        except ValueError as error:
            raise common.BadParameter(str(error)) from None
        ports = values['sitl_port'], values['physics_port']
        highest = max(ports) + json_relay.PORT_STEP * max(instance for _, instance in instances)
        if highest > 65_535:
            raise common.BadParameter(
                f'vehicles is {values["vehicles"]!r}; the ports of the last instance would be up '
                f'to {highest}, and 65535 is the highest there is')
        if values['sitl_address'] == values['physics_address'] and ports[0] == ports[1]:
            raise common.BadParameter(
                f'sitl_port and physics_port are both {ports[0]}; the relay cannot listen where '
                'the physics does')
        self._vehicles: list[_Vehicle] = []
        try:
            for namespace, instance in instances:
                self._add(namespace, instance, values)
        except RelayError as error:
            for vehicle in self._vehicles:
                vehicle.relay.close()
            raise common.BadParameter(str(error)) from None
        self._failure: BaseException | None = None
        self._loop = RelayLoop([vehicle.relay for vehicle in self._vehicles], self._on_error)
        self._started_at = time.monotonic()
        self._diagnostics_pub = self.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self.create_timer(1.0, self._on_second, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _add(self, namespace: str, instance: int, values: Any) -> None:
        step = instance * json_relay.PORT_STEP
        listen = values['sitl_address'], values['sitl_port'] + step
        physics = values['physics_address'], values['physics_port'] + step
        vehicle = _Vehicle(Relay(namespace or f'SITL instance {instance}', listen, physics,
                                 self.get_logger().warning))
        self._vehicles.append(vehicle)
        topic = values['wind_topic'] or (f'{namespace}/wind' if namespace else 'wind')
        vehicle.topic = self.create_subscription(
            TwistWithCovarianceStamped, topic, partial(self._on_wind, vehicle),
            common.STREAM_QOS).topic_name
        self.get_logger().info(
            f'{vehicle.relay.name}: SITL on UDP {listen[0]}:{listen[1]}, physics at '
            f'{physics[0]}:{physics[1]}, wind from {vehicle.topic}')

    def _on_wind(self, vehicle: _Vehicle, message: TwistWithCovarianceStamped) -> None:
        air = message.twist.twist.linear
        if not math.isfinite(air.x + air.y + air.z):
            if 'bad' not in vehicle.said:
                vehicle.said.add('bad')
                self.get_logger().warning(
                    f'{vehicle.topic}: wind is ({air.x}, {air.y}, {air.z}) m/s; it must be finite '
                    'numbers; the message was not used')
            return
        vehicle.relay.wind_ned = (air.y, air.x, -air.z)
        vehicle.wind_at = time.monotonic()
        vehicle.said -= {'bad', 'silent'}

    def _on_error(self, error: BaseException) -> None:
        self._failure = error

    # ------------------------------------------------------------------ watching

    def _on_second(self) -> None:
        if self._failure is not None:
            raise self._failure
        message = DiagnosticArray(status=[self._judge(vehicle) for vehicle in self._vehicles])
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics_pub.publish(message)

    def _judge(self, vehicle: _Vehicle) -> DiagnosticStatus:
        name = f'{self.get_fully_qualified_name()}: {vehicle.relay.name}'
        now, status, before = time.monotonic(), vehicle.relay.status(), vehicle.before
        vehicle.before = status
        steps, answers = status.steps - before.steps, status.answers - before.answers
        values: dict[str, object] = {
            'steps (1/s)': steps, 'answers': status.answers, 'with wind': status.with_wind,
            'without, for they could not be read': status.odd, 'too large': status.too_large,
            'refused': status.refused}
        if vehicle.relay.wind_ned is not None:
            values['wind north, east, down (m/s)'] = ', '.join(
                f'{x:.2f}' for x in vehicle.relay.wind_ned)
        if not steps:
            text = (f'no SITL speaks on UDP port {vehicle.relay.port}: start it with --model JSON '
                    f'and --sim-port-out {vehicle.relay.port}')
            return common.status(name, DiagnosticStatus.WARN, text, values)
        if not answers:
            text = 'SITL speaks, and the physics does not answer: is it running, on this port?'
            return common.status(name, DiagnosticStatus.ERROR, text, values)
        waited = now - (vehicle.wind_at or self._started_at)
        if waited >= PATIENCE_S:
            text = f'no wind on {vehicle.topic} for {waited:.0f} s' + (
                '; the last one stays' if vehicle.wind_at else '; answers pass as they are')
            if 'silent' not in vehicle.said:
                vehicle.said.add('silent')
                self.get_logger().warning(f'{vehicle.relay.name}: {text}')
            return common.status(name, DiagnosticStatus.WARN, text, values)
        if status.with_wind == before.with_wind and vehicle.wind_at:
            return common.status(name, DiagnosticStatus.WARN,
                                 'answers of the physics pass without wind', values)
        return common.status(name, DiagnosticStatus.OK, f'{steps} steps a second', values)

    def close(self) -> None:
        """Stop relaying."""
        self._loop.close()


def _check_address(name: str, text: str, allow_remote: bool) -> None:
    try:
        address = ip_address(text)
    except ValueError:
        raise common.BadParameter(
            f'{name} is {text!r}; it must be an IPv4 address such as 127.0.0.1') from None
    if address.version != 4:
        raise common.BadParameter(f'{name} is {text!r}; it must be an IPv4 address')
    if not address.is_loopback and not allow_remote:
        raise common.BadParameter(
            f'{name} is {text}, which is not of this machine; allow_remote:=true allows that')


def _close(node: Node) -> None:
    assert isinstance(node, SitlWindRelay)
    node.close()


def main(args: Sequence[str] | None = None) -> int:
    """Run the node."""
    return common.run(SitlWindRelay, args, stop=_close, rows=PARAMETERS, about=__doc__)


if __name__ == '__main__':
    sys.exit(main())
