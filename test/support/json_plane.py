"""A plane that flies in turns for a SITL started with ``--model JSON``, and a SITL of a script.

The plane needs no pilot: servo packets only say that a step is to be done. EKF3 sees sensors
alone, so a plane that moves as they say is enough: through the air it flies along its nose at an
airspeed V, in a coordinated turn of bank phi and pitch theta, and the air moves over the ground
with the wind W::

    v = V x_body + W          psi' = g tan(phi) / V
    gyro = (phi' - psi' sin theta,  theta' cos phi + psi' cos theta sin phi,
            psi' cos theta cos phi - theta' sin phi)                                 = (p, q, r)
    accel_body = (V' + g sin theta,  V r - g sin phi cos theta,  -V q - g cos phi cos theta)

On the ground it heads into the wind, so that no velocity jumps where it lifts off. Packets as in
ArduPilot's ``libraries/SITL/SIM_JSON.cpp``, whose reader allows no space after a colon.
"""

from __future__ import annotations

import json
import math
import socket
import struct
import threading
from typing import Any

from pymavlink import mavutil
from pymavlink.dialects.v20 import ardupilotmega as mavlink

GRAVITY = 9.80665
CRUISE = 22.0
BANK = math.radians(25.0)
CLIMB = math.radians(8.0)
HEIGHT = 60.0
SERVOS = struct.Struct('<HHI16H')
MAGIC = 18458


class JsonPlane:
    """The physics: stands still until `take_off`, then climbs to 60 m and turns for ever.

    Parameters
    ----------
    port : int
        UDP port to listen on.
    wind : tuple of float
        Of the air over the ground, north and east, m/s, less than 20 altogether.

    Attributes
    ----------
    turned : float
        For how much of its own time it has turned, s.
    time : float
        Its own time, s.
    """

    def __init__(self, port: int, wind: tuple[float, float]) -> None:
        self.wind = wind
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(('127.0.0.1', port))
        self._socket.settimeout(0.1)
        self._ended = threading.Event()
        self._flying = threading.Event()
        self.begin()
        self._thread = threading.Thread(target=self._serve, name='json plane', daemon=True)
        self._thread.start()

    def __enter__(self) -> JsonPlane:
        return self

    def __exit__(self, *_: Any) -> None:
        self._ended.set()
        self._thread.join()
        self._socket.close()

    def take_off(self) -> None:
        """Begin to roll; may be called from any thread."""
        self._flying.set()

    def begin(self) -> None:
        """Stand on the ground at time 0, nose into the wind."""
        north, east = self.wind
        self.time = self.turned = 0.0
        self.airspeed = math.hypot(north, east)
        self.roll = self.pitch = 0.0
        self.yaw = math.atan2(-east, -north)
        self.position = [0.0, 0.0, 0.0]
        self.velocity = [0.0, 0.0, 0.0]
        self.gyro = (0.0, 0.0, 0.0)
        self.accel = (0.0, 0.0, -GRAVITY)
        self._frame = 0
        self._flying.clear()

    def step(self, dt: float) -> None:
        """Fly on for dt, s."""
        self.time += dt
        if not self._flying.is_set():
            return
        faster = min(2.0, (CRUISE - self.airspeed) / dt)
        climbs = self.airspeed >= CRUISE - 0.5 and self.position[2] > -HEIGHT
        turns = self.position[2] <= -HEIGHT or self.turned > 0.0
        pitching = _towards(self.pitch, CLIMB if climbs and not turns else 0.0)
        rolling = _towards(self.roll, BANK if turns else 0.0)
        if turns:
            self.turned += dt
        # What holds half way through the step moves it.
        speed = self.airspeed + 0.5 * faster * dt
        roll, pitch = self.roll + 0.5 * rolling * dt, self.pitch + 0.5 * pitching * dt
        turning = GRAVITY * math.tan(roll) / max(speed, 1.0)
        (sin_r, cos_r), (sin_p, cos_p) = _sin_cos(roll), _sin_cos(pitch)
        p = rolling - turning * sin_p
        q = pitching * cos_r + turning * cos_p * sin_r
        r = turning * cos_p * cos_r - pitching * sin_r
        self.gyro = (p, q, r)
        self.accel = (faster + GRAVITY * sin_p, speed * r - GRAVITY * sin_r * cos_p,
                      -speed * q - GRAVITY * cos_r * cos_p)
        self.airspeed += faster * dt
        self.roll += rolling * dt
        self.pitch += pitching * dt
        self.yaw += turning * dt
        (sin_p, cos_p), (sin_y, cos_y) = _sin_cos(self.pitch), _sin_cos(self.yaw)
        velocity = [self.airspeed * cos_p * cos_y + self.wind[0],
                    self.airspeed * cos_p * sin_y + self.wind[1], -self.airspeed * sin_p]
        self.position = [x + 0.5 * dt * (old + new) for x, old, new in zip(
            self.position, self.velocity, velocity, strict=True)]
        self.velocity = velocity

    def answer(self) -> bytes:
        """Return what SITL's sensors are to be told, wind and airspeed left out."""
        yaw = math.remainder(self.yaw, 2.0 * math.pi)
        return b'\n' + json.dumps({
            'timestamp': self.time, 'imu': {'gyro': self.gyro, 'accel_body': self.accel},
            'position': self.position, 'attitude': [self.roll, self.pitch, yaw],
            'velocity': self.velocity}, separators=(',', ':')).encode() + b'\n'

    def _serve(self) -> None:
        while not self._ended.is_set():
            try:
                packet, sender = self._socket.recvfrom(2000)
            except TimeoutError:
                continue
            if len(packet) != SERVOS.size:
                continue
            magic, rate, frame, *_ = SERVOS.unpack(packet)
            if magic != MAGIC:
                continue
            if frame < self._frame:
                self.begin()  # SITL was started again
            if frame != self._frame or not self.time:  # else: asked again, the answer was lost
                self.step(1.0 / min(max(rate, 50), 2000))
            self._frame = frame
            self._socket.sendto(self.answer(), sender)


class ScriptedSitl:
    """What SITL shows of itself here, without ArduPilot: lock step, sensors, a link to arm it by.

    It believes what it is told: its pitot reads ``airspeed``, its estimate of the wind is the
    velocity over the ground less the airspeed along the nose, as of one measurement.

    Parameters
    ----------
    port : int
        TCP port of its MAVLink.
    physics : int
        UDP port to which it sends servo packets.
    """

    RATE = 50

    def __init__(self, port: int, physics: int) -> None:
        self._link = mavutil.mavlink_connection(f'tcpin:127.0.0.1:{port}', source_system=1)
        self._physics = ('127.0.0.1', physics)
        self._ended = threading.Event()
        self._armed = False
        self.answers: list[dict[str, Any]] = []
        self._thread = threading.Thread(target=self._run, name='scripted SITL', daemon=True)
        self._thread.start()

    def __enter__(self) -> ScriptedSitl:
        return self

    def __exit__(self, *_: Any) -> None:
        self._ended.set()
        self._thread.join()
        self._link.close()

    def _run(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(0.1)
            frame = 0
            while not self._ended.is_set():
                self._hear()
                sock.sendto(SERVOS.pack(MAGIC, self.RATE, frame, *[1500] * 16), self._physics)
                try:
                    answer = json.loads(sock.recv(65_507))
                except TimeoutError:
                    continue
                self.answers.append(answer)
                frame += 1
                if frame % 10 == 0:
                    self._tell(answer)

    def _hear(self) -> None:
        message = self._link.recv_match(type='COMMAND_LONG')
        if message is not None and message.command == mavlink.MAV_CMD_COMPONENT_ARM_DISARM:
            self._armed = bool(message.param1)
        if message is not None:
            self._link.mav.command_ack_send(message.command, mavlink.MAV_RESULT_ACCEPTED)

    def _tell(self, answer: dict[str, Any]) -> None:
        _, pitch, yaw = answer['attitude']
        airspeed = answer.get('airspeed', 0.0)
        north = answer['velocity'][0] - airspeed * math.cos(pitch) * math.cos(yaw)
        east = answer['velocity'][1] - airspeed * math.cos(pitch) * math.sin(yaw)
        send = self._link.mav
        send.heartbeat_send(mavlink.MAV_TYPE_FIXED_WING, mavlink.MAV_AUTOPILOT_ARDUPILOTMEGA,
                            mavlink.MAV_MODE_FLAG_SAFETY_ARMED if self._armed else 0, 0, 4)
        send.ekf_status_report_send(831, 0.0, 0.0, 0.0, 0.0, 0.0)
        send.vfr_hud_send(airspeed, math.hypot(*answer['velocity'][:2]), 0, 0, 0.0, 0.0)
        send.wind_send(math.degrees(math.atan2(-east, -north)), math.hypot(north, east), 0.0)


def _towards(value: float, wanted: float) -> float:
    """Return a rate that brings an angle where it is wanted within a second or two, rad/s."""
    return min(max(2.0 * (wanted - value), -0.3), 0.3)


def _sin_cos(angle: float) -> tuple[float, float]:
    return math.sin(angle), math.cos(angle)
