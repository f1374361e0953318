"""Advice on what EKF3's wind needs: said when it holds, in words a pilot can act on, once."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import ekf_flights as flights

from dryden_wind_ros.ekf.advice import (
    Level,
    Vehicle,
    WindAdvisor,
    as_text,
    check_dead_parameters,
    check_estimator,
    check_process_noise,
    check_sensors,
    check_take_off,
    check_trust,
    vehicle_of,
)
from dryden_wind_ros.ekf.phase import EkfWindState, WindPhase, WindPhaseMonitor

GOOD_PLANE = {'AHRS_EKF_TYPE': 3.0, 'EK3_ENABLE': 1.0, 'AHRS_OPTIONS': 3.0, 'ARSPD_TYPE': 2.0,
              'ARSPD_USE': 1.0, 'EK3_WIND_P_NSE': 0.1, 'EK3_DRAG_BCOEF_X': 0.0,
              'EK3_DRAG_BCOEF_Y': 0.0, 'EK3_DRAG_MCOEF': 0.0}


def state(phase, settled=False, t=50.0):
    return EkfWindState(phase, t, settled, False, 'because', 1.0, 2.0, 2.2, 243.0, t)


def codes(advice):
    return [one.code for one in advice]


def plane(**parameters):
    return WindAdvisor({**GOOD_PLANE, **parameters}, vehicle=Vehicle.PLANE)


def test_nothing_to_say_of_a_plane_that_is_set_up_well():
    assert plane().current() == []
    assert as_text([]) == 'no advice'


@pytest.mark.parametrize(('parameters', 'code', 'level', 'words'), [
    ({'AHRS_WND_SPD': 8.0}, 'ahrs_wnd', Level.WARN, ['AHRS_WND_SPD = 8', 'to 0']),
    ({'AHRS_WND_ENBL': 1.0}, 'ahrs_wnd', Level.WARN, ['DCM']),
    ({'AHRS_EKF_TYPE': 2.0}, 'ekf3_not_used', Level.ERROR, ['AHRS_EKF_TYPE to 3']),
    ({'EK3_ENABLE': 0.0}, 'ekf3_off', Level.ERROR, ['EK3_ENABLE to 1']),
    ({'AHRS_OPTIONS': 0.0}, 'dcm_fallback', Level.WARN, ['AHRS_OPTIONS to 1']),
    ({'AHRS_OPTIONS': 32.0}, 'dcm_fallback', Level.WARN, ['AHRS_OPTIONS to 33']),
    ({'ARSPD_USE': 0.0}, 'no_airspeed', Level.WARN, ['ARSPD_USE to 1']),
    ({'ARSPD_USE': 2.0}, 'no_airspeed', Level.WARN, ['zero throttle']),
    ({'ARSPD_TYPE': 0.0}, 'no_airspeed', Level.WARN, ['ARSPD_TYPE']),
])
def test_each_finding_names_the_parameter_and_its_value(parameters, code, level, words):
    advice = plane(**parameters).current()
    assert codes(advice) == [code]
    assert advice[0].level is level
    for word in words:
        assert word in advice[0].text


def test_dead_parameters_at_zero_are_fine():
    assert check_dead_parameters({'AHRS_WND_ENBL': 0.0, 'AHRS_WND_DIR': 0.0}) == []


def test_quadplane_needs_both_fallbacks_off():
    assert codes(check_estimator({'AHRS_OPTIONS': 1.0}, Vehicle.QUADPLANE)) == ['dcm_fallback']
    assert check_estimator({'AHRS_OPTIONS': 3.0}, Vehicle.QUADPLANE) == []
    assert check_estimator({'AHRS_OPTIONS': 0.0}, Vehicle.COPTER) == []


def test_copter_without_drag_fusion_is_told_the_parameters():
    off = {'EK3_DRAG_BCOEF_X': 0.0, 'EK3_DRAG_BCOEF_Y': 0.0, 'EK3_DRAG_MCOEF': 0.0}
    advice = check_sensors(off, Vehicle.COPTER)
    assert codes(advice) == ['no_drag_fusion']
    assert advice[0].level is Level.ERROR
    for name in off:
        assert name in advice[0].text
    assert check_sensors({**off, 'EK3_DRAG_MCOEF': 0.082}, Vehicle.COPTER) == []
    assert check_sensors({}, Vehicle.COPTER) == []  # not known is not off


@pytest.mark.parametrize(('noise', 'gust', 'noisy', 'wanted'), [
    (0.1, 0.0, False, '0.02'),    # steady wind
    (0.02, 0.0, False, None),
    (0.1, 2.0, False, None),      # strongly varying
    (0.02, 2.0, False, '0.1'),
    (0.1, 0.7, False, None),
    (0.1, 0.0, True, '0.05'),     # noisy airspeed
    (0.05, 2.0, True, None),
    (0.1, math.nan, False, None),  # wind not known
    (1.5, 0.0, False, '0.02'),
])
def test_process_noise_against_the_wind_flown(noise, gust, noisy, wanted):
    advice = check_process_noise({'EK3_WIND_P_NSE': noise}, gust, noisy)
    if wanted is None:
        assert advice == []
    else:
        assert codes(advice) == ['wind_noise']
        assert wanted in advice[0].text


@pytest.mark.parametrize(('heading', 'wind_from', 'error'), [
    (270.0, 250.0, None), (270.0, 240.0, None),     # within 30 degrees
    (253.6, 180.0, 8),    # plane_crosswind_takeoff: 7.6 m/s in the log
    (348.0, 290.0, 7),    # quadplane: 6.6 m/s in the log
    (10.0, 320.0, 6), (350.0, 40.0, 6),             # across north
    (90.0, 270.0, None),  # straight down the wind: along the heading it sees all of it
])
def test_take_off_off_the_wind(heading, wind_from, error):
    advice = check_take_off(heading, 8.0, wind_from)
    if error is None:
        assert advice == []
    else:
        assert codes(advice) == ['take_off_off_wind']
        assert f'about {error} m/s' in advice[0].text


def test_take_off_in_an_unknown_wind_or_without_airspeed():
    assert check_take_off(90.0, math.nan, 0.0) == []
    assert check_take_off(math.nan, 8.0, 0.0) == []
    assert check_take_off(90.0, 8.0, 0.0, has_airspeed=False) == []


def test_a_quadplane_is_told_of_its_transition_and_a_copter_of_nothing():
    plane, = check_take_off(348.0, 8.0, 290.0)
    quadplane, = check_take_off(348.0, 8.0, 290.0, vehicle=Vehicle.QUADPLANE)
    assert plane.text.startswith('Take-off 58 degrees')
    assert quadplane.text.startswith('Transition to forward flight 58 degrees')
    assert 'ake-off' not in quadplane.text
    assert 'ake off' not in quadplane.text
    assert 'towards 290 degrees' in quadplane.text
    assert check_take_off(348.0, 8.0, 290.0, vehicle=Vehicle.COPTER) == []


@pytest.mark.parametrize(('vehicle', 'airspeed', 'takes', 'never'), [
    (Vehicle.COPTER, False, 'half a second', 'turns'),
    (Vehicle.PLANE, True, 'about 3 s', 'up to 20 s'),
    (Vehicle.QUADPLANE, False, 'up to 20 s', '3 s'),
])
def test_relearning_takes_the_time_of_this_vehicle(vehicle, airspeed, takes, never):
    advice, = check_trust(state(WindPhase.RELEARN), vehicle, airspeed)
    assert takes in advice.text
    assert never not in advice.text


def test_an_estimate_far_from_the_wind_flown_says_how_long_it_will_take():
    found = dataclasses.replace(state(WindPhase.LEARNING), settles_in=43.0)
    advice, = check_trust(found)
    assert 'The wind has changed' in advice.text
    assert 'about 45 s' in advice.text
    assert 'turns' not in check_trust(state(WindPhase.LEARNING), Vehicle.COPTER)[0].text


def test_the_other_knob_is_named_where_the_vehicle_has_it():
    old, = check_process_noise({'EK3_WIND_P_NSE': 0.1}, 0.0)
    new, = check_process_noise({'EK3_WIND_P_NSE': 0.1, 'EK3_WIND_PSCALE': 1.0}, 0.0)
    assert 'only knob' not in old.text + new.text
    assert 'EK3_WIND_PSCALE' not in old.text
    assert 'EK3_WIND_PSCALE' in new.text
    copter, = check_process_noise({'EK3_WIND_P_NSE': 0.02}, 2.0, True, Vehicle.COPTER)
    assert '0.2 suits it better' in copter.text  # its default, and no airspeed sensor to be noisy


@pytest.mark.parametrize(('phase', 'settled', 'code'), [
    (WindPhase.INIT, False, 'not_settled'), (WindPhase.LEARNING, False, 'not_settled'),
    (WindPhase.LEARNING, True, None), (WindPhase.RELEARN, False, 'relearning'),
    (WindPhase.COAST, False, 'frozen'), (WindPhase.GROUND, False, None)])
def test_estimate_not_to_be_trusted_yet(phase, settled, code):
    assert codes(check_trust(state(phase, settled))) == ([] if code is None else [code])


def test_everything_is_said_once_and_again_for_the_next_flight():
    advisor = plane(AHRS_OPTIONS=0.0)
    advisor.set_wind(8.0, 180.0)
    said = advisor.update(state(WindPhase.GROUND)) + advisor.update(state(WindPhase.INHIBITED))
    assert codes(said) == ['dcm_fallback']
    said = advisor.update(state(WindPhase.INIT), heading_deg=254.0)
    assert codes(said) == ['take_off_off_wind', 'not_settled']
    assert advisor.update(state(WindPhase.INIT), heading_deg=254.0) == []
    assert advisor.update(state(WindPhase.LEARNING)) == []
    assert codes(advisor.current()) == ['dcm_fallback', 'take_off_off_wind', 'not_settled']
    assert advisor.update(state(WindPhase.LEARNING, settled=True)) == []
    assert codes(advisor.current()) == ['dcm_fallback']
    for _ in range(2):  # each outage is news
        assert codes(advisor.update(state(WindPhase.COAST))) == ['frozen']
        assert codes(advisor.update(state(WindPhase.RELEARN))) == ['relearning']
        assert advisor.update(state(WindPhase.LEARNING, settled=True)) == []
    advisor.update(state(WindPhase.GROUND))
    said = advisor.update(state(WindPhase.INIT), heading_deg=254.0)
    assert codes(said) == ['take_off_off_wind', 'not_settled']


def test_an_estimate_that_is_no_longer_settled_is_news_again_after_a_while():
    advisor = plane()
    assert codes(advisor.update(state(WindPhase.LEARNING, t=10.0))) == ['not_settled']
    for seconds in (3.0, 30.0):  # settled for a moment, which is not worth a word, and for long
        since = 100.0 + seconds
        for t in (since, since + seconds):
            assert advisor.update(state(WindPhase.LEARNING, settled=True, t=t)) == []
        said = advisor.update(state(WindPhase.LEARNING, t=since + seconds + 0.1))
        assert codes(said) == (['not_settled'] if seconds > 10.0 else [])
        assert advisor.update(state(WindPhase.LEARNING, t=since + seconds + 0.2)) == []
    advisor.update(state(WindPhase.LEARNING, settled=True, t=300.0))
    advisor.update(state(WindPhase.LEARNING, settled=True, t=330.0))
    # After an outage it is said already that the estimate is not to be relied on.
    assert codes(advisor.update(state(WindPhase.COAST, t=331.0))) == ['frozen']
    assert codes(advisor.update(state(WindPhase.RELEARN, t=340.0))) == ['relearning']
    assert advisor.update(state(WindPhase.LEARNING, t=343.0)) == []


def test_worst_comes_first():
    advisor = plane(EK3_ENABLE=0.0, ARSPD_USE=0.0, EK3_WIND_P_NSE=0.02)
    advisor.set_wind(8.0, 250.0, gust_sigma=1.5)
    levels = [one.level for one in advisor.current()]
    assert levels == sorted(levels, reverse=True)
    assert len(levels) == 3


@pytest.mark.parametrize(('name', 'vehicle', 'expected'), [
    ('plane_tas', Vehicle.PLANE, {'not_settled', 'frozen', 'relearning'}),
    ('plane_no_tas', Vehicle.PLANE, {'no_airspeed', 'not_settled', 'frozen', 'relearning'}),
    ('plane_crosswind_takeoff', Vehicle.PLANE, {'take_off_off_wind', 'not_settled'}),
    ('quadplane', Vehicle.QUADPLANE, {'take_off_off_wind', 'not_settled', 'frozen',
                                      'relearning'}),
    ('copter_nodrag', Vehicle.COPTER, {'no_drag_fusion'}),
    ('copter_drag', Vehicle.COPTER, {'not_settled', 'frozen', 'relearning'})])
def test_what_is_said_in_the_recorded_flights(name, vehicle, expected):
    monitor = WindPhaseMonitor()
    advisor = WindAdvisor()
    advisor.set_wind(8.0, flights.MEAN_WIND_FROM[name])
    said = []
    heading = mav_type = vtol = None
    for _, heard in flights.messages(name):
        kind = heard.get_type()
        if kind == 'HEARTBEAT':
            mav_type = heard.type
        elif kind == 'EXTENDED_SYS_STATE':
            vtol = heard.vtol_state
        elif kind == 'ATTITUDE':
            heading = math.degrees(heard.yaw)
        elif kind == 'PARAM_VALUE':
            advisor.set_parameter(heard.param_id, heard.param_value)
        found = monitor.update(heard)
        if found is not None and mav_type is not None and found.t > 20.0:
            advisor.vehicle = vehicle_of(mav_type, {}, vtol)
            said += advisor.update(found, heading if heading is not None else math.nan)
    assert advisor.vehicle is vehicle
    assert set(codes(said)) == expected


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(GOOD_PLANE)), st.floats(-1e6, 1e6)),
       st.sampled_from(Vehicle), st.floats(), st.floats(), st.floats(), st.floats())
def test_any_parameters_get_advice_in_whole_sentences(parameters, vehicle, speed, angle, gust,
                                                      heading):
    advisor = WindAdvisor(parameters, vehicle=vehicle)
    advisor.set_wind(speed, angle, gust)
    advisor.update(state(WindPhase.INHIBITED))
    advisor.update(state(WindPhase.INIT), heading)
    advice = advisor.current()
    assert len(set(codes(advice))) == len(advice)
    for one in advice:
        assert one.text.endswith('.')
        assert not {'nan', 'inf'} & set(one.text.split())
