"""EKF3's wind beside the wind flown, and its phases."""

from __future__ import annotations

import html

import numpy as np

from dryden_wind_ros.ekf.phase import WindPhase
from dryden_wind_ros.report.analysis import Analysis
from dryden_wind_ros.report.flight import FlightRecord
from dryden_wind_ros.report.markup import number, table
from dryden_wind_ros.report.phases import PHASE_COLOURS, phase_name
from dryden_wind_ros.report.plots import (
    Plot,
    compass_ticks,
    direction_of,
    line,
    middle_direction,
    stack,
    take,
    with_gaps,
)
from dryden_wind_ros.report.sheet import Sheet


def ekf(sheet: Sheet) -> str | None:
    """Return EKF3's estimate and error over time; None without any."""
    if sheet.flight.ekf is None or not len(sheet.flight.ekf):
        return None
    return sheet.figure(_ekf_plot(sheet)) + _phase_legend(sheet.analysis)


def phases(sheet: Sheet) -> str | None:
    """Return the table of EKF3's phases."""
    return _phase_table(sheet.flight, sheet.analysis) if sheet.analysis.phases else None


def _ekf_plot(sheet: Sheet) -> Plot:
    ekf, analysis = sheet.flight.ekf, sheet.analysis
    assert ekf is not None
    t, rows = with_gaps(ekf.t, 5.0)
    figure = stack(3, ['speed, m/s', 'from, deg', 'error, m/s'])
    flown = np.hypot(ekf.flown_e, ekf.flown_n)
    with np.errstate(invalid='ignore'):
        estimate = np.hypot(ekf.wind_e, ekf.wind_n)
        flown_from = direction_of(flown, np.degrees(np.arctan2(-ekf.flown_e, -ekf.flown_n)))
        estimate_from = direction_of(estimate, np.degrees(np.arctan2(-ekf.wind_e, -ekf.wind_n)))
    directions = np.concatenate([flown_from, estimate_from])
    centre = middle_direction(directions) if np.isfinite(directions).any() else 0.0
    lows, highs = [], []
    for name, row, values, role, label in (
            ('flown', 1, flown, 'flown', 'flown'),
            ('estimate', 1, estimate, 'estimate', "EKF3's estimate"),
            ('flown_from', 2, flown_from, 'flown', 'flown'),
            ('estimate_from', 2, estimate_from, 'estimate', "EKF3's estimate"),
            ('error', 3, ekf.error_speed, 'error', 'length of (estimate − flown)')):
        if row == 2:
            values = centre + (values - centre + 180.0) % 360.0 - 180.0
            if (known := values[np.isfinite(values)]).size:
                lows.append(float(known.min()))
                highs.append(float(known.max()))
        unit = 'deg' if row == 2 else 'm/s'
        figure.add_trace(line(
            sheet.store, f'{sheet.key}.ekf_{name}', t, take(values, rows), role, label,
            legendgroup=label, showlegend=row != 2,
            line={'width': 2.2 if role == 'estimate' else 1.3},
            hovertemplate=f'%{{y:.2f}} {unit}'), row=row, col=1)
    if lows:
        figure.update_yaxes(**compass_ticks(min(lows), max(highs)), row=2, col=1)
    figure.update_yaxes(rangemode='tozero', row=1, col=1)
    figure.update_yaxes(rangemode='tozero', row=3, col=1)
    whole = analysis.phases[-1].end - analysis.phases[0].start
    shapes, names = [], []
    for span in analysis.phases:
        phase = WindPhase(span.phase) if span.phase in list(WindPhase) else WindPhase.UNKNOWN
        name = phase_name(phase)
        shapes.append({
            'type': 'rect', 'xref': 'x', 'yref': 'paper', 'x0': span.start, 'x1': span.end,
            'y0': 0, 'y1': 1, 'fillcolor': PHASE_COLOURS[phase], 'line': {'width': 0},
            'layer': 'below', 'name': name})
        if span.end - span.start > 0.016 * len(name) * whole:
            names.append({
                'x': 0.5 * (span.start + span.end), 'y': 1.0, 'xref': 'x', 'yref': 'paper',
                'text': name, 'showarrow': False, 'yanchor': 'bottom', 'font': {'size': 11},
                'name': 'phase'})
    # In one go: add_shape copies all shapes for each new one.
    figure.update_layout(shapes=shapes, annotations=names)
    return Plot(
        f'{sheet.key}-ekf', "EKF3's wind", "EKF3's estimate beside the wind really flown (the wind "
        'sent, through the filter of SITL), with the phases of the estimate as bands. A line that '
        'stops: no estimate, which is not an estimate of zero, or no direction in a calm.',
        figure, 590, sheet.key)


def _phase_legend(analysis: Analysis) -> str:
    seen = sorted({span.phase for span in analysis.phases})
    return '<ul class="phases" aria-label="Phases">' + ''.join(
        f'<li><i style="background:{PHASE_COLOURS.get(WindPhase(p), "none")}"></i>'
        f'{html.escape(phase_name(p))}</li>' for p in seen if p in list(WindPhase)) + '</ul>'


def _phase_table(flight: FlightRecord, analysis: Analysis) -> str:
    head = ['phase', 'from, s', 'to, s', 'for, s', 'error, m/s', 'largest', 'turn, °']
    judged = flight.kind != 'dataflash'  # such a log has the phases, but nothing on trust
    explained = any(p.reason for p in analysis.phases)
    rows = []
    for p in analysis.phases:
        rows.append([html.escape(phase_name(p.phase)), number(p.start, 1), number(p.end, 1),
                     number(p.end - p.start, 1), number(p.error_mean), number(p.error_max),
                     number(p.direction_mean, 0)])
        if judged:
            rows[-1].append(f'{100 * p.settled:.0f} %')
        if explained:
            rows[-1].append(html.escape(p.reason))
    head += ['settled'] * judged + ['why'] * explained
    return table(
        "Phases of EKF3's wind. Error: length of (estimate − flown); turn: mean size of the error "
        'of the direction' + ('; settled: share of the time in which the estimate might be '
                              'believed.' if judged else '.'),
        head, rows, (len(head) - 1,) if explained else ())
