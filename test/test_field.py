"""One field of turbulence: its statistics are theory's, and it depends on its arguments alone."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest

from dryden_wind_ros.gusts.dryden import low_altitude_scales
from dryden_wind_ros.gusts.field import TurbulenceField, structure
from dryden_wind_ros.gusts.scales import turbulence_scales
from dryden_wind_ros.gusts.theory import correlations, line_spectrum

WIND = (8.0, 0.0, 0.0)
FOOT = 0.3048


@pytest.fixture(scope='module')
def field():
    return TurbulenceField(7)


def target(height, wind=8.0):
    """Strengths and lengths of the horizontal, horizontal and vertical component."""
    scales = turbulence_scales(height, wind)
    return (np.array([scales.sigma_u, scales.sigma_u, scales.sigma_w]),
            np.array([scales.length_u, scales.length_u, scales.length_w]))


def integral(y, x):
    return (0.5 * (y[1:] + y[:-1]) * np.diff(x)).sum()


# ---- the sum itself

@pytest.mark.parametrize('spectrum', ['dryden', 'von_karman'])
def test_the_gust_is_the_sum_of_the_modes_also_far_away_and_late(spectrum):
    """Written out in double precision, 200 km from the origin and after three hours."""
    field = TurbulenceField(3, spectrum=spectrum, life=0.0)
    places = np.random.default_rng(1).uniform(-2e5, 2e5, (20, 3))
    places[:, 2] = np.geomspace(3.0, 3000.0, 20)
    gusts = field.gust(places, 10800.0, (8.0, 3.0, 0.1))
    for place, gust in zip(places, gusts, strict=True):
        cosine, sine = field.amplitudes(place[2], math.hypot(8.0, 3.0))
        phase = field.wave_vectors @ (place - 10800.0 * np.array([8.0, 3.0, 0.1]))
        exact = (cosine * np.cos(phase)[:, None] + sine * np.sin(phase)[:, None]).sum(axis=0)
        np.testing.assert_allclose(gust, exact, rtol=0, atol=1e-5)


def test_any_batch_and_any_order_give_the_same(field):
    places = np.random.default_rng(2).uniform(3.0, 400.0, (300, 3))
    together = field.gust(places, 60.0, WIND)
    order = np.random.default_rng(3).permutation(300)
    np.testing.assert_allclose(field.gust(places[order], 60.0, WIND), together[order], atol=1e-5)
    for i in (0, 17, 299):
        np.testing.assert_allclose(field.gust(places[i:i + 1], 60.0, WIND)[0], together[i],
                                   atol=1e-5)
    np.testing.assert_array_equal(field.gust(places, 60.0, WIND), together)


def test_another_process_on_a_lesser_processor_gives_the_same(field):
    """Same seed, fewer vector instructions: alike to 1e-5 m/s on any x86-64."""
    code = ('import json; from dryden_wind_ros.gusts.field import TurbulenceField; '
            'print(json.dumps(TurbulenceField(7).gust([[k * 1.7, -k, 10.0 + k] for k in range(50)],'
            ' 321.5, (8.0, 0.0, 0.0)).tolist()))')
    environment = {**os.environ, 'NPY_DISABLE_CPU_FEATURES': 'AVX2 FMA3 X86_V3',
                   'PYTHONWARNINGS': 'ignore'}
    done = subprocess.run([sys.executable, '-c', code], env=environment, capture_output=True,
                          text=True, timeout=60, check=True)
    here = field.gust([[k * 1.7, -k, 10.0 + k] for k in range(50)], 321.5, WIND)
    np.testing.assert_allclose(json.loads(done.stdout), here, atol=1e-5)


def test_the_air_drifts_with_the_mean_wind_and_frozen_air_does_not_change():
    frozen = TurbulenceField(5, life=0.0)
    here = frozen.gust([[10.0, 20.0, 30.0]], 4.0, (6.0, -3.0, 0.0))
    later = frozen.gust([[10.0 + 6.0 * 100.0, 20.0 - 3.0 * 100.0, 30.0]], 104.0, (6.0, -3.0, 0.0))
    np.testing.assert_allclose(later, here, atol=1e-5)
    given = frozen.gust([[10.0, 20.0, 30.0]], 999.0, (6.0, -3.0, 0.0), drift=(24.0, -12.0, 0.0))
    np.testing.assert_allclose(given, here, atol=1e-5)


def test_living_air_forgets_at_the_rate_of_its_turnover():
    """Modes turn at rates c N (sigma/L) (kL)^(2/3): the correlation is the mean of cos over them,
    exp(-(c k-rate age)^2 / 2) weighted with the energy spectrum."""
    places = np.random.default_rng(4).uniform(-5e4, 5e4, (3000, 3))
    field, height = TurbulenceField(11, modes=1024), 10.0
    sigma, length = target(height)
    start = field.gust(places, 0.0, WIND, drift=(0, 0, 0), age=0.0, heights=height)
    k = np.geomspace(1e-4, 300.0, 20001)
    energy = (k * length[0]) ** 4 / (1.0 + (k * length[0]) ** 2) ** 3 * k
    for seconds in (5.0, 20.0):
        age = seconds * sigma[0] / length[0]
        assert field.turnover_rate(8.0) * seconds == pytest.approx(age)
        now = field.gust(places, 0.0, WIND, drift=(0, 0, 0), age=age, heights=height)
        turned = np.exp(-0.5 * (0.5 * age * (k * length[0]) ** (2 / 3)) ** 2)
        expected = (energy * turned).sum() / energy.sum()
        measured = (start * now)[:, :2].sum() / (start * start)[:, :2].sum()
        assert measured == pytest.approx(expected, abs=0.04)


# ---- statistics, of the modes themselves: the field is judged, and not a sample of it

@pytest.mark.parametrize('spectrum', ['dryden', 'von_karman'])
@pytest.mark.parametrize('height', [10.0, 30.0, 300.0, 1000.0, 5000.0])
def test_the_variance_of_every_seed_is_within_1_percent_from_10_m_up(height, spectrum):
    for seed in range(4):
        cosine, sine = TurbulenceField(seed, spectrum=spectrum).amplitudes(height, 8.0)
        variance = 0.5 * (cosine**2 + sine**2).sum(axis=0)
        np.testing.assert_allclose(variance, target(height)[0] ** 2, rtol=0.01)


@pytest.mark.parametrize('spectrum', ['dryden', 'von_karman'])
@pytest.mark.parametrize('axis', [0, 1, 2])
def test_octaves_of_the_mean_over_seeds_are_the_standards_within_4_percent(axis, spectrum):
    """Along each axis, 0.01 to 5 rad/m, at 10 m."""
    edges = 0.01 * 2.0 ** np.arange(10)
    sigma, length = target(10.0)
    expected, found = np.empty((9, 3)), np.zeros((9, 3))
    for i in range(9):
        k = np.geomspace(edges[i], edges[i + 1], 500)
        for c in range(3):
            expected[i, c] = integral(line_spectrum(
                'along' if c == axis else 'across', k, sigma[c], length[c], spectrum), k)
    seeds = 30
    for seed in range(seeds):
        field = TurbulenceField(seed, spectrum=spectrum)
        cosine, sine = field.amplitudes(10.0, 8.0)
        octave = np.digitize(abs(field.wave_vectors[:, axis]), edges) - 1
        power = 0.5 * (cosine**2 + sine**2) / seeds
        for i in range(9):
            found[i] += power[octave == i].sum(axis=0)
    np.testing.assert_allclose(found, expected, rtol=0.04)


@pytest.mark.parametrize('axis', ['along', 'across', 'up'])
def test_two_points_are_correlated_as_theory_says(axis, field):
    """1 to 60 m apart in each direction at 10 m, every component within 0.03."""
    vector = {'along': (1, 0, 0), 'across': (0, -1, 0), 'up': (0, 0, 1)}[axis]
    distances = np.array([1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0])
    cosine, sine = field.amplitudes(10.0, 8.0)
    power = cosine**2 + sine**2
    turned = np.cos(np.outer(distances, field.wave_vectors @ vector))
    np.testing.assert_allclose(turned @ power / power.sum(axis=0),
                               structure(distances, 10.0, 8.0, axis).correlation, atol=0.03)


def test_a_sample_of_points_has_the_strength_shape_and_correlation_of_theory():
    """What a user would measure: 12 000 pairs of places 5 m apart across the wind, at 10 m."""
    field = TurbulenceField(7, modes=1024)
    places = np.random.default_rng(6).uniform(-1e5, 1e5, (12000, 3))
    first = field.gust(places, 100.0, WIND, heights=10.0)
    second = field.gust(places + np.array([0.0, 5.0, 0.0]), 100.0, WIND, heights=10.0)
    sigma, _ = target(10.0)
    assert first.std(axis=0) / sigma == pytest.approx([1.0, 1.0, 1.0], abs=0.02)
    assert (first**4).mean(axis=0) / first.var(axis=0) ** 2 == pytest.approx([3, 3, 3], abs=0.15)
    between = (first * second).mean(axis=0) / (first.std(axis=0) * second.std(axis=0))
    assert between == pytest.approx([0.894, 0.928, 0.455], abs=0.02)  # f, g by hand
    at_a_point = np.corrcoef(first.T)[np.triu_indices(3, 1)]
    assert abs(at_a_point).max() < 0.03
    difference = np.sqrt(((first - second) ** 2).mean(axis=0))
    assert difference == pytest.approx(
        structure([5.0], 10.0, 8.0, 'across').difference[0], rel=0.03)


def test_the_air_is_free_of_divergence_where_strength_and_length_do_not_change(field):
    """By central differences above 2000 ft, at points a metre apart; and mode by mode."""
    height = 3750 * FOOT
    places = np.random.default_rng(8).uniform(-1e3, 1e3, (20, 3))
    field = TurbulenceField(9, severity='severe')
    gradients = np.empty((20, 3, 3))
    for axis in range(3):
        step = np.eye(3)[axis] * 0.005
        gradients[:, axis] = (field.gust(places + step, 0.0, WIND, heights=height)
                              - field.gust(places - step, 0.0, WIND, heights=height)) / 0.01
    assert abs(np.trace(gradients, axis1=1, axis2=2)).max() < 1e-2 * abs(gradients).max()
    cosine, sine = field.amplitudes(height, 8.0)
    for side in (cosine, sine):
        divergence = (field.wave_vectors * side).sum(axis=1)
        gross = (abs(field.wave_vectors) * abs(side)).sum(axis=1)
        assert abs(divergence / gross).max() < 1e-12


def test_strength_is_that_of_the_other_models_and_follows_the_height():
    field = TurbulenceField(8, modes=1024)
    places = np.random.default_rng(9).uniform(-1e5, 1e5, (6000, 3))
    for height, sigmas in (
            (1.0, low_altitude_scales(3.0, 8.0)), (100.0, low_altitude_scales(100.0, 8.0))):
        gusts = field.gust(places, 0.0, (0.0, -8.0, 0.0), heights=height)
        # The spectrum ends at 30 rad/m: with a length of 3 m, 2 % of the variance of w is beyond.
        assert gusts.std(axis=0) == pytest.approx(
            [sigmas.sigma_u, sigmas.sigma_v, sigmas.sigma_w], rel=0.03)
    assert not field.gust(places[:2], 0.0, (0.0, 0.0, 2.0), heights=50.0).any()


# ---- theory itself

def test_structure_is_the_arithmetic_of_the_standard():
    """exp(-r/L) and exp(-r/L) (1 - r/2L) with L_u = 67.366 m and L_w = 10 m, by hand."""
    theory = structure([0.0, 20.0], 10.0, 8.0, 'across')
    np.testing.assert_allclose(theory.correlation, [[1, 1, 1], [0.633, 0.743, 0.0]], atol=5e-4)
    oblique = structure([20.0], 10.0, 8.0, (3.0, 3.0, 0.0)).correlation[0]
    assert oblique == pytest.approx([0.688, 0.688, 0.0], abs=5e-4)  # halfway between the two
    assert theory.difference[0].max() == 0.0


@pytest.mark.parametrize('spectrum', ['dryden', 'von_karman'])
def test_correlations_are_the_cosine_transforms_of_the_spectra(spectrum):
    k = np.linspace(0.0, 400.0, 800_001)
    f, g = correlations([1.0, 10.0, 30.0], 10.0, spectrum)
    for i, distance in enumerate((1.0, 10.0, 30.0)):
        for component, value in (('along', f[i]), ('across', g[i])):
            transform = integral(line_spectrum(component, k, 1.0, 10.0, spectrum)
                                 * np.cos(k * distance), k)
            assert transform == pytest.approx(value, abs=2e-4)


# ---- bad values

@pytest.mark.parametrize(('arguments', 'error', 'message'), [
    ({'modes': 0}, ValueError, 'modes is 0; it must be from 1 to 65536'),
    ({'modes': 2.5}, TypeError, r'modes is 2\.5; it must be a whole number'),
    ({'spectrum': 'kaimal'}, ValueError, "spectrum is 'kaimal'; it must be one of dryden, von_kar"),
    ({'life': -1.0}, ValueError, 'life is -1; it must be from 0 to 5'),
    ({'life': math.nan}, ValueError, 'life is nan; it must be from 0 to 5'),
    ({'severity': 'awful'}, ValueError, "severity is 'awful'; it must be one of light, moderate")])
def test_a_field_that_cannot_be_is_refused_by_name(arguments, error, message):
    with pytest.raises(error, match=message):
        TurbulenceField(1, **arguments)


@pytest.mark.parametrize('seed', [None, 1.5, True, '7'])
def test_a_seed_that_is_no_integer_is_refused(seed):
    with pytest.raises(TypeError, match=f'seed is {seed!r}; it must be an integer'):
        TurbulenceField(seed)


@pytest.mark.parametrize(('change', 'message'), [
    ({'positions': [[0, 0, 10], [0, math.nan, 10]]}, r'positions\[1, 1\] is nan; it must be a fin'),
    ({'positions': [0, 0, 10]}, r'positions have the shape \(3,\); it must be \(N, 3\)'),
    ({'positions': [[1e12, 0, 10], [0, 0, 10]]}, 'positions less the drift are up to 1e.12 m'),
    ({'time': math.inf}, 'time is inf; it must be a finite number'),
    ({'time': [1.0, 2.0, 3.0]}, r'time has the shape \(3,\); it must be one number or \(2,\)'),
    ({'mean_wind_enu': (8, 0)}, r'mean_wind_enu has the shape \(2,\); it must be \(3,\) or \(2, 3'),
    ({'mean_wind_enu': (8, math.nan, 0)}, r'mean_wind_enu\[1\] is nan'),
    ({'drift': (0, 0, -math.inf)}, r'drift\[2\] is -inf; it must be a finite number'),
    ({'age': math.nan}, 'age is nan; it must be a finite number'),
    ({'heights': [10.0, math.nan]}, r'heights\[1\] is nan; it must be a finite number')])
def test_a_question_that_makes_no_sense_is_refused_by_name(change, message, field):
    arguments = {'positions': [[0, 0, 10], [5, 0, 10]], 'time': 1.0, 'mean_wind_enu': WIND}
    with pytest.raises(ValueError, match=message):
        field.gust(**{**arguments, **change})


def test_no_places_have_no_gusts(field):
    assert field.gust(np.empty((0, 3)), 0.0, WIND).shape == (0, 3)


@pytest.mark.parametrize(('arguments', 'message'), [
    (([-1.0], 10.0, 8.0, 'up'), 'distances must be numbers of m, none negative'),
    (([1.0], math.nan, 8.0, 'up'), 'height is nan'),
    (([1.0], 10.0, 8.0, 'sideways'), "axis is 'sideways'; it must be one of along, across, up"),
    (([1.0], 10.0, 8.0, (0, 0, 0)), 'axis has no length')])
def test_structure_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        structure(*arguments)
