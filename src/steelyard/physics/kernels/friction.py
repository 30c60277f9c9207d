"""Friction of one joint at one instant, and the table in which every law stands as eight numbers a joint.

| column | `STATIC`  | `ASYMMETRIC`         | `STRIBECK`            | `LUGRE`               |
|--------|-----------|----------------------|-----------------------|-----------------------|
| 0      | damping   | damping, q̇ > 0       | damping               | σ2, damping           |
| 1      | coulomb   | coulomb, q̇ > 0       | Fc                    | Fc                    |
| 2      | –         | coulomb, q̇ < 0       | Fs                    | Fs                    |
| 3      | –         | damping, q̇ < 0       | q̇s                    | q̇s                    |
| 4      | –         | –                    | δ                     | σ0, bristle stiffness |
| 5      | offset    | –                    | –                     | σ1, bristle damping   |
| 6      | α, change of all friction a kelvin, as a fraction of its value at `REFERENCE_TEMPERATURE` (all laws)    |
| 7      | β, growth of the Coulomb levels (Fc, Fs, coulomb) a newton metre of joint load, as a fraction (all laws) |

Columns 0 to 5 hold at `REFERENCE_TEMPERATURE`; `NONE` reads no column.
"""

import math

from ...compiled import kernel

NONE, STATIC, ASYMMETRIC, STRIBECK, LUGRE = range(5)
DAMPING, COULOMB, BREAKAWAY, STRIBECK_VELOCITY, SHAPE, OFFSET, WARMING, LOADING = range(8)
COLUMNS = 8
COULOMB_BACKWARD, DAMPING_BACKWARD = BREAKAWAY, STRIBECK_VELOCITY
BRISTLE_STIFFNESS, BRISTLE_DAMPING = SHAPE, OFFSET

# The columns that grow with a law's torque; of LuGre, σ0 and the levels alike, so that ż stays what it was.
SCALES = {
    NONE: [],
    STATIC: [DAMPING, COULOMB, OFFSET],
    ASYMMETRIC: [DAMPING, COULOMB, COULOMB_BACKWARD, DAMPING_BACKWARD],
    STRIBECK: [DAMPING, COULOMB, BREAKAWAY],
    LUGRE: [DAMPING, COULOMB, BREAKAWAY, BRISTLE_STIFFNESS, BRISTLE_DAMPING],
}

REFERENCE_TEMPERATURE = 20.0  # °C
# The width ε of the sign, sgn(q̇) ≈ tanh(q̇/ε), in forward simulation, rad/s or m/s. A tenth of the slowest Stribeck
# velocities seen on robots (0.01 rad/s), so that it does not wear off their peak. A joint that should stand still
# creeps, at half its Coulomb level by 0.55 ε = 0.03 °/s. A narrower sign would creep less and ask for smaller
# steps: an explicit step must stay below about 2 ε J / level; above, loops take the exact sign, as regressors do.
SIGN_WIDTH = 1e-3


@kernel
def stribeck_decay(qd, velocity, shape):
    """exp(−|q̇/q̇s|^δ)."""
    x = abs(qd / velocity)
    return math.exp(-x * x) if shape == 2.0 else math.exp(-(x**shape))


@kernel
def warmth(row, temperature):
    """1 + α (T − T_ref), and 0 where the line falls below: friction never drives."""
    return max(0.0, 1.0 + row[WARMING] * (temperature - REFERENCE_TEMPERATURE))


@kernel
def dry_level(code, row, qd, forward, load, temperature):
    """What dry friction comes to in one direction at a speed; 0 of a law whose bristles do it."""
    if code == NONE or code == LUGRE:
        return 0.0
    level = row[COULOMB]
    if code == STRIBECK:
        level += (row[BREAKAWAY] - row[COULOMB]) * stribeck_decay(qd, row[STRIBECK_VELOCITY], row[SHAPE])
    elif code == ASYMMETRIC and not forward:
        level = row[COULOMB_BACKWARD]
    return max(0.0, warmth(row, temperature) * (1.0 + row[LOADING] * abs(load)) * level)


@kernel
def signed_friction(code, row, qd, sign, load, temperature):
    """Torque of a law without state, with `sign` in [−1, 1] in the place of sgn(q̇)."""
    if code == NONE:
        return 0.0
    damping = row[DAMPING_BACKWARD] if code == ASYMMETRIC and qd < 0.0 else row[DAMPING]
    offset = row[OFFSET] if code == STATIC else 0.0
    dry = sign * dry_level(code, row, qd, sign >= 0.0, load, temperature)
    return dry + warmth(row, temperature) * (damping * qd + offset)


@kernel
def friction_torque(code, row, qd, z, load, temperature):
    """Torque of the joint's friction, positive against positive motion, and ż of the bristles (0 without state)."""
    if code != LUGRE:
        return signed_friction(code, row, qd, math.tanh(qd / SIGN_WIDTH), load, temperature), 0.0
    decay = stribeck_decay(qd, row[STRIBECK_VELOCITY], 2.0)
    level = (1.0 + row[LOADING] * abs(load)) * (row[COULOMB] + (row[BREAKAWAY] - row[COULOMB]) * decay)
    zdot = qd - row[BRISTLE_STIFFNESS] * abs(qd) / level * z
    torque = row[BRISTLE_STIFFNESS] * z + row[BRISTLE_DAMPING] * zdot + row[DAMPING] * qd
    return warmth(row, temperature) * torque, zdot


@kernel
def friction_at_standstill(code, row, load, temperature):
    """Half width and centre of the interval in which the torque lies at q̇ = 0; of LuGre, whose z holds it, too."""
    if code == NONE:
        return 0.0, 0.0
    heat = warmth(row, temperature)
    scale = heat * (1.0 + row[LOADING] * abs(load))
    if code == STATIC:
        return scale * row[COULOMB], heat * row[OFFSET]
    if code == ASYMMETRIC:
        forward, backward = scale * row[COULOMB], scale * row[COULOMB_BACKWARD]
        return 0.5 * (forward + backward), 0.5 * (forward - backward)
    return scale * row[BREAKAWAY], 0.0


@kernel
def stiction(applied, level, centre):
    """The torque nearest to the applied one in [centre − level, centre + level]."""
    return min(max(applied, centre - level), centre + level)
