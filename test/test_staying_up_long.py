"""A long flight at a high speedup: memory does not grow."""

from __future__ import annotations

import os
import time

import pytest
from support import wait_until
from support.stage import Stage

pytestmark = pytest.mark.ros2


def resident_mb(pid: int) -> float:
    with open(f'/proc/{pid}/statm') as file:
        return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE') / 1e6


MINUTES = float(os.environ.get('DRYDEN_WIND_SOAK_MINUTES', '4'))
"""Sim time of the long flight, min; 60 flies the hour."""


@pytest.mark.timeout(300 + 8 * MINUTES)
@pytest.mark.skipif(not os.path.exists('/proc/self/statm'), reason='needs /proc')
def test_memory_is_flat_over_minutes_at_speedup_20(tmp_path):
    stage = Stage(tmp_path, speedup=20.0)
    try:
        with stage.flight():
            begin = stage.states[-1].t
            # The two minutes of the history are full then.
            wait_until(lambda: stage.states[-1].t > begin + 130, 120, '130 s of sim time')
            measured = []

            def measure():
                measured.append([resident_mb(node.process.pid)
                                 for node in (stage.wind, stage.bridge)])

            wall = time.monotonic()
            for minute in range(2, round(MINUTES) + 1, 2):
                stage.until(lambda: stage.states[-1].t > begin + 60 * minute + 10,  # noqa: B023
                            f'minute {minute} of the flight', 120)
                measure()
            wall = time.monotonic() - wall
            print('RSS of wind node and bridge every 2 minutes, MB:',
                  '  '.join(f'{wind:.2f} {bridge:.2f}' for wind, bridge in measured),
                  f'at speedup {60 * (MINUTES - 2) / wall:.1f}')
            for first, last in zip(measured[0], measured[-1], strict=True):
                assert last < first + 2.0
            assert len(stage.history()) == 2400
    finally:
        stage.close()
