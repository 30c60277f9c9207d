"""What a motion may do: joint limits, torque, workspace boxes, collisions; each as numbers g ≤ 0 with derivatives.

A constraint gives `values(motion)`, an array of g, and `pull_back(motion, weights)`, the derivatives of Σ weights·g by
q, q̇ and q̈. g is relative: 0.1 means a tenth beyond a limit, or a tenth of a metre into a forbidden place.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import mujoco
import numpy as np
from numpy.typing import NDArray

from ..dynamics import inverse_dynamics, jacobian, pose, regressor_gradient
from ..errors import OptionError
from ..robot.parameters import JOINT_PROPERTIES
from ..robot.robot import Robot
from ..robot.twin import Twin, twin

Array = NDArray[np.float64]
Pulled = tuple[Array, Array, Array]


@dataclass(frozen=True, eq=False)
class Motion:
    """Samples of a trajectory, and the torque it takes, computed once."""

    robot: Robot
    q: Array
    qd: Array
    qdd: Array

    @cached_property
    def tau(self) -> Array:
        return inverse_dynamics(self.robot, self.q, self.qd, self.qdd)


class Constraint(Protocol):
    """Something that a motion has to keep; `name` says what in a sentence."""

    @property
    def name(self) -> str: ...

    @property
    def in_metres(self) -> bool: ...

    def values(self, motion: Motion) -> Array: ...

    def pull_back(self, motion: Motion, weights: Array) -> Pulled: ...

    def where(self, motion: Motion, index: tuple[int, ...]) -> str:
        """The joint or body, and the limit, of one entry of `values`."""
        ...


def _nothing(motion: Motion) -> Array:
    return np.zeros_like(motion.q)


@dataclass(frozen=True, eq=False)
class PositionLimits:
    """lower ≤ q ≤ upper, for the joints that have a range."""

    lower: Array
    upper: Array
    joints: tuple[str, ...]
    name: str = "position"
    in_metres: bool = False

    @cached_property
    def _limited(self) -> NDArray:
        return np.flatnonzero(np.isfinite(self.lower) & np.isfinite(self.upper))

    @cached_property
    def _ranges(self) -> tuple[Array, Array]:
        """Half width and middle of these ranges."""
        lower, upper = self.lower[self._limited], self.upper[self._limited]
        return 0.5 * (upper - lower), 0.5 * (upper + lower)

    def values(self, motion: Motion) -> Array:
        k, (half, middle) = self._limited, self._ranges
        return np.abs(motion.q[:, k] - middle) / half - 1.0

    def pull_back(self, motion: Motion, weights: Array) -> Pulled:
        k, (half, middle) = self._limited, self._ranges
        by_q = _nothing(motion)
        by_q[:, k] = weights * np.sign(motion.q[:, k] - middle) / half
        return by_q, _nothing(motion), _nothing(motion)

    def where(self, motion: Motion, index: tuple[int, ...]) -> str:
        k = self._limited[index[1]]
        return f"position of {self.joints[k]}, {self.lower[k]:.4g} … {self.upper[k]:.4g}"


@dataclass(frozen=True, eq=False)
class RateLimits:
    """|q̇| ≤ limit or |q̈| ≤ limit."""

    limit: Array
    joints: tuple[str, ...]
    name: str  # "velocity" or "acceleration"
    in_metres: bool = False

    @cached_property
    def _limited(self) -> NDArray:
        return np.flatnonzero(np.isfinite(self.limit))

    def _rates(self, motion: Motion) -> Array:
        return (motion.qd if self.name == "velocity" else motion.qdd)[:, self._limited]

    def values(self, motion: Motion) -> Array:
        return np.abs(self._rates(motion)) / self.limit[self._limited] - 1.0

    def pull_back(self, motion: Motion, weights: Array) -> Pulled:
        by_rate = _nothing(motion)
        by_rate[:, self._limited] = weights * np.sign(self._rates(motion)) / self.limit[self._limited]
        none = _nothing(motion)
        return (none, by_rate, none) if self.name == "velocity" else (none, none, by_rate)

    def where(self, motion: Motion, index: tuple[int, ...]) -> str:
        k = self._limited[index[1]]
        return f"{self.name} of {self.joints[k]}, ±{self.limit[k]:.4g}"


@dataclass(frozen=True, eq=False)
class TorqueLimits:
    """|tau| ≤ limit, tau with the nominal parameters."""

    limit: Array
    joints: tuple[str, ...]
    name: str = "torque"
    in_metres: bool = False

    @cached_property
    def _limited(self) -> NDArray:
        return np.flatnonzero(np.isfinite(self.limit))

    def values(self, motion: Motion) -> Array:
        return np.abs(motion.tau[:, self._limited]) / self.limit[self._limited] - 1.0

    def pull_back(self, motion: Motion, weights: Array) -> Pulled:
        by_tau = _nothing(motion)
        k = self._limited
        by_tau[:, k] = weights * np.sign(motion.tau[:, k]) / self.limit[k]
        # Every body and joint property acts here, identified or not: tau = Y theta with all of them.
        whole = motion.robot.with_layout(motion.robot.bodies, JOINT_PROPERTIES)
        return regressor_gradient(whole, motion.q, motion.qd, motion.qdd, by_tau[:, :, None] * whole.parameters)

    def where(self, motion: Motion, index: tuple[int, ...]) -> str:
        k = self._limited[index[1]]
        return f"torque of {self.joints[k]}, ±{self.limit[k]:.4g}"


@dataclass(frozen=True, eq=False)
class KeepWithin:
    """The origin of a body (or a point fixed in it) stays in a box in the axes of the base."""

    robot: Robot
    body: str
    lower: tuple[float, float, float] = (-np.inf, -np.inf, -np.inf)
    upper: tuple[float, float, float] = (np.inf, np.inf, np.inf)
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    in_metres: bool = True

    def __post_init__(self) -> None:
        self.robot.link_of(self.body)
        if not np.all(np.array(self.lower) < np.array(self.upper)):
            raise OptionError(f"the box of {self.body} is empty: {self.lower} … {self.upper}")
        if not self._sides():
            raise OptionError(f"the box of {self.body} has no side; give lower or upper a finite bound")

    @property
    def name(self) -> str:
        return f"box of {self.body}"

    def _sides(self) -> list[tuple[int, float, float]]:
        """Axis, bound and sign of every finite side: sign·(x − bound) ≤ 0."""
        below = [(k, bound, -1.0) for k, bound in enumerate(self.lower) if np.isfinite(bound)]
        return below + [(k, bound, 1.0) for k, bound in enumerate(self.upper) if np.isfinite(bound)]

    def values(self, motion: Motion) -> Array:
        position, _ = pose(motion.robot, motion.q, self.body, self.offset)
        return np.stack([sign * (position[:, k] - bound) for k, bound, sign in self._sides()], axis=1)

    def pull_back(self, motion: Motion, weights: Array) -> Pulled:
        J = jacobian(motion.robot, motion.q, self.body, self.offset)
        by_q = _nothing(motion)
        for column, (k, _, sign) in enumerate(self._sides()):
            by_q += sign * weights[:, column, None] * J[:, k]
        return by_q, _nothing(motion), _nothing(motion)

    def where(self, motion: Motion, index: tuple[int, ...]) -> str:
        k, bound, sign = self._sides()[index[1]]
        return f"{'xyz'[k]} of {self.body}, {'<' if sign > 0 else '>'} {bound:.4g} m"


@dataclass(frozen=True, eq=False)
class NoCollision:
    """Geoms of the model that may touch by its own rules keep a distance, as MuJoCo's collision detection sees it."""

    robot: Robot
    clearance: float = 0.01  # m
    # Contacts farther apart than this beyond the clearance are not looked at.
    reach: float = 0.03
    # Pairs of bodies that touch in the home pose already: drawn so, not a danger.
    ignored: frozenset[tuple[int, int]] = frozenset()
    name: str = "collision"
    in_metres: bool = True

    @cached_property
    def _judge(self) -> Twin:
        judge = twin(self.robot)
        off = mujoco.mjtDisableBit
        # MuJoCo looks for no contact either where constraints are switched off.
        judge.model.opt.disableflags &= ~int(off.mjDSBL_CONTACT | off.mjDSBL_CONSTRAINT)
        judge.model.geom_margin[:] += 0.5 * (self.clearance + self.reach)
        return judge

    @cached_property
    def _apart(self) -> NDArray[np.bool_]:
        """Which pairs of bodies are to be kept apart."""
        count = self._judge.model.nbody
        apart = np.ones((count, count), dtype=bool)
        for first, second in self.ignored:
            apart[first, second] = apart[second, first] = False
        # What does not move against each other (two bodies of the surroundings) is no concern of the robot's.
        fixed = np.ones(count, dtype=bool)
        fixed[self.robot.model_bodies] = False
        return apart & ~np.outer(fixed, fixed)

    def near(self, q: Array) -> list[tuple[float, int]]:
        """Distance and number of every contact between bodies that are to be kept apart."""
        judge = self._judge
        data = judge.place(q)
        mujoco.mj_kinematics(judge.model, data)
        mujoco.mj_collision(judge.model, data)
        if not data.ncon:
            return []
        bodies = judge.model.geom_bodyid[data.contact.geom]
        kept = np.flatnonzero(self._apart[bodies[:, 0], bodies[:, 1]])
        distance = data.contact.dist
        return [(float(distance[k]), int(k)) for k in kept]

    def bodies(self, contact: int) -> tuple[int, int]:
        """The bodies of a contact of the position looked at last, the lower number first."""
        first, second = sorted(int(self._judge.model.geom_bodyid[g]) for g in self._judge.data.contact[contact].geom)
        return first, second

    def names(self, bodies: tuple[int, int]) -> str:
        return " and ".join(self._judge.model.body(b).name or f"body{b}" for b in bodies)

    def _slope(self, contact: int) -> Array:
        """∂distance/∂q of a contact of the position looked at last."""
        judge = self._judge
        model, data = judge.model, judge.data
        mujoco.mj_comPos(model, data)
        touched = data.contact[contact]
        jac = np.empty((2, 3, model.nv))
        for J, geom in zip(jac, touched.geom, strict=True):
            mujoco.mj_jac(model, data, J, None, touched.pos, int(model.geom_bodyid[geom]))
        return (touched.frame[:3] @ (jac[1] - jac[0]))[self.robot.model_dofs]

    def values(self, motion: Motion) -> Array:
        deepest = np.full(len(motion.q), -self.reach)
        for t, q in enumerate(motion.q):
            distance = min((distance for distance, _ in self.near(q)), default=np.inf)
            deepest[t] = max(self.clearance - distance, -self.reach)
        return deepest[:, None]

    def pull_back(self, motion: Motion, weights: Array) -> Pulled:
        by_q = _nothing(motion)
        for t in np.flatnonzero(weights[:, 0]):
            if near := self.near(motion.q[t]):
                by_q[t] = -weights[t, 0] * self._slope(min(near)[1])
        return by_q, _nothing(motion), _nothing(motion)

    def where(self, motion: Motion, index: tuple[int, ...]) -> str:
        near = self.near(motion.q[index[0]])
        pair = self.names(self.bodies(min(near)[1])) if near else "any two bodies"
        return f"distance of {pair} (looked at up to {1e3 * self.reach:.3g} mm), > {self.clearance * 1e3:.3g} mm"


# What is assumed where neither the model nor a sidecar states a limit: slow enough not to hurt a robot that nobody
# has described, and said in the notes of every design.
ASSUMED_VELOCITY = 1.0  # rad/s or m/s
ASSUMED_SECONDS_TO_FULL_SPEED = 0.25


def assumed_limits(robot: Robot) -> tuple[Robot, tuple[str, ...]]:
    """The robot with a velocity and an acceleration limit for every joint, and what was assumed."""
    limits, notes = robot.limits, []
    velocity, acceleration = limits.velocity.copy(), limits.acceleration.copy()
    unknown = ~np.isfinite(velocity)
    if unknown.any():
        velocity[unknown] = ASSUMED_VELOCITY
        names = ", ".join(robot.dof_names[k] for k in np.flatnonzero(unknown))
        notes.append(f"no velocity limit is known for {names}: {ASSUMED_VELOCITY:g} /s assumed")
    unknown = ~np.isfinite(acceleration)
    if unknown.any():
        acceleration[unknown] = velocity[unknown] / ASSUMED_SECONDS_TO_FULL_SPEED
        names = ", ".join(robot.dof_names[k] for k in np.flatnonzero(unknown))
        notes.append(
            f"no acceleration limit is known for {names}: full speed in {ASSUMED_SECONDS_TO_FULL_SPEED:g} s assumed"
        )
    return replace(robot, limits=replace(limits, velocity=velocity, acceleration=acceleration)), tuple(notes)


def joint_constraints(robot: Robot, margin: float) -> list[Constraint]:
    """Position, velocity, acceleration and torque limits, drawn in by a margin (0.05: use 95 %)."""
    limits, joints, use = robot.limits, robot.dof_names, 1.0 - margin
    bounded = np.isfinite(limits.lower) & np.isfinite(limits.upper)
    lower, upper = limits.lower.copy(), limits.upper.copy()
    middle, half = 0.5 * (upper[bounded] + lower[bounded]), 0.5 * (upper[bounded] - lower[bounded])
    lower[bounded], upper[bounded] = middle - use * half, middle + use * half
    for k, name in enumerate(joints):
        if not limits.lower[k] < limits.upper[k]:
            raise OptionError(f"the position range of {name} has zero width: {limits.lower[k]} … {limits.upper[k]}")
        for kind in ("velocity", "acceleration", "torque"):
            if not getattr(limits, kind)[k] > 0:
                raise OptionError(f"the {kind} limit of {name} is {getattr(limits, kind)[k]}; it must be above zero")
    found: list[Constraint] = [
        RateLimits(use * limits.velocity, joints, "velocity"),
        RateLimits(use * limits.acceleration, joints, "acceleration"),
    ]
    if bounded.any():
        found.insert(0, PositionLimits(lower, upper, joints))
    if np.isfinite(limits.torque).any():
        found.append(TorqueLimits(use * limits.torque, joints))
    return found


def collisions_of(robot: Robot, clearance: float) -> tuple[list[Constraint], tuple[str, ...]]:
    """The collision constraint of a model whose geoms can touch, less the pairs that touch at home, which are named."""
    model = robot.source.model if robot.source is not None else None
    if model is None or not (np.any(model.geom_contype) and np.any(model.geom_conaffinity)):
        return [], ()
    constraint = NoCollision(robot, clearance)
    touching = [constraint.bodies(k) for distance, k in constraint.near(robot.home) if distance < clearance]
    if not touching:
        return [constraint], ()
    names = ", ".join(dict.fromkeys(constraint.names(pair) for pair in touching))
    note = f"these touch in the home pose already and are not kept apart: {names}"
    return [replace(constraint, ignored=frozenset(touching))], (note,)


@dataclass(frozen=True)
class Violation:
    """The worst entry of a constraint."""

    constraint: str
    amount: float  # relative, or in metres for distances; > 0 is beyond the limit
    in_metres: bool
    time: float  # s
    where: str

    def __str__(self) -> str:
        state = "exceeded" if self.amount > 0 else "kept"
        if not self.in_metres:
            return f"{self.where}: {state}, {100 * (1 + self.amount):.4g} % of it used at {self.time:.3f} s"
        side = "too far" if self.amount > 0 else "to spare"
        return f"{self.where}: {state}, {1e3 * abs(self.amount):.3g} mm {side} at {self.time:.3f} s"


def worst_violations(constraints: Sequence[Constraint], motion: Motion, t: Array) -> tuple[Violation, ...]:
    """The worst entry of each constraint."""
    found = []
    for constraint in constraints:
        values = constraint.values(motion)
        if values.size:
            index = np.unravel_index(int(values.argmax()), values.shape)
            where = constraint.where(motion, tuple(int(k) for k in index))
            amount, time = float(values[index]), float(t[index[0]])
            found.append(Violation(constraint.name, amount, constraint.in_metres, time, where))
    return tuple(found)
