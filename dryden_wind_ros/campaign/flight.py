"""A flight as a pure task: an entry of the plan in, one row and its files out.

Whatever goes wrong in a flight is in its row: no exception leaves `fly`.
"""

from __future__ import annotations

import contextlib
import io
import json
import platform
import subprocess
import traceback
from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from dryden_wind_ros.campaign.embedded_flight import WALL_LIMIT, Samples, fly_embedded
from dryden_wind_ros.campaign.entry import Entry
from dryden_wind_ros.campaign.measures import MEASURES, measures_of
from dryden_wind_ros.campaign.telemetry_log import NAME, TelemetryLog

Value = str | float | int | bool | None

TAKEN = ('key', 'index', 'variant', 'pair', 'wind', 'seed', 'wind_speed', 'wind_from', 'wind_up',
         'gusts', 'model', 'scale', 'scenario', 'vehicle', 'path', 'program', 'python', 'numpy',
         'package', 'failure', 'failed', 'sim_seconds', 'ticks_missed', 'ticks_late', 'speedup')
"""Columns of every row beside its measures."""


@dataclass(frozen=True)
class Outcome:
    """What became of a flight.

    Attributes
    ----------
    key : str
        Of its entry.
    row : dict of str to value
        One row of the table.
    files : dict of str to bytes
        By name, for its folder.
    """

    key: str
    row: dict[str, Value]
    files: dict[str, bytes]


def fly(entry: Entry, keep: str = 'all') -> Outcome:
    """Fly one entry.

    Parameters
    ----------
    entry : Entry
    keep : {'all', 'failures', 'none'}
        Of which flights files are made. An embedded flight that turns out to be kept is flown
        again for its log: it is the same again, and most are not kept.
    """
    files = {'entry.json': json.dumps(asdict(entry), indent=1).encode()}
    own: dict[str, Value] = {}
    failure, sim_seconds, missed, late, speedup = '', 0.0, 0, 0, float('nan')
    try:
        samples, recorded = _flown(entry, keep)
        failure, sim_seconds, missed = samples.failure, samples.sim_seconds, samples.ticks_missed
        late, speedup = samples.ticks_late, samples.speedup
        own.update(measures_of(samples))
        for extra in entry.extras:
            own[extra.name] = _own_measure(extra.source, extra.path, extra.function, samples)
        if is_kept(failure, keep):
            files.update(recorded or _flown_again(entry, failure))
            files['flight.csv'] = as_csv(samples)
    except Exception as error:
        failure = failure or f'{type(error).__name__}: {error}'
        files['error.txt'] = traceback.format_exc().encode()
    row: dict[str, Value] = {**identity(entry), 'failure': failure, 'failed': bool(failure),
                             'sim_seconds': sim_seconds, 'ticks_missed': missed,
                             'ticks_late': late, 'speedup': speedup,
                             **dict.fromkeys(MEASURES, float('nan')), **own}
    return Outcome(entry.key, row, files)


def is_kept(failure: str, keep: str) -> bool:
    """Return whether a flight's files are kept."""
    return keep == 'all' or (keep == 'failures' and bool(failure))


def _flown(entry: Entry, keep: str) -> tuple[Samples, dict[str, bytes]]:
    """Fly; return what was recorded, and the files that there are of it already."""
    if entry.live:
        from dryden_wind_ros.campaign.live_flight import fly_live
        return fly_live(entry)
    if keep != 'all':
        return fly_embedded(entry), {}
    log = TelemetryLog()
    return fly_embedded(entry, log), {NAME: log.content}


def _flown_again(entry: Entry, failure: str) -> dict[str, bytes]:
    if failure.startswith(WALL_LIMIT):
        return {}  # it would not come to its end this time either
    log = TelemetryLog()
    fly_embedded(entry, log)
    return {NAME: log.content}


def identity(entry: Entry) -> dict[str, Value]:
    """Return what a row says of where it comes from."""
    wind = entry.wind
    return {
        'key': entry.key, 'index': entry.index, 'variant': entry.variant, 'pair': entry.pair,
        'wind': wind.name, 'seed': entry.seed, 'wind_speed': wind.speed,
        'wind_from': wind.from_deg, 'wind_up': wind.up, 'gusts': wind.gusts, 'model': wind.model,
        'scale': wind.scale, 'scenario': wind.scenario, 'vehicle': entry.vehicle.kind,
        'path': entry.manoeuvre.path, 'program': entry.vehicle.digest,
        'python': platform.python_version(), 'numpy': np.__version__, 'package': version()}


@cache
def version() -> str:
    """Return the version of this package; from a git checkout, with its commit."""
    root = Path(__file__).resolve().parents[2]
    try:
        found = metadata.version('dryden_wind_ros')
    except metadata.PackageNotFoundError:
        found = _version_of_source(root)
    commit = ''
    if (root / '.git').exists():  # a folder, or the file of a work tree
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            commit = subprocess.run(
                ['git', '-C', str(root), 'describe', '--always', '--dirty'], text=True,
                capture_output=True, check=True, timeout=10).stdout.strip()
    return f'{found} ({commit})' if commit else found


def _version_of_source(root: Path) -> str:
    """Return what package.xml says where nothing is installed."""
    try:
        return ElementTree.parse(root / 'package.xml').findtext('version') or 'unknown'
    except (OSError, ElementTree.ParseError):
        return 'unknown'


def as_csv(samples: Samples) -> bytes:
    """Return the samples as CSV, one row a tick."""
    text = io.StringIO()
    columns = samples.columns
    np.savetxt(text, np.column_stack(list(columns.values())), fmt='%.6g', delimiter=',',
               header=','.join(columns), comments='')
    return text.getvalue().encode()


def _own_measure(source: str, path: str, function: str, samples: Samples) -> float:
    space: dict[str, object] = {'__name__': 'campaign_measure', '__file__': path}
    exec(compile(source, path, 'exec'), space)
    take = space.get(function)
    if not callable(take):
        raise ValueError(f'{path} has no function {function}')
    return float(take(samples.measured))
