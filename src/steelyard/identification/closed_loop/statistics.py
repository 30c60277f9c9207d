"""From the end of a search to a fit: covariance from the sensitivities and the colour of what is left."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...robot.robot import Robot
from ..fit import Fit
from ..noise import Noise, fit_noise
from ..problem import Problem
from ..solving import Solution, solve
from .output_error import Found, to_explain
from .pieces import Piece
from .sensitivities import factor_of, project
from .whiteness import loop_warning

Array = NDArray[np.float64]


def _meat(found: Found, noises: Sequence[Noise]) -> Array:
    """Σ_c w_c² J_cᵀ Σ_c J_c over pieces, with their starts projected out."""
    shared = found.slopes[0].shared.shape[2]
    M = np.zeros((shared, shared))
    for slope, e in zip(found.slopes, found.state.residuals, strict=True):
        rows = project(slope, e, found.weights).rows[:, :-1].reshape(*e.shape, shared)
        for c, noise in enumerate(noises):
            half = noise.coloured(np.sqrt(found.weights[c]) * rows[:, c])
            M += half.T @ half
    return M


def channel_names(robot: Robot, signals: Sequence[str]) -> list[str]:
    return [f"{signal} of {joint}" for signal in signals for joint in robot.dof_names]


def statistics_of(
    problem: Problem, found: Found, pieces: Sequence[Piece], signals: Sequence[str], how: str, told: dict[str, Any]
) -> Fit:
    """What the search found, with honest deviations and a warning where residuals are no noise."""
    state, rank = found.state, problem.rank
    R, _ = factor_of([project(slope, e, found.weights) for slope, e in zip(found.slopes, state.residuals, strict=True)])
    beta = problem.model.base.reduce(state.point.theta)
    x = np.concatenate([beta, np.zeros(R.shape[1] - rank)])
    whole = solve(R, R @ x, x)
    use = [np.ones(len(e), dtype=bool) for e in state.residuals]
    noises = [
        fit_noise([e[:, c] for e in state.residuals], use, R.shape[1] / len(found.weights))
        for c in range(len(found.weights))
    ]
    covariance = whole.inverse @ _meat(found, noises) @ whole.inverse
    names = channel_names(problem.robot, signals)
    uses = [np.ones(e.shape, dtype=bool) for e in state.residuals]
    explained = [to_explain(piece, signals, len(e)) for piece, e in zip(pieces, state.residuals, strict=True)]
    warning, figures = loop_warning(state.residuals, uses, explained, names)
    lost = whole.blind.shape[1]
    unseen = f"the simulation shows {R.shape[1] - lost} of {R.shape[1]} numbers; the others kept the model's values"
    parts = [f"{found.message}, {how}", unseen if lost else "", warning]
    blind = whole.blind[:rank]
    return Fit(
        Solution(beta, whole.root[:rank], blind[:, np.abs(blind).max(axis=0) > 0] if lost else blind),
        np.zeros(problem.robot.n),
        found.converged,
        "; ".join(part for part in parts if part),
        found.iterations,
        parameters=state.point.theta,
        covariance=covariance[:rank, :rank],
        about={**told, **figures},
    )
