"""Python's normal draws, for many seeds at once.

``random.Random(seed).gauss(0, 1)`` is what defines the gusts of a seed. NumPy's Mersenne Twister is
given the state of Python's, and the Box-Muller transform of CPython is applied to blocks of its
numbers; the two agree to about 1e-15.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


class NormalBlocks:
    """The draws of ``random.Random(seed).gauss(0, 1)`` for many seeds, taken in groups.

    As long as every vehicle has taken equally many groups, one number says how far they are; else
    every vehicle has a place of its own and fills its part of the block when it gets to its end.

    Parameters
    ----------
    seeds : sequence of int
        One a vehicle.
    width : int, optional
        Draws in a group: as many as a step takes.
    """

    CHUNK = 16  # vehicles made together: their numbers fit the processor's cache

    def __init__(self, seeds: Sequence[int], width: int = 3) -> None:
        n = len(seeds)
        self._width = width
        self._generators = np.array([_numpy_twister(int(seed)) for seed in seeds], dtype=object)
        # Even, so that a block holds whole pairs; long blocks cost less, at most 32 MB.
        self._steps = max(8, min(512, 2_000_000 // (width * n) * 2))
        self._block: FloatArray = np.empty((width * self._steps, n))
        # Kept, because the system takes fresh memory of this size back and clears it each time.
        self._uniform: FloatArray = np.empty((self.CHUNK, width * self._steps))
        self._scratch: FloatArray = np.empty((6, self.CHUNK, width * self._steps // 2))
        self._place = self._steps  # of the next group of all vehicles, if in step
        self._places: npt.NDArray[np.int64] | None = None  # of each vehicle if not in step

    def take(self) -> FloatArray:
        """Return the next group of every vehicle, shape (width, N)."""
        if self._places is not None:
            return self.take_of(np.arange(len(self._generators)))
        if self._place == self._steps:
            n = len(self._generators)
            for start in range(0, n, self.CHUNK):
                self._fill(slice(start, start + self.CHUNK))
            self._place = 0
        first = self._width * self._place
        self._place += 1
        return self._block[first:first + self._width]

    def take_of(self, rows: npt.NDArray[np.int64]) -> FloatArray:
        """Return the next group of the chosen vehicles, shape (width, number chosen)."""
        if self._places is None:
            self._places = np.full(len(self._generators), self._place)
        used_up = rows[self._places[rows] == self._steps]
        for start in range(0, used_up.size, self.CHUNK):
            self._fill(used_up[start:start + self.CHUNK])
        self._places[used_up] = 0
        groups: FloatArray = self._block[
            self._width * self._places[rows] + np.arange(self._width)[:, None], rows]
        self._places[rows] += 1
        if (self._places == self._places[0]).all():
            self._place = int(self._places[0])
            self._places = None
        return groups

    def _fill(self, rows: slice | npt.NDArray[np.int64]) -> None:
        """Make the next block of draws of some vehicles."""
        generators = self._generators[rows]
        uniform = self._uniform[:generators.size]
        turns, radius, *rest = self._scratch[:, :generators.size]
        for line, generator in zip(uniform, generators, strict=True):
            generator.random(out=line)
        # CPython's gauss(): angle from the first number of a pair, radius from the second; the
        # cosine is returned first and the sine is kept for the next call.
        turns[...] = uniform[:, 0::2]
        np.subtract(1.0, uniform[:, 1::2], out=radius)
        np.log(radius, out=radius)
        np.multiply(radius, -2.0, out=radius)
        np.sqrt(radius, out=radius)
        cosine, sine = _cos_sin_of_turns(turns, rest)
        cosine *= radius
        sine *= radius
        self._block[0::2, rows] = cosine.T
        self._block[1::2, rows] = sine.T


# sqrt(2) sin(pi x) / x as a polynomial in x^2, for x between -1/4 and 1/4, interpolated at the
# zeros of the Chebyshev polynomial: the error is below 1e-16. Arrays, as NumPy takes them faster
# than floats.
_SINE = tuple(np.array(c) for c in (
    4.442882938158366, -7.308249499995417, 3.606476571465091, -0.84748802427557,
    0.1161718022872845, -0.01042278448318745, 0.0006527046093506783))


def _cos_sin_of_turns(turns: FloatArray,
                      scratch: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Return cosine and sine of angles given in turns, from 0 to 1, to about 1e-15.

    NumPy has no fast sine and cosine of doubles on most processors; this takes a third of their
    time. With d = 1/2 - turns and x = |d| - 1/4, the cosine is sin(2 pi x), and the sine is
    cos(2 pi x) with the sign of d. Both come from s = sqrt(2) sin(pi x), half the angle:
    sin(2 pi x) = s sqrt(2 - s^2) and cos(2 pi x) = 1 - s^2.

    Parameters
    ----------
    turns : ndarray
    scratch : sequence of ndarray, shape (4,)
        Arrays of the shape of `turns` to work in; what is returned lies in two of them.
    """
    d, x, square, s = scratch
    np.subtract(0.5, turns, out=d)
    np.abs(d, out=x)
    x -= 0.25
    np.multiply(x, x, out=square)
    np.multiply(square, _SINE[-1], out=s)
    for coefficient in _SINE[-2:0:-1]:
        s += coefficient
        s *= square
    s += _SINE[0]
    s *= x
    np.multiply(s, s, out=square)
    sine = np.subtract(1.0, square, out=x)
    np.copysign(sine, d, out=sine)
    np.subtract(2.0, square, out=square)
    np.sqrt(square, out=square)
    s *= square
    return s, sine


def _numpy_twister(seed: int) -> np.random.Generator:
    """Return NumPy's Mersenne Twister in the state of ``random.Random(seed)``."""
    state = random.Random(seed).getstate()[1]
    twister = np.random.MT19937()
    twister.state = {
        'bit_generator': 'MT19937',
        'state': {'key': np.array(state[:-1], dtype=np.uint32), 'pos': state[-1]}}
    return np.random.Generator(twister)


def skip_draws(source: random.Random, draws: int) -> None:
    """Use up normal draws of a generator without taking them; a million takes about 7 ms.

    Parameters
    ----------
    source : random.Random
        Of which only ``gauss`` is used.
    draws : int
        How many, not negative.
    """
    # gauss() makes two draws of one pair of uniform numbers and keeps the second.
    if draws and getattr(source, 'gauss_next', None) is not None:
        source.gauss(0.0, 1.0)
        draws -= 1
    words = 4 * (draws // 2)  # each uniform number takes two 32-bit words of the generator
    while words > 0:
        block = min(words, 1 << 20)
        source.getrandbits(32 * block)
        words -= block
    if draws % 2:
        source.gauss(0.0, 1.0)
