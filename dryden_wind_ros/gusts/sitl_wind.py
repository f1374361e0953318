"""What ArduPilot SITL makes of SIM_WIND_* before the vehicle feels it.

SITL does not fly the wind it is given. It smooths speed, direction and tilt with a low-pass,

    alpha = dt / (dt + TC / (2 pi)),      x <- x + alpha (target - x),

once per physics step, so SIM_WIND_TC is not the time constant: TC / (2 pi) is. It holds TC at 0.1 s
or more, turns the direction along the shortest path, starts from a calm at 0 degrees, and gives no
wind at all in the first 5 s after boot. SIM_WIND_T then changes the speed with height.

Source: measured on SITL 4.7.0-dev and read in its source (``SIM_Aircraft``, ``SITL_State``).
"""

from __future__ import annotations

import math
from cmath import rect
from math import radians

CALM_AFTER_BOOT = 5.0
"""Seconds after boot in which SITL has no wind, whatever is set."""

MIN_TIME_CONSTANT_PARAMETER = 0.1
"""SITL never lets SIM_WIND_TC drop below this, s."""

PHYSICS_STEP = 1.0 / 600.0
"""Seconds between two steps of SITL's filter: every other step of its 1200 Hz physics."""

_FLOAT_NOISE = 1e-9


def sitl_wind_enu(speed: float, direction: float,
                  direction_z: float) -> tuple[float, float, float]:
    """Return the air's velocity for one set of SIM_WIND_SPD, SIM_WIND_DIR and SIM_WIND_DIR_Z.

    Parameters
    ----------
    speed : float
        Length of the wind vector, m/s.
    direction : float
        Where the wind comes *from*, degrees true, clockwise from north.
    direction_z : float
        Degrees above the horizontal that the air moves; +90 is a pure updraft.

    Returns
    -------
    tuple of float
        East, north, up: where the air moves *to*, m/s.
    """
    tilted = rect(speed, radians(direction_z))
    level = rect(-tilted.real, radians(direction))
    return level.imag, level.real, tilted.imag


def sitl_wind_speed_at(height: float, speed: float, profile: int = 1,
                       profile_height: float = 60.0, coefficient: float = 0.01) -> float:
    """Return the wind speed at a height, as SIM_WIND_T makes it.

    Parameters
    ----------
    height : float
        Height above the ground, m.
    speed : float
        Filtered SIM_WIND_SPD, m/s.
    profile : int
        SIM_WIND_T: 0 multiplies by ``sqrt(height / profile_height)`` below ``profile_height``, 1
        (and anything unknown) leaves the speed alone, 2 is linear at all heights.
    profile_height : float
        SIM_WIND_T_ALT, m.
    coefficient : float
        SIM_WIND_T_COEF, 1/s: change of speed per metre of height for ``profile`` 2.

    Returns
    -------
    float
        Speed, m/s, never negative.
    """
    if profile == 0:
        if height < profile_height:
            speed *= math.sqrt(max(height / profile_height, 0.0))
    elif profile == 2:
        speed += (height - profile_height) * coefficient
    return max(speed, 0.0)


class SitlWindFilter:
    """SITL's low-pass on the wind: what is set goes in, what is flown comes out.

    The steps SITL takes between two calls are taken in closed form (the target is constant
    between them), so the result does not depend on how often :meth:`step` is called.

    Parameters
    ----------
    time_constant_parameter : float
        SIM_WIND_TC, s; held at 0.1 or more, as SITL does.
    physics_step : float
        Seconds between two filter steps in the vehicle. A ``dt`` shorter than this is one step.
    speed, direction, direction_z : float
        State to start from; SITL starts from a calm at 0 degrees.

    Attributes
    ----------
    speed : float
        Speed flown, m/s.
    direction : float
        Direction flown, degrees, *from*, [0, 360).
    direction_z : float
        Tilt flown, degrees, positive up.

    Examples
    --------
    >>> wind = SitlWindFilter(0.1)
    >>> east, north, up = wind.step(1.0, 8.0, 270.0, 0.0)
    >>> round(east, 3)
    8.0
    """

    __slots__ = ('_keeps', '_time_constant', 'direction', 'direction_z', 'physics_step', 'speed')

    def __init__(self, time_constant_parameter: float = 5.0, *,
                 physics_step: float = PHYSICS_STEP, speed: float = 0.0, direction: float = 0.0,
                 direction_z: float = 0.0) -> None:
        if not physics_step > 0.0:
            raise ValueError(f'physics_step must be positive, not {physics_step}')
        self.physics_step = physics_step
        self.speed = speed
        self.direction = direction % 360.0
        self.direction_z = direction_z
        self.time_constant_parameter = time_constant_parameter

    @property
    def time_constant_parameter(self) -> float:
        """SIM_WIND_TC in force, s (at least 0.1). Not the time constant."""
        return self._time_constant * 2.0 * math.pi

    @time_constant_parameter.setter
    def time_constant_parameter(self, value: float) -> None:
        if not math.isfinite(value):
            raise ValueError(f'SIM_WIND_TC must be a number of seconds, not {value}')
        self._time_constant = max(value, MIN_TIME_CONSTANT_PARAMETER) / (2.0 * math.pi)
        #: What is kept of a distance over a step, by its length: a simulation has two or three.
        self._keeps: dict[float, float] = {}

    @property
    def time_constant(self) -> float:
        """The true time constant, SIM_WIND_TC / (2 pi), s."""
        return self._time_constant

    def step(self, dt: float, speed: float, direction: float,
             direction_z: float) -> tuple[float, float, float]:
        """Advance by ``dt`` with the SIM_WIND_* values held, and return the air's velocity.

        Parameters
        ----------
        dt : float
            Seconds; zero and less change nothing.
        speed, direction, direction_z : float
            SIM_WIND_SPD (m/s), SIM_WIND_DIR (degrees, from), SIM_WIND_DIR_Z (degrees, up).

        Returns
        -------
        tuple of float
            East, north, up, m/s, before any SIM_WIND_T profile.
        """
        self.advance(dt, speed, direction, direction_z)
        return self.vector()

    def advance(self, dt: float, speed: float, direction: float, direction_z: float) -> None:
        """Advance as :meth:`step` does, without working out the air's velocity."""
        if not dt > 0.0:
            return
        keep = self._keeps.get(dt)
        if keep is None:
            keep = self._kept(dt)
        # It arrives: without the cut, a settled filter would go on changing its last bits.
        left = (self.speed - speed) * keep
        self.speed = speed + left if abs(left) > _FLOAT_NOISE else speed
        left = (self.direction_z - direction_z) * keep
        self.direction_z = direction_z + left if abs(left) > _FLOAT_NOISE else direction_z
        turn = (direction - self.direction + 180.0) % 360.0 - 180.0
        if abs(turn) > _FLOAT_NOISE:
            direction -= keep * turn
        self.direction = direction % 360.0

    def ahead(self, dt: float, speed: float, direction: float,
              direction_z: float) -> tuple[float, float, float]:
        """Return what `step` would, to rounding, and stay where it is: at half the cost.

        Parameters
        ----------
        dt : float
            Seconds, positive.
        speed, direction, direction_z : float
            As for `step`.
        """
        keep = self._keeps.get(dt)
        if keep is None:
            keep = self._kept(dt)
        turn = (direction - self.direction + 180.0) % 360.0 - 180.0
        tilted = rect(speed + (self.speed - speed) * keep,
                      radians(direction_z + (self.direction_z - direction_z) * keep))
        level = rect(-tilted.real, radians(direction - turn * keep))
        return level.imag, level.real, tilted.imag

    def _kept(self, dt: float) -> float:
        one = min(dt, self.physics_step)
        keep: float = (self._time_constant / (self._time_constant + one)) ** (dt / one)
        if len(self._keeps) > 100:
            self._keeps.clear()
        self._keeps[dt] = keep
        return keep

    def vector(self) -> tuple[float, float, float]:
        """Return the air's velocity now: east, north, up, m/s."""
        return sitl_wind_enu(self.speed, self.direction, self.direction_z)

