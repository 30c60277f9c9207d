"""Controllers as settings: gains a joint, what the model adds, and the torque that there is."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..dynamics import mass_matrix
from ..errors import OptionError
from ..robot.robot import Robot
from .kernels.loop import COMPUTED_TORQUE, FEEDBACK_ONLY, WITH_GRAVITY

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Controller:
    """tau = Kp (q_d − q_m) + Kd (q̇_d − q̇_m) + Ki ∫(q_d − q_m) dt, saturated at `limit`, with anti-windup.

    `model` adds the nominal robot's gravity ("gravity"), or lets the gains shape an acceleration that the nominal
    model turns into torque ("computed torque"). `feed_forward` adds the torque that the nominal model needs for the
    desired motion. No limit: that of the robot's joints, where known.
    """

    kp: ArrayLike
    kd: ArrayLike
    ki: ArrayLike = 0.0
    limit: ArrayLike | None = None
    model: str = "none"
    feed_forward: bool = False

    def mode(self) -> int:
        modes = {"none": FEEDBACK_ONLY, "gravity": WITH_GRAVITY, "computed torque": COMPUTED_TORQUE}
        if self.model not in modes:
            raise OptionError(f"no controller model '{self.model}'; valid: {', '.join(modes)}")
        return modes[self.model]

    def gains(self, n: int) -> Array:
        """Rows Kp, Ki, Kd, a column a joint."""
        rows = []
        for name in ("kp", "ki", "kd"):
            value = np.asarray(getattr(self, name), dtype=np.float64)
            if value.shape not in ((), (n,)) or not (np.isfinite(value) & (value >= 0)).all():
                raise OptionError(f"{name} is {getattr(self, name)}; give one number, or {n}, none below zero")
            rows.append(np.broadcast_to(value, (n,)))
        return np.array(rows)

    def limits(self, robot: Robot) -> Array:
        value = robot.limits.torque if self.limit is None else np.asarray(self.limit, dtype=np.float64)
        if value.shape not in ((), (robot.n,)) or not (value > 0).all():
            raise OptionError(f"the torque limit is {self.limit}; give one positive number, or {robot.n}")
        return np.array(np.broadcast_to(value, (robot.n,)))


def pid_for(
    robot: Robot, bandwidth_hz: float = 4.0, damping: float = 1.0, integral: float = 0.5, **more: object
) -> Controller:
    """A PID whose joints, each with the inertia it has in the home pose, follow with a bandwidth and damping.

    Kp = J ω², Kd = 2 ζ J ω, Ki = integral · ω Kp / 2π.
    """
    if not (np.isfinite(bandwidth_hz) and bandwidth_hz > 0):
        raise OptionError(f"the bandwidth is {bandwidth_hz} Hz; it must be above zero")
    omega = 2 * np.pi * bandwidth_hz
    J = np.diag(mass_matrix(robot, robot.home))
    kp = J * omega**2
    return Controller(kp, 2 * damping * J * omega, integral * omega / (2 * np.pi) * kp, **more)  # type: ignore[arg-type]


def computed_torque(bandwidth_hz: float = 4.0, damping: float = 1.0, **more: object) -> Controller:
    """Computed torque: an error that dies like ë + 2ζω ė + ω² e = 0 if the model is right."""
    omega = 2 * np.pi * bandwidth_hz
    return Controller(omega**2, 2 * damping * omega, model="computed torque", **more)  # type: ignore[arg-type]
