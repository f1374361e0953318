"""EKF3's wind phases, exactly, from the records of a dataflash log; and the wind really flown.

The log has what telemetry lacks: the variances of the wind states (XKV2.V22, V23, twice a second,
of the core in use) and the innovations. So the phases follow from it without guessing:

* V22 at or below 1e-6 is *inhibited* or *coast*. (Zero would not do: it alternates with -1e-8.)
  In a coast the sideslip, drag and airspeed innovations go on changing (XKF2.IS, IDX, IDY and
  XKF3.IVT); while inhibited they are frozen. Disarmed, inhibited is *ground*.
* The first V22 above that is *init* for 1.0 s, after a coast *relearn* until it is below 1.0, for
  20 s at most.
* All the rest is *learning*.

The wind flown is not logged. SITL makes it from SIM_WIND_*, whose changes are (PARM records), so it
is rebuilt through SITL's own filter (:mod:`dryden_wind_ros.gusts.flown_wind`).

No file is read here: records are anything with ``get_type()`` and the fields of the log's record of
that name, as pymavlink's DFReader gives them. Times are the vehicle's, seconds since boot.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dryden_wind_ros.ekf.phase import INIT_TIME, RELEARN_MAX, WindPhase, wind_error
from dryden_wind_ros.gusts.flown_wind import FlownWind

Floats = npt.NDArray[np.float64]

RECORDS = ('ARM', 'EV', 'PARM', 'POS', 'XKF2', 'XKF3', 'XKV2')
"""Records that :class:`DataflashWind` takes part in."""

INHIBITED_VARIANCE = 1e-6
"""V22 up to which the wind states are inhibited or held, (m/s)^2."""

RELEARNED_VARIANCE = 1.0
"""V22 below which relearning is over, (m/s)^2."""

INNOVATION_WINDOW = 0.42
"""Seconds before and after a row in which the innovations must change for a coast."""

_EV_ARMED = 10
_EV_DISARMED = 11


@dataclass(frozen=True)
class WindLog:
    """EKF3's wind over one flight, by column: entry i of every array belongs to the same moment.

    Attributes
    ----------
    t : ndarray
        Vehicle time, s since boot.
    phase : tuple of WindPhase
        Phase at that time.
    wind_n, wind_e : ndarray
        Estimate, the velocity of the air towards north and east, m/s; NaN where there is none.
    flown_n, flown_e : ndarray
        Wind flown, the same way; NaN where it is not known.
    variance_n, variance_e : ndarray
        Variance of the two states, (m/s)^2; NaN where it is not known.
    settled : ndarray of bool, or None
        Where the estimate may be believed; None where that was not judged.
    notes : tuple of str
        What the reader should know of how this was made.
    """

    t: Floats
    phase: tuple[WindPhase, ...]
    wind_n: Floats
    wind_e: Floats
    flown_n: Floats
    flown_e: Floats
    variance_n: Floats
    variance_e: Floats
    settled: npt.NDArray[np.bool_] | None = None
    notes: tuple[str, ...] = ()

    def errors(self) -> tuple[Floats, Floats]:
        """Return the estimate's error at each moment: m/s, and degrees (see ``wind_error``)."""
        pairs = [wind_error(*row) for row in zip(
            self.wind_n.tolist(), self.wind_e.tolist(), self.flown_n.tolist(),
            self.flown_e.tolist(), strict=True)]
        table = np.array(pairs, dtype=np.float64).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    def spans(self) -> list[Span]:
        """Return each run of equal phases with the estimate's error in it."""
        speed_error, direction_error = self.errors()
        spans = []
        begin = 0
        for end in range(1, len(self.t) + 1):
            if end < len(self.t) and self.phase[end] is self.phase[begin]:
                continue
            rows = slice(begin, end)
            until = self.t[end] if end < len(self.t) else self.t[-1]
            spans.append(Span(
                self.phase[begin], float(self.t[begin]), float(until),
                _mean(self.wind_n[rows]), _mean(self.wind_e[rows]),
                _mean(self.flown_n[rows]), _mean(self.flown_e[rows]),
                _mean(speed_error[rows]), _largest(speed_error[rows]),
                _mean(np.abs(direction_error[rows]))))
            begin = end
        return spans


@dataclass(frozen=True)
class Span:
    """One phase from its start to its end, with means over it (NaN where not known).

    Attributes
    ----------
    phase : WindPhase
        The phase.
    start, end : float
        Vehicle time, s.
    wind_n, wind_e, flown_n, flown_e : float
        Mean estimate and mean wind flown, m/s.
    error, error_max : float
        Mean and largest length of (estimate - flown), m/s.
    error_direction : float
        Mean of the absolute direction error, degrees.
    """

    phase: WindPhase
    start: float
    end: float
    wind_n: float
    wind_e: float
    flown_n: float
    flown_e: float
    error: float
    error_max: float
    error_direction: float


def _mean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else math.nan


def _largest(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.max()) if known.size else math.nan


@dataclass
class DataflashWind:
    """Collects the records of a log and makes a :class:`WindLog` of them."""

    _rows: list[tuple[float, int, float, float]] = field(default_factory=list)
    _winds: dict[int, tuple[list[float], list[tuple[float, float]]]] = field(default_factory=dict)
    _innovations: dict[tuple[int, str], tuple[float, ...]] = field(default_factory=dict)
    _changes: dict[int, list[float]] = field(default_factory=dict)
    _steps: dict[int, list[float]] = field(default_factory=dict)
    _armed: list[tuple[float, bool]] = field(default_factory=list)
    _flown: FlownWind = field(default_factory=FlownWind)
    _wind_sets: list[tuple[float, str, float]] = field(default_factory=list)
    _heights: list[tuple[float, float]] = field(default_factory=list)
    _log_disarmed: float | None = None

    def add(self, record: Any) -> None:
        """Take one record; those of other types are passed over."""
        kind = record.get_type()
        if kind not in RECORDS:
            return
        t = record.TimeUS * 1e-6
        if kind == 'XKV2':
            self._rows.append((t, record.C, record.V22, record.V23))
        elif kind == 'XKF2':
            times, values = self._winds.setdefault(record.C, ([], []))
            times.append(t)
            values.append((record.VWN, record.VWE))
            self._see(t, record.C, kind, (record.IS, record.IDX, record.IDY))
        elif kind == 'XKF3':
            self._see(t, record.C, kind, (record.IVT,))
        elif kind == 'ARM':
            self._armed.append((t, bool(record.ArmState)))
        elif kind == 'EV':
            if record.Id in (_EV_ARMED, _EV_DISARMED):
                self._armed.append((t, record.Id == _EV_ARMED))
        elif kind == 'PARM':
            if record.Name in FlownWind.NAMES:
                self._wind_sets.append((t, record.Name, record.Value))
            elif record.Name == 'LOG_DISARMED':
                self._log_disarmed = record.Value
        elif kind == 'POS':
            self._heights.append((t, record.RelHomeAlt))

    def _see(self, t: float, core: int, kind: str, values: tuple[float, ...]) -> None:
        before = self._innovations.get((core, kind))
        self._innovations[core, kind] = values
        if before is not None and values != before:
            self._changes.setdefault(core, []).append(t)

    def finish(self) -> WindLog:
        """Return the flight; of a log without XKV2 records it is empty."""
        rows = sorted(self._rows)
        notes = []
        armed = sorted(self._armed, key=lambda one: one[0])
        if not armed:
            # Without LOG_DISARMED a log begins when the vehicle is armed.
            start_armed = self._log_disarmed == 0.0
            notes.append('no record of arming: taken to be '
                         + ('armed' if start_armed else 'disarmed') + ' all the time')
        else:
            start_armed = not armed[0][1]
        arm_times = [t for t, _ in armed]
        is_armed = []
        coasting = []
        for t, core, _, _ in rows:
            at = bisect_right(arm_times, t)
            is_armed.append(armed[at - 1][1] if at else start_armed)
            coasting.append(_changes_around(self._changes.get(core, []), t, self._window(core)))
        phase = phases_from_variance([row[0] for row in rows], [row[2] for row in rows],
                                     is_armed, coasting)
        estimates = [self._wind_at(t, core) if one >= WindPhase.INIT else (math.nan, math.nan)
                     for (t, core, _, _), one in zip(rows, phase, strict=True)]
        flown = self._flown_at([row[0] for row in rows])
        return WindLog(
            np.array([row[0] for row in rows], dtype=np.float64), tuple(phase),
            *_columns(estimates), *_columns(flown),
            *_columns([(row[2], row[3]) for row in rows]),
            notes=(*notes, *self._flown.notes))

    def _window(self, core: int) -> float:
        times = self._winds.get(core, ([], []))[0]
        if len(times) < 2:
            return INNOVATION_WINDOW
        step = float(np.median(np.diff(np.array(times))))
        return max(INNOVATION_WINDOW, 2.1 * step)  # a log with slow EKF3 records

    def _wind_at(self, t: float, core: int) -> tuple[float, float]:
        times, values = self._winds.get(core, ([], []))
        at = bisect_right(times, t)
        return values[at - 1] if at else (math.nan, math.nan)

    def _flown_at(self, times: list[float]) -> list[tuple[float, float]]:
        """Return the wind flown at each time; the values set are taken up on the way."""
        sets = iter(sorted(self._wind_sets, key=lambda one: one[0]))
        heights = sorted(self._heights)
        height_times = [t for t, _ in heights]
        pending = next(sets, None)
        flown = []
        for t in times:
            while pending is not None and pending[0] <= t:
                at, name, value = pending
                self._flown.set(name, value, at)
                pending = next(sets, None)
            below = bisect_right(height_times, t)
            self._flown.advance(t)
            east, north, _ = self._flown.at(heights[below - 1][1] if below else math.nan)
            flown.append((north, east))
        return flown


def _columns(pairs: list[tuple[float, float]]) -> tuple[Floats, Floats]:
    table = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _changes_around(changes: list[float], t: float, window: float) -> bool:
    """Whether there is a change both in the window before ``t`` and in that after it."""
    at = bisect_right(changes, t)
    return (at > 0 and changes[at - 1] > t - window
            and at < len(changes) and changes[at] <= t + window)


def phases_from_variance(t: Sequence[float], variance: Sequence[float], armed: Sequence[bool],
                         innovating: Sequence[bool]) -> list[WindPhase]:
    """Return the phase of each row of the log.

    Parameters
    ----------
    t : sequence of float
        Times of the rows, s, ascending.
    variance : sequence of float
        V22, (m/s)^2.
    armed : sequence of bool
        Whether the vehicle is armed.
    innovating : sequence of bool
        Whether the innovations change around the row.
    """
    phases: list[WindPhase] = []
    phase = WindPhase.UNKNOWN
    since = 0.0
    for at, v22, is_armed, changes in zip(t, variance, armed, innovating, strict=True):
        before = phase
        if not v22 > INHIBITED_VARIANCE:
            if changes and is_armed:
                phase = WindPhase.COAST
            else:
                phase = WindPhase.INHIBITED if is_armed else WindPhase.GROUND
        elif before in (WindPhase.GROUND, WindPhase.INHIBITED):
            phase = WindPhase.INIT
        elif before is WindPhase.COAST:
            phase = WindPhase.RELEARN
        elif (before is WindPhase.INIT and at - since < INIT_TIME - 1e-3) or (
                before is WindPhase.RELEARN and v22 >= RELEARNED_VARIANCE
                and at - since < RELEARN_MAX - 1e-3):
            pass
        else:
            phase = WindPhase.LEARNING
        if phase is not before:
            since = at
        phases.append(phase)
    return phases
