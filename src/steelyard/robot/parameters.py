"""The one definition of the parameter vector: which numbers, in which order, under which names.

A body has ten numbers, `[m, mx, my, mz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz]`: mass, first moments, and inertia about the
body origin, in the body frame. After the bodies come blocks of one number a degree of freedom, in the order of
`JOINT_PROPERTIES`; a property that was not asked for has no block.

    tau = Y(q, qd, qdd) theta,    theta = [body 1, body 2, ..., armature, damping, coulomb, ...]
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..errors import ModelError, unknown_name

INERTIAL = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
INERTIAL_UNITS = ("kg", *("kg·m",) * 3, *("kg·m²",) * 6)

# What each joint property multiplies in the torque of its own joint; signs as in tau = ... + damping·qd + ...
JOINT_PROPERTIES = ("armature", "damping", "coulomb", "offset")
ALWAYS = ("armature", "damping")
FRICTION = tuple(name for name in JOINT_PROPERTIES if name not in ALWAYS)
# (rotary, linear)
PROPERTY_UNITS = {
    "armature": ("kg·m²", "kg"),
    "damping": ("N·m·s/rad", "N·s/m"),
    "coulomb": ("N·m", "N"),
    "offset": ("N·m", "N"),
}


@dataclass(frozen=True)
class ParameterLayout:
    """The columns of a regressor: ten a body, then one a degree of freedom and property."""

    bodies: tuple[str, ...]
    dofs: tuple[str, ...]
    properties: tuple[str, ...] = ALWAYS
    linear_dofs: frozenset[str] = frozenset()  # degrees of freedom in metres

    def __post_init__(self) -> None:
        for name in self.properties:
            if name not in JOINT_PROPERTIES:
                raise ModelError(unknown_name("joint property", name, JOINT_PROPERTIES))
        ordered = tuple(p for p in JOINT_PROPERTIES if p in self.properties)
        object.__setattr__(self, "properties", ordered)

    @cached_property
    def names(self) -> tuple[str, ...]:
        inertial = [f"{body}.{part}" for body in self.bodies for part in INERTIAL]
        return tuple(inertial + [f"{dof}.{prop}" for prop in self.properties for dof in self.dofs])

    @cached_property
    def units(self) -> tuple[str, ...]:
        joint = [PROPERTY_UNITS[p][dof in self.linear_dofs] for p in self.properties for dof in self.dofs]
        return tuple(INERTIAL_UNITS) * len(self.bodies) + tuple(joint)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self.names)}

    @property
    def size(self) -> int:
        return 10 * len(self.bodies) + len(self.properties) * len(self.dofs)

    def index(self, name: str) -> int:
        try:
            return self._index[name]
        except KeyError:
            raise ModelError(unknown_name("parameter", name, self.names)) from None

    def indices(self, names: Iterable[str]) -> np.ndarray:
        return np.array([self.index(name) for name in names], dtype=np.int64)

    def body(self, name: str) -> slice:
        """The ten columns of a body."""
        if name not in self.bodies:
            raise ModelError(unknown_name("identified body", name, self.bodies))
        start = 10 * self.bodies.index(name)
        return slice(start, start + 10)

    def block(self, prop: str) -> slice:
        """The columns of a joint property, in the order of `dofs`."""
        if prop not in self.properties:
            raise ModelError(unknown_name("joint property", prop, self.properties))
        start = 10 * len(self.bodies) + len(self.dofs) * self.properties.index(prop)
        return slice(start, start + len(self.dofs))

    @property
    def inertial(self) -> slice:
        """The columns of all bodies."""
        return slice(0, 10 * len(self.bodies))


def select(names: Sequence[str] | None, valid: Sequence[str], what: str) -> tuple[str, ...]:
    """The chosen names in the order of `valid`; all of them where nothing was chosen."""
    if names is None:
        return tuple(valid)
    for name in names:
        if name not in valid:
            raise ModelError(unknown_name(what, name, valid))
    if len(set(names)) != len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise ModelError(f"{what} '{twice}' is named twice; name it once")
    return tuple(name for name in valid if name in set(names))
