"""Whose wind it is: the values found in a vehicle, kept on disk, and the lock on it.

What is written to SITL lands in eeprom.bin. So what was found is on disk before the first write,
and after a reboot the values in the vehicle are ours, not the user's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from dryden_wind_ros.sitl.events import Level, Notices
from dryden_wind_ros.sitl.sim_wind import WRITTEN
from dryden_wind_ros.sitl.state_file import StateFile

_RETRY_S = 2.0


def listed(values: Mapping[str, float]) -> str:
    """Return names and values as text."""
    return ', '.join(f'{name} {value:g}' for name, value in values.items())


class WindOwner:
    """Keeps the values to put back.

    Parameters
    ----------
    notices : Notices

    Attributes
    ----------
    found : dict of str to float
        The values to put back.
    in_file : bool
        Whether they come from the state file of a bridge that did not put them back.
    touched : bool
        Whether anything was written since they were found.
    """

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self._state: StateFile | None = None
        self.found: dict[str, float] = {}
        self.in_file = False
        self.touched = False
        self._unsaved = False
        self._next_try = 0.0

    @property
    def held(self) -> bool:
        """Whether the vehicle is ours."""
        return self._state is not None and self._state.locked

    @property
    def must_restore(self) -> bool:
        """Whether there is anything to put back."""
        return bool(self.found) and (self.touched or self.in_file)

    @property
    def kept_in(self) -> str:
        """Where the values found are kept."""
        return str(self._state.path) if self._state is not None else ''

    def vehicle(self, state: StateFile) -> None:
        """Start with a vehicle, or again with the same one; what was found in it is kept."""
        if self._state is not None and self._state.path == state.path:
            return
        if self._state is not None and self._state.locked:
            self._notices.tell(Level.WARN, 'another vehicle answers now; what was found in the one '
                               f'before is kept in {self._state.path}')
            self._state.release()
        self._state = state
        self.found = {}
        self.in_file = self.touched = False

    def claim(self, now: float) -> str | None:
        """Try to take the vehicle; return '' if it is ours, who has it, or None: not now."""
        if self._state is None or now < self._next_try:
            return None
        self._next_try = now + _RETRY_S
        try:
            holder = self._state.acquire()
        except OSError as error:
            self._notices.problem(
                'state', Level.ERROR, f'no file can be kept in {self._state.path.parent} '
                f'({error.strerror}): nothing is written to SITL, because a bridge that is killed '
                "could not be tidied up after. Parameter 'state_dir' names another place")
            return None
        if not holder:
            self.load_leftover()
        return holder

    def claim_leftover(self) -> None:
        """Take what a killed bridge left, to put it back even if no wind comes."""
        try:
            if self._state is not None and not self._state.locked and not self.touched \
                    and not self._state.acquire():
                self.load_leftover()
        except OSError:
            pass

    def load_leftover(self) -> None:
        """Take as found what a bridge kept that did not put it back."""
        assert self._state is not None
        leftover = self._state.load()
        if leftover.warning:
            self._notices.tell(Level.WARN, leftover.warning + '. The values in the vehicle now '
                               'count as found')
        found = {name: value for name, value in leftover.found.items() if name in WRITTEN}
        if found:
            self.found = found
            self.in_file = True
            self._notices.tell(Level.WARN, 'a bridge ended without putting its wind back; as found '
                               f'count the values kept in {self._state.path}: {listed(found)}')

    def remember(self, values: Mapping[str, float]) -> None:
        """Keep what was found, on disk before anything is written."""
        # What is known already is older than anything of ours: from a file that names less than
        # this vehicle has, or from before it was restarted as another version.
        self.found = {name: value for name, value in values.items()
                      if math.isfinite(value)} | self.found
        self._save()
        self._notices.tell(Level.INFO, f'found {listed(self.found)}; put back at the end')

    def save_again(self, now: float) -> None:
        """Save what could not be saved before: a full disk may have room again."""
        if self._unsaved and now >= self._next_try:
            self._next_try = now + _RETRY_S
            self._save()

    def _save(self) -> None:
        assert self._state is not None
        try:
            self._state.save(self.found)
            self._unsaved = False
            self._notices.solved('state')
        except OSError as error:
            # A full disk is no reason to stop the gusts; it may have room again later.
            self._unsaved = True
            self._notices.problem(
                'state', Level.WARN, f'{self._state.path} cannot be written ({error.strerror}): a '
                'bridge that is killed now leaves its wind in SITL')

    def end(self) -> None:
        """Let go of the vehicle; everything is put back."""
        if self.held:
            assert self._state is not None
            try:
                self._state.remove()
            except OSError as error:
                self._notices.tell(
                    Level.WARN, f'{self._state.path} cannot be removed ({error.strerror})')
            self._state.release()

    def abandon(self) -> None:
        """Let go of the vehicle, and keep what was found for the next bridge."""
        if self._state is not None:
            self._state.release()
