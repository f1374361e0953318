"""Giving messages their default rates back: an interval of 0 does it."""

from __future__ import annotations

from collections.abc import Callable

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.sitl.events import Level, Notices

_TIMEOUT_S, _TRIES = 0.5, 4


class IntervalRelease:
    """Remembers which messages were asked for, and gives them their default rates back.

    Parameters
    ----------
    send : callable
        Called with message ids and intervals (us): sends the requests together.
    notices : Notices
        For what a user should read.

    Attributes
    ----------
    touched : set of int
        What was asked for since the vehicle was found, and so has to be given back.
    """

    def __init__(self, send: Callable[[list[tuple[int, int]]], object], notices: Notices) -> None:
        self.touched: set[int] = set()
        self._send = send
        self._notices = notices
        self._given_back = -1
        self._tries = 0
        self._asked_at = 0.0
        self._gave_up = False

    @property
    def begun(self) -> bool:
        """Whether answers are about giving back."""
        return self._given_back >= 0

    @property
    def ended(self) -> bool:
        """Whether nothing is left to give back, or no answer comes."""
        return not self.touched or self._gave_up

    def forget(self) -> None:
        """Begin with another boot or another connection: nothing has to be given back."""
        self.touched.clear()
        self.stop()

    def stop(self) -> None:
        """Let what was not given back yet be."""
        self._given_back = -1

    def begin(self) -> None:
        """Begin to give back; does nothing where that goes on already."""
        if not self.begun:
            self._given_back = self._tries = 0
            self._gave_up = False
            self._asked_at = float('-inf')

    def acknowledged(self, result: int) -> None:
        """Count an answer (a MAV_RESULT)."""
        self._given_back += result == mavlink.MAV_RESULT_ACCEPTED

    def poll(self, now: float) -> tuple[int, ...]:
        """Ask, and ask again where no answer comes; return what has its default rate just now."""
        if not self.begun or not self.touched:
            return ()
        if self._given_back >= len(self.touched):
            self._notices.tell(Level.INFO, f'{len(self.touched)} message rates are at their '
                               'defaults again, confirmed')
            given_back = (*self.touched,)
            self.touched.clear()
            return given_back
        if now - self._asked_at > _TIMEOUT_S:
            if self._tries == _TRIES:
                self._gave_up = True
                return ()
            self._tries += 1
            self._asked_at = now
            # All again: an answer does not say which message it means, and twice does no harm.
            self._given_back = 0
            self._send([(ident, 0) for ident in sorted(self.touched)])
        return ()
