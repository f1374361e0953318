"""A subscription that wakes a thread of its own, not the executor."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from rclpy.guard_condition import GuardCondition
from rclpy.node import Node
from rclpy.qos import QoSProfile

from dryden_wind_ros.nodes import common
from dryden_wind_ros.nodes.inside_rclpy import SubscriptionWait


class NewestMessage:
    """A subscription served by a thread of its own, which hands on only the newest message.

    rclpy's executor builds its wait set anew for every message, which costs as much as everything
    else that the bridge does with a wind. This thread waits for one subscription and nothing else.

    Parameters
    ----------
    node : rclpy.node.Node
    kind : type
        Of the messages.
    topic : str
    qos : rclpy.qos.QoSProfile
    callback : callable
        Called with the newest message, in the thread.
    """

    def __init__(self, node: Node, kind: Any, topic: str, qos: QoSProfile,
                 callback: Callable[[Any], None]) -> None:
        self._context = node.context
        self._callback = callback
        self._logger = node.get_logger()
        self._stopping = False
        self._subscription = node.create_subscription(
            kind, topic, lambda _: None, qos, callback_group=common.Polled())
        self._guard = GuardCondition(None, None, context=node.context)
        self._thread = threading.Thread(target=self._run, name=topic, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; call it before the node is destroyed."""
        self._stopping = True
        if self._context.ok():
            self._guard.trigger()
        if self._thread.is_alive():
            self._thread.join(1.0)

    def _run(self) -> None:
        waiting = SubscriptionWait(self._context, self._subscription, self._guard)
        while not self._stopping and self._context.ok():
            try:
                waiting.wait(0.2)
                newest = None
                for message in common.take_all(self._subscription):
                    newest = message
                if newest is not None:
                    self._callback(newest)
            except Exception as error:
                if self._stopping or not self._context.ok():
                    return
                self._logger.error(f'{type(error).__name__} while handling a message: {error}')
