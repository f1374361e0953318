"""Bags for tests: air stepped by SeededAir, written with rosbags as the wind node publishes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rosbags.interfaces import Nodetype
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from dryden_wind_ros.gusts.air import SeededAir
from dryden_wind_ros.gusts.air_settings import AirSettings
from dryden_wind_ros.gusts.tick_grid import TICK_NS, TICK_S

MSG = Path(__file__).resolve().parents[2] / 'dryden_wind_interfaces' / 'msg'

Change = tuple[float, Callable[[SeededAir], object]]


def typestore() -> Any:
    """Return a typestore that knows dryden_wind_interfaces."""
    store = get_typestore(Stores.ROS2_JAZZY)
    types: dict[str, Any] = {}
    for file in sorted(MSG.glob('*.msg')):
        name = f'dryden_wind_interfaces/msg/{file.stem}'
        types.update(get_types_from_msg(file.read_text(), name))
    store.register(types)
    return store


STORE = typestore()


def make(kind: str, **values: Any) -> Any:
    """Return a message of a type such as 'dryden_wind_interfaces/msg/SimWind'.

    A field of it that is not given is zero, empty or false, as in a message that ROS makes.
    """
    for name, field in STORE.fielddefs[kind][1]:
        if name not in values:
            values[name] = _zero(*field)
    return STORE.types[kind](**values)


def _zero(node: Any, what: Any) -> Any:
    if node is Nodetype.NAME:
        return make(what)
    if node is Nodetype.BASE:
        return '' if what[0] == 'string' else False if what[0] == 'bool' else 0
    return [_zero(*what[0]) for _ in range(what[1])]


def stamp_of(time_ns: int, frame: str = 'map') -> Any:
    """Return a header."""
    time = make('builtin_interfaces/msg/Time', sec=time_ns // 10**9, nanosec=time_ns % 10**9)
    return make('std_msgs/msg/Header', stamp=time, frame_id=frame)


@dataclass(frozen=True)
class Sample:
    """A message to be recorded: topic, type, time of recording (ns), content."""

    topic: str
    kind: str
    time_ns: int
    message: Any


def wind_state(air: SeededAir) -> Any:
    """Return the WindState of the newest tick."""
    tick, settings, scales = air.newest, air.settings, air.scales(air.newest.height)
    assert tick is not None
    vector = STORE.types['geometry_msgs/msg/Vector3']
    return make(
        'dryden_wind_interfaces/msg/WindState', header=stamp_of(tick.time_ns), tick=tick.tick,
        t=tick.time_ns * 1e-9, clock_origin=air.grid.origin_ns * 1e-9, draws=tick.draws,
        gusts=settings.gusts, method=settings.method, seed=settings.seed, scale=settings.scale,
        profile=settings.profile, mean_wind_speed=tick.mean.speed,
        mean_wind_from_deg=tick.mean.from_deg % 360.0, mean_wind_up=tick.mean.up,
        ground_height=settings.ground_height,
        height=tick.height, airspeed=tick.airspeed, u=tick.gust[0], v=tick.gust[1], w=tick.gust[2],
        sigma_u=scales.sigma_u, sigma_v=scales.sigma_v, sigma_w=scales.sigma_w,
        length_u=scales.length_u, length_v=scales.length_v, length_w=scales.length_w,
        mean=vector(*tick.mean_enu), gust=vector(*tick.gust_enu),
        sim_wind_spd=tick.sim_wind.speed, sim_wind_dir=tick.sim_wind.direction,
        sim_wind_dir_z=tick.sim_wind.direction_z, missed_ticks=air.grid.missed,
        tick_rate=air.grid.rate, restarts=air.restarts, model=settings.model,
        severity=settings.severity, span=settings.span, field_spectrum=settings.field_spectrum,
        field_modes=settings.field_modes, field_life=settings.field_life, **_asked(tick))


def _asked(tick: Any) -> dict[str, Any]:
    asked = tick.asked
    if asked is None:
        return {}
    return {'position': STORE.types['geometry_msgs/msg/Point'](*asked.position),
            'air_time': asked.air_time, 'age': asked.age,
            'drift': STORE.types['geometry_msgs/msg/Vector3'](*asked.drift)}


def fly(settings: AirSettings, seconds: float, *,
        height: Callable[[float], float] = lambda _: 10.0,
        velocity: Callable[[float], tuple[float, float, float]] = lambda _: (0.0, 0.0, 0.0),
        place: Callable[[float], tuple[float, float]] = lambda _: (0.0, 0.0),
        start: float = 0.0, missed: Callable[[int], bool] = lambda _: False,
        changes: Sequence[Change] = (), namespace: str = '') -> Iterator[Sample]:
    """Yield wind/state and sim_wind of a flight.

    Parameters
    ----------
    settings : AirSettings
        At the start.
    seconds : float
        Length, s of sim time.
    height, velocity : callable
        Of sim time, s: m above the ground; east, north, up over the ground, m/s.
    place : callable
        Of sim time, s: east, north, m.
    start : float
        Sim time of the first tick, s.
    missed : callable
        Of the number of a tick: no clock message is heard for it.
    changes : sequence of (time, callable)
        What is done to the air in flight.
    """
    air = SeededAir(settings)
    todo = sorted(changes, key=lambda change: change[0])
    first = round(start / TICK_S)
    for k in range(first, first + round(seconds / TICK_S) + 1):
        while todo and todo[0][0] <= k * TICK_S:
            todo.pop(0)[1](air)
        t = k * TICK_S
        air.odometry((k - 1) * TICK_NS, (*place(t), height(t)), velocity(t))
        if missed(k):
            continue
        air.advance(k * TICK_NS)
        recorded = k * TICK_NS + 10**18
        yield Sample(f'{namespace}/wind/state', 'dryden_wind_interfaces/msg/WindState', recorded,
                     wind_state(air))
        tick = air.newest
        assert tick is not None
        yield Sample(f'{namespace}/sim_wind', 'dryden_wind_interfaces/msg/SimWind', recorded, make(
            'dryden_wind_interfaces/msg/SimWind', header=stamp_of(tick.time_ns), tick=tick.tick,
            speed=tick.sim_wind.speed, direction=tick.sim_wind.direction,
            direction_z=tick.sim_wind.direction_z, turbulence=air.settings.turbulence,
            profile=air.settings.profile))


PHASES = ('unknown', 'not_estimated', 'ground', 'inhibited', 'init', 'learning', 'coast', 'relearn')


def ekf_winds(phases: Sequence[tuple[float, float, str]],
              flown: Callable[[float], tuple[float, float]],
              estimate: Callable[[float], tuple[float, float]],
              namespace: str = '') -> Iterator[Sample]:
    """Yield ekf_wind at 5 Hz: (start, end, phase) in s; winds east, north, m/s, of time."""
    nan = math.nan
    for start, end, name in phases:
        for k in range(round(start * 5), round(end * 5)):
            t = k / 5
            estimating = name in PHASES[4:]
            (fe, fn), (e, n) = flown(t), estimate(t) if estimating else (nan, nan)
            turn = math.degrees(math.atan2(e, n) - math.atan2(fe, fn))
            message = make(
                'dryden_wind_interfaces/msg/EkfWind', header=stamp_of(round(t * 1e9), ''),
                phase=PHASES.index(name), phase_name=name, since=start,
                settled=name == 'learning' and t - start > 5.0, aiding_lost=name == 'coast',
                reason=f'made to be {name}', wind_e=e, wind_n=n, speed=math.hypot(e, n),
                from_deg=math.degrees(math.atan2(-e, -n)) % 360.0, flown_e=fe, flown_n=fn,
                error_speed=math.hypot(e - fe, n - fn), error_direction=turn)
            yield Sample(f'{namespace}/ekf_wind', 'dryden_wind_interfaces/msg/EkfWind',
                         round(t * 1e9) + 10**18, message)


def write_bag(path: Path, samples: Iterable[Sample], storage: str = 'mcap') -> Path:
    """Write a bag in order of recording; `storage` is 'mcap' or 'sqlite3'."""
    writer = Writer(path, version=9, storage_plugin=StoragePlugin[storage.upper()])
    with writer:
        connections: dict[str, Any] = {}
        for sample in sorted(samples, key=lambda s: s.time_ns):
            if sample.topic not in connections:
                connections[sample.topic] = writer.add_connection(
                    sample.topic, sample.kind, typestore=STORE)
            writer.write(connections[sample.topic], sample.time_ns,
                         STORE.serialize_cdr(sample.message, sample.kind))
    return path
