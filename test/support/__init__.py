"""What the tests share: waiting for conditions, free ports."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import socket
import time
from collections.abc import Callable, Iterator

PATIENCE = 4.0
"""How much longer than it takes on an idle machine anything may take before a test gives up.

What is waited for comes as soon as it comes: patience costs time only where something is wrong."""


def wait_until(condition: Callable[[], object], timeout: float, what: str | Callable[[], str],
               interval: float = 0.01) -> object:
    """Return the first true value of ``condition()``; fail after a while, naming ``what``.

    ``timeout`` is that while in s on an idle machine; a busy one has PATIENCE times as long.
    ``what`` may be a function, for news of the moment it failed.
    """
    timeout *= PATIENCE
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            text = what if isinstance(what, str) else what()
            raise AssertionError(f'waited {timeout:g} s in vain for {text}')
        time.sleep(interval)


def _own_ports() -> Iterator[int]:
    """Yield ports of this process of the test run, round and round.

    They are below those that the kernel gives to whoever asks for any (32768 and up): between the
    look at one and its use nobody else takes it.
    """
    worker = int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0').removeprefix('gw')) % 8
    first = 14_000 + 2_000 * worker
    start = random.Random(os.getpid()).randrange(2_000)
    while True:
        yield from range(first + start, first + 2_000)
        start = 0


_PORTS = _own_ports()


def free_port(kind: int = socket.SOCK_STREAM) -> int:
    """Return a port of the loopback that nothing listens on now (TCP unless told otherwise)."""
    for port in itertools.islice(_PORTS, 2_000):
        with socket.socket(socket.AF_INET, kind) as probe, contextlib.suppress(OSError):
            probe.bind(('127.0.0.1', port))
            return port
    raise AssertionError('no free port')
