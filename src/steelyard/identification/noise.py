"""What residuals tell of the noise: its level and its colour, a model a joint.

    e_t = (1 − z⁻¹)^d x_t,    x_t + a_1 x_{t−1} + … + a_p x_{t−p} = w_t,    w white

The order is chosen by BIC, and so is d, 0 nearly always. Filtering, decimation and forces that the model lacks all
leave residuals that remember; taking them for independent makes intervals too short. What a controller makes of the
noise of its encoders is differentiated noise, which over the slow motion of a robot all but cancels; no autoregression
of moderate order shows that, and intervals without d would be ten times too long. Stoica and Moses, Spectral Analysis
of Signals, 2005.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.signal
from numpy.typing import NDArray

from .factors import absorb

Array = NDArray[np.float64]
_MOST_LAGS = 30
# Poles nearer to the unit circle than this are drawn in: a residual that never forgets would have no variance.
_NEAREST_POLE = 0.9995
_LONGEST = 20_000  # rows after which the answer to a single shock has died away, at that pole
_MOST_DIFFERENCES = 2
# Noise may be differentiated where the spectrum at zero is below this share of its mean.
_BLUE = 0.5


@dataclass(frozen=True, eq=False)
class Noise:
    """An autoregressive process: innovations of standard deviation `innovation` through 1/A(z)."""

    innovation: float
    a: Array  # (p + 1,), a[0] = 1
    deviation: float  # of the residuals themselves
    autocorrelation: float  # from one row to the next
    differences: int = 0

    @property
    def order(self) -> int:
        return len(self.a) - 1

    @property
    def is_white(self) -> bool:
        return self.order == self.differences == 0

    @property
    def memory(self) -> float:
        """How many rows count as one: the spectrum at zero over the variance."""
        if self.differences:
            return 0.0
        total = self.innovation**2 / max(float(self.a.sum()) ** 2, 1e-12)
        return total / self.deviation**2 if self.deviation > 0 else 1.0

    def coloured(self, W: Array) -> Array:
        """Lᵀ W with L Lᵀ the covariance of the noise over consecutive rows."""
        for _ in range(self.differences):
            nothing = np.zeros((1, *W.shape[1:]))
            W = np.diff(W, axis=0, prepend=nothing, append=nothing)
        if self.order == 0:
            return self.innovation * W
        return self.innovation * np.asarray(scipy.signal.lfilter([1.0], self.a, W[::-1], axis=0))[::-1]

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
    whole = np.lib.stride_tricks.sliding_window_view(use, lags + 1).all(axis=1)
    rows = windows[whole][:, ::-1]
    return np.concatenate([rows[:, 1:], rows[:, :1]], axis=1)


@dataclass(frozen=True, eq=False)
class _Autoregression:
    """The best fit to some series, with no numbers where there are too few rows."""

    a: Array
    information: float  # BIC a row, whatever was differenced: that changes no innovation


def _fit(series: Sequence[Array], use: Sequence[NDArray[np.bool_]], lags: int) -> _Autoregression | None:
    R = np.zeros((0, lags + 1))
    rows = 0
    for e, mask in zip(series, use, strict=True):
        lagged = _lagged(e, mask, lags)
        rows += len(lagged)
        R = absorb(R, lagged)
    if rows < 4 * lags or len(R) < lags + 1:
        return None
    # The remainder of the order p stands below row p of the last column.
    left = np.cumsum(R[::-1, -1] ** 2)[::-1]
    bic = np.log(np.maximum(left, 1e-300 * left[0]) / rows) + np.arange(lags + 1) * np.log(rows) / rows
    p = int(bic.argmin())
    a = np.concatenate([[1.0], -np.linalg.lstsq(R[:p, :p], R[:p, -1], rcond=None)[0]])
    poles = np.roots(a)
    far = np.abs(poles) > _NEAREST_POLE
    if far.any():
        poles = np.where(far, poles * (_NEAREST_POLE / np.abs(poles)), poles)
        a = np.real(np.poly(poles))
    return _Autoregression(a, float(bic[p]))


def _gain(a: Array, differences: int) -> float:
    """The deviation that innovations of one make."""
    impulse = np.zeros(_LONGEST)
    impulse[0] = 1.0
    return float(np.linalg.norm(scipy.signal.lfilter(np.poly(np.ones(differences)), a, impulse)))


def _summed(series: Sequence[Array], use: Sequence[NDArray[np.bool_]], times: int) -> list[Array]:
    """Sums of sums, so often, over every stretch without a gap; what nobody knows of its start is a polynomial."""
    out = []
    for e, mask in zip(series, use, strict=True):
        sums = np.zeros(len(e))
        edges = np.flatnonzero(np.diff(mask.astype(np.int8), prepend=0, append=0))
        for first, last in zip(edges[::2], edges[1::2], strict=True):
            x = e[first:last]
            for _ in range(times):
                x = np.cumsum(x)
            powers = np.polynomial.legendre.legvander(np.linspace(-1.0, 1.0, last - first), times - 1)
            sums[first:last] = x - powers @ np.linalg.lstsq(powers, x, rcond=None)[0]
        out.append(sums)
    return out


def fit_noise(
    residuals: Sequence[Array],
    use: Sequence[NDArray[np.bool_]],
    dof: float = 0.0,
    most_differences: int = _MOST_DIFFERENCES,
) -> Noise:
    """The noise model of one joint from blocks of consecutive residuals; `dof` parameters were fitted to them."""
    count = int(sum(int(mask.sum()) for mask in use))
    squares = float(sum(float(e[mask] @ e[mask]) for e, mask in zip(residuals, use, strict=True)))
    deviation = np.sqrt(squares / max(1.0, count - dof))
    white = Noise(deviation, np.ones(1), deviation, 0.0)
    lags = min(_MOST_LAGS, count // 20)
    if lags < 1 or squares <= 0:
        return white
    best = _fit(residuals, use, lags)
    if best is None:
        return white
    differences = 0
    while differences < most_differences and _BLUE * (float(best.a.sum()) * _gain(best.a, 0)) ** 2 > 1.0:
        other = _fit(_summed(residuals, use, differences + 1), use, lags)
        if other is None or other.information >= best.information:
            break
        best, differences = other, differences + 1
    one = float(
        sum(float((e[1:] * e[:-1])[mask[1:] & mask[:-1]].sum()) for e, mask in zip(residuals, use, strict=True))
    )
    autocorrelation = float(np.clip(one / squares, -1.0, 1.0))
    # Residuals that are far smoother than their rate leave a nearly singular fit: its shape is kept, and its size is
    # that of the residuals themselves.
    return Noise(deviation / _gain(best.a, differences), best.a, deviation, autocorrelation, differences)
