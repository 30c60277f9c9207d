"""`Robot`: everything that is known of a robot before it is measured, as frozen arrays."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..errors import DataError, ModelError, unknown_name
from .parameters import JOINT_PROPERTIES, ParameterLayout
from .sources import Source
from .tree import COORDINATES, DOFS, KIND_NAMES

Array = NDArray[np.float64]


def frozen(x: ArrayLike, dtype: DTypeLike = np.float64) -> NDArray:
    """A contiguous copy that cannot be written to."""
    y: NDArray = np.array(x, dtype=dtype, order="C")
    y.setflags(write=False)
    return y


@dataclass(frozen=True)
class Joint:
    """A joint that moves: its kind, and where its numbers stand in velocities and positions."""

    name: str
    kind: int
    body: str
    dof: int
    coordinate: int

    @property
    def kind_name(self) -> str:
        return KIND_NAMES[self.kind]

    @property
    def dofs(self) -> slice:
        return slice(self.dof, self.dof + DOFS[self.kind])

    @property
    def coordinates(self) -> slice:
        return slice(self.coordinate, self.coordinate + COORDINATES[self.kind])


@dataclass(frozen=True, eq=False)
class Limits:
    """What the joints may do, a number a degree of freedom; infinite where nothing is known."""

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    torque: Array
    torque_rate: Array


@dataclass(frozen=True, eq=False)
class Robot:
    """A tree of bodies and joints with nominal parameters; `load_robot` makes it.

    Positions have MuJoCo's qpos layout, velocities and torques have `n` columns. `parameters` holds nominal values
    of what is to be identified, in the order of `layout`; all else that moves keeps its values and acts as known.
    """

    name: str
    links: NDArray
    dofs: NDArray
    joints: tuple[Joint, ...]
    bodies: tuple[str, ...]  # every body that moves, in the order of the model
    body_parameters: Array  # (bodies, 10)
    joint_parameters: Array  # (n, joint properties)
    gravity: Array  # (3,) m/s²
    layout: ParameterLayout
    limits: Limits
    home: Array  # (nq,)
    notes: tuple[str, ...] = ()
    source: Source | None = field(default=None, repr=False)
    # Where the model file's own positions and velocities are that these joints have, and the held rest.
    model_coordinates: NDArray = field(default_factory=lambda: frozen([], np.int64), repr=False)
    model_dofs: NDArray = field(default_factory=lambda: frozen([], np.int64), repr=False)
    model_position: Array = field(default_factory=lambda: frozen([]), repr=False)
    model_bodies: NDArray = field(default_factory=lambda: frozen([], np.int64), repr=False)

    @cached_property
    def n(self) -> int:
        """Degrees of freedom."""
        return len(self.dofs)

    @cached_property
    def nq(self) -> int:
        """Width of a position; more than `n` where a joint is a ball or free."""
        return sum(COORDINATES[joint.kind] for joint in self.joints)

    @property
    def dof_names(self) -> tuple[str, ...]:
        return self.layout.dofs

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return self.layout.names

    @cached_property
    def parameters(self) -> Array:
        """Nominal values of the identified parameters."""
        rows = [self.bodies.index(body) for body in self.layout.bodies]
        blocks = [self.joint_parameters[:, JOINT_PROPERTIES.index(prop)] for prop in self.layout.properties]
        return frozen(np.concatenate([self.body_parameters[rows].ravel(), *blocks]))

    @cached_property
    def columns(self) -> NDArray:
        """First column of every link's body, -1 where the link has no body or the body is not identified."""
        start = {body: 10 * k for k, body in enumerate(self.layout.bodies)}
        return frozen([start.get(self.bodies[b], -1) if b >= 0 else -1 for b in self.links["body"]], np.int64)

    @cached_property
    def property_codes(self) -> NDArray:
        return frozen([JOINT_PROPERTIES.index(prop) for prop in self.layout.properties], np.int64)

    @cached_property
    def known(self) -> tuple[Array, Array]:
        """Body and joint parameters with zeros where a parameter is identified: what acts as known."""
        bodies = self.body_parameters.copy()
        bodies[[self.bodies.index(body) for body in self.layout.bodies]] = 0.0
        joints = self.joint_parameters.copy()
        joints[:, self.property_codes] = 0.0
        return frozen(bodies), frozen(joints)

    def link_of(self, body: str) -> int:
        """The link that carries a body's frame."""
        if body not in self.bodies:
            raise ModelError(unknown_name("moving body", body, self.bodies))
        return int(np.flatnonzero(self.links["body"] == self.bodies.index(body))[0])

    def joint(self, name: str) -> Joint:
        for joint in self.joints:
            if joint.name == name:
                return joint
        raise ModelError(unknown_name("joint", name, [joint.name for joint in self.joints]))

    def with_parameters(self, theta: ArrayLike) -> "Robot":
        """The same robot with other values of its identified parameters."""
        theta = np.asarray(theta, dtype=np.float64)
        if theta.shape != (self.layout.size,):
            raise DataError(
                f"{self.name} has {self.layout.size} parameters, {theta.shape} were given; "
                "see robot.parameter_names for the order"
            )
        if not np.isfinite(theta).all():
            bad = self.parameter_names[int(np.flatnonzero(~np.isfinite(theta))[0])]
            raise DataError(f"parameter {bad} is {theta[self.layout.index(bad)]}; every parameter must be finite")
        bodies, joints = self.body_parameters.copy(), self.joint_parameters.copy()
        for name in self.layout.bodies:
            bodies[self.bodies.index(name)] = theta[self.layout.body(name)]
        for prop in self.layout.properties:
            joints[:, JOINT_PROPERTIES.index(prop)] = theta[self.layout.block(prop)]
        return replace(self, body_parameters=frozen(bodies), joint_parameters=frozen(joints))

    def with_layout(self, bodies: tuple[str, ...] | None = None, properties: tuple[str, ...] | None = None) -> "Robot":
        """The same robot with another choice of what is identified; what is not named stays as it is."""
        layout = replace(
            self.layout,
            bodies=self.layout.bodies if bodies is None else bodies,
            properties=self.layout.properties if properties is None else properties,
        )
        return replace(self, layout=layout)
