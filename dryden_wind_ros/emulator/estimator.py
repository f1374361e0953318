"""The embedded vehicle's EKF3, as far as wind and EKF_STATUS_REPORT show it.

Which states the wind estimator goes through, and when, follows the rules read in ArduPilot's source
and seen in recorded flights: a source counts as used for 7 s after its last accepted sample, the
dead-reckoning flags follow at 10 s, no aiding at all is admitted after 15 s. The estimate itself is
a Kalman filter on the two wind states alone, with the same measurements (airspeed, zero sideslip,
drag), process noise and initial variances; position and velocity are the true ones.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from dryden_wind_ros.emulator.flight import Flight, Motion
from dryden_wind_ros.emulator.parameters import ParameterTable

SOURCE_TIMEOUT = 7.0
DEAD_RECKONING_TIMEOUT = 10.0
AIDING_TIMEOUT = 15.0
INIT_SPEED = 5.0
INIT_LENGTH = 1.0
RELEARN_LONGEST = 20.0
FUSION_DELAY = 0.22
"""EKF3 works on data this old, s: what happens shows this much later."""

FLAGS_UNINITIALISED = 1024
FLAGS_NO_AIDING = 167
FLAGS_GPS = 831
FLAGS_LOST = 37
FLAGS_DEAD_RECKONING = 303

GPS_PERIOD = 0.2
AIR_DATA_PERIOD = 0.1
_SNAPSHOT_VARIANCE = 1.96
_UNKNOWN_VARIANCE = 400.0
_SIDESLIP_SIGMA = 0.17
_DRAG_SIGMA = 1.5


class Ekf3:
    """Aiding, flags, test ratios and wind states.

    Attributes
    ----------
    phase : str
        True phase of the wind estimator: ground, inhibited, init, learning, coast, relearn.
    wind_north, wind_east : float
        Wind states 22 and 23: the way the air moves, m/s.
    v22, v23 : float
        Their variances, (m/s)^2; 0 while inhibited and in coast.
    flags : int
        EKF_STATUS_REPORT.flags.
    has_origin : bool
        Whether LOCAL_POSITION_NED exists.
    """

    def __init__(self, parameters: ParameterTable, origin_after: float, seed: int,
                 say: Callable[[int, str], None]) -> None:
        self._parameters = parameters
        self._say = say
        self._random = random.Random(f'ekf3 {seed}')
        self._start = origin_after
        self.flags = FLAGS_UNINITIALISED
        self.velocity_variance = 0.0
        self.position_variance = 0.0
        self.height_variance = 0.0
        self.compass_variance = 0.0
        self.airspeed_variance = 0.0
        self.gps_fix = False
        self.gps_enabled = True
        self.has_origin = False
        self.active = False
        self.yaw_aligned = False
        self.wind_north = self.wind_east = 0.0
        self.v22 = self.v23 = 0.0
        self._v_cross = 0.0
        self.phase = 'ground'
        self.phase_since = 0.0
        self._stage = 0
        self._no_aiding = True
        self._last_gps = -math.inf
        self._gps_samples: list[float] = []
        self._next_gps = GPS_PERIOD
        self._next_air_data = AIR_DATA_PERIOD
        self._wanted_since: float | None = None
        self._inhibited = True

    # ------------------------------------------------------------------ what is in use

    @property
    def drag_fusion(self) -> bool:
        """Whether the parameters switch drag fusion on."""
        get = self._parameters.get
        return (get('EK3_DRAG_MCOEF') > 0.001
                or (get('EK3_DRAG_BCOEF_X') > 1.0 and get('EK3_DRAG_BCOEF_Y') > 1.0))

    def airspeed_used(self, flight: Flight) -> bool:
        """Whether an airspeed sensor is in use (ARSPD_USE 2: at zero throttle only)."""
        use = self._parameters.get('ARSPD_USE')
        return self._parameters.get('ARSPD_TYPE') > 0 and (
            use == 1 or (use == 2 and flight.throttle <= 0.0))

    @property
    def estimates_wind(self) -> bool:
        """Whether the wind states are running or held (not inhibited)."""
        return not self._inhibited

    @property
    def using_gps(self) -> bool:
        """Whether GPS is aiding the filter now."""
        return self.flags == FLAGS_GPS

    @property
    def no_aiding(self) -> bool:
        """Whether the filter holds a constant position (flag 128)."""
        return self._no_aiding

    def gps_age(self, t: float) -> float:
        """Return the seconds since a GPS sample was accepted; infinite before the first."""
        return t - self._last_gps

    # ------------------------------------------------------------------ time step

    def step(self, t: float, flight: Flight) -> None:
        """Advance to ``t`` s after boot; call at a fixed rate of 50 Hz or more."""
        if self._stage < 3:
            self._boot(t)
            if self._stage < 2:
                return
        self._receive_gps(t)
        if not flight.armed:
            self.yaw_aligned = False
        elif not self.yaw_aligned and flight.up >= 2.5 and flight.kind != 'plane':
            self.yaw_aligned = True
            if flight.kind == 'copter':
                self._say(6, 'EKF3 IMU0 MAG0 in-flight yaw alignment complete')
                self._say(6, 'EKF3 IMU1 MAG0 in-flight yaw alignment complete')
        drag = self.yaw_aligned and self.drag_fusion
        self._update_flags(t, flight, drag)
        self._update_phase(t, flight, drag)
        if t >= self._next_air_data:
            self._next_air_data += AIR_DATA_PERIOD
            noise = self._random.gauss
            self.height_variance = 0.004 * noise(0.0, 1.0) ** 2 + 1e-5
            self.compass_variance = 0.015 + 0.002 * noise(0.0, 1.0)
            if not self._inhibited:
                self._fuse(flight, drag)
            elif self._no_aiding and self.flags == FLAGS_NO_AIDING:
                self.position_variance = 0.001 + 1e-4 * noise(0.0, 1.0) ** 2

    def _boot(self, t: float) -> None:
        if self._stage == 0 and t >= 0.2 * self._start:
            self._stage = 1
            self.flags = 0
            self._say(6, 'EKF3 IMU0 initialised')
            self._say(6, 'EKF3 IMU1 initialised')
        if self._stage == 1 and t >= 0.35 * self._start:
            self._stage = 2
            self.flags = FLAGS_NO_AIDING
            self._say(6, 'EKF3 IMU0 tilt alignment complete')
            self._say(6, 'EKF3 IMU1 tilt alignment complete')
            self._say(6, 'EKF3 IMU0 MAG0 initial yaw alignment complete')
            self._say(6, 'EKF3 IMU1 MAG0 initial yaw alignment complete')
            if self._parameters.get('EK3_ENABLE') and self._parameters.get('AHRS_EKF_TYPE') == 3:
                self.active = True
                self._say(6, 'AHRS: EKF3 active')
        if self._stage == 2 and t >= self._start and self.gps_fix:
            self._stage = 3
            self.has_origin = True
            self._say(6, 'EKF3 IMU0 origin set')
            self._say(6, 'EKF3 IMU1 origin set')

    def _receive_gps(self, t: float) -> None:
        if t + 1e-9 >= self._next_gps:
            self._next_gps += GPS_PERIOD
            fix = self.gps_enabled and t >= 0.45 * self._start
            if fix and not self.gps_fix and self._stage < 3:
                self._say(6, 'GPS 1: detected u-blox')
            self.gps_fix = fix
            if fix:
                self._gps_samples.append(t + FUSION_DELAY)
        while self._gps_samples and t + 1e-9 >= self._gps_samples[0]:
            self._gps_samples.pop(0)
            if self._stage == 3:
                self._accept_gps(t)

    def _accept_gps(self, t: float) -> None:
        if t - self._last_gps > SOURCE_TIMEOUT:
            self.velocity_variance = self.position_variance = 0.0
        else:
            noise = self._random.gauss
            self.velocity_variance = 0.012 * noise(0.0, 1.0) ** 2 + 1e-4
            self.position_variance = 0.02 * noise(0.0, 1.0) ** 2 + 1e-4
        if self._no_aiding:
            self._no_aiding = False
            self._say(6, 'EKF3 IMU0 is using GPS')
            self._say(6, 'EKF3 IMU1 is using GPS')
        self._last_gps = t

    def _update_flags(self, t: float, flight: Flight, drag: bool) -> None:
        if self._no_aiding:
            self.flags = FLAGS_NO_AIDING
            return
        age = t - self._last_gps
        if age <= SOURCE_TIMEOUT:
            self.flags = FLAGS_GPS
        elif not self._inhibited and (drag or self.airspeed_used(flight)):
            self.flags = FLAGS_GPS if age <= DEAD_RECKONING_TIMEOUT else FLAGS_DEAD_RECKONING
        elif not self._inhibited:
            # Lost for the moment it takes to fall back on zero sideslip
            self.flags = FLAGS_LOST if age <= SOURCE_TIMEOUT + 0.04 else FLAGS_DEAD_RECKONING
        elif age <= AIDING_TIMEOUT:
            self.flags = FLAGS_LOST
        else:
            self.flags = FLAGS_NO_AIDING
            self._no_aiding = True
            self._say(4, 'EKF3 IMU0 stopped aiding')
            self._say(4, 'EKF3 IMU1 stopped aiding')

    def _update_phase(self, t: float, flight: Flight, drag: bool) -> None:
        can = (flight.armed and not self._no_aiding
               and (drag or flight.forward_flight))
        if not can:
            self._inhibit()
            self._enter('inhibited' if flight.armed else 'ground', t)
            return
        if self._inhibited:
            if not (drag or flight.ground_speed > INIT_SPEED):
                self._wanted_since = None
                self._enter('inhibited', t)
                return
            if self._wanted_since is None:
                self._wanted_since = t
            if t - self._wanted_since < FUSION_DELAY - 1e-9:
                self._enter('inhibited', t)
                return
            self._initialise(flight, drag)
            self._enter('init', t)
            return
        if t - self._last_gps > SOURCE_TIMEOUT:
            self.v22 = self.v23 = self._v_cross = 0.0
            self._enter('coast', t)
        elif self.phase == 'coast':
            self.v22 = self.v23 = _UNKNOWN_VARIANCE
            self._v_cross = 0.0
            if not self.airspeed_used(flight):
                self.airspeed_variance = 0.04 + 0.01 * self._random.random()
            self._enter('relearn', t)
        elif (self.phase == 'init' and t - self.phase_since >= INIT_LENGTH) or (
                self.phase == 'relearn'
                and (self.v22 < 1.0 or t - self.phase_since >= RELEARN_LONGEST)):
            self._enter('learning', t)

    def _enter(self, phase: str, t: float) -> None:
        if phase != self.phase:
            self.phase = phase
            self.phase_since = t

    def _inhibit(self) -> None:
        if not self._inhibited:
            self._inhibited = True
            self.v22 = self.v23 = self._v_cross = 0.0
        self._wanted_since = None

    def _initialise(self, flight: Flight, drag: bool) -> None:
        """First guess: wind = (ground speed - TAS) along the heading, or what was there before."""
        self._inhibited = False
        self._v_cross = 0.0
        self.v22 = self.v23 = _UNKNOWN_VARIANCE
        if self.airspeed_used(flight) and not drag:
            along = flight.ground_speed - flight.airspeed
            self.wind_north = along * math.cos(flight.yaw)
            self.wind_east = along * math.sin(flight.yaw)
            self.v22 = self.v23 = _SNAPSHOT_VARIANCE

    # ------------------------------------------------------------------ wind states

    def _fuse(self, flight: Flight, drag: bool) -> None:
        noise = self._random.gauss
        coasting = self.phase == 'coast'
        sensor = self.airspeed_used(flight) and not drag
        air_north = flight.v_north - self.wind_north
        air_east = flight.v_east - self.wind_east
        airspeed = math.hypot(air_north, air_east)
        if sensor or coasting:
            measured = flight.airspeed + noise(0.0, 0.2) if sensor else airspeed
            error = measured - airspeed
            ratio = error * error / (16.0 * (self.v22 + 3.9))
            self.airspeed_variance = min(ratio, 10.0) + 1e-4 * (1.0 + self._random.random())
        if coasting:
            return
        get = self._parameters.get
        # EK3_WIND_P_NSE is per square root of a second, more of it while climbing
        sigma = min(max(get('EK3_WIND_P_NSE', 0.1), 0.0), 1.0) * (
            1.0 + min(max(get('EK3_WIND_PSCALE', 1.0), 0.0), 100.0) * abs(flight.v_up))
        self.v22 = min(self.v22 + sigma * sigma * AIR_DATA_PERIOD, _UNKNOWN_VARIANCE)
        self.v23 = min(self.v23 + sigma * sigma * AIR_DATA_PERIOD, _UNKNOWN_VARIANCE)
        if sensor and airspeed > 1.0:
            self._correct(-air_north / airspeed, -air_east / airspeed,
                          measured - airspeed, get('EK3_EAS_M_NSE', 1.4) ** 2)
        if drag:
            true_north = flight.v_north - flight.wind_north + noise(0.0, 0.5)
            true_east = flight.v_east - flight.wind_east + noise(0.0, 0.5)
            self._correct(-1.0, 0.0, true_north - (flight.v_north - self.wind_north),
                          _DRAG_SIGMA ** 2)
            self._correct(0.0, -1.0, true_east - (flight.v_east - self.wind_east),
                          _DRAG_SIGMA ** 2)
        elif flight.motion in (Motion.WINGS, Motion.FALL):
            # Zero sideslip: no air moves across the fuselage
            sin_yaw, cos_yaw = math.sin(flight.yaw), math.cos(flight.yaw)
            across = ((flight.v_east - self.wind_east) * cos_yaw
                      - (flight.v_north - self.wind_north) * sin_yaw)
            across += noise(0.0, 0.3)
            self._correct(sin_yaw, -cos_yaw, -across,
                          (_SIDESLIP_SIGMA * max(airspeed, 5.0)) ** 2)

    def _correct(self, h_north: float, h_east: float, error: float, variance: float) -> None:
        """Fuse one scalar measurement whose derivative by the wind is (h_north, h_east)."""
        to_north = self.v22 * h_north + self._v_cross * h_east
        to_east = self._v_cross * h_north + self.v23 * h_east
        total = h_north * to_north + h_east * to_east + variance
        gain_north, gain_east = to_north / total, to_east / total
        self.wind_north += gain_north * error
        self.wind_east += gain_east * error
        self.v22 = max(self.v22 - gain_north * to_north, 1e-3)
        self.v23 = max(self.v23 - gain_east * to_east, 1e-3)
        self._v_cross -= gain_north * to_east
