"""How often the vehicle sends which message: asked for, answered, and what came of it.

``MAV_CMD_SET_MESSAGE_INTERVAL`` sets one message's interval on the channel it comes in by. Too
short a one is denied and the old one stays; then slower ones are tried.
"""

from __future__ import annotations

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


def message_name(ident: int) -> str:
    """Return the name of a MAVLink message id."""
    kind = mavlink.mavlink_map.get(ident)
    return str(kind.msgname) if kind is not None else f'message {ident}'


@dataclass
class _Wish:
    """One message interval: what was asked, and what came of it."""

    wanted_us: int
    asked_us: int = 0
    in_force_us: int = 0
    tries: int = 0
    asked_at: float = 0.0
    not_before: float = 0.0
    settled: bool = False
    slower: list[int] = field(default_factory=list)


class MessageIntervals:
    """Asks for message intervals, one at a time, until each is settled.

    Parameters
    ----------
    intervals : mapping of int to int
        Message ids and their intervals in us. SYSTEM_TIME is always asked for.
    send : callable
        Called with a message id and an interval (us): sends the request.
    notices : Notices
        For what a user should read.
    """

    def __init__(self, intervals: Mapping[int, int], send: Callable[[int, int], object],
                 notices: Notices) -> None:
        self._send = send
        self._notices = notices
        self._wishes = {_SYSTEM_TIME: _Wish(SYSTEM_TIME_INTERVAL_US)}
        for ident, interval in intervals.items():
            self._wishes[ident] = _Wish(interval)
        self._asking: int | None = None

    @property
    def messages(self) -> frozenset[int]:
        """Ids of the messages that are asked for."""
        return frozenset(self._wishes)

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

    def pause(self) -> None:
        """Forget a request on its way: its answer will not come."""
        self._asking = None

    def ask_again(self) -> None:
        """Ask for everything anew."""
        for ident, wish in self._wishes.items():
            self._wishes[ident] = _Wish(wish.wanted_us)
            self._notices.solved(f'interval {ident}')
        self._asking = None

    def ask_clock_again(self) -> None:
        """Ask for SYSTEM_TIME anew."""
        self._wishes[_SYSTEM_TIME] = _Wish(self._wishes[_SYSTEM_TIME].wanted_us)
        self._asking = None

    def poll(self, now: float) -> None:
        """Keep one request on its way: acknowledgements do not say which message they mean."""
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
        self._send(self._asking, wish.asked_us)

    def acknowledged(self, result: int, now: float) -> None:
        """Take the answer (a MAV_RESULT) to the request on its way."""
        if self._asking is None or result == mavlink.MAV_RESULT_IN_PROGRESS:
            return
        ident = self._asking
        wish = self._wishes[ident]
        self._asking = None
        if result == mavlink.MAV_RESULT_ACCEPTED:
            wish.settled = True
            wish.in_force_us = wish.asked_us
            if wish.asked_us == wish.wanted_us:
                self._notices.solved(f'interval {ident}')
            else:
                self._unsettled(ident, 'was denied as too fast; it comes every '
                                f'{wish.asked_us / 1000:g} ms instead'
                                + self._what_slower_means(ident))
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

    def _what_slower_means(self, ident: int) -> str:
        if ident != _SYSTEM_TIME:
            return ''
        return ('. The air changes only when the clock is heard; raise SCHED_LOOP_RATE to let it '
                'change at 20 Hz')

    def _unsettled(self, ident: int, what: str) -> None:
        self._notices.problem(
            f'interval {ident}', Level.WARN,
            f'{message_name(ident)} every {self._wishes[ident].wanted_us / 1000:g} ms {what}')
