"""Which parameters the data call for: essential parameters, and which friction columns earn their place.

All of it happens on the triangular factor, so that no row is looked at twice.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from .estimate import Estimate
from .problem import Problem
from .solving import solve

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Essential:
    """The base parameters that the data call for, and what leaving out the others costs."""

    names: tuple[str, ...]
    indices: tuple[int, ...]
    dropped: tuple[str, ...]
    error_increase: float  # relative, of the weighted residual


def _whitened(problem: Problem, estimate: Estimate) -> tuple[Array, Array]:
    """The factor in units in which every joint's residual counts as independent rows of unit variance."""
    weights = [
        1.0 / (joint.noise**2 * max(joint.memory, 1.0)) if joint.noise > 0 else 1.0 for joint in estimate.residuals
    ]
    return problem.stacked(np.array(weights))


def _squares(A: Array, y: Array) -> float:
    if not A.shape[1]:
        return float(y @ y)
    e = y - A @ np.linalg.lstsq(A, y, rcond=None)[0]
    return float(e @ e)


def essential_parameters(problem: Problem, estimate: Estimate, confidence: float = 0.99) -> Essential:
    """Base parameters that are left when those are taken away, one after the other, that the residuals do not miss.

    At each step the parameter of the smallest |value|/deviation goes, as long as an F test over all that went does
    not notice (residuals count as many rows as their memory leaves). Gautier and Khalil's essential parameters.
    """
    A, y = _whitened(problem, estimate)
    keep = [k for k in range(problem.rank) if np.linalg.norm(A[:, k]) > 0]
    whole = _squares(A[:, keep], y)
    kept = list(keep)
    while len(kept) > 1:
        solution = solve(A[:, kept], y, np.zeros(len(kept)))
        deviation = np.sqrt(np.maximum(np.diag(solution.inverse), 1e-300))
        weakest = int(np.argmin(np.abs(solution.beta) / deviation))
        without = [k for i, k in enumerate(kept) if i != weakest]
        # With the noise known this well (thousands of rows) F times its first degrees of freedom is a chi-square.
        if _squares(A[:, without], y) - whole > chi2.ppf(confidence, len(keep) - len(without)):
            break
        kept = without
    names = problem.model.base.names
    left = _squares(A[:, kept], y)
    return Essential(
        tuple(names[k] for k in kept),
        tuple(kept),
        tuple(names[k] for k in range(problem.rank) if k not in kept),
        float(np.sqrt(left / whole) - 1.0) if whole > 0 else 0.0,
    )


def friction_worth_having(problem: Problem, estimate: Estimate, candidates: tuple[str, ...]) -> tuple[str, ...]:
    """Of these joint properties, those without which the Bayesian information criterion is worse."""
    A, y = _whitened(problem, estimate)
    names = [problem.model.names[k] for k in problem.model.base.kept]
    rows = sum(joint.rows / max(joint.memory, 1.0) for joint in estimate.residuals)
    worth = list(candidates)
    for candidate in reversed(candidates):
        dropped = set(candidates) - set(worth)
        now = [k for k, name in enumerate(names) if name.rpartition(".")[2] not in dropped]
        less = [k for k in now if not names[k].endswith(f".{candidate}")]
        gain = _squares(A[:, less], y) - _squares(A[:, now], y)
        if gain < (len(now) - len(less)) * np.log(max(rows, 2.0)):
            worth.remove(candidate)
    return tuple(worth)
