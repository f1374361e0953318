"""Callback groups for subscriptions that need not wake the executor at every message."""

from __future__ import annotations

import time
from collections.abc import Callable

from rclpy.callback_groups import CallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.node import Node


class Polled(CallbackGroup):
    """A callback group that the executor never waits for; see `inside_rclpy.take_all`.

    Waking up for a message costs an rclpy node more than handling it. What is needed only together
    with something else is left in its queue and taken then.
    """

    def can_execute(self, _entity: object) -> bool:
        """Tell the executor to leave it alone."""
        return False

    def beginning_execution(self, _entity: object) -> bool:
        """Tell the executor to leave it alone."""
        return False

    def ending_execution(self, _entity: object) -> None:
        """Do nothing: the executor never begins."""


class Gate(CallbackGroup):
    """A callback group for a clock that speaks much more often than a tick.

    Gazebo's clock speaks every millisecond; waking up for each message costs more than the gusts
    do. So after a tick the gate closes for most of the time that the next one is expected to take:
    the executor does not wait for the clock, its messages wait in their queue. Then `on_open` is
    called, the messages are taken together, and the last of them before the tick wake the node one
    by one, so that the tick is not late. A clock that speaks about once a tick finds the gate open.

    Parameters
    ----------
    node : rclpy.node.Node
        The node; a timer of it, in steady time, opens the gate.

    Attributes
    ----------
    on_open : callable
        Called when the gate opens.
    """

    BUSY = 4.0
    """Messages a tick from which on the gate is used."""

    SHUT_FOR = 0.7
    """Part of a tick's wall time for which the gate stays closed."""

    def __init__(self, node: Node) -> None:
        super().__init__()
        self.on_open: Callable[[], None] = lambda: None
        self._open = True
        self._messages = 0
        self._per_tick = 1.0
        self._ticked_at: float | None = None
        self._timer = node.create_timer(
            0.1, self._opens, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self._timer.cancel()

    def can_execute(self, _entity: object) -> bool:
        """Tell the executor whether to wait."""
        return self._open

    def beginning_execution(self, _entity: object) -> bool:
        """Tell the executor whether to go on with a message that has come."""
        return self._open

    def ending_execution(self, _entity: object) -> None:
        """Do nothing: one message is like another."""

    def passed(self, messages: int, ticked: bool) -> None:
        """Count messages that were taken, and close after a tick of a busy clock."""
        self._messages += messages
        if not ticked:
            return
        now = time.monotonic()
        last, self._ticked_at = self._ticked_at, now
        self._per_tick += 0.2 * (self._messages - self._per_tick)
        self._messages = 0
        if last is None or self._per_tick < self.BUSY:
            return
        wait = self.SHUT_FOR * min(now - last, 0.5)
        if wait > 0.002:
            self._open = False
            self._timer.timer_period_ns = round(wait * 1e9)
            self._timer.reset()

    def _opens(self) -> None:
        self._timer.cancel()
        self._open = True
        self.on_open()
