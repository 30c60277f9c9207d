"""Poles of a flexible-joint robot under state feedback: damping, margin and root locus of the linear closed loop.

About rest at q_0, with M, the links' friction R, the slope of gravity G and the springs' K and D,

    M q̈ + R q̇ + (G + K) q − K θ + D (q̇ − θ̇) = 0,    B θ̈ + K (θ − q) + D (θ̇ − q̇) = τ,    τ = −F x,   x = (q, θ, q̇, θ̇)
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy.linalg
import scipy.optimize
from numpy.typing import ArrayLike, NDArray

from ..dynamics import mass_matrix, torque_gradients
from ..errors import OptionError
from ..physics.transmission import FlexibleJoint
from ..robot.robot import Robot

Array = NDArray[np.float64]
Poles = NDArray[np.complex128]

_ROUNDING = 1e-9  # of the fastest pole: a real part as small is none


@dataclass(frozen=True, eq=False)
class ElasticPlant:
    """The linear plant: inertias of links and rotors, slope of gravity, friction of links, springs, dampers; (n, n)."""

    M: Array
    B: Array
    G: Array
    R: Array
    K: Array
    D: Array

    @property
    def n(self) -> int:
        return len(self.M)

    @cached_property
    def A(self) -> Array:
        """ẋ = A x + E τ, without control."""
        zero, one = np.zeros((self.n, self.n)), np.eye(self.n)
        link = np.hstack([-(self.G + self.K), self.K, -(self.R + self.D), self.D])
        motor = np.hstack([self.K, -self.K, self.D, -self.D])
        return np.vstack(
            [
                np.hstack([zero, zero, one, zero]),
                np.hstack([zero, zero, zero, one]),
                np.linalg.solve(self.M, link),
                np.linalg.solve(self.B, motor),
            ]
        )

    @cached_property
    def E(self) -> Array:
        return np.vstack([np.zeros((3 * self.n, self.n)), np.linalg.inv(self.B)])


def elastic_plant(robot: Robot, flexible: FlexibleJoint, q: ArrayLike) -> ElasticPlant:
    """A robot with springs in its joints, about rest in a pose; the motors' inertia stands for the armature."""
    n = robot.n
    pose = np.asarray(q, dtype=np.float64)
    still = np.zeros(n)
    if flexible.gap.any() or flexible.hysteresis is not None:
        raise OptionError("play and hysteresis have no poles; analyse the joint without them")
    M = mass_matrix(robot, pose) - np.diag(robot.joint_parameters[:, 0])
    G, R = torque_gradients(robot, pose, still, still)
    B, K, D = (np.diag(np.broadcast_to(x, n)) for x in (flexible.motor_inertia, flexible.stiffness, flexible.damping))
    return ElasticPlant(M, B, G[0], R[0], K, D)


def by_damping(poles: Poles) -> Array:
    """ζ = −Re p/|p|: 1 does not swing, 0 never ends, below 0 grows."""
    size = np.abs(poles)
    return np.where(size > 0, -poles.real / np.where(size > 0, size, 1.0), 0.0)


@dataclass(frozen=True, eq=False)
class ElasticLoop:
    """A plant under τ = −F x, in continuous time, or with the torque held over ticks of `dt`."""

    plant: ElasticPlant
    feedback: Array  # F, (n, 4n)

    @cached_property
    def A(self) -> Array:
        return self.plant.A - self.plant.E @ self.feedback

    @cached_property
    def poles(self) -> Poles:
        """The slowest first."""
        poles = np.linalg.eigvals(self.A)
        return np.asarray(poles[np.lexsort((poles.imag, np.abs(poles)))], dtype=np.complex128)

    @property
    def damping_ratios(self) -> Array:
        return by_damping(self.poles)

    @property
    def growth(self) -> float:
        """The largest real part, 1/s."""
        return float(self.poles.real.max())

    @property
    def is_stable(self) -> bool:
        return self.growth < -_ROUNDING * float(np.abs(self.poles).max())

    def over_a_tick(self, dt: float) -> Array:
        """Φ of x_{k+1} = Φ x_k, the torque held from tick to tick."""
        n = self.plant.n
        block = np.zeros((5 * n, 5 * n))
        block[: 4 * n, : 4 * n], block[: 4 * n, 4 * n :] = self.plant.A, self.plant.E
        moved = scipy.linalg.expm(dt * block)[: 4 * n]
        return np.asarray(moved[:, : 4 * n] - moved[:, 4 * n :] @ self.feedback)

    def sampled_poles(self, dt: float) -> Poles:
        """ln(z)/dt of the loop whose torque is held over each tick: what a computer of that rate really closes."""
        z = np.linalg.eigvals(self.over_a_tick(dt)).astype(np.complex128)
        poles = np.log(np.where(z == 0, 1e-300, z)) / dt
        return np.asarray(poles[np.lexsort((poles.imag, np.abs(poles)))], dtype=np.complex128)


def settling_time(poles: Poles, part: float = 0.02) -> float:
    """When the slowest part has died to a share, s; infinite where something does not."""
    slowest = float(poles.real.max())
    return float(np.log(1.0 / part) / -slowest) if slowest < 0 else float("inf")


def followed(before: Poles, after: Poles) -> Poles:
    """The poles of the next gain in the order of those before: each the nearest, all together."""
    _, order = scipy.optimize.linear_sum_assignment(np.abs(before[:, None] - after[None, :]))
    return after[order]


def root_locus(loop_of: Callable[[float], ElasticLoop], gains: ArrayLike) -> Poles:
    """Poles over a gain, (gains, 4n), a column a branch."""
    values = np.asarray(gains, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all() or (np.diff(values) <= 0).any():
        raise OptionError("the gains of a root locus are finite numbers that rise, at least two")
    branches = [loop_of(float(values[0])).poles]
    for gain in values[1:]:
        branches.append(followed(branches[-1], loop_of(float(gain)).poles))
    return np.array(branches)


def stability_limit(growth_of: Callable[[float], float], gain: float, most: float = 1e4) -> float:
    """The smallest gain from `gain` on at which something grows; infinite where none is below `most`·gain.

    `growth_of` gives the largest real part of the poles at a gain.
    """
    grid = gain * np.geomspace(1.0, most, 400)
    if growth_of(gain) >= 0:
        return gain
    for low, high in pairwise(grid):
        if growth_of(float(high)) > 0:
            return float(scipy.optimize.brentq(lambda g: growth_of(float(g)), low, high, xtol=1e-12 * high))
    return float("inf")
