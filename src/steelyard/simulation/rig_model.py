"""The body of the rig: a robot's own MuJoCo model, with what makes it differ from the robot one believes in."""

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from ..errors import ModelError, OptionError, unknown_name
from ..robot.compiling import compile_spec
from ..robot.parameters import JOINT_PROPERTIES
from ..robot.robot import Array, Robot

_STEEL = 7850.0  # kg/m³
_HELD = 1e10  # rotor inertia of a locked joint, in units of the largest inertia of the robot


@dataclass(frozen=True)
class Payload:
    """A mass fixed to a body, as a steel ball with its centre at `com` in the body's frame."""

    body: str
    mass: float  # kg
    com: tuple[float, float, float] = (0.0, 0.0, 0.0)  # m

    def __post_init__(self) -> None:
        if not (np.isfinite(self.mass) and self.mass > 0):
            raise OptionError(f"the payload on {self.body} weighs {self.mass} kg; it must be above zero")
        if len(self.com) != 3 or not np.isfinite(self.com).all():
            raise OptionError(f"the payload on {self.body} is at {self.com}; give three finite numbers, m")

    @property
    def moment(self) -> float:
        """I = 2/5 m r², with the radius of a steel ball."""
        radius = (3 * self.mass / (4 * np.pi * _STEEL)) ** (1 / 3)
        return 0.4 * self.mass * radius**2


@dataclass(frozen=True, eq=False)
class Difference:
    """How the rig differs from the model: payloads, damping times a factor, dry friction in place of the model's."""

    payloads: tuple[Payload, ...] = ()
    damping_scale: float = 1.0
    coulomb: ArrayLike | None = None  # N·m or N, one or a number a joint
    contacts: bool = True

    def __post_init__(self) -> None:
        if not (np.isfinite(self.damping_scale) and self.damping_scale >= 0):
            raise OptionError(f"the damping is scaled by {self.damping_scale}; give a finite number, not below zero")
        if self.coulomb is not None:
            values = np.asarray(self.coulomb, dtype=np.float64)
            if not (np.isfinite(values) & (values >= 0)).all():
                raise OptionError(f"dry friction is {self.coulomb}; give finite numbers, none below zero")


def _with_payloads(robot: Robot, payloads: tuple[Payload, ...]) -> mujoco.MjModel:
    if robot.source is None:
        raise ModelError(f"{robot.name} has no model file behind it; load it with load_robot")
    if not payloads:
        return mujoco.MjModel.__copy__(robot.source.model)
    spec = robot.source.spec.copy()
    bodies = {body.name: body for body in spec.bodies if body.name and body.name != "world"}
    taken = set(bodies)
    for k, payload in enumerate(payloads):
        if payload.body not in bodies:
            raise OptionError(unknown_name("body", payload.body, bodies))
        name = f"payload{k}"
        while name in taken:
            name += "_"
        taken.add(name)
        bodies[payload.body].add_body(
            name=name,
            pos=payload.com,
            mass=payload.mass,
            ipos=np.zeros(3),  # or MuJoCo 4 takes the body's own place for it
            inertia=[payload.moment] * 3,
            explicitinertial=True,
        )
    before = robot.source.model
    model = compile_spec(spec, f"{robot.name} with its payload", [], lines=False)
    gained = float(model.body_mass.sum() - before.body_mass.sum())
    if abs(gained - sum(payload.mass for payload in payloads)) > 1e-6 * float(model.body_mass.sum()):
        raise ModelError(
            f"{robot.name} gains {gained:g} kg by its payload: its <compiler> sets or balances masses; switch that off"
        )
    return model


def rig_model(robot: Robot, difference: Difference) -> tuple[mujoco.MjModel, Array, Array]:
    """The MuJoCo model that the rig moves, with its joints' torque offset and dry friction.

    Contacts, limits, springs and friction act as the file has them; actuators do not. A locked joint gets a rotor so
    heavy that nothing moves it, which leaves the others what they would feel of a rigid joint.
    """
    model = _with_payloads(robot, difference.payloads)
    columns = {name: robot.joint_parameters[:, JOINT_PROPERTIES.index(name)] for name in JOINT_PROPERTIES}
    dofs = robot.model_dofs
    coulomb = columns["coulomb"] if difference.coulomb is None else np.asarray(difference.coulomb, dtype=np.float64)
    if coulomb.shape not in ((), (robot.n,)):
        raise OptionError(f"dry friction has {coulomb.size} numbers; give one, or {robot.n}, one a joint")
    model.dof_armature[dofs] = columns["armature"]
    model.dof_damping[dofs] = difference.damping_scale * columns["damping"]
    model.dof_frictionloss[dofs] = coulomb
    model.opt.gravity[:] = robot.gravity
    off = mujoco.mjtDisableBit
    flags = int(model.opt.disableflags) & ~int(off.mjDSBL_GRAVITY)
    # A state that runs away is to be reported, not set back in silence.
    flags |= int(off.mjDSBL_ACTUATION | off.mjDSBL_AUTORESET)
    model.opt.disableflags = flags | (0 if difference.contacts else int(off.mjDSBL_CONTACT))
    data = mujoco.MjData(model)
    held = np.setdiff1d(np.arange(model.nv), dofs)
    if held.size:
        data.qpos[:] = robot.model_position
        mujoco.mj_forward(model, data)
        M = np.empty((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        model.dof_armature[held] = _HELD * float(np.abs(np.diag(M)).max())
        model.dof_frictionloss[held] = 0.0
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model, columns["offset"], np.array(np.broadcast_to(coulomb, (robot.n,)))


def takes_damping_at_the_end(model: mujoco.MjModel) -> bool:
    """Whether a step of MuJoCo's solves M q̈ + D (q̇ + h q̈) = …, as if rotors had h D more inertia."""
    disabled = int(model.opt.disableflags) & int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP)
    euler = int(mujoco.mjtIntegrator.mjINT_EULER), int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST)
    return int(model.opt.integrator) in euler and not (disabled and int(model.opt.integrator) == euler[0])
