"""Parts `model`, `standard` and `fleet`: the gust model alone, without ROS."""

from __future__ import annotations

import math
import random
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from dryden_wind_ros.gusts.dryden import METHODS, DrydenGust, DrydenGustFleet
from dryden_wind_ros.gusts.standard import StandardGust, StandardGustFleet
from dryden_wind_ros.tools.bench_parts.stage import Bench
from dryden_wind_ros.tools.bench_parts.table import Row, compare

# ---- model: what the class costs over its arithmetic


def _bare_exact(u: float, v: float, w: float, last: float, t: float, mean_wind: float,
                height: float, airspeed: float, gauss: Callable[[float, float], float],
                ) -> tuple[float, float, float]:
    if t <= last or mean_wind == 0.0:
        return u, v, w
    dt = t - last
    if dt > 0.5:
        dt = 0.5
    speed = airspeed if airspeed > mean_wind else mean_wind
    if speed < 1.0:
        speed = 1.0
    if height < 3.0:
        height = 3.0
    if height > 304.8:
        height = 304.8
    power = (0.177 + 0.000823 / 0.3048 * height) ** 0.4
    sigma_w = 0.1 * mean_wind
    sigma_u = sigma_w / power
    a_w = dt * speed / height
    phi_u = math.exp(-a_w * power * power * power)
    phi_v = phi_u * phi_u
    phi_w = math.exp(-a_w)
    return (phi_u * u + sigma_u * math.sqrt(1.0 - phi_v) * gauss(0.0, 1.0),
            phi_v * v + sigma_u * math.sqrt(1.0 - phi_v * phi_v) * gauss(0.0, 1.0),
            phi_w * w + sigma_w * math.sqrt(1.0 - phi_w * phi_w) * gauss(0.0, 1.0))


def _bare_euler(u: float, v: float, w: float, last: float, t: float, mean_wind: float,
                height: float, airspeed: float, gauss: Callable[[float, float], float],
                ) -> tuple[float, float, float]:
    if t <= last or mean_wind == 0.0:
        return u, v, w
    dt = t - last
    if dt > 0.5:
        dt = 0.5
    speed = airspeed if airspeed > mean_wind else mean_wind
    if speed < 1.0:
        speed = 1.0
    if height < 3.0:
        height = 3.0
    height_ft = height * 3.281
    if height_ft > 1000.0:
        height_ft = 1000.0
    base = 0.177 + 0.000823 * height_ft
    sigma_w = 0.1 * mean_wind
    sigma_u = sigma_w / base**0.4
    a_u = dt * speed / (height_ft / base**1.2 * 0.3048)
    a_v = 2.0 * a_u
    a_w = dt * speed / (height_ft * 0.3048)
    return ((1.0 - a_u) * u + sigma_u * math.sqrt(2.0 * a_u) * gauss(0.0, 1.0),
            (1.0 - a_v) * v + sigma_u * math.sqrt(2.0 * a_v) * gauss(0.0, 1.0),
            (1.0 - a_w) * w + sigma_w * math.sqrt(2.0 * a_w) * gauss(0.0, 1.0))


def run_model(bench: Bench) -> list[Row]:
    """Compare `DrydenGust.step` with its arithmetic written as one function."""
    steps = 100  # short turns: a busy machine then disturbs few of them
    rows = []
    for method, bare in zip(METHODS, (_bare_exact, _bare_euler), strict=True):
        gust = DrydenGust(7, method)
        gauss = random.Random(7).gauss
        clock = 0.0

        def ours(gust: DrydenGust = gust) -> float:
            nonlocal clock
            t = clock
            step = gust.step
            start = time.perf_counter()
            for _ in range(steps):
                t += 0.05
                step(t, 8.0, 20.0, 12.0)
            clock = t
            return (time.perf_counter() - start) / steps

        def floor(bare: Callable[..., tuple[float, float, float]] = bare,
                  gauss: Callable[[float, float], float] = gauss) -> float:
            u = v = w = t = 0.0
            start = time.perf_counter()
            for _ in range(steps):
                last = t
                t += 0.05
                u, v, w = bare(u, v, w, last, t, 8.0, 20.0, 12.0, gauss)
            return (time.perf_counter() - start) / steps

        rows.append(compare('model', f'DrydenGust.step, {method}', ours,
                            'the same arithmetic as one bare function', floor, bench.repeats(1000),
                            limit=1.15))
    return rows


# ---- standard: what second order costs over first


def run_standard(bench: Bench) -> list[Row]:
    """Compare the standards' models with the first-order ones, and their memory."""
    repeats = bench.repeats(600)
    first = 'DrydenGust.step, exact'
    rows = [
        _compare_steps('StandardGust.step', StandardGust(7), first, DrydenGust(7), repeats, 2.5),
        _compare_steps('StandardGust.step with a span', StandardGust(7, span=1.5), first,
                       DrydenGust(7), repeats, None),
        _compare_steps('StandardGustFleet.step, 1000 vehicles', StandardGustFleet(range(1000)),
                       'DrydenGustFleet.step', DrydenGustFleet(range(1000)), bench.repeats(20),
                       None)]
    sizes = [_memory(StandardGust), _memory(DrydenGust)]
    ratio = sizes[0] / sizes[1]
    return [*rows, Row('standard', 'StandardGust, memory', 'DrydenGust', ratio, ratio, ratio,
                       limit=2.5, note=f'{sizes[0]:.0f} B against {sizes[1]:.0f} B',
                       unit='the memory')]


def _compare_steps(name: str, ours_gust: Any, floor_name: str, floor_gust: Any, repeats: int,
                   limit: float | None) -> Row:
    def timer(gust: Any) -> Callable[[], float]:
        steps, clock = 100, 0.0

        def run() -> float:
            nonlocal clock
            t, step = clock, gust.step
            start = time.perf_counter()
            for _ in range(steps):
                t += 0.05
                step(t, 8.0, 20.0, 12.0)
            clock = t
            return (time.perf_counter() - start) / steps
        return run

    return compare('standard', name, timer(ours_gust), floor_name, timer(floor_gust), repeats,
                   limit=limit)


def _memory(kind: Callable[[int], Any]) -> float:
    """Return what one of many takes, B, after a step."""
    tracemalloc.start()
    try:
        gusts = [kind(seed) for seed in range(50)]
        for gust in gusts:
            gust.step(0.0, 8.0, 20.0, 12.0)
            gust.step(0.05, 8.0, 20.0, 12.0)
        return tracemalloc.get_traced_memory()[0] / len(gusts)
    finally:
        tracemalloc.stop()


# ---- fleet: what stepping together saves


def run_fleet(bench: Bench) -> list[Row]:
    """Compare `DrydenGustFleet.step` with a loop over as many `DrydenGust`."""
    n = 1000
    return [
        _compare_fleet(n, 'the same inputs for all', bench.repeats(30), changing=False, limit=50.0),
        _compare_fleet(n, 'an array for each input, new at every step', bench.repeats(30),
                       changing=True, limit=None),
    ]


def _compare_fleet(n: int, inputs: str, repeats: int, *, changing: bool,
                   limit: float | None) -> Row:
    fleet_steps, loop_steps = 512, 10  # a whole block of draws for the fleet
    fleet = DrydenGustFleet(range(n))
    gusts = [DrydenGust(seed) for seed in range(n)]
    height, wind, airspeed = (np.linspace(a, b, n) for a, b in ((3, 100), (4, 9), (0, 20)))
    fleet_clock = loop_clock = 0.0

    def ours() -> float:
        nonlocal fleet_clock, height, wind, airspeed
        start = time.perf_counter()
        for _ in range(fleet_steps):
            fleet_clock += 0.05
            if changing:
                height += 0.001
                wind += 1e-5
                airspeed += 1e-4
                fleet.step(fleet_clock, wind, height, airspeed)
            else:
                fleet.step(fleet_clock, 8.0, 20.0, 12.0)
        return (time.perf_counter() - start) / (fleet_steps * n)

    def floor() -> float:
        nonlocal loop_clock
        winds, heights, airspeeds = wind.tolist(), height.tolist(), airspeed.tolist()
        start = time.perf_counter()
        for _ in range(loop_steps):
            loop_clock += 0.05
            if changing:
                for gust, a, b, c in zip(gusts, winds, heights, airspeeds, strict=True):
                    gust.step(loop_clock, a, b, c)
            else:
                for gust in gusts:
                    gust.step(loop_clock, 8.0, 20.0, 12.0)
        return (time.perf_counter() - start) / (loop_steps * n)

    return compare('fleet', f'DrydenGustFleet.step, {n} vehicles, {inputs}', ours,
                   f'a loop over {n} DrydenGust', floor, repeats, faster=True, limit=limit)
