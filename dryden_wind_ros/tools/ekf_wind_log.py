"""Say what EKF3 made of the wind in one flight, from its onboard log or its telemetry log.

``ros2 run dryden_wind_ros ekf_wind_log FLIGHT.BIN`` (or ``FLIGHT.tlog``, ``FLIGHT.tlog.gz``) prints
each phase of the estimate with its times and how far the estimate was from the wind really flown.
``--csv`` writes the columns, ``--plot`` a picture of the flight.

A dataflash log gives the phases exactly (:mod:`dryden_wind_ros.logs.ekf_wind`); a telemetry log
gives what :class:`~dryden_wind_ros.ekf.phase.WindPhaseMonitor` makes of it. The wind flown is
rebuilt from the SIM_WIND_* parameters in either; a flight outside SITL has none, and no error then.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dryden_wind_ros.ekf.phase import WindPhase
from dryden_wind_ros.logs.ekf_wind import Span, WindLog
from dryden_wind_ros.logs.flight import FlightRecord, RecordError
from dryden_wind_ros.logs.reader import read_log
from dryden_wind_ros.report.phases import phase_rgba
from dryden_wind_ros.tools.command_line import pipe_safe, progress_bar, wrong_outputs

COLUMNS = ('t_boot_s', 'phase', 'wind_n', 'wind_e', 'flown_n', 'flown_e', 'error_speed',
           'error_direction', 'variance_n', 'variance_e', 'settled', 'core', 'flight')


def write_csv(flights: Sequence[FlightRecord], path: Path) -> None:
    """Write the columns of :data:`COLUMNS`; what is not known is ``nan``, or empty."""
    with open(path, 'w', newline='') as file:
        writer = csv.writer(file, lineterminator='\n')
        writer.writerow(COLUMNS)
        for flight in flights:
            if flight.wind_log is not None:
                writer.writerows(_rows(flight.wind_log, flight.number or 1))


def _rows(log: WindLog, number: int) -> Iterator[tuple[object, ...]]:
    speed_error, direction_error = log.errors()
    columns = zip(log.t, log.wind_n, log.wind_e, log.flown_n, log.flown_e, speed_error,
                  direction_error, log.variance_n, log.variance_e, strict=True)
    for row, (t, *values) in enumerate(columns):
        yield (f'{t:.3f}', log.phase[row].name.lower(), *(f'{value:.4g}' for value in values),
               '' if log.settled is None else int(log.settled[row]),
               '' if log.core is None else int(log.core[row]), number)


def phase_table(log: WindLog, title: str) -> Table:
    """Return the phases of a flight as a table for the terminal."""
    spans = log.spans()
    settled = log.settled is not None
    cores = len({span.core for span in spans}) > 1
    table = Table(title=escape(title), box=box.SIMPLE_HEAD, pad_edge=False, caption_justify='left',
                  caption='Times in s. Winds: m/s and where they come from. Error: length of '
                  '(estimate - flown), mean and max, m/s; turn: error of the direction, degrees.'
                  + (' Settled: share of the time in which the estimate may be believed.'
                     if settled else '')
                  + (' Core: filter of EKF3 in use.' if cores else ''))
    for name in ('phase', 'from', 'to', 'for', 'estimate', 'flown', 'error', 'max', 'turn',
                 *(('settled',) if settled else ()), *(('core',) if cores else ())):
        table.add_column(name, justify='left' if name == 'phase' else 'right', no_wrap=True)
    for span in spans:
        table.add_row(
            span.phase.name.lower().replace('_', ' '), f'{span.start:.1f}', f'{span.end:.1f}',
            f'{span.end - span.start:.1f}', _wind_text(span.wind_n, span.wind_e),
            _wind_text(span.flown_n, span.flown_e), _number(span.error, 1),
            _number(span.error_max, 1), _number(span.error_direction, 0),
            *((f'{span.settled:.0%}',) if settled else ()), *((str(span.core),) if cores else ()))
    return table


def _number(value: float, digits: int) -> str:
    return f'{value:.{digits}f}' if math.isfinite(value) else '-'


def _wind_text(north: float, east: float) -> str:
    speed = math.hypot(north, east)
    if not math.isfinite(speed):
        return '-'
    return f'{speed:.1f} {math.degrees(math.atan2(-east, -north)) % 360.0:03.0f}\N{DEGREE SIGN}'


def plot(log: WindLog, path: Path, title: str) -> None:
    """Draw the flight: phases as bands, the estimate beside the wind flown, and the error.

    A line along the top of the error says where the estimate is settled.

    Parameters
    ----------
    log : WindLog
        The flight.
    path : Path
        Picture to write; its ending chooses the format (.png, .svg, .pdf).
    title : str
        Printed above the picture.

    Raises
    ------
    RecordError
        Matplotlib is not installed, or does not know the format.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise RecordError('--plot needs Matplotlib: apt install python3-matplotlib, or '
                           'pip install matplotlib') from error
    matplotlib.use('Agg')
    from matplotlib import pyplot as plt
    from matplotlib.patches import Patch

    errors, _ = log.errors()
    figure, axes = plt.subplots(3, 1, figsize=(11.0, 6.6), sharex=True, layout='constrained',
                                height_ratios=(2, 2, 1.2))
    spans = log.spans()
    for axis in axes:
        for span in spans:
            axis.axvspan(span.start, span.end, color=phase_rgba(span.phase), linewidth=0)
        axis.grid(color='#00000018', linewidth=0.6)
        axis.set_axisbelow(False)
        for side in ('top', 'right'):
            axis.spines[side].set_visible(False)
    for axis, name, flown, estimate in ((axes[0], 'north', log.flown_n, log.wind_n),
                                        (axes[1], 'east', log.flown_e, log.wind_e)):
        axis.plot(log.t, flown, color='#555555', linewidth=0.8, label='wind flown')
        axis.plot(log.t, estimate, color='#c0262d', linewidth=1.8, label="EKF3's estimate")
        axis.set_ylabel(f'towards {name}, m/s')
    _share_scale(axes[:2])
    axes[2].plot(log.t, errors, color='#c0262d', linewidth=1.2)
    marks = _mark_settled(axes[2], log)
    axes[2].set_ylabel('error, m/s')
    axes[2].set_ylim(bottom=0.0)
    axes[2].set_xlabel('vehicle time, s since boot')
    axes[2].set_xlim(float(log.t[0]), float(log.t[-1]))
    figure.align_ylabels(axes)
    _label_phases(axes[0], spans)
    lines, names = axes[0].get_legend_handles_labels()
    seen = [phase for phase in WindPhase if any(span.phase is phase for span in spans)]
    figure.legend([*lines, *marks, *(Patch(color=phase_rgba(phase)) for phase in seen)],
                  [*names, *('settled' for _ in marks),
                   *(phase.name.lower().replace('_', ' ') for phase in seen)],
                  loc='outside lower center', ncols=len(seen) + len(names) + len(marks),
                  frameon=False, fontsize=9, handlelength=1.4, columnspacing=1.4)
    figure.suptitle(title, x=0.01, ha='left', fontsize=12)
    try:
        figure.savefig(path, dpi=110)
    except ValueError as error:
        raise RecordError(f'{path}: {error}') from error
    finally:
        plt.close(figure)


def _mark_settled(axis: Any, log: WindLog) -> list[Any]:
    """Draw a line where the estimate is settled; return it, and nothing where nobody judged."""
    if log.settled is None:
        return []
    top = np.where(log.settled, 0.97, math.nan)
    return list(axis.plot(log.t, top, color='#2e7d32', linewidth=4.0, solid_capstyle='butt',
                          transform=axis.get_xaxis_transform()))


def _share_scale(axes: Any) -> None:
    """Give both components of the wind the same metres per second per inch."""
    limits = [axis.get_ylim() for axis in axes]
    half = 0.5 * max(high - low for low, high in limits)
    for axis, (low, high) in zip(axes, limits, strict=True):
        middle = 0.5 * (low + high)
        axis.set_ylim(middle - half, middle + half)


def _label_phases(axis: Any, spans: list[Span]) -> None:
    """Write the name of each phase above its band, where there is room for it."""
    total = spans[-1].end - spans[0].start
    for span in spans:
        name = span.phase.name.lower().replace('_', ' ')
        if span.end - span.start > total * 0.0105 * len(name):
            axis.annotate(name, (0.5 * (span.start + span.end), 1.0),
                          xycoords=('data', 'axes fraction'), xytext=(0, 3),
                          textcoords='offset points', ha='center', fontsize=9, color='#444444')


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='ekf_wind_log', description="Phases of EKF3's wind estimate in one flight, and how "
        'far the estimate was from the wind flown.')
    parser.add_argument('flight', type=Path, help='FLIGHT.BIN, or FLIGHT.tlog, or FLIGHT.tlog.gz')
    parser.add_argument('--csv', type=Path, help='write the columns to this file')
    parser.add_argument('--plot', type=Path, metavar='PNG', help='draw the flight to this file')
    parser.add_argument('--title', help='title of table and picture (default: name of the file)')
    parser.add_argument('--system', type=int, help='system id of the vehicle, in a telemetry log '
                        'of several (default: the first ArduPilot vehicle)')
    parser.add_argument('--replayed', action='store_true', help='of a log that Replay has added '
                        'its filters to (cores 100 and up): those, not the ones that flew')
    return parser


@pipe_safe
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    options = _parser().parse_args(arguments)
    path: Path = options.flight
    if (wrong := wrong_outputs((options.csv, options.plot), [path])) is not None:
        print(f'ekf_wind_log: {wrong}', file=sys.stderr)
        return 1
    try:
        with progress_bar() as progress:
            flights = read_log(path, lambda done: progress(f'reading {path.name}', done),
                               system=options.system, replayed=options.replayed)
        told = [flight for flight in flights if flight.wind_log is not None]
        if not told:
            raise RecordError(f'{path}: {flights[0].no_ekf}')
        if options.csv is not None:
            write_csv(told, options.csv)
        if options.plot is not None:
            for flight, target in zip(told, _pictures(options.plot, len(told)), strict=True):
                assert flight.wind_log is not None
                plot(flight.wind_log, target, options.title or flight.name)
    except RecordError as error:
        print(f'ekf_wind_log: {error}', file=sys.stderr)
        return 1
    except OSError as error:
        print(f'ekf_wind_log: {error.filename or options.csv}: {error.strerror}', file=sys.stderr)
        return 1
    for flight in told:
        _print(flight, options.title or flight.name)
    return 0


def _pictures(path: Path, count: int) -> list[Path]:
    """Return a name for the picture of each flight: out.png, out_2.png, ..."""
    return [path, *(path.with_stem(f'{path.stem}_{number}') for number in range(2, count + 1))]


def _print(flight: FlightRecord, title: str) -> None:
    log = flight.wind_log
    assert log is not None
    # A pipe has no width: give the table what it needs rather than cut it at 80 columns.
    console = Console(width=None if sys.stdout.isatty() else 100)
    console.print(phase_table(log, title))
    if not np.isfinite(log.flown_n).any():
        print('No SIM_WIND_* parameters in this log: the wind flown is not known.')
    for note in flight.notes:
        print(f'Note: {note}.')


if __name__ == '__main__':
    sys.exit(main())
