"""Torques that depend on one joint alone: rotor inertia and friction, in the order of `JOINT_PROPERTIES`."""

from ...compiled import kernel
from ...robot.parameters import JOINT_PROPERTIES

ARMATURE, DAMPING, COULOMB, OFFSET = range(4)
assert JOINT_PROPERTIES == ("armature", "damping", "coulomb", "offset")


@kernel
def sign(x):
    """sgn(x), and 0 at standstill, where Coulomb friction takes whatever value the load asks for."""
    if x > 0.0:
        return 1.0
    if x < 0.0:
        return -1.0
    return 0.0


@kernel
def joint_basis(prop, qd, qdd, t, Y, column):
    """What a joint property multiplies at sample t, into the diagonal of its block of the regressor."""
    if prop == ARMATURE:
        for k in range(qd.shape[1]):
            Y[t, k, column + k] = qdd[t, k]
    elif prop == DAMPING:
        for k in range(qd.shape[1]):
            Y[t, k, column + k] = qd[t, k]
    elif prop == COULOMB:
        for k in range(qd.shape[1]):
            Y[t, k, column + k] = sign(qd[t, k])
    else:
        for k in range(qd.shape[1]):
            Y[t, k, column + k] = 1.0


@kernel
def joint_torque(joints, k, qd, qdd):
    """Armature q̈ + damping q̇ + coulomb sgn(q̇) + offset."""
    return joints[k, ARMATURE] * qdd + joints[k, DAMPING] * qd + joints[k, COULOMB] * sign(qd) + joints[k, OFFSET]
