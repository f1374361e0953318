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
from math import exp, expm1, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from dryden_wind_ros.gusts.draws import NormalBlocks, skip_draws
from dryden_wind_ros.gusts.inputs import (
    FloatFunctions,
    check_numbers,
    check_seed,
    lowest,
    number_or_row,
)

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
_Factors = tuple[tuple[Any, Any], tuple[Any, Any], tuple[Any, Any]]


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
    check_numbers(height=height, mean_wind=mean_wind)
    height_ft = min(max(height, MIN_HEIGHT_M) * FT_PER_M, MAX_HEIGHT_FT)
    power = (0.177 + 0.000823 * height_ft) ** 0.4
    sigma_w = 0.1 * mean_wind
    sigma_u = sigma_w / power
    length_u = height_ft / power**3 / FT_PER_M
    return TurbulenceScales(
        sigma_u=sigma_u, sigma_v=sigma_u, sigma_w=sigma_w,
        length_u=length_u, length_v=0.5 * length_u, length_w=height_ft / FT_PER_M)


DRAWN_TOGETHER = 64
"""Triples of draws that a `DrydenGust` makes at once: one at a time they cost twice as much."""


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

    __slots__ = ('_ahead', '_euler', '_gauss', '_random', '_t', '_u', '_v', '_w', 'method')

    def __init__(self, seed: int | None = None, method: str = 'exact') -> None:
        check_seed(seed)
        _check_method(method)
        self.method = method
        self._euler = method == 'euler'
        self._random = random.Random(seed)
        self._gauss = self._random.gauss
        self._ahead: list[tuple[float, float, float]] = []  # the next last
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
        if (t + mean_wind + height + airspeed) * 0.0 != 0.0 or mean_wind < 0.0:
            check_numbers(t=t, mean_wind=mean_wind, height=height, airspeed=airspeed)
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
        draw_u, draw_v, draw_w = (self._ahead or self._drawn()).pop()
        if self._euler:
            height_ft = height * 3.281
            if height_ft > 1000.0:
                height_ft = 1000.0
            base = 0.177 + 0.000823 * height_ft
            sigma_u = sigma_w / base**0.4
            a_u = dt * speed / (height_ft / base**1.2 * 0.3048)
            a_v = 2.0 * a_u
            a_w = dt * speed / (height_ft * 0.3048)
            self._u = u = (1.0 - a_u) * self._u + sigma_u * sqrt(2.0 * a_u) * draw_u
            self._v = v = (1.0 - a_v) * self._v + sigma_u * sqrt(2.0 * a_v) * draw_v
            self._w = w = (1.0 - a_w) * self._w + sigma_w * sqrt(2.0 * a_w) * draw_w
            return u, v, w
        if height > 304.8:
            height = 304.8
        power = (0.177 + 0.000823 / 0.3048 * height) ** 0.4
        sigma_u = sigma_w / power
        a_w = dt * speed / height
        a_u = a_w * power * power * power
        phi_u = exp(-a_u)
        # phi^2 - 1, of which the digits of 1 - phi * phi would be lost at small steps
        lost_u, lost_w = expm1(-2.0 * a_u), expm1(-2.0 * a_w)
        self._u = u = phi_u * self._u + sigma_u * sqrt(-lost_u) * draw_u
        # L_v is half of L_u: phi_v is phi_u^2
        self._v = v = (phi_u * phi_u * self._v
                       + sigma_u * sqrt(-lost_u * (2.0 + lost_u)) * draw_v)
        self._w = w = exp(-a_w) * self._w + sigma_w * sqrt(-lost_w) * draw_w
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
        if steps > 0 and self._ahead:
            drawn = min(steps, len(self._ahead))
            del self._ahead[-drawn:]
            steps -= drawn
        skip_draws(self._random, 3 * steps)

    def _drawn(self) -> list[tuple[float, float, float]]:
        """Draw the next triples of u, v and w."""
        gauss = self._gauss
        self._ahead = [(gauss(0.0, 1.0), gauss(0.0, 1.0), gauss(0.0, 1.0))
                       for _ in range(DRAWN_TOGETHER)]
        self._ahead.reverse()
        return self._ahead


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
    The draws are those of ``random.Random(seed).gauss``: NumPy's Mersenne Twister is given the
    state of Python's, and the Box-Muller transform of CPython is applied to blocks of its numbers.

    A fleet is for one thread at a time. One number for `t`, and for the other inputs, is faster
    than an array of equal numbers.

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
            check_seed(seed)
        _check_method(method)
        self.method = method
        self._factors = _euler_factors if method == 'euler' else _exact_factors
        self._draws = NormalBlocks(seeds)
        self._t: float | FloatArray = math.nan
        self._state: FloatArray = np.zeros((3, len(seeds)))

    def __len__(self) -> int:
        return int(self._state.shape[1])

    @property
    def state(self) -> FloatArray:
        """Gust now, m/s, shape (N, 3): a copy."""
        result: FloatArray = self._state.copy().T
        return result

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
        now = number_or_row('t', t, n)
        wind = number_or_row('mean_wind', mean_wind, n)
        height = number_or_row('height', height, n)
        airspeed = number_or_row('airspeed', airspeed, n)
        lowest_wind = lowest(wind)
        if lowest_wind < 0.0:
            raise ValueError(f'mean_wind is {lowest_wind} m/s; it must not be negative')
        dt = now - self._t  # NaN at the first call, which compares false below
        self._t = now if isinstance(now, float) else now.copy()
        if lowest_wind > 0.0 and lowest(dt) > 0.0:
            floats = (isinstance(dt, float) and isinstance(wind, float)
                      and isinstance(height, float) and isinstance(airspeed, float))
            fn = FloatFunctions if floats else np
            _advance(self._state, self._factors(fn, dt, wind, height, airspeed), self._draws.take())
        else:
            self._step_some(dt, wind, height, airspeed)
        result: FloatArray = self._state.copy().T
        return result

    def _step_some(self, dt: float | FloatArray, wind: float | FloatArray,
                   height: float | FloatArray, airspeed: float | FloatArray) -> None:
        """Advance the vehicles whose time advances and whose wind blows."""
        inputs = np.array(np.broadcast_arrays(self._state[0], dt, wind, height, airspeed)[1:])
        moves = np.flatnonzero((inputs[0] > 0.0) & (inputs[1] > 0.0))
        if moves.size:
            state = self._state[:, moves]
            _advance(state, self._factors(np, *inputs[:, moves]), self._draws.take_of(moves))
            self._state[:, moves] = state


def _advance(state: FloatArray, factors: _Factors, draws: FloatArray) -> None:
    """Advance states (3, N) by one step; `draws` are used up."""
    for x, n, (decay, gain) in zip(state, draws, factors, strict=True):
        x *= decay
        n *= gain
        x += n


def _exact_factors(fn: Any, dt: Any, wind: Any, height: Any, airspeed: Any) -> _Factors:
    """Return what u, v, w and their draws are multiplied by: floats or rows, as the inputs are."""
    dt = fn.minimum(dt, MAX_DT_S)
    speed = fn.maximum(fn.maximum(airspeed, wind), MIN_SPEED)
    height = fn.minimum(fn.maximum(height, MIN_HEIGHT_M), MAX_HEIGHT_FT / FT_PER_M)
    # exp(0.4 log) takes half the time of NumPy's power.
    power = fn.exp(0.4 * fn.log(0.177 + 0.000823 * FT_PER_M * height))
    sigma_w = 0.1 * wind
    sigma_u = sigma_w / power
    a_w = dt * speed / height
    a_u = a_w * power * power * power
    phi_u = fn.exp(-a_u)
    # As in DrydenGust.step
    lost_u, lost_w = fn.expm1(-2.0 * a_u), fn.expm1(-2.0 * a_w)
    return ((phi_u, sigma_u * fn.sqrt(-lost_u)),
            (phi_u * phi_u, sigma_u * fn.sqrt(-lost_u * (2.0 + lost_u))),
            (fn.exp(-a_w), sigma_w * fn.sqrt(-lost_w)))


def _euler_factors(fn: Any, dt: Any, wind: Any, height: Any, airspeed: Any) -> _Factors:
    """Return what u, v, w and their draws are multiplied by: floats or rows, as the inputs are."""
    dt = fn.minimum(dt, MAX_DT_S)
    speed = fn.maximum(fn.maximum(airspeed, wind), MIN_SPEED)
    height_ft = fn.minimum(fn.maximum(height, MIN_HEIGHT_M) * EULER_FT_PER_M, MAX_HEIGHT_FT)
    power = fn.exp(0.4 * fn.log(0.177 + 0.000823 * height_ft))
    sigma_w = 0.1 * wind
    sigma_u = sigma_w / power
    a_w = dt * speed / (height_ft * 0.3048)
    a_u = a_w * power * power * power
    a_v = 2.0 * a_u
    return ((1.0 - a_u, sigma_u * fn.sqrt(2.0 * a_u)),
            (1.0 - a_v, sigma_u * fn.sqrt(2.0 * a_v)),
            (1.0 - a_w, sigma_w * fn.sqrt(2.0 * a_w)))


def _check_method(method: str) -> None:
    if method not in METHODS:
        raise ValueError(f'method is {method!r}; it must be one of {", ".join(METHODS)}')
