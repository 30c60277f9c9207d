"""Exercise 7.8: stiffness, damping and place of what a tool presses on, followed by RLS and EKF."""

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from ..control.environment import NAMES, Environment, ExtendedKalman, Guess, RecursiveLeastSquares, estimate_environment
from .answer import Answer, Line

Array = NDArray[np.float64]

TRUTH = {"stiffness": 2000.0, "damping": 30.0, "position": 0.05}
_UNITS = {"stiffness": "N/m", "damping": "N·s/m", "position": "m"}
_MASS, _STEP, _SECONDS = 1.0, 1e-3, 2.0
_GUESS = Guess(stiffness=500.0, damping=5.0, position=0.03)
_POSITION_NOISE, _FORCE_NOISE, _VELOCITY_NOISE = 1e-5, 0.1, 1e-4


def shaken(t: Array) -> Array:
    """The chapter's step, and two sines beside it."""
    return 12.0 + np.where(t > 0.5, 4.0, 0.0) + 3 * np.sin(2 * np.pi * 3 * t) + 3 * np.sin(2 * np.pi * 7.3 * t)


def steady(t: Array) -> Array:
    return np.full_like(t, 12.0)


def stepped(t: Array) -> Array:
    return np.where(t > 0.5, 16.0, 12.0)


def pressed(command: Array, t: Array, rng: np.random.Generator) -> dict[str, Array]:
    """A mass that a command presses on the environment, and what sensors read of it."""
    k, b, place = TRUTH.values()
    states = [np.array([place + command[0] / k, 0.0])]
    A = np.array([[0.0, 1.0], [-k / _MASS, -b / _MASS]])
    for held in command[:-1]:
        push = np.array([0.0, (held + k * place) / _MASS])
        ends = solve_ivp(lambda _, x, u=push: A @ x + u, (0.0, _STEP), states[-1], rtol=1e-8, atol=1e-11)
        states.append(ends.y[:, -1])
    x, v = np.array(states).T
    n = len(t)
    return {
        "x": x + _POSITION_NOISE * rng.normal(size=n),
        "velocity": v + _VELOCITY_NOISE * rng.normal(size=n),
        "force": k * (x - place) + b * v + _FORCE_NOISE * rng.normal(size=n),
    }


def followed(push: NDArray[np.float64], t: Array, rng: np.random.Generator) -> dict[str, Environment]:
    """What both estimators say of one contact."""
    seen = pressed(push, t, rng)
    rls, ekf = RecursiveLeastSquares(), ExtendedKalman(mass=_MASS)
    return {
        "RLS": estimate_environment(t, seen["x"], seen["force"], rls, velocity=seen["velocity"], guess=_GUESS),
        "EKF": estimate_environment(t, seen["x"], seen["force"], ekf, command=push, guess=_GUESS),
    }


def environment(rng: np.random.Generator) -> Answer:
    """A contact that is shaken, one that is stepped, and one that is pressed steadily."""
    t = np.arange(0.0, _SECONDS, _STEP)
    lines = []
    for what, push in (("shaken", shaken), ("stepped", stepped), ("steady", steady)):
        for name, found in followed(push(t), t, rng).items():
            for key in NAMES:
                value, deviation = found.found[key]
                label = f"{what}, {name}: {key} (1 s.d. {deviation:.2g}), truly"
                lines.append(Line(f"{what} {name} {key}", label, value, TRUTH[key], _UNITS[key]))
            lines.append(Line(f"{what} {name} says", f"{what}, {name} says", found.message))
    return Answer(
        "7.8",
        "A contact's stiffness, damping and place, online (the chapter has no figures; beside ours is the truth)",
        tuple(lines),
        (
            "F = k(x − x_e) + bẋ is bilinear in k and x_e: with x_e in the state a wrong first k makes the filter "
            "sure of a wrong place. We carry c = k x_e, in which the force is linear, and give x_e = c/k with its "
            "interval.",
            "The printed filter goes on learning in free space, where F = 0 holds for any k at x = x_e: below a least "
            "force nothing is learnt here.",
            "A steady push shows none of the three: many k and x_e carry it. A step shows k and x_e, and b while it "
            "swings; sines show all. The answer says which are not shown.",
            "RLS takes measured velocity and is biased where positions are noisy against the motion; the EKF needs "
            "mass and command instead.",
        ),
    )
