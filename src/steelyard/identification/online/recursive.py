"""Recursive least squares for any model that is linear in its parameters: y = φᵀθ + noise.

Without forgetting the estimate is at every moment the minimiser of

    Σ |(y − φᵀθ)/σ|² + |(θ − θ0)/d|²,

that is batch least squares with the prior θ0 ± d. With forgetting λ old samples count λ^age; `directional` forgets
only along the rows that come in, so that a robot that stands still does not unlearn what it is not shown.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import DataError, OptionError
from .kernels.potter import FORGET_ALL, FORGET_SEEN, KEEP, absorb

Array = NDArray[np.float64]
# A direction in which a prior is narrower than this share of its widest, in variance, is as wide as that.
_NARROWEST = 1e-9


class RecursiveState(NamedTuple):
    """What is known after some rows; P = diag(scale) root rootᵀ diag(scale)."""

    estimate: Array  # (p,)
    root: Array  # (p, p), in units of `scale`
    scale: Array  # (p,) the prior's standard deviations
    squares: Array  # (m,) what the rows of each output were missed by, squared and forgotten alike
    weights: Array  # (m,) how many rows that is

    @property
    def covariance(self) -> Array:
        """P, for unit (or the given) noise."""
        scaled = self.scale[:, None] * self.root
        return scaled @ scaled.T

    @property
    def deviation(self) -> Array:
        """The square root of P's diagonal."""
        return self.scale * np.linalg.norm(self.root, axis=1)

    @property
    def noise(self) -> Array:
        """Standard deviation of each output's noise, from the innovations; NaN before the first row."""
        with np.errstate(invalid="ignore"):
            return np.sqrt(self.squares / np.where(self.weights > 0, self.weights, np.nan))


def start(estimate: ArrayLike, deviation: ArrayLike, outputs: int = 1) -> RecursiveState:
    """Begin at θ0 with the prior P0 = diag(deviation²); a number for P0 = αI with α its square."""
    theta = np.array(estimate, dtype=np.float64)
    if theta.ndim != 1 or not np.isfinite(theta).all():
        raise DataError(f"the first estimate has shape {theta.shape} and must be finite numbers in one row")
    scale = np.array(np.broadcast_to(np.asarray(deviation, dtype=np.float64), theta.shape))
    if not (np.isfinite(scale) & (scale > 0)).all():
        raise OptionError(f"the prior's standard deviation is {scale.min():g}; it must be finite and above 0")
    return RecursiveState(theta, np.eye(theta.size), scale, np.zeros(outputs), np.zeros(outputs))


def start_from(estimate: ArrayLike, covariance: Array, outputs: int = 1) -> RecursiveState:
    """Begin at θ0 with a prior P0 in which parameters may be wrong together."""
    deviation = np.sqrt(np.diag(covariance))
    state = start(estimate, deviation, outputs)
    values, vectors = np.linalg.eigh(covariance / np.outer(deviation, deviation))
    return state._replace(root=vectors * np.sqrt(np.maximum(values, _NARROWEST * values.max())))


def check_forgetting(forgetting: float) -> None:
    """A forgetting factor that means something."""
    if not 0.0 < forgetting <= 1.0:
        raise OptionError(f"the forgetting factor is {forgetting}; give one above 0 and at most 1 (0.95 … 1 is usual)")


def update(
    state: RecursiveState,
    rows: ArrayLike,
    values: ArrayLike,
    noise: ArrayLike = 1.0,
    forgetting: float = 1.0,
    directional: bool = True,
) -> RecursiveState:
    """Take in one row (p,), the rows of a sample (m, p), or many samples (T, m, p); NaN values are skipped."""
    phi, y = np.asarray(rows, dtype=np.float64), np.asarray(values, dtype=np.float64)
    m, p = state.squares.size, state.estimate.size
    if phi.shape[-1:] != (p,) or phi.size % (m * p) or y.size * p != phi.size:
        raise DataError(f"rows have shape {phi.shape} and values {y.shape}; {m} rows of {p} a sample are needed")
    check_forgetting(forgetting)
    deviations = np.array(np.broadcast_to(np.asarray(noise, dtype=np.float64), (m,)))
    if not (deviations > 0).all():
        raise OptionError(f"the noise is {deviations.min():g}; give a standard deviation above 0")
    memory = KEEP if forgetting == 1.0 else FORGET_SEEN if directional else FORGET_ALL
    estimate, root = state.estimate.copy(), state.root.copy()
    squares, weights = state.squares.copy(), state.weights.copy()
    samples = np.ascontiguousarray(phi).reshape(-1, m, p), np.ascontiguousarray(y).reshape(-1, m)
    absorb(estimate, root, state.scale, squares, weights, *samples, deviations, forgetting, memory)
    return RecursiveState(estimate, root, state.scale, squares, weights)
