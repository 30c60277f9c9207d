"""The search for parameters whose simulation gives what was measured: Gauss–Newton in a box that trusts the slope.

    min Σ_c w_c ‖y_c − ŷ_c(beta)‖²,    w_c = 1/variance of channel c, from its own residuals

A trial that runs away is refused and the box made smaller; where the first guess runs away, the search begins with the
stretch before that and goes on from there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..fit import Progress
from ..model import LinearModel
from .parametrisation import Parametrisation, base_sizes
from .pieces import Piece, Trace
from .runs import Runs, side_by_side
from .sensitivities import STEP, Point, Projected, Slope, factor_of, project, signals_of, slope_of
from .steps import TRUSTED_SHARE
from .trust_region import box_step

Array = NDArray[np.float64]

# The box may grow to this many times what counts as large, and begins at this.
_WIDEST, _FIRST = 64.0, 0.5
_REFUSED = 0.25  # a box this much smaller after a step that made things worse
_NARROWEST = 1e-9
# Below this share of the signal's own size residuals are rounding of the integrator.
_ROUNDING = 1e-9
_A_GOOD_START = 0.3  # of what is to be explained, left by the first guess
_HIDDEN = 1e-4  # of the squares that are left
_GAIN_SIZE = 0.5  # of the logarithm of a gain
_SHORTEST = 20  # rows
_LOST = "; {} of {} steps led to parameters that no robot can be simulated with: seek among bodies that can exist (PC-)"


@dataclass(frozen=True, eq=False)
class State:
    """A point of the search with what it simulates."""

    x: Array
    point: Point
    traces: list[Trace]
    residuals: list[Array]  # (rows, m) of each piece, as far as the horizon

    def cost(self, weights: Array) -> float:
        return float(sum(np.sum(weights * e**2) for e in self.residuals))


@dataclass(frozen=True, eq=False)
class Found:
    """Where a search ended."""

    state: State
    weights: Array  # (m,)
    slopes: list[Slope]
    rows: list[int]
    converged: bool
    message: str
    iterations: int


def variances(residuals: Sequence[Array], measured: Sequence[Array]) -> Array:
    """Residual variance a channel, no smaller than rounding."""
    rows = sum(len(e) for e in residuals)
    size = sum(np.sum(y**2, axis=0) for y in measured) / max(1, sum(len(y) for y in measured))
    floor = np.maximum(_ROUNDING**2 * size, np.finfo(float).tiny)
    return np.asarray(np.maximum(sum(np.sum(e**2, axis=0) for e in residuals) / max(1, rows), floor))


def to_explain(piece: Piece, signals: Sequence[str], rows: int) -> Array:
    """What residuals are compared with: what the controller had to correct, or what a torque is."""
    measured, parts = piece.measured, []
    for name in signals:
        value = measured.qdd if name == "qdd" else getattr(measured, name)
        value = np.asarray(measured.more["qdd_m"] if value is None else value)
        wanted = measured.more.get(f"{name}_d")
        parts.append((value - wanted if wanted is not None and wanted.shape == value.shape else value)[:rows])
    return np.concatenate(parts, axis=1)


@dataclass(eq=False)
class Search:
    """A search over pieces; `measured` (T, m) are the channels of each piece."""

    model: LinearModel
    runs: Runs
    shape: Parametrisation
    names: tuple[str, ...]
    measured: list[Array]
    deviation: Array  # of all parameters: what counts as large
    seek_gains: bool
    tolerance: float
    repeats: int
    progress: Progress
    second: Callable[[], Array] | None = None  # another first guess than the parametrisation's own

    def __post_init__(self) -> None:
        gains = self.runs.pieces[0].gains
        self.gain_moves = (
            [(i, j) for i in range(3) for j in range(gains.shape[1]) if gains[i, j] > 0]
            if self.seek_gains and gains is not None
            else []
        )
        size = base_sizes(self.model, self.deviation)
        directions = np.eye(len(self.model.names))[self.model.base.kept]
        self.moves = [(direction, STEP * h) for direction, h in zip(directions, size, strict=True)]

    @property
    def pieces(self) -> Sequence[Piece]:
        return self.runs.pieces

    def first(self) -> tuple[State, list[int]]:
        """The first guess, if it is a good one; else of two the one that can be simulated farthest, or fits best."""
        best: tuple[State, list[int]] | None = None
        merit = (-1, 0.0)
        for guess in (lambda: self.shape.first, self.second):
            if guess is None:
                break
            state, rows = self._begun(guess())
            found = sum(rows), -float(np.sum(np.log(variances(state.residuals, self.measured))))
            if found > merit:
                best, merit = (state, rows), found
            if found[0] == sum(len(y) for y in self.measured) and self._explains(state):
                break
        assert best is not None
        state, rows = best
        if max(rows) < min(_SHORTEST, *(len(y) for y in self.measured)):
            raise DataError(
                "the simulation with the model's own parameters runs away at once; is the controller right, and the "
                "sign and unit of the torque? Else start from a better model"
            )
        return state, rows

    def _explains(self, state: State) -> bool:
        """Whether a state leaves little in every channel of what the controller had to correct."""
        for piece, e in zip(self.pieces, state.residuals, strict=True):
            size = np.sqrt(np.mean(to_explain(piece, self.names, len(e)) ** 2, axis=0))
            if (np.sqrt(np.mean(e**2, axis=0)) > _A_GOOD_START * size).any():
                return False
        return True

    def _begun(self, x: Array) -> tuple[State, list[int]]:
        gains = self.pieces[0].gains
        starts = tuple(piece.start for piece in self.pieces)
        point = Point(self.shape.theta(x), gains if self.seek_gains else None, starts)
        traces = self.runs.traces(point.theta, starts, point.gains)
        everything = [len(y) for y in self.measured]
        rows = self._reachable(self._state(x, point, traces, everything))
        return self._state(x, point, traces, rows), rows

    def _state(self, x: Array, point: Point, traces: list[Trace], rows: list[int]) -> State:
        residuals = [
            y[:k] - signals_of(trace, self.names)[:k] for y, trace, k in zip(self.measured, traces, rows, strict=True)
        ]
        return State(x, point, traces, residuals)

    def slopes(self, state: State, rows: list[int]) -> list[Slope]:
        step = np.full((3, self.model.robot.n), 1e-6)
        tasks = [
            partial(slope_of, piece, trace, k, state.point, start, self.names, self.moves, self.gain_moves, step)
            for piece, trace, start, k in zip(self.pieces, state.traces, state.point.starts, rows, strict=True)
        ]
        found = side_by_side(tasks)
        self.runs.count += max(slope.simulations for slope in found)
        return found

    def _to_x(self, state: State, R: Array) -> Array:
        """From slopes along beta and gains to slopes along what is searched."""
        r = self.model.rank
        return np.concatenate([R[:, :r] @ self.shape.jacobian(state.x), R[:, r:]], axis=1)

    def _trial(self, state: State, d: Array, parts: list[Projected], rows: list[int]) -> State | None:
        """The state after a step, or nothing where that cannot be simulated."""
        count = len(state.x)
        x = np.clip(state.x + d[:count], *self.shape.bounds)
        theta, gains = self.shape.theta(x), state.point.gains
        if not np.isfinite(theta).all():
            return None
        if gains is not None:
            gains = gains.copy()
            for (i, j), change in zip(self.gain_moves, d[count:], strict=True):
                gains[i, j] *= np.exp(change)
        along = np.concatenate([self.shape.jacobian(state.x) @ d[:count], d[count:]])
        starts = tuple(
            start
            if start is None or part.back is None
            else start + (part.back[0] - part.back[1] @ along).reshape(start.shape)
            for start, part in zip(state.point.starts, parts, strict=True)
        )
        point = Point(theta, gains, starts)
        traces = self.runs.traces(theta, starts, gains)
        if any(trace.reached < k for trace, k in zip(traces, rows, strict=True)):
            return None
        after = self._state(x, point, traces, rows)
        return after if all(np.isfinite(e).all() for e in after.residuals) else None

    def _reachable(self, state: State) -> list[int]:
        """How many rows of each piece a state's simulations can be trusted for."""
        return [
            len(y) if trace.reached >= len(y) else int(TRUSTED_SHARE * trace.reached)
            for trace, y in zip(state.traces, self.measured, strict=True)
        ]

    def run(self) -> Found:
        """Search on the stretch that can be simulated, halved where it leads nowhere; lengthen it as far as it goes."""
        state, rows = self.first()
        lengths = [len(y) for y in self.measured]
        cut = rows != lengths
        done, width, shortest = 0, _FIRST, min(_SHORTEST, *lengths)
        while True:
            found, width = self._on(state, rows, done, width)
            done = found.iterations
            if (found.converged and rows == lengths) or done >= self.repeats:
                break
            if found.converged:
                longer = [
                    max(k, min(2 * k, reach)) for k, reach in zip(rows, self._reachable(found.state), strict=True)
                ]
                if longer == rows:
                    break
                rows, state = longer, found.state
            elif max(rows) > shortest:
                # Far from the truth a long simulation has forgotten where it came from.
                rows, cut = [max(min(shortest, k), k // 2) for k in rows], True
            else:
                break
            width = _FIRST
            state = self._state(state.x, state.point, state.traces, rows)
        if rows == lengths:
            return found if not cut else replace(found, message=f"{found.message} (by way of shorter stretches)")
        told = (
            f"only {sum(rows)} of {sum(lengths)} samples were fitted: beyond them the simulation ran away, or had "
            "forgotten where it came from"
        )
        return replace(found, converged=False, message=f"{found.message}; {told}")

    def _on(self, state: State, rows: list[int], done: int, width: float) -> tuple[Found, float]:
        size = np.concatenate([self.shape.size, np.full(len(self.gain_moves), _GAIN_SIZE)])
        converged, message, tried, lost = False, "no step made the fit better", 0, 0
        weights = 1.0 / variances(state.residuals, self.measured)
        while True:
            slopes = self.slopes(state, rows)
            parts = [project(s, e, weights) for s, e in zip(slopes, state.residuals, strict=True)]
            R, c = factor_of(parts)
            A = self._to_x(state, R)
            # What a step of a size that counts as large promises: one in a narrow box promises little anywhere.
            promised = self._promised(A, c, size, state)
            small = promised <= self._enough(state, weights)
            accepted = None
            while done < self.repeats:
                done += 1
                self.progress("simulating with other parameters", done / self.repeats)
                d = box_step(A, c, size, *self._box(state, width * size))
                predicted = float(c @ c - np.sum((c - A @ d) ** 2))
                trial = self._trial(state, d, parts, rows)
                tried += 1
                lost += trial is None
                gain = -np.inf if trial is None else state.cost(weights) - trial.cost(weights)
                # Starts of pieces move as well, which the prediction of shared steps does not count.
                if trial is not None and (gain > 1e-4 * predicted or gain > 0):
                    if gain > 0.7 * predicted:
                        width = min(2.0 * width, _WIDEST)
                    elif gain < 0.25 * predicted:
                        width *= 0.5
                    accepted = trial
                    break
                if predicted <= self._enough(state, weights):
                    break
                width *= _REFUSED
                if width < _NARROWEST:
                    break
            if accepted is None:
                # Friction and torque limits leave edges that no slope shows; what they hide is told by what is left.
                converged = small or promised <= _HIDDEN * state.cost(weights)
                message = "solved" if converged else message
                if done >= self.repeats and not converged:
                    message = f"the search had not come to rest after {done} steps; raise repeats"
                if not converged and 2 * lost > tried:
                    message += _LOST.format(lost, tried)
                return Found(state, weights, slopes, rows, converged, message, done), width
            state = accepted
            before, weights = weights, 1.0 / variances(state.residuals, self.measured)
            at_rest = bool(np.abs(np.log(before / weights)).max() < 0.02)
            if small and at_rest:
                return Found(state, weights, slopes, rows, True, "solved", done), width
            if done >= self.repeats:
                message = f"the search had not come to rest after {done} steps; raise repeats"
                message += _LOST.format(lost, tried) if 2 * lost > tried else ""
                return Found(state, weights, slopes, rows, False, message, done), width

    def _box(self, state: State, widths: Array) -> tuple[Array, Array]:
        """How far each number may go, down and up, within a width and its bounds."""
        lower, upper = self.shape.bounds
        free = np.full(len(self.gain_moves), np.inf)
        low = np.maximum(-widths, np.concatenate([lower - state.x, -free]))
        high = np.minimum(widths, np.concatenate([upper - state.x, free]))
        return np.minimum(low, 0.0), np.maximum(high, 0.0)

    def _promised(self, A: Array, c: Array, size: Array, state: State) -> float:
        """By how much the linear model says that the best step of a size makes the cost less."""
        d = box_step(A, c, size, *self._box(state, size))
        return float(c @ c - np.sum((c - A @ d) ** 2))

    def _enough(self, state: State, weights: Array) -> float:
        """What a step may promise to be left undone: a small part of a standard deviation in every number."""
        return self.tolerance**2 * len(state.x) + 1e-12 * state.cost(weights)
