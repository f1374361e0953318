"""SITL's wind parameters: read, remember, set, confirm, and put back.

What this is for: twenty times per second of vehicle time a new wind goes into ``SIM_WIND_SPD``,
``SIM_WIND_DIR`` and ``SIM_WIND_DIR_Z``, and afterwards SITL is as it was found. `ParameterReader`
knows what the vehicle has, `WindOwner` what it had before us, `WindWriter` what it is to have;
`WindParameters` leads them from one phase to the next.

Nothing here waits, and nothing here knows ROS.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dryden_wind_ros.sitl.events import Event, Level, Notices
from dryden_wind_ros.sitl.parameter_reader import ParameterReader, validate_value
from dryden_wind_ros.sitl.patience import Patience
from dryden_wind_ros.sitl.sim_wind import (
    DIRECTION,
    DIRECTION_Z,
    ONLY_READ,
    PROFILE,
    REQUIRED,
    SPEED,
    TIME_CONSTANT,
    UNIFORM,
    WRITTEN,
    Wind,
)
from dryden_wind_ros.sitl.state_file import StateFile
from dryden_wind_ros.sitl.wind_owner import UNSEEN, WindOwner, listed
from dryden_wind_ros.sitl.wind_watch import WindWatch
from dryden_wind_ros.sitl.wind_writer import WindWriter

_LOOK_AGAIN_S = 10.0
#: Without a gust_timeout, missing winds are told after so long, s.
_SAY_AFTER_S = 5.0
_RIVAL_S = 0.25
#: At the end a vehicle may be gone so long, be silent so long, and show no progress so long, s.
_GONE_S, _SILENT_S, _STUCK_S = 1.8, 5.0, 8.0

#: Winds, whose echoes come twenty times a second each.
_ECHOED = {name.encode(): name for name in (SPEED, DIRECTION, DIRECTION_Z)}


class Phase(enum.Enum):
    """How far the wind parameters have come."""

    NO_VEHICLE = 'no vehicle'
    READING = 'reading'
    READY = 'read, nothing written yet'
    NOT_A_SIMULATOR = 'not a simulator'
    BUSY = 'another bridge drives this vehicle'
    WRITING = 'writing'
    RESTORING = 'putting back'
    RESTORED = 'put back'


@dataclass(frozen=True)
class ParametersStatus:
    """A snapshot of the wind parameters.

    Attributes
    ----------
    phase : Phase
    found : tuple of (str, float)
        The values to put back.
    found_in_file : bool
        Whether they come from the state file of a bridge that did not put them back.
    in_force : tuple of (str, float)
        The newest value that the vehicle told of each.
    missing : tuple of str
        What this version of SITL does not have.
    unconfirmed : tuple of str
        What was written and stands still, but is not confirmed yet.
    sent, echoed : int
        Values written and values heard back.
    winds, winds_dropped : int
        Winds received, and those that a newer one overtook before they could be sent.
    problems : tuple of str
        What is wrong now and lasts.
    """

    phase: Phase
    found: tuple[tuple[str, float], ...] = ()
    found_in_file: bool = False
    in_force: tuple[tuple[str, float], ...] = ()
    missing: tuple[str, ...] = ()
    unconfirmed: tuple[str, ...] = ()
    sent: int = 0
    echoed: int = 0
    winds: int = 0
    winds_dropped: int = 0
    problems: tuple[str, ...] = ()


class WindParameters:
    """Keeps one vehicle's SIM_WIND_* parameters.

    Parameters
    ----------
    send : callable
        Sends MAVLink messages together, returns whether they went out; must not wait.
    on_event : callable
        Called with an `Event` for what a user should read.
    time_constant : float
        SIM_WIND_TC while we write: 0.1 is SITL's floor, 0.016 s in truth (TC / 2 pi).
    on_sent : callable, optional
        Called with name, value and vehicle time (s or None) of everything that was written.
    found_in : str, optional
        What counts as found: one of `wind_owner.FOUND_IN`.
    gust_timeout : float, optional
        Steady time without a new wind, while the vehicle flies on, after which the gust is taken
        away, s; 0: never.
    sender : tuple of int, optional
        Our MAVLink system and component, which answers are addressed to.

    Attributes
    ----------
    phase : Phase
    left : str
        What could not be put back, and why; '' as long as that is not certain.
    """

    def __init__(self, send: Callable[..., bool], on_event: Callable[[Event], None],
                 time_constant: float = 0.1,
                 on_sent: Callable[[str, float, float | None], None] | None = None,
                 found_in: str = 'auto', gust_timeout: float = 5.0,
                 sender: tuple[int, int] = (0, 0)) -> None:
        self._time_constant = validate_value(TIME_CONSTANT, time_constant)
        self._notices = Notices('', on_event)
        names = (*WRITTEN, *ONLY_READ)
        self._reader = ParameterReader(names, send, at_once=len(names), sender=sender)
        self._owner = WindOwner(self._notices, time_constant, found_in)
        self._writer = WindWriter(WRITTEN, self._reader, send, self._notices, on_sent,
                                  self._owner.note_sent)
        self._gust_timeout = gust_timeout
        self._watch = WindWatch(gust_timeout or _SAY_AFTER_S)
        self._patience = Patience(_SILENT_S, _STUCK_S)
        self._patience_gone = Patience(_GONE_S, _GONE_S)
        self.phase = Phase.NO_VEHICLE
        self.left = ''
        self._wind: Wind | None = None
        self._fresh_wind = False
        self._restoring = False
        self._winds = self._dropped = 0
        #: The newest value that the vehicle told while it was written to.
        self._told: tuple[str, float] | None = None
        self._next_rival = 0.0

    # -- what happens to us

    def vehicle(self, system: int, component: int, state: StateFile, where: str) -> None:
        """Start with a vehicle, or start again with one that came back or was restarted.

        Whether it is the one from before is judged by what it shows: after a restart it has from
        its eeprom what was written last.
        """
        if self.finished:
            return
        self._owner.vehicle(state)
        self._notices.restart(where)
        self._reader.vehicle(system, component)
        self._writer.forget()
        self.phase = Phase.READING

    def lost(self) -> None:
        """Stop for now: the connection is gone."""
        if not self.finished:
            self.phase = Phase.NO_VEHICLE

    def set_wind(self, wind: Wind, overtaken: int = 0) -> None:
        """Take the newest wind; it goes out at the next `poll` that may write.

        Parameters
        ----------
        wind : Wind
        overtaken : int, optional
            How many came before it that were not taken here.
        """
        self._winds += 1 + overtaken
        self._dropped += overtaken + self._fresh_wind
        self._wind = wind
        self._fresh_wind = True
        self._watch.wind()
        if self._notices.solved('no wind'):
            self._notices.tell(Level.INFO, 'winds come again')

    @property
    def restoring(self) -> bool:
        """Whether `restore` was called."""
        return self._restoring

    @property
    def writing(self) -> bool:
        """Whether the values in the vehicle are ours now."""
        return self.phase in (Phase.WRITING, Phase.RESTORING)

    @property
    def hurried(self) -> bool:
        """Whether `poll` may have something to do now; else some hundredths of a second later."""
        return self._fresh_wind or self.phase is not Phase.WRITING or self._writer.maybe_due

    @property
    def restored(self) -> bool:
        """Whether nothing is left to put back."""
        return self.phase is Phase.RESTORED

    @property
    def finished(self) -> bool:
        """Whether putting back has come to its end, a good one or not."""
        return self.restored or bool(self.left)

    def on_message(self, message: Any, now: float) -> None:
        """Take PARAM_VALUE and PARAM_ERROR; others are ignored."""
        answer = self._reader.on_message(message)
        if answer is None:
            return
        if answer.value is None:
            self._writer.refuse(answer.name, answer.refusal)
        elif self.phase is Phase.NOT_A_SIMULATOR and answer.name == SPEED:
            self._notices.solved('simulator')
            self._notices.tell(Level.INFO, f'{SPEED} answers now')
            self._reader.vehicle(self._reader.system, self._reader.component)
            self.phase = Phase.READING
        elif self.writing:
            self._writer.heard(answer.name, answer.value, answer.before, now)
            self._told = (answer.name, answer.value)

    def echo(self, name: bytes, value: float, now: float) -> bool:
        """Take an echo of a wind that was written; return whether it is one and needs no decoding.

        It is what `on_message` does with it, without a message: there are sixty in a second.
        """
        known = _ECHOED.get(name)
        if known is None or not self.writing or not self._reader.present(known):
            return False
        self._writer.heard(known, value, self._reader.told(known, value), now)
        self._told = (known, value)
        return True

    def poll(self, now: float, vehicle_time: float | None, last_heard: float,
             may_write: bool = True) -> None:
        """Do what is due.

        Call it after everything that has arrived was read.

        Parameters
        ----------
        now : float
            Steady wall time, s.
        vehicle_time : float or None
            Newest time of the vehicle, s.
        last_heard : float
            Steady time at which the vehicle was heard last.
        may_write : bool
            False while it is not sure whose parameters these are.
        """
        if self.finished:
            return
        if self.phase is Phase.READING:
            self._read(now, last_heard)
        if self.phase in (Phase.READY, Phase.BUSY) and not self._restoring:
            self._begin(now, may_write)
        elif self.phase is Phase.NOT_A_SIMULATOR:
            asked_at = self._reader.asked_at(SPEED)
            if now - asked_at > _LOOK_AGAIN_S and last_heard > asked_at:
                self._reader.ask(SPEED, now)
        if self.phase is Phase.WRITING:
            self._watch_winds(now, vehicle_time)
            if self._fresh_wind and may_write and self._writer.may_write(now, vehicle_time):
                self._fresh_wind = False
                self._aim(now)
            self._owner.save_again(now)
            self._look_for_rival(now)
        if self.writing:
            if may_write:
                self._writer.write(now, vehicle_time)
            self._writer.look(now, last_heard)
        if self.phase is Phase.RESTORING and self._writer.settled:
            self._put_back()

    # -- reading

    def _read(self, now: float, last_heard: float) -> None:
        self._reader.poll(now, last_heard)
        absent = [name for name in REQUIRED if name in self._reader.missing]
        if absent:
            self.phase = Phase.NOT_A_SIMULATOR
            self._notices.problem(
                'simulator', Level.ERROR, f'vehicle {self._reader.system} has no {absent[0]}: that '
                'one is not a simulator. Nothing is written to it')
            if self._restoring:
                self.restore()
        elif self._reader.done:
            self._all_read(now)

    def _all_read(self, now: float) -> None:
        missing = [name for name in WRITTEN if name in self._reader.missing]
        if missing:
            self._notices.problem(
                'missing', Level.WARN,
                f'this SITL has no {", ".join(missing)}; going on without'
                + (': gusts pass through its fixed filter' if TIME_CONSTANT in missing else '')
                + (': its wind may fade near the ground' if PROFILE in missing else ''))
        if not self._owner.held:
            self._notices.tell(Level.INFO, f'read {listed(self._present(self._reader.names))}')
            self.phase = Phase.READY
        else:
            self._take(now)
        if self._restoring:
            self.restore()

    def _take(self, now: float) -> None:
        """Begin to write to the vehicle, unless somebody else does."""
        values = self._present(WRITTEN)
        holder = self._owner.judge(values)
        if holder:
            self._busy(holder)
            return
        if self._notices.solved('busy'):
            self._notices.tell(Level.INFO, 'the other bridge has ended; taking over')
        if self._restoring:
            # What is there is ours, or there is nothing of ours.
            self.phase = Phase.READY
            return
        if values.keys() - self._owner.found.keys():
            self._owner.remember(values)
        self.phase = Phase.WRITING
        self._aim(now)

    def _busy(self, holder: str) -> None:
        self._owner.abandon()
        self.phase = Phase.BUSY
        system = self._reader.system
        if holder == UNSEEN:
            text = (f'vehicle {system} shows {listed(self._present(WRITTEN))}, as a bridge writes '
                    'it, and no kept values of its own fit: another bridge seems to drive its wind '
                    '(on another machine, as another user), or one was killed there. Nothing is '
                    'written to it. End that bridge; or set the parameters as they should be; or, '
                    "if this is how they should be, start with the parameter 'found_in' as "
                    "'vehicle'")
            if self._owner.kept:
                text += f" ('file' takes those kept in {self._owner.kept_in})"
        else:
            text = (f'another bridge ({holder}) drives the wind of vehicle {system}; this one '
                    'writes nothing until that one ends')
        self._notices.problem('busy', Level.ERROR, text)

    def _present(self, names: tuple[str, ...]) -> dict[str, float]:
        reader = self._reader
        return {name: reader.values[name] for name in names if reader.present(name)}

    def _begin(self, now: float, may_write: bool) -> None:
        """Make the vehicle ours, once there is a wind to write."""
        if self._wind is None or not may_write:
            return
        holder = self._owner.claim(now)
        if holder:
            self._busy(holder)
        elif holder is not None:
            self._read_again()

    def _read_again(self) -> None:
        # Another bridge may have put its own values back since.
        self._reader.again(self._present(self._reader.names))
        self.phase = Phase.READING

    # -- writing

    def _aim(self, now: float) -> None:
        """Set what each value is to be, from the newest wind."""
        wind = self._wind
        if wind is None:
            return
        values = {**dict(wind.values()), TIME_CONSTANT: self._time_constant}
        profile = UNIFORM if wind.profile == 'uniform' else self._owner.found.get(PROFILE)
        if profile is not None:
            values[PROFILE] = profile
        self._writer.aim(values, now)

    def _watch_winds(self, now: float, vehicle_time: float | None) -> None:
        wind = self._wind
        if wind is None:
            return
        if not self._watch.overdue(now, vehicle_time, wind.gusty) or 'no wind' in self._notices:
            return
        mean = wind.without_gust()
        text = (f'no sim_wind for {self._watch.silent:.0f} s while the vehicle flies on: the wind '
                'node has ended, or does not hear the clock. ')
        stays = f'the mean wind of {mean.speed:.1f} m/s from {mean.direction % 360:.0f} deg stays'
        if not wind.gusty:
            text += f'There is no gust to take away; {stays}'
        elif self._gust_timeout:
            text += f'The gust is taken away; {stays}'
            self._wind, self._fresh_wind = mean, True
        else:
            text += "The last gust stays, because 'gust_timeout' is 0"
        self._notices.problem('no wind', Level.WARN, text)

    def _look_for_rival(self, now: float) -> None:
        """Notice a bridge that began in the same moment, before either had written."""
        if self._told is None or now < self._next_rival:
            return
        self._next_rival = now + _RIVAL_S
        rival = self._owner.rival(*self._told)
        self._told = None
        if rival is None:
            return
        if rival.first:
            self._owner.withdraw()
            self._writer.forget()
            self._busy(rival.holder)
        else:
            self._writer.again()  # the other gives way; what it wrote is not what is wanted

    # -- the end

    def restore(self) -> None:
        """Begin to put back what was found. `poll` goes on with it; `finished` says when done.

        Nothing is written to a vehicle whose parameters were not read yet.
        """
        self._restoring = True
        self._fresh_wind = False
        if self.finished:
            return
        owner = self._owner
        if self.phase is Phase.NOT_A_SIMULATOR:
            self.abandon()
        elif not owner.must_restore and (self.phase is not Phase.READING or not owner.may_be_left):
            if self.phase is Phase.READY and not owner.held and not self._claim_leftover():
                return
            self._over()
        elif self.phase in (Phase.READY, Phase.WRITING):
            self.phase = Phase.RESTORING
            self._writer.put_back(owner.found)

    def _claim_leftover(self) -> bool:
        """See to what a killed bridge left though no wind came; return whether that is done."""
        owner, shown = self._owner, self._present(WRITTEN)
        try:
            if owner.may_be_left and not owner.claim_leftover():
                self._read_again()
                return False
        except OSError as error:
            if owner.kept or owner.looks_written(shown):
                self._give_up(f'it shows {listed(shown)}, perhaps left by a bridge, and the folder '
                              f'of kept values cannot be used ({error.strerror})')
                return False
        return True

    def wait_longer(self, now: float, heard: int) -> bool:
        """Take a turn of waiting for the end; return whether there is reason to wait longer.

        Parameters
        ----------
        now : float
            Steady time, s.
        heard : int
            How many frames were heard on the link.
        """
        if self.finished:
            return False
        progress = (self.phase, self._writer.confirmed, self._reader.left)
        patience = self._patience_gone if self.phase is Phase.NO_VEHICLE else self._patience
        if patience.over(now, progress, heard):
            self.abandon()
        return not self.finished

    def abandon(self) -> None:
        """End without waiting longer; what is not confirmed stays in the state file."""
        if self.finished:
            return
        unread = self.phase is Phase.READING and self._owner.kept
        if not self._owner.must_restore and not unread:
            self._over()
        else:
            self._give_up({
                Phase.NO_VEHICLE: 'no vehicle there',
                Phase.NOT_A_SIMULATOR: 'what answers there now is no simulator',
                Phase.READING: 'it did not tell its parameters in time',
            }.get(self.phase, 'not confirmed in time'))

    def _give_up(self, why: str) -> None:
        left = self._owner.found
        if self.phase is Phase.RESTORING:
            left = {name: value for name, value in left.items()
                    if name in self._writer.unconfirmed}
        self.left = f'{listed(left)} ({why})' if left else why
        kept = (f'; the values found are kept in {self._owner.kept_in}, and the next bridge puts '
                'them back' if self._owner.kept else '; they are kept nowhere')
        self._notices.tell(Level.ERROR, f'could not put everything back: {self.left}{kept}')
        self._owner.abandon()

    def _put_back(self) -> None:
        found = self._owner.found
        if self._writer.refused:
            self._give_up('which the vehicle refused')
            return
        self._notices.tell(Level.INFO, 'put back and confirmed: ' + listed(
            {name: value for name, value in found.items() if name not in self._reader.missing}))
        self._over()

    def _over(self) -> None:
        self.phase = Phase.RESTORED
        if self._owner.touched or self._owner.in_file:
            self._owner.end()
        else:
            self._owner.abandon()

    # -- telling

    def status(self) -> ParametersStatus:
        """Return a snapshot; may be called from any thread."""
        return ParametersStatus(
            phase=self.phase, found=tuple(self._owner.found.items()),
            found_in_file=self._owner.in_file,
            in_force=tuple(self._present(self._reader.names).items()),
            missing=tuple(name for name in self._reader.names if name in self._reader.missing),
            unconfirmed=self._writer.unconfirmed, sent=self._writer.sent,
            echoed=self._writer.echoed, winds=self._winds, winds_dropped=self._dropped,
            problems=self._notices.problems)
