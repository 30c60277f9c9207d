"""Which bodies and joints cannot exist, why, and by how much: a report, not a flag.

A body with mass is possible if and only if its principal moments about the centre of mass obey the triangle inequality
(Traversaro et al., IROS 2016): this is the same as a pseudo-inertia J ⪰ 0, and entails an inertia ⪰ 0. So the condition
on J is looked at only where there is no mass, hence no centre of mass about which to say the others. Thin bodies lie on
the boundary and are possible (MuJoCo takes them, where welded to another body): `thin_bodies` names them, because the
forms that need J ≻ 0, log-Cholesky and the divergence, refuse them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ModelError, unknown_name
from .inertia import BOUNDARY_TOLERANCE, EXTENTS, Array, boundary_tolerance, extent, mass_com_inertia, pseudo_inertia
from .parameters import INERTIAL, INERTIAL_UNITS, JOINT_PROPERTIES, PROPERTY_UNITS

Condition = Literal["finite", "mass", "inertia", "triangle", "pseudo-inertia", "com", "sign"]

NOT_NEGATIVE = ("armature", "damping", "coulomb")  # an offset may have either sign
COM_TOLERANCE = 1e-6  # m: nobody knows a bound to a micrometre, and a solver ends that close to an active one


@dataclass(frozen=True)
class Invalidity:
    """One condition that fails: whose, which, what was found, and by how much it misses, in `unit`."""

    subject: str  # name of the body or the degree of freedom
    condition: Condition
    value: float
    excess: float  # >= 0; NaN where the value is
    unit: str
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Box:
    """A centre of mass lies between two corners, m in the body frame; infinite where nothing is known."""

    lower: tuple[float, float, float]
    upper: tuple[float, float, float]

    def __post_init__(self) -> None:
        if len(self.lower) != 3 or len(self.upper) != 3 or not all(np.less_equal(self.lower, self.upper)):
            raise ModelError(f"a box needs three lower <= three upper limits, not {self.lower} … {self.upper}")

    def outside(self, com: Array) -> float:
        return float(np.linalg.norm(np.maximum(0.0, np.maximum(self.lower - com, com - self.upper))))

    def __str__(self) -> str:
        return f"the box {_vector(self.lower)} … {_vector(self.upper)} m"


@dataclass(frozen=True)
class Ball:
    """A centre of mass lies within `radius` of `center`, m in the body frame."""

    center: tuple[float, float, float]
    radius: float

    def __post_init__(self) -> None:
        if len(self.center) != 3 or not np.all(np.isfinite(self.center)) or not self.radius >= 0:
            raise ModelError(
                f"a ball needs a centre of three numbers and a radius >= 0, not {self.center}, {self.radius}"
            )

    def outside(self, com: Array) -> float:
        return max(0.0, float(np.linalg.norm(com - self.center)) - self.radius)

    def __str__(self) -> str:
        return f"the ball of radius {self.radius:.4g} m about {_vector(self.center)} m"


def _vector(values: Iterable[float]) -> str:
    return "(" + ", ".join(f"{v:.4g}" for v in values) + ")"


def _about_mass(name: str, theta: Array) -> Iterator[Invalidity]:
    """A body without mass: the mass itself, and what would still be impossible if only the mass were mended."""
    mass = float(theta[0])
    said = f"body '{name}': its mass is {mass:.4g} kg and must be greater than 0"
    yield Invalidity(name, "mass", mass, abs(mass), "kg", said)
    second = pseudo_inertia(theta)[:3, :3]
    least = float(np.linalg.eigvalsh(second)[0])
    if least < -BOUNDARY_TOLERANCE * np.abs(np.trace(second)):
        said = (
            f"body '{name}': its pseudo-inertia is not positive definite, it has a second moment of mass of "
            f"{least:.4g} kg·m² about the body origin, which must not be negative"
        )
        yield Invalidity(name, "pseudo-inertia", least, -least, "kg·m²", said)


def _about_inertia(name: str, theta: Array, com_bound: Box | Ball | None) -> Iterator[Invalidity]:
    """A body with mass: the moments about its centre of mass, and where that centre is."""
    _, com, inertia_com = mass_com_inertia(theta)
    moments = np.linalg.eigvalsh(inertia_com)
    tolerance = float(boundary_tolerance(theta))
    least, slack = float(moments[0]), float(moments[0] + moments[1] - moments[2])
    if least < -tolerance:
        said = (
            f"body '{name}': its inertia about the centre of mass is not positive definite, the smallest principal "
            f"moment is {least:.4g} kg·m² and must not be negative"
        )
        yield Invalidity(name, "inertia", least, -least, "kg·m²", said)
    if slack < -tolerance:
        said = (
            f"body '{name}': its principal moments {_vector(moments)} kg·m² break the triangle inequality by "
            f"{-slack:.4g} kg·m², the largest must not exceed the sum of the other two"
        )
        yield Invalidity(name, "triangle", slack, -slack, "kg·m²", said)
    if com_bound is not None and (distance := com_bound.outside(com)) > COM_TOLERANCE:
        said = f"body '{name}': its centre of mass {_vector(com)} m is {distance:.4g} m outside {com_bound}"
        yield Invalidity(name, "com", distance, distance, "m", said)


def _about_body(name: str, theta: Array, com_bound: Box | Ball | None) -> Iterator[Invalidity]:
    if not np.all(np.isfinite(theta)):
        for part, unit, value in zip(INERTIAL, INERTIAL_UNITS, theta.tolist(), strict=True):
            if not np.isfinite(value):
                said = f"body '{name}': its {part} is {value} and must be a finite number"
                yield Invalidity(name, "finite", value, abs(value), unit, said)
    elif theta[0] <= 0:
        yield from _about_mass(name, theta)
    else:
        yield from _about_inertia(name, theta, com_bound)


def _about_joints(prop: str, values: Mapping[str, float], linear_dofs: Collection[str]) -> Iterator[Invalidity]:
    if prop not in JOINT_PROPERTIES:
        raise ModelError(unknown_name("joint property", prop, JOINT_PROPERTIES))
    finite = [abs(v) for v in values.values() if np.isfinite(v)]
    # A solver leaves a bound that holds at zero a little on the wrong side; how little, the other joints say.
    tolerance = BOUNDARY_TOLERANCE * max(finite, default=0.0) if prop in NOT_NEGATIVE else np.inf
    for dof, given in values.items():
        value, unit = float(given), PROPERTY_UNITS[prop][dof in linear_dofs]
        if not np.isfinite(value):
            said = f"joint '{dof}': its {prop} is {value} and must be a finite number"
            yield Invalidity(dof, "finite", value, abs(value), unit, said)
        elif value < -tolerance:
            said = f"joint '{dof}': its {prop} is {value:.4g} {unit} and must not be negative"
            yield Invalidity(dof, "sign", value, -value, unit, said)


def _per_body(bodies: Sequence[str], parameters: ArrayLike) -> Array:
    theta = np.asarray(parameters, dtype=np.float64)
    if theta.shape == (10 * len(bodies),):
        theta = theta.reshape(len(bodies), 10)
    if theta.shape != (len(bodies), 10):
        raise ModelError(f"{len(bodies)} bodies need parameters of shape ({len(bodies)}, 10), not {theta.shape}")
    return theta


def thin_bodies(bodies: Sequence[str], parameters: ArrayLike) -> dict[str, str]:
    """The possible bodies without volume, and what each is like: a 'plate', a 'rod' or a 'point mass'."""
    theta = _per_body(bodies, parameters)
    thin = {}
    for name, row in zip(bodies, theta, strict=True):
        if not any(_about_body(name, row, None)) and (dimensions := int(extent(row))) < 3:
            thin[name] = EXTENTS[dimensions]
    return thin


def invalidities(
    bodies: Sequence[str],
    parameters: ArrayLike,
    joint: Mapping[str, Mapping[str, float]] | None = None,
    com_bounds: Mapping[str, Box | Ball] | None = None,
    *,
    linear_dofs: Collection[str] = (),
    massless: Collection[str] = (),
) -> tuple[Invalidity, ...]:
    """Every condition that a body or a joint fails, in the order given; empty where all can exist.

    `parameters` are (nb, 10), or the same in one row; `joint` holds {property: {degree of freedom: value}}, in units of
    metres for `linear_dofs`. A body named in `massless`, a frame welded to another, may have ten zeros.
    """
    theta, com_bounds = _per_body(bodies, parameters), com_bounds or {}
    for name in (*com_bounds, *massless):
        if name not in bodies:
            raise ModelError(unknown_name("body", name, bodies))
    found: list[Invalidity] = []
    for name, row in zip(bodies, theta, strict=True):
        if not (name in massless and not np.any(row)):
            found.extend(_about_body(name, row, com_bounds.get(name)))
    for prop, values in (joint or {}).items():
        found.extend(_about_joints(prop, values, linear_dofs))
    return tuple(found)


def require_feasible(
    bodies: Sequence[str],
    parameters: ArrayLike,
    joint: Mapping[str, Mapping[str, float]] | None = None,
    com_bounds: Mapping[str, Box | Ball] | None = None,
    *,
    linear_dofs: Collection[str] = (),
    massless: Collection[str] = (),
) -> None:
    """Refuse bodies and joints that cannot exist with a ModelError that lists all of `invalidities`."""
    found = invalidities(bodies, parameters, joint, com_bounds, linear_dofs=linear_dofs, massless=massless)
    if found:
        raise ModelError(
            "no robot can have these parameters: " + "; ".join(str(one) for one in found) + ". "
            "Mend the figures, or identify with physical constraints"
        )
