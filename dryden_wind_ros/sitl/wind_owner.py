"""Whose wind it is: the values found in a vehicle, kept on disk, and the lock on it.

What is written to SITL lands in eeprom.bin. So what was found is on disk before the first write,
and after a reboot the values in the vehicle are ours, not the user's. Found values belong to a
vehicle, not to the port it is met on. A vehicle is known again by what the bridge wrote to it:

* every value it shows is one that was found in it or one that was written to it (SIM_WIND_TC,
  SIM_WIND_T, one of the last winds): the values kept are its own;
* it shows the winds of a bridge that runs: that bridge has it, whichever port it came by;
* it shows SIM_WIND_TC and SIM_WIND_T as bridges write them, and no file says whose they are: a
  bridge has it that cannot be seen from here. Nothing is written then;
* else its values are the user's.
"""

from __future__ import annotations

import contextlib
import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass

from dryden_wind_ros.sitl.events import Level, Notices
from dryden_wind_ros.sitl.parameter_reader import validate_value
from dryden_wind_ros.sitl.sim_wind import (
    PROFILE,
    SPEED,
    TIME_CONSTANT,
    UNIFORM,
    USUAL_TIME_CONSTANT,
    WRITTEN,
)
from dryden_wind_ros.sitl.state_file import WIND_NAMES, Leftover, StateFile

_RETRY_S = 2.0

#: Who has a vehicle whose values look like a bridge's, and no file says whose.
UNSEEN = 'one that cannot be seen from here'

#: What may count as found: as described above, what the vehicle shows, or what a file keeps.
FOUND_IN = ('auto', 'vehicle', 'file')


def listed(values: Mapping[str, float]) -> str:
    """Return names and values as text."""
    return ', '.join(f'{name} {value:g}' for name, value in values.items())


class _Fit(enum.Enum):
    """How the values in a vehicle fit those of a state file."""

    NO = enum.auto()
    #: Nothing speaks against it.
    YES = enum.auto()
    #: The vehicle shows a wind that was sent to it.
    BY_ITS_WIND = enum.auto()
    #: It shows what a bridge never changes, but a wind that was not sent.
    BUT_FOR_ITS_WIND = enum.auto()


@dataclass(frozen=True)
class Rival:
    """Another bridge that drives the same vehicle.

    Both began before either had written, so both have found the user's values.

    Attributes
    ----------
    holder : str
        Who it is.
    first : bool
        Whether its file is the first by name: then it stays, and the other gives way.
    """

    holder: str
    first: bool


class WindOwner:
    """Keeps the values to put back.

    Parameters
    ----------
    notices : Notices
    time_constant : float
        SIM_WIND_TC while wind is written.
    found_in : str, optional
        One of `FOUND_IN`.

    Attributes
    ----------
    found : dict of str to float
        The values to put back.
    in_file : bool
        Whether they come from the state file of a bridge that did not put them back.
    touched : bool
        Whether anything was written since they were found.
    """

    def __init__(self, notices: Notices, time_constant: float, found_in: str = 'auto') -> None:
        self._notices = notices
        self._constants = {TIME_CONSTANT: time_constant}
        self._found_in = found_in
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

    @property
    def kept(self) -> bool:
        """Whether values are kept on disk under this vehicle's name."""
        return self._state is not None and self._state.exists()

    @property
    def may_be_left(self) -> bool:
        """Whether a bridge may have left something, as far as the files tell."""
        return self._state is not None and (
            self._state.exists() or next(self._state.others(), None) is not None)

    def vehicle(self, state: StateFile) -> None:
        """Start with a vehicle, or again with one met the same way; `judge` says which it is."""
        if self._state is not None and self._state.path == state.path:
            return
        if self._state is not None and self._state.locked:
            self._notices.tell(Level.WARN, 'another vehicle answers now; what was found in the one '
                               f'before is kept in {self._state.path}')
            self._state.release()
        self._state = state
        self._forget()

    def _forget(self) -> None:
        self.found = {}
        self.in_file = self.touched = False

    def claim(self, now: float) -> str | None:
        """Try to take the lock; return '' if it is ours, who has it, or None: not now."""
        if self._state is None or now < self._next_try:
            return None
        self._next_try = now + _RETRY_S
        try:
            return self._state.acquire()
        except OSError as error:
            self._notices.problem(
                'state', Level.ERROR, f'no file can be kept in {self._state.path.parent} '
                f'({error.strerror}): nothing is written to SITL, because a bridge that is killed '
                "could not be tidied up after. Parameter 'state_dir' names another place")
            return None

    def claim_leftover(self) -> str:
        """Try to take the lock, to put back what a bridge left; return as `claim` does.

        Raises
        ------
        OSError
            If the folder cannot be used.
        """
        assert self._state is not None
        return self._state.acquire()

    # -- whose values these are

    def judge(self, shown: Mapping[str, float]) -> str:
        """Decide whose the values in the vehicle are; return who has it, '' for nobody or us.

        Afterwards `found` holds what is known to have been there before us, perhaps nothing.
        """
        assert self._state is not None
        if self.found:
            # Who changed only the wind while the link was down did not change the vehicle.
            if self._fit(self._state, Leftover(self.found, self._constants), shown) is not _Fit.NO:
                return ''
            if self.must_restore:
                self._put_aside(shown)
            self._forget()
        else:
            fit = self._take_own(shown)
            if fit is _Fit.BUT_FOR_ITS_WIND:
                return UNSEEN
            if self.found:
                return ''
        for other in self._state.others():
            holder = self._take_other(other, shown)
            if holder or self.found:
                return holder
        if self._found_in != 'vehicle' and self.looks_written(shown):
            return UNSEEN
        return ''

    def _take_own(self, shown: Mapping[str, float]) -> _Fit:
        """Take as found what a bridge kept that did not put it back, if it is this vehicle's."""
        assert self._state is not None
        leftover = self._state.load()
        if leftover.warning:
            self._notices.tell(Level.WARN, leftover.warning + '. The values in the vehicle now '
                               'count as found')
        if not any(name in WRITTEN for name in leftover.found):
            return _Fit.NO
        fit = self._fit(self._state, leftover, shown)
        if self._found_in == 'file':
            fit = _Fit.YES
        elif self._found_in == 'vehicle':
            fit = _Fit.NO
        if fit in (_Fit.YES, _Fit.BY_ITS_WIND):
            self._take(leftover, str(self._state.path))
        elif fit is _Fit.NO:
            self._put_aside(shown)
        return fit

    def _take(self, leftover: Leftover, path: str) -> None:
        self.found = {name: value for name, value in leftover.found.items() if name in WRITTEN}
        self.in_file = True
        self._notices.tell(Level.WARN, 'a bridge ended without putting its wind back; as found '
                           f'count the values kept in {path}: {listed(self.found)}')

    def _put_aside(self, shown: Mapping[str, float]) -> None:
        assert self._state is not None
        path = self._state.path
        aside = self._state.set_aside()
        self._notices.tell(
            Level.WARN, f'the values kept in {path} are those of another vehicle, or somebody has '
            f'changed them since: this one shows {listed(shown)}, which no bridge wrote there. '
            f'They stay in {aside.path}; the values in the vehicle are read anew')

    def _take_other(self, other: StateFile, shown: Mapping[str, float]) -> str:
        """Take the values kept for this vehicle under another name; return whose it is else."""
        assert self._state is not None
        holder = other.holder()
        try:
            leftover = other.peek()
        except (OSError, ValueError, RecursionError):
            return ''
        if self._fit(other, leftover, shown) is not _Fit.BY_ITS_WIND:
            return ''
        if holder:
            return holder
        with contextlib.suppress(OSError):
            if not other.acquire():
                self._take(leftover, str(other.path))
                self._state.adopt(other)
                self._save()
                if not self._unsaved:
                    other.remove()
                other.release()
        return ''

    def _fit(self, state: StateFile, leftover: Leftover, shown: Mapping[str, float]) -> _Fit:
        constants = {PROFILE: UNIFORM, TIME_CONSTANT: USUAL_TIME_CONSTANT, **leftover.constants}
        marked = wind_marked = wind_strange = False
        for name, found in leftover.found.items():
            value = shown.get(name)
            if value is None or value == found:
                continue
            if name in constants:
                if value != validate_value(name, constants[name]):
                    return _Fit.NO
                marked = True
            elif name in WIND_NAMES and state.winds_known:
                sent = state.was_sent(name, value)
                wind_marked |= sent
                wind_strange |= not sent
        if wind_strange:
            return _Fit.BUT_FOR_ITS_WIND if marked else _Fit.NO
        return _Fit.BY_ITS_WIND if wind_marked else _Fit.YES

    def rival(self, name: str, value: float) -> Rival | None:
        """Return the bridge that writes to this vehicle as well, None if there is none to be seen.

        Parameters
        ----------
        name : str
        value : float
            What the vehicle shows of a parameter.
        """
        state = self._state
        if state is None or not state.locked or name not in WIND_NAMES \
                or state.was_sent(name, value):
            return None
        for other in state.others():
            holder = other.holder()
            if holder and other.was_sent(name, value):
                return Rival(holder, other.path < state.path)
        return None

    def withdraw(self) -> None:
        """Leave the vehicle to another bridge that has found the same in it."""
        if self._state is not None:
            with contextlib.suppress(OSError):
                self._state.remove()
            self._state.release()
            self._forget()

    def looks_written(self, shown: Mapping[str, float]) -> bool:
        """Return whether the values in the vehicle look like those that a bridge writes."""
        usual = {validate_value(TIME_CONSTANT, value) for value in (
            USUAL_TIME_CONSTANT, self._constants[TIME_CONSTANT])}
        return (shown.get(TIME_CONSTANT) in usual and shown.get(PROFILE, UNIFORM) == UNIFORM
                and shown.get(SPEED, 0.0) > 0.0)

    # -- keeping

    def remember(self, values: Mapping[str, float]) -> None:
        """Keep what was found, on disk before anything is written."""
        # What is known already is older than anything of ours: from a file that names less than
        # this vehicle has, or from before it was restarted as another version.
        self.found = {name: value for name, value in values.items()
                      if math.isfinite(value)} | self.found
        self._save()
        self._notices.tell(Level.INFO, f'found {listed(self.found)}; put back at the end')

    def note_sent(self, values: Mapping[str, float]) -> None:
        """Keep what is being written, to know the vehicle by."""
        self.touched = True
        if self._state is not None:
            self._state.note_sent(values)

    def save_again(self, now: float) -> None:
        """Save what could not be saved before: a full disk may have room again."""
        if self._unsaved and now >= self._next_try:
            self._next_try = now + _RETRY_S
            self._save()

    def _save(self) -> None:
        assert self._state is not None
        try:
            self._state.save(self.found, self._constants)
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
