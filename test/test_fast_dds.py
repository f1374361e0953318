"""Profiles of Fast DDS: what a process of ours opens, and what it leaves alone."""

from __future__ import annotations

import os
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from dryden_wind_ros.nodes import fast_dds

VARIABLES = 'FASTDDS_DEFAULT_PROFILES_FILE', 'FASTRTPS_DEFAULT_PROFILES_FILE'


@pytest.fixture
def bare(monkeypatch):
    for name in (*VARIABLES, 'RMW_IMPLEMENTATION', 'ROS_AUTOMATIC_DISCOVERY_RANGE'):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_it_is_xml_with_a_participant_on_loopback_and_the_settings_of_a_fleet(bare, tmp_path):
    given = fast_dds.on_loopback(tmp_path)
    assert given['ROS_AUTOMATIC_DISCOVERY_RANGE'] == 'SYSTEM_DEFAULT'
    root = ElementTree.parse(given[VARIABLES[0]]).getroot()
    kinds = {element.tag.partition('}')[2] for element in root}
    assert kinds == {
        'data_writer', 'data_reader', 'topic', 'transport_descriptors', 'participant'}


@pytest.mark.parametrize(('name', 'value'), [
    ('RMW_IMPLEMENTATION', 'rmw_cyclonedds_cpp'), (VARIABLES[0], '/my/own.xml')])
def test_other_middleware_and_profiles_of_the_users_own_are_left_alone(bare, tmp_path, name, value):
    bare.setenv(name, value)
    assert fast_dds.on_loopback(tmp_path) == {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}
    assert not list(tmp_path.iterdir())


@pytest.mark.ros2
@pytest.mark.skipif('fastrtps' not in os.environ.get('RMW_IMPLEMENTATION', 'rmw_fastrtps_cpp'),
                    reason='about Fast DDS')
def test_no_shared_memory_is_opened(bare, tmp_path):
    """LOCALHOST would: FASTDDS_BUILTIN_TRANSPORTS=UDPv4 does nothing there."""
    bare.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    assert 'fastrtps_' in opened_by_a_node()
    for name, value in fast_dds.on_loopback(tmp_path).items():
        bare.setenv(name, value)
    assert fast_dds.on_loopback(tmp_path) == {}  # it is so already, for those it starts
    assert 'fastrtps_' not in opened_by_a_node()


def opened_by_a_node() -> str:
    """Return the files in shared memory that a process with a node has open."""
    lines = ('import rclpy', 'rclpy.init()', 'node = rclpy.create_node("looked_at")',
             'print(*(line for line in open("/proc/self/maps") if "/dev/shm/" in line))',
             'node.destroy_node()')
    return subprocess.run([sys.executable, '-c', '\n'.join(lines)], capture_output=True,
                          text=True, check=True, timeout=60).stdout
