"""How the torque of a motion changes with the motion itself."""

import numpy as np
from numpy.typing import ArrayLike

from ..robot.robot import Robot
from .rigid_body import _torques, coriolis_matrix
from .samples import Array, positions, rates

# The third root of rounding: what a central difference cuts off and what it rounds are then alike, about 1e-10.
_STEP = 6e-6
_DAMPING = 1  # of JOINT_PROPERTIES


def torque_gradients(robot: Robot, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> tuple[Array, Array]:
    """∂tau/∂q and ∂tau/∂q̇ (samples, n, n) of M q̈ + C q̇ + g + damping·q̇, for hinges and slides; dry friction left out.

    Central differences in q; in q̇, of which C q̇ is the quadratic form of Christoffel's symbols, twice C.
    """
    q, _ = positions(robot, q)
    qd, qdd = rates(robot, "qd", qd, len(q)), rates(robot, "qdd", qdd, len(q))
    bodies, joints = robot.body_parameters, np.zeros_like(robot.joint_parameters)
    by_q, by_qd = np.empty((len(q), robot.n, robot.n)), 2.0 * coriolis_matrix(robot, q, qd)
    twice = np.concatenate([q, q])
    rest = np.concatenate([qd, qd]), np.concatenate([qdd, qdd])
    for k in range(robot.n):
        twice[:, k] += np.repeat([_STEP, -_STEP], len(q))
        ahead, behind = np.split(_torques(robot, bodies, joints, twice, *rest), 2)
        by_q[:, :, k] = (ahead - behind) / (2 * _STEP)
        twice[:, k] = np.concatenate([q[:, k], q[:, k]])
    every = np.arange(robot.n)
    by_qd[:, every, every] += robot.joint_parameters[:, _DAMPING]
    return by_q, by_qd
