"""Where the bench's parts run: processes in a ROS domain of their own, and an observer of them.

CPU time is read from Linux's clock of each process, in nanoseconds; memory is the resident set.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from dryden_wind_ros.nodes.fast_dds import on_loopback

FLOORS = 'dryden_wind_ros.tools.bench_parts.floors'
_STOP_S = 6.0


class BenchError(RuntimeError):
    """A part could not be measured; the text says why."""


class Process:
    """A child of the bench, its output in a file."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self.log = log
        with log.open('wb') as output:
            self._popen = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self.pid = self._popen.pid
        # What clock_getcpuclockid(3) returns.
        self._clock = ~self.pid << 3 | 2

    @property
    def text(self) -> str:
        """What it has printed."""
        return self.log.read_text(errors='replace')

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._popen.poll() is None

    def check(self) -> None:
        """Raise `BenchError` if it has ended."""
        if self._popen.poll() is not None:
            raise BenchError(f'{self.name} ended with code {self._popen.returncode}:\n'
                             f'{self.text[-1500:]}')

    def cpu(self) -> float:
        """Return the CPU time it has used, s."""
        self.check()
        return time.clock_gettime(self._clock)

    def memory(self) -> float:
        """Return its resident memory, MB."""
        self.check()
        status = Path(f'/proc/{self.pid}/status').read_text()
        found = re.search(r'VmRSS:\s+(\d+) kB', status)
        return int(found.group(1)) / 1024 if found else math.nan

    def stop(self, number: int = signal.SIGINT) -> None:
        """Ask it to end."""
        if self._popen.poll() is None:
            self._popen.send_signal(number)

    def wait(self, timeout: float) -> None:
        """Wait for its end; kill it after `timeout` s."""
        try:
            self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()


@dataclass
class Ticks:
    """Newest diagnostics of one wind node."""

    wall: float
    tick: int
    missed: int


class Observer:
    """A node in the bench's own process: reads diagnostics, calls services."""

    def __init__(self, bench: Bench) -> None:
        import rclpy
        from rclpy.executors import SingleThreadedExecutor

        self._bench = bench
        with _undisturbed():
            self.context = rclpy.Context()
            rclpy.init(context=self.context, args=[])
            self.node = rclpy.create_node('bench', context=self.context)
            self._executor = SingleThreadedExecutor(context=self.context)
            self._executor.add_node(self.node)

    def until(self, condition: Callable[[], object], timeout: float, what: str) -> None:
        """Spin until a condition is true."""
        def met() -> object:
            with _undisturbed():
                self._executor.spin_once(timeout_sec=0.05)
                return condition()
        self._bench.until(met, timeout, what, pause=0.0)

    def ticks(self, count: int, timeout: float, fresh: float = 0.0) -> dict[str, Ticks]:
        """Return the ticks of `count` wind nodes, each from a message not heard before now.

        Diagnostics are only made while somebody listens, so this subscribes for a moment.
        """
        from diagnostic_msgs.msg import DiagnosticArray

        from dryden_wind_ros.nodes import common

        heard: dict[str, Ticks] = {}

        def on_diagnostics(message: DiagnosticArray) -> None:
            for entry in message.status:
                if entry.name.endswith(': clock'):
                    values = {pair.key: pair.value for pair in entry.values}
                    if 'tick' in values:
                        heard[entry.name] = Ticks(
                            time.monotonic(), int(values['tick']), int(values['missed ticks']))

        subscription = self.node.create_subscription(
            DiagnosticArray, '/diagnostics', on_diagnostics, common.STREAM_QOS)
        try:
            self.until(lambda: len(heard) >= count, timeout,
                       f'diagnostics of {count} wind nodes with a tick')
        finally:
            self.node.destroy_subscription(subscription)
        return heard

    def call(self, client: Any, request: Any, timeout: float = 10.0) -> tuple[float, Any]:
        """Call a service; return the time it took (s) and the response."""
        with _undisturbed():
            start = time.perf_counter()
            future = client.call_async(request)
            self._executor.spin_until_future_complete(future, timeout_sec=timeout)
            took = time.perf_counter() - start
        if not future.done():
            raise BenchError(f'{client.srv_name} did not answer within {timeout:g} s')
        return took, future.result()

    def close(self) -> None:
        """Leave the graph."""
        self.node.destroy_node()
        self.context.try_shutdown()


class Bench:
    """What a part is given: processes, an observer, progress, and how long it may take.

    Parameters
    ----------
    quick : bool
        Shortest settings: everything runs, the figures mean little.
    tell : callable
        Shows a line of progress.
    """

    def __init__(self, quick: bool = False, tell: Callable[[str], None] = lambda _: None) -> None:
        self.quick = quick
        self.tell = tell
        self._stack = contextlib.ExitStack()
        self.folder = Path(self._stack.enter_context(
            tempfile.TemporaryDirectory(prefix='dryden_wind_bench-')))
        self._started = 0
        self._processes: list[Process] = []

    def __enter__(self) -> Bench:
        self._environment()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        with self._stack, _undisturbed():
            self._end(self._processes)

    def _environment(self) -> None:
        wanted = {
            'ROS_DOMAIN_ID': str(_free_domain()), **on_loopback(self.folder),
            'ROS_LOG_DIR': str(self.folder / 'log'),
            'XDG_STATE_HOME': str(self.folder / 'state'), 'PYTHONUNBUFFERED': '1'}
        before = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)
        self._stack.callback(_restore_environment, before)

    # ------------------------------------------------------------------ how long

    def repeats(self, count: int) -> int:
        """Return how often to measure something that is worth `count` repeats."""
        return max(2, count // 20) if self.quick else count

    def seconds(self, seconds: float) -> float:
        """Return how long to measure something that is worth so many seconds."""
        return max(0.3, seconds / 20) if self.quick else seconds

    # ------------------------------------------------------------------ processes

    @contextlib.contextmanager
    def running(self) -> Iterator[list[Process]]:
        """End all processes that are started in the context, at its end."""
        before = len(self._processes)
        try:
            yield self._processes
        finally:
            with _undisturbed():
                self._end(self._processes[before:])
                del self._processes[before:]

    def start(self, name: str, module: str, *arguments: str) -> Process:
        """Start a module of the package as a program."""
        self._started += 1
        process = Process(name, [sys.executable, '-m', module, *arguments],
                          self.folder / f'{self._started}.log')
        self._processes.append(process)
        return process

    @contextlib.contextmanager
    def observer(self) -> Iterator[Observer]:
        """Have a node in this process."""
        observer = Observer(self)
        try:
            yield observer
        finally:
            observer.close()

    def until(self, condition: Callable[[], object], timeout: float, what: str,
              pause: float = 0.05) -> None:
        """Wait for a condition; `BenchError` names what was missing, or who ended."""
        deadline = time.monotonic() + timeout
        while not condition():
            for process in self._processes:
                process.check()
            if time.monotonic() > deadline:
                logs = ''.join(f'\n{process.name}: {process.text[-400:]}'
                               for process in self._processes)
                raise BenchError(f'waited {timeout:g} s in vain for {what}{logs}')
            if pause:
                time.sleep(pause)

    def sleep(self, seconds: float, what: str) -> None:
        """Let the processes run, and show how long it still takes."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.tell(f'{what}, {math.ceil(left)} s')
            for process in self._processes:
                process.check()
            time.sleep(min(left, 1.0))

    @staticmethod
    def _end(processes: Sequence[Process]) -> None:
        # The vehicles last: the nodes still put their parameters back.
        for vehicles in (False, True):
            some = [process for process in processes
                    if process.name.startswith('embedded') is vehicles]
            for process in some:
                process.stop()
            for process in some:
                process.wait(_STOP_S)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Put a Ctrl-C off until the end: of processes that are told to end, of what rclpy is doing.

    Falling into rclpy it would leave a traceback, see `dryden_wind_ros.ending`.
    """
    told: list[int] = []
    before = {number: signal.signal(number, lambda number, _frame: told.append(number))
              for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if told:
        raise KeyboardInterrupt


def free_ports(count: int, step: int = 10) -> int:
    """Return a port such that it and `count` - 1 others, `step` apart, are free on the loopback."""
    for _ in range(100):
        with contextlib.ExitStack() as stack:
            try:
                first = stack.enter_context(socket.socket())
                first.bind(('127.0.0.1', 0))
                base = int(first.getsockname()[1])
                for number in range(1, count):
                    other = stack.enter_context(socket.socket())
                    other.bind(('127.0.0.1', base + step * number))
            except (OSError, OverflowError):
                continue
            return base
    raise BenchError(f'found no {count} free ports, {step} apart')


def _free_domain() -> int:
    # The port of a domain's first participant (DDSI-RTPS 9.6.1.1) tells whether there is one.
    for domain in range(100, 0, -1):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(('', 7400 + 250 * domain + 10))
            except OSError:
                continue
            return domain
    raise BenchError('every ROS domain from 1 to 100 is in use')


def _restore_environment(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
