"""How the torque of a motion changes with the motion itself."""

import numpy as np
from numpy.typing import ArrayLike

from ..robot.robot import Robot
from .rigid_body import _torques
from .samples import Array, positions, rates

# The third root of rounding: what a central difference cuts off and what it rounds are then alike, about 1e-10.
_STEP = 6e-6
_DAMPING = 1  # of JOINT_PROPERTIES


def torque_gradients(robot: Robot, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> tuple[Array, Array]:
    """∂tau/∂q and ∂tau/∂q̇ (samples, n, n) of M q̈ + C q̇ + g + damping·q̇, for hinges and slides; dry friction left out.

    Central differences; those of q̇ are exact, because tau is quadratic in it.
    """
    q, _ = positions(robot, q)
    qd, qdd = rates(robot, "qd", qd, len(q)), rates(robot, "qdd", qdd, len(q))
    bodies, joints = robot.body_parameters, np.zeros_like(robot.joint_parameters)
    by_q, by_qd = np.empty((2, len(q), robot.n, robot.n))
    for k in range(robot.n):
        shift = np.zeros(robot.n)
        shift[k] = 1.0
        ahead = _torques(robot, bodies, joints, q, qd + shift, qdd)
        by_qd[:, :, k] = 0.5 * (ahead - _torques(robot, bodies, joints, q, qd - shift, qdd))
        shift[k] = _STEP
        ahead = _torques(robot, bodies, joints, q + shift, qd, qdd)
        by_q[:, :, k] = (ahead - _torques(robot, bodies, joints, q - shift, qd, qdd)) / (2 * _STEP)
    every = np.arange(robot.n)
    by_qd[:, every, every] += robot.joint_parameters[:, _DAMPING]
    return by_q, by_qd
