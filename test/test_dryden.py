"""The gust model: scales, one vehicle, and its statistics."""

from __future__ import annotations

import csv
import math
import random
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dryden_wind_ros.gusts.dryden import (
    METHODS,
    DrydenGust,
    DrydenGustFleet,
    low_altitude_scales,
)

GOLDEN = Path(__file__).parent / 'data' / 'golden'
RUNS = sorted(path.stem for path in GOLDEN.glob('*_seed*.csv'))
TOLERANCE = {'euler': 1e-12, 'exact': 2e-4}


def read_run(name: str) -> list[list[float]]:
    with open(GOLDEN / f'{name}.csv', newline='', encoding='utf-8') as file:
        return [[float(x) for x in row] for row in list(csv.reader(file))[1:]]


# ---- golden runs

def test_the_golden_runs_are_here():
    assert len(RUNS) == 12


@pytest.mark.parametrize('name', RUNS)
def test_a_golden_run_is_reproduced(name):
    _, seed, method = name.split('_')
    gust = DrydenGust(int(seed.removeprefix('seed')), method)
    for line, (t, wind, height, airspeed, *expected) in enumerate(read_run(name), 2):
        assert gust.step(t, wind, height, airspeed) == pytest.approx(
            expected, rel=0, abs=TOLERANCE[method]), f'{name}.csv line {line}'


@pytest.mark.parametrize('name', RUNS)
def test_a_fleet_reproduces_a_golden_run(name):
    _, seed, method = name.split('_')
    seed = int(seed.removeprefix('seed'))
    rows = read_run(name)
    fleet = DrydenGustFleet([seed + 1, seed], method)
    result = [fleet.step(*row[:4])[1] for row in rows]
    np.testing.assert_allclose(result, [row[4:] for row in rows], rtol=0, atol=TOLERANCE[method])


# ---- scales

# MIL-F-8785C 3.7.3.4, evaluated by hand at 10, 32.8, 49.2, 100, 164, 328, 500 and 1000 ft.
SCALES = [
    (3.048, 0.19630, 23.055), (10.0, 0.18886, 67.366), (15.0, 0.18408, 93.570),
    (30.48, 0.17158, 153.976), (50.0, 0.15934, 202.290), (100.0, 0.13800, 262.794),
    (152.4, 0.12362, 287.932), (304.8, 0.10000, 304.800)]


@pytest.mark.parametrize(('height', 'sigma_u', 'length_u'), SCALES)
def test_scales_follow_the_standard(height, sigma_u, length_u):
    scales = low_altitude_scales(height, 8.0)
    assert scales.sigma_u == pytest.approx(8.0 * sigma_u, abs=5e-5)
    assert scales.length_u == pytest.approx(length_u, abs=5e-4)
    assert scales.sigma_v == scales.sigma_u
    assert scales.length_v == pytest.approx(scales.length_u / 2)
    assert scales.sigma_w == pytest.approx(0.8)
    assert scales.length_w == pytest.approx(height)


@pytest.mark.parametrize(('height', 'as_at'), [
    (-5.0, 3.0), (0.0, 3.0), (2.9, 3.0), (2000.0, 304.8)])
def test_height_is_held_between_3_m_and_1000_ft(height, as_at):
    held, at_the_limit = (astuple(low_altitude_scales(h, 8.0)) for h in (height, as_at))
    assert held == pytest.approx(at_the_limit, rel=1e-12)
    for method in METHODS:
        low, at = DrydenGust(1, method), DrydenGust(1, method)
        for k in range(4):
            assert low.step(0.05 * k, 8.0, height, 12.0) == pytest.approx(
                at.step(0.05 * k, 8.0, as_at, 12.0), abs=2e-4)


def test_scales_without_wind_have_no_strength():
    scales = low_altitude_scales(10.0, 0.0)
    assert (scales.sigma_u, scales.sigma_v, scales.sigma_w) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(('arguments', 'message'), [
    ((math.nan, 8.0), 'height is nan'), ((10.0, math.inf), 'mean_wind is inf'),
    ((10.0, -1.0), r'mean_wind is -1\.0 m/s; it must not be negative')])
def test_scales_refuse(arguments, message):
    with pytest.raises(ValueError, match=message):
        low_altitude_scales(*arguments)


# ---- one vehicle

@pytest.mark.parametrize('method', METHODS)
def test_draws_are_the_gauss_of_the_seed_in_the_order_u_v_w(method):
    """One step from rest is sigma times a known factor times the draw."""
    gust, gauss = DrydenGust(7, method), random.Random(7).gauss
    draws = [gauss(0.0, 1.0) for _ in range(3)]
    gust.step(0.0, 8.0, 10.0, 0.0)
    scales = low_altitude_scales(10.0, 8.0)
    expected = []
    for sigma, length, n in zip(
            (scales.sigma_u, scales.sigma_v, scales.sigma_w),
            (scales.length_u, scales.length_v, scales.length_w), draws, strict=True):
        a = 0.05 * 8.0 / length
        variance = -math.expm1(-2.0 * a) if method == 'exact' else 2.0 * a
        expected.append(sigma * math.sqrt(variance) * n)
    # euler: 3.281 for 3.2808 feet in a metre
    assert gust.step(0.05, 8.0, 10.0, 0.0) == pytest.approx(
        expected, rel=1e-12 if method == 'exact' else 1e-4)


@pytest.mark.parametrize('dt', [1e-9, 1e-7, 1e-4])
def test_a_small_step_loses_no_digits(dt):
    """From rest, the gain of a draw: sqrt(1 - exp(-2 x)) = sqrt(2 x (1 - x + 2/3 x^2 - ...))."""
    singles, draw = DrydenGust(7), random.Random(7).gauss
    draws = [draw(0.0, 1.0) for _ in range(3)]
    fleet = DrydenGustFleet([7])
    for gusts in (singles, fleet):
        gusts.step(0.0, 8.0, 10.0, 0.0)
    scales = low_altitude_scales(10.0, 8.0)
    expected = []
    for sigma, length, n in zip(
            (scales.sigma_u, scales.sigma_v, scales.sigma_w),
            (scales.length_u, scales.length_v, scales.length_w), draws, strict=True):
        x = dt * 8.0 / length
        expected.append(sigma * math.sqrt(2.0 * x * (1.0 - x + 2.0 / 3.0 * x * x)) * n)
    assert singles.step(dt, 8.0, 10.0, 0.0) == pytest.approx(expected, rel=1e-13)
    assert fleet.step(dt, 8.0, 10.0, 0.0)[0] == pytest.approx(expected, rel=1e-13)


def test_the_first_call_returns_rest():
    assert DrydenGust(7).step(10.0, 8.0, 10.0, 0.0) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize('method', METHODS)
def test_time_that_stands_still_draws_nothing(method):
    paused, plain = DrydenGust(7, method), DrydenGust(7, method)
    for k in range(20):
        expected = plain.step(0.05 * k, 8.0, 10.0, 5.0)
        for _ in range(3):
            assert paused.step(0.05 * k, 8.0, 10.0, 5.0) == expected


def test_time_that_goes_back_returns_the_state_and_goes_on_from_there():
    back, plain = DrydenGust(7), DrydenGust(7)
    for t in (10.0, 10.05):
        expected = plain.step(t, 8.0, 10.0, 0.0)
        assert back.step(t, 8.0, 10.0, 0.0) == expected
    assert back.step(3.0, 8.0, 10.0, 0.0) == expected
    assert back.step(3.0625, 8.0, 10.0, 0.0) == pytest.approx(
        plain.step(10.1125, 8.0, 10.0, 0.0), abs=1e-12)


def test_no_wind_keeps_the_state_and_draws_nothing():
    calm, plain = DrydenGust(7), DrydenGust(7)
    for t in (0.0, 0.0625):
        expected = plain.step(t, 8.0, 10.0, 0.0)
        calm.step(t, 8.0, 10.0, 0.0)
    assert calm.step(0.125, 0.0, 10.0, 30.0) == expected
    assert calm.step(0.1875, 8.0, 10.0, 0.0) == plain.step(0.125, 8.0, 10.0, 0.0)


@pytest.mark.parametrize('method', METHODS)
def test_a_gap_is_stepped_as_half_a_second(method):
    long, half = DrydenGust(7, method), DrydenGust(7, method)
    for gust in (long, half):
        gust.step(0.0, 8.0, 50.0, 0.0)
    assert long.step(600.0, 8.0, 50.0, 0.0) == half.step(0.5, 8.0, 50.0, 0.0)


@pytest.mark.parametrize(('airspeed', 'wind', 'as_at'), [(2.0, 8.0, 8.0), (0.0, 0.25, 1.0)])
def test_the_air_is_flown_through_at_the_mean_wind_and_1_m_s_at_least(airspeed, wind, as_at):
    slow, at = DrydenGust(7), DrydenGust(7)
    for k in range(5):
        assert slow.step(0.05 * k, wind, 10.0, airspeed) == at.step(0.05 * k, wind, 10.0, as_at)


@pytest.mark.parametrize('position', range(4))
@pytest.mark.parametrize('bad', [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_named_and_changes_nothing(position, bad):
    name = ('t', 'mean_wind', 'height', 'airspeed')[position]
    gust, plain = DrydenGust(7), DrydenGust(7)
    for t in (0.0, 0.05):
        gust.step(t, 8.0, 10.0, 5.0)
        plain.step(t, 8.0, 10.0, 5.0)
    arguments = [0.1, 8.0, 10.0, 5.0]
    arguments[position] = bad
    with pytest.raises(ValueError, match=f'^{name} is {bad}; it must be a finite number'):
        gust.step(*arguments)
    assert gust.step(0.1, 8.0, 10.0, 5.0) == plain.step(0.1, 8.0, 10.0, 5.0)


def test_a_negative_wind_is_refused_and_changes_nothing():
    gust, plain = DrydenGust(7), DrydenGust(7)
    gust.step(0.0, 8.0, 10.0, 5.0)
    plain.step(0.0, 8.0, 10.0, 5.0)
    with pytest.raises(ValueError, match=r'mean_wind is -0\.5 m/s; it must not be negative'):
        gust.step(0.05, -0.5, 10.0, 5.0)
    assert gust.step(0.05, 8.0, 10.0, 5.0) == plain.step(0.05, 8.0, 10.0, 5.0)


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="method is 'tustin'; it must be one of exact, euler"):
        DrydenGust(1, 'tustin')


@pytest.mark.parametrize('seed', [1.5, '7', True])
def test_a_seed_that_is_no_integer_is_refused(seed):
    with pytest.raises(TypeError, match=f'seed is {seed!r}; it must be an integer'):
        DrydenGust(seed)


def test_without_a_seed_every_vehicle_meets_its_own_air():
    first, second = DrydenGust(), DrydenGust()
    for gust in (first, second):
        gust.step(0.0, 8.0, 10.0, 0.0)
    assert first.step(0.05, 8.0, 10.0, 0.0) != second.step(0.05, 8.0, 10.0, 0.0)


@given(seed=st.integers(-2**70, 2**70), before=st.integers(0, 5), steps=st.integers(0, 2000))
@settings(deadline=None)
def test_skip_passes_over_whole_triples(seed, before, steps):
    """Any number, after any number: gauss() makes its draws in pairs, triples do not fit them."""
    gust, gauss = DrydenGust(seed), random.Random(seed).gauss
    gust.step(0.0, 8.0, 10.0, 0.0)
    plain = DrydenGust(seed)
    plain.step(0.0, 8.0, 10.0, 0.0)
    for k in range(1, before + 1):
        gust.step(0.05 * k, 8.0, 10.0, 0.0)
    gust.skip(steps)
    for _ in range(3 * (before + steps)):
        gauss(0.0, 1.0)
    u, v, w = gust.state
    after = gust.step(0.05 * (before + 1), 8.0, 10.0, 0.0)
    scales = low_altitude_scales(10.0, 8.0)
    dt = 0.05 * (before + 1) - 0.05 * before
    for x, y, sigma, length in (
            (u, after[0], scales.sigma_u, scales.length_u),
            (v, after[1], scales.sigma_v, scales.length_v),
            (w, after[2], scales.sigma_w, scales.length_w)):
        phi = math.exp(-dt * 8.0 / length)
        draw = (y - phi * x) / (sigma * math.sqrt(1.0 - phi * phi))
        assert draw == pytest.approx(gauss(0.0, 1.0), abs=1e-9)


def test_skip_across_the_blocks_it_works_in():
    """300 000 triples are more words than it makes at once."""
    gust, gauss = DrydenGust(3), random.Random(3).gauss
    gust.skip(300_001)
    for _ in range(900_003):
        gauss(0.0, 1.0)
    gust.step(0.0, 8.0, 10.0, 8.0)
    scales = low_altitude_scales(10.0, 8.0)
    phi = math.exp(-0.05 * 8.0 / scales.length_u)
    assert gust.step(0.05, 8.0, 10.0, 8.0)[0] == pytest.approx(
        scales.sigma_u * math.sqrt(1.0 - phi * phi) * gauss(0.0, 1.0), rel=1e-12)


def test_skip_refuses_to_go_back():
    with pytest.raises(ValueError, match='steps is -1; it must not be negative'):
        DrydenGust(1).skip(-1)


# ---- statistics

def gust_records(method, height, wind, airspeed, dt, steps, vehicles, seed=0):
    """Return gusts (steps, vehicles, 3) after the start has been forgotten."""
    fleet = DrydenGustFleet(range(seed, seed + vehicles), method)
    length = low_altitude_scales(height, wind).length_u
    forget = math.ceil(8.0 * length / max(airspeed, wind, 1.0) / dt)
    records = np.empty((steps, vehicles, 3))
    for k in range(forget + 1):
        fleet.step(k * dt, wind, height, airspeed)
    for k in range(steps):
        records[k] = fleet.step((forget + 1 + k) * dt, wind, height, airspeed)
    return records


# Vertical channel at 3 m: speed m/s, step s, Euler's sigma over the target.
EULER_EXCESS = [(5.0, 0.05, 1.022), (5.0, 0.10, 1.044), (15.0, 0.05, 1.069), (15.0, 0.10, 1.155)]


@pytest.mark.parametrize(('speed', 'dt', 'excess'), EULER_EXCESS)
def test_euler_is_too_strong_by_the_known_factor(speed, dt, excess):
    """1 / sqrt(1 - a / 2), from the stationary variance of the update, a = dt V / 3 m."""
    w = gust_records('euler', 3.0, 2.0, speed, dt, 8000, 50)[..., 2]  # 400 000 steps
    assert w.std() / low_altitude_scales(3.0, 2.0).sigma_w == pytest.approx(excess, rel=0.01)


@pytest.mark.parametrize(('speed', 'dt'), [(5.0, 0.05), (15.0, 0.05), (15.0, 0.10), (15.0, 0.50)])
def test_exact_has_the_strength_of_the_model_at_any_step(speed, dt):
    w = gust_records('exact', 3.0, 2.0, speed, dt, 8000, 50)[..., 2]  # 400 000 steps
    assert w.std() / low_altitude_scales(3.0, 2.0).sigma_w == pytest.approx(1.0, rel=0.01)


def test_exact_has_the_strength_of_the_model_in_all_three_components():
    records = gust_records('exact', 10.0, 8.0, 20.0, 0.5, 2000, 200)
    scales = low_altitude_scales(10.0, 8.0)
    assert records.std(axis=(0, 1)) == pytest.approx(
        [scales.sigma_u, scales.sigma_v, scales.sigma_w], rel=0.01)


def test_euler_diverges_when_the_step_is_twice_the_time_constant():
    """At 15 m/s and 3 m a step of 0.5 s has a = 2.5: every step multiplies w by -1.5."""
    euler, exact = DrydenGust(1, 'euler'), DrydenGust(1, 'exact')
    for k in range(101):
        w_euler = euler.step(0.5 * k, 8.0, 3.0, 15.0)[2]
        w_exact = exact.step(0.5 * k, 8.0, 3.0, 15.0)[2]
    assert abs(w_euler) > 1e15
    assert abs(w_exact) < 8 * 0.8


def test_gusts_forget_with_the_time_constants_of_the_model():
    """The correlation over one time constant L / V is 1 / e; at 200 vehicles."""
    dt, speed = 0.1, 15.0
    records = gust_records('exact', 30.0, 6.0, speed, dt, 4000, 200)
    scales = low_altitude_scales(30.0, 6.0)
    variances = records.var(axis=(0, 1))
    for i, length in enumerate((scales.length_u, scales.length_v, scales.length_w)):
        lag = round(length / speed / dt)
        x = records[..., i]
        correlation = (x[lag:] * x[:-lag]).mean() / variances[i]
        assert -lag * dt / math.log(correlation) == pytest.approx(length / speed, rel=0.03)


def test_components_are_independent():
    records = gust_records('exact', 10.0, 8.0, 20.0, 0.5, 2000, 100).reshape(-1, 3)
    correlations = np.corrcoef(records.T)
    assert abs(correlations[np.triu_indices(3, 1)]).max() < 0.02


def test_the_spectrum_is_that_of_a_first_order_process():
    """One-sided 4 sigma^2 T / (1 + (2 pi f T)^2), far from the highest frequency sampled."""
    dt, steps, vehicles = 0.05, 4096, 200
    w = gust_records('exact', 20.0, 8.0, 10.0, dt, steps, vehicles)[..., 2]
    power = (2.0 * dt / steps * abs(np.fft.rfft(w * np.sqrt(8 / 3) * np.hanning(steps)[:, None],
                                                axis=0)) ** 2).mean(axis=1)
    f = np.fft.rfftfreq(steps, dt)
    constant, sigma = 20.0 / 10.0, 0.8
    model = 4.0 * sigma**2 * constant / (1.0 + (2.0 * np.pi * f * constant) ** 2)
    for low, high in ((0.01, 0.04), (0.04, 0.16), (0.16, 0.6), (0.6, 1.5)):
        band = (f >= low) & (f < high)
        assert power[band].mean() / model[band].mean() == pytest.approx(1.0, rel=0.06), (low, high)
