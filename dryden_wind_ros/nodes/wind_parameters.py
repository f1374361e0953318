"""The parameters of a wind node, and what they mean in the terms of `dryden_wind_ros.gusts.air`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dryden_wind_ros.gusts.air_settings import (
    DEFAULT_LEAD,
    GUSTS,
    MAX_LEAD,
    MAX_MEAN_WIND,
    MAX_SEED,
    MAX_UPDRAFT,
    MIN_FIELD_MODES,
    MODELS,
    PROFILES,
    AirSettings,
)
from dryden_wind_ros.gusts.dryden import MAX_SCALE, METHODS
from dryden_wind_ros.gusts.field import MAX_LIFE, MAX_MODES
from dryden_wind_ros.gusts.frames import wrap_360
from dryden_wind_ros.gusts.standard import MAX_SPAN
from dryden_wind_ros.gusts.theory import SPECTRA
from dryden_wind_ros.nodes.common import Parameter

PARAMETERS = (
    Parameter('mean_wind.speed', 0.0, 'Horizontal mean wind, m/s.', low=0.0, high=MAX_MEAN_WIND),
    Parameter('mean_wind.from_direction', 270.0,
              'Where the mean wind comes from, degrees true, clockwise from north: 270 is a west '
              'wind, which blows towards the east.', low=-360.0, high=360.0),
    Parameter('mean_wind.up', 0.0, 'Steady updraft, m/s, positive up.',
              low=-MAX_UPDRAFT, high=MAX_UPDRAFT),
    Parameter('gusts', 'dryden',
              "'dryden': seeded gusts of a model, for this vehicle; 'field': one seeded air for "
              "all vehicles, by place and time; 'off': a steady wind; 'sitl': SITL's own "
              'turbulence, SIM_WIND_TURB = 0.1 x mean wind x scale.', choices=GUSTS),
    Parameter('model', 'first_order',
              "Of gusts 'dryden': 'first_order', as docs/model.md has it, to 1000 ft; "
              "'mil_f_8785c' and 'mil_hdbk_1797b', the standards' own, to 80 000 ft. A change "
              'restarts the air.', choices=tuple(MODELS)),
    Parameter('method', 'exact',
              "Update of the first-order model: 'exact' has the right strength at any step; "
              "'euler' repeats runs of older code. A change restarts the air.", choices=METHODS),
    Parameter('severity', 'light',
              "Turbulence above 1000 ft, of the standards' models and of the field: 'light', "
              "'moderate', 'severe', or a probability of exceedance from 1e-6 to 0.2, as text. A "
              'change restarts the air.'),
    Parameter('span', 0.0,
              "Wing span for the rates of the gust, m, of the standards' models and of the field; "
              '0: no rates. A change restarts the air.', low=0.0, high=MAX_SPAN),
    Parameter('field.spectrum', 'dryden', "Of gusts 'field': its spectrum.", choices=SPECTRA),
    Parameter('field.modes', 4096, "Of gusts 'field': how many Fourier modes; the cost is in "
              'proportion.', low=MIN_FIELD_MODES, high=MAX_MODES),
    Parameter('field.life', 0.5, "Of gusts 'field': how fast it changes while it drifts; 0: "
              'frozen.', low=0.0, high=MAX_LIFE),
    Parameter('field.lead', DEFAULT_LEAD,
              'How long after its tick SITL feels a wind, s: the field is asked for then, where '
              'the vehicle will be. 0: at the tick, where it was last heard.',
              low=0.0, high=MAX_LEAD),
    Parameter('scale', 1.0, 'Factor on the gust, not on the mean wind.',
              low=0.0, high=MAX_SCALE, above_low=True),
    Parameter('seed', 1, 'Seed of the random draws: the same seed meets the same gusts again. '
              'A change restarts the air.', low=0, high=MAX_SEED),
    Parameter('profile', 'uniform',
              "'uniform': the same mean wind at every height (SIM_WIND_T = 1); 'sitl': SIM_WIND_T "
              'stays as SITL has it.', choices=PROFILES),
    Parameter('scenario', '',
              'Scenario file (YAML) or bag that says how the mean wind changes and which discrete '
              'gusts blow; read once. mean_wind.* set afterwards win over it.'),
    Parameter('ground_height', 0.0, 'Height of the ground in the frame of the odometry, m.',
              low=-10_000.0, high=10_000.0),
    Parameter('frame_id', 'map', 'Frame of the ENU vectors, written into the headers.'),
)


def settings_of(values: Mapping[str, Any]) -> AirSettings:
    """Return the settings that values of `PARAMETERS` ask for; ValueError where one is wrong."""
    return AirSettings(
        mean_speed=values['mean_wind.speed'], mean_from_deg=values['mean_wind.from_direction'],
        mean_up=values['mean_wind.up'], gusts=values['gusts'], model=values['model'],
        method=values['method'], severity=values['severity'], span=values['span'],
        field_spectrum=values['field.spectrum'], field_modes=values['field.modes'],
        field_life=values['field.life'], field_lead=values['field.lead'],
        scale=values['scale'], seed=values['seed'], profile=values['profile'],
        ground_height=values['ground_height'])


def in_words(settings: AirSettings) -> str:
    """Return what will blow, in one line."""
    wind = f'mean wind {settings.mean_speed:g} m/s from {wrap_360(settings.mean_from_deg):g} deg'
    if settings.mean_up:
        wind += f', updraft {settings.mean_up:g} m/s'
    if settings.gusts == 'off':
        return f'{wind}, no gusts'
    if settings.gusts == 'sitl':
        return f"{wind}, SITL's own turbulence of {settings.turbulence:g} m/s"
    if settings.gusts == 'field':
        return (f'{wind}, gusts of the field (seed {settings.seed}, {settings.field_spectrum}, '
                f'{settings.field_modes} modes, scale {settings.scale:g})')
    how = MODELS[settings.model] or settings.method
    return f'{wind}, Dryden gusts (seed {settings.seed}, {how}, scale {settings.scale:g})'
