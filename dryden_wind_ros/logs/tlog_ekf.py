"""EKF3's wind along a telemetry log: its phase at each EKF_STATUS_REPORT.

The rules are those of :class:`~dryden_wind_ros.ekf.phase.WindPhaseMonitor`; what it does message by
message is here done for the messages at which it decides. Where a log's clock is not what that
needs, it gets every message.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dryden_wind_ros.ekf.parameters import PARAMETERS, EkfParameters, text_of
from dryden_wind_ros.ekf.phase import WindPhaseMonitor
from dryden_wind_ros.ekf.rules import EVALUATE_EVERY, WindRules
from dryden_wind_ros.ekf.state import WindPhase
from dryden_wind_ros.ekf.telemetry import TELL_EVERY, TelemetryFollower
from dryden_wind_ros.ekf.vehicle_state import FIXED_WING, VehicleState
from dryden_wind_ros.gusts.flown_wind import FlownWind
from dryden_wind_ros.logs.flight import BoolArray
from dryden_wind_ros.logs.tlog import Heard, Progress, in_order
from dryden_wind_ros.logs.tlog_motion import Motion
from dryden_wind_ros.logs.tlog_vehicle import Vehicle

_KEPT = ('EKF_STATUS_REPORT', 'HEARTBEAT', 'STATUSTEXT', 'WIND')
_OFTEN = 1.0     # s, of EXTENDED_SYS_STATE that says the same again
_BLOCK = 50_000
_REPORTED = 500  # reports between two words of progress


class EkfMoment(NamedTuple):
    """EKF3's wind at one EKF_STATUS_REPORT.

    Attributes
    ----------
    flight : int
        Number of the flight within the log, from 0.
    t : float
        Vehicle time, s since boot.
    phase, ekf3_phase : WindPhase
        The phase, and what EKF3 itself does, whether or not its wind is in use.
    wind_n, wind_e : float
        Estimate, the velocity of the air towards north and east, m/s; NaN where there is none.
    flown_n, flown_e : float
        Wind flown, the same way.
    settled : bool
        The estimate may be believed.
    notes : tuple of str
        What cannot be followed of the wind flown.
    """

    flight: int
    t: float
    phase: WindPhase
    ekf3_phase: WindPhase
    wind_n: float
    wind_e: float
    flown_n: float
    flown_e: float
    settled: bool
    notes: tuple[str, ...]


def follow_ekf(vehicle: Vehicle, progress: Progress | None = None) -> Iterator[EkfMoment]:
    """Yield EKF3's wind at each EKF_STATUS_REPORT of a vehicle.

    Parameters
    ----------
    vehicle : Vehicle
        The vehicle.
    progress : callable, optional
        Called with the fraction done, 0 to 1, now and then.
    """
    moments = _follow_fast(vehicle) if vehicle.steady_clock else follow_all(vehicle)
    reports = vehicle.heard.get('EKF_STATUS_REPORT')
    total = 1 if reports is None else len(reports.rows) + 1
    for done, moment in enumerate(moments):
        if progress is not None and not done % _REPORTED:
            progress(done / total)
        yield moment


def follow_all(vehicle: Vehicle) -> Iterator[EkfMoment]:
    """Yield the same, with every message handed to the monitor."""
    follower = TelemetryFollower(WindPhaseMonitor(system=vehicle.source[0]))
    monitor = follower.monitor
    before = 0
    for _, number, message in vehicle.messages():
        if number != before:
            before = number
            follower.flown.restart()
        state = follower.update(message)
        if state is not None and message.get_type() == 'EKF_STATUS_REPORT':
            yield EkfMoment(number, state.t, state.phase, monitor.ekf3_phase, state.wind_n,
                            state.wind_e, *follower.wind_flown(), state.settled,
                            follower.flown.notes)


# -- only the messages at which something is decided -----------------------------------------------


def _follow_fast(log: Vehicle) -> Iterator[EkfMoment]:
    heard = _deciding(log)
    moments = [one.rows if one.kind.name != 'PARAM_VALUE' else one.rows[_named(one, PARAMETERS)]
               for one in heard if one.kind.name not in ('WIND', 'PARAM_SET')]
    rows = np.sort(np.concatenate(moments)) if moments else np.empty(0, dtype=np.int64)
    motion = Motion(log, rows, log.clock(rows)[1])
    given = any(_named(one, FlownWind.NAMES).any() for one in heard
                if one.kind.name in ('PARAM_VALUE', 'PARAM_SET'))
    return _Follower(log, motion, given=given).run(heard)


class _Follower:
    """What `TelemetryFollower` is for messages as they come."""

    def __init__(self, log: Vehicle, motion: Motion, *, given: bool) -> None:
        self._log = log
        self._given = given  # else nothing can be said of the wind flown
        self._motion = motion
        self._moments = motion.moments()
        self._vehicle = VehicleState(EkfParameters())
        self._rules = WindRules(self._vehicle)
        self._flown = FlownWind()
        self._told_t = -math.inf
        self._height = math.nan
        # Only drag fusion, of a copter, asks how high it has climbed.
        beats = log.heard.get('HEARTBEAT')
        self._climbs = beats is None or not set(beats.fields['type'].tolist()) <= FIXED_WING

    def run(self, heard: list[Heard]) -> Iterator[EkfMoment]:
        """Yield a moment for each report."""
        vehicle, flown = self._vehicle, self._flown
        system = self._log.source[0]
        before = 0
        for number, t, message in _timed(self._log, heard):
            if number != before:
                before = number
                vehicle.forget()
                self._rules = WindRules(vehicle, 'the vehicle has started again')
                flown.restart()
            vehicle.t = t
            kind = message.get_type()
            if kind == 'EKF_STATUS_REPORT':
                self._move(t)
                yield self._report(number, t, message)
            elif kind == 'WIND':
                if vehicle.on_wind(message):
                    self._rules.settling.add(t, vehicle.wind_n, vehicle.wind_e)
            elif kind == 'PARAM_SET':
                if message.target_system in (0, system):
                    flown.set(text_of(message.param_id), message.param_value, t)
            elif kind == 'PARAM_VALUE':
                self._take_value(t, text_of(message.param_id), message.param_value)
            else:
                self._move(t)
                self._hear(kind, t, message)

    def _report(self, number: int, t: float, message: Any) -> EkfMoment:
        vehicle, rules, flown = self._vehicle, self._rules, self._flown
        self._tell(t, TELL_EVERY)
        if vehicle.on_ekf_status_report(message):
            rules.attach()
        rules.evaluate()
        wind_n, wind_e = rules.estimate()
        east = north = math.nan
        if self._given:
            flown.advance(t)
            east, north, _ = flown.at(self._height)
        return EkfMoment(number, t, rules.phase, rules.ekf3, wind_n, wind_e, north, east,
                         rules.settling.settled, flown.notes)

    def _hear(self, kind: str, t: float, message: Any) -> None:
        vehicle, rules = self._vehicle, self._rules
        if kind == 'SYSTEM_TIME':
            if t - rules.evaluated_t >= EVALUATE_EVERY:
                rules.evaluate()
            self._tell(t, EVALUATE_EVERY)
        elif (vehicle.on_heartbeat if kind == 'HEARTBEAT' else
              vehicle.on_statustext if kind == 'STATUSTEXT' else
              vehicle.on_extended_sys_state)(message):
            rules.evaluate()

    def _take_value(self, t: float, name: str, value: float) -> None:
        if name in PARAMETERS:
            self._move(t)
            self._vehicle.parameters.set(name, value)
            self._rules.evaluate()
        else:
            self._flown.set(name, value, t)

    def _move(self, t: float) -> None:
        """Take the motion until now."""
        vehicle = self._vehicle
        (vehicle.yaw, vehicle.velocity_n, vehicle.velocity_e, vehicle.ground_speed, since, most,
         vehicle.airspeed, self._height, begin, end) = next(self._moments)
        vehicle.fast_since = since if since == since else None
        if most > vehicle.fastest:
            vehicle.fastest = most
        if self._climbs and begin < end:
            for vehicle.t, height in self._motion.heights(begin, end):
                vehicle.set_height(height)
            vehicle.t = t

    def _tell(self, t: float, every: float) -> None:
        if self._flown.known and not 0.0 <= t - self._told_t < every:
            self._told_t = t
            self._flown.advance(t)
            east, north, _ = self._flown.at(self._height)
            self._rules.settling.flown(t, north, east)


def _deciding(log: Vehicle) -> list[Heard]:
    """Return the messages at which the monitor decides, or that it has to see one by one."""
    chosen = [log.heard[name] for name in _KEPT if name in log.heard]
    if (states := log.heard.get('EXTENDED_SYS_STATE')) is not None:
        chosen.append(_some(states, _news(log, states)))
    if (clocks := log.heard.get('SYSTEM_TIME')) is not None:
        chosen.append(_some(clocks, _unreported(log, clocks)))
    if (values := log.heard.get('PARAM_VALUE')) is not None:
        chosen.append(_some(values, _named(values, PARAMETERS | FlownWind.NAMES)))
    return chosen + [_some(one, _named(one, FlownWind.NAMES)) for one in log.orders]


def _some(heard: Heard, chosen: BoolArray) -> Heard:
    return replace(heard, rows=heard.rows[chosen], fields=heard.fields[chosen])


def _named(heard: Heard, names: frozenset[str]) -> BoolArray:
    return np.isin(heard.fields['param_id'], [name.encode() for name in sorted(names)])


def _news(log: Vehicle, states: Heard) -> BoolArray:
    """Leave out what says the same again within a second: it holds for three."""
    t, flight = log.clock(states.rows)
    state = states.fields['vtol_state']
    new = np.ones(len(t), dtype=bool)
    new[1:] = (np.diff(state) != 0) | (np.diff(flight) != 0) | (np.diff(t // _OFTEN) != 0.0)
    last = np.ones(len(t), dtype=bool)
    last[:-1] = (np.diff(t) > _OFTEN) | (np.diff(flight) != 0)
    return new | last


def _unreported(log: Vehicle, clocks: Heard) -> BoolArray:
    """Return those that come long after the newest report: the phase is decided anew there."""
    t, flight = log.clock(clocks.rows)
    usable = ~np.isin(clocks.rows, list(log.bad))
    reports = log.heard.get('EKF_STATUS_REPORT')
    if reports is None or not len(reports.rows):
        return usable
    reported_t, reported_in = log.clock(reports.rows)
    before = np.searchsorted(reports.rows, clocks.rows) - 1
    # The wind flown may not have been told with the newest report, but with the one before.
    long = t - reported_t[before] >= EVALUATE_EVERY - TELL_EVERY - 1e-6
    chosen: BoolArray = usable & (long | (before < 0) | (reported_in[before] != flight))
    return chosen


def _timed(log: Vehicle, heard: list[Heard]) -> Iterator[tuple[int, float, Any]]:
    """Yield (flight, time, message) in order of the log."""
    rows = np.sort(np.concatenate([one.rows for one in heard] + [np.empty(0, dtype=np.int64)]))
    t, flight = log.clock(rows)
    t[rows < log.first_clock] = 0.0  # as the monitor has it before it hears of one
    at = zip(_numbers(flight), _numbers(t), in_order(heard, _BLOCK), strict=True)
    for number, now, (_, message) in at:
        yield number, now, message


def _numbers(values: npt.NDArray[Any]) -> Iterator[Any]:
    for begin in range(0, len(values), _BLOCK):
        yield from values[begin:begin + _BLOCK].tolist()
