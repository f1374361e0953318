"""An embedded vehicle in a process of its own, and a second client that looks at it."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from pymavlink import mavutil
from pymavlink.dialects.v20 import ardupilotmega as mavlink

from support import PATIENCE, free_port, wait_until


class Emulator:
    """The embedded vehicle as a subprocess on two free TCP ports: one to test, one to look.

    With `sitl_ports` it listens where SITL does instead, by the instance among the options.
    Leaving the context ends it, and fails if the vehicle ever said "Internal Errors".
    """

    def __init__(self, *options: str, port: int | None = None, sitl_ports: bool = False) -> None:
        self._sitl_ports = sitl_ports
        self.port = port or free_port()
        self.probe_port = free_port()
        self._options = options
        self._process: subprocess.Popen[str] | None = None
        self.output: list[str] = []

    @property
    def connection(self) -> str:
        return f'tcp:127.0.0.1:{self.port}'

    @property
    def text(self) -> str:
        return ''.join(self.output)

    def __enter__(self) -> Emulator:
        self.start()
        return self

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, '-m', 'dryden_wind_ros.emulator.main',
             *([] if self._sitl_ports else [
                 '--connection', self.connection,
                 '--connection', f'tcp:127.0.0.1:{self.probe_port}']), *self._options],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        begun = len(self.output)
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()
        wait_until(lambda: len(self.output) > begun, 20, 'the embedded vehicle to start')

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.output.append(line)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(10)

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def __exit__(self, kind: Any, *_: Any) -> None:
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            try:
                self._process.wait(10 * PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(10 * PATIENCE)
        if kind is None:
            assert 'Internal Errors' not in self.text


def free_instance() -> int:
    """Return a SITL instance number all of whose ports are free."""
    worker = int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0').removeprefix('gw')) % 8
    # Each process of the test run has some of its own, below those of campaigns.
    first = 20 + 30 * worker
    for instance in random.sample(range(first, first + 30), 30):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in (5760, 5762, 5763):
                probe = stack.enter_context(socket.socket())
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(('127.0.0.1', port + 10 * instance))
            return instance
    raise AssertionError('no free SITL instance')


class Probe:
    """A second MAVLink client of the vehicle, independent of the code under test."""

    def __init__(self, emulator: Any) -> None:
        self.link = mavutil.mavlink_connection(
            f'tcp:127.0.0.1:{emulator.probe_port}', source_system=200, retries=20,
            reconnect_delay=0.1)
        self.link.wait_heartbeat(timeout=20 * PATIENCE)

    def __enter__(self) -> Probe:
        return self

    def __exit__(self, *_: Any) -> None:
        self.link.close()

    def read(self, name: str) -> float:
        """Return a parameter's value."""
        for _ in range(20):
            self._drain()
            self.link.mav.param_request_read_send(
                self.link.target_system, self.link.target_component, name.encode(), -1)
            until = time.monotonic() + 0.5
            while time.monotonic() < until:
                message = self.link.recv_match(type='PARAM_VALUE', blocking=True, timeout=0.2)
                if message is not None and message.param_id == name:
                    return float(message.param_value)
        raise AssertionError(f'no answer about {name}')

    def set(self, name: str, value: float) -> None:
        """Set a parameter, as a user in a GCS would."""
        for _ in range(20):
            self.link.mav.param_set_send(
                self.link.target_system, self.link.target_component, name.encode(), value,
                mavlink.MAV_PARAM_TYPE_REAL32)
            if abs(self.read(name) - value) < 1e-5:
                return
        raise AssertionError(f'{name} cannot be set')

    def wind(self) -> dict[str, float]:
        """Return everything that a bridge writes."""
        return {name: self.read(name) for name in (
            'SIM_WIND_SPD', 'SIM_WIND_DIR', 'SIM_WIND_DIR_Z', 'SIM_WIND_TURB', 'SIM_WIND_TC',
            'SIM_WIND_T')}

    def command(self, command: int, *numbers: float) -> None:
        """Send one COMMAND_LONG and see it accepted."""
        padded = (*numbers, *[0.0] * (7 - len(numbers)))
        self._drain()
        self.link.mav.command_long_send(
            self.link.target_system, self.link.target_component, command, 0, *padded)
        answer = self.link.recv_match(type='COMMAND_ACK', blocking=True, timeout=10 * PATIENCE)
        assert answer is not None, f'no answer to command {command}'
        assert answer.result == mavlink.MAV_RESULT_ACCEPTED

    def message(self, kind: str, timeout: float = 10.0) -> Any:
        """Return the next message of a kind."""
        self._drain()
        message = self.link.recv_match(type=kind, blocking=True, timeout=timeout * PATIENCE)
        assert message is not None, f'no {kind} within {timeout:g} s'
        return message

    def _drain(self) -> None:
        while self.link.recv_match(blocking=False) is not None:
            pass


class Process:
    """A Python subprocess whose lines are kept."""

    def __init__(self, arguments: Sequence[str], env: dict[str, str] | None = None,
                 commands: bool = False) -> None:
        self.output: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            stdin=subprocess.PIPE if commands else subprocess.DEVNULL, text=True, env=env)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output.append(line)

    @property
    def text(self) -> str:
        return ''.join(self.output)

    def wait_for(self, words: str, timeout: float = 20.0) -> None:
        def said() -> bool:
            assert self.process.poll() is None or words in self.text, (
                f'ended without {words!r}: {self.text}')
            return words in self.text
        try:
            wait_until(said, timeout, repr(words))
        except AssertionError as error:
            raise AssertionError(f'{error}; it said: {self.text}') from None

    def end(self, number: int = signal.SIGINT, timeout: float = 10.0) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(timeout * PATIENCE)
        self._reader.join(5)
        return code

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: Any) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait(10)
