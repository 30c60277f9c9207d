"""Points of friction from recordings: measured torque less that of rigid bodies, averaged where the velocity is alike.

    friction = tau − [M q̈ + C q̇ + g + armature·q̈]

Every direction's velocities are cut into bins, evenly in the logarithm. How sure a bin's mean is follows from the noise
of its rows, and from what passages through it differ by: what a passage errs by, all of its rows err by.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...data.recording import Recording
from ...data.rows import standstill_speeds
from ...dynamics import inverse_dynamics
from ...errors import DataError, OptionError
from ...robot.parameters import JOINT_PROPERTIES
from ...robot.robot import Robot, frozen
from ..alignment import shifted
from ..estimate import Estimate
from ..identify import prepare
from ..model import sliced_torque
from .points import FrictionPoints

Array = NDArray[np.float64]
_FRICTION = ("damping", "coulomb", "offset")


@dataclass(frozen=True)
class Averaging:
    """How rows of a recording become points."""

    bins: int = 40  # a direction
    least: int = 5  # rows in a bin
    steady: float | None = None  # rad/s² or m/s²: only rows that accelerate less

    def __post_init__(self) -> None:
        if not (4 <= self.bins <= 1000 and self.least >= 1):
            raise OptionError(f"{self.bins} bins of at least {self.least} rows; give 4 to 1000 bins of 1 row or more")
        if self.steady is not None and not (np.isfinite(self.steady) and self.steady > 0):
            raise OptionError(f"steady motion is below {self.steady}; give an acceleration above 0")


def without_friction(robot: Robot) -> Robot:
    """The robot without damping, dry friction and offset."""
    joints = robot.joint_parameters.copy()
    joints[:, [JOINT_PROPERTIES.index(name) for name in _FRICTION]] = 0.0
    return replace(robot, joint_parameters=frozen(joints))


def friction_torque(known: Robot | Estimate, recording: Recording) -> Array:
    """What is left of the torque of a prepared recording when rigid bodies have had theirs, (T, n)."""
    if isinstance(known, Robot):
        assert recording.qd is not None
        assert recording.qdd is not None
        return recording.tau - inverse_dynamics(without_friction(known), recording.q, recording.qd, recording.qdd)
    model = known.model
    dry = {name for term in model.terms if getattr(term, "friction", False) for name in term.names(model.robot)}
    theta = known.parameters.copy()
    theta[[k for k, name in enumerate(known.names) if name in dry or name.rpartition(".")[2] in _FRICTION]] = 0.0
    bare = replace(model, robot=without_friction(model.robot))
    return (recording.tau - sliced_torque(bare, theta, recording)) * model.gains


@dataclass(frozen=True, eq=False)
class _Bin:
    """Rows of one direction at about one speed, in passages: runs of rows that follow each other."""

    velocity: float
    means: Array  # of the friction, a passage
    sizes: Array  # rows of it
    spread: float  # sum of squares about the means

    @property
    def friction(self) -> float:
        return float(self.means @ self.sizes / self.sizes.sum())


def _bin(rows: NDArray[np.int64], velocity: Array, friction: Array) -> _Bin:
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(rows) > 1) + 1])
    sizes = np.diff(np.concatenate([cuts, [len(rows)]])).astype(float)
    mine = friction[rows]
    means = np.add.reduceat(mine, cuts) / sizes
    return _Bin(
        float(velocity[rows].mean()), means, sizes, float(np.sum((mine - np.repeat(means, sizes.astype(int))) ** 2))
    )


def _bins(velocity: Array, friction: Array, mine: NDArray[np.bool_], how: Averaging) -> list[_Bin]:
    """Of one direction, evenly in the logarithm of speed."""
    rows = np.flatnonzero(mine)
    if len(rows) < how.least:
        return []
    speed = np.abs(velocity[rows])
    edges = np.geomspace(speed.min(), speed.max() * (1 + 1e-12), how.bins + 1)
    place = np.clip(np.searchsorted(edges, speed, side="right") - 1, 0, how.bins - 1)
    members = [rows[place == k] for k in range(how.bins)]
    return [_bin(some, velocity, friction) for some in members if len(some) >= how.least]


def _deviations(bins: Sequence[_Bin]) -> Array:
    """How sure the means are: rows err by themselves, and each passage as a whole; both variances from all bins.

    σ_row² from the rows about the means of passages, σ_pass² from what these differ by more than their rows explain.
    """
    spare = sum(float(one.sizes.sum()) - len(one.sizes) for one in bins)
    of_rows = sum(one.spread for one in bins) / spare if spare > 0 else 0.0
    between = explained = free = 0.0
    for one in bins:
        between += float(np.sum((one.means - one.means.mean()) ** 2))
        explained += (len(one.means) - 1) * of_rows * float(np.mean(1.0 / one.sizes))
        free += len(one.means) - 1
    of_passages = max(0.0, (between - explained) / free) if free else 0.0
    shares = np.array([[1.0 / one.sizes.sum(), np.sum(one.sizes**2) / one.sizes.sum() ** 2] for one in bins])
    variance = shares @ [of_rows, of_passages]
    return np.sqrt(np.maximum(variance, np.finfo(float).tiny)) if variance.max() > 0 else np.ones(len(bins))


def friction_points(
    known: Robot | Estimate,
    recordings: Sequence[Recording],
    how: Averaging | None = None,
    preprocessing: object = "auto",
) -> list[FrictionPoints]:
    """Points of every joint from recordings as measured; `known` has the rigid bodies, its friction is not used.

    Rows in which a joint stands, as preprocessing sees it, are left out: slower than a hundredth of its brisk speed.
    """
    how = Averaging() if how is None else how
    robot = known if isinstance(known, Robot) else known.model.robot
    found: list[list[_Bin]] = [[] for _ in range(robot.n)]
    for recording in recordings:
        ready = prepare(recording, robot, preprocessing)
        if isinstance(known, Estimate):
            ready = shifted(ready, float(known.about.get("torque_delay_s", 0.0)))
        assert ready.qd is not None
        assert ready.qdd is not None
        left, still = friction_torque(known, ready), standstill_speeds(ready.qd)
        use = np.asarray(ready.more.get("use", np.ones(ready.tau.shape))) > 0.5
        use = np.broadcast_to(use[:, None] if use.ndim == 1 else use, ready.tau.shape)
        if how.steady is not None:
            use = use & (np.abs(ready.qdd) < how.steady)
        for j in range(robot.n):
            for sign in (1.0, -1.0):
                mine = use[:, j] & (sign * ready.qd[:, j] > max(still[j], 1e-12))
                found[j] += _bins(ready.qd[:, j], left[:, j], mine, how)
    if not any(found):
        raise DataError(
            "no joint moves enough for points of friction"
            + (f" below {how.steady:g} of acceleration; raise --steady" if how.steady is not None else "")
        )
    return [
        FrictionPoints(
            name,
            np.array([one.velocity for one in bins]),
            np.array([one.friction for one in bins]),
            _deviations(bins),
            linear=name in robot.layout.linear_dofs,
        )
        for name, bins in zip(robot.dof_names, found, strict=True)
        if bins
    ]
