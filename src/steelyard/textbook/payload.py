"""Exercise 7.6: the signs of the printed adaptive law, by its own Lyapunov function."""

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from ..dynamics import coriolis_matrix, forward_dynamics, gravity, mass_matrix
from ..robot.load import load_robot
from ..robot.payload import with_payload
from ..robot.robot import Robot
from .answer import Answer, Line

Array = NDArray[np.float64]

LOAD = 1.5  # kg, unknown to the controller
_TOOL = (0.4, 0.0, 0.0)  # the library's two_link ends here
_RATE, _GAIN, _ADAPTATION = 5.0, 10.0, 2.0  # Λ, K_D, γ
_SECONDS = 10.0
_SAY_DIVERGED = 50.0  # rad/s of s


def _torque(robot: Robot, q: Array, qd: Array, qdr: Array, qddr: Array) -> Array:
    """M(q) q̈_r + C(q, q̇) q̇_r + G(q), with Christoffel's C."""
    return np.asarray(mass_matrix(robot, q) @ qddr + coriolis_matrix(robot, q, qd) @ qdr + gravity(robot, q))


def _wanted(t: float, moving: bool) -> tuple[Array, Array, Array]:
    """A motion of several frequencies, or a place to stay at with the load straight above the hinge."""
    if not moving:
        return np.array([0.5 * np.pi, 0.0]), np.zeros(2), np.zeros(2)
    w, a = np.array([[1.1, 2.3], [1.7, 2.9]]), np.array([[0.5, 0.2], [0.6, 0.2]])
    return (
        (a * np.sin(w * t)).sum(axis=1),
        (a * w * np.cos(w * t)).sum(axis=1),
        -(a * w**2 * np.sin(w * t)).sum(axis=1),
    )


def adaptive_run(sign: float, moving: bool = True) -> tuple[Array, Array, Array]:
    """t, |s| and m̂ under τ = M̂ q̈_r + Ĉ q̇_r + Ĝ + sign·K_D s, with s = q̇ − q̇_r as printed."""
    empty = load_robot("two_link")
    loaded, with_one = (with_payload(empty, "link2", mass, _TOOL) for mass in (LOAD, 1.0))

    def law(t: float, x: Array) -> tuple[Array, Array, Array]:
        q, qd = x[:2], x[2:4]
        qw, qdw, qddw = _wanted(t, moving)
        error, rate = q - qw, qd - qdw
        qdr, qddr = qdw - _RATE * error, qddw - _RATE * rate
        s = qd - qdr
        own = _torque(empty, q, qd, qdr, qddr)
        Y = _torque(with_one, q, qd, qdr, qddr) - own  # of one kilogram
        return s, Y, own + Y * x[4] + sign * _GAIN * s

    def rate(t: float, x: Array) -> Array:
        s, Y, tau = law(t, x)
        slope = -_ADAPTATION * float(Y @ s)
        if x[4] <= 0 and slope < 0:  # the projection: no load below nought
            slope = 0.0
        return np.concatenate([x[2:4], forward_dynamics(loaded, x[:2], x[2:4], tau), [slope]])

    def ran_away(t: float, x: Array) -> float:
        return _SAY_DIVERGED - float(np.linalg.norm(law(t, x)[0]))

    ran_away.terminal = True  # type: ignore[attr-defined]
    start = np.concatenate([_wanted(0.0, moving)[0] + 0.1, _wanted(0.0, moving)[1], [0.0]])
    done = solve_ivp(rate, (0.0, _SECONDS), start, events=ran_away, rtol=1e-6, atol=1e-8, max_step=0.05)
    size = np.array([np.linalg.norm(law(t, x)[0]) for t, x in zip(done.t, done.y.T, strict=True)])
    return done.t, size, done.y[4]


def adaptation(_: np.random.Generator) -> Answer:
    """The law with the printed sign, with the other one, and without a motion that shows the load."""
    (t_book, s_book, m_book), (t, s, m) = adaptive_run(+1.0), adaptive_run(-1.0)
    _t, s_still, m_still = adaptive_run(-1.0, moving=False)
    lines = (
        Line("time", f"+K_D s as printed, and −K_D s: the run goes on to (of {_SECONDS:g})",
             float(t[-1]), float(t_book[-1]), "s"),
        Line("s", f"  |s| there (a run ends at {_SAY_DIVERGED:g})", float(s[-1]), float(s_book[-1]), "rad/s"),
        Line("load", f"  load found, of {LOAD:g}", float(m[-1]), float(m_book[-1]), "kg"),
        Line("still_s", "−K_D s, standing with the load above the hinge: |s|", float(s_still[-1]), None, "rad/s"),
        Line("still_load", f"  load found, of {LOAD:g}", float(m_still[-1]), None, "kg"),
    )  # fmt: skip
    return Answer(
        "7.6",
        "Slotine and Li: two links with an unknown load",
        lines,
        (
            "With q̇_r = q̇_d − Λq̃ the error is q̃ = q − q_d and s = q̇ − q̇_r, so the feedback has to be −K_D s: "
            "with the printed + K_D s, V̇ = +sᵀK_D s and the arm runs away. (The update law has the right sign.)",
            "V̇ = −sᵀK_D s makes the tracking error go to nought, and not the parameter's: the state (s, m̃) is "
            "globally stable, asymptotically only where the motion persistently excites Y_L. Standing still with "
            "the load above the hinge, tracking is perfect and the load unknown.",
        ),
        ("steelyard adapt two_link --load 1.5",),
    )
