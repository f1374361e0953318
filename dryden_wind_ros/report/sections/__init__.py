"""The sections of a flight's part of the page, in order.

A section is a function of a `Sheet` (the flight, its numbers, and what draws on the page) that
returns HTML, or None where the record has nothing for it. To add one: write the function in a file
of this folder, from the pieces of `report.markup` and `report.plots`, and name it in `SECTIONS`.
Its HTML is wrapped in an element with the section's name as anchor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dryden_wind_ros.report.sections import (
    air,
    anemometer,
    ekf,
    field,
    model,
    numbers,
    scenario,
    settings,
)
from dryden_wind_ros.report.sheet import Sheet


@dataclass(frozen=True)
class Section:
    """A section of the page.

    Attributes
    ----------
    name : str
        Its anchor, after the key of the flight; of letters and hyphens.
    make : callable
        Makes its HTML of a `Sheet`, or returns None.
    link : str
        Its name in the page's bar; '' for none.
    """

    name: str
    make: Callable[[Sheet], str | None]
    link: str = ''


SECTIONS = (
    Section('at-a-glance', numbers.glance),
    Section('air', air.air, 'Air'),
    Section('scenario', scenario.scenario, 'Scenario'),
    Section('estimate', ekf.ekf, 'EKF3'),
    Section('by-height', model.strength, 'Strength'),
    Section('spectra', model.spectra, 'Spectra'),
    Section('field', field.field, 'Field'),
    Section('time-constants', model.time_constants),
    Section('anemometer', anemometer.anemometer),
    Section('tick-rate', numbers.ticks),
    Section('numbers', numbers.numbers, 'Numbers'),
    Section('phases', ekf.phases),
    Section('fly-again', settings.settings, 'Fly it again'),
)
