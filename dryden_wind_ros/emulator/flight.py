"""How the embedded vehicle moves through the air it is given: a point with an attitude.

Not a flight dynamics model: enough for a wind estimator, a gust model and their user to see what
they would see of ArduPilot. Everything depends on sim time, commands and air alone, on a fixed
physics step, so that a flight can be repeated.

*On rotors* position and velocity are exactly the set point as long as the wind is within what the
vehicle can lean against (20 m/s); the air shows in attitude and throttle. Beyond, it drifts with
the excess. With ``dynamics`` the set point is what is exact, and `RotorDynamics` tells how far off
the vehicle is. *On wings* the inertia is that of a point: a gust changes the airspeed at once, and
the throttle brings it back to 22 m/s within a few seconds; there is no sideslip.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import IntEnum

from dryden_wind_ros.emulator.config import VehicleConfig
from dryden_wind_ros.emulator.rotor_dynamics import RotorDynamics

Course = Callable[[], tuple[float, float, float, float]]
"""Returns where the set point is now, north and east, m, and its velocity, m/s."""

GRAVITY = 9.80665
CLIMB_RATE = 2.5
CLIMB_ACCELERATION = 1.0
LEAN_LIMIT_AIRSPEED = 20.0
"""Airspeed at which a vehicle on rotors leans 45 degrees and can hold no more wind, m/s."""

CRUISE_AIRSPEED = 22.0
LIFT_OFF_AIRSPEED = 15.0
TRANSITION_AIRSPEED = 18.0
LOITER_RADIUS = 80.0
_BANK_LIMIT = math.radians(45.0)


class Landed(IntEnum):
    """MAV_LANDED_STATE."""

    ON_GROUND = 1
    IN_AIR = 2
    TAKEOFF = 3
    LANDING = 4


class Vtol(IntEnum):
    """MAV_VTOL_STATE."""

    NONE = 0
    TO_FORWARD = 1
    TO_ROTORS = 2
    ROTORS = 3
    FORWARD = 4


class Motion(IntEnum):
    """What carries the vehicle."""

    GROUND = 0
    ROTORS = 1
    TRANSITION = 2
    WINGS = 3
    ROLL = 4
    FALL = 5


class Flight:
    """Position, velocity and attitude, and the manoeuvres that lead to them.

    North, east and up of home in m; velocities in m/s; angles in rad. ``command_*`` methods start
    manoeuvres, :meth:`step` does them.

    Parameters
    ----------
    config : VehicleConfig
    say : callable
        Takes a severity and a text for STATUSTEXT.
    dynamics : RotorDynamics, optional
        How far off its set point the air blows a copter; without, it is exactly there.

    Attributes
    ----------
    course : callable or None
        With `dynamics`: where the set point goes while the vehicle does not land; None: it stays.
    set_point : list of float
        With `dynamics`: north, east, up, m, and the velocity up, m/s.
    """

    def __init__(self, config: VehicleConfig, say: Callable[[int, str], None],
                 dynamics: RotorDynamics | None = None) -> None:
        self._say = say
        self.dynamics = dynamics
        self.course: Course | None = None
        self.set_point = [0.0, 0.0, 0.0, 0.0]
        self.kind = config.kind
        self.north = self.east = self.up = 0.0
        self.v_north = self.v_east = self.v_up = 0.0
        self.roll = self.pitch = 0.0
        self.yaw = math.radians(config.home.heading)
        self.roll_rate = self.pitch_rate = self.yaw_rate = 0.0
        self.wind_north = self.wind_east = self.wind_up = 0.0
        self.airspeed = 0.0
        self.throttle = 0.0
        self.armed = False
        self.motion = Motion.GROUND
        self.landed = Landed.ON_GROUND
        self.vtol = {'copter': Vtol.ROTORS, 'plane': Vtol.NONE,
                     'quadplane': Vtol.FORWARD}[config.kind]
        self.disarm_wanted = False
        self.climb_stick: float | None = None
        self._target_up = 0.0
        self._landing = False
        self._take_off = False
        self._hold_north = self._hold_east = 0.0
        self._drift_north = self._drift_east = 0.0
        self._base_north = self._base_east = 0.0
        self._moving = False
        self._loiter: tuple[float, float] | None = None
        self._runway = self.yaw
        self._timer = 0.0
        self._announced = False
        self._climb_air = 0.0

    # ------------------------------------------------------------------ commands

    def command_take_off(self, altitude: float) -> bool:
        """Start a take-off to ``altitude`` m; False where that makes no sense."""
        if not self.armed:
            return False
        if self.kind == 'plane':
            if self.motion is Motion.GROUND:
                self.motion = Motion.ROLL
                self._timer = 0.0
                self._runway = self.yaw
                self.landed = Landed.TAKEOFF
        elif self.motion is Motion.GROUND:
            self._start_rotors()
            self.landed = Landed.TAKEOFF
        self._take_off = True
        self._landing = False
        self._target_up = altitude
        return True

    def command_altitude(self, altitude: float) -> None:
        """Climb or descend to ``altitude`` m when airborne."""
        self._target_up = altitude

    def command_hold(self) -> None:
        """Stay where the vehicle is (rotors), or circle about here (wings)."""
        self._landing = False
        if self.motion is Motion.WINGS:
            self._start_loiter()
            if self._take_off:
                self._take_off = False
            self.landed = Landed.IN_AIR

    def command_land(self) -> None:
        """Land from here."""
        if self.motion in (Motion.GROUND, Motion.FALL):
            return
        self._landing = True
        self._take_off = False
        self.landed = Landed.LANDING if self.kind != 'quadplane' else self.landed
        self._timer = 0.0

    def command_return(self) -> None:
        """Go back to home (wings: circle there)."""
        if self.motion is Motion.WINGS:
            self._landing = False
            self._loiter = (0.0, 0.0)
        else:
            self.command_land()

    def command_vtol(self, rotors: bool) -> None:
        """Quadplane: fly on rotors, or on wings."""
        if self.kind != 'quadplane':
            return
        if rotors:
            if self.motion in (Motion.WINGS, Motion.TRANSITION):
                self.motion = Motion.ROTORS
                self._moving = True
                self._base_north, self._base_east = self.v_north, self.v_east
                self._drift_north = self._drift_east = 0.0
                self._target_up = self.up
            self.vtol = Vtol.ROTORS
        elif self.motion is Motion.ROTORS:
            self.motion = Motion.TRANSITION
            self.vtol = Vtol.TO_FORWARD
            self._landing = False
            self._timer = 0.0
            self._announced = False
            self._moving = False
            self._target_up = max(self._target_up, self.up)
            self._say(6, f'Transition started airspeed {self.airspeed:.1f}')
        elif self.motion is Motion.GROUND:
            self.vtol = Vtol.FORWARD

    def arm(self) -> None:
        """Let the motors turn."""
        self.armed = True
        self.disarm_wanted = False

    def disarm(self) -> None:
        """Stop the motors, wherever the vehicle is."""
        self.armed = False
        self.disarm_wanted = False
        self._landing = self._take_off = False
        if self.motion is not Motion.GROUND:
            if self.up <= 0.0:
                self._touch_down()
            else:
                self.motion = Motion.FALL
        self.landed = Landed.ON_GROUND

    # ------------------------------------------------------------------ physics

    @property
    def airborne(self) -> bool:
        """Whether the vehicle is off the ground."""
        return self.motion is not Motion.GROUND and self.up > 0.0

    @property
    def circle(self) -> tuple[float, float] | None:
        """Centre of the circle that it flies on wings, north and east, m."""
        return self._loiter

    @property
    def target_up(self) -> float:
        """Height that it climbs or descends to, m."""
        return self._target_up

    @property
    def forward_flight(self) -> bool:
        """What ArduPilot calls fly_forward: carried by wings, without help."""
        if self.kind == 'plane':
            return True
        return self.kind == 'quadplane' and self.vtol is Vtol.FORWARD

    @property
    def ground_speed(self) -> float:
        """Horizontal speed over ground, m/s."""
        return math.hypot(self.v_north, self.v_east)

    def step(self, dt: float, wind_north: float, wind_east: float, wind_up: float) -> None:
        """Advance by ``dt`` s through air that moves with this velocity (m/s)."""
        motion = self.motion
        if motion is Motion.ROTORS:
            self._step_rotors(dt, wind_north, wind_east, wind_up)
        elif motion is Motion.WINGS:
            self._step_wings(dt, wind_north, wind_east, wind_up)
        elif motion is Motion.ROLL:
            self._step_roll(dt, wind_north, wind_east)
        elif motion is Motion.TRANSITION:
            self._step_transition(dt, wind_north, wind_east, wind_up)
        elif motion is Motion.FALL:
            self._step_fall(dt)
        self.wind_north, self.wind_east, self.wind_up = wind_north, wind_east, wind_up
        self.airspeed = math.hypot(self.v_north - wind_north, self.v_east - wind_east)

    def stand(self, wind_north: float, wind_east: float) -> None:
        """Stand on the ground in air that moves with this velocity (m/s)."""
        self.wind_north, self.wind_east, self.wind_up = wind_north, wind_east, 0.0
        self.airspeed = math.hypot(wind_north, wind_east)

    def _start_rotors(self) -> None:
        self.motion = Motion.ROTORS
        self._moving = False
        self._hold_north, self._hold_east = self.north, self.east
        self._drift_north = self._drift_east = 0.0
        if self.dynamics is not None:
            self.dynamics.begin()
            self.set_point = [self.north, self.east, self.up, self.v_up]
        if self.kind == 'quadplane':
            self.vtol = Vtol.ROTORS

    def _touch_down(self) -> None:
        self.motion = Motion.GROUND
        self.up = self.v_up = self.v_north = self.v_east = 0.0
        self.roll = self.pitch = self.roll_rate = self.pitch_rate = self.yaw_rate = 0.0
        self.throttle = 0.0
        self._climb_air = 0.0
        self._landing = self._take_off = False
        self.landed = Landed.ON_GROUND

    def _climb(self, dt: float, limit: float) -> None:
        """Move towards the target height: smooth, and exactly there at the end."""
        rest = self._target_up - self.up
        if rest == 0.0 and self.v_up == 0.0:
            return
        speed = min(limit, abs(self.v_up) + CLIMB_ACCELERATION * dt,
                    math.sqrt(2.0 * CLIMB_ACCELERATION * abs(rest)))
        if speed * dt >= abs(rest):
            self.up, self.v_up = self._target_up, 0.0
        else:
            self.v_up = math.copysign(speed, rest)
            self.up += self.v_up * dt

    def _step_rotors(self, dt: float, wind_north: float, wind_east: float,
                     wind_up: float) -> None:
        if self.dynamics is not None:
            _, _, self.up, self.v_up = self.set_point
        if self._landing:
            speed = 0.5 if self.up < 10.0 else 1.5
            self.v_up = max(self.v_up - CLIMB_ACCELERATION * dt, -speed)
            if self.v_up > -speed and self.v_up < -0.5 and self.up < 10.0:
                self.v_up = -0.5
            self.up += self.v_up * dt
            self._target_up = self.up
            if self.up <= 0.0:
                self._say(6, f'SIM Hit ground at {-self.v_up:f} m/s')
                if self.kind == 'quadplane':
                    self._say(6, 'Land complete')
                self._touch_down()
                self.disarm_wanted = True
                return
        elif self.climb_stick is not None:
            self.v_up = self.climb_stick
            self.up = max(self.up + self.v_up * dt, 0.0)
            self._target_up = self.up
        else:
            self._climb(dt, CLIMB_RATE)
        if self._take_off and self.up == self._target_up:
            self._take_off = False
            self.landed = Landed.IN_AIR

        if self.dynamics is not None:
            self._step_off_set_point(dt, self.dynamics, (wind_north, wind_east, wind_up))
            return
        wind = math.hypot(wind_north, wind_east)
        if (wind > LEAN_LIMIT_AIRSPEED or self._moving or self._drift_north
                or self._drift_east or self.north != self._hold_north
                or self.east != self._hold_east):
            self._drift(dt, wind, wind_north, wind_east)
        self._lean(dt, wind_north - self.v_north, wind_east - self.v_east, wind_up)

    def _step_off_set_point(self, dt: float, dynamics: RotorDynamics,
                            wind: tuple[float, float, float]) -> None:
        """Let the set point go on, and the vehicle after it; `up` is the set point's here."""
        north, east, v_north, v_east = self._hold_north, self._hold_east, 0.0, 0.0
        if self.course is not None and not self._landing:
            north, east, v_north, v_east = self.course()
            self._hold_north, self._hold_east = north, east
        self.set_point = [north, east, self.up, self.v_up]
        dynamics.step(dt, (v_north, v_east, self.v_up), wind, self.yaw)
        # The ground holds what would sink into it
        if self.up + dynamics.offset[2] < 0.0:
            dynamics.offset[2], dynamics.velocity[2] = -self.up, 0.0
        self.north, self.east = north + dynamics.offset[0], east + dynamics.offset[1]
        self.v_north, self.v_east = v_north + dynamics.velocity[0], v_east + dynamics.velocity[1]
        self.up += dynamics.offset[2]
        self.v_up += dynamics.velocity[2]
        sin_yaw, cos_yaw = math.sin(self.yaw), math.cos(self.yaw)
        lean_north, lean_east = map(math.tan, dynamics.lean)
        roll = math.atan(lean_east * cos_yaw - lean_north * sin_yaw)
        pitch = -math.atan(lean_north * cos_yaw + lean_east * sin_yaw)
        self.roll_rate, self.pitch_rate = (roll - self.roll) / dt, (pitch - self.pitch) / dt
        self.roll, self.pitch, self.yaw_rate = roll, pitch, 0.0
        wanted = 39.0 * (1.0 + dynamics.thrust / GRAVITY) / (math.cos(roll) * math.cos(pitch))
        self.throttle = min(max(wanted, 0.0), 100.0)

    def _drift(self, dt: float, wind: float, wind_north: float, wind_east: float) -> None:
        """Horizontal motion on rotors that is not simply standing still."""
        if self._moving:
            speed = math.hypot(self._base_north, self._base_east)
            slower = speed - 2.5 * dt
            if slower <= 0.0:
                self._moving = False
                self._base_north = self._base_east = 0.0
                self._hold_north, self._hold_east = self.north, self.east
            else:
                self._base_north *= slower / speed
                self._base_east *= slower / speed
                self.north += self._base_north * dt
                self.east += self._base_east * dt
                self._hold_north, self._hold_east = self.north, self.east
        to_north = to_east = 0.0
        excess = wind - LEAN_LIMIT_AIRSPEED
        off_north, off_east = self._hold_north - self.north, self._hold_east - self.east
        off = math.hypot(off_north, off_east)
        if excess > 0.0:
            to_north, to_east = wind_north / wind * excess, wind_east / wind * excess
        elif off > 0.0:
            back = min(0.5 * off, 5.0)
            to_north, to_east = off_north / off * back, off_east / off * back
        gain = dt / 1.0
        self._drift_north += (to_north - self._drift_north) * gain
        self._drift_east += (to_east - self._drift_east) * gain
        if excess <= 0.0 and off < 0.02 and math.hypot(
                self._drift_north, self._drift_east) < 0.05:
            self._drift_north = self._drift_east = 0.0
            self.north, self.east = self._hold_north, self._hold_east
        self.north += self._drift_north * dt
        self.east += self._drift_east * dt
        self.v_north = self._base_north + self._drift_north
        self.v_east = self._base_east + self._drift_east

    def _lean(self, dt: float, rel_north: float, rel_east: float, wind_up: float) -> None:
        """Attitude and throttle that hold the vehicle against air moving past it like this."""
        speed = math.hypot(rel_north, rel_east)
        per_speed = min(speed, LEAN_LIMIT_AIRSPEED) / LEAN_LIMIT_AIRSPEED ** 2
        sin_yaw, cos_yaw = math.sin(self.yaw), math.cos(self.yaw)
        ahead = -per_speed * (rel_north * cos_yaw + rel_east * sin_yaw)
        right = -per_speed * (rel_east * cos_yaw - rel_north * sin_yaw)
        gain = dt / (dt + 0.2)
        roll_step = (math.atan(right) - self.roll) * gain
        pitch_step = (-math.atan(ahead) - self.pitch) * gain
        self.roll += roll_step
        self.pitch += pitch_step
        self.roll_rate, self.pitch_rate = roll_step / dt, pitch_step / dt
        self.yaw_rate = 0.0
        # The lift that leaning costs, less what air from below gives (drag of 1 1/s vertically)
        lift = max(1.0 - (wind_up - self.v_up) / GRAVITY, 0.0)
        wanted = 39.0 * lift / (math.cos(self.roll) * math.cos(self.pitch))
        self.throttle += (min(max(wanted, 0.0), 100.0) - self.throttle) * dt / (dt + 0.1)

    def _step_transition(self, dt: float, wind_north: float, wind_east: float,
                         wind_up: float) -> None:
        """Rotors hold height and track while the pusher brings airspeed, 5 s beyond reaching it."""
        cos_yaw, sin_yaw = math.cos(self.yaw), math.sin(self.yaw)
        along = self.v_north * cos_yaw + self.v_east * sin_yaw
        ahead = along - (wind_north * cos_yaw + wind_east * sin_yaw)
        along += 3.0 * dt if ahead < CRUISE_AIRSPEED else 0.0
        self.v_north, self.v_east = along * cos_yaw, along * sin_yaw
        self.north += self.v_north * dt
        self.east += self.v_east * dt
        self._climb(dt, CLIMB_RATE)
        self._lean(dt, 0.0, 0.0, wind_up)
        if ahead >= TRANSITION_AIRSPEED:
            if not self._announced:
                self._announced = True
                self._say(6, f'Transition airspeed reached {ahead:.1f}')
            self._timer += dt
            if self._timer >= 5.0:
                self._say(6, 'Transition done')
                self.vtol = Vtol.FORWARD
                self.motion = Motion.WINGS
                self._climb_air = self.v_up
                self._start_loiter()

    def _start_loiter(self) -> None:
        """Circle to the right of where the vehicle is heading."""
        self._loiter = (self.north - LOITER_RADIUS * math.sin(self.yaw),
                        self.east + LOITER_RADIUS * math.cos(self.yaw))

    def _step_roll(self, dt: float, wind_north: float, wind_east: float) -> None:
        """Ground roll along the runway, before the take-off and after the landing."""
        cos_yaw, sin_yaw = math.cos(self._runway), math.sin(self._runway)
        speed = self.v_north * cos_yaw + self.v_east * sin_yaw
        if self._take_off:
            self._timer += dt
            self.throttle = 0.0 if self._timer < 1.0 else 100.0
            speed += 4.0 * dt if self._timer >= 1.0 else 0.0
        else:
            self.throttle = 0.0
            speed = max(speed - 3.0 * dt, 0.0)
        self.v_north, self.v_east = speed * cos_yaw, speed * sin_yaw
        self.north += self.v_north * dt
        self.east += self.v_east * dt
        if self._take_off:
            ahead = speed - (wind_north * cos_yaw + wind_east * sin_yaw)
            if ahead >= LIFT_OFF_AIRSPEED or speed > 35.0:
                self.motion = Motion.WINGS
                self.up = 0.05
                self._loiter = None
                self._climb_air = 0.0
        elif speed == 0.0:
            self._touch_down()
            self.disarm_wanted = True

    def _step_wings(self, dt: float, wind_north: float, wind_east: float,
                    wind_up: float) -> None:
        air_north, air_east = self.v_north - wind_north, self.v_east - wind_east
        airspeed = math.hypot(air_north, air_east)
        heading = math.atan2(air_east, air_north) if airspeed > 1.0 else self.yaw
        # Throttle: 3 s to bring the airspeed back
        wanted = CRUISE_AIRSPEED if not self._landing or self.up > 15.0 else 17.0
        push = min(max((wanted - airspeed) / 3.0, -3.0), 4.0)
        airspeed += push * dt
        self.throttle = min(max(45.0 + 12.0 * push + 4.0 * self._climb_air, 0.0), 100.0)
        # Bank to the course wanted
        speed = math.hypot(self.v_north, self.v_east)
        bank = self._bank_wanted(speed, heading)
        roll_step = (bank - self.roll) * dt / (dt + 0.4)
        self.roll += roll_step
        self.roll_rate = roll_step / dt
        turn = GRAVITY * math.tan(self.roll) / max(airspeed, 8.0)
        heading += turn * dt
        self.v_north = airspeed * math.cos(heading) + wind_north
        self.v_east = airspeed * math.sin(heading) + wind_east
        self.north += self.v_north * dt
        self.east += self.v_east * dt
        yaw_step = _wrap(heading - self.yaw) * dt / (dt + 0.05)
        self.yaw = _wrap(self.yaw + yaw_step)
        self.yaw_rate = yaw_step / dt
        self._step_wings_height(dt, airspeed, wind_up)

    def _step_wings_height(self, dt: float, airspeed: float, wind_up: float) -> None:
        if self._landing:
            wanted = -2.5 if self.up > 15.0 else -1.2
        else:
            wanted = min(max(0.5 * (self._target_up - self.up), -2.5), 4.0)
        if self.up < 0.3 and not self._landing:
            wanted = max(wanted, 0.5)
        # An updraft lifts at once and is flown out within two seconds
        self._climb_air += (wanted - wind_up - self._climb_air) * dt / 2.0
        self.v_up = self._climb_air + wind_up
        self.up += self.v_up * dt
        pitch = math.atan2(self._climb_air, max(airspeed, 5.0)) + 0.04
        pitch_step = (pitch - self.pitch) * dt / (dt + 0.3)
        self.pitch += pitch_step
        self.pitch_rate = pitch_step / dt
        if self._take_off and self.up >= self._target_up - 2.0:
            self._take_off = False
            self.landed = Landed.IN_AIR
            if self._loiter is None:
                self._start_loiter()
        if self.up <= 0.0:
            self.up = self.v_up = 0.0
            if self._landing:
                self.motion = Motion.ROLL
                self._runway = self.yaw
                self.roll = self.roll_rate = 0.0

    def _bank_wanted(self, speed: float, heading: float) -> float:
        course = math.atan2(self.v_east, self.v_north) if speed > 3.0 else heading
        ahead = 0.0
        if self._loiter is None or (self._landing and self.up <= 15.0):
            wanted = self._runway if self._loiter is None else course
        else:
            off_north = self.north - self._loiter[0]
            off_east = self.east - self._loiter[1]
            distance = math.hypot(off_north, off_east)
            wanted = (math.atan2(off_east, off_north) + math.pi / 2.0
                      + math.atan((distance - 80.0) / 40.0))
            if distance < 160.0:
                ahead = speed * speed / max(distance, 60.0)
        pull = ahead + 0.8 * speed * _wrap(wanted - course)
        return min(max(math.atan(pull / GRAVITY), -_BANK_LIMIT), _BANK_LIMIT)

    def _step_fall(self, dt: float) -> None:
        """Motors off in the air: a plane glides, the others fall."""
        sink = 3.0 if self.kind == 'plane' else 10.0
        self.v_up += (-sink - self.v_up) * dt / 1.0
        self.north += self.v_north * dt
        self.east += self.v_east * dt
        self.up += self.v_up * dt
        self.throttle = 0.0
        if self.up <= 0.0:
            self._say(6, f'SIM Hit ground at {-self.v_up:f} m/s')
            self._touch_down()


def _wrap(angle: float) -> float:
    return (angle + math.pi) % (2.0 * math.pi) - math.pi
