"""What `wind_top` has heard of every vehicle: the newest of each topic, whatever its namespace."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy

from dryden_wind_ros.nodes import common

NEWEST_QOS = QoSProfile(
    history=HistoryPolicy.KEEP_LAST, depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)

WIND_STATE = 'dryden_wind_interfaces/msg/WindState'
EKF_WIND = 'dryden_wind_interfaces/msg/EkfWind'


@dataclass
class Vehicle:
    """What was heard of one vehicle.

    Attributes
    ----------
    name : str
        Its namespace, ``/`` for none.
    state, ekf : message or None
        The newest WindState and EkfWind.
    state_at, ekf_at : float
        When they came, wall time, s.
    alive : bool
        Whether anybody still publishes about it.
    gusts : deque
        (wall time, sim time, u, v, w) of the last samples.
    """

    name: str
    state: Any = None
    ekf: Any = None
    state_at: float = -math.inf
    ekf_at: float = -math.inf
    alive: bool = True
    gusts: deque[tuple[float, float, float, float, float]] = field(
        default_factory=lambda: deque(maxlen=300))

    @property
    def heard_at(self) -> float:
        """When the newest message came, wall time, s."""
        return max(self.state_at, self.ekf_at)

    def hear_state(self, message: Any, now: float) -> None:
        """Take a WindState."""
        if self.gusts and message.t < self.gusts[-1][1]:
            self.gusts.clear()
        if not self.gusts or message.t > self.gusts[-1][1]:
            self.gusts.append((now, message.t, message.u, message.v, message.w))
        self.state, self.state_at = message, now

    def hear_ekf(self, message: Any, now: float) -> None:
        """Take an EkfWind."""
        self.ekf, self.ekf_at = message, now

    def speedup(self) -> float:
        """Return how fast sim time runs, over the last seconds; NaN if not known."""
        recent = [sample for sample in self.gusts if self.gusts[-1][0] - sample[0] <= 5.0]
        if len(recent) < 2 or recent[-1][0] - recent[0][0] < 1.0:
            return math.nan
        return (recent[-1][1] - recent[0][1]) / (recent[-1][0] - recent[0][0])


class Listener:
    """Finds vehicles and keeps what they last said.

    Parameters
    ----------
    node : rclpy.node.Node
        Subscribes for it.
    only : sequence of str, optional
        Namespaces to show; all if empty.
    """

    def __init__(self, node: Node, only: Sequence[str] = ()) -> None:
        common.interfaces('msg')
        self.vehicles: dict[str, Vehicle] = {}
        self._node = node
        self._only = {'/' + name.strip('/') for name in only}
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(node)
        self._topics: dict[str, str] = {}  # topic -> vehicle
        self._discovered_at = -math.inf
        self._heard = 0

    def close(self) -> None:
        """End the subscriptions."""
        self._executor.shutdown()

    def update(self) -> None:
        """Look for vehicles once a second, and take what has come."""
        now = time.monotonic()
        if now - self._discovered_at >= 1.0:
            self._discovered_at = now
            self._discover()
        for _ in range(2 * len(self._topics) + 2):
            before = self._heard
            self._executor.spin_once(timeout_sec=0.0)
            if self._heard == before:
                break

    def _discover(self) -> None:
        published: set[str] = set()
        for topic, types in self._node.get_topic_names_and_types():
            kind = next((t for t in (WIND_STATE, EKF_WIND) if t in types), None)
            if kind is None or not self._node.count_publishers(topic):
                continue
            name = self._topics.get(topic) or vehicle_of(topic, kind)
            if self._only and name not in self._only:
                continue
            published.add(name)
            if topic not in self._topics:
                self._topics[topic] = name
                self._subscribe(topic, kind, self.vehicles.setdefault(name, Vehicle(name)))
        for name, vehicle in self.vehicles.items():
            vehicle.alive = name in published

    def shown(self) -> list[Vehicle]:
        """Return the vehicles by name, without those that left before they said anything."""
        return sorted((vehicle for vehicle in self.vehicles.values()
                       if vehicle.alive or math.isfinite(vehicle.heard_at)), key=lambda v: v.name)

    def _subscribe(self, topic: str, kind: str, vehicle: Vehicle) -> None:
        messages = common.interfaces('msg')
        if kind == WIND_STATE:
            message_type, qos, take = messages.WindState, NEWEST_QOS, vehicle.hear_state
        else:
            message_type, qos, take = messages.EkfWind, common.LATCHED_QOS, vehicle.hear_ekf

        def on_message(message: Any) -> None:
            self._heard += 1
            take(message, time.monotonic())
        self._node.create_subscription(message_type, topic, on_message, qos)


def vehicle_of(topic: str, kind: str) -> str:
    """Return the namespace that a topic belongs to, or the topic itself if it was renamed."""
    tail = '/wind/state' if kind == WIND_STATE else '/ekf_wind'
    return topic.removesuffix(tail) or '/'
