"""EKF3's wind of one flight, from its dataflash log or its telemetry log."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dryden_wind_ros.ekf.phase import WindPhase, WindPhaseMonitor
from dryden_wind_ros.gusts.flown_wind import FlownWind
from dryden_wind_ros.logs.ekf_wind import RECORDS, DataflashWind, WindLog
from dryden_wind_ros.logs.tlog import MESSAGES, LogFileError, TlogReader

_DATAFLASH_HEAD = b'\xa3\x95'

ReportProgress = Callable[[float], None]


def read_wind_log(path: Path, progress: ReportProgress | None = None) -> WindLog:
    """Read a flight from a dataflash log (.BIN, .log) or a telemetry log (.tlog, .tlog.gz).

    What the file is, is told by what is in it, not by its name.

    Parameters
    ----------
    path : Path
        The log.
    progress : callable, optional
        Called with the fraction read, 0 to 1, now and then.

    Returns
    -------
    WindLog
        The flight. Where the file is damaged, what could be read, with a note that says so.

    Raises
    ------
    LogFileError
        There is nothing to be had from the file; the message says what was found in it.
    """
    try:
        with open(path, 'rb') as file:
            head = file.read(4)
    except OSError as error:
        raise LogFileError(f'{path}: {error.strerror or error}') from error
    if not head:
        raise LogFileError(f'{path}: the file is empty')
    if head.startswith(_DATAFLASH_HEAD) or head == b'FMT,':
        return _read_dataflash(path, head == b'FMT,', progress)
    return _read_telemetry(path, progress)


def _read_dataflash(path: Path, is_text: bool, progress: ReportProgress | None) -> WindLog:
    from pymavlink import DFReader  # takes a while to import

    said = io.StringIO()  # DFReader reports damage by printing it
    percent = (lambda done: progress(done / 200.0)) if progress is not None else None
    kind = DFReader.DFReader_text if is_text else DFReader.DFReader_binary
    wind = DataflashWind()
    wanted = list(RECORDS)
    count = 0
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            reader = kind(str(path), progress_callback=percent)
        except Exception as error:
            raise LogFileError(f'{path}: cannot be read as a dataflash log ({error})') from error
        try:
            while (record := reader.recv_match(type=wanted, strict=True)) is not None:
                if record.get_type() not in RECORDS:
                    continue
                with contextlib.suppress(AttributeError, TypeError, ValueError):
                    wind.add(record)  # a record of another version may lack a field
                    count += 1
                if progress is not None and not count % 2000:
                    progress(0.5 + reader.percent / 200.0)
        except Exception as error:
            said.write(f'{error!r}\n')
        cut = '' if is_text else _cut_off(reader)
        found = sorted(reader.name_to_id)
        reader.close()
    log = wind.finish()
    notes = list(log.notes)
    if cut:
        notes.append(cut)
    if said.getvalue():
        notes.append(f'damaged: {said.getvalue().strip().splitlines()[0]}')
    if not log.t.size:
        raise LogFileError(_why_nothing(path, count, found, notes))
    return _with_notes(log, notes)


def _cut_off(reader: Any) -> str:
    """Say so if the last record of a dataflash log is not whole."""
    last, length = 0, 0
    for number, offsets in enumerate(reader.offsets):
        if len(offsets) and offsets[-1] >= last and number in reader.formats:
            last, length = offsets[-1], reader.formats[number].len
    if last + length > reader.data_len:
        return 'cut off in the middle of a record; read up to there'
    return ''


def _why_nothing(path: Path, count: int, found: list[str], notes: list[str]) -> str:
    if not found:
        return f'{path}: no dataflash records in it; not a dataflash log?'
    ekf3 = [name for name in found if name.startswith('XK')]
    text = f'{path}: no XKV2 records (variances of EKF3), so no phases can be told. '
    if count:
        text += f'{count} other records of use were read. '
    text += (f'EKF3 records in it: {", ".join(ekf3)}. ' if ekf3
             else f'It has no EKF3 records at all, but {", ".join(found[:8])} and the like. ')
    text += 'Log with EK3_ENABLE 1 and EK3_LOG_LEVEL 0.'
    return ' '.join([text, *(f'The file is {note}.' for note in notes if 'cut off' in note)])


def _read_telemetry(path: Path, progress: ReportProgress | None) -> WindLog:
    reader = TlogReader(path, (*MESSAGES, 'GLOBAL_POSITION_INT'), progress)
    monitor = WindPhaseMonitor()
    flown = FlownWind()
    height = math.nan
    rows: list[tuple[float, ...]] = []
    phases: list[WindPhase] = []
    restarts = 0
    for _, message in reader:
        kind = message.get_type()
        state = monitor.update(message)
        if monitor.restarts != restarts:
            restarts = monitor.restarts
            flown = FlownWind()
        if message.get_srcSystem() != monitor.system:
            continue
        if kind == 'PARAM_VALUE':
            flown.set(message.param_id, message.param_value, monitor.t)
        elif kind == 'GLOBAL_POSITION_INT':
            height = message.relative_alt * 1e-3
        elif kind == 'EKF_STATUS_REPORT' and state is not None:
            flown.advance(state.t)
            east, north, _ = flown.at(height)
            rows.append((state.t, state.wind_n, state.wind_e, north, east, state.settled))
            phases.append(state.phase)
    if not rows:
        raise LogFileError(f'{path}: no EKF_STATUS_REPORT of an ArduPilot vehicle among its '
                           f'{reader.messages} messages. Record with stream EXTRA3 on.')
    table = np.array(rows, dtype=np.float64)
    unknown = np.full(len(rows), math.nan)
    notes = list(flown.notes)
    if restarts:
        notes.append(f'the vehicle was started again {restarts} times; times count from each boot')
    if reader.problem:
        notes.append(f'{reader.problem}; {reader.messages} messages were read')
    return WindLog(table[:, 0], tuple(phases), table[:, 1], table[:, 2], table[:, 3], table[:, 4],
                   unknown, unknown.copy(), table[:, 5].astype(bool), tuple(notes))


def _with_notes(log: WindLog, notes: list[str]) -> WindLog:
    return WindLog(log.t, log.phase, log.wind_n, log.wind_e, log.flown_n, log.flown_e,
                   log.variance_n, log.variance_e, log.settled, tuple(notes))
