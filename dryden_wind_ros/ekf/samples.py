"""Which of EKF_STATUS_REPORT's numbers show that EKF3 has just used a measurement.

``velocity_variance`` and ``pos_horiz_variance`` are square roots of innovation test ratios,
computed only when a sample is tried: a *change* to a value below 1 is an accepted GPS sample.
``airspeed_variance`` changes only while airspeed is fused.
"""

from __future__ import annotations

import math
from typing import Any


def _changed(old: float, new: float) -> bool:
    # Not a number is no change: neither before the first value nor instead of one.
    return old == old and new == new and old != new


class GpsSamples:
    """The accepted samples of position and velocity.

    Attributes
    ----------
    last : float or None
        When the newest one was accepted, s; None before the first.
    """

    __slots__ = ('_before', '_gap_end', '_position_ratio', '_velocity_ratio', 'last')

    def __init__(self) -> None:
        self.last: float | None = None
        self._before: float | None = None
        self._gap_end = -math.inf
        self._position_ratio = self._velocity_ratio = math.nan

    def forget(self) -> None:
        """Begin again: just attached, or an outage may have passed unheard."""
        self.last = self._before = None

    def begin_aiding(self, t: float) -> None:
        """Take the beginning of aiding, which resets EKF3's own clocks, for a sample at ``t`` s."""
        self.last, self._before = t, None

    def report(self, message: Any) -> bool:
        """Take the numbers of an EKF_STATUS_REPORT; true if they show an accepted sample."""
        position, velocity = message.pos_horiz_variance, message.velocity_variance
        # A ratio of 1 and more was tried and rejected.
        accepted = ((_changed(self._position_ratio, position) and position < 1.0)
                    or (_changed(self._velocity_ratio, velocity) and velocity < 1.0))
        self._position_ratio, self._velocity_ratio = position, velocity
        return accepted

    def accept(self, t: float) -> None:
        """Take an accepted sample at time ``t`` s."""
        last = self.last
        # The one before the newest gap, for the case that this one turns out to be no sample.
        if last is None or t - last > 2.0:
            self._before = last
            self._gap_end = t
        elif self._before is not None and t > self._gap_end:
            self._before = None
        self.last = t

    def drop_lone(self, t: float, report_step: float) -> None:
        """Take back a change that no other followed: another lane's numbers, not a sample.

        Parameters
        ----------
        t : float
            Time now, s.
        report_step : float
            Time between two reports, s.
        """
        if self._before is not None and self.last == self._gap_end \
                and t - self._gap_end > 1.0 + 3.0 * report_step:
            self.last = self._before
            self._before = None

    def lane_switch(self, t: float) -> None:
        """Take a lane switch: the next report carries another lane's numbers."""
        if self._before is not None and self.last == self._gap_end and t - self._gap_end < 0.5:
            self.last = self._before
            self._before = None
        self._position_ratio = self._velocity_ratio = math.nan  # nothing to compare them with


class AirspeedFusions:
    """When airspeed was fused.

    Attributes
    ----------
    last : float
        When the newest fusion showed, s; minus infinity before the first.
    count : int
        How many showed since :meth:`forget`.
    """

    __slots__ = ('_ratio', 'count', 'last')

    def __init__(self) -> None:
        self._ratio = math.nan
        self.forget()

    def forget(self) -> None:
        """Begin again."""
        self.last = -math.inf
        self.count = 0

    def report(self, t: float, message: Any, *, counts: bool) -> None:
        """Take an EKF_STATUS_REPORT of time ``t`` s; without ``counts`` only to compare with."""
        ratio = message.airspeed_variance
        if counts and _changed(self._ratio, ratio):
            self.last = t
            self.count += 1
        self._ratio = ratio

    def lane_switch(self) -> None:
        """Take a lane switch: the next report carries another lane's number."""
        self._ratio = math.nan
