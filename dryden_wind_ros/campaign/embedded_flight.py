"""One flight of the embedded vehicle: vehicle and air in lock step, in one thread.

No sockets, no ROS and no wall clock: the same entry gives the same numbers on any machine. At every
tick of sim time (20 Hz) the vehicle goes on to it, tells where it is, and the wind of the tick is
written to its SIM_WIND_* as a bridge would::

    Autopilot -> position, velocity -> LockstepAir -> SIM_WIND_* -> write_wind -> Autopilot
"""

from __future__ import annotations

import math
import struct
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dryden_wind_ros.campaign.course import Circle, Legs, course_of
from dryden_wind_ros.campaign.entry import Entry, vehicle_config
from dryden_wind_ros.campaign.telemetry_log import TelemetryLog
from dryden_wind_ros.emulator.autopilot import Autopilot
from dryden_wind_ros.emulator.flight import CRUISE_AIRSPEED, LOITER_RADIUS, Course, Landed
from dryden_wind_ros.emulator.parameters import Eeprom, SetOutcome
from dryden_wind_ros.gusts.air import SeededAir
from dryden_wind_ros.gusts.air_settings import AirSettings
from dryden_wind_ros.gusts.lockstep import lockstep
from dryden_wind_ros.gusts.scenario import ScenarioGusts
from dryden_wind_ros.gusts.scenario_file import load

COLUMNS = ('t', 'measured', 'north', 'east', 'up', 'position_error', 'height_error', 'roll',
           'pitch', 'roll_rate', 'pitch_rate', 'throttle', 'airspeed', 'airspeed_error',
           'wind_east', 'wind_north', 'wind_up', 'ekf_wind_east', 'ekf_wind_north',
           'sim_wind_spd', 'sim_wind_dir', 'sim_wind_dir_z')
"""Of a flight's samples, one a tick: s, m, rad, rad/s, per cent and m/s; NaN for what is not there.

`measured` is 1 in the part that measures are taken from. The winds are those at the vehicle."""

_ROW = struct.Struct(f'{len(COLUMNS)}d')

TICK_US = 50_000
NAN = math.nan
WALL_LIMIT = 'time limit (wall'
BLOWN_AWAY = 100.0
"""Further than this off its set point, a copter counts as lost, m."""


@dataclass(frozen=True)
class Samples:
    """What was recorded of a flight.

    Attributes
    ----------
    columns : dict of str to ndarray, shape (N,)
        See `COLUMNS`.
    failure : str
        Why it failed; '' if it did not.
    sim_seconds : float
        From boot to the end.
    ticks_missed : int
        Ticks of the air without a wind of their own.
    ticks_late : int
        Ticks whose wind came late.
    speedup : float
        At which it was flown; NaN: there was no clock.
    """

    columns: dict[str, NDArray[np.float64]]
    failure: str
    sim_seconds: float
    ticks_missed: int = 0
    ticks_late: int = 0
    speedup: float = math.nan

    @property
    def measured(self) -> dict[str, NDArray[np.float64]]:
        """The columns of the measured part."""
        chosen = self.columns['measured'] > 0.0
        return {name: column[chosen] for name, column in self.columns.items()}


def air_of(entry: Entry) -> SeededAir:
    """Return the air of a flight, not begun yet."""
    wind = entry.wind
    air = SeededAir(settings_of(entry))
    if wind.scenario:
        scenario = load(wind.scenario)
        air.follow_mean_wind(scenario.mean_wind(air.settings.mean), scenario.smoothing)
        if scenario.gusts:
            air.add_gust(ScenarioGusts(scenario))
    return air


def settings_of(entry: Entry) -> AirSettings:
    """Return the settings of a flight's air, without its scenario."""
    wind = entry.wind
    return AirSettings(
        mean_speed=wind.speed, mean_from_deg=wind.from_deg, mean_up=wind.up, gusts=wind.gusts,
        model=wind.model, severity=wind.severity, scale=wind.scale, seed=entry.seed)


def fly_embedded(entry: Entry, log: TelemetryLog | None = None) -> Samples:
    """Fly an entry; see the module.

    Parameters
    ----------
    entry : Entry
    log : TelemetryLog, optional
        Takes down what the vehicle says on a link; the flight is the same with and without.

    Raises
    ------
    ValueError
        If there is no such vehicle, parameter or scenario.
    """
    return _EmbeddedFlight(entry, log).fly()


class _EmbeddedFlight:
    def __init__(self, entry: Entry, log: TelemetryLog | None) -> None:
        self._entry = entry
        self._log = log
        self._vehicle = Autopilot(vehicle_config(entry.vehicle, entry.seed), Eeprom())
        self._air = lockstep(settings_of(entry), air_of(entry) if entry.wind.scenario else None)
        self._events = sorted(entry.events, key=lambda event: event.at)
        self._course = course_of(entry.manoeuvre)
        self._rows: list[bytes] = []

    def fly(self) -> Samples:
        """Fly until it is over."""
        entry, vehicle, flight = self._entry, self._vehicle, self._vehicle.flight
        course, record, blow = self._course, self._rows.append, self._air.wind
        pack = _ROW.pack
        log, channel = self._log, vehicle.channels[0]
        if log is not None:
            log.listen(channel)
        manoeuvre = entry.manoeuvre
        seconds = manoeuvre.seconds if course is None else min(manoeuvre.seconds, course.seconds)
        copter = entry.vehicle.kind == 'copter'
        airborne_at = begun_at = armed_at = None
        failure, tick, t = 'time limit (sim)', 0, 0.0
        give_up = time.monotonic() + entry.wall_limit
        while t < entry.sim_limit:
            tick += 1
            t_us = tick * TICK_US
            t = t_us * 1e-6
            vehicle.advance(t_us)
            if not tick % 200 and time.monotonic() > give_up:
                failure = f'{WALL_LIMIT}, {entry.wall_limit:g} s)'
                break
            if armed_at is None and flight.armed:
                armed_at = t
            wind = blow(tick, (flight.east, flight.north, flight.up),
                        (flight.v_east, flight.v_north, flight.v_up), armed_at)
            vehicle.write_wind(*wind)
            if log is not None:
                vehicle.save_parameters()  # so that they are echoed at their own time
                log.take(channel, t_us)
            if airborne_at is None:
                if flight.landed is Landed.IN_AIR:
                    airborne_at = t
                continue
            if not (flight.airborne and flight.armed):
                failure = 'crash'
                break
            if begun_at is None and t >= airborne_at + manoeuvre.settle:
                begun_at = t
                if course is not None:
                    flight.course = _way(vehicle, course, t)
            if begun_at is not None and (self._events or course is not None):
                self._go_on(t - begun_at)
            off, height, airspeed_error = self._off()
            ekf = vehicle.ekf
            east, north = ((ekf.wind_east, ekf.wind_north) if ekf.active and ekf.estimates_wind
                           else (NAN, NAN))
            record(pack(t, begun_at is not None, flight.north, flight.east, flight.up, off, height,
                    flight.roll, flight.pitch, flight.roll_rate, flight.pitch_rate,
                    flight.throttle, flight.airspeed, airspeed_error, flight.wind_east,
                    flight.wind_north, flight.wind_up, east, north, *wind))
            if off > BLOWN_AWAY and copter:
                failure = 'blown away'
                break
            if begun_at is not None and t - begun_at >= seconds:
                failure = ''
                break
        if not failure and vehicle.internal_errors:
            failure = f'internal error 0x{vehicle.internal_errors:x}'
        table = np.frombuffer(b''.join(self._rows)).reshape(-1, len(COLUMNS)).T.copy()
        return Samples(dict(zip(COLUMNS, table, strict=True)), failure, t, self._air.missed)

    def _go_on(self, since: float) -> None:
        """Do what is due so many seconds after the measured part began."""
        vehicle, events, entry = self._vehicle, self._events, self._entry
        while events and since >= events[0].at:
            event = events.pop(0)
            if vehicle.write_parameter(event.parameter, event.value) not in (
                    SetOutcome.DONE, SetOutcome.SAVE_LOST):
                raise ValueError(f'event: {event.parameter} cannot be set to {event.value:g} '
                                 f'on this {entry.vehicle.kind}')
        height = None if self._course is None else self._course.height(since)
        if height is not None:
            vehicle.flight.command_altitude(height)

    def _off(self) -> tuple[float, float, float]:
        """Return how far off its place, its height and its airspeed the vehicle is."""
        flight = self._vehicle.flight
        if flight.dynamics is not None:
            north, east, up, _ = flight.set_point
            return math.hypot(flight.north - north, flight.east - east), flight.up - up, NAN
        height = flight.up - self._vehicle.config.altitude
        if self._entry.vehicle.kind != 'plane':
            return math.hypot(flight.north, flight.east), height, NAN
        centre = flight.circle
        off = NAN if centre is None else abs(math.hypot(
            flight.north - centre[0], flight.east - centre[1]) - LOITER_RADIUS)
        return off, height, flight.airspeed - CRUISE_AIRSPEED


def _way(vehicle: Autopilot, course: Circle | Legs, start: float) -> Course:
    return lambda: course.at(vehicle.physics_us * 1e-6 - start)
