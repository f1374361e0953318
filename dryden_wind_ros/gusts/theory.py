r"""Isotropic turbulence as theory has it: spectra and correlations of Dryden and von Karman.

With the standard deviation sigma, the length L and the wavenumber k (rad/m), the energy spectra

    Dryden      E(k) = (8 sigma^2 L / pi) (kL)^4 / (1 + (kL)^2)^3
    von Karman  E(k) = (55 / (9 pi)) sigma^2 L y^4 / (1 + y^2)^(17/6),      y = 1.339 k L

integrate to 3/2 sigma^2. What a straight flight through such air meets has, along the path (u) and
across it (v, w), the one-sided spectra (they integrate to sigma^2)

    Dryden      Phi_u = sigma^2 (2L/pi) / (1 + (kL)^2)
                Phi_v = sigma^2 (L/pi) (1 + 3 (kL)^2) / (1 + (kL)^2)^2
    von Karman  Phi_u = sigma^2 (2L/pi) / (1 + y^2)^(5/6)
                Phi_v = sigma^2 (L/pi) (1 + 8/3 y^2) / (1 + y^2)^(11/6)

which are those of MIL-F-8785C, and at the distance r the correlations f (along the line between the
two points) and g (across it):

    Dryden      f = exp(-r/L)                            g = f (1 - r / (2L))
    von Karman  f = 2^(2/3) / Gamma(1/3) z^(1/3) K_1/3(z)  g = f - ... z^(4/3) K_2/3(z) / 2,
                z = r / (1.339 L)

References
----------
.. [1] MIL-F-8785C, Flying Qualities of Piloted Airplanes, 1980, section 3.7.1.
.. [2] Batchelor, The Theory of Homogeneous Turbulence, 1953 (g = f + r/2 df/dr).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

SPECTRA = ('dryden', 'von_karman')
VON_KARMAN = 1.339
"""von Karman's length over the reciprocal of the wavenumber at which his spectrum bends."""

FloatArray = npt.NDArray[np.float64]


def correlations(distance: npt.ArrayLike, length: npt.ArrayLike,
                 spectrum: str = 'dryden') -> tuple[FloatArray, FloatArray]:
    """Return the correlations of isotropic turbulence at a distance.

    Parameters
    ----------
    distance : array_like
        Between two points, m, not negative.
    length : array_like
        Scale length, m, of a shape that fits.
    spectrum : {'dryden', 'von_karman'}, optional

    Returns
    -------
    f, g : ndarray
        Of the components along and across the line between the points.
    """
    ratio = np.asarray(distance, dtype=np.float64) / np.asarray(length, dtype=np.float64)
    if spectrum == 'dryden':
        f = np.exp(-ratio)
        return f, f * (1.0 - 0.5 * ratio)
    # Below this z the correlations are 1 to 1e-8, and the Bessel functions grow without end.
    z = np.maximum(ratio / VON_KARMAN, 1e-12)
    factor = 2.0 ** (2.0 / 3.0) / math.gamma(1.0 / 3.0) * np.cbrt(z)
    f = factor * _bessel_k(1.0 / 3.0, z)
    return f, f - 0.5 * z * factor * _bessel_k(2.0 / 3.0, z)


def line_spectrum(component: str, wavenumber: npt.ArrayLike, sigma: float, length: float,
                  spectrum: str = 'dryden') -> FloatArray:
    """Return the one-sided spectrum that a straight flight through the air meets.

    Parameters
    ----------
    component : {'along', 'across'}
        Of the gust, to the path.
    wavenumber : array_like
        Along the path, rad/m.
    sigma, length : float
        Strength, m/s, and scale length, m.
    spectrum : {'dryden', 'von_karman'}, optional

    Returns
    -------
    ndarray
        m^2/s^2 per rad/m; the integral from 0 is sigma^2.
    """
    k_length = np.asarray(wavenumber, dtype=np.float64) * length
    if spectrum == 'dryden':
        square, power, transverse = k_length**2, 1.0, 3.0
    else:
        square, power, transverse = (VON_KARMAN * k_length) ** 2, 5.0 / 6.0, 8.0 / 3.0
    factor = sigma**2 * length / math.pi
    if component == 'along':
        return np.asarray(2.0 * factor / (1.0 + square) ** power)
    return np.asarray(factor * (1.0 + transverse * square) / (1.0 + square) ** (power + 1.0))


def _bessel_k(order: float, z: FloatArray) -> FloatArray:
    """Return the modified Bessel function K of z > 0.

    The trapezoidal rule on the integral of exp(-z cosh t) cosh(order t) over t > 0, which converges
    faster than any power of the step: 1e-13 with this one.
    """
    # Where z cosh t is above 745 nothing is left; for the smallest z allowed that is t = 35.
    t = np.arange(0.0, 36.0, 0.0625)
    weights = np.full(t.size, 0.0625)
    weights[0] = 0.03125
    # exp in one, so that neither factor overflows alone.
    terms = (np.exp(order * t - np.multiply.outer(z, np.cosh(t)))
             + np.exp(-order * t - np.multiply.outer(z, np.cosh(t)))) @ weights
    return np.asarray(0.5 * terms)
