"""What stands between motor and link: elastic joints, hysteresis, backlash, belts, chains, gears and their coupling.

A number holds for every joint, a sequence has one number a joint. Twists are motor minus link, on the link's side.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from ..errors import DataError, OptionError
from ..robot.sidecar import Gear
from .settings import Finite, NotNegative, PerJoint, Positive

Array = np.ndarray

# Harmonic drives: torsional stiffness in N·m/rad, and the hysteresis as a fraction of the peak torque.
HARMONIC_DRIVE_STIFFNESS = (1e4, 1e5)
HARMONIC_DRIVE_HYSTERESIS = (0.05, 0.15)


class RatioRule(NamedTuple):
    """A rule of thumb: gear ratios from low to high, and why."""

    low: float
    high: float
    because: str


RATIO_RULES = {
    "light and fast": RatioRule(5, 20, "a small ratio answers fast, and needs a large motor"),
    "heavy and precise": RatioRule(50, 160, "a large ratio multiplies the torque, and lowers the bandwidth"),
    "collaborative": RatioRule(80, 120, "between safety and performance"),
}


def _array(value: ArrayLike) -> Array:
    return np.asarray(value, dtype=float)


def resonance(link_inertia: ArrayLike, motor_inertia: ArrayLike, stiffness: ArrayLike) -> Array:
    """Where motor torque moves the joint most, rad/s, both ends free: ωr = sqrt(K (1/J + 1/B))."""
    return np.sqrt(_array(stiffness) * (1.0 / _array(link_inertia) + 1.0 / _array(motor_inertia)))


def antiresonance(link_inertia: ArrayLike, stiffness: ArrayLike) -> Array:
    """Where motor torque does not move the motor at all while the link swings, rad/s: ωa = sqrt(K/J)."""
    return np.sqrt(_array(stiffness) / _array(link_inertia))


def modes(
    mass_matrix: ArrayLike, motor_inertia: ArrayLike, stiffness: ArrayLike, gravity_stiffness: ArrayLike = 0.0
) -> Array:
    """The free vibrations of n undamped flexible joints about rest, rad/s, rising; nan where gravity makes them fall.

        [K + ∂g/∂q, −K; −K, K] v = ω² diag(M, B) v

    For J = 1, B = 0.1, K = 100 and m g l = 10, textbooks take each mode alone: sqrt(mgl/J) = 3.16 and
    sqrt(K (1/J + 1/B)) = 33.17 rad/s. Together they are 3.014 and 33.18. The slow one is 5 % lower because a free rotor
    swings along: sqrt(mgl/(J + B)) = 3.015, and a little less for the spring. (3.16 is right for a rotor without
    inertia; with a motor held still the link swings at sqrt((K + mgl)/J) = 10.5.) The fast one is 0.04 % higher
    because gravity is a second spring on the link.
    """
    M = np.atleast_2d(_array(mass_matrix))
    n = len(M)
    K = np.diag(np.broadcast_to(_array(stiffness), n))
    gravity = _array(gravity_stiffness)
    slope = gravity if gravity.ndim == 2 else np.diag(np.broadcast_to(gravity, n))
    inertia = scipy.linalg.block_diag(M, np.diag(np.broadcast_to(_array(motor_inertia), n)))
    squares = scipy.linalg.eigh(np.block([[K + slope, -K], [-K, K]]), inertia, eigvals_only=True)
    squares[np.abs(squares) < 1e-13 * n * np.abs(squares).max()] = 0.0  # a free turn, up to rounding
    return np.sqrt(np.where(squares < 0, np.nan, squares))


@dataclass(frozen=True, eq=False)
class BoucWen(PerJoint):
    """The hysteresis of a harmonic drive: a spring beside a part that remembers.

        τ = K θ + z,    ż = A θ̇ − β |θ̇| |z|ⁿ⁻¹ z − γ θ̇ |z|ⁿ,    |z| ≤ (A/(β + γ))^(1/n) if it starts so

    It takes energy at every instant just where β ≥ |γ|, which is asked for.
    Ismail, Ikhouane and Rodellar, Arch. Comput. Methods Eng. 16 (2009).
    """

    label: ClassVar[str] = "Bouc-Wen hysteresis"
    stiffness: NotNegative  # K
    slope: Positive  # A
    beta: Positive
    gamma: Finite = 0.0
    exponent: Positive = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.beta >= np.abs(self.gamma), "gamma", self.gamma, "outside -beta … beta: it would give energy")
        self.require(self.beta + self.gamma > 0, "gamma", self.gamma, "-beta: z would not be bounded")
        self.require(self.exponent >= 1, "exponent", self.exponent, "below 1")

    @property
    def bound(self) -> Array:
        """The largest |z|, N·m."""
        return (self.slope / (self.beta + self.gamma)) ** (1.0 / self.exponent)

    def torque(self, twist: ArrayLike, z: ArrayLike) -> Array:
        return self.stiffness * _array(twist) + _array(z)

    def zdot(self, rate: ArrayLike, z: ArrayLike) -> Array:
        rate, z = _array(rate), _array(z)
        power = np.abs(z) ** self.exponent
        return self.slope * rate - (self.beta * np.abs(rate) * np.sign(z) + self.gamma * rate) * power

    def dissipated_power(self, rate: ArrayLike, z: ArrayLike) -> Array:
        """What becomes heat, W: z θ̇ − d/dt z²/(2A) = (β |θ̇| |z| + γ θ̇ z) |z|ⁿ/A; over a cycle, the loop's area."""
        rate, z = _array(rate), _array(z)
        return (self.beta * np.abs(rate * z) + self.gamma * rate * z) * np.abs(z) ** self.exponent / self.slope

    def packed(self, n: int) -> Array:
        """The table (n, 5) of kernel `bouc_wen`: stiffness, slope, beta, gamma, exponent."""
        return self.rows(n, self.stiffness, self.slope, self.beta, self.gamma, self.exponent)


def harmonic_drive(stiffness: ArrayLike, peak_torque: ArrayLike, hysteresis: ArrayLike = 0.1) -> BoucWen:
    """Hysteresis whose width, 2 max|z|, is a fraction of the peak torque; it turns as stiffly again as the spring."""
    if not np.all(_array(peak_torque) > 0) or not np.all(_array(hysteresis) > 0):
        raise OptionError("harmonic drive: peak torque and hysteresis must be above 0; correct them")
    half = 0.5 * _array(hysteresis) * _array(peak_torque)
    rate = 0.5 * _array(stiffness) / half
    return BoucWen(stiffness, stiffness, rate, rate)


@dataclass(frozen=True, eq=False)
class Backlash(PerJoint):
    """Teeth with play: a dead zone of width `gap`, a spring and a damper outside; teeth push and never pull."""

    label: ClassVar[str] = "backlash"
    stiffness: Positive
    gap: NotNegative  # rad, from contact to contact
    damping: NotNegative = 0.0

    def torque(self, twist: ArrayLike, rate: ArrayLike = 0.0) -> Array:
        twist = _array(twist)
        half = 0.5 * self.gap
        pushed = self.stiffness * (np.abs(twist) - half) + self.damping * np.sign(twist) * _array(rate)
        return np.where(np.abs(twist) > half, np.sign(twist) * np.maximum(0.0, pushed), 0.0)

    def packed(self, n: int) -> Array:
        """The table (n, 3) of kernel `backlash_torque`: stiffness, damping, gap."""
        return self.rows(n, self.stiffness, self.damping, self.gap)


@dataclass(frozen=True, eq=False)
class FlexibleJoint(PerJoint):
    """A motor that turns a link through a spring and a damper, with what harmonic drives or worn teeth add.

        M q̈ + C q̇ + g = T,    B θ̈ + T = τm,    T = K (θ − q) + D (θ̇ − q̇)

    All on the link's side of the gear: θ is the motor's angle by the ratio, B its inertia by the ratio squared. Spong,
    J. Dyn. Sys. Meas. Control 109 (1987). `hysteresis` stands beside the spring and adds its torque to T; a `gap`
    takes the twist away until teeth meet, as in `Backlash`.
    """

    label: ClassVar[str] = "flexible joint"
    motor_inertia: Positive  # B
    stiffness: Positive  # K
    damping: NotNegative = 0.0  # D
    gap: NotNegative = 0.0  # rad, from contact to contact
    hysteresis: BoucWen | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hysteresis is not None and self.gap.any():
            raise OptionError("flexible joint: hysteresis and a gap are given; give one of them")

    def torque(self, theta: ArrayLike, q: ArrayLike, thetad: ArrayLike, qd: ArrayLike, z: ArrayLike = 0.0) -> Array:
        """The torque that the link gets and the motor has to give."""
        twist, rate = _array(theta) - _array(q), _array(thetad) - _array(qd)
        if self.gap.any():
            return Backlash(self.stiffness, self.gap, self.damping).torque(twist, rate)
        remembered = 0.0 if self.hysteresis is None else self.hysteresis.torque(twist, z)
        return self.stiffness * twist + self.damping * rate + remembered

    @property
    def slowest_stiffness(self) -> Array:
        """Of the springs alone: what carries a load that has stood long enough."""
        return self.stiffness + (0.0 if self.hysteresis is None else self.hysteresis.stiffness)

    def twist_under(self, torque: ArrayLike) -> Array:
        """The twist with which the joint holds a torque still, its hysteresis forgotten."""
        return _array(torque) / self.slowest_stiffness + 0.5 * self.gap * np.sign(_array(torque))

    def motor_acceleration(self, motor_torque: ArrayLike, joint_torque: ArrayLike) -> Array:
        return (_array(motor_torque) - _array(joint_torque)) / self.motor_inertia

    def energy(self, theta: ArrayLike, q: ArrayLike, thetad: ArrayLike) -> Array:
        """What the springs hold, and the rotors' motion."""
        stretch = np.maximum(0.0, np.abs(_array(theta) - _array(q)) - 0.5 * self.gap)
        return 0.5 * self.slowest_stiffness * stretch**2 + 0.5 * self.motor_inertia * _array(thetad) ** 2

    def fastest_rate(self, link_inertia: ArrayLike) -> Array:
        """A bound on the rates of the joint, rad/s: a step of RK4 stays below about 2.5/rate."""
        reduced = 1.0 / (1.0 / _array(link_inertia) + 1.0 / self.motor_inertia)
        steepest = self.slowest_stiffness + (0.0 if self.hysteresis is None else self.hysteresis.slope)
        return np.sqrt(steepest / reduced) + self.damping / reduced

    def packed(self, n: int) -> Array:
        """The table (n, 9) of kernel `giving_joint`: motor inertia, stiffness, damping, gap, hysteresis."""
        own = self.rows(n, self.motor_inertia, self.stiffness, self.damping, self.gap)
        memory = np.zeros((n, 5)) if self.hysteresis is None else self.hysteresis.packed(n)
        return np.hstack([own, memory])


@dataclass(frozen=True, eq=False)
class Belt(PerJoint):
    """A belt over two pulleys of one radius; each span is a spring k = E A / L that can only pull.

    While pretension keeps both spans tight, twist stiffness is 2 k r²; past `slack_twist` the one tight span has k r².
    """

    label: ClassVar[str] = "belt"
    axial_stiffness: Positive  # E A, N
    length: Positive  # of one free span, m
    radius: Positive
    pretension: NotNegative  # of each span, N

    @property
    def span_stiffness(self) -> Array:
        return self.axial_stiffness / self.length

    @property
    def slack_twist(self) -> Array:
        """The twist at which one span goes slack, rad: T0/(k r)."""
        return self.pretension / (self.span_stiffness * self.radius)

    def tensions(self, twist: ArrayLike) -> tuple[Array, Array]:
        """Of the span that a positive twist pulls, and of the other, N."""
        pull = self.span_stiffness * self.radius * _array(twist)
        return np.maximum(0.0, self.pretension + pull), np.maximum(0.0, self.pretension - pull)

    def torque(self, twist: ArrayLike) -> Array:
        pulled, other = self.tensions(twist)
        return self.radius * (pulled - other)

    def stiffness(self, twist: ArrayLike = 0.0) -> Array:
        """∂torque/∂twist, N·m/rad; a belt without pretension has one tight span at most."""
        spans = np.where(np.abs(_array(twist)) < self.slack_twist, 2.0, 1.0)
        return spans * self.span_stiffness * self.radius**2

    def natural_frequency(self, inertia: ArrayLike, twist: ArrayLike = 0.0) -> Array:
        """Of an inertia on the belt with the other pulley held, rad/s; pretension raises it by sqrt(2)."""
        return np.sqrt(self.stiffness(twist) / _array(inertia))


@dataclass(frozen=True)
class Chain:
    """A chain on a sprocket, which is a polygon: at constant turning, the chain's speed is ω R cos φ, |φ| ≤ π/teeth."""

    teeth: int
    pitch: float  # m

    def __post_init__(self) -> None:
        if self.teeth < 3 or self.teeth != int(self.teeth):
            raise OptionError(f"chain: a sprocket with {self.teeth} teeth is no polygon; give a whole number from 3")
        if not 0 < self.pitch < np.inf:
            raise OptionError(f"chain: pitch is {self.pitch:g}, not a finite number above 0; correct it")

    @property
    def radius(self) -> float:
        """From the sprocket's axis to the pins, m: p/(2 sin(π/teeth))."""
        return float(0.5 * self.pitch / np.sin(np.pi / self.teeth))

    @property
    def ripple(self) -> float:
        """How far the speed drops below its highest, as a fraction of that: 1 − cos(π/teeth)."""
        return float(1.0 - np.cos(np.pi / self.teeth))

    def speed(self, angle: ArrayLike, rate: ArrayLike) -> Array:
        """Of the chain, m/s, at an angle of the sprocket that is 0 where the speed is highest."""
        tooth = 2.0 * np.pi / self.teeth
        phase = _array(angle) - tooth * np.round(_array(angle) / tooth)
        return _array(rate) * self.radius * np.cos(phase)


def reflected_inertia(load_inertia: ArrayLike, ratio: ArrayLike) -> Array:
    """The load as the motor feels it: J/n²."""
    return _array(load_inertia) / _array(ratio) ** 2


def inertia_ratio(load_inertia: ArrayLike, motor_inertia: ArrayLike, ratio: ArrayLike) -> Array:
    """Reflected load by rotor, J/(n² Jm); 1 is matched."""
    return reflected_inertia(load_inertia, ratio) / _array(motor_inertia)


def load_acceleration(
    ratio: ArrayLike,
    load_inertia: ArrayLike,
    motor_inertia: ArrayLike,
    motor_torque: ArrayLike,
    load_torque: ArrayLike = 0.0,
) -> Array:
    """What a motor does to its load through a ratio: (n τm − τl)/(J + n² Jm)."""
    n = _array(ratio)
    return (n * _array(motor_torque) - _array(load_torque)) / (_array(load_inertia) + n**2 * _array(motor_inertia))


def optimal_ratio(load_inertia: ArrayLike, motor_inertia: ArrayLike, load_by_motor_torque: ArrayLike = 0.0) -> Array:
    """The ratio of the largest acceleration: sqrt(J/Jm); against a load torque, λ + sqrt(λ² + J/Jm), λ = τl/τm."""
    share = _array(load_by_motor_torque)
    return share + np.sqrt(share**2 + _array(load_inertia) / _array(motor_inertia))


def _columns_of(gear: Gear, values: ArrayLike) -> Array:
    array = _array(values)
    if array.shape[-1:] != (len(gear.joints),):
        raise DataError(f"the gear has {len(gear.joints)} joints, the samples {array.shape}; give a column a joint")
    return array


def joint_positions(gear: Gear, motor: ArrayLike) -> Array:
    """P⁻¹ motor + zero, for samples (T, n) of motor angles."""
    return joint_velocities(gear, motor) + gear.zero


def motor_positions(gear: Gear, joint: ArrayLike) -> Array:
    """P (joint − zero)."""
    return motor_velocities(gear, _columns_of(gear, joint) - gear.zero)


def joint_velocities(gear: Gear, motor: ArrayLike) -> Array:
    """P⁻¹ motor; of accelerations, too."""
    return np.linalg.solve(gear.position_matrix, _columns_of(gear, motor)[..., None])[..., 0]


def motor_velocities(gear: Gear, joint: ArrayLike) -> Array:
    """P joint; of accelerations, too."""
    return _columns_of(gear, joint) @ gear.position_matrix.T


def joint_torques(gear: Gear, motor: ArrayLike) -> Array:
    """Pᵀ motor: the power is the same on both sides."""
    return _columns_of(gear, motor) @ gear.torque_matrix.T


def motor_torques(gear: Gear, joint: ArrayLike) -> Array:
    """P⁻ᵀ joint."""
    return np.linalg.solve(gear.torque_matrix, _columns_of(gear, joint)[..., None])[..., 0]


def rotor_inertia(gear: Gear, motor_inertias: ArrayLike) -> Array:
    """What the rotors add to the mass matrix, Pᵀ diag(B) P: n² B alone, and terms between joints where coupled."""
    P = gear.position_matrix
    return P.T @ (np.broadcast_to(_array(motor_inertias), len(P))[:, None] * P)
