"""What is added to a controller against friction: each way a settings object, put together with a base controller.

    controller = Compensated(Following(robot, gains), (FeedForward(law), Dither(law, frequency_hz=200.0)))
    run = run_controlled(plant, controller, reference)

The model of friction is anything with `torque(qd)` and `standstill()`: a law of `physics/friction.py`, or what
`steelyard friction` found. A survey of all of these is Armstrong-Hélouvry, Dupont and Canudas de Wit, Automatica 30
(1994) 1083.
"""

import warnings
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import OptionError
from .loop import Controlling, Seen, Steps, Wanted

Array = NDArray[np.float64]
# A sine needs more than two ticks a period to be one at all, and so many to keep most of its size.
_TICKS_A_PERIOD = 4.0
# A dither moves what the controller is to hold still, unless it is so many times faster.
_TIMES_THE_BANDWIDTH = 5.0


class DitherWarning(UserWarning):
    """A dither that the control rate cannot carry, or that the controller answers to."""


class FrictionModel(Protocol):
    """Friction as a function of the velocity, and the torques at which a joint stands."""

    def torque(self, qd: ArrayLike) -> Array: ...

    def standstill(self) -> tuple[Array, Array]:
        """Level and centre."""
        ...


class Compensating(Protocol):
    """A way to compensate as settings; its memory answers with the torque to be added."""

    def start(self, n: int, dt: float) -> Steps: ...


def _finite(what: str, least: float, **values: float) -> None:
    for name, value in values.items():
        if not (np.isfinite(value) and value >= least):
            raise OptionError(f"{what}: {name} is {value}; give a number of at least {least:g}")


def per_joint(what: str, name: str, value: ArrayLike, n: int) -> Array:
    """One number for all, or a number a joint, none below zero."""
    x = np.asarray(value, dtype=float)
    if x.shape not in ((), (1,), (n,)) or not (np.isfinite(x) & (x >= 0)).all():
        raise OptionError(f"{what}: {name} is {x.tolist()}; give one number, or {n}, none below zero")
    return np.array(np.broadcast_to(x, (n,)))


def newness(smoothing: float, dt: float) -> float:
    """The share of what is new in a first-order low-pass, a tick."""
    return float(-np.expm1(-dt / smoothing)) if smoothing > 0 else 1.0


@dataclass(frozen=True, eq=False)
class Compensated:
    """A controller with compensations beside it: τ = base + Σ parts."""

    base: Controlling
    parts: tuple[Compensating, ...] = ()

    def start(self, n: int, dt: float) -> "_Together":
        return _Together(self.base.start(n, dt), tuple(part.start(n, dt) for part in self.parts))


class _Together:
    def __init__(self, base: Steps, parts: tuple[Steps, ...]) -> None:
        self.base, self.parts = base, parts
        self.added = np.zeros(0)

    def step(self, seen: Seen, wanted: Wanted) -> Array:
        torque = np.asarray(self.base.step(seen, wanted), dtype=float)
        self.added = np.zeros_like(torque)
        for part in self.parts:
            self.added = self.added + part.step(seen, wanted)
        return torque + self.added

    def signals(self) -> dict[str, Array]:
        """What was added, and what the parts tell of themselves."""
        told: dict[str, Array] = {"compensation": self.added}
        for memory in (self.base, *self.parts):
            signals: Any = getattr(memory, "signals", None)
            told |= {} if signals is None else signals()
        return told


@dataclass(frozen=True, eq=False)
class FeedForward:
    """τ = γ F̂(q̇): a part γ of the friction that a model says, of the desired or of the measured velocity.

    γ stays below 1 on purpose. With the measured velocity τ − F is what drives the joint: where γF̂ exceeds F the
    joint is pushed the way it moves already, damping is negative, and it oscillates about any standstill. A peak at
    standstill counts: where γFs exceeds Fc, take the law without it (`FrictionCurve.without_peak`). With the desired
    velocity nothing is fed back, but a joint that has stopped is pushed all the same. Within ±`width` of standstill
    the torque goes from one side to the other in a straight line; measured velocities need a width above their noise.
    """

    friction: FrictionModel
    gain: float = 0.8
    velocity: str = "desired"
    width: float = 5e-3  # rad/s or m/s

    def __post_init__(self) -> None:
        _finite("feed-forward", 0.0, gain=self.gain)
        _finite("feed-forward", 1e-9, width=self.width)
        if self.velocity not in ("desired", "measured"):
            raise OptionError(f"feed-forward: velocity is '{self.velocity}'; valid: desired, measured")

    def start(self, n: int, dt: float) -> "_Feed":
        return _Feed(self, n)


class _Feed:
    def __init__(self, settings: FeedForward, n: int) -> None:
        self.settings = settings
        edge = np.full(n, settings.width)
        self.forward, self.backward = settings.friction.torque(edge), settings.friction.torque(-edge)
        if np.shape(self.forward) != (n,):
            raise OptionError(f"feed-forward: the friction is of {np.size(self.forward)} joints, the plant has {n}")

    def step(self, seen: Seen, wanted: Wanted) -> Array:
        settings = self.settings
        qd = wanted.qd if settings.velocity == "desired" else seen.qd
        share = 0.5 + 0.5 * qd / settings.width
        line = share * self.forward + (1.0 - share) * self.backward
        return np.asarray(settings.gain * np.where(np.abs(qd) < settings.width, line, settings.friction.torque(qd)))


@dataclass(frozen=True, eq=False)
class Adaptive:
    """τ = φᵀθ̂,  θ̂̇ = −Γ φ s,  s = (q̇ − q̇_d) + λ (q − q_d),  φ = [sgn q̇_d, q̇_d] (and 1, with `offset`).

    θ̂ = [Fc, Bv] stays at or above zero (projection); within the dead zone |s| < Δ nothing is learnt, or noise would
    be. φ is of the desired velocity, which has no noise; that in s is smoothed over `smoothing`. Γ is a number a joint,
    N·m/rad: `rate` for sgn and offset; for damping, `rate` over the square of the largest speed so far. Slotine and
    Li, Applied Nonlinear Control, 1991, ch. 8.
    """

    rate: ArrayLike  # N·m/rad
    slope: float  # λ, 1/s
    dead_zone: ArrayLike = 0.0  # Δ, rad/s or m/s
    width: float = 5e-3  # of sgn, as in `FeedForward`
    offset: bool = True
    begin: ArrayLike = 0.0  # of Fc
    smoothing: float = 0.005  # s

    def __post_init__(self) -> None:
        _finite("adaptive compensation", 0.0, slope=self.slope, smoothing=self.smoothing)
        _finite("adaptive compensation", 1e-9, width=self.width)

    def start(self, n: int, dt: float) -> "_Adapt":
        return _Adapt(self, n, dt)


class _Adapt:
    def __init__(self, settings: Adaptive, n: int, dt: float) -> None:
        what = "adaptive compensation"
        self.settings, self.dt = settings, dt
        self.rate = per_joint(what, "rate", settings.rate, n)
        self.dead_zone = per_joint(what, "dead_zone", settings.dead_zone, n)
        self.theta = np.zeros((3, n))
        self.theta[0] = per_joint(what, "begin", settings.begin, n)
        self.fastest, self.lag = np.zeros(n), np.zeros(n)
        self.new = newness(settings.smoothing, dt)

    def step(self, seen: Seen, wanted: Wanted) -> Array:
        settings = self.settings
        self.lag = self.lag + self.new * (seen.qd - wanted.qd - self.lag)
        s = self.lag + settings.slope * (seen.q - wanted.q)
        s = np.where(np.abs(s) < self.dead_zone, 0.0, s)
        self.fastest = np.maximum(self.fastest, np.abs(wanted.qd))
        sign = np.clip(wanted.qd / settings.width, -1.0, 1.0)
        phi = np.stack([sign, wanted.qd, np.full_like(sign, float(settings.offset))])
        rates = np.stack([self.rate, self.rate / np.maximum(self.fastest, settings.width) ** 2, self.rate])
        self.theta = self.theta - self.dt * rates * phi * s
        self.theta[:2] = np.maximum(self.theta[:2], 0.0)
        return np.asarray(np.sum(phi * self.theta, axis=0))

    def signals(self) -> dict[str, Array]:
        return {"theta": self.theta}


@dataclass(frozen=True, eq=False)
class Dither:
    """τ = A sin(2π f t), A a share of the static friction, 10–20 %, and f of 100–500 Hz: above the bandwidth.

    A joint that vibrates does not stick; on the average it feels friction as if it were viscous. Warns where the
    control rate cannot carry the sine, and where the controller would answer to it.
    """

    friction: FrictionModel
    share: float = 0.15
    frequency_hz: float = 200.0
    bandwidth_hz: float | None = None  # of the controller, to be compared with

    def __post_init__(self) -> None:
        _finite("dither", 0.0, share=self.share)
        _finite("dither", 1e-9, frequency_hz=self.frequency_hz)

    def cautions(self, control_hz: float) -> list[str]:
        """What speaks against this dither at a control rate."""
        f, told = self.frequency_hz, []
        if f >= 0.5 * control_hz:
            told.append(
                f"a dither of {f:g} Hz is not there at {control_hz:g} ticks a second, which carry less than "
                f"{0.5 * control_hz:g} Hz (Nyquist); lower it or raise the control rate"
            )
        elif f > control_hz / _TICKS_A_PERIOD:
            told.append(
                f"a dither of {f:g} Hz has {control_hz / f:.2g} ticks a period at {control_hz:g} Hz and comes out "
                f"distorted; keep below {control_hz / _TICKS_A_PERIOD:g} Hz"
            )
        if self.bandwidth_hz is not None and f < _TIMES_THE_BANDWIDTH * self.bandwidth_hz:
            told.append(
                f"a dither of {f:g} Hz is within reach of a controller of {self.bandwidth_hz:g} Hz, which will answer "
                f"it; take at least {_TIMES_THE_BANDWIDTH * self.bandwidth_hz:g} Hz"
            )
        return told

    def start(self, n: int, dt: float) -> "_Shake":
        for text in self.cautions(1.0 / dt):
            warnings.warn(text, DitherWarning, stacklevel=3)
        level = np.broadcast_to(self.friction.standstill()[0], (n,))
        return _Shake(self.share * level, 2 * np.pi * self.frequency_hz)


class _Shake:
    def __init__(self, amplitude: Array, rate: float) -> None:
        self.amplitude, self.rate = amplitude, rate

    def step(self, seen: Seen, wanted: Wanted) -> Array:
        return np.asarray(self.amplitude * np.sin(self.rate * seen.t))


@dataclass(frozen=True, eq=False)
class Pulse:
    """While |q̇| < threshold and |q_d − q| > deadband: τ = sgn(q_d − q) · amplitude, in pulses with pauses between.

    The amplitude is a share of the static friction. A pulse lasts `length` and ends at once when the joint moves; the
    next one comes no sooner than `pause` after it. Measured velocities are smoothed over `smoothing` before they are
    compared, and the threshold has to be above what is left of their noise.
    """

    friction: FrictionModel
    share: float = 0.5
    threshold: ArrayLike = 5e-3  # rad/s or m/s
    deadband: ArrayLike = 5e-4  # rad or m
    length: float = 0.01  # s
    pause: float = 0.02  # s
    smoothing: float = 0.005  # s

    def __post_init__(self) -> None:
        _finite("pulses", 0.0, share=self.share, pause=self.pause, smoothing=self.smoothing)
        _finite("pulses", 1e-6, length=self.length)

    def start(self, n: int, dt: float) -> "_Push":
        return _Push(self, n, dt)


class _Push:
    def __init__(self, settings: Pulse, n: int, dt: float) -> None:
        self.settings = settings
        self.amplitude = settings.share * np.broadcast_to(settings.friction.standstill()[0], (n,))
        self.threshold = per_joint("pulses", "threshold", settings.threshold, n)
        self.deadband = per_joint("pulses", "deadband", settings.deadband, n)
        self.new = newness(settings.smoothing, dt)
        self.speed: Array | None = None
        self.begun, self.sign = np.full(n, -np.inf), np.zeros(n)

    def step(self, seen: Seen, wanted: Wanted) -> Array:
        self.speed = seen.qd.copy() if self.speed is None else self.speed + self.new * (seen.qd - self.speed)
        error = wanted.q - seen.q
        stuck = (np.abs(self.speed) < self.threshold) & (np.abs(error) > self.deadband)
        over = seen.t - self.begun >= self.settings.length + self.settings.pause
        fresh = stuck & over
        self.begun = np.where(fresh, seen.t, self.begun)
        self.sign = np.where(fresh, np.sign(error), self.sign)
        running = stuck & (seen.t - self.begun < self.settings.length)
        return np.asarray(np.where(running, self.sign * self.amplitude, 0.0))
