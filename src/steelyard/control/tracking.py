"""Controllers that learn nothing: feedback alone, and computed torque by a model or by what was identified."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.recording import Recording
from ..dynamics import inverse_dynamics
from ..errors import OptionError
from ..identification.estimate import Estimate
from ..robot.robot import Robot
from .loop import Seen, Wanted

Array = NDArray[np.float64]


def smoothing(cutoff_hz: float, dt: float) -> float:
    """The share of what is new in a first-order low-pass of one tick."""
    return float(-np.expm1(-2 * np.pi * cutoff_hz * dt))


class ErrorRate:
    """q − q_d and its rate, differenced and smoothed: a lag of the error harms less than one of the motion."""

    def __init__(self, n: int, cutoff_hz: float, dt: float) -> None:
        self.dt, self.share = dt, smoothing(cutoff_hz, dt)
        self.before: Array | None = None
        self.rate = np.zeros(n)

    def read(self, seen: Seen, wanted: Wanted) -> tuple[Array, Array]:
        error = seen.q - wanted.q
        change = np.zeros_like(error) if self.before is None else (error - self.before) / self.dt
        self.before = error
        self.rate = self.rate + self.share * (change - self.rate)
        return error, self.rate


def _positive(what: str, **values: float) -> None:
    for name, value in values.items():
        if not (np.isfinite(value) and value > 0):
            raise OptionError(f"{what}: {name} is {value}; give a finite number above 0")


@dataclass(frozen=True, eq=False)
class Feedback:
    """τ = −K_D (ė + Λ e), e = q − q_d: no model at all."""

    damping: ArrayLike  # K_D
    stiffness: float  # Λ, 1/s
    velocity_cutoff_hz: float = 60.0

    def start(self, n: int, dt: float) -> "_Feeding":
        return _Feeding(self, n, dt)


class _Feeding:
    def __init__(self, law: Feedback, n: int, dt: float) -> None:
        self.law, self.errors = law, ErrorRate(n, law.velocity_cutoff_hz, dt)

    def step(self, seen: Seen, wanted: Wanted) -> Array:
        error, rate = self.errors.read(seen, wanted)
        return -np.asarray(self.law.damping) * (rate + self.law.stiffness * error)


def torque_of(model: Robot | Estimate, q: Array, qd: Array, qdd: Array) -> Array:
    """What moves one state so, (n,): by a robot's parameters, or by an estimate with all of its terms."""
    if isinstance(model, Robot):
        return inverse_dynamics(model, q, qd, qdd)
    state = Recording(np.zeros(1), q[None], np.zeros((1, len(q))), qd[None], qdd[None])
    return model.model.torque(model.parameters, state)[0]


def refuse_memory(model: Robot | Estimate) -> None:
    """A friction that remembers (LuGre) is not told by one state."""
    if isinstance(model, Estimate) and (model.model.reads_whole or model.model.loads):
        raise OptionError(
            "this result has terms that need a whole recording (LuGre), or unknown loads; identify without them"
        )


@dataclass(frozen=True, eq=False)
class ComputedTorque:
    """τ = M̂ (q̈_d − Kv ė − Kp e) + Ĉ q̇ + ĝ + friction of a model or an estimate; Kp = ω², Kv = 2ζω."""

    model: Robot | Estimate
    bandwidth_hz: float = 4.0
    damping_ratio: float = 1.0
    velocity_cutoff_hz: float = 60.0

    def __post_init__(self) -> None:
        _positive("computed torque", bandwidth_hz=self.bandwidth_hz, damping_ratio=self.damping_ratio)
        refuse_memory(self.model)

    def start(self, n: int, dt: float) -> "_Computing":
        return _Computing(self, n, dt)


class _Computing:
    def __init__(self, law: ComputedTorque, n: int, dt: float) -> None:
        self.law, self.errors = law, ErrorRate(n, law.velocity_cutoff_hz, dt)

    def step(self, seen: Seen, wanted: Wanted) -> Array:
        error, rate = self.errors.read(seen, wanted)
        omega = 2 * np.pi * self.law.bandwidth_hz
        a = wanted.qdd - 2 * self.law.damping_ratio * omega * rate - omega**2 * error
        return torque_of(self.law.model, seen.q, wanted.qd + rate, a)
