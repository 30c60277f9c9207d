"""The equations of a robot that stands on wheels, with all that the floor does to it taken out.

In the trunk's frame, with s the specific force (accelerometer) and E the joints' rows,

    Y(q, s) φ + known(q, s) = Eᵀ τ + Cᵀ λ,    φ = [m, mx, my, mz] of the upper body

C holds what the floor may do, which is unknown: push each tyre up and along where it stands, turn it about its axle
(where on the tyre the floor touches depends on its slope), push all of them sideways; and each joint whose torque is
not measured. With
the columns of N spanning the motions that do none of this, C N = 0,

    Nᵀ Y φ = Nᵀ (Eᵀ τ − known)

For two legs in the sagittal plane these hold the moments about hip and knee, τ₁ + p₁×F = p×F and τ₁ + τ₂ + p₂×F = p×F,
the legs' own weight taken off, and with wheel torque the one about the axle.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..dynamics import gravity, regressor
from ..errors import OptionError
from .poses import Accuracy, Poses
from .stance import Stance

Array = NDArray[np.float64]
SQUEEZE = 0.1  # share of a leg's load with which legs may press sideways against each other, standard deviation
_STEP = 1e-5  # rad, of central differences: their error is 1e-10 of the lever
_DEPENDENT = 1e-6  # of the largest singular value: what is below are pushes that the floor can make against itself


@dataclass(frozen=True)
class Coupling:
    """A drive that is not direct: the knee's torque is τ₂ + k τ₁, of the measured torques.

    With both motors on the trunk and a belt to the knee, k = 1: the shin feels the sum. `ratio` None: to be estimated.
    """

    ratio: float | None = None

    def __post_init__(self) -> None:
        if self.ratio is not None and not np.isfinite(self.ratio):
            raise OptionError(f"the coupling's ratio is {self.ratio}; give a finite number, or none to estimate it")


DIRECT = Coupling(0.0)


@dataclass(frozen=True, eq=False)
class Equations:
    """A φ' = b of one pose: φ' is φ and, where asked for, the coupling; errors e add `random` e + `shared` e'."""

    A: Array  # (rows, unknowns)
    b: Array  # (rows,)
    random: Array  # (rows, rows), covariance of what is drawn anew in this pose
    shared: Array  # (rows, sources), effect of one standard deviation of what is the same in all poses


def coupling_matrix(stance: Stance) -> Array:
    """E₂₁: what a coupling of one adds to the joints' torque, (joints, joints)."""
    K = np.zeros((len(stance.joints),) * 2)
    for leg in stance.legs:
        K[stance.column(leg.knee), stance.column(leg.hip)] = 1.0
    return K


def floor_rows(stance: Stance, positions: Array, force: Array, shift: Array) -> tuple[Array, Array]:
    """C's rows that the floor makes, (samples, rows, dofs), and what legs do that press sideways against each other.

    Each tyre is pushed along its plane in two directions and turned about its axle; the sideways push is one for all,
    at the first tyre. `shift` moves the tyres' points along their axles.
    """
    rows, sideways = [], []
    for k, leg in enumerate(stance.legs):
        axle, J = stance.wheel(positions, leg)
        axle = axle * np.sign(axle @ stance.lateral)[:, None]
        up = force - np.einsum("ti,ti->t", force, axle)[:, None] * axle
        down = -up / np.linalg.norm(up, axis=1, keepdims=True)
        lever = leg.radius * down + shift[k] * axle
        point = J[:, :3] + np.cross(J[:, 3:], lever[:, :, None], axisa=1, axisb=1, axisc=1)
        rows += [np.einsum("ti,tij->tj", along, point) for along in (down, np.cross(axle, down))]
        rows.append(np.einsum("ti,tij->tj", axle, J[:, 3:]))
        sideways.append(np.einsum("ti,tij->tj", axle, point))
    squeeze = [other - sideways[0] for other in sideways[1:]]
    none = np.zeros((len(positions), 0, stance.robot.n))
    return np.stack([*rows, sideways[0]], axis=1), np.stack(squeeze, axis=1) if squeeze else none


def _weights(stance: Stance, positions: Array, force: Array) -> tuple[Array, Array]:
    """Y (samples, dofs, 4) and the known torque (samples, dofs)."""
    still = np.zeros((len(positions), stance.robot.n))
    Y = np.zeros((len(positions), stance.robot.n, 4))
    known = np.zeros((len(positions), stance.robot.n))
    for axis, (columns, rest) in enumerate(stance.under_gravity):
        f = force[:, axis]
        Y += f[:, None, None] * regressor(columns, positions, still, still)[:, :, :4]
        known += f[:, None] * gravity(rest, positions)
    return Y, known


def trunk_wrench(stance: Stance, q: ArrayLike, force: ArrayLike, phi: ArrayLike) -> Array:
    """The generalised force that holds this pose up, (samples, dofs): Y φ + known."""
    Y, known = _weights(stance, stance.positions(q), np.atleast_2d(np.asarray(force, dtype=np.float64)))
    return Y @ np.asarray(phi, dtype=np.float64) + known


def measured_joints(poses: Poses) -> NDArray[np.int64]:
    return np.flatnonzero(np.isfinite(poses.tau).all(axis=0))


def source_names(stance: Stance, measured: NDArray[np.int64]) -> tuple[str, ...]:
    """What may be wrong in the same way in all poses, in the order of `Equations.shared`."""
    return (
        *(f"torque of {stance.joints[k]}" for k in measured),
        *(f"position of {name}" for name in stance.joints),
        *(f"acceleration {axis}" for axis in "xyz"),
    )


def _null(C: Array) -> Array:
    """N with C N = 0, orthonormal columns."""
    scaled = C / np.linalg.norm(C, axis=1, keepdims=True)
    _, s, vt = np.linalg.svd(scaled)
    return vt[int((s > _DEPENDENT * s[0]).sum()) :].T


def equations(
    stance: Stance,
    poses: Poses,
    accuracy: Accuracy,
    coupling: Coupling = DIRECT,
    nominal: ArrayLike | None = None,
    ratio: float | None = None,
) -> list[Equations]:
    """The equations of every pose, with what noise and bias do to them, linearised at the nominal upper body.

    `ratio` is the coupling about which to linearise where it is to be estimated.
    """
    phi = np.asarray(stance.nominal if nominal is None else nominal, dtype=np.float64)
    q, force, n = poses.q, poses.force, stance.robot.n
    measured, joints, legs = measured_joints(poses), len(stance.joints), len(stance.legs)
    unmeasured = np.setdiff1d(np.arange(joints), measured)
    E = np.zeros((joints, n))
    E[np.arange(joints), stance.dofs] = 1.0
    K = coupling_matrix(stance)
    drive = np.eye(joints) + (coupling.ratio or 0.0) * K
    felt = drive if coupling.ratio is not None else np.eye(joints) + (ratio or 0.0) * K
    tau = np.nan_to_num(poses.tau) * np.isin(np.arange(joints), measured)

    def loads(dq: Array, df: Array, shift: Array) -> tuple[Array, Array, Array, Array]:
        positions = stance.positions(q + dq)
        Y, known = _weights(stance, positions, force + df)
        return Y, known, *floor_rows(stance, positions, force + df, shift)

    none = np.zeros(joints), np.zeros(3), np.zeros(legs)
    Y, known, floor, squeeze = loads(*none)
    moves = []  # d(Y φ + known) and dC by every position, force and shift
    for which, count in enumerate((joints, 3, legs)):
        for k in range(count):
            ends = []
            for sign in (1.0, -1.0):
                step = [x.copy() for x in none]
                step[which][k] = sign * _STEP
                Y_, known_, floor_, _ = loads(*step)
                ends.append((Y_ @ phi + known_, floor_))
            moves.append(tuple((a - b) / (2 * _STEP) for a, b in zip(*ends, strict=True)))

    made = []
    shifts = np.array([leg.half_width for leg in stance.legs])  # a flat tyre that leans stands on its edge
    for p in range(len(poses)):
        C = np.vstack([floor[p], E[unmeasured]])
        N = _null(C)
        push = np.linalg.lstsq(C.T, Y[p] @ phi + known[p] - E.T @ felt @ tau[p], rcond=_DEPENDENT)[0][: len(floor[p])]
        by_tau = N.T @ E.T @ felt[:, measured]
        by_rest = np.column_stack([N.T @ (load[p] - dC[p].T @ push) for load, dC in moves])
        by_q, by_force, by_shift = np.split(by_rest, [joints, joints + 3], axis=1)
        A = N.T @ Y[p]
        if coupling.ratio is None:
            A = np.column_stack([A, -N.T @ E.T @ K @ tau[p]])
        by_squeeze = N.T @ squeeze[p].T * np.linalg.norm((Y[p] @ phi + known[p])[:3]) / legs
        J = np.hstack([by_tau, by_q, by_force, by_shift, by_squeeze])
        variance = np.concatenate(
            [
                poses.variance_tau[p, measured] + accuracy.friction**2,
                poses.variance_q[p],
                poses.variance_force[p],
                shifts**2,
                np.full(legs - 1, SQUEEZE**2),
            ]
        )
        bias = np.concatenate(
            [
                np.full(len(measured), accuracy.torque_bias),
                np.full(joints, accuracy.position_bias),
                np.full(3, accuracy.acceleration_bias),
            ]
        )
        b = N.T @ (E.T @ drive @ tau[p] - known[p])
        made.append(Equations(A, b, (J * variance) @ J.T, np.hstack([by_tau, by_q, by_force]) * bias))
    return made
