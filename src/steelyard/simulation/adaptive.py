"""The closed loop with SciPy's adaptive integrators between control ticks: slower, for stiff joints and as a judge."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from ..dynamics.kernels.single import workspace
from .kernels.loop import BRIEF, NOT_PHYSICAL, QD, RAN_AWAY, RUNAWAY, STATES, THETA, THETAD, Q, control, measure, slope

Array = NDArray[np.float64]

RELATIVE, ABSOLUTE = 1e-9, 1e-11


# An implicit step tries places far from where it ends; numbers beyond this are on their way to overflow.
_FAR = 1e12


class _Stopped(Exception):
    """The joint in which a step came to an end, and why: SciPy's integrators do not survive what is not a number."""

    def __init__(self, joint: int, reason: int) -> None:
        self.joint, self.reason = joint, reason


def run_adaptive(method: str, arguments: tuple[Any, ...]) -> tuple[int, int, int]:
    """The same loop as the compiled `run`, with its arguments and answer; every tick is integrated to a tolerance."""
    (tree, rotors, law, springs, controller, nominal, desired, feed_forward, start, settings, noise, resolution,
     temperature, saturated, out) = arguments  # fmt: skip
    _, ticks_a_sample, _, delay, differenced, dt = settings
    position_noise, velocity_noise, dropped = noise
    n, limit = len(rotors), controller[1]
    work, friction, slopes, wanted = workspace(n), np.zeros(n), np.zeros((STATES, n)), np.zeros((3, n))
    state, tau, integral = start.copy(), np.zeros(n), np.zeros(n)
    first = THETA if len(springs) else Q
    seen, seen_rate = start[first] + (position_noise[0] if len(position_noise) else 0.0), start[first + 1].copy()
    held = [(start[first].copy(), start[first + 1].copy())] * (delay + 1)

    def rhs(_: float, y: Array, torque: Array, warm: float) -> Array:
        if not (np.abs(y) < _FAR).all():
            raise _Stopped(int(np.abs(y.reshape(STATES, n)[QD]).argmax()), RAN_AWAY)
        bad = slope(tree, rotors, law, springs, y.reshape(STATES, n), torque, warm, work, friction, slopes)
        if bad >= 0:
            raise _Stopped(bad, NOT_PHYSICAL)
        return slopes.ravel().copy()

    for tick in range(desired.shape[1]):
        before = seen.copy()
        held = [*held[1:], (state[first].copy(), state[first + 1].copy())]
        late_q, late_qd = held[0]
        measure(tick, late_q, position_noise, dropped, resolution, seen)
        if differenced:
            seen_rate = (seen - before) / dt if tick else start[first + 1].copy()
        else:
            seen_rate = late_qd + (velocity_noise[tick] if len(velocity_noise) else 0.0)
        control(controller, nominal, desired, feed_forward, tick, seen, seen_rate, integral, dt, work, wanted, tau)
        saturated += np.abs(tau) >= limit
        if tick % ticks_a_sample == 0:
            try:
                rhs(0.0, state.ravel(), tau, temperature[tick])
            except _Stopped as stopped:
                return tick, stopped.joint, stopped.reason
            rows = (state[0], state[1], slopes[1], tau, seen, seen_rate, friction, state[3], state[4])
            out[:, tick // ticks_a_sample] = rows if len(out) > BRIEF else rows[:BRIEF]
        try:
            done = solve_ivp(
                rhs, (0.0, dt), state.ravel(), method=method, args=(tau, temperature[tick]), rtol=RELATIVE,
                atol=ABSOLUTE,
            )  # fmt: skip
        except _Stopped as stopped:
            return tick, stopped.joint, stopped.reason
        state = done.y[:, -1].reshape(STATES, n)
        fast = ~(np.abs(state[[QD, THETAD]]) < RUNAWAY).all(axis=0)
        if fast.any():
            return tick, int(fast.argmax()), RAN_AWAY
        if not done.success:
            return tick, int(np.abs(state[QD]).argmax()), RAN_AWAY
    return -1, -1, -1
