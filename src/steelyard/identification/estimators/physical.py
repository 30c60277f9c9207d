"""Parameters that bodies can have, on top of any estimator."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..fit import Estimator, Fit, Progress, silent
from ..physical import PhysicalFit, PhysicalSettings, solve_physical
from ..problem import Problem
from ..solving import Solution
from .least_squares import WLS

Array = NDArray[np.float64]

_DEPENDENT = 1e-10
_NAMED = 8  # active constraints in a message


def information(solution: Solution) -> Array:
    """R with RᵀR the information that a solution has of its base parameters: R root = 1, and R blind = 0."""
    if solution.root.shape[1] + solution.blind.shape[1] == len(solution.root):
        basis = np.column_stack([solution.root, solution.blind])
        size = np.linalg.norm(basis, axis=0)
        return np.asarray(np.linalg.inv(basis / size) / size[:, None])[: solution.root.shape[1]]
    # A prior's root has more columns than rows.
    U, s, _ = np.linalg.svd(solution.root, full_matrices=False)
    seen = s > _DEPENDENT * s.max(initial=0.0)
    return (U[:, seen] / s[seen]).T


def residual_squares(problem: Problem, fit: Fit) -> float:
    """Squares of the residuals as the estimator weighted them."""
    return float(fit.weights @ problem.factors.squares(fit.beta))


def _message(fit: PhysicalFit, inner: Fit, squares: float) -> str:
    growth = 100 * (np.sqrt(1 + fit.objective / squares) - 1) if squares > 0 else 0.0
    told = f"physical ({fit.message}), for which the residual grows by {growth:.2g} %"
    if fit.active:
        more = f" and {len(fit.active) - _NAMED} more" if len(fit.active) > _NAMED else ""
        told += f"; held by {', '.join(fit.active[:_NAMED])}{more}: intervals are those without constraints"
    if fit.regularised:
        told += f"; for the prior {'; '.join(fit.regularised)}"
    return told if inner.message == "solved" else f"{inner.message}; {told}"


@dataclass(frozen=True, kw_only=True)
class Physical(PhysicalSettings):
    """The parameters that bodies and joints can have nearest to an inner estimate, as near as its data make it sure.

    min (β − β̂)ᵀ C⁻¹ (β − β̂) + w P(θ),  β = B θ,  over all θ with J_b ⪰ 0 and the other settings. For least squares this
    is the constrained fit itself; for a robust estimator it has the weights that it came to. All parameters are full:
    ready for a model file. The covariance is that of the inner estimate.
    """

    inner: Estimator = field(default_factory=WLS)

    @property
    def name(self) -> str:
        return f"Physical {self.inner.name}"

    def fit(self, problem: Problem, progress: Progress = silent) -> Fit:
        inner = self.inner.fit(problem, progress)
        progress("making the bodies possible", 0.9)
        if inner.shapes:
            problem = problem if inner.problem is None else inner.problem  # whose terms have the shapes that were found
        model, squares = problem.model, residual_squares(problem, inner)
        # One where the estimator knows the noise and weights by it, or has rows of its own, which are of unit variance.
        rows = max(1, int(problem.factors.rows.sum()) - problem.rank)
        noise = float(np.sqrt(squares / rows)) if inner.weights.any() else 1.0
        R = information(inner.solution)
        p, loads = model.robot.layout.size, [name for name, _ in model.loads]
        every = np.arange(len(model.names))
        terms = (every >= p) & (every < len(every) - 10 * len(loads))

        # What has no constraints is taken out exactly: the rest is fitted to what terms cannot explain.
        columns, y = R @ model.base.projection, R @ (inner.beta - problem.nominal)
        U, s, _ = np.linalg.svd(columns[:, terms], full_matrices=False)
        Q = U[:, s > _DEPENDENT * s.max(initial=0.0)]
        bodies = columns[:, ~terms]
        nominal = model.nominal[~terms]
        A, rest = bodies - Q @ (Q.T @ bodies), y - Q @ (Q.T @ y)
        settings = replace(self, fixed={**model.fixed, **self.fixed})
        found = solve_physical(A, rest + A @ nominal, model.robot, settings, None, nominal, noise, loads)

        theta = model.nominal.copy()
        theta[~terms] = found.parameters
        left = y - bodies @ (found.parameters - nominal)
        theta[terms] += np.linalg.lstsq(columns[:, terms], left, rcond=_DEPENDENT)[0]
        about = {
            "solver": found.status,
            "prior_weight": found.weight,
            "prior": found.prior,
            "cost": found.objective,
            "margins": dict(found.margins),
            "active": list(found.active),
            "regularised": list(found.regularised),
            **({"inner": inner.about} if inner.about else {}),
        }
        return replace(
            inner,
            solution=replace(inner.solution, beta=model.base.reduce(theta)),
            converged=inner.converged and found.converged,
            message=_message(found, inner, squares),
            iterations=inner.iterations + found.iterations,
            parameters=theta,
            about=about,
        )
