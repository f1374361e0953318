"""Connection strings, and the sockets behind them.

The strings are pymavlink's (``tcp:``, ``tcpin:``, ``udp:``, ``udpin:``, ``udpout:``, ``uds:``,
a serial device), judged before anything is opened: a mistake is named, with what would do instead,
and nothing leaves the machine unless that was asked for.

A port here never blocks: not while connecting, reading, or writing to a peer that does not read.
pymavlink's own connection classes wait (connecting), read a few bytes per call, lose the rest of a
partial write and print; they are used here for serial devices only.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import re
import socket
from dataclasses import dataclass
from typing import Any, Protocol

EXAMPLES = (
    "'tcp:127.0.0.1:5762' (SITL's second serial port), 'udp:127.0.0.1:14550' (listen for "
    "MAVProxy), 'udpout:127.0.0.1:14551', '/dev/ttyACM0,115200'"
)

#: Kinds that are an address of the form host:port.
_INET_KINDS = ('tcp', 'tcpin', 'udp', 'udpin', 'udpout')
_READ_SIZE = 1 << 16
#: Bytes that may wait for a peer that does not read; more is thrown away, whole frames at a time.
_MAX_UNSENT = 1 << 14


class ConnectionStringError(ValueError):
    """A connection string that cannot be used; the text says why and what would do."""


class LinkLost(ConnectionError):
    """The port is gone: refused, closed by the other side, or broken."""


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
        Of the network kinds; '' and 0 otherwise.
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
    if colon and kind in _INET_KINDS:
        host, port = _host_and_port(rest, wrong)
        target = ConnectionTarget(given, 'udpin' if kind == 'udp' else kind, host, port)
    elif colon and re.fullmatch(r'[\w.-]*', prefix) and re.fullmatch(r'\d+', rest):
        # pymavlink takes a bare host:port as a UDP port to listen on.
        host, port = _host_and_port(given, wrong)
        target = ConnectionTarget(given, 'udpin', host, port)
    elif colon and re.fullmatch(r'[A-Za-z]{2,}', prefix):
        known = ', '.join(f"'{kind}:'" for kind in (*_INET_KINDS, 'uds'))
        raise wrong(f"kind '{prefix}:' is not one of {known} or a serial device")
    else:
        return _serial(given, allow_remote, baud, wrong)
    if not allow_remote:
        _refuse_remote(target, text)
    return target


def _host_and_port(rest: str, wrong: Any) -> tuple[str, int]:
    host, colon, port = rest.rpartition(':')
    if not colon:
        raise wrong('host:port is needed')
    if ':' in host or '[' in host:
        raise wrong('one colon between host and port is allowed (IPv6 is not supported)')
    # ASCII digits only: str.isdigit() also likes other scripts' digits and superscripts.
    if not re.fullmatch(r'[0-9]{1,5}', port) or not 1 <= int(port) <= 65535:
        raise wrong(f'port {port!r} is not a whole number from 1 to 65535')
    if not re.fullmatch(r'[\w.-]*', host):
        raise wrong(f'host {host!r} is not a name or an IPv4 address')
    return host, int(port)


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
    try:
        addresses = {info[4][0] for info in socket.getaddrinfo(
            host, target.port, socket.AF_INET, socket.SOCK_DGRAM)}
    except (OSError, UnicodeError) as error:
        raise ConnectionStringError(
            f'connection {text!r}: host {host!r} cannot be resolved ({error}); '
            f'examples: {EXAMPLES}') from None
    if not all(ipaddress.ip_address(str(address)).is_loopback for address in addresses):
        raise ConnectionStringError(
            f"connection {text!r}: {doing} {host} leaves this machine's loopback, which is "
            "refused unless parameter 'allow_remote' is true (whoever reaches that port can talk "
            'to the vehicle); on this machine use 127.0.0.1')


class Port(Protocol):
    """A way in and out that never blocks.

    ``receive`` returns ``(data, sender)``, with empty data when nothing is there now; it raises
    `LinkLost` when the port is gone. ``send`` returns whether the whole frame was taken.
    ``drained`` says whether the last ``receive`` surely took all there was.
    """

    drained: bool

    def fileno(self) -> int:
        """File descriptor to wait on."""

    def connecting(self) -> bool:
        """Whether a connection is still being made; raises `LinkLost` if it failed."""

    def receive(self) -> tuple[bytes, Any]:
        """Take what is there."""

    def send(self, data: bytes) -> bool:
        """Hand one frame on."""

    def close(self) -> None:
        """Close; may be called twice."""


def open_port(target: ConnectionTarget) -> Port:
    """Open the port of `target` without waiting for anybody.

    Raises
    ------
    LinkLost
        If it cannot be opened now. Trying again later is the caller's business.
    """
    try:
        if target.kind in ('tcp', 'uds'):
            return _Stream(target)
        if target.kind == 'tcpin':
            return _Server(target)
        if target.kind in ('udpin', 'udpout'):
            return _Datagrams(target)
        return _Serial(target)
    except OSError as error:
        if isinstance(error, LinkLost):
            raise
        raise LinkLost(_explain(error)) from None


def _explain(error: OSError) -> str:
    if error.errno == errno.ECONNREFUSED:
        return 'connection refused'
    return os.strerror(error.errno) if error.errno else str(error)


class _Stream:
    """A TCP or Unix-domain client."""

    def __init__(self, target: ConnectionTarget) -> None:
        self._unsent = b''
        self.drained = True
        self._connecting = True
        if target.kind == 'uds':
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._address: Any = target.device
        else:
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            self._address = (target.host or '127.0.0.1', target.port)
        self._socket.setblocking(False)
        try:
            code = self._socket.connect_ex(self._address)
            if code == 0:
                self._connected()
            elif code not in (errno.EINPROGRESS, errno.EWOULDBLOCK):
                raise LinkLost(_explain(OSError(code, '')))
        except OSError:
            self._socket.close()
            raise

    def _connected(self) -> None:
        self._connecting = False
        if self._socket.family == socket.AF_INET:
            _tune_tcp(self._socket)
            # On the loopback a client that keeps trying a closed port above 32767 can be given
            # that very port as its own, and then talks to itself.
            if self._socket.getsockname() == self._socket.getpeername():
                self.close()
                raise LinkLost('connection refused')

    def fileno(self) -> int:
        return self._socket.fileno()

    def connecting(self) -> bool:
        if self._connecting:
            code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise LinkLost(_explain(OSError(code, '')))
            try:
                self._socket.getpeername()
            except OSError:
                return True
            self._connected()
        return False

    def receive(self) -> tuple[bytes, Any]:
        try:
            data = self._socket.recv(_READ_SIZE)
        except (BlockingIOError, InterruptedError):
            self.drained = True
            return b'', None
        except OSError as error:
            raise LinkLost(_explain(error)) from None
        if not data:
            raise LinkLost('closed by the other side')
        self.drained = len(data) < _READ_SIZE
        return data, None

    def send(self, data: bytes) -> bool:
        if self._connecting or len(self._unsent) > _MAX_UNSENT:
            return False
        pending = self._unsent + data
        try:
            sent = self._socket.send(pending)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            raise LinkLost(_explain(error)) from None
        self._unsent = pending[sent:]
        return not self._unsent

    def close(self) -> None:
        self._socket.close()


def _tune_tcp(sock: socket.socket) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # A peer that vanished without a word is noticed by the kernel in about 11 s; one that is only
    # paused (a debugger, a Gazebo that stands still) still answers the probes.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (('TCP_KEEPIDLE', 5), ('TCP_KEEPINTVL', 2), ('TCP_KEEPCNT', 3)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


class _Server(_Stream):
    """A TCP server with one client at a time."""

    def __init__(self, target: ConnectionTarget) -> None:
        self._unsent = b''
        self.drained = True
        self._connecting = True
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((target.host, target.port))
            self._socket.listen(1)
        except OSError:
            self._socket.close()
            raise

    def connecting(self) -> bool:
        if self._connecting:
            try:
                client, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError):
                return True
            except OSError as error:
                raise LinkLost(_explain(error)) from None
            self._socket.close()
            self._socket = client
            self._socket.setblocking(False)
            _tune_tcp(client)
            self._connecting = False
        return False


class _Datagrams:
    """A UDP port; one that listens answers whoever the vehicle turned out to be."""

    def __init__(self, target: ConnectionTarget) -> None:
        self.drained = False
        #: Where frames go; None until somebody was heard, on a port that listens.
        self.peer: Any = None
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        try:
            if target.listens:
                # No SO_REUSEADDR: two listeners on one UDP port would share it in silence.
                self._socket.bind((target.host, target.port))
            else:
                self.peer = (target.host or '127.0.0.1', target.port)
            # Room for a second of everything at a high speedup.
            with contextlib.suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        except OSError as error:
            self._socket.close()
            if error.errno == errno.EADDRINUSE:
                raise LinkLost('another program listens on this port already') from None
            raise

    def fileno(self) -> int:
        return self._socket.fileno()

    def connecting(self) -> bool:
        return False

    def receive(self) -> tuple[bytes, Any]:
        try:
            data, sender = self._socket.recvfrom(_READ_SIZE)
        except (BlockingIOError, InterruptedError):
            self.drained = True
            return b'', None
        except ConnectionError:
            # An ICMP 'port unreachable' for something sent before: nobody is there yet.
            return b'', None
        except OSError as error:
            raise LinkLost(_explain(error)) from None
        self.drained = False
        return data, sender

    def send(self, data: bytes) -> bool:
        if self.peer is None:
            return False
        try:
            self._socket.sendto(data, self.peer)
        except (BlockingIOError, InterruptedError, ConnectionError):
            return False
        except OSError as error:
            raise LinkLost(_explain(error)) from None
        return True

    def close(self) -> None:
        self._socket.close()


class _Serial:
    """A serial device, opened by pymavlink."""

    def __init__(self, target: ConnectionTarget) -> None:
        from pymavlink import mavutil

        self.drained = True
        try:
            self._port = mavutil.mavserial(target.device, baud=target.baud, autoreconnect=False)
        except ImportError:
            raise LinkLost("Python package 'pyserial' is not installed") from None
        except (OSError, ValueError) as error:
            raise LinkLost(str(error)) from None

    def fileno(self) -> int:
        return int(self._port.port.fileno())

    def connecting(self) -> bool:
        return False

    def receive(self) -> tuple[bytes, Any]:
        try:
            data = self._port.port.read(4096)
        except Exception as error:  # pyserial: SerialException, TypeError when closed meanwhile
            raise LinkLost(str(error)) from None
        self.drained = len(data) < 4096
        return data, None

    def send(self, data: bytes) -> bool:
        try:
            return int(self._port.port.write(data) or 0) == len(data)
        except Exception as error:
            raise LinkLost(str(error)) from None

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._port.close()
