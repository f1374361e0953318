"""The link to one ArduPilot vehicle over MAVLink.

A `Link` connects and goes on connecting, picks its vehicle, says who we are, asks for the messages
that are needed and checks the answers, notices that SITL was restarted, and hands decoded messages
on. It does not wait for anything: `Link.poll` takes what has arrived, does what is due and returns,
so that one `LinkLoop` thread can serve a whole fleet. A link belongs to the thread that polls it;
only `Link.status` may be called from elsewhere.

Time is the vehicle's own, since its boot, as its messages tell it. Time-outs are wall time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.sitl.connection import ConnectionTarget
from dryden_wind_ros.sitl.events import Event, Level, Notices
from dryden_wind_ros.sitl.followed_vehicle import FollowedVehicle
from dryden_wind_ros.sitl.framing import FrameParser
from dryden_wind_ros.sitl.line import Line
from dryden_wind_ros.sitl.link_help import silence_hint
from dryden_wind_ros.sitl.link_status import LinkState, LinkStatus
from dryden_wind_ros.sitl.message_intervals import MessageIntervals
from dryden_wind_ros.sitl.ports import LinkLost
from dryden_wind_ros.sitl.reading import BoundedReader
from dryden_wind_ros.sitl.vehicle_clock import TimeVerdict, VehicleClock

_SYSTEM_TIME = mavlink.MAVLINK_MSG_ID_SYSTEM_TIME
_HEARTBEAT = mavlink.MAVLINK_MSG_ID_HEARTBEAT
_COMMAND_ACK = mavlink.MAVLINK_MSG_ID_COMMAND_ACK
_SET_INTERVAL = mavlink.MAV_CMD_SET_MESSAGE_INTERVAL
#: Messages that carry time_boot_ms.
_TIMED = frozenset({
    _SYSTEM_TIME, mavlink.MAVLINK_MSG_ID_ATTITUDE, mavlink.MAVLINK_MSG_ID_LOCAL_POSITION_NED,
    mavlink.MAVLINK_MSG_ID_GLOBAL_POSITION_INT})

_QUIET_S = 3.0
#: So long after a leap of time (wall time, s) lost message rates mean a restart.
_LEAP_COUNTS_S = 5.0
#: So many frames tell whether two vehicles use one system id.
_ENOUGH_FRAMES = 60


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
        Message ids to ask for and their intervals in us, once `want_intervals` was called.
        SYSTEM_TIME is always asked for.
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
        self.target = target
        self._on_message = on_message
        self._on_vehicle = on_vehicle
        self._notices = Notices(target.text, on_event)
        self._line = Line(target, source_system, self._notices)
        self._vehicle = FollowedVehicle(system_id, self._notices)
        self._clock = VehicleClock()
        self._intervals = MessageIntervals(intervals or {}, self._ask_intervals, self._notices)
        self._parser = FrameParser({*self._intervals.messages, *wanted, _COMMAND_ACK})
        self._reader = BoundedReader()

        self._last_heard = 0.0
        self._next_heartbeat = 0.0
        self._next_check = 0.0
        self._closed = False
        self._left_at_close = ''
        self._restarts = 0
        self._state = LinkState.CONNECTING
        self._now = 0.0

    # -- what a loop needs

    @property
    def system(self) -> int:
        """System id of the vehicle, 0 while there is none."""
        return self._vehicle.system

    @property
    def component(self) -> int:
        """Component id of the vehicle."""
        return self._vehicle.component

    @property
    def time(self) -> float | None:
        """Newest vehicle time, s since its boot; None while unknown."""
        milliseconds = self._clock.time_ms
        return None if milliseconds is None else milliseconds / 1000

    @property
    def speedup(self) -> float:
        """Vehicle seconds per wall second, lately; NaN while unknown. From any thread."""
        return self._clock.rates()[0]

    @property
    def clock_settled(self) -> bool:
        """Whether the vehicle has answered how often it tells its time."""
        return self._intervals.clock_settled

    @property
    def last_heard(self) -> float:
        """Steady time at which the vehicle was heard last."""
        return self._last_heard

    @property
    def armed(self) -> bool:
        """Whether the vehicle said so in its last heartbeat."""
        return self._vehicle.armed

    @property
    def up(self) -> bool:
        """Whether there is a connected vehicle."""
        return self._line.connected and self._vehicle.system != 0

    @property
    def ambiguous(self) -> bool:
        """Whether two vehicles seem to answer with the same system id."""
        return self._vehicle.ambiguous

    @property
    def sure(self) -> bool:
        """Whether enough was heard of the vehicle to know that it is one."""
        return self.up and not self.ambiguous and self._parser.heard >= _ENOUGH_FRAMES

    def fileno(self) -> int:
        """Return the file descriptor to wait on, -1 while there is none."""
        return self._line.fileno()

    def wants_write(self) -> bool:
        """Return whether a connection is being made, or the end of a frame waits."""
        return self._line.wants_write()

    def close(self) -> None:
        """Close the port for good."""
        self._left_at_close = self.intervals_left
        if self._left_at_close and not self._closed:
            self._notices.tell(Level.ERROR, f'could not put back {self._left_at_close}')
        self._closed = True
        self._line.close()
        self._state = LinkState.CLOSED

    def poll(self, now: float) -> None:
        """Take everything that has arrived, then do what is due at steady time `now`."""
        if self._closed:
            return
        self._now = now
        try:
            if not self._line.connected:
                if not self._line.connect(now):
                    return
                self._begin(now)
            self._line.flush()
            self._drain()
            self._duties(now)
        except LinkLost as lost:
            self._lose(str(lost), now)

    def send(self, *messages: Any) -> bool:
        """Send messages together; return whether they went out. Never waits, never raises."""
        return self._line.send(*messages)

    def status(self) -> LinkStatus:
        """Return a snapshot; may be called from any thread."""
        speedup, rate = self._clock.rates()
        return LinkStatus(
            state=self._state, connection=self.target.text, system_id=self.system,
            vehicle_type=self._vehicle.type, armed=self._vehicle.armed, time=self.time,
            speedup=speedup, clock_rate=rate,
            frames=self._parser.frames, bad_frames=self._parser.bad,
            connections=self._line.connections, restarts=self._restarts,
            intervals=self._intervals.in_force(), problems=self._notices.problems)

    def set_interval(self, ident: int, interval_us: int) -> None:
        """Ask for a message at another interval (us)."""
        self._intervals.set(ident, interval_us)
        self._parser.wanted |= {ident}

    def count_echoes(self, on_echo: Callable[[bytes, float], bool]) -> None:
        """Ask `on_echo` first whether a PARAM_VALUE need not be decoded; see `FrameParser`."""
        self._parser.on_echo = on_echo

    @property
    def frames(self) -> int:
        """How many well-formed frames were heard from anybody."""
        return self._parser.frames

    def listen_only(self, idents: Iterable[int]) -> None:
        """Decode these messages and heartbeats only from now on, and ask for none any more."""
        self._intervals.stop()
        self._parser.wanted = frozenset({*idents, _HEARTBEAT, _COMMAND_ACK})

    def want_intervals(self) -> None:
        """Ask this vehicle for its messages from now on; it is one that may be changed.

        To be called anew whenever a vehicle was found, found again or restarted.
        """
        if self.up and not self._intervals.wanted:
            self._intervals.want()
            self._next_check = self._now

    def release_intervals(self) -> None:
        """Give all messages their default rates back, and ask for nothing any more."""
        if self.up:
            self._intervals.release(self._now)

    @property
    def intervals_released(self) -> bool:
        """Whether `release_intervals` has come to its end, a good one or not."""
        return not self.up or self._state is not LinkState.UP or self._intervals.released

    @property
    def intervals_left(self) -> str:
        """Which message rates have not their default back; '' for none."""
        if self._closed:
            return self._left_at_close
        count = self._intervals.to_give_back if self.up else 0
        return f'{count} message rates of vehicle {self.system}, which last until it is ' \
            'restarted' if count else ''

    # -- connecting

    def _begin(self, now: float) -> None:
        self._last_heard = now
        self._next_heartbeat = self._next_check = now
        self._reader.begin()
        self._parser.reset()
        self._parser.follow(0, 0)
        self._vehicle.connected(now)
        self._clock.connected()
        self._intervals.forget()
        self._state = LinkState.NOTHING_HEARD

    def _lose(self, why: str, now: float) -> None:
        had_vehicle = self._vehicle.lost()
        self._state = LinkState.CONNECTING
        self._notices.solved('silent')
        if self._line.lose(why, now, had_vehicle) and had_vehicle:
            self._on_vehicle(False)

    def _explain_quiet(self) -> None:
        """Say why nothing useful is heard on a connection that exists."""
        others = self._vehicle.choice.explain()
        if self.system:
            text = (f'nothing from vehicle {self.system} for {_QUIET_S:g} s: paused (a debugger, '
                    'a Gazebo that stands still), or gone')
            self._state = LinkState.SILENT
        elif not self._parser.frames and self._parser.bad:
            text = ('what comes from there is not MAVLink; wrong port, or wrong baud rate of a '
                    'serial device?')
        elif others:
            self._state = LinkState.NO_VEHICLE
            text = others
        elif self._parser.frames:
            self._state = LinkState.NO_VEHICLE
            text = 'MAVLink is heard, but no heartbeat of an autopilot'
        else:
            text = silence_hint(self.target)
        self._notices.problem('silent', Level.WARN, text)

    # -- reading

    def _drain(self) -> None:
        """Read what has arrived, within a budget: other links of the loop wait meanwhile."""
        port = self._line.port
        assert port is not None
        for data, sender in self._reader.pieces(port, self._now, self._from_vehicle):
            if self._reader.skipped:
                self._reader.skipped = False
                self._parser.reset()
            for message in self._parser.feed(data):
                self._dispatch(message, sender)
                if self._line.port is not port:
                    return
            if self._parser.tangled and not self._reader.flooded(self._now):
                self._vehicle.two_heard(
                    'the numbers of their messages jump to and fro', self._now)

    def _from_vehicle(self, data: bytes, sender: Any) -> bool:
        """Judge the sender of a datagram: another one with the same system id is not our vehicle.

        Senders are told apart only once there is a vehicle.
        """
        if self._vehicle.sends_from(sender):
            return True
        if self._now - self._last_heard > _QUIET_S and self._vehicle.began(data):
            # Ours is gone, and this has its id: the same vehicle, started again with a new port.
            self._vehicle.forget()
            self._parser.follow(0, 0)
            self._clock.connected()
            self._notices.solved('another sender')
            return True
        self._vehicle.tell_stranger(sender)
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
            if self._notices.solved('silent'):
                self._notices.tell(Level.INFO, f'vehicle {self.system} is heard again')
        self._intervals.heard(
            ident, self._now, message.time_boot_ms if ident == _SYSTEM_TIME else None)
        if ident in _TIMED and not self._in_time(ident, message.time_boot_ms):
            return
        if ident == _COMMAND_ACK:
            self._acknowledged(message)
        self._on_message(message)

    def _heartbeat(self, message: Any, sender: Any) -> bool:
        ours, found = self._vehicle.heartbeat(message, sender, self._now)
        if found:
            self._parser.follow(self.system, self.component)
            self._line.found(sender)
            self._notices.solved('silent')
            self._notices.tell(Level.INFO, f'vehicle {self.system} found')
            self._intervals.forget()
            self._on_vehicle(True)
        return ours

    def _acknowledged(self, message: Any) -> None:
        if message.command == _SET_INTERVAL \
                and getattr(message, 'target_system', 0) in (0, self._line.source_system):
            self._intervals.acknowledged(message.result, self._now)

    # -- the vehicle's time

    def _in_time(self, ident: int, ms: int) -> bool:
        """Follow the vehicle's time; return False for what belongs to another past."""
        before, leap = self._clock.time_ms, self._clock.leap
        verdict = self._clock.update(ms, self._now, is_clock=ident == _SYSTEM_TIME)
        if self._clock.jumping:
            self._vehicle.two_heard('time jumps to and fro', self._now)
        if self._clock.leap is not leap:
            self._intervals.begin_counting()
        if verdict is TimeVerdict.RESTARTED:
            assert before is not None
            self._restarted('went back', before, ms)
        elif verdict is TimeVerdict.SUSPECT:
            # A restarted SITL has forgotten our intervals: ask, to be sure the sooner.
            self._intervals.ask_clock_again()
        return verdict in (TimeVerdict.TAKEN, TimeVerdict.RESTARTED)

    def _restarted(self, how: str, before_ms: int, ms: int) -> None:
        self._notices.tell(
            Level.WARN, f'vehicle {self.system} was restarted (its time {how} from '
            f'{before_ms / 1000:.1f} to {ms / 1000:.1f} s); setting it up again')
        self._restarts += 1
        self._intervals.forget()
        self._on_vehicle(True)

    def _watch(self, now: float) -> None:
        """See that what was granted comes; where it does not, find out why."""
        time_ms = self._clock.time_ms
        if self._reader.flooded(now):
            # What is missing was not read, or never got in: nobody's rates are to blame.
            self._parser.forget_numbers()
            self._intervals.begin_counting()
            return
        if time_ms is None:
            return
        speedup, _ = self._clock.rates()
        leap = self._clock.leap
        if self._intervals.watch(time_ms, speedup, self._last_heard, now) \
                and leap is not None and now - leap[0] < _LEAP_COUNTS_S:
            # Time that leapt and rates that are forgotten: it was restarted to a later time.
            self._clock.restarted_later(now)
            self._restarted('leapt, and its message rates are gone,', *leap[1:])

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
            self._tell_flood(now)
            if now - self._last_heard > _QUIET_S:
                self._explain_quiet()
            if self._vehicle.one_again(now):
                self._clock.forget_jumps()
            if self.up and self._state is LinkState.UP:
                self._watch(now)
                self._intervals.poll(now)

    def _tell_flood(self, now: float) -> None:
        if self._reader.flooded(now):
            self._notices.problem(
                'flood', Level.WARN, 'more arrives than can be read: who sends so much there? The '
                'newest messages of the vehicle are taken, and ticks may be missing')
        elif self._notices.solved('flood'):
            self._notices.tell(Level.INFO, 'everything that arrives is read again')

    def _ask_intervals(self, requests: Sequence[tuple[int, int]]) -> None:
        self.send(*[mavlink.MAVLink_command_long_message(
            self.system, self.component, _SET_INTERVAL, 0,
            float(ident), float(interval_us), 0, 0, 0, 0, 0) for ident, interval_us in requests])
