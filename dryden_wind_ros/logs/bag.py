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
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dryden_wind_ros.logs import mcap_repair
from dryden_wind_ros.logs.air import air_of_sim_wind, empty_air
from dryden_wind_ros.logs.flight import (
    Air,
    Ekf,
    FlightRecord,
    RecordError,
    Settings,
    runs_of,
)

INTERFACES = 'dryden_wind_interfaces'
WIND_STATE = f'{INTERFACES}/msg/WindState'
SIM_WIND = f'{INTERFACES}/msg/SimWind'
EKF_WIND = f'{INTERFACES}/msg/EkfWind'
WANTED = (WIND_STATE, SIM_WIND, EKF_WIND)

Progress = Callable[[float], None]

_SUFFIXES = ('.mcap', '.db3')


def read_bag(path: Path, progress: Progress | None = None) -> list[FlightRecord]:
    """Read the flights in a bag, one for each namespace with wind topics.

    Parameters
    ----------
    path : Path
        Folder of a bag, or one of its files (.mcap, .db3).
    progress : callable, optional
        Called with the fraction read, 0 to 1, now and then.

    Returns
    -------
    list of FlightRecord
        In order of the namespaces' names.

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
        source = _Source(path, stack)
        vehicles: dict[str, _Vehicle] = {}
        for topic, kind, stamp, message in source.messages(progress):
            vehicles.setdefault(_namespace(topic, kind), _Vehicle()).take(kind, stamp, message)
        if not vehicles:
            raise RecordError(source.why_nothing())
        several = len(vehicles) > 1
        return [
            vehicle.record(f'{source.name} {namespace or "/"}' if several else source.name,
                           str(path), tuple(source.notes), namespace.strip('/'))
            for namespace, vehicle in sorted(vehicles.items())]


# ------------------------------------------------------------------------------- files of a bag


class _Source:
    """The messages of interest in a bag, and what is wrong with it."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.path = path
        self.name = path.name or path.resolve().name
        self.notes: list[str] = []
        self._stack = stack
        self._topics: dict[str, str] = {}
        self._total = self._read = 0
        self._bad: dict[str, str] = {}
        if not path.exists():
            raise RecordError(f'{path}: there is no such file or folder')
        self._parts = self._folder(path) if path.is_dir() else [self._file(path)]

    def _folder(self, path: Path) -> list[Path]:
        files = sorted((f for f in path.iterdir() if f.name.endswith(
            (*_SUFFIXES, *(f'{s}.zstd' for s in _SUFFIXES)))), key=_natural)
        if (path / 'metadata.yaml').is_file() and files:
            if all(_looks_whole(file) for file in files):
                return [path]
        elif files:
            self.notes.append('metadata.yaml is missing: the recording was not ended properly')
        if not files:
            there = ', '.join(sorted(f.name for f in path.iterdir())[:5]) or 'nothing'
            raise RecordError(f'{path}: no bag: no .mcap or .db3 file in this folder, only {there}'
                              if there != 'nothing' else f'{path}: the folder is empty')
        return [self._file(file) for file in files]

    def _file(self, path: Path) -> Path:
        """Return a file that can be opened: this one, or a repaired copy of it."""
        with open(path, 'rb') as file:
            start = file.read(16)
        if not start:
            raise RecordError(f'{path}: the file is empty (0 bytes): nothing was recorded')
        if start.startswith(mcap_repair.MAGIC):
            if mcap_repair.is_whole(path) and path.suffix == '.mcap':
                return path
            target = self._scratch() / f'{path.stem}.mcap'
            records = mcap_repair.save_whole_records(path, target)
            if records < 2:
                raise RecordError(f'{path}: cut off after {path.stat().st_size} bytes, before the '
                                  'first message')
            self.notes.append(f'{path.name} is cut off; everything up to there was read')
            return target
        if start.startswith(b'SQLite format 3'):
            log = path.with_name(path.name + '-wal')
            if path.suffix == '.db3' and not (log.exists() and log.stat().st_size):
                return path
            target = self._scratch() / f'{path.stem}.db3'
            shutil.copyfile(path, target)
            if log.exists():
                # What a killed recorder had written but not yet merged.
                shutil.copyfile(log, target.with_name(target.name + '-wal'))
                try:
                    with sqlite3.connect(target) as database:
                        database.execute('PRAGMA wal_checkpoint(TRUNCATE)')
                        database.execute('PRAGMA journal_mode=DELETE')
                except sqlite3.Error as error:
                    self.notes.append(f'{log.name} cannot be read ({error})')
                else:
                    self.notes.append(f'{path.name} was not closed; its {log.name} was read too')
            return target
        if start.startswith(b'#ROSBAG V'):
            raise RecordError(f'{path}: a bag of ROS 1; only bags of ROS 2 can hold a flight')
        raise RecordError(f'{path}: neither an MCAP nor an SQLite bag (it starts with '
                          f'{start[:8]!r})')

    def _scratch(self) -> Path:
        return Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix='wind_report-')))

    def messages(self, progress: Progress | None) -> Iterator[tuple[str, str, float, Any]]:
        """Yield (topic, type, time of recording in s, message)."""
        for number, part in enumerate(self._parts):
            def report(fraction: float, number: int = number) -> None:
                if progress is not None:
                    progress((number + fraction) / len(self._parts))
            yield from self._part(part, report)
        for kind, text in self._bad.items():
            self.notes.append(f'{kind}: {text}')

    def _part(self, part: Path, report: Progress) -> Iterator[tuple[str, str, float, Any]]:
        from rosbags.rosbag2 import Reader

        reader = Reader(part)
        try:
            reader.open()
        except Exception as error:  # whatever the parsers inside make of a broken file
            raise RecordError(f'{self.path}: cannot be opened as a bag: {_plain(error)}') from error
        try:
            for connection in reader.connections:
                self._topics[connection.topic] = connection.msgtype
            self._total += reader.message_count
            wanted = _worth_reading(reader.connections)
            if not wanted:
                return
            deserialize = _typestore(self.path, wanted).deserialize_cdr
            count = sum(c.msgcount for c in wanted) or 1
            for number, (connection, stamp, data) in enumerate(reader.messages(wanted)):
                try:
                    message = deserialize(data, connection.msgtype)
                except Exception as error:
                    self._bad[connection.topic] = f'a message cannot be decoded ({_plain(error)})'
                    continue
                self._read += 1
                yield connection.topic, connection.msgtype, stamp * 1e-9, message
                if not number % 1000:
                    report(number / count)
            report(1.0)
        except RecordError:
            raise
        except Exception as error:  # the file broke in the middle: what was read stands
            self.notes.append(f'{part.name} is damaged ({_plain(error)}); the {self._read} wind '
                              'messages before that were read')
        finally:
            reader.close()

    def why_nothing(self) -> str:
        """Say why there is no flight in the bag."""
        notes = ''.join(f'; {note}' for note in self.notes)
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


def _worth_reading(connections: Iterable[Any]) -> list[Any]:
    """Choose the topics to read: sim_wind only where no wind/state says the same and more."""
    stated = {_namespace(c.topic, c.msgtype) for c in connections
              if c.msgtype == WIND_STATE and c.msgcount}
    return [c for c in connections if c.msgtype in WANTED and not (
        c.msgtype == SIM_WIND and _namespace(c.topic, c.msgtype) in stated)]


def _namespace(topic: str, kind: str) -> str:
    # rsplit by the depth of the names: wind/state, sim_wind, ekf_wind.
    return topic.rsplit('/', 2 if kind == WIND_STATE else 1)[0]


def _natural(path: Path) -> list[tuple[int, str]]:
    return [(int(part), '') if part.isdigit() else (-1, part)
            for part in re.split(r'(\d+)', path.name)]


def _looks_whole(path: Path) -> bool:
    if path.suffix == '.mcap':
        return mcap_repair.is_whole(path)
    if path.suffix == '.db3':
        log = path.with_name(path.name + '-wal')
        return not (log.exists() and log.stat().st_size)
    return True


def _plain(error: Exception) -> str:
    return str(error).rstrip('.') or type(error).__name__


# ------------------------------------------------------------------------- message definitions


def _typestore(path: Path, connections: Iterable[Any]) -> Any:
    from rosbags.interfaces import MessageDefinitionFormat
    from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    found: dict[str, Any] = {}
    for connection in connections:
        definition = connection.msgdef
        if definition.format == MessageDefinitionFormat.MSG:
            found.update(get_types_from_msg(definition.data, connection.msgtype))
        elif definition.format == MessageDefinitionFormat.IDL:
            found.update(get_types_from_idl(definition.data))
        else:
            folder = _interfaces_folder()
            if folder is None:
                raise RecordError(
                    f'{path}: the bag holds no message definitions, and those of {INTERFACES} were '
                    'not found. Source a workspace that has it')
            file = folder / f'{connection.msgtype.rsplit("/", 1)[1]}.msg'
            found.update(get_types_from_msg(file.read_text(), connection.msgtype))
    store.register({name: fields for name, fields in found.items()
                    if name not in store.fielddefs or name.startswith(INTERFACES)})
    return store


def _interfaces_folder() -> Path | None:
    """Find the folder with the .msg files of dryden_wind_interfaces."""
    prefixes = [Path(p) for p in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep) if p]
    candidates = [p / 'share' / INTERFACES / 'msg' for p in prefixes]
    candidates.append(Path(__file__).resolve().parents[2] / INTERFACES / 'msg')
    return next((folder for folder in candidates if (folder / 'WindState.msg').is_file()), None)


# ---------------------------------------------------------------------------------- one vehicle

_MAX_T = 1e10
"""s: no clock in use, Unix time included, is beyond it."""

_INTEGERS = ('tick', 'draws', 'missed_ticks', 'restarts')
_FLOATS = ('t', 'height', 'airspeed', 'u', 'v', 'w', 'sigma_u', 'sigma_v', 'sigma_w', 'length_u',
           'length_v', 'length_w', 'sim_wind_spd', 'sim_wind_dir', 'sim_wind_dir_z', 'tick_rate')
_SINCE_THE_FIELD: tuple[tuple[str, Any], ...] = (
    ('ground_height', 0.0), ('model', ''), ('severity', ''), ('scenario', ''),
    ('field_spectrum', ''), ('span', 0.0), ('field_modes', 0), ('field_life', 0.0))
"""Settings that older bags lack, in the order of `Settings`, and what stands for them there."""

_EKF_FLOATS = ('since', 'wind_e', 'wind_n', 'flown_e', 'flown_n', 'error_speed', 'error_direction')


@dataclass
class _Vehicle:
    """Messages of one namespace, gathered by column."""

    states: list[tuple[Any, ...]] = field(default_factory=list)
    stamps: list[float] = field(default_factory=list)
    settings: dict[Settings, int] = field(default_factory=dict)
    began_with: dict[Settings, Settings] = field(default_factory=dict)
    ekf: list[tuple[Any, ...]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    sim_wind: list[tuple[float, ...]] = field(default_factory=list)
    timeless: int = 0

    def take(self, kind: str, stamp: float, message: Any) -> None:
        if kind == WIND_STATE:
            self._take_state(stamp, message)
        elif kind == EKF_WIND:
            self.ekf.append((
                _seconds(message.header.stamp), stamp, message.phase, message.settled,
                message.aiding_lost, *(getattr(message, name, math.nan) for name in _EKF_FLOATS)))
            self.reasons.append(message.reason)
        else:
            self.sim_wind.append((_seconds(message.header.stamp), message.tick, message.speed,
                                  message.direction, message.direction_z))

    def _take_state(self, stamp: float, message: Any) -> None:
        if not abs(message.t) < _MAX_T:
            self.timeless += 1
            return
        settings = Settings(
            message.gusts, message.method, message.seed, message.scale, message.profile,
            message.mean_wind_speed, message.mean_wind_from_deg, message.mean_wind_up,
            message.clock_origin, message.header.frame_id,
            *(getattr(message, name, none) for name, none in _SINCE_THE_FIELD))
        if settings.scenario:
            # It changes the mean wind from tick to tick; a setting is what it began with.
            of_all = replace(settings, mean_speed=0.0, mean_from_deg=0.0, mean_up=0.0)
            settings = self.began_with.setdefault(of_all, settings)
        index = self.settings.setdefault(settings, len(self.settings))
        mean, gust = message.mean, message.gust
        self.stamps.append(stamp)
        self.states.append((
            index, *(getattr(message, name, -1) for name in _INTEGERS),
            *(getattr(message, name, math.nan) for name in _FLOATS),
            mean.x, mean.y, mean.z, gust.x, gust.y, gust.z))

    def record(self, name: str, source: str, notes: tuple[str, ...],
               namespace: str = '') -> FlightRecord:
        settings = tuple(self.settings)
        missing: list[str] = []
        if self.states:
            air = self._air(settings)
        elif self.sim_wind:
            air = self._air_of_sim_wind()
            missing.append('no wind/state in the bag: only SIM_WIND_* is known, neither gusts, nor '
                           'height, nor settings')
        else:
            air = empty_air()
            missing.append("neither wind/state nor sim_wind in the bag: only EKF3's wind is known")
        if self.timeless:
            missing.append(f'{self.timeless} wind/state messages without a time that makes sense '
                           'were left out')
        if not self.ekf:
            missing.append('no ekf_wind in the bag')
        return FlightRecord(name, source, 'bag', air, settings, self._ekf(air),
                            (*notes, *missing), namespace)

    def _air(self, settings: tuple[Settings, ...]) -> Air:
        # Column by column: integers beyond 2^53 would not survive in an array of floats.
        columns = list(zip(*self.states, strict=True))
        setting, tick, draws, missed, restarts = (
            np.array(column, dtype=np.int64) for column in columns[:5])
        (t, height, airspeed, u, v, w, sigma_u, sigma_v, sigma_w, length_u, length_v, length_w,
         spd, direction, direction_z, rate, *vectors) = (
            np.array(column, dtype=np.float64) for column in columns[5:])
        return Air(
            tick=tick, run=runs_of(tick, restarts, setting, settings), setting=setting, t=t,
            draws=draws, height=height, airspeed=airspeed, gust=np.array([u, v, w]),
            sigma=np.array([sigma_u, sigma_v, sigma_w]),
            length=np.array([length_u, length_v, length_w]), mean_enu=np.array(vectors[:3]),
            gust_enu=np.array(vectors[3:]), sim_wind=np.array([spd, direction, direction_z]),
            missed=missed, restarts=restarts, rate=rate)

    def _air_of_sim_wind(self) -> Air:
        t, tick, *wind = np.array(self.sim_wind).T
        return air_of_sim_wind(t, tick.astype(np.int64), np.array(wind))

    def _ekf(self, air: Air) -> Ekf | None:
        if not self.ekf:
            return None
        columns = np.array(self.ekf, dtype=np.float64).T
        t, recorded = columns[0], columns[1]
        if self.stamps:
            # The vehicle's clock may not be the one that drives the air (Gazebo, a DDS clock).
            offset = float(np.median(np.interp(recorded, self.stamps, air.timeline()) - t))
            if abs(offset) > 2.0:
                t = t + offset
        since, wind_e, wind_n, flown_e, flown_n, error_speed, error_direction = columns[5:]
        return Ekf(t, columns[2].astype(np.int64), columns[3] != 0, wind_e, wind_n, flown_e,
                   flown_n, error_speed, error_direction, tuple(self.reasons), columns[4] != 0,
                   since)


def _seconds(stamp: Any) -> float:
    return float(stamp.sec + stamp.nanosec * 1e-9)
