"""Exercise 7.2: the Newton–Euler recursion as the chapter prints it, and as it has to be."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..dynamics import inverse_dynamics, pose
from ..robot.inertia import mass_com_inertia
from ..robot.robot import Robot
from ..robot.states import random_states
from ..robot.twin import twin
from .answer import Answer, Line, off
from .arms import planar, spatial

Array = NDArray[np.float64]
Turns = Literal["as printed", "relative", "with twist"]
_Z = np.array([0.0, 0.0, 1.0])
_STATES = 100


class Chain(NamedTuple):
    """Links whose hinges are z of their frames."""

    twist: list[Array]  # each frame's axes in its parent's, at zero
    place: list[Array]  # each origin in its parent
    mass: list[float]
    com: list[Array]
    inertia: list[Array]  # about the centre of mass


def chain_of(robot: Robot) -> Chain:
    twist, place = [], []
    before, axes = np.zeros(3), np.eye(3)
    for body in robot.bodies:
        origin, own = (x[0] for x in pose(robot, np.zeros((1, robot.nq)), body))
        place.append(axes.T @ (origin - before))
        twist.append(axes.T @ own)
        before, axes = origin, own
    bodies = [mass_com_inertia(parameters) for parameters in robot.body_parameters]
    return Chain(twist, place, [float(b[0]) for b in bodies], [b[1] for b in bodies], [b[2] for b in bodies])


def _turn(angle: float) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _rotations(chain: Chain, q: Array, turns: Turns) -> list[Array]:
    """R[i]: from frame i to its parent; as printed it is multiplied up from the base and still used as if it were."""
    if turns == "with twist":
        return [twist @ _turn(x) for twist, x in zip(chain.twist, q, strict=True)]
    if turns == "relative":
        return [_turn(x) for x in q]
    R, found = np.eye(3), []
    for x in q:
        R = _turn(x) @ R
        found.append(R)
    return found


def newton_euler(chain: Chain, q: Array, qd: Array, qdd: Array, gravity: Array, turns: Turns) -> Array:
    """The chapter's two loops, line by line."""
    n, R = len(q), _rotations(chain, q, turns)
    w, dw, a = np.zeros(3), np.zeros(3), -gravity
    F, N = [], []
    for i in range(n):
        back, p = R[i].T, chain.place[i]
        a = back @ (a + np.cross(dw, p) + np.cross(w, np.cross(w, p)))
        w, dw = back @ w + _Z * qd[i], back @ dw
        dw = dw + _Z * qdd[i] + np.cross(w, _Z * qd[i])
        ac = a + np.cross(dw, chain.com[i]) + np.cross(w, np.cross(w, chain.com[i]))
        F.append(chain.mass[i] * ac)
        N.append(chain.inertia[i] @ dw + np.cross(w, chain.inertia[i] @ w))
    tau, f, moment = np.zeros(n), np.zeros(3), np.zeros(3)
    for i in reversed(range(n)):
        outer, p = (R[i + 1], chain.place[i + 1]) if i + 1 < n else (np.eye(3), np.zeros(3))
        f, moment = outer @ f, outer @ moment
        moment = moment + np.cross(chain.com[i], F[i]) + np.cross(p, f) + N[i]
        f = f + F[i]
        tau[i] = moment @ _Z
    return tau


def _errors(robot: Robot, rng: np.random.Generator) -> dict[str, float]:
    chain, (q, qd, qdd) = chain_of(robot), random_states(robot, rng, _STATES)
    judge = twin(robot)
    expected = np.array([judge.inverse_dynamics(*s) for s in zip(q, qd, qdd, strict=True)])
    found = {"ours": off(inverse_dynamics(robot, q, qd, qdd), expected)}
    ways: tuple[Turns, ...] = ("as printed", "relative", "with twist")
    for turns in ways:
        tau = [newton_euler(chain, *s, robot.gravity, turns) for s in zip(q, qd, qdd, strict=True)]
        found[turns] = off(np.array(tau), expected)
    return found


def recursion(rng: np.random.Generator) -> Answer:
    """The printed loops, mended in two steps, on a planar and a spatial arm, against mj_inverse."""
    names = {
        "as printed": "as printed, R[i] = Rz(q_i) R[i−1]",
        "relative": "R[i] = Rz(q_i), one joint's turn",
        "with twist": "R[i] = (frame i in its parent) Rz(q_i)",
    }
    lines = []
    for arm, robot in (("planar", planar()), ("spatial", spatial())):
        errors = _errors(robot, rng)
        for key, text in names.items():
            lines.append(Line(f"{arm}: {key}", f"{arm} arm, {text}: off by", errors["ours"], errors[key]))
    return Answer(
        "7.2",
        "Newton–Euler recursion of three links: torque against mj_inverse, as a share of the largest",
        tuple(lines),
        (
            "R[i] = Rz(q[i]) @ R[i-1] multiplies up from the base, and every later line uses R[i] as the turn of one "
            "joint: wrong for any arm of more than one link. Without the factor R[i-1] it is right for parallel axes.",
            "It has no fixed turn between a frame and its parent, so that all axes are parallel: a spatial arm "
            "needs it.",
            "7.1.2 writes R with the same indices outward and inward, where one has to be the transpose of the other, "
            "ż for the axis z, and uses a_i without saying how it goes outward: "
            "a_i = Rᵀ(a_{i−1} + α×p + ω×(ω×p)), a_0 = −g, as exercise 7.2 has it.",
        ),
        ("steelyard check panda",),
    )
