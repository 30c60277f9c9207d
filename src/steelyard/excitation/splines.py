"""Piecewise polynomial trajectories: point to point, through way points, and through samples."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BSpline, PPoly, make_interp_spline

from ..errors import DataError, OptionError
from .checks import Array, count, finite, increasing, joint_names, positive
from .trajectory import ByColumn, ByRow, Motion, Trajectory

PEAK_VELOCITY = 15 / 8  # of the rest-to-rest quintic: Δ/T is 1
PEAK_ACCELERATION = 10 / np.sqrt(3)  # Δ/T² is 1
AT_REST = [(1, 0.0), (2, 0.0)]


@dataclass(frozen=True, eq=False)
class PointToPoint(Trajectory):
    """From one pose to another, at rest in both: q = start + Δ (10 s³ − 15 s⁴ + 6 s⁵),  s = t/seconds."""

    start: ByRow  # (n,)
    goal: ByRow  # (n,)
    seconds: float
    joints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        start, goal = finite("start", self.start, 1), finite("goal", self.goal, 1)
        if start.shape != goal.shape:
            raise OptionError(f"start has {start.size} joints, goal has {goal.size}; give both for the same joints")
        joints = joint_names(self.joints, start.size)
        self._set(start=start, goal=goal, seconds=positive("duration", self.seconds), joints=joints)

    @property
    def duration(self) -> float:
        return self.seconds

    def _at(self, t: Array) -> Motion:
        s = (t / self.seconds)[:, None]
        # From the nearer end, so that both ends are met to the last bit.
        near = np.minimum(s, 1 - s)
        part = near**3 * (10 - 15 * near + 6 * near**2) * (self.goal - self.start)
        q = np.where(s <= 0.5, self.start + part, self.goal - part)
        rise = (self.goal - self.start) / self.seconds
        return q, 30 * s**2 * (1 - s) ** 2 * rise, 60 * s * (1 - s) * (1 - 2 * s) * rise / self.seconds


def _limit(what: str, value: ArrayLike | None, n: int) -> Array:
    x = np.broadcast_to(np.inf if value is None else np.asarray(value, dtype=np.float64), n)
    if not (x > 0).all():
        raise OptionError(f"{what} limit of joint {int(np.argmin(x > 0)) + 1} is {x.min():g}; it must be above 0")
    return x


def shortest_time(
    start: ArrayLike, goal: ArrayLike, velocity: ArrayLike | None = None, acceleration: ArrayLike | None = None
) -> float:
    """The shortest `PointToPoint` within the limits; infinite limits and None do not bind, 0 s is to stay.

    T = max(15/8 Δ/velocity, √(10/√3 Δ/acceleration)) over the joints.
    """
    first, last = finite("start", start, 1), finite("goal", goal, 1)
    if first.shape != last.shape:
        raise OptionError(f"start has {first.size} joints, goal has {last.size}; give both for the same joints")
    way = np.abs(last - first)
    limits = _limit("velocity", velocity, way.size), _limit("acceleration", acceleration, way.size)
    unbound = (way > 0) & np.isinf(limits[0]) & np.isinf(limits[1])
    if unbound.any():
        j = int(np.argmax(unbound))
        raise OptionError(
            f"joint {j + 1} moves by {way[j]:g} and has no velocity or acceleration limit; give one of them"
        )
    times = np.maximum(PEAK_VELOCITY * way / limits[0], np.sqrt(PEAK_ACCELERATION * way / limits[1]))
    return float(times.max()) * (1 + 1e-9)  # rounding may not break a limit


def _knots_at_rest(times: Array, degree: int) -> Array:
    """Knots for an interpolating spline with velocity and acceleration zero at both ends.

    A quintic has just the coefficients for it; a cubic lacks two, so it gets a knot more in its first and last span.
    """
    inner = times[1:-1]
    if degree == 3:
        first, last = (1 / 3, 2 / 3) if times.size == 2 else (0.5, 0.5)
        more = [(1 - first) * times[0] + first * times[1], (1 - last) * times[-2] + last * times[-1]]
        inner = np.sort(np.concatenate([inner, more]))
    return np.concatenate([np.full(degree + 1, times[0]), inner, np.full(degree + 1, times[-1])])


@dataclass(frozen=True, eq=False)
class Spline(Trajectory):
    """A cubic or quintic spline through way points at given times, at rest at both ends.

    Rest means no velocity and no acceleration, for the cubic too; its acceleration is broken lines, without jumps.
    """

    times: Array  # (M,) s, increasing
    points: ByColumn  # (M, n)
    degree: int = 5
    joints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        times, points = increasing("times", self.times), finite("points", self.points, 2)
        if len(points) != times.size:
            raise OptionError(f"{times.size} times for {len(points)} way points; give a time for every point")
        degree = count("degree", self.degree)
        if degree not in (3, 5):
            raise OptionError(f"degree is {degree}; 3 (cubic) or 5 (quintic) is needed")
        joints = joint_names(self.joints, points.shape[1])
        self._set(times=times, points=points, degree=degree, joints=joints)

    @property
    def duration(self) -> float:
        return float(self.times[-1])

    @cached_property
    def _curve(self) -> BSpline:
        knots = _knots_at_rest(self.times, self.degree)
        try:
            return make_interp_spline(self.times, self.points, k=self.degree, t=knots, bc_type=(AT_REST, AT_REST))
        except (ValueError, np.linalg.LinAlgError) as error:
            raise DataError(f"no spline through these way points: {error}") from None

    def _at(self, t: Array) -> Motion:
        return self._curve(t), self._curve(t, 1), self._curve(t, 2)


def _quintic_pieces(t: Array, q: Array, qd: Array, qdd: Array) -> PPoly:
    """The quintic of each interval that has the given values, velocities and accelerations at its ends."""
    h = np.diff(t)[:, None]
    dq = q[1:] - q[:-1] - qd[:-1] * h - qdd[:-1] * h**2 / 2
    dv = (qd[1:] - qd[:-1] - qdd[:-1] * h) * h
    da = (qdd[1:] - qdd[:-1]) * h**2 / 2
    pieces = np.zeros((6, *q.shape))
    pieces[0, :-1] = (6 * dq - 3 * dv + da) / h**5
    pieces[1, :-1] = (-15 * dq + 7 * dv - 2 * da) / h**4
    pieces[2, :-1] = (10 * dq - 4 * dv + da) / h**3
    # One piece more begins at the end: the last sample, too, is then met without rounding.
    pieces[3], pieces[4], pieces[5] = qdd / 2, qd, q
    return PPoly(pieces, np.append(t, t[-1] + h[-1]))


@dataclass(frozen=True, eq=False)
class Sampled(Trajectory):
    """A trajectory known by samples, with the rates and the feed-forward torque where they are known.

    With velocities and accelerations: quintics that meet them all. With velocities: accelerations by a spline through
    them first. With positions alone: the quintic interpolating spline.
    """

    t: Array  # (T,) s, increasing; counted from the first
    q: ByColumn  # (T, n) rad or m
    qd: ByColumn | None = None
    qdd: ByColumn | None = None
    tau: ByColumn | None = None  # (T, n) N·m or N
    joints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        t, q = increasing("time", self.t, DataError), finite("q", self.q, 2, DataError)
        if len(q) != t.size:
            raise DataError(f"{t.size} times for {len(q)} rows of q; give a row for every time")
        if self.qdd is not None and self.qd is None:
            raise DataError("qdd is given without qd; give both, or positions alone")
        self._set(t=t, q=q, joints=joint_names(self.joints, q.shape[1]))
        for name in ("qd", "qdd", "tau"):
            if getattr(self, name) is None:
                continue
            x = finite(name, getattr(self, name), 2, DataError)
            if x.shape != q.shape:
                raise DataError(f"{name} has shape {x.shape}, q has {q.shape}; give a number for every position")
            self._set(**{name: x})

    @property
    def duration(self) -> float:
        return float(self.t[-1])

    @cached_property
    def _curve(self) -> BSpline | PPoly:
        try:
            through = self.q if self.qd is None else self.qd
            spline = make_interp_spline(self.t, through, k=min(5, self.t.size - 1))
        except (ValueError, np.linalg.LinAlgError) as error:
            raise DataError(f"no spline through these samples: {error}") from None
        if self.qd is None:
            return spline
        return _quintic_pieces(self.t, self.q, self.qd, spline(self.t, 1) if self.qdd is None else self.qdd)

    def _at(self, t: Array) -> Motion:
        return self._curve(t), self._curve(t, 1), self._curve(t, 2)

    def torque(self, t: ArrayLike) -> Array | None:
        """The feed-forward torque (T, n) at times (T,), linear between the samples; None where none is known."""
        if self.tau is None:
            return None
        return np.stack([np.interp(np.asarray(t, dtype=np.float64), self.t, column) for column in self.tau.T], axis=-1)
