"""A port on which more arrives than can be read."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import time

from pymavlink.dialects.v20 import ardupilotmega as mavlink
from support import free_port, wait_until
from support.vehicle import Emulator
from support.watched import Watched

from dryden_wind_ros.sitl import reading
from dryden_wind_ros.sitl.loop import LinkLoop

#: Sends as much as it can to a UDP port until its input is closed, for 30 s at most.
FLOOD = """
import select, socket, sys, time
port, until = int(sys.argv[1]), time.monotonic() + 30
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.connect(('127.0.0.1', port))
print('flooding', flush=True)
while time.monotonic() < until and not select.select([sys.stdin], [], [], 0)[0]:
    for _ in range(500):
        try:
            sender.send(b'\\xfd\\x09' + bytes(200))
        except OSError:
            pass
"""


def test_one_flooded_port_starves_nobody():
    flooded_port, port = free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_DGRAM)
    errors: list[BaseException] = []
    loop = LinkLoop(errors.append)
    with contextlib.ExitStack() as stack:
        flooded, other = (stack.enter_context(Watched(f'udp:127.0.0.1:{number}', loop=loop))
                          for number in (flooded_port, port))
        loop.start()
        stack.callback(loop.stop)
        for number in (flooded_port, port):
            stack.enter_context(Emulator('--connection', f'udpout:127.0.0.1:{number}'))
        for watched in (flooded, other):
            watched.wait_for_ticks(20)
        flood = subprocess.Popen([sys.executable, '-c', FLOOD, str(flooded_port)],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            assert flood.stdout is not None
            assert flood.stdout.readline() == b'flooding\n'
            # Whether it is more than can be read depends on the machine; that it comes does not.
            flooded.wait_said('sends here too')
            begun, begun_flooded = len(other.times()), len(flooded.times())
            # Two seconds of vehicle time under the flood: every tick is reached.
            wait_until(lambda: len(other.times()) > begun + 80, 20, 'the other vehicle')
            ticks = {ms // 50 for ms in other.times()[begun:]}
            assert ticks == set(range(min(ticks), max(ticks) + 1))
            # The flooded one loses some, and goes on with the newest.
            wait_until(lambda: len(flooded.times()) > begun_flooded, 20, 'the flooded vehicle')
            assert not flooded.link.ambiguous
        finally:
            flood.communicate()
        wait_until(lambda: not any('more arrives' in problem for problem
                                   in flooded.link.status().problems), 20, 'the end of the flood')
        flooded.wait_for_ticks(20)
        assert flooded.link.status().restarts == 0
        assert not errors


def test_of_a_stream_that_is_too_fast_the_newest_is_taken(monkeypatch):
    """Not what was sent minutes ago: megabytes wait in the kernel's buffers otherwise."""
    # Sender and reader share this process: for five seconds on end, neither outruns the other.
    monkeypatch.setattr(reading, '_BEHIND_S', 0.5)
    codec = mavlink.MAVLink(None, 1, 1)
    beat = mavlink.MAVLink_heartbeat_message(2, mavlink.MAV_AUTOPILOT_ARDUPILOTMEGA, 0, 0, 3, 3)
    with contextlib.closing(socket.socket()) as server:
        server.bind(('127.0.0.1', 0))
        server.listen()
        with Watched(f'tcp:127.0.0.1:{server.getsockname()[1]}') as watched:
            client, _ = server.accept()
            stop = threading.Event()
            begun = time.monotonic()
            sent_ms = [0]

            def talk() -> None:
                with contextlib.suppress(OSError):
                    filler = b'\0' * 100_000
                    while not stop.is_set() and time.monotonic() < begun + 30:
                        sent_ms[0] = round(1000 * (time.monotonic() - begun))
                        client.sendall(beat.pack(codec) + mavlink.MAVLink_system_time_message(
                            0, sent_ms[0]).pack(codec) + filler)

            talker = threading.Thread(target=talk)
            talker.start()
            try:
                watched.wait_said('more arrives than can be read')
                for _ in range(5):
                    seen = watched.link.time or 0.0
                    wait_until(lambda seen=seen: (watched.link.time or 0.0) > seen + 0.1, 20,
                               'time to go on')
                assert watched.link.time > sent_ms[0] / 1000 - 3
            finally:
                stop.set()
                client.close()
                talker.join()
