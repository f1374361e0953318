"""The air over one vehicle: numbered draws, missed ticks, restarts, settings."""

import dataclasses
import math
import random

import pytest

from dryden_wind_ros.gusts.air import SeededAir
from dryden_wind_ros.gusts.air_settings import AirSettings
from dryden_wind_ros.gusts.conditions import MeanWind
from dryden_wind_ros.gusts.dryden import DrydenGust, low_altitude_scales

TICK = 50_000_000
WIND = AirSettings(mean_speed=8.0, mean_from_deg=270.0, seed=7)


def fly(air, first, last, skip=lambda k: False):
    """Run the clock over ticks first..last and return {tick: gust}."""
    seen = {}
    for k in range(first, last + 1):
        if not skip(k):
            tick = air.advance(k * TICK).tick
            seen[tick.tick] = tick.gust
    return seen


def test_the_air_from_time_zero_is_the_seeds_own_run():
    air = SeededAir(WIND)
    reference, gust = DrydenGust(7), (0.0, 0.0, 0.0)
    for k, got in fly(air, 0, 400).items():
        # A vehicle standing on the ground: its airspeed is the wind that blew until now.
        airspeed = math.sqrt((8.0 + gust[0])**2 + gust[1]**2 + gust[2]**2)
        gust = reference.step(k * 0.05, 8.0, 0.0, airspeed)
        assert got == pytest.approx(gust, abs=1e-12)


def test_a_late_start_meets_the_same_draws_at_once():
    # After the first tick, u = sigma sqrt(1 - phi^2) n with n the tick's own draw.
    start = 600
    air = SeededAir(WIND)
    gust = fly(air, start, start + 1)[start + 1]
    generator = random.Random(7)
    draws = [generator.gauss(0.0, 1.0) for _ in range(3 * (start + 1))][-3:]
    scales = low_altitude_scales(0.0, 8.0)
    for value, draw, sigma, length in zip(
            gust, draws, (scales.sigma_u, scales.sigma_v, scales.sigma_w),
            (scales.length_u, scales.length_v, scales.length_w), strict=True):
        phi = math.exp(-0.05 * 8.0 / length)
        assert value == pytest.approx(sigma * math.sqrt(1.0 - phi * phi) * draw, rel=1e-9)


def test_late_starts_agree_to_the_last_bit_once_the_start_is_forgotten():
    early, late = fly(SeededAir(WIND), 0, 8000), fly(SeededAir(WIND), 60, 8000)
    assert all(early[k] == late[k] for k in range(7000, 8001))


def test_lost_clock_messages_change_nothing_at_the_ticks_that_were_heard():
    whole = fly(SeededAir(WIND), 0, 2000)
    generator = random.Random(1)
    lossy_air = SeededAir(WIND)
    lossy = fly(lossy_air, 0, 2000, skip=lambda k: 0 < k < 2000 and generator.random() < 0.05)
    assert 1800 < len(lossy) < 1960
    assert all(whole[k] == gust for k, gust in lossy.items())
    assert lossy_air.grid.missed == 2001 - len(lossy)
    assert len(lossy_air.history) == 2001


def test_a_long_gap_uses_up_its_draws_but_steps_ten_ticks_only():
    air = SeededAir(WIND)
    fly(air, 0, 100)
    before = air.newest.gust
    after = air.advance(100_100 * TICK).tick
    assert after.draws == 100_100
    assert after.tick == 100_100
    assert len(air.history) == 111
    # u keeps most of its state over 0.5 s: phi = exp(-0.5 * 8 / 23) = 0.84
    assert abs(after.gust[0] - 0.84 * before[0]) < 3.0
    same_draws = fly(SeededAir(WIND), 100_000, 100_101)[100_101]
    assert air.advance(100_101 * TICK).tick.gust != same_draws  # other state, but
    assert air.newest.draws == 100_101


def test_time_going_back_restarts_the_seed_and_clears_the_history():
    air = SeededAir(WIND)
    first = fly(air, 0, 300)
    again = air.advance(0)
    assert again.restarted
    assert again.tick.gust == (0.0, 0.0, 0.0)
    assert len(air.history) == 1
    assert fly(air, 1, 300) == {k: gust for k, gust in first.items() if k}
    assert air.restarts == 1


def test_time_standing_still_advances_nothing():
    air = SeededAir(WIND)
    fly(air, 0, 10)
    draws = air.newest.draws
    assert [air.advance(10 * TICK + i).tick for i in range(50)] == [None] * 50
    assert air.newest.draws == draws


def test_changes_keep_the_air_but_a_new_seed_or_method_restarts_it():
    plain, changed = SeededAir(WIND), SeededAir(WIND)
    fly(plain, 0, 200)
    fly(changed, 0, 200)
    # A standing vehicle's airspeed does not depend on where the wind comes from.
    turned = dataclasses.replace(WIND, mean_from_deg=90.0, profile='sitl')
    assert not changed.configure(turned)
    for k in range(201, 260):
        one, two = plain.advance(k * TICK).tick, changed.advance(k * TICK).tick
        assert two.gust == pytest.approx(one.gust, abs=1e-9)
        assert two.gust_enu[:2] == pytest.approx([-x for x in one.gust_enu[:2]], abs=1e-9)
    assert changed.configure(dataclasses.replace(turned, seed=8))
    one, two = plain.advance(260 * TICK).tick, changed.advance(260 * TICK).tick
    assert two.gust != pytest.approx(one.gust)
    assert changed.restarts == 1
    assert len(changed.history) == 261


def test_scale_multiplies_the_gust_and_not_the_mean_wind():
    air = SeededAir(WIND)
    fly(air, 0, 200)
    gust = air.newest.gust
    air.configure(dataclasses.replace(WIND, scale=3.0))
    tick = air.advance(201 * TICK).tick
    assert tick.mean_enu == pytest.approx((8.0, 0.0, 0.0))
    # One tick moves a gust by a few sigma sqrt(1 - phi^2), a tenth of sigma here; three times that.
    assert tick.gust == pytest.approx([3 * x for x in gust], abs=3.0)
    assert abs(tick.gust[0]) > 1.8 * abs(gust[0])


def test_no_mean_wind_means_no_gust_and_goes_on_from_the_kept_state():
    air = SeededAir(WIND)
    fly(air, 0, 400)
    kept = air._turbulence._gust.state
    air.configure(dataclasses.replace(WIND, mean_speed=0.0))
    calm = [air.advance(k * TICK).tick for k in range(401, 450)]
    assert all(tick.gust == (0.0, 0.0, 0.0) for tick in calm)
    assert calm[-1].sim_wind.speed == 0.0
    assert calm[-1].draws == 449
    air.configure(WIND)
    back = air.advance(450 * TICK).tick
    assert back.draws == 450
    # one step of 0.05 s from the kept state: |phi x| plus at most a few sigma sqrt(1 - phi^2)
    assert abs(back.gust[0] - kept[0]) < 1.5


@pytest.mark.parametrize(('gusts', 'turbulence'), [('off', 0.0), ('sitl', 1.6), ('dryden', 0.0)])
def test_turbulence_of_sitl_only_where_asked(gusts, turbulence):
    settings = dataclasses.replace(WIND, gusts=gusts, scale=2.0)
    assert settings.turbulence == pytest.approx(turbulence)  # 0.1 x 8 m/s x 2
    tick = SeededAir(settings)
    fly(tick, 0, 50)
    assert (tick.newest.gust == (0.0, 0.0, 0.0)) == (gusts != 'dryden')


def test_each_tick_takes_the_odometry_of_its_own_time():
    def climb(order):
        air = SeededAir(WIND)
        for k in range(200):
            messages = [('odom', k), ('clock', k)]
            for kind, i in messages if order == 'odom first' else messages[::-1]:
                if kind == 'odom':
                    air.odometry(i * TICK, (0.0, 0.0, 0.1 * i), (0.0, 0.0, 2.0))
                else:
                    air.advance(i * TICK)
        return air.history.columns()

    one, two = climb('odom first'), climb('clock first')
    assert one['u'].tolist()[2:] == two['u'].tolist()[2:]
    assert one['height'][100] == pytest.approx(9.9)  # of one tick before tick 100


def test_odometry_of_another_clock_is_used_as_it_comes():
    air = SeededAir(dataclasses.replace(WIND, ground_height=5.0))
    fly(air, 0, 10)
    air.odometry(1_767_225_600_000_000_000, (0.0, 0.0, 30.0), (8.0, 0.0, 0.0))
    tick = air.advance(11 * TICK).tick
    assert tick.height == 25.0


def test_an_airspeed_is_measured_in_the_air_that_blows_now():
    air = SeededAir(dataclasses.replace(WIND, gusts='off'))
    air.advance(0)
    air.odometry(0, (0.0, 0.0, 10.0), (0.0, 6.0, 0.0))  # flying north in a wind towards the east
    assert air.advance(TICK).tick.airspeed == pytest.approx(10.0)  # 3-4-5 triangle, times 2


@pytest.mark.parametrize(('change', 'named'), [
    ({'mean_speed': 61.0}, 'mean_speed is 61'), ({'mean_speed': -1.0}, 'mean_speed is -1'),
    ({'mean_up': 21.0}, 'mean_up is 21'), ({'scale': 0.0}, 'scale is 0'),
    ({'scale': 5.1}, 'scale is 5.1'), ({'scale': math.nan}, 'scale is nan'),
    ({'gusts': 'strong'}, "gusts is 'strong'"), ({'method': 'rk4'}, "method is 'rk4'"),
    ({'seed': 1.5}, 'seed is 1.5'), ({'seed': -1}, 'seed is -1'), ({'seed': True}, 'seed is True'),
    ({'profile': 'log'}, "profile is 'log'"), ({'mean_from_deg': math.inf}, 'mean_from_deg is inf'),
])
def test_bad_settings_are_named(change, named):
    with pytest.raises(ValueError, match=named.replace('.', r'\.')):
        dataclasses.replace(WIND, **change)


class _Rising:
    """A mean wind that grows with time and height."""

    def at(self, moment):
        return MeanWind.of(0.01 * moment.tick + 0.1 * moment.height, 180.0)


class _Pulse:
    """A gust of 3 m/s towards the east, for ticks 100 to 119."""

    def at(self, moment, mean):
        return (3.0 if 100 <= moment.tick < 120 else 0.0, 0.0, 0.0)

    def over(self, moment):
        return moment.tick >= 120


def test_a_mean_wind_may_follow_time_and_height_until_one_is_set_by_hand():
    air = SeededAir(dataclasses.replace(WIND, gusts='off'))
    air.follow_mean_wind(_Rising())
    air.odometry(0, (0.0, 0.0, 20.0), (0.0, 0.0, 0.0))
    fly(air, 0, 100)
    assert air.newest.sim_wind.speed == pytest.approx(3.0)  # 1 m/s by time, 2 by height
    assert air.newest.mean.enu == pytest.approx((0.0, 3.0, 0.0))  # from the south
    air.configure(dataclasses.replace(air.settings, scale=2.0))
    assert fly(air, 101, 101)
    assert air.newest.sim_wind.speed == pytest.approx(3.01)
    air.configure(dataclasses.replace(air.settings, mean_speed=5.0))
    assert fly(air, 102, 102)
    assert air.newest.sim_wind.speed == pytest.approx(5.0)


@pytest.mark.parametrize('gusts', ['off', 'dryden'])
def test_a_further_gust_adds_to_turbulence_and_is_forgotten_when_it_is_over(gusts):
    # In a wind towards the north, a pulse towards the east comes from the left: it is v.
    settings = dataclasses.replace(WIND, mean_from_deg=180.0, gusts=gusts)
    plain, hit = SeededAir(settings), SeededAir(settings)
    hit.add_gust(_Pulse())
    for k in range(150):
        calm, blown = plain.advance(k * TICK).tick, hit.advance(k * TICK).tick
        pulse = 3.0 if 100 <= k < 120 else 0.0
        assert blown.discrete_enu == (pulse, 0.0, 0.0)
        if k <= 100:  # later the airspeed differs, and with it the turbulence
            assert blown.gust_enu[0] - calm.gust_enu[0] == pytest.approx(pulse)
            assert blown.gust[1] - calm.gust[1] == pytest.approx(pulse)
    assert not hit._added
