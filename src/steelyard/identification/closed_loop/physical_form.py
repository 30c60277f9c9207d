"""The physically consistent form of a linear step: the same least squares over parameters that bodies can have."""

import numpy as np
from numpy.typing import NDArray

from ...errors import OptionError
from ..physical import PhysicalSettings, solve_physical
from ..problem import Problem

Array = NDArray[np.float64]


def physical_step(problem: Problem, A: Array, y: Array, name: str) -> tuple[Array, Array, bool]:
    """(beta, theta, solved) with the least ‖A beta − y‖² (rows of unit variance) among physical parameters."""
    model = problem.model
    if len(model.names) > model.robot.layout.size:
        raise OptionError(f"the physical form of {name} has the robot's own parameters; leave out unknown loads")
    settings = PhysicalSettings(fixed=dict(model.fixed))
    found = solve_physical(A, y, model.robot, settings, model.base.projection, model.nominal, noise=1.0)
    return model.base.reduce(found.parameters), np.array(found.parameters), found.converged


def possible_parameters(problem: Problem, A: Array, y: Array) -> Array | None:
    """All parameters of the physical form of a step; nothing where it has none."""
    if len(problem.model.names) > problem.model.robot.layout.size:
        return None
    return physical_step(problem, A, y, "")[1]
