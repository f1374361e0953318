"""What is said of EKF3's wind: its phase, the estimate, and how far off it is.

The values of :class:`WindPhase` and the fields of :class:`EkfWindState` are those of
dryden_wind_interfaces/EkfWind.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from dryden_wind_ros.gusts.frames import CALM

ARDUPILOT = 3
"""HEARTBEAT.autopilot of ArduPilot."""

NO_VEHICLE = frozenset((5, 6, 18, 26, 27, 30, 31, 32, 33, 34, 36, 37, 38, 39, 40, 41, 42))
"""HEARTBEAT.type of what flies nothing, though it may call itself an ArduPilot: antenna tracker,
ground station, onboard controller, gimbal, transponder, camera and what else hangs on a link."""


class WindPhase(enum.IntEnum):
    """Phase of EKF3's wind estimate; the values are those of dryden_wind_interfaces/EkfWind."""

    UNKNOWN = 0
    NOT_ESTIMATED = 1
    GROUND = 2
    INHIBITED = 3
    INIT = 4
    LEARNING = 5
    COAST = 6
    RELEARN = 7


_ANY = frozenset(WindPhase)
_P = WindPhase

ALLOWED_TRANSITIONS: Mapping[WindPhase, frozenset[WindPhase]] = MappingProxyType({
    _P.UNKNOWN: _ANY,
    _P.NOT_ESTIMATED: _ANY,
    _P.GROUND: frozenset((_P.UNKNOWN, _P.NOT_ESTIMATED, _P.INHIBITED, _P.INIT, _P.COAST)),
    _P.INHIBITED: frozenset((_P.UNKNOWN, _P.NOT_ESTIMATED, _P.GROUND, _P.INIT, _P.COAST)),
    _P.INIT: frozenset((_P.UNKNOWN, _P.NOT_ESTIMATED, _P.GROUND, _P.INHIBITED, _P.LEARNING,
                        _P.COAST)),
    _P.LEARNING: frozenset((_P.UNKNOWN, _P.NOT_ESTIMATED, _P.GROUND, _P.INHIBITED, _P.COAST)),
    _P.COAST: frozenset((_P.UNKNOWN, _P.NOT_ESTIMATED, _P.GROUND, _P.INHIBITED, _P.RELEARN)),
    _P.RELEARN: frozenset((_P.UNKNOWN, _P.NOT_ESTIMATED, _P.GROUND, _P.INHIBITED, _P.LEARNING,
                           _P.COAST)),
})
"""Which phase may follow which. UNKNOWN (restart, silence) may follow and be followed by all."""


@dataclass(frozen=True)
class EkfWindState:
    """EKF3's wind at one moment: dryden_wind_interfaces/EkfWind without what was really flown.

    Attributes
    ----------
    phase : WindPhase
        Phase of the estimate's life.
    since : float
        Vehicle time at which the phase began, s since boot.
    settled : bool
        The estimate may be believed: not in its first seconds, not while relearning or frozen,
        and not while it is far from the wind flown, where that is known.
    aiding_lost : bool
        No sample of position or velocity was accepted lately.
    reason : str
        Why this phase, in a few plain words; and why an estimate that learns is not settled.
    wind_n, wind_e : float
        Estimate, the velocity of the air towards north and east, m/s; NaN where there is none.
    speed : float
        Horizontal speed of the estimate, m/s; NaN where there is none.
    from_deg : float
        Where the estimated wind comes from, degrees true, [0, 360); NaN where there is none.
    t : float
        Vehicle time of the newest message used, s since boot.
    steady : bool
        The estimate stands as still as a settled one does, wherever the wind flown is.
    settles_in : float
        How long it will be until the estimate is settled, s; NaN where that cannot be said.
    """

    phase: WindPhase
    since: float
    settled: bool
    aiding_lost: bool
    reason: str
    wind_n: float
    wind_e: float
    speed: float
    from_deg: float
    t: float
    steady: bool = False
    settles_in: float = math.nan

    @property
    def phase_name(self) -> str:
        """Name of the phase in lower case, e.g. ``'learning'``."""
        return self.phase.name.lower()


def wind_error(wind_n: float, wind_e: float, flown_n: float,
               flown_e: float) -> tuple[float, float]:
    """Return how far an estimate is from the wind flown, as EkfWind has it.

    Parameters
    ----------
    wind_n, wind_e : float
        Estimate, the velocity of the air towards north and east, m/s.
    flown_n, flown_e : float
        Wind flown, the same way.

    Returns
    -------
    tuple of float
        Length of the difference, m/s, and direction of the estimate minus that of the wind flown,
        degrees, (-180, 180]. NaN where a number is missing, and for the direction in a calm.
    """
    speed = math.hypot(wind_n - flown_n, wind_e - flown_e)
    if not math.isfinite(speed):
        return math.nan, math.nan
    if math.hypot(wind_n, wind_e) < CALM or math.hypot(flown_n, flown_e) < CALM:
        return speed, math.nan
    # Both "from" angles are half a turn off these, so the difference is the same.
    turn = math.degrees(math.atan2(wind_e, wind_n) - math.atan2(flown_e, flown_n))
    return speed, 180.0 - (180.0 - turn) % 360.0
