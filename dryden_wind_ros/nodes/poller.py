"""Services and timers of many nodes, looked after without an executor.

rclpy's executors walk through every entity of every node in Python at each wake-up: for a fleet of
fifty vehicles, ten milliseconds and more each time. Here the handles are collected once, services
are asked for by one wait set that is kept, and timers are asked one by one, which costs nearly
nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial

from rclpy.node import Node
from rclpy.service import Service
from rclpy.subscription import Subscription
from rclpy.timer import Timer

from dryden_wind_ros.nodes import inside_rclpy

AT_ONCE, BREATH_S = 4, 0.005
"""After so many timers that were due, so long a pause, s, where there is time to wait: a fleet of
fifty has a hundred a second, and called in a row they keep the interpreter from the thread that
sends winds."""


class Poller:
    """Answers the services and calls the timers of nodes that are complete.

    Subscriptions are left alone: what nodes of a fleet subscribe to is `common.Polled`. So are the
    events of publishers (a subscriber's QoS that does not fit), which the other side reports too.

    Parameters
    ----------
    nodes : iterable of rclpy.node.Node
        With all their services and timers; callbacks are plain functions.
    waking : iterable of rclpy.subscription.Subscription, optional
        Whose messages end the wait of `poll`; whoever calls it takes them.
    """

    def __init__(self, nodes: Iterable[Node], waking: Iterable[Subscription] = ()) -> None:
        self._nodes: dict[Service, Node] = {}
        self._timers: list[tuple[Timer, Node]] = []
        context = None
        for node in nodes:
            context = node.context
            self._nodes |= dict.fromkeys(node.services, node)
            self._timers += [(timer, node) for timer in node.timers]
        if context is None:
            raise ValueError('there are no nodes to look after')
        self._context = context
        self._requests = inside_rclpy.ServiceWait(context, self._nodes, waking)

    def poll(self, wait_s: float = 0.0) -> None:
        """Do what is due now, or wait up to `wait_s` s for a request to answer.

        Timers that become due while it waits are called by the next `poll`. An exception of a
        callback is logged by its node.
        """
        called = 0
        for timer, node in self._timers:
            if inside_rclpy.begin_if_due(timer):
                self._guarded(node, timer.callback)
                called += 1
                if wait_s and called % AT_ONCE == 0:
                    time.sleep(BREATH_S)
        for service in self._requests.ready(wait_s):
            self._guarded(self._nodes[service], partial(inside_rclpy.answer, service))

    def wake(self) -> None:
        """End the wait that goes on, or else the next one at once; from any thread."""
        self._requests.wake()

    def _guarded(self, node: Node, callback: Callable[[], object]) -> None:
        try:
            callback()
        except Exception as error:
            if self._context.ok():
                node.get_logger().error(f'{type(error).__name__} in a callback: {error}')
