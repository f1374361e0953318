"""The plots of a flight as one picture, made by Matplotlib: no browser is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dryden_wind_ros.ekf.phase import WindPhase
from dryden_wind_ros.report.analysis import Analysis
from dryden_wind_ros.report.flight import AXES, FlightRecord, FloatArray
from dryden_wind_ros.report.phases import phase_name, phase_rgba
from dryden_wind_ros.report.thinning import thin
from dryden_wind_ros.report.words import AXIS_WORDS

_COLOURS = {'u': '#0b63a5', 'v': '#b3470b', 'w': '#197a4b'}
_POINTS = 4000


def save_picture(flight: FlightRecord, analysis: Analysis, path: Path) -> None:
    """Draw a flight: gust, wind, height and airspeed, EKF3, spectra and strength.

    Parameters
    ----------
    flight : FlightRecord
        The flight.
    analysis : Analysis
        Its numbers.
    path : Path
        PNG to write.
    """
    # Here, not above: takes a while, and a figure of its own leaves pyplot's alone.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    air = flight.air
    over_time = []
    if len(air) and np.isfinite(air.gust).any():
        over_time += [_gust, _wind]
    if len(air) and (np.isfinite(air.height).any() or np.isfinite(air.airspeed).any()):
        over_time.append(_height)
    if flight.ekf is not None and len(flight.ekf):
        over_time += [_ekf, _ekf_error]
    beside_model = bool(analysis.spectra)
    figure = Figure(figsize=(11.0, 0.6 + 2.1 * len(over_time) + 3.2 * beside_model),
                    layout='constrained')
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(
        len(over_time) + beside_model or 1, 3,
        height_ratios=[2.1] * len(over_time) + [3.2] * beside_model or [1.0])
    first: Any = None
    for row, draw in enumerate(over_time):
        axes = figure.add_subplot(grid[row, :], sharex=first)
        first = first or axes
        draw(axes, flight, analysis)
        axes.grid(alpha=0.3)
        axes.legend(loc='upper left', bbox_to_anchor=(1.0, 1.0), fontsize=8, frameon=False)
    if first is not None:
        axes.set_xlabel('sim time, s')
    if beside_model:
        for column, spectrum in enumerate(analysis.spectra):
            _spectrum(figure.add_subplot(grid[len(over_time), column]), spectrum)
    figure.suptitle(f'{flight.name}: {_words(flight)}', fontsize=11)
    figure.savefig(path, dpi=110, format='png')


def _words(flight: FlightRecord) -> str:
    if not flight.settings:
        return f'as a {flight.kind} has it'
    s = flight.settings[int(flight.air.setting[0])] if len(flight.air) else flight.settings[0]
    return (f'mean wind {s.mean_speed:g} m/s from {s.mean_from_deg:g}°, gusts {s.gusts}, '
            f'seed {s.seed}')


def _plot(axes: Any, t: FloatArray, y: FloatArray, **look: Any) -> None:
    rows = thin(y, _POINTS)
    axes.plot(t[rows], y[rows], **{'linewidth': 0.9, **look})


def _gust(axes: Any, flight: FlightRecord, analysis: Analysis) -> None:
    t = flight.air.timeline()
    for i, axis in enumerate(AXES):
        _plot(axes, t, flight.air.gust[i], color=_COLOURS[axis], label=AXIS_WORDS[axis])
    axes.set_ylabel('gust, m/s')


def _wind(axes: Any, flight: FlightRecord, analysis: Analysis) -> None:
    air = flight.air
    t, wind = air.timeline(), air.mean_enu + air.gust_enu
    _plot(axes, t, np.hypot(wind[0], wind[1]), color='#0b63a5', label='mean + gust')
    _plot(axes, t, np.hypot(air.mean_enu[0], air.mean_enu[1]), color='#b3470b', label='mean',
          linewidth=1.6)
    axes.set_ylabel('horizontal wind, m/s')


def _height(axes: Any, flight: FlightRecord, analysis: Analysis) -> None:
    air = flight.air
    t = air.timeline()
    _plot(axes, t, air.height, color='#0b63a5', label='height, m')
    _plot(axes, t, air.airspeed, color='#b3470b', label='airspeed, m/s')
    known = air.airspeed[np.isfinite(air.airspeed)]
    top = max((float(np.quantile(part, 0.99)) for part in (
        known, air.height[np.isfinite(air.height)]) if len(part)), default=1.0)
    axes.set_ylim(top=1.2 * max(top, 1.0))


def _bands(axes: Any, analysis: Analysis) -> None:
    named = set()
    for span in analysis.phases:
        phase = WindPhase(span.phase) if span.phase in list(WindPhase) else WindPhase.UNKNOWN
        axes.axvspan(span.start, span.end, color=phase_rgba(phase), linewidth=0,
                     label=None if phase in named else phase_name(phase))
        named.add(phase)


def _ekf(axes: Any, flight: FlightRecord, analysis: Analysis) -> None:
    ekf = flight.ekf
    assert ekf is not None
    _bands(axes, analysis)
    _plot(axes, ekf.t, np.hypot(ekf.flown_e, ekf.flown_n), color='#6b7783', label='flown')
    _plot(axes, ekf.t, np.hypot(ekf.wind_e, ekf.wind_n), color='#b0202e', linewidth=1.6,
          label="EKF3's estimate")
    axes.set_ylabel('wind, m/s')


def _ekf_error(axes: Any, flight: FlightRecord, analysis: Analysis) -> None:
    ekf = flight.ekf
    assert ekf is not None
    _plot(axes, ekf.t, ekf.error_speed, color='#b0202e', label='|estimate − flown|')
    axes.set_ylabel('error, m/s')
    axes.set_ylim(bottom=0.0)


def _spectrum(axes: Any, spectrum: Any) -> None:
    axes.fill_between(spectrum.frequency, spectrum.low, spectrum.high, color='#6b7783', alpha=0.25,
                      linewidth=0, label='95 % of estimates')
    axes.loglog(spectrum.curve_frequency, spectrum.curve, color='#6b7783', label='model')
    axes.loglog(spectrum.frequency, spectrum.measured, '.-', color=_COLOURS[spectrum.axis],
                linewidth=0.9, label='measured')
    axes.set_title(f'spectrum of {spectrum.axis}', fontsize=10)
    axes.set_xlabel('frequency, Hz')
    axes.set_ylabel('(m/s)²/Hz')
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
