r"""The gust model: low-altitude Dryden turbulence of MIL-F-8785C, in first-order form.

Three independent random processes, along the mean wind (u), to its right (v) and up (w), each with
a standard deviation sigma and a scale length L. With the height h in feet, held between 3 m and
1000 ft, and the mean wind W at the vehicle in place of the standard's wind at 20 ft:

    sigma_w = 0.1 W                                        L_w = h
    sigma_u = sigma_w / (0.177 + 0.000823 h)^0.4           L_u = h / (0.177 + 0.000823 h)^1.2
    sigma_v = sigma_u                                      L_v = L_u / 2

Flown through at the speed V = max(airspeed, mean wind, 1 m/s) (frozen turbulence), a length becomes
a time constant tau = L / V. With phi = exp(-dt / tau) and n a standard normal draw, the update

    x <- phi x + sigma sqrt(1 - phi^2) n

has the variance sigma^2 at any step dt (method ``exact``). The older forward Euler update, with
a = dt / tau,

    x <- (1 - a) x + sigma sqrt(2 a) n

is too strong by 1 / sqrt(1 - a / 2) and diverges for a >= 2 (method ``euler``, kept so that runs of
the code it came from can be reproduced number for number).

References
----------
.. [1] MIL-F-8785C, Flying Qualities of Piloted Airplanes, 1980, section 3.7.3.4 (low altitude).
.. [2] Gillespie, Exact numerical simulation of the Ornstein-Uhlenbeck process and its integral,
   Physical Review E 54, 1996 (the exact update).
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FT_PER_M = 1.0 / 0.3048
"""Feet in a metre, as method ``exact`` has it."""

EULER_FT_PER_M = 3.281
"""Feet in a metre in the code that method ``euler`` reproduces; its lengths come back to metres by
0.3048 all the same."""

MIN_HEIGHT_M = 3.0
MAX_HEIGHT_FT = 1000.0
MAX_DT_S = 0.5
"""Longest step, s: a longer gap is stepped as if it were this long."""

MIN_SPEED = 1.0
"""Lowest speed at which the frozen air is flown through, m/s."""

METHODS = ('exact', 'euler')
MAX_SCALE = 5.0
"""Largest factor on the gust that users may ask for."""

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TurbulenceScales:
    """Strengths and lengths of the turbulence at one height.

    Attributes
    ----------
    sigma_u, sigma_v, sigma_w : float
        Standard deviations along the mean wind, to its right and up, m/s.
    length_u, length_v, length_w : float
        Scale lengths, m.
    """

    sigma_u: float
    sigma_v: float
    sigma_w: float
    length_u: float
    length_v: float
    length_w: float


def low_altitude_scales(height: float, mean_wind: float) -> TurbulenceScales:
    """Return the strengths and lengths of MIL-F-8785C's low-altitude turbulence.

    Parameters
    ----------
    height : float
        Height above the ground, m. Held between 3 m and 1000 ft.
    mean_wind : float
        Mean wind, m/s, not negative.

    Returns
    -------
    TurbulenceScales
        Standard deviations in m/s, lengths in m.

    Raises
    ------
    ValueError
        If an argument is not finite, or the mean wind is negative.

    Examples
    --------
    >>> scales = low_altitude_scales(10.0, 8.0)
    >>> round(scales.sigma_u, 3), round(scales.length_u, 2)
    (1.511, 67.37)
    """
    _check(height=height, mean_wind=mean_wind)
    height_ft = min(max(height, MIN_HEIGHT_M) * FT_PER_M, MAX_HEIGHT_FT)
    power = (0.177 + 0.000823 * height_ft) ** 0.4
    sigma_w = 0.1 * mean_wind
    sigma_u = sigma_w / power
    length_u = height_ft / power**3 / FT_PER_M
    return TurbulenceScales(
        sigma_u=sigma_u, sigma_v=sigma_u, sigma_w=sigma_w,
        length_u=length_u, length_v=0.5 * length_u, length_w=height_ft / FT_PER_M)


class DrydenGust:
    """The gust that one vehicle meets, stepped in time.

    Parameters
    ----------
    seed : int or None, optional
        Seed of the random draws; None draws one from the system. Its magnitude counts: Python's
        generator takes -7 for 7.
    method : {'exact', 'euler'}, optional
        The update, see the module.

    Raises
    ------
    TypeError
        If `seed` is neither an integer nor None.
    ValueError
        If `method` is unknown.

    Notes
    -----
    Draws are ``random.Random(seed).gauss(0.0, 1.0)``, one each for u, v and w in that order, per
    step. The same seed therefore meets the same draws.

    Examples
    --------
    >>> gust = DrydenGust(seed=7)
    >>> gust.step(10.05, 8.0, 10.0, 0.0)
    (0.0, 0.0, 0.0)
    >>> [round(x, 3) for x in gust.step(10.10, 8.0, 10.0, 0.0)]
    [-0.042, 0.118, -0.05]
    """

    __slots__ = ('_euler', '_gauss', '_random', '_t', '_u', '_v', '_w', 'method')

    def __init__(self, seed: int | None = None, method: str = 'exact') -> None:
        _check_seed(seed)
        _check_method(method)
        self.method = method
        self._euler = method == 'euler'
        self._random = random.Random(seed)
        self._gauss = self._random.gauss
        self._t: float | None = None
        self._u = self._v = self._w = 0.0

    @property
    def state(self) -> tuple[float, float, float]:
        """Gust (u, v, w) now, m/s."""
        return self._u, self._v, self._w

    def step(self, t: float, mean_wind: float, height: float,
             airspeed: float) -> tuple[float, float, float]:
        """Advance the gust to time `t` and return it.

        The first call, a time that does not advance and a mean wind of 0 return the state unchanged
        and draw nothing.

        Parameters
        ----------
        t : float
            Time, s. A gap of more than 0.5 s is stepped as 0.5 s.
        mean_wind : float
            Mean wind, m/s, not negative.
        height : float
            Height above the ground, m.
        airspeed : float
            Speed of the vehicle relative to the air, m/s.

        Returns
        -------
        u, v, w : float
            Gust along the mean wind, to its right, and up, m/s.

        Raises
        ------
        ValueError
            If an argument is not finite, or the mean wind is negative. The state is unchanged.
        """
        # One sum finds every NaN and infinity in a tenth of the time of four calls.
        if not (t + mean_wind + height + airspeed) * 0.0 == 0.0 or mean_wind < 0.0:
            _check(t=t, mean_wind=mean_wind, height=height, airspeed=airspeed)
        last = self._t
        self._t = t
        if last is None or t <= last or mean_wind == 0.0:
            return self._u, self._v, self._w
        dt = t - last
        if dt > 0.5:
            dt = 0.5
        speed = airspeed if airspeed > mean_wind else mean_wind
        if speed < 1.0:
            speed = 1.0
        if height < 3.0:
            height = 3.0
        sigma_w = 0.1 * mean_wind
        gauss = self._gauss
        if self._euler:
            height_ft = height * 3.281
            if height_ft > 1000.0:
                height_ft = 1000.0
            base = 0.177 + 0.000823 * height_ft
            sigma_u = sigma_w / base**0.4
            a_u = dt * speed / (height_ft / base**1.2 * 0.3048)
            a_v = 2.0 * a_u
            a_w = dt * speed / (height_ft * 0.3048)
            self._u = u = (1.0 - a_u) * self._u + sigma_u * math.sqrt(2.0 * a_u) * gauss(0.0, 1.0)
            self._v = v = (1.0 - a_v) * self._v + sigma_u * math.sqrt(2.0 * a_v) * gauss(0.0, 1.0)
            self._w = w = (1.0 - a_w) * self._w + sigma_w * math.sqrt(2.0 * a_w) * gauss(0.0, 1.0)
            return u, v, w
        if height > 304.8:
            height = 304.8
        power = (0.177 + 0.000823 / 0.3048 * height) ** 0.4
        sigma_u = sigma_w / power
        a_w = dt * speed / height
        phi_u = math.exp(-a_w * power * power * power)
        phi_v = phi_u * phi_u  # L_v is half of L_u
        phi_w = math.exp(-a_w)
        self._u = u = phi_u * self._u + sigma_u * math.sqrt(1.0 - phi_v) * gauss(0.0, 1.0)
        self._v = v = (phi_v * self._v
                       + sigma_u * math.sqrt(1.0 - phi_v * phi_v) * gauss(0.0, 1.0))
        self._w = w = (phi_w * self._w
                       + sigma_w * math.sqrt(1.0 - phi_w * phi_w) * gauss(0.0, 1.0))
        return u, v, w

    def skip(self, steps: int) -> None:
        """Use up the draws of a number of steps without taking them.

        Parameters
        ----------
        steps : int
            Number of (u, v, w) triples to pass over. A million takes about 20 ms.

        Raises
        ------
        ValueError
            If `steps` is negative.
        """
        if steps < 0:
            raise ValueError(f'steps is {steps}; it must not be negative')
        draws = 3 * steps
        # gauss() makes two draws of one pair of uniform numbers and keeps the second.
        if draws and getattr(self._random, 'gauss_next', None) is not None:
            self._gauss(0.0, 1.0)
            draws -= 1
        words = 4 * (draws // 2)  # each uniform number takes two 32-bit words of the generator
        while words > 0:
            block = min(words, 1 << 20)
            self._random.getrandbits(32 * block)
            words -= block
        if draws % 2:
            self._gauss(0.0, 1.0)


class DrydenGustFleet:
    """The gusts that many vehicles meet, stepped together.

    Row i equals what ``DrydenGust(seeds[i], method)`` returns for the same calls, to rounding.

    Parameters
    ----------
    seeds : sequence of int
        One seed a vehicle.
    method : {'exact', 'euler'}, optional
        The update, see the module.

    Raises
    ------
    TypeError
        If a seed is not an integer.
    ValueError
        If there are no seeds, or `method` is unknown.

    Notes
    -----
    The draws are those of ``random.Random(seed).gauss``: NumPy's Mersenne Twister is given the state
    of Python's, and the Box-Muller transform of CPython is applied to blocks of its numbers.

    Examples
    --------
    >>> fleet = DrydenGustFleet([7, 8])
    >>> fleet.step(10.05, 8.0, 10.0, 0.0).shape
    (2, 3)
    """

    def __init__(self, seeds: Sequence[int], method: str = 'exact') -> None:
        seeds = list(seeds)
        if not seeds:
            raise ValueError('seeds is empty; a fleet needs at least one seed')
        for seed in seeds:
            if seed is None:
                raise TypeError('seed is None; a fleet needs an integer for every vehicle')
            _check_seed(seed)
        _check_method(method)
        self.method = method
        self._draws = _NormalBlocks(seeds)
        self._t: FloatArray = np.full(len(seeds), np.nan)
        self._state: FloatArray = np.zeros((3, len(seeds)))

    def __len__(self) -> int:
        return int(self._state.shape[1])

    @property
    def state(self) -> FloatArray:
        """Gust now, m/s, shape (N, 3): a copy."""
        return self._state.T.copy()

    def step(self, t: npt.ArrayLike, mean_wind: npt.ArrayLike, height: npt.ArrayLike,
             airspeed: npt.ArrayLike) -> FloatArray:
        """Advance every vehicle's gust and return them.

        Parameters
        ----------
        t : float or array_like, shape (N,)
            Time, s; each vehicle may have its own clock.
        mean_wind, height, airspeed : float or array_like, shape (N,)
            As for `DrydenGust.step`, m/s, m, m/s.

        Returns
        -------
        ndarray, shape (N, 3)
            Gust (u, v, w) of each vehicle, m/s.

        Raises
        ------
        ValueError
            If an argument is not finite, has another shape, or a mean wind is negative. The state
            is unchanged.
        """
        n = len(self)
        now = _column('t', t, n)
        wind = _column('mean_wind', mean_wind, n)
        height_m = _column('height', height, n)
        speed = np.maximum(np.maximum(_column('airspeed', airspeed, n), wind), MIN_SPEED)
        if wind.min() < 0.0:
            raise ValueError(f'mean_wind is {wind.min()} m/s; it must not be negative')
        dt = now - self._t  # NaN at the first call, which compares false below
        self._t = now.copy()
        moves = (dt > 0.0) & (wind > 0.0)
        if moves.all():
            self._state = self._updated(self._state, np.minimum(dt, MAX_DT_S), wind, height_m,
                                        speed, self._draws.take())
        elif moves.any():
            self._state[:, moves] = self._updated(
                self._state[:, moves], np.minimum(dt[moves], MAX_DT_S), wind[moves],
                height_m[moves], speed[moves], self._draws.take_of(moves))
        return self._state.T.copy()

    def _updated(self, state: FloatArray, dt: FloatArray, wind: FloatArray, height: FloatArray,
                 speed: FloatArray, draws: FloatArray) -> FloatArray:
        """Return the states (3, N) one step later."""
        height = np.maximum(height, MIN_HEIGHT_M)
        sigma_w = 0.1 * wind
        gain = np.empty_like(state)
        if self.method == 'euler':
            height_ft = np.minimum(height * EULER_FT_PER_M, MAX_HEIGHT_FT)
            base = 0.177 + 0.000823 * height_ft
            sigma_u = sigma_w / base**0.4
            rate = dt * speed / (height_ft * 0.3048)
            decay = np.stack((rate * base**1.2, 2.0 * rate * base**1.2, rate))
            np.sqrt(2.0 * decay, out=gain)
            np.subtract(1.0, decay, out=decay)
        else:
            height = np.minimum(height, MAX_HEIGHT_FT / FT_PER_M)
            power = np.exp(0.4 * np.log(0.177 + 0.000823 * FT_PER_M * height))
            sigma_u = sigma_w / power
            decay = np.empty_like(state)
            rate = dt * speed / -height
            np.exp(rate * power * power * power, out=decay[0])
            np.multiply(decay[0], decay[0], out=decay[1])
            np.exp(rate, out=decay[2])
            np.multiply(decay, decay, out=gain)
            np.subtract(1.0, gain, out=gain)
            np.sqrt(gain, out=gain)
        gain[:2] *= sigma_u
        gain[2] *= sigma_w
        gain *= draws
        decay *= state
        decay += gain
        return decay


class _NormalBlocks:
    """The draws of ``random.Random(seed).gauss(0, 1)`` for many seeds, made in blocks."""

    STEPS = 128  # even, so that a block holds whole pairs
    CHUNK = 16  # vehicles transformed together: small enough for the cache

    def __init__(self, seeds: Sequence[int]) -> None:
        n = len(seeds)
        self._generators = [_numpy_twister(int(seed)) for seed in seeds]
        self._normals: FloatArray = np.empty((3 * self.STEPS, n))
        self._next: npt.NDArray[np.int64] = np.full(n, self.STEPS)
        self._in_step = True  # every vehicle has taken equally many

    def take(self) -> FloatArray:
        """Return the next triple of every vehicle, shape (3, N)."""
        if not self._in_step:
            return self.take_of(np.ones(len(self._generators), dtype=bool))
        step = int(self._next[0])
        if step == self.STEPS:
            self._fill(np.arange(len(self._generators)))
            step = 0
        self._next[:] = step + 1
        return self._normals[3 * step:3 * step + 3]

    def take_of(self, chosen: npt.NDArray[np.bool_]) -> FloatArray:
        """Return the next triple of the chosen vehicles, shape (3, number chosen)."""
        self._in_step = False
        rows = np.flatnonzero(chosen)
        used_up = rows[self._next[rows] == self.STEPS]
        if used_up.size:
            self._fill(used_up)
        step = self._next[rows]
        self._next[rows] = step + 1
        self._in_step = bool((self._next == self._next[0]).all())
        return self._normals[3 * step + np.arange(3)[:, None], rows]

    def _fill(self, rows: npt.NDArray[np.int64]) -> None:
        uniform = np.empty((self.CHUNK, 3 * self.STEPS))
        for start in range(0, rows.size, self.CHUNK):
            chunk = rows[start:start + self.CHUNK]
            for line, row in zip(uniform, chunk, strict=False):
                self._generators[row].random(out=line)
            # CPython's gauss(): angle from the first number of a pair, radius from the second;
            # the cosine is returned first and the sine is kept for the next call.
            used = uniform[:chunk.size]
            angle = used[:, 0::2] * (2.0 * math.pi)
            radius = np.sqrt(-2.0 * np.log(1.0 - used[:, 1::2]))
            self._normals[0::2, chunk] = (np.cos(angle) * radius).T
            self._normals[1::2, chunk] = (np.sin(angle) * radius).T
        self._next[rows] = 0


def _numpy_twister(seed: int) -> np.random.Generator:
    """Return NumPy's Mersenne Twister in the state of ``random.Random(seed)``."""
    state = random.Random(seed).getstate()[1]
    twister = np.random.MT19937()
    twister.state = {
        'bit_generator': 'MT19937',
        'state': {'key': np.array(state[:-1], dtype=np.uint32), 'pos': state[-1]}}
    return np.random.Generator(twister)


def _column(name: str, value: npt.ArrayLike, n: int) -> FloatArray:
    array = np.asarray(value, dtype=np.float64)
    if array.ndim == 0:
        array = np.full(n, float(array))
    elif array.shape != (n,):
        raise ValueError(f'{name} has the shape {array.shape}; it must be one number or ({n},)')
    if not np.isfinite(array).all():
        bad = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f'{name}[{bad}] is {array[bad]}; it must be a finite number')
    return array


def _check(**values: float) -> None:
    for name, value in values.items():
        if not math.isfinite(value):
            raise ValueError(f'{name} is {value}; it must be a finite number')
        if name == 'mean_wind' and value < 0.0:
            raise ValueError(f'mean_wind is {value} m/s; it must not be negative')


def _check_seed(seed: object) -> None:
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, (int, np.integer))):
        raise TypeError(f'seed is {seed!r}; it must be an integer')


def _check_method(method: str) -> None:
    if method not in METHODS:
        raise ValueError(f'method is {method!r}; it must be one of {", ".join(METHODS)}')
