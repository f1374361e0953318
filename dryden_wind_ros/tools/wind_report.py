"""Make a page of what was flown: ``ros2 run dryden_wind_ros wind_report BAG_OR_BIN_OR_TLOG``.

Reads bags (MCAP, SQLite) without a ROS installation, dataflash logs and telemetry logs, and writes
one HTML file that opens anywhere, offline. With two flights, ``wind_report a b`` says whether they
met the same air. See docs/report.md and docs/ab_testing.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dryden_wind_ros.logs.reader import read_flights
from dryden_wind_ros.report.flight import FlightRecord, RecordError
from dryden_wind_ros.tools.command_line import Report, pipe_safe, progress_bar, wrong_outputs

_PLOTLY = ('the page is made with the Python package plotly, which is not installed. Install it: '
           'python3 -m pip install plotly. --csv, --json and --png work without it')

STANDARD_OUTPUT = Path('-')

FAILED = 3
"""Exit status of ``--check`` where a verdict is bad; 1 is an error, 2 a wrong command line."""


@dataclass(frozen=True)
class Outputs:
    """Files to write; None: not this one.

    Attributes
    ----------
    page : Path or None
        HTML.
    csv : Path or None
        Columns, one row a tick.
    json : Path or None
        Numbers and verdicts; '-' is standard output.
    png : Path or None
        Pictures; with several flights their names are added to this one's.
    """

    page: Path | None = None
    csv: Path | None = None
    json: Path | None = None
    png: Path | None = None

    @property
    def files(self) -> list[Path]:
        """Those that are files."""
        return [path for path in (self.csv, self.page, self.json, self.png)
                if path is not None and path != STANDARD_OUTPUT]


@dataclass(frozen=True)
class Made:
    """What was read and found.

    Attributes
    ----------
    flights : list of FlightRecord
        What was read.
    verdicts : list of str
        What was found in comparing flights.
    failures : list of str
        What a test must not let pass, see `report.summary.failures`.
    pictures : list of Path
        PNG files that were written.
    """

    flights: list[FlightRecord]
    verdicts: list[str]
    failures: list[str]
    pictures: list[Path]


def make_report(paths: Sequence[Path], outputs: Outputs, report: Report,
                system: int | None = None, replayed: bool = False, check: bool = False) -> Made:
    """Read flights and write what was asked for.

    Parameters
    ----------
    paths : sequence of Path
        Bags and logs.
    outputs : Outputs
        What to write.
    report : callable
        Called with what is being done and the fraction done, 0 to 1.
    system, replayed : int, bool
        See `logs.reader.read_flights`.
    check : bool
        Whether `Made.failures` is wanted where nothing is written that needs it.
    """
    from dryden_wind_ros.report.compare import natural

    files: list[list[FlightRecord]] = []
    for number, path in enumerate(paths):
        def reading(fraction: float, number: int = number, path: Path = path) -> None:
            report(f'reading {path.name}', 0.7 * (number + fraction) / len(paths))
        files.append(sorted(read_flights(path, reading, system=system, replayed=replayed),
                            key=lambda flight: natural(flight.namespace)))
    flights = [flight for found in files for flight in found]
    if outputs.csv is not None:
        from dryden_wind_ros.report.columns import write_csv

        report('writing the columns', 0.7)
        with _whole(outputs.csv) as part, open(part, 'w', newline='', encoding='utf-8') as file:
            write_csv(flights, file)
    if not (outputs.page or outputs.json or outputs.png or check):
        return Made(flights, [], [], [])
    from dryden_wind_ros.report.analysis import analyse
    from dryden_wind_ros.report.compare import compare, pair_up
    from dryden_wind_ros.report.summary import Pair, failures, summary

    analysed = []
    for number, flight in enumerate(flights):
        report(f'measuring {flight.name}', 0.7 + 0.2 * number / len(flights))
        analysed.append((flight, analyse(flight)))
    places, left = pair_up(files)
    pairs = [Pair(flights[a], flights[b], compare(*analysed[a], *analysed[b])) for a, b in places]
    if outputs.page is not None:
        from dryden_wind_ros.report.page import render

        report('drawing', 0.9)
        page = render(analysed, [(a, b, pair.found)
                                 for (a, b), pair in zip(places, pairs, strict=True)])
        with _whole(outputs.page) as part:
            part.write_text(page, encoding='utf-8')
    pictures = []
    if outputs.png is not None:
        from dryden_wind_ros.report.pictures import save_picture

        for number, (flight, analysis) in enumerate(analysed):
            report(f'drawing {flight.name}', 0.95 + 0.04 * number / len(flights))
            pictures.append(_picture_name(outputs.png, flight, len(flights), number))
            with _whole(pictures[-1]) as part:
                save_picture(flight, analysis, part)
    if outputs.json is not None:
        text = json.dumps(summary(analysed, pairs), indent=1, allow_nan=False) + '\n'
        if outputs.json == STANDARD_OUTPUT:
            sys.stdout.write(text)
        else:
            with _whole(outputs.json) as part:
                part.write_text(text, encoding='utf-8')
    return Made(flights, [f'{pair.a.name} and {pair.b.name}: {pair.found.text}' for pair in pairs]
                + left, list(failures(analysed, pairs)), pictures)


def _picture_name(path: Path, flight: FlightRecord, count: int, number: int) -> Path:
    if count == 1:
        return path
    words = re.sub(r'[^\w.-]+', '_', flight.name).strip('_')
    return path.with_name(f'{path.stem}-{number + 1}-{words}{path.suffix}')


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
                        help='page to write (default: wind_report.html, unless another output or '
                        '--check is given)')
    parser.add_argument('--csv', type=Path, metavar='CSV',
                        help='write the columns, one row a tick, to this file')
    parser.add_argument('--json', type=Path, metavar='JSON',
                        help="write numbers and verdicts to this file; '-' is standard output")
    parser.add_argument('--png', type=Path, metavar='PNG',
                        help='draw the flight to this picture, without a browser; of several '
                        'flights one each, their names added')
    parser.add_argument('--check', action='store_true',
                        help=f'exit with {FAILED} if flights that were compared did not meet the '
                        "same air, or draws are not the seed's own (for CI)")
    parser.add_argument('--system', type=int, help='system id of the vehicle, in telemetry logs of '
                        'several (default: the first ArduPilot vehicle)')
    parser.add_argument('--replayed', action='store_true', help='of dataflash logs that Replay has '
                        'added its filters to (cores 100 and up): those, not the ones that flew')
    return parser


@pipe_safe
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    options = _parser().parse_args(arguments)
    outputs = Outputs(options.output, options.csv, options.json, options.png)
    if not (outputs.files or outputs.json or options.check):
        outputs = Outputs(Path('wind_report.html'))
    # What is written to standard output is JSON alone then.
    say = sys.stderr if outputs.json == STANDARD_OUTPUT else sys.stdout
    if outputs.page is not None and importlib.util.find_spec('plotly') is None:
        print(f'wind_report: {_PLOTLY}', file=sys.stderr)
        return 1
    if (wrong := wrong_outputs(outputs.files, options.flights)) is not None:
        print(f'wind_report: {wrong}', file=sys.stderr)
        return 1
    try:
        with progress_bar() as report:
            made = make_report(options.flights, outputs, report, options.system,
                               options.replayed, options.check)
    except RecordError as error:
        print(f'wind_report: {error}', file=sys.stderr)
        return 1
    except OSError as error:
        # A write that fails, as on a full disk, does not name its file.
        named = error.filename or ' or '.join(str(path) for path in outputs.files)
        print(f'wind_report: {named}: {error.strerror}', file=sys.stderr)
        return 1
    for flight in made.flights:
        print(f'{flight.name}: {_in_words(flight)}', file=say)
        for note in flight.notes:
            print(f'  note: {note}', file=say)
    for verdict in made.verdicts:
        print(verdict, file=say)
    for path in [*(path for path in outputs.files if path != outputs.png), *made.pictures]:
        print(f'written: {path} ({path.stat().st_size / 1e6:.1f} MB)', file=say)
    if not options.check:
        return 0
    for failure in made.failures:
        print(f'failed: {failure}', file=sys.stderr)
    return FAILED if made.failures else 0


def _in_words(flight: FlightRecord) -> str:
    air = flight.air
    words = []
    if len(air):
        from dryden_wind_ros.report.analysis import tally

        words.append(f'{len(air)} ticks, {tally(air).seconds:.1f} s')
    if flight.settings:
        first = flight.settings[0]
        words.append(f'mean wind {first.mean_speed:g} m/s from {first.mean_from_deg:g} deg')
        words.append(f'gusts {first.gusts}, seed {first.seed}')
    if flight.ekf is not None:
        words.append(f'{len(flight.ekf)} ekf_wind')
    return ', '.join(words)


if __name__ == '__main__':
    sys.exit(main())
