"""One thread that serves any number of links, and can be woken for one of them."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol


class Pollable(Protocol):
    """What a `LinkLoop` serves."""

    def fileno(self) -> int:
        """File descriptor to wait on; -1: none now."""

    def wants_write(self) -> bool:
        """Whether to wait for it to become writable (a connection being made)."""

    def poll(self, now: float) -> None:
        """Do what there is to do at steady time `now`, without waiting."""

    def close(self) -> None:
        """Let go of the file descriptor."""


class LinkLoop:
    """One thread that serves any number of links.

    Parameters
    ----------
    on_error : callable
        Called with an exception that a handler raised; the loop goes on.

    Notes
    -----
    `wake` makes the thread poll one link. Whatever a caller left with that link is then dealt with
    after everything that has arrived was read: that is how a wind is sent, newest last and never
    into a backlog.
    """

    _TIMER_S = 0.05

    def __init__(self, on_error: Callable[[BaseException], None]) -> None:
        self._on_error = on_error
        self._wake_read, self._wake_write = socket.socketpair()
        self._wake_read.setblocking(False)
        self._wake_write.setblocking(False)
        self._woken: deque[Pollable] = deque()
        self._wake_sent = False
        self._serving: Pollable | None = None
        self._links: list[Pollable] = []
        self._new: deque[Pollable] = deque()
        self._stopping = False
        self._poller = select.poll()
        #: What is waited on: link -> (file descriptor, events), and back.
        self._waits: dict[Pollable, tuple[int, int]] = {}
        self._by_descriptor: dict[int, Pollable] = {}
        self._thread = threading.Thread(target=self._run, name='mavlink', daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def add(self, link: Pollable) -> None:
        """Serve `link` from now on."""
        self._new.append(link)
        self.wake(link)

    def wake(self, link: Pollable) -> None:
        """Poll `link` now; may be called from any thread.

        From within a callback of that very link it does nothing: `poll` deals with what was left
        after everything that has arrived was read.
        """
        if link is self._serving and threading.current_thread() is self._thread:
            return
        self._woken.append(link)
        if not self._wake_sent:
            self._wake_sent = True
            with contextlib.suppress(OSError):
                self._wake_write.send(b'\0')

    def stop(self, timeout: float = 2.0) -> None:
        """Stop the thread and close the links."""
        self._stopping = True
        with contextlib.suppress(OSError):
            self._wake_write.send(b'\0')
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def _run(self) -> None:
        wake_descriptor = self._wake_read.fileno()
        self._poller.register(wake_descriptor, select.POLLIN)
        next_timer = 0.0
        try:
            while not self._stopping:
                ready = self._poller.poll(max(0.0, next_timer - time.monotonic()) * 1000)
                now = time.monotonic()
                due: set[Pollable] = set()
                for descriptor, _ in ready:
                    if descriptor == wake_descriptor:
                        with contextlib.suppress(OSError):
                            self._wake_read.recv(4096)
                        self._wake_sent = False  # before the deque is emptied: nothing is lost
                    elif descriptor in self._by_descriptor:
                        due.add(self._by_descriptor[descriptor])
                while self._new:
                    self._links.append(self._new.popleft())
                while self._woken:
                    due.add(self._woken.popleft())
                if now >= next_timer:
                    next_timer = now + self._TIMER_S
                    due.update(self._links)
                for link in due:
                    self._serving = link
                    try:
                        link.poll(now)
                    except Exception as error:
                        self._on_error(error)
                    self._wait_for(link)
                self._serving = None
        finally:
            for link in self._links:
                link.close()
            self._wake_read.close()
            self._wake_write.close()

    def _wait_for(self, link: Pollable) -> None:
        descriptor = link.fileno()
        wanted = (descriptor, select.POLLIN | (select.POLLOUT if link.wants_write() else 0))
        waited = self._waits.get(link)
        if waited == wanted and self._by_descriptor.get(descriptor) is link:
            return
        if waited is not None and self._by_descriptor.get(waited[0]) is link:
            del self._by_descriptor[waited[0]]
            with contextlib.suppress(KeyError):
                self._poller.unregister(waited[0])
        self._waits[link] = wanted
        if descriptor >= 0:
            self._by_descriptor[descriptor] = link
            self._poller.register(descriptor, wanted[1])
