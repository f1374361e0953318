"""Does the vehicle feel the wind that SITL was given? Some simulators never ask for it.

SIM_WIND_* exists in every SITL and every write is acknowledged, but only ArduPilot's own models use
it: with the JSON interface (ardupilot_gazebo), X-Plane, AirSim and others it does nothing at all.
MAVLink does not say which model runs, so this is judged by what the vehicle shows, and only where
that is beyond doubt. Two kinds of evidence:

* *estimate*: EKF3's wind, steady for `BLOCK_S` seconds. A wind that is felt shows in it to within
  a few tenths of its strength; here only an estimate whose component along the wind given is below
  `SHARE_NONE` of it contradicts.
* *lean*: a multicopter or helicopter that holds its place for `BLOCK_S` seconds has to lean into
  the wind, by the balance of drag and thrust: tan(lean) = drag / weight. SITL's own frames lean 10
  to 20 degrees in 8 m/s. One that leans less than `LEAN_NONE_DEG` into the wind feels none.
  Quadplanes do not count: they may hold against the wind with their forward motor.

Each needs wind of at least `WIND_LEAST` that stays about the same during the block. Where there is
neither a wind estimate nor a hover, nothing is judged.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass

from dryden_wind_ros.ekf.phase import EkfWindState, WindPhase

BLOCK_S = 60.0
"""Time of one judgement, s of vehicle time; its first third is to settle and does not count."""

WIND_LEAST = 4.0
"""Wind given below which nothing is judged, m/s."""

WIND_CHANGE = 0.25
"""Most that the wind given may change between the thirds of a block, as a share of it."""

SHARE_NONE = 0.25
"""An estimate with less than this share of the wind given contradicts it."""

SHARE_FELT = 0.5
"""An estimate with more than this share of the wind given confirms it."""

LEAN_NONE_DEG = 1.0
"""A hover that leans less than this into the wind contradicts it, degrees."""

LEAN_FELT_DEG = 2.5
"""A hover that leans more than this into the wind confirms it, degrees."""

_HOVER_SPEED = 1.0    # m/s over the ground
_HOVER_HEIGHT = 3.0   # m
_SAMPLE_S = 0.19      # s between two samples of odometry that are looked at
_GAP_S = 2.0          # s without a sample ends a block
_ROTORCRAFT = frozenset((2, 3, 4, 13, 14, 15, 29, 35))  # MAV_TYPE


class Effect(enum.Enum):
    """What is known about the wind given."""

    UNKNOWN = 'not judged yet'
    FELT = 'felt'
    NOT_FELT = 'not felt'


@dataclass(frozen=True)
class WindEffect:
    """The judgement and why.

    Attributes
    ----------
    effect : Effect
        The newest judgement.
    text : str
        Why, in words, with what to do about it where the wind is not felt.
    """

    effect: Effect
    text: str


class WindEffectMonitor:
    """Watches one vehicle. All times are its own, seconds since boot.

    Call `estimate` with states of EKF3's wind and `odometry` with samples, both with the
    wind given (`FlownWind.at`). `result` holds the newest judgement.

    Parameters
    ----------
    block : float, optional
        Time of one judgement, s.
    """

    def __init__(self, block: float = BLOCK_S) -> None:
        self.result = WindEffect(Effect.UNKNOWN, 'not judged yet: no steady wind estimate, and no '
                                 'long hover, in wind of 4 m/s or more')
        self._estimate = _Block(block)
        self._lean = _Block(block)
        self._sampled_at = -math.inf
        self._counted = block * 2.0 / 3.0

    def estimate(self, state: EkfWindState, given: Sequence[float]) -> bool:
        """Take EKF3's wind.

        Parameters
        ----------
        state : EkfWindState
            EKF3's wind; only a steady one counts.
        given : sequence of float
            Wind given to SITL, as it is at the vehicle: east, north, m/s.

        Returns
        -------
        bool
            Whether the judgement changed.
        """
        # Not `settled`: an estimate that keeps far from the wind given is what is looked for.
        if state.phase is not WindPhase.LEARNING or not state.steady:
            self._estimate.clear()
            return False
        mean = self._estimate.add(state.t, given, (state.wind_e, state.wind_n))
        if mean is None:
            return False
        share = mean.along / mean.given
        text = (f'EKF3 has estimated {mean.along:.1f} m/s along the wind of {mean.given:.1f} m/s '
                f'that SITL was given, over the last {self._counted:.0f} s')
        return self._judge(share < SHARE_NONE, share > SHARE_FELT, text)

    def due(self, t: float) -> bool:
        """Return whether `odometry` would use a sample of vehicle time `t`, s."""
        return not 0.0 <= t - self._sampled_at < _SAMPLE_S

    def odometry(self, t: float, vehicle_type: int, height: float, velocity: Sequence[float],
                 orientation: Sequence[float], given: Sequence[float]) -> bool:
        """Take a sample of where the vehicle is.

        Parameters
        ----------
        t : float
            Vehicle time, s.
        vehicle_type : int
            MAV_TYPE of its heartbeat; only rotorcraft are judged.
        height : float
            Above home, m.
        velocity : sequence of float, shape (3,)
            In any frame, m/s.
        orientation : sequence of float, shape (4,)
            Quaternion x, y, z, w from body (forward, left, up) to ENU.
        given : sequence of float
            Wind given to SITL, as it is at the vehicle: east, north, m/s.

        Returns
        -------
        bool
            Whether the judgement changed.
        """
        if not self.due(t):
            return False
        self._sampled_at = t
        if vehicle_type not in _ROTORCRAFT or not height > _HOVER_HEIGHT \
                or not math.hypot(*velocity) < _HOVER_SPEED:
            self._lean.clear()
            return False
        x, y, z, w = orientation
        # Where the vehicle's up axis points: the third column of the rotation matrix.
        up_east, up_north = 2.0 * (x * z + w * y), 2.0 * (y * z - w * x)
        mean = self._lean.add(t, given, (-up_east, -up_north))
        if mean is None:
            return False
        lean = math.degrees(math.asin(max(-1.0, min(1.0, mean.along))))
        text = (f'the vehicle has held its place for {self._counted:.0f} s leaning {lean:.1f} '
                f'degrees into the wind of {mean.given:.1f} m/s that SITL was given')
        return self._judge(lean < LEAN_NONE_DEG, lean > LEAN_FELT_DEG, text)

    def _judge(self, contradicts: bool, confirms: bool, text: str) -> bool:
        if not contradicts and not confirms:
            return False
        before = self.result.effect
        effect = Effect.NOT_FELT if contradicts else Effect.FELT
        if contradicts:
            text += (': it seems to fly in a simulator that ignores SIM_WIND_* (JSON, '
                     'ardupilot_gazebo, X-Plane, AirSim ...). Give that simulator the wind: for '
                     'Gazebo with the node gazebo_wind, see docs/gazebo.md')
        self.result = WindEffect(effect, text)
        return effect is not before


@dataclass(frozen=True)
class _Mean:
    """Averages over the counted part of a block: the wind given, and what was seen along it."""

    given: float
    along: float


class _Third:
    __slots__ = ('count', 'given_e', 'given_n', 'seen_e', 'seen_n')

    def __init__(self) -> None:
        self.count = 0
        self.given_e = self.given_n = self.seen_e = self.seen_n = 0.0

    def add(self, given: Sequence[float], seen: Sequence[float]) -> None:
        self.count += 1
        self.given_e += given[0]
        self.given_n += given[1]
        self.seen_e += seen[0]
        self.seen_n += seen[1]


class _Block:
    """Averages of two vectors over `length` s without a gap, in thirds."""

    def __init__(self, length: float) -> None:
        self._length = length
        self._began = self._t = math.nan
        self._thirds = [_Third(), _Third(), _Third()]

    def clear(self) -> None:
        """Begin anew with the next sample."""
        self._began = math.nan

    def add(self, t: float, given: Sequence[float], seen: Sequence[float]) -> _Mean | None:
        """Take a sample; return the averages when a block is full and fit to be judged."""
        if not all(map(math.isfinite, (t, given[0], given[1], seen[0], seen[1]))):
            self.clear()
            return None
        if not 0.0 <= t - self._t <= _GAP_S or math.isnan(self._began):
            self._began = t
            self._thirds = [_Third(), _Third(), _Third()]
        self._t = t
        age = t - self._began
        if age < self._length:
            self._thirds[int(3.0 * age / self._length)].add(given, seen)
            return None
        self.clear()
        return self._mean()

    def _mean(self) -> _Mean | None:
        first, second, last = self._thirds
        if not (first.count and second.count and last.count):
            return None
        count = second.count + last.count
        east, north = (second.given_e + last.given_e) / count, (
            second.given_n + last.given_n) / count
        speed = math.hypot(east, north)
        if speed < WIND_LEAST:
            return None
        for third in self._thirds:
            change = math.hypot(
                third.given_e / third.count - east, third.given_n / third.count - north)
            if change > WIND_CHANGE * speed:
                return None
        seen_e, seen_n = (second.seen_e + last.seen_e) / count, (
            second.seen_n + last.seen_n) / count
        return _Mean(speed, (seen_e * east + seen_n * north) / speed)
