"""Rigid contacts with friction over one time step, as a linear complementarity problem of impulses.

Bodies of mass matrix M that would move with v leave a step of length h with v⁺ = v + M⁻¹ (Nᵀ λ + Dᵀ β). N (k, n) has a
row a contact, the rate of its gap φ; D (k·sides, n) has rows along the facets of the friction cone, whose corners lie
on the true circle: no force is outside, and between two corners friction is weaker by up to cos(π/sides).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import DataError, OptionError
from .complementarity import Complementary, Lemke, Method, solve_complementarity

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Coulomb:
    """Friction against sliding, of the greatest power: not a convex problem, so for `Lemke` only.

        0 <= λ ⊥ φ/h + N v⁺ >= 0,    0 <= β ⊥ σ + D v⁺ >= 0,    0 <= σ ⊥ μλ − Σβ >= 0

    Stewart and Trinkle, Int. J. Numer. Meth. Eng. 39 (1996); Anitescu and Potra, Nonlinear Dynamics 14 (1997).
    """

    sides: int = 4


@dataclass(frozen=True)
class Convex:
    """The same cone made a symmetric, positive semidefinite problem, for every method.

        0 <= β ⊥ φ/h + (n + μ d) v⁺ >= 0,    λ = Σβ,    friction = μ Σ β d

    Where contacts stick it is Coulomb's law; one that slides with v lifts off with μ v. Anitescu, Math. Program. 105
    (2006); MuJoCo's pyramidal cones are this law with compliance.
    """

    sides: int = 4


@dataclass(frozen=True, eq=False)
class Contacts:
    """k contacts in the n velocity coordinates of a system."""

    normal: Array  # (k, n) rate of the gaps
    tangent: Array  # (k, 2, n) rates of sliding along two perpendicular directions
    friction: Array  # (k,)
    gap: Array  # (k,) m

    def __post_init__(self) -> None:
        for name in ("normal", "tangent", "friction", "gap"):
            value = np.array(getattr(self, name), dtype=np.float64)
            if not np.isfinite(value).all():
                raise DataError(f"the {name} of the contacts has numbers that are not finite; repair it")
            object.__setattr__(self, name, value)
        k, n = self.normal.shape
        if self.tangent.shape != (k, 2, n) or self.friction.shape != (k,) or self.gap.shape != (k,):
            raise DataError(
                f"{k} contacts of {n} coordinates need tangents ({k}, 2, {n}), friction ({k},) and gaps ({k},), not "
                f"{self.tangent.shape}, {self.friction.shape} and {self.gap.shape}"
            )
        if (self.friction < 0).any():
            raise OptionError(f"a friction coefficient is {self.friction.min():g}; give at least 0")


@dataclass(frozen=True, eq=False)
class Impact:
    """What the contacts did over a step."""

    velocity: Array  # (n,) after it
    normal: Array  # (k,) impulses, N·s
    friction: Array  # (k, 2) impulses along the tangents
    solution: Complementary  # its z is the start for the next step


def frame(normal: ArrayLike) -> Array:
    """Rows n, t1, t2: right-handed, t1 upward in the tangent plane, along x where that plane is level."""
    n = np.array(normal, dtype=np.float64)
    length = float(np.linalg.norm(n))
    if n.shape != (3,) or not (np.isfinite(length) and length > 0):
        raise DataError(f"the normal of a contact is {np.asarray(normal).tolist()}; give three numbers, not all zero")
    n /= length
    t = np.array([0.0, 0.0, 1.0]) - n[2] * n
    if np.linalg.norm(t) < 1e-6:
        t = np.array([1.0, 0.0, 0.0]) - n[0] * n
    t /= np.linalg.norm(t)
    return np.array([n, t, np.cross(n, t)])


def free_body(
    points: ArrayLike, normals: ArrayLike, centre: ArrayLike, friction: ArrayLike, gap: ArrayLike = 0.0
) -> Contacts:
    """Contacts of one free body with its surroundings, in the coordinates [velocity of the centre, angular velocity].

    Normals point into the body.
    """
    points, normals = np.atleast_2d(np.asarray(points, float)), np.atleast_2d(np.asarray(normals, float))
    if points.shape != normals.shape or points.shape[1] != 3:
        raise DataError(f"points {points.shape} and normals {normals.shape} of contacts need three numbers each")
    frames = np.array([frame(n) for n in normals])
    arms = points - np.asarray(centre, float)
    rows = np.concatenate([frames, np.cross(arms[:, None], frames)], axis=2)
    k = len(points)
    return Contacts(rows[:, 0], rows[:, 1:], np.broadcast_to(friction, k), np.broadcast_to(gap, k))


def _facets(sides: int) -> Array:
    """Directions of the corners in the tangent plane, (sides, 2)."""
    if not 4 <= sides <= 256:
        raise OptionError(f"a friction cone of {sides} sides; give 4 to 256")
    angles = 2 * np.pi * np.arange(sides) / sides
    return np.column_stack([np.cos(angles), np.sin(angles)])


def _checked_step(M: ArrayLike, v: ArrayLike, contacts: Contacts, dt: float) -> tuple[Array, Array]:
    M, v = np.asarray(M, dtype=np.float64), np.asarray(v, dtype=np.float64)
    n = contacts.normal.shape[1]
    if M.shape != (n, n) or v.shape != (n,):
        raise DataError(f"the contacts have {n} coordinates; the mass matrix is {M.shape} and the velocity {v.shape}")
    if not (np.isfinite(dt) and dt > 0):
        raise OptionError(f"the time step is {dt:g} s; it must be above zero")
    return M, v


def step(
    mass_matrix: ArrayLike,
    velocity: ArrayLike,
    contacts: Contacts,
    dt: float,
    law: Coulomb | Convex | None = None,
    method: Method | None = None,
    start: ArrayLike | None = None,
    regularisation: float = 0.0,
) -> Impact:
    """The velocity after a step from the one that there would be without contacts.

    `start` is the solution of the step before (same contacts, same law); `regularisation`, in 1/kg, lets contacts give
    a little, which makes forces unique where rigid ones are not.
    """
    law = Coulomb() if law is None else law
    if not 0 <= regularisation < np.inf:
        raise OptionError(f"the regularisation is {regularisation:g}; give a finite number from 0")
    M, v = _checked_step(mass_matrix, velocity, contacts, dt)
    if isinstance(law, Coulomb) and method is not None and not isinstance(method, Lemke):
        raise OptionError(f"Coulomb's law needs Lemke(); {type(method).__name__} takes Convex({law.sides})")
    directions, mu = _facets(law.sides), contacts.friction
    k, s = len(mu), law.sides
    facets = np.einsum("sj,kjn->ksn", directions, contacts.tangent)
    closing = contacts.gap / dt
    if isinstance(law, Convex):
        rows = (contacts.normal[:, None] + mu[:, None, None] * facets).reshape(k * s, -1)
        bias, matrix = np.repeat(closing, s), rows @ np.linalg.solve(M, rows.T)
    else:
        rows = np.vstack([contacts.normal, facets.reshape(k * s, -1)])
        bias = np.concatenate([closing, np.zeros(k * s)])
        owner = np.repeat(np.eye(k), s, axis=0)  # which contact a facet is of
        matrix = np.block(
            [
                [rows @ np.linalg.solve(M, rows.T), np.vstack([np.zeros((k, k)), owner])],
                [np.diag(mu), -owner.T, np.zeros((k, k))],
            ]
        )
    soft = np.zeros(len(matrix))
    soft[: len(rows)] = regularisation
    constant = np.zeros(len(matrix))
    constant[: len(rows)] = rows @ v + bias
    solution = solve_complementarity(matrix + np.diag(soft), constant, method, start)
    impulses = solution.z[: len(rows)]
    if isinstance(law, Convex):
        shares = impulses.reshape(k, s)
        normal, weight = shares.sum(axis=1), mu[:, None] * shares
    else:
        normal, weight = impulses[:k], impulses[k:].reshape(k, s)
    return Impact(v + np.linalg.solve(M, rows.T @ impulses), normal, weight @ directions, solution)
