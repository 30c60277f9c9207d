"""One weighing from beginning to end: prepare, split, find the load, judge it on what was held out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.recording import Recording
from ..data.rows import standstill_speeds
from ..dynamics import base_parameters
from ..errors import OptionError
from ..identification.alignment import Delay, aligned, find_delay, shifted
from ..identification.estimate import Estimate
from ..identification.estimators import WLS
from ..identification.fit import Estimator, Progress, silent
from ..identification.identify import prepare
from ..identification.model import Experiment, Load
from ..identification.payload import NAME, Assumption, PayloadFit, identify_payload
from ..identification.problem import Problem
from ..robot.robot import Robot
from .study import decimation_for, split_in_time
from .validation import counted

Array = NDArray[np.float64]
# A mass of fewer deviations than this may be no mass at all.
_SURE = 3.0
# Squared distances to what is possible up to here are noise: 99 % of a chi-square of ten.
_CHANCE = 23.2


@dataclass(frozen=True, eq=False)
class WeighingPlan:
    """How a load is to be found."""

    body: str
    assume: Assumption = "body"
    centre: tuple[float, float, float] = (0.0, 0.0, 0.0)
    physical: bool = False
    method: Estimator = field(default_factory=WLS)
    preprocessing: Any = "auto"
    train_share: float = 0.8
    delay: float | str = "auto"

    def __post_init__(self) -> None:
        if not 0.1 <= self.train_share <= 1.0:
            raise OptionError(f"the training share is {self.train_share}; give 0.1 to 1")


@dataclass(frozen=True, eq=False)
class Weighing:
    """A load, and how well arm and load predict the torque that was held out."""

    fit: PayloadFit
    held_out: str
    relative: float  # torque error with the load
    relative_empty: float  # and as if there were none
    rmse: Mapping[str, float]
    rmse_empty: Mapping[str, float]
    how: str
    notes: tuple[str, ...]

    @property
    def told(self) -> bool:
        """Whether there is a load at all."""
        return self.fit.mass > _SURE * self.fit.mass_deviation

    @property
    def better(self) -> bool:
        return self.relative < self.relative_empty

    @property
    def verdict(self) -> str:
        """One sentence on whether to use it."""
        fit = self.fit
        figures = (
            f"torque error on {self.held_out} {100 * self.relative:.2f} %, without it {100 * self.relative_empty:.2f} %"
        )
        mass = f"{fit.mass:.4g} ± {fit.mass_deviation:.2g} kg"
        if not np.isfinite(fit.mass_deviation):
            said = f"the mass does not show in these recordings: {figures}; move the joints that have to carry it"
        elif not self.told:
            said = f"no payload that can be told from none ({mass}): {figures}"
        elif not self.better:
            said = f"a payload of {mass} fits the data but does NOT predict better: {figures}; do not use it"
        else:
            said = f"a payload of {mass} {self.how}: {figures}"
        if fit.invalid and self.told and fit.impossible_by < _CHANCE:
            said += "; no body can have exactly these parameters, but one within their intervals (add --physical)"
        elif fit.invalid and self.told:
            said += (
                f"; no body can have these parameters, nor any within their intervals ({fit.impossible_by:.3g} noise "
                "variances off): look at the arm's model, the friction and the delay before using it"
            )
        if fit.surplus_freedom and fit.surplus > fit.surplus_freedom + 5.0 * np.sqrt(2.0 * fit.surplus_freedom):
            said += (
                f"; the data contradict the assumption ({fit.surplus:.3g} noise variances for {fit.surplus_freedom} "
                "degrees of freedom): identify all ten parameters"
            )
        return said if fit.estimate.converged else f"{said}; it did NOT converge: {fit.estimate.message}"


def _split(recordings: Sequence[Recording], share: float) -> tuple[list[Recording], list[Recording]]:
    parts = [split_in_time(one, share) for one in recordings]
    return [first for first, _ in parts], [rest for _, rest in parts if rest is not None]


def _errors(fit: PayloadFit, recordings: Sequence[Recording], load: bool) -> tuple[float, dict[str, float]]:
    """Relative over all joints, and a root mean square a joint."""
    found = fit.estimate
    n = found.model.robot.n
    squares, sizes, counts = np.zeros(n), np.zeros(n), np.zeros(n)
    for one in recordings:
        use = counted(one)
        e = one.tau - found.torque(one, Load(fit.body, None, NAME) if load else None)
        squares += np.where(use, e**2, 0.0).sum(axis=0)
        sizes += np.where(use, one.tau**2, 0.0).sum(axis=0)
        counts += use.sum(axis=0)
    rmse = np.sqrt(squares / np.maximum(counts, 1))
    whole = float(sizes.sum())
    relative = float(np.sqrt(squares.sum() / whole)) if whole > 0 else float("nan")
    return relative, dict(zip(found.model.robot.dof_names, rmse.tolist(), strict=True))


def weigh(
    robot: Robot,
    loaded: Sequence[Recording],
    plan: WeighingPlan,
    unloaded: Sequence[Recording] = (),
    arm: Estimate | None = None,
    progress: Progress = silent,
) -> Weighing:
    """What a robot carried in `loaded`: beside recordings of the empty arm, or an identified arm, or the model's."""
    robot = robot if arm is None else arm.model.robot
    notes: list[str] = []
    progress("preparing the recordings", 0.0)
    ready = [[prepare(x, robot, plan.preprocessing) for x in part] for part in (loaded, unloaded)]
    training, testing = _split(ready[0], plan.train_share)
    speeds = [one.qd for part in ready for one in part if one.qd is not None]
    dead_zone = np.max([standstill_speeds(qd) for qd in speeds], axis=0)
    everything = [Experiment(x) for x in (*training, *ready[1])]
    decimation, said = decimation_for("auto", everything, base_parameters(robot).rank + 10)
    notes += said
    delay = Delay(0.0, 0.0)

    def align(problem: Problem) -> Problem:
        nonlocal delay
        if arm is not None:
            delay = Delay(float(arm.about.get("torque_delay_s", 0.0)), 0.0)
        elif plan.delay == "auto":
            progress("looking for a delay between torque and motion", 0.2)
            found = find_delay(problem)
            delay = found if found.believed else delay
        else:
            delay = Delay(float(plan.delay), 0.0)
        return aligned(problem, delay.seconds)

    progress("identifying the load", 0.5)
    fit = identify_payload(
        robot, training, plan.body, unloaded=ready[1], arm=arm, assume=plan.assume, centre=plan.centre,
        physical=plan.physical, method=plan.method, preprocessing=None, align=align, decimation=decimation,
        dead_zone=dead_zone,
    )  # fmt: skip
    if delay.seconds:
        notes.append(f"a delay of {1e3 * delay.seconds:.3g} ms between motion and torque was taken out")
    if fit.jointly:
        how = "beside the arm, both from recordings"
    elif arm is not None:
        how = "as the difference to the identified arm"
    else:
        how = "as the difference to the model's arm, whose own errors no interval here knows"
    judged, words = (testing, "the held-out end") if testing else (training, "the data that it was fitted to")
    judged = [shifted(one, delay.seconds) for one in judged]
    relative, rmse = _errors(fit, judged, True)
    empty, rmse_empty = _errors(fit, judged, False)
    return Weighing(fit, words, relative, empty, rmse, rmse_empty, how, tuple(notes))
