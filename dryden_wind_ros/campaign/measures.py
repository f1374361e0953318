"""What is measured of a flight: one number each, from its samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dryden_wind_ros.campaign.embedded_flight import Samples

Columns = dict[str, NDArray[np.float64]]

SETTLED = 1.0
"""An estimate of the wind counts as settled while it is this close to the air flown (both averaged
over `AVERAGED`), m/s."""

AVERAGED = 10.0
_TICKS = round(AVERAGED / 0.05)


@dataclass(frozen=True)
class Measure:
    """A number of a flight.

    Attributes
    ----------
    name, unit, meaning : str
    take : callable
        Of the columns of the measured part.
    better : {'less', 'either'}
        Whether less is better.
    """

    name: str
    unit: str
    meaning: str
    take: Callable[[Columns], float]
    better: str = 'less'


def _rms(values: NDArray[np.float64]) -> float:
    values = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(values**2))) if len(values) else math.nan


def _most(values: NDArray[np.float64]) -> float:
    values = values[np.isfinite(values)]
    return float(np.abs(values).max()) if len(values) else math.nan


def _tail(values: NDArray[np.float64]) -> float:
    values = values[np.isfinite(values)]
    return float(np.percentile(np.abs(values), 95.0)) if len(values) else math.nan


def _mean(values: NDArray[np.float64]) -> float:
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else math.nan


def _tilt(c: Columns) -> NDArray[np.float64]:
    upright = np.clip(np.cos(c['roll']) * np.cos(c['pitch']), -1.0, 1.0)
    return np.asarray(np.degrees(np.arccos(upright)), dtype=np.float64)


def _wind_error(c: Columns) -> NDArray[np.float64]:
    return np.hypot(c['ekf_wind_east'] - c['wind_east'], c['ekf_wind_north'] - c['wind_north'])


def _wind_bias(c: Columns) -> float:
    return math.hypot(_mean(c['ekf_wind_east'] - c['wind_east']),
                      _mean(c['ekf_wind_north'] - c['wind_north']))


def _settling(c: Columns) -> float:
    """Return the time until the averaged estimate is close and stays so, s; NaN if it never is."""
    apart = [c[f'ekf_wind_{axis}'] - c[f'wind_{axis}'] for axis in ('east', 'north')]
    if not len(apart[0]) or len(apart[0]) < _TICKS:
        return math.nan
    window = np.ones(_TICKS) / _TICKS
    close = np.hypot(*(np.convolve(a, window, 'valid') for a in apart)) < SETTLED
    if not close.any() or not close[-1]:
        return math.nan
    far = np.flatnonzero(~close)
    return float((far[-1] + 1 if len(far) else 0) * 0.05 + (AVERAGED if len(far) else 0.0))


MEASURES: dict[str, Measure] = {measure.name: measure for measure in (
    Measure('position_error_rms', 'm', 'off the set point, horizontally (a plane: off its circle)',
            lambda c: _rms(c['position_error'])),
    Measure('position_error_p95', 'm', 'the same, not exceeded 95 % of the time',
            lambda c: _tail(c['position_error'])),
    Measure('position_error_max', 'm', 'the same, largest', lambda c: _most(c['position_error'])),
    Measure('height_error_rms', 'm', 'off the height wanted', lambda c: _rms(c['height_error'])),
    Measure('height_error_max', 'm', 'the same, largest', lambda c: _most(c['height_error'])),
    Measure('attitude_rms', 'deg', 'tilt about its mean roll and pitch',
            lambda c: math.degrees(math.hypot(float(np.std(c['roll'])), float(np.std(c['pitch']))))
            if len(c['roll']) else math.nan),
    Measure('rate_rms', 'deg/s', 'roll and pitch rate together',
            lambda c: math.degrees(math.hypot(_rms(c['roll_rate']), _rms(c['pitch_rate'])))),
    Measure('tilt_max', 'deg', 'largest tilt', lambda c: _most(_tilt(c))),
    Measure('throttle_mean', '%', 'mean throttle', lambda c: _mean(c['throttle']), 'either'),
    Measure('throttle_saturated', '%', 'time at less than 1 or more than 99 % of throttle',
            lambda c: 100.0 * _mean(
                ((c['throttle'] < 1.0) | (c['throttle'] > 99.0)).astype(np.float64))),
    Measure('airspeed_error_rms', 'm/s', 'off the cruise airspeed (planes)',
            lambda c: _rms(c['airspeed_error'])),
    Measure('ekf_wind_error_rms', 'm/s', "EKF3's wind off the air at the vehicle",
            lambda c: _rms(_wind_error(c))),
    Measure('ekf_wind_error_max', 'm/s', 'the same, largest', lambda c: _most(_wind_error(c))),
    Measure('ekf_wind_bias', 'm/s', "mean of EKF3's wind less that of the air, size", _wind_bias),
    Measure('ekf_wind_settle', 's', "until EKF3's wind, averaged over 10 s, is within 1 m/s of "
            'the air and stays so', _settling),
)}


def measures_of(samples: Samples) -> dict[str, float]:
    """Return every measure by name; NaN for what this flight does not have."""
    columns = samples.measured
    return {name: measure.take(columns) for name, measure in MEASURES.items()}
