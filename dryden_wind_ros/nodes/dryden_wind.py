"""The wind node: sim clock and odometry in, gust and mean wind out, twenty times per sim second.

Works with any source of `clock` and `odom`: the MAVLink bridge, Gazebo, MAVROS or ArduPilot's DDS.
All arithmetic is in `dryden_wind_ros.gusts.air`.
"""

from __future__ import annotations

import array
import dataclasses
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PointStamped, TwistWithCovarianceStamped, Vector3Stamped
from nav_msgs.msg import Odometry
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage
from std_srvs.srv import Trigger

from dryden_wind_ros.gusts.air import AirTick, SeededAir
from dryden_wind_ros.gusts.air_settings import AirSettings
from dryden_wind_ros.gusts.frames import Vector, body_to_enu
from dryden_wind_ros.gusts.shared_air import SharedAir
from dryden_wind_ros.gusts.tick_grid import TickRate
from dryden_wind_ros.nodes import common
from dryden_wind_ros.nodes.listeners import AGAIN_S, Listeners
from dryden_wind_ros.nodes.scenario_follower import ScenarioFollower, gust_asked_for
from dryden_wind_ros.nodes.slow_service import create_slow_service
from dryden_wind_ros.nodes.wind_messages import (
    fill_state,
    no_ekf_wind,
    ns_of,
    tells_truth,
    time_of,
    vector,
)
from dryden_wind_ros.nodes.wind_parameters import PARAMETERS, in_words, settings_of

PATIENCE_S = 5.0
"""Wall time after which a missing clock or odometry is reported, s."""

REPEATED_BACK = 4
"""So many jumps of the clock within `PATIENCE_S` are no resets of a simulation, but two clocks."""

TWIN_PATIENCE_S = 25.0
"""Wall time after which a second wind node is reported, s: DDS believes for 20 s that a killed one
lives."""

COUNT_TWINS_S, COUNT_TWINS_OF_FLEET_S = 5.0, 12.0
"""How often other wind nodes are looked for, s; in a fleet of a hundred a count takes 2 ms."""

REPEAT_TICKS = 20
"""An unchanged sim_wind is repeated this often, for those who missed it."""


class Finding(NamedTuple):
    """An entry of the diagnostics, as `common.status` takes it."""

    name: str
    level: bytes
    text: str
    values: Mapping[str, object] = {}


class DrydenWindNode(Node):
    """Publishes the air of one vehicle.

    Parameters
    ----------
    listen : bool, optional
        Whether clock and odometry come from topics. A fleet in one process has them at hand and
        calls `feed_time` and `feed_odometry` instead, from whichever thread.
    on_sim_wind : callable, optional
        Called with the fields of `sitl.sim_wind.Wind` whenever SITL is to be given a wind.
    ekf_wind : callable, optional
        Returns the newest EkfWind message or None; without it, they come from their topic.
    clock_source : str, optional
        For messages: where sim time comes from where it is not listened for here.
    shared : SharedAir, optional
        Time and drift of the field that a fleet flies in.
    rank : int, optional
        Which vehicle of the fleet this is, from 0.
    field_seed : int, optional
        Seed of the field that the fleet shares; parameter ``seed`` wins once it is changed.
    origin : callable, optional
        Returns the zero of positions as (latitude, longitude, altitude), or None; without it, that
        comes from its topic.
    also_known : iterable of str, optional
        Parameters that other nodes of the process know.
    **kwargs
        As for ``rclpy.node.Node``.
    """

    def __init__(self, *, listen: bool = True,
                 on_sim_wind: Callable[..., None] | None = None,
                 ekf_wind: Callable[[], Any] | None = None,
                 clock_source: str = 'the link',
                 shared: SharedAir | None = None, rank: int = 0, field_seed: int | None = None,
                 origin: Callable[[], tuple[float, float, float] | None] | None = None,
                 also_known: Iterable[str] = (), **kwargs: Any) -> None:
        messages, services = common.interfaces('msg'), common.interfaces('srv')
        super().__init__('dryden_wind', **kwargs)
        self._msg = messages
        self._on_sim_wind = on_sim_wind
        self._lock = threading.RLock()  # a fed node is fed from another thread than it is asked
        self.scenario = ScenarioFollower(self.get_namespace(), self._say)
        self.parameters = common.ParameterTable(
            self, PARAMETERS, judge=self._judge, apply=self._on_parameters,
            also_known=also_known)
        self._own_seed, self._field_seed = self.parameters['seed'], field_seed
        self.air = SeededAir(self._settings(self.parameters.values), shared, rank)
        self.scenario.follow(self.air, self.parameters.values)
        self._frame_id: str = self.parameters['frame_id']

        self._gust_pub = self.create_publisher(Vector3Stamped, 'wind/gust', common.STREAM_QOS)
        self._mean_pub = self.create_publisher(Vector3Stamped, 'wind/mean', common.STREAM_QOS)
        self._wind_pub = self.create_publisher(
            TwistWithCovarianceStamped, 'wind', common.STREAM_QOS)
        self._state_pub = self.create_publisher(
            messages.WindState, 'wind/state', common.STREAM_QOS)
        self._sim_wind_pub = self.create_publisher(
            messages.SimWind, 'sim_wind', common.LATCHED_QOS)
        self._listeners = Listeners((
            self._sim_wind_pub, self._gust_pub, self._mean_pub, self._wind_pub, self._state_pub),
            0.0 if listen else AGAIN_S)
        self._diagnostics_pub = self.create_publisher(DiagnosticArray, '/diagnostics', 10)

        # Only the clock wakes this node. The others are taken from their queues when a tick, an
        # answer or the diagnostics need them: that halves the work.
        polled = common.Polled()
        self._ekf_source = ekf_wind
        self._ekf_sub = None if ekf_wind is not None else self.create_subscription(
            messages.EkfWind, 'ekf_wind', lambda _: None, common.LATCHED_QOS,
            callback_group=polled)
        self._odom_sub = self._clock_sub = self._gate = self._armed_sub = None
        self._origin_source, self._origin_sub = origin, None
        self._origin: tuple[float, float, float] | None = None
        self._odom_topic, self._clock_topic = 'the link', clock_source
        if listen:
            self._gate = common.Gate(self)
            self._odom_sub = self.create_subscription(
                Odometry, 'odom', self._on_odometry, common.SENSOR_QOS, callback_group=polled)
            self._clock_sub = self.create_subscription(
                ClockMessage, 'clock', self._on_clock, common.CLOCK_QOS,
                callback_group=self._gate)
            self._gate.on_open = self._on_gate
            self._armed_sub = self.create_subscription(
                Time, 'armed_at', lambda message: self.feed_armed(ns_of(message)),
                common.LATCHED_QOS, callback_group=polled)
            self._origin_sub = self.create_subscription(
                PointStamped, 'odom_origin', lambda _: None, common.LATCHED_QOS,
                callback_group=polled)
            self._odom_topic = self._odom_sub.topic_name
            self._clock_topic = self._clock_sub.topic_name
        self.create_service(services.GetWindHistory, 'wind/get_history', self._on_get_history)
        self.create_service(Trigger, 'wind/restart', self._on_restart)
        create_slow_service(self, services.SampleWind, 'wind/sample', self._on_sample)
        self.create_service(services.DiscreteGust, 'wind/discrete_gust', self._on_discrete_gust)
        self.create_timer(1.0, self._on_second, clock=Clock(clock_type=ClockType.STEADY_TIME))

        self._ekf_wind = no_ekf_wind(messages)
        self._given = TickRate()
        self._sent: tuple[Any, ...] = ()
        self._sent_tick = 0
        self._unheard: AirTick | None = None
        self._started_at = time.monotonic()
        self._ticked_at: float | None = None
        self._odometry_at: float | None = None
        self._bad_odometry = 0
        self._bad_odometry_text = ''
        self._bad_odometry_at = -math.inf
        self._alone_at = self._counted_at = self._started_at
        self._others = 0
        self._went_back: deque[float] = deque(maxlen=REPEATED_BACK)
        self._said: set[str] = set()
        self.get_logger().info(
            self._in_words()
            + (f'; waiting for {self._clock_topic} and {self._odom_topic}' if listen else ''))

    # ------------------------------------------------------------------ inputs

    def _on_parameters(self, values: Mapping[str, Any]) -> None:
        self._frame_id = values['frame_id']
        settings = self._settings(values)
        with self._lock:
            changed = settings != self.air.settings
            restarted = changed and self.air.configure(settings)
            changed |= self.scenario.follow(self.air, values, self.parameters.set_now)
        if changed:
            self.get_logger().info(
                self._in_words() + ('; the air was restarted' if restarted else ''))

    def _judge(self, values: Mapping[str, Any]) -> None:
        settings_of(values)  # raises for what no single row of the table can see
        self.scenario.judge(values)

    def _settings(self, values: Mapping[str, Any]) -> AirSettings:
        settings = settings_of(values)
        if settings.gusts == 'field' and self._field_seed is not None \
                and settings.seed == self._own_seed:
            settings = dataclasses.replace(settings, seed=self._field_seed)
        return settings

    def _in_words(self) -> str:
        words, scenario = in_words(self.air.settings), self.scenario.scenario
        return words if scenario is None else f'{scenario.in_words()}; besides: {words}'

    def _say(self, text: str, warn: bool) -> None:
        # One line each: rclpy wants a fixed severity per place.
        if warn:
            self.get_logger().warning(text)
        else:
            self.get_logger().info(text)

    def _on_odometry(self, message: Odometry) -> None:
        pose, twist = message.pose.pose, message.twist.twist.linear
        orientation = pose.orientation
        try:
            velocity = body_to_enu(
                (orientation.x, orientation.y, orientation.z, orientation.w),
                (twist.x, twist.y, twist.z))
        except ValueError as error:
            self._refuse_odometry(error)
            return
        place = pose.position
        self.feed_odometry(
            ns_of(message.header.stamp), (place.x, place.y, place.z), velocity,
            tells_truth(message),
            lambda: (orientation.x, orientation.y, orientation.z, orientation.w))

    def feed_odometry(self, time_ns: int, position: Vector, velocity_enu: Vector,
                      is_true: bool = False,
                      orientation: Callable[[], tuple[float, float, float, float]] | None = None,
                      ) -> None:
        """Take in where the vehicle is; see `SeededAir.odometry`, but bad numbers are reported."""
        try:
            with self._lock:
                self.air.odometry(time_ns, position, velocity_enu, is_true, orientation)
        except ValueError as error:
            self._refuse_odometry(error)
            return
        self._odometry_at = time.monotonic()
        self._said.discard('no odometry')

    def feed_armed(self, time_ns: int) -> None:
        """Take in when the vehicle was armed, ns of simulated time; 0: it was not, since boot."""
        with self._lock:
            self.air.armed_at = time_ns * 1e-9 if time_ns else None

    def feed_armed_now(self, time_ns: int) -> None:
        """Take in that the vehicle was armed, by a clock that is not the air's; 0: it was not."""
        newest = self.air.newest
        self.feed_armed(newest.time_ns if time_ns and newest is not None else 0)

    def _refuse_odometry(self, error: ValueError) -> None:
        self._bad_odometry += 1
        self._bad_odometry_at = time.monotonic()
        self._bad_odometry_text = str(error)
        self._say_once('bad odometry', f'{self._odom_topic}: {error}; the message was not used, '
                       'the last good one holds')

    def _on_clock(self, message: ClockMessage) -> None:
        assert self._clock_sub is not None
        assert self._gate is not None
        self._take_odometry()
        times = [ns_of(message.clock)]
        times += [ns_of(later.clock) for later in common.take_all(self._clock_sub)]
        ticks = [tick for tick in map(self._advance, times) if tick is not None]
        if ticks:
            # First: SITL waits for it, and only for the newest. The others only watch.
            self._publish_sim_wind(ticks[-1])
            for tick in ticks:
                self._publish(tick)
        self._gate.passed(len(times), bool(ticks))

    def _on_gate(self) -> None:
        assert self._clock_sub is not None
        for message in common.take_all(self._clock_sub):
            self._on_clock(message)

    def feed_time(self, time_ns: int) -> None:
        """Take in the simulated time, ns."""
        tick = self._advance(time_ns)
        if tick is not None:
            self._publish_sim_wind(tick)
            self._publish(tick)

    def _take_odometry(self) -> None:
        if self._odom_sub is not None:
            for message in common.take_all(self._odom_sub):
                self._on_odometry(message)
        if self._armed_sub is not None and self.scenario.counts_from_arming:
            for message in common.take_all(self._armed_sub):
                self.feed_armed(ns_of(message))

    def _advance(self, time_ns: int) -> AirTick | None:
        """Step the air to a time; return the tick if a new one was reached."""
        with self._lock:
            advanced = self.air.advance(time_ns)
        if advanced.tick is None:
            return None
        if self._ticked_at is None:
            origin = self.air.grid.origin_ns
            self.get_logger().info(
                f'the air starts at sim time {advanced.tick.time_ns * 1e-9:.2f} s'
                + (', counted from there: the clock counts from the epoch' if origin else
                   f', tick {advanced.tick.tick}'))
        self._ticked_at = time.monotonic()
        if self._said:
            self._said -= {'no clock', 'clock stands'}
        if advanced.restarted:
            self._tell_restart(advanced.tick)
        return advanced.tick

    def _tell_restart(self, tick: AirTick) -> None:
        self._went_back.append(time.monotonic())
        if self._disputed:
            self._say_once('two clocks', self._dispute)
            return
        self.get_logger().warning(
            f'sim time went to {tick.time_ns * 1e-9:.2f} s, back or to another clock: '
            f'the air begins anew from seed {self.air.settings.seed}, the history is empty')

    @property
    def _disputed(self) -> bool:
        """Whether sim time has jumped again and again lately."""
        return (len(self._went_back) == REPEATED_BACK
                and time.monotonic() - self._went_back[0] < PATIENCE_S)

    @property
    def _dispute(self) -> str:
        heard = '' if self._clock_sub is None else \
            f' ({self.count_publishers(self._clock_topic)} publishers)'
        return (f'sim time on {self._clock_topic} jumps to and fro{heard}: two clocks speak there, '
                'and the air begins anew at each jump. Let one of them publish it, or give each '
                'vehicle its own namespace')

    def _take_ekf_wind(self) -> None:
        if self._ekf_source is not None:
            self._ekf_wind = self._ekf_source() or self._ekf_wind
        elif self._ekf_sub is not None:
            for message in common.take_all(self._ekf_sub):
                self._ekf_wind = message

    # ------------------------------------------------------------------ one tick

    def _publish_sim_wind(self, tick: AirTick) -> None:
        self._given.reached(tick.tick)
        settings, wind = self.air.settings, tick.sim_wind
        turbulence = settings.turbulence_in(tick.mean.speed)
        content = (wind, turbulence, settings.profile)
        if content == self._sent and 0 <= tick.tick - self._sent_tick < REPEAT_TICKS:
            return
        self._sent, self._sent_tick = content, tick.tick
        if self._on_sim_wind is not None:
            self._on_sim_wind(wind.speed, wind.direction, wind.direction_z, turbulence,
                              settings.profile, tick.gust_enu)
        # Publishing costs as much as a tick of the air: while nobody listens, what is latched for
        # those who come later is renewed once a second.
        with self._lock:
            heard = self._listeners.heard()[0]
            self._unheard = None if heard else tick
            if heard:
                self._sim_wind_pub.publish(self._sim_wind(tick))

    def _sim_wind(self, tick: AirTick) -> Any:
        settings, wind = self.air.settings, tick.sim_wind
        gust_e, gust_n, gust_up = tick.gust_enu
        return self._stamped(self._msg.SimWind(
            tick=tick.tick, speed=wind.speed, direction=wind.direction,
            direction_z=wind.direction_z, turbulence=settings.turbulence_in(tick.mean.speed),
            gust_e=gust_e, gust_n=gust_n, gust_up=gust_up, profile=settings.profile),
            time_of(tick.time_ns))

    def _publish(self, tick: AirTick) -> None:
        """Publish the air of a tick to those who listen."""
        heard = self._listeners.heard()[1:]
        if not any(heard):
            return
        stamp = time_of(tick.time_ns)
        mean, gust = tick.mean.enu, tick.gust_enu
        if heard[0]:
            self._gust_pub.publish(self._stamped(Vector3Stamped(vector=vector(gust)), stamp))
        if heard[1]:
            self._mean_pub.publish(self._stamped(Vector3Stamped(vector=vector(mean)), stamp))
        if heard[2]:
            wind = TwistWithCovarianceStamped()
            linear, angular = wind.twist.twist.linear, wind.twist.twist.angular
            linear.x, linear.y, linear.z = mean[0] + gust[0], mean[1] + gust[1], mean[2] + gust[2]
            angular.x, angular.y, angular.z = tick.rates
            self._wind_pub.publish(self._stamped(wind, stamp))
        if heard[3]:
            state = fill_state(self._msg.WindState(), self.air, tick, self._given.rate)
            state.scenario = self.scenario.file
            if self._origin is not None:
                (state.origin_latitude, state.origin_longitude,
                 state.origin_altitude) = self._origin
            self._state_pub.publish(self._stamped(state, stamp))

    def _stamped(self, message: Any, stamp: Time) -> Any:
        message.header.stamp = stamp
        message.header.frame_id = self._frame_id
        return message

    # ------------------------------------------------------------------ services

    def _on_get_history(self, request: Any, response: Any) -> Any:
        self._take_ekf_wind()
        response.ekf = self._ekf_wind
        try:
            with self._lock:
                columns = self.air.history.columns(request.seconds, request.step)
        except ValueError as error:
            response.success, response.message = False, str(error)
            return response
        for name, column in columns.items():
            setattr(response, name, array.array('d', column.tobytes()))
        t = columns['t']
        response.success = True
        response.message = (f'{len(t)} ticks from {t[0]:.2f} to {t[-1]:.2f} s' if len(t) else
                            f'nothing recorded yet: no tick on {self._clock_topic}')
        return response

    def _on_restart(self, _request: Trigger.Request, response: Trigger.Response) -> Any:
        self.restart()
        response.success = True
        response.message = f'the air begins anew from seed {self.air.settings.seed}'
        self.get_logger().info(response.message)
        return response

    def _on_discrete_gust(self, request: Any, response: Any) -> Any:
        try:
            with self._lock:
                gust, response.message = gust_asked_for(request, self.air)
                self.air.add_gust(gust)
        except ValueError as error:
            response.success, response.message = False, str(error)
            return response
        response.success, response.t = True, gust.start
        self.get_logger().info(response.message)
        return response

    def _on_sample(self, request: Any, response: Any) -> Any:
        axes = {'east': request.east, 'north': request.north, 'up': request.up}
        try:
            if len({len(axis) for axis in axes.values()}) > 1:
                lengths = ', '.join(f'{name} has {len(axis)}' for name, axis in axes.items())
                raise ValueError(f'{lengths} numbers; all three must have as many')
            places = np.column_stack(
                [np.asarray(axis, dtype=np.float64) for axis in axes.values()])
            with self._lock:
                sample = self.air.field_sample()
            started = time.monotonic()
            gust, wind = sample.at(places, np.asarray(request.t, dtype=np.float64),
                                   go_on=self.context.ok)
        except ValueError as error:
            response.success, response.message = False, str(error)
            return response
        for name, columns in (('gust', gust), ('wind', wind)):
            for axis, column in zip(('e', 'n', 'up'), columns.T, strict=True):
                setattr(response, f'{name}_{axis}', array.array('d', column.tobytes()))
        response.success = True
        response.message = (f'{len(places)} places of the field of seed '
                            f'{self.air.settings.seed}, in {time.monotonic() - started:.2f} s')
        return response

    def restart(self) -> None:
        """Begin the seed's air anew, now."""
        with self._lock:
            self.air.restart()

    # ------------------------------------------------------------------ watching

    def _on_second(self) -> None:
        self._take_odometry()
        if self._origin_source is not None:
            self._origin = self._origin_source()
        elif self._origin_sub is not None:
            for place in common.take_all(self._origin_sub):
                self._origin = place.point.x, place.point.y, place.point.z
        self.scenario.tell()
        with self._lock:
            latched, self._unheard = self._unheard, None
            if latched is not None:
                self._sim_wind_pub.publish(self._sim_wind(latched))
        if not self._disputed:
            self._said.discard('two clocks')
        if time.monotonic() - self._bad_odometry_at > PATIENCE_S:
            self._said.discard('bad odometry')
        findings = (self._clock_status(), self._odometry_status(), self._air_status())
        if self._diagnostics_pub.get_subscription_count():
            message = DiagnosticArray(status=[common.status(*finding) for finding in findings])
            message.header.stamp = self.get_clock().now().to_msg()
            self._diagnostics_pub.publish(message)

    def _clock_status(self) -> Finding:
        name = f'{self.get_fully_qualified_name()}: clock'
        topic, now, grid = self._clock_topic, time.monotonic(), self.air.grid
        if self._ticked_at is None:
            waited = now - self._started_at
            text = f'no sim time on {topic} for {waited:.0f} s'
            if self._clock_sub is not None and self.count_publishers(topic):
                text += (', though it has a publisher: the bridge has no vehicle yet, or the '
                         'simulation is paused')
            elif self._clock_sub is not None:
                text += (', and nobody publishes it. Start the bridge with publish_clock:=true, '
                         'or remap clock to the topic of your simulator')
            if waited >= PATIENCE_S:
                self._say_once('no clock', text)
                return Finding(name, DiagnosticStatus.ERROR, text)
            return Finding(name, DiagnosticStatus.WARN, f'waiting for {topic}')
        values = {'tick': grid.tick, 'rate (Hz)': f'{grid.rate:.2f}',
                  'winds given (Hz)': f'{self._given.rate:.2f}', 'missed ticks': grid.missed,
                  'origin (s)': grid.origin_ns * 1e-9}
        silent = now - self._ticked_at
        if silent >= PATIENCE_S:
            text = (f'sim time on {topic} stands still for {silent:.0f} s: the simulation is '
                    'paused, or its clock is lost; the wind stays as it is')
            self._say_once('clock stands', text)
            return Finding(name, DiagnosticStatus.WARN, text, values)
        if self._disputed:
            return Finding(name, DiagnosticStatus.ERROR, self._dispute, values)
        if 0.0 < grid.rate < 19.0:
            return Finding(
                name, DiagnosticStatus.WARN,
                f'the air changes at {grid.rate:.1f} Hz of sim time, not at 20: {topic} speaks '
                'too rarely', values)
        if 0.0 < self._given.rate < 19.0:
            return Finding(
                name, DiagnosticStatus.WARN,
                f'{self._given.rate:.1f} winds are given per sim second, not 20: this machine does '
                'not keep up; fly at a lower speedup, or listen to fewer topics', values)
        return Finding(name, DiagnosticStatus.OK, '20 ticks per sim second', values)

    def _odometry_status(self) -> Finding:
        name = f'{self.get_fully_qualified_name()}: odometry'
        topic, now = self._odom_topic, time.monotonic()
        values = {'refused': self._bad_odometry, 'last refusal': self._bad_odometry_text}
        since = self._odometry_at or self._started_at
        if now - since >= PATIENCE_S:
            what = 'no usable odometry' if self._odometry_at is None else 'no new odometry'
            counted = f' ({self.count_publishers(topic)} publishers)' if self._odom_sub else ''
            text = (f'{what} on {topic} for {now - since:.0f} s{counted}; gusts go on for '
                    + ('a vehicle standing on the ground' if self._odometry_at is None else
                       'the last height and speed'))
            if self._ticked_at is not None and now - self._ticked_at < PATIENCE_S:
                self._say_once('no odometry', text)
            return Finding(name, DiagnosticStatus.WARN, text, values)
        if self._odometry_at is None:
            return Finding(name, DiagnosticStatus.OK, f'waiting for {topic}', values)
        if now - self._bad_odometry_at < PATIENCE_S:
            return Finding(name, DiagnosticStatus.WARN,
                           f'{self._bad_odometry} messages refused, last: '
                           f'{self._bad_odometry_text}', values)
        return Finding(name, DiagnosticStatus.OK, 'height and airspeed known', values)

    def _air_status(self) -> Finding:
        name = f'{self.get_fully_qualified_name()}: air'
        settings, newest = self.air.settings, self.air.newest
        values: dict[str, object] = {'seed': settings.seed, 'restarts': self.air.restarts}
        if newest is not None:
            values |= {
                'gust u, v, w (m/s)': ', '.join(f'{x:.2f}' for x in newest.gust),
                'height (m)': f'{newest.height:.2f}', 'airspeed (m/s)': f'{newest.airspeed:.2f}'}
        topic = self._sim_wind_pub.topic_name
        now = time.monotonic()
        every = COUNT_TWINS_OF_FLEET_S if self._clock_sub is None else COUNT_TWINS_S
        if now - self._counted_at >= min(every, TWIN_PATIENCE_S / 2):
            self._counted_at = now
            self._others = self.count_publishers(topic) - 1
        if self._others < 1:
            self._alone_at = now
            self._said.discard('twin')
        elif now - self._alone_at > TWIN_PATIENCE_S:
            text = (f'another wind node publishes {topic} too: SITL is given now one wind, now the '
                    'other. End one of them, or give each vehicle its own namespace')
            self._say_once('twin', text)
            return Finding(name, DiagnosticStatus.ERROR, text, values)
        return Finding(name, DiagnosticStatus.OK, in_words(settings), values)

    def _say_once(self, key: str, text: str) -> None:
        if key not in self._said:
            self._said.add(key)
            self.get_logger().warning(text)


def main(args: Sequence[str] | None = None) -> int:
    """Run the node ``dryden_wind``."""
    return common.run(DrydenWindNode, args, rows=PARAMETERS, about=__doc__)


if __name__ == '__main__':
    raise SystemExit(main())
