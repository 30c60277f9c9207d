"""The same dynamics a second way: from energy, by differentiating it, with nothing shared with the kernels.

With T_k the 4×4 pose of link k, J_k its pseudo-inertia, and U_k,i = ∂T_k/∂q_i, U_k,ij = ∂²T_k/∂q_i∂q_j:

    kinetic energy      ½ Σ_k Tr(Ṫ_k J_k Ṫ_kᵀ)          M_ij  = Σ_k Tr(U_k,i J_k U_k,jᵀ)
    potential energy    −Σ_k g̃ᵀ T_k J_k e_4              g_i   = −Σ_k g̃ᵀ U_k,i J_k e_4
    Christoffel symbols (first kind)                      Γ_ijl = Σ_k Tr(U_k,jl J_k U_k,iᵀ),   C_ij = Σ_l Γ_ijl q̇_l

O(n³) and slow; for hinges and slides, whose positions are coordinates in Lagrange's sense.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import ModelError
from ..robot.inertia import pseudo_inertia
from ..robot.robot import Robot
from ..robot.tree import BALL, FREE, HINGE, SLIDE
from .samples import positions, rates

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LagrangeTerms:
    """Mass matrix (rotors included), Coriolis matrix and gravity torque of one sample."""

    M: Array
    C: Array
    g: Array


def _local_poses(robot: Robot, i: int, q: Array) -> tuple[Array, Array, Array]:
    """Pose of link i in its parent, and its first and second derivative by the joint position."""
    link = robot.links[i]
    pose, first, second = np.eye(4), np.zeros((4, 4)), np.zeros((4, 4))
    pose[:3, :3], pose[:3, 3] = link["R0"], link["pos"]
    if link["kind"] == HINGE:
        angle = q[link["coordinate"]] - link["reference"]
        c, s = np.cos(angle), np.sin(angle)
        turned = c * link["Rc"] + s * link["Rs"]
        first[:3, :3], second[:3, :3] = c * link["Rs"] - s * link["Rc"], -turned
        pose[:3, :3] += turned
        pose[:3, 3] = link["anchor_parent"] - pose[:3, :3] @ link["anchor"]
        first[:3, 3], second[:3, 3] = -first[:3, :3] @ link["anchor"], -second[:3, :3] @ link["anchor"]
    elif link["kind"] == SLIDE:
        pose[:3, 3] += link["axis"] * (q[link["coordinate"]] - link["reference"])
        first[:3, 3] = link["axis"]
    return pose, first, second


def lagrange_terms(robot: Robot, q: ArrayLike, qd: ArrayLike) -> LagrangeTerms:
    """M, C and g of one sample from the energies."""
    if any(joint.kind in (BALL, FREE) for joint in robot.joints):
        raise ModelError(f"{robot.name} has ball or free joints; the Lagrangian way is written for hinges and slides")
    position = positions(robot, q)[0][0]
    velocity = rates(robot, "qd", qd, 1)[0]
    n, count = robot.n, len(robot.links)
    T, U, V = np.zeros((count, 4, 4)), np.zeros((count, n, 4, 4)), np.zeros((count, n, n, 4, 4))
    T[0] = np.eye(4)
    M, gamma, g = np.zeros((n, n)), np.zeros((n, n, n)), np.zeros(n)
    down = np.append(robot.gravity, 0.0)
    for i in range(1, count):
        parent, kind, d = (int(robot.links[i][key]) for key in ("parent", "kind", "dof"))
        pose, first, second = _local_poses(robot, i, position)
        T[i], U[i], V[i] = T[parent] @ pose, U[parent] @ pose, V[parent] @ pose
        if kind in (HINGE, SLIDE):
            U[i, d] += T[parent] @ first
            mixed = U[parent] @ first
            V[i, d, :] += mixed
            V[i, :, d] += mixed
            V[i, d, d] += T[parent] @ second
        body = int(robot.links[i]["body"])
        if body < 0:
            continue
        J = pseudo_inertia(robot.body_parameters[body])
        M += np.einsum("iab,bc,jac->ij", U[i], J, U[i], optimize=True)
        gamma += np.einsum("jlab,bc,iac->ijl", V[i], J, U[i], optimize=True)
        g -= np.einsum("a,iab,b->i", down, U[i], J[:, 3])
    return LagrangeTerms(M + np.diag(robot.joint_parameters[:, 0]), gamma @ velocity, g)
