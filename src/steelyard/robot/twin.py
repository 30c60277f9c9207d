"""The same robot in MuJoCo: the judge of our kernels, and the body that simulations move."""

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from ..errors import ModelError
from .export_inertials import changed_bodies
from .export_mjcf import leave_inertias_alone, set_bodies
from .inertia import mass_com_inertia
from .parameters import JOINT_PROPERTIES
from .robot import Array, Robot
from .sources import Source


def set_inertia(model: mujoco.MjModel, body: int, parameters: Array) -> None:
    """Write the ten numbers of a body into a compiled model; `mj_setConst` has to follow."""
    mass, com, inertia = mass_com_inertia(parameters)
    moments, axes = np.linalg.eigh(inertia)
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(axes).ravel())
    model.body_mass[body], model.body_ipos[body] = mass, com
    model.body_inertia[body], model.body_iquat[body] = moments, quaternion


def _recompiled(robot: Robot, source: Source, changed: frozenset[int]) -> mujoco.MjModel:
    """The model from its spec: what the compiler found simple in a body may not be so with another inertia."""
    spec = source.spec.copy()
    spec.compile()
    leave_inertias_alone(spec)
    set_bodies(robot, spec, changed)
    return spec.compile()


# Forces and inertias that the equation does not carry. Springs, contacts and constraints have switches, these have not.
_NOT_CARRIED = (
    "dof_dampingpoly",
    "actuator_armature",
    "actuator_damping",
    "actuator_dampingpoly",
    "tendon_armature",
    "tendon_damping",
    "tendon_dampingpoly",
    "tendon_stiffness",
    "tendon_stiffnesspoly",
    "tendon_frictionloss",
    "flex_damping",
    "flex_edgedamping",
    "flex_stiffness",
    "flex_edgestiffness",
    "body_gravcomp",
)


@dataclass(frozen=True, eq=False)
class Twin:
    """A MuJoCo model with the robot's parameters and gravity; locked joints are held by what the caller passes."""

    robot: Robot
    model: mujoco.MjModel
    data: mujoco.MjData

    def place(self, q: ArrayLike, qd: ArrayLike | None = None, qdd: ArrayLike | None = None) -> mujoco.MjData:
        """Set the state; locked joints stand where they are locked, without speed."""
        robot, data = self.robot, self.data
        data.qpos[:] = robot.model_position
        data.qpos[robot.model_coordinates] = q
        data.qvel[:] = 0.0
        data.qacc[:] = 0.0
        if qd is not None:
            data.qvel[robot.model_dofs] = qd
        if qdd is not None:
            data.qacc[robot.model_dofs] = qdd
        return data

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """`mj_inverse` of one sample, with what MuJoCo leaves to its constraint solver or does not have added.

        Dry friction is a constraint in MuJoCo, and the twin has no constraints; an offset it does not know.
        """
        mujoco.mj_inverse(self.model, self.place(q, qd, qdd))
        joints = self.robot.joint_parameters
        dry = joints[:, JOINT_PROPERTIES.index("coulomb")] * np.sign(qd)
        offset = joints[:, JOINT_PROPERTIES.index("offset")]
        return self.data.qfrc_inverse[self.robot.model_dofs] + dry + offset

    def mass_matrix(self, q: ArrayLike) -> Array:
        """MuJoCo's mass matrix at a position."""
        mujoco.mj_forward(self.model, self.place(q))
        M = np.empty((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, M)
        return M[np.ix_(self.robot.model_dofs, self.robot.model_dofs)]

    def energy(self, q: ArrayLike, qd: ArrayLike) -> tuple[float, float]:
        """Kinetic and potential energy as MuJoCo sees them; bodies that do not move count into neither."""
        mujoco.mj_forward(self.model, self.place(q, qd))
        mujoco.mj_energyPos(self.model, self.data)
        mujoco.mj_energyVel(self.model, self.data)
        still = np.ones(self.model.nbody, dtype=bool)
        still[self.robot.model_bodies] = False
        weight = self.model.body_mass[still, None] * self.data.xipos[still]
        return float(self.data.energy[1]), float(self.data.energy[0] + (weight @ self.model.opt.gravity).sum())


def twin(robot: Robot) -> Twin:
    """The robot's MuJoCo model with its present parameters and without contacts, constraints, springs and motors."""
    if robot.source is None:
        raise ModelError(f"{robot.name} has no model file behind it; load it with load_robot")
    changed = changed_bodies(robot)
    if any(robot.source.model.body_simple[body] for body in changed):
        model = _recompiled(robot, robot.source, changed)
    else:
        model = mujoco.MjModel.__copy__(robot.source.model)
    model.opt.gravity[:] = robot.gravity
    off = mujoco.mjtDisableBit
    # Gravity may be switched off in the file; the robot's own value says whether it acts.
    model.opt.disableflags = int(off.mjDSBL_CONSTRAINT | off.mjDSBL_CONTACT | off.mjDSBL_ACTUATION | off.mjDSBL_SPRING)
    model.opt.density = model.opt.viscosity = 0.0
    for name in _NOT_CARRIED:
        getattr(model, name)[:] = 0.0
    for row, body in enumerate(robot.model_bodies):
        if int(body) in changed:
            set_inertia(model, int(body), robot.body_parameters[row])
    for name, values in (("armature", model.dof_armature), ("damping", model.dof_damping)):
        values[robot.model_dofs] = robot.joint_parameters[:, JOINT_PROPERTIES.index(name)]
    data = mujoco.MjData(model)
    mujoco.mj_setConst(model, data)
    return Twin(robot, model, data)
