"""MAVLink messages as tuples, for those that come and go hundreds of times a second.

pymavlink makes an object of sixteen attributes of every message, which takes longer than all that
is done with it here: of a fleet's CPU time it was a sixth, of the embedded vehicles' a fifth. A
message of `KINDS` is a named tuple instead. It has the fields and the methods of pymavlink's own
that are used in this package, so that nobody who reads one need know which it is::

    SYSTEM_TIME.of(1767225600000000, 1250).pack(codec)       # fields in the order of the wire
    message.get_type(), message.time_boot_ms

Formats and checksums are pymavlink's.
"""

from __future__ import annotations

import struct
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink

V1, V2 = 0xFE, 0xFD

HEADER_V2 = struct.Struct('<BBBBBBBHB')
"""Marker, length, two kinds of flags, number, system, component, id (low 16 bits, high 8)."""

_CHECKSUM = struct.Struct('<H')


def _slow_checksum(data: bytes) -> int:
    return int(mavlink.x25crc(data).crc)


#: CRC-16/MCRF4XX; pymavlink has it in C where it can.
checksum: Callable[[bytes], int] = getattr(mavlink, 'mcrf4xx', None) or _slow_checksum

EXTRAS: dict[int, bytes] = {
    ident: bytes((kind.crc_extra,)) for ident, kind in mavlink.mavlink_map.items()}
"""What the checksum of each message covers besides its bytes."""


def frame(ident: int, payload: bytes, codec: Any) -> bytes:
    """Return a MAVLink 2 frame.

    Parameters
    ----------
    ident : int
        Message id.
    payload : bytes
        As the wire has it; zeros at its end are left out.
    codec : pymavlink MAVLink
        Whose number (``seq``), system and component it gets.
    """
    payload = payload.rstrip(b'\0') or b'\0'
    body = HEADER_V2.pack(V2, len(payload), 0, 0, codec.seq, codec.srcSystem, codec.srcComponent,
                          ident & 0xFFFF, ident >> 16) + payload
    return body + _CHECKSUM.pack(checksum(body[1:] + EXTRAS[ident]))


class Kind:
    """One kind of message.

    Parameters
    ----------
    source : type
        pymavlink's class of it; its fields are numbers, and texts.

    Attributes
    ----------
    ident : int
        Message id.
    """

    def __init__(self, source: Any) -> None:
        self.ident: int = source.id
        self._struct: struct.Struct = source.unpacker
        self._size = self._struct.size
        fields = tuple(source.ordered_fieldnames)
        #: Places of texts.
        self._texts = tuple(place for place, part in enumerate(self._struct.unpack(
            bytes(self._size))) if isinstance(part, bytes))
        named: Any = namedtuple  # which mypy wants to see spelt out
        base = named(source.msgname, (*fields, 'source_system', 'source_component'))
        message: Any = type(source.msgname, (base,), {
            '__slots__': (), 'get_msgId': lambda _, ident=source.id: ident,
            'get_type': lambda _, name=source.msgname: name,
            'get_srcSystem': lambda message: message[-2],
            'get_srcComponent': lambda message: message[-1],
            'pack': lambda message, codec: frame(self.ident, self._packed(message), codec),
        })
        self._make: Callable[[tuple[Any, ...]], Any] = message._make

    def of(self, *fields: Any) -> Any:
        """Return a message to be sent: its fields in the order of the wire, texts as str."""
        return self._make((*fields, 0, 0))

    def read(self, payload: bytes, system: int, component: int) -> Any:
        """Return the message of a payload, from which zeros at the end may be missing."""
        if len(payload) != self._size:
            payload = payload[:self._size].ljust(self._size, b'\0')
        fields = self._struct.unpack(payload)
        if self._texts:
            parts = list(fields)
            for place in self._texts:
                parts[place] = parts[place].split(b'\0', 1)[0].decode('ascii', 'replace')
            return self._make((*parts, system, component))
        return self._make((*fields, system, component))

    def _packed(self, message: Any) -> bytes:
        fields = message[:-2]
        if self._texts:
            parts = list(fields)
            for place in self._texts:
                parts[place] = parts[place].encode()
            return self._struct.pack(*parts)
        return self._struct.pack(*fields)


ATTITUDE = Kind(mavlink.MAVLink_attitude_message)
EKF_STATUS_REPORT = Kind(mavlink.MAVLink_ekf_status_report_message)
EXTENDED_SYS_STATE = Kind(mavlink.MAVLink_extended_sys_state_message)
GPS_RAW_INT = Kind(mavlink.MAVLink_gps_raw_int_message)
GLOBAL_POSITION_INT = Kind(mavlink.MAVLink_global_position_int_message)
HEARTBEAT = Kind(mavlink.MAVLink_heartbeat_message)
LOCAL_POSITION_NED = Kind(mavlink.MAVLink_local_position_ned_message)
PARAM_SET = Kind(mavlink.MAVLink_param_set_message)
PARAM_VALUE = Kind(mavlink.MAVLink_param_value_message)
SIM_STATE = Kind(mavlink.MAVLink_sim_state_message)
SYS_STATUS = Kind(mavlink.MAVLink_sys_status_message)
SYSTEM_TIME = Kind(mavlink.MAVLink_system_time_message)
VFR_HUD = Kind(mavlink.MAVLink_vfr_hud_message)
WIND = Kind(mavlink.MAVLink_wind_message)

KINDS: dict[int, Kind] = {kind.ident: kind for kind in (
    ATTITUDE, EKF_STATUS_REPORT, EXTENDED_SYS_STATE, GLOBAL_POSITION_INT, GPS_RAW_INT, HEARTBEAT,
    LOCAL_POSITION_NED, PARAM_SET, PARAM_VALUE, SIM_STATE, SYSTEM_TIME, SYS_STATUS, VFR_HUD,
    WIND)}
"""All of them, by message id."""
