"""Thin rclpy nodes: declare, subscribe, call the rooms beside this one, publish."""

import sys
from types import TracebackType

_before = sys.excepthook


def _without_interrupts(kind: type[BaseException], error: BaseException,
                        traceback: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        _before(kind, error, traceback)


# A node spends its first seconds importing. When another node refuses its parameters in that time,
# launch interrupts this one, and a traceback from somewhere in numpy buries the line that matters.
sys.excepthook = _without_interrupts
