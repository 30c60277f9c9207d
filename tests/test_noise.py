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


@pytest.mark.parametrize("beside", [0.0, 0.01])
@pytest.mark.parametrize("differences", [1, 2])
@pytest.mark.parametrize("through", [[1.0], [1.0, -0.5], [1.0, 0.3]])
def test_sums_of_differentiated_noise_have_the_variance_that_the_model_says(rng, differences, through, beside):
    """Smooth weights, as regressors are, on what is left when differentiated noise cancels."""
    t = np.linspace(0, 1, 3000)
    W = np.column_stack([np.sin(40 * t), np.sin(50 * t) ** 2, np.sin(100 * t)]) * np.hanning(3000)[:, None]
    raw = scipy.signal.lfilter([1.0], through, rng.normal(size=(300, 3200)), axis=1)[:, 200:]
    draws = np.diff(raw, n=differences, axis=1)
    draws += beside * rng.normal(size=draws.shape)
    W = W[: draws.shape[1]]
    true = np.std(draws @ W, axis=0)
    noises = [fit_noise(*everywhere(e)) for e in draws[:20]]
    said = np.median([np.linalg.norm(noise.coloured(W), axis=0) for noise in noises], axis=0)
    # One record has few ordinates at the frequencies of W, and where the spectrum is steep their mean leans to the
    # upper; an autoregression alone would give twice differentiated noise a hundred times too much.
    assert (said / true > 0.8).all()
    assert (said / true < (2.0 if differences == 1 else 4.0)).all()
    assert all(noise.power(np.zeros(1))[0] < 0.1 * noise.deviation**2 for noise in noises)


def test_noise_that_was_not_differentiated_keeps_its_autoregression(rng):
    for a in ([1.0], [1.0, -0.9], [1.0, -1.5, 0.7]):
        for _ in range(20):
            e = scipy.signal.lfilter([1.0], a, rng.normal(size=3000))
            assert fit_noise(*everywhere(e)).low is None


def test_the_spectrum_is_that_of_the_process_and_its_mean_the_variance(rng):
    e = scipy.signal.lfilter([1.0], [1.0, -1.5, 0.7], rng.normal(size=20_000))
    f = (np.arange(4096) + 0.5) / 4096
    power = fit_noise(*everywhere(e)).power(f)
    np.testing.assert_allclose(power, np.abs(scipy.signal.freqz([1.0], [1.0, -1.5, 0.7], 2 * np.pi * f)[1]) ** 2, 0.3)
    assert power.mean() == pytest.approx(np.var(e), rel=0.05)
