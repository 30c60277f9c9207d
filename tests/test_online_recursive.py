"""Recursive least squares: equal to the batch, and steady for ever."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import steelyard as sy
from steelyard.identification.online import recursive


def batch(rows, values, noise, start, deviation):
    """The minimiser of the weighted squares and the prior, by NumPy's least squares."""
    m, p = rows.shape[-2:]
    weights = np.tile(1.0 / np.broadcast_to(noise, m), len(rows))
    A = np.vstack([rows.reshape(-1, p) * weights[:, None], np.eye(p) / deviation])
    b = np.concatenate([values.ravel() * weights, start / deviation])
    return np.linalg.lstsq(A, b, rcond=None)[0], np.linalg.inv(A.T @ A)


def panda_rows(rng, count):
    robot = sy.load_robot("panda", friction=("coulomb",))
    base = sy.base_parameters(robot)
    states = [rng.normal(size=(count, robot.n)) for _ in range(3)]
    return base.columns(sy.regressor(robot, *states)), base.reduce(robot.parameters)


def test_without_forgetting_it_is_batch_least_squares_on_a_panda(rng):
    rows, beta = panda_rows(rng, 300)
    noise = np.linspace(0.1, 1.0, 7)
    values = rows @ beta + noise * rng.normal(size=rows.shape[:2])
    state = recursive.start(np.zeros(beta.size), 100.0, 7)
    for phi, y in zip(rows, values, strict=True):
        state = recursive.update(state, phi, y, noise)
    wanted, covariance = batch(rows, values, noise, np.zeros(beta.size), 100.0)
    assert np.abs(state.estimate - wanted).max() < 1e-8 * np.abs(wanted).max()
    assert np.abs(state.covariance - covariance).max() < 1e-8 * np.abs(covariance).max()


def test_row_by_row_a_sample_at_a_time_and_all_at_once_are_one(rng):
    rows, theta = rng.normal(size=(40, 3, 5)), rng.normal(size=5)
    values = rows @ theta + 0.1 * rng.normal(size=(40, 3))
    whole = recursive.update(recursive.start(np.zeros(5), 10.0, 3), rows, values)
    single = recursive.start(np.zeros(5), 10.0, 1)
    for phi, y in zip(rows.reshape(-1, 5), values.ravel(), strict=True):
        single = recursive.update(single, phi, y)
    np.testing.assert_allclose(single.estimate, whole.estimate, rtol=0, atol=1e-12)
    np.testing.assert_allclose(single.covariance, whole.covariance, rtol=0, atol=1e-13)


@pytest.mark.parametrize("forgetting", [0.95, 0.99])
def test_forgetting_all_is_the_textbook_recursion(rng, forgetting):
    rows, values = rng.normal(size=(50, 4)), rng.normal(size=50)
    state, theta, P = recursive.start(np.zeros(4), 10.0), np.zeros(4), 100.0 * np.eye(4)
    for phi, y in zip(rows, values, strict=True):
        state = recursive.update(state, phi, y, forgetting=forgetting, directional=False)
        K = P @ phi / (forgetting + phi @ P @ phi)
        theta = theta + K * (y - phi @ theta)
        P = (P - np.outer(K, phi @ P)) / forgetting
    np.testing.assert_allclose(state.estimate, theta, atol=1e-11)
    np.testing.assert_allclose(state.covariance, P, atol=1e-11)


def test_forgetting_along_rows_follows_a_jump_and_keeps_what_is_not_excited(rng):
    """After a jump of all parameters the excited ones follow; the others move only by what ties them."""
    before, after = np.ones(4), 2 * np.ones(4)
    rows = rng.normal(size=(2000, 1, 4))
    state = recursive.update(recursive.start(np.zeros(4), 10.0), rows, rows @ before, 0.1, 0.98)
    rows[:, :, 2:] = 0.0
    known = state.covariance[2:, 2:]
    state = recursive.update(state, rows, rows @ after, 0.1, 0.98)
    np.testing.assert_allclose(state.estimate[:2], [2, 2], atol=1e-3)
    # Random rows over the memory of 50 samples correlate by about 1/√50.
    np.testing.assert_allclose(state.estimate[2:], [1, 1], atol=3 / np.sqrt(50) * 0.5)
    assert np.linalg.eigvalsh(state.covariance[2:, 2:]).max() < 1.5 * np.linalg.eigvalsh(known).max()


def test_without_excitation_the_covariance_grows_only_if_all_is_forgotten():
    rows = np.zeros((20_000, 1, 3))
    rows[:, 0, 0] = 1.0
    begin = recursive.start(np.zeros(3), 2.0)
    directional = recursive.update(begin, rows, np.ones((20_000, 1)), 1.0, 0.99)
    everything = recursive.update(begin, rows[:2000], np.ones((2000, 1)), 1.0, 0.99, directional=False)
    np.testing.assert_allclose(np.diag(directional.covariance)[1:], 4.0, rtol=1e-12)
    assert np.diag(everything.covariance)[1] > 1e8


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.floats(1e-9, 1e6),
    jitter=st.floats(0, 1e-3),
    forgetting=st.floats(0.5, 0.9999),
)
def test_the_covariance_never_passes_the_priors_trace(seed, size, jitter, forgetting):
    """Rows that hardly turn are the worst case of directional forgetting."""
    rng = np.random.default_rng(seed)
    rows = size * (rng.normal(size=4) + jitter * rng.normal(size=(3000, 1, 4)))
    state = recursive.update(recursive.start(np.zeros(4), 3.0), rows, rng.normal(size=(3000, 1)), 1.0, forgetting)
    eigenvalues = np.linalg.eigvalsh(state.covariance)
    assert eigenvalues[-1] <= 4 * 9.0 * (1 + 1e-9)
    assert (np.linalg.svd(state.root, compute_uv=False) > 0).all()


@pytest.mark.parametrize(("forgetting", "directional"), [(1.0, True), (0.99, True), (0.99, False)])
def test_the_covariance_stays_positive_over_half_a_million_steps(rng, forgetting, directional):
    """benchmarks/filters.py does 10⁷; the rows have sizes from 1e-3 to 1e3, as kg beside kg·m² do."""
    p, sizes = 6, np.logspace(-3, 3, 6)
    rows = rng.normal(size=(50_000, 1, p)) * sizes
    theta = rng.normal(size=p) / sizes
    values = rows @ theta + 0.01 * rng.normal(size=(50_000, 1))
    state = recursive.start(np.zeros(p), 1e4)
    for _ in range(10):
        state = recursive.update(state, rows, values, 0.01, forgetting, directional)
    P = state.covariance * np.outer(sizes, sizes)
    assert np.array_equal(P, P.T) or np.abs(P - P.T).max() < 1e-15 * np.abs(P).max()
    assert np.linalg.eigvalsh(P).min() > 0
    assert np.abs((state.estimate - theta) * sizes).max() < 5 * np.sqrt(np.diag(P).max())


def test_a_missing_value_is_passed_over(rng):
    rows, values = rng.normal(size=(30, 2, 3)), rng.normal(size=(30, 2))
    values[::3, 1] = np.nan
    state = recursive.update(recursive.start(np.zeros(3), 1.0, 2), rows, values)
    kept = np.isfinite(values)
    wanted = recursive.start(np.zeros(3), 1.0, 1)
    for phi, y in zip(rows[kept], values[kept], strict=True):
        wanted = recursive.update(wanted, phi, y)
    np.testing.assert_allclose(state.estimate, wanted.estimate, atol=1e-12)


def test_the_noise_is_found_from_innovations(rng):
    rows, theta, noise = rng.normal(size=(4000, 2, 3)), np.ones(3), np.array([0.2, 3.0])
    values = rows @ theta + noise * rng.normal(size=(4000, 2))
    state = recursive.update(recursive.start(np.zeros(3), 10.0, 2), rows, values, noise)
    np.testing.assert_allclose(state.noise, noise, rtol=0.05)  # 4000 samples: a deviation of 1.1 %


def test_what_cannot_be_meant_is_refused():
    state = recursive.start(np.zeros(3), 1.0, 2)
    with pytest.raises(sy.OptionError, match="forgetting"):
        recursive.update(state, np.ones((2, 3)), np.ones(2), forgetting=1.5)
    with pytest.raises(sy.DataError, match="2 rows of 3"):
        recursive.update(state, np.ones((3, 3)), np.ones(3))
    with pytest.raises(sy.OptionError, match="above 0"):
        recursive.start(np.zeros(3), 0.0)
