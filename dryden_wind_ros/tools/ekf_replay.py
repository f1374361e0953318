"""Replay a telemetry log through :class:`~dryden_wind_ros.ekf.phase.WindPhaseMonitor`.

``python -m dryden_wind_ros.tools.ekf_replay FLIGHT.tlog[.gz] --csv out.csv`` writes one row for
each EKF_STATUS_REPORT, with the columns

``t_boot_s``
    Vehicle time at that message, s since boot: the newest ``time_boot_ms`` heard.
``phase``
    What EKF3's own log would say: ``ground``, ``inhibited``, ``init``, ``learning``, ``coast`` or
    ``relearn``. A copter without drag fusion, for which the monitor says NOT_ESTIMATED, is
    ``ground`` while disarmed and ``inhibited`` while armed; so is a vehicle that EKF3 flies without
    its wind being in use. ``unknown`` where not enough was heard yet.
``wind_n``, ``wind_e``
    The estimate, the velocity of the air, m/s; ``nan`` where there is none.
``settled``
    1 where the estimate may be believed, else 0.

With ``--truth truth.csv`` (columns ``t_boot_s`` and ``phase`` at least) it prints how well the
phases agree; with ``--mean-wind SPEED FROM`` how far the settled estimate is from that wind.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import struct
import sys
import time
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.ekf.phase import WindPhaseMonitor

COLUMNS = ('t_boot_s', 'phase', 'wind_n', 'wind_e', 'settled')

ESTIMATING = frozenset(('init', 'learning', 'relearn'))
"""The phases that count as one when the merged agreement is asked for."""

_MAGIC_V1 = 0xFE
_MAGIC_V2 = 0xFD
_STAMP = 8           # bytes of big-endian microseconds before each packet
_FOREIGN_AFTER = 4096  # bytes without a packet at the start of a file that is no telemetry log


class LogFileError(Exception):
    """A log cannot be read; the message names the file and what was wrong with it."""


@dataclass
class TlogReader:
    """Messages of a MAVLink telemetry log (.tlog, or .tlog.gz), one vehicle or several.

    Parameters
    ----------
    path : Path
        The log: for each message an 8-byte big-endian time in microseconds and the packet.
    types : collection of str, optional
        Only messages of these types are decoded. Default: all.
    progress : callable, optional
        Called with the fraction read, 0 to 1, now and then.

    Attributes
    ----------
    messages : int
        Packets read so far.
    bad_bytes : int
        Bytes that belonged to no packet.
    problem : str
        What was wrong with the file's end, if anything ("" if it is whole).

    Raises
    ------
    LogFileError
        While iterating: the file cannot be opened or holds no MAVLink.
    """

    path: Path
    types: Iterable[str] | None = None
    progress: Callable[[float], None] | None = None
    messages: int = field(default=0, init=False)
    bad_bytes: int = field(default=0, init=False)
    problem: str = field(default='', init=False)

    def __iter__(self) -> Iterator[tuple[float, Any]]:
        """Yield (stamp in s, message)."""
        data = self._read()
        wanted = None
        if self.types is not None:
            names = frozenset(self.types)
            wanted = {number for number, kind in mavlink.mavlink_map.items()
                      if kind.msgname in names}
        parser = mavlink.MAVLink(None)
        at, size, tick = 0, len(data), 0
        in_step = False  # the last packet was good, so the next begins where it ends
        while at + _STAMP + 8 <= size:
            length = _packet_length(data, at + _STAMP)
            end = at + _STAMP + length
            if length and end > size and in_step:
                self.problem = self.problem or 'cut off in the middle of a message'
                break
            message = None
            if length and end <= size:
                packet = data[at + _STAMP:end]
                number = (int.from_bytes(packet[7:10], 'little') if packet[0] == _MAGIC_V2
                          else packet[5])
                if in_step and wanted is not None and number not in wanted \
                        and number in mavlink.mavlink_map:
                    self.messages += 1
                    at = end
                    continue
                message = _decode(parser, packet)
            if message is None:
                # In step, a bad packet (or one of an unknown kind) is left out as a whole.
                if in_step and length:
                    at = end
                else:
                    at = self._skip(at)
                in_step = False
                continue
            in_step = True
            self.messages += 1
            if wanted is None or number in wanted:
                yield int.from_bytes(data[at:at + _STAMP], 'big') * 1e-6, message
            at = end
            tick += 1
            if self.progress is not None and not tick % 2000:
                self.progress(at / size)
        if not self.messages:
            raise LogFileError(f'{self.path}: no MAVLink messages in it; not a telemetry log?')
        if 0 < size - at < _STAMP + 8:
            self.problem = self.problem or 'cut off in the middle of a message'
        if self.progress is not None:
            self.progress(1.0)

    def _skip(self, at: int) -> int:
        self.bad_bytes += 1
        if not self.messages and at > _FOREIGN_AFTER:
            raise LogFileError(f'{self.path}: no MAVLink messages in its first {_FOREIGN_AFTER} '
                               'bytes; not a telemetry log?')
        return at + 1

    def _read(self) -> bytes:
        try:
            with open(self.path, 'rb') as file:
                data = file.read()
        except OSError as error:
            raise LogFileError(f'{self.path}: {error.strerror or error}') from error
        if data[:2] != b'\x1f\x8b':
            return data
        whole = zlib.decompressobj(wbits=31)
        try:
            text = whole.decompress(data)
        except zlib.error as error:
            return self._read_broken_gzip(error)
        if not whole.eof:
            self.problem = 'the compressed file is cut off'
        return text

    def _read_broken_gzip(self, error: Exception) -> bytes:
        parts = []
        try:
            with gzip.open(self.path, 'rb') as file:
                while part := file.read(4096):
                    parts.append(part)
        except (OSError, EOFError, zlib.error):
            pass
        if not parts:
            raise LogFileError(f'{self.path}: not a gzip file after all ({error})') from error
        self.problem = f'the compressed file is damaged ({error})'
        return b''.join(parts)


def _decode(parser: Any, packet: bytes) -> Any:
    """Return the message of a packet, None if its checksum or its kind is wrong."""
    try:
        message = parser.decode(bytearray(packet))
    except (mavlink.MAVError, struct.error, UnicodeDecodeError):
        return None
    # The checksum of an unknown kind cannot be checked: it could be anything.
    unknown = getattr(mavlink, 'MAVLink_unknown', ())  # older pymavlink raises instead
    return None if isinstance(message, unknown) else message


def _packet_length(data: bytes, at: int) -> int:
    """Return the length of the MAVLink packet that starts here, 0 if none does."""
    if data[at] == _MAGIC_V2:
        return data[at + 1] + 12 + (13 if data[at + 2] & 1 else 0)
    if data[at] == _MAGIC_V1:
        return data[at + 1] + 8
    return 0


MESSAGES = ('ATTITUDE', 'EKF_STATUS_REPORT', 'EXTENDED_SYS_STATE', 'GLOBAL_POSITION_INT',
            'HEARTBEAT', 'LOCAL_POSITION_NED', 'PARAM_VALUE', 'STATUSTEXT', 'SYSTEM_TIME',
            'VFR_HUD', 'WIND')
"""Message types that the monitor takes part in."""


@dataclass(frozen=True)
class Row:
    """One line of the output: the columns of :data:`COLUMNS`."""

    t_boot_s: float
    phase: str
    wind_n: float
    wind_e: float
    settled: bool


def replay(messages: Iterable[tuple[float, Any]],
           monitor: WindPhaseMonitor | None = None) -> Iterator[Row]:
    """Yield one row for each EKF_STATUS_REPORT of the vehicle among the messages.

    Parameters
    ----------
    messages : iterable of (float, message)
        As :class:`TlogReader` gives them; the stamps are not used.
    monitor : WindPhaseMonitor, optional
        Default: a new one.
    """
    monitor = monitor or WindPhaseMonitor()
    for _, message in messages:
        state = monitor.update(message)
        if state is not None and message.get_type() == 'EKF_STATUS_REPORT':
            yield Row(state.t, monitor.ekf3_phase.name.lower(), state.wind_n, state.wind_e,
                      state.settled)


def cost_per_message(messages: Sequence[tuple[float, Any]], repeats: int = 3) -> float:
    """Return what the monitor costs per message of a flight, s: the best of some runs.

    Parameters
    ----------
    messages : sequence of (float, message)
        A flight, decoded (``list(TlogReader(path))``): decoding is not counted.
    repeats : int
        Runs, each with a new monitor.
    """
    best = math.inf
    for _ in range(repeats):
        update = WindPhaseMonitor().update
        start = time.perf_counter()
        for _, message in messages:
            update(message)
        best = min(best, time.perf_counter() - start)
    return best / len(messages)


def write_csv(rows: Iterable[Row], file: TextIO) -> None:
    """Write rows with a header line."""
    writer = csv.writer(file, lineterminator='\n')
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow((f'{row.t_boot_s:.3f}', row.phase, f'{row.wind_n:.3f}',
                         f'{row.wind_e:.3f}', int(row.settled)))


@dataclass(frozen=True)
class Agreement:
    """How well replayed phases agree with the true ones.

    Attributes
    ----------
    exact, merged : float
        Share of the true rows, 0 to 1, with the same phase; ``merged`` counts init, learning and
        relearn as one.
    starts : tuple of (str, float, float)
        For each true start of coast, relearn and init: phase, time (s), and how much later the
        replay has it (s, NaN where it has none).
    missed, invented : tuple of (str, float, float)
        Phases longer than 2 s that only the truth, or only the replay, has: phase, start, end (s).
    """

    exact: float
    merged: float
    starts: tuple[tuple[str, float, float], ...]
    missed: tuple[tuple[str, float, float], ...]
    invented: tuple[tuple[str, float, float], ...]


Phases = Sequence[tuple[float, str]]


def agreement(rows: Phases, truth: Phases) -> Agreement:
    """Compare phases, given as (time, phase), between the first and the last time of the truth.

    Parameters
    ----------
    rows : sequence of (float, str)
        Replayed, in order of time. Each holds until the next.
    truth : sequence of (float, str)
        Sampled, in order of time.
    """
    times = [t for t, _ in rows]
    exact = merged = 0
    for t, phase in truth:
        found = rows[max(bisect_right(times, t + 1e-6) - 1, 0)][1]
        exact += found == phase
        merged += found == phase or (found in ESTIMATING and phase in ESTIMATING)
    first, last = truth[0][0], truth[-1][0]
    true = phase_spans(truth)
    had = phase_spans([row for row in rows if first - 1.0 <= row[0] <= last])
    starts = tuple(
        (phase, start, min((s - start for p, s, _ in had if p == phase), key=abs,
                           default=math.nan))
        for phase, start, _ in true if phase in ('coast', 'relearn', 'init') and start > first)
    return Agreement(exact / len(truth), merged / len(truth), starts,
                     _only_in(true, had), _only_in(had, true))


def phase_spans(phases: Phases) -> list[tuple[str, float, float]]:
    """Return (phase, start, end) of each run of equal phases; each ends where the next starts."""
    spans: list[tuple[str, float, float]] = []
    for t, phase in phases:
        if spans:
            spans[-1] = (*spans[-1][:2], t)
        if not spans or spans[-1][0] != phase:
            spans.append((phase, t, t))
    return spans


def _only_in(spans: list[tuple[str, float, float]],
             others: list[tuple[str, float, float]]) -> tuple[tuple[str, float, float], ...]:
    margin = 0.6  # s, the truth is sampled every 0.52 s
    return tuple((phase, start, end) for phase, start, end in spans
                 if end - start > 2.0 and not any(
                     other == phase and o_end > start - margin and o_start < end + margin
                     for other, o_start, o_end in others))


def read_truth(path: Path) -> list[tuple[float, str]]:
    """Read the columns ``t_boot_s`` and ``phase`` of a CSV file."""
    with open(path, newline='') as file:
        return [(float(line['t_boot_s']), line['phase']) for line in csv.DictReader(file)]


@dataclass(frozen=True)
class Settling:
    """How good the estimate is while it counts as settled.

    Attributes
    ----------
    within : float
        Share of the settled rows, 0 to 1, within 3 m/s of the mean wind; NaN if there are none.
    share : float
        Share of the true *learning* time, 0 to 1, that is settled; NaN without any.
    """

    within: float
    share: float


def settling(rows: Sequence[Row], truth: Phases, wind_n: float, wind_e: float) -> Settling:
    """Judge ``settled`` against the mean wind flown (velocity of the air, m/s)."""
    times = [t for t, _ in truth]
    settled = good = learning = learning_settled = 0
    for row in rows:
        if not times[0] <= row.t_boot_s <= times[-1]:
            continue
        if row.settled:
            settled += 1
            good += math.hypot(row.wind_n - wind_n, row.wind_e - wind_e) <= 3.0
        if truth[bisect_right(times, row.t_boot_s) - 1][1] == 'learning':
            learning += 1
            learning_settled += row.settled
    return Settling(good / settled if settled else math.nan,
                    learning_settled / learning if learning else math.nan)


def _print_scores(rows: list[Row], truth_path: Path, mean_wind: tuple[float, float] | None) -> None:
    truth = read_truth(truth_path)
    score = agreement([(row.t_boot_s, row.phase) for row in rows], truth)
    print(f'agreement: {score.merged:.2%} with init, learning and relearn as one, '
          f'{score.exact:.2%} exactly')
    for phase, start, late in score.starts:
        print(f'start of {phase} at {start:.2f} s: ' + (
            'missed' if math.isnan(late) else f'{late:+.2f} s'))
    for what, spans in (('missed', score.missed), ('invented', score.invented)):
        for phase, start, end in spans:
            print(f'{what}: {phase} {start:.2f} to {end:.2f} s')
    if mean_wind is not None:
        speed, angle = mean_wind[0], math.radians(mean_wind[1])
        good = settling(rows, truth, -speed * math.cos(angle), -speed * math.sin(angle))
        print(f'settled: {good.within:.2%} of it within 3 m/s of the mean wind; '
              f'{good.share:.2%} of learning')


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='ekf_replay', description="Replay a telemetry log and say which phase EKF3's wind "
        'estimate was in at each EKF_STATUS_REPORT.')
    parser.add_argument('flight', type=Path, help='FLIGHT.tlog or FLIGHT.tlog.gz')
    parser.add_argument('--csv', type=Path, help='file to write (default: standard output, '
                        'unless --truth is given)')
    parser.add_argument('--truth', type=Path, help='CSV with t_boot_s and phase: print the '
                        'agreement with it')
    parser.add_argument('--mean-wind', type=float, nargs=2, metavar=('SPEED', 'FROM'),
                        help='with --truth: the mean wind flown, m/s and degrees it comes from')
    parser.add_argument('--system', type=int, help='system id of the vehicle (default: the first '
                        'autopilot heard)')
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    options = _parser().parse_args(arguments)
    reader = TlogReader(options.flight, MESSAGES)
    try:
        rows = list(replay(reader, WindPhaseMonitor(system=options.system)))
        if options.csv is not None:
            with open(options.csv, 'w', newline='') as file:
                write_csv(rows, file)
        elif options.truth is None:
            write_csv(rows, sys.stdout)
        if options.truth is not None and rows:
            _print_scores(rows, options.truth, options.mean_wind)
    except LogFileError as error:
        print(f'ekf_replay: {error}', file=sys.stderr)
        return 1
    except OSError as error:
        print(f'ekf_replay: {error.filename}: {error.strerror}', file=sys.stderr)
        return 1
    except (KeyError, ValueError, IndexError) as error:
        print(f'ekf_replay: {options.truth}: not a CSV with t_boot_s and phase ({error!r})',
              file=sys.stderr)
        return 1
    if reader.problem:
        print(f'ekf_replay: {options.flight}: {reader.problem}; {reader.messages} messages read',
              file=sys.stderr)
    if not rows:
        print(f'ekf_replay: {options.flight}: no EKF_STATUS_REPORT from '
              + (f'system {options.system}' if options.system else 'an ArduPilot vehicle')
              + f' among its {reader.messages} messages', file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
