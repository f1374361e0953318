"""When EKF3's estimate may be believed: after steps of the wind, in gusts, in winds unknown."""

from __future__ import annotations

import functools
import math
import random
from bisect import bisect_left
from itertools import pairwise

import pytest
from pymavlink.dialects.v20 import ardupilotmega as mavlink
from support import ekf_flights as flights
from support.autopilot import Pilot, param_set
from support.ekf_flights import message

from dryden_wind_ros.ekf.phase import WindPhase, WindPhaseMonitor
from dryden_wind_ros.ekf.settling import Settling, settled_rows
from dryden_wind_ros.ekf.telemetry import TelemetryFollower
from dryden_wind_ros.emulator.config import VehicleConfig
from dryden_wind_ros.gusts.flown_wind import FlownWind
from dryden_wind_ros.nodes.ekf_wind import EkfWindFollower
from dryden_wind_ros.sitl.sim_wind import Wind
from dryden_wind_ros.tools import ekf_what_if

WRONG = 3.0  # m/s from the mean of the wind flown in the last 10 s


def states(flight, follower=None):
    """Return the state at each EKF_STATUS_REPORT, and the wind flown (north, east) then."""
    follower = follower or TelemetryFollower()
    found = []
    for _, heard in flight:
        state = follower.update(heard)
        if state is not None and heard.get_type() == 'EKF_STATUS_REPORT':
            found.append((state, follower.wind_flown()))
    return found


@functools.cache
def steps_states(known=True):
    """Return the states of the flight with steps, with or without SIM_WIND_* in its log."""
    return states([one for one in flights.messages(flights.STEPS) if known or not is_wind(one[1])])


def is_wind(heard):
    return heard.get_type() == 'PARAM_VALUE' and heard.param_id.startswith('SIM_WIND')


def steps_flown(t):
    """The wind of the flight with steps, from its description: north, east, m/s."""
    speed, angle = 0.0, 0.0
    for start, new_speed, from_deg in flights.WIND_STEPS:
        if t >= start:
            speed, angle = new_speed, math.radians(from_deg)
    return -speed * math.cos(angle), -speed * math.sin(angle)


def judged(rows):
    """Return (s settled and wrong, share of what is right that is settled, changes of settled).

    Rows are (t, phase, settled, estimate, flown); right is within 3 m/s of the mean of 10 s.
    """
    times = [row[0] for row in rows]
    wrong = right = right_settled = 0.0
    changes = sum(a[2] != b[2] for a, b in pairwise(rows))
    for at, (t, phase, settled, estimate, _) in enumerate(rows[:-1]):
        if phase is not WindPhase.LEARNING:
            continue
        window = [row[4] for row in rows[bisect_left(times, t - 10.0):at + 1]]
        mean = [sum(axis) / len(window) for axis in zip(*window, strict=True)]
        step = rows[at + 1][0] - t
        if math.dist(estimate, mean) > WRONG:
            wrong += step * settled
        else:
            right += step
            right_settled += step * settled
    return wrong, right_settled / right, changes


def of_flight(found, flown=None):
    return judged([(state.t, state.phase, state.settled, (state.wind_n, state.wind_e),
                    flown(state.t) if flown else wind) for state, wind in found])


# -- a real flight whose wind steps ----------------------------------------------------------------

@pytest.mark.parametrize('change', [
    lambda flight: flights.thin(flight, 2.0, 'EKF_STATUS_REPORT', 'WIND'),
    lambda flight: flights.drop(flights.without(flight, 'SYSTEM_TIME'), 0.3, 5),
], ids=['2 Hz', 'a third lost'])
def test_after_a_step_nothing_is_settled_until_ekf3_has_come_in_on_a_bad_link(change):
    # Of a lost echo of SIM_WIND_* nobody can know: those are left whole.
    echoes = [one for one in flights.messages(flights.STEPS) if one[1].get_type() == 'PARAM_VALUE']
    rest = change(flights.without(flights.messages(flights.STEPS), 'PARAM_VALUE'))
    found = states(sorted([*rest, *echoes], key=lambda one: one[0]))
    check_steps(of_flight(found, steps_flown))


def test_after_a_step_of_the_wind_nothing_is_settled_until_ekf3_has_come_in():
    check_steps(of_flight(steps_states(), steps_flown))


def check_steps(of_it):
    wrong, share, changes = of_it
    assert wrong <= 3.0
    assert share >= 0.8
    assert changes <= 1 + 2 * len(flights.WIND_STEPS)


def test_a_step_shows_at_once_with_the_reason_and_how_long_it_will_take():
    found = steps_states()
    for start in (94.8, 224.8, 294.8):  # those that leave the estimate more than 3 m/s off
        state = next(state for state, _ in found if state.t >= start + 1.0)
        assert not state.settled
        assert 'm/s from the wind flown' in state.reason
        assert 's to go' in state.reason
        # How long it really took in this flight: between 45 and 59 s.
        again = next(one.t for one, _ in found if one.t > state.t and one.settled)
        assert state.settles_in == pytest.approx(again - state.t, rel=0.5)


def test_phases_do_not_depend_on_who_knows_the_wind():
    assert [state.phase for state, _ in steps_states()] == [
        state.phase for state, _ in steps_states(known=False)]


def test_what_a_ground_station_sets_counts_like_its_echo():
    def as_set(one):
        t, heard = one
        if not is_wind(heard):
            return one
        return t, message('PARAM_SET', 255, 190, target_system=23, target_component=1,
                          param_id=heard.param_id, param_value=heard.param_value)

    flight = [one for one in flights.messages(flights.STEPS) if one[0] < 105.0]
    echoed = [state.settled for state, _ in steps_states() if 25.0 < state.t < 104.9]
    set_only = [state.settled for state, _ in states(map(as_set, flight))
                if 25.0 < state.t < 104.9]
    assert set_only == echoed
    assert True in echoed
    assert not echoed[-1]


def test_where_nobody_knows_the_wind_flown_the_estimate_must_keep_still():
    found = steps_states(known=False)
    assert all(math.isnan(wind[0]) for _, wind in found)
    wrong, share, changes = of_flight(found, steps_flown)
    # EKF3 moves so slowly that some of it cannot be seen.
    assert wrong < 45.0
    assert share >= 0.8
    assert changes <= 6
    state = next(state for state, _ in found if state.t > 115.0)
    assert 'still moves' in state.reason
    assert math.isnan(state.settles_in)


@pytest.mark.parametrize('name', ['copter_drag', 'plane_no_tas'])
def test_steady_winds_and_gusts_are_settled_once_learned(name):
    wrong, share, changes = of_flight(states(flights.messages(name)))
    assert wrong <= 3.0
    assert share >= 0.8
    assert changes <= 6  # an outage or a hover makes two each


def test_other_process_noise_over_the_same_flight():
    flight = ekf_what_if.moments(flights.tlog_path(flights.STEPS))
    recorded = [math.dist(now.estimate, now.flown) for now in flight]
    own = ekf_what_if.errors(flight, 0.1)
    assert math.dist(own, recorded) / math.sqrt(len(own)) < 0.8  # m/s, rms
    slow, fast = (ekf_what_if.within(flight, ekf_what_if.errors(flight, noise))
                  for noise in (0.02, 0.3))
    assert len(slow) == len(flights.WIND_STEPS)
    assert slow[0] == math.inf
    assert fast[0] < ekf_what_if.within(flight, own)[0]
    # Straight north: of the last step, mostly from behind, too little is seen.
    assert ekf_what_if.errors(flight, 0.1, straight=True)[-1] > 5.0


# -- other winds, made -----------------------------------------------------------------------------

def come_in(seed, sigma, time_constant, told=True, scale=1.0):
    """An estimate that comes in exponentially on a wind of steps and gusts, 5 times a second."""
    draw = random.Random(seed)
    judge = Settling()
    judge.begin(30.0, 8.0)
    gust, estimate, rows = [0.0, 0.0], [0.5, 0.5], []
    keep = math.exp(-0.2 / 3.0)
    for tick in range(150, 1770):
        t = 0.2 * tick
        gust = [keep * g + sigma * math.sqrt(1 - keep * keep) * draw.gauss(0.0, 1.0) for g in gust]
        flown = [scale * m + g for m, g in zip(steps_flown(t), gust, strict=True)]
        estimate = [e + 0.2 / time_constant * (f - e) for e, f in zip(estimate, flown, strict=True)]
        judge.add(t, *estimate)
        if told:
            judge.flown(t, *flown)
        judge.judge(t, learning=True, variance=0.2, time_constant=time_constant)
        rows.append((t, WindPhase.LEARNING, judge.settled, estimate, flown))
    return judged(rows)


@pytest.mark.parametrize(('sigma', 'time_constant', 'scale'), [
    (0.0, 25.0, 1.0), (0.0, 55.0, 1.0), (0.0, 55.0, 0.5), (0.0, 20.0, 2.0), (1.0, 25.0, 1.0),
    (1.0, 55.0, 0.7)])
def test_steps_of_other_sizes_and_filters_of_other_speeds(sigma, time_constant, scale):
    for seed in (1, 2):
        wrong, share, changes = come_in(seed, sigma, time_constant, scale=scale)
        assert wrong <= 3.0
        assert share >= 0.75
        assert changes <= (9 if sigma == 0.0 else 15)


def test_an_estimate_about_3_off_does_not_come_and_go():
    draw = random.Random(4)
    judge = Settling()
    judge.begin(0.0, 8.0)
    wander, settled = 0.0, []
    for tick in range(3000):
        t = 0.1 * tick
        wander = 0.98 * wander + 0.2 * math.sqrt(1 - 0.98 ** 2) * draw.gauss(0.0, 1.0)
        judge.add(t, 0.0, 8.0)
        judge.flown(t, 0.0, 5.0 + wander)
        settled.append(judge.judge(t, learning=True, variance=0.2))
    assert sum(a != b for a, b in pairwise(settled)) < 25


def test_gusts_are_no_steps():
    draw = random.Random(3)
    judge = Settling()
    judge.begin(0.0, 8.0)
    gust, settled = 0.0, []
    for tick in range(6000):
        t = 0.1 * tick
        gust = 0.95 * gust + 1.5 * math.sqrt(1 - 0.95 ** 2) * draw.gauss(0.0, 1.0)
        judge.add(t, 0.0, 8.0)
        judge.flown(t, gust, 8.0)
        settled.append(judge.judge(t, learning=True, variance=0.2))
    assert sum(settled) > 0.9 * len(settled)


# -- live ------------------------------------------------------------------------------------------

def live(pilot, follower, flown, seconds):
    """Let time pass as the bridge does; return the samples."""
    samples = []
    for heard in pilot.run(seconds):
        if heard.get_type() == 'SYSTEM_TIME':
            flown.advance(heard.time_boot_ms * 1e-3)
        sample = follower.update(heard)
        if sample is not None:
            samples.append(sample)
    return samples


def test_live_the_bridge_knows_that_it_has_changed_the_wind():
    calm = {'SIM_WIND_SPD': 0.0, 'SIM_WIND_DIR': 270.0, 'SIM_WIND_TC': 0.1, 'SIM_WIND_T': 1.0}
    pilot = Pilot(VehicleConfig(kind='plane', parameters=tuple(calm.items())))
    flown = FlownWind()
    follower = EkfWindFollower(flown)
    pilot.run(8.0)
    for ident in (mavlink.MAVLINK_MSG_ID_SYSTEM_TIME, mavlink.MAVLINK_MSG_ID_ATTITUDE,
                  mavlink.MAVLINK_MSG_ID_EKF_STATUS_REPORT, mavlink.MAVLINK_MSG_ID_WIND,
                  mavlink.MAVLINK_MSG_ID_VFR_HUD, mavlink.MAVLINK_MSG_ID_LOCAL_POSITION_NED):
        pilot.ask(ident, 0.2)
    for name, value in calm.items():
        flown.set(name, value)
    follower.wind_sent(Wind(0.0, 270.0, 0.0))
    pilot.fly(mode=13)
    pilot.command(mavlink.MAV_CMD_DO_SET_MODE, 1, 12)
    assert live(pilot, follower, flown, 40.0)[-1].state.settled

    for name, value in (('SIM_WIND_SPD', 9.0), ('SIM_WIND_DIR', 200.0)):
        flown.set(name, value)
        pilot.send(param_set(name, value))
    samples = live(pilot, follower, flown, 1.0)
    assert not samples[-1].state.settled
    assert 'from the wind flown' in samples[-1].state.reason
    assert samples[-1].state.steady  # by its own movement it would still pass
    samples = live(pilot, follower, flown, 120.0)
    assert all(sample.error_speed < 3.2 for sample in samples if sample.state.settled)
    assert samples[-1].state.settled
    assert sum(a.state.settled != b.state.settled for a, b in pairwise(samples)) == 1

    # A wind that the vehicle does not feel is not the one that it flies.
    flown.set('SIM_WIND_DIR', 20.0)
    assert not live(pilot, follower, flown, 3.0)[-1].state.settled
    follower.felt = False
    assert live(pilot, follower, flown, 8.0)[-1].state.settled


# -- what cannot be --------------------------------------------------------------------------------

def with_estimate(name, speed, end):
    """A flight up to ``end`` in which WIND says ``speed`` all the time."""
    def change(t, wind):
        wind.speed, wind.direction = speed, 90.0

    flight = [one for one in flights.messages(name) if one[0] < end
              and not is_wind(one[1])]
    return flights.edit(flight, 'WIND', change)


@pytest.mark.parametrize(('name', 'end'), [('plane_no_tas', 80.0), ('copter_drag', 80.0)])
def test_an_absurd_estimate_is_never_settled_however_still_it_stands(name, end):
    found = states(with_estimate(name, 70.0, end))
    assert any(state.phase is WindPhase.LEARNING and state.steady for state, _ in found)
    assert not any(state.settled for state, _ in found)
    assert '70 m/s' in found[-1][0].reason


def test_an_airspeed_sensor_shows_a_smaller_absurdity():
    found = states(with_estimate('plane_crosswind_takeoff', 26.0, 100.0))
    found = [state for state, _ in found if state.t > 60.0]  # by then it has turned
    assert any(state.steady for state in found)
    assert not any(state.settled for state in found)
    assert 'airspeed' in found[-1].reason


# -- the dataflash log's way -----------------------------------------------------------------------

def test_rows_of_a_log_are_judged_the_same_way():
    # The flight's own estimate at the rate of XKV2, with its phases and a small variance.
    found = [one for one in steps_states() if one[0].t > 25.0][::5]
    settled = settled_rows(
        [state.t for state, _ in found], [state.phase for state, _ in found],
        [(state.wind_n, state.wind_e) for state, _ in found],
        [steps_flown(state.t) for state, _ in found], [0.2] * len(found))
    wrong, share, changes = judged([
        (state.t, state.phase, one, (state.wind_n, state.wind_e), steps_flown(state.t))
        for (state, _), one in zip(found, settled, strict=True)])
    assert wrong <= 3.0
    assert share >= 0.8
    assert changes <= 9


# -- whom to follow --------------------------------------------------------------------------------

def take_off():
    return [one for one in flights.messages('plane_crosswind_takeoff') if one[0] < 50.0]


def on_the_link_first(*others):
    """The flight, with somebody else's messages before and between those of the plane."""
    mixed = [(0.0, other) for other in others]
    for t, heard in take_off():
        mixed.append((t, heard))
        if heard.get_type() == 'HEARTBEAT':
            mixed += [(t, other) for other in others]
    return mixed


@pytest.mark.parametrize('others', [
    # an antenna tracker is an ArduPilot autopilot, too
    [message('SYSTEM_TIME', 9, 1, time_boot_ms=777000),
     message('HEARTBEAT', 9, 1, type=5, autopilot=3, base_mode=128)],
    [message('HEARTBEAT', 9, 1, type=2, autopilot=12, base_mode=128)],  # PX4
    [message('HEARTBEAT', 1, 154, type=26, autopilot=8),                # gimbal of the same system
     message('SYSTEM_TIME', 1, 154, time_boot_ms=10 ** 8)],
    [message('HEARTBEAT', 255, 190, type=6, autopilot=8),
     message('SYSTEM_TIME', 255, 1, time_boot_ms=5)],
    [message('PARAM_VALUE', 9, 1, param_id='SIM_WIND_SPD', param_value=30.0),
     message('HEARTBEAT', 9, 1, type=5, autopilot=3)],
], ids=['tracker', 'px4', 'gimbal', 'ground station', 'tracker with parameters'])
def test_whoever_is_heard_first_the_vehicle_is_followed(others):
    alone = states(take_off())
    follower = TelemetryFollower()
    mixed = states(on_the_link_first(*others), follower)
    assert follower.monitor.system == 1

    def told(found):
        return [(state.t, state.phase, state.settled, wind) for state, wind in found
                if state.t > 5.0]

    assert told(mixed) == told(alone)


def test_parameters_given_outlive_a_wrong_first_guess_of_whom_to_follow():
    monitor = WindPhaseMonitor({'AHRS_EKF_TYPE': 2.0})
    monitor.update(message('SYSTEM_TIME', 9, 1, time_boot_ms=1000))
    assert monitor.system == 9
    monitor.update(message('HEARTBEAT', 9, 1, type=5, autopilot=3))
    assert monitor.system is None
    monitor.update(message('HEARTBEAT', 4, 1, type=1, autopilot=3))
    assert monitor.system == 4
    assert monitor.parameters == {'AHRS_EKF_TYPE': 2.0}


def test_the_wind_told_is_forgotten_when_nobody_tells_any_more():
    judge = Settling()
    judge.begin(0.0, 8.0)
    for tick in range(400):
        t = 0.1 * tick
        judge.add(t, 0.0, 8.0)
        if t < 20.0:
            judge.flown(t, 0.0, 0.0)
        judge.judge(t, learning=True, variance=0.2)
        if t == 19.0:
            assert '8.0 m/s from the wind flown' in judge.why_not
    assert judge.settled  # still, and nobody knows better
    assert judge.why_not == ''
