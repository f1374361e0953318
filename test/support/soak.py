"""Starts and ends of nodes by the hundred, with signals at random moments, on a busy machine.

    python -m support.soak --count 200 --jobs 4 --burn 2          (in test/, or scripts/soak.sh)

Each trial starts one node beside a clock of 1000 Hz and a vehicle, waits until it listens to
signals (the interpreter itself has begun: what happens before is Python's own), then sends SIGINT,
SIGTERM or SIGHUP at a random moment of the next seconds, now and then a second one right after. It
has to end by itself, with 0, and without a traceback.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from support import free_port

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE_S = 90.0
_BAD = ('Traceback', 'Exception ignored', 'Error in sys.excepthook', 'never retrieved', 'Fatal')
_CLOCK = """\
import time, rclpy
from rosgraph_msgs.msg import Clock
rclpy.init()
node = rclpy.create_node('khz_clock')
publisher = node.create_publisher(Clock, 'clock', 10)
began = time.monotonic()
while rclpy.ok():
    now = time.monotonic() - began
    message = Clock()
    message.clock.sec, message.clock.nanosec = int(now), int(now % 1.0 * 1e9)
    publisher.publish(message)
    time.sleep(0.001)
"""


@dataclass(frozen=True)
class Trial:
    """One start and end: what was run, what it was told and when, what came of it."""

    program: str
    signals: tuple[tuple[float, str], ...]
    seconds: float
    code: int | None
    output: str

    @property
    def good(self) -> bool:
        """Whether it ended by itself with 0 and without a traceback."""
        return self.code == 0 and not any(word in self.output for word in _BAD)


def programs(port: int, name: str) -> dict[str, list[str]]:
    """Return the command lines of the nodes, for a vehicle on `port` and a namespace `name`.

    gazebo_wind is among them where the messages that its mode wrench needs are installed.
    """
    nodes = 'dryden_wind_ros.nodes'
    space = ['--ros-args', '-r', f'__ns:=/{name}', '-r', 'clock:=/clock']
    relay = [f'-p sitl_port:={free_port(socket.SOCK_DGRAM)}',
             f'-p physics_port:={free_port(socket.SOCK_DGRAM)}']
    of_gazebo = {} if importlib.util.find_spec('ros_gz_interfaces') is None else {
        'gazebo_wind': [f'{nodes}.gazebo_wind', *space, '-p', 'mode:=wrench']}
    return {
        **of_gazebo,
        'sitl_wind_relay': [f'{nodes}.sitl_wind_relay', *space, *' '.join(relay).split()],
        'wind_record': [f'{nodes}.wind_record', *space, '-p',
                        f'bag:={os.environ["ROS_LOG_DIR"]}/{name}'],
        'dryden_wind': [f'{nodes}.dryden_wind', *space, '-p', 'mean_wind.speed:=8.0'],
        'mavlink_bridge': [f'{nodes}.mavlink_bridge', *space, '-p',
                           f'connection:=tcp:127.0.0.1:{port}'],
        'wind_fleet': [f'{nodes}.wind_fleet', '--ros-args', '-p', 'vehicles:=2', '-p',
                       'first_instance:=900', '-p', 'clock:=shared'],
        'wind_markers': [f'{nodes}.wind_markers', *space],
        'wind_top': ['dryden_wind_ros.tools.wind_top'],
        'sitl_emulator': ['dryden_wind_ros.emulator.main', '--flight', 'hover', '--connection',
                          f'tcp:127.0.0.1:{free_port()}']}


def listens(pid: int) -> bool:
    """Whether the process has a handler for SIGTERM: Python itself has none."""
    try:
        text = Path(f'/proc/{pid}/status').read_text()
    except OSError:
        return True
    caught = next(line for line in text.splitlines() if line.startswith('SigCgt'))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def trial(number: int, port: int, within_s: float, program: str | None = None) -> Trial:
    """Start one node, tell it to end, and see how it does."""
    draw = random.Random(number)
    commands = programs(port, f'soak_{number}')
    program = program or draw.choice(sorted(commands))
    told = []
    begun = time.monotonic()
    with tempfile.TemporaryFile('w+') as output:
        process = subprocess.Popen([sys.executable, '-m', *commands[program]], stdout=output,
                                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        try:
            while not listens(process.pid) and time.monotonic() - begun < PATIENCE_S:
                time.sleep(0.002)
            time.sleep(draw.uniform(0.0, within_s))
            for pause in (0.0, *([draw.uniform(0.0, 0.3)] if draw.random() < 0.3 else [])):
                time.sleep(pause)
                which = draw.choice(SIGNALS)
                told.append((round(time.monotonic() - begun, 3), which.name))
                process.send_signal(which)
            code: int | None = process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            process.kill()
            process.wait()
        output.seek(0)
        return Trial(program, tuple(told), time.monotonic() - begun, code, output.read())


@contextlib.contextmanager
def surroundings(jobs: int, burn: int) -> Iterator[list[int]]:
    """A clock of 1000 Hz, a vehicle for each job, and processes that burn a core each."""
    ports = [free_port() for _ in range(jobs)]
    commands = [['-c', _CLOCK], *[['-c', 'while True: pass']] * burn,
                *(['-m', 'dryden_wind_ros.emulator.main', '--quiet', '--flight', 'hover',
                   '--connection', f'tcp:127.0.0.1:{port}'] for port in ports)]
    started = [subprocess.Popen([sys.executable, *command], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for command in commands]
    try:
        yield ports
    finally:
        for process in started:
            process.kill()
            process.wait()


def main() -> int:
    """Run the trials; print each that went wrong, and the count; 1 if any did."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--count', type=int, default=200, help='starts and ends')
    parser.add_argument('--jobs', type=int, default=4, help='at the same time')
    parser.add_argument('--burn', type=int, default=2, help='processes that burn a core each')
    parser.add_argument('--within', type=float, default=4.0, metavar='S',
                        help='the signal comes in the first S seconds')
    parser.add_argument('--seed', type=int, default=0, help='of moments and signals')
    parser.add_argument('--program', help='only this one')
    options = parser.parse_args()
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    os.environ.setdefault('ROS_DOMAIN_ID', str(random.randint(60, 100)))
    with tempfile.TemporaryDirectory() as folder, \
            surroundings(options.jobs, options.burn) as ports, \
            ThreadPoolExecutor(options.jobs) as pool:
        os.environ |= {'XDG_STATE_HOME': folder, 'ROS_LOG_DIR': folder}
        free = list(ports)

        def one(number: int) -> Trial:
            port = free.pop()
            try:
                return trial(options.seed + number, port, options.within, options.program)
            finally:
                free.append(port)

        trials = []
        for done in pool.map(one, range(options.count)):
            trials.append(done)
            if not done.good:
                print(f'{done.program} {done.signals} code {done.code}\n{done.output}', flush=True)
            if len(trials) % 20 == 0:
                print(f'{len(trials)} of {options.count}, '
                      f'{sum(not each.good for each in trials)} bad', flush=True)
    bad = Counter(each.program for each in trials if not each.good)
    kinds = Counter(each.program for each in trials)
    print(f'{len(trials)} starts and ends ({dict(kinds)}): {sum(bad.values())} bad {dict(bad)}')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
