"""How far EKF3's position and velocity are from the true ones while GPS is away.

Recorded flights of SITL 4.7.0-dev (a plane with and without an airspeed sensor, copters with and
without drag fusion) were off by 7 m after 8.5 s, 19 m after 20 s, 17 m after 25 s and 79 m after
40 s, by 1.3 m after 10 s where no wind was estimated, and came back in one step with the first GPS
sample. A velocity error that is reached with a time constant of 10 s describes all of them, at 1.0
to 2.6 m/s and at 0.35 m/s. Without any aiding EKF3 holds the last position.

The vehicle itself flies on as if it knew where it is: it is the estimate that leaves the truth.
"""

from __future__ import annotations

import math
import random

from dryden_wind_ros.emulator.flight import Flight

TIME_CONSTANT = 10.0
DRIFT_SPEEDS = (1.0, 2.6)
"""Speeds that the error grows with in the end where EKF3 estimates wind, m/s."""

INERTIAL_DRIFT_SPEED = 0.35
"""The same where it does not, m/s."""

_GPS_IN_USE = 0.5


class DeadReckoning:
    """Errors of EKF3's estimate against the flight, north and east.

    Parameters
    ----------
    seed : str
        Of the direction and the speed of each drift.

    Attributes
    ----------
    north, east : float
        Position estimated less true position, m.
    v_north, v_east : float
        Velocity estimated less true velocity, m/s.
    """

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self.north = self.east = 0.0
        self.v_north = self.v_east = 0.0
        self._to: tuple[float, float] | None = None

    def step(self, dt: float, flight: Flight, gps_age: float, aiding: bool,
             estimates_wind: bool) -> None:
        """Go on by ``dt`` s.

        Parameters
        ----------
        dt : float
            s.
        flight : Flight
            The truth.
        gps_age : float
            Seconds since EKF3 accepted a GPS sample.
        aiding : bool
            Whether anything aids EKF3; nothing does before its first GPS sample.
        estimates_wind : bool
        """
        if gps_age <= _GPS_IN_USE:
            self.north = self.east = self.v_north = self.v_east = 0.0
            self._to = None
            return
        if not aiding:
            # Constant position: what the vehicle moves is what the estimate is more wrong by
            self.v_north, self.v_east = -flight.v_north, -flight.v_east
        else:
            if self._to is None:
                speed = self._random.uniform(*DRIFT_SPEEDS)
                azimuth = self._random.uniform(0.0, 2.0 * math.pi)
                self._to = (speed * math.cos(azimuth), speed * math.sin(azimuth))
            share = 1.0 if estimates_wind else INERTIAL_DRIFT_SPEED / math.hypot(*self._to)
            gain = dt / TIME_CONSTANT
            self.v_north += (share * self._to[0] - self.v_north) * gain
            self.v_east += (share * self._to[1] - self.v_east) * gain
        self.north += self.v_north * dt
        self.east += self.v_east * dt
