"""Batch estimators against the Cramér–Rao bound, and against gross outliers.

    python benchmarks/efficiency.py [RUNS]

A Panda with Coulomb friction and offsets follows one motion; each run has noise of its own on the torque. The bound is
(Σ_j W_jᵀ W_j/σ_j²)⁻¹ with the true σ_j; `efficiency` is the mean over directions of the bound over the scatter.
"""

import sys

import numpy as np

import steelyard as sy
from steelyard.identification.problem import Problem, build_problem

SAMPLES = 1500
EQUAL = np.full(7, 0.3)
UNEQUAL = np.array([1.0, 0.8, 0.5, 0.4, 0.1, 0.1, 0.05])
OUTLIERS, SIZE = 0.05, 30.0  # their share, and how many deviations they are off


def motion(robot: sy.Robot, rng: np.random.Generator):
    t = np.linspace(0.0, 15.0, SAMPLES)
    w = 2 * np.pi / 15.0 * np.arange(1, 9)
    a, b = rng.uniform(-0.2, 0.2, (2, robot.n, 8))
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    return t, robot.home + s @ a.T + c @ b.T, (c * w) @ a.T - (s * w) @ b.T, -(s * w**2) @ a.T - (c * w**2) @ b.T


def scatter(robot, states, sigma, methods, runs, rng, outliers=0.0) -> dict[str, np.ndarray]:
    """Errors of the base parameters, (runs, rank), a method."""
    t, q, qd, qdd = states
    tau = sy.inverse_dynamics(robot, q, qd, qdd)
    found: dict[str, list[np.ndarray]] = {name: [] for name in methods}
    for _ in range(runs):
        noise = sigma * rng.normal(size=tau.shape)
        hit = rng.random(tau.shape) < outliers
        noise = np.where(hit, SIZE * sigma * rng.choice([-1.0, 1.0], tau.shape), noise)
        problem = build_problem(robot, sy.Recording(t, q, tau + noise, qd, qdd))
        for name, method in methods.items():
            found[name].append(method.fit(problem).beta - problem.nominal)
    return {name: np.array(errors) for name, errors in found.items()}


def bound_root(problem: Problem, sigma: np.ndarray) -> np.ndarray:
    """R with RᵀR the Fisher information."""
    return problem.stacked(1.0 / sigma**2)[0]


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    rng = np.random.default_rng(0)
    robot = sy.load_robot("panda", friction=("coulomb", "offset"))
    states = motion(robot, rng)
    t, q, qd, qdd = states
    problem = build_problem(robot, sy.Recording(t, q, sy.inverse_dynamics(robot, q, qd, qdd), qd, qdd))
    print(f"{runs} runs of {SAMPLES} samples, {problem.rank} base parameters, seed 0\n")
    print("| noise | method | scatter over the Cramér–Rao bound |\n|---|---|---|")
    cases = {
        "equal": (EQUAL, {"OLS": sy.OLS(), "WLS": sy.WLS(), "ML": sy.ML()}),
        "a joint its own": (UNEQUAL, {"OLS": sy.OLS(), "WLS": sy.WLS(), "ML": sy.ML()}),
    }
    for name, (sigma, methods) in cases.items():
        R = bound_root(problem, sigma)
        for method, errors in scatter(robot, states, sigma, methods, runs, rng).items():
            # In coordinates in which the bound is the identity.
            print(f"| {name} | {method} | {np.mean((errors @ R.T) ** 2):.3f} |", flush=True)
    print(f"\n{100 * OUTLIERS:.0f} % of the torques {SIZE:.0f} deviations off:\n")
    print("| method | error, clean | error, with outliers | ratio |\n|---|---|---|---|")
    methods = {"OLS": sy.OLS(), "WLS": sy.WLS(), "IRLS": sy.IRLS(), "IRLS, Tukey": sy.IRLS(loss="tukey")}
    few = max(20, runs // 10)
    clean = scatter(robot, states, EQUAL, methods, few, rng)
    dirty = scatter(robot, states, EQUAL, methods, few, rng, OUTLIERS)
    for method in methods:
        a, b = (np.sqrt(np.mean(np.sum(x[method] ** 2, axis=1))) for x in (clean, dirty))
        print(f"| {method} | {a:.4f} | {b:.4f} | {b / a:.2f} |")


if __name__ == "__main__":
    main()
