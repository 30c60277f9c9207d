"""Excitation design of the Panda against random search and SciPy's SLSQP: `python benchmarks/excitation.py`.

All three get the same limits, the same grid and the same starts, in one run: our gradients, the best of so many random
trajectories that keep the limits, and SLSQP with finite differences, which gets four times our wall time.
"""

import argparse
import time

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import minimize

import steelyard as sy
from steelyard.dynamics import base_parameters
from steelyard.excitation.constraints import Motion, worst_violations
from steelyard.excitation.criteria import CRITERIA
from steelyard.excitation.design import _keeps, _random_start, _repaired, design_excitation, requirements
from steelyard.excitation.problem import DesignProblem

PERIOD, MARGIN = 10.0, 0.05
# Gaz et al. 2019: the condition number of the regressor of their exciting trajectory of this robot.
PUBLISHED = 121.88


def problem_of(robot, criterion, harmonics):
    bounded, constraints, _ = requirements(robot, MARGIN, clearance=None)
    base = base_parameters(bounded)
    samples = max(100, 20 * harmonics)
    unweighted = np.ones(robot.n)
    return DesignProblem(bounded, base, CRITERIA[criterion], tuple(constraints), PERIOD, harmonics, samples, unweighted)


def random_search(problem, count, seed):
    """The best of `count` random trajectories that keep the limits, each scaled up to the tightest of them."""
    rng = np.random.default_rng(seed)
    best, tried, kept = np.inf, 0, 0
    began = time.perf_counter()
    while kept < count:
        tried += 1
        x = _random_start(problem, rng)
        c = problem.coefficients(x)
        still = np.zeros_like(c)
        still[:, 0] = c[:, 0]
        middle = problem.free_numbers(still)
        for share in np.linspace(1.0, 0.05, 20):
            z = middle + share * (x - middle)
            if _keeps(problem, z):
                kept += 1
                best = min(best, problem.value(problem.motion(z)))
                break
    return best, tried, time.perf_counter() - began


def slsqp(problem, starts, seconds):
    """SLSQP with finite differences on the worst of each constraint, until the time is up."""
    best, began = np.inf, time.perf_counter()

    class Over(Exception):
        pass

    def objective(x):
        if time.perf_counter() - began > seconds:
            raise Over
        eigenvalues, vectors = problem.eigen(problem.motion(x))[1:]
        return problem.criterion.objective(eigenvalues, vectors)[0]

    def room(x):
        motion = problem.motion(x)
        return np.array([-c.values(motion).max() for c in problem.constraints])

    latest = starts[0]
    for x in starts:
        try:

            def note(z):
                nonlocal latest
                latest = z.copy()

            constraint = {"type": "ineq", "fun": room}
            options = {"maxiter": 10_000, "ftol": 1e-9}
            done = minimize(objective, x, method="SLSQP", constraints=constraint, callback=note, options=options)
            latest = done.x
        except Over:
            pass
        repaired = _repaired(problem, latest)
        if repaired is not None:
            best = min(best, problem.value(problem.motion(repaired)))
        if time.perf_counter() - began > seconds:
            break
    return best, time.perf_counter() - began


def price_of_a_gradient(robot, harmonics):
    """Seconds of a gradient over seconds of a criterion evaluation."""
    problem = problem_of(robot, "logdet", harmonics)
    x = _random_start(problem, np.random.default_rng(0))
    seconds = []
    for call in (lambda: problem.value(problem.motion(x)), lambda: problem.objective(x)):
        call()
        rounds = []
        for _ in range(30):
            began = time.perf_counter()
            call()
            rounds.append(time.perf_counter() - began)
        seconds.append(min(rounds))
    return seconds[1] / seconds[0], seconds[1], problem.size


def violations_at_1_khz(robot, found):
    bounded, constraints, _ = requirements(robot, margin=0.0, clearance=None)
    t = np.arange(0.0, PERIOD, 1e-3)
    return sum(
        int((constraint.values(Motion(bounded, *found.sample(t))) > 0).sum()) for constraint in constraints
    ), worst_violations(constraints, Motion(bounded, *found.sample(t)), t)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=4)
    parser.add_argument("--random", type=int, default=1000)
    options = parser.parse_args()
    console = Console(width=140)
    robot = sy.load_robot("panda")
    unweighted = np.ones(robot.n)
    title = f"Panda, {PERIOD:g} s, 5 harmonics, 95 % of all limits"
    listing = Table("criterion", "design", "seconds", "figure", title=title)
    for criterion in ("cond", "logdet"):
        began = time.perf_counter()
        found = design_excitation(
            robot, period=PERIOD, criterion=criterion, starts=options.starts, seed=0, margin=MARGIN, clearance=None,
            weights=unweighted,
        )  # fmt: skip
        ours = time.perf_counter() - began
        problem = problem_of(robot, criterion, 5)
        searched, tried, spent = random_search(problem, options.random, seed=0)
        rng = np.random.default_rng(0)
        starts = [_random_start(problem, rng) for _ in range(options.starts)]
        other, theirs = slsqp(problem, starts, 4 * ours)
        listing.add_row(criterion, f"ours, {options.starts} starts", f"{ours:.1f}", f"{found.value:.2f}")
        label = f"best of {options.random} random that keep the limits ({tried} tried)"
        listing.add_row(criterion, label, f"{spent:.1f}", f"{searched:.2f}")
        listing.add_row(criterion, "SLSQP, finite differences, same starts", f"{theirs:.1f}", f"{other:.2f}")
        if criterion == "cond":
            listing.add_row(criterion, "published design (Gaz et al. 2019), its own parameters", "", f"{PUBLISHED}")
        count, worst = violations_at_1_khz(robot, found)
        console.print(f"{criterion}: {count} violations at 1 kHz; " + "; ".join(str(v) for v in worst))
    console.print(listing)
    for harmonics in (5, 20):
        ratio, seconds, size = price_of_a_gradient(robot, harmonics)
        console.print(
            f"{harmonics} harmonics, {size} free coefficients: a gradient takes {1e3 * seconds:.2f} ms, "
            f"{ratio:.1f} criterion evaluations (differences over all {robot.n * (2 * harmonics + 1)} coefficients: "
            f"{robot.n * (2 * harmonics + 1) + 1})"
        )


if __name__ == "__main__":
    main()
