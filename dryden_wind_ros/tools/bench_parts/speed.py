"""Part `speedup`: how fast simulated time may run before a tick is missed."""

from __future__ import annotations

from dataclasses import dataclass

from pymavlink import mavutil

from dryden_wind_ros.tools.bench_parts.relay import RELAY
from dryden_wind_ros.tools.bench_parts.stage import FLOORS, Bench, BenchError, Observer, free_ports
from dryden_wind_ros.tools.bench_parts.table import Row, ratio_row

FIRST = 8.0
MOST = 256.0
#: An embedded vehicle that comes no nearer to what was asked than this has reached its own limit.
_REACHED = 0.8


@dataclass(frozen=True)
class Step:
    """What happened at one speedup."""

    asked: float
    reached: float
    ticks: int
    missed: int


def run_speedup(bench: Bench) -> list[Row]:
    """Search by doubling for the wind node behind the bridge, and for the relay."""
    ours = _search(bench, relay=False)
    relay = _search(bench, relay=True)
    best = [max((step.reached for step in steps if not step.missed), default=0.0)
            for steps in (ours, relay)]
    if not best[1]:
        raise BenchError('the relay missed ticks at every speedup')
    return [ratio_row(
        'speedup', 'highest speedup at which the wind node missed no tick', RELAY,
        [best[0] / best[1]], faster=True, unit='the speedup',
        note=f'{best[0]:.1f} ({_end(ours)}) against {best[1]:.1f} ({_end(relay)})')]


def _end(steps: list[Step]) -> str:
    last = steps[-1]
    if last.missed:
        return f'{last.missed} of {last.ticks} missed at {last.reached:.0f}'
    return f'the vehicle went no faster when asked for {last.asked:g}'


def _search(bench: Bench, *, relay: bool) -> list[Step]:
    who = 'relay' if relay else 'nodes'
    first = free_ports(2, 1)
    link, control = (f'tcp:127.0.0.1:{first + number}' for number in range(2))
    names = ('--ros-args', '-r', f'__ns:=/{who}_speedup')
    with bench.running(), bench.observer() as observer:
        bench.start('embedded vehicle', 'dryden_wind_ros.emulator.main', '--connection', link,
                    '--connection', control, '--flight', 'hover', '--quiet')
        if relay:
            bench.start('relay wind', FLOORS, 'wind', *names)
            bench.sleep(1.0, 'speedup: the vehicle is starting')
            bench.start('relay link', FLOORS, 'link', link, *names)
        else:
            bench.start('dryden_wind', 'dryden_wind_ros.nodes.dryden_wind', *names,
                        '-p', 'mean_wind.speed:=8.0')
            bench.start('mavlink_bridge', 'dryden_wind_ros.nodes.mavlink_bridge', *names,
                        '-p', f'connection:={link}', '-p', 'publish_clock:=true')
        bench.tell(f'speedup: {who} are starting')
        observer.ticks(1, 60)
        vehicle = mavutil.mavlink_connection(control, source_system=250, retries=20)
        try:
            steps: list[Step] = []
            asked = FIRST
            while asked <= (FIRST if bench.quick else MOST):
                bench.tell(f'speedup: {who} at {asked:g}')
                step = _step(bench, observer, vehicle, asked)
                steps.append(step)
                if step.missed or step.reached < _REACHED * asked:
                    break
                asked *= 2.0
            return steps
        finally:
            vehicle.mav.param_set_send(1, 1, b'SIM_SPEEDUP', 1.0, 9)
            vehicle.close()


def _step(bench: Bench, observer: Observer, vehicle: object, asked: float) -> Step:
    vehicle.mav.param_set_send(1, 1, b'SIM_SPEEDUP', asked, 9)  # type: ignore[attr-defined]
    bench.sleep(0.5, f'speedup: {asked:g}')
    (begin,) = observer.ticks(1, 20).values()
    bench.sleep(bench.seconds(2.0), f'speedup: {asked:g}')
    (end,) = observer.ticks(1, 20).values()
    ticks = end.tick - begin.tick
    return Step(asked, ticks * 0.05 / (end.wall - begin.wall), ticks, end.missed - begin.missed)
