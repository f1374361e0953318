"""The settings in force, and how to fly the same air again."""

from __future__ import annotations

import html

from dryden_wind_ros.report.fly_again import PARAMETERS, fly_again
from dryden_wind_ros.report.markup import table
from dryden_wind_ros.report.sheet import Sheet


def settings(sheet: Sheet) -> str | None:
    """Return the settings, and the commands that fly the same air again."""
    flight = sheet.flight
    parts = ['<h3>Settings, and how to fly it again</h3>']
    if not flight.settings:
        parts.append('<p>This kind of record does not hold the settings of the gust model.</p>')
        return ''.join(parts)
    starts = {int(s): float(flight.air.t[(flight.air.setting == s).argmax()])
              for s in range(len(flight.settings))}
    names = [*((parameter, name) for name, parameter, _ in PARAMETERS),
             ('frame_id', 'frame_id'), ('clock origin, s', 'clock_origin')]
    parts.append(table(
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
