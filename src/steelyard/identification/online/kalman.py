"""Kalman filters on any model given as functions: the core that parameters, joint states and contacts share.

    x⁺ = f(x, u) + w,  w ~ (0, Q),        z = h(x, u) + v,  v ~ (0, R)

The extended filter goes by the derivatives of f and h; of a linear model it is the Kalman filter itself. The update is
Joseph's form, (I − K H) P (I − K H)ᵀ + K R Kᵀ, which keeps P symmetric and positive under rounding.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError

Array = NDArray[np.float64]
Function = Callable[[Array, Any], Array]


class Gaussian(NamedTuple):
    """A state with its covariance."""

    mean: Array  # (n,)
    covariance: Array  # (n, n)


class Innovation(NamedTuple):
    """What a measurement said beyond what was expected of it."""

    error: Array  # (m,)
    covariance: Array  # (m, m)

    @property
    def distance(self) -> float:
        """eᵀ S⁻¹ e, which is χ² with m degrees of freedom if the filter is right about itself."""
        return float(self.error @ np.linalg.solve(self.covariance, self.error))

    @property
    def log_likelihood(self) -> float:
        """log N(e; 0, S)."""
        size = float(np.linalg.slogdet(2 * np.pi * self.covariance)[1])
        return -0.5 * (self.distance + size)


def differences(function: Function, x: Array, u: Any) -> Array:
    """∂function/∂x by central differences with steps of ∛ε, each coordinate by its own size."""
    step = np.cbrt(np.finfo(float).eps) * np.maximum(1.0, np.abs(x))
    columns = []
    for k in range(x.size):
        e = np.zeros_like(x)
        e[k] = step[k]
        columns.append((function(x + e, u) - function(x - e, u)) / (2 * step[k]))
    return np.column_stack(columns)


@dataclass(frozen=True, eq=False)
class Model:
    """f, h and their noise; derivatives where they are known, else by differences.

    `many` says that f and h also take points (k, n) at once, which sigma points and particles are quicker with.
    """

    transition: Function
    measurement: Function
    process_noise: Array  # (n, n)
    measurement_noise: Array  # (m, m)
    transition_jacobian: Function | None = None
    measurement_jacobian: Function | None = None
    many: bool = False

    def F(self, x: Array, u: Any) -> Array:
        """∂f/∂x."""
        known = self.transition_jacobian
        return differences(self.transition, x, u) if known is None else known(x, u)

    def H(self, x: Array, u: Any) -> Array:
        """∂h/∂x."""
        known = self.measurement_jacobian
        return differences(self.measurement, x, u) if known is None else known(x, u)


def linear_model(F: Array, H: Array, Q: Array, R: Array, B: Array | None = None) -> Model:
    """x⁺ = F x + B u + w, z = H x + v."""
    drive = (lambda u: 0.0) if B is None else (lambda u: np.asarray(u) @ B.T)
    return Model(lambda x, u: x @ F.T + drive(u), lambda x, u: x @ H.T, Q, R, lambda x, u: F, lambda x, u: H, many=True)


def _checked(innovation: Array, R: Array) -> None:
    if not np.isfinite(innovation).all():
        raise DataError(f"a measurement or what was expected of it is not finite: {innovation.tolist()}")
    if R.shape != (innovation.size, innovation.size):
        raise DataError(f"the measurement has {innovation.size} numbers and its noise is {R.shape}")


def gain(cross: Array, S: Array) -> Array:
    """K = C S⁻¹ for the cross covariance C of state and measurement."""
    solved: Array = np.linalg.solve(S, cross.T)  # type: ignore[assignment]
    return solved.T


def predict(model: Model, state: Gaussian, u: Any = None) -> Gaussian:
    """x̂ = f(x̂), P = F P Fᵀ + Q."""
    F = model.F(state.mean, u)
    P = F @ state.covariance @ F.T + model.process_noise
    return Gaussian(model.transition(state.mean, u), 0.5 * (P + P.T))


def update(model: Model, state: Gaussian, z: Array, u: Any = None) -> tuple[Gaussian, Innovation]:
    """x̂ = x̂ + K e, P = (I − K H) P (I − K H)ᵀ + K R Kᵀ, with e = z − h(x̂) and K = P Hᵀ (H P Hᵀ + R)⁻¹."""
    H, R, P = model.H(state.mean, u), model.measurement_noise, state.covariance
    error = np.asarray(z, dtype=np.float64) - model.measurement(state.mean, u)
    _checked(error, R)
    S = H @ P @ H.T + R
    K = gain(P @ H.T, S)
    left = np.eye(len(P)) - K @ H
    P = left @ P @ left.T + K @ R @ K.T
    return Gaussian(state.mean + K @ error, 0.5 * (P + P.T)), Innovation(error, S)


def step(model: Model, state: Gaussian, z: Array, u: Any = None) -> tuple[Gaussian, Innovation]:
    """One prediction and one update."""
    return update(model, predict(model, state, u), z, u)
