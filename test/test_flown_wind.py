"""The wind that SITL flies, from the values that SIM_WIND_* take."""

from __future__ import annotations

import math

import pytest

from dryden_wind_ros.gusts.flown_wind import FlownWind


def flown(time: float | None, **values: float) -> FlownWind:
    wind = FlownWind()
    for name, value in values.items():
        wind.set(f'SIM_WIND_{name}', value, time)
    return wind


def test_first_5_s_after_boot_are_calm():
    wind = flown(1.0, T=1.0, SPD=8.0)
    wind.advance(4.9)
    assert wind.at() == (0.0, 0.0, 0.0)
    wind.advance(30.0)
    assert math.hypot(*wind.at()) == pytest.approx(8.0, abs=1e-6)


def test_slow_filter_takes_its_own_time():
    # SIM_WIND_TC 5 s is a time constant of 5 / (2 pi) = 0.796 s: 63 % of a step after that.
    wind = flown(6.0, T=1.0, TC=5.0, DIR=0.0, SPD=0.0)
    wind.set('SIM_WIND_SPD', 10.0, 20.0)
    wind.advance(20.0 + 5.0 / (2.0 * math.pi))
    east, north, up = wind.at()
    assert north == pytest.approx(-6.32, abs=0.05)
    assert (east, up) == pytest.approx((0.0, 0.0), abs=1e-6)


def test_the_filter_stands_still_while_it_is_calm():
    # SITL's filter starts 5 s after boot from 0 degrees; 0.796 s later 63 % of the turn is made.
    wind = flown(0.5, T=1.0, TC=5.0, DIR=90.0, SPD=10.0)
    wind.advance(5.0 + 5.0 / (2.0 * math.pi))
    east, north, _ = wind.at()
    assert math.degrees(math.atan2(-east, -north)) == pytest.approx(0.632 * 90.0, abs=0.5)


@pytest.mark.parametrize('time', [60.0, None], ids=['recorded at that time', 'before any time'])
def test_who_is_met_in_flight_has_flown_its_wind_for_long(time):
    """A log that begins in flight, a bridge that is started then: no ramp from calm."""
    wind = flown(time, SPD=8.0, DIR=270.0, T=1.0)
    wind.advance(60.05)
    assert wind.at() == pytest.approx((8.0, 0.0, 0.0), abs=1e-6)


def test_a_restart_begins_calm_with_the_values_of_before():
    wind = flown(60.0, SPD=8.0, DIR=270.0, T=1.0)
    wind.restart()
    wind.advance(2.0)
    assert wind.at() == (0.0, 0.0, 0.0)
    wind.advance(20.0)
    assert wind.at()[0] == pytest.approx(8.0, abs=1e-3)


def test_wind_that_fades_towards_the_ground_needs_the_height():
    wind = flown(6.0, T=0.0, TC=0.1, SPD=8.0)
    wind.advance(31.0)
    assert math.isnan(wind.at()[0])
    # 0.41 of the wind at 10 m, as measured on SITL.
    assert math.hypot(*wind.at(10.0)) == pytest.approx(0.41 * 8.0, abs=0.03)


def test_nothing_is_known_before_the_wind_was_heard():
    wind = flown(6.0, T=1.0, DIR=90.0)
    assert not wind.known
    assert all(map(math.isnan, wind.at(10.0)))


def test_turbulence_of_sitl_is_told_as_what_cannot_be_followed():
    assert flown(6.0, SPD=5.0).notes == ()
    assert 'SIM_WIND_TURB 2' in flown(6.0, TURB=2.0).notes[0]
