"""Exercise 7.5: one flexible joint: its frequencies, and what the printed controller does."""

import numpy as np
import scipy.optimize
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from ..physics.transmission import antiresonance, modes, resonance
from .answer import Answer, Line

Array = NDArray[np.float64]

LINK, MOTOR, STIFFNESS, WEIGHT, DAMPING_RATIO = 1.0, 0.1, 100.0, 10.0, 0.7  # kg·m², kg·m², N·m/rad, N·m, the chapter's
_WANTED = 1.0  # rad


def _slopes(spring: float) -> tuple[Array, float]:
    """ẋ = A x of small deviations about rest at zero, x = (q, θ, q̇, θ̇), and b of the chapter.

    The law is τ = k (θ_d − θ) − b θ̇ + spring·k (q − θ) + m g l sin q_d: spring = 1 as printed, 0 as mended.
    """
    k, b = STIFFNESS, 2 * DAMPING_RATIO * np.sqrt(STIFFNESS * MOTOR)
    A = np.zeros((4, 4))
    A[0, 2] = A[1, 3] = 1.0
    A[2, :2] = np.array([-k - WEIGHT, k]) / LINK
    A[3] = np.array([k + spring * k, -k - k - spring * k, 0.0, -b]) / MOTOR
    return A, float(b)


def _torque(x: Array, spring: float, b: float) -> float:
    q, theta, _, thetad = x
    wanted = _WANTED + WEIGHT * np.sin(_WANTED) / STIFFNESS
    push = STIFFNESS * (wanted - theta) - b * thetad + spring * STIFFNESS * (q - theta)
    return float(push + WEIGHT * np.sin(_WANTED))


def rest(spring: float) -> float:
    """Where the law brings the link to rest, rad: motor and link in balance."""

    def left(q: float) -> float:
        theta = q + WEIGHT * np.sin(q) / STIFFNESS
        return _torque(np.array([q, theta, 0.0, 0.0]), spring, 0.0) - WEIGHT * np.sin(q)

    return float(scipy.optimize.brentq(left, 0.0, 2.0))


def simulated_rest(spring: float) -> float:
    """The same from the motion, by SciPy."""
    _, b = _slopes(spring)

    def rate(_: float, x: Array) -> list[float]:
        twist = STIFFNESS * (x[1] - x[0])
        tau = _torque(x, spring, b)
        return [x[2], x[3], (twist - WEIGHT * np.sin(x[0])) / LINK, (tau - twist) / MOTOR]

    return float(solve_ivp(rate, (0.0, 20.0), [0.0] * 4, rtol=1e-9, atol=1e-11).y[0, -1])


def _damping(A: Array) -> tuple[float, float]:
    """Of slow and fast oscillation: damping ratios."""
    roots = np.linalg.eigvals(A)
    roots = roots[np.argsort(np.abs(roots))]
    ratios = -roots.real / np.abs(roots)
    return float(ratios[0]), float(ratios[-1])


def elastic(_: np.random.Generator) -> Answer:
    """Exact frequencies, and rest and damping of the law as printed and without its spring term."""
    slow, fast = modes(LINK, MOTOR, STIFFNESS, WEIGHT)
    held = float(np.sqrt((STIFFNESS + WEIGHT) / LINK))
    lines = [
        Line("slow", "rigid mode", float(slow), float(np.sqrt(WEIGHT / LINK)), "rad/s"),
        Line("fast", "elastic mode", float(fast), float(resonance(LINK, MOTOR, STIFFNESS)), "rad/s"),
        Line("together", "sqrt(m g l/(J_l + J_m)), link and rotor swing together",
             float(np.sqrt(WEIGHT / (LINK + MOTOR))), None, "rad/s"),
        Line("antiresonance", "anti-resonance sqrt(k/J_l), of the link alone",
             float(antiresonance(LINK, STIFFNESS)), None, "rad/s"),
        Line("held", "link with the motor held, sqrt((k + m g l)/J_l)", held, None, "rad/s"),
    ]  # fmt: skip
    (printed, _b), (mended, _b) = _slopes(1.0), _slopes(0.0)
    damping = zip(_damping(mended), _damping(printed), strict=True)
    slowest = [float(np.linalg.eigvals(A).real.max()) for A in (mended, printed)]
    lines += [
        Line("rest", f"wanted {_WANTED:g} rad: the law, printed and mended, rests at", rest(0.0), rest(1.0), "rad"),
        Line("simulated", "  and in simulation", simulated_rest(0.0), simulated_rest(1.0), "rad"),
        Line("slowest", "  slowest root, real part", slowest[0], slowest[1], "1/s"),
        *(
            Line(f"{name}_damping", f"  damping ratio of the {name} pair (wanted {DAMPING_RATIO:g})", *ratios)
            for name, ratios in zip(("slow", "fast"), damping, strict=True)
        ),
    ]
    return Answer(
        "7.5",
        "A flexible joint: J_l = 1, J_m = 0.1, k = 100, m g l = 10",
        tuple(lines),
        (
            "3.16 and 33.2 rad/s take each mode alone. Together they are 3.014 (the rotor swings along) and 33.18 "
            "(gravity is a second spring).",
            "The term k(q − θ) has the wrong sign to cancel the spring's pull on the motor, −k(θ − q): it doubles "
            "it. At rest k(θ − q) carries the weight, so the term takes away what m g l sin q_d adds, and the link "
            "hangs below its place. Left out, the law rests where it should.",
            "b = 2ζ sqrt(k J_m) is for a rotor on the position gain k alone. With spring and link beside it no pair "
            "of roots has the 0.7: the fast one has 0.39 … 0.48, and the slow one 0.08, which is not vibration "
            "suppressed.",
            "J_l q̈ + … = k(θ − q) leaves out the joint's own damping and what the rotor's turning in space does to "
            "the link; with large ratios that is small.",
        ),
        (
            "steelyard flexible",
            "steelyard gear --load 1 --motor 0.1 --ratio 1 --stiffness 100",
        ),
    )
