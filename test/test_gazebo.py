"""Wind for Gazebo without a Gazebo: drag, the one wind, turns of wrenches, configuration."""

import contextlib
import math
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dryden_wind_ros.gazebo.bridge_config import expand
from dryden_wind_ros.gazebo.drag import MAX_FORCE, DragModel
from dryden_wind_ros.gazebo.vehicles import Vehicle, missing_names, parse_vehicles
from dryden_wind_ros.gazebo.world_wind import CannotCombine, WorldWind
from dryden_wind_ros.gazebo.wrench_cycle import LINK, MODEL, WrenchCycle

CONFIG = Path(__file__).parents[1] / 'config'
LEVEL = (0.0, 0.0, 0.0, 1.0)
NORTHWARD = (0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5))  # yaw 90 deg: forward is north

speeds = st.floats(-60, 60)
vectors = st.tuples(speeds, speeds, speeds)
quaternions = st.tuples(*[st.floats(-1, 1)] * 4).filter(lambda q: math.hypot(*q) > 0.1).map(
    lambda q: tuple(c / math.hypot(*q) for c in q))


# ---------------------------------------------------------------------- drag

def test_drag_is_half_rho_cd_a_v_squared_along_the_relative_wind():
    # 10 m/s towards east, vehicle at 4 m/s towards east: 6 m/s; 0.5 x 1.225 x 0.05 x 36 = 1.1025 N
    force = DragModel((0.05, 0.05, 0.05)).force((10, 0, 0), (4, 0, 0), LEVEL)
    assert force == pytest.approx((1.1025, 0.0, 0.0))


def test_each_body_axis_has_its_own_area():
    # Nose to the north: the east wind component comes from the side, the north one from behind.
    force = DragModel((0.02, 0.10, 0.0), density=1.0).force((3, 4, 0), (0, 0, 0), NORTHWARD)
    # |V| = 5; side 0.5 x 5 x 0.10 x 3 = 0.75 N towards east, along 0.5 x 5 x 0.02 x 4 = 0.2 N north
    assert force == pytest.approx((0.75, 0.2, 0.0))


def test_no_force_on_a_vehicle_that_drifts_with_the_air():
    assert DragModel((0.1, 0.2, 0.3)).force((5, -3, 1), (5, -3, 1), NORTHWARD) == (0.0, 0.0, 0.0)


@given(vectors, vectors, quaternions, st.tuples(*[st.floats(0, 2)] * 3))
def test_drag_never_drives_the_vehicle_through_the_air(wind, velocity, orientation, areas):
    force = DragModel(areas).force(wind, velocity, orientation)
    relative = [w - v for w, v in zip(wind, velocity, strict=True)]
    assert sum(f * r for f, r in zip(force, relative, strict=True)) >= -1e-9


@given(vectors, vectors, quaternions)
def test_with_equal_areas_attitude_does_not_matter(wind, velocity, orientation):
    drag = DragModel((0.07, 0.07, 0.07))
    assert drag.force(wind, velocity, orientation) == pytest.approx(
        drag.force(wind, velocity, LEVEL), abs=1e-9)


def test_force_of_odometry_that_jumps_is_bounded():
    force = DragModel((1.0, 1.0, 1.0)).force((0, 0, 0), (1e6, 1e6, 0), LEVEL)
    assert math.hypot(*force) == pytest.approx(MAX_FORCE)


@pytest.mark.parametrize('areas', [(-0.1, 0, 0), (0, math.nan, 0), (1, 1)])
def test_bad_areas_are_refused_by_value(areas):
    with pytest.raises(ValueError, match='drag areas are'):
        DragModel(areas)


def test_drag_of_what_is_not_a_number_is_refused():
    with pytest.raises(ValueError, match='must be finite'):
        DragModel((0.1, 0.1, 0.1)).force((math.nan, 0, 0), (0, 0, 0), LEVEL)


# ---------------------------------------------------------------------- vehicles

def test_vehicles_are_read_with_their_models_and_links():
    assert parse_vehicles('uav1=iris_1::base_link, fleet/uav2=a::b::hull', links=True) == (
        Vehicle('uav1', 'iris_1', 'iris_1::base_link'), Vehicle('fleet/uav2', 'a::b', 'a::b::hull'))


def test_one_vehicle_in_the_namespace_of_the_node_needs_no_list():
    assert parse_vehicles('') == (Vehicle(''),)
    assert parse_vehicles('')[0].topic('wind') == 'wind'
    assert parse_vehicles('uav1')[0].topic('wind') == 'uav1/wind'


@pytest.mark.parametrize(('text', 'why'), [
    ('1uav', "'1uav' in it"), ('uav1,,uav2', "'' in it"), ('uav1=', "'uav1=' in it"),
    ('uav1=a::', "'uav1=a::' in it"), ('uav 1', "'uav 1' in it"),
    ('uav1, uav1', "namespace 'uav1' is in it twice"),
    ('a=iris::l, b=iris::l', "model 'iris' is in it twice")])
def test_bad_lists_of_vehicles_are_refused_with_the_reason(text, why):
    with pytest.raises(ValueError, match='vehicles is') as caught:
        parse_vehicles(text)
    assert why in str(caught.value)


def test_a_force_needs_a_link_to_act_on():
    with pytest.raises(ValueError, match='does not say which link'):
        parse_vehicles('uav1=iris', links=True)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(ValueError):
        assert parse_vehicles(text)


# ---------------------------------------------------------------------- the world's wind

def heard(combine, *winds, stamp=50_000_000):
    world = WorldWind([f'uav{i}' for i in range(len(winds))], combine)
    for index, wind in enumerate(winds):
        world.take(index, wind, stamp)
    return world


def test_several_vehicles_are_not_silently_made_one():
    with pytest.raises(CannotCombine, match='mode:=wrench') as caught:
        WorldWind(['uav1', 'uav2'])
    for way in ('leader', 'average', 'mean'):
        assert f'combine:={way}' in str(caught.value)


def test_one_vehicle_gives_its_wind():
    assert heard('refuse', (8.0, 1.0, -0.5)).next().wind == (8.0, 1.0, -0.5)


def test_the_leader_gives_its_wind_and_the_others_differences_are_told():
    now = heard('leader', (8.0, 0.0, 0.0), (5.0, 4.0, 0.0)).next()
    assert now.wind == (8.0, 0.0, 0.0)
    assert now.differences == (0.0, 5.0)


@pytest.mark.parametrize('combine', ['average', 'mean'])
def test_winds_are_averaged(combine):
    now = heard(combine, (8.0, 0.0, 1.0), (4.0, 2.0, 0.0), (0.0, 1.0, -1.0)).next()
    assert now.wind == pytest.approx((4.0, 1.0, 0.0))


def test_a_vehicle_not_heard_yet_does_not_count():
    world = WorldWind(['a', 'b'], 'average')
    world.take(0, (6.0, 0.0, 0.0), 1)
    now = world.next()
    assert now.wind == (6.0, 0.0, 0.0)
    assert math.isnan(now.differences[1])


def test_each_tick_of_the_leader_is_served_once():
    world = heard('leader', (1.0, 0.0, 0.0), (2.0, 0.0, 0.0))
    assert world.next() is not None
    assert world.next() is None
    world.take(1, (3.0, 0.0, 0.0), 100_000_000)
    assert world.next() is None
    world.take(0, (1.0, 0.0, 0.0), 100_000_000)
    assert world.next() is not None
    world.take(0, (1.0, 0.0, 0.0), 0)  # time went back: a tick like any other
    assert world.next() is not None


def test_a_wind_that_is_not_a_number_leaves_the_one_before():
    world = heard('refuse', (8.0, 0.0, 0.0))
    with pytest.raises(ValueError, match='must be finite'):
        world.take(0, (math.inf, 0.0, 0.0), 100_000_000)
    assert world.next().wind == (8.0, 0.0, 0.0)


# ---------------------------------------------------------------------- turns of wrenches

def apply_link_wrench(steps, cycle):
    """Gazebo's ApplyLinkWrench: clears first, then adds up what persists. Yields forces.

    `steps` holds, for each physics step, the messages that arrive before it: a force to add at a
    turn, or 'clear' for the clearing of that turn.
    """
    persistent, turn = [], None
    for messages in steps:
        clear = []
        for message in messages:
            if message == 'clear':
                clear.append(turn.clear)
            else:
                turn = cycle.turn()
                persistent.append((turn.add, message))
        persistent = [(target, force) for target, force in persistent if target not in clear]
        yield sum(force for _, force in persistent)


def test_each_force_acts_alone_until_the_next():
    cycle = WrenchCycle('iris', 'iris::base_link')
    steps = [[1.0, 'clear'], [], [], [2.5, 'clear'], [], [-4.0, 'clear'], [], [0.5, 'clear'], []]
    assert list(apply_link_wrench(steps, cycle)) == [1.0, 1.0, 1.0, 2.5, 2.5, -4.0, -4.0, 0.5, 0.5]


def test_a_clear_that_comes_late_is_put_right_and_a_lost_one_does_not_pile_up():
    cycle = WrenchCycle('iris', 'iris::base_link')
    late = [[1.0, 'clear'], [2.0], ['clear'], [3.0, 'clear'], []]
    assert list(apply_link_wrench(late, cycle)) == [1.0, 3.0, 2.0, 3.0, 3.0]
    cycle = WrenchCycle('iris', 'iris::base_link')
    lost = [[1.0, 'clear'], [2.0], [3.0, 'clear'], [4.0, 'clear'], []]
    assert list(apply_link_wrench(lost, cycle))[-1] == 4.0


def test_both_names_are_known_for_the_end():
    cycle = WrenchCycle('iris', 'iris::base_link')
    cycle.turn()
    assert {(t.name, t.kind) for t in cycle.targets} == {
        ('iris', MODEL), ('iris::base_link', LINK)}


# ---------------------------------------------------------------------- config/

@pytest.fixture(scope='module')
def world():
    return ET.parse(CONFIG / 'gazebo_dryden_wind.sdf').getroot().find('world')


def system(world, name):
    return next(p for p in world.iter('plugin') if p.get('name') == f'gz::sim::systems::{name}')


def test_the_world_does_not_smooth_the_wind(world):
    # WindEffects: y += (step / time_for_rise) (x - y) on magnitude, direction and vertical.
    step = float(world.find('physics/max_step_size').text)
    effects = system(world, 'WindEffects')
    times = [float(t.text) for t in effects.iter('time_for_rise')]
    assert len(times) == 3
    for time_for_rise in times:
        smoothed, wanted = 0.0, [3.0, -170.0, 170.0, 5.0]
        for value in wanted:
            smoothed += step / time_for_rise * (value - smoothed)
            assert smoothed == pytest.approx(value, abs=1e-9)


def test_the_world_has_no_turbulence_of_its_own(world):
    effects = system(world, 'WindEffects')
    assert not list(effects.iter('noise'))
    assert not list(effects.iter('sin'))
    assert world.find('wind/linear_velocity').text.split() == ['0', '0', '0']


def test_plugin_files_belong_to_their_systems(world):
    names = {p.get('name'): p.get('filename') for p in world.iter('plugin')}
    for name, filename in names.items():
        words = ''.join(f'-{c.lower()}' if c.isupper() else c for c in name.split('::')[-1])
        assert filename == f'gz-sim{words}-system'


def test_what_the_bridge_carries_exists_in_the_world(world):
    models = {m.get('name'): m for m in world.iter('model')}
    entries = yaml.safe_load((CONFIG / 'gazebo_bridge.yaml').read_text())
    of_models = [e for e in entries if e['gz_topic_name'].startswith('/model/')]
    assert of_models
    for entry in of_models:
        model = models[entry['gz_topic_name'].split('/')[2]]
        publisher = system(model, 'OdometryPublisher')
        assert publisher.find('dimensions').text == '3'
    for entry in entries:
        if entry['gz_topic_name'].startswith('/world/'):
            assert entry['gz_topic_name'].split('/')[2] == world.get('name')
            assert entry['direction'] == 'ROS_TO_GZ'


def test_the_bridge_is_configured_for_each_vehicle():
    pattern = yaml.safe_load((CONFIG / 'gazebo_bridge.yaml').read_text())
    entries = expand(pattern, 'iris_runway', parse_vehicles('uav1=iris_1::base_link, uav2=iris_2'))
    topics = {e['ros_topic_name']: e['gz_topic_name'] for e in entries}
    assert topics == {
        '/clock': '/clock',
        '/uav1/odom': '/model/iris_1/odometry', '/uav2/odom': '/model/iris_2/odometry',
        '/world/iris_runway/wrench/persistent': '/world/iris_runway/wrench/persistent',
        '/world/iris_runway/wrench/clear': '/world/iris_runway/wrench/clear'}


def test_the_pattern_of_the_bridge_fits_one_vehicle_as_it_is():
    pattern = yaml.safe_load((CONFIG / 'gazebo_bridge.yaml').read_text())
    assert expand(pattern, 'dryden_wind', parse_vehicles('')) == pattern


def test_the_worlds_box_is_pushed_as_its_comment_says(world):
    # gz-sim multiplies two copies of a constant factor; measured on gz-sim 8.14: 0.3 acts as 0.09.
    factor = float(system(world, 'WindEffects').find('force_approximation_scaling_factor').text)
    assert factor ** 2 == pytest.approx(0.3, rel=1e-6)
    assert math.degrees(math.atan(factor ** 2 * 8.0 / 9.81)) == pytest.approx(14.0, abs=0.5)


def test_air_that_turns_turns_the_vehicle_by_the_second_moment_of_its_area():
    # A wing of drag area 0.3 m^2 and 2 m of span in 10 m/s: B = 0.3 x 2^2 / 12 = 0.1 m^4.
    drag = DragModel((0.0, 0.0, 0.3), 1.0, (0.1, 0.0, 0.0))
    torque = drag.torque((10, 0, 0), (0.5, 0.0, 0.0), (0, 0, 0), (0.1, 0, 0), (0, 0, 0, 1))
    assert torque == pytest.approx((0.5 * 10.0 * 0.1 * 0.4, 0.0, 0.0))
    # Nose up is q > 0, which is a turn about the axis to the right.
    pitch = DragModel((0, 0, 0), 1.0, (0.0, 0.1, 0.0)).torque(
        (10, 0, 0), (0.0, 0.5, 0.0), (0, 0, 0), (0, 0, 0), (0, 0, 0, 1))
    assert pitch == pytest.approx((0.0, -0.25, 0.0))
    assert DragModel((1, 1, 1)).torque((9, 0, 0), (9, 9, 9), (0, 0, 0), (9, 9, 9), (0, 0, 0, 1)) \
        == (0.0, 0.0, 0.0)


def test_names_that_a_world_does_not_have_are_told_with_those_it_has():
    vehicle, = parse_vehicles('uav1=iris_1::base_link', links=True)
    models, links = {'iris_1', 'ground'}, {'iris_1::base_link', 'iris_1::rotor_0'}
    assert missing_names(vehicle, models, links) == ''
    assert "no model 'iris_1'; it has ground" in missing_names(vehicle, {'ground'}, set())
    lacking = missing_names(vehicle, models, {'iris_1::rotor_0', 'ground::link'})
    assert "no link 'iris_1::base_link'" in lacking
    assert lacking.endswith('the links of iris_1 are iris_1::rotor_0')
