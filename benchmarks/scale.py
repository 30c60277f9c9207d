"""An hour of a Panda at 1 kHz, identified from a stream, against a Python loop that only fills Pinocchio's regressor.

    python benchmarks/scale.py [SECONDS OF MOTION]

3.6 million samples, 94 columns, made block by block and never kept. The peer's loop is timed on a part and scaled;
ours is timed whole, the making of its data included. Also: a tenth of the data, and the memory that was needed.
"""

import resource
import sys
import time
from collections.abc import Iterator

import numpy as np
import pinocchio as pin

import steelyard as sy
from steelyard.identification.conclude import estimate
from steelyard.identification.problem import build_problem

RATE = 1000
BLOCK = 4000
NOISE = 0.1  # N·m


def cycle(robot: sy.Robot, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Ten seconds of a Fourier motion, and its torques."""
    t = np.arange(10 * RATE) / RATE
    w = 0.2 * np.pi * np.arange(1, 6)
    a, b = rng.uniform(-0.25, 0.25, (2, robot.n, 5))
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    q = robot.home + s @ a.T + c @ b.T
    qd, qdd = (c * w) @ a.T - (s * w) @ b.T, -(s * w**2) @ a.T - (c * w**2) @ b.T
    return q, qd, qdd, sy.inverse_dynamics(robot, q, qd, qdd)


def recorded(robot: sy.Robot, samples: int) -> Iterator[sy.Recording]:
    """The hour, a few seconds at a time, with fresh noise."""
    q, qd, qdd, tau = cycle(robot, np.random.default_rng(1))
    rng = np.random.default_rng(2)
    for start in range(0, samples, BLOCK):
        k = np.arange(start, min(start + BLOCK, samples))
        i = k % len(q)
        yield sy.Recording(k / RATE, q[i], tau[i] + NOISE * rng.normal(size=(len(k), robot.n)), qd[i], qdd[i])


def timed(robot: sy.Robot, samples: int) -> tuple[float, sy.Estimate]:
    started = time.perf_counter()
    found = estimate(build_problem(robot, [lambda: recorded(robot, samples)]), sy.WLS())
    return time.perf_counter() - started, found


def pinocchio_loop(robot: sy.Robot, samples: int) -> float:
    """Seconds a sample of filling a regressor row block by row block in Python."""
    model = pin.buildModelFromMJCF(str(robot.source.path))
    held = [model.getJointId(name) for name in model.names[1:] if name not in robot.dof_names]
    model = pin.buildReducedModel(model, held, pin.neutral(model))
    data = model.createData()
    q, qd, qdd, _ = cycle(robot, np.random.default_rng(1))
    kept = np.empty((samples, robot.n, 10 * (model.njoints - 1)))
    started = time.perf_counter()
    for k in range(samples):
        i = k % len(q)
        kept[k] = pin.computeJointTorqueRegressor(model, data, q[i], qd[i], qdd[i])
    return (time.perf_counter() - started) / samples


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3600.0
    samples = int(seconds * RATE)
    robot = sy.load_robot("panda")
    timed(robot, 2 * BLOCK)  # kernels compile here
    tenth, _ = timed(robot, samples // 10)
    whole, found = timed(robot, samples)
    peer = pinocchio_loop(robot, min(samples, 50_000)) * samples
    truth = found.model.base.reduce(robot.parameters)
    error = found.base_parameters - truth
    z = np.sqrt(error @ np.linalg.solve(found.base_covariance, error) / len(error))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{samples} samples, {robot.layout.size} columns, {found.model.rank} base parameters")
    print(f"WLS from a stream: {whole:.1f} s ({1e6 * whole / samples:.2f} µs a sample), {found.message}")
    print(f"a tenth of it: {tenth:.1f} s; ten times the data take {whole / tenth:.1f} times as long")
    print(f"a Python loop that fills Pinocchio's regressor: {peer:.1f} s; ours takes {whole / peer:.2f} of that")
    print(f"error against the truth: {z:.2f} of what the covariance says; memory at most {memory:.2f} GB")


if __name__ == "__main__":
    main()
