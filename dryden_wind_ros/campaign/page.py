"""The verdict as one HTML page that needs neither a server nor a network.

Style, plots and scripts are those of `dryden_wind_ros.report`.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

import plotly.graph_objects as go

from dryden_wind_ros.campaign.collect import number
from dryden_wind_ros.campaign.compare import Found, Row, Verdict, measures_in
from dryden_wind_ros.campaign.measures import MEASURES
from dryden_wind_ros.campaign.plan import Plan
from dryden_wind_ros.report import markup
from dryden_wind_ros.report.page import document
from dryden_wind_ros.report.plots import ColumnStore, Plot

ROLES = ('model', 'u', 'v', 'w', 'error')
"""Colours of the variants in turn; the baseline is grey."""

WORST = 5
_GOOD, _BAD = ('better',), ('worse',)


def render(plan: Plan, rows: Sequence[Row], found: Verdict, command: str) -> str:
    """Return the page.

    Parameters
    ----------
    plan : Plan
    rows : sequence of rows
        Every flight.
    found : Verdict
    command : str
        What flies a flight again, before its key.
    """
    store, plots = ColumnStore(), list[Plot]()
    parts = [('verdict', 'Verdict', _verdict(plan, found))]
    if found.limits:
        parts.append(('limits', 'Limits', _limits(found)))
    if len(plan.variants) > 1:
        for number_, name in enumerate(plan.variants[1:], 1):
            parts.append((f'v{number_}', f'{name} against {plan.baseline}', _variant(
                [one for one in found.found if one.variant == name])))
    parts.append(('measures', 'Distributions, and dependence on the wind',
                  _distributions(plan, rows, plots)))
    parts.append(('worst', 'The worst flights', _worst(rows, command)))
    body = [f'<section id="{key}"><h2>{html.escape(label)}</h2>\n{made}\n</section>'
            for key, label, made in parts]
    return document('Wind campaign', f'Wind campaign: {plan.name}',
                    [(key, label) for key, label, _ in parts], body, store, plots, 'wind_campaign')


def _verdict(plan: Plan, found: Verdict) -> str:
    cards = [('flights', str(found.flights), f'{found.missing} missing' if found.missing
              else 'all of the plan'),
             ('failed', str(found.failed), 'see the worst flights' if found.failed else 'none'),
             ('pairs', str(max((one.pairs for one in found.found), default=0)),
              'same wind, same seed')]
    if found.limits:
        held = sum(one.held for one in found.limits)
        cards.append(('limits held', f'{held} of {len(found.limits)}',
                      'passed' if found.held else 'not passed'))
    made = markup.cards(cards)
    if len(plan.variants) == 1:
        return made + ('<p>There is one variant: nothing to compare it with. The limits and the '
                       'distributions are what there is to see.</p>')
    lines = []
    for name in plan.variants[1:]:
        own = [one for one in found.found if one.variant == name]
        told = [one for one in own if one.verdict not in ('open', 'same')]
        if told:
            each = ''.join(f'<li>{html.escape(f"{one.measure}: {one.text}")}</li>' for one in told)
            lines.append(f'<li><strong>{html.escape(name)}</strong>:<ul>{each}</ul></li>')
            continue
        if all(one.verdict == 'same' or not one.pairs for one in own):
            words = 'flies the same, number for number'
        else:
            more = [one.more_pairs for one in own if one.more_pairs]
            words = 'no difference can be told yet' + (
                f'; about {min(more)} more pairs would do for the clearest' if more else '')
        lines.append(f'<li><strong>{html.escape(name)}</strong>: {html.escape(words)}</li>')
    return made + f'<ul>{"".join(lines)}</ul>' + (
        '<p class="muted">Each against the baseline, in the same air (wind and seed; the '
        'differences of a seed are averaged). A difference is claimed where Wilcoxon’s '
        'signed-rank test, corrected for the number of questions (Holm), has p below 0.05 and the '
        'interval of 95 % (bootstrap) does not hold zero.</p>')


def _limits(found: Verdict) -> str:
    return markup.table('Limits of the plan', ('measure', 'most', 'flights within', 'needed', ''), (
        (html.escape(one.limit.measure), f'{one.limit.most:g}', f'{one.passed} of {one.flights}',
         f'{100.0 * one.limit.share:g} %',
         '<span class="good">held</span>' if one.held else '<span class="bad">not held</span>')
        for one in found.limits), (4,))


def _variant(found: Sequence[Found]) -> str:
    def words(one: Found) -> str:
        kind = 'good' if one.verdict in _GOOD else 'bad' if one.verdict in _BAD else 'muted'
        word = {'open': 'cannot be told yet', 'same': 'the same'}.get(one.verdict, one.verdict)
        return f'<span class="{kind}">{html.escape(word if one.pairs else one.text)}</span>'

    def meaning(name: str) -> str:
        unit = MEASURES[name].unit if name in MEASURES else ''
        return html.escape(f'{name}, {unit}' if unit else name)

    def shown(value: float, sign: str = '') -> str:
        if not value or not math.isfinite(value):
            return '–' if value else '0'
        return f'{value:{sign}.3g}'.replace('-', '\u2212')  # a minus: no line ends after it

    return markup.table(
        'Differences, variant less baseline',
        ('measure', 'verdict', 'baseline', 'difference', '95 %', 'better / worse', 'p', 'note'),
        ((meaning(one.measure), words(one), shown(one.baseline), shown(one.median, '+'),
          f'{shown(one.low, "+")} to {shown(one.high, "+")}'.replace(' ', '&nbsp;')
          if math.isfinite(one.low) else '–',
          f'{one.better}&nbsp;/&nbsp;{one.worse}', markup.number(one.p, 4),
          f'<span class="muted">{html.escape(one.note)}</span>') for one in found),
        (1, 7))


def _distributions(plan: Plan, rows: Sequence[Row], plots: list[Plot]) -> str:
    made = []
    for name in measures_in(rows):
        measure = MEASURES.get(name)
        label = f'{name}, {measure.unit}' if measure else name
        boxes, dots = go.Figure(), go.Figure()
        for place, variant in enumerate(plan.variants):
            role = ROLES[min(place, len(ROLES) - 1)]
            own = [row for row in rows if row['variant'] == variant]
            values = [_plain(row.get(name)) for row in own]
            boxes.add_trace(go.Box(y=values, name=variant, boxpoints='all', jitter=0.4,
                                   meta={'role': role}, marker={'size': 3}))
            dots.add_trace(go.Scatter(
                x=[_plain(row['wind_speed']) for row in own], y=values, name=variant,
                mode='markers', meta={'role': role}, marker={'size': 5},
                text=[str(row['pair']) for row in own]))
        boxes.update_yaxes(title_text=label)
        dots.update_yaxes(title_text=label)
        dots.update_xaxes(title_text='mean wind, m/s')
        caption = measure.meaning if measure else 'a measure of this plan'
        pair = [Plot(f'box-{name}', f'{name}: distribution', caption, boxes, 280),
                Plot(f'wind-{name}', f'{name} over the mean wind', caption, dots, 280)]
        plots += pair
        made.append(markup.row(markup.figure(plot) for plot in pair))
    return ''.join(made)


def _worst(rows: Sequence[Row], command: str) -> str:
    def place(row: Row) -> tuple[bool, float]:
        for name in ('position_error_max', 'ekf_wind_error_max'):
            value = number(row.get(name))
            if math.isfinite(value):
                return bool(row['failed']), value
        return bool(row['failed']), 0.0

    worst = sorted(rows, key=place, reverse=True)[:max(WORST, min(
        20, sum(bool(row['failed']) for row in rows)))]
    return markup.table(
        'Failed flights first, then by the largest position error',
        ('flight', 'variant', 'air', 'failure', 'position error max, m', 'to fly it again'),
        ((html.escape(str(row['key'])), html.escape(str(row['variant'])),
          html.escape(str(row['pair'])), html.escape(str(row['failure'])) or '–',
          markup.number(number(row.get('position_error_max'))),
          f'<code>{html.escape(command)} {html.escape(str(row["key"]))}</code>')
         for row in worst),
        (1, 2, 3, 5))


def _plain(value: object) -> float | None:
    as_number = number(value)
    return as_number if math.isfinite(as_number) else None
