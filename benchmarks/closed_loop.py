"""IV, DIDIM and CLOE on recordings with noisy positions, in two tables: `python benchmarks/closed_loop.py`.

The first shows bias: one arm, many seeds, no filter at all, positions differentiated twice as they were measured. The
mean error of every base parameter is compared with its standard error; without bias one in twenty lies beyond two, and
Hotelling's test says how likely so large a mean of all of them together would be. The second is the Panda, 10 s at
1 kHz, from parameters 15 % wrong: iterations, simulations (a slope by the variational equations counts as one), time,
and what CLOE leaves of the positions beside what the true parameters leave.

Noise in degrees is that of the position sensors; it goes round the loop, as on a robot. No figure is set for a robot.
"""

import argparse
import time
from dataclasses import dataclass, field

import numpy as np
import scipy.stats

import steelyard as sy
from steelyard.excitation.trajectory import Fourier
from steelyard.identification.closed_loop.differences import differenced
from steelyard.identification.closed_loop.loops import Loop, loop_of
from steelyard.identification.conclude import estimate
from steelyard.identification.estimators import CLIE, CLOE, DIDIM, IV, OLS
from steelyard.identification.model import Experiment
from steelyard.identification.problem import build_problem
from steelyard.robot.inertia import from_log_cholesky, log_cholesky
from steelyard.simulation.sensors import Sensors


def with_joints(name: str) -> sy.Robot:
    """A robot of the library with a rotor and damping in every joint."""
    robot = sy.load_robot(name)
    theta = robot.parameters.copy()
    for block, least in (("armature", 0.02), ("damping", 0.4)):
        theta[robot.layout.block(block)] = np.maximum(theta[robot.layout.block(block)], least)
    return robot.with_parameters(theta)


def wrong(robot: sy.Robot, rng: np.random.Generator, share: float) -> sy.Robot:
    """Other bodies, all of them possible, and other joints, so far off."""
    theta, count = robot.parameters.copy(), 10 * len(robot.layout.bodies)
    eta = log_cholesky(theta[:count].reshape(-1, 10))
    change = share * rng.normal(size=eta.shape)
    change[:, 4:] *= np.exp(eta[:, 1:4]).max(axis=1)[:, None]
    theta[:count] = from_log_cholesky(eta + change).ravel()
    theta[count:] *= np.maximum(1 + share * rng.normal(size=len(theta) - count), 0.1)
    return robot.with_parameters(theta)


def path(robot: sy.Robot, seconds: float, amplitude: float) -> Fourier:
    a = amplitude * np.random.default_rng(1).normal(size=(robot.n, 5))
    return Fourier(seconds, robot.home, a - a.mean(axis=1, keepdims=True), 0 * a, robot.dof_names)


def recorded(robot: sy.Robot, trajectory: Fourier, degrees: float, torque: float, seed: int):
    sensors = Sensors(position_noise=np.deg2rad(degrees), torque_noise=torque)
    return sy.simulate(robot, trajectory, sensors=sensors, rng=np.random.default_rng(seed), cartesian=False)


@dataclass
class Score:
    """What a method did over the seeds."""

    errors: list = field(default_factory=list)
    scores: list = field(default_factory=list)
    iterations: list = field(default_factory=list)
    simulations: list = field(default_factory=list)
    seconds: list = field(default_factory=list)
    converged: int = 0

    def row(self, name: str) -> str:
        errors = np.array(self.errors)
        N, r = errors.shape
        mean = errors.mean(axis=0)
        t = np.abs(mean) / errors.std(axis=0, ddof=1) * np.sqrt(N)
        hotelling = float(N * mean @ np.linalg.solve(np.cov(errors.T), mean))
        p = scipy.stats.f.sf(hotelling * (N - r) / (r * (N - 1)), r, N - r) if r < N else float("nan")
        inside = np.mean(np.abs(np.array(self.scores)) < 1.96)
        return (
            f"| {name} | {(t < 2).sum()} of {r} | {t.max():.1f} | {p:.2g} | {100 * inside:.0f} % | "
            f"{self.converged} of {N} | {np.mean(self.iterations):.1f} | {np.mean(self.simulations):.1f} | "
            f"{np.mean(self.seconds):.3f} |"
        )


def bias(name: str, seeds: int, degrees: float) -> None:
    robot = with_joints(name)
    start, trajectory = wrong(robot, np.random.default_rng(3), 0.15), path(robot, 3.0, 0.5)
    methods = {"OLS": OLS(), "IV": IV(states="measured"), "DIDIM": DIDIM(), "CLOE": CLOE()}
    found = {key: Score() for key in methods}
    for seed in range(seeds):
        recording = recorded(robot, trajectory, degrees, 0.01, seed)
        problem = build_problem(start, Experiment(differenced(recording), None, recording))
        truth = problem.model.base.reduce(robot.parameters)
        for key, method in methods.items():
            result, score = estimate(problem, method), found[key]
            score.errors.append(result.base_parameters - truth)
            score.scores.append(score.errors[-1] / result.base_deviation)
            score.iterations.append(result.iterations)
            score.simulations.append(result.about.get("fit", {}).get("simulations", 0))
            score.seconds.append(result.seconds)
            score.converged += result.converged
    print(f"\n{name}, 3 s at 1 kHz, {degrees:g} degrees of noise, {seeds} seeds, no filter\n")
    print(
        "| method | bias < 2 standard errors | largest | Hotelling's p | inside 95 % | converged | iterations |"
        " simulations | s |"
    )
    print("|---" * 9 + "|")
    for key, score in found.items():
        print(score.row(key), flush=True)


def single(name: str, degrees: float) -> None:
    robot = sy.load_robot(name)
    trajectory = path(robot, 10.0, 0.3)
    start = wrong(robot, np.random.default_rng(0), 0.15)
    recording = recorded(robot, trajectory, degrees, 0.05, 1)
    problem = build_problem(start, Experiment(differenced(recording), None, recording))
    truth = problem.model.base.reduce(robot.parameters)
    off = np.linalg.norm(problem.nominal - truth) / np.linalg.norm(truth)
    still = loop_of(robot, recording, Loop()).run()
    floor = (recording.q - still.q).std(axis=0)
    print(
        f"\n{name}, {recording.duration:.0f} s at 1 kHz, {degrees:g} degrees of noise, begun {100 * off:.0f} % wrong\n"
    )
    print("| method | converged | iterations | simulations | s | error | inside 95 % | q left / q left by the truth |")
    print("|---" * 8 + "|")
    methods = {
        "IV": IV(states="measured"),
        "DIDIM": DIDIM(),
        "PC-DIDIM": DIDIM(physical=True),
        "CLIE": CLIE(),
        "CLOE": CLOE(),
        "CLOE, log-Cholesky": CLOE(parametrisation="log-cholesky"),
    }
    estimate(problem, CLOE(repeats=1))  # kernels are read from disk
    for key, method in methods.items():
        began = time.process_time()
        found = estimate(problem, method)
        cpu = time.process_time() - began
        error = found.base_parameters - truth
        inside = np.mean(np.abs(error) < 1.96 * found.base_deviation)
        left = ""
        if key.startswith("CLOE"):
            rms = np.array([signal["rms"] for signal in found.about["fit"]["residuals"]])
            left = ", ".join(f"{x:.3f}" for x in rms / floor)
        print(
            f"| {key} | {found.converged} | {found.iterations} | {found.about['fit'].get('simulations', 0)} | "
            f"{found.seconds:.2f} ({cpu:.2f} of a processor) | "
            f"{100 * np.linalg.norm(error) / np.linalg.norm(truth):.2g} % | {100 * inside:.0f} % | {left} |",
            flush=True,
        )
    told = ", ".join(f"{x:.2f}" for x in floor / np.deg2rad(degrees))
    print(f"\nwhat the truth leaves of q, in deviations of the sensor: {told}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--robot", default="two_link", help="of the table of bias")
    parser.add_argument("--only", choices=("bias", "single"))
    arguments = parser.parse_args()
    if arguments.only != "single":
        for degrees in (1e-3, 1e-2):
            bias(arguments.robot, arguments.seeds, degrees)
    if arguments.only != "bias":
        single("panda", 1e-3)


if __name__ == "__main__":
    main()
