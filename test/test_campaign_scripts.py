"""Live flights: by a script, a pilot, through ROS nodes; none costs another, nothing is left."""

from __future__ import annotations

import contextlib
import json
import os
import struct
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dryden_wind_ros.campaign import plan as plans
from dryden_wind_ros.campaign.entry import Entry, Manoeuvre, Vehicle, Wind
from dryden_wind_ros.campaign.flight import Outcome, fly
from dryden_wind_ros.campaign.keeper import TIME_UP
from dryden_wind_ros.campaign.live_flight import failure_logged
from dryden_wind_ros.campaign.mission import read_mission
from dryden_wind_ros.campaign.pace import Pace
from dryden_wind_ros.campaign.recorder import failure_said
from dryden_wind_ros.logs.reader import read_flights

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


def sitl(folder: Path, **more) -> Vehicle:
    """The embedded vehicle as a command of the user's, as an ArduPilot would be."""
    wrapper = folder / 'vehicle.sh'
    wrapper.write_text('#!/bin/sh\n[ "$1" = -w ] && shift\n'
                       f'exec {sys.executable} -m dryden_wind_ros.emulator.main --flight none '
                       '--dynamics --drag "$@"')
    wrapper.chmod(0o755)
    return Vehicle(**{'dynamics': False, 'sitl': str(wrapper), 'speedup': 4.0, **more})


def written(folder: Path, text: str) -> Path:
    path = folder / 'other.yaml'
    path.write_text(text)
    return path


def table_of(outcome: Outcome) -> dict[str, np.ndarray]:
    lines = outcome.files['flight.csv'].decode().splitlines()
    return dict(zip(lines[0].split(','), np.array(
        [line.split(',') for line in lines[1:]], dtype=float).T, strict=True))


def dataflash_of(errors: list[tuple[int, int]]) -> bytes:
    """Return a dataflash log of ERR records: subsystem and code."""
    fmt = struct.Struct('<BBBBB4s16s64s')
    content = fmt.pack(0xA3, 0x95, 128, 128, fmt.size, b'FMT', b'BBnNZ',
                       b'Type,Length,Name,Format,Columns')
    content += fmt.pack(0xA3, 0x95, 128, 5, 13, b'ERR', b'QBB', b'TimeUS,Subsys,ECode')
    for k, (subsystem, code) in enumerate(errors):
        content += struct.pack('<BBBQBB', 0xA3, 0x95, 5, 1_000_000 * (k + 1), subsystem, code)
    return content


def gone(pid_file: Path) -> bool:
    try:
        return 'Z' in Path(f'/proc/{pid_file.read_text()}/stat').read_text().split()[2]
    except OSError:
        return True


def running_with(marker: str) -> list[str]:
    """Return the commands of processes that have this in their environment."""
    found = []
    for process in Path('/proc').glob('[0-9]*'):
        with contextlib.suppress(OSError):
            if marker.encode() in (process / 'environ').read_bytes():
                found.append((process / 'cmdline').read_text())
    return found


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
    pid = tmp_path / 'pid'
    outcome = fly(entry(LEAVES_A_CHILD.format(pid=pid) + FLIES, vehicle=sitl(tmp_path),
                        wall_limit=300.0))
    assert outcome.row['failure'] == '', outcome.files['script.txt'][-2000:]
    assert gone(pid)
    assert outcome.files['script.txt'].startswith(bytes(range(256)))
    assert outcome.row['ticks_missed'] == 0
    assert float(outcome.row['tilt_max'] or 0.0) > 9.0  # 8 m/s alone takes atan(64/400)
    assert 0.0 < float(outcome.row['position_error_rms'] or 0.0) < 2.0  # as the vehicle says
    assert float(outcome.row['ekf_wind_error_rms'] or 99.0) < 5.0
    table = table_of(outcome)
    assert np.rint(np.diff(table['t']) / 0.05).max() == 1
    assert np.std(table['sim_wind_spd'][table['measured'] > 0]) > 0.3


@pytest.mark.parametrize(('script', 'failure', 'limit'), [
    ('import time\ntime.sleep(600)', 'time limit (wall, 6 s)', 6.0),
    ('raise SystemExit(9)', 'the script ended with 9', 100.0)])
def test_a_script_that_hangs_or_fails_costs_its_own_flight_only(script, failure, limit):
    began = time.monotonic()
    outcome = fly(entry(script, wall_limit=limit))
    assert outcome.row['failure'] == failure
    assert time.monotonic() - began < 60.0


def test_a_vehicle_of_the_users_is_flown_by_a_pilot_through_the_ros_nodes(tmp_path, monkeypatch):
    """A box in GUIDED; wind node, bridge and recorder as a user runs them, all gone afterwards."""
    monkeypatch.setenv('CAMPAIGN_OF_THIS_TEST', str(tmp_path))  # which all of them inherit
    outcome = fly(entry('', vehicle=sitl(tmp_path, altitude=3.0, speedup=2.0), ros=True,
                        wall_limit=400.0, wind=Wind(4.0), manoeuvre=Manoeuvre(
                            path='box', side=4.0, settle=2.0, seconds=10.0)))
    said = {name: text[-1500:] for name, text in outcome.files.items() if name.endswith('.txt')}
    assert outcome.row['failure'] == '', said
    assert outcome.row['ticks_missed'] == 0
    assert {'dryden_wind.txt', 'mavlink_bridge.txt', 'wind_record.txt'} <= said.keys()
    assert running_with(str(tmp_path)) == []
    table = table_of(outcome)
    measured = {name: column[table['measured'] > 0.0] for name, column in table.items()}
    # It went along two sides: 4 m at 2 m/s and 1 m/s^2 at both ends take 4 s each
    for axis in ('north', 'east'):
        assert np.ptp(measured[axis]) == pytest.approx(4.0, abs=1.0)
    assert 0.0 < float(outcome.row['position_error_rms'] or 0.0) < 1.0
    assert float(outcome.row['height_error_max'] or 9.0) < 0.5
    assert float(outcome.row['ekf_wind_error_rms'] or 99.0) < 5.0
    # What the node made of the seed reached the vehicle, which says so itself
    (tmp_path / 'wind.mcap').write_bytes(outcome.files['wind.mcap'])
    (tmp_path / 'flight.tlog').write_bytes(outcome.files['flight.tlog'])
    bag, = read_flights(tmp_path / 'wind.mcap')
    assert [one.seed for one in bag.settings] == [7]
    log, = read_flights(tmp_path / 'flight.tlog')
    ticks = np.rint(measured['t'] / 0.05).astype(int)
    blown = dict(zip(bag.air.tick.tolist(), bag.air.sim_wind[0].tolist(), strict=True))
    np.testing.assert_allclose([blown[tick] for tick in ticks], measured['sim_wind_spd'], rtol=1e-5)
    heard = dict(zip(log.air.tick.tolist(), log.air.sim_wind[0].tolist(), strict=True))
    # A quarter of a second later at most, this wind is flown or a newer one
    arrived = sum(min(abs(heard[tick + 5] - blown[tick + newer]) for newer in range(6)) < 0.002
                  for tick in ticks if tick + 5 in heard)
    assert arrived > 0.9 * (len(ticks) - 5)


def test_a_vehicle_of_the_users_flies_a_mission_that_is_uploaded(tmp_path):
    """In AUTO, along the legs, until the last waypoint. Program and firmware are a variant's."""
    wrapper, other = Path(sitl(tmp_path).sitl), tmp_path / 'other.sh'
    other.write_text(f'#!/bin/sh\ncat "$1"\nshift\nexec {wrapper} "$@"')
    other.chmod(0o755)
    (tmp_path / 'new.bin').write_text('This is the new firmware.\n')
    plan = written(tmp_path, "vehicle: {sitl: '/bin/false {firmware}', altitude: 3, speedup: 4}\n"
                             'variants: {new: {executable: other.sh, firmware: new.bin}, '
                             'old: {firmware: other.sh}}\nwinds: {speed: 8}\n')
    new, old = plans.load(plan).entries
    (tmp_path / 'new.bin').write_text('This is a newer firmware.\n')
    assert plans.load(plan).entries[0].key != new.key  # what was built anew is flown anew
    assert fly(old).row['failure'] == 'the vehicle ended with 1'
    manoeuvre = Manoeuvre(path='mission', settle=0.0, seconds=60.0,
                          waypoints=((5.0, 0.0, 4.0), (5.0, 4.0, 4.0)))
    outcome = fly(replace(new, wall_limit=300.0, sim_limit=600.0, manoeuvre=manoeuvre))
    assert outcome.row['failure'] == '', outcome.files['vehicle.txt'][-1500:]
    table = table_of(outcome)
    there = {name: column[table['measured'] > 0.0][-1] for name, column in table.items()}
    assert (there['north'], there['east']) == pytest.approx((5.0, 4.0), abs=1.0)
    assert there['up'] == pytest.approx(4.0, abs=0.5)
    assert 0.0 < float(outcome.row['position_error_rms'] or 0.0) < 1.0
    assert b'Reached command #4' in outcome.files['vehicle.txt']
    assert outcome.files['vehicle.txt'].startswith(b'This is a newer firmware.')
    assert outcome.row['program'] == new.vehicle.digest


def test_both_kinds_of_mission_files_are_read_and_bad_ones_are_named(tmp_path):
    """1e-4 degrees of latitude are 11.13 m; of longitude, at 60 degrees, half of that."""
    wpl, plan = tmp_path / 'm.waypoints', tmp_path / 'm.plan'
    row = '{}\t0\t3\t{}\t0\t0\t0\t0\t{}\t{}\t{}\t1\n'
    wpl.write_text('QGC WPL 110\n' + row.format(0, 16, 60.0, 10.0, 500.0)
                   + row.format(1, 22, 0.0, 0.0, 20.0) + row.format(2, 16, 60.0001, 10.0, 20.0)
                   + row.format(3, 16, 60.0001, 10.0001, 25.0))
    plan.write_text(json.dumps({'mission': {'plannedHomePosition': [60.0, 10.0, 500.0], 'items': [
        {'command': 22, 'params': [0, 0, 0, 0, 0, 0, 20]},
        {'command': 16, 'params': [0, 0, 0, None, 60.0001, 10.0, 20]},
        {'command': 16, 'params': [0, 0, 0, None, 60.0001, 10.0001, 25]}]}}))
    wanted = [(11.13, 0.0, 20.0), (11.13, 5.57, 25.0)]
    for path in (wpl, plan):
        np.testing.assert_allclose(read_mission(path), wanted, atol=0.02)
    plan.write_text('{"mission": {"plannedHomePosition": [1, 2]}}')
    with pytest.raises(ValueError, match='no plan of QGroundControl'):
        read_mission(plan)
    wpl.write_text('QGC WPL 110\n' + row.format(0, 16, 60.0, 10.0, 500.0))
    with pytest.raises(ValueError, match='has no waypoint'):
        read_mission(wpl)
    wpl.write_text('nothing of the kind')
    with pytest.raises(ValueError, match='no QGC WPL file'):
        read_mission(wpl)


@pytest.mark.parametrize(('text', 'failure'), [
    ('EKF3 lane switch 1', 'EKF lane change'), ('EKF primary changed:1', 'EKF lane change'),
    ('EKF Failsafe: RTL', 'failsafe'), ('Radio Failsafe - Disarming', 'failsafe'),
    ('Crash: Disarming: AngErr=50>30, Accel=2.0<3.0', 'crash'),
    ('Radio Failsafe Cleared', ''), ('EKF3 IMU0 is using GPS', ''), ('GPS 1: detected u-blox', '')])
def test_what_a_vehicle_says_of_failsafes_and_lanes_fails_a_flight(text, failure):
    assert failure_said(text) == (f'{failure}: {text}' if failure else '')


def test_what_a_dataflash_log_says_of_failsafes_and_lanes_fails_a_flight(tmp_path):
    """ERR records, as ArduPilot numbers them: 17 is the EKF failsafe, code 0 its end."""
    path = tmp_path / 'log.BIN'
    for codes, failure in (([(17, 0), (2, 1)], ''), ([(17, 1)], 'failsafe: EKF (ERR 17, 1)'),
                           ([(24, 1)], 'EKF lane change (ERR 24, 1)')):
        path.write_bytes(dataflash_of(codes))
        assert failure_logged(path) == failure


def test_the_speedup_that_a_machine_carries_is_searched_both_ways():
    pace, tried = Pace(5.0), []
    for _ in range(8):  # as if 12 were what is carried
        speedup = pace.speedup
        while True:
            tried.append(speedup)
            well = speedup <= 12.0
            pace.went(speedup, well)
            if well:
                break
            speedup /= 2.0
    assert tried == [5.0, 10.0, 20.0, *[10.0] * 6]
    assert Pace(100.0).speedup == 100.0


def test_a_plan_of_another_vehicle_needs_no_script_and_one_with_ros_is_live(tmp_path):
    plan = tmp_path / 'plan.yaml'
    text = 'vehicle: {sitl: "arduplane --model plane"}\nvariants: {a: }\nwinds: {speed: 5}\n'
    plan.write_text(text + 'events: [{at: 3, parameter: Q_ENABLE, value: 1}]\n')
    one, = plans.load(plan).entries
    assert one.vehicle.sitl == 'arduplane --model plane'
    assert one.live
    plain, ros = (plans.load(written(tmp_path, f'variants: {{a: }}\nwinds: {{speed: 5}}\n{more}')
                             ).entries[0] for more in ('', 'ros: true\n'))
    assert (plain.live, ros.live) == (False, True)
    assert plain.key != ros.key
    (tmp_path / 'fly.py').write_text('pass')
    plan.write_text(text + 'flight: {script: fly.py}\n')
    one, = plans.load(plan).entries
    assert one.script == 'pass'
    assert os.path.basename(one.script_path) == 'fly.py'
    (tmp_path / 'b.py').write_text('exit(1)')
    plan.write_text('flight: {script: fly.py}\nvariants: {a: , b: {script: b.py}}\n'
                    'winds: {speed: 5}\n')
    assert [one.script for one in plans.load(plan).entries] == ['pass', 'exit(1)']
