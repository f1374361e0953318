"""The frame that positions are given in: where on the Earth its zero is.

Vehicles that fly in one air have to be in one frame. Its zero is what the user says, or the origin
of EKF3: of the vehicle, or in a fleet of the first one whose origin is heard. Until then it is the
first place heard.

Distances are ArduPilot's own (``Location``): 0.0111319 m for 1e-7 degrees of latitude, times the
cosine of the mean latitude for longitude. So true places and those of EKF3 agree.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass

METRES_PER_1E7_DEGREES = 0.011131884502145034

_LOWEST_M, _HIGHEST_M = -1000.0, 20_000.0


@dataclass(frozen=True)
class Origin:
    """A place on the Earth.

    Attributes
    ----------
    latitude, longitude : int
        1e-7 degrees.
    altitude : float
        Above mean sea level, m; NaN where heights count from each vehicle's home.
    """

    latitude: int
    longitude: int
    altitude: float = math.nan

    @property
    def degrees(self) -> tuple[float, float, float]:
        """Latitude and longitude, degrees, and altitude, m."""
        return self.latitude * 1e-7, self.longitude * 1e-7, self.altitude


def parse_origin(text: str) -> Origin | None:
    """Return the origin that a text such as ``-35.363262, 149.165237, 584`` names; '': None.

    Raises
    ------
    ValueError
        If it is not three numbers, or not on the Earth.
    """
    if not text.strip():
        return None
    try:
        latitude, longitude, altitude = (float(part) for part in text.split(','))
    except ValueError:
        raise ValueError(
            f'origin is {text!r}; it must be latitude, longitude (degrees) and altitude (m above '
            "mean sea level), such as '-35.363262, 149.165237, 584', or ''") from None
    for name, value, low, high, unit in (
            ('latitude', latitude, -90.0, 90.0, 'deg'),
            ('longitude', longitude, -180.0, 180.0, 'deg'),
            ('altitude', altitude, _LOWEST_M, _HIGHEST_M, 'm')):
        if not low <= value <= high:
            raise ValueError(f'origin has the {name} {value:g} {unit}; it must be from {low:g} to '
                             f'{high:g} {unit}')
    return Origin(round(latitude * 1e7), round(longitude * 1e7), altitude)


class Frame:
    """An ENU frame.

    Parameters
    ----------
    given : Origin, optional
        Where its zero is; without it, that is found out.
    shared : bool, optional
        Whether several vehicles use it: then it outlives their restarts.
    follows : bool, optional
        Whether its zero is that of another process, told by `adopt`, whatever vehicles say here.
    """

    def __init__(self, given: Origin | None = None, shared: bool = False,
                 follows: bool = False) -> None:
        self.given = given
        self.shared = shared
        self.follows = follows
        self._lock = threading.Lock()
        self._origin = given
        self._sure = given is not None

    @property
    def origin(self) -> Origin | None:
        """Where its zero is; None while that is not known for good."""
        return self._origin if self._sure else None

    @property
    def common(self) -> bool:
        """Whether its zero need not be that of a vehicle's own EKF3."""
        return self.shared or self.given is not None

    def restarted(self) -> None:
        """Forget what a vehicle said, if it is the only one."""
        if not self.common:
            self._origin, self._sure = None, False

    def place_heard(self, latitude: int, longitude: int) -> None:
        """Take the first place heard for the zero for now."""
        with self._lock:
            if self._origin is None and not self.follows:
                self._origin = Origin(latitude, longitude)

    def origin_heard(self, latitude: int, longitude: int) -> None:
        """Take the origin of a vehicle's EKF3 for the zero, if it is the first."""
        with self._lock:
            if not self._sure and not self.follows:
                self._origin, self._sure = Origin(latitude, longitude), True

    def adopt(self, latitude: int, longitude: int) -> None:
        """Take the zero that another process of the fleet uses."""
        with self._lock:
            if self.given is None:
                self._origin, self._sure = Origin(latitude, longitude), True

    def east_north(self, latitude: int, longitude: int) -> tuple[float, float]:
        """Return a place (1e-7 degrees) in the frame, m; (0, 0) while there is none."""
        origin = self._origin
        if origin is None:
            return 0.0, 0.0
        mean = 0.5e-7 * (latitude + origin.latitude)
        turn = (longitude - origin.longitude + 1_800_000_000) % 3_600_000_000 - 1_800_000_000
        return (turn * METRES_PER_1E7_DEGREES * max(math.cos(math.radians(mean)), 0.01),
                (latitude - origin.latitude) * METRES_PER_1E7_DEGREES)
