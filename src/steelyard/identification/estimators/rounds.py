"""Three rounds: what has inertia first, then friction with that held, then all of it together."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import OptionError
from ..fit import Estimator, Fit, Progress, silent
from ..problem import Problem
from ..solving import BLIND
from .held import Held
from .least_squares import WLS

Array = NDArray[np.float64]
_INERTIAL = ("armature", "m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")


def has_inertia(problem: Problem) -> NDArray[np.bool_]:
    """Which base parameters belong to bodies, rotors and loads; the others are friction and terms."""
    names = problem.model.names
    return np.array([names[k].rpartition(".")[2] in _INERTIAL for k in problem.model.base.kept])


def _relative(problem: Problem, beta: Array) -> float:
    """‖tau − W beta‖/‖tau‖, the mean over joints."""
    sizes = np.array([np.linalg.norm(part.R[:, -1]) for part in problem.factors.parts])
    return float(np.mean(np.sqrt(problem.factors.squares(beta)) / np.where(sizes > 0, sizes, 1.0)))


@dataclass(frozen=True)
class Rounds:
    """The procedure of industrial arms: bodies with friction as the model has it, friction with the bodies held, both.

    The third round, by `inner`, is the answer; the first two say how much of the torque each part explains, and by how
    many deviations the third moved what the first had found: where that is much, friction passed for
    inertia. A linear least squares comes to the same third round without the first two.
    """

    inner: Estimator = field(default_factory=WLS)

    @property
    def name(self) -> str:
        return "Rounds" if self.inner.name == "WLS" else f"Rounds {self.inner.name}"

    def fit(self, problem: Problem, progress: Progress = silent) -> Fit:
        bodies, r = has_inertia(problem), problem.rank
        if bodies.all() or not bodies.any():
            missing = "friction" if bodies.all() else "bodies"
            raise OptionError(f"there is no {missing} to identify in a round of its own; add it, or take WLS")
        progress("the round of the bodies", 0.1)
        first = Held(tuple(~bodies), problem.nominal, np.zeros((r, r))).fit(problem)
        progress("the round of friction", 0.3)
        second = Held(tuple(bodies), first.beta, first.solution.inverse).fit(problem)
        progress("the round of both", 0.5)
        third = self.inner.fit(problem, progress)
        rounds: list[dict[str, Any]] = []
        for what, fit in (("inertia", first), ("friction", second), ("both", third)):
            solved = problem if fit.problem is None else fit.problem
            rounds.append(
                {"sought": what, "relative_residual": _relative(solved, fit.beta), "converged": fit.converged}
            )
        moved = self._moved(first, third, bodies)
        settled = first.converged and second.converged and third.converged
        told = ", ".join(f"{one['sought']} {100 * one['relative_residual']:.3g} %" for one in rounds)
        message = f"torque left after each round: {told}; the third moved the bodies by {moved:.2g} deviations"
        about = {**third.about, "rounds": rounds, "moved": moved}
        whole = message if third.message == "solved" else f"{third.message}; {message}"
        return replace(third, converged=settled, message=whole, about=about)

    def _moved(self, first: Fit, third: Fit, bodies: NDArray[np.bool_]) -> float:
        """Root mean square of the change of what has inertia, in deviations of the third round."""
        # Terms of shapes may have come in between, so bodies are told by their place among bodies.
        mine = bodies if third.problem is None else has_inertia(third.problem)
        sure = np.sqrt(np.diag(third.solution.inverse))[mine]
        told = sure > BLIND * sure.max(initial=0.0)
        change = (third.beta[mine] - first.beta[bodies])[told] / sure[told]
        return float(np.sqrt(np.mean(change**2))) if told.any() else 0.0
