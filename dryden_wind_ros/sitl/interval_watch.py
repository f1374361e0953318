"""Whether messages come as often as was granted, in the vehicle's own time."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.sitl.events import Level, Notices

#: What everybody needs: the clock, every 25 ms. At 50 ms ArduPlane's times fall two by two into
#: the same 0.05 s tick; at 25 ms every tick is reached, and 20 ms is refused there.
SYSTEM_TIME_INTERVAL_US = 25_000

SYSTEM_TIME = mavlink.MAVLINK_MSG_ID_SYSTEM_TIME

#: Messages are counted for so long at least (ms of vehicle time), and for so many intervals.
_WINDOW_MS, _WINDOW_INTERVALS = 500, 5
#: Fewer than this part of what was granted is a shortfall; this part and more is as it should be.
_SHORT, _WHOLE = 0.6, 0.8
#: Steps of the clock of more than so many intervals; two of them in one window are another rate,
#: one alone is a hole in the link.
_LONG_STEP = 3
#: A clock that has stopped is asked for again after so long (wall time, s) and so many intervals.
_STOPPED_S, _STOPPED_INTERVALS = 1.0, 20
#: What falls short although it was just granted is asked for again after 1, 2, 4 ... s, at most:
_LONGEST_WAIT_S, _LONGEST_CLOCK_WAIT_S = 60.0, 2.0
_TOO_SLOW_AFTER = 3
#: Granted rates that were undone so often within so many s (wall time): somebody keeps doing it.
_UNDONE, _UNDONE_WITHIN_S = 2, 120.0


@dataclass
class Wish:
    """One message interval: what was asked, what came of it, and what comes."""

    wanted_us: int
    asked_us: int = 0
    in_force_us: int = 0
    tries: int = 0
    asked_at: float = 0.0
    not_before: float = 0.0
    settled: bool = False
    slower: list[int] = field(default_factory=list)
    #: Vehicle time since which messages are counted, ms; None before the next look.
    since_ms: int | None = None
    count: int = 0
    #: Whether it has come as often as was granted; how often in a row it has not.
    came: bool = False
    misses: int = 0


class IntervalWatch:
    """Counts messages, and finds those that fall short of what was granted.

    Parameters
    ----------
    wishes : mapping of int to Wish
        By message id, with SYSTEM_TIME among them; whoever asks for them keeps it up to date. What
        falls short is marked there as not settled.
    notices : Notices
        For what a user should read.
    """

    def __init__(self, wishes: Mapping[int, Wish], notices: Notices) -> None:
        self._wishes = wishes
        self._notices = notices
        self._clock_at = 0.0
        self._clock_ms: int | None = None
        self._long_steps = 0
        self._undone: deque[float] = deque(maxlen=_UNDONE)

    def granted(self, ident: int, now: float) -> None:
        """Begin to count a message that was granted just now."""
        self._wishes[ident].since_ms = None
        if ident == SYSTEM_TIME:
            self._clock_at = now

    def heard(self, ident: int, now: float, ms: int | None = None) -> None:
        """Count a message; `ms` is the time of a SYSTEM_TIME."""
        wish = self._wishes.get(ident)
        if wish is None:
            return
        wish.count += 1
        if ident == SYSTEM_TIME and ms is not None:
            before, self._clock_ms = self._clock_ms, ms
            self._clock_at = now
            if before is not None and 1000 * (ms - before) > _LONG_STEP * wish.in_force_us > 0:
                self._long_steps += 1

    def begin_counting(self) -> None:
        """Count anew: what came before a leap of time says nothing."""
        for wish in self._wishes.values():
            wish.since_ms = None

    def look(self, time_ms: int, speedup: float, last_heard: float, now: float
             ) -> tuple[bool, bool]:
        """Compare what comes with what was granted.

        Parameters
        ----------
        time_ms : int
            The vehicle's time.
        speedup : float
            Vehicle seconds per wall second; NaN while unknown.
        last_heard, now : float
            Steady wall time, s: when the vehicle was heard last, and now.

        Returns
        -------
        lost, short : bool
            Whether rates that had been kept are lost, and whether anything falls short.
        """
        lost = short = False
        for ident, wish in self._wishes.items():
            if not wish.settled or not wish.in_force_us:
                continue
            if wish.since_ms is None or time_ms < wish.since_ms:
                self._begin(ident, wish, time_ms)
                continue
            elapsed_us = 1000 * (time_ms - wish.since_ms)
            if elapsed_us < max(1000 * _WINDOW_MS, _WINDOW_INTERVALS * wish.in_force_us):
                continue
            part = wish.count * wish.in_force_us / elapsed_us
            if part < _SHORT and (wish.came or wish.count):
                short = True
                lost |= wish.came
                if wish.came and ident == SYSTEM_TIME and self._long_steps >= 2:
                    self._was_undone(1e6 * wish.count / elapsed_us, now)
                self._falls_short(ident, wish, 1e6 * wish.count / elapsed_us, now)
            elif part >= _WHOLE:
                if ident == SYSTEM_TIME:
                    self._notices.solved('slow clock')
                wish.came, wish.misses = True, 0
            self._begin(ident, wish, time_ms)
        if self._clock_stopped(speedup, last_heard, now):
            clock = self._wishes[SYSTEM_TIME]
            short, lost = True, lost or clock.came
            self._falls_short(SYSTEM_TIME, clock, 0.0, now)
        if lost:
            # Whoever took one rate has probably taken all: those that never came, too.
            for wish in self._wishes.values():
                if wish.settled and wish.in_force_us:
                    wish.settled = wish.came = False
        if len(self._undone) == _UNDONE and now - self._undone[-1] > _UNDONE_WITHIN_S:
            self._undone.clear()
            self._notices.solved('undone')
        return lost, short

    def _begin(self, ident: int, wish: Wish, time_ms: int) -> None:
        wish.since_ms, wish.count = time_ms, 0
        if ident == SYSTEM_TIME:
            self._long_steps = 0

    def _clock_stopped(self, speedup: float, last_heard: float, now: float) -> bool:
        """Tell a clock that is silent, while other things are heard, from a vehicle that is."""
        clock = self._wishes[SYSTEM_TIME]
        if not clock.settled or not clock.in_force_us:
            return False
        pace = speedup if speedup > 0 else 1.0
        patience = max(_STOPPED_S, _STOPPED_INTERVALS * clock.in_force_us * 1e-6 / pace)
        return now - self._clock_at > patience and last_heard - self._clock_at > patience / 2

    def _falls_short(self, ident: int, wish: Wish, rate: float, now: float) -> None:
        wish.settled = wish.came = False
        wish.misses += 1
        longest = _LONGEST_CLOCK_WAIT_S if ident == SYSTEM_TIME else _LONGEST_WAIT_S
        wish.not_before = now + (
            min(2.0 ** min(wish.misses - 2, 10), longest) if wish.misses > 1 else 0.0)
        if wish.misses == _TOO_SLOW_AFTER and ident == SYSTEM_TIME:
            self._notices.problem(
                'slow clock', Level.WARN,
                f'SYSTEM_TIME was granted every {wish.in_force_us / 1000:g} ms and comes at '
                f'{rate:.1f} Hz; asked for again and again. The link is slow or loses much, or '
                'somebody keeps setting other rates. The air changes only when the clock is heard')

    def _was_undone(self, rate: float, now: float) -> None:
        self._undone.append(now)
        if len(self._undone) == _UNDONE and now - self._undone[0] < _UNDONE_WITHIN_S \
                and 'undone' not in self._notices:
            self._notices.problem(
                'undone', Level.WARN,
                'somebody who shares this channel of the vehicle keeps setting its message rates '
                f'(SYSTEM_TIME came at {rate:.1f} Hz; {1e6 / SYSTEM_TIME_INTERVAL_US:g} were '
                'granted); they are asked for again each time, about a second late. MAVProxy does '
                'that every 15 s: say `set streamrate -1` to it, or start it with --streamrate=-1; '
                'in another ground station switch its stream rates off. Or use a port of your own, '
                'such as tcp:127.0.0.1:5762')
