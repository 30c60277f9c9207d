"""Exercise 7.7: four fingers and a cube, as a complementarity problem, and as the equations that the chapter prints."""

import numpy as np
import scipy.optimize

from ..physics.complementarity import Lemke, ProjectedGaussSeidel, QuadraticProgram
from ..physics.contact import Convex, Coulomb, step
from ..physics.grasp import Grasp, hold
from .answer import Answer, Line

FRICTION = 0.3  # the chapter's
_TOO_LITTLE = 0.2
_SECONDS = 0.05
_STEP = 1e-3


def least_friction_found() -> float:
    """Where holding turns into falling, by trying."""

    def falls(friction: float) -> float:
        return 0.5 - float(hold(Grasp(friction=friction), 0.005).holds)

    return float(scipy.optimize.bisect(falls, 0.05, 1.0, xtol=1e-6))


def pulled_apart() -> tuple[float, float]:
    """Fingers that pull outward by 10 N each: the normal force by the printed equations, and by the problem itself.

    [M −Jᵀ; J 0] [q̈ λ] = [force, 0] has neither signs nor complements.
    """
    grasp = Grasp()
    contacts, M = grasp.contacts(), grasp.mass_matrix
    outward = np.r_[np.zeros(6), np.full(4, -grasp.force)]
    J = np.concatenate([contacts.normal[:, None], contacts.tangent], axis=1).reshape(-1, 10)
    saddle = np.block([[M, -J.T], [J, np.zeros((12, 12))]])
    glue = np.linalg.lstsq(saddle, np.r_[outward, np.zeros(12)], rcond=None)[0][10:].reshape(4, 3)[:, 0]
    free = step(M, _STEP * np.linalg.solve(M, outward), contacts, _STEP)
    return float(glue.mean()), float(free.normal.mean() / _STEP)


def strongest_between_facets() -> float:
    """The largest friction at 45° that |f_x|, |f_y| ≤ 1 lets through, where the cone has 1."""
    along = np.array([1.0, 1.0]) / np.sqrt(2.0)
    return -float(scipy.optimize.linprog(-along, bounds=[(-1.0, 1.0)] * 2).fun)


def four_fingers(_: np.random.Generator) -> Answer:
    """What the fingers do with friction enough and too little, by every law and method."""
    held, dropped = hold(Grasp(friction=FRICTION), _SECONDS), hold(Grasp(friction=_TOO_LITTLE), _SECONDS)
    ways = [(Coulomb(4), Lemke()), (Coulomb(16), Lemke())]
    ways += [(Convex(4), m) for m in (Lemke(), ProjectedGaussSeidel(), QuadraticProgram())]  # type: ignore[misc]
    carried = [hold(Grasp(friction=FRICTION), 0.02, law=law, method=m) for law, m in ways]
    grasp = Grasp(friction=FRICTION)
    rows = len(step(grasp.mass_matrix, np.zeros(10), grasp.contacts(), _STEP).solution.z)
    weight = grasp.mass * grasp.gravity
    spread = max(float(np.abs(run.friction[..., 0].sum(axis=1) - weight).max()) for run in carried)
    warm, cold = (hold(Grasp(friction=FRICTION), 0.02, law=Convex(), warm=w).iterations for w in (True, False))
    glue, free = pulled_apart()
    speed = float(dropped.velocity[-1, 2])
    fallen = -(grasp.gravity - 4 * _TOO_LITTLE * grasp.force / grasp.mass) * _SECONDS
    lines = (
        Line("least", "least friction that holds 1 kg with 4 × 10 N, m g/(4 F)", Grasp().least_friction),
        Line("least_found", "  and by trying", least_friction_found()),
        Line("holds", f"μ = {FRICTION:g}: holds", held.holds, True),
        Line("normal", "  normal force a finger", float(held.normal[-1].mean()), None, "N"),
        Line("friction", "  friction upward, four fingers", float(held.friction[-1, :, 0].sum()), None, "N"),
        Line("falls", f"μ = {_TOO_LITTLE:g}: holds", dropped.holds),
        Line("speed", f"  falls, after {_SECONDS:g} s with", speed, None, "m/s"),
        Line("speed_closed", "  closed form −(g − 4 μ F/m) t", fallen, None, "m/s"),
        Line("all_hold", "two laws, three methods: all hold", all(run.holds for run in carried)),
        Line("spread", "  carried weight differs by at most", spread, None, "N"),
        Line("unknowns", "unknowns: 4 contacts × (1 normal + 4 facets + 1)", rows, 12),
        Line("warm", "pivots a step from the last solution", float(warm[1:].mean())),
        Line("cold", "pivots a step from nothing", float(cold[1:].mean())),
        Line("pulled", "fingers pull outward by 10 N: normal force", free, glue, "N"),
        Line("box", "|f_x|, |f_y| ≤ μ f_n: strongest friction, of μ f_n", strongest_between_facets(), 1.0),
    )
    return Answer(
        "7.7",
        "Four fingers hold a cube",
        lines,
        (
            "[A −Jᵀ; J 0][q̈; λ] + [b; c] = 0 is no complementarity problem: it glues the contacts. Fingers that move "
            "away pull the cube. Inequalities and complements have to stand in it: "
            "w = N M⁻¹Nᵀλ + …, 0 ≤ λ ⊥ w ≥ 0, and the friction's multipliers (Stewart and Trinkle).",
            "φ f_n = 0 with φ the distance says nothing of a contact that is closed: over a step it is φ/h + N v⁺ ⊥ λ.",
            "D f_t ≤ μ f_n e with four facets that touch the circle from outside lets friction be 41 % too strong "
            "between them; ours have their corners on the circle and are weaker by cos(π/sides) at most.",
            "Coulomb's law is not the optimum of a convex QP: interior points and PGS solve the convex law, in which a "
            "contact that slides opens a little. PATH is not needed: Lemke solves Coulomb's law itself.",
        ),
    )
