"""Estimates that lean on the nominal model: Ridge and maximum a posteriori."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from ...errors import OptionError
from ..fit import Fit, Progress, silent
from ..problem import Problem
from ..solving import BLIND, Solution
from .least_squares import weighted

Array = NDArray[np.float64]


def prior_deviation(problem: Problem, relative: float) -> Array:
    """How far each parameter may be off the model: a share of itself, or of what is usual for its kind.

    A first moment or an inertia that happens to be zero is not known to be zero: it gets the share of its body's
    mass times a lever, the root of the mean inertia over mass.
    """
    model = problem.model
    theta = model.nominal
    deviation = relative * np.abs(theta)
    for body in model.robot.layout.bodies:
        part = theta[model.robot.layout.body(body)]
        mass = abs(part[0])
        size = np.sqrt(max(abs(part[4] + part[7] + part[9]) / 3.0 / mass, 1e-6)) if mass > 0 else 0.05
        usual = np.array([mass, *(mass * size,) * 3, *(mass * size**2,) * 6])
        where = model.robot.layout.body(body)
        deviation[where] = np.maximum(deviation[where], relative * usual)
    joint = slice(model.robot.layout.inertial.stop, len(theta))
    own = np.abs(theta[joint])
    typical = np.median(own[own > 0]) if (own > 0).any() else 1.0
    deviation[joint] = np.maximum(deviation[joint], np.where(own > 0, 0.0, typical))
    deviation[[model.robot.layout.index(name) for name in model.fixed]] = 0.0
    floor = 1e-9 * deviation.max(initial=1e-9)
    free = np.array([name not in model.fixed for name in model.names])
    return np.where(free, np.maximum(deviation, floor), 0.0)


def most_probable_width(s: Array, along: Array, low: float, high: float) -> float:
    """The width w of a Gaussian prior N(0, w²) under which the data are most probable, the evidence's maximum.

    Data along_k = s_k x_k + noise of unit variance have variance 1 + (w s_k)². MacKay, Bayesian interpolation, 1992.
    """

    def surprise(log_width: float) -> float:
        spread = 1.0 + (np.exp(log_width) * s) ** 2
        return float(0.5 * np.sum(np.log(spread) + along**2 / spread))

    # The surprise may have several dips: a coarse look finds the deepest.
    grid = np.linspace(np.log(low), np.log(high), 60)
    k = int(np.argmin([surprise(x) for x in grid]))
    bounds = (grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)])
    return float(np.exp(minimize_scalar(surprise, bounds=bounds, method="bounded").x))


@dataclass(frozen=True)
class MAP:
    """The most probable parameters under Gaussian noise and a Gaussian prior around the model.

    min ‖A B theta − y‖² + ‖(theta − theta_0)/s‖²: a posterior over all parameters, not only the base. The prior's
    width s is `relative` times what is usual for each parameter; where it is None the width is the one under which
    the data are most probable (the evidence). MacKay, Bayesian interpolation, 1992.
    """

    relative: float | None = None
    name = "MAP"

    def __post_init__(self) -> None:
        if self.relative is not None and not (np.isfinite(self.relative) and self.relative > 0):
            raise OptionError(f"the relative width of the prior is {self.relative}; give one above 0, as 0.3")

    def fit(self, problem: Problem, progress: Progress = silent) -> Fit:
        _, weights, _, _ = weighted(problem, 20, 1e-6)
        A, y = problem.stacked(weights)
        base = problem.model.base
        unit = prior_deviation(problem, 1.0)
        # In units of the prior, theta = theta_0 + unit·x; x shows through G, whose singular values say how well.
        G = (A @ base.projection) * unit
        U, s, Vt = np.linalg.svd(G, full_matrices=True)
        along = np.zeros(len(s))
        along[:] = (U.T @ (y - A @ problem.nominal))[: len(s)]

        if self.relative is None:
            width, how = most_probable_width(s, along, 1e-4, 1e3), "the evidence's choice"
        else:
            width, how = self.relative, "as given"
        gain = width**2 * s / (1.0 + (width * s) ** 2)
        x = Vt[: len(s)].T @ (gain * along)
        theta = problem.model.nominal + unit * x
        spread = np.full(len(Vt), width**2)
        spread[: len(s)] = width**2 / (1.0 + (width * s) ** 2)
        variance = (Vt.T**2) @ spread * unit**2
        half = base.projection * unit @ (Vt.T * np.sqrt(spread))
        solution = Solution(base.reduce(theta), half, np.zeros((problem.rank, 0)))
        message = f"prior {100 * width:.3g} % wide, {how}"
        return Fit(
            solution,
            weights,
            True,
            message,
            1,
            prior=np.linalg.pinv(half @ half.T) - A.T @ A,
            parameters=theta,
            deviation=np.sqrt(variance),
            about={"prior_width": width},
        )


@dataclass(frozen=True)
class Ridge:
    """min ‖A beta − y‖² + λ Σ ((beta_k − nominal_k)/usual_k)²; where λ is not given the evidence chooses it.

    A is weighted by joint; `usual` is what is usual for each base parameter, so that units do not decide.
    """

    strength: float | None = None
    name = "Ridge"

    def __post_init__(self) -> None:
        if self.strength is not None and not (np.isfinite(self.strength) and self.strength >= 0):
            raise OptionError(f"the strength of Ridge is {self.strength}; give 0 or more")

    def fit(self, problem: Problem, progress: Progress = silent) -> Fit:
        _, weights, _, _ = weighted(problem, 20, 1e-6)
        A, y = problem.stacked(weights)
        usual = np.sqrt(problem.model.base.projection**2 @ prior_deviation(problem, 1.0) ** 2)
        before = problem.nominal
        U, s, Vt = np.linalg.svd(A * usual, full_matrices=False)
        along = U.T @ (y - A @ before)
        if self.strength is None:
            strength, how = most_probable_width(s, along, 1e-4, 1e3) ** -2, "the evidence's choice"
        else:
            strength, how = self.strength, "as given"
        keep = (s > BLIND * s.max(initial=0.0)) | (strength > 0)
        s, Vt, along = s[keep], Vt[keep], along[keep]
        beta = before + (Vt.T @ (s / (s**2 + strength) * along)) * usual
        root = Vt.T / np.sqrt(s**2 + strength) * usual[:, None]
        message = f"strength {strength:.3g}, {how}; what the data do not show leans on the model"
        solution = Solution(beta, root, np.zeros((problem.rank, 0)))
        prior = strength * np.diag(usual**-2)
        return Fit(solution, weights, True, message, 1, prior=prior, about={"strength": strength})
