"""The closed loop with SciPy's adaptive integrators between control ticks: slower, for stiff joints and as a judge."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from .kernels.loop import RUNAWAY, control, measure, slope

Array = NDArray[np.float64]

RELATIVE, ABSOLUTE = 1e-9, 1e-11


def run_adaptive(
    method: str, arguments: tuple[Any, ...], rates: tuple[Any, ...], noise: tuple[Any, ...], resolution: Array,
    temperature: Array, out: Array,
) -> tuple[int, int]:  # fmt: skip
    """The same loop as the compiled `run`; every tick is integrated to a tolerance."""
    model, law, flexible, (gains, limit, mode), nominal, desired, feed_forward, start = arguments
    _, ticks_a_sample, _, delay, differenced, dt = rates
    position_noise, velocity_noise, dropped = noise
    links, n = len(model[0]), len(model[1])
    lanes = (np.empty(links * 30 * 8), np.empty(n * 16 * 8), np.empty(30 * 8), np.empty((links, 10)))
    M, friction, slopes = np.empty((n, n)), np.zeros(n), np.empty((5, n))
    state, tau, integral, model_tau = start.copy(), np.zeros(n), np.zeros(n), np.zeros((1, n))
    first = 3 if len(flexible) else 0
    rate_row = first + 1
    seen, seen_rate = start[first] + position_noise[0], start[rate_row].copy()
    held = [(start[first].copy(), start[rate_row].copy())] * (delay + 1)

    def rhs(_: float, y: Array, torque: Array, warm: float) -> Array:
        if not slope(model, law, flexible, y.reshape(5, n), torque, warm, lanes, M, friction, slopes):
            return np.full(5 * n, np.nan)
        return slopes.ravel().copy()

    for tick in range(desired.shape[1]):
        before = seen.copy()
        held = [*held[1:], (state[first].copy(), state[rate_row].copy())]
        late_q, late_qd = held[0]
        measure(tick, late_q, position_noise, dropped, resolution, seen)
        if differenced:
            seen_rate = (seen - before) / dt if tick else start[rate_row].copy()
        else:
            seen_rate = late_qd + velocity_noise[tick]
        control(gains, limit, mode, nominal, desired, feed_forward, tick, seen, seen_rate, integral, dt, model_tau, tau)
        if tick % ticks_a_sample == 0:
            rhs(0.0, state.ravel(), tau, temperature[tick])
            rows = (state[0], state[1], slopes[1], seen, seen_rate, tau, friction, state[3], state[4])
            out[tick // ticks_a_sample] = rows
        done = solve_ivp(
            rhs, (0.0, dt), state.ravel(), method=method, args=(tau, temperature[tick]), rtol=RELATIVE, atol=ABSOLUTE
        )
        state = done.y[:, -1].reshape(5, n)
        fast = ~(np.abs(state[[1, 4]]) < RUNAWAY).all(axis=0)
        if not done.success or fast.any():
            return tick, int(fast.argmax())
    return -1, -1
