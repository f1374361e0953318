"""How a copter is blown off its set point, and comes back: an option of the embedded vehicle.

Without it the embedded copter is exactly where it is told to be, and no tuning of its controllers
can be told from another. With it (``--dynamics``) the air's drag moves it off, and cascaded loops
with ArduPilot's structure and the gains of its parameters bring it back::

    position error -> PSC_NE_POS_P -> velocity error -> PSC_NE_VEL_P, _I -> acceleration = lean
    lean error -> ATC_ANG_RLL_P (east at heading north: roll) -> rate, which follows within a lag
    height error -> PSC_D_POS_P -> PSC_D_VEL_P -> acceleration error -> PSC_D_ACC_P, _I -> thrust

Names are those of ArduPilot 4.7 (PSC_POSXY_P and so on before). Drag is that of
`Flight`: g/400 |rel| rel horizontally, where rel is the air past the vehicle, so that 20 m/s
takes a lean of 45 degrees; 1 1/s vertically. It is a point with a lean on each axis, not a model of
an airframe: ATC_RAT_*_P stands for the bandwidth of the rate loop alone, `RATE_BANDWIDTH` at
ArduPilot's default gain and in proportion to it. PSC_NE_VEL_D and the gains for yaw have no part.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dryden_wind_ros.emulator.config import GAIN_DEFAULTS

GRAVITY = 9.80665
DRAG = GRAVITY / 400.0
"""Horizontal acceleration per square of the air's speed past the vehicle, 1/m."""

VERTICAL_DRAG = 1.0
"""Vertical acceleration per speed of the air past the vehicle, 1/s."""

RATE_BANDWIDTH = 20.0
"""Of the rate loop at the default ATC_RAT_*_P, rad/s: an assumption, of a lag of 50 ms."""

HOVER_THRUST = 0.39
"""Part of full thrust that carries the vehicle: PSC_D_ACC_* are per part of full thrust."""

MAX_LEAN = math.radians(45.0)
MAX_RETURN = 5.0
"""Fastest return to the set point that is asked for, m/s."""

_MAX_THRUST = GRAVITY
_MIN_THRUST = -0.9 * GRAVITY

Three = tuple[float, float, float]


class RotorDynamics:
    """Offsets of a copter from its set point.

    Parameters
    ----------
    get : callable
        Returns the value of a parameter by its name, and a default where there is none.

    Attributes
    ----------
    offset : list of float
        North, east, up of the set point, m.
    velocity : list of float
        Over that of the set point, m/s.
    lean : list of float
        Towards north and east, rad.
    rate : list of float
        Of the lean, rad/s.
    """

    def __init__(self, get: Callable[[str, float], float]) -> None:
        self._get = get
        self.begin()

    def begin(self) -> None:
        """Be at the set point, upright."""
        self.offset = [0.0, 0.0, 0.0]
        self.velocity = [0.0, 0.0, 0.0]
        self.lean = [0.0, 0.0]
        self.rate = [0.0, 0.0]
        self._held = [0.0, 0.0, 0.0]  # what the integrators have come to, m/s^2
        self.thrust = 0.0

    def step(self, dt: float, nominal: Three, wind: Three, yaw: float = 0.0) -> None:
        """Go on by ``dt`` s.

        Parameters
        ----------
        dt : float
            Step, s.
        nominal : tuple of float
            Velocity of the set point: north, east, up, m/s.
        wind : tuple of float
            Velocity of the air, the same way.
        yaw : float, optional
            Heading, rad: which of the gains for roll and pitch holds which axis.
        """
        get = self._gain
        rel_north = wind[0] - nominal[0] - self.velocity[0]
        rel_east = wind[1] - nominal[1] - self.velocity[1]
        drag = DRAG * math.hypot(rel_north, rel_east)
        pos_p, vel_p, vel_i = get('PSC_NE_POS_P'), get('PSC_NE_VEL_P'), get('PSC_NE_VEL_I')
        back = [-pos_p * self.offset[0], -pos_p * self.offset[1]]
        fast = math.hypot(*back)
        if fast > MAX_RETURN:
            back = [x * MAX_RETURN / fast for x in back]
        error = [back[0] - self.velocity[0], back[1] - self.velocity[1]]
        wanted = [vel_p * error[0] + self._held[0], vel_p * error[1] + self._held[1]]
        most = GRAVITY * math.tan(MAX_LEAN)
        size = math.hypot(*wanted)
        if size > most:
            wanted = [x * most / size for x in wanted]
        # Pitch holds what is ahead, roll what is beside; in between both have their part.
        ahead = math.cos(yaw) ** 2
        for axis, (rel, share) in enumerate(((rel_north, ahead), (rel_east, 1.0 - ahead))):
            if size <= most or error[axis] * self._held[axis] < 0.0:
                self._held[axis] += vel_i * error[axis] * dt
            ang_p = share * get('ATC_ANG_PIT_P') + (1.0 - share) * get('ATC_ANG_RLL_P')
            tightness = (share * get('ATC_RAT_PIT_P') / GAIN_DEFAULTS['ATC_RAT_PIT_P']
                         + (1.0 - share) * get('ATC_RAT_RLL_P') / GAIN_DEFAULTS['ATC_RAT_RLL_P'])
            wanted_rate = ang_p * (math.atan(wanted[axis] / GRAVITY) - self.lean[axis])
            self.rate[axis] += ((wanted_rate - self.rate[axis])
                                * (1.0 - math.exp(-RATE_BANDWIDTH * max(tightness, 0.0) * dt)))
            self.lean[axis] += self.rate[axis] * dt
            self.lean[axis] = min(max(self.lean[axis], -1.2), 1.2)
            self.velocity[axis] += (GRAVITY * math.tan(self.lean[axis]) + drag * rel) * dt
            self.offset[axis] += self.velocity[axis] * dt
        self._step_height(dt, VERTICAL_DRAG * (wind[2] - nominal[2] - self.velocity[2]))

    def _step_height(self, dt: float, push: float) -> None:
        get = self._gain
        per_thrust = GRAVITY / HOVER_THRUST
        acc_p, acc_i = get('PSC_D_ACC_P') * per_thrust, get('PSC_D_ACC_I') * per_thrust
        wanted = get('PSC_D_VEL_P') * (-get('PSC_D_POS_P') * self.offset[2] - self.velocity[2])
        # The accelerometer feels what the loop does: error = wanted - (P error + held + push)
        error = (wanted - self._held[2] - push) / (1.0 + acc_p)
        thrust = acc_p * error + self._held[2]
        self.thrust = min(max(thrust, _MIN_THRUST), _MAX_THRUST)
        if self.thrust == thrust or error * self._held[2] < 0.0:
            self._held[2] += acc_i * error * dt
        self.velocity[2] += (self.thrust + push) * dt
        self.offset[2] += self.velocity[2] * dt

    def _gain(self, name: str) -> float:
        return self._get(name, GAIN_DEFAULTS[name])
