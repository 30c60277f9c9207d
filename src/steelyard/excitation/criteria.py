"""How visible a motion makes the parameters: numbers to minimise, of the information matrix A = WᵀW, and ∂/∂A.

W is the base regressor of the motion, its rows weighted joint by joint. With f(A), the derivative by the regressor is
∂f/∂W = 2 W ∂f/∂A.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import OptionError, unknown_name

Array = NDArray[np.float64]

# An information matrix whose eigenvalues span more than this is singular as far as doubles can tell.
_SINGULAR = 1e-14


class Criterion(Protocol):
    """A measure of an information matrix; smaller is better."""

    @property
    def name(self) -> str: ...

    def value(self, eigenvalues: Array) -> float:
        """The figure for people, from the eigenvalues in ascending order."""
        ...

    def objective(self, eigenvalues: Array, vectors: Array) -> tuple[float, Array]:
        """What the optimiser minimises, a monotone function of the figure, and its derivative by A."""
        ...


def _floored(eigenvalues: Array) -> Array:
    return np.maximum(eigenvalues, _SINGULAR * eigenvalues[-1])


def _sum(weights: Array, vectors: Array) -> Array:
    return (vectors * weights) @ vectors.T


@dataclass(frozen=True)
class Condition:
    """cond(W) = σmax / σmin."""

    name: str = "cond"

    def value(self, eigenvalues: Array) -> float:
        kept = _floored(eigenvalues)
        return float(np.sqrt(kept[-1] / kept[0]))

    def objective(self, eigenvalues: Array, vectors: Array) -> tuple[float, Array]:
        kept = _floored(eigenvalues)
        first, last = vectors[:, 0], vectors[:, -1]
        gradient = 0.5 * (np.outer(last, last) / kept[-1] - np.outer(first, first) / kept[0])
        return float(np.log(self.value(eigenvalues))), gradient


@dataclass(frozen=True)
class LogDet:
    """D-optimality: −log det(WᵀW), the volume of the confidence ellipsoid; it does not depend on units."""

    name: str = "logdet"

    def value(self, eigenvalues: Array) -> float:
        return float(-np.log(_floored(eigenvalues)).sum())

    def objective(self, eigenvalues: Array, vectors: Array) -> tuple[float, Array]:
        count = len(eigenvalues)
        return self.value(eigenvalues) / count, _sum(-1.0 / (count * _floored(eigenvalues)), vectors)


@dataclass(frozen=True)
class EOptimal:
    """E-optimality: 1/σmin, the length of the worst axis of the confidence ellipsoid."""

    name: str = "e"

    def value(self, eigenvalues: Array) -> float:
        return float(1.0 / np.sqrt(_floored(eigenvalues)[0]))

    def objective(self, eigenvalues: Array, vectors: Array) -> tuple[float, Array]:
        least = _floored(eigenvalues)[0]
        return float(-0.5 * np.log(least)), -0.5 * np.outer(vectors[:, 0], vectors[:, 0]) / least


@dataclass(frozen=True)
class AOptimal:
    """A-optimality: tr((WᵀW)⁻¹), the sum of the variances."""

    name: str = "a"

    def value(self, eigenvalues: Array) -> float:
        return float((1.0 / _floored(eigenvalues)).sum())

    def objective(self, eigenvalues: Array, vectors: Array) -> tuple[float, Array]:
        kept = _floored(eigenvalues)
        total = self.value(eigenvalues)
        return float(np.log(total)), _sum(-1.0 / (kept**2 * total), vectors)


@dataclass(frozen=True)
class ConditionAndSmallest:
    """cond(W) + 100/σmin, BIRDy's criterion."""

    name: str = "birdy"

    def value(self, eigenvalues: Array) -> float:
        return Condition().value(eigenvalues) + 100.0 * EOptimal().value(eigenvalues)

    def objective(self, eigenvalues: Array, vectors: Array) -> tuple[float, Array]:
        total = self.value(eigenvalues)
        condition, smallest = Condition().value(eigenvalues), 100.0 * EOptimal().value(eigenvalues)
        _, by_condition = Condition().objective(eigenvalues, vectors)
        _, by_smallest = EOptimal().objective(eigenvalues, vectors)
        return float(np.log(total)), (condition * by_condition + smallest * by_smallest) / total


CRITERIA: dict[str, Criterion] = {
    criterion.name: criterion for criterion in (Condition(), LogDet(), EOptimal(), AOptimal(), ConditionAndSmallest())
}


def criterion_named(name: str) -> Criterion:
    """A criterion by its name on the command line."""
    if name not in CRITERIA:
        raise OptionError(unknown_name("criterion", name, CRITERIA))
    return CRITERIA[name]
