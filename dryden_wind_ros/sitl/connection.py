"""Connection strings, taken apart and judged before anything is opened.

The strings are pymavlink's (``tcp:``, ``tcpin:``, ``udp:``, ``udpin:``, ``udpout:``, ``uds:``,
a serial device). A mistake is named, with what would do instead, and nothing leaves the machine
unless that was asked for.
"""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass
from typing import Any

from dryden_wind_ros.sitl.endpoint import (
    KINDS,
    LOOPBACK,
    EndpointError,
    look_up,
    numeric_address,
    parse_endpoint,
)

EXAMPLES = (
    "'tcp:127.0.0.1:5762' (SITL's second serial port), 'udp:127.0.0.1:14550' (listen for "
    "MAVProxy), 'udpout:127.0.0.1:14551', '/dev/ttyACM0,115200'"
)


class ConnectionStringError(ValueError):
    """A connection string that cannot be used; the text says why and what would do."""


@dataclass(frozen=True)
class ConnectionTarget:
    """A connection string, taken apart and judged.

    Attributes
    ----------
    text : str
        The string as given, without surrounding blanks.
    kind : str
        ``'tcp'`` (client), ``'tcpin'`` (server), ``'udpin'`` (listen), ``'udpout'``, ``'uds'`` or
        ``'serial'``.
    host, port : str, int
        Of the network kinds; '' and 0 otherwise. A client that was given no host has the loopback.
    device, baud : str, int
        Of the serial kind; ``device`` is also the path of a ``uds``.
    """

    text: str
    kind: str
    host: str = ''
    port: int = 0
    device: str = ''
    baud: int = 0

    @property
    def listens(self) -> bool:
        """Whether the other side comes to us."""
        return self.kind in ('udpin', 'tcpin')

    @property
    def identity(self) -> str:
        """The same text for all strings that mean the same connection."""
        if self.kind in ('uds', 'serial'):
            return f'{self.kind}:{os.path.realpath(self.device)}'
        address = numeric_address(self.host or '0.0.0.0') or self.host.lower()
        return f'{self.kind}:{address}:{self.port}'

    @property
    def sitl_instance(self) -> int | None:
        """Instance number I by SITL's port rules (tcp 5760..5763 + 10 I, udp 14550/1 + 10 I)."""
        base, last = {
            'tcp': (5760, 3), 'udpin': (14550, 1), 'udpout': (14550, 1),
        }.get(self.kind, (0, -1))
        instance, offset = divmod(self.port - base, 10)
        return instance if 0 <= instance < 1000 and offset <= last else None


def parse_connection(text: str, allow_remote: bool = False, baud: int = 115200
                     ) -> ConnectionTarget:
    """Take a pymavlink connection string apart, and judge it.

    Parameters
    ----------
    text : str
        The connection string.
    allow_remote : bool
        Whether a vehicle beyond this machine's loopback, or a serial device, may be used.
    baud : int
        Rate of a serial device whose string names none.

    Returns
    -------
    ConnectionTarget

    Raises
    ------
    ConnectionStringError
        If the string is malformed, of a kind that cannot carry a live vehicle, or remote without
        `allow_remote`. The text names the string, the reason and examples.
    """
    if not isinstance(text, str):
        raise ConnectionStringError(
            f'connection {text!r}: a string is needed, for example {EXAMPLES}')
    given = text.strip()

    def wrong(why: str) -> ConnectionStringError:
        return ConnectionStringError(f'connection {text!r}: {why}; examples: {EXAMPLES}')

    if not given:
        raise wrong('it is empty')
    if not given.isprintable():
        raise wrong('it contains unprintable characters')
    prefix, colon, rest = given.partition(':')
    kind = prefix.lower()
    if colon and kind in ('uds', 'unix'):
        if not rest:
            raise wrong('the path of the socket is missing')
        return ConnectionTarget(given, 'uds', device=rest)
    if not (colon and kind in KINDS) and re.fullmatch(r'[\w.-]*:[0-9]+', given):
        # pymavlink takes a bare host:port as a UDP port to listen on.
        kind, given_endpoint = 'udpin', f'udpin:{given}'
    else:
        given_endpoint = given
    if kind in KINDS and colon:
        try:
            endpoint = parse_endpoint(given_endpoint)
        except EndpointError as error:
            raise wrong(str(error)) from None
        host = endpoint.host
        if not host and endpoint.kind in ('tcp', 'udpout'):
            host = LOOPBACK  # nobody connects to 0.0.0.0
        target = ConnectionTarget(given, endpoint.kind, host, endpoint.port)
    elif colon and re.fullmatch(r'[A-Za-z]{2,}', prefix):
        known = ', '.join(f"'{kind}:'" for kind in (*KINDS, 'uds'))
        raise wrong(f"kind '{prefix}:' is not one of {known} or a serial device")
    else:
        return _serial(given, allow_remote, baud, wrong)
    if not allow_remote:
        _refuse_remote(target, text)
    return target


def _serial(given: str, allow_remote: bool, baud: int, wrong: Any) -> ConnectionTarget:
    device, comma, rate = given.rpartition(',')
    if comma:
        if not re.fullmatch(r'[0-9]{1,8}', rate) or int(rate) < 1:
            raise wrong(f'baud rate {rate!r} is not a whole number above 0')
        baud = int(rate)
    else:
        device = given
    if device.lower().endswith(('.bin', '.log', '.tlog', '.raw', '.mavlink', '.px4log')):
        raise wrong('a log is not a vehicle')
    if not (device.startswith(('/dev/', '/tmp/', '/run/')) or re.fullmatch(r'COM\d+', device)):
        raise wrong("it is neither '<kind>:<host>:<port>' nor a serial device (/dev/...)")
    if not allow_remote:
        raise ConnectionStringError(
            f'connection {given!r}: a serial device may be a real vehicle, and writing wind to '
            "one is refused unless parameter 'allow_remote' is true")
    return ConnectionTarget(given, 'serial', device=device, baud=baud)


def _refuse_remote(target: ConnectionTarget, text: str) -> None:
    doing = 'listening on' if target.listens else 'connecting to'
    host = target.host or '0.0.0.0'
    numeric = numeric_address(host)
    try:
        addresses = {numeric} if numeric is not None else look_up(host)
    except EndpointError as error:
        raise ConnectionStringError(
            f'connection {text!r}: {error}; examples: {EXAMPLES}') from None
    if not all(ipaddress.ip_address(str(address)).is_loopback for address in addresses):
        raise ConnectionStringError(
            f"connection {text!r}: {doing} {host} leaves this machine's loopback, which is "
            "refused unless parameter 'allow_remote' is true (whoever reaches that port can talk "
            'to the vehicle); on this machine use 127.0.0.1')
