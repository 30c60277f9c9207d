"""What measuring adds: noise, steps, delay, bias, drift, gaps and spikes, all from one generator."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import OptionError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sensors:
    """Standard deviations and steps, one number or one a joint, SI.

    Position noise, bias, steps, delay and lost samples are inside the control loop. Noise, bias, drift and spikes of
    the torque are in what is recorded only: the drive does not see them.
    """

    position_noise: ArrayLike = 0.0  # rad or m, standard deviation
    position_step: ArrayLike = 0.0  # rad or m, of the encoder; 0: none
    position_bias: ArrayLike = 0.0
    velocity: str = "differentiated"  # from measured positions, or "measured" with noise of its own
    velocity_noise: ArrayLike = 0.0  # rad/s or m/s
    torque_noise: ArrayLike = 0.0  # N·m or N
    torque_bias: ArrayLike = 0.0
    torque_drift: ArrayLike = 0.0  # N·m/s or N/s
    delay_ticks: int = 0  # control ticks from truth to measurement
    dropouts: float = 0.0  # share of position samples lost; the last word stands
    outliers: float = 0.0  # share of recorded torque samples with a spike
    outlier_size: ArrayLike = 0.0  # N·m or N; 0: twenty times the noise

    def __post_init__(self) -> None:
        if self.velocity not in ("differentiated", "measured"):
            raise OptionError(f"velocity is '{self.velocity}'; valid: differentiated, measured")
        if int(self.delay_ticks) != self.delay_ticks or not 0 <= self.delay_ticks <= 10_000:
            raise OptionError(f"delay_ticks is {self.delay_ticks}; give a whole number from 0 to 10000")
        for name in ("dropouts", "outliers"):
            if not 0 <= getattr(self, name) < 1:
                raise OptionError(f"{name} is {getattr(self, name)}; it is a share, from 0 to below 1")
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, str):
                continue
            if not np.isfinite(np.asarray(value, dtype=np.float64)).all():
                raise OptionError(f"{field.name} is {value}; it must be finite")
            if field.name.endswith(("noise", "step", "size")) and (np.asarray(value) < 0).any():
                raise OptionError(f"{field.name} is {value}; it cannot be below zero")

    def per_joint(self, name: str, n: int) -> Array:
        value = np.asarray(getattr(self, name), dtype=np.float64)
        if value.shape not in ((), (n,)):
            raise OptionError(f"{name} has shape {value.shape}; give one number, or {n}, one a joint")
        return np.array(np.broadcast_to(value, (n,)))

    def in_the_loop(self, ticks: int, n: int, rng: np.random.Generator) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Position and velocity errors and lost samples of every control tick."""
        position = self.per_joint("position_bias", n) + self._normal("position_noise", ticks, n, rng)
        velocity = self._normal("velocity_noise", ticks, n, rng)
        lost = rng.random((ticks, n)) < self.dropouts if self.dropouts else np.zeros((ticks, n), dtype=bool)
        return position, velocity, lost

    def of_torque(self, t: Array, tau: Array, rng: np.random.Generator) -> Array:
        """Torque as it is recorded."""
        n = tau.shape[1]
        seen = tau + self.per_joint("torque_bias", n) + np.outer(t - t[:1], self.per_joint("torque_drift", n))
        seen = seen + self._normal("torque_noise", len(t), n, rng)
        if self.outliers:
            size = self.per_joint("outlier_size", n)
            size = np.where(
                size > 0, size, 20 * np.maximum(self.per_joint("torque_noise", n), 1e-3 * np.abs(tau).max(0))
            )
            hit = rng.random(tau.shape) < self.outliers
            seen = seen + hit * rng.choice((-1.0, 1.0), size=tau.shape) * size
        return seen

    def _normal(self, name: str, rows: int, n: int, rng: np.random.Generator) -> Array:
        deviation = self.per_joint(name, n)
        return rng.normal(size=(rows, n)) * deviation if deviation.any() else np.zeros((rows, n))
