"""From a fit to an `Estimate`: covariances that know the colour of the residuals, and what each joint's look like.

    cov beta = P (Σ_j w_j² W_jᵀ Σ_j W_j) Pᵀ,    P = (Σ_j w_j κ_j W_jᵀ W_j)⁻¹

Σ_j is the covariance of joint j's scores in time, from an autoregression. White, Gaussian residuals make it P again.
"""

import time
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compiled import one_blas_thread
from ..robot.robot import Robot, frozen
from .estimate import Estimate, JointResidual, full_deviation, unseen
from .fit import Estimator, Fit, Progress, silent
from .model import Rows
from .noise import Noise, fit_noise
from .problem import Problem, residual_blocks

Array = NDArray[np.float64]
# So many rows tell the colour of the residuals; more would only take longer.
_ENOUGH_ROWS = 60_000


def _leverage(problem: Problem, fit: Fit) -> Array:
    """Degrees of freedom that each joint's own rows spent."""
    inverse = fit.solution.inverse
    return np.array(
        [
            weight * np.einsum("kc,cd,kd->", R := part.R[:, :-1], inverse[np.ix_(part.columns, part.columns)], R)
            for part, weight in zip(problem.factors.parts, fit.weights, strict=True)
        ]
    )


def _meat(problem: Problem, blocks: list[Rows], j: int, noise: Noise, share: float) -> Array:
    """W_jᵀ Σ_j W_j: exact where the noise is white, else from blocks spread over the data."""
    columns = problem.model.active[j]
    M = np.zeros((problem.rank, problem.rank))
    if noise.is_white:
        half = noise.innovation * problem.factors.parts[j].R[:, :-1]
        M[np.ix_(columns, columns)] = half.T @ half
        return M
    rows = [np.where(block.use[:, j, None], block.of_joint(j, columns), 0.0) for block in blocks]
    for W in [np.concatenate(rows)] if share == 1.0 else rows:
        half = noise.coloured(W)
        M[np.ix_(columns, columns)] += half.T @ half / share
    return M


def _joint_residual(
    problem: Problem, j: int, blocks: list[Rows], residuals: list[Array], noise: Noise
) -> JointResidual:
    e = np.concatenate([r[b.use[:, j], j] for r, b in zip(residuals, blocks, strict=True)])
    tau = np.concatenate([b.tau[b.use[:, j], j] for b in blocks])
    size = float(np.sqrt(np.mean(tau**2))) if len(tau) else float("nan")
    rmse = float(np.sqrt(np.mean(e**2))) if len(e) else float("nan")
    return JointResidual(
        joint=problem.robot.dof_names[j],
        rows=int(problem.factors.rows[j]),
        rmse=rmse,
        relative=rmse / size if size else float("inf"),
        largest=float(np.abs(e).max(initial=0.0)),
        noise=noise.deviation,
        noise_order=noise.order,
        autocorrelation=noise.autocorrelation,
        memory=noise.memory,
    )


def _described(value: Any) -> Any:
    """Settings as what a result file holds: robots by name."""
    if isinstance(value, Robot):
        return value.name
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _described(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _described(each) for key, each in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def _settings(estimator: Estimator) -> dict[str, Any]:
    found = _described(estimator)
    return found if isinstance(found, dict) else {}


def _joined(parts: list[NDArray]) -> list[NDArray]:
    return [np.concatenate(parts)]


def conclude(
    problem: Problem, fit: Fit, name: str, settings: Mapping[str, Any], seconds: float, about: Mapping[str, Any]
) -> Estimate:
    """Statistics of a fit."""
    problem = problem if fit.problem is None else fit.problem
    beta, model = fit.beta, problem.model
    blocks, residuals, share = residual_blocks(problem, beta, _ENOUGH_ROWS)
    dof = np.nan_to_num(_leverage(problem, fit)) * share
    meat = np.zeros((problem.rank, problem.rank)) if fit.prior is None else fit.prior.copy()
    found = []
    # Blocks that follow each other are one: noise that was differentiated cancels across them, as between rows.
    joined = _joined if share == 1.0 else list
    for j in range(problem.robot.n):
        use = joined([block.use[:, j] for block in blocks])
        noise = fit_noise(joined([r[:, j] for r in residuals]), use, dof[j], low=fit.covariance is None)
        found.append(_joint_residual(problem, j, blocks, residuals, noise))
        if fit.covariance is None:
            if fit.psi is not None:
                noise = fit_noise(joined([fit.psi(r)[:, j] for r in residuals]), use, dof[j])
            meat += fit.weights[j] ** 2 * _meat(problem, blocks, j, noise, share)
    if fit.covariance is None:
        P = fit.solution.inverse
        covariance = P @ meat @ P.T
    else:
        covariance = fit.covariance
    theta = model.base.expand(beta, model.nominal) if fit.parameters is None else fit.parameters
    blind = fit.solution.blind
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    deviation = np.where(unseen(blind), np.inf, deviation)
    full = full_deviation(model, deviation) if fit.deviation is None else fit.deviation
    if not (np.isfinite(theta).all() and np.isfinite(beta).all()):
        raise FloatingPointError(f"{name} came to parameters that are not finite")
    return Estimate(
        method=name,
        settings=dict(settings),
        model=model,
        parameters=frozen(theta),
        deviation=frozen(full),
        base_parameters=frozen(beta),
        base_covariance=frozen(covariance),
        blind=frozen(blind),
        converged=fit.converged,
        message=fit.message,
        iterations=fit.iterations,
        seconds=seconds,
        residuals=tuple(found),
        data_set=problem.data_set,
        about={**about, **({"fit": fit.about} if fit.about else {})},
        shapes=fit.shapes,
    )


def estimate(
    problem: Problem, estimator: Estimator, about: Mapping[str, Any] | None = None, progress: Progress = silent
) -> Estimate:
    """Solve a problem by a method and say how far to trust the answer."""
    started = time.perf_counter()
    with one_blas_thread():
        fit = estimator.fit(problem, progress)
        seconds = time.perf_counter() - started
        return conclude(problem, fit, estimator.name, _settings(estimator), seconds, dict(about or {}))
