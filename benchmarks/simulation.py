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
    """A worker's share, and the processor time it took: the loop is prepared once and sent once."""
    began = time.process_time()
    return [answer(loop, seed) for seed in seeds], time.process_time() - began


def in_processes(loop, workers, pool):
    """Wall and processor time of all runs."""
    began = time.perf_counter()
    done = pool(joblib.delayed(answers)(loop, range(RUNS)[first::workers]) for first in range(workers))
    return time.perf_counter() - began, sum(used for _, used in done)


def in_threads(loop, workers, pool):
    began, used = time.perf_counter(), time.process_time()
    list(pool.map(lambda seed: answer(loop, seed), range(RUNS)))
    return time.perf_counter() - began, time.process_time() - used


def several_runs(loop, listing):
    """Best times of all runs in one worker and in two, turn and turn about.

    Processor time tells what two workers cost each other (memory, locks) even where others use the machine.
    """
    best = {}
    for _ in range(ROUNDS):
        for workers in (1, 2):
            with joblib.Parallel(workers, inner_max_num_threads=1, backend="loky") as processes:
                # Starts the processes, and loads the kernels in all of them: many small tasks, so that each gets some.
                processes(joblib.delayed(answers)(loop, range(4)) for _ in range(6 * workers))
                with ThreadPoolExecutor(workers) as threads:
                    for name, job, pool in (("processes", in_processes, processes), ("threads", in_threads, threads)):
                        times = job(loop, workers, pool)
                        best[name, workers] = np.minimum(best.get((name, workers), np.inf), times)
    for name in ("processes", "threads"):
        for row, what in enumerate(("wall", "processor")):
            one, two = best[name, 1][row], best[name, 2][row]
            label = f"{RUNS} runs, {what} time: two {name} against one"
            listing.add_row(label, f"{two:.2f}", f"{one:.2f}", f"{one / two:.2f}")


def seconds_of(call):
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


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
        several_runs(loop, listing)
    Console(width=120).print(listing)


if __name__ == "__main__":
    main()
