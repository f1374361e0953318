"""Gives a Gazebo world the newest wind, one command at a time, and sees when each arrived.

Gazebo takes one command a physics step, the newest of those that wait first and the older ones in
the steps after it. So two commands that meet in one step come in the wrong order, and when the
simulation runs faster than commands are taken, they pile up and come seconds late. Here the next
wind is sent only when the world has answered with the one before. Winds that come meanwhile replace
each other: what is late is left out, never queued.

States of the writer's thread::

    finding --the world answered, or patience is over--> serving --close--> putting back
             (nothing is sent)                           (send, then ask until it is there)
"""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from dryden_wind_ros.gazebo.transport import Vector, Wind, WindLink

FIND_S = 1.0
"""How long one question may take while the world is looked for, s: discovery alone takes 0.2 s."""

PATIENCE_S = 5.0
"""How long after the first wind it is waited for the world's answer before winds are sent, s."""

ASK_S = 0.2
"""How long one question may take later, s: an answer of a running Gazebo takes 0.2 ms."""

LOST_S = 1.0
"""A wind that the world does not have after this time is given up for the newest, s."""

GONE_S = 0.5
"""A world that does not answer for so long at the end has ended, s."""

RESTORE_S = 2.0
"""How long is tried at the end to put the world's wind back, s."""

TICK_S = 0.05
"""Time between two winds, s of sim time."""

CALM = Wind((0.0, 0.0, 0.0))
_KEPT = 100
_PAUSE_S = 0.0005


@dataclass(frozen=True)
class WriterStatus:
    """How the writer fares.

    Attributes
    ----------
    found : Wind or None
        The wind that the world had before any was sent; None: not known.
    answer : Wind or None
        Its newest answer; None if it did not answer the last question.
    sent, arrived, replaced : int
        Winds sent, seen in the world, and left out because a newer one was there.
    delay, delay_95 : float
        From a wind's tick to the world, s of wall time, median and 95 % of the last hundred; NaN
        before the first.
    speed : float
        Sim seconds per wall second, lately; NaN while unknown.
    foreign : bool
        Whether the world has a wind that was not sent from here.
    """

    found: Wind | None
    answer: Wind | None
    sent: int
    arrived: int
    replaced: int
    delay: float
    delay_95: float
    speed: float
    foreign: bool

    @property
    def delay_sim(self) -> float:
        """Median delay in sim time, s."""
        return self.delay * self.speed

    @property
    def holds_to_speed(self) -> float:
        """Highest speed at which a wind is still there before the next one, most of the time."""
        return TICK_S / self.delay_95 if self.delay_95 > 0.0 else math.nan


class WorldWriter:
    """Gives a world the newest wind.

    Parameters
    ----------
    world : str
        Its name, for messages.
    link : WindLink
        The world. It is used from the writer's own thread only.
    info, warn : callable
        Take what a user should read.
    """

    def __init__(self, world: str, link: WindLink, info: Callable[[str], None],
                 warn: Callable[[str], None]) -> None:
        self._world, self._link = world, link
        self._info, self._warn = info, warn
        self._condition = threading.Condition()
        self._newest: tuple[Vector, int, float] | None = None
        self._first_at: float | None = None
        self._closing = False
        self._found: Wind | None = None
        self._answer: Wind | None = None
        self._answered = False
        self._recent: deque[Wind] = deque(maxlen=_KEPT)
        self._sent = self._arrived = self._replaced = 0
        self._delays: deque[float] = deque(maxlen=_KEPT)
        self._stamps: deque[tuple[int, float]] = deque(maxlen=_KEPT)
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name='world wind', daemon=True)
        self._thread.start()

    def put(self, velocity: Vector, stamp_ns: int) -> None:
        """Hand over the newest wind, ENU, m/s, of a sim time; returns at once."""
        now = time.monotonic()
        with self._condition:
            if self._newest is not None:
                self._replaced += 1
            self._newest = velocity, stamp_ns, now
            if self._stamps and stamp_ns < self._stamps[-1][0]:
                self._stamps.clear()
            self._stamps.append((stamp_ns, now))
            if self._first_at is None:
                self._first_at = now
            self._condition.notify()

    def status(self) -> WriterStatus:
        """Return how it fares; raise what ended its thread, if anything did."""
        if self._failure is not None:
            raise self._failure
        with self._condition:
            delays, stamps = sorted(self._delays), list(self._stamps)
            answer, found = self._answer, self._found
            foreign = (bool(self._sent) and answer is not None
                       and not any(same(answer, wind) for wind in self._recent)
                       and not same(answer, found or answer))
        speed = math.nan
        if len(stamps) > 1 and stamps[-1][1] > stamps[0][1]:
            speed = (stamps[-1][0] - stamps[0][0]) * 1e-9 / (stamps[-1][1] - stamps[0][1])
        return WriterStatus(
            found, answer, self._sent, self._arrived, self._replaced,
            statistics.median(delays) if delays else math.nan,
            delays[int(0.95 * (len(delays) - 1))] if delays else math.nan, speed, foreign)

    def close(self) -> None:
        """Stop, and give the world back the wind it was found with."""
        with self._condition:
            if self._closing:
                return
            self._closing = True
            self._condition.notify()
        self._thread.join()
        self._restore()

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        try:
            self._find()
            while not self._closing:
                with self._condition:
                    if self._newest is None and not self._closing:
                        self._condition.wait(1.0)
                    newest, self._newest = self._newest, None
                if self._closing:
                    return
                if newest is None:
                    self._ask(ASK_S)
                else:
                    self._give(*newest)
        except BaseException as error:
            self._failure = error

    def _find(self) -> None:
        """Ask which wind the world has: that one is to be put back. Nothing is sent before."""
        while not self._closing:
            answer = self._ask(FIND_S)
            if answer is not None:
                self._found = answer
                self._info(f'world {self._world} was found with {in_words(answer)}')
                return
            first_at = self._first_at
            if first_at is not None and time.monotonic() - first_at > PATIENCE_S:
                self._warn(f'world {self._world} does not say which wind it has: it is sent winds '
                           'all the same, and will be left with none')
                return
            with self._condition:
                if not self._closing:
                    self._condition.wait(0.1)

    def _give(self, velocity: Vector, stamp_ns: int, received_at: float) -> None:
        """Send a wind, and see it arrive."""
        wind = Wind(velocity)
        with self._condition:
            self._recent.append(wind)
        if not self._link.send(wind):
            return
        self._sent += 1
        while not self._closing:
            answer = self._ask(ASK_S)
            now = time.monotonic()
            if answer is not None and same(answer, wind):
                with self._condition:
                    self._arrived += 1
                    self._delays.append(now - received_at)
                return
            if now - received_at > LOST_S:
                return
            time.sleep(_PAUSE_S)

    def _ask(self, timeout: float) -> Wind | None:
        answer = self._link.ask(timeout)
        with self._condition:
            self._answer = answer
            self._answered = self._answered or answer is not None
        return answer

    # ------------------------------------------------------------------ the end

    def _restore(self) -> None:
        if not self._sent:
            return
        if self._answered and self._link.ask(GONE_S) is None:
            self._info(f'world {self._world} does not answer any more: it has ended, and its wind '
                       'with it')
            return
        found = self._found or CALM
        deadline = time.monotonic() + RESTORE_S
        if not found.enabled:
            # A wind that is switched off stays as it was for LiftDrag and the motor models.
            self._put_back(CALM, deadline)
        if self._put_back(found, deadline):
            again = 'has' if self._found is not None else 'was left with'
            self._info(f'world {self._world} {again} {in_words(found)}'
                       + (' again' if self._found is not None else ''))
        else:
            self._warn(f'world {self._world} did not say that it has {in_words(found)} again: it '
                       'is gone or stands still')

    def _put_back(self, wind: Wind, deadline: float) -> bool:
        """Send a wind until the world has it: what waits in its queue may come after it."""
        while True:
            self._link.send(wind)
            time.sleep(0.05)  # a few physics steps, in which commands before this one are used up
            answer = self._link.ask(ASK_S)
            if answer is not None and same(answer, wind):
                return True
            if time.monotonic() >= deadline:
                return False


def same(one: Wind, other: Wind) -> bool:
    """Return whether two winds are the same to 1e-6 m/s."""
    return one.enabled == other.enabled and math.dist(one.velocity, other.velocity) < 1e-6


def in_words(wind: Wind) -> str:
    """Return a wind as text."""
    east, north, up = wind.velocity
    return (f'wind ({east:g}, {north:g}, {up:g}) m/s east, north, up'
            + ('' if wind.enabled else ', switched off'))
