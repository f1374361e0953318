"""Simulated time, cut into numbered ticks of 0.05 s.

A tick is a multiple of 0.05 s of simulated time, numbered ``k = floor(t / 0.05 s + 1e-6)``. Each
number is stepped once, when the clock first reaches it, however often and however irregularly the
clock speaks. Clock times are whole nanoseconds here: as a float, a time since the epoch
resolves no better than 240 ns, which is coarser than the tolerance of the grid.
"""

from __future__ import annotations

import enum
from collections import deque
from dataclasses import dataclass

TICK_NS = 50_000_000
"""Length of a tick, ns."""

TICK_S = 0.05
"""Length of a tick, s."""

TOLERANCE_NS = 50
"""A time this little before a tick counts as the tick: 1e-6 of its length."""

EPOCH_CLOCK_S = 1_000_000
"""A clock whose first time lies beyond this (11.6 days) counts from the epoch, not from a boot."""

_RATE_WINDOW_TICKS = 100


def tick_number(t: float) -> int:
    """Return the number of the tick that time `t` belongs to.

    Parameters
    ----------
    t : float
        Simulated time, s.

    Returns
    -------
    int
        ``floor(t / 0.05 + 1e-6)``.

    Examples
    --------
    >>> [tick_number(t) for t in (1.745, 1.805, 1.845, 1.905)]
    [34, 36, 36, 38]
    """
    return int((t / TICK_S + 1e-6) // 1)


def tick_number_ns(time_ns: int) -> int:
    """Return the number of the tick that a time in whole nanoseconds belongs to."""
    return (time_ns + TOLERANCE_NS) // TICK_NS


class Step(enum.Enum):
    """What a clock message did to the grid."""

    FIRST = 'first'
    """The first tick heard, at the start or after time went back."""
    NONE = 'none'
    """No new tick number was reached."""
    FORWARD = 'forward'
    """At least one new tick number was reached."""
    BACK = 'back'
    """Time went back, or forward by more than `EPOCH_CLOCK_S`, which is another clock; the tick is
    the first of a new count."""


@dataclass(frozen=True)
class Advance:
    """The answer of `TickGrid.advance`.

    Attributes
    ----------
    step : Step
        What happened.
    tick : int
        Number of the newest tick, counted from the origin.
    gap : int
        Ticks gone by since the last one, 0 unless `step` is FORWARD. ``gap - 1`` of them were
        missed.
    """

    step: Step
    tick: int
    gap: int = 0


class TickRate:
    """How many ticks a sim second something happened at, lately."""

    def __init__(self) -> None:
        self._ticks: deque[int] = deque()

    def reached(self, tick: int) -> None:
        """Note that it happened at a tick; one further back than the last starts anew."""
        ticks = self._ticks
        if ticks and tick <= ticks[-1]:
            ticks.clear()
        ticks.append(tick)
        while ticks[0] < tick - _RATE_WINDOW_TICKS:
            ticks.popleft()

    @property
    def rate(self) -> float:
        """Ticks a sim second over the last 5 s of sim time, Hz; 0 while unknown."""
        ticks = self._ticks
        if len(ticks) < 2:
            return 0.0
        return (len(ticks) - 1) / ((ticks[-1] - ticks[0]) * TICK_S)


class TickGrid:
    """Turns clock times into tick numbers, each given out once.

    A clock that starts beyond `EPOCH_CLOCK_S` counts from the epoch: it is counted from the first
    tick heard instead, so that the draws of a seed start near their beginning. A time that is one
    tick or less behind the newest is taken for a message that came out of order and ignored; a time
    further back starts a new count.

    Attributes
    ----------
    origin_ns : int
        Time of tick 0, ns: 0, or the first tick of a clock that counts from the epoch.
    tick : int or None
        Newest tick, None before the first.
    missed : int
        Ticks for which no clock message came, since the count began.
    """

    def __init__(self) -> None:
        self.origin_ns = 0
        self.tick: int | None = None
        self.missed = 0
        self._heard = TickRate()

    def advance(self, time_ns: int) -> Advance:
        """Take in a clock time.

        Parameters
        ----------
        time_ns : int
            Simulated time, ns.

        Returns
        -------
        Advance
            The newest tick and how many were passed to reach it.
        """
        tick = (time_ns - self.origin_ns + TOLERANCE_NS) // TICK_NS
        last = self.tick
        if last is None:
            return self._start(time_ns, Step.FIRST)
        if tick < last - 1:
            return self._start(time_ns, Step.BACK)
        if tick <= last:
            return Advance(Step.NONE, last)
        gap = tick - last
        if gap * TICK_NS > EPOCH_CLOCK_S * 1_000_000_000:
            return self._start(time_ns, Step.BACK)
        self.tick = tick
        self.missed += gap - 1
        self._heard.reached(tick)
        return Advance(Step.FORWARD, tick, gap)

    @property
    def rate(self) -> float:
        """Rate at which the clock reached new ticks over the last 5 s of sim time, Hz."""
        return self._heard.rate

    def time_ns(self, tick: int) -> int:
        """Return the simulated time of a tick, ns."""
        return self.origin_ns + tick * TICK_NS

    def _start(self, time_ns: int, step: Step) -> Advance:
        absolute = tick_number_ns(time_ns)
        from_epoch = time_ns > EPOCH_CLOCK_S * 1_000_000_000
        self.origin_ns = absolute * TICK_NS if from_epoch else 0
        self.tick = 0 if from_epoch else absolute
        self.missed = 0
        self._heard = TickRate()
        self._heard.reached(self.tick)
        return Advance(step, self.tick)
