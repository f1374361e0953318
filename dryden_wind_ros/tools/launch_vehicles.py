"""What the launch files for SITL have in common as actions: vehicles, recording, and their end.

The order of the end matters. Ctrl-C reaches everybody at once, but a SITL that was started here has
to stay until the bridge has put its parameters back: so it runs under `dryden_wind_ros.tools.hold`,
and is told to end when the nodes have left.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    ExecuteProcess,
    LogInfo,
    RegisterEventHandler,
    Shutdown,
)
from launch.event_handlers import OnProcessExit
from launch.events import matches_action
from launch.events.process import SignalProcess

from dryden_wind_ros.sitl.frame import parse_origin
from dryden_wind_ros.tools import recording
from dryden_wind_ros.tools.launch_arguments import wind_arguments

YES_NO = ('true', 'false')
PUT_BACK_S = 30
"""What a bridge may take to put its vehicle back, before launch insists, s. It ends by itself much
sooner where it makes no progress."""
FLEET_PUT_BACK_S = 120
"""The same for a fleet on a busy machine, s."""
HOVER = '--vehicle copter --drag --flight hover --takeoff-alt 10'
"""With drag fusion: a copter without it never estimates wind."""


def declare_wind() -> list[DeclareLaunchArgument]:
    """Return the arguments that say what the wind is to be like."""
    return [DeclareLaunchArgument(name, **details) for name, details in wind_arguments().items()]


def declare_common(params_file: Path, bag_name: str) -> list[DeclareLaunchArgument]:
    """Return the arguments that every launch file for SITL has.

    Parameters
    ----------
    params_file : pathlib.Path
        Default of the argument of that name.
    bag_name : str
        How a bag is named by default, in words.
    """
    return [
        DeclareLaunchArgument(
            'origin', default_value='',
            description='Zero of positions: latitude, longitude (degrees) and altitude (m above '
                        'mean sea level), such as "-35.363262, 149.165237, 584". Default: the '
                        "origin of the (first) vehicle's EKF3, or what params_file says."),
        DeclareLaunchArgument(
            'params_file', default_value=str(params_file),
            description='Parameters of the nodes; keys may name one vehicle.'),
        DeclareLaunchArgument(
            'emulator', default_value='false', choices=YES_NO,
            description='Start the embedded vehicle instead of needing a SITL.'),
        DeclareLaunchArgument(
            'emulator_arguments', default_value=HOVER,
            description='Command line of the embedded vehicle, see sitl_emulator --help.'),
        DeclareLaunchArgument(
            'record', default_value='false', choices=YES_NO,
            description='Record the wind topics, with ros2 bag record where there is one.'),
        DeclareLaunchArgument(
            'bag', default_value='',
            description=f'Folder of the bag, which must not exist. Default: {bag_name} in the '
                        'present folder.'),
        DeclareLaunchArgument(
            'use_respawn', default_value='false', choices=YES_NO,
            description='Start a node again 2 s after it died.'),
        DeclareLaunchArgument(
            'log_level', default_value='info',
            choices=('debug', 'info', 'warn', 'error', 'fatal'),
            description='Log level of the nodes.'),
    ]


def existing_file(name: str, text: str) -> Path:
    """Return the path of a launch argument that must name a file.

    Raises
    ------
    RuntimeError
        If there is no such file.
    """
    path = Path(text).expanduser()
    if not path.is_file():
        raise RuntimeError(f'launch argument {name} is {text!r}; there is no such file')
    return path


def origin(text: str) -> dict[str, str]:
    """Return the parameter that a launch argument `origin` gives; none if it is empty."""
    try:
        parse_origin(text)
    except ValueError as error:
        raise RuntimeError(f'launch argument {error}') from None
    return {'origin': text} if text.strip() else {}


def held(command: Sequence[str], name: str, until: Sequence[Any], respawned: bool,
         patience: int) -> list[Any]:
    """Return actions that run a simulator, end the launch with it, and it after some nodes.

    Parameters
    ----------
    command : sequence of str
        Its command line.
    name : str
        For the log.
    until : sequence of launch actions
        The processes that have to leave first.
    respawned : bool
        Whether they are started again when they leave, except at the end.
    patience : int
        How long it may take to leave, s.
    """
    vehicle = ExecuteProcess(
        cmd=[sys.executable, '-m', 'dryden_wind_ros.tools.hold', *command],
        name=name, output='screen', sigterm_timeout=str(patience + 5))

    there = set(until)

    def left(event: Any, context: Any) -> list[Any]:
        if respawned and not context.is_shutdown:
            return []
        there.discard(event.action)
        if there:
            return []
        return [EmitEvent(event=SignalProcess(
            signal_number=signal.SIGTERM, process_matcher=matches_action(vehicle)))]

    return [vehicle, ends_with(vehicle, f'process {name}'),
            *(RegisterEventHandler(OnProcessExit(target_action=process, on_exit=left))
              for process in until)]


def embedded(instance: int, count: int, arguments: Sequence[str]) -> list[str]:
    """Return the command line of embedded vehicles."""
    several = ['--count', str(count)] if count > 1 else []
    return [sys.executable, '-m', 'dryden_wind_ros.emulator.main', '--instance', str(instance),
            *several, *arguments]


def ends_with(process: Any, what: str) -> RegisterEventHandler:
    """Return the handler that ends the launch when a process has ended."""
    return RegisterEventHandler(OnProcessExit(
        target_action=process, on_exit=[Shutdown(reason=f'{what} has ended')]))


def record(bag: str, namespaces: Sequence[str], qos_file: Path) -> list[Any]:
    """Return the actions that record the wind topics of vehicles into one bag.

    Raises
    ------
    recording.RecordingError
        If nothing can be recorded as asked for.
    """
    lacking = recording.why_no_ros2_bag()
    if lacking:
        recording.check_available()
    plan = recording.prepare(bag, namespaces, qos_file)
    command = recording.own_command(plan.path, namespaces) if lacking else plan.command
    recorder = ExecuteProcess(cmd=list(command), name='bag', output='screen')
    return [
        LogInfo(msg=f'recording to {plan.path.absolute()}'
                    + (f' with wind_record, as {lacking}' if lacking else '')),
        recorder,
        RegisterEventHandler(OnProcessExit(target_action=recorder, on_exit=_recorder_left)),
    ]


def _recorder_left(event: Any, context: Any) -> list[Any]:
    if context.is_shutdown:
        return []
    return [LogInfo(msg=f'the recording has ended (exit code {event.returncode}); the wind goes '
                        'on')]
