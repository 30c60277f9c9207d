"""The same filters on a triangular root of the covariance: twice the digits, and nothing to lose its sign.

    predict:  S = tri[C, E, √Q],        update:  S = tri[S − K C, K E, K √R],

where tri[A] is the lower triangle L with L Lᵀ = A Aᵀ, by an orthogonal transformation; nothing is subtracted from a
covariance. Van der Merwe, Wan, "The square-root unscented Kalman filter", ICASSP 2001, without its downdates.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_solve, qr

from .kalman import Array, Gaussian, Innovation, Model
from .sigma_points import Rule, root_of


class RootGaussian(NamedTuple):
    """A state with a lower triangular root of its covariance, P = root rootᵀ."""

    mean: Array  # (n,)
    root: Array  # (n, n)

    @property
    def covariance(self) -> Array:
        return self.root @ self.root.T


def triangle(*blocks: Array) -> Array:
    """The lower triangle L with positive diagonal and L Lᵀ = Σ A Aᵀ over the blocks."""
    R = qr(np.hstack(blocks).T, mode="r", overwrite_a=True, check_finite=False)[0][: len(blocks[0])]
    return R.T * np.where(np.diagonal(R) < 0, -1.0, 1.0)


def noise_root(Q: Array) -> Array:
    """A root of a covariance that may be singular: noise may leave some states alone."""
    if not np.any(Q - np.diag(np.diagonal(Q))):
        return np.diag(np.sqrt(np.diagonal(Q)))
    values, vectors = np.linalg.eigh(Q)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def from_gaussian(state: Gaussian) -> RootGaussian:
    """The root form of a state whose covariance is positive definite."""
    return RootGaussian(state.mean, root_of(state.covariance))


def predict(rule: Rule, model: Model, state: RootGaussian, u: Any = None) -> RootGaussian:
    """S = tri[C, E, √Q]."""
    seen = rule.see(model.transition, model.F, state.mean, state.root, u, model.many)
    return RootGaussian(seen.mean, triangle(seen.C, seen.E, noise_root(model.process_noise)))


def update(rule: Rule, model: Model, state: RootGaussian, z: Array, u: Any = None) -> tuple[RootGaussian, Innovation]:
    """S = tri[S − K C, K E, K √R], K = S Cᵀ (L Lᵀ)⁻¹ with L = tri[C, E, √R]."""
    seen = rule.see(model.measurement, model.H, state.mean, state.root, u, model.many)
    noise = noise_root(model.measurement_noise)
    L = triangle(seen.C, seen.E, noise)
    K = cho_solve((L, True), seen.C @ state.root.T, check_finite=False).T
    error = np.asarray(z, dtype=np.float64) - seen.mean
    root = triangle(state.root - K @ seen.C, K @ seen.E, K @ noise)
    return RootGaussian(state.mean + K @ error, root), Innovation(error, L @ L.T)


def step(rule: Rule, model: Model, state: RootGaussian, z: Array, u: Any = None) -> tuple[RootGaussian, Innovation]:
    """One prediction and one update."""
    return update(rule, model, predict(rule, model, state, u), z, u)
