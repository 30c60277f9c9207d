"""`simulate`: a robot follows a trajectory under control, and what its sensors said is a `Recording`."""

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.recording import Recording
from ..dynamics import inverse_dynamics, mass_matrix, pose, velocity
from ..errors import OptionError, SteelyardError
from ..excitation.trajectory import Trajectory
from ..physics.friction import CoulombViscous, FrictionLaw
from ..physics.kernels.friction import REFERENCE_TEMPERATURE
from ..physics.transmission import FlexibleJoint
from ..robot.merged import merged
from ..robot.robot import Robot, frozen
from .adaptive import run_adaptive
from .controllers import Controller, pid_for
from .kernels.loop import RK1, RK2, RK4, SEMI_IMPLICIT, run
from .sensors import Sensors

Array = NDArray[np.float64]

INTEGRATORS = {"rk1": RK1, "rk2": RK2, "rk4": RK4, "semi-implicit": SEMI_IMPLICIT}
ADAPTIVE = {"rk45": "RK45", "radau": "Radau"}
# |h λ| below which an explicit method does not run away: its interval on the negative real axis, on the safe side.
_STABLE = {"rk1": 1.0, "rk2": 1.0, "rk4": 1.4, "semi-implicit": 1.0}


class SimulationError(SteelyardError):
    """A simulation ran away."""


class StepWarning(UserWarning):
    """The integration step is too large for the stiffest part of the robot."""


@dataclass(frozen=True, eq=False)
class _Plan:
    """Rates of the loop as whole numbers of each other."""

    control_hz: float
    substeps: int
    ticks_a_sample: int
    ticks: int

    @property
    def dt(self) -> float:
        return 1.0 / self.control_hz


def _plan(duration: float, control_hz: float, sample_hz: float, step: float | None) -> _Plan:
    for name, rate in (("control_hz", control_hz), ("sample_hz", sample_hz)):
        if not (np.isfinite(rate) and 0 < rate <= 1e6):
            raise OptionError(f"{name} is {rate}; give a rate above 0 and at most 1000000 Hz")
    ticks_a_sample = round(control_hz / sample_hz)
    if ticks_a_sample < 1 or abs(ticks_a_sample * sample_hz - control_hz) > 1e-6 * control_hz:
        raise OptionError(
            f"the control rate, {control_hz:g} Hz, must be a multiple of the sampling rate, {sample_hz:g} Hz"
        )
    if step is not None and not (np.isfinite(step) and step > 0):
        raise OptionError(f"the step is {step} s; it must be above zero")
    substeps = 1 if step is None else max(1, int(np.ceil(1.0 / (control_hz * step) - 1e-9)))
    ticks = int(np.floor(duration * control_hz + 1e-9)) + 1
    if ticks * substeps > 500_000_000:
        raise OptionError(
            f"{duration:g} s at this rate are {ticks * substeps} steps; simulate less, or in larger steps"
        )
    return _Plan(control_hz, substeps, ticks_a_sample, ticks)


def _own_friction(robot: Robot) -> FrictionLaw:
    """The robot's own damping, dry friction and offset."""
    damping, coulomb, offset = robot.joint_parameters[:, 1], robot.joint_parameters[:, 2], robot.joint_parameters[:, 3]
    return CoulombViscous(coulomb=coulomb, damping=damping, offset=offset)


def _without_friction(robot: Robot, armature: bool) -> Array:
    rotors = np.zeros_like(robot.joint_parameters)
    if armature:
        rotors[:, 0] = robot.joint_parameters[:, 0]
    return frozen(rotors)


def _rotorless(robot: Robot) -> Array:
    theta = robot.parameters.copy()
    if "armature" in robot.layout.properties:
        theta[robot.layout.block("armature")] = 0.0
    return theta


def _warn_of_large_steps(
    robot: Robot, law: FrictionLaw, flexible: FlexibleJoint | None, h: float, integrator: str, speed: Array, way: Array
) -> None:
    # What a joint feels while the others are free to give way is less than its entry of the mass matrix; at several
    # places of the way, because it changes with the pose. Springs have the rotors on their other side.
    body = robot.with_parameters(_rotorless(robot)) if flexible is not None else robot
    inertia = np.min([1.0 / np.diag(np.linalg.inv(mass_matrix(body, q))) for q in way], axis=0)
    fastest = np.broadcast_to(np.asarray(law.fastest_rate(inertia, speed)), (robot.n,))
    cause = "friction"
    if flexible is not None:
        elastic = np.broadcast_to(np.asarray(flexible.fastest_rate(inertia)), (robot.n,))
        if elastic.max() > fastest.max():
            fastest, cause = elastic, "elasticity"
    k = int(fastest.argmax())
    if h * fastest[k] > _STABLE[integrator]:
        enough = 0.5 * _STABLE[integrator] / fastest[k]
        warnings.warn(
            f"a step of {1e3 * h:.3g} ms is too large for the {cause} of {robot.dof_names[k]}, which acts within "
            f"{1e3 / fastest[k]:.3g} ms; take step={enough:.2g} or an implicit integrator",
            StepWarning,
            stacklevel=3,
        )


def _start(robot: Robot, trajectory_start: Array, start: ArrayLike | None, flexible: FlexibleJoint | None) -> Array:
    """Rows q, q̇, z, θ, θ̇: at rest where the trajectory begins; motors turned so that springs carry the weight."""
    state = np.zeros((5, robot.n))
    if start is not None and np.shape(start) != (robot.n,):
        raise OptionError(f"start has shape {np.shape(start)}; {robot.name} has {robot.n} joints")
    state[0] = trajectory_start if start is None else start
    if not np.isfinite(state[0]).all():
        raise OptionError(f"start is {np.asarray(start).tolist()}; it must be finite")
    state[3] = state[0]
    if flexible is not None:
        still = np.zeros(robot.n)
        weight = inverse_dynamics(robot, state[0], still, still)
        state[3] = state[0] + weight / flexible.packed(robot.n)[:, 1]
    return state


def _temperatures(temperature: float | Callable[[Array], Array], t: Array) -> Array:
    """The temperature at every control tick."""
    values = np.asarray(temperature(t) if callable(temperature) else np.full(len(t), temperature), dtype=np.float64)
    if values.shape != t.shape or not np.isfinite(values).all():
        raise OptionError(f"the temperature has shape {values.shape}; {len(t)} finite numbers are needed, one a tick")
    return np.ascontiguousarray(values)


def _describe(value: Any) -> Any:
    """Settings as what JSON has."""
    if is_dataclass(value) and not isinstance(value, type):
        return {"kind": type(value).__name__, **{key: _describe(item) for key, item in asdict(value).items()}}
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value


def _cartesian(
    robot: Robot, desired: tuple[Array, Array], true: tuple[Array, Array], seen: tuple[Array, Array]
) -> dict[str, Array]:
    """Position and velocity (six numbers) of the last body: desired X_d, true X, as the sensors have it X_m."""
    more = {}
    for name, (q, qd) in {"X_d": desired, "X": true, "X_m": seen}.items():
        more[name] = pose(robot, q)[0]
        more[name.replace("X", "Xd", 1)] = velocity(robot, q, qd)
    return more


def simulate(
    robot: Robot,
    trajectory: Trajectory,
    *,
    controller: Controller | None = None,
    friction: FrictionLaw | None = None,
    flexible: FlexibleJoint | None = None,
    sensors: Sensors | None = None,
    rng: np.random.Generator | None = None,
    nominal: Robot | None = None,
    control_hz: float = 1000.0,
    sample_hz: float | None = None,
    step: float | None = None,
    integrator: str = "rk4",
    start: ArrayLike | None = None,
    temperature: float | Callable[[Array], Array] = REFERENCE_TEMPERATURE,
    cartesian: bool = True,
    seed_note: int | None = None,
) -> Recording:
    """Let a robot follow a trajectory under control and record it.

    `friction` replaces the robot's own damping, dry friction and offset; `flexible` puts springs into the joints, its
    motor inertia in place of the armature; `nominal` is the model that the controller knows (default: the robot
    itself). `step` (s) is the longest integration step inside a control tick. `rng` draws all noise.
    """
    if robot.nq != robot.n:
        raise OptionError(f"{robot.name} has ball or free joints; the closed loop is written for hinges and slides")
    if trajectory.n != robot.n:
        raise OptionError(f"the trajectory has {trajectory.n} joints, {robot.name} has {robot.n}")
    if integrator not in INTEGRATORS and integrator not in ADAPTIVE:
        raise OptionError(f"no integrator '{integrator}'; valid: {', '.join([*INTEGRATORS, *ADAPTIVE])}")
    sensors = Sensors() if sensors is None else sensors
    rng = np.random.default_rng(0) if rng is None else rng
    known = robot if nominal is None else nominal
    if known.n != robot.n:
        raise OptionError(f"the nominal model has {known.n} joints, {robot.name} has {robot.n}")
    controller = pid_for(known) if controller is None else controller
    sample_hz = control_hz if sample_hz is None else sample_hz
    plan = _plan(trajectory.duration, control_hz, sample_hz, step)
    law = _own_friction(robot) if friction is None else friction
    n = robot.n

    t = np.arange(plan.ticks, dtype=np.float64) * plan.dt
    desired: Array = np.stack(trajectory.sample(t))
    if integrator in INTEGRATORS:
        speed, way = np.abs(desired[1]).max(axis=0), desired[0][:: max(1, plan.ticks // 20)]
        _warn_of_large_steps(robot, law, flexible, plan.dt / plan.substeps, integrator, speed, way)
    feed_forward = inverse_dynamics(known, *desired) if controller.feed_forward else np.zeros((plan.ticks, n))
    warm = _temperatures(temperature, t)
    loop_rng, torque_rng = rng.spawn(2)
    springs = np.zeros((0, 3)) if flexible is None else flexible.packed(n)
    rows = (plan.ticks + plan.ticks_a_sample - 1) // plan.ticks_a_sample
    out = np.empty((rows, 9, n))
    body, thought = merged(robot), merged(known)
    fixed = (body.links, body.dofs, body.bodies, _without_friction(robot, flexible is None), robot.gravity)
    arguments = (
        fixed,
        law.packed(n),
        springs,
        (controller.gains(n), controller.limits(robot), controller.mode()),
        (thought.links, thought.dofs, thought.bodies, known.joint_parameters, known.gravity),
        desired,
        feed_forward,
        _start(robot, desired[0, 0], start, flexible),
    )
    noise, resolution = sensors.in_the_loop(plan.ticks, n, loop_rng), sensors.per_joint("position_step", n)
    differenced = sensors.velocity == "differentiated"
    rates = (
        plan.substeps,
        plan.ticks_a_sample,
        INTEGRATORS.get(integrator, RK4),
        int(sensors.delay_ticks),
        differenced,
        plan.dt,
    )
    if integrator in ADAPTIVE:
        tick, joint = run_adaptive(ADAPTIVE[integrator], arguments, rates, noise, resolution, warm, out)
    else:
        tick, joint = run(*arguments, rates, noise, resolution, warm, out)
    if tick >= 0:
        raise SimulationError(
            f"the simulation ran away at {tick * plan.dt:.4f} s in {robot.dof_names[joint]}; take a smaller step "
            f"(now {1e3 * plan.dt / plan.substeps:.3g} ms), softer gains, or integrator='radau'"
        )

    picked = slice(None, None, plan.ticks_a_sample)
    ts, wanted = t[picked], desired[:, picked]
    true, seen = (out[:, 0], out[:, 1]), (out[:, 3], out[:, 4])
    more = {
        "q_d": wanted[0], "qd_d": wanted[1], "qdd_d": wanted[2],
        "q_true": out[:, 0], "qd_true": out[:, 1], "qdd_true": out[:, 2],
        "tau_commanded": out[:, 5], "tau_friction": out[:, 6],
    }  # fmt: skip
    if flexible is not None:
        more |= {"theta": out[:, 7], "theta_rate": out[:, 8]}
    if cartesian:
        more |= _cartesian(robot, (wanted[0], wanted[1]), true, seen)
    about = {
        "source": "simulation",
        "robot": robot.name,
        "seed": seed_note,
        "integrator": integrator,
        "control_hz": control_hz,
        "sample_hz": sample_hz,
        "step": plan.dt / plan.substeps,
        "friction": _describe(law),
        "flexible": _describe(flexible),
        "sensors": _describe(sensors),
        "controller": _describe(controller),
        "parameters": dict(zip(robot.parameter_names, robot.parameters.tolist(), strict=True)),
    }
    tau = sensors.of_torque(ts, out[:, 5], torque_rng)
    return Recording(ts, seen[0], tau, seen[1], None, robot.dof_names, more, about)
