"""Many vehicles in one process, each as if alone."""

import itertools
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from pymavlink.dialects.v20 import ardupilotmega as mavlink
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from std_srvs.srv import Trigger
from support import free_port, wait_until
from support.processes import Program
from support.vehicle import Probe

from dryden_wind_interfaces.msg import WindState
from dryden_wind_interfaces.srv import SampleWind
from dryden_wind_ros.gusts.field import TurbulenceField
from dryden_wind_ros.nodes import common
from dryden_wind_ros.sitl.fleet import derived_seed

pytestmark = pytest.mark.ros2


class Fleet:
    """Embedded vehicles in one process, wind_fleet in another, and a user.

    Of `count` vehicles the last ones can be left to another fleet, see `elsewhere`.
    """

    def __init__(self, folder, count, *fleet_parameters, left_to_others=0):
        first = free_port()
        while first + 10 * count > 60000:
            first = free_port()
        self.programs = [Program(
            folder / 'vehicles.log', 'dryden_wind_ros.emulator.main', '--count', str(count),
            '--connection', f'tcp:127.0.0.1:{first}',
            '--connection', f'tcp:127.0.0.1:{first + 5}', '--flight', 'hover', '--speedup', '2')]
        #: Ports for a client of the test's own.
        self.probe_ports = [first + 5 + 10 * i for i in range(count)]
        self.file = folder / 'fleet.yaml'
        lines = [f'- {{name: v{i}, connection: "tcp:127.0.0.1:{first + 10 * i}"}}\n'
                 for i in range(count)]
        self.file.write_text(''.join(lines[:count - left_to_others]))
        self.elsewhere = folder / 'fleet_elsewhere.yaml'
        self.elsewhere.write_text(''.join(lines[count - left_to_others:]))
        self.user = rclpy.create_node('fleet_user')
        self.heard = {i: [] for i in range(count)}
        for i in range(count):
            self.user.create_subscription(
                WindState, f'/v{i}/wind/state', self.heard[i].append,
                QoSProfile(depth=2000, reliability=ReliabilityPolicy.RELIABLE))
        self.clock_pub = self.user.create_publisher(Clock, '/clock', common.STREAM_QOS)
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.user)
        self.programs.append(Program(
            folder / 'fleet.log', 'dryden_wind_ros.nodes.wind_fleet', '--ros-args',
            '-p', f'vehicles_file:={self.file}', '-p', 'mean_wind.speed:=8.0', '-p', 'seed:=3',
            *(word for p in fleet_parameters for word in ('-p', p))))

    def until(self, condition, timeout, what):
        def met():
            self.executor.spin_once(timeout_sec=0.02)
            return all(program.alive() for program in self.programs) and condition()
        return wait_until(met, timeout, what, interval=0.0)

    def set(self, node, **values):
        client = self.user.create_client(
            SetParametersAtomically, f'{node}/set_parameters_atomically')
        self.until(client.service_is_ready, 20, f'the parameters of {node}')
        future = client.call_async(SetParametersAtomically.Request(parameters=[
            Parameter(k.replace('__', '.'), value=v).to_parameter_msg()
            for k, v in values.items()]))
        self.until(future.done, 20, f'an answer of {node}')
        return future.result().result

    def sample(self, vehicle, places, time):
        """Return east, north and up of the field's gust at places, one after the other."""
        client = self.user.create_client(SampleWind, f'{vehicle}/wind/sample')
        self.until(client.service_is_ready, 20, f'wind/sample of {vehicle}')
        east, north, up = zip(*places, strict=True)
        future = client.call_async(SampleWind.Request(east=east, north=north, up=up, t=[time]))
        self.until(future.done, 20, f'an answer of wind/sample of {vehicle}')
        answer = future.result()
        assert answer.success, answer.message
        return [*answer.gust_e, *answer.gust_n, *answer.gust_up]

    def newest(self):
        return [states[-1] if states else None for states in self.heard.values()]

    def close(self):
        for program in reversed(self.programs):
            program.kill()
        self.executor.remove_node(self.user)
        self.executor.shutdown()
        self.user.destroy_node()


@pytest.fixture
def make_fleet(tmp_path):
    rclpy.init()
    made = []

    def make(*args, **kwargs):
        made.append(Fleet(tmp_path, *args, **kwargs))
        return made[-1]
    yield make
    for fleet in made:
        fleet.close()
    rclpy.try_shutdown()


def test_each_vehicle_has_its_own_draws_and_its_wind_can_be_changed_alone_or_for_all(make_fleet):
    fleet = make_fleet(3)
    # The first tick of an air has no gust yet.
    fleet.until(lambda: all(len(states) > 30 for states in fleet.heard.values()), 40,
                'ticks of all three vehicles')
    assert [s.seed for s in fleet.newest()] == [derived_seed(3, i) for i in range(3)]
    assert len({s.u for s in fleet.newest()}) == 3
    for states in fleet.heard.values():
        # While DDS discovers a listener, it may miss some; the air itself misses none.
        assert states[-1].missed_ticks == states[0].missed_ticks
        ticks = [s.tick for s in states[10:]]
        assert ticks == list(range(ticks[0], ticks[-1] + 1))

    assert fleet.set('/wind_fleet', mean_wind__speed=12.0).successful
    fleet.until(lambda: all(s.mean_wind_speed == 12.0 for s in fleet.newest()), 10,
                'the new wind at all vehicles')
    assert fleet.set('/v1/dryden_wind', mean_wind__from_direction=90.0).successful
    fleet.until(lambda: fleet.newest()[1].mean_wind_from_deg == 90.0, 10, 'the new wind of v1')
    assert [s.mean_wind_from_deg for s in fleet.newest()] == [270.0, 90.0, 270.0]
    refused = fleet.set('/wind_fleet', mean_wind__speed=99.0)
    assert not refused.successful
    assert 'mean_wind.speed' in refused.reason

    # A scenario for all, and one vehicle's own speed in place of it.
    scenario = fleet.file.with_name('calm.yaml')
    scenario.write_text('wind: {speed: 5}\nprofile: {power: {exponent: 0}}\n')
    assert fleet.set('/wind_fleet', scenario=str(scenario)).successful
    assert fleet.set('/v2/dryden_wind', mean_wind__speed=7.0).successful
    fleet.until(lambda: [s.mean_wind_speed for s in fleet.newest()] == [5.0, 5.0, 7.0], 10,
                'the wind of the scenario, and the one set by hand')
    assert {s.scenario for s in fleet.newest()} == {str(scenario)}
    scenario.with_name('bad.yaml').write_text('wind: {speed: 5}\nclocc: boot\n')
    refused = fleet.set('/wind_fleet', scenario=str(scenario.with_name('bad.yaml')))
    assert not refused.successful
    assert 'line 2: scenario: clocc is unknown' in refused.reason

    vehicles, nodes = fleet.programs
    assert nodes.stop() == 0
    assert nodes.text.count('put back and confirmed') == 3
    assert 'Traceback' not in nodes.text
    assert 'unknown' not in nodes.text
    assert 'Internal Errors' not in vehicles.text


def test_one_shared_clock_and_the_same_air_for_all(make_fleet):
    fleet = make_fleet(2, 'same_air:=true', 'clock:=shared')
    fleet.until(lambda: fleet.clock_pub.get_subscription_count() == 1, 30, 'the fleet on /clock')
    fleet.until(lambda: 'put back at the end' in fleet.programs[1].text
                or fleet.programs[1].text.count('found') >= 2, 30, 'both vehicles')
    fleet.until(lambda: fleet.programs[1].text.count('no sim time on /clock for') == 2, 20,
                'each vehicle to name the topic on which no clock is heard')
    sent = iter(range(1, 10_000))

    def advance():
        ms = 5 * next(sent)  # a clock of 200 messages a sim second
        message = Clock()
        message.clock.sec, message.clock.nanosec = ms // 1000, ms % 1000 * 1_000_000
        fleet.clock_pub.publish(message)
        return all(s and s.tick >= 40 for s in fleet.newest())
    fleet.until(advance, 30, 'tick 40 of the shared clock')
    both = {s.tick: s for s in fleet.heard[0]}.keys() & {s.tick: s for s in fleet.heard[1]}.keys()
    assert len(both) > 20
    first, second = ({s.tick: s for s in fleet.heard[i]} for i in range(2))
    assert all((first[k].u, first[k].v, first[k].w) == (second[k].u, second[k].v, second[k].w)
               for k in both)
    assert first[max(both)].seed == 3


def test_a_fleet_that_is_described_wrongly_is_refused_with_one_message(tmp_path):
    path = tmp_path / 'fleet.yaml'
    path.write_text('- {name: a}\n- {name: a}\n')
    result = subprocess.run(
        [sys.executable, '-m', 'dryden_wind_ros.nodes.wind_fleet', '--ros-args',
         '-p', f'vehicles_file:={path}'], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 2
    assert 'vehicles 1 and 2 are both named a' in result.stderr
    assert 'Traceback' not in result.stderr


@pytest.mark.parametrize('remap', ['__ns:=/x', '__node:=x'])
def test_a_remapping_that_would_make_all_vehicles_one_is_refused(remap):
    run = subprocess.run(
        [sys.executable, '-m', 'dryden_wind_ros.nodes.wind_fleet', '--ros-args', '-r', remap],
        capture_output=True, text=True, timeout=120, check=False)

    assert run.returncode == 2
    assert 'instead of /vehicle_1/dryden_wind' in run.stderr
    assert 'Traceback' not in run.stderr


def test_a_fleet_in_two_processes_is_one_fleet(make_fleet):
    fleet = make_fleet(3, 'wind_fleet:part:=0', 'wind_fleet:parts:=2')
    folder = fleet.file.parent
    fleet.programs.append(Program(
        folder / 'fleet_2.log', 'dryden_wind_ros.nodes.wind_fleet', '--ros-args',
        '-r', 'wind_fleet:__node:=wind_fleet_2', '-p', f'vehicles_file:={fleet.file}',
        '-p', 'wind_fleet_2:mean_wind.speed:=8.0', '-p', 'wind_fleet_2:seed:=3',
        '-p', 'wind_fleet_2:part:=1', '-p', 'wind_fleet_2:parts:=2'))
    fleet.until(lambda: all(fleet.newest()), 60, 'ticks of all three vehicles')
    # Names and seeds are those of one process: seeds go by the place in the whole list.
    assert [state.seed for state in fleet.newest()] == [derived_seed(3, i) for i in range(3)]

    assert fleet.set('/wind_fleet', mean_wind__speed=12.0).successful
    fleet.until(lambda: all(s.mean_wind_speed == 12.0 for s in fleet.newest()), 20,
                'the change in both processes')
    # What one part is asked alone is refused, and so is what no vehicle can take.
    refused = fleet.set('/wind_fleet_2', mean_wind__speed=3.0)
    assert not refused.successful
    assert '/wind_fleet' in refused.reason
    assert not fleet.set('/wind_fleet', mean_wind__speed=99.0).successful
    restarts = [state.restarts for state in fleet.newest()]
    client = fleet.user.create_client(Trigger, '/wind/restart')
    fleet.until(client.service_is_ready, 20, 'the service wind/restart')
    future = client.call_async(Trigger.Request())
    fleet.until(future.done, 20, 'the answer of wind/restart')
    fleet.until(lambda: [s.restarts for s in fleet.newest()] == [r + 1 for r in restarts], 20,
                'all airs to begin anew')

    first, second = fleet.programs[1:]
    for program in (second, first):
        program.signal(signal.SIGINT)
    assert (first.wait(30), second.wait(30)) == (0, 0)
    assert '3 of 3 vehicles in 2 processes ended well' in first.text


def test_two_processes_of_a_fleet_fly_in_one_air(make_fleet):
    fleet = make_fleet(3, 'wind_fleet:part:=0', 'wind_fleet:parts:=2', 'wind_fleet:gusts:=field')
    fleet.programs.append(Program(
        fleet.file.parent / 'fleet_2.log', 'dryden_wind_ros.nodes.wind_fleet', '--ros-args',
        '-r', 'wind_fleet:__node:=wind_fleet_2', '-p', f'vehicles_file:={fleet.file}',
        '-p', 'wind_fleet_2:mean_wind.speed:=8.0', '-p', 'wind_fleet_2:seed:=3',
        '-p', 'wind_fleet_2:gusts:=field', '-p', 'wind_fleet_2:part:=1',
        '-p', 'wind_fleet_2:parts:=2'))
    fleet.until(lambda: all(fleet.newest()), 60, 'ticks of all three vehicles')
    assert fleet.set('/wind_fleet', mean_wind__speed=12.0).successful
    fleet.until(lambda: all(s.mean_wind_speed == 12.0 for s in fleet.newest()), 20,
                'the change in both processes')
    states = fleet.newest()
    fleet.until(lambda: all(len(heard) > 100 for heard in fleet.heard.values())
                and all(new.t > old.t + 2.0 for new, old in
                        zip(fleet.newest(), states, strict=True)), 60, 'some seconds of it')
    # v0 and v2 are served by one process, v1 by the other: at one air time one drift, for all.
    drifts = [{round(s.air_time / 0.05): s.drift for s in heard[-60:]}
              for heard in fleet.heard.values()]
    common_times = sorted(set(drifts[0]) & set(drifts[1]) & set(drifts[2]))
    assert common_times
    for k in common_times:
        for other in drifts[1:]:
            assert other[k].x == pytest.approx(drifts[0][k].x, abs=0.5)
    # The times agree: what is the newest here is nearly the newest there.
    newest = [max(drift) for drift in drifts]
    assert max(newest) - min(newest) < 20
    assert {s.seed for s in fleet.newest()} == {3}


def test_attitude_is_only_sent_often_where_somebody_follows_it(make_fleet):
    fleet = make_fleet(1)
    told = {}
    fleet.user.create_subscription(
        DiagnosticArray, '/diagnostics', lambda message: told.update(
            (pair.key, pair.value) for status in message.status for pair in status.values), 10)
    fleet.until(lambda: told.get('interval ATTITUDE') == '200 ms', 60,
                'ATTITUDE five times a second')
    fleet.user.create_subscription(Odometry, '/v0/odom', lambda _: None, common.SENSOR_QOS)
    fleet.until(lambda: told.get('interval ATTITUDE') == '50 ms', 30,
                'ATTITUDE twenty times a second')


# ---- one field for the fleet

def gust(state):
    return (state.gust.x, state.gust.y, state.gust.z)


def test_a_fleet_in_a_field_has_one_seed_frame_and_time_and_each_meets_the_air_of_its_place(
        make_fleet):
    """What blows at each is the field of the fleet's seed at its true place.

    The third vehicle belongs to a fleet of its own, as on another machine: of that, nothing but
    seed, origin and settings of the field is the same.
    """
    air = ('gusts:=field', 'field.modes:=512', 'origin:="-35.363262,149.165237,584"')
    fleet = make_fleet(3, *air, left_to_others=1)
    fleet.programs.append(Program(
        fleet.file.parent / 'elsewhere.log', 'dryden_wind_ros.nodes.wind_fleet', '--ros-args',
        '-r', 'wind_fleet:__node:=elsewhere', '-p', f'vehicles_file:={fleet.elsewhere}',
        '-p', 'mean_wind.speed:=8.0', '-p', 'seed:=3', *(word for p in air for word in ('-p', p))))
    fleet.until(lambda: all(
        states and states[-1].position_is_true and states[-1].origin_latitude == states[-1]
        .origin_latitude for states in fleet.heard.values()), 60,
        'the true places of all vehicles, and the origin')
    field = TurbulenceField(3, modes=512)
    for states in fleet.heard.values():
        state = states[-1]
        assert state.seed == 3
        assert (state.origin_latitude, state.origin_longitude, state.origin_altitude) == \
            pytest.approx((-35.363262, 149.165237, 584.0))
        place = (state.position.x, state.position.y, state.position.z)
        again = field.gust([place], 0.0, (8.0, 0.0, 0.0), drift=(
            state.drift.x, state.drift.y, state.drift.z), age=state.age)[0]
        assert gust(state) == pytest.approx(tuple(again), abs=3e-5)
        # The drift is the mean wind's integral over the time of the air.
        assert state.drift.x == pytest.approx(8.0 * state.air_time, abs=1e-6)
    one, other, elsewhere = fleet.newest()
    assert abs(one.air_time - other.air_time) < 2.0  # of one time, though each has its own clock
    assert one.time_offset == 0.0 or other.time_offset == 0.0

    places = [(10.0 * k, -7.0 * k, 5.0 + k) for k in range(20)]
    here, there = (fleet.sample(f'/v{i}', places, 60.0 - state.time_offset)
                   for i, state in ((0, one), (2, elsewhere)))
    assert here == pytest.approx(there, abs=3e-5)
    assert max(map(abs, here)) > 0.5
    top = Program(fleet.file.parent / 'top.log', 'dryden_wind_ros.tools.wind_top')
    fleet.programs.append(top)
    fleet.until(lambda: all(f'/v{i} ' in top.text for i in range(3)), 60,
                'all three vehicles in one wind_top')


def test_a_restarted_vehicle_and_one_without_gps_go_on_in_the_air_of_their_places(make_fleet):
    """Neither a restart nor a lost GPS changes anything in the air, theirs or the others'."""
    fleet = make_fleet(2, 'gusts:=field', 'field.modes:=512', 'origin:="-35.363262,149.165237,584"')
    fleet.until(lambda: all(states and states[-1].position_is_true and states[-1].height > 2.0
                            for states in fleet.heard.values()), 90, 'both vehicles in flight')
    lost, restarted = (Probe(SimpleNamespace(probe_port=port)) for port in fleet.probe_ports)
    with lost, restarted:
        lost.set('SIM_GPS1_ENABLE', 0.0)
        force = 20190226.0  # a vehicle in flight does not restart without it
        restarted.command(mavlink.MAV_CMD_PREFLIGHT_REBOOT_SHUTDOWN, 1.0, 0.0, 0.0, 0.0, 0.0, force)
    first, second = len(fleet.heard[0]), len(fleet.heard[1])
    before = fleet.heard[1][-1].t
    fleet.until(lambda: any(state.t < before for state in fleet.heard[1][second:])
                and len(fleet.heard[0]) > first + 300 and len(fleet.heard[1]) > second + 100, 60,
                'the second vehicle to have begun anew, and 15 s of the first without GPS')
    field = TurbulenceField(3, modes=512)
    for states in fleet.heard.values():
        for state in states[-40::10]:
            assert state.position_is_true
            assert state.drift.x == pytest.approx(8.0 * state.air_time, abs=1e-6)
            place = (state.position.x, state.position.y, state.position.z)
            again = field.gust([place], 0.0, (8.0, 0.0, 0.0), drift=(
                state.drift.x, state.drift.y, state.drift.z), age=state.age)[0]
            assert gust(state) == pytest.approx(tuple(again), abs=3e-5)
    air_times = [state.air_time for state in fleet.heard[0]]
    assert all(0.0 < b - a < 0.5 for a, b in itertools.pairwise(air_times[10:]))
    assert abs(fleet.heard[0][-1].air_time - fleet.heard[1][-1].air_time) < 2.0
