"""Fly the same winds with every variant, hundreds of flights: ``wind_campaign plan.yaml``.

The plan is checked whole first. Results go into a folder (a table, a folder a flight, a verdict);
the same command goes on where it was stopped, however that was. ``wind_campaign report FOLDER``
makes verdict and page again. ``--check`` only judges the plan. See docs/campaigns.md.
"""

from __future__ import annotations

from dryden_wind_ros import ending

if __name__ == '__main__':
    ending.listen()

import argparse
import importlib.util
import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from dryden_wind_ros.campaign import plan as plans
from dryden_wind_ros.campaign.collect import Results, ResultsError
from dryden_wind_ros.campaign.plan import Plan, PlanError
from dryden_wind_ros.campaign.processes import program_of
from dryden_wind_ros.campaign.run import Told, client, run
from dryden_wind_ros.tools.command_line import pipe_safe

LIMITS_BROKEN, WRONG, STOPPED = 1, 2, 130
_PLAIN_EVERY = 5.0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='wind_campaign', description=(__doc__ or '').split('\n')[0],
        epilog='wind_campaign report FOLDER makes verdict and page again from what is there.')
    parser.add_argument('plan', type=Path, help='YAML file, or report')
    parser.add_argument('folder', type=Path, nargs='?', help='with report: the results')
    parser.add_argument('--results', type=Path, metavar='FOLDER',
                        help="where to (default: the plan's name in the current folder)")
    parser.add_argument('--scheduler', default='', metavar='ADDRESS',
                        help='of a dask scheduler (tcp://host:8786), in place of this machine')
    parser.add_argument('--workers', type=int, default=0, metavar='N',
                        help='flights side by side on this machine; one a CPU unless given')
    parser.add_argument('--check', action='store_true', help='only check the plan')
    parser.add_argument('--only', nargs='+', default=None, metavar='KEY',
                        help='fly these flights again and keep their files; no verdict')
    return parser


@pipe_safe
def main(args: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns
    -------
    int
        0; 1 if a limit of the plan was not held; 2 if something is wrong; 130 if stopped.
    """
    options = _parser().parse_args(args)
    ending.listen()
    try:
        if str(options.plan) == 'report':
            if options.folder is None:
                raise ResultsError('report needs the folder of a campaign')
            return _report_again(options.folder)
        return _fly(options)
    except (PlanError, ResultsError) as error:
        if isinstance(error, PlanError):
            print(f'wind_campaign: {options.plan}:', *error.mistakes, sep='\n  ', file=sys.stderr)
        else:
            print(f'wind_campaign: {error}', file=sys.stderr)
        return WRONG


def _fly(options: argparse.Namespace) -> int:
    plan = plans.load(options.plan)
    folder = options.results or Path(plan.name)
    if options.workers < 0:
        raise ResultsError(f'--workers is {options.workers}; it must not be below 0')
    if not options.scheduler:
        _check_programs(plan)
    cores = options.workers or os.cpu_count() or 1
    seconds = plan.wall_seconds / cores
    print(f'{plan.name}: {len(plan.entries)} flights, {len(plan.variants)} variants '
          f'({", ".join(plan.variants)}; baseline {plan.baseline}), {plan.sim_seconds:.0f} s of '
          f'sim time' + ('' if options.scheduler else
                         f'; about {seconds:.0f} s on {cores} CPUs'), flush=True)
    if options.check:
        return 0
    only = None
    if options.only is not None:
        known = {entry.key: entry for entry in plan.entries}
        missing = [key for key in options.only if key not in known]
        if missing:
            raise ResultsError(f'--only: {", ".join(missing)}: no such flight in this plan')
        only = [known[key] for key in options.only]
    with Results(folder) as results:
        shutil.copyfile(options.plan, folder / '.plan.yaml.part')
        os.replace(folder / '.plan.yaml.part', folder / 'plan.yaml')
        results.write('plan_path.txt', str(Path(options.plan).resolve()))
        try:
            with client(options.scheduler, options.workers) as dask_client, _progress() as tell:
                whole = run(plan, results, dask_client, tell, only,
                            'all' if only is not None else None)
        finally:
            rows = results.rows(plan.entries)
            if rows:
                results.write_table(rows)
        if not whole:
            print(f'stopped with {len(rows)} of {len(plan.entries)} flights done; the same command '
                  'goes on from there', file=sys.stderr)
            return STOPPED
        if only is not None:
            for entry in only:
                print(folder / 'flights' / entry.key)
            return 0
        return _report(plan, results)


def _check_programs(plan: Plan) -> None:
    """Raise `ResultsError` where the command of a vehicle is not on this machine."""
    for variant, vehicle in {entry.variant: entry.vehicle for entry in plan.entries}.items():
        if vehicle.sitl:
            program = program_of(vehicle)[0]
            if shutil.which(program) is None:
                raise ResultsError(
                    f'variant {variant}: there is no program {program!r} to run, neither in PATH '
                    'nor by that name; a file beside the plan is named with a /, such as '
                    f'./{program}')


def _report_again(folder: Path) -> int:
    if not (folder / 'flights').is_dir():
        raise ResultsError(f'{folder} is not the folder of a campaign: it has no flights')
    try:
        path = Path((folder / 'plan_path.txt').read_text())
    except OSError:
        raise ResultsError(f'{folder} has no plan_path.txt') from None
    plan = plans.load(path)
    with Results(folder) as results:
        rows = results.rows(plan.entries)
        if not rows:
            raise ResultsError(f'{folder} has no flight of {path}')
        results.write_table(rows)
        return _report(plan, results)


def _report(plan: Plan, results: Results) -> int:
    """Write verdict and page, and say in a few lines what was found."""
    # With SciPy, which takes a second to import: workers import this module too
    from dryden_wind_ros.campaign.compare import verdict
    rows = results.rows(plan.entries)
    found = verdict(plan, rows)
    results.write('verdict.json', json.dumps(found.as_json(plan), indent=1))
    print(f'{found.flights} flights, {found.failed} failed, {found.missing} missing: '
          f'{results.folder / "flights.parquet"}')
    for one in found.found:
        if one.pairs:
            print(f'  {one.variant}, {one.measure}: {one.text}')
    for judged in found.limits:
        limit = judged.limit
        print(f'  limit {limit.measure} <= {limit.most:g}: {judged.passed} of {judged.flights} '
              f'flights within, {"held" if judged.held else "NOT HELD"}')
    if importlib.util.find_spec('plotly') is None:
        print('no page: it is made with the Python package plotly, which is not installed. '
              'Install it: python3 -m pip install plotly', file=sys.stderr)
    else:
        from dryden_wind_ros.campaign.page import render
        command = (f'wind_campaign {shlex.quote(plan.path)} '
                   f'--results {shlex.quote(str(results.folder))} --only')
        print(results.write('index.html', render(plan, rows, found, command)))
    return 0 if found.held else LIMITS_BROKEN


@contextmanager
def _progress() -> Iterator[Told]:
    """Show how far it is: a bar, or lines where there is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines()
        return
    with Progress(TextColumn('{task.description}'), BarColumn(20), MofNCompleteColumn(),
                  TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task('flights', total=None)

        def tell(done: int, running: int, failed: int, total: int) -> None:
            bar.update(task, completed=done, total=total,
                       description=f'flights ({running} on the way, {failed} failed)')

        yield tell


class _Lines:
    def __init__(self) -> None:
        self._began = self._next = time.monotonic()
        self._first: int | None = None
        self._last = -1

    def __call__(self, done: int, running: int, failed: int, total: int) -> None:
        now = time.monotonic()
        if self._first is None:
            self._first = done
        if done == self._last or (now < self._next and done < total):
            return
        self._next, self._last = now + _PLAIN_EVERY, done
        flown = done - self._first
        left = (f', {(now - self._began) / flown * (total - done):.0f} s left'
                if flown and done < total else '')
        print(f'{done} of {total} flights done, {running} on the way, {failed} failed{left}',
              file=sys.stderr, flush=True)


if __name__ == '__main__':
    sys.exit(main())
