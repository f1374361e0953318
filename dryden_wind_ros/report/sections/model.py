"""Strength, spectra and time constants beside the gust model's."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import plotly.graph_objects as go

from dryden_wind_ros.gusts.dryden import low_altitude_scales
from dryden_wind_ros.report.analysis import Analysis
from dryden_wind_ros.report.flight import AXES
from dryden_wind_ros.report.markup import between, judged, number, row, table
from dryden_wind_ros.report.plots import Plot
from dryden_wind_ros.report.sheet import Sheet
from dryden_wind_ros.report.strength import Strength

_LOW_M = 304.8
"""Above, strength is not the mean wind's alone."""


def strength(sheet: Sheet) -> str | None:
    """Return the gust's strength by height."""
    if not sheet.analysis.bands:
        return None
    return sheet.figure(_strength_plot(sheet)) + _strength_table(sheet.analysis)


def spectra(sheet: Sheet) -> str | None:
    """Return the spectrum of each axis."""
    if not sheet.analysis.spectra:
        return None
    filled = sheet.analysis.spectra[0].interpolated
    more = (f' {100 * filled:.1f} % of the ticks were not recorded and are interpolated, which '
            'lowers the right end a little.' if filled > 0.0005 else '')
    if sheet.analysis.standing:
        return (
            '<h3>Spectra</h3><p>Power spectral density by Welch’s method, beside the formula that '
            'the air aims at: first order along the path through the air, second order across it '
            '(MIL-F-8785C; a field also by von Karman), averaged over heights and airspeeds flown. '
            'The band is where 95 % of such estimates of a stationary air lie, dashed their mean.'
            f'{more}</p>' + row(sheet.figure(plot, 4) for plot in _spectrum_plots(sheet)))
    return (
        '<h3>Spectra</h3><p>Power spectral density by Welch’s method, beside the curve that the '
        'model aims at, 4σ²T / (1 + (2πfT)²) with T = L / V. The band is where 95 % of such '
        'estimates of the model’s own process lie; its middle (dashed) is not the curve: a window '
        'smears low frequencies over their neighbours (leakage), an air that begins from calm has '
        'not yet grown to σ, and sampling at 20 Hz folds what is above 10 Hz back. Windows are as '
        f'long as the corner, 1 / (2πT), needs, or as the flight allows.{more}</p>'
        + row(sheet.figure(plot, 4) for plot in _spectrum_plots(sheet)))


def time_constants(sheet: Sheet) -> str | None:
    """Return the autocorrelation and time constant of each axis."""
    if not sheet.analysis.time_constants:
        return None
    return (
        '<h3>Time constants</h3><p>Autocorrelation beside the '
        'model’s, exp(−lag / τ). τ: mean over the flight; measured by the factor on the '
        'model’s that fits the lag of one tick best, which for this process uses all there is '
        'to know. The range holds 95 % of such fits to the model’s own process.</p>'
        + row(sheet.figure(plot, 4) for plot in _autocorrelation_plots(sheet)))


def _strength_plot(sheet: Sheet) -> Plot:
    flight, analysis = sheet.flight, sheet.analysis
    figure = go.Figure()
    bands = analysis.bands
    single = {(s.mean_speed, s.scale) for s in flight.settings}
    top = max(20.0, 1.3 * max(band.height for band in bands))
    for i, axis in enumerate(AXES):
        # u and v aim at the same: a little apart, both can be seen.
        heights = [band.height + (1 - i) * 0.014 * top for band in bands]
        if len(single) == 1 and i != 1 and top < _LOW_M:
            (mean, scale), = single
            at = np.linspace(0.0, top, 80)
            curve = [scale * (s.sigma_u if i == 0 else s.sigma_w)
                     for s in (low_altitude_scales(h, mean) for h in at.tolist())]
            figure.add_trace(go.Scatter(
                x=curve, y=at, mode='lines', line={'width': 2},
                name='model, u and v' if i == 0 else 'model, w', meta={'role': axis},
                hovertemplate='model: %{x:.3f} m/s at %{y:.0f} m<extra></extra>'))
        ranges = np.array([(band.model[i], band.least[i], band.most[i], band.seconds,
                            band.samples[i]) for band in bands])
        figure.add_trace(go.Scatter(
            x=ranges[:, 0], y=heights, mode='markers', showlegend=False,
            marker={'symbol': 'line-ns-open', 'size': 13, 'line': {'width': 2}},
            error_x={'type': 'data', 'array': ranges[:, 2] - ranges[:, 0],
                     'arrayminus': ranges[:, 0] - ranges[:, 1], 'thickness': 1.5, 'width': 5},
            meta={'role': axis}, name=f'{axis}, model in this band', customdata=ranges[:, 1:],
            hovertemplate='%{x:.3f} m/s; 95 % of measurements from %{customdata[0]:.3f} to '
                          '%{customdata[1]:.3f}, %{customdata[2]:.0f} s = %{customdata[3]:.0f} '
                          'independent samples<extra>' + f'{axis}, model</extra>'))
        figure.add_trace(go.Scatter(
            x=[band.measured[i] for band in bands], y=heights, mode='markers',
            name=f'{axis}, measured', meta={'role': axis}, marker={'size': 9},
            hovertemplate='%{x:.3f} m/s<extra>' + f'{axis}, measured</extra>'))
    figure.update_xaxes(title_text='standard deviation, m/s', rangemode='tozero')
    figure.update_yaxes(title_text='height above ground, m', range=[0.0, top])
    return Plot(
        f'{sheet.key}-strength', 'Strength by height', 'Standard deviation of the gust in each '
        'band of height (dots), beside the model. Ticks: the model for the heights really flown '
        'in the band, with the range that holds 95 % of such measurements by chance.', figure, 430)


def _strength_table(analysis: Analysis) -> str:
    def rows(strength: Strength, name: str) -> Iterable[list[str]]:
        for i, axis in enumerate(AXES):
            yield [name if i == 0 else '', axis, number(strength.seconds, 0),
                   number(float(strength.measured[i]), 3), number(float(strength.model[i]), 3),
                   between(float(strength.least[i]), float(strength.most[i]), 3),
                   number(float(strength.aimed[i]), 3), number(float(strength.samples[i]), 0),
                   judged(bool(strength.agrees[i]), bool(strength.enough[i]))]
    everything = [row for band in analysis.bands for row in rows(band, _band_name(band))]
    return table(
        'Standard deviation of the gust by height, m/s. Model: what it makes of the heights, '
        'airspeeds and settings flown, the start from calm included; σ: what it aims at. 95 % of '
        'such measurements lie in the range by chance, so one in twenty lies outside; n: '
        'independent samples that the time amounts to (time / τ).',
        ('height', '', 's', 'measured', 'model', '95 %', 'σ', 'n', 'difference'), everything)


def _band_name(band: Strength) -> str:
    if not math.isfinite(band.low):
        return f'below {band.high:g} m'
    if not math.isfinite(band.high):
        return f'above {band.low:g} m'
    return f'{band.low:g}–{band.high:g}\N{NO-BREAK SPACE}m'


def _spectrum_plots(sheet: Sheet) -> list[Plot]:
    plots = []
    for spectrum in sheet.analysis.spectra:
        axis = spectrum.axis
        figure = go.Figure()
        f = spectrum.frequency
        figure.add_trace(go.Scatter(
            x=np.concatenate([f, f[::-1]]), y=np.concatenate([spectrum.high, spectrum.low[::-1]]),
            fill='toself', mode='lines', line={'width': 0}, hoverinfo='skip',
            name='95 % of estimates', meta={'role': 'band'}))
        figure.add_trace(go.Scatter(
            x=f, y=spectrum.expected, mode='lines', line={'width': 1.2, 'dash': 'dash'},
            name='their mean', meta={'role': 'model'},
            hovertemplate='expected %{y:.3g}<extra></extra>'))
        figure.add_trace(go.Scatter(
            x=spectrum.curve_frequency, y=spectrum.curve, mode='lines', line={'width': 2},
            name='model', meta={'role': 'model'},
            hovertemplate='model %{y:.3g}<extra></extra>'))
        figure.add_shape(type='line', x0=spectrum.corner, x1=spectrum.corner, y0=0.0, y1=1.0,
                         yref='paper', line={'width': 1, 'dash': 'dot', 'color': '#888'})
        figure.add_trace(go.Scatter(
            x=f, y=spectrum.measured, mode='lines+markers', marker={'size': 5},
            line={'width': 1.2}, name='measured', meta={'role': axis},
            hovertemplate='%{x:.3g} Hz: %{y:.3g} (m/s)²/Hz<extra></extra>'))
        figure.update_xaxes(type='log', title_text='frequency, Hz', dtick=1)
        figure.update_yaxes(type='log', title_text='(m/s)²/Hz', dtick=1)
        lowest = 1.0 / spectrum.window
        below = '' if lowest <= spectrum.corner else (
            f' The flight is too short to show the corner, {spectrum.corner:.2g} Hz.')
        windows = 'one window' if spectrum.windows == 1 else f'{spectrum.windows} windows'
        plots.append(Plot(
            f'{sheet.key}-spectrum-{axis}', f'Spectrum of {axis}',
            f'{100 * spectrum.inside:.0f} % of {len(f)} estimates lie in the band that holds 95 % '
            f'of them by chance ({windows} of {spectrum.window:.0f} s). Dotted: corner.{below}',
            figure, 360))
    return plots


def _autocorrelation_plots(sheet: Sheet) -> list[Plot]:
    plots = []
    for fit in sheet.analysis.time_constants:
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
            f'{sheet.key}-autocorrelation-{fit.axis}', f'Time constant of {fit.axis}',
            f'τ = {number(fit.measured)} s, model {fit.model:.2f} s (95 %: '
            f'{between(fit.least, fit.most)} s, {fit.samples:.0f} independent samples, T / 2τ).',
            figure, 340))
    return plots
