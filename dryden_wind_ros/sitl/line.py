"""The line to a vehicle: a port that is opened again until it is there, and our frames on it."""

from __future__ import annotations

from typing import Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.sitl.connection import ConnectionTarget
from dryden_wind_ros.sitl.events import Level, Notices
from dryden_wind_ros.sitl.link_help import lost_hint
from dryden_wind_ros.sitl.ports import LinkLost, LookingUp, Port, open_port

_FIRST_PAUSE_S, _PAUSE_FACTOR, _LONGEST_PAUSE_S = 0.1, 1.6, 5.0


def validate_source_system(source_system: int) -> int:
    """Return `source_system` if we may use it as our own MAVLink system id.

    Raises
    ------
    ValueError
        If it is not within 1..254. 255 is the ground station's: our heartbeat would hide from the
        vehicle that its ground station is gone.
    """
    if source_system == 255:
        raise ValueError(
            "source_system 255 is the ground station's: a heartbeat from it would mask the "
            "vehicle's GCS failsafe; allowed are 1..254")
    if isinstance(source_system, bool) or not isinstance(source_system, int) \
            or not 1 <= source_system <= 254:
        raise ValueError(f'source_system {source_system!r} is not a whole number from 1 to 254')
    return source_system


class Line:
    """Connects, goes on connecting with growing pauses, and packs and sends messages.

    Parameters
    ----------
    target : ConnectionTarget
    source_system : int
        Our own system id.
    notices : Notices
        For what a user should read.

    Attributes
    ----------
    port : Port or None
        None while there is none.
    connected : bool
        Whether frames can come and go.
    connections : int
        How often it was connected.

    Raises
    ------
    ValueError
        If `source_system` is not allowed; see `validate_source_system`.
    """

    def __init__(self, target: ConnectionTarget, source_system: int, notices: Notices) -> None:
        self.target = target
        self.port: Port | None = None
        self.connected = False
        self.connections = 0
        self._notices = notices
        self._codec = mavlink.MAVLink(
            None, validate_source_system(source_system), mavlink.MAV_COMP_ID_ONBOARD_COMPUTER)
        self._pause = _FIRST_PAUSE_S
        self._next_attempt = 0.0

    @property
    def source_system(self) -> int:
        """Our own system id."""
        return int(self._codec.srcSystem)

    def fileno(self) -> int:
        """Return the file descriptor to wait on, -1 while there is none."""
        return self.port.fileno() if self.port is not None else -1

    def wants_write(self) -> bool:
        """Return whether a connection is being made, or the end of a frame waits."""
        if self.port is None:
            return False
        return self.port.unsent if self.connected else not self.target.listens

    def connect(self, now: float) -> bool:
        """Go on connecting at steady time `now`; return whether that has just come to its end.

        Raises
        ------
        LinkLost
            If it failed.
        """
        if self.port is None:
            if now < self._next_attempt:
                return False
            try:
                self.port = open_port(self.target)
            except LookingUp:
                self._next_attempt = now + _FIRST_PAUSE_S
                return False
        if self.port.connecting():
            if self.target.listens and 'connect' not in self._notices:
                self._notices.problem('connect', Level.INFO, 'waiting for a vehicle to connect')
            return False
        self.connected = True
        self.connections += 1
        self._notices.solved('connect')
        self._notices.tell(Level.INFO, {
            'udpin': 'listening', 'udpout': 'opened', 'serial': 'opened'}.get(
                self.target.kind, 'connected'))
        return True

    def flush(self) -> None:
        """Send what waits; see `Port.flush`."""
        if self.port is not None:
            self.port.flush()

    def found(self, sender: Any) -> None:
        """Take it that a vehicle is there; on a port that listens, it is answered at `sender`."""
        self._pause = _FIRST_PAUSE_S
        if sender is not None and self.target.listens:
            self.port.peer = sender  # type: ignore[union-attr]

    def lose(self, why: str, now: float, had_vehicle: bool) -> bool:
        """Close a port that failed, to be opened again; return whether it was connected."""
        self._close_port()
        was_connected, self.connected = self.connected, False
        if was_connected and had_vehicle:
            self._pause = _FIRST_PAUSE_S
        self._next_attempt = now + self._pause
        self._pause = min(self._pause * _PAUSE_FACTOR, _LONGEST_PAUSE_S)
        if was_connected:
            text = f'connection lost ({why}); connecting again until it is back'
        else:
            text = f'{why}. {lost_hint(self.target, why)}'
        self._notices.problem('connect', Level.WARN, text)
        return was_connected

    def close(self) -> None:
        """Close the port for good."""
        self._close_port()
        self.connected = False

    def _close_port(self) -> None:
        if self.port is not None:
            self.port.close()
            self.port = None

    def send(self, *messages: Any) -> bool:
        """Send messages together; return whether they went out. Never waits, never raises."""
        if self.port is None or not self.connected:
            return False
        codec = self._codec
        number = codec.seq
        frames = []
        for message in messages:
            frames.append(message.pack(codec))
            codec.seq = (codec.seq + 1) % 256
        try:
            if not self.port.send(b''.join(frames)):
                codec.seq = number
                return False
        except LinkLost as lost:
            # Called from a message handler, maybe: the port is closed by the next poll.
            self._notices.tell(Level.WARN, str(lost))
            return False
        return True
