"""What the air over a vehicle is to be like: settings, what is allowed, and what a refusal says."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from dryden_wind_ros.gusts.conditions import MeanWind
from dryden_wind_ros.gusts.dryden import MAX_SCALE, METHODS
from dryden_wind_ros.gusts.field import MAX_LIFE, MAX_MODES
from dryden_wind_ros.gusts.inputs import short
from dryden_wind_ros.gusts.scales import exceedance
from dryden_wind_ros.gusts.standard import MAX_SPAN
from dryden_wind_ros.gusts.theory import SPECTRA

GUSTS = ('off', 'dryden', 'field', 'sitl')
MODELS = {'first_order': '', 'mil_f_8785c': 'MIL-F-8785C', 'mil_hdbk_1797b': 'MIL-HDBK-1797B'}
"""Models of ``gusts: dryden``, and the standards that they are."""

MIN_FIELD_MODES = 64
MAX_LEAD = 0.5
DEFAULT_LEAD = 0.045
"""s: a wind is felt some 20 ms after its tick, and then for a tick; this is the middle of it."""

PROFILES = ('uniform', 'sitl')
MAX_MEAN_WIND = 60.0
MAX_UPDRAFT = 20.0
MAX_SEED = 2**63 - 1


@dataclass(frozen=True)
class AirSettings:
    """What the air is to be like.

    Attributes
    ----------
    mean_speed : float
        Horizontal mean wind, m/s, 0..60.
    mean_from_deg : float
        Where it comes from, degrees.
    mean_up : float
        Updraft, m/s, -20..20.
    gusts : {'off', 'dryden', 'field', 'sitl'}
        No gusts, those of a model of one vehicle, those of a field that all vehicles share, or
        SITL's own turbulence.
    model : {'first_order', 'mil_f_8785c', 'mil_hdbk_1797b'}
        Which model of one vehicle.
    method : {'exact', 'euler'}
        Update of the first-order model.
    severity : str
        Strength above 1000 ft, of the standards and of the field: a name or a probability.
    span : float
        Wing span for the rates of the gust, of the standards and of the field, m; 0: none.
    field_spectrum : {'dryden', 'von_karman'}
        Of the field.
    field_modes : int
        Fourier modes of the field, 64 to 65536.
    field_life : float
        How fast the field changes while it drifts, 0 (frozen) to 5.
    field_lead : float
        How long after a tick SITL feels its wind, s, 0 to 0.5: the field is asked for then.
    scale : float
        Factor on the gust, above 0, at most 5.
    seed : int
        Seed of the draws, 0..2^63 - 1.
    profile : {'uniform', 'sitl'}
        The same wind at every height, or SITL's own profile (SIM_WIND_T as found).
    ground_height : float
        Height of the ground in the odometry's frame, m.

    Raises
    ------
    ValueError
        Naming what is wrong, its value and what is allowed.
    """

    mean_speed: float = 0.0
    mean_from_deg: float = 270.0
    mean_up: float = 0.0
    gusts: str = 'dryden'
    model: str = 'first_order'
    method: str = 'exact'
    severity: str = 'light'
    span: float = 0.0
    field_spectrum: str = 'dryden'
    field_modes: int = 4096
    field_life: float = 0.5
    field_lead: float = DEFAULT_LEAD
    scale: float = 1.0
    seed: int = 1
    profile: str = 'uniform'
    ground_height: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f'{field.name} is {value}; it must be a finite number')
        _within('mean_speed', self.mean_speed, 0.0, MAX_MEAN_WIND, 'm/s')
        _within('mean_up', self.mean_up, -MAX_UPDRAFT, MAX_UPDRAFT, 'm/s')
        _one_of('gusts', self.gusts, GUSTS)
        _one_of('model', self.model, tuple(MODELS))
        _one_of('method', self.method, METHODS)
        exceedance(self.severity)
        _within('span', self.span, 0.0, MAX_SPAN, 'm')
        _one_of('field.spectrum', self.field_spectrum, SPECTRA)
        if not MIN_FIELD_MODES <= self.field_modes <= MAX_MODES:
            raise ValueError(f'field.modes is {self.field_modes}; it must be from '
                             f'{MIN_FIELD_MODES} to {MAX_MODES}')
        _within('field.life', self.field_life, 0.0, MAX_LIFE, '')
        _within('field.lead', self.field_lead, 0.0, MAX_LEAD, 's')
        _one_of('profile', self.profile, PROFILES)
        if not 0.0 < self.scale <= MAX_SCALE:
            raise ValueError(f'scale is {self.scale:g}; it must be above 0 and at most '
                             f'{MAX_SCALE:g}')
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise ValueError(f'seed is {self.seed!r}; it must be a whole number')
        if not 0 <= self.seed <= MAX_SEED:
            raise ValueError(f'seed is {self.seed}; it must be from 0 to 2^63 - 1')

    @property
    def mean(self) -> MeanWind:
        """The mean wind that is set."""
        return MeanWind.of(self.mean_speed, self.mean_from_deg, self.mean_up)

    @property
    def blows(self) -> bool:
        """Whether gusts of this package blow, not none or SITL's own."""
        return self.gusts in ('dryden', 'field')

    @property
    def air(self) -> tuple[object, ...]:
        """What the air is made from: when one of these changes, it begins anew."""
        if self.gusts == 'field':
            return ('field', self.seed, self.field_spectrum, self.field_modes, self.field_life,
                    self.field_lead, self.severity, self.span)
        if self.model == 'first_order':
            return self.model, self.seed, self.method
        return self.model, self.seed, self.severity, self.span

    @property
    def turbulence(self) -> float:
        """SIM_WIND_TURB to go with the mean wind that is set, m/s."""
        return self.turbulence_in(self.mean_speed)

    def turbulence_in(self, mean_speed: float) -> float:
        """Return SIM_WIND_TURB to go with a mean wind, m/s."""
        return 0.1 * mean_speed * self.scale if self.gusts == 'sitl' else 0.0


def _within(name: str, value: float, low: float, high: float, unit: str) -> None:
    if not low <= value <= high:
        unit = f' {unit}' if unit else ''
        raise ValueError(f'{name} is {value:g}{unit}; it must be from {low:g} to {high:g}{unit}')


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f'{name} is {short(repr(value))}; it must be one of {", ".join(allowed)}')
