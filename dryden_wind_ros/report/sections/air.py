"""What blew, over time: gust, whole wind, SIM_WIND_*, height and airspeed."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from dryden_wind_ros.report.anemometer import CALM
from dryden_wind_ros.report.flight import AXES, FloatArray
from dryden_wind_ros.report.plots import (
    Plot,
    compass_ticks,
    direction_of,
    middle_direction,
    restart_lines,
    stack,
)
from dryden_wind_ros.report.sheet import Sheet
from dryden_wind_ros.report.thinning import thin
from dryden_wind_ros.report.words import AXIS_WORDS


def air(sheet: Sheet) -> str | None:
    """Return the plots of the air; None where the record holds none."""
    air = sheet.flight.air
    if not len(air):
        return None
    plots = []
    if np.isfinite(air.gust).any():
        plots += [_gust_plot(sheet), _wind_plot(sheet), _sim_wind_plot(sheet)]
    if np.isfinite(air.height).any() or np.isfinite(air.airspeed).any():
        plots.append(_height_plot(sheet))
    return ''.join(sheet.figure(plot) for plot in plots) or None


def _gust_plot(sheet: Sheet) -> Plot:
    air, analysis = sheet.flight.air, sheet.analysis
    figure = stack(3, [f'{axis}, m/s' for axis in AXES])
    for i, axis in enumerate(AXES):
        figure.add_trace(sheet.line(axis, air.gust[i], axis, AXIS_WORDS[axis],
                                    hovertemplate='%{y:.2f} m/s'), row=i + 1, col=1)
        if analysis.strength is None:
            continue
        keep = thin(air.sigma[i], 1200)
        at = air.timeline()[keep]
        for sign in (2.0, -2.0):
            figure.add_trace(go.Scatter(
                x=at, y=sign * air.sigma[i, keep], mode='lines', hoverinfo='skip',
                line={'width': 1, 'dash': 'dot', 'shape': 'hv'}, legendgroup='sigma',
                name='± 2 σ', showlegend=i == 0 and sign > 0.0,
                meta={'role': 'model'}), row=i + 1, col=1)
    restart_lines(figure, sheet.flight)
    caption = 'The gust along the mean wind (u), to its right seen from above (v) and up (w). '
    if analysis.strength is not None:
        caption += 'Dotted: twice the standard deviation aimed at.'
    elif not sheet.flight.settings:
        caption += ('Here: the wind less its mean, from one jump of the wind to the next. The calm '
                    'before a wind was first given is left out.')
    return Plot(f'{sheet.key}-gust', 'Gust', caption, figure, 540, sheet.key)


def _wind_plot(sheet: Sheet) -> Plot:
    air = sheet.flight.air
    wind = air.mean_enu + air.gust_enu
    figure = stack(2, ['horizontal, m/s', 'up, m/s'])
    for row, (name, whole, mean) in enumerate((
            ('speed', np.hypot(wind[0], wind[1]), np.hypot(air.mean_enu[0], air.mean_enu[1])),
            ('up', wind[2], air.mean_enu[2])), 1):
        first = row == 1
        figure.add_trace(sheet.line(
            name, whole, 'whole', 'mean + gust', legendgroup='whole', showlegend=first,
            hovertemplate='%{y:.2f} m/s'), row=row, col=1)
        figure.add_trace(sheet.line(
            f'mean_{name}', mean, 'mean', 'mean', legendgroup='mean', showlegend=first,
            line={'width': 2}, hovertemplate='%{y:.2f} m/s'), row=row, col=1)
    return Plot(
        f'{sheet.key}-wind', 'Mean wind and whole wind', 'Mean wind, and mean with gust: '
        'horizontal speed, and the vertical part.', figure, 380, sheet.key)


def _sim_wind_plot(sheet: Sheet) -> Plot:
    speed, direction, tilt = sheet.flight.air.sim_wind
    direction, tilt = direction_of(speed, direction), direction_of(speed, tilt)
    figure = stack(3, ['SPD, m/s', 'DIR, deg', 'DIR_Z, deg'])
    centre = middle_direction(direction)
    turned = centre + (direction - centre + 180.0) % 360.0 - 180.0
    for row, (name, values, role, unit) in enumerate((
            ('SIM_WIND_SPD', speed, 'u', 'm/s'), ('SIM_WIND_DIR', turned, 'v', 'deg'),
            ('SIM_WIND_DIR_Z', tilt, 'w', 'deg')), 1):
        figure.add_trace(sheet.line(name, values, role, name,
                                    hovertemplate=f'%{{y:.2f}} {unit}'), row=row, col=1)
    known = turned[np.isfinite(turned)]
    if len(known):
        figure.update_yaxes(**compass_ticks(float(known.min()), float(known.max())), row=2, col=1)
    return Plot(
        f'{sheet.key}-sim-wind', 'SIM_WIND_* given', 'What ArduPilot SITL was to be given: '
        'length of the whole wind vector, where it comes from, and its angle above the '
        f'horizontal; no direction in a calm (below {CALM:g} m/s). SITL smooths it (SIM_WIND_TC) '
        'before the vehicle feels it.', figure, 460, sheet.key)


def _height_plot(sheet: Sheet) -> Plot:
    air = sheet.flight.air
    figure = stack(2, ['height, m', 'airspeed, m/s'])
    figure.add_trace(sheet.line('height', air.height, 'u', 'height above ground',
                                hovertemplate='%{y:.2f} m'), row=1, col=1)
    figure.add_trace(sheet.line('airspeed', air.airspeed, 'v', 'airspeed',
                                hovertemplate='%{y:.2f} m/s'), row=2, col=1)
    caption = ('What the gust model was given: strength and length follow the height, time '
               'constants the airspeed.' if sheet.flight.kind == 'bag' else
               'As the vehicle knew them.')
    most = _usual_most(air.airspeed)
    if most is not None:
        figure.update_yaxes(range=[0.0, most], row=2, col=1)
        caption += (f' Airspeeds of up to {np.nanmax(air.airspeed):.0f} m/s lie beyond the plot: '
                    'a sensor that was not yet zeroed says so.')
    return Plot(f'{sheet.key}-height', 'Height and airspeed', caption, figure, 380, sheet.key)


def _usual_most(values: FloatArray) -> float | None:
    """Return where to end an axis that a few values would stretch; None if none do."""
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    usual = float(np.quantile(known, 0.985))
    return 1.25 * max(usual, 1.0) if known.max() > 1.6 * max(usual, 1.0) else None
