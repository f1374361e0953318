"""What all nodes share: parameters, QoS profiles, the check for the interfaces, start and stop.

Parameters are declared from a table of `Parameter` rows. A whole number given for a real-valued
parameter is taken as one; a refused value is answered with the parameter, the value and what is
allowed, and a name that no row declares is reported.
"""

from __future__ import annotations

import importlib
import math
import os
import re
import signal
import socket
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.callback_groups import CallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.parameter import Parameter as RclpyParameter
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rclpy.subscription import Subscription

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

_ALWAYS_KNOWN = ('use_sim_time', 'start_type_description_service')


class Polled(CallbackGroup):
    """A callback group that the executor never waits for; see `take_all`.

    Waking up for a message costs an rclpy node more than handling it. What is needed only together
    with something else is left in its queue and taken then.
    """

    def can_execute(self, _entity: object) -> bool:
        """Tell the executor to leave it alone."""
        return False

    def beginning_execution(self, _entity: object) -> bool:
        """Tell the executor to leave it alone."""
        return False

    def ending_execution(self, _entity: object) -> None:
        """Do nothing: the executor never begins."""


class Gate(CallbackGroup):
    """A callback group for a clock that speaks much more often than a tick.

    Gazebo's clock speaks every millisecond; waking up for each message costs more than the gusts
    do. So after a tick the gate closes for most of the time that the next one is expected to take:
    the executor does not wait for the clock, its messages wait in their queue. Then `on_open` is
    called, the messages are taken together, and the last of them before the tick wake the node one
    by one, so that the tick is not late. A clock that speaks about once a tick finds the gate open.

    Parameters
    ----------
    node : rclpy.node.Node
        The node; a timer of it, in steady time, opens the gate.

    Attributes
    ----------
    on_open : callable
        Called when the gate opens.
    """

    BUSY = 4.0
    """Messages a tick from which on the gate is used."""

    SHUT_FOR = 0.7
    """Part of a tick's wall time for which the gate stays closed."""

    def __init__(self, node: Node) -> None:
        super().__init__()
        self.on_open: Callable[[], None] = lambda: None
        self._open = True
        self._messages = 0
        self._per_tick = 1.0
        self._ticked_at: float | None = None
        self._timer = node.create_timer(
            0.1, self._opens, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self._timer.cancel()

    def can_execute(self, _entity: object) -> bool:
        """Tell the executor whether to wait."""
        return self._open

    def beginning_execution(self, _entity: object) -> bool:
        """Tell the executor whether to go on with a message that has come."""
        return self._open

    def ending_execution(self, _entity: object) -> None:
        """Do nothing: one message is like another."""

    def passed(self, messages: int, ticked: bool) -> None:
        """Count messages that were taken, and close after a tick of a busy clock."""
        self._messages += messages
        if not ticked:
            return
        now = time.monotonic()
        last, self._ticked_at = self._ticked_at, now
        self._per_tick += 0.2 * (self._messages - self._per_tick)
        self._messages = 0
        if last is None or self._per_tick < self.BUSY:
            return
        wait = self.SHUT_FOR * min(now - last, 0.5)
        if wait > 0.002:
            self._open = False
            self._timer.timer_period_ns = round(wait * 1e9)
            self._timer.reset()

    def _opens(self) -> None:
        self._timer.cancel()
        self._open = True
        self.on_open()


def take_all(subscription: Subscription) -> Iterator[Any]:
    """Yield the messages that wait in a subscription's queue, oldest first, without waiting."""
    with subscription.handle:
        while True:
            taken = subscription.handle.take_message(subscription.msg_type, False)
            if taken is None:
                return
            yield taken[0]


class InterfacesMissing(ImportError):
    """dryden_wind_interfaces is not built or not sourced."""


class BadParameter(ValueError):
    """A parameter has a value that is not allowed; the text names it, the value and the range."""


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


@dataclass(frozen=True)
class Parameter:
    """One row of a node's parameter table.

    Attributes
    ----------
    name : str
        As users write it, e.g. ``mean_wind.speed``.
    default : float, int, bool or str
        Its type is the parameter's type.
    description : str
        One sentence with the unit.
    low, high : float or int, optional
        Smallest and largest value allowed.
    choices : tuple of str, optional
        The texts allowed.
    above_low : bool, optional
        Whether `low` itself is forbidden.
    read_only : bool, optional
        Whether it can be given at the start only.
    """

    name: str
    default: float | int | bool | str
    description: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    above_low: bool = False
    read_only: bool = False

    @property
    def allowed(self) -> str:
        """What is allowed, in words."""
        kind = {bool: 'true or false', int: 'a whole number', float: 'a number',
                str: 'text'}[type(self.default)]
        if self.choices:
            return 'one of ' + ', '.join(self.choices)
        # A whole number in full: the largest seed has 19 digits.
        low, high = (limit if isinstance(limit, int) else f'{limit:g}' if limit is not None else ''
                     for limit in (self.low, self.high))
        if self.low is None and self.high is None:
            return kind
        if self.high is None:
            return f'{kind} {"above" if self.above_low else "from"} {low}'
        above = 'above ' if self.above_low else ''
        return f'{kind} from {above}{low} to {high}'

    def checked(self, value: object) -> Any:
        """Return the value in the parameter's type.

        Raises
        ------
        BadParameter
            If it is not allowed.
        """
        expected = type(self.default)
        if value is False and 'off' in self.choices:
            value = 'off'  # an unquoted off is a truth value in YAML
        good = isinstance(value, expected) and not (expected is int and isinstance(value, bool))
        if expected is float and isinstance(value, int) and not isinstance(value, bool):
            value, good = float(value), True
        if good and isinstance(value, float):
            good = math.isfinite(value)
        if good and isinstance(value, (int, float)) and not isinstance(value, bool):
            low_ok = self.low is None or value > self.low or (
                value == self.low and not self.above_low)
            good = low_ok and (self.high is None or value <= self.high)
        if good and self.choices:
            good = value in self.choices
        if not good:
            raise BadParameter(f'{self.name} is {value!r}; it must be {self.allowed}')
        return value

    def descriptor(self) -> ParameterDescriptor:
        """Return what ``ros2 param describe`` shows."""
        descriptor = ParameterDescriptor(
            description=self.description, read_only=self.read_only, dynamic_typing=True,
            additional_constraints=f'{self.name} must be {self.allowed}')
        if self.low is not None and self.high is not None:
            if isinstance(self.default, int):
                descriptor.integer_range = [
                    IntegerRange(from_value=int(self.low), to_value=int(self.high))]
            else:
                descriptor.floating_point_range = [
                    FloatingPointRange(from_value=float(self.low), to_value=float(self.high))]
        return descriptor


class ParameterTable:
    """Declares a node's parameters and keeps their values.

    Parameters
    ----------
    node : rclpy.node.Node
        The node.
    rows : sequence of Parameter
        What it declares.
    judge : callable, optional
        Called with all values as they would be after a change, to refuse what no single row can see
        (by raising ValueError). It must not have side effects.
    apply : callable, optional
        Called with all values after a change was accepted.
    also_known : iterable of str, optional
        Names that other nodes of the same process know: not to be reported.

    Attributes
    ----------
    values : dict
        Value of each parameter.
    given : frozenset of str
        Those that were given at the start.
    set_now : frozenset of str
        Those of the change that `apply` is called for, also where their values stayed the same.

    Raises
    ------
    BadParameter
        If a value given at the start is not allowed.
    """

    def __init__(self, node: Node, rows: Sequence[Parameter],
                 judge: Callable[[Mapping[str, Any]], None] | None = None,
                 apply: Callable[[Mapping[str, Any]], None] | None = None,
                 also_known: Iterable[str] = ()) -> None:
        self._node = node
        self._rows = {row.name: row for row in rows}
        self._judge = judge
        self._apply = apply
        self.values: dict[str, Any] = {}
        self.set_now: frozenset[str] = frozenset()
        overrides = dict(getattr(node, '_parameter_overrides', {}))
        self.given = frozenset(self._rows) & frozenset(overrides)
        for row in rows:
            if row.name in overrides:
                # Checked before rclpy sees it: its own text names neither the type nor the unit.
                value = row.checked(overrides[row.name].value)
            else:
                value = row.default
            node.declare_parameter(row.name, value, row.descriptor(), ignore_override=True)
            self.values[row.name] = value
        if judge is not None:
            judge(self.values)
        self._report_unknown(overrides, frozenset(also_known))
        node.add_pre_set_parameters_callback(self._pre_set)
        node.add_on_set_parameters_callback(self._on_set)
        node.add_post_set_parameters_callback(self._post_set)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def _report_unknown(self, overrides: Mapping[str, Any], also_known: frozenset[str]) -> None:
        unknown = sorted(
            name for name in overrides
            if name not in self._rows and name not in _ALWAYS_KNOWN and name not in also_known
            and not name.startswith('qos_overrides.'))
        for name in unknown:
            self._node.get_logger().error(
                f'parameter {name} is unknown and has no effect; '
                f'known are: {", ".join(sorted(self._rows))}')

    def _pre_set(self, parameters: list[RclpyParameter]) -> list[RclpyParameter]:
        return [self._as_declared(parameter) for parameter in parameters]

    def _as_declared(self, parameter: RclpyParameter) -> RclpyParameter:
        row = self._rows.get(parameter.name)
        if row is None:
            return parameter
        whole = isinstance(parameter.value, int) and not isinstance(parameter.value, bool)
        if isinstance(row.default, float) and whole:
            return RclpyParameter(parameter.name, value=float(parameter.value))
        if parameter.value is False and 'off' in row.choices:
            return RclpyParameter(parameter.name, value='off')
        return parameter

    def _on_set(self, parameters: list[RclpyParameter]) -> SetParametersResult:
        try:
            changed = dict(self.values)
            for parameter in parameters:
                if parameter.name in self._rows:
                    changed[parameter.name] = self._rows[parameter.name].checked(parameter.value)
            if self._judge is not None:
                self._judge(changed)
        except ValueError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _post_set(self, parameters: list[RclpyParameter]) -> None:
        for parameter in parameters:
            if parameter.name in self._rows:
                self.values[parameter.name] = self._rows[parameter.name].checked(parameter.value)
        self.set_now = frozenset(parameter.name for parameter in parameters)
        if self._apply is not None:
            self._apply(self.values)


def status(name: str, level: bytes, message: str,
           values: Mapping[str, object] | None = None) -> DiagnosticStatus:
    """Return one entry of a diagnostics message; `values` are shown as text."""
    return DiagnosticStatus(
        name=name, level=level, message=message, hardware_id='',
        values=[KeyValue(key=key, value=str(value)) for key, value in (values or {}).items()])


def run(make_node: Callable[[], Node], args: Sequence[str] | None = None,
        stop: Callable[[Node], None] | None = None,
        spin: Callable[[Node], None] = rclpy.spin,
        signals: SignalHandlerOptions = SignalHandlerOptions.ALL,
        rows: Sequence[Parameter] = (), about: str | None = None) -> int:
    """Run one node until it is told to stop, and return the process's exit code.

    SIGINT and SIGTERM end it with 0 and without a traceback. A bad parameter, missing interfaces or
    a command line or params file that ROS cannot read end it with 2 and one message.

    Parameters
    ----------
    make_node : callable
        Makes the node; may raise `BadParameter` or `InterfacesMissing`.
    args : sequence of str, optional
        Command line, as for ``rclpy.init``.
    stop : callable, optional
        Called with the node before it is destroyed, also after an exception.
    spin : callable, optional
        Called with the node; returns or raises when it is to stop.
    signals : rclpy.signals.SignalHandlerOptions, optional
        Which signals rclpy handles. It takes the context away at once; a node that has something to
        publish in `stop` handles them itself, in `spin`.
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
    _take_hangup_for_term()
    node = None
    try:
        rclpy.init(args=None if args is None else list(args), signal_handler_options=signals)
    except RuntimeError as error:  # RCLError and UnknownROSArgsError are of this kind
        print(f'[FATAL] {_program()}: {_why_not_begun(error)}', file=sys.stderr, flush=True)
        return 2
    try:
        node = make_node()
        spin(node)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except (BadParameter, InterfacesMissing, ParameterException) as error:
        print(f'[FATAL] {_program()}: {error}', file=sys.stderr, flush=True)
        return 2
    except RuntimeError:
        # A signal takes the context away in the middle of what the node does, publishing perhaps:
        # that raises RCLError, which is one of these.
        if rclpy.ok():
            raise
    finally:
        # Ctrl-C often comes twice: from the terminal and from launch. What is left takes a moment.
        _ignore_signals()
        if node is not None:
            try:
                if stop is not None:
                    stop(node)
            finally:
                node.destroy_node()
        rclpy.try_shutdown()
        _ignore_signals()  # rclpy has put back what was there before it
    return 0


def _why_not_begun(error: RuntimeError) -> str:
    if type(error).__name__ == 'UnknownROSArgsError':  # rclpy keeps the class to itself
        return f'unknown after --ros-args: {error}'
    # Where in ROS's own C code it was found is of no use to whoever wrote the command line.
    return re.sub(r',\s+at /\S+:\d+', '', str(error)).removeprefix('failed to initialize rcl: ')


def _take_hangup_for_term() -> None:
    """End as by SIGTERM where the terminal is closed.

    rclpy does not know SIGHUP, and a Python handler would not run while rclpy waits in C.
    """
    ours, wakeup = socket.socketpair()
    wakeup.setblocking(False)
    signal.set_wakeup_fd(wakeup.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGHUP, lambda _number, _frame: None)

    def wait() -> None:
        with wakeup:  # kept open as long as this thread lives
            while numbers := ours.recv(16):
                if signal.SIGHUP in numbers:
                    os.kill(os.getpid(), signal.SIGTERM)
    threading.Thread(target=wait, name='hangup', daemon=True).start()


def _ignore_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _help(about: str, rows: Sequence[Parameter]) -> str:
    lines = [f'usage: {_program()} --ros-args [-p NAME:=VALUE ...] [--params-file FILE]', '',
             about.strip(), '', 'parameters:']
    for row in rows:
        lines.append(f'  {row.name}: {row.allowed}; default {row.default!r}')
        lines += textwrap.wrap(row.description, 92, initial_indent='      ',
                               subsequent_indent='      ')
    return '\n'.join(lines)


def _program() -> str:
    return os.path.basename(sys.argv[0]) or 'dryden_wind_ros'
