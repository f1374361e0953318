"""Pictures of the air without ROS: ``python -m dryden_wind_ros.tools.air --seed 7 -o air.png``.

Draws a slice of the field, its spectra and its correlations against theory; with ``--animate``, the
slice as it drifts and changes (GIF, or MP4 where ffmpeg is installed); with ``--models``, the three
kinds of turbulence side by side.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import track

from dryden_wind_ros.gusts.dryden import DrydenGustFleet
from dryden_wind_ros.gusts.field import TurbulenceField, structure
from dryden_wind_ros.gusts.frames import mean_wind_enu
from dryden_wind_ros.gusts.scales import exceedance, turbulence_scales
from dryden_wind_ros.gusts.standard import StandardGustFleet
from dryden_wind_ros.gusts.theory import SPECTRA, correlations, line_spectrum
from dryden_wind_ros.pipes import pipe_safe

COLORS = ('#2f6fb0', '#d1742a', '#4b9b5f')
NAMES = ('u', 'v', 'w')
_ARROWS = 26

FloatArray = npt.NDArray[np.float64]


class Air:
    """A field with what it is looked at with: mean wind, height, size of the slice."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.field = TurbulenceField(options.seed, spectrum=options.spectrum, modes=options.modes,
                                     life=options.life, severity=options.severity)
        self.mean = mean_wind_enu(options.wind, options.wind_from)
        self.speed, self.height, self.size = options.wind, options.height, options.size
        self.vertical: bool = options.plane == 'vertical'

    def slice(self, time: float, cells: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return both coordinates of a slice, m, and the gusts there, (cells, cells, 3)."""
        across = (np.arange(cells) + 0.5) * self.size / cells - 0.5 * self.size
        up = across + max(self.height, 0.5 * self.size + 1.0) if self.vertical else across
        x, y = np.meshgrid(across, up)
        places = np.zeros((cells * cells, 3))
        places[:, 0] = x.ravel()
        places[:, 2 if self.vertical else 1] = y.ravel()
        if not self.vertical:
            places[:, 2] = self.height
        gusts = self.field.gust(places, time, self.mean)
        return across, up, gusts.reshape(cells, cells, 3)


def draw_slice(axes: Any, air: Air, time: float, cells: int = 90) -> list[Any]:
    """Draw a slice: colour is the strength of the gust, arrows its part in the plane."""
    across, up, gusts = air.slice(time, cells)
    second = 2 if air.vertical else 1
    image = axes.pcolormesh(across, up, np.linalg.norm(gusts, axis=2), cmap='viridis', vmin=0.0,
                            vmax=3.5 * _sigma(air), shading='nearest')
    step = max(1, cells // _ARROWS)
    part = slice(step // 2, None, step)
    arrows = axes.quiver(
        across[part], up[part], gusts[part, part, 0], gusts[part, part, second], color='white',
        scale=60.0 * _sigma(air), width=0.002)
    axes.set_aspect('equal')
    axes.set_xlabel('east, m')
    axes.set_ylabel('height, m' if air.vertical else 'north, m')
    return [image, arrows]


def _sigma(air: Air) -> float:
    return turbulence_scales(air.height, air.speed).sigma_u or 1.0


def draw_spectra(axes: Any, air: Air) -> None:
    """Draw the spectra of this very field along the east axis, by third octaves, and theory's."""
    cosine, sine = air.field.amplitudes(air.height, air.speed)
    power = 0.5 * (cosine**2 + sine**2)
    along = abs(air.field.wave_vectors[:, 0])
    edges = 0.005 * 2.0 ** (np.arange(32) / 3.0)
    middles = np.sqrt(edges[1:] * edges[:-1])
    scales = turbulence_scales(air.height, air.speed)
    for i, (sigma, length) in enumerate(_sigmas_and_lengths(scales)):
        density = np.histogram(along, edges, weights=power[:, i])[0] / np.diff(edges)
        axes.loglog(middles, density, '.', color=COLORS[i], markersize=4)
        axes.loglog(middles, line_spectrum('along' if i == 0 else 'across', middles, sigma, length,
                                           air.field.spectrum), color=COLORS[i], label=NAMES[i])
    axes.set_xlabel('wavenumber along east, rad/m')
    axes.set_ylabel('m²/s² per rad/m')
    axes.set_title('spectra: this field (dots), theory', loc='left')
    axes.legend(loc='lower left')


def draw_correlations(axes: Any, air: Air) -> None:
    """Draw the correlations of this very field across the east axis, and theory's."""
    distances = np.linspace(0.0, 80.0, 81)
    cosine, sine = air.field.amplitudes(air.height, air.speed)
    power = cosine**2 + sine**2
    found = np.cos(np.outer(distances, air.field.wave_vectors[:, 1])) @ power / power.sum(axis=0)
    theory = structure(distances, air.height, air.speed, 'across', spectrum=air.field.spectrum)
    for i, name in enumerate(NAMES):
        axes.plot(distances[::4], found[::4, i], '.', color=COLORS[i], markersize=4)
        axes.plot(distances, theory.correlation[:, i], color=COLORS[i], label=name)
    axes.axhline(0.0, color='0.7', linewidth=0.8)
    axes.set_xlabel('distance across, m')
    axes.set_title('correlation of two places: this field (dots), theory', loc='left')


def _sigmas_and_lengths(scales: Any) -> list[tuple[float, float]]:
    return [(scales.sigma_u, scales.length_u), (scales.sigma_v, scales.length_v),
            (scales.sigma_w, scales.length_w)]


def draw_air(path: Path, air: Air, seed: int) -> None:
    """Draw slice, spectra and correlations into a PNG (or whatever the suffix says)."""
    from matplotlib.figure import Figure
    figure = Figure(figsize=(13.0, 6.4), layout='constrained')
    parts: Any = figure.subfigures(1, 2, width_ratios=(1.05, 1.0))
    left, right = parts
    axes = left.subplots()
    image, _ = draw_slice(axes, air, 60.0)
    left.colorbar(image, ax=axes, label='gust, m/s', shrink=0.8)
    axes.set_title(f'field of seed {seed}, {air.speed:g} m/s'
                   + ('' if air.vertical else f', {air.height:g} m above the ground'), loc='left')
    top, bottom = right.subplots(2, 1)
    draw_spectra(top, air)
    draw_correlations(bottom, air)
    figure.savefig(path, dpi=110)


def animate(path: Path, air: Air, seconds: float, console: Console) -> None:
    """Write an animation of the slice: GIF, or MP4 where ffmpeg is installed.

    Raises
    ------
    ValueError
        If the suffix is neither, or ffmpeg is missing.
    """
    from matplotlib.animation import FFMpegWriter, PillowWriter
    from matplotlib.figure import Figure
    if path.suffix == '.gif':
        writer: Any = PillowWriter(fps=10)
    elif path.suffix == '.mp4':
        if not FFMpegWriter.isAvailable():
            raise ValueError(f'{path} needs ffmpeg, which was not found; a .gif does not')
        writer = FFMpegWriter(fps=10)
    else:
        raise ValueError(f'{path} has the suffix {path.suffix!r}; it must be .gif or .mp4')
    figure = Figure(figsize=(5.6, 5.2), layout='constrained')
    axes = figure.subplots()
    with writer.saving(figure, str(path), 80):
        for k in track(range(round(10 * seconds)), 'drawing the animation', console=console,
                       transient=True):
            axes.clear()
            draw_slice(axes, air, 60.0 + 0.1 * k, cells=64)
            axes.set_title(f'{0.1 * k:4.1f} s', loc='left')
            writer.grab_frame()


def draw_models(path: Path, seed: int, wind: float, height: float) -> None:
    """Draw first order, the standards and the field side by side: w at a place, and statistics."""
    from matplotlib.figure import Figure
    vehicles, steps, dt = 60, 4096, 0.05
    scales = turbulence_scales(height, wind)
    time = np.arange(steps) * dt
    records: dict[str, FloatArray] = {}
    for name, fleet in (('first_order', DrydenGustFleet(range(seed, seed + vehicles))),
                        ('mil_f_8785c', StandardGustFleet(range(seed, seed + vehicles)))):
        warm = 600
        w = np.array([fleet.step(k * dt, wind, height, 0.0)[:, 2] for k in range(steps + warm)])
        records[name] = w[warm:]
    field = TurbulenceField(seed, life=0.5)
    # One air at many places, far apart from each other.
    places = np.random.default_rng(seed).uniform(-1e5, 1e5, (vehicles, 3))
    places[:, 2] = height
    records['field'] = np.array([field.gust(places, t, (wind, 0.0, 0.0))[:, 2] for t in time])

    figure = Figure(figsize=(13.0, 6.4), layout='constrained')
    parts: Any = figure.subfigures(1, 2, width_ratios=(1.1, 1.0))
    left, right = parts
    rows = left.subplots(3, 1, sharex=True, sharey=True)
    for axes, (name, w), color in zip(rows, records.items(), COLORS, strict=True):
        axes.plot(time[:1200], w[:1200, 0], color=color, linewidth=0.9)
        axes.set_title(name, loc='left')
        axes.set_ylabel('w, m/s')
    rows[-1].set_xlabel(f'time, s (hover at {height:g} m in {wind:g} m/s)')
    top, bottom = right.subplots(2, 1)
    tau = scales.length_w / wind
    window = np.sqrt(8.0 / 3.0) * np.hanning(steps)[:, None]
    f = np.fft.rfftfreq(steps, dt)
    edges = 0.01 * 2.0 ** (np.arange(24) / 3.0)
    for (name, w), color in zip(records.items(), COLORS, strict=True):
        power = (2.0 * dt / steps * abs(np.fft.rfft(w * window, axis=0)) ** 2).mean(axis=1)
        counts = np.histogram(f, edges)[0]
        level = np.histogram(f, edges, weights=power)[0] / np.maximum(counts, 1)
        middles = np.sqrt(edges[1:] * edges[:-1])
        top.loglog(middles[counts > 0], level[counts > 0], '.-', color=color, label=name,
                   linewidth=0.8, markersize=4)
        lags = np.arange(0, round(6.0 * tau / dt))
        variance = (w * w).mean()
        bottom.plot(lags * dt, [(w[lag:] * w[:steps - lag]).mean() / variance for lag in lags],
                    color=color, label=name)
    frequencies = np.geomspace(0.01, 3.0, 200)
    wavenumbers = 2.0 * np.pi * frequencies / wind
    top.loglog(frequencies, line_spectrum('across', wavenumbers, scales.sigma_w, scales.length_w)
               * 2.0 * np.pi / wind, 'k--', linewidth=0.9, label="MIL-F-8785C's formula")
    top.set_xlabel('frequency, Hz')
    top.set_ylabel('m²/s² per Hz')
    top.set_title(f'spectrum of w, {vehicles} vehicles', loc='left')
    top.legend(loc='lower left')
    lags_s = np.linspace(0.0, 6.0 * tau, 200)
    bottom.plot(lags_s, correlations(lags_s * wind, scales.length_w)[1], 'k--', linewidth=0.9)
    bottom.axhline(0.0, color='0.7', linewidth=0.8)
    bottom.set_xlabel('lag, s')
    bottom.set_title('autocorrelation of w', loc='left')
    figure.savefig(path, dpi=110)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='python -m dryden_wind_ros.tools.air', description=__doc__.split('\n')[0])
    parser.add_argument('-o', '--output', type=Path, default=Path('air.png'), metavar='FILE',
                        help='picture of slice, spectra and correlations (default: air.png)')
    parser.add_argument('--animate', type=Path, metavar='FILE', help='also a .gif or .mp4')
    parser.add_argument('--seconds', type=float, default=6.0, help='of the animation (default: 6)')
    parser.add_argument('--models', type=Path, metavar='FILE',
                        help='instead: the three kinds of turbulence side by side')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--spectrum', choices=SPECTRA, default='dryden')
    parser.add_argument('--modes', type=int, default=4096)
    parser.add_argument('--life', type=float, default=0.5)
    parser.add_argument('--severity', default='light', help='above 1000 ft')
    parser.add_argument('--wind', type=float, default=8.0, help='mean wind, m/s (default: 8)')
    parser.add_argument('--wind-from', type=float, default=270.0, help='degrees (default: 270)')
    parser.add_argument('--height', type=float, default=30.0, help='m (default: 30)')
    parser.add_argument('--size', type=float, default=300.0, help='of the slice, m (default: 300)')
    parser.add_argument('--plane', choices=('horizontal', 'vertical'), default='horizontal')
    return parser


@pipe_safe
def main(args: list[str] | None = None) -> int:
    """Draw the air.

    Parameters
    ----------
    args : list of str, optional
        Command line, without the program's name.

    Returns
    -------
    int
        0, or 2 if something asked for is not possible.
    """
    parser = _parser()
    options = parser.parse_args(args)
    console = Console()
    for name, low, high in (('wind', 0.0, 60.0), ('height', -1e3, 1e5), ('size', 1.0, 1e5),
                            ('seconds', 0.1, 120.0), ('wind_from', -360.0, 360.0)):
        value = getattr(options, name)
        if not (math.isfinite(value) and low <= value <= high):
            parser.error(f'--{name.replace("_", "-")} is {value:g}; it must be from {low:g} to '
                         f'{high:g}')
    try:
        exceedance(options.severity)
        if options.models is not None:
            console.print('flying sixty vehicles through each kind of turbulence ...')
            draw_models(options.models, options.seed, options.wind or 8.0, options.height)
            console.print(f'{options.models} written')
            return 0
        air = Air(options)
        draw_air(options.output, air, options.seed)
        console.print(f'{options.output} written')
        if options.animate is not None:
            animate(options.animate, air, options.seconds, console)
            console.print(f'{options.animate} written')
    except (ValueError, TypeError) as error:
        parser.error(str(error))
    except OSError as error:
        parser.error(f'{error.filename} cannot be written: {error.strerror}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
