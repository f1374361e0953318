"""Node ``mavlink_bridge``: one ArduPilot SITL on one side, ROS topics on the other.

Publishes ``clock`` (where asked), ``odom``, ``ekf_wind`` and diagnostics; gives SITL what
``sim_wind`` says. Nothing is written to SITL before a first ``sim_wind`` arrives, and everything
that was written is put back at the end.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PointStamped
from nav_msgs.msg import Odometry as OdometryMsg
from rclpy.clock import Clock, ClockType
from rclpy.logging import get_logger
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMsg
from std_srvs.srv import Trigger

from dryden_wind_ros.ekf.advice import Level as AdviceLevel
from dryden_wind_ros.ekf.advice import as_text
from dryden_wind_ros.ekf.phase import WindPhase
from dryden_wind_ros.nodes import common
from dryden_wind_ros.nodes.bridge_findings import (
    effect_finding,
    ekf_finding,
    link_finding,
    parameters_finding,
)
from dryden_wind_ros.nodes.common import Parameter
from dryden_wind_ros.nodes.ekf_wind import PARAMETERS as EKF_PARAMETERS
from dryden_wind_ros.nodes.ekf_wind import EkfWindFollower, EkfWindSample
from dryden_wind_ros.nodes.listeners import AGAIN_S, Listeners
from dryden_wind_ros.nodes.newest import NewestMessage
from dryden_wind_ros.nodes.wind_messages import TRUE_VARIANCE
from dryden_wind_ros.sitl.connection import ConnectionStringError, parse_connection
from dryden_wind_ros.sitl.events import Event, Level
from dryden_wind_ros.sitl.frame import Frame, Origin, parse_origin
from dryden_wind_ros.sitl.link_status import LinkState, LinkStatus
from dryden_wind_ros.sitl.loop import LinkLoop
from dryden_wind_ros.sitl.odometry import Odometry
from dryden_wind_ros.sitl.parameters import ParametersStatus
from dryden_wind_ros.sitl.session import (
    EKF_INTERVALS,
    END_WITHIN_S,
    Session,
    SessionSettings,
)
from dryden_wind_ros.sitl.sim_wind import Wind
from dryden_wind_ros.sitl.wind_effect import Effect, WindEffectMonitor
from dryden_wind_ros.sitl.wind_owner import FOUND_IN

PARAMETERS = (
    Parameter('connection', 'tcp:127.0.0.1:5762',
              'Where the vehicle is, as a pymavlink connection string: tcp:, tcpin:, udp:, udpin:, '
              'udpout:, uds: or a serial device.', read_only=True),
    Parameter('system_id', 0, 'MAVLink system id of the vehicle; 0: the first ArduPilot heard.',
              low=0, high=255, read_only=True),
    Parameter('source_system', 245,
              "Our own MAVLink system id; 255 is the ground station's and would mask the GCS "
              'failsafe.', low=1, high=254, read_only=True),
    Parameter('allow_remote', False,
              "Whether the connection may leave this machine's loopback or be a serial device.",
              read_only=True),
    Parameter('publish_clock', False,
              "Whether the vehicle's time is published on 'clock'; leave it off where Gazebo or "
              'another source publishes one.', read_only=True),
    Parameter('publish_odometry', True,
              "Whether 'odom' is published; switch it off where another source publishes it.",
              read_only=True),
    Parameter('odometry_rate', 20.0, 'Odometry asked of the vehicle, Hz of its own time.',
              low=1.0, high=50.0, read_only=True),
    Parameter('sim_wind_tc', 0.1,
              'SIM_WIND_TC while wind is sent, s; the true time constant of the filter is 1/(2 pi) '
              "of it. 0.1 is SITL's floor.", low=0.1, high=60.0, read_only=True),
    Parameter('origin', '',
              'Zero of positions: latitude, longitude (degrees) and altitude (m above mean sea '
              "level), such as '-35.363262, 149.165237, 584'. '': the origin of the vehicle's "
              'EKF3, with heights above home.', read_only=True),
    Parameter('frame_id', 'map', 'Frame of positions and winds (ENU).', read_only=True),
    Parameter('child_frame_id', 'base_link', 'Frame of the body (forward, left, up).',
              read_only=True),
    Parameter('state_dir', '',
              "Where the values found in SITL are kept until they are put back; '': "
              '$XDG_STATE_HOME/dryden_wind_ros or ~/.local/state/dryden_wind_ros.',
              read_only=True),
    Parameter('found_in', 'auto',
              "What counts as the user's own wind: 'auto': what the vehicle shows, or what was "
              'kept for it if it shows the wind of a bridge that was killed; a vehicle that seems '
              "to be driven by another bridge is left alone. 'vehicle': what it shows, whatever "
              "that looks like; 'file': what is kept, whatever it shows.", choices=FOUND_IN,
              read_only=True),
    Parameter('gust_timeout', 5.0,
              'Wall time without a new sim_wind, while the vehicle flies on, after which the gust '
              'is taken away and the mean wind stays, s; 0: the last gust stays.', low=0.0,
              high=600.0, read_only=True),
)


class MavlinkBridge(Node):
    """Bridge between one SITL vehicle and ROS.

    Parameters
    ----------
    loop : LinkLoop, optional
        A running loop that serves a fleet; without one the bridge has its own.
    on_tick : callable, optional
        Called, in the loop's thread, with the vehicle time in ns at every new 0.05 s tick.
    on_sample : callable, optional
        Called, in the loop's thread, with every `Odometry`.
    on_armed : callable, optional
        Called, in the loop's thread, with the vehicle time in ns at which it was armed; with 0
        where it is not armed after a start or restart.
    frame : Frame, optional
        Where positions count from, of a fleet; without one, parameter ``origin`` says.
    turns : callable, optional
        Returns whether `on_sample` needs every attitude; otherwise only listeners of odom do.
    also_known : iterable of str, optional
        Parameters that other nodes of the process know.
    **kwargs
        As for ``rclpy.node.Node``.

    Raises
    ------
    common.BadParameter
        If a parameter or the connection string is not allowed.
    common.InterfacesMissing
        If the messages of this package are not built.
    """

    def __init__(self, *, loop: LinkLoop | None = None,
                 on_tick: Callable[[int], None] | None = None,
                 on_sample: Callable[[Odometry], None] | None = None,
                 on_armed: Callable[[int], None] | None = None,
                 frame: Frame | None = None, turns: Callable[[], bool] | None = None,
                 also_known: Iterable[str] = (), **kwargs: Any) -> None:
        super().__init__('mavlink_bridge', **kwargs)
        self._turns = turns
        self._messages = common.interfaces()
        self.parameters = common.ParameterTable(self, PARAMETERS, also_known=also_known)
        values = self.parameters.values
        try:
            target = parse_connection(values['connection'], values['allow_remote'])
            self.frame = Frame(parse_origin(values['origin'])) if frame is None else frame
        except (ConnectionStringError, ValueError) as error:
            raise common.BadParameter(str(error)) from None
        self._publishing = True
        self._tick_feed, self._sample_feed, self._armed_feed = on_tick, on_sample, on_armed

        self._clock_message = ClockMsg()
        self._clock_publisher = self.create_publisher(
            ClockMsg, 'clock', common.STREAM_QOS) if values['publish_clock'] else None
        self._odometry = OdometryMsg()
        self._odometry_true = False
        self._odometry.header.frame_id = values['frame_id']
        self._odometry.child_frame_id = values['child_frame_id']
        self._odometry_publisher = self.create_publisher(
            OdometryMsg, 'odom', common.STREAM_QOS) if values['publish_odometry'] else None
        self._origin_publisher = self.create_publisher(
            PointStamped, 'odom_origin', common.LATCHED_QOS)
        self._origin: Origin | None = None
        self._ekf_wind = self._messages.EkfWind()
        self._ekf_wind.header.frame_id = values['frame_id']
        self._ekf_wind_publisher = self.create_publisher(
            self._messages.EkfWind, 'ekf_wind', common.LATCHED_QOS)
        self._listeners = Listeners(
            (self._clock_publisher, self._odometry_publisher, self._ekf_wind_publisher),
            0.0 if loop is None else AGAIN_S)
        self._armed_publisher = self.create_publisher(Time, 'armed_at', common.LATCHED_QOS)
        self._ekf_phase: WindPhase | None = None
        self._ekf_unheard = False
        # Silence is published by the executor's thread, everything else by the link's.
        self._ekf_lock = threading.Lock()
        self._diagnostics_publisher = self.create_publisher(
            DiagnosticArray, '/diagnostics', common.STREAM_QOS)

        self.session = Session(
            target,
            SessionSettings(
                system_id=values['system_id'], source_system=values['source_system'],
                time_constant=values['sim_wind_tc'], odometry_rate=values['odometry_rate'],
                state_dir=values['state_dir'], found_in=values['found_in'],
                gust_timeout=values['gust_timeout']),
            on_event=self._on_event,
            on_tick=self._on_tick,
            on_odometry=self._on_odometry, on_message=self._on_message,
            on_armed=self._on_armed, on_restart=self._on_restart,
            intervals=EKF_INTERVALS, read=EKF_PARAMETERS, frame=self.frame)
        self._ekf = EkfWindFollower(self.session.flown)
        self._effect = WindEffectMonitor()
        self._vehicle_type = -1
        self.create_service(Trigger, 'ekf_wind/check', self._on_check)
        self._own_loop = LinkLoop(self._on_error) if loop is None else None
        self._winds = NewestMessage(
            self, self._messages.SimWind, 'sim_wind', common.LATCHED_QOS,
            self._on_sim_wind) if loop is None else None
        self._refused_wind = ''
        self._last_error = ''
        # Wall time: it has to say what is wrong just when the vehicle's time stands still.
        self.create_timer(1.0, self._on_second, clock=Clock(clock_type=ClockType.STEADY_TIME))
        if loop is None:
            assert self._own_loop is not None
            loop = self._own_loop
            loop.start()
        self.session.start(loop)
        if self._winds is not None:
            self._winds.start()

    # -- from ROS

    def _on_sim_wind(self, message: Any) -> None:
        self.take_wind(
            message.speed, message.direction, message.direction_z, message.turbulence,
            message.profile or 'uniform', (message.gust_e, message.gust_n, message.gust_up))

    def take_wind(self, *fields: Any) -> None:
        """Take the wind SITL is to be given, by the fields of `Wind`. Returns at once."""
        try:
            wind = Wind(*fields)
        except ValueError as error:
            if str(error) != self._refused_wind:
                self._refused_wind = str(error)
                self.get_logger().error(f'{error}; the wind before stays')
            return
        self._refused_wind = ''
        self._ekf.wind_sent(wind)
        self.session.set_wind(wind)

    def _on_second(self) -> None:
        self.session.need_attitude(
            self._listeners.heard()[1] or (self._turns is not None and self._turns()))
        link, parameters = self.session.status()
        self._vehicle_type = link.vehicle_type
        if link.state is not LinkState.UP:
            silent = self._ekf.nothing_heard(1.0)
            if silent is not None:
                self._publish_ekf_wind(silent)
        if self._ekf_unheard and self._ekf.newest is not None:
            self._publish_ekf_wind(self._ekf.newest)
        self._advise()
        if self._diagnostics_publisher.get_subscription_count():
            self._publish_diagnostics(link, parameters)

    def _on_check(self, _: Any, response: Any) -> Any:
        response.success = self.session.reader.done and self._ekf.newest is not None
        response.message = as_text(self._ekf.current_advice(self.session.reader.values)) \
            if response.success else 'nothing is known of a vehicle yet'
        return response

    # -- from the vehicle, in the link's thread

    def _on_tick(self, milliseconds: int) -> None:
        if self._listeners.heard()[0]:
            self._publish_clock(milliseconds)
        if self._tick_feed is not None:
            self._tick_feed(milliseconds * 1_000_000)

    def _publish_clock(self, milliseconds: int) -> None:
        stamp = self._clock_message.clock
        stamp.sec, stamp.nanosec = _stamp(milliseconds)
        self._publish(self._clock_publisher, self._clock_message)

    def _on_odometry(self, sample: Odometry) -> None:
        self._ekf.height = sample.position[2]
        if self._sample_feed is not None:
            self._sample_feed(sample)
        ekf = self._ekf.newest
        seconds = sample.time_ms / 1000
        if ekf is not None and self._effect.due(seconds) and self._effect.odometry(
                seconds, self._vehicle_type, sample.position[2], sample.velocity_enu,
                sample.orientation, (ekf.flown_e, ekf.flown_n)):
            self._report_effect()
        if self.frame.origin != self._origin:
            self._tell_origin(self.frame.origin)
        if not self._listeners.heard()[1]:
            return
        message = self._odometry
        stamp = message.header.stamp
        stamp.sec, stamp.nanosec = _stamp(sample.time_ms)
        pose = message.pose.pose
        position, orientation = pose.position, pose.orientation
        position.x, position.y, position.z = sample.position
        orientation.x, orientation.y, orientation.z, orientation.w = sample.orientation
        twist = message.twist.twist
        linear, angular = twist.linear, twist.angular
        linear.x, linear.y, linear.z = sample.velocity
        angular.x, angular.y, angular.z = sample.angular_velocity
        if sample.true is not self._odometry_true:
            self._odometry_true = sample.true
            for place in (0, 7, 14):
                message.pose.covariance[place] = TRUE_VARIANCE if sample.true else 0.0
        self._publish(self._odometry_publisher, message)

    def _on_armed(self, milliseconds: int) -> None:
        if self._armed_feed is not None:
            self._armed_feed(milliseconds * 1_000_000)
        sec, nanosec = _stamp(milliseconds)
        self._publish(self._armed_publisher, Time(sec=sec, nanosec=nanosec))

    def _tell_origin(self, origin: Origin | None) -> None:
        self._origin = origin
        if origin is not None:
            message = PointStamped()
            message.header.frame_id = 'wgs84'
            message.point.x, message.point.y, message.point.z = origin.degrees
            self._publish(self._origin_publisher, message)

    def _on_message(self, message: Any) -> None:
        sample = self._ekf.update(message)
        if sample is None:
            return
        before, self._ekf_phase = self._ekf_phase, sample.state.phase
        if sample.state.phase is not before:
            # The heading at the moment of the first guess is what the take-off is judged by.
            self._advise()
        if sample.state.phase is not before or self._listeners.heard()[2]:
            self._publish_ekf_wind(sample)
        else:
            # What is latched for those who come later is renewed once a second.
            self._ekf_unheard = True
        if self._effect.estimate(sample.state, (sample.flown_e, sample.flown_n)):
            self._report_effect()

    def _report_effect(self) -> None:
        self._ekf.felt = self._effect.result.effect is not Effect.NOT_FELT
        if self._effect.result.effect is Effect.NOT_FELT and self.context.ok():
            self.get_logger().warning(self._effect.result.text)

    def _on_restart(self) -> None:
        self._effect = WindEffectMonitor()
        self._ekf.restart(self.session.link.system)

    def _advise(self) -> None:
        if not self.session.reader.done or not self.context.ok():
            return
        logger = self.get_logger()
        for one in self._ekf.advise(self.session.reader.values):
            if one.level >= AdviceLevel.WARN:
                logger.warning(one.text)
            else:
                logger.info(one.text)

    def _publish_ekf_wind(self, sample: EkfWindSample) -> None:
        with self._ekf_lock:
            self._ekf_unheard = False
            self._fill_ekf_wind(self._ekf_wind, sample)
            self._publish(self._ekf_wind_publisher, self._ekf_wind)

    def ekf_wind(self) -> Any:
        """Return the newest EkfWind message, None before the first; from any thread."""
        sample = self._ekf.newest
        if sample is None:
            return None
        message = self._messages.EkfWind()
        message.header.frame_id = self.parameters['frame_id']
        self._fill_ekf_wind(message, sample)
        return message

    def _fill_ekf_wind(self, message: Any, sample: EkfWindSample) -> None:
        state = sample.state
        stamp = message.header.stamp
        stamp.sec, stamp.nanosec = _stamp(round(state.t * 1000))
        message.phase, message.phase_name = int(state.phase), state.phase_name
        message.since, message.settled = state.since, state.settled
        message.aiding_lost, message.reason = state.aiding_lost, state.reason
        message.wind_e, message.wind_n = state.wind_e, state.wind_n
        message.speed, message.from_deg = state.speed, state.from_deg
        message.flown_e, message.flown_n = sample.flown_e, sample.flown_n
        message.error_speed = sample.error_speed
        message.error_direction = sample.error_direction

    def _publish(self, publisher: Any, message: Any) -> None:
        if not self._publishing:
            return
        try:
            publisher.publish(message)
        except Exception:
            # Ctrl-C takes the context away before it tells us.
            if self.context.ok():
                raise

    def _on_event(self, event: Event) -> None:
        # One line each: rclpy wants a fixed severity per place.
        logger = self.get_logger()
        if not self.context.ok():
            # Another name has no /rosout publisher, and so none that complains of being shut down.
            logger = get_logger(f'{logger.name}.stopping')
        if event.level is Level.ERROR:
            logger.error(event.text)
        elif event.level is Level.WARN:
            logger.warning(event.text)
        else:
            logger.info(event.text)

    def _on_error(self, error: BaseException) -> None:
        text = f'{type(error).__name__} while handling a message: {error}'
        # Once: what one message does, hundreds a second do.
        if text != self._last_error and self._publishing and self.context.ok():
            self._last_error = text
            self.get_logger().error(text)

    # -- diagnostics

    def _publish_diagnostics(self, link: LinkStatus, parameters: ParametersStatus) -> None:
        name = self.get_fully_qualified_name()
        message = DiagnosticArray()
        message.header.stamp = self.get_clock().now().to_msg()
        advice = self._ekf.current_advice(self.session.reader.values) \
            if self.session.reader.done else []
        message.status = [
            link_finding(name, link, self.session.odometries),
            parameters_finding(name, parameters, self._refused_wind),
            ekf_finding(name, self._ekf.newest, advice),
            effect_finding(name, self._effect.result)]
        self._publish(self._diagnostics_publisher, message)

    # -- the end

    def begin_close(self) -> None:
        """Stop publishing and begin to put SITL back as it was found."""
        self._publishing = False
        if self._winds is not None:
            self._winds.stop()
        self.session.begin_restore()

    @property
    def closed(self) -> bool:
        """Whether that has come to its end."""
        return self.session.finished

    @property
    def left(self) -> str:
        """What could not be put back, and why; '' if everything is back."""
        return self.session.left

    def finish_close(self, timeout: float = END_WITHIN_S) -> None:
        """Wait for that, as long as there is progress, and let go of the link."""
        self.session.wait_restored(timeout)
        if self._own_loop is not None:
            self._own_loop.stop()

    def close(self) -> None:
        """Put SITL back as it was found, and let go of the link."""
        self.begin_close()
        self.finish_close()


def _stamp(milliseconds: int) -> tuple[int, int]:
    seconds, rest = divmod(milliseconds, 1000)
    return seconds, rest * 1_000_000


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; the exit code is 1 if anything could not be put back."""
    left = []

    def close(node: Node) -> None:
        assert isinstance(node, MavlinkBridge)
        node.close()
        left.append(node.left)

    code = common.run(MavlinkBridge, args, stop=close, rows=PARAMETERS, about=__doc__)
    return code or int(any(left))


if __name__ == '__main__':
    sys.exit(main())
