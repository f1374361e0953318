"""Many flights in one table."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from dryden_wind_ros.report.analysis import Analysis
from dryden_wind_ros.report.compare import FAIR, Comparison
from dryden_wind_ros.report.flight import FlightRecord
from dryden_wind_ros.report.markup import number, table
from dryden_wind_ros.report.phases import mean_error


def overview(flights: Sequence[tuple[FlightRecord, Analysis]],
             comparisons: Sequence[tuple[int, int, Comparison]]) -> str:
    """Return a table of all flights, with the verdicts on those that were compared."""
    verdicts = {b: (a, found) for a, b, found in comparisons}
    any_ekf = any(analysis.phases for _, analysis in flights)
    rows = []
    for at, (flight, analysis) in enumerate(flights):
        first = flight.settings[0] if flight.settings else None
        good = '–'
        if analysis.strength is not None:
            enough = analysis.strength.enough
            good = (f'{int((analysis.strength.agrees & enough).sum())} of {int(enough.sum())}'
                    if enough.any() else 'too short')
        rows.append([
            f'<a href="#f{at}">{html.escape(flight.name)}</a>',
            number(analysis.tally.seconds, 0),
            f'{first.mean_speed:g} from {first.mean_from_deg:g}°' if first else '–',
            html.escape(f'{first.gusts}, seed {first.seed}') if first else '–', good,
            f'{analysis.draws.of_seed} of {len(analysis.draws)}' if len(analysis.draws) else '–'])
        if any_ekf:
            error = mean_error(analysis.phases)
            rows[-1].append(number(error, 2) if math.isfinite(error) else '–')
        if comparisons:
            rows[-1].append('–' if at not in verdicts else _verdict(flights, *verdicts[at]))
    head = ['flight', 's', 'mean wind, m/s', 'gusts', 'strength', 'draws']
    head += ["EKF3's error, m/s"] * any_ekf
    return ('<section id="overview"><h2>Overview</h2>' + table(
        'All flights. Strength: axes that agree with the model; draws: those that are the seed’s '
        'own. A click on a heading below opens its part.',
        head + ['same air as'] * bool(comparisons), rows, (3, 6 + any_ekf)) + '</section>')


def _verdict(flights: Sequence[tuple[FlightRecord, Analysis]], a: int, found: Comparison) -> str:
    look = 'good' if found.verdict in FAIR else 'muted' if found.verdict == 'unknown' else 'bad'
    return f'{html.escape(flights[a][0].name)}: <span class="{look}">{found.verdict}</span>'
