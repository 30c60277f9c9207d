"""ML where torque is not linear in all that is sought: shapes of friction, delays, temperature, drive gains."""

import numpy as np
import pytest

import steelyard as sy
from steelyard.data.recording import Recording
from steelyard.errors import DataError, OptionError
from steelyard.identification.conclude import estimate
from steelyard.identification.estimators import ML
from steelyard.identification.model import Experiment, Load
from steelyard.identification.problem import build_problem
from steelyard.identification.shapes import shapes_named
from steelyard.identification.terms import LuGreTerm
from steelyard.physics.friction import LuGre, Stribeck


def motion(robot, rng, samples=3000, seconds=15.0):
    t = np.linspace(0.0, seconds, samples)
    w = rng.uniform(0.3, 3.0, (robot.n, 5))
    a = rng.uniform(0.1, 0.4, (robot.n, 5))
    phase = w * t[:, None, None] + rng.uniform(0, 6, (robot.n, 5))
    q, qd, qdd = (a * np.sin(phase)).sum(-1), (a * w * np.cos(phase)).sum(-1), -(a * w**2 * np.sin(phase)).sum(-1)
    return t, q, qd, qdd


@pytest.fixture(scope="module")
def robot():
    return sy.load_robot("two_link", friction=("coulomb",))


@pytest.fixture(scope="module")
def bare():
    return sy.load_robot("two_link")


def found(robot, recordings, *words):
    return estimate(build_problem(robot, recordings), ML(shapes=shapes_named(words)))


def value(result, name):
    return next(shape for shape in result.shapes if shape.name == name)


def z_scores(result, truth):
    return [(value(result, name).value - x) / value(result, name).deviation for name, x in truth.items()]


def stribeck_recording(robot, rng, noise, shape=2.0):
    t, q, qd, qdd = motion(robot, rng)
    law = Stribeck([0.5, 0.3], [1.2, 0.6], [0.2, 0.1], 0.0, shape)
    tau = sy.inverse_dynamics(robot, q, qd, qdd) + law.level(qd) * np.sign(qd)
    return Recording(t, q, tau + noise * rng.normal(size=tau.shape), qd, qdd)


def test_stribecks_velocity_is_found_with_its_uncertainty(robot):
    names = [f"{dof}.stribeck_velocity" for dof in robot.dof_names]
    scores = []
    for seed in range(8):
        result = found(robot, stribeck_recording(robot, np.random.default_rng(seed), 0.05), "stribeck")
        assert result.converged, result.message
        scores += z_scores(result, dict(zip(names, (0.2, 0.1), strict=True)))
    assert np.abs(scores).max() < 4.0
    assert 0.5 < np.std(scores) < 1.6


def test_stribecks_exponent_is_found_beside_the_velocity(robot, rng):
    result = found(robot, stribeck_recording(robot, rng, 1e-4, shape=1.2), "stribeck-shape")
    assert result.converged
    for dof, velocity in zip(robot.dof_names, (0.2, 0.1), strict=True):
        assert value(result, f"{dof}.stribeck_velocity").value == pytest.approx(velocity, rel=5e-3)
        assert value(result, f"{dof}.stribeck_shape").value == pytest.approx(1.2, rel=5e-3)


def test_bristles_of_lugre_are_those_that_an_integrator_bends(rng):
    law = LuGre(1.0, 1.5, 0.1, 1000.0, 5.0, 0.2)
    t = np.arange(0.0, 2.0, 2e-4)
    qd = 0.2 * np.sin(4.0 * t)[:, None]
    z, states = np.zeros(1), []
    for speed in qd:
        z = z + 2e-4 * law.zdot(speed, z)
        states.append(z.copy())
    term = LuGreTerm((1e-3,), (0.5,), (0.1,))
    robot = sy.load_robot("two_link", lock=["joint2"])
    ready = term.prepared(robot, Recording(t, qd, qd, qd, qd))
    x = ready.more["bristles"][:, 0, 0]
    assert np.abs(x - 1000.0 * np.array(states)[:, 0]).max() < 0.02


def test_lugre_is_found(bare, rng):
    t, q, qd, qdd = motion(bare, rng, samples=6000)
    term = LuGreTerm((2e-2, 1e-2), (0.5, 0.8), (0.2, 0.1))
    recording = Recording(t, q, np.zeros_like(q), qd, qdd)
    dry = term.columns(bare, term.prepared(bare, recording)) @ [1.0, 0.6, 0.3, 0.2]
    tau = sy.inverse_dynamics(bare, q, qd, qdd) + dry
    result = found(bare, Recording(t, q, tau + 1e-3 * rng.normal(size=tau.shape), qd, qdd), "lugre")
    assert result.converged, result.message
    for dof, displacement, rise, velocity in zip(bare.dof_names, (2e-2, 1e-2), (0.5, 0.8), (0.2, 0.1), strict=True):
        assert value(result, f"{dof}.bristle_displacement").value == pytest.approx(displacement, rel=0.03)
        assert value(result, f"{dof}.bristle_rise").value == pytest.approx(rise, rel=0.05)
        assert value(result, f"{dof}.bristle_velocity").value == pytest.approx(velocity, rel=0.05)
    again = result.torque(recording)
    assert np.sqrt(np.mean((again - tau) ** 2)) < 2e-3


def test_the_temperature_coefficient_is_found_from_a_robot_that_warms_up(robot, rng):
    t, q, qd, qdd = motion(robot, rng)
    warm = 20.0 + 20.0 * (1 - np.exp(-t / 5.0))
    friction = (0.8 * np.sign(qd) + 0.4 * qd) * (1.0 - 0.012 * (warm[:, None] - 20.0))
    clean = robot.parameters.copy()
    for prop in ("damping", "coulomb"):
        clean[robot.layout.block(prop)] = 0.0
    tau = sy.inverse_dynamics(robot.with_parameters(clean), q, qd, qdd) + friction
    tau = tau + 0.02 * rng.normal(size=tau.shape)
    result = found(robot, Recording(t, q, tau, qd, qdd, more={"temperature": warm}), "temperature")
    assert result.converged
    truth = {f"{dof}.temperature_coefficient": -0.012 for dof in robot.dof_names}
    assert np.abs(z_scores(result, truth)).max() < 4.0
    assert all(value(result, name).deviation < 2e-3 for name in truth)
    with pytest.raises(DataError, match="20 °C throughout"):
        found(robot, Recording(t, q, tau, qd, qdd, more={"temperature": np.full(len(t), 20.0)}), "temperature")
    with pytest.raises(DataError, match="no temperature"):
        found(robot, Recording(t, q, tau, qd, qdd), "temperature")


def test_a_delay_is_found_beside_the_parameters(bare, rng):
    t, q, qd, qdd = motion(bare, rng)
    at = t - 0.006
    tau = sy.inverse_dynamics(bare, *(np.array([np.interp(at, t, x[:, j]) for j in range(2)]).T for x in (q, qd, qdd)))
    result = found(bare, Recording(t, q, tau + 0.01 * rng.normal(size=tau.shape), qd, qdd), "delay")
    assert result.converged
    assert value(result, "delay").value == pytest.approx(0.006, abs=4 * value(result, "delay").deviation + 5e-5)


def loaded_pair(robot, rng, gains, noise):
    """Signals of the drives with nothing and with 3 kg in the hand."""
    load = np.array([3.0, 0.3, 0.0, 0.06, 0.01, 0.0, 0.0, 0.05, 0.0, 0.05])
    body = robot.layout.bodies[-1]
    theta = robot.parameters.copy()
    theta[robot.layout.body(body)] += load
    pair = []
    for arm, carried in ((robot, None), (robot.with_parameters(theta), Load(body, load))):
        t, q, qd, qdd = motion(robot, rng)
        signal = (sy.inverse_dynamics(arm, q, qd, qdd) + noise * rng.normal(size=q.shape)) / gains
        pair.append(Experiment(Recording(t, q, signal, qd, qdd), carried))
    return pair


def test_drive_gains_come_from_runs_with_and_without_a_known_load(robot):
    gains = np.array([12.0, 0.8])
    off = robot.with_parameters(robot.parameters * 1.2)  # a model that is wrong by a fifth knows no scale
    scores = []
    for seed in range(10):
        result = found(off, loaded_pair(robot, np.random.default_rng(seed), gains, 0.1), "gains")
        assert result.converged, result.message
        truth = {f"{dof}.drive_gain": g for dof, g in zip(robot.dof_names, gains, strict=True)}
        scores += z_scores(result, truth)
        assert all(value(result, name).deviation < 0.05 * g for name, g in truth.items())
    assert np.abs(scores).max() < 4.0
    assert 0.5 < np.std(scores) < 1.7
    base = result.model.base.reduce(robot.parameters)
    assert np.linalg.norm(result.base_parameters - base) < 0.05 * np.linalg.norm(base)


def test_drive_gains_without_anything_known_are_refused(robot, rng):
    pair = loaded_pair(robot, rng, np.ones(2), 0.1)
    with pytest.raises(DataError, match="known load"):
        found(robot, pair[:1], "gains")


def test_what_does_not_go_together_is_said(robot, rng):
    with pytest.raises(OptionError, match="stribeck-shape"):
        shapes_named(["stribek"])
    with pytest.raises(OptionError, match="coulomb"):
        found(robot, stribeck_recording(robot, rng, 0.1), "lugre")


def test_friction_that_shows_no_dip_leaves_its_velocity_open(robot, rng):
    t, q, qd, qdd = motion(robot, rng)
    tau = sy.inverse_dynamics(robot, q, qd, qdd) + 0.05 * rng.normal(size=q.shape)
    result = found(robot, Recording(t, q, tau, qd, qdd), "stribeck")
    for shape in result.shapes:
        assert shape.at_limit or shape.deviation > 0.2 * shape.value


def test_shapes_read_back_predict_alike_and_stand_below_bodies_that_exist(robot, rng, tmp_path):
    recording = stribeck_recording(robot, rng, 0.02)
    result = estimate(build_problem(robot, recording), sy.Physical(inner=ML(shapes=shapes_named(["stribeck"]))))
    assert result.converged, result.message
    assert not result.invalid
    sy.save_result(result, tmp_path / "r.yaml")
    again = sy.read_result(tmp_path / "r.yaml").estimate
    assert again.shapes == result.shapes
    assert again.model.terms == result.model.terms
    assert np.allclose(again.torque(recording), result.torque(recording), rtol=1e-12, atol=1e-12)
    assert np.sqrt(np.mean((result.torque(recording) - recording.tau) ** 2)) < 0.03


def springy(robot, rng, stiffness, encoders, noise=0.02):
    """What encoders on one side of springs say, and the motors' torque, to the last digit of finite differences."""
    t, q, _, _ = motion(robot, rng, samples=30000)
    dt = t[1] - t[0]

    def rates(x):
        first = np.gradient(x, dt, axis=0, edge_order=2)
        return first, np.gradient(first, dt, axis=0, edge_order=2)

    qd, qdd = rates(q)
    theta = robot.parameters.copy()
    rotor, damping = (theta[robot.layout.block(prop)].copy() for prop in ("armature", "damping"))
    theta[robot.layout.inertial.stop :] = 0.0
    T = sy.inverse_dynamics(robot.with_parameters(theta), q, qd, qdd)
    T = T if encoders == "motor" else T + damping * qd
    motor = q + T / stiffness
    rate, acceleration = rates(motor)
    tau = rotor * acceleration + T + (damping * rate if encoders == "motor" else 0.0)
    seen = (motor, rate, acceleration) if encoders == "motor" else (q, qd, qdd)
    rows = slice(50, -50, 10)
    tau = tau + noise * rng.normal(size=tau.shape)
    return Recording(t[rows], seen[0][rows], tau[rows], seen[1][rows], seen[2][rows])


@pytest.fixture(scope="module")
def sprung():
    robot = sy.load_robot("two_link")
    theta = robot.parameters.copy()
    theta[robot.layout.block("armature")] = 0.5, 0.2
    theta[robot.layout.block("damping")] = 0.4, 0.2
    return robot.with_parameters(theta)


@pytest.mark.parametrize(("word", "encoders"), [("stiffness", "motor"), ("stiffness-link", "link")])
def test_the_stiffness_of_joints_is_found_from_torque_and_one_encoder(sprung, rng, word, encoders):
    truth = np.array([400.0, 150.0])
    result = found(sprung, springy(sprung, rng, truth, encoders), word)
    assert result.converged, result.message
    for shape, K in zip(result.shapes, truth, strict=True):
        assert shape.deviation < 0.25 * K
        assert abs(shape.value - K) < 4 * shape.deviation + 0.02 * K


def test_a_stiff_robot_has_no_stiffness_to_be_found(sprung, rng):
    t, q, qd, qdd = motion(sprung, rng)
    tau = sy.inverse_dynamics(sprung, q, qd, qdd) + 0.02 * rng.normal(size=q.shape)
    result = found(sprung, Recording(t, q, tau, qd, qdd), "stiffness")
    for shape in result.shapes:
        assert shape.at_limit or shape.value - 2 * shape.deviation < 0 or shape.value > 5000.0
