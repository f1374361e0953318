"""Whether EKF3's wind estimate may be believed, from how it moves."""

from __future__ import annotations

import math
from collections import deque

SETTLING_TIME = 8.0
"""Seconds after the first guess before the estimate may count as settled."""

RESETTLING_TIME = 3.0
"""Seconds after relearning before the estimate may count as settled again."""

SETTLED_VARIANCE = 1.5
"""Largest variance (m/s)^2, in any direction, at which a plane's estimate may count as settled."""

SETTLED_DRIFT = 1.5
"""Most that a settling estimate may have moved within the last few seconds, m/s."""

UNSETTLED_DRIFT = 3.0
"""A settled estimate that moved more than this within the last few seconds no longer is, m/s."""

SETTLED_WANDER = 2.2
"""A settled estimate further than this from its own average of half a minute no longer is, m/s."""

WIND_STALE = 3.0
"""Seconds for which a WIND message holds."""

_DRIFT_WINDOW = 5.0    # s
_AVERAGE_TIME = 30.0   # s, time constant of the average that the estimate may not wander off


class Settling:
    """Judges one estimate by its own movement.

    Attributes
    ----------
    settled : bool
        The newest judgement.
    """

    __slots__ = ('_average_e', '_average_n', '_average_t', '_from', '_history', '_time', '_wind_e',
                 '_wind_n', '_wind_t', 'settled')

    def __init__(self) -> None:
        self.settled = False
        self._from = 0.0
        self._time = SETTLING_TIME
        self._average_n = self._average_e = self._average_t = math.nan
        self._wind_n = self._wind_e = math.nan
        self._wind_t = -math.inf
        self._history: deque[tuple[float, float, float]] = deque(maxlen=16)

    def begin(self, t: float, seconds: float) -> None:
        """Start anew at time ``t`` s: nothing is settled for ``seconds`` s."""
        self._from = t
        self._time = seconds
        self._history.clear()

    def add(self, t: float, wind_n: float, wind_e: float) -> None:
        """Take the estimate of time ``t`` s, m/s towards north and east."""
        self._wind_t, self._wind_n, self._wind_e = t, wind_n, wind_e
        history = self._history
        if not history or t - history[-1][0] >= 1.0 or t < history[-1][0]:
            history.append((t, wind_n, wind_e))

    def judge(self, t: float, *, learning: bool, variance: float) -> bool:
        """Return whether the estimate may be believed at time ``t`` s.

        Parameters
        ----------
        t : float
            Vehicle time now, s.
        learning : bool
            The phase is *learning*; else nothing is settled.
        variance : float
            Largest variance of the wind states in any direction, (m/s)^2; NaN if not known.
        """
        self.settled = self._judge(t, learning, variance)
        return self.settled

    def _judge(self, t: float, learning: bool, variance: float) -> bool:
        if not learning or t - self._wind_t > WIND_STALE or t - self._from < self._time:
            self._average_t = math.nan
            return False
        if variance >= SETTLED_VARIANCE:
            return False
        limit = UNSETTLED_DRIFT if self.settled else SETTLED_DRIFT
        limit *= limit
        for then, north, east in self._history:
            if t - then <= _DRIFT_WINDOW:
                north -= self._wind_n
                east -= self._wind_e
                if north * north + east * east > limit:
                    return False
        return self._stays_near_average(t)

    def _stays_near_average(self, t: float) -> bool:
        # In strong gusts the estimate follows the slow ones; what it should tell is the mean wind.
        step = t - self._average_t
        if not step <= WIND_STALE:
            if self._average_t != self._average_t or step > _AVERAGE_TIME:
                self._average_n, self._average_e = self._wind_n, self._wind_e
            self._average_t = t
        elif step >= 0.5:
            keep = 1.0 - step / _AVERAGE_TIME
            self._average_n = self._wind_n + keep * (self._average_n - self._wind_n)
            self._average_e = self._wind_e + keep * (self._average_e - self._wind_e)
            self._average_t = t
        north, east = self._wind_n - self._average_n, self._wind_e - self._average_e
        return north * north + east * east <= SETTLED_WANDER ** 2
