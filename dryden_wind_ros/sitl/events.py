"""What there is to tell a user about a vehicle: events, said once, and problems, which last."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass


class Level(enum.IntEnum):
    """How bad an event is."""

    INFO = 0
    WARN = 1
    ERROR = 2


@dataclass(frozen=True)
class Event:
    """Something worth telling, once, in the user's terms."""

    level: Level
    text: str


class Notices:
    """Tells events, and keeps the problems that last.

    Parameters
    ----------
    where : str
        What every text begins with: the connection.
    on_event : callable
        Called with every `Event`.
    """

    def __init__(self, where: str, on_event: Callable[[Event], None]) -> None:
        self.where = where
        self._on_event = on_event
        self._last_told = ''
        self._problems: dict[str, str] = {}

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong now and lasts; may be read from any thread."""
        return (*self._problems.values(),)

    def __contains__(self, key: str) -> bool:
        return key in self._problems

    def restart(self, where: str) -> None:
        """Forget all problems, and begin every text with `where`."""
        self.where = where
        self._problems.clear()

    def tell(self, level: Level, text: str) -> None:
        """Tell something; the same again and again (refused, every few seconds) is said once."""
        text = f'{self.where}: {text}'
        if text != self._last_told:
            self._last_told = text
            self._on_event(Event(level, text))

    def problem(self, key: str, level: Level, text: str) -> None:
        """Tell something that lasts until it is `solved`."""
        full = f'{self.where}: {text}'
        if self._problems.get(key) != full:
            self._problems[key] = full
            self.tell(level, text)

    def solved(self, key: str) -> bool:
        """Forget a problem; return whether there was one."""
        return self._problems.pop(key, None) is not None
