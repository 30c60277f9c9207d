"""Trajectories: where the joints are to be at any time, with the exact rates; the finite Fourier series first of all.

Every trajectory is a frozen value with one face, `Trajectory`. A field with a number a joint says in its type on
which axis the joints stand (`ByRow`, `ByColumn`), so that joints are picked the same way in all kinds.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from ..errors import DataError, OptionError, unknown_name
from ..robot.robot import frozen
from .checks import Array, count, default_names, finite, joint_names, positive

Motion = tuple[Array, Array, Array]  # q, qd, qdd
MAX_SAMPLES = 20_000_000
# A time that passes the end by the rounding of a clock is the end, not the rest after it (share of the duration).
END_SLACK = 1e-9


@dataclass(frozen=True)
class JointAxis:
    """Says of a field that it has a number a joint, and on which axis."""

    axis: int


ByRow = Annotated[Array, JointAxis(0)]  # (n, …)
ByColumn = Annotated[Array, JointAxis(1)]  # (…, n)


def _joint_axis(annotation: Any) -> int | None:
    for part in get_args(annotation):
        axis = part.axis if isinstance(part, JointAxis) else _joint_axis(part)
        if axis is not None:
            return axis
    return None


class Trajectory(ABC):
    """What the joints are to do from time 0 to `duration`; outside it, the ends are held at rest."""

    joints: tuple[str, ...]

    @property
    @abstractmethod
    def duration(self) -> float:
        """Length in seconds."""

    @abstractmethod
    def _at(self, t: Array) -> Motion:
        """Positions, velocities and accelerations, each (T, n), at times (T,) within the duration."""

    def _set(self, **values: Any) -> None:
        """What `__post_init__` found out, in a value that is frozen afterwards."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _pick(self, index: list[int]) -> Self:
        """The joints with these numbers."""
        changed: dict[str, Any] = {"joints": tuple(self.joints[k] for k in index)}
        for part in fields(self):  # type: ignore[arg-type]
            axis, value = _joint_axis(part.type), getattr(self, part.name)
            if axis is not None and value is not None:
                changed[part.name] = np.take(value, index, axis=axis)
        return replace(self, **changed)  # type: ignore[type-var]

    @property
    def n(self) -> int:
        return len(self.joints)

    def sample(self, t: ArrayLike) -> Motion:
        """q, q̇ and q̈, each (n,) at one time or (T, n) at several, exact derivatives of each other.

        Before 0 and after the duration the ends are held: the end's position, no velocity, no acceleration.
        """
        times = finite("t", t, min(np.ndim(t), 1), DataError)
        flat = np.atleast_1d(times)
        length = self.duration
        with np.errstate(all="ignore"):
            q, qd, qdd = self._at(np.clip(flat, 0.0, length))
        for name, x in (("position", q), ("velocity", qd), ("acceleration", qdd)):
            if not np.isfinite(x).all():
                k, j = np.argwhere(~np.isfinite(x))[0]
                raise DataError(
                    f"{name} of joint '{self.joints[j]}' is {x[k, j]} at {flat[k]:g} s; mend the trajectory"
                )
        resting = (flat < -END_SLACK * length) | (flat > (1 + END_SLACK) * length)
        qd[resting] = 0.0
        qdd[resting] = 0.0
        return (q, qd, qdd) if times.ndim else (q[0], qd[0], qdd[0])

    def grid(self, rate_hz: float) -> Array:
        """Even times from 0 over the whole duration; the last is the end, or the first one after it."""
        steps = self.duration * positive("sampling rate", rate_hz)
        if not steps < MAX_SAMPLES:
            raise OptionError(
                f"{self.duration:g} s at {rate_hz:g} Hz are {steps:.3g} samples, at most {MAX_SAMPLES} are made; "
                "lower the rate"
            )
        return np.arange(int(np.ceil(steps * (1 - END_SLACK))) + 1) / rate_hz

    def with_joints(self, joints: Sequence[str]) -> Self:
        """The joints in this order, found by name; by place where this trajectory's joints were never named."""
        names = joint_names(joints, len(joints))
        missing = [name for name in names if name not in self.joints]
        if not missing:
            return self._pick([self.joints.index(name) for name in names])
        if self.joints != default_names(self.n):
            raise DataError(unknown_name("joint", missing[0], self.joints))
        if len(names) != self.n:
            raise DataError(f"{self.n} joints without names, {len(names)} are asked for: {', '.join(names[:20])}")
        return self.renamed(names)

    def renamed(self, joints: Sequence[str]) -> Self:
        """The same motion under other joint names."""
        return replace(self, joints=tuple(joints))  # type: ignore[type-var]


def fourier_basis(t: ArrayLike, period: float, harmonics: int) -> Motion:
    """Columns [1 | sin 1..N | cos 1..N] of q, q̇ and q̈, each (T, 2N + 1): q = Bq [q0, a_1..a_N, b_1..b_N].

    q = q0 + Σ a_k/(ωk) sin(ωkt) − b_k/(ωk) cos(ωkt),  ω = 2π/period.
    """
    t = np.asarray(t, dtype=np.float64)
    k = np.arange(1, harmonics + 1)
    rate = 2 * np.pi / period * k
    # Whole periods are taken off first: the end of a period is then its beginning to the last bit.
    angle = 2 * np.pi * k * (np.mod(t, period) / period)[:, None]
    sine, cosine = np.sin(angle), np.cos(angle)
    one = np.ones((t.size, 1))
    return (
        np.hstack([one, sine / rate, -cosine / rate]),
        np.hstack([0 * one, cosine, sine]),
        np.hstack([0 * one, -rate * sine, rate * cosine]),
    )


@dataclass(frozen=True, eq=False)
class Fourier(Trajectory):
    """A finite Fourier series a joint, of N harmonics of 1/period, run so many periods.

    q = offset + Σ a_k/(ωk) sin(ωkt) − b_k/(ωk) cos(ωkt),  ω = 2π/period.
    """

    period: float  # s
    offset: ByRow  # (n,) rad or m
    a: ByRow  # (n, N) rad/s or m/s
    b: ByRow  # (n, N) rad/s or m/s
    joints: tuple[str, ...] = ()
    periods: int = 1

    def __post_init__(self) -> None:
        offset = finite("offset", self.offset, 1)
        a, b = finite("a", self.a, 2), finite("b", self.b, 2)
        if a.shape != b.shape or len(a) != len(offset):
            raise OptionError(
                f"offset {offset.shape}, a {a.shape} and b {b.shape} do not fit: "
                f"{len(offset)} joints take ({len(offset)}, harmonics) coefficients in a and in b"
            )
        self._set(
            period=positive("period", self.period),
            offset=offset,
            a=a,
            b=b,
            joints=joint_names(self.joints, len(offset)),
            periods=count("periods", self.periods),
        )
        positive("duration", self.duration)

    @classmethod
    def from_coefficients(
        cls, period: float, coefficients: ArrayLike, joints: Sequence[str] = (), periods: int = 1
    ) -> "Fourier":
        """The series whose rows are [q0, a_1..a_N, b_1..b_N], a row a joint."""
        rows = finite("coefficients", coefficients, 2)
        if rows.shape[1] < 3 or rows.shape[1] % 2 == 0:
            raise OptionError(f"coefficients has {rows.shape[1]} columns; 1 + 2 × harmonics are needed")
        half = rows.shape[1] // 2 + 1
        return cls(period, rows[:, 0], rows[:, 1:half], rows[:, half:], tuple(joints), periods)

    @property
    def coefficients(self) -> Array:
        """Rows [q0, a_1..a_N, b_1..b_N], the order of `fourier_basis`."""
        return np.hstack([self.offset[:, None], self.a, self.b])

    @property
    def harmonics(self) -> int:
        return int(self.a.shape[1])

    @property
    def duration(self) -> float:
        return self.period * self.periods

    def _at(self, t: Array) -> Motion:
        x = self.coefficients.T
        position, velocity, acceleration = fourier_basis(t, self.period, self.harmonics)
        return position @ x, velocity @ x, acceleration @ x


@dataclass(frozen=True, eq=False)
class RestBasis:
    """All Fourier series that start and end at rest: coefficients = particular + free Zᵀ, whatever `free` is."""

    period: float
    particular: Array  # (n, 2N + 1), or (1, 2N + 1) of zeros for any n where no start is asked for
    Z: Array  # (2N + 1, free coefficients a joint), orthonormal columns

    @property
    def free(self) -> int:
        """Free coefficients a joint."""
        return int(self.Z.shape[1])

    def coefficients(self, free: ArrayLike) -> Array:
        """The rows [q0, a.., b..] that free coefficients (n, free) stand for."""
        return self.particular + np.asarray(free, dtype=np.float64) @ self.Z.T

    def nearest(self, coefficients: ArrayLike) -> Array:
        """The free coefficients whose series is nearest to these rows [q0, a.., b..]."""
        return (np.asarray(coefficients, dtype=np.float64) - self.particular) @ self.Z


def _complement(rows: Array) -> Array:
    """An orthonormal basis of what the rows do not see."""
    Q, _ = np.linalg.qr((rows / np.linalg.norm(rows, axis=1, keepdims=True)).T, mode="complete")
    return Q[:, len(rows) :]


def rest_basis(period: float, harmonics: int, start: ArrayLike | None = None) -> RestBasis:
    """The Fourier series with q̇ = q̈ = 0 at both ends, and with q = start there if a start (n,) is given.

    Σ a_k = 0,  Σ k b_k = 0,  q0 − Σ b_k/(ωk) = start: one condition on a, one or two on (q0, b).
    """
    period, N = positive("period", period), count("harmonics", harmonics)
    if N < 2:
        asked = "velocity, acceleration and position" if start is not None else "velocity and acceleration"
        raise OptionError(
            f"1 harmonic has no motion left once {asked} at the ends are set (a1 = b1 = 0); give at least 2 harmonics"
        )
    k = np.arange(1.0, N + 1)
    on_b = [np.concatenate([[0.0], k])]
    if start is not None:
        on_b.append(np.concatenate([[1.0], -period / (2 * np.pi * k)]))
    of_a, of_b = _complement(np.ones((1, N))), _complement(np.array(on_b))
    Z = np.zeros((2 * N + 1, of_a.shape[1] + of_b.shape[1]))
    Z[1 : N + 1, : of_a.shape[1]] = of_a
    Z[np.r_[0, N + 1 : 2 * N + 1], of_a.shape[1] :] = of_b
    # To stand still at the start meets every condition.
    pose = np.zeros(1) if start is None else finite("start", start, 1)
    return RestBasis(period, frozen(np.outer(pose, np.eye(2 * N + 1)[0])), frozen(Z))
