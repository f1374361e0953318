"""Flights by a script: whatever it does costs its own flight only, and nothing outlives it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from dryden_wind_ros.campaign import plan as plans
from dryden_wind_ros.campaign.entry import Entry, Manoeuvre, Vehicle, Wind
from dryden_wind_ros.campaign.flight import fly
from dryden_wind_ros.campaign.keeper import TIME_UP

ROOT = Path(__file__).parents[1]

LEAVES_A_CHILD = """
    import os, subprocess, sys
    child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'],
                             start_new_session=True)
    open(r'{pid}', 'w').write(str(child.pid))
    sys.stdout.buffer.write(bytes(range(256)))
    sys.stdout.flush()
"""

FLIES = """
    import time
    from pymavlink import mavutil
    link = mavutil.mavlink_connection(sys.argv[1], retries=30)
    link.wait_heartbeat()
    link.mav.command_long_send(1, 1, 511, 0, 33, 100000, 0, 0, 0, 0, 0)
    while True:
        link.mav.set_mode_send(1, 1, 4)
        link.mav.command_long_send(1, 1, 400, 0, 1, 0, 0, 0, 0, 0, 0)
        if link.recv_match(type='COMMAND_ACK', condition='COMMAND_ACK.command==400',
                           blocking=True, timeout=2).result == 0:
            break
        time.sleep(0.1)
    link.mav.command_long_send(1, 1, 22, 0, 0, 0, 0, 0, 0, 0, 4)
    while link.recv_match(type='GLOBAL_POSITION_INT', blocking=True).relative_alt < 3900:
        pass
    end = link.messages['GLOBAL_POSITION_INT'].time_boot_ms + 5000
    while link.recv_match(type='GLOBAL_POSITION_INT', blocking=True).time_boot_ms < end:
        pass
"""


def entry(script: str, **more) -> Entry:
    return Entry(**{'index': 0, 'variant': 'a', 'vehicle': Vehicle(dynamics=True), 'seed': 7,
                    'wind': Wind(8.0), 'manoeuvre': Manoeuvre(), 'script': textwrap.dedent(script),
                    'script_path': 'fly.py', **more})


def gone(pid_file: Path) -> bool:
    try:
        return 'Z' in Path(f'/proc/{pid_file.read_text()}/stat').read_text().split()[2]
    except OSError:
        return True


def kept(seconds: float, script: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, '-m', 'dryden_wind_ros.campaign.keeper', str(seconds), sys.executable,
         '-c', textwrap.dedent(script)], cwd=ROOT, capture_output=True, timeout=60, check=False)


def test_a_keeper_ends_what_hangs_and_all_that_was_begun(tmp_path):
    pid = tmp_path / 'pid'
    hung = kept(1.0, LEAVES_A_CHILD.format(pid=pid) + """
    import signal, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
    """)
    assert hung.returncode == TIME_UP
    assert hung.stdout == bytes(range(256))
    assert gone(pid)
    assert kept(30.0, LEAVES_A_CHILD.format(pid=pid) + '    sys.exit(3)').returncode == 3
    assert gone(pid)
    assert kept(30.0, 'import os; os.kill(os.getpid(), 11)').returncode == 128 + 11


def test_a_keeper_whose_starter_was_killed_ends_too(tmp_path):
    pid = tmp_path / 'pid'
    starter = subprocess.Popen([sys.executable, '-c', textwrap.dedent(f"""
        import subprocess, sys
        subprocess.run([sys.executable, '-m', 'dryden_wind_ros.campaign.keeper', '600',
                        sys.executable, '-c', {textwrap.dedent(
                            LEAVES_A_CHILD.format(pid=pid)) + 'import time; time.sleep(600)'!r}])
        """)], cwd=ROOT, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 30.0
    while not (pid.exists() and pid.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    starter.kill()
    starter.wait()
    while not gone(pid):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_script_flies_in_the_seeds_wind_prints_binary_and_leaves_a_child(tmp_path):
    """The vehicle is a command of the user's, as an ArduPilot would be: a wrapper script here."""
    pid, wrapper = tmp_path / 'pid', tmp_path / 'vehicle.sh'
    wrapper.write_text('#!/bin/sh\n[ "$1" = -w ] && shift\nshift 0\n'
                       f'exec {sys.executable} -m dryden_wind_ros.emulator.main --flight none "$@"')
    wrapper.chmod(0o755)
    outcome = fly(entry(LEAVES_A_CHILD.format(pid=pid) + FLIES, vehicle=Vehicle(
        dynamics=False, sitl=str(wrapper), speedup=4.0), wall_limit=90.0))
    assert outcome.row['failure'] == '', outcome.files['script.txt'][-2000:]
    assert gone(pid)
    assert outcome.files['script.txt'].startswith(bytes(range(256)))
    assert outcome.row['ticks_missed'] == 0
    assert float(outcome.row['tilt_max'] or 0.0) > 9.0  # 8 m/s alone takes atan(64/400)
    lines = outcome.files['flight.csv'].decode().splitlines()
    table = dict(zip(lines[0].split(','), np.array(
        [line.split(',') for line in lines[1:]], dtype=float).T, strict=True))
    assert np.rint(np.diff(table['t']) / 0.05).max() == 1
    assert np.std(table['sim_wind_spd'][table['measured'] > 0]) > 0.3


@pytest.mark.parametrize(('script', 'failure'), [
    ('import time\ntime.sleep(600)', 'time limit (wall, 6 s)'),
    ('raise SystemExit(9)', 'the script ended with 9')])
def test_a_script_that_hangs_or_fails_costs_its_own_flight_only(script, failure):
    began = time.monotonic()
    outcome = fly(entry(script, wall_limit=6.0))
    assert outcome.row['failure'] in (failure, 'the vehicle was not heard within 30 s')
    assert outcome.row['failure'] == failure
    assert time.monotonic() - began < 60.0


def test_sitl_needs_a_script(tmp_path):
    plan = tmp_path / 'plan.yaml'
    text = 'vehicle: {sitl: "arduplane --model plane"}\nvariants: {a: }\nwinds: {speed: 5}\n'
    plan.write_text(text)
    with pytest.raises(plans.PlanError, match='sitl needs a flight by a script'):
        plans.load(plan)
    (tmp_path / 'fly.py').write_text('pass')
    plan.write_text(text + 'flight: {script: fly.py}\n')
    one, = plans.load(plan).entries
    assert one.vehicle.sitl == 'arduplane --model plane'
    assert one.script == 'pass'
    assert os.path.basename(one.script_path) == 'fly.py'
