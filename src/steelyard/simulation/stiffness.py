"""How fast the physics of a robot's joints is, what step that asks for, and which dry friction needs a grip instead."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dynamics import mass_matrix
from ..physics.friction import FrictionLaw
from ..physics.kernels.friction import (
    ASYMMETRIC,
    BREAKAWAY,
    COULOMB,
    COULOMB_BACKWARD,
    LUGRE,
    NONE,
    SIGN_WIDTH,
    STRIBECK,
)
from ..physics.transmission import FlexibleJoint
from ..robot.robot import Robot

Array = NDArray[np.float64]

# |h λ| below which an explicit method does not run away: its interval on the negative real axis, on the safe side.
STABLE = {"rk1": 1.0, "rk2": 1.0, "rk4": 1.4, "semi-implicit": 1.0}

# Joints move faster than they are asked to, by a share and by a speed in rad/s or m/s: until control has caught them.
_FASTER, _DRIFT = 1.2, 0.1


def free_inertia(robot: Robot, flexible: FlexibleJoint | None, q: Array) -> Array:
    """The least inertia of each joint on its way.

    What a joint feels while the others are free to give way is less than its entry of the mass matrix. Springs have
    the rotors on their other side.
    """
    M = mass_matrix(robot, q[:: max(1, len(q) // 20)])
    if flexible is not None:
        M = M - np.diag(robot.joint_parameters[:, 0])
    return np.asarray((1.0 / np.diagonal(np.linalg.inv(M), axis1=1, axis2=2)).min(axis=0))


def fastest_rates(
    robot: Robot, law: FrictionLaw, flexible: FlexibleJoint | None, reference: Array
) -> tuple[Array, str]:
    """A bound on each joint's rates on the way of a reference, 1/s, and whether friction or elasticity is faster.

    Dry friction with the sign is none of them: where it is too fast it has a grip.
    """
    inertia = free_inertia(robot, flexible, reference[0])
    speed = _FASTER * np.abs(reference[1]).max(axis=0) + _DRIFT
    fastest, cause = np.broadcast_to(law.sliding_rate(inertia, speed), (robot.n,)), "friction"
    if flexible is not None:
        elastic = np.broadcast_to(flexible.fastest_rate(inertia), (robot.n,))
        if elastic.max() > fastest.max():
            fastest, cause = elastic, "elasticity"
    return fastest, cause


def _dry(code: int, table: Array) -> Array:
    """The largest dry level of each joint, without load, at the reference temperature."""
    if code in (NONE, LUGRE):
        return np.zeros(len(table))
    more = {STRIBECK: BREAKAWAY, ASYMMETRIC: COULOMB_BACKWARD}.get(code, COULOMB)
    return np.asarray(np.maximum(table[:, COULOMB], table[:, more]))


def grips(law: tuple[int, Array], inertia: Array, h: float, integrator: str) -> Array:
    """What `kernels/grip.py` begins with: 0 for joints whose dry friction is too fast for a step, NaN for others."""
    too_fast = _dry(*law) * h > STABLE[integrator] * SIGN_WIDTH * inertia
    return np.where(too_fast, 0.0, np.nan)


def with_grips(law: tuple[int, Array], inertia: Array, h: float, integrator: str) -> tuple[Any, ...]:
    """A packed law as loops take it."""
    return (*law, grips(law, inertia, h, integrator) if integrator in STABLE else np.full(len(inertia), np.nan))
