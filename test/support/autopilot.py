"""The embedded autopilot without sockets: simulated time runs as fast as it is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.emulator.autopilot import Autopilot
from dryden_wind_ros.emulator.config import VehicleConfig
from dryden_wind_ros.emulator.parameters import Eeprom

Entry = tuple[float, Any]


class Pilot:
    """Flies an autopilot by MAVLink and keeps what it says, with the time of the loop tick."""

    def __init__(self, config: VehicleConfig, eeprom_file: Path | None = None) -> None:
        self.eeprom = Eeprom(eeprom_file)
        self.autopilot = Autopilot(config, self.eeprom)
        self.channel = self.autopilot.channels[0]
        self.autopilot.client_joined(self.channel)
        self.log: list[Entry] = []
        self.phases: list[tuple[float, str]] = []
        self._out = mavlink.MAVLink(None, 254, 1)
        self._in = mavlink.MAVLink(None)

    @property
    def t(self) -> float:
        return self.autopilot.time_s

    def send(self, *messages: Any) -> None:
        self.channel.receive(b''.join(message.pack(self._out) for message in messages))

    def tick(self) -> list[Any]:
        """Run one loop tick; return what it sent."""
        self.autopilot.advance(self.autopilot.next_due())
        found = self._in.parse_buffer(self.channel.take()) or []
        self.log.extend((self.t, message) for message in found)
        phase = self.autopilot.ekf.phase
        if not self.phases or self.phases[-1][1] != phase:
            self.phases.append((self.t, phase))
        return found

    def run(self, seconds: float) -> list[Any]:
        """Run for so many seconds; return what was sent."""
        end, found = self.t + seconds, []
        while self.t < end:
            found += self.tick()
        return found

    def run_until(self, condition: Callable[[], object], limit: float, what: str) -> None:
        end = self.t + limit
        while not condition():
            assert self.t < end, f'no {what} within {limit:g} s of sim time'
            self.tick()

    def command(self, number: int, *values: float) -> int:
        """Send a COMMAND_LONG and return the result of its COMMAND_ACK."""
        padded = (*values, *[0.0] * (7 - len(values)))
        self.send(mavlink.MAVLink_command_long_message(1, 1, number, 0, *padded))
        for _ in range(10):
            for message in self.tick():
                if message.get_type() == 'COMMAND_ACK' and message.command == number:
                    return int(message.result)
        raise AssertionError(f'command {number} was not acknowledged')

    def ask(self, message_id: int, interval: float) -> int:
        """Ask for a message every ``interval`` s; return the result."""
        return self.command(mavlink.MAV_CMD_SET_MESSAGE_INTERVAL, message_id, interval * 1e6)

    def set(self, name: str, value: float) -> list[Any]:
        """Write a parameter; return what the vehicle says in the next 0.1 s."""
        self.send(param_set(name, value))
        return self.run(0.1)

    def get(self, name: str) -> float:
        return self.autopilot.parameters.values[name]

    def of(self, kind: str) -> list[Any]:
        return [message for _, message in self.log if message.get_type() == kind]

    def texts(self) -> list[str]:
        return [message.text for message in self.of('STATUSTEXT')]

    def fly(self, altitude: float | None = None, mode: int = 4) -> None:
        """Arm, take off and wait until the vehicle is up."""
        self.run_until(lambda: self.autopilot.ekf.using_gps, 30, 'GPS')
        assert self.command(mavlink.MAV_CMD_DO_SET_MODE, 1, mode) == 0
        assert self.command(mavlink.MAV_CMD_COMPONENT_ARM_DISARM, 1) == 0
        if altitude is not None:
            assert self.command(mavlink.MAV_CMD_NAV_TAKEOFF, 0, 0, 0, 0, 0, 0, altitude) == 0
        self.run_until(lambda: self.autopilot.flight.landed == 2, 120, 'end of the take-off')


def param_set(name: str, value: float) -> Any:
    return mavlink.MAVLink_param_set_message(1, 1, name.encode(), value, 9)
