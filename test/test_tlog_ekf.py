"""EKF3's wind along a telemetry log: what is left out on the way changes nothing."""

from __future__ import annotations

import functools
import random
from pathlib import Path

import pytest
from pymavlink.dialects.v20 import ardupilotmega as mavlink
from support import ekf_flights as flights

from dryden_wind_ros.logs.tlog import Telemetry
from dryden_wind_ros.logs.tlog_ekf import follow_all, follow_ekf
from dryden_wind_ros.logs.tlog_vehicle import Vehicle

Packets = list[tuple[float, str, bytes]]


@functools.cache
def copter() -> Packets:
    """Return (time, type, packet) of a copter that takes off and coasts.

    With a GLOBAL_POSITION_INT at 2 Hz, of which the height is a little another one.
    """
    sender = mavlink.MAVLink(None, srcSystem=1, srcComponent=1)
    found: Packets = []
    for t, one in flights.messages('copter_drag'):
        if not 45.0 <= t < 160.0:
            continue
        found.append((t, one.get_type(), bytes(one.get_msgbuf())))
        if one.get_type() == 'LOCAL_POSITION_NED' and not len(found) % 5:
            around = mavlink.MAVLink_global_position_int_message(
                one.time_boot_ms, 0, 0, 0, round(-one.z * 1000) + 40, round(one.vx * 100),
                round(one.vy * 100), 0, 9000)
            found.append((t, 'GLOBAL_POSITION_INT', around.pack(sender)))
    return found


def without(packets: Packets, kinds: tuple[str, ...], begin: float, end: float) -> Packets:
    return [one for one in packets if not (begin <= one[0] < end and one[1] in kinds)]


def overtaking(packets: Packets) -> Packets:
    order = random.Random(3)
    return [one for _, one in sorted(
        ((at + order.uniform(0.0, 12.0), one) for at, one in enumerate(packets)),
        key=lambda each: each[0])]


def much_too_late(packets: Packets) -> Packets:
    """Three seconds of packets come after the four that follow, which looks like a restart."""
    first, second, third = (next(at for at, one in enumerate(packets) if one[0] >= t)
                            for t in (80.0, 83.0, 87.0))
    return packets[:first] + packets[second:third] + packets[first:second] + packets[third:]


LOGS = {
    'whole': lambda p: p,
    'overtaking': overtaking,
    'too late': much_too_late,
    # At the take-off and in flight: velocity and height then come from elsewhere.
    'no local position': lambda p: without(without(
        p, ('LOCAL_POSITION_NED',), 0.0, 62.0), ('LOCAL_POSITION_NED', 'VFR_HUD'), 120.0, 140.0),
    'no attitude': lambda p: without(p, ('ATTITUDE', 'HEARTBEAT'), 52.0, 150.0),
    'few reports': lambda p: without(p, ('EKF_STATUS_REPORT',), 54.0, 57.5)[::3],
    'outage': lambda p: [one for one in p if not 90.0 <= one[0] < 145.0],
    'restart': lambda p: [one for one in p if one[0] < 75.0] * 2,
}


def log_of(path: Path, content: bytes) -> Vehicle:
    path.write_bytes(content)
    return Vehicle(Telemetry(path))


def stamped(packets: Packets) -> bytes:
    return b''.join(round((1e9 + t) * 1e6).to_bytes(8, 'big') + packet for t, _, packet in packets)


def check_same(log: Vehicle) -> list[str]:
    """Compare with what the monitor makes of every message; return the phases in turn."""
    fast, every = list(follow_ekf(log)), list(follow_all(log))

    # As text, for NaN is not equal to itself.
    assert [str(one) for one in fast] == [str(one) for one in every]
    phases = [one.phase.name for one in fast]
    return [one for before, one in zip(['', *phases], phases, strict=False) if one != before]


@pytest.mark.parametrize('kind', LOGS)
def test_the_phases_of_a_copters_log_are_those_of_all_its_messages(tmp_path, kind):
    log = log_of(tmp_path / 'f.tlog', stamped(LOGS[kind](copter())))

    phases = check_same(log)

    assert {'GROUND', 'INIT', 'LEARNING'} <= set(phases)
    assert log.steady_clock == (kind != 'too late')


@pytest.mark.parametrize('name', ['plane_wind_steps', 'quadplane'])
def test_the_phases_of_a_planes_damaged_log_are_those_of_all_its_messages(tmp_path, name):
    content = bytearray(Telemetry(flights.tlog_path(name)).data.tobytes())
    damage = random.Random(1)
    for _ in range(40):
        content[damage.randrange(len(content))] ^= 1 << damage.randrange(8)
    content[300_000:301_000] = bytes(1000)

    phases = check_same(log_of(tmp_path / 'f.tlog', bytes(content)))

    assert phases[:4] == ['GROUND', 'INHIBITED', 'INIT', 'LEARNING']
