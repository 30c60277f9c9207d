"""The physically consistent fit against the same problem stated in cvxpy: `python benchmarks/physical.py`.

Both use Clarabel in the same run on the same triangular factor of noisy torques. The ratio is of wall clock, building
the program included; the objective is what each says is the least of ‖A B θ − y‖² + w P(θ), relative to cvxpy's.

With `--recording run.csv --model panda [--mapping file.yaml]` it shows instead what priors and weights do: fitted to
the first three quarters of a recording, told by the last one.
"""

import argparse
import time

import cvxpy as cp
import numpy as np

from steelyard import base_parameters, load_recording, load_robot, regressor
from steelyard.data.preprocess import preprocess
from steelyard.identification.conclude import estimate
from steelyard.identification.estimators import WLS, Physical
from steelyard.identification.physical import PhysicalSettings, solve_physical
from steelyard.identification.physical.limits import REGIONS
from steelyard.identification.physical.metric import nominal_metric
from steelyard.identification.physical.priors import PRIORS
from steelyard.identification.problem import build_problem
from steelyard.robot.inertia import PSEUDO_BASIS, pseudo_inertia
from steelyard.robot.states import random_states


def stated_in_cvxpy(A, y, robot, prior, weight):
    """The least of the objective, and the status, in plain parameters."""
    theta0, layout = robot.parameters, robot.layout
    theta, cost, constraints = cp.Variable(len(theta0)), 0.0, []
    for body, factor in zip(
        layout.bodies, nominal_metric(layout, theta0, np.ones(layout.size - layout.inertial.stop)).factors, strict=True
    ):
        columns, inverse = layout.body(body), np.linalg.inv(factor)
        nominal = inverse @ pseudo_inertia(theta0[columns]) @ inverse.T  # the identity, unless too thin to measure by
        images = inverse @ PSEUDO_BASIS @ inverse.T
        X = cp.reshape(images.reshape(10, 16).T @ theta[columns], (4, 4), order="C")
        X = 0.5 * (X + X.T)
        constraints.append(X >> 1e-6 * np.eye(4))
        cost += cp.trace(X) - cp.log_det(X) - 4 if prior == "entropic" else 0.5 * cp.sum_squares(X - nominal)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(A @ theta - y) + weight * cost), constraints)
    problem.solve(solver="CLARABEL")
    return problem.value, problem.status


def held_out(estimate, recording):
    """Root mean square of the torque error relative to the torque, averaged over joints, in per cent."""
    error = estimate.torque(recording) - recording.tau
    use = np.broadcast_to(np.asarray(recording.more.get("use", True)) > 0.5, error.shape)
    mean = [np.sqrt(np.sum(error[u, j] ** 2) / np.sum(recording.tau[u, j] ** 2)) for j, u in enumerate(use.T)]
    return 100 * float(np.mean(mean))


def priors_and_weights(path: str, model: str, mapping: str | None) -> None:
    robot = load_robot(model, friction=("coulomb", "offset"))
    recording = preprocess(load_recording(path, robot, mapping), robot=robot)
    split = 3 * len(recording) // 4
    problem = build_problem(robot, recording.between(0, split))
    rest = recording.between(split, len(recording))
    methods = [("no constraints", WLS())]
    methods += [(f"{prior}, weight 1", Physical(prior=prior, weight=1.0)) for prior in PRIORS]
    methods += [(f"entropic, weight {weight:g}", Physical(weight=weight)) for weight in (1e-4, 1e-2, 1e2, 1e4)]
    methods += [(f"entropic, weight 1, {region}", Physical(weight=1.0, region=region)) for region in REGIONS]
    for label, method in methods:
        found = estimate(problem, method)
        masses = found.parameters[robot.layout.inertial][::10]
        told = " ".join(f"{mass:.2f}" for mass in masses)
        bodies = sum(reason.subject in robot.layout.bodies for reason in found.invalid)
        print(f"{label:32} held out {held_out(found, rest):6.2f} %  impossible: {bodies}  masses {told} kg")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recording")
    parser.add_argument("--model")
    parser.add_argument("--mapping")
    parser.add_argument("--robots", nargs="+", default=["ur10", "panda"])
    parser.add_argument("--noise", type=float, default=1.0, help="N·m")
    arguments = parser.parse_args()
    if arguments.recording:
        priors_and_weights(arguments.recording, arguments.model, arguments.mapping)
        return
    for name in arguments.robots:
        robot = load_robot(name, armature=False, damping=False)
        base, rng = base_parameters(robot), np.random.default_rng(0)
        W = base.columns(regressor(robot, *random_states(robot, rng, 500))).reshape(-1, base.rank)
        tau = W @ base.reduce(robot.parameters) + arguments.noise * rng.normal(size=len(W))
        Q, R = np.linalg.qr(W)
        A, y = R @ base.projection, Q.T @ tau
        for prior in ("entropic", "pullback"):
            settings = PhysicalSettings(prior=prior, weight=1.0)
            seconds = []
            for _ in range(5):
                started = time.perf_counter()
                fit = solve_physical(A, y, robot, settings, noise=arguments.noise)
                seconds.append(time.perf_counter() - started)
            started = time.perf_counter()
            value, status = stated_in_cvxpy(A, y, robot, prior, fit.weight)
            theirs = time.perf_counter() - started
            ours = fit.objective + fit.weight * fit.prior
            print(
                f"{name:6} {len(robot.layout.bodies)} bodies, {len(robot.parameters)} columns, {prior:9} "
                f"{1e3 * min(seconds):5.0f} ms ({fit.status}), cvxpy {theirs / min(seconds):4.1f} times ({status}); "
                f"objective {ours / value - 1:+.1e}"
            )


if __name__ == "__main__":
    main()
