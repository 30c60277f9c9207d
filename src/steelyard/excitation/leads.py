"""The way from a pose into a trajectory and back, within what the trajectory keeps."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..errors import OptionError
from ..robot.robot import Robot
from .composition import repeat, with_leads
from .constraints import KeepWithin, Motion, worst_violations
from .design import requirements
from .trajectory import Trajectory


def lead_in_and_out(
    robot: Robot,
    trajectory: Trajectory,
    pose: ArrayLike,
    margin: float = 0.05,
    keep: Sequence[KeepWithin] = (),
    clearance: float | None = 0.01,
    periods: int = 1,
) -> Trajectory:
    """The trajectory, so many times, with a quintic from a pose before it and back to the pose after it, at half speed.

    The leads keep what the trajectory keeps, or the error says what they break.
    """
    bounded, constraints, _ = requirements(robot, margin, keep, clearance)
    limits = bounded.limits
    slow = (0.5 * limits.velocity, 0.5 * limits.acceleration)
    # One repetition has all that several have.
    whole = with_leads(trajectory, pose, *slow)
    t = np.linspace(0.0, whole.duration, max(200, int(200 * whole.duration)))
    worst = max(worst_violations(constraints, Motion(bounded, *whole.sample(t)), t), key=lambda one: one.amount)
    if worst.amount > 0:
        raise OptionError(f"the way from the pose to the trajectory breaks a limit: {worst}; choose another pose")
    return whole if periods == 1 else with_leads(repeat(trajectory, periods), pose, *slow)
