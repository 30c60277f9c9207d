"""Formulas of the chapter that do not hold as printed, each with a case that shows it."""

from collections.abc import Callable

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ..dynamics import gravity, pose
from ..physics.complementarity import Lemke, solve_complementarity
from ..physics.transmission import Belt, inertia_ratio, load_acceleration, optimal_ratio, reflected_inertia
from ..robot.feasibility import invalidities
from ..robot.inertia import from_mass_com_inertia, mass_com_inertia, principal_inertia
from ..robot.load import load_robot
from .answer import Line

Array = NDArray[np.float64]


def potential(_: np.random.Generator) -> tuple[tuple[Line, ...], str]:
    """The gradient of Σ m gᵀp against the gravity torque."""
    robot = load_robot("two_link")
    q, h = np.array([0.6, -1.2]), 1e-6

    def printed(x: Array) -> float:
        total = 0.0
        for body, parameters in zip(robot.bodies, robot.body_parameters, strict=True):
            m, com, _ = mass_com_inertia(parameters)
            total += float(m * robot.gravity @ pose(robot, x, body, com)[0])
        return total

    slope = (printed(q + [h, 0.0]) - printed(q - [h, 0.0])) / (2 * h)
    line = Line("potential", "∂V/∂q₁ at (0.6, −1.2), V = Σ m gᵀp", float(gravity(robot, q)[0]), float(slope), "N·m")
    return (line,), "7.1.3: with g the vector that points down, V = −Σ m gᵀp; as printed, gravity lifts."


def reflected(_: np.random.Generator) -> tuple[tuple[Line, ...], str]:
    """Which side an inertia is seen from, and what a load torque does to the best ratio."""
    load, rotor, n, torque, weight = 1.0, 1e-4, 50.0, 0.5, 40.0
    best = float(optimal_ratio(load, rotor, weight / torque))
    unloaded = float(optimal_ratio(load, rotor))
    gained = [float(load_acceleration(k, load, rotor, torque, weight)) for k in (best, unloaded)]
    lines = (
        Line("at_motor", "J = 1 as a motor feels it through n = 50, J/n²",
             float(reflected_inertia(load, n)), load / n**2, "kg·m²"),
        Line("at_joint", "its rotor of 1e-4 as the joint feels it, n² Jm", rotor * n**2, None, "kg·m²"),
        Line("match", "inertia match J/(n² Jm)", float(inertia_ratio(load, rotor, n))),
        Line("best", "best ratio against a load torque of 40 N·m with a motor of 0.5 N·m", best, unloaded),
        Line("acceleration", "  acceleration of the load there", gained[0], gained[1], "rad/s²"),
    )  # fmt: skip
    return lines, (
        "7.2.3: J/n² is the load at the motor. The equations of 7.1 and 7.2.1 need the other way: the rotor at the "
        "joint, n² Jm. sqrt(J/Jm) is the best ratio only where nothing but inertia loads the motor; against a load "
        "torque it is λ + sqrt(λ² + J/Jm), λ = τ_load/τ_motor."
    )


def belt(_: np.random.Generator) -> tuple[tuple[Line, ...], str]:
    """A belt's stiffness as the joint feels it."""
    found = Belt(axial_stiffness=1e5, length=0.4, radius=0.03, pretension=200.0)
    stiffness = float(found.stiffness(0.0).item()), 1e5 / 0.4 * 0.03**2
    line = Line("belt", "belt of EA = 1e5 N, L = 0.4 m, r = 0.03 m, both spans tight", *stiffness, "N·m/rad")
    return (line,), (
        "7.2.2: EA/L is one span, in N/m; two tight spans on pulleys make 2 (EA/L) r², half that when one is slack."
    )


def observer(_: np.random.Generator) -> tuple[tuple[Line, ...], str]:
    """The disturbance observer on one mass under a sine of force and a constant disturbance."""
    mass, L, d, h = 2.0, 50.0, 3.0, 1e-4

    def error(printed: bool) -> float:
        v, z, worst = 0.0, 0.0, 0.0
        for k in range(20_000):
            tau = 10.0 * np.sin(2 * np.pi * k * h)
            a = (tau - d) / mass
            p = -L * mass * v
            found = z + p
            # ż without q̈: what p adds to d̂ is −L M q̈ by itself.
            z += h * (-L * found + L * (tau - mass * a if printed else tau))
            v += h * a
            if k > 10_000:
                worst = max(worst, abs(found - d))
        return worst

    line = Line("observer", "a disturbance of 3 N under 10 N at 1 Hz: worst error of d̂", error(False), error(True), "N")
    return (line,), (
        "7.3.2: ż has L(τ − M q̈) and d̂ has p(q̇): with p' = −L M the acceleration is counted twice, and an "
        "observer with q̈ in it needs no p. It is ż = −L(z + p) + L(τ − C q̇ − G), ṗ = −L M q̈."
    )


def criteria(rng: np.random.Generator) -> tuple[tuple[Line, ...], str]:
    """cond and det of the information matrix and of the stacked regressor."""
    Y = rng.normal(size=(400, 6)) * np.geomspace(1, 1e3, 6)
    W = Y.T @ Y
    line = Line(
        "condition", "condition of a regressor, and of W = ∫YᵀY", float(np.linalg.cond(Y)), float(np.linalg.cond(W))
    )
    return (line,), (
        "7.4.2: W is called the information matrix ∫YᵀY and then used as the stacked regressor: cond(W) is the square, "
        "and det(WᵀW) would be det(W)². Our `--criterion cond` is of the regressor itself."
    )


def likelihood(rng: np.random.Generator) -> tuple[tuple[Line, ...], str]:
    """Where the printed log-likelihood has its maximum over the noise."""
    e = 0.7 * rng.normal(size=2000)
    scales = np.geomspace(0.05, 100.0, 400)
    whole = [-0.5 * np.sum(e**2) / s**2 - len(e) * np.log(s) for s in scales]
    printed = [-0.5 * np.sum(e**2) / s**2 for s in scales]
    line = Line("sigma", "σ of residuals of 0.7, searched in 0.05 … 100",
                float(scales[np.argmax(whole)]), float(scales[np.argmax(printed)]), "N·m")  # fmt: skip
    return (line,), "7.4.3: the log-likelihood lacks −½ log det Σ: without it the best noise is the largest there is."


def memory(_: np.random.Generator) -> tuple[tuple[Line, ...], str]:
    """What a forgetting factor means in seconds."""
    rate, wanted, largest = 1000.0, 10.0, 0.99
    lines = (
        Line("forgetting", "λ that remembers ten seconds at 1 kHz", 1 - 1 / (wanted * rate), largest),
        Line("memory", "  memory 1/(1 − λ) samples", wanted, 1 / (1 - largest) / rate, "s"),
    )
    return lines, (
        "7.4.4: λ of 0.95–0.99 forgets in 20 to 100 samples. That is a tenth of a second at 1 kHz, less than any "
        "motion needs to show a robot's parameters; our filters take seconds."
    )


def triangle(_: np.random.Generator) -> tuple[tuple[Line, ...], str]:
    """A tensor that passes the printed tests and belongs to no body."""
    # Principal moments 1, 1, 2.5 about axes turned so that the diagonal is even.
    third = np.ones(3) / np.sqrt(3.0)
    tensor = np.eye(3) + 1.5 * np.outer(third, third)
    body = from_mass_com_inertia(10.0, np.zeros(3), tensor)
    diagonal = np.diag(tensor)
    passes = bool(np.linalg.eigvalsh(tensor)[0] > 0 and 2 * diagonal.max() <= diagonal.sum())
    moments, _axes = principal_inertia(body)
    lines = (
        Line(
            "passes",
            "inertia with 1.5 on and 0.5 off its diagonal is possible",
            not invalidities(["body"], [body]),
            passes,
        ),
        Line("largest", "  its largest principal moment", float(moments.max()), None, "kg·m²"),
        Line("rest", "  the other two together", float(moments.sum() - moments.max()), None, "kg·m²"),
    )
    return lines, (
        "7.4.5: the triangle inequality is one of the principal moments about the centre of mass. On the diagonal "
        "entries it is necessary and not enough. One condition says it all: the pseudo-inertia is positive definite."
    )


def program(_: np.random.Generator) -> tuple[tuple[Line, ...], str]:
    """An asymmetric problem, and the printed quadratic program of it."""
    M, q = np.array([[2.0, 3.0], [-1.0, 1.0]]), np.array([-4.0, -1.0])
    true = solve_complementarity(M, q, Lemke())
    printed = solve_complementarity(0.5 * (M + M.T), q, Lemke())  # the conditions of the printed program's optimum
    w = M @ printed.z + q
    line = Line("program", "M = [2 3; −1 1], q = (−4, −1): max |min(z, w)|",
                true.residual, float(np.abs(np.minimum(printed.z, w)).max()))  # fmt: skip
    return (line,), (
        "LCP: ½ zᵀMz + qᵀz, z ≥ 0 is the complementarity problem only for a symmetric, positive semidefinite M: "
        "friction by Coulomb's law has neither. Lemke ends after finitely many pivots, on a solution or on a ray, "
        "and with ties only under a rule against cycles (ours is lexicographic)."
    )


def explicit_euler(_: np.random.Generator) -> tuple[tuple[Line, ...], str]:
    """Growth of a stiff contact's swing over one second, by explicit and semi-implicit Euler."""
    k, m, h = 1e5, 1.0, 1e-3
    explicit = np.array([[1.0, h], [-h * k / m, 1.0]])
    semi = np.array([[1.0 - h * h * k / m, h], [-h * k / m, 1.0]])
    grown = [float(np.abs(scipy.linalg.eigvals(step)).max()) ** (1 / h) for step in (semi, explicit)]
    limit = 2 / np.sqrt(k / m)
    lines = (
        Line("euler", "K = 1e5 N/m, 1 kg, steps of 1 ms: growth in a second", grown[0], grown[1]),
        Line("limit", "  largest stable step, of semi-implicit and explicit Euler", limit, 0.0, "s"),
    )
    return lines, (
        "Contact: below 1 ms is no rule. Explicit Euler makes an undamped spring grow at any step; semi-implicit "
        "Euler is stable up to 2/sqrt(K/m), and contacts as complementarity have no stiffness at all."
    )


FORMULAS: tuple[Callable[[np.random.Generator], tuple[tuple[Line, ...], str]], ...] = (
    potential, reflected, belt, observer, criteria, likelihood, memory, triangle, program, explicit_euler,
)  # fmt: skip
