"""What all nodes share: QoS profiles, the check for the interfaces, start and stop.

Parameters, callback groups and the inside of rclpy have files of their own; what nodes use of them
can be had from here too.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from rclpy.exceptions import ParameterException
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future

from dryden_wind_ros import ending
from dryden_wind_ros.nodes import inside_rclpy, params_files
from dryden_wind_ros.nodes.callback_groups import Gate, Polled
from dryden_wind_ros.nodes.inside_rclpy import take_all
from dryden_wind_ros.nodes.parameters import BadParameter, Parameter, ParameterTable
from dryden_wind_ros.pipes import pipe_safe

__all__ = [
    'CLOCK_QOS', 'INTERFACES_MISSING', 'LATCHED_QOS', 'SENSOR_QOS', 'STREAM_QOS', 'BadParameter',
    'Gate', 'InterfacesMissing', 'Parameter', 'ParameterTable', 'Polled', 'interfaces', 'run',
    'spin', 'status', 'take_all']

CLOCK_QOS = QoSProfile(
    history=HistoryPolicy.KEEP_LAST, depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT)
"""For reading clocks: matches every publisher, and keeps what a pause of the reader would lose."""

STREAM_QOS = QoSProfile(
    history=HistoryPolicy.KEEP_LAST, depth=50, reliability=ReliabilityPolicy.RELIABLE)
"""For what is published at every tick, and for reading it."""

SENSOR_QOS = QoSProfile(
    history=HistoryPolicy.KEEP_LAST, depth=50, reliability=ReliabilityPolicy.BEST_EFFORT)
"""For reading odometry of any source."""

LATCHED_QOS = QoSProfile(
    history=HistoryPolicy.KEEP_LAST, depth=1, reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""The newest message, also for those who come later."""

INTERFACES_MISSING = """\
The messages of dryden_wind_ros are not built: there is no Python module 'dryden_wind_interfaces'.
In a ROS 2 workspace that holds the repository as src/dryden_wind_ros, build and source both:
    colcon build --base-paths src src/dryden_wind_ros/dryden_wind_interfaces
    source install/setup.bash
On a machine without ROS, run scripts/setup.sh and source scripts/env.sh instead."""


class InterfacesMissing(ImportError):
    """dryden_wind_interfaces is not built or not sourced."""


def interfaces(kind: str = 'msg') -> Any:
    """Return the module ``dryden_wind_interfaces.msg`` or ``.srv``.

    Raises
    ------
    InterfacesMissing
        With the commands that build it, if it cannot be imported.
    """
    try:
        return importlib.import_module(f'dryden_wind_interfaces.{kind}')
    except ImportError as error:
        raise InterfacesMissing(INTERFACES_MISSING) from error


def status(name: str, level: bytes, message: str,
           values: Mapping[str, object] | None = None) -> DiagnosticStatus:
    """Return one entry of a diagnostics message; `values` are shown as text."""
    return DiagnosticStatus(
        name=name, level=level, message=message, hardware_id='',
        values=[KeyValue(key=key, value=str(value)) for key, value in (values or {}).items()])


def spin(node: Node) -> None:
    """Look after a node until the program is told to end."""
    told: Future = Future()
    ending.when_told(lambda: told.set_result(None))
    rclpy.spin_until_future_complete(node, told)


GONE_WITHIN_S = 90.0
"""How long ROS may take to let a node go at the end, s; two hundred take 8 s on a busy machine."""


@pipe_safe
def run(make_node: Callable[[], Node], args: Sequence[str] | None = None,
        stop: Callable[[Node], None] | None = None,
        spin: Callable[[Node], None] = spin,
        rows: Sequence[Parameter] = (), about: str | None = None) -> int:
    """Run one node until it is told to stop, and return the process's exit code.

    SIGINT, SIGTERM and SIGHUP end it with 0 and without a traceback, wherever they find it. A bad
    parameter, missing interfaces or a command line or params file that ROS cannot read end it with
    2 and one message.

    Parameters
    ----------
    make_node : callable
        Makes the node; may raise `BadParameter` or `InterfacesMissing`.
    args : sequence of str, optional
        Command line, as for ``rclpy.init``.
    stop : callable, optional
        Called with the node before it is destroyed, also after an exception. It may publish.
    spin : callable, optional
        Called with the node; returns when the program is told to end, see `ending`.
    rows : sequence of Parameter, optional
        What ``--help`` lists.
    about : str, optional
        What ``--help`` begins with: the module's docstring.
    """
    words = list(sys.argv[1:] if args is None else args)
    own = words[:words.index('--ros-args')] if '--ros-args' in words else words
    if {'-h', '--help'} & set(own):
        print(_help(about or '', rows))
        return 0
    ending.listen()
    node = None
    try:
        # The signals are ours: rclpy would take the context away in the middle of something.
        rclpy.init(args=None if args is None else list(args),
                   signal_handler_options=SignalHandlerOptions.NO)
    except RuntimeError as error:  # RCLError and UnknownROSArgsError are of this kind
        print(f'[FATAL] {_program()}: {_why_not_begun(error)}', file=sys.stderr, flush=True)
        return 2
    try:
        if not ending.told():
            node = make_node()
            params_files.report_unused(node, words)
            spin(node)
    except (BadParameter, InterfacesMissing, ParameterException) as error:
        print(f'[FATAL] {_program()}: {error}', file=sys.stderr, flush=True)
        return 2
    finally:
        if node is not None:
            try:
                if stop is not None:
                    stop(node)
            finally:
                # Whatever was to be put back is
                ending.within(GONE_WITHIN_S)
                node.destroy_node()
        rclpy.try_shutdown()
        ending.within(0.0)  # whoever called this may go on
        ending.leave_alone()
    return 0


def _why_not_begun(error: RuntimeError) -> str:
    if inside_rclpy.is_unknown_argument(error):
        return f'unknown after --ros-args: {error}'
    # Where in ROS's own C code it was found is of no use to whoever wrote the command line.
    return re.sub(r',\s+at /\S+:\d+', '', str(error)).removeprefix('failed to initialize rcl: ')


def _help(about: str, rows: Sequence[Parameter]) -> str:
    lines = [f'usage: {_program()} --ros-args [-p NAME:=VALUE ...] [--params-file FILE]', '',
             _plain(about.strip()), '', 'parameters:']
    for row in rows:
        lines.append(f'  {row.name}: {row.allowed}; default {row.default!r}')
        lines += textwrap.wrap(row.description, 92, initial_indent='      ',
                               subsequent_indent='      ')
    return '\n'.join(lines)


def _plain(about: str) -> str:
    """Return a docstring without the marks of its markup."""
    about = re.sub(r':\w+:`~?(?:[\w.]*\.)?(\w+)`', r'\1', about)
    about = re.sub(r'(`+)([^`]+)\1', r'\2', about)
    return re.sub(r'::$', ':', about, flags=re.MULTILINE)


def _program() -> str:
    return os.path.basename(sys.argv[0]) or 'dryden_wind_ros'
