"""`simulate`: a robot follows a trajectory under control, and what its sensors said is a `Recording`."""

import hashlib
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.recording import Recording
from ..dynamics import pose, velocity
from ..errors import OptionError
from ..excitation.trajectory import Trajectory
from ..physics.friction import FrictionLaw
from ..physics.kernels.friction import REFERENCE_TEMPERATURE
from ..physics.transmission import FlexibleJoint
from ..robot.robot import Robot
from .cautions import warn_of_large_steps, warn_of_saturation
from .controllers import Controller, pid_for
from .kernels.loop import KEPT
from .loop import ClosedLoop, own_friction
from .reference import reference_of
from .sensors import Sensors

Array = NDArray[np.float64]


def _fingerprint(*arrays: NDArray) -> str:
    """SHA-256 of numbers, for what a recording says about itself."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _model_fingerprint(robot: Robot) -> str:
    tree = (robot.links.tobytes(), robot.dofs.tobytes())
    numbers = (robot.body_parameters, robot.joint_parameters, robot.gravity)
    return _fingerprint(*(np.frombuffer(part, dtype=np.uint8) for part in tree), *numbers)


def _describe(value: Any) -> Any:
    """Settings as what JSON has."""
    if is_dataclass(value) and not isinstance(value, type):
        return {"kind": type(value).__name__} | {f.name: _describe(getattr(value, f.name)) for f in fields(value)}
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


def _about(loop: ClosedLoop, sensors: Sensors, saturated: NDArray[np.int64], seed: int | None) -> dict[str, Any]:
    from .. import __version__  # which is not there yet while the package is being imported

    robot, known = loop.robot, loop.known
    warm = np.asarray(loop.temperature, dtype=np.float64)
    return {
        "source": "simulation",
        "version": __version__,
        "robot": robot.name,
        "model_sha256": _model_fingerprint(robot),
        "nominal_robot": known.name,
        "nominal_sha256": _model_fingerprint(known) if known is not robot else None,
        "trajectory_sha256": _fingerprint(loop.reference[0]),
        "seed": seed,
        "integrator": loop.integrator,
        "control_hz": loop.control_hz,
        "sample_hz": loop.control_hz / loop.ticks_a_sample,
        "step": loop.dt / loop.substeps,
        "temperature": float(warm) if warm.ndim == 0 else [float(warm.min()), float(warm.max())],
        "friction": _describe(loop.law),
        "flexible": _describe(loop.flexible),
        "sensors": _describe(sensors),
        "controller": _describe(loop.controller),
        "saturated_share": dict(zip(robot.dof_names, (saturated / loop.ticks).tolist(), strict=True)),
        "parameters": dict(zip(robot.parameter_names, robot.parameters.tolist(), strict=True)),
    }


def record(
    loop: ClosedLoop,
    sensors: Sensors | None = None,
    rng: np.random.Generator | None = None,
    *,
    cartesian: bool = True,
    seed_note: int | None = None,
) -> Recording:
    """Run a prepared loop once and say what the sensors said; `simulate` prepares and does this.

    Studies that differ in noise alone prepare once; threads may share the loop, each with a generator of its own. The
    delay and the kind of velocity are the loop's, whatever these sensors have.
    """
    n = loop.robot.n
    sensors = replace(Sensors() if sensors is None else sensors, velocity=loop.velocity, delay_ticks=loop.delay_ticks)
    loop_rng, torque_rng = (np.random.default_rng(0) if rng is None else rng).spawn(2)
    out = np.empty((len(KEPT), loop.samples, n))
    saturated = loop.execute(out, None, sensors.in_the_loop(loop.ticks, n, loop.dt, loop_rng))
    out.setflags(write=False)  # so that the recording shares it: copies cost more in page faults than in time
    kept = dict(zip(KEPT, out, strict=True))
    warn_of_saturation(loop, saturated, kept["tau"])
    wanted = loop.reference[:, :: loop.ticks_a_sample]
    true, seen = (kept["q"], kept["qd"]), (kept["q_seen"], kept["qd_seen"])
    more = {
        "q_d": wanted[0], "qd_d": wanted[1], "qdd_d": wanted[2],
        "q_true": kept["q"], "qd_true": kept["qd"], "qdd_true": kept["qdd"],
        "tau_commanded": kept["tau"], "tau_friction": kept["friction"],
    }  # fmt: skip
    if loop.samples > 1:
        # Central differences of the measured velocity: the noise of an acceleration that nobody measured.
        more["qdd_m"] = np.gradient(seen[1], loop.t[1], axis=0)
    if loop.flexible is not None:
        more |= {"theta": kept["theta"], "theta_rate": kept["theta_rate"]}
    if cartesian:
        more |= _cartesian(loop.robot, (wanted[0], wanted[1]), true, seen)
    tau = sensors.of_torque(loop.t, kept["tau"], torque_rng)
    about = _about(loop, sensors, saturated, seed_note)
    return Recording(loop.t, seen[0], tau, seen[1], None, loop.robot.dof_names, more, about)


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
    sensors = Sensors() if sensors is None else sensors
    if robot.nq == robot.n != trajectory.n:
        raise OptionError(f"the trajectory has {trajectory.n} joints, {robot.name} has {robot.n}")
    reference = reference_of(trajectory, control_hz)
    known = robot if nominal is None else nominal
    if controller is None:
        dry = (own_friction(robot) if friction is None else friction).standstill()[0]
        poses = reference[0, :: max(1, reference.shape[1] // 50)]
        controller = pid_for(known, poses=poses, control_hz=control_hz, dry=dry)
    t = np.arange(reference.shape[1], dtype=np.float64) / control_hz
    loop = ClosedLoop(
        robot, reference, controller, control_hz, sample_hz, step, integrator, friction, flexible, nominal, start,
        sensors.velocity, sensors.delay_ticks, temperature(t) if callable(temperature) else temperature,
    )  # fmt: skip
    warn_of_large_steps(loop)
    return record(loop, sensors, rng, cartesian=cartesian, seed_note=seed_note)
