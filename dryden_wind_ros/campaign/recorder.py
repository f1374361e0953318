"""What is recorded of a live flight: the samples, the telemetry log, and what the vehicle said.

A `Session` (the bridge without ROS) on a port of the vehicle. It writes the seed's wind at every
tick of the vehicle's clock; or, where the ROS nodes do that, it only listens.
"""

from __future__ import annotations

import math
import re
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.campaign.embedded_flight import COLUMNS, NAN, Samples, air_of
from dryden_wind_ros.campaign.entry import Entry
from dryden_wind_ros.campaign.telemetry_log import TelemetryLog
from dryden_wind_ros.gusts.tick_grid import TICK_S, TickGrid
from dryden_wind_ros.logs.flight import Air, RecordError
from dryden_wind_ros.logs.tlog_flights import read_tlog_flights
from dryden_wind_ros.sitl.connection import parse_connection
from dryden_wind_ros.sitl.events import Event
from dryden_wind_ros.sitl.loop import LinkLoop
from dryden_wind_ros.sitl.odometry import Odometry
from dryden_wind_ros.sitl.session import EKF_INTERVALS, Session, SessionSettings
from dryden_wind_ros.sitl.sim_wind import Wind

FLYING_ABOVE = 1.0
"""What is measured of a flight by a script is flown armed and higher than this, m."""

LATE = 0.25
"""A wind came late if neither its echo nor that of a newer one was heard so much sim time after
its tick, s. An ArduPilot at 20 times real time takes 0.1 s for 95 % of them."""

FRESH = 1.0
"""Telemetry older than this is not used for a sample, s of sim time."""

INTERVALS = {**EKF_INTERVALS,
             mavlink.MAVLINK_MSG_ID_VFR_HUD: 50_000,
             mavlink.MAVLINK_MSG_ID_POSITION_TARGET_LOCAL_NED: 50_000,
             mavlink.MAVLINK_MSG_ID_NAV_CONTROLLER_OUTPUT: 50_000}
"""What the vehicle is asked for beside its odometry, us."""

SAID = ((re.compile(r'lane switch|primary changed', re.IGNORECASE), 'EKF lane change'),
        (re.compile(r'failsafe(?!.*\b(cleared|off|disabled|resolved)\b)', re.IGNORECASE),
         'failsafe'),
        (re.compile(r'^crash', re.IGNORECASE), 'crash'))
"""Texts of a vehicle that make a flight a failed one, and what it failed by."""

SetPoint = Callable[[float, tuple[float, float, float]], tuple[float, float]]
"""Returns how far off, horizontally and in height, a place (north, east, up) is at a time, m."""

_HEADER = struct.Struct('<f')


def failure_said(text: str) -> str:
    """Return what a vehicle's text makes a flight fail by, '' if by nothing.

    Examples
    --------
    >>> failure_said('EKF3 lane switch 1'), failure_said('Radio Failsafe Cleared')
    ('EKF lane change: EKF3 lane switch 1', '')
    """
    for pattern, what in SAID:
        if pattern.search(text):
            return f'{what}: {text}'
    return ''


class Recorder:
    """Records a flight, and lets the seed's air blow over it.

    Parameters
    ----------
    entry : Entry
    blows : bool
        Whether the wind is written from here; else others write it.

    Attributes
    ----------
    heard : threading.Event
        Set at the first tick.
    time : float
        Newest time of the vehicle, s since its boot.
    armed : bool
    place : tuple of float or None
        North, east, up, m.
    measured : bool or None
        Whether what is recorded now is measured; None: while it flies.
    set_point : callable or None
        How far off it is; None: as the vehicle says itself.
    failure : str
        What the vehicle said that makes the flight a failed one.
    log : TelemetryLog
    flown : Air or None
        The wind that the vehicle was given, as the log has it; known after `samples`.
    """

    def __init__(self, entry: Entry, blows: bool = True) -> None:
        self._air = air_of(entry)
        self._blows = blows
        self._grid = TickGrid()
        self._rows: list[tuple[float, ...]] = []
        self._newest: Odometry | None = None
        self._session: Session | None = None
        self._told: dict[int, tuple[float, Any]] = {}
        self._sent: dict[bytes, float] = {}
        self._late = self._before = 0
        self._flew = False
        self._codec = mavlink.MAVLink(None, 245, mavlink.MAV_COMP_ID_ONBOARD_COMPUTER)
        self._vehicle_codec = mavlink.MAVLink(None)
        self.heard = threading.Event()
        self.time = 0.0
        self.armed = False
        self.place: tuple[float, float, float] | None = None
        self.measured: bool | None = None
        self.set_point: SetPoint | None = None
        self.failure = ''
        self.log = TelemetryLog()
        self.flown: Air | None = None
        self.trouble: list[BaseException] = []

    @contextmanager
    def session(self, port: int, folder: Path) -> Iterator[None]:
        """Serve the vehicle at a port as long as this is open."""
        loop = LinkLoop(self.trouble.append)
        session = self._session = Session(
            parse_connection(f'tcp:127.0.0.1:{port}'), SessionSettings(state_dir=str(folder)),
            on_event=self._event, on_tick=self._tick, on_odometry=self._odometry,
            on_armed=self._armed, on_message=self._message, intervals=INTERVALS)
        session.link.count_echoes(self._echo)
        loop.start()
        session.start(loop)
        try:
            yield
        finally:
            loop.stop()  # the vehicle is thrown away: nothing needs to be put back

    # ------------------------------------------------------------------ from the link

    def _event(self, event: Event) -> None:
        pass

    def _armed(self, milliseconds: int) -> None:
        self.armed = bool(milliseconds)
        self._air.armed_at = milliseconds / 1000.0 if milliseconds else None

    def _odometry(self, sample: Odometry) -> None:
        self._newest = sample
        east, north, up = sample.position
        self.place = north, east, up
        self._air.odometry(sample.time_ms * 1_000_000, sample.position, sample.velocity_enu,
                           sample.true, lambda: sample.orientation)

    def _message(self, message: Any) -> None:
        codec = self._vehicle_codec
        codec.srcSystem, codec.srcComponent = message.get_srcSystem(), message.get_srcComponent()
        self.log.add(time.time_ns() // 1000, bytes(message.pack(codec)))
        codec.seq = (codec.seq + 1) % 256
        ident = message.get_msgId()
        self._told[ident] = self.time, message
        if ident == mavlink.MAVLINK_MSG_ID_STATUSTEXT and not self.failure:
            self.failure = failure_said(message.text)

    def _echo(self, name: bytes, value: float) -> bool:
        session = self._session
        assert session is not None
        if name == b'SIM_WIND_SPD':
            sent = self._sent.pop(_HEADER.pack(value), None)
            if sent is not None:
                self._late += self.time - sent > LATE
        return session.parameters.echo(name, value, time.monotonic())

    def _tick(self, milliseconds: int) -> None:
        self.time = milliseconds / 1000.0
        session, sample = self._session, self._newest
        if not self._flew:
            # Until the vehicle sends its time as often as it was asked to, ticks pass unheard
            self._flew, self._before = self.armed, self._missed
        self.heard.set()
        if session is None:
            return
        blown, wind = (NAN, NAN, NAN), (NAN, NAN, NAN)
        if self._blows:
            newest = self._air.advance(milliseconds * 1_000_000).tick
            if newest is None:
                return
            made = newest.sim_wind
            wind = made.speed, made.direction, made.direction_z
            session.set_wind(Wind(*wind, gust=newest.gust_enu))
            self._note(session, wind)
            east, north, up = (
                a + b for a, b in zip(newest.mean_enu, newest.gust_enu, strict=True))
            blown = east, north, up
        else:
            self._grid.advance(milliseconds * 1_000_000)
        if sample is not None:
            self._rows.append(self._row(sample, blown, wind))

    def _note(self, session: Session, wind: tuple[float, float, float]) -> None:
        """Note what is being sent, for the log and for its echo."""
        if len(self._sent) > 200:
            self._sent.clear()  # echoes that never came
        self._sent[_HEADER.pack(wind[0])] = self.time
        for name, value in zip(('SPD', 'DIR', 'DIR_Z'), wind, strict=True):
            message = mavlink.MAVLink_param_set_message(
                session.link.system, session.link.component, f'SIM_WIND_{name}'.encode(), value,
                mavlink.MAV_PARAM_TYPE_REAL32)
            self.log.add(time.time_ns() // 1000, message.pack(self._codec))
            self._codec.seq = (self._codec.seq + 1) % 256

    def _row(self, sample: Odometry, blown: tuple[float, float, float],
             wind: tuple[float, float, float]) -> tuple[float, ...]:
        east, north, up = sample.position
        v_east, v_north, _ = sample.velocity_enu
        flying = self.armed and up > FLYING_ABOVE if self.measured is None else self.measured
        roll, pitch, _ = sample.attitude
        roll_rate, pitch_rate, _ = sample.angular_velocity
        off, height = (self._off_as_told((north, east, up)) if self.set_point is None
                       else self.set_point(self.time, (north, east, up)))
        nav = self._fresh(mavlink.MAVLINK_MSG_ID_NAV_CONTROLLER_OUTPUT)
        hud = self._fresh(mavlink.MAVLINK_MSG_ID_VFR_HUD)
        return (self.time, float(flying), north, east, up, off, height, roll, pitch, roll_rate,
                pitch_rate, NAN if hud is None else float(hud.throttle),
                math.hypot(v_north - blown[1], v_east - blown[0]),
                # ArduPilot's has cm/s in spite of the message's m/s, and 0 on copters
                NAN if nav is None or not nav.aspd_error else nav.aspd_error / 100.0,
                *blown, NAN, NAN, *wind)

    def _fresh(self, ident: int) -> Any:
        at, message = self._told.get(ident, (-math.inf, None))
        return message if self.time - at <= FRESH else None

    def _off_as_told(self, place: tuple[float, float, float]) -> tuple[float, float]:
        """Return how far off the vehicle says it is; NaN where it says nothing."""
        target = self._fresh(mavlink.MAVLINK_MSG_ID_POSITION_TARGET_LOCAL_NED)
        if target is not None:
            north, east, up = place
            return math.hypot(north - target.x, east - target.y), up + target.z
        nav = self._fresh(mavlink.MAVLINK_MSG_ID_NAV_CONTROLLER_OUTPUT)
        return (NAN, NAN) if nav is None else (abs(nav.xtrack_error), -nav.alt_error)

    # ------------------------------------------------------------------ afterwards

    def samples(self, failure: str, folder: Path) -> Samples:
        """Return what was recorded, EKF3's wind from the log among it.

        Parameters
        ----------
        failure : str
            Why the flight failed, if it did.
        folder : Path
            Where a file may be written.
        """
        if self.trouble and not failure:
            failure = f'{type(self.trouble[0]).__name__}: {self.trouble[0]}'
        table = np.array(self._rows, dtype=float).reshape(-1, len(COLUMNS)).T.copy()
        columns = dict(zip(COLUMNS, table, strict=True))
        columns['ekf_wind_east'], columns['ekf_wind_north'] = self._ekf_wind(columns['t'], folder)
        return Samples(columns, failure or self.failure, self.time,
                       self._missed - self._before, self._late)

    @property
    def _missed(self) -> int:
        return self._air.grid.missed if self._blows else self._grid.missed

    def _ekf_wind(self, t: NDArray[np.float64],
                  folder: Path) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return EKF3's wind at some times, NaN while it estimates none."""
        nothing = np.full(len(t), NAN)
        path = folder / 'recorded.tlog'
        path.write_bytes(self.log.content)
        try:
            flights = read_tlog_flights(path)
        except RecordError:
            return nothing, nothing
        self.flown = flights[-1].air
        ekf = flights[-1].ekf
        if ekf is None or not len(ekf):
            return nothing, nothing
        at = np.searchsorted(ekf.t, t + TICK_S / 2.0) - 1
        known = (at >= 0) & (t - ekf.t[at] <= FRESH)
        return (np.where(known, ekf.wind_e[at], NAN), np.where(known, ekf.wind_n[at], NAN))
