"""Flights of a telemetry log: the wind given, height and airspeed, and EKF3's wind.

Only what the vehicle itself says counts: a log holds whatever was on the link, and a gimbal, a
ground station or a second vehicle has a clock, a height and parameters of its own.
"""

from __future__ import annotations

import math
from array import array
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.ekf.phase import WindPhase
from dryden_wind_ros.logs.air import SIM_WIND_DEFAULTS, Series, air_of_log
from dryden_wind_ros.logs.ekf_wind import WindLog, ekf_of
from dryden_wind_ros.logs.flight import FlightRecord, FloatArray, IntArray, RecordError
from dryden_wind_ros.logs.tlog import Progress, Source, Telemetry
from dryden_wind_ros.logs.tlog_ekf import follow_ekf
from dryden_wind_ros.logs.tlog_vehicle import Vehicle


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
    with np.errstate(invalid='ignore'):  # a number may be a signalling NaN
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
    rows: dict[int, array[float]] = {}
    phases: dict[int, list[WindPhase]] = {}
    notes: dict[int, tuple[str, ...]] = {}
    for one in follow_ekf(vehicle, progress):
        if one.flight not in rows:
            rows[one.flight], phases[one.flight] = array('d'), []
        rows[one.flight].extend(
            (one.t, one.wind_n, one.wind_e, one.flown_n, one.flown_e, one.settled))
        phases[one.flight].append(one.phase)
        notes[one.flight] = one.notes
    found = {}
    for number, numbers in rows.items():
        t, wind_n, wind_e, flown_n, flown_e, settled = np.array(numbers).reshape(-1, 6).T.copy()
        unknown = np.full(len(t), math.nan)
        found[number] = WindLog(
            t, tuple(phases[number]), wind_n, wind_e, flown_n, flown_e, unknown, unknown.copy(),
            settled.astype(bool), notes[number])
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
