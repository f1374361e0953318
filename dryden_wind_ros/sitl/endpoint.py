"""``kind:host:port``, taken apart: one parser for whoever connects and whoever serves."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass

KINDS = ('tcp', 'tcpin', 'udp', 'udpin', 'udpout')
LOOPBACK = '127.0.0.1'


class EndpointError(ValueError):
    """An endpoint that is none; the text says why, but not of which string."""


@dataclass(frozen=True)
class Endpoint:
    """A network endpoint as a connection string names it.

    Attributes
    ----------
    kind : str
        ``'tcp'``, ``'tcpin'``, ``'udpin'`` (also for ``udp:``) or ``'udpout'``.
    host : str
        As given, '' where none was.
    port : int
        1..65535.
    """

    kind: str
    host: str
    port: int


def parse_endpoint(text: str) -> Endpoint:
    """Take ``kind:host:port`` apart; the kind in capitals or not.

    Raises
    ------
    EndpointError
        With the part that is wrong and what is allowed.
    """
    kind, _, rest = text.partition(':')
    kind = kind.lower()
    if kind not in KINDS:
        raise EndpointError(f"kind '{kind}:' is not one of " + ', '.join(f"'{k}:'" for k in KINDS))
    host, colon, port = rest.rpartition(':')
    if not colon:
        raise EndpointError('host:port is needed')
    if ':' in host or '[' in host:
        raise EndpointError('one colon between host and port is allowed (IPv6 is not supported)')
    # ASCII digits only: str.isdigit() also likes other scripts' digits and superscripts.
    if not re.fullmatch(r'[0-9]{1,5}', port) or not 1 <= int(port) <= 65535:
        raise EndpointError(f'port {port!r} is not a whole number from 1 to 65535')
    if not re.fullmatch(r'[\w.-]*', host):
        raise EndpointError(f'host {host!r} is not a name or an IPv4 address')
    return Endpoint('udpin' if kind == 'udp' else kind, host, int(port))


def numeric_address(host: str) -> str | None:
    """Return the IPv4 address that `host` is, without asking a name server; None for a name.

    ``localhost`` is the loopback's address: that is what the name is reserved for.
    """
    if host.lower() == 'localhost':
        return LOOPBACK
    try:
        return str(socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_DGRAM,
                                      flags=socket.AI_NUMERICHOST)[0][4][0])
    except (OSError, UnicodeError):
        return None


def look_up(host: str) -> set[str]:
    """Return the IPv4 addresses of a name; may take as long as the name servers like.

    Raises
    ------
    EndpointError
        If there are none.
    """
    try:
        return {str(info[4][0]) for info in socket.getaddrinfo(
            host, None, socket.AF_INET, socket.SOCK_DGRAM)}
    except OSError as error:
        raise EndpointError(f'host {host!r} cannot be resolved ({error.strerror})') from None
    except UnicodeError:
        raise EndpointError(f'host {host!r} cannot be resolved (it is no host name)') from None
