"""Control of flexible joints on two time scales, and what exercise 7.5 of the textbook does instead.

The springs are fast, the links slow (singular perturbation with 1/K): as if joints were stiff, a computed torque moves
link and rotor together; beside it, a fast part damps the twist δ = θ − q alone.

    τ = (M + B)(q̈_d − Kv ė − Kp e) + C q̇ + g + B μ⁻¹ (D_f − D) (δ̇_d − δ̇),     μ = (M⁻¹ + B⁻¹)⁻¹

On the fast scale, with the links' pose frozen, the twist then obeys μ δ̈ + D_f δ̇ + K δ = 0: stable just where D_f is
positive definite, with ½ δ̇ᵀ μ δ̇ + ½ δᵀ K δ as its Lyapunov function. D_f = 2 ζ μ½ (μ^−½ K μ^−½)½ μ½ damps all its
modes by ζ. The two scales must lie apart: `stability_limit` of the whole closed loop says how far.
Spong, J. Dyn. Sys. Meas. Control 109 (1987) 310; Kokotovic, Khalil, O'Reilly, Singular Perturbation Methods (1986).
"""

from dataclasses import dataclass, replace
from typing import Protocol

import mujoco
import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ..dynamics import gravity, inverse_dynamics, mass_matrix
from ..errors import OptionError
from ..physics.transmission import FlexibleJoint
from ..robot.load import load_robot
from ..robot.robot import Robot
from .elastic_loop import ElasticLoop, ElasticPlant
from .loop import Seen, Wanted

Array = NDArray[np.float64]


def pendulum(link_inertia: float, gravity_torque: float) -> Robot:
    """One hinge: J q̈ + m g l sin(q) = torque, as exercise 7.5 has it."""
    for name, value in (("link inertia", link_inertia), ("gravity torque m g l", gravity_torque)):
        if not (np.isfinite(value) and value >= 0 and (value > 0 or name != "link inertia")):
            raise OptionError(f"the {name} is {value}; give a finite number {'above' if 'link' in name else 'from'} 0")
    # A mass half as far as it would have to be if it were a point has room for an inertia of its own.
    length = 0.5 * 9.81 * link_inertia / gravity_torque if gravity_torque else 0.5
    mass = gravity_torque / (9.81 * length) if gravity_torque else link_inertia
    own = link_inertia - mass * length**2
    xml = f"""<mujoco model="pendulum"><option gravity="0 0 {-9.81 if gravity_torque else 0}"/><worldbody>
      <body name="link"><inertial mass="{mass!r}" pos="0 0 {-length!r}" diaginertia="{own!r} {own!r} {own!r}"/>
      <joint name="joint" axis="0 1 0"/></body></worldbody></mujoco>"""
    return load_robot(mujoco.MjSpec.from_string(xml))


class ElasticLaw(Protocol):
    """A controller of flexible joints that has a linear part about rest."""

    def feedback(self, plant: ElasticPlant) -> Array:
        """F of τ = −F x, x = (q, θ, q̇, θ̇), (n, 4n)."""
        ...

    def start(self, n: int, dt: float) -> "ElasticSteps": ...


class ElasticSteps(Protocol):
    """One run of an elastic law."""

    def step(self, seen: Seen, wanted: Wanted) -> Array: ...


def closed_loop(plant: ElasticPlant, law: ElasticLaw) -> ElasticLoop:
    return ElasticLoop(plant, law.feedback(plant))


def _positive(what: str, **values: float) -> None:
    for name, value in values.items():
        if not (np.isfinite(value) and value > 0):
            raise OptionError(f"{what}: {name} is {value}; give a finite number above 0")


def twist_damping(M: Array, B: Array, K: Array, ratio: float) -> tuple[Array, Array]:
    """D_f that gives every mode of the twist one damping ratio, and μ."""
    mu = np.linalg.inv(np.linalg.inv(M) + np.linalg.inv(B))
    root = np.real(scipy.linalg.sqrtm(mu))
    back = np.linalg.inv(root)
    frequency = np.real(scipy.linalg.sqrtm(back @ K @ back))
    return 2.0 * ratio * root @ frequency @ root, mu


@dataclass(frozen=True, eq=False)
class TwoTimeScale:
    """The two-time-scale controller of a robot with flexible joints; `zeta` 0 thinks them stiff."""

    robot: Robot
    flexible: FlexibleJoint
    bandwidth: float = 5.0  # rad/s, of the links
    zeta: float = 0.7  # of the twist
    link_zeta: float = 1.0

    def __post_init__(self) -> None:
        _positive("two-time-scale control", bandwidth=self.bandwidth, link_zeta=self.link_zeta)
        if not (np.isfinite(self.zeta) and self.zeta >= 0):
            raise OptionError(f"two-time-scale control: zeta is {self.zeta}; give a finite number from 0")

    def at(self, bandwidth: float) -> "TwoTimeScale":
        return replace(self, bandwidth=bandwidth)

    def _fast(self, M: Array) -> Array:
        """B μ⁻¹ (D_f − D); nothing where the joint's own damping is as large already."""
        n = self.robot.n
        B, K, D = (
            np.diag(np.broadcast_to(x, n))
            for x in (self.flexible.motor_inertia, self.flexible.stiffness, self.flexible.damping)
        )
        wanted, mu = twist_damping(M, B, K, self.zeta)
        values, vectors = np.linalg.eigh(wanted - D)
        more = (vectors * np.maximum(values, 0.0)) @ vectors.T
        return np.asarray(B @ np.linalg.solve(mu, more))

    def feedback(self, plant: ElasticPlant) -> Array:
        whole, fast = plant.M + plant.B, self._fast(plant.M)
        kp, kv = self.bandwidth**2, 2 * self.link_zeta * self.bandwidth
        return np.hstack([kp * whole - plant.G, np.zeros_like(fast), kv * whole - plant.R - fast, fast])

    def start(self, n: int, dt: float) -> "_TwoTimes":
        return _TwoTimes(self, dt)


class _TwoTimes:
    def __init__(self, law: TwoTimeScale, dt: float) -> None:
        self.law, self.dt = law, dt
        self.rotor = np.broadcast_to(law.flexible.motor_inertia, law.robot.n)
        # The springs are loaded by the links alone; what the model has for rotors is not one of them.
        joint = law.robot.joint_parameters.copy()
        joint[:, 0] = 0.0
        joint.setflags(write=False)
        self.links = replace(law.robot, joint_parameters=joint)
        self.twist: Array | None = None

    def step(self, seen: Seen, wanted: Wanted) -> Array:
        law = self.law
        kp, kv = law.bandwidth**2, 2 * law.link_zeta * law.bandwidth
        a = wanted.qdd - kv * (seen.qd - wanted.qd) - kp * (seen.q - wanted.q)
        slow = inverse_dynamics(self.links, seen.q, seen.qd, a) + self.rotor * a
        twist = law.flexible.twist_under(inverse_dynamics(self.links, wanted.q, wanted.qd, wanted.qdd))
        turning = np.zeros_like(twist) if self.twist is None else (twist - self.twist) / self.dt
        self.twist = twist
        fast = law._fast(mass_matrix(self.links, seen.q))
        return np.asarray(slow + fast @ (turning - (seen.theta_rate - seen.qd)))


@dataclass(frozen=True, eq=False)
class PrintedLaw:
    """τ = k(θ_d − θ) + b(θ̇_d − θ̇) + k(q − θ) + g(q_d),  θ_d = q_d + g(q_d)/k,  b = 2ζ√(k Jm): exercise 7.5 as printed.

    The term k(q − θ) pulls the motor back as the spring does already. At rest k(θ_d − θ) has to make up for it: the
    link stands short of its aim by g(q)/(k + 3 ∂g/∂q) to first order. `spring` False leaves the term out, and θ_d
    is where motor and link are at rest.
    """

    robot: Robot
    flexible: FlexibleJoint
    zeta: float = 0.7
    spring: bool = True

    def _gains(self, n: int) -> tuple[Array, Array]:
        k = np.broadcast_to(self.flexible.stiffness, n)
        return k, 2 * self.zeta * np.sqrt(k * self.flexible.motor_inertia)

    def feedback(self, plant: ElasticPlant) -> Array:
        k, b = (np.diag(x) for x in self._gains(plant.n))
        zero = np.zeros_like(k)
        return np.hstack([-k, 2 * k, zero, b] if self.spring else [zero, k, zero, b])

    def start(self, n: int, dt: float) -> "_Printed":
        return _Printed(self, n, dt)


class _Printed:
    def __init__(self, law: PrintedLaw, n: int, dt: float) -> None:
        self.law, self.dt = law, dt
        self.k, self.b = law._gains(n)
        self.aim: Array | None = None

    def step(self, seen: Seen, wanted: Wanted) -> Array:
        weight = gravity(self.law.robot, wanted.q)
        aim = wanted.q + weight / self.k
        rate = np.zeros_like(aim) if self.aim is None else (aim - self.aim) / self.dt
        self.aim = aim
        tau = self.k * (aim - seen.theta) + self.b * (rate - seen.theta_rate) + weight
        return tau + self.k * (seen.q - seen.theta) if self.law.spring else tau
