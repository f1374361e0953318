"""The embedded vehicle: a MAVLink vehicle for demos and tests where no ArduPilot SITL is.

It listens where SITL does (5760, 5762 and 5763, plus ten per instance) and behaves as SITL was
measured to: parameters, message intervals, clock, wind filter, flight through the wind, EKF3's wind
phases, restarts. Any MAVLink program can connect to it.

As a program::

    sitl_emulator --vehicle copter --flight hover --speedup 10

As a library, in a thread of its own::

    vehicle = EmbeddedVehicle(VehicleConfig(kind='copter', flight='hover'))
    thread = threading.Thread(target=vehicle.run)
    thread.start()
    ...
    vehicle.stop()
    thread.join()

:class:`VehicleLoop` runs many vehicles in one thread, which is much cheaper than a process each.
"""

from __future__ import annotations

import heapq
import json
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from dryden_wind_ros import ending
from dryden_wind_ros.emulator.autopilot import Autopilot, open_truth
from dryden_wind_ros.emulator.channel import Channel
from dryden_wind_ros.emulator.config import Home, VehicleConfig
from dryden_wind_ros.emulator.options import command_line, configurations, joined
from dryden_wind_ros.emulator.parameters import Eeprom
from dryden_wind_ros.emulator.ports import Port, PortError, parse_endpoint
from dryden_wind_ros.pipes import pipe_safe
from dryden_wind_ros.sitl.wakeable import WakeableSelector

__all__ = ['EmbeddedVehicle', 'Home', 'PortError', 'VehicleConfig', 'VehicleLoop', 'main']

MAX_LAG = 0.02
"""Wall seconds of lateness that are caught up; more (a suspended process) is let go."""

MANY, TOGETHER = 10, 0.005
"""So many vehicles in one loop wake up together, every so many wall seconds at speedup 1: two loop
ticks of a copter. With a wake-up for each, a quarter of the time went into waiting for sockets."""

REBOOT_TIME = 0.05
"""Wall seconds between the closing of the ports and the next boot."""

_EEPROM_PERIOD = 1.0


class EmbeddedVehicle:
    """A vehicle with its ports and its pace; runs itself or in a :class:`VehicleLoop`.

    Parameters
    ----------
    config : VehicleConfig
    log : callable, optional
        Takes a line of text; nothing is printed without it.

    Attributes
    ----------
    autopilot : Autopilot
        The boot that runs now. Read it from other threads, change nothing in it.
    boots : int
        How often the vehicle has booted.

    Raises
    ------
    ValueError
        When the configuration names an unknown parameter or a bad connection.
    OSError
        When a file cannot be opened.
    PortError
        From :meth:`run` or :meth:`VehicleLoop.add`, when a port is in use.
    """

    def __init__(self, config: VehicleConfig, log: Callable[[str], None] | None = None) -> None:
        self.config = config
        self._log = log
        self._eeprom = Eeprom(config.eeprom)
        for endpoint in config.endpoints:
            parse_endpoint(endpoint)
        self._truth: TextIO | None = None
        if config.truth is not None:
            self._truth = open_truth(config.truth)
        self.boots = 0
        self.autopilot = self._boot()
        self._ports: list[Port] = []
        self._open_ports: list[Port] = []
        self._base_wall = 0.0
        self._base_us = 0
        self._speedup = self.autopilot.speedup
        self._due_us = 0
        self.due_wall = 0.0
        self._closed_until: float | None = None
        self._waiting = False
        self._frozen = False
        self._next_eeprom = 0.0
        self._loop: VehicleLoop | None = None
        self._stop_early = False
        self.started = threading.Event()

    # ------------------------------------------------------------------ for its user

    def run(self) -> None:
        """Run until :meth:`stop`. Blocks; raises PortError at once when a port is in use."""
        loop = VehicleLoop()
        self._loop = loop
        try:
            loop.add(self)
            if not self._stop_early:
                loop.run()
        finally:
            loop.close()
            self._loop = None

    def stop(self) -> None:
        """End :meth:`run`, from any thread."""
        self._stop_early = True
        loop = self._loop
        if loop is not None:
            loop.stop()

    def reboot(self) -> None:
        """Restart as PREFLIGHT_REBOOT does, from any thread, armed or not."""
        self.post(self._reboot_soon)

    def drop_clients(self) -> None:
        """Cut every connection, from any thread; clients may come back at once."""
        self.post(self._drop_clients)

    def freeze(self, frozen: bool) -> None:
        """Let simulated time stand still, or go on, from any thread."""
        self.post(lambda: self._freeze(frozen))

    def shift_clock(self, seconds: float) -> None:
        """Make time_boot_ms jump by this much, back or forward, from any thread."""
        self.post(lambda: self._shift(seconds))

    def post(self, action: Callable[[], None]) -> None:
        """Have ``action`` called in the vehicle's thread."""
        loop = self._loop
        if loop is None:
            raise RuntimeError('the vehicle is not running')
        loop.post(action)

    # ------------------------------------------------------------------ for its loop

    def attach(self, loop: VehicleLoop, now: float) -> None:
        """Open the ports and start the clock."""
        self._loop = loop
        self._ports = [Port(endpoint, loop.selector, self._joined, self._input)
                       for endpoint in self.config.endpoints]
        self._start(now)
        self.started.set()

    def detach(self) -> None:
        """Close the ports and keep what was saved."""
        for port in self._ports:
            port.close()
        self._eeprom.flush()
        if self._truth is not None:
            self._truth.close()
            self._truth = None

    def turn(self, now: float) -> None:
        """Do what is due at wall time ``now`` (monotonic seconds): at most one loop tick."""
        if self._closed_until is not None:
            self._come_back(now)
            return
        if self._waiting or self._frozen:
            self.due_wall = now + 3600.0
            return
        autopilot = self.autopilot
        if self._speedup > 0.0:
            lag = now - self._wall_of(self._due_us)
            if lag > MAX_LAG:
                self._base_wall += lag
        autopilot.advance(self._due_us)
        for port in self._open_ports:
            if port.waits:
                port.flush()
        if autopilot.reboot_at is not None and autopilot.t_us >= autopilot.reboot_at:
            self._go_down(now)
            return
        if autopilot.speedup != self._speedup:
            self._speedup = autopilot.speedup
            self._base_wall, self._base_us = now, autopilot.t_us
        if now >= self._next_eeprom:
            self._next_eeprom = now + _EEPROM_PERIOD
            self._eeprom.flush()
        self._schedule(autopilot.next_due())

    def _boot(self) -> Autopilot:
        self.boots += 1
        return Autopilot(self.config, self._eeprom, self._truth, self.boots, self._log)

    def _start(self, now: float) -> None:
        self._closed_until = None
        self._waiting = self.config.wait_for_client
        try:
            for port, channel in zip(self._ports, self.autopilot.channels, strict=True):
                port.open(channel)
                if self._waiting:
                    break
        except PortError:
            for port in self._ports:
                port.close()
            raise
        self._open_ports = self._ports
        self._set_clock(now)
        if self._waiting and self._log is not None:
            self._log(f'waiting for a client on {self._ports[0].endpoint}')

    def _set_clock(self, now: float) -> None:
        self._speedup = self.autopilot.speedup
        self._base_wall, self._base_us = now, self.autopilot.t_us
        self._schedule(self.autopilot.next_due())

    def _wall_of(self, t_us: int) -> float:
        if self._speedup <= 0.0:
            return 0.0
        return self._base_wall + (t_us - self._base_us) * 1e-6 / self._speedup

    def _schedule(self, due_us: int) -> None:
        self._due_us = due_us
        self.due_wall = self._wall_of(due_us)
        if self._loop is not None:
            if self._speedup > 0.0 and len(self._loop.vehicles) >= MANY:
                grain = TOGETHER / max(self._speedup, 1.0)
                self.due_wall = math.ceil(self.due_wall / grain) * grain
            self._loop.schedule(self)

    def _joined(self, channel: Channel) -> None:
        if self._waiting:
            self._waiting = False
            for port, other in list(zip(self._ports, self.autopilot.channels, strict=True))[1:]:
                port.open(other)
            self._set_clock(time.monotonic())
        self.autopilot.client_joined(channel)
        self._input()

    def _input(self) -> None:
        """Bytes have come: the loop tick after now has something to do."""
        if self._closed_until is not None or self._waiting or self._frozen:
            return
        if self._speedup <= 0.0:
            return
        now_us = self._base_us + int((time.monotonic() - self._base_wall) * 1e6 * self._speedup)
        tick = self.autopilot.tick_after(now_us)
        if tick < self._due_us:
            self._schedule(tick)

    def _reboot_soon(self) -> None:
        if self.autopilot.reboot_at is None:
            self.autopilot.reboot_at = self.autopilot.t_us
            self._input()

    def _freeze(self, frozen: bool) -> None:
        if self._frozen and not frozen:
            self._frozen = False
            self._set_clock(time.monotonic())
        self._frozen = frozen

    def _drop_clients(self) -> None:
        for port in self._ports:
            port.drop_client()

    def _shift(self, seconds: float) -> None:
        self.autopilot.stamp_shift_us += round(seconds * 1e6)

    def _go_down(self, now: float) -> None:
        for port in self._ports:
            port.close()
        self._open_ports = []
        self._eeprom.flush()
        self._closed_until = now + REBOOT_TIME
        self.due_wall = self._closed_until
        if self._loop is not None:
            self._loop.schedule(self)

    def _come_back(self, now: float) -> None:
        self.autopilot = self._boot()
        try:
            self._start(now)
        except PortError as error:
            # The kernel may need a moment, or somebody took the port: keep trying
            if self._log is not None:
                self._log(str(error))
            self._closed_until = now + 0.2
            self.due_wall = self._closed_until
            if self._loop is not None:
                self._loop.schedule(self)


class VehicleLoop:
    """Runs any number of vehicles in one thread: one selector, one heap of what is due."""

    def __init__(self) -> None:
        self._waiter = WakeableSelector()
        self.selector = self._waiter.selector
        self.vehicles: list[EmbeddedVehicle] = []
        self._heap: list[tuple[float, int, EmbeddedVehicle]] = []
        self._number = 0
        self._running = True

    def add(self, vehicle: EmbeddedVehicle) -> None:
        """Open a vehicle's ports and start it; PortError when it cannot have them."""
        self.vehicles.append(vehicle)
        try:
            vehicle.attach(self, time.monotonic())
        except PortError:
            self.vehicles.remove(vehicle)
            raise

    def schedule(self, vehicle: EmbeddedVehicle) -> None:
        """Have the vehicle's turn taken at its ``due_wall``."""
        self._number += 1
        heapq.heappush(self._heap, (vehicle.due_wall, self._number, vehicle))

    def run(self) -> None:
        """Run until :meth:`stop`."""
        heap, clock = self._heap, time.monotonic
        while self._running:
            timeout = heap[0][0] - clock() if heap else 1.0
            for serve in self._waiter.select(timeout):
                serve()
            now = clock()
            # One tick a vehicle, then the sockets again: writes must not wait for a late clock
            turns = 0
            while heap and heap[0][0] <= now and turns < len(self.vehicles):
                due, _, vehicle = heapq.heappop(heap)
                if due == vehicle.due_wall:
                    vehicle.turn(now)
                    turns += 1

    def stop(self) -> None:
        """End :meth:`run`, from any thread or a signal handler."""
        self._running = False
        self._waiter.wake()

    def post(self, action: Callable[[], None]) -> None:
        """Have ``action`` called in the loop's thread."""
        self._waiter.post(action)

    def close(self) -> None:
        """Close every port and keep what was saved."""
        for vehicle in self.vehicles:
            vehicle.detach()
        self.vehicles.clear()
        self._heap.clear()
        self._waiter.close()


def _write_winds(path: Path, vehicles: Sequence[EmbeddedVehicle]) -> None:
    wall = time.monotonic()
    rows = [{'time_s': autopilot.time_s, 'wall_s': wall, 'winds': autopilot.winds.count,
             'late': autopilot.winds.late, 'longest_s': autopilot.winds.longest_us * 1e-6}
            for autopilot in (vehicle.autopilot for vehicle in vehicles)]
    whole = path.with_name(f'.{path.name}.new')
    whole.write_text(json.dumps(rows), encoding='utf-8')
    whole.replace(path)


@pipe_safe
def main(args: Sequence[str] | None = None) -> int:
    """Run the program; 0 after SIGINT or SIGTERM, 1 or 2 where it could not start."""
    parser = command_line()
    arguments = list(sys.argv[1:] if args is None else args)
    if '--ros-args' in arguments:
        # A launch file's Node adds these to everything it starts
        arguments = arguments[:arguments.index('--ros-args')]
    options = parser.parse_args(joined(arguments))

    def say(text: str) -> None:
        if not options.quiet:
            print(text, flush=True)

    try:
        configs = configurations(options, say)
        vehicles = [EmbeddedVehicle(config, say if options.count == 1 else None)
                    for config in configs]
    except (ValueError, OSError) as error:
        parser.error(str(error))
    loop = VehicleLoop()
    ending.listen()
    if options.winds is not None:
        signal.signal(signal.SIGUSR1, lambda *_: loop.post(
            lambda: _write_winds(options.winds, vehicles)))
    ending.when_told(loop.stop)
    try:
        for vehicle in vehicles:
            loop.add(vehicle)
            config = vehicle.config
            say(f'embedded {config.kind}, system id {config.sysid}, speedup {config.speedup:g}, '
                f'on {" ".join(config.endpoints)}')
        loop.run()
    except BrokenPipeError:
        raise  # nobody reads any more what it says
    except (PortError, OSError) as error:
        print(f'sitl_emulator: {error}', file=sys.stderr, flush=True)
        return 1
    finally:
        loop.close()
        ending.leave_alone()
    return 0


if __name__ == '__main__':
    sys.exit(main())
