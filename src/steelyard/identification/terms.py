"""Terms: columns that a regression may have beside the robot's own parameters.

Each term is linear in its parameters once its settings are given, and independent of all columns of the robot.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ..data.recording import Recording
from ..errors import OptionError
from ..robot.robot import Robot

Array = NDArray[np.float64]
_BRISTLES = "bristles"  # a channel: x and ż of LuGre's bristles


class Term(Protocol):
    """What every term answers: names and units of its parameters, their nominal values, and its columns."""

    def names(self, robot: Robot) -> tuple[str, ...]: ...

    def units(self, robot: Robot) -> tuple[str, ...]: ...

    def nominal(self, robot: Robot) -> Array: ...

    def columns(self, robot: Robot, block: Recording) -> Array:
        """(samples, n, parameters)."""
        ...


def _diagonal(values: Array) -> Array:
    """A column a joint, which acts on that joint alone."""
    out = np.zeros((*values.shape, values.shape[1]))
    k = np.arange(values.shape[1])
    out[:, k, k] = values
    return out


def _torque_units(robot: Robot, suffix: tuple[str, str] = ("", "")) -> tuple[str, ...]:
    linear = robot.layout.linear_dofs
    return tuple(("N" + suffix[1]) if dof in linear else ("N·m" + suffix[0]) for dof in robot.dof_names)


@dataclass(frozen=True)
class _JointTerm:
    """One parameter a degree of freedom, zero in the nominal model."""

    friction: ClassVar[bool] = False  # whether temperature acts on it

    def names(self, robot: Robot) -> tuple[str, ...]:
        return tuple(f"{dof}.{self._word}" for dof in robot.dof_names)

    def nominal(self, robot: Robot) -> Array:
        return np.zeros(robot.n)

    @property
    def _word(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True)
class StribeckTerm(_JointTerm):
    """What static friction has over Coulomb's: (Fs − Fc) exp(−|q̇/q̇s|^δ) sgn(q̇), q̇s and δ given."""

    friction: ClassVar[bool] = True
    velocity: tuple[float, ...] | float  # rad/s or m/s
    shape: tuple[float, ...] | float = 2.0

    def __post_init__(self) -> None:
        if not (np.all(np.isfinite(self.velocity)) and np.all(np.asarray(self.velocity) > 0)):
            raise OptionError(f"the Stribeck velocity is {self.velocity}; it must be above zero")
        if not (np.all(np.asarray(self.shape) > 0) and np.all(np.asarray(self.shape) < 20)):
            raise OptionError(f"the Stribeck shape is {self.shape}; it must be above zero (2 is usual)")

    @property
    def _word(self) -> str:
        return "stribeck"

    def units(self, robot: Robot) -> tuple[str, ...]:
        return _torque_units(robot)

    def columns(self, robot: Robot, block: Recording) -> Array:
        assert block.qd is not None
        fall = np.abs(block.qd / np.asarray(self.velocity)) ** np.asarray(self.shape)
        return _diagonal(np.sign(block.qd) * np.exp(-fall))


def _bristles(qd: Array, dt: Array, displacement: Array, rise: Array, velocity: Array) -> Array:
    """x of ẋ = (q̇ − |q̇| x/γ)/d from rest, γ = 1 + rise·exp(−(q̇/velocity)²); exact where q̇ is held between rows.

    x_k+1 = a_k x_k + b_k is summed by doubling: 1, 2, 4, … rows at once.
    """
    level = 1.0 + rise * np.exp(-((qd / velocity) ** 2))
    a = np.exp(-np.abs(qd) * dt[:, None] / (level * displacement))
    b = level * np.sign(qd) * (1.0 - a)
    reach = 1
    while reach < len(qd):
        b[reach:] += a[reach:] * b[:-reach]
        a[reach:] *= a[:-reach].copy()
        reach *= 2
    return b


@dataclass(frozen=True)
class LuGreTerm:
    """Bristles that bend before they slip: Fc x + σ1 ż + σ2 q̇ (σ2 is the damping), with z = d x and x as above.

    d = Fc/σ0 is how far bristles bend before they slip, `rise` is Fs/Fc − 1. Linear in Fc and σ1 where these are given.
    """

    friction: ClassVar[bool] = True
    whole: ClassVar[bool] = True
    displacement: tuple[float, ...]  # rad or m
    rise: tuple[float, ...]
    velocity: tuple[float, ...]  # rad/s or m/s

    def __post_init__(self) -> None:
        if min(*self.displacement, *self.velocity) <= 0 or min(self.rise) < 0:
            raise OptionError("LuGre's displacement and velocity must be above zero, its rise not below")

    def names(self, robot: Robot) -> tuple[str, ...]:
        return tuple(f"{dof}.{part}" for part in ("bristle_coulomb", "bristle_damping") for dof in robot.dof_names)

    def units(self, robot: Robot) -> tuple[str, ...]:
        return (*_torque_units(robot), *_torque_units(robot, ("·s/rad", "·s/m")))

    def nominal(self, robot: Robot) -> Array:
        return np.zeros(2 * robot.n)

    def prepared(self, robot: Robot, recording: Recording) -> Recording:
        qd = recording.qd
        assert qd is not None
        d, rise, velocity = (np.asarray(x) for x in (self.displacement, self.rise, self.velocity))
        x = _bristles(qd, np.gradient(recording.t), d, rise, velocity)
        rate = qd - np.abs(qd) * x / (1.0 + rise * np.exp(-((qd / velocity) ** 2)))
        return replace(recording, more={**recording.more, _BRISTLES: np.stack([x, rate], axis=2)})

    def columns(self, robot: Robot, block: Recording) -> Array:
        assert block.qd is not None
        # Where only the structure is asked for, no recording has been prepared.
        state = block.more.get(_BRISTLES, np.stack([np.sign(block.qd), block.qd], axis=2))
        return np.concatenate([_diagonal(state[:, :, k]) for k in (0, 1)], axis=2)


@dataclass(frozen=True)
class AsymmetricTerm(_JointTerm):
    """What damping has more in one direction than in the other: b |q̇|; Coulomb's asymmetry is the offset."""

    friction: ClassVar[bool] = True

    @property
    def _word(self) -> str:
        return "asymmetry"

    def units(self, robot: Robot) -> tuple[str, ...]:
        return _torque_units(robot, ("·s/rad", "·s/m"))

    def columns(self, robot: Robot, block: Recording) -> Array:
        assert block.qd is not None
        return _diagonal(np.abs(block.qd))


@dataclass(frozen=True)
class ViscousPowerTerm(_JointTerm):
    """Damping that grows with speed slower or faster than linearly: b |q̇|^p sgn(q̇)."""

    friction: ClassVar[bool] = True

    power: float = 3.0

    def __post_init__(self) -> None:
        if not (0 < self.power <= 10 and self.power != 1):
            raise OptionError(f"the power of viscous friction is {self.power}; give one above 0, up to 10, and not 1")

    @property
    def _word(self) -> str:
        return f"damping^{self.power:g}"

    def units(self, robot: Robot) -> tuple[str, ...]:
        p = f"{self.power:g}"
        return _torque_units(robot, (f"·(s/rad)^{p}", f"·(s/m)^{p}"))

    def columns(self, robot: Robot, block: Recording) -> Array:
        assert block.qd is not None
        return _diagonal(np.sign(block.qd) * np.abs(block.qd) ** self.power)


@dataclass(frozen=True)
class SpringTerm(_JointTerm):
    """A spring in each joint: k (q − rest)."""

    rest: tuple[float, ...] | float = 0.0

    @property
    def _word(self) -> str:
        return "stiffness"

    def units(self, robot: Robot) -> tuple[str, ...]:
        return _torque_units(robot, ("/rad", "/m"))

    def columns(self, robot: Robot, block: Recording) -> Array:
        return _diagonal(block.q - np.asarray(self.rest))


@dataclass(frozen=True)
class CouplingTerm:
    """Friction and inertia of a motor that two joints turn together: of s = q̇_motor + ratio q̇_joint.

    Its torque c sgn(s) + b s + J ṡ acts on both joints, on the second times the ratio, as in the wrists of many arms.
    """

    motor: str
    joint: str
    ratio: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.ratio) and self.ratio) or self.motor == self.joint:
            raise OptionError(f"the coupling of {self.motor} with {self.joint} by {self.ratio} is none")

    def names(self, robot: Robot) -> tuple[str, ...]:
        return tuple(f"{self.motor}+{self.joint}.{part}" for part in ("armature", "damping", "coulomb"))

    def units(self, robot: Robot) -> tuple[str, ...]:
        return ("kg·m²", "N·m·s/rad", "N·m")

    def nominal(self, robot: Robot) -> Array:
        return np.zeros(3)

    def columns(self, robot: Robot, block: Recording) -> Array:
        if not {self.motor, self.joint} <= set(robot.dof_names):
            raise OptionError(f"{robot.name} has no joints {self.motor} and {self.joint} for a coupling of motors")
        i, j = robot.dof_names.index(self.motor), robot.dof_names.index(self.joint)
        assert block.qd is not None
        assert block.qdd is not None
        speed = block.qd[:, i] + self.ratio * block.qd[:, j]
        values = np.column_stack([block.qdd[:, i] + self.ratio * block.qdd[:, j], speed, np.sign(speed)])
        out = np.zeros((len(block), robot.n, 3))
        out[:, i], out[:, j] = values, self.ratio * values
        return out


def couplings(gear: Mapping[str, Any]) -> tuple[CouplingTerm, ...]:
    """The coupled motors of a gear, as a sidecar or a mapping file states it."""
    ratio = dict(zip(gear.get("joints", ()), gear.get("ratio", ()), strict=False))
    return tuple(
        CouplingTerm(c["motor_of"], c["joint"], float(c["ratio"]) / float(ratio[c["motor_of"]]))
        for c in gear.get("coupling", ())
    )


TERMS: dict[str, Term] = {
    "asymmetric": AsymmetricTerm(),
    "cubic": ViscousPowerTerm(3.0),
    "sqrt": ViscousPowerTerm(0.5),
    "spring": SpringTerm(),
}
