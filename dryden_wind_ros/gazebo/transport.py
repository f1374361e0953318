"""The one module that speaks to Gazebo, through the Python bindings of Gazebo Transport.

NOT RUN by this package's tests, which have no Gazebo: the bindings are packages of Gazebo, not of
Debian or PyPI. What is known of the other side is read in the source of gz-sim 8 to 10
(``WindEffects.cc``) and gz-transport 13 to 15 (``python/src/__init__.py``). Everything else of
`gazebo_wind` sees the `WindLink` protocol only.

How Gazebo takes wind (system ``gz-sim-wind-effects-system``):

* topic ``/world/<world>/wind``, gz.msgs.Wind: sets the wind, east, north, up, towards. A message
  without ``enable_wind`` turns the wind off, for that is protobuf's default.
* service ``/world/<world>/wind_info``: answers the wind as last set. A topic of the same name
  carries the wind as filtered, which is not the same.
* When several commands wait in one physics step, the newest is taken first and the older ones in
  the steps after it, so an old one stays in force (gz-sim 8; pull request 3963). So: one command a
  tick, and the last one is sent again until the world answers with it.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from dryden_wind_ros.gazebo.world_name import gz_name

Vector = tuple[float, float, float]

RELEASES: dict[str, tuple[str, str, str]] = {
    'jetty': ('gz.transport', 'gz.msgs', 'python3-gz-transport15 python3-gz-msgs12'),
    'ionic': ('gz.transport14', 'gz.msgs11', 'python3-gz-transport14 python3-gz-msgs11'),
    'harmonic': ('gz.transport13', 'gz.msgs10', 'python3-gz-transport13 python3-gz-msgs10'),
}
"""Gazebo releases: Python modules of transport and messages, Ubuntu packages that hold them.

From Jetty on the modules have no number in their name, so later releases are found as 'jetty'."""

AUTO = 'auto'

_OF_ROS = {'jazzy': 'harmonic', 'kilted': 'ionic', 'lyrical': 'jetty', 'rolling': 'jetty'}


class BindingsMissing(ImportError):
    """The Python bindings of Gazebo Transport cannot be imported; the text says what to install."""


@dataclass(frozen=True)
class Wind:
    """A wind as Gazebo has it: east, north, up, m/s, towards; and whether it blows."""

    velocity: Vector
    enabled: bool = True


class WindLink(Protocol):
    """What `gazebo_wind` needs of a Gazebo world."""

    def send(self, wind: Wind) -> bool:
        """Give the world a wind; false if it could not be sent."""
        ...

    def ask(self, timeout: float) -> Wind | None:
        """Return the wind last given to the world; None if nothing answers within `timeout` s."""
        ...


class Scene(NamedTuple):
    """What there is in a world.

    Attributes
    ----------
    models, links : frozenset of str
        Scoped names, such as ``iris_1`` and ``iris_1::base_link``.
    """

    models: frozenset[str]
    links: frozenset[str]


class SceneLink(Protocol):
    """What a check of names needs of a Gazebo world."""

    def scene(self, timeout: float) -> Scene | None:
        """Return what there is in the world; None if nothing answers within `timeout` s."""
        ...

    def topics(self) -> frozenset[str] | None:
        """Return the topics that Gazebo's systems publish; None if they cannot be listed."""
        ...


class GazeboWorld:
    """The wind of one world of a running Gazebo.

    Parameters
    ----------
    world : str
        Name of the world.
    release : str, optional
        One of `RELEASES`, or 'auto'.

    Raises
    ------
    BindingsMissing
        With what to install.
    """

    def __init__(self, world: str, release: str = AUTO) -> None:
        transport, self._wind_type, self._empty_type, self.release = _bindings(release)
        self._node = transport.Node()
        topic = f'/world/{gz_name(world)}/wind'
        self._publisher = self._node.advertise(topic, self._wind_type)
        self._service = f'{topic}_info'

    def send(self, wind: Wind) -> bool:
        """Give the world a wind; false if it could not be sent."""
        message = self._wind_type()
        message.enable_wind = wind.enabled
        velocity = message.linear_velocity
        velocity.x, velocity.y, velocity.z = wind.velocity
        return bool(self._publisher.publish(message))

    def ask(self, timeout: float) -> Wind | None:
        """Return the wind last given to the world; None if nothing answers within `timeout` s."""
        answered, answer = self._node.request(
            self._service, self._empty_type(), self._empty_type, self._wind_type,
            round(timeout * 1000))
        if not answered:
            return None
        velocity = answer.linear_velocity
        return Wind((velocity.x, velocity.y, velocity.z), answer.enable_wind)


class GazeboScene:
    """What there is in one world of a running Gazebo.

    Parameters
    ----------
    world : str
        Name of the world.
    release : str, optional
        One of `RELEASES`, or 'auto'.

    Raises
    ------
    BindingsMissing
        With what to install.
    """

    def __init__(self, world: str, release: str = AUTO) -> None:
        transport, _, self._empty_type, found = _bindings(release)
        self._scene_type = importlib.import_module(f'{RELEASES[found][1]}.scene_pb2').Scene
        self._node = transport.Node()
        self._service = f'/world/{gz_name(world)}/scene/info'

    def scene(self, timeout: float) -> Scene | None:
        """Return what there is in the world; None if nothing answers within `timeout` s."""
        answered, answer = self._node.request(
            self._service, self._empty_type(), self._empty_type, self._scene_type,
            round(timeout * 1000))
        if not answered:
            return None
        models: set[str] = set()
        links: set[str] = set()
        waiting = [(model, model.name) for model in answer.model]
        while waiting:
            model, name = waiting.pop()
            models.add(name)
            links.update(f'{name}::{link.name}' for link in model.link)
            waiting += [(nested, f'{name}::{nested.name}') for nested in model.model]
        return Scene(frozenset(models), frozenset(links))

    def topics(self) -> frozenset[str] | None:
        """Return the topics that Gazebo's systems publish; None if they cannot be listed."""
        try:
            return frozenset(self._node.topic_list())
        except AttributeError:  # not in the bindings of every release
            return None


def _bindings(release: str) -> tuple[Any, Any, Any, str]:
    order = list(RELEASES)
    preferred = _OF_ROS.get(os.environ.get('ROS_DISTRO', ''))
    if release != AUTO:
        order = [release]
    elif preferred is not None:
        order.sort(key=lambda name: name != preferred)
    failed = []
    for name in order:
        transport_name, messages_name, _ = RELEASES[name]
        try:
            messages = importlib.import_module(f'{messages_name}.wind_pb2')
            empty = importlib.import_module(f'{messages_name}.empty_pb2')
            transport = importlib.import_module(transport_name)
            return transport, messages.Wind, empty.Empty, name
        except Exception as error:  # generated code raises what it likes if protobuf does not fit
            failed.append(f'{name}: {type(error).__name__}: {error}')
    raise BindingsMissing(how_to_install(failed, order))


def how_to_install(failed: list[str], releases: list[str]) -> str:
    """Return the text about missing bindings: what was tried and what to install."""
    lines = ['The Python bindings of Gazebo Transport are needed to give a world its wind, and '
             'cannot be imported:']
    lines += [f'    {text}' for text in failed]
    lines.append("Install those of your Gazebo's release (from packages.osrfoundation.org, see "
                 'https://gazebosim.org/docs):')
    lines += [f'    {name}: sudo apt install {RELEASES[name][2]}' for name in releases]
    lines.append('A Gazebo that came with ROS 2 brings them itself, from these versions on: '
                 'ros-jazzy-gz-transport-vendor 0.0.9 with ros-jazzy-gz-msgs-vendor 0.0.8.\n'
                 'Without bindings, mode:=wrench gives each vehicle its wind as a force, through '
                 'ros_gz_bridge.')
    return '\n'.join(lines)
