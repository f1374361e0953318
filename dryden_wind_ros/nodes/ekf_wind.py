"""EKF3's wind for one vehicle, as the bridge publishes it: phase, estimate, error, advice. No ROS.

Puts `WindPhaseMonitor` and `WindAdvisor` beside the wind that SITL really flies. Messages come from
the link's thread, questions from another one.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dryden_wind_ros.ekf import advice
from dryden_wind_ros.ekf.advice import Advice, WindAdvisor
from dryden_wind_ros.ekf.phase import PARAMETERS as PHASE_PARAMETERS
from dryden_wind_ros.ekf.phase import EkfWindState, WindPhaseMonitor, wind_error
from dryden_wind_ros.gusts.flown_wind import FlownWind
from dryden_wind_ros.gusts.frames import from_direction
from dryden_wind_ros.gusts.sitl_wind import sitl_wind_enu
from dryden_wind_ros.sitl.sim_wind import Wind

#: Parameters of the vehicle that phases and advice make use of.
PARAMETERS = tuple(sorted({*PHASE_PARAMETERS, *advice.PARAMETERS}))

#: Vehicle time between two samples, s; a change of phase comes at once.
PERIOD_S = 0.2

_MEMORY = 1 / 400  # of the mean and variance of the wind sent: 20 s at 20 Hz
_FEWEST_WINDS = 200


@dataclass(frozen=True)
class EkfWindSample:
    """EKF3's wind beside the wind flown.

    Attributes
    ----------
    state : EkfWindState
    flown_e, flown_n : float
        The wind flown, the way the air moves, m/s.
    error_speed, error_direction : float
        Of the estimate against it, m/s and deg; see `wind_error`.
    """

    state: EkfWindState
    flown_e: float
    flown_n: float
    error_speed: float
    error_direction: float


class EkfWindFollower:
    """Follows EKF3's wind through one vehicle's messages.

    Parameters
    ----------
    flown : FlownWind
        The wind that SITL flies.
    """

    def __init__(self, flown: FlownWind) -> None:
        self._flown = flown
        self._lock = threading.Lock()
        self._monitor = WindPhaseMonitor()
        self._advisor = WindAdvisor()
        self._sampled_at = -math.inf
        self._heading_deg = math.nan
        self._type = -1
        self._vtol_state: int | None = None
        self._mean = (0.0, 0.0)
        self._variance = 0.0
        self._winds = 0
        #: Height above home, m; the profile of SIM_WIND_T needs it.
        self.height = math.nan
        #: Whether the vehicle feels the wind given: else nobody knows what it flies.
        self.felt = True
        #: The newest sample, None before the first.
        self.newest: EkfWindSample | None = None

    def restart(self, system: int) -> None:
        """Begin again with a vehicle that was found, or restarted."""
        with self._lock:
            self._monitor = WindPhaseMonitor(self._monitor.parameters, system=system)
            self._sampled_at = -math.inf
            self.height = math.nan
            self.felt = True

    def update(self, message: Any) -> EkfWindSample | None:
        """Take one message; return a sample if one is due."""
        kind = message.get_type()
        if kind == 'SIM_STATE':
            return None  # twenty times a second, and what an estimate cannot know
        if kind == 'ATTITUDE':
            self._heading_deg = math.degrees(message.yaw)
        elif kind == 'HEARTBEAT':
            self._type = message.type
        elif kind == 'EXTENDED_SYS_STATE':
            self._vtol_state = message.vtol_state
        with self._lock:
            if kind == 'EKF_STATUS_REPORT':
                self._monitor.flown(*self._wind_flown())
            state = self._monitor.update(message)
        if state is None:
            return None
        before = self.newest.state if self.newest is not None else None
        changed = before is None or (
            state.phase, state.settled, state.since) != (before.phase, before.settled, before.since)
        if not changed and 0.0 <= state.t - self._sampled_at < PERIOD_S - 0.01:
            return None
        return self._sample(state)

    def nothing_heard(self, seconds: float) -> EkfWindSample | None:
        """Say that the vehicle is silent; return a sample if that is news."""
        with self._lock:
            state = self._monitor.nothing_heard(seconds)
        if self.newest is None or self.newest.state.phase is state.phase:
            return None
        return self._sample(state)

    def _wind_flown(self) -> tuple[float, float]:
        """Return what the estimate is judged against: east, north, m/s; NaN where nobody knows."""
        east, north, _ = self._flown.at(self.height)
        # A calm that nobody gave may be that of a simulator which takes its wind elsewhere.
        calm = not self._winds and math.hypot(east, north) == 0.0
        return (math.nan, math.nan) if calm or not self.felt else (east, north)

    def _sample(self, state: EkfWindState) -> EkfWindSample:
        self._sampled_at = state.t
        east, north, _ = self._flown.at(self.height)
        error = wind_error(state.wind_n, state.wind_e, north, east)
        self.newest = EkfWindSample(state, east, north, *error)
        return self.newest

    # -- advice

    def wind_sent(self, wind: Wind) -> None:
        """Take a wind that is given to SITL: its mean and its gusts matter for the advice."""
        east, north, _ = sitl_wind_enu(wind.speed, wind.direction, wind.direction_z)
        self._winds += 1
        weight = max(_MEMORY, 1 / self._winds)
        off = (east - self._mean[0], north - self._mean[1])
        self._mean = (self._mean[0] + weight * off[0], self._mean[1] + weight * off[1])
        squared = (1 - weight) * (off[0] ** 2 + off[1] ** 2) / 2
        self._variance += weight * (squared - self._variance)

    def advise(self, parameters: Mapping[str, float]) -> list[Advice]:
        """Return advice that was not given yet.

        Parameters
        ----------
        parameters : mapping of str to float
            The vehicle's, as far as read.
        """
        with self._lock:
            self._inform(parameters)
            if self.newest is None:
                return []
            return self._advisor.update(self.newest.state, self._heading_deg)

    def current_advice(self, parameters: Mapping[str, float]) -> list[Advice]:
        """Return all advice that holds now."""
        with self._lock:
            self._inform(parameters)
            return self._advisor.current()

    def _inform(self, parameters: Mapping[str, float]) -> None:
        for name, value in list(parameters.items()):
            self._advisor.set_parameter(name, value)
        self._advisor.vehicle = advice.vehicle_of(self._type, parameters, self._vtol_state)
        east, north = self._mean
        if self._winds:
            self._advisor.set_wind(
                math.hypot(east, north), from_direction(east, north),
                math.sqrt(self._variance) if self._winds >= _FEWEST_WINDS else math.nan)
