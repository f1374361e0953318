"""What EK3_WIND_P_NSE and turns would have made of a recorded flight whose wind steps.

``python -m dryden_wind_ros.tools.ekf_what_if FLIGHT.tlog.gz --plot what_if.png`` runs a filter of
the two wind states alone over the headings and velocities that the log holds, as EKF3 fuses them
without an airspeed sensor: zero sideslip, with a variance of 0.03 rad^2, about every 0.12 s
(``AP_NavEKF3_AirDataFusion.cpp``). It prints the error against the wind flown for each value of
EK3_WIND_P_NSE, and how far the one at the flight's own value is from the estimate that was really
recorded, which says what the rest is worth.

The process noise per second is ``(EK3_WIND_P_NSE (1 + EK3_WIND_PSCALE |vertical speed|))^2`` times
:data:`NOISE_TIME`. That one number is fitted: in a filter of all 24 states more than its process
noise moves the wind, and this one has two.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dryden_wind_ros.ekf.telemetry import TelemetryFollower
from dryden_wind_ros.logs.flight import RecordError
from dryden_wind_ros.logs.tlog import MESSAGES, TlogReader
from dryden_wind_ros.pipes import pipe_safe

NOISE_TIME = 0.2
"""Fitted, s: follows the recorded estimate of test/data/ekf/plane_wind_steps to 0.7 m/s (rms)."""

FUSION_PERIOD = 0.12
"""Seconds between two fusions of zero sideslip."""

SIDESLIP_VARIANCE = 0.03
"""Variance that EKF3 gives zero sideslip, rad^2."""

_VELOCITY_VARIANCE = 0.3  # (m/s)^2, of EKF3's own velocity
_START_VARIANCE = 0.05    # (m/s)^2, of a wind that was learned long ago


@dataclass(frozen=True)
class Moment:
    """What the log holds at one fusion: rad, m/s, velocities towards north and east."""

    t: float
    yaw: float
    velocity: tuple[float, float, float]
    estimate: tuple[float, float]
    flown: tuple[float, float]


class TwoStates:
    """Kalman filter of the wind towards north and east on zero sideslip.

    Parameters
    ----------
    noise : float
        EK3_WIND_P_NSE.
    start : tuple of float
        Wind to start from, north and east, m/s.
    scale : float
        EK3_WIND_PSCALE, s/m.
    """

    def __init__(self, noise: float, start: tuple[float, float], scale: float = 1.0) -> None:
        self.noise = min(max(noise, 0.0), 1.0)
        self.scale = scale
        self.north, self.east = start
        self._pn = self._pe = _START_VARIANCE
        self._pne = 0.0

    def step(self, yaw: float, north: float, east: float, down: float) -> None:
        """Take one fusion with this heading (rad) and velocity over the ground (m/s)."""
        grown = (self.noise * (1.0 + self.scale * abs(down))) ** 2 * NOISE_TIME * FUSION_PERIOD
        self._pn += grown
        self._pe += grown
        air_n, air_e = north - self.north, east - self.east
        h_n, h_e = math.sin(yaw), -math.cos(yaw)  # of the air's speed across, by the wind
        to_n, to_e = self._pn * h_n + self._pne * h_e, self._pne * h_n + self._pe * h_e
        across = air_e * math.cos(yaw) - air_n * math.sin(yaw)
        total = h_n * to_n + h_e * to_e + _VELOCITY_VARIANCE \
            + SIDESLIP_VARIANCE * (air_n * air_n + air_e * air_e)
        self.north -= to_n / total * across
        self.east -= to_e / total * across
        self._pn -= to_n * to_n / total
        self._pe -= to_e * to_e / total
        self._pne -= to_n * to_e / total


def moments(path: Path, start: float = 60.0) -> list[Moment]:
    """Read what the filter needs from a log, from ``start`` s after boot on."""
    follower = TelemetryFollower()
    yaw = math.nan
    velocity = (math.nan, math.nan, math.nan)
    found: list[Moment] = []
    for _, message in TlogReader(path, MESSAGES):
        follower.update(message)
        kind = message.get_type()
        t = follower.monitor.t
        if kind == 'ATTITUDE':
            yaw = message.yaw
        elif kind == 'LOCAL_POSITION_NED':
            velocity = (message.vx, message.vy, message.vz)
        if t < start or math.isnan(yaw + velocity[0]) \
                or (found and t - found[-1].t < FUSION_PERIOD - 1e-3):
            continue
        state = follower.monitor.state()
        if not math.isnan(state.wind_n):
            found.append(Moment(t, yaw, velocity, (state.wind_n, state.wind_e),
                                follower.wind_flown()))
    return found


def errors(flight: Sequence[Moment], noise: float, straight: bool = False) -> list[float]:
    """Return the error of the filter at each moment, m/s.

    Parameters
    ----------
    flight : sequence of Moment
        A flight.
    noise : float
        EK3_WIND_P_NSE.
    straight : bool
        Fly straight north at 22 m/s through the same wind instead.
    """
    states = TwoStates(noise, flight[0].estimate)
    found = []
    for at, now in enumerate(flight):
        yaw, velocity = now.yaw, now.velocity
        if straight:
            # No sideslip: the nose into the air that comes, whatever the drift over the ground.
            yaw, velocity = 0.0, (22.0 + now.flown[0], now.flown[1], 0.0)
        missed = 1 if at == 0 else round((now.t - flight[at - 1].t) / FUSION_PERIOD)
        for _ in range(min(max(missed, 1), 5)):
            states.step(yaw, *velocity)
        found.append(math.dist((states.north, states.east), now.flown))
    return found


def within(flight: Sequence[Moment], error: Sequence[float], least: float = 3.0) -> list[float]:
    """Return how long after each step of the wind the error was within ``least`` m/s again, s."""
    steps: list[tuple[float, int]] = []
    for at in range(1, len(flight)):
        if math.dist(flight[at].flown, flight[at - 1].flown) < 1.0 or (
                steps and flight[at].t - steps[-1][0] < 5.0):
            continue
        steps.append((flight[at].t, at))
    ends = [at for _, at in steps[1:]] + [len(flight)]
    return [next((flight[k].t - t for k in range(at + 5, end) if error[k] <= least), math.inf)
            for (t, at), end in zip(steps, ends, strict=True)]


def plot(flight: Sequence[Moment], curves: Sequence[tuple[str, list[float]]], path: Path) -> None:
    """Draw the errors over time."""
    import matplotlib
    matplotlib.use('Agg')
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(11.0, 3.6), layout='constrained')
    t = [now.t for now in flight]
    axis.plot(t, [math.dist(now.estimate, now.flown) for now in flight], color='#c0262d',
              linewidth=2.2, label='recorded')
    colours = ('#1f77b4', '#ff7f0e', '#2ca02c', '#17becf', '#9467bd', '#8c564b', '#7f7f7f')
    for at, (name, error) in enumerate(curves):
        axis.plot(t, error, linewidth=1.2, label=name, color=colours[at % len(colours)],
                  linestyle='--' if 'straight' in name else '-')
    axis.axhline(3.0, color='#00000060', linewidth=0.8, linestyle='--')
    axis.set(xlabel='vehicle time, s since boot', ylabel='error, m/s', xlim=(t[0], t[-1]))
    axis.set_ylim(bottom=0.0)
    axis.grid(color='#00000018', linewidth=0.6)
    for side in ('top', 'right'):
        axis.spines[side].set_visible(False)
    figure.legend(frameon=False, fontsize=9, loc='outside lower center',
                  ncols=len(curves) + 1)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _text(times: Sequence[float]) -> str:
    return ', '.join('not before the next' if math.isinf(one) else f'{one:.0f} s' for one in times)


@pipe_safe
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser: Any = argparse.ArgumentParser(prog='ekf_what_if', description=__doc__.split('\n')[0])
    parser.add_argument('flight', type=Path, help='FLIGHT.tlog or FLIGHT.tlog.gz, of a plane '
                        'without an airspeed sensor, with SIM_WIND_* in it')
    parser.add_argument('--noise', type=float, nargs='+', default=[0.02, 0.1, 0.3, 1.0],
                        help='values of EK3_WIND_P_NSE (default: %(default)s)')
    parser.add_argument('--own', type=float, default=0.1, help="the flight's own value")
    parser.add_argument('--plot', type=Path, help='draw the errors to this file')
    options = parser.parse_args(arguments)
    try:
        flight = moments(options.flight)
    except RecordError as unreadable:
        print(f'ekf_what_if: {unreadable}', file=sys.stderr)
        return 1
    if not flight or math.isnan(flight[-1].flown[0]):
        print(f'ekf_what_if: {options.flight}: no estimate with a wind flown beside it',
              file=sys.stderr)
        return 1
    recorded = [math.dist(now.estimate, now.flown) for now in flight]
    own = errors(flight, options.own)
    off = math.sqrt(sum((a - b) ** 2 for a, b in zip(own, recorded, strict=True)) / len(own))
    print(f'EK3_WIND_P_NSE {options.own:g}: its error differs from that recorded by {off:.2f} m/s '
          '(rms)')
    print('Within 3 m/s after each step of the wind:')
    curves = [(f'EK3_WIND_P_NSE {noise:g}', errors(flight, noise)) for noise in options.noise]
    curves.append((f'{options.own:g}, straight ahead', errors(flight, options.own, True)))
    for name, error in (('recorded', recorded), *curves):
        print(f'{name:>22}: {_text(within(flight, error))}')
    if options.plot is not None:
        plot(flight, curves, options.plot)
    return 0


if __name__ == '__main__':
    sys.exit(main())
