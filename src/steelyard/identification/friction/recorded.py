"""Points of friction from recordings: measured torque less that of rigid bodies, averaged where the velocity is alike.

    friction = tau − [M q̈ + C q̇ + g + armature·q̈]

Every direction's velocities are cut into bins, evenly in the logarithm. A bin's mean counts as good as the number of
times that the joint came through: samples of one passage err together.
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


def _passages(rows: NDArray[np.int64]) -> int:
    """Runs of rows that follow each other."""
    return 1 + int(np.count_nonzero(np.diff(rows) > 1))


def _of_direction(speed: Array, friction: Array, how: Averaging) -> list[tuple[float, float, float]]:
    """Mean speed, mean friction and relative deviation of every bin of one direction; speed is NaN elsewhere."""
    mine = np.flatnonzero(np.isfinite(speed))
    if len(mine) < how.least:
        return []
    edges = np.geomspace(speed[mine].min(), speed[mine].max() * (1 + 1e-12), how.bins + 1)
    place = np.clip(np.searchsorted(edges, speed[mine], side="right") - 1, 0, how.bins - 1)
    points = []
    for k in range(how.bins):
        rows = mine[place == k]
        if len(rows) >= how.least:
            points.append((float(speed[rows].mean()), float(friction[rows].mean()), 1.0 / np.sqrt(_passages(rows))))
    return points


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
    found: list[list[tuple[float, float, float]]] = [[] for _ in range(robot.n)]
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
                speed = sign * ready.qd[:, j]
                mine = use[:, j] & (speed > max(still[j], 1e-12))
                points = _of_direction(np.where(mine, speed, np.nan), left[:, j], how)
                found[j] += [(sign * v, tau, deviation) for v, tau, deviation in points]
    empty = [name for name, points in zip(robot.dof_names, found, strict=True) if not points]
    if len(empty) == robot.n:
        raise DataError(
            "no joint moves enough for points of friction"
            + (f" below {how.steady:g} of acceleration; raise --steady" if how.steady is not None else "")
        )
    return [
        FrictionPoints(name, *np.array(points).T, linear=name in robot.layout.linear_dofs)
        for name, points in zip(robot.dof_names, found, strict=True)
        if points
    ]
