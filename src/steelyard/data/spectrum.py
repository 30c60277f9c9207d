"""Where motion ends and noise begins, from the spectrum of a signal alone.

The power spectrum is that of the second difference (which takes away the trend and what would leak from it), divided
by the difference's gain: P(f) = |F(w Δ²x)|² / (2 − 2 cos 2πf/rate)². A motion's spectrum falls faster than f⁻³
towards high frequencies, because joint accelerations are at worst steps (P ~ f⁻⁶); noise of encoders falls slower:
white noise not at all, jitter of the clock like the velocity it shifts. So f³ P(f) has its minimum where the motion
sinks into the noise.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MIN_ROWS = 32
BANDS_AN_OCTAVE = 6
SLOPE = 3.0
# A position's power up to the motion band, and how far above it a cut-off stays, whatever the noise.
MOTION_POWER = 0.999
CLEARANCE = 4.0
# Only 0.4 % of the power of white noise lies above so many times its median.
FLOOR = 8.0
# Acceleration above the cut-off, relative to that below it, that needs no filter.
NEGLIGIBLE = 1e-3


@dataclass(frozen=True)
class Band:
    """What the spectrum of one signal says; frequencies in Hz."""

    motion_hz: float  # 99.9 % of the signal's power lies below
    cutoff_hz: float  # where the signal sinks into the noise; the Nyquist frequency if it does not
    noise: float  # standard deviation of the noise, in the signal's unit
    needs_filter: bool  # whether differentiating twice would show the noise


def power_spectrum(x: Array, rate_hz: float) -> tuple[Array, Array]:
    """Frequencies (K,) without 0, and power density (K, n) in unit²/Hz."""
    d = np.diff(x, 2, axis=0)
    window = np.hanning(len(d) + 2)[1:-1, None]
    f: Array = np.asarray(np.fft.rfftfreq(len(d), 1.0 / rate_hz)[1:], dtype=np.float64)
    gain = (2.0 - 2.0 * np.cos(2 * np.pi * f / rate_hz)) ** 2
    P = 2.0 / (rate_hz * (window**2).sum()) * np.abs(np.fft.rfft(window * d, axis=0)[1:]) ** 2
    density: Array = P / gain[:, None]
    return f, density


def _octave_bands(f: Array, P: Array) -> tuple[Array, Array]:
    """Means over bands that are equally wide on a logarithmic scale; (bands,) and (bands, n)."""
    number = np.floor(BANDS_AN_OCTAVE * np.log2(f / f[0])).astype(np.int64)
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    count = np.diff(starts, append=len(f))
    return np.add.reduceat(f, starts) / count, np.add.reduceat(P, starts, axis=0) / count[:, None]


def bands(x: Array, rate_hz: float, derivatives: int = 2, motion_hz: Array | None = None) -> list[Band]:
    """The bands of the columns of x (T, n), sampled evenly.

    `derivatives` says how often x is to be differentiated: 2 for positions, 1 for velocities; it sets the slope that
    tells motion from noise, and what noise is worth a filter. `motion_hz` (n,): the motion where it is known better,
    as that of velocities from positions.
    """
    nyquist = 0.5 * rate_hz
    if len(x) < MIN_ROWS:
        return [Band(nyquist, nyquist, 0.0, False)] * x.shape[1]
    f, P = power_spectrum(x, rate_hz)
    fb, Pb = _octave_bands(f, P)
    # A dip between two harmonics is not the end of the motion: what comes after counts for all before.
    envelope = np.maximum.accumulate(Pb[::-1], axis=0)[::-1]
    slope = fb ** (SLOPE - 2 + derivatives)
    found = []
    for j in range(x.shape[1]):
        if not P[:, j].sum() > 0:
            found.append(Band(0.0, nyquist, 0.0, False))
            continue
        # What is not above the floor of the upper half is noise, of which there is much where frequencies are many.
        above_floor = np.maximum(P[:, j] - FLOOR * np.median(P[len(P) // 2 :, j]), 0.0)
        power = np.cumsum(above_floor if above_floor.any() else P[:, j])
        motion = float(f[np.searchsorted(power, MOTION_POWER * power[-1])] if motion_hz is None else motion_hz[j])
        allowed = fb >= min(CLEARANCE * motion, 0.8 * fb[-1])
        k = int(np.argmin(np.where(allowed, slope * envelope[:, j], np.inf)))
        cutoff = float(nyquist) if k >= len(fb) - 2 else float(fb[k])
        above = f > cutoff
        weight = f ** (2 * derivatives)
        acceleration_above = float((weight * P[:, j])[above].sum())
        acceleration_below = float((weight * P[:, j])[~above].sum())
        share = float(above.mean())
        noise = float(np.sqrt(P[above, j].sum() * (f[1] - f[0]) / share)) if share > 0 else 0.0
        needed = bool(acceleration_above > NEGLIGIBLE**2 * acceleration_below)
        found.append(Band(motion, cutoff, noise, needed))
    return found
