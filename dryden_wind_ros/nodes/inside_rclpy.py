"""Every use of what rclpy keeps to itself, in one place, each with its reason.

rclpy promises nothing about ``rclpy.impl`` and about handles. What is used here is the same in
Jazzy (rclpy 7.1) and Kilted (9.1); where a later version differs, this is the file to change.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from rclpy.context import Context
from rclpy.guard_condition import GuardCondition
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.service import Service
from rclpy.subscription import Subscription
from rclpy.timer import Timer


def parameter_overrides(node: Node) -> Mapping[str, Any]:
    """Return {name: rclpy parameter} of what was given at the node's start.

    Reason: rclpy tells only of declared parameters, and an undeclared one is a misspelt one that
    is to be reported.
    """
    return dict(getattr(node, '_parameter_overrides', {}))


def is_unknown_argument(error: RuntimeError) -> bool:
    """Whether ``rclpy.init`` raised this for an argument that it does not know.

    Reason: the class of that error is private.
    """
    return type(error).__name__ == 'UnknownROSArgsError'


def take_all(subscription: Subscription) -> Iterator[Any]:
    """Yield the messages that wait in a subscription's queue, oldest first, without waiting.

    Reason: rclpy takes one message for each wake-up of an executor, and a wake-up costs more than
    a message. rclpy's own ``wait_for_message`` takes in this way.
    """
    with subscription.handle:
        while True:
            taken = subscription.handle.take_message(subscription.msg_type, False)
            if taken is None:
                return
            yield taken[0]


class SubscriptionWait:
    """Waits for one subscription, without an executor.

    Reason: rclpy's executor builds its wait set anew for every message. As
    ``rclpy.wait_for_message`` does it, but the wait set is made once.
    """

    def __init__(self, context: Context, subscription: Subscription,
                 guard: GuardCondition) -> None:
        self._subscription, self._guard = subscription, guard
        self._waits = rclpy_implementation.WaitSet(1, 1, 0, 0, 0, 0, context.handle)

    def wait(self, seconds: float) -> None:
        """Wait until a message has come, the guard condition is triggered, or so long."""
        waits = self._waits
        waits.clear_entities()
        waits.add_subscription(self._subscription.handle)
        waits.add_guard_condition(self._guard.handle)
        waits.wait(round(seconds * 1e9))


class ServiceWait:
    """Waits for requests to any of many services, without an executor.

    Reason: rclpy's executors walk through every entity of every node in Python at each wake-up,
    ten milliseconds and more for a fleet of fifty vehicles.

    Messages of `subscriptions` end the wait too, and are left in their queues.
    """

    def __init__(self, context: Context, services: Iterable[Service],
                 subscriptions: Iterable[Subscription] = ()) -> None:
        self._services = {service.handle.pointer: service for service in services}
        self._guard = GuardCondition(None, None, context=context)
        self._subscriptions = tuple(subscriptions)
        self._waits = rclpy_implementation.WaitSet(
            len(self._subscriptions), 1, 0, 0, len(self._services), 0, context.handle)

    def wake(self) -> None:
        """End the wait that goes on, or else the next one at once."""
        self._guard.trigger()

    def ready(self, seconds: float) -> list[Service]:
        """Return the services that have requests; wait for one up to so long."""
        waits = self._waits
        waits.clear_entities()
        for service in self._services.values():
            waits.add_service(service.handle)
        for subscription in self._subscriptions:
            waits.add_subscription(subscription.handle)
        waits.add_guard_condition(self._guard.handle)
        waits.wait(round(seconds * 1e9))
        return [self._services[pointer] for pointer in waits.get_ready_entities('service')]


def answer(service: Service) -> None:
    """Answer all requests that wait at a service.

    Reason: as for `ServiceWait`.
    """
    kind: Any = service.srv_type
    while True:
        request, header = service.handle.service_take_request(kind.Request)
        if header is None:
            return
        slow = getattr(service.callback, 'plain', None)
        if slow is not None:
            threading.Thread(target=_answer_later, args=(service, slow, request, header),
                             daemon=True).start()
        else:
            service.send_response(service.callback(request, kind.Response()), header)


def _answer_later(service: Service, slow: Any, request: Any, header: Any) -> None:
    """Answer a request of `nodes.slow_service`."""
    kind: Any = service.srv_type
    response = slow(request, kind.Response())
    with suppress(rclpy_implementation.InvalidHandle):  # the node may have ended meanwhile
        service.send_response(response, header)


def begin_if_due(timer: Timer) -> bool:
    """Whether a timer is due now; its callback is then to be called.

    Reason: as for `ServiceWait`; to ask a timer itself costs nearly nothing.
    """
    if not timer.handle.is_timer_ready():
        return False
    timer.handle.call_timer()
    return True
