"""A robot under control: one compiled loop over control ticks, and explicit integrators inside a tick.

The state is (q, q̇, z, θ, θ̇): link position and velocity, bristle deflection, motor position and velocity. With rigid
joints θ is not used and the rotors sit in the mass matrix; with flexible ones (7.2.1 of the textbook)

    M q̈ + C q̇ + g + F(q̇) = K(θ − q) + D(θ̇ − q̇),    B θ̈ + K(θ − q) + D(θ̇ − q̇) = tau.
"""

import math

import numpy as np

from ...compiled import kernel
from ...dynamics.kernels.forward import cholesky_solve
from ...dynamics.kernels.joints import ARMATURE
from ...dynamics.kernels.kinematics import load_rates, place
from ...dynamics.kernels.lanes import RATE, RATE_RATE, lanes_from, of_dof
from ...dynamics.kernels.newton_euler import inverse_dynamics, torques
from ...dynamics.kernels.spatial import mass
from ...physics.kernels.friction import friction_torque

RK1, RK2, RK4, SEMI_IMPLICIT = range(4)
FEEDBACK_ONLY, WITH_GRAVITY, COMPUTED_TORQUE = range(3)
# Rows of a state.
Q, QD, Z, THETA, THETAD = range(5)
# Columns of a flexible joint: motor inertia, stiffness, damping.
_INERTIA, _STIFFNESS, _DAMPING = range(3)
# Faster than this nothing that is called a robot moves; the numbers have run away.
RUNAWAY = 1e4


@kernel
def slope(model, law, flexible, state, tau, temperature, lanes, M, friction, out):
    """d/dt of a state under a constant torque; False where the mass matrix is not positive definite."""
    links, dofs, bodies, rotors, gravity = model
    code, table = law
    x, y, p, total = lanes
    n = dofs.shape[0]
    count = lanes_from(0, 1)
    # The rows of the state are the samples that these kernels are told to look at.
    place(links, state, Q, count, x, y, p)
    load_rates(dofs, state, RATE, QD, count, y)
    for k in range(n):
        y[of_dof(k) + RATE_RATE] = 0.0
    torques(links, dofs, bodies, rotors, gravity, QD, count, x, y, p, out)
    mass(links, dofs, bodies, rotors, x, y, np.uint64(0), total, M)
    for k in range(n):
        drive = tau[k]
        out[THETA, k] = 0.0
        out[THETAD, k] = 0.0
        if flexible.shape[0]:
            spring = flexible[k, _STIFFNESS] * (state[THETA, k] - state[Q, k])
            spring += flexible[k, _DAMPING] * (state[THETAD, k] - state[QD, k])
            out[THETA, k] = state[THETAD, k]
            out[THETAD, k] = (tau[k] - spring) / flexible[k, _INERTIA]
            drive = spring
        f, z_rate = friction_torque(code, table[k], state[QD, k], state[Z, k], drive, temperature)
        friction[k] = f
        out[Q, k] = state[QD, k]
        out[Z, k] = z_rate
        out[QD, k] = drive - out[QD, k] - f
    return cholesky_solve(M, out[QD])


# Explicit Runge–Kutta methods in which a stage needs the one before only: where each stage looks, and what it weighs.
# Euler, the midpoint rule, and the classical method of order four; the semi-implicit method has Euler's one stage.
STAGES = np.array([1, 2, 4, 1])
LOOKS = np.array([[0.0, 0.0, 0.0, 0.0], [0.0, 0.5, 0.0, 0.0], [0.0, 0.5, 0.5, 1.0], [0.0, 0.0, 0.0, 0.0]])
WEIGHS = np.array([[1.0, 0, 0, 0], [0.0, 1.0, 0, 0], [1 / 6, 1 / 3, 1 / 3, 1 / 6], [1.0, 0, 0, 0]])


@kernel
def measure(row, clean, noise, dropped, resolution, out):
    """What an encoder says: noise, steps, and its last word where a sample is lost."""
    for k in range(clean.size):
        if dropped[row, k]:
            continue
        value = clean[k] + noise[row, k]
        if resolution[k] > 0.0:
            value = math.floor(value / resolution[k] + 0.5) * resolution[k]
        out[k] = value


@kernel
def control(gains, limit, mode, nominal, desired, feed_forward, row, q_seen, qd_seen, integral, dt, model_tau, tau):
    """tau = Kp e + Kd ė + Ki ∫e (+ what the nominal model adds), saturated; the integral waits while it saturates."""
    links, dofs, bodies, joints, gravity = nominal
    n = tau.size
    if mode == WITH_GRAVITY:
        zero = np.zeros((1, n))
        inverse_dynamics(links, dofs, bodies, joints, gravity, q_seen.reshape((1, n)), zero, zero, model_tau)
    elif mode == COMPUTED_TORQUE:
        # The gains shape an acceleration, which the model turns into torque.
        wanted = np.empty((1, n))
        for k in range(n):
            e = desired[0, row, k] - q_seen[k]
            wanted[0, k] = desired[2, row, k] + gains[0, k] * e
            wanted[0, k] += gains[2, k] * (desired[1, row, k] - qd_seen[k]) + gains[1, k] * integral[k]
        q1, qd1 = q_seen.reshape((1, n)), qd_seen.reshape((1, n))
        inverse_dynamics(links, dofs, bodies, joints, gravity, q1, qd1, wanted, model_tau)
    for k in range(n):
        e, rate_e = desired[0, row, k] - q_seen[k], desired[1, row, k] - qd_seen[k]
        asked = feed_forward[row, k]
        if mode != COMPUTED_TORQUE:
            asked += gains[0, k] * e + gains[1, k] * (integral[k] + e * dt) + gains[2, k] * rate_e
        if mode != FEEDBACK_ONLY:
            asked += model_tau[0, k]
        given = min(max(asked, -limit[k]), limit[k])
        # Anti-windup: do not integrate an error that pushes further into saturation.
        if given == asked or (asked - given) * e < 0.0:
            integral[k] += e * dt
        tau[k] = given


@kernel
def _keep(out, row, state, rate, seen, seen_rate, tau, friction):
    for k in range(tau.size):
        out[row, 0, k] = state[Q, k]
        out[row, 1, k] = state[QD, k]
        out[row, 2, k] = rate[QD, k]
        out[row, 3, k] = seen[k]
        out[row, 4, k] = seen_rate[k]
        out[row, 5, k] = tau[k]
        out[row, 6, k] = friction[k]
        out[row, 7, k] = state[THETA, k]
        out[row, 8, k] = state[THETAD, k]


@kernel
def run(
    model,
    law,
    flexible,
    controller,
    nominal,
    desired,
    feed_forward,
    start,
    settings,
    noise,
    resolution,
    temperature,
    out,
):
    """All control ticks; returns the tick and joint at which the numbers ran away, or -1, -1.

    `settings`: steps a tick, ticks a sample, integrator, delay in ticks, whether velocity is differenced, and the
    length of a tick. `out` has a row a sample of q, q̇, q̈, q and q̇ as seen, tau, friction, θ, θ̇.
    """
    gains, limit, mode = controller
    substeps, ticks_a_sample, integrator, delay, differenced, dt = settings
    position_noise, velocity_noise, dropped = noise
    n = model[1].shape[0]
    ticks = desired.shape[1]
    from_dynamics = np.empty(model[0].shape[0] * 30 * 8), np.empty(n * 16 * 8), np.empty(30 * 8)
    lanes = (from_dynamics[0], from_dynamics[1], from_dynamics[2], np.empty((model[0].shape[0], 10)))
    M, friction = np.empty((n, n)), np.zeros(n)
    trial, rate, total = np.zeros((5, n)), np.zeros((5, n)), np.zeros((5, n))
    rows = 5 if flexible.shape[0] else 3
    state = start.copy()
    tau, integral, model_tau = np.zeros(n), np.zeros(n), np.zeros((1, n))
    seen, seen_rate, before = np.empty(n), np.empty(n), np.empty(n)
    # Sensors sit on the motor where there is one between them and the link.
    position = THETA if flexible.shape[0] else Q
    late_q, late_qd = np.empty(n), np.empty(n)
    slots = max(delay, 1)
    held = np.empty((slots, 2, n))
    for k in range(n):
        seen[k] = before[k] = start[position, k] + position_noise[0, k]
        seen_rate[k] = start[position + 1, k]
        for d in range(slots):
            held[d, 0, k] = start[position, k]
            held[d, 1, k] = start[position + 1, k]
    h = dt / substeps
    for tick in range(ticks):
        slot = tick % slots
        # What the sensors say now is what was true `delay` ticks ago.
        for k in range(n):
            before[k] = seen[k]
            now, rate_now = state[position, k], state[position + 1, k]
            late_q[k] = held[slot, 0, k] if delay else now
            late_qd[k] = held[slot, 1, k] if delay else rate_now
            held[slot, 0, k] = now
            held[slot, 1, k] = rate_now
        measure(tick, late_q, position_noise, dropped, resolution, seen)
        for k in range(n):
            if differenced:
                seen_rate[k] = (seen[k] - before[k]) / dt if tick else start[position + 1, k]
            else:
                seen_rate[k] = late_qd[k] + velocity_noise[tick, k]
        control(gains, limit, mode, nominal, desired, feed_forward, tick, seen, seen_rate, integral, dt, model_tau, tau)
        for substep in range(substeps):
            total[:, :] = 0.0
            for stage in range(STAGES[integrator]):
                look, weight = LOOKS[integrator, stage] * h, WEIGHS[integrator, stage]
                for j in range(rows):
                    for k in range(n):
                        trial[j, k] = state[j, k] + (look * rate[j, k] if stage else 0.0)
                if not slope(model, law, flexible, trial, tau, temperature[tick], lanes, M, friction, rate):
                    return tick, 0
                if substep == 0 and stage == 0 and tick % ticks_a_sample == 0:
                    _keep(out, tick // ticks_a_sample, state, rate, seen, seen_rate, tau, friction)
                for j in range(rows):
                    for k in range(n):
                        total[j, k] += weight * rate[j, k]
            for k in range(n):
                for j in range(rows):
                    state[j, k] += h * total[j, k]
                if integrator == SEMI_IMPLICIT:
                    # Positions move with the velocities they have after the step.
                    state[Q, k] += h * h * total[QD, k]
                    state[THETA, k] += h * h * total[THETAD, k]
        for k in range(n):
            if not (abs(state[QD, k]) < RUNAWAY and abs(state[THETAD, k]) < RUNAWAY):
                return tick, k
    return -1, -1


# The mass matrix of the loop holds the rotors only where the joints are rigid; the row of armature says so.
assert ARMATURE == 0
