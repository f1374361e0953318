"""Telemetry logs and dataflash logs of a vehicle to flights.

These hold what ArduPilot knows: EKF3's wind and its phases, height and airspeed, and the SIM_WIND_*
values as they were set. They do not hold the gust model's settings, so there is no model to compare
with; u, v, w are then the wind less its mean over the flight.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dryden_wind_ros.gusts.tick_grid import TICK_S
from dryden_wind_ros.logs.bag import air_of_sim_wind, empty_air
from dryden_wind_ros.logs.ekf_wind import WindLog
from dryden_wind_ros.logs.flight import Air, Ekf, FlightRecord, RecordError
from dryden_wind_ros.logs.tlog import LogFileError, TlogReader
from dryden_wind_ros.logs.wind_log import read_wind_log

SPEED, DIRECTION, TILT = 'SIM_WIND_SPD', 'SIM_WIND_DIR', 'SIM_WIND_DIR_Z'
_DEFAULTS = {SPEED: 0.0, DIRECTION: 180.0, TILT: 0.0}

DATAFLASH_HEADS = (b'\xa3\x95', b'FMT,')

Progress = Callable[[float], None]


def read_log(path: Path, progress: Progress | None = None) -> FlightRecord:
    """Read a flight from a .BIN, .log, .tlog or .tlog.gz; the content decides, not the name.

    Raises
    ------
    RecordError
        If nothing of use can be read.
    """
    with open(path, 'rb') as file:
        head = file.read(4)
    dataflash = head.startswith(DATAFLASH_HEADS)
    report = progress or (lambda fraction: None)
    notes: list[str] = []
    ekf: Ekf | None = None
    why = ''
    try:
        log = read_wind_log(path, lambda fraction: report(0.5 * fraction))
        ekf = _ekf(log)
        notes.extend(log.notes)
    except LogFileError as error:
        why = str(error)
    seen = _Seen()
    try:
        read = _see_dataflash if dataflash else _see_telemetry
        read(path, seen, lambda fraction: report(0.5 + 0.5 * fraction))
    except LogFileError as error:
        if ekf is None:
            raise RecordError(str(error)) from error
    air = seen.air()
    if ekf is None and not len(air):
        raise RecordError(why)
    if ekf is None:
        notes.append(why.removeprefix(f'{path}: '))
    if not seen.winds:
        notes.append('no SIM_WIND_* values in the log: the wind given is not known')
    elif dataflash:
        notes.append('a dataflash log does not hold the settings of the gust model: record '
                     'wind/state in a bag for a comparison with it')
    else:
        notes.append('the wind given is known from the echoes of SIM_WIND_* only, some of which '
                     'SITL leaves out: record wind/state in a bag for a comparison with the model')
    return FlightRecord(path.name, str(path), 'dataflash' if dataflash else 'tlog', air, (), ekf,
                        tuple(notes))


def _ekf(log: WindLog) -> Ekf:
    speed, direction = log.errors()
    phase = np.array([int(p) for p in log.phase], dtype=np.int64)
    changes = np.flatnonzero(np.diff(phase, prepend=-1))
    since = log.t[changes][np.searchsorted(changes, np.arange(len(phase)), side='right') - 1]
    nothing = np.zeros(len(phase), dtype=bool)
    return Ekf(
        t=log.t, phase=phase, settled=nothing if log.settled is None else log.settled,
        wind_e=log.wind_e, wind_n=log.wind_n, flown_e=log.flown_e, flown_n=log.flown_n,
        error_speed=speed, error_direction=direction, reason=('',) * len(phase),
        aiding_lost=nothing, since=since)


@dataclass
class _Seen:
    """What a log says of the air, by time."""

    winds: list[tuple[float, str, float]] = field(default_factory=list)
    heights: list[tuple[float, float]] = field(default_factory=list)
    heights_of_ekf: list[tuple[float, float]] = field(default_factory=list)
    airspeeds: list[tuple[float, float]] = field(default_factory=list)

    def air(self) -> Air:
        heights = self.heights or self.heights_of_ekf
        times = [one[0] for rows in (self.winds, heights, self.airspeeds) for one in rows]
        if not times:
            return empty_air()
        ticks = np.arange(int(min(times) / TICK_S), int(max(times) / TICK_S) + 1)
        t = ticks * TICK_S
        wind = np.full((3, len(t)), np.nan)
        if self.winds:
            for row, (name, default) in enumerate(_DEFAULTS.items()):
                values = [(at, value) for at, key, value in self.winds if key == name]
                wind[row] = _held(t, values, np.nan if values else default)
        return air_of_sim_wind(t, ticks.astype(np.int64), wind, _held(t, heights, np.nan),
                               _held(t, self.airspeeds, np.nan))


def _held(t: Any, values: list[tuple[float, float]], default: float) -> Any:
    """Return the newest of `values` at each time; `default` before the first."""
    if not values:
        return np.full(len(t), default)
    table = np.array(sorted(values, key=lambda one: one[0]))
    at = np.searchsorted(table[:, 0], t + 1e-9, side='right')
    return np.where(at > 0, table[np.maximum(at - 1, 0), 1], default)


def _see_telemetry(path: Path, seen: _Seen, progress: Progress) -> None:
    reader = TlogReader(path, ('PARAM_VALUE', 'PARAM_SET', 'GLOBAL_POSITION_INT',
                               'LOCAL_POSITION_NED', 'VFR_HUD', 'SYSTEM_TIME', 'ATTITUDE'),
                        progress)
    t = 0.0
    for _, message in reader:
        boot = getattr(message, 'time_boot_ms', None)
        if boot is not None:
            if boot * 1e-3 < t - 1.0:
                break  # another boot; its times would fall onto the first one's
            t = max(t, boot * 1e-3)
        kind = message.get_type()
        if kind in ('PARAM_VALUE', 'PARAM_SET'):
            if message.param_id in _DEFAULTS:
                seen.winds.append((t, message.param_id, message.param_value))
        elif kind == 'GLOBAL_POSITION_INT':
            seen.heights.append((t, message.relative_alt * 1e-3))
        elif kind == 'LOCAL_POSITION_NED':
            seen.heights_of_ekf.append((t, -message.z))
        elif kind == 'VFR_HUD':
            seen.airspeeds.append((t, message.airspeed))


def _see_dataflash(path: Path, seen: _Seen, progress: Progress) -> None:
    from pymavlink import DFReader  # takes a while to import

    with open(path, 'rb') as file:
        is_text = file.read(4) == b'FMT,'
    kind = DFReader.DFReader_text if is_text else DFReader.DFReader_binary
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            reader = kind(str(path))
        except Exception as error:
            raise LogFileError(f'{path}: cannot be read as a dataflash log ({error})') from error
        # A broken record ends the reading; what came before it stands.
        with contextlib.suppress(Exception):
            _take_records(iter(lambda: reader.recv_match(type=['PARM', 'POS', 'ARSP']), None),
                          seen, lambda: progress(reader.percent / 100.0))
        reader.close()


def _take_records(records: Iterable[Any], seen: _Seen, report: Callable[[], None]) -> None:
    for count, record in enumerate(records):
        kind, t = record.get_type(), record.TimeUS * 1e-6
        if kind == 'PARM':
            if record.Name in _DEFAULTS:
                seen.winds.append((t, record.Name, record.Value))
        elif kind == 'POS':
            seen.heights.append((t, record.RelHomeAlt))
        elif getattr(record, 'I', 0) == 0:
            seen.airspeeds.append((t, record.Airspeed))
        if not count % 2000:
            report()

