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
  :class:`~dryden_wind_ros.ekf.variance.WindVariance` computes it from heading and airspeed, as EKF3
  does.

What is heard is kept by :class:`~dryden_wind_ros.ekf.vehicle_state.VehicleState`; the rules, and
where they are from, are in :mod:`dryden_wind_ros.ekf.rules`. All times are the vehicle's own,
seconds since boot.

No ROS and no MAVLink connection in here: messages are anything with ``get_type()`` and the fields
of the MAVLink message of that name, as pymavlink decodes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from .parameters import PARAMETERS, EkfParameters, text_of
from .rules import (
    EVALUATE_EVERY,
    INIT_TIME,
    RELEARN_MAX,
    RELEARN_MIN,
    SOURCE_TIMEOUT,
    WindRules,
)
from .state import (
    ALLOWED_TRANSITIONS,
    ARDUPILOT,
    NO_VEHICLE,
    EkfWindState,
    WindPhase,
    wind_error,
)
from .vehicle_state import SILENCE, VehicleState

__all__ = [
    'ALLOWED_TRANSITIONS', 'INIT_TIME', 'PARAMETERS', 'RELEARN_MAX', 'RELEARN_MIN', 'SILENCE',
    'SOURCE_TIMEOUT', 'EkfWindState', 'WindPhase', 'WindPhaseMonitor', 'wind_error',
]


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
        self._parameters = EkfParameters()
        self._given = dict(parameters or {})
        self._set_given()
        vehicle = self._vehicle = VehicleState(self._parameters)
        self._rules = WindRules(vehicle)
        self._restarts = 0
        self._silent_for = 0.0
        self._handlers: dict[str, Callable[[Any], None]] = {
            'ATTITUDE': vehicle.on_attitude,
            'EKF_STATUS_REPORT': self._on_ekf_status_report,
            'EXTENDED_SYS_STATE': self._on_extended_sys_state,
            'GLOBAL_POSITION_INT': vehicle.on_global_position_int,
            'HEARTBEAT': self._on_heartbeat,
            'LOCAL_POSITION_NED': vehicle.on_local_position_ned,
            'PARAM_VALUE': self._on_param_value,
            'STATUSTEXT': self._on_statustext,
            'SYSTEM_TIME': self._on_system_time,
            'VFR_HUD': vehicle.on_vfr_hud,
            'WIND': self._on_wind,
        }

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
        kind = message.get_type()
        handler = self._handlers.get(kind)
        if handler is None:
            return None
        rules, restarts = self._rules, self._restarts
        phase, settled = rules.phase, rules.settling.settled
        is_ours = self._is_ours(message)
        if is_ours:
            self._silent_for = 0.0
            handler(message)
            self._notice_restart()
        elif rules is self._rules:
            return None  # else: whom we followed turned out to be no vehicle
        rules = self._rules
        if (is_ours and kind == 'EKF_STATUS_REPORT') or phase is not rules.phase \
                or settled is not rules.settling.settled or restarts != self._restarts:
            return rules.state()
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
        since = self._vehicle.t
        heard = self._vehicle.report_t
        if t is not None and heard is not None and t - heard > SILENCE:
            silent_for = max(silent_for, t - heard)
            since = heard + SILENCE
        if silent_for > 0.0 and self._rules.phase is not WindPhase.UNKNOWN:
            return EkfWindState(WindPhase.UNKNOWN, since, False, True,
                                f'nothing heard of EKF3 for {silent_for:.0f} s',
                                math.nan, math.nan, math.nan, math.nan, self._vehicle.t)
        return self._rules.state()

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
        self._parameters.set(name, value)

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
        self._rules.settling.flown(self._vehicle.t, north, east)

    @property
    def parameters(self) -> Mapping[str, float]:
        """The parameters known so far, as far as they matter here."""
        return self._parameters.values

    @property
    def system(self) -> int | None:
        """MAVLink system id followed, for the time being until a vehicle's HEARTBEAT; else None."""
        return self._system

    @property
    def t(self) -> float:
        """Vehicle time of the newest message, s since boot."""
        return self._vehicle.t

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
        return self._rules.ekf3

    # -- whose message, and when -------------------------------------------------------------------

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
            self._set_given()
            self._vehicle.forget()
            self._rules = WindRules(self._vehicle)
        self._system = system

    def _notice_restart(self) -> None:
        if self._vehicle.restarts != self._restarts:
            self._restarts = self._vehicle.restarts
            self._rules = WindRules(self._vehicle, 'the vehicle has started again')

    # -- messages that may change the phase --------------------------------------------------------

    def _on_system_time(self, message: Any) -> None:
        self._vehicle.on_system_time(message)
        self._notice_restart()
        if self._vehicle.t - self._rules.evaluated_t >= EVALUATE_EVERY:
            self._rules.evaluate()

    def _on_heartbeat(self, message: Any) -> None:
        if self._vehicle.on_heartbeat(message):
            self._rules.evaluate()

    def _on_extended_sys_state(self, message: Any) -> None:
        if self._vehicle.on_extended_sys_state(message):
            self._rules.evaluate()

    def _on_statustext(self, message: Any) -> None:
        if self._vehicle.on_statustext(message):
            self._rules.evaluate()

    def _on_param_value(self, message: Any) -> None:
        name = text_of(message.param_id)
        if name in PARAMETERS:
            self._parameters.set(name, message.param_value)
            self._rules.evaluate()

    def _on_wind(self, message: Any) -> None:
        vehicle = self._vehicle
        if vehicle.on_wind(message):
            self._rules.settling.add(vehicle.t, vehicle.wind_n, vehicle.wind_e)

    def _on_ekf_status_report(self, message: Any) -> None:
        if self._vehicle.on_ekf_status_report(message):
            self._rules.attach()
        self._rules.evaluate()
