"""Least squares by two small neural networks, for comparison: Adaline and Hopfield–Tank.

Both descend the same parabola, ‖A beta − y‖², that OLS jumps to the bottom of; columns have length one, so that the
rate does not depend on units. They are slow where the motion is badly conditioned, and say so.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import OptionError
from ..fit import Fit, Progress, rank_message, silent
from ..problem import Problem
from ..solving import Solution, solve
from .bayes import prior_deviation

Array = NDArray[np.float64]
# Looks at the stopping rule so often.
_EVERY = 200


@dataclass(frozen=True, eq=False)
class _Parabola:
    """½ zᵀG z − bᵀz over z, the deviation from the nominal beta in units of the columns' lengths."""

    G: Array
    b: Array
    scale: Array
    top: float  # the largest eigenvalue of G
    floor: float  # its least value, half of −bᵀG⁺b

    @classmethod
    def of(cls, problem: Problem) -> "_Parabola":
        A, y = problem.stacked()
        norms = np.linalg.norm(A, axis=0)
        scale = 1.0 / np.where(norms > 0, norms, 1.0)
        scaled, rest = A * scale, y - A @ problem.nominal
        G, b = scaled.T @ scaled, scaled.T @ rest
        s = np.linalg.svd(scaled, compute_uv=False)
        return cls(G, b, scale, float(s[0] ** 2), -0.5 * float(b @ np.linalg.lstsq(scaled, rest, rcond=None)[0]))

    def left(self, z: Array) -> float:
        """What share of the descent from the nominal is still to be made."""
        value = 0.5 * z @ self.G @ z - self.b @ z
        return float((value - self.floor) / max(-self.floor, np.finfo(float).tiny))


def _descend(
    parabola: _Parabola, step: Callable[[Array], Array], state: Array, read: Callable[[Array], Array],
    tolerance: float, most: int, what: str, progress: Progress,
) -> tuple[Array, int, bool]:  # fmt: skip
    """Steps until the share of the descent that is left is within the tolerance."""
    done = 0
    while done < most:
        for _ in range(min(_EVERY, most - done)):
            state = step(state)
        done += min(_EVERY, most - done)
        progress(what, done / most)
        if parabola.left(read(state)) <= tolerance:
            return read(state), done, True
    return read(state), done, False


def _fit(problem: Problem, parabola: _Parabola, z: Array, done: int, settled: bool) -> Fit:
    exact = solve(*problem.stacked(), problem.nominal)
    left = max(parabola.left(z), 0.0)
    told = f"{'solved' if settled else 'not at rest'} after {done} epochs; {left:.1e} of the descent was left"
    lost = rank_message(problem, exact)
    return Fit(
        Solution(problem.nominal + parabola.scale * z, exact.root, exact.blind),
        np.ones(problem.robot.n),
        settled,
        f"{told}; {lost}" if lost else told,
        done,
        about={"epochs": done, "descent_left": left},
    )


def _check(name: str, tolerance: float, epochs: int) -> None:
    if not (tolerance > 0 and epochs >= 1):
        raise OptionError(f"{name}: tolerance {tolerance} and epochs {epochs} must both be above zero")


@dataclass(frozen=True)
class Adaline:
    """One linear neuron a torque: beta ← beta + η Wᵀ(tau − W beta), an epoch over all rows at a time.

    With `momentum` the last step is carried on. The rate is a share of the largest that converges, 2/λmax(WᵀW).
    Widrow, Hoff, "Adaptive switching circuits", 1960. It stops when `tolerance` of the descent is left.
    """

    rate: float = 0.5
    momentum: float = 0.95
    tolerance: float = 1e-10
    epochs: int = 200_000
    name = "Adaline"

    def __post_init__(self) -> None:
        _check(self.name, self.tolerance, self.epochs)
        if not (0 < self.rate < 1 and 0 <= self.momentum < 1):
            raise OptionError(
                f"Adaline's rate {self.rate} must be between 0 and 1, its momentum {self.momentum} below 1"
            )

    def fit(self, problem: Problem, progress: Progress = silent) -> Fit:
        parabola = _Parabola.of(problem)
        eta = self.rate * 2.0 / parabola.top

        def step(state: Array) -> Array:
            z, last = state
            change = self.momentum * last + eta * (parabola.b - parabola.G @ z)
            return np.stack([z + change, change])

        z, done, settled = _descend(
            parabola, step, np.zeros((2, problem.rank)), lambda state: state[0],
            self.tolerance, self.epochs, "Adaline", progress,
        )  # fmt: skip
        return _fit(problem, parabola, z, done, settled)


@dataclass(frozen=True)
class HopfieldTank:
    """A network whose energy is the sum of squares: u̇ = −∂E/∂beta, beta = nominal + c tanh(u/c), by Euler steps.

    No parameter can leave nominal ± c, c `reach` times what is usual for it: a box that OLS does not have. Hopfield,
    Tank, "Neural computation of decisions in optimization problems", Biological Cybernetics 1985; for robots: Atencia,
    Joya, Sandoval, "Parametric identification of robotic systems with stable time-varying Hopfield networks", 2004.
    """

    reach: float = 20.0
    rate: float = 0.9
    tolerance: float = 1e-10
    epochs: int = 200_000
    name = "HopfieldTank"

    def __post_init__(self) -> None:
        _check(self.name, self.tolerance, self.epochs)
        if not (0 < self.rate < 1 and self.reach > 0):
            raise OptionError(
                f"HopfieldTank's rate {self.rate} must be between 0 and 1, its reach {self.reach} above 0"
            )

    def fit(self, problem: Problem, progress: Progress = silent) -> Fit:
        parabola = _Parabola.of(problem)
        deviation = np.sqrt((problem.model.base.projection**2) @ prior_deviation(problem, 1.0) ** 2)
        c = self.reach * np.where(deviation > 0, deviation, 1.0) / parabola.scale
        # tanh has a slope of one at most, so the parabola's own limit of stability holds.
        eta = self.rate * 2.0 / parabola.top

        def outputs(u: Array) -> Array:
            return np.asarray(c * np.tanh(u / c))

        u, done, settled = _descend(
            parabola, lambda u: u + eta * (parabola.b - parabola.G @ outputs(u)), np.zeros(problem.rank), outputs,
            self.tolerance, self.epochs, "Hopfield–Tank", progress,
        )  # fmt: skip
        return _fit(problem, parabola, u, done, settled)
