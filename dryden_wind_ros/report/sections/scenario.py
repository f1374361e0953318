"""The scenario that was flown, beside the wind that blew."""

from __future__ import annotations

import html
from pathlib import Path

import numpy as np

from dryden_wind_ros.ekf.phase import WindPhase
from dryden_wind_ros.gusts.conditions import ZERO, MeanWind, Moment
from dryden_wind_ros.gusts.mean_wind import Clock
from dryden_wind_ros.gusts.record_csv import ScenarioError
from dryden_wind_ros.gusts.scenario import Scenario
from dryden_wind_ros.logs.recorded_wind import open_scenario
from dryden_wind_ros.report.flight import FlightRecord, FloatArray
from dryden_wind_ros.report.plots import Plot, compass_ticks, middle_direction, stack
from dryden_wind_ros.report.sheet import Sheet

NOT_ARMED = (WindPhase.UNKNOWN, WindPhase.NOT_ESTIMATED, WindPhase.GROUND)


def scenario(sheet: Sheet) -> str | None:
    """Return what the scenario says beside what blew; None where none was flown."""
    flight = sheet.flight
    paths = list(dict.fromkeys(one.scenario for one in flight.settings if one.scenario))
    if not paths or not len(flight.air):
        return None
    parts = ['<h3>Scenario</h3>']
    path = paths[-1]
    if len(paths) > 1:
        names = ', '.join(Path(one).name for one in paths)
        parts.append(f'<p>{len(paths)} scenarios were flown: {html.escape(names)}. '
                     'Shown is the last.</p>')
    try:
        opened = open_scenario(path, flight.namespace)
    except ScenarioError as error:
        parts.append(f'<p>{html.escape(Path(path).name)} was flown, and cannot be shown beside it: '
                     f'{html.escape("; ".join(error.mistakes))}.</p>')
        return ''.join(parts)
    parts.append(f'<p>{html.escape(Path(path).name)}: {html.escape(opened.in_words())}, as the '
                 'file is now.</p>')
    if opened.smoothing:
        parts.append(f'<p>Of the turbulence, what is slower than {opened.smoothing:g} s was in the '
                     'record and left out of the gusts: they are weaker and quicker than the model '
                     'that they are compared with on this page.</p>')
    if opened.gusts:
        parts.append('<ul>' + ''.join(
            f'<li>{html.escape(planned.gust.in_words())}, '
            f'{html.escape(planned.trigger.in_words())}</li>' for planned in opened.gusts)
            + '</ul>')
    armed_at = _armed_at(flight)
    if opened.clock is Clock.ARMING and armed_at is None:
        parts.append('<p>Its times count from arming, and this record does not say when that '
                     'was.</p>')
        return ''.join(parts)
    parts.append(sheet.figure(_plot(sheet, opened, path, armed_at)))
    return ''.join(parts)


def _armed_at(flight: FlightRecord) -> float | None:
    if flight.ekf is None:
        return None
    armed = np.flatnonzero(~np.isin(flight.ekf.phase, NOT_ARMED))
    return float(flight.ekf.t[armed[0]]) if len(armed) else None


def _plot(sheet: Sheet, opened: Scenario, path: str, armed_at: float | None) -> Plot:
    air = sheet.flight.air
    planned = planned_wind(opened, sheet.flight, path, armed_at)
    wind = air.mean_enu + air.gust_enu
    figure = stack(3, ['horizontal, m/s', 'from, deg', 'up, m/s'])
    centre = middle_direction(planned[1])
    for first, (name, words, east, north, up) in enumerate((
            ('flown', 'mean + gust', *wind), ('mean', 'mean that blew', *air.mean_enu))):
        rows = (np.hypot(east, north), _turned(np.degrees(np.arctan2(-east, -north)), centre), up)
        for row, values in enumerate(rows, 1):
            figure.add_trace(sheet.line(
                f'scenario_{name}_{row}', values, 'whole' if not first else 'mean', words,
                legendgroup=name, showlegend=row == 1), row=row, col=1)
    for row, values in enumerate((planned[0], _turned(planned[1], centre), planned[2]), 1):
        figure.add_trace(sheet.line(
            f'scenario_planned_{row}', values, 'model', 'scenario', legendgroup='planned',
            showlegend=row == 1, line={'width': 2, 'dash': 'dot'}), row=row, col=1)
    known = planned[1][np.isfinite(planned[1])]
    turned = _turned(known, centre)
    figure.update_yaxes(**compass_ticks(float(turned.min()) - 1.0, float(turned.max()) + 1.0),
                        row=2, col=1)
    caption = ('Dotted: the mean wind that the scenario says for each tick and the height there. '
               'Where the mean that blew parts from it, it was set by hand in flight.')
    if opened.clock is Clock.ARMING:
        caption += " Arming is taken from EKF3's phases here, and may be a second off."
    return Plot(f'{sheet.key}-planned', 'Scenario and what was flown', caption, figure, 520,
                sheet.key)


def _turned(degrees: FloatArray, centre: float) -> FloatArray:
    return np.asarray(centre + (degrees - centre + 180.0) % 360.0 - 180.0)


def planned_wind(opened: Scenario, flight: FlightRecord, path: str,
                 armed_at: float | None) -> FloatArray:
    """Return what a scenario says for the ticks of a flight.

    Parameters
    ----------
    opened : Scenario
        The scenario.
    flight : FlightRecord
        What was flown, at least one tick.
    path : str
        Of the scenario, as in the flight's settings.
    armed_at : float or None
        When the vehicle was armed, s.

    Returns
    -------
    ndarray, shape (3, N)
        Speed, m/s, direction it comes from, degrees, and updraft, m/s; NaN where the flight
        followed no scenario, or another one.
    """
    air = flight.air
    follows = np.isin(air.setting, [i for i, one in enumerate(flight.settings)
                                    if one.scenario == path])
    rows = np.flatnonzero(follows)
    first = flight.settings[int(air.setting[rows[0]])]
    speed = first.mean_speed
    if opened.profile is not None:
        # What the file leaves open was the parameters', which are known by what they made.
        speed /= max(opened.profile.factor(float(air.height[rows[0]])), 1e-9)
    source = opened.mean_wind(MeanWind.of(speed, first.mean_from_deg, first.mean_up))
    winds = np.full((3, len(air)), np.nan)
    restarted_at = 0.0
    for row in rows.tolist():
        if row and air.run[row] != air.run[row - 1]:
            restarted_at = float(air.t[row]) if air.t[row] > air.t[row - 1] else 0.0
        height = float(air.height[row])
        winds[:, row] = source.at(Moment(
            int(air.tick[row]), float(air.t[row]), (0.0, 0.0, height), False, height, ZERO,
            armed_at, restarted_at))[:3]
    return winds
