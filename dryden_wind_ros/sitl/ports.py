"""The sockets and devices behind connection strings.

A port here never blocks: not while connecting, reading, or writing to a peer that does not read.
pymavlink's own connection classes wait (connecting), read a few bytes per call, lose the rest of a
partial write and print; they are used here for opening serial devices only.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import struct
import termios
import threading
from collections.abc import Callable
from typing import Any, Protocol

from dryden_wind_ros.sitl.connection import ConnectionTarget
from dryden_wind_ros.sitl.endpoint import EndpointError, look_up, numeric_address

#: The longest datagram there is; and what is taken from a stream at once.
_DATAGRAM_SIZE, _READ_SIZE = 1 << 16, 1 << 14
#: Bytes that may wait in the kernel for a peer that takes none; more is refused. A vehicle that
#: takes 45 writes of parameters (33 bytes each) at once while armed raises internal errors.
_MAX_QUEUED = 768


class LinkLost(ConnectionError):
    """The port is gone: refused, closed by the other side, or broken."""


class LookingUp(LinkLost):
    """The host's address is being looked up; try again in a moment."""


class Port(Protocol):
    """A way in and out that never blocks.

    ``receive`` returns ``(data, sender)``, with empty data when nothing is there now; it raises
    `LinkLost` when the port is gone. ``send`` returns whether the whole frame was taken.
    ``drained`` says whether the last ``receive`` surely took all there was, ``unsent`` whether the
    end of a frame waits for the port to become writable, and ``flush`` writes that.
    """

    drained: bool

    @property
    def unsent(self) -> bool:
        """Whether the end of a frame waits to be written."""

    def flush(self) -> None:
        """Write what waits, as far as it goes."""

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
        if target.kind == 'uds':
            return _Stream(socket.AF_UNIX, target.device)
        if target.kind == 'serial':
            return _Serial(target)
        address = (_address(target.host or '0.0.0.0'), target.port)
        if target.kind == 'tcp':
            return _Stream(socket.AF_INET, address)
        if target.kind == 'tcpin':
            return _Server(address)
        return _Datagrams(address, target.listens)
    except OSError as error:
        if isinstance(error, LinkLost):
            raise
        raise LinkLost(_explain(error, target)) from None


def _explain(error: OSError, target: ConnectionTarget | None = None) -> str:
    if error.errno == errno.ECONNREFUSED:
        return 'connection refused'
    if target is not None and target.listens:
        if error.errno == errno.EADDRNOTAVAIL:
            return f'{target.host} is no address of this machine'
        if error.errno == errno.EADDRINUSE:
            return 'another program listens on this port already'
        if error.errno == errno.EACCES:
            return f'port {target.port} may not be listened on by this user (ports below 1024)'
    return os.strerror(error.errno) if error.errno else str(error)


class _Lookup:
    """Looks a name up in a thread of its own: other links must not wait for name servers."""

    def __init__(self, host: str) -> None:
        self._host = host
        self.address = ''
        self.error = ''
        threading.Thread(target=self._run, name='look up', daemon=True).start()

    def _run(self) -> None:
        try:
            self.address = min(look_up(self._host))
        except EndpointError as error:
            self.error = str(error)


#: Names being looked up; used by the links' thread only.
_lookups: dict[str, _Lookup] = {}


def _address(host: str) -> str:
    """Return the IPv4 address of a host without waiting; raises LookingUp and LinkLost."""
    numeric = numeric_address(host)
    if numeric is not None:
        return numeric
    if host not in _lookups:
        _lookups[host] = _Lookup(host)
    lookup = _lookups[host]
    if not lookup.address and not lookup.error:
        raise LookingUp(f'host {host!r} is being looked up')
    del _lookups[host]
    if lookup.error:
        raise LinkLost(lookup.error)
    return lookup.address


class _Outbox:
    """Writes whole frames to a stream, and refuses those that it does not take.

    What is refused is not kept: whoever sent it sends something newer later. Only the end of what
    was begun is kept, because a frame cut in two would be garbage to the peer.

    Parameters
    ----------
    write : callable
        Writes bytes, returns how many were taken, 0 if none can be now.
    """

    def __init__(self, write: Callable[[bytes], int]) -> None:
        self._write = write
        self._rest = b''

    @property
    def unsent(self) -> bool:
        return bool(self._rest)

    def flush(self) -> None:
        if self._rest:
            self._rest = self._rest[self._write(self._rest):]

    def send(self, data: bytes) -> bool:
        self.flush()
        if self._rest:
            return False
        taken = self._write(data)
        if not taken:
            return False
        self._rest = data[taken:]
        return True


class _Stream:
    """A TCP or Unix-domain client."""

    def __init__(self, family: socket.AddressFamily, address: Any) -> None:
        self._outbox = _Outbox(self._write)
        self.drained = True
        self._connecting = True
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        try:
            code = self._socket.connect_ex(address)
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

    @property
    def unsent(self) -> bool:
        return self._outbox.unsent

    def flush(self) -> None:
        self._outbox.flush()

    def send(self, data: bytes) -> bool:
        return not self._connecting and self._outbox.send(data)

    def _write(self, data: bytes) -> int:
        if _queued(self._socket.fileno()) > _MAX_QUEUED:
            return 0
        try:
            return self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            raise LinkLost(_explain(error)) from None

    def close(self) -> None:
        self._socket.close()


def _queued(descriptor: int) -> int:
    """Return how many bytes the kernel holds that the peer's has not taken; 0 if it cannot say."""
    try:
        return int(struct.unpack('i', fcntl.ioctl(descriptor, termios.TIOCOUTQ, b'\0' * 4))[0])
    except OSError:
        return 0


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

    def __init__(self, address: tuple[str, int]) -> None:
        self._outbox = _Outbox(self._write)
        self.drained = True
        self._connecting = True
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(address)
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

    unsent = False

    def __init__(self, address: tuple[str, int], listens: bool) -> None:
        self.drained = False
        #: Where frames go; None until somebody was heard, on a port that listens.
        self.peer: Any = None
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        try:
            if listens:
                # No SO_REUSEADDR: two listeners on one UDP port would share it in silence.
                self._socket.bind(address)
            else:
                # Connected, so that nobody else's datagrams come in.
                self._socket.connect(address)
                self.peer = address
            # Room for a second of everything at a high speedup.
            with contextlib.suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        except OSError:
            self._socket.close()
            raise

    def fileno(self) -> int:
        return self._socket.fileno()

    def connecting(self) -> bool:
        return False

    def receive(self) -> tuple[bytes, Any]:
        try:
            data, sender = self._socket.recvfrom(_DATAGRAM_SIZE)
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

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self._socket.close()


class _Serial:
    """A serial device, opened by pymavlink."""

    def __init__(self, target: ConnectionTarget) -> None:
        from pymavlink import mavutil

        self.drained = True
        self._outbox = _Outbox(self._write)
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

    @property
    def unsent(self) -> bool:
        return self._outbox.unsent

    def flush(self) -> None:
        self._outbox.flush()

    def send(self, data: bytes) -> bool:
        return self._outbox.send(data)

    def _write(self, data: bytes) -> int:
        # Not by pyserial, which waits for a device that takes nothing.
        descriptor = self.fileno()
        if _queued(descriptor) > _MAX_QUEUED:
            return 0
        try:
            return os.write(descriptor, data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            raise LinkLost(_explain(error)) from None

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._port.close()
