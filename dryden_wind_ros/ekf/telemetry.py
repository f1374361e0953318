"""EKF3's wind beside the wind flown, from one vehicle's recorded telemetry.

A telemetry log of a simulated flight tells the wind that was flown as well: SITL echoes each
SIM_WIND_* that is set (PARAM_VALUE), and where the ground station's messages are in the log, so is
what it set (PARAM_SET). Through SITL's own filter that is the wind at the vehicle, against which
:class:`~dryden_wind_ros.ekf.phase.WindPhaseMonitor` judges the estimate.
"""

from __future__ import annotations

import math
from typing import Any

from dryden_wind_ros.gusts.flown_wind import FlownWind

from .phase import WindPhaseMonitor
from .rules import EVALUATE_EVERY
from .state import EkfWindState

TELL_EVERY = 0.09
"""Least time between two winds flown that the monitor is told at reports, s."""

_TAKEN = frozenset(('PARAM_VALUE', 'GLOBAL_POSITION_INT', 'SYSTEM_TIME'))


class TelemetryFollower:
    """Follows EKF3's wind and the wind flown through the messages of a log.

    Parameters
    ----------
    monitor : WindPhaseMonitor, optional
        Default: a new one.

    Attributes
    ----------
    monitor : WindPhaseMonitor
        Follows EKF3's wind.
    flown : FlownWind
        The wind flown since the vehicle's last start.
    """

    def __init__(self, monitor: WindPhaseMonitor | None = None) -> None:
        self.monitor = monitor or WindPhaseMonitor()
        self.flown = FlownWind()
        self._restarts = self.monitor.restarts
        self._system = self.monitor.system
        self._height = math.nan
        self._told_t = -math.inf

    def update(self, message: Any) -> EkfWindState | None:
        """Take a message of whatever system; return what the monitor makes of it."""
        kind = message.get_type()
        monitor = self.monitor
        if kind == 'PARAM_SET':
            # From the ground station, to the vehicle; in force at once.
            if monitor.system is not None and message.target_system in (0, monitor.system):
                self._set(message)
            return None
        if kind == 'EKF_STATUS_REPORT':
            self._tell(TELL_EVERY)
        state = monitor.update(message)
        if monitor.restarts != self._restarts or monitor.system != self._system:
            if monitor.system == self._system:
                self.flown.restart()  # the values are in its eeprom
            else:
                self.flown = FlownWind()
            self._restarts, self._system = monitor.restarts, monitor.system
            self._height = math.nan
        if kind not in _TAKEN:
            return state
        source = getattr(message, 'get_srcSystem', None)
        if source is not None and (source() != monitor.system or message.get_srcComponent() != 1):
            return state
        if kind == 'PARAM_VALUE':
            self._set(message)
        elif kind == 'GLOBAL_POSITION_INT':
            self._height = message.relative_alt * 1e-3
        elif kind == 'SYSTEM_TIME':
            self._tell(EVALUATE_EVERY)
        return state

    def wind_flown(self) -> tuple[float, float]:
        """Return the wind flown now: north, east, m/s; NaN where it is not known."""
        self.flown.advance(self.monitor.t)
        east, north, _ = self.flown.at(self._height)
        return north, east

    def _set(self, message: Any) -> None:
        name = message.param_id
        if isinstance(name, (bytes, bytearray)):
            name = bytes(name).split(b'\0', 1)[0].decode('ascii', 'replace')
        if name in FlownWind.NAMES:
            self.flown.set(name, message.param_value, self.monitor.t)

    def _tell(self, every: float) -> None:
        t = self.monitor.t
        if self.flown.known and not 0.0 <= t - self._told_t < every:
            self._told_t = t
            north, east = self.wind_flown()
            self.monitor.flown(east, north)
