"""Check a scenario and draw what will blow, or make a scenario of a recorded flight.

``ros2 run dryden_wind_ros wind_scenario file.yaml`` says what the file will do, or everything that
is wrong with it; ``--plot`` draws it. ``wind_scenario FLIGHT.BIN -o scenario.yaml`` (or a telemetry
log, or a bag) writes a scenario with the wind of that flight, its record as CSV and its picture.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from dryden_wind_ros.gusts.conditions import MeanWind, Moment
from dryden_wind_ros.gusts.mean_wind import Record, RecordedWind, ScheduledWind
from dryden_wind_ros.gusts.record_csv import ScenarioError, write_csv
from dryden_wind_ros.gusts.scenario import Scenario, ScenarioGusts
from dryden_wind_ros.gusts.tick_grid import TICK_S
from dryden_wind_ros.logs.flight import RecordError
from dryden_wind_ros.logs.recorded_wind import (
    BAG_SUFFIXES,
    LOG_SUFFIXES,
    SMOOTHING,
    RecordedFlight,
    open_scenario,
    recorded_wind,
)
from dryden_wind_ros.pipes import pipe_safe

HEIGHTS = (2.0, 10.0, 50.0, 150.0)
"""Heights at which a wind that depends on height is drawn, m."""

COLOURS = ('#9ecae1', '#4292c6', '#08519c', '#041e42')
GUST_COLOUR = '#c0262d'
TAIL = 0.08
"""Part of the time that is drawn beyond the last event."""


class ScenarioToolError(Exception):
    """It cannot be done; the text says why."""


# ---------------------------------------------------------------------- what will blow


def end_of(scenario: Scenario, base: MeanWind, airspeed: float) -> float:
    """Return when nothing changes any more, s of the scenario's time."""
    times = [10.0]
    wind = scenario.mean_wind(base)
    if isinstance(wind, ScheduledWind):
        times += wind.points
    elif isinstance(wind, RecordedWind) and wind.record.by == 'time':
        times.append(wind.record.x[-1] + scenario.offset)
    for planned in scenario.gusts:
        gust = planned.gust
        if planned.trigger.at is not None:
            to_the_peak = gust.duration if gust.duration is not None else (
                (gust.length or 0.0) / airspeed)
            times.append(planned.trigger.at + 2.0 * to_the_peak)
    return max(times) * (1.0 + TAIL)


def blowing(scenario: Scenario, base: MeanWind, seconds: float, height: float,
            airspeed: float) -> tuple[Any, Any, Any]:
    """Return what a vehicle that stays at a height meets.

    Parameters
    ----------
    scenario : Scenario
    base : MeanWind
        What the scenario leaves open.
    seconds : float
        Up to which time of the scenario, s.
    height : float
        m above the ground.
    airspeed : float
        Speed through the mean wind, m/s.

    Returns
    -------
    t : ndarray, shape (N,)
        Times, s: every tick; in a long scenario without discrete gusts about 10 000 of them.
    mean : ndarray, shape (N, 3)
        Speed (m/s), direction it comes from (degrees), updraft (m/s).
    gust : ndarray, shape (N, 3)
        Discrete gusts, east, north, up, m/s.
    """
    source, gusts = scenario.mean_wind(base), ScenarioGusts(scenario)
    # A discrete gust is a matter of seconds, and goes from tick to tick.
    step = 1 if scenario.gusts else max(1, int(seconds / TICK_S) // 10_000)
    ticks = range(0, int(seconds / TICK_S) + 1, step)
    means, added = np.empty((len(ticks), 3)), np.empty((len(ticks), 3))
    for row, tick in enumerate(ticks):
        still = Moment(tick, tick * TICK_S, (0.0, 0.0, height), False, height, (0.0, 0.0, 0.0),
                       0.0, 0.0)
        mean = source.at(still)
        east, north, up = mean.enu
        moving = still._replace(velocity=(east + airspeed, north, up))
        means[row] = mean[:3]
        added[row] = gusts.at(moving, mean) if scenario.gusts else 0.0
    return np.array(ticks) * TICK_S, means, added


def plot(scenario: Scenario, path: Path, base: MeanWind, airspeed: float,
         seconds: float | None = None) -> None:
    """Draw what will blow.

    Parameters
    ----------
    scenario : Scenario
    path : Path
        Picture to write; its ending chooses the format (.png, .svg, .pdf).
    base : MeanWind
        What the scenario leaves open.
    airspeed : float
        Speed at which the vehicle flies into gusts that have a length, m/s.
    seconds : float, optional
        Up to which time; by default until nothing changes any more.

    Raises
    ------
    ScenarioToolError
        If Matplotlib is missing or does not know the format.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise ScenarioToolError('--plot needs Matplotlib: apt install python3-matplotlib, or '
                                'pip install matplotlib') from error
    matplotlib.use('Agg')
    from matplotlib import pyplot as plt

    until = end_of(scenario, base, airspeed) if seconds is None else seconds
    heights = HEIGHTS if scenario.by_height else (10.0,)
    winds = {height: blowing(scenario, base, until, height, airspeed) for height in heights}
    drawn = ['speed, m/s']
    if any(mean[:, 0].any() for _, mean, _ in winds.values()):
        drawn.append('from, deg')
    if any(mean[:, 2].any() for _, mean, _ in winds.values()):
        drawn.append('up, m/s')
    if scenario.gusts:
        drawn.append('discrete gusts, m/s')
    figure = plt.figure(figsize=(11.0, 1.9 * len(drawn) + 1.2), layout='constrained')
    grid = figure.add_gridspec(len(drawn), 4)
    wide = 3 if scenario.by_height else 4
    axes = [figure.add_subplot(grid[0, :wide])]
    axes += [figure.add_subplot(grid[row, :wide], sharex=axes[0]) for row in range(1, len(drawn))]
    for axis, name in zip(axes, drawn, strict=True):
        axis.set_ylabel(name)
        if name == 'discrete gusts, m/s':
            t, _, added = winds[10.0]
            for values, way, style in zip(added.T, ('east', 'north', 'up'), ('-', '--', ':'),
                                          strict=True):
                axis.plot(t, values, style, color=GUST_COLOUR, linewidth=1.4, label=way)
            axis.legend(ncols=3, frameon=False, fontsize=8)
            continue
        column = {'speed, m/s': 0, 'from, deg': 1, 'up, m/s': 2}[name]
        for (height, (t, mean, _)), colour in zip(
                winds.items(), COLOURS if len(winds) > 1 else COLOURS[2:], strict=False):
            values = mean[:, column]
            if column == 1:
                values = np.degrees(np.unwrap(np.radians(values)))
            axis.plot(t, values, color=colour, linewidth=1.6, label=f'{height:g} m')
        _widen(axis, 20.0 if column == 1 else 1.0)
        if column == 1:
            axis.yaxis.set_major_formatter(lambda value, _: f'{value % 360.0:.0f}')
    axes[0].set_ylim(bottom=0.0)
    if scenario.by_height:
        axes[0].legend(ncols=len(heights), frameon=False, fontsize=8)
        _draw_profile(figure.add_subplot(grid[:, wide:]), scenario, base, until)
    axes[-1].set_xlabel(f'time, s since {_since(scenario)}')
    axes[-1].set_xlim(0.0, until)
    for axis in figure.axes:
        axis.grid(color='#00000018', linewidth=0.6)
        for side in ('top', 'right'):
            axis.spines[side].set_visible(False)
    figure.align_ylabels(axes)
    figure.suptitle('\n'.join([scenario.name, *_in_lines(scenario, airspeed)]), x=0.01, ha='left',
                    fontsize=10)
    try:
        figure.savefig(path, dpi=110)
    except ValueError as error:
        raise ScenarioToolError(f'{path}: {error}') from error
    finally:
        plt.close(figure)


def _draw_profile(axis: Any, scenario: Scenario, base: MeanWind, until: float) -> None:
    heights = np.linspace(0.0, max(HEIGHTS), 200)
    source = scenario.mean_wind(base)
    styles = ((0.0, '--'), (until, '-')) if scenario.changes else ((0.0, '-'),)
    for time, style in styles:
        tick = round(time / TICK_S)
        winds = [source.at(Moment(tick, time, (0.0, 0.0, h), False, h, (0.0, 0.0, 0.0), 0.0, 0.0))
                 for h in heights.tolist()]
        axis.plot([wind.speed for wind in winds], heights, style, color=COLOURS[2], linewidth=1.6,
                  label=f'at {time:.0f} s' if scenario.changes else None)
    axis.set_xlabel('speed, m/s')
    axis.set_ylabel('height, m')
    axis.set_xlim(left=0.0)
    if scenario.changes:
        axis.legend(frameon=False, fontsize=8)


def _widen(axis: Any, least: float) -> None:
    low, high = axis.get_ylim()
    if high - low < least:
        middle = 0.5 * (low + high)
        axis.set_ylim(middle - 0.5 * least, middle + 0.5 * least)


def _since(scenario: Scenario) -> str:
    return {'boot': 'boot', 'arming': 'arming', 'restart': 'wind/restart'}[scenario.clock.value]


def _in_lines(scenario: Scenario, airspeed: float) -> list[str]:
    lines = []
    if scenario.smoothing:
        lines.append(f'record smoothed with {scenario.smoothing:g} s; turbulence comes on top, '
                     'less what is slower')
    for planned in scenario.gusts[:6]:
        lines.append(f'{planned.gust.in_words()}, {planned.trigger.in_words()}')
    if len(scenario.gusts) > 6:
        lines.append(f'and {len(scenario.gusts) - 6} more gusts')
    if any(planned.gust.length is not None for planned in scenario.gusts):
        lines.append(f'lengths are flown through at {airspeed:g} m/s')
    return lines


# ---------------------------------------------------------------------- a scenario of a flight


def convert(flight: RecordedFlight, target: Path, clock: str) -> Path:
    """Write the scenario of a recorded flight; return the path of its record.

    Raises
    ------
    ScenarioToolError
        If the clock is arming, and the flight does not say when that was.
    OSError
        If it cannot be written.
    """
    record = flight.record
    offset = 0.0
    if clock == 'arming':
        if flight.armed_at is None:
            raise ScenarioToolError('the flight does not say when the vehicle was armed; use '
                                    '--clock boot')
        offset = -round(flight.armed_at, 3)
    table = target.with_suffix('.csv')
    if table == target:
        raise ScenarioToolError(f'{target} is the name of the record, too; end it with .yaml')
    entry: dict[str, object] = {'file': table.name, 'by': record.by}
    if offset and record.by == 'time':
        entry['offset'] = offset
    if record.smoothing:
        entry['smoothing'] = record.smoothing
    write_csv(record, table, flight.remarks)
    text = yaml.safe_dump(
        {'name': target.stem, 'clock': clock, 'record': entry}, sort_keys=False)
    target.write_text(''.join(f'# {remark}\n' for remark in flight.remarks) + text,
                      encoding='utf-8')
    return table


def _range(record: Record) -> str:
    unit = 's' if record.by == 'time' else 'm'
    speeds = [float(np.hypot(east, north)) for east, north, _ in record.enu]
    return (f'{len(record.x)} samples by {record.by}, {record.x[0]:.1f} to {record.x[-1]:.1f} '
            f'{unit}, {min(speeds):.1f} to {max(speeds):.1f} m/s')


@contextlib.contextmanager
def _progress_bar(path: Path) -> Iterator[Any]:
    console = Console(stderr=True)
    with Progress(TextColumn('{task.description}'), BarColumn(), TimeRemainingColumn(),
                  console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(f'reading {path.name}', total=1.0)
        yield lambda done: bar.update(task, completed=done)


# ---------------------------------------------------------------------- the command line


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='wind_scenario', description='Check a scenario and draw what will blow; or make one '
        "of a recorded flight's wind.")
    parser.add_argument('input', type=Path,
                        help='scenario.yaml; or FLIGHT.BIN, FLIGHT.tlog or a bag')
    parser.add_argument('-o', '--output', type=Path, metavar='YAML',
                        help='of a flight: the scenario to write; its record and picture get the '
                        'same name with .csv and .png')
    parser.add_argument('--plot', nargs='?', const=Path(), type=Path, metavar='PNG',
                        help="draw what will blow (default: the file's name with .png)")
    flight = parser.add_argument_group('of a flight')
    flight.add_argument('--by', choices=('time', 'height'), default='time',
                        help='what the wind is to depend on (default: time)')
    flight.add_argument('--smoothing', type=float, default=SMOOTHING, metavar='S',
                        help="time constant of the low-pass on EKF3's wind, s; 0: none "
                        f'(default: {SMOOTHING:g})')
    flight.add_argument('--clock', choices=('boot', 'arming'), default='boot',
                        help='what times are to count from (default: boot)')
    flight.add_argument('--vehicle', default='', metavar='NAMESPACE',
                        help='which one of a bag with several vehicles')
    picture = parser.add_argument_group('in the picture')
    picture.add_argument('--speed', type=float, default=0.0, metavar='M/S',
                         help='mean wind that the scenario leaves open, m/s (default: 0)')
    picture.add_argument('--from', type=float, default=270.0, dest='from_deg', metavar='DEG',
                         help='the same, where it comes from (default: 270)')
    picture.add_argument('--airspeed', type=float, default=15.0, metavar='M/S',
                         help='speed at which gusts with a length are met (default: 15)')
    picture.add_argument('--seconds', type=float, metavar='S',
                         help='how long (default: until nothing changes any more)')
    return parser


@pipe_safe
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    for name, low, high in (('airspeed', 1.0, 300.0), ('smoothing', 0.0, 3600.0),
                            ('seconds', 1.0, 1e5), ('speed', 0.0, 60.0)):
        value = getattr(options, name)
        if value is not None and not low <= value <= high:
            parser.error(f'--{name} is {value:g}; it must be from {low:g} to {high:g}')
    try:
        return _run(options)
    except ScenarioError as error:
        for mistake in error.mistakes:
            print(f'wind_scenario: {options.input}: {mistake}', file=sys.stderr)
    except (RecordError, ScenarioToolError) as error:
        print(f'wind_scenario: {error}', file=sys.stderr)
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f'wind_scenario: {error.filename}: {error.strerror}', file=sys.stderr)
    return 1


def _run(options: argparse.Namespace) -> int:
    path, picture = options.input, options.plot
    base = MeanWind.of(options.speed, options.from_deg)
    name = path.name.lower()
    is_flight = path.is_dir() or name.endswith((*BAG_SUFFIXES, *LOG_SUFFIXES))
    if not is_flight and options.output is not None:
        raise ScenarioToolError('-o writes the scenario of a flight; '
                                f'{path} is taken for a scenario itself')
    if is_flight and (options.output is not None or name.endswith(LOG_SUFFIXES)):
        if options.output is None:
            raise ScenarioToolError(f'{path} is a flight: say with -o which scenario to write')
        with _progress_bar(path) as progress:
            flight = recorded_wind(path, by=options.by, smoothing=options.smoothing,
                                   namespace=options.vehicle, progress=progress)
        table = convert(flight, options.output, options.clock)
        for remark in flight.remarks:
            print(f'{remark}.')
        print(f'{options.output} and {table}: {_range(flight.record)}')
        path, picture = options.output, picture or options.output.with_suffix('.png')
    scenario = open_scenario(path, options.vehicle)
    print(scenario.in_words())
    for planned in scenario.gusts:
        print(f'  {planned.gust.in_words()}, {planned.trigger.in_words()}')
    if picture is not None:
        if picture == Path():
            picture = Path(f'{path.resolve().name}.png') if path.is_dir() else (
                path.with_suffix('.png'))
        plot(scenario, picture, base, options.airspeed, options.seconds)
        print(picture)
    return 0


if __name__ == '__main__':
    sys.exit(main())
