"""The main job, shown: a vehicle hovers in seeded gusts, and the air is measured.

Starts the embedded vehicle (or uses a running SITL), the MAVLink bridge and the wind node as
processes of their own, watches the air for two minutes of sim time, and compares its strength with
the model's. The wind history is fetched through the service and saved as a picture.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dryden_wind_ros.gusts.history import KEPT_S
from dryden_wind_ros.nodes import common
from dryden_wind_ros.pipes import pipe_safe
from dryden_wind_ros.tools import demo_fleet

NAMESPACE = f'/dryden_demo_{os.getpid()}'  # two demos at a time must not hear each other
HOVER_HEIGHT = 10.0
STOP_S = 10.0
"""Patience with a process that was told to end, s."""


class DemoFailed(RuntimeError):
    """The demo cannot go on; the text says what was missing."""


@dataclass
class Child:
    """A started process and the file its output goes to."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def ended(self) -> str | None:
        """Return what it last said if it has ended by itself."""
        if self.process.poll() is None:
            return None
        lines = self.log.read_text(errors='replace').strip().splitlines()
        return f'{self.name} ended with code {self.process.returncode}: ' + '\n  '.join(lines[-4:])

    def stop(self, patience: float) -> None:
        """Send SIGINT, and SIGKILL after `patience` s."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


@dataclass
class Watch:
    """What the demo has heard."""

    states: list[Any] = field(default_factory=list)

    def on_state(self, message: Any) -> None:
        if self.states and message.tick < self.states[-1].tick:
            self.states.clear()
        self.states.append(message)


@pipe_safe
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo and return the process's exit code."""
    options = _parser().parse_args(arguments)
    console = Console(highlight=False)
    told_to_stop: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A flag: an exception in the middle of what rclpy does in C would come out as another one.
        signal.signal(number, lambda number, _frame: told_to_stop.append(number))
    try:
        common.interfaces()
        with ExitStack() as stack:
            run = _demo if options.vehicles == 1 else _fleet_demo
            return run(options, console, stack, told_to_stop)
    except (DemoFailed, common.InterfacesMissing) as error:
        console.print(f'[red]demo: {error}[/red]')
        return 1
    except KeyboardInterrupt:
        console.print('stopped')
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='demo.sh', description='Fly a hover in seeded gusts and measure the air.',
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument('--connection', metavar='STRING',
                        help='a running SITL instead of the embedded vehicle, for example '
                             'tcp:127.0.0.1:5762')
    parser.add_argument('--mean-wind', type=float, default=8.0, metavar='M/S', help='mean wind')
    parser.add_argument('--from', type=float, default=270.0, metavar='DEG', dest='from_deg',
                        help='where it comes from')
    parser.add_argument('--method', choices=('exact', 'euler'), default='exact',
                        help='update of the gust model')
    parser.add_argument('--gusts', choices=('dryden', 'field'), default='dryden',
                        help='of a model, for each vehicle; or one air for all')
    parser.add_argument('--vehicles', type=int, default=1, metavar='N',
                        help='embedded vehicles in a line along the wind, at most 9')
    parser.add_argument('--seed', type=int, default=7, help='seed of the gusts')
    parser.add_argument('--seconds', type=float, default=KEPT_S, metavar='S',
                        help='sim time to watch, at most 120')
    parser.add_argument('--speedup', type=float, default=10.0,
                        help='of the embedded vehicle')
    parser.add_argument('--output', type=Path, default=Path('demo_output'), metavar='FOLDER',
                        help='where picture, bag and page go')
    return parser


def _demo(options: argparse.Namespace, console: Console, stack: ExitStack,
          told_to_stop: Sequence[int]) -> int:
    if not 1.0 <= options.seconds <= KEPT_S:
        raise DemoFailed(f'--seconds is {options.seconds:g}; it must be from 1 to {KEPT_S:g}')
    # Nobody else's nodes are to hear this, nor be heard.
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    logs = Path(stack.enter_context(tempfile.TemporaryDirectory(
        prefix='dryden_wind_demo-', ignore_cleanup_errors=True)))
    children: list[Child] = []

    connection = options.connection
    if connection is None:
        port = _free_port()
        connection = f'tcp:127.0.0.1:{port}'
        vehicle = _start('embedded vehicle', logs, stack, 1.0, [
            '-m', 'dryden_wind_ros.emulator.main', '--vehicle', 'copter', '--drag',
            '--flight', 'hover', '--takeoff-alt', f'{HOVER_HEIGHT:g}',
            '--speedup', f'{options.speedup:g}', '--connection', connection])
        children.append(vehicle)
        _step(console, f'embedded vehicle at speedup {options.speedup:g} on {connection}')

    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    stack.callback(rclpy.try_shutdown)
    node = rclpy.create_node('demo', namespace=NAMESPACE)
    stack.callback(node.destroy_node)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    watch = Watch()
    node.create_subscription(common.interfaces().WindState, 'wind/state', watch.on_state,
                             common.STREAM_QOS)

    remap = ['-r', f'__ns:={NAMESPACE}']
    children.append(_start('wind node', logs, stack, STOP_S, [
        '-m', 'dryden_wind_ros.nodes.dryden_wind', '--ros-args', *remap,
        '-p', f'mean_wind.speed:={float(options.mean_wind)}',
        '-p', f'mean_wind.from_direction:={float(options.from_deg)}',
        '-p', f'seed:={options.seed}', '-p', f'method:={options.method}',
        '-p', f'gusts:={options.gusts}']))
    stack.callback(_say_put_back, console, children)  # after the bridge has been stopped
    # Stopped first, so that SIM_WIND_* are put back before the vehicle goes.
    children.append(_start('MAVLink bridge', logs, stack, STOP_S, [
        '-m', 'dryden_wind_ros.nodes.mavlink_bridge', '--ros-args', *remap,
        '-p', f'connection:={connection}', '-p', 'publish_clock:=true']))
    _step(console, f'MAVLink bridge to {connection} and wind node, in namespace {NAMESPACE}')
    # Not among the children: a flight without its record is a flight.
    bag, recorder = _record(options.output, logs, stack)

    def wait(condition: Callable[[], object], timeout: float, what: str) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            executor.spin_once(timeout_sec=0.05)
            if told_to_stop:
                raise KeyboardInterrupt
            for child in children:
                ended = child.ended()
                if ended is not None:
                    raise DemoFailed(ended)
            if time.monotonic() > deadline:
                said = '\n  '.join(
                    line for child in children
                    for line in child.log.read_text(errors='replace').splitlines()[-3:])
                raise DemoFailed(f'waited {timeout:g} s in vain for {what}. Last words:\n  {said}')

    wait(lambda: watch.states, 30.0, 'the first tick of the air')
    first = watch.states[0]
    _step(console, f'the air blows: mean wind {first.mean_wind_speed:g} m/s from '
                   f'{first.mean_wind_from_deg:g} deg, seed {first.seed}, {first.method}')
    if options.connection is None:
        with _live(console) as live:
            wait(lambda: _shown(live, watch.states[-1], 'climbing') and
                 abs(watch.states[-1].height - HOVER_HEIGHT) < 0.5, 60.0,
                 f'the vehicle to reach {HOVER_HEIGHT:g} m')
        _step(console, f'hovering at {watch.states[-1].height:.1f} m')

    start = watch.states[-1].t
    began, restarts = time.monotonic(), watch.states[-1].restarts
    with _live(console) as live:
        def watched() -> bool:
            state = watch.states[-1]
            if state.restarts != restarts:
                raise DemoFailed('the vehicle restarted in the middle of the demo')
            done = state.t - start
            _shown(live, state, f'{min(done, options.seconds):5.1f} of {options.seconds:g} s')
            return done >= options.seconds - 1e-6
        slowest = 0.2
        wait(watched, options.seconds / slowest, f'{options.seconds:g} s of sim time')
    speedup = options.seconds / (time.monotonic() - began)

    history = _history(node, executor, options.seconds)
    states = [s for s in watch.states if s.t > start + 1e-6]
    console.print()
    console.print(_table(history, states))
    missed = states[-1].missed_ticks - first.missed_ticks
    console.print(f'{len(history.t)} ticks at speedup {speedup:.1f}, {missed} missed')
    if recorder is not None:
        recorder.stop(STOP_S)
        console.print('the flight as a bag:', Text(str(bag), 'bold'), soft_wrap=True)
        if recorder.process.returncode:
            said = recorder.log.read_text(errors='replace').splitlines() or ['it said nothing']
            why = next((line for line in said if 'Nothing more is recorded' in line), said[-1])
            console.print(Text.assemble(('not all of it: ', 'yellow'), why), soft_wrap=True)
    else:
        console.print('the flight was not recorded: python3 -m pip install rosbags')
    stack.close()  # nobody needs the flight while the pictures are drawn
    picture = _picture(history, states[-1], options.output)
    console.print('picture of the wind history:', Text(str(picture), 'bold'), soft_wrap=True)
    if recorder is not None:
        console.print(_report(bag, picture.with_suffix('.html')), soft_wrap=True)
    return 0


def _fleet_demo(options: argparse.Namespace, console: Console, stack: ExitStack,
                told_to_stop: Sequence[int]) -> int:
    """Fly several embedded vehicles in a line along the wind."""
    if not 2 <= options.vehicles <= 9:
        raise DemoFailed(f'--vehicles is {options.vehicles}; it must be from 1 to 9')
    if options.connection is not None:
        raise DemoFailed('--vehicles flies embedded vehicles: leave out --connection')
    if not 10.0 <= options.seconds <= KEPT_S:
        raise DemoFailed(f'--seconds is {options.seconds:g}; it must be from 10 to {KEPT_S:g}')
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    logs = Path(stack.enter_context(tempfile.TemporaryDirectory(
        prefix='dryden_wind_demo-', ignore_cleanup_errors=True)))
    port = _free_port()
    if port + 10 * options.vehicles > 65535:
        port -= 10 * options.vehicles
    names = [f'{NAMESPACE[1:]}/v{i + 1}' for i in range(options.vehicles)]
    file = demo_fleet.fleet_file(logs, names, lambda i: f'tcp:127.0.0.1:{port + 10 * i}')
    children = [_start('embedded vehicles', logs, stack, 1.0, [
        '-m', 'dryden_wind_ros.emulator.main', '--vehicle', 'copter', '--drag', '--flight',
        'hover', '--takeoff-alt', f'{HOVER_HEIGHT:g}', '--speedup', f'{options.speedup:g}',
        '--count', str(options.vehicles), '--spacing', f'{demo_fleet.SPACING_M:g}',
        '--connection', f'tcp:127.0.0.1:{port}'])]
    _step(console, f'{options.vehicles} embedded vehicles, {demo_fleet.SPACING_M:g} m apart to '
                   'the east')
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    stack.callback(rclpy.try_shutdown)
    node = rclpy.create_node('demo', namespace=NAMESPACE)
    stack.callback(node.destroy_node)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    watches = [Watch() for _ in names]
    for name, watch in zip(names, watches, strict=True):
        node.create_subscription(common.interfaces().WindState, f'/{name}/wind/state',
                                 watch.on_state, common.CLOCK_QOS)
    children.append(_start('fleet', logs, stack, STOP_S, [
        '-m', 'dryden_wind_ros.nodes.wind_fleet', '--ros-args', '-p', f'vehicles_file:={file}',
        '-p', f'mean_wind.speed:={float(options.mean_wind)}',
        '-p', f'mean_wind.from_direction:={float(options.from_deg)}',
        '-p', f'seed:={options.seed}', '-p', f'method:={options.method}',
        '-p', f'gusts:={options.gusts}']))

    def wait(condition: Callable[[], object], timeout: float, what: str) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            executor.spin_once(timeout_sec=0.05)
            if told_to_stop:
                raise KeyboardInterrupt
            for child in children:
                ended = child.ended()
                if ended is not None:
                    raise DemoFailed(ended)
            if time.monotonic() > deadline:
                raise DemoFailed(f'waited {timeout:g} s in vain for {what}')

    wait(lambda: all(watch.states and abs(watch.states[-1].height - HOVER_HEIGHT) < 0.5
                     for watch in watches), 90.0, 'all vehicles to hover')
    _step(console, f'all hover at {HOVER_HEIGHT:g} m; watching {options.seconds:g} s of sim time')
    for watch in watches:
        watch.states = watch.states[-1:]
    with _live(console) as live:
        wait(lambda: _shown(live, watches[0].states[-1], 'vehicle 1') and all(
            watch.states[-1].t - watch.states[0].t >= options.seconds for watch in watches),
            5.0 * options.seconds + 30.0, f'{options.seconds:g} s of sim time')
    times, gusts = demo_fleet.gusts_by_time([watch.states for watch in watches])
    console.print()
    console.print(demo_fleet.passing_table(gusts, options.mean_wind, options.gusts == 'field'))
    stack.close()  # nobody needs the flight while the picture is drawn
    path = options.output / f'formation_{options.gusts}_seed{options.seed}.png'
    try:
        picture = demo_fleet.passing_picture(
            times, gusts, f'{options.vehicles} vehicles in a line, mean wind '
            f'{options.mean_wind:g} m/s from {options.from_deg:g}°, gusts: {options.gusts}, seed '
            f'{options.seed}', path)
    except OSError as error:
        raise DemoFailed(f'cannot write the picture {path}: {error.strerror}') from error
    console.print('picture of the gusts:', Text(str(picture), 'bold'), soft_wrap=True)
    return 0


def _record(folder: Path, logs: Path, stack: ExitStack) -> tuple[Path, Child | None]:
    """Start the recording of the flight, where there is what it needs."""
    bag = folder.absolute() / f'flight_{datetime.now():%Y%m%d_%H%M%S}_{os.getpid()}'
    if importlib.util.find_spec('rosbags') is None:
        return bag, None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DemoFailed(f'cannot write to {folder}: {error.strerror}') from error
    return bag, _start('recorder', logs, stack, STOP_S, [
        '-m', 'dryden_wind_ros.nodes.wind_record', '--ros-args', '-r', f'__ns:={NAMESPACE}',
        '-p', f'bag:={json.dumps(str(bag))}'])


def _report(bag: Path, page: Path) -> Text:
    """Make the report's page of the recorded flight; return what is to be said of it."""
    made = subprocess.run(
        [sys.executable, '-m', 'dryden_wind_ros.tools.wind_report', str(bag), '-o', str(page)],
        capture_output=True, text=True, check=False)
    if not page.exists():
        return Text.assemble(('no page of the flight: ', 'yellow'), made.stderr.strip())
    return Text.assemble('page of the flight: ', (str(page), 'bold'))


def _start(name: str, logs: Path, stack: ExitStack, patience: float,
           arguments: list[str]) -> Child:
    log = logs / f'{name.replace(" ", "_")}.log'
    with log.open('wb') as output:
        # A session of its own: Ctrl-C reaches it through stop(), in the right order.
        process = subprocess.Popen(
            [sys.executable, *arguments], stdout=output, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, 'RCUTILS_LOGGING_USE_STDOUT': '1', 'PYTHONUNBUFFERED': '1'})
    child = Child(name, process, log)
    stack.callback(child.stop, patience)
    return child


def _say_put_back(console: Console, children: list[Child]) -> None:
    for child in children:
        said = child.log.read_text(errors='replace').splitlines()
        if child.name != 'MAVLink bridge' or not any('put back at the end' in x for x in said):
            continue  # no bridge, or it had not set anything yet
        lines = [line for line in said if 'put back and confirmed' in line]
        if lines:
            _step(console, lines[-1].split(': ', 1)[-1])
        else:
            console.print('[yellow]the bridge did not say that SIM_WIND_* were put back; its last '
                          f'words: {said[-1]}[/yellow]')


def _step(console: Console, text: str) -> None:
    console.print(Text.assemble(('== ', 'bold green'), text), soft_wrap=True)


class _Plain:
    """The live line where there is no terminal: one line now and then."""

    def __init__(self, console: Console, every: float) -> None:
        self._console, self._every = console, every
        self._next = -math.inf

    def __enter__(self) -> _Plain:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, line: Text) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + self._every
            self._console.print(line, soft_wrap=True)


def _live(console: Console) -> Any:
    if console.is_terminal:
        return Live(console=console, refresh_per_second=8, transient=False)
    return _Plain(console, 2.0)


def _shown(live: Any, state: Any, what: str) -> bool:
    bar = '=' * round(min(12.0, 1.2 * state.sim_wind_spd))
    live.update(Text.assemble(
        (f'   {what:<16}', 'cyan'), f'h {state.height:5.1f} m  gust u {state.u:+5.2f}  '
        f'v {state.v:+5.2f}  w {state.w:+5.2f} m/s  wind {state.sim_wind_spd:5.2f} m/s from '
        f'{state.sim_wind_dir:3.0f} deg ', (bar, 'blue')))
    return True


def _history(node: Any, executor: SingleThreadedExecutor, seconds: float) -> Any:
    service = common.interfaces('srv').GetWindHistory
    client = node.create_client(service, 'wind/get_history')
    future = client.call_async(service.Request(seconds=seconds, step=0.0))
    executor.spin_until_future_complete(future, timeout_sec=10.0)
    answer = future.result()
    if answer is None or not answer.success:
        raise DemoFailed('wind/get_history gave no answer' if answer is None else answer.message)
    return answer


def _table(history: Any, states: list[Any]) -> Table:
    table = Table(title='Strength of the gusts (standard deviation)', title_justify='left')
    table.add_column('axis')
    for heading in ('measured m/s', 'model m/s', 'expected spread of the measurement'):
        table.add_column(heading, justify='right')
    seconds = len(history.t) * 0.05
    for axis, words in (('u', 'along the wind'), ('v', 'across'), ('w', 'up')):
        sigma = _rms([getattr(s, f'sigma_{axis}') for s in states])
        tau = float(np.mean([
            getattr(s, f'length_{axis}') / max(s.airspeed, s.mean_wind_speed, 1.0)
            for s in states]))
        # About zero, the mean square of T seconds has the variance 2 sigma^4 tau / T.
        spread = sigma * math.sqrt(tau / (2.0 * seconds)) if sigma else 0.0
        table.add_row(f'{axis}  {words}', f'{_rms(getattr(history, axis)):.2f}', f'{sigma:.2f}',
                      f'+- {spread:.2f} (time constant {tau:.1f} s)')
    return table


def _rms(values: Sequence[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def _picture(history: Any, state: Any, folder: Path) -> Path:
    import matplotlib
    matplotlib.use('Agg')
    from matplotlib import pyplot as plt

    t = np.asarray(history.t)
    figure, axes = plt.subplots(3, 1, sharex=True, figsize=(10, 6.4), height_ratios=(3, 2, 1.4),
                                layout='constrained')
    gust, given, flight = axes
    for axis, colour, words in (('u', '#1f77b4', 'u, along the wind'),
                                ('v', '#ff7f0e', 'v, across'), ('w', '#2ca02c', 'w, up')):
        gust.plot(t, getattr(history, axis), colour, linewidth=1.1, label=words)
    gust.set_ylabel('gust, m/s')
    gust.set_title(
        f'Mean wind {state.mean_wind_speed:g} m/s from {state.mean_wind_from_deg:g}°, '
        f'Dryden gusts ({state.method}), seed {state.seed}', loc='left')
    gust.legend(loc='lower right', bbox_to_anchor=(1.0, 1.0), ncols=3, frameon=False)
    given.plot(t, history.sim_wind_spd, '#444444', linewidth=1.1)
    given.set_ylabel('SIM_WIND_SPD, m/s')
    turn = given.twinx()
    unwrapped = np.rad2deg(np.unwrap(np.deg2rad(history.sim_wind_dir)))
    turn.plot(t, unwrapped, '#9467bd', linewidth=0.9)
    turn.set_ylabel('SIM_WIND_DIR, °', color='#9467bd')
    flight.plot(t, history.height, '#8c564b', label='height, m')
    flight.plot(t, history.airspeed, '#17becf', linewidth=0.9, label='airspeed, m/s')
    flight.set_ylim(0.0, 1.25 * max(*history.height, *history.airspeed, 1.0))
    flight.legend(loc='lower right', ncols=2, framealpha=0.8, edgecolor='none')
    flight.set_xlabel('sim time, s')
    for each in axes:
        each.grid(alpha=0.3)
        each.margins(x=0)
    path = folder / f'wind_history_seed{state.seed}.png'
    try:
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110)
    except OSError as error:
        raise DemoFailed(f'cannot write the picture {path}: {error.strerror}') from error
    plt.close(figure)
    return path.resolve()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return int(probe.getsockname()[1])


if __name__ == '__main__':
    raise SystemExit(main())
