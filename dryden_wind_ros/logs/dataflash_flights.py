"""Flights of a dataflash log: the wind given, height and airspeed, and EKF3's wind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dryden_wind_ros.logs.air import SIM_WIND_DEFAULTS, Series, air_of_log
from dryden_wind_ros.logs.dataflash import DataflashLog, Progress, Table, read_dataflash
from dryden_wind_ros.logs.ekf_wind import RECORDS, ekf_of, wind_of_dataflash
from dryden_wind_ros.logs.flight import FlightRecord, RecordError

_WANTED = {**RECORDS, 'ARSP': ('I', 'Airspeed')}
_NOTHING: Series = (np.empty(0), np.empty(0))


def read_dataflash_flights(path: Path, progress: Progress | None = None, *,
                           replayed: bool = False) -> list[FlightRecord]:
    """Read the flights of a dataflash log.

    Parameters
    ----------
    path : Path
        .BIN or .log, or either in gzip.
    progress : callable, optional
        Called with the fraction read, 0 to 1, now and then.
    replayed : bool
        Of a log that Replay has added its filters to: EKF3's wind of those.

    Returns
    -------
    list of FlightRecord
        One for each start of the vehicle in the file.

    Raises
    ------
    RecordError
        If nothing of use can be read; the message says what is in the log.
    """
    log = read_dataflash(path, _WANTED, progress)
    flights = []
    for number in range(log.flights):
        tables = {name: table.of_flight(number) for name, table in log.tables.items()}
        flights.append(_flight(path, log, {
            name: table for name, table in tables.items() if len(table.t)}, number, replayed))
    flights = [flight for flight in flights if flight.ekf is not None or len(flight.air)]
    if not flights:
        raise RecordError(f'{path}: {_why_no_ekf(log)}{"; ".join(["", *log.notes])}')
    return flights


def _flight(path: Path, log: DataflashLog, tables: Mapping[str, Table], number: int,
            replayed: bool) -> FlightRecord:
    notes = list(log.notes)
    winds = {name: _values(tables, name) for name in SIM_WIND_DEFAULTS}
    air = air_of_log(winds, _column(tables, 'POS', 'RelHomeAlt'), _airspeed(tables), notes)
    wind_log = wind_of_dataflash(tables, replayed=replayed)
    no_ekf = ''
    if len(wind_log.t):
        notes += wind_log.notes
    else:
        no_ekf = _why_no_ekf(log)
        notes.append(no_ekf)
    if any(len(t) for t, _ in winds.values()):
        notes.append('a dataflash log does not hold the settings of the gust model: record '
                     'wind/state in a bag for a comparison with it')
    else:
        notes.append('no SIM_WIND_* values in the log: the wind given is not known')
    if log.flights > 1:
        notes.append(f"the vehicle's clock starts again within the log: flight {number + 1} of "
                     f'{log.flights}')
    several = log.flights > 1
    return FlightRecord(
        f'{path.name} flight {number + 1}' if several else path.name, str(path), 'dataflash', air,
        (), None if no_ekf else ekf_of(wind_log), tuple(notes),
        number=number + 1 if several else 0, wind_log=None if no_ekf else wind_log, no_ekf=no_ekf)


def _column(tables: Mapping[str, Table], kind: str, name: str) -> Series:
    table = tables.get(kind)
    if table is None or name not in table.columns:
        return _NOTHING
    return table.t, table.columns[name]


def _values(tables: Mapping[str, Table], parameter: str) -> Series:
    table = tables.get('PARM')
    if table is None or not {'Name', 'Value'} <= table.columns.keys():
        return _NOTHING
    rows = (table.columns['Name'] == parameter.encode()) & np.isfinite(table.columns['Value'])
    return table.t[rows], table.columns['Value'][rows]


def _airspeed(tables: Mapping[str, Table]) -> Series:
    t, values = _column(tables, 'ARSP', 'Airspeed')
    if 'ARSP' in tables and 'I' in tables['ARSP'].columns:
        first = tables['ARSP'].columns['I'] == 0
        return t[first], values[first]
    return t, values


def _why_no_ekf(log: DataflashLog) -> str:
    """Say that no phases can be told, and what the log holds instead."""
    ekf3 = [name for name in sorted(log.counts) if name.startswith('XK')]
    text = 'no XKV2 records (variances of EKF3), so no phases can be told. '
    if ekf3:
        text += f'EKF3 records in it: {_counted(log, ekf3)}. '
    else:
        text += 'It has no EKF3 records at all'
        others = [name for name, _ in sorted(
            log.counts.items(), key=lambda one: -one[1]) if name != 'FMT']
        text += f'; what it has most of: {_counted(log, others[:8])}. ' if others else '. '
    return f'{text}Log with EK3_ENABLE 1 and EK3_LOG_LEVEL 0'


def _counted(log: DataflashLog, names: list[str]) -> str:
    return ', '.join(f'{log.counts[name]} {name}' for name in names)
