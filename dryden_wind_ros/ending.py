"""How a program is told to end: SIGINT, SIGTERM and SIGHUP set a flag and wake who waits for it.

A KeyboardInterrupt can fall anywhere, and where it falls into rclpy it leaves a traceback and an
exit code of 1: ``RuntimeError: Unable to convert call argument`` out of a take, ``AttributeError:
'_exception'`` out of a future that was just being made. rclpy's own handlers take the context away
in the middle of what the program does. So the signals do nothing themselves: a thread hears of them
(from the interpreter's wakeup descriptor, also while the main thread waits in C), sets the flag and
calls those who asked. The loop sees the flag and ends in an orderly way.

What is told once stays told; further signals change nothing. Only the standard library is imported
here: a program listens before it imports the rest (see `listen_early`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_told = threading.Event()
_lock = threading.Lock()
_actions: list[Callable[[], object]] = []
_listening = False


def listen() -> None:
    """Take the signals from here on; call it in the main thread. More than once does no harm.

    A SIGHUP that is ignored (nohup) stays ignored.
    """
    global _listening
    if _listening:
        return
    _listening = True
    ours, wakeup = socket.socketpair()
    wakeup.setblocking(False)
    signal.set_wakeup_fd(wakeup.fileno(), warn_on_full_buffer=False)
    for number in SIGNALS:
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda _number, _frame: None)
    threading.Thread(target=_hear, args=(ours, wakeup), name='ending', daemon=True).start()


def listen_early(*programs: str) -> None:
    """Listen while the rest is imported, if this process is one of these programs.

    For the ``__init__.py`` of a package of programs: it is imported before they are, and what a
    signal finds in the seconds until their ``main`` runs is an import somewhere in NumPy.

    Parameters
    ----------
    *programs : str
        Names of executables. ``python -m`` counts too: at that time it is one of the package's.
    """
    begun_as = sys.argv[0] if sys.argv else ''
    if begun_as == '-m' or os.path.basename(begun_as) in programs:
        listen()


def told() -> bool:
    """Whether the program has been told to end."""
    return _told.is_set()


def wait(seconds: float) -> bool:
    """Wait so long, or until the program is told to end; return whether it is."""
    return _told.wait(seconds)


def when_told(action: Callable[[], object]) -> None:
    """Have `action` called, in a thread of its own, when the program is told to end.

    At once, and here, if it has been told already.
    """
    with _lock:
        if not _told.is_set():
            _actions.append(action)
            return
    action()


def tell() -> None:
    """End the program as a signal would, for a reason of its own."""
    with _lock:
        _told.set()
        actions = _actions[:]
        _actions.clear()
    for action in actions:
        # What it wakes may have ended just now, for a reason of its own
        with contextlib.suppress(Exception):
            action()


def leave_alone() -> None:
    """Ignore the signals: the program ends already.

    The interpreter takes handlers away before it ends, but leaves what is ignored: a second Ctrl-C
    changes neither the output nor the exit code.
    """
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.set_wakeup_fd(-1)


def within(seconds: float) -> None:
    """Have the process killed by SIGALRM after so many s, whatever it waits for then; 0: no more.

    For what is left when all that matters is done: with the interpreter's lock in its hand, Fast
    DDS may wait for ever for shared memory that a killed process had locked. Only the kernel can
    end that. Call it in the main thread.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _hear(ours: socket.socket, wakeup: socket.socket) -> None:
    with ours, wakeup:  # kept open as long as this thread lives
        while numbers := ours.recv(16):
            # Other signals that have a Python handler come here too
            if any(number in numbers for number in SIGNALS):
                tell()
