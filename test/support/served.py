"""A bridge without ROS in the test's own process, and what it said."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dryden_wind_ros.sitl.connection import parse_connection
from dryden_wind_ros.sitl.loop import LinkLoop
from dryden_wind_ros.sitl.parameters import Phase
from dryden_wind_ros.sitl.session import Session, SessionSettings
from support import wait_until

#: As the user left them; none is a default of SITL's, none is anything that we write.
USERS = {'SIM_WIND_SPD': 3.25, 'SIM_WIND_DIR': 77.0, 'SIM_WIND_DIR_Z': -2.5,
         'SIM_WIND_TURB': 0.75, 'SIM_WIND_TC': 4.0, 'SIM_WIND_T': 2.0}
AS_THE_USER_LEFT_IT = [option for name, value in USERS.items()
                       for option in ('--param', f'{name}={value}')]
FLYING = ['--flight', 'hover']


class Served:
    """A session served by its own thread, and everything it said."""

    def __init__(self, session: Session, events: list) -> None:
        self.session = session
        self.events = events

    @property
    def text(self) -> str:
        return '\n'.join(f'{event.level.name} {event.text}' for event in self.events)

    @property
    def status(self):
        return self.session.status()[1]

    def wait_phase(self, phase: Phase, timeout: float = 20.0) -> None:
        wait_until(lambda: self.status.phase is phase, timeout,
                   f'{phase}; it is {self.status}; it said: {self.text}')

    def wait_said(self, words: str, timeout: float = 20.0) -> None:
        wait_until(lambda: words in self.text, timeout, f'{words!r}; it said: {self.text}')

    def wait_steady(self, timeout: float = 20.0) -> None:
        wait_until(lambda: self.status.phase is Phase.WRITING and not self.status.unconfirmed,
                   timeout, f'everything to be confirmed; it said: {self.text}')


@contextmanager
def served(connection: str, state_dir: Path, restore: bool = True, on_tick=None,
           **settings) -> Iterator[Served]:
    events, errors = [], []
    loop = LinkLoop(errors.append)
    session = Session(parse_connection(connection),
                      SessionSettings(state_dir=str(state_dir), **settings),
                      on_event=events.append, on_tick=on_tick, on_odometry=lambda sample: None)
    loop.start()
    session.start(loop)
    try:
        yield Served(session, events)
    finally:
        if restore:
            session.begin_restore()
            session.wait_restored()
        loop.stop()
    assert not errors


def files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob('*') if path.suffix != '.lock')


def environment() -> dict[str, str]:
    return {**os.environ, 'PYTHONPATH': os.pathsep.join(
        [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent.parent),
         os.environ.get('PYTHONPATH', '')])}
