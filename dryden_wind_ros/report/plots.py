"""What the plots of the page are made of.

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

from dryden_wind_ros.report.anemometer import CALM
from dryden_wind_ros.report.flight import FlightRecord, FloatArray
from dryden_wind_ros.report.thinning import thin

TOTAL_ROWS = 160_000
"""Rows of columns that a page holds in full, of all flights; beyond, columns are thinned out."""

_THINNED = 6000
_NAMED_RESTARTS = 8  # more would lie on each other


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


def _base64(array: Any) -> str:
    return base64.b64encode(array.tobytes()).decode('ascii')


def line(store: ColumnStore, name: str, x: FloatArray, y: FloatArray, role: str, label: str,
         **more: Any) -> go.Scatter:
    """Return a trace whose numbers are in the store; gaps in time are gaps in the line."""
    meta = {'role': role, 'series': store.add(name, x, y), **more.pop('meta', {})}
    look = more.pop('line', {'width': 1.3})
    return go.Scatter(x=[], y=[], name=label, mode='lines', line=look, meta=meta,
                      connectgaps=False, **more)


def stack(rows: int, titles: Sequence[str], **more: Any) -> go.Figure:
    """Return a figure of plots below each other, with one axis of time."""
    figure = make_subplots(rows=rows, cols=1, shared_xaxes=True, vertical_spacing=0.045, **more)
    for row, title in enumerate(titles, 1):
        figure.update_yaxes(title_text=title, row=row, col=1)
    figure.update_xaxes(title_text='sim time, s', row=rows, col=1)
    figure.update_layout(hovermode='x unified')
    return figure


def restart_lines(figure: go.Figure, flight: FlightRecord) -> None:
    """Mark where the air began anew; lines and words are added in one go, of hundreds too."""
    starts = np.flatnonzero(np.diff(flight.air.run)) + 1
    if not len(starts):
        return
    at = flight.air.timeline()[starts].tolist()
    # figure.add_vline copies all shapes for each new one: 100 restarts took it 93 s.
    figure.update_layout(shapes=[*figure.layout.shapes, *(
        {'type': 'line', 'x0': x, 'x1': x, 'xref': 'x', 'y0': 0.0, 'y1': 1.0, 'yref': 'paper',
         'line': {'dash': 'dot', 'width': 1.5, 'color': '#888'}} for x in at)])
    words = at if len(at) <= _NAMED_RESTARTS else at[:1]
    figure.update_layout(annotations=[*figure.layout.annotations, *(
        {'x': x, 'y': 1.0, 'xref': 'x', 'yref': 'y domain', 'showarrow': False,
         'xanchor': 'left', 'yanchor': 'top', 'font': {'size': 10},
         'text': 'air begins anew' if len(at) <= _NAMED_RESTARTS
         else f'air begins anew ({len(at)} times)'} for x in words)])


def with_gaps(t: FloatArray, most: float) -> tuple[FloatArray, Any]:
    """Return times and rows, with a row that does not exist (-1) in each gap longer than `most`."""
    gaps = np.flatnonzero(np.diff(t) > most) + 1
    rows = np.insert(np.arange(len(t)), gaps, -1)
    return np.insert(t, gaps, t[gaps - 1] + 1e-3) if len(gaps) else t, rows


def take(values: FloatArray, rows: Any) -> FloatArray:
    """Return the values of `rows`; NaN for a row that does not exist."""
    return np.asarray(np.where(rows < 0, np.nan, values[rows]))


def middle_direction(degrees: FloatArray) -> float:
    """Return the middle of some directions, [0, 360) degrees."""
    angle = np.radians(degrees[np.isfinite(degrees)])
    if not len(angle):
        return 0.0
    return math.degrees(math.atan2(np.sin(angle).sum(), np.cos(angle).sum())) % 360.0


def direction_of(speed: FloatArray, degrees: FloatArray) -> FloatArray:
    """Return directions, NaN in a calm."""
    with np.errstate(invalid='ignore'):
        return np.asarray(np.where(speed >= CALM, degrees, np.nan))


def compass_ticks(low: float, high: float) -> dict[str, Any]:
    """Return ticks that show 350, 0, 10 where the axis runs on through -10, 0, 10."""
    step = next(s for s in (1, 2, 5, 10, 15, 30, 45, 90) if (high - low) / s <= 7 or s == 90)
    at = np.arange(math.floor(low / step), math.ceil(high / step) + 1) * step
    return {'tickvals': at.tolist(), 'ticktext': [f'{int(a) % 360}' for a in at]}
