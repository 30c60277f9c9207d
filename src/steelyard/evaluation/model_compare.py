"""Do two descriptions of a robot agree? Joint axes, mass matrix, gravity and torque, and where they part first."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..dynamics import gravity, inverse_dynamics, jacobian, mass_matrix, pose
from ..errors import ModelError
from ..robot.robot import Robot
from ..robot.states import random_states

Array = NDArray[np.float64]

# Figures in model files carry six digits or so; what differs by less is the same number, rounded.
SAME = 1e-4


@dataclass(frozen=True)
class JointDifference:
    """The largest differences of one joint over the states compared."""

    names: tuple[str, str]
    axis_angle: float  # rad, between the two directions
    axis_distance: float  # m, between the two lines; 0 for a slide, which has a direction only
    gravity: float  # in `unit`
    torque: float
    torque_scale: float  # the largest torque of the first model
    unit: str  # N·m, or N where the joint slides

    @property
    def same_axis(self) -> bool:
        return self.axis_angle < SAME and self.axis_distance < SAME

    @property
    def same_torque(self) -> bool:
        return self.torque <= SAME * self.torque_scale


@dataclass(frozen=True)
class ModelComparison:
    """Where two models agree and where they part."""

    names: tuple[str, str]
    joints: tuple[JointDifference, ...]
    mass_matrix: float  # relative to the largest element
    total_mass: tuple[float, float]
    verdict: str

    @property
    def same(self) -> bool:
        return self.mass_matrix < SAME and all(joint.same_axis and joint.same_torque for joint in self.joints)


def _axis_lines(robot: Robot, q: Array) -> tuple[Array, Array]:
    """Direction of every joint's axis and the point of it that is nearest to the base origin, (samples, n, 3).

    An axis z through c gives the point that passes the base origin the velocity u = −z × c, which the Jacobian tells;
    the nearest point is then z × u.
    """
    directions, points = np.zeros((len(q), robot.n, 3)), np.zeros((len(q), robot.n, 3))
    for joint in robot.joints:
        for k in range(joint.dofs.start, joint.dofs.stop):
            J = jacobian(robot, q, joint.body)[:, :, k]
            if robot.dofs["rotary"][k]:
                origin, _ = pose(robot, q, joint.body)
                directions[:, k] = J[:, 3:]
                at_base = J[:, :3] - np.cross(J[:, 3:], origin)
                points[:, k] = np.cross(J[:, 3:], at_base)
            else:
                directions[:, k] = J[:, :3]
    return directions, points


def _shared_states(a: Robot, b: Robot, rng: np.random.Generator, states: int) -> tuple[Array, Array, Array]:
    if [joint.kind for joint in a.joints] != [joint.kind for joint in b.joints]:
        listed = [", ".join(f"{joint.name} ({joint.kind_name})" for joint in robot.joints) for robot in (a, b)]
        raise ModelError(
            f"the models move differently and cannot be compared: {a.name} has {listed[0]}; {b.name} has {listed[1]}; "
            "lock the joints that only one of them has"
        )
    return random_states(a, rng, states)


def _verdict(a: Robot, b: Robot, joints: tuple[JointDifference, ...], mass: float) -> str:
    apart = [joint for joint in joints if not joint.same_axis]
    same_dynamics = mass < SAME and all(joint.same_torque for joint in joints)
    if apart:
        first = apart[0]
        turned = " (they turn opposite ways)" if first.axis_angle > np.pi - SAME else ""
        where = (
            f"at joint {first.names[0]} / {first.names[1]}: its axes differ by {np.degrees(first.axis_angle):.3g}°"
            f"{turned} and by {first.axis_distance * 1e3:.3g} mm"
        )
        if same_dynamics:
            return (
                "the dynamics agree, the frames do not: mass matrix, gravity and torque are the same, but the axes "
                f"stand elsewhere from the base, first {where}; compare how the two bases are placed"
            )
        return (
            f"the frames part {where}; "
            "compare the link lengths there, and the zero and the direction of this joint and the one before"
        )
    if not np.allclose(a.gravity, b.gravity, atol=1e-3):
        return f"the joints agree, gravity does not: {a.gravity.tolist()} and {b.gravity.tolist()} m/s²"
    if not same_dynamics:
        heavy = max(joints, key=lambda joint: joint.torque / max(joint.torque_scale, 1e-12))
        return (
            f"the joints agree, the inertial parameters do not: the torque of joint {heavy.names[0]} differs by up to "
            f"{heavy.torque:.3g} of {heavy.torque_scale:.3g} {heavy.unit}"
        )
    return "the models agree"


def compare_models(a: Robot, b: Robot, rng: np.random.Generator, states: int = 200) -> ModelComparison:
    """Compare two models joint by joint, in the order of their joints, at random states."""
    q, qd, qdd = _shared_states(a, b, rng, states)
    (za, ca), (zb, cb) = _axis_lines(a, q), _axis_lines(b, q)
    sine = np.linalg.norm(np.cross(za, zb), axis=-1)
    angle = np.arctan2(sine, np.einsum("tni,tni->tn", za, zb))
    # Lines that are all but parallel are as far apart as their nearest points to the base; others at their crossing.
    common = np.cross(za, zb)
    crossing = np.abs(np.einsum("tni,tni->tn", common, ca - cb)) / np.maximum(sine, 1e-300)
    distance = np.where(sine < 1e-3, np.linalg.norm(ca - cb, axis=-1), crossing)
    g = np.abs(gravity(a, q) - gravity(b, q)).max(axis=0)
    tau_a, tau_b = inverse_dynamics(a, q, qd, qdd), inverse_dynamics(b, q, qd, qdd)
    tau, scale = np.abs(tau_a - tau_b).max(axis=0), np.abs(tau_a).max(axis=0)
    M_a, M_b = mass_matrix(a, q), mass_matrix(b, q)
    mass = float(np.abs(M_a - M_b).max() / np.abs(M_a).max())
    joints = tuple(
        JointDifference(
            (a.dof_names[k], b.dof_names[k]),
            float(angle[:, k].max()),
            float(distance[:, k].max()),
            float(g[k]),
            float(tau[k]),
            float(scale[k]),
            "N" if a.dof_names[k] in a.layout.linear_dofs else "N·m",
        )
        for k in range(a.n)
    )
    totals = (float(a.body_parameters[:, 0].sum()), float(b.body_parameters[:, 0].sum()))
    return ModelComparison((a.name, b.name), joints, mass, totals, _verdict(a, b, joints, mass))
