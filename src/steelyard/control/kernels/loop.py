"""One tick of a plant: the torque is held while explicit integrators carry the state to the next tick.

The state and its integrators are those of `simulation/kernels/loop.py`; here something from outside may push the links,

    M q̈ + C q̇ + g + F(q̇) = T + push,
"""

import math

from ...compiled import kernel
from ...dynamics.kernels.single import mass_of_tree, solve_tree
from ...simulation.kernels.loop import (
    LOOKS,
    LUGRE,
    NOT_PHYSICAL,
    QD,
    RAN_AWAY,
    RUNAWAY,
    SEMI_IMPLICIT,
    STAGES,
    STATES,
    THETA,
    THETAD,
    WEIGHS,
    Q,
    burst,
    fastest_joint,
    slope,
)


@kernel
def _pushed(tree, rotors, push, work, extra, rate):
    """What the push adds to the acceleration; `slope` has left the poses in `work`, but factors where M was."""
    parents, rotary, _, inertias, _ = tree
    mass_of_tree(parents, rotary, inertias, rotors, work)
    for k in range(push.size):
        extra[k] = push[k]
    solve_tree(parents, work[3], extra)
    for k in range(push.size):
        rate[QD, k] += extra[k]


@kernel
def _out_of_bounds(state, rows):
    for k in range(state.shape[1]):
        if not abs(state[QD, k]) < RUNAWAY or (rows > THETAD and not abs(state[THETAD, k]) < RUNAWAY):
            return True
    return False


@kernel
def hold(plant, tau, push, temperature, settings, scratch, state, acceleration, friction):
    """Carry the state through one tick; a joint and the reason why it cannot be, or -1, -1.

    `settings`: steps a tick, integrator, length of a step. `acceleration` and `friction` are filled as they are at the
    beginning of the tick.
    """
    tree, rotors, law, springs = plant
    substeps, integrator, h = settings
    work, trial, rate, total, felt_friction, extra = scratch
    n = tau.size
    rows = STATES if springs.shape[0] else THETA
    pushes = False
    for k in range(n):
        pushes = pushes or push[k] != 0.0
    for substep in range(substeps):
        for stage in range(STAGES[integrator]):
            look, weight = LOOKS[integrator, stage] * h, WEIGHS[integrator, stage]
            for j in range(rows):
                for k in range(n):
                    trial[j, k] = state[j, k] + (look * rate[j, k] if stage else 0.0)
            failed = slope(tree, rotors, law, springs, trial, tau, temperature, work, felt_friction, rate)
            if failed >= 0:
                return (fastest_joint(state), RAN_AWAY) if _out_of_bounds(trial, rows) else (failed, NOT_PHYSICAL)
            if pushes:
                _pushed(tree, rotors, push, work, extra, rate)
            if substep == 0 and stage == 0:
                for k in range(n):
                    acceleration[k] = rate[QD, k]
                    friction[k] = felt_friction[k]
            for j in range(rows):
                for k in range(n):
                    total[j, k] = weight * rate[j, k] + (total[j, k] if stage else 0.0)
        for j in range(rows):
            for k in range(n):
                state[j, k] += h * total[j, k]
        if integrator == SEMI_IMPLICIT:
            for k in range(n):
                state[Q, k] += h * h * total[QD, k]
                state[THETA, k] += h * h * total[THETAD, k]
        if _out_of_bounds(state, rows):
            finite = fastest_joint(state)
            return (finite if math.isfinite(state[QD, finite]) else fastest_joint(trial)), RAN_AWAY
        if law[0] == LUGRE or springs.shape[0]:
            k = burst(law, springs, state, tau)
            if k >= 0:
                return k, RAN_AWAY
    return -1, -1
