"""A vehicle that times its wind: the embedded autopilot behind a socket of the bench's own.

The time of a tick is taken just before the bytes that hold its SYSTEM_TIME are written, the time of
a wind just after the bytes of its last PARAM_SET were read, both in the bench's process.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Sequence

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.emulator.autopilot import Autopilot
from dryden_wind_ros.emulator.config import VehicleConfig
from dryden_wind_ros.emulator.parameters import Eeprom
from dryden_wind_ros.sitl.framing import FrameParser

_TICK_MS = 50


class TimedVehicle:
    """One copter that takes off and hovers, with one client.

    Attributes
    ----------
    connection : str
        Where the bridge finds it.
    latencies : list of float
        From tick to the last PARAM_SET before the next tick, s.
    ticks : int
        Ticks sent.
    """

    def __init__(self) -> None:
        self._listener = socket.socket()
        self._listener.bind(('127.0.0.1', 0))
        self._listener.listen(1)
        host, port = self._listener.getsockname()
        self.connection = f'tcp:{host}:{port}'
        self._autopilot = Autopilot(
            VehicleConfig(connections=(self.connection,), flight='hover'), Eeprom())
        self._channel = self._autopilot.channels[0]
        self._socket: socket.socket | None = None
        self._sent = FrameParser({mavlink.MAVLINK_MSG_ID_SYSTEM_TIME})
        self._received = FrameParser({mavlink.MAVLINK_MSG_ID_PARAM_SET})
        self._tick = -1
        self._ticked_at = 0.0
        self._answered_at = 0.0
        self.latencies: list[float] = []
        self.ticks = 0
        self._base_wall, self._base_us, self._speedup = 0.0, 0, 1.0
        self.due = 0.0

    def fileno(self) -> int:
        """Return what to wait on: the client's socket, or the listening one."""
        return (self._socket or self._listener).fileno()

    def start(self, now: float, speedup: float) -> None:
        """Let time go on from here, at this speedup."""
        self._base_wall, self._base_us, self._speedup = now, self._autopilot.t_us, speedup
        self._ticked_at = 0.0
        self._plan()

    def read(self) -> None:
        """Take what has come."""
        if self._socket is None:
            self._socket, _ = self._listener.accept()
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._autopilot.client_joined(self._channel)
            return
        data = self._socket.recv(65536)
        now = time.perf_counter()
        if not data:
            raise ConnectionError(f'{self.connection}: the client has left')
        if self._received.feed(data):
            self._answered_at = now
        self._channel.receive(data)

    def turn(self) -> None:
        """Do what is due."""
        autopilot = self._autopilot
        autopilot.advance(round(self._base_us + (self.due - self._base_wall) * self._speedup * 1e6))
        data = self._channel.take()
        self._plan()
        if not data or self._socket is None:
            return
        now = time.perf_counter()
        self._socket.sendall(data)
        for message in self._sent.feed(data):
            if message.get_msgId() == mavlink.MAVLINK_MSG_ID_SYSTEM_TIME \
                    and message.time_boot_ms // _TICK_MS > self._tick:
                self._tick = message.time_boot_ms // _TICK_MS
                if self._ticked_at:
                    self.ticks += 1
                    if self._answered_at > self._ticked_at:
                        self.latencies.append(self._answered_at - self._ticked_at)
                self._ticked_at = now

    def _plan(self) -> None:
        due = self._autopilot.next_due()
        self.due = self._base_wall + (due - self._base_us) * 1e-6 / self._speedup

    def close(self) -> None:
        """Close the sockets."""
        self._listener.close()
        if self._socket is not None:
            self._socket.close()


def fly(vehicles: Sequence[TimedVehicle], seconds: float, speedup: float,
        idle: Sequence[TimedVehicle] = ()) -> None:
    """Let vehicles fly for so many wall seconds, out of step with each other.

    Time stands still for those in `idle`, which still read what they are sent.
    """
    now = time.monotonic()
    end = now + seconds
    for number, vehicle in enumerate(vehicles):
        # Messages come every 25 ms of vehicle time.
        vehicle.start(now + number * 0.025 / speedup / len(vehicles), speedup)
    readers = [*vehicles, *idle]
    while now < end:
        due = min(vehicle.due for vehicle in vehicles)
        ready, _, _ = select.select(readers, [], [], max(0.0, min(due, end) - now))
        for vehicle in ready:
            vehicle.read()
        now = time.monotonic()
        for vehicle in vehicles:
            if vehicle.due <= now:
                vehicle.turn()
