"""The MAVLink vehicle: one boot of the embedded autopilot, without sockets or a wall clock.

Time is simulated, in whole microseconds since boot. The main loop ticks at SCHED_LOOP_RATE, but
only ticks on which something is due are run: :meth:`Autopilot.next_due` names the next one,
:meth:`Autopilot.advance` runs it. Bytes come in by :meth:`Channel.receive` and go out by
:meth:`Channel.take`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.emulator.config import VehicleConfig
from dryden_wind_ros.emulator.estimator import Ekf3
from dryden_wind_ros.emulator.flight import CLIMB_RATE, Flight, Landed, Motion, Vtol
from dryden_wind_ros.emulator.parameters import (
    Eeprom,
    ParameterTable,
    SetOutcome,
    default_parameters,
)
from dryden_wind_ros.gusts.sitl_wind import (
    CALM_AFTER_BOOT,
    SitlWindFilter,
    sitl_wind_enu,
    sitl_wind_speed_at,
)

INTERNAL_ERROR = 0x100000
"""What a lost parameter save raises."""

EPOCH_US = 1767225600_000000
"""GPS time at boot: 2026-01-01T00:00:00Z, so that a flight can be repeated."""

REBOOT_DELAY_US = 200_000
PHYSICS_STEP_US = 20_000
"""Flight and EKF3 advance on this grid, whatever ticks run: a flight can be repeated."""

LONGEST_STEP_US = 50_000
_METRES_PER_1E7 = 0.011131884502145034
_FORCE = 21196
_FORCE_ARM = 2989
_EXTERNAL_WIND_ESTIMATE = 43004
_FTP_NAK, _FTP_FILE_NOT_FOUND = 129, 10
_MAX_INPUT = 1 << 16
_CRITICAL, _WARNING, _INFO = 2, 4, 6

PLANE_MODES = {
    0: 'MANUAL', 1: 'CIRCLE', 2: 'STABILIZE', 5: 'FBWA', 6: 'FBWB', 7: 'CRUISE', 10: 'AUTO',
    11: 'RTL', 12: 'LOITER', 13: 'TAKEOFF', 15: 'GUIDED', 17: 'QSTABILIZE', 18: 'QHOVER',
    19: 'QLOITER', 20: 'QLAND', 21: 'QRTL'}
COPTER_MODES = {
    0: 'STABILIZE', 2: 'ALT_HOLD', 3: 'AUTO', 4: 'GUIDED', 5: 'LOITER', 6: 'RTL', 7: 'CIRCLE',
    9: 'LAND', 16: 'POSHOLD', 17: 'BRAKE', 21: 'SMART_RTL'}
_VTOL_MODES = frozenset((17, 18, 19, 20, 21))
_GUIDED_MODES = frozenset(('AUTO', 'GUIDED', 'RTL', 'LOITER', 'CIRCLE', 'TAKEOFF', 'LAND', 'QRTL',
                           'QLAND'))
_STICK_MODES = frozenset(('ALT_HOLD', 'LOITER', 'POSHOLD', 'QHOVER', 'QLOITER', 'STABILIZE',
                          'QSTABILIZE'))

_M = mavlink
_STREAMS = {
    _M.MAV_DATA_STREAM_RAW_SENSORS: (),
    _M.MAV_DATA_STREAM_EXTENDED_STATUS: (_M.MAVLINK_MSG_ID_SYS_STATUS,
                                         _M.MAVLINK_MSG_ID_GPS_RAW_INT,
                                         _M.MAVLINK_MSG_ID_MISSION_CURRENT),
    _M.MAV_DATA_STREAM_POSITION: (_M.MAVLINK_MSG_ID_GLOBAL_POSITION_INT,
                                  _M.MAVLINK_MSG_ID_LOCAL_POSITION_NED),
    _M.MAV_DATA_STREAM_EXTRA1: (_M.MAVLINK_MSG_ID_ATTITUDE,),
    _M.MAV_DATA_STREAM_EXTRA2: (_M.MAVLINK_MSG_ID_VFR_HUD,),
    _M.MAV_DATA_STREAM_EXTRA3: (_M.MAVLINK_MSG_ID_SYSTEM_TIME, _M.MAVLINK_MSG_ID_WIND,
                                _M.MAVLINK_MSG_ID_EKF_STATUS_REPORT),
}
_WIND_PARAMETERS = frozenset(('SIM_WIND_SPD', 'SIM_WIND_DIR', 'SIM_WIND_DIR_Z', 'SIM_WIND_TC',
                              'SIM_WIND_T', 'SIM_WIND_T_ALT', 'SIM_WIND_T_COEF', 'SIM_WIND_TURB'))


class Channel:
    """One MAVLink port of the vehicle: its own sequence numbers, rates and client.

    Message intervals live as long as the boot, whoever is connected.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.connected = False
        self.mav = _M.MAVLink(None, 1, 1)
        self.intervals: dict[int, int] = {}
        self.due: dict[int, int] = {}
        self.list_position: int | None = None
        self._parser = self._new_parser()
        self._input: list[bytes] = []
        self._input_size = 0
        self._output: list[bytes] = []

    @staticmethod
    def _new_parser() -> Any:
        parser = _M.MAVLink(None)
        parser.robust_parsing = True
        return parser

    def receive(self, data: bytes) -> None:
        """Keep bytes from the client until the next loop tick reads them."""
        if self._input_size < _MAX_INPUT:
            self._input.append(data)
            self._input_size += len(data)

    @property
    def has_input(self) -> bool:
        """Whether bytes wait to be read."""
        return bool(self._input)

    def messages(self) -> list[Any]:
        """Parse what has been received. Garbage is skipped, whatever it is."""
        data = b''.join(self._input)
        self._input.clear()
        self._input_size = 0
        found: list[Any] = []
        parser = self._parser
        try:
            message = parser.parse_char(data)
            while message is not None:
                found.append(message)
                message = parser.parse_char(b'')
        except Exception:
            # The generated parser has no list of what malformed text can raise in it
            self._parser = self._new_parser()
            return found
        if parser.buf_index > 4096:
            del parser.buf[:parser.buf_index]
            parser.buf_index = 0
        return found

    def forget_client(self) -> None:
        """Drop half-read input and unsent output of a client that has gone."""
        self.connected = False
        self._parser = self._new_parser()
        self._input.clear()
        self._input_size = 0
        self._output.clear()
        self.list_position = None

    def send(self, message: Any) -> None:
        """Pack a message for the client, if there is one."""
        if self.connected:
            mav = self.mav
            self._output.append(message.pack(mav))
            mav.seq = (mav.seq + 1) % 256

    def take(self) -> bytes:
        """Return what is to be sent and forget it."""
        if not self._output:
            return b''
        data = b''.join(self._output)
        self._output.clear()
        return data

    def take_datagrams(self, longest: int) -> list[bytes]:
        """Return what is to be sent, whole messages together up to ``longest`` bytes."""
        datagrams: list[bytes] = []
        for packet in self._output:
            if datagrams and len(datagrams[-1]) + len(packet) <= longest:
                datagrams[-1] += packet
            else:
                datagrams.append(packet)
        self._output.clear()
        return datagrams


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
        self.flight = Flight(config, self._say)
        self.ekf = Ekf3(self.parameters, config.origin_after, config.seed * 1000 + boot, self._say)
        self.ekf.gps_enabled = self.parameters.get('SIM_GPS1_ENABLE', 1.0) != 0.0
        self.wind = SitlWindFilter(max(self.parameters.get('SIM_WIND_TC', 5.0), 0.0))
        rate = min(max(int(self.parameters.get('SCHED_LOOP_RATE', config.loop_rate)), 50), 1000)
        self.loop_us = round(1_000_000 / rate)
        # ArduPlane's loop times fall 5 ms after the multiples of 20 ms
        self.offset_us = 5000 if self.loop_us == 20000 else 0
        self.t_us = self.offset_us
        self.stamp_shift_us = 0
        self._physics_us = 0
        self._wind_us = 0
        self._calm = True
        self._air = (0.0, 0.0, 0.0)
        self._turbulence = (0.0, 0.0, 0.0)
        self._turbulence_random = random.Random(f'turbulence {config.seed} {boot}')
        self._loss_random = random.Random(f'losses {config.seed} {boot}')
        self.mode = 0
        self.internal_errors = 0
        self.internal_error_count = 0
        self.reboot_at: int | None = None
        self._plan_stage = 0
        self._plan_timer = 0.0
        self._disarm_timer = 0.0
        self._announced_origin = False
        self._truth = truth
        self._next_truth_us = 500_000
        self._dcm_wind = (0.0, 0.0)
        self._senders = self._make_senders()
        for channel in self.channels:
            channel.mav.srcSystem = self.sysid
            for ids in (*_STREAMS.values(), (_M.MAVLINK_MSG_ID_HEARTBEAT,)):
                for message_id in ids:
                    self._set_interval(channel, message_id, 1_000_000)
        self._say(_INFO, {'copter': 'ArduCopter', 'plane': 'ArduPlane', 'quadplane': 'ArduPlane'}
                  [config.kind] + ' V4.7.0-dev (embedded vehicle)')
        self._say(_INFO, 'ArduPilot Ready')
        self._say(_INFO, 'AHRS: DCM active')
        self._read_air_parameters()
        if config.kind != 'copter':
            self.mode = 5 if config.kind == 'quadplane' else 0

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
        due = self.t_us + LONGEST_STEP_US
        for channel in self.channels:
            if channel.connected and channel.due:
                due = min(due, min(channel.due.values()))
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
                    self._handle(channel, message)
        self._echo(self.parameters.save())
        if self._texts:
            self._send_texts()
        for channel in self.channels:
            if channel.connected:
                self._send_due(channel, t_us)

    def client_joined(self, channel: Channel) -> None:
        """Start sending to a new client: rates as the last one left them, in step with time."""
        channel.connected = True
        for message_id, interval in channel.intervals.items():
            channel.due[message_id] = self.t_us + interval

    # ------------------------------------------------------------------ simulation

    def _simulate(self, t_us: int) -> None:
        flight = self.flight
        dt = PHYSICS_STEP_US * 1e-6
        while self._physics_us + PHYSICS_STEP_US <= t_us:
            self._physics_us += PHYSICS_STEP_US
            now = self._physics_us
            if self._air_stale:
                # Set on the tick that ran last, up to which the filter has run
                self._read_air_parameters()
            self._filter_wind(now)
            if flight.motion is not Motion.GROUND:
                east, north, up = self._air_at(flight.up)
                flight.step(dt, north, east, up)
            else:
                self._stand()
            self.ekf.step(now * 1e-6, flight)
            self._supervise()
            if self._truth is not None and now >= self._next_truth_us:
                self._next_truth_us += 500_000
                ekf = self.ekf
                self._truth.write(f'{now * 1e-6:.3f},{ekf.phase},{ekf.v22:.6g},{ekf.v23:.6g},'
                                  f'{ekf.wind_north:.2f},{ekf.wind_east:.2f}\n')

    def _stand(self) -> None:
        """On the ground: nothing moves, but the airspeed sensor feels the wind."""
        flight = self.flight
        east, north, _ = self._air_at(0.0)
        flight.airspeed = math.hypot(north, east)
        flight.wind_north, flight.wind_east, flight.wind_up = north, east, 0.0

    def _read_air_parameters(self) -> None:
        get = self.parameters.get
        self._set_wind = (max(get('SIM_WIND_SPD'), 0.0), get('SIM_WIND_DIR', 180.0),
                          get('SIM_WIND_DIR_Z'))
        # A version without SIM_WIND_TC takes 5 % of the way at each 1200 Hz step: 16 ms
        self.wind.time_constant_parameter = get('SIM_WIND_TC', 0.1)
        # A version without SIM_WIND_T has the square root profile below 60 m
        self._profile = (int(get('SIM_WIND_T', 0)), get('SIM_WIND_T_ALT', 60.0),
                         get('SIM_WIND_T_COEF', 0.01))
        self._turbulence_set = get('SIM_WIND_TURB')
        if self.config.ignore_wind:
            self._set_wind, self._turbulence_set = (0.0, 180.0, 0.0), 0.0
        self._settled = self._air_stale = False

    def _filter_wind(self, t_us: int) -> None:
        """Let SITL's filter run up to ``t_us`` on the values set before."""
        if self._calm:
            if t_us <= CALM_AFTER_BOOT * 1e6:
                self._wind_us = t_us
                return
            self._calm = False
            self._settled = False
        if self._settled:
            self._wind_us = t_us
            return
        if t_us <= self._wind_us:
            return
        self._air = self.wind.step((t_us - self._wind_us) * 1e-6, *self._set_wind)
        self._wind_us = t_us
        wind = self.wind
        self._settled = (wind.speed == self._set_wind[0] and wind.direction_z == self._set_wind[2]
                         and wind.direction == self._set_wind[1] % 360.0)

    def _air_at(self, height: float) -> tuple[float, float, float]:
        """Return the air's velocity at a height: east, north, up, m/s."""
        if self._calm:
            return (0.0, 0.0, 0.0)
        profile = self._profile
        wind = self.wind
        if profile[0] == 1 or (profile[0] == 0 and height >= profile[1]):
            air = self._air
        else:
            speed = sitl_wind_speed_at(height, wind.speed, *profile)
            air = sitl_wind_enu(speed, wind.direction, wind.direction_z)
        if self._turbulence_set > 0.0 and self.flight.airborne:
            return self._add_turbulence(air)
        return air

    def _add_turbulence(self, air: tuple[float, float, float]) -> tuple[float, float, float]:
        """SIM_WIND_TURB: first-order noise with a new azimuth at each step, no length scale."""
        draw = self._turbulence_random
        strength = self._turbulence_set * 10.0
        azimuth, horizontal, vertical = self._turbulence
        azimuth += 2.0 * draw.random()
        horizontal = 0.98 * horizontal + 0.02 * strength * draw.gauss(0.0, 1.0)
        vertical = 0.98 * vertical + 0.02 * strength * draw.gauss(0.0, 1.0)
        self._turbulence = (azimuth % (2.0 * math.pi), horizontal, vertical)
        return (air[0] + horizontal * math.sin(azimuth), air[1] + horizontal * math.cos(azimuth),
                air[2] + vertical)

    def true_wind(self) -> tuple[float, float, float]:
        """Return the air's velocity where the vehicle is: east, north, up, m/s."""
        flight = self.flight
        if flight.motion is Motion.GROUND:
            return self._air_at(0.0)
        return (flight.wind_east, flight.wind_north, flight.wind_up)

    def _supervise(self) -> None:
        """What the autopilot does by itself, 50 times per second."""
        flight = self.flight
        if flight.disarm_wanted:
            self._disarm_timer += 0.02
            if self._disarm_timer >= 1.0:
                self._disarm_timer = 0.0
                self._disarm()
        if self.ekf.has_origin and not self._announced_origin:
            self._announced_origin = True
            for channel in self.channels:
                channel.send(self._global_origin())
                channel.send(self._home_position())
        if not self.ekf.active and flight.airborne:
            east, north, _ = self.true_wind()
            self._dcm_wind = (self._dcm_wind[0] + (north - self._dcm_wind[0]) * 0.001,
                              self._dcm_wind[1] + (east - self._dcm_wind[1]) * 0.001)
        if self.config.flight != 'none':
            self._fly_plan()

    # ------------------------------------------------------------------ flight plans

    def _fly_plan(self) -> None:
        """Take off, hover or loiter, and with 'auto' land again."""
        stage, flight, kind = self._plan_stage, self.flight, self.config.kind
        self._plan_timer += 0.02
        if stage == 0:
            # Wings wait for the wind: SITL has none in its first seconds
            calm = 0.0 if kind == 'copter' else CALM_AFTER_BOOT + 2.0
            if self.ekf.using_gps and self._plan_timer >= calm and not self._arming_problem():
                self._change_mode({'copter': 4, 'plane': 13, 'quadplane': 19}[kind])
                self._arm()
                if kind != 'plane':
                    flight.command_take_off(self.config.altitude)
                self._plan_next()
        elif not flight.armed:
            self._plan_stage = -1
        elif stage == 1:
            if flight.landed is Landed.IN_AIR:
                self._plan_next()
                if kind == 'plane':
                    self._change_mode(12)
        elif stage == 2:
            if kind == 'quadplane' and self.config.flight != 'hover' and self._plan_timer >= 10.0:
                self._change_mode(12)
                self._plan_next()
            elif kind != 'quadplane' and self.config.flight == 'auto' and self._plan_timer >= 60.0:
                self._change_mode({'copter': 9, 'plane': 11}[kind])
                if kind == 'plane':
                    flight.command_land()
                self._plan_stage = 9
        elif stage == 3 and self.config.flight == 'auto' and self._plan_timer >= 75.0:
            self._change_mode(19)
            self._plan_next()
        elif stage == 4 and self._plan_timer >= 15.0:
            self._change_mode(20)
            self._plan_stage = 9

    def _plan_next(self) -> None:
        self._plan_stage += 1
        self._plan_timer = 0.0

    # ------------------------------------------------------------------ modes and arming

    @property
    def modes(self) -> dict[int, str]:
        """Numbers and names of this vehicle's modes."""
        if self.config.kind == 'copter':
            return COPTER_MODES
        if self.config.kind == 'plane':
            return {n: name for n, name in PLANE_MODES.items() if n not in _VTOL_MODES}
        return PLANE_MODES

    def _change_mode(self, mode: int) -> bool:
        if mode not in self.modes:
            self._say(_WARNING, f'No such mode {mode}')
            return False
        name = self.modes[mode]
        flight = self.flight
        self.mode = mode
        flight.climb_stick = None
        if self.config.kind == 'quadplane':
            flight.command_vtol(mode in _VTOL_MODES)
        if name in ('LAND', 'QLAND'):
            flight.command_land()
        elif name in ('RTL', 'QRTL', 'SMART_RTL'):
            flight.command_return()
        elif name == 'TAKEOFF':
            if flight.armed:
                flight.command_take_off(self.config.altitude)
        else:
            flight.command_hold()
        return True

    def _arming_problem(self) -> str | None:
        if self.internal_errors:
            return f'Arm: Internal errors 0x{self.internal_errors:x}'
        if self.parameters.get('ARMING_CHECK', 1) and not self.ekf.has_origin:
            return 'Arm: Need Position Estimate'
        if self.parameters.get('ARMING_CHECK', 1) and not self.ekf.using_gps:
            return 'Arm: AHRS: EKF3 not using GPS'
        return None

    def _arm(self) -> None:
        flight = self.flight
        if flight.armed:
            return
        flight.arm()
        self._say(_INFO, 'Arming motors' if self.config.kind == 'copter' else 'Throttle armed')
        if self.modes[self.mode] == 'TAKEOFF':
            flight.command_take_off(self.config.altitude)

    def _disarm(self) -> None:
        if self.flight.armed:
            self.flight.disarm()
            self._say(_INFO, 'Disarming motors' if self.config.kind == 'copter'
                      else 'Throttle disarmed')

    # ------------------------------------------------------------------ texts and echoes

    def _say(self, severity: int, text: str) -> None:
        self._texts.append((severity, text))

    def _send_texts(self) -> None:
        texts, self._texts = self._texts, []
        for severity, text in texts:
            if self._log is not None:
                self._log(f'{self.time_s:9.3f}  {text}')
            message = _M.MAVLink_statustext_message(severity, text.encode()[:50])
            for channel in self.channels:
                channel.send(message)

    def _echo(self, names: list[str]) -> None:
        for name in names:
            if self.config.echo_loss and self._loss_random.random() < self.config.echo_loss:
                continue
            message = self._parameter_value(name)
            for channel in self.channels:
                channel.send(message)

    def _parameter_value(self, name: str, index: int = 65535) -> Any:
        table = self.parameters
        return _M.MAVLink_param_value_message(name.encode(), table.values[name], table.types[name],
                                              len(table.names), index)

    # ------------------------------------------------------------------ messages out

    def _set_interval(self, channel: Channel, message_id: int, interval_us: int) -> None:
        if interval_us <= 0:
            channel.intervals.pop(message_id, None)
            channel.due.pop(message_id, None)
        else:
            channel.intervals[message_id] = interval_us
            channel.due[message_id] = self.t_us + interval_us

    def _send_due(self, channel: Channel, t_us: int) -> None:
        due = channel.due
        for message_id in [key for key, at in due.items() if at <= t_us]:
            at = due[message_id] + channel.intervals[message_id]
            if at <= t_us:
                at = t_us + channel.intervals[message_id]
            due[message_id] = at
            message = self._senders[message_id]()
            if message is None:
                continue
            if (message_id == _M.MAVLINK_MSG_ID_SYSTEM_TIME and self.config.clock_loss
                    and self._loss_random.random() < self.config.clock_loss):
                continue
            channel.send(message)
        if channel.list_position is not None:
            self._send_list_part(channel)

    def _send_list_part(self, channel: Channel) -> None:
        names = self.parameters.names
        first = channel.list_position or 0
        for index in range(first, min(first + 5, len(names))):
            channel.send(self._parameter_value(names[index], index))
        channel.list_position = first + 5 if first + 5 < len(names) else None

    def _make_senders(self) -> dict[int, Callable[[], Any]]:
        return {
            _M.MAVLINK_MSG_ID_HEARTBEAT: self._heartbeat,
            _M.MAVLINK_MSG_ID_SYS_STATUS: self._sys_status,
            _M.MAVLINK_MSG_ID_SYSTEM_TIME: self._system_time,
            _M.MAVLINK_MSG_ID_GPS_RAW_INT: self._gps_raw_int,
            _M.MAVLINK_MSG_ID_ATTITUDE: self._attitude,
            _M.MAVLINK_MSG_ID_ATTITUDE_QUATERNION: self._attitude_quaternion,
            _M.MAVLINK_MSG_ID_LOCAL_POSITION_NED: self._local_position_ned,
            _M.MAVLINK_MSG_ID_GLOBAL_POSITION_INT: self._global_position_int,
            _M.MAVLINK_MSG_ID_VFR_HUD: self._vfr_hud,
            _M.MAVLINK_MSG_ID_EKF_STATUS_REPORT: self._ekf_status_report,
            _M.MAVLINK_MSG_ID_WIND: self._wind,
            _M.MAVLINK_MSG_ID_EXTENDED_SYS_STATE: self._extended_sys_state,
            _M.MAVLINK_MSG_ID_MISSION_CURRENT: lambda: _M.MAVLink_mission_current_message(0),
            _M.MAVLINK_MSG_ID_AUTOPILOT_VERSION: self._autopilot_version,
            _M.MAVLINK_MSG_ID_HOME_POSITION: self._home_position,
            _M.MAVLINK_MSG_ID_GPS_GLOBAL_ORIGIN: self._global_origin,
        }

    def _heartbeat(self) -> Any:
        flight, mode = self.flight, self.modes[self.mode]
        base = _M.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED | _M.MAV_MODE_FLAG_STABILIZE_ENABLED
        if mode in _GUIDED_MODES:
            base |= _M.MAV_MODE_FLAG_GUIDED_ENABLED
        if mode != 'MANUAL':
            base |= _M.MAV_MODE_FLAG_MANUAL_INPUT_ENABLED
        if flight.armed:
            base |= _M.MAV_MODE_FLAG_SAFETY_ARMED
        # A quadplane says fixed wing here too: only vtol_state tells it apart
        kind = (_M.MAV_TYPE_QUADROTOR if self.config.kind == 'copter' else _M.MAV_TYPE_FIXED_WING)
        state = _M.MAV_STATE_ACTIVE if flight.motion is not Motion.GROUND else _M.MAV_STATE_STANDBY
        return _M.MAVLink_heartbeat_message(kind, _M.MAV_AUTOPILOT_ARDUPILOTMEGA, base, self.mode,
                                            state, 3)

    def _sys_status(self) -> Any:
        errors = self.internal_errors
        return _M.MAVLink_sys_status_message(
            320994335, 318865439, 320994335, 0, 12600, 0, 100, 0, 0,
            errors & 0xffff, errors >> 16, 0, self.internal_error_count)

    def _system_time(self) -> Any:
        unix = EPOCH_US + self.t_us if self.ekf.gps_fix else 0
        return _M.MAVLink_system_time_message(unix, self.time_boot_ms)

    def _position(self) -> tuple[float, float, float]:
        """North, east, up now: the physics' last step, carried on to this loop tick."""
        flight = self.flight
        ahead = (self.t_us - self._physics_us) * 1e-6
        return (flight.north + flight.v_north * ahead, flight.east + flight.v_east * ahead,
                flight.up + flight.v_up * ahead)

    def _latitude_longitude(self, north: float, east: float) -> tuple[int, int]:
        home = self.config.home
        return (round(home.latitude * 1e7 + north / _METRES_PER_1E7),
                round(home.longitude * 1e7 + east / _METRES_PER_1E7
                      / math.cos(math.radians(home.latitude))))

    def _gps_raw_int(self) -> Any:
        if self.time_s < 0.3 * self.config.origin_after:
            return _M.MAVLink_gps_raw_int_message(0, 0, 0, 0, 0, 65535, 65535, 0, 0, 0)
        flight = self.flight
        north, east, up = self._position()
        latitude, longitude = self._latitude_longitude(north, east)
        fix = self.ekf.gps_fix
        course = math.degrees(math.atan2(flight.v_east, flight.v_north)) % 360.0
        return _M.MAVLink_gps_raw_int_message(
            self.t_us, 6 if fix else 1, latitude, longitude,
            round((self.config.home.altitude + up) * 1000.0), 121, 200,
            round(min(flight.ground_speed, 600.0) * 100.0), round(course * 100.0) % 36000,
            10 if fix else 3)

    def _attitude(self) -> Any:
        flight = self.flight
        yaw = (flight.yaw + math.pi) % (2.0 * math.pi) - math.pi
        return _M.MAVLink_attitude_message(
            self.time_boot_ms, flight.roll, flight.pitch, yaw, flight.roll_rate,
            flight.pitch_rate, flight.yaw_rate)

    def _attitude_quaternion(self) -> Any:
        flight = self.flight
        half = [(math.cos(a / 2.0), math.sin(a / 2.0))
                for a in (flight.roll, flight.pitch, flight.yaw)]
        (cr, sr), (cp, sp), (cy, sy) = half
        return _M.MAVLink_attitude_quaternion_message(
            self.time_boot_ms, cr * cp * cy + sr * sp * sy, sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy, cr * cp * sy - sr * sp * cy,
            flight.roll_rate, flight.pitch_rate, flight.yaw_rate)

    def _local_position_ned(self) -> Any:
        if not self.ekf.has_origin:
            return None
        flight = self.flight
        north, east, up = self._position()
        return _M.MAVLink_local_position_ned_message(
            self.time_boot_ms, north, east, 0.0 - up, flight.v_north, flight.v_east,
            0.0 - flight.v_up)

    def _global_position_int(self) -> Any:
        flight = self.flight
        north, east, up = self._position()
        latitude = longitude = 0
        if self.ekf.has_origin:
            latitude, longitude = self._latitude_longitude(north, east)
        return _M.MAVLink_global_position_int_message(
            self.time_boot_ms, latitude, longitude,
            round((self.config.home.altitude + up) * 1000.0) if self.ekf.has_origin else 0,
            round(up * 1000.0), _centi(flight.v_north), _centi(flight.v_east), _centi(-flight.v_up),
            round(math.degrees(flight.yaw) % 360.0 * 100.0) % 36000)

    def _vfr_hud(self) -> Any:
        flight, ekf = self.flight, self.ekf
        if ekf.airspeed_used(flight):
            airspeed = flight.airspeed
        elif ekf.estimates_wind:
            airspeed = math.hypot(flight.v_north - ekf.wind_north, flight.v_east - ekf.wind_east)
        else:
            airspeed = flight.ground_speed
        return _M.MAVLink_vfr_hud_message(
            airspeed, flight.ground_speed, int(math.degrees(flight.yaw) % 360.0),
            int(flight.throttle), self.config.home.altitude + self._position()[2], flight.v_up)

    def _ekf_status_report(self) -> Any:
        ekf = self.ekf
        return _M.MAVLink_ekf_status_report_message(
            ekf.flags, ekf.velocity_variance, ekf.position_variance, ekf.height_variance,
            ekf.compass_variance, 0.0, ekf.airspeed_variance)

    def _wind(self) -> Any:
        ekf = self.ekf
        if self.config.kind == 'copter' and (not ekf.has_origin or ekf.no_aiding):
            return None
        north, east = (ekf.wind_north, ekf.wind_east) if ekf.active else self._dcm_wind
        # -0.0 on purpose: no wind reads as direction -180, as ArduPilot sends it
        direction = math.degrees(math.atan2(-east, -north))
        return _M.MAVLink_wind_message(direction, math.hypot(north, east), 0.0)

    def _extended_sys_state(self) -> Any:
        return _M.MAVLink_extended_sys_state_message(self.flight.vtol, self.flight.landed)

    def _autopilot_version(self) -> Any:
        capabilities = (_M.MAV_PROTOCOL_CAPABILITY_PARAM_FLOAT
                        | _M.MAV_PROTOCOL_CAPABILITY_COMMAND_INT
                        | _M.MAV_PROTOCOL_CAPABILITY_MAVLINK2)
        version = 4 << 24 | 7 << 16
        return _M.MAVLink_autopilot_version_message(
            capabilities, version, 0, 0, 3 << 16, [0] * 8, [0] * 8, [0] * 8, 0, 0, 0)

    def _home_position(self) -> Any:
        if not self.ekf.has_origin:
            return None
        home, nan = self.config.home, math.nan
        return _M.MAVLink_home_position_message(
            round(home.latitude * 1e7), round(home.longitude * 1e7), round(home.altitude * 1000.0),
            0.0, 0.0, 0.0, [nan] * 4, 0.0, 0.0, 0.0, self.t_us)

    def _global_origin(self) -> Any:
        if not self.ekf.has_origin:
            return None
        home = self.config.home
        return _M.MAVLink_gps_global_origin_message(
            round(home.latitude * 1e7), round(home.longitude * 1e7), round(home.altitude * 1000.0),
            self.t_us)

    # ------------------------------------------------------------------ messages in

    def _handle(self, channel: Channel, message: Any) -> None:
        handler = _HANDLERS.get(message.get_msgId())
        if handler is None:
            return
        target = getattr(message, 'target_system', 0)
        if target not in (0, self.sysid):
            return
        handler(self, channel, message)

    def _on_param_set(self, channel: Channel, message: Any) -> None:
        name, table = message.param_id, self.parameters
        if name in _WIND_PARAMETERS and self.t_us > self._wind_us:
            if self._air_stale:
                self._read_air_parameters()
            self._filter_wind(self.t_us)
        outcome = table.set(name, message.param_value, self.flight.armed)
        if outcome is SetOutcome.DONE or outcome is SetOutcome.SAVE_LOST:
            if name in _WIND_PARAMETERS:
                self._air_stale = True
            elif name == 'SIM_GPS1_ENABLE':
                self.ekf.gps_enabled = table.get(name) != 0.0
            elif name == 'SIM_SPEEDUP':
                self.speedup = max(table.get(name), 0.0)
            elif name == 'MAV_SYSID' and 1 <= table.get(name) <= 255:
                self.sysid = int(table.get(name))
                for each in self.channels:
                    each.mav.srcSystem = self.sysid
            if outcome is SetOutcome.SAVE_LOST:
                self.internal_error_count += 1
                if not any(text.startswith('Internal Errors') for _, text in self._texts):
                    self._say(_CRITICAL, f'Internal Errors 0x{INTERNAL_ERROR:x}')
                self.internal_errors |= INTERNAL_ERROR
            return
        refusal = self.config.refusal
        if refusal == 'error':
            error = {SetOutcome.UNKNOWN: _M.MAV_PARAM_ERROR_DOES_NOT_EXIST,
                     SetOutcome.NOT_A_NUMBER: _M.MAV_PARAM_ERROR_VALUE_OUT_OF_RANGE,
                     SetOutcome.REFUSED: _M.MAV_PARAM_ERROR_READ_ONLY}[outcome]
            self._send_param_error(channel, message, name, error)
        elif refusal == 'value' and outcome is SetOutcome.REFUSED:
            self._say(_WARNING, f'Param write denied ({name})')
            channel.send(self._parameter_value(name))

    def _send_param_error(self, channel: Channel, message: Any, name: str, error: int) -> None:
        channel.send(_M.MAVLink_param_error_message(
            message.get_srcSystem(), message.get_srcComponent(), name.encode()[:16], -1, error))

    def _on_param_request_read(self, channel: Channel, message: Any) -> None:
        table = self.parameters
        if message.param_index >= 0:
            if message.param_index < len(table.names):
                channel.send(self._parameter_value(table.names[message.param_index],
                                                   message.param_index))
                return
        elif message.param_id in table.values:
            channel.send(self._parameter_value(message.param_id))
            return
        if self.config.refusal == 'error':
            self._send_param_error(channel, message, message.param_id,
                                   _M.MAV_PARAM_ERROR_DOES_NOT_EXIST)

    def _on_param_request_list(self, channel: Channel, _: Any) -> None:
        channel.list_position = 0

    def _on_timesync(self, channel: Channel, message: Any) -> None:
        if message.tc1 == 0:
            channel.send(_M.MAVLink_timesync_message(self.t_us * 1000 + 1, message.ts1))

    def _on_mission_request_list(self, channel: Channel, message: Any) -> None:
        channel.send(_M.MAVLink_mission_count_message(
            message.get_srcSystem(), message.get_srcComponent(), 0))

    def _on_file_transfer(self, channel: Channel, message: Any) -> None:
        """No files here: say so, or a GCS waits in vain before it asks for the parameter list."""
        request = bytes(message.payload)
        if len(request) < 4:
            return
        answer = bytearray(251)
        sequence = (int.from_bytes(request[:2], 'little') + 1) & 0xffff
        answer[0:2] = sequence.to_bytes(2, 'little')
        answer[2:6] = bytes((request[2], _FTP_NAK, 1, request[3]))
        answer[12] = _FTP_FILE_NOT_FOUND
        channel.send(_M.MAVLink_file_transfer_protocol_message(
            0, message.get_srcSystem(), message.get_srcComponent(), answer))

    def _on_request_data_stream(self, channel: Channel, message: Any) -> None:
        rate = message.req_message_rate if message.start_stop else 0
        streams = (_STREAMS if message.req_stream_id == 0 else
                   {message.req_stream_id: _STREAMS.get(message.req_stream_id, ())})
        fastest = 1_000_000 / (self.loop_us / 0.8)
        interval = round(1_000_000 / min(rate, fastest)) if rate else 0
        for ids in streams.values():
            for message_id in ids:
                self._set_interval(channel, message_id, interval)

    def _on_set_mode(self, channel: Channel, message: Any) -> None:
        if message.base_mode & _M.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED:
            done = self._change_mode(message.custom_mode)
            self._acknowledge(channel, message, _M.MAVLINK_MSG_ID_SET_MODE,
                              _M.MAV_RESULT_ACCEPTED if done else _M.MAV_RESULT_FAILED)

    def _on_rc_override(self, _: Channel, message: Any) -> None:
        self._stick(message.chan3_raw)

    def _on_manual_control(self, _: Channel, message: Any) -> None:
        self._stick(1000 + message.z)

    def _stick(self, throttle: int) -> None:
        """Throttle stick in the modes where it sets the climb rate; its middle holds height."""
        if not 900 <= throttle <= 2100 or self.modes[self.mode] not in _STICK_MODES:
            return
        flight = self.flight
        rate = (throttle - 1500) / 500.0 * CLIMB_RATE if abs(throttle - 1500) > 50 else None
        if flight.armed and flight.motion is Motion.GROUND and rate is not None and rate > 0.0:
            flight.command_take_off(0.0)
        if rate is None and flight.climb_stick is not None:
            flight.v_up = 0.0
            flight.command_altitude(flight.up)
        flight.climb_stick = rate

    def _acknowledge(self, channel: Channel, message: Any, command: int, result: int) -> None:
        channel.send(_M.MAVLink_command_ack_message(
            command, result, 0, 0, message.get_srcSystem(), message.get_srcComponent()))

    def _on_command_long(self, channel: Channel, message: Any) -> None:
        self._command(channel, message, message.param7)

    def _on_command_int(self, channel: Channel, message: Any) -> None:
        self._command(channel, message, message.z)

    def _command(self, channel: Channel, message: Any, altitude: float) -> None:
        handler = _COMMANDS.get(message.command)
        if handler is None:
            result = _M.MAV_RESULT_UNSUPPORTED
        else:
            result = handler(self, channel, message, altitude)
        self._acknowledge(channel, message, message.command, result)

    def _do_set_message_interval(self, channel: Channel, message: Any, _: float) -> int:
        message_id = _whole(message.param1)
        interval = message.param2
        if message_id not in self._senders:
            self._say(_WARNING, f'No ap_message for mavlink id ({message_id})')
            return _M.MAV_RESULT_DENIED
        if not math.isfinite(interval) or interval > 3.6e9:
            return _M.MAV_RESULT_DENIED
        if interval > 0.0 and interval < 0.999 * self.loop_us / 0.8:
            self._say(_WARNING, f'Requested rate for message ID {message_id} too fast. '
                                'Increase SCHED_LOOP_RATE')
            return _M.MAV_RESULT_DENIED
        if interval == 0.0:
            interval = 1_000_000 if any(
                message_id in ids for ids in _STREAMS.values()) or message_id == 0 else -1
        self._set_interval(channel, message_id, round(interval))
        return _M.MAV_RESULT_ACCEPTED

    def _do_get_message_interval(self, channel: Channel, message: Any, _: float) -> int:
        message_id = _whole(message.param1)
        if message_id not in self._senders:
            return _M.MAV_RESULT_FAILED
        channel.send(_M.MAVLink_message_interval_message(
            message_id, channel.intervals.get(message_id, -1)))
        return _M.MAV_RESULT_ACCEPTED

    def _do_request_message(self, channel: Channel, message: Any, _: float) -> int:
        sender = self._senders.get(_whole(message.param1))
        answer = sender() if sender is not None else None
        if answer is None:
            return _M.MAV_RESULT_FAILED
        channel.send(answer)
        return _M.MAV_RESULT_ACCEPTED

    def _do_request_capabilities(self, channel: Channel, _: Any, __: float) -> int:
        channel.send(self._autopilot_version())
        return _M.MAV_RESULT_ACCEPTED

    def _do_set_mode(self, _: Channel, message: Any, __: float) -> int:
        done = self._change_mode(_whole(message.param2))
        return _M.MAV_RESULT_ACCEPTED if done else _M.MAV_RESULT_FAILED

    def _do_arm_disarm(self, _: Channel, message: Any, __: float) -> int:
        if message.param1 == 1.0:
            problem = self._arming_problem()
            if problem is not None and message.param2 not in (_FORCE, _FORCE_ARM):
                self._say(_CRITICAL, problem)
                return _M.MAV_RESULT_FAILED
            self._arm()
            return _M.MAV_RESULT_ACCEPTED
        if message.param1 == 0.0:
            if self.flight.airborne and message.param2 != _FORCE:
                return _M.MAV_RESULT_FAILED
            self._disarm()
            return _M.MAV_RESULT_ACCEPTED
        return _M.MAV_RESULT_UNSUPPORTED

    def _do_take_off(self, _: Channel, message: Any, altitude: float) -> int:
        mode = self.modes[self.mode]
        allowed = {'copter': ('GUIDED', 'AUTO', 'LOITER', 'ALT_HOLD'),
                   'plane': ('GUIDED', 'AUTO', 'TAKEOFF'),
                   'quadplane': ('GUIDED', 'AUTO', 'QLOITER', 'QHOVER')}[self.config.kind]
        if mode not in allowed or not math.isfinite(altitude) or not 0.5 <= altitude <= 10000.0:
            return _M.MAV_RESULT_FAILED
        done = self.flight.command_take_off(altitude)
        return _M.MAV_RESULT_ACCEPTED if done else _M.MAV_RESULT_FAILED

    def _do_land(self, _: Channel, __: Any, ___: float) -> int:
        if self.config.kind == 'plane':
            self.flight.command_land()
        else:
            self._change_mode(9 if self.config.kind == 'copter' else 20)
        return _M.MAV_RESULT_ACCEPTED

    def _do_loiter(self, _: Channel, __: Any, ___: float) -> int:
        self._change_mode(5 if self.config.kind == 'copter' else 12)
        return _M.MAV_RESULT_ACCEPTED

    def _do_return(self, _: Channel, __: Any, ___: float) -> int:
        self._change_mode(6 if self.config.kind == 'copter' else 11)
        return _M.MAV_RESULT_ACCEPTED

    def _do_vtol_transition(self, _: Channel, message: Any, __: float) -> int:
        if self.config.kind != 'quadplane':
            return _M.MAV_RESULT_FAILED
        state = _whole(message.param1)
        if state not in (Vtol.ROTORS, Vtol.FORWARD):
            return _M.MAV_RESULT_FAILED
        self.flight.command_vtol(state == Vtol.ROTORS)
        return _M.MAV_RESULT_ACCEPTED

    def _do_reboot(self, _: Channel, message: Any, __: float) -> int:
        if _whole(message.param1) not in (1, 3):
            return _M.MAV_RESULT_UNSUPPORTED
        if self.flight.armed and message.param6 != 20190226:
            return _M.MAV_RESULT_FAILED
        self.reboot_at = self.t_us + REBOOT_DELAY_US
        return _M.MAV_RESULT_ACCEPTED

    def _do_external_wind(self, _: Channel, __: Any, ___: float) -> int:
        # ArduPilot takes it, for DCM alone: EKF3's wind does not move
        return _M.MAV_RESULT_ACCEPTED


_HANDLERS: dict[int, Callable[[Autopilot, Channel, Any], None]] = {
    _M.MAVLINK_MSG_ID_PARAM_SET: Autopilot._on_param_set,
    _M.MAVLINK_MSG_ID_PARAM_REQUEST_READ: Autopilot._on_param_request_read,
    _M.MAVLINK_MSG_ID_PARAM_REQUEST_LIST: Autopilot._on_param_request_list,
    _M.MAVLINK_MSG_ID_TIMESYNC: Autopilot._on_timesync,
    _M.MAVLINK_MSG_ID_MISSION_REQUEST_LIST: Autopilot._on_mission_request_list,
    _M.MAVLINK_MSG_ID_FILE_TRANSFER_PROTOCOL: Autopilot._on_file_transfer,
    _M.MAVLINK_MSG_ID_REQUEST_DATA_STREAM: Autopilot._on_request_data_stream,
    _M.MAVLINK_MSG_ID_SET_MODE: Autopilot._on_set_mode,
    _M.MAVLINK_MSG_ID_RC_CHANNELS_OVERRIDE: Autopilot._on_rc_override,
    _M.MAVLINK_MSG_ID_MANUAL_CONTROL: Autopilot._on_manual_control,
    _M.MAVLINK_MSG_ID_COMMAND_LONG: Autopilot._on_command_long,
    _M.MAVLINK_MSG_ID_COMMAND_INT: Autopilot._on_command_int,
}

_COMMANDS: dict[int, Callable[[Autopilot, Channel, Any, float], int]] = {
    _M.MAV_CMD_SET_MESSAGE_INTERVAL: Autopilot._do_set_message_interval,
    _M.MAV_CMD_GET_MESSAGE_INTERVAL: Autopilot._do_get_message_interval,
    _M.MAV_CMD_REQUEST_MESSAGE: Autopilot._do_request_message,
    _M.MAV_CMD_REQUEST_AUTOPILOT_CAPABILITIES: Autopilot._do_request_capabilities,
    _M.MAV_CMD_DO_SET_MODE: Autopilot._do_set_mode,
    _M.MAV_CMD_COMPONENT_ARM_DISARM: Autopilot._do_arm_disarm,
    _M.MAV_CMD_NAV_TAKEOFF: Autopilot._do_take_off,
    _M.MAV_CMD_NAV_VTOL_TAKEOFF: Autopilot._do_take_off,
    _M.MAV_CMD_NAV_LAND: Autopilot._do_land,
    _M.MAV_CMD_NAV_VTOL_LAND: Autopilot._do_land,
    _M.MAV_CMD_NAV_LOITER_UNLIM: Autopilot._do_loiter,
    _M.MAV_CMD_NAV_RETURN_TO_LAUNCH: Autopilot._do_return,
    _M.MAV_CMD_DO_VTOL_TRANSITION: Autopilot._do_vtol_transition,
    _M.MAV_CMD_PREFLIGHT_REBOOT_SHUTDOWN: Autopilot._do_reboot,
    _EXTERNAL_WIND_ESTIMATE: Autopilot._do_external_wind,
}


def open_truth(path: Path) -> TextIO:
    """Open the file of the true wind phases and write its head."""
    file = path.open('w', buffering=1)
    file.write('t_boot_s,phase,V22,V23,VWN,VWE\n')
    return file


def _centi(speed: float) -> int:
    return round(min(max(speed * 100.0, -32768.0), 32767.0))


def _whole(value: float) -> int:
    return int(value) if math.isfinite(value) else -1
