"""Whether EKF3's wind estimate may be believed.

Where the wind flown is known (:meth:`Settling.flown`), it decides: an estimate that is further from
its mean of late than an estimate scatters in gusts is not settled, however still it stands. After a
step of the wind EKF3 takes tens of seconds: its process noise is small, so it weighs what it knew
far above what it measures, and comes in exponentially. Where nobody knows the wind flown, only the
estimate's own movement tells (:attr:`Settling.steady`).

Sources: recorded flights of ArduPilot's simulator, with gusts and with steps. Estimates that had
learned the wind were up to 2.7 m/s from its mean of 10 s in gusts of 1.3 m/s.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from .flown_level import FlownLevel
from .state import WindPhase

SETTLING_TIME = 8.0
"""Seconds after the first guess before the estimate may count as settled."""

KNOWN_SETTLING_TIME = 4.0
"""The same where the wind flown is known, which tells a lucky estimate from one that stays."""

RESETTLING_TIME = 3.0
"""Seconds after relearning before the estimate may count as settled again."""

SETTLED_VARIANCE = 1.5
"""Largest variance (m/s)^2, in any direction, at which a plane's estimate may count as settled."""

SCATTER = 2.97
"""How far a good estimate may be from the mean of the wind flown, m/s; it is wrong beyond 3."""

SETTLED_DRIFT = 1.5
"""Most that a settling estimate may have moved within the last few seconds, m/s."""

UNSETTLED_DRIFT = 3.0
"""A steady estimate that moved more than this within the last few seconds no longer is, m/s."""

SETTLED_WANDER = 2.2
"""A steady estimate further than this from its own average of half a minute no longer is, m/s."""

STILL_TIME = 25.0
"""Seconds for which an estimate that has wandered must keep still to be steady again."""

STILL_DRIFT = 1.2
"""Most that it may move in that time, m/s."""

WIND_STALE = 3.0
"""Seconds for which a WIND message holds."""

_NEAR_TIME = 1.0       # s for which an estimate must be near the wind flown to be settled again
_NEAR_MOST = 16.0      # s, the longest that it must be near, after leaving again and again
_AGAIN = 60.0          # s within which leaving is leaving again
_DRIFT_WINDOW = 5.0    # s
_AVERAGE_TIME = 30.0   # s, time constant of the average that the estimate may not wander off
_CLOSING_TIME = 30.0   # s over which the closing in on the wind flown is looked at: a full turn


class Settling:
    """Judges one estimate.

    Attributes
    ----------
    settled : bool
        The estimate may be believed.
    steady : bool
        It does not move more than a settled one does; says nothing about the wind flown.
    why_not : str
        Why it is not settled, in a few words; empty if it is.
    settles_in : float
        How long it will be until it is, s; NaN where that cannot be said, 0 if it is settled.
    """

    __slots__ = ('_absurd', '_absurd_t', '_average_e', '_average_n', '_average_t', '_closing',
                 '_far', '_flown', '_from', '_history', '_left_t', '_near_since', '_near_time',
                 '_time', '_wandered', '_wind_e', '_wind_n', '_wind_t', 'settled', 'settles_in',
                 'steady', 'why_not')

    def __init__(self) -> None:
        self.settled = self.steady = False
        self.why_not = 'no estimate'
        self.settles_in = math.nan
        self._flown = FlownLevel()
        self._absurd = ''
        self._absurd_t = -math.inf
        self._from = 0.0
        self._time = SETTLING_TIME
        self._average_n = self._average_e = self._average_t = math.nan
        self._wind_n = self._wind_e = math.nan
        self._wind_t = -math.inf
        self._wandered = False
        self._far = False
        self._near_since: float | None = None
        self._near_time = _NEAR_TIME
        self._left_t = -math.inf
        self._history: deque[tuple[float, float, float]] = deque(maxlen=32)
        self._closing: deque[tuple[float, float]] = deque(maxlen=32)

    def begin(self, t: float, seconds: float) -> None:
        """Start anew at time ``t`` s: nothing is settled for ``seconds`` s."""
        self._from = t
        self._time = seconds
        self._wandered = self._far = False
        self._near_since = None
        self._history.clear()
        self._closing.clear()

    def add(self, t: float, wind_n: float, wind_e: float) -> None:
        """Take the estimate of time ``t`` s, m/s towards north and east."""
        self._wind_t, self._wind_n, self._wind_e = t, wind_n, wind_e
        history = self._history
        if not history or t - history[-1][0] >= 1.0 or t < history[-1][0]:
            history.append((t, wind_n, wind_e))

    def flown(self, t: float, north: float, east: float) -> None:
        """Take the wind flown at time ``t`` s, m/s towards north and east; NaN: not known."""
        self._flown.add(t, north, east)

    def judge(self, t: float, *, learning: bool, variance: float, absurd: str = '',
              time_constant: float = math.nan) -> bool:
        """Return whether the estimate may be believed at time ``t`` s.

        Parameters
        ----------
        t : float
            Vehicle time now, s.
        learning : bool
            The phase is *learning*; else nothing is settled.
        variance : float
            Largest variance of the wind states in any direction, (m/s)^2; NaN if not known.
        absurd : str
            Why the estimate cannot be right, whatever it does; empty if it can.
        time_constant : float
            Within which an error goes down to a third as a rule, s; NaN if not known.
        """
        self.settles_in = math.nan
        known = self._flown.known(t)
        why = self._too_early(t, learning, known)
        seen = not variance >= SETTLED_VARIANCE
        self.steady = not why and seen and self._is_steady(t)
        if not why:
            if known:
                why = self._why_far(t, time_constant)
            elif not seen:
                why = 'not turned enough to see the wind along the heading'
            else:
                why = self._why_absurd(t, absurd) or (
                    '' if self.steady else 'the estimate still moves')
        self.why_not = why
        self.settled = not why
        if self.settled:
            self.settles_in = 0.0
        return self.settled

    def _too_early(self, t: float, learning: bool, known: bool) -> str:
        left = self._from + (min(self._time, KNOWN_SETTLING_TIME) if known else self._time) - t
        if not learning or t - self._wind_t > WIND_STALE or left > 0.0:
            self._average_t = math.nan
            self._near_since = None
            if learning and left > 0.0:
                self.settles_in = left
                return 'the first seconds of learning'
            return 'nothing is learned now' if not learning else 'no WIND messages'
        return ''

    # -- where the wind flown is known

    def _why_far(self, t: float, time_constant: float) -> str:
        level = self._flown
        error = math.hypot(self._wind_n - level.north, self._wind_e - level.east)
        limit = SCATTER + level.uncertainty(t)
        if self.settled and error <= limit:
            return ''
        # Gusts move the mean to and fro: come back only where they will not take it away again.
        limit -= min(0.15 * level.scatter, 0.2)
        if error > limit:
            if self.settled:
                # One that keeps about at the limit is not to come and go: it waits ever longer.
                again = t - self._left_t < _AGAIN and t - level.step_t > 1.0
                self._near_time = min(2.0 * self._near_time, _NEAR_MOST) if again else _NEAR_TIME
                self._left_t = t
            self._far = True
            self._near_since = None
            self.settles_in = self._time_to_go(t, error, limit, time_constant)
            return f'{error:.1f} m/s from the wind flown'
        if self._near_since is None:
            self._near_since = t
        left = self._near_since + self._near_time - t
        if self._far and left > 0.0:
            self.settles_in = left
            return 'has just come near the wind flown'
        if self._moved(t, _DRIFT_WINDOW) > SETTLED_DRIFT:
            return 'near the wind flown, but on the move'
        self._far = False
        return ''

    def _time_to_go(self, t: float, error: float, limit: float, time_constant: float) -> float:
        """Return how long an error takes to come down to the limit, s."""
        closing = self._closing
        while closing and (closing[0][0] <= self._flown.step_t + 0.5
                           or t - closing[0][0] > _CLOSING_TIME):
            closing.popleft()
        if not closing or t - closing[-1][0] >= 1.0:
            closing.append((t, error))
        since, first = closing[0]
        # What is seen of it counts beside what is usual: within a turn it comes in jerks.
        rate = ((_CLOSING_TIME / time_constant + math.log(first / error))
                / (_CLOSING_TIME + t - since))
        return math.log(error / limit) / max(rate, 0.2 / time_constant)

    # -- where only its movement is

    def _why_absurd(self, t: float, absurd: str) -> str:
        # On some headings an absurd estimate is a possible one: remember it for a full turn.
        if absurd:
            self._absurd, self._absurd_t = absurd, t
        return self._absurd if t - self._absurd_t < STILL_TIME else ''

    def _moved(self, t: float, seconds: float) -> float:
        """Return how far the estimate is from where it was within the last seconds, m/s."""
        most = 0.0
        for then, north, east in reversed(self._history):
            if t - then > seconds:
                break
            north -= self._wind_n
            east -= self._wind_e
            most = max(most, north * north + east * east)
        return math.sqrt(most)

    def _is_steady(self, t: float) -> bool:
        if self.steady:
            if self._moved(t, _DRIFT_WINDOW) <= UNSETTLED_DRIFT and self._stays_near_average(t):
                return True
            self._wandered = True
            self._average_t = math.nan
            return False
        if self._wandered:
            if self._moved(t, STILL_TIME) > STILL_DRIFT:
                return False
            self._wandered = False
        return self._moved(t, _DRIFT_WINDOW) <= SETTLED_DRIFT and self._stays_near_average(t)

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


def settled_rows(t: Sequence[float], phase: Sequence[WindPhase],
                 estimate: Sequence[tuple[float, float]], flown: Sequence[tuple[float, float]],
                 variance: Sequence[float]) -> list[bool]:
    """Return where the estimate of a log may be believed.

    Parameters
    ----------
    t : sequence of float
        Times of the rows, s, ascending.
    phase : sequence of WindPhase
        Phase of each row.
    estimate, flown : sequence of (float, float)
        Estimate and wind flown, towards north and east, m/s; NaN where there is none.
    variance : sequence of float
        Larger variance of the two wind states, (m/s)^2.
    """
    judge = Settling()
    before = WindPhase.UNKNOWN
    settled = []
    for now, one, (north, east), wind, largest in zip(t, phase, estimate, flown, variance,
                                                      strict=True):
        if one is not before and one in (WindPhase.INIT, WindPhase.LEARNING) \
                and before is not WindPhase.INIT:
            judge.begin(now, SETTLING_TIME if one is WindPhase.INIT else RESETTLING_TIME)
        before = one
        if math.isfinite(north) and math.isfinite(east):
            judge.add(now, north, east)
        judge.flown(now, *wind)
        settled.append(judge.judge(now, learning=one is WindPhase.LEARNING, variance=largest))
    return settled
