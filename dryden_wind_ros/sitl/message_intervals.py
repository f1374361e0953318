"""How often the vehicle sends which message: asked for, answered, watched, and given back.

``MAV_CMD_SET_MESSAGE_INTERVAL`` sets one message's interval on the channel it comes in by. Too
short a one is denied and the old one stays; then slower ones are tried. What was granted does not
stay: a restart forgets it, and whoever shares the channel and asks for streams
(``REQUEST_DATA_STREAM``, as MAVProxy does every 15 s) sets all of them anew. So what comes is
compared with what was granted, in the vehicle's own time, and asked for again where it falls short.

At the end an interval of 0 gives every message its default rate back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.sitl.events import Level, Notices
from dryden_wind_ros.sitl.interval_release import IntervalRelease
from dryden_wind_ros.sitl.interval_watch import (
    SYSTEM_TIME,
    SYSTEM_TIME_INTERVAL_US,
    IntervalWatch,
    Wish,
)

_ACK_TIMEOUT_S, _ACK_TRIES, _ACK_LATER_S = 1.0, 5, 10.0
#: Slower rates to try when one is denied.
_SLOWER_SYSTEM_TIME_US = (40_000, 50_000, 100_000, 200_000)


def message_name(ident: int) -> str:
    """Return the name of a MAVLink message id."""
    kind = mavlink.mavlink_map.get(ident)
    return str(kind.msgname) if kind is not None else f'message {ident}'


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
        self._wishes = {SYSTEM_TIME: Wish(SYSTEM_TIME_INTERVAL_US)}
        for ident, interval in intervals.items():
            self._wishes[ident] = Wish(interval)
        self._wanted = False
        self._asking: int | None = None
        self._release = IntervalRelease(send, notices)
        self._watch = IntervalWatch(self._wishes, notices)

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
        return self._wishes[SYSTEM_TIME].settled

    def in_force(self) -> tuple[tuple[str, int], ...]:
        """Return messages and their interval in force, us; may be called from any thread."""
        return tuple((message_name(ident), wish.in_force_us)
                     for ident, wish in list(self._wishes.items()))

    def set(self, ident: int, interval_us: int) -> None:
        """Ask for a message at another interval (us)."""
        wish = self._wishes.get(ident)
        if wish is None:
            self._wishes[ident] = Wish(interval_us)
        elif wish.wanted_us != interval_us:
            self._wishes[ident] = Wish(interval_us, in_force_us=wish.in_force_us)
            if self._asking == ident:
                self._asking = None

    def want(self) -> None:
        """Ask for the messages from now on."""
        if not self._wanted:
            self._wanted = True
            self._release.stop()

    def stop(self) -> None:
        """Ask for nothing any more; what was asked for stays until `release`."""
        self._wanted = False
        self._asking = None

    def forget(self) -> None:
        """Begin with another boot or another connection: nothing is asked before `want`."""
        for ident, wish in self._wishes.items():
            self._wishes[ident] = Wish(wish.wanted_us)
            self._notices.solved(f'interval {ident}')
        self._notices.solved('slow clock')
        self._wanted = False
        self._asking = None
        self._release.forget()

    # -- asking

    def poll(self, now: float) -> None:
        """Keep one request on its way: acknowledgements do not say which message they mean."""
        self._give_back(now)
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
                           if slower > wish.wanted_us] if self._asking == SYSTEM_TIME else [
                               wish.wanted_us * factor for factor in (2, 4, 10)]
        wish.tries += 1
        wish.asked_at = now
        self._release.touched.add(self._asking)
        self._send([(self._asking, wish.asked_us)])

    def acknowledged(self, result: int, now: float) -> None:
        """Take the answer (a MAV_RESULT) to the request on its way."""
        if result == mavlink.MAV_RESULT_IN_PROGRESS:
            return
        if self._release.begun:
            self._release.acknowledged(result)
            return
        if self._asking is None:
            return
        ident = self._asking
        wish = self._wishes[ident]
        self._asking = None
        if result == mavlink.MAV_RESULT_ACCEPTED:
            wish.settled = True
            wish.in_force_us = wish.asked_us
            wish.tries = 0
            self._watch.granted(ident, now)
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
        self._watch.heard(ident, now, ms)

    def begin_counting(self) -> None:
        """Count anew: what came before a leap of time says nothing."""
        self._watch.begin_counting()

    def ask_clock_again(self) -> None:
        """Ask for SYSTEM_TIME anew."""
        wish = self._wishes[SYSTEM_TIME]
        self._wishes[SYSTEM_TIME] = Wish(wish.wanted_us, in_force_us=wish.in_force_us)
        if self._asking == SYSTEM_TIME:
            self._asking = None

    def watch(self, time_ms: int, speedup: float, last_heard: float, now: float) -> bool:
        """Ask again for what comes less often than was granted; see `IntervalWatch.look`.

        Returns
        -------
        bool
            Whether rates that had been kept are lost.
        """
        if not self._wanted:
            return False
        lost, short = self._watch.look(time_ms, speedup, last_heard, now)
        if short:
            self.poll(now)
        return lost

    # -- giving back

    def release(self, now: float) -> None:
        """Ask for nothing any more, and begin to give all messages their default rates back."""
        self.stop()
        self._release.begin()
        self._give_back(now)

    @property
    def released(self) -> bool:
        """Whether `release` has come to its end: nothing is left, or no answer comes."""
        return self._release.ended

    @property
    def to_give_back(self) -> int:
        """How many messages do not have their default rate."""
        return len(self._release.touched)

    def _give_back(self, now: float) -> None:
        for ident in self._release.poll(now):
            self._wishes[ident].in_force_us = 0

    def _what_slower_means(self, ident: int) -> str:
        if ident != SYSTEM_TIME:
            return ''
        return ('. The air changes only when the clock is heard; raise SCHED_LOOP_RATE to let it '
                'change at 20 Hz')

    def _unsettled(self, ident: int, what: str) -> None:
        self._notices.problem(
            f'interval {ident}', Level.WARN,
            f'{message_name(ident)} every {self._wishes[ident].wanted_us / 1000:g} ms {what}')
