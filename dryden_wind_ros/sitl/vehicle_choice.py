"""Which of those that speak on a link is the vehicle."""

from __future__ import annotations

from typing import Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink

_AUTOPILOT = mavlink.MAV_COMP_ID_AUTOPILOT1
#: What an ArduPilot can be that has air or water around it, by MAV_TYPE: generic, plane, rotors,
#: airship, balloon, rocket, rover, boat, submarine, wings that flap, kite, VTOLs, parafoil. Not an
#: antenna tracker, which runs ArduPilot too.
_VEHICLES = frozenset((
    mavlink.MAV_TYPE_GENERIC, mavlink.MAV_TYPE_FIXED_WING, mavlink.MAV_TYPE_QUADROTOR,
    mavlink.MAV_TYPE_COAXIAL, mavlink.MAV_TYPE_HELICOPTER, mavlink.MAV_TYPE_AIRSHIP,
    mavlink.MAV_TYPE_FREE_BALLOON, mavlink.MAV_TYPE_ROCKET, mavlink.MAV_TYPE_GROUND_ROVER,
    mavlink.MAV_TYPE_SURFACE_BOAT, mavlink.MAV_TYPE_SUBMARINE, mavlink.MAV_TYPE_HEXAROTOR,
    mavlink.MAV_TYPE_OCTOROTOR, mavlink.MAV_TYPE_TRICOPTER, mavlink.MAV_TYPE_FLAPPING_WING,
    mavlink.MAV_TYPE_KITE, *range(19, 26), 28, 29, 35, 43, 47))
_OTHER_AFTER_S = 3.0


def describe(heartbeat: Any) -> str:
    """Return in the user's words who sent a HEARTBEAT; '' for an ArduPilot vehicle."""
    if heartbeat.type == mavlink.MAV_TYPE_GCS:
        return 'a ground station'
    if heartbeat.type == mavlink.MAV_TYPE_ANTENNA_TRACKER:
        return 'an antenna tracker'
    if heartbeat.autopilot == mavlink.MAV_AUTOPILOT_INVALID \
            or heartbeat.get_srcComponent() != _AUTOPILOT or heartbeat.type not in _VEHICLES:
        return 'something that is no autopilot'
    if heartbeat.autopilot != mavlink.MAV_AUTOPILOT_ARDUPILOTMEGA:
        name = {mavlink.MAV_AUTOPILOT_PX4: ' (PX4)'}.get(heartbeat.autopilot, '')
        return f'an autopilot that is not ArduPilot{name}'
    return ''


class VehicleChoice:
    """Chooses a link's vehicle from the heartbeats heard there, and stays with it.

    Parameters
    ----------
    wanted : int
        MAVLink system id of the vehicle; 0: the first ArduPilot heard.
    """

    def __init__(self, wanted: int) -> None:
        if not 0 <= wanted <= 255:
            raise ValueError(f'system_id {wanted!r} is not within 0..255 (0: first heard)')
        self.wanted = wanted
        #: The first vehicle taken where none was asked for; 0 before.
        self.first = 0
        self._connected_at = 0.0
        self._heard: dict[int, str] = {}

    def connected(self, now: float) -> None:
        """Forget who was heard on the connection before."""
        self._heard.clear()
        self._connected_at = now

    def takes(self, heartbeat: Any, now: float) -> bool:
        """Return whether the sender of this heartbeat is the vehicle.

        Where any vehicle will do, the first stays the one: it still has our wind. On a new
        connection another one is taken when the first is not heard for a while.
        """
        system = heartbeat.get_srcSystem()
        other = describe(heartbeat)
        if not other:
            if self.wanted:
                taken = system == self.wanted
            else:
                taken = self.first in (0, system) or now - self._connected_at > _OTHER_AFTER_S
            if taken:
                self.first = system
                return True
        if not other or system not in self._heard:
            self._heard[system] = other or 'a vehicle'
        return False

    def explain(self) -> str:
        """Return who was heard instead of the vehicle; '' if nobody was."""
        if not self._heard:
            return ''
        others = ', '.join(f'{name} (system id {ident})'
                           for ident, name in sorted(self._heard.items()))
        if self.wanted:
            return (f'heard {others}, but not an autopilot with system id {self.wanted}; parameter '
                    "'system_id' chooses the vehicle")
        if self.first:
            return (f'heard {others}, but not system id {self.first}, the vehicle of this link; '
                    "for another one set parameter 'system_id', or start again")
        return f'heard {others}, but not an ArduPilot vehicle'
