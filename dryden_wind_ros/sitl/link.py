"""The link to one ArduPilot vehicle over MAVLink.

A `Link` connects and goes on connecting, picks its vehicle, says who we are, asks for the messages
that are needed and checks the answers, notices that SITL was restarted, and hands decoded messages
on. It does not wait for anything: `Link.poll` takes what has arrived, does what is due and returns,
so that one `LinkLoop` thread can serve a whole fleet. A link belongs to the thread that polls it;
only `Link.status` may be called from elsewhere.

Time is the vehicle's own, since its boot, as its messages tell it. Time-outs are wall time.
"""

from __future__ import annotations

import contextlib
import enum
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.sitl.connection import ConnectionTarget, LinkLost, Port, open_port
from dryden_wind_ros.sitl.framing import FrameParser

#: What everybody needs: the clock, every 25 ms. At 50 ms ArduPlane's times fall two by two into
#: the same 0.05 s tick; at 25 ms every tick is reached, and 20 ms is refused there.
SYSTEM_TIME_INTERVAL_US = 25_000

_SYSTEM_TIME = mavlink.MAVLINK_MSG_ID_SYSTEM_TIME
_HEARTBEAT = mavlink.MAVLINK_MSG_ID_HEARTBEAT
_COMMAND_ACK = mavlink.MAVLINK_MSG_ID_COMMAND_ACK
_SET_INTERVAL = mavlink.MAV_CMD_SET_MESSAGE_INTERVAL
#: Messages that carry time_boot_ms.
_TIMED = frozenset({
    _SYSTEM_TIME, mavlink.MAVLINK_MSG_ID_ATTITUDE, mavlink.MAVLINK_MSG_ID_LOCAL_POSITION_NED,
    mavlink.MAVLINK_MSG_ID_GLOBAL_POSITION_INT})

_FIRST_PAUSE_S, _PAUSE_FACTOR, _LONGEST_PAUSE_S = 0.1, 1.6, 5.0
_QUIET_S = 3.0
_ACK_TIMEOUT_S, _ACK_TRIES, _ACK_LATER_S = 1.0, 5, 10.0
#: Slower rates to try when one is denied.
_SLOWER_SYSTEM_TIME_US = (40_000, 50_000, 100_000, 200_000)
#: Time this far back is a packet overtaken on the way; further back may be a restart.
_REORDER_MS = 300
_BACK_IN_A_ROW = 3
#: A step forward by this much is no step of one vehicle's clock.
_JUMP_MS = 1000
#: A step forward by more than twice the last one is believed when a second message has it too; at
#: least _REORDER_MS and at most this much is believed at once.
_AHEAD_MS = 10_000
#: So many frames tell whether two vehicles use one system id.
_ENOUGH_FRAMES = 60
_ONE_VEHICLE_AGAIN_S = 5.0


class Level(enum.IntEnum):
    """How bad an event is."""

    INFO = 0
    WARN = 1
    ERROR = 2


@dataclass(frozen=True)
class Event:
    """Something worth telling, once, in the user's terms."""

    level: Level
    text: str


class LinkState(enum.Enum):
    """How far the link has come."""

    CLOSED = 'closed'
    CONNECTING = 'connecting'
    NOTHING_HEARD = 'connected, nothing heard'
    NO_VEHICLE = 'connected, no vehicle yet'
    UP = 'up'
    SILENT = 'vehicle silent'


@dataclass(frozen=True)
class LinkStatus:
    """A snapshot of the link.

    Attributes
    ----------
    state : LinkState
    connection : str
    system_id, vehicle_type : int
        The vehicle (0 and -1 while there is none); ``vehicle_type`` is a MAV_TYPE.
    armed : bool
    time : float or None
        Newest vehicle time, s since its boot.
    speedup : float
        Vehicle seconds per wall second, lately; NaN while unknown.
    clock_rate : float
        SYSTEM_TIME messages per vehicle second, lately; NaN while unknown.
    frames, bad_frames : int
        Well-formed frames heard from anybody, and garbage passed over.
    connections, restarts : int
        How often the link was made, and how often the vehicle's time began anew.
    intervals : tuple of (str, int)
        Messages and their interval in force, us.
    problems : tuple of str
        What is wrong now and lasts.
    """

    state: LinkState
    connection: str
    system_id: int = 0
    vehicle_type: int = -1
    armed: bool = False
    time: float | None = None
    speedup: float = float('nan')
    clock_rate: float = float('nan')
    frames: int = 0
    bad_frames: int = 0
    connections: int = 0
    restarts: int = 0
    intervals: tuple[tuple[str, int], ...] = ()
    problems: tuple[str, ...] = ()


class Pollable(Protocol):
    """What a `LinkLoop` serves."""

    def fileno(self) -> int:
        """File descriptor to wait on; -1: none now."""

    def wants_write(self) -> bool:
        """Whether to wait for it to become writable (a connection being made)."""

    def poll(self, now: float) -> None:
        """Do what there is to do at steady time `now`, without waiting."""

    def close(self) -> None:
        """Let go of the file descriptor."""


def message_name(ident: int) -> str:
    """Return the name of a MAVLink message id."""
    kind = mavlink.mavlink_map.get(ident)
    return str(kind.msgname) if kind is not None else f'message {ident}'


def validate_source_system(source_system: int) -> int:
    """Return `source_system` if we may use it as our own MAVLink system id.

    Raises
    ------
    ValueError
        If it is not within 1..254. 255 is the ground station's: our heartbeat would hide from the
        vehicle that its ground station is gone.
    """
    if source_system == 255:
        raise ValueError(
            "source_system 255 is the ground station's: a heartbeat from it would mask the "
            "vehicle's GCS failsafe; allowed are 1..254")
    if isinstance(source_system, bool) or not isinstance(source_system, int) \
            or not 1 <= source_system <= 254:
        raise ValueError(f'source_system {source_system!r} is not a whole number from 1 to 254')
    return source_system


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


class Link:
    """A link to one vehicle.

    Parameters
    ----------
    target : ConnectionTarget
        From `parse_connection`.
    on_message : callable
        Called with every wanted message of the vehicle (pymavlink's decoded objects).
    on_event : callable
        Called with an `Event` for what a user should read.
    on_vehicle : callable
        Called with True when a vehicle was found or found again on a new connection, or restarted
        (whatever was set in it may be gone), and with False when the connection was lost.
    system_id : int
        The vehicle's MAVLink system id, 0: the first autopilot heard.
    source_system : int
        Our own system id.
    intervals : mapping of int to int
        Message ids to ask for and their intervals in us. SYSTEM_TIME is always asked for.
    wanted : iterable of int
        Further message ids to hand on.
    """

    def __init__(self, target: ConnectionTarget, *,
                 on_message: Callable[[Any], None],
                 on_event: Callable[[Event], None],
                 on_vehicle: Callable[[bool], None] = lambda up: None,
                 system_id: int = 0, source_system: int = 245,
                 intervals: Mapping[int, int] | None = None,
                 wanted: Iterable[int] = ()) -> None:
        if not 0 <= system_id <= 255:
            raise ValueError(f'system_id {system_id!r} is not within 0..255 (0: first heard)')
        self.target = target
        self._wanted_system = system_id
        self._on_message = on_message
        self._on_event = on_event
        self._on_vehicle = on_vehicle
        self._wishes = {_SYSTEM_TIME: _Wish(SYSTEM_TIME_INTERVAL_US)}
        for ident, interval in (intervals or {}).items():
            self._wishes[ident] = _Wish(interval)
        self._parser = FrameParser({*self._wishes, *wanted, _COMMAND_ACK})
        self._codec = mavlink.MAVLink(
            None, validate_source_system(source_system),
            mavlink.MAV_COMP_ID_ONBOARD_COMPUTER)
        self._asking: int | None = None

        self._port: Port | None = None
        self._connected = False
        self._pause = _FIRST_PAUSE_S
        self._next_attempt = 0.0
        self._connected_at = 0.0
        self._last_heard = 0.0
        self._next_heartbeat = 0.0
        self._next_check = 0.0
        self._closed = False
        #: Where the vehicle's datagrams come from; None on a stream.
        self._sender: Any = None
        self._heard: dict[int, str] = {}
        self._last_told = ''
        self._problems: dict[str, str] = {}

        #: System id of the vehicle, 0 while there is none.
        self.system = 0
        self.component = 1
        self._type = -1
        self._armed = False
        self._time_ms: int | None = None
        self._back: deque[int] = deque(maxlen=_BACK_IN_A_ROW)
        self._ahead: int | None = None
        self._last_clock_ms: int | None = None
        self._clock_step_ms = 0
        #: Whether the newest time is from before this connection.
        self._stale_time = False
        self._suspected_at = float('-inf')
        self._interleaved: deque[float] = deque(maxlen=5)
        self._two_heard_at = float('-inf')
        self._old_time_ms: int | None = None
        self._restarted_at = 0.0
        self._connections = 0
        self._restarts = 0
        self._clock_heard: deque[tuple[float, int]] = deque(maxlen=64)
        self._state = LinkState.CONNECTING
        self._now = 0.0

    # -- what a loop needs

    @property
    def time(self) -> float | None:
        """Newest vehicle time, s since its boot; None while unknown."""
        return None if self._time_ms is None else self._time_ms / 1000

    @property
    def last_heard(self) -> float:
        """Steady time at which the vehicle was heard last."""
        return self._last_heard

    @property
    def up(self) -> bool:
        """Whether there is a connected vehicle."""
        return self._connected and self.system != 0

    @property
    def ambiguous(self) -> bool:
        """Whether two vehicles seem to answer with the same system id."""
        return 'ambiguous' in self._problems

    @property
    def sure(self) -> bool:
        """Whether enough was heard of the vehicle to know that it is one."""
        return self.up and not self.ambiguous and self._parser.heard >= _ENOUGH_FRAMES

    def fileno(self) -> int:
        """Return the file descriptor to wait on, -1 while there is none."""
        return self._port.fileno() if self._port is not None else -1

    def wants_write(self) -> bool:
        """Return whether a connection is being made."""
        return self._port is not None and not self._connected and not self.target.listens

    def close(self) -> None:
        """Close the port for good."""
        self._closed = True
        if self._port is not None:
            self._port.close()
            self._port = None
        self._connected = False
        self._state = LinkState.CLOSED

    def poll(self, now: float) -> None:
        """Take everything that has arrived, then do what is due at steady time `now`."""
        if self._closed:
            return
        self._now = now
        try:
            if self._port is None:
                if now < self._next_attempt:
                    return
                self._port = open_port(self.target)
            if not self._connected:
                if self._port.connecting():
                    self._explain_listening(now)
                    return
                self._begin(now)
            self._drain()
            self._duties(now)
        except LinkLost as lost:
            self._lose(str(lost), now)

    def send(self, *messages: Any) -> bool:
        """Send messages together; return whether they went out. Never waits, never raises."""
        if self._port is None or not self._connected:
            return False
        codec = self._codec
        number = codec.seq
        frames = []
        for message in messages:
            frames.append(message.pack(codec))
            codec.seq = (codec.seq + 1) % 256
        try:
            if not self._port.send(b''.join(frames)):
                codec.seq = number
                return False
        except LinkLost as lost:
            # Called from a message handler, maybe: the port is closed by the next poll.
            self._tell(Level.WARN, f'{self.target.text}: {lost}')
            return False
        return True

    def status(self) -> LinkStatus:
        """Return a snapshot; may be called from any thread."""
        heard = list(self._clock_heard)
        speedup = rate = float('nan')
        if len(heard) >= 3:
            (wall0, ms0), (wall1, ms1) = heard[0], heard[-1]
            if wall1 > wall0 and ms1 > ms0:
                speedup = (ms1 - ms0) / 1000 / (wall1 - wall0)
                rate = (len(heard) - 1) * 1000 / (ms1 - ms0)
        return LinkStatus(
            state=self._state, connection=self.target.text, system_id=self.system,
            vehicle_type=self._type, armed=self._armed, time=self.time, speedup=speedup,
            clock_rate=rate, frames=self._parser.frames, bad_frames=self._parser.bad,
            connections=self._connections, restarts=self._restarts,
            intervals=tuple((message_name(ident), wish.in_force_us)
                            for ident, wish in list(self._wishes.items())),
            problems=(*self._problems.values(),))

    # -- connecting

    def _begin(self, now: float) -> None:
        self._connected = True
        self._connections += 1
        self._connected_at = self._last_heard = now
        self._next_heartbeat = self._next_check = now
        self._parser.reset()
        self._parser.follow(0, 0)
        self._heard.clear()
        self._sender = None
        self.system = 0
        self._asking = None
        self._back.clear()
        self._ahead = self._last_clock_ms = None
        self._stale_time = self._time_ms is not None
        self._state = LinkState.NOTHING_HEARD
        self._problems.pop('connect', None)
        if self.target.kind in ('tcp', 'tcpin', 'uds'):
            self._tell(Level.INFO, f'{self.target.text}: connected')
        elif self.target.kind == 'udpin':
            self._tell(Level.INFO, f'{self.target.text}: listening')
        else:
            self._tell(Level.INFO, f'{self.target.text}: opened')

    def _lose(self, why: str, now: float) -> None:
        if self._port is not None:
            self._port.close()
            self._port = None
        was_connected, self._connected = self._connected, False
        had_vehicle, self.system = self.system, 0
        if was_connected and had_vehicle:
            self._pause = _FIRST_PAUSE_S
        self._next_attempt = now + self._pause
        self._pause = min(self._pause * _PAUSE_FACTOR, _LONGEST_PAUSE_S)
        self._state = LinkState.CONNECTING
        self._problems.pop('silent', None)
        if was_connected:
            text = f'{self.target.text}: connection lost ({why}); connecting again until it is back'
        else:
            text = f'{self.target.text}: {why}. {self._hint(why)}'
        self._problems['connect'] = text
        self._tell(Level.WARN, text)
        if was_connected and had_vehicle:
            self._on_vehicle(False)

    def _hint(self, why: str) -> str:
        if why == 'connection refused':
            port = self.target.port
            if self.target.kind == 'tcp' and self.target.sitl_instance is not None \
                    and port % 10 in (2, 3):
                first = 5760 + 10 * (self.target.sitl_instance or 0)
                return (f'Nothing listens there: SITL is not running, or it still waits for its '
                        f'first client on port {first} (a GCS or MAVProxy; or start SITL with '
                        f'--serial0 tcp:0). Trying until it is there.')
            return 'Nothing listens there: is SITL running, and on this port? Trying on.'
        if 'already' in why:
            return 'Close that program (MAVProxy, a GCS, another bridge), or use another port.'
        return 'Trying until it works.'

    def _explain_listening(self, now: float) -> None:
        if self.target.listens and 'connect' not in self._problems:
            text = f'{self.target.text}: waiting for a vehicle to connect'
            self._problems['connect'] = text
            self._tell(Level.INFO, text)

    def _explain_quiet(self, now: float) -> None:
        """Say why nothing useful is heard on a connection that exists."""
        where = self.target.text
        if self.system:
            text = (f'{where}: nothing from vehicle {self.system} for {_QUIET_S:g} s: paused (a '
                    'debugger, a Gazebo that stands still), or gone')
            self._state = LinkState.SILENT
        elif not self._parser.frames and self._parser.bad:
            text = (f'{where}: what comes from there is not MAVLink; wrong port, or wrong baud '
                    'rate of a serial device?')
        elif self._heard:
            self._state = LinkState.NO_VEHICLE
            others = ', '.join(f'{name} (system id {ident})'
                               for ident, name in sorted(self._heard.items()))
            asked = (f'an autopilot with system id {self._wanted_system}' if self._wanted_system
                     else 'an autopilot')
            text = (f'{where}: heard {others}, but not {asked}'
                    + ("; parameter 'system_id' chooses the vehicle" if self._wanted_system
                       else ''))
        elif self._parser.frames:
            self._state = LinkState.NO_VEHICLE
            text = f'{where}: MAVLink is heard, but no heartbeat of an autopilot'
        elif self.target.kind == 'tcp':
            text = (f'{where}: connected, but nothing is heard. SITL serves one client per port: '
                    'another program (MAVProxy, a GCS, another bridge) probably holds this one; '
                    "use the next port (5762 or 5763 + 10 x instance), or MAVProxy's "
                    'udp:127.0.0.1:14550')
        elif self.target.kind == 'udpin':
            text = (f'{where}: nothing is sent there. sim_vehicle.py forwards to udp 14550 + 10 x '
                    'instance; other senders need --out=udp:127.0.0.1:'
                    f'{self.target.port}')
        elif self.target.kind == 'udpout':
            text = f'{where}: nothing answers there; does a vehicle listen on that UDP port?'
        else:
            text = f'{where}: connected, but nothing is heard'
        if self._problems.get('silent') != text:
            self._problems['silent'] = text
            self._tell(Level.WARN, text)

    # -- reading

    def _drain(self) -> None:
        port = self._port
        assert port is not None
        while True:
            data, sender = port.receive()
            if data:
                if sender is not None and not self._from_vehicle(sender):
                    if port.drained:
                        break
                    continue
                for message in self._parser.feed(data):
                    self._dispatch(message, sender)
                    if self._port is not port:
                        return
                if self._parser.tangled:
                    self._two_vehicles('the numbers of their messages jump to and fro')
            if port.drained:
                break

    def _from_vehicle(self, sender: Any) -> bool:
        """Judge the sender of a datagram: another one with the same system id is not our vehicle.

        Senders are told apart only once there is a vehicle.
        """
        if self._sender is None or sender == self._sender:
            return True
        if self._now - self._last_heard > _QUIET_S:
            # Ours is gone: this may be the same vehicle, started again with a new port.
            self._sender = None
            self.system = 0
            self._parser.follow(0, 0)
            return True
        return self._another(sender)

    def _another(self, sender: Any) -> bool:
        if 'another sender' not in self._problems:
            text = (f'{self.target.text}: {sender[0]}:{sender[1]} sends here too; only '
                    f'{self._sender[0]}:{self._sender[1]} is listened to. Give each vehicle its '
                    'own port')
            self._problems['another sender'] = text
            self._tell(Level.WARN, text)
        return False

    def _dispatch(self, message: Any, sender: Any) -> None:
        # Not message.id: STATUSTEXT has a field of that name.
        ident = message.get_msgId()
        if ident == _HEARTBEAT:
            if not self._heartbeat(message, sender):
                return
        elif not self.system:
            return
        self._last_heard = self._now
        if self._state is not LinkState.UP:
            self._state = LinkState.UP
            if self._problems.pop('silent', None):
                self._tell(Level.INFO, f'{self.target.text}: vehicle {self.system} is heard again')
        if ident in _TIMED and not self._in_time(ident, message.time_boot_ms):
            return
        if ident == _COMMAND_ACK:
            self._acknowledged(message)
        self._on_message(message)

    def _heartbeat(self, message: Any, sender: Any) -> bool:
        system, component = message.get_srcSystem(), message.get_srcComponent()
        if self.system:
            if system == self.system and component == self.component:
                self._armed = bool(message.base_mode & mavlink.MAV_MODE_FLAG_SAFETY_ARMED)
                self._type = message.type
                return True
            return False
        autopilot = (message.autopilot != mavlink.MAV_AUTOPILOT_INVALID
                     and message.type != mavlink.MAV_TYPE_GCS and component == 1)
        if not autopilot or self._wanted_system not in (0, system):
            if message.type == mavlink.MAV_TYPE_GCS:
                name = 'a ground station'
            else:
                name = 'a vehicle' if autopilot else 'something that is no autopilot'
            self._heard[system] = name
            return False
        self.system, self.component = system, component
        self._parser.follow(system, component)
        self._armed = bool(message.base_mode & mavlink.MAV_MODE_FLAG_SAFETY_ARMED)
        self._type = message.type
        self._sender = sender
        if sender is not None and self.target.listens:
            self._port.peer = sender  # type: ignore[union-attr]
        self._pause = _FIRST_PAUSE_S
        self._problems.pop('silent', None)
        self._tell(Level.INFO, f'{self.target.text}: vehicle {system} found')
        self._ask_again()
        self._on_vehicle(True)
        return True

    # -- the vehicle's time

    def _in_time(self, ident: int, ms: int) -> bool:
        """Follow the vehicle's time; return False for what belongs to another past."""
        newest = self._time_ms
        if newest is None:
            self._time_ms = ms
            return True
        if ms >= newest:
            if not self._believable(ms, newest):
                return False
            if ident == _SYSTEM_TIME and self._ahead is not None \
                    and abs(ms - self._ahead) > _AHEAD_MS:
                self._interleave()
            self._ahead = None
            if ident == _SYSTEM_TIME:
                if self._last_clock_ms is not None:
                    self._clock_step_ms = ms - self._last_clock_ms
                self._last_clock_ms = ms
                if self._back or self._old_timeline(ms, ms - newest):
                    self._interleave()
                    self._back.clear()
                self._clock_heard.append((self._now, ms))
                self._stale_time = False
            self._time_ms = ms
            return True
        if newest - ms <= _REORDER_MS:
            return True
        if ident == _SYSTEM_TIME:
            self._back.append(ms)
            in_a_row = len(self._back) == _BACK_IN_A_ROW and [*self._back] == sorted(self._back)
            if self._stale_time or in_a_row:
                self._restarted(ms)
                return True
            if self._now - self._suspected_at > 1.0:
                # A restarted SITL has forgotten our intervals: ask, to be sure the sooner.
                self._suspected_at = self._now
                self._wishes[_SYSTEM_TIME] = _Wish(self._wishes[_SYSTEM_TIME].wanted_us)
                self._asking = None
        return False

    def _believable(self, ms: int, newest: int) -> bool:
        """Judge a step forward: one message far ahead may be garbage, two agree."""
        limit = min(max(_REORDER_MS, 2 * self._clock_step_ms), _AHEAD_MS)
        if ms - newest <= limit:
            return True
        ahead, self._ahead = self._ahead, ms
        return ahead is not None and abs(ms - ahead) <= max(limit, min(ahead - newest, _AHEAD_MS))

    def _old_timeline(self, ms: int, step_ms: int) -> bool:
        """Tell a jump back to the time before a restart from time that just goes on."""
        return (step_ms > _JUMP_MS and self._old_time_ms is not None and ms >= self._old_time_ms
                and self._now - self._restarted_at < _QUIET_S)

    def _interleave(self) -> None:
        """Count times that jump to and fro: no vehicle does that, two with one system id do."""
        self._interleaved.append(self._now)
        if len(self._interleaved) == 5 and self._now - self._interleaved[0] < 5.0:
            self._two_vehicles('time jumps to and fro')

    def _two_vehicles(self, why: str) -> None:
        self._two_heard_at = self._now
        if not self.ambiguous:
            text = (f'{self.target.text}: two vehicles seem to answer with system id {self.system} '
                    f'({why}), so no wind is written; give each its own --sysid, or its own '
                    'connection')
            self._problems['ambiguous'] = text
            self._tell(Level.ERROR, text)

    def _restarted(self, ms: int) -> None:
        assert self._time_ms is not None
        self._tell(Level.WARN,
                   f'{self.target.text}: vehicle {self.system} was restarted (its time went back '
                   f'from {self._time_ms / 1000:.1f} to {ms / 1000:.1f} s); setting it up again')
        self._old_time_ms, self._time_ms = self._time_ms, ms
        self._restarted_at = self._now
        self._restarts += 1
        self._stale_time = False
        self._back.clear()
        self._ahead = self._last_clock_ms = None
        self._clock_heard.clear()
        self._ask_again()
        self._on_vehicle(True)

    # -- duties

    def _duties(self, now: float) -> None:
        if now >= self._next_heartbeat:
            # A bridge that was stopped for a while owes one heartbeat, not all it missed.
            self._next_heartbeat = now + 1.0
            self.send(mavlink.MAVLink_heartbeat_message(
                mavlink.MAV_TYPE_ONBOARD_CONTROLLER, mavlink.MAV_AUTOPILOT_INVALID, 0, 0,
                mavlink.MAV_STATE_ACTIVE, 3))
        if now >= self._next_check:
            self._next_check = now + 0.1
            if now - self._last_heard > _QUIET_S:
                self._explain_quiet(now)
            if self.ambiguous and now - self._two_heard_at > _ONE_VEHICLE_AGAIN_S:
                self._interleaved.clear()
                del self._problems['ambiguous']
                self._tell(Level.INFO, f'{self.target.text}: one vehicle is heard again')
        if self.up and self._state is LinkState.UP:
            self._ask(now)

    def set_interval(self, ident: int, interval_us: int) -> None:
        """Ask for a message at another interval (us)."""
        wish = self._wishes.get(ident)
        if wish is None:
            self._wishes[ident] = _Wish(interval_us)
            self._parser.wanted |= {ident}
        elif wish.wanted_us != interval_us:
            self._wishes[ident] = _Wish(interval_us, in_force_us=wish.in_force_us)
            if self._asking == ident:
                self._asking = None

    def _ask_again(self) -> None:
        for ident, wish in self._wishes.items():
            self._wishes[ident] = _Wish(wish.wanted_us)
            self._problems.pop(f'interval {ident}', None)
        self._asking = None

    def _ask(self, now: float) -> None:
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
        self.send(mavlink.MAVLink_command_long_message(
            self.system, self.component, _SET_INTERVAL, 0,
            float(self._asking), float(wish.asked_us), 0, 0, 0, 0, 0))

    def _acknowledged(self, message: Any) -> None:
        if message.command != _SET_INTERVAL or self._asking is None:
            return
        if getattr(message, 'target_system', 0) not in (0, self._codec.srcSystem):
            return
        ident = self._asking
        wish = self._wishes[ident]
        result = message.result
        if result == mavlink.MAV_RESULT_IN_PROGRESS:
            return
        self._asking = None
        if result == mavlink.MAV_RESULT_ACCEPTED:
            wish.settled = True
            wish.in_force_us = wish.asked_us
            if wish.asked_us == wish.wanted_us:
                self._problems.pop(f'interval {ident}', None)
            else:
                self._unsettled(ident, 'was denied as too fast; it comes every '
                                f'{wish.asked_us / 1000:g} ms instead'
                                + self._what_slower_means(ident))
        elif result == mavlink.MAV_RESULT_TEMPORARILY_REJECTED:
            wish.not_before = self._now + _ACK_TIMEOUT_S
        elif result == mavlink.MAV_RESULT_UNSUPPORTED or not wish.slower:
            wish.settled = True
            self._unsettled(ident, f'was refused (result {result})'
                            + self._what_slower_means(ident))
        else:
            wish.asked_us = wish.slower.pop(0)
            wish.tries = 0
        self._ask(self._now)

    def _what_slower_means(self, ident: int) -> str:
        if ident != _SYSTEM_TIME:
            return ''
        return ('. The air changes only when the clock is heard; raise SCHED_LOOP_RATE to let it '
                'change at 20 Hz')

    def _unsettled(self, ident: int, what: str) -> None:
        text = (f'{self.target.text}: {message_name(ident)} every '
                f'{self._wishes[ident].wanted_us / 1000:g} ms {what}')
        if self._problems.get(f'interval {ident}') != text:
            self._problems[f'interval {ident}'] = text
            self._tell(Level.WARN, text)

    def _tell(self, level: Level, text: str) -> None:
        # The same thing again and again (connection refused, every few seconds) is said once.
        if text != self._last_told:
            self._last_told = text
            self._on_event(Event(level, text))


class LinkLoop:
    """One thread that serves any number of links.

    Parameters
    ----------
    on_error : callable
        Called with an exception that a handler raised; the loop goes on.

    Notes
    -----
    `wake` makes the thread poll one link. Whatever a caller left with that link is then dealt with
    after everything that has arrived was read: that is how a wind is sent, newest last and never
    into a backlog.
    """

    _TIMER_S = 0.05

    def __init__(self, on_error: Callable[[BaseException], None]) -> None:
        self._on_error = on_error
        self._wake_read, self._wake_write = socket.socketpair()
        self._wake_read.setblocking(False)
        self._wake_write.setblocking(False)
        self._woken: deque[Pollable] = deque()
        self._wake_sent = False
        self._serving: Pollable | None = None
        self._links: list[Pollable] = []
        self._new: deque[Pollable] = deque()
        self._stopping = False
        self._poller = select.poll()
        #: What is waited on: link -> (file descriptor, events), and back.
        self._waits: dict[Pollable, tuple[int, int]] = {}
        self._by_descriptor: dict[int, Pollable] = {}
        self._thread = threading.Thread(target=self._run, name='mavlink', daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def add(self, link: Pollable) -> None:
        """Serve `link` from now on."""
        self._new.append(link)
        self.wake(link)

    def wake(self, link: Pollable) -> None:
        """Poll `link` now; may be called from any thread.

        From within a callback of that very link it does nothing: `poll` deals with what was left
        after everything that has arrived was read.
        """
        if link is self._serving and threading.current_thread() is self._thread:
            return
        self._woken.append(link)
        if not self._wake_sent:
            self._wake_sent = True
            with contextlib.suppress(OSError):
                self._wake_write.send(b'\0')

    def stop(self, timeout: float = 2.0) -> None:
        """Stop the thread and close the links."""
        self._stopping = True
        with contextlib.suppress(OSError):
            self._wake_write.send(b'\0')
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def _run(self) -> None:
        wake_descriptor = self._wake_read.fileno()
        self._poller.register(wake_descriptor, select.POLLIN)
        next_timer = 0.0
        try:
            while not self._stopping:
                ready = self._poller.poll(max(0.0, next_timer - time.monotonic()) * 1000)
                now = time.monotonic()
                due: set[Pollable] = set()
                for descriptor, _ in ready:
                    if descriptor == wake_descriptor:
                        with contextlib.suppress(OSError):
                            self._wake_read.recv(4096)
                        self._wake_sent = False  # before the deque is emptied: nothing is lost
                    elif descriptor in self._by_descriptor:
                        due.add(self._by_descriptor[descriptor])
                while self._new:
                    self._links.append(self._new.popleft())
                while self._woken:
                    due.add(self._woken.popleft())
                if now >= next_timer:
                    next_timer = now + self._TIMER_S
                    due.update(self._links)
                for link in due:
                    self._serving = link
                    try:
                        link.poll(now)
                    except Exception as error:
                        self._on_error(error)
                    self._wait_for(link)
                self._serving = None
        finally:
            for link in self._links:
                link.close()
            self._wake_read.close()
            self._wake_write.close()

    def _wait_for(self, link: Pollable) -> None:
        descriptor = link.fileno()
        wanted = (descriptor, select.POLLIN | (select.POLLOUT if link.wants_write() else 0))
        waited = self._waits.get(link)
        if waited == wanted and self._by_descriptor.get(descriptor) is link:
            return
        if waited is not None and self._by_descriptor.get(waited[0]) is link:
            del self._by_descriptor[waited[0]]
            with contextlib.suppress(KeyError):
                self._poller.unregister(waited[0])
        self._waits[link] = wanted
        if descriptor >= 0:
            self._by_descriptor[descriptor] = link
            self._poller.register(descriptor, wanted[1])
