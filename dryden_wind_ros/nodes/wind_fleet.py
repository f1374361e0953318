"""Many vehicles in one process: a wind node and a MAVLink bridge for each, in its own namespace.

Data flow::

    SITL i --MAVLink--> link thread --tick, odometry--> wind node i ---wind---> bridge i --> SITL i
                                                          \\--> topics, for those who listen

The nodes are the ones a single vehicle has, with the same topics, services and parameters, but what
they tell each other stays inside the process. One thread serves all links and steps the air. The
other looks after services and timers; see `dryden_wind_ros.nodes.poller`.

With ``clock`` set to ``shared``, one clock topic (Gazebo's) drives all vehicles instead of each
vehicle's own boot clock.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.parameter import Parameter as RclpyParameter
from rosgraph_msgs.msg import Clock as ClockMessage
from std_srvs.srv import Trigger

from dryden_wind_ros import ending
from dryden_wind_ros.gusts.shared_air import SharedAir
from dryden_wind_ros.nodes import common, fast_dds, wind_parameters
from dryden_wind_ros.nodes import mavlink_bridge as bridge_module
from dryden_wind_ros.nodes.common import Parameter
from dryden_wind_ros.nodes.dryden_wind import DrydenWindNode
from dryden_wind_ros.nodes.fleet_parts import Parts, Summary, in_words
from dryden_wind_ros.nodes.mavlink_bridge import MavlinkBridge
from dryden_wind_ros.nodes.poller import Poller
from dryden_wind_ros.sitl import fleet
from dryden_wind_ros.sitl.fleet import Vehicle
from dryden_wind_ros.sitl.frame import Frame, parse_origin
from dryden_wind_ros.sitl.loop import LinkLoop
from dryden_wind_ros.sitl.session import END_WITHIN_S

_WIND_PARAMETERS = tuple(
    row for row in wind_parameters.PARAMETERS
    if row.name not in ('seed', 'frame_id', 'ground_height'))

PARAMETERS = (
    Parameter('vehicles', 2, "How many vehicles, by SITL's rules for ports; not used with "
              'vehicles_file.', low=1, high=fleet.MAX_VEHICLES, read_only=True),
    Parameter('vehicles_file', '', 'YAML list of vehicles: name, instance, system_id, connection, '
              'seed, wind.', read_only=True),
    Parameter('first_instance', 0, 'SITL instance of the first vehicle.', low=0, high=999,
              read_only=True),
    Parameter('seed', 1, "Seed of the fleet, from which each vehicle's own is derived.",
              low=0, high=wind_parameters.MAX_SEED, read_only=True),
    Parameter('same_air', False, "Whether all vehicles meet the same draws: the fleet's seed.",
              read_only=True),
    Parameter('part', 0, 'Which part of a fleet that is dealt to several processes this one is, '
              'from 0; the first is the one to ask.', low=0, high=fleet.MAX_VEHICLES - 1,
              read_only=True),
    Parameter('parts', 1, 'How many processes the fleet is dealt to.', low=1,
              high=fleet.MAX_VEHICLES, read_only=True),
    Parameter('clock', 'vehicle', "'vehicle': each vehicle's own boot clock, over its link; "
              "'shared': one clock topic for all.", choices=('vehicle', 'shared'), read_only=True),
    Parameter('origin', '',
              'Zero of positions for all vehicles: latitude, longitude (degrees) and altitude (m '
              "above mean sea level). '': the origin of EKF3 of the first vehicle heard, with "
              'heights above the home of each.', read_only=True),
    Parameter('publish_clock', True, "Whether each vehicle's clock is published in its namespace.",
              read_only=True),
    *_WIND_PARAMETERS,
)

_KNOWN = frozenset(
    row.name for row in (*PARAMETERS, *wind_parameters.PARAMETERS, *bridge_module.PARAMETERS))

POLL_S = 0.5
"""How often timers are looked after, s."""

MANY, ROUND_S = 15, 0.025
"""So many links are read together, every so many s at speedup 1. A vehicle's packets come 60 times
a second; with a wake-up for each a fleet of a hundred takes a tenth more CPU time."""

SHARED_POLL_S = 0.2
"""How often timers and services are looked after beside a shared clock, s."""

FIRST_WITHIN_S = 20.0
"""How long another part waits for the first one's word about the common air of a field, s."""

SAY_S = 3.0
"""How often the end tells how far it is, s."""

CLOCK_S = 0.005
"""How often a shared clock is read, s."""


class Pair:
    """The two nodes of one vehicle, wired to each other."""

    def __init__(self, vehicle: Vehicle, loop: LinkLoop, parameters: common.ParameterTable,
                 shared_clock: str, air: SharedAir, rank: int, frame: Frame) -> None:
        settings = parameters.values
        own_clock = settings['clock'] == 'vehicle'
        # What was given to the fleet wins over the params file of the nodes; the rest leaves it be.
        wind = {row.name: settings[row.name] for row in _WIND_PARAMETERS
                if row.name in parameters.given}
        wind |= {'seed': vehicle.seed, **vehicle.wind}
        self.wind = DrydenWindNode(
            listen=False, on_sim_wind=lambda *fields: self.bridge.take_wind(*fields),
            ekf_wind=lambda: self.bridge.ekf_wind(),
            clock_source='the link' if own_clock else shared_clock, shared=air, rank=rank,
            field_seed=None if vehicle.has_own_seed else settings['seed'],
            origin=lambda: None if frame.origin is None else frame.origin.degrees,
            also_known=_KNOWN, namespace=vehicle.name, parameter_overrides=_overrides(wind))
        try:
            found, meant = self.wind.get_fully_qualified_name(), f'/{vehicle.name}/dryden_wind'
            if found != meant:
                # __ns and __node hold for every node of a process: all would be the same one.
                raise common.BadParameter(
                    f'its wind node would be {found} instead of {meant}: __ns and __node cannot '
                    'be remapped for a fleet; name the vehicles in vehicles_file, such as '
                    'fleet_a/scout')
            self.bridge = MavlinkBridge(
                loop=loop, on_tick=self.wind.feed_time if own_clock else None,
                on_sample=lambda sample: self.wind.feed_odometry(
                    sample.time_ms * 1_000_000, sample.position, sample.velocity_enu, sample.true,
                    lambda: sample.orientation),
                frame=frame, turns=lambda: self.wind.air.settings.span > 0.0,
                on_armed=self.wind.feed_armed if own_clock else self.wind.feed_armed_now,
                also_known=_KNOWN, namespace=vehicle.name, parameter_overrides=_overrides({
                    'connection': vehicle.connection, 'system_id': vehicle.system_id,
                    'publish_clock': own_clock and settings['publish_clock']}))
        except BaseException:
            self.wind.destroy_node()
            raise

    def destroy_services(self) -> None:
        """Destroy the services of both nodes: nobody is answered any more."""
        for node in (self.bridge, self.wind):
            for service in list(node.services):
                node.destroy_service(service)

    def destroy(self) -> None:
        """Destroy both nodes."""
        self.bridge.destroy_node()
        self.wind.destroy_node()


class WindFleet(Node):
    """The node of the fleet as a whole: its parameters change the wind of all vehicles at once.

    Raises
    ------
    common.BadParameter
        If a parameter or a vehicle is not allowed.
    """

    def __init__(self, **kwargs: Any) -> None:
        common.interfaces()
        super().__init__(kwargs.pop('node_name', 'wind_fleet'), **kwargs)
        self.pairs: list[Pair] = []
        self._following = False
        self.parameters = common.ParameterTable(
            self, PARAMETERS, judge=self._judge, apply=self._on_parameters, also_known=_KNOWN)
        values = self.parameters.values
        if values['part'] >= values['parts']:
            raise common.BadParameter(f'part is {values["part"]}; of {values["parts"]} parts the '
                                      f'last is {values["parts"] - 1}')
        try:
            arguments = values['seed'], values['same_air'], values['first_instance']
            if values['vehicles_file']:
                vehicles = fleet.load(Path(values['vehicles_file']).expanduser(), *arguments)
            else:
                vehicles = fleet.numbered(values['vehicles'], *arguments)
        except fleet.FleetError as error:
            raise common.BadParameter(str(error)) from None
        whole = len(vehicles)
        vehicles = fleet.deal(vehicles, values['parts'])[values['part']]
        if not vehicles:
            raise common.BadParameter(
                f'parts is {values["parts"]}; there is no vehicle for part {values["part"]}: '
                f'{whole} vehicles, and those on one connection stay in one process')
        self._parts = Parts(self, values['part'], values['parts'])
        #: What could not be put back at the end, a line a vehicle.
        self.left: list[str] = []
        try:
            self.frame = Frame(parse_origin(values['origin']), shared=whole > 1,
                               follows=values['part'] > 0)
        except ValueError as error:
            raise common.BadParameter(str(error)) from None
        self.air = SharedAir(own_clocks=values['clock'] == 'vehicle', follows=values['part'] > 0)
        self._applied = {row.name: values[row.name] for row in _WIND_PARAMETERS}
        self.loop = LinkLoop(self._on_error)
        try:
            for number, vehicle in enumerate(vehicles, 1):
                try:
                    self.pairs.append(
                        Pair(vehicle, self.loop, self.parameters,
                             self.resolve_topic_name('clock'), self.air, number - 1, self.frame))
                except common.BadParameter as error:
                    raise common.BadParameter(f'vehicle {vehicle.name}: {error}') from None
                if number % 10 == 0 or number == len(vehicles):
                    self.get_logger().info(f'{number} of {len(vehicles)} vehicles made')
        except BaseException:
            self._destroy_pairs()
            raise
        for pair, vehicle in zip(self.pairs, vehicles, strict=True):
            self.get_logger().info(
                f'/{vehicle.name}: {vehicle.connection}, '
                + (f'system {vehicle.system_id}, ' if vehicle.system_id else '')
                + f'seed {pair.wind.air.settings.seed}')
        if self._parts.first:
            self.create_service(Trigger, 'wind/restart', self._on_restart)
            self._parts.tell(self._applied)
        self._clock_sub = None
        if values['clock'] == 'shared':
            self._clock_sub = self.create_subscription(
                ClockMessage, 'clock', lambda message: None, common.CLOCK_QOS,
                callback_group=common.Polled())
        #: When the links are served at the latest; a field's first part tells where the air is.
        self._start_by = time.monotonic() + FIRST_WITHIN_S
        self._running = False
        self._look_at_parts()

    # ------------------------------------------------------------------ all at once

    def _judge(self, values: Mapping[str, Any]) -> None:
        """Refuse for all vehicles what one of them cannot take."""
        if values['part'] and self.pairs and not self._following:
            raise ValueError('this is one part of a fleet in several processes; set parameters '
                             'on /wind_fleet, which hands them to all')
        changed = {row.name: values[row.name] for row in _WIND_PARAMETERS
                   if self.pairs and values[row.name] != self._applied[row.name]}
        for pair in self.pairs if changed else ():
            whole = {**pair.wind.parameters.values, **changed}
            try:
                wind_parameters.settings_of(whole)
                if {'scenario', 'profile'} & set(changed):
                    pair.wind.scenario.judge(whole)
            except ValueError as error:
                raise ValueError(f'{pair.wind.get_namespace()}: {error}') from None

    def _on_parameters(self, values: Mapping[str, Any]) -> None:
        # Also what had that value all the time: set by hand, it wins over a scenario.
        changed = {name: values[name] for name, old in self._applied.items()
                   if values[name] != old or name in self.parameters.set_now}
        self._applied |= changed
        refused = []
        for pair in self.pairs:
            result: SetParametersResult = pair.wind.set_parameters_atomically(
                list(_overrides(changed)))
            if not result.successful:
                refused.append(f'{pair.wind.get_namespace()}: {result.reason}')
        for text in refused:
            self.get_logger().error(text)
        if self._parts.first:
            self._parts.tell(self._applied, changed)

    def _look_at_parts(self) -> None:
        """Tell the other parts of the fleet, or do what the first one tells."""
        if self._parts.first:
            self._parts.tell_air(self.air, self.frame)
        else:
            self._follow()
        if not self._running and (self._parts.first or self._applied['gusts'] != 'field'
                                  or self._parts.hear_air(self.air, self.frame)
                                  or time.monotonic() >= self._start_by):
            self._running = True
            self.loop.start()
        elif self._running:
            self._parts.hear_air(self.air, self.frame)

    def _follow(self) -> None:
        """Do what the first part was asked for."""
        heard = self._parts.heard()
        if heard is None:
            return
        settings, by_hand, restart = heard
        news = {name: value for name, value in settings.items() if name in self._applied
                and (name in by_hand or value != self._applied[name])}
        if news:
            self._following = True
            try:
                result = self.set_parameters_atomically(_overrides(news))
            finally:
                self._following = False
            if not result.successful:
                self.get_logger().error(f'settings of /wind_fleet were not taken: {result.reason}')
        if restart:
            self._restart()

    def _restart(self) -> None:
        for pair in self.pairs:
            pair.wind.restart()

    def _on_restart(self, _request: Trigger.Request, response: Trigger.Response) -> Any:
        self._restart()
        self._parts.tell(self._applied, restart=True)
        response.success = True
        others = '' if self._parts.parts == 1 else ', and of those in the other processes,'
        response.message = f'the air of {len(self.pairs)} vehicles{others} begins anew'
        return response

    def _on_error(self, error: BaseException) -> None:
        if self.context.ok():
            self.get_logger().error(f'{type(error).__name__} while handling a message: {error}')

    # ------------------------------------------------------------------ running

    def spin(self) -> None:
        """Look after services, timers and the shared clock until the program is told to end."""
        poller = Poller((self, *(n for pair in self.pairs for n in (pair.wind, pair.bridge))),
                        self._parts.waking)
        if self._clock_sub is None:
            ending.when_told(poller.wake)
            while not ending.told():
                poller.poll(POLL_S)
                self._look_at_parts()
                self._set_round()
            return
        next_poll = time.monotonic()
        while not ending.told():
            self._take_clock()
            if time.monotonic() >= next_poll:
                poller.poll()
                self._look_at_parts()
                self._set_round()
                next_poll = time.monotonic() + SHARED_POLL_S
            time.sleep(CLOCK_S)

    def _set_round(self) -> None:
        """Read many links together, as long as that makes no wind late."""
        speedups = [pair.bridge.session.link.speedup for pair in self.pairs]
        known = [speedup for speedup in speedups if speedup > 0.0]
        self.loop.round_s = ROUND_S / max(1.0, *known) \
            if len(speedups) >= MANY and len(known) == len(speedups) else 0.0

    def _take_clock(self) -> None:
        assert self._clock_sub is not None
        # Stepping the air is cheap where no new tick is reached.
        for message in common.take_all(self._clock_sub):
            time_ns = message.clock.sec * 1_000_000_000 + message.clock.nanosec
            for pair in self.pairs:
                pair.wind.feed_time(time_ns)

    def close(self) -> None:
        """Put all vehicles back as they were found, and end the links."""
        self.loop.round_s = 0.0
        bridges = [pair.bridge for pair in self.pairs]
        for bridge in bridges:
            bridge.begin_close()
        # Another name has no /rosout publisher, and so none that complains of being shut down.
        logger = get_logger('wind_fleet.stopping')
        deadline = time.monotonic() + END_WITHIN_S
        say_at = time.monotonic() + SAY_S
        while time.monotonic() < deadline:
            open_bridges = sum(not bridge.closed for bridge in bridges)
            if not open_bridges:
                break
            if time.monotonic() >= say_at:
                say_at += SAY_S
                logger.info(f'putting back: {len(bridges) - open_bridges} of {len(bridges)} '
                            'vehicles are done')
            time.sleep(0.02)
        self.loop.stop()
        self.left = [f'{bridge.get_namespace()}: {bridge.left}' for bridge in bridges
                     if bridge.left]
        if self.left:
            logger.error(f'{len(self.left)} of {len(bridges)} vehicles could not be put back: '
                         + '; '.join(self.left))
        if self._parts.parts > 1:
            summaries = self._parts.end(Summary(self._parts.part, len(bridges), tuple(self.left)))
            if self._parts.first:
                logger.info(in_words(summaries, self._parts.parts))

    def destroy_node(self) -> None:
        """Destroy the nodes of all vehicles, and this one."""
        self._destroy_pairs()
        super().destroy_node()

    def _destroy_pairs(self) -> None:
        # Fast DDS looks through all readers of the process, nearly all of them of services, at
        # whatever is destroyed: with those gone first, a fleet ends in three quarters of the time.
        for pair in self.pairs:
            pair.destroy_services()
        for pair in self.pairs:
            pair.destroy()
        self.pairs.clear()


def _overrides(values: Mapping[str, Any]) -> list[RclpyParameter]:
    return [RclpyParameter(name, value=value) for name, value in values.items()]


def _spin(node: Node) -> None:
    assert isinstance(node, WindFleet)
    # What was made stays until the end. With fifty vehicles, looking through it for garbage takes
    # 40 ms each time, in which no wind is sent.
    gc.freeze()
    node.spin()


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; the exit code is 1 if anything could not be put back."""
    left: list[str] = []

    def close(node: Node) -> None:
        assert isinstance(node, WindFleet)
        node.close()
        left.extend(node.left)

    fast_dds.save_memory()
    code = common.run(WindFleet, args, stop=close, spin=_spin, rows=PARAMETERS, about=__doc__)
    return code or int(bool(left))


if __name__ == '__main__':
    sys.exit(main())
