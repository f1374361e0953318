r"""One seeded field of turbulence: the gust as a function of place and time, without memory.

Whoever is at a place at a time meets the same air: any vehicle, any process, any step, in any order
of asking. The field is a sum of Fourier modes (Kraichnan):

    gust(x, t) = sum over n of g_n [A_n cos(phi_n) + B_n sin(phi_n)]
    phi_n = k_n . (x - D) + c N_n (k_n L_ref)^(2/3) age
    g_n = sqrt(2 E(k_n) dk_n)

* One wavenumber |k_n| in each of equal cells of log k; directions from a low-discrepancy lattice
  with a random shift and rotation, so that every band of wavenumbers looks in all directions.
* A_n and B_n are of unit length, perpendicular to k_n and to each other, turned by a random phase
  and with a random sense: each mode alone has the covariance of isotropic, divergence-free
  turbulence.
* E is Dryden's or von Karman's energy spectrum (`gusts.theory`). Height enters only g_n: the
  horizontal components take (sigma_u, L_u) of the point's height and the vertical one
  (sigma_w, L_w), from `gusts.scales`. Phases do not depend on height. Horizontally isotropic, so
  that a turning wind turns nothing else; u, v and w are uncorrelated at a point; where the two
  pairs agree and do not change (above 2000 ft) the field is free of divergence.
* D, the drift, is how far the mean wind has carried the air. Every mode also turns at a rate of its
  own (N_n is standard normal): the air lives while it drifts. `age` counts turnover times, sigma/L
  at one reference height; c is `life`, 0 for frozen air.

References
----------
.. [1] Kraichnan, Diffusion by a random velocity field, Physics of Fluids 13, 1970.
.. [2] Fung, Hunt, Malik, Perkins, Kinematic simulation of homogeneous turbulence by unsteady random
   Fourier modes, Journal of Fluid Mechanics 236, 1992 (modes that turn at a rate of their own).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from dryden_wind_ros.gusts.scales import TurbulenceAloft
from dryden_wind_ros.gusts.theory import SPECTRA, VON_KARMAN, correlations

MAX_MODES = 65536
MAX_LIFE = 5.0
REFERENCE_HEIGHT_M = 10.0
"""Where sigma and L of the turnover time are taken."""

MAX_DISTANCE = 1e11
"""Farthest that a place may be from the drifting air's zero, m: phases are then good to 1e-4."""

_LOWEST = 2e-4
_HIGHEST: Final = {'dryden': 30.0, 'von_karman': 200.0}
"""Wavenumbers, rad/m. Beyond is 0.6 % of Dryden's energy with a length of 10 m, and 0.8 % of von
Karman's, whose tail is longer."""

# Points, and points times modes, worked on at once. What they need fits a core's second or third
# cache; whole arrays take two to four times as long.
_POINTS = 32
_NUMBERS = 32768


class _Scratch(threading.local):
    """Memory to work in, one for each thread: the system takes fresh memory back and clears it."""

    def __init__(self) -> None:
        self.buffers = np.empty(2 * _NUMBERS), np.empty((4, 2 * _NUMBERS + 336), np.float32)


_SCRATCH = _Scratch()

# Arrays, as NumPy takes them faster than floats.
_ONE = np.array(1.0, np.float32)
_TURN = np.array(2.0 * math.pi, np.float32)
_VON_KARMAN_POWER = np.array(5.0 / 12.0, np.float32)

FloatArray = npt.NDArray[np.float64]
_Single = npt.NDArray[np.float32]


class TurbulenceField:
    """A seeded field of turbulence.

    Parameters
    ----------
    seed : int
        The same seed and settings give the same field everywhere. Its magnitude counts.
    spectrum : {'dryden', 'von_karman'}, optional
    modes : int, optional
        Number of Fourier modes, 1 to 65536. With less than some 1000 a single seed's spectrum is
        rough; the cost is in proportion.
    life : float, optional
        How fast the air changes while it drifts, 0 (frozen) to 5.
    severity : str or float, optional
        Of the turbulence above 1000 ft, see `gusts.scales.turbulence_scales`.

    Raises
    ------
    TypeError, ValueError
        Naming what is wrong, its value and what is allowed.

    Notes
    -----
    The answer depends on nothing but the arguments. Phases are reduced in double precision and the
    sines taken in single: it is alike to 1e-5 m/s in any batch and on any x86-64. Safe to share
    between threads.

    Examples
    --------
    >>> field = TurbulenceField(7)
    >>> field.gust([[0.0, 0.0, 10.0], [5.0, 0.0, 10.0]], 60.0, (8.0, 0.0, 0.0)).round(2)
    array([[-0.94,  0.06,  0.17],
           [-0.77,  0.36,  0.22]])
    """

    def __init__(self, seed: int, *, spectrum: str = 'dryden', modes: int = 4096,
                 life: float = 0.5, severity: str | float = 'light') -> None:
        check_field(spectrum, modes, life)
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
            raise TypeError(f'seed is {seed!r}; it must be an integer')
        self.seed = int(seed)
        self.spectrum = spectrum
        self.modes = int(modes)
        self.life = float(life)
        self._aloft = TurbulenceAloft(severity, spectrum)
        # Philox and its raw numbers are the same in every version of NumPy; distributions are not.
        source = np.random.Philox(abs(self.seed))
        raw = source.random_raw(5 * self.modes + 5) >> np.uint64(11)
        uniform = raw.astype(np.float64) * 2.0**-53
        few, many = uniform[:5], uniform[5:].reshape(5, self.modes)

        wavenumbers, width = _wavenumbers(many[0], _HIGHEST[spectrum])
        direction, first, second = _frames(few, many[1], self.modes)
        sense = np.where(many[2] < 0.5, -1.0, 1.0)
        rates = np.sqrt(-2.0 * np.log1p(-many[3])) * np.cos(2.0 * np.pi * many[4])
        reference = self._aloft.scales(REFERENCE_HEIGHT_M, 1.0)
        self._turnover: float = reference.sigma / reference.length
        energy = 16.0 / np.pi if spectrum == 'dryden' else 110.0 / (9.0 * np.pi)
        weight = np.sqrt(energy * wavenumbers * width)
        self._wave_vectors = wavenumbers[:, None] * direction
        self._rates = self.life * rates * (wavenumbers * reference.length) ** (2.0 / 3.0)
        self._cosine = weight[:, None] * first
        self._sine = (weight * sense)[:, None] * second

        # What a call needs, in its order: phases in turns, k^2, and A over B (sine, then cosine).
        self._turns = np.asfortranarray(
            np.vstack((self._wave_vectors.T, self._rates)) / (2.0 * np.pi))
        bend = 1.0 if spectrum == 'dryden' else VON_KARMAN
        self._square = ((bend * wavenumbers) ** 2).astype(np.float32)
        self._sides = np.stack((self._sine, self._cosine)).transpose(2, 0, 1).astype(
            np.float32)[:, :, None]

    @property
    def wave_vectors(self) -> FloatArray:
        """Wave vectors of the modes, ENU, rad/m, shape (modes, 3): a copy."""
        return self._wave_vectors.copy()

    def amplitudes(self, height: float, mean_wind: float) -> tuple[FloatArray, FloatArray]:
        """Return what multiplies the cosine and the sine of every mode at a height.

        For spectra and correlations of this very field, without the error of sampling it: the
        variance of component i is half the sum of cosine[:, i]^2 + sine[:, i]^2.

        Parameters
        ----------
        height : float
            Above the ground, m.
        mean_wind : float
            Horizontal, m/s.

        Returns
        -------
        cosine, sine : ndarray, shape (modes, 3)
            ENU, m/s.
        """
        scales = self._aloft.scales(height, mean_wind)
        bend = 1.0 if self.spectrum == 'dryden' else VON_KARMAN
        square = (bend * np.linalg.norm(self._wave_vectors, axis=1)) ** 2
        factors = np.empty((self.modes, 3))
        for columns, sigma, length in ((slice(0, 2), scales.sigma, scales.length),
                                       (slice(2, 3), scales.sigma_w, scales.length_w)):
            part = 1.0 / (1.0 + square * length**2)
            power = 0.5 if self.spectrum == 'dryden' else 5.0 / 12.0
            factors[:, columns] = (sigma * math.sqrt(length) * (1.0 - part) * part**power)[:, None]
        return factors * self._cosine, factors * self._sine

    def turnover_rate(self, mean_wind: float) -> float:
        """Return how many turnover times the air lives in a second.

        Parameters
        ----------
        mean_wind : float
            Horizontal, m/s.

        Returns
        -------
        float
            sigma / L of the horizontal components at the reference height of 10 m, 1/s.
        """
        return self._turnover * mean_wind

    def gust(self, positions: npt.ArrayLike, time: npt.ArrayLike, mean_wind_enu: npt.ArrayLike, *,
             drift: npt.ArrayLike | None = None, age: npt.ArrayLike | None = None,
             heights: npt.ArrayLike | None = None) -> FloatArray:
        """Return the gust at places.

        Parameters
        ----------
        positions : array_like, shape (N, 3)
            ENU, m.
        time : float or array_like, shape (N,)
            s. Only says what `drift` and `age` are where those are not given.
        mean_wind_enu : array_like, shape (3,) or (N, 3)
            m/s, where the air moves to. Its horizontal speed sets the strength below 1000 ft.
        drift : array_like, shape (3,) or (N, 3), optional
            How far the air has moved since time 0, m; ``mean_wind_enu * time`` unless given.
        age : float or array_like, shape (N,), optional
            How many turnover times the air has lived since time 0; from time and mean wind unless
            given.
        heights : float or array_like, shape (N,), optional
            Above the ground, m; the third column of `positions` unless given.

        Returns
        -------
        ndarray, shape (N, 3)
            East, north, up, m/s.

        Raises
        ------
        ValueError
            If an argument is not finite or of another shape; the text names it.
        """
        places = np.asarray(positions, dtype=np.float64)
        if places.ndim != 2 or places.shape[1] != 3:
            raise ValueError(f'positions have the shape {places.shape}; it must be (N, 3)')
        n = len(places)
        times = _shaped('time', time, (), (n,))
        wind = _shaped('mean_wind_enu', mean_wind_enu, (3,), (n, 3))
        height = places[:, 2] if heights is None else _shaped('heights', heights, (), (n,))
        # One sum finds every NaN and infinity; only then is it worth asking where.
        if not math.isfinite(places.sum() + times.sum() + wind.sum() + height.sum()):
            for name, value in (('positions', places), ('time', times), ('mean_wind_enu', wind),
                                ('heights', height)):
                _check_finite(name, value)
        speed = np.hypot(wind[..., 0], wind[..., 1])
        arguments = np.empty((n, 4))
        arguments[:, :3] = places - (wind * times[..., None] if drift is None
                                     else _shaped('drift', drift, (3,), (n, 3)))
        arguments[:, 3] = (speed * self._turnover * times if age is None
                           else _shaped('age', age, (), (n,)))
        if not math.isfinite(arguments.sum()):
            for name, given in (('drift', drift), ('age', age)):
                if given is not None:
                    _check_finite(name, np.asarray(given, dtype=np.float64))
        if n and max(arguments[:, :3].max(), -arguments[:, :3].min()) > MAX_DISTANCE:
            raise ValueError(f'positions less the drift are up to {abs(arguments[:, :3]).max():g} '
                             f'm; they must be within {MAX_DISTANCE:g} m')
        result = np.empty((n, 3))
        if n == 1:
            scales = self._aloft.scales(height.item(), speed.item())
        else:
            scales = self._aloft.scales_of(np.broadcast_to(height, (n,)), speed)
        lengths = np.array((scales.length, scales.length_w), dtype=np.float32).reshape(2, n)
        for start in range(0, n, _POINTS):
            part = slice(start, start + _POINTS)
            self._sum(arguments[part], lengths[:, part], result[part])
        strength = np.array((scales.sigma, scales.sigma_w)) * np.sqrt(
            (scales.length, scales.length_w))
        result[:, :2] *= strength[0][..., None]
        result[:, 2] *= strength[1]
        return result

    def _sum(self, arguments: FloatArray, lengths: _Single, result: FloatArray) -> None:
        """Sum the modes at some points, without sigma sqrt(L)."""
        n = len(arguments)
        size = min(self.modes, _NUMBERS // n)
        doubles, singles = _SCRATCH.buffers
        squares = (lengths * lengths)[:, :, None]
        result[...] = 0.0
        for start in range(0, self.modes, size):
            modes = slice(start, start + size)
            m = min(size, self.modes - start)
            turns, whole = doubles[:2 * n * m].reshape(2, n, m)
            phase = singles[0, :n * m].reshape(n, m)
            sides, part, factor = (x[:2 * n * m].reshape(2, n, m) for x in singles[1:])
            np.matmul(arguments, self._turns[:, modes], out=turns)
            np.rint(turns, out=whole)
            np.subtract(turns, whole, out=phase, casting='same_kind')
            phase *= _TURN
            np.sin(phase, out=sides[0])
            np.cos(phase, out=sides[1])
            # sqrt(E) up to its factor: (kL)^2 / (1 + (kL)^2)^1.5 = (1 - p) sqrt(p), with
            # p = 1 / (1 + (kL)^2); von Karman has the power 5/12 in place of the root.
            np.multiply(squares, self._square[modes], out=part)
            part += _ONE
            np.reciprocal(part, out=part)
            if self.spectrum == 'dryden':
                np.sqrt(part, out=factor)
            else:
                np.log(part, out=factor)
                factor *= _VON_KARMAN_POWER
                np.exp(factor, out=factor)
            np.subtract(_ONE, part, out=part)
            factor *= part
            for component, weight in enumerate((factor[0], factor[0], factor[1])):
                np.multiply(sides, self._sides[component, ..., modes], out=part)
                part[0] += part[1]
                # NumPy's own sums: a BLAS would add in another order on every processor.
                result[:, component] += np.einsum('nm,nm->n', part[0], weight)


def _wavenumbers(uniform: FloatArray, highest: float) -> tuple[FloatArray, float]:
    """Return one wavenumber in each cell of log k, rad/m, and the width of a cell in log k."""
    width = math.log(highest / _LOWEST) / len(uniform)
    return _LOWEST * np.exp(width * (np.arange(len(uniform)) + uniform)), width


def _frames(few: FloatArray, phases: FloatArray, modes: int,
            ) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return directions and two sides of each, all perpendicular and of unit length, (modes, 3)."""
    # The plastic number: its powers make the two-dimensional lattice of lowest discrepancy.
    plastic = 1.3247179572447460260
    index = np.arange(modes)
    z = 2.0 * np.mod(index / plastic + few[0], 1.0) - 1.0
    azimuth = 2.0 * np.pi * np.mod(index / plastic**2 + few[1], 1.0)
    across = np.sqrt(1.0 - z * z)
    direction = np.stack((across * np.cos(azimuth), across * np.sin(azimuth), z), axis=1)
    first = np.stack((z * np.cos(azimuth), z * np.sin(azimuth), -across), axis=1)
    second = np.stack((-np.sin(azimuth), np.cos(azimuth), np.zeros(modes)), axis=1)
    turn = (2.0 * np.pi * phases)[:, None]
    rotation = _rotation(few[2:5])
    return (direction @ rotation, (np.cos(turn) * first + np.sin(turn) * second) @ rotation,
            (np.cos(turn) * second - np.sin(turn) * first) @ rotation)


def _rotation(uniform: FloatArray) -> FloatArray:
    """Return a uniformly random rotation from three uniform numbers (Shoemake's quaternion)."""
    a, b, c = uniform
    w, x = math.sqrt(1.0 - a) * math.sin(2.0 * math.pi * b), math.sqrt(1.0 - a) * math.cos(
        2.0 * math.pi * b)
    y, z = math.sqrt(a) * math.sin(2.0 * math.pi * c), math.sqrt(a) * math.cos(2.0 * math.pi * c)
    return np.array([
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
        [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
        [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)]])


@dataclass(frozen=True)
class Structure:
    """What theory says of the gusts at two places; each array is of shape (N, 3), for u, v and w.

    Attributes
    ----------
    f, g : ndarray
        Correlations of a component along and across the line between the places, with the
        component's length.
    correlation : ndarray
        Correlation of each component for the direction asked for.
    difference : ndarray
        Root mean square of the difference of each component, m/s.
    """

    f: FloatArray
    g: FloatArray
    correlation: FloatArray
    difference: FloatArray


def structure(distances: npt.ArrayLike, height: float, mean_wind: float,
              axis: str | Sequence[float] | FloatArray = 'along', *, spectrum: str = 'dryden',
              severity: str | float = 'light') -> Structure:
    """Return what theory says of the gusts at two places at the same moment.

    Parameters
    ----------
    distances : array_like, shape (N,)
        Between the places, m.
    height : float
        Above the ground, m: the middle of the two. Their lengths and strengths are taken as equal.
    mean_wind : float
        Horizontal, m/s.
    axis : {'along', 'across', 'up'} or array_like, shape (3,) or (N, 3)
        Direction from one place to the other: along the mean wind, across it, or up; or its
        components along, across (to the right) and up, of any length above 0.
    spectrum, severity : optional
        As for `TurbulenceField`.

    Returns
    -------
    Structure

    Raises
    ------
    ValueError
        Naming what is wrong.

    Examples
    --------
    >>> structure([5.0], 10.0, 8.0, 'across').correlation.round(3)
    array([[0.894, 0.928, 0.455]])
    """
    check_field(spectrum)
    between = np.asarray(distances, dtype=np.float64)
    for name, value in (('distances', between), ('height', np.array(height)),
                        ('mean_wind', np.array(mean_wind))):
        _check_finite(name, value)
    if between.ndim != 1 or (between < 0.0).any():
        raise ValueError('distances must be numbers of m, none negative, shape (N,)')
    if isinstance(axis, str):
        if axis not in _AXES:
            raise ValueError(f'axis is {axis!r}; it must be one of {", ".join(_AXES)}, or a vector')
        line = np.array(_AXES[axis])
    else:
        line = _shaped('axis', axis, (3,), (len(between), 3))
        _check_finite('axis', line)
    norm = np.linalg.norm(line, axis=-1, keepdims=True)
    if not (norm > 0.0).all():
        raise ValueError('axis has no length')
    scales = TurbulenceAloft(severity, spectrum).scales(height, mean_wind)
    lengths = np.array([scales.length, scales.length, scales.length_w])
    sigmas = np.array([scales.sigma, scales.sigma, scales.sigma_w])
    f, g = correlations(between[:, None], lengths, spectrum)
    correlation = g + (f - g) * (line / norm) ** 2
    return Structure(f, g, correlation, sigmas * np.sqrt(np.maximum(2.0 - 2.0 * correlation, 0.0)))


_AXES: Final = {'along': (1.0, 0.0, 0.0), 'across': (0.0, 1.0, 0.0), 'up': (0.0, 0.0, 1.0)}


def check_field(spectrum: str = 'dryden', modes: int = 4096, life: float = 0.5) -> None:
    """Raise `ValueError` (or `TypeError`) if a field cannot be made of these settings."""
    if spectrum not in SPECTRA:
        raise ValueError(f'spectrum is {spectrum!r}; it must be one of {", ".join(SPECTRA)}')
    if isinstance(modes, bool) or not isinstance(modes, (int, np.integer)):
        raise TypeError(f'modes is {modes!r}; it must be a whole number')
    if not 1 <= modes <= MAX_MODES:
        raise ValueError(f'modes is {modes}; it must be from 1 to {MAX_MODES}')
    if not 0.0 <= life <= MAX_LIFE:
        raise ValueError(f'life is {life:g}; it must be from 0 to {MAX_LIFE:g}')


def _shaped(name: str, value: npt.ArrayLike, *shapes: tuple[int, ...]) -> FloatArray:
    """Return numbers as an array of one of the shapes."""
    array = np.asarray(value, dtype=np.float64)
    if array.shape not in shapes:
        allowed = ' or '.join('one number' if shape == () else str(shape) for shape in shapes)
        raise ValueError(f'{name} has the shape {array.shape}; it must be {allowed}')
    return array


def _check_finite(name: str, array: FloatArray) -> None:
    if not np.isfinite(array).all():
        bad = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        where = f'[{", ".join(map(str, bad))}]' if bad else ''
        raise ValueError(f'{name}{where} is {array[bad]}; it must be a finite number')
