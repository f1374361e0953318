"""Strength, spectra and time constants beside the gust model's."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import plotly.graph_objects as go

from dryden_wind_ros.gusts.dryden import low_altitude_scales
from dryden_wind_ros.report.analysis import Analysis
from dryden_wind_ros.report.chance import CONFIDENCE
from dryden_wind_ros.report.flight import AXES
from dryden_wind_ros.report.markup import judged, number, row, table
from dryden_wind_ros.report.plots import Plot
from dryden_wind_ros.report.sheet import Sheet
from dryden_wind_ros.report.strength import Strength


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
    return (
        '<h3>Spectra</h3><p>Power spectral density by Welch’s method, '
        'beside the model’s, 4σ²T / (1 + (2πfT)²) with T = L / V. The band is where 95 % of '
        'such estimates of the model’s own process would lie: it knows of the sampling at '
        f'20 Hz, which lifts the right end above the curve, and of the windows.{more}</p>'
        + row(sheet.figure(plot, 4) for plot in _spectrum_plots(sheet)))


def time_constants(sheet: Sheet) -> str | None:
    """Return the autocorrelation and time constant of each axis."""
    if not sheet.analysis.time_constants:
        return None
    return (
        '<h3>Time constants</h3><p>Autocorrelation beside the '
        'model’s, exp(−lag / τ). τ: mean over the flight; measured by the factor on the '
        'model’s that fits the lag of one tick best, which for this process uses all there is '
        'to know. ± holds 95 % of such fits.</p>'
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
    return Plot(
        f'{sheet.key}-strength', 'Strength by height', 'Standard deviation of the gust in '
                'each band of height, with the range that holds 95 % of such measurements by '
                'chance, beside the model. Ticks: the model for the heights really flown in the '
                'band.', figure, 430)


def _strength_table(analysis: Analysis) -> str:
    def rows(strength: Strength, name: str) -> Iterable[list[str]]:
        for i, axis in enumerate(AXES):
            yield [name if i == 0 else '', axis, number(strength.seconds, 0),
                   number(float(strength.measured[i]), 3), number(float(strength.model[i]), 3),
                   f'±{number(CONFIDENCE * float(strength.error[i]), 3)}',
                   number(float(strength.samples[i]), 0),
                   judged(bool(strength.agrees[i]), bool(strength.enough[i]))]
    everything = [row for band in analysis.bands for row in rows(band, _band_name(band))]
    return table(
        'Standard deviation of the gust by height, m/s. Model: what it makes of the heights, '
        'airspeeds and settings flown. ± holds 95 % of such measurements by chance, so one in '
        'twenty lies outside; n: independent samples that the time amounts to (time / τ).',
        ('height', '', 's', 'measured', 'model', '95 %', 'n', 'difference'), everything)


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
            f'{sheet.key}-spectrum-{axis}', f'Spectrum of {axis}',
            f'{100 * spectrum.inside:.0f} % of {len(f)} estimates lie in the band that holds 95 % '
            f'of them by chance ({spectrum.windows} windows).', figure, 360))
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
            f'τ = {fit.measured:.2f} ± {CONFIDENCE * fit.error:.2f} s, model {fit.model:.2f} s '
            f'({fit.samples:.0f} independent samples, T / 2τ).', figure, 340))
    return plots
