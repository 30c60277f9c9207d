"""Kernels against Pinocchio and MuJoCo called from Python, in one run: `python benchmarks/kernels.py`.

Every figure is the best of several rounds, the opponents' rounds between ours, so that a slow moment hits both.
"""

import argparse
import os
import timeit

import mujoco
import numpy as np
import pinocchio as pin
from rich.console import Console
from rich.table import Table

import steelyard as sy
from steelyard.compiled import threads
from steelyard.robot.library import library_path
from steelyard.robot.states import random_states
from steelyard.robot.twin import twin

ROUNDS = 5


def pinocchio_panda():
    """The Panda with its fingers locked, as Pinocchio builds it from the same file."""
    model = pin.buildModelFromMJCF(str(library_path("panda")))
    fingers = [model.getJointId(name) for name in ("finger_joint1", "finger_joint2")]
    return pin.buildReducedModel(model, fingers, pin.neutral(model))


def best_of(calls):
    """Seconds of the best round of every call; rounds alternate."""
    best = dict.fromkeys(calls, np.inf)
    for _ in range(ROUNDS):
        for name, (call, times) in calls.items():
            best[name] = min(best[name], timeit.timeit(call, number=times) / times)
    return best


def row_of(listing, job, ours, theirs, opponent, bar):
    listing.add_row(job, f"{ours * 1e6:.3f}", f"{theirs * 1e6:.3f}", opponent, f"{theirs / ours:.1f}", bar)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100_000)
    samples = parser.parse_args().samples
    robot = sy.load_robot("panda")
    rng = np.random.default_rng(0)
    q, qd, qdd = random_states(robot, rng, samples)
    model = pinocchio_panda()
    data = model.createData()
    part = min(samples, 10_000)
    W = np.empty((part, model.nv, 10 * (model.njoints - 1)))
    block = 8192
    reused = np.empty((block, robot.n, robot.layout.size))

    def pinocchio_regressor():
        for k in range(part):
            pin.computeJointTorqueRegressor(model, data, q[k], qd[k], qdd[k])

    def pinocchio_regressor_kept():
        for k in range(part):
            W[k] = pin.computeJointTorqueRegressor(model, data, q[k], qd[k], qdd[k])

    def pinocchio_rnea():
        for k in range(part):
            pin.rnea(model, data, q[k], qd[k], qdd[k])

    judge = twin(robot)
    mj, mj_data = judge.model, judge.data
    as_loaded = mujoco.MjModel.from_xml_path(str(library_path("panda")))
    as_loaded_data = mujoco.MjData(as_loaded)
    wide = np.zeros((3, part, mj.nv))
    wide[:, :, : robot.n] = q[:part], qd[:part], qdd[:part]

    def mujoco_inverse(m, d):
        torque = np.empty((part, m.nv))
        for k in range(part):
            d.qpos[:], d.qvel[:], d.qacc[:] = wide[0, k], wide[1, k], wide[2, k]
            mujoco.mj_inverse(m, d)
            torque[k] = d.qfrc_inverse
        return torque

    def in_blocks():
        for a in range(0, samples - block + 1, block):
            b = a + block
            sy.regressor(robot, q[a:b], qd[a:b], qdd[a:b], out=reused)

    one = q[0].copy(), qd[0].copy(), qdd[0].copy()

    def mujoco_one(m, d):
        d.qpos[: robot.n], d.qvel[: robot.n], d.qacc[: robot.n] = one
        mujoco.mj_inverse(m, d)
        return d.qfrc_inverse.copy()

    calls = {
        "regressor": (lambda: sy.regressor(robot, q, qd, qdd), 1),
        "blocks": (in_blocks, 1),
        "pin regressor": (pinocchio_regressor, 1),
        "pin regressor kept": (pinocchio_regressor_kept, 1),
        "inverse": (lambda: sy.inverse_dynamics(robot, q, qd, qdd), 1),
        "mj inverse": (lambda: mujoco_inverse(mj, mj_data), 1),
        "pin rnea": (pinocchio_rnea, 1),
        "one": (lambda: sy.inverse_dynamics(robot, *one), 20_000),
        "mj one": (lambda: mujoco_one(mj, mj_data), 20_000),
        "mj one as loaded": (lambda: mujoco_one(as_loaded, as_loaded_data), 20_000),
    }
    best = best_of(calls)
    whole_blocks = samples // block * block
    title = f"Panda, {samples} samples, {threads()} threads"
    listing = Table("job", "ours µs", "theirs µs", "opponent", "ratio", "asked", title=title)
    pin_call, pin_kept = best["pin regressor"] / part, best["pin regressor kept"] / part
    loop = "Pinocchio computeJointTorqueRegressor, Python loop"
    row_of(listing, "regressor, blocks into one buffer", best["blocks"] / whole_blocks, pin_call, loop, "8")
    ours = best["regressor"] / samples
    row_of(listing, "regressor, whole (samples, 7, 94) array", ours, pin_kept, f"{loop}, kept", "8")
    row_of(listing, "regressor, whole array", ours, pin_call, f"{loop}, thrown away", "")
    ours = best["inverse"] / samples
    lean = "mj_inverse without constraints"
    row_of(listing, "inverse dynamics", ours, best["mj inverse"] / part, f"{lean}, Python loop", "10")
    row_of(listing, "inverse dynamics", ours, best["pin rnea"] / part, "Pinocchio rnea, Python loop", "")
    row_of(listing, "one inverse dynamics", best["one"], best["mj one as loaded"], "mj_inverse, model as loaded", "1")
    row_of(listing, "one inverse dynamics", best["one"], best["mj one"], lean, "1")
    console = Console(width=150)
    console.print(listing)

    console.print("\nRegressor against samples (blocks into one buffer): µs a sample")
    for count in (1_000, 10_000, 100_000, 1_000_000):
        states = random_states(robot, rng, count)
        buffer = np.empty((min(count, block), robot.n, robot.layout.size))

        def sweep(states=states, buffer=buffer, count=count):
            step = len(buffer)
            for a in range(0, count - step + 1, step):
                sy.regressor(robot, *(x[a : a + step] for x in states), out=buffer)

        seconds = min(timeit.repeat(sweep, number=1, repeat=3))
        console.print(f"  {count:>9} {1e6 * seconds / count:.3f}")
    console.print(f"\n{os.cpu_count()} processors; MuJoCo {mujoco.__version__}, Pinocchio {pin.__version__}")


if __name__ == "__main__":
    main()
