"""What a recording of a flight holds and is called, and the writing of it as MCAP.

A recorder may be killed at any moment. So what was heard is put on disk as a chunk of its own once
a second: readers that go through the chunks one by one, as :mod:`dryden_wind_ros.logs.mcap` does,
then lose the last second and nothing else. The index and ``metadata.yaml`` are written at the end.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any


class RecordingError(RuntimeError):
    """Nothing can be recorded as asked for; the text says what to do."""


@dataclass(frozen=True)
class Topic:
    """A topic that is recorded.

    Attributes
    ----------
    name : str
        Without a leading slash: in the vehicle's namespace.
    kind : str
        Type of its messages.
    latched : bool
        Whether the newest message from before the recording is wanted too.
    ours : bool
        Whether only this package publishes it, reliably; another's may come at best effort.
    """

    name: str
    kind: str
    latched: bool = False
    ours: bool = True


_GEOMETRY, _INTERFACES = 'geometry_msgs/msg', 'dryden_wind_interfaces/msg'

RECORDED = (
    Topic('wind', f'{_GEOMETRY}/TwistWithCovarianceStamped'),
    Topic('wind/gust', f'{_GEOMETRY}/Vector3Stamped'),
    Topic('wind/mean', f'{_GEOMETRY}/Vector3Stamped'),
    Topic('wind/state', f'{_INTERFACES}/WindState'),
    Topic('sim_wind', f'{_INTERFACES}/SimWind', latched=True),
    Topic('ekf_wind', f'{_INTERFACES}/EkfWind', latched=True),
    Topic('odom', 'nav_msgs/msg/Odometry', ours=False),
    Topic('clock', 'rosgraph_msgs/msg/Clock', ours=False),
    Topic('/diagnostics', 'diagnostic_msgs/msg/DiagnosticArray', ours=False),
)
"""What is recorded of each vehicle."""

DEPTH = 1000
"""Messages that may wait, so that none is lost where the disk pauses."""


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
        If the folder that the user gave exists, or cannot be.
    """
    if bag:
        path = Path(bag).expanduser()
        try:
            taken = os.path.lexists(path) or path.exists()
        except OSError as error:
            raise RecordingError(f'bag is {bag[:40]!r}...: {error.strerror}') from error
        if taken:
            raise RecordingError(f'bag is {str(path)!r}, which exists; bags are never written over')
        return path
    vehicle = re.sub(r'\W+', '_', namespace).strip('_') or 'dryden_wind'
    stem = f'{vehicle}_{now:%Y%m%d_%H%M%S}'
    path, number = Path(stem), 1
    while path.exists() or path.is_symlink():
        number += 1
        path = Path(f'{stem}_{number}')
    return path


class BagWriter:
    """Writes a bag that is whole up to the last `flush`, whatever happens afterwards.

    Parameters
    ----------
    path : Path
        Folder of the bag; must not exist.
    definitions : Path
        Folder with the .msg files of dryden_wind_interfaces.

    Raises
    ------
    RecordingError
        The folder exists or cannot be made, or rosbags is not installed. Afterwards, of `write`,
        `flush` and `close`: the disk is full or gone. What was whole on disk stays, as after a
        kill; nothing more is recorded.

    Attributes
    ----------
    path : Path
    counts : dict of str to int
        Messages by topic; once nothing more is recorded, those that are whole on disk.
    failed : str
        Why nothing more is recorded, '' as long as it is.
    """

    def __init__(self, path: Path, definitions: Path) -> None:
        try:
            from rosbags.rosbag2 import StoragePlugin, Writer
            from rosbags.typesys import Stores, get_types_from_msg, get_typestore
        except ImportError as error:
            raise RecordingError(
                'recording without ros2 bag needs the Python package rosbags, which cannot be '
                f'imported ({error}). Install it: python3 -m pip install rosbags') from error
        self._store = get_typestore(Stores.ROS2_JAZZY)
        types: dict[str, Any] = {}
        for file in sorted(definitions.glob('*.msg')):
            types.update(get_types_from_msg(file.read_text(), f'{_INTERFACES}/{file.stem}'))
        self._store.register({name: one for name, one in types.items()
                              if name not in self._store.fielddefs})
        if path.exists() or path.is_symlink():
            raise RecordingError(f'bag is {str(path)!r}, which exists; bags are never written over')
        self._writer = Writer(path, version=9, storage_plugin=StoragePlugin.MCAP)
        try:
            self._writer.open()
        except OSError as error:
            raise RecordingError(f'{path}: {error.strerror}') from error
        self._connections: dict[str, Any] = {}
        self.path = path
        self.counts: dict[str, int] = {}
        self.failed = ''
        self._waiting = 0
        #: Bytes on disk that make a bag, and the messages in them.
        self._whole = 0
        self._counts_whole: dict[str, int] = {}

    def add(self, name: str, topic: Topic) -> None:
        """Add a topic with its absolute name."""
        self._connections[name] = self._writer.add_connection(
            name, topic.kind, typestore=self._store, offered_qos_profiles=[_qos(topic)])
        self.counts[name] = 0

    def write(self, name: str, stamp_ns: int, data: bytes) -> None:
        """Write one message as it came over the wire (CDR)."""
        if not self.failed:
            with self._telling():
                self._writer.write(self._connections[name], stamp_ns, data)
            self.counts[name] += 1
            self._waiting += 1

    def flush(self) -> None:
        """Put what was written so far on disk, so that it outlives this process."""
        if not self.failed:
            storage: Any = self._writer.storage
            with self._telling():
                if self._waiting:
                    storage.close_chunk()
                    self._waiting = 0
                storage.bio.flush()
            self._whole = storage.bio.tell()
            self._counts_whole = dict(self.counts)

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        """Raise what the disk says as RecordingError, and leave a bag of what is whole."""
        try:
            yield
        except OSError as error:
            storage: Any = self._writer.storage
            with contextlib.suppress(OSError):
                storage.bio.close()  # what is left in its buffer has no room
            with contextlib.suppress(OSError):
                os.truncate(storage.path, self._whole)
            self.counts = {name: self._counts_whole.get(name, 0) for name in self.counts}
            self.failed = (f'{storage.path}: {error.strerror}. Nothing more is recorded; what was '
                           f'on disk before is kept ({self._whole / 1e6:.1f} MB)')
            raise RecordingError(self.failed) from error

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(file.stat().st_size for file in self.path.iterdir())

    def close(self) -> None:
        """End the bag with its index and metadata.yaml."""
        if not self.failed:
            self.flush()
            with self._telling():
                self._writer.close()


def _qos(topic: Topic) -> Any:
    from rosbags.interfaces import (
        Qos,
        QosDurability,
        QosHistory,
        QosLiveliness,
        QosReliability,
        QosTime,
    )

    no_time = QosTime(0, 0)
    return Qos(
        QosHistory.KEEP_LAST, 1 if topic.latched else DEPTH, QosReliability.RELIABLE,
        QosDurability.TRANSIENT_LOCAL if topic.latched else QosDurability.VOLATILE, no_time,
        no_time, QosLiveliness.AUTOMATIC, no_time, False)


def topics_of(namespaces: Sequence[str]) -> Mapping[str, Topic]:
    """Return what is recorded of vehicles, by absolute name."""
    return {absolute(topic.name, namespace): topic
            for namespace in namespaces for topic in RECORDED}
