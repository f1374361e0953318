"""The whole chain as a user runs it: embedded vehicle, bridge and wind node, three processes."""

import itertools
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import rclpy
from pymavlink import mavutil
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile, ReliabilityPolicy
from support import free_port, wait_until
from support.processes import Program

from dryden_wind_interfaces.msg import EkfWind, WindState
from dryden_wind_ros.nodes import common

pytestmark = [pytest.mark.ros2, pytest.mark.timeout(240)]

NAMES = ('SIM_WIND_T', 'SIM_WIND_TC', 'SIM_WIND_TURB', 'SIM_WIND_SPD', 'SIM_WIND_DIR',
         'SIM_WIND_DIR_Z')


EVERY_TICK_QOS = QoSProfile(depth=5000, reliability=ReliabilityPolicy.RELIABLE)


class Chain:
    """The three programs, and a user who listens to wind/state."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self.programs = []
        self.ports = [free_port(), free_port()]
        self.ticks = {}
        self.node = rclpy.create_node('user', namespace=name)
        self.node.create_subscription(WindState, 'wind/state', self._on_state, EVERY_TICK_QOS)
        self.phases = []
        self.node.create_subscription(EkfWind, 'ekf_wind', self._on_ekf_wind, common.STREAM_QOS)
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)

    def _on_ekf_wind(self, message):
        if not self.phases or self.phases[-1] != message.phase_name:
            self.phases.append(message.phase_name)

    def _on_state(self, message):
        self.ticks[message.tick] = message

    def run(self, module, *arguments):
        program = Program(self.folder / f'{self.name}_{len(self.programs)}.log',
                          f'dryden_wind_ros.{module}', *arguments)
        self.programs.append(program)
        return program

    def vehicle(self, *arguments):
        return self.run('emulator.main', *itertools.chain.from_iterable(
            ('--connection', f'tcp:127.0.0.1:{port}') for port in self.ports), *arguments)

    def bridge(self):
        return self.run('nodes.mavlink_bridge', '--ros-args', '-r', f'__ns:=/{self.name}', '-p',
                        f'connection:=tcp:127.0.0.1:{self.ports[0]}', '-p', 'publish_clock:=true')

    def wind(self, **parameters):
        given = {'mean_wind.speed': 8.0, 'seed': 7, **parameters}
        return self.run('nodes.dryden_wind', '--ros-args', '-r', f'__ns:=/{self.name}',
                        *(word for name, value in given.items()
                          for word in ('-p', f'{name}:={value}')))

    def until(self, condition, timeout, what):
        def met():
            self.executor.spin_once(timeout_sec=0.02)
            return all(program.alive() for program in self.programs) and condition()
        return wait_until(met, timeout, what, interval=0.0)

    def close(self):
        for program in reversed(self.programs):
            program.kill()
        self.node.destroy_node()


@pytest.fixture
def make_chain(tmp_path):
    rclpy.init()
    made = []

    def make(name):
        made.append(Chain(tmp_path, name))
        return made[-1]
    yield make
    for chain in made:
        chain.close()
    rclpy.try_shutdown()


def read_parameters(port):
    """Ask the vehicle itself, on another of its ports."""
    link = mavutil.mavlink_connection(f'tcp:127.0.0.1:{port}', source_system=200)
    values = {}

    def answered():
        for name in NAMES:
            if name not in values:
                link.mav.param_request_read_send(1, 1, name.encode(), -1)
        end = time.monotonic() + 0.5
        while time.monotonic() < end and len(values) < len(NAMES):
            message = link.recv_match(type='PARAM_VALUE', blocking=True, timeout=0.1)
            if message is not None and message.param_id in NAMES:
                values[message.param_id] = message.param_value
        return len(values) == len(NAMES)
    try:
        wait_until(answered, 10, 'the SIM_WIND_* values of the vehicle')
    finally:
        link.close()
    return values


def test_the_vehicle_flies_in_the_gusts_and_is_left_as_it_was_found(make_chain):
    chain = make_chain('restore')
    chain.vehicle('--flight', 'hover', '--speedup', '5', '--param', 'SIM_WIND_SPD=3',
                  '--param', 'SIM_WIND_DIR=45', '--param', 'SIM_WIND_TURB=1')
    wind, bridge = chain.wind(), chain.bridge()
    chain.until(lambda: chain.ticks and max(chain.ticks) > 400, 40, 'tick 400 of the air')
    # uniform wind, the filter at its floor, one source of turbulence
    chain.until(lambda: 'put back at the end' in bridge.text, 40, 'the bridge to be set up')
    flown = wait_until(
        lambda: (now := read_parameters(chain.ports[1]))['SIM_WIND_T'] == 1.0
        and now['SIM_WIND_SPD'] != 3.0 and now, 20, 'SIM_WIND_T to be 1, and a wind of the air')
    assert flown['SIM_WIND_TURB'] == 0.0
    assert flown['SIM_WIND_TC'] == pytest.approx(0.1)
    # What was told of the air meanwhile is still to be read here.
    def sent():
        return [state.sim_wind_spd for state in chain.ticks.values()]
    chain.until(lambda: min(sent()) - 1.0 < flown['SIM_WIND_SPD'] < max(sent()) + 1.0, 20,
                lambda: f'{flown["SIM_WIND_SPD"]} among {sent()}')
    started = time.monotonic()
    assert bridge.stop() == 0
    assert time.monotonic() - started < 8.0  # 2 s to put back, the rest for Python to leave
    assert wind.stop() == 0
    found = read_parameters(chain.ports[1])
    assert found == {'SIM_WIND_T': 0.0, 'SIM_WIND_TC': 5.0, 'SIM_WIND_TURB': 1.0,
                     'SIM_WIND_SPD': 3.0, 'SIM_WIND_DIR': 45.0, 'SIM_WIND_DIR_Z': 0.0}
    assert 'Internal Errors' not in chain.programs[0].text
    assert 'Traceback' not in bridge.text + wind.text


def test_a_closed_terminal_leaves_the_vehicle_as_it_was_found_too(make_chain):
    chain = make_chain('hangup')
    chain.vehicle('--speedup', '5', '--param', 'SIM_WIND_SPD=3')
    wind, bridge = chain.wind(), chain.bridge()
    chain.until(lambda: 'put back at the end' in bridge.text, 40, 'the bridge to be set up')
    for program in (wind, bridge):
        program.signal(signal.SIGHUP)
    assert bridge.wait(10) == 0
    assert wind.wait(10) == 0
    assert read_parameters(chain.ports[1])['SIM_WIND_SPD'] == 3.0


def set_parameter(port, name, value):
    """Set a parameter as a ground station would."""
    link = mavutil.mavlink_connection(f'tcp:127.0.0.1:{port}', source_system=200)

    def echoed():
        link.mav.param_set_send(1, 1, name.encode(), value, mavutil.mavlink.MAV_PARAM_TYPE_REAL32)
        link.mav.param_request_read_send(1, 1, name.encode(), -1)
        message = link.recv_match(type='PARAM_VALUE', blocking=True, timeout=0.2)
        return (message is not None and message.param_id == name
                and message.param_value == value)
    wait_until(echoed, 10, f'{name} to be {value}')
    link.close()


def disarm_by_force(port):
    link = mavutil.mavlink_connection(f'tcp:127.0.0.1:{port}', source_system=200)

    def acknowledged():
        link.mav.command_long_send(
            1, 1, mavutil.mavlink.MAV_CMD_COMPONENT_ARM_DISARM, 0, 0, 21196, 0, 0, 0, 0, 0)
        message = link.recv_match(type='COMMAND_ACK', blocking=True, timeout=0.5)
        return message is not None and message.result == 0
    wait_until(acknowledged, 10, 'the vehicle to be disarmed')
    link.close()


class Steps:
    """Since which tick a chain's air has been stepped tick by tick.

    Over more than ten missed ticks it is not (docs/model.md): a pause is a new start to forget.
    On a busy machine there are some, and fewer at a lower speedup.
    """

    def __init__(self, chain):
        self.chain, self.speedup = chain, 20.0
        self.since = self.newest = min(chain.ticks)
        set_parameter(chain.ports[1], 'SIM_SPEEDUP', self.speedup)

    def look(self):
        for _ in range(40):
            self.chain.executor.spin_once(timeout_sec=0.0)
        ticks = self.chain.ticks
        # Newest first, down to the newest of the last look.
        heard = list(itertools.takewhile(lambda k: k >= self.newest, reversed(ticks)))
        for tick, before in itertools.pairwise(heard):
            if ticks[tick].missed_ticks - ticks[before].missed_ticks >= 10:
                self.since, self.speedup = tick, max(self.speedup - 4.0, 1.0)
                set_parameter(self.chain.ports[1], 'SIM_SPEEDUP', self.speedup)
                break
        self.newest = heard[0]


def test_a_seed_meets_the_same_air_late_and_with_lost_clock_messages(make_chain):
    chains = {}
    for name, from_tick, loss in (('first', 0, 0.0), ('late', 60, 0.05)):
        chain = chains[name] = make_chain(name)
        chain.vehicle('--speedup', '1', '--wait-client', '--clock-loss', str(loss))
        wind = chain.wind(**{'mean_wind.speed': 32.0})
        chain.until(lambda wind=wind: 'waiting for' in wind.text, 20, 'the wind node')
        if from_tick:
            # Another client lets the vehicle run before the bridge comes.
            waker = mavutil.mavlink_connection(f'tcp:127.0.0.1:{chain.ports[0]}', retries=20)
            wait_until(lambda waker=waker, ms=from_tick * 50: (
                message := waker.recv_match(type='SYSTEM_TIME', blocking=True, timeout=0.2))
                and message.time_boot_ms > ms, 20, 'the vehicle to run for some seconds')
            waker.close()
        chain.bridge()
        chain.until(lambda chain=chain: chain.ticks, 20, 'the first tick of the air')
    steps = [Steps(chain) for chain in chains.values()]

    def forgotten():
        # A vehicle on the ground in 32 m/s has a time constant of 23 m / 32 m/s = 0.72 s: 15 ticks.
        # A double's 53 bits are 37 of them.
        return max(each.since for each in steps) + 900

    def met():
        for each in steps:
            each.look()
        return (all(program.alive() for chain in chains.values() for program in chain.programs)
                and min(each.newest for each in steps) > forgotten() + 300)
    wait_until(met, 120, lambda: 'both to forget their start; they are at ticks '
               f'{[each.newest for each in steps]}, stepped since {[each.since for each in steps]}',
               interval=0.0)
    first, late = (dict(chain.ticks) for chain in chains.values())
    for chain in chains.values():
        for program in chain.programs[:0:-1]:
            assert program.stop() == 0
        chain.programs[0].stop()
    assert min(late) - min(first) >= 40
    both = sorted(first.keys() & late.keys())
    assert len(both) > 1000
    # The draws are the same at once,
    assert all(first[k].draws == late[k].draws == k for k in both)
    assert (first[both[0]].u, first[both[0]].v) != (late[both[0]].u, late[both[0]].v)
    # and the air to the last bit once the start is forgotten.
    settled = [k for k in both if k > forgotten()]
    assert len(settled) > 200
    assert all((first[k].u, first[k].v, first[k].w) == (late[k].u, late[k].v, late[k].w)
               for k in settled)


def test_ekf_wind_goes_through_every_phase_of_a_flight_with_a_gps_outage(make_chain):
    chain = make_chain('phases')
    # The origin of EKF3, and with it the take-off, waits until the bridge has seen the ground.
    chain.vehicle('--vehicle', 'plane', '--flight', 'loiter', '--speedup', '1', '--wait-client',
                  '--origin-after', '30')
    chain.wind()
    chain.bridge()

    def until(phase, timeout=80):
        chain.until(lambda: chain.phases and chain.phases[-1] == phase, timeout,
                    f'the phase {phase}; there were {chain.phases}')
    until('ground')
    set_parameter(chain.ports[1], 'SIM_SPEEDUP', 8.0)
    until('learning')
    set_parameter(chain.ports[1], 'SIM_GPS1_ENABLE', 0.0)
    until('coast')
    set_parameter(chain.ports[1], 'SIM_GPS1_ENABLE', 1.0)
    until('learning')
    disarm_by_force(chain.ports[1])
    until('ground')
    flight = chain.phases[chain.phases.index('ground'):]
    assert flight == ['ground', 'inhibited', 'init', 'learning', 'coast', 'relearn', 'learning',
                      'ground']


def test_the_demo_measures_the_air_draws_it_and_puts_everything_back(tmp_path):
    result = subprocess.run(
        [sys.executable, '-m', 'dryden_wind_ros.tools.demo', '--seconds', '10', '--speedup', '10',
         '--output', str(tmp_path / 'pictures')],
        capture_output=True, text=True, timeout=90, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    picture = tmp_path / 'pictures' / 'wind_history_seed7.png'
    assert picture.read_bytes()[:4] == b'\x89PNG'
    assert str(picture) in result.stdout
    assert 'put back and confirmed' in result.stdout
    # Strength of the model at 10 m in 8 m/s, MIL-F-8785C: 0.189 x 8 along and across, 0.8 up.
    assert '1.51' in result.stdout
    assert '0.80' in result.stdout


def test_the_demo_says_what_is_missing_when_there_is_no_sitl(tmp_path):
    result = subprocess.run(
        [sys.executable, '-m', 'dryden_wind_ros.tools.demo', '--seconds', '500'],
        capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    assert result.returncode == 1
    assert 'from 1 to 120' in result.stdout
    assert not Path(tmp_path, 'demo_output').exists()
