"""How fast it is, as ratios: ``python -m dryden_wind_ros.tools.bench``.

Every figure is divided by a floor that the table names, measured in the same run and, where that is
possible, in turns, so that a slow or busy machine slows both. A part is a function that returns
rows; `PARTS` lists them. The parts that need ROS run in a ROS domain of their own, on free ports.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dryden_wind_ros import ending
from dryden_wind_ros.pipes import pipe_safe
from dryden_wind_ros.tools.bench_parts.stage import Bench, BenchError
from dryden_wind_ros.tools.bench_parts.table import (
    Row,
    markdown,
    put_between_marks,
    table,
)

_FILE_WIDTH = 160
_PACKAGE = 'dryden_wind_ros.tools.bench_parts'


@dataclass(frozen=True)
class Part:
    """A group of figures that can be asked for by name.

    Attributes
    ----------
    name, description : str
    module, function : str
        Where it is in `dryden_wind_ros.tools.bench_parts`.
    needs_ros : bool
    """

    name: str
    description: str
    module: str
    function: str
    needs_ros: bool = True

    @property
    def run(self) -> Callable[[Bench], list[Row]]:
        """The function that measures it; imported now, because some need ROS."""
        run: Callable[[Bench], list[Row]] = getattr(
            import_module(f'{_PACKAGE}.{self.module}'), self.function)
        return run


PARTS: list[Part] = [
    Part('model', 'DrydenGust.step against its bare arithmetic', 'gusts', 'run_model', False),
    Part('standard', "the standards' second-order models against the first-order one", 'gusts',
         'run_standard', False),
    Part('fleet', 'DrydenGustFleet.step against a loop over DrydenGust', 'gusts', 'run_fleet',
         False),
    Part('field', 'TurbulenceField.gust against bare sines and cosines', 'field', 'run_field',
         False),
    Part('arriving', 'the wind where a plane will be, against where it was heard', 'field',
         'run_arriving', False),
    Part('phase', 'WindPhaseMonitor per message, against decoding it', 'phase', 'run_phase',
         False),
    Part('logs', 'MB/s of dataflash and telemetry logs, against their bytes and pymavlink', 'logs',
         'run_logs', False),
    Part('json_relay', 'a step through sitl_wind_relay, against a bare UDP relay', 'json_relay',
         'run_json_relay', False),
    Part('campaign', "sim seconds of a campaign's flight, against the vehicle alone", 'campaign',
         'run_campaign', False),
    Part('latency', 'clock in to PARAM_SET out, against a bare relay', 'relay', 'run_latency'),
    Part('nodes_cpu', 'CPU of wind node and bridge, against the same relay', 'relay',
         'run_nodes_cpu'),
    Part('khz_clock', 'CPU of the wind node under a 1 kHz clock, against counting', 'clocks',
         'run_khz_clock'),
    Part('history', 'two minutes of history, against an empty service', 'clocks', 'run_history'),
    Part('speedup', 'highest speedup without a missed tick, against the relay', 'speed',
         'run_speedup'),
    Part('vehicles', 'cost of a vehicle in fleets of 1, 5, 20, 50, against bare topics', 'fleets',
         'run_vehicles'),
    Part('hundred', 'a hundred vehicles in two processes: ticks, delays, put back', 'hundred',
         'run_hundred'),
]
"""All parts, in the order of the table."""


def machine() -> dict[str, Any]:
    """Return what the figures depend on."""
    model = ''
    try:
        for line in Path('/proc/cpuinfo').read_text(encoding='utf-8').splitlines():
            if line.startswith('model name'):
                model = line.partition(':')[2].strip()
                break
    except OSError:
        model = platform.processor()
    return {'cpu': model, 'cpus': os.cpu_count(), 'load': [round(x, 2) for x in os.getloadavg()],
            'system': platform.platform(), 'python': platform.python_version(),
            'numpy': np.__version__}


@pipe_safe
def main(args: list[str] | None = None) -> int:
    """Run the chosen parts and print the table.

    Parameters
    ----------
    args : list of str, optional
        Command line, without the program's name.

    Returns
    -------
    int
        0, 1 if a limit was not held, 2 if a part could not be measured, 130 after Ctrl-C.
    """
    names = [part.name for part in PARTS]
    parser = argparse.ArgumentParser(
        prog='python -m dryden_wind_ros.tools.bench', description=__doc__.split('\n')[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog='parts:\n' + '\n'.join(f'  {part.name:10} {part.description}' for part in PARTS))
    parser.add_argument('--part', nargs='+', choices=names, action='extend', metavar='NAME',
                        help='run only these parts: ' + ', '.join(names))
    parser.add_argument('--json', metavar='FILE', help='write the rows there too; - is stdout')
    parser.add_argument('--markdown', metavar='FILE',
                        help='write the table there too; in a file with the marks '
                             '<!-- bench --> and <!-- /bench -->, between them')
    parser.add_argument('--quick', action='store_true',
                        help='shortest settings, to see that everything runs; the figures mean '
                             'little')
    options = parser.parse_args(args)
    chosen = [part for part in PARTS if options.part is None or part.name in options.part]

    for name in (options.json, options.markdown):
        # Before minutes of measuring, not after them.
        if name is not None and name != '-':
            try:
                with open(name, 'a', encoding='utf-8'):
                    pass
            except OSError as error:
                parser.error(f'{name} cannot be written: {error.strerror}')

    console = Console(stderr=options.json == '-')
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    found, began = machine(), time.monotonic()
    rows: list[Row] = []
    failed = False
    former = signal.signal(signal.SIGTERM, _interrupt)
    try:
        for part, result in _measure(chosen, options.quick, console):
            if isinstance(result, BenchError):
                failed = True
                console.print(f'[bold red]{part.name} could not be measured:[/]', result)
            else:
                rows += result
    except KeyboardInterrupt:
        console.print('stopped; what was measured until then:')
        console.print(table(rows))
        return 130
    finally:
        signal.signal(signal.SIGTERM, former)
    console.print(table(rows))
    seconds = time.monotonic() - began
    where = (f'{found["cpu"]}, {found["cpus"]} CPUs, load {found["load"][0]} at the start; '
             f'Python {found["python"]}; measured in {seconds:.0f} s')
    console.print(where)

    if options.markdown is not None:
        path = Path(options.markdown)
        before = path.read_text(encoding='utf-8') if path.exists() else ''
        path.write_text(put_between_marks(before, markdown(rows, where)), encoding='utf-8')
    if options.json is not None:
        text = json.dumps({**found, 'seconds': round(seconds, 1), 'quick': options.quick, 'rows': [
            {**asdict(row), 'held': row.held} for row in rows]}, indent=2)
        if options.json == '-':
            print(text)
        else:
            Path(options.json).write_text(text + '\n', encoding='utf-8')
    if failed:
        return 2
    return 1 if any(row.held is False for row in rows) else 0


def _measure(parts: list[Part], quick: bool, console: Console,
             ) -> Iterator[tuple[Part, list[Row] | BenchError]]:
    # No thread that draws: it would take turns with what is measured.
    with Progress(TextColumn('{task.description}'), BarColumn(), MofNCompleteColumn(),
                  TimeElapsedColumn(), console=console, transient=True,
                  auto_refresh=False) as progress:
        task = progress.add_task('', total=len(parts))

        def tell(text: str) -> None:
            progress.update(task, description=text, refresh=True)

        for part in parts:
            tell(f'{part.name}: {part.description}')
            result: list[Row] | BenchError
            with Bench(quick, tell) as bench:
                try:
                    result = part.run(bench)
                except BenchError as error:
                    result = error
                except ImportError as error:
                    if not part.needs_ros:
                        raise
                    result = BenchError(f'it needs ROS 2 and the built messages: {error}')
            yield part, result
            progress.advance(task)


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == '__main__':
    code = main()
    ending.leave_alone()  # a Ctrl-C that comes now, or again, changes nothing any more
    sys.exit(code)
