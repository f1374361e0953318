"""The air over a vehicle that is flown tick by tick from its boot, and hears every tick's wind.

Where simulation and air go on in lock step, no clock message is lost, late or out of order, and
nobody asks for what has blown: most of what `SeededAir` does each tick is for that. Here is what is
left of it for the commonest air (the first-order model about a constant mean wind), number for
number; any other air is a `SeededAir` behind the same two methods.
"""

from __future__ import annotations

from math import atan2, cos, degrees, hypot, radians, sin, sqrt
from typing import Protocol

from dryden_wind_ros.gusts.air import SeededAir
from dryden_wind_ros.gusts.air_settings import AirSettings
from dryden_wind_ros.gusts.dryden import DrydenGust
from dryden_wind_ros.gusts.frames import CALM
from dryden_wind_ros.gusts.tick_grid import TICK_NS, TICK_S

Three = tuple[float, float, float]


class LockstepAir(Protocol):
    """The air, asked tick after tick from tick 1 on."""

    def wind(self, tick: int, position: Three, velocity: Three,
             armed_at: float | None) -> Three:
        """Return SIM_WIND_SPD, SIM_WIND_DIR and SIM_WIND_DIR_Z of a tick.

        Parameters
        ----------
        tick : int
            1, 2, 3, ...: none is left out.
        position, velocity : tuple of float, shape (3,)
            Where the vehicle is at this tick, and its velocity over the ground: east, north, up, m
            and m/s. As in `SeededAir`, it is the next tick that is stepped with them.
        armed_at : float or None
            Time at which it was armed, s.
        """

    @property
    def missed(self) -> int:
        """How many ticks had no wind of their own."""


def lockstep(settings: AirSettings, air: SeededAir | None = None) -> LockstepAir:
    """Return the air of settings for lock step.

    Parameters
    ----------
    settings : AirSettings
    air : SeededAir, optional
        With a mean wind or gusts beside the settings' own: it is used as it is.
    """
    if (air is None and settings.gusts in ('off', 'dryden') and settings.model == 'first_order'):
        return _FirstOrder(settings)
    return _Seeded(air if air is not None else SeededAir(settings))


class _Seeded:
    def __init__(self, air: SeededAir) -> None:
        self._air = air

    def wind(self, tick: int, position: Three, velocity: Three,
             armed_at: float | None) -> Three:
        air, time_ns = self._air, tick * TICK_NS
        air.armed_at = armed_at
        air.odometry(time_ns, position, velocity, True)
        newest = air.advance(time_ns).tick
        assert newest is not None  # each is a new number
        wind = newest.sim_wind
        return wind.speed, wind.direction, wind.direction_z

    @property
    def missed(self) -> int:
        return self._air.grid.missed


class _FirstOrder:
    def __init__(self, settings: AirSettings) -> None:
        mean = settings.mean
        self._mean_speed, self._from, self._up, self._mean = (
            mean.speed, mean.from_deg, mean.up, mean.enu)
        self._scale = settings.scale
        self._ground = settings.ground_height
        angle = radians(mean.from_deg)
        self._sine, self._cosine = sin(angle), cos(angle)
        self._gust = (DrydenGust(settings.seed, settings.method)
                      if settings.blows and mean.speed > 0.0 else None)
        self._tick = 0
        self._height = self._airspeed = 0.0  # of the vehicle at the tick before
        self.missed = 0

    def wind(self, tick: int, position: Three, velocity: Three,
             armed_at: float | None) -> Three:
        self.missed += tick - self._tick - 1
        self._tick = tick
        gust = self._gust
        if gust is None:
            u = v = w = 0.0
        else:
            if tick == 1:
                # From calm; what came before has used up its draws
                u, v, w = gust.step(TICK_S, 0.0, 0.0, 0.0)
                gust.skip(1)
            else:
                u, v, w = gust.step(tick * TICK_S, self._mean_speed, self._height, self._airspeed)
                scale = self._scale
                u, v, w = scale * u, scale * v, scale * w
            sine, cosine = self._sine, self._cosine
            east, north, up = self._mean
            v_east, v_north, v_up = velocity
            self._height = position[2] - self._ground
            east = east + (-u * sine - v * cosine) - v_east
            north = north + (-u * cosine + v * sine) - v_north
            up = up + w - v_up
            self._airspeed = sqrt(east * east + north * north + up * up)
        along, vertical = self._mean_speed + u, self._up + w
        horizontal = hypot(along, v)
        speed = hypot(horizontal, vertical)
        direction = self._from
        if horizontal >= CALM:
            direction += degrees(atan2(v, along))
        direction %= 360.0
        return (speed, 0.0 if direction == 360.0 else direction,
                degrees(atan2(vertical, horizontal)) if speed > 0.0 else 0.0)
