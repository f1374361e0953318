"""What ``record:=true`` of the launch file does: the command line of ``ros2 bag record``.

The bag is MCAP, is named after the vehicle and the date, and never takes the place of another.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

TOPICS = ('wind', 'wind/gust', 'wind/mean', 'wind/state', 'sim_wind', 'ekf_wind', 'odom', 'clock',
          '/diagnostics')
"""What is recorded; names without a leading slash are in the vehicle's namespace."""

WITHOUT_TOPICS_OPTION = ('humble', 'iron')
"""ROS 2 distributions whose ``ros2 bag record`` knows neither ``--topics`` nor
``--disable-keyboard-controls``."""


class RecordingError(RuntimeError):
    """Nothing can be recorded as asked for; the text says what to do."""


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


def absolute(name: str, namespace: str) -> str:
    """Return a topic's absolute name: ``('odom', 'drone1')`` gives ``'/drone1/odom'``."""
    if name.startswith('/'):
        return name
    return '/'.join(['', *namespace.strip('/').split('/'), name]) if namespace.strip('/') \
        else f'/{name}'


def bag_path(bag: str, namespace: str, now: datetime) -> Path:
    """Return the folder to record into.

    Parameters
    ----------
    bag : str
        As the user gave it; '' for ``<vehicle>_<date>_<time>`` in the present folder, where
        <vehicle> is the namespace or ``dryden_wind``. A second bag of that second gets a number.
    namespace : str
        Namespace of the vehicle.
    now : datetime.datetime
        Date and time for the name.

    Raises
    ------
    RecordingError
        If the folder that the user gave exists.
    """
    if bag:
        path = Path(bag).expanduser()
        if path.exists() or path.is_symlink():
            raise RecordingError(
                f'launch argument bag is {str(path)!r}, which exists; bags are never written over')
        return path
    vehicle = re.sub(r'\W+', '_', namespace).strip('_') or 'dryden_wind'
    stem = f'{vehicle}_{now:%Y%m%d_%H%M%S}'
    path, number = Path(stem), 1
    while path.exists() or path.is_symlink():
        number += 1
        path = Path(f'{stem}_{number}')
    return path


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


def check_available(writers: Callable[[], set[str]] = _registered_writers,
                    environment: Mapping[str, str] | None = None) -> None:
    """Raise if ``ros2 bag record`` or its MCAP storage is not installed.

    Parameters
    ----------
    writers : callable, optional
        Returns the names of the storages that can be written.
    environment : mapping, optional
        Default: that of this process.

    Raises
    ------
    RecordingError
        With the packages to install.
    """
    environment = os.environ if environment is None else environment
    lacking = ''
    if shutil.which('ros2', path=environment.get('PATH')) is None:
        lacking = "there is no command 'ros2'"
    else:
        try:
            if 'mcap' not in writers():
                lacking = 'ros2 bag cannot write MCAP (it lacks the storage plugin)'
        except ImportError:
            lacking = "there is no 'ros2 bag' (the Python package rosbag2_py is missing)"
    if lacking:
        distribution = environment.get('ROS_DISTRO') or '$ROS_DISTRO'
        raise RecordingError(
            f'record:=true cannot record: {lacking}. Install and source it, on Ubuntu: sudo apt '
            f'install ros-{distribution}-ros2bag ros-{distribution}-rosbag2-storage-mcap')
