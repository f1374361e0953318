"""The vehicle's own time, judged: what goes on, what came late, what is a restart.

A vehicle's messages carry its time since boot. On a link that loses, delays and garbles, one
message says little: a step back may be a packet overtaken on the way, a step far forward a broken
one. Several in a row are believed.
"""

from __future__ import annotations

import contextlib
import enum
from collections import deque

#: Time this far back is a packet overtaken on the way; further back may be a restart.
_REORDER_MS = 300
_BACK_IN_A_ROW = 3
#: A step forward by this much is no step of one vehicle's clock.
_JUMP_MS = 1000
#: A step forward by more than twice the last one is believed when a second message has it too; at
#: least _REORDER_MS and at most this much is believed at once.
_AHEAD_MS = 10_000
#: A step of the clock that differs by this much (ms), and this part, from what passed on the wall
#: is no step of a vehicle that ran on; one that was paused goes on where it was.
_LEAP_MS, _LEAP_PART = 1000, 0.3
#: So soon after a restart (wall time, s) the old time may come back, if there are two vehicles.
_OLD_TIME_S = 3.0
#: So many jumps within so many s (wall time) are two vehicles.
_JUMPS, _JUMPS_WITHIN_S = 5, 5.0


class TimeVerdict(enum.Enum):
    """What a message's time says about the message."""

    #: The message counts.
    TAKEN = 'taken'
    #: The message belongs to another past.
    DROPPED = 'dropped'
    #: It may be the first after a restart; it does not count yet.
    SUSPECT = 'suspect'
    #: The message is of a new boot, and counts.
    RESTARTED = 'restarted'


class VehicleClock:
    """Follows the time of one vehicle.

    Attributes
    ----------
    time_ms : int or None
        Newest time, ms since boot; None while unknown.
    before_restart_ms : int or None
        Newest time of the boot before.
    leap : tuple of (float, int, int) or None
        The last step forward that neither a vehicle that ran on nor a paused one makes: steady
        time (s), time before and after (ms). A vehicle that was restarted to a later time makes
        one; so may a link that loses much.
    jumping : bool
        Whether the last `update` was one of many jumps to and fro within some seconds, as no
        vehicle makes: two vehicles with one system id.
    """

    def __init__(self) -> None:
        self.time_ms: int | None = None
        self.before_restart_ms: int | None = None
        self.jumping = False
        self.leap: tuple[float, int, int] | None = None
        self._back: deque[int] = deque(maxlen=_BACK_IN_A_ROW)
        self._ahead: int | None = None
        self._last_ms: int | None = None
        self._step_ms = 0
        #: Whether the newest time is from before this connection.
        self._stale = False
        self._suspected_at = float('-inf')
        self._jumps: deque[float] = deque(maxlen=_JUMPS)
        self._restarted_at = 0.0
        self._heard: deque[tuple[float, int]] = deque(maxlen=64)

    def connected(self) -> None:
        """Begin on a new connection: any time may be the vehicle's now."""
        self._back.clear()
        self._ahead = self._last_ms = self.leap = None
        self._heard.clear()
        self._stale = self.time_ms is not None

    def forget_jumps(self) -> None:
        """Begin to count anew how often time jumps to and fro."""
        self._jumps.clear()

    def rates(self) -> tuple[float, float]:
        """Return speedup and SYSTEM_TIME messages per vehicle second, lately; NaN while unknown.

        May be called from any thread.
        """
        count = len(self._heard)
        if count >= 3:
            with contextlib.suppress(IndexError):  # emptied by the links' thread just now
                (wall0, ms0), (wall1, ms1) = self._heard[0], self._heard[-1]
                if wall1 > wall0 and ms1 > ms0:
                    return ((ms1 - ms0) / 1000 / (wall1 - wall0), (count - 1) * 1000 / (ms1 - ms0))
        return float('nan'), float('nan')

    def update(self, ms: int, now: float, *, is_clock: bool) -> TimeVerdict:
        """Take the time of a message.

        Parameters
        ----------
        ms : int
            time_boot_ms of the message.
        now : float
            Steady wall time, s.
        is_clock : bool
            Whether it is a SYSTEM_TIME, the only message that is asked whether the vehicle was
            restarted.
        """
        self.jumping = False
        newest = self.time_ms
        if newest is None:
            self.time_ms = ms
            return TimeVerdict.TAKEN
        if ms >= newest:
            return self._forward(ms, newest, now, is_clock)
        if newest - ms <= _REORDER_MS:
            return TimeVerdict.TAKEN
        if not is_clock:
            return TimeVerdict.DROPPED
        self._back.append(ms)
        in_a_row = len(self._back) == _BACK_IN_A_ROW and [*self._back] == sorted(self._back)
        if self._stale or in_a_row:
            self._restart(ms, now)
            return TimeVerdict.RESTARTED
        if now - self._suspected_at > 1.0:
            self._suspected_at = now
            return TimeVerdict.SUSPECT
        return TimeVerdict.DROPPED

    def _forward(self, ms: int, newest: int, now: float, is_clock: bool) -> TimeVerdict:
        if not self._believable(ms, newest):
            return TimeVerdict.DROPPED
        if is_clock and self._ahead is not None and abs(ms - self._ahead) > _AHEAD_MS:
            self._jumped(now)
        self._ahead = None
        if is_clock:
            self._judge_step(ms, now)
            if self._last_ms is not None:
                self._step_ms = ms - self._last_ms
            self._last_ms = ms
            if self._back or self._is_old_time(ms, ms - newest, now):
                self._jumped(now)
                self._back.clear()
            self._heard.append((now, ms))
            self._stale = False
        self.time_ms = ms
        return TimeVerdict.TAKEN

    def _judge_step(self, ms: int, now: float) -> None:
        """Compare a step of the clock with what passed on the wall."""
        if len(self._heard) < 3:
            return
        (wall0, ms0), (wall, before) = self._heard[0], self._heard[-1]
        if not (wall > wall0 and before > ms0):
            return
        speedup = (before - ms0) / 1000 / (wall - wall0)
        step, passed = ms - before, 1000 * speedup * (now - wall)
        if step > _LEAP_MS and abs(step - passed) > _LEAP_MS + _LEAP_PART * passed:
            self.leap = (now, before, ms)

    def _believable(self, ms: int, newest: int) -> bool:
        """Judge a step forward: one message far ahead may be garbage, two agree."""
        limit = min(max(_REORDER_MS, 2 * self._step_ms), _AHEAD_MS)
        if ms - newest <= limit:
            return True
        ahead, self._ahead = self._ahead, ms
        return ahead is not None and abs(ms - ahead) <= max(limit, min(ahead - newest, _AHEAD_MS))

    def _is_old_time(self, ms: int, step_ms: int, now: float) -> bool:
        """Tell a jump back to the time before a restart from time that just goes on."""
        before = self.before_restart_ms
        return (step_ms > _JUMP_MS and before is not None and ms >= before
                and now - self._restarted_at < _OLD_TIME_S)

    def _jumped(self, now: float) -> None:
        """Count times that jump to and fro: no vehicle does that, two with one system id do."""
        self._jumps.append(now)
        self.jumping = len(self._jumps) == _JUMPS and now - self._jumps[0] < _JUMPS_WITHIN_S

    def restarted_later(self, now: float) -> None:
        """Take the last leap for a restart."""
        assert self.leap is not None
        after = self.leap[2]
        self.before_restart_ms = None
        self._begin_anew(now)
        self._heard.append((now, after))

    def _restart(self, ms: int, now: float) -> None:
        self.before_restart_ms, self.time_ms = self.time_ms, ms
        self._begin_anew(now)

    def _begin_anew(self, now: float) -> None:
        self._restarted_at = now
        self._stale = False
        self._back.clear()
        self._ahead = self._last_ms = self.leap = None
        self._heard.clear()
