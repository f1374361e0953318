"""What the launch files make of their arguments."""

import pytest

from dryden_wind_ros.nodes.wind_parameters import PARAMETERS, settings_of
from dryden_wind_ros.tools.launch_arguments import (
    WIND,
    LaunchArgumentError,
    misspelt,
    number,
    wind_arguments,
    wind_parameters,
)

DEFAULTS = {row.name: row.default for row in PARAMETERS}
NOTHING = dict.fromkeys(WIND, '')


def test_only_what_was_given_overrides_the_params_file():
    assert wind_parameters(NOTHING) == {}
    assert wind_parameters({**NOTHING, 'mean_wind_speed': '8', 'seed': '7', 'gusts': 'off'}) == {
        'mean_wind.speed': 8.0, 'seed': 7, 'gusts': 'off'}


@pytest.mark.parametrize(('name', 'text', 'named'), [
    ('mean_wind_speed', 'strong', "mean_wind_speed is 'strong'; it must be a number"),
    ('scale', 'nan', "scale is 'nan'; it must be a number"),
    ('seed', '1.5', "seed is '1.5'; it must be a whole number"),
    ('seed', '-1', "seed is '-1'; it must be a whole number from 0"),
    ('mean_wind_speed', '80', "mean_wind_speed is '80'; it must be a number from 0 to 60")])
def test_a_number_that_is_none_is_named(name, text, named):
    with pytest.raises(LaunchArgumentError, match=named):
        wind_parameters({**NOTHING, name: text})


def test_every_argument_is_described_and_its_choices_are_those_of_the_air():
    arguments = wind_arguments()
    assert set(arguments) == set(WIND)
    for name, details in arguments.items():
        assert details['description']
        for choice in details.get('choices', [''])[1:]:
            # Raises for an unknown one.
            settings_of({**DEFAULTS, WIND[name][0]: choice})
    assert number('instance', '3', int) == 3


@pytest.mark.parametrize(('given', 'meant'), [
    ('sedd', 'seed'), ('mean_wind_sped', 'mean_wind_speed'), ('gust', 'gusts')])
def test_a_misspelt_argument_is_reported_with_what_was_meant(given, meant):
    known = [*WIND, 'namespace', 'connection']
    assert misspelt(['seed', 'robot_name', 'use_sim_time', given], known) == [
        f'WARNING: launch argument {given} is unknown and has no effect; was {meant} meant?']


def test_arguments_that_are_known_or_of_another_launch_file_are_not_reported():
    assert misspelt([*WIND, 'robot_name', 'world', 'use_sim_time'], WIND) == []
