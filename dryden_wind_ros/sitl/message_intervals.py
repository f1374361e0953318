"""How often the vehicle sends which message: asked for, answered, watched, and given back.

``MAV_CMD_SET_MESSAGE_INTERVAL`` sets one message's interval on the channel it comes in by. Too
short a one is denied and the old one stays; then slower ones are tried. What was granted does not
stay: a restart forgets it, and whoever shares the channel and asks for streams
(``REQUEST_DATA_STREAM``, as MAVProxy does every 15 s) sets all of them anew. So what comes is
compared with what was granted, in the vehicle's own time, and asked for again where it falls short.

At the end an interval of 0 gives every message its default rate back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.sitl.events import Level, Notices

#: What everybody needs: the clock, every 25 ms. At 50 ms ArduPlane's times fall two by two into
#: the same 0.05 s tick; at 25 ms every tick is reached, and 20 ms is refused there.
SYSTEM_TIME_INTERVAL_US = 25_000

_SYSTEM_TIME = mavlink.MAVLINK_MSG_ID_SYSTEM_TIME
_ACK_TIMEOUT_S, _ACK_TRIES, _ACK_LATER_S = 1.0, 5, 10.0
#: Slower rates to try when one is denied.
_SLOWER_SYSTEM_TIME_US = (40_000, 50_000, 100_000, 200_000)
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
_RELEASE_TIMEOUT_S, _RELEASE_TRIES = 0.5, 4


def message_name(ident: int) -> str:
    """Return the name of a MAVLink message id."""
    kind = mavlink.mavlink_map.get(ident)
    return str(kind.msgname) if kind is not None else f'message {ident}'


@dataclass
class _Wish:
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


class MessageIntervals:
    """Asks for message intervals, one at a time, until each is settled; and sees that they stay.

    Parameters
    ----------
    intervals : mapping of int to int
        Message ids and their intervals in us. SYSTEM_TIME is always asked for.
    send : callable
        Called with message ids and intervals (us): sends the requests together.
    notices : Notices
        For what a user should read.

    Notes
    -----
    Nothing is asked before `want`.
    """

    def __init__(self, intervals: Mapping[int, int],
                 send: Callable[[list[tuple[int, int]]], object], notices: Notices) -> None:
        self._send = send
        self._notices = notices
        self._wishes = {_SYSTEM_TIME: _Wish(SYSTEM_TIME_INTERVAL_US)}
        for ident, interval in intervals.items():
            self._wishes[ident] = _Wish(interval)
        self._wanted = False
        self._asking: int | None = None
        #: What was asked for since the vehicle was found, and so has to be given back.
        self._touched: set[int] = set()
        self._given_back = -1
        self._release_tries = 0
        self._released_at = 0.0
        self._gave_up = False
        self._clock_at = 0.0
        self._clock_ms: int | None = None
        self._long_steps = 0
        self._undone: deque[float] = deque(maxlen=_UNDONE)

    @property
    def messages(self) -> frozenset[int]:
        """Ids of the messages that are asked for."""
        return frozenset(self._wishes)

    @property
    def wanted(self) -> bool:
        """Whether messages are asked for."""
        return self._wanted

    @property
    def clock_settled(self) -> bool:
        """Whether it is settled how often SYSTEM_TIME comes. From any thread."""
        return self._wishes[_SYSTEM_TIME].settled

    def in_force(self) -> tuple[tuple[str, int], ...]:
        """Return messages and their interval in force, us; may be called from any thread."""
        return tuple((message_name(ident), wish.in_force_us)
                     for ident, wish in list(self._wishes.items()))

    def set(self, ident: int, interval_us: int) -> None:
        """Ask for a message at another interval (us)."""
        wish = self._wishes.get(ident)
        if wish is None:
            self._wishes[ident] = _Wish(interval_us)
        elif wish.wanted_us != interval_us:
            self._wishes[ident] = _Wish(interval_us, in_force_us=wish.in_force_us)
            if self._asking == ident:
                self._asking = None

    def want(self) -> None:
        """Ask for the messages from now on."""
        if not self._wanted:
            self._wanted = True
            self._given_back = -1

    def stop(self) -> None:
        """Ask for nothing any more; what was asked for stays until `release`."""
        self._wanted = False
        self._asking = None

    def forget(self) -> None:
        """Begin with another boot or another connection: nothing is asked before `want`."""
        for ident, wish in self._wishes.items():
            self._wishes[ident] = _Wish(wish.wanted_us)
            self._notices.solved(f'interval {ident}')
        self._notices.solved('slow clock')
        self._wanted = False
        self._asking = None
        self._touched.clear()
        self._given_back = -1

    # -- asking

    def poll(self, now: float) -> None:
        """Keep one request on its way: acknowledgements do not say which message they mean."""
        if self._given_back >= 0:
            self._release_on(now)
        if not self._wanted:
            return
        if self._asking is not None:
            wish = self._wishes[self._asking]
            if now - wish.asked_at < _ACK_TIMEOUT_S:
                return
            if wish.tries >= _ACK_TRIES:
                self._unsettled(
                    self._asking, 'was not answered; asked again every '
                    f'{_ACK_LATER_S:g} s')
                wish.tries = 0
                wish.not_before = now + _ACK_LATER_S
                self._asking = None
        if self._asking is None:
            self._asking = next((ident for ident, wish in self._wishes.items()
                                 if not wish.settled and now >= wish.not_before), None)
            if self._asking is None:
                return
        wish = self._wishes[self._asking]
        if not wish.asked_us:
            wish.asked_us = wish.wanted_us
            wish.slower = [slower for slower in _SLOWER_SYSTEM_TIME_US
                           if slower > wish.wanted_us] if self._asking == _SYSTEM_TIME else [
                               wish.wanted_us * factor for factor in (2, 4, 10)]
        wish.tries += 1
        wish.asked_at = now
        self._touched.add(self._asking)
        self._send([(self._asking, wish.asked_us)])

    def acknowledged(self, result: int, now: float) -> None:
        """Take the answer (a MAV_RESULT) to the request on its way."""
        if result == mavlink.MAV_RESULT_IN_PROGRESS:
            return
        if self._given_back >= 0:
            self._given_back += result == mavlink.MAV_RESULT_ACCEPTED
            return
        if self._asking is None:
            return
        ident = self._asking
        wish = self._wishes[ident]
        self._asking = None
        if result == mavlink.MAV_RESULT_ACCEPTED:
            wish.settled = True
            wish.in_force_us = wish.asked_us
            wish.since_ms, wish.tries = None, 0
            if ident == _SYSTEM_TIME:
                self._clock_at = now
            if wish.asked_us != wish.wanted_us:
                self._unsettled(ident, 'was denied as too fast; it comes every '
                                f'{wish.asked_us / 1000:g} ms instead'
                                + self._what_slower_means(ident))
            else:
                self._notices.solved(f'interval {ident}')
        elif result == mavlink.MAV_RESULT_TEMPORARILY_REJECTED:
            wish.not_before = now + _ACK_TIMEOUT_S
        elif result == mavlink.MAV_RESULT_UNSUPPORTED or not wish.slower:
            wish.settled = True
            self._unsettled(ident, f'was refused (result {result})'
                            + self._what_slower_means(ident))
        else:
            wish.asked_us = wish.slower.pop(0)
            wish.tries = 0
        self.poll(now)

    # -- watching

    def heard(self, ident: int, now: float, ms: int | None = None) -> None:
        """Count a message; `ms` is the time of a SYSTEM_TIME."""
        wish = self._wishes.get(ident)
        if wish is None:
            return
        wish.count += 1
        if ident == _SYSTEM_TIME and ms is not None:
            before, self._clock_ms = self._clock_ms, ms
            self._clock_at = now
            if before is not None and 1000 * (ms - before) > _LONG_STEP * wish.in_force_us > 0:
                self._long_steps += 1

    def begin_counting(self) -> None:
        """Count anew: what came before a leap of time says nothing."""
        for wish in self._wishes.values():
            wish.since_ms = None

    def ask_clock_again(self) -> None:
        """Ask for SYSTEM_TIME anew."""
        wish = self._wishes[_SYSTEM_TIME]
        self._wishes[_SYSTEM_TIME] = _Wish(wish.wanted_us, in_force_us=wish.in_force_us)
        if self._asking == _SYSTEM_TIME:
            self._asking = None

    def watch(self, time_ms: int, speedup: float, last_heard: float, now: float) -> bool:
        """Compare what comes with what was granted, and ask again where it falls short.

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
        bool
            Whether rates that had been kept are lost.
        """
        if not self._wanted:
            return False
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
                if wish.came and ident == _SYSTEM_TIME and self._long_steps >= 2:
                    self._was_undone(1e6 * wish.count / elapsed_us, now)
                self._falls_short(ident, wish, 1e6 * wish.count / elapsed_us, now)
            elif part >= _WHOLE:
                if ident == _SYSTEM_TIME:
                    self._notices.solved('slow clock')
                wish.came, wish.misses = True, 0
            self._begin(ident, wish, time_ms)
        if self._clock_stopped(speedup, last_heard, now):
            clock = self._wishes[_SYSTEM_TIME]
            short, lost = True, lost or clock.came
            self._falls_short(_SYSTEM_TIME, clock, 0.0, now)
        if lost:
            # Whoever took one rate has probably taken all: those that never came, too.
            for wish in self._wishes.values():
                if wish.settled and wish.in_force_us:
                    wish.settled = wish.came = False
        if len(self._undone) == _UNDONE and now - self._undone[-1] > _UNDONE_WITHIN_S:
            self._undone.clear()
            self._notices.solved('undone')
        if short:
            self.poll(now)
        return lost

    def _begin(self, ident: int, wish: _Wish, time_ms: int) -> None:
        wish.since_ms, wish.count = time_ms, 0
        if ident == _SYSTEM_TIME:
            self._long_steps = 0

    def _clock_stopped(self, speedup: float, last_heard: float, now: float) -> bool:
        """Tell a clock that is silent, while other things are heard, from a vehicle that is."""
        clock = self._wishes[_SYSTEM_TIME]
        if not clock.settled or not clock.in_force_us:
            return False
        pace = speedup if speedup > 0 else 1.0
        patience = max(_STOPPED_S, _STOPPED_INTERVALS * clock.in_force_us * 1e-6 / pace)
        return now - self._clock_at > patience and last_heard - self._clock_at > patience / 2

    def _falls_short(self, ident: int, wish: _Wish, rate: float, now: float) -> None:
        wish.settled = wish.came = False
        wish.misses += 1
        longest = _LONGEST_CLOCK_WAIT_S if ident == _SYSTEM_TIME else _LONGEST_WAIT_S
        wish.not_before = now + (
            min(2.0 ** min(wish.misses - 2, 10), longest) if wish.misses > 1 else 0.0)
        if wish.misses == _TOO_SLOW_AFTER and ident == _SYSTEM_TIME:
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

    # -- giving back

    def release(self, now: float) -> None:
        """Ask for nothing any more, and begin to give all messages their default rates back."""
        self.stop()
        if self._given_back < 0:
            self._given_back = self._release_tries = 0
            self._gave_up = False
            self._released_at = float('-inf')
            self._release_on(now)

    @property
    def released(self) -> bool:
        """Whether `release` has come to its end: nothing is left, or no answer comes."""
        return not self._touched or self._gave_up

    @property
    def to_give_back(self) -> int:
        """How many messages do not have their default rate."""
        return len(self._touched)

    def _release_on(self, now: float) -> None:
        if not self._touched:
            return
        if self._given_back >= len(self._touched):
            self._notices.tell(Level.INFO, f'{len(self._touched)} message rates are at their '
                               'defaults again, confirmed')
            for ident in self._touched:
                self._wishes[ident].in_force_us = 0
            self._touched.clear()
        elif now - self._released_at > _RELEASE_TIMEOUT_S:
            if self._release_tries == _RELEASE_TRIES:
                self._gave_up = True
                return
            self._release_tries += 1
            self._released_at = now
            # All again: an answer does not say which message it means, and twice does no harm.
            self._given_back = 0
            self._send([(ident, 0) for ident in sorted(self._touched)])

    def _what_slower_means(self, ident: int) -> str:
        if ident != _SYSTEM_TIME:
            return ''
        return ('. The air changes only when the clock is heard; raise SCHED_LOOP_RATE to let it '
                'change at 20 Hz')

    def _unsettled(self, ident: int, what: str) -> None:
        self._notices.problem(
            f'interval {ident}', Level.WARN,
            f'{message_name(ident)} every {self._wishes[ident].wanted_us / 1000:g} ms {what}')
