"""The wind as an anemometer has it: the rose, and 1-minute gust factors."""

from __future__ import annotations

import math

import plotly.graph_objects as go

from dryden_wind_ros.report.markup import row
from dryden_wind_ros.report.plots import Plot
from dryden_wind_ros.report.sheet import Sheet


def anemometer(sheet: Sheet) -> str | None:
    """Return the wind rose and the gust factors."""
    plots = []
    if sheet.analysis.rose is not None:
        plots.append(_rose_plot(sheet))
    factor = sheet.analysis.gust_factor.factor
    if len(factor) > 1:
        plots.append(_gust_factor_plot(sheet))
    shown = row(sheet.figure(plot) for plot in plots) if plots else ''
    if len(factor) == 1:
        shown += (f'<p>1-minute gust factor: {factor[0]:.2f} in the only whole minute (highest 3 s '
                  'mean of the horizontal wind over the mean of the minute).</p>')
    return shown or None


def _rose_plot(sheet: Sheet) -> Plot:
    rose = sheet.analysis.rose
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
    return Plot(
        f'{sheet.key}-rose', 'Wind rose', 'Where the wind (mean and gust) came from, and how '
                'strong; calms below 0.5 m/s are left out.', figure, 400)


def _gust_factor_plot(sheet: Sheet) -> Plot:
    found = sheet.analysis.gust_factor
    figure = go.Figure(go.Bar(
        x=found.start + 30.0, y=found.factor, width=54.0, name='gust factor', meta={'role': 'u'},
        showlegend=False, hovertemplate='minute from %{customdata:.0f} s: %{y:.2f}<extra></extra>',
        customdata=found.start))
    figure.update_xaxes(title_text='sim time, s')
    figure.update_yaxes(title_text='gust factor', range=[
        max(0.0, math.floor(10 * float(found.factor.min()) - 1.5) / 10),
        math.ceil(10 * float(found.factor.max()) + 0.5) / 10])
    return Plot(
        f'{sheet.key}-gust-factor', '1-minute gust factor', 'Highest 3 s mean of the '
                'horizontal wind over the mean, minute by minute.', figure, 400)
