"""SITL's wind parameters: read, remember, set, confirm, and put back.

What this is for: twenty times per second of vehicle time a new wind goes into ``SIM_WIND_SPD``,
``SIM_WIND_DIR`` and ``SIM_WIND_DIR_Z``, and afterwards SITL is as it was found. Three rules come
from measurements on the simulator:

* A burst of parameter writes is dangerous while armed: 45 at once overflow SITL's save queue
  ("Internal Errors 0x100000"), and the vehicle then refuses to arm again. So at most three are
  written per `WRITE_SPACING_S` of *vehicle* time, always the newest wind; what a stall left behind
  is dropped.
* SITL skips some echoes although it applied the value, and sends none for a value that did not
  change. So nothing ever waits for an echo: a value that has stood still is asked for.
* What is written lands in eeprom.bin. So what was found is on disk before the first write, and
  after a reboot the values in the vehicle are ours, not the user's.

Nothing here waits, and nothing here knows ROS.
"""

from __future__ import annotations

import enum
import math
import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.sitl.events import Event, Level
from dryden_wind_ros.sitl.state_file import StateFile

SPEED, DIRECTION, DIRECTION_Z = 'SIM_WIND_SPD', 'SIM_WIND_DIR', 'SIM_WIND_DIR_Z'
TURBULENCE, TIME_CONSTANT, PROFILE = 'SIM_WIND_TURB', 'SIM_WIND_TC', 'SIM_WIND_T'
PROFILE_HEIGHT, PROFILE_COEFFICIENT = 'SIM_WIND_T_ALT', 'SIM_WIND_T_COEF'

#: What is written, in the order of the first set-up.
WRITTEN = (PROFILE, TIME_CONSTANT, TURBULENCE, SPEED, DIRECTION, DIRECTION_Z)
#: What is only read: the profile's shape, for whoever computes the wind flown.
ONLY_READ = (PROFILE_HEIGHT, PROFILE_COEFFICIENT)
#: Without these it is no simulator whose wind can be set.
REQUIRED = (SPEED, DIRECTION)

WRITES_AT_ONCE = 3
#: Vehicle time between two batches of writes, s. ArduPlane's loop takes 0.02 s.
WRITE_SPACING_S = 0.019
#: SIM_WIND_T for the same wind at every height.
UNIFORM = 1.0

_READ_TIMEOUT_S, _READ_TRIES = 0.3, 8
_STEADY_S, _RECHECK_S, _LOCK_RETRY_S = 0.5, 10.0, 2.0
_GIVE_UP_AFTER, _STUBBORN_S = 6, 5.0
#: A value that is written all the time and stands still in the vehicle for so long (wall time) and
#: so many answers is not taken.
_STILL_S, _STILL_ANSWERS = 1.5, 3
_STANDS_STILL = ' whatever is written to it: this vehicle does not take it'
#: While putting back, a vehicle whose time stands still gets a batch this often (wall time), s.
_PAUSED_SPACING_S = 0.25

_PARAM_VALUE = mavlink.MAVLINK_MSG_ID_PARAM_VALUE
#: Not in every pymavlink.
_PARAM_ERROR = int(getattr(mavlink, 'MAVLINK_MSG_ID_PARAM_ERROR', -1))
_ERROR_TEXTS = {
    1: 'it does not exist', 2: 'the value is out of range', 3: 'permission denied',
    4: 'unknown component', 5: 'it is read-only'}

#: Messages that `WindParameters.on_message` wants.
MESSAGES = (_PARAM_VALUE,) + ((_PARAM_ERROR,) if _PARAM_ERROR >= 0 else ())


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
        raise ValueError(f'{name} = {value!r} is not a number')
    try:
        narrow = float(struct.unpack('<f', struct.pack('<f', value))[0])
    except (OverflowError, struct.error):
        narrow = math.inf
    if not math.isfinite(narrow):
        raise ValueError(f'{name} = {value!r} is not a finite 32-bit number')
    return narrow


@dataclass(frozen=True)
class Wind:
    """The wind that SITL is to be given.

    Attributes
    ----------
    speed : float
        Length of the wind vector, m/s, 0..200.
    direction : float
        Where it comes from, deg true; any finite number, taken modulo 360.
    direction_z : float
        deg, -90..90, positive: the air moves up.
    turbulence : float
        SITL's own turbulence, m/s, 0..200.
    profile : str
        ``'uniform'``: the same wind at every height; ``'sitl'``: as SITL was found.

    Raises
    ------
    ValueError
        If a field is not allowed; the text names it, the value and what is allowed.
    """

    speed: float
    direction: float
    direction_z: float = 0.0
    turbulence: float = 0.0
    profile: str = 'uniform'

    def __post_init__(self) -> None:
        for name, low, high in (('speed', 0, 200), ('direction', -math.inf, math.inf),
                                ('direction_z', -90, 90), ('turbulence', 0, 200)):
            value = getattr(self, name)
            if not math.isfinite(value) or not low <= value <= high:
                raise ValueError(f'sim_wind {name} = {value!r}: '
                                 + (f'{low}..{high} is allowed' if math.isfinite(low)
                                    else 'a finite number is needed'))
        if self.profile not in ('uniform', 'sitl'):
            raise ValueError(f"sim_wind profile = {self.profile!r}: 'uniform' or 'sitl' is allowed")

    def values(self) -> tuple[tuple[str, float], ...]:
        """Return SIM_WIND_* names and values, to 0.001 m/s and 0.01 deg."""
        return ((SPEED, round(self.speed, 3)),
                (DIRECTION, round(self.direction % 360.0, 2) % 360.0),
                (DIRECTION_Z, round(self.direction_z, 2)),
                (TURBULENCE, round(self.turbulence, 3)))


class Phase(enum.Enum):
    """How far the wind parameters have come."""

    NO_VEHICLE = 'no vehicle'
    READING = 'reading'
    READY = 'read, nothing written yet'
    NOT_A_SIMULATOR = 'not a simulator'
    BUSY = 'another bridge drives this vehicle'
    WRITING = 'writing'
    RESTORING = 'putting back'
    RESTORED = 'put back'


@dataclass(frozen=True)
class ParametersStatus:
    """A snapshot of the wind parameters.

    Attributes
    ----------
    phase : Phase
    found : tuple of (str, float)
        The values to put back.
    found_in_file : bool
        Whether they come from the state file of a bridge that did not put them back.
    in_force : tuple of (str, float)
        The newest value that the vehicle told of each.
    missing : tuple of str
        What this version of SITL does not have.
    unconfirmed : tuple of str
        What was written and stands still, but is not confirmed yet.
    sent, echoed : int
        Values written and values heard back.
    winds, winds_dropped : int
        Winds received, and those that a newer one overtook before they could be sent.
    problems : tuple of str
        What is wrong now and lasts.
    """

    phase: Phase
    found: tuple[tuple[str, float], ...] = ()
    found_in_file: bool = False
    in_force: tuple[tuple[str, float], ...] = ()
    missing: tuple[str, ...] = ()
    unconfirmed: tuple[str, ...] = ()
    sent: int = 0
    echoed: int = 0
    winds: int = 0
    winds_dropped: int = 0
    problems: tuple[str, ...] = ()


class _Value:
    """One parameter: what the vehicle has, what it is to have, and what was done about it."""

    __slots__ = ('asked_at', 'asks', 'changed_at', 'confirmed', 'kind', 'misses', 'moved_at',
                 'name', 'present', 'refused', 'same', 'sent', 'sent_at', 'sent_before', 'value',
                 'wanted')

    def __init__(self, name: str) -> None:
        self.name = validate_name(name)
        self.kind = int(mavlink.MAV_PARAM_TYPE_REAL32)
        self.value: float | None = None
        self.forget()

    def forget(self) -> None:
        """Start again, as after a restart of the vehicle."""
        self.present: bool | None = None
        self.wanted: float | None = None
        self.sent: float | None = None
        self.sent_at = 0.0
        self.changed_at = 0.0
        self.asked_at = -math.inf
        self.asks = 0
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
        return (self.wanted is not None and self.wanted != self.sent and not self.refused
                and self.present is not False)


class WindParameters:
    """Keeps one vehicle's SIM_WIND_* parameters.

    Parameters
    ----------
    send : callable
        Sends MAVLink messages together, returns whether they went out; must not wait.
    on_event : callable
        Called with an `Event` for what a user should read.
    time_constant : float
        SIM_WIND_TC while we write: 0.1 is SITL's floor, 0.016 s in truth (TC / 2 pi).
    on_sent : callable, optional
        Called with name, value and vehicle time (s or None) of everything that was written.
    """

    def __init__(self, send: Callable[..., bool], on_event: Callable[[Event], None],
                 time_constant: float = 0.1,
                 on_sent: Callable[[str, float, float | None], None] | None = None) -> None:
        self._send = send
        self._on_event = on_event
        self._on_sent = on_sent
        self._time_constant = validate_value(TIME_CONSTANT, time_constant)
        self._values = {name: _Value(name) for name in (*WRITTEN, *ONLY_READ)}
        self._state: StateFile | None = None
        self._where = ''
        self._system = 0
        self._component = 1
        self.phase = Phase.NO_VEHICLE
        self._found: dict[str, float] = {}
        self._found_in_file = False
        self._touched = False
        self._wind: Wind | None = None
        self._fresh_wind = False
        self._next_lock = 0.0
        self._unsaved = False
        self._last_write_time: float | None = None
        self._last_write_at = -math.inf
        self._next_look = 0.0
        self._restoring = False
        self._sent = self._echoed = self._winds = self._dropped = 0
        self._problems: dict[str, str] = {}

    # -- what happens to us

    def vehicle(self, system: int, component: int, state: StateFile, where: str) -> None:
        """Start with a vehicle, or start again with one that came back or was restarted.

        The values found before are kept if it is the same vehicle: after a restart it has from
        its eeprom what was written last, and that is ours.
        """
        if self._state is None or self._state.path != state.path:
            if self._state is not None and self._state.locked:
                self._tell(Level.WARN, f'{self._where}: another vehicle answers now; what was '
                           f'found in the one before is kept in {self._state.path}')
                self._state.release()
            self._state = state
            self._found = {}
            self._found_in_file = False
            self._touched = False
        self._system, self._component, self._where = system, component, where
        for value in self._values.values():
            value.forget()
        self._problems.clear()
        self._last_write_time = None
        self._next_look = 0.0
        self.phase = Phase.READING

    def lost(self) -> None:
        """Stop for now: the connection is gone."""
        self.phase = Phase.NO_VEHICLE

    def set_wind(self, wind: Wind) -> None:
        """Take the newest wind; it goes out at the next `poll` that may write."""
        self._winds += 1
        if self._fresh_wind:
            self._dropped += 1
        self._wind = wind
        self._fresh_wind = True

    def restore(self) -> None:
        """Begin to put back what was found. `poll` goes on with it; `restored` says when done."""
        self._restoring = True
        self._fresh_wind = False
        if self.phase is Phase.NO_VEHICLE or self._state is None:
            if not self._must_restore:
                self.phase = Phase.RESTORED
                self._end()
            return
        try:
            if not self._state.locked and not self._touched and not self._state.acquire():
                # What a killed bridge left is put back even if no wind came in the meantime.
                self._load_leftover()
        except OSError:
            pass
        if not self._must_restore:
            self.phase = Phase.RESTORED
            self._end()
            return
        self.phase = Phase.RESTORING
        for name, found in self._found.items():
            value = self._values[name]
            value.wanted, value.sent, value.confirmed = found, None, False
            value.refused, value.misses = False, 0
            if value.present is False:
                value.wanted = None
        self._next_look = 0.0

    @property
    def restoring(self) -> bool:
        """Whether `restore` was called."""
        return self._restoring

    @property
    def writing(self) -> bool:
        """Whether the values in the vehicle are ours now."""
        return self.phase in (Phase.WRITING, Phase.RESTORING)

    @property
    def _must_restore(self) -> bool:
        return bool(self._found) and (self._touched or self._found_in_file)

    @property
    def restored(self) -> bool:
        """Whether nothing is left to put back."""
        return self.phase is Phase.RESTORED

    def abandon(self) -> None:
        """End without waiting longer; what is not confirmed stays in the state file."""
        if self.phase is Phase.RESTORED or self._state is None:
            return
        if self._must_restore:
            left = [f'{value.name} = {value.wanted:g}' for value in self._values.values()
                    if self.phase is Phase.RESTORING and value.wanted is not None
                    and not value.confirmed]
            self._tell(Level.ERROR, f'{self._where}: could not put everything back'
                       + (f' (not confirmed: {", ".join(left)})' if left else
                          ' (no vehicle there)')
                       + f'; the values found are kept in {self._state.path}, and the next bridge '
                       'puts them back')
        self._state.release()

    def on_message(self, message: Any, now: float) -> None:
        """Take PARAM_VALUE and PARAM_ERROR; others are ignored."""
        if message.get_msgId() == _PARAM_VALUE:
            value = self._values.get(_text(message.param_id))
            if value is not None:
                self._heard(value, float(message.param_value), int(message.param_type), now)
        elif message.get_msgId() == _PARAM_ERROR:
            value = self._values.get(_text(message.param_id))
            if value is not None:
                self._refused(value, int(message.error))

    def poll(self, now: float, vehicle_time: float | None, last_heard: float,
             may_write: bool = True) -> None:
        """Do what is due.

        Call it after everything that has arrived was read.

        Parameters
        ----------
        now : float
            Steady wall time, s.
        vehicle_time : float or None
            Newest time of the vehicle, s.
        last_heard : float
            Steady time at which the vehicle was heard last: a vehicle that stands still is not
            asked again and again, and its silence proves nothing.
        may_write : bool
            False while it is not sure whose parameters these are.
        """
        if self.phase is Phase.READING:
            self._read(now, last_heard)
        if self.phase in (Phase.READY, Phase.BUSY):
            self._begin(now, may_write)
        elif self.phase is Phase.NOT_A_SIMULATOR:
            value = self._values[SPEED]
            if now - value.asked_at > _RECHECK_S and last_heard > value.asked_at:
                self._ask(value, now)
        if self.phase is Phase.WRITING:
            if self._fresh_wind and self._may_write_now(now, vehicle_time) and may_write:
                self._fresh_wind = False
                self._aim(now)
            self._write(now, vehicle_time, may_write)
            self._look(now, last_heard)
        elif self.phase is Phase.RESTORING:
            self._write(now, vehicle_time, may_write)
            self._look(now, last_heard)
            if all(value.confirmed or value.wanted is None or value.refused
                   for value in self._values.values()):
                self._restored()

    # -- reading

    def _read(self, now: float, last_heard: float) -> None:
        unknown = 0
        for value in self._values.values():
            if value.present is not None:
                continue
            if value.asks >= _READ_TRIES:
                if now - value.asked_at > _READ_TIMEOUT_S and last_heard > value.asked_at:
                    value.present = False
                    continue
            elif now - value.asked_at > _READ_TIMEOUT_S and (
                    value.asks == 0 or last_heard > value.asked_at):
                self._ask(value, now)
            unknown += 1
        absent = [name for name in REQUIRED if self._values[name].present is False]
        if absent:
            self._not_a_simulator(absent[0])
        elif not unknown:
            self._all_read(now)

    def _ask(self, value: _Value, now: float) -> None:
        value.asked_at = now
        value.asks += 1
        self._send(mavlink.MAVLink_param_request_read_message(
            self._system, self._component, value.name.encode(), -1))

    def _not_a_simulator(self, name: str) -> None:
        self.phase = Phase.NOT_A_SIMULATOR
        text = (f'{self._where}: vehicle {self._system} has no {name}: that one is not a '
                'simulator. Nothing is written to it')
        self._problems['simulator'] = text
        self._tell(Level.ERROR, text)

    def _all_read(self, now: float) -> None:
        missing = [name for name in WRITTEN if self._values[name].present is False]
        if missing and 'missing' not in self._problems:
            text = (f'{self._where}: this SITL has no {", ".join(missing)}; going on without'
                    + (': gusts pass through its fixed filter' if TIME_CONSTANT in missing else '')
                    + (': its wind may fade near the ground' if PROFILE in missing else ''))
            self._problems['missing'] = text
            self._tell(Level.WARN, text)
        if self._restoring:
            self.restore()
        elif self._state is not None and self._state.locked:
            if any(self._values[name].present and name not in self._found for name in WRITTEN):
                self._remember()
            self.phase = Phase.WRITING
            self._aim(now)
        else:
            self._tell(Level.INFO, f'{self._where}: read '
                       + ', '.join(f'{value.name} {value.value:g}'
                                   for value in self._values.values() if value.value is not None
                                   and value.present))
            self.phase = Phase.READY

    def _begin(self, now: float, may_write: bool) -> None:
        """Make the vehicle ours, once there is a wind to write."""
        if self._wind is None or not may_write or now < self._next_lock or self._state is None:
            return
        self._next_lock = now + _LOCK_RETRY_S
        try:
            holder = self._state.acquire()
        except OSError as error:
            self._problem('state', f'{self._where}: no file can be kept in '
                          f'{self._state.path.parent} ({error.strerror}): nothing is written to '
                          'SITL, because a bridge that is killed could not be tidied up after. '
                          "Parameter 'state_dir' names another place", Level.ERROR)
            return
        if holder:
            self.phase = Phase.BUSY
            self._problem('busy', f'{self._where}: another bridge ({holder}) drives the wind of '
                          f'vehicle {self._system}; this one writes nothing until that one ends',
                          Level.ERROR)
            return
        if self._problems.pop('busy', None):
            self._tell(Level.INFO, f'{self._where}: the other bridge has ended; taking over')
        self._load_leftover()
        # Read again: another bridge may have put its own values back since.
        for value in self._values.values():
            if value.present:
                value.present = None
                value.asks = 0
                value.asked_at = -math.inf
        self.phase = Phase.READING
        self._next_look = 0.0

    def _load_leftover(self) -> None:
        assert self._state is not None
        leftover = self._state.load()
        if leftover.warning:
            self._tell(Level.WARN, leftover.warning + '. The values in the vehicle now count as '
                       'found')
        found = {name: value for name, value in leftover.found.items() if name in WRITTEN}
        if found:
            self._found = found
            self._found_in_file = True
            self._tell(Level.WARN, f'{self._where}: a bridge ended without putting its wind back; '
                       f'as found count the values kept in {self._state.path}: '
                       + ', '.join(f'{name} {value:g}' for name, value in found.items()))

    def _remember(self) -> None:
        """Keep what was found, on disk before anything is written."""
        assert self._state is not None
        # What is known already is older than anything of ours: from a file that names less than
        # this vehicle has, or from before it was restarted as another version.
        self._found = {
            name: value for name in WRITTEN
            if self._values[name].present and (value := self._values[name].value) is not None
            and math.isfinite(value)} | self._found
        self._save()
        self._tell(Level.INFO, f'{self._where}: found '
                   + ', '.join(f'{name} {value:g}' for name, value in self._found.items())
                   + '; put back at the end')

    def _save(self) -> None:
        assert self._state is not None
        try:
            self._state.save(self._found)
            self._unsaved = False
            self._problems.pop('state', None)
        except OSError as error:
            # A full disk is no reason to stop the gusts; it may have room again later.
            self._unsaved = True
            self._problem('state', f'{self._where}: {self._state.path} cannot be written '
                          f'({error.strerror}): a bridge that is killed now leaves its wind in '
                          'SITL', Level.WARN)

    # -- writing

    def _aim(self, now: float) -> None:
        """Set what each value is to be, from the newest wind."""
        wind = self._wind
        if wind is None:
            return
        profile = UNIFORM if wind.profile == 'uniform' else self._found.get(PROFILE)
        for name, wanted in (*wind.values(), (PROFILE, profile),
                             (TIME_CONSTANT, self._time_constant)):
            value = self._values[name]
            if wanted is not None and value.wanted != wanted and value.present is not False:
                value.wanted = wanted
                value.changed_at = now
                value.confirmed = False
                value.misses = 0
                self._next_look = min(self._next_look, now + _STEADY_S)

    def _may_write_now(self, now: float, vehicle_time: float | None) -> bool:
        last = self._last_write_time
        if vehicle_time is None:
            return now - self._last_write_at > _PAUSED_SPACING_S
        if last is None or not last <= vehicle_time < last + WRITE_SPACING_S:
            return True
        return self._restoring and now - self._last_write_at > _PAUSED_SPACING_S

    def _write(self, now: float, vehicle_time: float | None, may_write: bool) -> None:
        due = [value for value in self._values.values() if value.due]
        if not due or not may_write or not self._may_write_now(now, vehicle_time):
            return
        if len(due) > WRITES_AT_ONCE:
            # The longest unsent first, so that none starves.
            due.sort(key=lambda value: value.sent_at)
        due = due[:WRITES_AT_ONCE]
        if not self._send(*[mavlink.MAVLink_param_set_message(
                self._system, self._component, value.name.encode(), value.wanted, value.kind)
                for value in due]):
            return
        self._touched = True
        for value in due:
            assert value.wanted is not None
            if value.moved_at == math.inf:
                value.moved_at = now
            value.sent = value.wanted
            value.sent_at = now
            value.confirmed = False
            self._sent += 1
            self._last_write_time, self._last_write_at = vehicle_time, now
            self._next_look = min(self._next_look, now + self._patience)
            if self._on_sent is not None:
                self._on_sent(value.name, value.wanted, vehicle_time)

    @property
    def _patience(self) -> float:
        """How long a value must have stood still before it is asked for, s."""
        return 0.1 if self._restoring else _STEADY_S

    def _look(self, now: float, last_heard: float) -> None:
        """Ask for what stands still and is not confirmed, and now and then for what is."""
        if now < self._next_look:
            return
        nearest = now + 1.0
        if self._unsaved and not self._restoring and now >= self._next_lock:
            self._next_lock = now + _LOCK_RETRY_S
            self._save()
        for value in self._values.values():
            if value.sent is not None and not value.confirmed \
                    and now - max(value.moved_at, value.asked_at) > _STILL_S \
                    and last_heard > value.asked_at:
                # It changes all the time, and nothing is heard of it: not one echo, or no effect.
                self._ask(value, now)
            if value.sent is None or value.sent != value.wanted or value.refused:
                continue
            wait = _RECHECK_S if value.confirmed else (
                _STUBBORN_S if value.misses >= _GIVE_UP_AFTER and not self._restoring
                else self._patience)
            due_at = max(value.sent_at, value.asked_at) + wait
            if now >= due_at and last_heard > value.asked_at:
                self._ask(value, now)
                due_at = now + wait
            nearest = min(nearest, max(due_at, now + 0.05))
        self._next_look = nearest

    def _heard(self, value: _Value, number: float, kind: int, now: float) -> None:
        first = value.present is not True
        value.present = True
        value.kind = kind
        before, value.value = value.value, number
        if first and self.phase is Phase.NOT_A_SIMULATOR and value.name == SPEED:
            self._tell(Level.INFO, f'{self._where}: {value.name} answers now')
            self._problems.pop('simulator', None)
            for other in self._values.values():
                other.forget()
            self.phase = Phase.READING
            return
        if value.sent is None or self.phase not in (Phase.WRITING, Phase.RESTORING):
            return
        self._echoed += 1
        followed = number == validate_value(value.name, value.sent)
        self._judge_following(value, followed or number != before, now)
        if followed:
            if value.sent == value.wanted:
                value.confirmed = True
                value.misses = 0
                self._problems.pop(value.name, None)
            return
        if value.sent != value.wanted or now - value.sent_at < self._patience:
            # On its way: an echo of a value before this one says nothing.
            return
        if value.confirmed:
            self._tell(Level.WARN, f'{self._where}: somebody else set {value.name} to {number:g}; '
                       f'set back to {value.wanted:g}')
        value.confirmed = False
        value.misses += 1
        if value.misses >= _GIVE_UP_AFTER:
            self._problem(value.name, f'{self._where}: {value.name} stays at {number:g} though '
                          f'{value.wanted:g} was set again and again', Level.WARN)
            if now - value.sent_at < _STUBBORN_S:
                return
        value.sent = None

    def _judge_following(self, value: _Value, moved: bool, now: float) -> None:
        """Notice a value that changes all the time here and stands still in the vehicle."""
        if moved:
            value.moved_at, value.same = now, 0
            if self._problems.get(value.name, '').endswith(_STANDS_STILL):
                del self._problems[value.name]
        elif value.sent != value.sent_before and value.sent is not None:
            value.same += 1
        value.sent_before = value.sent
        if value.same >= _STILL_ANSWERS and now - value.moved_at > _STILL_S:
            self._problem(value.name, f'{self._where}: {value.name} stays at {value.value:g}'
                          + _STANDS_STILL, Level.WARN)

    def _refused(self, value: _Value, error: int) -> None:
        why = _ERROR_TEXTS.get(error, f'error {error}')
        if self.phase is Phase.READING and value.present is None:
            value.present = False
        elif value.sent is not None and not value.refused:
            value.refused = True
            self._problem(value.name, f'{self._where}: vehicle {self._system} refused '
                          f'{value.name} = {value.sent:g}: {why}; it is left alone', Level.ERROR)

    # -- the end

    def _restored(self) -> None:
        refused = [value.name for value in self._values.values() if value.refused]
        if refused:
            self._tell(Level.ERROR, f'{self._where}: put back all but {", ".join(refused)}, which '
                       'the vehicle refused')
        else:
            self._tell(Level.INFO, f'{self._where}: put back and confirmed: '
                       + ', '.join(f'{name} {value:g}' for name, value in self._found.items()
                                   if self._values[name].present is not False))
        self.phase = Phase.RESTORED
        self._end()

    def _end(self) -> None:
        if self._state is not None and self._state.locked:
            try:
                self._state.remove()
            except OSError as error:
                self._tell(Level.WARN, f'{self._state.path} cannot be removed ({error.strerror})')
            self._state.release()

    # -- telling

    def status(self) -> ParametersStatus:
        """Return a snapshot; may be called from any thread."""
        values = list(self._values.values())
        return ParametersStatus(
            phase=self.phase, found=tuple(self._found.items()), found_in_file=self._found_in_file,
            in_force=tuple((value.name, number) for value in values
                           if (number := value.value) is not None and value.present),
            missing=tuple(value.name for value in values if value.present is False),
            unconfirmed=tuple(value.name for value in values
                              if value.wanted is not None and not value.confirmed),
            sent=self._sent, echoed=self._echoed, winds=self._winds, winds_dropped=self._dropped,
            problems=(*self._problems.values(),))

    def _problem(self, key: str, text: str, level: Level) -> None:
        if self._problems.get(key) != text:
            self._problems[key] = text
            self._tell(level, text)

    def _tell(self, level: Level, text: str) -> None:
        self._on_event(Event(level, text))


def _text(name: Any) -> str:
    """Return a parameter name as text; blanks count, they make a different name."""
    if isinstance(name, bytes):
        name = name.decode('ascii', 'replace')
    return str(name).split('\0', 1)[0]


class ParameterReader:
    """Reads parameters that are only looked at, a few at a time, and keeps their newest values.

    Parameters
    ----------
    names : iterable of str
        What to read. What the vehicle does not have is given up after some tries.
    send : callable
        Sends one MAVLink message; must not wait.

    Attributes
    ----------
    values : dict of str to float
        What is known so far. Values that change later are followed as far as the vehicle tells.
    """

    _AT_ONCE = 5

    def __init__(self, names: Iterable[str], send: Callable[[Any], bool]) -> None:
        self._names = tuple(validate_name(name) for name in names)
        self._send = send
        self.values: dict[str, float] = {}
        self._left: dict[str, _Value] = {}
        self._system = self._component = 0

    @property
    def done(self) -> bool:
        """Whether every name was answered or given up."""
        return not self._left

    def vehicle(self, system: int, component: int) -> None:
        """Read everything (again) from this vehicle."""
        self._system, self._component = system, component
        self._left = {name: _Value(name) for name in self._names}

    def on_message(self, message: Any) -> None:
        """Take PARAM_VALUE and PARAM_ERROR; others are ignored."""
        if message.get_msgId() == _PARAM_VALUE:
            name = _text(message.param_id)
            if name in self._names:
                self.values[name] = float(message.param_value)
                self._left.pop(name, None)
        elif message.get_msgId() == _PARAM_ERROR:
            self._left.pop(_text(message.param_id), None)

    def poll(self, now: float, last_heard: float) -> None:
        """Ask for what is due."""
        for value in list(self._left.values())[:self._AT_ONCE]:
            if now - value.asked_at < _READ_TIMEOUT_S or value.asked_at > last_heard:
                continue
            if value.asks >= _READ_TRIES:
                del self._left[value.name]
                continue
            value.asked_at = now
            value.asks += 1
            self._send(mavlink.MAVLink_param_request_read_message(
                self._system, self._component, value.name.encode(), -1))
