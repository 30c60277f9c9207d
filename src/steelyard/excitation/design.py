"""`design_excitation`: the motion that makes every parameter visible within the robot's limits."""

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from ..compiled import one_blas_thread
from ..dynamics import base_parameters, regressor
from ..errors import DataError, OptionError
from ..robot.robot import Robot
from .constraints import (
    Constraint,
    KeepWithin,
    Motion,
    Violation,
    assumed_limits,
    collisions_of,
    joint_constraints,
    worst_violations,
)
from .criteria import CRITERIA, SHARPEST, Criterion, criterion_named
from .problem import DesignProblem
from .trajectory import Fourier, fourier_basis

Array = NDArray[np.float64]
Progress = Callable[[str, float, float], None]

# Limits are looked at between the samples of the design too: on a grid this many times finer.
FINER = 10
# The fine grid has 200 samples a period of the fastest harmonic, between which a peak may rise by (π/200)²/2.
_BETWEEN = 2e-4
# Outer rounds of the augmented Lagrangian, iterations in each, and how the penalty grows.
_ROUNDS, _ITERATIONS = 8, 60
_FIRST_PENALTY, _GROWTH = 0.3, 4.0
_FIRST_SHARPNESS = 4.0
# The smallest amplitude, in rad or m, that is still a motion.
_SMALLEST_AMPLITUDE = 1e-3


@dataclass(frozen=True, eq=False)
class Excitation:
    """A designed trajectory and what it is worth; it can be sampled like any trajectory."""

    trajectory: Fourier
    criterion: str
    value: float
    figures: dict[str, float]  # every criterion, of the unweighted base regressor at the design samples
    violations: tuple[Violation, ...]  # the worst of each constraint on the fine grid, none above zero
    history: tuple[tuple[int, float, float], ...]  # evaluations, criterion, worst violation
    feasible: bool
    interrupted: bool
    message: str
    notes: tuple[str, ...]
    evaluations: int

    @property
    def duration(self) -> float:
        return self.trajectory.duration

    @property
    def joints(self) -> tuple[str, ...]:
        return self.trajectory.joints

    @property
    def n(self) -> int:
        return self.trajectory.n

    def sample(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        return self.trajectory.sample(t)


@dataclass(frozen=True, eq=False)
class _Start:
    """What one start of the optimiser came to."""

    x: Array
    value: float
    worst: float
    history: tuple[tuple[int, float, float], ...]
    evaluations: int
    interrupted: bool


class _Stopped(Exception):
    """Ctrl-C, seen between two evaluations."""


@contextmanager
def _ctrl_c_stops() -> Iterator[list[bool]]:
    """Turn Ctrl-C into a flag, where signals can be had (the main thread)."""
    flag = [False]

    def note(*_: object) -> None:
        flag[0] = True

    try:
        before = signal.signal(signal.SIGINT, note)
    except ValueError:
        yield flag
        return
    try:
        yield flag
    finally:
        signal.signal(signal.SIGINT, before)


def _fine_motion(problem: DesignProblem, x: Array) -> tuple[Motion, Array]:
    count = FINER * problem.samples
    t: Array = np.linspace(0.0, problem.period, count, endpoint=False)
    return problem.motion(x, fourier_basis(t, problem.period, problem.harmonics)), t


def _fine_violations(problem: DesignProblem, x: Array) -> tuple[Violation, ...]:
    motion, t = _fine_motion(problem, x)
    return worst_violations(problem.constraints, motion, t)


def _worst(violations: Sequence[Violation]) -> float:
    return max((violation.amount for violation in violations), default=-np.inf)


def _still(problem: DesignProblem, x: Array) -> Array:
    """The free numbers of standing still about the same place."""
    c = problem.coefficients(x)
    still = np.zeros_like(c)
    still[:, 0] = problem.start if problem.start is not None else c[:, 0]
    return problem.free_numbers(still)


def _keeps(problem: DesignProblem, x: Array) -> bool:
    """Whether a motion keeps everything, between the samples too; the cheap limits are looked at first."""
    motion, _ = _fine_motion(problem, x)
    return all(constraint.values(motion).max(initial=-np.inf) <= -_BETWEEN for constraint in problem.constraints)


def _repaired(problem: DesignProblem, x: Array) -> Array | None:
    """The largest part of a motion about its middle that keeps every limit; None where even standing does not."""
    if _keeps(problem, x):
        return x
    still = _still(problem, x)
    if not _keeps(problem, still):
        return None
    low, high = 0.0, 1.0
    for _ in range(12):
        middle = 0.5 * (low + high)
        if _keeps(problem, still + middle * (x - still)):
            low = middle
        else:
            high = middle
    return still + low * (x - still)


def _random_start(problem: DesignProblem, rng: np.random.Generator) -> Array:
    """Random coefficients about a random middle, small enough for the joints' ranges and speeds."""
    limits, n, N = problem.robot.limits, problem.robot.n, problem.harmonics
    finite = np.isfinite(limits.lower) & np.isfinite(limits.upper)
    lower, upper = np.where(finite, limits.lower, -np.pi), np.where(finite, limits.upper, np.pi)
    c = np.zeros((n, 2 * N + 1))
    c[:, 0] = 0.5 * (lower + upper) + 0.25 * (upper - lower) * rng.uniform(-1, 1, size=n)
    size = np.minimum(limits.velocity, upper - lower) / np.sqrt(2 * N)
    c[:, 1:] = rng.normal(size=(n, 2 * N)) * size[:, None]
    return _out_of_the_way(problem, c)


def _out_of_the_way(problem: DesignProblem, c: Array) -> Array:
    """A start clear of collisions and forbidden places: derivatives of deep penetrations lead nowhere.

    The motion is made smaller about its own middle, and about the home pose where that does not help.
    """
    places = [constraint for constraint in problem.constraints if constraint.in_metres]
    for middle in (c[:, 0], problem.robot.home):
        still = np.zeros_like(c)
        still[:, 0] = middle
        for share in (1.0, 0.5, 0.25, 0.1):
            x = problem.free_numbers(still + share * np.column_stack([np.zeros(len(c)), c[:, 1:]]))
            motion = problem.motion(x)
            if all(constraint.values(motion).max(initial=-np.inf) <= 0 for constraint in places):
                return x
    return problem.free_numbers(c)


def _one_start(
    problem: DesignProblem, x: Array, rounds: int, report: Progress | None, stopped: Callable[[], bool]
) -> _Start:
    """Augmented Lagrangian with L-BFGS inside; the best repaired trajectory of all rounds."""
    multipliers = [np.zeros_like(constraint.values(problem.motion(x))) for constraint in problem.constraints]
    tightening = np.zeros(len(problem.constraints))
    penalty = _FIRST_PENALTY
    sharpness = _FIRST_SHARPNESS
    best: tuple[float, Array] | None = None
    history: list[tuple[int, float, float]] = []
    interrupted = False
    latest = x
    before = problem.evaluations[1]

    def watched(z: Array) -> tuple[float, Array]:
        nonlocal latest
        if stopped():
            raise _Stopped
        latest = z
        return problem.augmented(z, multipliers, penalty, tightening, sharpness)

    for k in range(rounds):
        sharpness = min(_FIRST_SHARPNESS * 2.0**k, SHARPEST)
        try:
            x = minimize(watched, x, jac=True, method="L-BFGS-B", options={"maxiter": _ITERATIONS, "maxcor": 20}).x
        except _Stopped:
            x, interrupted = latest, True
        violations = _fine_violations(problem, x)
        repaired = _repaired(problem, x)
        if repaired is not None:
            value = problem.value(problem.motion(repaired))
            if best is None or value < best[0]:
                best = (value, repaired)
        worst = _worst(violations)
        shown = best[0] if best is not None else np.inf
        history.append((problem.evaluations[1] - before, shown, worst))
        if report is not None:
            report(problem.criterion.name, shown, worst)
        if interrupted:
            break
        motion = problem.motion(x)
        for j, constraint in enumerate(problem.constraints):
            values = constraint.values(motion)
            multipliers[j] = problem.pressed(constraint, values, multipliers[j], penalty, tightening[j])
            # Between the samples a limit may be passed by a little more than at them.
            between = violations[j].amount - float(values.max(initial=-np.inf)) if values.size else 0.0
            tightening[j] = max(tightening[j], min(max(between, 0.0), 0.1) + _BETWEEN)
        penalty *= _GROWTH
    if best is None:
        return _Start(x, np.inf, history[-1][2], tuple(history), problem.evaluations[1] - before, interrupted)
    return _Start(best[1], best[0], 0.0, tuple(history), problem.evaluations[1] - before, interrupted)


def _check_request(robot: Robot, period: float, harmonics: int, samples: int, rate_hz: float) -> None:
    if not (np.isfinite(period) and period > 0):
        raise OptionError(f"the period is {period} s; it must be above zero")
    if harmonics < 2:
        raise OptionError(
            f"{harmonics} harmonic{'s' if harmonics != 1 else ''} cannot start and end at rest (velocity and "
            "acceleration zero); at least 2 are needed, 5 are usual"
        )
    if harmonics / period > 0.5 * rate_hz:
        raise OptionError(
            f"harmonic {harmonics} of a {period:g} s period has {harmonics / period:.4g} Hz, above half the sampling "
            f"rate of {rate_hz:g} Hz; take fewer harmonics, a longer period or a higher rate"
        )
    if samples < 2 * harmonics + 2:
        raise OptionError(f"{samples} samples cannot show {harmonics} harmonics; take at least {4 * harmonics}")
    reach = robot.limits.acceleration * (period / (2 * np.pi)) ** 2
    small = int(reach.argmin())
    if reach[small] < _SMALLEST_AMPLITUDE:
        needed = 2 * np.pi * np.sqrt(_SMALLEST_AMPLITUDE / robot.limits.acceleration[small])
        raise OptionError(
            f"a period of {period:g} s is too short: the acceleration limit of {robot.dof_names[small]}, "
            f"{robot.limits.acceleration[small]:.4g}, leaves it an amplitude of {reach[small]:.2g}; "
            f"take at least {needed:.2g} s"
        )


def _row_weights(robot: Robot, weights: ArrayLike | None) -> Array:
    """One over the torque noise of each joint; by default one over its torque limit, as far as limits are known."""
    if weights is not None:
        given = np.asarray(weights, dtype=np.float64)
        if given.shape != (robot.n,) or not (np.isfinite(given) & (given > 0)).all():
            raise OptionError(f"weights must be {robot.n} positive numbers, one a joint")
        return given
    torque = robot.limits.torque
    known = np.isfinite(torque)
    if not known.any():
        return np.ones(robot.n)
    # A joint without a limit weighs like the middle of the others.
    typical = np.exp(np.log(torque[known]).mean())
    return typical / np.where(known, torque, typical)


def _information(problem: DesignProblem, already: Iterable[tuple[ArrayLike, ArrayLike, ArrayLike]]) -> Array:
    """WᵀW of motions that were recorded before, each weighing as much as the design itself."""
    A = np.zeros((problem.base.rank, problem.base.rank))
    for q, qd, qdd in already:
        Y = problem.base.columns(regressor(problem.robot, q, qd, qdd))
        W = (Y * problem.weights[:, None]).reshape(-1, problem.base.rank)
        # Brought to as many samples as the design has, however densely the motion was recorded.
        A += W.T @ W * (problem.samples / len(Y))
    return A


def _figures(problem: DesignProblem, x: Array) -> dict[str, float]:
    motion = problem.motion(x)
    W = problem.base.columns(regressor(problem.robot, motion.q, motion.qd, motion.qdd)).reshape(-1, problem.base.rank)
    eigenvalues = np.maximum(np.linalg.eigvalsh(W.T @ W), 0.0)
    return {name: criterion.value(eigenvalues) for name, criterion in CRITERIA.items()}


@dataclass(frozen=True, eq=False)
class _Job:
    """One start, as a worker gets it."""

    problem: DesignProblem
    x: Array
    rounds: int

    def run(self) -> _Start:
        return _one_start(self.problem, self.x, self.rounds, None, lambda: False)


def _shared_starts(
    problem: DesignProblem, starts: list[Array], rounds: int, workers: int, progress: Progress | None
) -> tuple[list[_Start], bool]:
    """The starts in worker processes; Ctrl-C keeps those that have finished."""
    jobs = (joblib.delayed(_Job(problem, x, rounds).run)() for x in starts)
    finished: list[_Start] = []
    try:
        for one in joblib.Parallel(workers, return_as="generator", backend="loky", inner_max_num_threads=1)(jobs):
            finished.append(one)
            if progress is not None:
                progress(problem.criterion.name, min(start.value for start in finished), one.history[-1][2])
    except KeyboardInterrupt:
        return finished or [_Start(starts[0], np.inf, np.inf, (), 0, True)], True
    return finished, False


def _all_starts(
    problem: DesignProblem, starts: list[Array], rounds: int, workers: int, progress: Progress | None
) -> tuple[list[_Start], bool]:
    if workers > 1 and len(starts) > 1:
        return _shared_starts(problem, starts, rounds, workers, progress)
    done: list[_Start] = []
    with _ctrl_c_stops() as stopped:
        for x in starts:
            done.append(_one_start(problem, x, rounds, progress, lambda: stopped[0]))
            if stopped[0]:
                break
    return done, stopped[0]


def _impossible(problem: DesignProblem, x: Array, starts: int) -> OptionError:
    still = _still(problem, x)
    broken = max(_fine_violations(problem, still), key=lambda violation: violation.amount)
    return OptionError(
        f"no trajectory that keeps every limit was found ({starts} starts): even standing "
        f"still about the middle of the best breaks the {broken.constraint} limit ({broken.where}); "
        "widen that limit, begin elsewhere, or allow more starts"
    )


def requirements(
    robot: Robot, margin: float = 0.05, keep: Sequence[KeepWithin] = (), clearance: float | None = 0.01
) -> tuple[Robot, list[Constraint], tuple[str, ...]]:
    """The robot with a limit for everything, what its motion has to keep, and what was assumed or left out."""
    if not 0 <= margin < 1:
        raise OptionError(f"margin is {margin}; it is the share of every limit left free, from 0 to below 1")
    bounded, notes = assumed_limits(robot)
    constraints: list[Constraint] = [*joint_constraints(bounded, margin), *keep]
    if clearance is not None:
        collisions, touching = collisions_of(bounded, clearance)
        constraints, notes = constraints + collisions, notes + touching
    return bounded, constraints, notes


def design_excitation(
    robot: Robot,
    *,
    period: float = 10.0,
    harmonics: int = 5,
    criterion: str | Criterion = "logdet",
    seed: int = 0,
    starts: int = 4,
    rounds: int = _ROUNDS,
    samples: int | None = None,
    rate_hz: float = 100.0,
    margin: float = 0.05,
    start: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    only: Iterable[str] | None = None,
    keep: Sequence[KeepWithin] = (),
    clearance: float | None = 0.01,
    already: Iterable[tuple[ArrayLike, ArrayLike, ArrayLike]] = (),
    workers: int = 1,
    progress: Progress | None = None,
) -> Excitation:
    """Find the Fourier trajectory that makes the parameters (or those named in `only`) most visible.

    It keeps position, velocity, acceleration and torque limits less `margin` (0.05: 95 % of each), the boxes in
    `keep`, and `clearance` between geoms that could collide (None: do not look). `start` is the pose to begin in.
    Rows count by one over the torque limit unless `weights` says otherwise. `already` are motions (q, q̇, q̈) that were
    recorded before: the design adds what they lack. The same seed gives the same answer; Ctrl-C the best so far.
    """
    if robot.nq != robot.n:
        raise OptionError(f"{robot.name} has ball or free joints; excitation is designed for hinges and slides")
    bounded, constraints, notes = requirements(robot, margin, keep, clearance)
    samples = max(100, 20 * harmonics) if samples is None else samples
    _check_request(bounded, period, harmonics, samples, rate_hz)
    base = base_parameters(bounded, only=only)
    if base.rank == 0:
        raise OptionError("none of the chosen parameters acts on any torque; choose others")
    pose = None if start is None else np.asarray(start, dtype=np.float64)
    if pose is not None and pose.shape != (robot.n,):
        raise DataError(f"start has shape {pose.shape}; {robot.name} has {robot.n} joints")
    chosen = criterion_named(criterion) if isinstance(criterion, str) else criterion
    unlimited = [robot.dof_names[k] for k in np.flatnonzero(~np.isfinite(robot.limits.torque))]
    if unlimited:
        notes += (f"no torque limit is known for {', '.join(unlimited)}: their torque is not bounded",)
    problem = DesignProblem(
        bounded, base, chosen, tuple(constraints), period, harmonics, samples, _row_weights(robot, weights), pose
    )
    recorded = list(already)
    if recorded:
        problem = replace(problem, information=_information(problem, recorded))
    rng = np.random.default_rng(seed)
    beginnings = [_random_start(problem, rng) for _ in range(max(1, starts))]
    # Matrices of this size gain nothing from BLAS threads, and lose much where other work wants the processors.
    with one_blas_thread():
        found, interrupted = _all_starts(problem, beginnings, rounds, workers, progress)
    best = min(found, key=lambda one: one.value)
    if not np.isfinite(best.value):
        if interrupted:
            raise OptionError("stopped before a trajectory that keeps the limits was found; let it run longer")
        raise _impossible(problem, best.x, len(found))
    violations = _fine_violations(problem, best.x)
    count = sum(one.evaluations for one in found)
    message = f"{'stopped early; ' if interrupted else ''}best of {len(found)} starts, {count} gradients"
    return Excitation(
        problem.trajectory(best.x), chosen.name, best.value, _figures(problem, best.x), violations, best.history,
        _worst(violations) <= 0, interrupted, message, notes, count,
    )  # fmt: skip
