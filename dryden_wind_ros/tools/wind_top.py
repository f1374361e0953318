"""A live screen of the air of every vehicle that can be heard, for a terminal.

``ros2 run dryden_wind_ros wind_top`` finds all topics of the types WindState and EkfWind, whatever
their namespaces and whenever they appear. Where the output is not a terminal it prints one line a
vehicle and second.

Only the newest message of each topic is taken, four times a second, so that a simulation at ten
times real time costs no more than one in real time.
"""

from __future__ import annotations

import argparse
import io
import itertools
import math
import os
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from dryden_wind_ros import ending
from dryden_wind_ros.nodes import common
from dryden_wind_ros.pipes import pipe_safe

DRAW_S = 0.25
"""Wall time between two pictures, s."""

LINES_S = 1.0
"""Wall time between two lines of a vehicle where the output is no terminal, s."""

STALE_S = 2.0
"""Wall time without news after which a vehicle is shown as stale, s."""

PATIENCE_S = 5.0
"""Wall time without any vehicle after which lines, too, say what is listened for, s."""

WIDE = 110
"""Columns from which on a vehicle is shown in two halves, side by side."""

RIGHT = 52
"""Columns of the right half."""

NEWEST_QOS = QoSProfile(
    history=HistoryPolicy.KEEP_LAST, depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)

WIND_STATE = 'dryden_wind_interfaces/msg/WindState'
EKF_WIND = 'dryden_wind_interfaces/msg/EkfWind'

PHASE_STYLES = {
    'unknown': 'bright_black', 'not_estimated': 'bright_black', 'ground': 'blue',
    'inhibited': 'yellow', 'init': 'magenta', 'learning': 'green', 'coast': 'red',
    'relearn': 'dark_orange',
}
GUST_STYLES = ('cyan', 'yellow', 'red')
"""Within one, two and beyond two standard deviations."""

ARROWS = '↑↗→↘↓↙←↖'
SPARKS = '▁▂▃▄▅▆▇█'


# ------------------------------------------------------------------------------ what is known


@dataclass
class Vehicle:
    """What was heard of one vehicle.

    Attributes
    ----------
    name : str
        Its namespace, ``/`` for none.
    state, ekf : message or None
        The newest WindState and EkfWind.
    state_at, ekf_at : float
        When they came, wall time, s.
    alive : bool
        Whether anybody still publishes about it.
    gusts : deque
        (wall time, sim time, u, v, w) of the last samples.
    """

    name: str
    state: Any = None
    ekf: Any = None
    state_at: float = -math.inf
    ekf_at: float = -math.inf
    alive: bool = True
    gusts: deque[tuple[float, float, float, float, float]] = field(
        default_factory=lambda: deque(maxlen=300))

    @property
    def heard_at(self) -> float:
        """When the newest message came, wall time, s."""
        return max(self.state_at, self.ekf_at)

    def hear_state(self, message: Any, now: float) -> None:
        """Take a WindState."""
        if self.gusts and message.t < self.gusts[-1][1]:
            self.gusts.clear()
        if not self.gusts or message.t > self.gusts[-1][1]:
            self.gusts.append((now, message.t, message.u, message.v, message.w))
        self.state, self.state_at = message, now

    def hear_ekf(self, message: Any, now: float) -> None:
        """Take an EkfWind."""
        self.ekf, self.ekf_at = message, now

    def speedup(self) -> float:
        """Return how fast sim time runs, over the last seconds; NaN if not known."""
        recent = [sample for sample in self.gusts if self.gusts[-1][0] - sample[0] <= 5.0]
        if len(recent) < 2 or recent[-1][0] - recent[0][0] < 1.0:
            return math.nan
        return (recent[-1][1] - recent[0][1]) / (recent[-1][0] - recent[0][0])


class Listener:
    """Finds vehicles and keeps what they last said.

    Parameters
    ----------
    node : rclpy.node.Node
        Subscribes for it.
    only : sequence of str, optional
        Namespaces to show; all if empty.
    """

    def __init__(self, node: Node, only: Sequence[str] = ()) -> None:
        common.interfaces('msg')
        self.vehicles: dict[str, Vehicle] = {}
        self._node = node
        self._only = {'/' + name.strip('/') for name in only}
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(node)
        self._topics: dict[str, str] = {}  # topic -> vehicle
        self._discovered_at = -math.inf
        self._heard = 0

    def close(self) -> None:
        """End the subscriptions."""
        self._executor.shutdown()

    def update(self) -> None:
        """Look for vehicles once a second, and take what has come."""
        now = time.monotonic()
        if now - self._discovered_at >= 1.0:
            self._discovered_at = now
            self._discover()
        for _ in range(2 * len(self._topics) + 2):
            before = self._heard
            self._executor.spin_once(timeout_sec=0.0)
            if self._heard == before:
                break

    def _discover(self) -> None:
        published: set[str] = set()
        for topic, types in self._node.get_topic_names_and_types():
            kind = next((t for t in (WIND_STATE, EKF_WIND) if t in types), None)
            if kind is None or not self._node.count_publishers(topic):
                continue
            name = self._topics.get(topic) or vehicle_of(topic, kind)
            if self._only and name not in self._only:
                continue
            published.add(name)
            if topic not in self._topics:
                self._topics[topic] = name
                self._subscribe(topic, kind, self.vehicles.setdefault(name, Vehicle(name)))
        for name, vehicle in self.vehicles.items():
            vehicle.alive = name in published

    def shown(self) -> list[Vehicle]:
        """Return the vehicles by name, without those that left before they said anything."""
        return sorted((vehicle for vehicle in self.vehicles.values()
                       if vehicle.alive or math.isfinite(vehicle.heard_at)), key=lambda v: v.name)

    def _subscribe(self, topic: str, kind: str, vehicle: Vehicle) -> None:
        messages = common.interfaces('msg')
        if kind == WIND_STATE:
            message_type, qos, take = messages.WindState, NEWEST_QOS, vehicle.hear_state
        else:
            message_type, qos, take = messages.EkfWind, common.LATCHED_QOS, vehicle.hear_ekf

        def on_message(message: Any) -> None:
            self._heard += 1
            take(message, time.monotonic())
        self._node.create_subscription(message_type, topic, on_message, qos)


def vehicle_of(topic: str, kind: str) -> str:
    """Return the namespace that a topic belongs to, or the topic itself if it was renamed."""
    tail = '/wind/state' if kind == WIND_STATE else '/ekf_wind'
    return topic.removesuffix(tail) or '/'


# ------------------------------------------------------------------------------ pieces of text


def arrow(from_deg: float) -> str:
    """Return an arrow the way the air moves, north up, for where it comes from in degrees."""
    if not math.isfinite(from_deg):
        return '·'
    return ARROWS[round(((from_deg + 180.0) % 360.0) / 45.0) % 8]


def figure(value: float, form: str) -> str:
    """Return a number in a format, or a dash as wide if there is none."""
    if math.isfinite(value):
        return format(value, form)
    width = len(format(0.0, form))
    return '–'.rjust(width)


def gust_style(value: float, sigma: float) -> str:
    """Return the colour of a gust by how many standard deviations it is."""
    ratio = abs(value) / sigma if sigma > 0.0 else 0.0
    return GUST_STYLES[0 if ratio < 1.0 else 1 if ratio < 2.0 else 2]


def _share(value: float, sigma: float) -> float:
    """Return a gust in units of three standard deviations, from -1 to 1; 0 if there is none."""
    share = value / (3.0 * sigma if sigma > 0.0 else 1.0)
    return min(max(share, -1.0), 1.0) if math.isfinite(value) and not math.isnan(share) else 0.0


def gauge(value: float, sigma: float, width: int) -> Text:
    """Return a bar from the middle to a gust, whose ends are three standard deviations."""
    half = (width - 1) // 2
    length = round(abs(_share(value, sigma)) * half)
    style = gust_style(value, sigma)
    left, right = (length, 0) if value < 0.0 else (0, length)
    return Text.assemble(
        ('─' * (half - left), 'bright_black'), ('━' * left, style), ('┼', 'bright_black'),
        ('━' * right, style), ('─' * (half - right), 'bright_black'))


def sparkline(values: Sequence[float], sigma: float, width: int) -> Text:
    """Return the last values as blocks from minus to plus three standard deviations."""
    shown = values[max(0, len(values) - width):]
    text = Text(' ' * (width - len(shown)))
    for style, run in itertools.groupby(shown, key=lambda value: gust_style(value, sigma)):
        text.append(''.join(
            SPARKS[min(int((_share(value, sigma) + 1.0) * 4.0), 7)] for value in run), style)
    return text


def age_text(vehicle: Vehicle, now: float) -> Text:
    """Return how old the news of a vehicle is, if it is stale."""
    age = now - vehicle.heard_at
    if not vehicle.alive:
        gone = f'gone for {_duration(age)}' if math.isfinite(age) else 'gone'
        return Text(gone, 'bold red')
    if not math.isfinite(age):
        return Text('waiting for news', 'yellow')
    if age > STALE_S:
        return Text(f'no news for {_duration(age)}', 'bold yellow')
    return Text()


def _duration(seconds: float) -> str:
    if seconds < 100.0:
        return f'{seconds:.0f} s'
    return f'{seconds / 60.0:.0f} min' if seconds < 6000.0 else f'{seconds / 3600.0:.0f} h'


def _is_stale(vehicle: Vehicle, now: float) -> bool:
    return not vehicle.alive or now - vehicle.heard_at > STALE_S


# ------------------------------------------------------------------------------ one vehicle, large


def _settings(state: Any) -> str:
    if state.gusts == 'off':
        return 'no gusts'
    if state.gusts == 'sitl':
        return "SITL's own turbulence"
    text = f'{state.gusts}  seed {state.seed}'
    if state.gusts == 'field':
        text += '' if state.field_spectrum in ('', 'dryden') else f'  {state.field_spectrum}'
    elif state.model not in ('', 'first_order'):
        text += f'  {state.model}'
    elif state.method != 'exact':
        text += f'  {state.method}'
    return text if state.scale == 1.0 else f'{text}  ×{state.scale:g}'


def _wind_rows(vehicle: Vehicle, width: int) -> list[Text]:
    state = vehicle.state
    roomy = width >= 44
    mean = Text.assemble(
        ('mean  ', 'bold'), (f'{arrow(state.mean_wind_from_deg)} ', 'bold cyan'),
        (f'{state.mean_wind_speed:5.1f}', 'bold'), ' m/s',
        f'  from {state.mean_wind_from_deg:03.0f}°')
    if state.mean_wind_up:
        mean.append(f'  up {state.mean_wind_up:+.1f}')
    if state.scenario and roomy:
        mean.append(f'  {os.path.basename(state.scenario)}', 'bright_black')
    gust = state.gust
    speed = math.hypot(gust.x, gust.y, gust.z)
    sigma = math.hypot(state.sigma_u, state.sigma_v, state.sigma_w)
    towards = math.degrees(math.atan2(gust.x, gust.y))
    way = arrow(towards + 180.0) if speed > 0.005 else arrow(math.nan)
    gusts = Text.assemble(
        ('gust  ', 'bold'), (f'{way} ', f'bold {gust_style(speed, sigma)}'),
        (f'{speed:5.1f}', 'bold'), ' m/s', (f'  {_settings(state)}', 'bright_black'))
    rows = [mean, gusts]
    room = width - 10 - (9 if roomy else 0)
    bar = max(5, min(21, room * 2 // 5 // 2 * 2 + 1))
    blocks = max(0, min(60, room - bar - 1))
    for index, (name, value, sigma) in enumerate((
            ('u', state.u, state.sigma_u), ('v', state.v, state.sigma_v),
            ('w', state.w, state.sigma_w))):
        row = Text.assemble((f'{name} ', 'bold'), f'{figure(value, "+6.2f")}  ',
                            gauge(value, sigma, bar), ' ',
                            sparkline([x[2 + index] for x in vehicle.gusts], sigma, blocks))
        if roomy:
            row.append(f'  σ {sigma:5.2f}', 'bright_black')
        rows.append(row)
    return rows


def _sitl_rows(vehicle: Vehicle, width: int) -> list[Text]:
    state = vehicle.state
    short = width < 44
    rate = state.tick_rate
    style = 'green' if rate >= 19.0 else 'yellow' if rate >= 10.0 else 'red'
    ticks = Text.assemble(
        ('ticks ', 'bold'), ('● ', style), f'{rate:4.1f} Hz',
        (f'  missed {state.missed_ticks}', 'yellow' if state.missed_ticks else ''))
    if state.restarts:
        ticks.append(f'  restarts {state.restarts}' if not short else f'  ↺{state.restarts}')
    speedup = vehicle.speedup()
    flight = Text.assemble(
        ('at    ', 'bold'), f'{figure(state.height, ".1f")} m,',
        f'{"" if short else " airspeed"} {figure(state.airspeed, ".1f")} m/s')
    clock = Text.assemble(('time  ' if short else 't ', 'bold'), f'{state.t:.1f} s')
    if math.isfinite(speedup):
        clock.append(f'  ×{speedup:.1f}', 'bright_black')
    spd = figure(state.sim_wind_spd, '.2f')
    direction, up = figure(state.sim_wind_dir, '.1f'), figure(state.sim_wind_dir_z, '+.1f')
    if short:
        sim = [Text.assemble(('SIM_WIND_SPD   ', 'bold'), f'{spd:>6} m/s'),
               Text.assemble(('SIM_WIND_DIR   ', 'bold'), f'{direction:>6}° ',
                             (arrow(state.sim_wind_dir), 'cyan')),
               Text.assemble(('SIM_WIND_DIR_Z ', 'bold'), f'{up:>6}°')]
    else:
        sim = [Text.assemble(
            ('SIM_WIND  ', 'bold'), ('SPD ', 'bright_black'), spd, ('  DIR ', 'bright_black'),
            f'{direction}° ', (arrow(state.sim_wind_dir), 'cyan'), ('  DIR_Z ', 'bright_black'),
            f'{up}°')]
    if not short:
        flight.append('   ')
        return [*sim, flight.append_text(clock), ticks]
    return [*sim, flight, clock, ticks]


def _phase(ekf: Any) -> Text:
    name = ekf.phase_name or 'unknown'
    style = PHASE_STYLES.get(name, 'white')
    return Text.assemble(('● ', style), (name.replace('_', ' ').upper(), f'bold {style}'))


def _error_style(ekf: Any) -> str:
    if not ekf.settled:
        return 'bright_black'
    return 'green' if ekf.error_speed < 1.0 else 'yellow' if ekf.error_speed < 3.0 else 'red'


def _ekf_rows(vehicle: Vehicle, width: int) -> list[Text]:
    ekf = vehicle.ekf
    if ekf is None:
        return [Text.assemble(('EKF3  ', 'bold'), ('· nothing heard', 'bright_black'))]
    head = Text.assemble(('EKF3  ', 'bold'), _phase(ekf))
    stamp = ekf.header.stamp.sec + ekf.header.stamp.nanosec * 1e-9
    if math.isfinite(ekf.since) and stamp >= ekf.since:
        head.append(f'  {_duration(stamp - ekf.since)}', 'bright_black')
    if ekf.settled:
        head.append('  settled', 'green')
    if ekf.aiding_lost:
        head.append('  aiding lost', 'bold red')
    rows = [head]
    if math.isfinite(ekf.speed):
        rows.append(Text.assemble(
            '      ', (f'{arrow(ekf.from_deg)} ', 'bold cyan'), f'{ekf.speed:5.1f} m/s',
            f'  from {figure(ekf.from_deg, "03.0f")}°'))
        error = Text(f'off by {figure(ekf.error_speed, ".1f")} m/s, '
                     f'{figure(ekf.error_direction, "+.0f")}°', _error_style(ekf))
        if width >= 46:
            rows[-1].append('  ').append_text(error)
        else:
            rows.append(Text('      ').append_text(error))
    if ekf.reason:
        rows.append(Text(f'      {ekf.reason}', 'bright_black'))
    return rows


def vehicle_panel(vehicle: Vehicle, now: float, width: int) -> Panel:
    """Return one vehicle as a panel of `width` columns."""
    inner = width - 4
    body: RenderableType
    if vehicle.state is None:
        body = Group(*_lines(_ekf_rows(vehicle, inner)))
    elif width >= WIDE:
        left = inner - 3 - RIGHT
        table = Table.grid(padding=(0, 3, 0, 0))
        table.add_column(width=left)
        table.add_column(width=RIGHT)
        table.add_row(
            Group(*_lines(_wind_rows(vehicle, left))),
            Group(*_lines([*_sitl_rows(vehicle, RIGHT), *_ekf_rows(vehicle, RIGHT)])))
        body = table
    else:
        body = Group(*_lines([*_wind_rows(vehicle, inner), *_sitl_rows(vehicle, inner),
                              *_ekf_rows(vehicle, inner)]))
    stale = age_text(vehicle, now)
    style = 'bright_black' if _is_stale(vehicle, now) else 'cyan'
    title = Text(f' {vehicle.name} ', 'bold')
    title.truncate(width - 6, overflow='ellipsis')
    return Panel(body, title=title, title_align='left', subtitle=stale or None,
                 subtitle_align='right', border_style=style, width=width, padding=(0, 1),
                 style='dim' if _is_stale(vehicle, now) else '')


def _lines(rows: Iterable[Text]) -> Iterable[Text]:
    for row in rows:
        row.no_wrap, row.overflow = True, 'ellipsis'
        yield row


# ----------------------------------------------------------------------------- many vehicles, small


def fleet_table(vehicles: Sequence[Vehicle], now: float, width: int) -> Table:
    """Return one line a vehicle, with as many columns as there is room for."""
    columns: list[tuple[str, int, Callable[[Vehicle], Text]]] = [
        ('wind', 9, _mean_cell), ('EKF3', 15, _phase_cell), ('gust', 5, _gust_cell),
        ('error', 5, _error_cell), ('Hz', 4, _rate_cell), ('SPD', 6, _spd_cell),
        ('DIR', 5, _dir_cell), ('height', 6, _height_cell), ('missed', 6, _missed_cell)]
    name_width = min(max([7, *(len(v.name) for v in vehicles)]), max(7, width // 4))
    room, shown = width - name_width, []
    for column in columns:
        if column[1] + 2 > room:
            break
        shown.append(column)
        room -= column[1] + 2
    spark = min(room - 2, 40) if room >= 10 else 0
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style='bright_black')
    table.add_column('vehicle', width=name_width, no_wrap=True, overflow='ellipsis')
    for name, column_width, _ in shown:
        left = name in ('wind', 'EKF3')
        table.add_column(name, width=column_width, no_wrap=True,
                         justify='left' if left else 'right')
    if spark:
        table.add_column('u', width=spark, no_wrap=True)
    for vehicle in vehicles:
        cells = [Text(vehicle.name, 'bold'), *(cell(vehicle) for _, _, cell in shown)]
        if spark:
            cells.append(sparkline([x[2] for x in vehicle.gusts],
                                   vehicle.state.sigma_u if vehicle.state else 0.0, spark))
        table.add_row(*cells, style='dim' if _is_stale(vehicle, now) else '')
    return table


def _of_state(cell: Callable[[Any], Text]) -> Callable[[Vehicle], Text]:
    return lambda vehicle: Text('–') if vehicle.state is None else cell(vehicle.state)


def _of_ekf(cell: Callable[[Any], Text]) -> Callable[[Vehicle], Text]:
    return lambda vehicle: Text('–') if vehicle.ekf is None else cell(vehicle.ekf)


_mean_cell = _of_state(lambda s: Text.assemble(
    (arrow(s.mean_wind_from_deg), 'bold cyan'), f'{s.mean_wind_speed:4.0f} m/s'))
_gust_cell = _of_state(lambda s: Text(f'{math.hypot(s.u, s.v, s.w):.1f}', gust_style(
    math.hypot(s.u, s.v, s.w), math.hypot(s.sigma_u, s.sigma_v, s.sigma_w))))
_rate_cell = _of_state(lambda s: Text(f'{s.tick_rate:.0f}', 'green' if s.tick_rate >= 19.0
                                      else 'yellow' if s.tick_rate >= 10.0 else 'red'))
_spd_cell = _of_state(lambda s: Text(figure(s.sim_wind_spd, '.2f')))
_dir_cell = _of_state(lambda s: Text(figure(s.sim_wind_dir, '.1f')))
_height_cell = _of_state(lambda s: Text(figure(s.height, '.1f')))
_missed_cell = _of_state(lambda s: Text(str(s.missed_ticks), 'yellow' if s.missed_ticks else ''))
_phase_cell = _of_ekf(_phase)
_error_cell = _of_ekf(lambda e: Text(figure(e.error_speed, '.1f'), _error_style(e)))


# ------------------------------------------------------------------------------ whole pictures


def listening_text(waited: float) -> str:
    """Return what is said while no vehicle is heard."""
    return (f'No vehicle heard for {waited:.0f} s. Listening, in ROS domain '
            f'{os.environ.get("ROS_DOMAIN_ID", "0")}, for topics of any namespace:\n'
            f'  */wind/state  ({WIND_STATE})\n'
            f'  */ekf_wind    ({EKF_WIND})\n'
            'A first one:  ros2 launch dryden_wind_ros sitl.launch.py emulator:=true '
            'mean_wind_speed:=8')


def screen(vehicles: Sequence[Vehicle], now: float, width: int, height: int,
           waited: float = 0.0) -> RenderableType:
    """Return the whole picture.

    Parameters
    ----------
    vehicles : sequence of Vehicle
        What was heard.
    now : float
        Wall time as in the vehicles, s.
    width, height : int
        Columns and lines there are.
    waited : float, optional
        For how long nothing has been heard, s.
    """
    if not vehicles:
        return Text(listening_text(waited), 'yellow')
    panels = [vehicle_panel(vehicle, now, width) for vehicle in vehicles]
    if sum(_panel_height(vehicle, width) for vehicle in vehicles) <= height:
        return Group(*panels)
    hidden = max(0, len(vehicles) + 1 - height)
    shown = vehicles[:len(vehicles) - hidden - 1] if hidden else vehicles
    table = fleet_table(shown, now, width)
    if hidden:
        return Group(table, Text(f'… and {len(vehicles) - len(shown)} more', 'bright_black'))
    return table


def _panel_height(vehicle: Vehicle, width: int) -> int:
    inner = width - 4
    if vehicle.state is None:
        return 2 + len(_ekf_rows(vehicle, inner))
    if width >= WIDE:
        return 2 + max(5, len(_sitl_rows(vehicle, RIGHT)) + len(_ekf_rows(vehicle, RIGHT)))
    return 2 + 5 + len(_sitl_rows(vehicle, inner)) + len(_ekf_rows(vehicle, inner))


def line(vehicle: Vehicle, now: float) -> str:
    """Return one vehicle as one plain line of ``name=value`` pairs, without units."""
    parts = [vehicle.name]
    state, ekf = vehicle.state, vehicle.ekf
    if state is not None:
        parts += [
            f't={state.t:.2f}', f'mean={state.mean_wind_speed:.2f}',
            f'from={state.mean_wind_from_deg:.1f}', f'gusts={state.gusts}', f'seed={state.seed}',
            f'u={state.u:+.2f}', f'v={state.v:+.2f}', f'w={state.w:+.2f}',
            f'SIM_WIND_SPD={state.sim_wind_spd:.2f}', f'SIM_WIND_DIR={state.sim_wind_dir:.1f}',
            f'SIM_WIND_DIR_Z={state.sim_wind_dir_z:+.1f}', f'height={state.height:.1f}',
            f'airspeed={state.airspeed:.1f}', f'tick_rate={state.tick_rate:.1f}',
            f'missed={state.missed_ticks}', f'restarts={state.restarts}']
    if ekf is not None:
        parts += [f'ekf={ekf.phase_name or "unknown"}', f'settled={str(ekf.settled).lower()}',
                  f'ekf_speed={ekf.speed:.2f}', f'ekf_from={ekf.from_deg:.1f}',
                  f'error={ekf.error_speed:.2f}', f'error_direction={ekf.error_direction:+.1f}']
    stale = age_text(vehicle, now).plain
    if stale:
        parts.append(f'({stale})')
    return ' '.join(parts)


# ------------------------------------------------------------------------------ the program


def _watch(listener: Listener, console: Console) -> None:
    started = time.monotonic()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while not ending.told():
            begun = time.monotonic()
            listener.update()
            live.update(screen(listener.shown(), begun, console.width, console.height,
                               begun - started), refresh=True)
            ending.wait(max(0.02, DRAW_S - (time.monotonic() - begun)))


def _print_lines(listener: Listener, out: IO[str]) -> None:
    started = next_lines = time.monotonic()
    said = False
    while not ending.told():
        listener.update()
        now = time.monotonic()
        if now >= next_lines:
            next_lines = max(next_lines + LINES_S, now)
            for vehicle in listener.shown():
                if math.isfinite(vehicle.heard_at):
                    print(line(vehicle, now), file=out)
            out.flush()
        if not listener.shown() and not said and now - started >= PATIENCE_S - 0.5:
            said = True
            print(listening_text(now - started), file=sys.stderr, flush=True)
        ending.wait(DRAW_S)


def _once(listener: Listener, console: Console | None, out: IO[str]) -> int:
    started = time.monotonic()
    complete_at = math.inf
    while True:
        listener.update()
        now = time.monotonic()
        heard = [v for v in listener.vehicles.values() if v.state is not None]
        if heard:  # and a moment for the others, and for what EKF3 says
            complete_at = min(complete_at, now + 1.2)
        if now >= complete_at or now - started >= PATIENCE_S - 0.5:
            break
        if ending.wait(0.05):
            return 0
    vehicles = [v for v in listener.shown() if math.isfinite(v.heard_at)]
    if not vehicles:
        print(listening_text(now - started), file=sys.stderr, flush=True)
        return 1
    if console is not None:
        console.print(screen(vehicles, now, console.width, 10_000))
    else:
        for vehicle in vehicles:
            print(line(vehicle, now), file=out)
    return 0


def save_picture(path: Path, vehicles: Sequence[Vehicle], now: float, width: int) -> None:
    """Write what the screen shows as an SVG picture that needs nothing from the network."""
    console = Console(file=io.StringIO(), record=True, width=width, force_terminal=True,
                      color_system='truecolor')
    console.print(screen(vehicles, now, width, 10_000))
    svg = console.export_svg(title='ros2 run dryden_wind_ros wind_top')
    path.write_text(re.sub(r'@font-face \{.*?\}', '', svg, flags=re.DOTALL), encoding='utf-8')


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='wind_top',
        description='A live screen of the wind of every vehicle that can be heard: mean wind and '
        'gusts, SIM_WIND_* given to SITL, tick health, and what EKF3 believes. Ctrl-C ends it.',
        epilog='Where the output is not a terminal, one line a vehicle and second is printed, '
        'of name=value pairs in m, s, m/s and degrees.')
    parser.add_argument('namespace', nargs='*', help='vehicles to show; default: all')
    parser.add_argument('--once', action='store_true',
                        help='print what is heard once and leave; exit code 1 if that is nothing')
    parser.add_argument('--svg', metavar='FILE', type=Path,
                        help='save the last picture at the end, as wide as the terminal')
    parser.add_argument('--plain', action='store_true',
                        help='lines instead of a screen, on a terminal too; also where TERM is '
                        'dumb')
    return parser


@pipe_safe
def main(args: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    args = sys.argv if args is None else ['wind_top', *args]
    parser = _parser()
    options = parser.parse_args(remove_ros_args(list(args))[1:])
    if options.svg is not None and (
            options.svg.is_dir() or not options.svg.absolute().parent.is_dir()):
        parser.error(f'--svg {options.svg}: it must be a file in a folder that exists')
    console = Console()
    drawn = console.is_terminal and not console.is_dumb_terminal and not options.plain
    node = listener = None
    ending.listen()
    try:
        rclpy.init(args=list(args), signal_handler_options=SignalHandlerOptions.NO)
        node = Node('wind_top', enable_rosout=False, start_parameter_services=False)
        listener = Listener(node, options.namespace)
        if options.once:
            return _once(listener, console if drawn else None, sys.stdout)
        if drawn:
            _watch(listener, console)
        else:
            _print_lines(listener, sys.stdout)
    except common.InterfacesMissing as error:
        print(f'wind_top: {error}', file=sys.stderr)
        return 2
    finally:
        if listener is not None:
            if options.svg is not None and listener.shown():
                save_picture(options.svg, listener.shown(), time.monotonic(), console.width)
            listener.close()
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()
        ending.leave_alone()
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
