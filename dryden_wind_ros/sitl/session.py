"""One vehicle, served: its link, its wind parameters, its odometry.

This is the whole bridge without ROS. A `LinkLoop` polls it; `Session.set_wind` and
`Session.begin_restore` may be called from any thread, and everything they cause happens in the
loop's thread, after all that has arrived was read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.gusts.flown_wind import FlownWind
from dryden_wind_ros.gusts.tick_grid import tick_number
from dryden_wind_ros.sitl import odometry, parameter_reader
from dryden_wind_ros.sitl.connection import ConnectionTarget
from dryden_wind_ros.sitl.events import Event
from dryden_wind_ros.sitl.frame import Frame
from dryden_wind_ros.sitl.link import Link
from dryden_wind_ros.sitl.link_status import LinkStatus
from dryden_wind_ros.sitl.loop import LinkLoop
from dryden_wind_ros.sitl.odometry import Odometry, OdometryBuilder
from dryden_wind_ros.sitl.parameter_reader import ParameterReader
from dryden_wind_ros.sitl.parameters import ParametersStatus, WindParameters
from dryden_wind_ros.sitl.sim_wind import REQUIRED, Wind
from dryden_wind_ros.sitl.state_file import StateFile, state_directory, vehicle_key

_SYSTEM_TIME = mavlink.MAVLINK_MSG_ID_SYSTEM_TIME

#: Messages that tell about EKF3's wind, and how often they are needed, us of vehicle time.
EKF_INTERVALS: Mapping[int, int] = {
    mavlink.MAVLINK_MSG_ID_EKF_STATUS_REPORT: 100_000,
    mavlink.MAVLINK_MSG_ID_VFR_HUD: 100_000,
    mavlink.MAVLINK_MSG_ID_WIND: 200_000,
    mavlink.MAVLINK_MSG_ID_EXTENDED_SYS_STATE: 200_000,
    mavlink.MAVLINK_MSG_ID_GPS_RAW_INT: 500_000,
    mavlink.MAVLINK_MSG_ID_SYS_STATUS: 1_000_000,
}

#: Putting back ends by itself where there is no progress; this is for a loop that has died, s.
END_WITHIN_S = 120.0
#: How often parameters are looked after where there is nothing to write, steady s.
_LOOK_S = 0.04
#: How long the first tick waits until the vehicle tells its time often enough for the next ones, s.
_BEGIN_WITHIN_S = 3.0
_RARE_US = 500_000
#: ATTITUDE where nobody follows it: enough to see how a hovering vehicle leans.
_ATTITUDE_US = 200_000
_ORIGIN_US = 1_000_000


@dataclass(frozen=True)
class SessionSettings:
    """How a vehicle is served.

    Attributes
    ----------
    system_id, source_system : int
        The vehicle's MAVLink system id (0: the first autopilot heard) and our own.
    time_constant : float
        SIM_WIND_TC while wind is written, s.
    odometry_rate : float
        Odometry messages per second of vehicle time.
    state_dir : str
        Where found values are kept; '': the user's state directory.
    found_in : str
        What counts as found: one of `wind_owner.FOUND_IN`.
    gust_timeout : float
        Steady time without a new wind after which the gust is taken away, s; 0: never.
    """

    system_id: int = 0
    source_system: int = 245
    time_constant: float = 0.1
    odometry_rate: float = 20.0
    state_dir: str = ''
    found_in: str = 'auto'
    gust_timeout: float = 5.0


class Session:
    """A vehicle on a connection.

    Parameters
    ----------
    target : ConnectionTarget
        From `parse_connection`.
    settings : SessionSettings
    on_event : callable
        Called with an `Event` for what a user should read.
    on_tick : callable, optional
        Called with the vehicle time in ms whenever a new 0.05 s tick is reached.
    on_odometry : callable, optional
        Called with every `Odometry`.
    on_message : callable, optional
        Called with every message of the vehicle that was asked for, but those SYSTEM_TIMEs that
        reach no new tick.
    on_armed : callable, optional
        Called with the vehicle time in ms at which it was armed, or first seen armed; with 0 when
        the vehicle was found or restarted. Heartbeats tell, so it is known up to a second late.
    on_restart : callable, optional
        Called when the vehicle was found, found again or restarted.
    intervals : mapping of int to int, optional
        Further messages to ask for, and their intervals in us.
    read : iterable of str, optional
        Further parameters to read.
    frame : Frame, optional
        Where positions count from; the vehicle's own unless given.

    Notes
    -----
    All callbacks come from the loop's thread.
    """

    def __init__(self, target: ConnectionTarget, settings: SessionSettings, *,
                 on_event: Callable[[Event], None],
                 on_tick: Callable[[int], None] | None = None,
                 on_odometry: Callable[[Odometry], None] | None = None,
                 on_message: Callable[[Any], None] | None = None,
                 on_armed: Callable[[int], None] | None = None,
                 on_restart: Callable[[], None] | None = None,
                 intervals: Mapping[int, int] | None = None,
                 read: Iterable[str] = (), frame: Frame | None = None) -> None:
        self.target = target
        self._on_tick = on_tick
        self._on_odometry = on_odometry
        self._on_message = on_message
        self._on_armed = on_armed
        self._on_restart = on_restart
        self._armed = False
        self._directory: Path = state_directory(settings.state_dir)
        self._interval_us = interval = round(1e6 / settings.odometry_rate)
        self._attitude_wanted = self._attitude_asked = True
        self._source = False, False  # of the odometry: EKF3's local position, or the truth
        wishes = dict(intervals or {})
        if on_odometry is not None:
            wishes |= {odometry.ATTITUDE: interval, odometry.SIM_STATE: interval,
                       odometry.LOCAL_POSITION_NED: interval,
                       odometry.GLOBAL_POSITION_INT: interval,
                       odometry.GPS_GLOBAL_ORIGIN: _ORIGIN_US}
        self.link = Link(
            target, on_message=self._message, on_event=on_event, on_vehicle=self._vehicle,
            system_id=settings.system_id, source_system=settings.source_system, intervals=wishes,
            wanted=(*parameter_reader.MESSAGES, mavlink.MAVLINK_MSG_ID_STATUSTEXT))
        self.flown = FlownWind()
        sender = (settings.source_system, mavlink.MAV_COMP_ID_ONBOARD_COMPUTER)
        self.parameters = WindParameters(
            self.link.send, on_event, settings.time_constant, self._sent, settings.found_in,
            settings.gust_timeout, sender)
        self.reader = ParameterReader(read, self.link.send, sender=sender)
        self.link.count_echoes(
            lambda name, value: self.parameters.echo(name, value, time.monotonic()))
        self._builder = OdometryBuilder(frame)
        self._tick: int | None = None
        self._odometries = 0
        self._wind: Wind | None = None
        self._overtaken = 0
        self._restore_asked = False
        self._next_look = self._found_at = 0.0
        self._finished = threading.Event()
        self._loop: LinkLoop | None = None

    def start(self, loop: LinkLoop) -> None:
        """Let `loop` serve this session."""
        self._loop = loop
        loop.add(self)

    # -- from any thread

    def set_wind(self, wind: Wind) -> None:
        """Hand over the newest wind. Returns at once; a wind not sent yet is replaced."""
        if self._wind is not None:
            self._overtaken += 1
        self._wind = wind
        if self._loop is not None:
            self._loop.wake(self)

    def need_attitude(self, full: bool) -> None:
        """Say whether somebody follows the attitude, or five times a second is enough."""
        self._attitude_wanted = full

    def begin_restore(self) -> None:
        """Begin to put the vehicle's values back; no wind is written any more."""
        self._restore_asked = True
        if self._loop is not None:
            self._loop.wake(self)

    def wait_restored(self, timeout: float = END_WITHIN_S) -> bool:
        """Wait until the values found are back and confirmed; return whether they are.

        It ends, too, when no progress is made any more: `left` then says what is not back.
        """
        self._finished.wait(timeout)
        return self.parameters.restored and not self.link.intervals_left

    @property
    def finished(self) -> bool:
        """Whether putting back has come to its end, a good one or not."""
        return self._finished.is_set()

    @property
    def left(self) -> str:
        """What could not be put back, and why; '' if everything is back."""
        return '; '.join(left for left in (self.parameters.left, self.link.intervals_left) if left)

    def status(self) -> tuple[LinkStatus, ParametersStatus]:
        """Return snapshots of the link and the wind parameters."""
        return self.link.status(), self.parameters.status()

    @property
    def odometries(self) -> int:
        """How many odometry samples there were."""
        return self._odometries

    # -- what the loop needs

    def fileno(self) -> int:
        """Return the link's file descriptor, -1 while there is none."""
        return self.link.fileno()

    def wants_write(self) -> bool:
        """Return whether the link is connecting."""
        return self.link.wants_write()

    def poll(self, now: float) -> None:
        """Read what has arrived, then write what is due."""
        self.link.poll(now)
        wind, self._wind = self._wind, None
        if self._restore_asked:
            if not self.parameters.restoring:
                # Nothing else matters now, and a busy machine has no time for more.
                self.link.listen_only(parameter_reader.MESSAGES)
                self.parameters.restore()
        elif wind is not None:
            overtaken, self._overtaken = self._overtaken, 0
            self.parameters.set_wind(wind, overtaken)
        if self._attitude_wanted is not self._attitude_asked and self._on_odometry is not None:
            self._attitude_asked = self._attitude_wanted
            self.link.set_interval(odometry.ATTITUDE, self._interval_us if self._attitude_wanted
                                   else max(self._interval_us, _ATTITUDE_US))
        if self.link.up and (now >= self._next_look or self.parameters.hurried):
            self._next_look = now + _LOOK_S
            heard = self.link.last_heard
            self.parameters.poll(now, self.link.time, heard, self.link.sure)
            if not self.reader.done and not self._restore_asked:
                self.reader.poll(now, heard)
        if self._restore_asked and not self.parameters.wait_longer(now, self.link.frames):
            # Last: the vehicle has to be heard while its parameters are put back.
            self.link.release_intervals()
            if self.link.intervals_released:
                self._finished.set()

    def close(self) -> None:
        """Close the link; what is not put back yet stays in the state file."""
        self.parameters.abandon()
        self.link.close()
        self._finished.set()

    # -- from the link

    def _vehicle(self, up: bool) -> None:
        if not up:
            self.parameters.lost()
            return
        system = self.link.system
        state = StateFile(self._directory, vehicle_key(self.target, system), self.target.text)
        self.parameters.vehicle(
            system, self.link.component, state, f'{self.target.text} vehicle {system}')
        self.reader.vehicle(system, self.link.component)
        self._builder.reset()
        if any(self._source):
            self._source = False, False
            for ident in (odometry.GLOBAL_POSITION_INT, odometry.LOCAL_POSITION_NED):
                self.link.set_interval(ident, self._interval_us)
        self._tick = None
        self._found_at = time.monotonic()
        self._armed = False
        if self._on_armed is not None:
            self._on_armed(0)
        self.flown.restart()
        if self._on_restart is not None:
            self._on_restart()

    def _may_begin(self) -> bool:
        """Whether ticks may be counted: at the rates of SITL's own some would be missed."""
        return (self.link.clock_settled
                or time.monotonic() - self._found_at > _BEGIN_WITHIN_S)

    def _message(self, message: Any) -> None:
        ident = message.get_msgId()
        if self._restore_asked:
            self.parameters.on_message(message, time.monotonic())
            return
        if ident == _SYSTEM_TIME:
            milliseconds = message.time_boot_ms
            tick = tick_number(milliseconds / 1000)
            if self._tick is not None and tick == self._tick:
                return  # every other one: it tells nobody anything
            if self._may_begin() if self._tick is None else tick > self._tick:
                self._tick = tick
                self.flown.advance(milliseconds / 1000)
                if self.link.armed is not self._armed:
                    self._armed = self.link.armed
                    if self._armed and self._on_armed is not None:
                        self._on_armed(milliseconds)
                if self._on_tick is not None:
                    self._on_tick(milliseconds)
        elif ident in parameter_reader.MESSAGES:
            self.parameters.on_message(message, time.monotonic())
            self.reader.on_message(message)
            if ident == mavlink.MAVLINK_MSG_ID_PARAM_VALUE and message.param_id in REQUIRED \
                    and not self._restore_asked:
                # Only a simulator has these: nothing of another vehicle is changed.
                self.link.want_intervals()
            if ident == mavlink.MAVLINK_MSG_ID_PARAM_VALUE and not self.parameters.writing:
                self.flown.set(str(message.param_id), float(message.param_value))
        elif self._on_odometry is not None:
            now = self.link.time
            sample = self._builder.update(message, None if now is None else round(now * 1000))
            if sample is not None:
                source = sample.local, sample.true
                if source != self._source:
                    self._source = source
                    # Beside better ones, global positions only tell where home is, and local ones
                    # whether EKF3 has any.
                    for ident, rare in ((odometry.GLOBAL_POSITION_INT, any(source)),
                                        (odometry.LOCAL_POSITION_NED, sample.true)):
                        self.link.set_interval(ident, max(
                            self._interval_us, _RARE_US if rare else 0))
                self._odometries += 1
                self._on_odometry(sample)
        if self._on_message is not None:
            self._on_message(message)

    def _sent(self, name: str, value: float, vehicle_time: float | None) -> None:
        self.flown.set(name, value)
