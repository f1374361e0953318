"""A field: whether the recorded gusts are the seed's own, and two flights by their distance."""

from __future__ import annotations

import html

from dryden_wind_ros.report.field_gusts import Together, check_field, together
from dryden_wind_ros.report.flight import AXES, FlightRecord
from dryden_wind_ros.report.markup import table
from dryden_wind_ros.report.sheet import Sheet


def field(sheet: Sheet) -> str | None:
    """Return whether the gusts are those of the seed's field, computed again."""
    found = check_field(sheet.flight)
    if not len(found):
        return None
    verdict = 'same' if found.of_seed == len(found) else 'other'
    seeds = ', '.join(str(one.seed) for one in sheet.flight.settings if one.gusts == 'field')
    return (f'<h3>Gusts of the field</h3><p class="verdict {verdict}"><strong>{found.of_seed} of '
            f'{len(found)} recorded gusts are those of the field of seed {seeds}</strong>, '
            'computed again from place, time and drift; the farthest is '
            f'{float(found.off.max()):.2g} m/s off.</p>')


def by_distance(a: FlightRecord, b: FlightRecord) -> str:
    """Return the comparison of two flights in one field, '' where there is none."""
    found = together(a, b)
    if not isinstance(found, Together):
        return ''
    rows = []
    for i, distance in enumerate(found.distance):
        rows.append([f'{distance:.1f}', str(found.rows[i]), *(
            f'{found.measured[i, axis]:.2f} ({found.theory[i, axis]:.2f})' for axis in range(3)), *(
            f'{found.correlation[i, axis]:.2f} ({found.correlation_theory[i, axis]:.2f})'
            for axis in range(3))])
    fits = ('the gusts differ as they should at these distances: one air' if found.fits else
            'the gusts do not differ as theory has it for these distances')
    head = ('apart, m', 'ticks', *(f'difference of {axis}, m/s' for axis in AXES),
            *(f'correlation of {axis}' for axis in AXES))
    return (f'<p class="verdict {"same" if found.fits else "other"}"><strong>'
            f'{html.escape(fits)}</strong></p>' + table(
                'Both flights at the same time of the air, by distance in it: measured (theory)',
                head, rows))
