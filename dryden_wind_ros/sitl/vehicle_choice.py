"""Which of those that speak on a link is the vehicle."""

from __future__ import annotations

from typing import Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink


class VehicleChoice:
    """Chooses a link's vehicle from the heartbeats heard there.

    Parameters
    ----------
    wanted : int
        MAVLink system id of the vehicle; 0: the first autopilot heard.
    """

    def __init__(self, wanted: int) -> None:
        if not 0 <= wanted <= 255:
            raise ValueError(f'system_id {wanted!r} is not within 0..255 (0: first heard)')
        self.wanted = wanted
        self._heard: dict[int, str] = {}

    def connected(self) -> None:
        """Forget who was heard on the connection before."""
        self._heard.clear()

    def takes(self, heartbeat: Any) -> bool:
        """Return whether the sender of this heartbeat is the vehicle."""
        system = heartbeat.get_srcSystem()
        autopilot = (heartbeat.autopilot != mavlink.MAV_AUTOPILOT_INVALID
                     and heartbeat.type != mavlink.MAV_TYPE_GCS
                     and heartbeat.get_srcComponent() == 1)
        if autopilot and self.wanted in (0, system):
            return True
        if heartbeat.type == mavlink.MAV_TYPE_GCS:
            name = 'a ground station'
        else:
            name = 'a vehicle' if autopilot else 'something that is no autopilot'
        self._heard[system] = name
        return False

    def explain(self) -> str:
        """Return who was heard instead of the vehicle; '' if nobody was."""
        if not self._heard:
            return ''
        others = ', '.join(f'{name} (system id {ident})'
                           for ident, name in sorted(self._heard.items()))
        asked = f'an autopilot with system id {self.wanted}' if self.wanted else 'an autopilot'
        return (f'heard {others}, but not {asked}'
                + ("; parameter 'system_id' chooses the vehicle" if self.wanted else ''))
