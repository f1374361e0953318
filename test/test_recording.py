"""Recording: names that never collide, the right topics, and latched messages in the bag."""

import contextlib
import resource
import shutil
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support import wait_until
from support.bags import MSG, STORE, make

from dryden_wind_ros.logs.bag import read_bag
from dryden_wind_ros.logs.recording import DEPTH, RECORDED, BagWriter
from dryden_wind_ros.tools import recording
from dryden_wind_ros.tools.recording import RecordingError

QOS_FILE = Path(__file__).parents[1] / 'config' / 'record_qos.yaml'
NOW = datetime(2026, 11, 30, 18, 5, 9)


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_bag_is_named_after_vehicle_and_date():
    assert recording.bag_path('', 'drone1', NOW) == Path('drone1_20261130_180509')
    assert recording.bag_path('', '/fleet/drone1/', NOW) == Path('fleet_drone1_20261130_180509')
    assert recording.bag_path('', '', NOW) == Path('dryden_wind_20261130_180509')


def test_a_second_bag_of_the_same_second_gets_a_name_of_its_own():
    Path('drone1_20261130_180509').mkdir()
    Path('drone1_20261130_180509_2').mkdir()
    assert recording.bag_path('', 'drone1', NOW) == Path('drone1_20261130_180509_3')


def test_a_folder_that_exists_is_refused():
    Path('mine').mkdir()
    with pytest.raises(RecordingError, match="bag is 'mine', which exists"):
        recording.bag_path('mine', '', NOW)
    assert recording.bag_path('yours', '', NOW) == Path('yours')
    with pytest.raises(RecordingError, match='File name too long'):
        recording.bag_path('a' * 300, '', NOW)


@given(st.lists(st.from_regex(r'[a-z][a-z0-9_]{0,8}', fullmatch=True), max_size=3),
       st.sampled_from(['', '/']))
def test_names_are_put_into_any_namespace(parts, slash):
    namespace = slash + '/'.join(parts)
    expected = ''.join('/' + part for part in parts)
    assert recording.absolute('wind/state', namespace) == f'{expected}/wind/state'
    assert recording.absolute('/diagnostics', namespace) == '/diagnostics'


def test_the_command_line_names_each_topic_by_itself():
    plan = recording.prepare('', 'drone1', QOS_FILE, environment={'ROS_DISTRO': 'jazzy'}, now=NOW)
    command = list(plan.command)
    overrides = command[command.index('--qos-profile-overrides-path') + 1]
    assert command == [
        'ros2', 'bag', 'record', '--storage', 'mcap', '--output', 'drone1_20261130_180509',
        '--qos-profile-overrides-path', overrides, '--disable-keyboard-controls', '--topics',
        '/drone1/wind', '/drone1/wind/gust', '/drone1/wind/mean', '/drone1/wind/state',
        '/drone1/sim_wind', '/drone1/ekf_wind', '/drone1/odom', '/drone1/clock', '/diagnostics']


def test_older_distributions_get_the_topics_as_they_know_them():
    # ros2bag of Humble, verb/record.py: positional topics only, no keyboard controls.
    plan = recording.prepare('', '', QOS_FILE, environment={'ROS_DISTRO': 'humble'}, now=NOW)
    assert not {'--topics', '--disable-keyboard-controls'} & set(plan.command)
    assert plan.command[-9:] == plan.topics == (
        '/wind', '/wind/gust', '/wind/mean', '/wind/state', '/sim_wind', '/ekf_wind', '/odom',
        '/clock', '/diagnostics')


def test_the_overrides_file_of_a_run_has_the_names_of_the_namespace():
    plan = recording.prepare('', 'drone1', QOS_FILE, now=NOW)
    path = Path(plan.command[plan.command.index('--qos-profile-overrides-path') + 1])
    overrides = yaml.safe_load(path.read_text())
    assert set(overrides) <= set(plan.topics)
    latched = {name for name, qos in overrides.items()
               if qos.get('durability') == 'transient_local'}
    assert latched == {'/drone1/sim_wind', '/drone1/ekf_wind'}


def test_the_hint_for_use_by_hand_makes_absolute_names():
    hint = next(line.lstrip('# ') for line in QOS_FILE.read_text().splitlines() if 'sed -E' in line)
    made = subprocess.run(['bash', '-c', hint.split(' > ')[0]], cwd=QOS_FILE.parent,
                          capture_output=True, text=True, check=True).stdout
    assert yaml.safe_load(made) == recording.qos_overrides(QOS_FILE.read_text(), '')


def test_a_broken_overrides_file_is_named(tmp_path):
    broken = tmp_path / 'qos.yaml'
    broken.write_text('- just\n- a list\n')
    with pytest.raises(RecordingError, match=f'{broken} is no file of QoS overrides'):
        recording.prepare('', '', broken)


def test_ros2_bag_is_taken_where_it_can_write_mcap_and_else_it_is_said_why(tmp_path):
    environment = {'PATH': str(tmp_path), 'ROS_DISTRO': 'jazzy'}
    assert "no command 'ros2'" in recording.why_no_ros2_bag(lambda: {'mcap'}, environment)
    ros2 = tmp_path / 'ros2'
    ros2.write_text('')
    ros2.chmod(0o755)
    assert recording.why_no_ros2_bag(lambda: {'mcap', 'sqlite3'}, environment) == ''
    assert 'cannot write MCAP' in recording.why_no_ros2_bag(lambda: {'sqlite3'}, environment)

    def without_ros2bag():
        raise ImportError('No module named rosbag2_py')
    assert "no 'ros2 bag'" in recording.why_no_ros2_bag(without_ros2bag, environment)


def test_without_any_recorder_the_packages_to_install_are_named(monkeypatch):
    monkeypatch.setattr('importlib.util.find_spec', lambda name: None)
    with pytest.raises(RecordingError, match='sudo apt install ros-jazzy-ros2bag '
                       'ros-jazzy-rosbag2-storage-mcap; or: python3 -m pip install rosbags'):
        recording.check_available({'ROS_DISTRO': 'jazzy'})


@pytest.mark.ros2
def test_the_overrides_are_what_ros2_bag_takes_and_match_the_publishers():
    from rclpy.qos import (
        DurabilityPolicy,
        HistoryPolicy,
        QoSCompatibility,
        QoSProfile,
        ReliabilityPolicy,
        qos_check_compatible,
    )

    from dryden_wind_ros.nodes import common
    policies = {'history': HistoryPolicy, 'reliability': ReliabilityPolicy,
                'durability': DurabilityPolicy}
    for topic, profile in recording.qos_overrides(QOS_FILE.read_text(), '').items():
        # As ros2bag/api does it: short names of the policies, the depth as it is.
        wanted = QoSProfile(**{
            key: policies[key].get_from_short_key(value) if key in policies else value
            for key, value in profile.items()})
        offered = common.LATCHED_QOS if topic in ('/sim_wind', '/ekf_wind') else common.STREAM_QOS
        compatibility, reason = qos_check_compatible(offered, wanted)
        assert compatibility != QoSCompatibility.ERROR, f'{topic}: {reason}'


@pytest.mark.ros2
@pytest.mark.skipif(shutil.which('ros2') is None, reason='the ros2 command is not installed')
def test_latched_messages_from_before_the_recording_are_in_the_bag_with_every_field():
    pytest.importorskip('rosbag2_py')
    rclpy = pytest.importorskip('rclpy')
    from rosbags.highlevel import AnyReader
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    from dryden_wind_interfaces.msg import EkfWind, SimWind, WindState
    from dryden_wind_ros.nodes import common
    plan = recording.prepare('', 'drone1', QOS_FILE)
    rclpy.init()
    node = rclpy.create_node('air', namespace='drone1')
    try:
        sim_wind = node.create_publisher(SimWind, 'sim_wind', common.LATCHED_QOS)
        ekf_wind = node.create_publisher(EkfWind, 'ekf_wind', common.LATCHED_QOS)
        state = node.create_publisher(WindState, 'wind/state', common.STREAM_QOS)
        sim_wind.publish(SimWind(tick=7, speed=9.25, direction=261.5, profile='uniform'))
        ekf_wind.publish(EkfWind(phase=5, phase_name='learning', reason='before the recording'))
        recorder = subprocess.Popen(plan.command, stdout=subprocess.DEVNULL)
        try:
            wait_until(lambda: state.get_subscription_count() == 1
                       and sim_wind.get_subscription_count() == 1
                       and ekf_wind.get_subscription_count() == 1, 20, 'the recorder to subscribe')
            for tick in range(100):
                state.publish(WindState(tick=tick, t=tick * 0.05, u=1.5, gusts='dryden', seed=7))
                time.sleep(0.001)
            assert state.wait_for_all_acked(rclpy.duration.Duration(seconds=5))
        finally:
            recorder.send_signal(signal.SIGINT)
            try:
                recorder.wait(15)
            except subprocess.TimeoutExpired:
                recorder.kill()
                raise
    finally:
        node.destroy_node()
        rclpy.try_shutdown()

    store = get_typestore(Stores.ROS2_JAZZY)
    for path in sorted((QOS_FILE.parents[1] / 'dryden_wind_interfaces' / 'msg').glob('*.msg')):
        store.register(get_types_from_msg(path.read_text(),
                                          f'dryden_wind_interfaces/msg/{path.stem}'))
    with AnyReader([plan.path], default_typestore=store) as bag:
        found = {}
        for connection, _, raw in bag.messages():
            found.setdefault(connection.topic, []).append(
                bag.deserialize(raw, connection.msgtype))
    assert [m.tick for m in found['/drone1/wind/state']] == list(range(100))
    assert found['/drone1/wind/state'][-1].gusts == 'dryden'
    assert (found['/drone1/sim_wind'][0].speed, found['/drone1/sim_wind'][0].direction) == (
        9.25, 261.5)
    assert found['/drone1/ekf_wind'][0].reason == 'before the recording'


def recorder(*words):
    return subprocess.Popen(
        [sys.executable, '-m', 'dryden_wind_ros.nodes.wind_record', '--ros-args', *words],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


@pytest.mark.ros2
def test_what_wind_record_asks_for_is_what_ros2_bag_is_told_to():
    overrides = yaml.safe_load(QOS_FILE.read_text())
    for topic in RECORDED:
        qos = overrides.get(topic.name)
        assert topic.ours == (qos is not None)
        if qos is not None:
            assert (qos['depth'], qos['reliability']) == (DEPTH, 'reliable')
            assert topic.latched == (qos.get('durability') == 'transient_local')


@pytest.mark.ros2
def test_wind_record_is_whole_after_kill_9_and_never_over_another_bag():
    rclpy = pytest.importorskip('rclpy')
    from nav_msgs.msg import Odometry

    from dryden_wind_interfaces.msg import EkfWind, SimWind, WindState
    from dryden_wind_ros.nodes import common
    rclpy.init()
    node = rclpy.create_node('air', namespace='drone1')
    publishers = [node.create_publisher(kind, name, qos) for kind, name, qos in (
        (WindState, 'wind/state', common.STREAM_QOS), (SimWind, 'sim_wind', common.LATCHED_QOS),
        (EkfWind, 'ekf_wind', common.LATCHED_QOS), (Odometry, 'odom', common.SENSOR_QOS))]
    state, sim_wind, ekf_wind, odometry = publishers
    ekf_wind.publish(EkfWind(phase=5, phase_name='learning', reason='before the recording'))
    killed = recorder('-r', '__ns:=/drone1', '-p', 'bag:=mine')
    try:
        wait_until(lambda: all(one.get_subscription_count() for one in publishers), 30,
                   'the recorder to subscribe')
        tick = 0

        def flying(seconds):
            nonlocal tick
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                state.publish(WindState(tick=tick, t=tick * 0.05, u=1.5, gusts='dryden', seed=7))
                sim_wind.publish(SimWind(tick=tick, speed=9.25, direction=261.5))
                odometry.publish(Odometry())
                tick += 1
                time.sleep(0.01)
        file = Path('mine/mine.mcap')
        wait_until(lambda: flying(0.2) or (file.exists() and b'dryden\0' in file.read_bytes()), 30,
                   'the first second to be on disk')
        before = tick
        size = file.stat().st_size
        wait_until(lambda: flying(0.2) or file.stat().st_size > size, 30, 'the next second')
        wait_until(lambda: flying(0.2) or file.stat().st_size > size, 30, 'the next second')
    finally:
        killed.kill()
        killed.wait(10)
        killed.stderr.close()
        node.destroy_node()
        rclpy.try_shutdown()

    flight, = read_bag(Path('mine'))
    assert flight.namespace == 'drone1'
    assert flight.air.tick.tolist() == list(range(len(flight.air)))
    assert len(flight.air) >= before
    assert flight.ekf.reason == ('before the recording',)
    assert 'metadata.yaml is missing' in flight.notes[0]
    again = recorder('-p', 'bag:=mine')
    _, said = again.communicate(timeout=30)
    assert again.returncode == 2
    assert "bag is 'mine', which exists; bags are never written over" in said


@contextlib.contextmanager
def room_for(size):
    """No file of this process may grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize('at', ['flush', 'close'])
def test_what_was_on_disk_before_it_was_full_is_whole(tmp_path, at):
    def write(bag, ticks):
        for tick in ticks:
            state = make('dryden_wind_interfaces/msg/WindState', tick=tick, t=tick * 0.05, u=1.5,
                         gusts='dryden', seed=7)
            data = bytes(STORE.serialize_cdr(state, 'dryden_wind_interfaces/msg/WindState'))
            bag.write('/wind/state', 1_000_000_000 + tick * 50_000_000, data)
    bag = BagWriter(tmp_path / 'bag', MSG)
    for topic in RECORDED:
        bag.add(recording.absolute(topic.name, ''), topic)
    write(bag, range(40))
    bag.flush()
    write(bag, range(40, 80))
    with room_for(bag.size + 100), pytest.raises(RecordingError, match='File too large'):
        getattr(bag, at)()
    write(bag, range(80, 120))  # room again, but the record has ended
    bag.close()
    assert 'what was on disk before is kept' in bag.failed
    assert sum(bag.counts.values()) == 40  # not those of the part that was cut
    flight, = read_bag(tmp_path / 'bag')
    assert flight.air.tick.tolist() == list(range(40))


@pytest.mark.ros2
def test_wind_record_ends_with_an_index_and_says_where_the_bag_is():
    from rosbags.rosbag2 import Reader
    ended = recorder('-p', 'bag:=two words', '-p', 'vehicles:="v1,v2"')
    wait_until(lambda: Path('two words').exists(), 30, 'the bag')
    time.sleep(0.5)  # the signal handler of rclpy stands before the node is made
    ended.send_signal(signal.SIGINT)
    _, said = ended.communicate(timeout=30)

    assert ended.returncode == 0, said
    assert f'recorded to {Path("two words").absolute()}: 0 messages' in said
    with Reader(Path('two words')) as bag:
        assert {one.topic for one in bag.connections} == {
            recording.absolute(name, vehicle) for name in recording.TOPICS
            for vehicle in ('v1', 'v2')}
        latched = next(one for one in bag.connections if one.topic == '/v1/sim_wind')
    assert latched.ext.offered_qos_profiles[0].durability.name == 'TRANSIENT_LOCAL'
