"""Names for people: of the axes and of the settings."""

from __future__ import annotations

AXIS_WORDS = {'u': 'u, along the wind', 'v': 'v, to the right', 'w': 'w, up'}

WORDS = {
    'gusts': 'gusts', 'method': 'method', 'scale': 'factor on the gust', 'seed': 'seed',
    'profile': 'wind by height', 'mean_speed': 'mean wind, m/s',
    'mean_from_deg': 'mean wind from, degrees', 'mean_up': 'updraft, m/s',
    'ground_height': 'height of the ground, m', 'clock_origin': 'clock origin, s',
    'frame_id': 'frame of the vectors', 'model': 'model of the turbulence',
    'severity': 'severity above 1000 ft', 'span': 'wing span, m', 'scenario': 'scenario',
    'field_spectrum': 'spectrum of the field', 'field_modes': 'modes of the field',
    'field_life': 'life of the field'}
"""Settings in words; what is not named here goes by its own name."""
