"""The air of a field at other places and times than the vehicle's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dryden_wind_ros.gusts.conditions import ConstantMeanWind, MeanWindSource, Moment
from dryden_wind_ros.gusts.field import TurbulenceField
from dryden_wind_ros.gusts.shared_air import SharedAir
from dryden_wind_ros.gusts.tick_grid import tick_number

MAX_POINTS = 200_000
MAX_TERMS = MAX_POINTS * 4096
"""Places times modes of one question: some twenty seconds of a core."""
_SLICE = 1024

FloatArray = npt.NDArray[np.float64]


class FieldSample:
    """A field as it was at one moment, to be asked from any thread for as long as that takes.

    Parameters
    ----------
    field : TurbulenceField
    mean_source : MeanWindSource
    shared : SharedAir
        Time and drift.
    ground_height : float
        Height of the ground in the frame, m.
    scale : float
        Factor on the gust.
    origin : float
        Simulated time of tick 0, s.
    offset : float
        Common time of the fleet less the vehicle's own, s.
    moment : Moment
        The newest: what is not asked for is taken from it.
    """

    def __init__(self, field: TurbulenceField, mean_source: MeanWindSource, shared: SharedAir,
                 ground_height: float, scale: float, origin: float, offset: float,
                 moment: Moment) -> None:
        self._field, self._mean_source, self._shared = field, mean_source, shared
        self._ground, self._scale = ground_height, scale
        self._origin, self._offset, self._moment = origin, offset, moment

    def at(self, places: FloatArray, times: FloatArray,
           go_on: Callable[[], bool] = lambda: True) -> tuple[FloatArray, FloatArray]:
        """Return gust and wind.

        Parameters
        ----------
        places : ndarray, shape (N, 3)
            ENU, m.
        times : ndarray, shape (N,) or (1,)
            Simulated time of the vehicle, s.
        go_on : callable, optional
            Asked between slices; what is left is zero where it says no.

        Returns
        -------
        gust, wind : ndarray, shape (N, 3)
            ENU, m/s.

        Raises
        ------
        ValueError
            If a number is not finite, or the shapes do not fit.
        """
        n = len(places)
        modes = self._field.modes
        most = min(MAX_POINTS, MAX_TERMS // modes)
        if n > most:
            raise ValueError(f'{n} places were asked for; at most {most} are answered at once '
                             f'from a field of {modes} modes')
        if times.shape not in ((1,), (n,)):
            raise ValueError(f't has {times.size} times for {n} places; it must be one or as many')
        for name, values in (('places', places), ('t', times)):
            if not np.isfinite(values).all():
                raise ValueError(f'{name} has a number that is not finite')
        air_times = np.broadcast_to(times - self._origin + self._offset, (n,))
        gust, mean = np.zeros((n, 3)), np.zeros((n, 3))
        for start in range(0, n, _SLICE):
            if not go_on():
                break
            part = slice(start, start + _SLICE)
            mean[part], low = self._means(places[part], np.broadcast_to(times, (n,))[part])
            drift, age = self._shared.history(air_times[part])
            gust[part] = self._scale * self._field.gust(
                places[part], air_times[part], low, drift=drift, age=age,
                heights=places[part, 2] - self._ground)
        return gust, mean + gust

    def _means(self, places: FloatArray, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean wind at places, and at 20 ft below or above them."""
        at = self._moment
        if isinstance(self._mean_source, ConstantMeanWind):
            enu = np.broadcast_to(self._mean_source.at(at).enu, (len(places), 3))
            return enu, enu
        mean, low = np.empty((len(places), 3)), np.empty((len(places), 3))
        for i, (place, time) in enumerate(zip(places.tolist(), times.tolist(), strict=True)):
            moment = at._replace(
                tick=tick_number(time - self._origin), time=time, position=tuple(place),
                height=place[2] - self._ground)
            mean[i] = self._mean_source.at(moment).enu
            low[i] = self._mean_source.at(moment._replace(height=6.096)).enu
        return mean, low
