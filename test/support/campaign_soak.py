"""How often a campaign claims what is not so, and finds what is: see --help.

    scripts/campaign_soak.sh --campaigns 20 --pairs 20

Each campaign has seeds of its own, and variants of the embedded copter with drag fusion:

* `same`: the baseline again. Nothing may be claimed.
* `noise`: the baseline with other noise in its sensors. EKF3's wind differs in every pair, by
  chance alone.
* `other air`: the baseline in winds of other seeds, each taken for the pair of another: everything
  differs in every pair, by chance alone.
* `half`: PSC_NE_POS_P, PSC_NE_VEL_P and PSC_NE_VEL_I halved. It has to be found.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from dryden_wind_ros.campaign import plan as plans
from dryden_wind_ros.campaign.compare import verdict
from dryden_wind_ros.campaign.flight import fly

OPEN = ('same', 'open')
ALONE = ('same', 'noise', 'other air')
"""Each is a campaign of two variants of its own: what is claimed is corrected for two."""

PLAN = """
vehicle: {{kind: copter, drag: true, altitude: 3}}
flight: {{settle: 8, seconds: 15}}
variants:
  base: {{baseline: true}}
  {name}: {{seed: {seed}, parameters: {parameters}}}
winds:
  - {{speed: 5, from: 240, seeds: {{first: {first}, count: {count}}}}}
  - {{speed: 10, from: 240, seeds: {{first: {second}, count: {count}}}}}
"""
HALF = '{PSC_NE_POS_P: 0.5, PSC_NE_VEL_P: 1.0, PSC_NE_VEL_I: 0.5}'


def claims(number: int, pairs: int) -> dict[str, list[str]]:
    """Return what a campaign claims, by variant."""
    found = {}
    flown: dict[str, dict[str, object]] = {}
    for name in (*ALONE, 'half'):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / 'plan.yaml'
            path.write_text(PLAN.format(
                name=name.replace(' ', '_'), seed=100_000 if name == 'noise' else 0,
                parameters=HALF if name == 'half' else '{}',
                first=1 + number * 1000, second=201 + number * 1000, count=pairs // 2))
            plan = plans.load(path)
        rows = []
        for entry in plan.entries:
            there = entry
            if name == 'other air' and entry.variant != 'base':
                there = replace(entry, seed=entry.seed + 500)
            if there.key not in flown:
                flown[there.key] = dict(fly(there, 'none').row)
            rows.append({**flown[there.key], 'variant': entry.variant, 'pair': entry.pair})
        found[name] = [f'{one.measure} {one.text}' for one in verdict(plan, rows).found
                       if one.verdict not in OPEN and one.pairs]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n')[0])
    parser.add_argument('--campaigns', type=int, default=20)
    parser.add_argument('--pairs', type=int, default=20)
    parser.add_argument('--jobs', type=int, default=2)
    options = parser.parse_args()
    began, wrong, found = time.monotonic(), Counter[str](), 0
    with ProcessPoolExecutor(options.jobs) as pool:
        for number, made in enumerate(pool.map(
                claims, range(options.campaigns), [options.pairs] * options.campaigns)):
            position = any(text.startswith('position_error_rms worse') for text in made['half'])
            found += position
            wrong.update(name for name in ALONE if made[name])
            told = '; '.join(f'{name}: {text}' for name in ALONE for text in made[name])
            print(f'{number + 1:3d}  half {"found" if position else "NOT FOUND"}  '
                  f'{told or "nothing claimed of the equal ones"}', flush=True)
    count = options.campaigns
    print(f'{count} campaigns of {options.pairs} pairs in {time.monotonic() - began:.0f} s: half '
          f'found in {found}; nothing claimed of ' + ', '.join(
              f'{name} in {count - wrong[name]}' for name in ALONE))
    return 0 if found == count and all(wrong[name] <= count // 10 for name in ALONE) else 1


if __name__ == '__main__':
    sys.exit(main())
