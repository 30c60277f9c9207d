"""Variational equations of closed loops against differences of the simulation that they are of."""

from dataclasses import replace

import numpy as np
import pytest

import steelyard as sy
from steelyard.dynamics import inverse_dynamics, torque_gradients
from steelyard.excitation.trajectory import Fourier
from steelyard.robot.states import random_states
from steelyard.simulation.controllers import computed_torque, pid_for
from steelyard.simulation.kernels.loop import KEPT
from steelyard.simulation.loop import ClosedLoop
from steelyard.simulation.reference import reference_of
from steelyard.simulation.tangent import tangents

NAMES = ("q", "qd", "tau")
_KEPT = [KEPT.index(name) for name in ("q_seen", "qd_seen", "tau")]


def arm(**joints):
    robot = sy.load_robot("two_link", friction=("coulomb",) if "coulomb" in joints else ())
    theta = robot.parameters.copy()
    for name, value in {"damping": 0.4, "armature": 0.02, **joints}.items():
        theta[robot.layout.block(name)] = value
    return robot.with_parameters(theta)


def loop_of(robot, controller, **more):
    a = 0.5 * np.random.default_rng(1).normal(size=(robot.n, 5))
    path = Fourier(3.0, robot.home, a - a.mean(axis=1, keepdims=True), 0 * a, robot.dof_names)
    hz = more.pop("control_hz", 1000.0)
    return ClosedLoop(robot, reference_of(path, hz), controller, hz, **more)


ROBOT = arm()
LOOPS = {
    "pid": loop_of(ROBOT, pid_for(ROBOT)),
    "delay and differences": loop_of(ROBOT, pid_for(ROBOT), delay_ticks=3),
    "delay and measured rates": loop_of(ROBOT, pid_for(ROBOT), delay_ticks=2, velocity="measured"),
    "gravity": loop_of(ROBOT, pid_for(ROBOT, model="gravity")),
    "computed torque of another": loop_of(
        ROBOT, computed_torque(ki=100.0), nominal=ROBOT.with_parameters(1.1 * ROBOT.parameters)
    ),
    "saturation": loop_of(ROBOT, replace(pid_for(ROBOT), limit=8.0)),
    "a start": loop_of(ROBOT, pid_for(ROBOT), start=[ROBOT.home + 0.1, [0.1, 0.2], [1.0, 2.0]]),
    "dry friction, which turns": loop_of(arm(coulomb=0.2), pid_for(ROBOT), step=2e-4),
}


def kept(loop, theta=None, start=None):
    out = np.empty((len(KEPT), loop.samples, loop.robot.n))
    loop.execute(out, theta, start=start)
    return out


def signals(loop, theta=None, start=None):
    return np.concatenate(kept(loop, theta, start)[_KEPT], axis=1)


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_the_variational_equations_are_the_slope_of_the_simulation(loop):
    robot, n = loop.robot, loop.robot.n
    theta, h = robot.parameters, 1e-5
    directions = np.eye(len(theta))[:, sy.base_parameters(robot).kept]
    gains = loop.controller.gains(n)
    moves = [(i, j) for i in range(3) for j in range(n) if gains[i, j] > 0]
    start = None if loop.start is None else np.asarray(loop.start, dtype=float)
    rows = 0 if start is None else len(start)
    found = tangents(loop, robot, kept(loop), directions, NAMES, moves, rows)

    def along_parameter(k, s):
        return signals(loop, theta + s * directions[:, k])

    def along_gain(k, s):
        changed = gains.copy()
        changed[moves[k]] *= np.exp(s)
        kp, ki, kd = changed
        return signals(replace(loop, controller=replace(loop.controller, kp=kp, ki=ki, kd=kd)))

    def along_start(k, s):
        moved = start.copy()
        moved.flat[k] += s
        return signals(loop, start=moved)

    count = directions.shape[1]
    tasks = [(along_parameter, k) for k in range(count)] + [(along_gain, k) for k in range(len(moves))]
    tasks += [(along_start, k) for k in range(rows * n)]
    assert found.shape == (loop.samples, 3 * n, len(tasks))
    for column, (move, k) in enumerate(tasks):
        difference = (move(k, h) - move(k, -h)) / (2 * h)
        for s in range(3):
            a, b = found[:, s * n : s * n + n, column], difference[:, s * n : s * n + n]
            # The trapezoidal rule against Runge–Kutta where the torque jumps at the start or at a limit: a tick's share
            # of what is over within some ticks; along a smooth motion both agree to 1e-4.
            assert np.linalg.norm(a - b) < 0.07 * np.linalg.norm(b)
            late = slice(len(a) // 2, None)
            if np.isinf(loop.controller.limits(robot)).all() and "coulomb" not in robot.layout.properties:
                assert np.linalg.norm((a - b)[late]) < 0.02 * np.linalg.norm(b)


def test_sampled_rows_are_rows_of_all_ticks():
    loop = LOOPS["pid"]
    directions = np.eye(len(ROBOT.parameters))
    whole = tangents(loop, ROBOT, kept(loop), directions, ("q", "qdd"))
    np.testing.assert_array_equal(tangents(loop, ROBOT, kept(loop), directions, ("q", "qdd"), stride=7), whole[::7])


@pytest.mark.parametrize("name", ["panda", "scara"])
def test_torque_gradients_are_directional_differences(name):
    robot, rng = sy.load_robot(name), np.random.default_rng(0)
    q, qd, qdd = random_states(robot, rng, 20)
    by_q, by_qd = torque_gradients(robot, q, qd, qdd)
    d, h = rng.normal(size=robot.n), 1e-6

    def torque(a, b):
        return inverse_dynamics(robot, q + a * d, qd + b * d, qdd)

    scale = np.abs(by_q).max()
    np.testing.assert_allclose(by_q @ d, (torque(h, 0) - torque(-h, 0)) / (2 * h), atol=1e-6 * scale)
    np.testing.assert_allclose(by_qd @ d, (torque(0, h) - torque(0, -h)) / (2 * h), atol=1e-6 * scale)
