"""What a table of runs says of each estimator at each level of noise."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cells import levels_of
from .scene import Scene
from .table import Table

Array = NDArray[np.float64]
GROUP = ("robot", "friction", "position_noise", "torque_noise", "preprocessing", "estimator")
STATUSES = ("converged", "wrong", "not converged", "failed")


@dataclass(frozen=True, eq=False)
class Reference:
    """What the runs of a robot and a friction law are compared with."""

    names: tuple[str, ...]  # of the base parameters
    truth: Array
    bound: Array  # least standard deviations at a torque noise of 1


def references(scenes: Sequence[Scene]) -> dict[tuple[str, str], Reference]:
    """The truths of scenes, by robot and friction."""
    return {(s.name, s.friction): Reference(s.base.short_names, s.truth, s.bound) for s in scenes}


@dataclass(frozen=True)
class Level:
    """What recordings at a level of noise are like, told by the first of them."""

    robot: str
    friction: str
    position_noise: float
    torque_noise: float
    unrest: float  # ‖tau − tau_quiet‖/‖tau_quiet‖
    saturated: float  # share of samples with a torque at its limit


def levels(scenes: Sequence[Scene]) -> list[Level]:
    """Every level of noise of scenes."""
    return [Level(s.name, s.friction, *noise, *s.unrest(noise)) for s in scenes for noise in levels_of(s)]


@dataclass(frozen=True)
class Score:
    """One estimator at one level: medians over its runs unless said otherwise."""

    robot: str
    friction: str
    position_noise: float
    torque_noise: float
    preprocessing: str
    estimator: str
    runs: int
    converged: float  # share of all runs: the estimator's own word, and the criteria of the study
    wrong: float  # share that says it converged and did not meet the criteria
    failed: float  # share without an answer
    guess_parameter_error: float
    parameter_error: float
    parameter_error_worst: float  # of the best 95 %
    torque_error: float
    torque_error_worst: float
    position_error: float
    bias: float  # of the parameters, |mean error| in standard deviations of the bound
    efficiency: float  # of the parameters, variance of the bound over mean squared error
    coverage: float  # mean share of base parameters inside their 95 % intervals
    feasible: float  # share of all runs
    seconds: float  # mean, of the estimate alone
    statistics_seconds: float  # mean, of its intervals
    iterations: float
    evaluations: float  # passes of the dynamic model over the motion: the regressor's, and each simulation

    @property
    def not_converged(self) -> float:
        """Share of all runs that came to an answer and says that it is not to be trusted."""
        return max(0.0, 1.0 - self.converged - self.wrong - self.failed)


def _median(values: Array) -> float:
    finite = values[~np.isnan(values)]
    return float(np.median(finite)) if len(finite) else float("nan")


def _worst(values: Array) -> float:
    finite = values[~np.isnan(values)]
    return float(np.quantile(finite, 0.95, method="higher")) if len(finite) else float("nan")


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _of_parameters(betas: Array, reference: Reference, noise: float) -> tuple[float, float]:
    """Bias and efficiency, the median over parameters."""
    if not len(betas) or noise <= 0:
        return float("nan"), float("nan")
    errors = (betas - reference.truth) / (noise * reference.bound)
    with np.errstate(divide="ignore"):  # what a constraint holds at the truth has no error
        return float(np.median(np.abs(errors.mean(axis=0)))), float(np.median(1.0 / np.mean(errors**2, axis=0)))


def _score(key: tuple[Any, ...], rows: Table, reference: Reference) -> Score:
    status = rows["status"]
    answered = status != "failed"
    betas = np.array(list(rows["beta"][answered])).reshape(-1, len(reference.truth))
    bias, efficiency = _of_parameters(betas, reference, key[3])
    share = {name: float(np.mean(status == name)) for name in STATUSES}
    robot, friction, position_noise, torque_noise, preprocessing, estimator = key
    return Score(
        robot=robot,
        friction=friction,
        position_noise=position_noise,
        torque_noise=torque_noise,
        preprocessing=preprocessing,
        estimator=estimator,
        runs=len(status),
        converged=share["converged"],
        wrong=share["wrong"],
        failed=share["failed"],
        guess_parameter_error=_median(rows["guess_parameter_error"]),
        parameter_error=_median(rows["parameter_error"]),
        parameter_error_worst=_worst(rows["parameter_error"]),
        torque_error=_median(rows["torque_error"]),
        torque_error_worst=_worst(rows["torque_error"]),
        position_error=_median(rows["position_error"]),
        bias=bias,
        efficiency=efficiency,
        coverage=_mean(rows["inside"][answered] / len(reference.truth)),
        feasible=float(np.mean(rows["feasible"])),
        seconds=_mean(rows["seconds"]),
        statistics_seconds=_mean(rows["statistics_seconds"]),
        iterations=_median(rows["iterations"].astype(float)),
        evaluations=_median(rows["evaluations"].astype(float)),
    )


def groups_of(table: Table) -> dict[tuple[Any, ...], NDArray[np.int64]]:
    """Rows of each level and estimator, in the order in which they come first."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for k, key in enumerate(zip(*(table[name].tolist() for name in GROUP), strict=True)):
        found.setdefault(key, []).append(k)
    return {key: np.array(rows) for key, rows in found.items()}


def summarise(table: Table, known: Mapping[tuple[str, str], Reference]) -> list[Score]:
    """A score for each estimator at each level, levels in order, estimators as they were asked for."""
    scores = [
        _score(key, {name: column[rows] for name, column in table.items()}, known[key[0], key[1]])
        for key, rows in groups_of(table).items()
    ]
    return sorted(scores, key=lambda s: (s.robot, s.friction, s.preprocessing, s.position_noise, s.torque_noise))


def as_records(values: Sequence[Score] | Sequence[Level]) -> list[dict[str, Any]]:
    """Scores or levels as plain mappings."""
    return [asdict(one) | ({"not_converged": one.not_converged} if isinstance(one, Score) else {}) for one in values]
