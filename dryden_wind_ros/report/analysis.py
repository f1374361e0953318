"""All numbers of a flight: strength, spectrum and time constant beside the model's, and more."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dryden_wind_ros.report.anemometer import GustFactor, WindRose, gust_factors, wind_rose
from dryden_wind_ros.report.draws import Draws, recover_draws
from dryden_wind_ros.report.field_gusts import FieldGusts, check_field
from dryden_wind_ros.report.flight import Air, FlightRecord
from dryden_wind_ros.report.model_steps import ModelSteps, model_steps
from dryden_wind_ros.report.phases import PhaseSpan, phase_spans
from dryden_wind_ros.report.spectra import Spectrum, spectra
from dryden_wind_ros.report.standing import standing_air, standing_spectra, standing_strengths
from dryden_wind_ros.report.strength import Strength, strengths
from dryden_wind_ros.report.time_constants import TimeConstant, time_constants

SLOW_HZ = 19.0
"""Ticks per second of sim time; the air is made to change 20 times."""


@dataclass(frozen=True)
class Tally:
    """What the record says about the ticks.

    Attributes
    ----------
    seconds : float
        From first to last tick of each run, summed, s.
    recorded : int
        Ticks recorded.
    missed : int or None
        Ticks for which the node heard no clock, all runs; None: not known.
    lost : int
        Ticks that are in the clock's count but not in the record: missed, or lost by the recorder.
    rate, least_rate : float
        Median and least of the tick rate, Hz of sim time; NaN: not known.
    slow : float
        Share of the time in which the air changed less than 19 times a second, 0 to 1.
    runs : int
        How many times the air began.
    """

    seconds: float
    recorded: int
    missed: int | None
    lost: int
    rate: float
    least_rate: float
    slow: float
    runs: int


def tally(air: Air) -> Tally:
    """Count the ticks of a flight."""
    seconds, lost, missed = 0.0, 0, 0
    # Where the clock went back; the air restarted in flight goes on with its count of ticks.
    bounds = [0, *(np.flatnonzero((np.diff(air.tick) <= 0) | (np.diff(air.missed) < 0)) + 1),
              len(air)]
    for first, last in pairwise(bounds):
        if last > first:
            seconds += float(air.t[last - 1] - air.t[first])
            lost += int(air.tick[last - 1] - air.tick[first]) - (last - first - 1)
            missed += int(air.missed[last - 1])
    # Each rate stands for the time since the tick before: slow ticks are few, their time is long.
    span = np.diff(air.tick, prepend=air.tick[:1] - 1).astype(float)
    told = (air.rate > 0.0) & (span > 0.0)
    rates, span = air.rate[told], span[told]
    slow = float(span[rates < SLOW_HZ].sum() / span.sum()) if len(rates) else math.nan
    return Tally(seconds, len(air), missed if len(air) and (air.missed >= 0).all() else None, lost,
                 float(np.median(rates)) if len(rates) else math.nan,
                 float(rates.min()) if len(rates) else math.nan, slow,
                 int(air.run[-1]) + 1 if len(air) else 0)


@dataclass(frozen=True)
class Analysis:
    """All numbers of a flight; `standing`: judged by `standing`, not by the first-order model."""

    tally: Tally
    steps: ModelSteps
    strength: Strength | None
    bands: list[Strength]
    time_constants: list[TimeConstant]
    spectra: list[Spectrum]
    draws: Draws
    field: FieldGusts
    gust_factor: GustFactor
    rose: WindRose | None
    phases: list[PhaseSpan]
    standing: bool


def analyse(flight: FlightRecord) -> Analysis:
    """Work out all numbers of a flight."""
    air = flight.air
    steps = model_steps(air, flight.settings)
    whole, bands = strengths(air, steps)
    found = spectra(air, steps)
    standing = whole is None
    if standing:
        theory = standing_air(air, flight.settings)
        whole, bands = standing_strengths(air, theory)
        found = standing_spectra(air, theory)
    return Analysis(
        tally=tally(air), steps=steps, strength=whole, bands=bands,
        time_constants=time_constants(air, steps), spectra=found,
        draws=recover_draws(air, flight.settings, steps), field=check_field(flight),
        gust_factor=gust_factors(air), rose=wind_rose(air), standing=standing,
        phases=phase_spans(flight.ekf) if flight.ekf is not None else [])
