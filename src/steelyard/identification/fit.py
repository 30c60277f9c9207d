"""What an estimator answers before statistics are made of it, and the face that every estimator shows."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .estimate import ShapeValue
from .problem import Problem
from .solving import Solution

Array = NDArray[np.float64]
Progress = Callable[[str, float], None]  # what is going on, and the share of it that is done


def silent(what: str, share: float) -> None:
    """Progress that nobody wants to see."""


@dataclass(frozen=True, eq=False)
class Fit:
    """Base parameters as the root of Σ_j weights_j W_jᵀ ψ_j(tau − W beta) = 0, and how it was reached.

    `psi` maps residuals (T, n) to scores, the residuals themselves where it is None, and `slope` is its mean
    derivative a joint. An estimator with a covariance or with full parameters of its own gives them.
    """

    solution: Solution
    weights: Array  # (n,); zeros where it fitted something other than these torques, in rows of unit variance
    converged: bool
    message: str
    iterations: int
    psi: Callable[[Array], Array] | None = None
    prior: Array | None = None  # (r, r) what a prior adds to the variance of the scores
    parameters: Array | None = None  # all parameters, where the estimator settles more than the base
    covariance: Array | None = None  # of the base parameters
    deviation: Array | None = None  # of all parameters
    problem: Problem | None = None  # the regression that it solves, where that is not the one that was given
    about: dict[str, Any] = field(default_factory=dict)
    shapes: tuple[ShapeValue, ...] = ()  # what was found in which torque is not linear

    @property
    def beta(self) -> Array:
        return self.solution.beta


class Estimator(Protocol):
    """An immutable settings object that solves problems."""

    @property
    def name(self) -> str: ...

    def fit(self, problem: Problem, progress: Progress = silent) -> Fit: ...


def rank_message(problem: Problem, solution: Solution) -> str:
    """What the data leave open, or nothing."""
    lost = solution.blind.shape[1]
    if not lost:
        return ""
    named = "; ".join(str(direction) for direction in problem.data_set.blind[:3])
    more = "" if lost <= 3 else f"; and {lost - 3} more"
    return (
        f"the data show {problem.rank - lost} of {problem.rank} base parameters; "
        f"kept at the model's values: {named}{more}"
    )


def joint_variances(problem: Problem, beta: Array, inverse: Array, weights: Array) -> Array:
    """Residual variance a joint, each counted with the degrees of freedom that its own rows spent.

    dof_j = weights_j tr(R_j P R_jᵀ), P the inverse of Σ weights_j W_jᵀ W_j; over joints they add up to the rank.
    """
    spent, factors = [], problem.factors
    for part, weight in zip(factors.parts, weights, strict=True):
        RP = part.R[:, :-1] @ inverse[np.ix_(part.columns, part.columns)]
        spent.append(weight * float(np.einsum("kc,kc->", RP, part.R[:, :-1])))
    squares = factors.squares(beta)
    floor = _rounding(problem)
    return np.maximum(squares / np.maximum(factors.rows - np.array(spent), 1.0), floor)


def _rounding(problem: Problem) -> Array:
    """Variances below which residuals are rounding: exact data would otherwise be weighted by chance."""
    size = np.array([float(part.R[:, -1] @ part.R[:, -1]) / max(1, part.rows) for part in problem.factors.parts])
    return np.maximum(1e-26 * size, 1e-26 * size.max(initial=0.0)) + np.finfo(float).tiny
