"""The field as the turbulence of one vehicle: asked at each tick for where it will be felt."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from dryden_wind_ros.gusts.air_settings import AirSettings
from dryden_wind_ros.gusts.conditions import ZERO, Conditions, MeanWind, Moment
from dryden_wind_ros.gusts.dryden import TurbulenceScales
from dryden_wind_ros.gusts.field import TurbulenceField
from dryden_wind_ros.gusts.frames import Vector, body_to_enu, gust_uvw
from dryden_wind_ros.gusts.scales import TurbulenceAloft
from dryden_wind_ros.gusts.shared_air import SharedAir
from dryden_wind_ros.gusts.tick_grid import TICK_S

_OLDEST_SAMPLE_S = 0.5


class Asked(NamedTuple):
    """Where and when the air was asked for: with the settings, enough to compute its gust again.

    Attributes
    ----------
    position : tuple of float, shape (3,)
        ENU, m.
    height : float
        Above the ground, m.
    air_time : float
        s.
    offset : float
        Common time of the fleet less the vehicle's own, s.
    drift : tuple of float, shape (3,)
        How far the air has moved since air time 0, ENU, m.
    age : float
        Turnover times that it has lived.
    mean : MeanWind
        At 20 ft: what moves the air and sets its strength below 1000 ft.
    """

    position: Vector
    height: float
    air_time: float
    offset: float
    drift: Vector
    age: float
    mean: MeanWind


@functools.lru_cache(maxsize=8)
def field_of(seed: int, spectrum: str, modes: int, life: float,
             severity: str) -> TurbulenceField:
    """Return a field; vehicles and settings that mean the same one share it."""
    return TurbulenceField(seed, spectrum=spectrum, modes=modes, life=life, severity=severity)


class FieldTurbulence:
    """The gusts of a field.

    Parameters
    ----------
    settings : AirSettings
    shared : SharedAir
        Time and drift, of this vehicle's air or of its fleet's.
    rank : int
        Which vehicle of the fleet this is.

    Notes
    -----
    There is nothing to begin from and nothing to miss: each tick stands alone.
    """

    draws = 0

    def __init__(self, settings: AirSettings, shared: SharedAir, rank: int) -> None:
        self.field = field_of(settings.seed, settings.field_spectrum, settings.field_modes,
                              settings.field_life, str(settings.severity))
        self._aloft = TurbulenceAloft(settings.severity, settings.field_spectrum)
        self._shared, self._rank = shared, rank
        self._span, self._lead = settings.span, settings.field_lead
        self._enu: Vector = ZERO
        self.rates: Vector = ZERO
        self.asked: Asked | None = None

    def begin(self, now: Conditions) -> None:
        """Ask for the gust of the first tick."""
        self.step(now)

    def step(self, now: Conditions) -> None:
        """Ask for the gust of a tick, where the vehicle will be when it arrives."""
        at, low = now.at, now.mean_20ft
        rate = self.field.turnover_rate(low.speed)
        lead = self._lead
        come = self._shared.at(self._rank, at.tick * TICK_S + at.offset, low.enu, rate)
        ahead = lead + _age_of(at) if lead > 0.0 else 0.0
        position = _moved(at.position, at.velocity, ahead)
        self.asked = asked = Asked(
            position, at.height + ahead * at.velocity[2], at.tick * TICK_S + at.offset + lead,
            at.offset, _moved(come.drift, low.enu, lead), come.age + rate * lead, low)
        places = [position]
        if self._span > 0.0:
            forward, right = _axes(at)
            half = 0.5 * self._span
            places += [_moved(position, axis, side) for axis in (right, forward)
                       for side in (half, -half)]
        heights = np.array([place[2] for place in places]) + (asked.height - position[2])
        gusts = self.field.gust(places, asked.air_time, low.enu, drift=asked.drift, age=asked.age,
                                heights=heights)
        east, north, up = gusts[0].tolist()
        self._enu = east, north, up
        if self._span > 0.0:
            # In body axes: forward, right, down. The air turns about them: p = dw/dy, q = -dw/dx,
            # r = dv/dx, with w down.
            down = np.cross(forward, right)
            starboard, port, nose, tail = gusts[1:]
            self.rates = (float((starboard - port) @ down) / self._span,
                          float((tail - nose) @ down) / self._span,
                          float((nose - tail) @ np.array(right)) / self._span)

    def gust(self, mean: MeanWind) -> Vector:
        """Return the gust (u, v, w) about a mean wind, m/s."""
        return gust_uvw(self._enu, mean.from_deg)

    def scales(self, height: float, mean: MeanWind) -> TurbulenceScales:
        """Return the strengths and lengths that it aims at."""
        low = mean.speed if self.asked is None else self.asked.mean.speed
        scales = self._aloft.scales(height, low)
        return TurbulenceScales(scales.sigma, scales.sigma, scales.sigma_w,
                                scales.length, scales.length, scales.length_w)


def _moved(place: Vector, velocity: Vector, seconds: float) -> Vector:
    return (place[0] + seconds * velocity[0], place[1] + seconds * velocity[1],
            place[2] + seconds * velocity[2])


def _age_of(at: Moment) -> float:
    """Return how old the position of a tick is, s; 0 where its stamp has nothing to do with it."""
    age = at.time - at.sampled_at
    return age if 0.0 <= age <= _OLDEST_SAMPLE_S else 0.0


def _axes(at: Moment) -> tuple[Vector, Vector]:
    """Return the unit vectors forward and right of the vehicle, ENU."""
    orientation = at.orientation() if at.orientation is not None else None
    if orientation is not None:
        forward = body_to_enu(orientation, (1.0, 0.0, 0.0))
        return forward, body_to_enu(orientation, (0.0, -1.0, 0.0))
    # No attitude: the way it moves.
    east, north, _ = at.velocity
    speed = math.hypot(east, north)
    if speed < 1e-3:
        east, north, speed = 0.0, 1.0, 1.0
    return (east / speed, north / speed, 0.0), (north / speed, -east / speed, 0.0)
