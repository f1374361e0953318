"""Run a simulator so that Ctrl-C does not end it before the bridge has put its parameters back.

``python -m dryden_wind_ros.tools.hold COMMAND [ARGUMENT ...]`` runs the command in a session of its
own and ignores SIGINT, which a terminal sends to everybody at once. SIGTERM ends the command and
all that it started: with SIGINT, then SIGTERM after 2 s, then SIGKILL. The launch files send
SIGTERM once the bridge has left. Where nobody is left to send it (the terminal was closed, launch
was killed) the command ends by itself 4 s later.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

GRACE_S = 2.0
POLL_S = 0.1
ORPHAN_S = 4.0  # what a bridge needs at most to put SIM_WIND_* back and leave


def main(command: Sequence[str] | None = None) -> int:
    """Run `command` (default: the command line) and return its exit code."""
    command = list(sys.argv[1:] if command is None else command)
    if not command:
        print(__doc__, file=sys.stderr)
        return 2
    told = False

    def on_term(_number: int, _frame: object) -> None:
        nonlocal told
        told = True

    parent = os.getppid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, on_term)
    try:
        child = subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL,
                                 preexec_fn=_default_sigint)
    except OSError as error:
        print(f'cannot start {command[0]!r}: {error.strerror}', file=sys.stderr)
        return 127
    while not told and not _ended(child, POLL_S):
        if os.getppid() != parent:
            told = True
            _ended(child, ORPHAN_S)
    if told:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            _signal_group(child.pid, number)
            if _ended(child, GRACE_S):
                break
    code = child.wait()
    _signal_group(child.pid, signal.SIGKILL)  # whatever it left behind
    return 0 if told else code


def _ended(child: subprocess.Popen[bytes], patience: float) -> bool:
    try:
        child.wait(patience)
    except subprocess.TimeoutExpired:
        return False
    return True


def _default_sigint() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)


if __name__ == '__main__':
    raise SystemExit(main())
