"""Programs of the package, run as a user runs them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from support import PATIENCE


class Program:
    """A program of the package in a process of its own, its output in a file."""

    def __init__(self, log: Path, module: str, *arguments: str, **environment: str) -> None:
        self.log = log
        with log.open('wb') as output:
            self.process = subprocess.Popen(
                [sys.executable, '-m', module, *arguments], stdout=output,
                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                env={**os.environ, 'RCUTILS_LOGGING_USE_STDOUT': '1', 'PYTHONUNBUFFERED': '1',
                     **environment})

    @property
    def text(self) -> str:
        return self.log.read_text(errors='replace')

    def alive(self) -> bool:
        if self.process.poll() is not None:
            raise AssertionError(
                f'the program ended with code {self.process.returncode}:\n{self.text[-2000:]}')
        return True

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self, timeout: float = 10.0) -> int:
        try:
            return self.process.wait(timeout * PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f'the program did not end within {timeout:g} s:\n{self.text[-2000:]}') from None

    def stop(self, timeout: float = 10.0) -> int:
        """Press Ctrl-C and return the exit code."""
        if self.process.poll() is None:
            self.signal(signal.SIGINT)
        return self.wait(timeout)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
