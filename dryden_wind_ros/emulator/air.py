"""The air of the embedded vehicle: SIM_WIND_* through SITL's filter, profile and turbulence."""

from __future__ import annotations

import math
import random

from dryden_wind_ros.emulator.parameters import ParameterTable
from dryden_wind_ros.gusts.sitl_wind import (
    CALM_AFTER_BOOT,
    SitlWindFilter,
    sitl_wind_enu,
    sitl_wind_speed_at,
)

AIR_PARAMETERS = frozenset(('SIM_WIND_SPD', 'SIM_WIND_DIR', 'SIM_WIND_DIR_Z', 'SIM_WIND_TC',
                            'SIM_WIND_T', 'SIM_WIND_T_ALT', 'SIM_WIND_T_COEF', 'SIM_WIND_TURB'))


LOOK_AHEAD_US = 200_000
"""Longer without a new wind, the filter moves on: it is about to arrive."""

LATE_US = 150_000
"""Winds come every 50 ms; a longer pause means that one was late by more than 100 ms."""


class WindsHeard:
    """How regularly winds come in.

    Attributes
    ----------
    count, late : int
        Winds after the first, and those that came more than `LATE_US` after the one before.
    longest_us : int
        Longest time between two, us.
    """

    def __init__(self) -> None:
        self.count = self.late = self.longest_us = 0
        self._last_us: int | None = None

    def take(self, t_us: int) -> None:
        """Count a wind at a time of the vehicle."""
        last, self._last_us = self._last_us, t_us
        if last is not None:
            gap = t_us - last
            self.count += 1
            if gap > LATE_US:
                self.late += 1
            if gap > self.longest_us:
                self.longest_us = gap


class SitlAir:
    """What blows, from the parameters in force.

    Time only moves on in :meth:`run_to` and :meth:`flown`. A write that comes between two steps
    holds from its own time on: :meth:`about_to_write` lets the filter run up to it on the values
    before.

    Parameters
    ----------
    parameters : ParameterTable
    turbulence_seed : str
        Of SIM_WIND_TURB's draws.
    ignore : bool
        Still air whatever is set, as under an external simulator.
    """

    def __init__(self, parameters: ParameterTable, turbulence_seed: str,
                 ignore: bool = False) -> None:
        self._parameters = parameters
        self._ignore = ignore
        self._filter = SitlWindFilter(max(parameters.get('SIM_WIND_TC', 5.0), 0.0))
        self._t_us = 0
        self._calm = True
        #: The filter moves, and the parameters are read: neither stale, nor calm, nor settled.
        self._running = False
        self._air: tuple[float, float, float] | None = (0.0, 0.0, 0.0)
        self._turbulence = (0.0, 0.0, 0.0)
        self._random = random.Random(turbulence_seed)
        self._read_parameters()

    def written(self) -> None:
        """Note that one of AIR_PARAMETERS was written."""
        self._stale = True
        self._running = False

    def set_wind(self, speed: float, direction: float, direction_z: float) -> None:
        """Note that SIM_WIND_SPD, SIM_WIND_DIR and SIM_WIND_DIR_Z have these values now."""
        if not (self._stale or self._ignore):
            self._set_wind = (speed if speed > 0.0 else 0.0, direction, direction_z)
            self._settled = False
            self._running = not self._calm

    def about_to_write(self, t_us: int) -> None:
        """Let the filter run up to ``t_us`` on the values set before one is written then."""
        if t_us > self._t_us:
            self.run_to(t_us)

    def run_to(self, t_us: int) -> None:
        """Let SITL's filter run up to ``t_us``, microseconds since boot."""
        if not (self._running or self._run(t_us)) or t_us <= self._t_us:
            return
        speed, direction, direction_z = self._set_wind
        wind = self._filter
        wind.advance((t_us - self._t_us) * 1e-6, speed, direction, direction_z)
        self._air = None
        self._t_us = t_us
        if (wind.speed == speed and wind.direction_z == direction_z
                and wind.direction == direction % 360.0):
            self._settled, self._running = True, False

    def flown(self, t_us: int, height: float, airborne: bool) -> tuple[float, float, float]:
        """Return the air's velocity at a time not before the last, and a height: see `at`.

        As long as it is the filter's alone and new winds come, the filter is looked at ahead from
        the last write, and moves on when the next one comes.
        """
        if self._running and self._plain and 0 < t_us - self._t_us < LOOK_AHEAD_US:
            self._air = air = self._filter.ahead((t_us - self._t_us) * 1e-6, *self._set_wind)
            return air
        if self._running or self._run(t_us):
            self.run_to(t_us)
        return self.at(height, airborne)

    def _run(self, t_us: int) -> bool:
        """Pass the time while nothing changes; return whether something does."""
        if self._stale:
            # Set on the tick that ran last, up to which the filter has run
            self._read_parameters()
        if self._calm:
            if t_us <= CALM_AFTER_BOOT * 1e6:
                self._t_us = t_us
                return False
            self._calm = False
            self._settled = False
        if self._settled:
            self._t_us = t_us
            return False
        self._running = True
        return True

    def at(self, height: float, airborne: bool) -> tuple[float, float, float]:
        """Return the air's velocity at a height in m: east, north, up, m/s.

        SIM_WIND_TURB acts off the ground only, and draws anew at each call.
        """
        if self._calm:
            return (0.0, 0.0, 0.0)
        profile = self._profile
        if self._uniform or (profile[0] == 0 and height >= profile[1]):
            air = self._air
            if air is None:
                wind = self._filter
                air = self._air = sitl_wind_enu(wind.speed, wind.direction, wind.direction_z)
        else:
            wind = self._filter
            speed = sitl_wind_speed_at(height, wind.speed, *profile)
            air = sitl_wind_enu(speed, wind.direction, wind.direction_z)
        if self._turbulence_set > 0.0 and airborne:
            return self._add_turbulence(air)
        return air

    def _read_parameters(self) -> None:
        get = self._parameters.get
        self._set_wind = (max(get('SIM_WIND_SPD'), 0.0), get('SIM_WIND_DIR', 180.0),
                          get('SIM_WIND_DIR_Z'))
        # A version without SIM_WIND_TC takes 5 % of the way at each 1200 Hz step: 16 ms
        self._filter.time_constant_parameter = get('SIM_WIND_TC', 0.1)
        # A version without SIM_WIND_T has the square root profile below 60 m
        self._profile = (int(get('SIM_WIND_T', 0)), get('SIM_WIND_T_ALT', 60.0),
                         get('SIM_WIND_T_COEF', 0.01))
        self._uniform = self._profile[0] == 1
        self._turbulence_set = get('SIM_WIND_TURB')
        if self._ignore:
            self._set_wind, self._turbulence_set = (0.0, 180.0, 0.0), 0.0
        #: The filter's wind is what is flown, wherever.
        self._plain = self._uniform and not self._turbulence_set > 0.0
        self._settled = self._stale = False

    def _add_turbulence(self, air: tuple[float, float, float]) -> tuple[float, float, float]:
        """SIM_WIND_TURB: first-order noise with a new azimuth at each step, no length scale."""
        draw = self._random
        strength = self._turbulence_set * 10.0
        azimuth, horizontal, vertical = self._turbulence
        azimuth += 2.0 * draw.random()
        horizontal = 0.98 * horizontal + 0.02 * strength * draw.gauss(0.0, 1.0)
        vertical = 0.98 * vertical + 0.02 * strength * draw.gauss(0.0, 1.0)
        self._turbulence = (azimuth % (2.0 * math.pi), horizontal, vertical)
        return (air[0] + horizontal * math.sin(azimuth), air[1] + horizontal * math.cos(azimuth),
                air[2] + vertical)
