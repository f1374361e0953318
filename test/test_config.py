"""config/dryden_wind.yaml names every parameter of the nodes it is for, with the defaults."""

from pathlib import Path

import pytest
import yaml

from dryden_wind_ros.nodes import dryden_wind, gazebo_wind, mavlink_bridge, wind_markers

CONTENT = yaml.safe_load(
    (Path(__file__).parents[1] / 'config' / 'dryden_wind.yaml').read_text())


@pytest.mark.parametrize(('node', 'module'), [
    ('dryden_wind', dryden_wind), ('mavlink_bridge', mavlink_bridge),
    ('wind_markers', wind_markers)])
def test_the_file_shows_every_parameter_at_its_default(node, module):
    shown = CONTENT[f'/**/{node}']['ros__parameters']
    assert shown == {row.name: row.default for row in module.PARAMETERS}


@pytest.mark.parametrize(('node', 'module'), [
    ('dryden_wind', dryden_wind), ('mavlink_bridge', mavlink_bridge),
    ('wind_markers', wind_markers), ('gazebo_wind', gazebo_wind)])
def test_every_value_in_the_file_is_allowed(node, module):
    rows = {row.name: row for row in module.PARAMETERS}
    for name, value in CONTENT[f'/**/{node}']['ros__parameters'].items():
        assert rows[name].checked(value) == value
