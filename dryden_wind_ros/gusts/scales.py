r"""Strengths and lengths of the standards' turbulence, from the ground to 80 000 ft.

With the height h in feet and the wind W20 at 20 ft:

* Below 1000 ft, sigma_w = 0.1 W20, sigma_u = sigma_v = sigma_w / (0.177 + 0.000823 h)^0.4. Heights
  below 3 m are held at 3 m.
* Above 2000 ft the turbulence is the same in all directions; sigma comes from a table of height and
  probability of exceedance ("severity"), and the length is 1750 ft (von Karman: 2500 ft).
* Between the two heights everything is linear in height. Above 80 000 ft the table's end counts.

Lengths are where the two standards differ, in words and not in air (`gusts.standard`):

    MIL-F-8785C      L_u = L_v = h / (0.177 + 0.000823 h)^1.2      L_w = h      above: all are L
    MIL-HDBK-1797B   L_u = 2 L_v = h / (0.177 + 0.000823 h)^1.2    2 L_w = h    above: 2 L_v = L

References
----------
.. [1] MIL-F-8785C, Flying Qualities of Piloted Airplanes, 1980, section 3.7 (figure 7: the
   table).
.. [2] MIL-HDBK-1797B, Flying Qualities of Piloted Aircraft, 2006, appendix A.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dryden_wind_ros.gusts.dryden import FT_PER_M, MIN_HEIGHT_M, TurbulenceScales
from dryden_wind_ros.gusts.inputs import short

STANDARDS = ('MIL-F-8785C', 'MIL-HDBK-1797B')
SEVERITIES: Final = {'light': 1e-2, 'moderate': 1e-3, 'severe': 1e-5}
"""Probabilities of exceedance that have a name."""

LOW_M = 1000.0 / FT_PER_M
"""Top of the low-altitude model, m."""

ALOFT_M = 2000.0 / FT_PER_M
"""Bottom of the medium and high altitude model, m."""

LENGTH_ALOFT_M: Final = {'dryden': 1750.0 / FT_PER_M, 'von_karman': 2500.0 / FT_PER_M}
"""Scale length above `ALOFT_M`, m."""

_NODES_FT = (500.0, 1750.0, 3750.0, 7500.0, 15000.0, 25000.0, 35000.0, 45000.0, 55000.0, 65000.0,
             75000.0, 80000.0)
_SIGMA_FT_S = {
    2e-1: (3.2, 2.2, 1.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    1e-1: (4.2, 3.6, 3.3, 1.6, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    1e-2: (6.6, 6.9, 7.4, 6.7, 4.6, 2.7, 0.4, 0.0, 0.0, 0.0, 0.0, 0.0),
    1e-3: (8.6, 9.6, 10.6, 10.1, 8.0, 6.6, 5.0, 4.2, 2.7, 0.0, 0.0, 0.0),
    1e-4: (11.8, 13.0, 16.0, 15.1, 11.6, 9.7, 8.1, 8.2, 7.9, 4.9, 3.2, 2.1),
    1e-5: (15.6, 17.6, 23.0, 23.6, 22.1, 20.0, 16.0, 15.1, 12.1, 7.9, 6.2, 5.1),
    1e-6: (18.7, 21.5, 28.4, 30.2, 30.7, 31.0, 25.2, 23.1, 17.5, 10.7, 8.4, 7.2),
}

FloatArray = npt.NDArray[np.float64]


class AirScales(NamedTuple):
    """Strengths and lengths, horizontal and vertical: floats, or arrays of one shape.

    Attributes
    ----------
    sigma, sigma_w : float or ndarray
        Standard deviations of the horizontal components and the vertical one, m/s.
    length, length_w : float or ndarray
        Their lengths as MIL-F-8785C counts them, m.
    """

    sigma: Any
    sigma_w: Any
    length: Any
    length_w: Any


class TurbulenceAloft:
    """The turbulence of one severity at every height.

    Parameters
    ----------
    severity : str or float, optional
        ``light``, ``moderate``, ``severe``, or a probability of exceedance from 1e-6 to 0.2 (also
        as text). Between the table's probabilities sigma is linear in the logarithm of it.
    spectrum : {'dryden', 'von_karman'}, optional
        Whose length counts aloft.

    Attributes
    ----------
    probability : float

    Raises
    ------
    ValueError
        If the severity is neither.
    """

    __slots__ = ('_heights', '_length', '_sigma_at_bottom', '_sigmas', 'probability')

    def __init__(self, severity: str | float = 'light', spectrum: str = 'dryden') -> None:
        self.probability = exceedance(severity)
        rows = sorted(_SIGMA_FT_S)
        logs = [math.log10(row) for row in rows]
        self._heights = np.array(_NODES_FT) / FT_PER_M
        self._sigmas = np.array([
            np.interp(math.log10(self.probability), logs, [_SIGMA_FT_S[row][i] for row in rows])
            for i in range(len(_NODES_FT))]) / FT_PER_M
        self._length = LENGTH_ALOFT_M[spectrum]
        self._sigma_at_bottom = float(np.interp(ALOFT_M, self._heights, self._sigmas))

    def scales(self, height: float, wind_20ft: float) -> AirScales:
        """Return the scales at one height.

        Parameters
        ----------
        height : float
            Above the ground, m.
        wind_20ft : float
            Wind at 20 ft, m/s, not negative.

        Returns
        -------
        AirScales
            Floats.
        """
        low = min(max(height, MIN_HEIGHT_M), LOW_M)
        power = math.exp(0.4 * math.log(0.177 + 0.000823 * FT_PER_M * low))
        sigma_w = 0.1 * wind_20ft
        sigma, length = sigma_w / power, low / (power * power * power)
        if height <= LOW_M:
            return AirScales(sigma, sigma_w, length, low)
        if height < ALOFT_M:
            part, aloft = (height - LOW_M) / (ALOFT_M - LOW_M), self._sigma_at_bottom
        else:
            part, aloft = 1.0, float(np.interp(height, self._heights, self._sigmas))
        return AirScales(*(a + part * (b - a) for a, b in (
            (sigma, aloft), (sigma_w, aloft), (length, self._length), (low, self._length))))

    def scales_of(self, heights: FloatArray, wind_20ft: float | FloatArray) -> AirScales:
        """Return the scales at many heights, as `scales` does at one.

        Parameters
        ----------
        heights : ndarray
            Above the ground, m.
        wind_20ft : float or ndarray
            Wind at 20 ft, m/s, not negative.

        Returns
        -------
        AirScales
            Arrays of the shape of `heights`.
        """
        low = np.clip(heights, MIN_HEIGHT_M, LOW_M)
        power = np.exp(0.4 * np.log(0.177 + 0.000823 * FT_PER_M * low))
        sigma_w = np.broadcast_to(0.1 * np.asarray(wind_20ft), heights.shape)
        sigma, length = sigma_w / power, low / power**3
        if not (heights > LOW_M).any():
            return AirScales(sigma, sigma_w, length, low)
        part = np.clip((heights - LOW_M) / (ALOFT_M - LOW_M), 0.0, 1.0)
        aloft = np.interp(np.maximum(heights, ALOFT_M), self._heights, self._sigmas)
        return AirScales(*(a + part * (b - a) for a, b in (
            (sigma, aloft), (sigma_w, aloft), (length, self._length), (low, self._length))))


def exceedance(severity: str | float) -> float:
    """Return the probability of exceedance that a severity stands for.

    Parameters
    ----------
    severity : str or float
        A name, or a number from 1e-6 to 0.2, also as text.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If it is neither.
    """
    probability = SEVERITIES.get(severity) if isinstance(severity, str) else None
    if probability is None:
        try:
            probability = float(severity)
        except (TypeError, ValueError):
            probability = math.nan
    if not min(_SIGMA_FT_S) <= probability <= max(_SIGMA_FT_S):
        raise ValueError(f'severity is {short(repr(severity))}; it must be one of '
                         f'{", ".join(SEVERITIES)}, or a probability of exceedance from '
                         f'{min(_SIGMA_FT_S):g} to {max(_SIGMA_FT_S):g}')
    return probability


def turbulence_scales(height: float, wind_20ft: float, severity: str | float = 'light',
                      standard: str = 'MIL-F-8785C') -> TurbulenceScales:
    """Return the strengths and lengths of a standard's turbulence.

    Parameters
    ----------
    height : float
        Height above the ground, m: from the ground (held at 3 m) to 80 000 ft (held there).
    wind_20ft : float
        Wind at 20 ft, m/s, not negative: sets the strength below 1000 ft.
    severity : str or float, optional
        ``light``, ``moderate``, ``severe``, or a probability of exceedance from 1e-6 to 0.2: sets
        the strength above 2000 ft.
    standard : {'MIL-F-8785C', 'MIL-HDBK-1797B'}, optional
        Whose lengths are given.

    Returns
    -------
    TurbulenceScales
        Standard deviations in m/s, lengths in m.

    Raises
    ------
    ValueError
        Naming what is wrong, its value and what is allowed.

    Examples
    --------
    >>> scales = turbulence_scales(10.0, 8.0)
    >>> round(scales.sigma_u, 3), round(scales.length_u, 2), round(scales.length_v, 2)
    (1.511, 67.37, 67.37)
    >>> round(turbulence_scales(3750 * 0.3048, 8.0, 'severe').sigma_w / 0.3048, 6)
    23.0
    """
    check_standard(standard)
    for name, value in (('height', height), ('wind_20ft', wind_20ft)):
        if not math.isfinite(value):
            raise ValueError(f'{name} is {value}; it must be a finite number')
    if wind_20ft < 0.0:
        raise ValueError(f'wind_20ft is {wind_20ft} m/s; it must not be negative')
    scales = TurbulenceAloft(severity).scales(height, wind_20ft)
    part = 1.0 if standard == 'MIL-F-8785C' else 0.5
    return TurbulenceScales(
        sigma_u=scales.sigma, sigma_v=scales.sigma, sigma_w=scales.sigma_w,
        length_u=scales.length, length_v=part * scales.length, length_w=part * scales.length_w)


def check_standard(standard: str) -> None:
    """Raise `ValueError` if a standard is none of `STANDARDS`."""
    if standard not in STANDARDS:
        raise ValueError(f'standard is {standard!r}; it must be one of {", ".join(STANDARDS)}')
