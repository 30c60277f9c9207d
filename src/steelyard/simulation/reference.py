"""What a controller is asked to follow, at every one of its ticks: from a trajectory, or from samples of one."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicHermiteSpline, CubicSpline, PPoly

from ..errors import DataError, OptionError
from ..excitation.trajectory import Trajectory

Array = NDArray[np.float64]


def tick_count(duration: float, control_hz: float) -> int:
    """Control ticks from 0 to the end, both included."""
    if not (np.isfinite(control_hz) and 0 < control_hz <= 1e6):
        raise OptionError(f"control_hz is {control_hz}; give a rate above 0 and at most 1000000 Hz")
    return int(np.floor(duration * control_hz + 1e-9)) + 1


def reference_of(trajectory: Trajectory, control_hz: float = 1000.0) -> Array:
    """q_d, q̇_d, q̈_d of a trajectory at every control tick, (3, ticks, n)."""
    t = np.arange(tick_count(trajectory.duration, control_hz), dtype=np.float64) / control_hz
    return np.stack(trajectory.sample(t))


def _quintics(t: Array, q: Array, qd: Array, qdd: Array) -> PPoly:
    """The polynomials of degree five that meet position, velocity and acceleration at every sample."""
    h = np.diff(t)[:, None]
    dq = np.diff(q, axis=0) - h * qd[:-1] - 0.5 * h**2 * qdd[:-1]
    dv, da = h * (np.diff(qd, axis=0) - h * qdd[:-1]), h**2 * np.diff(qdd, axis=0)
    high = (6 * dq - 3 * dv + 0.5 * da) / h**5, (-15 * dq + 7 * dv - da) / h**4, (10 * dq - 4 * dv + 0.5 * da) / h**3
    return PPoly(np.stack([*high, 0.5 * qdd[:-1], qd[:-1], q[:-1]]), t)


def reference_from_samples(
    t: ArrayLike,
    q_d: ArrayLike,
    qd_d: ArrayLike | None = None,
    qdd_d: ArrayLike | None = None,
    control_hz: float = 1000.0,
) -> Array:
    """The same from sampled motion, as a recording has it: between two samples the polynomial that meets what is given.

    Positions and velocities give cubics, accelerations too give quintics; positions alone, a cubic spline. Samples that
    stand on the ticks are used as they are.
    """
    t, q = np.asarray(t, dtype=np.float64), np.asarray(q_d, dtype=np.float64)
    given = [q, *(np.asarray(x, dtype=np.float64) for x in (qd_d, qdd_d) if x is not None)]
    if qd_d is None and qdd_d is not None:
        raise DataError("qdd_d is given without qd_d; give both, or neither")
    if t.ndim != 1 or len(t) < 2 or any(x.shape != (len(t), *q.shape[1:]) or x.ndim != 2 for x in given):
        raise DataError(f"t has shape {t.shape} and q_d {q.shape}; a row a sample and a column a joint are needed")
    if not all(np.isfinite(x).all() for x in (t, *given)) or (np.diff(t) <= 0).any():
        raise DataError("the desired motion has numbers that are not finite, or its time does not advance; repair it")
    ticks = np.arange(tick_count(float(t[-1] - t[0]), control_hz), dtype=np.float64) / control_hz
    if len(given) == 3 and len(ticks) == len(t) and np.abs(t - t[0] - ticks).max() < 1e-9:
        return np.stack(given)
    curve = (CubicSpline, CubicHermiteSpline, _quintics)[len(given) - 1](t - t[0], *given)
    ticks = np.minimum(ticks, t[-1] - t[0])
    return np.stack([curve(ticks, order) for order in range(3)])
