"""Transmission of one joint at one instant; what the columns of each table are stands beside its kernel."""

from ...compiled import kernel

INERTIA, STIFFNESS, DAMPING = range(3)  # of a flexible joint


@kernel
def flexible_joint(row, theta, q, thetad, qd, motor_torque):
    """Torque on the link, K (θ − q) + D (θ̇ − q̇), and acceleration of the motor, (τm − torque) / B."""
    torque = row[STIFFNESS] * (theta - q) + row[DAMPING] * (thetad - qd)
    return torque, (motor_torque - torque) / row[INERTIA]


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
