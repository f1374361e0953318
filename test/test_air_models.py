"""The air over a vehicle with the standards' models and with a field: ticks, time, drift."""

import dataclasses
import math

import numpy as np
import pytest

from dryden_wind_ros.gusts.air import SeededAir
from dryden_wind_ros.gusts.air_settings import AirSettings
from dryden_wind_ros.gusts.conditions import MeanWind
from dryden_wind_ros.gusts.field import TurbulenceField
from dryden_wind_ros.gusts.shared_air import SharedAir
from dryden_wind_ros.gusts.standard import StandardGust

TICK = 50_000_000
FIELD = AirSettings(mean_speed=8.0, mean_from_deg=270.0, seed=7, gusts='field', field_lead=0.0,
                    field_modes=1024)
STANDARD = AirSettings(mean_speed=8.0, seed=7, model='mil_f_8785c', span=2.0)
PLACE, STILL = (3.0, -4.0, 30.0), (0.0, 0.0, 0.0)


def fly(air, ticks, place=lambda k: PLACE, velocity=STILL):
    """Run the clock over ticks and return what blew."""
    seen = []
    for k in ticks:
        air.odometry((k - 1) * TICK, place(k - 1), velocity)
        seen.append(air.advance(k * TICK).tick)
    return seen


def field_gust(settings, place, time, **given):
    field = TurbulenceField(settings.seed, modes=settings.field_modes, life=settings.field_life)
    return settings.scale * field.gust([place], time, (8.0, 0.0, 0.0), **given)[0]


# ---- the standards

def test_the_standards_gust_is_the_seeds_own_and_blows_from_the_first_tick():
    ticks = fly(SeededAir(STANDARD), range(6))
    gust = StandardGust(7, span=2.0)
    for tick in ticks:
        expected = gust.step(tick.tick * 0.05, 8.0, 30.0, tick.airspeed)
        assert tick.gust == pytest.approx(expected, abs=1e-12)
        assert tick.rates == pytest.approx(gust.rates, abs=1e-12)
        assert tick.draws == tick.tick + 1
    assert all(ticks[0].gust)
    assert all(ticks[0].rates)


def test_missed_ticks_and_a_late_start_of_the_standards_use_up_their_draws():
    whole = fly(SeededAir(STANDARD), range(1200))
    holes = fly(SeededAir(STANDARD), [k for k in range(1200) if k % 7 not in (2, 3)])
    late = fly(SeededAir(STANDARD), range(100, 1200))
    for other in (holes, late):
        for tick in other[-50:]:  # w has forgotten its start after 55 s, 15 time constants
            assert tick.gust[2] == pytest.approx(whole[tick.tick].gust[2], abs=0.02)
        assert other[-1].draws == other[-1].tick + 1


def test_a_calm_of_the_standards_goes_on_from_the_kept_state():
    air = SeededAir(STANDARD)
    before = fly(air, range(5))[-1]
    air.configure(dataclasses.replace(STANDARD, mean_speed=0.0))
    calm = fly(air, range(5, 8))
    assert [tick.gust for tick in calm] == [(0.0, 0.0, 0.0)] * 3
    assert calm[-1].rates == (0.0, 0.0, 0.0)
    air.configure(STANDARD)
    after = fly(air, [8])[0]
    assert after.draws == 9
    assert np.linalg.norm(np.subtract(after.gust, before.gust)) < 1.0


def test_above_1000_ft_the_standards_blow_by_severity_without_any_wind():
    settings = dataclasses.replace(STANDARD, mean_speed=0.0, severity='severe')
    air = SeededAir(settings)
    tick = fly(air, range(2), lambda k: (0.0, 0.0, 3750 * 0.3048))[-1]
    assert all(tick.gust)
    assert air.scales(3750 * 0.3048).sigma_w == pytest.approx(23.0 * 0.3048)


def test_strength_below_1000_ft_is_that_of_the_wind_at_20_ft():
    """Half as strong there as at the vehicle."""

    class Sheared:
        def at(self, moment):
            return MeanWind.of(4.0 if moment.height < 10.0 else 8.0, 270.0)

    for settings in (STANDARD, FIELD):
        air = SeededAir(settings)
        air.follow_mean_wind(Sheared())
        fly(air, range(3))
        assert air.scales(30.0).sigma_w == pytest.approx(0.4)


# ---- the field

def test_the_gust_of_a_tick_is_the_fields_at_the_place_and_time():
    settings = dataclasses.replace(FIELD, scale=1.5, ground_height=5.0)
    air = SeededAir(settings)
    ticks = fly(air, range(1, 60), lambda k: (0.5 * k, 1.0, 40.0))
    for tick in (ticks[0], ticks[-1]):
        place = (0.5 * (tick.tick - 1), 1.0, 40.0)
        expected = field_gust(settings, place, 0.05 * tick.tick, heights=35.0)
        assert tick.gust_enu == pytest.approx(tuple(expected), abs=2e-5)
        assert tick.asked.position == pytest.approx(place)
        assert tick.draws == 0
    along, right, up = ticks[-1].gust
    east, north, high = ticks[-1].gust_enu
    assert (along, right, up) == pytest.approx((east, -north, high), abs=1e-9)


def test_a_late_start_and_missed_ticks_meet_the_same_field():
    whole = {tick.tick: tick.gust for tick in fly(SeededAir(FIELD), range(1, 200))}
    late = SeededAir(FIELD)
    for tick in fly(late, [k for k in range(150, 200) if k % 3]):
        assert tick.gust == pytest.approx(whole[tick.tick], abs=1e-5)


def test_a_restart_of_the_vehicle_meets_the_air_of_its_new_time():
    air = SeededAir(FIELD)
    first = fly(air, range(1, 100))
    again = fly(air, range(2, 20))
    assert air.restarts == 1
    for tick in again:
        assert tick.gust == pytest.approx(first[tick.tick - 1].gust, abs=1e-5)


def test_a_new_mean_wind_moves_the_air_on_from_where_it_is():
    """The drift is the integral over ticks: 100 ticks at 8 m/s to the east, then 4 to the north."""
    air = SeededAir(FIELD)
    before = fly(air, range(101))[-1]
    air.configure(dataclasses.replace(FIELD, mean_speed=4.0, mean_from_deg=180.0))
    after = fly(air, range(101, 121))
    assert after[-1].asked.drift == pytest.approx((40.0, 4.0, 0.0))
    rate = TurbulenceField(7).turnover_rate(1.0)
    assert after[-1].asked.age == pytest.approx(rate * (8.0 * 5.0 + 4.0 * 1.0))
    # No jump of phase: half the strength at once, of nearly the same air.
    jump = np.subtract(after[0].gust_enu, np.multiply(before.gust_enu, 0.5))
    assert np.linalg.norm(jump) < 0.25


def test_a_turn_of_the_mean_wind_turns_no_gust():
    air = SeededAir(FIELD)
    before = fly(air, range(101))[-1]
    air.configure(dataclasses.replace(FIELD, mean_from_deg=90.0))
    after = fly(air, [101])[0]
    assert np.linalg.norm(np.subtract(after.gust_enu, before.gust_enu)) < 0.3
    assert after.gust[0] == pytest.approx(-after.gust_enu[0])


def test_the_field_is_asked_for_when_and_where_sitl_will_feel_it():
    settings = dataclasses.replace(FIELD, field_lead=0.1)
    air = SeededAir(settings)
    tick = fly(air, range(1, 40), lambda k: (25.0 * 0.05 * k, 0.0, 30.0), (25.0, 0.0, 1.0))[-1]
    # The sample is one tick old: it is 0.15 s to the moment of arrival, 3.75 m further.
    time = 39 * 0.05 + 0.1
    place = (25.0 * time, 0.0, 30.15)
    assert tick.asked.position == pytest.approx(place)
    assert tick.asked.air_time == pytest.approx(time)
    assert tick.gust_enu == pytest.approx(tuple(field_gust(settings, place, time)), abs=2e-5)


def test_rates_are_the_differences_of_the_field_over_the_wing():
    span = 3.0
    settings = dataclasses.replace(FIELD, span=span)
    air = SeededAir(settings)
    # Nose to the north-east, wings level: a quaternion about up by 45 deg from east.
    turn = math.radians(45.0)
    quaternion = (0.0, 0.0, math.sin(turn / 2), math.cos(turn / 2))
    air.odometry(0, PLACE, STILL, False, lambda: quaternion)
    tick = air.advance(TICK).tick
    forward = np.array([math.cos(turn), math.sin(turn), 0.0])
    right = np.array([math.sin(turn), -math.cos(turn), 0.0])

    def at(axis, side):
        return field_gust(settings, tuple(PLACE + side * span / 2 * axis), 0.05)

    down = np.array([0.0, 0.0, -1.0])
    expected = ((at(right, 1) - at(right, -1)) @ down / span,
                (at(forward, -1) - at(forward, 1)) @ down / span,
                (at(forward, 1) - at(forward, -1)) @ right / span)
    assert tick.rates == pytest.approx(expected, abs=2e-5)


def test_rolling_gusts_of_the_field_are_as_strong_as_the_standards():
    """rms of the difference over the wing against sigma_p, with a span of 3 % of L_w."""
    field, height, span = TurbulenceField(5, modes=2048), 100.0, 3.0
    places = np.random.default_rng(1).uniform(-1e5, 1e5, (4000, 3))
    up = [field.gust(places + np.array([0.0, side * span / 2, 0.0]), 0.0, (8.0, 0.0, 0.0),
                     heights=height)[:, 2] for side in (1, -1)]
    sigma_p = 0.8 * math.sqrt(0.8 * (math.pi * height / (4 * span)) ** (1 / 3)
                              * math.pi**2 / (8 * span * height))
    assert np.sqrt(np.mean((up[0] - up[1]) ** 2)) / span == pytest.approx(sigma_p, rel=0.05)


# ---- a fleet in one field

def pair(**settings):
    shared = SharedAir()
    return [SeededAir(dataclasses.replace(FIELD, **settings), shared, rank) for rank in range(2)]


def test_two_vehicles_at_one_place_meet_one_air_though_they_booted_apart():
    first, second = pair()
    for k in range(1, 400):
        one = fly(first, [k + 1000])[0]
        other = fly(second, [k])[0]
        assert other.at.offset == pytest.approx(50.0)
        assert other.gust_enu == pytest.approx(one.gust_enu, abs=2e-5)


def test_a_fleet_of_several_processes_has_one_time_also_where_the_field_comes_later():
    """The first process has flown for 50 s more when the second joins; both in Dryden gusts."""
    told, following = SharedAir(), SharedAir(follows=True)
    first = SeededAir(dataclasses.replace(FIELD, gusts='dryden'), told, 0)
    other = SeededAir(dataclasses.replace(FIELD, gusts='dryden'), following, 1)
    fly(first, range(1000, 1010))
    fly(other, range(10))  # before anything was heard of the first
    following.follow(told.anchor())
    for air in (first, other):
        air.configure(FIELD)
    one, = fly(first, [1010])
    other_one, = fly(other, [10])
    # As it takes some time to come here, the common time may have gone on a little.
    assert other_one.at.offset == pytest.approx(50.0, abs=2.0)
    assert one.at.offset == 0.0


def test_a_restart_of_one_leaves_the_others_air_and_meets_what_it_would_have_met():
    first, second = pair()
    fly(first, range(1, 200))
    fly(second, range(1, 200))
    alone = {tick.tick: tick.gust_enu for tick in fly(SeededAir(FIELD), range(1, 400))}
    for restarted, other in ((second, first), (first, second)):
        now = other.newest.tick
        assert other.newest.gust_enu == pytest.approx(alone[now], abs=2e-5)
        back = [fly(restarted, [k])[0] for k in range(1, 10)]
        # Its time began anew; the air did not.
        assert back[0].asked.air_time == pytest.approx(now * 0.05, abs=0.051)
        for tick in back:
            common = round(tick.asked.air_time / 0.05)
            assert tick.gust_enu == pytest.approx(alone[common], abs=2e-5)
        fly(other, range(now + 1, now + 20))
        assert other.newest.gust_enu == pytest.approx(alone[now + 19], abs=2e-5)
        # Fly both on to one time, so that the next round begins alike.
        offset = round(restarted.newest.at.offset / 0.05)
        fly(restarted, range(10, now + 20 - offset))
        if restarted is second:
            break


def test_a_new_wind_for_all_moves_one_air_whoever_is_told_first():
    """The leader is 3 ticks ahead when both are told: the other looks up the leader's drift."""
    first, second = pair()
    for air in (first, second):
        fly(air, [1])
    fly(first, range(2, 104))
    fly(second, range(2, 101))
    for air in (first, second):
        air.configure(dataclasses.replace(FIELD, mean_speed=12.0))
    one = {tick.tick: tick.gust_enu for tick in fly(first, range(104, 160))}
    for tick in fly(second, range(101, 160)):
        if tick.tick in one:
            assert tick.gust_enu == pytest.approx(one[tick.tick], abs=2e-5)


def test_when_the_leader_is_gone_the_next_one_moves_the_air():
    first, second = pair()
    for air in (first, second):
        fly(air, [1])
    fly(first, range(2, 50))
    fly(second, range(2, 50))
    fly(second, range(50, 100))
    second.configure(dataclasses.replace(FIELD, mean_speed=0.5))
    fly(second, range(100, 200))
    assert second.newest.asked.drift[0] == pytest.approx(8.0 * 4.95 + 0.5 * 5.0, abs=0.5)


def test_with_one_clock_for_all_there_is_no_offset():
    shared = SharedAir(own_clocks=False)
    first, second = (SeededAir(FIELD, shared, rank) for rank in range(2))
    fly(first, range(100, 110))
    assert fly(second, [300])[0].at.offset == 0.0


# ---- settings

@pytest.mark.parametrize(('change', 'message'), [
    ({'model': 'tustin'}, "model is 'tustin'; it must be one of first_order, mil_f_8785c, mil_hd"),
    ({'severity': 'mild'}, "severity is 'mild'; it must be one of light, moderate, severe, or a"),
    ({'span': -1.0}, 'span is -1 m; it must be from 0 to 100 m'),
    ({'field_spectrum': 'pink'}, r"field\.spectrum is 'pink'; it must be one of dryden, von_kar"),
    ({'field_modes': 0}, r'field\.modes is 0; it must be from 64 to 65536'),
    ({'field_life': 9.0}, r'field\.life is 9; it must be from 0 to 5'),
    ({'field_lead': 2.0}, r'field\.lead is 2 s; it must be from 0 to 0\.5 s')])
def test_settings_that_cannot_be_are_refused_by_name(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(FIELD, **change)


def test_another_seed_model_or_kind_of_gusts_begins_anew_and_other_changes_do_not():
    air = SeededAir(STANDARD)
    fly(air, range(5))
    for change, anew in (({'scale': 2.0}, False), ({'gusts': 'off'}, False),
                         ({'gusts': 'dryden'}, False), ({'severity': '1e-3'}, True),
                         ({'model': 'mil_hdbk_1797b'}, True), ({'gusts': 'field'}, True),
                         ({'seed': 8}, True), ({'field_life': 0.0}, True),
                         ({'mean_up': 1.0}, False)):
        assert air.configure(dataclasses.replace(air.settings, **change)) == anew, change
