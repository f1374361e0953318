"""The phases of EKF3's wind from telemetry, against the onboard logs of the same flights."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support import ekf_flights as flights
from support.ekf_flights import message

from dryden_wind_ros.ekf.phase import (
    ALLOWED_TRANSITIONS,
    SILENCE,
    EkfWindState,
    WindPhase,
    WindPhaseMonitor,
    wind_error,
)
from dryden_wind_ros.ekf.variance import WindVariance
from dryden_wind_ros.tools.ekf_replay import agreement, phase_spans, replay, settling

FLIGHTS = sorted(flights.MEAN_WIND_FROM)
ESTIMATING_FLIGHTS = [name for name in FLIGHTS if name != 'copter_nodrag']


def phases(flight, monitor=None):
    return [(row.t_boot_s, row.phase) for row in replay(flight, monitor)]


def spans(flight, *wanted):
    return [one for one in phase_spans(phases(flight)) if not wanted or one[0] in wanted]


# -- against the truth -----------------------------------------------------------------------------

@pytest.mark.parametrize('name', FLIGHTS)
def test_phases_agree_with_the_onboard_log(name):
    score = agreement(phases(flights.messages(name)), flights.truth(name))
    assert score.merged >= 0.985
    assert score.exact >= 0.95
    assert score.missed == ()
    assert score.invented == ()
    assert [(phase, start, late) for phase, start, late in score.starts
            if not abs(late) <= 0.7] == []


@pytest.mark.parametrize('name', ESTIMATING_FLIGHTS)
def test_settled_estimate_is_near_the_mean_wind(name):
    good = settling(list(replay(flights.messages(name))), flights.truth(name),
                    *flights.mean_wind(name))
    assert good.within >= 0.95
    assert good.share >= 0.70


def test_estimate_is_the_one_in_the_onboard_log():
    rows = list(replay(flights.messages('plane_tas')))
    by_time = {round(row.t_boot_s, 1): row for row in rows}
    compared = 0
    for logged in flights.truth_table('plane_tas'):
        row = by_time.get(round(float(logged['t_boot_s']), 1))
        if row is None or logged['phase'] not in ('learning', 'coast') \
                or row.phase != logged['phase']:
            continue
        compared += 1
        # WIND comes every 0.1 s and the log rounds to 0.01 m/s; the estimate moves slowly.
        assert row.wind_n == pytest.approx(float(logged['VWN']), abs=0.15)
        assert row.wind_e == pytest.approx(float(logged['VWE']), abs=0.15)
    assert compared > 200


@pytest.mark.parametrize('name', FLIGHTS)
def test_five_percent_of_messages_lost(name):
    score = agreement(phases(flights.drop(flights.messages(name), 0.05, 1)),
                      flights.truth(name))
    assert score.merged >= 0.985
    assert score.exact >= 0.95
    assert score.missed == score.invented == ()


@pytest.mark.parametrize('name', FLIGHTS)
def test_messages_that_overtake_each_other(name):
    score = agreement(phases(flights.jitter(flights.messages(name), 0.15, 5)),
                      flights.truth(name))
    assert score.merged >= 0.985
    assert score.exact >= 0.95


@pytest.mark.parametrize('name', FLIGHTS)
@pytest.mark.parametrize('rate', [5.0, 2.0])
def test_slower_reports(name, rate):
    slow = flights.thin(flights.messages(name), rate, 'EKF_STATUS_REPORT')
    score = agreement(phases(slow), flights.truth(name))
    assert score.merged >= 0.985
    assert score.exact >= 0.95


@pytest.mark.parametrize('name', ['copter_drag', 'plane_no_tas', 'plane_tas', 'quadplane'])
@pytest.mark.parametrize('missing', [
    ('STATUSTEXT',), ('PARAM_VALUE',), ('EXTENDED_SYS_STATE',), ('LOCAL_POSITION_NED',),
    ('VFR_HUD',), ('ATTITUDE',), ('SYSTEM_TIME',), ('PARAM_VALUE', 'STATUSTEXT', 'ATTITUDE')],
    ids='+'.join)
def test_message_types_that_never_come(name, missing):
    score = agreement(phases(flights.without(flights.messages(name), *missing)),
                      flights.truth(name))
    assert score.merged >= 0.985
    assert score.exact >= 0.95
    assert score.missed == score.invented == ()


# -- outages ---------------------------------------------------------------------------------------

OUTAGE_START = {'plane_crosswind_takeoff': 80.0, 'plane_tas': 60.0, 'plane_no_tas': 60.0,
                'copter_drag': 75.0, 'quadplane': 110.0}


@pytest.mark.parametrize('name', sorted(OUTAGE_START))
@pytest.mark.parametrize('length', [5.0, 6.5])
def test_short_outage_is_no_coast(name, length):
    start = OUTAGE_START[name]
    flight = [one for one in flights.messages(name) if one[0] < start + 30.0]
    assert spans(flights.without_gps(flight, (start, start + length)), 'coast', 'relearn') == []


@pytest.mark.parametrize('name', sorted(OUTAGE_START))
@pytest.mark.parametrize('length', [7.6, 9.0, 12.0, 20.0])
def test_coast_begins_7_s_after_the_last_sample_and_ends_with_the_next(name, length):
    start = OUTAGE_START[name]
    flight = [one for one in flights.messages(name) if one[0] < start + length + 15.0]
    found = spans(flights.without_gps(flight, (start, start + length)), 'coast', 'relearn')
    assert [one[0] for one in found] == ['coast', 'relearn']
    # The last sample is up to 0.2 s (GPS at 5 Hz) before the outage, the next as long after it.
    assert start + 6.7 <= found[0][1] <= start + 7.2
    assert start + length <= found[0][2] <= start + length + 0.4


def test_outages_one_after_the_other():
    flight = [one for one in flights.messages('plane_tas') if one[0] < 99.0]
    outages = [(45.0, 54.0), (56.0, 62.0), (64.0, 73.0), (73.3, 82.0)]
    found = spans(flights.without_gps(flight, *outages), 'coast')
    assert [round(start - 52.0) for _, start, _ in found] == [0, 19, 28]


def test_outage_while_relearning():
    flight = [one for one in flights.messages('plane_no_tas') if one[0] < 100.0]
    found = spans(flights.without_gps(flight, (60.0, 70.0), (71.0, 80.0)), 'coast', 'relearn')
    assert [one[0] for one in found] == ['coast', 'relearn', 'coast', 'relearn']


def test_outage_right_after_take_off():
    flight = [one for one in flights.messages('plane_tas') if one[0] < 60.0]
    found = spans(flights.without_gps(flight, (31.5, 42.0)),
                  'init', 'learning', 'coast', 'relearn')
    assert [one[0] for one in found] == ['init', 'learning', 'coast', 'relearn', 'learning']


def test_relearning_takes_as_long_as_the_heading_leaves_unknown():
    # Without airspeed only turns show the wind along the heading: 12.5 s in this flight's log.
    slow = spans(flights.messages('plane_no_tas'), 'relearn')
    fast = spans(flights.messages('copter_drag'), 'relearn')
    assert slow[0][2] - slow[0][1] == pytest.approx(12.5, abs=1.5)
    assert fast[0][2] - fast[0][1] < 0.8


def test_rejected_gps_samples_are_no_aiding():
    def reject(t, report):
        if 60.0 <= t < 75.0:
            report.velocity_variance += 2.0  # changes still, but above 1
            report.pos_horiz_variance += 2.0

    flight = [one for one in flights.messages('plane_tas') if one[0] < 90.0]
    found = spans(flights.edit(flight, 'EKF_STATUS_REPORT', reject), 'coast')
    assert [(round(start), round(end)) for _, start, end in found] == [(67, 75)]


def test_lane_switch_in_an_outage_is_no_gps_sample():
    flight = flights.without_gps(
        [one for one in flights.messages('plane_tas') if one[0] < 95.0], (60.0, 80.0))

    def other_lane(t, report):
        if 64.05 <= t < 80.0:
            report.velocity_variance, report.pos_horiz_variance = 0.123, 0.045

    flight = flights.edit(flight, 'EKF_STATUS_REPORT', other_lane)
    assert [(round(s), round(e)) for _, s, e in spans(flight, 'coast')] == [(67, 80)]
    text = (64.1, message('STATUSTEXT', text='EKF3 lane switch 1'))
    flight = sorted([*flight, text], key=lambda one: one[0])
    assert [(round(s), round(e)) for _, s, e in spans(flight, 'coast')] == [(67, 80)]


# -- whoever comes late, and whatever starts again -------------------------------------------------

@pytest.mark.parametrize(('name', 'start', 'phase'), [
    ('plane_tas', 20.0, 'ground'), ('plane_tas', 60.0, 'learning'), ('plane_tas', 190.0, 'coast'),
    ('plane_tas', 245.0, 'ground'), ('plane_no_tas', 112.0, 'coast'),
    ('copter_drag', 100.0, 'learning'), ('copter_drag', 140.0, 'coast'),
    ('copter_drag', 54.5, 'inhibited'), ('quadplane', 70.0, 'inhibited'),
    ('quadplane', 130.0, 'learning'), ('copter_nodrag', 80.0, 'inhibited'),
    ('plane_crosswind_takeoff', 100.0, 'learning')])
def test_attached_in_flight(name, start, phase):
    flight = [one for one in flights.messages(name) if start <= one[0] < start + 6.0]
    found = phases(flight)
    known = [one for t, one in found if t > start + 1.6]
    if phase == 'inhibited' and name.startswith('copter'):
        known = known[:1]  # drag fusion begins soon after, or shows only in time that it never will
        assert known[0] in ('inhibited', 'unknown')
    else:
        assert set(known) == {phase}


def test_attached_in_flight_agrees_from_then_on():
    flight = [one for one in flights.messages('quadplane') if one[0] >= 105.0]
    true = [row for row in flights.truth('quadplane') if row[0] >= 107.0]
    score = agreement(phases(flight), true)
    assert score.merged >= 0.985
    assert score.exact >= 0.95


def test_restart_of_the_vehicle():
    monitor = WindPhaseMonitor()
    list(replay([one for one in flights.messages('copter_drag') if one[0] < 150.0], monitor))
    plane = iter(flights.messages('plane_tas'))
    state = None
    while not monitor.restarts:
        state = monitor.update(next(plane)[1])
    assert monitor.restarts == 1
    assert state.phase is WindPhase.UNKNOWN
    assert 'started again' in state.reason
    assert state.t < 5.0
    score = agreement(phases(plane, monitor), flights.truth('plane_tas'))
    assert score.merged >= 0.985
    assert score.exact >= 0.95
    assert monitor.restarts == 1


def test_gap_in_the_link():
    flight = [one for one in flights.messages('plane_tas') if not 60.0 <= one[0] < 90.0]
    score = agreement(phases(flight), [row for row in flights.truth('plane_tas')
                                       if not 59.0 <= row[0] < 91.0])
    assert score.merged >= 0.985


def test_disarmed_and_armed_again():
    def disarm(t, heartbeat):
        if 70.0 <= t < 80.0:
            heartbeat.base_mode &= ~128

    flight = flights.edit([one for one in flights.messages('plane_tas') if one[0] < 95.0],
                          'HEARTBEAT', disarm)
    found = [one[0] for one in spans(flight)]
    assert found == ['ground', 'inhibited', 'init', 'learning', 'ground', 'init', 'learning']


# -- what else is on the link ----------------------------------------------------------------------

def test_other_systems_and_components_are_passed_over():
    plane = flights.messages('plane_tas')
    expected = phases(plane)
    mixed = []
    for t, heard in plane:
        mixed.append((t, heard))
        if heard.get_type() == 'SYSTEM_TIME':
            mixed.append((t, message('SYSTEM_TIME', 255, 190, time_boot_ms=12)))
            mixed.append((t, message('SYSTEM_TIME', 1, 191, time_boot_ms=10 ** 9)))
            mixed.append((t, message('EKF_STATUS_REPORT', 2, 1, flags=167)))
            mixed.append((t, message('HEARTBEAT', 2, 1, type=2, autopilot=3)))
    assert phases(mixed, WindPhaseMonitor(system=1)) == expected


def test_first_autopilot_heard_is_followed():
    monitor = WindPhaseMonitor()
    monitor.update(message('HEARTBEAT', 255, 190, type=6, autopilot=8))
    monitor.update(message('HEARTBEAT', 7, 1, type=1, autopilot=3))
    monitor.update(message('HEARTBEAT', 8, 1, type=1, autopilot=3, base_mode=128))
    assert monitor.system == 7
    assert monitor.state().phase is WindPhase.GROUND


def test_values_that_are_no_numbers_change_nothing():
    nan = math.nan
    plane = flights.messages('plane_tas')
    expected = phases(plane)
    mixed = []
    for at, (t, heard) in enumerate(plane):
        mixed.append((t, heard))
        if at % 7 == 0:
            mixed += [(t, message('WIND', speed=nan, direction=nan)),
                      (t, message('VFR_HUD', airspeed=nan, groundspeed=nan, heading=270)),
                      (t, message('PARAM_VALUE', param_id='EK3_ENABLE', param_value=nan)),
                      (t, message('LOCAL_POSITION_NED', time_boot_ms=int(t * 1e3), x=nan, y=nan,
                                  z=nan, vx=nan, vy=nan, vz=nan))]
    assert phases(mixed) == expected


# -- a vehicle that estimates no wind --------------------------------------------------------------

def last_state(flight, parameters=None):
    monitor = WindPhaseMonitor(parameters)
    for _, heard in flight:
        monitor.update(heard)
    return monitor.state()


def test_copter_without_drag_fusion_is_not_estimated_rather_than_calm():
    flight = [one for one in flights.messages('copter_nodrag') if one[0] < 90.0]
    state = last_state(flight)
    assert state.phase is WindPhase.NOT_ESTIMATED
    assert 'drag' in state.reason
    assert math.isnan(state.speed)
    assert math.isnan(state.wind_n)
    assert not state.settled


def test_copter_of_unknown_parameters_shows_in_flight_that_it_has_no_drag_fusion():
    flight = [one for one in flights.without(flights.messages('copter_nodrag'), 'PARAM_VALUE')
              if one[0] < 90.0]
    assert last_state(flight).phase is WindPhase.NOT_ESTIMATED


@pytest.mark.parametrize(('name', 'value', 'word'), [
    ('AHRS_EKF_TYPE', 2.0, 'AHRS_EKF_TYPE'), ('EK3_ENABLE', 0.0, 'EK3_ENABLE')])
def test_ekf3_not_in_use(name, value, word):
    flight = [one for one in flights.messages('plane_tas') if one[0] < 60.0]
    flight = [*flight, (60.0, message('PARAM_VALUE', param_id=name, param_value=value))]
    state = last_state(flight)
    assert state.phase is WindPhase.NOT_ESTIMATED
    assert word in state.reason


def test_dcm_taking_over_in_flight_and_giving_back():
    flight = [one for one in flights.messages('plane_tas') if one[0] < 60.0]
    dcm = (60.0, message('STATUSTEXT', text='AHRS: DCM active'))
    assert last_state([*flight, dcm]).phase is WindPhase.NOT_ESTIMATED
    back = (60.1, message('STATUSTEXT', text='AHRS: EKF3 active'))
    assert last_state([*flight, dcm, back]).phase is WindPhase.LEARNING


# -- the state -------------------------------------------------------------------------------------

def test_state_says_where_the_wind_comes_from():
    state = last_state([one for one in flights.messages('plane_no_tas') if one[0] < 100.0])
    assert state.settled
    assert state.phase_name == 'learning'
    # Flown: 8 m/s from 300 degrees, so 4.0 m/s towards south and 6.9 towards east.
    assert state.speed == pytest.approx(8.0, abs=0.5)
    assert state.from_deg == pytest.approx(300.0, abs=3.0)
    assert (state.wind_n, state.wind_e) == (pytest.approx(-4.0, abs=0.5),
                                            pytest.approx(6.93, abs=0.5))
    assert state.t == pytest.approx(100.0, abs=0.1)
    assert state.since == pytest.approx(32.2, abs=0.5)
    assert not state.aiding_lost


def test_aiding_is_lost_before_the_coast():
    flight = flights.without_gps(
        [one for one in flights.messages('plane_tas') if one[0] < 64.0], (60.0, 70.0))
    state = last_state(flight)
    assert state.phase is WindPhase.LEARNING
    assert state.aiding_lost


def test_silence():
    monitor = WindPhaseMonitor()
    for t, heard in flights.messages('plane_tas'):
        if t > 60.0:
            break
        monitor.update(heard)
    t = monitor.t
    assert monitor.state(t + 1.0).phase is WindPhase.LEARNING
    late = monitor.state(t + SILENCE + 3.0)
    assert late.phase is WindPhase.UNKNOWN
    assert math.isnan(late.speed)
    assert not late.settled
    assert monitor.nothing_heard(12.0).phase is WindPhase.UNKNOWN
    assert '12 s' in monitor.state().reason
    monitor.update(message('SYSTEM_TIME', time_boot_ms=int(t * 1e3) + 50))
    assert monitor.state().phase is WindPhase.LEARNING


def test_before_anything_was_heard():
    state = WindPhaseMonitor().state()
    assert state.phase is WindPhase.UNKNOWN
    assert math.isnan(state.wind_e)


def test_phase_numbers_are_those_of_the_message():
    # dryden_wind_interfaces/msg/EkfWind.msg
    path = flights.DATA.parents[2] / 'dryden_wind_interfaces' / 'msg' / 'EkfWind.msg'
    constants = dict(line.split('#')[0].split()[1].split('=') for line in
                     path.read_text().splitlines() if line.startswith('uint8 ') and '=' in line)
    assert {phase.name: str(phase.value) for phase in WindPhase} == constants


@pytest.mark.parametrize(('estimate', 'flown', 'expected'), [
    ((0.0, 8.0), (0.0, 8.0), (0.0, 0.0)),       # both from the west
    ((8.0, 0.0), (0.0, 8.0), (11.314, -90.0)),  # from south (180), flown from west (270)
    ((0.0, -8.0), (0.0, 8.0), (16.0, 180.0)),
    ((-1.0, 0.1), (-1.0, -0.1), (0.2, -11.42)),  # across north: from 354 and from 6 degrees
])
def test_wind_error(estimate, flown, expected):
    speed, direction = wind_error(*estimate, *flown)
    assert speed == pytest.approx(expected[0], abs=1e-3)
    assert direction == pytest.approx(expected[1], abs=0.01)


def test_wind_error_without_a_number():
    assert math.isnan(wind_error(math.nan, 0.0, 1.0, 1.0)[0])
    speed, direction = wind_error(0.0, 0.0, 3.0, 4.0)
    assert speed == 5.0
    assert math.isnan(direction)


def test_variance_after_n_airspeed_samples_along_the_heading():
    # A scalar Kalman filter: 1/P = 1/P0 + n/R. Heading north, R = 2 + 0.3, five fusions in 0.6 s.
    variance = WindVariance()
    variance.reset(400.0, 10.0)
    variance.advance(10.0 + 5 * WindVariance.STEP + 1e-9, 0.0, 20.0, 2.0)
    assert variance.north == pytest.approx(1.0 / (1.0 / 400.0 + 5.0 / 2.3), rel=1e-9)
    # Across it: sideslip, R = 0.03 rad^2 * (20 m/s)^2 + 0.3.
    assert variance.east == pytest.approx(1.0 / (1.0 / 400.0 + 5.0 / 12.3), rel=1e-9)


# -- anything at all -------------------------------------------------------------------------------

number = st.floats(allow_nan=True, allow_infinity=True, width=32)
small = st.floats(0.0, 2.0, width=32) | number
anything = st.one_of(
    st.builds(lambda ms: ('SYSTEM_TIME', {'time_boot_ms': ms}), st.integers(0, 2 ** 32 - 1)),
    st.builds(lambda flags, v, p, a: ('EKF_STATUS_REPORT', {
        'flags': flags, 'velocity_variance': v, 'pos_horiz_variance': p, 'airspeed_variance': a}),
        st.sampled_from([0, 37, 128, 167, 303, 831, 1024, 65535]), small, small, small),
    st.builds(lambda kind, autopilot, mode, custom: ('HEARTBEAT', {
        'type': kind, 'autopilot': autopilot, 'base_mode': mode, 'custom_mode': custom}),
        st.sampled_from([1, 2, 6, 10, 20]), st.sampled_from([3, 3, 3, 8, 12]),
        st.sampled_from([81, 209]), st.integers(0, 30)),
    st.builds(lambda state: ('EXTENDED_SYS_STATE', {'vtol_state': state}), st.integers(0, 4)),
    st.builds(lambda speed, direction: ('WIND', {'speed': speed, 'direction': direction}),
              number, number),
    st.builds(lambda a, g, h: ('VFR_HUD', {'airspeed': a, 'groundspeed': g, 'heading': h}),
              number, st.floats(0, 30, width=32) | number, st.integers(-32768, 32767)),
    st.builds(lambda yaw: ('ATTITUDE', {'yaw': yaw}), number),
    st.builds(lambda vx, vy, z: ('LOCAL_POSITION_NED', {'vx': vx, 'vy': vy, 'z': z}),
              number, number, number),
    st.builds(lambda text: ('STATUSTEXT', {'text': text}), st.sampled_from([
        'AHRS: DCM active', 'AHRS: EKF3 active', 'EKF3 lane switch 1', 'Throttle armed',
        'Throttle disarmed', 'EKF3 IMU0 MAG0 in-flight yaw alignment complete',
        'Transition done', '', 'AHRS:  active'])),
    st.builds(lambda name, value: ('PARAM_VALUE', {'param_id': name, 'param_value': value}),
              st.sampled_from(['EK3_DRAG_BCOEF_X', 'EK3_DRAG_BCOEF_Y', 'EK3_DRAG_MCOEF',
                               'ARSPD_TYPE', 'ARSPD_USE', 'AHRS_EKF_TYPE', 'EK3_ENABLE',
                               'EK3_EAS_M_NSE', 'OTHER']),
              st.sampled_from([0.0, 1.0, 3.0, 9.5]) | number),
)
step = st.sampled_from([0, 20, 50, 100, 100, 100, 200, 1000, 6000, -100, -30000])


def check_state(state: EkfWindState, before: WindPhase) -> None:
    assert state.phase is before or state.phase in ALLOWED_TRANSITIONS[before]
    assert isinstance(state.reason, str)
    assert state.reason
    assert not state.settled or state.phase is WindPhase.LEARNING
    assert math.isnan(state.speed) or state.phase >= WindPhase.INIT
    assert math.isnan(state.from_deg) or 0.0 <= state.from_deg < 360.0
    assert state.since <= state.t + 1e-9


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(step, anything), max_size=120))
@example([(0, ('STATUSTEXT', {'text': 'Throttle armed'})),  # and then it was no ArduPilot at all
          (0, ('EKF_STATUS_REPORT', {'flags': 0, 'velocity_variance': 0.0,
                                     'pos_horiz_variance': 0.0, 'airspeed_variance': 0.0})),
          (0, ('HEARTBEAT', {'type': 1, 'autopilot': 8, 'base_mode': 81, 'custom_mode': 0}))])
def test_random_messages_make_no_impossible_transition(heard):
    monitor = WindPhaseMonitor()
    before = monitor.state().phase
    now = 30000
    for ms, (kind, fields) in heard:
        now = max(0, now + ms)
        made = message(kind, **fields)
        if hasattr(made, 'time_boot_ms') and kind != 'SYSTEM_TIME':
            made.time_boot_ms = now
        state = monitor.update(made)
        if state is None:
            assert monitor.state().phase is before
            continue
        check_state(state, before)
        before = state.phase


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(FLIGHTS), st.floats(0.0, 0.9), st.floats(0.0, 30.0),
       st.lists(st.floats(0.0, 250.0), max_size=3), st.integers(0, 2 ** 16))
def test_torn_flights_make_no_impossible_transition(name, lost, late, cuts, seed):
    flight = list(flights.jitter(flights.drop(flights.messages(name), lost, seed), late, seed))
    for cut in sorted(cuts):
        at = next((i for i, (t, _) in enumerate(flight) if t > cut), 0)
        flight = flight[at:] + flight[:at]  # a later part first: time goes back in between
    monitor = WindPhaseMonitor()
    before = monitor.state().phase
    for _, heard in flight[:4000]:
        state = monitor.update(heard)
        if state is not None:
            check_state(state, before)
            before = state.phase


def test_messages_without_a_source_are_taken():
    monitor = WindPhaseMonitor()
    heartbeat = SimpleNamespace(get_type=lambda: 'HEARTBEAT', type=1, autopilot=3, base_mode=81,
                                custom_mode=0)
    state = monitor.update(heartbeat)
    assert state is not None
    assert state.phase is WindPhase.GROUND
