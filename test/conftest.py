"""What every test run has: a ROS domain, log and state directories of its own.

Nothing a test starts is heard by, or hears, the ROS graph of the machine or of another test run.

Marks: ``@pytest.mark.ros2`` for tests that need rclpy and the built messages,
``@pytest.mark.ros2launch`` for those that also need ``ros2 launch``, which is not on PyPI.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from dryden_wind_ros.nodes.fast_dds import on_loopback

PROCESSES = 5
LONGEST = (
    'test_staying_up', 'test_bench', 'test_parameters', 'test_end_to_end',
    'test_wind_report_page', 'test_wind_fleet', 'test_mavlink_bridge', 'test_dryden_wind_node',
    'test_campaign', 'test_wind_report', 'test_ekf_phase', 'test_staying_up_fleet',
    'test_link', 'test_campaign_scripts', 'test_wind_owner', 'test_link_rates',
    'test_wind_top', 'test_emulator_link', 'test_staying_up_long', 'test_gazebo_wind_node',
    'test_dryden_fleet', 'test_logs', 'test_field_gusts', 'test_ekf_dataflash',
    'test_ekf_settled', 'test_hold', 'test_link_flood', 'test_sitl_wind_relay')
"""Files that take longest begin first: no process is left alone with one at the end."""

HOW_TO = 'run scripts/setup.sh, then: source scripts/env.sh'


def _importable(module: str, attribute: str) -> bool:
    # The attribute tells the real `launch` from this repository's folder of that name.
    try:
        return hasattr(importlib.import_module(module), attribute)
    except ImportError:
        return False


def _missing_for_ros2() -> str | None:
    if not _importable('rclpy', 'init'):
        return f'rclpy cannot be imported: {HOW_TO}'
    if not _importable('dryden_wind_interfaces.msg', 'WindState'):
        return f'the messages are not built (dryden_wind_interfaces cannot be imported): {HOW_TO}'
    return None


def _missing_for_launch() -> str | None:
    lacking = _missing_for_ros2()
    if lacking is not None:
        return lacking
    if not _importable('launch', 'LaunchDescription') or not _importable('launch_ros', 'actions'):
        return 'launch and launch_ros are not installed (they come with ROS 2, and are not on PyPI)'
    if shutil.which('ros2') is None:
        return 'the ros2 command is not installed'
    return None


@contextlib.contextmanager
def _domain() -> Iterator[int]:
    """Reserve a ROS domain for as long as the context lasts."""
    try:
        from domain_coordinator import domain_id
    except ImportError:
        yield random.randint(1, 100)
        return
    candidates = random.sample(range(1, 101), 100)
    with domain_id(lambda: candidates.pop()) as domain:
        yield domain


def _environment(scratch: Path, domain: int) -> dict[str, str]:
    environment = {
        'ROS_DOMAIN_ID': str(domain),
        # Shared memory of a killed test would be in the way of the next one.
        **on_loopback(scratch),
        'ROS_LOG_DIR': str(scratch / 'log'),
        'XDG_STATE_HOME': str(scratch / 'state'),
        'MPLBACKEND': 'Agg',
        'MPLCONFIGDIR': str(scratch / 'matplotlib'),
    }
    if 'AMENT_PREFIX_PATH' not in os.environ and Path(sys.prefix, 'share/ament_index').is_dir():
        # pytest was called by its path, env.sh not sourced.
        environment['AMENT_PREFIX_PATH'] = sys.prefix
        environment['PATH'] = f'{sys.prefix}/bin{os.pathsep}{os.environ.get("PATH", "")}'
    return environment


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Run the whole suite in five processes, also where `colcon test` or plain `pytest` runs it.

    Most tests wait for something. Whatever chooses tests, or says `-n`, is left alone.
    """
    option = config.option
    whole = list(config.args) == list(config.getini('testpaths')) and not (
        option.keyword or option.markexpr or option.collectonly or option.usepdb)
    if (whole and config.pluginmanager.hasplugin('xdist') and option.numprocesses is None
            and option.dist == 'no' and 'PYTEST_XDIST_WORKER' not in os.environ):
        option.numprocesses, option.dist = PROCESSES, 'loadfile'
        # Longest files first, see LONGEST; xdist would begin with those of the most tests
        option.loadscopereorder = False


def pytest_configure(config: pytest.Config) -> None:
    """Set the environment of the run, before any test module imports rclpy."""
    # Performance is the bench's business: a slow machine fails no test.
    hypothesis.settings.register_profile(
        'unhurried', deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
    hypothesis.settings.load_profile('unhurried')
    config.addinivalue_line('markers', 'ros2: needs rclpy and the built messages')
    config.addinivalue_line('markers', 'ros2launch: needs the launch packages and the ros2 command')
    stack = contextlib.ExitStack()
    config.add_cleanup(stack.close)
    scratch = Path(stack.enter_context(
        tempfile.TemporaryDirectory(prefix='dryden_wind_ros-test-', ignore_cleanup_errors=True)))
    for name in ('log', 'state', 'matplotlib'):
        (scratch / name).mkdir()
    patch = stack.enter_context(pytest.MonkeyPatch.context())
    for name, value in _environment(scratch, stack.enter_context(_domain())).items():
        patch.setenv(name, value)
    for name in ('ROS_LOCALHOST_ONLY', 'ROS_STATIC_PEERS', 'ROS_DISCOVERY_SERVER',
                 'PYTHONDONTWRITEBYTECODE'):
        patch.delenv(name, raising=False)
    # Hundreds of processes import the package: it is compiled once, and so are the tests.
    patch.setattr(sys, 'dont_write_bytecode', False)


def pytest_report_header() -> list[str]:
    """Say which domain is used, and what is missing."""
    lacking = _missing_for_launch()
    lines = [f'ROS_DOMAIN_ID {os.environ["ROS_DOMAIN_ID"]}']
    return lines if lacking is None else [*lines, f'some tests are skipped: {lacking}']


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files; skip what this machine lacks something for, with the reason."""
    order = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.stem, len(LONGEST)))
    for mark, lacking in (('ros2', _missing_for_ros2()), ('ros2launch', _missing_for_launch())):
        if lacking is not None:
            for item in items:
                if item.get_closest_marker(mark):
                    item.add_marker(pytest.mark.skip(reason=lacking))
