"""Floors: the least that a rclpy process can do for the same messages.

``python -m dryden_wind_ros.tools.bench_parts.floors KIND [ARGUMENT] [--ros-args ...]``

link CONNECTION
    Takes MAVLink from a TCP port, publishes ``clock`` and ``odom``; sends three PARAM_SETs for
    every ``sim_wind``.
wind
    Publishes a ``sim_wind`` for every ``clock``; hears ``odom``.
fleet N
    One node with the topics of N vehicles: ``clock``, ``odom``, ``sim_wind`` and ``wind/state``
    published at 20 Hz, the first two heard.
counter
    Counts ``clock`` messages.
clock HZ
    Publishes ``clock``.
service
    Answers ``empty``.
"""

from __future__ import annotations

import random
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from nav_msgs.msg import Odometry
from pymavlink.dialects.v20 import ardupilotmega as mavlink
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rosgraph_msgs.msg import Clock
from std_srvs.srv import Trigger

from dryden_wind_ros import ending
from dryden_wind_ros.nodes import common

_TICK_MS = 50


class RelayLink(Node):
    """MAVLink to clock and odometry, sim_wind to MAVLink."""

    def __init__(self, connection: str) -> None:
        super().__init__('relay_link')
        messages = common.interfaces()
        _, host, port = connection.split(':')
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._codec = mavlink.MAVLink(None, 245, mavlink.MAV_COMP_ID_ONBOARD_COMPUTER)
        self._clock_publisher = self.create_publisher(Clock, 'clock', common.STREAM_QOS)
        self._odom_publisher = self.create_publisher(Odometry, 'odom', common.STREAM_QOS)
        self.create_subscription(
            messages.SimWind, 'sim_wind', self._on_sim_wind, common.LATCHED_QOS)
        for ident, interval in ((mavlink.MAVLINK_MSG_ID_SYSTEM_TIME, 25_000),
                                (mavlink.MAVLINK_MSG_ID_LOCAL_POSITION_NED, 50_000)):
            self._send(mavlink.MAVLink_command_long_message(
                1, 1, mavlink.MAV_CMD_SET_MESSAGE_INTERVAL, 0, ident, interval, 0, 0, 0, 0, 0))
        self._send(*[mavlink.MAVLink_param_set_message(1, 1, name, value, 9)
                     for name, value in ((b'SIM_WIND_TC', 0.1), (b'SIM_WIND_T', 1.0))])
        threading.Thread(target=self._read, daemon=True).start()

    def _send(self, *messages: Any) -> None:
        self._socket.sendall(b''.join(message.pack(self._codec) for message in messages))

    def _on_sim_wind(self, wind: Any) -> None:
        self._send(*[mavlink.MAVLink_param_set_message(1, 1, name, value, 9) for name, value in (
            (b'SIM_WIND_SPD', wind.speed), (b'SIM_WIND_DIR', wind.direction),
            (b'SIM_WIND_DIR_Z', wind.direction_z))])

    def _read(self) -> None:
        parser = mavlink.MAVLink(None)
        parser.robust_parsing = True
        tick = -1
        clock, odom = Clock(), Odometry()
        position, velocity = odom.pose.pose.position, odom.twist.twist.linear
        while data := self._socket.recv(65536):
            for message in parser.parse_buffer(data) or ():
                kind = message.get_msgId()
                if kind == mavlink.MAVLINK_MSG_ID_SYSTEM_TIME:
                    newest = message.time_boot_ms // _TICK_MS
                    if newest > tick:
                        tick = newest
                        clock.clock.sec, rest = divmod(message.time_boot_ms, 1000)
                        clock.clock.nanosec = rest * 1_000_000
                        self._clock_publisher.publish(clock)
                elif kind == mavlink.MAVLINK_MSG_ID_LOCAL_POSITION_NED:
                    position.x, position.y, position.z = message.y, message.x, -message.z
                    velocity.x, velocity.y, velocity.z = message.vy, message.vx, -message.vz
                    self._odom_publisher.publish(odom)


class RelayWind(Node):
    """A wind for every clock message."""

    def __init__(self) -> None:
        super().__init__('relay_wind')
        messages = common.interfaces()
        self._kind = messages.SimWind
        self._wind = self.create_publisher(messages.SimWind, 'sim_wind', common.LATCHED_QOS)
        self._diagnostics = self.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self._tick: int | None = None
        self._missed = 0
        self.create_subscription(Clock, 'clock', self._on_clock, common.CLOCK_QOS)
        self.create_subscription(Odometry, 'odom', lambda _: None, common.SENSOR_QOS)
        self.create_timer(1.0, self._on_second)

    def _on_clock(self, message: Clock) -> None:
        tick = (message.clock.sec * 1000 + message.clock.nanosec // 1_000_000) // _TICK_MS
        if self._tick is not None:
            self._missed += max(0, tick - self._tick - 1)
        self._tick = tick
        wind = self._kind(tick=tick, speed=8.0 + random.random(),
                          direction=260.0 + 10.0 * random.random(), direction_z=random.random())
        wind.header.stamp = message.clock
        self._wind.publish(wind)

    def _on_second(self) -> None:
        if self._tick is not None and self._diagnostics.get_subscription_count():
            self._diagnostics.publish(DiagnosticArray(status=[common.status(
                f'{self.get_fully_qualified_name()}: clock', DiagnosticStatus.OK, '',
                {'tick': self._tick, 'missed ticks': self._missed})]))


class BareFleet(Node):
    """The topics of many vehicles in one node."""

    def __init__(self, count: int) -> None:
        super().__init__('bare_fleet')
        messages = common.interfaces()
        kinds = (('clock', Clock, common.STREAM_QOS), ('odom', Odometry, common.STREAM_QOS),
                 ('sim_wind', messages.SimWind, common.LATCHED_QOS),
                 ('wind/state', messages.WindState, common.STREAM_QOS))
        self._publishers_and_messages = []
        for number in range(count):
            for topic, kind, qos in kinds:
                self._publishers_and_messages.append(
                    (self.create_publisher(kind, f'bare_{number}/{topic}', qos), kind()))
            for topic, kind, _ in kinds[:2]:
                self.create_subscription(
                    kind, f'bare_{number}/{topic}', lambda _: None, common.STREAM_QOS)
        self.create_timer(0.05, self._on_tick)

    def _on_tick(self) -> None:
        for publisher, message in self._publishers_and_messages:
            publisher.publish(message)


class Counter(Node):
    """Counts clock messages."""

    def __init__(self) -> None:
        super().__init__('counter')
        self.count = 0
        self.create_subscription(Clock, 'clock', self._on_clock, common.CLOCK_QOS)

    def _on_clock(self, _: Clock) -> None:
        self.count += 1


class EmptyService(Node):
    """Answers at once."""

    def __init__(self) -> None:
        super().__init__('empty_service')
        self.create_service(Trigger, 'empty', lambda request, response: response)


class ClockSource(Node):
    """A clock of many messages a second."""

    def __init__(self, rate: float) -> None:
        super().__init__('clock_source')
        self._rate = rate
        self._publisher = self.create_publisher(Clock, 'clock', common.STREAM_QOS)

    def run(self) -> None:
        """Publish until told to end; a timer would cost more than the messages."""
        message = Clock()
        start, sent = time.monotonic(), 0
        while not ending.told():
            sent += 1
            time.sleep(max(0.0, start + sent / self._rate - time.monotonic()))
            message.clock.sec, message.clock.nanosec = divmod(
                round(sent * 1e9 / self._rate), 1_000_000_000)
            self._publisher.publish(message)


def main() -> int:
    """Run one floor until SIGINT."""
    kind, *arguments = rclpy.utilities.remove_ros_args(sys.argv)[1:]
    nodes: dict[str, Callable[[], Node]] = {
        'link': lambda: RelayLink(arguments[0]), 'wind': RelayWind,
        'fleet': lambda: BareFleet(int(arguments[0])), 'counter': Counter,
        'clock': lambda: ClockSource(float(arguments[0])), 'service': EmptyService}
    ending.listen()
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    try:
        node = nodes[kind]()
        print('ready', flush=True)
        if isinstance(node, ClockSource):
            node.run()
        else:
            common.spin(node)
    finally:
        rclpy.try_shutdown()
        ending.leave_alone()
    return 0


if __name__ == '__main__':
    sys.exit(main())
