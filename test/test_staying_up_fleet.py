"""Three vehicles in one process (wind_fleet): what happens to one does not disturb the others."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager

import pytest
from support import wait_until
from support.relay import Relay
from support.stage import USERS, HostedVehicle, User, environment
from support.vehicle import Probe, Process

pytestmark = pytest.mark.ros2

NAMES = ('one', 'two', 'three')


class Fleet:
    """Three vehicles in processes of their own, the second behind a relay, and wind_fleet."""

    def __init__(self, folder):
        self.vehicles = [HostedVehicle(folder / f'{name}.json', speedup=5.0) for name in NAMES]
        self.relay = Relay([self.vehicles[1].ports[1]])
        file = folder / 'fleet.yaml'
        file.write_text('\n'.join(
            f'- {{name: {name}, connection: "{connection}"}}' for name, connection in zip(
                NAMES, (self.vehicles[0].connection, self.relay.connection,
                        self.vehicles[2].connection), strict=True)))
        self.user = User(*(f'/{name}' for name in NAMES))
        self.process = Process(
            ['-m', 'dryden_wind_ros.nodes.wind_fleet', '--ros-args', '-p',
             f'vehicles_file:={file}', '-p', 'mean_wind.speed:=8.0'], environment())

    def newest(self, name):
        return self.user.states[f'/{name}'][-1]

    def until(self, condition, what, timeout=40):
        wait_until(condition, timeout, lambda: (
            f'{what}; the fleet said: {self.process.text[-4000:]}'))

    @property
    def found(self):
        """How often the second vehicle was found."""
        return sum('[two.mavlink_bridge]' in line and 'vehicle 1 found' in line
                   for line in list(self.process.output))

    def ticks_on(self, name, ticks=20):
        states = self.user.states[f'/{name}']
        states.clear()
        self.until(lambda: len(states) >= ticks, f'{ticks} ticks of vehicle {name}')

    def flies(self, name):
        """Wait for winds of the air in the vehicle, by its own word."""
        self.ticks_on(name)
        states = self.user.states[f'/{name}']
        with Probe(self.vehicles[NAMES.index(name)]) as probe:
            self.until(lambda: any(abs(state.sim_wind_spd - speed) < 1e-3 for speed in (
                probe.read('SIM_WIND_SPD'),) for state in list(states)),
                f'the wind of the air in vehicle {name}')

    @contextmanager
    def others_undisturbed(self):
        """Check that one and three meet every tick of their air, with no gap in what they record.
        """
        before = {name: (self.newest(name), self.user.history(f'/{name}'))
                  for name in ('one', 'three')}
        yield
        for name, (state, history) in before.items():
            self.flies(name)
            newest = self.newest(name)
            assert newest.restarts == state.restarts
            assert newest.missed_ticks == state.missed_ticks
            after = self.user.history(f'/{name}')
            times = sorted(after)
            assert round((times[-1] - times[0]) / 0.05) == len(times) - 1
            oldest = times[0]
            assert all(after[t] == gust for t, gust in history.items() if t >= oldest)

    def close(self):
        self.process.__exit__()
        self.relay.__exit__()
        for vehicle in self.vehicles:
            vehicle.close()
        self.user.close()


@pytest.fixture(scope='module')
def shared(tmp_path_factory):
    fleet = Fleet(tmp_path_factory.mktemp('fleet'))
    yield fleet
    fleet.close()


@pytest.fixture
def fleet(shared):
    for name in NAMES:
        shared.flies(name)
    yield shared
    for name in NAMES:
        shared.flies(name)
    for log in (shared.process, *shared.vehicles):
        for word in ('Traceback', 'Error while handling', 'Error in a callback', 'Internal Errors'):
            assert word not in log.text, log.text


def test_one_of_3_vehicles_restarted_5_times_does_not_disturb_the_others(fleet):
    with fleet.others_undisturbed():
        for _ in range(5):
            found = fleet.found
            fleet.vehicles[1].do('reboot')
            fleet.until(lambda: fleet.found > found,  # noqa: B023
                        'the restarted vehicle to be found')
            fleet.ticks_on('two')
        assert 'sim time went' in fleet.process.text


def test_one_of_3_vehicles_killed_and_started_2_times_does_not_disturb_the_others(fleet):
    with fleet.others_undisturbed():
        for _ in range(2):
            found = fleet.found
            fleet.vehicles[1].kill()
            fleet.vehicles[1].start()
            fleet.until(lambda: fleet.found > found,  # noqa: B023
                        'the vehicle that was started anew to be found')
            fleet.ticks_on('two')


def test_one_of_3_links_cut_5_times_does_not_disturb_the_others(fleet):
    before = fleet.user.history('/two')
    with fleet.others_undisturbed():
        for _ in range(5):
            lost = fleet.process.text.count('connection lost')
            fleet.relay.cut()
            fleet.until(lambda: fleet.process.text.count('connection lost') > lost,  # noqa: B023
                        'the cut to be noticed')
            joined = fleet.relay.connections
            fleet.relay.restore()
            # Ticks of before the cut may still be on their way to this process
            fleet.until(lambda: fleet.relay.connections > joined,  # noqa: B023
                        'the fleet to come back')
            fleet.ticks_on('two')
    after = fleet.user.history('/two')
    assert all(after[t] == gust for t, gust in before.items() if t >= min(after))


def test_a_vehicle_gone_for_good_does_not_keep_the_others_from_being_put_back(shared):
    for name in NAMES:
        shared.flies(name)
    shared.vehicles[1].kill()
    shared.until(lambda: 'connection lost (closed by the other side)' in shared.process.text,
                 'the loss to be noticed')
    begun = time.time()
    # Not everything is back: the exit code says so.
    assert shared.process.end() == 1
    given_up, = re.findall(r'\[(\d+\.\d+)\].*\(no vehicle there\); the values found are kept in',
                           shared.process.text)
    assert float(given_up) - begun < 6
    assert shared.process.text.count('put back and confirmed') == 2
    assert '1 of 3 vehicles could not be put back: /two' in shared.process.text
    for vehicle in (shared.vehicles[0], shared.vehicles[2]):
        with Probe(vehicle) as probe:
            assert probe.wind() == pytest.approx(USERS)
    assert 'Traceback' not in shared.process.text
