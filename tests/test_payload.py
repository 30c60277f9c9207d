"""Loads that a robot carries: by difference and jointly, against loads that were put on it."""

import json

import numpy as np
import pytest
from scipy.optimize import least_squares
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli.main import app
from steelyard.data.recording import Recording
from steelyard.errors import DataError, OptionError
from steelyard.evaluation.payload import WeighingPlan, weigh
from steelyard.identification.model import Experiment, Load
from steelyard.identification.payload import evidence
from steelyard.robot.inertia import from_mass_com_inertia
from steelyard.robot.payload import with_payload

MASS, CENTRE = 1.5, np.array([0.02, -0.01, 0.08])
INERTIA = np.array([[0.010, 0.001, 0.0], [0.001, 0.012, -0.002], [0.0, -0.002, 0.006]])


def moved(robot, samples=900, slow=1.0, seed=2):
    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, 9.0, samples)
    w = slow * rng.uniform(0.5, 4.0, (robot.n, 5))
    a = rng.uniform(0.1, 0.5, (robot.n, 5))
    phase = w * t[:, None, None] + rng.uniform(0, 6, (robot.n, 5))
    return t, (a * np.sin(phase)).sum(-1), (a * w * np.cos(phase)).sum(-1), -(a * w**2 * np.sin(phase)).sum(-1)


def recorded(robot, noise=0.0, rng=None, **motion):
    t, q, qd, qdd = moved(robot, **motion)
    tau = sy.inverse_dynamics(robot, q, qd, qdd)
    if noise:
        tau = tau + noise * rng.normal(size=tau.shape)
    return Recording(t, q, tau, qd, qdd)


@pytest.fixture(scope="module")
def arm():
    return sy.load_robot("panda", friction=("coulomb", "offset"))


@pytest.fixture(scope="module")
def off(arm):
    """The same robot with a wrong idea of itself."""
    rng = np.random.default_rng(3)
    return arm.with_parameters(arm.parameters * (1 + 0.1 * rng.normal(size=arm.layout.size)))


@pytest.fixture(scope="module")
def loaded(arm):
    return with_payload(arm, "hand", MASS, CENTRE, INERTIA)


def assert_is_the_load(found, rtol=1e-6):
    assert found.mass == pytest.approx(MASS, rel=rtol)
    np.testing.assert_allclose(found.centre, CENTRE, atol=rtol)
    np.testing.assert_allclose(found.inertia, INERTIA, atol=rtol)
    assert not found.invalid


@pytest.mark.parametrize("physical", [False, True])
def test_without_noise_the_load_comes_back_jointly_from_a_wrong_model(off, arm, loaded, physical):
    found = sy.identify_payload(
        off, recorded(loaded, seed=4), "hand", unloaded=recorded(arm), preprocessing=None, physical=physical
    )
    # Rounding of a regression with a condition of some hundreds; the cone's solver ends at 1e-9 of its objective.
    assert_is_the_load(found, 1e-5)


def test_without_noise_the_load_comes_back_by_difference_to_a_result(off, arm, loaded):
    empty = sy.identify(off, recorded(arm), "WLS", preprocessing=None)
    assert_is_the_load(sy.identify_payload(off, recorded(loaded, seed=4), "hand", arm=empty, preprocessing=None), 1e-5)


def test_by_difference_to_the_model_friction_may_be_wrong(arm, loaded):
    theta = arm.parameters.copy()
    friction = [k for k, name in enumerate(arm.parameter_names) if name.endswith(("damping", "coulomb", "offset"))]
    theta[friction] += 0.3
    found = sy.identify_payload(arm.with_parameters(theta), recorded(loaded), "hand", preprocessing=None)
    assert_is_the_load(found, 1e-6)


def quantities(found):
    entries = np.triu_indices(3)
    value = np.concatenate([[found.mass], found.centre, found.inertia[entries]])
    deviation = np.concatenate([[found.mass_deviation], found.centre_deviation, found.inertia_deviation[entries]])
    return value, deviation


@pytest.mark.parametrize("jointly", [True, False])
def test_deviations_are_true_over_seeds_and_know_of_the_unsure_arm(off, arm, loaded, jointly):
    rng = np.random.default_rng(5)
    truth = np.concatenate([[MASS], CENTRE, INERTIA[np.triu_indices(3)]])
    z = []
    for _ in range(12):
        # The empty arm moves for less time: most of the error by difference is the arm's.
        empty = recorded(arm, 0.05, rng, samples=300)
        full = recorded(loaded, 0.05, rng, samples=500, seed=4)
        how = (
            {"unloaded": empty}
            if jointly
            else {"arm": sy.identify(off, empty, "WLS", preprocessing=None)}
        )  # fmt: skip
        value, deviation = quantities(sy.identify_payload(off, full, "hand", preprocessing=None, **how))
        z.append((value - truth) / deviation)
    # 120 scores, of which about half are independent, scatter by about 10 %.
    assert 0.75 < np.sqrt(np.mean(np.square(z))) < 1.3


def test_a_point_mass_is_what_scipy_finds_on_the_same_evidence(arm):
    rng = np.random.default_rng(6)
    point = with_payload(arm, "hand", MASS, CENTRE)
    found = sy.identify_payload(arm, recorded(point, 0.1, rng), "hand", assume="point", preprocessing=None)
    ten = sy.identify_payload(arm, recorded(point, 0.1, np.random.default_rng(6)), "hand", preprocessing=None)
    data = evidence(ten.estimate)

    def left(x):
        return data.A @ from_mass_com_inertia(x[0], x[1:], np.zeros((3, 3))) - data.b

    scipy = least_squares(left, [1.0, 0.0, 0.0, 0.0], xtol=1e-14, ftol=1e-14, gtol=1e-14, x_scale="jac")
    np.testing.assert_allclose([found.mass, *found.centre], scipy.x, rtol=1e-6)
    deviation = np.sqrt(np.diag(np.linalg.inv(scipy.jac.T @ scipy.jac)))
    # SciPy's Jacobian is by forward differences.
    np.testing.assert_allclose([found.mass_deviation, *found.centre_deviation], deviation, rtol=1e-4)
    assert found.surplus == pytest.approx(2 * scipy.cost, rel=1e-6)


def test_a_point_is_contradicted_where_the_load_is_wide(arm, loaded):
    rng = np.random.default_rng(7)
    found = sy.identify_payload(arm, recorded(loaded, 0.02, rng), "hand", assume="point", preprocessing=None)
    assert found.surplus > 10 * found.surplus_freedom


def test_the_mass_alone_at_a_known_place(arm):
    point = with_payload(arm, "hand", MASS, CENTRE)
    found = sy.identify_payload(arm, recorded(point), "hand", assume="mass", centre=CENTRE, preprocessing=None)
    assert found.mass == pytest.approx(MASS, rel=1e-8)
    assert (found.inertia_deviation == 0).all()


def test_what_poses_do_not_show_has_no_deviation(arm, loaded):
    """Standing poses: gravity shows mass and centre, and no inertia."""
    rng = np.random.default_rng(8)
    t, q, qd, _ = moved(loaded)
    still = np.zeros_like(qd)
    tau = sy.inverse_dynamics(loaded, q, still, still)
    poses = Recording(t, q, tau + 0.01 * rng.normal(size=tau.shape), still, still)
    found = sy.identify_payload(arm.with_layout(properties=()), poses, "hand", preprocessing=None)
    assert found.mass == pytest.approx(MASS, abs=4 * found.mass_deviation)
    np.testing.assert_array_less(np.abs(found.centre - CENTRE), 4 * found.centre_deviation)
    assert np.isinf(found.inertia_deviation).all()


def test_a_load_that_noise_made_impossible_is_made_possible(arm):
    rng = np.random.default_rng(9)
    point = with_payload(arm, "hand", 0.3, (0.0, 0.0, 0.05))
    recording = recorded(point, 0.3, rng)
    plain = sy.identify_payload(arm, recording, "hand", preprocessing=None)
    assert plain.invalid
    found = sy.identify_payload(arm, recording, "hand", preprocessing=None, physical=True)
    assert not found.invalid
    # The truth is possible, so that the way to it from the estimate is longer, and that is noise.
    data = evidence(plain.estimate)
    truth = from_mass_com_inertia(0.3, np.array([0.0, 0.0, 0.05]), np.zeros((3, 3)))
    farther = np.sum((data.A @ truth - data.b) ** 2) - np.sum((data.A @ plain.parameters - data.b) ** 2)
    assert plain.impossible_by <= farther * (1 + 1e-6)


def test_the_result_holds_the_load_and_predicts_with_it(off, arm, loaded):
    recording = recorded(loaded, seed=4)
    found = sy.identify_payload(off, recording, "hand", unloaded=recorded(arm), preprocessing=None)
    with_load = found.estimate.torque(recording, Load("hand"))
    np.testing.assert_allclose(with_load, recording.tau, atol=1e-6)
    # The load as a known one says the same.
    known = found.estimate.torque(recording, found.load)
    np.testing.assert_allclose(known, recording.tau, atol=1e-6)


def test_a_load_that_is_not_there_is_not_found(arm):
    rng = np.random.default_rng(10)
    plan = WeighingPlan(body="hand", preprocessing=None, delay=0.0)
    found = weigh(arm, [recorded(arm, 0.1, rng)], plan)
    assert not found.told
    assert "told from none" in found.verdict


def test_misuse_is_said(arm, loaded):
    recording = recorded(loaded, samples=50)
    with pytest.raises(OptionError, match="identified body"):
        sy.identify_payload(arm, recording, "hnad", preprocessing=None)
    with pytest.raises(OptionError, match="assumption"):
        sy.identify_payload(arm, recording, "hand", assume="cube", preprocessing=None)
    with pytest.raises(OptionError, match="point mass can always exist"):
        sy.identify_payload(arm, recording, "hand", assume="point", physical=True, preprocessing=None)
    with pytest.raises(DataError, match="needs its own qd and qdd"):
        sy.identify_payload(arm, Recording(recording.t, recording.q, recording.tau), "hand", preprocessing=None)


def test_the_command_weighs_and_writes_a_result_that_reads_back(tmp_path, arm, loaded, monkeypatch):
    monkeypatch.setenv("STEELYARD_QUIET", "1")
    rng = np.random.default_rng(11)
    full, empty = (recorded(robot, 0.05, rng, seed=s) for robot, s in ((loaded, 4), (arm, 2)))
    for name, recording in (("full", full), ("empty", empty)):
        sy.save_recording(recording, tmp_path / f"{name}.npz")
    common = ["payload", str(tmp_path / "full.npz"), "--body", "hand"]
    jointly = [*common, "--model", "panda", "--unloaded", str(tmp_path / "empty.npz"), "-o", str(tmp_path / "r.yaml")]
    answer = CliRunner().invoke(app, [*jointly, "--json"], catch_exceptions=False)
    said = json.loads(answer.stdout)
    assert abs(said["mass"]["value"] - MASS) < 5 * said["mass"]["deviation"] < 0.1
    assert said["relative_torque_error"] < 0.3 * said["relative_torque_error_without"]
    saved = sy.read_result(tmp_path / "r.yaml")
    assert saved.estimate.parameters[-10] == said["mass"]["value"]
    sy.save_result(sy.identify(arm, empty, "WLS"), tmp_path / "arm.yaml")
    by_difference = [*common, "--result", str(tmp_path / "arm.yaml"), "--mass-com"]
    answer = CliRunner().invoke(app, by_difference, catch_exceptions=False)
    assert answer.exit_code == 0
    assert "difference to the identified arm" in answer.stdout
    with pytest.raises(OptionError, match="choose one"):
        CliRunner().invoke(app, [*jointly, "--result", str(tmp_path / "arm.yaml")], catch_exceptions=False)


def test_experiments_may_be_given_as_such(arm, loaded):
    found = sy.identify(arm, [Experiment(recorded(loaded), Load("hand"))], "OLS", preprocessing=None)
    assert found.names[-10] == "payload.m"
