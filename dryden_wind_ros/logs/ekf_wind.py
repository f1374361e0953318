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
is rebuilt through SITL's own filter (:mod:`dryden_wind_ros.gusts.sitl_wind`).

No file is read here. Times are the vehicle's, seconds since boot.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dryden_wind_ros.ekf.phase import INIT_TIME, RELEARN_MAX, WindPhase, wind_error
from dryden_wind_ros.ekf.settling import settled_rows
from dryden_wind_ros.gusts.flown_wind import FlownWind
from dryden_wind_ros.logs.dataflash import Table
from dryden_wind_ros.logs.flight import Ekf
from dryden_wind_ros.logs.phases import Stretch, stretches

Floats = npt.NDArray[np.float64]

RECORDS: Mapping[str, tuple[str, ...]] = {
    'ARM': ('ArmState',), 'EV': ('Id',), 'MSG': ('Message',), 'PARM': ('Name', 'Value'),
    'POS': ('RelHomeAlt',),
    'XKF2': ('C', 'VWN', 'VWE', 'IS', 'IDX', 'IDY'), 'XKF3': ('C', 'IVT'),
    'XKV2': ('C', 'V22', 'V23')}
"""Records and columns that :func:`wind_of_dataflash` takes part in."""

REPLAYED_CORE = 100
"""From here on cores are those of ArduPilot's Replay, which adds them to the log it replays."""

INHIBITED_VARIANCE = 1e-6
"""V22 up to which the wind states are inhibited or held, (m/s)^2."""

RELEARNED_VARIANCE = 1.0
"""V22 below which relearning is over, (m/s)^2."""

INNOVATION_WINDOW = 0.42
"""Seconds before and after a row in which the innovations must change for a coast."""

_EV_ARMED = 10
_EV_DISARMED = 11
_ARMED_TEXTS = (b'Arming motors', b'Throttle armed')
_DISARMED_TEXTS = (b'Disarming motors', b'Throttle disarmed')

_PAUSE = 5.0  # s without a row: a log that pauses while disarmed goes on with another flight


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
    core : ndarray of int, or None
        Core of EKF3 that the estimate is from; None where that is not known.
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
    core: npt.NDArray[np.int64] | None = None

    def errors(self) -> tuple[Floats, Floats]:
        """Return the estimate's error at each moment: m/s, and degrees (see ``wind_error``)."""
        pairs = [wind_error(*row) for row in zip(
            self.wind_n.tolist(), self.wind_e.tolist(), self.flown_n.tolist(),
            self.flown_e.tolist(), strict=True)]
        table = np.array(pairs, dtype=np.float64).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    def spans(self) -> list[Span]:
        """Return each run of equal phases of one core, with the estimate's error in it."""
        speed_error, direction_error = self.errors()
        # A phase does not last over a pause of the log: nobody knows what was between.
        part = np.concatenate([[0], np.cumsum(np.diff(self.t) > _PAUSE)]) if len(self.t) else ()
        keys = (self.phase, part) if self.core is None else (self.phase, part, self.core)
        return [Span(
            self.phase[one.rows.start], one.start, self._end_of(one),
            _mean(self.wind_n[one.rows]), _mean(self.wind_e[one.rows]),
            _mean(self.flown_n[one.rows]), _mean(self.flown_e[one.rows]),
            _mean(speed_error[one.rows]), _largest(speed_error[one.rows]),
            _mean(np.abs(direction_error[one.rows])),
            None if self.core is None else int(self.core[one.rows.start]),
            math.nan if self.settled is None else float(self.settled[one.rows].mean()))
            for one in stretches(self.t, *keys)]

    def _end_of(self, one: Stretch) -> float:
        last = float(self.t[one.rows.stop - 1])
        return one.end if one.end - last <= _PAUSE else last


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
    core : int or None
        Core of EKF3; None where that is not known.
    settled : float
        Share of the rows, 0 to 1, in which the estimate may be believed; NaN where not judged.
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
    core: int | None = None
    settled: float = math.nan


def ekf_of(log: WindLog) -> Ekf:
    """Return EKF3's wind as the report has it."""
    speed, direction = log.errors()
    count = len(log.t)
    since = np.empty(count)
    for one in stretches(log.t, log.phase):
        since[one.rows] = one.start
    nothing = np.zeros(count, dtype=bool)
    return Ekf(
        t=log.t, phase=np.array([int(one) for one in log.phase], dtype=np.int64),
        settled=nothing if log.settled is None else log.settled, wind_e=log.wind_e,
        wind_n=log.wind_n, flown_e=log.flown_e, flown_n=log.flown_n, error_speed=speed,
        error_direction=direction, reason=('',) * count, aiding_lost=nothing, since=since)


def _mean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else math.nan


def _largest(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.max()) if known.size else math.nan


def wind_of_dataflash(tables: Mapping[str, Table], *, replayed: bool = False) -> WindLog:
    """Return EKF3's wind of one flight.

    Parameters
    ----------
    tables : mapping of str to Table
        The flight's records of `RECORDS`, as far as the log has them.
    replayed : bool
        Of a log that Replay has added its own filters to (cores 100 and up): take those.

    Returns
    -------
    WindLog
        Of a log without XKV2 records it is empty.
    """
    log = _Records(tables)
    core = log.column('XKV2', 'C').astype(np.int64)
    notes: list[str] = []
    chosen = _chosen_filter(core, replayed, notes)
    core = core[chosen]
    t = log.times('XKV2')[chosen]
    v22, v23 = (log.column('XKV2', name)[chosen] for name in ('V22', 'V23'))
    _note_switches(t, core, notes)
    phase = phases_from_variance(t.tolist(), v22.tolist(), log.armed_at(t, notes),
                                 _coasting(log, t, core).tolist())
    wind_n, wind_e = np.full(len(t), math.nan), np.full(len(t), math.nan)
    cores = log.column('XKF2', 'C')
    for one in np.unique(core).tolist():
        mine, rows = np.flatnonzero(core == one), np.flatnonzero(cores == one)
        if len(rows):
            at = np.searchsorted(log.times('XKF2')[rows], t[mine], side='right') - 1
            for wind, name in ((wind_n, 'VWN'), (wind_e, 'VWE')):
                wind[mine] = np.where(at >= 0, log.column('XKF2', name)[rows][at], math.nan)
    estimating = np.array([one >= WindPhase.INIT for one in phase], dtype=bool)
    wind_n[~estimating] = wind_e[~estimating] = math.nan
    flown = FlownWind()
    flown_n, flown_e = _flown_at(log, t, flown)
    settled = settled_rows(
        t.tolist(), phase, list(zip(wind_n.tolist(), wind_e.tolist(), strict=True)),
        list(zip(flown_n.tolist(), flown_e.tolist(), strict=True)), np.maximum(v22, v23).tolist())
    return WindLog(t, tuple(phase), wind_n, wind_e, flown_n, flown_e, v22, v23,
                   np.array(settled, dtype=np.bool_), core=core,
                   notes=(*notes, *flown.notes))


class _Records:
    """Columns of a flight's records, empty where the log has none."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._tables = tables

    def times(self, kind: str) -> Floats:
        """Return the times of a type's records, s."""
        return self._tables[kind].t if kind in self._tables else np.empty(0)

    def column(self, kind: str, name: str) -> npt.NDArray[Any]:
        """Return one column; NaN where this version's records have no such field."""
        table = self._tables.get(kind)
        if table is None:
            return np.empty(0)
        found = table.columns.get(name)
        return np.full(len(table.t), 0.0 if name == 'C' else math.nan) if found is None else found

    def parameter(self, *names: str) -> npt.NDArray[np.int64]:
        """Return the rows of PARM that are of these names."""
        wanted = np.array([name.encode() for name in names])
        return np.flatnonzero(np.isin(self.column('PARM', 'Name'), wanted))

    def armed_at(self, t: Floats, notes: list[str]) -> list[bool]:
        """Return whether the vehicle is armed at each time."""
        times = np.concatenate([self.times('ARM'), self.times('EV')])
        armed = np.concatenate([self.column('ARM', 'ArmState') != 0,
                                self.column('EV', 'Id') == _EV_ARMED]).astype(bool)
        told = np.concatenate([np.ones(len(self.times('ARM')), dtype=bool),
                               np.isin(self.column('EV', 'Id'), (_EV_ARMED, _EV_DISARMED))])
        times, armed = times[told], armed[told]
        order = np.argsort(times, kind='stable')
        times, armed = times[order], armed[order]
        if not len(times):
            # Some logs have it in a text only.
            texts = self.column('MSG', 'Message')
            armed = np.isin(texts, _ARMED_TEXTS)
            told = armed | np.isin(texts, _DISARMED_TEXTS)
            times, armed = self.times('MSG')[told], armed[told]
        if len(times):
            before = not armed[0]
        else:
            # Without LOG_DISARMED a log begins when the vehicle is armed.
            values = self.column('PARM', 'Value')[self.parameter('LOG_DISARMED')]
            before = bool(len(values) and values[-1] == 0.0)
            notes.append('no record of arming: taken to be '
                         + ('armed' if before else 'disarmed') + ' all the time')
        at = np.searchsorted(times, t, side='right')
        held = np.concatenate([[before], armed])[at].tolist()
        return [bool(one) for one in held]


def _chosen_filter(core: npt.NDArray[np.int64], replayed: bool,
                   notes: list[str]) -> npt.NDArray[np.bool_]:
    """Choose between the filter that flew and the one that Replay ran on its log afterwards."""
    of_replay = core >= REPLAYED_CORE
    if not of_replay.any():
        if replayed and len(core):
            notes.append('no replayed filter in the log: this is the one that flew')
        return ~of_replay
    cores = ', '.join(str(one) for one in np.unique(core[of_replay]))
    if of_replay.all():
        notes.append(f'only a replayed filter (core {cores}) is in the log')
        return of_replay
    notes.append(f'this is the replayed filter (core {cores}), not the one that flew' if replayed
                 else f'a replayed filter (core {cores}) is in the log too: --replayed shows it')
    return of_replay if replayed else ~of_replay


def _note_switches(t: Floats, core: npt.NDArray[np.int64], notes: list[str]) -> None:
    at = np.flatnonzero(np.diff(core)) + 1
    if not len(at):
        return
    told = ', '.join(f'from core {core[one - 1]} to {core[one]} at {t[one]:.1f} s'
                     for one in at[:6].tolist())
    more = f' and {len(at) - 6} times more' if len(at) > 6 else ''
    notes.append(f'EKF3 changed to another filter {told}{more}; the estimate may jump there')


def _coasting(log: _Records, t: Floats, core: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Tell at which rows innovations change both shortly before and shortly after."""
    coasting = np.zeros(len(t), dtype=bool)
    for one in np.unique(core).tolist():
        changes, window = [], INNOVATION_WINDOW
        for kind, names in (('XKF2', ('IS', 'IDX', 'IDY')), ('XKF3', ('IVT',))):
            rows = np.flatnonzero(log.column(kind, 'C') == one)
            times = log.times(kind)[rows]
            values = np.array([log.column(kind, name)[rows] for name in names])
            moved = (values[:, 1:] != values[:, :-1]) & np.isfinite(values[:, 1:])
            changes.append(times[1:][moved.any(axis=0)])
            if kind == 'XKF2' and len(times) > 1:  # a log with slow EKF3 records
                window = max(window, 2.1 * float(np.median(np.diff(times))))
        when = np.sort(np.concatenate(changes))
        if not len(when):
            continue
        mine = np.flatnonzero(core == one)
        at = np.searchsorted(when, t[mine], side='right')
        before = np.where(at > 0, when[np.maximum(at - 1, 0)], -math.inf)
        after = np.where(at < len(when), when[np.minimum(at, len(when) - 1)], math.inf)
        coasting[mine] = (before > t[mine] - window) & (after <= t[mine] + window)
    return coasting


def _flown_at(log: _Records, t: Floats, flown: FlownWind) -> tuple[Floats, Floats]:
    """Return the wind flown at each time, north and east; the values set are taken on the way."""
    rows = log.parameter(*FlownWind.NAMES)
    when, names, values = (log.times('PARM'), log.column('PARM', 'Name'),
                           log.column('PARM', 'Value'))
    # Piece by piece: a million Python numbers at once take more room than the log's columns.
    sets = (one for piece in np.array_split(rows, len(rows) // 20_000 + 1)
            for one in zip(when[piece].tolist(), [name.decode() for name in names[piece].tolist()],
                           values[piece].tolist(), strict=True))
    return _columns(flown_along(t.tolist(), sets, log.times('POS'),
                                log.column('POS', 'RelHomeAlt'), flown))


def flown_along(t: Sequence[float], sets: Iterable[tuple[float, str, float]], height_t: Floats,
                height: Floats, flown: FlownWind) -> list[tuple[float, float]]:
    """Return the wind flown at each time: north, east, m/s.

    Parameters
    ----------
    t : sequence of float
        Times, s, ascending.
    sets : iterable of (float, str, float)
        Time, name and value of each SIM_WIND_* as it was set, in order of time.
    height_t, height : ndarray
        Heights above home, m, and their times, s, ascending.
    flown : FlownWind
        Takes the values.
    """
    at = np.searchsorted(height_t, np.asarray(t), side='right')
    heights = np.concatenate([[math.nan], height])[at].tolist()
    coming = iter(sets)
    pending = next(coming, None)
    found = []
    for when, above in zip(t, heights, strict=True):
        while pending is not None and pending[0] <= when:
            flown.set(pending[1], pending[2], pending[0])
            pending = next(coming, None)
        flown.advance(when)
        east, north, _ = flown.at(above)
        found.append((north, east))
    return found


def _columns(pairs: list[tuple[float, float]]) -> tuple[Floats, Floats]:
    table = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


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
