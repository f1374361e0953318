"""Flights of a telemetry log: the wind given, height and airspeed, and EKF3's wind.

Only what the vehicle itself says counts: a log holds whatever was on the link, and a gimbal, a
ground station or a second vehicle has a clock, a height and parameters of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.ekf.phase import WindPhase, WindPhaseMonitor
from dryden_wind_ros.ekf.telemetry import TelemetryFollower
from dryden_wind_ros.logs.air import SIM_WIND_DEFAULTS, Series, air_of_log
from dryden_wind_ros.logs.ekf_wind import WindLog, ekf_of
from dryden_wind_ros.logs.flight import FlightRecord, FloatArray, IntArray, RecordError
from dryden_wind_ros.logs.times import sort_out
from dryden_wind_ros.logs.tlog import MESSAGES, Heard, Progress, Source, Telemetry, in_order

_TIMED = ('SYSTEM_TIME', 'ATTITUDE', 'GLOBAL_POSITION_INT', 'LOCAL_POSITION_NED')
_CLOCKS = ('SYSTEM_TIME', 'ATTITUDE', 'GLOBAL_POSITION_INT')  # until read, the newest one counts
_RATE = 0.1  # s, what is oftener than this is not evaluated oftener
_BLOCK = 20_000


def read_tlog_flights(path: Path, progress: Progress | None = None, *,
                      system: int | None = None) -> list[FlightRecord]:
    """Read the flights of one vehicle in a telemetry log.

    Parameters
    ----------
    path : Path
        .tlog or .tlog.gz.
    progress : callable, optional
        Called with the fraction read, 0 to 1, now and then.
    system : int, optional
        System id of the vehicle; the first ArduPilot vehicle by default.

    Returns
    -------
    list of FlightRecord
        One for each start of the vehicle.

    Raises
    ------
    RecordError
        If nothing of use can be read; the message says what is in the log.
    """
    report = progress or (lambda fraction: None)
    log = Telemetry(path, lambda fraction: report(0.2 * fraction))
    vehicle = Vehicle(log, system)
    winds = _winds(log, vehicle)
    ekf = _ekf(vehicle, lambda fraction: report(0.25 + 0.7 * fraction))
    height = _series(vehicle, 'GLOBAL_POSITION_INT', 'relative_alt', 1e-3)
    above_origin = _series(vehicle, 'LOCAL_POSITION_NED', 'z', -1.0)
    airspeed = _series(vehicle, 'VFR_HUD', 'airspeed', 1.0)
    notes = notes_of(log, vehicle)
    flights = []
    for number in range(vehicle.flights):
        own = _of_flight(height, number)
        flight = _flight(log, vehicle, {name: _of_flight(one, number) for name, one in
                                        winds.items()},
                         own if len(own[0]) else _of_flight(above_origin, number),
                         _of_flight(airspeed, number), ekf.get(number), number, list(notes))
        if flight.ekf is not None or len(flight.air):
            flights.append(flight)
    report(1.0)
    if not flights:
        raise RecordError(f'{path}: {_why_no_ekf(log, vehicle.source)}')
    return flights


def _vehicle(log: Telemetry, system: int | None) -> Source:
    """Choose whom to follow."""
    autopilots = [source for _, source in log.autopilots()]
    if not autopilots:
        # A log without HEARTBEAT: whoever reports what only an autopilot does.
        autopilots = [one.source for name in ('EKF_STATUS_REPORT', 'GLOBAL_POSITION_INT')
                      for one in log.heard(name) if one.source[1] == 1]
    for source in autopilots:
        if system is None or source[0] == system:
            return source
    there = ', '.join(dict.fromkeys(str(source[0]) for source in autopilots)) or 'none'
    if system is not None:
        raise RecordError(f'{log.path}: no ArduPilot vehicle with system id {system} in the log; '
                          f'there is {there}')
    raise RecordError(f'{log.path}: no ArduPilot vehicle, and so no EKF_STATUS_REPORT, among its '
                      f'{len(log)} messages')


class Vehicle:
    """What one vehicle says in a telemetry log, with its own clock.

    Parameters
    ----------
    log : Telemetry
        The log.
    system : int, optional
        System id; the first ArduPilot vehicle by default.

    Attributes
    ----------
    source : tuple of int
        System and component.
    heard : dict of str to Heard
        Its messages by type.
    flights : int
        How often it was started.
    bad : frozenset of int
        Rows of the log whose time those around them do not support.
    """

    def __init__(self, log: Telemetry, system: int | None = None) -> None:
        self.source = _vehicle(log, system)
        self.heard: dict[str, Heard] = {
            name: one for name in MESSAGES for one in log.heard(name, self.source)}
        self._orders = log.heard('PARAM_SET')
        timed = [self.heard[name] for name in _TIMED if name in self.heard]
        rows = np.concatenate([one.rows for one in timed] or [np.empty(0, dtype=np.int64)])
        boot = np.concatenate([one.fields['time_boot_ms'] for one in timed] or [np.empty(0)]) * 1e-3
        order = np.argsort(rows)
        rows, boot = rows[order], boot[order]
        found = sort_out(boot)
        self.flights = max(found.flights, 1)
        self.bad = frozenset(rows[~found.kept].tolist())
        self._rows, self._t = rows[found.kept], boot[found.kept]
        self._flight = found.flight[found.kept]
        for number in range(found.flights):
            mine = self._flight == number  # packets overtake each other
            self._t[mine] = np.maximum.accumulate(self._t[mine])

    def clock(self, rows: IntArray) -> tuple[FloatArray, IntArray]:
        """Return the newest time before each row, s, and the number of the flight, from 0."""
        if not len(self._rows):
            return np.zeros(len(rows)), np.zeros(len(rows), dtype=np.int64)
        place = np.maximum(np.searchsorted(self._rows, rows, side='right') - 1, 0)
        return self._t[place], self._flight[place]

    def messages(self, *, thin: bool = False) -> Iterator[tuple[int, int, Any]]:
        """Yield (row, flight, message) of what `TelemetryFollower` takes, in order of the log.

        Parameters
        ----------
        thin : bool
            Leave out what a newer message of the same type replaces before anything looks at it.
        """
        heard = [*self._thinned()] if thin else [*self.heard.values()]
        begins = self._rows[np.flatnonzero(np.diff(self._flight)) + 1].tolist()
        number = 0
        for row, message in in_order([*heard, *self._orders], _BLOCK):
            while number < len(begins) and row >= begins[number]:
                number += 1
            if row not in self.bad:
                yield row, number, message

    def _thinned(self) -> Iterator[Heard]:
        local = 'LOCAL_POSITION_NED' in self.heard
        # Speed and height begin their times when they pass a threshold: all of these are kept.
        clocks = [name for name in _CLOCKS if local or name != 'GLOBAL_POSITION_INT']
        readers = np.sort(np.concatenate(
            [one.rows for name, one in self.heard.items() if name not in _TIMED]
            + [one.rows for one in self._orders] + [np.empty(0, dtype=np.int64)]))
        bad = np.array(sorted(self.bad), dtype=np.int64)
        for name, one in self.heard.items():
            if name not in clocks or not len(one.rows):
                yield one
                continue
            usable = ~np.isin(one.rows, bad)
            if name == 'ATTITUDE':
                usable &= np.isfinite(one.fields['yaw'])
            rows, fields = one.rows[usable], one.fields[usable]
            between = np.searchsorted(readers, rows)
            span = np.floor(fields['time_boot_ms'] * (1e-3 / _RATE))
            keep = np.ones(len(rows), dtype=bool)
            keep[:-1] = (np.diff(between) != 0) | (np.diff(span) != 0.0)
            yield replace(one, rows=rows[keep], fields=fields[keep])

    @property
    def last_row(self) -> int:
        """Row of the last of its messages."""
        return max((int(one.rows[-1]) for one in self.heard.values() if len(one.rows)), default=0)


_Values = tuple[FloatArray, FloatArray, IntArray]


def _winds(log: Telemetry, vehicle: Vehicle) -> dict[str, _Values]:
    """Return time, value and flight of each SIM_WIND_*, as set and as echoed."""
    of: dict[str, list[tuple[IntArray, npt.NDArray[np.float64]]]] = {}
    echoes = log.heard('PARAM_VALUE', vehicle.source)
    orders = log.heard('PARAM_SET')
    for one in (*echoes, *orders):
        mine = np.ones(len(one.rows), dtype=bool)
        if one.kind.name == 'PARAM_SET':
            mine = one.fields['target_system'] == vehicle.source[0]
        for name in SIM_WIND_DEFAULTS:
            rows = mine & (one.fields['param_id'] == name.encode()) \
                & np.isfinite(one.fields['param_value'])
            of.setdefault(name, []).append(
                (one.rows[rows], one.fields['param_value'][rows].astype(np.float64)))
    found = {}
    for name, parts in of.items():
        rows = np.concatenate([part[0] for part in parts])
        values = np.concatenate([part[1] for part in parts])
        order = np.argsort(rows, kind='stable')
        t, flight = vehicle.clock(rows[order])
        found[name] = (t, values[order], flight)
    return found


def _series(vehicle: Vehicle, name: str, column: str, factor: float) -> _Values:
    """Return time, value and flight of one number of the vehicle."""
    one = vehicle.heard.get(name)
    if one is None:
        return np.empty(0), np.empty(0), np.empty(0, dtype=np.int64)
    t, flight = vehicle.clock(one.rows)
    values = one.fields[column].astype(np.float64) * factor
    good = np.isfinite(values)
    if vehicle.bad:
        good &= ~np.isin(one.rows, list(vehicle.bad))
    return t[good], values[good], flight[good]


def _of_flight(values: _Values, number: int) -> Series:
    """Return the part of one flight; flights come one after the other."""
    begin, end = np.searchsorted(values[2], [number, number + 1]).tolist()
    return values[0][begin:end], values[1][begin:end]


def _ekf(vehicle: Vehicle, progress: Progress) -> dict[int, WindLog]:
    """Return EKF3's wind of each flight, as the monitor follows it."""
    follower = TelemetryFollower(WindPhaseMonitor(system=vehicle.source[0]))
    rows: dict[int, list[tuple[float, ...]]] = {}
    phases: dict[int, list[WindPhase]] = {}
    notes: dict[int, tuple[str, ...]] = {}
    before = 0
    for row, number, message in vehicle.messages(thin=True):
        if number != before:
            before = number
            follower.flown.restart()
        state = follower.update(message)
        if state is not None and message.get_type() == 'EKF_STATUS_REPORT':
            rows.setdefault(number, []).append(
                (state.t, state.wind_n, state.wind_e, *follower.wind_flown(), state.settled))
            phases.setdefault(number, []).append(state.phase)
            notes[number] = follower.flown.notes
            if not len(rows[number]) % 500:
                progress(row / (vehicle.last_row + 1))
    found = {}
    for one, lines in rows.items():
        table = np.array(lines, dtype=np.float64)
        unknown = np.full(len(lines), math.nan)
        found[one] = WindLog(
            table[:, 0], tuple(phases[one]), table[:, 1], table[:, 2], table[:, 3], table[:, 4],
            unknown, unknown.copy(), table[:, 5].astype(bool), notes[one])
    return found


def _flight(log: Telemetry, vehicle: Vehicle, given: dict[str, Series], height: Series,
            airspeed: Series, wind_log: WindLog | None, number: int,
            notes: list[str]) -> FlightRecord:
    air = air_of_log(given, height, airspeed, notes)
    no_ekf = ''
    if wind_log is None:
        no_ekf = _why_no_ekf(log, vehicle.source)
        notes.append(no_ekf)
    else:
        notes += wind_log.notes
    if any(len(t) for t, _ in given.values()):
        notes.append('the wind given is known from the echoes of SIM_WIND_* only, some of which '
                     'SITL leaves out: record wind/state in a bag for a comparison with the model')
    else:
        notes.append('no SIM_WIND_* values in the log: the wind given is not known')
    several = vehicle.flights > 1
    if several:
        notes.append(f'the vehicle was started again within the log: flight {number + 1} of '
                     f'{vehicle.flights}')
    name = log.path.name
    return FlightRecord(
        f'{name} flight {number + 1}' if several else name, str(log.path), 'tlog', air, (),
        None if wind_log is None else ekf_of(wind_log), tuple(notes),
        number=number + 1 if several else 0, wind_log=wind_log, no_ekf=no_ekf)


def _why_no_ekf(log: Telemetry, vehicle: Source) -> str:
    return (f'no EKF_STATUS_REPORT of system {vehicle[0]} among its {len(log)} messages. Record '
            'with stream EXTRA3 on')


def notes_of(log: Telemetry, vehicle: Vehicle) -> list[str]:
    """Name damage, and what else is in the log."""
    notes = []
    if log.problem:
        notes.append(f'{log.problem}; {len(log)} messages were read')
    if log.packets.lost:
        notes.append(f'damaged: {log.packets.lost} bytes belong to no message and were passed over')
    if vehicle.bad:
        count = len(vehicle.bad)
        notes.append(f'{count} {"message" if count == 1 else "messages"} with a time that those '
                     'around them do not support left out')
    pilots = {source for _, source in log.autopilots()} - {vehicle.source}
    notes += [f'system {system} is an ArduPilot vehicle in the same log: --system {system} shows it'
              for system, _ in sorted(pilots)]
    others = [f'{_who(source, vehicle.source)} ({count} {"message" if count == 1 else "messages"})'
              for source, counts in sorted(log.sources().items())
              for count in [sum(counts.values())]
              if source != vehicle.source and source not in pilots]
    if others:
        more = f' and {len(others) - 6} more' if len(others) > 6 else ''
        notes.append(f'also in the log, and passed over: {", ".join(others[:6])}{more}')
    return notes


def _who(source: Source, vehicle: Source) -> str:
    system, component = source
    known = mavlink.enums['MAV_COMPONENT'].get(component)
    name = known.name.removeprefix('MAV_COMP_ID_').lower().replace('_', ' ') if known else ''
    what = f'component {component}' + (f', {name},' if name else '')
    return f'{what} of system {system}' if system != vehicle[0] else f'{what} of the same system'
