"""Many vehicles, each with its own SITL, gusts and namespace, served by one process or a few.

    ros2 launch dryden_wind_ros multi_vehicle.launch.py vehicles:=3 mean_wind_speed:=8
    ros2 launch dryden_wind_ros multi_vehicle.launch.py vehicles:=fleet.yaml

Vehicle i listens where SITL instance i does. All wind is changed at once on /wind_fleet, one by one
on /vehicle_1/dryden_wind and so on.
"""

import os
import shlex
from pathlib import Path

import yaml
from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction
from launch_ros.actions import Node

from dryden_wind_ros.sitl import fleet
from dryden_wind_ros.tools import launch_vehicles
from dryden_wind_ros.tools.launch_arguments import WIND, misspelt, number, wind_parameters
from dryden_wind_ros.tools.launch_vehicles import YES_NO

PACKAGE = 'dryden_wind_ros'
CONFIG = Path(get_package_share_directory(PACKAGE)) / 'config'


def _arguments():
    return [
        DeclareLaunchArgument(
            'vehicles', default_value='2',
            description='How many vehicles, or a YAML file that lists them (name, instance, '
                        'system_id, connection, seed, wind).'),
        DeclareLaunchArgument(
            'first_instance', default_value='0',
            description='SITL instance of the first vehicle: ports 5760 + 10 x instance.'),
        *launch_vehicles.declare_wind(),
        DeclareLaunchArgument(
            'same_air', default_value='false', choices=YES_NO,
            description='Whether all vehicles meet the same draws; otherwise each has a seed '
                        'derived from seed.'),
        DeclareLaunchArgument(
            'processes', default_value='auto',
            description='How many processes the fleet is dealt to; auto: one for each '
                        f'{fleet.VEHICLES_PER_PROCESS} vehicles, as far as there are cores.'),
        DeclareLaunchArgument(
            'clock', default_value='vehicle', choices=['vehicle', 'shared'],
            description="'vehicle': each vehicle's own boot clock, published in its namespace; "
                        "'shared': the topic given by clock_topic drives all."),
        DeclareLaunchArgument(
            'clock_topic', default_value='/clock',
            description='The shared clock, for example that of Gazebo.'),
        *launch_vehicles.declare_common(CONFIG / 'dryden_wind.yaml', 'fleet_<date>_<time>'),
    ]


def _start(context):
    def given(name):
        return context.launch_configurations[name]

    params_file = launch_vehicles.existing_file('params_file', given('params_file'))
    first_instance = number('first_instance', given('first_instance'), int)
    parameters = wind_parameters({name: given(name) for name in WIND})
    parameters |= {'first_instance': first_instance, 'same_air': given('same_air') == 'true',
                   'clock': given('clock'), **launch_vehicles.origin(given('origin'))}
    which = given('vehicles')
    try:
        if which.isdecimal():
            vehicles = fleet.numbered(int(which), 1, first_instance=first_instance)
            parameters['vehicles'] = int(which)
        else:
            path = Path(which).expanduser().resolve()
            vehicles = fleet.load(path, 1, first_instance=first_instance)
            parameters['vehicles_file'] = str(path)
    except fleet.FleetError as error:
        raise RuntimeError(
            f'launch argument vehicles: {error} (it is a number from 1 to {fleet.MAX_VEHICLES}, '
            'or a YAML file)') from None

    respawn = given('use_respawn') == 'true'
    parts = _processes(given('processes'), vehicles)
    nodes = [_part(part, parts, parameters, params_file, respawn, given)
             for part in range(parts)]
    actions = [LogInfo(msg=warning) for warning in misspelt(
        context.launch_configurations, (argument.name for argument in _arguments()))]
    if given('emulator') == 'true':
        actions += launch_vehicles.held(
            launch_vehicles.embedded(_first_of_all(vehicles), len(vehicles),
                                     shlex.split(given('emulator_arguments'))),
            'vehicles', nodes, respawn, launch_vehicles.FLEET_PUT_BACK_S)
    actions += nodes
    if not respawn:
        actions += [launch_vehicles.ends_with(node, 'a process of the fleet') for node in nodes]
    if given('record') == 'true':
        actions += launch_vehicles.record(
            given('bag'), [vehicle.name for vehicle in vehicles], CONFIG / 'record_qos.yaml')
    return actions


def _processes(text, vehicles):
    most = sum(1 for part in fleet.deal(vehicles, len(vehicles)) if part)
    if text == 'auto':
        return min(most, fleet.processes_for(len(vehicles), os.cpu_count() or 1))
    parts = number('processes', text, int)
    if not 1 <= parts <= most:
        raise RuntimeError(
            f'launch argument processes is {text!r}; it must be auto or from 1 to {most} (vehicles '
            'that share a connection stay in one process)')
    return parts


def _part(part, parts, parameters, params_file, respawn, given):
    """Return one process of the fleet."""
    # No name, namespace or remapping of all nodes here: it would hold for every node inside.
    name = f'wind_fleet_{part + 1}' if part else 'wind_fleet'
    words = ['-r', f'wind_fleet:__node:={name}'] if part else []
    for parameter, value in {**parameters, 'part': part, 'parts': parts}.items():
        words += ['-p', f'{name}:{parameter}:={yaml.safe_dump(value).split(chr(10))[0]}']
    return Node(
        package=PACKAGE, executable='wind_fleet', output='screen', emulate_tty=True,
        respawn=respawn, respawn_delay=2.0, parameters=[str(params_file)],
        sigterm_timeout=str(launch_vehicles.FLEET_PUT_BACK_S),
        ros_arguments=['--log-level', given('log_level'), *words,
                       '-r', f'{name}:clock:={given("clock_topic")}'])


def _first_of_all(vehicles):
    first = min(vehicle.instance for vehicle in vehicles)
    if [vehicle.instance for vehicle in vehicles] != list(range(first, first + len(vehicles))):
        raise RuntimeError('emulator:=true needs vehicles with instances that follow each other')
    return first


def generate_launch_description():
    """Describe the fleet process, and what is to be started with it."""
    return LaunchDescription([*_arguments(), OpaqueFunction(function=_start)])
