r"""The standards' own turbulence: MIL-F-8785C and MIL-HDBK-1797B, second order, exact at any step.

At the speed V a length is a time tau = L / V. The gust along the wind is a first-order process, the
two across it are white noise through

    H(s) ~ (1 + sqrt3 tau s) / (1 + tau s)^2

With the state (a, b) of unit noise, theta = dt / tau and y = sigma (sqrt3 a + (1 - sqrt3) b):

    (a, b) <- exp(-theta) [[1, 0], [theta, 1]] (a, b) + N(0, Q)
    Q11 = (1 - e^(-2 theta)) / 2
    Q12 = (1 - e^(-2 theta) (1 + 2 theta)) / 4
    Q22 = (1 - e^(-2 theta) (1 + 2 theta + 2 theta^2)) / 4

The variance is sigma^2 and the autocorrelation e^-x (1 - x/2), x = lag / tau, at any step.

MIL-HDBK-1797B has half the lengths for v and w and spectra with twice the length in them: the air
is the same, number for number. `standard` therefore only says which lengths are reported.

Rates, with the wing span b and T = 4 b / (pi V): roll p is a first-order process of its own with
the time constant T and Phi_p = sigma_w^2 / (V L_w) 0.8 (pi L_w / (4 b))^(1/3) / (1 + (T omega)^2);
pitch q is the gust w through (s / V) / (1 + T s), yaw r the gust v through (s / V) / (1 + 3/4 T s),
each in one exact step with its gust. They are the rates at which the air turns about x forward, y
right and z down, where the vehicle flies along u: p = -dw/dy, q = dw/dx, r = dv/dx, with w up.

Draws are ``random.Random(seed).gauss(0.0, 1.0)``, five a step: one for u, two for v, two for w.
Rates take draws of their own, ``random.Random(abs(seed) + 2**64)``, three a step, for p, q and r: a
span changes nothing in the gusts. The first step is one through endless air, from nothing: what it
leaves is the stationary state, so that the gust blows in full from the first tick.

References
----------
.. [1] MIL-F-8785C, Flying Qualities of Piloted Airplanes, 1980, section 3.7.
.. [2] MIL-HDBK-1797B, Flying Qualities of Piloted Aircraft, 2006, appendix A.
.. [3] Van Loan, Computing integrals involving the matrix exponential, IEEE Transactions on
   Automatic Control 23, 1978 (what Q is the closed form of).
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from math import exp, expm1, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from dryden_wind_ros.gusts.draws import NormalBlocks, skip_draws
from dryden_wind_ros.gusts.dryden import FT_PER_M, MAX_DT_S, MIN_HEIGHT_M, MIN_SPEED
from dryden_wind_ros.gusts.inputs import (
    FloatFunctions,
    check_numbers,
    check_seed,
    lowest,
    number_or_row,
)
from dryden_wind_ros.gusts.scales import (
    LOW_M,
    SEVERITIES,
    STANDARDS,
    AirScales,
    TurbulenceAloft,
    check_standard,
    turbulence_scales,
)

__all__ = ['MAX_SPAN', 'SEVERITIES', 'STANDARDS', 'StandardGust', 'StandardGustFleet',
           'check_span', 'turbulence_scales']

MAX_SPAN = 100.0
"""Largest wing span, m."""

DRAWS = 5
"""Normal draws of the seed's stream that a step takes."""

_RATE_DRAWS = 3
_RATE_SEED = 2**64
_SQRT3 = math.sqrt(3.0)
_REST = 1.0 - _SQRT3
_SQRT2 = math.sqrt(2.0)
_POWER_PER_M = 0.000823 * FT_PER_M
_ENDLESS = 1e9  # m: more of any length than exp() tells from infinite

FloatArray = npt.NDArray[np.float64]


def _second_order(fn: Any, theta: Any) -> tuple[Any, Any, Any, Any]:
    """Return exp(-theta), and what the two draws are multiplied by: the Cholesky factor of Q."""
    decay = fn.exp(-theta)
    square = decay * decay
    g11 = fn.sqrt(-0.5 * fn.expm1(-2.0 * theta))
    g21 = 0.25 * (1.0 - square * (1.0 + 2.0 * theta)) / (g11 + 1e-300)
    q22 = 0.25 * (1.0 - square * (1.0 + 2.0 * theta * (1.0 + theta)))
    return decay, g11, g21, fn.sqrt(fn.maximum(q22 - g21 * g21, 0.0))


def _second_order_float(theta: float) -> tuple[float, float, float, float]:
    """Return what `_second_order` does, for one number, in half the time."""
    decay = exp(-theta)
    square = decay * decay
    twice = theta + theta
    g11 = sqrt(-0.5 * expm1(-twice))
    g21 = 0.25 * (1.0 - square * (1.0 + twice)) / (g11 + 1e-300)
    q22 = 0.25 * (1.0 - square * (1.0 + twice * (1.0 + theta))) - g21 * g21
    return decay, g11, g21, sqrt(q22) if q22 > 0.0 else 0.0


def _follower(fn: Any, theta: Any, rho: Any) -> tuple[Any, ...]:
    """Return how x follows y = sqrt3 a + (1 - sqrt3) b with the rate `rho`, in the time tau.

    x <- keep x + from_a a + from_b b + the draws of a and b times g31 and g32 + a draw times g33.
    The response of x to a unit of noise is h = alpha (e^-s - e^(-rho s)) + beta s e^-s; the
    covariances are the integrals of products of h, e^-s and s e^-s.
    """
    delta = rho - 1.0
    # Both rates are one there, and the terms below cancel; 0.5 % off is not.
    delta = fn.where(abs(delta) < 0.005, 0.005, delta)
    rho = 1.0 + delta
    decay, g11, g21, g22 = _second_order(fn, theta)
    keep = fn.exp(-rho * theta)
    beta = rho * _REST / delta
    alpha = rho * _SQRT3 / delta - beta / delta
    square, mixed, sum_ = decay * decay, decay * keep, 2.0 + delta
    i0 = -0.5 * fn.expm1(-2.0 * theta)
    i1 = 0.25 * (1.0 - square * (1.0 + 2.0 * theta))
    i2 = 0.25 * (1.0 - square * (1.0 + 2.0 * theta * (1.0 + theta)))
    m0 = -fn.expm1(-sum_ * theta) / sum_
    m1 = (1.0 - mixed * (1.0 + sum_ * theta)) / (sum_ * sum_)
    k0 = -0.5 * fn.expm1(-2.0 * rho * theta) / rho
    g31 = (alpha * (i0 - m0) + beta * i1) / (g11 + 1e-300)
    g32 = fn.where(g22 > 1e-7, (alpha * (i1 - m1) + beta * i2 - g31 * g21) / (g22 + 1e-300), 0.0)
    variance = (alpha * alpha * (i0 - 2.0 * m0 + k0) + 2.0 * alpha * beta * (i1 - m1)
                + beta * beta * i2)
    g33 = fn.sqrt(fn.maximum(variance - g31 * g31 - g32 * g32, 0.0))
    return (keep, alpha * (decay - keep) + beta * theta * decay, beta * (decay - keep),
            g31, g32, g33)


class _Turning:
    """The rates of one gust or of many, as floats or rows; without their draws.

    Parameters
    ----------
    fn : FloatFunctions or numpy
    span : float
        m, above 0.
    state : sequence
        p, and what follows v and w slowly; all without sigma.
    """

    __slots__ = ('_fn', '_p', '_span', '_v', '_w')

    def __init__(self, fn: Any, span: float, state: Any = (0.0, 0.0, 0.0)) -> None:
        self._fn, self._span = fn, span
        self._p, self._v, self._w = state

    @property
    def state(self) -> tuple[Any, Any, Any]:
        """What to go on from."""
        return self._p, self._v, self._w

    def advance(self, path: Any, lengths: tuple[Any, Any], v: tuple[Any, ...], w: tuple[Any, ...],
                draws: Any) -> None:
        """Advance by a length of air, together with the gust.

        Parameters
        ----------
        path : float or ndarray
            m.
        lengths : tuple
            Of v and w, m.
        v, w : tuple
            State before (a, b), and the two draws.
        draws : sequence
            Three: for p, q and r.
        """
        quarter = 0.25 * math.pi / self._span
        keep = self._fn.exp(-quarter * path)
        self._p = keep * self._p + self._fn.sqrt(1.0 - keep * keep) * draws[0]
        self._w = self._follow(path / lengths[1], quarter * lengths[1], self._w, w, draws[1])
        self._v = self._follow(path / lengths[0], 4.0 / 3.0 * quarter * lengths[0], self._v, v,
                               draws[2])

    def _follow(self, theta: Any, rho: Any, x: Any, gust: tuple[Any, ...], draw: Any) -> Any:
        a, b, first, second = gust
        keep, from_a, from_b, g31, g32, g33 = _follower(self._fn, theta, rho)
        return keep * x + from_a * a + from_b * b + g31 * first + g32 * second + g33 * draw

    def rates(self, scales: AirScales, v: Any, w: Any) -> tuple[Any, Any, Any]:
        """Return (p, q, r), rad/s, beside a gust (m/s) that has these scales."""
        quarter = 0.25 * math.pi / self._span
        # sigma_p^2 is the integral of the spectrum; x^(1/3) as exp, which floats and rows have.
        third = self._fn.exp(self._fn.log(quarter * scales.length_w) / 3.0)
        sigma_p = scales.sigma_w * self._fn.sqrt(
            0.8 * third * 0.5 * math.pi * quarter / scales.length_w)
        return (sigma_p * self._p, quarter * (w - scales.sigma_w * self._w),
                4.0 / 3.0 * quarter * (v - scales.sigma * self._v))


class StandardGust:
    """The standards' gust that one vehicle meets, stepped in time.

    Parameters
    ----------
    seed : int or None, optional
        Seed of the random draws; None draws one from the system. Its magnitude counts.
    standard : {'MIL-F-8785C', 'MIL-HDBK-1797B'}, optional
        The gusts are the same; see the module.
    severity : str or float, optional
        Strength above 1000 ft, see `turbulence_scales`.
    span : float, optional
        Wing span, m, to 100; 0 for no rates.

    Raises
    ------
    TypeError
        If `seed` is neither an integer nor None.
    ValueError
        Naming what is wrong, its value and what is allowed.

    Examples
    --------
    >>> gust = StandardGust(seed=7)
    >>> [round(x, 3) for x in gust.step(10.05, 8.0, 10.0, 0.0)]
    [0.0, 0.0, 0.0]
    >>> [round(x, 3) for x in gust.step(10.10, 8.0, 10.0, 0.0)]
    [0.0, 0.0, 0.0]
    """

    __slots__ = ('_aloft', '_gauss', '_gust', '_random', '_rate_gauss', '_rate_random', '_rates',
                 '_started', '_t', '_turning', '_u', '_va', '_vb', '_wa', '_wb', 'span', 'standard')

    def __init__(self, seed: int | None = None, standard: str = 'MIL-F-8785C',
                 severity: str | float = 'light', span: float = 0.0) -> None:
        check_seed(seed)
        check_standard(standard)
        check_span(span)
        self.standard = standard
        self.span = span
        self._aloft = TurbulenceAloft(severity)
        self._random = random.Random(seed)
        self._gauss = self._random.gauss
        self._turning: _Turning | None = None
        self._rate_gauss = self._gauss
        self._rate_random: random.Random | None = None
        if span > 0.0:
            self._turning = _Turning(FloatFunctions, span)
            self._rate_random = random.Random(None if seed is None else abs(seed) + _RATE_SEED)
            self._rate_gauss = self._rate_random.gauss
        self._t: float | None = None
        self._started = False
        self._u = self._va = self._vb = self._wa = self._wb = 0.0  # without sigma
        self._gust = 0.0, 0.0, 0.0
        self._rates = 0.0, 0.0, 0.0

    @property
    def state(self) -> tuple[float, float, float]:
        """Gust (u, v, w) now, m/s."""
        return self._gust

    @property
    def rates(self) -> tuple[float, float, float]:
        """Rates (p, q, r) of the gust now, rad/s; zeros without a span."""
        return self._rates

    def step(self, t: float, mean_wind: float, height: float,
             airspeed: float) -> tuple[float, float, float]:
        """Advance the gust to time `t` and return it.

        The first call returns the gust of the start: turbulence in full. A time that does not
        advance returns the gust unchanged and draws nothing; so does a mean wind of 0 below 1000
        ft, where nothing would blow.

        Parameters
        ----------
        t : float
            Time, s. A gap of more than 0.5 s is stepped as 0.5 s.
        mean_wind : float
            Wind at 20 ft, m/s, not negative.
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
        if (last is not None and t <= last) or (mean_wind == 0.0 and height <= LOW_M):
            return self._gust
        if height <= LOW_M:
            # TurbulenceAloft.scales below 1000 ft: the call would take a tenth of the time of all.
            if height < MIN_HEIGHT_M:
                height = MIN_HEIGHT_M
            power = (0.177 + _POWER_PER_M * height) ** 0.4
            sigma_w = 0.1 * mean_wind
            sigma, length, length_w = sigma_w / power, height / (power * power * power), height
        else:
            sigma, sigma_w, length, length_w = self._aloft.scales(height, mean_wind)
        if self._started and last is not None:
            dt = t - last
            if dt > MAX_DT_S:
                dt = MAX_DT_S
            speed = airspeed if airspeed > mean_wind else mean_wind
            self._advance(dt * (speed if speed > MIN_SPEED else MIN_SPEED), length, length_w)
        else:
            self._started = True
            self._advance(_ENDLESS, length, length_w)
        v = sigma * (_SQRT3 * self._va + _REST * self._vb)
        w = sigma_w * (_SQRT3 * self._wa + _REST * self._wb)
        self._gust = sigma * self._u, v, w
        if self._turning is not None:
            self._rates = self._turning.rates(AirScales(sigma, sigma_w, length, length_w), v, w)
        return self._gust

    def skip(self, steps: int) -> None:
        """Use up the draws of a number of steps without taking them, as `DrydenGust.skip` does.

        Parameters
        ----------
        steps : int
            Number of steps to pass over.

        Raises
        ------
        ValueError
            If `steps` is negative.
        """
        if steps < 0:
            raise ValueError(f'steps is {steps}; it must not be negative')
        skip_draws(self._random, DRAWS * steps)
        if self._rate_random is not None:
            skip_draws(self._rate_random, _RATE_DRAWS * steps)

    def _advance(self, path: float, length: float, length_w: float) -> None:
        """Advance by a length of air flown through, m."""
        gauss, turning = self._gauss, self._turning
        va, vb, wa, wb = self._va, self._vb, self._wa, self._wb
        theta = path / length
        decay, g11, g21, g22 = _second_order_float(theta)
        self._u = decay * self._u + _SQRT2 * g11 * gauss(0.0, 1.0)
        v1, v2 = gauss(0.0, 1.0), gauss(0.0, 1.0)
        self._va = decay * va + g11 * v1
        self._vb = decay * (vb + theta * va) + g21 * v1 + g22 * v2
        theta = path / length_w
        decay, g11, g21, g22 = _second_order_float(theta)
        w1, w2 = gauss(0.0, 1.0), gauss(0.0, 1.0)
        self._wa = decay * wa + g11 * w1
        self._wb = decay * (wb + theta * wa) + g21 * w1 + g22 * w2
        if turning is not None:
            draws = [self._rate_gauss(0.0, 1.0) for _ in range(_RATE_DRAWS)]
            turning.advance(path, (length, length_w), (va, vb, v1, v2), (wa, wb, w1, w2), draws)


class StandardGustFleet:
    """The standards' gusts that many vehicles meet, stepped together.

    Row i equals what ``StandardGust(seeds[i], ...)`` returns for the same calls, to rounding.

    Parameters
    ----------
    seeds : sequence of int
        One a vehicle.
    standard, severity, span : optional
        As for `StandardGust`; the same for all.

    Raises
    ------
    TypeError
        If a seed is not an integer.
    ValueError
        If there are no seeds, or as for `StandardGust`.

    Examples
    --------
    >>> fleet = StandardGustFleet([7, 8])
    >>> fleet.step(10.05, 8.0, 10.0, 0.0).shape
    (2, 3)
    """

    def __init__(self, seeds: Sequence[int], standard: str = 'MIL-F-8785C',
                 severity: str | float = 'light', span: float = 0.0) -> None:
        seeds = list(seeds)
        if not seeds:
            raise ValueError('seeds is empty; a fleet needs at least one seed')
        for seed in seeds:
            if seed is None:
                raise TypeError('seed is None; a fleet needs an integer for every vehicle')
            check_seed(seed)
        check_standard(standard)
        check_span(span)
        self.standard = standard
        self.span = span
        n = len(seeds)
        self._aloft = TurbulenceAloft(severity)
        self._draws = NormalBlocks(seeds, DRAWS)
        self._rate_draws = NormalBlocks(
            [abs(int(seed)) + _RATE_SEED for seed in seeds], _RATE_DRAWS) if span > 0.0 else None
        self._t: float | FloatArray = -math.inf
        self._started = np.zeros(n, dtype=bool)
        self._state: FloatArray = np.zeros((5, n))  # u, (a, b) of v, (a, b) of w; without sigma
        self._turning: FloatArray = np.zeros((3, n))
        self._gust: FloatArray = np.zeros((n, 3))
        self._rates: FloatArray = np.zeros((n, 3))

    def __len__(self) -> int:
        return len(self._gust)

    @property
    def state(self) -> FloatArray:
        """Gust now, m/s, shape (N, 3): a copy."""
        return self._gust.copy()

    @property
    def rates(self) -> FloatArray:
        """Rates (p, q, r) of the gust now, rad/s, shape (N, 3): a copy; zeros without a span."""
        return self._rates.copy()

    def step(self, t: npt.ArrayLike, mean_wind: npt.ArrayLike, height: npt.ArrayLike,
             airspeed: npt.ArrayLike) -> FloatArray:
        """Advance every vehicle's gust and return them.

        Parameters
        ----------
        t : float or array_like, shape (N,)
            Time, s; each vehicle may have its own clock.
        mean_wind, height, airspeed : float or array_like, shape (N,)
            As for `StandardGust.step`, m/s, m, m/s.

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
        dt = now - self._t
        self._t = now if isinstance(now, float) else now.copy()
        if lowest(dt) > 0.0 and (lowest_wind > 0.0 or lowest(height) > LOW_M):
            rate_draws = None if self._rate_draws is None else self._rate_draws.take()
            floats = (isinstance(dt, float) and isinstance(wind, float)
                      and isinstance(height, float) and isinstance(airspeed, float)
                      and bool(self._started.all()))
            if not floats:
                dt, wind, height, airspeed = np.broadcast_arrays(
                    dt, wind, height, airspeed, self._started)[:4]
            self._advance(slice(None), FloatFunctions if floats else np, (
                dt, wind, height, airspeed), self._draws.take(), rate_draws)
        else:
            inputs = np.broadcast_arrays(dt, wind, height, airspeed, self._started)[:4]
            moves = np.flatnonzero((inputs[0] > 0.0) & ((inputs[1] > 0.0) | (inputs[2] > LOW_M)))
            if moves.size:
                rate_draws = None if self._rate_draws is None else self._rate_draws.take_of(moves)
                self._advance(moves, np, tuple(x[moves] for x in inputs),
                              self._draws.take_of(moves), rate_draws)
        return self._gust.copy()

    def _advance(self, moves: Any, fn: Any, inputs: tuple[Any, ...], draws: FloatArray,
                 rate_draws: FloatArray | None) -> None:
        """Advance some vehicles; the inputs are floats or rows, as `fn` takes them."""
        dt, wind, height, airspeed = inputs
        scales = (self._aloft.scales if fn is FloatFunctions else self._aloft.scales_of)(
            height, wind)
        path = fn.minimum(dt, MAX_DT_S) * fn.maximum(fn.maximum(airspeed, wind), MIN_SPEED)
        if fn is np:
            path = np.where(self._started[moves], path, _ENDLESS)
            self._started[moves] = True
        # A slice is a view, rows of some are a copy: both are put back below.
        u, va, vb, wa, wb = state = self._state[:, moves]
        before = state[1:].copy() if rate_draws is not None else state
        for a, b, length, x, y in ((va, vb, scales.length, draws[1], draws[2]),
                                   (wa, wb, scales.length_w, draws[3], draws[4])):
            theta = path / length
            decay, g11, g21, g22 = _second_order(fn, theta)
            if a is va:
                u *= decay
                u += (_SQRT2 * g11) * draws[0]
            b += theta * a
            b *= decay
            b += g21 * x
            b += g22 * y
            a *= decay
            a += g11 * x
        v = scales.sigma * (_SQRT3 * va + _REST * vb)
        w = scales.sigma_w * (_SQRT3 * wa + _REST * wb)
        if rate_draws is not None:
            turning = _Turning(fn, self.span, self._turning[:, moves])
            turning.advance(path, (scales.length, scales.length_w),
                            (before[0], before[1], draws[1], draws[2]),
                            (before[2], before[3], draws[3], draws[4]), rate_draws)
            self._turning[:, moves] = turning.state
            self._rates[moves] = np.stack(turning.rates(scales, v, w), axis=1)
        self._state[:, moves] = state
        self._gust[moves, 0] = scales.sigma * u
        self._gust[moves, 1] = v
        self._gust[moves, 2] = w


def check_span(span: float) -> None:
    """Raise `ValueError` if a wing span is not from 0 to `MAX_SPAN`."""
    if not 0.0 <= span <= MAX_SPAN:
        raise ValueError(f'span is {span:g} m; it must be from 0 (no rates) to {MAX_SPAN:g} m')
