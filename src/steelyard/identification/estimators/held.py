"""Least squares for what is new, with the rest held at what is known of it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import OptionError
from ..fit import Fit, Progress, joint_variances, silent
from ..problem import Problem
from ..solving import Solution, solve

Array = NDArray[np.float64]
_REPEATS = 200
_SETTLED = 1e-6


@dataclass(frozen=True, eq=False)
class Held:
    """min Σ_j ‖W_f β_f + W_h β̂_h − tau_j‖²/σ_j² over the free β_f, the held β̂_h from elsewhere.

    What is not sure of the held parameters, their covariance C, goes on to the free ones:
    cov β_f = P + P W_fᵀ W_h C W_hᵀ W_f P with P = (W_fᵀ W_f)⁻¹, all weighted.
    """

    held: tuple[bool, ...]  # a base parameter each
    values: Array  # (r,), read where held
    covariance: Array  # (r, r), read where held
    name = "difference"

    def __post_init__(self) -> None:
        if np.shape(self.values) != (len(self.held),) or np.shape(self.covariance) != (len(self.held),) * 2:
            raise OptionError("what is held needs a value a base parameter, and a covariance of all of them")

    def fit(self, problem: Problem, progress: Progress = silent) -> Fit:
        held = np.array(self.held)
        if len(held) != problem.rank or held.all():
            raise OptionError(f"{int(held.sum())} of {problem.rank} base parameters are held; some must be free")
        weights, settled, done = np.ones(problem.robot.n), False, 0
        while not settled and done < _REPEATS:
            done += 1
            solution = self._solve(problem, weights, held)
            new = 1.0 / joint_variances(problem, solution.beta, solution.inverse, weights)
            settled = bool(np.abs(np.log(new / weights)).max() < _SETTLED)
            weights = new
        solution = self._solve(problem, weights, held)
        A, _ = problem.stacked(weights)
        across = A[:, ~held].T @ A[:, held]
        prior = np.zeros((problem.rank, problem.rank))
        prior[np.ix_(~held, ~held)] = across @ self.covariance[np.ix_(held, held)] @ across.T
        blind = solution.blind.shape[1]
        lost = f"the data show {int((~held).sum()) - blind} of {int((~held).sum())} free parameters" if blind else ""
        told = "solved" if settled else f"the joints' weights had not settled after {done} repeats"
        return Fit(solution, weights, settled, f"{told}; {lost}" if lost else told, done, prior=prior)

    def _solve(self, problem: Problem, weights: Array, held: NDArray[np.bool_]) -> Solution:
        A, y = problem.stacked(weights)
        before = np.where(held, self.values, problem.nominal)
        found = solve(A[:, ~held], y - A[:, held] @ before[held], before[~held])
        beta = before.copy()
        beta[~held] = found.beta

        def whole(part: Array) -> Array:
            full = np.zeros((problem.rank, part.shape[1]))
            full[~held] = part
            return full

        return Solution(beta, whole(found.root), whole(found.blind))
