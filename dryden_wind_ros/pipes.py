"""Programs whose output goes into a pipe that may close before they end (``| head``)."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec

READER_LEFT = 141
"""Exit status of a program whose reader has left, as a shell gives it for SIGPIPE."""

P = ParamSpec('P')


def pipe_safe(main: Callable[P, int]) -> Callable[P, int]:
    """Make a program end in silence when the reader of its output has left."""
    @functools.wraps(main)
    def run(*args: P.args, **kwargs: P.kwargs) -> int:
        try:
            try:
                return main(*args, **kwargs)
            finally:
                sys.stdout.flush()  # what --help has printed, too, before it ends the program
        except SystemExit as end:
            # Of rich's making, whose consoles look after their output themselves.
            if isinstance(end.__context__, BrokenPipeError):
                return READER_LEFT
            raise
        except BrokenPipeError:
            # Python flushes once more at the end; that has to go somewhere.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
            return READER_LEFT
    return run
