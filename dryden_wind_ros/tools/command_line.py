"""What the command lines have in common: pipes that close, files not to write over, progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from dryden_wind_ros.pipes import READER_LEFT, pipe_safe

__all__ = ['READER_LEFT', 'Report', 'pipe_safe', 'progress_bar', 'wrong_outputs']

Report = Callable[[str, float], None]
"""Takes what is being done, and the fraction done, 0 to 1."""

_PLAIN_AFTER = 3.0  # s until something is said of a long task where there is no terminal
_PLAIN_EVERY = 5.0


def wrong_outputs(outputs: Sequence[Path | None], inputs: Sequence[Path]) -> str | None:
    """Say what is wrong with the names of files to write; None if nothing is.

    Parameters
    ----------
    outputs : sequence of Path or None
        Files to be written; None for those that are not.
    inputs : sequence of Path
        Files and folders to be read, which must not be written over.
    """
    named = [path for path in outputs if path is not None]
    for path in named:
        if path.is_dir():
            return f'{path}: this is a folder; give the name of a file'
        if not path.absolute().parent.is_dir():
            return f'{path}: No such file or directory: there is no folder {path.absolute().parent}'
        for source in inputs:
            if _is_same(path, source) or (path.exists() and source.is_dir()
                                          and source.resolve() in path.resolve().parents):
                return f'{path}: this is the flight to be read; it would be written over'
    for at, path in enumerate(named):
        if any(_is_same(path, other) for other in named[:at]):
            return f'{path}: two outputs cannot be written to the same file'
    return None


def _is_same(path: Path, other: Path) -> bool:
    if path.resolve() == other.resolve():
        return True
    return path.is_file() and other.is_file() and path.samefile(other)  # also by another name


@contextmanager
def progress_bar() -> Iterator[Report]:
    """Show on standard error how far a long task is: a bar, or lines where there is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines()
        return
    with Progress(TextColumn('{task.description}', markup=False), BarColumn(), TaskProgressColumn(),
                  TimeElapsedColumn(), console=console, transient=True) as bar:
        task = bar.add_task('', total=1.0)
        yield lambda what, fraction: bar.update(task, description=what, completed=fraction)


class _Lines:
    def __init__(self) -> None:
        self._next = time.monotonic() + _PLAIN_AFTER

    def __call__(self, what: str, fraction: float) -> None:
        if time.monotonic() >= self._next and fraction < 1.0:
            self._next = time.monotonic() + _PLAIN_EVERY
            print(f'{what}: {fraction:.0%}', file=sys.stderr, flush=True)
