"""A robot whose welded links are one with what carries them: fewer links, the same motion."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .inertia import move
from .robot import Array, Robot, frozen
from .tree import DOF, FIXED, LINK


@dataclass(frozen=True, eq=False)
class Merged:
    """The arrays that kernels need, without fixed links."""

    links: NDArray
    dofs: NDArray
    bodies: Array


def _carried(link: NDArray, R: Array, p: Array) -> None:
    """Re-express where a link hangs in the frame of what its parent is welded to."""
    for name in ("R0", "Rc", "Rs"):
        link[name] = R @ link[name]
    link["axis"] = R @ link["axis"]
    for name in ("pos", "anchor_parent"):
        link[name] = R @ link[name] + p


def merged(robot: Robot) -> Merged:
    """Weld every fixed link into the link that carries it."""
    links: list[NDArray] = []
    place: list[tuple[int, Array, Array]] = []  # of every old link: the new one that carries it, and its pose there
    weights: list[Array] = []
    for i, old in enumerate(robot.links):
        mass = robot.body_parameters[old["body"]] if old["body"] >= 0 else np.zeros(10)
        carrier, R, p = place[old["parent"]] if i else (0, np.eye(3), np.zeros(3))
        if i and old["kind"] == FIXED:
            pose = (carrier, R @ old["R0"], R @ old["pos"] + p)
            weights[carrier] = weights[carrier] + move(mass, pose[1], pose[2])
            place.append(pose)
            continue
        link = old.copy()
        _carried(link, R, p)
        link["parent"] = carrier
        place.append((len(links), np.eye(3), np.zeros(3)))
        links.append(link)
        weights.append(mass)
    for k, link in enumerate(links):
        link["body"] = k - 1
    dofs = robot.dofs.copy()
    dofs["link"] = [place[link][0] for link in robot.dofs["link"]]
    bodies = frozen(weights[1:])
    return Merged(frozen(np.array(links, LINK), LINK), frozen(dofs, DOF), bodies)
