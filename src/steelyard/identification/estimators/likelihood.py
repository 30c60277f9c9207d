"""Maximum likelihood by Levenberg–Marquardt."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import OptionError
from ..fit import Fit, Progress, joint_variances, rank_message, silent
from ..problem import Problem
from ..shapes import Shape
from ..solving import Solution, solve

Array = NDArray[np.float64]


def levenberg_marquardt(R: Array, y: Array, start: Array, tolerance: float, most: int) -> tuple[Array, bool, int]:
    """min ‖R x − y‖² from a start, with Marquardt's damping in units of the columns' lengths."""
    x, damping = start.copy(), 1e-3
    lengths = np.linalg.norm(R, axis=0)
    lengths[lengths == 0] = 1.0
    # In units of the columns' lengths damping adds to the squares of the singular values, whatever it is.
    U, s, Vt = np.linalg.svd(R / lengths, full_matrices=False)
    e = R @ x - y
    cost = float(e @ e)
    for done in range(1, most + 1):
        step = (Vt.T @ (s / (s**2 + damping) * (U.T @ -e))) / lengths
        trial = R @ (x + step) - y
        better = float(trial @ trial)
        if better <= cost:
            x, e, cost = x + step, trial, better
            damping = max(damping / 10, 1e-14)
            if np.linalg.norm(lengths * step) <= tolerance * (np.linalg.norm(lengths * x) + tolerance):
                return x, True, done
        else:
            damping *= 10
            if damping > 1e12:
                return x, True, done
    return x, False, most


@dataclass(frozen=True)
class ML:
    """max likelihood under Gaussian noise whose variances, one a joint, are estimated too.

    −2 log L = Σ_j T_j log σ_j² + ‖W_j beta − tau_j‖²/σ_j², in turns: beta by Levenberg–Marquardt, σ_j² in closed form.
    On a linear model it comes to the weighted least squares of its own variances. With `shapes` it seeks what torque
    is not linear in as well: velocities and exponents of Stribeck's, bristles, delays, temperature, drive gains.
    """

    tolerance: float = 1e-12
    repeats: int = 100
    shapes: tuple[Shape, ...] = ()
    name = "ML"

    def __post_init__(self) -> None:
        if self.repeats < 1 or not self.tolerance > 0:
            raise OptionError("ML needs at least one repeat and a tolerance above zero")

    def fit(self, problem: Problem, progress: Progress = silent) -> Fit:
        if self.shapes:
            from ..nonlinear import fit_shapes  # which itself solves by estimators

            return fit_shapes(problem, self.shapes, self.repeats, progress)
        beta = problem.nominal.copy()
        n = problem.robot.n
        weights = 1.0 / joint_variances(problem, beta, np.zeros((problem.rank, problem.rank)), np.ones(n))
        done, settled = 0, False
        for turn in range(1, self.repeats + 1):
            progress("maximum likelihood", turn / self.repeats)
            A, y = problem.stacked(weights)
            beta, inner, steps = levenberg_marquardt(A, y, beta, self.tolerance, self.repeats)
            done += steps
            solution = solve(A, y, beta)
            # Maximum likelihood divides by all rows; the degrees of freedom are taken off, or intervals are too short.
            new = 1.0 / joint_variances(problem, beta, solution.inverse, weights)
            change = np.abs(np.log(new / weights)).max()
            weights = new
            if inner and change < 1e-8:
                settled = True
                break
        last = solve(*problem.stacked(weights), beta)
        solution = Solution(beta, last.root, last.blind)
        lost = rank_message(problem, solution)
        told = "solved" if settled else f"no rest after {done} steps; raise repeats"
        return Fit(solution, weights, settled, f"{told}; {lost}" if lost else told, done)
