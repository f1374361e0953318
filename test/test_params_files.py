"""A params file of which nothing is for the node is said to be that."""

from __future__ import annotations

import pytest
import yaml

pytestmark = pytest.mark.ros2

NAME = '/uav1/dryden_wind'
VALUES = {'ros__parameters': {'mean_wind.speed': 8.0}}


def unused(content: object, name: str = NAME) -> str | None:
    from dryden_wind_ros.nodes import params_files
    return params_files.unused(content, name)


@pytest.mark.parametrize('key', ['/**', '/uav1/dryden_wind', 'uav1/dryden_wind', '/**/dryden_wind',
                                 '/*/dryden_wind', '/uav1/*', '/uav1/**'])
def test_what_ros_would_take_is_used(key: str) -> None:
    assert unused({key: VALUES}) is None


@pytest.mark.parametrize('content', [
    {'uav1': {'dryden_wind': VALUES}}, {}, None,
    # One file for several nodes is given to each of them
    {'mavlink_bridge': VALUES}, {'/other': VALUES, '/uav1/mavlink_bridge': VALUES}])
def test_other_files_are_none_to_report(content: object) -> None:
    assert unused(content) is None


@pytest.mark.parametrize('key', ['dryden_wind', '/uav2/dryden_wind', '/*', 'drydenwind',
                                 '/uav1/more/dryden_wind', '/*/*/dryden_wind'])
def test_a_file_for_another_name_applied_nothing(key: str) -> None:
    text = unused({key: VALUES})
    assert text is not None
    assert text.startswith(f'none of it applied: this node is {NAME}, and the file is for /{key}'
                           .replace('//', '/'))
    assert '/**/dryden_wind' in text


def test_the_node_says_so_in_its_log(tmp_path, capfd) -> None:
    import rclpy

    from dryden_wind_ros.nodes import params_files
    path = tmp_path / 'wind.yaml'
    path.write_text(yaml.safe_dump({'dryden_wind': VALUES}))
    context = rclpy.Context()
    rclpy.init(context=context)
    try:
        node = rclpy.create_node('dryden_wind', namespace='uav1', context=context)
        params_files.report_unused(node, ['--ros-args', '--params-file', str(path)])
        node.destroy_node()
    finally:
        rclpy.shutdown(context=context)
    out = ''.join(capfd.readouterr())
    assert f'params file {path}: none of it applied' in out
