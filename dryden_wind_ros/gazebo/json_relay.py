"""Between a SITL with ``--model JSON`` and its physics: what SITL's sensors are told of the wind.

Data flow, one round a physics step (SITL waits for the answer before it goes on)::

    SITL --servo packet--> Relay --the same bytes--> physics
    SITL <--JSON and wind-- Relay <--------JSON------ physics

SITL's JSON backend (``libraries/SITL/SIM_JSON.h``) takes two keys that ardupilot_gazebo does not
send: ``velocity_wind``, the velocity of the air over the ground, NED, m/s, and ``airspeed``, m/s,
true airspeed and what the pitot reads. Without ``airspeed`` SITL takes the air to stand still. Both
are put into the answer as it passes; nothing else of it is touched.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Vector = tuple[float, float, float]

SITL_PORT = 9102
"""UDP port on which the relay hears the SITL of instance 0."""

PHYSICS_PORT = 9002
"""UDP port of the physics of instance 0, as ardupilot_gazebo has it in ``<fdm_port_in>``."""

PORT_STEP = 10
"""From one instance to the next."""

MAX_INSTANCE = 999

MAX_DATAGRAM = 65_507
"""Largest UDP datagram over IPv4, bytes."""

KEYS = ('velocity_wind', 'airspeed')


class RelayError(Exception):
    """A relay cannot begin; the text says why and what to do."""


class NotAnAnswer(ValueError):
    """A datagram of the physics is nothing that wind could be put into; the text says why."""


def with_wind(answer: bytes, wind_ned: Vector) -> bytes:
    """Return an answer of the physics with the wind in it.

    Parameters
    ----------
    answer : bytes
        JSON of the physics, with ``velocity`` (NED, m/s) in it.
    wind_ned : tuple of float, shape (3,)
        Velocity of the air over the ground, m/s.

    Returns
    -------
    bytes
        The same with ``velocity_wind`` and ``airspeed``, the length of the velocity of the vehicle
        through the air; unchanged if the physics says ``velocity_wind`` or ``airspeed`` itself.

    Raises
    ------
    NotAnAnswer
        If it is not a JSON object, or its velocity is not three finite numbers.
    """
    try:
        content = json.loads(answer.decode())
        north, east, down = content['velocity']
        if bool in (type(north), type(east), type(down)):  # of which Python makes 1 and 0
            raise TypeError
        airspeed = math.sqrt((north - wind_ned[0])**2 + (east - wind_ned[1])**2
                             + (down - wind_ned[2])**2)
    except KeyError:
        raise NotAnAnswer('it has no velocity') from None
    except (ValueError, RecursionError) as error:
        raise NotAnAnswer(f'it is not JSON, or its velocity is not three numbers ({error})'
                          ) from None
    except TypeError:
        raise NotAnAnswer('it is not a JSON object, or its velocity is not three numbers'
                          ) from None
    except OverflowError:
        airspeed = math.inf
    if not airspeed < math.inf:
        raise NotAnAnswer('its velocity is not finite')
    if 'velocity_wind' in content or 'airspeed' in content:
        return answer
    end = answer.rindex(b'}')
    return (b'%b,"velocity_wind":[%.6f,%.6f,%.6f],"airspeed":%.6f%b'
            % (answer[:end], *wind_ned, airspeed, answer[end:]))


@dataclass(frozen=True)
class RelayStatus:
    """What went through a relay so far.

    Attributes
    ----------
    steps : int
        Servo packets passed on to the physics.
    answers, with_wind : int
        Answers passed on to SITL, and those of them with the wind put in.
    odd, too_large : int
        Answers passed on as they were because no wind could be put in; answers that do not fit
        into a datagram with the wind in them, passed on as they were.
    refused : int
        Datagrams that the other side's port refused, or that nobody had asked for.
    """

    steps: int = 0
    answers: int = 0
    with_wind: int = 0
    odd: int = 0
    too_large: int = 0
    refused: int = 0


class Relay:
    """The relay of one vehicle.

    Parameters
    ----------
    name : str
        What to call the vehicle in messages.
    listen : tuple of (str, int)
        Address and UDP port on which SITL is heard.
    physics : tuple of (str, int)
        Address and UDP port of the physics.
    tell : callable
        Called with a text, once for each kind of trouble.

    Attributes
    ----------
    wind_ned : tuple of float, shape (3,), or None
        The wind to be put in, m/s; None: none yet, everything passes as it is. To be set from any
        thread.

    Raises
    ------
    RelayError
        If the port cannot be had.

    Notes
    -----
    It belongs to the thread that serves it. SITL is whoever sent the newest servo packet, so that
    it may be started again; the physics may be, too, because no connection is kept.
    """

    def __init__(self, name: str, listen: tuple[str, int], physics: tuple[str, int],
                 tell: Callable[[str], None]) -> None:
        self.name = name
        self.wind_ned: Vector | None = None
        self._tell = tell
        self._said: set[str] = set()
        self._sitl: tuple[str, int] | None = None
        self._steps = self._answers = self._with_wind = 0
        self._odd = self._too_large = self._refused = 0
        self._down = _socket()
        self._up = _socket()
        try:
            self._down.bind(listen)
        except OSError as error:
            self.close()
            raise RelayError(
                f'{name}: cannot listen for SITL on UDP {listen[0]}:{listen[1]}: {error.strerror}. '
                'Another relay runs, or the port is taken: choose another sitl_port') from None
        try:
            self._up.connect(physics)
        except OSError as error:
            self.close()
            raise RelayError(f'{name}: the physics at {physics[0]}:{physics[1]} cannot be '
                             f'addressed: {error.strerror}') from None

    @property
    def port(self) -> int:
        """UDP port on which SITL is heard."""
        return int(self._down.getsockname()[1])

    def status(self) -> RelayStatus:
        """Return what went through so far."""
        return RelayStatus(self._steps, self._answers, self._with_wind, self._odd,
                           self._too_large, self._refused)

    def handlers(self) -> tuple[tuple[int, Callable[[], None]], ...]:
        """Return the file descriptors to wait on, and what to call when one can be read."""
        return ((self._down.fileno(), self._from_sitl), (self._up.fileno(), self._from_physics))

    def close(self) -> None:
        """Let go of the ports."""
        self._down.close()
        self._up.close()

    def _from_sitl(self) -> None:
        try:
            packet, self._sitl = self._down.recvfrom(MAX_DATAGRAM)
            self._up.send(packet)
            self._steps += 1
        except OSError as error:
            self._trouble(error, 'the physics is not there; SITL waits for it')

    def _from_physics(self) -> None:
        try:
            answer = self._up.recv(MAX_DATAGRAM)
            sitl = self._sitl
            if sitl is None:
                self._refused += 1
                return
            wind = self.wind_ned
            self._down.sendto(answer if wind is None else self._blown(answer, wind), sitl)
            self._answers += 1
        except OSError as error:
            # Over the loopback, the end of the other side shows as an error of the next call.
            self._trouble(error, 'the physics is not there; SITL waits for it')

    def _blown(self, answer: bytes, wind: Vector) -> bytes:
        try:
            blown = with_wind(answer, wind)
        except NotAnAnswer as error:
            self._odd += 1
            self._once('odd', f'an answer of the physics ({len(answer)} bytes) was passed on '
                       f'without wind: {error}')
            return answer
        if blown is answer:
            self._odd += 1
            self._once('own wind', 'the physics sends velocity_wind or airspeed itself: nothing '
                       'is added')
        elif len(blown) > MAX_DATAGRAM:
            self._too_large += 1
            self._once('too large', f'an answer of the physics has {len(answer)} bytes and no room '
                       'for the wind; it was passed on as it is')
            return answer
        else:
            self._with_wind += 1
        return blown

    def _trouble(self, error: OSError, what: str) -> None:
        if isinstance(error, BlockingIOError):
            return  # woken for a datagram that was bad
        self._refused += 1
        self._once('refused', what if isinstance(error, ConnectionRefusedError)
                   else f'a datagram could not be passed on: {error.strerror}')

    def _once(self, key: str, text: str) -> None:
        if key not in self._said:
            self._said.add(key)
            self._tell(f'{self.name}: {text}')


class RelayLoop:
    """One thread that serves the relays of any number of vehicles.

    Parameters
    ----------
    relays : sequence of Relay
        They are closed at the end.
    on_error : callable
        Called with an exception that ended the thread.
    """

    def __init__(self, relays: Sequence[Relay], on_error: Callable[[BaseException], None]) -> None:
        self._relays = relays
        self._on_error = on_error
        self._wake_in, self._wake_out = os.pipe()
        self._thread = threading.Thread(target=self._run, name='json relay', daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread and close the relays."""
        os.write(self._wake_out, b'.')
        self._thread.join()
        os.close(self._wake_in)
        os.close(self._wake_out)
        for relay in self._relays:
            relay.close()

    def _run(self) -> None:
        try:
            with contextlib.closing(select.epoll()) as poller:
                poller.register(self._wake_in, select.EPOLLIN)
                calls = {}
                for relay in self._relays:
                    for number, call in relay.handlers():
                        poller.register(number, select.EPOLLIN)
                        calls[number] = call
                while True:
                    for number, _ in poller.poll():
                        if number == self._wake_in:
                            return
                        calls[number]()
        except BaseException as error:
            self._on_error(error)


def _socket() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setblocking(False)
    return made
