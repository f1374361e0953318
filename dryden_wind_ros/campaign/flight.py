"""A flight as a pure task: an entry of the plan in, one row and its files out.

Whatever goes wrong in a flight is in its row: no exception leaves `fly`.
"""

from __future__ import annotations

import io
import json
import platform
import traceback
from dataclasses import asdict, dataclass

import numpy as np

from dryden_wind_ros.campaign.embedded_flight import Samples, fly_embedded
from dryden_wind_ros.campaign.entry import Entry
from dryden_wind_ros.campaign.measures import MEASURES, measures_of

Value = str | float | int | bool | None


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


def fly(entry: Entry) -> Outcome:
    """Fly one entry."""
    files = {'entry.json': json.dumps(asdict(entry), indent=1).encode()}
    own: dict[str, Value] = {}
    failure, sim_seconds, missed = '', 0.0, 0
    try:
        if entry.script:
            from dryden_wind_ros.campaign.script_flight import fly_script
            samples, output = fly_script(entry)
            files.update(output)
        else:
            samples = fly_embedded(entry)
        failure, sim_seconds, missed = samples.failure, samples.sim_seconds, samples.ticks_missed
        own.update(measures_of(samples))
        files['flight.csv'] = as_csv(samples)
        for extra in entry.extras:
            own[extra.name] = _own_measure(extra.source, extra.path, extra.function, samples)
    except Exception as error:
        failure = failure or f'{type(error).__name__}: {error}'
        files['error.txt'] = traceback.format_exc().encode()
    row: dict[str, Value] = {**identity(entry), 'failure': failure, 'failed': bool(failure),
                             'sim_seconds': sim_seconds, 'ticks_missed': missed,
                             **dict.fromkeys(MEASURES, float('nan')), **own}
    return Outcome(entry.key, row, files)


def identity(entry: Entry) -> dict[str, Value]:
    """Return what a row says of where it comes from."""
    wind = entry.wind
    return {
        'key': entry.key, 'index': entry.index, 'variant': entry.variant, 'pair': entry.pair,
        'wind': wind.name, 'seed': entry.seed, 'wind_speed': wind.speed,
        'wind_from': wind.from_deg, 'wind_up': wind.up, 'gusts': wind.gusts, 'model': wind.model,
        'scale': wind.scale, 'scenario': wind.scenario, 'vehicle': entry.vehicle.kind,
        'path': entry.manoeuvre.path, 'python': platform.python_version(),
        'numpy': np.__version__, 'package': version()}


def version() -> str:
    """Return the version of this package; '' where it is not installed."""
    from importlib import metadata
    try:
        return metadata.version('dryden_wind_ros')
    except metadata.PackageNotFoundError:
        return ''


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
