"""The controllers of `simulation/` as step functions, so that compensations can be added to them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..dynamics import inverse_dynamics
from ..dynamics.rigid_body import gravity
from ..errors import OptionError
from ..robot.robot import Robot
from ..simulation.controllers import Controller
from ..simulation.kernels.loop import COMPUTED_TORQUE, WITH_GRAVITY
from .loop import Seen, Wanted

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Following:
    """A `Controller` (PD, with gravity, or computed torque) as `run_controlled` takes it; `robot` is what it knows.

    The robot's own friction is part of computed torque; give one without, where a compensation is to see to friction.
    Integral action is that of `simulate()`; here the plant saturates, so there is none to wind up.
    """

    robot: Robot
    controller: Controller

    def __post_init__(self) -> None:
        gains = self.controller.gains(self.robot.n)
        if gains[1].any():
            raise OptionError("a controller with integral action is not followed here; give ki=0")
        if self.controller.feed_forward:
            raise OptionError("feed_forward is of simulate(); here computed torque has the wanted acceleration in it")
        self.controller.mode()

    def start(self, n: int, dt: float) -> "_Follow":
        if n != self.robot.n:
            raise OptionError(f"the controller knows a robot of {self.robot.n} joints, the plant has {n}")
        return _Follow(self.robot, self.controller)


class _Follow:
    def __init__(self, robot: Robot, controller: Controller) -> None:
        self.robot, self.mode = robot, controller.mode()
        self.kp, _, self.kd = controller.gains(robot.n)

    def step(self, seen: Seen, wanted: Wanted) -> Array:
        feedback = self.kp * (wanted.q - seen.q) + self.kd * (wanted.qd - seen.qd)
        if self.mode == COMPUTED_TORQUE:
            return inverse_dynamics(self.robot, seen.q, seen.qd, wanted.qdd + feedback)
        return np.asarray(feedback + gravity(self.robot, seen.q) if self.mode == WITH_GRAVITY else feedback)
