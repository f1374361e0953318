"""One flight's part of the page, while it is being put together."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import plotly.graph_objects as go

from dryden_wind_ros.report import markup
from dryden_wind_ros.report.analysis import Analysis
from dryden_wind_ros.report.flight import FlightRecord, FloatArray
from dryden_wind_ros.report.plots import ColumnStore, Plot, line, take, with_gaps


@dataclass
class Sheet:
    """What a section of the page works with.

    Attributes
    ----------
    key : str
        Of the flight, unique in the page; names of plots and anchors begin with it.
    flight : FlightRecord
        What was recorded.
    analysis : Analysis
        Its numbers.
    store : ColumnStore
        Where lines over time leave their numbers.
    plots : list of Plot
        The plots so far, in the page's order.
    """

    key: str
    flight: FlightRecord
    analysis: Analysis
    store: ColumnStore
    plots: list[Plot] = field(default_factory=list)

    def figure(self, plot: Plot, level: int = 3) -> str:
        """Add a plot to the page; return its HTML, with a heading of `level`."""
        self.plots.append(plot)
        return markup.figure(plot, level)

    def line(self, name: str, values: FloatArray, role: str, label: str, **more: Any) -> go.Scatter:
        """Return a line over the flight's ticks.

        Parameters
        ----------
        name : str
            Unique in the flight.
        values : ndarray, shape (N,)
            One value a tick of the flight's air; NaN for none.
        role : str
            Names its colour, see page.js.
        label : str
            In the legend.
        **more
            Of plotly's Scatter.
        """
        t, rows = self._ticks
        return line(self.store, f'{self.key}.{name}', t, take(values, rows), role, label, **more)

    @cached_property
    def _ticks(self) -> tuple[FloatArray, Any]:
        return with_gaps(self.flight.air.timeline(), 1.0)
