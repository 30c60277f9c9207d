"""Watching: causal rates, jumps of a linear model, loads on simulated robots, and the command."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import lsim
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli.main import app
from steelyard.data.recording import Recording, save_recording
from steelyard.excitation.trajectory import Fourier
from steelyard.identification import online
from steelyard.identification.identify import identify
from steelyard.identification.online.changes import Block, Information, Jumps, nothing, of_rows, solved
from steelyard.identification.online.rates import CausalRates
from steelyard.identification.online.watching import Watch, load, observe, watch
from steelyard.robot.payload import with_payload


def test_the_chain_is_scipys_simulation_of_four_lags():
    rng, w = np.random.default_rng(0), 2 * np.pi * 5
    t = np.linspace(0, 1, 400)
    u = np.sin(7 * t) + 0.1 * rng.normal(size=t.size)
    A, B = w * (np.diag(-np.ones(4)) + np.diag(np.ones(3), -1)), w * np.eye(4)[:, :1]
    C = np.array([[0, 0, 0, 1], [0, 0, w, -w], [0, w * w, -2 * w * w, w * w]])
    wanted = lsim((A, B, C, np.zeros((3, 1))), u, t, X0=np.full(4, u[0]))[1]
    chain, rates = None, CausalRates(5.0)
    for k, time in enumerate(t):
        chain, now = rates.push(chain, time, u[k : k + 1], np.zeros(1))
        got = [now.q[0], now.qd[0], now.qdd[0]]
        np.testing.assert_allclose(got, wanted[k], atol=1e-9 * max(1.0, np.abs(wanted[k]).max()))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_jittered_stamps_leave_a_parabola_exact_but_for_its_bend(seed):
    """Position and torque of q̈ = 2 pass alike: the acceleration is 2, whenever the samples come."""
    rng = np.random.default_rng(seed)
    t = np.cumsum(rng.uniform(2e-4, 3e-3, 2000))
    chain, rates = None, CausalRates(8.0)
    for time in t:
        chain, now = rates.push(chain, time, np.array([time**2]), np.array([time]))
    assert now.settled
    assert now.qdd[0] == pytest.approx(2.0, abs=2e-3)
    assert now.qd[0] == pytest.approx(2 * now.t, abs=1e-3)
    assert now.tau[0] == pytest.approx(now.t, abs=1e-6)


def test_a_jump_is_what_least_squares_over_both_sides_says(rng):
    """The eliminated form against one large least-squares problem with the jump as unknowns."""
    p, d = 5, 2
    E, D, prior = rng.normal(size=(p, d)), np.diag([4.0, 1.0]), np.eye(p) * 0.5
    W, noise = rng.normal(size=(12, 10, p)), 0.1 * np.ones(10)
    beta, size = rng.normal(size=p), np.array([1.5, -0.7])
    y = W @ beta + 0.1 * rng.normal(size=(12, 10))
    y[7:] += W[7:] @ E @ size
    blocks = tuple(Block(k, k + 0.9, of_rows(W[k], y[k], noise)) for k in range(12))
    jumps = Jumps(E, D)
    jump = jumps.likeliest(Information(prior, np.zeros(p)), blocks, shortest=2)
    assert jump.block == 7
    rows = [np.hstack([W[k], W[k] @ E * (k >= 7)]) / 0.1 for k in range(12)]
    A = np.vstack(
        [
            *rows,
            np.hstack([np.linalg.cholesky(prior).T, np.zeros((p, d))]),
            np.hstack([np.zeros((d, p)), np.diag([0.5, 1.0])]),
        ]
    )
    b = np.concatenate([y.ravel() / 0.1, np.zeros(p + d)])
    x = np.linalg.lstsq(A, b, rcond=None)[0]
    np.testing.assert_allclose(jump.size, x[p:], atol=1e-9)
    np.testing.assert_allclose(jump.covariance, np.linalg.inv(A.T @ A)[p:, p:], atol=1e-9)
    without = np.linalg.lstsq(A[:, :p], b, rcond=None)[0]
    gain = 0.5 * (np.sum((A[:, :p] @ without - b) ** 2) - np.sum((A @ x - b) ** 2))
    assert jump.gain == pytest.approx(gain, rel=1e-9)


def test_a_jump_of_unknown_size_widens_what_is_known(rng):
    A = rng.normal(size=(4, 4))
    P, E, D = A @ A.T + np.eye(4), rng.normal(size=(4, 2)), np.eye(2)
    known = Information(np.linalg.inv(P), np.linalg.solve(P, np.ones(4)))
    mean, wide = solved(Jumps(E, D).widened(known))
    np.testing.assert_allclose(mean, np.ones(4), atol=1e-9)
    np.testing.assert_allclose(wide, P + E @ E.T, atol=1e-8)
    assert not nothing(3).matrix.any()


def moved(robot, heavier, seconds, changes, seed=0, rate=1000.0):
    """A PD loop with feed-forward of the empty robot; at every change the load is picked up or put down."""
    rng, h, n = np.random.default_rng(seed), 1.0 / rate, robot.n
    path = Fourier(10.0, robot.home, *0.12 * rng.normal(size=(2, n, 4)), robot.dof_names)
    t = np.arange(int(seconds * rate)) * h
    goal, speed, acceleration = path.sample(t)
    forward, J, w = (
        sy.inverse_dynamics(robot, goal, speed, acceleration),
        np.diag(sy.mass_matrix(robot, robot.home)),
        25.0,
    )
    q, v, out = goal[0].copy(), speed[0].copy(), np.empty((2, t.size, n))
    for i, now in enumerate(t):
        carrying = heavier if sum(c <= now for c in changes) % 2 else robot
        tau = forward[i] + J * (w * w * (goal[i] - q) + 2 * w * (speed[i] - v))
        out[:, i] = q, tau
        a = sy.forward_dynamics(carrying, q, v, tau)
        middle = v + 0.5 * h * a
        a = sy.forward_dynamics(carrying, q + 0.5 * h * v, middle, tau)
        q, v = q + h * middle, v + h * a
    noise = rng.normal(size=out.shape) * np.array([1e-4, 0.05])[:, None, None]
    return t, *(out + noise)


def watched(robot, t, q, tau, **settings):
    state, events = watch(robot, Watch(**settings)), []
    for sample in zip(t, q, tau, strict=True):
        state, news = observe(state, *sample)
        events += news
    return state, events


@pytest.mark.parametrize(("name", "com"), [("two_link", (0.4, 0, 0)), ("panda", (0, 0, 0.1))])
def test_a_kilogram_is_found_within_a_second_and_weighed_to_five_percent(name, com):
    robot = sy.load_robot(name)
    heavier = with_payload(robot, robot.layout.bodies[-1], 1.0, com, 1e-3 * np.eye(3))
    state, events = watched(robot, *moved(robot, heavier, 7.0, (4.0, 5.8)))
    assert [event.kind for event in events] == ["picked up", "put down"]
    for event, when, mass in zip(events, (4.0, 5.8), (1.0, -1.0), strict=True):
        assert abs(event.t - when) < 0.1
        assert event.told - when < 1.0
        assert event.mass == pytest.approx(mass, rel=0.05)
        assert event.low < mass < event.high
    np.testing.assert_allclose(events[0].load.com, com, atol=0.02)
    now = load(state)
    assert abs(now.mass) < 0.05


def test_a_robot_with_friction_that_the_model_lacks_raises_no_alarm_of_loads():
    robot = sy.load_robot("two_link")
    t, q, tau = moved(robot, robot, 8.0, ())
    speed = np.gradient(q, t, axis=0)
    tau = tau + np.array([2.0, 0.5]) * np.tanh(speed / 0.3) + 0.5
    _, events = watched(robot, t, q, tau)
    assert not [event for event in events if event.kind != "friction"]


def test_late_and_broken_samples_are_left_out():
    robot = sy.load_robot("two_link")
    state, _ = observe(watch(robot), 0.0, robot.home, np.zeros(2))
    for t, q in ((0.0, robot.home), (-1.0, robot.home), (0.1, np.array([np.nan, 0.0]))):
        assert observe(state, t, q, np.zeros(2))[0] is state


def test_the_command_tells_loads_and_writes_them_as_lines_of_json(tmp_path):
    robot = sy.load_robot("two_link")
    heavier = with_payload(robot, "link2", 1.0, (0.4, 0, 0))
    t, q, tau = moved(robot, heavier, 5.5, (4.0,))
    path = save_recording(Recording(t, q, tau, joints=robot.dof_names), tmp_path / "run.npz")
    events = tmp_path / "events.jsonl"
    run = CliRunner().invoke(app, ["watch", "two_link", str(path), "--events", str(events), "--json"])
    assert run.exit_code == 0, run.output
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["picked up"]
    summary = json.loads(run.stdout)
    assert summary["load"]["mass_kg"] == pytest.approx(1.0, rel=0.05)
    assert summary["events"][0]["t"] == lines[0]["t"]


def test_the_command_refuses_what_cannot_be_meant(tmp_path):
    run = CliRunner().invoke(app, ["watch", "two_link", str(tmp_path / "none.npz")])
    assert isinstance(run.exception, sy.SteelyardError)
    run = CliRunner().invoke(app, ["watch", "two_link", "x.npz", "--body", "hand"])
    assert "valid: link1, link2" in str(run.exception)


@pytest.mark.parametrize("method", [online.RLS(), online.EKF(), online.SRUKF(), online.EKF(on="joint")], ids=str)
def test_whole_recordings_go_through_identify(method):
    robot = sy.load_robot("two_link")
    t, q, tau = moved(robot, robot, 3.0, (), rate=500.0)
    guess = robot.with_parameters(robot.parameters * 1.15)
    found = identify(guess, Recording(t, q, tau), method)
    # On the motion that was recorded; what it does not show stays with the prior.
    speed = np.gradient(q, t, axis=0)
    Y = sy.regressor(robot, q[::20], speed[::20], np.zeros_like(speed[::20]))
    before, after = Y @ (guess.parameters - robot.parameters), Y @ (found.parameters - robot.parameters)
    assert np.linalg.norm(after) < 0.1 * np.linalg.norm(before)
    assert found.method == method.name
