"""Spectra and strength of the standards' and the field's gusts beside their formulas."""

import math

import numpy as np
import pytest

from dryden_wind_ros.gusts.field import TurbulenceField
from dryden_wind_ros.gusts.scales import turbulence_scales
from dryden_wind_ros.gusts.standard import StandardGust
from dryden_wind_ros.report.flight import Air, Settings
from dryden_wind_ros.report.standing import standing_air, standing_spectra, standing_strengths

WIND = 8.0


def air_of(gust, height, airspeed, scales, **more) -> Air:
    n = gust.shape[1]
    tick, zero = np.arange(n), np.zeros(n, dtype=np.int64)
    sigma = [[scales.sigma_u], [scales.sigma_v], [scales.sigma_w]]
    length = [[scales.length_u], [scales.length_v], [scales.length_w]]
    return Air(
        tick=tick, run=zero, setting=zero, t=tick * 0.05, draws=tick, height=np.full(n, height),
        airspeed=np.full(n, airspeed), gust=gust, sigma=np.repeat(sigma, n, 1),
        length=np.repeat(length, n, 1), mean_enu=np.repeat([[WIND], [0.0], [0.0]], n, 1),
        gust_enu=gust * [[1.0], [-1.0], [1.0]], sim_wind=np.zeros((3, n)), missed=zero,
        restarts=zero, rate=np.full(n, 20.0), **more)


def settings_of(**more):
    return (Settings('dryden', 'exact', 7, 1.0, 'uniform', WIND, 270.0, 0.0, **more),)


def standard_air(model, standard, seed, n=3000, height=10.0, airspeed=15.0):
    gust = StandardGust(seed, standard)
    made = np.array([gust.step(k * 0.05, WIND, height, airspeed) for k in range(n)]).T
    scales = turbulence_scales(height, WIND, 'light', standard)
    return air_of(made, height, airspeed, scales), settings_of(model=model)


def field_air(spectrum, seed, direction, n=3000, height=20.0, speed=12.0):
    """A straight flight through a field at `speed` relative to the air, in ENU direction."""
    field = TurbulenceField(seed, modes=1024, spectrum=spectrum, life=0.0)
    t = np.arange(n) * 0.05
    drift = np.outer([WIND, 0.0, 0.0], t)
    place = drift + speed * np.outer(direction, t) + [[0.0], [0.0], [height]]
    age = t * field.turnover_rate(WIND)
    enu = field.gust(place.T, t, (WIND, 0.0, 0.0), drift=drift.T, age=age).T
    scales = turbulence_scales(height, WIND)  # the strength of a place is that of all models
    both = type(scales)(scales.sigma_u, scales.sigma_u, scales.sigma_w, scales.length_u,
                        scales.length_u, scales.length_w)
    asked = np.vstack([place, t, drift, age])
    settings = Settings('field', 'exact', seed, 1.0, 'uniform', WIND, 270.0, 0.0,
                        field_spectrum=spectrum, field_modes=1024)
    return air_of(enu * [[1.0], [-1.0], [1.0]], height, speed, both, asked=asked), (settings,)


@pytest.mark.parametrize('made', [
    lambda seed: standard_air('mil_f_8785c', 'MIL-F-8785C', seed),
    lambda seed: standard_air('mil_hdbk_1797b', 'MIL-HDBK-1797B', seed),
    lambda seed: field_air('dryden', seed, (0.6, 0.8, 0.0)),
    lambda seed: field_air('von_karman', seed, (0.0, 1.0, 0.0)),
], ids=['mil_f_8785c', 'mil_hdbk_1797b', 'dryden field', 'von karman field'])
def test_95_of_100_measurements_of_right_gusts_lie_in_their_range(made):
    inside, strong, ratio = [], [], []
    for seed in range(8):
        air, settings = made(seed)
        model = standing_air(air, settings)
        found = standing_spectra(air, model)
        assert [one.axis for one in found] == ['u', 'v', 'w']
        inside.append([one.inside for one in found])
        ratio.append([float((one.measured / one.expected).mean()) for one in found])
        whole, _ = standing_strengths(air, model)
        strong += whole.agrees.tolist()
    assert (np.mean(inside, axis=0) > 0.91).all()
    assert np.mean(inside) < 0.99
    np.testing.assert_allclose(np.mean(ratio, axis=0), 1.0, atol=0.1)
    assert np.mean(strong) >= 0.85  # of 24


@pytest.mark.parametrize('standard', ['MIL-F-8785C', 'MIL-HDBK-1797B'])
def test_the_curves_are_the_standards_formulas(standard):
    model = {'MIL-F-8785C': 'mil_f_8785c', 'MIL-HDBK-1797B': 'mil_hdbk_1797b'}[standard]
    air, settings = standard_air(model, standard, 1, n=1200)
    scales = turbulence_scales(10.0, WIND, 'light', standard)
    u, v, w = standing_spectra(air, standing_air(air, settings))
    # Phi_w = sigma^2 / (pi V) times, with x = L_w omega / V,
    # MIL-F-8785C: L_w (1 + 3 x^2) / (1 + x^2)^2
    # MIL-HDBK-1797B: 2 L_w (1 + 12 x^2) / (1 + 4 x^2)^2
    for one, sigma, length in ((v, scales.sigma_v, scales.length_v),
                               (w, scales.sigma_w, scales.length_w)):
        double = 2.0 if standard == 'MIL-HDBK-1797B' else 1.0
        omega = 2.0 * math.pi * one.curve_frequency
        square = (double * length * omega / 15.0) ** 2
        wanted = (sigma**2 * double * length / (math.pi * 15.0) * (1.0 + 3.0 * square)
                  / (1.0 + square) ** 2)
        np.testing.assert_allclose(one.curve, 2.0 * math.pi * wanted, rtol=1e-9)
    omega = 2.0 * math.pi * u.curve_frequency
    wanted = scales.sigma_u**2 * 2.0 * scales.length_u / (math.pi * 15.0) / (
        1.0 + (scales.length_u * omega / 15.0) ** 2)
    np.testing.assert_allclose(u.curve, 2.0 * math.pi * wanted, rtol=1e-9)


def test_gusts_that_are_half_too_strong_lie_outside():
    air, settings = standard_air('mil_f_8785c', 'MIL-F-8785C', 3, n=6000)
    strong = air_of(1.5 * air.gust, 10.0, 15.0, turbulence_scales(10.0, WIND))
    whole, _ = standing_strengths(strong, standing_air(strong, settings))
    assert not whole.agrees[2]
    assert max(one.inside for one in standing_spectra(
        strong, standing_air(strong, settings))) < 0.8
