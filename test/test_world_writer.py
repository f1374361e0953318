"""Winds to a Gazebo world, one at a time: WorldWriter against a world that behaves as gz-sim 8's.

Gazebo itself is not here. `World` follows WindEffects.cc: commands wait in a queue, each physics
step takes one, the newest first, and wind_info answers with the one that was taken last.
"""

import itertools
import threading
import time

import pytest
from support import wait_until

from dryden_wind_ros.gazebo.transport import Wind
from dryden_wind_ros.gazebo.world_name import check_world, gz_name, ros_name
from dryden_wind_ros.gazebo.world_writer import CALM, WorldWriter


class World:
    """A world that steps when told, or at each question."""

    def __init__(self, wind=CALM, silent_for=0, step_at_question=True):
        self.wind = wind
        self.queue = []
        self.history = []
        self.sent = []
        self.questions = 0
        self.silent_for = silent_for
        self.step_at_question = step_at_question
        self.alive = True
        self.lock = threading.Lock()

    def send(self, wind):
        with self.lock:
            self.sent.append(wind)
            if self.alive:
                self.queue.append(wind)
        return True

    def ask(self, timeout):
        with self.lock:
            self.questions += 1
            if not self.alive or self.questions <= self.silent_for:
                return None
        if self.step_at_question:
            self.step()
        return self.wind

    def step(self):
        with self.lock:
            if self.queue:
                self.wind = self.queue.pop()
                self.history.append(self.wind)


class Told(list):
    def __call__(self, text):
        self.append(text)


@pytest.fixture
def started():
    """Make writers, and close them."""
    made = []

    def make(world):
        told = Told()
        made.append(WorldWriter('test', world, told, told))
        return made[-1], told
    yield make
    for writer in made:
        writer.close()


def wind(tick):
    return (8.0 + 0.1 * tick, 0.0, 0.0)


def test_no_wind_is_sent_before_the_world_has_said_which_it_has_and_that_one_is_put_back(started):
    found = Wind((0.0, 3.0, 0.0), enabled=False)
    world = World(found, silent_for=3)
    writer, told = started(world)
    writer.put(wind(0), 0)
    wait_until(lambda: world.sent, 10, 'the first wind')
    assert world.questions > 3
    writer.close()
    assert world.wind == found  # switched off, as it was
    assert any('switched off again' in text for text in told)


def test_a_slow_world_gets_the_newest_wind_in_order_and_never_a_queue(started):
    world = World(step_at_question=False)
    writer, _ = started(world)
    longest = 0
    for tick in range(400):
        writer.put(wind(tick), tick * 50_000_000)
        longest = max(longest, len(world.queue))
        if tick % 5 == 0:  # five ticks to each physics step
            world.step()
        time.sleep(0.0005)
    last = Wind(wind(399))

    def arrived():
        world.step()
        return world.wind == last
    wait_until(arrived, 10, 'the last wind in the world')
    assert longest <= 1
    east = [w.velocity[0] for w in world.history]
    assert all(a < b for a, b in itertools.pairwise(east))
    wait_until(lambda: writer.status().arrived == len(east), 5, 'the last wind to be seen')
    status = writer.status()
    assert status.sent == len(east)
    assert status.replaced == 400 - status.sent
    assert status.delay_sim > 0.0


def test_a_wind_that_is_lost_is_followed_by_the_newest(started):
    world = World()
    writer, _ = started(world)
    writer.put(wind(0), 0)
    wait_until(lambda: writer.status().arrived == 1, 10, 'the first wind to arrive')
    world.alive = False  # what is sent now is lost
    writer.put(wind(1), 50_000_000)
    wait_until(lambda: len(world.sent) == 2, 10, 'the second wind to be sent')
    world.alive = True
    writer.put(wind(2), 100_000_000)
    wait_until(lambda: world.wind.velocity == wind(2), 10, 'the third wind in the world')


def test_a_world_that_has_ended_is_not_waited_for(started):
    world = World(Wind((1.0, 0.0, 0.0)))
    writer, told = started(world)
    writer.put(wind(0), 0)
    wait_until(lambda: writer.status().arrived, 10, 'the wind to arrive')
    world.alive = False
    writer.close()
    assert 'has ended' in told[-1]
    assert world.sent == [Wind(wind(0))]


def test_a_world_that_never_answers_is_left_calm(started, monkeypatch):
    monkeypatch.setattr('dryden_wind_ros.gazebo.world_writer.PATIENCE_S', 0.2)
    world = World(silent_for=1_000_000)
    writer, told = started(world)
    writer.put(wind(0), 0)
    wait_until(lambda: world.sent, 10, 'the wind, after patience is over')
    world.silent_for = 0
    writer.close()
    assert world.wind == CALM
    assert any('left with none' in text for text in told)


@pytest.mark.parametrize(('name', 'in_gazebo', 'in_ros'), [
    ('iris_runway', 'iris_runway', 'iris_runway'), ('my world', 'my_world', 'my_world'),
    ('3k-world.v2', '3k-world.v2', '_3k_world_v2'),
])
def test_a_worlds_name_in_topics(name, in_gazebo, in_ros):
    check_world(name)
    assert (gz_name(name), ros_name(name)) == (in_gazebo, in_ros)


@pytest.mark.parametrize('name', ['', ' ', 'a/b', 'a::b', 'a\nb', ' a', 'wörld'])
def test_what_cannot_be_a_world_is_refused_by_name(name):
    with pytest.raises(ValueError, match='world is'):
        check_world(name)


def test_a_world_with_a_space_gets_no_forces():
    with pytest.raises(ValueError, match="rename it 'my_world'"):
        check_world('my world', wrench=True)
