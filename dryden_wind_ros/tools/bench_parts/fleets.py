"""Part `vehicles`: what a vehicle more costs `wind_fleet`, in CPU time and memory."""

from __future__ import annotations

import time
from dataclasses import dataclass

from dryden_wind_ros.tools.bench_parts.stage import (
    FLOORS,
    Bench,
    BenchError,
    Observer,
    Process,
    free_ports,
)
from dryden_wind_ros.tools.bench_parts.table import Row, ratio_row

COUNTS = (1, 5, 20, 50)
MEMORY_PROMISED_MB = 10.0
_WINDOWS = 4
#: Wall seconds measured for each fleet; the largest is to miss no tick in a minute.
_SECONDS = {1: 5.0, 5: 6.0, 20: 10.0, 50: 60.0}
_FLOOR_SECONDS = 3.0
#: Of wall time, for vehicles that hold their 20 Hz.
_PACE_PROMISED = 0.98


@dataclass(frozen=True)
class Measured:
    """One fleet, or its floor.

    Attributes
    ----------
    cpu : tuple of float
        CPU time per vehicle and simulated second in each window, s.
    memory : float
        Resident memory of the process, MB.
    vehicles_cpu : float
        The same CPU for the embedded vehicles.
    ticks, missed : int
        Ticks of all vehicles together.
    pace : float
        Simulated over wall time of the slowest vehicle.
    """

    cpu: tuple[float, ...]
    memory: float
    vehicles_cpu: float = 0.0
    ticks: int = 0
    missed: int = 0
    pace: float = 1.0

    @property
    def typical_cpu(self) -> float:
        """Mean over the windows, s per vehicle and simulated second."""
        return sum(self.cpu) / len(self.cpu)


def run_vehicles(bench: Bench) -> list[Row]:
    """Measure fleets of `COUNTS` vehicles, and the same topics in a bare process."""
    counts = (1, 2) if bench.quick else COUNTS
    fleets, floors = {}, {}
    for count in counts:
        fleets[count] = _fly_fleet(bench, count)
        floors[count] = _run_floor(bench, count)
    rows = []
    for count in counts:
        fleet, floor = fleets[count], floors[count]
        rows.append(ratio_row(
            'vehicles', f'wind_fleet, {count} vehicle{"s" * (count > 1)}: CPU per vehicle',
            'a bare rclpy process with the topics of as many vehicles (4 published, 2 heard, '
            '20 Hz)', [x / floor.typical_cpu for x in fleet.cpu], unit='the CPU',
            note=f'{1e3 * fleet.typical_cpu:.1f} against {1e3 * floor.typical_cpu:.1f} ms/s, '
                 f'{fleet.memory:.0f} against {floor.memory:.0f} MB; the embedded vehicles: '
                 f'{1e3 * fleet.vehicles_cpu:.1f} ms/s each; sim time {fleet.pace:.2f} x wall'))
    for more, fewer in zip(counts[:1:-1], counts[-2:0:-1], strict=True):
        rows.append(ratio_row(
            'vehicles', f'wind_fleet: CPU per vehicle, {more} vehicles', f'the same, {fewer}',
            [x / fleets[fewer].typical_cpu for x in fleets[more].cpu], limit=1.15,
            unit='the CPU', note=f'{1e3 * fleets[more].typical_cpu:.1f} against '
                                 f'{1e3 * fleets[fewer].typical_cpu:.1f} ms/s'))
    most = counts[-1]
    each, bare = ((sides[most].memory - sides[1].memory) / (most - 1)
                  for sides in (fleets, floors))
    rows.append(ratio_row(
        'vehicles', 'wind_fleet: memory per vehicle beyond the first', 'the 10 MB it may take',
        [each / MEMORY_PROMISED_MB], limit=1.0, unit='the memory',
        note=f'{each:.1f} MB; {bare:.1f} MB in the bare process'))
    for count in counts:
        fleet = fleets[count]
        seconds = bench.seconds(_SECONDS.get(count, 5.0))
        rows.append(ratio_row(
            'vehicles', f'ticks missed by {count} vehicle{"s" * (count > 1)} in {seconds:g} s',
            'ticks flown', [fleet.missed / fleet.ticks], limit=0.0, unit='the ticks',
            note=f'{fleet.missed} of {fleet.ticks}'))
    rows.append(ratio_row(
        'vehicles', f'sim time of the slowest of {most} vehicles at speedup 1', 'wall time',
        [fleets[most].pace], faster=True, limit=_PACE_PROMISED, unit='the time',
        note=f'{20 * fleets[most].pace:.2f} ticks a second'))
    return rows


def _fly_fleet(bench: Bench, count: int) -> Measured:
    what = f'vehicles: fleet of {count}'
    first = free_ports(count)
    path = bench.folder / f'fleet_{count}.yaml'
    path.write_text(''.join(
        f'- {{name: v{number}, connection: "tcp:127.0.0.1:{first + 10 * number}"}}\n'
        for number in range(count)), encoding='utf-8')
    with bench.running(), bench.observer() as observer:
        vehicles = bench.start(
            'embedded vehicles', 'dryden_wind_ros.emulator.main', '--count', str(count),
            '--connection', f'tcp:127.0.0.1:{first}', '--flight', 'hover', '--quiet')
        fleet = bench.start(
            'wind_fleet', 'dryden_wind_ros.nodes.wind_fleet', '--ros-args',
            '-p', f'vehicles_file:={path}', '-p', 'mean_wind.speed:=8.0')
        bench.tell(f'{what} is starting')
        bench.until(lambda: fleet.text.count('the air starts') == count, 90,
                    f'the first tick of {count} vehicles', pause=0.3)
        bench.sleep(bench.seconds(3.0), f'{what} takes off')
        return _measure(bench, observer, count, what, fleet, vehicles)


def _measure(bench: Bench, observer: Observer, count: int, what: str, fleet: Process,
             vehicles: Process) -> Measured:
    begin = observer.ticks(count, 20)
    window = bench.seconds(_SECONDS.get(count, 5.0)) / _WINDOWS
    cpu, vehicles_before = [], vehicles.cpu()
    start = time.monotonic()
    for _ in range(_WINDOWS):
        wall, before = time.monotonic(), fleet.cpu()
        bench.sleep(window, what)
        cpu.append((fleet.cpu() - before) / (time.monotonic() - wall) / count)
    vehicles_cpu = (vehicles.cpu() - vehicles_before) / (time.monotonic() - start) / count
    end = observer.ticks(count, 20)
    flown = {name: (end[name].tick - begin[name].tick, end[name].wall - begin[name].wall)
             for name in begin}
    ticks = sum(ticks for ticks, _ in flown.values())
    if not ticks:
        raise BenchError(f'{what}: no vehicle ticked')
    # On a machine that is too busy the vehicles let time go, and everything has less to do.
    paces = [ticks / (20 * wall) for ticks, wall in flown.values()]
    pace = sum(paces) / count
    return Measured(
        tuple(x / pace for x in cpu), fleet.memory(), vehicles_cpu / pace, ticks,
        sum(end[name].missed - begin[name].missed for name in begin), min(paces))


def _run_floor(bench: Bench, count: int) -> Measured:
    what = f'vehicles: bare topics of {count}'
    with bench.running():
        floor = bench.start('bare process', FLOORS, 'fleet', str(count))
        bench.until(lambda: 'ready' in floor.text, 60, f'the bare process with {count}')
        bench.sleep(bench.seconds(2.0), f'{what} start')
        cpu = []
        for _ in range(_WINDOWS):
            wall, before = time.monotonic(), floor.cpu()
            bench.sleep(bench.seconds(_FLOOR_SECONDS) / _WINDOWS, what)
            cpu.append((floor.cpu() - before) / (time.monotonic() - wall) / count)
        return Measured(tuple(cpu), floor.memory())
