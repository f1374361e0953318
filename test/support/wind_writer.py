"""Program for tests: a bridge without ROS that writes another wind at every tick.

``python -m support.wind_writer CONNECTION STATE_DIR [steady]``. Puts the wind back at SIGTERM.
"""

from __future__ import annotations

import queue
import signal
import sys
import threading
import time

from dryden_wind_ros.sitl.connection import parse_connection
from dryden_wind_ros.sitl.loop import LinkLoop
from dryden_wind_ros.sitl.session import Session, SessionSettings
from dryden_wind_ros.sitl.sim_wind import Wind


def main() -> None:
    connection, state_dir = sys.argv[1:3]
    steady = 'steady' in sys.argv
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())

    def say(text: str) -> None:
        print(text, flush=True)

    ticks: queue.SimpleQueue[int] = queue.SimpleQueue()

    def blow() -> None:
        # As the wind node does: every tick in its turn, also those that a stall left behind.
        while True:
            milliseconds = ticks.get()
            session.set_wind(Wind(5 + milliseconds % 1000 / 1000, milliseconds / 50 % 360,
                                  milliseconds / 50 % 7, 0.0))
            time.sleep(0.0002)

    loop = LinkLoop(lambda error: say(f'ERROR {error!r}'))
    session = Session(parse_connection(connection), SessionSettings(state_dir=state_dir),
                      on_event=lambda event: say(f'{event.level.name} {event.text}'),
                      on_tick=ticks.put, on_odometry=lambda sample: None)
    if not steady:
        threading.Thread(target=blow, daemon=True).start()
    loop.start()
    session.start(loop)
    session.set_wind(Wind(9.5, 123.0, 4.0, 0.0))
    while not over.wait(0.05):
        status = session.status()[1]
        if status.sent >= 6 and (not steady or not status.unconfirmed):
            say(f'SENT {status.sent}')
    session.begin_restore()
    say(f'RESTORED {session.wait_restored()}')
    loop.stop()


if __name__ == '__main__':
    main()
