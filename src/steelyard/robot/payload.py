"""A robot that carries something: what a load adds to the parameters of the body that holds it."""

import numpy as np
from numpy.typing import ArrayLike

from ..errors import OptionError
from .inertia import from_mass_com_inertia
from .robot import Robot


def with_payload(
    robot: Robot, body: str, mass: float, centre: ArrayLike = (0.0, 0.0, 0.0), inertia: ArrayLike | None = None
) -> Robot:
    """The robot with a load fixed to one of its identified bodies: the parameters of what is fixed together add.

    `centre` is the load's centre of mass and `inertia` its 3×3 tensor about it, in the axes of the body; a point mass
    without.
    """
    centre, tensor = np.asarray(centre, dtype=np.float64), np.zeros((3, 3)) if inertia is None else np.asarray(inertia)
    if not (np.isfinite(mass) and mass > 0):
        raise OptionError(f"the payload on {body} has mass {mass:g} kg; it must be above zero")
    if centre.shape != (3,) or tensor.shape != (3, 3) or not (np.isfinite(centre).all() and np.isfinite(tensor).all()):
        raise OptionError(f"the payload on {body} needs a centre of three finite numbers and an inertia of 3×3")
    # Physical as a body: symmetric, and no principal moment larger than the other two together (a plate is the limit).
    moments = np.linalg.eigvalsh(tensor)
    if not np.allclose(tensor, tensor.T) or moments[0] < 0 or moments[2] > (moments[0] + moments[1]) * (1 + 1e-9):
        raise OptionError(f"no body has the payload's inertia {tensor.tolist()}; its principal moments are {moments}")
    theta = robot.parameters.copy()
    theta[robot.layout.body(body)] += from_mass_com_inertia(mass, centre, tensor)
    return robot.with_parameters(theta)
