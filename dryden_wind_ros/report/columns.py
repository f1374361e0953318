"""Columns of a flight as CSV: one row a tick recorded, in the names of WindState.msg."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import TextIO

import numpy as np

from dryden_wind_ros.logs.flight import ASKED, FURTHER
from dryden_wind_ros.report.flight import AXES, FlightRecord
from dryden_wind_ros.report.phases import phase_name

_ENU = ('e', 'n', 'up')
_HELD_S = 2.0  # how long a row goes on showing the newest ekf_wind

COLUMNS = (
    'flight', 'tick', 't', 'run', 'draws', 'height', 'airspeed', *AXES,
    *(f'sigma_{axis}' for axis in AXES), *(f'length_{axis}' for axis in AXES),
    *(f'mean_{axis}' for axis in _ENU), *(f'gust_{axis}' for axis in _ENU),
    'sim_wind_spd', 'sim_wind_dir', 'sim_wind_dir_z', 'missed_ticks', 'tick_rate', 'restarts',
    'gusts', 'method', 'seed', 'scale', 'profile', 'mean_wind_speed', 'mean_wind_from_deg',
    'mean_wind_up', 'clock_origin', 'frame_id', 'ground_height', 'model', 'severity', 'scenario',
    'field_spectrum', 'span', 'field_modes', 'field_life',
    *(f'discrete_{axis}' for axis in _ENU), *ASKED, *FURTHER,
    'ekf_phase', 'ekf_settled', 'ekf_wind_e', 'ekf_wind_n', 'ekf_flown_e', 'ekf_flown_n',
    'ekf_error_speed', 'ekf_error_direction')
"""Names of the columns. m, m/s, s, degrees; ``run`` counts how often the air began anew."""


def write_csv(flights: Sequence[FlightRecord], file: TextIO) -> int:
    """Write all flights to one file; return the number of rows.

    Numbers are written in full (they read back to the same bits); what is not known is empty. The
    newest ekf_wind at most 2 s old stands beside each tick. A flight without any air has its
    ekf_wind messages as rows.
    """
    writer = csv.writer(file, lineterminator='\n')
    writer.writerow(COLUMNS)
    count = 0
    for flight in flights:
        for row in _rows(flight) if len(flight.air) else _ekf_rows(flight):
            writer.writerow(row)
            count += 1
    return count


def _rows(flight: FlightRecord) -> Iterator[list[object]]:
    air = flight.air
    numbers = np.vstack([air.height, air.airspeed, air.gust, air.sigma, air.length, air.mean_enu,
                         air.gust_enu, air.sim_wind]).T
    settings = [[s.gusts, s.method, s.seed, s.scale, s.profile, s.mean_speed, s.mean_from_deg,
                 s.mean_up, s.clock_origin, s.frame_id, s.ground_height, s.model, s.severity,
                 s.scenario, s.field_spectrum, s.span, s.field_modes, s.field_life]
                for s in flight.settings]
    unknown: list[object] = [''] * 18
    absent = np.full((len(ASKED), len(air)), np.nan)
    discrete = (np.zeros((3, len(air))) if air.discrete_enu is None and air.asked is not None
                else absent[:3] if air.discrete_enu is None else air.discrete_enu)
    places = np.vstack([discrete, absent if air.asked is None else air.asked,
                        absent if air.further is None else air.further]).T
    true = len(_ENU) + len(ASKED) + FURTHER.index('position_is_true')
    at = np.full(len(air), -1)
    if flight.ekf is not None and len(flight.ekf):
        order = np.argsort(flight.ekf.t, kind='stable')
        times = flight.ekf.t[order]
        newest = np.searchsorted(times, air.timeline() + 1e-6, side='right') - 1
        fresh = (newest >= 0) & (air.timeline() - times[newest] <= _HELD_S)
        at = np.where(fresh, order[newest], -1)
    for i, row in enumerate(numbers.tolist()):
        setting = int(air.setting[i])
        yield [flight.name, int(air.tick[i]), _text(float(air.t[i])), int(air.run[i]),
               _count(air.draws[i]), *map(_text, row), _count(air.missed[i]),
               _text(float(air.rate[i])), _count(air.restarts[i]),
               *(settings[setting] if setting >= 0 else unknown),
               *(_flag(one) if n == true else _text(one) for n, one in enumerate(
                   places[i].tolist())), *_ekf_cells(flight, int(at[i]))]


def _ekf_rows(flight: FlightRecord) -> Iterator[list[object]]:
    if flight.ekf is None:
        return
    blank = [''] * (len(COLUMNS) - 11)
    for i, t in enumerate(flight.ekf.t.tolist()):
        yield [flight.name, '', _text(t), *blank, *_ekf_cells(flight, i)]


def _ekf_cells(flight: FlightRecord, row: int) -> list[object]:
    ekf = flight.ekf
    if ekf is None or row < 0:
        return [''] * 8
    return [phase_name(int(ekf.phase[row])).replace(' ', '_'), int(ekf.settled[row]),
            *(_text(float(column[row])) for column in (
                ekf.wind_e, ekf.wind_n, ekf.flown_e, ekf.flown_n, ekf.error_speed,
                ekf.error_direction))]


def _text(value: float) -> str:
    return repr(value) if value == value else ''


def _flag(value: float) -> object:
    return int(value) if value == value else ''


def _count(value: object) -> object:
    number = int(value)  # type: ignore[call-overload]
    return number if number >= 0 else ''
