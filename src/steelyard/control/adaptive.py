"""Slotine and Li's adaptive control: tracking that does not wait for the parameters to be right.

    s = q̇ − v,   v = q̇_d − Λ (q − q_d),   a = v̇
    τ = Y(q, q̇, v, a) θ̂ − K_D s
    φ̂̇ = −Γ (Yᵀ s_Δ + W_fᵀ K_D⁻¹ ε),   θ̂ = θ_0 + S φ̂,   φ̂ projected on what cannot be negative

With V = ½ sᵀ M s + ½ φ̃ᵀ Γ⁻¹ φ̃ this gives V̇ = −sᵀ K_D s − εᵀ K_D⁻¹ ε ≤ 0 while no dead zone acts. s_Δ is s less its
dead zone, which is as wide as the noise of the encoders makes s; ε = W_f φ̂ − τ_f is what the momentum balance of the
last moments says of φ̂ beside s, without accelerations:

    F [ṗ − Cᵀ q̇ + g + friction] = F τ,   p = M q̇,   F = ω/(s + ω)

Slotine and Li, Int. J. Robotics Research 6 (1987) 49; composite adaptation: Automatica 25 (1989) 509.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..dynamics import inverse_dynamics, reference_regressor
from ..errors import OptionError
from ..robot.parameters import JOINT_PROPERTIES
from ..robot.robot import Robot, frozen
from ..robot.states import random_states
from ..simulation.controllers import pid_for
from .loop import Seen, Wanted
from .tracking import ErrorRate, smoothing
from .unknowns import Unknown, fully_known

Array = NDArray[np.float64]

_MOST_SWEEPS = 50
_SAMPLES = 400  # of the reference, for gains
_FORGET = 4.0  # time constants of s
_LARGE = 0.05  # rad or m: an error that is large


def noise_of_s(position_noise: ArrayLike, share: float, stiffness: float, dt: float) -> Array:
    """Standard deviation of s where positions have white noise, and velocities are their smoothed differences."""
    lags = np.arange(int(np.ceil(40.0 / share)) + 2)
    smooth = share * (1.0 - share) ** lags
    response = (smooth - np.concatenate([[0.0], smooth[:-1]])) / dt
    response[0] += stiffness
    return np.asarray(position_noise, dtype=np.float64) * float(np.linalg.norm(response))


@dataclass(frozen=True, eq=False)
class SlotineLi:
    """The adaptive controller of a robot, of which `unknown` says what is not known.

    `rate` is how fast what the reference shows is learnt, 1/s; `reference` (3, ticks, n) is the motion that gains are
    made for. `position_noise` is the standard deviation of the encoders, which makes the dead zone of
    `dead_zone_sigmas` standard deviations of s. `prediction` weighs the momentum balance; 0 is the law of 1987.
    `model_error` is the part of the torque by which the rest of the model may be wrong. `adapt` False learns nothing.
    """

    robot: Robot
    unknown: Unknown
    reference: ArrayLike
    bandwidth_hz: float = 4.0
    rate: float = 2.0
    position_noise: ArrayLike = 0.0
    dead_zone_sigmas: float = 3.0
    prediction: float = 1.0
    prediction_hz: float = 2.0
    velocity_cutoff_hz: float = 60.0
    model_error: float = 1e-3
    control_hz: float = 1000.0
    adapt: bool = True

    def __post_init__(self) -> None:
        for name in ("bandwidth_hz", "rate", "prediction_hz", "velocity_cutoff_hz", "control_hz"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise OptionError(f"{name} is {value}; give a finite number above 0")
        for name in ("dead_zone_sigmas", "prediction", "position_noise", "model_error"):
            value = np.asarray(getattr(self, name), dtype=np.float64)
            if not (np.isfinite(value).all() and (value >= 0).all()):
                raise OptionError(f"{name} is {getattr(self, name)}; give finite numbers from 0")
        if np.shape(self.position_noise) not in ((), (self.robot.n,)):
            raise OptionError(f"position_noise is {self.position_noise}; give one number, or {self.robot.n}")
        if np.ndim(self.reference) != 3 or np.shape(self.reference)[::2] != (3, self.robot.n):
            raise OptionError(f"the reference has shape {np.shape(self.reference)}; give (3, ticks, {self.robot.n})")
        _ = self.unknown.rest(self.known)  # a wrong name is said here

    @cached_property
    def known(self) -> Robot:
        return fully_known(self.robot)

    @property
    def stiffness(self) -> float:
        """Λ, 1/s: on s = 0 errors die as fast."""
        return 2 * np.pi * self.bandwidth_hz

    @cached_property
    def sparse_reference(self) -> Array:
        given = np.asarray(self.reference, dtype=np.float64)
        return given[:, :: max(1, given.shape[1] // _SAMPLES)]

    @cached_property
    def damping(self) -> Array:
        """K_D, (n,): s dies at Λ where a joint is heaviest on its way."""
        poses = self.sparse_reference[0]
        made = pid_for(self.robot, self.bandwidth_hz, 0.5, 0.0, poses, self.control_hz)
        return made.gains(self.robot.n)[2]

    @cached_property
    def dead_zone(self) -> Array:
        """Δ, (n,): s that noise alone could make."""
        dt = 1.0 / self.control_hz
        share = smoothing(self.velocity_cutoff_hz, dt)
        deviation = noise_of_s(self.position_noise, share, self.stiffness, dt)
        return self.dead_zone_sigmas * np.broadcast_to(deviation, (self.robot.n,))

    def excitation(self, Y: Array) -> Array:
        """The mean of Yᵀ K_D⁻¹ Y over samples (T, n, p)."""
        return np.asarray(np.einsum("tij,tik->jk", Y / self.damping[:, None], Y, optimize=True) / len(Y))

    def unmodelled(self, tau: Array) -> float:
        """The mean of τᵀ K_D⁻¹ τ over samples (T, n), of torque that the model may be wrong by."""
        return self.model_error**2 * float(np.mean(np.sum(tau**2 / self.damping, axis=1)))

    def _any_motion(self) -> tuple[Array, Array, Array]:
        """Poses from the robot's whole range, at the speeds and accelerations of the reference and of large errors."""
        rng = np.random.default_rng(0)
        q, _, _ = random_states(self.robot, rng, _SAMPLES)
        speed = np.maximum(np.abs(self.sparse_reference[1]).max(axis=0), _LARGE * self.stiffness)
        acceleration = np.maximum(np.abs(self.sparse_reference[2]).max(axis=0), _LARGE * self.stiffness**2)
        return q, *(rng.uniform(-1, 1, (2, _SAMPLES, self.robot.n)) * np.stack([speed, acceleration])[:, None])

    @cached_property
    def gain(self) -> Array:
        """Γ: all that the reference shows is learnt at one rate; what noise drowns, more slowly.

        Γ⁻¹ = (G + N)/rate + G_any/Λ with G the mean of Yᵀ K_D⁻¹ Y along the reference, G_any that of any motion that
        errors might make of it, so that nothing is learnt faster than the loop follows, and N what a parameter of its
        usual size would have to show to stand out of noise and of what no model has.
        """
        q, qd, qdd = self.sparse_reference
        S = self.unknown.shape(self.known, self.unknown.start(self.known))
        G = self.excitation(reference_regressor(self.known, q, qd, qd, qdd) @ S)
        q_any, qd_any, qdd_any = self._any_motion()
        G_any = self.excitation(reference_regressor(self.known, q_any, qd_any, qd_any, qdd_any) @ S)
        G = G + (self.rate / self.stiffness) * G_any
        tau = inverse_dynamics(self.known, q, qd, qdd)
        left = float(np.sum(self.damping * self.dead_zone**2)) + self.unmodelled(tau)
        sizes = self.unknown.sizes(self.known)
        if not left > 0:  # nothing to do and nothing measured: a robot without weight at rest
            left = 1e-12 * max(float(np.trace(G * np.outer(sizes, sizes))), 1e-12)
        whitened = G * np.outer(sizes, sizes) + left * np.eye(len(sizes))
        return frozen(self.rate * np.linalg.inv(whitened) * np.outer(sizes, sizes))

    def start(self, n: int, dt: float) -> "Adapting":
        if abs(dt * self.control_hz - 1.0) > 1e-9:
            raise OptionError(f"the controller is made for {self.control_hz:g} Hz and runs at {1 / dt:g} Hz")
        return Adapting(self, dt)


def momentum_rows(robot: Robot, q: Array, qd: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
    """Y(q, q̇, v, a), and the columns of p = M q̇ and of Cᵀ q̇ − g − friction; of a robot that is `fully_known`.

    (Cᵀ q̇)_i = q̇ᵀ C e_i, so that all comes from one batch: v and a; a = q̇; gravity; and v = e_i.
    """
    n = robot.n
    rates, reference, accelerations = np.zeros((3, n + 3, n))
    rates[0], reference[0], accelerations[0] = qd, v, a
    accelerations[1] = qd
    rates[3:], reference[3:] = qd, np.eye(n)
    Y = reference_regressor(robot, np.broadcast_to(q, (n + 3, n)), rates, reference, accelerations)
    bodies = robot.layout.inertial
    p = Y[1] - Y[2]
    balance = np.zeros_like(p)
    balance[:, bodies] = np.einsum("j,ijk->ik", qd, Y[3:, :, bodies] - Y[2, :, bodies]) - Y[2, :, bodies]
    k = np.arange(n)
    for prop, column in zip(JOINT_PROPERTIES[1:], (qd, np.sign(qd), np.ones(n)), strict=True):
        balance[k, robot.layout.block(prop).start + k] = -column
    return Y[0], p, balance


class Adapting:
    """One run of a `SlotineLi`."""

    def __init__(self, law: SlotineLi, dt: float) -> None:
        self.law, self.dt = law, dt
        self.robot, self.unknown = law.known, law.unknown
        self.rest = law.unknown.rest(self.robot)
        self.phi = law.unknown.start(self.robot)
        self.floor = law.unknown.not_negative(self.robot)
        self.prediction_share = smoothing(law.prediction_hz, dt)
        self.errors = ErrorRate(self.robot.n, law.velocity_cutoff_hz, dt)
        self.before: tuple[Array, Array] | None = None  # columns of p and of the balance at the last tick
        self.asked = np.zeros(self.robot.n)
        self.deaf_until = 0.0
        self.columns = np.zeros((self.robot.n, self.robot.layout.size))  # W_f of all parameters
        self.torque = np.zeros(self.robot.n)  # τ_f
        self.about: dict[str, Array] = {}
        self.ticks, self.shown = 0, np.zeros((len(self.phi), len(self.phi)))

    def step(self, seen: Seen, wanted: Wanted) -> Array:
        law = self.law
        error, rate = self.errors.read(seen, wanted)
        qd = wanted.qd + rate
        v = wanted.qd - law.stiffness * error
        a = wanted.qdd - law.stiffness * rate
        s = qd - v
        S = self.unknown.shape(self.robot, self.phi)
        Y, p, balance = momentum_rows(self.robot, seen.q, qd, v, a)
        self._remember(p, balance, seen.tau)
        Y_phi, W = Y @ S, self.columns @ S
        left = W @ self.phi + self.columns @ self.rest - self.torque
        # A motor at its limit teaches nothing, and while errors that it left behind die, neither does s.
        if np.any(np.abs(seen.tau - self.asked) > 1e-9 * (1.0 + np.abs(self.asked))):
            self.deaf_until = seen.t + _FORGET / law.stiffness
        heard = s - np.clip(s, -law.dead_zone, law.dead_zone) if seen.t >= self.deaf_until else np.zeros_like(s)
        if law.adapt:
            slope = Y_phi.T @ heard + law.prediction * (W.T @ (left / law.damping))
            self.phi = self.projected(self.phi - self.dt * (law.gain @ slope))
        self.ticks += 1
        self.shown += Y_phi.T @ (Y_phi / law.damping[:, None])
        self.about = {"phi": self.phi, "s": s, "left": left}
        self.asked = Y @ (self.rest + S @ self.phi) - law.damping * s
        return self.asked

    def signals(self) -> dict[str, Array]:
        return self.about

    @property
    def gramian(self) -> Array:
        """The mean of Yᵀ K_D⁻¹ Y over what was moved so far."""
        return np.asarray(self.shown / max(self.ticks, 1))

    def _remember(self, p: Array, balance: Array, tau: Array) -> None:
        """Let a tick go through the filter: (p − p_before)/dt − balance, and the torque that acted."""
        if self.before is not None:
            now = (p - self.before[0]) / self.dt - 0.5 * (balance + self.before[1])
            self.columns += self.prediction_share * (now - self.columns)
            self.torque = self.torque + self.prediction_share * (tau - self.torque)
        self.before = p, balance

    def projected(self, phi: Array) -> Array:
        """The nearest φ, in the metric of Γ⁻¹, in which nothing is below zero that cannot be.

        One half-space after the other: none takes φ farther from a truth that lies in all of them.
        """
        gain = self.law.gain
        for _ in range(_MOST_SWEEPS):
            below = np.flatnonzero(self.floor & (phi < 0))
            if not len(below):
                return phi
            for k in below:
                if phi[k] < 0 and gain[k, k] > 0:
                    phi = phi - gain[:, k] * (phi[k] / gain[k, k])
                    phi[k] = 0.0
        return np.where(self.floor, np.maximum(phi, 0.0), phi)
