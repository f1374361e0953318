"""Make a page of what was flown: ``ros2 run dryden_wind_ros wind_report BAG_OR_BIN_OR_TLOG``.

Reads bags (MCAP, SQLite) without a ROS installation, dataflash logs and telemetry logs, and writes
one HTML file that opens anywhere, offline. With two flights, ``wind_report a b`` says whether they
met the same air. See docs/report.md and docs/ab_testing.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dryden_wind_ros.logs.reader import read_flights
from dryden_wind_ros.report.flight import FlightRecord, RecordError
from dryden_wind_ros.tools.command_line import Report, pipe_safe, progress_bar, wrong_outputs

_PLOTLY = ('the page is made with the Python package plotly, which is not installed. Install it: '
           'python3 -m pip install plotly. --csv works without it')


def make_report(paths: Sequence[Path], output: Path | None, csv: Path | None, report: Report,
                system: int | None = None, replayed: bool = False,
                ) -> tuple[list[FlightRecord], list[str]]:
    """Read flights and write what was asked for.

    Parameters
    ----------
    paths : sequence of Path
        Bags and logs.
    output : Path or None
        The page to write; None for none.
    csv : Path or None
        The columns to write; None for none.
    report : callable
        Called with what is being done and the fraction done, 0 to 1.
    system, replayed : int, bool
        See `logs.reader.read_flights`.

    Returns
    -------
    flights : list of FlightRecord
        What was read.
    verdicts : list of str
        What was found in comparing the first flight with each other one.
    """
    flights: list[FlightRecord] = []
    for number, path in enumerate(paths):
        def reading(fraction: float, number: int = number, path: Path = path) -> None:
            report(f'reading {path.name}', 0.7 * (number + fraction) / len(paths))
        flights += read_flights(path, reading, system=system, replayed=replayed)
    if csv is not None:
        from dryden_wind_ros.report.columns import write_csv

        report('writing the columns', 0.7)
        with _whole(csv) as part, open(part, 'w', newline='', encoding='utf-8') as file:
            write_csv(flights, file)
    if output is None:
        return flights, []
    from dryden_wind_ros.report.analysis import analyse
    from dryden_wind_ros.report.compare import compare
    from dryden_wind_ros.report.page import render

    analysed = []
    for number, flight in enumerate(flights):
        report(f'measuring {flight.name}', 0.72 + 0.18 * number / len(flights))
        analysed.append((flight, analyse(flight)))
    comparisons = [compare(*analysed[0], *other) for other in analysed[1:]]
    report('drawing', 0.9)
    page = render(analysed, comparisons)
    report('writing the page', 0.98)
    with _whole(output) as part:
        part.write_text(page, encoding='utf-8')
    return flights, [f'{flights[0].name} and {other.name}: {found.text}'
                     for found, (other, _) in zip(comparisons, analysed[1:], strict=True)]


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """Give a name to write to, which becomes `path` when all went well.

    A device, pipe or link is written to: to put a file in its place would destroy it.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        yield path
        return
    part = path.with_name(f'.{path.name}.{os.getpid()}.part')
    try:
        yield part
        part.replace(path)
    except OSError as error:
        # The user knows `path`, not the name beside it.
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        part.unlink(missing_ok=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='wind_report', description='Make one HTML page of a flight: gusts, strength and '
        "spectra beside the model, EKF3's wind, and how to fly the same air again. With two "
        'flights: whether they met the same air.')
    parser.add_argument('flights', type=Path, nargs='+', metavar='FLIGHT',
                        help='bag (folder, .mcap, .db3), dataflash log (.BIN) or telemetry log '
                        '(.tlog, .tlog.gz); the second and later ones are compared with the first')
    parser.add_argument('-o', '--output', type=Path, metavar='HTML',
                        help='page to write (default: wind_report.html, unless --csv is given)')
    parser.add_argument('--csv', type=Path, metavar='CSV',
                        help='write the columns, one row a tick, to this file')
    parser.add_argument('--system', type=int, help='system id of the vehicle, in telemetry logs of '
                        'several (default: the first ArduPilot vehicle)')
    parser.add_argument('--replayed', action='store_true', help='of dataflash logs that Replay has '
                        'added its filters to (cores 100 and up): those, not the ones that flew')
    return parser


@pipe_safe
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    options = _parser().parse_args(arguments)
    output: Path | None = options.output
    if output is None and options.csv is None:
        output = Path('wind_report.html')
    if output is not None and importlib.util.find_spec('plotly') is None:
        print(f'wind_report: {_PLOTLY}', file=sys.stderr)
        return 1
    if (wrong := wrong_outputs((output, options.csv), options.flights)) is not None:
        print(f'wind_report: {wrong}', file=sys.stderr)
        return 1
    try:
        with progress_bar() as report:
            flights, verdicts = make_report(
                options.flights, output, options.csv, report, options.system, options.replayed)
    except RecordError as error:
        print(f'wind_report: {error}', file=sys.stderr)
        return 1
    except OSError as error:
        # A write that fails, as on a full disk, does not name its file.
        named = error.filename or ' or '.join(
            str(path) for path in (options.csv, output) if path is not None)
        print(f'wind_report: {named}: {error.strerror}', file=sys.stderr)
        return 1
    for flight in flights:
        print(f'{flight.name}: {_in_words(flight)}')
        for note in flight.notes:
            print(f'  note: {note}')
    for verdict in verdicts:
        print(verdict)
    for path in (options.csv, output):
        if path is not None:
            print(f'written: {path} ({path.stat().st_size / 1e6:.1f} MB)')
    return 0


def _in_words(flight: FlightRecord) -> str:
    air = flight.air
    words = []
    if len(air):
        words.append(f'{len(air)} ticks, {air.t[-1] - air.t[0]:.1f} s')
    if flight.settings:
        first = flight.settings[0]
        words.append(f'mean wind {first.mean_speed:g} m/s from {first.mean_from_deg:g} deg')
        words.append(f'gusts {first.gusts}, seed {first.seed}')
    if flight.ekf is not None:
        words.append(f'{len(flight.ekf)} ekf_wind')
    return ', '.join(words)


if __name__ == '__main__':
    sys.exit(main())
