"""A robot under control: one compiled loop over control ticks, and explicit integrators inside a tick.

The state is (q, q̇, z, θ, θ̇, w): link position and velocity, bristle deflection, motor position and velocity, and the
torque that a hysteresis remembers. With rigid joints the last three are not used and the rotors sit in the mass matrix;
with flexible ones (7.2.1 of the textbook)

    M q̈ + C q̇ + g + F(q̇) = T(θ − q, θ̇ − q̇, w),    B θ̈ + T = tau.
"""

import math

import numpy as np

from ...compiled import kernel
from ...dynamics.kernels.joints import joint_torque
from ...dynamics.kernels.single import (
    felt,
    inverse_of_tree,
    mass_of_tree,
    place_joints,
    solve_tree,
    torque_of_state,
    workspace,
    wrenches,
)
from ...physics.kernels.friction import BREAKAWAY, BRISTLE_STIFFNESS, LOADING, LUGRE, friction_torque, signed_friction
from ...physics.kernels.transmission import BETA, EXPONENT, GAMMA, HYSTERESIS, ROTOR, SLOPE, giving_joint
from .grip import any_grip, gripped, restate, settle

RK1, RK2, RK4, SEMI_IMPLICIT = range(4)
FEEDBACK_ONLY, WITH_GRAVITY, COMPUTED_TORQUE = range(3)
# Rows of a state.
Q, QD, Z, THETA, THETAD, W = range(6)
STATES = 6
# What is kept of every sample, in this order; a short answer has the first four only.
KEPT = ("q", "qd", "qdd", "tau", "q_seen", "qd_seen", "friction", "theta", "theta_rate")
BRIEF = 4
# Why a simulation stops before its end.
RAN_AWAY, NOT_PHYSICAL = range(2)
# Faster than this nothing that is called a robot moves; the numbers have run away.
RUNAWAY = 1e4


@kernel
def slope(tree, rotors, law, springs, state, tau, temperature, work, friction, out):
    """d/dt of a state under a constant torque; the joint in which the mass matrix is not positive, or -1."""
    parents, rotary, frames, inertias, gravity = tree
    code, table, grips = law
    n = tau.size
    flexible = springs.shape[0] > 0
    acceleration = out[QD]
    for k in range(n):
        acceleration[k] = 0.0
    place_joints(rotary, frames, state[Q], work)
    wrenches(parents, rotary, inertias, gravity, state[QD], acceleration, work)
    felt(parents, rotary, work, acceleration)
    mass_of_tree(parents, rotary, inertias, rotors, work)
    for k in range(n):
        drive = tau[k]
        if flexible:
            twist, rate = state[THETA, k] - state[Q, k], state[THETAD, k] - state[QD, k]
            drive, out[W, k] = giving_joint(springs[k], twist, rate, state[W, k])
            out[THETA, k] = state[THETAD, k]
            out[THETAD, k] = (tau[k] - drive) / springs[k, ROTOR]
        if math.isnan(grips[k]):
            f, z_rate = friction_torque(code, table[k], state[QD, k], state[Z, k], drive, temperature)
        else:
            f, z_rate = signed_friction(code, table[k], state[QD, k], grips[k], drive, temperature), 0.0
        friction[k] = f
        out[Q, k] = state[QD, k]
        out[Z, k] = z_rate
        acceleration[k] = drive - acceleration[k] - f
    return solve_tree(parents, work[3], acceleration)


# Explicit Runge–Kutta methods in which a stage needs the one before only: where each stage looks, and what it weighs.
# Euler, the midpoint rule, and the classical method of order four; the semi-implicit method has Euler's one stage.
STAGES = np.array([1, 2, 4, 1])
LOOKS = np.array([[0.0, 0.0, 0.0, 0.0], [0.0, 0.5, 0.0, 0.0], [0.0, 0.5, 0.5, 1.0], [0.0, 0.0, 0.0, 0.0]])
# Part of a step for which a constant acceleration's change of velocity moves a position.
SHARES = np.array([0.0, 0.5, 0.5, 1.0])
WEIGHS = np.array([[1.0, 0, 0, 0], [0.0, 1.0, 0, 0], [1 / 6, 1 / 3, 1 / 3, 1 / 6], [1.0, 0, 0, 0]])


@kernel
def measure(row, clean, noise, dropped, resolution, out):
    """What an encoder says: noise, steps, and its last word where a sample is lost; no rows of noise: no errors."""
    for k in range(clean.size):
        if dropped.shape[0] and dropped[row, k]:
            continue
        value = clean[k]
        if noise.shape[0]:
            value += noise[row, k]
        if resolution[k] > 0.0:
            value = math.floor(value / resolution[k] + 0.5) * resolution[k]
        out[k] = value


@kernel
def _knows(nominal, joints, q, qd, qdd, work, model_tau):
    """The nominal model's torque, its joints' own included."""
    torque_of_state(nominal, q, qd, qdd, work, model_tau)
    for k in range(q.size):
        model_tau[k] += joint_torque(joints, k, qd[k], qdd[k])


@kernel
def control(controller, nominal, desired, feed_forward, row, q_seen, qd_seen, integral, dt, work, wanted, tau):
    """tau = Kp e + Kd ė + Ki ∫e (+ what the nominal model adds), saturated; the integral waits while it saturates.

    `wanted` has three rows of scratch: an acceleration, the model's torque, and zeros.
    """
    gains, limit, mode = controller
    tree, joints = nominal
    n = tau.size
    acceleration, model_tau, still = wanted[0], wanted[1], wanted[2]
    if mode == WITH_GRAVITY:
        _knows(tree, joints, q_seen, still, still, work, model_tau)
    elif mode == COMPUTED_TORQUE:
        # The gains shape an acceleration, which the model turns into torque.
        for k in range(n):
            e = desired[0, row, k] - q_seen[k]
            acceleration[k] = desired[2, row, k] + gains[0, k] * e
            acceleration[k] += gains[2, k] * (desired[1, row, k] - qd_seen[k]) + gains[1, k] * integral[k]
        _knows(tree, joints, q_seen, qd_seen, acceleration, work, model_tau)
    for k in range(n):
        e, rate_e = desired[0, row, k] - q_seen[k], desired[1, row, k] - qd_seen[k]
        asked = feed_forward[row, k] if feed_forward.shape[0] else 0.0
        if mode != COMPUTED_TORQUE:
            asked += gains[0, k] * e + gains[1, k] * (integral[k] + e * dt) + gains[2, k] * rate_e
        if mode != FEEDBACK_ONLY:
            asked += model_tau[k]
        given = min(max(asked, -limit[k]), limit[k])
        # Anti-windup: do not integrate an error that pushes further into saturation.
        if given == asked or (asked - given) * e < 0.0:
            integral[k] += e * dt
        tau[k] = given


@kernel
def _keep(out, row, state, rate, seen, seen_rate, tau, friction):
    full = out.shape[0] > BRIEF
    for k in range(tau.size):
        out[0, row, k] = state[Q, k]
        out[1, row, k] = state[QD, k]
        out[2, row, k] = rate[QD, k]
        out[3, row, k] = tau[k]
        if full:
            out[4, row, k] = seen[k]
            out[5, row, k] = seen_rate[k]
            out[6, row, k] = friction[k]
            out[7, row, k] = state[THETA, k]
            out[8, row, k] = state[THETAD, k]


@kernel
def fastest_joint(state):
    """The joint with the largest finite speed of link or motor, or one that is not finite where none is."""
    worst, largest = 0, -1.0
    for k in range(state.shape[1]):
        speed = max(abs(state[QD, k]), abs(state[THETAD, k]))
        if speed < np.inf and speed > largest:
            worst, largest = k, speed
    return worst


@kernel
def wild(state, rows):
    """Whether a number of the state is out of all bounds or not a number."""
    for k in range(state.shape[1]):
        if not abs(state[QD, k]) < RUNAWAY:
            return True
        if rows > THETAD and not abs(state[THETAD, k]) < RUNAWAY:
            return True
    return False


@kernel
def burst(law, springs, state, tau):
    """The joint whose bristles or hysteresis stand far beyond what bounds them, as after too large a step; or -1.

    |σ0 z| ≤ Fs and |w| ≤ (A/(β + γ))^(1/n) if they start so; ten times that is no rounding.
    """
    code, table, _ = law
    for k in range(tau.size):
        grip = 1.0 + table[k, LOADING] * abs(tau[k])
        if code == LUGRE and abs(state[Z, k]) * table[k, BRISTLE_STIFFNESS] > 10.0 * grip * table[k, BREAKAWAY]:
            return k
        if springs.shape[0] and springs[k, HYSTERESIS + SLOPE] > 0.0:
            row = springs[k, HYSTERESIS:]
            if abs(state[W, k]) > 10.0 * (row[SLOPE] / (row[BETA] + row[GAMMA])) ** (1.0 / row[EXPONENT]):
                return k
    return -1


@kernel
def advance(state, total, h, rows, semi_implicit):
    """One step of a state."""
    for j in range(rows):
        for k in range(state.shape[1]):
            state[j, k] += h * total[j, k]
    if semi_implicit:
        # Positions move with the velocities they have after the step.
        for k in range(state.shape[1]):
            state[Q, k] += h * h * total[QD, k]
            state[THETA, k] += h * h * total[THETAD, k]


@kernel
def run(
    tree,
    rotors,
    law,
    springs,
    controller,
    nominal,
    desired,
    feed_forward,
    start,
    settings,
    noise,
    resolution,
    temperature,
    saturated,
    out,
):
    """All control ticks; the tick, joint and reason (`RAN_AWAY`, `NOT_PHYSICAL`) of an early stop, or -1, -1, -1.

    `settings`: steps a tick, ticks a sample, integrator, delay in ticks, whether velocity is differenced, and the
    length of a tick. `out` has a table of samples for each of `KEPT`, or for the first `BRIEF` of them; `saturated`
    counts the ticks at which a joint got less torque than the controller asked for.
    """
    limit = controller[1]
    substeps, ticks_a_sample, integrator, delay, differenced, dt = settings
    position_noise, velocity_noise, dropped = noise
    n = rotors.size
    ticks = desired.shape[1]
    work, friction, wanted = workspace(n), np.zeros(n), np.zeros((3, n))
    trial, rate, total = np.zeros((STATES, n)), np.zeros((STATES, n)), np.zeros((STATES, n))
    rows = STATES if springs.shape[0] else THETA
    state = start.copy()
    gripping, inverse, dry = any_grip(law[2]), np.empty((n, n)), np.zeros((2, n))
    position_share = SHARES[integrator]
    tau, integral = np.zeros(n), np.zeros(n)
    seen, seen_rate, before = np.empty(n), np.empty(n), np.empty(n)
    # Sensors sit on the motor where there is one between them and the link.
    position = THETA if springs.shape[0] else Q
    late_q, late_qd = np.empty(n), np.empty(n)
    slots = max(delay, 1)
    held = np.empty((slots, 2, n))
    for k in range(n):
        seen[k] = start[position, k] + (position_noise[0, k] if position_noise.shape[0] else 0.0)
        before[k] = seen[k]
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
                seen_rate[k] = late_qd[k] + (velocity_noise[tick, k] if velocity_noise.shape[0] else 0.0)
        control(controller, nominal, desired, feed_forward, tick, seen, seen_rate, integral, dt, work, wanted, tau)
        for k in range(n):
            if abs(tau[k]) >= limit[k]:
                saturated[k] += 1
        for substep in range(substeps):
            for stage in range(STAGES[integrator]):
                look, weight = LOOKS[integrator, stage] * h, WEIGHS[integrator, stage]
                for j in range(rows):
                    for k in range(n):
                        trial[j, k] = state[j, k] + (look * rate[j, k] if stage else 0.0)
                failed = slope(tree, rotors, law, springs, trial, tau, temperature[tick], work, friction, rate)
                if failed >= 0:
                    if wild(trial, rows):
                        return tick, fastest_joint(state), RAN_AWAY
                    return tick, failed, NOT_PHYSICAL
                if gripping and stage == 0:
                    inverse_of_tree(tree[0], work[3], inverse)
                    gripped(law, springs, tau, rate[THETAD], state[QD], temperature[tick], dry[0])
                if substep == 0 and stage == 0 and tick % ticks_a_sample == 0:
                    _keep(out, tick // ticks_a_sample, state, rate, seen, seen_rate, tau, friction)
                for j in range(rows):
                    for k in range(n):
                        total[j, k] = weight * rate[j, k] + (total[j, k] if stage else 0.0)
            advance(state, total, h, rows, integrator == SEMI_IMPLICIT)
            if gripping:
                motors, warm = rate[THETAD], temperature[tick]
                gripped(law, springs, tau, motors, state[QD], warm, dry[1])
                settle(law, springs, tau, motors, warm, inverse, h, position_share, state[Q], state[QD], dry[1])
                if substep == 0 and tick % ticks_a_sample == 0:
                    row = tick // ticks_a_sample
                    restate(inverse, dry[0], dry[1], out[2, row], out[6, row] if out.shape[0] > BRIEF else friction)
            if wild(state, rows):
                # What was fastest before all became nonsense.
                finite = fastest_joint(state)
                return tick, finite if abs(state[QD, finite]) < np.inf else fastest_joint(trial), RAN_AWAY
            if law[0] == LUGRE or springs.shape[0]:
                k = burst(law, springs, state, tau)
                if k >= 0:
                    return tick, k, RAN_AWAY
    return -1, -1, -1
