"""A campaign from beginning to end: motions, tasks, table, scores; and how long it would take."""

import hashlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from ...errors import OptionError, SteelyardError
from ...excitation.design import Progress
from ...excitation.exchange import read_trajectory, write_trajectory
from ...excitation.trajectory import Trajectory
from ...files import whole_or_not
from .cells import Task, tasks_of
from .engine import PARTS, Crew, Say, Watch, Work, finished_rows, run_tasks, silent
from .methods import Method, is_direct, label_of
from .runs import run_task, single_thread
from .scene import Scene, design_motions, load_settings, robot_with_friction
from .settings import RobotSettings, Study
from .summary import Level, Reference, Score, levels, references, summarise
from .table import Table, table_name, write_table


@dataclass(frozen=True, eq=False)
class Campaign:
    """What a study came to."""

    study: Study
    table: Table
    scores: list[Score]
    levels: list[Level]
    path: Path  # of the table
    runs: int  # in the whole study
    work: Work | None = None  # what was done for it this time; nothing when it is only looked at


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
    try:
        return [read_trajectory(path) for path in paths]
    except SteelyardError as error:
        raise OptionError(
            f"{error}; delete it: both motions are designed again, and all runs along them are done again"
        ) from None


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


def _known(scenes: Sequence[Scene]) -> tuple[Mapping[tuple[str, str], Reference], list[Level]]:
    with single_thread():
        return references(scenes), levels(scenes)


def _tell(study: Study, known: Mapping[tuple[str, str], Reference], folder: Path) -> None:
    """Beside the table: what was done, and what the truth was."""
    truth = {
        f"{robot}, {friction}": {"names": one.names, "truth": one.truth.tolist(), "bound": one.bound.tolist()}
        for (robot, friction), one in known.items()
    }
    with whole_or_not(folder / "study.json") as temporary:
        told = {"study": study.model_dump(mode="json"), "truth": truth}
        temporary.write_text(json.dumps(told, indent=1), encoding="utf-8")


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
    known, quality = _known(scenes)
    _tell(study, known, folder)
    tasks = tasks_of(scenes)
    work = run_tasks(tasks, folder, crew, watch, say)
    total = sum(task.rows for task in tasks)
    return Campaign(study, work.table, summarise(work.table, known), quality, folder / table_name(), total, work)


def look_at_campaign(study: Study, folder: Path, say: Say = silent) -> Campaign:
    """What a folder has of a study so far, while it is being done or after it was stopped."""
    scenes = scenes_of(study, folder, say) if (folder / PARTS).is_dir() else []
    tasks = tasks_of(scenes)
    table = finished_rows(tasks, folder)
    if table is None:
        raise OptionError(f"no runs of {study.name}, as it is asked for, are in {folder} yet; run it without --so-far")
    path = folder / f"so-far-{table_name()}"
    write_table(table, path)
    known, quality = _known(scenes)
    return Campaign(study, table, summarise(table, known), quality, path, sum(task.rows for task in tasks))


@dataclass(frozen=True)
class Cost:
    """What an estimator's runs of a whole study would take on one processor."""

    estimator: str
    runs: int
    seconds_a_run: float

    @property
    def hours(self) -> float:
        return self.runs * self.seconds_a_run / 3600.0


RECORDINGS = "(recordings and regressions)"


def _tried(task: Task, methods: tuple[Method, ...], guesses: int) -> float:
    """CPU seconds of one noise run."""
    some = replace(task, seeds=task.seeds[:1], guesses=task.guesses[:guesses], methods=methods)
    begun = time.process_time()
    run_task(some)
    return time.process_time() - begun


def costs(study: Study, folder: Path, say: Say = silent, progress: Progress | None = None) -> list[Cost]:
    """Try every estimator once at the last level, the noisiest, and say what the whole study would cost.

    Making a recording and its regression is told apart, as the estimators of a task share it; so do all guesses what
    does not depend on them.
    """
    tasks = tasks_of(scenes_of(study, folder, say, progress))
    kinds: dict[tuple[str, ...], list[Task]] = {}
    for task in tasks:
        kinds.setdefault((task.preprocessing, *(label_of(*method) for method in task.methods)), []).append(task)
    shared, recordings = 0.0, 0
    found: dict[str, tuple[int, float]] = {}  # runs, and seconds of them all
    for alike in kinds.values():
        last = max(alike, key=lambda task: (task.noise, -task.seeds[0], -task.guesses[0]))
        _tried(last, (), 1)  # what a process does once, it has done
        base = _tried(last, (), 1)
        runs = sum(len(task.seeds) for task in alike)
        shared, recordings = shared + base * runs, recordings + runs
        for method in last.methods:
            say(f"trying {label_of(*method)}")
            guesses = len(last.guesses) if is_direct(method) else 1
            each = max(0.0, _tried(last, (method,), guesses) - base) / guesses
            more = sum(len(task.seeds) * len(task.guesses) for task in alike)
            before = found.get(label_of(*method), (0, 0.0))
            found[label_of(*method)] = (before[0] + more, before[1] + each * more)
    made = [Cost(label, count, seconds / count) for label, (count, seconds) in found.items()]
    return [Cost(RECORDINGS, recordings, shared / max(1, recordings)), *made]
