"""Pieces of HTML that the sections of the page are made of."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence

from dryden_wind_ros.report.plots import Plot


def figure(plot: Plot, level: int = 3) -> str:
    """Return a plot with its heading and caption."""
    label = html.escape(f'{plot.title}. {plot.caption}', quote=True)
    return (f'<figure><h{level} id="{plot.key}-heading">{html.escape(plot.title)}</h{level}>'
            f'<figcaption>{html.escape(plot.caption)}</figcaption>'
            f'<div class="plot" id="{plot.key}" role="group" aria-label="{label}" '
            f'style="min-height:{plot.height}px"></div></figure>')


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]],
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


def cards(shown: Iterable[tuple[str, str, str]]) -> str:
    """Return cards of name, value (HTML already) and what there is to add."""
    return '<ul class="cards">' + ''.join(
        f'<li><span class="name">{html.escape(name)}</span><span class="value">{value}</span>'
        f'<span class="more">{html.escape(more)}</span></li>' for name, value, more in shown
    ) + '</ul>'


def number(value: float, digits: int = 2, unit: str = '') -> str:
    """Return a number with so many digits; a dash for what is not finite."""
    if not math.isfinite(value):
        return '–'
    return f'{value:.{digits}f}{" " if unit else ""}{unit}'


def between(low: float, high: float, digits: int = 2) -> str:
    """Return a range of numbers."""
    return f'{number(low, digits)} to {number(high, digits) if math.isfinite(high) else "∞"}'


def judged(agrees: bool, enough: bool = True) -> str:
    """Say whether a measurement agrees with the model."""
    if not enough:
        return '<span class="muted">too short to judge</span>'
    return ('<span class="good">within</span>' if agrees else '<span class="bad">outside</span>')


def row(figures: Iterable[str]) -> str:
    """Return figures side by side, as far as there is room."""
    return f'<div class="row">{"".join(figures)}</div>'
