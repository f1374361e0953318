"""The settings in force, and how to fly the same air again."""

from __future__ import annotations

import html
from pathlib import Path

from dryden_wind_ros.report.fly_again import PARAMETERS, fly_again
from dryden_wind_ros.report.markup import table
from dryden_wind_ros.report.sheet import Sheet
from dryden_wind_ros.report.words import WORDS

_MOST_COLUMNS = 12


def settings(sheet: Sheet) -> str | None:
    """Return the settings, and the commands that fly the same air again."""
    flight = sheet.flight
    parts = ['<h3>Settings, and how to fly it again</h3>']
    if not flight.settings:
        parts.append('<p>This kind of record does not hold the settings of the gust model.</p>')
        return ''.join(parts)
    starts = {int(s): float(flight.air.t[(flight.air.setting == s).argmax()])
              for s in range(len(flight.settings))}
    names = [(name, parameter) for name, parameter, _ in PARAMETERS
             if any(getattr(s, name) != '' for s in flight.settings)]
    told = {name for name, _, _ in PARAMETERS}
    # Of other kinds of air: only where they say something.
    names += [(name, '') for name in WORDS if name not in told and (
        name in ('clock_origin', 'frame_id') or any(getattr(s, name) for s in flight.settings))]
    count = len(flight.settings)
    shown = flight.settings[:_MOST_COLUMNS]
    caption = 'Settings in force, with the parameter of the wind node in brackets'
    if count > len(shown):
        caption += f'; the first {len(shown)} of {count}, the commands below have all'
    parts.append(table(
        caption, ('setting', *(f'from {starts[i]:.2f} s' for i in range(len(shown)))),
        [[html.escape(WORDS[name] + (f' ({parameter})' if parameter else '')),
          *(html.escape(_setting_text(name, getattr(s, name))) for s in shown)]
         for name, parameter in names]))
    parts.append(f'<pre><code>{html.escape(chr(10).join(fly_again(flight)))}</code></pre>')
    parts.append('<p>The same seed meets the same draws at the same sim time. The gusts are the '
                 'same to the bit while height and airspeed are; where they part, so do the gusts '
                 '(docs/ab_testing.md).</p>')
    return ''.join(parts)


def _setting_text(name: str, value: object) -> str:
    if name == 'scenario':
        value = Path(str(value)).name  # whose folder it is in is nobody's business
    return f'{value:g}' if isinstance(value, float) else str(value) or '(none)'
