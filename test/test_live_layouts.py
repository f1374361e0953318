"""The layouts for Foxglove and PlotJuggler: valid files whose every path exists in the messages."""

import json
import re
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rosidl_parser.definition import AbstractSequence, BasicType, NamespacedType
from visualization_msgs.msg import MarkerArray

from dryden_wind_interfaces.msg import EkfWind, WindState

pytestmark = pytest.mark.ros2

ROOT = Path(__file__).parents[1]
FOXGLOVE = ROOT / 'config' / 'foxglove_dryden_wind.json'
PLOTJUGGLER = ROOT / 'config' / 'plotjuggler_dryden_wind.xml'

# Topics as in docs: who publishes what.
TYPES = {
    '/wind/state': WindState, '/ekf_wind': EkfWind, '/odom': Odometry,
    '/wind/markers': MarkerArray, '/diagnostics': DiagnosticArray,
}
NEEDED = {
    '/wind/state': {'u', 'v', 'w', 'mean.x', 'mean.y', 'sim_wind_spd', 'sim_wind_dir',
                    'sim_wind_dir_z', 'height', 'airspeed', 'tick_rate', 'missed_ticks'},
    '/ekf_wind': {'error_speed', 'wind_e', 'flown_e', 'wind_n', 'flown_n'},
}


def field_type(message, path):
    """Return the type of a field, walking the fields of the real message classes."""
    for i, name in enumerate(path):
        slots = dict(zip(message.get_fields_and_field_types(), message.SLOT_TYPES, strict=True))
        assert name in slots, f'{message.__name__} has no field {name}'
        kind = slots[name]
        if i == len(path) - 1:
            return kind
        assert isinstance(kind, NamespacedType), f'{message.__name__}.{name} is no message'
        package = __import__('.'.join(kind.namespaces), fromlist=[kind.name])
        message = getattr(package, kind.name)
    raise AssertionError('no field named')


def split(path, separator):
    topic = max((t for t in TYPES if path.startswith(t + separator)), key=len, default=None)
    assert topic, f'{path}: no topic of ours'
    return topic, path[len(topic) + 1:].split(separator)


def strings(value, key=''):
    """Yield every string of a JSON value with the key that it stands under."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, child in value.items():
            yield from strings(child, name)
    elif isinstance(value, list):
        for child in value:
            yield from strings(child, key)


def foxglove_paths(layout):
    return [text for key, text in strings(layout['configById']) if key in ('value', 'path')]


def plotjuggler_curves(root):
    return [curve.get('name') for curve in root.iter('curve')]


def panels_of(layout):
    if isinstance(layout, str):
        return [layout]
    assert layout['direction'] in ('row', 'column')
    assert 0 < layout['splitPercentage'] < 100
    return panels_of(layout['first']) + panels_of(layout['second'])


def test_every_path_of_the_foxglove_layout_exists_and_can_be_plotted():
    layout = json.loads(FOXGLOVE.read_text())
    named = {}
    for path in foxglove_paths(layout):
        topic, fields = split(path, '.')
        kind = field_type(TYPES[topic], fields)
        assert not isinstance(kind, AbstractSequence)
        if path.split('.')[-1] != 'phase_name':
            assert isinstance(kind, BasicType), f'{path} is no number'
        named.setdefault(topic, set()).add('.'.join(fields))
    for topic, fields in NEEDED.items():
        assert fields <= named[topic]
    assert 'phase_name' in named['/ekf_wind']


def test_every_panel_of_the_foxglove_layout_is_shown_once_and_is_of_a_known_kind():
    layout = json.loads(FOXGLOVE.read_text())
    # What Foxglove writes when a layout is exported.
    assert set(layout) == {'configById', 'globalVariables', 'userNodes', 'playbackConfig', 'layout'}
    shown = panels_of(layout['layout'])
    assert sorted(shown) == sorted(layout['configById'])
    kinds = {name.split('!')[0] for name in shown}
    assert kinds == {'Plot', 'StateTransitions', 'Indicator', 'DiagnosticSummary', '3D'}
    scene = next(c for name, c in layout['configById'].items() if name.startswith('3D!'))
    assert scene['topics'] == {'/wind/markers': {'visible': True}}


def test_the_foxglove_indicator_knows_every_phase():
    layout = json.loads(FOXGLOVE.read_text())
    rules = layout['configById']['Indicator!phase']['rules']
    # The constants of the message are the phases.
    constants = re.findall(r'(?m)^uint8 (\w+)=\d', (
        ROOT / 'dryden_wind_interfaces' / 'msg' / 'EkfWind.msg').read_text())
    assert {rule['rawValue'] for rule in rules} == {name.lower() for name in constants}
    assert len({rule['color'] for rule in rules}) >= len(rules) - 1


def test_every_curve_of_the_plotjuggler_layout_exists_and_is_a_number():
    root = ET.parse(PLOTJUGGLER).getroot()
    named = {}
    for curve in plotjuggler_curves(root):
        topic, fields = split(curve, '/')
        assert isinstance(field_type(TYPES[topic], fields), BasicType), f'{curve} is no number'
        named.setdefault(topic, set()).add('.'.join(fields))
    for topic, fields in NEEDED.items():
        assert fields <= named[topic]
    assert 'phase' in named['/ekf_wind']


def test_the_plotjuggler_layout_starts_the_topic_subscriber_on_the_topics_it_plots():
    root = ET.parse(PLOTJUGGLER).getroot()
    name = root.find('previouslyLoaded_Streamer').get('name')
    plugin = root.find(f'Plugins/plugin[@ID="{name}"]')
    selected = plugin.find('selected_topics').get('value').split(';')
    assert set(selected) <= set(TYPES)
    assert {split(c, '/')[0] for c in plotjuggler_curves(root)} <= set(selected)
    for splitter in root.iter('DockSplitter'):
        children = len(splitter)
        assert splitter.get('count') == str(children)
        assert len(splitter.get('sizes').split(';')) == children


def test_the_command_in_the_docs_puts_both_layouts_into_a_namespace():
    commands = re.findall(r"(?m)^sed -E '.*$", (ROOT / 'docs' / 'live_views.md').read_text())
    assert len(commands) == 2
    for command in commands:
        assert 'drone1' in command
        made = subprocess.run(
            ['bash', '-c', command.replace('$CONFIG', str(ROOT / 'config')).split(' > ')[0]],
            capture_output=True, text=True, check=True).stdout
        if made.startswith('{'):
            layout = json.loads(made)
            paths = foxglove_paths(layout)
            assert layout['configById']['3D!wind']['topics'] == {
                '/drone1/wind/markers': {'visible': True}}
            plain = foxglove_paths(json.loads(FOXGLOVE.read_text()))
            assert '"/diagnostics"' in made
        else:
            root = ET.fromstring(made)
            paths = plotjuggler_curves(root)
            plain = plotjuggler_curves(ET.parse(PLOTJUGGLER).getroot())
            selected = root.find('Plugins/plugin/selected_topics').get('value').split(';')
            assert selected == ['/drone1/wind/state', '/drone1/ekf_wind', '/drone1/odom',
                                '/diagnostics']
        assert paths == ['/drone1' + path for path in plain]
