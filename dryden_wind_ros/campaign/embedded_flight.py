"""One flight of the embedded vehicle: vehicle and air in lock step, in one thread.

No sockets, no ROS and no wall clock: the same entry gives the same numbers on any machine. At every
tick of sim time (20 Hz) the vehicle goes on to it, tells where it is, and the wind of the tick is
written to its SIM_WIND_* as a bridge would::

    Autopilot -> position, velocity -> SeededAir -> AirTick.sim_wind -> write_parameter -> Autopilot
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dryden_wind_ros.campaign.course import Circle, Legs, course_of
from dryden_wind_ros.campaign.entry import Entry, vehicle_config
from dryden_wind_ros.emulator.autopilot import Autopilot
from dryden_wind_ros.emulator.flight import CRUISE_AIRSPEED, Course, Landed
from dryden_wind_ros.emulator.parameters import Eeprom, SetOutcome
from dryden_wind_ros.gusts.air import SeededAir
from dryden_wind_ros.gusts.air_settings import AirSettings
from dryden_wind_ros.gusts.frames import SimWind
from dryden_wind_ros.gusts.scenario import ScenarioGusts
from dryden_wind_ros.gusts.scenario_file import load

COLUMNS = ('t', 'measured', 'north', 'east', 'up', 'position_error', 'height_error', 'roll',
           'pitch', 'roll_rate', 'pitch_rate', 'throttle', 'airspeed', 'airspeed_error',
           'wind_east', 'wind_north', 'wind_up', 'ekf_wind_east', 'ekf_wind_north',
           'sim_wind_spd', 'sim_wind_dir', 'sim_wind_dir_z')
"""Of a flight's samples, one a tick: s, m, rad, rad/s, per cent and m/s; NaN for what is not there.

`measured` is 1 in the part that measures are taken from. The winds are those at the vehicle."""

TICK_US = 50_000
BLOWN_AWAY = 100.0
"""Further than this off its set point, a copter counts as lost, m."""

LOITER_RADIUS = 80.0


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
    """

    columns: dict[str, NDArray[np.float64]]
    failure: str
    sim_seconds: float
    ticks_missed: int = 0

    @property
    def measured(self) -> dict[str, NDArray[np.float64]]:
        """The columns of the measured part."""
        chosen = self.columns['measured'] > 0.0
        return {name: column[chosen] for name, column in self.columns.items()}


def air_of(entry: Entry) -> SeededAir:
    """Return the air of a flight, not begun yet."""
    wind = entry.wind
    air = SeededAir(AirSettings(
        mean_speed=wind.speed, mean_from_deg=wind.from_deg, mean_up=wind.up, gusts=wind.gusts,
        model=wind.model, severity=wind.severity, scale=wind.scale, seed=entry.seed))
    if wind.scenario:
        scenario = load(wind.scenario)
        air.follow_mean_wind(scenario.mean_wind(air.settings.mean), scenario.smoothing)
        if scenario.gusts:
            air.add_gust(ScenarioGusts(scenario))
    return air


def fly_embedded(entry: Entry) -> Samples:
    """Fly an entry; see the module.

    Raises
    ------
    ValueError
        If there is no such vehicle, parameter or scenario.
    """
    vehicle = Autopilot(vehicle_config(entry.vehicle, entry.seed), Eeprom())
    air = air_of(entry)
    flight, course = vehicle.flight, course_of(entry.manoeuvre)
    events = sorted(entry.events, key=lambda event: event.at)
    rows: list[tuple[float, ...]] = []
    airborne_at = begun_at = None
    failure, tick, t = 'time limit (sim)', 0, 0.0
    give_up = time.monotonic() + entry.wall_limit
    seconds = entry.manoeuvre.seconds if course is None else min(
        entry.manoeuvre.seconds, course.seconds)
    while t < entry.sim_limit:
        tick += 1
        t_us = tick * TICK_US
        t = t_us * 1e-6
        vehicle.advance(t_us)
        if tick % 200 == 0 and time.monotonic() > give_up:
            failure = f'time limit (wall, {entry.wall_limit:g} s)'
            break
        if flight.armed and air.armed_at is None:
            air.armed_at = t
        air.odometry(t_us * 1000, (flight.east, flight.north, flight.up),
                     (flight.v_east, flight.v_north, flight.v_up), True)
        newest = air.advance(t_us * 1000).tick
        assert newest is not None  # each is a new number
        wind = newest.sim_wind
        vehicle.write_parameter('SIM_WIND_SPD', wind.speed)
        vehicle.write_parameter('SIM_WIND_DIR', wind.direction)
        vehicle.write_parameter('SIM_WIND_DIR_Z', wind.direction_z)
        if airborne_at is None:
            if flight.landed is Landed.IN_AIR:
                airborne_at = t
            continue
        if not (flight.airborne and flight.armed):
            failure = 'crash'
            break
        if begun_at is None and t >= airborne_at + entry.manoeuvre.settle:
            begun_at = t
            if course is not None:
                flight.course = _way(vehicle, course, t)
        if begun_at is not None:
            while events and t - begun_at >= events[0].at:
                event = events.pop(0)
                if vehicle.write_parameter(event.parameter, event.value) not in (
                        SetOutcome.DONE, SetOutcome.SAVE_LOST):
                    raise ValueError(f'event: {event.parameter} cannot be set to {event.value:g} '
                                     f'on this {entry.vehicle.kind}')
            if course is not None:
                height = course.height(t - begun_at)
                if height is not None:
                    flight.command_altitude(height)
        rows.append(_row(t, begun_at is not None, vehicle, entry, wind))
        if entry.vehicle.kind == 'copter' and rows[-1][5] > BLOWN_AWAY:
            failure = 'blown away'
            break
        if begun_at is not None and t - begun_at >= seconds:
            failure = ''
            break
    if not failure and vehicle.internal_errors:
        failure = f'internal error 0x{vehicle.internal_errors:x}'
    table = np.array(rows, dtype=float).reshape(-1, len(COLUMNS))
    return Samples(dict(zip(COLUMNS, table.T, strict=True)), failure, t, air.grid.missed)


def _way(vehicle: Autopilot, course: Circle | Legs, start: float) -> Course:
    return lambda: course.at(vehicle.physics_us * 1e-6 - start)


def _row(t: float, measured: bool, vehicle: Autopilot, entry: Entry,
         wind: SimWind) -> tuple[float, ...]:
    flight, ekf = vehicle.flight, vehicle.ekf
    off = height = math.nan
    airspeed_error = math.nan
    if flight.dynamics is not None:
        point = flight.set_point
        off = math.hypot(flight.north - point[0], flight.east - point[1])
        height = flight.up - point[2]
    elif entry.vehicle.kind == 'plane':
        centre = flight.circle
        if centre is not None:
            off = abs(math.hypot(flight.north - centre[0], flight.east - centre[1])
                      - LOITER_RADIUS)
        height = flight.up - vehicle.config.altitude
        airspeed_error = flight.airspeed - CRUISE_AIRSPEED
    else:
        off = math.hypot(flight.north, flight.east)
        height = flight.up - vehicle.config.altitude
    estimates = ekf.active and ekf.estimates_wind
    return (t, float(measured), flight.north, flight.east, flight.up, off, height,
            flight.roll, flight.pitch, flight.roll_rate, flight.pitch_rate, flight.throttle,
            flight.airspeed, airspeed_error, flight.wind_east, flight.wind_north, flight.wind_up,
            ekf.wind_east if estimates else math.nan,
            ekf.wind_north if estimates else math.nan,
            wind.speed, wind.direction, wind.direction_z)
