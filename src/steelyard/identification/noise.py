"""What residuals tell of the noise: its level and its colour, a model a joint.

    e_t + a_1 e_{t−1} + … + a_p e_{t−p} = w_t,    w white

The order is chosen by BIC. Filtering, decimation and forces that the model lacks all leave residuals that remember;
taking them for independent makes intervals too short. Stoica and Moses, Spectral Analysis of Signals, 2005.

Below a thirtieth of the rate the longest autoregression is blind, and there a robot moves. What a controller makes of
the noise of its encoders has been differentiated: over slow motion it all but cancels, and intervals would be ten times
too long. Where the slow part of the residuals says otherwise than the autoregression does, it is taken as it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.fft
import scipy.optimize
import scipy.signal
from numpy.typing import NDArray

from .factors import absorb

Array = NDArray[np.float64]
_MOST_LAGS = 30
# Poles nearer to the unit circle than this are drawn in: a residual that never forgets would have no variance.
_NEAREST_POLE = 0.9995
_LONGEST = 20_000  # rows after which the answer to a single shock has died away, at that pole
# Cycles a row below which the longest autoregression is blind, and how many ordinates of a periodogram make a mean.
_LOW, _ORDINATES = 1.0 / _MOST_LAGS, 16


@dataclass(frozen=True, eq=False)
class Noise:
    """An autoregressive process: innovations of standard deviation `innovation` through 1/A(z)."""

    innovation: float
    a: Array  # (p + 1,), a[0] = 1
    deviation: float  # of the residuals themselves
    autocorrelation: float  # from one row to the next
    low: tuple[Array, Array] | None = None  # cycles a row, and the power there, where no autoregression tells it

    @property
    def order(self) -> int:
        return len(self.a) - 1

    @property
    def is_white(self) -> bool:
        return self.order == 0 and self.low is None

    @property
    def memory(self) -> float:
        """How many rows count as one: the spectrum at zero over the variance."""
        return float(self.power(np.zeros(1))[0]) / self.deviation**2 if self.deviation > 0 else 1.0

    def power(self, f: Array) -> Array:
        """The spectrum at frequencies in cycles a row; its mean is the variance."""
        shape = np.abs(np.polyval(self.a[::-1], np.exp(-2j * np.pi * f))) ** 2
        found = self.innovation**2 / np.maximum(shape, 1e-12)
        return found if self.low is None else np.where(f < _LOW, np.interp(f, *self.low), found)

    def coloured(self, W: Array) -> Array:
        """Rows H with HᵀH = WᵀΣW, Σ the covariance of the noise over consecutive rows."""
        if self.is_white:
            return self.innovation * W
        if self.low is None:
            return self.innovation * np.asarray(scipy.signal.lfilter([1.0], self.a, W[::-1], axis=0))[::-1]
        size = scipy.fft.next_fast_len(2 * len(W), real=True)
        Z = scipy.fft.rfft(W, size, axis=0)
        weights = self.power(np.arange(len(Z)) / size) * (2.0 / size)
        weights[0] *= 0.5
        H = np.sqrt(weights)[:, None] * Z
        return np.concatenate([H.real, H.imag])

    def whitened(self, W: Array) -> Array:
        """L⁻¹ W: rows whose noise is white and of unit variance; the first `order` rows have no whole past."""
        if self.order == 0:
            return W / self.innovation
        return np.asarray(scipy.signal.lfilter(self.a, [1.0], W, axis=0))[self.order :] / self.innovation


def _lagged(e: Array, use: NDArray[np.bool_], lags: int) -> Array:
    """Rows (e_{t−1}, …, e_{t−p}, e_t) of which every element counts."""
    if len(e) <= lags:
        return np.zeros((0, lags + 1))
    windows = np.lib.stride_tricks.sliding_window_view(e, lags + 1)
    if not use.all():
        windows = windows[np.lib.stride_tricks.sliding_window_view(use, lags + 1).all(axis=1)]
    return np.concatenate([windows[:, -2::-1], windows[:, -1:]], axis=1)


def _low_end(noise: Noise, e: Array, mask: NDArray[np.bool_]) -> tuple[Array, Array] | None:
    """Frequencies and power of the slow part of residuals, as means over some ordinates; None where `noise` has it."""
    f, density = scipy.signal.periodogram(np.where(mask, e, 0.0), window="hann", detrend=False)
    count = int((f[1:] < 2.0 * _LOW).sum()) // _ORDINATES
    if count < 2:
        return None
    taken = slice(1, 1 + count * _ORDINATES)
    # A frequency has half of what a periodogram says of both its signs, and rows that do not count have nothing.
    means = density[taken].reshape(count, -1).mean(axis=1) / (2.0 * mask.mean())
    ratio = means / noise.power(f[taken]).reshape(count, -1).mean(axis=1)
    # Whittle's likelihood, twice what it gains, against what BIC asks for so many more numbers.
    gain = 2.0 * _ORDINATES * float(np.sum(ratio - 1.0 - np.log(np.maximum(ratio, 1e-300))))
    if gain < count * np.log(len(e)):
        return None
    return f[taken].reshape(count, -1).mean(axis=1), means


def fit_noise(
    residuals: Sequence[Array], use: Sequence[NDArray[np.bool_]], dof: float = 0.0, low: bool = True
) -> Noise:
    """The noise model of one joint from blocks of consecutive residuals; `dof` parameters were fitted to them.

    `low` lets the slow part of a single block speak for itself.
    """
    count = int(sum(int(mask.sum()) for mask in use))
    squares = float(sum(float(e[mask] @ e[mask]) for e, mask in zip(residuals, use, strict=True)))
    white = Noise(np.sqrt(squares / max(1.0, count - dof)), np.ones(1), np.sqrt(squares / max(1.0, count - dof)), 0.0)
    lags = min(_MOST_LAGS, count // 20)
    if lags < 1 or squares <= 0:
        return white
    R = np.zeros((0, lags + 1))
    rows = 0
    for e, mask in zip(residuals, use, strict=True):
        lagged = _lagged(e, mask, lags)
        rows += len(lagged)
        R = absorb(R, lagged)
    if rows < 4 * lags or len(R) < lags + 1:
        return white
    # The remainder of the order p stands below row p of the last column.
    left = np.cumsum(R[::-1, -1] ** 2)[::-1]
    bic = rows * np.log(np.maximum(left, 1e-300 * left[0]) / rows) + np.arange(lags + 1) * np.log(rows)
    p = int(bic.argmin())
    one = float(
        sum(float((e[1:] * e[:-1])[mask[1:] & mask[:-1]].sum()) for e, mask in zip(residuals, use, strict=True))
    )
    autocorrelation = float(np.clip(one / squares, -1.0, 1.0))
    a = np.concatenate([[1.0], -np.linalg.lstsq(R[:p, :p], R[:p, -1], rcond=None)[0]])
    poles = np.roots(a)
    far = np.abs(poles) > _NEAREST_POLE
    if far.any():
        poles = np.where(far, poles * (_NEAREST_POLE / np.abs(poles)), poles)
        a = np.real(np.poly(poles))
    # Residuals that are far smoother than their rate leave a nearly singular fit: its shape is kept, and its size is
    # that of the residuals themselves.
    gain = 1.0
    if p:
        impulse = np.zeros(_LONGEST)
        impulse[0] = 1.0
        gain = float(np.linalg.norm(scipy.signal.lfilter([1.0], a, impulse)))
    noise = Noise(white.deviation / gain, a, white.deviation, autocorrelation)
    if low and len(residuals) == 1:
        noise = replace(noise, low=_low_end(noise, residuals[0], use[0]))
    return noise
