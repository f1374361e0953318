"""EKF3's own rules for its wind states, applied to what telemetry shows of each.

Sources: ``AP_NavEKF3_Control.cpp`` (setWindMagStateLearningMode, setAidingMode),
``AP_NavEKF3_core.cpp`` (CovariancePrediction) and ``AP_NavEKF3_AirDataFusion.cpp`` of ArduPilot
4.7.0-dev; timings measured on its simulator.
"""

from __future__ import annotations

import math

from .settling import RESETTLING_TIME, SETTLING_TIME, WIND_STALE, Settling
from .state import EkfWindState, WindPhase
from .variance import WindVariance
from .vehicle_state import POS_HORIZ_ABS, VehicleState

_NAN = math.nan

SOURCE_TIMEOUT = 7.0
"""Seconds for which EKF3 counts a source as used after its last accepted sample."""

INIT_TIME = 1.0
"""Seconds for which the first guess is called *init*."""

RELEARN_MIN = 0.45
"""Shortest relearn, s: EKF3 logs its variances about twice a second, so none is seen shorter."""

RELEARN_MAX = 20.0
"""Longest relearn, s, whatever the variance."""

EVALUATE_EVERY = 0.25
"""Seconds after which the phase is decided anew though no report and no news came."""

_EKF_DELAY = 0.2       # s, EKF3 tests the speed at its delayed time horizon
_AIDING_LATELY = 2.0   # s
_WIND_MOST = 60.0      # m/s, the strongest wind that SITL is given here
_AIRSPEED_OFF = 0.4    # of the airspeed measured, how far that of the estimate may be off


class WindRules:
    """Decides which phase the wind estimate of a vehicle is in.

    Parameters
    ----------
    vehicle : VehicleState
        The vehicle.
    reason : str
        Why nothing is known yet.

    Attributes
    ----------
    phase : WindPhase
        The phase as it is reported: NOT_ESTIMATED where EKF3's wind does not exist or is not used.
    ekf3 : WindPhase
        What EKF3 itself does.
    settling : Settling
        Whether the estimate may be believed.
    evaluated_t : float
        Vehicle time of the newest :meth:`evaluate`, s.
    """

    __slots__ = ('_ekf3_reason', '_ekf3_since', '_estimating', '_reason', '_since', '_variance',
                 '_vehicle', 'ekf3', 'evaluated_t', 'phase', 'settling')

    def __init__(self, vehicle: VehicleState, reason: str = 'no HEARTBEAT heard yet') -> None:
        self._vehicle = vehicle
        self.settling = Settling()
        self.phase: WindPhase = WindPhase.UNKNOWN
        self.ekf3: WindPhase = WindPhase.UNKNOWN
        self._since = self._ekf3_since = 0.0
        self._reason = self._ekf3_reason = reason
        self.evaluated_t = -math.inf
        self._estimating = False
        self._variance = WindVariance()

    def attach(self) -> None:
        """Begin to listen: what EKF3 did before is not known."""
        self._estimating = False
        self._enter(WindPhase.UNKNOWN, 'just attached: listening for a GPS sample')

    def evaluate(self) -> None:
        """Decide anew."""
        vehicle = self._vehicle
        t = self.evaluated_t = vehicle.t
        self._follow_ekf3()
        phase, reason = self.ekf3, self._ekf3_reason
        if phase is not WindPhase.UNKNOWN or vehicle.type is not None:
            why_not = self._why_not_estimated()
            if why_not:
                phase, reason = WindPhase.NOT_ESTIMATED, why_not
        if phase is not self.phase:
            self.phase = phase
            self._since = self._ekf3_since if phase is self.ekf3 else t
        self._reason = reason
        learning = phase is WindPhase.LEARNING
        parameters = vehicle.parameters
        self.settling.judge(
            t, learning=learning,
            variance=self._variance.largest if self._variance.valid else _NAN,
            absurd=self._why_absurd() if learning else '',
            time_constant=parameters.closing_plane if vehicle.plane else parameters.closing_copter)

    # -- what EKF3 does ----------------------------------------------------------------------------

    def _why_not_estimated(self) -> str:
        """Say why EKF3's wind does not exist or is not in use; empty if it is."""
        vehicle = self._vehicle
        why_not = vehicle.parameters.why_not_in_use()
        if why_not:
            return why_not
        if not vehicle.plane and vehicle.type is not None:
            if not vehicle.copter:
                return 'EKF3 estimates wind for planes and multicopters only'
            if vehicle.parameters.drag is False:
                return 'a copter without drag fusion (EK3_DRAG_* not set)'
            if vehicle.armed and vehicle.shows_no_drag():
                return 'a copter in flight that shows no sign of drag fusion'
        if vehicle.armed and vehicle.other_estimator():
            return f'{vehicle.active_estimator} has taken over from EKF3'
        return ''

    def _follow_ekf3(self) -> None:
        vehicle = self._vehicle
        if vehicle.armed is None:
            return
        if not vehicle.armed:
            self._estimating = False
            vehicle.seen_inhibited = True
            self._enter(WindPhase.GROUND, 'disarmed: EKF3 keeps its wind states inhibited')
            return
        if vehicle.report_t is None:
            self._enter(WindPhase.UNKNOWN, 'no EKF_STATUS_REPORT heard yet')
            return
        why_inhibited = self._why_inhibited()
        if why_inhibited:
            self._estimating = False
            if not vehicle.seen_inhibited and vehicle.parameters.drag is None \
                    and vehicle.has_aiding() and vehicle.copter and not vehicle.shows_no_drag():
                self._enter(WindPhase.UNKNOWN, 'just attached: drag fusion may be on or off')
                return
            vehicle.seen_inhibited = True
            self._enter(WindPhase.INHIBITED, why_inhibited)
            return
        if not self._estimating and not self._begin():
            return
        self._go_on()

    def _why_inhibited(self) -> str:
        """Return why EKF3 cannot estimate wind now; empty if it can."""
        vehicle = self._vehicle
        if not vehicle.has_aiding():
            return 'no aiding: EKF3 has no position or velocity source'
        if vehicle.plane:
            return '' if vehicle.flies_forward() else 'flying on rotors'
        if not vehicle.copter:
            return 'no way to estimate wind on this kind of vehicle'
        drag = vehicle.parameters.drag
        if drag is False or (drag is None and not vehicle.drag_seen):
            return 'no drag fusion'
        if vehicle.yaw_aligned or vehicle.drag_seen:
            return ''
        if vehicle.climbed_since is not None and vehicle.t - vehicle.climbed_since >= 0.3:
            vehicle.yaw_aligned = True  # without its text; holds until disarmed
            return ''
        return 'armed: drag fusion waits for a climb of 2.5 m (in-flight yaw alignment)'

    def _begin(self) -> bool:
        """Un-inhibit the wind states if EKF3 does; true once they are."""
        vehicle = self._vehicle
        t = vehicle.t
        plane = vehicle.plane
        fused = plane and vehicle.airspeed_fusions.count > 0 and vehicle.airspeed_is_fused(0.3)
        fast = vehicle.fast_since is not None and t - vehicle.fast_since >= _EKF_DELAY
        if plane and not fast:
            if vehicle.fast_since is None:
                if not math.isnan(vehicle.ground_speed):
                    vehicle.seen_inhibited = True
                    self._enter(WindPhase.INHIBITED, 'armed: waiting for 5 m/s over the ground')
                return False
            if vehicle.seen_inhibited and not fused:
                return False
        if vehicle.seen_inhibited:
            self._estimating = True
            if self._is_observable():
                known = vehicle.parameters.sensor
                sensor = known if known is not None else fused
                if plane:
                    self._variance.reset(
                        vehicle.parameters.airspeed_noise if sensor else 400.0, t)
                else:
                    self._variance.clear()
                self.settling.begin(t, SETTLING_TIME)
                self._enter(WindPhase.INIT, _init_reason(plane, bool(sensor)))
            else:
                self._coast()
            return True
        # Attached in flight: EKF3 began before we listened.
        if vehicle.gps.last is not None:
            self._estimating = True
            if plane:
                self._variance.reset(4.0, t)
            else:
                self._variance.clear()
            self.settling.begin(t, RESETTLING_TIME)
            self._enter(WindPhase.LEARNING, 'in flight with aiding')
            return True
        if not vehicle.flags & POS_HORIZ_ABS or t - vehicle.heard_since > SOURCE_TIMEOUT:
            self._estimating = True
            self._coast()
            return True
        return False

    def _go_on(self) -> None:
        vehicle = self._vehicle
        t = vehicle.t
        phase = self.ekf3
        if not self._is_observable():
            if phase is not WindPhase.COAST:
                self._coast()
            return
        if phase is WindPhase.COAST:
            # The default airspeed of dead reckoning ends now.
            vehicle.airspeed_fusions.last = -math.inf
            if vehicle.plane:
                self._variance.reset(400.0, t)
            self._enter(WindPhase.RELEARN, 'a position or velocity source is back')
            return
        self._advance_variance()
        age = t - self._ekf3_since
        if phase is WindPhase.INIT:
            if age >= INIT_TIME:
                self._enter(WindPhase.LEARNING, 'in flight with aiding')
        elif phase is WindPhase.RELEARN and age >= RELEARN_MIN and self._has_relearned(age):
            self.settling.begin(t, RESETTLING_TIME)
            self._enter(WindPhase.LEARNING, 'in flight with aiding')

    def _coast(self) -> None:
        self._enter(WindPhase.COAST, 'frozen: no position or velocity sample accepted for 7 s')

    def _enter(self, phase: WindPhase, reason: str) -> None:
        self._ekf3_reason = reason
        if phase is not self.ekf3:
            self.ekf3 = phase
            self._ekf3_since = self._vehicle.t

    def _is_observable(self) -> bool:
        accepted = self._vehicle.gps.last
        return accepted is not None and self._vehicle.t - accepted <= SOURCE_TIMEOUT

    def _has_relearned(self, age: float) -> bool:
        vehicle = self._vehicle
        if age >= RELEARN_MAX or not vehicle.plane:
            return True  # drag fusion takes the variance below 1 in less than half a second
        if math.isfinite(vehicle.yaw):
            return self._variance.north < 1.0
        return age >= (2.0 if vehicle.parameters.sensor or vehicle.airspeed_is_fused() else 13.0)

    def _advance_variance(self) -> None:
        variance, vehicle = self._variance, self._vehicle
        if not variance.valid or variance.largest < 0.2:
            return  # small enough for every question asked of it
        if not math.isfinite(vehicle.yaw):
            variance.clear()
            return
        speed = math.hypot(vehicle.velocity_n - vehicle.wind_n,
                           vehicle.velocity_e - vehicle.wind_e)
        if not math.isfinite(speed) or vehicle.t - vehicle.wind_t > WIND_STALE:
            speed = vehicle.airspeed if math.isfinite(vehicle.airspeed) else 20.0
        noise = vehicle.parameters.airspeed_noise if vehicle.airspeed_is_fused() else math.inf
        variance.advance(vehicle.t, vehicle.yaw, min(max(speed, 1.0), 100.0), noise)

    # -- what is said of it ------------------------------------------------------------------------

    def _why_absurd(self) -> str:
        """Say why the estimate cannot be right, whatever it does; empty if it can."""
        vehicle = self._vehicle
        speed = math.hypot(vehicle.wind_n, vehicle.wind_e)
        if speed > _WIND_MOST:
            return f'{speed:.0f} m/s is no wind'
        if not vehicle.plane:
            return ''
        if not vehicle.airspeed_is_fused():
            # Over all headings a plane is at least as fast over the ground as the wind.
            return (f'a wind of {speed:.0f} m/s, and never faster than {vehicle.fastest:.0f} m/s '
                    'over the ground' if speed > vehicle.fastest else '')
        implied = math.hypot(vehicle.velocity_n - vehicle.wind_n,
                             vehicle.velocity_e - vehicle.wind_e)
        if abs(implied - vehicle.airspeed) > _AIRSPEED_OFF * vehicle.airspeed:
            return (f'the estimate means an airspeed of {implied:.0f} m/s, measured are '
                    f'{vehicle.airspeed:.0f}')
        return ''

    def estimate(self) -> tuple[float, float]:
        """Return the estimate, the air's velocity to north and east, m/s; NaN where none holds."""
        vehicle = self._vehicle
        if self.phase >= WindPhase.INIT and vehicle.wind_t >= self._ekf3_since - WIND_STALE \
                and vehicle.t - vehicle.wind_t <= WIND_STALE:
            return vehicle.wind_n, vehicle.wind_e
        return _NAN, _NAN

    def state(self) -> EkfWindState:
        """Return the state as it was decided last."""
        vehicle, settling = self._vehicle, self.settling
        t = vehicle.t
        accepted = vehicle.gps.last
        aiding_lost = (not vehicle.has_aiding() or accepted is None
                       or t - accepted > _AIDING_LATELY)
        north, east = self.estimate()
        speed = from_deg = _NAN
        if north == north:
            speed = math.hypot(north, east)
            from_deg = math.degrees(math.atan2(-east, -north)) % 360.0
        return EkfWindState(self.phase, self._since, settling.settled, aiding_lost,
                            self._full_reason(), north, east, speed, from_deg, t,
                            settling.steady, settling.settles_in)

    def _full_reason(self) -> str:
        settling = self.settling
        if self.phase is not WindPhase.LEARNING or settling.settled:
            return self._reason
        text = f'{self._reason}; not settled: {settling.why_not}'
        if math.isnan(settling.settles_in):
            return text
        # To five seconds: it is not known better, and the text should not change all the time.
        left = 5 * max(round(settling.settles_in / 5.0), 1)
        return f'{text}, about {left} s to go'


def _init_reason(plane: bool, sensor: bool) -> str:
    if not plane:
        return 'first guess: drag fusion has begun'
    return ('first guess from airspeed, along the heading' if sensor
            else 'no first guess: no airspeed measurement')
