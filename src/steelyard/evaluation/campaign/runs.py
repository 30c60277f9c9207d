"""One task: the rows of the table that it stands for."""

import itertools
import os
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compiled import one_blas_thread
from ...errors import SteelyardError
from ...identification.conclude import conclude
from ...identification.estimate import Estimate
from ...identification.estimators import Physical
from ...identification.fit import Estimator, Fit, Progress, silent
from ...identification.problem import Problem
from ...identification.shared import with_nominal
from ...robot.robot import Robot
from .cells import Task
from .methods import FROM_DATA_ALONE, Method, label_of, make_estimator
from .preparing import problems_of
from .scene import Scene, seeds_for

Array = NDArray[np.float64]
Row = dict[str, Any]
# Answers that differ by less than this share of their standard deviations are one answer.
_ALIKE = 1e-6
_95 = 1.959963984540054

# Threads of one process, which a Dask worker may have, take turns: they share its clock and its number of BLAS threads.
_one_at_a_time = threading.Lock()
_scenes: dict[str, Scene] = {}
_starts: dict[tuple[str, int], "_Start"] = {}


def _settled(scene: Scene) -> Scene:
    """The scene as this process has had it before, with all that was derived from it."""
    return _scenes.setdefault(scene.key, scene)


@contextmanager
def single_thread() -> Iterator[None]:
    """One thread for kernels and linear algebra: tasks are what is parallel, and sums do not depend on a splitting."""
    before = os.environ.get("STEELYARD_THREADS")
    os.environ["STEELYARD_THREADS"] = "1"
    try:
        with one_blas_thread(), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # of saturation and large steps: said once, where the scenes are made
            yield
    finally:
        if before is None:
            os.environ.pop("STEELYARD_THREADS", None)
        else:
            os.environ["STEELYARD_THREADS"] = before


@dataclass(frozen=True, eq=False)
class _Start:
    """An initial guess, and how wrong it is."""

    index: int
    robot: Robot
    torque_error: float
    parameter_error: float


def _relative(beta: Array, truth: Array) -> float:
    return float(np.linalg.norm(beta - truth) / np.linalg.norm(truth))


def _start(scene: Scene, index: int) -> _Start:
    """An initial guess, made once a process."""
    key = (scene.key, index)
    if key not in _starts:
        robot = scene.guess(index)
        beta = scene.base.reduce(robot.parameters)
        _starts[key] = _Start(index, robot, scene.torque_error(beta), _relative(beta, scene.truth))
    return _starts[key]


class _Judge:
    """Scores of answers to one noise run; what was simulated for an answer is not simulated again for its equal."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.known: list[tuple[Array, float]] = []

    def position_error(self, found: Estimate) -> float:
        if not self.scene.study.resimulate:
            return float("nan")
        deviation = np.where(np.isfinite(found.base_deviation), found.base_deviation, 0.0)
        for beta, error in self.known:
            if np.all(np.abs(beta - found.base_parameters) <= _ALIKE * deviation):
                return error
        error = self.scene.position_error(found.parameters[: self.scene.robot.layout.size])
        self.known.append((found.base_parameters, error))
        return error

    def scores(self, start: _Start, found: Estimate, seconds: float, statistics: float) -> Row:
        scene, beta = self.scene, found.base_parameters
        inside = np.abs(beta - scene.truth) <= _95 * found.base_deviation
        torque = scene.torque_error(beta)
        good = torque <= scene.study.converged.torque_error and torque < start.torque_error
        fit = found.about.get("fit", {})
        status = "converged" if found.converged and good else "wrong" if found.converged else "not converged"
        return {
            "status": status,
            "claimed": found.converged,
            "message": found.message,
            "parameter_error": _relative(beta, scene.truth),
            "torque_error": torque,
            "position_error": self.position_error(found),
            "inside": int(inside.sum()),
            "feasible": not found.invalid,
            "iterations": int(found.iterations),
            "simulations": int(fit.get("simulations", 0)),
            # Filters that track the joints simulate a step from every sigma point, which they do not count.
            "evaluations": float("nan") if fit.get("on") == "joint" else 1.0 + fit.get("simulations", 0),
            "seconds": seconds,
            "statistics_seconds": statistics,
            "beta": beta,
            "deviation": found.base_deviation,
        }


def _failed(rank: int, error: Exception, seconds: float) -> Row:
    nothing = np.full(rank, np.nan)
    nan = float("nan")
    return {
        "status": "failed",
        "claimed": False,
        "message": f"{type(error).__name__}: {error}",
        "parameter_error": nan,
        "torque_error": nan,
        "position_error": nan,
        "inside": 0,
        "feasible": False,
        "iterations": 0,
        "simulations": 0,
        "evaluations": nan,
        "seconds": seconds,
        "statistics_seconds": 0.0,
        "beta": nothing,
        "deviation": nothing,
    }


def _estimator(task: Task, method: Method, seed: int, guess: int) -> Estimator:
    """The estimator, with random numbers of its own where it draws any."""
    made = make_estimator(*method)
    if "seed" in {field.name for field in fields(made)} and "seed" not in method[1]:  # type: ignore[arg-type]
        key = (task.scene.name, task.scene.friction, *task.noise, "estimator", seed, guess)
        drawn = int(seeds_for(task.scene.study.seed, *key).generate_state(1)[0])
        made = replace(made, seed=drawn)  # type: ignore[type-var]
    return made


@dataclass(frozen=True, eq=False)
class _Answer:
    """An estimate, and the processor seconds that it and its statistics took."""

    fit: Fit
    found: Estimate
    seconds: float
    statistics: float


@dataclass(frozen=True)
class _Solved:
    """An estimator that has been to these data already."""

    name: str
    known: Fit

    def fit(self, problem: Problem, progress: Progress = silent) -> Fit:
        return self.known


def _is_one(fit: Fit, answer: _Answer) -> bool:
    """Whether a fit's statistics are those of an earlier answer to the same data, because its root is the same."""
    if any(x is not None for x in (fit.psi, fit.prior, fit.parameters, fit.covariance, fit.deviation, fit.problem)):
        return False
    far = np.abs(fit.beta - answer.fit.beta) > _ALIKE * answer.found.base_deviation
    return not far.any() and bool(np.allclose(fit.weights, answer.fit.weights, rtol=_ALIKE, atol=0.0))


def _solve(problem: Problem, estimator: Estimator, before: Sequence[_Answer] = ()) -> _Answer:
    """The estimate with its statistics, which equal answers share."""
    begun = time.process_time()
    fit = estimator.fit(problem)
    seconds = time.process_time() - begun
    same = next((answer for answer in before if _is_one(fit, answer)), None)
    if same is None:
        begun = time.process_time()
        found = conclude(problem, fit, estimator.name, {}, seconds, {})
        return _Answer(fit, found, seconds, time.process_time() - begun)
    theta = problem.model.base.expand(fit.beta, problem.model.nominal)
    found = replace(
        same.found,
        model=problem.model,
        parameters=theta,
        base_parameters=fit.beta,
        converged=fit.converged,
        message=fit.message,
        iterations=fit.iterations,
    )
    return _Answer(fit, found, seconds, same.statistics)


def _other_nominal(found: Estimate, problem: Problem) -> Estimate:
    """The same base parameters, what they leave open taken from another model."""
    theta = problem.model.base.expand(found.base_parameters, problem.model.nominal)
    return replace(found, model=problem.model, parameters=theta)


def _row(task: Task, method: Method, seed: int, start: _Start, shared: bool, scores: Row) -> Row:
    scene = task.scene
    return {
        "robot": scene.name,
        "friction": scene.friction,
        "position_noise": task.noise.position,
        "torque_noise": task.noise.torque,
        "preprocessing": task.preprocessing,
        "estimator": label_of(*method),
        "seed": seed,
        "guess": start.index,
        "shared": shared,
        "guess_parameter_error": start.parameter_error,
        "guess_torque_error": start.torque_error,
        **scores,
    }


def _needs_no_guess(name: str, problem: Problem) -> bool:
    return name in FROM_DATA_ALONE and problem.data_set.rank == problem.rank


def _of_method(task: Task, method: Method, seed: int, problem: Problem, starts: list[_Start]) -> Iterator[Row]:
    scene = task.scene
    judge = _Judge(scene)
    # What does not look at the initial guess is solved once for all of them.
    once = _needs_no_guess(method[0], problem)
    inner: _Answer | None = None  # of an estimator that another one builds upon
    answers: list[_Answer] = []
    for start in starts:
        begun = time.process_time()
        try:
            here = with_nominal(problem, start.robot)
            made = _estimator(task, method, seed, start.index)
            if isinstance(made, Physical) and _needs_no_guess(made.inner.name, problem):
                inner = _solve(here, made.inner) if inner is None else inner
                made = replace(made, inner=_Solved(made.inner.name, inner.fit))
            if not (answers and once):
                answers.append(_solve(here, made, answers))
            answer = answers[-1]
            seconds = answer.seconds + (inner.seconds if inner else 0.0)
            found = _other_nominal(answer.found, here) if once else answer.found
            scores = judge.scores(start, found, seconds, answer.statistics)
        except Exception as error:  # a campaign counts failures, whatever they are, and goes on
            scores = _failed(scene.truth.size, error, time.process_time() - begun)
        yield _row(task, method, seed, start, once, scores)


def run_task(task: Task) -> list[Row]:
    """All rows of a task."""
    with _one_at_a_time, single_thread():
        task = replace(task, scene=_settled(task.scene))
        scene = task.scene
        starts = [_start(scene, index) for index in task.guesses]
        recordings = [scene.recording(task.noise, seed) for seed in task.seeds]
        try:
            problems = problems_of(scene.robot, recordings, task.preprocessing)
            for problem in problems:
                _ = problem.data_set
        except SteelyardError as error:
            none = _failed(scene.truth.size, error, 0.0)
            every = itertools.product(task.seeds, task.methods, starts)
            return [_row(task, method, seed, start, False, none) for seed, method, start in every]
        rows: list[Row] = []
        for seed, problem in zip(task.seeds, problems, strict=True):
            for method in task.methods:
                rows += _of_method(task, method, seed, problem, starts)
        return rows
