"""A disturbance observer: what acts beside the model, friction above all, without measuring accelerations.

    d̂ = z + L p(q, q̇),   p = M(q) q̇,   ż = −L [d̂ + τ + C(q, q̇)ᵀ q̇ − g(q)]

so that d̂ follows the torque d in M q̈ + C q̇ + g = τ + d like a low-pass of L rad/s, for dp/dt = τ + Cᵀ q̇ − g + d. It is
the textbook's observer with p(q̇) made so that q̈ drops out: a low-pass of M q̈ would need what nobody measures. De Luca
and Mattone, ICRA 2005; Chen, Ballance, Gawthrop and O'Reilly, IEEE T. Industrial Electronics 47 (2000) 932.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..dynamics import coriolis_matrix, mass_matrix
from ..dynamics.rigid_body import gravity
from ..errors import OptionError
from ..robot.robot import Robot
from .loop import Seen, Wanted

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DisturbanceObserver:
    """τ = −γ d̂: what the observer sees is taken off, friction, wrong masses and pushes alike.

    `bandwidth_hz` is L/2π. A step takes the share 1 − exp(−L dt) of what is new, so that no L is unstable in itself;
    the loop around it is, where L is not well below what drive and encoders bear. `gain` below 1 leaves some friction.
    """

    robot: Robot
    bandwidth_hz: float = 10.0
    gain: float = 0.9

    def __post_init__(self) -> None:
        if not (np.isfinite(self.bandwidth_hz) and self.bandwidth_hz > 0):
            raise OptionError(f"disturbance observer: the bandwidth is {self.bandwidth_hz} Hz; give one above 0")
        if not (np.isfinite(self.gain) and 0 <= self.gain <= 1):
            raise OptionError(f"disturbance observer: the gain is {self.gain}; give 0 to 1")

    def start(self, n: int, dt: float) -> "_Observe":
        return _Observe(self, n, dt)


class _Observe:
    def __init__(self, settings: DisturbanceObserver, n: int, dt: float) -> None:
        self.settings, self.dt = settings, dt
        self.new = -np.expm1(-2 * np.pi * settings.bandwidth_hz * dt)
        self.seen = np.zeros(n)  # d̂
        self.momentum: Array | None = None
        self.drift = np.zeros(n)  # Cᵀ q̇ − g at the tick before

    def step(self, seen: Seen, wanted: Wanted) -> Array:
        robot = self.settings.robot
        momentum = mass_matrix(robot, seen.q) @ seen.qd
        drift = coriolis_matrix(robot, seen.q, seen.qd).T @ seen.qd - gravity(robot, seen.q)
        # The first velocity of differenced positions is the true one; noise enters with the second.
        if self.momentum is not None:
            push = (momentum - self.momentum) / self.dt - (seen.tau + 0.5 * (drift + self.drift))
            self.seen = self.seen + self.new * (push - self.seen)
        self.momentum, self.drift = momentum, drift
        return -self.settings.gain * self.seen

    def signals(self) -> dict[str, Array]:
        return {"disturbance": self.seen}
