"""The wind that SITL is given: the SIM_WIND_* parameters and what may be in them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dryden_wind_ros.gusts.frames import from_direction
from dryden_wind_ros.gusts.sitl_wind import sitl_wind_enu

SPEED, DIRECTION, DIRECTION_Z = 'SIM_WIND_SPD', 'SIM_WIND_DIR', 'SIM_WIND_DIR_Z'
TURBULENCE, TIME_CONSTANT, PROFILE = 'SIM_WIND_TURB', 'SIM_WIND_TC', 'SIM_WIND_T'
PROFILE_HEIGHT, PROFILE_COEFFICIENT = 'SIM_WIND_T_ALT', 'SIM_WIND_T_COEF'

#: What is written, in the order of the first set-up.
WRITTEN = (PROFILE, TIME_CONSTANT, TURBULENCE, SPEED, DIRECTION, DIRECTION_Z)
#: What is only read: the profile's shape, for whoever computes the wind flown.
ONLY_READ = (PROFILE_HEIGHT, PROFILE_COEFFICIENT)
#: Without these it is no simulator whose wind can be set.
REQUIRED = (SPEED, DIRECTION)

#: SIM_WIND_T for the same wind at every height.
UNIFORM = 1.0
#: SIM_WIND_TC that bridges write unless told otherwise, s: the floor that SITL holds it at.
USUAL_TIME_CONSTANT = 0.1
_CALM = 0.0005


@dataclass(frozen=True)
class Wind:
    """The wind that SITL is to be given.

    Attributes
    ----------
    speed : float
        Length of the wind vector, m/s, 0..200.
    direction : float
        Where it comes from, deg true; any finite number, taken modulo 360.
    direction_z : float
        deg, -90..90, positive: the air moves up.
    turbulence : float
        SITL's own turbulence, m/s, 0..200.
    profile : str
        ``'uniform'``: the same wind at every height; ``'sitl'``: as SITL was found.
    gust : tuple of float
        Part of the wind that is gust: east, north, up, the way the air moves, m/s.

    Raises
    ------
    ValueError
        If a field is not allowed; the text names it, the value and what is allowed.
    """

    speed: float
    direction: float
    direction_z: float = 0.0
    turbulence: float = 0.0
    profile: str = 'uniform'
    gust: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if 0.0 <= self.speed <= 200.0 and -math.inf < self.direction < math.inf \
                and -90.0 <= self.direction_z <= 90.0 and 0.0 <= self.turbulence <= 200.0 \
                and self.profile in ('uniform', 'sitl') and all(map(math.isfinite, self.gust)):
            return  # as nearly all are, twenty times a second and vehicle
        for name, low, high in (('speed', 0, 200), ('direction', -math.inf, math.inf),
                                ('direction_z', -90, 90), ('turbulence', 0, 200)):
            value = getattr(self, name)
            if not math.isfinite(value) or not low <= value <= high:
                raise ValueError(f'sim_wind {name} = {value!r}: '
                                 + (f'{low}..{high} is allowed' if math.isfinite(low)
                                    else 'a finite number is needed'))
        if self.profile not in ('uniform', 'sitl'):
            raise ValueError(f"sim_wind profile = {self.profile!r}: 'uniform' or 'sitl' is allowed")
        if not all(map(math.isfinite, self.gust)):
            raise ValueError(f'sim_wind gust = {self.gust!r}: finite numbers are needed')

    @property
    def gusty(self) -> bool:
        """Whether there is anything in it but the mean wind."""
        return any(self.gust) or self.turbulence > 0.0

    def without_gust(self) -> Wind:
        """Return the mean wind of it, without gust and turbulence."""
        total = sitl_wind_enu(self.speed, self.direction, self.direction_z)
        east, north, up = (whole - part for whole, part in zip(total, self.gust, strict=True))
        level = math.hypot(east, north)
        # A wind of nothing keeps its direction, so that nothing turns when it comes back.
        direction = from_direction(east, north) if level > _CALM else self.direction
        tilt = math.degrees(math.atan2(up, level)) if math.hypot(level, up) > _CALM else 0.0
        return Wind(min(math.hypot(level, up), 200.0), direction, tilt, 0.0, self.profile)

    def values(self) -> tuple[tuple[str, float], ...]:
        """Return SIM_WIND_* names and values, to 0.001 m/s and 0.01 deg."""
        return ((SPEED, round(self.speed, 3)),
                (DIRECTION, round(self.direction % 360.0, 2) % 360.0),
                (DIRECTION_Z, round(self.direction_z, 2)),
                (TURBULENCE, round(self.turbulence, 3)))
