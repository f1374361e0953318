"""The reading half of MAVLink's parameter protocol, a few parameters at a time.

Nothing here waits: `ParameterReader.poll` asks for what is due, answers come as messages. A vehicle
that stands still is not asked again and again, and its silence proves nothing.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink

_PARAM_VALUE = mavlink.MAVLINK_MSG_ID_PARAM_VALUE
#: Not in every pymavlink.
_PARAM_ERROR = int(getattr(mavlink, 'MAVLINK_MSG_ID_PARAM_ERROR', -1))
_ERROR_TEXTS = {
    1: 'it does not exist', 2: 'the value is out of range', 3: 'permission denied',
    4: 'unknown component', 5: 'it is read-only'}

#: Messages that carry answers.
MESSAGES = (_PARAM_VALUE,) + ((_PARAM_ERROR,) if _PARAM_ERROR >= 0 else ())

_TIMEOUT_S, _TRIES = 0.3, 8


def validate_name(name: str) -> str:
    """Return `name` if it can be a parameter's name.

    Raises
    ------
    ValueError
        If it is empty, longer than 16 characters, or holds anything but A-Z, 0-9 and _: a trailing
        blank, too, makes a different name, which the vehicle does not have.
    """
    if not isinstance(name, str) or not re.fullmatch(r'[A-Z][A-Z0-9_]{0,15}', name):
        raise ValueError(
            f'parameter name {name!r}: allowed are 1 to 16 of A-Z, 0-9 and _, starting with a '
            'letter, without blanks')
    return name


def validate_value(name: str, value: float) -> float:
    """Return `value` as the vehicle would hold it, a 32-bit float.

    Raises
    ------
    ValueError
        If it is no number, or NaN, infinite or too large for 32 bits.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f'{name} = {value!r:.40} is not a number')
    try:
        narrow = float(struct.unpack('<f', struct.pack('<f', value))[0])
    except (OverflowError, struct.error):
        narrow = math.inf
    if not math.isfinite(narrow):
        raise ValueError(f'{name} = {value!r:.40} is not a finite 32-bit number')
    return narrow


@dataclass(frozen=True)
class Answer:
    """What a vehicle told of one parameter.

    Attributes
    ----------
    name : str
    value : float or None
        Its value; None: the request was refused.
    before : float or None
        The value told before, None: none.
    refusal : str
        Why it was refused.
    """

    name: str
    value: float | None
    before: float | None = None
    refusal: str = ''


class ParameterReader:
    """Reads parameters of one vehicle, and keeps their newest values.

    Parameters
    ----------
    names : iterable of str
        What to read. What the vehicle does not have is given up after some tries.
    send : callable
        Sends one MAVLink message; must not wait.
    at_once : int, optional
        So many requests are on their way at most.
    sender : tuple of int, optional
        Our MAVLink system and component: refusals that are addressed to others are not ours.

    Attributes
    ----------
    values : dict of str to float
        What is known so far. Values that change later are followed as far as the vehicle tells.
    kinds : dict of str to int
        Their MAV_PARAM_TYPE.
    missing : set of str
        What this vehicle does not have.
    """

    def __init__(self, names: Iterable[str], send: Callable[[Any], bool],
                 at_once: int = 5, sender: tuple[int, int] = (0, 0)) -> None:
        self.names = tuple(validate_name(name) for name in names)
        self._send = send
        self._at_once = at_once
        self._sender = sender
        self.values: dict[str, float] = {}
        self.kinds: dict[str, int] = {}
        self.missing: set[str] = set()
        #: What is still to be read, and how often it was asked for.
        self._left: dict[str, int] = {}
        self._asked_at: dict[str, float] = {}
        self.system, self.component = 0, 1

    @property
    def left(self) -> int:
        """How many names are neither answered nor given up."""
        return len(self._left)

    @property
    def done(self) -> bool:
        """Whether every name was answered or given up."""
        return not self._left

    def vehicle(self, system: int, component: int) -> None:
        """Read everything (again) from this vehicle."""
        self.system, self.component = system, component
        self.missing.clear()
        self._asked_at.clear()
        self.again(self.names)

    def again(self, names: Iterable[str]) -> None:
        """Read these again."""
        for name in names:
            self._left[name] = 0
            self._asked_at.pop(name, None)

    def present(self, name: str) -> bool:
        """Return whether this vehicle has told the parameter's value."""
        return name in self.values and name not in self._left and name not in self.missing

    def asked_at(self, name: str) -> float:
        """Return the steady time at which a parameter was asked for last, s."""
        return self._asked_at.get(name, -math.inf)

    def ask(self, name: str, now: float) -> None:
        """Ask for one parameter now."""
        self._asked_at[name] = now
        self._send(mavlink.MAVLink_param_request_read_message(
            self.system, self.component, name.encode(), -1))

    def told(self, name: str, value: float) -> float | None:
        """Take a value of a parameter that was read before; return the one before it."""
        before, self.values[name] = self.values.get(name), value
        return before

    def on_message(self, message: Any) -> Answer | None:
        """Take PARAM_VALUE and PARAM_ERROR; return what it says of one of `names`."""
        ident = message.get_msgId()
        if ident not in MESSAGES:
            return None
        name = _text(message.param_id)
        if name not in self.names:
            return None
        if ident == _PARAM_VALUE:
            value, before = float(message.param_value), self.values.get(name)
            self.values[name], self.kinds[name] = value, int(message.param_type)
            self._left.pop(name, None)
            self.missing.discard(name)
            return Answer(name, value, before)
        if not self._for_us(message):
            return None
        if self._left.pop(name, None) is not None:
            self.missing.add(name)
        error = int(message.error)
        return Answer(name, None, refusal=_ERROR_TEXTS.get(error, f'error {error}'))

    def _for_us(self, message: Any) -> bool:
        target = message.target_system, message.target_component
        return all(theirs in (0, ours) or ours == 0
                   for theirs, ours in zip(target, self._sender, strict=True))

    def poll(self, now: float, last_heard: float) -> None:
        """Ask for what is due at steady time `now`; the vehicle was heard at `last_heard`."""
        for name, tries in list(self._left.items())[:self._at_once]:
            asked_at = self.asked_at(name)
            if now - asked_at <= _TIMEOUT_S or asked_at > last_heard:
                continue
            if tries >= _TRIES:
                del self._left[name]
                self.missing.add(name)
                continue
            self._left[name] = tries + 1
            self.ask(name, now)


def _text(name: Any) -> str:
    """Return a parameter name as text; blanks count, they make a different name."""
    if isinstance(name, bytes):
        name = name.decode('ascii', 'replace')
    return str(name).split('\0', 1)[0]
