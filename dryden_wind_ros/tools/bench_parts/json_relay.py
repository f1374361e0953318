"""Part `json_relay`: what the relay between SITL and its physics adds to a physics step.

``python -m dryden_wind_ros.tools.bench_parts.json_relay KIND PORT [PHYSICS_PORT]`` is one of the
other sides: ``physics`` answers each packet with the same JSON; ``bare`` is the least that a relay
in Python can be; ``relay`` is ours, with a wind.
"""

from __future__ import annotations

import os
import select
import socket
import statistics
import sys
import threading
import time
from functools import partial

from dryden_wind_ros import ending
from dryden_wind_ros.gazebo.json_relay import Relay, RelayLoop
from dryden_wind_ros.tools.bench_parts.stage import Bench, Process
from dryden_wind_ros.tools.bench_parts.table import Row, ratio_row, time_text

_MODULE = 'dryden_wind_ros.tools.bench_parts.json_relay'
_HOST = '127.0.0.1'
_SERVOS = bytes(40)
PROMISED_S = 100e-6

ANSWER = (
    b'\n{"timestamp":123.456,"imu":{"gyro":[0.0123456789,-0.0123456789,0.000123456789],'
    b'"accel_body":[0.123456789,-0.123456789,-9.80665]},"position":[123.456789,-23.456789,'
    b'-50.123456],"quaternion":[0.923879533,0.0,0.0,0.382683432],"velocity":[15.1234567,'
    b'12.3456789,-0.123456789]}\n')
"""As long as what ardupilot_gazebo sends, bytes."""


def _bound(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind((_HOST, port))
    return made


def physics(port: int) -> None:
    """Answer every packet."""
    server = _bound(port)
    print('ready', flush=True)
    while True:
        _, sender = server.recvfrom(2000)
        server.sendto(ANSWER, sender)


def bare(port: int, physics_port: int) -> None:
    """Pass packets on, both ways."""
    down, up = _bound(port), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    up.connect((_HOST, physics_port))
    poller = select.epoll()
    poller.register(down, select.EPOLLIN)
    poller.register(up, select.EPOLLIN)
    sitl = (_HOST, 0)
    print('ready', flush=True)
    while True:
        for number, _ in poller.poll():
            if number == down.fileno():
                packet, sitl = down.recvfrom(65_507)
                up.send(packet)
            else:
                down.sendto(up.recv(65_507), sitl)


def relay(port: int, physics_port: int) -> None:
    """Run the package's relay."""
    ours = Relay('bench', (_HOST, port), (_HOST, physics_port), print)
    ours.wind_ned = (3.21, -7.65, 0.43)
    RelayLoop([ours], lambda error: print(error, flush=True))
    print('ready', flush=True)
    threading.Event().wait()


def _round_s(port: int, steps: int) -> float:
    """Return the median time of a round, s."""
    sitl = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sitl.settimeout(5.0)
    with sitl:
        times = []
        for _ in range(steps):
            start = time.perf_counter()
            sitl.sendto(_SERVOS, (_HOST, port))
            sitl.recv(65_507)
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def _ready(process: Process) -> bool:
    return 'ready' in process.text


def run_json_relay(bench: Bench) -> list[Row]:
    """Compare rounds through our relay, a bare relay and none, in turns."""
    ports = dict(zip(('physics', 'bare', 'relay'), _free_udp_ports(3), strict=True))
    for kind, port in ports.items():
        further = [] if kind == 'physics' else [str(ports['physics'])]
        process = bench.start(kind, _MODULE, kind, str(port), *further)
        bench.until(partial(_ready, process), 20.0, f'the {kind}')
    steps, repeats = round(bench.seconds(2000)), bench.repeats(20)
    ours: list[float] = []
    floor: list[float] = []
    direct: list[float] = []
    for turn in range(repeats + 1):
        bench.tell(f'json_relay: turn {turn} of {repeats}')
        rounds = [_round_s(ports[kind], steps) for kind in ('physics', 'bare', 'relay')]
        if turn:
            for side, value in zip((direct, floor, ours), rounds, strict=True):
                side.append(value)
    middle = {name: statistics.median(side) for name, side in
              (('ours', ours), ('floor', floor), ('direct', direct))}
    what = 'a physics step through sitl_wind_relay'
    return [
        ratio_row('json_relay', what, 'one through a bare UDP relay',
                  [a / b for a, b in zip(ours, floor, strict=True)], limit=1.5,
                  note=f'{time_text(middle["ours"])} against {time_text(middle["floor"])}'),
        ratio_row('json_relay', 'what the relay adds to a step', 'the 100 µs it may add',
                  [(a - b) / PROMISED_S for a, b in zip(ours, direct, strict=True)], limit=1.0,
                  note=f'{time_text(middle["ours"])}; {time_text(middle["direct"])} without a '
                       'relay'),
    ]


def _free_udp_ports(count: int) -> list[int]:
    probes = [_bound(0) for _ in range(count)]
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports


if __name__ == '__main__':
    ending.when_told(partial(os._exit, 0))  # nothing to tidy up, whatever it waits in
    _, kind, *numbers = sys.argv
    if kind == 'physics':
        physics(int(numbers[0]))
    elif kind == 'bare':
        bare(*map(int, numbers))
    else:
        relay(*map(int, numbers))
