"""A copter with dynamics: blown off its set point, and brought back as its gains say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import expm

from dryden_wind_ros.emulator.autopilot import Autopilot
from dryden_wind_ros.emulator.config import GAIN_DEFAULTS, VehicleConfig
from dryden_wind_ros.emulator.parameters import Eeprom
from dryden_wind_ros.emulator.rotor_dynamics import RotorDynamics

STILL = (0.0, 0.0, 0.0)
DT = 0.02


def dynamics(**gains):
    values = {**GAIN_DEFAULTS, **gains}
    return RotorDynamics(lambda name, default: values.get(name, default))


def test_a_steady_wind_is_held_without_an_error():
    """The integrators take the drag over: 8 m/s leans by atan(64/400), and updraft costs thrust."""
    copter = dynamics()
    for _ in range(6000):
        copter.step(DT, STILL, (0.0, 8.0, 1.0))
    assert copter.offset == pytest.approx([0.0, 0.0, 0.0], abs=1e-3)
    assert copter.lean == pytest.approx([0.0, -math.atan(64.0 / 400.0)], abs=1e-4)
    assert copter.thrust == pytest.approx(-1.0, abs=1e-3)


def test_without_integrator_the_error_is_what_the_gains_leave():
    """Drag = VEL_P POS_P x: g/400 8^2 = 1.57 m/s^2 needs 0.78 m at 2 and 1."""
    copter = dynamics(PSC_NE_VEL_I=0.0)
    for _ in range(6000):
        copter.step(DT, STILL, (8.0, 0.0, 0.0))
    # lean = atan(a/g), so exactly
    assert copter.offset[0] == pytest.approx(9.80665 / 400.0 * 64.0 / 2.0, rel=1e-3)


def test_the_step_response_is_that_of_the_linear_model():
    """Five states: offset, velocity, integrator, lean, rate; by the matrix exponential."""
    pos_p, vel_p, vel_i, ang_p, g, rate = 1.0, 2.0, 1.0, 4.5, 9.80665, 20.0
    a = np.zeros((5, 5))
    a[0, 1] = 1.0
    a[1, 3] = g
    a[2] = [-vel_i * pos_p, -vel_i, 0.0, 0.0, 0.0]
    a[3, 4] = 1.0
    a[4] = rate * np.array([-ang_p * vel_p * pos_p / g, -ang_p * vel_p / g, ang_p / g, -ang_p, -1])
    assert np.linalg.eigvals(a).real.max() < 0.0
    copter = dynamics()
    copter.offset[0] = 0.05
    found = []
    for _ in range(4000):
        copter.step(0.002, STILL, STILL)
        found.append(copter.offset[0])
    propagate, state, expected = expm(a * 0.002), np.array([0.05, 0.0, 0.0, 0.0, 0.0]), []
    for _ in found:
        state = propagate @ state
        expected.append(state[0])
    assert np.abs(np.subtract(found, expected)).max() < 0.05 * 0.02


def test_more_wind_than_it_can_lean_against_carries_it_away_and_it_comes_back():
    copter = dynamics()
    for _ in range(1000):
        copter.step(DT, STILL, (25.0, 0.0, 0.0))
    assert copter.offset[0] > 20.0
    for _ in range(6000):
        copter.step(DT, STILL, STILL)
    assert copter.offset[0] == pytest.approx(0.0, abs=0.01)


def flown(**gains):
    """Return the offset (rms, m) of a hover in a wind that swings by 3 m/s with a period of 8 s."""
    parameters = tuple({'SIM_WIND_T': 1.0, 'SIM_WIND_TC': 0.1, **gains}.items())
    vehicle = Autopilot(VehicleConfig(flight='hover', dynamics=True, parameters=parameters),
                        Eeprom())
    squares, t = [], 0
    while t < 60_000_000:
        t += 50_000
        vehicle.write_parameter('SIM_WIND_SPD', 8.0 + 3.0 * math.sin(t * 1e-6 * 2 * math.pi / 8.0))
        vehicle.advance(t)
        if t > 30_000_000:
            north, east, up, _ = vehicle.flight.set_point
            assert up == 10.0
            squares.append((vehicle.flight.north - north)**2 + (vehicle.flight.east - east)**2)
    return math.sqrt(sum(squares) / len(squares))


def test_halved_gains_hold_worse():
    default = flown()
    halved = flown(PSC_NE_POS_P=0.5, PSC_NE_VEL_P=1.0, PSC_NE_VEL_I=0.5)
    assert 0.05 < default < 1.0
    assert halved > 1.5 * default


def test_it_is_for_copters():
    with pytest.raises(ValueError, match='dynamics is for a copter, not for a plane'):
        VehicleConfig(kind='plane', dynamics=True)
