"""What the launch files have in common: the arguments that say what the wind is to be like.

Plain data, so that it can be tested without the launch packages: a launch file turns each row into
a ``DeclareLaunchArgument``.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from typing import Any

from dryden_wind_ros.gusts.air_settings import (
    GUSTS,
    MAX_MEAN_WIND,
    MAX_SEED,
    MAX_UPDRAFT,
    MIN_FIELD_MODES,
    MODELS,
)
from dryden_wind_ros.gusts.dryden import MAX_SCALE
from dryden_wind_ros.gusts.field import MAX_LIFE, MAX_MODES
from dryden_wind_ros.gusts.standard import MAX_SPAN
from dryden_wind_ros.gusts.theory import SPECTRA

WIND: Mapping[str, tuple[str, type]] = {
    'mean_wind_speed': ('mean_wind.speed', float),
    'mean_wind_from': ('mean_wind.from_direction', float),
    'mean_wind_up': ('mean_wind.up', float),
    'gusts': ('gusts', str),
    'model': ('model', str),
    'method': ('method', str),
    'severity': ('severity', str),
    'span': ('span', float),
    'field_spectrum': ('field.spectrum', str),
    'field_modes': ('field.modes', int),
    'field_life': ('field.life', float),
    'scale': ('scale', float),
    'seed': ('seed', int),
    'profile': ('profile', str),
    'scenario': ('scenario', str),
    'ground_height': ('ground_height', float),
}
"""Launch argument: parameter of the wind node, and its type."""

_KINDS = {float: 'a number', int: 'a whole number'}
_RANGES: Mapping[str, tuple[float, float]] = {
    'mean_wind_speed': (0.0, MAX_MEAN_WIND),
    'mean_wind_from': (-360.0, 360.0),
    'mean_wind_up': (-MAX_UPDRAFT, MAX_UPDRAFT),
    'span': (0.0, MAX_SPAN),
    'field_modes': (MIN_FIELD_MODES, MAX_MODES),
    'field_life': (0.0, MAX_LIFE),
    'scale': (0.0, MAX_SCALE),
    'seed': (0, MAX_SEED),
    'instance': (0, 999),
    'first_instance': (0, 999),
    'system_id': (0, 255),
}
_DESCRIPTIONS = {
    'mean_wind_speed': 'Horizontal mean wind, m/s, 0 to 60.',
    'mean_wind_from': 'Where the mean wind comes from, degrees true: 270 is a west wind, which '
                      'blows towards the east.',
    'mean_wind_up': 'Updraft, m/s, -20 to 20, positive up.',
    'gusts': "Gusts: seeded ones of a model, one seeded air for all vehicles, none, or SITL's own.",
    'model': "Model of the gusts: first order, or one of the standards'.",
    'method': 'Update of the first-order model.',
    'severity': 'Turbulence above 1000 ft: light, moderate, severe, or a probability of '
                'exceedance.',
    'span': 'Wing span for the rates of the gust, m; 0: none.',
    'field_spectrum': 'Spectrum of the field (gusts:=field).',
    'field_modes': 'Fourier modes of the field.',
    'field_life': 'How fast the field changes while it drifts, 0 (frozen) to 5.',
    'scale': 'Factor on the gust, above 0, at most 5.',
    'seed': 'Seed of the gusts, a whole number from 0.',
    'profile': 'Mean wind by height: the same everywhere, or as SITL has it.',
    'scenario': 'Scenario file (YAML) or bag: how the mean wind changes, and discrete gusts.',
    'ground_height': "Height of the ground in the odometry's frame, m.",
}
_CHOICES = {
    'gusts': list(GUSTS),
    'model': list(MODELS),
    'field_spectrum': list(SPECTRA),
    'method': ['exact', 'euler'],
    'profile': ['uniform', 'sitl'],
}


class LaunchArgumentError(ValueError):
    """A launch argument has a value that is not allowed."""


def wind_arguments() -> dict[str, dict[str, Any]]:
    """Return the keywords of ``DeclareLaunchArgument`` for each argument of `WIND`.

    The default is '': the params file says.
    """
    return {
        name: {
            'default_value': '',
            'description': f'{text} Default: what params_file says.',
            **({'choices': ['', *_CHOICES[name]]} if name in _CHOICES else {}),
        }
        for name, text in _DESCRIPTIONS.items()
    }


def wind_parameters(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters that launch arguments stand for; '' stands for none.

    Raises
    ------
    LaunchArgumentError
        If a number is no number.
    """
    return {parameter: text if kind is str else number(name, text, kind)
            for name, (parameter, kind) in WIND.items() if (text := given[name])}


def number(name: str, text: str, kind: type) -> Any:
    """Return a launch argument as ``float`` or ``int``.

    Raises
    ------
    LaunchArgumentError
        If it is none, not finite or out of range.
    """
    low, high = _RANGES.get(name, (-math.inf, math.inf))
    try:
        value = kind(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and low <= value <= high):
        between = f' from {low:g} to {high:g}' if name in _RANGES else ''
        raise LaunchArgumentError(
            f'launch argument {name} is {text!r}; it must be {_KINDS[kind]}{between}')
    return value


def misspelt(given: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return a warning for each name given that nearly is one of those known.

    ``ros2 launch`` takes any name in silence, and a ``sedd:=7`` would fly with another seed. Names
    that resemble none may belong to a launch file that includes this one: nothing is said of them.
    """
    known = set(known)
    warnings = []
    for name in sorted(set(given) - known):
        near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.75)
        if near:
            warnings.append(f'WARNING: launch argument {name} is unknown and has no effect; '
                            f'was {near[0]} meant?')
    return warnings
