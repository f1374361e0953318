"""One flight by a script of the user's: a vehicle as a process, its wind, and the script beside it.

The vehicle is the embedded one, or any command that takes SITL's ``-I``. It has a folder, ports
and parameters of its own: its instance comes from a pool of lock files. A `Session` (the bridge
without ROS) writes the seed's wind at every tick of the vehicle's clock; the script is given a
connection string, and the flight is over when it ends. Vehicle and script run under a `keeper`:
nothing of them outlives the flight.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from dryden_wind_ros.campaign import keeper
from dryden_wind_ros.campaign.embedded_flight import COLUMNS, Samples, air_of
from dryden_wind_ros.campaign.entry import Entry, vehicle_config
from dryden_wind_ros.emulator.config import SERIAL_PORTS
from dryden_wind_ros.sitl.connection import parse_connection
from dryden_wind_ros.sitl.events import Event
from dryden_wind_ros.sitl.loop import LinkLoop
from dryden_wind_ros.sitl.odometry import Odometry
from dryden_wind_ros.sitl.session import Session, SessionSettings
from dryden_wind_ros.sitl.sim_wind import Wind

FIRST_INSTANCE, INSTANCES = 300, 200
"""Instances of vehicles: far from those that people use."""

MAX_OUTPUT = 100_000
"""Bytes of the script's output that are kept: the last."""

VEHICLE_WITHIN = 30.0
"""The vehicle must be heard within this wall time, s."""

FLYING_ABOVE = 1.0
"""What is measured is flown armed and higher than this, m."""


def fly_script(entry: Entry) -> tuple[Samples, dict[str, bytes]]:
    """Fly an entry; return what was recorded, and the output of script and vehicle.

    The speedup is halved, and the flight flown again, while ticks were missed.
    """
    speedup = entry.vehicle.speedup
    while True:
        samples, files = _fly(entry, speedup)
        if not samples.ticks_missed or speedup <= 1.0 or samples.failure:
            break
        speedup = max(speedup / 2.0, 1.0)
    if samples.ticks_missed and not samples.failure:
        samples = Samples(samples.columns, f'{samples.ticks_missed} ticks missed',
                          samples.sim_seconds, samples.ticks_missed)
    return samples, files


def _fly(entry: Entry, speedup: float) -> tuple[Samples, dict[str, bytes]]:
    deadline = time.monotonic() + entry.wall_limit
    with instance() as number, tempfile.TemporaryDirectory(prefix='wind_campaign-') as name:
        folder = Path(name)
        script = folder / Path(entry.script_path).name
        script.write_text(entry.script)
        ports = [port + 10 * number for port in SERIAL_PORTS]
        files: dict[str, bytes] = {}
        recorder = _Recorder(entry)
        failure = ''
        with _kept(folder, 'vehicle', _vehicle_command(entry, number, speedup, folder),
                   entry.wall_limit) as vehicle, recorder.session(ports[0], folder):
            if not recorder.heard.wait(min(VEHICLE_WITHIN, entry.wall_limit)):
                failure = (f'the vehicle ended with {vehicle.returncode}'
                           if vehicle.poll() is not None else
                           f'the vehicle was not heard within {VEHICLE_WITHIN:g} s')
            else:
                command = [sys.executable, str(script), f'tcp:127.0.0.1:{ports[1]}']
                left = max(deadline - time.monotonic(), 0.1)
                with _kept(folder, 'script', command, left) as flown:
                    failure = _watched(flown, vehicle, recorder, entry)
        for what in ('script', 'vehicle'):
            with contextlib.suppress(OSError), (folder / f'{what}.txt').open('rb') as output:
                output.seek(max(os.fstat(output.fileno()).st_size - MAX_OUTPUT, 0))
                files[f'{what}.txt'] = output.read()
    return recorder.samples(failure), files


def _watched(script: subprocess.Popen[bytes], vehicle: subprocess.Popen[bytes],
             recorder: _Recorder, entry: Entry) -> str:
    """Wait for the script to end; return why the flight failed, or ''."""
    while script.poll() is None:
        if vehicle.poll() is not None:
            # Both have the same limit: whoever meets it first, it is the flight's.
            if vehicle.returncode == keeper.TIME_UP:
                return f'time limit (wall, {entry.wall_limit:g} s)'
            return f'the vehicle ended with {vehicle.returncode}'
        if recorder.time > entry.sim_limit:
            return 'time limit (sim)'
        time.sleep(0.02)
    if script.returncode == keeper.TIME_UP:
        return f'time limit (wall, {entry.wall_limit:g} s)'
    return '' if script.returncode == 0 else f'the script ended with {script.returncode}'


def _vehicle_command(entry: Entry, number: int, speedup: float, folder: Path) -> list[str]:
    vehicle = entry.vehicle
    common = ['-I', str(number), '--home', vehicle.home, '--speedup', f'{speedup:g}']
    parameters = folder / 'campaign.parm'
    parameters.write_text(''.join(f'{name} {value:.9g}\n' for name, value in vehicle.parameters))
    if vehicle.sitl:
        return [*shlex.split(vehicle.sitl), '-w', *common,
                *(['--defaults', str(parameters)] if vehicle.parameters else [])]
    config = vehicle_config(vehicle, entry.seed)
    # The home begins with a minus: as one word, it is no option
    common[2:4] = [f'--home={vehicle.home}']
    return [sys.executable, '-m', 'dryden_wind_ros.emulator.main', *common,
            '--vehicle', config.kind, '--seed', str(config.seed), '--flight', 'none',
            '--defaults', str(parameters), *(['--dynamics'] if config.dynamics else []),
            *(['--drag'] if config.drag else []),
            *([] if config.airspeed else ['--no-airspeed'])]


@contextmanager
def _kept(folder: Path, what: str, command: list[str],
          seconds: float) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command in a folder under a keeper; its output goes into a file."""
    with (folder / f'{what}.txt').open('wb') as output:
        process = subprocess.Popen(
            [sys.executable, '-m', 'dryden_wind_ros.campaign.keeper', f'{seconds:.3f}', *command],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)})
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


@contextmanager
def instance() -> Iterator[int]:
    """Keep an instance number whose ports are free, for this process alone.

    Raises
    ------
    OSError
        If there is none.
    """
    pool = Path(tempfile.gettempdir()) / f'wind_campaign-instances-{os.getuid()}'
    pool.mkdir(mode=0o700, exist_ok=True)
    for number in range(FIRST_INSTANCE, FIRST_INSTANCE + INSTANCES):
        lock = os.open(pool / f'{number}.lock', os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if all(_free(port + 10 * number) for port in SERIAL_PORTS):
                yield number
                return
        except BlockingIOError:
            pass
        finally:
            os.close(lock)
    raise OSError(f'all {INSTANCES} instances are in use')


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(('127.0.0.1', port))
        except OSError:
            return False
    return True


class _Recorder:
    """Lets the seed's air blow over a vehicle on a link, and records what it does."""

    def __init__(self, entry: Entry) -> None:
        self._air = air_of(entry)
        self._rows: list[tuple[float, ...]] = []
        self._newest: Odometry | None = None
        self._session: Session | None = None
        self._first_tick: int | None = None
        self.heard = threading.Event()
        self.time = 0.0
        self.trouble: list[BaseException] = []

    @contextmanager
    def session(self, port: int, folder: Path) -> Iterator[None]:
        """Serve the vehicle at a port as long as this is open."""
        loop = LinkLoop(self.trouble.append)
        self._session = Session(
            parse_connection(f'tcp:127.0.0.1:{port}'), SessionSettings(state_dir=str(folder)),
            on_event=self._event, on_tick=self._tick, on_odometry=self._odometry,
            on_armed=self._armed)
        loop.start()
        self._session.start(loop)
        try:
            yield
        finally:
            loop.stop()  # the vehicle is thrown away: nothing needs to be put back

    def _event(self, event: Event) -> None:
        pass

    def _armed(self, milliseconds: int) -> None:
        self._air.armed_at = milliseconds / 1000.0 if milliseconds else None

    def _odometry(self, sample: Odometry) -> None:
        self._newest = sample
        self._air.odometry(sample.time_ms * 1_000_000, sample.position, sample.velocity_enu,
                           sample.true, lambda: sample.orientation)

    def _tick(self, milliseconds: int) -> None:
        self.time = milliseconds / 1000.0
        newest = self._air.advance(milliseconds * 1_000_000).tick
        session, sample = self._session, self._newest
        if newest is None or session is None:
            return
        self.heard.set()
        wind = newest.sim_wind
        session.set_wind(Wind(wind.speed, wind.direction, wind.direction_z,
                              gust=newest.gust_enu))
        if sample is None:
            return
        east, north, up = sample.position
        v_east, v_north, _ = sample.velocity_enu
        blown = [a + b for a, b in zip(newest.mean_enu, newest.gust_enu, strict=True)]
        flying = session.link.armed and up > FLYING_ABOVE
        roll, pitch, _ = sample.attitude
        roll_rate, pitch_rate, _ = sample.angular_velocity
        nan = float('nan')
        self._rows.append((
            self.time, float(flying), north, east, up, nan, nan, roll, pitch, roll_rate,
            pitch_rate, nan, float(np.hypot(v_north - blown[1], v_east - blown[0])), nan, *blown,
            nan, nan, wind.speed, wind.direction, wind.direction_z))

    def samples(self, failure: str) -> Samples:
        """Return what was recorded."""
        if self.trouble and not failure:
            failure = f'{type(self.trouble[0]).__name__}: {self.trouble[0]}'
        table = np.array(self._rows, dtype=float).reshape(-1, len(COLUMNS))
        return Samples(dict(zip(COLUMNS, table.T, strict=True)), failure, self.time,
                       self._air.grid.missed)
