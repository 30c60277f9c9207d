"""Exercise 7.1: the equations of motion of two links in a vertical plane, by hand and by machine."""

import numpy as np
from numpy.typing import NDArray

from ..dynamics import coriolis_matrix, gravity, mass_matrix
from ..dynamics.lagrange import lagrange_terms
from ..robot.inertia import mass_com_inertia
from ..robot.load import load_robot
from ..robot.robot import Robot
from ..robot.states import random_states
from ..robot.twin import twin
from .answer import Answer, Line, off

Array = NDArray[np.float64]

_LENGTHS = (0.5, 0.4)  # of the library's two_link, whose centres of mass are in the middle
_STATE = np.array([0.6, -1.2]), np.array([1.0, -2.0]), np.array([3.0, 4.0])
_STATES = 200
_STEP = 1e-5  # s, of the central difference that is Ṁ


def closed_form(robot: Robot, q: Array, qd: Array) -> tuple[Array, Array, Array]:
    """M, C and G as the chapter prints them."""
    (m1, _, I1), (m2, _, I2) = (mass_com_inertia(body) for body in robot.body_parameters)
    (l1, l2), g = _LENGTHS, -robot.gravity[2]
    J1, J2 = I1[1, 1], I2[1, 1]  # about the hinges' axis, y
    c, h = np.cos(q[1]), m2 * l1 * l2 / 2 * np.sin(q[1])
    m12 = m2 * (l2 / 2) ** 2 + J2 + 0.5 * m2 * l1 * l2 * c
    m22 = m2 * (l2 / 2) ** 2 + J2
    m11 = m1 * (l1 / 2) ** 2 + m2 * l1**2 + m2 * (l2 / 2) ** 2 + J1 + J2 + m2 * l1 * l2 * c
    C = np.array([[-h * qd[1], -h * (qd[0] + qd[1])], [h * qd[0], 0.0]])
    lifted = m2 * l2 / 2 * g * np.cos(q[0] + q[1])
    G = np.array([(m1 * l1 / 2 + m2 * l1) * g * np.cos(q[0]) + lifted, lifted])
    return np.array([[m11, m12], [m12, m22]]), C, G


def _other_form(robot: Robot, q: Array, qd: Array) -> Array:
    """A matrix with the same C q̇ that is not Christoffel's: its q̇₁q̇₂ stands in the first column alone."""
    C = closed_form(robot, q, qd)[1]
    return np.array([[2 * C[0, 0], C[0, 0]], C[1]])


def _skew(rate: Array, C: Array) -> float:
    """How far Ṁ − 2C is from skew symmetry."""
    S = rate - 2 * C
    return float(np.abs(S + np.swapaxes(S, -1, -2)).max())


def two_link(rng: np.random.Generator) -> Answer:
    """The closed form against our matrices, our Lagrangian way and MuJoCo's inverse dynamics."""
    robot = load_robot("two_link")
    q, qd, qdd = random_states(robot, rng, _STATES)
    book = [np.array(terms) for terms in zip(*(closed_form(robot, *s) for s in zip(q, qd, strict=True)), strict=True)]
    M, C, G = mass_matrix(robot, q), coriolis_matrix(robot, q, qd), gravity(robot, q)
    energetic = [lagrange_terms(robot, *s) for s in zip(q, qd, strict=True)]
    torque = np.einsum("tij,tj->ti", book[0], qdd) + np.einsum("tij,tj->ti", book[1], qd) + book[2]
    judge = twin(robot)
    mujoco = np.array([judge.inverse_dynamics(*s) for s in zip(q, qd, qdd, strict=True)])
    rate = (mass_matrix(robot, q + _STEP * qd) - mass_matrix(robot, q - _STEP * qd)) / (2 * _STEP)
    others = np.array([_other_form(robot, *s) for s in zip(q, qd, strict=True)])
    here = closed_form(robot, _STATE[0], _STATE[1])
    ours = (mass_matrix(robot, _STATE[0]), coriolis_matrix(robot, *_STATE[:2]), gravity(robot, _STATE[0]))
    entries = (
        ("M11", 0, (0, 0), "kg·m²"), ("M12", 0, (0, 1), "kg·m²"), ("M22", 0, (1, 1), "kg·m²"),
        ("C11", 1, (0, 0), "N·m·s"), ("C12", 1, (0, 1), "N·m·s"), ("C21", 1, (1, 0), "N·m·s"),
        ("G1", 2, (0,), "N·m"), ("G2", 2, (1,), "N·m"),
    )  # fmt: skip
    at = "q = (0.6, −1.2), q̇ = (1, −2)"
    lines = [
        Line(name, f"{name} at {at}", float(ours[k].reshape(here[k].shape)[place]), float(here[k][place]), unit)
        for name, k, place, unit in entries
    ]
    lines += [
        Line("M_error", f"largest difference of M over {_STATES} states, relative", off(M, book[0]), 0.0),
        Line("C_error", "of C, entry by entry", off(C, book[1]), 0.0),
        Line("G_error", "of G", off(G, book[2]), 0.0),
        Line("lagrange_error", "of M by our Lagrangian way (traces)", off(np.array([t.M for t in energetic]), book[0])),
        Line("mujoco_error", "of the closed form's torque from mj_inverse", off(torque, mujoco)),
        Line("skew", "Ṁ − 2C: distance from skew symmetry", _skew(rate, book[1]), 0.0, "N·m·s"),
        Line(
            "other_product", "another C: its C q̇ differs by", off((others @ qd[..., None]), (book[1] @ qd[..., None]))
        ),
        Line("other_skew", "and its Ṁ − 2C is not skew, by", _skew(rate, others), None, "N·m·s"),
    ]
    return Answer(
        "7.1",
        "Two links in a vertical plane",
        tuple(lines),
        (
            "M, C and G are right, and its C is Christoffel's: exercise 7.6 needs that, because other matrices with "
            "the same C q̇ have no skew Ṁ − 2C.",
            "I₁ and I₂ are about the centres of mass. Rotors and friction, which a real arm has, are not in it.",
        ),
        ("steelyard check two_link", "steelyard info two_link --base"),
    )
