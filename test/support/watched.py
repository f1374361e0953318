"""A link served by its own thread, and everything it said."""

from __future__ import annotations

from typing import Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.sitl.connection import parse_connection
from dryden_wind_ros.sitl.link import Link
from dryden_wind_ros.sitl.link_status import LinkState
from dryden_wind_ros.sitl.loop import LinkLoop
from support import wait_until


class Watched:
    """A link that may change the rates of whatever vehicle it finds.

    With `loop` several links share one thread, which whoever made it starts and stops.
    """

    def __init__(self, connection: str, allow_remote: bool = False, loop: LinkLoop | None = None,
                 **options: Any) -> None:
        self.messages: list[Any] = []
        self.events: list[Any] = []
        self.errors: list[BaseException] = []
        self.vehicles: list[bool] = []
        self.requests: list[Any] = []
        self._own = loop is None
        self.loop = LinkLoop(self.errors.append) if loop is None else loop
        self.link = Link(
            parse_connection(connection, allow_remote), on_message=self._message,
            on_event=self.events.append, on_vehicle=self._vehicle, **options)

    def _vehicle(self, up: bool) -> None:
        self.vehicles.append(up)
        if up:
            self.link.want_intervals()

    def _message(self, message: Any) -> None:
        self.messages.append(message)
        if self.requests:
            self.link.send(self.requests.pop())

    def __enter__(self) -> Watched:
        if self._own:
            self.loop.start()
        self.loop.add(self.link)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._own:
            self.loop.stop()
        assert not self.errors

    @property
    def text(self) -> str:
        return '\n'.join(event.text for event in self.events)

    @property
    def settled(self) -> dict[str, int]:
        return dict(self.link.status().intervals)

    def of(self, ident: int) -> list[Any]:
        return [message for message in list(self.messages) if message.get_msgId() == ident]

    def times(self) -> list[int]:
        return [message.time_boot_ms for message in self.of(mavlink.MAVLINK_MSG_ID_SYSTEM_TIME)]

    def wait_up(self, timeout: float = 20.0) -> None:
        wait_until(lambda: self.link.status().state is LinkState.UP and self.link.time, timeout,
                   f'the link to be up; it said: {self.text}')

    def wait_said(self, words: str, timeout: float = 20.0) -> None:
        wait_until(lambda: words in self.text, timeout, lambda: f'{words!r}; it said: {self.text}')

    def wait_for_ticks(self, ticks: int, timeout: float = 30.0) -> list[int]:
        """Wait until the clock has come every 25 ms for so long; return all its times, ms."""
        def kept() -> bool:
            times = self.times()[-2 * ticks - 1:]
            return len(times) == 2 * ticks + 1 and times[-1] - times[0] <= 50 * ticks + 50
        wait_until(kept, timeout, lambda: f'{ticks} ticks in a row, not {self.times()[-20:]}; it '
                   f'said: {self.text}')
        return self.times()
