"""The wind that SITL really flies, followed from what was written to it.

Estimates of the wind are to be compared with the air that was flown, not with the wind that was
asked for: SITL smooths it (SIM_WIND_TC), shapes it with height (SIM_WIND_T) and starts calm after a
boot.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from dryden_wind_ros.gusts.sitl_wind import CALM_AFTER_BOOT, SitlWindFilter, sitl_wind_speed_at
from dryden_wind_ros.sitl.parameters import (
    DIRECTION,
    DIRECTION_Z,
    PROFILE,
    PROFILE_COEFFICIENT,
    PROFILE_HEIGHT,
    SPEED,
    TIME_CONSTANT,
)

#: SITL's own defaults, for what was not read.
_DEFAULTS = {SPEED: 0.0, DIRECTION: 180.0, DIRECTION_Z: 0.0, TIME_CONSTANT: 5.0, PROFILE: 0.0,
             PROFILE_HEIGHT: 60.0, PROFILE_COEFFICIENT: 0.01}


class FlownWind:
    """SITL's wind at the vehicle, without its own turbulence.

    Feed `set` with every SIM_WIND_* value read or written, `advance` with the vehicle's time.
    Versions without SIM_WIND_TC behave as if it were 5 here; they jump in truth.
    """

    def __init__(self) -> None:
        self._values = dict(_DEFAULTS)
        self._filter = SitlWindFilter(self._values[TIME_CONSTANT])
        self._time: float | None = None

    def restart(self) -> None:
        """Begin as SITL does at boot: calm."""
        self._filter = SitlWindFilter(self._values[TIME_CONSTANT])
        self._time = None

    def set(self, name: str, value: float) -> None:
        """Take a value that is in force from now on; other names are ignored."""
        if name not in self._values or not math.isfinite(value):
            return
        self._values[name] = value
        if name == TIME_CONSTANT:
            self._filter.time_constant_parameter = value

    def update(self, values: Iterable[tuple[str, float]]) -> None:
        """Take several values."""
        for name, value in values:
            self.set(name, value)

    def advance(self, time: float) -> None:
        """Go on to vehicle time `time` (s since boot) with the values in force."""
        values = self._values
        if self._time is None:
            # Attached late: the filter has long settled.
            dt = 1000.0 if time > 2 * CALM_AFTER_BOOT else max(0.0, time - CALM_AFTER_BOOT)
        else:
            dt = time - max(self._time, CALM_AFTER_BOOT)
        self._time = time
        if time < CALM_AFTER_BOOT or dt <= 0.0:
            return
        self._filter.step(dt, values[SPEED], values[DIRECTION], values[DIRECTION_Z])

    def at(self, height: float) -> tuple[float, float, float]:
        """Return the wind at `height` (m above the ground): east, north, up, m/s."""
        east, north, up = self._filter.vector()
        if self._filter.speed <= 0.0 or not math.isfinite(height):
            return east, north, up
        factor = sitl_wind_speed_at(
            height, self._filter.speed, int(self._values[PROFILE]), self._values[PROFILE_HEIGHT],
            self._values[PROFILE_COEFFICIENT]) / self._filter.speed
        return east * factor, north * factor, up * factor
