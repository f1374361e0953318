"""How long something is waited for where a busy machine must not be taken for a dead vehicle."""

from __future__ import annotations


class Patience:
    """Waits as long as there is progress, counted in turns of whoever waits.

    A turn that comes late counts for `LONGEST_TURN_S` at most: who had no turn, because the machine
    is busy or the process was stopped, has waited for nobody.

    Parameters
    ----------
    silent : float
        Seconds without a sign of life after which it is over.
    stuck : float
        Seconds without progress after which it is over, whatever is heard.
    """

    LONGEST_TURN_S = 0.1

    def __init__(self, silent: float, stuck: float) -> None:
        self._limits = silent, stuck
        self._silent = self._stuck = 0.0
        self._turn_at: float | None = None
        self._progress: object = None
        self._heard: object = None

    def over(self, now: float, progress: object, heard: object) -> bool:
        """Take a turn at steady time `now`; return whether waiting is over.

        Parameters
        ----------
        now : float
            Steady time, s.
        progress, heard : object
            Anything that differs after progress, and after a sign of life.
        """
        step = 0.0 if self._turn_at is None else min(now - self._turn_at, self.LONGEST_TURN_S)
        self._turn_at = now
        self._silent = 0.0 if heard != self._heard else self._silent + step
        self._stuck = 0.0 if progress != self._progress else self._stuck + step
        self._progress, self._heard = progress, heard
        silent, stuck = self._limits
        return self._silent >= silent or self._stuck >= stuck
