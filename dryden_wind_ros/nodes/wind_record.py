"""Records the wind topics of one vehicle or several into a bag (MCAP), without ros2 bag.

The same topics, names and QoS as record:=true of the launch files takes. A bag is never written
over, and one whose recorder was killed is whole up to the last second. Read it with wind_report, or
play it with ros2 bag play (after a kill: ros2 bag reindex BAG first). Where the disk is full it
ends with exit code 1, and what was on disk stays whole.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from dryden_wind_ros import ending
from dryden_wind_ros.logs.bag import interfaces_folder
from dryden_wind_ros.logs.recording import (
    DEPTH,
    BagWriter,
    RecordingError,
    Topic,
    bag_path,
    topics_of,
)
from dryden_wind_ros.nodes import common
from dryden_wind_ros.nodes.common import Parameter

PARAMETERS = (
    Parameter('bag', '', 'Folder of the bag, which must not exist. Empty: '
              '<vehicle>_<date>_<time> in the present folder.', read_only=True),
    Parameter('vehicles', '', 'Namespaces of the vehicles to record, separated by commas. Empty: '
              "this node's own.", read_only=True),
)

FLUSH_S = 1.0
"""Wall time after which what was heard is on disk, s."""

SAY_S = 10.0
"""Wall time between two lines of progress in a log; on a terminal one line is kept up to date."""


class WindRecordNode(Node):
    """Writes what it hears, as it comes over the wire."""

    def __init__(self, **kwargs: Any) -> None:
        common.interfaces('msg')
        super().__init__('wind_record', **kwargs)
        self.parameters = common.ParameterTable(self, PARAMETERS)
        given = [name.strip() for name in self.parameters['vehicles'].split(',') if name.strip()]
        namespaces = given or [self.get_namespace()]
        folder = interfaces_folder()
        try:
            if folder is None:
                raise RecordingError('the .msg files of dryden_wind_interfaces were not found')
            path = bag_path(self.parameters['bag'], namespaces[0] if len(namespaces) == 1
                            else 'fleet', datetime.now())
            self.bag = BagWriter(path, folder)
        except RecordingError as error:
            raise common.BadParameter(str(error)) from error
        self._started = self._said = time.monotonic()
        self._line = sys.stderr.isatty()
        self._waiting: dict[str, Topic] = {}
        for name, topic in topics_of(namespaces).items():
            if name not in self.bag.counts:
                self.bag.add(name, topic)
                if topic.ours:
                    self._listen(name, topic, reliable=True)
                else:
                    self._waiting[name] = topic
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = self.create_timer(FLUSH_S, self._every_second, clock=steady)
        self._finder = self.create_timer(0.2, self._find, clock=steady)
        self.get_logger().info(f'recording to {path.absolute()}')

    def _find(self) -> None:
        """Listen to others' topics as soon as it is known how they are sent."""
        for name in list(self._waiting):
            offered = self.get_publishers_info_by_topic(name)
            if offered:
                self._listen(name, self._waiting.pop(name), reliable=all(
                    one.qos_profile.reliability == ReliabilityPolicy.RELIABLE for one in offered))
        if not self._waiting:
            self._finder.cancel()

    def _listen(self, name: str, topic: Topic, reliable: bool) -> None:
        package, _, kind = topic.kind.split('/')
        message = getattr(importlib.import_module(f'{package}.msg'), kind)
        self.create_subscription(message, name, partial(self._take, name), QoSProfile(
            history=HistoryPolicy.KEEP_LAST, depth=DEPTH,
            reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
            durability=DurabilityPolicy.TRANSIENT_LOCAL if topic.latched
            else DurabilityPolicy.VOLATILE), raw=True)

    def _take(self, name: str, data: bytes) -> None:
        with self._ending_on_failure():
            self.bag.write(name, time.time_ns(), data)

    @contextlib.contextmanager
    def _ending_on_failure(self) -> Iterator[None]:
        try:
            yield
        except RecordingError as error:
            self.get_logger().error(str(error))
            ending.tell()

    def _every_second(self) -> None:
        with self._ending_on_failure():
            self.bag.flush()
        now = time.monotonic()
        if self._line:
            print(f'\r{self.progress()} ', end='', file=sys.stderr, flush=True)
        elif now - self._said >= SAY_S:
            self._said = now
            self.get_logger().info(self.progress())

    def progress(self) -> str:
        """Return how much was recorded, in a line."""
        counts = self.bag.counts
        silent = sorted(name for name, count in counts.items() if not count)
        nothing = f'; nothing yet on {", ".join(silent[:4])}' if silent else ''
        more = f' and {len(silent) - 4} more' if len(silent) > 4 else ''
        return (f'{sum(counts.values())} messages, {self.bag.size / 1e6:.1f} MB in '
                f'{time.monotonic() - self._started:.0f} s{nothing}{more}')

    def finish(self) -> None:
        """End the bag."""
        with self._ending_on_failure():
            self.bag.close()
        if self._line:
            print(file=sys.stderr)
        path = Path(self.bag.path).absolute()
        print(f'recorded to {path}: {self.progress()}', file=sys.stderr, flush=True)


def main(args: Sequence[str] | None = None) -> int:
    """Run the node ``wind_record``; the exit code is 1 if the disk did not take it all."""
    failed = []

    def finish(node: Node) -> None:
        assert isinstance(node, WindRecordNode)
        node.finish()
        failed.append(node.bag.failed)

    code = common.run(WindRecordNode, args, stop=finish, rows=PARAMETERS, about=__doc__)
    return code or int(any(failed))


if __name__ == '__main__':
    raise SystemExit(main())
