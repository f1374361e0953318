"""The wind that SITL really flies, followed from the values that SIM_WIND_* take.

Estimates of the wind are to be compared with the air that was flown, not with the wind that was
asked for: SITL smooths it (SIM_WIND_TC), shapes it with height (SIM_WIND_T) and is calm for 5 s
after a boot. Live the values are those read and written, in logs those recorded.
"""

from __future__ import annotations

import math

from dryden_wind_ros.gusts.sitl_wind import (
    CALM_AFTER_BOOT,
    SitlWindFilter,
    sitl_wind_enu,
    sitl_wind_speed_at,
)

#: SITL's own defaults, for what was not heard.
_DEFAULTS = {'SIM_WIND_SPD': 0.0, 'SIM_WIND_DIR': 180.0, 'SIM_WIND_DIR_Z': 0.0, 'SIM_WIND_TC': 5.0,
             'SIM_WIND_T': 0.0, 'SIM_WIND_T_ALT': 60.0, 'SIM_WIND_T_COEF': 0.01,
             'SIM_WIND_TURB': 0.0}
#: Vehicle time by which the wind set at boot has come through the filter, s.
_SETTLED_AT = 2 * CALM_AFTER_BOOT
_LONG = 1000.0


class FlownWind:
    """SITL's wind at the vehicle, without its own turbulence.

    A vehicle that is met later than 10 s after its boot has flown for long what it tells first.
    Versions without SIM_WIND_TC behave as if it were 5 here; they jump in truth.

    Examples
    --------
    >>> wind = FlownWind()
    >>> for name, value in (('SIM_WIND_T', 1.0), ('SIM_WIND_SPD', 8.0), ('SIM_WIND_DIR', 270.0)):
    ...     wind.set(name, value, 100.0)
    >>> [round(component, 6) for component in wind.at(10.0)]
    [8.0, 0.0, 0.0]
    """

    NAMES = frozenset(_DEFAULTS)

    def __init__(self) -> None:
        self._values = dict(_DEFAULTS)
        self._heard: set[str] = set()
        self._filter = SitlWindFilter(self._values['SIM_WIND_TC'])
        self._time: float | None = None

    @property
    def known(self) -> bool:
        """Whether SIM_WIND_SPD was heard, so that there is a wind to follow."""
        return 'SIM_WIND_SPD' in self._heard

    @property
    def notes(self) -> tuple[str, ...]:
        """What cannot be followed of this wind."""
        turbulence = self._values['SIM_WIND_TURB']
        if turbulence:
            return (f'SIM_WIND_TURB {turbulence:g}: the turbulence of SITL itself is random and '
                    'not part of the wind flown shown here',)
        return ()

    def restart(self) -> None:
        """Begin as SITL does at boot: calm. The values stay, they are in its eeprom."""
        self._filter = SitlWindFilter(self._values['SIM_WIND_TC'])
        self._time = None

    def set(self, name: str, value: float, time: float | None = None) -> None:
        """Take a value that is in force from a time on.

        Parameters
        ----------
        name : str
            Parameter; other names than `NAMES` are passed over.
        value : float
            Its value; NaN and infinity are passed over.
        time : float, optional
            Vehicle time, s since boot; by default the newest time that is known.
        """
        if name not in self._values or not math.isfinite(value):
            return
        if time is not None:
            self.advance(time)
        self._values[name] = float(value)
        if name == 'SIM_WIND_TC':
            self._filter.time_constant_parameter = value
        if name not in self._heard:
            self._heard.add(name)
            if self._time is not None and self._time > _SETTLED_AT:
                self._step(_LONG)

    def advance(self, time: float) -> None:
        """Go on to vehicle time `time` (s since boot) with the values in force."""
        if self._time is None:
            dt = _LONG if time > _SETTLED_AT else time - CALM_AFTER_BOOT
        else:
            dt = time - max(self._time, CALM_AFTER_BOOT)
            if time < self._time:
                return
        self._time = time
        if dt > 0.0:
            self._step(dt)

    def _step(self, dt: float) -> None:
        values = self._values
        self._filter.step(
            dt, values['SIM_WIND_SPD'], values['SIM_WIND_DIR'], values['SIM_WIND_DIR_Z'])

    def at(self, height: float = math.nan) -> tuple[float, float, float]:
        """Return the wind flown at the newest time.

        Parameters
        ----------
        height : float
            Height above the ground, m; needed unless SIM_WIND_T is 1.

        Returns
        -------
        tuple of float
            East, north, up, the way the air moves, m/s; NaN where it is not known.
        """
        if not self.known:
            return math.nan, math.nan, math.nan
        if self._time is not None and self._time < CALM_AFTER_BOOT:
            return 0.0, 0.0, 0.0
        values = self._values
        if values['SIM_WIND_T'] in (0.0, 2.0) and not math.isfinite(height):
            return math.nan, math.nan, math.nan
        speed = sitl_wind_speed_at(
            height, self._filter.speed, int(values['SIM_WIND_T']), values['SIM_WIND_T_ALT'],
            values['SIM_WIND_T_COEF'])
        return sitl_wind_enu(speed, self._filter.direction, self._filter.direction_z)
