"""MAVLink frames out of a stream of bytes.

pymavlink decodes what is rare, and `wire` what is not; finding the frames is done here, for two
reasons. Frames that nobody wants (other vehicles, other messages) are passed over without being
decoded. And a frame whose checksum is wrong costs only its first byte: pymavlink's parser throws
away as many bytes as the broken length field says, up to 280, and with them the good frames in
between.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.sitl.wire import EXTRAS, HEADER_V2, KINDS, V1, V2, checksum

_HEARTBEAT = mavlink.MAVLINK_MSG_ID_HEARTBEAT
_PARAM_VALUE = mavlink.MAVLINK_MSG_ID_PARAM_VALUE
_FLOAT = struct.Struct('<f')

#: What a step back in the numbers of frames weighs against a step on, and what is too much.
_STEP_BACK, _TANGLED = 60, 200


def frame_source(data: bytes) -> tuple[int, int] | None:
    """Return system and component of the frame that `data` begins with; None if it does not."""
    if len(data) >= 8 and data[0] == V2:
        return data[5], data[6]
    if len(data) >= 8 and data[0] == V1:
        return data[3], data[4]
    return None


def _name_and_value(payload: bytes) -> tuple[bytes, float]:
    """Return what PARAM_VALUE tells; MAVLink 2 leaves out zeros at the end of a payload."""
    value, = _FLOAT.unpack(payload[:4].ljust(4, b'\0'))
    return payload[8:24].split(b'\0', 1)[0], value


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
        self._buffer = b''
        self._codec = mavlink.MAVLink(None)

    def reset(self) -> None:
        """Forget a half-read frame: what comes now does not go on with it."""
        self._buffer = b''
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
        """Return the wanted messages that `data` completes, as pymavlink or `wire` have them.

        Never raises on any input. What is left of an incomplete frame, at most 280 bytes, is kept.
        """
        if self._buffer:
            data = self._buffer + data
        size = len(data)
        start = 0
        messages = []
        while start < size:
            magic = data[start]
            if magic == V2:
                if size - start < 12:
                    break
                _, length, flags, _, number, system, component, low, high = \
                    HEADER_V2.unpack_from(data, start)
                if flags & ~1:
                    start = self._refuse(data, start)
                    continue
                ident = low | high << 16
                body = start + 10
                tail = body + length
                end = tail + (15 if flags else 2)
            elif magic == V1:
                if size - start < 8:
                    break
                _, length, number, system, component, ident = data[start:start + 6]
                body = start + 6
                tail = body + length
                end = tail + 2
            else:
                start = self._refuse(data, start)
                continue
            if end > size:
                break
            extra = EXTRAS.get(ident)
            if extra is None:
                # A message this dialect does not know cannot be checked; believe it if a frame
                # follows.
                good = end == size or data[end] in (V1, V2)
            else:
                good = checksum(data[start + 1:tail] + extra) == data[tail] | data[tail + 1] << 8
            if good and ident in self.wanted and (
                    ident == _HEARTBEAT or (
                        self.system in (0, system) and self.component in (0, component))):
                kind = KINDS.get(ident)
                if kind is None:
                    try:
                        messages.append(self._codec.decode(bytearray(data[start:end])))
                    except Exception:  # MAVError, and whatever odd payloads make pymavlink raise
                        good = False
                elif ident != _PARAM_VALUE or self.on_echo is None \
                        or not self.on_echo(*_name_and_value(data[body:tail])):
                    messages.append(kind.read(data[body:tail], system, component))
            if not good:
                start = self._refuse(data, start)
                continue
            self.frames += 1
            if system == self.system and component == self.component:
                if number == (self._number + 1) & 0xFF and not self._tangle:
                    # What `_count` does with the next number, as nearly all are.
                    self.heard += 1
                    self._number, self._checksum = number, data[tail] | data[tail + 1] << 8
                else:
                    self._count(number, data[tail] | data[tail + 1] << 8)
            start = end
        self._buffer = data[start:]
        return messages

    def _refuse(self, data: bytes, start: int) -> int:
        """Count what begins at `start` as bad; return where a frame may begin next."""
        self.bad += 1
        places = [place for place in (data.find(V1, start + 1), data.find(V2, start + 1))
                  if place >= 0]
        return min(places) if places else len(data)
