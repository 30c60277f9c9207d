"""Iteratively re-weighted least squares: gross errors lose their say."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...errors import OptionError
from ..fit import Fit, Progress, rank_message, silent
from ..model import Rows
from ..problem import Problem, residual_blocks, used
from ..solving import Solution, solve
from .least_squares import weighted

Array = NDArray[np.float64]

# 95 % efficiency under Gaussian noise; Huber and Ronchetti, Robust Statistics, 2009.
TUNING = {"huber": 1.345, "tukey": 4.685}
# The median absolute deviation of a Gaussian is this share of its standard deviation.
_MAD_OF_GAUSSIAN = 0.6744897501960817
# So many residuals tell a median as well as all of them.
_ENOUGH_FOR_A_MEDIAN = 500_000


def weight(u: Array, kind: str, tuning: float) -> Array:
    """ω(u) = ψ(u)/u of a residual u in units of its scale."""
    size = np.abs(u)
    if kind == "huber":
        return np.where(size <= tuning, 1.0, tuning / np.maximum(size, 1e-300))
    return np.where(size < tuning, (1.0 - (size / tuning) ** 2) ** 2, 0.0)


def slope(u: Array, kind: str, tuning: float) -> Array:
    """ψ'(u)."""
    size = np.abs(u)
    if kind == "huber":
        return (size <= tuning).astype(float)
    share = (size / tuning) ** 2
    return np.where(size < tuning, (1.0 - share) * (1.0 - 5.0 * share), 0.0)


def _scales(problem: Problem, beta: Array) -> tuple[Array, list[Rows], list[Array]]:
    """σ_j by the median absolute residual."""
    blocks, residuals, _ = residual_blocks(problem, beta, _ENOUGH_FOR_A_MEDIAN)
    found = []
    for j in range(problem.robot.n):
        e = np.abs(used(residuals, blocks, j))
        size = np.sqrt(np.mean([float(np.mean(b.tau[:, j] ** 2)) for b in blocks]))
        found.append(max(float(np.median(e)) / _MAD_OF_GAUSSIAN, 1e-10 * size, np.finfo(float).tiny))
    return np.array(found), blocks, residuals


@dataclass(frozen=True)
class IRLS:
    """min Σ ρ(e/σ_j), by least squares with weights ω(e/σ_j) until they come to rest.

    σ_j is the median absolute residual of a joint. Tukey's ρ forgets gross errors altogether, but has many minima: it
    starts from Huber's.
    """

    loss: Literal["huber", "tukey"] = "huber"
    tuning: float | None = None
    tolerance: float = 1e-4
    repeats: int = 50
    name = "IRLS"

    def __post_init__(self) -> None:
        if self.loss not in TUNING:
            raise OptionError(f"IRLS knows no loss '{self.loss}'; valid: {', '.join(TUNING)}")
        if self.tuning is not None and not self.tuning > 0:
            raise OptionError(f"the tuning of IRLS is {self.tuning}; give one above 0")

    def fit(self, problem: Problem, progress: Progress = silent) -> Fit:
        solution, _, _, _ = weighted(problem, 1, 1e-6)
        done, settled = 0, False
        stages = ("huber",) if self.loss == "huber" else ("huber", "tukey")
        scale = np.ones(problem.robot.n)
        for stage in stages:
            solution, scale, settled, more = self._stage(problem, solution, stage, progress)
            done += more
        kind, c = self.loss, self._tuning(self.loss)
        blocks, residuals, _ = residual_blocks(problem, solution.beta, _ENOUGH_FOR_A_MEDIAN)
        slopes = np.array(
            [np.mean(slope(used(residuals, blocks, j) / scale[j], kind, c)) for j in range(problem.robot.n)]
        )
        weights = 1.0 / scale**2
        # The scores are ψ(e) = e ω(e/σ) on rows as they are, and the slope of Σ Wᵀψ is the mean of ψ' times WᵀW.
        bread = solve(*problem.stacked(weights * np.maximum(slopes, 1e-6)), problem.nominal)
        final = Solution(solution.beta, bread.root, bread.blind)
        lost = rank_message(problem, final)
        told = "solved" if settled else f"the weights had not settled after {done} repeats; raise repeats"
        outside = np.mean(
            np.concatenate([np.abs(used(residuals, blocks, j)) > c * scale[j] for j in range(problem.robot.n)])
        )
        return Fit(
            final,
            weights,
            settled,
            f"{told}; {lost}" if lost else told,
            done,
            psi=lambda e: e * weight(e / scale, kind, c),
            about={"down_weighted_share": float(outside), "scales": scale.tolist()},
        )

    def _tuning(self, kind: str) -> float:
        return TUNING[kind] if self.tuning is None or kind != self.loss else self.tuning

    def _stage(
        self, problem: Problem, solution: Solution, kind: str, progress: Progress
    ) -> tuple[Solution, Array, bool, int]:
        c, done = self._tuning(kind), 0
        scale = np.ones(problem.robot.n)
        for done in range(1, self.repeats + 1):
            progress(f"re-weighting ({kind})", done / self.repeats)
            scale, _, _ = _scales(problem, solution.beta)
            beta, now = solution.beta, scale

            def weigh(block: Rows, beta: Array = beta, now: Array = now) -> Array:
                return np.sqrt(weight((block.tau - block.W @ beta) / now, kind, c)) / now

            solution = solve(*problem.factorised(weigh).stacked(), problem.nominal)
            # In units of its own uncertainty, so that no choice of units decides.
            change = np.linalg.norm(np.linalg.lstsq(solution.root, solution.beta - beta, rcond=None)[0])
            if change <= self.tolerance * np.sqrt(problem.rank):
                return solution, scale, True, done
        return solution, scale, False, done
