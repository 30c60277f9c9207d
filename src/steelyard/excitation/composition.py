"""Trajectories after one another: lead-in, periods, lead-out."""

from collections.abc import Sequence as Many
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from ..errors import OptionError
from .checks import Array, count, finite
from .splines import PointToPoint, shortest_time
from .trajectory import Fourier, Motion, Trajectory

# Ends that were written to a file with a few digits still match; relative to the value where it is above 1.
TOLERANCE = 1e-6
MAX_PARTS = 10_000


def _check_seam(number: int, before: Trajectory, after: Trajectory) -> None:
    """The sentence for two neighbours of which the second does not begin where the first ends."""
    if after.joints != before.joints:
        raise OptionError(
            f"part {number} moves {', '.join(before.joints[:20])}, part {number + 1} moves "
            f"{', '.join(after.joints[:20])}; give all parts the same joints in the same order"
        )
    ends, begins = before.sample(before.duration), after.sample(0.0)
    for quantity, end, begin in zip(("position", "velocity", "acceleration"), ends, begins, strict=True):
        gap = np.abs(end - begin) / np.maximum(1.0, np.maximum(np.abs(end), np.abs(begin)))
        if gap.max() > TOLERANCE:
            j = int(np.argmax(gap))
            raise OptionError(
                f"{quantity} of joint '{after.joints[j]}' jumps from {end[j] + 0.0:.9g} to {begin[j] + 0.0:.9g} "
                f"between parts {number} and {number + 1}; let each part begin as the one before it ends"
            )


@dataclass(frozen=True, eq=False)
class Sequence(Trajectory):
    """Trajectories after one another, each beginning where the one before ends, in q, q̇ and q̈."""

    parts: tuple[Trajectory, ...]

    def __post_init__(self) -> None:
        parts: list[Trajectory] = []
        for part in self.parts:
            parts += part.parts if isinstance(part, Sequence) else [part]
        if not parts or len(parts) > MAX_PARTS:
            raise OptionError(f"{len(parts)} trajectories in a sequence; 1 to {MAX_PARTS} are needed")
        for k, (before, after) in enumerate(pairwise(parts)):
            _check_seam(k + 1, before, after)
        self._set(parts=tuple(parts), joints=parts[0].joints)

    @cached_property
    def starts(self) -> Array:
        """When each part begins, and at last when the sequence ends."""
        return np.cumsum([0.0, *(part.duration for part in self.parts)])

    @property
    def duration(self) -> float:
        return float(self.starts[-1])

    def _at(self, t: Array) -> Motion:
        out = tuple(np.empty((t.size, self.n)) for _ in range(3))
        which = np.clip(np.searchsorted(self.starts, t, side="right") - 1, 0, len(self.parts) - 1)
        for k in np.unique(which):
            part, here = self.parts[k], which == k
            for whole, piece in zip(out, part._at(np.clip(t[here] - self.starts[k], 0.0, part.duration)), strict=True):
                whole[here] = piece
        return out[0], out[1], out[2]

    def _pick(self, index: list[int]) -> Self:
        return replace(self, parts=tuple(part._pick(index) for part in self.parts))

    def renamed(self, joints: Many[str]) -> Self:
        return replace(self, parts=tuple(part.renamed(joints) for part in self.parts))


def repeat(trajectory: Trajectory, periods: int) -> Trajectory:
    """The trajectory so many times after one another; its end has to be its beginning."""
    times = count("periods", periods)
    if isinstance(trajectory, Fourier):
        return replace(trajectory, periods=trajectory.periods * times)
    if times * len(getattr(trajectory, "parts", [None])) > MAX_PARTS:
        raise OptionError(f"{times} repetitions make more than {MAX_PARTS} parts; give fewer")
    return trajectory if times == 1 else Sequence((trajectory,) * times)


def with_leads(
    trajectory: Trajectory,
    pose: ArrayLike,
    velocity: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
    goal: ArrayLike | None = None,
) -> Trajectory:
    """A quintic from the robot's pose to where the trajectory begins, the trajectory, and a quintic to the goal.

    Both leads are as short as the velocity and acceleration limits (a number a joint) allow; the goal is the pose
    where none is given. A lead without a way is left out.
    """
    parts = [trajectory]
    for lead_in, place in ((True, pose), (False, pose if goal is None else goal)):
        end = trajectory.sample(0.0 if lead_in else trajectory.duration)[0]
        there = finite("pose" if lead_in or goal is None else "goal", place, 1)
        if there.shape != end.shape:
            raise OptionError(f"the pose has {there.size} joints, the trajectory {end.size}; give a number a joint")
        legs = (there, end) if lead_in else (end, there)
        seconds = shortest_time(*legs, velocity, acceleration)
        if seconds > 0:
            lead = PointToPoint(*legs, seconds, trajectory.joints)
            parts = [lead, *parts] if lead_in else [*parts, lead]
    return trajectory if len(parts) == 1 else Sequence(tuple(parts))
