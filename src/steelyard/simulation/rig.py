"""The rig: MuJoCo as an external robot that executes a trajectory and says what a robot's joint states say.

It is the peer of `simulate`: another integrator, another friction, another author.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.recording import Recording
from ..errors import DataError, OptionError, SteelyardError
from ..excitation.trajectory import Trajectory
from ..robot.robot import Robot
from ..robot.twin import Twin, twin
from .controllers import Controller
from .rig_control import PUBLISH_RATE_HZ, pd_for, timing
from .rig_model import Difference, rig_model, takes_damping_at_the_end

Array = NDArray[np.float64]
Publish = Callable[[float, Array, Array, Array], None]  # seconds, q, qd, tau
_BLOCK = 4096  # control ticks whose desired motion is computed at once
_MOST_SAMPLES = 20_000_000
_RUNAWAY = 1e4  # rad/s or m/s that no robot reaches


class RigError(SteelyardError):
    """The rig's robot ran away."""


@dataclass(frozen=True)
class Noise:
    """Standard deviations of what is measured, one number or one a joint, SI; the controller does not see them."""

    position: ArrayLike = 0.0
    velocity: ArrayLike = 0.0
    torque: ArrayLike = 0.0

    def of(self, name: str, n: int) -> Array:
        value = np.asarray(getattr(self, name), dtype=np.float64)
        if value.shape not in ((), (n,)) or not (np.isfinite(value) & (value >= 0)).all():
            raise OptionError(f"{name} noise is {getattr(self, name)}; give one number, or {n}, none below zero")
        return np.array(np.broadcast_to(value, (n,)))


@dataclass(frozen=True, eq=False)
class RigRun:
    """What the rig recorded, and how well it kept up."""

    recording: Recording
    step: float  # s, of the physics
    substeps: int  # physics steps a sample
    latest_s: float  # how far behind the clock a sample was at worst; 0 where the clock did not matter
    contacts: dict[str, int] = field(default_factory=dict)  # pairs of bodies → samples in which they touched


@contextmanager
def _mujoco_is_quiet() -> Iterator[None]:
    """MuJoCo's warnings go nowhere: it would print them and write a log file, and what they tell of is checked here."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


class _Body:
    """The moving robot: its state, one controlled step, and the torque of that step."""

    def __init__(self, robot: Robot, difference: Difference, believed: Robot, controller: Controller, step: float):
        self.robot = robot
        self.model, self.offset, self.coulomb = rig_model(robot, difference)
        self.model.opt.timestep = step
        self.data = mujoco.MjData(self.model)
        self.data.qpos[:] = robot.model_position
        self.coordinates, self.dofs = robot.model_coordinates, robot.model_dofs
        self.held = np.setdiff1d(np.arange(self.model.nv), self.dofs)
        self.held_coordinates = np.setdiff1d(np.arange(self.model.nq), self.coordinates)
        gains = controller.gains(robot.n)
        if gains[1].any() or controller.feed_forward or controller.model == "computed torque":
            raise OptionError("the rig's controller is PD, with gravity or without; leave out ki and feed_forward")
        self.kp, self.kd = gains[0], gains[2]
        self.limit = controller.limits(believed)
        self.gravity: Twin | None = twin(believed) if controller.model == "gravity" else None
        self.tau = np.zeros(robot.n)

    def place(self, q: Array) -> None:
        self.data.qpos[self.coordinates] = q
        mujoco.mj_forward(self.model, self.data)

    @property
    def state(self) -> tuple[Array, Array]:
        return self.data.qpos[self.coordinates], self.data.qvel[self.dofs]

    def _weight(self, q: Array) -> Array:
        """Torque that holds the believed robot still."""
        believed = self.gravity
        if believed is None:
            return np.zeros(self.robot.n)
        model, data = believed.model, believed.place(q)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        result = np.empty(model.nv)
        mujoco.mj_rne(model, data, 0, result)  # velocities are zero, so this is gravity alone
        return result[believed.robot.model_dofs]

    def control(self, q_d: Array, qd_d: Array) -> None:
        """tau = Kp (q_d − q) + Kd (q̇_d − q̇) + g(q), within the torque there is."""
        q, qd = self.state
        tau = self.kp * (q_d - q) + self.kd * (qd_d - qd) + self._weight(q)
        self.tau = np.clip(tau, -self.limit, self.limit)

    def move(self) -> None:
        """One step of physics under the present torque."""
        self.data.qfrc_applied[self.dofs] = self.tau - self.offset
        mujoco.mj_step(self.model, self.data)
        if self.held.size:
            self.data.qvel[self.held] = 0.0
            self.data.qpos[self.held_coordinates] = self.robot.model_position[self.held_coordinates]

    def refuse_runaway(self, t: float, remedy: str) -> None:
        speed = np.abs(self.data.qvel[self.dofs])
        bad = ~(speed < _RUNAWAY)
        if bad.any():
            name = self.robot.dof_names[int(bad.argmax())]
            raise RigError(f"the robot ran away at {t:.3f} s in {name}; {remedy}")

    def touching(self) -> set[str]:
        """Pairs of bodies that press on each other."""
        pairs = set()
        for contact in self.data.contact[: self.data.ncon]:
            if contact.efc_address >= 0:
                bodies = (self.model.body(self.model.geom_bodyid[g]).name or "world" for g in contact.geom if g >= 0)
                pairs.add("–".join(sorted(bodies)))
        return pairs


class _Clock:
    """Keeps the rig in step with the clock where that is asked for."""

    def __init__(self, real_time: bool) -> None:
        self.real_time = real_time
        self.start = time.monotonic()
        self.latest = 0.0

    def wait_for(self, t: float) -> None:
        if not self.real_time:
            return
        left = self.start + t - time.monotonic()
        if left > 0:
            time.sleep(left)
        self.latest = max(self.latest, -left)


def _about(
    robot: Robot, believed: Robot, difference: Difference, controller: Controller, coulomb: Array
) -> dict[str, Any]:
    payloads = [{"body": p.body, "mass": p.mass, "com": list(p.com)} for p in difference.payloads]
    return {
        "source": "rig",
        "robot": robot.name,
        "believed": believed.name,
        "payloads": payloads,
        "damping_scale": difference.damping_scale,
        "coulomb": coulomb.tolist(),
        "contacts": difference.contacts,
        "controller": {
            "kp": controller.gains(robot.n)[0].tolist(),
            "kd": controller.gains(robot.n)[2].tolist(),
            "model": controller.model,
        },
        "mujoco": mujoco.__version__,
    }


def run_rig(
    robot: Robot,
    trajectory: Trajectory,
    *,
    truth: Robot | None = None,
    difference: Difference | None = None,
    controller: Controller | None = None,
    publish_rate_hz: float = PUBLISH_RATE_HZ,
    seconds: float | None = None,
    noise: Noise | None = None,
    rng: np.random.Generator | None = None,
    publish: Publish | None = None,
    real_time: bool = False,
    stop: Event | None = None,
) -> RigRun:
    """Let MuJoCo execute a trajectory under PD control and record its joint states at `publish_rate_hz`.

    `robot` is what the controller believes (its gains and gravity), `truth` what moves (default: the same), made to
    differ further by `difference`. After the trajectory its end is held, up to `seconds`. The recorded torque is the
    commanded one, which acts from that sample on. `stop` ends it early; what was recorded stays.
    """
    truth, difference = robot if truth is None else truth, Difference() if difference is None else difference
    noise, rng = Noise() if noise is None else noise, np.random.default_rng(0) if rng is None else rng
    for known in (robot, truth):
        if known.nq != known.n:
            raise OptionError(f"{known.name} has ball or free joints; the rig is written for hinges and slides")
        if known.source is None:
            raise DataError(f"{known.name} has no model file behind it; load it with load_robot")
    if truth.dof_names != robot.dof_names:
        raise OptionError(
            f"the true model's joints are {', '.join(truth.dof_names)}, those of {robot.name} are "
            f"{', '.join(robot.dof_names)}; both need the same, in one order"
        )
    if trajectory.n != robot.n:
        raise OptionError(f"the trajectory has {trajectory.n} joints, {robot.name} has {robot.n}")
    if controller is None:
        controller = pd_for(robot, trajectory, publish_rate_hz=publish_rate_hz)
    step, substeps = timing(publish_rate_hz, float(truth.source.model.opt.timestep))  # type: ignore[union-attr]
    length = trajectory.duration if seconds is None else seconds
    if not (math.isfinite(length) and length > 0):
        raise OptionError(f"the rig is to run for {length} s; it must be above zero")
    rows = math.floor(length * publish_rate_hz + 1e-9) + 1
    if rows > _MOST_SAMPLES:
        raise OptionError(
            f"{length:g} s at {publish_rate_hz:g} Hz are {rows} samples, at most {_MOST_SAMPLES} are made"
        )
    body = _Body(truth, difference, robot, controller, step)
    deviations = np.stack([noise.of(name, robot.n) for name in ("position", "velocity", "torque")])
    about = _about(truth, robot, difference, controller, body.coulomb)

    with _mujoco_is_quiet():
        out, kept, clock, touched = _execute(
            body, trajectory, rows, publish_rate_hz, substeps, deviations, rng, publish, _Clock(real_time), stop
        )
    t = np.arange(kept) / publish_rate_hz
    seen, true, wanted = out[:kept, 0:3], out[:kept, 3:6], out[:kept, 6:8]
    more = {"q_d": wanted[:, 0], "qd_d": wanted[:, 1], "q_true": true[:, 0], "qd_true": true[:, 1]}
    more["tau_commanded"] = true[:, 2]
    about |= {"damping_step": step if takes_damping_at_the_end(body.model) else 0.0}
    about |= {"publish_rate_hz": publish_rate_hz, "step": step, "real_time": real_time, "ended_early": kept < rows}
    recording = Recording(t, seen[:, 0], seen[:, 2], seen[:, 1], None, robot.dof_names, more, about)
    return RigRun(recording, step, substeps, clock.latest, touched)


def _execute(
    body: _Body,
    trajectory: Trajectory,
    rows: int,
    publish_rate_hz: float,
    substeps: int,
    deviations: Array,
    rng: np.random.Generator,
    publish: Publish | None,
    clock: _Clock,
    stop: Event | None,
) -> tuple[Array, int, _Clock, dict[str, int]]:
    """The loop: control, publish, step; rows of (measured q, qd, tau, true q, qd, tau, desired q, qd)."""
    n, h = body.robot.n, body.model.opt.timestep
    out = np.empty((rows, 8, n))
    touched: dict[str, int] = {}
    block = max(1, _BLOCK // substeps)
    remedy = "lower the controller's bandwidth, or give the model a shorter timestep"
    body.place(np.asarray(trajectory.sample(0.0)[0]))
    for row in range(rows):
        if row % block == 0:
            ticks = np.arange(row * substeps, min(row + block, rows) * substeps)
            desired = trajectory.sample(ticks * h)
            errors = rng.normal(size=(block, 3, n)) * deviations if deviations.any() else np.zeros((block, 3, n))
        if stop is not None and stop.is_set():
            return out, row, clock, touched
        t = row / publish_rate_hz
        for k in range(substeps):
            tick = (row % block) * substeps + k
            body.control(desired[0][tick], desired[1][tick])
            if k == 0:
                q, qd = body.state
                out[row, 3:6] = q, qd, body.tau
                out[row, 6:8] = desired[0][tick], desired[1][tick]
                out[row, :3] = out[row, 3:6] + errors[row % block]
                clock.wait_for(t)
                if publish is not None:
                    publish(t, *out[row, :3])
            body.move()
        body.refuse_runaway(t, remedy)
        for pair in body.touching() if body.data.ncon else ():
            touched[pair] = touched.get(pair, 0) + 1
    return out, rows, clock, touched
