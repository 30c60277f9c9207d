"""A campaign from beginning to end: motions, tasks, table, scores; and how long it would take."""

import hashlib
import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from ...excitation.design import Progress
from ...excitation.exchange import read_trajectory, write_trajectory
from ...excitation.trajectory import Trajectory
from ...files import whole_or_not
from .cells import Task, tasks_of
from .engine import Crew, Watch, run_tasks
from .methods import Method, is_direct, label_of
from .runs import run_task, single_thread
from .scene import Scene, design_motions, load_settings, robot_with_friction
from .settings import RobotSettings, Study
from .summary import Score, references, summarise
from .table import Table, table_name

Say = Callable[[str], None]


def silent(text: str) -> None:
    """Nothing is said."""


@dataclass(frozen=True, eq=False)
class Campaign:
    """What a study came to."""

    study: Study
    table: Table
    scores: list[Score]
    path: Path  # of the table


def _motions(
    settings: RobotSettings, study: Study, folder: Path, say: Say, progress: Progress | None
) -> list[Trajectory]:
    """The two excitations of a robot, designed once a folder."""
    name, digest = settings.label, hashlib.sha256(f"{study.seed} {study.trajectory.model_dump_json()}".encode())
    robot = load_settings(settings)
    limits = (getattr(robot.limits, field.name) for field in fields(robot.limits))
    for values in (robot.links, robot.dofs, robot.body_parameters, robot.joint_parameters, robot.gravity, *limits):
        digest.update(np.ascontiguousarray(values).tobytes())
    safe = re.sub(r"[^\w.-]", "_", name)
    paths = [folder / f"{safe}-{digest.hexdigest()[:12]}-{what}.npz" for what in ("training", "validation")]
    if not all(path.is_file() for path in paths):
        say(f"designing two excitations of {name}")
        for path, trajectory in zip(paths, design_motions(settings, study, progress), strict=True):
            write_trajectory(path, trajectory)
    # Read again, so that a study that is gone on with has the very same numbers.
    return [read_trajectory(path) for path in paths]


def scenes_of(study: Study, folder: Path, say: Say = silent, progress: Progress | None = None) -> list[Scene]:
    """Every robot with every friction law."""
    folder.mkdir(parents=True, exist_ok=True)
    scenes = []
    for settings in study.robots:
        training, validation = _motions(settings, study, folder, say, progress)
        for friction in study.friction:
            robot, law = robot_with_friction(settings, friction)
            scenes.append(Scene(study, settings.label, friction, robot, law, training, validation))
    return scenes


def run_campaign(
    study: Study,
    folder: Path,
    crew: Crew,
    say: Say = silent,
    watch: Watch | None = None,
    progress: Progress | None = None,
) -> Campaign:
    """Do a study in a folder, or go on with it; the table is the same whoever did how much of it."""
    scenes = scenes_of(study, folder, say, progress)
    with single_thread():
        known = references(scenes)
    truth = {
        f"{robot}, {friction}": {"names": one.names, "truth": one.truth.tolist(), "bound": one.bound.tolist()}
        for (robot, friction), one in known.items()
    }
    with whole_or_not(folder / "study.json") as temporary:
        told = {"study": study.model_dump(mode="json"), "truth": truth}
        temporary.write_text(json.dumps(told, indent=1), encoding="utf-8")
    table = run_tasks(tasks_of(scenes), folder, crew, watch)
    return Campaign(study, table, summarise(table, known), folder / table_name())


@dataclass(frozen=True)
class Cost:
    """What an estimator's runs of a whole study would take on one processor."""

    estimator: str
    runs: int
    seconds_a_run: float

    @property
    def hours(self) -> float:
        return self.runs * self.seconds_a_run / 3600.0


def _tried(tasks: Sequence[Task], method: Method, guesses: int) -> float:
    """CPU seconds a run, from one noise run of the last level, the noisiest."""
    last = max((t for t in tasks if method in t.methods), key=lambda t: (t.noise, -t.seeds[0]))
    some = last.guesses[:guesses]
    task = replace(last, seeds=last.seeds[:1], guesses=some, methods=(method,))
    begun = time.process_time()
    run_task(task)
    return (time.process_time() - begun) / len(some)


def costs(study: Study, folder: Path, say: Say = silent, progress: Progress | None = None) -> list[Cost]:
    """Try every estimator once and say what the whole study would cost."""
    tasks = tasks_of(scenes_of(study, folder, say, progress))
    found = []
    for label, method in {label_of(*method): method for task in tasks for method in task.methods}.items():
        say(f"trying {label}")
        runs = sum(len(t.seeds) * len(t.guesses) for t in tasks if method in t.methods)
        # Estimators of the regression share its making among all guesses; so do they here.
        found.append(Cost(label, runs, _tried(tasks, method, study.guesses if is_direct(method) else 1)))
    return found
