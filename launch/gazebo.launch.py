"""A Gazebo world, its clock and odometry bridged to the wind nodes, and their wind back to it.

    ros2 launch dryden_wind_ros gazebo.launch.py gz_sim:=true mean_wind_speed:=8 seed:=7

That is the world of this package with its drifting box. With a world of yours that runs already:

    ros2 launch dryden_wind_ros gazebo.launch.py world:=iris_runway mean_wind_speed:=8
        vehicles:=uav1=iris_1,uav2=iris_2 combine:=leader

docs/gazebo.md tells which physics feels which wind.
"""

import os
import tempfile
from pathlib import Path

import yaml
from ament_index_python.packages import (
    PackageNotFoundError,
    get_package_prefix,
    get_package_share_directory,
)
from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    IncludeLaunchDescription,
    OpaqueFunction,
    RegisterEventHandler,
    Shutdown,
)
from launch.event_handlers import OnProcessExit, OnShutdown
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_ros.actions import Node

from dryden_wind_ros.gazebo.bridge_config import expand
from dryden_wind_ros.gazebo.vehicles import parse_vehicles
from dryden_wind_ros.gazebo.world_name import check_world
from dryden_wind_ros.gazebo.world_wind import COMBINATIONS, check_combination
from dryden_wind_ros.sitl.fleet import derived_seed
from dryden_wind_ros.tools.launch_arguments import number, wind_arguments, wind_parameters

PACKAGE = 'dryden_wind_ros'
CONFIG = Path(get_package_share_directory(PACKAGE)) / 'config'

# launch argument -> parameter of gazebo_wind
DRAG = {
    'drag_area_x': 'drag_area.x',
    'drag_area_y': 'drag_area.y',
    'drag_area_z': 'drag_area.z',
    'turn_area_x': 'turn_area.x',
    'turn_area_y': 'turn_area.y',
    'turn_area_z': 'turn_area.z',
}
INSTALL = {
    'ros_gz_bridge': 'bridge:=false where clock and odometry come some other way',
    'ros_gz_sim': 'gz_sim:=false with a Gazebo that you start yourself',
}


def _arguments():
    yes_no = ['true', 'false']
    return [
        DeclareLaunchArgument(
            'world', default_value='dryden_wind',
            description="Name of the Gazebo world, <world name='...'> of its SDF."),
        DeclareLaunchArgument(
            'vehicles', default_value='',
            description='Vehicles as namespace=model, separated by commas; in mode wrench '
                        'namespace=model::link with the canonical link. Default: one vehicle '
                        "without namespace, the model 'vehicle' (mode wrench: vehicle_2)."),
        DeclareLaunchArgument(
            'mode', default_value='wind', choices=['wind', 'wrench'],
            description="How Gazebo gets the wind: the world's one wind, or each vehicle its own "
                        'as a force of drag.'),
        DeclareLaunchArgument(
            'combine', default_value='refuse', choices=list(COMBINATIONS),
            description='Which one wind several vehicles get in mode wind: that of the first '
                        '(leader), the average, or the average of the mean winds (mean).'),
        DeclareLaunchArgument(
            'gazebo', default_value='auto', choices=['auto', 'harmonic', 'ionic', 'jetty'],
            description='Gazebo release whose Python bindings are used in mode wind.'),
        *[DeclareLaunchArgument(
            name, default_value='',
            description=f'Mode wrench: drag coefficient times frontal area from {side}, m^2. '
                        'Default: what params_file says.')
          for name, side in (('drag_area_x', 'the front'), ('drag_area_y', 'the side'),
                             ('drag_area_z', 'above'))],
        *[DeclareLaunchArgument(
            name, default_value='',
            description='Mode wrench, with a span: second moment of the drag area about the '
                        f'{axis}, m^4, by which the gust turns the vehicle. Default: what '
                        'params_file says.')
          for name, axis in (('turn_area_x', 'forward axis'), ('turn_area_y', 'axis to the left'),
                             ('turn_area_z', 'axis up'))],
        *(DeclareLaunchArgument(name, **details) for name, details in _wind().items()),
        DeclareLaunchArgument(
            'same_air', default_value='false', choices=yes_no,
            description='Whether all vehicles meet the same draws: the seed itself for each.'),
        DeclareLaunchArgument(
            'params_file', default_value=str(CONFIG / 'dryden_wind.yaml'),
            description='Parameters of the nodes.'),
        DeclareLaunchArgument(
            'gz_sim', default_value='false', choices=yes_no,
            description='Start Gazebo too (needs ros_gz_sim).'),
        DeclareLaunchArgument(
            'gz_args', default_value=f'-r {CONFIG / "gazebo_dryden_wind.sdf"}',
            description='Arguments of gz sim: -r runs at once, -s without a window, and the '
                        'file of the world.'),
        DeclareLaunchArgument(
            'headless', default_value='false', choices=yes_no,
            description='With gz_sim: no window, only the server (adds -s to gz_args).'),
        DeclareLaunchArgument(
            'sitl_relay', default_value='false', choices=yes_no,
            description='Start sitl_wind_relay, so that SITLs that fly in this world feel its '
                        'wind: the n-th vehicle is SITL instance n - 1, to be started with '
                        '--model JSON and --sim-port-out 9102 + 10 x instance.'),
        DeclareLaunchArgument(
            'bridge', default_value='true', choices=yes_no,
            description='Start ros_gz_bridge for clock, odometry and forces.'),
        DeclareLaunchArgument(
            'bridge_file', default_value=str(CONFIG / 'gazebo_bridge.yaml'),
            description='Pattern of the configuration of ros_gz_bridge; the names of the world '
                        'and of the vehicles are put in.'),
        DeclareLaunchArgument(
            'log_level', default_value='info',
            choices=['debug', 'info', 'warn', 'error', 'fatal'],
            description='Log level of the nodes of this package.'),
    ]


def _wind():
    arguments = wind_arguments()
    # SITL's turbulence and profile are SITL's: Gazebo has neither.
    del arguments['profile']
    arguments['gusts']['choices'].remove('sitl')
    arguments['gusts']['description'] = (
        'Gusts: seeded Dryden gusts, or none. Default: what params_file says.')
    arguments['seed']['description'] = (
        'Seed of the gusts, a whole number from 0; of several vehicles each gets one derived from '
        'it. Default: what params_file says.')
    return arguments


def _needed(package):
    try:
        get_package_prefix(package)
    except PackageNotFoundError:
        name = package.replace('_', '-')
        raise RuntimeError(
            f'gazebo.launch.py needs the package {package}, which is not installed. On Ubuntu: '
            f'sudo apt install ros-{os.environ.get("ROS_DISTRO", "$ROS_DISTRO")}-{name}, or use '
            + INSTALL[package]) from None


def _existing(name, text):
    path = Path(text).expanduser()
    if not path.is_file():
        raise RuntimeError(f'launch argument {name} is {text!r}; there is no such file')
    return path


def _start(context):
    def given(name):
        return context.launch_configurations[name]

    wrench = given('mode') == 'wrench'
    text = given('vehicles') or ('=vehicle_2::base_link' if wrench else '=vehicle')
    try:
        check_world(given('world'), wrench=wrench)
        vehicles = parse_vehicles(text, links=wrench)
        if not wrench:
            check_combination([v.name for v in vehicles], given('combine'))
    except ValueError as error:
        raise RuntimeError(f'launch arguments: {error}') from None
    params_file = _existing('params_file', given('params_file'))
    wind = wind_parameters({**context.launch_configurations, 'profile': ''})
    drag = {parameter: number(name, given(name), float)
            for name, parameter in DRAG.items() if given(name)}
    seed, same_air = wind.pop('seed', None), given('same_air') == 'true'
    if seed is None and len(vehicles) > 1 and not same_air:
        # The file has one seed for all: take it as the fleet's.
        seed = _seed_of(params_file)

    actions = []
    if given('gz_sim') == 'true':
        _needed('ros_gz_sim')
        launch_file = Path(get_package_share_directory('ros_gz_sim')) / 'launch/gz_sim.launch.py'
        actions.append(IncludeLaunchDescription(
            PythonLaunchDescriptionSource(str(launch_file)),
            launch_arguments={'gz_args': _gz_args(given), 'on_exit_shutdown': 'true'}.items()))
    if given('bridge') == 'true':
        _needed('ros_gz_bridge')
        actions += _bridge(_existing('bridge_file', given('bridge_file')), given('world'), vehicles)
    common = {
        'package': PACKAGE, 'output': 'screen', 'emulate_tty': True,
        'ros_arguments': ['--log-level', given('log_level')],
    }
    for index, vehicle in enumerate(vehicles):
        own = dict(wind)
        if seed is not None:
            alone = same_air or len(vehicles) == 1
            own['seed'] = seed if alone else derived_seed(seed, index)
        actions.append(Node(
            executable='dryden_wind', name='dryden_wind', namespace=vehicle.namespace,
            parameters=[str(params_file), own], remappings=[('clock', '/clock')], **common))
    if given('sitl_relay') == 'true':
        relay = {'vehicles': ','.join(
            f'{vehicle.namespace}={index}' for index, vehicle in enumerate(vehicles))
            if vehicles[0].namespace else ''}
        if not wrench:
            relay['wind_topic'] = '/world_wind'  # what the world has, whoever's wind it is
        actions.append(Node(
            executable='sitl_wind_relay', name='sitl_wind_relay',
            parameters=[str(params_file), relay], **common))
    gazebo_wind = Node(
        executable='gazebo_wind', name='gazebo_wind',
        parameters=[str(params_file), drag | {
            'world': given('world'), 'mode': given('mode'), 'vehicles': text,
            'combine': given('combine'), 'gazebo': given('gazebo')}], **common)
    return [*actions, gazebo_wind, RegisterEventHandler(OnProcessExit(
        target_action=gazebo_wind, on_exit=[Shutdown(reason='gazebo_wind has ended')]))]


def _gz_args(given):
    words = given('gz_args')
    return f'-s {words}' if given('headless') == 'true' and '-s' not in words.split() else words


def _seed_of(params_file):
    content = yaml.safe_load(params_file.read_text()) or {}
    for name, node in content.items():
        if name.rpartition('/')[2] == 'dryden_wind' and 'seed' in node.get('ros__parameters', {}):
            return node['ros__parameters']['seed']
    return 1


def _bridge(pattern, world, vehicles):
    entries = expand(yaml.safe_load(pattern.read_text()), world, vehicles)
    handle, path = tempfile.mkstemp(prefix='gazebo_bridge_', suffix='.yaml')
    with os.fdopen(handle, 'w') as file:
        yaml.safe_dump([dict(entry) for entry in entries], file, sort_keys=False)

    def remove(_event, _context):
        Path(path).unlink(missing_ok=True)

    return [
        Node(package='ros_gz_bridge', executable='parameter_bridge', name='gazebo_bridge',
             parameters=[{'config_file': path}], output='screen'),
        RegisterEventHandler(OnShutdown(on_shutdown=remove)),
    ]


def generate_launch_description():
    """Describe Gazebo, the bridge, the wind nodes and gazebo_wind."""
    return LaunchDescription([*_arguments(), OpaqueFunction(function=_start)])
