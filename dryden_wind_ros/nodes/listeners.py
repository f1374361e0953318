"""Whether anybody listens: what nobody hears is not published, and asking costs something too."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from rclpy.publisher import Publisher

AGAIN_S = 1.0
"""How old the answer may be in a fleet, s: seven topics of a vehicle were asked for at each tick,
a thirtieth of all CPU time."""


class Listeners:
    """Tells which of some publishers are heard.

    Parameters
    ----------
    publishers : sequence of rclpy.publisher.Publisher or None
        None, which is never heard, for a topic that is switched off.
    again_s : float, optional
        How old an answer may be, s of wall time.
    """

    def __init__(self, publishers: Sequence[Publisher | None], again_s: float = 0.0) -> None:
        self._publishers = publishers
        self._again_s = again_s
        self._asked_at = -math.inf
        self._heard: tuple[bool, ...] = ()

    def heard(self) -> tuple[bool, ...]:
        """Return for each publisher whether somebody listens."""
        now = time.monotonic()
        if now - self._asked_at >= self._again_s:
            self._asked_at = now
            self._heard = tuple(
                publisher is not None and publisher.get_subscription_count() > 0
                for publisher in self._publishers)
        return self._heard
