"""`run_job`: the stages of a study in their order, each done once."""

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.decimation import Decimation
from ...data.filters import Butterworth
from ...data.gears import gear_of
from ...data.load import load_recording
from ...data.preprocess import default_steps
from ...data.recording import Recording, save_recording
from ...dynamics import inverse_dynamics
from ...errors import OptionError
from ...excitation.design import design_excitation
from ...excitation.exchange import read_trajectory, samples_of, write_trajectory
from ...excitation.trajectory import Trajectory
from ...identification.estimate import Estimate
from ...identification.fit import Estimator, Progress, silent
from ...identification.identify import terms_named
from ...identification.problem import Problem
from ...identification.result_file import read_result, save_result
from ...identification.terms import couplings
from ...physics.friction import friction_named
from ...robot.load import load_robot
from ...robot.robot import Robot
from ...simulation.cautions import SaturationWarning, StepWarning
from ...simulation.closed_loop import simulate
from ...simulation.controllers import pid_for
from ...simulation.reference import reference_of
from ...simulation.sensors import Sensors
from ..campaign.guesses import initial_guess
from ..study import Outcome, Plan, run_study
from ..truth import Truth, compare_with_truth
from .ledger import Ledger, digest_of, file_digest
from .settings import DecimationSettings, Job, SimulationSettings

Array = NDArray[np.float64]
# Where a joint's torque limit is unknown: as many times the torque that it needs on its way.
_STRONG = 3.0
# Torque noise where the study does not say: as a share of what the joint can do.
_NOISE_SHARE = 1e-3


@dataclass
class Finished:
    """What a study came to; without recordings there are only motions to be run on the robot."""

    robot: Robot
    ledger: Ledger
    motions: tuple[Path, ...] = ()
    recordings: tuple[Path, ...] = ()
    outcome: Outcome | None = None
    truths: Mapping[str, Truth] = field(default_factory=dict)
    as_before: list[str] = field(default_factory=list)  # stages that were not done again
    warnings: tuple[str, ...] = ()
    written: tuple[Path, ...] = ()
    key: str = ""  # of all that the outcome depends on

    @property
    def folder(self) -> Path:
        return self.ledger.folder


@dataclass(frozen=True)
class _Place:
    """Where a study reads and writes, and what it has finished there."""

    study: Path  # folder of the study file
    output: Path
    ledger: Ledger
    progress: Progress
    as_before: list[str]

    def beside(self, name: str) -> Path:
        return self.study / name

    def stands(self, stage: str, key: str) -> bool:
        found = self.ledger.holds(stage, key)
        if found:
            self.as_before.append(stage)
        return found


def robot_of(job: Job, folder: Path) -> Robot:
    """The robot as its model file has it, with the columns that are asked for."""
    wanted, beside = job.robot, folder / job.robot.model
    chosen = wanted.friction not in (("auto",), ("none",))
    return load_robot(
        str(beside) if beside.is_file() else wanted.model,
        bodies=wanted.bodies,
        lock=dict(wanted.lock) or None,
        friction=wanted.friction if chosen else (),
        gravity=wanted.gravity,
    )


def _robot_key(robot: Robot) -> list[Any]:
    from ... import __version__

    arrays = (robot.links, robot.dofs, robot.body_parameters, robot.joint_parameters, robot.gravity)
    limits = [np.asarray(value).tolist() for value in asdict(robot.limits).values()]
    return [__version__, robot.dof_names, robot.layout.names, [np.asarray(x).tobytes().hex() for x in arrays], limits]


def _motions(job: Job, robot: Robot, place: _Place, key: str) -> tuple[Path, ...]:
    """The two trajectories, as CSV for the robot and as NPZ for us."""
    assert job.excitation is not None
    wanted, written = job.excitation, []
    for k, name in enumerate(("trajectory", "validation_trajectory")):
        exact, table = place.output / f"{name}.npz", place.output / f"{name}.csv"
        written.append(exact)
        if place.stands(name, key):
            continue
        place.progress(f"designing the {name.replace('_', ' ')}", 0.15 * k)
        found = design_excitation(
            robot, period=wanted.period, harmonics=wanted.harmonics, criterion=wanted.criterion, starts=wanted.starts,
            rounds=wanted.rounds, margin=wanted.margin, seed=wanted.seed + k,
        )  # fmt: skip
        if found.interrupted:
            raise KeyboardInterrupt
        samples = samples_of(found.trajectory, wanted.rate_hz)
        tau = inverse_dynamics(robot, samples.q, *samples.sample(samples.t)[1:])
        write_trajectory(table, found.trajectory, rate_hz=wanted.rate_hz, tau=tau)
        write_trajectory(exact, found.trajectory)
        place.ledger.finish(name, key, (exact, table))
    return tuple(written)


def strength(robot: Robot, trajectory: Trajectory) -> Array:
    """What each joint can do: its torque limit, or a multiple of what the motion asks of it."""
    needed = np.abs(inverse_dynamics(robot, *trajectory.sample(trajectory.grid(50.0)))).max(axis=0)
    fallback = _STRONG * np.maximum(needed, 1e-3 * needed.max(initial=1e-3))
    return np.where(np.isfinite(robot.limits.torque), robot.limits.torque, fallback)


def true_robot(robot: Robot, wanted: SimulationSettings) -> Robot:
    """A robot that is not quite what its model says, and that could exist."""
    return initial_guess(robot, wanted.model_error, np.random.default_rng([wanted.seed, 0]))


def _per_joint(value: float | tuple[float, ...], robot: Robot, name: str) -> Array:
    values = np.atleast_1d(np.asarray(value, dtype=np.float64))
    if values.size not in (1, robot.n):
        raise OptionError(f"simulation.{name} has {values.size} numbers; {robot.name} has {robot.n} joints")
    return np.array(np.broadcast_to(values, (robot.n,)))


def _simulated(robot: Robot, path: Trajectory, wanted: SimulationSettings, k: int) -> tuple[Recording, list[str]]:
    strong = strength(robot, path)
    torque = _NOISE_SHARE * strong if wanted.torque_noise is None else wanted.torque_noise
    sensors = Sensors(
        position_noise=_per_joint(wanted.position_noise, robot, "position_noise"),
        torque_noise=_per_joint(tuple(np.atleast_1d(torque)), robot, "torque_noise"),
    )
    way = reference_of(path, wanted.control_hz)[0]
    friction = friction_named(wanted.friction, strong)
    tuned = {"poses": way[:: max(1, len(way) // 50)], "dry": friction.standstill()[0]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", StepWarning)
        warnings.simplefilter("always", SaturationWarning)
        made = simulate(
            true_robot(robot, wanted),
            path,
            controller=pid_for(robot, wanted.bandwidth_hz, control_hz=wanted.control_hz, **tuned),
            friction=friction,
            sensors=sensors,
            rng=np.random.default_rng([wanted.seed, 1 + k]),
            nominal=robot,
            control_hz=wanted.control_hz,
            cartesian=False,
            seed_note=wanted.seed,
        )
    said = [str(one.message) for one in caught if issubclass(one.category, StepWarning | SaturationWarning)]
    return replace(made, about={**made.about, "cautions": said}), said


def _experiments(job: Job, robot: Robot, place: _Place, motions: tuple[Path, ...]) -> tuple[Path, ...]:
    """The recordings of a simulation."""
    assert job.simulation is not None
    written = []
    for k, (name, motion) in enumerate(zip(("recording", "validation"), motions, strict=True)):
        path = place.output / f"{name}.npz"
        written.append(path)
        key = digest_of(_robot_key(robot), job.simulation.model_dump(mode="json"), k, file_digest(motion))
        if place.stands(name, key):
            continue
        place.progress(f"simulating the {name}", 0.3 + 0.05 * k)
        made, _ = _simulated(robot, read_trajectory(motion, robot.dof_names), job.simulation, k)
        save_recording(made, path)
        place.ledger.finish(name, key, (path,))
    return tuple(written)


class _Cut:
    """The usual steps with a cut-off of the user's, made for each recording."""

    def __init__(self, cutoff_hz: float) -> None:
        self.cutoff_hz = cutoff_hz

    def __call__(self, recording: Recording, robot: Robot) -> tuple[Any, ...]:
        usual = default_steps(recording, robot)
        return tuple(Butterworth(cutoff_hz=self.cutoff_hz) if isinstance(s, Butterworth) else s for s in usual)


def _plan(job: Job, robot: Robot, mapping: Path | None) -> Plan:
    wanted, thin = job.preprocessing, job.preprocessing.decimation
    exact = isinstance(thin, DecimationSettings)
    return Plan(
        methods=job.methods(),
        terms=(*terms_named(job.terms), *(couplings(gear_of(robot, mapping)) if job.data is not None else ())),
        fixed=job.fixed,
        preprocessing="auto" if wanted.cutoff_hz is None else _Cut(wanted.cutoff_hz),
        decimation=Decimation(thin.cutoff_hz, thin.factor) if exact else None if thin == "none" else "auto",  # type: ignore[union-attr]
        train_share=1.0 - job.validation.share,
        choose_friction=job.robot.friction == ("auto",),
        delay=wanted.delay,
    )


def _file_of(place: _Place, method: Estimator) -> Path:
    return place.output / "estimates" / f"{method.name.replace(' ', '_')}.yaml"


def _identified(
    plan: Plan, job: Job, robot: Robot, place: _Place, key: str, recordings: tuple[list[Recording], list[Recording]]
) -> Outcome:
    """Every method, each on disk as soon as it has answered."""
    settings = {method.name: [name, given] for method, (name, given) in zip(job.methods(), job.estimators, strict=True)}

    def key_of(method: Estimator) -> str:
        return digest_of(key, settings[method.name])

    def known(problem: Problem, method: Estimator) -> Estimate | None:
        if not place.stands(method.name, key_of(method)):
            return None
        # As the problem has it: the file's own robot is the same, read once more.
        return replace(read_result(_file_of(place, method)).estimate, model=problem.model)

    def found_by(problem: Problem, method: Estimator, found: Estimate) -> None:
        path = _file_of(place, method)
        path.parent.mkdir(exist_ok=True)
        save_result(found, path)
        place.ledger.finish(method.name, key_of(method), (path,))

    def later(what: str, share: float) -> None:
        place.progress(what, 0.4 + 0.6 * share)

    return run_study(robot, recordings[0], plan, recordings[1], later, known, found_by)


def run_job(job: Job, folder: Path, output: Path, *, again: bool = False, progress: Progress = silent) -> Finished:
    """Do what of a study is not done yet; `folder` is where its files are, `output` where results go."""
    output.mkdir(parents=True, exist_ok=True)
    robot = robot_of(job, folder)
    done = Finished(robot, Ledger(output, forget=again))
    place = _Place(folder, output, done.ledger, progress, done.as_before)
    if job.excitation is not None:
        key = digest_of(_robot_key(robot), job.excitation.model_dump(mode="json"))
        done.motions = _motions(job, robot, place, key)
    mapping = judged = None
    if job.simulation is not None:
        done.recordings = _experiments(job, robot, place, done.motions)
        given, judged = done.recordings[:1], done.recordings[1:]
    elif job.data is not None:
        given = tuple(place.beside(name) for name in job.data.recordings)
        judged = tuple(place.beside(name) for name in job.data.validation)
        mapping = None if job.data.mapping is None else place.beside(job.data.mapping)
        done.recordings = given + judged
    else:
        return done
    repair = job.data is not None and job.data.repair
    progress("reading the recordings", 0.4)
    training = [load_recording(path, robot, mapping, repair=repair) for path in given]
    testing = [load_recording(path, robot, mapping, repair=repair) for path in judged]
    what = job.model_dump(mode="json", include={"robot", "preprocessing", "terms", "fixed", "validation"})
    hashed = [file_digest(path) for path in (*given, *judged)] + ([file_digest(mapping)] if mapping else [])
    key = digest_of(_robot_key(robot), what, hashed)
    done.outcome = _identified(_plan(job, robot, mapping), job, robot, place, key, (training, testing))
    done.key = digest_of(key, job.model_dump(mode="json", include={"estimators", "report"}))
    found = {name: compare_with_truth(one, training[0]) for name, one in done.outcome.estimates.items()}
    done.truths = {name: truth for name, truth in found.items() if truth is not None}
    done.warnings = tuple(str(said) for one in training + testing for said in one.about.get("cautions", ()))
    return done
