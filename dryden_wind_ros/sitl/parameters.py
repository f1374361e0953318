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
from dryden_wind_ros.sitl.sim_wind import (
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
from dryden_wind_ros.sitl.wind_owner import WindOwner, listed
from dryden_wind_ros.sitl.wind_writer import WindWriter

_LOOK_AGAIN_S = 10.0


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
    """

    def __init__(self, send: Callable[..., bool], on_event: Callable[[Event], None],
                 time_constant: float = 0.1,
                 on_sent: Callable[[str, float, float | None], None] | None = None) -> None:
        self._time_constant = validate_value(TIME_CONSTANT, time_constant)
        self._notices = Notices('', on_event)
        names = (*WRITTEN, *ONLY_READ)
        self._reader = ParameterReader(names, send, at_once=len(names))
        self._writer = WindWriter(WRITTEN, self._reader, send, self._notices, on_sent)
        self._owner = WindOwner(self._notices)
        self.phase = Phase.NO_VEHICLE
        self._wind: Wind | None = None
        self._fresh_wind = False
        self._restoring = False
        self._winds = self._dropped = 0

    # -- what happens to us

    def vehicle(self, system: int, component: int, state: StateFile, where: str) -> None:
        """Start with a vehicle, or start again with one that came back or was restarted.

        The values found before are kept if it is the same vehicle: after a restart it has from
        its eeprom what was written last, and that is ours.
        """
        self._owner.vehicle(state)
        self._notices.restart(where)
        self._reader.vehicle(system, component)
        self._writer.forget()
        self.phase = Phase.READING

    def lost(self) -> None:
        """Stop for now: the connection is gone."""
        self.phase = Phase.NO_VEHICLE

    def set_wind(self, wind: Wind) -> None:
        """Take the newest wind; it goes out at the next `poll` that may write."""
        self._winds += 1
        if self._fresh_wind:
            self._dropped += 1
        self._wind = wind
        self._fresh_wind = True

    def restore(self) -> None:
        """Begin to put back what was found. `poll` goes on with it; `restored` says when done."""
        self._restoring = True
        self._fresh_wind = False
        if self.phase is not Phase.NO_VEHICLE:
            self._owner.claim_leftover()
        if not self._owner.must_restore:
            self.phase = Phase.RESTORED
            self._owner.end()
        elif self.phase is not Phase.NO_VEHICLE:
            self.phase = Phase.RESTORING
            self._writer.put_back(self._owner.found)

    @property
    def restoring(self) -> bool:
        """Whether `restore` was called."""
        return self._restoring

    @property
    def writing(self) -> bool:
        """Whether the values in the vehicle are ours now."""
        return self.phase in (Phase.WRITING, Phase.RESTORING)

    @property
    def restored(self) -> bool:
        """Whether nothing is left to put back."""
        return self.phase is Phase.RESTORED

    def abandon(self) -> None:
        """End without waiting longer; what is not confirmed stays in the state file."""
        if self.phase is Phase.RESTORED:
            return
        if self._owner.must_restore:
            left = [f'{name} = {self._writer.wanted(name):g}' for name in self._writer.unconfirmed
                    ] if self.phase is Phase.RESTORING else []
            self._notices.tell(
                Level.ERROR, 'could not put everything back'
                + (f' (not confirmed: {", ".join(left)})' if left else ' (no vehicle there)')
                + f'; the values found are kept in {self._owner.kept_in}, and the next bridge '
                'puts them back')
        self._owner.abandon()

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
        if self.phase is Phase.READING:
            self._read(now, last_heard)
        if self.phase in (Phase.READY, Phase.BUSY):
            self._begin(now, may_write)
        elif self.phase is Phase.NOT_A_SIMULATOR:
            asked_at = self._reader.asked_at(SPEED)
            if now - asked_at > _LOOK_AGAIN_S and last_heard > asked_at:
                self._reader.ask(SPEED, now)
        if self.phase is Phase.WRITING:
            if self._fresh_wind and may_write and self._writer.may_write(now, vehicle_time):
                self._fresh_wind = False
                self._aim(now)
            self._owner.save_again(now)
        if self.writing:
            if may_write and self._writer.write(now, vehicle_time):
                self._owner.touched = True
            self._writer.look(now, last_heard)
        if self.phase is Phase.RESTORING and self._writer.settled:
            self._restored()

    # -- reading

    def _read(self, now: float, last_heard: float) -> None:
        self._reader.poll(now, last_heard)
        absent = [name for name in REQUIRED if name in self._reader.missing]
        if absent:
            self.phase = Phase.NOT_A_SIMULATOR
            self._notices.problem(
                'simulator', Level.ERROR, f'vehicle {self._reader.system} has no {absent[0]}: that '
                'one is not a simulator. Nothing is written to it')
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
        if self._restoring:
            self.restore()
        elif self._owner.held:
            values = self._present(WRITTEN)
            if values.keys() - self._owner.found.keys():
                self._owner.remember(values)
            self.phase = Phase.WRITING
            self._aim(now)
        else:
            self._notices.tell(Level.INFO, f'read {listed(self._present(self._reader.names))}')
            self.phase = Phase.READY

    def _present(self, names: tuple[str, ...]) -> dict[str, float]:
        reader = self._reader
        return {name: reader.values[name] for name in names if reader.present(name)}

    def _begin(self, now: float, may_write: bool) -> None:
        """Make the vehicle ours, once there is a wind to write."""
        if self._wind is None or not may_write:
            return
        holder = self._owner.claim(now)
        if holder is None:
            return
        if holder:
            self.phase = Phase.BUSY
            self._notices.problem(
                'busy', Level.ERROR, f'another bridge ({holder}) drives the wind of vehicle '
                f'{self._reader.system}; this one writes nothing until that one ends')
            return
        if self._notices.solved('busy'):
            self._notices.tell(Level.INFO, 'the other bridge has ended; taking over')
        # Read again: another bridge may have put its own values back since.
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

    # -- the end

    def _restored(self) -> None:
        refused = self._writer.refused
        if refused:
            self._notices.tell(Level.ERROR, f'put back all but {", ".join(refused)}, which the '
                               'vehicle refused')
        else:
            self._notices.tell(Level.INFO, 'put back and confirmed: ' + listed(
                {name: value for name, value in self._owner.found.items()
                 if name not in self._reader.missing}))
        self.phase = Phase.RESTORED
        self._owner.end()

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
