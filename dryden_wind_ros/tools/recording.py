"""What ``record:=true`` of the launch file does: the command line of a recorder.

``ros2 bag record`` where there is one, else this package's own ``wind_record``.

The bag is MCAP, is named after the vehicle and the date, and never takes the place of another.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from dryden_wind_ros.logs.recording import RECORDED, RecordingError, absolute, bag_path

__all__ = [
    'TOPICS', 'Recording', 'RecordingError', 'absolute', 'bag_path', 'check_available',
    'own_command', 'prepare', 'qos_overrides', 'record_command', 'why_no_ros2_bag']

TOPICS = tuple(topic.name for topic in RECORDED)
"""What is recorded; names without a leading slash are in the vehicle's namespace."""

WITHOUT_TOPICS_OPTION = ('humble', 'iron')
"""ROS 2 distributions whose ``ros2 bag record`` knows neither ``--topics`` nor
``--disable-keyboard-controls``."""


@dataclass(frozen=True)
class Recording:
    """What is to be started.

    Attributes
    ----------
    path : pathlib.Path
        Folder of the bag; does not exist yet.
    topics : tuple of str
        Absolute names of what is recorded.
    command : tuple of str
        The command line, ``ros2 bag record ...``.
    """

    path: Path
    topics: tuple[str, ...]
    command: tuple[str, ...]


def qos_overrides(text: str, namespace: str) -> dict[str, Any]:
    """Return the QoS overrides of a vehicle, by absolute topic name.

    Parameters
    ----------
    text : str
        YAML as in ``config/record_qos.yaml``, by relative topic name.
    namespace : str
        Namespace of the vehicle.
    """
    return {absolute(name, namespace): profile for name, profile in yaml.safe_load(text).items()}


def record_command(path: Path, topics: Sequence[str], overrides: Path,
                   distribution: str = '') -> tuple[str, ...]:
    """Return the command line of ``ros2 bag record``.

    Parameters
    ----------
    path : pathlib.Path
        Folder of the bag.
    topics : sequence of str
        Absolute topic names.
    overrides : pathlib.Path
        File of QoS overrides.
    distribution : str, optional
        Name of the ROS 2 distribution, as in ``ROS_DISTRO``.
    """
    command = ('ros2', 'bag', 'record', '--storage', 'mcap', '--output', str(path),
               '--qos-profile-overrides-path', str(overrides))
    if distribution in WITHOUT_TOPICS_OPTION:
        return (*command, *topics)
    return (*command, '--disable-keyboard-controls', '--topics', *topics)


def prepare(bag: str, namespace: str | Sequence[str], qos_file: Path,
            environment: Mapping[str, str] | None = None,
            now: datetime | None = None) -> Recording:
    """Return what is to be started to record one vehicle, or several in one bag.

    Parameters
    ----------
    bag : str
        Folder of the bag, '' for a name by vehicle and date; see `bag_path`.
    namespace : str or sequence of str
        Namespace of the vehicle, '' for none; or of several vehicles.
    qos_file : pathlib.Path
        QoS overrides by relative topic name, ``config/record_qos.yaml``. A copy with the absolute
        names is kept in a temporary folder until this process ends.
    environment : mapping, optional
        Default: that of this process.
    now : datetime.datetime, optional
        Default: now.

    Raises
    ------
    RecordingError
        If the folder exists already, or the file of QoS overrides cannot be read.
    """
    environment = os.environ if environment is None else environment
    namespaces = [namespace] if isinstance(namespace, str) else list(namespace)
    path = bag_path(bag, namespaces[0] if len(namespaces) == 1 else 'fleet',
                    now or datetime.now())
    try:
        text = qos_file.read_text()
        overrides = {name: profile for each in namespaces
                     for name, profile in qos_overrides(text, each).items()}
    except (OSError, yaml.YAMLError, AttributeError) as error:
        raise RecordingError(f'{qos_file} is no file of QoS overrides: {error}') from None
    folder = tempfile.mkdtemp(prefix='dryden_wind_record_')
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    absolute_file = Path(folder) / 'record_qos.yaml'
    absolute_file.write_text(yaml.safe_dump(overrides, sort_keys=False))
    topics = tuple(dict.fromkeys(
        absolute(name, each) for each in namespaces for name in TOPICS))
    return Recording(path, topics, record_command(
        path, topics, absolute_file, environment.get('ROS_DISTRO', '')))


def _registered_writers() -> set[str]:
    from rosbag2_py import get_registered_writers
    return set(get_registered_writers())


def why_no_ros2_bag(writers: Callable[[], set[str]] = _registered_writers,
                    environment: Mapping[str, str] | None = None) -> str:
    """Say why ``ros2 bag record`` cannot write MCAP here; '' if it can.

    Parameters
    ----------
    writers : callable, optional
        Returns the names of the storages that can be written.
    environment : mapping, optional
        Default: that of this process.
    """
    environment = os.environ if environment is None else environment
    if shutil.which('ros2', path=environment.get('PATH')) is None:
        return "there is no command 'ros2'"
    try:
        if 'mcap' not in writers():
            return 'ros2 bag cannot write MCAP (it lacks the storage plugin)'
    except ImportError:
        return "there is no 'ros2 bag' (the Python package rosbag2_py is missing)"
    return ''


def own_command(path: Path, namespaces: Sequence[str]) -> tuple[str, ...]:
    """Return the command line of this package's own recorder, ``wind_record``.

    Parameters
    ----------
    path : pathlib.Path
        Folder of the bag.
    namespaces : sequence of str
        Namespaces of the vehicles, '' for none.
    """
    vehicles = ','.join(namespace.strip('/') or '/' for namespace in namespaces)
    return (sys.executable, '-m', 'dryden_wind_ros.nodes.wind_record', '--ros-args',
            '-p', f'bag:={_as_text(str(path))}', '-p', f'vehicles:={_as_text(vehicles)}')


def _as_text(value: str) -> str:
    # As YAML, a folder named 2026 or no would be a number or a truth value.
    return json.dumps(value)


def check_available(environment: Mapping[str, str] | None = None) -> None:
    """Raise if this package's own recorder cannot be used either.

    Raises
    ------
    RecordingError
        With the packages to install.
    """
    environment = os.environ if environment is None else environment
    if importlib.util.find_spec('rosbags') is None:
        distribution = environment.get('ROS_DISTRO') or '$ROS_DISTRO'
        raise RecordingError(
            'record:=true cannot record: there is neither ros2 bag with its MCAP storage nor the '
            'Python package rosbags. Install one of them, on Ubuntu: sudo apt '
            f'install ros-{distribution}-ros2bag ros-{distribution}-rosbag2-storage-mcap; or: '
            'python3 -m pip install rosbags')
