"""The design problem: Fourier coefficients in, criterion and constraints with their gradients out.

The free numbers are coordinates of the coefficients that leave the robot at rest at both ends. A gradient goes from
the information matrix to the regressor, from there by the adjoint to q, q̇, q̈, and through the basis to the
coefficients, so its price hardly depends on how many coefficients there are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..dynamics import BaseParameters, regressor, regressor_gradient
from ..robot.robot import Robot
from .constraints import Constraint, Motion
from .criteria import SHARPEST, Criterion
from .trajectory import Fourier, RestBasis, fourier_basis, rest_basis

Array = NDArray[np.float64]


# Five centimetres into a forbidden place weigh as much as twice the speed that is allowed.
_A_LONG_WAY = 0.05


def _weight(constraint: Constraint) -> float:
    return 1.0 / _A_LONG_WAY if constraint.in_metres else 1.0


@dataclass(frozen=True, eq=False)
class DesignProblem:
    """What to minimise and what to keep, for one robot and one period."""

    robot: Robot
    base: BaseParameters
    criterion: Criterion
    constraints: tuple[Constraint, ...]
    period: float
    harmonics: int
    samples: int
    weights: Array  # (n,) of the rows of the regressor
    start: Array | None = None
    information: Array | None = None  # of recordings that are there already
    evaluations: list[int] = field(default_factory=lambda: [0, 0])  # of the criterion, of its gradient

    @cached_property
    def t(self) -> Array:
        return np.linspace(0.0, self.period, self.samples, endpoint=False)

    @cached_property
    def _basis(self) -> tuple[Array, Array, Array]:
        return fourier_basis(self.t, self.period, self.harmonics)

    @cached_property
    def _rest(self) -> RestBasis:
        return rest_basis(self.period, self.harmonics, self.start)

    @property
    def size(self) -> int:
        """How many numbers are free."""
        return self._rest.free * self.robot.n

    def coefficients(self, x: Array) -> Array:
        """Fourier coefficients of the free numbers, a row [q0, a.., b..] a joint."""
        return self._rest.coefficients(x.reshape(self.robot.n, -1))

    def free_numbers(self, coefficients: Array) -> Array:
        """The free numbers nearest to given coefficients."""
        return self._rest.nearest(coefficients).ravel()

    def trajectory(self, x: Array) -> Fourier:
        return Fourier.from_coefficients(self.period, self.coefficients(x), self.robot.dof_names)

    def motion(self, x: Array, basis: tuple[Array, Array, Array] | None = None) -> Motion:
        """The samples of the design, or those of another basis."""
        c = self.coefficients(x).T
        q, qd, qdd = (B @ c for B in (basis or self._basis))
        return Motion(self.robot, q, qd, qdd)

    def _gradient(self, by_state: tuple[Array, Array, Array]) -> Array:
        by_coefficients = sum(g.T @ B for B, g in zip(self._basis, by_state, strict=True))
        return (by_coefficients @ self._rest.Z).ravel()

    def weighted_regressor(self, motion: Motion) -> Array:
        """W: rows weighted by joint, (samples·n, rank)."""
        Y = self.base.columns(regressor(self.robot, motion.q, motion.qd, motion.qdd))
        return (Y * self.weights[:, None]).reshape(-1, self.base.rank)

    def eigen(self, motion: Motion) -> tuple[Array, Array, Array]:
        """W and the eigenvalues and eigenvectors of the information."""
        W = self.weighted_regressor(motion)
        A = W.T @ W
        if self.information is not None:
            A += self.information
        eigenvalues, vectors = np.linalg.eigh(A)
        return W, np.maximum(eigenvalues, 0.0), vectors

    def value(self, motion: Motion) -> float:
        """The criterion's figure for people."""
        self.evaluations[0] += 1
        return self.criterion.value(self.eigen(motion)[1])

    def objective(self, x: Array) -> tuple[float, Array]:
        """What the optimiser minimises, and its gradient."""
        motion = self.motion(x)
        value, by_state = self.objective_of(motion)
        return value, self._gradient(by_state)

    def objective_of(self, motion: Motion, sharpness: float = SHARPEST) -> tuple[float, tuple[Array, Array, Array]]:
        """The objective of a motion and its derivatives by q, q̇ and q̈."""
        self.evaluations[1] += 1
        W, eigenvalues, vectors = self.eigen(motion)
        value, by_information = self.criterion.objective(eigenvalues, vectors, sharpness)
        by_W = (2.0 * W @ by_information).reshape(len(motion.q), self.robot.n, -1)
        by_Y = np.zeros((len(motion.q), self.robot.n, self.robot.layout.size))
        by_Y[:, :, self.base.kept] = by_W * self.weights[:, None]
        return value, regressor_gradient(self.robot, motion.q, motion.qd, motion.qdd, by_Y)

    def pressed(
        self, constraint: Constraint, values: Array, multipliers: Array, penalty: float, tightening: float
    ) -> Array:
        """The next multipliers: how hard each entry of a constraint presses."""
        return np.maximum(0.0, multipliers + penalty * _weight(constraint) * (values + tightening))

    def augmented(
        self,
        x: Array,
        multipliers: Sequence[Array],
        penalty: float,
        tightening: Array,
        sharpness: float = SHARPEST,
    ) -> tuple[float, Array]:
        """f + Σ (max(0, λ + μ(g + tightening))² − λ²) / 2μ, and its gradient."""
        motion = self.motion(x)
        value, total = self.objective_of(motion, sharpness)
        for constraint, lam, tighten in zip(self.constraints, multipliers, tightening, strict=True):
            pressed = self.pressed(constraint, constraint.values(motion), lam, penalty, tighten)
            value += float((pressed**2 - lam**2).sum()) / (2.0 * penalty)
            if pressed.any():
                pulled = constraint.pull_back(motion, _weight(constraint) * pressed)
                total = tuple(a + b for a, b in zip(total, pulled, strict=True))  # type: ignore[assignment]
        return value, self._gradient(total)
