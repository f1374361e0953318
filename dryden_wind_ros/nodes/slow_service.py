"""Services that take long, answered by a thread: the node's next tick does not wait for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from rclpy.service import Service
from rclpy.task import Future


def create_slow_service(node: Node, kind: Any, name: str,
                        answer: Callable[[Any, Any], Any]) -> Service:
    """Create a service whose answers a thread works out, one at a time.

    Parameters
    ----------
    node : rclpy.node.Node
        Its executor sends the answer; so does `nodes.poller.Poller`.
    kind, name
        Of the service.
    answer : callable
        Takes a request and a response and returns the response; from a thread of its own.
    """
    turn = threading.Lock()

    def plain(request: Any, response: Any) -> Any:
        with turn:
            return answer(request, response)

    async def callback(request: Any, response: Any) -> Any:
        future: Future = Future(executor=node.executor)

        def work() -> None:
            try:
                future.set_result(plain(request, response))
            except Exception as error:
                future.set_exception(error)

        threading.Thread(target=work, name=name, daemon=True).start()
        return await future

    callback.plain = plain  # type: ignore[attr-defined]
    # Its own group: while an answer is awaited, the node's other services go on.
    return node.create_service(kind, name, callback,
                               callback_group=MutuallyExclusiveCallbackGroup())
