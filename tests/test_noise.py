"""The noise models of residuals, against processes that are known."""

import numpy as np
import pytest
import scipy.signal

from steelyard.identification.noise import fit_noise


def everywhere(e):
    return [e], [np.ones(len(e), dtype=bool)]


def test_white_noise_is_white(rng):
    e = 0.3 * rng.normal(size=5000)
    noise = fit_noise(*everywhere(e))
    assert noise.order == 0
    assert noise.deviation == pytest.approx(0.3, rel=0.03)


def test_an_autoregression_is_found(rng):
    e = scipy.signal.lfilter([1.0], [1.0, -1.5, 0.7], rng.normal(size=20_000))
    noise = fit_noise(*everywhere(e))
    assert noise.order == 2
    np.testing.assert_allclose(noise.a, [1.0, -1.5, 0.7], atol=0.03)
    # The spectrum at zero over the variance, in closed form.
    assert noise.memory == pytest.approx(25.0 / np.var(e), rel=0.15)


@pytest.mark.parametrize("cutoff", [0.3, 0.04, 0.01])
def test_sums_of_filtered_noise_have_the_variance_that_the_model_says(rng, cutoff):
    """Smooth weights, as regressors are, on noise through a low-pass: over many draws, and by the model of one."""
    sos = scipy.signal.butter(4, cutoff, output="sos")
    t = np.linspace(0, 1, 4000)
    W = np.column_stack([np.ones(4000), np.sin(20 * t), t])
    draws = scipy.signal.sosfiltfilt(sos, rng.normal(size=(300, 4400)), axis=1)[:, 200:-200]
    true = np.std(draws @ W, axis=0)
    said = np.median([np.linalg.norm(fit_noise(*everywhere(e)).coloured(W), axis=0) for e in draws[:20]], axis=0)
    # 300 draws tell a deviation to 4 %; one record of 4000 smooth rows tells the spectrum at low frequencies worse.
    np.testing.assert_allclose(said, true, rtol=0.5)


def test_rows_that_do_not_count_do_not_colour(rng):
    e = rng.normal(size=4000)
    use = np.ones(4000, dtype=bool)
    e[1000:2000], use[1000:2000] = 50.0, False
    noise = fit_noise([e], [use])
    assert noise.order == 0
    assert noise.deviation == pytest.approx(1.0, rel=0.05)


def test_whitening_undoes_colouring(rng):
    e = scipy.signal.lfilter([1.0], [1.0, -0.8], rng.normal(size=10_000))
    noise = fit_noise(*everywhere(e))
    white = noise.whitened(e[:, None])[:, 0]
    assert np.std(white) == pytest.approx(1.0, rel=0.03)
    assert abs(np.corrcoef(white[1:], white[:-1])[0, 1]) < 0.03


@pytest.mark.parametrize("differences", [1, 2])
@pytest.mark.parametrize("through", [[1.0], [1.0, -0.5], [1.0, 0.3]])
def test_sums_of_differentiated_noise_have_the_variance_that_the_model_says(rng, differences, through):
    """Smooth weights, as regressors are, on what is left when differentiated noise cancels."""
    t = np.linspace(0, 1, 3000)
    W = np.column_stack([np.sin(20 * t), np.sin(50 * t) ** 2, t * (1 - t)])
    raw = scipy.signal.lfilter([1.0], through, rng.normal(size=(300, 3200)), axis=1)[:, 200:]
    draws = np.diff(raw, n=differences, axis=1)
    W = W[: draws.shape[1]]
    true = np.std(draws @ W, axis=0)
    noises = [fit_noise(*everywhere(e)) for e in draws[:20]]
    said = np.median([np.linalg.norm(noise.coloured(W), axis=0) for noise in noises], axis=0)
    # An autoregression alone would say up to a hundred times too much.
    np.testing.assert_allclose(said, true, rtol=0.5)


def test_noise_that_is_not_differentiated_is_not_taken_for_it(rng):
    for a in ([1.0], [1.0, -0.9], [1.0, 0.7], [1.0, -1.5, 0.7]):
        for _ in range(20):
            e = scipy.signal.lfilter([1.0], a, rng.normal(size=3000))
            assert fit_noise(*everywhere(e)).differences == 0
