"""What to change so that EKF3's wind estimate is good, and when not to trust it yet.

Each check is a pure function of parameters, or of the take-off, and returns a list of
:class:`Advice` in the user's terms: what it means, and which parameter to set to what.
:class:`WindAdvisor` puts them together for one vehicle and keeps track of what was said already.

Sources: ArduPilot 4.7.0-dev (``AP_NavEKF3_Control.cpp``, ``AP_AHRS.cpp``), and recorded flights of
its simulator for how large the errors are.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .phase import EkfWindState, WindPhase

PARAMETERS = (
    'AHRS_EKF_TYPE', 'AHRS_OPTIONS', 'AHRS_WND_DIR', 'AHRS_WND_ENBL', 'AHRS_WND_SPD', 'ARSPD_TYPE',
    'ARSPD_USE', 'EK3_DRAG_BCOEF_X', 'EK3_DRAG_BCOEF_Y', 'EK3_DRAG_MCOEF', 'EK3_ENABLE',
    'EK3_WIND_PSCALE', 'EK3_WIND_P_NSE', 'Q_ENABLE',
)
"""Parameters to read from the vehicle for these checks; each may be missing there."""

TAKE_OFF_LIMIT = 30.0
"""Degrees off the wind up to which a take-off gives EKF3 a useful first guess."""

STEADY_GUST = 0.5
"""Standard deviation of the horizontal gust up to which a wind is called steady, m/s."""

STRONG_GUST = 1.0
"""Standard deviation of the horizontal gust from which a wind is called strongly varying, m/s."""

NEWS_AFTER = 10.0
"""Seconds for which an estimate must have been settled until it is news that it no longer is."""

_NO_DCM_FIXED_WING = 1
_NO_DCM_VTOL = 2


class Level(enum.IntEnum):
    """How much an advice matters; the values are those of diagnostic_msgs/DiagnosticStatus."""

    INFO = 0
    WARN = 1
    ERROR = 2


class Vehicle(enum.Enum):
    """The kinds of vehicle whose wind EKF3 treats differently."""

    PLANE = 'plane'
    QUADPLANE = 'quadplane'
    COPTER = 'copter'
    OTHER = 'other'


@dataclass(frozen=True)
class Advice:
    """One piece of advice.

    Attributes
    ----------
    code : str
        Short name that stays the same between versions, e.g. ``'no_airspeed'``.
    level : Level
        INFO: good to know; WARN: the estimate is worse for it; ERROR: there is no estimate.
    text : str
        What it means and what to do, for the pilot.
    """

    code: str
    level: Level
    text: str


def vehicle_of(mav_type: int, parameters: Mapping[str, float],
               vtol_state: int | None = None) -> Vehicle:
    """Return the kind of vehicle.

    Parameters
    ----------
    mav_type : int
        HEARTBEAT.type. ArduPilot's quadplanes say fixed wing (1).
    parameters : Mapping[str, float]
        Q_ENABLE tells a quadplane, where known.
    vtol_state : int, optional
        EXTENDED_SYS_STATE.vtol_state; anything but 0 is a quadplane.
    """
    if mav_type in (1, 19, 20, 21, 22, 23, 24, 25):
        vtol = parameters.get('Q_ENABLE', 0.0) > 0.0 or bool(vtol_state) or mav_type != 1
        return Vehicle.QUADPLANE if vtol else Vehicle.PLANE
    return Vehicle.COPTER if mav_type in (2, 3, 4, 13, 14, 15, 29, 35) else Vehicle.OTHER


def check_dead_parameters(parameters: Mapping[str, float]) -> list[Advice]:
    """Find AHRS_WND_*, which some forks have and which EKF3 never reads."""
    used = [f'{name} = {parameters[name]:g}' for name in sorted(parameters)
            if name.startswith('AHRS_WND_') and parameters[name] != 0.0]
    if not used:
        return []
    return [Advice('ahrs_wnd', Level.WARN, (
        f'{", ".join(used)}: does nothing here. These parameters of your ArduPilot fork write '
        "DCM's wind, and EKF3 never reads it. Set them to 0; EKF3 learns the wind by itself."))]


def check_estimator(parameters: Mapping[str, float], vehicle: Vehicle) -> list[Advice]:
    """Check that EKF3 is on, is used, and is not left for DCM in flight."""
    advice = []
    estimator = parameters.get('AHRS_EKF_TYPE')
    if parameters.get('EK3_ENABLE') == 0.0:
        advice.append(Advice('ekf3_off', Level.ERROR, (
            'EKF3 is switched off, so it estimates no wind. Set EK3_ENABLE to 1 and '
            'AHRS_EKF_TYPE to 3, then restart the vehicle.')))
    elif estimator is not None and estimator != 3.0:
        advice.append(Advice('ekf3_not_used', Level.ERROR, (
            f'AHRS_EKF_TYPE is {estimator:g}: the vehicle flies by another estimator, and the wind '
            "it reports is not EKF3's. Set AHRS_EKF_TYPE to 3.")))
    options = parameters.get('AHRS_OPTIONS')
    wanted = {Vehicle.PLANE: _NO_DCM_FIXED_WING,
              Vehicle.QUADPLANE: _NO_DCM_FIXED_WING | _NO_DCM_VTOL}.get(vehicle, 0)
    if options is not None and estimator in (None, 3.0) and ~int(options) & wanted:
        advice.append(Advice('dcm_fallback', Level.WARN, (
            'When EKF3 has a bad moment the vehicle falls back to DCM, and from then on reports '
            "DCM's wind as if it were EKF3's. To compare EKF3's wind with the wind flown, set "
            f'AHRS_OPTIONS to {int(options) | wanted} (now {int(options)}): bit 0 turns the '
            'fallback off in forward flight, bit 1 in VTOL flight.')))
    return advice


def check_sensors(parameters: Mapping[str, float], vehicle: Vehicle) -> list[Advice]:
    """Check that there is something to estimate wind from: an airspeed sensor, or drag fusion."""
    if vehicle is Vehicle.COPTER:
        x, y, momentum = (parameters.get(name) for name in (
            'EK3_DRAG_BCOEF_X', 'EK3_DRAG_BCOEF_Y', 'EK3_DRAG_MCOEF'))
        if (x or 0.0) > 1.0 or (y or 0.0) > 1.0 or (momentum or 0.0) > 0.001:
            return []
        if x is None or y is None or momentum is None:
            return []
        return [Advice('no_drag_fusion', Level.ERROR, (
            'EKF3 will never estimate wind on this copter: drag fusion is off. Set '
            'EK3_DRAG_BCOEF_X and EK3_DRAG_BCOEF_Y (kg/m^2, above 1) and EK3_DRAG_MCOEF (1/s) to '
            "your frame's numbers. SITL prints them for its frame when it starts; ArduPilot's "
            'copter-wind-estimates.parm has 9.5, 9.5 and 0.082.'))]
    if vehicle not in (Vehicle.PLANE, Vehicle.QUADPLANE):
        return []
    kind, use = parameters.get('ARSPD_TYPE'), parameters.get('ARSPD_USE')
    if not (kind == 0.0 or use == 0.0 or use == 2.0):
        return []
    if use == 2.0 and kind != 0.0:
        why, what = 'is used at zero throttle only (ARSPD_USE is 2)', 'Set ARSPD_USE to 1'
    elif kind == 0.0:
        why = 'is fitted (ARSPD_TYPE is 0)'
        what = 'Set ARSPD_TYPE to your sensor and ARSPD_USE to 1'
    else:
        why, what = 'is in use (ARSPD_USE is 0)', 'Set ARSPD_USE to 1'
    subject = 'The airspeed sensor' if use == 2.0 and kind != 0.0 else 'No airspeed sensor'
    return [Advice('no_airspeed', Level.WARN, (
        f'{subject} {why}. EKF3 then starts without a first guess and sees the wind along the '
        'heading only in turns: expect errors up to 16 m/s for 15 s or so after take-off, and 10 '
        f'to 15 s of relearning after each loss of GPS. {what}, or fly a full turn before you '
        'rely on the wind.'))]


def check_process_noise(parameters: Mapping[str, float], gust_sigma: float,
                        noisy_airspeed: bool = False,
                        vehicle: Vehicle = Vehicle.PLANE) -> list[Advice]:
    """Hold EK3_WIND_P_NSE against the wind being flown.

    Parameters
    ----------
    parameters : Mapping[str, float]
        EK3_WIND_P_NSE, where known.
    gust_sigma : float
        Standard deviation of the horizontal gust, m/s; NaN if not known.
    noisy_airspeed : bool
        The airspeed measurement is known to be noisy.
    vehicle : Vehicle
        A copter has no airspeed sensor, and 0.2 by default where the others have 0.1.
    """
    copter = vehicle is Vehicle.COPTER
    noisy_airspeed = noisy_airspeed and not copter
    noise = parameters.get('EK3_WIND_P_NSE')
    if noise is None or not (math.isfinite(gust_sigma) and gust_sigma >= 0.0):
        return []
    if noise > 1.0:
        return [Advice('wind_noise', Level.WARN, (
            f'EK3_WIND_P_NSE is {noise:g}, but EKF3 uses 1 at most. Set it to '
            + ('0.2 for a strongly varying wind' if copter else
               '0.1 for a strongly varying wind, 0.05 for a noisy airspeed sensor')
            + ', 0.02 for a steady wind.'))]
    if noisy_airspeed and noise > 0.075:
        wanted, wind = 0.05, 'the airspeed is noisy and would be taken for wind'
    elif gust_sigma < STEADY_GUST and not noisy_airspeed and noise > 0.05:
        wanted, wind = 0.02, f'the wind is steady (gusts of {gust_sigma:.1f} m/s)'
    elif gust_sigma >= STRONG_GUST and noise < (0.05 if noisy_airspeed else 0.075):
        wanted = 0.05 if noisy_airspeed else 0.2 if copter else 0.1
        wind = f'the wind varies strongly (gusts of {gust_sigma:.1f} m/s)'
    else:
        return []
    effect = 'follows more slowly but holds steadier' if wanted < noise else 'follows faster'
    return [Advice('wind_noise', Level.INFO, (
        f'EK3_WIND_P_NSE is {noise:g} and {wind}: {wanted:g} suits it better, the estimate then '
        f'{effect}. '
        + ('EK3_WIND_PSCALE, which multiplies it while climbing or descending, is the other knob. '
           if 'EK3_WIND_PSCALE' in parameters else '')
        + 'Change it between flights.'))]


def check_take_off(heading_deg: float, wind_speed: float, wind_from_deg: float,
                   has_airspeed: bool = True, vehicle: Vehicle = Vehicle.PLANE) -> list[Advice]:
    """Say how wrong EKF3's first guess is, because of the heading at that moment.

    EKF3 takes wind = (ground speed - airspeed) along the heading: the part of the wind across the
    heading is missing, ``speed * abs(sin(angle))``.

    Parameters
    ----------
    heading_deg : float
        Heading when the wind states were initialised, degrees true.
    wind_speed : float
        Wind blowing, m/s.
    wind_from_deg : float
        Where it comes from, degrees true.
    has_airspeed : bool
        An airspeed sensor is in use. Without one there is no first guess to be wrong.
    vehicle : Vehicle
        A quadplane takes its first guess at the end of each transition, not at take-off; a copter
        takes none.
    """
    numbers = (heading_deg, wind_speed, wind_from_deg)
    if vehicle not in (Vehicle.PLANE, Vehicle.QUADPLANE) or not has_airspeed \
            or not all(map(math.isfinite, numbers)) or wind_speed <= 0.0:
        return []
    angle = abs((heading_deg - wind_from_deg + 180.0) % 360.0 - 180.0)
    error = wind_speed * abs(math.sin(math.radians(angle)))
    if angle <= TAKE_OFF_LIMIT or error < 1.0:
        return []
    if vehicle is Vehicle.QUADPLANE:
        what, next_time = 'Transition to forward flight', 'Line up with the wind before the next'
    else:
        what, next_time = 'Take-off', 'Take off into the wind next time'
    return [Advice('take_off_off_wind', Level.WARN, (
        f'{what} {angle:.0f} degrees off the wind: EKF3 sees only the wind along the heading at '
        f'first, so its first guess is wrong by about {error:.0f} m/s. That mends by itself within '
        '5 to 10 s of flight, and in turns; until then do not rely on the wind. '
        f'{next_time} (towards {wind_from_deg % 360.0:.0f} degrees).'))]


def check_trust(state: EkfWindState, vehicle: Vehicle = Vehicle.PLANE,
                has_airspeed: bool = True) -> list[Advice]:
    """Say whether the estimate can be relied on in its present phase.

    Parameters
    ----------
    state : EkfWindState
        EKF3's newest state.
    vehicle : Vehicle
        Copters learn from drag, the others from airspeed and from turns.
    has_airspeed : bool
        An airspeed sensor is in use.
    """
    phase = state.phase
    copter = vehicle is Vehicle.COPTER
    if phase in (WindPhase.INIT, WindPhase.LEARNING) and not state.settled:
        # Over a minute's step of the wind more is to be waited for than the first seconds.
        long = math.isfinite(state.settles_in) and state.settles_in > 15.0
        wait = (f'about {5 * round(state.settles_in / 5.0)} s' if long else
                'about 20 s' if not (copter or has_airspeed) else 'about 10 s')
        turns = '' if copter else ', faster in turns'
        why = ('The wind has changed and EKF3 follows slowly' if long
               else 'EKF3 is still learning the wind')
        return [Advice('not_settled', Level.INFO, (
            f'{why}: do not rely on its estimate yet. It settles in {wait} of flight{turns}.'))]
    if phase is WindPhase.RELEARN:
        takes = ('half a second with drag fusion' if copter else
                 'about 3 s with an airspeed sensor' if has_airspeed else
                 'up to 20 s without an airspeed sensor, less in turns')
        return [Advice('relearning', Level.INFO, (
            'GPS is back and EKF3 relearns the wind from scratch: the estimate jumps '
            f'({takes}). Wait for it to settle.'))]
    if phase is WindPhase.COAST:
        return [Advice('frozen', Level.WARN, (
            'EKF3 has had no position for more than 7 s and holds the wind it had. It is as good '
            'as it was then, and every change of wind since turns into position error. Get GPS '
            'back before you rely on position.'))]
    return []


class WindAdvisor:
    """All the checks for one vehicle, and what of them was said already.

    Examples
    --------
    >>> advisor = WindAdvisor({'AHRS_EKF_TYPE': 3, 'ARSPD_TYPE': 0}, vehicle=Vehicle.PLANE)
    >>> [advice.code for advice in advisor.fresh()]
    ['no_airspeed']
    >>> advisor.fresh()
    []
    >>> [advice.code for advice in advisor.current()]
    ['no_airspeed']
    """

    def __init__(self, parameters: Mapping[str, float] | None = None, *,
                 vehicle: Vehicle = Vehicle.OTHER) -> None:
        self._parameters = dict(parameters or {})
        self._said: set[str] = set()
        self._state: EkfWindState | None = None
        self._take_off: list[Advice] = []
        self._settled_t = math.inf
        self.vehicle = vehicle
        self.gust_sigma = math.nan
        self.noisy_airspeed = False
        self.wind_speed = math.nan
        self.wind_from_deg = math.nan

    def set_parameter(self, name: str, value: float) -> None:
        """Take the value of one parameter; one that is not finite is passed over."""
        if math.isfinite(value):
            self._parameters[name] = float(value)

    def set_wind(self, speed: float, from_deg: float, gust_sigma: float = math.nan) -> None:
        """Say which wind is being flown: mean (m/s, degrees it comes from), and gust sigma, m/s."""
        self.wind_speed, self.wind_from_deg, self.gust_sigma = speed, from_deg, gust_sigma

    def update(self, state: EkfWindState, heading_deg: float = math.nan) -> list[Advice]:
        """Take EKF3's newest state and the heading now; return what is new to say.

        Parameters
        ----------
        state : EkfWindState
            From :class:`~dryden_wind_ros.ekf.phase.WindPhaseMonitor`.
        heading_deg : float
            Heading, degrees true; used at the moment of the first guess.
        """
        before = self._state.phase if self._state is not None else None
        self._state = state
        if state.phase in (WindPhase.GROUND, WindPhase.INHIBITED):
            self._take_off = []
            self._said -= {'take_off_off_wind', 'not_settled'}  # a new flight, a new first guess
        elif state.phase is WindPhase.INIT and before is not WindPhase.INIT:
            self._take_off = check_take_off(heading_deg, self.wind_speed, self.wind_from_deg,
                                            self._has_airspeed(), self.vehicle)
        elif state.phase in (WindPhase.COAST, WindPhase.RELEARN):
            self._said.add('not_settled')  # what is said of these says so
        elif state.settled:
            self._take_off = []
            self._said -= {'frozen', 'relearning'}  # the next outage is worth a word again
            self._settled_t = min(self._settled_t, state.t)
            if state.t - self._settled_t >= NEWS_AFTER:
                self._said.discard('not_settled')
        if not state.settled:
            self._settled_t = math.inf
        return self.fresh()

    def current(self) -> list[Advice]:
        """Return all that holds now, most important first."""
        values = self._parameters
        advice = [
            *check_estimator(values, self.vehicle),
            *check_sensors(values, self.vehicle),
            *check_dead_parameters(values),
            *check_process_noise(values, self.gust_sigma, self.noisy_airspeed, self.vehicle),
            *self._take_off,
        ]
        if self._state is not None:
            advice += check_trust(self._state, self.vehicle, self._has_airspeed())
        return sorted(advice, key=lambda one: -one.level)

    def fresh(self) -> list[Advice]:
        """Return what holds now and was not returned here before."""
        new = [one for one in self.current() if one.code not in self._said]
        self._said.update(one.code for one in new)
        return new

    def _has_airspeed(self) -> bool:
        values = self._parameters
        return (self.vehicle is not Vehicle.COPTER and values.get('ARSPD_TYPE') != 0.0
                and values.get('ARSPD_USE', 1.0) == 1.0)


def as_text(advice: Iterable[Advice]) -> str:
    """Return the list as lines of text, ``'no advice'`` if it is empty."""
    return '\n'.join(f'{one.level.name}: {one.text}' for one in advice) or 'no advice'
