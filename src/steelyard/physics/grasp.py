"""Four fingers that hold a cube by friction: what a step of contacts says about a grasp.

Fingers push towards the cube's centre from four sides with a given force and give way along it; sideways they are
stiff. Their friction has to carry the weight: the cube stays while 4 μ F >= m g.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import OptionError
from .complementarity import Method
from .contact import Contacts, Convex, Coulomb, free_body, step

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Grasp:
    """A cube between four fingers, one on each upright face."""

    friction: float = 0.3
    force: float = 10.0  # N a finger
    mass: float = 1.0  # kg
    side: float = 0.06  # m
    finger_mass: float = 0.1  # kg
    gravity: float = 9.81

    def __post_init__(self) -> None:
        for name in ("force", "mass", "side", "finger_mass"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise OptionError(f"the grasp's {name} is {getattr(self, name):g}; it must be above zero")
        if not (self.friction >= 0 and np.isfinite(self.gravity)):
            raise OptionError(f"the grasp has friction {self.friction:g} and gravity {self.gravity:g}; correct them")

    @property
    def least_friction(self) -> float:
        """μ = m g/(4 F): with less the cube falls."""
        return self.mass * self.gravity / (4 * self.force)

    @property
    def mass_matrix(self) -> Array:
        """Of [velocity of the centre, angular velocity, four fingers]."""
        return np.diag([*[self.mass] * 3, *[self.mass * self.side**2 / 6] * 3, *[self.finger_mass] * 4])

    def contacts(self) -> Contacts:
        """At each face's centre; the gap's rate is the cube's velocity into itself less the finger's."""
        inward = -np.array([[1.0, 0, 0], [0, 1.0, 0], [-1.0, 0, 0], [0, -1.0, 0]])
        cube = free_body(-0.5 * self.side * inward, inward, np.zeros(3), self.friction)
        return Contacts(
            np.hstack([cube.normal, -np.eye(4)]),
            np.concatenate([cube.tangent, np.zeros((4, 2, 4))], axis=2),
            cube.friction,
            cube.gap,
        )


@dataclass(frozen=True, eq=False)
class Held:
    """What a grasp did, a row a step."""

    t: Array
    velocity: Array  # (T, 3) of the cube, m/s
    height: Array  # (T,) m from where it began
    normal: Array  # (T, 4) N
    friction: Array  # (T, 4, 2) N, upward first
    iterations: Array  # of the solver

    @property
    def holds(self) -> bool:
        """Whether the cube stays; the interior-point method leaves some 1e-10 m/s."""
        return bool(np.abs(self.velocity).max() < 1e-8)


def hold(
    grasp: Grasp,
    duration: float = 0.2,
    dt: float = 1e-3,
    law: Coulomb | Convex | None = None,
    method: Method | None = None,
    warm: bool = True,
) -> Held:
    """Let go of everything but the fingers."""
    M, contacts = grasp.mass_matrix, grasp.contacts()
    force = np.r_[0.0, 0.0, -grasp.mass * grasp.gravity, np.zeros(3), np.full(4, grasp.force)]
    acceleration = np.linalg.solve(M, force)
    steps = max(1, round(duration / dt))
    v, start, rows = np.zeros(10), None, []
    for _ in range(steps):
        done = step(M, v + dt * acceleration, contacts, dt, law, method, start)
        v, start = done.velocity, done.solution.z if warm else None
        rows.append((v[:3], done.normal / dt, done.friction / dt, done.solution.iterations))
    velocity, normal, friction, iterations = (np.array(column) for column in zip(*rows, strict=True))
    t: Array = dt * np.arange(1.0, steps + 1)
    return Held(t, velocity, dt * np.cumsum(velocity[:, 2]), normal, friction, iterations)
