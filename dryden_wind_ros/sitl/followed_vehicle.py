"""The vehicle that a link follows: who it is, where it sends from, and whether it is one."""

from __future__ import annotations

from typing import Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.sitl.events import Level, Notices
from dryden_wind_ros.sitl.framing import frame_source
from dryden_wind_ros.sitl.vehicle_choice import VehicleChoice

_ONE_VEHICLE_AGAIN_S = 5.0


class FollowedVehicle:
    """Takes the vehicle from the heartbeats of a link, and knows it again.

    Parameters
    ----------
    wanted : int
        MAVLink system id of the vehicle; 0: the first ArduPilot heard.
    notices : Notices
        For what a user should read.

    Attributes
    ----------
    system, component : int
        Its MAVLink ids; `system` is 0 while there is none.
    type : int
        A MAV_TYPE, -1 before it is known.
    armed : bool
        Whether it said so in its last heartbeat.
    choice : VehicleChoice
        Who else was heard.
    """

    def __init__(self, wanted: int, notices: Notices) -> None:
        self.choice = VehicleChoice(wanted)
        self.system = 0
        self.component = 1
        self.type = -1
        self.armed = False
        self._notices = notices
        #: Where its datagrams come from; None on a stream, and before there is a vehicle.
        self._sender: Any = None
        self._two_heard_at = float('-inf')

    @property
    def ambiguous(self) -> bool:
        """Whether two vehicles seem to answer with the same system id."""
        return 'ambiguous' in self._notices

    def connected(self, now: float) -> None:
        """Begin with a new connection: whoever was there is gone."""
        self.forget()
        self.choice.connected(now)

    def forget(self) -> None:
        """Follow nobody any more."""
        self.system = 0
        self._sender = None

    def lost(self) -> bool:
        """Follow nobody any more, as the connection is gone; return whether there was a vehicle."""
        had, self.system = self.system != 0, 0
        return had

    def heartbeat(self, message: Any, sender: Any, now: float) -> tuple[bool, bool]:
        """Take a HEARTBEAT; return whether it is the vehicle's, and whether that is found by it."""
        system, component = message.get_srcSystem(), message.get_srcComponent()
        found = not self.system
        if found:
            if not self.choice.takes(message, now):
                return False, False
            self.system, self.component, self._sender = system, component, sender
        elif system != self.system or component != self.component:
            return False, False
        self.armed = bool(message.base_mode & mavlink.MAV_MODE_FLAG_SAFETY_ARMED)
        self.type = message.type
        return True, found

    # -- who sends: told apart only once there is a vehicle

    def sends_from(self, sender: Any) -> bool:
        """Return whether a datagram from `sender` may be the vehicle's."""
        return sender is None or self._sender is None or sender == self._sender

    def began(self, data: bytes) -> bool:
        """Return whether `data` begins with a frame of its ids."""
        return frame_source(data) == (self.system, self.component)

    def tell_stranger(self, sender: Any) -> None:
        """Say that somebody else sends here too."""
        if 'another sender' not in self._notices:
            self._notices.problem(
                'another sender', Level.WARN,
                f'{sender[0]}:{sender[1]} sends here too; only {self._sender[0]}:{self._sender[1]} '
                'is listened to. Give each vehicle its own port')

    # -- two vehicles with one id

    def two_heard(self, why: str, now: float) -> None:
        """Take it that two vehicles answer with its system id."""
        self._two_heard_at = now
        if not self.ambiguous:
            self._notices.problem(
                'ambiguous', Level.ERROR,
                f'two vehicles seem to answer with system id {self.system} ({why}), so no wind is '
                'written; give each its own --sysid, or its own connection')

    def one_again(self, now: float) -> bool:
        """Return whether two were heard and, for a while now, only one is; say so, once."""
        if not self.ambiguous or now - self._two_heard_at <= _ONE_VEHICLE_AGAIN_S:
            return False
        self._notices.solved('ambiguous')
        self._notices.tell(Level.INFO, 'one vehicle is heard again')
        return True
