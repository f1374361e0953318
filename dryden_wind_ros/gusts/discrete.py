r"""Discrete gusts: one wind that comes up, and goes again or stays.

Two shapes over the distance x flown into the gust, with its amplitude V_m and the distance H from
nothing to the peak:

* one-minus-cosine, of the certification rules (CS 25.341(a) and 14 CFR 25.341(a)): V_m / 2
  (1 - cos(pi x / H)) up to 2 H, nothing before and after;
* ramp, of MIL-F-8785C: the same up to H, then V_m for good.

Where no amplitude is given, a one-minus-cosine gust has the rule's own design gust velocity,

    U_ds = U_ref F_g (H / 107 m)^(1/6),    H from 9 to 107 m

with the reference gust velocity U_ref, an equivalent airspeed, falling linearly from 17.07 m/s at
sea level to 13.41 m/s at 4572 m and on to 6.36 m/s at 18 288 m. It is turned into a true
velocity with the density of the standard atmosphere. F_g, the flight profile alleviation factor,
depends on the aeroplane's masses and highest altitude; it is below 1 at sea level and 1 at that
altitude. With 1, as here unless told otherwise, the gust is on the strong side.

The gust drifts with the mean wind, as turbulence does, and is not drawn out by itself: x grows with
the speed of the vehicle through the mean wind, held at 1 m/s or more, as the gust model holds it. A
hovering vehicle is passed at the speed of the wind.

What is given to SITL at a tick is held until the next one is there, passes a filter, and the clock
was heard a little late: on average it is flown a tick after it was given. So what is given at a
tick is the gust of the tick after it, and the peak is flown when it is due.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dryden_wind_ros.gusts.conditions import ZERO, MeanWind, Moment
from dryden_wind_ros.gusts.frames import Vector, gust_enu
from dryden_wind_ros.gusts.inputs import short
from dryden_wind_ros.gusts.tick_grid import TICK_S

SHAPES = ('one_minus_cosine', 'ramp')
DIRECTIONS = ('along', 'across', 'up', 'azimuth')

MAX_AMPLITUDE = 60.0
"""Largest amplitude of a discrete gust, m/s."""

MIN_DURATION, MAX_DURATION = 0.05, 3600.0
"""Shortest (one tick) and longest time from nothing to the peak, s."""

MIN_LENGTH, MAX_LENGTH = 0.1, 100_000.0
"""Shortest and longest way from nothing to the peak, m."""

RULE_LENGTHS = (9.0, 107.0)
"""Gradient distances for which the certification rule has an amplitude, m."""

LEAD = TICK_S
"""What is given at a tick is the gust of this much later, s: half a tick for which a wind is held,
16 ms of SITL's filter at SIM_WIND_TC 0.1, and 12 ms at which a clock of 40 Hz reaches a tick."""

MIN_SPEED = 1.0
"""A gust passes the vehicle at this speed or faster, m/s."""

_REFERENCE = ((0.0, 17.07), (4572.0, 13.41), (18288.0, 6.36))


def reference_gust_velocity(altitude: float) -> float:
    """Return U_ref of CS 25.341(a)(5)(i), m/s equivalent airspeed.

    Parameters
    ----------
    altitude : float
        Above mean sea level, m; held between 0 and 18 288 m.

    Examples
    --------
    >>> [round(reference_gust_velocity(h), 2) for h in (0.0, 4572.0, 18288.0)]
    [17.07, 13.41, 6.36]
    """
    (low, strong), (middle, medium), (high, weak) = _REFERENCE
    altitude = min(max(altitude, low), high)
    if altitude <= middle:
        return strong + (medium - strong) * altitude / middle
    return medium + (weak - medium) * (altitude - middle) / (high - middle)


def density_ratio(altitude: float) -> float:
    """Return the density of the standard atmosphere over that at sea level, from 0 to 20 km."""
    altitude = min(max(altitude, 0.0), 20_000.0)
    lapse = 0.0065 / 288.15
    gravity = 9.80665 / 287.05287
    if altitude <= 11_000.0:
        return float((1.0 - lapse * altitude)**(gravity / 0.0065 - 1.0))
    return density_ratio(11_000.0) * math.exp(-gravity / 216.65 * (altitude - 11_000.0))


def certification_amplitude(length: float, altitude: float = 0.0,
                            alleviation: float = 1.0) -> float:
    """Return the design gust velocity of CS 25.341(a)(4) as a true velocity, m/s.

    Parameters
    ----------
    length : float
        Gradient distance H, m, from 9 to 107.
    altitude : float, optional
        Above mean sea level, m.
    alleviation : float, optional
        F_g.

    Raises
    ------
    ValueError
        If the rule has no gust of this length.

    Examples
    --------
    >>> round(certification_amplitude(107.0), 2)
    17.07
    """
    low, high = RULE_LENGTHS
    if not low <= length <= high:
        raise ValueError(f'length is {length:g} m; without an amplitude of its own a gust takes '
                         f"the certification rule's, which is for lengths from {low:g} to "
                         f'{high:g} m')
    equivalent = reference_gust_velocity(altitude) * alleviation * (length / high)**(1.0 / 6.0)
    return float(equivalent / math.sqrt(density_ratio(altitude)))


def shape_at(shape: str, x: float) -> float:
    """Return the part of the amplitude that blows at `x`, in gradient distances from the start."""
    if x <= 0.0:
        return 0.0
    if shape == 'ramp' and x >= 1.0:
        return 1.0
    return 0.5 * (1.0 - math.cos(math.pi * x)) if x < 2.0 else 0.0


@dataclass(frozen=True)
class DiscreteGust:
    """What a discrete gust is like.

    Attributes
    ----------
    shape : {'one_minus_cosine', 'ramp'}
        Up and down again, or up and held.
    amplitude : float or None
        At the peak, m/s, below 0 the other way; None: the certification rule's own.
    length : float or None
        Gradient distance H, from nothing to the peak, m; None: `duration` counts.
    duration : float or None
        Time from nothing to the peak, s; None: `length` counts.
    direction : {'along', 'across', 'up', 'azimuth'}
        The way of the mean wind, to its right, up, or horizontally from `azimuth`. It is that of
        the moment at which the gust begins.
    azimuth : float
        Where it comes from, degrees true.
    altitude : float or None
        Above mean sea level, m, for the rule's own amplitude; None: the height above the ground.
    alleviation : float
        F_g for the rule's own amplitude.

    Raises
    ------
    ValueError
        Naming what is wrong, its value and what is allowed.
    """

    shape: str = 'one_minus_cosine'
    amplitude: float | None = None
    length: float | None = None
    duration: float | None = None
    direction: str = 'along'
    azimuth: float = 0.0
    altitude: float | None = None
    alleviation: float = 1.0

    def __post_init__(self) -> None:
        _one_of('shape', self.shape, SHAPES)
        _one_of('direction', self.direction, DIRECTIONS)
        if (self.length is None) == (self.duration is None):
            raise ValueError('a gust needs either a length (m) or a duration (s), and not both')
        if self.length is not None:
            _within('length', self.length, MIN_LENGTH, MAX_LENGTH, 'm')
        if self.duration is not None:
            _within('duration', self.duration, MIN_DURATION, MAX_DURATION, 's')
        _within('azimuth', self.azimuth, -360.0, 360.0, 'deg')
        if self.amplitude is not None:
            _within('amplitude', self.amplitude, -MAX_AMPLITUDE, MAX_AMPLITUDE, 'm/s')
            if self.amplitude == 0.0:
                raise ValueError('amplitude is 0 m/s; such a gust is none')
            return
        if self.shape != 'one_minus_cosine' or self.length is None:
            raise ValueError('amplitude is missing; only a one_minus_cosine gust with a length '
                             'has one of its own, of the certification rule')
        if self.altitude is not None:
            _within('altitude', self.altitude, 0.0, 18_288.0, 'm')
        _within('alleviation', self.alleviation, 0.1, 1.0, '')
        certification_amplitude(self.length)

    def amplitude_at(self, height: float) -> float:
        """Return the amplitude, m/s, of the gust met at a height above the ground, m."""
        if self.amplitude is not None:
            return self.amplitude
        assert self.length is not None  # see __post_init__
        altitude = height if self.altitude is None else self.altitude
        return certification_amplitude(self.length, altitude, self.alleviation)

    def unit_enu(self, mean: MeanWind) -> Vector:
        """Return the way that the air of a positive amplitude moves, a unit vector, ENU."""
        if self.direction == 'up':
            return 0.0, 0.0, 1.0
        if self.direction == 'azimuth':
            return gust_enu((1.0, 0.0, 0.0), self.azimuth)
        uv = (1.0, 0.0, 0.0) if self.direction == 'along' else (0.0, 1.0, 0.0)
        return gust_enu(uv, mean.from_deg)

    def in_words(self) -> str:
        """Return what it is, for a log."""
        size = 'the amplitude of CS/FAR 25.341' if self.amplitude is None else \
            f'{self.amplitude:g} m/s'
        over = f'{self.length:g} m' if self.length is not None else f'{self.duration:g} s'
        way = f'from {self.azimuth:g} deg' if self.direction == 'azimuth' else self.direction
        return f'{self.shape} gust of {size} over {over}, {way}'


class BlowingGust:
    """A discrete gust that begins at a known time, as it passes a vehicle.

    Parameters
    ----------
    gust : DiscreteGust
        What it is like.
    start : float
        Simulated time at which it begins, s.

    Notes
    -----
    It is over once it has passed, and when simulated time goes back or the air begins anew.
    """

    def __init__(self, gust: DiscreteGust, start: float) -> None:
        self.gust = gust
        self.start = start
        self._time: float | None = None
        self._x = 0.0
        self._vector: Vector = ZERO
        self._restarted_at: float | None = None
        self._ended = False

    @property
    def begun(self) -> bool:
        """Whether it has begun."""
        return self._time is not None

    def at(self, moment: Moment, mean: MeanWind) -> Vector:
        """Return what it adds at a moment, ENU, m/s; the moments must go on."""
        if self._restarted_at is None:
            self._restarted_at = moment.restarted_at
        last = self._time if self._time is not None else self.start - LEAD
        if moment.restarted_at != self._restarted_at or (self.begun and moment.time < last):
            self._ended = True
        # A rounding error before the start is the start.
        if self._ended or moment.time < self.start - LEAD - 1e-6:
            return ZERO
        gust = self.gust
        if not self.begun:
            size = gust.amplitude_at(moment.height)
            east, north, up = gust.unit_enu(mean)
            self._vector = size * east, size * north, size * up
        dt = max(0.0, moment.time - last)
        if gust.duration is not None:
            self._x += dt / gust.duration
        elif gust.length is not None:
            self._x += dt * passing_speed(moment, mean) / gust.length
        self._time = moment.time
        part = shape_at(gust.shape, self._x)
        east, north, up = self._vector
        return part * east, part * north, part * up

    def over(self, moment: Moment) -> bool:
        """Return whether it will never blow again."""
        return self._ended or (self.gust.shape != 'ramp' and self._x >= 2.0)


def passing_speed(moment: Moment, mean: MeanWind) -> float:
    """Return the speed at which a gust that drifts with the mean wind passes a vehicle, m/s."""
    return max(MIN_SPEED, math.dist(mean.enu, moment.velocity))


def _within(name: str, value: float, low: float, high: float, unit: str) -> None:
    if not low <= value <= high:  # written so that NaN is refused too
        raise ValueError(
            f'{name} is {value:g}; it must be from {low:g} to {high:g} {unit}'.rstrip())


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f'{name} is {short(repr(value))}; it must be one of {", ".join(allowed)}')
