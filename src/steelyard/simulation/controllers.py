"""Controllers as settings: gains a joint, what the model adds, and the torque that there is."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..dynamics import mass_matrix
from ..errors import OptionError
from ..robot.robot import Robot
from .kernels.loop import COMPUTED_TORQUE, FEEDBACK_ONLY, WITH_GRAVITY

Array = NDArray[np.float64]

# Of Kd dt / M. With velocities differenced over a tick a loop of one joint oscillates from 2 on, and rings from 1 on.
MOST_DAMPING_A_TICK = 0.8
LEAST_TO_MOVE = 0.02  # rad or m


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


def _usual_poses(robot: Robot, count: int = 64) -> Array:
    """The home pose, and places spread evenly over the joints' ranges: x_kj = k φ⁻ʲ mod 1 with φⁿ⁺¹ = φ + 1."""
    lower = np.where(np.isfinite(robot.limits.lower), robot.limits.lower, robot.home - np.pi)
    upper = np.where(np.isfinite(robot.limits.upper), robot.limits.upper, robot.home + np.pi)
    phi = 2.0
    for _ in range(60):
        phi = (1.0 + phi) ** (1.0 / (robot.n + 1))
    spread = np.outer(np.arange(1, count + 1), phi ** -np.arange(1.0, robot.n + 1)) % 1.0
    return np.vstack([robot.home, lower + (upper - lower) * spread])


def _borne_by_ticks(damping: Array, M: Array, control_hz: float) -> Array:
    """Kd lowered where it has to be for the largest eigenvalue of M⁻¹ Kd dt to keep to `MOST_DAMPING_A_TICK`.

    Along its eigenvector v the eigenvalue changes with each gain by the share Kd_k v_k² / Σ, which says what to lower.
    """
    for _ in range(200):
        values, vectors = np.linalg.eigh(_between(1.0 / np.sqrt(damping), M))
        # Eigenvalues of Kd^-½ M Kd^-½ are those of M⁻¹ Kd upside down; its eigenvectors squared are the shares.
        worst = int(values[:, 0].argmin())
        most = 1.0 / (control_hz * values[worst, 0])
        if most <= 1.001 * MOST_DAMPING_A_TICK:
            break
        damping = damping * (MOST_DAMPING_A_TICK / most) ** vectors[worst, :, 0] ** 2
    return damping


def _between(d: Array, M: Array) -> Array:
    return d[:, None] * M * d


def pid_for(
    robot: Robot,
    bandwidth_hz: float = 4.0,
    damping: float = 1.0,
    integral: float = 0.5,
    poses: ArrayLike | None = None,
    control_hz: float = 1000.0,
    dry: ArrayLike = 0.0,
    **more: object,
) -> Controller:
    """A PID whose joints, each with the largest inertia it has in some poses, follow with a bandwidth and damping.

    Kp = J ω², Kd = 2 ζ J ω, Ki = integral · ω Kp / 2π,    J = max M_kk(q)

    `dry` is a friction to be overcome: joints that would have to be wrong by more than `LEAST_TO_MOVE` for that get a
    larger bandwidth.

    `poses` are the home pose and 64 spread over the ranges, unless given; in lighter ones the loop is faster. It may
    become so fast that it oscillates from tick to tick of 1/`control_hz`: joints in which it would get less bandwidth.
    """
    if not (np.isfinite(bandwidth_hz) and bandwidth_hz > 0):
        raise OptionError(f"the bandwidth is {bandwidth_hz} Hz; it must be above zero")
    if not (np.isfinite(damping) and damping > 0):
        raise OptionError(f"the damping ratio is {damping}; it must be above zero")
    M = mass_matrix(robot, np.atleast_2d(_usual_poses(robot) if poses is None else np.asarray(poses, dtype=float)))
    J = np.diagonal(M, axis1=1, axis2=2).max(axis=0)
    wanted = np.maximum(2 * np.pi * bandwidth_hz, np.sqrt(np.asarray(dry, dtype=np.float64) / (LEAST_TO_MOVE * J)))
    kd = _borne_by_ticks(2 * damping * J * wanted, M, control_hz)
    omega = kd / (2 * damping * J)
    kp = J * omega**2
    return Controller(kp, kd, integral * omega / (2 * np.pi) * kp, **more)  # type: ignore[arg-type]


def computed_torque(bandwidth_hz: float = 4.0, damping: float = 1.0, **more: object) -> Controller:
    """Computed torque: an error that dies like ë + 2ζω ė + ω² e = 0 if the model is right."""
    omega = 2 * np.pi * bandwidth_hz
    return Controller(omega**2, 2 * damping * omega, model="computed torque", **more)  # type: ignore[arg-type]
