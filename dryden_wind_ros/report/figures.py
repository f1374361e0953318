"""Plots of the report, as Plotly figures.

Lines over time do not carry their numbers: they name columns of a `ColumnStore`, which the page
holds once, packed, and thins out in the browser to what the screen can show (the least and the
greatest value of each pixel), anew at each zoom. Colours are named by role, so that the page can
change them between light and dark.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dryden_wind_ros.ekf.phase import WindPhase
from dryden_wind_ros.gusts.dryden import low_altitude_scales
from dryden_wind_ros.report.analysis import CONFIDENCE, Analysis
from dryden_wind_ros.report.compare import Comparison
from dryden_wind_ros.report.flight import AXES, FlightRecord, FloatArray, IntArray

AXIS_WORDS = {'u': 'u, along the wind', 'v': 'v, to the right', 'w': 'w, up'}

PHASE_COLOURS = {
    WindPhase.UNKNOWN: 'rgba(128,128,128,0.06)',
    WindPhase.NOT_ESTIMATED: 'rgba(128,128,128,0.20)',
    WindPhase.GROUND: 'rgba(128,128,128,0.20)',
    WindPhase.INHIBITED: 'rgba(128,128,128,0.40)',
    WindPhase.INIT: 'rgba(240,160,50,0.60)',
    WindPhase.LEARNING: 'rgba(70,170,90,0.18)',
    WindPhase.COAST: 'rgba(60,130,230,0.32)',
    WindPhase.RELEARN: 'rgba(190,90,205,0.40)',
}
"""Bands; half transparent, so that they do on light and on dark."""

TOTAL_ROWS = 160_000
"""Rows of columns that a page holds in full, of all flights; beyond, columns are thinned out."""

_THINNED = 6000


@dataclass(frozen=True)
class Plot:
    """A figure with what surrounds it.

    Attributes
    ----------
    key : str
        Unique in the page.
    title, caption : str
        Heading, and what there is to see.
    figure : Figure
        The figure.
    height : int
        Pixels.
    linked : str
        Plots with the same word zoom in time together; '' for none.
    """

    key: str
    title: str
    caption: str
    figure: go.Figure
    height: int
    linked: str = ''


@dataclass
class ColumnStore:
    """Packed columns by name.

    Values are rounded to 16 bits between the least and the greatest (1/65534 of the range, far
    below a pixel); times are floats of 32 bits after a start. `--csv` has them in full.
    """

    packed: dict[str, dict[str, Any]] = field(default_factory=dict)
    most: int = TOTAL_ROWS

    def add(self, name: str, x: FloatArray, y: FloatArray) -> dict[str, str]:
        """Pack a line; return what its trace needs to find it."""
        keep = None
        if len(x) > self.most:
            keep = thin(y, _THINNED)
            x, y = x[keep], y[keep]
        x_name = f'{name}.x'
        for known, column in self.packed.items():
            if known.endswith('.x') and column['array'] is x:
                x_name = known
        if x_name not in self.packed:
            start = float(x[0]) if len(x) else 0.0
            self.packed[x_name] = {
                'array': x, 'start': start, 'f32': _base64((x - start).astype('<f4'))}
        finite = y[np.isfinite(y)]
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
        step = (high - low) / 65534.0 or 1.0
        with np.errstate(invalid='ignore'):
            whole = np.where(np.isfinite(y), np.rint((y - low) / step) - 32767.0, -32768.0)
        self.packed[name] = {'low': low, 'step': step, 'i16': _base64(whole.astype('<i2'))}
        return {'x': x_name, 'y': name}

    def as_json(self) -> dict[str, dict[str, Any]]:
        """Return what the page embeds."""
        return {name: {key: value for key, value in column.items() if key != 'array'}
                for name, column in self.packed.items()}


def thin(y: FloatArray, points: int) -> IntArray:
    """Return the rows of the least and the greatest value in each of `points` / 2 stretches.

    Parameters
    ----------
    y : ndarray, shape (N,)
        Values; NaN where there are none.
    points : int
        How many rows to return at most, about.

    Returns
    -------
    ndarray of int
        Rows in order, the first and the last among them.
    """
    if len(y) <= points:
        return np.arange(len(y))
    edges = np.linspace(0, len(y), points // 2 + 1).astype(int)[:-1]
    low = np.minimum.reduceat(np.where(np.isnan(y), np.inf, y), edges)
    high = np.maximum.reduceat(np.where(np.isnan(y), -np.inf, y), edges)
    stretch = np.searchsorted(edges, np.arange(len(y)), side='right') - 1
    rows = np.arange(len(y))
    is_low = np.where(y == low[stretch], rows, len(y))
    is_high = np.where(y == high[stretch], rows, len(y))
    found = np.concatenate([np.minimum.reduceat(is_low, edges), np.minimum.reduceat(is_high, edges),
                            [0, len(y) - 1]])
    return np.unique(found[found < len(y)])


def _base64(array: Any) -> str:
    return base64.b64encode(array.tobytes()).decode('ascii')


# ---------------------------------------------------------------------------------------- helpers


def _line(store: ColumnStore, name: str, x: FloatArray, y: FloatArray, role: str, label: str,
          **more: Any) -> go.Scatter:
    """Return a trace whose numbers are in the store; gaps in time are gaps in the line."""
    meta = {'role': role, 'series': store.add(name, x, y), **more.pop('meta', {})}
    line = more.pop('line', {'width': 1.3})
    return go.Scatter(x=[], y=[], name=label, mode='lines', line=line, meta=meta,
                      connectgaps=False, **more)


def _stack(rows: int, titles: Sequence[str], **more: Any) -> go.Figure:
    figure = make_subplots(rows=rows, cols=1, shared_xaxes=True, vertical_spacing=0.045, **more)
    for row, title in enumerate(titles, 1):
        figure.update_yaxes(title_text=title, row=row, col=1)
    figure.update_xaxes(title_text='sim time, s', row=rows, col=1)
    figure.update_layout(hovermode='x unified')
    return figure


def _restart_lines(figure: go.Figure, flight: FlightRecord, t: FloatArray) -> None:
    for start in np.flatnonzero(np.diff(flight.air.run)) + 1:
        at = float(t[start])
        figure.add_vline(x=at, line={'dash': 'dot', 'width': 1.5, 'color': '#888'})
        figure.add_annotation(x=at, y=1.0, xref='x', yref='y domain', text='air begins anew',
                              showarrow=False, xanchor='left', yanchor='top', font={'size': 10})


def _with_gaps(t: FloatArray, most: float) -> tuple[FloatArray, Any]:
    """Return times and rows, with a row that does not exist (-1) in each gap longer than `most`."""
    gaps = np.flatnonzero(np.diff(t) > most) + 1
    rows = np.insert(np.arange(len(t)), gaps, -1)
    return np.insert(t, gaps, t[gaps - 1] + 1e-3) if len(gaps) else t, rows


def _take(values: FloatArray, rows: Any) -> FloatArray:
    return np.asarray(np.where(rows < 0, np.nan, values[rows]))


# ------------------------------------------------------------------------------------- one flight


def flight_plots(flight: FlightRecord, analysis: Analysis, store: ColumnStore,
                 prefix: str) -> list[Plot]:
    """Return the plots of one flight, in the page's order; what the record lacks is left out."""
    plots: list[Plot] = []
    air = flight.air
    if len(air):
        t, rows = _with_gaps(air.timeline(), 1.0)
        if np.isfinite(air.gust).any():
            plots.append(_gust_plot(flight, analysis, store, prefix, t, rows))
            plots.append(_wind_plot(flight, store, prefix, t, rows))
            plots.append(_sim_wind_plot(flight, store, prefix, t, rows))
        if np.isfinite(air.height).any() or np.isfinite(air.airspeed).any():
            plots.append(_height_plot(flight, store, prefix, t, rows))
    if flight.ekf is not None and len(flight.ekf):
        plots.append(_ekf_plot(flight, analysis, store, prefix))
    if analysis.bands:
        plots.append(_strength_plot(flight, analysis, prefix))
    plots.extend(_spectrum_plots(analysis, prefix))
    plots.extend(_autocorrelation_plots(analysis, prefix))
    if analysis.rose is not None:
        plots.append(_rose_plot(analysis, prefix))
    if len(analysis.gust_factor.start):
        plots.append(_gust_factor_plot(analysis, prefix))
    if len(air) and np.isfinite(air.rate).any():
        plots.append(_tick_plot(flight, store, prefix, t, rows))
    return plots


def _gust_plot(flight: FlightRecord, analysis: Analysis, store: ColumnStore, prefix: str,
               t: FloatArray, rows: Any) -> Plot:
    figure = _stack(3, [f'{axis}, m/s' for axis in AXES])
    for i, axis in enumerate(AXES):
        figure.add_trace(_line(store, f'{prefix}.{axis}', t, _take(flight.air.gust[i], rows), axis,
                               AXIS_WORDS[axis], hovertemplate='%{y:.2f} m/s'), row=i + 1, col=1)
        if analysis.strength is None:
            continue
        keep = thin(flight.air.sigma[i], 1200)
        at = flight.air.timeline()[keep]
        for sign in (2.0, -2.0):
            figure.add_trace(go.Scatter(
                x=at, y=sign * flight.air.sigma[i, keep], mode='lines', hoverinfo='skip',
                line={'width': 1, 'dash': 'dot', 'shape': 'hv'}, legendgroup='sigma',
                name='± 2 σ', showlegend=i == 0 and sign > 0.0,
                meta={'role': 'model'}), row=i + 1, col=1)
    _restart_lines(figure, flight, flight.air.timeline())
    caption = ('The gust along the mean wind (u), to its right seen from above (v) and up (w). '
               + ('Dotted: twice the standard deviation aimed at.' if analysis.strength is not None
                  else 'Here: the wind less its mean over the flight.'
                  if not flight.settings else ''))
    return Plot(f'{prefix}-gust', 'Gust', caption, figure, 540, prefix)


def _wind_plot(flight: FlightRecord, store: ColumnStore, prefix: str, t: FloatArray,
               rows: Any) -> Plot:
    air = flight.air
    wind = air.mean_enu + air.gust_enu
    figure = _stack(2, ['horizontal, m/s', 'up, m/s'])
    for row, (name, whole, mean) in enumerate((
            ('speed', np.hypot(wind[0], wind[1]), np.hypot(air.mean_enu[0], air.mean_enu[1])),
            ('up', wind[2], air.mean_enu[2])), 1):
        first = row == 1
        figure.add_trace(_line(store, f'{prefix}.{name}', t, _take(whole, rows), 'whole',
                               'mean + gust', legendgroup='whole', showlegend=first,
                               hovertemplate='%{y:.2f} m/s'), row=row, col=1)
        figure.add_trace(_line(store, f'{prefix}.mean_{name}', t, _take(mean, rows), 'mean',
                               'mean', legendgroup='mean', showlegend=first, line={'width': 2},
                               hovertemplate='%{y:.2f} m/s'), row=row, col=1)
    return Plot(f'{prefix}-wind', 'Mean wind and whole wind', 'Mean wind, and mean with gust: '
                'horizontal speed, and the vertical part.', figure, 380, prefix)


def _sim_wind_plot(flight: FlightRecord, store: ColumnStore, prefix: str, t: FloatArray,
                   rows: Any) -> Plot:
    speed, direction, tilt = flight.air.sim_wind
    figure = _stack(3, ['SPD, m/s', 'DIR, deg', 'DIR_Z, deg'])
    centre = _middle_direction(direction)
    turned = centre + (direction - centre + 180.0) % 360.0 - 180.0
    for row, (name, values, role, unit) in enumerate((
            ('SIM_WIND_SPD', speed, 'u', 'm/s'), ('SIM_WIND_DIR', turned, 'v', 'deg'),
            ('SIM_WIND_DIR_Z', tilt, 'w', 'deg')), 1):
        figure.add_trace(_line(store, f'{prefix}.{name}', t, _take(values, rows), role, name,
                               hovertemplate=f'%{{y:.2f}} {unit}'), row=row, col=1)
    known = turned[np.isfinite(turned)]
    if len(known):
        figure.update_yaxes(**_compass_ticks(float(known.min()), float(known.max())), row=2, col=1)
    return Plot(f'{prefix}-sim-wind', 'SIM_WIND_* given', 'What ArduPilot SITL was to be given: '
                'length of the whole wind vector, where it comes from, and its angle above the '
                'horizontal. SITL smooths it (SIM_WIND_TC) before the vehicle feels it.',
                figure, 460, prefix)


def _middle_direction(degrees: FloatArray) -> float:
    angle = np.radians(degrees[np.isfinite(degrees)])
    return math.degrees(math.atan2(np.sin(angle).sum(), np.cos(angle).sum())) % 360.0


def _compass_ticks(low: float, high: float) -> dict[str, Any]:
    """Return ticks that show 350, 0, 10 where the axis runs on through -10, 0, 10."""
    step = next(s for s in (1, 2, 5, 10, 15, 30, 45, 90) if (high - low) / s <= 7 or s == 90)
    at = np.arange(math.floor(low / step), math.ceil(high / step) + 1) * step
    return {'tickvals': at.tolist(), 'ticktext': [f'{int(a) % 360}' for a in at]}


def _height_plot(flight: FlightRecord, store: ColumnStore, prefix: str, t: FloatArray,
                 rows: Any) -> Plot:
    figure = _stack(2, ['height, m', 'airspeed, m/s'])
    figure.add_trace(_line(store, f'{prefix}.height', t, _take(flight.air.height, rows), 'u',
                           'height above ground', hovertemplate='%{y:.2f} m'), row=1, col=1)
    figure.add_trace(_line(store, f'{prefix}.airspeed', t, _take(flight.air.airspeed, rows), 'v',
                           'airspeed', hovertemplate='%{y:.2f} m/s'), row=2, col=1)
    caption = ('What the gust model was given: strength and length follow the height, time '
               'constants the airspeed.' if flight.kind == 'bag' else 'As the vehicle knew them.')
    return Plot(f'{prefix}-height', 'Height and airspeed', caption, figure, 380, prefix)


def _ekf_plot(flight: FlightRecord, analysis: Analysis, store: ColumnStore, prefix: str) -> Plot:
    ekf = flight.ekf
    assert ekf is not None
    t, rows = _with_gaps(ekf.t, 5.0)
    figure = _stack(3, ['speed, m/s', 'from, deg', 'error, m/s'])
    flown = np.hypot(ekf.flown_e, ekf.flown_n)
    with np.errstate(invalid='ignore'):
        flown_from = np.degrees(np.arctan2(-ekf.flown_e, -ekf.flown_n))
        estimate_from = np.degrees(np.arctan2(-ekf.wind_e, -ekf.wind_n))
    directions = np.concatenate([flown_from, estimate_from])
    centre = _middle_direction(directions) if np.isfinite(directions).any() else 0.0
    lows, highs = [], []
    for name, row, values, role, label in (
            ('flown', 1, flown, 'flown', 'flown'),
            ('estimate', 1, np.hypot(ekf.wind_e, ekf.wind_n), 'estimate', "EKF3's estimate"),
            ('flown_from', 2, flown_from, 'flown', 'flown'),
            ('estimate_from', 2, estimate_from, 'estimate', "EKF3's estimate"),
            ('error', 3, ekf.error_speed, 'error', 'length of (estimate − flown)')):
        if row == 2:
            values = centre + (values - centre + 180.0) % 360.0 - 180.0
            if (known := values[np.isfinite(values)]).size:
                lows.append(float(known.min()))
                highs.append(float(known.max()))
        unit = 'deg' if row == 2 else 'm/s'
        figure.add_trace(_line(
            store, f'{prefix}.ekf_{name}', t, _take(values, rows), role, label,
            legendgroup=label, showlegend=row != 2,
            line={'width': 2.2 if role == 'estimate' else 1.3},
            hovertemplate=f'%{{y:.2f}} {unit}'), row=row, col=1)
    if lows:
        figure.update_yaxes(**_compass_ticks(min(lows), max(highs)), row=2, col=1)
    figure.update_yaxes(rangemode='tozero', row=1, col=1)
    figure.update_yaxes(rangemode='tozero', row=3, col=1)
    whole = analysis.phases[-1].end - analysis.phases[0].start
    for span in analysis.phases:
        phase = WindPhase(span.phase) if span.phase in list(WindPhase) else WindPhase.UNKNOWN
        name = phase.name.lower().replace('_', ' ')
        figure.add_shape(type='rect', xref='x', yref='paper', x0=span.start, x1=span.end, y0=0,
                         y1=1, fillcolor=PHASE_COLOURS[phase], line={'width': 0}, layer='below',
                         name=name)
        if span.end - span.start > 0.016 * len(name) * whole:
            figure.add_annotation(x=0.5 * (span.start + span.end), y=1.0, yref='paper', text=name,
                                  showarrow=False, yanchor='bottom', font={'size': 11},
                                  name='phase')
    return Plot(f'{prefix}-ekf', "EKF3's wind", "EKF3's estimate beside the wind really flown (the "
                'wind sent, through the filter of SITL), with the phases of the estimate as bands. '
                'A line that stops: no estimate, which is not an estimate of zero.',
                figure, 590, prefix)


def _strength_plot(flight: FlightRecord, analysis: Analysis, prefix: str) -> Plot:
    figure = go.Figure()
    bands = analysis.bands
    single = {(s.mean_speed, s.scale) for s in flight.settings}
    top = max(20.0, 1.3 * max(band.height for band in bands))
    for i, axis in enumerate(AXES):
        # u and v aim at the same: a little apart, both can be seen.
        heights = [band.height + (1 - i) * 0.014 * top for band in bands]
        if len(single) == 1 and i != 1:
            (mean, scale), = single
            at = np.linspace(0.0, top, 80)
            curve = [scale * (s.sigma_u if i == 0 else s.sigma_w)
                     for s in (low_altitude_scales(h, mean) for h in at.tolist())]
            figure.add_trace(go.Scatter(
                x=curve, y=at, mode='lines', line={'width': 2},
                name='model, u and v' if i == 0 else 'model, w', meta={'role': axis},
                hovertemplate='model: %{x:.3f} m/s at %{y:.0f} m<extra></extra>'))
        figure.add_trace(go.Scatter(
            x=[band.model[i] for band in bands], y=heights, mode='markers', showlegend=False,
            marker={'symbol': 'line-ns-open', 'size': 13, 'line': {'width': 2}},
            meta={'role': axis}, name=f'{axis}, model in this band',
            hovertemplate='%{x:.3f} m/s<extra>' + f'{axis}, model</extra>'))
        figure.add_trace(go.Scatter(
            x=[band.measured[i] for band in bands], y=heights, mode='markers',
            name=f'{axis}, measured', meta={'role': axis}, marker={'size': 9},
            error_x={'type': 'data', 'array': [CONFIDENCE * band.error[i] for band in bands],
                     'thickness': 1.5, 'width': 5},
            customdata=[[CONFIDENCE * band.error[i], band.seconds, band.samples[i]]
                        for band in bands],
            hovertemplate='%{x:.3f} ± %{customdata[0]:.3f} m/s, %{customdata[1]:.0f} s = '
                          '%{customdata[2]:.0f} independent samples<extra>' + f'{axis}</extra>'))
    figure.update_xaxes(title_text='standard deviation, m/s', rangemode='tozero')
    figure.update_yaxes(title_text='height above ground, m', range=[0.0, top])
    return Plot(f'{prefix}-strength', 'Strength by height', 'Standard deviation of the gust in '
                'each band of height, with the range that holds 95 % of such measurements by '
                'chance, beside the model. Ticks: the model for the heights really flown in the '
                'band.', figure, 430)


def _spectrum_plots(analysis: Analysis, prefix: str) -> list[Plot]:
    plots = []
    for spectrum in analysis.spectra:
        axis = spectrum.axis
        figure = go.Figure()
        f = spectrum.frequency
        figure.add_trace(go.Scatter(
            x=np.concatenate([f, f[::-1]]), y=np.concatenate([spectrum.high, spectrum.low[::-1]]),
            fill='toself', mode='lines', line={'width': 0}, hoverinfo='skip',
            name='95 % of estimates', meta={'role': 'band'}))
        figure.add_trace(go.Scatter(
            x=spectrum.curve_frequency, y=spectrum.curve, mode='lines', line={'width': 2},
            name='model', meta={'role': 'model'},
            hovertemplate='model %{y:.3g}<extra></extra>'))
        figure.add_trace(go.Scatter(
            x=f, y=spectrum.measured, mode='lines+markers', marker={'size': 5},
            line={'width': 1.2}, name='measured', meta={'role': axis},
            hovertemplate='%{x:.3g} Hz: %{y:.3g} (m/s)²/Hz<extra></extra>'))
        figure.update_xaxes(type='log', title_text='frequency, Hz', dtick=1)
        figure.update_yaxes(type='log', title_text='(m/s)²/Hz', dtick=1)
        plots.append(Plot(
            f'{prefix}-spectrum-{axis}', f'Spectrum of {axis}',
            f'{100 * spectrum.inside:.0f} % of {len(f)} estimates lie in the band that holds 95 % '
            f'of them by chance ({spectrum.windows} windows).', figure, 360))
    return plots


def _autocorrelation_plots(analysis: Analysis, prefix: str) -> list[Plot]:
    plots = []
    for fit in analysis.time_constants:
        figure = go.Figure()
        figure.add_trace(go.Scatter(
            x=fit.lag, y=fit.model_curve, mode='lines', line={'width': 2}, name='model',
            meta={'role': 'model'}, hovertemplate='model %{y:.2f}<extra></extra>'))
        figure.add_trace(go.Scatter(
            x=fit.lag, y=fit.autocorrelation, mode='lines', line={'width': 1.6}, name='measured',
            meta={'role': fit.axis}, hovertemplate='%{x:.2f} s: %{y:.2f}<extra></extra>'))
        figure.update_xaxes(title_text='lag, s')
        figure.update_yaxes(title_text='autocorrelation', range=[-0.4, 1.05])
        plots.append(Plot(
            f'{prefix}-autocorrelation-{fit.axis}', f'Time constant of {fit.axis}',
            f'τ = {fit.measured:.2f} ± {CONFIDENCE * fit.error:.2f} s, model {fit.model:.2f} s '
            f'({fit.samples:.0f} independent samples, T / 2τ).', figure, 340))
    return plots


def _rose_plot(analysis: Analysis, prefix: str) -> Plot:
    rose = analysis.rose
    assert rose is not None
    figure = go.Figure()
    count = len(rose.share)
    for i, share in enumerate(rose.share):
        figure.add_trace(go.Barpolar(
            r=100.0 * share, theta=rose.direction, width=[9.0] * 36,
            name=f'{rose.edges[i]:g}–{rose.edges[i + 1]:g} m/s',
            meta={'role': f'scale{round(5 * i / max(1, count - 1))}'},
            hovertemplate='from %{theta:.0f}°: %{r:.1f} % of the time<extra>%{fullData.name}'
                          '</extra>'))
    figure.update_layout(polar={
        'angularaxis': {'direction': 'clockwise', 'rotation': 90, 'tickmode': 'array',
                        'tickvals': list(range(0, 360, 45)),
                        'ticktext': ['N', 'NE', 'E', 'SE', 'S', 'SW', 'W', 'NW']},
        'radialaxis': {'ticksuffix': ' %', 'angle': 45, 'nticks': 4}, 'barmode': 'stack'})
    return Plot(f'{prefix}-rose', 'Wind rose', 'Where the wind (mean and gust) came from, and how '
                'strong.', figure, 400)


def _gust_factor_plot(analysis: Analysis, prefix: str) -> Plot:
    found = analysis.gust_factor
    figure = go.Figure(go.Bar(
        x=found.start + 30.0, y=found.factor, width=54.0, name='gust factor', meta={'role': 'u'},
        showlegend=False, hovertemplate='minute from %{customdata:.0f} s: %{y:.2f}<extra></extra>',
        customdata=found.start))
    figure.update_xaxes(title_text='sim time, s')
    figure.update_yaxes(title_text='gust factor', range=[
        max(0.0, math.floor(10 * float(found.factor.min()) - 1.5) / 10),
        math.ceil(10 * float(found.factor.max()) + 0.5) / 10])
    return Plot(f'{prefix}-gust-factor', '1-minute gust factor', 'Highest 3 s mean of the '
                'horizontal wind over the mean, minute by minute.', figure, 400)


def _tick_plot(flight: FlightRecord, store: ColumnStore, prefix: str, t: FloatArray,
               rows: Any) -> Plot:
    figure = _stack(2, ['ticks per s', 'missed'])
    rate = np.where(flight.air.rate > 0.0, flight.air.rate, np.nan)  # 0: not known yet
    figure.add_trace(_line(store, f'{prefix}.rate', t, _take(rate, rows), 'u',
                           'rate at which the air changed', hovertemplate='%{y:.2f} Hz'),
                     row=1, col=1)
    missed = _take(flight.air.missed.astype(float), rows)
    figure.add_trace(_line(store, f'{prefix}.missed', t, missed, 'v', 'ticks missed so far',
                           hovertemplate='%{y:.0f}'), row=2, col=1)
    figure.update_yaxes(rangemode='tozero', row=1, col=1)
    figure.update_yaxes(rangemode='tozero', row=2, col=1)
    return Plot(f'{prefix}-ticks', 'Ticks', 'How often the air really changed per second of sim '
                'time (20 is right), and the ticks no clock message was heard for.', figure, 320,
                prefix)


# ------------------------------------------------------------------------------------ two flights


def comparison_plots(a: FlightRecord, b: FlightRecord, found: Comparison, store: ColumnStore,
                     prefix: str) -> list[Plot]:
    """Return the plots of an A/B pair, over the ticks both have; none if there are too few."""
    if len(found.row_a) < 2:
        return []
    t, rows = _with_gaps(_rising(a.air.t[found.row_a]), 1.0)
    gust = _stack(3, [f'{axis}, m/s' for axis in AXES])
    part = _stack(3, [f'Δ{axis}, m/s' for axis in AXES])
    for i, axis in enumerate(AXES):
        values = (a.air.gust[i, found.row_a], b.air.gust[i, found.row_b])
        for which, (flight, y) in enumerate(zip((a, b), values, strict=True)):
            gust.add_trace(_line(
                store, f'{prefix}.{axis}{which}', t, _take(y, rows), 'ab'[which],
                f'{"AB"[which]}: {flight.name}', legendgroup='ab'[which], showlegend=i == 0,
                line={'width': 1.2 if which else 2.6}, hovertemplate='%{y:.2f} m/s'),
                row=i + 1, col=1)
        part.add_trace(_line(
            store, f'{prefix}.d{axis}', t, _take(values[1] - values[0], rows), axis,
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
        figure = _stack(len(pairs), [f'{name}, {unit}' for name, unit, _, _ in pairs])
        for row, (name, unit, x, y) in enumerate(pairs, 1):
            for which, column in enumerate((x, y)):
                figure.add_trace(_line(
                    store, f'{prefix}.{name}{which}', t, _take(column, rows), 'ab'[which],
                    'AB'[which], legendgroup='ab'[which], showlegend=row == 1,
                    line={'width': 1.2 if which else 2.6},
                    hovertemplate=f'%{{y:.2f}} {unit}'), row=row, col=1)
        plots.append(Plot(f'{prefix}-height', 'Height and airspeed of A and B', 'What parts the '
                          'gusts of two flights with the same draws.', figure, 380, prefix))
    return plots


def _rising(t: FloatArray) -> FloatArray:
    return t if len(t) < 2 or (np.diff(t) > 0.0).all() else np.asarray(
        t[0] + np.concatenate([[0.0], np.cumsum(np.maximum(np.diff(t), 0.05))]))

