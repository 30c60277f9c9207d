"""Poses, velocities and Jacobians of points on the robot, in world axes."""

import numpy as np
from numpy.typing import ArrayLike

from ..compiled import over_samples
from ..errors import DataError
from ..robot.robot import Robot
from .kernels import frames as _frames
from .samples import Array, positions, rates


def _offset(offset: ArrayLike) -> Array:
    point = np.asarray(offset, dtype=np.float64)
    if point.shape != (3,) or not np.isfinite(point).all():
        raise DataError(f"offset must be three finite numbers in the body's frame, not {offset!r}")
    return point


def last_body(robot: Robot) -> str:
    """The body farthest down the tree, which stands for the end effector where none is named."""
    return robot.bodies[-1]


def pose(
    robot: Robot, q: ArrayLike, body: str | None = None, offset: ArrayLike = (0.0, 0.0, 0.0)
) -> tuple[Array, Array]:
    """World position of a point fixed in a body, and the body's rotation matrix."""
    q, single = positions(robot, q)
    link, point = robot.link_of(body or last_body(robot)), _offset(offset)
    position, rotation = np.empty((len(q), 3)), np.empty((len(q), 3, 3))
    over_samples(
        len(q), lambda a, b: _frames.poses(robot.links, robot.dofs, link, point, q[a:b], position[a:b], rotation[a:b])
    )
    return (position[0], rotation[0]) if single else (position, rotation)


def jacobian(robot: Robot, q: ArrayLike, body: str | None = None, offset: ArrayLike = (0.0, 0.0, 0.0)) -> Array:
    """The 6×n matrix that turns q̇ into the point's velocity (rows 0–2) and the body's angular velocity (3–5)."""
    q, single = positions(robot, q)
    link, point = robot.link_of(body or last_body(robot)), _offset(offset)
    J = np.empty((len(q), 6, robot.n))
    over_samples(len(q), lambda a, b: _frames.jacobians(robot.links, robot.dofs, link, point, q[a:b], J[a:b]))
    return J[0] if single else J


def jacobian_rate(
    robot: Robot, q: ArrayLike, qd: ArrayLike, body: str | None = None, offset: ArrayLike = (0.0, 0.0, 0.0)
) -> Array:
    """d/dt of `jacobian`, exactly, not by differences."""
    q, single = positions(robot, q)
    qd = rates(robot, "qd", qd, len(q))
    link, point = robot.link_of(body or last_body(robot)), _offset(offset)
    J = np.empty((len(q), 6, robot.n))
    over_samples(
        len(q),
        lambda a, b: _frames.jacobian_rates(robot.links, robot.dofs, link, point, q[a:b], qd[a:b], J[a:b]),
    )
    return J[0] if single else J


def velocity(
    robot: Robot, q: ArrayLike, qd: ArrayLike, body: str | None = None, offset: ArrayLike = (0.0, 0.0, 0.0)
) -> Array:
    """Velocity of a point on a body and angular velocity of the body, six numbers a sample."""
    J = jacobian(robot, q, body, offset)
    qd = rates(robot, "qd", qd, 1 if J.ndim == 2 else len(J))
    return np.einsum("...ij,...j->...i", J, qd.reshape(*J.shape[:-2], robot.n))
