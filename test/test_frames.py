"""Directions and axes: from, towards, ENU, SIM_WIND_*."""

import csv
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryden_wind_ros.gusts.frames import (
    SimWind,
    body_to_enu,
    enu_of_sim_wind,
    from_direction,
    gust_enu,
    mean_wind_enu,
    sim_wind,
    wrap_180,
    wrap_360,
)

GOLDEN = Path(__file__).parent / 'data' / 'golden' / 'sim_wind.csv'
finite = st.floats(-50.0, 50.0)


@pytest.mark.parametrize(('from_deg', 'towards_enu', 'right_enu'), [
    (0.0, (0.0, -8.0), (-1.0, 0.0)),     # from the north: moves south, right of it is west
    (90.0, (-8.0, 0.0), (0.0, 1.0)),     # from the east: moves west, right of it is north
    (180.0, (0.0, 8.0), (1.0, 0.0)),     # from the south: moves north, right of it is east
    (270.0, (8.0, 0.0), (0.0, -1.0)),    # from the west: moves east, right of it is south
])
def test_four_compass_points(from_deg, towards_enu, right_enu):
    assert mean_wind_enu(8.0, from_deg)[:2] == pytest.approx(towards_enu, abs=1e-12)
    assert gust_enu((0.0, 1.0, 0.0), from_deg)[:2] == pytest.approx(right_enu, abs=1e-12)
    assert from_direction(*towards_enu) == pytest.approx(from_deg)


def test_golden_sim_wind_values():
    with GOLDEN.open() as file:
        rows = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]
    assert len(rows) == 300
    for row in rows:
        got = sim_wind(row['mean_speed_mps'], row['from_deg'],
                       (row['u_mps'], row['v_mps'], row['w_mps']), row['up_mps'])
        assert got.speed == pytest.approx(row['sim_wind_spd'], abs=1e-9)
        assert wrap_180(got.direction - row['sim_wind_dir_deg']) == pytest.approx(0.0, abs=1e-9)
        assert got.direction_z == pytest.approx(row['sim_wind_dir_z_deg'], abs=1e-9)


def test_an_updraft_alone_is_plus_90_degrees():
    # Measured on SITL: DIR_Z = +90 is a pure updraft.
    assert sim_wind(0.0, 40.0, up=3.0) == SimWind(3.0, 40.0, 90.0)


@given(finite, st.floats(-1e4, 1e4), st.tuples(finite, finite, finite), finite)
def test_sim_wind_is_the_sum_of_mean_gust_and_updraft(speed, from_deg, gust, up):
    wind = sim_wind(abs(speed), from_deg, gust, up)
    assert 0.0 <= wind.direction < 360.0
    total = [m + g for m, g in zip(mean_wind_enu(abs(speed), from_deg, up),
                                   gust_enu(gust, from_deg), strict=True)]
    # Below 0.01 m/s of horizontal wind the direction is the mean's: off by that much at most.
    assert enu_of_sim_wind(wind) == pytest.approx(total, abs=0.021)
    if math.hypot(*total[:2]) > 0.011:
        assert enu_of_sim_wind(wind) == pytest.approx(total, abs=1e-9)


@given(st.floats(-1e6, 1e6))
def test_wrapping_stays_in_range_and_on_the_circle(degrees):
    for wrapped in (wrap_360(degrees), wrap_180(degrees)):
        assert math.cos(math.radians(wrapped - degrees)) == pytest.approx(1.0)
    assert 0.0 <= wrap_360(degrees) < 360.0
    assert -180.0 < wrap_180(degrees) <= 180.0


@pytest.mark.parametrize('bad', [
    (math.nan, 0.0, (0.0, 0.0, 0.0)), (8.0, math.inf, (0.0, 0.0, 0.0)),
    (8.0, 0.0, (0.0, math.nan, 0.0))])
def test_a_wind_that_is_no_number_is_refused(bad):
    with pytest.raises(ValueError, match='finite'):
        sim_wind(*bad)


@pytest.mark.parametrize(('yaw_deg', 'expected'), [
    (0.0, (5.0, 0.0, 1.0)), (90.0, (0.0, 5.0, 1.0)), (180.0, (-5.0, 0.0, 1.0)),
    (-90.0, (0.0, -5.0, 1.0))])
def test_forward_is_where_the_nose_points(yaw_deg, expected):
    # REP-103: yaw counts from east towards north.
    half = math.radians(yaw_deg) / 2
    assert body_to_enu((0.0, 0.0, math.sin(half), math.cos(half)),
                       (5.0, 0.0, 1.0)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize('orientation', [(0.0, 0.0, 0.0, 0.0), (math.nan, 0.0, 0.0, 1.0)])
def test_a_quaternion_of_zeros_or_nan_is_refused(orientation):
    with pytest.raises(ValueError, match='quaternion'):
        body_to_enu(orientation, (1.0, 0.0, 0.0))
