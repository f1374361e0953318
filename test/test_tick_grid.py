"""The tick grid: sim time to numbered ticks, each once."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dryden_wind_ros.gusts.tick_grid import (
    Step,
    TickGrid,
    TickRate,
    tick_number,
    tick_number_ns,
)


def ns(seconds):
    return round(seconds * 1_000_000_000)


def ticks_of(grid, times):
    return [a.tick for a in map(grid.advance, map(ns, times)) if a.step is not Step.NONE]


def test_arduplanes_times_fall_two_by_two_into_the_same_tick():
    # Measured on ArduPlane with SYSTEM_TIME at 20 Hz: 40 and 60 ms apart in turn.
    assert [tick_number(t) for t in (1.745, 1.805, 1.845, 1.905)] == [34, 36, 36, 38]


@given(st.integers(0, 10**9), st.integers(-50, 49))
def test_a_time_up_to_a_millionth_of_a_tick_early_counts_as_the_tick(k, early_ns):
    # floor(t / 0.05 + 1e-6) in exact arithmetic
    time_ns = k * 50_000_000 + early_ns
    exact = (Fraction(time_ns, 50_000_000) + Fraction(1, 10**6)).__floor__()
    assert tick_number_ns(time_ns) == exact == k


def test_a_clock_of_1_khz_gives_each_number_once():
    grid = TickGrid()
    ticks = ticks_of(grid, [i / 1000 for i in range(1001)])
    assert ticks == list(range(21))
    assert grid.missed == 0


def test_a_clock_at_25_ms_with_gaps_of_40_reaches_every_number():
    # ArduPlane's answer to a request for 25 ms: 20, 20, 20, 40 ms.
    times, t = [], 3.0
    for i in range(400):
        times.append(t)
        t += 0.040 if i % 4 == 3 else 0.020
    grid = TickGrid()
    ticks = ticks_of(grid, times)
    assert ticks == list(range(60, ticks[-1] + 1))
    assert grid.missed == 0
    assert abs(grid.rate - 20.0) < 0.2


def test_a_clock_of_10_hz_misses_every_second_tick_and_says_at_what_rate_the_air_changes():
    grid = TickGrid()
    advances = [grid.advance(ns(0.1 * i)) for i in range(101)]
    assert [a.gap for a in advances[1:]] == [2] * 100
    assert grid.missed == 100
    assert abs(grid.rate - 10.0) < 0.2


def test_a_rate_counts_what_happened_and_not_the_ticks_between():
    rate = TickRate()
    for tick in range(0, 400, 4):
        rate.reached(tick)
    assert abs(rate.rate - 5.0) < 0.1  # every fourth tick of 20 Hz
    rate.reached(3)
    assert rate.rate == 0.0


def test_time_that_goes_back_starts_a_new_count():
    grid = TickGrid()
    ticks_of(grid, [10.0, 10.05, 10.2])
    back = grid.advance(ns(2.0))
    assert (back.step, back.tick) == (Step.BACK, 40)
    assert grid.missed == 0


def test_a_message_out_of_order_by_one_tick_is_ignored():
    grid = TickGrid()
    assert ticks_of(grid, [10.0, 10.05, 10.0, 10.05, 10.1]) == [200, 201, 202]


def test_a_clock_from_the_epoch_is_counted_from_its_first_tick():
    grid = TickGrid()
    start = 1_767_225_600.0
    assert ticks_of(grid, [start + 0.01, start + 0.06, start + 0.11]) == [0, 1, 2]
    assert grid.time_ns(2) == ns(start + 0.1)


def test_a_jump_to_the_epoch_is_another_clock_and_not_a_gap_of_years():
    grid = TickGrid()
    ticks_of(grid, [10.0, 10.05])
    jump = grid.advance(ns(1_767_225_600.0))
    assert (jump.step, jump.tick, grid.missed) == (Step.BACK, 0, 0)
    back = grid.advance(ns(10.1))
    assert (back.step, back.tick) == (Step.BACK, 202)


@given(st.lists(st.integers(0, 10**11), min_size=1, max_size=60))
def test_no_number_is_given_out_twice_between_restarts(times):
    grid = TickGrid()
    seen = []
    for t in times:
        advance = grid.advance(t)
        if advance.step in (Step.FIRST, Step.BACK):
            seen = [advance.tick]
        elif advance.step is Step.FORWARD:
            assert advance.tick > seen[-1]
            assert advance.gap == advance.tick - seen[-1]
            seen.append(advance.tick)
