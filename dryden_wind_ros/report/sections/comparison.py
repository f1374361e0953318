"""Two flights beside each other."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from dryden_wind_ros.report.compare import CLOSE_GUST, Comparison
from dryden_wind_ros.report.flight import AXES, FlightRecord, FloatArray
from dryden_wind_ros.report.markup import cards, figure, number, table
from dryden_wind_ros.report.plots import AXIS_WORDS, ColumnStore, Plot, line, stack, take, with_gaps


def comparison(key: str, a: FlightRecord, b: FlightRecord, found: Comparison,
                plots: Sequence[Plot]) -> str:
    look = {'same': 'same', 'same draws': 'same', 'other draws': 'other'}.get(found.verdict, '')
    parts = [f'<section id="{key}"><h2>Did A and B meet the same air?</h2>',
             f'<p class="lead">A: {html.escape(a.name)}<br>B: {html.escape(b.name)}</p>',
             f'<p class="verdict {look}"><strong>{html.escape(found.text)}</strong></p>']
    if found.draws:
        parts.append(cards((
            ('Ticks in common', str(found.common), f'{found.common * 0.05:.0f} s'),
            ('Same draws', f'{found.draws_same} of {found.draws}', 'recovered from the gusts'),
            ('Same gusts', f'{found.gusts_same} of {found.common}', 'u, v and w equal'),
            ('Close gusts', f'{found.gusts_close} of {found.common}',
             f'u, v and w within {CLOSE_GUST:g} m/s'),
            *((f'Correlation of {axis}', number(float(c), 3), 'over the ticks in common')
              for axis, c in zip(AXES, found.correlation, strict=True)))))
    if found.parted:
        parts.append(table(
            'How far the flights parted, B − A, over the ticks in common',
            ('', 'mean', 'rms', 'largest', 'at, s'),
            [[html.escape(f'{p.name}, {p.unit}'), f'{p.mean:.3g}', f'{p.rms:.3g}',
              f'{p.largest:.3g}', number(p.largest_at, 2)] for p in found.parted]))
    if a.settings and b.settings:
        parts.append(table('Settings that differ', ('setting', 'A', 'B'),
                            [[html.escape(cell) for cell in row] for row in found.settings])
                     if found.settings else '<p>All settings are the same.</p>')
    parts += [figure(plot) for plot in plots]
    parts.append('</section>')
    return '\n'.join(parts)


def comparison_plots(a: FlightRecord, b: FlightRecord, found: Comparison, store: ColumnStore,
                     prefix: str) -> list[Plot]:
    """Return the plots of an A/B pair, over the ticks both have; none if there are too few."""
    if len(found.row_a) < 2:
        return []
    t, rows = with_gaps(_rising(a.air.t[found.row_a]), 1.0)
    gust = stack(3, [f'{axis}, m/s' for axis in AXES])
    part = stack(3, [f'Δ{axis}, m/s' for axis in AXES])
    for i, axis in enumerate(AXES):
        values = (a.air.gust[i, found.row_a], b.air.gust[i, found.row_b])
        for which, (flight, y) in enumerate(zip((a, b), values, strict=True)):
            gust.add_trace(line(
                store, f'{prefix}.{axis}{which}', t, take(y, rows), 'ab'[which],
                f'{"AB"[which]}: {flight.name}', legendgroup='ab'[which], showlegend=i == 0,
                line={'width': 1.2 if which else 2.6}, hovertemplate='%{y:.2f} m/s'),
                row=i + 1, col=1)
        part.add_trace(line(
            store, f'{prefix}.d{axis}', t, take(values[1] - values[0], rows), axis,
            f'B − A, {AXIS_WORDS[axis]}', hovertemplate='%{y:.3g} m/s'), row=i + 1, col=1)
    plots = [
        Plot(f'{prefix}-gust', 'Gust of A and B', 'Both flights by tick number. Where the lines '
             'lie on each other, the aircraft met the same gust.', gust, 540, prefix),
        Plot(f'{prefix}-apart', 'Gust, B − A', 'What is left of it when A is taken off.', part, 440,
             prefix)]
    pairs = [(name, unit, x[found.row_a], y[found.row_b]) for name, unit, x, y in (
        ('height', 'm', a.air.height, b.air.height),
        ('airspeed', 'm/s', a.air.airspeed, b.air.airspeed)) if np.isfinite(x[found.row_a]).any()
        and np.isfinite(y[found.row_b]).any()]
    if pairs:
        figure = stack(len(pairs), [f'{name}, {unit}' for name, unit, _, _ in pairs])
        for row, (name, unit, x, y) in enumerate(pairs, 1):
            for which, column in enumerate((x, y)):
                figure.add_trace(line(
                    store, f'{prefix}.{name}{which}', t, take(column, rows), 'ab'[which],
                    'AB'[which], legendgroup='ab'[which], showlegend=row == 1,
                    line={'width': 1.2 if which else 2.6},
                    hovertemplate=f'%{{y:.2f}} {unit}'), row=row, col=1)
        plots.append(Plot(f'{prefix}-height', 'Height and airspeed of A and B', 'What parts the '
                          'gusts of two flights with the same draws.', figure, 380, prefix))
    return plots


def _rising(t: FloatArray) -> FloatArray:
    return t if len(t) < 2 or (np.diff(t) > 0.0).all() else np.asarray(
        t[0] + np.concatenate([[0.0], np.cumsum(np.maximum(np.diff(t), 0.05))]))
