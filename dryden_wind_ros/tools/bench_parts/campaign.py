"""Part `campaign`: sim seconds a wall second of one core, against the vehicle alone."""

from __future__ import annotations

import time

from dryden_wind_ros.campaign.embedded_flight import TICK_US
from dryden_wind_ros.campaign.entry import Entry, Manoeuvre, Vehicle, Wind, vehicle_config
from dryden_wind_ros.campaign.flight import fly
from dryden_wind_ros.emulator.autopilot import Autopilot
from dryden_wind_ros.emulator.parameters import Eeprom
from dryden_wind_ros.tools.bench_parts.stage import Bench
from dryden_wind_ros.tools.bench_parts.table import Row, compare

PROMISED = 0.7


def _flight(seconds: float) -> float:
    """Fly in gusts and measure; return the time of a sim second, s."""
    entry = Entry(0, 'bench', Vehicle(), Wind(8.0), Manoeuvre(seconds=seconds), 1)
    began = time.process_time()
    outcome = fly(entry, 'failures')  # as a plan has it unless it says otherwise
    taken = time.process_time() - began
    assert not outcome.row['failed'], outcome.row['failure']
    return taken / float(outcome.row['sim_seconds'] or 0.0)


def _alone(seconds: float) -> float:
    """Let the same vehicle hover in still air; return the time of a sim second, s."""
    vehicle = Autopilot(vehicle_config(Vehicle(), 1), Eeprom())
    ticks = round((seconds + 30.0) * 1e6 / TICK_US)
    began = time.process_time()
    for tick in range(1, ticks + 1):
        vehicle.advance(tick * TICK_US)
    return (time.process_time() - began) / (seconds + 30.0)


def run_campaign(bench: Bench) -> list[Row]:
    """Measure a campaign's flight against the vehicle that it flies."""
    seconds = 5.0 if bench.quick else 120.0
    return [compare('campaign', 'a sim second of a flight in gusts, and its measures',
                    lambda: _flight(seconds), 'the vehicle alone, no wind',
                    lambda: _alone(seconds), 3 if bench.quick else 9, faster=True,
                    limit=PROMISED)]
