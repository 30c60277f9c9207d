"""One tick of a plant: the torque is held while explicit integrators carry the state to the next tick.

The state and its integrators are those of `simulation/kernels/loop.py`; here something from outside may push the links,

    M q̈ + C q̇ + g + F(q̇) = T + push,
"""

import math

from ...compiled import kernel
from ...dynamics.kernels.single import inverse_of_tree, mass_of_tree, solve_tree
from ...simulation.kernels.grip import any_grip, gripped, restate, settle
from ...simulation.kernels.loop import (
    LOOKS,
    LUGRE,
    NOT_PHYSICAL,
    QD,
    RAN_AWAY,
    SEMI_IMPLICIT,
    SHARES,
    STAGES,
    STATES,
    THETA,
    THETAD,
    WEIGHS,
    Q,
    advance,
    burst,
    fastest_joint,
    slope,
    wild,
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
def hold(plant, tau, push, temperature, settings, scratch, state, acceleration, friction):
    """Carry the state through one tick; a joint and the reason why it cannot be, or -1, -1.

    `settings`: steps a tick, integrator, length of a step. `acceleration` and `friction` are filled as they are at the
    beginning of the tick. The grips in `law` are those that the last tick left.
    """
    tree, rotors, law, springs = plant
    substeps, integrator, h = settings
    work, trial, rate, total, felt_friction, extra, inverse, dry = scratch
    n = tau.size
    rows = STATES if springs.shape[0] else THETA
    gripping, position_share = any_grip(law[2]), SHARES[integrator]
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
                return (fastest_joint(state), RAN_AWAY) if wild(trial, rows) else (failed, NOT_PHYSICAL)
            if gripping and stage == 0:
                inverse_of_tree(tree[0], work[3], inverse)
                gripped(law, springs, tau, rate[THETAD], state[QD], temperature, dry[0])
            if pushes:
                _pushed(tree, rotors, push, work, extra, rate)
            if substep == 0 and stage == 0:
                for k in range(n):
                    acceleration[k] = rate[QD, k]
                    friction[k] = felt_friction[k]
            for j in range(rows):
                for k in range(n):
                    total[j, k] = weight * rate[j, k] + (total[j, k] if stage else 0.0)
        advance(state, total, h, rows, integrator == SEMI_IMPLICIT)
        if gripping:
            motors = rate[THETAD]
            gripped(law, springs, tau, motors, state[QD], temperature, dry[1])
            settle(law, springs, tau, motors, temperature, inverse, h, position_share, state[Q], state[QD], dry[1])
            if substep == 0:
                restate(inverse, dry[0], dry[1], acceleration, friction)
        if wild(state, rows):
            finite = fastest_joint(state)
            return (finite if math.isfinite(state[QD, finite]) else fastest_joint(trial)), RAN_AWAY
        if law[0] == LUGRE or springs.shape[0]:
            k = burst(law, springs, state, tau)
            if k >= 0:
                return k, RAN_AWAY
    return -1, -1
