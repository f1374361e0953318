"""Which phase of its life EKF3's wind estimate is in, from the telemetry alone.

MAVLink carries EKF3's estimate (WIND) but not whether EKF3 is estimating at all. This module infers
it by EKF3's own rules, with what telemetry shows of each:

* Wind states are inhibited while disarmed, without aiding (EKF_STATUS_REPORT flag 128), and while
  neither zero sideslip (a plane in forward flight) nor drag fusion (a copter) can be used. A plane
  also waits for 5 m/s over the ground. The end of that is *init*: the first guess.
* A source of position or velocity counts as used for 7.0 s after its last accepted sample. Without
  one, the states are frozen: *coast*. Accepted samples show as a change of a variance field of
  EKF_STATUS_REPORT to a value below 1 (these are square roots of innovation test ratios, and they
  are only computed when a sample is tried).
* The first accepted sample afterwards sets the variance of the states to 400 (m/s)^2: *relearn*,
  until the variance of the north state is below 1. That variance is not sent, so
  :class:`WindVariance` computes it from heading and airspeed, as EKF3 does.

Sources: ``AP_NavEKF3_Control.cpp`` (setWindMagStateLearningMode, setAidingMode),
``AP_NavEKF3_core.cpp`` (CovariancePrediction) and ``AP_NavEKF3_AirDataFusion.cpp`` of ArduPilot
4.7.0-dev; timings measured on its simulator. All times are the vehicle's own, seconds since
boot.

No ROS and no MAVLink connection in here: messages are anything with ``get_type()`` and the fields
of the MAVLink message of that name, as pymavlink decodes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from .samples import AirspeedFusions, GpsSamples
from .settling import RESETTLING_TIME, SETTLING_TIME, WIND_STALE, Settling
from .state import (
    ALLOWED_TRANSITIONS,
    ARDUPILOT,
    NO_VEHICLE,
    EkfWindState,
    WindPhase,
    wind_error,
)
from .variance import WindVariance

__all__ = [
    'ALLOWED_TRANSITIONS', 'INIT_TIME', 'PARAMETERS', 'RELEARN_MAX', 'RELEARN_MIN', 'SILENCE',
    'SOURCE_TIMEOUT', 'EkfWindState', 'WindPhase', 'WindPhaseMonitor', 'wind_error',
]

_NAN = math.nan

# EKF_STATUS_REPORT.flags
_POS_HORIZ_ABS = 16
_CONST_POS_MODE = 128
_UNINITIALIZED = 1024

SOURCE_TIMEOUT = 7.0
"""Seconds for which EKF3 counts a source as used after its last accepted sample."""

INIT_TIME = 1.0
"""Seconds for which the first guess is called *init*."""

RELEARN_MIN = 0.45
"""Shortest relearn, s: EKF3 logs its variances about twice a second, so none is seen shorter."""

RELEARN_MAX = 20.0
"""Longest relearn, s, whatever the variance."""

SILENCE = 5.0
"""Seconds without EKF_STATUS_REPORT after which the phase is no longer known."""

_TAKE_OFF_SPEED = 5.0  # m/s over the ground, EKF3's gate for a plane
_EKF_DELAY = 0.2       # s, EKF3 tests the speed at its delayed time horizon
_YAW_ALIGN_CLIMB = 2.5  # m, climb at which EKF3 does its final in-flight yaw alignment
_RESTART_STEP = 1.0    # s back in boot time that is a restart and not a late packet
_AIDING_LATELY = 2.0   # s
_WIND_MOST = 60.0      # m/s, the strongest wind that SITL is given here
_AIRSPEED_OFF = 0.4    # of the airspeed measured, how far that of the estimate may be off

# After a step of the wind the error falls as exp(-t / T). T is the inverse of the square root of
# process noise times information, so it goes with 1 / EK3_WIND_P_NSE. Measured at the defaults:
_CLOSING_PLANE = 55.0 * 0.1    # s times EK3_WIND_P_NSE, loitering with and without airspeed
_CLOSING_COPTER = 25.0 * 0.2   # s times EK3_WIND_P_NSE, drag fusion

_FIXED_WING = frozenset((1, 19, 20, 21, 22, 23, 24, 25))
_MULTICOPTER = frozenset((2, 3, 4, 13, 14, 15, 29, 35))
_VTOL_MODES = frozenset((17, 18, 19, 20, 21, 22, 23))  # QSTABILIZE .. QACRO of ArduPlane
_VTOL_UNDEFINED = 0
_VTOL_FORWARD = 4

PARAMETERS = frozenset((
    'AHRS_EKF_TYPE', 'EK3_ENABLE', 'EK3_DRAG_BCOEF_X', 'EK3_DRAG_BCOEF_Y', 'EK3_DRAG_MCOEF',
    'ARSPD_TYPE', 'ARSPD_USE', 'EK3_EAS_M_NSE', 'EK3_WIND_P_NSE',
))
"""The parameters that the monitor makes use of; it works without any."""


class WindPhaseMonitor:
    """Follow EKF3's wind estimate through one vehicle's telemetry.

    Feed every message to :meth:`update`. It takes part in EKF_STATUS_REPORT (10 Hz or more is
    best), HEARTBEAT, SYSTEM_TIME, WIND, ATTITUDE, LOCAL_POSITION_NED, GLOBAL_POSITION_INT, VFR_HUD,
    EXTENDED_SYS_STATE, STATUSTEXT and PARAM_VALUE; whatever is missing makes it slower, not wrong.
    Messages of other systems and components are passed over.

    Parameters
    ----------
    parameters : Mapping[str, float], optional
        Parameters of the vehicle as far as known (:data:`PARAMETERS`). PARAM_VALUE messages keep
        them up to date.
    system : int, optional
        MAVLink system id of the vehicle. Without it, the first ArduPilot vehicle heard is
        followed: the autopilot of a system whose HEARTBEAT names a vehicle.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> monitor = WindPhaseMonitor({'AHRS_EKF_TYPE': 3, 'EK3_ENABLE': 1})
    >>> heartbeat = SimpleNamespace(get_type=lambda: 'HEARTBEAT', type=1, autopilot=3, base_mode=81,
    ...                             custom_mode=0)
    >>> monitor.update(heartbeat).phase.name
    'GROUND'
    """

    def __init__(self, parameters: Mapping[str, float] | None = None, *,
                 system: int | None = None) -> None:
        self._system = system
        self._is_vehicle = system is not None  # else only until its HEARTBEAT says otherwise
        self._others: set[int] = set()
        self._parameters: dict[str, float] = {}
        self._drag: bool | None = None
        self._sensor: bool | None = None
        self._restarts = 0
        self._handlers: dict[str, Callable[[Any], bool]] = {
            'ATTITUDE': self._on_attitude,
            'EKF_STATUS_REPORT': self._on_ekf_status_report,
            'EXTENDED_SYS_STATE': self._on_extended_sys_state,
            'GLOBAL_POSITION_INT': self._on_global_position_int,
            'HEARTBEAT': self._on_heartbeat,
            'LOCAL_POSITION_NED': self._on_local_position_ned,
            'PARAM_VALUE': self._on_param_value,
            'STATUSTEXT': self._on_statustext,
            'SYSTEM_TIME': self._on_system_time,
            'VFR_HUD': self._on_vfr_hud,
            'WIND': self._on_wind,
        }
        self._forget_vehicle()
        self._given = dict(parameters or {})
        self._set_given()

    def _set_given(self) -> None:
        for name, value in self._given.items():
            self.set_parameter(name, value)

    # -- what the outside sees ---------------------------------------------------------------------

    def update(self, message: Any) -> EkfWindState | None:
        """Take one decoded message.

        Parameters
        ----------
        message : object
            Has ``get_type()`` and the fields of the MAVLink message of that type; optionally
            ``get_srcSystem()`` and ``get_srcComponent()``.

        Returns
        -------
        EkfWindState or None
            The state, with every EKF_STATUS_REPORT and whenever phase or ``settled`` changed;
            otherwise None.
        """
        handler = self._handlers.get(message.get_type())
        if handler is None or not self._is_ours(message):
            return None
        phase, settled, restarts = self._phase, self._settling.settled, self._restarts
        self._silent_for = 0.0
        is_report = handler(message)
        if is_report or phase is not self._phase or settled is not self._settling.settled \
                or restarts != self._restarts:
            return self._make_state()
        return None

    def state(self, t: float | None = None) -> EkfWindState:
        """Return the state as it is known now.

        Parameters
        ----------
        t : float, optional
            Vehicle time now, s since boot. When nothing was heard of EKF3 for :data:`SILENCE`
            seconds before it, the phase is UNKNOWN. Default: the time of the newest message.

        Returns
        -------
        EkfWindState
            The state; asking changes nothing.
        """
        silent_for = self._silent_for
        since = self._t
        heard = self._report_t
        if t is not None and heard is not None and t - heard > SILENCE:
            silent_for = max(silent_for, t - heard)
            since = heard + SILENCE
        if silent_for > 0.0 and self._phase is not WindPhase.UNKNOWN:
            return EkfWindState(WindPhase.UNKNOWN, since, False, True,
                                f'nothing heard of EKF3 for {silent_for:.0f} s',
                                _NAN, _NAN, _NAN, _NAN, self._t)
        return self._make_state()

    def nothing_heard(self, seconds: float) -> EkfWindState:
        """Say that the vehicle has been silent: its own clock cannot tell.

        Parameters
        ----------
        seconds : float
            For how long, s of wall time. The phase is UNKNOWN until the next message.

        Returns
        -------
        EkfWindState
            The state from now on.
        """
        self._silent_for = max(float(seconds), 1e-9)
        return self.state()

    def set_parameter(self, name: str, value: float) -> None:
        """Take the value of one vehicle parameter; names that do not matter are passed over."""
        if name not in PARAMETERS or not math.isfinite(value):
            return
        values = self._parameters
        values[name] = float(value)
        if name.startswith('EK3_DRAG'):
            # EKF3's own test for whether drag fusion is on.
            x, y = values.get('EK3_DRAG_BCOEF_X'), values.get('EK3_DRAG_BCOEF_Y')
            momentum = values.get('EK3_DRAG_MCOEF')
            if (x or 0.0) > 1.0 or (y or 0.0) > 1.0 or (momentum or 0.0) > 0.001:
                self._drag = True
            elif x is not None and y is not None and momentum is not None:
                self._drag = False
        elif name.startswith('ARSPD'):
            kind, use = values.get('ARSPD_TYPE'), values.get('ARSPD_USE')
            if kind == 0.0 or use == 0.0:
                self._sensor = False
            elif kind is not None and use is not None:
                self._sensor = use == 1.0 or None  # 2: only at zero throttle, so look and see

    def flown(self, east: float, north: float) -> None:
        """Say which wind is flown now: ``settled`` then judges the estimate against it.

        Whoever gives the wind, or reads in a log what was given, calls this several times a second
        of the vehicle's time, before the messages of that time. Without it (or 5 s after the last
        call) the estimate is judged by its own movement.

        Parameters
        ----------
        east, north : float
            Velocity of the air at the vehicle, m/s; NaN: not known.
        """
        self._settling.flown(self._t, north, east)

    @property
    def parameters(self) -> Mapping[str, float]:
        """The parameters known so far, as far as they matter here."""
        return MappingProxyType(self._parameters)

    @property
    def system(self) -> int | None:
        """MAVLink system id followed, for the time being until a vehicle's HEARTBEAT; else None."""
        return self._system

    @property
    def t(self) -> float:
        """Vehicle time of the newest message, s since boot."""
        return self._t

    @property
    def restarts(self) -> int:
        """How often the vehicle was seen to start again."""
        return self._restarts

    @property
    def ekf3_phase(self) -> WindPhase:
        """What EKF3 itself does, whether or not its wind is in use.

        Differs from the phase of :meth:`state` where that is NOT_ESTIMATED: a copter without drag
        fusion is then GROUND or INHIBITED, as in its onboard log.
        """
        return self._ekf3

    # -- whose message, and when -------------------------------------------------------------------

    def _forget_vehicle(self) -> None:
        """Begin as at boot; what outlives a boot (parameters, whom we follow) stays."""
        self._t = 0.0
        self._settling = Settling()
        self._silent_for = 0.0
        self._phase: WindPhase = WindPhase.UNKNOWN
        self._ekf3: WindPhase = WindPhase.UNKNOWN
        self._phase_since = 0.0
        self._ekf3_since = 0.0
        self._reason = 'no HEARTBEAT heard yet'
        self._ekf3_reason = self._reason
        # HEARTBEAT, EXTENDED_SYS_STATE, STATUSTEXT
        self._type: int | None = None
        self._armed: bool | None = None
        self._custom_mode = -1
        self._vtol_state: int | None = None
        self._vtol_state_t = -math.inf
        self._is_vtol = False
        self._transition_done = False
        self._active_estimator = ''
        # motion
        self._yaw = _NAN
        self._attitude_t = self._yaw_t = -math.inf
        self._velocity_n = self._velocity_e = _NAN
        self._local_t = -math.inf
        self._ground_speed = _NAN
        self._airspeed = _NAN
        self._fast_since: float | None = None
        self._fastest = 0.0
        self._height = _NAN
        self._take_off_height = 0.0  # the EKF's origin, when met in flight
        self._climbed_since: float | None = None
        # EKF_STATUS_REPORT
        self._report_t: float | None = None
        self._report_step = 0.1
        self._flags = 0
        self._gps = GpsSamples()
        self._airspeed_fusions = AirspeedFusions()
        self._heard_since = 0.0
        self._evaluated_t = -math.inf
        self._seen_inhibited = False
        # estimator
        self._estimating = False
        self._drag_seen = False
        self._yaw_aligned = False
        self._variance = WindVariance()
        # WIND
        self._wind_n = self._wind_e = _NAN
        self._wind_t = -math.inf

    def _is_ours(self, message: Any) -> bool:
        source = getattr(message, 'get_srcSystem', None)
        if source is None:
            return True
        if message.get_srcComponent() != 1:
            return False
        system = source()
        if self._is_vehicle or (message.get_type() != 'HEARTBEAT' and self._system is not None):
            return bool(system == self._system)
        return self._may_follow(system, message)

    def _may_follow(self, system: int, message: Any) -> bool:
        """Follow a system for the time being, for good once its HEARTBEAT names a vehicle."""
        if system in self._others:
            return False
        if message.get_type() == 'HEARTBEAT':
            if message.autopilot != ARDUPILOT or message.type in NO_VEHICLE:
                self._others.add(system)
                if system == self._system:
                    self._follow(None)
                return False
            self._is_vehicle = True
        if system != self._system:
            self._follow(system)
        return True

    def _follow(self, system: int | None) -> None:
        if self._system is not None:
            # What was heard until now was somebody else's.
            self._parameters.clear()
            self._drag = self._sensor = None
            self._set_given()
            self._forget_vehicle()
        self._system = system

    def _set_time(self, time_boot_ms: float) -> None:
        t = time_boot_ms * 1e-3
        if t > self._t:
            self._t = t
        elif t < self._t - _RESTART_STEP:
            self._forget_vehicle()
            self._restarts += 1
            self._t = t
            self._reason = self._ekf3_reason = 'the vehicle has started again'

    # -- one method per message; true for those that always give a state ---------------------------

    def _on_system_time(self, message: Any) -> bool:
        self._set_time(message.time_boot_ms)
        if self._t - self._evaluated_t >= 0.09:  # else a report has just done it
            self._evaluate()
        return False

    def _on_heartbeat(self, message: Any) -> bool:
        if message.autopilot != ARDUPILOT:
            return False
        self._type = message.type
        self._custom_mode = message.custom_mode
        if self._type in _FIXED_WING and self._custom_mode in _VTOL_MODES:
            self._is_vtol = True
            self._transition_done = False
        self._set_armed(bool(message.base_mode & 128))
        self._evaluate()
        return False

    def _on_extended_sys_state(self, message: Any) -> bool:
        self._vtol_state = message.vtol_state
        self._vtol_state_t = self._t
        self._evaluate()
        return False

    def _on_statustext(self, message: Any) -> bool:
        text = message.text
        if isinstance(text, (bytes, bytearray)):
            text = bytes(text).decode('ascii', 'replace')
        if text.startswith('EKF3'):
            if 'in-flight yaw alignment complete' in text or 'yaw aligned using GPS' in text:
                self._yaw_aligned = self._armed is not False
            elif text.startswith('EKF3 lane switch'):
                self._gps.lane_switch(self._t)
                self._airspeed_fusions.lane_switch()
        elif text.startswith('AHRS: ') and text.endswith(' active'):
            self._active_estimator = text[6:-7]
        elif text == 'Transition done':
            self._transition_done = True
        elif text in ('Throttle armed', 'Arming motors'):
            self._set_armed(True)
        elif text in ('Throttle disarmed', 'Disarming motors'):
            self._set_armed(False)
        else:
            return False
        self._evaluate()
        return False

    def _on_param_value(self, message: Any) -> bool:
        name = message.param_id
        if isinstance(name, (bytes, bytearray)):
            name = bytes(name).split(b'\0', 1)[0].decode('ascii', 'replace')
        if name in PARAMETERS:
            self.set_parameter(name, message.param_value)
            self._evaluate()
        return False

    def _on_attitude(self, message: Any) -> bool:
        self._set_time(message.time_boot_ms)
        if math.isfinite(message.yaw):
            self._yaw = message.yaw
            self._attitude_t = self._yaw_t = self._t
        return False

    def _on_local_position_ned(self, message: Any) -> bool:
        self._set_time(message.time_boot_ms)
        north, east = message.vx, message.vy
        if math.isfinite(north) and math.isfinite(east):
            self._velocity_n, self._velocity_e = north, east
            self._local_t = self._t
            self._set_ground_speed(math.hypot(north, east))
        self._set_height(-message.z)
        return False

    def _on_global_position_int(self, message: Any) -> bool:
        self._set_time(message.time_boot_ms)
        if self._t - self._local_t > 1.0:
            self._velocity_n, self._velocity_e = message.vx * 0.01, message.vy * 0.01
            self._set_ground_speed(math.hypot(self._velocity_n, self._velocity_e))
            self._set_height(message.relative_alt * 1e-3)
        if message.hdg != 65535 and self._t - self._attitude_t > 1.0:
            self._yaw = math.radians(message.hdg * 0.01)
            self._yaw_t = self._t
        return False

    def _on_vfr_hud(self, message: Any) -> bool:
        if math.isfinite(message.airspeed):
            self._airspeed = message.airspeed
        if math.isfinite(message.groundspeed):
            self._set_ground_speed(message.groundspeed)
        if self._t - self._yaw_t > 1.0:
            self._yaw = math.radians(message.heading)
        return False

    def _on_wind(self, message: Any) -> bool:
        speed, direction = message.speed, message.direction
        if not (math.isfinite(speed) and math.isfinite(direction)) or self._other_estimator():
            return False
        angle = math.radians(direction)
        self._wind_n, self._wind_e = -speed * math.cos(angle), -speed * math.sin(angle)
        self._wind_t = self._t
        # A copter has no wind to send but that of drag fusion; a plane sends old values, too.
        if self._armed and self._type in _MULTICOPTER and self._drag is not False:
            if speed > 0.0:
                self._drag_seen = True
            elif not self._drag_seen:
                self._seen_inhibited = True  # EKF3 has none yet: what comes will be a first guess
        self._settling.add(self._t, self._wind_n, self._wind_e)
        return False

    def _on_ekf_status_report(self, message: Any) -> bool:
        t = self._t
        heard = self._report_t
        step = 0.0 if heard is None else t - heard
        if heard is None or step > SILENCE:
            # Just attached, or lost for so long that a whole outage may have gone by.
            self._heard_since = t
            self._seen_inhibited = False
            self._gps.forget()
            self._airspeed_fusions.forget()
            self._estimating = False
            self._enter(WindPhase.UNKNOWN, 'just attached: listening for a GPS sample')
        elif step > 0.0:
            self._report_step += 0.2 * (min(step, 2.0) - self._report_step)
        flags = message.flags
        was_aiding = self._has_aiding()
        self._report_t = t
        self._flags = flags
        in_step = heard is not None and step <= SILENCE
        accepted = self._gps.report(message)
        if in_step and self._has_aiding():
            if not was_aiding:
                self._gps.begin_aiding(t)
            elif accepted:
                self._gps.accept(t - 0.5 * min(step, 1.0))
        self._airspeed_fusions.report(t, message, counts=in_step)
        self._gps.drop_lone(t, self._report_step)
        self._evaluate()
        return True

    # -- helpers on what was heard -----------------------------------------------------------------

    def _set_armed(self, armed: bool) -> None:
        if not armed:
            self._yaw_aligned = self._drag_seen = False
            self._climbed_since = None
            self._fastest = 0.0
        elif self._armed is False and self._active_estimator == 'DCM' \
                and self._flags & _POS_HORIZ_ABS:
            self._active_estimator = ''  # "EKF3 active" was lost: it has a position by now
        self._armed = armed

    def _set_ground_speed(self, speed: float) -> None:
        self._ground_speed = speed
        if speed > self._fastest:
            self._fastest = speed
        if speed <= _TAKE_OFF_SPEED:
            self._fast_since = None
        elif self._fast_since is None:
            self._fast_since = self._t

    def _set_height(self, height: float) -> None:
        if not math.isfinite(height):
            return
        self._height = height
        if not self._armed:
            self._take_off_height = height
        if height - self._take_off_height <= _YAW_ALIGN_CLIMB:
            self._climbed_since = None
        elif self._climbed_since is None:
            self._climbed_since = self._t

    def _has_aiding(self) -> bool:
        return self._flags != 0 and not self._flags & (_CONST_POS_MODE | _UNINITIALIZED)

    def _other_estimator(self) -> bool:
        return self._active_estimator not in ('', 'EKF3')

    def _shows_no_drag(self) -> bool:
        """Whether a copter whose parameters are not known has flown long without a wind."""
        return (self._drag is None and not self._drag_seen and self._climbed_since is not None
                and self._t - self._climbed_since > 5.0)

    def _airspeed_is_fused(self, within: float = 0.6) -> bool:
        if self._sensor is False:
            return False
        return self._t - self._airspeed_fusions.last <= max(within, 2.5 * self._report_step)

    def _flies_forward(self) -> bool:
        """Whether ArduPlane tells EKF3 that it flies as a fixed wing."""
        state = self._vtol_state
        if state is not None and self._t - self._vtol_state_t <= 3.0:
            return state in (_VTOL_UNDEFINED, _VTOL_FORWARD)
        if self._custom_mode in _VTOL_MODES:
            return False
        if self._is_vtol or state not in (None, _VTOL_UNDEFINED, _VTOL_FORWARD):
            # The state is not sent (any more): what else shows that the transition is over?
            return self._transition_done or self._airspeed_is_fused()
        return True

    # -- EKF3's rules ------------------------------------------------------------------------------

    def _evaluate(self) -> None:
        self._evaluated_t = self._t
        self._follow_ekf3()
        phase, reason = self._ekf3, self._ekf3_reason
        if phase is not WindPhase.UNKNOWN or self._type is not None:
            why_not = self._why_not_estimated()
            if why_not:
                phase, reason = WindPhase.NOT_ESTIMATED, why_not
        if phase is not self._phase:
            self._phase = phase
            self._phase_since = self._ekf3_since if phase is self._ekf3 else self._t
        self._reason = reason
        learning = phase is WindPhase.LEARNING
        self._settling.judge(self._t, learning=learning,
                             variance=self._variance.largest if self._variance.valid else _NAN,
                             absurd=self._why_absurd() if learning else '',
                             time_constant=self._closing_time())

    def _why_not_estimated(self) -> str:
        """Say why EKF3's wind does not exist or is not in use; empty if it is."""
        values = self._parameters
        if values.get('EK3_ENABLE') == 0.0:
            return 'EKF3 is switched off (EK3_ENABLE is 0)'
        estimator = values.get('AHRS_EKF_TYPE')
        if estimator is not None and estimator != 3.0:
            return f'EKF3 is not in use (AHRS_EKF_TYPE is {estimator:.0f}, not 3)'
        if self._type not in _FIXED_WING and self._type is not None:
            if self._type not in _MULTICOPTER:
                return 'EKF3 estimates wind for planes and multicopters only'
            if self._drag is False:
                return 'a copter without drag fusion (EK3_DRAG_* not set)'
            if self._armed and self._shows_no_drag():
                return 'a copter in flight that shows no sign of drag fusion'
        if self._armed and self._other_estimator():
            return f'{self._active_estimator} has taken over from EKF3'
        return ''

    def _follow_ekf3(self) -> None:
        if self._armed is None:
            return
        if not self._armed:
            self._estimating = False
            self._seen_inhibited = True
            self._enter(WindPhase.GROUND, 'disarmed: EKF3 keeps its wind states inhibited')
            return
        if self._report_t is None:
            self._enter(WindPhase.UNKNOWN, 'no EKF_STATUS_REPORT heard yet')
            return
        why_inhibited = self._why_inhibited()
        if why_inhibited:
            self._estimating = False
            if not self._seen_inhibited and self._drag is None and self._has_aiding() \
                    and self._type in _MULTICOPTER and not self._shows_no_drag():
                self._enter(WindPhase.UNKNOWN, 'just attached: drag fusion may be on or off')
                return
            self._seen_inhibited = True
            self._enter(WindPhase.INHIBITED, why_inhibited)
            return
        if not self._estimating and not self._begin():
            return
        self._go_on()

    def _why_inhibited(self) -> str:
        """Return why EKF3 cannot estimate wind now; empty if it can."""
        if not self._has_aiding():
            return 'no aiding: EKF3 has no position or velocity source'
        if self._type in _FIXED_WING:
            return '' if self._flies_forward() else 'flying on rotors'
        if self._type not in _MULTICOPTER:
            return 'no way to estimate wind on this kind of vehicle'
        if self._drag is False or (self._drag is None and not self._drag_seen):
            return 'no drag fusion'
        if self._yaw_aligned or self._drag_seen:
            return ''
        if self._climbed_since is not None and self._t - self._climbed_since >= 0.3:
            self._yaw_aligned = True  # without its text; holds until disarmed
            return ''
        return 'armed: drag fusion waits for a climb of 2.5 m (in-flight yaw alignment)'

    def _begin(self) -> bool:
        """Un-inhibit the wind states if EKF3 does; true once they are."""
        t = self._t
        plane = self._type in _FIXED_WING
        fused = plane and self._airspeed_fusions.count > 0 and self._airspeed_is_fused(0.3)
        fast = self._fast_since is not None and t - self._fast_since >= _EKF_DELAY
        if plane and not fast:
            if self._fast_since is None:
                if not math.isnan(self._ground_speed):
                    self._seen_inhibited = True
                    self._enter(WindPhase.INHIBITED, 'armed: waiting for 5 m/s over the ground')
                return False
            if self._seen_inhibited and not fused:
                return False
        if self._seen_inhibited:
            self._estimating = True
            if self._is_observable():
                sensor = self._sensor if self._sensor is not None else fused
                if plane:
                    self._variance.reset(self._airspeed_noise() if sensor else 400.0, t)
                else:
                    self._variance.clear()
                self._settling.begin(t, SETTLING_TIME)
                self._enter(WindPhase.INIT, self._init_reason(plane, bool(sensor)))
            else:
                self._enter(WindPhase.COAST, self._coast_reason())
            return True
        # Attached in flight: EKF3 began before we listened.
        if self._gps.last is not None:
            self._estimating = True
            if plane:
                self._variance.reset(4.0, t)
            else:
                self._variance.clear()
            self._settling.begin(t, RESETTLING_TIME)
            self._enter(WindPhase.LEARNING, 'in flight with aiding')
            return True
        if not self._flags & _POS_HORIZ_ABS or t - self._heard_since > SOURCE_TIMEOUT:
            self._estimating = True
            self._enter(WindPhase.COAST, self._coast_reason())
            return True
        return False

    def _go_on(self) -> None:
        t = self._t
        phase = self._ekf3
        if not self._is_observable():
            if phase is not WindPhase.COAST:
                self._enter(WindPhase.COAST, self._coast_reason())
            return
        if phase is WindPhase.COAST:
            # The default airspeed of dead reckoning ends now.
            self._airspeed_fusions.last = -math.inf
            if self._type in _FIXED_WING:
                self._variance.reset(400.0, t)
            self._enter(WindPhase.RELEARN, 'a position or velocity source is back')
            return
        self._advance_variance()
        age = t - self._ekf3_since
        if phase is WindPhase.INIT:
            if age >= INIT_TIME:
                self._enter(WindPhase.LEARNING, 'in flight with aiding')
        elif phase is WindPhase.RELEARN and age >= RELEARN_MIN and self._has_relearned(age):
            self._settling.begin(t, RESETTLING_TIME)
            self._enter(WindPhase.LEARNING, 'in flight with aiding')

    def _why_absurd(self) -> str:
        """Say why the estimate cannot be right, whatever it does; empty if it can."""
        speed = math.hypot(self._wind_n, self._wind_e)
        if speed > _WIND_MOST:
            return f'{speed:.0f} m/s is no wind'
        if self._type not in _FIXED_WING:
            return ''
        if not self._airspeed_is_fused():
            # Over all headings a plane is at least as fast over the ground as the wind.
            return (f'a wind of {speed:.0f} m/s, and never faster than {self._fastest:.0f} m/s '
                    'over the ground' if speed > self._fastest else '')
        implied = math.hypot(self._velocity_n - self._wind_n, self._velocity_e - self._wind_e)
        if abs(implied - self._airspeed) > _AIRSPEED_OFF * self._airspeed:
            return (f'the estimate means an airspeed of {implied:.0f} m/s, measured are '
                    f'{self._airspeed:.0f}')
        return ''

    def _closing_time(self) -> float:
        plane = self._type in _FIXED_WING
        noise = self._parameters.get('EK3_WIND_P_NSE', 0.1 if plane else 0.2)
        return (_CLOSING_PLANE if plane else _CLOSING_COPTER) / min(max(noise, 1e-3), 1.0)

    def _has_relearned(self, age: float) -> bool:
        if age >= RELEARN_MAX or self._type not in _FIXED_WING:
            return True  # drag fusion takes the variance below 1 in less than half a second
        if math.isfinite(self._yaw):
            return self._variance.north < 1.0
        return age >= (2.0 if self._sensor or self._airspeed_is_fused() else 13.0)

    def _is_observable(self) -> bool:
        accepted = self._gps.last
        if accepted is None:
            return False
        return self._t - accepted <= SOURCE_TIMEOUT

    def _advance_variance(self) -> None:
        if not self._variance.valid or self._variance.largest < 0.2:
            return  # small enough for every question asked of it
        if not math.isfinite(self._yaw):
            self._variance.clear()
            return
        speed = math.hypot(self._velocity_n - self._wind_n, self._velocity_e - self._wind_e)
        if not math.isfinite(speed) or self._t - self._wind_t > WIND_STALE:
            speed = self._airspeed if math.isfinite(self._airspeed) else 20.0
        noise = self._airspeed_noise() if self._airspeed_is_fused() else math.inf
        self._variance.advance(self._t, self._yaw, min(max(speed, 1.0), 100.0), noise)

    def _airspeed_noise(self) -> float:
        noise = self._parameters.get('EK3_EAS_M_NSE', 1.4)
        return min(max(noise, 0.5), 5.0) ** 2

    def _enter(self, phase: WindPhase, reason: str) -> None:
        self._ekf3_reason = reason
        if phase is not self._ekf3:
            self._ekf3 = phase
            self._ekf3_since = self._t

    @staticmethod
    def _init_reason(plane: bool, sensor: bool) -> str:
        if not plane:
            return 'first guess: drag fusion has begun'
        return ('first guess from airspeed, along the heading' if sensor
                else 'no first guess: no airspeed measurement')

    def _coast_reason(self) -> str:
        return 'frozen: no position or velocity sample accepted for 7 s'

    # -- the estimate ------------------------------------------------------------------------------

    def _make_state(self) -> EkfWindState:
        phase = self._phase
        t = self._t
        accepted = self._gps.last
        aiding_lost = (not self._has_aiding() or accepted is None or t - accepted > _AIDING_LATELY)
        north = east = speed = from_deg = _NAN
        if phase >= WindPhase.INIT and self._wind_t >= self._ekf3_since - WIND_STALE \
                and t - self._wind_t <= WIND_STALE:
            north, east = self._wind_n, self._wind_e
            speed = math.hypot(north, east)
            from_deg = math.degrees(math.atan2(-east, -north)) % 360.0
        settling = self._settling
        return EkfWindState(phase, self._phase_since, settling.settled, aiding_lost,
                            self._full_reason(), north, east, speed, from_deg, t,
                            settling.steady, settling.settles_in)

    def _full_reason(self) -> str:
        settling = self._settling
        if self._phase is not WindPhase.LEARNING or settling.settled:
            return self._reason
        text = f'{self._reason}; not settled: {settling.why_not}'
        if math.isnan(settling.settles_in):
            return text
        # To five seconds: it is not known better, and the text should not change all the time.
        left = 5 * max(round(settling.settles_in / 5.0), 1)
        return f'{text}, about {left} s to go'
