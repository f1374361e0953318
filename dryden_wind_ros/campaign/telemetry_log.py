"""The telemetry log of a flight, as ground stations write it: `flight.tlog` in its folder.

Eight bytes of time in microseconds, big-endian, before each MAVLink packet. wind_report,
wind_scenario, ekf_wind_log and every ground station read it.
"""

from __future__ import annotations

from collections.abc import Mapping

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.emulator.channel import Channel

NAME = 'flight.tlog'

EPOCH_US = 1_600_000_000_000_000
"""Time of boot in the logs of embedded flights: they have no wall clock."""

INTERVALS: Mapping[int, int] = {
    mavlink.MAVLINK_MSG_ID_SYSTEM_TIME: 50_000,
    mavlink.MAVLINK_MSG_ID_ATTITUDE: 50_000,
    mavlink.MAVLINK_MSG_ID_SIM_STATE: 50_000,
    mavlink.MAVLINK_MSG_ID_LOCAL_POSITION_NED: 100_000,
    mavlink.MAVLINK_MSG_ID_GLOBAL_POSITION_INT: 200_000,
    mavlink.MAVLINK_MSG_ID_EKF_STATUS_REPORT: 100_000,
    mavlink.MAVLINK_MSG_ID_VFR_HUD: 100_000,
    mavlink.MAVLINK_MSG_ID_WIND: 200_000,
    mavlink.MAVLINK_MSG_ID_EXTENDED_SYS_STATE: 200_000,
    mavlink.MAVLINK_MSG_ID_GPS_RAW_INT: 500_000,
}
"""What an embedded vehicle is asked for, and how often, us."""


class TelemetryLog:
    """A log that is being written, in memory."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def add(self, stamp_us: int, packet: bytes) -> None:
        """Add a packet that came, or went, at a time since 1970."""
        self._parts += (stamp_us.to_bytes(8, 'big'), packet)

    def listen(self, channel: Channel) -> None:
        """Join a channel of an embedded vehicle, and ask for what a log is to hold."""
        channel.connected = True
        channel.list_position = 0
        for number, interval in INTERVALS.items():
            channel.set_interval(number, interval, 0)

    def take(self, channel: Channel, t_us: int) -> None:
        """Add what an embedded vehicle has to say at a time since its boot."""
        for packet in channel.take_datagrams(0):
            self.add(EPOCH_US + t_us, packet)

    @property
    def content(self) -> bytes:
        """What the file is to hold."""
        return b''.join(self._parts)
