"""What an optimiser moves: base parameters, or log-Cholesky numbers under which every body is physical.

x ↦ theta(x),    ∂beta/∂x = B ∂theta/∂x
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import ModelError, OptionError, unknown_name
from ...robot.inertia import from_log_cholesky, log_cholesky, log_cholesky_jacobian
from ...robot.parameters import ALWAYS
from ..model import LinearModel

Array = NDArray[np.float64]

_DRY = "coulomb"
# Joint properties that no real joint has below zero.
_NOT_NEGATIVE = (*ALWAYS, _DRY)


class Parametrisation(Protocol):
    """What every parametrisation answers."""

    @property
    def first(self) -> Array: ...

    @property
    def size(self) -> Array:
        """What counts as a large change of each number."""
        ...

    @property
    def bounds(self) -> tuple[Array, Array]: ...

    def theta(self, x: Array) -> Array:
        """All parameters of the model."""
        ...

    def jacobian(self, x: Array) -> Array:
        """∂beta/∂x, (r, len x)."""
        ...


def base_sizes(model: LinearModel, deviation: Array) -> Array:
    """What counts as large in each base parameter, from what does in every parameter."""
    size = np.sqrt((model.base.projection**2) @ deviation**2)
    return np.where(size > 0, size, 1.0)


@dataclass(frozen=True, eq=False)
class BaseDirections:
    """x is beta; what the data cannot tell apart keeps its nominal value. Any dynamics that fit, physical or not."""

    model: LinearModel
    deviation: Array  # of all parameters: what counts as large
    within: Mapping[str, tuple[float, float]]  # bounds of parameters that are base parameters by themselves

    @property
    def first(self) -> Array:
        return np.clip(self.model.base.reduce(self.model.nominal), *self.bounds)

    @cached_property
    def size(self) -> Array:
        return base_sizes(self.model, self.deviation)

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        base, names = self.model.base, self.model.names
        lower, upper = np.full(base.rank, -np.inf), np.full(base.rank, np.inf)
        alone = {
            names[column]: k for k, (column, row) in enumerate(zip(base.kept, base.K, strict=True)) if not row.any()
        }
        # Simulated friction never drives: below zero a level changes nothing, and a search would not end.
        for name in (f"{dof}.{_DRY}" for dof in self.model.robot.layout.dofs):
            if name in alone:
                lower[alone[name]] = 0.0
        for name, (low, high) in self.within.items():
            if name not in alone:
                raise OptionError(unknown_name("parameter that the motion shows by itself", name, tuple(alone)))
            lower[alone[name]], upper[alone[name]] = low, high
        return lower, upper

    def theta(self, x: Array) -> Array:
        return self.model.base.expand(x, self.model.nominal)

    def jacobian(self, x: Array) -> Array:
        return np.eye(len(x))


@dataclass(frozen=True, eq=False)
class LogCholesky:
    """x has ten log-Cholesky numbers a body and the joint properties as they are, none below zero but the offset.

    Rucker, Wensing, "Smooth parameterization of rigid-body inertia", RA-L 2022.
    """

    model: LinearModel
    deviation: Array
    within: Mapping[str, tuple[float, float]]

    def __post_init__(self) -> None:
        if len(self.model.names) > self.model.robot.layout.size:
            raise OptionError("log-Cholesky numbers are of the robot's own bodies; leave out unknown loads")
        bodies = {name.rsplit(".", 1)[0] for name in self.model.fixed} & set(self.model.robot.layout.bodies)
        if bodies:
            raise OptionError(f"single parameters of {min(bodies)} cannot be fixed in log-Cholesky numbers; fix none")

    @property
    def _count(self) -> int:
        return len(self.model.robot.layout.bodies)

    def _bodies(self, x: Array) -> Array:
        return x[: 10 * self._count].reshape(-1, 10)

    @cached_property
    def first(self) -> Array:
        theta = self.model.nominal
        try:
            eta = log_cholesky(theta[: 10 * self._count].reshape(-1, 10))
        except ModelError as error:
            raise OptionError(
                f"the model that the search starts from is not physical: {error}; mend it (see `steelyard check`), or "
                "search base parameters (parametrisation='base')"
            ) from None
        return np.clip(np.concatenate([eta.ravel(), theta[10 * self._count :]]), *self.bounds)

    @cached_property
    def size(self) -> Array:
        eta = log_cholesky(self.model.nominal[: 10 * self._count].reshape(-1, 10))
        lengths = np.exp(eta[:, 1:4]).max(axis=1)
        size = np.ones_like(eta)
        size[:, 4:] = lengths[:, None]
        rest = self.deviation[10 * self._count :]
        return np.concatenate([size.ravel(), np.where(rest > 0, rest, 1.0)])

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        layout, count = self.model.robot.layout, 10 * self._count
        lower, upper = np.full(layout.size, -np.inf), np.full(layout.size, np.inf)
        for prop in layout.properties:
            if prop in _NOT_NEGATIVE:
                lower[layout.block(prop)] = 0.0
        for name, (low, high) in self.within.items():
            k = layout.index(name)
            if k < count:
                raise OptionError(f"{name} is no number of the log-Cholesky form; bound joint properties only")
            lower[k], upper[k] = max(low, lower[k]), high
        for name, value in self.model.fixed.items():
            # A search between equal bounds has no inside; this narrow one has, and rounds to the value.
            k = layout.index(name)
            lower[k], upper[k] = value, value + 1e-12 * max(1.0, abs(value))
        return lower, upper

    def theta(self, x: Array) -> Array:
        return np.concatenate([from_log_cholesky(self._bodies(x)).ravel(), x[10 * self._count :]])

    def jacobian(self, x: Array) -> Array:
        J = np.eye(len(x))
        for k, block in enumerate(log_cholesky_jacobian(self._bodies(x))):
            J[10 * k : 10 * k + 10, 10 * k : 10 * k + 10] = block
        return self.model.base.projection @ J


PARAMETRISATIONS: Mapping[str, type[BaseDirections | LogCholesky]] = {
    "base": BaseDirections,
    "log-cholesky": LogCholesky,
}
