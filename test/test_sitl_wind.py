"""SITL's own filter on the wind: what is set, and what is flown."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryden_wind_ros.gusts.sitl_wind import SitlWindFilter, sitl_wind_enu, sitl_wind_speed_at


@pytest.mark.parametrize(('direction', 'east', 'north'), [
    (0.0, 0.0, -8.0), (90.0, -8.0, 0.0), (180.0, 0.0, 8.0), (270.0, 8.0, 0.0)])
def test_direction_is_where_the_wind_comes_from(direction: float, east: float,
                                                north: float) -> None:
    assert sitl_wind_enu(8.0, direction, 0.0) == pytest.approx((east, north, 0.0), abs=1e-12)


def test_plus_90_degrees_of_tilt_is_a_pure_updraft() -> None:
    # measured on SITL
    assert sitl_wind_enu(3.0, 123.0, 90.0) == pytest.approx((0.0, 0.0, 3.0), abs=1e-12)


def test_one_physics_step_is_the_formula() -> None:
    wind = SitlWindFilter(5.0, physics_step=0.002)
    wind.step(0.002, 10.0, 0.0, 0.0)
    assert wind.speed == pytest.approx(10.0 * 0.002 / (0.002 + 5.0 / (2.0 * math.pi)), rel=1e-12)


def test_default_time_constant_is_0_80_s() -> None:
    wind = SitlWindFilter(5.0)
    wind.step(0.80, 10.0, 0.0, 0.0)
    assert wind.speed == pytest.approx(10.0 * (1.0 - math.exp(-1.0)), rel=0.01)


def test_time_constant_parameter_has_a_floor_of_0_1() -> None:
    assert SitlWindFilter(0.0).time_constant == pytest.approx(0.0159, abs=1e-4)


@pytest.mark.parametrize(('parameter', 'tau', 'kept'), [
    # facts measured on SITL: sqrt(tau / (tau + TC / 2 pi))
    (5.0, 0.2, 0.45), (5.0, 1.0, 0.75), (5.0, 4.5, 0.92),
    (0.1, 0.2, 0.96), (0.1, 1.0, 0.99), (0.1, 4.5, 1.00)])
def test_gust_keeps_the_share_of_its_sigma_that_sitl_leaves(parameter: float, tau: float,
                                                            kept: float) -> None:
    draw = random.Random(5)
    wind = SitlWindFilter(parameter, speed=20.0, direction=180.0)
    dt = min(tau / 15.0, 0.05)
    phi = math.exp(-dt / tau)
    gust, given_squares, flown_squares = 0.0, 0.0, 0.0
    for _ in range(int(2500 * tau / dt)):
        gust = phi * gust + math.sqrt(1.0 - phi * phi) * draw.gauss(0.0, 1.0)
        wind.step(dt, 20.0 + gust, 180.0, 0.0)
        given_squares += gust * gust
        flown_squares += (wind.speed - 20.0) ** 2
    assert math.sqrt(flown_squares / given_squares) == pytest.approx(kept, abs=0.02)


@pytest.mark.parametrize(('start', 'target', 'between'), [(350.0, 10.0, 0.0), (10.0, 350.0, 0.0),
                                                          (170.0, 190.0, 180.0)])
def test_direction_turns_the_short_way(start: float, target: float, between: float) -> None:
    wind = SitlWindFilter(5.0, speed=8.0, direction=start)
    wind.step(wind.time_constant * math.log(2.0), 8.0, target, 0.0)
    off = (wind.direction - between + 180.0) % 360.0 - 180.0
    assert abs(off) < 0.1


@given(st.lists(st.floats(0.002, 0.3), min_size=1, max_size=20),
       st.floats(0.0, 60.0), st.floats(-720.0, 720.0), st.floats(-90.0, 90.0))
def test_result_does_not_depend_on_how_often_it_is_called(
        steps: list[float], speed: float, direction: float, tilt: float) -> None:
    many, once = SitlWindFilter(2.0, direction=90.0), SitlWindFilter(2.0, direction=90.0)
    for dt in steps:
        many.step(dt, speed, direction, tilt)
    ahead = once.ahead(sum(steps), speed, direction, tilt)
    assert once.vector() == (0.0, 0.0, 0.0)  # it was only looked at
    assert once.step(sum(steps), speed, direction, tilt) == pytest.approx(ahead, abs=1e-6)
    assert many.vector() == pytest.approx(once.vector(), abs=1e-6)


def test_a_settled_filter_stands_still_exactly() -> None:
    wind = SitlWindFilter(0.1)
    wind.step(2.0, 8.123, 271.5, -3.25)
    assert (wind.speed, wind.direction, wind.direction_z) == (8.123, 271.5, -3.25)


def test_time_that_does_not_advance_changes_nothing() -> None:
    wind = SitlWindFilter(5.0, speed=4.0, direction=100.0)
    assert wind.step(0.0, 50.0, 0.0, 90.0) == wind.step(-1.0, 50.0, 0.0, 90.0)
    assert wind.speed == 4.0


@pytest.mark.parametrize('bad', [math.nan, math.inf])
def test_time_constant_that_is_no_number_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match='SIM_WIND_TC'):
        SitlWindFilter(bad)


@pytest.mark.parametrize(('profile', 'height', 'expected'), [
    (0, 10.0, 0.41 * 8.0), (0, 60.0, 8.0), (0, 200.0, 8.0), (0, 0.0, 0.0), (0, -2.0, 0.0),
    (1, 10.0, 8.0), (1, 0.0, 8.0),
    (2, 60.0, 8.0), (2, 160.0, 9.0), (2, 10.0, 7.5)])
def test_profiles_of_sim_wind_t(profile: int, height: float, expected: float) -> None:
    # 0.41 of the wind at 10 m, nothing on the ground: facts measured on SITL
    assert sitl_wind_speed_at(height, 8.0, profile) == pytest.approx(expected, abs=0.03)


def test_speed_is_never_negative() -> None:
    assert sitl_wind_speed_at(0.0, 0.1, 2, 60.0, 0.01) == 0.0
