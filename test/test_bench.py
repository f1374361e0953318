"""The bench runs whole, with its shortest settings; what it measures is not judged here."""

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import PATIENCE, wait_until

from dryden_wind_ros.tools import bench

ROS_PARTS = ('latency', 'nodes_cpu', 'khz_clock', 'history', 'speedup', 'vehicles', 'hundred')


def run(tmp_path, *parts):
    path = tmp_path / 'bench.json'
    code = bench.main(['--quick', '--json', str(path), '--part', *parts])
    assert code in (0, 1)  # 1: a limit was not held, on a busy machine
    return json.loads(path.read_text())


def children():
    """Process ids of all floors, nodes and vehicles that this process has started."""
    found = []
    for stat in Path('/proc').glob('[0-9]*/stat'):
        try:
            fields = stat.read_text().rpartition(')')[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and fields[0] != 'Z':
            found.append(int(stat.parent.name))
    return found


def check(report, parts):
    assert {row['part'] for row in report['rows']} == set(parts)
    for row in report['rows']:
        assert row['floor']
        assert row['what']
        assert row['note']
        assert math.isfinite(row['ratio'])
        assert row['low'] <= row['high']
        assert row['held'] in (True, False, None)
        assert (row['held'] is None) == (row['limit'] is None)
    assert report['cpus'] >= 1


def test_the_parts_without_ros_give_a_table_and_well_formed_json(tmp_path, capsys):
    parts = ('model', 'standard', 'fleet', 'field', 'arriving', 'phase', 'logs', 'json_relay',
             'campaign')
    check(run(tmp_path, *parts), parts)
    shown = capsys.readouterr().out
    assert 'DrydenGust.step, exact' in shown
    assert 'StandardGust.step' in shown
    assert 'TurbulenceField.gust, 100 vehicles' in shown
    assert 'decoding the message with pymavlink' in shown


@pytest.mark.ros2
@pytest.mark.parametrize('part', ROS_PARTS)
def test_each_part_with_ros_runs_and_leaves_no_process(tmp_path, part):
    before = children()
    check(run(tmp_path, part), (part,))
    assert children() == before


def test_every_part_is_run_by_some_test():
    assert {part.name for part in bench.PARTS} == {
        'model', 'standard', 'fleet', 'field', 'arriving', 'phase', 'logs', 'json_relay',
        'campaign', *ROS_PARTS}


def test_the_table_goes_between_the_marks_of_a_page(tmp_path):
    page = tmp_path / 'performance.md'
    page.write_text('# Speed\n\n<!-- bench -->\nold\n<!-- /bench -->\n\nThe end.\n')
    bench.main(['--quick', '--part', 'phase', '--markdown', str(page)])
    text = page.read_text()
    assert text.startswith('# Speed\n')
    assert text.endswith('<!-- /bench -->\n\nThe end.\n')
    assert '| WindPhaseMonitor.update, per message | decoding the message with pymavlink |' in text
    assert 'old' not in text


def test_an_unknown_part_is_named_with_those_there_are(capsys):
    with pytest.raises(SystemExit) as end:
        bench.main(['--part', 'warp'])
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert 'warp' in said
    assert 'khz_clock' in said


@pytest.mark.parametrize('option', ['--json', '--markdown'])
def test_a_file_that_cannot_be_written_is_named_before_anything_is_measured(
        tmp_path, capsys, option):
    with pytest.raises(SystemExit):
        bench.main(['--quick', '--part', 'phase', option, str(tmp_path)])

    out, err = capsys.readouterr()
    assert f'{tmp_path} cannot be written: Is a directory' in err
    assert out == ''


def test_json_on_stdout_is_nothing_but_json(capsys):
    bench.main(['--quick', '--json', '-', '--part', 'phase'])
    report = json.loads(capsys.readouterr().out)
    assert report['quick'] is True


@pytest.mark.ros2
def test_ctrl_c_ends_all_processes_of_a_part(tmp_path):
    log = tmp_path / 'log'
    with log.open('wb') as output:
        program = subprocess.Popen(
            [sys.executable, '-m', 'dryden_wind_ros.tools.bench', '--part', 'khz_clock'],
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True)

    def group():
        members = []
        for stat in Path('/proc').glob('[0-9]*/stat'):
            try:
                fields = stat.read_text().rpartition(')')[2].split()
            except OSError:
                continue
            if int(fields[2]) == program.pid and fields[0] != 'Z':
                members.append(stat.parent.name)
        return members
    try:
        wait_until(lambda: len(group()) >= 4, 40, 'the processes of khz_clock')
        os.killpg(program.pid, signal.SIGINT)
        assert program.wait(25 * PATIENCE) == 130
        wait_until(lambda: not group(), 5, 'the end of all of them')
    finally:
        if program.poll() is None:
            os.killpg(program.pid, signal.SIGKILL)
    assert 'Traceback' not in log.read_text(errors='replace')
