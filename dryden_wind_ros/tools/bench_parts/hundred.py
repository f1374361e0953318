"""Part `hundred`: a hundred vehicles and their fleet in two processes on this machine."""

from __future__ import annotations

import json
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dryden_wind_ros.tools.bench_parts.stage import Bench, BenchError, Process, free_ports
from dryden_wind_ros.tools.bench_parts.table import Row, ratio_row

HUNDRED = 100
_HUNDRED_SECONDS = 60.0
_LATE_PROMISED = 0.001
_PACE_PROMISED = 0.98
_HUNDRED_MEMORY_MB = 3.0
_PUT_BACK_S = 5.0
_CPU_PROMISED = 0.85


@dataclass(frozen=True)
class Held:
    """A fleet in several processes, and how its vehicles were served.

    Attributes
    ----------
    cpu : float
        CPU time of all its processes per vehicle and simulated second, s.
    memory : float
        Resident memory of all its processes, MB.
    ticks, missed : int
        Ticks of all vehicles together.
    winds, late : int
        Winds that reached the vehicles, and those more than 100 ms late.
    longest : float
        Longest time that a vehicle went without a wind, s.
    pace : float
        Simulated over wall time of the slowest vehicle.
    put_back_s : float
        From Ctrl-C to the end of the last process, all vehicles put back.
    processes : int
        How many there were.
    """

    cpu: float
    memory: float
    ticks: int
    missed: int
    winds: int
    late: int
    longest: float
    pace: float
    put_back_s: float
    processes: int


def run_hundred(bench: Bench) -> list[Row]:
    """Fly a hundred embedded vehicles and their fleet on this machine, and twenty to compare."""
    many, few = (8, 3) if bench.quick else (HUNDRED, 20)
    twenty, hundred = _hold(bench, few, 1), _hold(bench, many, 2)
    seconds = bench.seconds(_HUNDRED_SECONDS)
    # Each process has a floor of its own: two floors and a hundred against one and twenty.
    each = (hundred.memory - hundred.processes * twenty.memory) / (
        many - hundred.processes * few)
    fleet = f'{many} vehicles in {hundred.processes} processes'
    return [
        ratio_row('hundred', f'ticks missed by {fleet} in {seconds:g} s', 'ticks flown',
                  [hundred.missed / hundred.ticks], limit=0.0, unit='the ticks',
                  note=f'{hundred.missed} of {hundred.ticks}'),
        ratio_row('hundred', 'winds more than 100 ms late at the vehicle', '0.1 % of the winds',
                  [hundred.late / hundred.winds / _LATE_PROMISED], limit=1.0, unit='the winds',
                  note=f'{hundred.late} of {hundred.winds}, longest pause '
                       f'{1e3 * hundred.longest:.0f} ms'),
        ratio_row('hundred', 'sim time of the slowest vehicle at speedup 1', 'wall time',
                  [hundred.pace], faster=True, limit=_PACE_PROMISED, unit='the time',
                  note=f'{20 * hundred.pace:.2f} ticks a second'),
        ratio_row('hundred', 'CPU per vehicle', f'the same, {few} vehicles',
                  [hundred.cpu / twenty.cpu], limit=_CPU_PROMISED, unit='the CPU',
                  note=f'{1e3 * hundred.cpu:.2f} against {1e3 * twenty.cpu:.2f} ms/s'),
        ratio_row('hundred', 'memory per further vehicle', f'{_HUNDRED_MEMORY_MB:g} MB',
                  [each / _HUNDRED_MEMORY_MB], limit=1.0, unit='the memory',
                  note=f'{each:.1f} MB; {hundred.memory:.0f} MB in all'),
        ratio_row('hundred', 'from Ctrl-C until all are put back and gone', f'{_PUT_BACK_S:g} s',
                  [hundred.put_back_s / _PUT_BACK_S], limit=1.0, unit='the time',
                  note=f'{hundred.put_back_s:.1f} s'),
    ]


def _hold(bench: Bench, count: int, processes: int) -> Held:
    what = f'hundred: fleet of {count}'
    first = free_ports(count)
    path, winds = bench.folder / f'held_{count}.yaml', bench.folder / f'winds_{count}.json'
    path.write_text(''.join(
        f'- {{name: v{number}, connection: "tcp:127.0.0.1:{first + 10 * number}"}}\n'
        for number in range(count)), encoding='utf-8')
    with bench.running(), bench.observer() as observer:
        vehicles = bench.start(
            'embedded vehicles', 'dryden_wind_ros.emulator.main', '--count', str(count),
            '--connection', f'tcp:127.0.0.1:{first}', '--flight', 'hover', '--quiet',
            '--winds', str(winds))
        fleets = []
        for part in range(processes):
            name = f'wind_fleet_{part + 1}' if part else 'wind_fleet'
            fleets.append(bench.start(
                name, 'dryden_wind_ros.nodes.wind_fleet', '--ros-args',
                '-r', f'wind_fleet:__node:={name}', '-p', f'{name}:vehicles_file:={path}',
                '-p', f'{name}:mean_wind.speed:=8.0', '-p', f'{name}:part:={part}',
                '-p', f'{name}:parts:={processes}'))
        bench.tell(f'{what} is starting')
        bench.until(lambda: sum(fleet.text.count('the air starts') for fleet in fleets) == count,
                    120, f'the first tick of {count} vehicles', pause=0.5)
        bench.sleep(bench.seconds(5.0), f'{what} takes off')
        before = _winds(bench, vehicles, winds)
        begin, cpu, wall = observer.ticks(count, 30), sum(f.cpu() for f in fleets), time.monotonic()
        bench.sleep(bench.seconds(_HUNDRED_SECONDS), what)
        cpu, wall = sum(f.cpu() for f in fleets) - cpu, time.monotonic() - wall
        end, after = observer.ticks(count, 30), _winds(bench, vehicles, winds)
        memory = sum(fleet.memory() for fleet in fleets)
        flown = {name: (end[name].tick - begin[name].tick, end[name].wall - begin[name].wall)
                 for name in begin}
        paces = [ticks / (20 * seconds) for ticks, seconds in flown.values()]
        stopped_at = time.monotonic()
        for fleet in fleets:
            fleet.stop()
        for fleet in fleets:
            fleet.wait(60.0)
        put_back_s = time.monotonic() - stopped_at
        told = ''.join(fleet.text for fleet in fleets)
        if 'could not be put back' in told or 'Traceback' in told:
            raise BenchError(f'{what}: not all vehicles were put back:\n{told[-1500:]}')
    return Held(
        cpu / wall / sum(paces), memory, sum(ticks for ticks, _ in flown.values()),
        sum(end[name].missed - begin[name].missed for name in begin),
        sum(a['winds'] - b['winds'] for a, b in zip(after, before, strict=True)),
        sum(a['late'] - b['late'] for a, b in zip(after, before, strict=True)),
        max(row['longest_s'] for row in after), min(paces), put_back_s, processes)


def _winds(bench: Bench, vehicles: Process, path: Path) -> list[dict[str, Any]]:
    """Ask the embedded vehicles how regularly they were given winds."""
    path.unlink(missing_ok=True)
    vehicles.stop(signal.SIGUSR1)
    bench.until(path.exists, 20.0, 'the counts of winds of the embedded vehicles')
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding='utf-8'))
    return rows
