"""MuJoCo as the simulation: what it has and the equation of motion does not carry can be fitted too.

Tendons, contacts, limits, springs and equality constraints act as the model file has them, its own actuators do not.
The controller is an affine actuator of MuJoCo's, computed at every step of the physics: tau = Kp (q_d − q) +
Kd (q̇_d − q̇) + g, within its limit; g is the known model's gravity at the measured positions, where it is told to help.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import mujoco
import numpy as np
from mujoco.rollout import Rollout
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from ...data.recording import Recording
from ...dynamics import gravity
from ...errors import DataError, ModelError, OptionError
from ...robot.compiling import compile_spec
from ...robot.export_inertials import changed_bodies
from ...robot.export_mjcf import leave_inertias_alone, set_bodies
from ...robot.inertia import from_mass_com_inertia
from ...robot.parameters import JOINT_PROPERTIES
from ...robot.robot import Robot
from ...robot.twin import set_inertia
from ..model import Experiment, LinearModel, Load
from .loops import Loop, controller_of, measured_of, on_ticks, reference_of_recording, start_of
from .pieces import Trace, acting, recording_of

Array = NDArray[np.float64]

# Faster than this nothing that is called a robot moves.
_RUNAWAY = 1e4
_HELD = 1e10  # rotor inertia of a locked joint, in units of the largest inertia of the robot
_NAME = "steelyard {}"
_OWN_GROUP = 30  # where the model's own actuators are put, to be switched off together
# A body that is simple to MuJoCo's compiler in no way: what it leaves out then would be missing with other parameters.
_PLAIN = from_mass_com_inertia(
    1.0, [0.01, 0.02, 0.03], [[0.02, 0.001, 0.002], [0.001, 0.025, 0.003], [0.002, 0.003, 0.03]]
)


def _compiled(robot: Robot) -> mujoco.MjModel:
    """The robot's model with a motor on each joint, ready for any parameters of its bodies."""
    if robot.source is None:
        raise ModelError(f"{robot.name} has no model file behind it; load it with load_robot")
    theta = robot.parameters.copy()
    for name in robot.layout.bodies:
        theta[robot.layout.body(name)] = _PLAIN
    plain = robot.with_parameters(theta)
    spec = robot.source.spec.copy()
    for key in list(spec.keys):
        spec.delete(key)  # it would lack our motors
    for actuator in spec.actuators:
        actuator.group = _OWN_GROUP
    spec.compile()
    leave_inertias_alone(spec)
    set_bodies(plain, spec, changed_bodies(plain))
    for joint in robot.joints:
        motor = spec.add_actuator(name=_NAME.format(joint.name), target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        motor.gaintype, motor.biastype = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
        motor.gainprm[0] = 1.0
        motor.ctrllimited = mujoco.mjtLimited.mjLIMITED_FALSE
    model = compile_spec(spec, f"{robot.name} with motors", [], lines=False)
    model.opt.gravity[:] = robot.gravity
    model.opt.disableactuator = int(model.opt.disableactuator) | (1 << _OWN_GROUP)
    model.opt.disableflags = int(model.opt.disableflags) | int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)
    held = np.setdiff1d(np.arange(model.nv), robot.model_dofs)
    if held.size:
        model.dof_armature[held] = _HELD
        model.dof_frictionloss[held] = 0.0
    return model


@dataclass(frozen=True, eq=False)
class MuJoCoPiece:
    """A recording made under PD control, simulated by MuJoCo at the steps of its physics."""

    model: LinearModel
    measured: Recording
    load: Load | None
    first: Array  # (2, n)
    plain: mujoco.MjModel
    control: Array  # (3, n) gains
    limit: Array
    desired: Array  # (2, steps, n)
    weight: Array  # (steps, n) what the known model's gravity adds
    stride: int  # steps a sample
    delay: int = 0
    start: None = None
    _spare: list[mujoco.MjModel] = field(default_factory=list, repr=False)

    @property
    def gains(self) -> Array:
        return self.control

    def tangent(self, *_: object) -> None:
        """MuJoCo has no variational equations of its own."""
        return

    def delayed(self, ticks: int) -> "MuJoCoPiece":
        raise OptionError("MuJoCo's actuators have no delay of the sensors; leave the delay out, or MuJoCo")

    @cached_property
    def _motors(self) -> NDArray[np.int64]:
        names = [_NAME.format(joint.name) for joint in self.model.robot.joints]
        return np.array([self.plain.actuator(name).id for name in names])

    def _written(self, model: mujoco.MjModel, robot: Robot, gains: Array) -> bool:
        """Parameters and gains into a model; whether MuJoCo can move such bodies."""
        for row, body in enumerate(robot.model_bodies):
            values = robot.body_parameters[row]
            if not values[0] > 0:
                return False
            set_inertia(model, int(body), values)
        if (model.body_inertia < 0).any():
            return False
        dofs = robot.model_dofs
        columns = {name: robot.joint_parameters[:, JOINT_PROPERTIES.index(name)] for name in JOINT_PROPERTIES}
        model.dof_armature[dofs], model.dof_damping[dofs] = columns["armature"], columns["damping"]
        model.dof_frictionloss[dofs] = columns["coulomb"]
        model.actuator_biasprm[self._motors, 1] = -gains[0]
        model.actuator_biasprm[self._motors, 2] = -gains[2]
        finite = np.isfinite(self.limit)
        model.actuator_forcelimited[self._motors] = finite
        model.actuator_forcerange[self._motors] = np.where(finite, self.limit, 0.0)[:, None] * [-1.0, 1.0]
        mujoco.mj_setConst(model, mujoco.MjData(model))
        return True

    def run(self, theta: Array, start: Array | None = None, gains: Array | None = None) -> Trace:
        known, n = self.model.robot, self.model.robot.n
        gains = self.control if gains is None else gains
        robot = known.with_parameters(acting(self.model, theta, self.load))
        try:
            model = self._spare.pop()
        except IndexError:
            model = mujoco.MjModel.__copy__(self.plain)
        rows = len(self.measured)
        if not self._written(model, robot, gains):
            return Trace.of(np.full((4, rows, n), np.nan), 0)
        data = mujoco.MjData(model)
        data.qpos[:] = known.model_position
        data.qpos[known.model_coordinates], data.qvel[known.model_dofs] = self.first
        full = mujoco.mjtState.mjSTATE_FULLPHYSICS
        initial = np.empty(mujoco.mj_stateSize(model, full))
        mujoco.mj_getState(model, data, initial, full)
        steps = (rows - 1) * self.stride
        asked = gains[0] * self.desired[0] + gains[2] * self.desired[1] + self.weight
        control = np.zeros((steps, model.nu + model.nv))
        control[:, self._motors] = asked[:steps]
        offset = robot.joint_parameters[:, JOINT_PROPERTIES.index("offset")]
        control[:, model.nu + known.model_dofs] = -offset
        spec = int(mujoco.mjtState.mjSTATE_CTRL) | int(mujoco.mjtState.mjSTATE_QFRC_APPLIED)
        with Rollout(nthread=0) as thread:
            state, _ = thread.rollout(model, data, initial, control[None], control_spec=spec)
        self._spare.append(model)
        states = np.vstack([initial, state[0]])[:: self.stride]
        q = states[:, 1 + known.model_coordinates]
        qd = states[:, 1 + model.nq + known.model_dofs]
        wild = ~(np.abs(qd) < _RUNAWAY).all(axis=1)
        reached = int(wild.argmax()) if wild.any() else rows
        tau = np.clip(asked[:: self.stride][:rows] - gains[0] * q - gains[2] * qd, -self.limit, self.limit)
        qdd = np.gradient(qd, self.measured.t, axis=0)
        out = np.stack([q, qd, qdd, tau])
        out[:, reached:] = np.nan
        return Trace.of(out, reached)


@dataclass(frozen=True)
class MuJoCo:
    """Let MuJoCo simulate. `step` (s) is that of its physics: by default what the recording says, else the model's."""

    step: float | None = None

    def __post_init__(self) -> None:
        if self.step is not None and not (np.isfinite(self.step) and self.step > 0):
            raise OptionError(f"MuJoCo's step is {self.step} s; it must be above zero")

    def pieces(self, model: LinearModel, experiments: Sequence[Experiment], given: Loop) -> list[MuJoCoPiece]:
        plain = _compiled(model.robot)
        return [self._piece(model, plain, experiment, given) for experiment in experiments]

    def _piece(self, model: LinearModel, plain: mujoco.MjModel, experiment: Experiment, given: Loop) -> MuJoCoPiece:
        measured, robot = recording_of(experiment), model.robot
        controller = controller_of(measured, given)
        gains = controller.gains(robot.n)
        if gains[1].any() or controller.feed_forward or controller.model == "computed torque":
            raise OptionError("MuJoCo's actuators are PD, with gravity or without; leave out ki and feed_forward")
        period = 1.0 / measured.rate_hz
        told = self.step or given.step or measured.about.get("step") or plain.opt.timestep
        stride = max(1, int(np.ceil(period / float(told) - 1e-9)))
        rate = stride / period
        if on_ticks(measured.t, rate) != stride:
            raise DataError(f"{measured_of(measured)} has uneven times; MuJoCo needs even ones (Resample())")
        plain = mujoco.MjModel.__copy__(plain)
        plain.opt.timestep = 1.0 / rate
        reference = reference_of_recording(measured, rate)
        weight = np.zeros(reference.shape[1:])
        if controller.model == "gravity":
            known = robot if given.nominal is None else given.nominal
            ticks = measured.t[0] + np.arange(len(weight)) / rate
            ticks = np.minimum(ticks, measured.t[-1])
            weight = np.asarray(gravity(known, CubicSpline(measured.t, measured.q)(ticks)))
        return MuJoCoPiece(
            model, measured, experiment.load, start_of(measured), plain, gains,
            controller.limits(robot), reference[:2], weight, stride,
        )  # fmt: skip
