"""Signals end every program in an orderly way: a flag, no exception, whatever it is doing."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from support import free_port, soak

LISTEN = """\
import os, signal, sys, threading, time
sys.argv[0] = {begun_as!r}
from dryden_wind_ros import ending
ending.listen_early('wind_node')
"""


def run(begun_as: str, *lines: str, ignore: int | None = None) -> subprocess.CompletedProcess[str]:
    def prepare() -> None:
        if ignore is not None:
            signal.signal(ignore, signal.SIG_IGN)

    return subprocess.run(
        [sys.executable, '-c', LISTEN.format(begun_as=begun_as) + '\n'.join(lines)],
        capture_output=True, text=True, timeout=60, check=False, preexec_fn=prepare)


def test_a_signal_sets_the_flag_and_wakes_who_waits_and_nothing_else() -> None:
    ended = run('/usr/bin/wind_node', 'told = []',
                'ending.when_told(lambda: told.append("before"))',
                'for number in ending.SIGNALS * 2:', '    os.kill(os.getpid(), number)',
                'assert ending.wait(30.0) and ending.told()',
                'while not told: time.sleep(0.01)',
                'ending.when_told(lambda: told.append("after"))',
                'ending.leave_alone()', 'os.kill(os.getpid(), signal.SIGINT)', 'print(told)')
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "['before', 'after']\n", '')


@pytest.mark.parametrize('begun_as', ['/usr/bin/wind_node', '-m'])
def test_a_program_listens_while_it_imports(begun_as: str) -> None:
    ended = run(begun_as, 'os.kill(os.getpid(), signal.SIGINT)', 'print(ending.wait(30.0))')
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, 'True\n', '')


def test_a_library_takes_no_signals() -> None:
    ended = run('/usr/bin/pytest', 'print(signal.getsignal(signal.SIGTERM).name)')
    assert ended.stdout == 'SIG_DFL\n'


def test_under_nohup_a_hangup_stays_ignored() -> None:
    ended = run('-m', 'os.kill(os.getpid(), signal.SIGHUP)', 'print(ending.wait(0.2))',
                'os.kill(os.getpid(), signal.SIGTERM)', 'print(ending.wait(30.0))',
                ignore=signal.SIGHUP)
    assert ended.stdout == 'False\nTrue\n'


def test_what_never_comes_back_with_the_interpreters_lock_is_ended_by_the_kernel() -> None:
    ended = run('-m', 'import ctypes', 'ending.within(0.2)', 'ctypes.PyDLL(None).sleep(50)')
    assert ended.returncode == -signal.SIGALRM


def test_what_came_back_in_time_is_not_ended() -> None:
    ended = run('-m', 'ending.within(0.2)', 'ending.within(0.0)', 'time.sleep(0.4)', 'print("on")')
    assert (ended.returncode, ended.stdout) == (0, 'on\n')


@pytest.mark.ros2
@pytest.mark.parametrize(('program', 'within'), [('dryden_wind', 0.0), ('mavlink_bridge', 2.0)])
def test_a_node_ends_with_0_and_without_a_traceback_whenever_it_is_told(
        program: str, within: float) -> None:
    """Two of the trials that scripts/soak.sh makes by the hundred; one falls into the imports."""
    done = soak.trial(3, free_port(), within, program)
    assert done.good, f'{done.signals} code {done.code}\n{done.output}'
