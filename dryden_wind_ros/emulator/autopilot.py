"""The MAVLink vehicle: one boot of the embedded autopilot, without sockets or a wall clock.

Time is simulated, in whole microseconds since boot. The main loop ticks at SCHED_LOOP_RATE, but
only ticks on which something is due are run: :meth:`Autopilot.next_due` names the next one,
:meth:`Autopilot.advance` runs it. Bytes come in by :meth:`Channel.receive` and go out by
:meth:`Channel.take`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.emulator.air import AIR_PARAMETERS, SitlAir, WindsHeard
from dryden_wind_ros.emulator.channel import Channel
from dryden_wind_ros.emulator.config import VehicleConfig
from dryden_wind_ros.emulator.dead_reckoning import DeadReckoning
from dryden_wind_ros.emulator.encoders import (
    encoders_of,
    gps_global_origin,
    home_position,
    parameter_value,
)
from dryden_wind_ros.emulator.estimator import Ekf3
from dryden_wind_ros.emulator.flight import Flight, Motion
from dryden_wind_ros.emulator.handlers import handle
from dryden_wind_ros.emulator.mission import Mission, fly_mission
from dryden_wind_ros.emulator.modes import MODES, START_MODES, VTOL_MODES
from dryden_wind_ros.emulator.parameters import (
    WIND,
    Eeprom,
    ParameterTable,
    SetOutcome,
    default_parameters,
)
from dryden_wind_ros.emulator.plan import FlightPlan
from dryden_wind_ros.emulator.rotor_dynamics import RotorDynamics
from dryden_wind_ros.emulator.streams import DEFAULT_INTERVAL_US, DEFAULT_MESSAGES

INTERNAL_ERROR = 0x100000
"""What a lost parameter save raises."""

PHYSICS_STEP_US = 20_000
"""Flight and EKF3 advance on this grid, whatever ticks run: a flight can be repeated."""

LONGEST_STEP_US = 50_000
_CRITICAL, _WARNING, _INFO = 2, 4, 6


class Autopilot:
    """One boot of the vehicle.

    Parameters
    ----------
    config : VehicleConfig
    eeprom : Eeprom
        Saved values, shared by all boots.
    truth : text file, optional
        Receives the rows of the true wind phase.
    boot : int
        Number of this boot, for its random numbers.

    Attributes
    ----------
    speedup : float
        Sim seconds per wall second wanted now (SIM_SPEEDUP); 0 is as fast as possible.
    t_us : int
        Time since boot of the loop tick that ran last, microseconds.
    physics_us : int
        Time since boot of the last step of flight and EKF3, microseconds.
    winds : WindsHeard
        How regularly SIM_WIND_SPD is written.
    mission : Mission
        What it flies in AUTO.
    reboot_at : int or None
        When a reboot that was asked for happens, microseconds.
    """

    def __init__(self, config: VehicleConfig, eeprom: Eeprom, truth: TextIO | None = None,
                 boot: int = 0, log: Callable[[str], None] | None = None) -> None:
        self.config = config
        self.parameters = ParameterTable(default_parameters(config), eeprom,
                                         config.refused_parameters)
        self.channels = [Channel(number) for number in range(len(config.endpoints))]
        self.sysid = int(self.parameters.get('MAV_SYSID', config.sysid))
        self.speedup = max(self.parameters.get('SIM_SPEEDUP', config.speedup), 0.0)
        self._log = log
        self._texts: list[tuple[int, str]] = []
        #: Somebody may hear an echo; and a draw is due for the loss of each.
        self._listened, self._lossy = False, config.echo_loss > 0.0
        self.flight = Flight(config, self.say,
                             RotorDynamics(self.parameters.get) if config.dynamics else None)
        self.ekf = Ekf3(self.parameters, config.origin_after, config.seed * 1000 + boot, self.say)
        self.ekf.gps_enabled = self.parameters.get('SIM_GPS1_ENABLE', 1.0) != 0.0
        self.reckoning = DeadReckoning(f'drift {config.seed} {boot}')
        self.encoders = encoders_of(config)
        self.air = SitlAir(self.parameters, f'turbulence {config.seed} {boot}', config.ignore_wind)
        rate = min(max(int(self.parameters.get('SCHED_LOOP_RATE', config.loop_rate)), 50), 1000)
        self.winds = WindsHeard()
        self.loop_us = round(1_000_000 / rate)
        # ArduPlane's loop times fall 5 ms after the multiples of 20 ms
        self.offset_us = 5000 if self.loop_us == 20000 else 0
        self.t_us = self.offset_us
        self.stamp_shift_us = 0
        self.physics_us = 0
        self._loss_random = random.Random(f'losses {config.seed} {boot}')
        self.modes = MODES[config.kind]
        self.mode = START_MODES[config.kind]
        self.mission: Mission = Mission()
        self.internal_errors = 0
        self.internal_error_count = 0
        self.reboot_at: int | None = None
        self._plan = FlightPlan(self) if config.flight != 'none' else None
        self._disarm_timer = 0.0
        self._announced_origin = False
        self._truth = truth
        self._next_truth_us = 500_000
        self.dcm_wind = (0.0, 0.0)
        for channel in self.channels:
            channel.mav.srcSystem = self.sysid
            for message_id in sorted(DEFAULT_MESSAGES):
                channel.set_interval(message_id, DEFAULT_INTERVAL_US, self.t_us)
        self.say(_INFO, {'copter': 'ArduCopter', 'plane': 'ArduPlane', 'quadplane': 'ArduPlane'}
                 [config.kind] + ' V4.7.0-dev (embedded vehicle)')
        self.say(_INFO, 'ArduPilot Ready')
        self.say(_INFO, 'AHRS: DCM active')

    # ------------------------------------------------------------------ time

    @property
    def time_s(self) -> float:
        """Seconds since boot."""
        return self.t_us * 1e-6

    @property
    def time_boot_ms(self) -> int:
        """Time stamp of messages, ms."""
        return max((self.t_us + self.stamp_shift_us) // 1000, 0)

    def tick_after(self, t_us: float) -> int:
        """Return the first loop tick later than the one that ran last and not before ``t_us``."""
        tick = -((self.offset_us - t_us) // self.loop_us)
        ceiled = self.offset_us + int(tick) * self.loop_us
        return max(ceiled, self.t_us + self.loop_us)

    def next_due(self) -> int:
        """Return the loop tick (microseconds since boot) on which something is to be done."""
        due: float = self.t_us + LONGEST_STEP_US
        for channel in self.channels:
            if channel.connected:
                if channel.next_at < due:
                    due = channel.next_at
                if channel.list_position is not None:
                    due = min(due, self.t_us + 1)
        if self.reboot_at is not None:
            due = min(due, self.reboot_at)
        return self.tick_after(due)

    def advance(self, t_us: int) -> None:
        """Run the simulation up to the loop tick at ``t_us``, and that tick."""
        self._simulate(t_us)
        self.t_us = t_us
        for channel in self.channels:
            if channel.has_input:
                for message in channel.messages():
                    handle(self, channel, message)
        names = self.parameters.save()
        if names:
            self._echo(names)
        if self._texts:
            self._send_texts()
        self._listened = False
        for channel in self.channels:
            if channel.connected:
                self._listened = True
                self._send_due(channel, t_us)

    def client_joined(self, channel: Channel) -> None:
        """Start sending to a new client: rates as the last one left them, in step with time."""
        channel.begin(self.t_us)
        self._listened = True

    # ------------------------------------------------------------------ simulation

    def _simulate(self, t_us: int) -> None:
        flight, air, ekf = self.flight, self.air, self.ekf
        dt = PHYSICS_STEP_US * 1e-6
        while self.physics_us + PHYSICS_STEP_US <= t_us:
            self.physics_us += PHYSICS_STEP_US
            now = self.physics_us
            if flight.motion is not Motion.GROUND:
                east, north, up = air.flown(now, flight.up, flight.airborne)
                flight.step(dt, north, east, up)
            else:
                # Nothing moves, but the airspeed sensor feels the wind
                east, north, _ = air.flown(now, 0.0, False)
                flight.stand(north, east)
            ekf.step(now * 1e-6, flight)
            self.reckoning.step(dt, flight, ekf.gps_age(now * 1e-6), not ekf.no_aiding,
                                ekf.estimates_wind)
            self._supervise(dt)
            if self._truth is not None and now >= self._next_truth_us:
                self._next_truth_us += 500_000
                self._truth.write(f'{now * 1e-6:.3f},{ekf.phase},{ekf.v22:.6g},{ekf.v23:.6g},'
                                  f'{ekf.wind_north:.2f},{ekf.wind_east:.2f}\n')

    def true_wind(self) -> tuple[float, float, float]:
        """Return the air's velocity where the vehicle is: east, north, up, m/s."""
        flight = self.flight
        if flight.motion is Motion.GROUND:
            return self.air.at(0.0, False)
        return (flight.wind_east, flight.wind_north, flight.wind_up)

    def _supervise(self, dt: float) -> None:
        """What the autopilot does by itself, at each step of the physics."""
        flight = self.flight
        if flight.disarm_wanted:
            self._disarm_timer += dt
            if self._disarm_timer >= 1.0:
                self._disarm_timer = 0.0
                self.disarm()
        if self.ekf.has_origin and not self._announced_origin:
            self._announced_origin = True
            for channel in self.channels:
                channel.send(gps_global_origin(self))
                channel.send(home_position(self))
        if not self.ekf.active and flight.airborne:
            east, north, _ = self.true_wind()
            self.dcm_wind = (self.dcm_wind[0] + (north - self.dcm_wind[0]) * 0.001,
                             self.dcm_wind[1] + (east - self.dcm_wind[1]) * 0.001)
        if self._plan is not None:
            self._plan.step(dt)

    # ------------------------------------------------------------------ modes and arming

    def change_mode(self, mode: int) -> bool:
        """Enter a flight mode; False, and a text, where this vehicle has no such mode."""
        if mode not in self.modes:
            self.say(_WARNING, f'No such mode {mode}')
            return False
        name = self.modes[mode]
        flight = self.flight
        self.mode = mode
        flight.climb_stick = None
        flight.course = None
        if self.config.kind == 'quadplane':
            flight.command_vtol(mode in VTOL_MODES)
        if name in ('LAND', 'QLAND'):
            flight.command_land()
        elif name in ('RTL', 'QRTL', 'SMART_RTL'):
            flight.command_return()
        elif name == 'TAKEOFF':
            if flight.armed:
                flight.command_take_off(self.config.altitude)
        else:
            flight.command_hold()
            if name == 'AUTO':
                fly_mission(self)
        return True

    def arming_problem(self) -> str | None:
        """Return why the vehicle does not arm now, or None."""
        if self.internal_errors:
            return f'Arm: Internal errors 0x{self.internal_errors:x}'
        if self.parameters.get('ARMING_CHECK', 1) and not self.ekf.has_origin:
            return 'Arm: Need Position Estimate'
        if self.parameters.get('ARMING_CHECK', 1) and not self.ekf.using_gps:
            return 'Arm: AHRS: EKF3 not using GPS'
        return None

    def arm(self) -> None:
        """Arm, and in TAKEOFF start at once."""
        flight = self.flight
        if flight.armed:
            return
        flight.arm()
        self.say(_INFO, 'Arming motors' if self.config.kind == 'copter' else 'Throttle armed')
        if self.modes[self.mode] == 'TAKEOFF':
            flight.command_take_off(self.config.altitude)

    def disarm(self) -> None:
        """Disarm, wherever the vehicle is."""
        if self.flight.armed:
            self.flight.disarm()
            self.say(_INFO, 'Disarming motors' if self.config.kind == 'copter'
                     else 'Throttle disarmed')

    # ------------------------------------------------------------------ parameters

    def write_parameter(self, name: str, value: float) -> SetOutcome:
        """Write one parameter now, with what hangs on it."""
        table = self.parameters
        if name in AIR_PARAMETERS:
            self.air.about_to_write(self.t_us)
        outcome = table.set(name, value, self.flight.armed)
        if outcome is not SetOutcome.DONE and outcome is not SetOutcome.SAVE_LOST:
            return outcome
        if name in AIR_PARAMETERS:
            if name == 'SIM_WIND_SPD':
                self.winds.take(self.t_us)
            self.air.written()
        elif name == 'SIM_GPS1_ENABLE':
            self.ekf.gps_enabled = table.get(name) != 0.0
        elif name == 'SIM_SPEEDUP':
            self.speedup = max(table.get(name), 0.0)
        elif name == 'MAV_SYSID' and 1 <= table.get(name) <= 255:
            self.sysid = int(table.get(name))
            for channel in self.channels:
                channel.mav.srcSystem = self.sysid
        if outcome is SetOutcome.SAVE_LOST:
            self.internal_error_count += 1
            if not any(text.startswith('Internal Errors') for _, text in self._texts):
                self.say(_CRITICAL, f'Internal Errors 0x{INTERNAL_ERROR:x}')
            self.internal_errors |= INTERNAL_ERROR
        return outcome

    def write_wind(self, speed: float, direction: float, direction_z: float) -> None:
        """Write SIM_WIND_SPD, SIM_WIND_DIR and SIM_WIND_DIR_Z now, one after the other.

        As three calls of :meth:`write_parameter` with finite numbers, at a third of the cost.
        """
        air, t_us = self.air, self.t_us
        air.run_to(t_us)
        stored = self.parameters.set_wind(speed, direction, direction_z,
                                          self._listened or self._lossy)
        if stored is None:
            for name, value in zip(WIND, (speed, direction, direction_z), strict=True):
                self.write_parameter(name, value)
            return
        self.winds.take(t_us)
        air.set_wind(*stored)

    def save_parameters(self) -> None:
        """Save what waits for it, and send the echoes."""
        self._echo(self.parameters.save())

    # ------------------------------------------------------------------ what it sends unasked

    def say(self, severity: int, text: str) -> None:
        """Queue a STATUSTEXT for every client."""
        self._texts.append((severity, text))

    def _send_texts(self) -> None:
        texts, self._texts = self._texts, []
        for severity, text in texts:
            if self._log is not None:
                self._log(f'{self.time_s:9.3f}  {text}')
            message = mavlink.MAVLink_statustext_message(severity, text.encode()[:50])
            for channel in self.channels:
                channel.send(message)

    def _echo(self, names: list[str]) -> None:
        if not (self._listened or self._lossy):
            return
        for name in names:
            if self.config.echo_loss and self._loss_random.random() < self.config.echo_loss:
                continue
            message = parameter_value(self, name)
            for channel in self.channels:
                channel.send(message)

    def _send_due(self, channel: Channel, t_us: int) -> None:
        for message_id in channel.fall_due(t_us):
            message = self.encoders[message_id](self)
            if message is None:
                continue
            if (message_id == mavlink.MAVLINK_MSG_ID_SYSTEM_TIME and self.config.clock_loss
                    and self._loss_random.random() < self.config.clock_loss):
                continue
            channel.send(message)
        if channel.list_position is not None:
            self._send_list_part(channel)

    def _send_list_part(self, channel: Channel) -> None:
        names = self.parameters.names
        first = channel.list_position or 0
        for index in range(first, min(first + 5, len(names))):
            channel.send(parameter_value(self, names[index], index))
        channel.list_position = first + 5 if first + 5 < len(names) else None


def open_truth(path: Path) -> TextIO:
    """Open the file of the true wind phases and write its head."""
    file = path.open('w', buffering=1)
    file.write('t_boot_s,phase,V22,V23,VWN,VWE\n')
    return file
