"""The random draws, recovered from the gusts, and compared with the stream of the seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dryden_wind_ros.report.flight import Air, FloatArray, IntArray, Settings
from dryden_wind_ros.report.model_steps import ModelSteps

_SAME_DRAW = 1e-6
_MOST_DRAWS = 20_000_000


@dataclass(frozen=True)
class Draws:
    """The random draws, recovered from the gusts, and whether they are those of the seed.

    Attributes
    ----------
    tick : ndarray of int, shape (M,)
        Ticks whose draws can be told.
    values : ndarray, shape (3, M)
        Draws of u, v, w.
    row : ndarray of int, shape (M,)
        Their rows in the record.
    of_seed : int
        How many are the triple of that number of the seed's stream.
    """

    tick: IntArray
    values: FloatArray
    row: IntArray
    of_seed: int

    def __len__(self) -> int:
        return len(self.tick)


def recover_draws(air: Air, settings: Sequence[Settings], steps: ModelSteps) -> Draws:
    """Solve the model's update for the draws, and compare them with the seed's stream."""
    with np.errstate(invalid='ignore', divide='ignore'):
        before = np.where(steps.known, np.roll(steps.state, 1, axis=1), 0.0)
        values = (steps.state - steps.phi * before) / steps.gain
    rows = np.flatnonzero(steps.single & np.isfinite(values).all(axis=0))
    tick, values = air.tick[rows], values[:, rows]
    seeds = np.array([s.seed for s in settings] or [0], dtype=np.int64)[air.setting[rows]]
    same = 0
    for seed in np.unique(seeds):
        chosen = seeds == seed
        last = int(tick[chosen].max())
        if 3 * last > _MOST_DRAWS:
            continue
        gauss = random.Random(int(seed)).gauss
        stream = np.array([gauss(0.0, 1.0) for _ in range(3 * last)]).reshape(-1, 3)
        wanted = stream[tick[chosen] - 1].T
        same += int((np.abs(values[:, chosen] - wanted) < _SAME_DRAW).all(axis=0).sum())
    return Draws(tick, values, rows, same)
