"""What an adaptive controller does not know of its robot: a load on a body, or the robot's own parameters.

Torque is Y(q, q̇, v, a) (theta_0 + S φ), with all parameters of the robot in theta_0 and the unknown ones in φ. For a
load whose extent is neglected, S follows φ: the inertia of a point mass m at c = h/m is J(c) (m, h) exactly, with
J(c) = ∂/∂(m, h) (|h|²1 − h hᵀ)/m.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import OptionError, unknown_name
from ..identification.payload import ASSUMPTIONS, Assumption
from ..robot.inertia import from_mass_com_inertia
from ..robot.parameters import INERTIAL, INERTIAL_UNITS, JOINT_PROPERTIES
from ..robot.robot import Robot

Array = NDArray[np.float64]

# Sizes for which a parameter counts as large, as parts of the robot's moving mass, and m.
_HEAVY, _FAR = 0.1, 0.1
_NOT_NEGATIVE = ("m", "Ixx", "Iyy", "Izz", "armature", "damping", "coulomb")


def fully_known(robot: Robot) -> Robot:
    """The same robot with every body and joint property in its layout."""
    return robot.with_layout(bodies=robot.bodies, properties=JOINT_PROPERTIES)


class Unknown(Protocol):
    """Parameters φ that are to be found, and how they enter those of a robot that is `fully_known`."""

    def names(self, robot: Robot) -> tuple[str, ...]: ...

    def units(self, robot: Robot) -> tuple[str, ...]: ...

    def rest(self, robot: Robot) -> Array:
        """theta_0."""
        ...

    def start(self, robot: Robot) -> Array:
        """φ before anything has moved."""
        ...

    def sizes(self, robot: Robot) -> Array:
        """By how much each may be wrong: an error of that size is worth finding."""
        ...

    def not_negative(self, robot: Robot) -> NDArray[np.bool_]: ...

    def shape(self, robot: Robot, phi: Array) -> Array:
        """S, (parameters of the robot, parameters to be found)."""
        ...


def _slopes_of_point(centre: Array) -> Array:
    """∂/∂(m, h) of the inertia of a point mass at a place, (6, 4)."""
    slopes = np.empty((6, 4))
    slopes[:, 0] = -from_mass_com_inertia(1.0, centre, np.zeros((3, 3)))[4:]
    upper = np.triu_indices(3)
    for k in range(3):
        e = np.eye(3)[k]
        slopes[:, 1 + k] = (2 * centre[k] * np.eye(3) - np.outer(e, centre) - np.outer(centre, e))[upper]
    return slopes


@dataclass(frozen=True, eq=False)
class UnknownLoad:
    """A load fixed to a body, in that body's frame: "mass" at `centre`, "point" mass anywhere, or a "body" of ten."""

    body: str
    assume: Assumption = "mass"
    centre: ArrayLike = (0.0, 0.0, 0.0)
    guess: float = 0.0  # kg

    def __post_init__(self) -> None:
        if self.assume not in ASSUMPTIONS:
            raise OptionError(unknown_name("assumption on the load", self.assume, ASSUMPTIONS))
        if np.shape(self.centre) != (3,) or not np.isfinite(np.asarray(self.centre, dtype=float)).all():
            raise OptionError(f"the centre of the load is {self.centre}; give three finite numbers, m")
        if not 0 <= self.guess < np.inf:
            raise OptionError(f"the load is guessed to be {self.guess} kg; give a finite number from 0")

    @property
    def _count(self) -> int:
        return {"mass": 1, "point": 4, "body": 10}[self.assume]

    def names(self, robot: Robot) -> tuple[str, ...]:
        return tuple(f"load.{part}" for part in INERTIAL[: self._count])

    def units(self, robot: Robot) -> tuple[str, ...]:
        return INERTIAL_UNITS[: self._count]

    def rest(self, robot: Robot) -> Array:
        if self.body not in robot.bodies:
            raise OptionError(unknown_name("moving body to carry the load", self.body, robot.bodies))
        return robot.parameters

    def start(self, robot: Robot) -> Array:
        guess = from_mass_com_inertia(1.0, np.asarray(self.centre, dtype=float), np.zeros((3, 3)))
        return self.guess * guess[: self._count]

    def sizes(self, robot: Robot) -> Array:
        mass = _HEAVY * float(robot.body_parameters[:, 0].sum())
        return (mass * np.array([1.0, *(_FAR,) * 3, *(_FAR**2,) * 6]))[: self._count]

    def not_negative(self, robot: Robot) -> NDArray[np.bool_]:
        return np.isin(np.array(INERTIAL[: self._count]), _NOT_NEGATIVE)

    def shape(self, robot: Robot, phi: Array) -> Array:
        S = np.zeros((robot.layout.size, self._count))
        rows = robot.layout.body(self.body)
        if self.assume == "mass":
            S[rows, 0] = from_mass_com_inertia(1.0, np.asarray(self.centre, dtype=float), np.zeros((3, 3)))
        elif self.assume == "body":
            S[rows] = np.eye(10)
        else:
            S[rows.start : rows.start + 4] = np.eye(4)
            # A mass that is hardly there yet is taken for one at the place it was guessed at.
            little = 1e-2 * float(self.sizes(robot)[0])
            blend = little * np.asarray(self.centre, dtype=float)
            S[rows.start + 4 : rows.stop] = _slopes_of_point((phi[1:] + blend) / (max(phi[0], 0.0) + little))
        return S


@dataclass(frozen=True)
class UnknownRobot:
    """All parameters of the robot's layout, or those named in `only`; their nominal values are where they begin."""

    robot: Robot
    only: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        self.robot.layout.indices(self.only or ())  # a wrong name is said here

    def names(self, robot: Robot) -> tuple[str, ...]:
        return self.robot.parameter_names if self.only is None else tuple(self.only)

    def _columns(self, robot: Robot) -> NDArray[np.int64]:
        return robot.layout.indices(self.names(robot))

    def units(self, robot: Robot) -> tuple[str, ...]:
        return tuple(robot.layout.units[k] for k in self._columns(robot))

    def rest(self, robot: Robot) -> Array:
        theta = robot.parameters.copy()
        theta[self._columns(robot)] = 0.0
        return theta

    def start(self, robot: Robot) -> Array:
        return np.array(robot.parameters[self._columns(robot)])

    def sizes(self, robot: Robot) -> Array:
        own = dict(zip(INERTIAL, UnknownLoad(robot.bodies[-1], "body").sizes(robot), strict=True))
        own["armature"] = own["Ixx"]
        friction = 9.81 * own["mx"]  # N·m, at 1 rad/s: as much as that mass weighs at that distance
        return np.array([own.get(name.rpartition(".")[2], friction) for name in self.names(robot)])

    def not_negative(self, robot: Robot) -> NDArray[np.bool_]:
        return np.isin(np.array([name.rpartition(".")[2] for name in self.names(robot)]), _NOT_NEGATIVE)

    def shape(self, robot: Robot, phi: Array) -> Array:
        columns = self._columns(robot)
        S = np.zeros((robot.layout.size, len(columns)))
        S[columns, np.arange(len(columns))] = 1.0
        return S
