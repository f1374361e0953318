"""One MAVLink port of the embedded vehicle, without its socket: bytes in, bytes out, rates."""

from __future__ import annotations

import math
from typing import Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.emulator.streams import DEFAULT_INTERVAL_US, DEFAULT_MESSAGES, STREAMS
from dryden_wind_ros.sitl.framing import FrameParser

_MAX_INPUT = 1 << 16


class Channel:
    """One MAVLink port of the vehicle: its own sequence numbers, rates and client.

    Message intervals live as long as the boot, whoever is connected.

    Attributes
    ----------
    next_at : float
        When the next message is due, us since boot; infinite if none is.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.connected = False
        self.mav = mavlink.MAVLink(None, 1, 1)
        self.intervals: dict[int, int] = {}
        #: Interval of each stream's messages where nothing else was asked, us; 0: not sent.
        self.stream_intervals: dict[int, int] = {}
        self.due: dict[int, int] = {}
        self.next_at = math.inf
        self.list_position: int | None = None
        self._parser = FrameParser(mavlink.mavlink_map)
        self._input: list[bytes] = []
        self._input_size = 0
        self._output: list[bytes] = []

    def receive(self, data: bytes) -> None:
        """Keep bytes from the client until the next loop tick reads them."""
        if self._input_size < _MAX_INPUT:
            self._input.append(data)
            self._input_size += len(data)

    @property
    def has_input(self) -> bool:
        """Whether bytes wait to be read."""
        return bool(self._input)

    @property
    def has_output(self) -> bool:
        """Whether bytes wait to be sent."""
        return bool(self._output)

    def messages(self) -> list[Any]:
        """Parse what has been received. Garbage is skipped, whatever it is."""
        data = self._input[0] if len(self._input) == 1 else b''.join(self._input)
        self._input.clear()
        self._input_size = 0
        return self._parser.feed(data)

    def forget_client(self) -> None:
        """Drop half-read input and unsent output of a client that has gone."""
        self.connected = False
        self._parser.reset()
        self._input.clear()
        self._input_size = 0
        self._output.clear()
        self.list_position = None

    def default_interval(self, message_id: int) -> int:
        """Return the interval of a message where nobody asked for one, us; 0: it is not sent."""
        for stream, messages in STREAMS.items():
            if message_id in messages:
                return self.stream_intervals.get(stream, DEFAULT_INTERVAL_US)
        return DEFAULT_INTERVAL_US if message_id in DEFAULT_MESSAGES else 0

    def set_interval(self, message_id: int, interval_us: int, t_us: int) -> None:
        """Send a message every so many microseconds from ``t_us`` on; 0 and less: no longer.

        ArduPilot keeps messages of one interval together, in one bucket. Here it is those whose
        intervals are multiples of each other, so that they leave at the same loop ticks.
        """
        if interval_us <= 0:
            self.intervals.pop(message_id, None)
            self.due.pop(message_id, None)
        else:
            shared = max((other for ident, other in self.intervals.items()
                          if ident != message_id and interval_us % other == 0), default=0)
            at = t_us + interval_us
            if shared:
                bucket = next(due for ident, due in self.due.items()
                              if self.intervals[ident] == shared and ident != message_id)
                at -= (at - bucket) % shared
            self.intervals[message_id] = interval_us
            self.due[message_id] = at
        self.next_at = min(self.due.values(), default=math.inf)

    def begin(self, t_us: int) -> None:
        """Begin to send to a client that has come: at the rates that the last one left."""
        self.connected = True
        self.due = {message_id: t_us + interval for message_id, interval in self.intervals.items()}
        self.next_at = min(self.due.values(), default=math.inf)

    def fall_due(self, t_us: int) -> list[int]:
        """Return the messages due at ``t_us``, and note when each is due next.

        The clock comes first: what carries no time belongs to it.
        """
        if t_us < self.next_at:
            return []
        due, intervals = self.due, self.intervals
        found = [message_id for message_id, at in due.items() if at <= t_us]
        for message_id in found:
            # Late by more than an interval: what was missed is not made up for
            at = due[message_id] + intervals[message_id]
            due[message_id] = at if at > t_us else t_us + intervals[message_id]
        self.next_at = min(due.values())
        found.sort()
        return found

    def send(self, message: Any) -> None:
        """Pack a message for the client, if there is one."""
        if self.connected:
            mav = self.mav
            self._output.append(message.pack(mav))
            mav.seq = (mav.seq + 1) % 256

    def take(self) -> bytes:
        """Return what is to be sent and forget it."""
        if not self._output:
            return b''
        data = b''.join(self._output)
        self._output.clear()
        return data

    def take_datagrams(self, longest: int) -> list[bytes]:
        """Return what is to be sent, whole messages together up to ``longest`` bytes."""
        datagrams: list[bytes] = []
        for packet in self._output:
            if datagrams and len(datagrams[-1]) + len(packet) <= longest:
                datagrams[-1] += packet
            else:
                datagrams.append(packet)
        self._output.clear()
        return datagrams
