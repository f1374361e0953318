"""The report as one HTML page that needs neither a server nor a network."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib import resources

import plotly
from plotly.offline import get_plotlyjs

from dryden_wind_ros.report.analysis import Analysis
from dryden_wind_ros.report.compare import Comparison
from dryden_wind_ros.report.flight import FlightRecord
from dryden_wind_ros.report.plots import TOTAL_ROWS, ColumnStore, Plot
from dryden_wind_ros.report.sections import SECTIONS
from dryden_wind_ros.report.sections.comparison import comparison, comparison_plots
from dryden_wind_ros.report.sheet import Sheet

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
        body.append(comparison(key, flights[0][0], other, found, own))
    for number, (flight, analysis) in enumerate(flights):
        key = f'f{number}'
        sheet = Sheet(key, flight, analysis, store, plots)
        label = flight.name if len(flights) > 1 else 'The flight'
        if len(flights) == 2:
            label = f'{"AB"[number]}: {label}'
        links.append((key, label))
        body.append(_flight(label, sheet, links if len(flights) == 1 else []))
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


def _flight(label: str, sheet: Sheet, links: list[tuple[str, str]]) -> str:
    """Return a flight's part; `links` gets the anchors of its sections and their names."""
    flight = sheet.flight
    parts = [f'<section id="{sheet.key}"><h2>{html.escape(label)}</h2>',
             f'<p class="lead">{html.escape(flight.source)}</p>']
    if flight.notes:
        parts.append('<ul class="notes">' + ''.join(
            f'<li>{html.escape(note)}</li>' for note in flight.notes) + '</ul>')
    for section in SECTIONS:
        made = section.make(sheet)
        if made is None:
            continue
        anchor = f'{sheet.key}-{section.name}'
        parts.append(f'<div id="{anchor}">{made}</div>')
        if section.link:
            links.append((anchor, section.link))
    parts.append('</section>')
    return '\n'.join(parts)
