"""Postures in which a wheel-legged robot stands: its axles below its centre of mass, at a height, pitch and roll."""

import numpy as np
import scipy.optimize
from numpy.typing import ArrayLike, NDArray

from ..dynamics import pose
from ..errors import ModelError
from ..robot.inertia import mass_com_inertia
from .poses import Poses
from .stance import Stance
from .statics import floor_rows, trunk_wrench

Array = NDArray[np.float64]
_STANDS = 1e-6  # m, how far from where they should be the tyres may end


def _turn(axis: Array, angle: float) -> Array:
    x, y, z = axis
    S = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * S + (1.0 - np.cos(angle)) * S @ S


def lean(stance: Stance, pitch: float, roll: float) -> Array:
    """The trunk's axes in level ones, (3, 3): roll about forwards, then pitch about the hips' axis."""
    return _turn(stance.lateral, pitch) @ _turn(stance.forward, roll)


def whole_com(stance: Stance, q: ArrayLike, phi: ArrayLike | None = None) -> tuple[float, Array]:
    """Mass and centre of mass of the whole robot in the trunk's frame, with this upper body or the nominal one."""
    positions = stance.positions(q)[0]
    total = np.array(stance.nominal if phi is None else phi, dtype=np.float64)
    for body, parameters in zip(stance.robot.bodies, stance.robot.body_parameters, strict=True):
        m, com, _ = mass_com_inertia(parameters)
        if body not in stance.upper and m > 0:
            total = total + m * np.append(1.0, pose(stance.robot, positions, body, com)[0])
    return float(total[0]), total[1:] / total[0]


def _touching(stance: Stance, q: Array, up: Array) -> Array:
    """Where the tyres touch a level floor, in the trunk's frame, (legs, 3)."""
    positions = stance.positions(q)
    points = []
    for leg in stance.legs:
        axle = stance.wheel(positions, leg)[0][0]
        radial = up - (up @ axle) * axle
        points.append(stance.point(positions, leg.wheel)[0] - leg.radius * radial / np.linalg.norm(radial))
    return np.array(points)


def home_height(stance: Stance) -> float:
    """Of the trunk's origin above the floor at home, m."""
    return float(-_touching(stance, stance.home, np.array([0.0, 0.0, 1.0]))[:, 2].mean())


def posture(
    stance: Stance, height: float, pitch: float = 0.0, roll: float = 0.0, phi: ArrayLike | None = None
) -> Array | None:
    """Joint positions, or None where the legs' ranges do not allow it.

    Every leg's hip and knee put its tyre on the floor, below the centre of mass of the whole robot.
    """
    R = lean(stance, pitch, roll)
    up, ahead = R.T @ (0.0, 0.0, 1.0), R.T @ stance.forward
    apart = _touching(stance, stance.home, np.array([0.0, 0.0, 1.0])) @ stance.forward
    apart = apart - apart.mean()
    columns = [stance.column(name) for leg in stance.legs for name in (leg.hip, leg.knee)]
    dofs = [stance.robot.joint(stance.joints[k]).dof for k in columns]
    lower = np.maximum(stance.robot.limits.lower[dofs], -np.pi)
    upper = np.minimum(stance.robot.limits.upper[dofs], np.pi)

    def misplaced(x: Array) -> Array:
        q = stance.home.copy()
        q[columns] = x
        points = _touching(stance, q, up)
        com = whole_com(stance, q, phi)[1]
        return np.concatenate([points @ up + height, (points - com) @ ahead - apart])

    inside = 1e-3 * (upper - lower)
    for share in (None, 0.5, 0.25, 0.75):
        start = stance.home[columns] if share is None else lower + share * (upper - lower)
        found = scipy.optimize.least_squares(
            misplaced, np.clip(start, lower + inside, upper - inside), bounds=(lower, upper), xtol=1e-12, ftol=1e-14
        )
        if np.abs(found.fun).max() < _STANDS:
            q = stance.home.copy()
            q[columns] = found.x
            return q
    return None


def standing(stance: Stance, q: ArrayLike, force: ArrayLike, phi: ArrayLike | None = None) -> Poses:
    """What perfect sensors would say in these postures, (P, joints) with specific forces (P, 3)."""
    q, force = np.atleast_2d(np.asarray(q, dtype=np.float64)), np.atleast_2d(np.asarray(force, dtype=np.float64))
    load = trunk_wrench(stance, q, force, stance.nominal if phi is None else phi)
    floor, _ = floor_rows(stance, stance.positions(q), force, np.zeros(len(stance.legs)))
    E = np.eye(stance.robot.n)[stance.dofs]
    tau = np.empty_like(q)
    for p in range(len(q)):
        C = np.vstack([floor[p], E])
        held, *_ = np.linalg.lstsq(C.T, load[p], rcond=1e-6)
        if np.abs(C.T @ held - load[p]).max() > 1e-6 * np.abs(load[p]).max():
            raise ModelError(f"{stance.robot.name} cannot stand so: floor and joints do not carry its weight")
        tau[p] = held[len(floor[p]) :]
    nothing = np.zeros_like(q)
    return Poses(q, tau, force, nothing, nothing, np.zeros_like(force), np.ones(len(q)))
