"""Parallel filtering: one zero-phase low-pass on regressor and torque alike, then every k-th row.

    y_k = Σ_j h_j x[c_k + j],    c_k = half + k·factor,    |j| <= half

A linear filter on both sides of Y theta = tau leaves theta as it is and takes away the torque noise above the motion;
every k-th row then has residuals that are about independent. The taps h are a sinc in a Kaiser window: symmetric, so
that nothing is shifted in time. Rows nearer to an end than `half` have no answer and are dropped.
Gautier, Janot and Vandanjon, DIDIM, 2008; Kaiser, Nonrecursive digital filter design, 1974.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import DataError, OptionError

Array = NDArray[np.float64]

# Outputs that one matrix product makes: more waste products with zeros, fewer leave the machine idle (measured).
GROUP = 16
# An output counts as usable when at most this share of its weights stands on rows that are not to be used.
SPOILT = 0.05


@lru_cache(maxsize=32)
def _taps(relative_cutoff: float, attenuation_db: float) -> Array:
    """A low-pass of unit gain at 0; the transition is as wide as the cut-off is high and centred on it."""
    width = 2 * np.pi * relative_cutoff
    half = int(np.ceil((attenuation_db - 7.95) / (2.285 * width) / 2))
    beta = 0.1102 * (attenuation_db - 8.7) if attenuation_db > 50 else 5.653  # that of 50 dB, below which none is asked
    j = np.arange(-half, half + 1)
    h = np.sinc(2 * relative_cutoff * j) * np.kaiser(2 * half + 1, beta)
    h /= h.sum()
    h.setflags(write=False)
    return h


@dataclass(frozen=True)
class Decimation:
    """A zero-phase low-pass (gain one half at `cutoff_hz`), and the step from one kept row to the next."""

    cutoff_hz: float
    factor: int = 1
    attenuation_db: float = 60.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.cutoff_hz) and self.cutoff_hz > 0):
            raise OptionError(f"the cut-off of the decimation is {self.cutoff_hz} Hz; give one above 0")
        if int(self.factor) != self.factor or self.factor < 1:
            raise OptionError(f"the factor of the decimation is {self.factor}; give a whole number, 1 or more")
        if not 50 <= self.attenuation_db <= 150:
            raise OptionError(f"the attenuation is {self.attenuation_db} dB; give 50 to 150")

    def taps(self, rate_hz: float) -> Array:
        """The symmetric filter h at a sampling rate, (2 half + 1,)."""
        if not (np.isfinite(rate_hz) and rate_hz > 0):
            raise OptionError(f"the sampling rate is {rate_hz} Hz; give one above 0")
        if self.cutoff_hz * self.factor > 0.5 * rate_hz * (1 + 1e-9):
            most = max(1, int(0.5 * rate_hz / self.cutoff_hz))
            raise OptionError(
                f"every {self.factor}th row of {rate_hz:g} Hz cannot carry {self.cutoff_hz:g} Hz; "
                f"take a factor of at most {most}, or a cut-off of at most {0.5 * rate_hz / self.factor:g} Hz"
            )
        return _taps(self.cutoff_hz / rate_hz, self.attenuation_db)

    def half(self, rate_hz: float) -> int:
        """Rows lost at either end; the first output belongs to this input row."""
        return len(self.taps(rate_hz)) // 2

    def rows(self, count: int, rate_hz: float) -> NDArray[np.int64]:
        """The input rows, of `count`, that outputs belong to: half, half + factor, …"""
        half = self.half(rate_hz)
        return np.arange(half, max(half, count - half), self.factor, dtype=np.int64)

    def stream(self, rate_hz: float, columns: int) -> "DecimationStream":
        """Filter rows as they come, in memory that does not grow."""
        return DecimationStream(self.taps(rate_hz), int(self.factor), columns)

    def apply(self, x: ArrayLike, rate_hz: float) -> Array:
        """All outputs of (rows, …) at once; row k belongs to the input row `rows(len(x), rate_hz)[k]`."""
        x = np.asarray(x, dtype=np.float64)
        if len(x) < len(self.taps(rate_hz)):
            raise DataError(
                f"the low-pass at {self.cutoff_hz:g} Hz spans {len(self.taps(rate_hz))} rows of {rate_hz:g} Hz and "
                f"there are {len(x)}; raise its cut-off or record for longer"
            )
        stream = self.stream(rate_hz, int(np.prod(x.shape[1:])))
        y = np.concatenate([stream.push(x.reshape(len(x), -1)), stream.finish()])
        return y.reshape(len(y), *x.shape[1:])

    def usable(self, use: ArrayLike, rate_hz: float) -> NDArray[np.bool_]:
        """Which outputs, (K, n), stand on rows that are to be used, from a mark (T, n) of 0 or 1 a row."""
        unused = 1.0 - (np.asarray(use, dtype=np.float64) != 0)
        weights = np.abs(self.taps(rate_hz))
        stream = DecimationStream(weights / weights.sum(), int(self.factor), unused.shape[1])
        return np.concatenate([stream.push(unused), stream.finish()]) <= SPOILT


class DecimationStream:
    """A filter with a memory of one window: `push` rows, take what is ready, `finish`.

    Outputs are made in groups of `GROUP` at fixed places, each a product of one banded matrix of taps with the rows
    below it; so they do not depend, to the last bit, on how the rows were cut into blocks.
    """

    def __init__(self, taps: Array, factor: int, columns: int) -> None:
        if columns < 1:
            raise OptionError(f"{columns} columns; there must be at least 1")
        self.factor = factor
        self.columns = columns
        self.taps = taps
        self.offset = len(taps) // 2  # input row of output row 0
        self._window = (GROUP - 1) * factor + len(taps)
        self._advance = GROUP * factor
        self._band = np.zeros((GROUP, self._window))
        for k in range(GROUP):
            self._band[k, k * factor : k * factor + len(taps)] = taps
        self._kept = np.empty((0, columns))
        self._done = False

    def push(self, block: ArrayLike) -> Array:
        """The outputs that these further rows make ready, (k, columns); k may be 0."""
        rows = np.ascontiguousarray(block, dtype=np.float64)
        if self._done:
            raise OptionError("the decimation is finished; start another stream for further rows")
        if rows.ndim != 2 or rows.shape[1] != self.columns:
            raise DataError(f"a block has shape {rows.shape}; (rows, {self.columns}) is needed")
        kept, count = len(self._kept), len(self._kept) + len(rows)
        groups = (count - self._window) // self._advance + 1 if count >= self._window else 0
        out = np.empty((groups * GROUP, self.columns))
        # Groups that begin in what was kept need both; only they are worth a copy.
        both = min(groups, -(-kept // self._advance))
        seam = (both - 1) * self._advance + self._window - kept if both else 0
        joined = np.concatenate([self._kept, rows[:seam]]) if both else self._kept
        for g in range(groups):
            first = g * self._advance
            source = joined[first : first + self._window] if g < both else rows[first - kept :][: self._window]
            np.matmul(self._band, source, out=out[g * GROUP : (g + 1) * GROUP])
        used = groups * self._advance
        if used >= kept:
            self._kept = rows[used - kept :].copy()
        else:
            self._kept = np.concatenate([self._kept[used:], rows])
        return out

    def finish(self) -> Array:
        """The last outputs, fewer than a group."""
        self._done = True
        left = len(self._kept) - len(self.taps)
        count = left // self.factor + 1 if left >= 0 else 0
        width = (count - 1) * self.factor + len(self.taps)
        return self._band[:count, :width] @ self._kept[:width] if count else np.empty((0, self.columns))
