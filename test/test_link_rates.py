"""Message rates: kept against whoever undoes them, and given back as they were."""

from __future__ import annotations

import contextlib
import importlib.util
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pymavlink.dialects.v20 import ardupilotmega as mavlink
from support import free_port, wait_until
from support.vehicle import Emulator
from support.watched import Watched

from dryden_wind_ros.emulator.autopilot import Autopilot
from dryden_wind_ros.emulator.main import EmbeddedVehicle, VehicleConfig
from dryden_wind_ros.sitl.connection import parse_connection
from dryden_wind_ros.sitl.loop import LinkLoop
from dryden_wind_ros.sitl.session import EKF_INTERVALS, Session, SessionSettings
from dryden_wind_ros.sitl.sim_wind import Wind

SYSTEM_TIME = mavlink.MAVLINK_MSG_ID_SYSTEM_TIME
ATTITUDE = mavlink.MAVLINK_MSG_ID_ATTITUDE
EXTENDED_SYS_STATE = mavlink.MAVLINK_MSG_ID_EXTENDED_SYS_STATE
SLOW_MS = 100  # steps of the clock that are longer than this reach no more than 10 ticks a second


def slow_spells(times: list[int]) -> list[int]:
    """Return how long the clock was too slow each time, ms of vehicle time."""
    spells, spell = [], 0
    for before, after in pairwise(times):
        if after - before > SLOW_MS:
            spell += after - before
        elif spell:
            spells.append(spell)
            spell = 0
    return [*spells, spell] if spell else spells


def streams(rate: int) -> Any:
    return mavlink.MAVLink_request_data_stream_message(
        1, 1, mavlink.MAV_DATA_STREAM_ALL, rate, 1)


def test_rates_that_somebody_undoes_are_back_within_2_s_and_it_is_said_once():
    with Emulator() as emulator, Watched(
            emulator.connection, intervals={ATTITUDE: 50_000, EXTENDED_SYS_STATE: 200_000}
            ) as watched:
        begun = len(watched.wait_for_ticks(20)) - 41
        for rate in (4, 1, 4):
            watched.requests.append(streams(rate))
            wait_until(lambda: not watched.requests, 5, 'the request to be sent')
            slow = len(slow_spells(watched.times()[begun:]))
            wait_until(lambda seen=slow: len(slow_spells(watched.times()[begun:])) > seen, 5,
                       'the rates to be undone')
            watched.wait_for_ticks(20)
        spells = slow_spells(watched.times()[begun:])
        assert len(spells) == 3
        assert max(spells) < 2000
        # What no stream holds was not undone, and all is in force again.
        wait_until(lambda: watched.settled == {
            'SYSTEM_TIME': 25_000, 'ATTITUDE': 50_000, 'EXTENDED_SYS_STATE': 200_000}, 5,
            'all intervals')
        assert watched.text.count('keeps setting its message rates') == 1
        assert 'set streamrate -1' in watched.text
        assert '--streamrate=-1' in watched.text
        assert any('streamrate' in problem for problem in watched.link.status().problems)
        assert watched.link.status().restarts == 0


def test_a_clock_that_is_switched_off_is_switched_on_again():
    """Nothing tells the vehicle's time then: the wall does."""
    with Emulator() as emulator, Watched(emulator.connection) as watched:
        watched.wait_for_ticks(20)
        watched.requests.append(mavlink.MAVLink_command_long_message(
            1, 1, mavlink.MAV_CMD_SET_MESSAGE_INTERVAL, 0, SYSTEM_TIME, -1, 0, 0, 0, 0, 0))
        wait_until(lambda: slow_spells(watched.times()), 10, 'the clock to stop and go on')
        watched.wait_for_ticks(20)


@contextlib.contextmanager
def flying(config: VehicleConfig, kind: type[EmbeddedVehicle] = EmbeddedVehicle
           ) -> Iterator[EmbeddedVehicle]:
    """Run a vehicle in a thread, where its channels can be looked at."""
    vehicle = kind(config)
    thread = threading.Thread(target=vehicle.run)
    thread.start()
    try:
        assert vehicle.started.wait(10)
        yield vehicle
    finally:
        vehicle.stop()
        thread.join(10)


class LaterVehicle(EmbeddedVehicle):
    """Every further boot begins ten minutes later on its clock."""

    def _boot(self) -> Autopilot:
        autopilot = super()._boot()
        autopilot.stamp_shift_us = (self.boots - 1) * 600_000_000
        return autopilot


def test_a_restart_to_a_later_time_is_one():
    """UDP stays up while the vehicle restarts, and its clock does not go back."""
    port = free_port(socket.SOCK_DGRAM)
    config = VehicleConfig(connections=(f'udpin:127.0.0.1:{port}',))
    with flying(config, LaterVehicle) as vehicle, Watched(f'udpout:127.0.0.1:{port}') as watched:
        watched.wait_for_ticks(20)
        vehicle.reboot()
        wait_until(lambda: watched.times()[-1] > 600_000, 10, 'the later time')
        watched.wait_said('was restarted (its time leapt')
        times = watched.wait_for_ticks(20)
        assert watched.link.status().restarts == 1
        assert watched.vehicles == [True, True]
        # From the first message of the new boot on, at 1 Hz, it takes 2 s at most.
        later = [ms for ms in times if ms > 600_000]
        assert max(slow_spells(later), default=0) < 2000


def test_a_vehicle_that_paused_or_lost_packets_was_not_restarted():
    with Emulator() as emulator, Watched(emulator.connection) as watched:
        watched.wait_for_ticks(20)
        emulator.signal(signal.SIGSTOP)
        time.sleep(1.5)
        emulator.signal(signal.SIGCONT)
        watched.wait_for_ticks(40)
        assert watched.link.status().restarts == 0
        assert not watched.link.status().problems


class Bridge:
    """A session on a vehicle in this process."""

    def __init__(self, connection: str, state: Path) -> None:
        self.errors: list[BaseException] = []
        self.events: list[Any] = []
        self.loop = LinkLoop(self.errors.append)
        self.session = Session(
            parse_connection(connection), SessionSettings(state_dir=str(state)),
            on_event=self.events.append, on_odometry=lambda sample: None, intervals=EKF_INTERVALS)

    @property
    def text(self) -> str:
        return '\n'.join(event.text for event in self.events)

    def __enter__(self) -> Bridge:
        self.loop.start()
        self.session.start(self.loop)
        return self

    def __exit__(self, *_: Any) -> None:
        self.loop.stop()
        assert not self.errors


def test_rates_are_put_back_at_the_end(tmp_path):
    config = VehicleConfig(connections=(f'tcp:127.0.0.1:{free_port()}',), origin_after=0.5)
    with flying(config) as vehicle, Bridge(config.connections[0], tmp_path) as bridge:
        channel = vehicle.autopilot.channels[0]
        found = dict(channel.intervals)
        bridge.session.set_wind(Wind(5.0, 270.0))
        asked = {SYSTEM_TIME: 25_000, ATTITUDE: 50_000, EXTENDED_SYS_STATE: 200_000,
                 mavlink.MAVLINK_MSG_ID_EKF_STATUS_REPORT: 100_000}
        wait_until(lambda: asked.items() <= channel.intervals.items(), 10,
                   lambda: f'{asked} among {channel.intervals}')
        wait_until(lambda: vehicle.autopilot.parameters.get('SIM_WIND_SPD') == 5.0, 10, 'the wind')
        bridge.session.begin_restore()
        assert bridge.session.wait_restored(10)
        assert channel.intervals == found
        asked_for = len(bridge.session.link.status().intervals)
        assert (f'{asked_for} message rates are at their defaults again, confirmed'
                in bridge.text)
    assert 'could not' not in bridge.text


def test_no_rate_of_a_vehicle_that_is_no_simulator_is_changed(tmp_path):
    config = VehicleConfig(connections=(f'tcp:127.0.0.1:{free_port()}',), simulator=False)
    with flying(config) as vehicle, Bridge(config.connections[0], tmp_path) as bridge:
        channel = vehicle.autopilot.channels[0]
        found = dict(channel.intervals)
        wait_until(lambda: 'not a simulator' in bridge.text, 20, 'the verdict')
        assert channel.intervals == found
        bridge.session.begin_restore()
        assert bridge.session.wait_restored(10)
        assert channel.intervals == found
    assert 'message rates' not in bridge.text


def test_20_hz_behind_mavproxy_and_it_is_told_what_to_set(tmp_path):
    """MAVProxy asks for its own stream rates at the start, whenever they are set and every 15 s.

    It is no requirement of this package. To run this test: ``pip install MAVProxy`` (for this
    test, ``pip install --no-deps MAVProxy defusedxml pynmeagps`` is enough, and much smaller).
    """
    if importlib.util.find_spec('MAVProxy') is None:
        pytest.skip('MAVProxy is not installed: pip install MAVProxy')
    port = free_port(socket.SOCK_DGRAM)
    with Emulator() as emulator, Watched(f'udp:127.0.0.1:{port}') as watched:
        proxy = subprocess.Popen(
            [sys.executable, '-m', 'MAVProxy.mavproxy', '--master', emulator.connection,
             '--out', f'udp:127.0.0.1:{port}', '--default-modules', 'link',
             '--state-basedir', str(tmp_path)],
            cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, text=True)
        try:
            assert proxy.stdin is not None
            watched.wait_for_ticks(40, 60)
            begun = len(watched.times())
            for rate in (5, 4, 5):
                seen = len(slow_spells(watched.times()[begun:]))
                proxy.stdin.write(f'set streamrate {rate}\n')
                proxy.stdin.flush()
                wait_until(lambda seen=seen: len(slow_spells(watched.times()[begun:])) > seen, 10,
                           'MAVProxy to set its rates')
                watched.wait_for_ticks(20)
            assert max(slow_spells(watched.times()[begun:])) < 2000
            watched.wait_said('set streamrate -1', 5)
            # What it says helps.
            proxy.stdin.write('set streamrate -1\n')
            proxy.stdin.flush()
            begun = len(watched.wait_for_ticks(40))
            watched.wait_for_ticks(40)
            assert not slow_spells(watched.times()[begun:])
            assert watched.link.status().restarts == 0
        finally:
            proxy.kill()
            proxy.wait(10)
