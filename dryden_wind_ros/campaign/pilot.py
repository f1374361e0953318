"""Flies a manoeuvre with a vehicle on a MAVLink connection, as a ground station would.

A copter waits for EKF3 and GPS, arms in GUIDED, takes off and is given its set point 20 times a
sim second (SET_POSITION_TARGET_LOCAL_NED, position and velocity); a mission is uploaded before and
flown in AUTO. A plane takes off in TAKEOFF and circles in LOITER, whatever is asked for. Names,
numbers and order are ArduPilot's.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from pymavlink import mavutil
from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.campaign.course import course_of
from dryden_wind_ros.campaign.embedded_flight import BLOWN_AWAY, NAN
from dryden_wind_ros.campaign.entry import Entry
from dryden_wind_ros.campaign.recorder import Recorder
from dryden_wind_ros.emulator.config import TAKEOFF_ALTITUDES, Home

SOURCE_SYSTEM = 246
GUIDED, COPTER_AUTO = 4, 3
TAKEOFF, LOITER = 13, 12

AGAIN = 1.0
"""What has no effect yet is asked for again after so much wall time, s."""

SET_POINT_EVERY = 0.05
_READY = mavlink.EKF_POS_HORIZ_ABS | mavlink.EKF_ATTITUDE
_POSITION_AND_VELOCITY = 0b110111000000
"""Type mask: accelerations and yaw are not given."""

_TAKEN_OFF = 0.95


class Over(Exception):
    """The flight is over before its end; the text is what it failed by."""


class Pilot:
    """Flies an entry.

    Parameters
    ----------
    connection : str
        Where the vehicle is.
    entry : Entry
    recorder : Recorder
        Tells the time and the place, and is told what is measured.
    check : callable
        Returns what the flight is over by, '' if by nothing: limits, and whether the vehicle runs.
    """

    def __init__(self, connection: str, entry: Entry, recorder: Recorder,
                 check: Callable[[], str]) -> None:
        self._entry, self._recorder, self._check = entry, recorder, check
        self._copter = entry.vehicle.kind == 'copter'
        self._link: Any = mavutil.mavlink_connection(
            connection, source_system=SOURCE_SYSTEM, retries=10)
        altitude = entry.vehicle.altitude
        self._altitude = TAKEOFF_ALTITUDES[entry.vehicle.kind] if altitude is None else altitude
        self._last_text = ''
        self._home = 0.0, 0.0
        self._flags = 0
        self._mode = -1
        self._armed = False
        self._results: dict[int, int] = {}
        self._reached = 0
        self._wanted: list[int] = []
        self._done = False

    def fly(self) -> str:
        """Fly; return what the flight failed by, or ''."""
        try:
            self._take_off()
            self._manoeuvre()
        except Over as over:
            return str(over)
        except OSError as error:
            return self._check() or f'the link to the vehicle broke: {error}'
        finally:
            self._recorder.measured = False
            self._link.close()
        return ''

    # ------------------------------------------------------------------ the way up

    def _take_off(self) -> None:
        recorder = self._recorder
        recorder.measured = False
        self._until(lambda: self._mode >= 0, 'a heartbeat')
        for ident, interval in ((mavlink.MAVLINK_MSG_ID_EKF_STATUS_REPORT, 200_000),
                                (mavlink.MAVLINK_MSG_ID_SYSTEM_TIME, 100_000)):
            self._command(mavlink.MAV_CMD_SET_MESSAGE_INTERVAL, ident, interval)
        self._until(lambda: self._flags & _READY == _READY, 'a position of EKF3')
        self._until(lambda: recorder.place is not None, 'a position')
        if self._entry.manoeuvre.path == 'mission' and self._copter:
            self._upload(self._items())
        if self._copter:
            self._to_mode(GUIDED)
        else:
            self._set('TKOFF_ALT', self._altitude)
            self._to_mode(TAKEOFF)
        self._until(lambda: self._armed, 'arming',
                    lambda: self._command(mavlink.MAV_CMD_COMPONENT_ARM_DISARM, 1.0))
        assert recorder.place is not None
        north, east, ground = recorder.place
        self._home = north, east
        if self._copter:
            self._until(lambda: self._accepted(mavlink.MAV_CMD_NAV_TAKEOFF), 'the take-off',
                        lambda: self._command(mavlink.MAV_CMD_NAV_TAKEOFF, last=self._altitude))
        # A plane comes to its loiter at whatever height TAKEOFF ends
        high = _TAKEN_OFF * self._altitude if self._copter else 0.8 * self._altitude
        self._until(lambda: recorder.place is not None and recorder.place[2] - ground >= high,
                    f'a height of {high:.0f} m')
        if not self._copter:
            self._to_mode(LOITER)
        begun = recorder.time
        self._until(lambda: recorder.time >= begun + self._entry.manoeuvre.settle, 'time to pass')

    # ------------------------------------------------------------------ what is measured

    def _manoeuvre(self) -> None:
        recorder, manoeuvre = self._recorder, self._entry.manoeuvre
        begun = recorder.time
        course = course_of(manoeuvre) if self._copter else None
        mission = manoeuvre.path == 'mission' and self._copter
        if mission:
            assert recorder.place is not None
            way = [recorder.place[:2], *((north, east) for north, east, _ in manoeuvre.waypoints)]
            recorder.set_point = lambda t, place: (_off_legs(way, place), NAN)
            self._until(lambda: self._mode == COPTER_AUTO, 'AUTO', lambda: self._command(
                mavlink.MAV_CMD_MISSION_START))
        elif self._copter:
            north, east = self._home

            def at(t: float) -> tuple[float, float, float, float]:
                if course is None:
                    return north, east, 0.0, 0.0
                ahead, beside, v_ahead, v_beside = course.at(max(t - begun, 0.0))
                return north + ahead, east + beside, v_ahead, v_beside

            recorder.set_point = lambda t, place: (
                math.hypot(place[0] - at(t)[0], place[1] - at(t)[1]), place[2] - self._altitude)
        recorder.measured = True
        events = sorted(self._entry.events, key=lambda event: event.at)
        last_sent = -math.inf
        while recorder.time < begun + manoeuvre.seconds:
            now = recorder.time
            if self._copter and not mission and now >= last_sent + SET_POINT_EVERY:
                last_sent = now
                self._send_set_point(now, at(now))
            while events and now - begun >= events[0].at:
                event = events.pop(0)
                self._set(event.parameter, event.value)
            self._receive()
            if not self._armed:
                raise Over('crash')
            place = recorder.place
            if self._copter and recorder.set_point is not None and place is not None \
                    and recorder.set_point(now, place)[0] > BLOWN_AWAY:
                raise Over('blown away')
            if mission and self._reached >= self._wanted[-1]:
                return

    def _send_set_point(self, t: float, spot: tuple[float, float, float, float]) -> None:
        north, east, v_north, v_east = spot
        self._link.mav.set_position_target_local_ned_send(
            round(t * 1000.0), self._link.target_system, self._link.target_component,
            mavlink.MAV_FRAME_LOCAL_NED, _POSITION_AND_VELOCITY, north, east, -self._altitude,
            v_north, v_east, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    # ------------------------------------------------------------------ missions

    def _items(self) -> list[tuple[int, float, float, float, float, float]]:
        """Return commands, second and other parameters and places: home, take-off, waypoints."""
        manoeuvre = self._entry.manoeuvre
        home = Home.parse(self._entry.vehicle.home)
        items: list[tuple[int, float, float, float, float, float]] = [
            (mavlink.MAV_CMD_NAV_WAYPOINT, 0.0, 0.0, home.latitude, home.longitude, 0.0),
            (mavlink.MAV_CMD_NAV_TAKEOFF, 0.0, 0.0, 0.0, 0.0, self._altitude),
            (mavlink.MAV_CMD_DO_CHANGE_SPEED, 1.0, manoeuvre.speed, 0.0, 0.0, 0.0)]
        for north, east, up in manoeuvre.waypoints:
            self._wanted.append(len(items))
            items.append((mavlink.MAV_CMD_NAV_WAYPOINT, 0.0, 0.0,
                          *home.degrees_at(north, east), up))
        items.append((mavlink.MAV_CMD_NAV_LOITER_UNLIM, 0.0, 0.0, 0.0, 0.0, 0.0))
        return items

    def _upload(self, items: Sequence[tuple[int, float, float, float, float, float]]) -> None:
        link, mav = self._link, self._link.mav
        to = link.target_system, link.target_component
        self._done = False

        def count() -> None:
            mav.mission_count_send(*to, len(items))

        def give(message: Any) -> None:
            if 0 <= message.seq < len(items):
                command, param1, param2, latitude, longitude, up = items[message.seq]
                mav.mission_item_int_send(
                    *to, message.seq, mavlink.MAV_FRAME_GLOBAL_RELATIVE_ALT, command, 0, 1,
                    param1, param2, 0.0, 0.0, round(latitude * 1e7), round(longitude * 1e7), up)

        self._until(lambda: self._done, 'the end of the upload of the mission', count, give)

    # ------------------------------------------------------------------ small things

    def _until(self, there: Callable[[], object], what: str,
               ask: Callable[[], None] | None = None,
               give: Callable[[Any], None] | None = None) -> None:
        """Wait for something, and ask for it again and again."""
        next_ask = 0.0
        while not there():
            if ask is not None and time.monotonic() >= next_ask:
                next_ask = time.monotonic() + AGAIN
                ask()
            try:
                self._receive(give)
            except Over as over:
                said = f' (it said: {self._last_text})' if self._last_text else ''
                raise Over(f'{over}; it waited for {what}{said}') from None

    def _receive(self, give: Callable[[Any], None] | None = None) -> None:
        """Take what has come, or wait for a moment; raise `Over` if the flight is."""
        over = self._check()
        if over:
            raise Over(over)
        message = self._link.recv_match(blocking=True, timeout=0.01)
        while message is not None:
            self._take(message, give)
            message = self._link.recv_match(blocking=False)

    def _take(self, message: Any, give: Callable[[Any], None] | None) -> None:
        kind = message.get_type()
        if kind == 'HEARTBEAT' and message.autopilot == mavlink.MAV_AUTOPILOT_ARDUPILOTMEGA:
            self._mode = message.custom_mode
            self._armed = bool(message.base_mode & mavlink.MAV_MODE_FLAG_SAFETY_ARMED)
        elif kind == 'EKF_STATUS_REPORT':
            self._flags = message.flags
        elif kind == 'COMMAND_ACK':
            self._results[message.command] = message.result
            if (message.command == mavlink.MAV_CMD_COMPONENT_ARM_DISARM
                    and message.result == mavlink.MAV_RESULT_ACCEPTED):
                self._armed = True
        elif kind == 'STATUSTEXT':
            if message.severity <= mavlink.MAV_SEVERITY_WARNING:
                self._last_text = message.text
        elif kind in ('MISSION_REQUEST', 'MISSION_REQUEST_INT') and give is not None:
            give(message)
        elif kind == 'MISSION_ACK':
            self._done = message.type == mavlink.MAV_MISSION_ACCEPTED
        elif kind == 'MISSION_ITEM_REACHED':
            self._reached = max(self._reached, message.seq)

    def _accepted(self, command: int) -> bool:
        accepted: int = mavlink.MAV_RESULT_ACCEPTED
        return self._results.get(command) == accepted

    def _to_mode(self, mode: int) -> None:
        self._until(lambda: self._mode == mode, f'mode {mode}', lambda: self._command(
            mavlink.MAV_CMD_DO_SET_MODE, mavlink.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED, mode))

    def _command(self, command: int, first: float = 0.0, second: float = 0.0,
                 last: float = 0.0) -> None:
        link = self._link
        link.mav.command_long_send(link.target_system, link.target_component, command, 0, first,
                                   second, 0.0, 0.0, 0.0, 0.0, last)

    def _set(self, name: str, value: float) -> None:
        link = self._link
        link.mav.param_set_send(link.target_system, link.target_component, name.encode(), value,
                                mavlink.MAV_PARAM_TYPE_REAL32)


def _off_legs(way: Sequence[tuple[float, float]], place: tuple[float, float, float]) -> float:
    """Return how far a place is off the straight legs between corners, m."""
    north, east, _ = place
    found = math.inf
    for (a_north, a_east), (b_north, b_east) in pairwise(way):
        to_north, to_east = b_north - a_north, b_east - a_east
        length = to_north**2 + to_east**2
        along = 0.0 if length == 0.0 else min(max(
            ((north - a_north) * to_north + (east - a_east) * to_east) / length, 0.0), 1.0)
        found = min(found, math.hypot(north - a_north - along * to_north,
                                      east - a_east - along * to_east))
    return found
