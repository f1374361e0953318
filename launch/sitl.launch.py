"""One vehicle: the wind node and the MAVLink bridge to a running ArduPilot SITL.

    ros2 launch dryden_wind_ros sitl.launch.py mean_wind_speed:=8 gusts:=dryden seed:=7

With ``emulator:=true`` the embedded vehicle is started too, with ``sitl_command:='...'`` a SITL of
yours. Both are ended only after the bridge has put SITL's parameters back.
"""

import shlex
from pathlib import Path

from ament_index_python.packages import (
    PackageNotFoundError,
    get_package_prefix,
    get_package_share_directory,
)
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction
from launch_ros.actions import Node

from dryden_wind_ros.tools import launch_vehicles
from dryden_wind_ros.tools.launch_arguments import WIND, misspelt, number, wind_parameters
from dryden_wind_ros.tools.launch_vehicles import YES_NO

PACKAGE = 'dryden_wind_ros'
CONFIG = Path(get_package_share_directory(PACKAGE)) / 'config'


def _arguments():
    return [
        DeclareLaunchArgument(
            'namespace', default_value='', description='Namespace of the vehicle.'),
        DeclareLaunchArgument(
            'instance', default_value='0',
            description='SITL instance number; sets the default connection.'),
        DeclareLaunchArgument(
            'connection', default_value='',
            description='pymavlink connection string of the vehicle. Default: '
                        'tcp:127.0.0.1:(5762 + 10 x instance).'),
        DeclareLaunchArgument(
            'system_id', default_value='0',
            description='MAVLink system id of the vehicle; 0 takes the first ArduPilot heard.'),
        *launch_vehicles.declare_wind(),
        DeclareLaunchArgument(
            'publish_clock', default_value='true', choices=YES_NO,
            description="Whether the bridge publishes the vehicle's sim time on 'clock'."),
        DeclareLaunchArgument(
            'sitl_command', default_value='',
            description='Command line that starts a SITL, for example '
                        "'arducopter --model + --speedup 1 --defaults copter.parm'."),
        DeclareLaunchArgument(
            'markers', default_value='', choices=['', *YES_NO],
            description="Publish wind arrows for RViz and Foxglove on 'wind/markers'. "
                        'Default: what rviz says.'),
        DeclareLaunchArgument(
            'rviz', default_value='false', choices=YES_NO,
            description='Start RViz, showing the vehicle and its wind.'),
        *launch_vehicles.declare_common(
            CONFIG / 'dryden_wind.yaml',
            '<namespace>_<date>_<time> (dryden_wind_... without a namespace)'),
    ]


def _start(context):
    def given(name):
        return context.launch_configurations[name]

    instance = number('instance', given('instance'), int)
    system_id = number('system_id', given('system_id'), int)
    emulated, sitl_command = given('emulator') == 'true', given('sitl_command')
    if emulated and sitl_command:
        raise RuntimeError('launch arguments emulator and sitl_command exclude each other')
    params_file = launch_vehicles.existing_file('params_file', given('params_file'))

    wind_overrides = wind_parameters({name: given(name) for name in WIND})
    bridge_overrides = {'publish_clock': given('publish_clock') == 'true'}
    # The file's connection holds unless an argument says otherwise.
    if given('connection') or instance or emulated or sitl_command:
        bridge_overrides['connection'] = (
            given('connection') or f'tcp:127.0.0.1:{5762 + 10 * instance}')
    if system_id:
        bridge_overrides['system_id'] = system_id

    bridge_overrides |= launch_vehicles.origin(given('origin'))
    respawn = given('use_respawn') == 'true'
    common = {
        'package': PACKAGE, 'namespace': given('namespace'), 'output': 'screen',
        'emulate_tty': True, 'respawn': respawn, 'respawn_delay': 2.0,
        'ros_arguments': ['--log-level', given('log_level')],
    }
    wind = Node(executable='dryden_wind', name='dryden_wind',
                parameters=[str(params_file), wind_overrides], **common)
    bridge = Node(executable='mavlink_bridge', name='mavlink_bridge',
                  parameters=[str(params_file), bridge_overrides],
                  sigterm_timeout=str(launch_vehicles.PUT_BACK_S), **common)
    vehicle_command = None
    if emulated:
        vehicle_command = launch_vehicles.embedded(
            instance, 1, shlex.split(given('emulator_arguments')))
    elif sitl_command:
        vehicle_command = shlex.split(sitl_command)
    actions = [LogInfo(msg=warning) for warning in misspelt(
        context.launch_configurations, (argument.name for argument in _arguments()))]
    if vehicle_command:
        actions += launch_vehicles.held(
            vehicle_command, 'vehicle', [bridge], respawn, launch_vehicles.PUT_BACK_S)
    actions += [wind, bridge]
    if not respawn:
        actions += [launch_vehicles.ends_with(wind, 'the wind node'),
                    launch_vehicles.ends_with(bridge, 'the MAVLink bridge')]
    rviz = given('rviz') == 'true'
    if given('markers') == 'true' or (rviz and not given('markers')):
        actions.append(Node(executable='wind_markers', name='wind_markers',
                            parameters=[str(params_file)], **common))
    if rviz:
        actions.append(_rviz(given('namespace')))
    if given('record') == 'true':
        actions += launch_vehicles.record(
            given('bag'), [given('namespace')], CONFIG / 'record_qos.yaml')
    return actions


def _rviz(namespace):
    try:
        get_package_prefix('rviz2')
    except PackageNotFoundError:
        raise RuntimeError(
            'rviz:=true needs RViz, and the package rviz2 is not installed. On Ubuntu: sudo apt '
            'install ros-$ROS_DISTRO-rviz2. Without it: ros2 run dryden_wind_ros wind_top shows '
            'the wind in a terminal') from None
    # The topics of the configuration are relative: RViz looks for them in its node's namespace.
    return Node(package='rviz2', executable='rviz2', name='rviz', namespace=namespace,
                arguments=['-d', str(CONFIG / 'dryden_wind.rviz')], output='log')


def generate_launch_description():
    """Describe the wind node, the bridge, and what is to be started with them."""
    return LaunchDescription([*_arguments(), OpaqueFunction(function=_start)])
