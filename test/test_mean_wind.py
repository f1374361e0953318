"""Mean winds by time, by height, recorded and set by hand."""

import itertools
import math

import numpy as np
import pytest

from dryden_wind_ros.gusts.conditions import MeanWind, Moment
from dryden_wind_ros.gusts.mean_wind import (
    Change,
    Clock,
    HandSet,
    LogProfile,
    PowerProfile,
    Record,
    RecordedWind,
    Remainder,
    ScheduledWind,
    TableProfile,
)

WEST = MeanWind.of(8.0, 270.0)


def moment(time, height=10.0, *, armed_at=None, restarted_at=0.0, boot=0.0):
    return Moment(tick=round((time - boot) / 0.05), time=time, position=(0.0, 0.0, height),
                  position_is_true=False, height=height, velocity=(0.0, 0.0, 0.0),
                  armed_at=armed_at, restarted_at=restarted_at)


def test_steps_and_ramps_of_speed_direction_and_updraft():
    wind = ScheduledWind(WEST, [
        Change(10.0, speed=12.0), Change(20.0, over=10.0, speed=2.0, up=3.0),
        Change(40.0, over=4.0, from_deg=310.0)])
    speed = {t: wind.at(moment(t)).speed for t in (0.0, 9.99, 10.0, 20.0, 25.0, 30.0, 90.0)}
    assert speed == {0.0: 8.0, 9.99: 8.0, 10.0: 12.0, 20.0: 12.0, 25.0: 7.0, 30.0: 2.0, 90.0: 2.0}
    assert [wind.at(moment(t)).up for t in (20.0, 25.0, 99.0)] == [0.0, 1.5, 3.0]
    assert [wind.at(moment(t)).from_deg for t in (40.0, 42.0, 44.0)] == [270.0, 290.0, 310.0]
    # A change that comes before another has ended goes on from where that one was.
    cut = ScheduledWind(WEST, [Change(0.0, 10.0, speed=18.0), Change(5.0, 1.0, speed=3.0)])
    assert [cut.at(moment(t)).speed for t in (0.0, 2.5, 5.0, 5.5, 6.0)] == [8., 10.5, 13., 8., 3.]


@pytest.mark.parametrize(('turn', 'halfway'), [
    ('short', 0.0), ('clockwise', 0.0), ('counterclockwise', 180.0)])
def test_a_direction_goes_the_short_way_round_or_as_told(turn, halfway):
    wind = ScheduledWind(MeanWind.of(8.0, 350.0), [Change(0.0, 10.0, from_deg=10.0, turn=turn)])
    assert wind.at(moment(5.0)).from_deg == pytest.approx(halfway, abs=1e-9)
    assert wind.at(moment(10.0)).from_deg == pytest.approx(10.0)


def test_times_count_from_boot_arming_or_restart():
    def speeds(clock, **at):
        wind = ScheduledWind(WEST, [Change(0.0, 10.0, speed=18.0)], clock=clock)
        return wind.at(moment(105.0, **at)).speed

    assert speeds(Clock.BOOT) == 18.0
    # A clock that counts from the epoch counts from the first tick heard.
    epoch = moment(1.7e9 + 5.0, boot=1.7e9)
    ramp = ScheduledWind(WEST, [Change(0.0, 10.0, speed=18.0)])
    assert ramp.at(epoch).speed == pytest.approx(13.0)
    assert speeds(Clock.ARMING) == 8.0
    assert speeds(Clock.ARMING, armed_at=102.0) == pytest.approx(11.0)
    assert speeds(Clock.RESTART) == 18.0
    assert speeds(Clock.RESTART, restarted_at=101.0) == pytest.approx(12.0)


def test_the_wind_of_a_height_follows_the_log_law_within_the_boundary_layer():
    # MIL-F-8785C: W20 ln(h/z0) / ln(20/z0) between 3 and 1000 ft; landing z0 0.15 ft.
    ft = 0.3048
    wind = ScheduledWind(WEST, profile=LogProfile(0.15 * ft, 20.0 * ft))
    for height in (3.0, 20.0, 200.0, 1000.0):
        expected = 8.0 * math.log(height / 0.15) / math.log(20.0 / 0.15)
        assert wind.at(moment(0.0, height * ft)).speed == pytest.approx(expected)
    assert wind.at(moment(0.0, 0.0)).speed == pytest.approx(wind.at(moment(0.0, 3.0 * ft)).speed)
    assert wind.at(moment(0.0, 900.0)).speed == pytest.approx(wind.at(moment(0.0, 304.8)).speed)


def test_the_wind_of_a_height_follows_the_power_law_or_a_table():
    power = ScheduledWind(WEST, profile=PowerProfile(1.0 / 7.0))
    assert power.at(moment(0.0, 80.0)).speed == pytest.approx(8.0 * 8.0**(1.0 / 7.0))
    table = TableProfile([0.0, 10.0, 110.0], [2.0, 4.0, 12.0], [350.0, 350.0, 30.0])
    sheared = ScheduledWind(MeanWind.of(4.0, 350.0), profile=table)
    for height, speed, from_deg in ((0.0, 2.0, 350.0), (10.0, 4.0, 350.0), (60.0, 8.0, 10.0),
                                    (500.0, 12.0, 30.0)):
        mean = sheared.at(moment(0.0, height))
        assert (mean.speed, mean.from_deg) == pytest.approx((speed, from_deg))
    # Twice the wind at the reference height is twice the wind everywhere, turned along.
    doubled = ScheduledWind(MeanWind.of(8.0, 90.0), profile=table)
    assert doubled.at(moment(0.0, 60.0))[:2] == pytest.approx((16.0, 110.0))


def test_a_record_is_met_at_its_times_and_linearly_between_and_its_end_is_told_once():
    generator = np.random.default_rng(3)
    times = np.cumsum(generator.uniform(0.05, 2.0, 200))
    enu = generator.uniform(-12.0, 12.0, (200, 3))
    wind = RecordedWind(Record('time', tuple(times), tuple(map(tuple, enu)), source='wind.csv'))
    for t, expected in zip(times, enu, strict=True):
        mean = wind.at(moment(t))
        assert mean.enu == tuple(expected)
        assert MeanWind.of(*mean[:3]).enu == pytest.approx(expected, abs=1e-11)
    between = generator.uniform(times[0], times[-1], 300)
    expected = np.column_stack([np.interp(between, times, column) for column in enu.T])
    assert np.array([wind.at(moment(t)).enu for t in between]) == pytest.approx(expected, abs=1e-12)
    assert wind.at(moment(0.0)).enu == tuple(enu[0])
    assert wind.news() == []
    assert wind.at(moment(times[-1] + 0.05)).enu == tuple(enu[-1])
    assert wind.at(moment(times[-1] + 9.0)).enu == tuple(enu[-1])
    [told] = wind.news()
    assert 'wind.csv' in told
    assert f'{times[-1]:.2f} s' in told
    assert wind.news() == []


def test_a_record_by_height_and_one_that_counts_from_arming():
    by_height = RecordedWind(Record('height', (10.0, 60.0), ((2.0, 0.0, 0.0), (6.0, 4.0, 0.5))))
    assert by_height.at(moment(99.0, 35.0)).enu == pytest.approx((4.0, 2.0, 0.25))
    assert by_height.at(moment(99.0, 900.0)).enu == (6.0, 4.0, 0.5)
    record = Record('time', (0.0, 10.0), ((0.0, 0.0, 0.0), (10.0, 0.0, 0.0)))
    later = RecordedWind(record, Clock.ARMING, offset=5.0)
    assert later.at(moment(50.0)).enu == (0.0, 0.0, 0.0)
    assert later.at(moment(50.0, armed_at=41.0)).enu == pytest.approx((4.0, 0.0, 0.0))


def test_what_is_set_by_hand_wins_and_the_rest_goes_on():
    schedule = ScheduledWind(WEST, [Change(0.0, 10.0, speed=18.0, from_deg=280.0, up=1.0)])
    hand = HandSet(schedule, speed=5.0)
    assert hand.at(moment(10.0))[:3] == pytest.approx((5.0, 280.0, 1.0))
    assert HandSet(schedule, from_deg=-90.0).at(moment(10.0))[:3] == pytest.approx(
        (18.0, 270.0, 1.0))


def test_smoothed_record_and_the_turbulence_left_have_the_turbulences_own_spectrum():
    # The same white gusts, once through the record's low-pass and once, independently, through
    # the high-pass: the variances add up to that of the gusts.
    generator = np.random.default_rng(5)
    smoothing, keep, n = 2.0, math.exp(-0.05 / 2.0), 20_000
    one, other = generator.normal(size=n), generator.normal(size=n)
    slow, low = 0.0, np.empty(n)
    for k, gust in enumerate(one):
        slow = low[k] = gust + keep * (slow - gust)
    remainder = Remainder(smoothing)
    high = np.array([remainder.step(k, (g, 0.0, 0.0))[0] for k, g in enumerate(other)])
    f = np.fft.rfftfreq(n, 0.05)
    band = (f > 0.02) & (f < 2.0)
    spectrum = np.abs(np.fft.rfft(low + high))**2 / n
    edges = np.geomspace(0.02, 2.0, 6)
    for a, b in itertools.pairwise(edges):
        inside = band & (f >= a) & (f < b)
        # Of m periodogram values the mean is off by 1/sqrt(m).
        assert spectrum[inside].mean() == pytest.approx(1.0, abs=4.0 / math.sqrt(inside.sum()))
    # A gust that stays is the record's, a quick one is left whole.
    steady = Remainder(1.0)
    for tick in range(200):
        left = steady.step(tick, (1.0, 0.0, 0.0))
    assert abs(left[0]) < 1e-3
    assert steady.step(200, (6.0, 0.0, 0.0))[0] == pytest.approx(5.0, rel=0.06)
