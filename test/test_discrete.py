"""Discrete gusts: shapes, the certification rule's own amplitude, how a vehicle meets them."""

import math

import pytest

from dryden_wind_ros.gusts.conditions import MeanWind, Moment
from dryden_wind_ros.gusts.discrete import (
    LEAD,
    BlowingGust,
    DiscreteGust,
    certification_amplitude,
    shape_at,
)

CALM = MeanWind.of(0.0, 270.0)


def moment(tick, *, velocity=(20.0, 0.0, 0.0), height=0.0, restarted_at=0.0):
    return Moment(tick=tick, time=tick * 0.05, position=(0.0, 0.0, height), position_is_true=False,
                  height=height, velocity=velocity, armed_at=None, restarted_at=restarted_at)


def blow(gust, ticks, mean=CALM, start=1.0, **at):
    """Return {time at which it is flown: what the gust adds}."""
    blowing, seen = BlowingGust(gust, start), {}
    for tick in range(ticks):
        now = moment(tick, **at)
        seen[round(now.time + LEAD, 9)] = blowing.at(now, mean)
    return seen


@pytest.mark.parametrize(('length', 'altitude', 'equivalent'), [
    # CS 25.341(a)(5)(i): U_ref at sea level, 4572 m and 18 288 m, and halfway between.
    (107.0, 0.0, 17.07), (107.0, 4572.0, 13.41), (107.0, 18288.0, 6.36),
    (107.0, 2286.0, 15.24), (107.0, 11430.0, 9.885),
    (9.0, 0.0, 17.07 * (9.0 / 107.0)**(1.0 / 6.0)),
])
def test_a_gust_without_an_amplitude_has_that_of_the_rule(length, altitude, equivalent):
    # ICAO standard atmosphere: density at 0, 2286, 4572, 11 430 and 18 288 m over that at 0.
    ratio = {0.0: 1.0, 2286.0: 0.7980, 4572.0: 0.6292, 11430.0: 0.2777, 18288.0: 0.0941}[altitude]
    amplitude = certification_amplitude(length, altitude)
    assert amplitude == pytest.approx(equivalent / math.sqrt(ratio), rel=1e-3)
    assert certification_amplitude(length, altitude, 0.8) == pytest.approx(0.8 * amplitude)


def test_the_rules_amplitude_is_that_of_the_height_where_the_gust_is_met():
    gust = DiscreteGust(length=107.0, direction='up')
    peak = max(up for _, _, up in blow(gust, 300, height=4572.0).values())
    assert peak == pytest.approx(13.41 / math.sqrt(0.6292), rel=2e-3)


def test_shapes_are_those_of_the_rules():
    # One-minus-cosine: 0 at 0, half at H/2, whole at H, 0 from 2H on. Ramp: the same, then held.
    xs = (-0.1, 0.0, 0.5, 1.0, 1.5, 2.0, 5.0)
    assert [shape_at('one_minus_cosine', x) for x in xs] == pytest.approx([0, 0, .5, 1, .5, 0, 0])
    assert [shape_at('ramp', x) for x in xs] == pytest.approx([0, 0, .5, 1, 1, 1, 1])


def test_a_vehicle_meets_the_peak_after_the_length_flown_through_the_air():
    # 15 m at 20 m/s: 0.75 s.
    seen = blow(DiscreteGust(amplitude=5.0, length=15.0, direction='up'), 80)
    assert seen[1.75] == pytest.approx((0.0, 0.0, 5.0))
    assert seen[1.0] == seen[2.5] == seen[0.5] == pytest.approx((0.0, 0.0, 0.0), abs=1e-12)
    # A hovering vehicle is passed at the speed of the wind that carries the gust.
    hover = blow(DiscreteGust(amplitude=5.0, length=15.0, direction='up'), 80,
                 mean=MeanWind.of(10.0, 90.0), velocity=(0.0, 0.0, 0.0))
    assert hover[2.5][2] == pytest.approx(5.0)


def test_a_start_between_two_ticks_is_kept():
    seen = blow(DiscreteGust(amplitude=8.0, duration=1.0, direction='up'), 80, start=1.02)
    for t, (_, _, up) in seen.items():
        assert up == pytest.approx(8.0 * shape_at('one_minus_cosine', t - 1.02), abs=1e-9)


@pytest.mark.parametrize(('direction', 'expected'), [
    # The mean wind comes from 270: the air moves east, and south is to its right.
    ('along', (6.0, 0.0, 0.0)), ('across', (0.0, -6.0, 0.0)), ('up', (0.0, 0.0, 6.0)),
    ('azimuth', (0.0, 6.0, 0.0)),  # from 180, a south wind, moves north
])
def test_directions(direction, expected):
    gust = DiscreteGust('ramp', amplitude=6.0, duration=1.0, direction=direction, azimuth=180.0)
    assert blow(gust, 80, mean=MeanWind.of(8.0, 270.0))[3.0] == pytest.approx(expected, abs=1e-12)
    against = DiscreteGust('ramp', amplitude=-6.0, duration=1.0, direction=direction, azimuth=180.0)
    assert blow(against, 80, mean=MeanWind.of(8.0, 270.0))[3.0] == pytest.approx(
        tuple(-x for x in expected), abs=1e-12)


def test_a_gust_ends_when_it_has_passed_and_a_ramp_when_the_air_begins_anew():
    passing = BlowingGust(DiscreteGust(amplitude=5.0, duration=0.5), 0.0)
    ramp = BlowingGust(DiscreteGust('ramp', amplitude=5.0, duration=0.5), 0.0)
    for tick in range(30):
        passing.at(moment(tick), CALM)
        ramp.at(moment(tick), CALM)
    assert passing.over(moment(30))
    assert not ramp.over(moment(30))
    assert ramp.at(moment(30, restarted_at=1.5), CALM) == (0.0, 0.0, 0.0)
    assert ramp.over(moment(30, restarted_at=1.5))


@pytest.mark.parametrize(('wrong', 'text'), [
    ({'amplitude': 5.0}, 'a length .m. or a duration .s.'),
    ({'amplitude': 5.0, 'length': 9.0, 'duration': 1.0}, 'not both'),
    ({'length': 150.0}, 'length is 150 m; .* from 9 to 107 m'),
    ({'duration': 1.0}, 'amplitude is missing'),
    ({'shape': 'ramp', 'length': 20.0}, 'amplitude is missing'),
    ({'shape': 'box', 'amplitude': 5.0, 'length': 9.0}, "shape is 'box'; it must be one of"),
    ({'direction': 'down', 'length': 9.0}, "direction is 'down'; it must be one of along"),
    ({'amplitude': math.nan, 'length': 9.0}, 'amplitude is nan; it must be from -60 to 60 m/s'),
    ({'amplitude': 0.0, 'length': 9.0}, 'amplitude is 0'),
    ({'amplitude': 5.0, 'duration': 0.01}, 'duration is 0.01; it must be from 0.05'),
])
def test_a_wrong_gust_is_refused_by_name(wrong, text):
    with pytest.raises(ValueError, match=text):
        DiscreteGust(**wrong)
