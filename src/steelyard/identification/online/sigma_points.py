"""Filters that ask a function at points instead of for its derivatives: the unscented and the central-difference one.

Both, and the extended filter too, see a function y = f(x) of x ~ (x̄, S Sᵀ) through three things,

    ȳ,    cov(y) = C Cᵀ + E Eᵀ,    cov(x, y) = S Cᵀ:

C are first differences along the columns of S, E what is left of the second. With d± = f(x̄ ± γ s) − f(x̄) a column,

    C = (d₊ − d₋)/2γ,        ȳ = f(x̄) + Σ (d₊ + d₋)/2γ².

A covariance in this form is positive by construction, though one weight of the unscented transform is negative.
Julier, "The scaled unscented transformation", ACC 2002; Nørgaard, Poulsen, Ravn, "New developments in state
estimation for nonlinear systems", Automatica 36, 2000.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...errors import DataError, OptionError
from .kalman import Array, Function, Gaussian, Innovation, Model, gain


class Seen(NamedTuple):
    """A function seen around a mean: cov(y) = C Cᵀ + E Eᵀ, cov(x, y) = S Cᵀ."""

    mean: Array  # (m,)
    C: Array  # (m, n)
    E: Array  # (m, any)


class Rule(Protocol):
    """How a function of a random vector is seen."""

    def see(self, function: Function, jacobian: Function, mean: Array, root: Array, u: Any, many: bool) -> Seen:
        """ȳ, C and E of a function at a mean with a root of its covariance."""


@dataclass(frozen=True)
class Derivatives:
    """The extended filter: C = J S and nothing of second order."""

    def see(self, function: Function, jacobian: Function, mean: Array, root: Array, u: Any, many: bool) -> Seen:
        y = function(mean, u)
        return Seen(y, jacobian(mean, u) @ root, np.empty((y.size, 0)))


def _differences(
    function: Function, mean: Array, root: Array, u: Any, many: bool, reach: float
) -> tuple[Array, Array, Array]:
    """f(x̄), (d₊ − d₋)/2γ and (d₊ + d₋)/2γ, a column a column of the root."""
    points = np.vstack([mean, mean + reach * root.T, mean - reach * root.T])
    y = function(points, u) if many else np.array([function(x, u) for x in points])
    if not np.isfinite(y).all():
        raise DataError(
            "the model gives no finite number at a sigma point; for a robot take coordinates='physical', a smaller "
            "prior deviation, or more measurement noise"
        )
    ahead, behind = y[1 : 1 + mean.size] - y[0], y[1 + mean.size :] - y[0]
    return y[0], (ahead - behind).T / (2 * reach), (ahead + behind).T / (2 * reach)


@dataclass(frozen=True)
class Unscented:
    """γ = α √(n + κ), E = [(d₊ + d₋)/2γ, √(β − α²) (ȳ − f(x̄))]; the usual weights W_i = 1/2γ² say the same."""

    alpha: float = 0.1
    beta: float = 2.0
    kappa: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 1:
            raise OptionError(f"alpha is {self.alpha}; it must be above 0 and at most 1")
        if not self.beta >= self.alpha**2:
            raise OptionError(f"beta is {self.beta}; at least alpha² = {self.alpha**2:g} keeps covariances positive")
        if not self.kappa >= 0:
            raise OptionError(f"kappa is {self.kappa}; it must not be below 0")

    def see(self, function: Function, jacobian: Function, mean: Array, root: Array, u: Any, many: bool) -> Seen:
        reach = self.alpha * np.sqrt(mean.size + self.kappa)
        y, first, second = _differences(function, mean, root, u, many, reach)
        shift = second.sum(axis=1) / reach
        bend = np.sqrt(self.beta - self.alpha**2) * shift[:, None]
        return Seen(y + shift, first, np.hstack([second, bend]))


@dataclass(frozen=True)
class CentralDifferences:
    """γ = h, E = √(h² − 1)/h · (d₊ + d₋)/2h; h² is the kurtosis of what is filtered, 3 for a normal one."""

    h: float = float(np.sqrt(3.0))

    def __post_init__(self) -> None:
        if not self.h >= 1:
            raise OptionError(f"h is {self.h}; it must be at least 1 (√3 suits normal noise)")

    def see(self, function: Function, jacobian: Function, mean: Array, root: Array, u: Any, many: bool) -> Seen:
        y, first, second = _differences(function, mean, root, u, many, self.h)
        return Seen(y + second.sum(axis=1) / self.h, first, np.sqrt(self.h**2 - 1.0) / self.h * second)


def root_of(P: Array) -> Array:
    """A lower root of a positive definite covariance."""
    try:
        root: Array = np.linalg.cholesky(P)  # type: ignore[assignment]
    except np.linalg.LinAlgError:
        raise DataError(
            "the covariance of the filter is no longer positive definite; give it more process noise, or take the "
            "square-root form"
        ) from None
    return root


def predict(rule: Rule, model: Model, state: Gaussian, u: Any = None) -> Gaussian:
    """x̂ = ȳ, P = C Cᵀ + E Eᵀ + Q."""
    seen = rule.see(model.transition, model.F, state.mean, root_of(state.covariance), u, model.many)
    return Gaussian(seen.mean, seen.C @ seen.C.T + seen.E @ seen.E.T + model.process_noise)


def update(rule: Rule, model: Model, state: Gaussian, z: Array, u: Any = None) -> tuple[Gaussian, Innovation]:
    """x̂ = x̂ + K e with K = S Cᵀ (C Cᵀ + E Eᵀ + R)⁻¹, P = (S − K C)(S − K C)ᵀ + K (E Eᵀ + R) Kᵀ."""
    root = root_of(state.covariance)
    seen = rule.see(model.measurement, model.H, state.mean, root, u, model.many)
    rest = seen.E @ seen.E.T + model.measurement_noise
    S = seen.C @ seen.C.T + rest
    K = gain(root @ seen.C.T, S)
    error = np.asarray(z, dtype=np.float64) - seen.mean
    left = root - K @ seen.C
    return Gaussian(state.mean + K @ error, left @ left.T + K @ rest @ K.T), Innovation(error, S)


def step(rule: Rule, model: Model, state: Gaussian, z: Array, u: Any = None) -> tuple[Gaussian, Innovation]:
    """One prediction and one update."""
    return update(rule, model, predict(rule, model, state, u), z, u)
