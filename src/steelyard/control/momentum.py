"""What pushes a robot from outside, seen by its momentum: joint torques, and the force at a point.

    p = M q̇,   ṗ = τ + Cᵀ q̇ − g − friction + τ_ext
    r_k = r_{k−1} + (1 − e^{−K dt}) ((p_k − p_{k−1})/dt − mean of (τ + Cᵀ q̇ − g − friction) − r_{k−1})

so that r is τ_ext through a low-pass of K, and accelerations are not needed. One such low-pass lets the noise of p
through, K times as large, however fast it is; a second one in a row (`order` 2) takes it away. De Luca,
Albu-Schäffer, Haddadin and Hirzinger, IROS 2006; Haddadin, De Luca and Albu-Schäffer, IEEE Trans. Robotics 33 (2017).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.recording import Recording
from ..dynamics import coriolis_matrix, inverse_dynamics, jacobian
from ..errors import DataError, OptionError
from ..identification.estimate import Estimate
from ..robot.robot import Robot
from .tracking import refuse_memory

Array = NDArray[np.float64]

_AT_ONCE = 8192  # samples, of matrices


@dataclass(frozen=True, eq=False)
class MomentumObserver:
    """The observer of a robot, by its model or by what was identified of it; `bandwidth_hz` is K/2π of each low-pass.

    `torque` says how samples of torque stand to the time between them: "sampled" ones are joined by lines, "held" ones
    last until the next, as a controller's do.
    """

    model: Robot | Estimate
    bandwidth_hz: float = 8.0
    order: int = 2
    torque: str = "sampled"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.bandwidth_hz) and self.bandwidth_hz > 0):
            raise OptionError(f"the observer's bandwidth is {self.bandwidth_hz} Hz; give a finite number above 0")
        if self.order not in (1, 2, 3):
            raise OptionError(f"the observer's order is {self.order}; valid: 1, 2, 3")
        if self.torque not in ("sampled", "held"):
            raise OptionError(f"torque is '{self.torque}'; valid: sampled, held")
        refuse_memory(self.model)
        if self.robot.nq != self.robot.n:
            raise OptionError(f"{self.robot.name} has ball or free joints; the observer is for hinges and slides")

    @property
    def lag(self) -> float:
        """By how much a slowly changing push is told late, s."""
        return self.order / (2 * np.pi * self.bandwidth_hz)

    @cached_property
    def robot(self) -> Robot:
        """The robot with the parameters that the observer believes."""
        return self.model if isinstance(self.model, Robot) else self.model.robot

    @cached_property
    def _gains(self) -> Array:
        return np.ones(self.robot.n) if isinstance(self.model, Robot) else self.model.model.gains

    def momentum(self, q: Array, qd: Array) -> Array:
        """M q̇ of samples (T, n), rotors included: the torque of an acceleration that is q̇, less that of none."""
        zero = np.zeros_like(qd)
        return self._torque(q, zero, qd) - self._torque(q, zero, zero)

    def balance(self, q: Array, qd: Array) -> Array:
        """Cᵀ q̇ − g − friction of samples (T, n): what changes momentum beside torque.

        Torque at q̈ = 0 is C q̇ + g + friction, whatever the friction is; Cᵀ q̇ + C q̇ is Ṁ q̇.
        """
        C = coriolis_matrix(self.robot, q, qd)
        return np.einsum("tij,tj->ti", C + C.transpose(0, 2, 1), qd) - self._torque(q, qd, np.zeros_like(qd))

    def _torque(self, q: Array, qd: Array, qdd: Array) -> Array:
        if isinstance(self.model, Robot):
            return inverse_dynamics(self.model, q, qd, qdd)
        return self.model.torque(Recording(np.arange(len(q), dtype=float), q, np.zeros_like(q), qd, qdd)) * self._gains

    def driving(self, tau: Array) -> Array:
        """Torque as the model understands it, of torque as it was recorded."""
        return np.asarray(tau * self._gains)


class Watching(NamedTuple):
    """What the observer remembers from one sample to the next."""

    t: float
    q: Array
    momentum: Array
    driving: Array  # τ
    balance: Array
    stages: Array  # (order, n) what each low-pass holds

    @property
    def residual(self) -> Array:
        """r, the torque from outside."""
        return np.asarray(self.stages[-1])


def init(observer: MomentumObserver, t: float, q: ArrayLike, qd: ArrayLike, tau: ArrayLike) -> Watching:
    """The first sample; nothing pushes yet."""
    q, qd, tau = (np.asarray(x, dtype=np.float64)[None] for x in (q, qd, tau))
    nothing = np.zeros((observer.order, observer.robot.n))
    momentum, driving, balance = observer.momentum(q, qd)[0], observer.driving(tau)[0], observer.balance(q, qd)[0]
    return Watching(t, q[0], momentum, driving, balance, nothing)


def step(
    observer: MomentumObserver, state: Watching, t: float, q: ArrayLike, qd: ArrayLike, tau: ArrayLike
) -> Watching:
    """The next sample; `state.residual` is the torque from outside."""
    if not t > state.t:
        raise DataError(f"time does not advance: {state.t:g} -> {t:g} s")
    following = init(observer, t, q, qd, tau)
    momentum = np.stack([state.momentum, following.momentum])
    driving = np.stack([state.driving, following.driving])
    balance = np.stack([state.balance, following.balance])
    times, held = np.array([state.t, t]), observer.torque == "held"
    stages = _moved(observer.bandwidth_hz, times, momentum, driving, balance, state.stages, held)
    return following._replace(stages=stages[1])


def _moved(
    bandwidth_hz: float, t: Array, momentum: Array, driving: Array, balance: Array, first: Array, held: bool
) -> Array:
    """What the low-passes hold at every sample, (T, order, n), from what they hold at the first."""
    dt = np.diff(t)[:, None]
    acted = driving[:-1] if held else 0.5 * (driving[:-1] + driving[1:])
    between = acted + 0.5 * (balance[:-1] + balance[1:])
    pushed = np.diff(momentum, axis=0) / dt - between
    share = -np.expm1(-2 * np.pi * bandwidth_hz * dt)
    stages = np.empty((len(t), *first.shape))
    stages[0] = first
    for j in range(len(first)):
        r, put = first[j], stages[:, j]
        into = pushed if j == 0 else stages[1:, j - 1]
        for k in range(len(into)):
            r = r + share[k] * (into[k] - r)
            put[k + 1] = r
    return stages


class Residuals(NamedTuple):
    """Torque from outside at the times of a recording, or halfway between them, with the motion there."""

    t: Array
    q: Array
    qd: Array
    torque: Array  # (T, n), r


def _halfway(recording: Recording, held: bool) -> Recording:
    """A recording without velocities at the middles of its intervals, where differences of positions are velocities."""
    dt = np.diff(recording.t)
    tau = recording.tau[:-1] if held else 0.5 * (recording.tau[:-1] + recording.tau[1:])
    q = 0.5 * (recording.q[:-1] + recording.q[1:])
    return Recording(recording.t[:-1] + 0.5 * dt, q, tau, np.diff(recording.q, axis=0) / dt[:, None])


def residuals(observer: MomentumObserver, recording: Recording) -> Residuals:
    """r of a whole recording: what `init` and `step` give sample by sample, with nothing looked at before its time."""
    n, name = observer.robot.n, observer.robot.name
    if recording.n != n:
        raise DataError(f"the recording has {recording.n} joints, {name} has {n}; lock joints (--lock), or map columns")
    if len(recording) < 3:
        raise DataError(f"the recording has {len(recording)} samples; at least three are needed")
    for what, x in (("q", recording.q), ("tau", recording.tau), ("qd", recording.qd)):
        if x is not None and not np.isfinite(x).all():
            k = int(np.flatnonzero(~np.isfinite(x).all(axis=1))[0])
            raise DataError(f"{what} is not finite at {recording.t[k]:.4f} s; repair the recording (--repair)")
    held = observer.torque == "held"
    ready = _halfway(recording, held) if recording.qd is None else recording
    assert ready.qd is not None
    momentum, balance = np.empty((2, *ready.q.shape))
    for k in range(0, len(ready), _AT_ONCE):
        some = slice(k, k + _AT_ONCE)
        momentum[some] = observer.momentum(ready.q[some], ready.qd[some])
        balance[some] = observer.balance(ready.q[some], ready.qd[some])
    held = held and ready is recording  # halfway, what is held half of each interval is the mean of both
    nothing, driving = np.zeros((observer.order, n)), observer.driving(ready.tau)
    stages = _moved(observer.bandwidth_hz, ready.t, momentum, driving, balance, nothing, held)
    return Residuals(ready.t, ready.q, ready.qd, stages[:, -1])


@dataclass(frozen=True, eq=False)
class Tool:
    """A point that is pushed at: a body, and where on it, in the body's frame."""

    body: str
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def jacobian(self, robot: Robot, q: Array) -> Array:
        """(T, 3, n), of the point's velocity in the axes of the base."""
        return np.atleast_3d(jacobian(robot, q, self.body, self.offset))[:, :3]


def force_at(robot: Robot, tool: Tool, q: Array, residual: Array, deviation: Array) -> tuple[Array, Array, Array]:
    """The forces (T, 3) at a tool that explain residuals best, weighed by their deviation: F, its deviation, the rest.

    The rest is what no force there explains, as a part of the residual in its own deviations: 0 all, 1 nothing.
    Directions in which the robot feels nothing have an infinite deviation.
    """
    weight = 1.0 / np.where(deviation > 0, deviation, np.inf)
    J = tool.jacobian(robot, q) * weight
    r = residual * weight
    force, spread = np.zeros((len(q), 3)), np.full((len(q), 3), np.inf)
    rest = np.empty(len(q))
    for k in range(len(q)):
        U, s, Vt = np.linalg.svd(J[k], full_matrices=False)
        kept = s > 1e-3 * s.max(initial=0.0)
        force[k] = (U[:, kept] / s[kept]) @ (Vt[kept] @ r[k])
        seen = np.sum(U[:, kept] ** 2, axis=1) > 1 - 1e-6
        spread[k, seen] = np.sqrt(np.sum((U[:, kept] / s[kept]) ** 2, axis=1))[seen]
        size = float(r[k] @ r[k])
        left = r[k] - J[k].T @ force[k]
        rest[k] = float(left @ left) / size if size > 0 else 0.0
    return force, spread, np.sqrt(rest)
