"""Ordinary and weighted least squares."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ...errors import OptionError
from ..fit import Fit, Progress, joint_variances, rank_message, silent
from ..noise import fit_noise
from ..problem import Problem, residual_blocks
from ..solving import Solution, solve

Array = NDArray[np.float64]


@dataclass(frozen=True)
class OLS:
    """min ‖W beta − tau‖², every torque counted alike; by QR.

    With `ridge` the normal equations (WᵀW + ridge I) beta = Wᵀtau are solved by LDLᵀ, as small robots' firmware does.
    """

    ridge: float = 0.0
    name = "OLS"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.ridge) and self.ridge >= 0):
            raise OptionError(f"the ridge of OLS is {self.ridge}; give 0 or more")

    def fit(self, problem: Problem, progress: Progress = silent) -> Fit:
        A, y = problem.stacked()
        ones = np.ones(problem.robot.n)
        if not self.ridge:
            solution = solve(A, y, problem.nominal)
            return Fit(solution, ones, True, rank_message(problem, solution) or "solved", 1)
        normal = A.T @ A + self.ridge * np.eye(problem.rank)
        L, D, order = scipy.linalg.ldl(normal)
        lower = L[order]
        half = scipy.linalg.solve_triangular(lower, (A.T @ y)[order], lower=True, unit_diagonal=True)
        beta = np.empty(problem.rank)
        beta[order] = scipy.linalg.solve_triangular(lower, np.linalg.solve(D, half), lower=True, trans="T")
        root = np.linalg.inv(np.linalg.cholesky(normal)).T
        solution = Solution(beta, root, np.zeros((problem.rank, 0)))
        message = f"normal equations with ridge {self.ridge:g}: what the data do not show is drawn to zero"
        return Fit(solution, ones, True, message, 1, prior=self.ridge * np.eye(problem.rank))


def weighted(problem: Problem, repeats: int, tolerance: float) -> tuple[Solution, Array, bool, int]:
    """Least squares whose weights are the joints' own residual variances, and whether the weights came to rest."""
    weights = np.ones(problem.robot.n)
    A, y = problem.stacked()
    solution = solve(A, y, problem.nominal)
    settled, done = False, 0
    for done in range(1, repeats + 1):
        variances = joint_variances(problem, solution.beta, solution.inverse, weights)
        change = np.abs(np.log(variances * weights)).max() if done > 1 else np.inf
        weights = 1.0 / variances
        solution = solve(*problem.stacked(weights), problem.nominal)
        if change < tolerance:
            settled = True
            break
    return solution, weights, settled, done


@dataclass(frozen=True)
class WLS:
    """min Σ_j ‖W_j beta − tau_j‖²/σ_j², the variances from the residuals.

    `noise` says what is known of the errors: "joint", a variance a joint; "full", a covariance between the joints of
    a sample; "coloured", an autoregressive process a joint (then the rows are whitened, and the estimate is as
    efficient as the memory of the errors allows). `repeats` of 1 is the textbook's one step after OLS.
    """

    noise: Literal["joint", "full", "coloured"] = "joint"
    repeats: int = 20
    tolerance: float = 1e-6
    name = "WLS"

    def __post_init__(self) -> None:
        if self.noise not in ("joint", "full", "coloured"):
            raise OptionError(f"WLS knows no noise '{self.noise}'; valid: joint, full, coloured")
        if self.repeats < 1:
            raise OptionError(f"WLS with {self.repeats} repeats; give 1 or more")

    def fit(self, problem: Problem, progress: Progress = silent) -> Fit:
        solution, weights, settled, done = weighted(problem, self.repeats, self.tolerance)
        if self.noise == "full":
            return self._full(problem, solution)
        if self.noise == "coloured":
            return self._coloured(problem, solution, weights)
        lost = rank_message(problem, solution)
        if not settled and self.repeats > 1:
            told = f"the joints' weights had not settled after {done} repeats; raise repeats"
            return Fit(solution, weights, False, told + (f"; {lost}" if lost else ""), done)
        return Fit(solution, weights, True, lost or "solved", done)

    def _full(self, problem: Problem, first: Solution) -> Fit:
        n = problem.robot.n
        moments, count = np.zeros((n, n)), 0
        for block in problem.blocks():
            e = (block.tau - block.W @ first.beta)[block.use.all(axis=1)]
            moments += e.T @ e
            count += len(e)
        covariance = moments / max(1.0, count - problem.rank / n)
        # Joints that share all their noise leave a covariance without an inverse; rounding is added to its diagonal.
        covariance += 1e-12 * np.diag(np.diag(covariance)) + np.finfo(float).tiny * np.eye(n)
        mix = np.linalg.inv(np.linalg.cholesky(covariance))
        A, y = problem.mixed(mix).stacked()
        solution = solve(A, y, problem.nominal)
        message = rank_message(problem, solution) or "solved with the covariance between joints"
        return Fit(solution, 1.0 / np.diag(covariance), True, message, 2, covariance=solution.inverse)

    def _coloured(self, problem: Problem, first: Solution, weights: Array) -> Fit:
        blocks, residuals, _ = residual_blocks(problem, first.beta, 400_000)
        models = [
            fit_noise([e[:, j] for e in residuals], [b.use[:, j] for b in blocks], low=False)
            for j in range(problem.robot.n)
        ]
        from ..factors import Factor, Factors, absorb

        parts = []
        for j, (noise, columns) in enumerate(zip(models, problem.model.active, strict=True)):
            R, rows = np.zeros((0, len(columns) + 1)), 0
            for block in problem.blocks():
                for start, stop in runs(block.use[:, j], noise.order + 1):
                    W = np.concatenate([block.W[start:stop, j][:, columns], block.tau[start:stop, j, None]], axis=1)
                    white = noise.whitened(W)
                    R = absorb(R, white)
                    rows += len(white)
            parts.append(Factor(columns, R, rows))
        A, y = Factors(problem.rank, tuple(parts)).stacked()
        solution = solve(A, y, problem.nominal)
        orders = ", ".join(str(noise.order) for noise in models)
        message = f"solved on rows whitened by autoregressions of order {orders}"
        lost = rank_message(problem, solution)
        return Fit(solution, weights, True, f"{message}; {lost}" if lost else message, 2, covariance=solution.inverse)


def runs(use: NDArray[np.bool_], shortest: int) -> list[tuple[int, int]]:
    """Where consecutive rows count, at least so many."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], use, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2) if b - a >= shortest]
