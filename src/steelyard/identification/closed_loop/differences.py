"""What is left of a torque on average when noisy samples are differentiated as they are.

Two things, both computed along the simulated motion: what differences and held torques do to that motion itself, which
has neither noise nor unknowns, and what noise adds, because the torque is curved in q and q̇:

    E f(x + e) − f(x) ≈ ½ Σ_k f(x + c_k) + f(x − c_k) − 2 f(x),    Σ_k c_k c_kᵀ = cov e,    e of (q, q̇, q̈) together

Differentiated noise is large: a hundredth of a degree at 1 kHz is a tenth of a rad/s, whose square acts like a
centrifugal force, and its product with the noise of the positions like an acceleration.
"""

from dataclasses import replace

import numpy as np
import scipy.ndimage
from numpy.typing import NDArray

from ...data.recording import Recording
from ...dynamics import inverse_dynamics
from ...robot.robot import Robot
from .pieces import Trace

Array = NDArray[np.float64]

# What changes more slowly than over so many samples is a motion that the simulation lacks, not noise.
_SLOW = 25
# Directions of noise below this share of the largest, in units of their own, add nothing.
_NONE = 1e-9


def differenced(recording: Recording) -> Recording:
    """Velocities and accelerations by central differences of the positions as they were measured."""
    qd = np.gradient(recording.q, recording.t, axis=0)
    qdd = np.gradient(qd, recording.t, axis=0)
    more = {"use": recording.more["use"]} if "use" in recording.more else {}
    return Recording(recording.t, recording.q, recording.tau, qd, qdd, recording.joints, more, recording.about)


def answered(recording: Recording, control_hz: float) -> Recording:
    """The torque half a control tick before: a drive holds its torque over a tick, and the motion has its mean.

    Positions at a tick know the torque before and after alike; left alone, the half tick looks like negative damping.
    """
    late = recording.t - 0.5 / control_hz
    tau = np.stack([np.interp(late, recording.t, recording.tau[:, j]) for j in range(recording.n)], axis=1)
    return replace(recording, tau=tau)


def _noise_directions(noise: Array, t: Array) -> Array:
    """Columns c_k (3n, k) of the covariance of noise (T, n) and its differences, without what is slow in it."""
    e = noise - scipy.ndimage.uniform_filter1d(noise, _SLOW, axis=0, mode="nearest")
    rate = np.gradient(e, t, axis=0)
    together = np.concatenate([e, rate, np.gradient(rate, t, axis=0)], axis=1)
    size = np.sqrt(np.mean(together**2, axis=0))
    size = np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh((together / size).T @ (together / size) / len(t))
    kept = values > _NONE * values.max(initial=0.0)
    return np.asarray(size[:, None] * vectors[:, kept] * np.sqrt(values[kept]))


def left_on_average(robot: Robot, measured: Recording, trace: Trace, control_hz: float | None) -> Array:
    """tau − W beta that is left on average where the parameters are right, (T, n), if the robot moves as simulated.

    `control_hz` is that of the torques that were `answered`, None where they were not.
    """
    rows, left = trace.reached, np.zeros_like(measured.tau)
    if rows <= _SLOW:
        return left
    t, joints = measured.t[:rows], measured.joints
    simulated = differenced(Recording(t, trace.q[:rows], trace.tau[:rows], joints=joints))
    if control_hz is not None:
        simulated = answered(simulated, control_hz)
    q, qd, qdd = simulated.q, simulated.qd, simulated.qdd
    assert qd is not None
    assert qdd is not None
    still = inverse_dynamics(robot, q, qd, qdd)
    left[:rows] = simulated.tau - still
    for c in _noise_directions(measured.q[:rows] - q, t).T:
        for sign in (1.0, -1.0):
            dq, dqd, dqdd = sign * c.reshape(3, robot.n)
            left[:rows] -= 0.5 * (inverse_dynamics(robot, q + dq, qd + dqd, qdd + dqdd) - still)
    return left
