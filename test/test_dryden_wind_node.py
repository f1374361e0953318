"""The wind node, run for real: clock and odometry in, wind out."""

import math
import os
import random
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import rclpy
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import TwistWithCovarianceStamped, Vector3Stamped
from nav_msgs.msg import Odometry
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from std_srvs.srv import Trigger
from support import wait_until

from dryden_wind_interfaces.msg import EkfWind, SimWind, WindState
from dryden_wind_interfaces.srv import GetWindHistory, SampleWind
from dryden_wind_ros.gusts.dryden import low_altitude_scales
from dryden_wind_ros.gusts.field import TurbulenceField
from dryden_wind_ros.nodes import common, dryden_wind
from dryden_wind_ros.nodes.dryden_wind import DrydenWindNode

pytestmark = pytest.mark.ros2

TICK = 50_000_000


def stamp(ns):
    return Time(sec=ns // 10**9, nanosec=ns % 10**9)


class Bench:
    """A wind node and a user who drives and watches it, spun by one thread."""

    def __init__(self, **parameters):
        self.wind = DrydenWindNode(
            namespace='bench',
            parameter_overrides=[Parameter(k.replace('__', '.'), value=v)
                                 for k, v in parameters.items()])
        self.user = rclpy.create_node('user', namespace='bench')
        self.heard = {}
        self.clock_pub = self.user.create_publisher(Clock, 'clock', common.STREAM_QOS)
        self.odom_pub = self.user.create_publisher(Odometry, 'odom', common.STREAM_QOS)
        self.ekf_pub = self.user.create_publisher(EkfWind, 'ekf_wind', common.LATCHED_QOS)
        for name, kind in (('wind/gust', Vector3Stamped), ('wind/mean', Vector3Stamped),
                           ('wind', TwistWithCovarianceStamped), ('wind/state', WindState),
                           ('sim_wind', SimWind), ('/diagnostics', DiagnosticArray)):
            self.heard[name] = []
            self.user.create_subscription(
                kind, name, self.heard[name].append,
                common.LATCHED_QOS if name == 'sim_wind' else common.STREAM_QOS)
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.wind)
        self.executor.add_node(self.user)
        self.thread = threading.Thread(target=self.executor.spin)
        self.thread.start()
        wait_until(lambda: self.clock_pub.get_subscription_count() == 1
                   and self.odom_pub.get_subscription_count() == 1
                   and len(self.user.get_publishers_info_by_topic('/bench/wind/state')) == 1
                   and self.wind.count_subscribers('/bench/wind/state') == 1
                   and self.wind._state_pub.get_subscription_count() == 1,
                   10, 'the wind node and its user to find each other')

    def close(self):
        self.executor.shutdown()
        self.thread.join(10)
        self.wind.destroy_node()
        self.user.destroy_node()

    def clock(self, tick):
        """Send a tick and return the state published for it."""
        before = len(self.heard['wind/state'])
        self.clock_pub.publish(Clock(clock=stamp(tick * TICK)))
        wait_until(lambda: len(self.heard['wind/state']) > before, 5, f'the air of tick {tick}',
                   interval=0.0005)
        return self.heard['wind/state'][-1]

    def odom(self, tick, height=10.0, velocity=(0.0, 0.0, 0.0), orientation=(0.0, 0.0, 0.0, 1.0)):
        message = Odometry()
        message.header.stamp = stamp(tick * TICK)
        message.pose.pose.position.z = height
        q = message.pose.pose.orientation
        q.x, q.y, q.z, q.w = orientation
        v = message.twist.twist.linear
        v.x, v.y, v.z = velocity
        known = len(self.wind.air._odometry), self.wind._bad_odometry
        self.odom_pub.publish(message)
        wait_until(lambda: (len(self.wind.air._odometry), self.wind._bad_odometry) != known,
                   5, 'the odometry to arrive', interval=0.0005)

    def call(self, kind, name, request):
        client = self.user.create_client(kind, name)
        assert client.wait_for_service(10), f'service {name} did not appear'
        future = client.call_async(request)
        wait_until(future.done, 10, f'an answer of {name}')
        return future.result()

    def set(self, **values):
        return self.call(
            SetParametersAtomically, 'dryden_wind/set_parameters_atomically',
            SetParametersAtomically.Request(parameters=[
                Parameter(k.replace('__', '.'), value=v).to_parameter_msg()
                for k, v in values.items()])).result

    def diagnostics(self, part):
        """Return the newest entry whose name ends with `part`."""
        entries = [s for a in self.heard['/diagnostics'] for s in a.status
                   if s.name == f'/bench/dryden_wind: {part}']
        return entries[-1] if entries else None


@pytest.fixture
def ros():
    rclpy.init()
    yield
    rclpy.try_shutdown()


@pytest.fixture
def make_bench(ros):
    made = []

    def make(**parameters):
        made.append(Bench(**parameters))
        return made[-1]
    yield make
    for bench in made:
        bench.close()


def test_a_west_wind_blows_towards_the_east_with_the_seeds_gusts_on_top(make_bench):
    bench = make_bench(mean_wind__speed=8.0, mean_wind__from_direction=270.0, seed=7,
                       frame_id='odom')
    bench.odom(0)
    for tick in range(60):
        state = bench.clock(tick)
    wait_until(lambda: all(len(bench.heard[n]) == 60 for n in ('wind/gust', 'wind/mean', 'wind')),
               5, '60 messages on each wind topic')
    mean, gust = bench.heard['wind/mean'][-1], bench.heard['wind/gust'][-1]
    assert (mean.vector.x, mean.vector.y) == pytest.approx((8.0, 0.0), abs=1e-12)
    # u is along the mean wind (east), v to its right (south), w up
    assert (gust.vector.x, gust.vector.y, gust.vector.z) == pytest.approx(
        (state.u, -state.v, state.w), abs=1e-12)
    total = bench.heard['wind'][-1].twist.twist.linear
    assert (total.x, total.y, total.z) == pytest.approx((8.0 + state.u, -state.v, state.w))
    assert mean.header.frame_id == gust.header.frame_id == state.header.frame_id == 'odom'
    assert mean.header.stamp == stamp(59 * TICK)
    sent = bench.heard['sim_wind'][-1]
    assert sent.speed == pytest.approx(
        math.sqrt((8 + state.u)**2 + state.v**2 + state.w**2))
    assert (sent.turbulence, sent.profile) == (0.0, 'uniform')
    # The first tick after the start is sigma sqrt(1 - phi^2) times the first draw of the seed.
    first, scales = bench.heard['wind/state'][1], low_altitude_scales(10.0, 8.0)
    phi = math.exp(-0.05 * 8.0 / scales.length_u)
    draw = random.Random(7).gauss(0.0, 1.0)
    assert first.u == pytest.approx(scales.sigma_u * math.sqrt(1 - phi**2) * draw, rel=1e-9)
    assert (first.sigma_u, first.length_u) == pytest.approx((scales.sigma_u, scales.length_u))
    assert (first.seed, first.method, first.tick, first.draws) == (7, 'exact', 1, 1)


def test_a_refused_parameter_names_value_and_range_and_changes_nothing(make_bench):
    bench = make_bench(mean_wind__speed=8.0)
    for values, named in (
            ({'mean_wind__speed': 75.0, 'seed': 9}, ['mean_wind.speed', '75', '60']),
            ({'mean_wind__speed': math.nan}, ['mean_wind.speed', 'nan', '60']),
            ({'gusts': 'strong'}, ['gusts', 'strong', 'off, dryden, field, sitl']),
            ({'method': 'rk4'}, ['method', 'rk4', 'exact, euler']),
            ({'seed': 1.5}, ['seed', '1.5', 'whole number']),
            ({'seed': -1}, ['seed', '-1', '0']),
            ({'scale': 0.0}, ['scale', '0', '5']),
            ({'mean_wind__up': 'a lot'}, ['mean_wind.up', 'a lot', '-20'])):
        result = bench.set(**values)
        assert not result.successful
        for word in named:
            assert word in result.reason, result.reason
    state = bench.clock(1)
    assert (state.mean_wind_speed, state.seed, state.gusts) == (8.0, 1, 'dryden')


def test_wind_changes_in_flight_keep_the_air_and_a_new_seed_restarts_it(make_bench):
    bench = make_bench(mean_wind__speed=8.0)
    for tick in range(100):
        before = bench.clock(tick)
    assert bench.set(mean_wind__speed=9, mean_wind__from_direction=90.0).successful  # 9: an int
    state = bench.clock(100)
    assert state.mean.x == pytest.approx(-9.0)
    assert state.restarts == 0
    assert abs(state.u - before.u) < 1.0
    assert bench.set(seed=5).successful
    state = bench.clock(101)
    assert (state.restarts, state.seed) == (1, 5)
    draws = random.Random(5)
    draw = [draws.gauss(0.0, 1.0) for _ in range(3 * 101)][-3]
    assert math.copysign(1.0, state.u) == math.copysign(1.0, draw)
    assert abs(state.u) < 1.0


def test_off_sends_a_steady_wind_and_sitl_hands_turbulence_over(make_bench):
    bench = make_bench(mean_wind__speed=5.0, mean_wind__from_direction=0.0, gusts='off')
    for tick in range(45):
        state = bench.clock(tick)
    assert (state.u, state.v, state.w) == (0.0, 0.0, 0.0)
    # Sent at once and then repeated once a second (20 ticks) for those who missed it.
    assert [m.tick for m in bench.heard['sim_wind']] == [0, 20, 40]
    assert bench.set(gusts='sitl', scale=2.0).successful
    bench.clock(45)
    wait_until(lambda: bench.heard['sim_wind'][-1].tick == 45, 5, 'the changed wind at once')
    sent = bench.heard['sim_wind'][-1]
    assert (sent.speed, sent.direction, sent.turbulence) == pytest.approx((5.0, 0.0, 1.0))


def test_history_answers_by_column_and_refuses_bad_requests(make_bench):
    bench = make_bench(mean_wind__speed=8.0)
    empty = bench.call(GetWindHistory, 'wind/get_history', GetWindHistory.Request())
    assert empty.success
    assert 'nothing recorded' in empty.message
    assert math.isnan(empty.ekf.wind_e)
    bench.ekf_pub.publish(EkfWind(phase=EkfWind.LEARNING, phase_name='learning', wind_e=7.5))
    states = [bench.clock(tick) for tick in range(300)]

    def ask():
        return bench.call(GetWindHistory, 'wind/get_history', GetWindHistory.Request(seconds=10.0))
    wait_until(lambda: ask().ekf.phase == EkfWind.LEARNING, 5, 'the EKF wind in the answer')
    answer = ask()
    assert answer.success
    assert list(answer.t) == pytest.approx([s.t for s in states[-200:]])
    assert list(answer.u) == [s.u for s in states[-200:]]
    assert list(answer.sim_wind_spd) == [s.sim_wind_spd for s in states[-200:]]
    assert list(answer.gust_n) == pytest.approx([s.gust.y for s in states[-200:]])
    assert answer.ekf.wind_e == 7.5
    coarse = bench.call(GetWindHistory, 'wind/get_history', GetWindHistory.Request(step=1.0))
    assert np.diff(coarse.t) == pytest.approx(1.0)
    for seconds, step, named in ((-1.0, 0.0, 'seconds is -1'), (math.nan, 0.0, 'seconds is nan'),
                                 (120.5, 0.0, 'seconds is 120.5'), (0.0, -1.0, 'step is -1')):
        bad = bench.call(GetWindHistory, 'wind/get_history',
                         GetWindHistory.Request(seconds=seconds, step=step))
        assert not bad.success
        assert named in bad.message
        assert len(bad.t) == 0
    assert len(bench.call(GetWindHistory, 'wind/get_history', GetWindHistory.Request()).t) == 300


def test_restart_begins_the_seed_anew_and_keeps_the_record(make_bench):
    bench = make_bench(mean_wind__speed=8.0)
    for tick in range(50):
        bench.clock(tick)
    answer = bench.call(Trigger, 'wind/restart', Trigger.Request())
    assert answer.success
    state = bench.clock(50)
    assert state.restarts == 1
    assert abs(state.u) < 1.0
    history = bench.call(GetWindHistory, 'wind/get_history', GetWindHistory.Request())
    assert len(history.t) == 51


def test_time_that_goes_back_begins_the_air_anew(make_bench):
    bench = make_bench(mean_wind__speed=8.0, seed=3)
    first = [bench.clock(tick).u for tick in range(40)]
    again = [bench.clock(tick).u for tick in range(40)]
    assert again == first
    history = bench.call(GetWindHistory, 'wind/get_history', GetWindHistory.Request())
    assert len(history.t) == 40


def test_two_clocks_on_one_topic_are_said_once_and_in_the_diagnostics(
        make_bench, capfd, monkeypatch):
    monkeypatch.setattr(dryden_wind, 'PATIENCE_S', 600.0)  # however slowly the clocks speak here
    bench = make_bench(mean_wind__speed=8.0)
    for tick in range(20, 60):
        bench.clock(tick)
        bench.clock(tick + 20_000)
    status = wait_until(
        lambda: (bench.diagnostics('clock') or 0) and bench.diagnostics('clock').level == b'\x02'
        and bench.diagnostics('clock'), 5, 'an error on the two clocks')
    assert 'jumps to and fro' in status.message
    said = capfd.readouterr().err
    assert said.count('jumps to and fro') == 1
    assert said.count('begins anew from seed') == 3


def test_a_second_wind_node_in_the_namespace_is_reported_while_it_lasts(make_bench, monkeypatch):
    monkeypatch.setattr(dryden_wind, 'TWIN_PATIENCE_S', 1.0)
    bench = make_bench(mean_wind__speed=8.0)
    other = bench.user.create_publisher(SimWind, 'sim_wind', common.LATCHED_QOS)
    status = wait_until(
        lambda: (bench.diagnostics('air') or 0) and bench.diagnostics('air').level == b'\x02'
        and bench.diagnostics('air'), 8, 'an error on the second wind node')
    assert 'another wind node publishes /bench/sim_wind too' in status.message
    bench.user.destroy_publisher(other)
    wait_until(lambda: bench.diagnostics('air').level == b'\x00', 8, 'the error to go away')


def test_time_that_stands_still_publishes_nothing(make_bench):
    bench = make_bench(mean_wind__speed=8.0)
    bench.clock(10)
    for _ in range(20):
        bench.clock_pub.publish(Clock(clock=stamp(10 * TICK + 1)))
    assert bench.clock(11).tick == 11
    assert [s.tick for s in bench.heard['wind/state']] == [10, 11]


def test_a_clock_of_1_khz_gives_every_tick_once(make_bench):
    # Gazebo's clock: the node sleeps through most of it and must not miss a tick by that.
    bench = make_bench(mean_wind__speed=8.0)
    begun = time.monotonic()
    for ms in range(1500):
        bench.clock_pub.publish(Clock(clock=stamp(ms * 1_000_000)))
        time.sleep(max(0.0, begun + ms / 1000 - time.monotonic()))
    wait_until(lambda: bench.heard['wind/state'][-1].tick == 29, 5, 'the last tick')
    assert [s.tick for s in bench.heard['wind/state']] == list(range(30))


@pytest.mark.parametrize('bad', [
    {'height': math.nan}, {'velocity': (math.inf, 0.0, 0.0)},
    {'velocity': (1e300, 1e300, 0.0)}, {'height': 1e300},
    {'orientation': (0.0, 0.0, 0.0, 0.0)}, {'orientation': (0.0, 0.0, math.nan, 1.0)}])
def test_bad_odometry_is_refused_and_the_last_good_one_holds(make_bench, bad):
    bench = make_bench(mean_wind__speed=8.0)
    bench.odom(0, height=42.0)
    bench.clock(1)
    bench.odom(1, **bad)
    assert bench.clock(3).height == 42.0
    status = wait_until(
        lambda: next((s for a in bench.heard['/diagnostics'] for s in a.status
                      if s.name.endswith('odometry') and 'refused' in s.message), None),
        5, 'a diagnostics entry on the refused odometry')
    assert status.level == b'\x01'


def test_height_and_airspeed_are_the_vehicles_in_the_air_that_blows(make_bench):
    bench = make_bench(mean_wind__speed=6.0, mean_wind__from_direction=270.0, gusts='off',
                       ground_height=2.0)
    half = math.radians(90.0) / 2  # nose to the north (ENU yaw 90), flying 8 m/s forward
    bench.odom(0, height=30.0, velocity=(8.0, 0.0, 0.0),
               orientation=(0.0, 0.0, math.sin(half), math.cos(half)))
    bench.clock(1)
    state = bench.clock(2)
    assert state.height == pytest.approx(28.0)
    assert state.airspeed == pytest.approx(10.0)  # 8 north through air moving 6 east


def test_no_clock_for_five_seconds_is_said_with_the_topics_name(make_bench):
    bench = make_bench()
    status = wait_until(
        lambda: (bench.diagnostics('clock') or 0) and bench.diagnostics('clock').level == b'\x02'
        and bench.diagnostics('clock'), 9, 'an error on the missing clock')
    assert '/bench/clock' in status.message


def run_node(*arguments, **environment):
    return subprocess.run(
        [sys.executable, '-m', 'dryden_wind_ros.nodes.dryden_wind', '--ros-args', *arguments],
        capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **environment})


@pytest.mark.parametrize(('argument', 'named'), [
    ('mean_wind.speed:=99', 'mean_wind.speed is 99'), ('seed:=2.5', 'seed is 2.5'),
    ('gusts:=gale', "gusts is 'gale'"), ('scale:=.nan', 'scale is nan')])
def test_a_bad_value_at_the_start_ends_the_node_with_one_message(argument, named):
    result = run_node('-p', argument)
    assert result.returncode == 2
    assert named in result.stderr
    assert 'Traceback' not in result.stderr


@pytest.mark.parametrize(('content', 'named'), [
    ('{{{: ]', 'params file'), ('dryden_wind:\n  seed: 3\n', 'ros__parameters'),
    ('/**:\n  ros__parameters:\n    seed:\n', 'No value at line 3'), (None, 'opening YAML file')])
def test_a_params_file_that_cannot_be_read_ends_the_node_with_one_message(
        tmp_path, content, named):
    path = tmp_path / 'wind.yaml'
    if content is not None:
        path.write_text(content)
    result = run_node('--params-file', str(path))
    assert result.returncode == 2
    fatal = [line for line in result.stderr.splitlines() if 'FATAL' in line]
    assert len(fatal) == 1
    assert named in fatal[0]
    assert str(path) in fatal[0]
    assert 'Traceback' not in result.stderr


def test_a_command_line_that_ros_does_not_know_ends_the_node_with_one_message():
    for arguments, named in ((['-p', 'seed'], '-p seed'), (['--sead', '3'], '--sead')):
        result = run_node(*arguments)
        assert result.returncode == 2
        assert named in result.stderr
        assert 'Traceback' not in result.stderr


def test_off_without_quotes_which_yaml_takes_for_false_is_off(make_bench):
    bench = make_bench(mean_wind__speed=8.0, gusts=False)
    assert bench.clock(20).gusts == 'off'
    assert bench.set(gusts='dryden').successful
    assert bench.clock(21).gusts == 'dryden'
    assert bench.set(gusts=False).successful
    assert bench.clock(22).gusts == 'off'
    assert bench.wind.get_parameter('gusts').value == 'off'
    refused = bench.set(gusts=True)
    assert not refused.successful
    assert 'gusts is True' in refused.reason


def test_without_the_interfaces_the_node_says_how_to_build_them(tmp_path):
    (tmp_path / 'dryden_wind_interfaces').mkdir()
    (tmp_path / 'dryden_wind_interfaces' / '__init__.py').write_text(
        "raise ModuleNotFoundError('not built')\n")
    result = run_node(PYTHONPATH=os.pathsep.join(
        [str(tmp_path), *filter(None, [os.environ.get('PYTHONPATH')])]))
    assert result.returncode == 2
    assert 'colcon build --base-paths src src/dryden_wind_ros/dryden_wind_interfaces' \
        in result.stderr
    assert 'Traceback' not in result.stderr


# ---- the field and the standards

def test_the_state_of_a_field_holds_what_its_gust_can_be_computed_from(make_bench):
    b = make_bench(mean_wind__speed=8.0, mean_wind__from_direction=200.0, seed=7, gusts='field',
              scale=1.5, span=2.0, field__modes=1024, ground_height=3.0)
    b.odom(99, height=25.0, velocity=(6.0, 1.0, 0.5))
    b.clock(100)
    state = b.clock(101)
    field = TurbulenceField(state.seed, spectrum=state.field_spectrum, modes=state.field_modes,
                            life=state.field_life, severity=state.severity)
    place = (state.position.x, state.position.y, state.position.z)
    gust = state.scale * field.gust(
        [place], state.air_time, (state.mean.x, state.mean.y, state.mean.z),
        drift=(state.drift.x, state.drift.y, state.drift.z), age=state.age,
        heights=place[2] - state.ground_height)[0]
    assert (state.gust.x, state.gust.y, state.gust.z) == pytest.approx(tuple(gust), abs=3e-5)
    # Asked for 0.045 s after the tick, where the vehicle is then: its odometry is 0.1 s old.
    assert state.air_time == pytest.approx(101 * 0.05 + 0.045)
    assert place == pytest.approx((6.0 * 0.145, 0.145, 25.0 + 0.5 * 0.145))
    assert (state.gusts, state.span, state.draws) == ('field', 2.0, 0)
    assert state.length_v == state.length_u
    wait_until(lambda: any(m.twist.twist.angular.x for m in b.heard['wind']), 5, 'rates in wind')
    assert state.rates.x == pytest.approx(b.heard['wind'][-1].twist.twist.angular.x)


def test_the_standards_model_and_its_settings_are_in_the_state_and_can_be_changed(make_bench):
    b = make_bench(mean_wind__speed=8.0, seed=7, model='mil_f_8785c', span=1.5)
    b.odom(99, height=30.0)
    state = b.clock(100)
    assert state.model == 'mil_f_8785c'
    assert state.draws == 101
    assert all((state.u, state.v, state.w, state.rates.x, state.rates.y, state.rates.z))
    assert b.set(severity='heavy').reason.startswith("severity is 'heavy'; it must be one of light")
    assert b.set(severity='0.001', model='mil_hdbk_1797b').successful
    state = b.clock(101)
    assert (state.severity, state.model) == ('0.001', 'mil_hdbk_1797b')
    assert state.length_w == pytest.approx(15.0)


def test_the_field_is_sampled_elsewhere_while_the_ticks_go_on(make_bench):
    b = make_bench(mean_wind__speed=8.0, seed=7, gusts='field', field__life=0.0)
    b.odom(99, height=30.0)
    b.clock(100)
    n = 30_000
    places = np.random.default_rng(1).uniform(3.0, 300.0, (n, 3))
    client = b.user.create_client(SampleWind, 'wind/sample')
    assert client.wait_for_service(10)
    future = client.call_async(SampleWind.Request(
        east=places[:, 0].tolist(), north=places[:, 1].tolist(), up=places[:, 2].tolist(),
        t=[60.0]))
    ticks = 100
    while not future.done():
        ticks += 1
        b.clock(ticks)
        assert ticks < 20_000
    answer = future.result()
    assert answer.success, answer.message
    assert ticks > 103, 'no tick went by while the answer was worked out'
    gust = TurbulenceField(7, life=0.0).gust(places[:50], 60.0, (8.0, 0.0, 0.0))
    np.testing.assert_allclose(np.column_stack(
        (answer.gust_e, answer.gust_n, answer.gust_up))[:50], gust, atol=2e-5)
    np.testing.assert_allclose(np.asarray(answer.wind_e) - answer.gust_e, 8.0)

    refused = b.call(SampleWind, 'wind/sample', SampleWind.Request(
        east=[1.0, math.nan], north=[0.0, 0.0], up=[9.0, 9.0], t=[1.0]))
    assert not refused.success
    assert refused.message == 'places has a number that is not finite'
    refused = b.call(SampleWind, 'wind/sample', SampleWind.Request(
        east=[1.0], north=[0.0], up=[9.0], t=[1.0, 2.0]))
    assert refused.message == 't has 2 times for 1 places; it must be one or as many'
    refused = b.call(SampleWind, 'wind/sample', SampleWind.Request(
        east=[1.0], north=[0.0, 5.0], up=[9.0], t=[1.0]))
    assert refused.message == (
        'east has 1, north has 2, up has 1 numbers; all three must have as many')
    b.set(field__modes=65536)
    refused = b.call(SampleWind, 'wind/sample', SampleWind.Request(
        east=[1.0] * 12_501, north=[0.0] * 12_501, up=[9.0] * 12_501, t=[1.0]))
    assert refused.message == ('12501 places were asked for; at most 12500 are answered at once '
                               'from a field of 65536 modes')
    b.set(gusts='dryden')
    refused = b.call(SampleWind, 'wind/sample', SampleWind.Request())
    assert "only a field has a gust at other places: set gusts to 'field'" in refused.message
