"""Strength and spectra of the airs that blow in full from the first tick: the standards', a field.

They are stationary where their strength and lengths are, and known by their correlation: along a
path through the air of direction d (unit vector along, across, up) a component i has

    R_i(r) = sigma_i^2 (d_i^2 f(r / L_i) + (1 - d_i^2) g(r / L_i))

with f and g of `gusts.theory`; the standards fly along u, whatever the vehicle does. With the
window w, the estimate of a spectrum is on average the transform of R_i(m) (w * w)(m), m the lag
[1]_; the mean square of N ticks has the variance 2 sum C_ij^2 / N^2. A field's life, which changes
the air a little while it drifts, is left out.

References
----------
.. [1] Percival and Walden, Spectral Analysis for Physical Applications, 1993, chapter 6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from dryden_wind_ros.gusts.dryden import MIN_SPEED
from dryden_wind_ros.gusts.theory import correlations, line_spectrum
from dryden_wind_ros.gusts.tick_grid import TICK_S
from dryden_wind_ros.report.chance import chi_squared_range
from dryden_wind_ros.report.flight import AXES, Air, BoolArray, FloatArray, IntArray, Settings
from dryden_wind_ros.report.model_steps import some
from dryden_wind_ros.report.spectra import (
    MIN_WINDOW,
    Spectrum,
    Stretch,
    frequency_groups,
    stretches_of,
    window_size,
)
from dryden_wind_ros.report.strength import Strength, bands_of

_ROWS = 60  # over which correlations are averaged
_LAGS = 200  # lags at which a correlation is computed; between them it is smooth
_DOUBLED = 'mil_hdbk_1797b'  # its lengths of v and w are half of those in the other's formulas


_LOG_RANGE = {'dryden': math.log(30.0 / 2e-4), 'von_karman': math.log(200.0 / 2e-4)}
"""Of a field's wavenumbers, see `gusts.field`."""


@dataclass(frozen=True)
class StandingAir:
    """What theory says of the air met, row by row.

    Attributes
    ----------
    blowing : ndarray of bool, shape (N,)
        Where such an air blew.
    sigma, length : ndarray, shape (3, N)
        m/s, and m as in the formulas of MIL-F-8785C.
    speed : ndarray, shape (N,)
        Through the air, m/s.
    along : ndarray, shape (3, N)
        Squares of the components of the path's direction.
    spectrum : str
        'dryden' or 'von_karman'.
    modes : float
        Of the field, in a unit of log k; infinite for the standards.
    """

    blowing: BoolArray
    sigma: FloatArray
    length: FloatArray
    speed: FloatArray
    along: FloatArray
    spectrum: str
    modes: float

    def covariance(self, axis: int, rows: IntArray, lags: FloatArray) -> FloatArray:
        """Return the covariance at lags (s), averaged over rows, (m/s)^2."""
        rows = some(rows, _ROWS)
        ratio = np.outer(self.speed[rows] / self.length[axis, rows], lags)
        if self.spectrum == 'dryden':
            f, g = correlations(ratio, 1.0)
        else:  # Bessel functions: a table, once
            table = _von_karman()
            f, g = (np.interp(ratio, table[0], one) for one in table[1:])
        share = self.along[axis, rows, None]
        return np.asarray((self.sigma[axis, rows, None] ** 2 * (
            share * f + (1.0 - share) * g)).mean(axis=0))

    def density(self, axis: int, rows: IntArray, frequency: FloatArray) -> FloatArray:
        """Return the formula's spectrum, averaged over rows, (m/s)^2/Hz."""
        total = np.zeros(len(frequency))
        rows = some(rows, _ROWS)
        for row in rows.tolist():
            turn = 2.0 * math.pi / self.speed[row]
            one = self.sigma[axis, row], self.length[axis, row], self.spectrum
            share = self.along[axis, row]
            total += turn * (share * line_spectrum('along', turn * frequency, *one)
                             + (1.0 - share) * line_spectrum('across', turn * frequency, *one))
        return total / len(rows)


@cache
def _von_karman() -> tuple[FloatArray, FloatArray, FloatArray]:
    ratio = np.concatenate([[0.0], np.geomspace(1e-5, 60.0, 3000)])
    return ratio, *correlations(ratio, 1.0, 'von_karman')


def standing_air(air: Air, settings: Sequence[Settings]) -> StandingAir:
    """Work out what theory says of the rows where a standard's model or a field blew."""
    spectra = {one.field_spectrum for one in settings if one.gusts == 'field'}
    field = np.array([one.gusts == 'field' for one in settings] or [False])[air.setting]
    standard = np.array([one.gusts == 'dryden' and not one.blows_first_order for one in settings]
                        or [False])[air.setting]
    doubled = np.array([one.model == _DOUBLED for one in settings] or [False])[air.setting]
    mean = np.hypot(air.mean_enu[0], air.mean_enu[1])
    speed = np.maximum(np.maximum(air.airspeed, mean), MIN_SPEED)
    along = np.zeros((3, len(air)))
    along[0] = 1.0
    if field.any():
        if air.asked is None or len(spectra) > 1 or (standard & (air.setting >= 0)).any():
            field = np.zeros_like(field)  # one kind of air a flight is judged
        else:
            # The path in the air: place less drift, u along the mean wind.
            line = np.gradient(air.asked[:3] - air.asked[4:7], axis=1) / np.maximum(
                np.gradient(air.asked[3]), 1e-9)
            with np.errstate(invalid='ignore', divide='ignore'):
                east, north = air.mean_enu[:2] / mean
                path = np.array([line[0] * east + line[1] * north,
                                 line[0] * north - line[1] * east, line[2]])
                through = np.sqrt((path**2).sum(axis=0))
                field = field & np.isfinite(through) & (through > 0.1) & (through < 1e3)
                speed = np.where(field, through, speed)
                along = np.where(field, path**2 / through**2, along)
    length = air.length * np.where(doubled, np.array([[1.0], [2.0], [2.0]]), 1.0)
    with np.errstate(invalid='ignore'):
        blowing = (field | standard) & (air.setting >= 0) & (air.sigma > 0.0).all(axis=0) & (
            length > 0.0).all(axis=0) & (mean > 0.0)
    spectrum = (next(iter(spectra)) if len(spectra) == 1 and field.any() else '') or 'dryden'
    modes = min((one.field_modes for one in settings if one.gusts == 'field'), default=0)
    return StandingAir(blowing, air.sigma, length, speed, along, spectrum,
                       modes / _LOG_RANGE[spectrum] if modes and field.any() else math.inf)


def standing_strengths(air: Air, model: StandingAir) -> tuple[Strength | None, list[Strength]]:
    """Return strength in the whole flight and by height, as `strength.strengths` does."""
    if not model.blowing.any():
        return None, []
    found = []
    for low, high, chosen in bands_of(air, model.blowing):
        rows = np.flatnonzero(chosen)
        count = len(rows)
        model2 = (model.sigma[:, rows] ** 2).mean(axis=1)
        lags = _lags(count)
        samples = np.empty(3)
        for axis in range(3):
            square = np.interp(np.arange(1, count) * TICK_S, lags,
                               model.covariance(axis, rows, lags)) ** 2
            left = 1.0 - np.arange(1, count) / count
            samples[axis] = count / (1.0 + 2.0 * float(left @ square) / model2[axis] ** 2)
        least, most = chi_squared_range(samples)
        found.append(Strength(
            low=low, high=high, height=float(air.height[rows].mean()), seconds=count * TICK_S,
            measured=np.sqrt((air.turbulence[:, rows] ** 2).mean(axis=1)), model=np.sqrt(model2),
            aimed=np.sqrt(model2), least=np.sqrt(model2 * least), most=np.sqrt(model2 * most),
            samples=samples))
    return found[0], found[1:]


def _lags(count: int) -> FloatArray:
    return np.concatenate([[0.0], np.geomspace(TICK_S, max(count, 2) * TICK_S, _LAGS)])


def standing_spectra(air: Air, model: StandingAir) -> list[Spectrum]:
    """Estimate each axis' spectrum beside theory's; empty for less than half a minute."""
    stretches = [one for one in stretches_of(air, model.blowing) if len(one.rows) >= MIN_WINDOW]
    return [_spectrum(stretches, model, axis) for axis in range(3)] if stretches else []


def _spectrum(stretches: list[Stretch], model: StandingAir, axis: int) -> Spectrum:
    rows = np.concatenate([one.rows for one in stretches])
    tau = float((model.length[axis, rows] / model.speed[rows]).mean())
    size = window_size([len(one.rows) for one in stretches], tau)
    window = np.hanning(size + 1)[:-1]
    energy = float(window @ window)
    gust, parts, behind = [], [], []
    for stretch in stretches:
        spare = len(stretch.rows) - size
        if spare < 0:
            continue
        starts = np.linspace(0, spare, 1 + 2 * spare // size).astype(int)
        behind += [size, *np.diff(starts).tolist()]
        for start in starts.tolist():
            gust.append(stretch.gust[axis, start:start + size])
            parts.append(stretch.rows[start:start + size])
    frequency = np.asarray(np.fft.rfftfreq(size, TICK_S), dtype=np.float64)
    groups = frequency_groups(frequency)
    density = 2.0 * TICK_S / energy
    power = density * np.abs(np.fft.rfft(np.array(gust) * window, axis=1)) ** 2
    measured = np.array([power[:, a:b].mean() for a, b in groups])
    # The mean: the covariance under the window's own correlation, transformed.
    inside = np.unique(np.concatenate(parts))
    lags = _lags(size)
    covariance = np.interp(np.arange(size) * TICK_S, lags, model.covariance(axis, inside, lags))
    lagged = np.fft.irfft(np.abs(np.fft.rfft(window, 2 * size)) ** 2)[:size] * covariance
    mean = density * (2.0 * np.fft.rfft(lagged, 2 * size).real[::2] - lagged[0])
    expected = np.array([mean[a:b].mean() for a, b in groups])
    # Neighbouring frequencies of a Hann window are related by 2/3 and 1/6, windows by overlap.
    widths = np.array([b - a for a, b in groups], dtype=np.float64)
    alone = 2.0 * widths**2 / (
        widths + 2.0 * (4.0 / 9.0 * (widths - 1.0) + np.maximum(widths - 2.0, 0.0) / 36.0))
    related = sum(float((window[:size - s] @ window[s:] / energy) ** 2) for s in behind[1:])
    freedom = alone * len(gust) / (1.0 + 2.0 * related / len(gust))
    middle = np.array([frequency[a:b].mean() for a, b in groups])
    # A seed's field has a few modes in each band: those that the path meets at k_1 = 2 pi f / V.
    # Of the modes n in a band of log k, weighted by energy, 0.75 count; 1 / n is what seeds of
    # even cells of log k were seen to scatter by, less than random wavenumbers would.
    bandwidth = np.maximum(widths, 1.5) * frequency[1] / middle
    count = 0.75 * model.modes * bandwidth * np.minimum(1.0, 2.0 * math.pi * tau * middle)
    freedom = 2.0 / (2.0 / freedom + 1.0 / count)
    low, high = chi_squared_range(freedom)
    curve_frequency = np.geomspace(min(frequency[1], 0.5 / (2.0 * math.pi * tau)), frequency[-1],
                                   120)
    return Spectrum(
        AXES[axis], middle, measured, expected, expected * low, expected * high, freedom,
        len(gust), size * TICK_S, 1.0 / (2.0 * math.pi * tau),
        sum(one.filled for one in stretches) / len(rows), curve_frequency,
        model.density(axis, inside, curve_frequency))
