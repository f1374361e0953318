"""The wind of a recorded flight as the mean wind of a new one; see `gusts.mean_wind.Record`.

A bag holds the mean wind that blew, at every tick: it is taken as it is, and with the same seed the
gusts come back too. The log of a vehicle holds what EKF3 believed. Of that is used what it believed
while it was estimating, after the first `SETTLING` seconds; smoothed with a first-order low-pass,
whose time constant goes into the record, so that turbulence can be added less what is in the record
already; or averaged by height.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dryden_wind_ros.ekf.phase import WindPhase
from dryden_wind_ros.gusts import scenario_file
from dryden_wind_ros.gusts.air_settings import MAX_MEAN_WIND
from dryden_wind_ros.gusts.mean_wind import Record
from dryden_wind_ros.gusts.record_csv import ScenarioError, read_csv
from dryden_wind_ros.gusts.scenario import Scenario
from dryden_wind_ros.logs.flight import Air, BoolArray, Ekf, FlightRecord, FloatArray, RecordError
from dryden_wind_ros.logs.reader import read_flights

SMOOTHING = 10.0
"""Time constant that EKF3's wind is smoothed with unless told otherwise, s."""

SETTLING = 20.0
"""How long the estimate is left out after it has begun, s: a plane's was off by 3 to 8 m/s on
average in the first 5 s of recorded flights, and by about 1 m/s after 20 s."""

BIN = 10.0
"""Height of the layers that a wind by height is averaged over, m."""

BAG_SUFFIXES = ('.mcap', '.db3')
LOG_SUFFIXES = ('.bin', '.log', '.tlog', '.tlog.gz')

Progress = Callable[[float], None]


@dataclass(frozen=True)
class RecordedFlight:
    """The wind of a recorded flight.

    Attributes
    ----------
    record : Record
        The wind.
    armed_at : float or None
        When the vehicle was armed, on the record's clock, s; None: not known.
    remarks : tuple of str
        What was done to the wind, and what to know about it.
    """

    record: Record
    armed_at: float | None
    remarks: tuple[str, ...]


def open_scenario(path: Path | str, namespace: str = '') -> Scenario:
    """Open whatever may stand for a scenario: a scenario file, or a bag.

    Parameters
    ----------
    path : Path or str
        A YAML file, whose record may be a bag too, or a bag (its folder or file).
    namespace : str, optional
        Whose wind is taken of a bag with several vehicles.

    Raises
    ------
    ScenarioError
        Naming what is wrong and where.
    """
    path = Path(path).expanduser()

    def read(file: Path, by: str) -> Record:
        if by == 'time' and _is_bag(file):
            return _wind_of_bag(file, namespace)
        return read_csv(file, by)

    if _is_bag(path):
        return Scenario(name=path.name, path=str(path), record=_wind_of_bag(path, namespace))
    if path.name.lower().endswith(LOG_SUFFIXES):
        raise ScenarioError(path, [
            'the log of a vehicle is no scenario; make one of it: wind_scenario '
            f'{path.name} -o scenario.yaml'])
    return scenario_file.load(path, read)


def _is_bag(path: Path) -> bool:
    try:
        return path.is_dir() or path.suffix in BAG_SUFFIXES
    except OSError:  # no path at all, such as one that is too long
        return False


def _wind_of_bag(path: Path, namespace: str) -> Record:
    try:
        return recorded_wind(path, namespace=namespace).record
    except RecordError as error:
        raise ScenarioError(path, [str(error).removeprefix(f'{path}: ')]) from None


def recorded_wind(path: Path, *, by: str = 'time', smoothing: float = SMOOTHING,
                  namespace: str = '', progress: Progress | None = None) -> RecordedFlight:
    """Read the wind of a flight.

    Parameters
    ----------
    path : Path
        A bag, a dataflash log or a telemetry log.
    by : {'time', 'height'}, optional
        What the wind is to depend on.
    smoothing : float, optional
        Time constant of the low-pass on EKF3's wind, s; 0: none.
    namespace : str, optional
        Which vehicle of a bag with several.
    progress : callable, optional
        Called with the fraction read, 0 to 1, now and then.

    Raises
    ------
    RecordError
        If there is no wind to be had; the text says why.
    """
    flight = _chosen(read_flights(path, progress), path, namespace)
    if len(flight.air) and np.isfinite(flight.air.mean_enu).all() and flight.settings:
        return _of_air(flight, by)
    if flight.ekf is None:
        raise RecordError(f'{path}: no wind in it: neither wind/state nor an estimate of EKF3'
                          + ''.join(f'; {note}' for note in flight.notes))
    return _of_ekf(flight, flight.ekf, by, smoothing)


def _chosen(flights: list[FlightRecord], path: Path, namespace: str) -> FlightRecord:
    wanted = namespace.strip('/')
    own = [flight for flight in flights if flight.namespace == wanted]
    if not own and len({flight.namespace for flight in flights}) > 1:
        names = ', '.join(sorted({f'/{flight.namespace}' for flight in flights}))
        raise RecordError(f'{path}: it holds several vehicles, {names}, and none is '
                          f'/{wanted}; choose one')
    # One that was restarted in flight is several: the longest is what was flown.
    return max(own or flights, key=lambda flight: len(flight.air) or
               (0 if flight.ekf is None else len(flight.ekf)))


def _of_air(flight: FlightRecord, by: str) -> RecordedFlight:
    """Return the mean wind that blew, of the longest stretch in which time went on."""
    air = flight.air
    begins = np.flatnonzero(np.diff(air.t, prepend=-math.inf, append=-math.inf) <= 0.0)
    begins = np.unique([0, *begins, len(air)])
    longest = int(np.argmax(np.diff(begins)))
    air = air.rows(slice(int(begins[longest]), int(begins[longest + 1])))
    setting = flight.settings[int(air.setting[0])]
    again = (f'seed {setting.seed}, model {getattr(setting, "model", "") or "first_order"}, '
             f'method {setting.method}, scale {setting.scale:g}, gusts {setting.gusts}')
    remarks = [f'mean wind of {flight.name}; flown with {again}: the same bring back its gusts']
    if len(begins) > 2:
        remarks.append('time went back in this flight; the longest stretch was taken')
    if by == 'height':
        record, remark = _by_height(air.height, air.mean_enu.T, flight.source)
        return RecordedFlight(record, None, (*remarks, remark))
    t = air.t - setting.clock_origin
    keep = _corners(air.mean_enu.T)
    record = _record('time', t[keep], air.mean_enu.T[keep], 0.0, flight.source)
    return RecordedFlight(record, None, tuple(remarks))


def _corners(wind: FloatArray) -> BoolArray:
    """Choose the samples that differ from a neighbour: the others are on the lines between."""
    changes = np.any(np.diff(wind, axis=0) != 0.0, axis=1)
    corners: BoolArray = np.concatenate([[True], changes]) | np.concatenate([changes, [True]])
    return corners


def _of_ekf(flight: FlightRecord, ekf: Ekf, by: str, smoothing: float) -> RecordedFlight:
    estimating = np.isin(ekf.phase, [WindPhase.LEARNING, WindPhase.COAST, WindPhase.RELEARN])
    estimating &= np.isfinite(ekf.wind_e) & np.isfinite(ekf.wind_n)
    good = estimating & (ekf.t - _begun(ekf, estimating) >= SETTLING)
    remarks = [f"EKF3's wind of {flight.name}, without the {SETTLING:g} s after it began to "
               'estimate']
    if not good.any():
        if not estimating.any():
            raise RecordError(f'{flight.source}: EKF3 estimated no wind in this flight')
        good = estimating
        remarks = [f"EKF3's wind of {flight.name}; it estimated for less than {SETTLING:g} s, "
                   'and may be far off']
    t = ekf.t[good]
    wind = np.column_stack([ekf.wind_e[good], ekf.wind_n[good], np.zeros(int(good.sum()))])
    rising = np.concatenate([[True], np.diff(t) > 0.0])
    t, wind = t[rising], wind[rising]
    on_the_ground = (WindPhase.UNKNOWN, WindPhase.NOT_ESTIMATED, WindPhase.GROUND)
    off = np.flatnonzero(~np.isin(ekf.phase, on_the_ground))
    armed_at = float(ekf.t[off[0]]) if off.size and off[0] > 0 else None
    if by == 'height':
        height = _height_at(t, flight.air)
        if height is None:
            raise RecordError(f'{flight.source}: no heights in it; take the wind by time')
        record, remark = _by_height(height, wind, flight.source)
        return RecordedFlight(record, armed_at, (*remarks, remark))
    if smoothing > 0.0:
        remarks.append(f'smoothed with a first-order low-pass of {smoothing:g} s, beside what EKF3 '
                       'itself smooths')
        wind = _smoothed(t, wind, smoothing)
    keep = _thinned(t, 0.1 * smoothing)
    return RecordedFlight(
        _record('time', t[keep], wind[keep], smoothing, flight.source), armed_at, tuple(remarks))


def _begun(ekf: Ekf, estimating: BoolArray) -> FloatArray:
    """Return when the estimate of each row began, s."""
    starts = estimating & ~np.concatenate([[False], estimating[:-1]])
    index = np.maximum.accumulate(np.where(starts, np.arange(len(ekf.t)), 0))
    return ekf.t[index]


def _smoothed(t: FloatArray, wind: FloatArray, smoothing: float) -> FloatArray:
    smooth = wind.copy()
    keep = np.exp(-np.diff(t) / smoothing)
    for row, part in enumerate(keep, 1):
        smooth[row] = wind[row] + part * (smooth[row - 1] - wind[row])
    return smooth


def _thinned(t: FloatArray, step: float) -> list[int]:
    kept = [0]
    for row in range(1, len(t)):
        if t[row] - t[kept[-1]] >= step - 1e-6 or row == len(t) - 1:
            kept.append(row)
    return kept


def _height_at(t: FloatArray, air: Air) -> FloatArray | None:
    known = np.isfinite(air.height)
    if not known.any():
        return None
    height: FloatArray = np.interp(t, air.t[known], air.height[known])
    return height


def _by_height(height: FloatArray, wind: FloatArray, source: str) -> tuple[Record, str]:
    """Average a wind over layers of height; layers that were not met are left out."""
    layer = np.floor(np.maximum(height, 0.0) / BIN).astype(int)
    met = np.unique(layer[np.isfinite(height)])
    if not met.size:
        raise RecordError(f'{source}: no heights in it; take the wind by time')
    heights = np.array([height[layer == one].mean() for one in met])
    winds = np.array([wind[layer == one].mean(axis=0) for one in met])
    return _record('height', heights, winds, 0.0, source), (
        f'averaged over layers of {BIN:g} m, each as long as it was flown in; turbulence is added '
        'whole')


def _record(by: str, x: FloatArray, wind: FloatArray, smoothing: float, source: str) -> Record:
    strongest = float(np.hypot(wind[:, 0], wind[:, 1]).max())
    if not strongest <= MAX_MEAN_WIND:
        raise RecordError(f'{source}: its wind reaches {strongest:.1f} m/s; allowed are '
                          f'{MAX_MEAN_WIND:g} m/s')
    rows = [(east, north, up) for east, north, up in wind.tolist()]
    return Record(by, tuple(x.tolist()), tuple(rows), smoothing, Path(source).name)
