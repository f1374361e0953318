"""Drag of a vehicle in moving air, for a simulation that feels no wind of its own for it.

With V = wind - vehicle velocity, the velocity of the air relative to the vehicle, in body axes::

    F = 1/2 rho |V| (A_x V_x, A_y V_y, A_z V_z)

where A_i is the drag area along body axis i, drag coefficient times frontal area, m^2. With equal
areas this is the drag equation F = 1/2 rho C_d A V^2 along V (e.g. F. M. White, Fluid Mechanics,
7.6; NASA Glenn Research Center, "The Drag Equation"), which is also how ArduPilot's own multicopter
model does it (SIM_Frame.cpp). Different areas make it that of a body that is slimmer one way than
another. The force never drives the vehicle: F . V >= 0 in whatever direction the air comes.

It acts at one point of one link. Air that turns relative to the vehicle (gusts that differ from
wing tip to wing tip) turns the vehicle, if it is given areas for that::

    M_i = 1/2 rho |V| B_i (rate of the air - rate of the vehicle)_i

B_i is the second moment of the drag area about body axis i, m^4: a strip of drag area a(y) dy at
the distance y from the axis sees the air come at y times the rate, so B = integral of a(y) y^2 dy,
which is A b^2 / 12 for an area A spread evenly over a span b. Lift and what propellers do in the
wind are not in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from transforms3d.quaternions import qinverse, rotate_vector

Vector = tuple[float, float, float]

SEA_LEVEL_DENSITY = 1.225
"""Density of the air at sea level, kg/m^3 (ISO 2533, standard atmosphere)."""

MAX_FORCE = 1e5
"""Largest force that is ever returned, N: odometry that jumps must not tear a simulation apart."""


@dataclass(frozen=True)
class DragModel:
    """Quadratic drag with one area for each body axis.

    Attributes
    ----------
    areas : tuple of float, shape (3,)
        Drag coefficient times frontal area along forward, left and up, m^2, not negative.
    density : float
        Density of the air, kg/m^3.
    turn_areas : tuple of float, shape (3,)
        Second moment of the drag area about the forward, left and up axes, m^4, not negative.

    Raises
    ------
    ValueError
        If a number is negative or not finite.
    """

    areas: Vector
    density: float = SEA_LEVEL_DENSITY
    turn_areas: Vector = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        for name, areas, unit in (('drag areas', self.areas, 'm^2'),
                                  ('turn areas', self.turn_areas, 'm^4')):
            if len(areas) != 3 or not all(math.isfinite(a) and a >= 0.0 for a in areas):
                raise ValueError(f'{name} are {tuple(areas)} {unit}; they must be three numbers '
                                 'from 0')
        if not math.isfinite(self.density) or self.density < 0.0:
            raise ValueError(f'air density is {self.density} kg/m^3; it must be a number from 0')

    def force(self, wind: Sequence[float], velocity: Sequence[float],
              orientation: Sequence[float]) -> Vector:
        """Return the force of the air on the vehicle.

        Parameters
        ----------
        wind : sequence of float, shape (3,)
            Where the air moves to: east, north, up, m/s.
        velocity : sequence of float, shape (3,)
            Of the vehicle over the ground: east, north, up, m/s.
        orientation : sequence of float, shape (4,)
            Quaternion x, y, z, w of the body in ENU, of unit length.

        Returns
        -------
        tuple of float, shape (3,)
            East, north, up, N; at most `MAX_FORCE` long.

        Raises
        ------
        ValueError
            If the result would not be a number.

        Examples
        --------
        Air at 10 m/s towards east, drag area 0.02 m^2: 1/2 x 1.225 x 0.02 x 100 N.

        >>> force = DragModel((0.02, 0.02, 0.02)).force((10, 0, 0), (0, 0, 0), (0, 0, 0, 1))
        >>> round(force[0], 6), force[1:]
        (1.225, (0.0, 0.0))
        """
        x, y, z, w = orientation
        turn = (w, x, y, z)
        relative = [wind[i] - velocity[i] for i in range(3)]
        body = rotate_vector(relative, qinverse(turn), is_normalized=True)
        factor = 0.5 * self.density * math.hypot(*relative)
        force = rotate_vector(
            [factor * area * v for area, v in zip(self.areas, body, strict=True)], turn,
            is_normalized=True)
        return _bounded(force, (*wind, *velocity, *orientation))

    def torque(self, wind: Sequence[float], gust_rates: Sequence[float],
               velocity: Sequence[float], rates: Sequence[float],
               orientation: Sequence[float]) -> Vector:
        """Return the torque of air that turns relative to the vehicle.

        Parameters
        ----------
        wind, velocity, orientation
            As for `force`.
        gust_rates : sequence of float, shape (3,)
            p, q, r of the gust about forward, right and down, rad/s, as WindState.msg has them.
        rates : sequence of float, shape (3,)
            Turning of the vehicle about forward, left and up, rad/s, as odometry has it.

        Returns
        -------
        tuple of float, shape (3,)
            East, north, up, N m; at most `MAX_FORCE` long. Zero without `turn_areas`.

        Raises
        ------
        ValueError
            If the result would not be a number.
        """
        if not any(self.turn_areas):
            return 0.0, 0.0, 0.0
        x, y, z, w = orientation
        p, q, r = gust_rates
        factor = 0.5 * self.density * math.hypot(*(wind[i] - velocity[i] for i in range(3)))
        return _bounded(rotate_vector(
            [factor * area * (air - own) for area, air, own in zip(
                self.turn_areas, (p, -q, -r), rates, strict=True)], (w, x, y, z),
            is_normalized=True), (*gust_rates, *rates))


def _bounded(vector: Sequence[float], given: Sequence[float]) -> Vector:
    size = math.hypot(*vector)
    if not math.isfinite(size):
        raise ValueError(f'{tuple(given)} must be finite numbers')
    factor = min(1.0, MAX_FORCE / size) if size > 0.0 else 1.0
    return float(vector[0] * factor), float(vector[1] * factor), float(vector[2] * factor)
