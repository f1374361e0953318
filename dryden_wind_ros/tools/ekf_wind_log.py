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
import contextlib
import csv
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from dryden_wind_ros.ekf.phase import WindPhase
from dryden_wind_ros.logs.ekf_wind import Span, WindLog
from dryden_wind_ros.logs.tlog import LogFileError
from dryden_wind_ros.logs.wind_log import ReportProgress, read_wind_log

COLUMNS = ('t_boot_s', 'phase', 'wind_n', 'wind_e', 'flown_n', 'flown_e', 'error_speed',
           'error_direction', 'variance_n', 'variance_e', 'settled')

PHASE_COLOURS = {
    WindPhase.UNKNOWN: '#ffffff',
    WindPhase.NOT_ESTIMATED: '#e6e6e6',
    WindPhase.GROUND: '#e6e6e6',
    WindPhase.INHIBITED: '#c9c9c9',
    WindPhase.INIT: '#f2a33c',
    WindPhase.LEARNING: '#d7efd3',
    WindPhase.COAST: '#b9d3f0',
    WindPhase.RELEARN: '#d9a3e0',
}
"""Colour of each phase's band in a picture."""


def write_csv(log: WindLog, path: Path) -> None:
    """Write the columns of :data:`COLUMNS`; what is not known is ``nan``, or empty for settled."""
    speed_error, direction_error = log.errors()
    columns = zip(log.t, log.wind_n, log.wind_e, log.flown_n, log.flown_e, speed_error,
                  direction_error, log.variance_n, log.variance_e, strict=True)
    with open(path, 'w', newline='') as file:
        writer = csv.writer(file, lineterminator='\n')
        writer.writerow(COLUMNS)
        for row, (t, *values) in enumerate(columns):
            settled = '' if log.settled is None else int(log.settled[row])
            writer.writerow((f'{t:.3f}', log.phase[row].name.lower(),
                             *(f'{value:.4g}' for value in values), settled))


def phase_table(log: WindLog, title: str) -> Table:
    """Return the phases of a flight as a table for the terminal."""
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, caption_justify='left',
                  caption='Times in s. Winds: m/s and where they come from. Error: length of '
                  '(estimate - flown), mean and max, m/s; turn: error of the direction, degrees.')
    for name in ('phase', 'from', 'to', 'for', 'estimate', 'flown', 'error', 'max', 'turn'):
        table.add_column(name, justify='left' if name == 'phase' else 'right', no_wrap=True)
    for span in log.spans():
        table.add_row(
            span.phase.name.lower().replace('_', ' '), f'{span.start:.1f}', f'{span.end:.1f}',
            f'{span.end - span.start:.1f}', _wind_text(span.wind_n, span.wind_e),
            _wind_text(span.flown_n, span.flown_e), _number(span.error, 1),
            _number(span.error_max, 1), _number(span.error_direction, 0))
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
    LogFileError
        Matplotlib is not installed, or does not know the format.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise LogFileError('--plot needs Matplotlib: apt install python3-matplotlib, or '
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
            axis.axvspan(span.start, span.end, color=PHASE_COLOURS[span.phase], linewidth=0)
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
    axes[2].set_ylabel('error, m/s')
    axes[2].set_ylim(bottom=0.0)
    axes[2].set_xlabel('vehicle time, s since boot')
    axes[2].set_xlim(float(log.t[0]), float(log.t[-1]))
    figure.align_ylabels(axes)
    _label_phases(axes[0], spans)
    lines, names = axes[0].get_legend_handles_labels()
    seen = [phase for phase in WindPhase if any(span.phase is phase for span in spans)]
    figure.legend([*lines, *(Patch(color=PHASE_COLOURS[phase]) for phase in seen)],
                  [*names, *(phase.name.lower().replace('_', ' ') for phase in seen)],
                  loc='outside lower center', ncols=len(seen) + len(names), frameon=False,
                  fontsize=9, handlelength=1.4, columnspacing=1.4)
    figure.suptitle(title, x=0.01, ha='left', fontsize=12)
    try:
        figure.savefig(path, dpi=110)
    except ValueError as error:
        raise LogFileError(f'{path}: {error}') from error
    finally:
        plt.close(figure)


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


@contextlib.contextmanager
def _progress_bar(path: Path, console: Console) -> Iterator[ReportProgress]:
    with Progress(TextColumn('{task.description}'), BarColumn(), TimeRemainingColumn(),
                  console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(f'reading {path.name}', total=1.0)
        yield lambda done: bar.update(task, completed=done)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='ekf_wind_log', description="Phases of EKF3's wind estimate in one flight, and how "
        'far the estimate was from the wind flown.')
    parser.add_argument('flight', type=Path, help='FLIGHT.BIN, or FLIGHT.tlog, or FLIGHT.tlog.gz')
    parser.add_argument('--csv', type=Path, help='write the columns to this file')
    parser.add_argument('--plot', type=Path, metavar='PNG', help='draw the flight to this file')
    parser.add_argument('--title', help='title of table and picture (default: name of the file)')
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    options = _parser().parse_args(arguments)
    errors = Console(stderr=True)
    title = options.title or options.flight.name
    try:
        with _progress_bar(options.flight, errors) as progress:
            log = read_wind_log(options.flight, progress)
        if options.csv is not None:
            write_csv(log, options.csv)
        if options.plot is not None:
            plot(log, options.plot, title)
    except LogFileError as error:
        print(f'ekf_wind_log: {error}', file=sys.stderr)
        return 1
    except OSError as error:
        print(f'ekf_wind_log: {error.filename}: {error.strerror}', file=sys.stderr)
        return 1
    # A pipe has no width: give the table what it needs rather than cut it at 80 columns.
    console = Console(width=None if sys.stdout.isatty() else 100)
    console.print(phase_table(log, title))
    if not np.isfinite(log.flown_n).any():
        print('No SIM_WIND_* parameters in this log: the wind flown is not known.')
    for note in log.notes:
        print(f'Note: {note}.')
    return 0


if __name__ == '__main__':
    sys.exit(main())
