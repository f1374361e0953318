"""The wind node on a scenario: what it publishes, what wins over what, what is refused."""

import itertools
import math

import pytest
import rclpy
from builtin_interfaces.msg import Time
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from support import wait_until
from support.bags import fly, write_bag

from dryden_wind_interfaces.srv import DiscreteGust
from dryden_wind_ros.gusts.air_settings import AirSettings
from dryden_wind_ros.nodes import common
from dryden_wind_ros.nodes.dryden_wind import DrydenWindNode

pytestmark = pytest.mark.ros2

TICK = 50_000_000

SCENARIO = """\
name: changing
wind: {speed: 4, from: 90, up: 0.5}
changes:
  - {at: 1, over: 2, speed: 8}
  - {at: 4, from: 180}
gusts:
  - {at: 6, amplitude: 5, duration: 0.5, direction: up}
"""


class Flown:
    """A wind node that is fed, and what it gave."""

    def __init__(self, **parameters):
        self.given = {}
        self.tick = -1
        self.node = DrydenWindNode(
            listen=False, namespace='flown', parameter_overrides=overrides(parameters))
        self.said = []
        logger = self.node.get_logger()
        self.node.scenario._say = lambda text, warn: (
            self.said.append((text, warn)), logger.debug(text))

    def fly(self, until, height=10.0):
        """Run the clock up to a time, s; return the tick there."""
        while self.tick < round(until / 0.05):
            self.tick += 1
            self.node.feed_odometry((self.tick - 1) * TICK, (0.0, 0.0, height), (0.0, 0.0, 0.0))
            self.node.feed_time(self.tick * TICK)
            self.given[self.tick] = self.node.air.newest
        self.node.scenario.tell()
        return self.node.air.newest

    def set(self, **values):
        return self.node.set_parameters_atomically(overrides(values))


def overrides(values):
    return [Parameter(name.replace('__', '.'), value=value) for name, value in values.items()]


@pytest.fixture
def make(ros_context):
    made = []

    def make(**parameters):
        made.append(Flown(**parameters))
        return made[-1]
    yield make
    for flown in made:
        flown.node.destroy_node()


@pytest.fixture
def ros_context():
    rclpy.init()
    yield
    rclpy.try_shutdown()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / 'changing.yaml'
    path.write_text(SCENARIO)
    return path


def test_sitl_is_given_the_scenario_also_without_turbulence(make, file):
    flown = make(scenario=str(file), gusts='off', mean_wind__speed=20.0)
    assert flown.fly(1.0).mean[:3] == (4.0, 90.0, 0.5)
    assert flown.fly(2.0).sim_wind.speed == pytest.approx(math.hypot(6.0, 0.5))
    assert flown.fly(5.0).sim_wind.direction == 180.0
    flown.fly(8.0)
    # The gust begins at 6 s, and its peak is given a tick before it is due.
    up = {tick: now.discrete_enu[2] for tick, now in flown.given.items()}
    assert max(up, key=up.get) == round(6.5 / 0.05) - 1
    assert max(up.values()) == pytest.approx(5.0)
    assert flown.given[129].sim_wind.direction_z == pytest.approx(
        math.degrees(math.atan2(5.5, 8.0)))
    assert [text for text, _ in flown.said if 'begins at 6.00 s' in text]


def test_what_is_set_by_hand_wins_from_then_on_and_the_log_says_so(make, file):
    flown = make(scenario=str(file), gusts='off', seed=3)
    flown.fly(2.0)
    # Also where the parameter had that value all the time.
    assert flown.set(mean_wind__speed=0.0).successful
    assert flown.fly(3.0).mean[:3] == (0.0, 90.0, 0.5)
    assert flown.fly(5.0).mean[:3] == (0.0, 180.0, 0.5)
    assert ('set by hand, in place of scenario changing from now on: mean_wind.speed 0', False) \
        in flown.said
    # Other parameters change nothing of it; the scenario again is the scenario as a whole.
    assert flown.set(scale=2.0).successful
    assert flown.fly(5.5).mean[:3] == (0.0, 180.0, 0.5)
    assert flown.set(scenario='').successful
    assert flown.fly(5.6).mean[:3] == (0.0, 270.0, 0.0)
    assert flown.set(scenario=str(file)).successful
    assert flown.fly(5.7).mean[:3] == (8.0, 180.0, 0.5)
    assert flown.fly(6.5).discrete_enu[2] == pytest.approx(5.0, rel=0.05)


def test_a_scenario_that_is_wrong_is_refused_with_every_line_and_nothing_changes(
        make, file, tmp_path):
    bad = tmp_path / 'bad.yaml'
    bad.write_text('wind: {speed: .nan}\nchanges:\n- {at: 3, sped: 4}\n')
    flown = make(scenario=str(file), gusts='off')
    flown.fly(2.0)
    answer = flown.set(scenario=str(bad), mean_wind__speed=9.0)
    assert not answer.successful
    for text in (str(bad), 'line 1: wind: speed is .nan', 'line 3: change: sped is unknown'):
        assert text in answer.reason
    assert flown.fly(3.0).mean[:3] == (8.0, 90.0, 0.5)
    assert flown.node.parameters['scenario'] == str(file)
    high = tmp_path / 'high.yaml'
    high.write_text('wind: {speed: 5}\nprofile: {power: {exponent: 0.2}}\n')
    assert "profile is 'sitl'" in flown.set(scenario=str(high), profile='sitl').reason
    assert flown.set(scenario=str(high)).successful
    open_speed = tmp_path / 'open.yaml'
    open_speed.write_text('profile: {power: {exponent: 0.2}}\n')
    assert 'would make 79.2 m/s' in flown.set(
        scenario=str(open_speed), mean_wind__speed=40.0).reason
    assert "profile is 'sitl'" in flown.set(profile='sitl').reason
    assert flown.fly(3.5, height=40.0).mean.speed == pytest.approx(5.0 * 4.0**0.2)
    with pytest.raises(common.BadParameter, match=r'scenario: .*bad.yaml: line 1'):
        make(scenario=str(bad))


def test_times_count_from_arming_and_a_reboot_forgets_it(make, tmp_path):
    path = tmp_path / 'armed.yaml'
    path.write_text('clock: arming\nwind: {speed: 1}\nchanges: [{at: 1, over: 1, speed: 3}]\n')
    flown = make(scenario=str(path), gusts='off')
    assert flown.fly(5.0).mean.speed == 1.0
    flown.node.feed_armed(5 * 10**9)
    assert flown.fly(6.5).mean.speed == pytest.approx(2.0)
    flown.node.feed_time(0)
    assert flown.node.air.newest.mean.speed == 1.0
    assert flown.node.air.armed_at is None


def test_a_bag_is_flown_again_and_its_end_is_told_once(make, tmp_path):
    folder = write_bag(tmp_path / 'bag', fly(AirSettings(
        mean_speed=7.0, mean_from_deg=200.0, mean_up=0.4, seed=5), 3.0))
    flown = make(scenario=str(folder), seed=5)
    again = list(fly(AirSettings(mean_speed=7.0, mean_from_deg=200.0, mean_up=0.4, seed=5), 3.0))
    flown.fly(3.0)
    for sample in again:
        if sample.topic == '/wind/state':
            now, then = flown.given[sample.message.tick], sample.message
            assert now.mean_enu == pytest.approx((then.mean.x, then.mean.y, then.mean.z))
            assert now.gust == pytest.approx((then.u, then.v, then.w), abs=1e-9)
    assert flown.said == []
    assert flown.fly(9.0).mean_enu[2] == 0.4
    assert [warn for text, warn in flown.said if 'ends at 3.00 s' in text] == [True]


def test_topics_and_services(ros_context, file):
    node = DrydenWindNode(namespace='asked', parameter_overrides=overrides(
        {'scenario': str(file), 'gusts': 'off'}))
    user = rclpy.create_node('user', namespace='asked')
    executor = SingleThreadedExecutor()
    for one in (node, user):
        executor.add_node(one)

    def until(condition, what):
        def met():
            executor.spin_once(timeout_sec=0.01)
            return condition()
        return wait_until(met, 20, what, interval=0.0)

    try:
        client = user.create_client(DiscreteGust, 'wind/discrete_gust')
        until(client.service_is_ready, 'wind/discrete_gust')

        def ask(**request):
            future = client.call_async(DiscreteGust.Request(**request))
            return until(lambda: future.done() and future.result(), 'an answer')

        assert 'the air has not begun' in ask(amplitude=3.0, duration=1.0).message
        node.feed_time(10 * 10**9)
        refused = ask(length=500.0)
        assert not refused.success
        assert 'length is 500 m' in refused.message
        assert 'delay is -1' in ask(amplitude=3.0, duration=1.0, delay=-1.0).message
        taken = ask(shape='ramp', amplitude=3.0, duration=0.2, direction='azimuth', azimuth=90.0,
                    delay=1.0)
        assert taken.success
        assert taken.t == pytest.approx(11.0)
        assert 'begins at 11.00 s' in taken.message
        for tick in range(201, 231):
            node.feed_time(tick * TICK)
        assert node.air.newest.discrete_enu == pytest.approx((-3.0, 0.0, 0.0), abs=1e-9)

        # Arming comes by a topic, and is known before the tick after it is stepped.
        file.write_text('clock: arming\nwind: {speed: 2}\nchanges: [{at: 1, speed: 5}]\n')
        for path in ('', str(file)):
            assert node.set_parameters_atomically(overrides({'scenario': path})).successful
        armed = user.create_publisher(Time, 'armed_at', common.LATCHED_QOS)
        clock = user.create_publisher(Clock, 'clock', common.STREAM_QOS)
        until(lambda: armed.get_subscription_count() and clock.get_subscription_count(),
              'the node to listen')
        armed.publish(Time(sec=11))
        ticks = itertools.count(231)

        def blows():
            seconds, nanoseconds = divmod(next(ticks) * TICK, 10**9)
            clock.publish(Clock(clock=Time(sec=seconds, nanosec=nanoseconds)))
            executor.spin_once(timeout_sec=0.02)
            return node.air.newest.mean.speed == 5.0
        until(blows, 'the wind from 1 s after arming on')
        assert node.air.armed_at == 11.0
    finally:
        executor.shutdown()
        node.destroy_node()
        user.destroy_node()
