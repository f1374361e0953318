"""Notices that no winds come any more while the vehicle flies on."""

from __future__ import annotations

import math

#: The wind node repeats a wind that stands once per 1 s of vehicle time.
REPEATED_WITHIN_S = 2.5
_LONGEST_STEP_S = 1.0
_REPEATS = 3


class WindWatch:
    """Counts steady time since the last wind, as far as the vehicle's own time goes on.

    A vehicle that is paused needs no new wind, and one that runs slowly gets them slowly: so the
    vehicle's time has to have gone on by `REPEATED_WITHIN_S` too.

    Parameters
    ----------
    timeout : float
        Steady time after which it is too long, s.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._repeats = 0
        self._reset(None)

    def _reset(self, vehicle_time: float | None) -> None:
        self.silent = 0.0
        self._fresh = False
        self._since = self._newest = vehicle_time
        self._advanced_at: float | None = None

    def wind(self) -> None:
        """Take note that a wind has come."""
        self._fresh = True

    def overdue(self, now: float, vehicle_time: float | None, gusty: bool) -> bool:
        """Return whether the next wind is overdue.

        Parameters
        ----------
        now : float
            Steady time, s.
        vehicle_time : float or None
            Newest time of the vehicle, s.
        gusty : bool
            Whether the last wind had a gust. One without is missed only where it was repeated:
            who sets a wind once means it to stay.
        """
        if self._fresh:
            before = math.inf if vehicle_time is None or self._since is None \
                else vehicle_time - self._since
            self._repeats = self._repeats + 1 if 0.0 <= before <= REPEATED_WITHIN_S else 0
            self._reset(vehicle_time)
            return False
        if vehicle_time is None or self._since is None or self._newest is None \
                or vehicle_time < self._since:
            self._reset(vehicle_time)
            return False
        if vehicle_time > self._newest:
            if self._advanced_at is not None:
                self.silent += min(now - self._advanced_at, _LONGEST_STEP_S)
            self._advanced_at, self._newest = now, vehicle_time
        return (self.silent >= self._timeout and vehicle_time - self._since >= REPEATED_WITHIN_S
                and (gusty or self._repeats >= _REPEATS))
