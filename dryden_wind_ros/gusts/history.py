"""The last two minutes of the air, tick by tick, kept by column."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from dryden_wind_ros.gusts.tick_grid import TICK_S

KEPT_S = 120.0
"""How far back the history goes, s."""

COLUMNS = ('t', 'u', 'v', 'w', 'gust_e', 'gust_n', 'gust_up', 'sim_wind_spd', 'sim_wind_dir',
           'sim_wind_dir_z', 'height', 'airspeed')
"""Names of the columns: s, m/s, degrees and m as in GetWindHistory.srv."""

_CAPACITY = round(KEPT_S / TICK_S)
_ROW = struct.Struct(f'{len(COLUMNS)}d')


class WindHistory:
    """A ring of the newest 2400 ticks.

    Examples
    --------
    >>> history = WindHistory()
    >>> history.record(1, [0.05] + [0.0] * 11)
    >>> history.columns()['t'].tolist()
    [0.05]
    """

    def __init__(self) -> None:
        self._rows: npt.NDArray[np.float64] = np.empty((_CAPACITY, len(COLUMNS)))
        #: The same, for writing: a list of numbers goes in in half the time NumPy takes for it.
        self._bytes = self._rows.data.cast('B')
        self._ticks: npt.NDArray[np.int64] = np.empty(_CAPACITY, dtype=np.int64)
        self._next = 0
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def clear(self) -> None:
        """Forget everything."""
        self._next = self._size = 0

    def record(self, tick: int, row: list[float]) -> None:
        """Add a tick.

        Parameters
        ----------
        tick : int
            Its number, above all recorded since the last `clear`.
        row : list of float
            One number for each of `COLUMNS`.
        """
        _ROW.pack_into(self._bytes, self._next * _ROW.size, *row)
        self._ticks[self._next] = tick
        self._next = (self._next + 1) % _CAPACITY
        self._size = min(self._size + 1, _CAPACITY)

    def columns(self, seconds: float = 0.0,
                step: float = 0.0) -> Mapping[str, npt.NDArray[np.float64]]:
        """Return what was recorded, by column, oldest first.

        Parameters
        ----------
        seconds : float, optional
            How far back from the newest tick, s; 0 for all that is kept. A tick exactly this old is
            left out, so that 10 s are 200 ticks.
        step : float, optional
            Spacing of the rows, s; 0 for every tick. Counted back from the newest tick; each row is
            the newest tick not after its time, so no tick is returned twice.

        Returns
        -------
        mapping of str to ndarray, shape (rows,)
            One array for each of `COLUMNS`.

        Raises
        ------
        ValueError
            If a number is not in 0..120; the text names it.
        """
        for name, value in (('seconds', seconds), ('step', step)):
            if not (math.isfinite(value) and 0.0 <= value <= KEPT_S):
                raise ValueError(f'{name} is {value:.12g}; it must be from 0 to {KEPT_S:g} s')
        order = (self._next - self._size + np.arange(self._size)) % _CAPACITY
        ticks = self._ticks[order]
        if self._size and seconds > 0.0:
            order = order[ticks > min(ticks[-1] - seconds / TICK_S + 1e-6, ticks[-1] - 0.5)]
            ticks = self._ticks[order]
        if ticks.size and step > TICK_S:
            back = np.arange(0.0, (ticks[-1] - ticks[0]) * TICK_S + 1e-9, step)
            wanted = np.floor(ticks[-1] - back[::-1] / TICK_S + 1e-6)
            order = order[np.unique(np.searchsorted(ticks, wanted, side='right') - 1)]
        rows = self._rows[order]
        return {name: rows[:, i] for i, name in enumerate(COLUMNS)}
