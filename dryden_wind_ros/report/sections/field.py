"""A field: whether the recorded gusts are the seed's own, and two flights by their distance."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dryden_wind_ros.report.field_gusts import Together, fields_apart, together
from dryden_wind_ros.report.flight import AXES, FlightRecord
from dryden_wind_ros.report.markup import figure, table
from dryden_wind_ros.report.plots import Plot
from dryden_wind_ros.report.sheet import Sheet

_MOST_PAIRS = 45  # of ten vehicles, all
_ONE_FRAME_M = 0.5

Pairs = list[tuple[FlightRecord, FlightRecord, Together]]


def field(sheet: Sheet) -> str | None:
    """Return whether the gusts are those of the seed's field, computed again."""
    found = sheet.analysis.field
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
    fits = ('the gusts differ as they should at these distances: one air' if found.fits else
            'the gusts do not differ as theory has it for these distances')
    moved = ('' if not found.moved > _ONE_FRAME_M else
             f' The zeros of their frames are {found.moved:.0f} m apart on the earth: it is one '
             'field, but not at the same places of the earth. Give both the same origin.')
    return (f'<p class="verdict {"same" if found.fits else "other"}"><strong>'
            f'{html.escape(fits)}</strong>{moved}</p>' + _table([(a, b, found)]))


def pairs_of_fleet(flights: Sequence[FlightRecord]) -> Pairs:
    """Return the pairs of vehicles of one file that flew in one field, 45 at most, compared."""
    pairs = fields_apart(flights)[:_MOST_PAIRS]
    found = ((a, b, together(a, b)) for a, b in pairs)
    return [(a, b, one) for a, b, one in found if isinstance(one, Together)]


def fleet(pairs: Pairs, key: str) -> tuple[str, list[Plot]]:
    """Return the part of the page about vehicles in one field, and its plot."""
    figures = go.Figure()
    for i, axis in enumerate(AXES):
        distance, measured, theory, error = (np.concatenate(columns) for columns in zip(*(
            (one.distance, one.correlation[:, i], one.correlation_theory[:, i], one.error[:, i])
            for _, _, one in pairs), strict=True))
        order = np.argsort(distance, kind='stable')
        figures.add_trace(go.Scatter(
            x=distance[order], y=theory[order], mode='markers', name=f'{axis}, theory',
            marker={'symbol': 'line-ew-open', 'size': 13, 'line': {'width': 2}},
            error_y={'type': 'data', 'array': error[order], 'thickness': 1.2, 'width': 4},
            meta={'role': axis}, hovertemplate='theory %{y:.2f} at %{x:.1f} m<extra></extra>'))
        figures.add_trace(go.Scatter(
            x=distance[order], y=measured[order], mode='markers', name=f'{axis}, measured',
            marker={'size': 9}, meta={'role': axis},
            hovertemplate='%{y:.2f} at %{x:.1f} m<extra></extra>'))
    figures.update_xaxes(title_text='distance in the air, m', rangemode='tozero')
    figures.update_yaxes(title_text='correlation')
    plot = Plot(f'{key}-correlation', 'Correlation by distance', 'Of the gusts of two vehicles at '
                'the same time (dots), beside what theory gives for their distance and its '
                'direction, with the range that holds 95 % of such measurements by chance.',
                figures, 430)
    fit = sum(one.fits for _, _, one in pairs)
    number = 'the pair fits' if fit == len(pairs) == 1 else f'{fit} of {len(pairs)} pairs fit'
    verdict = (f'<p class="verdict {"same" if fit == len(pairs) else "other"}"><strong>'
               f'{number} one air</strong>: their gusts differ by what theory gives for the '
               'distance, within three times the sampling error.</p>')
    return verdict + figure(plot) + _table(pairs), [plot]


def _table(pairs: Pairs) -> str:
    rows = []
    for a, b, found in pairs:
        name = '' if len(pairs) == 1 else html.escape(
            f'{a.namespace or a.name}, {b.namespace or b.name}')
        for i, distance in enumerate(found.distance):
            rows.append([name if i == 0 else '', f'{distance:.1f}', str(found.rows[i]), *(
                f'{found.measured[i, axis]:.2f} ({found.theory[i, axis]:.2f})'
                for axis in range(3)), *(
                f'{found.correlation[i, axis]:.2f} ({found.correlation_theory[i, axis]:.2f})'
                for axis in range(3))])
    head = ('pair', 'apart, m', 'ticks', *(f'difference of {axis}, m/s' for axis in AXES),
            *(f'correlation of {axis}' for axis in AXES))
    if len(pairs) == 1:
        head, rows = head[1:], [one[1:] for one in rows]
    return table('Gusts at the same time of the air, by distance in it: measured (theory)', head,
                 rows)
