"""Many vehicles, each with its own SITL, gusts and namespace, served by one process.

    ros2 launch dryden_wind_ros multi_vehicle.launch.py vehicles:=3 mean_wind_speed:=8
    ros2 launch dryden_wind_ros multi_vehicle.launch.py vehicles:=fleet.yaml

Vehicle i listens where SITL instance i does. All wind is changed at once on /wind_fleet, one by one
on /vehicle_1/dryden_wind and so on.
"""

import signal
import sys
from pathlib import Path

import yaml
from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    ExecuteProcess,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
    Shutdown,
)
from launch.event_handlers import OnProcessExit
from launch.events import matches_action
from launch.events.process import SignalProcess
from launch_ros.actions import Node

from dryden_wind_ros.sitl import fleet
from dryden_wind_ros.tools import recording
from dryden_wind_ros.tools.launch_arguments import WIND, number, wind_arguments, wind_parameters

PACKAGE = 'dryden_wind_ros'
CONFIG = Path(get_package_share_directory(PACKAGE)) / 'config'


def _arguments():
    yes_no = ['true', 'false']
    return [
        DeclareLaunchArgument(
            'vehicles', default_value='2',
            description='How many vehicles, or a YAML file that lists them (name, instance, '
                        'system_id, connection, seed, wind).'),
        DeclareLaunchArgument(
            'first_instance', default_value='0',
            description='SITL instance of the first vehicle: ports 5760 + 10 x instance.'),
        *(DeclareLaunchArgument(name, **details) for name, details in wind_arguments().items()),
        DeclareLaunchArgument(
            'same_air', default_value='false', choices=yes_no,
            description='Whether all vehicles meet the same draws; otherwise each has a seed '
                        'derived from seed.'),
        DeclareLaunchArgument(
            'clock', default_value='vehicle', choices=['vehicle', 'shared'],
            description="'vehicle': each vehicle's own boot clock, published in its namespace; "
                        "'shared': the topic given by clock_topic drives all."),
        DeclareLaunchArgument(
            'clock_topic', default_value='/clock',
            description='The shared clock, for example that of Gazebo.'),
        DeclareLaunchArgument(
            'params_file', default_value=str(CONFIG / 'dryden_wind.yaml'),
            description='Parameters of all wind nodes and bridges; keys may name one vehicle.'),
        DeclareLaunchArgument(
            'emulator', default_value='false', choices=yes_no,
            description='Start embedded vehicles instead of needing SITLs.'),
        DeclareLaunchArgument(
            'emulator_arguments', default_value='--vehicle copter --flight hover --takeoff-alt 10',
            description='Command line of the embedded vehicles, see sitl_emulator --help.'),
        DeclareLaunchArgument(
            'record', default_value='false', choices=yes_no,
            description='Record the wind topics of all vehicles with ros2 bag record.'),
        DeclareLaunchArgument(
            'bag', default_value='',
            description='Folder of the bag, which must not exist. Default: fleet_<date>_<time> '
                        'in the present folder.'),
        DeclareLaunchArgument(
            'use_respawn', default_value='false', choices=yes_no,
            description='Start the fleet process again 2 s after it died.'),
        DeclareLaunchArgument(
            'log_level', default_value='info',
            choices=['debug', 'info', 'warn', 'error', 'fatal'],
            description='Log level of the nodes.'),
    ]


def _start(context):
    def given(name):
        return context.launch_configurations[name]

    params_file = Path(given('params_file')).expanduser()
    if not params_file.is_file():
        raise RuntimeError(f'launch argument params_file is {str(params_file)!r}; '
                           'there is no such file')
    first_instance = number('first_instance', given('first_instance'), int)
    parameters = wind_parameters({name: given(name) for name in WIND})
    parameters |= {'first_instance': first_instance, 'same_air': given('same_air') == 'true',
                   'clock': given('clock')}
    which = given('vehicles')
    try:
        if which.isdigit():
            vehicles = fleet.numbered(int(which), 1, first_instance=first_instance)
            parameters['vehicles'] = int(which)
        else:
            path = Path(which).expanduser().resolve()
            vehicles = fleet.load(path, 1, first_instance=first_instance)
            parameters['vehicles_file'] = str(path)
    except fleet.FleetError as error:
        raise RuntimeError(f'launch argument vehicles: {error}') from None

    respawn = given('use_respawn') == 'true'
    # No name, namespace or remapping of a node here: they would hold for every node inside.
    nodes = Node(
        package=PACKAGE, executable='wind_fleet', output='screen', emulate_tty=True,
        respawn=respawn, respawn_delay=2.0, parameters=[str(params_file)],
        ros_arguments=['--log-level', given('log_level'), *_for_the_fleet(parameters),
                       '-r', f'wind_fleet:clock:={given("clock_topic")}'])
    actions = []
    if given('emulator') == 'true':
        actions += _embedded(vehicles, given('emulator_arguments'), nodes, respawn)
    actions.append(nodes)
    if not respawn:
        actions.append(RegisterEventHandler(OnProcessExit(target_action=nodes, on_exit=[
            Shutdown(reason='the fleet process has ended')])))
    if given('record') == 'true':
        actions += _record(given('bag'), [vehicle.name for vehicle in vehicles])
    return actions


def _for_the_fleet(parameters):
    """Return the parameters so that only the node wind_fleet takes them."""
    words = []
    for name, value in parameters.items():
        words += ['-p', f'wind_fleet:{name}:={yaml.safe_dump(value).split(chr(10))[0]}']
    return words


def _embedded(vehicles, arguments, nodes, respawn):
    first = min(vehicle.instance for vehicle in vehicles)
    if [vehicle.instance for vehicle in vehicles] != list(range(first, first + len(vehicles))):
        raise RuntimeError('emulator:=true needs vehicles with instances that follow each other')
    emulator = ExecuteProcess(
        cmd=[sys.executable, '-m', 'dryden_wind_ros.tools.hold',
             sys.executable, '-m', 'dryden_wind_ros.sitl.emulator', '--count', str(len(vehicles)),
             '--instance', str(first), *arguments.split()],
        name='vehicles', output='screen', sigterm_timeout='4')
    handlers = [RegisterEventHandler(OnProcessExit(target_action=emulator, on_exit=[
        Shutdown(reason='the vehicles have ended')]))]
    if not respawn:
        handlers.append(RegisterEventHandler(OnProcessExit(target_action=nodes, on_exit=[
            EmitEvent(event=SignalProcess(
                signal_number=signal.SIGTERM, process_matcher=matches_action(emulator)))])))
    return [emulator, *handlers]


def _record(bag, names):
    recording.check_available()
    plan = recording.prepare(bag, names, CONFIG / 'record_qos.yaml')
    return [
        LogInfo(msg=f'recording to {plan.path.absolute()}'),
        ExecuteProcess(cmd=list(plan.command), name='bag', output='screen'),
    ]


def generate_launch_description():
    """Describe the fleet process, and what is to be started with it."""
    return LaunchDescription([*_arguments(), OpaqueFunction(function=_start)])
