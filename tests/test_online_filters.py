"""Kalman filters of every kind: what they must equal, and whether they are right about themselves."""

import numpy as np
import pytest
from scipy.linalg import expm, solve_discrete_are
from scipy.stats import chi2

import steelyard as sy
from steelyard.identification.online import kalman, particles, recursive, sigma_points, square_root
from steelyard.identification.online.kalman import Gaussian, Model
from steelyard.identification.online.sigma_points import CentralDifferences, Derivatives, Unscented

RULES = (Derivatives(), Unscented(), CentralDifferences())


def textbook(F, H, Q, R, mean, P, zs):
    """The Kalman filter as in any book."""
    for z in zs:
        mean, P = F @ mean, F @ P @ F.T + Q
        K = P @ H.T @ np.linalg.inv(H @ P @ H.T + R)
        mean, P = mean + K @ (z - H @ mean), (np.eye(len(P)) - K @ H) @ P
    return mean, P


@pytest.fixture
def oscillator(rng):
    F = expm(0.05 * np.array([[0, 1, 0], [-4, -0.3, 1], [0, 0, -0.1]]))
    H = np.array([[1.0, 0, 0], [0, 1.0, 0.5]])
    Q, R = np.diag([1e-5, 1e-3, 1e-3]) + 1e-4 * np.ones((3, 3)), np.array([[0.04, 0.01], [0.01, 0.09]])
    return F, H, Q, R, rng.normal(size=(120, 2))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_every_filter_of_a_linear_system_is_the_kalman_filter(oscillator, rule):
    """Rounding alone parts them: sigma points of α = 0.1 divide differences of 1e-16 by γ ≈ 0.17."""
    *system, zs = oscillator
    mean, P = textbook(*system, np.zeros(3), np.eye(3), zs)
    model = kalman.linear_model(*system)
    plain = Gaussian(np.zeros(3), np.eye(3))
    extended, root = plain, square_root.from_gaussian(plain)
    for z in zs:
        extended, _ = kalman.step(model, extended, z)
        plain, _ = sigma_points.step(rule, model, plain, z)
        root, _ = square_root.step(rule, model, root, z)
    for state in (extended, plain, root):
        np.testing.assert_allclose(state.mean, mean, atol=1e-11)
        np.testing.assert_allclose(state.covariance, P, atol=1e-12)


def test_the_steady_covariance_is_scipys_riccati_solution(oscillator):
    F, H, Q, R, _ = oscillator
    model, state = kalman.linear_model(F, H, Q, R), Gaussian(np.zeros(3), np.eye(3))
    for _ in range(3000):
        state = kalman.predict(model, kalman.update(model, state, np.zeros(2))[0])
    np.testing.assert_allclose(state.covariance, solve_discrete_are(F.T, H.T, Q, R), rtol=1e-8)


def pendulum(noise=0.05):
    """Angle, rate and the unknown g/l of a pendulum whose angle's sine is seen."""
    h = 0.02

    def f(x, u):
        q, v, w = x[..., 0], x[..., 1], x[..., 2]
        return np.stack([q + h * v, v - h * w * np.sin(q), w], axis=-1)

    def seen(x, u):
        return np.stack([np.sin(x[..., 0]), np.cos(x[..., 0])], axis=-1)

    return Model(f, seen, np.diag([1e-8, 1e-4, 1e-8]), noise**2 * np.eye(2), many=True)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_square_root_forms_equal_the_plain_ones_on_a_pendulum(rng, rule):
    model, plain = pendulum(), Gaussian(np.array([1.0, 0.0, 8.0]), np.diag([0.1, 0.1, 2.0]))
    root = square_root.from_gaussian(plain)
    for _ in range(300):
        z = rng.normal(size=2)
        if isinstance(rule, Derivatives):
            plain, _ = kalman.step(model, plain, z)
        else:
            plain, _ = sigma_points.step(rule, model, plain, z)
        root, _ = square_root.step(rule, model, root, z)
    np.testing.assert_allclose(root.mean, plain.mean, atol=1e-8)
    np.testing.assert_allclose(root.covariance, plain.covariance, atol=1e-8)


def test_the_unscented_form_without_a_negative_weight_is_the_usual_one(rng):
    n, alpha, beta, kappa = 4, 0.1, 2.0, 0.0
    mean, A = rng.normal(size=n), rng.normal(size=(n, n))
    root = np.linalg.cholesky(A @ A.T)
    function = lambda x, u: np.stack([np.sin(x[..., 0]) * x[..., 1], x[..., 2] ** 2 + x[..., 3]], axis=-1)  # noqa: E731
    spread = alpha**2 * (n + kappa)
    points = np.vstack([mean, mean + np.sqrt(spread) * root.T, mean - np.sqrt(spread) * root.T])
    weights = np.full(2 * n + 1, 0.5 / spread)
    weights[0] = (spread - n) / spread
    y = function(points, None)
    centre = weights @ y
    weights_c = weights.copy()
    weights_c[0] += 1 - alpha**2 + beta
    seen = Unscented(alpha, beta, kappa).see(function, None, mean, root, None, True)
    np.testing.assert_allclose(seen.mean, centre, atol=1e-11)
    np.testing.assert_allclose(
        seen.C @ seen.C.T + seen.E @ seen.E.T, ((y - centre).T * weights_c) @ (y - centre), atol=1e-10
    )
    np.testing.assert_allclose(root @ seen.C.T, ((points - mean).T * weights_c) @ (y - centre), atol=1e-10)


def test_sigma_points_have_the_mean_of_a_square_and_derivatives_do_not():
    """E[x²] = x̄² + σ² exactly; the extended filter sees x̄²."""
    function = lambda x, u: x**2  # noqa: E731
    slope = lambda x, u: np.array([[2 * x[0]]])  # noqa: E731
    for rule, wanted in zip(RULES, (9.0, 9.25, 9.25), strict=True):
        seen = rule.see(function, slope, np.array([3.0]), np.array([[0.5]]), None, True)
        assert seen.mean[0] == pytest.approx(wanted, abs=1e-12)
    # And the central differences its variance too, 4 x̄²σ² + 2 σ⁴, because h² is the kurtosis.
    assert (seen.C @ seen.C.T + seen.E @ seen.E.T)[0, 0] == pytest.approx(4 * 9 * 0.25 + 2 * 0.25**2, rel=1e-12)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_errors_are_as_large_as_the_filter_says_over_200_seeds(rule):
    """NEES averaged over N runs is χ²(N n)/N if the filter is consistent; the band is two-sided 99.9 %."""
    model, runs, ends = pendulum(), 200, []
    root_Q, root_R = square_root.noise_root(model.process_noise), square_root.noise_root(model.measurement_noise)
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        begin = Gaussian(np.array([1.0, 0.0, 8.0]), np.diag([0.01, 0.01, 0.5]))
        truth = begin.mean + np.sqrt(np.diag(begin.covariance)) * rng.normal(size=3)
        state = square_root.from_gaussian(begin)
        for _ in range(60):
            truth = model.transition(truth, None) + root_Q @ rng.normal(size=3)
            z = model.measurement(truth, None) + root_R @ rng.normal(size=2)
            state, _ = square_root.step(rule, model, state, z)
        error = truth - state.mean
        ends.append(error @ np.linalg.solve(state.covariance, error))
    low, high = chi2.ppf([0.0005, 0.9995], 3 * runs) / runs
    assert low < np.mean(ends) < high


def test_parameters_alone_in_the_extended_filter_are_recursive_least_squares(rng):
    """P0 = 100 I, R = 0.1, Q = 0: the filter of many texts is RLS under another name."""
    rows, values = rng.normal(size=(60, 2, 4)), rng.normal(size=(60, 2))
    state = Gaussian(np.zeros(4), 100.0 * np.eye(4))
    for phi, y in zip(rows, values, strict=True):
        state, _ = kalman.step(kalman.linear_model(np.eye(4), phi, np.zeros((4, 4)), 0.1 * np.eye(2)), state, y)
    wanted = recursive.update(recursive.start(np.zeros(4), 10.0, 2), rows, values, np.sqrt(0.1))
    np.testing.assert_allclose(state.mean, wanted.estimate, atol=1e-10)
    np.testing.assert_allclose(state.covariance, wanted.covariance, atol=1e-10)


def test_contact_stiffness_and_damping_are_found_with_the_same_core(rng):
    """F = k (x − x_e) + b ẋ is linear in (k, b, −k x_e): the textbook's exercise, by RLS and by the extended filter."""
    t = np.arange(0, 4, 1e-3)
    x, v = 0.01 * np.sin(3 * t) + 0.002 * np.sin(17 * t), 0.03 * np.cos(3 * t) + 0.034 * np.cos(17 * t)
    k, b, wall = 2000.0, 15.0, 0.004
    force = k * (x - wall) + b * v + 0.1 * rng.normal(size=t.size)
    rows = np.stack([x, v, np.ones_like(x)], axis=1)[:, None]
    state = recursive.update(recursive.start(np.zeros(3), [1e4, 1e3, 1e2]), rows, force[:, None], 0.1)
    np.testing.assert_allclose(state.estimate, [k, b, -k * wall], rtol=5e-3)
    model = Model(
        lambda s, u: s,
        lambda s, u: np.array([s[0] * (u[0] - s[2]) + s[1] * u[1]]),
        np.zeros((3, 3)),
        np.array([[0.01]]),
    )
    found = Gaussian(np.array([1500.0, 0.0, 0.003]), np.diag([500.0**2, 30.0**2, 1e-6]))
    for position, speed, F in zip(x, v, force, strict=True):
        found, _ = kalman.update(model, found, np.array([F]), (position, speed))
    np.testing.assert_allclose(found.mean, [k, b, wall], rtol=2e-2)


def test_particles_have_the_kalman_mean_of_a_linear_system(oscillator):
    """2,000 particles that forget as fast as the filter does leave an error of about √(tr P/2000); five are allowed."""
    F, H, Q, R, _ = oscillator
    model, rng, truth, zs = kalman.linear_model(F, H, Q, R), np.random.default_rng(5), np.zeros(3), []
    for _ in range(40):
        truth = F @ truth + np.linalg.cholesky(Q) @ rng.normal(size=3)
        zs.append(H @ truth + np.linalg.cholesky(R) @ rng.normal(size=2))
    state = Gaussian(np.zeros(3), np.eye(3))
    cloud = particles.start(np.zeros(3), np.eye(3), 2000, np.random.default_rng(3))
    for z in zs:
        state, _ = kalman.step(model, state, z)
        cloud = particles.step(model, cloud, z)
    assert np.linalg.norm(cloud.mean - state.mean) < 5 * np.sqrt(np.trace(state.covariance) / 2000)
    assert np.trace(cloud.covariance) == pytest.approx(np.trace(state.covariance), rel=0.25)


def test_25_particles_a_parameter_know_what_a_kalman_filter_knows_in_many_dimensions():
    """40 dimensions, seen three numbers at a time: resampled by chance alone such a cloud dies at once."""
    n, rng = 40, np.random.default_rng(4)
    theta = rng.normal(size=n)
    cloud, P = particles.start(np.zeros(n), np.eye(n), 25 * n, np.random.default_rng(3)), np.eye(n)
    for _ in range(40):
        W = rng.normal(size=(3, n)) / np.sqrt(n)
        model = kalman.linear_model(np.eye(n), W, np.zeros((n, n)), 1e-4 * np.eye(3))
        cloud = particles.step(model, cloud, W @ theta + 0.01 * rng.normal(size=3))
        P = np.linalg.inv(np.linalg.inv(P) + 1e4 * W.T @ W)
        assert np.sqrt(np.trace(cloud.covariance) / np.trace(P)) == pytest.approx(1.0, abs=0.5)
    deviations = np.linalg.solve(np.linalg.cholesky(cloud.covariance), cloud.mean - theta)
    assert np.sqrt(np.mean(deviations**2)) < 2.0


def test_systematic_resampling_keeps_each_particle_as_often_as_its_weight_says(rng):
    weights = rng.dirichlet(np.ones(50))
    counts = np.bincount(particles.systematic(weights, rng.random()), minlength=50)
    assert counts.sum() == 50
    assert (np.abs(counts - 50 * weights) < 1).all()


def test_a_particle_step_can_be_redone_bit_for_bit(oscillator):
    *system, zs = oscillator
    model = kalman.linear_model(*system)
    cloud = particles.start(np.zeros(3), np.eye(3), 100, np.random.default_rng(1))
    for z in zs[:5]:
        cloud = particles.step(model, cloud, z)
    again, once = particles.step(model, cloud, zs[5]), particles.step(model, cloud, zs[5])
    assert np.array_equal(again.particles, once.particles)


def test_a_covariance_root_is_the_triangle_of_its_blocks(rng):
    A, B = rng.normal(size=(4, 3)), rng.normal(size=(4, 5))
    L = square_root.triangle(A, B)
    assert np.allclose(L, np.tril(L))
    np.testing.assert_allclose(L @ L.T, A @ A.T + B @ B.T, atol=1e-13)


def test_what_cannot_be_meant_is_refused():
    with pytest.raises(sy.OptionError, match="beta"):
        Unscented(alpha=1.0, beta=0.5)
    with pytest.raises(sy.OptionError, match="at least 1"):
        CentralDifferences(h=0.5)
    with pytest.raises(sy.DataError, match="positive definite"):
        sigma_points.root_of(-np.eye(2))
