"""Recursive estimators on whole recordings: the same steps as on a stream, and what came of them as a `Fit`."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...data.recording import Recording
from ...dynamics import known_torque, regressor
from ...errors import DataError, OptionError
from ..fit import Fit, Progress, rank_message, silent
from ..problem import Problem
from ..solving import Solution, solve
from . import recursive
from .kalman import Array, Gaussian
from .particles import Cloud
from .prior import parameter_covariance
from .recursive import RecursiveState
from .settings import RLS, Filter
from .square_root import RootGaussian, triangle
from .stream import found_in
from .tracking import TORQUE_NOISE, Belief, Instant, JointTracking, ParameterTracking, per_joint, tracking, usual_torque

_ROWS = 512
# What moved by less than this in units of its own deviation over the last tenth of the rows has come to rest.
AT_REST = 2.0


def _blind(problem: Problem, noise: Array) -> tuple[Array, str]:
    """Directions that the data do not show, in which the prior stands, and the sentence about them."""
    solution = solve(*problem.stacked(noise**-2.0), problem.nominal)
    return solution.blind, rank_message(problem, solution)


def _told(problem: Problem, method: str, moved: float, lost: str) -> tuple[bool, str]:
    rest = moved < AT_REST
    told = "came to rest" if rest else f"still moved by {moved:.2g} deviations over the last tenth; record for longer"
    return rest, f"{method} {told}" + (f"; {lost}" if lost else "")


def _begin(settings: RLS, problem: Problem) -> RecursiveState:
    """What is believed before the first row; terms and loads may be anything of the order of one."""
    model, n = problem.model, problem.robot.n
    if settings.prior is not None:
        return recursive.start(problem.nominal, np.sqrt(settings.prior), n)
    own = problem.robot.layout.size
    covariance = np.diag((settings.relative * np.abs(model.nominal) + 1.0) ** 2)
    covariance[:own, :own] = parameter_covariance(problem.robot, settings.relative)
    B = model.base.projection
    return recursive.start_from(problem.nominal, B @ covariance @ B.T, n)


def _pass(
    settings: RLS, problem: Problem, state: RecursiveState, noise: Array, progress: Progress
) -> tuple[RecursiveState, Array]:
    """The state after all rows, and the estimate that stood before the last tenth of them."""
    total = max(1, int(problem.factors.rows.sum()))
    done, before = 0, state.estimate
    for block in problem.blocks():
        values = np.where(block.use, block.tau, np.nan)
        for k in range(0, len(values), _ROWS):
            cut = slice(k, k + _ROWS)
            if done < 0.9 * total:
                before = state.estimate
            state = recursive.update(state, block.W[cut], values[cut], noise, settings.forgetting, settings.directional)
            done += int(block.use[cut].sum())
            progress(settings.name, done / total)
    return state, before


def fit_rows(settings: RLS, problem: Problem, progress: Progress) -> Fit:
    """Recursive least squares over the rows of a problem; where the noise is not given a first pass finds it."""
    begin = _begin(settings, problem)
    noise = per_joint(settings.noise, TORQUE_NOISE * usual_torque(problem.robot), "noise")
    if settings.noise is None:
        first, _ = _pass(settings, problem, begin, noise, progress)
        noise = np.where(np.isfinite(first.noise), np.maximum(first.noise, 1e-9 * noise), noise)
    state, before = _pass(settings, problem, begin, noise, progress)
    moved = float(np.abs((state.estimate - before) / state.deviation).max())
    blind, lost = _blind(problem, noise)
    rest, message = _told(problem, settings.name, moved, lost)
    solution = Solution(state.estimate, state.scale[:, None] * state.root, blind)
    all_alike = settings.forgetting == 1.0
    return Fit(
        solution,
        noise**-2.0,
        rest,
        message,
        1 if settings.noise is not None else 2,
        prior=np.asarray(np.linalg.inv(begin.covariance)) if all_alike else None,
        covariance=None if all_alike else state.covariance,
        about={"noise": noise.tolist()},
    )


def _recordings(problem: Problem) -> Iterator[tuple[int, Recording]]:
    """Blocks of recordings with the number of the experiment that they are of."""
    for number, experiment in enumerate(problem.experiments):
        if experiment.load is not None:
            raise OptionError("filters on a state know no payload of a recording; take RLS, WLS, or another method")
        source = experiment.recording
        for block in [source] if isinstance(source, Recording) else source():
            yield number, block


def _check_model(problem: Problem, settings: Filter) -> None:
    model = problem.model
    for what, there in (("extra terms", model.terms), ("fixed parameters", model.fixed), ("loads", model.loads)):
        if there:
            raise OptionError(f"{settings.name} knows no {what}; take RLS, WLS, or another method on rows")


def _noise(problem: Problem, settings: Filter) -> Array:
    """What the torque misses the model by, a sample, after recursive least squares over the same samples."""
    robot, base = problem.robot, problem.model.base
    usual = TORQUE_NOISE * usual_torque(robot)
    if settings.torque_noise is not None:
        return per_joint(settings.torque_noise, usual, "torque_noise")
    state = _begin(RLS(), problem)
    if settings.on == "parameters":
        state, _ = _pass(RLS(), problem, state, usual, silent)
        return np.maximum(state.noise, 1e-6 * usual)
    for _, block in _recordings(problem):
        assert block.qd is not None
        assert block.qdd is not None
        for k in range(0, len(block), _ROWS):
            cut = slice(k, k + _ROWS)
            q, qd, qdd = block.q[cut], block.qd[cut], block.qdd[cut]
            tau = block.tau[cut] - known_torque(robot, q, qd, qdd)
            state = recursive.update(state, base.columns(regressor(robot, q, qd, qdd)), tau, usual)
    return np.maximum(state.noise, 1e-6 * usual)


def _anew(track: JointTracking, belief: Belief, rng: np.random.Generator) -> Belief:
    """What is known of the parameters, with a motion of which nothing is known yet."""
    lead = track.lead
    fresh = track.begin(rng)
    if isinstance(belief, Cloud) and isinstance(fresh, Cloud):
        particles = np.hstack([fresh.particles[:, :lead], belief.particles[:, lead:]])
        return belief._replace(particles=particles)
    mean = np.concatenate([np.zeros(lead), belief.mean[lead:]])
    if isinstance(belief, RootGaussian) and isinstance(fresh, RootGaussian):
        root = np.zeros_like(belief.root)
        root[:lead, :lead] = fresh.root[:lead, :lead]
        root[lead:, lead:] = triangle(belief.root[lead:])
        return RootGaussian(mean, root)
    P = belief.covariance.copy()
    P[:lead], P[:, :lead] = 0.0, 0.0
    P[:lead, :lead] = fresh.covariance[:lead, :lead]
    return Gaussian(mean, P)


class _Run:
    """A filter on its way over recordings."""

    def __init__(self, track: JointTracking, seed: int) -> None:
        self.track, self.rng = track, np.random.default_rng(seed)
        self.belief: Belief = track.begin(self.rng)
        self.number, self.t, self.age = -1, 0.0, 0.0
        self.tau = np.zeros(track.robot.n)

    def take(self, number: int, block: Recording, i: int) -> None:
        """One sample of a recording."""
        assert block.qd is not None
        assert block.qdd is not None
        t, tau = float(block.t[i]), block.tau[i]
        now = Instant(block.q[i], tau, block.qd[i], block.qdd[i])
        if number != self.number:
            belief = self.belief if self.number < 0 else _anew(self.track, self.belief, self.rng)
            self.belief = self.track.placed(belief, now)
            self.number, self.t, self.tau = number, t, tau
            return
        step = t - self.t
        drive = self.tau if self.track.settings.torque == "held" else 0.5 * (self.tau + tau)
        self.belief = self.track.advance(self.belief, now, drive, step, self.age)
        self.t, self.tau, self.age = t, tau, self.age + step


class _Way(NamedTuple):
    """Where a filter was before the last tenth of the samples, where it came to, and what stopped it."""

    before: Belief
    last: Belief
    done: int
    trouble: str


def _over_rows(track: ParameterTracking, problem: Problem, progress: Progress) -> _Way:
    """The filter over the rows of a problem, which a decimation may have made fewer and quieter."""
    belief = track.begin(np.random.default_rng(getattr(track.settings, "seed", 0)))
    rows = int(problem.factors.rows.max())
    step = sum(block.duration for _, block in _recordings(problem)) / max(1, rows)
    before, done = belief, 0
    for block in problem.blocks():
        values = np.where(block.use, block.tau, np.nan)
        for W, y in zip(block.W, values, strict=True):
            before = belief if done < 0.9 * rows else before
            try:
                belief = track.absorb(belief, W, y, step, done * step)
            except DataError as error:
                return _Way(before, belief, done, str(error))
            done += 1
            if done % 50 == 0:
                progress(track.settings.name, min(1.0, done / rows))
    return _Way(before, belief, done, "")


def _over_samples(track: JointTracking, problem: Problem, progress: Progress) -> _Way:
    """The filter over all samples of all recordings."""
    run = _Run(track, getattr(track.settings, "seed", 0))
    total = sum(len(block) for _, block in _recordings(problem))
    before, done = run.belief, 0
    for number, block in _recordings(problem):
        for i in range(len(block)):
            before = run.belief if done < 0.9 * total else before
            try:
                run.take(number, block, i)
            except DataError as error:
                return _Way(before, run.belief, done, str(error))
            done += 1
            if done % 50 == 0:
                progress(track.settings.name, done / total)
    return _Way(before, run.belief, done, "")


def fit_states(settings: Filter, problem: Problem, progress: Progress) -> Fit:
    """A filter over the rows of a problem, or over the samples of its recordings where it tracks the joints too."""
    _check_model(problem, settings)
    noise = _noise(problem, settings)
    track = tracking(problem.robot, replace(settings, torque_noise=tuple(noise)))
    over = _over_samples if isinstance(track, JointTracking) else _over_rows
    way = over(track, problem, progress)  # type: ignore[arg-type]
    now, before = found_in(track, way.last), found_in(track, way.before)
    beta, covariance = now.base_parameters, now.base_covariance
    moved = float(np.abs((beta - before.base_parameters) / now.base_deviation).max())
    blind, lost = _blind(problem, noise)
    rest, message = _told(problem, settings.name, moved, lost)
    if way.trouble:
        rest, message = False, f"{settings.name} stopped after {way.done} samples: {way.trouble}"
    values, vectors = np.linalg.eigh(covariance)
    return Fit(
        Solution(beta, vectors * np.sqrt(np.maximum(values, 0.0)), blind),
        noise**-2.0,
        rest,
        message,
        way.done,
        parameters=now.parameters,
        covariance=covariance,
        about={"torque_noise": noise.tolist(), "coordinates": settings.coordinates, "on": settings.on},
    )
