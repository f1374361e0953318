"""Many vehicles stepped together equal as many stepped one by one."""

from __future__ import annotations

import math
import random
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dryden_wind_ros.gusts.dryden import METHODS, DrydenGust, DrydenGustFleet

STEPS = 800  # a fleet makes the draws of 256 at once


def rows_of(value, n):
    return np.broadcast_to(value, (n,)).tolist()


def largest_difference(method, seeds, calls):
    """Return how far any row ever is from its single vehicle, m/s."""
    n = len(seeds)
    fleet = DrydenGustFleet(seeds, method)
    singles = [DrydenGust(seed, method) for seed in seeds]
    worst = 0.0
    for call in calls:
        together = fleet.step(*call)
        columns = [rows_of(value, n) for value in call]
        apart = [gust.step(*row) for gust, *row in zip(singles, *columns, strict=True)]
        worst = max(worst, float(abs(together - apart).max()))
    return worst


@pytest.mark.parametrize('method', METHODS)
@pytest.mark.parametrize('n', [1, 3, 70])
class TestRowsEqualSingles:
    def test_the_same_inputs_for_all(self, method, n):
        calls = [(0.05 * k, 8.0, 20.0, 12.0) for k in range(STEPS)]
        assert largest_difference(method, range(n), calls) <= 1e-12

    def test_inputs_that_change(self, method, n):
        rng = np.random.default_rng(1)
        calls = [(0.05 * k, rng.uniform(0.1, 15, n), rng.uniform(-5, 400, n), rng.uniform(0, 30, n))
                 for k in range(STEPS)]
        assert largest_difference(method, range(n), calls) <= 1e-12

    def test_clocks_of_their_own_some_standing_still_and_winds_that_stop(self, method, n):
        rng = np.random.default_rng(2)
        t = np.zeros(n)
        calls = []
        for _ in range(STEPS):
            t = t + rng.uniform(-0.02, 0.08, n)
            calls.append((t, rng.uniform(0, 15, n) * (rng.random(n) > 0.1), 15.0,
                          rng.uniform(0, 30, n)))
        assert largest_difference(method, range(n), calls) <= 1e-12

    def test_some_fall_behind_and_all_go_on_together(self, method, n):
        t = np.zeros(n)
        calls = []
        for k in range(STEPS):
            t = t + 0.05
            if 250 < k < 265:
                t[::2] -= 0.05  # these make fewer steps
            if 600 < k < 615:
                t[1::2] -= 0.05  # now the others have made as few
            calls.append((t.copy(), 8.0, 20.0, 12.0))
        assert largest_difference(method, range(n), calls) <= 1e-12


@given(data=st.data(), method=st.sampled_from(METHODS),
       seeds=st.lists(st.integers(-2**65, 2**65), min_size=1, max_size=5))
@settings(deadline=None, max_examples=150)
def test_rows_equal_singles_for_any_calls(data, method, seeds):
    n = len(seeds)

    def one_or_each(low, high):
        number = st.floats(low, high)
        return st.one_of(number, st.lists(number, min_size=n, max_size=n).map(np.array))

    calls = data.draw(st.lists(st.tuples(
        one_or_each(0.0, 5.0), one_or_each(0.0, 20.0), one_or_each(-10.0, 500.0),
        one_or_each(0.0, 40.0)), max_size=8))
    if method == 'euler':  # whose steps can grow without bound: compare while they are small
        calls = [(t, np.minimum(wind, 3.0), np.maximum(height, 10.0), np.minimum(airspeed, 5.0))
                 for t, wind, height, airspeed in calls]
    assert largest_difference(method, seeds, calls) <= 1e-12


def test_draws_are_the_gauss_of_every_seed():
    """So fast a flight leaves no memory: phi is 0 and w is sigma_w = 1 m/s times the draw."""
    seeds = [0, 7, 2**40, -3]
    fleet = DrydenGustFleet(seeds)
    fleet.step(0.0, 10.0, 3.0, 0.0)
    gauss = [random.Random(seed).gauss for seed in seeds]
    for k in range(1, 700):
        gusts = fleet.step(0.5 * k, 10.0, 3.0, 1e4)
        draws = [[g(0.0, 1.0) for _ in range(3)] for g in gauss]
        np.testing.assert_allclose(gusts[:, 2], [d[2] for d in draws], rtol=0, atol=1e-13)


def test_the_result_is_the_callers_own():
    fleet = DrydenGustFleet([1, 2])
    fleet.step(0.0, 8.0, 10.0, 0.0)
    gusts = fleet.step(0.05, 8.0, 10.0, 0.0)
    kept = gusts.copy()
    fleet.step(0.10, 8.0, 10.0, 0.0)
    np.testing.assert_array_equal(gusts, kept)
    before = fleet.state
    gusts[:] = 99.0
    before_is_untouched = fleet.state
    np.testing.assert_array_equal(before, before_is_untouched)


def test_the_callers_arrays_may_change_between_calls():
    fleet, plain = DrydenGustFleet([1, 2]), DrydenGustFleet([1, 2])
    t = np.zeros(2)
    for k in range(5):
        t[:] = 0.05 * k
        result = fleet.step(t, 8.0, 10.0, 0.0)
        np.testing.assert_array_equal(result, plain.step(0.05 * k, 8.0, 10.0, 0.0))


def test_shapes():
    fleet = DrydenGustFleet(range(4))
    assert len(fleet) == 4
    assert fleet.state.shape == (4, 3)
    assert fleet.step(0.0, [8, 8, 8, 8], np.float32(10.0), np.array(5)).shape == (4, 3)


@pytest.mark.parametrize(('position', 'bad', 'message'), [
    (0, [1.0, 2.0], r'^t has the shape \(2,\); it must be one number or \(3,\)'),
    (1, [[8.0, 8.0, 8.0]], r'^mean_wind has the shape \(1, 3\)'),
    (0, math.nan, '^t is nan; it must be a finite number'),
    (1, [1.0, 2.0, -0.5], r'^mean_wind is -0\.5 m/s; it must not be negative'),
    (1, -2.0, r'^mean_wind is -2\.0 m/s; it must not be negative'),
    (2, [1.0, math.inf, 1.0], r'^height\[1\] is inf; it must be a finite number'),
    (2, math.inf, '^height is inf; it must be a finite number'),
    (3, [1.0, 1.0, math.nan], r'^airspeed\[2\] is nan; it must be a finite number')])
def test_bad_input_is_named_and_changes_nothing(position, bad, message):
    fleet, plain = DrydenGustFleet(range(3)), DrydenGustFleet(range(3))
    for each in (fleet, plain):
        each.step(0.0, 8.0, 10.0, 5.0)
        each.step(0.05, 8.0, 10.0, 5.0)
    arguments = [0.1, 8.0, 10.0, 5.0]
    arguments[position] = bad
    with pytest.raises(ValueError, match=message):
        fleet.step(*arguments)
    np.testing.assert_array_equal(
        fleet.step(0.1, 8.0, 10.0, 5.0), plain.step(0.1, 8.0, 10.0, 5.0))


@pytest.mark.filterwarnings('ignore:overflow')
def test_large_finite_numbers_are_no_infinities():
    fleet = DrydenGustFleet(range(3))
    fleet.step(0.0, 8.0, 10.0, 0.0)
    assert np.isfinite(fleet.step(0.05, 8.0, np.full(3, 1e200), np.full(3, 1e200))).all()


def test_a_fleet_needs_seeds():
    with pytest.raises(ValueError, match='seeds is empty'):
        DrydenGustFleet([])
    with pytest.raises(TypeError, match='seed is None'):
        DrydenGustFleet([1, None])
    with pytest.raises(TypeError, match=r'seed is 1\.5'):
        DrydenGustFleet([1, 1.5])
    with pytest.raises(ValueError, match="method is 'x'"):
        DrydenGustFleet([1], 'x')


# ---- in programs and threads

def run_python(code):
    return subprocess.run([sys.executable, '-W', 'ignore::DeprecationWarning', '-c',
                           textwrap.dedent(code)], capture_output=True, text=True, timeout=60)


def test_a_program_ends_cleanly_with_a_large_fleet():
    result = run_python("""
        from dryden_wind_ros.gusts.dryden import DrydenGustFleet
        fleet = DrydenGustFleet(range(500))
        for k in range(3):
            fleet.step(0.05 * k, 8.0, 10.0, 0.0)
        """)
    assert (result.returncode, result.stdout, result.stderr) == (0, '', '')


def test_fleets_in_several_threads_do_not_disturb_one_another():
    from concurrent.futures import ThreadPoolExecutor

    def fly(seed):
        fleet = DrydenGustFleet(range(seed, seed + 100))
        return [fleet.step(0.05 * k, 8.0, 10.0, 0.0) for k in range(200)][-1]

    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(fly, (0, 100, 200)))
    for seed, result in zip((0, 100, 200), together, strict=True):
        np.testing.assert_array_equal(result, fly(seed))
