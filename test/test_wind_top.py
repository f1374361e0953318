"""wind_top: what a person, a narrow terminal and a pipe see of the wind of all vehicles."""

import contextlib
import fcntl
import io
import math
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

import pytest
import rclpy
from geometry_msgs.msg import Vector3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console
from support import wait_until

from dryden_wind_interfaces.msg import EkfWind, WindState
from dryden_wind_ros.nodes import common
from dryden_wind_ros.tools import top_screen
from dryden_wind_ros.tools.top_heard import EKF_WIND, WIND_STATE, Vehicle, vehicle_of

pytestmark = pytest.mark.ros2

WIND_TOP = [sys.executable, '-m', 'dryden_wind_ros.tools.wind_top']


def a_state(t=12.0, u=1.2, v=-0.8, w=0.3, **changes):
    fields = {
        'gusts': 'dryden', 'method': 'exact', 'seed': 7, 'scale': 1.0, 'mean_wind_speed': 8.0,
        'mean_wind_from_deg': 255.0, 'height': 10.2, 'airspeed': 8.1, 'sigma_u': 1.1,
        'sigma_v': 1.1, 'sigma_w': 0.8, 'sim_wind_spd': 9.12, 'sim_wind_dir': 262.1,
        'sim_wind_dir_z': 2.1, 'missed_ticks': 3, 'tick_rate': 20.0, 'restarts': 0,
        'gust': Vector3(x=1.2, y=0.8, z=0.3)}
    return WindState(t=t, u=u, v=v, w=w, **(fields | changes))


def an_ekf(phase='learning', **changes):
    fields = {'settled': True, 'speed': 7.9, 'from_deg': 257.0, 'error_speed': 0.4,
              'error_direction': -2.0, 'reason': 'in flight with aiding'}
    return EkfWind(phase_name=phase, **(fields | changes))


def a_vehicle(name='/drone1', now=100.0, state=True, ekf=True, **changes):
    vehicle = Vehicle(name)
    if state:
        for i in range(40):
            vehicle.hear_state(a_state(12.0 + i * 0.25, **changes), now - (39 - i) * 0.25)
    if ekf:
        vehicle.hear_ekf(an_ekf(), now)
    return vehicle


def drawn(vehicles, width, height=60, now=100.0, color=None):
    """Return the picture as lines."""
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=bool(color),
                      color_system=color, _environ={})
    console.print(top_screen.screen(vehicles, now, width, height))
    return console.file.getvalue().rstrip('\n').split('\n')


# ------------------------------------------------------------------------------ pictures


@pytest.mark.parametrize('width', [120, 80, 60, 40])
def test_everything_that_matters_is_on_the_screen(width):
    text = '\n'.join(drawn([a_vehicle()], width))
    for piece in ('/drone1', '→   8.0 m/s', 'from 255°', '+1.20', '-0.80', '+0.30', 'SIM_WIND',
                  '9.12', '262.1°', '+2.1°', '20.0 Hz', 'missed 3', '10.2 m', '8.1 m/s',
                  'LEARNING', 'settled', '7.9 m/s  from 257°', 'off by 0.4 m/s, -2°',
                  'in flight with aiding', 'seed 7'):
        assert piece in text, f'{piece!r} is missing at {width} columns:\n{text}'
    assert '…' not in text


def test_the_scenario_in_force_is_named():
    assert '255°  front.yaml' in '\n'.join(drawn([a_vehicle(scenario='/winds/front.yaml')], 80))


numbers = st.floats(allow_nan=True, allow_infinity=True) | st.floats(-100.0, 100.0)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(width=st.integers(20, 200), height=st.integers(2, 50), count=st.integers(1, 9),
       name=st.sampled_from(['/', '/a', '/fleet/a_vehicle_with_a_very_long_name_indeed']),
       numbers=st.lists(numbers, min_size=8, max_size=8), phase=st.sampled_from(
           [*top_screen.PHASE_STYLES, '', 'of a later version']),
       state=st.booleans(), ekf=st.booleans(), alive=st.booleans())
def test_no_line_is_wider_and_no_picture_higher_than_the_terminal(
        width, height, count, name, numbers, phase, state, ekf, alive):
    vehicles = []
    for i in range(count):
        vehicle = Vehicle(f'{name}{i}', alive=alive)
        if state:
            vehicle.hear_state(a_state(
                u=numbers[0], v=numbers[1], sigma_u=numbers[2], airspeed=numbers[3],
                sim_wind_spd=numbers[4], sim_wind_dir=numbers[5], height=numbers[6],
                tick_rate=numbers[7], gust=Vector3(x=numbers[0], y=numbers[1], z=0.0),
                mean_wind_from_deg=numbers[5]), 99.0)
        if ekf:
            vehicle.hear_ekf(an_ekf(phase, from_deg=numbers[5], error_speed=numbers[0]), 99.0)
        vehicles.append(vehicle)
        assert '\n' not in top_screen.line(vehicle, 100.0)
    lines = drawn(vehicles, width, height)
    assert max(len(line) for line in lines) <= width
    assert len(lines) <= max(height, 2)


def test_arrows_point_the_way_the_air_moves():
    # 270 is a west wind, which blows towards the east: to the right with north up.
    assert [top_screen.arrow(d) for d in (270.0, 180.0, 90.0, 0.0, 359.0, 225.0, math.nan)] == [
        '→', '↑', '←', '↓', '↓', '↗', '·']


def test_a_gauge_is_full_at_three_standard_deviations_on_its_side():
    assert top_screen.gauge(3.0, 1.0, 11).plain == '─────┼━━━━━'
    assert top_screen.gauge(-9.0, 1.0, 11).plain == '━━━━━┼─────'
    assert top_screen.gauge(0.0, 1.0, 11).plain == '─────┼─────'


def test_a_sparkline_shows_the_newest_values_at_the_right():
    assert top_screen.sparkline([9.0, -3.0, 0.0, 2.9], 1.0, 3).plain == '▁▅█'
    assert top_screen.sparkline([0.0], 1.0, 3).plain == '  ▅'


def test_numbers_that_do_not_exist_are_dashes():
    vehicle = a_vehicle()
    vehicle.hear_ekf(an_ekf('not_estimated', settled=False, speed=math.nan, from_deg=math.nan,
                            error_speed=math.nan, error_direction=math.nan, reason='no drag'),
                     100.0)
    text = '\n'.join(drawn([vehicle], 80))
    assert 'NOT ESTIMATED' in text
    assert 'nan' not in text
    assert 'settled' not in text


def test_each_phase_has_the_colour_of_its_meaning():
    shown = {}
    for phase in ('ground', 'inhibited', 'init', 'learning', 'coast', 'relearn'):
        vehicle = a_vehicle()
        vehicle.hear_ekf(an_ekf(phase), 100.0)
        line = next(x for x in drawn([vehicle], 80, color='256') if phase.upper() in x)
        shown[phase] = re.search(r'\x1b\[([\d;]+)m●', line).group(1)
    assert len(set(shown.values())) == 6
    assert shown['learning'] == '32'  # ECMA-48: green
    assert shown['coast'] == '31'  # red


def test_a_vehicle_without_news_is_shown_as_stale():
    vehicle = a_vehicle(now=100.0)
    assert 'no news' not in '\n'.join(drawn([vehicle], 60, now=101.0))
    assert 'no news for 5 s' in '\n'.join(drawn([vehicle], 60, now=105.0))
    vehicle.alive = False
    assert 'gone for 2 min' in '\n'.join(drawn([vehicle], 60, now=220.0))
    assert top_screen.line(vehicle, 220.0).endswith('(gone for 2 min)')


def test_more_vehicles_than_fit_get_a_line_each_and_the_rest_is_counted():
    vehicles = [a_vehicle(f'/drone{i:02d}') for i in range(20)]
    lines = drawn(vehicles, 80, height=30)
    assert len(lines) == 21
    assert '/drone19' in lines[-1]
    lines = drawn(vehicles, 80, height=10)
    assert len(lines) == 10
    assert lines[-1].strip() == '… and 12 more'


def test_a_topic_belongs_to_its_namespace_or_to_itself():
    assert vehicle_of('/fleet/a/wind/state', WIND_STATE) == '/fleet/a'
    assert vehicle_of('/wind/state', WIND_STATE) == '/'
    assert vehicle_of('/ekf_wind', EKF_WIND) == '/'
    assert vehicle_of('/renamed', WIND_STATE) == '/renamed'


# ------------------------------------------------------------------------------ the program


class Fleet:
    """Publishes the wind of vehicles, twenty times a second."""

    def __init__(self):
        self.node = rclpy.create_node('fleet')
        self.publishers = {}
        self.t = 0.0
        self.lock = threading.Lock()
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def join(self, name):
        with self.lock:
            self.publishers[name] = (
                self.node.create_publisher(WindState, f'{name}/wind/state', common.STREAM_QOS),
                self.node.create_publisher(EkfWind, f'{name}/ekf_wind', common.LATCHED_QOS))

    def leave(self, name):
        with self.lock:
            for publisher in self.publishers.pop(name):
                self.node.destroy_publisher(publisher)

    def _run(self):
        while not self.stop.wait(0.05):
            with self.lock:
                self.t += 0.05
                for state, ekf in self.publishers.values():
                    state.publish(a_state(self.t, u=math.sin(self.t)))
                    ekf.publish(an_ekf())

    def close(self):
        self.stop.set()
        self.thread.join(10)
        self.node.destroy_node()


@pytest.fixture
def fleet():
    rclpy.init()
    made = Fleet()
    yield made
    made.close()
    rclpy.try_shutdown()


@contextlib.contextmanager
def running(*arguments, **options):
    process = subprocess.Popen([*WIND_TOP, *arguments], **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


class Lines:
    """What a process prints into a pipe."""

    def __init__(self, stream):
        self.text = ''
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def _read(self, stream):
        for line in stream:
            self.text += line

    def wait_for(self, pattern, what, timeout=120):
        return wait_until(lambda: re.search(pattern, self.text), timeout, what)


def test_in_a_pipe_vehicles_come_and_go_as_plain_lines(fleet):
    fleet.join('/alpha')
    with running(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        lines = Lines(process.stdout)
        first = lines.wait_for(r'(?m)^/alpha t=.* error=.*$', 'a line of /alpha').group(0)
        for piece in ('mean=8.00 from=255.0', 'SIM_WIND_SPD=9.12', 'missed=3', 'ekf=learning',
                      'error=0.40'):
            assert piece in first
        fleet.join('/fleet/beta')
        lines.wait_for(r'(?m)^/fleet/beta t=', 'a line of a vehicle that came later')
        fleet.leave('/alpha')
        lines.wait_for(r'(?m)^/alpha .*\(gone', '/alpha to be shown as gone')
        seen = lines.text.count('/fleet/beta')
        began = time.monotonic()
        wait_until(lambda: lines.text.count('/fleet/beta') >= seen + 3, 10, 'three more lines')
        assert 1.5 < time.monotonic() - began < 6.0  # one a second
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
        assert '\x1b' not in lines.text
        assert process.stderr.read() == ''


def test_once_prints_one_line_for_each_vehicle_asked_for_and_leaves(fleet):
    fleet.join('/alpha')
    fleet.join('/beta')
    with (running('--once', stdout=subprocess.PIPE, text=True) as every,
          running('--once', 'beta', stdout=subprocess.PIPE, text=True) as one):
        printed = [process.communicate(timeout=120)[0] for process in (every, one)]
        assert every.returncode == one.returncode == 0
    assert [line.split()[0] for line in printed[0].splitlines()] == ['/alpha', '/beta']
    assert [line.split()[0] for line in printed[1].splitlines()] == ['/beta']


def test_when_the_reader_leaves_there_is_no_traceback(fleet):
    fleet.join('/alpha')
    run = subprocess.run(f'{sys.executable} -m dryden_wind_ros.tools.wind_top | head -n 1',
                         shell=True, capture_output=True, text=True, timeout=120)
    assert run.stdout.startswith('/alpha ')
    assert run.stderr == ''


def test_where_nothing_is_heard_the_topics_are_named_within_seconds():
    run = subprocess.run([*WIND_TOP, '--once'], capture_output=True, text=True, timeout=120)
    assert run.returncode == 1
    assert run.stdout == ''
    waited = float(re.search(r'No vehicle heard for (\d+) s', run.stderr).group(1))
    assert waited <= 5.0
    assert '*/wind/state' in run.stderr
    assert '*/ekf_wind' in run.stderr
    assert f'ROS domain {os.environ["ROS_DOMAIN_ID"]}' in run.stderr


def test_on_a_terminal_it_is_a_screen_that_ctrl_c_leaves_as_it_was(fleet):
    fleet.join('/alpha')
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('HHHH', 30, 40, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ('COLUMNS', 'LINES')}
    with running(stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
                 env=environment | {'TERM': 'xterm-256color'}) as process:
        os.close(theirs)
        text = ''

        def shown(piece):
            nonlocal text
            while select.select([ours], [], [], 0.0)[0]:
                try:
                    text += os.read(ours, 65536).decode(errors='replace')
                except OSError:  # the other end is closed
                    break
            return piece in text
        wait_until(lambda: shown('LEARNING'), 20, 'the EKF phase on the screen')
        assert shown('\x1b[?1049h')  # xterm: the alternate screen
        assert '╭' in text
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
        assert shown('\x1b[?1049l')
        assert '\x1b[?25h' in text  # the cursor is back
        assert 'Traceback' not in text
    os.close(ours)


def test_a_terminal_that_can_show_no_screen_gets_lines(fleet):
    fleet.join('/alpha')
    ours, theirs = pty.openpty()
    with running(stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
                 env=os.environ | {'TERM': 'dumb'}) as process:
        os.close(theirs)
        text = ''

        def lines():
            nonlocal text
            while select.select([ours], [], [], 0.0)[0]:
                text += os.read(ours, 65536).decode(errors='replace')
            return text.count('/alpha t=') >= 2
        wait_until(lines, 20, 'two lines of /alpha')
        assert '\x1b' not in text
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
    os.close(ours)


def test_a_picture_that_cannot_be_saved_is_refused_at_the_start(tmp_path):
    for path in (tmp_path, tmp_path / 'no' / 'top.svg'):
        run = subprocess.run([*WIND_TOP, '--svg', str(path)], capture_output=True, text=True,
                             timeout=120)
        assert run.returncode == 2
        assert f'--svg {path}: it must be a file' in run.stderr


def test_help_says_what_it_does():
    run = subprocess.run([*WIND_TOP, '--help'], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0
    assert '--once' in run.stdout
    assert 'EKF3' in run.stdout
