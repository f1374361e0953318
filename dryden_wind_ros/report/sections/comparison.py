"""Two flights beside each other."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from dryden_wind_ros.gusts.tick_grid import TICK_S
from dryden_wind_ros.report.compare import CLOSE_GUST, FAIR, Comparison
from dryden_wind_ros.report.flight import AXES, FlightRecord, FloatArray
from dryden_wind_ros.report.markup import cards, figure, number, table
from dryden_wind_ros.report.plots import ColumnStore, Plot, line, stack, take, with_gaps
from dryden_wind_ros.report.sections.field import by_distance
from dryden_wind_ros.report.words import AXIS_WORDS, WORDS

_LEAST_RANGE = 0.1  # m/s


def comparison(a: FlightRecord, b: FlightRecord, found: Comparison,
               plots: Sequence[Plot]) -> str:
    """Return the part of the page that says whether two flights met the same air."""
    look = 'same' if found.verdict in FAIR else '' if found.verdict == 'unknown' else 'other'
    parts = [f'<p class="lead">A: {html.escape(a.name)}<br>B: {html.escape(b.name)}</p>',
             f'<p class="verdict {look}"><strong>{html.escape(found.text)}</strong></p>']
    told = bool(a.settings and b.settings)
    of = f'of {found.common}'
    if found.common:
        shown = [('Ticks in common', str(found.common), f'{found.common * TICK_S:.0f} s'),
                 ('Same wind', f'{found.wind_same} {of}',
                  'mean and gust, east, north and up' if told else 'SIM_WIND_*, within 0.05 m/s')]
        if found.draws:
            shown += [
                ('Same draws', f'{found.draws_same} of {found.draws}', 'recovered from the gusts'),
                ('Same gusts', f'{found.gusts_same} {of}', 'u, v and w equal'),
                ('Close gusts', f'{found.gusts_close} {of}',
                 f'u, v and w within {CLOSE_GUST:g} m/s'),
                *((f'Correlation of {axis}', number(float(c), 3), 'over the ticks in common')
                  for axis, c in zip(AXES, found.correlation, strict=True))]
        parts.append(cards(shown))
    if found.parted:
        parts.append(table(
            'How far the flights parted, B − A, over the ticks in common',
            ('', 'mean', 'rms', 'largest', 'at, s'),
            [[html.escape(f'{p.name}, {p.unit}'), f'{p.mean:.3g}', f'{p.rms:.3g}',
              f'{p.largest:.3g}', number(p.largest_at, 2)] for p in found.parted]))
    if found.settings:
        parts.append(table(
            'Settings that differ at the same tick', ('setting', 'A', 'B', 'ticks', 'from, s'),
            [[html.escape(WORDS.get(d.name, d.name)), html.escape(d.a), html.escape(d.b),
              f'{d.ticks} {of}', number(d.first)] for d in found.settings], (1, 2)))
    elif told and found.common:
        parts.append('<p>All settings are the same at every common tick.</p>')
    parts.append(by_distance(a, b))
    parts += [figure(plot) for plot in plots]
    return '\n'.join(parts)


def comparison_plots(a: FlightRecord, b: FlightRecord, found: Comparison, store: ColumnStore,
                     prefix: str) -> list[Plot]:
    """Return the plots of an A/B pair, over the ticks both have; none if there are too few."""
    if len(found.row_a) < 2:
        return []
    t, rows = with_gaps(_rising(a.air.t[found.row_a]), 1.0)
    if a.settings and b.settings:
        what, names, words = 'Gust', AXES, tuple(AXIS_WORDS.values())
        both = (a.air.gust, b.air.gust)
    else:  # u and v are along and across each record's own mean: nothing to compare by
        what, names, words = 'Wind given', ('east', 'north', 'up'), ('east', 'north', 'up')
        both = (a.air.mean_enu + a.air.gust_enu, b.air.mean_enu + b.air.gust_enu)
    over = stack(3, [f'{name}, m/s' for name in names])
    part = stack(3, [f'Δ{name}, m/s' for name in names])
    for i, name in enumerate(names):
        values = (both[0][i, found.row_a], both[1][i, found.row_b])
        for which, (flight, y) in enumerate(zip((a, b), values, strict=True)):
            over.add_trace(line(
                store, f'{prefix}.{name}{which}', t, take(y, rows), 'ab'[which],
                f'{"AB"[which]}: {flight.name}', legendgroup='ab'[which], showlegend=i == 0,
                line={'width': 1.2 if which else 2.6}, hovertemplate='%{y:.2f} m/s'),
                row=i + 1, col=1)
        apart = values[1] - values[0]
        part.add_trace(line(
            store, f'{prefix}.d{name}', t, take(apart, rows), 'uvw'[i],
            f'B − A, {words[i]}', hovertemplate='%{y:.3g} m/s'), row=i + 1, col=1)
        if not np.nanmax(np.abs(apart), initial=0.0) > _LEAST_RANGE:
            # Rounding is not to look like a gust.
            part.update_yaxes(range=[-_LEAST_RANGE, _LEAST_RANGE], row=i + 1, col=1)
    plots = [
        Plot(f'{prefix}-gust', f'{what} of A and B', 'Both flights by tick number. Where the lines '
             'lie on each other, the aircraft met the same.', over, 540, prefix),
        Plot(f'{prefix}-apart', f'{what}, B − A', 'What is left of it when A is taken off.', part,
             440, prefix)]
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
