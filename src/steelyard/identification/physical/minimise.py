"""One fit: which weight of the prior and which unit of the objective the solver can resolve."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .conic import Answer, Cone, solve
from .priors import Coordinates
from .program import Directions, build

Array = NDArray[np.float64]
Linear = Sequence[tuple[Array, Array, Cone]]

# Clarabel calls "AlmostSolved" what meets the reduced tolerances of `conic`.
CONVERGED = ("Solved", "AlmostSolved")
IMPOSSIBLE = ("PrimalInfeasible", "AlmostPrimalInfeasible")
# The default weight where the noise is known: P is half a squared deviation from the nominal in units of the nominal,
# so that this is a Gaussian prior of standard deviation √(2/weight) = 141 %. What the data show to within a share t of
# the nominal is drawn to it by t²/2 of the way.
_PER_NOISE = 1.0
# Where it is not known: this part of the weakest direction that the data see at all, rounding of the strongest apart.
_PER_DIRECTION, _SEEN = 1e-8, 1e-10
# Where data fight the constraints, a prior this much weaker than their cost or its slope cannot be resolved; raised, it
# is ten times that, so that once is enough; more than a hundred times is left from an attempt that failed.
_RESOLVED, _RAISED, _TOO_MUCH = 1e-8, 10.0, 100.0
_BIASED = 1e-2  # a raised weight that makes up more than this part of the cost has made the cost itself
_ATTEMPTS = 6


def default_weight(data: Directions, noise: float | None) -> float:
    """A weight of the prior that biases no direction which the data see."""
    strength = data.strength[data.strength > _SEEN * data.strength.max(initial=0.0)]
    if noise is not None:
        return max(_PER_NOISE * noise**2, _RAISED * _RESOLVED * noise * float(strength.max(initial=0.0)))
    return _PER_DIRECTION * float(strength.min()) ** 2 if strength.size else 1.0


def minimise(
    data: Directions, at: Coordinates, weight: float | None, noise: float | None, linear: Linear, smallest: float
) -> tuple[Answer, float]:
    """The minimiser and the weight of the prior; a default weight that cannot be resolved beside the data is raised.

    The unit κ² of the objective is to be neither far below the cost of the answer nor far below the change of that cost
    with a constraint, which are known only afterwards: so the first attempt may have to be repeated.
    """
    first = w = weight if weight is not None else default_weight(data, noise)
    strongest = float(data.strength.max(initial=0.0))
    model, dearest = at.model(smallest), data.excess(np.zeros(len(at.D)))

    def slope(cost: float) -> float:
        return float(np.sqrt(cost) * max(np.sqrt(cost), strongest))

    unit = w if noise is None else max(w, slope(noise**2))
    iterations, seconds = 0, 0.0
    for attempt in range(_ATTEMPTS):
        program = build(data, w, np.sqrt(unit), model, linear)
        answer = solve(program.P, program.q, program.blocks)
        answer = replace(answer, variables=answer.variables[: program.size])
        iterations, seconds = iterations + answer.iterations, seconds + answer.seconds
        done, cost = answer.status in CONVERGED, data.excess(answer.variables)
        if not done and attempt == 0:
            cost = min(cost, dearest)  # a failure may end anywhere, and the nominal may be near the answer
        least = _RESOLVED * slope(cost) if weight is None else 0.0
        biased = w > first and w * at.prior(answer.variables) > _BIASED * cost
        if done and least <= w <= max(first, _TOO_MUCH * least) and not biased:
            break
        w = max(first, w / _TOO_MUCH if done and biased else _RAISED * least)
        unit = w if attempt == 2 else max(w, slope(cost))
    return replace(answer, iterations=iterations, seconds=seconds), w


def is_possible(at: Coordinates, linear: Linear, smallest: float) -> bool:
    """Whether any parameters meet all constraints, data apart."""
    none = Directions(np.empty(0), np.empty((0, len(at.D))), np.empty(0))
    model = replace(at.model(smallest), quadratic=np.eye(len(at.D)), entropic=False)
    program = build(none, 1.0, 1.0, model, linear)
    return solve(program.P, program.q, program.blocks).status not in IMPOSSIBLE
