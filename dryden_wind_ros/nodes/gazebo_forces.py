"""Mode ``wrench`` of `gazebo_wind`: the drag of each vehicle's own wind as a force on a link."""

from __future__ import annotations

import importlib
import math
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from nav_msgs.msg import Odometry
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.subscription import Subscription

from dryden_wind_ros.gazebo import transport
from dryden_wind_ros.gazebo.drag import DragModel
from dryden_wind_ros.gazebo.transport import BindingsMissing, Scene, SceneLink
from dryden_wind_ros.gazebo.vehicles import Vehicle, missing_names
from dryden_wind_ros.gazebo.world_name import ros_name
from dryden_wind_ros.gazebo.wrench_cycle import Target, WrenchCycle
from dryden_wind_ros.gusts.frames import Vector, body_to_enu
from dryden_wind_ros.nodes import common

PATIENCE_S = 5.0
"""Silence after which a force that nobody renews is taken away, s of wall time and of sim time."""

SCENE_S = 1.0
"""How long the world is given to say what there is in it, s."""

INTERFACES_MISSING = """\
mode:=wrench needs the messages of ros_gz_interfaces, and there is no such Python module. On Ubuntu:
    sudo apt install ros-$ROS_DISTRO-ros-gz-interfaces ros-$ROS_DISTRO-ros-gz-bridge
and source /opt/ros/$ROS_DISTRO/setup.bash again. Without them, mode:=wind gives the world its one
wind through the Python bindings of Gazebo Transport."""


@dataclass(frozen=True)
class _Motion:
    """The vehicle's motion: over the ground, ENU, m/s; its turning, body, rad/s; its attitude."""

    velocity: Vector
    rates: Vector
    orientation: tuple[float, float, float, float]
    stamp_s: float


class Force:
    """The force on one vehicle.

    Parameters
    ----------
    forces : Forces
        Where it is published.
    vehicle : Vehicle
        Whose it is.
    odom_sub : rclpy.subscription.Subscription
        Its odometry.

    Attributes
    ----------
    newest : tuple of float or None
        The force in action, ENU, N.
    missing : str
        What the world does not have of its names; '' while nothing is known to be missing.
    no_odometry_system : bool
        Whether the model is known to publish no odometry.
    """

    def __init__(self, forces: Forces, vehicle: Vehicle, odom_sub: Subscription) -> None:
        self._forces = forces
        self._odom_sub = odom_sub
        self._cycle = WrenchCycle(vehicle.model, vehicle.link)
        self._motion: _Motion | None = None
        self._motion_at_wind: float | None = None
        self.vehicle = vehicle
        self.newest: Vector | None = None
        self.missing = ''
        self.no_odometry_system = False

    @property
    def odom_topic(self) -> str:
        """The topic of its odometry."""
        return str(self._odom_sub.topic_name)

    @property
    def moves(self) -> bool:
        """Whether odometry was ever heard."""
        return self._motion is not None

    def blow(self, wind: Vector, rates: Vector) -> bool:
        """Give the vehicle the force of a wind (ENU, m/s) that turns (p, q, r, body, rad/s).

        Raises
        ------
        ValueError
            If a number is not finite; the force before holds.
        """
        if not all(map(math.isfinite, (*wind, *rates))):
            raise ValueError(f'wind is {wind} m/s, turning {rates} rad/s; they must be finite '
                             'numbers')
        motion = self._take_odometry()
        if motion is None or self.missing:
            return False
        self._motion_at_wind = motion.stamp_s
        drag = self._forces.drag
        self.newest = drag.force(wind, motion.velocity, motion.orientation)
        torque = drag.torque(wind, rates, motion.velocity, motion.rates, motion.orientation)
        turn = self._cycle.turn()
        self._forces.give(turn.add, self.newest, torque)
        self._forces.clear(turn.clear)
        return True

    def clear(self) -> None:
        """Take it away."""
        self.newest = None
        for target in self._cycle.targets:
            self._forces.clear(target)

    def abandoned(self) -> bool:
        """Whether the vehicle has gone on without wind; a paused simulation goes nowhere."""
        try:
            motion = self._take_odometry()
        except ValueError:
            return True
        return (motion is not None and self._motion_at_wind is not None
                and motion.stamp_s - self._motion_at_wind > PATIENCE_S)

    def check(self, scene: Scene, topics: frozenset[str] | None) -> None:
        """Compare its names with what there is in the world."""
        self.missing = missing_names(self.vehicle, scene.models, scene.links)
        publisher = f'/model/{self.vehicle.model.rpartition("::")[2]}/odometry'
        self.no_odometry_system = topics is not None and publisher not in topics

    def _take_odometry(self) -> _Motion | None:
        waiting = list(common.take_all(self._odom_sub))
        if waiting:
            newest = waiting[-1]
            q, v, w = (newest.pose.pose.orientation, newest.twist.twist.linear,
                       newest.twist.twist.angular)
            orientation = (q.x, q.y, q.z, q.w)
            velocity = body_to_enu(orientation, (v.x, v.y, v.z))
            length = math.hypot(*orientation)
            stamp = newest.header.stamp
            self._motion = _Motion(
                velocity, (w.x, w.y, w.z),
                (q.x / length, q.y / length, q.z / length, q.w / length),
                stamp.sec + stamp.nanosec * 1e-9)
        return self._motion


class Forces:
    """The forces on all vehicles of a world.

    Parameters
    ----------
    node : rclpy.node.Node
        Whose publishers and subscriptions they use.
    world : str
        Name of the Gazebo world.
    release : str
        Gazebo release whose bindings are used to look the names up, if they are installed.
    scene : SceneLink, optional
        Where the names are looked up; by default Gazebo Transport.

    Raises
    ------
    common.InterfacesMissing
        If ros_gz_interfaces is not installed.
    """

    def __init__(self, node: Node, world: str, release: str,
                 scene: SceneLink | None = None) -> None:
        try:
            self._messages: Any = importlib.import_module('ros_gz_interfaces.msg')
        except ImportError as error:
            raise common.InterfacesMissing(INTERFACES_MISSING) from error
        self._node = node
        self._world = world
        self.drag = DragModel((0.0, 0.0, 0.0))
        self.sent = 0
        self.checked = ''
        topic = f'/world/{ros_name(world)}/wrench'
        self._wrench_pub = node.create_publisher(
            self._messages.EntityWrench, f'{topic}/persistent', common.STREAM_QOS)
        self._clear_pub = node.create_publisher(
            self._messages.Entity, f'{topic}/clear', common.STREAM_QOS)
        self._scene = scene
        self._answer: tuple[Scene, frozenset[str] | None] | None = None
        if scene is None:
            try:
                self._scene = transport.GazeboScene(world, release)
            except BindingsMissing:
                self.checked = ('names are not checked, for the Python bindings of Gazebo '
                                'Transport are not installed: a name that does not exist gets no '
                                'force without a word')
        if self._scene is not None:
            threading.Thread(target=self._look, args=(self._scene,), name='scene',
                             daemon=True).start()

    def configure(self, values: Mapping[str, Any]) -> None:
        """Take in the parameters of drag."""
        self.drag = DragModel(
            (values['drag_area.x'], values['drag_area.y'], values['drag_area.z']),
            values['air_density'],
            (values['turn_area.x'], values['turn_area.y'], values['turn_area.z']))

    def listen(self, vehicle: Vehicle) -> Force:
        """Return the force on a vehicle, without any yet."""
        force = Force(self, vehicle, self._node.create_subscription(
            Odometry, vehicle.topic('odom'), lambda _message: None, common.SENSOR_QOS,
            callback_group=common.Polled()))
        force.clear()  # one that was killed may have left its force
        return force

    def give(self, target: Target, force: Vector, torque: Vector) -> None:
        """Publish a force (N) and a torque (N m) on a link, both ENU."""
        message = self._messages.EntityWrench(entity=self._entity(target))
        vector = message.wrench.force
        vector.x, vector.y, vector.z = force
        vector = message.wrench.torque
        vector.x, vector.y, vector.z = torque
        self._wrench_pub.publish(message)
        self.sent += 1

    def clear(self, target: Target) -> None:
        """Take away what acts on a link under one of its names."""
        self._clear_pub.publish(self._entity(target))

    def _entity(self, target: Target) -> Any:
        return self._messages.Entity(name=target.name, type=target.kind)

    def _look(self, scene: SceneLink) -> None:
        """Ask again and again what there is in the world: models come and go."""
        while True:
            found = scene.scene(SCENE_S)
            if found is not None:
                self._answer = found, scene.topics()
            time.sleep(0.2 if found is None else 5.0)

    def check(self, forces: list[Force]) -> None:
        """Compare the names of vehicles with the newest answer of the world, if there is one."""
        answer, self._answer = self._answer, None
        if answer is None:
            return
        self.checked = 'names are those of the world'
        for force in forces:
            had = force.missing
            force.check(*answer)
            if force.missing and force.missing != had:
                force.clear()
                self._node.get_logger().error(
                    f'{force.vehicle.name}: {force.missing}. It gets no force: correct vehicles, '
                    'or spawn the model')
            elif had and not force.missing:
                self._node.get_logger().info(f'{force.vehicle.name}: its model and link are there')

    def judge(self, waited: float) -> tuple[bytes, str, dict[str, object]]:
        """Return level, text and values of the diagnostics."""
        values: dict[str, object] = {'world': self._world, 'sent': self.sent,
                                     'names': self.checked}
        topic = self._wrench_pub.topic_name
        if self._wrench_pub.get_subscription_count():
            return DiagnosticStatus.OK, f'{topic} is listened to', values
        return (DiagnosticStatus.WARN if waited < PATIENCE_S else DiagnosticStatus.ERROR,
                f'nobody listens on {topic}: start ros_gz_bridge with config/gazebo_bridge.yaml '
                'of this package, or gazebo.launch.py', values)

    def close(self, forces: list[Force]) -> None:
        """Take all forces away."""
        for force in forces:
            force.clear()
        self._clear_pub.wait_for_all_acked(Duration(seconds=1))
        if self.sent:
            self._node.get_logger().info(f'world {self._world}: all forces are taken away')
