"""Is the wind that SITL was given felt? Judged on recorded flights, where the answer is known.

All of them were flown in SITL's own models, in 8 m/s. That another wind was *not* felt is asked of
the same flights: the wind across the one flown was not.
"""

import functools
import math
from types import SimpleNamespace

import pytest
from support import ekf_flights as flights

from dryden_wind_ros.ekf.phase import WindPhase, WindPhaseMonitor
from dryden_wind_ros.sitl.odometry import OdometryBuilder, enu_orientation
from dryden_wind_ros.sitl.wind_effect import BLOCK_S, Effect, WindEffectMonitor

FLIGHTS = sorted(flights.MEAN_WIND_FROM)
LONG_ENOUGH = {'plane_tas', 'copter_drag', 'copter_nodrag', 'plane_crosswind_takeoff'}
"""Those with a steady estimate or a hover of `BLOCK_S`."""

QUADROTOR, PLANE = 2, 1


@functools.cache
def samples(name):
    """Return what the bridge would feed, in order: EkfWindState, or (type, Odometry)."""
    monitor, builder, kind, seen = WindPhaseMonitor(), OdometryBuilder(), 0, []
    for _, message in flights.messages(name):
        state = monitor.update(message)
        if state is not None:
            seen.append(state)
        if message.get_type() == 'HEARTBEAT':
            kind = message.type
        odometry = builder.update(message)
        if odometry is not None:
            seen.append((kind, odometry))
    return seen


def judgements(name, given, block=BLOCK_S):
    """Return all judgements of a flight in which SITL is said to have been given this wind."""
    monitor, made = WindEffectMonitor(block), []
    for sample in samples(name):
        if isinstance(sample, tuple):
            kind, o = sample
            changed = monitor.odometry(o.time_ms / 1000, kind, o.position[2], o.velocity,
                                       o.orientation, given)
        else:
            changed = monitor.estimate(sample, given)
        if changed:
            made.append(monitor.result)
    return made


def flown(name):
    north, east = flights.mean_wind(name)
    return east, north


@pytest.mark.parametrize('block', [BLOCK_S, 30.0, 15.0, 8.0])
@pytest.mark.parametrize('name', FLIGHTS)
def test_no_false_alarm_on_a_recorded_flight_even_when_judged_in_haste(name, block):
    made = judgements(name, flown(name), block)
    assert Effect.NOT_FELT not in {j.effect for j in made}
    if block < BLOCK_S or name in LONG_ENOUGH:
        assert made[0].effect is Effect.FELT


@pytest.mark.parametrize('name', sorted(LONG_ENOUGH))
def test_a_wind_that_was_not_flown_is_found_out(name):
    east, north = flown(name)
    made = judgements(name, (-north, east))
    assert made[0].effect is Effect.NOT_FELT
    assert '8.0 m/s that SITL was given' in made[0].text
    assert 'gazebo_wind' in made[0].text


@pytest.mark.parametrize('name', FLIGHTS)
def test_little_wind_is_never_judged(name):
    east, north = flown(name)
    assert judgements(name, (-north * 0.45, east * 0.45), 8.0) == []


def test_a_wind_given_that_turns_is_not_judged():
    monitor = WindEffectMonitor()
    for i in range(2000):
        angle = 0.1 * i / 10  # once round in a minute
        assert not monitor.estimate(still_air(0.1 * i), (8 * math.cos(angle), 8 * math.sin(angle)))


def still_air(t, steady=True, phase=WindPhase.LEARNING):
    return SimpleNamespace(t=t, phase=phase, steady=steady, wind_e=0.1, wind_n=-0.1)


@pytest.mark.parametrize('state', [
    {'steady': False}, {'phase': WindPhase.COAST}, {'phase': WindPhase.NOT_ESTIMATED}])
def test_only_a_steady_estimate_counts(state):
    monitor = WindEffectMonitor()
    for i in range(2000):
        monitor.estimate(still_air(0.1 * i, **state), (8.0, 0.0))
    assert monitor.result.effect is Effect.UNKNOWN


def test_an_estimate_of_still_air_in_eight_metres_per_second_is_told_after_a_minute():
    monitor = WindEffectMonitor()
    changes = [0.1 * i for i in range(3000) if monitor.estimate(still_air(0.1 * i), (8.0, 0.0))]
    assert changes == [pytest.approx(BLOCK_S, abs=0.2)]  # once, though it goes on
    assert monitor.result.effect is Effect.NOT_FELT


def test_a_gap_or_a_restart_begins_anew():
    monitor = WindEffectMonitor()
    for begin in (0.0, 58.0 + 10.0, 5.0):
        for i in range(580):
            assert not monitor.estimate(still_air(begin + 0.1 * i), (8.0, 0.0))


def hover(lean_deg, kind=QUADROTOR, speed=0.2, height=10.0, given=(0.0, 8.0)):
    """A vehicle with its nose to the north that leans towards the south, a wind towards north."""
    monitor = WindEffectMonitor()
    orientation = enu_orientation(0.0, math.radians(lean_deg), 0.0)  # nose up: leans backwards
    for i in range(800):
        monitor.odometry(0.1 * i, kind, height, (speed, 0.0, 0.0), orientation, given)
    return monitor.result.effect


def test_a_hover_has_to_lean_into_the_wind():
    # A southerly pushes north: to stay, thrust has to point south.
    assert hover(14.0) is Effect.FELT
    assert hover(0.5) is Effect.NOT_FELT
    assert hover(-8.0) is Effect.NOT_FELT
    assert hover(1.7) is Effect.UNKNOWN


@pytest.mark.parametrize('circumstances', [
    {'kind': PLANE}, {'speed': 3.0}, {'height': 0.1}, {'given': (0.0, 3.9)}])
def test_upright_means_nothing_but_in_a_rotorcrafts_hover_in_wind(circumstances):
    assert hover(0.0, **circumstances) is Effect.UNKNOWN
