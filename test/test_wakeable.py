"""Waiting for sockets that other threads can interrupt."""

from __future__ import annotations

import selectors
import socket
import threading

import pytest

from dryden_wind_ros.sitl.wakeable import WakeableSelector


@pytest.mark.parametrize('kind', [selectors.DefaultSelector, selectors.PollSelector])
def test_what_is_posted_runs_in_the_thread_that_waits_and_none_is_lost(kind):
    waiter = WakeableSelector(kind)
    done: list[int] = []

    def post() -> None:
        for number in range(2000):
            waiter.post(lambda number=number: done.append(
                number if threading.current_thread() is threading.main_thread() else -1))

    poster = threading.Thread(target=post)
    poster.start()
    while len(done) < 2000:
        before = len(done)
        assert waiter.select(30.0) == []
        assert len(done) > before or poster.is_alive() or len(done) == 2000
    poster.join()
    assert done == list(range(2000))
    waiter.close()
    waiter.wake()  # too late is no error


def test_a_socket_that_is_ready_is_told_by_its_data():
    waiter = WakeableSelector()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        waiter.selector.register(ours, selectors.EVENT_READ, 'ours')
        assert waiter.select(0.0) == []
        theirs.send(b'x')
        assert waiter.select(30.0) == ['ours']
    waiter.close()
