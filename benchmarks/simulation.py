"""The closed loop against the same loop written in Python over MuJoCo: `python benchmarks/simulation.py`."""

import time

import joblib
import mujoco
import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

import steelyard as sy
from steelyard.excitation.trajectory import Fourier
from steelyard.simulation.closed_loop import simulate
from steelyard.simulation.controllers import pid_for
from steelyard.simulation.sensors import Sensors

ROUNDS, NOISE, TORQUE_NOISE = 5, 1e-5, 0.05


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


def one_run(robot, path, controller, sensors, seed):
    """The torque's standard deviation of one Monte-Carlo run: a small answer, as studies have."""
    rng = np.random.default_rng(seed)
    return simulate(robot, path, controller=controller, sensors=sensors, rng=rng, cartesian=False).tau.std()


def main():
    robot = sy.load_robot("panda")
    a = 0.3 * np.random.default_rng(0).normal(size=(7, 5))
    path = Fourier(10.0, robot.home, a - a.mean(axis=1, keepdims=True), 0 * a, robot.dof_names)
    controller, sensors = pid_for(robot), Sensors(position_noise=NOISE, torque_noise=TORQUE_NOISE)
    limits, model = controller.limits(robot), mujoco_panda(robot)
    desired = path.sample(np.arange(10_001) * 1e-3)

    def ours(seed=0):
        rng = np.random.default_rng(seed)
        return simulate(robot, path, controller=controller, sensors=sensors, rng=rng, cartesian=False)

    ours()
    best = {"ours": np.inf, "mujoco": np.inf}
    with threadpool_limits(1, "blas"):
        for _ in range(ROUNDS):
            for name, call in (
                ("ours", ours),
                ("mujoco", lambda: loop_in_python(model, controller, limits, desired, np.random.default_rng(0))),
            ):
                began = time.perf_counter()
                call()
                best[name] = min(best[name], time.perf_counter() - began)
    seconds = {}
    for workers in (1, 2):
        with joblib.Parallel(workers, inner_max_num_threads=1, backend="loky") as pool:
            # The first runs start the processes and load the kernels.
            pool(joblib.delayed(one_run)(robot, path, controller, sensors, seed) for seed in range(2 * workers))
            began = time.perf_counter()
            pool(joblib.delayed(one_run)(robot, path, controller, sensors, seed) for seed in range(100))
            seconds[workers] = time.perf_counter() - began
    listing = Table("job", "ours s", "theirs s", "ratio", title="Panda, 10 s at 1 kHz control, RK4, PID, noise")
    row = f"{best['ours']:.3f}", f"{best['mujoco']:.3f}", f"{best['mujoco'] / best['ours']:.1f}"
    listing.add_row("one run against Python over MuJoCo", *row)
    row = f"{seconds[2]:.2f}", f"{seconds[1]:.2f}", f"{seconds[1] / seconds[2]:.2f}"
    listing.add_row("100 runs in two processes against one", *row)
    Console(width=120).print(listing)


if __name__ == "__main__":
    main()
