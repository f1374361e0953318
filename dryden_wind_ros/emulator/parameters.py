"""Parameters of the embedded vehicle: types, defaults, what is saved and what a save answers.

ArduPilot applies a PARAM_SET at once and puts the value into a queue of 30 saves; the PARAM_VALUE
echo follows the save. A save whose parameter heads the queue already is skipped, with its echo,
and while the vehicle is armed a save that finds the queue full is lost.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Iterable
from enum import Enum
from pathlib import Path

from dryden_wind_ros.emulator.config import GAIN_DEFAULTS, VehicleConfig

INT8, INT16, INT32, REAL32 = 2, 4, 6, 9
SAVE_QUEUE_LENGTH = 30

WIND = ('SIM_WIND_SPD', 'SIM_WIND_DIR', 'SIM_WIND_DIR_Z')
"""What a tick of the air is written to."""

_THREE = struct.Struct('<3f')
_RANGES = {INT8: (-128, 127), INT16: (-32768, 32767), INT32: (-2147483648, 2147483647)}

_COMMON: tuple[tuple[str, float, int], ...] = (
    ('AHRS_EKF_TYPE', 3, INT8),
    ('AHRS_GPS_USE', 1, INT8),
    ('AHRS_ORIENTATION', 0, INT8),
    ('AHRS_WIND_MAX', 0, INT8),
    ('ARMING_CHECK', 1, INT32),
    ('ARMING_SKIPCHK', 0, INT32),
    ('BATT_MONITOR', 4, INT8),
    ('COMPASS_ENABLE', 1, INT8),
    ('COMPASS_USE', 1, INT8),
    ('EK2_ENABLE', 0, INT8),
    ('EK3_BETA_MASK', 0, INT8),
    ('EK3_DRAG_BCOEF_X', 0, REAL32),
    ('EK3_DRAG_BCOEF_Y', 0, REAL32),
    ('EK3_DRAG_MCOEF', 0, REAL32),
    ('EK3_EAS_I_GATE', 400, INT16),
    ('EK3_EAS_M_NSE', 1.4, REAL32),
    ('EK3_ENABLE', 1, INT8),
    ('EK3_GPS_CHECK', 31, INT8),
    ('EK3_IMU_MASK', 3, INT8),
    ('EK3_LOG_LEVEL', 0, INT8),
    ('EK3_MAG_CAL', 3, INT8),
    ('EK3_OPTIONS', 0, INT32),
    ('EK3_POSNE_M_NSE', 0.5, REAL32),
    ('EK3_PRIMARY', 0, INT8),
    ('EK3_SRC1_POSXY', 3, INT8),
    ('EK3_SRC1_POSZ', 1, INT8),
    ('EK3_SRC1_VELXY', 3, INT8),
    ('EK3_SRC1_VELZ', 3, INT8),
    ('EK3_SRC1_YAW', 1, INT8),
    ('EK3_WIND_PSCALE', 1, REAL32),
    ('FS_EKF_ACTION', 1, INT8),
    ('FS_EKF_THRESH', 0.8, REAL32),
    ('GPS1_TYPE', 1, INT8),
    ('INS_GYRO_FILTER', 20, INT16),
    ('LOG_BACKEND_TYPE', 1, INT8),
    ('LOG_BITMASK', 65535, INT32),
    ('LOG_DISARMED', 0, INT8),
    ('MAV_GCS_SYSID', 255, INT16),
    ('MIS_TOTAL', 0, INT16),
    ('SERIAL0_BAUD', 115, INT32),
    ('SERIAL0_PROTOCOL', 2, INT8),
    ('SERIAL1_BAUD', 57, INT32),
    ('SERIAL1_PROTOCOL', 2, INT8),
    ('SERIAL2_BAUD', 57, INT32),
    ('SERIAL2_PROTOCOL', 2, INT8),
    ('SIM_BATT_VOLTAGE', 12.6, REAL32),
    ('SIM_GPS1_ENABLE', 1, INT8),
    ('SIM_GPS1_LAG_MS', 100, INT16),
    ('SIM_GPS1_TYPE', 1, INT8),
    ('SIM_RATE_HZ', 1200, INT16),
    ('SIM_RC_FAIL', 0, INT8),
    ('SIM_WIND_DIR', 180, REAL32),
    ('SIM_WIND_DIR_Z', 0, REAL32),
    ('SIM_WIND_SPD', 0, REAL32),
    ('SIM_WIND_T', 0, INT8),
    ('SIM_WIND_TC', 5, REAL32),
    ('SIM_WIND_TURB', 0, REAL32),
    ('SIM_WIND_T_ALT', 60, REAL32),
    ('SIM_WIND_T_COEF', 0.01, REAL32),
    ('STAT_BOOTCNT', 1, INT16),
)

_WING: tuple[tuple[str, float, int], ...] = (
    ('AHRS_OPTIONS', 0, INT16),
    ('AIRSPEED_CRUISE', 22, REAL32),
    ('AIRSPEED_MAX', 30, INT16),
    ('AIRSPEED_MIN', 10, INT16),
    ('ARSPD_TYPE', 2, INT8),
    ('EK3_WIND_P_NSE', 0.1, REAL32),
    ('ROLL_LIMIT_DEG', 45, REAL32),
    ('WP_LOITER_RAD', 80, INT16),
)

_COPTER: tuple[tuple[str, float, int], ...] = (
    ('AHRS_OPTIONS', 0, INT16),
    ('ANGLE_MAX', 4500, INT16),
    ('ARSPD_TYPE', 0, INT8),
    ('ARSPD_USE', 0, INT8),
    ('EK3_WIND_P_NSE', 0.2, REAL32),
    ('FRAME_CLASS', 1, INT8),
    ('FRAME_TYPE', 0, INT8),
    ('MOT_THST_HOVER', 0.39, REAL32),
)


class SetOutcome(Enum):
    """What became of one write."""

    DONE = 'done'
    UNKNOWN = 'unknown'
    NOT_A_NUMBER = 'not a number'
    REFUSED = 'refused'
    SAVE_LOST = 'save lost'


def default_parameters(config: VehicleConfig) -> dict[str, tuple[float, int]]:
    """Return name -> (value, MAV_PARAM_TYPE) as this vehicle boots with wiped parameters.

    Raises
    ------
    ValueError
        When ``config.parameters`` names a parameter this vehicle does not have.
    """
    table = {name: (float(value), kind) for name, value, kind in _COMMON}
    special = _COPTER if config.kind == 'copter' else _WING
    table.update({name: (float(value), kind) for name, value, kind in special})
    table['SCHED_LOOP_RATE'] = (float(config.loop_rate), INT16)
    table['SIM_SPEEDUP'] = (config.speedup, REAL32)
    table['MAV_SYSID'] = (float(config.sysid), INT16)
    if config.kind == 'copter' and config.drag:
        # ArduPilot's copter-wind-estimates.parm
        table.update({'EK3_DRAG_BCOEF_X': (9.5, REAL32), 'EK3_DRAG_BCOEF_Y': (9.5, REAL32),
                      'EK3_DRAG_MCOEF': (0.082, REAL32)})
    if config.dynamics:
        table.update({name: (value, REAL32) for name, value in GAIN_DEFAULTS.items()})
    if config.kind != 'copter':
        table['ARSPD_USE'] = (float(config.airspeed), INT8)
    if config.kind == 'quadplane':
        table['Q_ENABLE'] = (1.0, INT8)
    for name, value in config.parameters:
        if name not in table:
            raise ValueError(f'this {config.kind} has no parameter {name!r}')
        table[name] = (value, table[name][1])
    for name in tuple(table):
        if name in config.without_parameters or (
                not config.simulator and name.startswith('SIM_')):
            del table[name]
    return dict(sorted(table.items()))


def cast(value: float, kind: int) -> float:
    """Return ``value`` as ArduPilot stores it in a parameter of this type."""
    if kind == REAL32:
        return float(struct.unpack('<f', struct.pack('<f', value))[0])
    low, high = _RANGES[kind]
    # ArduPilot adds 0.01 before it truncates
    return float(int(min(max(value + math.copysign(0.01, value), low), high)))


class Eeprom:
    """Saved values: what outlives a reboot, and a restart when a file is given."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.values: dict[str, float] = {}
        self._dirty = False
        if path is not None and path.exists():
            try:
                content = json.loads(path.read_text())
                self.values = {str(name): float(value) for name, value in content.items()}
            except (ValueError, AttributeError, TypeError) as error:
                raise ValueError(f'{path} holds no saved parameters: {error}') from None

    def keep(self, names: Iterable[str], values: dict[str, float]) -> None:
        """Keep some of these values; :meth:`flush` puts them into the file."""
        kept = self.values
        for name in names:
            kept[name] = values[name]
        self._dirty = True

    def keep_wind(self, speed: float, direction: float, direction_z: float) -> None:
        """Keep these of `WIND`."""
        kept = self.values
        kept['SIM_WIND_SPD'], kept['SIM_WIND_DIR'] = speed, direction
        kept['SIM_WIND_DIR_Z'] = direction_z
        self._dirty = True

    def flush(self) -> None:
        """Write the file if anything changed (not at each save: gusts save 60 times per second)."""
        if self._dirty and self.path is not None:
            self._dirty = False
            partial = self.path.with_name(self.path.name + '.part')
            partial.write_text(json.dumps(self.values, indent=0))
            os.replace(partial, self.path)


class ParameterTable:
    """The parameters of one boot.

    Attributes
    ----------
    names : list of str
        In the order of their indices.
    values : dict of str to float
        What is in force.
    """

    def __init__(self, defaults: dict[str, tuple[float, int]], eeprom: Eeprom,
                 refused: Iterable[str] = ()) -> None:
        self.names = list(defaults)
        self.index = {name: number for number, name in enumerate(self.names)}
        self.types = {name: kind for name, (_, kind) in defaults.items()}
        self.values = {name: cast(value, kind) for name, (value, kind) in defaults.items()}
        self._eeprom = eeprom
        self._refused = frozenset(refused)
        self._queue: list[str] = []
        self._wind_is_plain = all(self.types.get(name) == REAL32 and name not in self._refused
                                  for name in WIND)
        for name, value in eeprom.values.items():
            if name in self.values:
                self.values[name] = cast(value, self.types[name])

    def get(self, name: str, default: float = 0.0) -> float:
        """Return the value in force, or ``default`` where this version lacks the parameter."""
        return self.values.get(name, default)

    def set(self, name: str, value: float, armed: bool) -> SetOutcome:
        """Apply one write at once and queue its save."""
        if name not in self.values:
            return SetOutcome.UNKNOWN
        if not math.isfinite(value):
            return SetOutcome.NOT_A_NUMBER
        if name in self._refused:
            return SetOutcome.REFUSED
        value = cast(value, self.types[name])
        if value == self.values[name]:
            return SetOutcome.DONE
        self.values[name] = value
        if self._queue and self._queue[0] == name:
            return SetOutcome.DONE
        if len(self._queue) >= SAVE_QUEUE_LENGTH and armed:
            return SetOutcome.SAVE_LOST
        self._queue.append(name)
        return SetOutcome.DONE

    def set_wind(self, speed: float, direction: float, direction_z: float,
                 heard: bool = True) -> tuple[float, float, float] | None:
        """Set the three of `WIND`; the outcome is that of `set`, one after the other.

        Parameters
        ----------
        speed, direction, direction_z : float
        heard : bool
            Whether anybody waits for the echoes; if not, they are saved without being queued.

        Returns
        -------
        tuple of float or None
            The values as they are stored; None where one of them needs `set`, and none is set.
        """
        queue, values = self._queue, self.values
        if (not self._wind_is_plain or len(queue) > SAVE_QUEUE_LENGTH - len(WIND)
                or (speed + direction + direction_z) * 0.0 != 0.0):
            return None
        stored: tuple[float, float, float] = _THREE.unpack(
            _THREE.pack(speed, direction, direction_z))
        if not heard and not queue:
            values['SIM_WIND_SPD'], values['SIM_WIND_DIR'], values['SIM_WIND_DIR_Z'] = stored
            self._eeprom.keep_wind(*stored)
            return stored
        for name, value in zip(WIND, stored, strict=True):
            if value != values[name]:
                values[name] = value
                if not queue or queue[0] != name:
                    queue.append(name)
        return stored

    def save(self) -> list[str]:
        """Save what is queued; return the names whose echo is due, in order."""
        if not self._queue:
            return []
        saved, self._queue = self._queue, []
        self._eeprom.keep(saved, self.values)
        return saved


def read_parameter_file(path: Path) -> list[tuple[str, float]]:
    """Read a ``.parm`` file: ``NAME VALUE`` or ``NAME,VALUE`` lines, ``#`` comments.

    Raises
    ------
    ValueError
        Naming the file and the line that cannot be read.
    """
    found = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        words = line.split('#', 1)[0].replace(',', ' ').replace('=', ' ').split()
        if not words:
            continue
        try:
            name, value = words[0], float(words[1])
        except (IndexError, ValueError):
            raise ValueError(f'{path} line {number}: {line.strip()!r} is not NAME VALUE') from None
        found.append((name, value))
    return found
