"""`run_controlled`: a controller as a Python step function over the plant of `simulation/`, which is compiled.

A controller is a settings object whose `start` gives the memory of one run; that one's `step` is called at every tick:

    class Still:
        def start(self, n, dt):
            return StillStep(n)

    class StillStep:
        def step(self, seen, wanted):
            return 10.0 * (wanted.q - seen.q)

    run = run_controlled(Plant(robot), Still(), reference_of(trajectory, 1000.0))

If the memory has a method `signals()` as well, the arrays that it names are kept of every tick (`run.signals`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..dynamics import inverse_dynamics
from ..dynamics.kernels.single import workspace
from ..errors import DataError, OptionError
from ..physics.friction import FrictionLaw
from ..physics.kernels.friction import REFERENCE_TEMPERATURE
from ..physics.transmission import FlexibleJoint
from ..robot.joint_frames import joint_frames
from ..robot.robot import Robot, frozen
from ..simulation.kernels.loop import NOT_PHYSICAL, STATES, THETA, Q, measure
from ..simulation.loop import INTEGRATORS, MOST_STEPS, SimulationError, own_friction
from ..simulation.sensors import Disturbance, Sensors
from ..simulation.stiffness import STABLE, fastest_rates, free_inertia, with_grips
from .kernels.loop import hold

Array = NDArray[np.float64]


class Seen(NamedTuple):
    """What a controller knows at a tick; with rigid joints the motors' motion is that of the links."""

    tick: int
    t: float  # s
    q: Array  # (n,) of the links, as measured
    qd: Array
    theta: Array  # (n,) of the motors, on the side of the joint
    theta_rate: Array
    tau: Array  # (n,) the torque that acted during the last tick, within the limits; zero at the first


class Wanted(NamedTuple):
    """What a controller is asked to follow at a tick."""

    q: Array
    qd: Array
    qdd: Array


class Steps(Protocol):
    """The memory of a controller during one run."""

    def step(self, seen: Seen, wanted: Wanted) -> Array:
        """The torque of the motors, (n,), until the next tick."""
        ...


class Controlling(Protocol):
    """A controller as settings; `dt` is the length of a tick in s."""

    def start(self, n: int, dt: float) -> Steps: ...


@dataclass(frozen=True, eq=False)
class Plant:
    """A robot as it really is, with its friction, springs, sensors and torque limits: all but the controller.

    `friction` replaces the robot's own damping, dry friction and offset; `flexible` puts springs into the joints, its
    motor inertia in place of the armature. `step` is the longest integration step in s; without it the loop takes what
    the stiffest friction or spring bears. No limit: that of the robot's joints, where known. Torque sensors and delay
    are not part of it.
    """

    robot: Robot
    friction: FrictionLaw | None = None
    flexible: FlexibleJoint | None = None
    control_hz: float = 1000.0
    step: float | None = None
    integrator: str = "rk4"
    limit: ArrayLike | None = None
    sensors: Sensors = field(default_factory=Sensors)
    temperature: float = REFERENCE_TEMPERATURE

    def __post_init__(self) -> None:
        robot = self.robot
        if robot.nq != robot.n or robot.n == 0:
            raise OptionError(f"{robot.name} has ball or free joints, or none; this loop is for hinges and slides")
        if not (np.isfinite(self.control_hz) and 0 < self.control_hz <= 1e6):
            raise OptionError(f"control_hz is {self.control_hz}; give a rate above 0 and at most 1000000 Hz")
        if self.integrator not in INTEGRATORS:
            raise OptionError(f"no integrator '{self.integrator}'; valid: {', '.join(INTEGRATORS)}")
        if self.step is not None and not (np.isfinite(self.step) and self.step > 0):
            raise OptionError(f"the step is {self.step} s; it must be above zero")
        if self.sensors.delay_ticks:
            raise OptionError(f"delay_ticks is {self.sensors.delay_ticks}; this loop has no delay, simulate() has")
        _ = self.limits

    @property
    def law(self) -> FrictionLaw:
        """The friction that acts."""
        return own_friction(self.robot) if self.friction is None else self.friction

    @property
    def dt(self) -> float:
        return 1.0 / self.control_hz

    @property
    def limits(self) -> Array:
        """The largest torque of each motor."""
        n = self.robot.n
        value = self.robot.limits.torque if self.limit is None else np.asarray(self.limit, dtype=np.float64)
        if value.shape not in ((), (n,)) or not (value > 0).all():
            raise OptionError(f"the torque limit is {self.limit}; give one positive number, or {n}")
        return np.array(np.broadcast_to(value, (n,)))

    def substeps(self, reference: Array) -> int:
        """Integration steps a tick on the way of a reference (3, ticks, n)."""
        step = self.step
        if step is None:
            rates, _ = fastest_rates(self.robot, self.law, self.flexible, reference)
            step = STABLE[self.integrator] / max(float(rates.max()), 1e-9)
        count = max(1, int(np.ceil(self.dt / step - 1e-9)))
        if reference.shape[1] * count > MOST_STEPS:
            raise OptionError(
                f"{reference.shape[1]} ticks in steps of {step:.2g} s are {reference.shape[1] * count} steps; simulate "
                "less, or give a larger step"
            )
        return count

    def start_state(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Rows q, q̇, z, θ, θ̇, w; motors turned so that springs carry the weight."""
        state = np.zeros((STATES, self.robot.n))
        state[0], state[1] = q, qd
        state[3], state[4] = state[0], state[1]
        if self.flexible is not None:
            still = np.zeros(self.robot.n)
            state[3] += self.flexible.twist_under(inverse_dynamics(self.robot, state[0], still, still))
        return state


@dataclass(frozen=True, eq=False)
class Run:
    """What happened, a row a tick: true motion, what the controller saw and asked for, and its own signals."""

    t: Array
    wanted: Array  # (3, T, n) positions, velocities, accelerations
    q: Array  # (T, n), as the rest
    qd: Array
    qdd: Array
    theta: Array
    theta_rate: Array
    q_seen: Array
    qd_seen: Array
    tau: Array  # of the motors, within the limits
    friction: Array
    saturated: Array  # (n,) share of the ticks at which a motor gave less than it was asked for
    signals: dict[str, Array]

    @property
    def error(self) -> Array:
        """q_d − q."""
        return self.wanted[0] - self.q

    def rms_error(self, after: float = 0.0) -> Array:
        """Root mean square of the true error of each joint, from a time on."""
        return np.asarray(np.sqrt(np.mean(self.error[self.t >= after] ** 2, axis=0)))


class _Encoder:
    """Positions and velocities as measured on one side of the joints."""

    def __init__(self, errors: Disturbance, differenced: bool, dt: float) -> None:
        self.errors, self.differenced, self.dt = errors, differenced, dt
        self.said: Array | None = None

    def read(self, tick: int, position: Array, velocity: Array) -> tuple[Array, Array]:
        errors = self.errors
        before = self.said
        said = position + (errors.position[0] if len(errors.position) else 0.0) if before is None else before.copy()
        measure(tick, position, errors.position, errors.dropped, errors.resolution, said)
        self.said = said
        if self.differenced:
            return said, velocity.copy() if before is None else (said - before) / self.dt
        return said, velocity + (errors.velocity[tick] if len(errors.velocity) else 0.0)


def _checked(plant: Plant, reference: ArrayLike, push: ArrayLike | None) -> tuple[Array, Array]:
    n, name = plant.robot.n, plant.robot.name
    wanted = frozen(reference)
    if wanted.ndim != 3 or wanted.shape[0] != 3 or wanted.shape[1] < 1 or wanted.shape[2] != n:
        raise OptionError(f"the reference has shape {wanted.shape}; give (3, ticks, {n}) for the {n} joints of {name}")
    outside = np.zeros((wanted.shape[1], n)) if push is None else np.ascontiguousarray(push, dtype=np.float64)
    if outside.shape != (wanted.shape[1], n):
        raise OptionError(f"the push has shape {outside.shape}; give {wanted.shape[1:]}, a row a tick")
    if not (np.isfinite(wanted).all() and np.isfinite(outside).all()):
        raise DataError("the reference or the push has numbers that are not finite; repair it")
    return wanted, outside


def _kernel_plant(plant: Plant, reference: Array, h: float) -> tuple[Any, ...]:
    """The arguments of `hold` that say what the robot is."""
    robot, n = plant.robot, plant.robot.n
    frames = joint_frames(robot)
    tree = (frames.parents, frames.rotary, frames.frames, frames.inertias(robot.body_parameters), robot.gravity)
    inertia = free_inertia(robot, plant.flexible, reference[0])
    law = with_grips(plant.law.packed(n), inertia, h, plant.integrator)
    if plant.flexible is None:
        return tree, np.ascontiguousarray(robot.joint_parameters[:, 0]), law, np.zeros((0, 9))
    return tree, np.zeros(n), law, plant.flexible.packed(n)


def _refuse(plant: Plant, joint: int, reason: int, t: float, step: float) -> None:
    name = plant.robot.dof_names[joint]
    if reason == NOT_PHYSICAL:
        raise SimulationError(
            f"the mass matrix is not positive definite at {t:.4f} s: what {name} carries has no positive inertia; "
            "mend the inertial parameters (see `steelyard check`) or give the joint a rotor (armature)",
            t,
        )
    raise SimulationError(
        f"the simulation ran away at {t:.4f} s in {name}; the controller is unstable there, or the step "
        f"({1e3 * step:.3g} ms) too large",
        t,
    )


def run_controlled(
    plant: Plant,
    controller: Controlling,
    reference: ArrayLike,
    *,
    push: ArrayLike | None = None,
    start: ArrayLike | None = None,
    rng: np.random.Generator | None = None,
) -> Run:
    """Let a controller move a plant along a reference (3, ticks, n) at the plant's control rate.

    `push` (ticks, n) is torque from outside, which acts on the links; `start` rows of positions and velocities instead
    of rest where the reference begins. `rng` draws the noise of sensors that have some.
    """
    wanted, outside = _checked(plant, reference, push)
    n, ticks, dt, limits = plant.robot.n, wanted.shape[1], plant.dt, plant.limits
    begin = np.zeros((2, n))
    begin[0] = wanted[0, 0]
    if start is not None:
        rows = np.atleast_2d(np.asarray(start, dtype=np.float64))
        if rows.ndim != 2 or rows.shape[1] != n or len(rows) > 2 or not np.isfinite(rows).all():
            raise OptionError(f"start has shape {rows.shape}; give {n} positions, or them and {n} velocities")
        begin[: len(rows)] = rows
    state = plant.start_state(*begin)
    substeps = plant.substeps(wanted)
    robot = _kernel_plant(plant, wanted, dt / substeps)
    settings = (substeps, INTEGRATORS[plant.integrator], dt / substeps)
    scratch = (workspace(n), *(np.zeros((STATES, n)) for _ in range(3)), np.zeros(n), np.zeros(n))
    scratch = (*scratch, np.empty((n, n)), np.zeros((2, n)))
    draws = (np.random.default_rng(0) if rng is None else rng).spawn(2)
    differenced = plant.sensors.velocity == "differentiated"
    link, motor = (_Encoder(plant.sensors.in_the_loop(ticks, n, dt, draw), differenced, dt) for draw in draws)
    kept = np.empty((9, ticks, n))
    saturated = np.zeros(n)
    memory = controller.start(n, dt)
    signals: dict[str, list[Array]] = {}
    told: Any = getattr(memory, "signals", None)
    tau = np.zeros(n)
    for tick in range(ticks):
        q, qd = link.read(tick, state[Q], state[Q + 1])
        theta, theta_rate = (q, qd) if plant.flexible is None else motor.read(tick, state[THETA], state[THETA + 1])
        seen = Seen(tick, tick * dt, q, qd, theta, theta_rate, tau)
        asked = np.asarray(memory.step(seen, Wanted(*wanted[:, tick])), dtype=np.float64)
        if asked.shape != (n,) or not np.isfinite(asked).all():
            raise SimulationError(
                f"the controller asks for {asked.tolist()} at {tick * dt:.4f} s; {n} finite torques are needed",
                tick * dt,
            )
        tau = np.minimum(np.maximum(asked, -limits), limits)
        saturated += tau != asked
        if told is not None:
            _keep(signals, told())
        kept[0, tick], kept[1, tick] = state[Q], state[Q + 1]
        kept[3, tick], kept[4, tick] = state[THETA : THETA + 2] if plant.flexible is not None else state[:2]
        kept[5, tick], kept[6, tick], kept[7, tick] = q, qd, tau
        joint, reason = hold(
            robot, tau, outside[tick], plant.temperature, settings, scratch, state, kept[2, tick], kept[8, tick]
        )
        if joint >= 0:
            _refuse(plant, joint, reason, tick * dt, dt / substeps)
    about = {name: np.array(rows) for name, rows in signals.items()}
    t: Array = np.arange(ticks, dtype=np.float64) * dt
    names = ("q", "qd", "qdd", "theta", "theta_rate", "q_seen", "qd_seen", "tau", "friction")
    return Run(t, wanted, saturated=saturated / ticks, signals=about, **dict(zip(names, kept, strict=True)))


def _keep(signals: dict[str, list[Array]], now: Mapping[str, ArrayLike]) -> None:
    for name, value in now.items():
        signals.setdefault(name, []).append(np.array(value, dtype=np.float64))
