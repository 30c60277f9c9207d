"""Which points of friction lie farther off than noise does."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..estimators.robust import TUNING, weight
from .projection import Regression

Array = NDArray[np.float64]
_MAD_OF_GAUSSIAN = 0.6744897501960817
_ROUNDS = 30


def _weighted(problem: Regression, factor: Array) -> Regression:
    """The regression with weights multiplied; residuals are asked of the first."""
    return Regression(
        problem.speed, problem.sign, problem.y, problem.weight * factor, problem.X, problem.names, problem.shape
    )


def _residuals(problem: Regression, factor: Array) -> Array:
    """Of all points, in their own weights, from the best fit with other weights; the grid of q̇s is fine enough."""
    other = _weighted(problem, factor)
    shapes = [2.0] if problem.shape is None else [problem.shape]
    best = min(((float(v), s, float(left)) for s in shapes for v, left in _swept(other, s)), key=lambda found: found[2])
    beta, dip, _ = other.at(best[0], best[1])
    fall = problem.sign * np.exp(-((problem.speed / best[0]) ** best[1]))
    return np.asarray(problem.weight * (problem.y - problem.X @ beta - dip * fall))


def _swept(problem: Regression, shape: float) -> list[tuple[float, float]]:
    grid = problem.grid(shape, 60)
    squares = problem.batch(grid, np.full(60, shape)).squares
    return list(zip(grid.tolist(), squares.tolist(), strict=True))


def ordinary(problems: Sequence[Regression]) -> list[NDArray[np.bool_]]:
    """Points within 4.685 deviations of a fit by Tukey's weights, that starts from Huber's; the rest are gross errors.

    The deviation is the median absolute residual's.
    """
    kept = []
    for problem in problems:
        factor = np.ones(problem.size)
        u = np.zeros(problem.size)
        for kind in ("huber", "tukey"):
            for _ in range(_ROUNDS):
                e = _residuals(problem, factor)
                scale = float(np.median(np.abs(e))) / _MAD_OF_GAUSSIAN
                u = e / max(scale, 1e-12 * float(np.abs(problem.y * problem.weight).max(initial=0.0)), 1e-300)
                now = np.sqrt(np.maximum(weight(u, kind, TUNING[kind]), 1e-12))
                if np.abs(now - factor).max() < 1e-3:
                    break
                factor = now
        kept.append(np.abs(u) < TUNING["tukey"])
    return kept
