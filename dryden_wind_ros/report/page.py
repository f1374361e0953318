"""The report as one HTML page that needs neither a server nor a network."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import plotly
from plotly.offline import get_plotlyjs

from dryden_wind_ros.report.analysis import Analysis
from dryden_wind_ros.report.compare import Comparison
from dryden_wind_ros.report.flight import FlightRecord
from dryden_wind_ros.report.plots import TOTAL_ROWS, ColumnStore, Plot
from dryden_wind_ros.report.sections import SECTIONS
from dryden_wind_ros.report.sections.comparison import comparison, comparison_plots
from dryden_wind_ros.report.sections.field import fleet, pairs_of_fleet
from dryden_wind_ros.report.sections.overview import overview
from dryden_wind_ros.report.sheet import Sheet

Flight = tuple[FlightRecord, Analysis]


OPEN_FLIGHTS = 2
"""A page of more flights than this shows them folded: their plots are drawn when opened."""


def render(flights: Sequence[Flight], comparisons: Sequence[tuple[int, int, Comparison]]) -> str:
    """Return the page.

    Parameters
    ----------
    flights : sequence of (FlightRecord, Analysis)
        In order.
    comparisons : sequence of (int, int, Comparison)
        Places of a and b in `flights`, and what was found.

    Returns
    -------
    str
        HTML, with the plotting library inside.
    """
    lines = sum(1 + bool(len(f.air)) for f, _ in flights)
    store = ColumnStore(most=max(1000, TOTAL_ROWS // (2 * lines)))
    plots: list[Plot] = []
    body: list[str] = []
    links: list[tuple[str, str]] = []
    folded = len(flights) > OPEN_FLIGHTS
    if folded:
        links.append(('overview', 'Overview'))
        body.append(overview(flights, comparisons))
    for number, (a, b, found) in enumerate(comparisons, 1):
        key = f'ab{number}'
        flight, other = flights[a][0], flights[b][0]
        own = comparison_plots(flight, other, found, store, key)
        plots += own
        words = 'A and B' if len(comparisons) == 1 else f'{flight.name} and {other.name}'
        links.append((key, words))
        body.append(_part(key, 'Did A and B meet the same air?' if len(comparisons) == 1 else
                          f'Did {words} meet the same air?',
                          comparison(flight, other, found, own), folded))
    if pairs := pairs_of_fleet([flight for flight, _ in flights]):
        made, own = fleet(pairs, 'fleet')
        plots += own
        links.append(('fleet', 'One air'))
        body.append(_part('fleet', 'Vehicles in one field', made, folded))
    for number, (flight, analysis) in enumerate(flights):
        key = f'f{number}'
        sheet = Sheet(key, flight, analysis, store, plots)
        label = flight.name if len(flights) > 1 else 'The flight'
        if len(flights) == 2 and comparisons:
            label = f'{"AB"[number]}: {label}'
        links.append((key, label))
        body.append(_part(key, label, _flight(sheet, links if len(flights) == 1 else []), folded))
    files = list(dict.fromkeys(Path(f.source).name if folded else f.name for f, _ in flights))
    title = 'Wind report: ' + ', '.join(files[:4]) + (', …' if len(files) > 4 else '')
    return document('Wind report', title, links, body, store, plots, 'wind_report')


def document(program: str, title: str, links: Sequence[tuple[str, str]], body: Sequence[str],
             store: ColumnStore, plots: Sequence[Plot], made_by: str) -> str:
    """Return a page of this style: head, links to its parts, the parts, and the plots' numbers.

    Parameters
    ----------
    program, title : str
        At the top of every screen, and the page's own.
    links : sequence of (str, str)
        Anchors and names of the parts.
    body : sequence of str
        The parts, HTML.
    store : ColumnStore
        What lines of the plots refer to.
    plots : sequence of Plot
        Those whose figures are in `body`.
    made_by : str
        Name of the command.
    """
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
        f'<header class="top"><div class="bar"><strong>{html.escape(program)}</strong>'
        f'<nav aria-label="Sections">{nav}</nav>'
        '<button id="theme" type="button" title="Automatic, light or dark">Theme: auto</button>'
        '</div></header>',
        '<main id="content">', f'<h1>{html.escape(title)}</h1>',
        '<noscript><p>The plots need JavaScript; the tables do not.</p></noscript>',
        *body,
        f'<p class="muted">Made by {html.escape(made_by)} of dryden_wind_ros, with plotly.py '
        f'{plotly.__version__}. Nothing in this page is loaded from elsewhere.</p>',
        '</main>',
        f'<script type="application/json" id="report-data">{data}</script>',
        f'<script>{get_plotlyjs()}</script>', f'<script>{_asset("page.js")}</script>',
        '</body>', '</html>', ''))


def _asset(name: str) -> str:
    return resources.files('dryden_wind_ros.report').joinpath(name).read_text(encoding='utf-8')


def _part(key: str, label: str, made: str, folded: bool) -> str:
    """Return a part of the page with its heading; `folded`: to be opened by a click."""
    heading = f'<h2>{html.escape(label)}</h2>'
    if folded:
        return (f'<details id="{key}" class="part"><summary>{heading}</summary>\n{made}\n'
                '</details>')
    return f'<section id="{key}">{heading}\n{made}\n</section>'


def _flight(sheet: Sheet, links: list[tuple[str, str]]) -> str:
    """Return a flight's sections; `links` gets their anchors and names."""
    flight = sheet.flight
    # The name alone: pages are passed on, and whose folders these are is nobody's business.
    parts = [f'<p class="lead">{html.escape(Path(flight.source).name)}</p>']
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
    return '\n'.join(parts)
