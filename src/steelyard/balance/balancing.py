"""A wheel-legged robot that balances in MuJoCo: legs held by PD, pitch and place by a linear-quadratic regulator.

The regulator takes the legs for rigid and the wheels for rolling: z = (x, θ), the axles' way and the pitch about them,
lifted to the robot's velocities by E,

    EᵀME z̈ + EᵀDE ż = (0, m g ℓ θ) + Eᵀ u,    u = −K (z, ż)

with MuJoCo's mass matrix M and damping D in the pose, and ℓ the height of the centre of mass above the axles. (What
MuJoCo's own linearisation says of a step or two is no help: its contacts take some ten steps to stop a slip.)
"""

from dataclasses import dataclass

import mujoco
import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ..errors import ModelError, OptionError
from ..robot.tree import FREE
from .posture import lean, posture, whole_com
from .stance import Stance

Array = NDArray[np.float64]

IMU = "steelyard_imu"
STEP = 0.002  # s, of the physics
HOLD = 2  # steps for which a command is held
# What the regulator weighs: 5 cm, 3°, 0.3 m/s, 0.5 rad/s, and of torque this share of weight by wheel radius.
_STATE_SCALE = np.array([0.05, 0.05, 0.3, 0.5])
_TORQUE_SHARE = 0.12
# Of the legs' PD, in the robot's own measure: the weight on one leg turns a joint by this angle at a lever of its leg.
_SAG = 0.02  # rad


@dataclass(frozen=True)
class Load:
    """A mass that is put on the trunk, at a place in the trunk's frame."""

    mass: float  # kg
    place: tuple[float, float, float]  # m

    def __post_init__(self) -> None:
        if not (0 <= self.mass < np.inf and np.isfinite(self.place).all()):
            raise OptionError(
                f"a load of {self.mass:g} kg at {self.place} cannot be put on; give finite numbers from 0"
            )


@dataclass(frozen=True, eq=False)
class Plant:
    """The robot with servos, an IMU and a floor, as MuJoCo has it."""

    model: mujoco.MjModel
    stance: Stance
    trunk: int  # body
    free_q: int
    free_v: int
    q: NDArray[np.int64]  # of the joints, in qpos
    v: NDArray[np.int64]  # of the joints, in qvel
    motors: NDArray[np.int64]  # in ctrl, one a joint
    stiffness: float
    accelerometer: slice


def plant(stance: Stance, load: Load | None = None) -> Plant:
    """Servos on the legs and motors on the wheels in place of the model's own actuators."""
    source = stance.robot.source
    assert source is not None
    spec = source.spec.copy()
    for actuator in list(spec.actuators):
        spec.delete(actuator)
    spec.option.timestep = STEP
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    if not any(geom.type == mujoco.mjtGeom.mjGEOM_PLANE for geom in spec.worldbody.geoms):
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1], contype=1, conaffinity=1)
    trunk = spec.body(stance.trunk)
    trunk.add_site(name=IMU)
    spec.add_sensor(name=IMU, type=mujoco.mjtSensor.mjSENS_ACCELEROMETER, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=IMU)
    if load is not None and load.mass > 0:
        edge = 0.1  # m, a solid cube
        body = trunk.add_body(name="steelyard_load", pos=list(load.place))
        body.mass, body.inertia, body.ipos = load.mass, [load.mass * edge**2 / 6.0] * 3, [0.0, 0.0, 0.0]
        body.explicitinertial = True
    mass, _ = whole_com(stance, stance.home)
    kp = mass * 9.81 * 0.5 * stance.leg_length / len(stance.legs) / _SAG
    kv = 0.1 * kp * 0.5
    wheels = {leg.wheel for leg in stance.legs}
    for name in stance.joints:
        motor = spec.add_actuator(name=f"steelyard_{name}", trntype=mujoco.mjtTrn.mjTRN_JOINT, target=name)
        if name not in wheels:
            motor.gainprm[0], motor.biastype = kp, mujoco.mjtBias.mjBIAS_AFFINE
            motor.biasprm[1:3] = -kp, -kv
    try:
        model = spec.compile()
    except ValueError as error:
        raise ModelError(f"{stance.robot.name} cannot be put on a floor: {error}") from None
    joint = {name: model.joint(name) for name in stance.joints}
    free = next(j for j in stance.robot.joints if j.kind == FREE)
    root = model.joint(free.name) if free.name else model.joint(0)
    first = int(model.sensor(IMU).adr[0])
    return Plant(
        model,
        stance,
        int(model.body(stance.trunk).id),
        int(root.qposadr[0]),
        int(root.dofadr[0]),
        np.array([int(joint[name].qposadr[0]) for name in stance.joints]),
        np.array([int(joint[name].dofadr[0]) for name in stance.joints]),
        np.array([int(model.actuator(f"steelyard_{name}").id) for name in stance.joints]),
        kp,
        slice(first, first + 3),
    )


def true_upper_body(machine: Plant) -> tuple[float, Array]:
    """Mass and centre of mass of the trunk with all that is welded to it, by MuJoCo, in the trunk's frame."""
    model, data = machine.model, mujoco.MjData(machine.model)
    mujoco.mj_forward(model, data)
    weld = model.body_weldid == model.body_weldid[machine.trunk]
    mass = float(model.body_mass[weld].sum())
    com = model.body_mass[weld] @ data.xipos[weld] / mass
    return mass, data.xmat[machine.trunk].reshape(3, 3).T @ (com - data.xpos[machine.trunk])


@dataclass(frozen=True, eq=False)
class Balance:
    """A pose to stand in and the regulator that holds it."""

    qpos: Array
    command: Array  # (motors,)
    gain: Array  # (4,) wheel torque by z, on the sum of wheels
    drive: Array  # (motors,) that torque's share of each wheel
    turn: Array  # (motors,) the wheels' torques against a turn of 1 rad/s about the vertical
    level: Array  # (3, 3) the trunk's axes in level ones


def _settled(machine: Plant, q: Array, R: Array, height: float) -> tuple[mujoco.MjData, Array]:
    """The pose at that depth in the floor at which it carries the weight; and the joints' torques."""
    model, data = machine.model, mujoco.MjData(machine.model)
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, R.ravel())
    v = machine.free_v

    def pushed(z: float) -> float:
        data.qpos[machine.free_q : machine.free_q + 7] = [0.0, 0.0, z, *quat]
        data.qpos[machine.q] = q
        data.qvel[:] = 0.0
        mujoco.mj_forward(model, data)
        data.qacc[:] = 0.0
        mujoco.mj_inverse(model, data)
        return float(data.qfrc_inverse[v + 2])

    deep, high = height - 0.02, height + 0.01
    if pushed(deep) > 0:
        raise ModelError(f"{machine.stance.robot.name} does not stand on its wheels: the floor does not meet them")
    if pushed(high) < 0:
        touched = {model.body(int(model.geom_bodyid[geom])).name for pair in data.contact.geom for geom in pair}
        raise ModelError(
            f"{machine.stance.robot.name} does not stand on its wheels {height:.3g} m high: "
            f"{', '.join(sorted(touched - {'world'}))} meets the floor or another body first; let its shapes collide "
            "with nothing (contype=0, conaffinity=0)"
        )
    for _ in range(60):
        middle = 0.5 * (deep + high)
        deep, high = (deep, middle) if pushed(middle) > 0 else (middle, high)
    return data, data.qfrc_inverse[machine.v].copy()


def _lift(machine: Plant, data: mujoco.MjData, R: Array) -> tuple[Array, Array]:
    """E's columns of rolling and pitching, and the wheels' signs."""
    stance, n, v = machine.stance, machine.model.nv, machine.free_v
    ahead, across = stance.forward, stance.lateral  # of the level heading, which a pose starts with
    bodies = [machine.model.body(leg.wheel_body).id for leg in stance.legs]
    lever = data.xpos[machine.trunk] - np.mean([data.xpos[b] for b in bodies], axis=0)
    signs = np.zeros(len(stance.joints))
    E = np.zeros((n, 2))
    E[v : v + 3, 0] = ahead
    E[v : v + 3, 1] = np.cross(across, lever)
    E[v + 3 : v + 6, 1] = R.T @ across
    for leg in stance.legs:
        k = stance.column(leg.wheel)
        axle = data.xaxis[machine.model.joint(leg.wheel).id]
        signs[k] = np.sign(axle @ across)
        E[machine.v[k]] = signs[k] / leg.radius, -signs[k]
    return E, signs


def _rolling(machine: Plant, data: mujoco.MjData, E: Array, push: Array) -> tuple[Array, Array]:
    """ż = a z + b u of z = (x, θ, ẋ, θ̇): a pendulum on wheels, of MuJoCo's masses; `push` is Eᵀ of u = 1."""
    model = machine.model
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    axles = [data.xpos[model.body(leg.wheel_body).id, 2] for leg in machine.stance.legs]
    weight = 9.81 * model.body_subtreemass[machine.trunk]
    tilts = np.diag([0.0, weight * (data.subtree_com[machine.trunk, 2] - np.mean(axles))])
    brakes = (E.T * model.dof_damping) @ E
    a, b = np.zeros((4, 4)), np.zeros(4)
    a[:2, 2:] = np.eye(2)
    a[2:] = np.linalg.solve(E.T @ M @ E, np.hstack([tilts, -brakes]))
    b[2:] = np.linalg.solve(E.T @ M @ E, push)
    return a, b


def _regulator(a: Array, b: Array, torque: float) -> Array:
    """The gain of least cost for commands that are held; `torque` is what counts as much as `_STATE_SCALE`."""
    held = scipy.linalg.expm(HOLD * STEP * np.block([[a, b[:, None]], [np.zeros((1, 5))]]))
    a, b = held[:4, :4], held[:4, 4]
    weight, cost = np.diag(1.0 / _STATE_SCALE**2), np.array([[1.0 / torque**2]])
    try:
        P = scipy.linalg.solve_discrete_are(a, b[:, None], weight, cost)
    except (ValueError, np.linalg.LinAlgError) as error:
        raise ModelError(f"the robot cannot be balanced in this pose by its wheels: {error}") from None
    return (b @ P @ a) / (cost[0, 0] + b @ P @ b)


def balance(machine: Plant, height: float, pitch: float = 0.0, roll: float = 0.0) -> Balance:
    """Find the pose of the nominal robot, linearise and design the regulator; what is loaded, it does not know."""
    stance, model = machine.stance, machine.model
    q = posture(stance, height, pitch, roll)
    if q is None:
        raise OptionError(
            f"{stance.robot.name} cannot stand {height:.3g} m high, pitched {np.degrees(pitch):.3g}° and rolled "
            f"{np.degrees(roll):.3g}°; choose another pose"
        )
    R = lean(stance, pitch, roll)
    data, tau = _settled(machine, q, R, height)
    E, signs = _lift(machine, data, R)
    command = np.zeros(model.nu)
    held = signs == 0
    command[machine.motors[held]] = q[held] + tau[held] / machine.stiffness
    drive, turn = np.zeros(model.nu), np.zeros(model.nu)
    drive[machine.motors] = signs / np.abs(signs).sum()
    for leg in stance.legs:
        k = stance.column(leg.wheel)
        side = np.sign((data.xpos[model.body(leg.wheel_body).id] - data.xpos[machine.trunk]) @ (R @ stance.lateral))
        turn[machine.motors[k]] = side * signs[k]
    weight = 9.81 * model.body_subtreemass[machine.trunk]
    torque = _TORQUE_SHARE * weight * float(np.mean([leg.radius for leg in stance.legs]))
    gain = _regulator(*_rolling(machine, data, E, E[machine.v].T @ drive[machine.motors]), torque)
    return Balance(data.qpos.copy(), command, gain, drive, turn, R)
