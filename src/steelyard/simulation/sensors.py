"""What measuring adds: noise, steps, delay, bias, drift, gaps and spikes, all from one generator."""

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import OptionError

Array = NDArray[np.float64]


class Disturbance(NamedTuple):
    """Errors of the sensors inside the loop, a row a control tick; tables without rows for none."""

    position: Array
    velocity: Array
    dropped: NDArray[np.bool_]
    resolution: Array  # (n,) step of the encoders, 0: none


def undisturbed(n: int) -> Disturbance:
    """No errors at all."""
    return Disturbance(np.zeros((0, n)), np.zeros((0, n)), np.zeros((0, n), dtype=bool), np.zeros(n))


@dataclass(frozen=True, eq=False)
class Sensors:
    """Standard deviations and steps, one number or one a joint, SI.

    Noise, bias, drift, spikes, steps, delay and lost samples of positions are inside the control loop. Those of the
    torque are in what is recorded only: the drive does not see them.
    """

    position_noise: ArrayLike = 0.0  # rad or m, standard deviation
    position_step: ArrayLike = 0.0  # rad or m, of the encoder; 0: none
    position_bias: ArrayLike = 0.0
    position_drift: ArrayLike = 0.0  # rad/s or m/s
    position_outliers: float = 0.0  # share of position samples with a spike
    position_outlier_size: ArrayLike = 0.0  # rad or m; 0: twenty times the noise
    velocity: str = "differentiated"  # from measured positions, or "measured" with noise of its own
    velocity_noise: ArrayLike = 0.0  # rad/s or m/s
    torque_noise: ArrayLike = 0.0  # N·m or N
    torque_bias: ArrayLike = 0.0
    torque_drift: ArrayLike = 0.0  # N·m/s or N/s
    delay_ticks: int = 0  # control ticks from truth to measurement
    dropouts: float = 0.0  # share of position samples lost; the last word stands
    torque_dropouts: float = 0.0  # share of recorded torque samples lost; the last word stands
    outliers: float = 0.0  # share of recorded torque samples with a spike
    outlier_size: ArrayLike = 0.0  # N·m or N; 0: twenty times the noise

    def __post_init__(self) -> None:
        if self.velocity not in ("differentiated", "measured"):
            raise OptionError(f"velocity is '{self.velocity}'; valid: differentiated, measured")
        if int(self.delay_ticks) != self.delay_ticks or not 0 <= self.delay_ticks <= 10_000:
            raise OptionError(f"delay_ticks is {self.delay_ticks}; give a whole number from 0 to 10000")
        for name in ("dropouts", "torque_dropouts", "outliers", "position_outliers"):
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

    def in_the_loop(self, ticks: int, n: int, dt: float, rng: np.random.Generator) -> Disturbance:
        """What the controller's ticks see wrong."""
        position = self._additions("position", dt * np.arange(ticks, dtype=np.float64), n, rng)
        if self.position_outliers:
            size = self.per_joint("position_outlier_size", n)
            size = np.where(size > 0, size, 20 * self.per_joint("position_noise", n))
            position = (position if len(position) else 0.0) + self._spikes(
                self.position_outliers, size, (ticks, n), rng
            )
        velocity = np.zeros((0, n))
        if self.velocity == "measured" and np.any(self.velocity_noise):
            velocity = rng.standard_normal((ticks, n)) * self.per_joint("velocity_noise", n)
        lost = rng.random((ticks, n)) < self.dropouts if self.dropouts else np.zeros((0, n), dtype=bool)
        return Disturbance(position, velocity, lost, self.per_joint("position_step", n))

    def of_torque(self, t: Array, tau: Array, rng: np.random.Generator) -> Array:
        """Torque as it is recorded."""
        n = tau.shape[1]
        added = self._additions("torque", t - t[:1], n, rng)
        seen = np.add(tau, added, out=added) if len(added) else tau
        if self.outliers:
            size = self.per_joint("outlier_size", n)
            typical = np.maximum(self.per_joint("torque_noise", n), 1e-3 * np.abs(tau).max(0))
            seen = seen + self._spikes(self.outliers, np.where(size > 0, size, 20 * typical), tau.shape, rng)
        if self.torque_dropouts:
            lost = rng.random(tau.shape) < self.torque_dropouts
            lost[0] = False
            last = np.maximum.accumulate(np.where(lost, 0, np.arange(len(t))[:, None]), axis=0)
            seen = np.take_along_axis(seen, last, axis=0)
        return seen

    def _additions(self, what: str, t: Array, n: int, rng: np.random.Generator) -> Array:
        """Noise, bias and drift of positions or torques; no rows where there is none."""
        noise, bias, drift = (self.per_joint(f"{what}_{kind}", n) for kind in ("noise", "bias", "drift"))
        if not (noise.any() or bias.any() or drift.any()):
            return np.zeros((0, n))
        added = rng.standard_normal((len(t), n)) if noise.any() else np.zeros((len(t), n))
        added *= noise
        added += bias
        return added + np.outer(t, drift) if drift.any() else added

    @staticmethod
    def _spikes(share: float, size: Array, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        hit = rng.random(shape) < share
        return hit * rng.choice((-1.0, 1.0), size=shape) * size
