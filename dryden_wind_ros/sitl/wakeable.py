"""Waiting for sockets, in a way that other threads can interrupt."""

from __future__ import annotations

import contextlib
import selectors
import socket
from collections import deque
from collections.abc import Callable
from typing import Any


class WakeableSelector:
    """A selector that `wake` and `post` interrupt, from any thread or a signal handler.

    Parameters
    ----------
    kind : callable
        Makes the selector.

    Attributes
    ----------
    selector : selectors.BaseSelector
        For registering; what is registered must have data.
    """

    def __init__(self, kind: Callable[[], selectors.BaseSelector] = selectors.DefaultSelector
                 ) -> None:
        self.selector = kind()
        self._posted: deque[Callable[[], None]] = deque()
        self._sent = False
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)
        self._write.setblocking(False)
        self.selector.register(self._read, selectors.EVENT_READ, None)

    def wake(self) -> None:
        """End the `select` that goes on, or else the next one at once."""
        if not self._sent:
            self._sent = True
            with contextlib.suppress(OSError):
                self._write.send(b'\0')

    def post(self, action: Callable[[], None]) -> None:
        """Have `action` called by `select`, in its thread."""
        self._posted.append(action)
        self.wake()

    def select(self, timeout: float) -> list[Any]:
        """Wait up to `timeout` s; return the data of what is ready, after what was posted."""
        ready = []
        for key, _ in self.selector.select(max(timeout, 0.0)):
            if key.data is None:
                with contextlib.suppress(OSError):
                    self._read.recv(4096)
                self._sent = False  # before what was posted is taken: nothing is lost
            else:
                ready.append(key.data)
        while self._posted:
            self._posted.popleft()()
        return ready

    def close(self) -> None:
        """Close the selector; `wake` does nothing any more."""
        self.selector.close()
        self._read.close()
        self._write.close()
