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
    1 where the estimate may be believed, else 0; judged against the wind flown where SIM_WIND_* are
    in the log.

With ``--truth truth.csv`` (columns ``t_boot_s`` and ``phase`` at least) it prints how well the
phases agree; with ``--mean-wind SPEED FROM`` how far the settled estimate is from that wind.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from dryden_wind_ros.ekf.phase import WindPhaseMonitor
from dryden_wind_ros.ekf.telemetry import TelemetryFollower
from dryden_wind_ros.logs.flight import RecordError
from dryden_wind_ros.logs.phases import stretches
from dryden_wind_ros.logs.tlog import Telemetry
from dryden_wind_ros.logs.tlog_ekf import follow_ekf
from dryden_wind_ros.logs.tlog_flights import notes_of
from dryden_wind_ros.logs.tlog_vehicle import Vehicle
from dryden_wind_ros.tools.command_line import pipe_safe, progress_bar, wrong_outputs

COLUMNS = ('t_boot_s', 'phase', 'wind_n', 'wind_e', 'settled')

ESTIMATING = frozenset(('init', 'learning', 'relearn'))
"""The phases that count as one when the merged agreement is asked for."""

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
        As `logs.tlog.TlogReader` gives them; the stamps are not used.
    monitor : WindPhaseMonitor, optional
        Default: a new one.
    """
    follower = TelemetryFollower(monitor)
    monitor = follower.monitor
    for _, message in messages:
        state = follower.update(message)
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
    names = [phase for _, phase in phases]
    return [(names[one.rows.start], one.start, one.end)
            for one in stretches([t for t, _ in phases], names)]


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
        if math.isnan(good.within):
            print('settled: never')
        else:
            print(f'settled: {good.within:.2%} of it within 3 m/s of the mean wind; '
                  f'{_percent(good.share)} of learning')


def _percent(share: float) -> str:
    return 'none' if math.isnan(share) else f'{share:.2%}'


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


@pipe_safe
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    options = _parser().parse_args(arguments)
    path: Path = options.flight
    inputs = [path, *([options.truth] if options.truth is not None else [])]
    if (wrong := wrong_outputs([options.csv], inputs)) is not None:
        print(f'ekf_replay: {wrong}', file=sys.stderr)
        return 1
    try:
        with progress_bar() as progress:
            log = Telemetry(path, lambda done: progress(f'reading {path.name}', 0.2 * done))
            vehicle = Vehicle(log, options.system)
            rows, flights = _rows(vehicle, lambda done: progress('replaying', 0.2 + 0.8 * done))
        if options.csv is not None:
            with open(options.csv, 'w', newline='') as file:
                write_csv(rows, file)
        elif options.truth is None:
            write_csv(rows, sys.stdout)
        if options.truth is not None and rows:
            _print_scores(rows[:flights[0]], options.truth, options.mean_wind)
    except RecordError as error:
        print(f'ekf_replay: {error}', file=sys.stderr)
        return 1
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f'ekf_replay: {error.filename}: {error.strerror}', file=sys.stderr)
        return 1
    except (KeyError, ValueError, IndexError) as error:
        print(f'ekf_replay: {options.truth}: not a CSV with t_boot_s and phase ({error!r})',
              file=sys.stderr)
        return 1
    for note in notes_of(log, vehicle):
        print(f'ekf_replay: {path}: {note}', file=sys.stderr)
    if len(flights) > 1:
        print(f'ekf_replay: {path}: {len(flights)} flights; times start again at rows '
              + ', '.join(str(sum(flights[:at])) for at in range(1, len(flights))),
              file=sys.stderr)
    if not rows:
        print(f'ekf_replay: {path}: no EKF_STATUS_REPORT from system {vehicle.source[0]} among its '
              f'{len(log)} messages', file=sys.stderr)
        return 1
    return 0


def _rows(vehicle: Vehicle, progress: Callable[[float], None]) -> tuple[list[Row], list[int]]:
    """Return the rows of all flights, and how many each has."""
    rows: list[Row] = []
    counts = [0] * vehicle.flights
    for one in follow_ekf(vehicle, progress):
        rows.append(Row(one.t, one.ekf3_phase.name.lower(), one.wind_n, one.wind_e, one.settled))
        counts[one.flight] += 1
    return rows, [count for count in counts if count] or [0]


if __name__ == '__main__':
    sys.exit(main())
