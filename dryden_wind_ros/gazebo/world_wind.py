"""The one wind that a Gazebo world has, made of the winds of its vehicles.

Each vehicle has a wind of its own: the gusts depend on its height and airspeed, and mostly on its
seed. Gazebo has a single wind for the whole world, so several have to be made one, and somebody has
to decide how:

========  ========================================================================================
leader    the wind of the first vehicle; all others fly in its gusts
average   the mean of all winds; N independent gusts of equal strength average to 1/sqrt(N) of it
mean      the average of the mean winds, without gusts
refuse    none: say that it cannot be done
========  ========================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Vector = tuple[float, float, float]

REFUSE = 'refuse'
COMBINATIONS = (REFUSE, 'leader', 'average', 'mean')


class CannotCombine(ValueError):
    """Several winds cannot become one without a decision."""


@dataclass(frozen=True)
class WorldWindNow:
    """The wind of the world at one tick.

    Attributes
    ----------
    wind : tuple of float
        East, north, up, m/s: where the air moves to.
    differences : tuple of float
        For each vehicle, how far the world's wind is from its own, m/s; NaN if its own was not
        heard.
    stamp_ns : int
        Sim time of the tick, ns.
    """

    wind: Vector
    differences: tuple[float, ...]
    stamp_ns: int


def check_combination(names: Sequence[str], combine: str) -> None:
    """Refuse to make one wind of several where nobody has said how.

    Raises
    ------
    CannotCombine
        With what can be done instead.
    """
    if len(names) > 1 and combine == REFUSE:
        raise CannotCombine(
            f'vehicles are {", ".join(names)}, each with gusts of its own, but a Gazebo world has '
            'one wind. Give each its own gusts as forces with mode:=wrench, or say which wind all '
            'of them get: combine:=leader (that of the first), combine:=average (gusts get weaker '
            'by the square root of the number of vehicles) or combine:=mean (no gusts)')


class WorldWind:
    """Collects the winds of the vehicles and makes one of them.

    Parameters
    ----------
    names : sequence of str
        The vehicles; the first is the leader.
    combine : str
        One of `COMBINATIONS`. With 'mean', `take` is to be given mean winds.

    Raises
    ------
    CannotCombine
        As `check_combination`.
    """

    def __init__(self, names: Sequence[str], combine: str = REFUSE) -> None:
        check_combination(names, combine)
        self._leader_only = len(names) == 1 or combine in ('leader', REFUSE)
        self._winds: list[Vector | None] = [None] * len(names)
        self._stamp: int | None = None
        self._sent_stamp: int | None = None

    def take(self, index: int, wind: Vector, stamp_ns: int) -> None:
        """Take a vehicle's wind (east, north, up, m/s) of a sim time, ns.

        Raises
        ------
        ValueError
            If it is not finite; the wind before holds.
        """
        if not all(map(math.isfinite, wind)):
            raise ValueError(f'wind is {tuple(wind)} m/s; it must be finite numbers')
        self._winds[index] = wind
        if index == 0:
            self._stamp = stamp_ns

    def next(self) -> WorldWindNow | None:
        """Return the wind to be given to Gazebo now; None if the leader's tick was served."""
        if self._stamp is None or self._stamp == self._sent_stamp:
            return None
        self._sent_stamp = self._stamp
        heard = [wind for wind in self._winds if wind is not None]
        if self._leader_only:
            heard = heard[:1]
        east, north, up = (math.fsum(axis) / len(heard) for axis in zip(*heard, strict=True))
        wind = (east, north, up)
        return WorldWindNow(wind, tuple(
            math.nan if own is None else math.dist(own, wind) for own in self._winds), self._stamp)
