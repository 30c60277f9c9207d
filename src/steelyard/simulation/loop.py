"""`ClosedLoop`: a robot under control, prepared once and run many times, with other parameters or other noise.

A run is one call of a kernel that does not hold the interpreter's lock: runs in threads go side by side.
"""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..compiled import threads
from ..dynamics import inverse_dynamics
from ..errors import DataError, OptionError, SteelyardError
from ..physics.friction import CoulombViscous, FrictionLaw
from ..physics.kernels.friction import COLUMNS, DAMPING, OFFSET, REFERENCE_TEMPERATURE, STATIC
from ..physics.kernels.friction import COULOMB as DRY
from ..physics.transmission import FlexibleJoint
from ..robot.joint_frames import joint_frames
from ..robot.robot import Robot, frozen
from .adaptive import run_adaptive
from .controllers import Controller
from .kernels.loop import BRIEF, KEPT, NOT_PHYSICAL, RK1, RK2, RK4, SEMI_IMPLICIT, STATES, run
from .sensors import Disturbance, undisturbed
from .stiffness import STABLE, fastest_rates, free_inertia, with_grips

Array = NDArray[np.float64]

INTEGRATORS = {"rk1": RK1, "rk2": RK2, "rk4": RK4, "semi-implicit": SEMI_IMPLICIT}
ADAPTIVE = {"rk45": "RK45", "radau": "Radau"}
MOST_STEPS = 500_000_000
_MOST_SUBSTEPS = 50  # a tick, where no step is given
_ARMATURE, _DAMPING, _COULOMB, _OFFSET = range(4)  # of JOINT_PROPERTIES


class SimulationError(SteelyardError):
    """A simulation stopped before its end, at `time` seconds."""

    def __init__(self, message: str, time: float = 0.0) -> None:
        super().__init__(message)
        self.time = time


class Motion(NamedTuple):
    """What a run without noise gives, a row a sample: true motion, and the torque that was commanded."""

    t: Array
    q: Array
    qd: Array
    qdd: Array
    tau: Array


def _whole(control_hz: float, sample_hz: float) -> int:
    for name, rate in (("control_hz", control_hz), ("sample_hz", sample_hz)):
        if not (np.isfinite(rate) and 0 < rate <= 1e6):
            raise OptionError(f"{name} is {rate}; give a rate above 0 and at most 1000000 Hz")
    ratio = round(control_hz / sample_hz)
    if ratio < 1 or abs(ratio * sample_hz - control_hz) > 1e-6 * control_hz:
        raise OptionError(
            f"the control rate, {control_hz:g} Hz, must be a multiple of the sampling rate, {sample_hz:g} Hz"
        )
    return ratio


def own_friction(robot: Robot) -> CoulombViscous:
    """The robot's own damping, dry friction and offset as a law."""
    joints = robot.joint_parameters
    return CoulombViscous(joints[:, _COULOMB], joints[:, _DAMPING], joints[:, _OFFSET])


def _own_table(joints: Array) -> tuple[int, Array]:
    """The same as the table that kernels read, whatever the signs that an estimator tries."""
    table = np.zeros((len(joints), COLUMNS))
    table[:, DAMPING], table[:, DRY], table[:, OFFSET] = joints[:, _DAMPING], joints[:, _COULOMB], joints[:, _OFFSET]
    return STATIC, table


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """A robot, its controller and what it is asked to follow: `reference` (3, ticks, n) at the control rate.

    `friction` replaces the robot's own damping, dry friction and offset; `flexible` puts springs into the joints, its
    motor inertia in place of the armature; `nominal` is the model that the controller knows, the robot itself where
    none is given, and stays what it is when `run` is given other parameters. `start` has positions, or a row of
    positions, one of velocities, and maybe one of what the controller's integral holds then (N·m or N); without, the
    robot rests where the reference begins. `torque` is added to what the controller asks for: with gains of zero it
    alone moves the robot.
    """

    robot: Robot
    reference: Array
    controller: Controller
    control_hz: float = 1000.0
    sample_hz: float | None = None
    step: float | None = None  # s, the longest inside a tick; without, what friction and springs need
    integrator: str = "rk4"
    friction: FrictionLaw | None = None
    flexible: FlexibleJoint | None = None
    nominal: Robot | None = None
    start: ArrayLike | None = None
    velocity: str = "differentiated"  # what the controller sees: of measured positions, or "measured"
    delay_ticks: int = 0
    temperature: ArrayLike = REFERENCE_TEMPERATURE  # one number, or one a tick
    torque: Array | None = None  # (ticks, n) N·m or N, added to what the controller asks for
    substeps: int = field(init=False, default=1)
    ticks_a_sample: int = field(init=False, default=1)

    def __post_init__(self) -> None:
        robot, put = self.robot, object.__setattr__
        if robot.nq != robot.n:
            raise OptionError(f"{robot.name} has ball or free joints; the closed loop is written for hinges and slides")
        reference = frozen(self.reference)
        if reference.ndim != 3 or reference.shape[0] != 3 or reference.shape[1] < 1 or reference.shape[2] != robot.n:
            raise OptionError(
                f"the reference has shape {reference.shape}; give (3, ticks, {robot.n}): positions, velocities and "
                f"accelerations of the {robot.n} joints of {robot.name}"
            )
        if not np.isfinite(reference).all():
            raise DataError("the reference has numbers that are not finite; repair it")
        if self.integrator not in INTEGRATORS and self.integrator not in ADAPTIVE:
            raise OptionError(f"no integrator '{self.integrator}'; valid: {', '.join([*INTEGRATORS, *ADAPTIVE])}")
        if self.known.n != robot.n or self.known.nq != robot.n:
            raise OptionError(f"the nominal model has {self.known.n} joints, {robot.name} has {robot.n}")
        put(self, "reference", reference)
        put(self, "ticks_a_sample", _whole(self.control_hz, self.sample_hz or self.control_hz))
        if self.step is not None and not (np.isfinite(self.step) and self.step > 0):
            raise OptionError(f"the step is {self.step} s; it must be above zero")
        substeps = self._substeps()
        put(self, "substeps", substeps)
        if self.ticks * substeps > MOST_STEPS:
            duration = self.ticks / self.control_hz
            raise OptionError(
                f"{duration:g} s at this rate are {self.ticks * substeps} steps; simulate less, or in larger steps"
            )
        # Now, so that threads find it done.
        _ = self._fixed, self._start_state, self._warmth, self._inertia

    def _substeps(self) -> int:
        """Steps a tick: no longer than asked for; else as many as friction and springs need, up to a bound."""
        if self.step is not None:
            return max(1, int(np.ceil(1.0 / (self.control_hz * self.step) - 1e-9)))
        if self.integrator in ADAPTIVE:
            return 1
        needed = self.dt * float(self.rates[0].max(initial=0.0)) / STABLE[self.integrator]
        return max(1, min(int(np.ceil(needed)), _MOST_SUBSTEPS))

    @cached_property
    def rates(self) -> tuple[Array, str]:
        """A bound on each joint's rates, 1/s, and whether friction or elasticity is the faster of the two."""
        return fastest_rates(self.robot, self.law, self.flexible, self.reference)

    @cached_property
    def _inertia(self) -> Array:
        """The least inertia of each joint on the way; where parameters are impossible, that of no grip at all."""
        inertia = free_inertia(self.robot, self.flexible, self.reference[0])
        return np.where(inertia > 0, inertia, np.inf)

    @property
    def known(self) -> Robot:
        """The model that the controller knows."""
        return self.robot if self.nominal is None else self.nominal

    @property
    def law(self) -> FrictionLaw:
        """The friction that acts with the robot's own parameters."""
        return own_friction(self.robot) if self.friction is None else self.friction

    @property
    def ticks(self) -> int:
        return self.reference.shape[1]

    @property
    def samples(self) -> int:
        return (self.ticks + self.ticks_a_sample - 1) // self.ticks_a_sample

    @property
    def dt(self) -> float:
        return 1.0 / self.control_hz

    @cached_property
    def t(self) -> Array:
        """Times of the samples."""
        return frozen(np.arange(self.samples, dtype=np.float64) * self.ticks_a_sample * self.dt)

    @cached_property
    def _frames(self) -> Any:
        return joint_frames(self.robot)

    @cached_property
    def _fixed(self) -> dict[str, Any]:
        """Kernel arguments that no run changes."""
        n, known = self.robot.n, self.known
        thought = self._frames if known is self.robot else joint_frames(known)
        inertias = thought.inertias(known.body_parameters)
        forward = inverse_dynamics(known, *self.reference) if self.controller.feed_forward else np.zeros((0, n))
        if self.torque is not None:
            if self.torque.shape != (self.ticks, n) or not np.isfinite(self.torque).all():
                raise OptionError(
                    f"the torque has shape {self.torque.shape}; {self.ticks} rows of {n} finite numbers are needed"
                )
            forward = forward + self.torque if len(forward) else self.torque
        return {
            "law": None if self.friction is None else self.friction.packed(n),
            "springs": np.zeros((0, 9)) if self.flexible is None else self.flexible.packed(n),
            "controller": (self.controller.gains(n), self.controller.limits(self.robot), self.controller.mode()),
            "nominal": (
                (thought.parents, thought.rotary, thought.frames, inertias, known.gravity),
                known.joint_parameters,
            ),
            "feed_forward": np.ascontiguousarray(forward),
        }

    @cached_property
    def _warmth(self) -> Array:
        values = np.asarray(self.temperature, dtype=np.float64)
        if values.shape not in ((), (self.ticks,)) or not np.isfinite(values).all():
            raise OptionError(
                f"the temperature has shape {values.shape}; {self.ticks} finite numbers are needed, one a tick"
            )
        return np.array(np.broadcast_to(values, (self.ticks,)))

    @cached_property
    def _start_state(self) -> Array:
        return self._state_at(self.start)

    def _state_at(self, start: ArrayLike | None) -> Array:
        """Rows q, q̇, z, θ, θ̇, w; motors turned so that springs carry the weight."""
        n = self.robot.n
        state = np.zeros((STATES, n))
        state[0] = self.reference[0, 0]
        if start is not None:
            given = np.asarray(start, dtype=np.float64)
            if given.shape not in ((n,), (2, n), (3, n)):
                raise OptionError(f"start has shape {given.shape}; {self.robot.name} has {n} joints")
            if not np.isfinite(given).all():
                raise OptionError(f"start is {given.tolist()}; it must be finite")
            rows = np.atleast_2d(given)[:2]
            state[: len(rows)] = rows
        state[3], state[4] = state[0], state[1]
        if self.flexible is not None:
            still = np.zeros(n)
            state[3] += self.flexible.twist_under(inverse_dynamics(self.robot, state[0], still, still))
        return state

    def _values(self, parameters: Robot | ArrayLike | None) -> tuple[Array, Array]:
        """Body and joint parameters of one run."""
        robot = self.robot
        if parameters is None:
            return robot.body_parameters, robot.joint_parameters
        if isinstance(parameters, Robot):
            if parameters.bodies != robot.bodies or parameters.dof_names != robot.dof_names:
                raise OptionError(f"{parameters.name} has other bodies or joints than {robot.name}, which was prepared")
            return parameters.body_parameters, parameters.joint_parameters
        changed = robot.with_parameters(parameters)
        return changed.body_parameters, changed.joint_parameters

    def execute(
        self,
        out: Array,
        parameters: Robot | ArrayLike | None = None,
        disturbance: Disturbance | None = None,
        start: ArrayLike | None = None,
    ) -> NDArray[np.int64]:
        """One run into `out` (channels, samples, n), the first four or all of `KEPT`; counts ticks in saturation."""
        n = self.robot.n
        if out.shape not in ((BRIEF, self.samples, n), (len(KEPT), self.samples, n)) or not out.flags.carray:
            raise DataError(f"out has shape {out.shape}; give a block of ({BRIEF} or {len(KEPT)}, {self.samples}, {n})")
        bodies, joints = self._values(parameters)
        fixed, frames = self._fixed, self._frames
        tree = (frames.parents, frames.rotary, frames.frames, frames.inertias(bodies), self.robot.gravity)
        rotors = np.zeros(n) if self.flexible is not None else np.ascontiguousarray(joints[:, _ARMATURE])
        law = _own_table(joints) if fixed["law"] is None else fixed["law"]
        noise = undisturbed(n) if disturbance is None else disturbance
        differenced = self.velocity == "differentiated"
        law = with_grips(law, self._inertia, self.dt / self.substeps, self.integrator)
        code = INTEGRATORS.get(self.integrator, RK4)
        settings = (self.substeps, self.ticks_a_sample, code, int(self.delay_ticks), differenced, self.dt)
        saturated = np.zeros(n, dtype=np.int64)
        start = self.start if start is None else start
        state = self._start_state if start is self.start else self._state_at(start)
        forward = fixed["feed_forward"]
        if start is not None and np.shape(start) == (3, n):
            held = np.broadcast_to(np.asarray(start, dtype=np.float64)[2], (self.ticks, n))
            forward = held + forward if len(forward) else np.ascontiguousarray(held)
        arguments = (
            tree, rotors, law, fixed["springs"], fixed["controller"], fixed["nominal"], self.reference,
            forward, state, settings, noise[:3], noise.resolution, self._warmth, saturated,
            out,
        )  # fmt: skip
        if self.integrator in ADAPTIVE:
            tick, joint, reason = run_adaptive(ADAPTIVE[self.integrator], arguments)
        else:
            tick, joint, reason = run(*arguments)
        if tick >= 0:
            self._refuse(tick, joint, reason)
        return saturated

    def _refuse(self, tick: int, joint: int, reason: int) -> None:
        when, name = f"{tick * self.dt:.4f} s", self.robot.dof_names[joint]
        if reason == NOT_PHYSICAL:
            raise SimulationError(
                f"the mass matrix is not positive definite at {when}: what {name} carries has no positive inertia; "
                "mend the inertial parameters (see `steelyard check`) or give the joint a rotor (armature)",
                tick * self.dt,
            )
        raise SimulationError(
            f"the simulation ran away at {when} in {name}; take a smaller step "
            f"(now {1e3 * self.dt / self.substeps:.3g} ms), softer gains, or integrator='radau'",
            tick * self.dt,
        )

    def run(self, parameters: Robot | ArrayLike | None = None, start: ArrayLike | None = None) -> Motion:
        """One run without noise; with the robot's own parameters, a vector in their order, or another robot's."""
        out = np.empty((BRIEF, self.samples, self.robot.n))
        self.execute(out, parameters, start=start)
        return Motion(self.t, *out)

    def run_all(self, parameters: Iterable[Robot | ArrayLike]) -> list[Motion]:
        """A run for each set of parameters, in as many threads as there are processors."""
        with ThreadPoolExecutor(threads(), thread_name_prefix="steelyard-loop") as pool:
            return list(pool.map(self.run, parameters))
