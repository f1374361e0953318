"""The standards' turbulence: scales at every height, and exact second-order gusts."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from dryden_wind_ros.gusts.dryden import low_altitude_scales
from dryden_wind_ros.gusts.scales import AirScales, TurbulenceAloft
from dryden_wind_ros.gusts.standard import (
    StandardGust,
    StandardGustFleet,
    _follower,
    _second_order,
    _second_order_float,
    turbulence_scales,
)
from dryden_wind_ros.gusts.theory import line_spectrum

FOOT = 0.3048

# MIL-F-8785C, figure 7: probability of exceedance, height in ft, sigma in ft/s.
NODES = [
    ('light', 3750, 7.4), ('light', 35000, 0.4), ('light', 45000, 0.0),
    ('moderate', 7500, 10.1), ('moderate', 55000, 2.7), ('severe', 3750, 23.0),
    ('severe', 80000, 5.1), (2e-1, 3750, 1.5), (2e-1, 7500, 0.0), (1e-1, 7500, 1.6),
    ('1e-2', 15000, 4.6), (1e-4, 25000, 9.7), (1e-4, 80000, 2.1), (1e-6, 25000, 31.0),
    (1e-6, 75000, 8.4), (1e-5, 200_000, 5.1)]


# ---- scales

@pytest.mark.parametrize(('severity', 'height_ft', 'sigma_ft_s'), NODES)
def test_sigma_aloft_is_the_tables_at_its_nodes(severity, height_ft, sigma_ft_s):
    scales = turbulence_scales(height_ft * FOOT, 8.0, severity)
    for sigma in (scales.sigma_u, scales.sigma_v, scales.sigma_w):
        assert sigma / FOOT == pytest.approx(sigma_ft_s, abs=1e-9)
    assert scales.length_u / FOOT == pytest.approx(1750.0)


def test_sigma_is_linear_between_heights_and_in_the_logarithm_of_the_probability():
    assert turbulence_scales(20000 * FOOT, 0.0, 'light').sigma_w / FOOT == pytest.approx(3.65)
    assert turbulence_scales(3750 * FOOT, 0.0, 10**-2.5).sigma_w / FOOT == pytest.approx(9.0)


@pytest.mark.parametrize('height', [3.0, 10.0, 100.0, 304.8])
def test_below_1000_ft_strength_comes_from_the_wind_at_20_ft(height):
    low = low_altitude_scales(height, 8.0)
    for severity in ('light', 1e-6):
        scales = turbulence_scales(height, 8.0, severity)
        assert scales.sigma_u == pytest.approx(low.sigma_u)
        assert scales.sigma_w == pytest.approx(0.8)
        assert scales.length_v == scales.length_u == pytest.approx(low.length_u)
        assert scales.length_w == pytest.approx(height)


def test_from_1000_to_2000_ft_everything_is_linear():
    """At 1000 ft L is 1000 ft and sigma 0.1 W20; at 2000 ft 1750 ft and, moderate, 9.725 ft/s."""
    middle = turbulence_scales(1500 * FOOT, 10.0, 'moderate')
    for sigma, length in ((middle.sigma_u, middle.length_u), (middle.sigma_w, middle.length_w)):
        assert sigma == pytest.approx(0.5 * (1.0 + 9.725 * FOOT))
        assert length / FOOT == pytest.approx(1375.0)
    below, above = (turbulence_scales(304.8 + d, 10.0) for d in (-1e-6, 1e-6))
    assert above.sigma_u == pytest.approx(below.sigma_u, abs=1e-6)


def test_the_handbook_counts_half_the_lengths_across():
    for height in (10.0, 2000.0):
        one, other = (turbulence_scales(height, 8.0, standard=name)
                      for name in ('MIL-F-8785C', 'MIL-HDBK-1797B'))
        assert other.length_u == one.length_u
        assert (other.length_v, other.length_w) == (one.length_v / 2, one.length_w / 2)
        assert other.sigma_w == one.sigma_w


def test_many_heights_have_the_scales_of_each():
    aloft = TurbulenceAloft('severe', 'von_karman')
    heights = np.concatenate((np.linspace(-5.0, 700.0, 300), np.geomspace(700.0, 3e4, 40)))
    many = aloft.scales_of(heights, 8.0)
    each = [aloft.scales(height, 8.0) for height in heights]
    for name in AirScales._fields:
        np.testing.assert_allclose(getattr(many, name), [getattr(s, name) for s in each])
    assert each[-1].length / FOOT == pytest.approx(2500.0)


@pytest.mark.parametrize(('arguments', 'message'), [
    ((math.nan, 8.0), 'height is nan; it must be a finite number'),
    ((10.0, -1.0), r'wind_20ft is -1\.0 m/s; it must not be negative'),
    ((10.0, 8.0, 'heavy'), "severity is 'heavy'; it must be one of light, moderate, severe, or a"),
    ((10.0, 8.0, 0.5), r'severity is 0\.5; .*from 1e-06 to 0\.2'),
    ((10.0, 8.0, math.nan), 'severity is nan'),
    ((10.0, 8.0, 'light', 'FAR'), "standard is 'FAR'; it must be one of MIL-F-8785C, MIL-HDBK-17")])
def test_scales_refuse(arguments, message):
    with pytest.raises(ValueError, match=message):
        turbulence_scales(*arguments)


# ---- the process

def sampled(height, speed, dt, vehicles, steps, **settings):
    """Gusts and rates from the first step on, shape (steps, vehicles, 6)."""
    fleet = StandardGustFleet(range(vehicles), **settings)
    return np.array([np.hstack((fleet.step(k * dt, 8.0, height, speed), fleet.rates))
                     for k in range(steps)])


# Height, m; speed, m/s; step, s; theta of w, dt V / L_w.
THETAS = [(10.0, 10.0, 0.25, 0.25), (3.0, 10.0, 0.15, 0.5), (3.0, 30.0, 0.5, 5.0)]


@pytest.mark.parametrize(('height', 'speed', 'dt', 'theta'), THETAS)
def test_the_variance_is_the_models_at_long_steps(height, speed, dt, theta):
    scales = turbulence_scales(height, 8.0)
    assert dt * speed / height == pytest.approx(theta)
    gusts = sampled(height, speed, dt, 200, 600)[..., :3]
    assert gusts.var(axis=(0, 1)) == pytest.approx(
        [scales.sigma_u**2, scales.sigma_v**2, scales.sigma_w**2], rel=0.04)


def test_the_gust_blows_in_full_from_the_first_tick():
    scales = turbulence_scales(10.0, 8.0)
    first, second = sampled(10.0, 8.0, 0.05, 2000, 2)[..., :3]
    for gusts in (first, second):
        assert gusts.std(axis=0) == pytest.approx(
            [scales.sigma_u, scales.sigma_v, scales.sigma_w], rel=0.04)
    assert np.corrcoef(first[:, 2], second[:, 2])[0, 1] == pytest.approx(
        math.exp(-0.04) * 0.98, abs=0.01)


@pytest.mark.parametrize('theta', [1e-6, 0.001, 0.05, 0.5, 5.0, 40.0])
def test_the_stationary_covariance_stays_what_it_is_to_rounding(theta):
    """[[1/2, 1/4], [1/4, 1/4]], over 400 steps of any length, by algebra; so the variance of
    sqrt3 a + (1 - sqrt3) b stays 1."""
    decay, g11, g21, g22 = _second_order(np, theta)
    assert _second_order_float(theta) == pytest.approx((decay, g11, g21, g22), abs=1e-12)
    move, noise = decay * np.array([[1.0, 0.0], [theta, 1.0]]), np.array([[g11, 0.0], [g21, g22]])
    covariance = np.array([[0.5, 0.25], [0.25, 0.25]])
    for _ in range(400):
        covariance = move @ covariance @ move.T + noise @ noise.T
    np.testing.assert_allclose(covariance, [[0.5, 0.25], [0.25, 0.25]], rtol=0, atol=1e-12)


def test_gusts_forget_as_theory_says():
    """Autocorrelation e^-x of u, and e^-x (1 - x/2) of v and w, x = lag V / L."""
    dt, speed, height = 0.25, 12.0, 15.0
    gusts = sampled(height, speed, dt, 300, 600)
    scales = turbulence_scales(height, 8.0)
    for i, length in enumerate((scales.length_u, scales.length_v, scales.length_w)):
        x = gusts[..., i]
        for lag in (1, 2, 4, 8, 16):
            distance = lag * dt * speed / length
            expected = math.exp(-distance) * (1.0 if i == 0 else 1.0 - 0.5 * distance)
            assert (x[lag:] * x[:-lag]).mean() / (x * x).mean() == pytest.approx(
                expected, abs=0.02)


def test_spectra_are_the_standards():
    """One-sided, v and w with the bend of second order; far below the sampling frequency."""
    dt, steps, speed, height = 0.05, 4096, 10.0, 20.0
    gusts = sampled(height, speed, dt, 80, steps)[..., :3]
    window = np.sqrt(8 / 3) * np.hanning(steps)[:, None, None]
    power = (2.0 * dt / steps * abs(np.fft.rfft(gusts * window, axis=0)) ** 2).mean(axis=1)
    f = np.fft.rfftfreq(steps, dt)
    scales = turbulence_scales(height, 8.0)
    for i, (sigma, length) in enumerate(((scales.sigma_u, scales.length_u),
                                         (scales.sigma_v, scales.length_v),
                                         (scales.sigma_w, scales.length_w))):
        wavenumber = 2.0 * np.pi * f / speed
        model = line_spectrum('along' if i == 0 else 'across', wavenumber, sigma, length) \
            * 2.0 * np.pi / speed
        for low, high in ((0.015, 0.06), (0.06, 0.24), (0.24, 0.9), (0.9, 2.0)):
            band = (f >= low) & (f < high)
            assert power[band, i].mean() / model[band].mean() == pytest.approx(1.0, rel=0.08)


def test_components_and_roll_are_independent_and_pitch_and_yaw_follow_their_gusts():
    steps = sampled(30.0, 15.0, 0.3, 300, 60, span=3.0)
    records = steps.reshape(-1, 6)
    assert abs(np.corrcoef(records.T)[np.triu_indices(4, 1)]).max() < 0.06
    # q is dw/dx and r is dv/dx, flying along u: they rise with their gust.
    rise = np.diff(steps, axis=0).reshape(-1, 6)
    later = steps[1:].reshape(-1, 6)
    assert np.corrcoef(later[:, 4], rise[:, 2])[0, 1] > 0.5
    assert np.corrcoef(later[:, 5], rise[:, 1])[0, 1] > 0.5


@pytest.mark.parametrize(('height', 'span', 'dt'), [
    (10.0, 1.5, 0.05), (10.0, 10.0, 0.3), (100.0, 30.0, 0.5), (3.0, 2.36, 0.1)])
def test_rates_have_the_variance_of_the_standards_filters_at_any_step(height, span, dt):
    """Integrals of the spectra over frequency, against a sample and, for q and r, to a thousandth
    by algebra. The last case has both time constants of q alike."""
    speed = 14.0
    scales = turbulence_scales(height, 8.0)
    omega = np.geomspace(1e-5, 1e6, 200_001)
    slow = 4.0 * span / (math.pi * speed)

    def integral(y):
        return (0.5 * (y[1:] + y[:-1]) * np.diff(omega)).sum()

    def through(sigma, length, constant):
        gust = line_spectrum('across', omega / speed, sigma, length) / speed
        return integral(gust * (omega / speed) ** 2 / (1.0 + (constant * omega) ** 2))

    roll = (scales.sigma_w**2 / (speed * scales.length_w) * 0.8
            * (math.pi * scales.length_w / (4.0 * span)) ** (1 / 3)
            / (1.0 + (slow * omega) ** 2))
    expected = [integral(roll), through(scales.sigma_w, scales.length_w, slow),
                through(scales.sigma_v, scales.length_v, 0.75 * slow)]
    steps = sampled(height, speed, dt, 700, 25, span=span)
    assert steps[0, :, 3:].var(axis=0) == pytest.approx(expected, rel=0.2)
    assert steps[..., 3:].var(axis=(0, 1)) == pytest.approx(expected, rel=0.09)

    for sigma, length, wanted, part in ((scales.sigma_w, scales.length_w, expected[1], 4.0),
                                        (scales.sigma_v, scales.length_v, expected[2], 3.0)):
        rho = math.pi * length / (part * span)
        covariance = np.zeros((3, 3))
        for theta in (1e6, *[dt * speed / length] * 50):
            decay, g11, g21, g22 = _second_order(np, theta)
            keep, from_a, from_b, g31, g32, g33 = _follower(np, theta, rho)
            move = np.array([[decay, 0, 0], [decay * theta, decay, 0], [from_a, from_b, keep]])
            noise = np.array([[g11, 0, 0], [g21, g22, 0], [g31, g32, g33]])
            covariance = move @ covariance @ move.T + noise @ noise.T
        rate = sigma * math.pi / (part * span) * np.array([math.sqrt(3), 1 - math.sqrt(3), -1])
        assert rate @ covariance @ rate == pytest.approx(wanted, rel=3e-3)


# ---- one vehicle

def test_draws_are_five_gauss_a_step_and_a_span_takes_none_of_them():
    """The first step is the stationary state: u is sigma times the first draw; w as written."""
    gust, gauss = StandardGust(7), random.Random(7).gauss
    n = [gauss(0.0, 1.0) for _ in range(10)]
    scales = turbulence_scales(10.0, 8.0)
    a, b = math.sqrt(0.5) * n[3], 0.5 * math.sqrt(0.5) * (n[3] + n[4])
    u, _, w = gust.step(3.0, 8.0, 10.0, 0.0)
    assert u == pytest.approx(scales.sigma_u * n[0])
    assert w == pytest.approx(0.8 * (math.sqrt(3.0) * a + (1.0 - math.sqrt(3.0)) * b))
    theta = 0.05 * 8.0 / scales.length_u
    assert gust.step(3.05, 8.0, 10.0, 0.0)[0] == pytest.approx(
        math.exp(-theta) * u + scales.sigma_u * math.sqrt(-math.expm1(-2.0 * theta)) * n[5])
    plain, wide = StandardGust(5), StandardGust(5, span=2.0)
    for k in range(5):
        assert plain.step(0.1 * k, 8.0, 10.0, 5.0) == wide.step(0.1 * k, 8.0, 10.0, 5.0)
    assert plain.rates == (0.0, 0.0, 0.0)
    assert all(wide.rates)


def test_skip_passes_over_whole_steps_of_gust_and_rates():
    skipped, plain = (StandardGust(9, span=1.0) for _ in range(2))
    for k in range(8):  # far apart, so that each step stands on its draws alone
        expected = plain.step(1e3 * k, 8.0, 3.0, 1e6)
    skipped.skip(7)
    assert skipped.step(0.0, 8.0, 3.0, 1e6) == pytest.approx(expected, abs=1e-12)
    assert skipped.rates == pytest.approx(plain.rates, abs=1e-12)
    with pytest.raises(ValueError, match='steps is -1; it must not be negative'):
        plain.skip(-1)


def test_the_standards_are_the_same_air_under_two_names():
    one, other = StandardGust(3), StandardGust(3, 'MIL-HDBK-1797B')
    for k in range(5):
        assert one.step(0.05 * k, 8.0, 10.0 + k, 9.0) == other.step(0.05 * k, 8.0, 10.0 + k, 9.0)


def test_time_that_stands_still_or_a_calm_near_the_ground_draws_nothing():
    odd, plain = StandardGust(7), StandardGust(7)
    for k in range(10):
        expected = plain.step(0.05 * k, 8.0, 10.0, 5.0)
        assert odd.step(0.05 * k, 8.0, 10.0, 5.0) == expected
        assert odd.step(0.05 * k, 8.0, 10.0, 5.0) == expected
        assert odd.step(0.05 * k + 0.01, 0.0, 10.0, 5.0) == expected
        odd._t = 0.05 * k
    assert StandardGust(1).step(0.0, 0.0, 10.0, 5.0) == (0.0, 0.0, 0.0)


def test_without_wind_turbulence_aloft_blows_all_the_same():
    gust = StandardGust(7, severity='severe')
    assert all(gust.step(0.0, 0.0, 3000.0, 50.0))


@pytest.mark.parametrize('position', range(4))
def test_a_number_that_is_not_finite_is_named_and_changes_nothing(position):
    name = ('t', 'mean_wind', 'height', 'airspeed')[position]
    gust, plain = StandardGust(7), StandardGust(7)
    gust.step(0.0, 8.0, 10.0, 5.0)
    plain.step(0.0, 8.0, 10.0, 5.0)
    arguments = [0.1, 8.0, 10.0, 5.0]
    arguments[position] = math.nan
    with pytest.raises(ValueError, match=f'^{name} is nan; it must be a finite number'):
        gust.step(*arguments)
    assert gust.step(0.1, 8.0, 10.0, 5.0) == plain.step(0.1, 8.0, 10.0, 5.0)


@pytest.mark.parametrize(('arguments', 'error', 'message'), [
    ({'seed': 1.5}, TypeError, r'seed is 1\.5; it must be an integer'),
    ({'standard': 'x'}, ValueError, "standard is 'x'; it must be one of"),
    ({'severity': 2}, ValueError, 'severity is 2; it must be one of'),
    ({'span': -1.0}, ValueError, r'span is -1 m; it must be from 0 \(no rates\) to 100 m'),
    ({'span': math.nan}, ValueError, 'span is nan m')])
def test_what_cannot_be_is_refused_by_name(arguments, error, message):
    with pytest.raises(error, match=message):
        StandardGust(**arguments)
    with pytest.raises(error, match=message):
        StandardGustFleet([arguments.pop('seed', 1)], **arguments)


# ---- fleet

def test_rows_of_a_fleet_are_the_single_gusts():
    """With clocks, calms and heights of their own, from the ground to the stratosphere."""
    seeds = [3, 4, 5, -6, 2**63 - 1]
    fleet = StandardGustFleet(seeds, severity='moderate', span=2.0)
    singles = [StandardGust(seed, severity='moderate', span=2.0) for seed in seeds]
    source = np.random.default_rng(1)
    heights = np.array([2.0, 50.0, 400.0, 3000.0, 10.0])
    t = np.zeros(5)
    for k in range(560):  # past the end of a block of draws
        t += np.where(source.random(5) < 0.1, 0.0, 0.05)
        wind = np.where(source.random(5) < 0.1, 0.0, 8.0) if k > 300 else np.full(5, 8.0)
        rows = fleet.step(t, wind, heights, 15.0)
        single = [gust.step(*row, 15.0) for gust, row in zip(
            singles, zip(t.tolist(), wind.tolist(), heights.tolist(), strict=True), strict=True)]
        np.testing.assert_allclose(rows, single, rtol=0, atol=1e-10)
        np.testing.assert_allclose(fleet.rates, [gust.rates for gust in singles], atol=1e-10)
    assert len(fleet) == 5


def test_a_fleet_refuses_what_makes_no_sense():
    with pytest.raises(ValueError, match='seeds is empty'):
        StandardGustFleet([])
    with pytest.raises(TypeError, match='seed is None'):
        StandardGustFleet([None])
    fleet = StandardGustFleet([1, 2])
    with pytest.raises(ValueError, match=r'height\[1\] is nan'):
        fleet.step(0.0, 8.0, np.array([1.0, math.nan]), 0.0)
    with pytest.raises(ValueError, match=r'mean_wind is -1\.0 m/s; it must not be negative'):
        fleet.step(0.0, np.array([-1.0, 8.0]), 10.0, 0.0)
