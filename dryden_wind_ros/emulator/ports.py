"""Sockets of the embedded vehicle, as SITL has them.

A TCP port serves one client at a time. A second one can connect (the kernel does that) but gets no
byte until the first has left.
"""

from __future__ import annotations

import contextlib
import errno
import selectors
import socket
from collections.abc import Callable

from dryden_wind_ros.emulator.channel import Channel
from dryden_wind_ros.sitl.endpoint import EndpointError
from dryden_wind_ros.sitl.endpoint import parse_endpoint as connection_endpoint

_READ_SIZE = 65536


class PortError(Exception):
    """A port that cannot be opened; the text says which and why."""


def parse_endpoint(text: str) -> tuple[str, str, int]:
    """Split ``tcp:HOST:PORT``, ``udpout:HOST:PORT`` or ``udpin:HOST:PORT``.

    Raises
    ------
    ValueError
        Naming the text and what is allowed.
    """
    try:
        endpoint = connection_endpoint(text)
        if not endpoint.host:
            raise EndpointError('a host is needed')
    except EndpointError as error:
        raise ValueError(f'connection {text!r}: {error}; it must be one of tcp:HOST:PORT (a '
                         'server), udpout:HOST:PORT, udpin:HOST:PORT') from None
    # A vehicle is what others connect to
    return 'tcp' if endpoint.kind == 'tcpin' else endpoint.kind, endpoint.host, endpoint.port


class Port:
    """One endpoint: joins a socket to a channel.

    Parameters
    ----------
    endpoint : str
        Connection string.
    selector : selectors.BaseSelector
        Shared by all vehicles of the process; the data of each key is the function to call.
    on_join, on_input : callable
        Called with the channel when a client has come, and when bytes have.
    """

    def __init__(self, endpoint: str, selector: selectors.BaseSelector,
                 on_join: Callable[[Channel], None], on_input: Callable[[], None]) -> None:
        self.endpoint = endpoint
        self.scheme, self.host, self.number = parse_endpoint(endpoint)
        self._selector = selector
        self._on_join = on_join
        self._on_input = on_input
        self._channel: Channel | None = None
        self._listener: socket.socket | None = None
        self._socket: socket.socket | None = None
        self._peer: tuple[str, int] | None = None
        self._unsent = b''
        self._accepting = False

    def open(self, channel: Channel) -> None:
        """Listen (or start sending) for this boot's channel.

        Raises
        ------
        PortError
            When the port is in use or the host is not of this machine.
        """
        self._channel = channel
        kind = socket.SOCK_STREAM if self.scheme == 'tcp' else socket.SOCK_DGRAM
        new = socket.socket(socket.AF_INET, kind)
        try:
            new.setblocking(False)
            if self.scheme == 'tcp':
                new.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                new.bind((self.host, self.number))
                new.listen(5)
            elif self.scheme == 'udpin':
                new.bind((self.host, self.number))
        except OSError as error:
            new.close()
            if error.errno == errno.EADDRINUSE:
                raise PortError(f'port {self.number} is in use ({self.endpoint}): another SITL or '
                                'emulator? Choose another --instance') from None
            raise PortError(f'cannot open {self.endpoint}: {error.strerror or error}') from None
        if self.scheme == 'tcp':
            self._listener = new
            self._watch_listener(True)
        else:
            self._socket = new
            self._selector.register(new, selectors.EVENT_READ, self._read_datagrams)
            if self.scheme == 'udpout':
                self._peer = (self.host, self.number)
                self._on_join(channel)

    def close(self) -> None:
        """Close everything: clients see EOF, then refusals."""
        self.drop_client()
        if self._listener is not None:
            self._watch_listener(False)
            self._listener.close()
            self._listener = None
        self._channel = None

    def drop_client(self) -> None:
        """Close the client's connection (or forget a datagram peer)."""
        if self._socket is not None:
            self._selector.unregister(self._socket)
            self._socket.close()
            self._socket = None
        self._peer = None
        self._unsent = b''
        if self._channel is not None:
            self._channel.forget_client()
        if self._listener is not None:
            self._watch_listener(True)

    @property
    def waits(self) -> bool:
        """Whether there is anything to send, and somebody to send it to."""
        return self._socket is not None and self._channel is not None and (
            self._channel.has_output or bool(self._unsent))

    def flush(self) -> None:
        """Send what the channel has ready; never blocks, drops whole turns when nobody reads."""
        channel, sock = self._channel, self._socket
        if channel is None or sock is None:
            return
        if self.scheme != 'tcp':
            for datagram in channel.take_datagrams(1400):
                if self._peer is not None:
                    with contextlib.suppress(OSError):
                        sock.sendto(datagram, self._peer)
            return
        data = channel.take()
        if self._unsent:
            # A client that does not read: finish the message under way, let the new ones go
            data = self._unsent
        if not data:
            return
        try:
            sent = sock.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.drop_client()
            return
        self._unsent = data[sent:]

    def _watch_listener(self, on: bool) -> None:
        assert self._listener is not None
        if on and not self._accepting:
            self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        elif not on and self._accepting:
            self._selector.unregister(self._listener)
        self._accepting = on

    def _accept(self) -> None:
        if self._listener is None or self._channel is None:
            return
        try:
            client, _ = self._listener.accept()
        except OSError:
            return
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._watch_listener(False)
        self._socket = client
        self._selector.register(client, selectors.EVENT_READ, self._read_stream)
        self._on_join(self._channel)

    def _read_stream(self) -> None:
        if self._socket is None or self._channel is None:
            return
        try:
            data = self._socket.recv(_READ_SIZE)
        except BlockingIOError:
            return
        except OSError:
            data = b''
        if not data:
            self.drop_client()
            return
        self._channel.receive(data)
        self._on_input()

    def _read_datagrams(self) -> None:
        if self._socket is None or self._channel is None:
            return
        for _ in range(100):
            try:
                data, peer = self._socket.recvfrom(_READ_SIZE)
            except BlockingIOError:
                break
            except OSError:
                # Nobody listens at the other end yet
                continue
            if self.scheme == 'udpin' and peer != self._peer:
                joined = self._peer is None
                self._peer = peer
                if joined:
                    self._on_join(self._channel)
            self._channel.receive(data)
        if self._channel.has_input:
            self._on_input()
