"""The numbers and verdicts of a report for programs: what ``wind_report --json`` writes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dryden_wind_ros.report.analysis import Analysis
from dryden_wind_ros.report.compare import FAIR, Comparison
from dryden_wind_ros.report.field_gusts import Together, fields_apart, together
from dryden_wind_ros.report.flight import AXES, FlightRecord
from dryden_wind_ros.report.phases import phase_name

VERSION = 1
"""Rises when something that was there changes; what is added does not count."""

_MOST_MISTAKEN = 0.001  # share of draws that may differ, as rounding of a float32 may have it


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two flights and what was found in comparing them."""

    a: FlightRecord
    b: FlightRecord
    found: Comparison


def summary(flights: Sequence[tuple[FlightRecord, Analysis]],
            pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return what JSON can hold: no NaN, no arrays; what is not known is None.

    Parameters
    ----------
    flights : sequence of (FlightRecord, Analysis)
        In order.
    pairs : sequence of Pair
        Those that were compared.
    """
    failed = list(failures(flights, pairs))
    return _plain({
        'version': VERSION, 'passed': not failed, 'failures': failed,
        'flights': [_flight(flight, analysis) for flight, analysis in flights],
        'comparisons': [{
            'a': pair.a.name, 'b': pair.b.name, 'fair': pair.found.verdict in FAIR,
            **{field.name: getattr(pair.found, field.name)
               for field in dataclasses.fields(pair.found)
               if field.name not in ('row_a', 'row_b')},
            'field': _together(pair.a, pair.b)} for pair in pairs],
        'vehicles_in_one_field': [
            {'a': a.name, 'b': b.name, **(_together(a, b) or {})}
            for a, b in fields_apart([flight for flight, _ in flights])]})


def _together(a: FlightRecord, b: FlightRecord) -> dict[str, Any] | None:
    found = together(a, b)
    return dataclasses.asdict(found) if isinstance(found, Together) else None


def failures(flights: Sequence[tuple[FlightRecord, Analysis]],
             pairs: Sequence[Pair]) -> Iterator[str]:
    """Say what a test must not let pass.

    That is: flights that did not meet the same air (or of which that cannot be told), and draws
    that are not those of the seed. Numbers outside their range are not among it: one in twenty is,
    by chance.
    """
    for flight, analysis in flights:
        count, right = len(analysis.draws), analysis.draws.of_seed
        if count and right < (1.0 - _MOST_MISTAKEN) * count:
            yield f"{flight.name}: only {right} of {count} draws are the seed's own"
        field = analysis.field
        if field.of_seed < len(field):
            yield (f'{flight.name}: only {field.of_seed} of {len(field)} gusts are those of the '
                   "seed's field")
    for pair in pairs:
        if pair.found.verdict not in FAIR:
            yield f'{pair.a.name} and {pair.b.name}: {pair.found.text}'


def _flight(flight: FlightRecord, analysis: Analysis) -> dict[str, Any]:
    strength = analysis.strength
    fits = {fit.axis: fit for fit in analysis.time_constants}
    found = {spectrum.axis: spectrum for spectrum in analysis.spectra}
    factor = analysis.gust_factor.factor
    axes = {}
    for i, axis in enumerate(AXES):
        axes[axis] = {
            'sigma': strength and {
                'measured': strength.measured[i], 'model': strength.model[i],
                'least': strength.least[i], 'most': strength.most[i],
                'independent_samples': strength.samples[i], 'enough': strength.enough[i],
                'agrees': strength.agrees[i]},
            'tau': (fit := fits.get(axis)) and {
                'measured': fit.measured, 'model': fit.model, 'least': fit.least, 'most': fit.most,
                'independent_samples': fit.samples, 'enough': fit.enough, 'agrees': fit.agrees},
            'spectrum_inside': found[axis].inside if axis in found else None}
    return {
        'name': flight.name, 'file': Path(flight.source).name, 'kind': flight.kind,
        'namespace': flight.namespace, 'notes': flight.notes, 'ticks': analysis.tally,
        'settings': flight.settings, 'gust': axes,
        'field': {'compared': len(analysis.field), 'of_seed': analysis.field.of_seed},
        'draws': {'compared': len(analysis.draws), 'of_seed': analysis.draws.of_seed},
        'gust_factor': {'mean': factor.mean(), 'highest': factor.max()} if len(factor) else None,
        'ekf_phases': [{**dataclasses.asdict(span), 'phase': phase_name(span.phase)}
                       for span in analysis.phases]}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
