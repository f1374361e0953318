"""Reading a port within a budget, so that one that is flooded does not starve the others."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from dryden_wind_ros.sitl.ports import Port

#: What is read per poll: at most so many pieces, and so many bytes to be parsed. That is some ms;
#: a vehicle at speedup 50 sends 8 kB in the 20 ms of a tick.
_PIECES, _BYTES = 128, 1 << 14
#: A port that was not read up for so long (wall time, s) is flooded.
_BEHIND_S = 5.0
#: What is looked through per poll of a flooded port.
_FLOODED_PIECES, _FLOODED_BYTES = 2048, 1 << 22
_STILL_FLOODED_S = 2.0


class BoundedReader:
    """Reads one port, a bounded part per poll.

    What is left over is read by the next polls. A port on which more arrives than is read, for some
    seconds on end, is looked through instead: the newest that fits into the budget is taken, and
    what is older is left out.

    Attributes
    ----------
    skipped : bool
        Whether something was left out before the pieces that come now.
    """

    def __init__(self) -> None:
        self.skipped = False
        self._behind_since: float | None = None
        self._flooded_at = float('-inf')

    def flooded(self, now: float) -> bool:
        """Return whether more arrived than could be read, lately."""
        return now - self._flooded_at < _STILL_FLOODED_S

    def begin(self) -> None:
        """Begin with another port."""
        self._behind_since = None

    def pieces(self, port: Port, now: float, wanted: Callable[[bytes, Any], bool]
               ) -> Iterator[tuple[bytes, Any]]:
        """Yield what is to be parsed: data and its sender (None on a stream).

        Parameters
        ----------
        port : Port
        now : float
            Steady time, s.
        wanted : callable
            Given data and its sender, tells whether it counts.
        """
        self.skipped = False
        if self._behind_since is not None and now - self._behind_since > _BEHIND_S:
            yield from self._newest(port, now, wanted)
            return
        size = 0
        for _ in range(_PIECES):
            data, sender = port.receive()
            if data and wanted(data, sender):
                size += len(data)
                yield data, sender
            if port.drained:
                self._behind_since = None
                return
            if size >= _BYTES:
                break
        if self._behind_since is None:
            self._behind_since = now

    def _newest(self, port: Port, now: float, wanted: Callable[[bytes, Any], bool]
                ) -> Iterator[tuple[bytes, Any]]:
        kept: deque[tuple[bytes, Any]] = deque()
        size = looked_at = pieces = 0
        while pieces < _FLOODED_PIECES and looked_at < _FLOODED_BYTES:
            data, sender = port.receive()
            pieces += 1
            looked_at += len(data)
            if data and wanted(data, sender):
                kept.append((data, sender))
                size += len(data)
                while size - len(kept[0][0]) >= _BYTES:
                    size -= len(kept.popleft()[0])
                    self.skipped = True
            if port.drained:
                break
        if port.drained and pieces <= _PIECES and not self.skipped:
            self._behind_since = None
        else:
            self._flooded_at = now
        yield from kept
