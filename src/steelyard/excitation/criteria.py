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
# Power of the smooth stand-ins for extreme eigenvalues, where nothing else is said: within n^(1/2p) of the extreme.
SHARPEST = 64.0


class Criterion(Protocol):
    """A measure of an information matrix; smaller is better."""

    @property
    def name(self) -> str: ...

    def value(self, eigenvalues: Array) -> float:
        """The figure for people, from the eigenvalues in ascending order."""
        ...

    def objective(self, eigenvalues: Array, vectors: Array, sharpness: float = SHARPEST) -> tuple[float, Array]:
        """What the optimiser minimises, a smooth stand-in for the logarithm of the figure, and its derivative by A."""
        ...


def _floored(eigenvalues: Array) -> Array:
    return np.maximum(eigenvalues, _SINGULAR * eigenvalues[-1])


def _sum(weights: Array, vectors: Array) -> Array:
    return (vectors * weights) @ vectors.T


def _soft_largest(eigenvalues: Array, sharpness: float) -> tuple[float, Array]:
    """log (Σ λ^p)^(1/p), a smooth stand-in for log λmax, and its derivative by every λ; p < 0 stands for −log λmin.

    The extreme eigenvalues cross on the way to an optimum, and there they have no derivative: a gradient method stops
    at such a kink. The stand-in has none, and tends to the extreme as p grows.
    """
    logs = np.log(eigenvalues)
    top = logs.max() if sharpness > 0 else logs.min()
    powers = np.exp(sharpness * (logs - top))
    return float(np.log(powers.sum()) / abs(sharpness) + np.sign(sharpness) * top), (
        np.sign(sharpness) * powers / (powers.sum() * eigenvalues)
    )


@dataclass(frozen=True)
class Condition:
    """cond(W) = σmax / σmin."""

    name: str = "cond"

    def value(self, eigenvalues: Array) -> float:
        kept = _floored(eigenvalues)
        return float(np.sqrt(kept[-1] / kept[0]))

    def objective(self, eigenvalues: Array, vectors: Array, sharpness: float = SHARPEST) -> tuple[float, Array]:
        kept = _floored(eigenvalues)
        largest, by_largest = _soft_largest(kept, sharpness)
        smallest, by_smallest = _soft_largest(kept, -sharpness)
        return 0.5 * (largest + smallest), _sum(0.5 * (by_largest + by_smallest), vectors)


@dataclass(frozen=True)
class LogDet:
    """D-optimality: −log det(WᵀW), the volume of the confidence ellipsoid; it does not depend on units."""

    name: str = "logdet"

    def value(self, eigenvalues: Array) -> float:
        return float(-np.log(_floored(eigenvalues)).sum())

    def objective(self, eigenvalues: Array, vectors: Array, sharpness: float = SHARPEST) -> tuple[float, Array]:
        count = len(eigenvalues)
        return self.value(eigenvalues) / count, _sum(-1.0 / (count * _floored(eigenvalues)), vectors)


@dataclass(frozen=True)
class EOptimal:
    """E-optimality: 1/σmin, the length of the worst axis of the confidence ellipsoid."""

    name: str = "e"

    def value(self, eigenvalues: Array) -> float:
        return float(1.0 / np.sqrt(_floored(eigenvalues)[0]))

    def objective(self, eigenvalues: Array, vectors: Array, sharpness: float = SHARPEST) -> tuple[float, Array]:
        smallest, by_smallest = _soft_largest(_floored(eigenvalues), -sharpness)
        return 0.5 * smallest, _sum(0.5 * by_smallest, vectors)


@dataclass(frozen=True)
class AOptimal:
    """A-optimality: tr((WᵀW)⁻¹), the sum of the variances."""

    name: str = "a"

    def value(self, eigenvalues: Array) -> float:
        return float((1.0 / _floored(eigenvalues)).sum())

    def objective(self, eigenvalues: Array, vectors: Array, sharpness: float = SHARPEST) -> tuple[float, Array]:
        kept = _floored(eigenvalues)
        total = self.value(eigenvalues)
        return float(np.log(total)), _sum(-1.0 / (kept**2 * total), vectors)


@dataclass(frozen=True)
class ConditionAndSmallest:
    """cond(W) + 100/σmin, BIRDy's criterion."""

    name: str = "birdy"

    def value(self, eigenvalues: Array) -> float:
        return Condition().value(eigenvalues) + 100.0 * EOptimal().value(eigenvalues)

    def objective(self, eigenvalues: Array, vectors: Array, sharpness: float = SHARPEST) -> tuple[float, Array]:
        of_condition, by_condition = Condition().objective(eigenvalues, vectors, sharpness)
        of_smallest, by_smallest = EOptimal().objective(eigenvalues, vectors, sharpness)
        condition, smallest = np.exp(of_condition), 100.0 * np.exp(of_smallest)
        total = condition + smallest
        return float(np.log(total)), (condition * by_condition + smallest * by_smallest) / total


CRITERIA: dict[str, Criterion] = {
    criterion.name: criterion for criterion in (Condition(), LogDet(), EOptimal(), AOptimal(), ConditionAndSmallest())
}


def criterion_named(name: str) -> Criterion:
    """A criterion by its name on the command line."""
    if name not in CRITERIA:
        raise OptionError(unknown_name("criterion", name, CRITERIA))
    return CRITERIA[name]
