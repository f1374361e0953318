"""How far a link has come, for those who look at it from outside."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class LinkState(enum.Enum):
    """How far the link has come."""

    CLOSED = 'closed'
    CONNECTING = 'connecting'
    NOTHING_HEARD = 'connected, nothing heard'
    NO_VEHICLE = 'connected, no vehicle yet'
    UP = 'up'
    SILENT = 'vehicle silent'


@dataclass(frozen=True)
class LinkStatus:
    """A snapshot of the link.

    Attributes
    ----------
    state : LinkState
    connection : str
    system_id, vehicle_type : int
        The vehicle (0 and -1 while there is none); ``vehicle_type`` is a MAV_TYPE.
    armed : bool
    time : float or None
        Newest vehicle time, s since its boot.
    speedup : float
        Vehicle seconds per wall second, lately; NaN while unknown.
    clock_rate : float
        SYSTEM_TIME messages per vehicle second, lately; NaN while unknown.
    frames, bad_frames : int
        Well-formed frames heard from anybody, and garbage passed over.
    connections, restarts : int
        How often the link was made, and how often the vehicle's time began anew.
    intervals : tuple of (str, int)
        Messages and their interval in force, us.
    problems : tuple of str
        What is wrong now and lasts.
    """

    state: LinkState
    connection: str
    system_id: int = 0
    vehicle_type: int = -1
    armed: bool = False
    time: float | None = None
    speedup: float = float('nan')
    clock_rate: float = float('nan')
    frames: int = 0
    bad_frames: int = 0
    connections: int = 0
    restarts: int = 0
    intervals: tuple[tuple[str, int], ...] = ()
    problems: tuple[str, ...] = ()
