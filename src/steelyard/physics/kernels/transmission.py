"""Transmission of one joint at one instant; what the columns of each table are stands beside its kernel."""

from ...compiled import kernel

SPRING, SLOPE, BETA, GAMMA, EXPONENT = range(5)  # of Bouc–Wen's hysteresis


@kernel
def bouc_wen(row, twist, rate, z):
    """Torque K θ + z, and ż = A θ̇ − β |θ̇| |z|ⁿ⁻¹ z − γ θ̇ |z|ⁿ."""
    power = abs(z) ** row[EXPONENT]
    sign = 1.0 if z > 0.0 else (-1.0 if z < 0.0 else 0.0)  # |z|ⁿ⁻¹ z = |z|ⁿ sgn z, without 0⁻¹ for n < 1
    zdot = row[SLOPE] * rate - row[BETA] * abs(rate) * power * sign - row[GAMMA] * rate * power
    return row[SPRING] * twist + z, zdot


TOOTH_STIFFNESS, TOOTH_DAMPING, GAP = range(3)  # of backlash


@kernel
def backlash_torque(row, twist, rate):
    """Spring and damper of the teeth outside the gap; teeth push and never pull."""
    half = 0.5 * row[GAP]
    if twist > half:
        return max(0.0, row[TOOTH_STIFFNESS] * (twist - half) + row[TOOTH_DAMPING] * rate)
    if twist < -half:
        return min(0.0, row[TOOTH_STIFFNESS] * (twist + half) + row[TOOTH_DAMPING] * rate)
    return 0.0


# Of a joint that gives: rotor, spring and damper, gap of its teeth, hysteresis beside the spring.
ROTOR, SPRING_STIFFNESS, SPRING_DAMPING, TEETH_GAP, HYSTERESIS = range(5)
GIVING_COLUMNS = HYSTERESIS + 5


@kernel
def giving_joint(row, twist, rate, z):
    """Torque on the link of spring, damper, gap and hysteresis in one, and ż of the hysteresis."""
    if row[TEETH_GAP] > 0.0:
        return backlash_torque(row[SPRING_STIFFNESS : TEETH_GAP + 1], twist, rate), 0.0
    torque = row[SPRING_STIFFNESS] * twist + row[SPRING_DAMPING] * rate
    if row[HYSTERESIS + SLOPE] > 0.0:
        remembered, zdot = bouc_wen(row[HYSTERESIS:], twist, rate, z)
        return torque + remembered, zdot
    return torque, 0.0
