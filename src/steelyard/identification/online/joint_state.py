"""The robot as the model of a filter whose state is x = [q, q̇, ξ], parameters beside the motion they explain.

    q̈ = M(q; ξ)⁻¹ (tau − C q̇ − g − friction),    ξ̇ = 0,    z = q, or q and q̇

No acceleration has to be measured. Where a joint stands still its dry friction may be anything up to its level, and
is noise of that size to the filter; elsewhere it pushes against the motion that the filter believes in.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError, ModelError
from ...robot.parameters import JOINT_PROPERTIES
from ...robot.robot import Robot
from .coordinates import Coordinates
from .kalman import Array, Model
from .kernels.joint_state import advance, midpoint

_DRY = JOINT_PROPERTIES.index("coulomb")


class Tangent(NamedTuple):
    """A step with its derivatives."""

    ahead: Array  # x⁺
    F: Array  # ∂x⁺/∂x
    G: Array  # ∂x⁺/∂tau, (size, n), through which noise of the torque comes in
    dry: Array  # (n,) Coulomb levels that the parameters mean


class Drive(NamedTuple):
    """What acts over a step: torque, the sign of dry friction, and how long."""

    tau: Array  # (n,)
    sign: Array  # (n,) −1 … 1
    step: float  # s


@dataclass(frozen=True, eq=False)
class JointModel:
    """Transition of [q, q̇, ξ] by forward dynamics, for one state and for many, with its derivatives."""

    robot: Robot
    coordinates: Coordinates

    def __post_init__(self) -> None:
        if self.robot.nq != self.robot.n:
            raise ModelError(f"{self.robot.name} has ball or free joints; the filters are for hinges and slides")

    @property
    def n(self) -> int:
        return self.robot.n

    @cached_property
    def size(self) -> int:
        return 2 * self.n + self.coordinates.start.size

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        return np.array([self.robot.bodies.index(body) for body in self.robot.layout.bodies], dtype=np.int64)

    @cached_property
    def _layout(self) -> tuple[NDArray, NDArray, int, int]:
        layout = self.robot.layout
        dry = layout.block("coulomb").start if "coulomb" in layout.properties else -1
        return self.robot.columns, self.robot.property_codes, 10 * len(layout.bodies), dry

    def tables(self, theta: Array) -> tuple[Array, Array]:
        """Body parameters (…, b, 10) and joint properties (…, n, 4) of parameters (…, p)."""
        robot, lead, split = self.robot, theta.shape[:-1], self.robot.layout.inertial.stop
        bodies = np.empty((*lead, *robot.body_parameters.shape))
        bodies[...] = robot.body_parameters
        bodies[..., self._rows, :] = theta[..., :split].reshape(*lead, -1, 10)
        joints = np.empty((*lead, *robot.joint_parameters.shape))
        joints[...] = robot.joint_parameters
        blocks = theta[..., split:].reshape(*lead, -1, self.n)
        joints[..., robot.property_codes] = np.swapaxes(blocks, -1, -2)
        return bodies, joints

    def _runaway(self) -> DataError:
        return DataError(
            f"the filter's parameters of {self.robot.name} left what is physical (its mass matrix is not positive "
            "definite); take coordinates='physical', a smaller prior deviation, or more measurement noise"
        )

    def transition(self, x: Array, u: Drive) -> Array:
        """x⁺ of one state (size,) or of many (k, size); NaN where the parameters are those of no real robot."""
        points, n, robot = np.atleast_2d(x), self.n, self.robot
        bodies, joints = self.tables(self.coordinates.theta(points[:, 2 * n :]))
        q, qd = points[:, :n].copy(), points[:, n : 2 * n].copy()
        advance(robot.links, robot.dofs, bodies, joints, robot.gravity, *u, q, qd)
        return np.hstack([q, qd, points[:, 2 * n :]]).reshape(x.shape)

    def tangent(self, x: Array, u: Drive) -> Tangent:
        """The step with its derivatives; a robot that cannot be is an error here."""
        n, robot, h = self.n, self.robot, u.step
        xi = x[2 * n :]
        bodies, joints = self.tables(self.coordinates.theta(xi))
        p = robot.layout.size
        start, middle = (
            (np.empty((1, n)), *(np.empty((n, n)) for _ in range(3)), np.empty((1, n, p))) for _ in range(2)
        )
        q, qd = x[None, :n].copy(), x[None, n : 2 * n].copy()
        model = (robot.links, robot.dofs, robot.gravity)
        if not midpoint(model, self._layout, bodies, joints, u.tau, u.sign, h, q, qd, start, middle):
            raise self._runaway()
        _, inverse0, by_q0, by_qd0, Y0 = start
        _, inverse, by_q, by_qd, Y = middle
        by_xi0, by_xi = -np.stack([inverse0, inverse]) @ self.coordinates.columns(np.concatenate([Y0, Y]), xi)
        a, b = slice(0, n), slice(n, 2 * n)
        F = np.eye(self.size)
        half, eye = 0.5 * h, np.eye(n)
        # How the middle moves with the start, then how the end moves with the middle.
        rate_q, rate_qd, rate_xi = half * by_q0, eye + half * by_qd0, half * by_xi0
        F[a, a] += h * rate_q
        F[a, b] = h * rate_qd
        F[a, 2 * n :] = h * rate_xi
        F[b, a] = h * (by_q + by_qd @ rate_q)
        F[b, b] += h * (half * by_q + by_qd @ rate_qd)
        F[b, 2 * n :] = h * (by_xi + by_qd @ rate_xi)
        G = np.zeros((self.size, n))
        G[a], G[b] = h * half * inverse0, h * (inverse + by_qd @ (half * inverse0))
        return Tangent(np.concatenate([q[0], qd[0], xi]), F, G, joints[:, _DRY])


def measurement_matrix(model: JointModel, rates: bool) -> Array:
    """H of z = q, or of z = [q, q̇]."""
    return np.eye(model.size)[: (2 if rates else 1) * model.n]


def filter_model(model: JointModel, Q: Array, R: Array, rates: bool) -> Model:
    """The model as the filters of this room take it."""
    H = measurement_matrix(model, rates)
    return Model(
        model.transition,
        lambda x, u: x[..., : len(H)],
        Q,
        R,
        lambda x, u: model.tangent(x, u)[1],
        lambda x, u: H,
        many=True,
    )
