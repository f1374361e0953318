"""The variance of EKF3's wind states, which telemetry does not carry, from heading and airspeed."""

from __future__ import annotations

import math


class WindVariance:
    """Variance of EKF3's two wind states as it fuses airspeed and zero sideslip.

    With h the unit vector along the heading and V the airspeed, airspeed observes the component
    along h with variance R_tas, and zero sideslip the one across it with R_beta V^2, about every
    0.12 s. Each is the Kalman update ``P <- P - P h h' P / (h' P h + R)``. EKF3 adds the variance
    of its velocity to R; here a constant stands for that. Its process noise, multiplied by its step
    twice, is too small to matter while the variance falls.

    Attributes
    ----------
    north, east, north_east : float
        Variances and covariance, (m/s)^2.
    largest : float
        Largest variance in any direction, (m/s)^2.
    valid : bool
        The variances are known.

    Sources: ``FuseAirspeed`` and ``FuseSideslip`` of ``AP_NavEKF3_AirDataFusion.cpp``. Against the
    logged variances of four flights it reaches 1 (m/s)^2 within 0.5 s (of 2 s, with airspeed) and
    1 s (of 12 s, without).
    """

    __slots__ = ('_t', 'east', 'largest', 'north', 'north_east', 'valid')

    STEP = 0.12           # s, time between two fusions
    MAX_STEPS = 25        # of them at once: after a gap there is no telling how the heading went
    SIDESLIP = 0.03       # rad^2
    VELOCITY = 0.3        # (m/s)^2, of EKF3's own velocity, in both directions

    def __init__(self) -> None:
        self.north = self.east = self.north_east = self.largest = math.nan
        self.valid = False
        self._t = 0.0

    def reset(self, variance: float, t: float) -> None:
        """Set both variances to ``variance`` (m/s)^2 at time ``t`` s, uncorrelated."""
        self.north = self.east = self.largest = variance
        self.north_east = 0.0
        self.valid = True
        self._t = t

    def clear(self) -> None:
        """Forget everything: :attr:`valid` is false until the next :meth:`reset`."""
        self.valid = False

    def advance(self, t: float, yaw: float, airspeed: float, airspeed_variance: float) -> None:
        """Take the fusions up to time ``t`` s.

        Parameters
        ----------
        t : float
            Vehicle time, s.
        yaw : float
            Heading, rad clockwise from north.
        airspeed : float
            True airspeed, m/s.
        airspeed_variance : float
            Variance of the airspeed measurement, (m/s)^2; ``inf`` while none is fused.
        """
        steps = int((t - self._t) / self.STEP)
        if steps <= 0:
            return
        self._t += steps * self.STEP
        cos, sin = math.cos(yaw), math.sin(yaw)
        across = self.SIDESLIP * airspeed * airspeed + self.VELOCITY
        along = airspeed_variance + self.VELOCITY
        for _ in range(min(steps, self.MAX_STEPS)):
            if along < math.inf:
                self._fuse(cos, sin, along)
            self._fuse(-sin, cos, across)
        half = 0.5 * (self.north - self.east)
        self.largest = 0.5 * (self.north + self.east) + math.sqrt(
            half * half + self.north_east ** 2)

    def _fuse(self, north: float, east: float, variance: float) -> None:
        p_north = self.north * north + self.north_east * east
        p_east = self.north_east * north + self.east * east
        innovation = north * p_north + east * p_east + variance
        self.north -= p_north * p_north / innovation
        self.north_east -= p_north * p_east / innovation
        self.east -= p_east * p_east / innovation
