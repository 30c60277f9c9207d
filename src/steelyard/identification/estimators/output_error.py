"""Closed-loop output and input error: parameters whose simulation gives what was measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError, OptionError
from ..closed_loop.loops import Loop, is_known
from ..closed_loop.mujoco_rollout import MuJoCo
from ..closed_loop.output_error import Found, Search
from ..closed_loop.parametrisation import PARAMETRISATIONS, Parametrisation
from ..closed_loop.pieces import Piece, Shooting, closed_pieces, recording_of, refuse_terms
from ..closed_loop.runs import Runs
from ..closed_loop.statistics import statistics_of
from ..closed_loop.steps import regressed
from ..fit import Fit, Progress, silent
from ..problem import Problem
from .bayes import prior_deviation

Array = NDArray[np.float64]

SIGNALS = ("q", "qd", "qdd", "tau")


@dataclass(frozen=True)
class CLOE:
    """min Σ ‖q − q̂(beta)‖², q̂ of the loop simulated again, parameters written into the model at every trial.

    `signals` may add "qd" and "qdd", where the recording has them. Where the loop is not known (`loop`), measured
    torques move the model in short stretches (`shooting`). `rollout` MuJoCo() lets MuJoCo simulate what the equation
    of motion does not carry. `parametrisation` "base" searches what the motion shows; "log-cholesky" keeps every trial
    physical. `estimate` adds "gains", "delay" of the controller, or "start". Landau, Anderson, De Bruyne, IFAC 2000;
    Brunot et al., "An instrumental variable approach for rigid industrial robots identification", CEP 2018.
    """

    loop: Loop = field(default_factory=Loop)
    signals: tuple[str, ...] = ("q",)
    shooting: Shooting | None = None
    rollout: MuJoCo | None = None
    parametrisation: Literal["base", "log-cholesky"] | None = None
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    estimate: tuple[str, ...] = ()
    tolerance: float = 0.05  # of a step, in standard deviations
    repeats: int = 60
    most_delay: int = 10  # control ticks
    kind: ClassVar[str] = "CLOE"

    def __post_init__(self) -> None:
        for values, valid, what in (
            (self.signals, SIGNALS, "signal"),
            (self.estimate, ("gains", "delay", "start"), "thing to estimate"),
        ):
            wrong = [value for value in values if value not in valid]
            if wrong:
                raise OptionError(f"{self.name} knows no {what} '{wrong[0]}'; valid: {', '.join(valid)}")
        if not self.signals:
            raise OptionError(f"{self.name} needs a signal to fit; valid: {', '.join(SIGNALS)}")
        if self.parametrisation is not None and self.parametrisation not in PARAMETRISATIONS:
            raise OptionError(f"no parametrisation '{self.parametrisation}'; valid: {', '.join(PARAMETRISATIONS)}")
        if not (self.tolerance > 0 and self.repeats >= 1 and self.most_delay >= 0):
            raise OptionError(f"{self.name}: tolerance, repeats and most_delay must be above zero")
        if "gains" in self.estimate and "tau" not in self.signals:
            raise OptionError(
                "positions alone do not tell gains from inertias (twice of both moves alike); fit torques too: "
                "signals=('q', 'tau')"
            )
        if self.shooting is not None and ("tau" in self.signals or self.rollout is not None or self.estimate):
            raise OptionError(
                "shooting is moved by measured torques: it fits no torque, and has no controller or MuJoCo"
            )

    @property
    def name(self) -> str:
        return f"PC-{self.kind}" if self.parametrisation == "log-cholesky" else self.kind

    def fit(self, problem: Problem, progress: Progress = silent) -> Fit:
        refuse_terms(problem.model, self.name)
        pieces, how = self._pieces(problem)
        kind = self.parametrisation or ("log-cholesky" if self.rollout is not None else "base")
        deviation = prior_deviation(problem, 1.0)
        shape: Parametrisation = PARAMETRISATIONS[kind](problem.model, deviation, dict(self.bounds))
        measured = [np.concatenate([_channel(piece, name) for name in self.signals], axis=1) for piece in pieces]
        gains = "gains" in self.estimate
        # Least squares know no bodies: only a search in base parameters can begin there.
        second = (
            None if kind != "base" else lambda: np.clip(problem.model.base.reduce(regressed(problem)), *shape.bounds)
        )

        def search(pieces: Sequence[Piece]) -> Search:
            return Search(
                problem.model, Runs(pieces), shape, self.signals, measured, deviation, gains, self.tolerance,
                self.repeats, progress, second if kind == "base" else None,
            )  # fmt: skip

        told: dict[str, Any] = {"simulated": how, "parametrisation": kind}
        if "delay" in self.estimate:
            found, runs, told["delay_ticks"] = self._with_delay(pieces, search)
        else:
            seeking = search(pieces)
            found, runs = seeking.run(), seeking.runs
        told |= {"simulations": runs.count}
        if "delay_ticks" in told:
            how += f", whose delay is {told['delay_ticks']} ticks"
        if found.state.point.gains is not None:
            told["gains"] = dict(zip(("kp", "ki", "kd"), found.state.point.gains.tolist(), strict=True))
            how += f", with {_in_words(told['gains'])}"
        return statistics_of(problem, found, runs.pieces, self.signals, how, told)

    def _pieces(self, problem: Problem) -> tuple[Sequence[Piece], str]:
        if self.rollout is not None:
            return self.rollout.pieces(problem.model, problem.experiments, self.loop), "in MuJoCo"
        shooting = self.shooting
        known = all(is_known(recording_of(x), self.loop) for x in problem.experiments)
        asks_for_a_loop = self.loop.controller is not None or "tau" in self.signals or bool(self.estimate)
        if shooting is None and not known and not asks_for_a_loop:
            shooting = Shooting()
        if shooting is not None:
            return shooting.pieces(problem.model, problem.experiments), (
                f"in stretches of {shooting.horizon:g} s under the measured torques (intervals leave out their noise)"
            )
        free = "start" in self.estimate
        return closed_pieces(
            problem.model, problem.experiments, self.loop, free, as_made=True
        ), "under the known controller"

    def _with_delay(self, pieces: Sequence[Piece], search: Any) -> tuple[Found, Runs, int]:
        """A delay is a whole number: the best at the first guess, then its neighbours, each with its own search."""
        count = 0
        costs = []
        for ticks in range(self.most_delay + 1):
            seeking = search([piece.delayed(ticks) for piece in pieces])
            state, rows = seeking.first()
            whole = all(k == len(y) for k, y in zip(rows, seeking.measured, strict=True))
            costs.append(sum(float(np.sum(e**2)) for e in state.residuals) if whole else np.inf)
            count += seeking.runs.count
        best = int(np.argmin(costs))
        known: dict[int, tuple[float, Found, Runs]] = {}

        def of(ticks: int) -> float:
            nonlocal count
            if ticks not in known:
                seeking = search([piece.delayed(ticks) for piece in pieces])
                found = seeking.run()
                count += seeking.runs.count
                # Likelihood with variances that are profiled out; a search cut short does not compete.
                total = sum(len(e) for e in found.state.residuals)
                cost = -0.5 * total * float(np.sum(np.log(found.weights)))
                cut = any(len(e) < len(y) for e, y in zip(found.state.residuals, seeking.measured, strict=True))
                known[ticks] = (np.inf if cut else cost, found, seeking.runs)
            return known[ticks][0]

        while True:
            around = [ticks for ticks in (best - 1, best, best + 1) if 0 <= ticks <= self.most_delay]
            better = min(around, key=of)
            if better == best:
                break
            best = better
        _, found, runs = known[best]
        runs.count = count
        return found, runs, best


@dataclass(frozen=True)
class CLIE(CLOE):
    """min Σ ‖tau − tau_s(beta)‖²: the same search on the torque of the simulated loop, with its whole slope."""

    signals: tuple[str, ...] = ("tau",)
    kind: ClassVar[str] = "CLIE"


def _in_words(gains: Mapping[str, Sequence[float]]) -> str:
    return ", ".join(f"{name} {' '.join(f'{x:.4g}' for x in row)}" for name, row in gains.items() if any(row))


def _channel(piece: Piece, name: str) -> Array:
    measured = piece.measured
    if name == "qdd" and measured.qdd is None and "qdd_m" in measured.more:
        return np.asarray(measured.more["qdd_m"])
    value = getattr(measured, name)
    if value is None:
        raise DataError(f"the recording has no measured {name}; leave '{name}' out of the signals")
    return np.asarray(value)
