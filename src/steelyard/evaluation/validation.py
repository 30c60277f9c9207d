"""Validation: what parameters predict on a recording that they have not seen, against the model as it was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.recording import Recording
from ..errors import DataError
from ..identification.alignment import shifted
from ..identification.estimate import Estimate
from ..identification.identify import prepare, told_of
from ..identification.model import Experiment, LinearModel, Load, sliced_torque
from ..robot.robot import Robot

Array = NDArray[np.float64]
# The recording is cut into so many pieces to see how sure a difference between two models is.
_PIECES = 20
# A difference of less than this many standard errors may be chance.
_SURE = 2.0
# Errors that differ by less than this share are alike for any use.
_ALIKE = 0.05
# A torque whose cosine with the model's is below this has another sign than the model thinks.
_AGAINST = -0.5
# A model that leaves more than this of the torque is none, however bad the one before was.
_POOR = 0.25


@dataclass(frozen=True)
class JointScore:
    """How well a joint's torque is predicted."""

    joint: str
    unit: str
    rmse: float
    largest: float
    relative: float  # of the root mean square of the measured torque
    bias: float
    nominal_rmse: float
    nominal_largest: float
    autocorrelation: float
    nominal_alike: float = 0.0  # cosine between the measured torque and the nominal model's


@dataclass(frozen=True)
class Validation:
    """Scores on a recording, and the verdict."""

    joints: tuple[JointScore, ...]
    relative: float  # ‖tau − prediction‖/‖tau‖ over all joints
    nominal_relative: float
    better: bool
    sure: float  # by how many standard errors the squared error differs from the nominal model's
    verdict: str
    samples: int
    about: Mapping[str, Any]


def counted(recording: Recording) -> NDArray[np.bool_]:
    """Which torques of a prepared recording count, (T, n)."""
    use = recording.more.get("use")
    if use is None:
        return np.ones(recording.tau.shape, dtype=bool)
    mask = np.asarray(use) > 0.5
    return np.repeat(mask[:, None], recording.n, axis=1) if mask.ndim == 1 else mask


def every_row(recording: Recording) -> Recording:
    """The recording with every row counting, standstill included."""
    return replace(recording, more={name: value for name, value in recording.more.items() if name != "use"})


def _alike(a: Array, b: Array) -> float:
    """The cosine between two signals."""
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / size if size > 0 else 0.0


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2))) if len(values) else float("nan")


def _score(joint: str, unit: str, tau: Array, predicted: Array, nominal: Array) -> JointScore:
    e, before = tau - predicted, tau - nominal
    size = _rms(tau)
    square = float(e @ e)
    return JointScore(
        joint=joint,
        unit=unit,
        rmse=_rms(e),
        largest=float(np.abs(e).max(initial=0.0)),
        relative=_rms(e) / size if size else float("inf"),
        bias=float(e.mean()) if len(e) else float("nan"),
        nominal_rmse=_rms(before),
        nominal_largest=float(np.abs(before).max(initial=0.0)),
        autocorrelation=float(e[1:] @ e[:-1]) / square if square > 0 else 0.0,
        nominal_alike=_alike(tau, nominal),
    )


def _relative(e: Array, tau: Array, use: NDArray[np.bool_]) -> float:
    """‖e‖/‖tau‖ over all joints."""
    whole = float(np.sum(tau[use] ** 2))
    return float(np.sqrt(np.sum(e[use] ** 2) / whole)) if whole > 0 else float("inf")


def _surely_better(e: Array, before: Array, use: NDArray[np.bool_], size: Array) -> float:
    """The mean drop of the squared error over pieces of the recording, in its own standard errors."""
    some = use.any(axis=1)  # a robot that stands still makes no pieces of its own
    drop = (np.where(use, before**2 - e**2, 0.0) / size**2)[some]
    edges = np.linspace(0, len(drop), min(_PIECES, max(2, len(drop) // 5)) + 1).astype(int)
    pieces = np.array([drop[a:b].sum() for a, b in pairwise(edges)])
    spread = pieces.std(ddof=1) / np.sqrt(len(pieces))
    if spread > 0:
        return float(pieces.mean() / spread)
    return float(np.copysign(np.inf, pieces.mean())) if pieces.mean() else 0.0


def _verdict(scores: tuple[JointScore, ...], relative: float, nominal: float, sure: float) -> tuple[bool, str]:
    better = relative < nominal and sure > _SURE
    figures = f"{100 * relative:.2f} % torque error against {100 * nominal:.2f} %"
    worse = [s for s in scores if s.rmse > s.nominal_rmse * 1.02]
    listed = ", ".join(f"{s.joint} ({s.rmse:.3g} against {s.nominal_rmse:.3g} {s.unit})" for s in worse)
    if better:
        left = (
            f"; yet {100 * relative:.0f} % of the torque stays unexplained: noise, a wrong unit, sign or column, "
            "or what the model lacks"
        ) * (relative > _POOR)
        return True, f"better than the nominal model on held-out data: {figures}{left}" + (
            f"; but worse in {listed}" if worse else ""
        )
    if abs(relative - nominal) <= _ALIKE * nominal:
        return False, f"as good as the nominal model, and no better: {figures}; there is nothing to gain, or to lose"
    if relative < nominal:
        return False, (
            f"not surely better than the nominal model: {figures}, a difference of {sure:.1f} standard errors; "
            "validate on a longer recording"
        )
    return False, (
        f"NOT better than the nominal model on held-out data: {figures}; worst in {listed or 'no joint by much'}; "
        "the model lacks something that the robot has, or the recording excites too little: see residuals and rank"
    )


def contradictions(nominal: Validation) -> list[str]:
    """Joints whose recorded torque runs against the model's: a wrong sign or column, before anything is estimated."""
    against = [s for s in nominal.joints if s.nominal_alike < _AGAINST]
    if not against:
        return []
    named = ", ".join(f"{s.joint} ({s.nominal_alike:.2f})" for s in against)
    return [
        f"the recorded torque runs against the model's (cosine below {_AGAINST:g}) in {named}: look at the sign of "
        "torque and position there, and at the order of the columns"
    ]


def score(
    model: LinearModel, theta: Array, experiments: Sequence[Experiment], about: Mapping[str, Any] | None = None
) -> Validation:
    """Scores of parameters on prepared recordings."""
    robot = model.robot
    linear = robot.layout.linear_dofs
    pieces: list[tuple[Array, ...]] = []
    for one in experiments:
        if not isinstance(one.recording, Recording):
            raise DataError("scores are made of recordings in memory, not of streams")
        both = (sliced_torque(model, values, one.recording, one.load) for values in (theta, model.nominal))
        pieces.append((one.recording.tau, *both, counted(one.recording).astype(float)))
    tau, predicted, nominal, mask = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    use = mask > 0.5
    if not use.any():
        raise DataError("no sample of the validation recording is usable; see its quality by `steelyard inspect`")
    scores = tuple(
        _score(dof, "N" if dof in linear else "N·m", *(x[use[:, j], j] for x in (tau, predicted, nominal)))
        for j, dof in enumerate(robot.dof_names)
    )
    size = np.array([_rms(tau[use[:, j], j]) for j in range(robot.n)])
    size = np.where(size > 0, size, 1.0)
    e, before = tau - predicted, tau - nominal
    relative, old = (_relative(x, tau, use) for x in (e, before))
    sure = _surely_better(e, before, use, size)
    better, verdict = _verdict(scores, relative, old, sure)
    return Validation(scores, relative, old, better, sure, verdict, int(use.any(axis=1).sum()), dict(about or {}))


def validate(
    robot: Robot,
    estimate: Estimate,
    recording: Recording,
    *,
    preprocessing: Any = "auto",
    load: Load | None = None,
) -> Validation:
    """How well an estimate predicts a recording that it has not seen, against the robot's nominal parameters."""
    if robot.dof_names != estimate.model.robot.dof_names:
        raise DataError("the estimate is of another robot: its joints differ")
    ready = shifted(prepare(recording, robot, preprocessing), float(estimate.about.get("torque_delay_s", 0.0)))
    return score(estimate.model, estimate.parameters, [Experiment(ready, load)], told_of(ready))
