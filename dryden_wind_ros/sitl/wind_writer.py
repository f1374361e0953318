"""Writes SIM_WIND_* and sees that it arrives.

Two rules come from measurements on the simulator:

* A burst of parameter writes is dangerous while armed: 45 at once overflow SITL's save queue
  ("Internal Errors 0x100000"), and the vehicle then refuses to arm again. So at most three are
  written per `WRITE_SPACING_S` of *vehicle* time, always the newest wind; what a stall left behind
  is dropped.
* SITL skips some echoes although it applied the value, and sends none for a value that did not
  change. So nothing ever waits for an echo: a value that has stood still is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.sitl import wire
from dryden_wind_ros.sitl.events import Level, Notices
from dryden_wind_ros.sitl.parameter_reader import ParameterReader, validate_value

WRITES_AT_ONCE = 3
#: Vehicle time between two batches of writes, s. ArduPlane's loop takes 0.02 s.
WRITE_SPACING_S = 0.019
#: A vehicle whose time is not known gets a batch this often (wall time), s.
_TIMELESS_SPACING_S = 0.25
#: While putting back, time is not listened to; two batches are no burst, and what is not answered
#: is not written again.
_URGENT_SPACING_S = 0.05
_STEADY_S, _RECHECK_S = 0.5, 10.0
_URGENT_S = 0.1
#: At the end, when little else is listened to, an answer that takes so long is taken for lost.
_LOST_AFTER_S = 0.5
_GIVE_UP_AFTER, _STUBBORN_S = 6, 5.0
#: A value that is written all the time and stands still in the vehicle for so long (wall time) and
#: so many answers is not taken.
_STILL_S, _STILL_ANSWERS = 1.5, 3


class _Target:
    """One parameter: what it is to be, and what was done about it."""

    __slots__ = ('arrives_as', 'confirmed', 'misses', 'moved_at', 'name', 'refused', 'same',
                 'sent', 'sent_at', 'sent_before', 'wanted')

    def __init__(self, name: str) -> None:
        self.name = name
        self.wanted: float | None = None
        self.sent: float | None = None
        #: What was sent, as a vehicle tells it.
        self.arrives_as = math.nan
        self.sent_at = 0.0
        self.confirmed = False
        self.misses = 0
        self.refused = False
        #: When the vehicle last told of a value that followed what was sent, how often it has told
        #: the same one since, and what had been sent by then.
        self.moved_at = math.inf
        self.same = 0
        self.sent_before: float | None = None

    @property
    def due(self) -> bool:
        return self.wanted is not None and self.wanted != self.sent and not self.refused

    @property
    def settled(self) -> bool:
        return self.wanted is None or self.confirmed or self.refused


class WindWriter:
    """Brings parameters to the values they are to have, and keeps them there.

    Parameters
    ----------
    names : iterable of str
        What may be written.
    reader : ParameterReader
        Knows what the vehicle has, and asks for it.
    send : callable
        Sends MAVLink messages together, returns whether they went out; must not wait.
    notices : Notices
    on_sent : callable, optional
        Called with name, value and vehicle time (s or None) of everything that was written.
    before_sending : callable, optional
        Called with what the vehicle will have, by name, before any of it is sent: who is killed
        in between has it noted.

    Attributes
    ----------
    sent, echoed : int
        Values written and values heard back.
    maybe_due : bool
        Whether there may be something to write.
    urgent : bool
        Whether values are asked for soon after they were written, for the end.
    """

    def __init__(self, names: Iterable[str], reader: ParameterReader, send: Callable[..., bool],
                 notices: Notices,
                 on_sent: Callable[[str, float, float | None], None] | None = None,
                 before_sending: Callable[[Mapping[str, float]], None] | None = None) -> None:
        self._reader = reader
        self._send = send
        self._notices = notices
        self._on_sent = on_sent
        self._before_sending = before_sending
        self._targets = {name: _Target(name) for name in names}
        self._last_write_time: float | None = None
        self._last_write_at = -math.inf
        self._next_look = 0.0
        self.maybe_due = False
        self.urgent = False
        self.sent = self.echoed = 0

    @property
    def settled(self) -> bool:
        """Whether everything is confirmed, or refused."""
        return all(target.settled for target in self._targets.values())

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """What was written and stands still, but is not confirmed yet."""
        return tuple(target.name for target in list(self._targets.values())
                     if target.wanted is not None and not target.confirmed)

    @property
    def confirmed(self) -> int:
        """How many values are confirmed."""
        return sum(target.confirmed for target in self._targets.values())

    @property
    def in_force(self) -> dict[str, float]:
        """What was written last, by name."""
        return {target.name: target.sent for target in self._targets.values()
                if target.sent is not None}

    @property
    def refused(self) -> tuple[str, ...]:
        """What the vehicle refused."""
        return tuple(target.name for target in self._targets.values() if target.refused)

    def wanted(self, name: str) -> float | None:
        """Return what a parameter is to be, None for whatever it is."""
        return self._targets[name].wanted

    def forget(self) -> None:
        """Start again, as with a vehicle that was restarted."""
        self._targets = {name: _Target(name) for name in self._targets}
        self._last_write_time = None
        self._next_look = 0.0

    def again(self) -> None:
        """Write everything once more: somebody who wrote something else ends doing so."""
        for target in self._targets.values():
            target.sent, target.confirmed, target.misses = None, False, 0
        self.maybe_due = True
        self._next_look = 0.0

    def aim(self, values: Mapping[str, float], now: float) -> None:
        """Set what these are to be, as far as the vehicle has them."""
        for name, wanted in values.items():
            target = self._targets[name]
            if target.wanted != wanted and name not in self._reader.missing:
                target.wanted = wanted
                self.maybe_due = True
                target.confirmed = False
                target.misses = 0
                self._next_look = min(self._next_look, now + _STEADY_S)

    def put_back(self, values: Mapping[str, float]) -> None:
        """Set these again, whatever was done about them before, and nothing else."""
        self.urgent = self.maybe_due = True
        for name, target in self._targets.items():
            target.wanted = None if name in self._reader.missing else values.get(name)
            target.sent, target.confirmed, target.refused, target.misses = None, False, False, 0
        self._next_look = 0.0

    def may_write(self, now: float, vehicle_time: float | None) -> bool:
        """Return whether enough time has passed since the last batch."""
        last, since = self._last_write_time, now - self._last_write_at
        if self.urgent:
            return since > _URGENT_SPACING_S
        if vehicle_time is None:
            return since > _TIMELESS_SPACING_S
        return last is None or not last <= vehicle_time < last + WRITE_SPACING_S

    def write(self, now: float, vehicle_time: float | None) -> bool:
        """Write what is due, the longest unsent first; return whether anything was written."""
        if not self.maybe_due or not self.may_write(now, vehicle_time):
            return False
        due = [target for target in self._targets.values() if target.due]
        self.maybe_due = len(due) > WRITES_AT_ONCE
        if not due:
            return False
        if len(due) > WRITES_AT_ONCE:
            # The longest unsent first, so that none starves.
            due.sort(key=lambda target: target.sent_at)
        due = due[:WRITES_AT_ONCE]
        reader = self._reader
        if self._before_sending is not None:
            self._before_sending(self.in_force | {
                target.name: target.wanted for target in due if target.wanted is not None})
        if not self._send(*[wire.PARAM_SET.of(
                target.wanted, reader.system, reader.component, target.name,
                reader.kinds.get(target.name, mavlink.MAV_PARAM_TYPE_REAL32))
                for target in due]):
            self.maybe_due = True
            return False
        self._last_write_time, self._last_write_at = vehicle_time, now
        self._next_look = min(self._next_look, now + self._patience)
        for target in due:
            assert target.wanted is not None
            if target.moved_at == math.inf:
                target.moved_at = now
            target.sent = target.wanted
            target.arrives_as = validate_value(target.name, target.sent)
            target.sent_at = now
            target.confirmed = False
            self.sent += 1
            if self._on_sent is not None:
                self._on_sent(target.name, target.wanted, vehicle_time)
        return True

    @property
    def _patience(self) -> float:
        """How long a value must have stood still before it is asked for, s."""
        return _URGENT_S if self.urgent else _STEADY_S

    def look(self, now: float, last_heard: float) -> None:
        """Ask for what stands still and is not confirmed, and now and then for what is."""
        if now < self._next_look:
            return
        nearest = now + 1.0
        reader = self._reader
        for target in self._targets.values():
            name = target.name
            if target.sent is not None and not target.confirmed \
                    and now - max(target.moved_at, reader.asked_at(name)) > _STILL_S \
                    and last_heard > reader.asked_at(name):
                # It changes all the time, and nothing is heard of it: not one echo, or no effect.
                reader.ask(name, now)
            if target.sent is None or target.sent != target.wanted or target.refused:
                continue
            wait = _RECHECK_S if target.confirmed else (
                _STUBBORN_S if target.misses >= _GIVE_UP_AFTER and not self.urgent
                else self._patience)
            asked_at = reader.asked_at(name)
            due_at = max(target.sent_at, asked_at) + wait
            if now >= due_at and (last_heard > asked_at
                                  or (self.urgent and now - asked_at > _LOST_AFTER_S)):
                reader.ask(name, now)
                due_at = now + wait
            nearest = min(nearest, max(due_at, now + 0.05))
        self._next_look = nearest

    def heard(self, name: str, number: float, before: float | None, now: float) -> None:
        """Take a value that the vehicle tells, and the one it told before."""
        target = self._targets.get(name)
        if target is None or target.sent is None:
            return
        self.echoed += 1
        followed = number == target.arrives_as
        self._judge_following(target, number, followed or number != before, now)
        if followed:
            if target.sent == target.wanted:
                target.confirmed = True
                target.misses = 0
                self._notices.solved(name)
            return
        if target.sent != target.wanted or now - target.sent_at < self._patience:
            # On its way: an echo of a value before this one says nothing.
            return
        if target.confirmed:
            self._notices.tell(Level.WARN, f'somebody else set {name} to {number:g}; '
                               f'set back to {target.wanted:g}')
        target.confirmed = False
        target.misses += 1
        if target.misses >= _GIVE_UP_AFTER:
            self._notices.problem(name, Level.WARN, f'{name} stays at {number:g} though '
                                  f'{target.wanted:g} was set again and again')
            if now - target.sent_at < _STUBBORN_S:
                return
        target.sent = None
        self.maybe_due = True

    def _judge_following(self, target: _Target, number: float, moved: bool, now: float) -> None:
        """Notice a value that changes all the time here and stands still in the vehicle."""
        if moved:
            target.moved_at, target.same = now, 0
            self._notices.solved(f'{target.name} stands still')
        elif target.sent != target.sent_before and target.sent is not None:
            target.same += 1
        target.sent_before = target.sent
        if target.same >= _STILL_ANSWERS and now - target.moved_at > _STILL_S:
            self._notices.problem(f'{target.name} stands still', Level.WARN,
                                  f'{target.name} stays at {number:g} whatever is written to it: '
                                  'this vehicle does not take it')

    def refuse(self, name: str, why: str) -> None:
        """Take the vehicle's refusal of a value that was written."""
        target = self._targets.get(name)
        if target is None or target.sent is None or target.refused:
            return
        if self.urgent and self._reader.values.get(name) == target.arrives_as:
            # It refuses what it has.
            target.confirmed = True
            return
        target.refused = True
        self._notices.problem(name, Level.ERROR, f'vehicle {self._reader.system} refused '
                              f'{name} = {target.sent:g}: {why}; it is left alone')
