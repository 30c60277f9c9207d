"""Maximum likelihood where torque is not linear in all that is sought: shapes x beside linear parameters beta.

    −2 log L(x) = Σ_j T_j log(σ_j²(x)/K_j²),    σ_j²(x) = min over beta of the mean of (K_j tau_j − W_j(x) beta)²

K is 1 but where drive gains are sought. beta is solved for at every x; steps in x are Levenberg–Marquardt's on the
columns [W(x), ∂(W beta)/∂x]. Golub and Pereyra, Separable nonlinear least squares, Inverse Problems 19, 2003.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..data.recording import Recording
from ..errors import DataError
from ..robot.robot import Robot
from .conclude import estimate
from .estimate import Estimate, ShapeValue
from .estimators.least_squares import WLS, weighted
from .fit import Fit, Progress, rank_message
from .model import Experiment, LinearModel, sliced_torque
from .problem import Problem
from .readings import torque_rate
from .shapes import Shape, recordings_of, terms_of
from .solving import BLIND, Solution, solve
from .terms import Term

Array = NDArray[np.float64]
_CHANNEL = "slopes"
_STEP = 1e-5  # of finite differences, of a logarithm or of a value beside its limits
_FARTHEST = 1.0  # that a logarithm moves in one step
# −2 log L may still fall by this much, some hundredths of a standard deviation squared, when the search is at rest.
_AT_REST = 1e-3
_STIFFEST = 1e10
_AT_LIMIT = 1e-6


@dataclass(frozen=True)
class _Slopes:
    """∂(W beta)/∂x, from a channel; its parameters are the step in x."""

    labels: tuple[str, ...]

    def names(self, robot: Robot) -> tuple[str, ...]:
        return tuple(f"step of {label}" for label in self.labels)

    def units(self, robot: Robot) -> tuple[str, ...]:
        return ("1",) * len(self.labels)

    def nominal(self, robot: Robot) -> Array:
        return np.zeros(len(self.labels))

    def columns(self, robot: Robot, block: Recording) -> Array:
        k = len(self.labels)
        return np.asarray(block.more.get(_CHANNEL, np.ones((len(block), robot.n, k)))).reshape(len(block), robot.n, k)


@dataclass(frozen=True, eq=False)
class _Space:
    """All shapes as one vector of coordinates within limits."""

    shapes: tuple[Shape, ...]
    counts: tuple[int, ...]
    low: Array
    high: Array
    others: tuple[Term, ...]  # of the problem

    def split(self, x: Array) -> dict[str, Array]:
        """Values by the words of their shapes."""
        parts = np.split(x, np.cumsum(self.counts)[:-1])
        return {s.word: np.exp(part) if s.logarithmic else part for s, part in zip(self.shapes, parts, strict=True)}

    def joined(self, values: Sequence[Array]) -> Array:
        return np.concatenate([np.log(v) if s.logarithmic else v for s, v in zip(self.shapes, values, strict=True)])

    def terms(self, x: Array, parameters: Array) -> tuple[Term, ...]:
        return (*self.others, *terms_of(self.shapes, self.split(x), parameters))

    @property
    def steps(self) -> Array:
        """Of finite differences."""
        logs = np.repeat([s.logarithmic for s in self.shapes], self.counts)
        return np.where(logs, _STEP, _STEP * (self.high - self.low))


def _space(problem: Problem, shapes: tuple[Shape, ...]) -> _Space:
    for shape in shapes:
        shape.check(problem)
    own = {name for shape in shapes for name in ("stribeck", "bristle_coulomb") if name.startswith(shape.word[:7])}
    clash = [n for term in problem.model.terms for n in term.names(problem.robot) if n.rpartition(".")[2] in own]
    if clash:
        raise DataError(f"the term of {clash[0]} is given and its shape is sought too; leave one out")
    counts = tuple(len(shape.names(problem.robot)) for shape in shapes)
    low, high = (np.concatenate([s.limits(problem)[k] for s in shapes]) for k in (0, 1))
    logs = np.repeat([s.logarithmic for s in shapes], counts)
    with np.errstate(divide="ignore"):
        low, high = np.where(logs, np.log(np.abs(low)), low), np.where(logs, np.log(np.abs(high)), high)
    return _Space(shapes, counts, low, high, problem.model.terms)


@dataclass(frozen=True, eq=False)
class _State:
    """The best beta at an x, and how unlikely the data are there."""

    x: Array
    problem: Problem
    solution: Solution
    weights: Array
    surprise: float  # −2 log L
    parts: Array  # of it, a joint
    parameters: Array  # of the robot, that shapes were given

    @property
    def theta(self) -> Array:
        model: LinearModel = self.problem.model
        return model.base.expand(self.solution.beta, model.nominal)


def _at(problem: Problem, space: _Space, x: Array, parameters: Array | None = None) -> _State:
    """The state at x; the robot's parameters, as they were before, are for shapes that lean on them."""
    robot = problem.robot
    parameters = robot.parameters if parameters is None else parameters[: robot.layout.size]
    here = problem.with_terms(space.terms(x, parameters))
    solution, weights, _, _ = weighted(here, 20, 1e-6)
    rows = here.factors.rows.astype(float)
    parts = -rows * np.log(weights * here.model.gains**2)
    return _State(x, here, solution, weights, float(parts.sum()), parts, parameters)


def _begun(problem: Problem, space: _Space, progress: Progress) -> _State:
    """The most likely of the shapes' starts, joint by joint where a shape acts on its joint alone."""
    starts = [shape.starts(problem) for shape in space.shapes]
    chosen = [of_shape[0] for of_shape in starts]
    best = None
    for k, (shape, of_shape) in enumerate(zip(space.shapes, starts, strict=True)):
        if len(of_shape) == 1:
            continue
        progress("looking where to begin", 0.1)
        tried = [_at(problem, space, space.joined([*chosen[:k], v, *chosen[k + 1 :]])) for v in of_shape]
        pick = np.argmin([one.parts for one in tried], axis=0) if shape.apart else None
        if pick is None:
            chosen[k] = of_shape[int(np.argmin([one.surprise for one in tried]))]
        else:
            chosen[k] = np.array([of_shape[p][j] for j, p in enumerate(pick)])
        best = min((b for b in (best, *tried) if b is not None), key=lambda b: b.surprise)
    mixed = _at(problem, space, np.clip(space.joined(chosen), space.low, space.high))
    return mixed if best is None or mixed.surprise <= best.surprise else best


def _slopes(space: _Space, state: _State, one: Experiment) -> Array:
    """∂(W beta − K tau)/∂x of an experiment, (T, n, x), tau taken as the model has it."""
    recording, theta = one.recording, state.theta
    assert isinstance(recording, Recording)
    model, gains = state.problem.model, state.problem.model.gains
    here = sliced_torque(model, theta, recording, one.load) * gains
    n, steps = model.robot.n, space.steps
    out = np.zeros((*here.shape, len(state.x)))
    first = 0
    for shape, count in zip(space.shapes, space.counts, strict=True):
        if shape.word == "drive_gain":
            # By the logarithm of a gain; the recorded signal itself would bring its noise into the column.
            out[:, np.arange(n), np.arange(first, first + n)] = -here
        elif shape.word == "delay":
            out[:, :, first] = -torque_rate(model.prepared(recording), here)
        else:
            picks = [np.arange(first, first + count)] if shape.apart else np.arange(first, first + count)[:, None]
            for pick in picks:
                moved = state.x.copy()
                by = np.where(state.x[pick] + steps[pick] > space.high[pick], -1.0, 1.0) * steps[pick]
                moved[pick] += by
                beside = model.with_terms(space.terms(moved, state.parameters))
                change = sliced_torque(beside, theta, recording, one.load) * gains - here
                if shape.apart:
                    out[:, np.arange(n), pick] = change / by
                else:
                    out[:, :, pick[0]] = change / by
        first += count
    return out


def _linearised(space: _Space, state: _State) -> Problem:
    """The regression on beta and on steps of x, about a state."""
    labels = tuple(name for shape in space.shapes for name in shape.names(state.problem.robot))
    experiments = []
    for one in state.problem.experiments:
        assert isinstance(one.recording, Recording)
        flat = _slopes(space, state, one)
        experiments.append(replace(one, recording=replace(one.recording, more={**one.recording.more, _CHANNEL: flat})))
    problem = replace(state.problem, experiments=tuple(experiments))
    return problem.with_terms((*state.problem.model.terms, _Slopes(labels)))


def _places(both: Problem) -> NDArray[np.bool_]:
    """Which base parameters of a linearised problem are steps of x."""
    return np.array([both.model.names[k].startswith("step of ") for k in both.model.base.kept])


def _step(A: Array, y: Array, steps: NDArray[np.bool_], damping: float) -> Array:
    """The damped step in x, beta free."""
    lengths = np.linalg.norm(A, axis=0)
    scale = np.where(lengths > 0, lengths, 1.0)
    extra = np.sqrt(damping) * np.eye(len(scale))[steps]
    stacked = np.vstack([A / scale, extra])
    found = np.linalg.lstsq(stacked, np.concatenate([y, np.zeros(len(extra))]), rcond=BLIND)[0]
    return np.asarray(found / scale)[steps]


def search(problem: Problem, space: _Space, most: int, progress: Progress) -> tuple[_State, Problem, bool, int]:
    """The most likely x, the problem linearised there, and whether the search came to rest."""
    state, damping = _begun(problem, space, progress), 1e-3
    state = _at(problem, space, state.x, state.theta)
    for turn in range(1, most + 1):
        progress("maximum likelihood", min(0.95, turn / 25))
        both = _linearised(space, state)
        A, y = both.stacked(state.weights)
        steps = _places(both)
        before = float(y @ y)
        hope = before - float(np.sum((y - A @ solve(A, y, np.zeros(A.shape[1])).beta) ** 2))
        beta = A[:, ~steps] @ np.linalg.lstsq(A[:, ~steps], y, rcond=BLIND)[0]
        hope -= before - float(np.sum((y - beta) ** 2))
        taken = False
        while damping < _STIFFEST:
            move = np.clip(_step(A, y, steps, damping), -_FARTHEST, _FARTHEST)
            x = np.clip(state.x + move, space.low, space.high)
            if np.abs(x - state.x).max() == 0.0:
                break
            trial = _at(problem, space, x, state.theta)
            if trial.surprise <= state.surprise:
                gain, state, taken = state.surprise - trial.surprise, trial, True
                damping = max(damping / 10.0, 1e-9)
                break
            damping *= 10.0
        if not taken or gain < _AT_REST:
            # Nothing to be had: at rest where the linearised problem promised nothing, or where limits hold x.
            settled = taken or hope < 1.0 or damping < _STIFFEST
            return state, _linearised(space, state), settled, turn
    return state, _linearised(space, state), False, most


def _values(space: _Space, state: _State, both: Estimate) -> tuple[ShapeValue, ...]:
    robot, found = state.problem.robot, []
    first = next(k for k, name in enumerate(both.names) if name.startswith("step of "))
    k = 0
    for shape, values in zip(space.shapes, space.split(state.x).values(), strict=True):
        for name, unit, value in zip(shape.names(robot), shape.units(robot), values, strict=True):
            sure = float(both.deviation[first + k]) * (abs(float(value)) if shape.logarithmic else 1.0)
            reach = space.high[k] - space.low[k]
            at_limit = min(state.x[k] - space.low[k], space.high[k] - state.x[k]) < _AT_LIMIT * reach
            found.append(ShapeValue(name, float(value), sure, unit, bool(at_limit)))
            k += 1
    return tuple(found)


def fit_shapes(problem: Problem, shapes: tuple[Shape, ...], most: int, progress: Progress) -> Fit:
    """The most likely shapes and linear parameters, with the covariance that each has beside the other."""
    recordings_of(problem)
    known = {name: x for shape in shapes for name, x in shape.fixes(problem.robot).items()}
    if known.keys() - problem.model.fixed.keys():
        model = replace(problem.model, fixed={**known, **problem.model.fixed})
        problem = replace(problem, model=model, given=None, _kept={})
    space = _space(problem, shapes)
    state, linear, settled, turns = search(problem, space, most, progress)
    progress("how sure that is", 0.97)
    both = estimate(linear, WLS())
    steps = _places(linear)
    keep = np.flatnonzero(~steps)
    values = _values(space, state, both)
    whole = solve(*linear.stacked(state.weights), np.zeros(linear.rank))
    blind = whole.blind[keep]
    blind = blind[:, np.abs(blind).max(axis=0, initial=0.0) > 1e-9 * max(1.0, float(np.abs(blind).max(initial=0.0)))]
    told = "solved" if settled else f"steps had not come to rest after {turns}; raise repeats"
    limits = [v.name for v in values if v.at_limit]
    if limits:
        told += f"; at the end of its range: {', '.join(limits[:6])}"
    lost = rank_message(state.problem, state.solution)
    return Fit(
        Solution(state.solution.beta, whole.root[keep], blind),
        state.weights,
        settled,
        f"{told}; {lost}" if lost else told,
        turns,
        covariance=both.base_covariance[np.ix_(keep, keep)],
        problem=state.problem,
        shapes=values,
    )
