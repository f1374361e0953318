"""The verdict: each variant against the baseline, flight by flight in the same air.

For each measure the pairs (same wind, same seed) have differences. Flights of one seed share their
draws, also in winds of other speeds, so what is independent is the seed: the differences of a seed
are averaged. These have a median with an interval of 95 % (bootstrap), and Wilcoxon's signed-rank
test says how likely such differences are by chance; a failure is a yes or no, so the seeds that
differ are counted (sign test, exact). All measures of all variants are asked at once, so the
p-values are corrected for their number (Holm). A difference is claimed where the corrected p is
below 0.05 and the interval does not hold zero.

References
----------
Wilcoxon, F., Individual comparisons by ranking methods, Biometrics Bulletin 1, 1945.
Holm, S., A simple sequentially rejective multiple test procedure, Scand. J. Statist. 6, 1979.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dryden_wind_ros.campaign.collect import number
from dryden_wind_ros.campaign.flight import TAKEN, Value
from dryden_wind_ros.campaign.measures import MEASURES
from dryden_wind_ros.campaign.plan import Limit, Plan

LEVEL = 0.05
RESAMPLES = 2000
MOST_PAIRS = 2000
"""More pairs than that are not advised: the difference is too small to matter in this scatter."""

FEWEST = 10
"""So many seeds are needed before anything can be claimed, corrected for a dozen questions."""

_POWER = 1.96 + 0.84
"""Standard errors that a difference must have to be found 4 times out of 5 at 95 %."""

Row = Mapping[str, Value]


@dataclass(frozen=True)
class Found:
    """A measure of a variant against the baseline.

    Attributes
    ----------
    variant, measure : str
    pairs : int
        Flights of both in the same air that have this measure.
    seeds : int
        How many of the pairs are independent.
    baseline, median : float
        Median of the baseline's flights; of the differences, variant less baseline, a seed.
    low, high : float
        Interval of 95 % of the latter.
    better, worse : int
        Pairs in which the variant is less, and more.
    p : float
        By chance alone, corrected for the number of questions; NaN where it cannot be asked.
    scatter : float
        Standard deviation of the baseline over the seeds of the same wind.
    verdict : {'better', 'worse', 'more', 'less', 'same', 'open'}
        'same': number for number; 'open': it cannot be told yet.
    more_pairs : int
        About how many more would do; 0: none, or too many.
    text : str
        All that in a sentence.
    note : str
        What that says beside the numbers.
    """

    variant: str
    measure: str
    pairs: int
    seeds: int
    baseline: float
    median: float
    low: float
    high: float
    better: int
    worse: int
    p: float
    scatter: float
    verdict: str = 'open'
    more_pairs: int = 0
    text: str = ''
    note: str = ''


@dataclass(frozen=True)
class Judged:
    """A limit of the plan, and whether it was held.

    Attributes
    ----------
    limit : Limit
    passed, flights : int
        Flights that are within it, and those it is for.
    held : bool
    """

    limit: Limit
    passed: int
    flights: int
    held: bool


@dataclass(frozen=True)
class Verdict:
    """What a campaign found.

    Attributes
    ----------
    found : tuple of Found
    limits : tuple of Judged
    flights, failed : int
    missing : int
        Flights of the plan that were not flown.
    """

    found: tuple[Found, ...]
    limits: tuple[Judged, ...]
    flights: int
    failed: int
    missing: int

    @property
    def held(self) -> bool:
        """Whether all limits were held."""
        return all(one.held for one in self.limits)

    def as_json(self, plan: Plan) -> dict[str, Any]:
        """Return it as JSON's kind of values; None for what is no number."""
        def plain(value: Any) -> Any:
            if isinstance(value, dict):
                return {key: plain(one) for key, one in value.items()}
            if isinstance(value, list | tuple):
                return [plain(one) for one in value]
            return None if isinstance(value, float) and not math.isfinite(value) else value
        made: dict[str, Any] = plain({
            'name': plan.name, 'baseline': plan.baseline, 'variants': plan.variants,
            'flights': self.flights, 'failed': self.failed, 'missing': self.missing,
            'held': self.held, 'limits': [asdict(one) for one in self.limits],
            'measures': [asdict(one) for one in self.found]})
        return made


def measures_in(rows: Sequence[Row]) -> list[str]:
    """Return the measures that the rows have, those of the user last."""
    own = [extra for extra in dict.fromkeys(name for row in rows for name in row)
           if extra not in MEASURES and extra not in TAKEN]
    return [name for name in (*MEASURES, *own)
            if any(math.isfinite(number(row.get(name))) for row in rows)]


def verdict(plan: Plan, rows: Sequence[Row]) -> Verdict:
    """Compare every variant with the baseline, and judge the limits."""
    by_variant: dict[str, dict[str, Row]] = {name: {} for name in plan.variants}
    for row in rows:
        by_variant[str(row['variant'])][str(row['pair'])] = row
    base = by_variant[plan.baseline]
    found = []
    for name in plan.variants[1:]:
        other = by_variant[name]
        common = [pair for pair in base if pair in other]
        found.append(_failures(name, [base[p] for p in common], [other[p] for p in common]))
        flown = [pair for pair in common
                 if not base[pair]['failed'] and not other[pair]['failed']]
        found += [_measure(name, measure, [base[p] for p in flown], [other[p] for p in flown])
                  for measure in measures_in(rows)]
    found = [_told(one, corrected) for one, corrected in zip(found, _holm(found), strict=True)]
    limits = tuple(_judge(limit, rows) for limit in plan.limits)
    return Verdict(tuple(found), limits, len(rows), sum(bool(row['failed']) for row in rows),
                   len(plan.entries) - len(rows))


def _measure(variant: str, measure: str, base: Sequence[Row], other: Sequence[Row]) -> Found:
    a = np.array([number(row.get(measure)) for row in base], dtype=float)
    b = np.array([number(row.get(measure)) for row in other], dtype=float)
    have = np.isfinite(a) & np.isfinite(b)
    apart = (b - a)[have]
    # Rounding is no difference
    apart[np.abs(apart) <= 1e-9 * np.maximum(np.abs(a[have]), np.abs(b[have]))] = 0.0
    flown = [row for row, one in zip(base, have, strict=True) if one]
    scatter = _scatter(flown, a[have])
    units = _by_seed(flown, apart)
    low, high = _interval(units)
    p = math.nan
    if np.count_nonzero(units) > 0:
        p = float(stats.wilcoxon(units, zero_method='pratt').pvalue)
    return Found(
        variant, measure, len(apart), len(units),
        float(np.median(a[have])) if len(apart) else math.nan,
        float(np.median(units)) if len(units) else math.nan, low, high,
        int((apart < 0.0).sum()), int((apart > 0.0).sum()), p, scatter)


def _failures(variant: str, base: Sequence[Row], other: Sequence[Row]) -> Found:
    a = np.array([bool(row['failed']) for row in base], dtype=float)
    b = np.array([bool(row['failed']) for row in other], dtype=float)
    apart = b - a
    units = _by_seed(base, apart)
    less, more = int((units < 0.0).sum()), int((units > 0.0).sum())
    p = math.nan
    if less + more:
        p = float(stats.binomtest(more, less + more).pvalue)
    better, worse = int((apart < 0.0).sum()), int((apart > 0.0).sum())
    mean = float(units.mean()) if len(units) else math.nan
    low, high = _interval(units, np.mean)
    return Found(variant, 'failed', len(apart), len(units),
                 float(a.mean()) if len(a) else math.nan, mean, low, high,
                 better, worse, p, math.nan)


def _by_seed(rows: Sequence[Row], apart: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean difference of each seed."""
    groups: dict[Any, list[float]] = {}
    for row, one in zip(rows, apart, strict=True):
        groups.setdefault(row['seed'], []).append(float(one))
    return np.array([sum(group) / len(group) for group in groups.values()])


def _interval(apart: NDArray[np.float64], of: Any = np.median) -> tuple[float, float]:
    if len(apart) < 2:
        return math.nan, math.nan
    if not np.ptp(apart):
        return float(apart[0]), float(apart[0])
    made = stats.bootstrap((apart,), of, n_resamples=RESAMPLES, method='percentile',
                           rng=np.random.default_rng(1)).confidence_interval
    return float(made.low), float(made.high)


def _scatter(rows: Sequence[Row], values: NDArray[np.float64]) -> float:
    """Return the standard deviation over the seeds of the same wind, pooled."""
    groups: dict[str, list[float]] = {}
    for row, value in zip(rows, values, strict=True):
        groups.setdefault(str(row['wind']), []).append(float(value))
    several = [np.asarray(group) for group in groups.values() if len(group) > 1]
    freedom = sum(len(group) - 1 for group in several)
    if not freedom:
        return math.nan
    return math.sqrt(sum(float(((group - group.mean())**2).sum()) for group in several) / freedom)


def _holm(found: Sequence[Found]) -> list[float]:
    """Return the p-values corrected for their number; what could not be asked does not count."""
    asked = sorted((one.p, place) for place, one in enumerate(found) if math.isfinite(one.p))
    corrected = [math.nan] * len(found)
    most = 0.0
    for rank, (p, place) in enumerate(asked):
        most = max(most, min((len(asked) - rank) * p, 1.0))
        corrected[place] = most
    return corrected


def _told(one: Found, p: float) -> Found:
    measure = MEASURES.get(one.measure)
    unit = measure.unit if measure is not None else ''
    one = replace(one, p=p)
    if not one.pairs:
        return replace(one, text='no pair of flights has it')
    if not one.better + one.worse:
        return replace(one, verdict='same', text='the same in every pair')
    claimed = p < LEVEL and (one.low > 0.0 or one.high < 0.0 or one.measure == 'failed')
    size = f'{one.median:+.3g} {unit}'.strip()
    if one.seeds < 2:  # there is no interval
        note = f'{FEWEST} or more are needed'
        return replace(one, more_pairs=FEWEST - 1, note=note,
                       text=f'cannot be told from one seed ({size}); {note}')
    between = f'95 % between {one.low:+.3g} and {one.high:+.3g}'
    if claimed:
        words = ('less', 'more') if measure is not None and measure.better == 'either' else (
            'better', 'worse')
        word = words[one.median > 0.0]
        note = (f'{abs(one.median) / one.scatter:.2g} times the scatter between seeds'
                if math.isfinite(one.scatter) and one.scatter > 0.0 else '')
        return replace(one, verdict=word, note=note, text=f'{word}: {size} ({between})' + (
            f'; that is {note}' if note else ''))
    more = _more_pairs(one)
    then = (f'about {more} more pairs would do' if more else
            f'if there is a difference, it is too small for {MOST_PAIRS} pairs to show')
    return replace(one, more_pairs=more, note=then,
                   text=f'cannot be told yet ({size}, {between}); {then}')


def _more_pairs(one: Found) -> int:
    """Return about how many more pairs a difference of this size needs; 0: too many."""
    error = (one.high - one.low) / (2.0 * 1.96)
    if not math.isfinite(error) or one.median == 0.0:
        return 0
    needed = one.seeds * (_POWER * error / abs(one.median))**2
    needed = max(needed, one.seeds + 1.0, float(FEWEST))
    more = math.ceil((needed - one.seeds) * one.pairs / one.seeds)
    return more if more <= MOST_PAIRS else 0


def _judge(limit: Limit, rows: Sequence[Row]) -> Judged:
    values = [number(row.get(limit.measure)) for row in rows
              if not limit.variants or row['variant'] in limit.variants]
    # A flight that failed, and so has no number, has not passed
    passed = sum(value <= limit.most for value in values)
    return Judged(limit, passed, len(values),
                  bool(values) and passed >= limit.share * len(values) - 1e-9)
