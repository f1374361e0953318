"""Parts `khz_clock` and `history`: the wind node under a fast clock, and its history service."""

from __future__ import annotations

import time

from dryden_wind_ros.tools.bench_parts.stage import FLOORS, Bench, BenchError
from dryden_wind_ros.tools.bench_parts.table import Row, compare, ratio_row

CLOCK_HZ = 1000
_TICKS = 2400


def run_khz_clock(bench: Bench) -> list[Row]:
    """Compare the wind node with a node that only counts, both on the same clock."""
    with bench.running(), bench.observer() as observer:
        names = ('--ros-args', '-r', '__ns:=/khz')
        wind = bench.start('dryden_wind', 'dryden_wind_ros.nodes.dryden_wind', *names,
                           '-p', 'mean_wind.speed:=8.0')
        counter = bench.start('counter', FLOORS, 'counter', *names)
        bench.start('clock source', FLOORS, 'clock', str(CLOCK_HZ), *names)
        bench.tell('khz_clock: starting')
        begin = next(iter(observer.ticks(1, 60).values()))
        bench.sleep(bench.seconds(2.0), 'khz_clock: settling')
        ratios, ours, floor = [], 0.0, 0.0
        start = time.monotonic()
        for _ in range(bench.repeats(6)):
            before = wind.cpu(), counter.cpu()
            bench.sleep(bench.seconds(1.5), 'khz_clock')
            after = wind.cpu(), counter.cpu()
            ours += after[0] - before[0]
            floor += after[1] - before[1]
            if after[1] == before[1]:
                raise BenchError('the counting node heard nothing')
            ratios.append((after[0] - before[0]) / (after[1] - before[1]))
        seconds = time.monotonic() - start
        end = next(iter(observer.ticks(1, 20).values()))
    return [ratio_row(
        'khz_clock', 'wind node under a 1 kHz clock', 'a bare rclpy node that counts the messages',
        ratios, limit=1.3, unit='the CPU',
        note=f'{1e3 * ours / seconds:.0f} against {1e3 * floor / seconds:.0f} ms/s; '
             f'{end.missed - begin.missed} of {end.tick - begin.tick} ticks missed')]


def run_history(bench: Bench) -> list[Row]:
    """Compare the history of two minutes with a service that answers nothing."""
    with bench.running(), bench.observer() as observer:
        # Both need rclpy, which the parts without ROS do without.
        from rosgraph_msgs.msg import Clock
        from std_srvs.srv import Trigger

        from dryden_wind_ros.nodes import common

        bench.start('dryden_wind', 'dryden_wind_ros.nodes.dryden_wind', '--ros-args',
                    '-r', '__ns:=/history', '-p', 'mean_wind.speed:=8.0')
        bench.start('empty service', FLOORS, 'service', '--ros-args', '-r', '__ns:=/history')
        kind = common.interfaces('srv').GetWindHistory
        history = observer.node.create_client(kind, '/history/wind/get_history')
        empty = observer.node.create_client(Trigger, '/history/empty')
        clock = observer.node.create_publisher(Clock, '/history/clock', common.STREAM_QOS)
        bench.tell('history: starting')
        observer.until(lambda: history.service_is_ready() and empty.service_is_ready()
                       and clock.get_subscription_count(), 60, 'the two services')
        message = Clock()
        tick = 0

        def filled() -> bool:
            # A clock is heard best effort: what gets lost in a hurry is followed by more.
            nonlocal tick
            for _ in range(240):
                tick += 1
                message.clock.sec, rest = divmod(50 * tick, 1000)
                message.clock.nanosec = rest * 1_000_000
                clock.publish(message)
                if tick % 20 == 0:
                    time.sleep(0.01)
            _, response = observer.call(history, kind.Request())
            bench.tell(f'history: {len(response.t)} of {_TICKS} ticks')
            return len(response.t) >= _TICKS
        bench.until(filled, 60, f'a history of {_TICKS} ticks')
        bench.tell('history: asking')
        row = compare(
            'history', f'wind/get_history, all {_TICKS} ticks',
            lambda: observer.call(history, kind.Request())[0], 'an empty service of a bare node',
            lambda: observer.call(empty, Trigger.Request())[0], bench.repeats(150))
    return [row]
