"""Friction under conditions: laws that wrap another law, and make it depend on temperature or on the joint's load."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..errors import OptionError
from .friction import FrictionLaw
from .kernels import friction as table
from .kernels.friction import REFERENCE_TEMPERATURE
from .settings import Finite, NotNegative

Array = np.ndarray


class _Wrapped(FrictionLaw):
    """A law whose torque depends on one thing more."""

    law: FrictionLaw

    def __post_init__(self) -> None:
        super().__post_init__()
        inner: Any = self.law
        if not isinstance(inner, FrictionLaw):
            raise OptionError(f"{self.label}: {inner!r} is not a friction law; give one, as Stribeck(...)")
        if None is not inner.joints != super().joints is not None:
            raise OptionError(f"{self.label} has {super().joints} joints, its law {inner.joints}; give as many")
        while isinstance(inner, _Wrapped):
            if isinstance(inner, type(self)):
                raise OptionError(f"{self.label} stands twice around one law; join the two into one")
            inner = inner.law
        object.__setattr__(self, "state", inner.state)

    @property
    def joints(self) -> int | None:
        return super().joints or self.law.joints

    def parameters(self) -> dict[str, Array]:
        return self.law.parameters()

    def fastest_rate(self, inertia: ArrayLike, speed: ArrayLike) -> Array:
        return self.law.fastest_rate(inertia, speed)

    def sliding_rate(self, inertia: ArrayLike, speed: ArrayLike) -> Array:
        return self.law.sliding_rate(inertia, speed)

    def _grip(self, load: ArrayLike) -> Any:
        return self.law._grip(load)

    def _warmth(self, temperature: ArrayLike) -> Any:
        return self.law._warmth(temperature)

    def _torque(self, qd: Array, grip: Any, z: ArrayLike | None) -> Array:
        return self.law._torque(qd, grip, z)

    def _zdot(self, qd: Array, z: Array, grip: Any) -> Array:
        return self.law._zdot(qd, z, grip)

    def _derivative(self, qd: Array, grip: Any) -> Array:
        return self.law._derivative(qd, grip)

    def _columns(self, qd: Array, load: Array) -> dict[str, Array]:
        return self.law._columns(qd, load)

    def _standstill(self, grip: Any) -> tuple[Array, Array]:
        return self.law._standstill(grip)


@dataclass(frozen=True, eq=False)
class Temperature(_Wrapped):
    """All friction of a law changes with temperature: F(T) = F(T0) [1 + α (T − T0)], and 0 where that is negative."""

    label: ClassVar[str] = "friction by temperature"
    law: FrictionLaw
    coefficient: Finite  # α, 1/K
    reference: Finite = REFERENCE_TEMPERATURE  # T0, °C

    def __post_init__(self) -> None:
        super().__post_init__()
        problem = f"which leaves no friction at {REFERENCE_TEMPERATURE:g} °C, where tables are kept"
        self.require(self._warmth(REFERENCE_TEMPERATURE) > 0, "coefficient", self.coefficient, problem)

    def packed(self, n: int) -> tuple[int, Array]:
        code, rows = self.law.packed(n)
        # The same straight line, told from the kernels' reference temperature.
        at_reference, coefficient = self.rows(n, self._warmth(REFERENCE_TEMPERATURE), self.coefficient).T
        rows[:, table.SCALES[code]] *= at_reference[:, None]
        rows[:, table.WARMING] = coefficient / at_reference
        return code, rows

    def _warmth(self, temperature: ArrayLike) -> Any:
        T = np.asarray(temperature, dtype=float)
        return np.maximum(0.0, 1.0 + self.coefficient * (T - self.reference))


@dataclass(frozen=True, eq=False)
class LoadDependent(_Wrapped):
    """Coulomb levels, Fc and Fs alike, grow with the load of the joint: Fc (1 + β |load|), linear in Fc and β Fc."""

    label: ClassVar[str] = "friction by load"
    law: FrictionLaw
    coefficient: NotNegative  # β, 1/(N·m)
    _levels: ClassVar[tuple[str, ...]] = ("coulomb", "coulomb_forward", "coulomb_backward", "stribeck")

    def parameters(self) -> dict[str, Array]:
        own = self.law.parameters()
        return own | {f"{name}_load": self.coefficient * own[name] for name in self._levels if name in own}

    def packed(self, n: int) -> tuple[int, Array]:
        code, rows = self.law.packed(n)
        rows[:, table.LOADING] = self.rows(n, self.coefficient)[:, 0]
        return code, rows

    def _grip(self, load: ArrayLike) -> Any:
        return 1.0 + self.coefficient * np.abs(np.asarray(load, dtype=float))

    def _columns(self, qd: Array, load: Array) -> dict[str, Array]:
        own = self.law._columns(qd, load)
        return own | {f"{name}_load": own[name] * load for name in self._levels if name in own}
