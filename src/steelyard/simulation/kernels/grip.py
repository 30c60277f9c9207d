"""Dry friction with the exact sign, for joints on which a smooth one would need steps that are too small.

Such a joint has a grip s in [−1, 1], the part of its dry level L that acts: s L is a known torque during a step, so
that sliding is integrated as smoothly as anything else. At the step's end the velocities v* of the integrator become

    v = v* − h M⁻¹ (D − D*),    D_k = L_k sgn(v_k), or anything in [−L_k, L_k] where v_k = 0,

which no step makes unstable, and in which a joint that friction can hold stands still: Moreau's time stepping
(Unilateral contact and dry friction in finite freedom dynamics, 1988), solved by projected Gauss–Seidel.
"""

import math

import numpy as np

from ...compiled import kernel
from ...physics.kernels.friction import dry_level
from ...physics.kernels.transmission import ROTOR

_SWEEPS = 200
_SETTLED = 1e-10  # rad/s or m/s, a change of velocity that no sensor sees


@kernel
def any_grip(grips):
    """Whether a joint has a grip; the others have NaN."""
    held = 0
    for k in range(grips.size):
        held += not math.isnan(grips[k])
    return held > 0


@kernel
def carried(springs, tau, rate, k):
    """What a joint's friction feels as load: the motor's torque, or what its spring passes on."""
    return tau[k] - springs[k, ROTOR] * rate[k] if springs.shape[0] else tau[k]


@kernel
def gripped(law, springs, tau, rate, qd, temperature, out):
    """The torque of every grip at these velocities; `rate` is the motors' acceleration."""
    code, table, grips = law
    for k in range(qd.size):
        out[k] = 0.0
        if not math.isnan(grips[k]):
            load = carried(springs, tau, rate, k)
            out[k] = grips[k] * dry_level(code, table[k], qd[k], grips[k] >= 0.0, load, temperature)


@kernel
def _sweep(levels, h, inverse, grips, qd, dry):
    """One sweep over the joints that have a grip; the largest change of a velocity."""
    largest = 0.0
    for k in range(qd.size):
        if math.isnan(grips[k]):
            continue
        stops = dry[k] + qd[k] / (h * inverse[k, k])
        change = min(max(stops, -levels[k, 1]), levels[k, 0]) - dry[k]
        if change != 0.0:
            dry[k] += change
            for i in range(qd.size):
                qd[i] -= h * inverse[k, i] * change
            largest = max(largest, abs(h * inverse[k, k] * change))
    return largest


@kernel
def settle(law, springs, tau, rate, temperature, inverse, h, position_share, q, qd, dry):
    """Bring velocities from v* to v, positions along, and grips and their torques from D* to D.

    `inverse` is M⁻¹; `dry` has D* and is left with D. `position_share` is the part of a step for which the change of
    a velocity, which builds up during it, moves the position.
    """
    code, table, grips = law
    n = qd.size
    levels, before = np.zeros((n, 2)), qd.copy()
    for k in range(n):
        if not math.isnan(grips[k]):
            load = carried(springs, tau, rate, k)
            levels[k, 0] = dry_level(code, table[k], qd[k], True, load, temperature)
            levels[k, 1] = dry_level(code, table[k], qd[k], False, load, temperature)
    for _ in range(_SWEEPS):
        if _sweep(levels, h, inverse, grips, qd, dry) < _SETTLED:
            break
    for k in range(n):
        if not math.isnan(grips[k]):
            level = levels[k, 0] if dry[k] >= 0.0 else levels[k, 1]
            grips[k] = dry[k] / level if level > 0.0 else 0.0
            if -levels[k, 1] < dry[k] < levels[k, 0] and abs(qd[k]) < 10.0 * _SETTLED:
                qd[k] = 0.0
        q[k] += position_share * h * (qd[k] - before[k])


@kernel
def restate(inverse, before, after, acceleration, friction):
    """Acceleration and friction of a state, with grips as they are after the step instead of before."""
    for k in range(acceleration.size):
        change = after[k] - before[k]
        if change != 0.0:
            friction[k] += change
            for i in range(acceleration.size):
                acceleration[i] -= inverse[k, i] * change
