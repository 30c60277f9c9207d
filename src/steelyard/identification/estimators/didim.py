"""DIDIM: direct and inverse dynamic identification models, from torque alone."""

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...errors import OptionError
from ..closed_loop.loops import Loop
from ..closed_loop.physical_form import physical_step, possible_parameters
from ..closed_loop.pieces import closed_pieces, refuse_terms, with_better_start
from ..closed_loop.runs import Runs, simulated_problem, whole
from ..closed_loop.steps import ALL, PART, POSSIBLE, first_simulation, has_settled, horizon, simulated_step
from ..closed_loop.whiteness import loop_warning
from ..fit import Fit, Progress, joint_variances, rank_message, silent
from ..problem import Problem
from ..solving import Solution, solve

Array = NDArray[np.float64]

# Weights are at rest when variances change by less than this share.
_WEIGHTS_AT_REST = 0.02
# A step below this share of the torque is rounding.
_ROUNDING = 1e-9
_POSSIBLE = "no robot moves like the best answer, and this is the best of bodies that can exist"


@dataclass(frozen=True)
class DIDIM:
    """min ‖tau − tau_s(beta)‖² by Gauss–Newton with ∂tau_s/∂beta ≈ W(q_s, q̇_s, q̈_s), s: of the simulated loop.

    Positions are not measured but simulated, so that their noise is not in the regressor; the controller keeps them
    where the robot went, whatever the parameters. Gautier, Janot, Vandanjon, "A new closed-loop output error method
    for parameter identification of robot dynamics", IEEE TCST 2013. With `physical` every step goes to the best among
    parameters that bodies can have.
    """

    loop: Loop = field(default_factory=Loop)
    physical: bool = False
    tolerance: float = 3e-3  # of a step, in standard deviations of white noise: coloured noise may leave far less
    repeats: int = 20

    def __post_init__(self) -> None:
        if not (self.tolerance > 0 and self.repeats >= 1):
            raise OptionError(f"DIDIM: tolerance {self.tolerance} and repeats {self.repeats} must both be above zero")

    @property
    def name(self) -> str:
        return "PC-DIDIM" if self.physical else "DIDIM"

    def fit(self, problem: Problem, progress: Progress = silent) -> Fit:
        refuse_terms(problem.model, self.name)
        pieces = closed_pieces(problem.model, problem.experiments, self.loop)
        recordings, runs, base = [piece.measured for piece in pieces], Runs(pieces), problem.model.base
        theta, traces, begun = first_simulation(problem, runs)
        regression = simulated_problem(problem, recordings, traces)
        solution, weights = solve(*regression.stacked(), problem.nominal), np.ones(problem.robot.n)
        settled, done, how, last = False, 0, ALL, np.inf
        for done in range(1, self.repeats + 1):
            progress("simulating the loop again", done / self.repeats)
            variances = joint_variances(regression, solution.beta, solution.inverse, weights)
            at_rest = done > 1 and np.abs(np.log(variances * weights)).max() < _WEIGHTS_AT_REST
            weights = 1.0 / variances
            A, y = regression.stacked(weights)
            solution, wanted = self._solved(problem, A, y)
            step, size = float(np.linalg.norm(A @ (solution.beta - base.reduce(theta)))), float(np.linalg.norm(y))
            before = base.reduce(theta)
            theta, traces, how = simulated_step(
                runs, theta, traces, wanted, partial(possible_parameters, problem, A, y)
            )
            if how == POSSIBLE:
                step = float(np.linalg.norm(A @ (base.reduce(theta) - before)))
            if any(piece.free_start for piece in pieces):
                # Torque and regressor are compared with what the loop does from where the robot really began.
                pieces = [with_better_start(*x) for x in zip(pieces, [theta] * len(pieces), traces, strict=True)]
                runs.pieces = pieces
                traces = runs.traces(theta)
            regression = simulated_problem(problem, recordings, traces)
            small, last = at_rest and has_settled(step, last, problem.rank, self.tolerance), step
            if how != PART and whole(traces) and (small or step <= _ROUNDING * size):
                settled = True
                break
        beta = base.reduce(theta)
        rows = list(regression.blocks())
        warning, about = loop_warning(
            [block.tau - block.W @ beta for block in rows],
            [block.use for block in rows],
            [block.tau for block in rows],
            problem.robot.dof_names,
        )
        told = "solved" if settled else f"steps had not come to rest after {done} simulations; raise repeats"
        other = _POSSIBLE if how == POSSIBLE else ""
        parts = [told, other, begun, horizon(traces), rank_message(regression, solution), warning]
        return Fit(
            Solution(beta, solution.root, solution.blind),
            weights,
            settled,
            "; ".join(part for part in parts if part),
            done,
            parameters=theta,
            about={"simulations": runs.count, **about},
            problem=regression,
        )

    def _solved(self, problem: Problem, A: Array, y: Array) -> tuple[Solution, Array]:
        """The linear step: its solution, and all parameters that belong to it."""
        solution, model = solve(A, y, problem.nominal), problem.model
        if not self.physical:
            return solution, model.base.expand(solution.beta, model.nominal)
        beta, theta, _ = physical_step(problem, A, y, self.name)
        return Solution(beta, solution.root, solution.blind), theta
