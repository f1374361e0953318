"""Bags to flights, without a ROS installation.

Reads MCAP and SQLite bags of ``ros2 bag record`` and of ``rosbags``: a folder, a single file, and
what is left of a recording that was cut off. Message definitions are the bag's own; only a bag that
holds none (SQLite, before ROS 2 Jazzy) needs those of dryden_wind_interfaces, which are looked for
in the sourced workspace and beside this package.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

from dryden_wind_ros.logs.air import air_of_sim_wind, empty_air
from dryden_wind_ros.logs.bag_files import BagFiles
from dryden_wind_ros.logs.flight import (
    ASKED,
    FURTHER,
    Air,
    Ekf,
    FlightRecord,
    FloatArray,
    IntArray,
    RecordError,
    Settings,
    runs_of,
)
from dryden_wind_ros.logs.mcap import zstd
from dryden_wind_ros.logs.messages import Contents, Definition, Raw
from dryden_wind_ros.logs.times import sort_out

INTERFACES = 'dryden_wind_interfaces'
WIND_STATE = f'{INTERFACES}/msg/WindState'
SIM_WIND = f'{INTERFACES}/msg/SimWind'
EKF_WIND = f'{INTERFACES}/msg/EkfWind'
WANTED = (WIND_STATE, SIM_WIND, EKF_WIND)

Progress = Callable[[float], None]

_ZSTD = b'\x28\xb5\x2f\xfd'


def read_bag(path: Path, progress: Progress | None = None) -> list[FlightRecord]:
    """Read the flights in a bag: one for each namespace with wind topics and start of its clock.

    Parameters
    ----------
    path : Path
        Folder of a bag, or one of its files (.mcap, .db3).
    progress : callable, optional
        Called with the fraction read, 0 to 1, now and then.

    Returns
    -------
    list of FlightRecord
        In the natural order of the namespaces' names, and of time.

    Raises
    ------
    RecordError
        If nothing of use can be read.
    """
    try:
        import rosbags.rosbag2  # noqa: F401
    except ImportError as error:
        raise RecordError(
            f'{path}: bags are read through the Python package rosbags, which cannot be imported '
            f'({error}). Install it: python3 -m pip install rosbags') from error
    with ExitStack() as stack:
        bag = _Bag(path, stack)
        vehicles: dict[str, _Vehicle] = {}
        for number, (topic, kind, stamp, message) in enumerate(bag.messages(progress)):
            vehicles.setdefault(_namespace(topic, kind), _Vehicle()).take(
                kind, number, stamp, message)
        if not vehicles:
            raise RecordError(bag.why_nothing())
        several = len(vehicles) > 1
        name = path.name or path.resolve().name
        found = [flight for namespace, vehicle in sorted(
                     vehicles.items(), key=lambda one: natural_order(one[0]))
                 for flight in vehicle.flights(f'{name} {namespace or "/"}' if several else name,
                                               str(path), tuple(bag.notes), namespace.strip('/'))]
        if not found:
            odd = sum(vehicle.odd for vehicle in vehicles.values())
            raise RecordError(f'{path}: {odd} wind/state messages, and none of them has numbers '
                              'that can be: the bag is damaged, or of another version')
        return found


def natural_order(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts names as people do: drone1, drone2, drone10."""
    return [(int(part), '') if part.isdigit() else (-1, part)
            for part in re.split(r'(\d+)', name)]


class _Bag:
    """The messages of interest in a bag, and what is wrong with it."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.path = path
        self._files = BagFiles(path, stack)
        self.notes = self._files.notes
        self._topics: dict[str, str] = {}
        self._total = 0
        self._bad: dict[str, tuple[int, str]] = {}
        self._store: Any = None
        self._known: set[str] = set()

    def messages(self, progress: Progress | None) -> Iterator[tuple[str, str, float, Any]]:
        """Yield (topic, type, time of recording in s, message) in the order of recording."""
        waiting: list[Raw] = []  # sim_wind is only needed where no wind/state says the same
        stated: set[str] = set()
        files = self._files.files
        for number, file in enumerate(files):
            def report(fraction: float, number: int = number) -> None:
                if progress is not None:
                    progress((number + fraction) / len(files))
            try:
                for raw in file.messages(WANTED, report):
                    self._define(file.contents)
                    namespace = _namespace(raw.topic, raw.kind)
                    if raw.kind == SIM_WIND:
                        if namespace not in stated:
                            waiting.append(raw)
                        continue
                    if raw.kind == WIND_STATE:
                        stated.add(namespace)
                    yield from self._decoded(raw)
            except RecordError:
                raise
            except Exception as error:  # the file broke: what was read stands
                if not file.contents.topics:
                    self.notes.append(f'cannot be opened as a bag: {_plain(error)}')
                else:
                    self.notes.append(f'the bag is damaged ({_plain(error)})')
            report(1.0)
            self._topics.update(file.contents.topics)
            self._total += sum(file.contents.counts.values())
            self.notes += file.contents.notes
        for raw in waiting:
            if _namespace(raw.topic, raw.kind) not in stated:
                yield from self._decoded(raw)
        for topic, (count, text) in self._bad.items():
            self.notes.append(f'{topic}: {count} messages cannot be decoded ({text})')

    def _decoded(self, raw: Raw) -> Iterator[tuple[str, str, float, Any]]:
        data = raw.data
        try:
            if data[:4] == _ZSTD:  # each message compressed by itself
                data = zstd().decompress(data)
            message = self._store.deserialize_cdr(data, raw.kind)
        except Exception as error:
            count, _ = self._bad.get(raw.topic, (0, ''))
            self._bad[raw.topic] = count + 1, _plain(error)
            return
        yield raw.topic, raw.kind, raw.stamp_ns * 1e-9, message

    def _define(self, contents: Contents) -> None:
        """Learn the message types that a file defines."""
        new = {kind for kind in contents.topics.values() if kind in WANTED} - self._known
        if new:
            if self._store is None:
                from rosbags.typesys import Stores, get_typestore
                self._store = get_typestore(Stores.ROS2_JAZZY)
            self._known |= new
            _register(self._store, self.path, {
                kind: contents.definitions.get(kind, Definition('', '')) for kind in new})

    def why_nothing(self) -> str:
        """Say why there is no flight in the bag."""
        notes = ''.join(f'; {note}' for note in self.notes)
        if not self._total and any('cut off' in note for note in self.notes):
            return f'{self.path}: the recording was cut off before the first message{notes}'
        if not self._topics:
            return f'{self.path}: the bag is empty: no topic, no message{notes}'
        wanted = [t for t, kind in self._topics.items() if kind in WANTED]
        if wanted:
            return (f'{self.path}: no message on {", ".join(sorted(wanted))}: was the wind node '
                    f'running, and did its clock?{notes}')
        listed = sorted(f'{topic} ({kind.replace("/msg/", "/")})'
                        for topic, kind in self._topics.items())
        more = f' and {len(listed) - 8} more' if len(listed) > 8 else ''
        return (f'{self.path}: no wind in this bag: it needs wind/state, or at least sim_wind or '
                f'ekf_wind. It holds {self._total} messages of {len(listed)} topics: '
                f'{", ".join(listed[:8])}{more}{notes}')


def _namespace(topic: str, kind: str) -> str:
    # rsplit by the depth of the names: wind/state, sim_wind, ekf_wind.
    return topic.rsplit('/', 2 if kind == WIND_STATE else 1)[0]


def _plain(error: Exception) -> str:
    """Return what an error says, in a line: parsers quote all that they could not parse."""
    return shorten(str(error).rstrip('.'), 120, placeholder=' ...') or type(error).__name__


# ------------------------------------------------------------------------- message definitions


def _register(store: Any, path: Path, definitions: Mapping[str, Definition]) -> None:
    from rosbags.typesys import get_types_from_idl, get_types_from_msg

    found: dict[str, Any] = {}
    for kind, (encoding, text) in definitions.items():
        if encoding == 'ros2msg' and text:
            found.update(get_types_from_msg(text, kind))
        elif encoding in ('ros2idl', 'omgidl') and text:
            found.update(get_types_from_idl(text))
        else:
            folder = interfaces_folder()
            if folder is None:
                raise RecordError(
                    f'{path}: the bag holds no message definitions, and those of {INTERFACES} were '
                    'not found. Source a workspace that has it')
            file = folder / f'{kind.rsplit("/", 1)[1]}.msg'
            found.update(get_types_from_msg(file.read_text(), kind))
    store.register({name: fields for name, fields in found.items()
                    if name not in store.fielddefs})


def interfaces_folder() -> Path | None:
    """Find the folder with the .msg files of dryden_wind_interfaces."""
    prefixes = [Path(p) for p in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep) if p]
    candidates = [p / 'share' / INTERFACES / 'msg' for p in prefixes]
    candidates.append(Path(__file__).resolve().parents[2] / INTERFACES / 'msg')
    return next((folder for folder in candidates if (folder / 'WindState.msg').is_file()), None)


# ---------------------------------------------------------------------------------- one vehicle

_RESTART = 1.0
"""s that sim time goes back by where it starts again; messages that overtake each other do less."""

_MAX_WIND = 1e3
"""m/s: no wind is beyond it; a damaged message may be."""

_INTEGERS = ('tick', 'draws', 'missed_ticks', 'restarts')
_FLOATS = ('t', 'height', 'airspeed', 'u', 'v', 'w', 'sigma_u', 'sigma_v', 'sigma_w', 'length_u',
           'length_v', 'length_w', 'sim_wind_spd', 'sim_wind_dir', 'sim_wind_dir_z', 'tick_rate')
_SINCE_THE_FIELD: tuple[tuple[str, Any], ...] = (
    ('ground_height', 0.0), ('model', ''), ('severity', ''), ('scenario', ''),
    ('field_spectrum', ''), ('span', 0.0), ('field_modes', 0), ('field_life', 0.0))
"""Settings that older bags lack, in the order of `Settings`, and what stands for them there."""

_EKF_FLOATS = ('since', 'wind_e', 'wind_n', 'flown_e', 'flown_n', 'error_speed', 'error_direction')


def _asked_and_further(message: Any) -> tuple[float, ...]:
    """Return what `ASKED` and `FURTHER` name, or as many NaN of bags older than the field."""
    if not hasattr(message, 'drift'):
        return (math.nan,) * (len(ASKED) + len(FURTHER))
    place, drift, rates = message.position, message.drift, message.rates
    return (place.x, place.y, place.z, message.air_time, drift.x, drift.y, drift.z, message.age,
            message.position_is_true, message.time_offset, rates.x, rates.y, rates.z,
            message.origin_latitude, message.origin_longitude, message.origin_altitude)


@dataclass
class _Vehicle:
    """Messages of one namespace, gathered by column, each with its place in the bag."""

    states: list[tuple[Any, ...]] = field(default_factory=list)
    settings: dict[Settings, int] = field(default_factory=dict)
    began_with: dict[Settings, Settings] = field(default_factory=dict)
    ekf: list[tuple[Any, ...]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    sim_wind: list[tuple[float, ...]] = field(default_factory=list)
    odd: int = 0

    def take(self, kind: str, number: int, stamp: float, message: Any) -> None:
        """Take the message that is the `number`-th in the bag."""
        if kind == WIND_STATE:
            try:
                self._take_state(number, stamp, message)
            except (AttributeError, TypeError, ValueError):
                self.odd += 1  # the definition of it in the bag is damaged
        elif kind == EKF_WIND:
            self.ekf.append((
                _seconds(message.header.stamp), number, stamp, message.phase, message.settled,
                message.aiding_lost, *(getattr(message, name, math.nan) for name in _EKF_FLOATS)))
            self.reasons.append(message.reason)
        else:
            self.sim_wind.append((_seconds(message.header.stamp), number, message.tick,
                                  message.speed, message.direction, message.direction_z))

    def _take_state(self, number: int, stamp: float, message: Any) -> None:
        mean, gust, added = message.mean, message.gust, getattr(message, 'discrete', None)
        integers = [int(getattr(message, name, -1)) for name in _INTEGERS]
        winds = (message.u, message.v, message.w, mean.x, mean.y, mean.z, gust.x, gust.y, gust.z)
        if any(not abs(one) < 1 << 62 for one in integers) or any(
                abs(one) > _MAX_WIND for one in winds):
            self.odd += 1
            return
        settings = settings_of(message)
        if settings.scenario:
            # It changes the mean wind from tick to tick; a setting is what it began with.
            of_all = replace(settings, mean_speed=0.0, mean_from_deg=0.0, mean_up=0.0)
            settings = self.began_with.setdefault(of_all, settings)
        index = self.settings.setdefault(settings, len(self.settings))
        self.states.append((
            number, stamp, index, *integers,
            *(getattr(message, name, math.nan) for name in _FLOATS),
            mean.x, mean.y, mean.z, gust.x, gust.y, gust.z,
            *((0.0, 0.0, 0.0) if added is None else (added.x, added.y, added.z)),
            *_asked_and_further(message)))

    def flights(self, name: str, source: str, notes: tuple[str, ...],
                namespace: str) -> list[FlightRecord]:
        """Return a record for each time that the clock was started."""
        missing: list[str] = []
        if self.odd:
            missing.append(f'{self.odd} wind/state messages with numbers that cannot be were left '
                           'out')
        airs = self._airs(missing)
        ekfs = self._ekfs(missing)
        parts = _paired(airs, ekfs)
        found = []
        for number, (air, ekf) in enumerate(parts, start=1):
            more: list[str] = []
            several = len(parts) > 1
            if several:
                more.append(f'sim time starts again in the bag: flight {number} of {len(parts)}')
            if air is None:
                more.append('no air of this flight in the bag' if self.states or self.sim_wind else
                            "neither wind/state nor sim_wind in the bag: only EKF3's wind is known")
            if ekf is None:
                more.append('no ekf_wind in the bag' if not self.ekf else
                            'no ekf_wind of this flight in the bag')
            settings = tuple(self.settings)
            rows = empty_air() if air is None else air.air
            if several and settings and len(rows):
                used = list(dict.fromkeys(rows.setting.tolist()))  # only those of this flight
                settings = tuple(settings[one] for one in used)
                rows = replace(rows, setting=np.array(
                    [used.index(one) for one in rows.setting.tolist()], dtype=np.int64))
            found.append(FlightRecord(
                f'{name} flight {number}' if several else name, source, 'bag', rows, settings,
                None if ekf is None else ekf.beside(air), (*notes, *missing, *more), namespace,
                number=number if several else 0,
                no_ekf='' if ekf is not None else 'no ekf_wind in the bag'))
        return found

    def _airs(self, missing: list[str]) -> list[_AirPart]:
        if self.states:
            return self._airs_of_state(missing)
        if not self.sim_wind:
            return []
        missing.append('no wind/state in the bag: only SIM_WIND_* is known, neither gusts, nor '
                       'height, nor settings')
        table = np.array(self.sim_wind, dtype=np.float64)
        parts = []
        for rows in _flights_of(table[:, 0], 'sim_wind', missing):
            t, number, tick, *wind = table[rows].T
            parts.append(_AirPart(number.astype(np.int64), t, air_of_sim_wind(
                t, tick.astype(np.int64), np.array(wind))))
        return parts

    def _airs_of_state(self, missing: list[str]) -> list[_AirPart]:
        # Column by column: integers beyond 2^53 would not survive in an array of floats.
        columns = list(zip(*self.states, strict=True))
        number, (setting, tick, draws, missed, restarts) = (
            np.array(columns[0], dtype=np.int64),
            [np.array(column, dtype=np.int64) for column in columns[2:7]])
        stamp = np.array(columns[1], dtype=np.float64)
        (t, height, airspeed, u, v, w, sigma_u, sigma_v, sigma_w, length_u, length_v, length_w,
         spd, direction, direction_z, rate, *vectors) = (
            np.array(column, dtype=np.float64) for column in columns[7:])
        settings = tuple(self.settings)
        told = bool(np.isfinite(vectors[9]).any())
        air = Air(
            tick=tick, run=np.zeros(len(tick), dtype=np.int64), setting=setting, t=t,
            draws=draws, height=height, airspeed=airspeed, gust=np.array([u, v, w]),
            sigma=np.array([sigma_u, sigma_v, sigma_w]),
            length=np.array([length_u, length_v, length_w]), mean_enu=np.array(vectors[:3]),
            gust_enu=np.array(vectors[3:6]), sim_wind=np.array([spd, direction, direction_z]),
            missed=missed, restarts=restarts, rate=rate,
            discrete_enu=np.array(vectors[6:9]) if np.any(vectors[6:9]) else None,
            asked=np.array(vectors[9:9 + len(ASKED)]) if told else None,
            further=np.array(vectors[9 + len(ASKED):]) if told else None)
        parts = []
        for rows in _flights_of(t, 'wind/state', missing):
            part = air.rows(rows)
            parts.append(_AirPart(number[rows], stamp[rows], replace(
                part, run=runs_of(part.tick, part.restarts, part.setting, settings))))
        return parts

    def _ekfs(self, missing: list[str]) -> list[_EkfPart]:
        if not self.ekf:
            return []
        table = np.array(self.ekf, dtype=np.float64)
        return [_EkfPart(table[rows, 1].astype(np.int64), table[rows],
                         tuple(self.reasons[row] for row in rows.tolist()))
                for rows in _flights_of(table[:, 0], 'ekf_wind', missing)]


@dataclass(frozen=True)
class _AirPart:
    """The air of one flight: places in the bag, times of recording (s), rows."""

    number: IntArray
    stamp: FloatArray
    air: Air


@dataclass(frozen=True)
class _EkfPart:
    """EKF3's wind of one flight: places in the bag, columns, reasons."""

    number: IntArray
    table: FloatArray
    reasons: tuple[str, ...]

    def beside(self, air: _AirPart | None) -> Ekf:
        """Return it on the clock of the air."""
        columns = self.table.T
        t, recorded = columns[0], columns[2]
        if air is not None and len(air.stamp):
            # The vehicle's clock may not be the one that drives the air (Gazebo, a DDS clock).
            order = np.argsort(air.stamp, kind='stable')
            beside = np.interp(recorded, air.stamp[order], air.air.timeline()[order])
            offset = float(np.median(beside - t))
            if abs(offset) > 2.0:
                t = t + offset
        since, wind_e, wind_n, flown_e, flown_n, error_speed, error_direction = columns[6:]
        return Ekf(t, columns[3].astype(np.int64), columns[4] != 0, wind_e, wind_n, flown_e,
                   flown_n, error_speed, error_direction, self.reasons, columns[5] != 0, since)


def _flights_of(t: FloatArray, what: str, missing: list[str]) -> list[IntArray]:
    """Return the rows of each flight, in order of time; note those without a time."""
    found = sort_out(t, jump=_RESTART)
    bad = int((~found.kept).sum())
    if bad:
        missing.append(f'{bad} {what} messages without a time that makes sense were left out')
    rows = np.flatnonzero(found.kept)
    parts = [rows[found.flight[rows] == one] for one in range(found.flights)]
    return [part[np.argsort(t[part], kind='stable')] for part in parts]


def _paired(airs: list[_AirPart],
            ekfs: list[_EkfPart]) -> list[tuple[_AirPart | None, _EkfPart | None]]:
    """Put EKF3's wind beside the air among whose messages it was recorded."""
    beside: dict[int, list[tuple[int, int]]] = {}
    alone = []
    for at, ekf in enumerate(ekfs):
        common = [int(((ekf.number >= air.number.min()) & (ekf.number <= air.number.max())).sum())
                  for air in airs]
        if airs and not any(common):  # a latched message, from before the first tick
            apart = [min(abs(int(ekf.number[-1] - air.number.min())),
                         abs(int(ekf.number[0] - air.number.max()))) for air in airs]
            beside.setdefault(int(np.argmin(apart)), []).append((0, at))
        elif airs:
            best = int(np.argmax(common))
            beside.setdefault(best, []).append((common[best], at))
        else:
            alone.append(at)
    pairs: list[tuple[int, _AirPart | None, _EkfPart | None]] = []
    for at, air in enumerate(airs):
        mine = sorted(beside.get(at, []), reverse=True)
        pairs.append((int(air.number.min()), air, ekfs[mine[0][1]] if mine else None))
        alone += [one for _, one in mine[1:]]
    pairs += [(int(ekfs[at].number.min()), None, ekfs[at]) for at in alone]
    return [(air, ekf) for _, air, ekf in sorted(pairs, key=lambda pair: pair[0])]


def settings_of(message: Any) -> Settings:
    """Return what a WindState says was asked of the air."""
    return Settings(
        message.gusts, message.method, message.seed, message.scale, message.profile,
        message.mean_wind_speed, message.mean_wind_from_deg, message.mean_wind_up,
        message.clock_origin, message.header.frame_id,
        *(getattr(message, name, none) for name, none in _SINCE_THE_FIELD))


def _seconds(stamp: Any) -> float:
    return float(stamp.sec + stamp.nanosec * 1e-9)
