"""The closed loop against the same loop written in Python over MuJoCo: `python benchmarks/simulation.py`."""

import time
from concurrent.futures import ThreadPoolExecutor

import joblib
import mujoco
import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

import steelyard as sy
from steelyard.excitation.trajectory import Fourier
from steelyard.simulation.closed_loop import record, simulate
from steelyard.simulation.controllers import pid_for
from steelyard.simulation.loop import ClosedLoop
from steelyard.simulation.reference import reference_of
from steelyard.simulation.sensors import Sensors

ROUNDS, RUNS, NOISE, TORQUE_NOISE = 3, 100, 1e-5, 0.05


def mujoco_panda(robot):
    """The Panda in MuJoCo with its fingers welded on, RK4, no contacts."""
    spec = robot.source.spec.copy()
    for joint in [joint for joint in spec.joints if joint.name.startswith("finger")]:
        spec.delete(joint)
    for key in list(spec.keys):
        spec.delete(key)
    model = spec.compile()
    model.opt.integrator, model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, 1e-3
    model.opt.disableflags = int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_CONTACT)
    return model


def loop_in_python(model, controller, limits, desired, rng):
    """PID with anti-windup on noisy positions and differenced velocities, and what it records."""
    data = mujoco.MjData(model)
    q_d, qd_d, _ = desired
    kp, ki, kd = controller.gains(7)
    data.qpos[:] = q_d[0]
    integral, before, dt = np.zeros(7), q_d[0].copy(), 1e-3
    q, qd, qdd, seen, tau = (np.empty_like(q_d) for _ in range(5))
    for k in range(len(q_d)):
        measured = data.qpos + NOISE * rng.normal(size=7)
        rate = (measured - before) / dt if k else qd_d[0]
        before = measured
        error = q_d[k] - measured
        asked = kp * error + ki * (integral + error * dt) + kd * (qd_d[k] - rate)
        given = np.clip(asked, -limits, limits)
        integral += np.where((given == asked) | ((asked - given) * error < 0), error * dt, 0.0)
        data.qfrc_applied[:] = given
        q[k], qd[k], seen[k], tau[k] = data.qpos, data.qvel, measured, given
        mujoco.mj_step(model, data)
        qdd[k] = data.qacc
    return q, qd, qdd, seen, tau + TORQUE_NOISE * rng.normal(size=tau.shape)


def answer(loop, seed):
    """The torque's standard deviation of one Monte-Carlo run: a small answer, as studies have."""
    sensors = Sensors(position_noise=NOISE, torque_noise=TORQUE_NOISE)
    return record(loop, sensors, np.random.default_rng(seed), cartesian=False).tau.std()


def answers(loop, seeds):
    """A worker's share: the loop is prepared once and sent once."""
    return [answer(loop, seed) for seed in seeds]


def spin(_):
    """Work that shares nothing, to see how many processors there are at this moment."""
    total = 0
    for k in range(4_000_000):
        total += k
    return total


def seconds_of(call):
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def two_against_one(loop):
    """Best times of 100 runs in one and two workers, turn and turn about, and of work that shares nothing."""
    seeds = range(RUNS)
    best = dict.fromkeys(("processes", "threads", "kernel in threads", "machine"), (np.inf, np.inf))
    pools = {w: joblib.Parallel(w, inner_max_num_threads=1, backend="loky") for w in (1, 2)}
    parts = {1: [seeds], 2: [seeds[::2], seeds[1::2]]}
    for round_ in range(ROUNDS + 1):
        times = {name: [] for name in best}
        for workers in (1, 2):
            with pools[workers] as pool, ThreadPoolExecutor(workers) as threads:
                pool([joblib.delayed(answers)(loop, part[:1]) for part in parts[workers]])  # starts processes
                jobs = {
                    "processes": lambda: pool(joblib.delayed(answers)(loop, part) for part in parts[workers]),
                    "threads": lambda: list(threads.map(lambda seed: answer(loop, seed), seeds)),
                    "kernel in threads": lambda: list(threads.map(lambda _: loop.run(), seeds)),
                    "machine": lambda: pool(joblib.delayed(spin)(k) for k in range(4)),
                }
                for name, job in jobs.items():
                    times[name].append(seconds_of(job))
        if round_:  # the first round warms up
            best = {name: tuple(np.minimum(best[name], times[name])) for name in best}
    return best


def main():
    robot = sy.load_robot("panda")
    a = 0.3 * np.random.default_rng(0).normal(size=(7, 5))
    path = Fourier(10.0, robot.home, a - a.mean(axis=1, keepdims=True), 0 * a, robot.dof_names)
    controller, sensors = pid_for(robot), Sensors(position_noise=NOISE, torque_noise=TORQUE_NOISE)
    limits, model = controller.limits(robot), mujoco_panda(robot)
    desired = path.sample(np.arange(10_001) * 1e-3)
    loop = ClosedLoop(robot, reference_of(path), controller)

    def ours():
        rng = np.random.default_rng(0)
        return simulate(robot, path, controller=controller, sensors=sensors, rng=rng, cartesian=False)

    jobs = {
        "simulate": ours,
        "record, prepared": lambda: record(loop, sensors, np.random.default_rng(0), cartesian=False),
        "run, without noise": loop.run,
        "mujoco": lambda: loop_in_python(model, controller, limits, desired, np.random.default_rng(0)),
    }
    ours()
    with threadpool_limits(1, "blas"):
        times = [[seconds_of(job) for job in jobs.values()] for _ in range(ROUNDS)]
        best = dict(zip(jobs, np.min(times, axis=0), strict=True))
        listing = Table("job", "ours s", "theirs s", "ratio", title="Panda, 10 s at 1 kHz control, RK4, PID, noise")
        for name in list(jobs)[:3]:
            row = f"{best[name]:.3f}", f"{best['mujoco']:.3f}", f"{best['mujoco'] / best[name]:.1f}"
            listing.add_row(f"{name}, against Python over MuJoCo", *row)
        for name, (one, two) in two_against_one(loop).items():
            listing.add_row(
                f"{RUNS} runs by two workers against one: {name}", f"{two:.2f}", f"{one:.2f}", f"{one / two:.2f}"
            )
    Console(width=120).print(listing)


if __name__ == "__main__":
    main()
