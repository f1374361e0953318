"""Services and timers of many nodes, looked after without an executor.

rclpy's executors walk through every entity of every node in Python at each wake-up: for a fleet of
fifty vehicles, ten milliseconds and more each time. Here the handles are collected once, services
are asked for by one wait set that is kept, and timers are asked one by one, which costs nearly
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.service import Service
from rclpy.timer import Timer


class Poller:
    """Answers the services and calls the timers of nodes that are complete.

    Subscriptions are left alone: what nodes of a fleet subscribe to is `common.Polled`. So are the
    events of publishers (a subscriber's QoS that does not fit), which the other side reports too.

    Parameters
    ----------
    nodes : iterable of rclpy.node.Node
        With all their services and timers; callbacks are plain functions.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._services: dict[int, tuple[Service, Node]] = {}
        self._timers: list[tuple[Timer, Node]] = []
        context = None
        for node in nodes:
            context = node.context
            self._services |= {service.handle.pointer: (service, node) for service in node.services}
            self._timers += [(timer, node) for timer in node.timers]
        if context is None:
            raise ValueError('there are no nodes to look after')
        self._context = context
        self._waits = rclpy_implementation.WaitSet(
            0, 0, 0, 0, len(self._services), 0, context.handle)

    def poll(self, wait_s: float = 0.0) -> None:
        """Do what is due now, or wait up to `wait_s` s for a request to answer.

        Timers that become due while it waits are called by the next `poll`. An exception of a
        callback is logged by its node.
        """
        for timer, node in self._timers:
            if timer.handle.is_timer_ready():
                timer.handle.call_timer()
                self._guarded(node, timer.callback)
        waits = self._waits
        waits.clear_entities()
        for service, _ in self._services.values():
            waits.add_service(service.handle)
        waits.wait(round(wait_s * 1e9))
        for pointer in waits.get_ready_entities('service'):
            service, node = self._services[pointer]
            self._guarded(node, partial(_answer, service))

    def _guarded(self, node: Node, callback: Callable[[], object]) -> None:
        try:
            callback()
        except Exception as error:
            if self._context.ok():
                node.get_logger().error(f'{type(error).__name__} in a callback: {error}')


def _answer(service: Service) -> None:
    """Answer all requests that wait."""
    kind: Any = service.srv_type
    while True:
        request, header = service.handle.service_take_request(kind.Request)
        if header is None:
            return
        service.send_response(service.callback(request, kind.Response()), header)
