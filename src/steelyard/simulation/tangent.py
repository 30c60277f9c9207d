"""Sensitivities of a closed loop by its variational equations: the cost of a few simulations for all numbers at once.

Along a motion that was simulated,   M δq̈ + ∂tau/∂q δq + ∂tau/∂q̇ δq̇ + Y δtheta = δtau,   δtau what the controller makes
of it. Dry friction enters by its mean slope over a tick, which is exact where a joint turns round.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dynamics import mass_matrix, regressor, torque_gradients
from ..errors import OptionError
from ..physics.kernels.friction import SIGN_WIDTH
from ..robot.robot import Robot
from .kernels.loop import COMPUTED_TORQUE, FEEDBACK_ONLY, KEPT, WITH_GRAVITY
from .kernels.tangent import ACCELERATION, SEEN, SEEN_RATE, TORQUE, carry
from .loop import ClosedLoop

Array = NDArray[np.float64]

CHANNELS = {"q": SEEN, "qd": SEEN_RATE, "qdd": ACCELERATION, "tau": TORQUE}
_BLOCK = 4096  # ticks, so that memory stays small
_COULOMB = 2  # of JOINT_PROPERTIES
_STILL = 1e-9  # rad/s or m/s: a change below has no secant


def _middle(x: Array) -> Array:
    return np.asarray(0.5 * (x[1:] + x[:-1]))


def _dry_slope(robot: Robot, qd: Array) -> Array:
    """Mean slope of dry friction over each tick, (ticks − 1, n)."""
    level = np.maximum(robot.joint_parameters[:, _COULOMB], 0.0)
    bent = np.tanh(qd / SIGN_WIDTH)
    change = np.diff(qd, axis=0)
    tangent = (1.0 - _middle(bent) ** 2) / SIGN_WIDTH
    still = np.abs(change) < _STILL
    return np.asarray(level * np.where(still, tangent, np.diff(bent, axis=0) / np.where(still, 1.0, change)))


def _step(robot: Robot, directions: Array, dt: float, q: Array, qd: Array, qdd: Array) -> tuple[Any, ...]:
    """E, H, P, W of the ticks between the states."""
    P, V = (_middle(x) for x in torque_gradients(robot, q, qd, qdd))
    M, every = _middle(mass_matrix(robot, q)), np.arange(robot.n)
    V[:, every, every] += _dry_slope(robot, qd)
    moved = np.flatnonzero(directions.any(axis=1))
    W = _middle(regressor(robot, q, qd, qdd)[:, :, moved] @ directions[moved])
    G = np.linalg.inv(M + 0.5 * dt * V + 0.25 * dt**2 * P)
    E = 2.0 * G @ M
    E[:, every, every] -= 1.0
    H = dt * G
    return E, H, H @ P, H @ W


class _Feedback:
    """What the controller did along a motion (`KEPT`, ticks, n), and would do with a little more of anything."""

    def __init__(self, loop: ClosedLoop, motion: Array) -> None:
        n, dt = loop.robot.n, loop.dt
        self.loop, self.motion = loop, motion
        self.gains, self.limit = loop.controller.gains(n), loop.controller.limits(loop.robot)
        self.mode = loop.controller.mode()
        kept = {name: motion[KEPT.index(name)] for name in ("q_seen", "qd_seen", "tau")}
        self.seen, self.seen_rate, tau = kept["q_seen"], kept["qd_seen"], kept["tau"]
        desired = loop.reference[:, : len(tau)]
        self.error, self.error_rate = desired[0] - self.seen, desired[1] - self.seen_rate
        self.passes = np.abs(tau) < self.limit
        self.integrates = self.passes | (np.sign(tau) * self.error < 0.0)
        summed = np.cumsum(np.where(self.integrates, self.error, 0.0) * dt, axis=0)
        self.integral = np.vstack([np.zeros(n), summed[:-1]])
        # Without a model in the loop the integral counts its own tick already.
        self.summed = self.integral + (self.error * dt if self.mode != COMPUTED_TORQUE else 0.0)

    def coupling(self, a: int, b: int) -> Array:
        """∂tau by seen position, by integral and by seen velocity (ticks, 3, n, n), where a model couples joints."""
        loop, n = self.loop, self.loop.robot.n
        if self.mode == FEEDBACK_ONLY:
            return np.zeros((0, 3, n, n))
        out = np.zeros((b - a, 3, n, n))
        q, qd = self.seen[a:b], self.seen_rate[a:b]
        if self.mode == WITH_GRAVITY:
            every = np.arange(n)
            out[:, :, every, every] = self.gains
            out[:, 0, every, every] += self.gains[1] * loop.dt
            out[:, 0] -= torque_gradients(loop.known, q, np.zeros_like(q), np.zeros_like(q))[0]
            return out
        wanted = loop.reference[2, a:b] + self.gains[0] * self.error[a:b]
        wanted += self.gains[2] * self.error_rate[a:b] + self.gains[1] * self.integral[a:b]
        M = mass_matrix(loop.known, q)
        by_q, by_qd = torque_gradients(loop.known, q, qd, wanted)
        out[:, 0], out[:, 1], out[:, 2] = M * self.gains[0] - by_q, M * self.gains[1], M * self.gains[2] - by_qd
        return out

    def by_gains(self, a: int, b: int, moves: Sequence[tuple[int, int]]) -> Array:
        """∂tau by the logarithms of gains (ticks, n, moves)."""
        n = self.loop.robot.n
        out = np.zeros((b - a, n, len(moves)))
        causes = (self.error, self.summed, self.error_rate)
        M = mass_matrix(self.loop.known, self.seen[a:b]) if self.mode == COMPUTED_TORQUE and moves else None
        for k, (i, j) in enumerate(moves):
            asked = self.gains[i, j] * causes[i][a:b, j]
            if M is None:
                out[:, j, k] = asked
            else:
                out[:, :, k] = M[:, :, j] * asked[:, None]
        return out


def _state(n: int, columns: int, start_rows: int) -> tuple[tuple[Array, ...], Array]:
    """Nothing has moved yet but the start, whose columns come last; and the torque that a start holds."""
    dq, dqd, *rest = (np.zeros((n, columns)) for _ in range(8))
    held, first, every = np.zeros((n, columns)), columns - start_rows * n, np.arange(n)
    for row, where in enumerate((dq, dqd, held)[:start_rows]):
        where[every, first + row * n + every] = 1.0
    rest[0][:] = dq  # what the sensors saw before
    return (dq, dqd, *rest), held


def tangents(
    loop: ClosedLoop, robot: Robot, motion: Array, directions: Array, names: Sequence[str],
    gain_moves: Sequence[tuple[int, int]] = (), start_rows: int = 0, stride: int = 1,
) -> Array:  # fmt: skip
    """∂signals by `directions` of the robot's parameters, relative moves of gains, and start: (samples, m, columns).

    `motion` is what the loop kept (`KEPT`) of every tick with this robot; `stride` ticks make a sample.
    """
    if loop.friction is not None or loop.flexible is not None:
        raise OptionError("variational equations are written for rigid joints with the robot's own friction")
    n, ticks, dt = loop.robot.n, motion.shape[1], loop.dt
    columns = directions.shape[1] + len(gain_moves) + start_rows * n
    out = np.zeros(((ticks + stride - 1) // stride, len(names) * n, columns))
    feedback, (state, held) = _Feedback(loop, motion), _state(n, columns, start_rows)
    ring = np.zeros((loop.delay_ticks, 2, n, columns))
    ring[:, 0], ring[:, 1] = state[0], state[1]
    differenced = loop.velocity == "differentiated"
    channels = np.array([CHANNELS[name] for name in names])
    for a in range(0, ticks, _BLOCK):
        b = min(a + _BLOCK, ticks)
        # The last tick leads nowhere; its own matrices serve.
        states = [np.concatenate([x[a : b + 1], x[b - 1 : b]]) if b == ticks else x[a : b + 1] for x in motion[:3]]
        step: Any = _step(robot, directions, dt, *states)
        carry(
            a, b, stride, dt, differenced, tuple(np.ascontiguousarray(x) for x in step),
            (feedback.gains, feedback.coupling(a, b), feedback.passes[a:b], feedback.integrates[a:b]),
            (feedback.by_gains(a, b, gain_moves), held), ring, state, channels, out,
        )  # fmt: skip
    return out
