"""One battery for all batch estimators, and the reductions that tie them together."""

import numpy as np
import pytest

import steelyard as sy
from steelyard.data.recording import Recording
from steelyard.dynamics import inverse_dynamics
from steelyard.errors import DataError, OptionError
from steelyard.identification.conclude import estimate
from steelyard.identification.estimators import ESTIMATORS, IRLS, MAP, ML, OLS, TLS, WLS, Ridge
from steelyard.identification.model import Experiment, Load
from steelyard.identification.problem import build_problem

BATCH = {
    "OLS": OLS(),
    "WLS": WLS(),
    "WLS-full": WLS(noise="full"),
    "WLS-coloured": WLS(noise="coloured"),
    "IRLS-huber": IRLS(),
    "IRLS-tukey": IRLS(loss="tukey"),
    # Told how much smaller the regressor's errors are than the torque's; it assumes them alike otherwise.
    "TLS": TLS(regressor_noise=1e-3),
    "ML": ML(),
    "MAP": MAP(),
    "Ridge": Ridge(),
}
every_method = pytest.mark.parametrize("method", BATCH.values(), ids=BATCH)


def motion(robot, rng, samples=600, seconds=6.0):
    t = np.linspace(0.0, seconds, samples)
    w = rng.uniform(0.5, 4.0, (robot.n, 5))
    a = rng.uniform(0.1, 0.5, (robot.n, 5))
    phase = w * t[:, None, None] + rng.uniform(0, 6, (robot.n, 5))
    q, qd, qdd = (a * np.sin(phase)).sum(-1), (a * w * np.cos(phase)).sum(-1), -(a * w**2 * np.sin(phase)).sum(-1)
    return t, q, qd, qdd


@pytest.fixture(scope="module")
def robot():
    return sy.load_robot("two_link", friction=("coulomb", "offset"))


@pytest.fixture(scope="module")
def off(robot):
    """The same robot with parameters 15 % wrong."""
    rng = np.random.default_rng(3)
    return robot.with_parameters(robot.parameters * (1 + 0.15 * rng.normal(size=robot.layout.size)))


def recording_of(robot, rng, noise=0.0, samples=600):
    t, q, qd, qdd = motion(robot, rng, samples)
    tau = inverse_dynamics(robot, q, qd, qdd)
    level = noise * np.sqrt(np.mean(tau**2, axis=0))
    return Recording(t, q, tau + level * rng.normal(size=tau.shape), qd, qdd)


@every_method
def test_without_noise_every_estimator_recovers_the_truth(robot, off, method, rng):
    problem = build_problem(off, recording_of(robot, rng))
    found = estimate(problem, method)
    truth = problem.model.base.reduce(problem.model.robot.with_parameters(robot.parameters).parameters)
    # Rounding of a regression of condition below 1000; the prior of MAP and Ridge is chosen away by the data.
    np.testing.assert_allclose(found.base_parameters, truth, atol=1e-7 * np.abs(truth).max())
    assert found.converged, found.message


@every_method
def test_deviations_are_true_over_200_seeds(robot, off, method):
    rng = np.random.default_rng(11)
    t, q, qd, qdd = motion(robot, rng, 240)
    tau = inverse_dynamics(robot, q, qd, qdd)
    level = 0.01 * np.sqrt(np.mean(tau**2, axis=0)) * np.array([1.0, 3.0])
    scores = []
    for _ in range(200):
        problem = build_problem(off, Recording(t, q, tau + level * rng.normal(size=tau.shape), qd, qdd))
        found = estimate(problem, method)
        truth = problem.model.base.reduce(robot.parameters)
        scores.append((found.base_parameters - truth) / found.base_deviation)
    # A root mean square of 200 correlated draws of a dozen parameters scatters by about 3 %; the few dozen residuals
    # that MAD and autoregressions are estimated from add to it.
    # A prior that is right on average makes errors smaller than the deviations.
    assert (0.5 if isinstance(method, MAP | Ridge) else 0.88) < np.sqrt(np.mean(np.square(scores))) < 1.14


@every_method
def test_every_estimator_names_what_the_data_do_not_show(robot, method, rng):
    t, q, qd, qdd = motion(robot, rng)
    still = q.copy()
    still[:, 1], qd[:, 1], qdd[:, 1] = 0.3, 0.0, 0.0
    tau = inverse_dynamics(robot, still, qd, qdd)
    problem = build_problem(robot, Recording(t, still, tau + 1e-3 * rng.normal(size=tau.shape), qd, qdd))
    found = estimate(problem, method)
    assert found.data_set.rank < found.data_set.base_rank
    if isinstance(method, MAP | Ridge):
        assert "prior" in found.message or "leans on the model" in found.message
        return
    assert "the data show" in found.message
    assert np.isinf(found.base_deviation).any()
    blind = found.blind
    gone = np.linalg.lstsq(blind, found.base_parameters - problem.nominal, rcond=None)[0]
    assert np.abs(gone).max() < 0.05 * np.linalg.norm(problem.nominal)


@every_method
def test_too_few_rows_are_refused(robot, method, rng):
    t, q, qd, qdd = motion(robot, rng, 4)
    with pytest.raises(DataError, match="base parameters; record for longer"):
        estimate(build_problem(robot, Recording(t, q, np.zeros_like(q), qd, qdd)), method)


@every_method
def test_numbers_that_are_not_are_refused(robot, method, rng):
    t, q, qd, qdd = motion(robot, rng)
    tau = inverse_dynamics(robot, q, qd, qdd)
    tau[7, 1] = np.nan
    with pytest.raises(DataError, match="not finite"):
        estimate(build_problem(robot, Recording(t, q, tau, qd, qdd)), method)


def test_wls_whose_joints_are_alike_is_ols(robot, off, rng):
    problem = build_problem(off, recording_of(robot, rng, 0.01))
    A, y = problem.stacked(np.full(robot.n, 3.7))
    ols = estimate(problem, OLS()).base_parameters
    np.testing.assert_allclose(np.linalg.lstsq(A, y, rcond=None)[0], ols, rtol=1e-9, atol=1e-11)


def test_ml_of_a_linear_model_is_wls(robot, off, rng):
    problem = build_problem(off, recording_of(robot, rng, 0.01))
    wls, ml = estimate(problem, WLS(repeats=200, tolerance=1e-12)), estimate(problem, ML())
    np.testing.assert_allclose(ml.base_parameters, wls.base_parameters, rtol=1e-6, atol=1e-9)


def test_map_with_a_flat_prior_is_ml(robot, off, rng):
    problem = build_problem(off, recording_of(robot, rng, 0.01))
    flat, ml = estimate(problem, MAP(relative=1e4)), estimate(problem, ML())
    np.testing.assert_allclose(flat.base_parameters, ml.base_parameters, rtol=1e-4, atol=1e-6)


def test_ols_with_a_small_ridge_by_ldl_is_ols(robot, off, rng):
    problem = build_problem(off, recording_of(robot, rng, 0.01))
    # The ridge of the seed, 1e-6, moves parameters by about 1e-6 over the smallest eigenvalue.
    np.testing.assert_allclose(
        estimate(problem, OLS(ridge=1e-6)).base_parameters,
        estimate(problem, OLS()).base_parameters,
        rtol=1e-4,
        atol=1e-5,
    )


def test_the_factor_equals_numpy_on_the_whole_matrix(robot, off, rng):
    recording = recording_of(robot, rng, 0.02)
    problem = build_problem(off, recording)
    block = problem.model.rows(recording)
    W, tau = block.W.reshape(-1, problem.rank), block.tau.ravel()
    np.testing.assert_allclose(
        estimate(problem, OLS()).base_parameters, np.linalg.lstsq(W, tau, rcond=None)[0], rtol=1e-8, atol=1e-10
    )
    e = tau - W @ problem.nominal
    assert problem.factors.squares(problem.nominal).sum() == pytest.approx(e @ e, rel=1e-10)


def test_classical_tls_is_the_singular_vector_of_the_whole_matrix(robot, off, rng):
    recording = recording_of(robot, rng, 0.01)
    problem = build_problem(off, recording)
    block = problem.model.rows(recording)
    Z = np.column_stack([block.W.reshape(-1, problem.rank), block.tau.ravel()])
    v = np.linalg.svd(Z, full_matrices=False)[2][-1]
    found = estimate(problem, TLS(scaling="none", exact=(), weighted=False))
    np.testing.assert_allclose(found.base_parameters, -v[:-1] / v[-1], rtol=1e-6, atol=1e-9)


def test_gross_outliers_hurt_ols_and_not_irls(robot, off, rng):
    clean = recording_of(robot, rng, 0.01)
    tau = clean.tau.copy()
    hit = rng.random(tau.shape) < 0.05
    tau[hit] += 20.0 * np.sqrt(np.mean(tau**2))
    dirty = Recording(clean.t, clean.q, tau, clean.qd, clean.qdd)
    truth = build_problem(off, clean).model.base.reduce(robot.parameters)

    def error(recording, method):
        return np.linalg.norm(estimate(build_problem(off, recording), method).base_parameters - truth)

    reference = error(clean, WLS())
    assert error(dirty, OLS()) > 5 * reference
    assert error(dirty, IRLS(loss="tukey")) < 1.5 * reference + 1e-9
    assert error(dirty, IRLS()) < 3.0 * reference


def test_coloured_residuals_make_honest_deviations_longer(robot, off):
    """Residuals that remember: white formulas claim too much, ours do not."""
    rng = np.random.default_rng(5)
    t, q, qd, qdd = motion(robot, rng, 800)
    tau = inverse_dynamics(robot, q, qd, qdd)
    z, claimed = [], []
    for _ in range(60):
        noise = rng.normal(size=tau.shape)
        for k in range(1, len(noise)):
            noise[k] += 0.9 * noise[k - 1]
        problem = build_problem(off, Recording(t, q, tau + 0.02 * noise, qd, qdd))
        found = estimate(problem, OLS())
        error = found.base_parameters - problem.model.base.reduce(robot.parameters)
        white = np.sqrt(np.diag(np.linalg.inv(problem.stacked()[0].T @ problem.stacked()[0])))
        level = np.mean([joint.noise for joint in found.residuals])
        z.append(error / found.base_deviation)
        claimed.append(error / (level * white))
    assert np.sqrt(np.mean(np.square(claimed))) > 1.8
    assert 0.8 < np.sqrt(np.mean(np.square(z))) < 1.25


def test_a_known_payload_is_taken_off(robot, rng):
    """With and without a load: the arm's parameters come out the same."""
    body = robot.layout.bodies[-1]
    load = np.array([1.0, 0.1, 0.02, 0.0, 0.02, 0, 0, 0.03, 0, 0.03])
    theta = robot.parameters.copy()
    theta[robot.layout.body(body)] += load
    empty, loaded = recording_of(robot, rng), recording_of(robot.with_parameters(theta), rng)
    problem = build_problem(robot, [empty, Experiment(loaded, Load(body, load))])
    np.testing.assert_allclose(estimate(problem, OLS()).base_parameters, problem.nominal, atol=1e-9)


def test_an_unknown_payload_is_found_beside_the_arm(robot, off, rng):
    body = robot.layout.bodies[-1]
    load = np.array([1.0, 0.1, 0.02, 0.0, 0.02, 0, 0, 0.03, 0, 0.03])
    theta = robot.parameters.copy()
    theta[robot.layout.body(body)] += load
    empty, loaded = recording_of(robot, rng), recording_of(robot.with_parameters(theta), rng)
    problem = build_problem(off, [empty, Experiment(loaded, Load(body))])
    found = estimate(problem, WLS())
    model = problem.model
    whole = np.concatenate([robot.parameters, load])
    np.testing.assert_allclose(found.base_parameters, model.base.reduce(whole), atol=1e-8)


def test_fixed_parameters_stay(robot, off, rng):
    name = f"{robot.dof_names[0]}.damping"
    value = float(robot.parameters[robot.layout.index(name)])
    problem = build_problem(off, recording_of(robot, rng), fixed={name: value})
    found = estimate(problem, OLS())
    k = robot.layout.index(name)
    assert found.parameters[k] == value
    assert found.deviation[k] == 0.0
    np.testing.assert_allclose(found.base_parameters, problem.model.base.reduce(robot.parameters), atol=1e-8)


def test_a_stream_of_blocks_equals_the_whole_recording(robot, off, rng):
    recording = recording_of(robot, rng, 0.01, 5000)
    pieces = [recording.between(k, k + 700) for k in range(0, 5000, 700)]
    whole = estimate(build_problem(off, recording), WLS())
    streamed = estimate(build_problem(off, [lambda: iter(pieces)]), WLS())
    np.testing.assert_allclose(streamed.base_parameters, whole.base_parameters, rtol=1e-9, atol=1e-12)


BAD = {
    "ridge": lambda: OLS(ridge=-1.0),
    "noise": lambda: WLS(noise="pink"),
    "loss": lambda: IRLS(loss="median"),
    "scaling": lambda: TLS(scaling="x"),
    "prior": lambda: MAP(relative=0.0),
    "strength": lambda: Ridge(strength=-1.0),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_settings_are_checked(bad):
    with pytest.raises(OptionError):
        bad()


def test_every_estimator_has_its_name():
    assert all(cls().name == name for name, cls in ESTIMATORS.items())
