"""A TCP relay between a vehicle and a bridge, for everything that happens to a link."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink

Filter = Callable[[bytes], bytes]


def message_id(frame: bytes) -> int:
    """Return the message id of a whole frame."""
    if frame[0] == 0xFD:
        return int.from_bytes(frame[7:10], 'little')
    return frame[5]


def make_frame(ident: int, payload: bytes, system: int = 1, component: int = 1,
               sequence: int = 0) -> bytes:
    """Return a MAVLink 2 frame with a right checksum around any payload."""
    head = bytes([0xFD, len(payload), 0, 0, sequence, system, component]) \
        + ident.to_bytes(3, 'little')
    kind = mavlink.mavlink_map.get(ident)
    extra = bytes([kind.crc_extra]) if kind is not None else b'\0'
    return head + payload + int(mavlink.x25crc(head[1:] + payload + extra).crc).to_bytes(
        2, 'little')


def split_frames(buffer: bytearray) -> Iterator[bytes]:
    """Take the whole frames off the front of what a vehicle (which makes no mistakes) sent."""
    while len(buffer) >= 3:
        size = 8 + buffer[1] if buffer[0] == 0xFE else 12 + buffer[1] + 13 * (buffer[2] & 1)
        if len(buffer) < size:
            return
        yield bytes(buffer[:size])
        del buffer[:size]


class Relay:
    """Listens on a port of its own, and joins a client to one or more vehicles.

    With several vehicles the client hears all of them, frame by frame, and all hear the client, as
    through a router.

    Parameters
    ----------
    vehicles : sequence of int
        TCP ports of the vehicles on the loopback.

    Attributes
    ----------
    filter : callable
        Given every frame of a vehicle; returns what the client gets: the frame, less, or more.
    delay : float
        s, for everything in both directions.
    connections : int
        How often the client was joined.
    """

    def __init__(self, vehicles: Sequence[int]) -> None:
        self._vehicles = tuple(vehicles)
        self.filter: Filter = lambda frame: frame
        self.delay = 0.0
        self.connections = 0
        self._listener = self._listen(0)
        self.port: int = self._listener.getsockname()[1]
        self._client: socket.socket | None = None
        self._upstream: dict[socket.socket, bytearray] = {}
        self._late: deque[tuple[float, bool, bytes]] = deque()
        self._held = False
        self._cut = False
        self._injected: deque[bytes] = deque()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._stopping = False
        self._lock = threading.RLock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def connection(self) -> str:
        return f'tcp:127.0.0.1:{self.port}'

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: Any) -> None:
        self._stopping = True
        self._thread.join(5)
        self._end()
        self._listener.close()
        self._selector.close()

    def cut(self) -> None:
        """Close the connection, and refuse new ones."""
        with self._lock:
            self._cut = True
            self._end()
            with contextlib.suppress(KeyError):
                self._selector.unregister(self._listener)
            self._listener.close()

    def restore(self) -> None:
        """Take connections again."""
        with self._lock:
            self._listener = self._listen(self.port)
            self._selector.register(self._listener, selectors.EVENT_READ)
            self._cut = False

    def hold(self, held: bool) -> None:
        """Let the connection stand and pass nothing on (it is lost), or go on."""
        self._held = held

    def inject(self, data: bytes) -> None:
        """Send the client something between two frames."""
        self._injected.append(data)

    @property
    def injecting(self) -> int:
        """How many injected pieces wait."""
        return len(self._injected)

    @staticmethod
    def _listen(port: int) -> socket.socket:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(('127.0.0.1', port))
        listener.listen(1)
        return listener

    def _run(self) -> None:
        while not self._stopping:
            ready = self._selector.select(0.005)
            with self._lock:
                for key, _ in ready:
                    if key.fileobj is self._listener:
                        if not self._cut:
                            self._join()
                    else:
                        self._pass_on(key.fileobj)
                self._send_late()

    def _join(self) -> None:
        client, _ = self._listener.accept()
        self._end()
        upstream = {}
        try:
            for port in self._vehicles:
                upstream[socket.create_connection(('127.0.0.1', port), 2)] = bytearray()
        except OSError:
            client.close()
            for one in upstream:
                one.close()
            return
        self._client, self._upstream = client, upstream
        for one in (client, *upstream):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(one, selectors.EVENT_READ)
        self.connections += 1

    def _pass_on(self, source: Any) -> None:
        if source is not self._client and source not in self._upstream:
            return
        try:
            data = source.recv(65536)
        except OSError:
            data = b''
        if not data:
            self._end()
        elif source is self._client:
            if not self._held:
                self._late.append((time.monotonic() + self.delay, True, data))
        else:
            buffer = self._upstream[source]
            buffer += data
            out = bytearray()
            for frame in split_frames(buffer):
                if self._held:
                    continue
                out += self.filter(frame)
                if self._injected:
                    out += self._injected.popleft()
            self._late.append((time.monotonic() + self.delay, False, bytes(out)))

    def _send_late(self) -> None:
        while self._late and self._late[0][0] <= time.monotonic():
            _, up, data = self._late.popleft()
            try:
                for one in list(self._upstream) if up else [self._client]:
                    if one is not None:
                        one.sendall(data)
            except OSError:
                self._end()

    def _end(self) -> None:
        for one in (self._client, *self._upstream):
            if one is not None:
                with contextlib.suppress(KeyError, ValueError):
                    self._selector.unregister(one)
                one.close()
        self._client = None
        self._upstream = {}
        self._late.clear()
