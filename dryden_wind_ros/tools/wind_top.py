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
import math
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import rclpy
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args
from rich.console import Console
from rich.live import Live

from dryden_wind_ros import ending
from dryden_wind_ros.nodes import common
from dryden_wind_ros.pipes import pipe_safe
from dryden_wind_ros.tools.top_heard import Listener, Vehicle
from dryden_wind_ros.tools.top_screen import line, listening_text, screen

DRAW_S = 0.25
"""Wall time between two pictures, s."""

LINES_S = 1.0
"""Wall time between two lines of a vehicle where the output is no terminal, s."""

PATIENCE_S = 5.0
"""Wall time without any vehicle after which lines, too, say what is listened for, s."""


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
