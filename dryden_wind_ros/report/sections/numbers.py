"""What there is to know at a glance, the ticks, and the numbers of a flight in tables."""

from __future__ import annotations

import html
import math

import numpy as np

from dryden_wind_ros.report.analysis import SLOW_HZ, Analysis, Tally
from dryden_wind_ros.report.flight import AXES, FlightRecord
from dryden_wind_ros.report.markup import between, cards, judged, number, table
from dryden_wind_ros.report.phases import mean_error, phase_name
from dryden_wind_ros.report.plots import Plot, stack
from dryden_wind_ros.report.sheet import Sheet


def glance(sheet: Sheet) -> str | None:
    """Return the most important numbers."""
    return cards(_at_a_glance(sheet.flight, sheet.analysis))


def ticks(sheet: Sheet) -> str | None:
    """Return the rate of the ticks over time."""
    air = sheet.flight.air
    return sheet.figure(_tick_plot(sheet)) if len(air) and np.isfinite(air.rate).any() else None


def numbers(sheet: Sheet) -> str | None:
    """Return the numbers of the whole flight."""
    return '<h3>Numbers</h3>' + _numbers(sheet.flight, sheet.analysis)


def _at_a_glance(flight: FlightRecord, analysis: Analysis) -> list[tuple[str, str, str]]:
    air, tally = flight.air, analysis.tally
    found = []
    if len(air):
        found.append(('Flight', number(tally.seconds, 0, 's'), f'{tally.recorded} ticks'))
    if flight.settings:
        first = flight.settings[0]
        more = f'{len(flight.settings)} settings in turn' if len(flight.settings) > 1 else (
            f'updraft {first.mean_up:g} m/s' if first.mean_up else 'at every height alike'
            if first.profile == 'uniform' else "SITL's profile")
        found.append(('Mean wind', f'{first.mean_speed:g} m/s',
                      f'from {first.mean_from_deg:g}°, {more}'))
        gusts = {'dryden': f'seed {first.seed}', 'off': 'off', 'sitl': 'of SITL'}.get(
            first.gusts, html.escape(first.gusts))
        found.append(('Gusts', gusts, f'{first.method}, scale {first.scale:g}'
                      if first.gusts == 'dryden' else 'no Dryden gusts'))
    if (strength := analysis.strength) is not None:
        good = int((strength.agrees & strength.enough).sum())
        judged = int(strength.enough.sum())
        found.append(('Strength', f'{good} of {judged}' if judged else 'too short',
                      'axes agree with the model within the sampling error'
                      if judged else 'to be judged'))
    if len(analysis.draws):
        draws = analysis.draws
        found.append(('Draws', f'{draws.of_seed} of {len(draws)}',
                      "recovered from the gusts are the seed's own"))
    if tally.missed is not None:
        found.append(('Missed ticks', str(tally.missed), _rates(tally)))
    if analysis.phases:
        mean = mean_error(analysis.phases)
        if math.isfinite(mean):
            found.append(("EKF3's error", number(mean, 2, 'm/s'), 'mean, while it estimates'))
        else:
            longest = max(analysis.phases, key=lambda p: p.end - p.start)
            found.append(("EKF3's wind", phase_name(longest.phase), 'no estimate to compare'))
    return found


def _tick_plot(sheet: Sheet) -> Plot:
    air = sheet.flight.air
    figure = stack(2, ['ticks per s', 'missed'])
    rate = np.where(air.rate > 0.0, air.rate, np.nan)  # 0: not known yet
    figure.add_trace(sheet.line('rate', rate, 'u',
                           'rate at which the air changed', hovertemplate='%{y:.2f} Hz'),
                     row=1, col=1)
    figure.add_trace(sheet.line('missed', air.missed.astype(float), 'v', 'ticks missed so far',
                           hovertemplate='%{y:.0f}'), row=2, col=1)
    figure.update_yaxes(rangemode='tozero', row=1, col=1)
    figure.update_yaxes(rangemode='tozero', row=2, col=1)
    return Plot(
        f'{sheet.key}-ticks', 'Ticks', 'How often the air really changed per second of sim '
                'time (20 is right), and the ticks no clock message was heard for.', figure, 320,
                sheet.key)


def _rates(tally: Tally) -> str:
    if not tally.slow > 0.0:
        return f'{number(tally.rate, 1)} ticks per second of sim time'
    return (f'{number(tally.rate, 1)} ticks per second of sim time; down to '
            f'{number(tally.least_rate, 1)}, below {SLOW_HZ:g} for {100.0 * tally.slow:.1f} % of '
            'the time')


def _numbers(flight: FlightRecord, analysis: Analysis) -> str:
    tables = []
    air, tally, strength = flight.air, analysis.tally, analysis.strength
    if len(air):
        fits = {fit.axis: fit for fit in analysis.time_constants}
        rows = []
        for i, axis in enumerate(AXES):
            gust = abs(air.gust[i])
            known = gust[~(gust != gust)]
            fit = fits.get(axis)
            row = [axis, number(float((known**2).mean()**0.5) if len(known) else math.nan, 3)]
            if strength is not None:
                row[1] = number(float(strength.measured[i]), 3)
                row += [number(float(strength.model[i]), 3),
                        between(float(strength.least[i]), float(strength.most[i]), 3),
                        judged(bool(strength.agrees[i]), bool(strength.enough[i]))]
            row.append(number(float(known.max()) if len(known) else math.nan, 2))
            if fits:
                row += ([number(fit.measured), number(fit.model), between(fit.least, fit.most),
                         judged(fit.agrees, fit.enough)] if fit else ['–'] * 4)
            rows.append(row)
        head = ['', 'σ, m/s', *(['model', '95 %', 'difference'] if strength is not None else []),
                'peak, m/s', *(['τ, s', 'model', '95 %', 'difference'] if fits else [])]
        tables.append(table('Gust over the whole flight. 95 %: where so many measurements of the '
                            'model’s own process lie.' if fits or strength is not None else
                            'Gust over the whole flight', head, rows))
    rows = []
    if len(air):
        rows.append(['time from first to last tick', number(tally.seconds, 2, 's')])
        rows.append(['ticks recorded', str(tally.recorded)])
        if tally.missed is not None:
            rows.append(['ticks missed (no clock message heard)', str(tally.missed)])
        rows.append(['ticks not in the record', str(tally.lost)])
        if math.isfinite(tally.slow):
            rows.append(['tick rate, median and least', f'{number(tally.rate)} and '
                         f'{number(tally.least_rate)} Hz of sim time'])
            rows.append([f'time at less than {SLOW_HZ:g} Hz', f'{100.0 * tally.slow:.1f} %'])
        rows.append(['times the air began', str(tally.runs)])
        origins = sorted({s.clock_origin for s in flight.settings})
        if origins:
            rows.append(['clock origin', ', '.join(f'{o:g} s' for o in origins)])
        wind = air.mean_enu + air.gust_enu
        speed = (wind[0]**2 + wind[1]**2)**0.5
        speed = speed[speed == speed]
        if len(speed):
            rows.append(['horizontal wind, mean and highest',
                         f'{speed.mean():.2f} and {speed.max():.2f} m/s'])
        factors = analysis.gust_factor.factor
        rows.append(['1-minute gust factor (3 s), mean and highest',
                     f'{factors.mean():.2f} and {factors.max():.2f}' if len(factors)
                     else 'needs a whole minute'])
        if len(analysis.draws):
            rows.append(["draws recovered that are the seed's own",
                         f'{analysis.draws.of_seed} of {len(analysis.draws)}'])
    if rows:
        tables.append(table('Clock, ticks and wind', ('', 'value'), [
            [html.escape(cell) for cell in row] for row in rows], (1,)))
    return ''.join(tables) or '<p>No air in this record.</p>'
