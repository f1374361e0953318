"""What an embedded vehicle is to be: one frozen record, checked when it is made."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

KINDS = ('copter', 'plane', 'quadplane')
FLIGHTS = ('none', 'hover', 'loiter', 'auto')
CLOCKS = ('auto', 'even', 'plane')
REFUSALS = ('error', 'silence', 'value')

SERIAL_PORTS = (5760, 5762, 5763)
"""SITL's TCP ports of SERIAL0, SERIAL1 and SERIAL2, instance 0."""

LOOP_RATES = {'copter': 400, 'plane': 50, 'quadplane': 300}
"""Main loop rates (SCHED_LOOP_RATE), Hz. At the plane's, messages come 40 and 60 ms apart."""

GAIN_DEFAULTS = {
    'PSC_NE_POS_P': 1.0, 'PSC_NE_VEL_P': 2.0, 'PSC_NE_VEL_I': 1.0,
    'PSC_D_POS_P': 1.0, 'PSC_D_VEL_P': 5.0, 'PSC_D_ACC_P': 0.05, 'PSC_D_ACC_I': 0.1,
    'ATC_ANG_RLL_P': 4.5, 'ATC_ANG_PIT_P': 4.5, 'ATC_RAT_RLL_P': 0.135, 'ATC_RAT_PIT_P': 0.135}
"""Gains of a copter with dynamics, names and defaults of ArduPilot 4.7."""

TAKEOFF_ALTITUDES = {'copter': 10.0, 'plane': 80.0, 'quadplane': 30.0}


METRES_PER_1E7_DEGREES = 0.011131884502145034
"""ArduPilot's length of 1e-7 degrees of latitude, m."""


@dataclass(frozen=True)
class Home:
    """Where the vehicle stands: degrees, degrees, m above sea level, degrees true."""

    latitude: float = -35.363261
    longitude: float = 149.165230
    altitude: float = 584.0
    heading: float = 270.0

    @classmethod
    def parse(cls, text: str) -> Home:
        """Read SITL's ``LAT,LON,ALT,HEADING``; without a heading, the vehicle looks west."""
        try:
            latitude, longitude, altitude, *rest = (float(part) for part in text.split(','))
            heading, = rest or (cls.heading,)
        except ValueError:
            raise ValueError(
                f'home {text!r} is not LAT,LON,ALT or LAT,LON,ALT,HEADING (numbers: degrees, '
                'degrees, m, degrees)') from None
        home = cls(latitude, longitude, altitude, heading % 360.0)
        if not (abs(latitude) <= 90.0 and abs(longitude) <= 180.0
                and math.isfinite(altitude) and math.isfinite(home.heading)):
            raise ValueError(f'home {text!r} is not on Earth')
        return home

    def moved(self, north: float, east: float) -> Home:
        """Return the place so many metres north and east of here, same height and heading."""
        latitude, longitude = self.degrees_at(north, east)
        return Home(latitude, longitude, self.altitude, self.heading)

    def degrees_at(self, north: float, east: float) -> tuple[float, float]:
        """Return latitude and longitude so many metres north and east of here."""
        degrees_per_metre = 1e-7 / METRES_PER_1E7_DEGREES
        return (self.latitude + north * degrees_per_metre,
                self.longitude + east * degrees_per_metre / math.cos(math.radians(self.latitude)))


@dataclass(frozen=True)
class VehicleConfig:
    """Settings of an embedded vehicle.

    Parameters
    ----------
    kind : {'copter', 'plane', 'quadplane'}
    instance : int
        SITL's instance number: moves the three ports by ten each.
    connections : tuple of str
        ``tcp:HOST:PORT`` (a server), ``udpout:HOST:PORT`` or ``udpin:HOST:PORT``. Empty: SITL's
        three TCP ports on ``host``.
    host : str
        Address the TCP servers of SITL's ports bind to.
    sysid : int
        MAVLink system id, 1 to 255; 1 for every instance unless set, as in SITL.
    speedup : float
        Sim seconds per wall second; 0 is as fast as possible.
    flight : {'none', 'hover', 'loiter', 'auto'}
        What the vehicle does by itself.
    takeoff_altitude : float, optional
        m above home; 10 (copter), 80 (plane) or 30 (quadplane) unless given.
    home : Home
        Where it stands when it boots, and where EKF3 gets its origin.
    parameters : tuple of (str, float)
        Defaults that replace the built-in ones (they are not saved).
    eeprom : Path, optional
        File that keeps saved values. Without it they live as long as the object.
    clock : {'auto', 'even', 'plane'}
        'plane' runs a 50 Hz main loop (messages 40 and 60 ms apart), 'even' a 400 Hz loop,
        'auto' the loop of the kind.
    drag : bool
        Copter with drag fusion (EK3_DRAG_*): EKF3 estimates wind.
    dynamics : bool
        Copter that the air blows off its set point, and that gains bring back (GAIN_DEFAULTS);
        without, it is exactly there. See `rotor_dynamics`.
    airspeed : bool
        Plane with an airspeed sensor in use.
    echo_loss, clock_loss : float
        Fractions of PARAM_VALUE echoes and of SYSTEM_TIME messages that get lost.
    ignore_wind : bool
        SIM_WIND_* are taken and do nothing, as under an external simulator (JSON).
    seed : int
        Of everything random here: losses, sensor noise, SIM_WIND_TURB.
    without_parameters : tuple of str
        Names an older version does not have.
    simulator : bool
        False: no SIM_ parameter at all.
    refused_parameters : tuple of str
        Names that cannot be written.
    refusal : {'error', 'silence', 'value'}
        How a bad write is answered: PARAM_ERROR, nothing, or the old value (before 4.7).
    origin_after : float
        Seconds after boot until EKF3 has an origin and uses GPS (20 on a SITL plane, 41 on a
        copter; 3 here, so that demos are short).
    wait_for_client : bool
        Do not run, nor open the other ports, before a client has joined the first port.
    truth : Path, optional
        CSV file of the true phase of the wind estimator.
    """

    kind: str = 'copter'
    instance: int = 0
    connections: tuple[str, ...] = ()
    host: str = '127.0.0.1'
    sysid: int = 1
    speedup: float = 1.0
    flight: str = 'none'
    takeoff_altitude: float | None = None
    home: Home = field(default_factory=Home)
    parameters: tuple[tuple[str, float], ...] = ()
    eeprom: Path | None = None
    clock: str = 'auto'
    drag: bool = False
    dynamics: bool = False
    airspeed: bool = True
    echo_loss: float = 0.0
    clock_loss: float = 0.0
    ignore_wind: bool = False
    seed: int = 1
    without_parameters: tuple[str, ...] = ()
    simulator: bool = True
    refused_parameters: tuple[str, ...] = ()
    refusal: str = 'error'
    origin_after: float = 3.0
    wait_for_client: bool = False
    truth: Path | None = None

    def __post_init__(self) -> None:
        for name, allowed in (('kind', KINDS), ('flight', FLIGHTS), ('clock', CLOCKS),
                              ('refusal', REFUSALS)):
            value = getattr(self, name)
            if value not in allowed:
                raise ValueError(f'{name} {value!r} is none of {", ".join(allowed)}')
        for name, low, high in (('instance', 0, 5900), ('sysid', 1, 255)):
            value = getattr(self, name)
            if not (isinstance(value, int) and low <= value <= high):
                raise ValueError(f'{name} {value!r} is no whole number from {low} to {high}')
        for name, least, most in (('speedup', 0.0, 1000.0), ('echo_loss', 0.0, 1.0),
                                  ('clock_loss', 0.0, 1.0), ('origin_after', 0.5, 600.0),
                                  ('altitude', 1.0, 10000.0)):
            value = getattr(self, name)
            if not least <= value <= most:
                raise ValueError(f'{name} {value!r} is not from {least:g} to {most:g}')
        if 0.0 < self.speedup < 0.1:
            raise ValueError(f'speedup {self.speedup!r} is below 0.1 (0 is as fast as possible)')
        if self.dynamics and self.kind != 'copter':
            raise ValueError(f'dynamics is for a copter, not for a {self.kind}')
        if self.kind == 'plane' and self.flight == 'hover':
            raise ValueError("flight 'hover' is not for a plane: it can loiter")

    @property
    def altitude(self) -> float:
        """Height of the take-off, m above home."""
        if self.takeoff_altitude is None:
            return TAKEOFF_ALTITUDES[self.kind]
        return self.takeoff_altitude

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Connection strings: those given, or SITL's three ports of this instance."""
        return self.connections or tuple(
            f'tcp:{self.host}:{port + 10 * self.instance}' for port in SERIAL_PORTS)

    @property
    def loop_rate(self) -> int:
        """Default of SCHED_LOOP_RATE, Hz."""
        return {'auto': LOOP_RATES[self.kind], 'even': 400, 'plane': 50}[self.clock]
