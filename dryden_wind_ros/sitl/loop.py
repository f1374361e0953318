"""One thread that serves any number of links, and can be woken for one of them."""

from __future__ import annotations

import contextlib
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from dryden_wind_ros.sitl.wakeable import WakeableSelector


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

    Attributes
    ----------
    round_s : float
        How long a round takes at least, s: what arrives meanwhile is read in one go. 0 reads
        everything at once, at the price of a wake-up for each packet.

    Notes
    -----
    `wake` makes the thread poll one link. Whatever a caller left with that link is then dealt with
    after everything that has arrived was read: that is how a wind is sent, newest last and never
    into a backlog.
    """

    _TIMER_S = 0.05

    def __init__(self, on_error: Callable[[BaseException], None]) -> None:
        self._on_error = on_error
        self.round_s = 0.0
        # By number of the descriptor: a link may have closed one and been given it again.
        self._waiter = WakeableSelector(selectors.PollSelector)
        self._woken: deque[Pollable] = deque()
        self._serving: Pollable | None = None
        self._links: list[Pollable] = []
        self._new: deque[Pollable] = deque()
        self._stopping = False
        #: What is waited on: link -> (file descriptor, events), and back.
        self._waits: dict[Pollable, tuple[int, int]] = {}
        self._by_descriptor: dict[int, Pollable] = {}
        self._polled_at: dict[Pollable, float] = {}
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
        self._waiter.wake()

    def stop(self, timeout: float = 2.0) -> None:
        """Stop the thread and close the links."""
        self._stopping = True
        self._waiter.wake()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def _run(self) -> None:
        next_timer = 0.0
        try:
            while not self._stopping:
                due: set[Pollable] = set(self._waiter.select(next_timer - time.monotonic()))
                now = time.monotonic()
                while self._new:
                    self._links.append(self._new.popleft())
                while self._woken:
                    due.add(self._woken.popleft())
                if now >= next_timer:
                    next_timer = now + self._TIMER_S
                    # What had its turn lately has done what was due.
                    due.update(link for link in self._links
                               if now - self._polled_at.get(link, 0.0) > self._TIMER_S / 2)
                for link in due:
                    self._serving = link
                    self._polled_at[link] = now
                    try:
                        link.poll(now)
                    except Exception as error:
                        self._on_error(error)
                    self._wait_for(link)
                self._serving = None
                if self.round_s and not self._stopping:
                    time.sleep(max(now + self.round_s - time.monotonic(), 0.0))
        finally:
            for link in self._links:
                link.close()
            self._waiter.close()

    def _wait_for(self, link: Pollable) -> None:
        descriptor = link.fileno()
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if link.wants_write() else 0)
        waited = self._waits.get(link)
        if waited == (descriptor, events) and self._by_descriptor.get(descriptor) is link:
            return
        selector = self._waiter.selector
        if waited is not None and self._by_descriptor.get(waited[0]) is link:
            del self._by_descriptor[waited[0]]
            with contextlib.suppress(KeyError):
                selector.unregister(waited[0])
        self._waits[link] = (descriptor, events)
        if descriptor >= 0:
            if descriptor in self._by_descriptor:
                # Another link has closed it, and not had its turn since.
                selector.unregister(descriptor)
            self._by_descriptor[descriptor] = link
            selector.register(descriptor, events, link)
