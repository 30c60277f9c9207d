"""Steps between parameters that can be simulated: one that cannot is halved, a bad first guess is cut short."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..problem import Problem
from .pieces import Trace
from .runs import Runs, whole

Array = NDArray[np.float64]

# How a step was taken: as wanted, to the best parameters that bodies can have, or a part of it.
ALL, POSSIBLE, PART = "all", "possible", "part"
_HALVINGS = 8
# A simulation that ran away was wrong for some time before: so much of the way counts.
TRUSTED_SHARE = 0.8
_FEWEST_ROWS = 20
# A step of so many standard deviations a parameter is small, and shrinks if it is below this share of the one before.
_SMALL, _SHRINKS = 0.05, 0.5


def cut(traces: list[Trace]) -> list[Trace]:
    """Traces as far as they can be trusted."""
    out = []
    for trace in traces:
        reached = trace.reached if trace.reached == len(trace.q) else int(TRUSTED_SHARE * trace.reached)
        out.append(trace._replace(reached=reached))
    if max(trace.reached for trace in out) < _FEWEST_ROWS:
        raise DataError(
            "the simulation with the model's own parameters runs away at once; is the controller right, and the sign "
            "and unit of the torque? Else start from a better model"
        )
    return out


BY_REGRESSION = "begun at weighted least squares, because the model's own parameters run away in simulation"


def regressed(problem: Problem) -> Array:
    """All parameters by weighted least squares: a second place to begin at."""
    from ..estimators.least_squares import weighted  # the estimators import this module

    solution, _, _, _ = weighted(problem, 3, 1e-3)
    return problem.model.base.expand(solution.beta, problem.model.nominal)


def first_simulation(problem: Problem, runs: Runs) -> tuple[Array, list[Trace], str]:
    """The model's own parameters, or those of a regression where only they can be simulated; and what to say of it."""
    theta = problem.model.nominal
    traces = runs.traces(theta)
    if whole(traces):
        return theta, traces, ""
    other = regressed(problem)
    found = runs.traces(other)
    if sum(trace.reached for trace in found) > sum(trace.reached for trace in traces):
        return other, cut(found), BY_REGRESSION
    return theta, cut(traces), ""


def simulated_step(
    runs: Runs, theta: Array, traces: list[Trace], wanted: Array, possible: Callable[[], Array | None]
) -> tuple[Array, list[Trace], str]:
    """As far towards the wanted parameters as simulations go (no less far in time than before), and how: see `ALL`.

    Where no robot moves like the wanted ones, the best among those of bodies that can exist are gone to instead.
    """
    found = runs.traces(wanted)
    if whole(found):
        return wanted, found, ALL
    other = possible()
    if other is not None:
        instead = runs.traces(other)
        if whole(instead):
            return other, instead, POSSIBLE
    for k in range(_HALVINGS):
        trial = theta + 0.5**k * (wanted - theta)
        if k:
            found = runs.traces(trial)
            if whole(found):
                return trial, found, PART
        shorter = cut(found) if max(trace.reached for trace in found) > 2 * _FEWEST_ROWS else found
        gains = [b.reached - a.reached for a, b in zip(traces, shorter, strict=True)]
        if min(gains) >= 0 and max(gains) > 0:
            return trial, shorter, PART if k else ALL
    return theta, traces, PART


def has_settled(step: float, before: float, rank: int, tolerance: float) -> bool:
    """Whether a step in standard deviations, after one of `before`, was the last that is worth taking.

    Edges of dry friction and rounding keep steps from shrinking for ever: a small one that no longer shrinks will do.
    """
    size = step / np.sqrt(max(rank, 1))
    return bool(size <= tolerance or (size <= _SMALL and step > _SHRINKS * before))


def horizon(traces: list[Trace]) -> str:
    """What a simulation that did not come to its end leaves unsaid."""
    if whole(traces):
        return ""
    reached, rows = sum(trace.reached for trace in traces), sum(len(trace.q) for trace in traces)
    return f"the simulated loop ran away: only {reached} of {rows} samples, those before it, were fitted"
