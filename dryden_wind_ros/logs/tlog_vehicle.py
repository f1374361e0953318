"""One vehicle in a telemetry log: its messages, its clock, its flights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dryden_wind_ros.ekf.vehicle_state import RESTART_STEP
from dryden_wind_ros.logs.flight import FloatArray, IntArray, RecordError
from dryden_wind_ros.logs.times import sort_out
from dryden_wind_ros.logs.tlog import MESSAGES, Heard, Source, Telemetry, in_order

_TIMED = ('SYSTEM_TIME', 'ATTITUDE', 'GLOBAL_POSITION_INT', 'LOCAL_POSITION_NED')
_BLOCK = 20_000


def _vehicle(log: Telemetry, system: int | None) -> Source:
    """Choose whom to follow."""
    autopilots = [source for _, source in log.autopilots()]
    if not autopilots:
        # A log without HEARTBEAT: whoever reports what only an autopilot does.
        autopilots = [one.source for name in ('EKF_STATUS_REPORT', 'GLOBAL_POSITION_INT')
                      for one in log.heard(name) if one.source[1] == 1]
    for source in autopilots:
        if system is None or source[0] == system:
            return source
    there = ', '.join(dict.fromkeys(str(source[0]) for source in autopilots)) or 'none'
    if system is not None:
        raise RecordError(f'{log.path}: no ArduPilot vehicle with system id {system} in the log; '
                          f'there is {there}')
    raise RecordError(f'{log.path}: no ArduPilot vehicle, and so no EKF_STATUS_REPORT, among its '
                      f'{len(log)} messages')


class Vehicle:
    """What one vehicle says in a telemetry log, with its own clock.

    Parameters
    ----------
    log : Telemetry
        The log.
    system : int, optional
        System id; the first ArduPilot vehicle by default.

    Attributes
    ----------
    source : tuple of int
        System and component.
    heard : dict of str to Heard
        Its messages by type.
    flights : int
        How often it was started.
    bad : frozenset of int
        Rows of the log whose time those around them do not support.
    orders : list of Heard
        What was set by PARAM_SET, whosever.
    begins : ndarray of int
        First row of each flight but the first.
    steady_clock : bool
        Packets overtake each other by less than the monitor takes for a restart, and each flight
        begins with what it takes for one.
    """

    def __init__(self, log: Telemetry, system: int | None = None) -> None:
        self.source = _vehicle(log, system)
        self.heard: dict[str, Heard] = {
            name: one for name in MESSAGES for one in log.heard(name, self.source)}
        self.orders = log.heard('PARAM_SET')
        timed = [self.heard[name] for name in _TIMED if name in self.heard]
        rows = np.concatenate([one.rows for one in timed] or [np.empty(0, dtype=np.int64)])
        boot = np.concatenate([one.fields['time_boot_ms'] for one in timed] or [np.empty(0)]) * 1e-3
        order = np.argsort(rows, kind='stable')  # several ascending rows: merged
        rows, boot = rows[order], boot[order]
        found = sort_out(boot)
        self.flights = max(found.flights, 1)
        self.bad = frozenset(rows[~found.kept].tolist())
        self._rows, self._t = rows[found.kept], boot[found.kept]
        self._flight = found.flight[found.kept]
        self.begins: IntArray = self._rows[np.flatnonzero(np.diff(self._flight)) + 1]
        raw = self._t.copy()
        for mine in np.split(self._t, np.flatnonzero(np.diff(self._flight)) + 1):
            np.maximum.accumulate(mine, out=mine)  # packets overtake each other
        back = raw - np.append(-math.inf, self._t[:-1]) < -RESTART_STEP
        self.steady_clock = bool((back == (np.diff(self._flight, prepend=0) != 0)).all())

    @property
    def first_clock(self) -> int:
        """First row that tells a time."""
        return int(self._rows[0]) if len(self._rows) else 0

    def clock(self, rows: IntArray) -> tuple[FloatArray, IntArray]:
        """Return the newest time up to each row, s, and the number of the flight, from 0."""
        if not len(self._rows):
            return np.zeros(len(rows)), np.zeros(len(rows), dtype=np.int64)
        place = np.maximum(np.searchsorted(self._rows, rows, side='right') - 1, 0)
        return self._t[place], self._flight[place]

    def messages(self) -> Iterator[tuple[int, int, Any]]:
        """Yield (row, flight, message) of all that `TelemetryFollower` takes, as the log has it."""
        begins = self.begins.tolist()
        number = 0
        for row, message in in_order([*self.heard.values(), *self.orders], _BLOCK):
            while number < len(begins) and row >= begins[number]:
                number += 1
            if row not in self.bad:
                yield row, number, message

    @property
    def last_row(self) -> int:
        """Row of the last of its messages."""
        return max((int(one.rows[-1]) for one in self.heard.values() if len(one.rows)), default=0)
