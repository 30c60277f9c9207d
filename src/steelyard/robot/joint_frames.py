"""A robot with one frame a joint: origin on the joint, z along it, and all that it carries weighed there.

In these frames a joint feels the third number of a wrench and nothing else, welded links are one with what carries
them, and inertias depend linearly on the robot's parameters: `carry` is that map, which holds for all their values.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .inertia import move
from .robot import Array, Robot, frozen
from .tree import FIXED, HINGE


@dataclass(frozen=True, eq=False)
class JointFrames:
    """What kernels of one state read; joints are degrees of freedom, all hinges and slides."""

    parents: NDArray  # (n,) joint that carries this one, -1: the world
    rotary: NDArray  # (n,) 1: turns about its z, 0: moves along it
    frames: Array  # (n, 13) in the frame of the parent: rotation by rows, origin, both at the reference; the reference
    carry: Array  # (10 n, 10 bodies)

    def inertias(self, body_parameters: Array) -> Array:
        """The ten numbers of what each joint moves as one body, in its frame, (n, 10)."""
        return (self.carry @ np.ascontiguousarray(body_parameters).ravel()).reshape(-1, 10)


def _cross(a: Array, b: Array) -> Array:
    # NumPy's own takes ten times as long for two vectors.
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def _with_third_axis(z: Array) -> Array:
    """A rotation whose last column is z."""
    z = z / np.sqrt(z @ z)
    x = np.zeros(3)
    x[np.abs(z).argmin()] = 1.0
    y = _cross(z, x)
    y /= np.sqrt(y @ y)
    return np.column_stack([_cross(y, z), y, z])


def joint_frames(robot: Robot) -> JointFrames:
    """The frames of a robot without ball and free joints."""
    frames = np.empty((robot.n, 13))
    parents = np.full(robot.n, -1)
    # Of every link: the joint that carries it, and its pose in that joint's frame.
    places: list[tuple[int, Array, Array]] = [(-1, np.eye(3), np.zeros(3))]
    for link in robot.links[1:]:
        carrier, R, p = places[link["parent"]]
        if link["kind"] == FIXED:
            places.append((carrier, R @ link["R0"], R @ link["pos"] + p))
            continue
        hinge = link["kind"] == HINGE
        still = R @ (link["R0"] + link["Rc"] if hinge else link["R0"])
        A = _with_third_axis(still.T @ (R @ link["axis"]))
        origin = R @ (link["anchor_parent"] if hinge else link["pos"]) + p
        k = int(link["dof"])
        parents[k] = carrier
        frames[k, :9], frames[k, 9:12], frames[k, 12] = (still @ A).ravel(), origin, link["reference"]
        places.append((k, A.T, -A.T @ link["anchor"] if hinge else np.zeros(3)))
    carry = np.zeros((robot.n, 10, len(robot.bodies), 10))
    moving = [i for i, place in enumerate(places) if place[0] >= 0 and robot.links["body"][i] >= 0]
    maps = move(np.eye(10), *(np.array([places[i][part] for i in moving])[:, None] for part in (1, 2)))
    for i, columns in zip(moving, maps, strict=True):
        carry[places[i][0], :, robot.links["body"][i]] = columns.T
    rotary = frozen(robot.dofs["rotary"], np.int64)
    return JointFrames(frozen(parents, np.int64), rotary, frozen(frames), frozen(carry.reshape(10 * robot.n, -1)))
