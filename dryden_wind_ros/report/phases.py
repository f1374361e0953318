"""Phases of EKF3's wind in a flight: where each begins and ends, its errors, its colour."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dryden_wind_ros.ekf.phase import WindPhase
from dryden_wind_ros.logs.phases import stretches
from dryden_wind_ros.report.flight import Ekf

PHASE_COLOURS = {
    WindPhase.UNKNOWN: 'rgba(128,128,128,0.06)',
    WindPhase.NOT_ESTIMATED: 'rgba(128,128,128,0.20)',
    WindPhase.GROUND: 'rgba(128,128,128,0.20)',
    WindPhase.INHIBITED: 'rgba(128,128,128,0.40)',
    WindPhase.INIT: 'rgba(240,160,50,0.60)',
    WindPhase.LEARNING: 'rgba(70,170,90,0.18)',
    WindPhase.COAST: 'rgba(60,130,230,0.32)',
    WindPhase.RELEARN: 'rgba(190,90,205,0.40)',
}
"""Bands; half transparent, so that they do on light and on dark."""


def phase_rgba(phase: WindPhase) -> tuple[float, float, float, float]:
    """Return the colour of a phase as Matplotlib has it, each part 0 to 1."""
    red, green, blue, alpha = (float(part) for part in PHASE_COLOURS[phase][5:-1].split(','))
    return red / 255.0, green / 255.0, blue / 255.0, alpha


@dataclass(frozen=True)
class PhaseSpan:
    """One phase of EKF3's wind.

    Attributes
    ----------
    phase : int
        As in EkfWind.msg.
    start, end : float
        s, on the flight's clock.
    reason : str
        Why, as first given.
    settled : float
        Share of the time in which the estimate might be believed, 0 to 1.
    error_mean, error_max : float
        Length of (estimate - wind flown), m/s; NaN without an estimate.
    direction_mean : float
        Mean size of the error of the direction, degrees.
    """

    phase: int
    start: float
    end: float
    reason: str
    settled: float
    error_mean: float
    error_max: float
    direction_mean: float


def mean_error(spans: Sequence[PhaseSpan]) -> float:
    """Return the mean error of the estimate over all phases that have one, m/s; NaN without any."""
    errors = [(one.error_mean, one.end - one.start) for one in spans
              if math.isfinite(one.error_mean)]
    time = sum(seconds for _, seconds in errors)
    return sum(error * seconds for error, seconds in errors) / time if time > 0.0 else math.nan


def phase_name(phase: int) -> str:
    """Return the name of a phase in plain words."""
    return (WindPhase(phase).name.lower().replace('_', ' ') if phase in list(WindPhase)
            else f'phase {phase}')


def phase_spans(ekf: Ekf) -> list[PhaseSpan]:
    """Return the phases in order; each ends where the next begins."""
    found = []
    for one in stretches(ekf.t, ekf.phase):
        rows = one.rows
        error, turn = ekf.error_speed[rows], np.abs(ekf.error_direction[rows])
        error, turn = error[np.isfinite(error)], turn[np.isfinite(turn)]
        found.append(PhaseSpan(
            phase=int(ekf.phase[rows.start]), start=one.start, end=one.end,
            reason=ekf.reason[rows.start], settled=float(ekf.settled[rows].mean()),
            error_mean=float(error.mean()) if len(error) else math.nan,
            error_max=float(error.max()) if len(error) else math.nan,
            direction_mean=float(turn.mean()) if len(turn) else math.nan))
    return found
