"""The wind flown as an estimate can be held against it: its mean of late, or since its last step.

EKF3 is to tell the mean wind, not each gust, so an estimate is compared with the mean of the last
:data:`AVERAGE_TIME` seconds. That mean hides a step for as long as it takes to move, while whoever
changed the wind knows at once: a change within half a second that is far outside what the gusts of
late do begins the mean anew.
"""

from __future__ import annotations

import math
from collections import deque

AVERAGE_TIME = 10.0
"""Seconds of wind flown that an estimate is compared with."""

STEP_LEAST = 1.5
"""Smallest change of the wind within half a second that may be a step, m/s."""

STEP_ERROR = 0.5
"""How far the first value after a step may be from where the wind goes, m/s, and more in gusts."""

STEP_SIGMAS = 5.0
"""How many times the usual change within half a second a step is."""

_SLOT = 0.25            # s of wind put together in one slot; a step shows between two neighbours
_GUST_MEMORY = 60.0     # s, how long the usual change is remembered
_GAP = 5.0              # s without a wind after which nothing is known of what was between


class FlownLevel:
    """Follows the mean of the wind flown.

    Attributes
    ----------
    north, east : float
        Mean of the wind flown, the velocity of the air, m/s; NaN while nothing is known.
    scatter : float
        Standard deviation of the wind about that mean, both directions together, m/s.
    step_t : float
        When the wind stepped last, s; minus infinity if it has not.
    """

    __slots__ = ('_change', '_changes', '_count', '_gusts', '_newest', '_slot_e', '_slot_n',
                 '_slot_t', '_slots', '_t', 'east', 'north', 'scatter', 'step_t')

    def __init__(self) -> None:
        self._slots: deque[tuple[float, float, float]] = deque()
        self.step_t = -math.inf
        self._change = 0.0
        self._changes = 0
        self._gusts = 0.0
        self._newest = (math.nan, math.nan)
        self._t = -math.inf
        self._forget()

    def _forget(self) -> None:
        self._slots.clear()
        self._slot_n = self._slot_e = 0.0
        self._slot_t = -math.inf
        self._count = 0
        self.north = self.east = math.nan
        self.scatter = 0.0

    def known(self, t: float) -> bool:
        """Whether the wind flown is known at time ``t`` s."""
        return t - self._t <= _GAP and self.north == self.north

    def uncertainty(self, t: float) -> float:
        """Return how far the mean may be off the wind since a step, m/s: it is a short one yet."""
        return max(self._gusts, STEP_ERROR) * max(1.0 - (t - self.step_t) / AVERAGE_TIME, 0.0)

    def add(self, t: float, north: float, east: float) -> None:
        """Take the wind flown at time ``t`` s, m/s towards north and east; NaN: not known."""
        if not (math.isfinite(north) and math.isfinite(east)):
            self._forget()
            return
        if not 0.0 <= t - self._t <= _GAP:
            self._forget()
        self._t = t
        if self._count and t - self._slot_t >= _SLOT:
            self._close()
        if not self._count:
            self._slot_t = t
        self._newest = (north, east)
        self._count += 1
        self._slot_n += north
        self._slot_e += east
        if self.north != self.north:
            self.north, self.east = north, east

    def _close(self) -> None:
        """Put a full slot to the others, and see whether the wind has stepped."""
        north, east = self._slot_n / self._count, self._slot_e / self._count
        t = self._slot_t
        slots = self._slots
        self._slot_n = self._slot_e = 0.0
        self._count = 0
        if slots:
            before_t, before_n, before_e = slots[-1]
            change = math.hypot(north - before_n, east - before_e)
            limit = max(STEP_LEAST, STEP_SIGMAS * math.sqrt(self._change))
            self._changes += 1
            weight = min(max((t - before_t) / _GUST_MEMORY, 1.0 / self._changes), 1.0)
            self._change += weight * (min(change, limit) ** 2 - self._change)
            if change > limit:
                if t - slots[0][0] > 0.5 * AVERAGE_TIME:
                    self._gusts = self.scatter
                slots.clear()
                self.step_t = t
                north, east = self._newest  # the mean of the slot is from before and after
        slots.append((t, north, east))
        while t - slots[0][0] >= AVERAGE_TIME:
            slots.popleft()
        self._average()

    def _average(self) -> None:
        slots = self._slots
        total_n = total_e = squares = 0.0
        for _, north, east in slots:
            total_n += north
            total_e += east
            squares += north * north + east * east
        count = len(slots)
        self.north, self.east = total_n / count, total_e / count
        spread = squares / count - self.north ** 2 - self.east ** 2
        self.scatter = math.sqrt(max(spread, 0.0))
