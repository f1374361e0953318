"""A simulator held over Ctrl-C until it is told to end."""

import os
import shlex
import signal
import subprocess
import sys

import pytest
from support import wait_until
from support.processes import Program

CHILD = """
import os, signal, sys, time
print('child', os.getpid(), flush=True)
if sys.argv[1] == 'stubborn':
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if sys.argv[1] == 'ends':
    sys.exit(7)
try:
    time.sleep(60)
except KeyboardInterrupt:
    print('interrupted', flush=True)
"""


@pytest.fixture
def hold(tmp_path):
    programs = []

    def start(*command):
        programs.append(Program(tmp_path / 'log', 'dryden_wind_ros.tools.hold', *command))
        return programs[-1]
    yield start
    for program in programs:
        program.kill()


def started(program):
    wait_until(lambda: 'child' in program.text, 10, 'the child to start')
    return int(program.text.split()[1])


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_ctrl_c_does_not_reach_the_child_but_sigterm_ends_it(hold):
    program = hold(sys.executable, '-c', CHILD, 'gentle')
    pid = started(program)
    program.signal(signal.SIGINT)
    program.signal(signal.SIGINT)
    program.signal(signal.SIGTERM)
    assert program.wait() == 0
    assert 'interrupted' in program.text
    assert gone(pid)


def test_a_child_that_will_not_end_is_killed(hold):
    program = hold(sys.executable, '-c', CHILD, 'stubborn')
    pid = started(program)
    program.signal(signal.SIGTERM)
    assert program.wait(10) == 0
    wait_until(lambda: gone(pid), 5, 'the child to be gone')


def test_it_ends_by_itself_where_its_parent_was_killed(tmp_path):
    # as a launch that is killed leaves it: a shell in between is the parent
    shell = subprocess.Popen(
        ['sh', '-c', f'{shlex.quote(sys.executable)} -m dryden_wind_ros.tools.hold '
         f'{shlex.quote(sys.executable)} -c {shlex.quote(CHILD)} gentle; true'],
        stdout=(tmp_path / 'log').open('wb'), start_new_session=True)
    wait_until(lambda: 'child' in (tmp_path / 'log').read_text(), 10, 'the child to start')
    pid = int((tmp_path / 'log').read_text().split()[1])
    shell.kill()
    shell.wait()
    wait_until(lambda: gone(pid), 15, 'the child to be gone')


def test_the_childs_own_end_is_passed_on(hold):
    program = hold(sys.executable, '-c', CHILD, 'ends')
    assert program.wait() == 7


def test_a_command_that_does_not_exist_is_named(hold):
    program = hold('no-such-sitl', '--model', '+')
    assert program.wait() == 127
    assert "cannot start 'no-such-sitl'" in program.text
