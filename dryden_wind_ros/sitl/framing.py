"""MAVLink frames out of a stream of bytes.

pymavlink decodes; finding the frames is done here, for two reasons. Frames that nobody wants (other
vehicles, other messages) are passed over without being decoded, a quarter of the cost. And a frame
whose checksum is wrong costs only its first byte: pymavlink's parser throws away as many bytes as
the broken length field says, up to 280, and with them the good frames in between.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink

_V1, _V2 = 0xFE, 0xFD
_HEARTBEAT = mavlink.MAVLINK_MSG_ID_HEARTBEAT
_PARAM_VALUE = mavlink.MAVLINK_MSG_ID_PARAM_VALUE
_FLOAT = struct.Struct('<f')

#: What a step back in the numbers of frames weighs against a step on, and what is too much.
_STEP_BACK, _TANGLED = 60, 200


def frame_source(data: bytes) -> tuple[int, int] | None:
    """Return system and component of the frame that `data` begins with; None if it does not."""
    if len(data) >= 8 and data[0] == _V2:
        return data[5], data[6]
    if len(data) >= 8 and data[0] == _V1:
        return data[3], data[4]
    return None


def _name_and_value(payload: bytearray) -> tuple[bytes, float]:
    """Return what PARAM_VALUE tells; MAVLink 2 leaves out zeros at the end of a payload."""
    value, = _FLOAT.unpack(payload[:4].ljust(4, b'\0'))
    return bytes(payload[8:24]).split(b'\0', 1)[0], value


class FrameParser:
    """Splits a byte stream into MAVLink 1 and 2 frames and decodes the wanted ones.

    Parameters
    ----------
    wanted : iterable of int
        Message ids to decode. HEARTBEAT always is.

    Attributes
    ----------
    system, component : int
        Where wanted messages must come from; 0: from anybody. HEARTBEATs of all are decoded.
    frames, bad : int
        Well-formed frames seen, and bytes or frames thrown away.
    heard : int
        Frames of the followed system and component since `follow`.
    on_echo : callable or None
        Called with name (bytes) and value of every PARAM_VALUE of the followed sender; where it
        returns true, no message is made of it: a vehicle in gusts echoes sixty sets a second.

    Notes
    -----
    Every sender numbers its frames. Numbers that step back again and again are two senders with one
    id on one link; times do not tell them apart if both were started together.
    """

    def __init__(self, wanted: Iterable[int]) -> None:
        self.wanted = frozenset(wanted) | {_HEARTBEAT}
        self.system = 0
        self.component = 0
        self.frames = 0
        self.bad = 0
        self.heard = 0
        self.on_echo: Callable[[bytes, float], bool] | None = None
        self._number = self._checksum = -1
        self._tangle = 0
        self._buffer = bytearray()
        self._codec = mavlink.MAVLink(None)

    def reset(self) -> None:
        """Forget a half-read frame: what comes now does not go on with it."""
        self._buffer.clear()
        self.forget_numbers()

    def forget_numbers(self) -> None:
        """Forget how often numbers stepped back, and which comes next: frames are missing."""
        self._number = self._checksum = -1
        self._tangle = 0

    def follow(self, system: int, component: int) -> None:
        """Want messages of this sender only (0: of anybody), and begin to judge its numbers."""
        self.system, self.component = system, component
        self.heard = 0
        self.forget_numbers()

    @property
    def tangled(self) -> bool:
        """Whether two senders seem to use the followed id."""
        return self._tangle >= _TANGLED

    def _count(self, number: int, checksum: int) -> None:
        step = (number - self._number) & 0xFF
        if step == 0 and checksum == self._checksum:
            return  # the same frame, by two ways
        if self._number >= 0 and (step == 0 or step > 127):
            self._tangle = min(self._tangle + _STEP_BACK, 2 * _TANGLED)
        elif self._tangle:
            self._tangle -= 1
        self.heard += 1
        self._number, self._checksum = number, checksum

    def feed(self, data: bytes) -> list[Any]:
        """Return the wanted messages (pymavlink's objects) that `data` completes.

        Never raises on any input. What is left of an incomplete frame, at most 280 bytes, is kept.
        """
        buffer = self._buffer
        buffer += data
        size = len(buffer)
        start = 0
        messages = []
        while start < size:
            magic = buffer[start]
            if magic == _V2:
                if size - start < 12:
                    break
                flags = buffer[start + 2]
                end = start + 12 + buffer[start + 1] + (13 if flags & 1 else 0)
                known = not flags & ~1
                ident = buffer[start + 7] | buffer[start + 8] << 8 | buffer[start + 9] << 16
                system, component = buffer[start + 5], buffer[start + 6]
            elif magic == _V1:
                if size - start < 8:
                    break
                end = start + 8 + buffer[start + 1]
                known = True
                ident = buffer[start + 5]
                system, component = buffer[start + 3], buffer[start + 4]
            else:
                start = self._next_marker(start + 1)
                self.bad += 1
                continue
            if known and end > size:
                break
            if not known:
                start = self._next_marker(start + 1)
                self.bad += 1
                continue
            if ident in self.wanted and (
                    ident == _HEARTBEAT or (
                        self.system in (0, system) and self.component in (0, component))):
                if ident == _PARAM_VALUE and self.on_echo is not None and magic == _V2:
                    good = self._checksum_fits(start, end, ident)
                    taken = good and self.on_echo(*_name_and_value(
                        buffer[start + 10:start + 10 + buffer[start + 1]]))
                else:
                    taken = False
                try:
                    if not taken:
                        messages.append(self._codec.decode(buffer[start:end]))
                    good = True
                except Exception:  # MAVError, and whatever odd payloads make pymavlink raise
                    good = False
            else:
                good = self._checksum_fits(start, end, ident)
            if good:
                self.frames += 1
                if system == self.system and component == self.component:
                    tail = end - (15 if magic == _V2 and flags & 1 else 2)
                    self._count(buffer[start + (4 if magic == _V2 else 2)],
                                buffer[tail] | buffer[tail + 1] << 8)
                start = end
            else:
                self.bad += 1
                start = self._next_marker(start + 1)
        del buffer[:start]
        return messages

    def _next_marker(self, start: int) -> int:
        places = [place for place in (self._buffer.find(_V1, start), self._buffer.find(_V2, start))
                  if place >= 0]
        return min(places) if places else len(self._buffer)

    def _checksum_fits(self, start: int, end: int, ident: int) -> bool:
        buffer = self._buffer
        kind = mavlink.mavlink_map.get(ident)
        if kind is None:
            # A message this dialect does not know cannot be checked; believe it if a frame follows.
            return end == len(buffer) or buffer[end] in (_V1, _V2)
        signed = 13 if buffer[start] == _V2 and buffer[start + 2] & 1 else 0
        body = buffer[start + 1:end - 2 - signed]
        body.append(kind.crc_extra)
        crc = buffer[end - 2 - signed] | buffer[end - 1 - signed] << 8
        return int(mavlink.x25crc(body).crc) == crc
