"""How `wind_top` shows what it has heard: as a screen, and as plain lines."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from dryden_wind_ros.tools.top_heard import EKF_WIND, WIND_STATE, Vehicle

STALE_S = 2.0
"""Wall time without news after which a vehicle is shown as stale, s."""

WIDE = 110
"""Columns from which on a vehicle is shown in two halves, side by side."""

RIGHT = 52
"""Columns of the right half."""

PHASE_STYLES = {
    'unknown': 'bright_black', 'not_estimated': 'bright_black', 'ground': 'blue',
    'inhibited': 'yellow', 'init': 'magenta', 'learning': 'green', 'coast': 'red',
    'relearn': 'dark_orange',
}
GUST_STYLES = ('cyan', 'yellow', 'red')
"""Within one, two and beyond two standard deviations."""

ARROWS = '↑↗→↘↓↙←↖'
SPARKS = '▁▂▃▄▅▆▇█'


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
