"""The parameters of a vehicle that decide how EKF3 estimates wind."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

PARAMETERS = frozenset((
    'AHRS_EKF_TYPE', 'EK3_ENABLE', 'EK3_DRAG_BCOEF_X', 'EK3_DRAG_BCOEF_Y', 'EK3_DRAG_MCOEF',
    'ARSPD_TYPE', 'ARSPD_USE', 'EK3_EAS_M_NSE', 'EK3_WIND_P_NSE',
))
"""The parameters that the monitor makes use of; it works without any."""

# After a step of the wind the error falls as exp(-t / T). T is the inverse of the square root of
# process noise times information, so it goes with 1 / EK3_WIND_P_NSE. Measured at the defaults:
_CLOSING_PLANE = 55.0 * 0.1    # s times EK3_WIND_P_NSE, loitering with and without airspeed
_CLOSING_COPTER = 25.0 * 0.2   # s times EK3_WIND_P_NSE, drag fusion


class EkfParameters:
    """What is known of :data:`PARAMETERS`, and what follows from it.

    Attributes
    ----------
    drag : bool or None
        Drag fusion is on; None while that is not known.
    sensor : bool or None
        An airspeed sensor is used; None while that is not known.
    airspeed_noise : float
        Variance of the airspeed measurement, (m/s)^2.
    closing_plane, closing_copter : float
        Within which the error of the estimate goes down to a third after a step of the wind, s.
    """

    __slots__ = ('_values', 'airspeed_noise', 'closing_copter', 'closing_plane', 'drag', 'sensor')

    def __init__(self) -> None:
        self._values: dict[str, float] = {}
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._values.clear()
        self.drag: bool | None = None
        self.sensor: bool | None = None
        self._set_noises()

    @property
    def values(self) -> Mapping[str, float]:
        """Those known, by name."""
        return MappingProxyType(self._values)

    def set(self, name: str, value: float) -> None:
        """Take the value of one parameter; names that do not matter are passed over."""
        if name not in PARAMETERS or not math.isfinite(value):
            return
        values = self._values
        values[name] = float(value)
        if name.startswith('EK3_DRAG'):
            # EKF3's own test for whether drag fusion is on.
            x, y = values.get('EK3_DRAG_BCOEF_X'), values.get('EK3_DRAG_BCOEF_Y')
            momentum = values.get('EK3_DRAG_MCOEF')
            if (x or 0.0) > 1.0 or (y or 0.0) > 1.0 or (momentum or 0.0) > 0.001:
                self.drag = True
            elif x is not None and y is not None and momentum is not None:
                self.drag = False
        elif name.startswith('ARSPD'):
            kind, use = values.get('ARSPD_TYPE'), values.get('ARSPD_USE')
            if kind == 0.0 or use == 0.0:
                self.sensor = False
            elif kind is not None and use is not None:
                self.sensor = use == 1.0 or None  # 2: only at zero throttle, so look and see
        elif name.endswith('_NSE'):
            self._set_noises()

    def _set_noises(self) -> None:
        values = self._values
        self.airspeed_noise = min(max(values.get('EK3_EAS_M_NSE', 1.4), 0.5), 5.0) ** 2
        plane, copter = (min(max(values.get('EK3_WIND_P_NSE', default), 1e-3), 1.0)
                         for default in (0.1, 0.2))
        self.closing_plane = _CLOSING_PLANE / plane
        self.closing_copter = _CLOSING_COPTER / copter

    def why_not_in_use(self) -> str:
        """Say why EKF3 does not fly the vehicle; empty if it does, as far as is known."""
        if self._values.get('EK3_ENABLE') == 0.0:
            return 'EKF3 is switched off (EK3_ENABLE is 0)'
        estimator = self._values.get('AHRS_EKF_TYPE')
        if estimator is not None and estimator != 3.0:
            return f'EKF3 is not in use (AHRS_EKF_TYPE is {estimator:.0f}, not 3)'
        return ''


def text_of(value: str | bytes | bytearray) -> str:
    """Return a text of a message, which pymavlink gives as text or as bytes."""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).split(b'\0', 1)[0].decode('ascii', 'replace')
    return value
