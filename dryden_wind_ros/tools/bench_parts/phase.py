"""Part `phase`: what WindPhaseMonitor costs per message of a plane's flight."""

from __future__ import annotations

import time
from typing import Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.ekf.phase import WindPhaseMonitor
from dryden_wind_ros.emulator.autopilot import Autopilot
from dryden_wind_ros.emulator.config import VehicleConfig
from dryden_wind_ros.emulator.parameters import Eeprom
from dryden_wind_ros.sitl import odometry
from dryden_wind_ros.sitl.session import EKF_INTERVALS
from dryden_wind_ros.tools.bench_parts.stage import Bench
from dryden_wind_ros.tools.bench_parts.table import Row, ratio_row, time_text

PROMISED_S = 20e-6


def telemetry(seconds: float) -> list[bytes]:
    """Return the frames of an embedded plane that takes off and circles, at the bridge's rates."""
    autopilot = Autopilot(VehicleConfig(
        kind='plane', flight='loiter', connections=('tcp:127.0.0.1:1',)), Eeprom())
    channel = autopilot.channels[0]
    autopilot.client_joined(channel)
    codec = mavlink.MAVLink(None, 245, 191)
    intervals = {**EKF_INTERVALS, mavlink.MAVLINK_MSG_ID_SYSTEM_TIME: 25_000,
                 odometry.ATTITUDE: 50_000, odometry.LOCAL_POSITION_NED: 50_000}
    for ident, interval in intervals.items():
        channel.receive(mavlink.MAVLink_command_long_message(
            1, 1, mavlink.MAV_CMD_SET_MESSAGE_INTERVAL, 0, ident, interval, 0, 0, 0, 0, 0
        ).pack(codec))
    frames: list[bytes] = []
    while autopilot.time_s < seconds:
        autopilot.advance(autopilot.next_due())
        frames += channel.take_datagrams(1)
    return frames


def run_phase(bench: Bench) -> list[Row]:
    """Compare the monitor with the decoding that every message needs anyway, in turns."""
    bench.tell('phase: flying a plane')
    frames = telemetry(bench.seconds(60.0))
    repeats = bench.repeats(12)
    ours, floor = [], []
    for turn in range(repeats + 1):
        bench.tell(f'phase: turn {turn} of {repeats}')
        codec = mavlink.MAVLink(None)
        start = time.perf_counter()
        messages: list[Any] = [codec.decode(bytearray(frame)) for frame in frames]
        decoded = time.perf_counter()
        update = WindPhaseMonitor().update
        for message in messages:
            update(message)
        end = time.perf_counter()
        if turn:
            floor.append((decoded - start) / len(frames))
            ours.append((end - decoded) / len(frames))
    middle = sorted(ours)[len(ours) // 2]
    note = f'{time_text(middle)} against {time_text(sorted(floor)[len(floor) // 2])}'
    what = 'WindPhaseMonitor.update, per message'
    return [
        ratio_row('phase', what, 'decoding the message with pymavlink',
                  [a / b for a, b in zip(ours, floor, strict=True)], note=note),
        ratio_row('phase', what, 'the 20 µs it may take', [a / PROMISED_S for a in ours],
                  limit=1.0, note=f'{time_text(middle)} per message'),
    ]
