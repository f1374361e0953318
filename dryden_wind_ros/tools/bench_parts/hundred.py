"""Part `hundred`: a hundred vehicles and their fleet on this machine, each in two processes.

How it went is judged by the embedded vehicles themselves: how far each one's time got, which they
let go where they are starved, and when winds came, in their own time.
"""

from __future__ import annotations

import json
import math
import signal
import time
from collections.abc import Sequence
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
    cpu, vehicles_cpu : float
        CPU time of all its processes, and of the embedded vehicles, per vehicle and simulated
        second, s.
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
    put_back_s, gone_s : float
        From Ctrl-C until the last vehicle was put back, and to the end of the last process.
    processes : int
        How many there were.
    """

    cpu: float
    vehicles_cpu: float
    memory: float
    ticks: int
    missed: int
    winds: int
    late: int
    longest: float
    pace: float
    put_back_s: float
    gone_s: float
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
                  note=f'{1e3 * hundred.cpu:.2f} against {1e3 * twenty.cpu:.2f} ms/s; the embedded '
                       f'vehicles: {1e3 * hundred.vehicles_cpu:.2f} ms/s each'),
        ratio_row('hundred', 'memory per further vehicle', f'{_HUNDRED_MEMORY_MB:g} MB',
                  [each / _HUNDRED_MEMORY_MB], limit=1.0, unit='the memory',
                  note=f'{each:.1f} MB; {hundred.memory:.0f} MB in all'),
        ratio_row('hundred', 'from Ctrl-C until all are put back', f'{_PUT_BACK_S:g} s',
                  [hundred.put_back_s / _PUT_BACK_S], limit=1.0, unit='the time',
                  note=f'{hundred.put_back_s:.1f} s; the last process is gone after '
                       f'{hundred.gone_s:.1f} s'),
    ]


def _hold(bench: Bench, count: int, processes: int) -> Held:
    what = f'hundred: fleet of {count}'
    first = free_ports(count)
    path = bench.folder / f'held_{count}.yaml'
    path.write_text(''.join(
        f'- {{name: v{number}, connection: "tcp:127.0.0.1:{first + 10 * number}"}}\n'
        for number in range(count)), encoding='utf-8')
    with bench.running(), bench.observer() as observer:
        vehicles = _Vehicles(bench, count, processes, first)
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
        bench.sleep(bench.seconds(15.0), f'{what} takes off')
        begin = observer.ticks(count, 30)
        before, cpu, vehicles_cpu = vehicles.heard(), sum(f.cpu() for f in fleets), vehicles.cpu()
        bench.sleep(bench.seconds(_HUNDRED_SECONDS), what)
        cpu, vehicles_cpu = sum(f.cpu() for f in fleets) - cpu, vehicles.cpu() - vehicles_cpu
        after, end = vehicles.heard(), observer.ticks(count, 30)
        memory = sum(fleet.memory() for fleet in fleets)
        put_back_s, gone_s = _end(bench, fleets, count, what)
    pairs = list(zip(before, after, strict=True))
    flown = [late['time_s'] - early['time_s'] for early, late in pairs]
    return Held(
        cpu / sum(flown), vehicles_cpu / sum(flown), memory,
        sum(end[name].tick - begin[name].tick for name in begin),
        sum(end[name].missed - begin[name].missed for name in begin),
        sum(late['winds'] - early['winds'] for early, late in pairs),
        sum(late['late'] - early['late'] for early, late in pairs),
        max(late['longest_s'] for late in after),
        min(seconds / (late['wall_s'] - early['wall_s'])
            for seconds, (early, late) in zip(flown, pairs, strict=True)),
        put_back_s, gone_s, processes)


def _end(bench: Bench, fleets: Sequence[Process], count: int, what: str) -> tuple[float, float]:
    """Press Ctrl-C; return how long it takes until all are put back, and until all are gone."""
    stopped_at = time.monotonic()
    for fleet in fleets:
        fleet.stop()
    put_back_s = math.nan
    while any(fleet.running for fleet in fleets) and time.monotonic() - stopped_at < 60.0:
        if math.isnan(put_back_s) and sum(
                fleet.text.count('put back and confirmed') for fleet in fleets) == count:
            put_back_s = time.monotonic() - stopped_at
        time.sleep(0.05)
    for fleet in fleets:
        fleet.wait(0.0)
    gone_s = time.monotonic() - stopped_at
    told = ''.join(fleet.text for fleet in fleets)
    if told.count('put back and confirmed') != count or 'Traceback' in told:
        raise BenchError(f'{what}: not all vehicles were put back:\n{told[-1500:]}')
    return gone_s if math.isnan(put_back_s) else put_back_s, gone_s


class _Vehicles:
    """Embedded vehicles, dealt to several processes."""

    def __init__(self, bench: Bench, count: int, processes: int, first_port: int) -> None:
        self._bench = bench
        self._parts: list[tuple[Process, Path]] = []
        begun = 0
        for part in range(processes):
            share = (count - begun) // (processes - part)
            path = bench.folder / f'winds_{count}_{part}.json'
            self._parts.append((bench.start(
                f'embedded vehicles {part + 1}', 'dryden_wind_ros.emulator.main',
                '--count', str(share), '--connection', f'tcp:127.0.0.1:{first_port + 10 * begun}',
                '--flight', 'hover', '--quiet', '--winds', str(path)), path))
            begun += share

    def cpu(self) -> float:
        """Return the CPU time they have used, s."""
        return sum(process.cpu() for process, _ in self._parts)

    def heard(self) -> list[dict[str, Any]]:
        """Ask each how far its time is, and how regularly it was given winds."""
        rows: list[dict[str, Any]] = []
        for process, path in self._parts:
            path.unlink(missing_ok=True)
            process.stop(signal.SIGUSR1)
            self._bench.until(path.exists, 20.0, 'the counts of winds of the embedded vehicles')
            rows += json.loads(path.read_text(encoding='utf-8'))
        return rows
