"""What a tick of the air is made of, and what may be plugged into it.

Data flow of one tick::

    Moment (when and where) -> MeanWindSource -> MeanWind
    Moment + MeanWind + airspeed = Conditions -> Turbulence -> gust (u, v, w), rates (p, q, r)
                                              -> AddedGust  -> further gusts, ENU

`SeededAir` asks them in this order at every tick and adds up what they say. None of them has a
clock of its own: a new kind of wind is a class with these few methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from dryden_wind_ros.gusts.dryden import TurbulenceScales
from dryden_wind_ros.gusts.frames import Vector, mean_wind_enu

ZERO: Vector = (0.0, 0.0, 0.0)


class MeanWind(NamedTuple):
    """A mean wind.

    Attributes
    ----------
    speed : float
        Horizontal, m/s.
    from_deg : float
        Where it comes from, degrees true.
    up : float
        Updraft, m/s.
    enu : tuple of float, shape (3,)
        The same as a vector, m/s: east, north, up.
    """

    speed: float
    from_deg: float
    up: float
    enu: Vector

    @classmethod
    def of(cls, speed: float, from_deg: float, up: float = 0.0) -> MeanWind:
        """Return the mean wind of a speed, a direction and an updraft."""
        return cls(speed, from_deg, up, mean_wind_enu(speed, from_deg, up))


class Moment(NamedTuple):
    """When and where the air is asked for.

    Attributes
    ----------
    tick : int
        Number of the tick.
    time : float
        Simulated time of the tick, s.
    position : tuple of float, shape (3,)
        East, north, up in the odometry's frame, m.
    position_is_true : bool
        Whether that is where the vehicle really is, not what it believes.
    height : float
        Above the ground, m.
    velocity : tuple of float, shape (3,)
        Over the ground, ENU, m/s.
    armed_at : float or None
        Simulated time at which the vehicle was armed, s; None while it is not known to be.
    restarted_at : float
        Simulated time at which the air was last begun anew on request, s; 0: at boot.
    sampled_at : float
        Simulated time that the position belongs to, s.
    orientation : callable or None
        Returns the attitude as a quaternion x, y, z, w from forward-left-up to ENU.
    offset : float
        Common time of a fleet less the vehicle's own, s.
    """

    tick: int
    time: float
    position: Vector
    position_is_true: bool
    height: float
    velocity: Vector
    armed_at: float | None
    restarted_at: float
    sampled_at: float = 0.0
    orientation: Callable[[], tuple[float, float, float, float]] | None = None
    offset: float = 0.0


class Conditions(NamedTuple):
    """What turbulence depends on at one tick.

    Attributes
    ----------
    at : Moment
        When and where.
    mean : MeanWind
        The mean wind there.
    airspeed : float
        Speed of the vehicle through the air, m/s.
    mean_20ft : MeanWind
        The mean wind below or above it, 20 ft over the ground: what the standards go by.
    """

    at: Moment
    mean: MeanWind
    airspeed: float
    mean_20ft: MeanWind


class MeanWindSource(Protocol):
    """The mean wind as it depends on time and place."""

    def at(self, moment: Moment) -> MeanWind:
        """Return the mean wind at a moment."""


class AddedGust(Protocol):
    """A gust on top of turbulence."""

    def at(self, moment: Moment, mean: MeanWind) -> Vector:
        """Return what it adds at a moment, ENU, m/s."""

    def over(self, moment: Moment) -> bool:
        """Return whether it will never blow again, so that it can be forgotten."""


class Turbulence(Protocol):
    """Turbulence over one vehicle, asked tick by tick."""

    @property
    def draws(self) -> int:
        """How many triples of the seed's stream were used up (fives, of the standards)."""

    def begin(self, now: Conditions) -> None:
        """Begin the seed's air anew at a tick; it blows there as it does at the start."""

    def step(self, now: Conditions) -> None:
        """Go on to a later tick; those in between were missed."""

    def gust(self, mean: MeanWind) -> Vector:
        """Return the gust (u, v, w) about a mean wind at the present tick, m/s, before scaling."""

    @property
    def rates(self) -> Vector:
        """Turning rates (p, q, r) of the gust at the present tick, rad/s, before scaling."""

    def scales(self, height: float, mean: MeanWind) -> TurbulenceScales:
        """Return the strengths and lengths that it aims at, before scaling."""


class ConstantMeanWind:
    """The same mean wind always and everywhere.

    Parameters
    ----------
    mean : MeanWind
        That wind.
    """

    def __init__(self, mean: MeanWind) -> None:
        self._mean = mean

    def at(self, moment: Moment) -> MeanWind:
        """Return that wind."""
        return self._mean
