"""What the embedded vehicle does with the messages it gets: one function a message or command.

A message for another system is left alone; one without a handler is too, but a command without one
is answered as unsupported.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.emulator.channel import Channel
from dryden_wind_ros.emulator.encoders import autopilot_version, parameter_value
from dryden_wind_ros.emulator.flight import CLIMB_RATE, Motion, Vtol
from dryden_wind_ros.emulator.mission import on_set_point
from dryden_wind_ros.emulator.modes import STICK_MODES
from dryden_wind_ros.emulator.parameters import SetOutcome
from dryden_wind_ros.emulator.streams import STREAMS

if TYPE_CHECKING:
    from dryden_wind_ros.emulator.autopilot import Autopilot

# MAV_RESULT, typed: the generated dialect is not
ACCEPTED: int = mavlink.MAV_RESULT_ACCEPTED
DENIED: int = mavlink.MAV_RESULT_DENIED
UNSUPPORTED: int = mavlink.MAV_RESULT_UNSUPPORTED
FAILED: int = mavlink.MAV_RESULT_FAILED

CRITICAL, WARNING = 2, 4

REBOOT_DELAY_US = 200_000
_FORCE = 21196
_FORCE_ARM = 2989
_EXTERNAL_WIND_ESTIMATE = 43004
_FTP_NAK, _FTP_FILE_NOT_FOUND = 129, 10


def handle(vehicle: Autopilot, channel: Channel, message: Any) -> None:
    """Act on one message of a client, and answer on its channel."""
    handler = _HANDLERS.get(message.get_msgId())
    if handler is None:
        return
    target = getattr(message, 'target_system', 0)
    if target not in (0, vehicle.sysid):
        return
    handler(vehicle, channel, message)


def _on_param_set(vehicle: Autopilot, channel: Channel, message: Any) -> None:
    name = message.param_id
    outcome = vehicle.write_parameter(name, message.param_value)
    if outcome is SetOutcome.DONE or outcome is SetOutcome.SAVE_LOST:
        return
    refusal = vehicle.config.refusal
    if refusal == 'error':
        error = {SetOutcome.UNKNOWN: mavlink.MAV_PARAM_ERROR_DOES_NOT_EXIST,
                 SetOutcome.NOT_A_NUMBER: mavlink.MAV_PARAM_ERROR_VALUE_OUT_OF_RANGE,
                 SetOutcome.REFUSED: mavlink.MAV_PARAM_ERROR_READ_ONLY}[outcome]
        _send_param_error(channel, message, name, error)
    elif refusal == 'value' and outcome is SetOutcome.REFUSED:
        vehicle.say(WARNING, f'Param write denied ({name})')
        channel.send(parameter_value(vehicle, name))


def _send_param_error(channel: Channel, message: Any, name: str, error: int) -> None:
    channel.send(mavlink.MAVLink_param_error_message(
        message.get_srcSystem(), message.get_srcComponent(), name.encode()[:16], -1, error))


def _on_param_request_read(vehicle: Autopilot, channel: Channel, message: Any) -> None:
    table = vehicle.parameters
    if message.param_index >= 0:
        if message.param_index < len(table.names):
            channel.send(parameter_value(vehicle, table.names[message.param_index],
                                         message.param_index))
            return
    elif message.param_id in table.values:
        channel.send(parameter_value(vehicle, message.param_id))
        return
    if vehicle.config.refusal == 'error':
        _send_param_error(channel, message, message.param_id,
                          mavlink.MAV_PARAM_ERROR_DOES_NOT_EXIST)


def _on_param_request_list(vehicle: Autopilot, channel: Channel, _: Any) -> None:
    channel.list_position = 0


def _on_timesync(vehicle: Autopilot, channel: Channel, message: Any) -> None:
    if message.tc1 == 0:
        channel.send(mavlink.MAVLink_timesync_message(vehicle.t_us * 1000 + 1, message.ts1))


def _on_mission_request_list(vehicle: Autopilot, channel: Channel, message: Any) -> None:
    channel.send(mavlink.MAVLink_mission_count_message(
        message.get_srcSystem(), message.get_srcComponent(), len(vehicle.mission.items)))


def _on_file_transfer(vehicle: Autopilot, channel: Channel, message: Any) -> None:
    """No files here: say so, or a GCS waits in vain before it asks for the parameter list."""
    request = bytes(message.payload)
    if len(request) < 4:
        return
    answer = bytearray(251)
    sequence = (int.from_bytes(request[:2], 'little') + 1) & 0xffff
    answer[0:2] = sequence.to_bytes(2, 'little')
    answer[2:6] = bytes((request[2], _FTP_NAK, 1, request[3]))
    answer[12] = _FTP_FILE_NOT_FOUND
    channel.send(mavlink.MAVLink_file_transfer_protocol_message(
        0, message.get_srcSystem(), message.get_srcComponent(), answer))


def _on_request_data_stream(vehicle: Autopilot, channel: Channel, message: Any) -> None:
    rate = message.req_message_rate if message.start_stop else 0
    streams = (STREAMS if message.req_stream_id == 0 else
               {message.req_stream_id: STREAMS.get(message.req_stream_id, ())})
    fastest = 1_000_000 / (vehicle.loop_us / 0.8)
    interval = round(1_000_000 / min(rate, fastest)) if rate else 0
    for stream, ids in streams.items():
        # From now on this is also the default that an interval of 0 goes back to
        channel.stream_intervals[stream] = interval
        for message_id in ids:
            channel.set_interval(message_id, interval, vehicle.t_us)


def _on_set_mode(vehicle: Autopilot, channel: Channel, message: Any) -> None:
    if message.base_mode & mavlink.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED:
        done = vehicle.change_mode(message.custom_mode)
        _acknowledge(channel, message, mavlink.MAVLINK_MSG_ID_SET_MODE,
                     ACCEPTED if done else FAILED)


def _on_rc_override(vehicle: Autopilot, _: Channel, message: Any) -> None:
    _stick(vehicle, message.chan3_raw)


def _on_manual_control(vehicle: Autopilot, _: Channel, message: Any) -> None:
    _stick(vehicle, 1000 + message.z)


def _stick(vehicle: Autopilot, throttle: int) -> None:
    """Throttle stick in the modes where it sets the climb rate; its middle holds height."""
    if not 900 <= throttle <= 2100 or vehicle.modes[vehicle.mode] not in STICK_MODES:
        return
    flight = vehicle.flight
    rate = (throttle - 1500) / 500.0 * CLIMB_RATE if abs(throttle - 1500) > 50 else None
    if flight.armed and flight.motion is Motion.GROUND and rate is not None and rate > 0.0:
        flight.command_take_off(0.0)
    if rate is None and flight.climb_stick is not None:
        flight.v_up = 0.0
        flight.command_altitude(flight.up)
    flight.climb_stick = rate


def _acknowledge(channel: Channel, message: Any, command: int, result: int) -> None:
    channel.send(mavlink.MAVLink_command_ack_message(
        command, result, 0, 0, message.get_srcSystem(), message.get_srcComponent()))


def _on_command_long(vehicle: Autopilot, channel: Channel, message: Any) -> None:
    _command(vehicle, channel, message, message.param7)


def _on_command_int(vehicle: Autopilot, channel: Channel, message: Any) -> None:
    _command(vehicle, channel, message, message.z)


def _command(vehicle: Autopilot, channel: Channel, message: Any, altitude: float) -> None:
    handler = _COMMANDS.get(message.command)
    if handler is None:
        result = UNSUPPORTED
    else:
        result = handler(vehicle, channel, message, altitude)
    _acknowledge(channel, message, message.command, result)


def _do_set_message_interval(vehicle: Autopilot, channel: Channel, message: Any, _: float) -> int:
    message_id = _whole(message.param1)
    interval = message.param2
    if message_id not in vehicle.encoders:
        vehicle.say(WARNING, f'No ap_message for mavlink id ({message_id})')
        return DENIED
    if not math.isfinite(interval) or interval > 3.6e9:
        return DENIED
    if interval > 0.0 and interval < 0.999 * vehicle.loop_us / 0.8:
        vehicle.say(WARNING, f'Requested rate for message ID {message_id} too fast. '
                             'Increase SCHED_LOOP_RATE')
        return DENIED
    if interval == 0.0:
        interval = channel.default_interval(message_id)
    channel.set_interval(message_id, round(interval), vehicle.t_us)
    return ACCEPTED


def _do_get_message_interval(vehicle: Autopilot, channel: Channel, message: Any, _: float) -> int:
    message_id = _whole(message.param1)
    if message_id not in vehicle.encoders:
        return FAILED
    channel.send(mavlink.MAVLink_message_interval_message(
        message_id, channel.intervals.get(message_id, -1)))
    return ACCEPTED


def _do_request_message(vehicle: Autopilot, channel: Channel, message: Any, _: float) -> int:
    encode = vehicle.encoders.get(_whole(message.param1))
    answer = encode(vehicle) if encode is not None else None
    if answer is None:
        return FAILED
    channel.send(answer)
    return ACCEPTED


def _do_request_capabilities(vehicle: Autopilot, channel: Channel, _: Any, __: float) -> int:
    channel.send(autopilot_version(vehicle))
    return ACCEPTED


def _do_set_mode(vehicle: Autopilot, _: Channel, message: Any, __: float) -> int:
    done = vehicle.change_mode(_whole(message.param2))
    return ACCEPTED if done else FAILED


def _do_arm_disarm(vehicle: Autopilot, _: Channel, message: Any, __: float) -> int:
    if message.param1 == 1.0:
        problem = vehicle.arming_problem()
        if problem is not None and message.param2 not in (_FORCE, _FORCE_ARM):
            vehicle.say(CRITICAL, problem)
            return FAILED
        vehicle.arm()
        return ACCEPTED
    if message.param1 == 0.0:
        if vehicle.flight.airborne and message.param2 != _FORCE:
            return FAILED
        vehicle.disarm()
        return ACCEPTED
    return UNSUPPORTED


def _do_take_off(vehicle: Autopilot, _: Channel, message: Any, altitude: float) -> int:
    mode = vehicle.modes[vehicle.mode]
    allowed = {'copter': ('GUIDED', 'AUTO', 'LOITER', 'ALT_HOLD'),
               'plane': ('GUIDED', 'AUTO', 'TAKEOFF'),
               'quadplane': ('GUIDED', 'AUTO', 'QLOITER', 'QHOVER')}[vehicle.config.kind]
    if mode not in allowed or not math.isfinite(altitude) or not 0.5 <= altitude <= 10000.0:
        return FAILED
    done = vehicle.flight.command_take_off(altitude)
    return ACCEPTED if done else FAILED


def _do_land(vehicle: Autopilot, _: Channel, __: Any, ___: float) -> int:
    if vehicle.config.kind == 'plane':
        vehicle.flight.command_land()
    else:
        vehicle.change_mode(9 if vehicle.config.kind == 'copter' else 20)
    return ACCEPTED


def _do_loiter(vehicle: Autopilot, _: Channel, __: Any, ___: float) -> int:
    vehicle.change_mode(5 if vehicle.config.kind == 'copter' else 12)
    return ACCEPTED


def _do_return(vehicle: Autopilot, _: Channel, __: Any, ___: float) -> int:
    vehicle.change_mode(6 if vehicle.config.kind == 'copter' else 11)
    return ACCEPTED


def _do_vtol_transition(vehicle: Autopilot, _: Channel, message: Any, __: float) -> int:
    if vehicle.config.kind != 'quadplane':
        return FAILED
    state = _whole(message.param1)
    if state not in (Vtol.ROTORS, Vtol.FORWARD):
        return FAILED
    vehicle.flight.command_vtol(state == Vtol.ROTORS)
    return ACCEPTED


def _do_mission_start(vehicle: Autopilot, _: Channel, __: Any, ___: float) -> int:
    auto = {name: number for number, name in vehicle.modes.items()}['AUTO']
    if not vehicle.flight.armed or not vehicle.mission.items:
        return FAILED
    if vehicle.mode != auto:
        vehicle.change_mode(auto)
    return ACCEPTED


def _do_reboot(vehicle: Autopilot, _: Channel, message: Any, __: float) -> int:
    if _whole(message.param1) not in (1, 3):
        return UNSUPPORTED
    if vehicle.flight.armed and message.param6 != 20190226:
        return FAILED
    vehicle.reboot_at = vehicle.t_us + REBOOT_DELAY_US
    return ACCEPTED


def _do_external_wind(vehicle: Autopilot, _: Channel, __: Any, ___: float) -> int:
    # ArduPilot takes it, for DCM alone: EKF3's wind does not move
    return ACCEPTED


def _whole(value: float) -> int:
    return int(value) if math.isfinite(value) else -1


_HANDLERS: dict[int, Callable[[Autopilot, Channel, Any], None]] = {
    mavlink.MAVLINK_MSG_ID_PARAM_SET: _on_param_set,
    mavlink.MAVLINK_MSG_ID_PARAM_REQUEST_READ: _on_param_request_read,
    mavlink.MAVLINK_MSG_ID_PARAM_REQUEST_LIST: _on_param_request_list,
    mavlink.MAVLINK_MSG_ID_TIMESYNC: _on_timesync,
    mavlink.MAVLINK_MSG_ID_MISSION_REQUEST_LIST: _on_mission_request_list,
    mavlink.MAVLINK_MSG_ID_MISSION_COUNT: lambda vehicle, *one: vehicle.mission.on_count(*one),
    mavlink.MAVLINK_MSG_ID_MISSION_ITEM_INT: lambda vehicle, *one: vehicle.mission.on_item(*one),
    mavlink.MAVLINK_MSG_ID_MISSION_REQUEST_INT:
        lambda vehicle, *one: vehicle.mission.on_request(*one),
    mavlink.MAVLINK_MSG_ID_MISSION_CLEAR_ALL: lambda vehicle, *one: vehicle.mission.on_clear(*one),
    mavlink.MAVLINK_MSG_ID_SET_POSITION_TARGET_LOCAL_NED: on_set_point,
    mavlink.MAVLINK_MSG_ID_FILE_TRANSFER_PROTOCOL: _on_file_transfer,
    mavlink.MAVLINK_MSG_ID_REQUEST_DATA_STREAM: _on_request_data_stream,
    mavlink.MAVLINK_MSG_ID_SET_MODE: _on_set_mode,
    mavlink.MAVLINK_MSG_ID_RC_CHANNELS_OVERRIDE: _on_rc_override,
    mavlink.MAVLINK_MSG_ID_MANUAL_CONTROL: _on_manual_control,
    mavlink.MAVLINK_MSG_ID_COMMAND_LONG: _on_command_long,
    mavlink.MAVLINK_MSG_ID_COMMAND_INT: _on_command_int,
}

_COMMANDS: dict[int, Callable[[Autopilot, Channel, Any, float], int]] = {
    mavlink.MAV_CMD_SET_MESSAGE_INTERVAL: _do_set_message_interval,
    mavlink.MAV_CMD_GET_MESSAGE_INTERVAL: _do_get_message_interval,
    mavlink.MAV_CMD_REQUEST_MESSAGE: _do_request_message,
    mavlink.MAV_CMD_REQUEST_AUTOPILOT_CAPABILITIES: _do_request_capabilities,
    mavlink.MAV_CMD_DO_SET_MODE: _do_set_mode,
    mavlink.MAV_CMD_COMPONENT_ARM_DISARM: _do_arm_disarm,
    mavlink.MAV_CMD_NAV_TAKEOFF: _do_take_off,
    mavlink.MAV_CMD_NAV_VTOL_TAKEOFF: _do_take_off,
    mavlink.MAV_CMD_NAV_LAND: _do_land,
    mavlink.MAV_CMD_NAV_VTOL_LAND: _do_land,
    mavlink.MAV_CMD_NAV_LOITER_UNLIM: _do_loiter,
    mavlink.MAV_CMD_NAV_RETURN_TO_LAUNCH: _do_return,
    mavlink.MAV_CMD_DO_VTOL_TRANSITION: _do_vtol_transition,
    mavlink.MAV_CMD_MISSION_START: _do_mission_start,
    mavlink.MAV_CMD_PREFLIGHT_REBOOT_SHUTDOWN: _do_reboot,
    _EXTERNAL_WIND_ESTIMATE: _do_external_wind,
}
