"""Random states in general position, for checks and for what the structure of a robot can show."""

import numpy as np

from .robot import Array, Robot
from .tree import BALL, FREE, HINGE


def random_states(
    robot: Robot, rng: np.random.Generator, count: int, within_limits: bool = True
) -> tuple[Array, Array, Array]:
    """Positions, velocities and accelerations; joints without limits turn all the way round or slide a metre."""
    q = np.empty((count, robot.nq))
    for joint in robot.joints:
        if joint.kind in (BALL, FREE):
            values = rng.normal(size=(count, joint.coordinates.stop - joint.coordinate))
            values[:, -4:] /= np.linalg.norm(values[:, -4:], axis=1, keepdims=True)
            q[:, joint.coordinates] = values
            continue
        reach = np.pi if joint.kind == HINGE else 1.0
        lower, upper = robot.limits.lower[joint.dof], robot.limits.upper[joint.dof]
        if not (within_limits and np.isfinite(lower) and np.isfinite(upper)):
            lower, upper = -reach, reach
        q[:, joint.coordinate] = rng.uniform(lower, upper, size=count)
    return q, 2.0 * rng.normal(size=(count, robot.n)), 5.0 * rng.normal(size=(count, robot.n))
