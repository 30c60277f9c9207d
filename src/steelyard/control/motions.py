"""Motions for demonstrations of controllers: standing still, exciting, or a trajectory of the user's."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import OptionError
from ..excitation.composition import repeat
from ..excitation.design import design_excitation
from ..excitation.exchange import read_trajectory
from ..excitation.trajectory import Trajectory
from ..robot.robot import Robot
from ..simulation.reference import reference_of, tick_count

Array = NDArray[np.float64]

_PERIOD, _MARGIN, _STARTS, _ROUNDS = 5.0, 0.25, 1, 2  # s; room for feedback; enough for a demonstration


def reference_motion(
    robot: Robot,
    motion: str,
    seconds: float | None = None,
    *,
    only: Iterable[str] | None = None,
    control_hz: float = 1000.0,
    seed: int = 0,
) -> Array:
    """A reference (3, ticks, n): "still" in the home pose, "excite" for the parameters `only`, or a trajectory's file.

    A file is run through once, or, if `seconds` says longer, again and again. Otherwise 20 s are the default.
    """
    if seconds is not None and not (np.isfinite(seconds) and 0.5 <= seconds <= 1200):
        raise OptionError(f"the motion is to last {seconds} s; give 0.5 … 1200 s")
    if motion in ("still", "excite"):
        ticks = tick_count(20.0 if seconds is None else seconds, control_hz)
        if motion == "still":
            reference = np.zeros((3, ticks, robot.n))
            reference[0] = robot.home
            return reference
        path: Trajectory = design_excitation(
            robot, period=_PERIOD, only=only, margin=_MARGIN, starts=_STARTS, rounds=_ROUNDS, seed=seed
        ).trajectory
    else:
        if not Path(motion).exists():
            raise OptionError(f"the motion '{motion}' is none of still, excite, and no file; give one of them")
        path = read_trajectory(motion, robot.dof_names)
        ticks = tick_count(path.duration if seconds is None else seconds, control_hz)
    periods = max(1, int(np.ceil((ticks - 1) / control_hz / path.duration - 1e-9)))
    return np.ascontiguousarray(reference_of(repeat(path, periods), control_hz)[:, :ticks])
