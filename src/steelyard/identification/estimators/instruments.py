"""Instrumental variables: least squares that noise in the regressor does not bias."""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...data.recording import Recording
from ...errors import OptionError
from ..closed_loop.differences import answered, differenced, left_on_average
from ..closed_loop.loops import Loop, UnknownLoop, has_reference, is_known, measured_of
from ..closed_loop.physical_form import physical_step, possible_parameters
from ..closed_loop.pieces import ClosedPiece, Trace, acting, closed_pieces, recording_of, refuse_terms
from ..closed_loop.runs import Runs, simulated_problem, whole
from ..closed_loop.steps import ALL, PART, POSSIBLE, first_simulation, has_settled, horizon, simulated_step
from ..fit import Fit, Progress, rank_message, silent
from ..model import Experiment, Rows
from ..noise import fit_noise
from ..problem import Problem
from ..solving import Solution, solve

Array = NDArray[np.float64]

# So much of a recording fades in and out, at each end.
_FADE_SHARE = 0.05
_OF_POSSIBLE = "no robot moves like this answer: its instruments are the motion of the nearest bodies that can exist"


def _is_aligned(rows: Recording, measured: Recording) -> bool:
    """Whether preprocessing has brought torque and motion together already."""
    steps = rows.about.get("preprocessing", ())
    moved = len(rows) != len(measured) or not np.array_equal(rows.tau, measured.tau)
    return moved or any(str(step.get("step", "")).startswith("Align") for step in steps)


def _faded(use: NDArray[np.bool_]) -> Array:
    """A window (T, n) that rises from zero at every end of the rows that count.

    Noise that was differentiated cancels over neighbouring rows but not at an end, where it would outweigh all else.
    """
    T = len(use)
    length = max(2.0, _FADE_SHARE * T)
    padded = np.zeros((T + 2, use.shape[1]), dtype=bool)
    padded[1:-1] = use
    row = np.arange(T + 2)[:, None]
    before = np.maximum.accumulate(np.where(padded, -1, row), axis=0)
    after = np.minimum.accumulate(np.where(padded, T + 2, row)[::-1], axis=0)[::-1]
    away = np.minimum(row - before, after - row)[1:-1]
    return np.asarray(np.sin(0.5 * np.pi * np.clip(away / length, 0.0, 1.0)) ** 2)


@dataclass(frozen=True, eq=False)
class _Instrumented:
    """Rows of one experiment with their instruments, a row of both counting or not."""

    rows: Rows
    Z: Array  # (T, n, r), faded, zero where a row does not count


def _together(blocks: list[Rows]) -> Rows:
    return Rows(*(np.concatenate([getattr(block, name) for block in blocks]) for name in ("W", "tau", "use")))


def _instrumented(problem: Problem, simulated: Problem) -> list[_Instrumented]:
    out = []
    for a, z in zip(problem.experiments, simulated.experiments, strict=True):
        rows, instruments = (
            _together(list(replace(p, experiments=(x,), _kept={}).blocks())) for p, x in ((problem, a), (simulated, z))
        )
        use = rows.use & instruments.use
        out.append(_Instrumented(Rows(rows.W, rows.tau, use), instruments.W * _faded(use)[:, :, None]))
    return out


def _moments(parts: list[_Instrumented], weights: Array) -> tuple[Array, Array]:
    """Σ_j w_j Z_jᵀ W_j and Σ_j w_j Z_jᵀ tau_j."""
    ZW = sum(weights[j] * (part.Z[:, j].T @ part.rows.W[:, j]) for part in parts for j in range(len(weights)))
    Ztau = sum(weights[j] * (part.Z[:, j].T @ part.rows.tau[:, j]) for part in parts for j in range(len(weights)))
    return np.asarray(ZW), np.asarray(Ztau)


def _variances(parts: list[_Instrumented], beta: Array) -> Array:
    """Residual variance a joint, over the rows that count."""
    n, rank = parts[0].rows.tau.shape[1], len(beta)
    squares, counts, size = (np.zeros(n) for _ in range(3))
    for part in parts:
        use = part.rows.use
        squares += np.sum(np.where(use, part.rows.tau - part.rows.W @ beta, 0.0) ** 2, axis=0)
        size += np.sum(np.where(use, part.rows.tau, 0.0) ** 2, axis=0)
        counts += use.sum(axis=0)
    # Exact data would otherwise be weighted by rounding.
    floor = 1e-26 * np.maximum(size, size.max(initial=0.0)) + np.finfo(float).tiny
    return np.asarray(np.maximum(squares, floor) / np.maximum(counts - rank / n, 1.0))


def _covariance(problem: Problem, parts: list[_Instrumented], solution: Solution, weights: Array) -> Array:
    """P (Σ_j w_j² Z_jᵀ Σ_j Z_j) Pᵀ, P = (Σ w Zᵀ W)⁻¹ over what is seen, Σ_j by an autoregression of the residuals."""
    rank, n, beta = problem.rank, problem.robot.n, solution.beta
    left = solution.root.T @ _moments(parts, weights)[0] @ solution.root
    P = solution.root @ np.linalg.pinv(left) @ solution.root.T
    meat = np.zeros((rank, rank))
    for j, columns in enumerate(problem.model.active):
        residuals = [part.rows.tau[:, j] - part.rows.W[:, j] @ beta for part in parts]
        noise = fit_noise(residuals, [part.rows.use[:, j] for part in parts], rank / n)
        for part in parts:
            half = noise.coloured(part.Z[:, j][:, columns])
            meat[np.ix_(columns, columns)] += weights[j] ** 2 * (half.T @ half)
    covariance: Array = P @ meat @ P.T
    return covariance


def _on_times(t: Array, x: Array, times: Array) -> Array:
    if len(t) == len(times) and np.array_equal(t, times):
        return x
    return np.stack([np.interp(times, t, x[:, j]) for j in range(x.shape[1])], axis=1)


@dataclass(frozen=True)
class IV:
    """beta = (Σ_j w_j Z_jᵀ W_j)⁻¹ Σ_j w_j Z_jᵀ tau_j, Z = W(q_s, q̇_s, q̈_s) of the loop simulated with the last beta.

    Simulated states share the motion of the robot but not the noise of its sensors, which least squares takes for
    motion; so no filter has to be made to measure. The weights are those of the torque residuals, for instruments as
    for rows. Janot, Vandanjon, Gautier, "A generic instrumental variable approach for industrial robot identification",
    IEEE TCST 2014. `states` "measured" differentiates the positions as they are, "prepared" takes what preprocessing
    made. `instruments` "reference" uses the desired motion, which needs no controller; "auto" does so where the loop is
    not known.
    """

    loop: Loop = field(default_factory=Loop)
    states: Literal["prepared", "measured"] = "prepared"
    instruments: Literal["auto", "loop", "reference"] = "auto"
    physical: bool = False
    tolerance: float = 1e-3  # of a step, in standard deviations of white noise
    repeats: int = 20

    def __post_init__(self) -> None:
        if self.states not in ("prepared", "measured"):
            raise OptionError(f"IV knows no states '{self.states}'; valid: prepared, measured")
        if self.instruments not in ("auto", "loop", "reference"):
            raise OptionError(f"IV knows no instruments '{self.instruments}'; valid: auto, loop, reference")
        if not (self.tolerance > 0 and self.repeats >= 1):
            raise OptionError(f"IV: tolerance {self.tolerance} and repeats {self.repeats} must both be above zero")

    @property
    def name(self) -> str:
        return "PC-IV" if self.physical else "IV"

    def fit(self, problem: Problem, progress: Progress = silent) -> Fit:
        measured = [recording_of(experiment) for experiment in problem.experiments]
        if self.states == "measured":
            ready = [
                Experiment(differenced(recording), experiment.load, recording)
                for recording, experiment in zip(measured, problem.experiments, strict=True)
            ]
            problem = replace(problem, experiments=tuple(ready), _kept={})
        known = all(is_known(recording, self.loop) for recording in measured)
        if self.instruments == "reference" or (self.instruments == "auto" and not known):
            return self._by_reference(problem, measured)
        return self._by_loop(problem, progress)

    def _by_reference(self, problem: Problem, measured: list[Recording]) -> Fit:
        """One step with the desired motion as instrument."""
        recordings, traces = [], []
        for recording, experiment in zip(measured, problem.experiments, strict=True):
            if not has_reference(recording) or any(name not in recording.more for name in ("qd_d", "qdd_d")):
                raise UnknownLoop(
                    f"{measured_of(recording)} holds neither its loop (controller and q_d) nor the whole desired "
                    "motion (q_d, qd_d, qdd_d), so there is nothing to make instruments of; record q_d and give the "
                    "controller (--loop FILE), or use WLS"
                )
            rows = experiment.recording
            assert isinstance(rows, Recording)
            wanted = [_on_times(recording.t, recording.more[name], rows.t) for name in ("q_d", "qd_d", "qdd_d")]
            recordings.append(rows)
            traces.append(Trace.of(np.stack([*wanted, rows.tau]), len(rows)))
        Z = simulated_problem(problem, recordings, traces)
        parts = _instrumented(problem, Z)
        solution, theta = self._solved(problem, Z, parts, np.ones(problem.robot.n))
        for _ in range(2):
            weights = 1.0 / _variances(parts, solution.beta)
            solution, theta = self._solved(problem, Z, parts, weights)
        message = "; ".join(
            part for part in ("solved with the desired motion as instrument", rank_message(Z, solution)) if part
        )
        return self._fit(problem, parts, solution, weights, theta, (True, message, 1), {"instruments": "reference"})

    def _by_loop(self, problem: Problem, progress: Progress) -> Fit:
        refuse_terms(problem.model, self.name)
        pieces: list[ClosedPiece] = []
        recordings, experiments, held = [], [], []
        for piece, experiment in zip(
            closed_pieces(problem.model, problem.experiments, self.loop), problem.experiments, strict=True
        ):
            rows = experiment.recording
            assert isinstance(rows, Recording)
            held.append(None if _is_aligned(rows, piece.measured) else piece.loop.control_hz)
            recordings.append(rows if held[-1] is None else answered(rows, held[-1]))
            experiments.append(Experiment(recordings[-1], experiment.load, piece.measured))
            pieces.append(replace(piece, times=rows.t - piece.measured.t[0]))
        problem = replace(problem, experiments=tuple(experiments), _kept={})
        runs = Runs(pieces)
        theta, traces, begun = first_simulation(problem, runs)
        Z = simulated_problem(problem, recordings, traces)
        parts = _instrumented(self._unbiased(problem, held, theta, traces), Z)
        weights = 1.0 / _variances(parts, self._solved(problem, Z, parts, np.ones(problem.robot.n))[0].beta)
        settled, done, how, beta, last = False, 0, ALL, problem.nominal, np.inf
        for done in range(1, self.repeats + 1):
            progress("simulating the instruments again", done / self.repeats)
            solution, wanted = self._solved(problem, Z, parts, weights)
            towards = partial(self._possible, problem, Z, parts, weights)
            A, y = Z.stacked(weights)
            before = problem.model.base.reduce(theta) if how != POSSIBLE else beta
            beta, step = solution.beta, float(np.linalg.norm(A @ (solution.beta - before)))
            theta, traces, how = simulated_step(runs, theta, traces, wanted, towards)
            Z = simulated_problem(problem, recordings, traces)
            parts = _instrumented(self._unbiased(problem, held, theta, traces), Z)
            weights = 1.0 / _variances(parts, solution.beta)
            small = has_settled(step, last, problem.rank, self.tolerance) or step <= 1e-9 * float(np.linalg.norm(y))
            last = step
            if how != PART and whole(traces) and small:
                settled = True
                break
        # Any motion near the robot's makes instruments; the answer is theirs, whether a robot can have it or not.
        beta, theta = (beta, wanted) if how == POSSIBLE else (problem.model.base.reduce(theta), theta)
        told = "solved" if settled else f"instruments had not come to rest after {done} simulations; raise repeats"
        other = _OF_POSSIBLE if how == POSSIBLE else ""
        message = "; ".join(part for part in (told, other, begun, horizon(traces), rank_message(Z, solution)) if part)
        final = Solution(beta, solution.root, solution.blind)
        about = {"instruments": "loop", "simulations": runs.count}
        return self._fit(problem, parts, final, weights, theta, (settled, message, done), about)

    def _unbiased(self, problem: Problem, held: list[float | None], theta: Array, traces: list[Trace]) -> Problem:
        """The same rows, from whose torques is taken what differences of noisy samples leave on average."""
        if self.states != "measured":
            return problem  # what preprocessing has made leaves too little to count
        experiments = []
        for experiment, control_hz, trace in zip(problem.experiments, held, traces, strict=True):
            rows = experiment.recording
            assert isinstance(rows, Recording)
            robot = problem.robot.with_parameters(acting(problem.model, theta, experiment.load))
            tau = rows.tau - left_on_average(robot, rows, trace, control_hz)
            experiments.append(replace(experiment, recording=replace(rows, tau=tau)))
        return replace(problem, experiments=tuple(experiments), _kept={})

    def _equations(
        self, problem: Problem, Z: Problem, parts: list[_Instrumented], weights: Array
    ) -> tuple[Solution, Array, Array]:
        """What the instruments see, and (L, r) with L beta = r, in coordinates where Zᵀ of white rows is white."""
        A, y = Z.stacked(weights)
        seen = solve(A, y, problem.nominal)
        ZW, Ztau = _moments(parts, weights)
        return seen, seen.root.T @ ZW, seen.root.T @ Ztau

    def _possible(self, problem: Problem, Z: Problem, parts: list[_Instrumented], weights: Array) -> Array | None:
        _, left, right = self._equations(problem, Z, parts, weights)
        return possible_parameters(problem, left, right)

    def _solved(
        self, problem: Problem, Z: Problem, parts: list[_Instrumented], weights: Array
    ) -> tuple[Solution, Array]:
        """One step: among what the instruments see, the root of Σ w Zᵀ(tau − W beta) = 0; else where the model is."""
        seen, left, right = self._equations(problem, Z, parts, weights)
        if self.physical:
            beta, theta, _ = physical_step(problem, left, right, self.name)
        else:
            rest = right - left @ problem.nominal
            beta = problem.nominal + seen.root @ np.linalg.lstsq(left @ seen.root, rest, rcond=None)[0]
            theta = problem.model.base.expand(beta, problem.model.nominal)
        return Solution(beta, seen.root, seen.blind), theta

    def _fit(
        self,
        problem: Problem,
        parts: list[_Instrumented],
        solution: Solution,
        weights: Array,
        theta: Array,
        outcome: tuple[bool, str, int],
        about: dict[str, object],
    ) -> Fit:
        converged, message, done = outcome
        return Fit(
            solution,
            weights,
            converged,
            message,
            done,
            parameters=theta,
            covariance=_covariance(problem, parts, solution, weights),
            about=about,
            problem=problem,
        )
