"""How fast live flights go on this machine: found out flight by flight."""

from __future__ import annotations

import threading
from dataclasses import dataclass

MOST = 40.0
"""Fastest that is tried, sim seconds a wall second."""

SLOWEST = 1.0
_AGAIN_AFTER = 20
"""After so many clean flights in a row, what was too fast once is tried again."""


@dataclass
class Pace:
    """Of one kind of vehicle in one process.

    Attributes
    ----------
    speedup : float
        Of the next flight.
    too_fast : float
        Lowest speedup at which ticks were missed or late, lately.
    clean : int
        Flights in a row since then without any.
    """

    speedup: float
    too_fast: float = float('inf')
    clean: int = 0

    def went(self, speedup: float, well: bool) -> None:
        """Take in how a flight at a speedup went.

        One without a late tick: the next is flown at twice the speed, unless that was too fast
        once. Else at half.
        """
        if not well:
            self.too_fast, self.clean = min(self.too_fast, speedup), 0
            self.speedup = max(min(self.speedup, speedup / 2.0), SLOWEST)
            return
        self.clean += 1
        if self.clean > _AGAIN_AFTER:
            self.too_fast, self.clean = float('inf'), 0
        faster = min(2.0 * speedup, max(MOST, speedup))
        self.speedup = max(self.speedup, faster if faster < self.too_fast else speedup)


_PACES: dict[tuple[str, float], Pace] = {}
_LOCK = threading.Lock()


def pace_of(vehicle: str, first: float) -> Pace:
    """Return the pace of a vehicle's command, which began at a speedup."""
    with _LOCK:
        return _PACES.setdefault((vehicle, first), Pace(first))
