"""Initial guesses that bodies could have: a robot whose parameters are wrong by so much, and still possible."""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from ...robot.inertia import from_mass_com_inertia, mass_com_inertia
from ...robot.robot import Robot

Array = NDArray[np.float64]


def _body(row: Array, deviation: float, rng: np.random.Generator) -> Array:
    """Mass and principal second moments times e^(d·g), the centre moved by d·g of its distance, axes turned by d·g rad.

    Second moments of mass stay positive, so the body exists.
    """
    g = rng.standard_normal(10)
    mass, com, inertia = mass_com_inertia(row)
    spread, axes = np.linalg.eigh(0.5 * np.trace(inertia) * np.eye(3) - inertia)
    turned = Rotation.from_rotvec(deviation * g[4:7]).as_matrix() @ axes
    second = (turned * (np.maximum(spread, 0.0) * np.exp(deviation * g[7:]))) @ turned.T
    return from_mass_com_inertia(
        mass * np.exp(deviation * g[0]),
        com + deviation * np.linalg.norm(com) * g[1:4],
        np.trace(second) * np.eye(3) - second,
    )


def initial_guess(robot: Robot, deviation: float, rng: np.random.Generator) -> Robot:
    """The robot with its identified parameters off by a relative standard deviation, every body still possible."""
    layout, theta = robot.layout, robot.parameters.copy()
    for name in layout.bodies:
        where = layout.body(name)
        if theta[where][0] > 0:
            theta[where] = _body(theta[where], deviation, rng)
    for prop in layout.properties:
        where = layout.block(prop)
        theta[where] *= np.exp(deviation * rng.standard_normal(robot.n))
    return robot.with_parameters(theta)
