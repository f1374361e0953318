"""A vehicle, a wind node and a bridge, each in a process of its own, and a user who watches."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor

from dryden_wind_interfaces.msg import WindState
from dryden_wind_interfaces.srv import GetWindHistory
from dryden_wind_ros.nodes import common
from support import wait_until
from support.vehicle import Probe, Process, free_instance

#: As the user left them; none is a default of SITL's, none is anything that a bridge writes.
USERS = {'SIM_WIND_SPD': 3.25, 'SIM_WIND_DIR': 77.0, 'SIM_WIND_DIR_Z': -2.5,
         'SIM_WIND_TURB': 0.75, 'SIM_WIND_TC': 4.0, 'SIM_WIND_T': 2.0}

WITH_FILE_SIZE_LIMIT = (
    'import resource, runpy, sys; '
    'room = int(sys.argv.pop(1)); '
    'resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY)); '
    'module = sys.argv.pop(1); '
    'runpy.run_module(module, run_name="__main__", alter_sys=True)')
"""Runs a module on a disk with room for files of so many bytes; then writing fails, as it does on
a full one (with EFBIG in place of ENOSPC). Arguments: room, module, its own."""


def environment() -> dict[str, str]:
    """Return an environment in which subprocesses find the package and `support`."""
    here = Path(__file__).resolve().parents[1]
    return {**os.environ, 'PYTHONUNBUFFERED': '1', 'PYTHONPATH': os.pathsep.join(
        [str(here), str(here.parent), os.environ.get('PYTHONPATH', '')])}


class HostedVehicle:
    """The embedded vehicle on SITL's ports, in a process whose faults are at hand.

    Parameters
    ----------
    eeprom : Path
        Where its parameters live over restarts.
    **fields
        Of `VehicleConfig`.
    """

    def __init__(self, eeprom: Path, **fields: Any) -> None:
        self.instance = free_instance()
        self.ports = [port + 10 * self.instance for port in (5760, 5762, 5763)]
        #: For `Probe`: the user's own way in.
        self.probe_port = self.ports[0]
        self._config = json.dumps({
            'instance': self.instance, 'eeprom': str(eeprom), 'speedup': 10.0, 'flight': 'hover',
            'parameters': list(USERS.items()), **fields})
        self.output: list[str] = []
        self.start()

    @property
    def connection(self) -> str:
        return f'tcp:127.0.0.1:{self.ports[1]}'

    def start(self) -> None:
        self.process = Process(['-m', 'support.vehicle_host', self._config], environment(),
                               commands=True)
        self.output.append('')
        self.process.wait_for('started', 30)

    def do(self, command: str) -> None:
        """Send a command, see `support.vehicle_host`."""
        stdin = self.process.process.stdin
        assert stdin is not None
        stdin.write(f'{command}\n')
        stdin.flush()

    def kill(self) -> None:
        self.process.end(signal.SIGKILL)
        self.output.append(self.process.text)

    @property
    def text(self) -> str:
        return ''.join(self.output) + self.process.text

    def close(self) -> None:
        self.process.__exit__()


class User:
    """A node that listens to the wind of one or more vehicles, spun by a thread of its own."""

    def __init__(self, *namespaces: str) -> None:
        self._context = rclpy.Context()
        rclpy.init(context=self._context)
        self.node = rclpy.create_node('user', context=self._context)
        #: The newest states by namespace, oldest first.
        self.states: dict[str, deque[Any]] = {name: deque(maxlen=4000) for name in namespaces}
        self._clients = {}
        for name, states in self.states.items():
            self.node.create_subscription(
                WindState, f'{name}/wind/state',
                lambda message, states=states: states.append(message), common.CLOCK_QOS)
            self._clients[name] = self.node.create_client(
                GetWindHistory, f'{name}/wind/get_history')
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    def _spin(self) -> None:
        with suppress(ExternalShutdownException):
            self._executor.spin()

    def close(self) -> None:
        self._executor.shutdown()
        self._thread.join(5)
        self.node.destroy_node()
        self._context.try_shutdown()

    def history(self, name: str) -> dict[float, tuple[float, ...]]:
        """Return what the wind node recorded: time -> gust."""
        client = self._clients[name]
        wait_until(client.service_is_ready, 20, f'the service {name}/wind/get_history')
        future = client.call_async(GetWindHistory.Request())
        wait_until(future.done, 20, f'an answer of {name}/wind/get_history')
        answer = future.result()
        assert answer.success, answer.message
        return {round(t, 3): gust
                for t, *gust in zip(answer.t, answer.u, answer.v, answer.w, strict=True)}


class Stage:
    """One vehicle with its nodes; faults are up to the test.

    Attributes
    ----------
    vehicle : HostedVehicle
    wind, bridge : Process
        The two nodes.
    """

    NAME = '/stage'

    def __init__(self, folder: Path, **fields: Any) -> None:
        self.folder = folder
        self.state_dir = folder / 'state'
        self.logs: list[Process] = []
        self.user = User(self.NAME)
        self.vehicle = HostedVehicle(folder / 'eeprom.json', **fields)
        self.start_wind()

    # -- programs

    def node(self, module: str, parameters: dict[str, Any], full_disk: bool = False) -> Process:
        start = ['-c', WITH_FILE_SIZE_LIMIT, '0'] if full_disk else ['-m']
        words = [*start, f'dryden_wind_ros.nodes.{module}', '--ros-args',
                 '-r', f'__ns:={self.NAME}']
        for name, value in parameters.items():
            words += ['-p', f'{name}:={value}']
        self.logs.append(Process(words, environment()))
        return self.logs[-1]

    def start_wind(self) -> None:
        self.wind = self.node('dryden_wind', {
            'mean_wind.speed': 8.0, 'mean_wind.from_direction': 240.0, 'seed': 7})

    def start_bridge(self, connection: str | None = None, **options: Any) -> Process:
        self.bridge = self.node('mavlink_bridge', {
            'connection': connection or self.vehicle.connection, 'publish_clock': 'true',
            'state_dir': self.state_dir}, **options)
        return self.bridge

    @contextmanager
    def flight(self, connection: str | None = None, **options: Any) -> Iterator[Process]:
        """Fly in gusts; what a fault must not harm is checked at the end.

        Gusts flow again, SIM_WIND_* are as the user left them, nobody raised an exception.
        """
        self.start_bridge(connection, **options)
        try:
            self.flows()
            yield self.bridge
            self.flows()
        finally:
            # Here and not in `tidy`: the way to the vehicle may be the test's own.
            code = self.bridge.end() if self.bridge.process.poll() is None else 'ended by itself'
        assert code == 0, self.bridge.text
        assert 'put back and confirmed' in self.bridge.text
        with Probe(self.vehicle) as probe:
            assert probe.wind() == pytest.approx(USERS)
        assert [path.name for path in self.state_dir.glob('*.json*')] == []
        self.no_exceptions()

    def no_exceptions(self) -> None:
        for log in (self.vehicle, *self.logs):
            for word in ('Traceback', 'Error while handling', 'Internal Errors', 'FATAL',
                         'Exception'):
                assert word not in log.text, log.text
        assert self.wind.process.poll() is None, f'the wind node ended: {self.wind.text}'

    def tidy(self) -> None:
        """Put right what a test that failed left behind."""
        for log in self.logs:
            if log is not self.wind:
                log.__exit__()
        self.logs = [self.wind]
        if self.vehicle.process.process.poll() is not None:
            self.vehicle.start()
        if self.wind.process.poll() is not None:
            self.start_wind()
        for path in self.state_dir.glob('*.json*'):
            path.unlink()
        with Probe(self.vehicle) as probe:
            for name, value in USERS.items():
                if probe.read(name) != pytest.approx(value):
                    probe.set(name, value)

    # -- what the user sees

    @property
    def states(self) -> deque[Any]:
        return self.user.states[self.NAME]

    @property
    def restarts(self) -> int:
        return int(self.states[-1].restarts)

    def history(self) -> dict[float, tuple[float, ...]]:
        return self.user.history(self.NAME)

    def ticks_on(self, ticks: int = 20, timeout: float = 30.0) -> None:
        """Wait until the air has gone on."""
        self.states.clear()
        self.until(lambda: len(self.states) >= ticks, f'{ticks} ticks of the air', timeout)

    def until(self, condition: Callable[[], object], what: str, timeout: float = 30.0) -> None:
        """Wait for a condition; what fails comes with the newest words of the nodes."""
        wait_until(condition, timeout, lambda: (
            f'{what}; newest tick {self.states[-1].tick if self.states else None}; the bridge said:'
            f'\n{self.bridge.text[-3000:]}\nthe wind node said:\n{self.wind.text[-1000:]}'))

    def flows(self, timeout: float = 30.0) -> None:
        """Wait until the air goes on and the vehicle has, by its own word, what it says."""
        self.ticks_on(timeout=timeout)
        with Probe(self.vehicle) as probe:
            seen: set[float] = set()

            def flies() -> bool:
                speed = probe.read('SIM_WIND_SPD')
                if any(abs(state.sim_wind_spd - speed) < 1e-3 for state in list(self.states)):
                    seen.add(speed)
                return len(seen) >= 3

            self.until(flies, 'three winds of the air in the vehicle', timeout)

    def kept(self, before: dict[float, tuple[float, ...]]) -> None:
        """Check that nothing recorded is lost: what is old enough may have left the two minutes."""
        # Ticks that were heard may have been on their way for some time on a busy machine.
        after: dict[float, tuple[float, ...]] = {}

        def goes_on() -> bool:
            after.clear()
            after.update(self.history())
            return max(after) > max(before)
        self.until(goes_on, 'the history to go on')
        oldest = min(after)
        expected = {t: gust for t, gust in before.items() if t >= oldest}
        assert expected == {t: gust for t, gust in after.items() if t in expected}

    def close(self) -> None:
        for log in self.logs:
            log.__exit__()
        self.vehicle.close()
        self.user.close()
