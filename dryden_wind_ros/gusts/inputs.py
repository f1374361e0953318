"""What the gust models are given: numbers or rows of numbers, checked and named."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

MOST_SHOWN = 40
"""Characters of a wrong value that a message about it repeats."""


class FloatFunctions:
    """What a model takes from NumPy, for floats: NumPy needs ten times as long for one."""

    exp = staticmethod(math.exp)
    expm1 = staticmethod(math.expm1)
    log = staticmethod(math.log)
    sqrt = staticmethod(math.sqrt)
    minimum = staticmethod(min)
    maximum = staticmethod(max)

    @staticmethod
    def where(condition: bool, yes: float, no: float) -> float:
        return yes if condition else no


def number_or_row(name: str, value: npt.ArrayLike, n: int) -> float | FloatArray:
    """Return a float, or an array of shape (n,); all finite."""
    if isinstance(value, (float, int)):
        number = float(value)
        if not math.isfinite(number):
            raise ValueError(f'{name} is {number}; it must be a finite number')
        return number
    array = np.asarray(value, dtype=np.float64)
    if array.ndim == 0:
        return number_or_row(name, float(array), n)
    if array.shape != (n,):
        raise ValueError(f'{name} has the shape {array.shape}; it must be one number or ({n},)')
    # The sum of squares finds every NaN and infinity in a third of the time of isfinite().all().
    if not math.isfinite(array.dot(array)) and not np.isfinite(array).all():
        bad = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f'{name}[{bad}] is {array[bad]}; it must be a finite number')
    return array


def lowest(value: float | FloatArray) -> float:
    """Return the lowest of some numbers, or the only one."""
    return value if isinstance(value, float) else float(value.min())


def check_numbers(**values: float) -> None:
    """Raise `ValueError` if a number is not finite, or the mean wind negative."""
    for name, value in values.items():
        if not math.isfinite(value):
            raise ValueError(f'{name} is {value}; it must be a finite number')
        if name == 'mean_wind' and value < 0.0:
            raise ValueError(f'mean_wind is {value} m/s; it must not be negative')


def short(value: object) -> str:
    """Return a value as a message about it repeats it: as text, and not all of it if it is long.

    Examples
    --------
    >>> short('gale'), short('9' * 5000)
    ('gale', '999999999999999999999999999999999999... (5000 characters)')
    """
    text = str(value)
    if len(text) <= MOST_SHOWN:
        return text
    return f'{text[:MOST_SHOWN - 4]}... ({len(text)} characters)'


def check_seed(seed: object) -> None:
    """Raise `TypeError` if a seed is neither an integer nor None."""
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, (int, np.integer))):
        raise TypeError(f'seed is {short(repr(seed))}; it must be an integer')
