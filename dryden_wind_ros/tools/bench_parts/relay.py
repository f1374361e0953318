"""Parts `latency` and `nodes_cpu`: wind node and bridge against a bare relay."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from dryden_wind_ros.tools.bench_parts.stage import FLOORS, Bench, BenchError, Process
from dryden_wind_ros.tools.bench_parts.table import Row, ratio_row, time_text
from dryden_wind_ros.tools.bench_parts.vehicle import TimedVehicle, fly

RELAY = ('a bare rclpy relay in two processes: MAVLink to clock and odom; clock to sim_wind to '
         'three PARAM_SETs')


@dataclass
class Side:
    """A vehicle and the two processes that serve it."""

    vehicle: TimedVehicle
    processes: tuple[Process, Process]

    def cpu(self) -> float:
        """CPU time of the two processes, s."""
        return sum(process.cpu() for process in self.processes)


@contextlib.contextmanager
def two_sides(bench: Bench) -> Iterator[tuple[Side, Side]]:
    """Have our nodes and the relay fly, each with its own vehicle, until both write wind."""
    with bench.running(), contextlib.ExitStack() as stack:
        vehicles = [TimedVehicle() for _ in range(2)]
        for vehicle in vehicles:
            stack.callback(vehicle.close)
        ours, relay = vehicles
        names = ('--ros-args', '-r', '__ns:=/ours')
        floor = ('--ros-args', '-r', '__ns:=/relay')
        sides = (
            Side(ours, (
                bench.start('dryden_wind', 'dryden_wind_ros.nodes.dryden_wind', *names,
                            '-p', 'mean_wind.speed:=8.0'),
                bench.start('mavlink_bridge', 'dryden_wind_ros.nodes.mavlink_bridge', *names,
                            '-p', f'connection:={ours.connection}', '-p', 'publish_clock:=true'))),
            Side(relay, (
                bench.start('relay wind', FLOORS, 'wind', *floor),
                bench.start('relay link', FLOORS, 'link', relay.connection, *floor))))

        def both_answer() -> bool:
            before = [len(vehicle.latencies) for vehicle in vehicles]
            fly(vehicles, 1.0, 1.0)
            return all(len(vehicle.latencies) - old > 15
                       for vehicle, old in zip(vehicles, before, strict=True))

        bench.tell('nodes and relay are starting')
        bench.until(both_answer, 60, 'PARAM_SETs of the nodes and of the relay', pause=0.0)
        fly(vehicles, bench.seconds(2.0), 1.0)
        yield sides
        for side in sides:
            for process in side.processes:
                process.stop()


def run_latency(bench: Bench) -> list[Row]:
    """Time a tick from SYSTEM_TIME on the socket to its last PARAM_SET on the socket."""
    with two_sides(bench) as sides:
        turns: list[list[list[float]]] = [[], []]
        for turn in range(bench.repeats(12)):
            bench.tell(f'latency: turn {turn + 1} of {bench.repeats(12)}')
            for side in sides:
                side.vehicle.latencies.clear()
                side.vehicle.ticks = 0
            fly([side.vehicle for side in sides], bench.seconds(1.0), 1.0)
            for side, kept in zip(sides, turns, strict=True):
                kept.append(sorted(side.vehicle.latencies))
    if not all(any(kept) for kept in turns):
        raise BenchError('no PARAM_SET came between two ticks')
    rows = []
    for percent in (50, 99):
        # The p99 of a turn is its worst; that of the whole run is what counts.
        whole = [_percentile(sorted(x for latencies in kept for x in latencies), percent)
                 for kept in turns]
        ratios = [_percentile(ours, percent) / _percentile(floor, percent)
                  for ours, floor in zip(*turns, strict=True) if ours and floor]
        row = ratio_row('latency', f'SYSTEM_TIME in to last PARAM_SET out, p{percent}', RELAY,
                        ratios or [whole[0] / whole[1]],
                        note=' against '.join(time_text(x) for x in whole))
        rows.append(replace(row, ratio=whole[0] / whole[1]))
    return rows


def run_nodes_cpu(bench: Bench) -> list[Row]:
    """Compare the CPU time of the two nodes with that of the relay, in turns."""
    rows = []
    with two_sides(bench) as (ours, relay):
        for speedup in (1, 10):
            repeats = bench.repeats(5)
            shares: list[tuple[float, float]] = []
            for turn in range(repeats + 1):
                bench.tell(f'nodes_cpu: speedup {speedup}, turn {turn} of {repeats}')
                pair = []
                for side, other in ((ours, relay), (relay, ours)):
                    # The nodes wait in peace while the other side flies.
                    before, ticks = side.cpu(), side.vehicle.ticks
                    seconds = bench.seconds(1.0)
                    fly([side.vehicle], seconds, speedup, idle=[other.vehicle])
                    ticks = side.vehicle.ticks - ticks
                    if not ticks:
                        raise BenchError('the vehicle did not tick')
                    pair.append((side.cpu() - before) / ticks)
                if turn:  # the first follows a change of speedup
                    shares.append((pair[0], pair[1]))
            a, b = (sorted(side)[len(side) // 2] for side in zip(*shares, strict=True))
            rows.append(ratio_row(
                'nodes_cpu', f'wind node and bridge at speedup {speedup}, CPU per tick', RELAY,
                [ours_s / floor_s for ours_s, floor_s in shares], unit='the CPU',
                note=f'{time_text(a)} against {time_text(b)}'))
    return rows


def _percentile(ordered: list[float], percent: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
