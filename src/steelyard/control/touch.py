"""Contacts in the residuals of a momentum observer: thresholds that keep a false-alarm rate, and what crosses them.

Residuals are coloured, so that samples beyond a level come in clusters; clusters are counted, not samples. Beyond a
level u0 the squares of their peaks fall off as a Gaussian's do, exponentially: m peaks whose squares exceed u0² by S
together, seen in a time T, let one expect

    rate(u) = m/T (1 + (u² − u0²)/S)^(−m)

alarms a second at a threshold u, uncertainty of the fall-off included; where the peaks show a heavier tail
(generalised Pareto, by the likelihood ratio), the larger of both thresholds counts. All joints share the rate alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from ..errors import DataError, OptionError
from ..robot.robot import Robot
from .momentum import MomentumObserver, Tool, force_at

Array = NDArray[np.float64]

_LEVELS = (0.99, 0.98, 0.95, 0.9, 0.8, 0.7, 0.5)
_ENOUGH, _LEAST = 20, 8  # peaks
_UNRELATED = 0.05  # autocorrelation
_HEAVIER = 1.0  # of twice the log-likelihood ratio: 84 %, one-sided; to miss a heavy tail costs more than to see one
_ENDS_AT = 0.7  # of the threshold
_SETTLED = 4.0  # lags of the observer until its start is forgotten


@dataclass(frozen=True)
class Quiet:
    """The residual of one joint while nothing touched the robot."""

    mean: float
    deviation: float
    largest: float  # |r − mean|
    memory: float  # s, after which residuals have forgotten each other
    peaks: int
    threshold: float  # of |r − mean|
    heavy: bool  # whether the tail is heavier than a Gaussian's


@dataclass(frozen=True, eq=False)
class Thresholds:
    """What counts as a push, by a recording in which there was none."""

    joints: tuple[Quiet, ...]
    per_hour: float  # expected false alarms, of all joints together
    seconds: float  # of free motion that it rests on
    speed: Array  # (n,) largest in it
    lag: float  # s, of the observer

    @cached_property
    def mean(self) -> Array:
        return np.array([joint.mean for joint in self.joints])

    @cached_property
    def deviation(self) -> Array:
        return np.array([joint.deviation for joint in self.joints])

    @cached_property
    def threshold(self) -> Array:
        return np.array([joint.threshold for joint in self.joints])

    @property
    def settling(self) -> float:
        """From the start of any recording, s, in which residuals mean nothing."""
        return _SETTLED * self.lag

    @property
    def memory(self) -> float:
        return max(joint.memory for joint in self.joints)


def memory_of(x: Array, dt: float) -> float:
    """The lag from which the autocorrelation stays below 0.05 for the first time, s."""
    centred = x - x.mean()
    size = 1 << int(np.ceil(np.log2(2 * len(x))))
    spectrum = np.fft.rfft(centred, size)
    correlation = np.fft.irfft(spectrum * spectrum.conj(), size)[: len(x)]
    if correlation[0] <= 0:
        return dt
    below = np.flatnonzero(correlation < _UNRELATED * correlation[0])
    return dt * float(below[0] if len(below) else len(x))


def peaks_over(x: Array, level: float, gap: int) -> Array:
    """The largest value of each cluster above a level; clusters are more than `gap` samples apart."""
    above = np.flatnonzero(x > level)
    if not len(above):
        return np.zeros(0)
    starts = np.flatnonzero(np.diff(above, prepend=above[0] - gap - 2) > gap)
    return np.asarray(np.maximum.reduceat(x[above], starts))


def _pareto(excess: Array) -> tuple[float, float, float]:
    """Shape, scale and twice the log-likelihood ratio to an exponential."""
    m, mean = len(excess), float(excess.mean())

    def cost(p: Array) -> float:
        shape, scale = float(p[0]), float(np.exp(p[1]))
        return m * np.log(scale) + (1 + 1 / shape) * float(np.sum(np.log1p(shape * excess / scale)))

    found = scipy.optimize.minimize(
        cost, [0.1, np.log(mean)], method="L-BFGS-B", bounds=[(1e-3, 1.0), (np.log(mean) - 5, np.log(mean) + 5)]
    )
    ratio = 2 * (m * (np.log(mean) + 1) - float(found.fun))
    return float(found.x[0]), float(np.exp(found.x[1])), ratio


def threshold_of(x: Array, dt: float, memory: float, per_second: float) -> tuple[float, int, bool]:
    """The level of |r| that is crossed so often by chance, the peaks that say so, and whether their tail is heavy."""
    gap = max(1, round(memory / dt))
    tried = [(level, peaks_over(x, level, gap)) for level in np.quantile(x, _LEVELS)]
    level, peaks = next(((u, p) for u, p in tried if len(p) >= _ENOUGH), max(tried, key=lambda one: len(one[1])))
    m = len(peaks)
    if m < _LEAST:
        raise DataError(
            f"the free recording of {len(x) * dt:.3g} s has {m} independent peaks of the residual, which remembers "
            f"{memory:.2g} s; {_LEAST} are needed: record about {2 * _LEAST / max(m, 1) * len(x) * dt:.0f} s "
            "without contact"
        )
    ratio = m / (len(x) * dt) / per_second
    if ratio <= 1:
        return float(level), m, False
    excess = peaks**2 - level**2
    total = float(excess.sum())
    if not total > 0:
        return float(level), m, False
    depth = m * np.expm1(np.log(ratio) / m)  # ln(ratio), and what is not known of the fall-off
    reach = total / m * depth
    shape, scale, likelier = _pareto(excess)
    heavy = bool(likelier > _HEAVIER)
    if heavy:
        reach = max(reach, scale / shape * np.expm1(shape * depth))
    return float(np.sqrt(level**2 + reach)), m, heavy


def calibrate(observer: MomentumObserver, t: Array, residual: Array, qd: Array, per_hour: float = 1.0) -> Thresholds:
    """Thresholds with an expected number of false alarms an hour, by the residuals of free motion.

    The first moments, in which the observer still knows nothing, are left out.
    """
    if not (np.isfinite(per_hour) and per_hour > 0):
        raise OptionError(f"{per_hour} false alarms an hour are asked for; give a finite number above 0")
    begin = int(np.searchsorted(t, t[0] + _SETTLED * observer.lag))
    r, n = residual[begin:], residual.shape[1]
    if len(r) < 100:
        raise DataError(f"{len(r)} samples of free motion are left after the observer settled; 100 are needed")
    dt = float(np.median(np.diff(t)))
    joints = []
    for k in range(n):
        mean = float(r[:, k].mean())
        x = np.abs(r[:, k] - mean)
        memory = max(memory_of(r[:, k], dt), observer.lag)
        level, peaks, heavy = threshold_of(x, dt, memory, per_hour / 3600.0 / n)
        joints.append(Quiet(mean, float(r[:, k].std()), float(x.max()), memory, peaks, level, heavy))
    return Thresholds(tuple(joints), per_hour, len(r) * dt, np.abs(qd[begin:]).max(axis=0), observer.lag)


@dataclass(frozen=True, eq=False)
class Contact:
    """One push: when, which joints felt it, and the force at the tool that explains it."""

    begin: float  # s, when a threshold was crossed
    end: float
    strongest: float  # s, when the residual was largest in units of its thresholds
    joints: tuple[str, ...]  # that crossed their threshold, the first first
    torque: Array  # (n,) at the strongest moment, the residual's mean taken off
    beyond: str  # the body of the outermost of those joints: the push is there or farther out
    force: Array | None = None  # (3,) N at the tool, in the axes of the base
    force_deviation: Array | None = None
    unexplained: float | None = None  # part of the residual that no force at the tool explains

    @property
    def direction(self) -> Array | None:
        if self.force is None:
            return None
        size = float(np.linalg.norm(self.force))
        return self.force / size if size > 0 else np.zeros(3)


def _events(over: Array, gap: int) -> list[tuple[int, int]]:
    """First and last sample of stretches in which residuals by thresholds (T,) pass 1 and stay above `_ENDS_AT`."""
    found: list[tuple[int, int]] = []
    held = np.flatnonzero(over > _ENDS_AT)
    if not len(held):
        return found
    splits = np.flatnonzero(np.diff(held) > gap)
    for first, last in zip(np.r_[0, splits + 1], np.r_[splits, len(held) - 1], strict=True):
        a, b = int(held[first]), int(held[last])
        crossed = np.flatnonzero(over[a : b + 1] > 1.0)
        if len(crossed):
            found.append((a + int(crossed[0]), b))
    return found


def find_contacts(
    robot: Robot, t: Array, q: Array, residual: Array, thresholds: Thresholds, tool: Tool | None = None
) -> tuple[Contact, ...]:
    """Every push in a recording's residuals, once the observer has settled."""
    begin = int(np.searchsorted(t, t[0] + thresholds.settling))
    t, q, residual = t[begin:], q[begin:], residual[begin:]
    if len(t) < 2:
        raise DataError(f"the recording is over before the observer has settled ({thresholds.settling:.2g} s)")
    r = residual - thresholds.mean
    share = np.abs(r) / np.where(thresholds.threshold > 0, thresholds.threshold, np.inf)
    dt = float(np.median(np.diff(t)))
    contacts = []
    for a, b in _events(share.max(axis=1), max(1, round(thresholds.memory / dt))):
        part = share[a : b + 1]
        top = a + int(np.argmax(np.sum(part**2, axis=1)))
        crossed = [(int(np.argmax(part[:, k] > 1.0)), k) for k in range(robot.n) if (part[:, k] > 1.0).any()]
        names = tuple(robot.dof_names[k] for _, k in sorted(crossed))
        outermost = max(k for _, k in crossed)
        body = next(joint.body for joint in robot.joints if joint.dof == outermost)
        force = spread = rest = None
        if tool is not None:
            then = max(0, top - round(thresholds.lag / dt))  # when what is felt now was done
            found = force_at(robot, tool, q[then : then + 1], r[top : top + 1], thresholds.deviation)
            force, spread, rest = found[0][0], found[1][0], float(found[2][0])
        contacts.append(Contact(float(t[a]), float(t[b]), float(t[top]), names, r[top], body, force, spread, rest))
    return tuple(contacts)


def smallest_force(robot: Robot, tool: Tool, q: Array, thresholds: Thresholds, directions: int = 200) -> Array:
    """The steady force at a tool that crosses a threshold, over poses and directions, N; infinite where none does."""
    k = np.arange(directions) + 0.5
    z, turn = 1 - 2 * k / directions, np.pi * (1 + np.sqrt(5)) * k
    ring = np.sqrt(1 - z**2)
    sphere = np.stack([ring * np.cos(turn), ring * np.sin(turn), z])
    poses = q[:: max(1, len(q) // 200)]
    J = tool.jacobian(robot, poses) / np.where(thresholds.threshold > 0, thresholds.threshold, np.inf)
    felt = np.abs(np.einsum("tdn,dk->tkn", J, sphere)).max(axis=2).ravel()
    return np.where(felt > 1e-9, 1.0 / np.maximum(felt, 1e-9), np.inf)


def alarms(share: Sequence[float] | Array, gap: int) -> int:
    """How many events a series of |r| by its threshold has."""
    return len(_events(np.asarray(share, dtype=np.float64), gap))
