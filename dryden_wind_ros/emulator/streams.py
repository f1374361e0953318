"""Which messages come in which of ArduPilot's streams, as REQUEST_DATA_STREAM sets them."""

from __future__ import annotations

from pymavlink.dialects.v20 import ardupilotmega as mavlink

STREAMS: dict[int, tuple[int, ...]] = {
    mavlink.MAV_DATA_STREAM_RAW_SENSORS: (),
    mavlink.MAV_DATA_STREAM_EXTENDED_STATUS: (
        mavlink.MAVLINK_MSG_ID_SYS_STATUS, mavlink.MAVLINK_MSG_ID_GPS_RAW_INT,
        mavlink.MAVLINK_MSG_ID_MISSION_CURRENT),
    mavlink.MAV_DATA_STREAM_POSITION: (
        mavlink.MAVLINK_MSG_ID_GLOBAL_POSITION_INT, mavlink.MAVLINK_MSG_ID_LOCAL_POSITION_NED),
    mavlink.MAV_DATA_STREAM_EXTRA1: (mavlink.MAVLINK_MSG_ID_ATTITUDE,),
    mavlink.MAV_DATA_STREAM_EXTRA2: (mavlink.MAVLINK_MSG_ID_VFR_HUD,),
    mavlink.MAV_DATA_STREAM_EXTRA3: (
        mavlink.MAVLINK_MSG_ID_SYSTEM_TIME, mavlink.MAVLINK_MSG_ID_WIND,
        mavlink.MAVLINK_MSG_ID_EKF_STATUS_REPORT),
}

DEFAULT_INTERVAL_US = 1_000_000
DEFAULT_MESSAGES: frozenset[int] = frozenset((
    mavlink.MAVLINK_MSG_ID_HEARTBEAT, mavlink.MAVLINK_MSG_ID_GPS_GLOBAL_ORIGIN,
    *(message_id for ids in STREAMS.values() for message_id in ids)))
"""What is sent at DEFAULT_INTERVAL_US unless somebody asks otherwise."""
