"""What settles the directions that the data do not see: three ways to be near a nominal model, as functions of x.

    entropic   Σ_b  tr X_b − log|X_b| − 4     (Lee, Wensing, Park, T-RO 2020), and ½‖x‖² of the joints
    pullback   ½‖x‖²                          (Lee, Park, RA-L 2018)
    euclidean  ½‖θ − θ0‖²                     in SI units

The first two do not depend on frames or units and agree to second order about the nominal model.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...robot.parameters import INERTIAL, ParameterLayout
from .conic import smat, svec
from .metric import nominal_metric
from .program import Model

Array = NDArray[np.float64]
Prior = Literal["entropic", "pullback", "euclidean"]
PRIORS = ("entropic", "pullback", "euclidean")


@dataclass(frozen=True, eq=False)
class Coordinates:
    """θ = origin + D x, svec X_b = constant_b + rows_b x of the bodies that are free to change, and a prior."""

    origin: Array
    D: Array
    kind: Prior
    rows: Array  # (nb, 10, p)
    constant: Array  # (nb, 10)
    names: tuple[str, ...]  # of the free bodies
    in_free_body: NDArray[np.bool_]  # of every parameter
    regularised: tuple[str, ...]

    def bodies(self, x: Array) -> Array:
        """Every free X_b, (nb, 4, 4)."""
        return smat(self.rows @ x + self.constant)

    def eigenvalues(self, x: NDArray) -> Array:
        """Of every free X_b, ascending."""
        values: Array = np.linalg.eigvalsh(self.bodies(x)).astype(np.float64)
        return values

    def _quadratic(self) -> Array:
        """Q of the part ½ xᵀQx of the prior."""
        if self.kind == "euclidean":
            return self.D.T @ self.D
        return np.diag(np.where(self.in_free_body & (self.kind == "entropic"), 0.0, 1.0))

    def prior(self, x: Array) -> float:
        quadratic = 0.5 * float(x @ self._quadratic() @ x)
        if self.kind != "entropic":
            return quadratic
        eigenvalues = self.eigenvalues(x)
        if np.any(eigenvalues <= 0):
            return np.inf
        return quadratic + float(np.sum(eigenvalues - 1 - np.log(eigenvalues)))

    def model(self, smallest: float) -> Model:
        """The prior and the bodies' cones, for `build`."""
        return Model(self._quadratic(), self.kind == "entropic", self.rows, self.constant, smallest)


def coordinates(
    layout: ParameterLayout, nominal: Array, unknown: Array, kind: Prior, fixed: Mapping[str, float]
) -> Coordinates:
    """Coordinates about a nominal model; bodies of which all ten parameters are fixed have no cone and no prior."""
    metric, nb = nominal_metric(layout, nominal, unknown), len(layout.bodies)
    D, whitening = metric.to_parameters, metric.whitening
    free = [b for b, name in enumerate(layout.bodies) if not all(f"{name}.{part}" in fixed for part in INERTIAL)]
    rows = np.einsum("bij,bjp->bip", whitening, D[: 10 * nb].reshape(nb, 10, layout.size))
    rows[np.abs(rows) < 1e-12 * np.abs(rows).max(initial=0.0)] = 0.0
    constant = svec(metric.whiten(nominal[: 10 * nb].reshape(nb, 10)))
    in_free_body = np.zeros(layout.size, dtype=bool)
    in_free_body[: 10 * nb] = np.repeat(np.isin(np.arange(nb), free), 10)
    names = tuple(layout.bodies[b] for b in free)
    return Coordinates(nominal, D, kind, rows[free], constant[free], names, in_free_body, metric.regularised)
