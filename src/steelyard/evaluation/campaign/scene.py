"""`Scene`: one robot with one friction law, the motions it makes, and the truth that estimates are compared with."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...data.recording import Recording
from ...data.rows import DropStandstill
from ...dynamics import BaseParameters, base_parameters
from ...errors import OptionError
from ...excitation.design import Progress, design_excitation
from ...excitation.trajectory import Trajectory
from ...identification.factors import Factors
from ...identification.problem import build_problem
from ...physics.friction import FrictionLaw, LuGre, friction_named
from ...robot.load import load_robot
from ...robot.parameters import JOINT_PROPERTIES
from ...robot.robot import Robot, frozen
from ...simulation.closed_loop import record
from ...simulation.controllers import pid_for
from ...simulation.loop import ClosedLoop, SimulationError
from ...simulation.reference import reference_of
from ...simulation.sensors import Sensors
from ..validation import counted
from .guesses import initial_guess
from .settings import RobotSettings, Study

Array = NDArray[np.float64]
# What a law has that parameters of a model file can be.
_PLAIN = ("damping", "coulomb", "offset")


class Noise(NamedTuple):
    """A level of noise, SI."""

    position: float
    torque: float


def seeds_for(study_seed: int, *key: object) -> np.random.SeedSequence:
    """Random numbers that belong to a key: the same in whatever order, process or machine it is worked on."""
    digest = hashlib.sha256("\x1f".join(str(part) for part in key).encode()).digest()
    words = tuple(int.from_bytes(digest[k : k + 4], "little") for k in range(0, 16, 4))
    return np.random.SeedSequence(study_seed, spawn_key=words)


def load_settings(settings: RobotSettings) -> Robot:
    """The robot of a study, if the closed loop can simulate it."""
    robot = load_robot(settings.model, lock=list(settings.lock) or None, bodies=list(settings.bodies) or None)
    if robot.nq != robot.n:
        raise OptionError(f"{robot.name} has ball or free joints; studies are for robots of hinges and slides")
    if settings.armature is None:
        return robot
    if len(settings.armature) != robot.n:
        raise OptionError(f"armature has {len(settings.armature)} numbers; {robot.name} has {robot.n} joints")
    joints = robot.joint_parameters.copy()
    joints[:, JOINT_PROPERTIES.index("armature")] = settings.armature
    return replace(robot, joint_parameters=frozen(joints))


def design_motions(settings: RobotSettings, study: Study, progress: Progress | None) -> tuple[Trajectory, Trajectory]:
    """The excitation to learn from, and another to judge by."""
    robot, wanted = load_settings(settings), study.trajectory
    found = [
        design_excitation(
            robot,
            period=wanted.period,
            harmonics=wanted.harmonics,
            starts=wanted.starts,
            rounds=wanted.rounds,
            seed=study.seed + k,
            progress=progress,
        )
        for k in range(2)
    ]
    if any(one.interrupted for one in found):
        raise KeyboardInterrupt
    return found[0].trajectory, found[1].trajectory


def robot_with_friction(settings: RobotSettings, friction: str) -> tuple[Robot, FrictionLaw | None]:
    """The true robot with the columns that its friction calls for, and the law where no columns are enough for it."""
    robot = load_settings(settings)
    limits = np.where(np.isfinite(robot.limits.torque), robot.limits.torque, 50.0)
    law = friction_named(friction, limits)
    base = law.steady_state() if isinstance(law, LuGre) else law
    values = base.parameters()
    own = tuple(name for name in _PLAIN if np.any(values.get(name, 0.0)))
    joints = robot.joint_parameters.copy()
    for name in _PLAIN:
        joints[:, JOINT_PROPERTIES.index(name)] = np.broadcast_to(values.get(name, 0.0), (robot.n,))
    robot = replace(robot, joint_parameters=frozen(joints)).with_layout(properties=("armature", *own))
    return robot, None if base is law and set(values) <= set(_PLAIN) else law


@dataclass(frozen=True, eq=False)
class Scene:
    """What every run of one robot and one friction law has in common."""

    study: Study
    name: str
    friction: str
    robot: Robot  # the truth
    law: FrictionLaw | None
    training: Trajectory
    validation: Trajectory

    def __post_init__(self) -> None:
        _ = self.key

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs; the rest it derives itself, which is less than to send it."""
        return {name: value for name, value in self.__dict__.items() if name in (*self.__dataclass_fields__, "key")}

    @cached_property
    def key(self) -> str:
        """A hash of all that its recordings depend on."""
        digest = hashlib.sha256(f"{self.study.digest} {self.name} {self.friction}".encode())
        robot = self.robot
        for values in (robot.links, robot.dofs, robot.body_parameters, robot.joint_parameters, robot.gravity):
            digest.update(np.ascontiguousarray(values).tobytes())
        for trajectory in (self.training, self.validation):
            digest.update(np.ascontiguousarray(trajectory.sample(trajectory.grid(100.0))).tobytes())
        return digest.hexdigest()[:24]

    def _loop(self, trajectory: Trajectory, control_hz: float, sample_hz: float) -> ClosedLoop:
        reference = reference_of(trajectory, control_hz)
        poses = reference[0, :: max(1, reference.shape[1] // 50)]
        controller = pid_for(self.robot, poses=poses, control_hz=control_hz)
        return ClosedLoop(self.robot, reference, controller, control_hz, sample_hz, friction=self.law)

    @cached_property
    def loop(self) -> ClosedLoop:
        return self._loop(self.training, self.study.control_hz, self.study.sample_hz)

    @cached_property
    def judging_loop(self) -> ClosedLoop:
        rate = self.study.resimulation_hz
        return self._loop(self.validation, rate, min(rate, self.study.sample_hz))

    @cached_property
    def judged(self) -> Recording:
        """The validation trajectory as the true robot makes it, without any noise.

        Torque is judged where joints move: at standstill dry friction can be anything.
        """
        motion = self.judging_loop.run()
        recording = Recording(motion.t, motion.q, motion.tau, motion.qd, motion.qdd, self.robot.dof_names)
        return DropStandstill().apply(recording)

    @cached_property
    def judge(self) -> Factors:
        """‖tau − W beta‖ over the validation trajectory, as triangles."""
        return build_problem(self.robot, self.judged).factors

    def torque_error(self, beta: Array) -> float:
        """‖tau − prediction‖/‖tau‖ on the validation trajectory, against the true torque."""
        return float(np.sqrt(self.judge.squares(beta).sum() / np.sum(self.judged.tau[counted(self.judged)] ** 2)))

    def position_error(self, theta: Array) -> float:
        """‖q − q_found‖/‖q‖ when a robot with these parameters is simulated under the same control; ∞ if it stops."""
        try:
            q = self.judging_loop.run(theta).q
        except SimulationError:
            return float("inf")
        return float(np.linalg.norm(q - self.judged.q) / np.linalg.norm(self.judged.q))

    @cached_property
    def base(self) -> BaseParameters:
        return base_parameters(self.robot)

    @cached_property
    def truth(self) -> Array:
        """The true base parameters."""
        return self.base.reduce(self.robot.parameters)

    @cached_property
    def bound(self) -> Array:
        """Least standard deviations of base parameters for a torque noise of 1, √diag (Σ WᵀW)⁻¹: Cramér and Rao's.

        The motion is taken as known; an estimator that simulates the loop knows more than the torque and may beat it.
        """
        motion = self.loop.run()
        recording = Recording(motion.t, motion.q, motion.tau, motion.qd, motion.qdd, self.robot.dof_names)
        A, _ = build_problem(self.robot, recording).stacked()
        scale = np.linalg.norm(A, axis=0)
        scale[scale == 0] = 1.0
        return np.sqrt(np.diag(np.linalg.pinv((A / scale).T @ (A / scale)))) / scale

    def recording(self, noise: Noise, seed: int) -> Recording:
        """What the sensors said in one noise run."""
        rng = np.random.default_rng(seeds_for(self.study.seed, self.name, self.friction, *noise, "noise", seed))
        sensors = Sensors(position_noise=noise.position, torque_noise=noise.torque)
        return record(self.loop, sensors, rng, cartesian=False, seed_note=seed)

    def unrest(self, noise: Noise) -> tuple[float, float]:
        """How far the measured torque is from a quiet robot's, ‖tau − tau_quiet‖/‖tau_quiet‖, and samples at a limit.

        The encoders' noise comes through the controller into the torque, and shakes the robot.
        """
        measured, quiet = self.recording(noise, 0), self.loop.run().tau
        held = np.abs(measured.more["tau_commanded"]) >= 0.999 * self.robot.limits.torque
        return float(np.linalg.norm(measured.tau - quiet) / np.linalg.norm(quiet)), float(held.any(axis=1).mean())

    def guess(self, index: int) -> Robot:
        """An initial guess, the same for every estimator and every noise."""
        rng = np.random.default_rng(seeds_for(self.study.seed, self.name, self.friction, "guess", index))
        return initial_guess(self.robot, self.study.guess_deviation, rng)
