"""Runs a command, for so long at most, and leaves nothing of it behind.

``python -m dryden_wind_ros.campaign.keeper SECONDS COMMAND...``: whatever the command starts,
in sessions of its own or not, becomes a child of this process when its parent ends (Linux:
PR_SET_CHILD_SUBREAPER), and is killed when the command has ended, when its time is up, or when
whoever started this process ends or sends SIGTERM. Only the standard library is imported.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time

TIME_UP = 124
"""Exit code when the time was up, as of timeout(1)."""

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def descendants(root: int) -> list[int]:
    """Return all processes below one, by their parents."""
    children: dict[int, list[int]] = {}
    for name in os.listdir('/proc'):
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError), \
                open(f'/proc/{name}/stat', 'rb') as file:
            # The name in brackets may hold anything
            parent = int(file.read().rpartition(b')')[2].split()[1])
            children.setdefault(parent, []).append(int(name))
    found, todo = [], [root]
    while todo:
        new = children.get(todo.pop(), [])
        found += new
        todo += new
    return found


def main(arguments: list[str]) -> int:
    """Run it; return its exit code, 128 + the signal that ended it, or `TIME_UP`."""
    parent = os.getppid()
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: told.append(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    deadline = time.monotonic() + float(arguments[0])
    try:
        process = subprocess.Popen(arguments[1:], stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        print(f'{arguments[1]}: {error.strerror}', file=sys.stderr)
        return 127
    while process.poll() is None and not told and os.getppid() == parent:
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    code = process.poll()
    while left := descendants(os.getpid()):
        for one in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(one, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.01)
    if code is None:
        return TIME_UP
    return code if code >= 0 else 128 - code


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
