"""Recursive estimators on two-link and Panda: error, time and failures of each, and whether they keep up.

    python benchmarks/filters.py            the table, a few minutes
    python benchmarks/filters.py --speed    times of single steps, and 10⁷ steps of recursive least squares

Every run begins with bodies that can exist and are 15 % wrong. The error is that of the torque over states that were
not recorded, as a share of the torque; a run has failed if it broke off or ended with more than a third of the error
that it began with. No run is left out.
"""

import argparse
import time
import warnings

import numpy as np

import steelyard as sy
from steelyard.excitation.trajectory import Fourier
from steelyard.identification import online
from steelyard.identification.online import recursive
from steelyard.identification.online.watching import observe, watch
from steelyard.robot.inertia import from_log_cholesky, log_cholesky
from steelyard.robot.states import random_states
from steelyard.simulation.controllers import computed_torque
from steelyard.simulation.sensors import Sensors

NOISES = ((1e-5, 0.01), (1e-4, 0.05), (1e-3, 0.1))  # rad, N·m
RATE = 250.0


def wrong_by(robot, relative, rng):
    """Bodies that can exist, wrong by so much."""
    theta, layout = robot.parameters.copy(), robot.layout
    for body in layout.bodies:
        eta = log_cholesky(theta[layout.body(body)])
        eta[0] += 0.5 * relative * rng.normal()
        eta[1:4] += relative * rng.normal(size=3)
        eta[7:] *= 1 + relative * rng.normal(size=3)
        theta[layout.body(body)] = from_log_cholesky(eta)
    theta[layout.inertial.stop :] *= np.exp(relative * rng.normal(size=theta.size - layout.inertial.stop))
    return robot.with_parameters(theta)


def recorded(robot, seconds, noise, seed):
    rng = np.random.default_rng(seed)
    path = Fourier(5.0, robot.home, *0.15 * rng.normal(size=(2, robot.n, 5)), robot.dof_names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = sy.simulate(
            robot,
            path,
            sensors=Sensors(position_noise=noise[0], torque_noise=noise[1], velocity="measured"),
            controller=computed_torque(2.0),
            rng=rng,
            control_hz=RATE,
            step=1e-3,
            cartesian=False,
        )
    return done.between(0, int(seconds * RATE))


def samples(recording, rates):
    """What a filter sees; rates and accelerations of those that need them are the true ones."""
    more = recording.more
    for i, t in enumerate(recording.t):
        if rates:
            motion = (more[name][i] for name in ("q_true", "qd_true", "qdd_true"))
            q, qd, qdd = motion
            yield online.Sample(t, q, recording.tau[i], qd, qdd)
        else:
            yield online.Sample(t, recording.q[i], recording.tau[i])


def methods(noise):
    """Every estimator with the noise that there is."""
    yield "RLS", online.RLS(noise=noise[1], relative=0.15), True
    for name, cls in online.METHODS.items():
        if name == "RLS":
            continue
        yield f"{name}, parameters", cls(torque_noise=noise[1]), True
        joint = {"on": "joint", "torque": "held", "position_noise": noise[0]}
        yield f"{name}, joint state", cls(torque_noise=noise[1], **joint), False


def table(names, seeds, seconds, only):
    head = f"{'robot':9} {'noise':>13} {'method':20} {'before':>7} {'median':>8} {'worst':>8} {'failed':>7}"
    print(head + "  ms/step\n" + "-" * (len(head) + 9))
    for name in names:
        robot = sy.load_robot(name)
        Y = sy.regressor(robot, *random_states(robot, np.random.default_rng(5), 100))
        size = np.linalg.norm(Y @ robot.parameters)
        for noise in NOISES:
            guesses = [wrong_by(robot, 0.15, np.random.default_rng(seed)) for seed in seeds]
            runs = [(guess, recorded(robot, seconds, noise, seed)) for guess, seed in zip(guesses, seeds, strict=True)]
            first = [np.linalg.norm(Y @ (guess.parameters - robot.parameters)) / size for guess, _ in runs]
            for label, settings, rates in methods(noise):
                if only and not any(part in label for part in only):
                    continue
                errors, failed, spent, steps = [], 0, 0.0, 0
                for (guess, recording), before in zip(runs, first, strict=True):
                    state, begun = online.init(guess, settings), time.process_time()
                    try:
                        for sample in samples(recording, rates):
                            state = online.step(state, sample)
                        broke = False
                    except sy.DataError:
                        broke = True
                    spent, steps = spent + time.process_time() - begun, steps + state.samples
                    error = np.linalg.norm(Y @ (online.found(state).parameters - robot.parameters)) / size
                    errors.append(error)
                    failed += broke or not error < before / 3
                told = f"{np.median(first):7.2%} {np.median(errors):8.3%} {max(errors):8.3%} {failed:3d}/{len(runs)}  "
                print(f"{name:9} {noise[0]:6g} {noise[1]:6g} {label:20} {told} {1e3 * spent / steps:8.3f}", flush=True)


def percentiles(label, state, some, warm=50):
    """Wall time, and the processor's, which leaves out what other programs took in between."""
    wall, own = [], []
    for sample in some:
        begun, own_begun = time.perf_counter(), time.thread_time_ns()
        state = online.step(state, sample)
        own.append((time.thread_time_ns() - own_begun) / 1e3)
        wall.append(1e6 * (time.perf_counter() - begun))
    told = [
        f"{what} {np.median(x[warm:]):5.0f} / {np.percentile(x[warm:], 99):5.0f} µs"
        for what, x in (("wall", wall), ("processor", own))
    ]
    print(f"{label:45} median / p99: {told[0]}, {told[1]}", flush=True)


def speed():
    panda, arm = sy.load_robot("panda"), sy.load_robot("two_link")
    noise = NOISES[1]
    run = recorded(panda, 4.0, noise, 0)
    rank = sy.base_parameters(panda).rank
    some = list(samples(run, True))
    percentiles(f"RLS, Panda, {rank} base parameters, 7 rows", online.init(panda, online.RLS(noise=0.05)), some)
    percentiles("RLS with forgetting 0.99, the same", online.init(panda, online.RLS(0.99, noise=0.05)), some)
    some = list(samples(recorded(arm, 4.0, noise, 0), False))
    for choice in ("base", "physical"):
        settings = online.EKF(on="joint", coordinates=choice, torque_noise=0.05)
        percentiles(f"joint-state EKF, two-link, {choice}", online.init(arm, settings), some)
    state, took = watch(panda), []
    for i in range(5000):
        k = min(i // 4, len(run) - 1)  # a recording of 250 Hz, as steps of a thousand a second
        row = run.q[k], run.tau[k]
        begun = time.perf_counter()
        state, _ = observe(state, i * 1e-3, *row)
        took.append(time.perf_counter() - begun)
    took = np.array(took[500:])
    print(f"watch, Panda, 1 kHz: {took.mean() * 1e6:.0f} µs a sample on average, {took.max() * 1e3:.1f} ms at most")
    print(f"  that is {took.mean() * 1e3 * 100:.0f} % of the time that a sample has")


def endless(steps=10_000_000):
    """The covariance after so many rows: as symmetric as it was, and positive."""
    rng, p = np.random.default_rng(0), 10
    sizes = np.logspace(-3, 3, p)
    rows = rng.normal(size=(100_000, 1, p)) * sizes
    theta = rng.normal(size=p) / sizes
    values = rows @ theta + 0.01 * rng.normal(size=(len(rows), 1))
    for forgetting, directional in ((1.0, True), (0.99, True), (0.99, False)):
        state = recursive.start(np.zeros(p), 1e4)
        for _ in range(steps // len(rows)):
            state = recursive.update(state, rows, values, 0.01, forgetting, directional)
        P = state.covariance * np.outer(sizes, sizes)
        values_P = np.linalg.eigvalsh(P)
        error = np.abs((state.estimate - theta) * sizes).max()
        print(
            f"{steps:.0e} rows, forgetting {forgetting}, {'along rows' if directional else 'all'}: eigenvalues "
            f"{values_P[0]:.2e} … {values_P[-1]:.2e}, asymmetry {np.abs(P - P.T).max():.0e}, error {error:.1e}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--robots", default="two_link,panda")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--only", default="", help="methods whose name has one of these parts, separated by commas")
    chosen = parser.parse_args()
    if chosen.speed:
        speed()
        endless()
    else:
        parts = [part for part in chosen.only.split(",") if part]
        table(chosen.robots.split(","), range(chosen.seeds), chosen.seconds, parts)
