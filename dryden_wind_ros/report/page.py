"""The report as one HTML page that needs neither a server nor a network."""

from __future__ import annotations

import html
import json
import math
import shlex
from collections.abc import Iterable, Sequence
from importlib import resources

import plotly
from plotly.offline import get_plotlyjs

from dryden_wind_ros.ekf.phase import WindPhase
from dryden_wind_ros.report.analysis import CONFIDENCE, Analysis, Strength, phase_name
from dryden_wind_ros.report.compare import CLOSE_GUST, Comparison
from dryden_wind_ros.report.figures import (
    PHASE_COLOURS,
    TOTAL_ROWS,
    ColumnStore,
    Plot,
    comparison_plots,
    flight_plots,
)
from dryden_wind_ros.report.flight import AXES, FlightRecord, Settings

Flight = tuple[FlightRecord, Analysis]


def render(flights: Sequence[Flight], comparisons: Sequence[Comparison]) -> str:
    """Return the page.

    Parameters
    ----------
    flights : sequence of (FlightRecord, Analysis)
        In order; the first is A of every comparison.
    comparisons : sequence of Comparison
        Of the first flight with each of the others.

    Returns
    -------
    str
        HTML, with the plotting library inside.
    """
    lines = sum(1 + bool(len(f.air)) for f, _ in flights)
    store = ColumnStore(most=max(8000, TOTAL_ROWS // (2 * lines)))
    plots: list[Plot] = []
    body: list[str] = []
    links: list[tuple[str, str]] = []
    for number, found in enumerate(comparisons, 1):
        key = f'ab{number}'
        other = flights[number][0]
        own = comparison_plots(flights[0][0], other, found, store, key)
        plots += own
        links.append((key, 'A and B' if len(comparisons) == 1 else f'A and {other.name}'))
        body.append(_comparison(key, flights[0][0], other, found, own))
    for number, (flight, analysis) in enumerate(flights):
        key = f'f{number}'
        own = flight_plots(flight, analysis, store, key)
        plots += own
        label = flight.name if len(flights) > 1 else 'The flight'
        if len(flights) == 2:
            label = f'{"AB"[number]}: {label}'
        links.append((key, label))
        if len(flights) == 1:
            links += [(f'{key}-{part}', name) for part, name in (
                ('strength-section', 'Strength'), ('spectra', 'Spectra'), ('ekf-section', 'EKF3'),
                ('numbers', 'Numbers'), ('settings', 'Fly it again'))
                if part not in _absent(analysis)]
        body.append(_flight(key, label, flight, analysis, own))
    title = 'Wind report: ' + ', '.join(flight.name for flight, _ in flights)
    data = json.dumps({
        'columns': store.as_json(),
        'plots': [{'key': plot.key, 'height': plot.height, 'linked': plot.linked,
                   **json.loads(plot.figure.to_json(remove_uids=True))} for plot in plots]},
        separators=(',', ':')).replace('</', '<\\/')  # no name may end the script
    nav = ''.join(f'<a href="#{key}">{html.escape(name)}</a>' for key, name in links)
    return '\n'.join((
        '<!DOCTYPE html>', '<html lang="en" data-theme="light">', '<head>',
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        # Nothing is ever fetched: the page says so, and the browser holds it to that.
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        'script-src \'unsafe-inline\'; style-src \'unsafe-inline\'; img-src data: blob:">',
        '<link rel="icon" href="data:,">', f'<title>{html.escape(title)}</title>',
        f'<style>{_asset("page.css")}</style>', '</head>', '<body>',
        '<a class="skip" href="#content">To the content</a>',
        '<header class="top"><div class="bar"><strong>Wind report</strong>'
        f'<nav aria-label="Sections">{nav}</nav>'
        '<button id="theme" type="button" title="Automatic, light or dark">Theme: auto</button>'
        '</div></header>',
        '<main id="content">', f'<h1>{html.escape(title)}</h1>',
        '<noscript><p>The plots need JavaScript; the tables do not.</p></noscript>',
        *body,
        '<p class="muted">Made by wind_report of dryden_wind_ros, with plotly.py '
        f'{plotly.__version__}. Nothing in this page is loaded from elsewhere.</p>',
        '</main>',
        f'<script type="application/json" id="report-data">{data}</script>',
        f'<script>{get_plotlyjs()}</script>', f'<script>{_asset("page.js")}</script>',
        '</body>', '</html>', ''))


def _asset(name: str) -> str:
    return resources.files('dryden_wind_ros.report').joinpath(name).read_text(encoding='utf-8')


def _absent(analysis: Analysis) -> set[str]:
    return {part for part, there in (
        ('strength-section', analysis.bands), ('spectra', analysis.spectra),
        ('ekf-section', analysis.phases)) if not there}


# ---------------------------------------------------------------------------------------- pieces


def _figure(plot: Plot, level: int = 3) -> str:
    label = html.escape(f'{plot.title}. {plot.caption}', quote=True)
    return (f'<figure><h{level} id="{plot.key}-heading">{html.escape(plot.title)}</h{level}>'
            f'<figcaption>{html.escape(plot.caption)}</figcaption>'
            f'<div class="plot" id="{plot.key}" role="group" aria-label="{label}" '
            f'style="min-height:{plot.height}px"></div></figure>')


def _table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]],
           text_columns: Sequence[int] = ()) -> str:
    """Return a table; its cells are HTML already, the first of each row is its heading."""
    def kind(column: int) -> str:
        return ' class="text"' if column == 0 or column in text_columns else ''
    cells = ''.join(
        '<tr>' + ''.join(
            f'<th scope="row">{cell}</th>' if column == 0 else f'<td{kind(column)}>{cell}</td>'
            for column, cell in enumerate(row)) + '</tr>' for row in rows)
    heads = ''.join(f'<th scope="col"{kind(i)}>{html.escape(name)}</th>'
                    for i, name in enumerate(head))
    label = html.escape(caption, quote=True)
    # Above the table, not in it: a caption is no wider than its table.
    return (f'<p class="caption" aria-hidden="true">{html.escape(caption)}</p>'
            f'<div class="table" tabindex="0" role="region" aria-label="{label}">'
            f'<table aria-label="{label}"><thead><tr>{heads}</tr></thead>'
            f'<tbody>{cells}</tbody></table></div>')


def _cards(cards: Iterable[tuple[str, str, str]]) -> str:
    return '<ul class="cards">' + ''.join(
        f'<li><span class="name">{html.escape(name)}</span><span class="value">{value}</span>'
        f'<span class="more">{html.escape(more)}</span></li>' for name, value, more in cards
    ) + '</ul>'


def _number(value: float, digits: int = 2, unit: str = '') -> str:
    if not math.isfinite(value):
        return '–'
    return f'{value:.{digits}f}{" " if unit else ""}{unit}'


def _judged(agrees: bool, enough: bool = True) -> str:
    if not enough:
        return '<span class="muted">too short to judge</span>'
    return ('<span class="good">within</span>' if agrees else '<span class="bad">outside</span>')


# ------------------------------------------------------------------------------------- one flight


def _flight(key: str, label: str, flight: FlightRecord, analysis: Analysis,
            plots: Sequence[Plot]) -> str:
    by_key = {plot.key.removeprefix(f'{key}-'): plot for plot in plots}
    parts = [f'<section id="{key}"><h2>{html.escape(label)}</h2>',
             f'<p class="lead">{html.escape(flight.source)}</p>']
    if flight.notes:
        parts.append('<ul class="notes">' + ''.join(
            f'<li>{html.escape(note)}</li>' for note in flight.notes) + '</ul>')
    parts.append(_cards(_at_a_glance(flight, analysis)))
    parts += [_figure(by_key[name]) for name in ('gust', 'wind', 'sim-wind', 'height')
              if name in by_key]
    if 'ekf' in by_key:
        parts.append(f'<div id="{key}-ekf-section">{_figure(by_key["ekf"])}'
                     f'{_phase_legend(analysis)}</div>')
    if 'strength' in by_key:
        parts.append(f'<div id="{key}-strength-section">{_figure(by_key["strength"])}</div>')
        parts.append(_strength_table(analysis))
    spectra = [by_key[f'spectrum-{axis}'] for axis in AXES if f'spectrum-{axis}' in by_key]
    if spectra:
        filled = analysis.spectra[0].interpolated
        more = (f' {100 * filled:.1f} % of the ticks were not recorded and are interpolated, which '
                'lowers the right end a little.' if filled > 0.0005 else '')
        parts.append(
            f'<h3 id="{key}-spectra">Spectra</h3><p>Power spectral density by Welch’s method, '
            'beside the model’s, 4σ²T / (1 + (2πfT)²) with T = L / V. The band is where 95 % of '
            'such estimates of the model’s own process would lie: it knows of the sampling at '
            f'20 Hz, which lifts the right end above the curve, and of the windows.{more}</p>'
            f'<div class="row">{"".join(_figure(plot, 4) for plot in spectra)}</div>')
    fits = [by_key[f'autocorrelation-{axis}'] for axis in AXES
            if f'autocorrelation-{axis}' in by_key]
    if fits:
        parts.append(
            f'<h3 id="{key}-time-constants">Time constants</h3><p>Autocorrelation beside the '
            'model’s, exp(−lag / τ). τ: mean over the flight; measured by the factor on the '
            'model’s that fits the lag of one tick best, which for this process uses all there is '
            'to know. ± holds 95 % of such fits.</p>'
            f'<div class="row">{"".join(_figure(plot, 4) for plot in fits)}</div>')
    last = [by_key[name] for name in ('rose', 'gust-factor') if name in by_key]
    if last:
        parts.append(f'<div class="row">{"".join(_figure(plot) for plot in last)}</div>')
    if 'ticks' in by_key:
        parts.append(_figure(by_key['ticks']))
    parts.append(f'<h3 id="{key}-numbers">Numbers</h3>')
    parts.append(_numbers(flight, analysis))
    if analysis.phases:
        parts.append(_phase_table(flight, analysis))
    parts.append(_settings(key, flight, analysis))
    parts.append('</section>')
    return '\n'.join(parts)


def _at_a_glance(flight: FlightRecord, analysis: Analysis) -> list[tuple[str, str, str]]:
    air, tally = flight.air, analysis.tally
    cards = []
    if len(air):
        cards.append(('Flight', _number(tally.seconds, 0, 's'), f'{tally.recorded} ticks'))
    if flight.settings:
        first = flight.settings[0]
        more = f'{len(flight.settings)} settings in turn' if len(flight.settings) > 1 else (
            f'updraft {first.mean_up:g} m/s' if first.mean_up else 'at every height alike'
            if first.profile == 'uniform' else "SITL's profile")
        cards.append(('Mean wind', f'{first.mean_speed:g} m/s',
                      f'from {first.mean_from_deg:g}°, {more}'))
        gusts = {'dryden': f'seed {first.seed}', 'off': 'off', 'sitl': 'of SITL'}.get(
            first.gusts, html.escape(first.gusts))
        cards.append(('Gusts', gusts, f'{first.method}, scale {first.scale:g}'
                      if first.gusts == 'dryden' else 'no Dryden gusts'))
    if (strength := analysis.strength) is not None:
        good = int((strength.agrees & strength.enough).sum())
        judged = int(strength.enough.sum())
        cards.append(('Strength', f'{good} of {judged}' if judged else 'too short',
                      'axes agree with the model within the sampling error'
                      if judged else 'to be judged'))
    if len(analysis.draws):
        draws = analysis.draws
        cards.append(('Draws', f'{draws.of_seed} of {len(draws)}',
                      "recovered from the gusts are the seed's own"))
    if tally.missed is not None:
        cards.append(('Missed ticks', str(tally.missed),
                      f'{_number(tally.rate, 1)} ticks per second of sim time'))
    if analysis.phases:
        errors = [(p.error_mean, p.end - p.start) for p in analysis.phases
                  if math.isfinite(p.error_mean)]
        time = sum(t for _, t in errors)
        if time > 0.0:
            mean = sum(e * t for e, t in errors) / time
            cards.append(("EKF3's error", _number(mean, 2, 'm/s'), 'mean, while it estimates'))
        else:
            longest = max(analysis.phases, key=lambda p: p.end - p.start)
            cards.append(("EKF3's wind", phase_name(longest.phase), 'no estimate to compare'))
    return cards


def _phase_legend(analysis: Analysis) -> str:
    seen = sorted({span.phase for span in analysis.phases})
    return '<ul class="phases" aria-label="Phases">' + ''.join(
        f'<li><i style="background:{PHASE_COLOURS.get(WindPhase(p), "none")}"></i>'
        f'{html.escape(phase_name(p))}</li>' for p in seen if p in list(WindPhase)) + '</ul>'


def _strength_table(analysis: Analysis) -> str:
    def rows(strength: Strength, name: str) -> Iterable[list[str]]:
        for i, axis in enumerate(AXES):
            yield [name if i == 0 else '', axis, _number(strength.seconds, 0),
                   _number(float(strength.measured[i]), 3), _number(float(strength.model[i]), 3),
                   f'±{_number(CONFIDENCE * float(strength.error[i]), 3)}',
                   _number(float(strength.samples[i]), 0),
                   _judged(bool(strength.agrees[i]), bool(strength.enough[i]))]
    everything = [row for band in analysis.bands for row in rows(band, _band_name(band))]
    return _table(
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
            row = [axis, _number(float((known**2).mean()**0.5) if len(known) else math.nan, 3)]
            if strength is not None:
                row[1] = _number(float(strength.measured[i]), 3)
                row += [f'{_number(float(strength.model[i]), 3)} ± '
                        f'{_number(CONFIDENCE * float(strength.error[i]), 3)}',
                        _judged(bool(strength.agrees[i]), bool(strength.enough[i]))]
            row.append(_number(float(known.max()) if len(known) else math.nan, 2))
            if fits:
                row += ([_number(fit.measured, 2),
                         f'{_number(fit.model, 2)} ± {_number(CONFIDENCE * fit.error, 2)}',
                         _judged(fit.agrees, fit.samples >= 8.0)] if fit else ['–', '–', '–'])
            rows.append(row)
        head = ['', 'σ, m/s', *(['model ± 95 %', 'difference'] if strength is not None else []),
                'peak, m/s', *(['τ, s', 'model ± 95 %', 'difference'] if fits else [])]
        tables.append(_table('Gust over the whole flight', head, rows))
    rows = []
    if len(air):
        rows.append(['time from first to last tick', _number(tally.seconds, 2, 's')])
        rows.append(['ticks recorded', str(tally.recorded)])
        if tally.missed is not None:
            rows.append(['ticks missed (no clock message heard)', str(tally.missed)])
        rows.append(['ticks not in the record', str(tally.lost)])
        rows.append(['tick rate, median', _number(tally.rate, 2, 'Hz of sim time')])
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
        tables.append(_table('Clock, ticks and wind', ('', 'value'), [
            [html.escape(cell) for cell in row] for row in rows], (1,)))
    return ''.join(tables) or '<p>No air in this record.</p>'


def _phase_table(flight: FlightRecord, analysis: Analysis) -> str:
    head = ['phase', 'from, s', 'to, s', 'for, s', 'error, m/s', 'largest', 'turn, °']
    judged = flight.kind != 'dataflash'  # such a log has the phases, but nothing on trust
    explained = any(p.reason for p in analysis.phases)
    rows = []
    for p in analysis.phases:
        rows.append([html.escape(phase_name(p.phase)), _number(p.start, 1), _number(p.end, 1),
                     _number(p.end - p.start, 1), _number(p.error_mean), _number(p.error_max),
                     _number(p.direction_mean, 0)])
        if judged:
            rows[-1].append(f'{100 * p.settled:.0f} %')
        if explained:
            rows[-1].append(html.escape(p.reason))
    head += ['settled'] * judged + ['why'] * explained
    return _table(
        "Phases of EKF3's wind. Error: length of (estimate − flown); turn: mean size of the error "
        'of the direction' + ('; settled: share of the time in which the estimate might be '
                              'believed.' if judged else '.'),
        head, rows, (len(head) - 1,) if explained else ())


# --------------------------------------------------------------------------------------- settings

_PARAMETERS = (
    ('mean_speed', 'mean_wind.speed', 'mean_wind_speed'),
    ('mean_from_deg', 'mean_wind.from_direction', 'mean_wind_from'),
    ('mean_up', 'mean_wind.up', 'mean_wind_up'),
    ('gusts', 'gusts', 'gusts'), ('method', 'method', 'method'), ('scale', 'scale', 'scale'),
    ('seed', 'seed', 'seed'), ('profile', 'profile', 'profile'))
"""Field of `Settings`, parameter of the wind node, argument of sitl.launch.py."""


def fly_again(flight: FlightRecord) -> list[str]:
    """Return the commands that fly the same air again, with the changes made in flight."""
    if not flight.settings:
        return []
    namespace = flight.namespace
    first = flight.settings[int(flight.air.setting[0])]
    words = ['ros2 launch dryden_wind_ros sitl.launch.py']
    if namespace:
        words.append(shlex.quote(f'namespace:={namespace}'))
    words += [shlex.quote(f'{argument}:={getattr(first, name)}')
              for name, _, argument in _PARAMETERS]
    commands = [' '.join(words)]
    node = f'/{namespace}/dryden_wind' if namespace else '/dryden_wind'
    now = first
    for at, run_began, settings in changes(flight):
        commands += [f'ros2 param set {shlex.quote(node)} {parameter} '
                     f'{shlex.quote(str(getattr(settings, name)))}  '
                     f'# at sim time {at:.2f} s' for name, parameter, _ in _PARAMETERS
                     if getattr(settings, name) != getattr(now, name)]
        if run_began and (settings.seed, settings.method) == (now.seed, now.method):
            service = f'/{namespace}/wind/restart' if namespace else '/wind/restart'
            commands.append(f'ros2 service call {service} std_srvs/srv/Trigger  '
                            f'# at sim time {at:.2f} s')
        now = settings
    return commands


def changes(flight: FlightRecord) -> list[tuple[float, bool, Settings]]:
    """Return (time, whether the air was restarted in flight, settings) of each change in flight."""
    air = flight.air
    found = []
    for row in range(1, len(air)):
        other = air.setting[row] != air.setting[row - 1]
        restarted = air.run[row] != air.run[row - 1] and air.tick[row] > air.tick[row - 1]
        if other or restarted:
            found.append((float(air.t[row]), bool(restarted),
                          flight.settings[int(air.setting[row])]))
    return found


def _settings(key: str, flight: FlightRecord, analysis: Analysis) -> str:
    parts = [f'<h3 id="{key}-settings">Settings, and how to fly it again</h3>']
    if not flight.settings:
        parts.append('<p>This kind of record does not hold the settings of the gust model.</p>')
        return ''.join(parts)
    starts = {int(s): float(flight.air.t[(flight.air.setting == s).argmax()])
              for s in range(len(flight.settings))}
    names = [*((parameter, name) for name, parameter, _ in _PARAMETERS),
             ('frame_id', 'frame_id'), ('clock origin, s', 'clock_origin')]
    parts.append(_table(
        'Settings in force', ('parameter', *(f'from {starts[i]:.2f} s'
                                             for i in range(len(flight.settings)))),
        [[html.escape(label), *(html.escape(_setting_text(getattr(s, name)))
                                for s in flight.settings)] for label, name in names]))
    parts.append(f'<pre><code>{html.escape(chr(10).join(fly_again(flight)))}</code></pre>')
    parts.append('<p>The same seed meets the same draws at the same sim time. The gusts are the '
                 'same to the bit while height and airspeed are; where they part, so do the gusts '
                 '(docs/ab_testing.md).</p>')
    return ''.join(parts)


def _setting_text(value: object) -> str:
    return f'{value:g}' if isinstance(value, float) else str(value)


# ------------------------------------------------------------------------------------ two flights


def _comparison(key: str, a: FlightRecord, b: FlightRecord, found: Comparison,
                plots: Sequence[Plot]) -> str:
    look = {'same': 'same', 'same draws': 'same', 'other draws': 'other'}.get(found.verdict, '')
    parts = [f'<section id="{key}"><h2>Did A and B meet the same air?</h2>',
             f'<p class="lead">A: {html.escape(a.name)}<br>B: {html.escape(b.name)}</p>',
             f'<p class="verdict {look}"><strong>{html.escape(found.text)}</strong></p>']
    if found.draws:
        parts.append(_cards((
            ('Ticks in common', str(found.common), f'{found.common * 0.05:.0f} s'),
            ('Same draws', f'{found.draws_same} of {found.draws}', 'recovered from the gusts'),
            ('Same gusts', f'{found.gusts_same} of {found.common}', 'u, v and w equal'),
            ('Close gusts', f'{found.gusts_close} of {found.common}',
             f'u, v and w within {CLOSE_GUST:g} m/s'),
            *((f'Correlation of {axis}', _number(float(c), 3), 'over the ticks in common')
              for axis, c in zip(AXES, found.correlation, strict=True)))))
    if found.parted:
        parts.append(_table(
            'How far the flights parted, B − A, over the ticks in common',
            ('', 'mean', 'rms', 'largest', 'at, s'),
            [[html.escape(f'{p.name}, {p.unit}'), f'{p.mean:.3g}', f'{p.rms:.3g}',
              f'{p.largest:.3g}', _number(p.largest_at, 2)] for p in found.parted]))
    if a.settings and b.settings:
        parts.append(_table('Settings that differ', ('setting', 'A', 'B'),
                            [[html.escape(cell) for cell in row] for row in found.settings])
                     if found.settings else '<p>All settings are the same.</p>')
    parts += [_figure(plot) for plot in plots]
    parts.append('</section>')
    return '\n'.join(parts)
