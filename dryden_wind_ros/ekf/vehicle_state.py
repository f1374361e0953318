"""What telemetry has told of one vehicle since its boot: a method for each message.

No ROS and no MAVLink connection in here: messages are anything with the fields of the MAVLink
message of that name, as pymavlink decodes them. All times are the vehicle's own, s since boot.
"""

from __future__ import annotations

import math
from typing import Any

from .parameters import EkfParameters, text_of
from .samples import AirspeedFusions, GpsSamples
from .state import ARDUPILOT

_NAN = math.nan

# EKF_STATUS_REPORT.flags
POS_HORIZ_ABS = 16
_CONST_POS_MODE = 128
_UNINITIALIZED = 1024

SILENCE = 5.0
"""Seconds without EKF_STATUS_REPORT after which the phase is no longer known."""

RESTART_STEP = 1.0
"""Seconds back in boot time that are a restart and not a late packet."""

TAKE_OFF_SPEED = 5.0
"""Speed over the ground at which EKF3 takes a plane for flying, m/s."""

_YAW_ALIGN_CLIMB = 2.5  # m, climb at which EKF3 does its final in-flight yaw alignment

FIXED_WING = frozenset((1, 19, 20, 21, 22, 23, 24, 25))
"""HEARTBEAT.type of planes."""

_MULTICOPTER = frozenset((2, 3, 4, 13, 14, 15, 29, 35))
_VTOL_MODES = frozenset((17, 18, 19, 20, 21, 22, 23))  # QSTABILIZE .. QACRO of ArduPlane
_VTOL_UNDEFINED = 0
_VTOL_FORWARD = 4


class VehicleState:
    """One vehicle, as far as its wind estimate is concerned.

    Parameters
    ----------
    parameters : EkfParameters
        What is known of its parameters; they outlive a boot.

    Attributes
    ----------
    t : float
        Time of the newest message, s since boot.
    restarts : int
        How often it was seen to start again.
    plane, copter : bool
        EKF3 estimates its wind as that of a plane, of a multicopter.
    seen_inhibited : bool
        EKF3 was seen not to estimate wind: what comes next is a first guess.
    """

    def __init__(self, parameters: EkfParameters) -> None:
        self.parameters = parameters
        self.restarts = 0
        self.forget()

    def forget(self) -> None:
        """Begin as at boot; what outlives a boot (parameters) stays."""
        self.t = 0.0
        # HEARTBEAT, EXTENDED_SYS_STATE, STATUSTEXT
        self.type: int | None = None
        self.plane = self.copter = False
        self.armed: bool | None = None
        self._custom_mode = -1
        self._vtol_state: int | None = None
        self._vtol_state_t = -math.inf
        self._is_vtol = False
        self._transition_done = False
        self.active_estimator = ''
        # motion
        self.yaw = _NAN
        self._attitude_t = self._yaw_t = -math.inf
        self.velocity_n = self.velocity_e = _NAN
        self._local_t = -math.inf
        self.ground_speed = _NAN
        self.airspeed = _NAN
        self.fast_since: float | None = None
        self.fastest = 0.0
        self._take_off_height = 0.0  # the EKF's origin, when met in flight
        self.climbed_since: float | None = None
        # EKF_STATUS_REPORT
        self.report_t: float | None = None
        self.report_step = 0.1
        self.flags = 0
        self.gps = GpsSamples()
        self.airspeed_fusions = AirspeedFusions()
        self.heard_since = 0.0
        # estimator
        self.seen_inhibited = False
        self.drag_seen = False
        self.yaw_aligned = False
        # WIND
        self.wind_n = self.wind_e = _NAN
        self.wind_t = -math.inf

    # -- one method per message --------------------------------------------------------------------

    def _set_time(self, time_boot_ms: float) -> None:
        t = time_boot_ms * 1e-3
        if t > self.t:
            self.t = t
        elif t < self.t - RESTART_STEP:
            self.forget()
            self.restarts += 1
            self.t = t

    def on_system_time(self, message: Any) -> None:
        """Take a SYSTEM_TIME."""
        self._set_time(message.time_boot_ms)

    def on_heartbeat(self, message: Any) -> bool:
        """Take a HEARTBEAT; true if it tells something new."""
        if message.autopilot != ARDUPILOT:
            return False
        before = self.type, self._custom_mode, self.armed
        self.type = message.type
        self.plane, self.copter = self.type in FIXED_WING, self.type in _MULTICOPTER
        self._custom_mode = message.custom_mode
        if self.plane and self._custom_mode in _VTOL_MODES:
            self._is_vtol = True
            self._transition_done = False
        self._set_armed(bool(message.base_mode & 128))
        return before != (self.type, self._custom_mode, self.armed)

    def on_extended_sys_state(self, message: Any) -> bool:
        """Take an EXTENDED_SYS_STATE; true if it tells something new."""
        before, self._vtol_state = self._vtol_state, message.vtol_state
        self._vtol_state_t = self.t
        return before != self._vtol_state

    def on_statustext(self, message: Any) -> bool:
        """Take a STATUSTEXT; true if it matters."""
        text = text_of(message.text)
        if text.startswith('EKF3'):
            if 'in-flight yaw alignment complete' in text or 'yaw aligned using GPS' in text:
                self.yaw_aligned = self.armed is not False
            elif text.startswith('EKF3 lane switch'):
                self.gps.lane_switch(self.t)
                self.airspeed_fusions.lane_switch()
        elif text.startswith('AHRS: ') and text.endswith(' active'):
            self.active_estimator = text[6:-7]
        elif text == 'Transition done':
            self._transition_done = True
        elif text in ('Throttle armed', 'Arming motors'):
            self._set_armed(True)
        elif text in ('Throttle disarmed', 'Disarming motors'):
            self._set_armed(False)
        else:
            return False
        return True

    def on_attitude(self, message: Any) -> None:
        """Take an ATTITUDE."""
        self._set_time(message.time_boot_ms)
        if math.isfinite(message.yaw):
            self.yaw = message.yaw
            self._attitude_t = self._yaw_t = self.t

    def on_local_position_ned(self, message: Any) -> None:
        """Take a LOCAL_POSITION_NED."""
        self._set_time(message.time_boot_ms)
        north, east = message.vx, message.vy
        if math.isfinite(north) and math.isfinite(east):
            self.velocity_n, self.velocity_e = north, east
            self._local_t = self.t
            self._set_ground_speed(math.hypot(north, east))
        self.set_height(-message.z)

    def on_global_position_int(self, message: Any) -> None:
        """Take a GLOBAL_POSITION_INT: it stands in for what is not sent."""
        self._set_time(message.time_boot_ms)
        if self.t - self._local_t > 1.0:
            self.velocity_n, self.velocity_e = message.vx * 0.01, message.vy * 0.01
            self._set_ground_speed(math.hypot(self.velocity_n, self.velocity_e))
            self.set_height(message.relative_alt * 1e-3)
        if message.hdg != 65535 and self.t - self._attitude_t > 1.0:
            self.yaw = math.radians(message.hdg * 0.01)
            self._yaw_t = self.t

    def on_vfr_hud(self, message: Any) -> None:
        """Take a VFR_HUD."""
        if math.isfinite(message.airspeed):
            self.airspeed = message.airspeed
        if math.isfinite(message.groundspeed):
            self._set_ground_speed(message.groundspeed)
        if self.t - self._yaw_t > 1.0:
            self.yaw = math.radians(message.heading)

    def on_wind(self, message: Any) -> bool:
        """Take a WIND; true if it is EKF3's."""
        speed, direction = message.speed, message.direction
        if not (math.isfinite(speed) and math.isfinite(direction)) or self.other_estimator():
            return False
        angle = math.radians(direction)
        self.wind_n, self.wind_e = -speed * math.cos(angle), -speed * math.sin(angle)
        self.wind_t = self.t
        # A copter has no wind to send but that of drag fusion; a plane sends old values, too.
        if self.armed and self.copter and self.parameters.drag is not False:
            if speed > 0.0:
                self.drag_seen = True
            elif not self.drag_seen:
                self.seen_inhibited = True  # EKF3 has none yet: what comes will be a first guess
        return True

    def on_ekf_status_report(self, message: Any) -> bool:
        """Take an EKF_STATUS_REPORT; true if it is the first, or the first after a silence."""
        t = self.t
        heard = self.report_t
        step = 0.0 if heard is None else t - heard
        attached = heard is None or step > SILENCE
        if attached:
            # Just attached, or lost for so long that a whole outage may have gone by.
            self.heard_since = t
            self.seen_inhibited = False
            self.gps.forget()
            self.airspeed_fusions.forget()
        elif step > 0.0:
            self.report_step += 0.2 * (min(step, 2.0) - self.report_step)
        was_aiding = self.has_aiding()
        self.report_t = t
        self.flags = message.flags
        accepted = self.gps.report(message)
        if not attached and self.has_aiding():
            if not was_aiding:
                self.gps.begin_aiding(t)
            elif accepted:
                self.gps.accept(t - 0.5 * min(step, 1.0))
        self.airspeed_fusions.report(t, message, counts=not attached)
        self.gps.drop_lone(t, self.report_step)
        return attached

    # -- what several messages tell ----------------------------------------------------------------

    def _set_armed(self, armed: bool) -> None:
        if not armed:
            self.yaw_aligned = self.drag_seen = False
            self.climbed_since = None
            self.fastest = 0.0
        elif self.armed is False and self.active_estimator == 'DCM' \
                and self.flags & POS_HORIZ_ABS:
            self.active_estimator = ''  # "EKF3 active" was lost: it has a position by now
        self.armed = armed

    def _set_ground_speed(self, speed: float) -> None:
        self.ground_speed = speed
        if speed > self.fastest:
            self.fastest = speed
        if speed <= TAKE_OFF_SPEED:
            self.fast_since = None
        elif self.fast_since is None:
            self.fast_since = self.t

    def set_height(self, height: float) -> None:
        """Take a height of now, m."""
        if not math.isfinite(height):
            return
        if not self.armed:
            self._take_off_height = height
        if height - self._take_off_height <= _YAW_ALIGN_CLIMB:
            self.climbed_since = None
        elif self.climbed_since is None:
            self.climbed_since = self.t

    # -- what follows from it ----------------------------------------------------------------------

    def has_aiding(self) -> bool:
        """Whether EKF3 has a source of position or velocity."""
        return self.flags != 0 and not self.flags & (_CONST_POS_MODE | _UNINITIALIZED)

    def other_estimator(self) -> bool:
        """Whether another estimator than EKF3 flies the vehicle."""
        return self.active_estimator not in ('', 'EKF3')

    def shows_no_drag(self) -> bool:
        """Whether a copter whose parameters are not known has flown long without a wind."""
        return (self.parameters.drag is None and not self.drag_seen
                and self.climbed_since is not None and self.t - self.climbed_since > 5.0)

    def airspeed_is_fused(self, within: float = 0.6) -> bool:
        """Whether airspeed was fused within the last seconds, or reports."""
        if self.parameters.sensor is False:
            return False
        return self.t - self.airspeed_fusions.last <= max(within, 2.5 * self.report_step)

    def flies_forward(self) -> bool:
        """Whether ArduPlane tells EKF3 that it flies as a fixed wing."""
        state = self._vtol_state
        if state is not None and self.t - self._vtol_state_t <= 3.0:
            return state in (_VTOL_UNDEFINED, _VTOL_FORWARD)
        if self._custom_mode in _VTOL_MODES:
            return False
        if self._is_vtol or state not in (None, _VTOL_UNDEFINED, _VTOL_FORWARD):
            # The state is not sent (any more): what else shows that the transition is over?
            return self._transition_done or self.airspeed_is_fused()
        return True
