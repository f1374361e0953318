"""One flight as arrays: what the readers make and everything else in the report works on."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dryden_wind_ros.gusts.tick_grid import TICK_S

if TYPE_CHECKING:
    from dryden_wind_ros.logs.ekf_wind import WindLog

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

AXES = ('u', 'v', 'w')

ASKED = ('position_e', 'position_n', 'position_up', 'air_time', 'drift_e', 'drift_n', 'drift_up',
         'age')
"""Rows of `Air.asked`."""

FURTHER = ('position_is_true', 'time_offset', 'rates_p', 'rates_q', 'rates_r', 'origin_latitude',
           'origin_longitude', 'origin_altitude')
"""Rows of `Air.further`: 0 or 1, s, rad/s, degrees, m."""

MAX_GRID = 10_000_000
"""Most ticks that a record may span (139 hours)."""


class RecordError(Exception):
    """A file cannot be read; the message names it, what is wrong, and what could be read."""


@dataclass(frozen=True)
class Settings:
    """What was asked of the air, as in WindState.msg; speeds in m/s, degrees where it comes from.

    Attributes
    ----------
    gusts, method, profile : str
        As the parameters of the wind node.
    seed : int
        Seed of the draws.
    scale : float
        Factor on the gust.
    mean_speed, mean_from_deg, mean_up : float
        Mean wind; under a scenario, the one that it began with here.
    clock_origin : float
        Time from which ticks are counted, s.
    frame_id : str
        Frame of the ENU vectors.
    ground_height : float
        Height of the ground in the odometry's frame, m.
    model, severity, scenario, field_spectrum : str
        As the parameters of the wind node; '' where the record says nothing of them.
    span : float
        Wing span for the rates of the gust, m.
    field_modes : int
        Number of modes of the turbulence field.
    field_life : float
        How fast the field changes while it drifts.
    """

    gusts: str
    method: str
    seed: int
    scale: float
    profile: str
    mean_speed: float
    mean_from_deg: float
    mean_up: float
    clock_origin: float = 0.0
    frame_id: str = ''
    ground_height: float = 0.0
    model: str = ''
    severity: str = ''
    scenario: str = ''
    field_spectrum: str = ''
    span: float = 0.0
    field_modes: int = 0
    field_life: float = 0.0

    @property
    def blows_first_order(self) -> bool:
        """Whether the seeded first-order model made the gusts, where there was a mean wind."""
        return self.gusts == 'dryden' and self.model in ('', 'first_order')


@dataclass(frozen=True)
class Air:
    """The air, one row a tick recorded. NaN: not in this kind of record.

    Attributes
    ----------
    tick : ndarray of int, shape (N,)
        Number of the tick; rises within a run.
    run : ndarray of int, shape (N,)
        Number of the run: a new one begins where the air began anew.
    setting : ndarray of int, shape (N,)
        Which of `FlightRecord.settings` was in force; -1: not known.
    t : ndarray, shape (N,)
        Sim time, s.
    draws : ndarray of int, shape (N,)
        Triples of the seed's stream used up; -1: not known.
    height, airspeed : ndarray, shape (N,)
        What the model was given: m above the ground, m/s.
    gust, sigma, length : ndarray, shape (3, N)
        Rows u, v, w: gust, m/s; its standard deviation aimed at, m/s; scale length, m.
    mean_enu, gust_enu : ndarray, shape (3, N)
        East, north, up, the way the air moves, m/s.
    sim_wind : ndarray, shape (3, N)
        SIM_WIND_SPD (m/s), SIM_WIND_DIR (degrees, from), SIM_WIND_DIR_Z (degrees, up).
    missed, restarts : ndarray of int, shape (N,)
        The node's counts of ticks without a clock message, and of new beginnings; -1: not known.
    rate : ndarray, shape (N,)
        Ticks really reached per second of sim time, Hz.
    discrete_enu : ndarray, shape (3, N), or None
        The part of the gust that discrete gusts have, east, north, up, m/s; None: none flew.
    asked : ndarray, shape (8, N), or None
        Where (east, north, up, m) and when (s) the air was asked for, its drift (east, north, up,
        m) and its age, which a field needs; None: not recorded.
    further : ndarray, shape (8, N), or None
        As `FURTHER` names them; None: not recorded.
    """

    tick: IntArray
    run: IntArray
    setting: IntArray
    t: FloatArray
    draws: IntArray
    height: FloatArray
    airspeed: FloatArray
    gust: FloatArray
    sigma: FloatArray
    length: FloatArray
    mean_enu: FloatArray
    gust_enu: FloatArray
    sim_wind: FloatArray
    missed: IntArray
    restarts: IntArray
    rate: FloatArray
    discrete_enu: FloatArray | None = None
    asked: FloatArray | None = None
    further: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.tick)

    @property
    def turbulence(self) -> FloatArray:
        """The gust without discrete gusts, rows u, v, w, m/s, shape (3, N)."""
        if self.discrete_enu is None:
            return self.gust
        speed = np.hypot(self.mean_enu[0], self.mean_enu[1])
        with np.errstate(invalid='ignore', divide='ignore'):
            east, north = self.mean_enu[:2] / speed
        to_east, to_north, up = self.discrete_enu
        added = np.array([to_east * east + to_north * north, to_east * north - to_north * east, up])
        return np.where(speed > 0.0, self.gust - added, self.gust)

    def rows(self, chosen: BoolArray | IntArray | slice) -> Air:
        """Return some of the rows."""
        columns = ((field.name, getattr(self, field.name)) for field in fields(self))
        return Air(**{name: column[..., chosen] for name, column in columns if column is not None})

    @property
    def has_model(self) -> bool:
        """Whether the record says what the gust model aimed at."""
        return bool(np.isfinite(self.length).any())

    def timeline(self) -> FloatArray:
        """Return times that never go back, s, shape (N,): sim time, and 1 s between two runs.

        A run that begins where the last one ended (the air was restarted in flight) keeps its time.
        """
        starts = np.flatnonzero(np.diff(self.run)) + 1
        t = self.t.copy()
        for start in starts:
            if t[start] <= t[start - 1] or t[start] - t[start - 1] > MAX_GRID * TICK_S:
                t[start:] += t[start - 1] + 1.0 - t[start]
        return t


@dataclass(frozen=True)
class Ekf:
    """EKF3's wind, one row a message; see EkfWind.msg. NaN: does not exist.

    Attributes
    ----------
    t : ndarray, shape (N,)
        Time on the clock of the flight's `Air`, s.
    phase : ndarray of int, shape (N,)
        Phase, numbered as in EkfWind.msg.
    settled : ndarray of bool, shape (N,)
        The estimate may be believed.
    wind_e, wind_n, flown_e, flown_n : ndarray, shape (N,)
        Estimate and wind flown, the way the air moves, m/s.
    error_speed, error_direction : ndarray, shape (N,)
        Length of (estimate - flown), m/s; direction of the estimate minus direction flown, degrees.
    reason : tuple of str
        Why this phase, of each message.
    aiding_lost : ndarray of bool, shape (N,)
        No source of position or velocity was accepted lately.
    since : ndarray, shape (N,)
        Vehicle time at which the phase began, s.
    """

    t: FloatArray
    phase: IntArray
    settled: BoolArray
    wind_e: FloatArray
    wind_n: FloatArray
    flown_e: FloatArray
    flown_n: FloatArray
    error_speed: FloatArray
    error_direction: FloatArray
    reason: tuple[str, ...]
    aiding_lost: BoolArray
    since: FloatArray

    def __len__(self) -> int:
        return len(self.t)


@dataclass(frozen=True)
class FlightRecord:
    """One vehicle's flight.

    Attributes
    ----------
    name : str
        Short name: the file's, with the namespace where a bag holds several vehicles.
    source : str
        Path of the file.
    kind : {'bag', 'dataflash', 'tlog'}
        What it was read from.
    air : Air
        The air by tick, possibly of no rows.
    settings : tuple of Settings
        Those that were in force, in order of their first use.
    ekf : Ekf or None
        EKF3's wind, if recorded.
    notes : tuple of str
        What was wrong with the file, or is missing in it.
    namespace : str
        Of the vehicle's topics, without slashes at its ends.
    number : int
        Which flight of that vehicle in the file, from 1; 0 if it is the only one. A new one begins
        where the vehicle's clock starts again.
    wind_log : WindLog or None
        EKF3's wind in the vehicle's own terms, of dataflash and telemetry logs.
    no_ekf : str
        Why there is no EKF3 wind; '' if there is.
    """

    name: str
    source: str
    kind: str
    air: Air
    settings: tuple[Settings, ...]
    ekf: Ekf | None
    notes: tuple[str, ...] = ()
    namespace: str = ''
    number: int = 0
    wind_log: WindLog | None = None
    no_ekf: str = ''


def runs_of(tick: IntArray, restarts: IntArray, setting: IntArray,
            settings: tuple[Settings, ...]) -> IntArray:
    """Number the runs of the air.

    Parameters
    ----------
    tick, restarts, setting : ndarray of int, shape (N,)
        As in `Air`.
    settings : tuple of Settings
        What `setting` counts in.

    Returns
    -------
    ndarray of int, shape (N,)
        0, ... : rises where the tick does not, where `restarts` changes, and where seed, method or
        clock origin do.
    """
    streams: dict[tuple[int, str, float], int] = {}
    stream = np.array([streams.setdefault((s.seed, s.method, s.clock_origin), len(streams))
                       for s in settings] or [0], dtype=np.int64)[setting]
    new = (np.diff(tick) <= 0) | (np.diff(restarts) != 0) | (np.diff(stream) != 0)
    return np.concatenate([np.zeros(min(1, len(tick)), dtype=np.int64), np.cumsum(new)])
