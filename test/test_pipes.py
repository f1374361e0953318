"""Programs whose reader leaves (``| head``): they end in silence, whatever they were saying."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from support import ekf_flights as flights
from support import free_port

from dryden_wind_ros.pipes import READER_LEFT

# Each in a child of one process, so that the libraries are loaded once. Its standard output is a
# pipe that nobody reads, or that somebody reads a little of.
RUN_ALL = """
import importlib, os, sys, traceback

def run(module, arguments, error):
    read, write = os.pipe()
    os.close(read)
    os.dup2(write, 1)
    os.dup2(os.open(error, os.O_WRONLY | os.O_CREAT), 2)
    sys.argv = [module, *arguments]
    sys.exit(importlib.import_module(module).main())

for line in sys.stdin:
    name, error, module, *arguments = line.rstrip('\\n').split('\\t')
    importlib.import_module(module)
    child = os.fork()
    if not child:
        run(module, arguments, error)
    print(name, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), sep='\\t', flush=True)
"""

PLANE = str(flights.tlog_path('plane_no_tas'))
PROGRAMS = {
    **{f'{name} --help': (f'dryden_wind_ros.{module}', '--help') for name, module in {
        'air': 'tools.air', 'bench': 'tools.bench', 'demo': 'tools.demo',
        'ekf_replay': 'tools.ekf_replay', 'ekf_what_if': 'tools.ekf_what_if',
        'ekf_wind_log': 'tools.ekf_wind_log', 'sitl_emulator': 'emulator.main',
        'wind_report': 'tools.wind_report',
        'wind_scenario': 'tools.wind_scenario', 'wind_top': 'tools.wind_top',
        'dryden_wind': 'nodes.dryden_wind', 'wind_record': 'nodes.wind_record',  # as all nodes do
    }.items()},
    'ekf_replay': ('dryden_wind_ros.tools.ekf_replay', PLANE),
    'ekf_wind_log': ('dryden_wind_ros.tools.ekf_wind_log', PLANE),
    'sitl_emulator': ('dryden_wind_ros.emulator.main', '--connection', 'tcp:PORT'),
    'wind_scenario': ('dryden_wind_ros.tools.wind_scenario', 'SCENARIO'),
    # Last, for what it loads makes every child slower to end.
    'wind_campaign --help': ('dryden_wind_ros.tools.wind_campaign', '--help'),
}


@pytest.fixture(scope='module')
def ended(tmp_path_factory):
    """Run all programs; return exit status and standard error of each."""
    folder: Path = tmp_path_factory.mktemp('pipes')
    scenario = folder / 'wind.yaml'
    scenario.write_text('wind: {speed: 8, from: 270}\nchanges:\n- {at: 10, speed: 12}\n')
    known = {'SCENARIO': str(scenario), 'tcp:PORT': f'tcp:127.0.0.1:{free_port()}'}
    jobs = [[name, str(folder / str(at)), *(known.get(word, word) for word in words)]
            for at, (name, words) in enumerate(PROGRAMS.items())]
    done = subprocess.run([sys.executable, '-c', RUN_ALL], text=True, capture_output=True,
                          input=''.join('\t'.join(job) + '\n' for job in jobs), timeout=300,
                          check=False)
    codes = dict(line.split('\t') for line in done.stdout.splitlines())
    assert set(codes) == set(PROGRAMS), done.stderr
    return {name: (int(codes[name]), Path(error).read_text()) for name, error, *_ in jobs}


@pytest.mark.parametrize('name', PROGRAMS)
def test_a_program_whose_reader_leaves_ends_in_silence(ended, name):
    code, said = ended[name]

    # Progress and warnings of a slow machine or of a log are no trouble; these are.
    assert 'Traceback' not in said
    assert 'Errno' not in said
    assert 'Broken' not in said
    # argparse lets nobody know that its help could not be written.
    assert code == READER_LEFT or (code == 0 and name.endswith('--help'))


@pytest.mark.parametrize('name', ['dryden_wind', 'gazebo_wind', 'mavlink_bridge',
                                  'sitl_wind_relay', 'wind_fleet', 'wind_markers', 'wind_record'])
def test_the_help_of_a_node_is_text_without_marks(name, capsys):
    node = importlib.import_module(f'dryden_wind_ros.nodes.{name}')

    assert node.main(['--help']) == 0

    said = capsys.readouterr().out
    about = said[:said.index('parameters:')]
    assert '`' not in about
    assert '::' not in about
    assert len(about) > 100
