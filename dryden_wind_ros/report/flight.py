"""One flight as arrays: what :mod:`dryden_wind_ros.logs` reads and the report works on."""

from __future__ import annotations

from dryden_wind_ros.logs.flight import (
    AXES,
    MAX_GRID,
    Air,
    BoolArray,
    Ekf,
    FlightRecord,
    FloatArray,
    IntArray,
    RecordError,
    Settings,
    runs_of,
)

__all__ = [
    'AXES', 'MAX_GRID', 'Air', 'BoolArray', 'Ekf', 'FlightRecord', 'FloatArray', 'IntArray',
    'RecordError', 'Settings', 'runs_of']
