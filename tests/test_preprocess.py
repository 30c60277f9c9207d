"""From logs to clean data: against closed forms, SciPy, and what must never happen."""

import json

import numpy as np
import pytest
import scipy.signal as ss
from hypothesis import given, settings
from hypothesis import strategies as st

import steelyard as sy
from odd_recordings import odd_recordings
from steelyard.data.decimation import Decimation
from steelyard.data.differentiate import CentralDifferences, SavitzkyGolay, SmoothingSpline, SplineDerivatives
from steelyard.data.filters import Butterworth
from steelyard.data.periods import AveragePeriods, find_period
from steelyard.data.preprocess import automatic_decimation, default_steps, preprocess
from steelyard.data.recording import Recording
from steelyard.data.resample import AlignMotion, AlignTorque, Crop, Repair, Resample, off_median
from steelyard.data.rows import DropOutliers, DropStandstill
from steelyard.data.spectrum import bands
from steelyard.data.steps import in_use
from steelyard.excitation.trajectory import Fourier


def fourier(n=3, seed=1, period=10.0, harmonics=5, size=0.4):
    rng = np.random.default_rng(seed)
    a, b = size * rng.normal(size=(2, n, harmonics))
    return Fourier(period, np.zeros(n), a, b, tuple(f"j{k}" for k in range(n)))


def exact(rate, seconds=10.0, n=3, seed=1):
    """A motion whose derivatives are known: t, q, qd, qdd."""
    t = np.arange(int(seconds * rate) + 1) / rate
    k = 2 * np.pi * np.arange(1, 6) / 10.0
    rng = np.random.default_rng(seed)
    a, phase = rng.normal(size=(n, 5)) / k, rng.uniform(0, 6.28, size=(n, 5))
    angle = k * t[:, None, None] + phase
    return (
        t,
        (a * np.sin(angle)).sum(-1),
        (a * k * np.cos(angle)).sum(-1),
        (-a * k**2 * np.sin(angle)).sum(-1),
    )


def relative(x, reference, use=slice(None)):
    return np.sqrt(np.mean((x - reference)[use] ** 2) / np.mean(reference[use] ** 2))


@pytest.mark.parametrize("rate", [100.0, 250.0, 1000.0, 5000.0])
@pytest.mark.parametrize("with_velocity", [False, True])
def test_clean_data_come_out_as_exact_as_they_went_in(rate, with_velocity):
    t, q, qd, qdd = exact(rate)
    out = preprocess(Recording(t, q, qdd, qd if with_velocity else None))
    assert len(out) == len(t)
    np.testing.assert_array_equal(out.q, q)
    use = in_use(out).all(axis=1)
    assert use.mean() > 0.9
    # A quintic spline is wrong by (2π f h)⁴ or so: 1e-6 at 0.5 Hz and 100 Hz; the ends a little more.
    assert relative(out.qd, qd) < 1e-5
    assert relative(out.qdd, qdd) < 1e-4


@pytest.mark.parametrize(("rate", "noise"), [(100.0, 1e-4), (1000.0, 1e-5), (1000.0, 1e-3), (5000.0, 1e-4)])
def test_the_cut_off_found_is_nearly_the_best_there_is(rate, noise):
    t, q, _, qdd = exact(rate, seconds=20.0)
    seen = q + noise * np.random.default_rng(5).normal(size=q.shape)
    out = preprocess(Recording(t, seen, qdd))
    use = in_use(out).all(axis=1)
    assert relative(out.qdd, qdd, use) < 0.05
    inner = slice(len(t) // 5, -len(t) // 5)
    found = relative(out.qdd, qdd, inner)
    cutoffs = np.geomspace(0.6, 0.4 * rate, 25)
    best = min(
        relative(preprocess(Recording(t, seen, qdd), [Butterworth(cutoff_hz=fc), SplineDerivatives()]).qdd, qdd, inner)
        for fc in cutoffs
    )
    # A cut-off four times too high has 4^2.5 = 32 times the noise; one below the motion loses it all.
    assert found < 6 * best


def test_the_noise_found_is_the_noise_put_in():
    _, q, _, _ = exact(1000.0)
    seen = q + np.array([1e-5, 1e-4, 1e-3]) * np.random.default_rng(5).normal(size=q.shape)
    # 10,000 samples: one per cent, and the little that the lowest frequencies are taken to have
    np.testing.assert_allclose([band.noise for band in bands(seen, 1000.0)], [1e-5, 1e-4, 1e-3], rtol=0.05)


def test_coarse_encoders_are_smoothed():
    t, q, _, qdd = exact(1000.0)
    out = preprocess(Recording(t, np.round(q / 1e-3) * 1e-3, qdd))
    assert relative(out.qdd, qdd, in_use(out).all(axis=1)) < 0.03  # unfiltered: 200 times the motion


def test_the_filter_is_scipys_forwards_and_backwards(rng):
    t = np.arange(3000) / 500.0
    q = np.cumsum(rng.normal(size=(3000, 2)), axis=0)
    out = Butterworth(order=4, cutoff_hz=20.0, torque=True).apply(Recording(t, q, q))
    b, a = ss.butter(4, 20.0, fs=500.0)
    expected = ss.filtfilt(b, a, q, axis=0, padlen=75)
    np.testing.assert_allclose(out.q, expected, rtol=1e-7, atol=1e-7)  # sections against polynomials
    np.testing.assert_array_equal(out.tau, out.q)
    edge = out.about["preprocessing"][0]["rows_at_each_end"]
    assert edge == 25
    assert not in_use(out)[:edge].any()
    assert in_use(out)[edge:-edge].all()


def test_central_differences_are_those_of_the_source_at_uneven_times(rng):
    t = np.cumsum(rng.uniform(0.5e-3, 2e-3, size=200))
    q, qd = rng.normal(size=(2, 200, 3))
    out = CentralDifferences(velocity="measured").apply(Recording(t, q, q, qd))
    expected = np.array([(qd[i + 1] - qd[i - 1]) / (t[i + 1] - t[i - 1]) for i in range(1, 199)])
    np.testing.assert_allclose(out.qdd[1:-1], expected, rtol=1e-12)
    np.testing.assert_array_equal(out.qdd[[0, -1]], out.qdd[[1, -2]])
    np.testing.assert_array_equal(out.qd, qd)


def test_accelerations_in_the_recording_are_used_unless_they_are_noise(rng):
    t, q, qd, qdd = exact(500.0)
    kept = preprocess(Recording(t, q, q, qd, 1.01 * qdd))
    np.testing.assert_array_equal(kept.qdd, 1.01 * qdd)
    noisy = qdd + 3.0 * rng.normal(size=qdd.shape)
    assert relative(preprocess(Recording(t, q, q, qd, noisy)).qdd, qdd) < 1e-3


def test_savitzky_golay_is_scipys_and_splines_smooth():
    t, q, qd, qdd = exact(200.0)
    out = SavitzkyGolay(window=21, order=4).apply(Recording(t, q, q))
    np.testing.assert_allclose(out.qd, ss.savgol_filter(q, 21, 4, deriv=1, delta=1 / 200.0, axis=0), rtol=1e-9)
    seen = q + 1e-4 * np.random.default_rng(0).normal(size=q.shape)
    inner = slice(100, -100)
    for step in (SavitzkyGolay(), SmoothingSpline()):
        smooth = step.apply(Recording(t, seen, q))
        # Unsmoothed the acceleration has 1e-4 · 200² · √6 = 10 rad/s² of noise, ten times the motion.
        assert relative(smooth.qdd, qdd, inner) < 0.1, step
        assert relative(smooth.qd, qd, inner) < 0.01, step


def test_quiet_measured_velocities_are_preferred_and_wrong_ones_are_not(rng):
    t, q, qd, _ = exact(1000.0)
    noisy = q + 1e-3 * rng.normal(size=q.shape)

    def source(qd):
        out = preprocess(Recording(t, noisy, q, qd))
        return next(s for s in out.about["preprocessing"] if s["step"] == "SplineDerivatives")["found_velocity"]

    assert source(qd + 1e-4 * rng.normal(size=q.shape)) == "measured"
    assert source(-qd) == "differentiated"
    assert source(1.2 * qd) == "differentiated"
    assert source(np.roll(qd, 30, axis=0)) == "differentiated"  # 30 ms late


def test_jittery_stamps_are_put_on_an_even_grid(rng):
    t, *_ = exact(500.0)
    k = 2 * np.pi * 0.3
    late = np.sort(t + rng.uniform(0, 1.5e-3, size=t.shape))
    q = np.sin(k * late)[:, None]
    out = Resample().apply(Recording(late, q, q))
    steps = np.diff(out.t)
    np.testing.assert_allclose(steps, steps[0], rtol=1e-9)
    np.testing.assert_allclose(out.q[:, 0], np.sin(k * out.t), atol=1e-9)  # cubic: (k h)⁴


def test_stamps_that_jitter_about_an_even_clock_give_way_to_it(rng):
    t, q, _, _ = exact(500.0)
    stamps = np.sort(np.round(t, 3) + rng.uniform(0, 4e-4, size=t.shape))  # the sampling itself was even
    out = Resample().apply(Recording(stamps, q, q))
    np.testing.assert_array_equal(out.q, q)
    np.testing.assert_allclose(out.t, t, atol=2e-3)
    assert out.about["preprocessing"][0]["stamps"]


def test_gaps_are_marked_not_invented():
    t, q, _, _ = exact(500.0)
    keep = (t < 3.0) | (t > 3.4)
    out = Resample().apply(Recording(t[keep], q[keep], q[keep]))
    assert len(out) == len(t)
    use = in_use(out).all(axis=1)
    assert not use[(out.t > 3.001) & (out.t < 3.399)].any()
    assert use[(out.t < 2.999) | (out.t > 3.401)].all()
    (gap,) = out.about["preprocessing"][0]["gaps"]
    np.testing.assert_allclose(gap, [2.998, 3.402], atol=1e-9)


def test_after_a_gap_longer_than_the_recording_the_longest_piece_is_kept():
    t, q, _, _ = exact(100.0)
    apart = np.where(t > 3.0, t + 1e5, t)
    out = Resample().apply(Recording(apart, q, q))
    assert out.duration == pytest.approx(7.0, abs=0.03)
    assert out.about["preprocessing"][0]["rows_left_out"] == 301


def test_missing_values_and_glitches_are_mended_and_not_used():
    t, q, _, qdd = exact(500.0)
    bad, tau = q.copy(), q.copy()
    bad[100, 1] = np.nan
    bad[900, 0] += 1.0  # an encoder's glitch
    tau[2000, 2] = np.inf
    out = preprocess(Recording(t, bad, tau), [Repair(), Butterworth(), SplineDerivatives()])
    use = in_use(out)
    # rows that are used do not feel the mended ones: the spline's answer falls by 0.4 a row
    assert relative(out.qdd, qdd, use.all(axis=1)) < 1e-2
    assert not use[100].any()
    assert not use[900].any()
    np.testing.assert_array_equal(use[2000], [True, True, False])
    assert out.about["preprocessing"][0]["rows_mended"] == {"q": 2, "tau": 1}


def test_torque_spikes_are_found_and_clean_torques_are_not_touched(rng):
    t, q, qd, qdd = exact(500.0)
    clean = qdd + 0.5 * np.sign(qd)
    recording = Recording(t, q, clean, qd, qdd)
    assert in_use(DropOutliers(acceleration=None).apply(recording)).all()
    tau = clean + 0.05 * rng.normal(size=q.shape)
    hit = rng.random(q.shape) < 0.01
    out = DropOutliers(acceleration=None).apply(Recording(t, q, tau + 3.0 * hit, qd, qdd))
    assert not in_use(out)[hit].any()
    assert in_use(out)[~hit].mean() > 0.995


def test_the_running_median_is_scipys(rng):
    x = rng.normal(size=(200, 3))
    padded = np.pad(x, ((2, 2), (0, 0)), mode="edge")
    np.testing.assert_array_equal(off_median(x), x - ss.medfilt(padded, (5, 1))[2:-2])


def test_rows_beyond_an_acceleration_go_as_in_the_source():
    t, q, qd, qdd = exact(500.0)
    out = DropOutliers(acceleration=2.0, deviations=None).apply(Recording(t, q, q, qd, qdd))
    np.testing.assert_array_equal(in_use(out), np.repeat((np.abs(qdd).max(1) < 2.0)[:, None], 3, axis=1))


def test_standstill_is_left_out_for_the_joint_that_stands():
    t, q, qd, qdd = exact(500.0)
    q, qd = q.copy(), qd.copy()
    q[2500:, 1], qd[2500:, 1] = q[2500, 1], 0.0
    qd[:, 2] = 0.0  # never moves: nothing to choose
    out = DropStandstill().apply(Recording(t, q, q, qd, qdd))
    use = in_use(out)
    assert not use[2501:, 1].any()
    assert use[2501:, 0].mean() > 0.97
    assert use[:, 2].all()


def test_periods_are_found_and_averaged_with_their_noise(rng):
    path = fourier(period=4.0)
    t = np.arange(int(20.0 * 250)) / 250.0
    q, qd, qdd = path.sample(np.mod(t, 4.0))
    mixing = np.array([[0.1, 0.0, 0.0], [0.05, 0.2, 0.0], [0.0, 0.0, 0.3]])
    tau = qdd + rng.normal(size=q.shape) @ mixing.T
    recording = Recording(t, q + 1e-4 * rng.normal(size=q.shape), tau, qd)
    assert find_period(recording) == pytest.approx(4.0, abs=0.005)
    mean = AveragePeriods().apply(recording)
    assert len(mean) == 1000
    noise = mean.about["period_noise"]
    assert noise["periods"] == 5
    # 4000 differences: two per cent of a variance, and as much of a covariance
    np.testing.assert_allclose(noise["torque_covariance"], mixing @ mixing.T, atol=0.006)
    np.testing.assert_allclose(mean.tau.std() ** 2, qdd[:1000].std() ** 2, rtol=0.05)
    assert np.std(mean.tau - qdd[:1000]) < 0.6 * np.std(tau - qdd)


def test_what_never_repeats_has_no_period(rng):
    t = np.arange(2000) / 100.0
    q = np.cumsum(np.cumsum(rng.normal(size=(2000, 2)), axis=0), axis=0)
    assert find_period(Recording(t, q, q)) is None
    with pytest.raises(sy.DataError, match="give period_s"):
        AveragePeriods().apply(Recording(t, q, q))


def test_torque_is_moved_and_time_is_cut():
    t, q, _, qdd = exact(500.0)
    late = np.stack([np.interp(t - 0.02, t, x) for x in qdd.T], axis=1)
    out = AlignTorque(0.02).apply(Recording(t, q, late))
    np.testing.assert_allclose(out.tau[20:-20], qdd[20:-20], atol=1e-6)
    assert not in_use(out)[-9:].any()
    cut = Crop(2.0, 3.0).apply(out)
    assert cut.t[0] == pytest.approx(2.0)
    assert len(cut) == 501


def test_what_was_done_is_on_record_as_plain_json():
    t, q, qd, _ = exact(500.0)
    recording = Recording(t, q + 1e-4, q, qd, about={"source": "here"})
    out = preprocess(recording)
    steps = json.loads(json.dumps(out.about["preprocessing"]))
    assert [s["step"] for s in steps] == [type(s).__name__ for s in default_steps(recording)]
    assert out.about["source"] == "here"
    assert "preprocessing" not in recording.about


def test_automatic_decimation_leaves_residuals_about_white(rng):
    t, q, _, qdd = exact(1000.0, seconds=60.0)
    method = automatic_decimation(Recording(t, q, qdd))
    noise = method.apply(rng.normal(size=(len(t), 4)), 1000.0)
    lag_one = np.mean(noise[1:] * noise[:-1]) / np.mean(noise**2)
    assert abs(lag_one) < 0.2
    assert np.abs(method.apply(qdd, 1000.0) - qdd[method.rows(len(t), 1000.0)]).max() < 2e-3 * np.abs(qdd).max()
    assert automatic_decimation(Recording(t[:50], q[:50], qdd[:50])) is None
    assert isinstance(method, Decimation)


def test_identification_of_clean_simulated_data_stays_exact():
    robot = sy.load_robot("panda")
    t = np.arange(0, 10.0, 1e-3)
    rng = np.random.default_rng(2)
    path = Fourier(10.0, robot.home, *(0.3 * rng.normal(size=(2, 7, 5))), robot.dof_names)
    q, qd, qdd = path.sample(t)
    tau = sy.inverse_dynamics(robot, q, qd, qdd)
    out = preprocess(Recording(t, q, tau, joints=robot.dof_names), robot=robot)
    rows = np.flatnonzero(in_use(out).all(axis=1))[::10]
    base = sy.base_parameters(robot)
    W = base.columns(sy.regressor(robot, out.q[rows], out.qd[rows], out.qdd[rows])).reshape(-1, base.rank)
    known = sy.known_torque(robot, out.q[rows], out.qd[rows], out.qdd[rows])
    beta = np.linalg.lstsq(W, (out.tau[rows] - known).ravel(), rcond=None)[0]
    true = base.reduce(robot.parameters)
    assert np.linalg.norm(beta - true) < 1e-5 * np.linalg.norm(true)


STEPS = [
    Repair(),
    Resample(),
    Resample(rate_hz=50.0),
    Butterworth(),
    Butterworth(cutoff_hz=5.0, torque=True),
    CentralDifferences(),
    SplineDerivatives(),
    SmoothingSpline(),
    SavitzkyGolay(),
    SavitzkyGolay(window=5, order=2),
    AveragePeriods(),
    AveragePeriods(0.01),
    DropOutliers(),
    DropStandstill(),
    Crop(0.0, 0.02),
    AlignTorque(0.002),
    AlignMotion(0.002),
]


@pytest.mark.parametrize("sampling", [1000.0, 100.0])
def test_identification_of_a_clean_closed_loop_stays_exact(sampling):
    """Torque is held over a control tick: without the half tick the answer is wrong by a hundredth."""
    robot = sy.load_robot("panda")
    rng = np.random.default_rng(2)
    a = 0.3 * rng.normal(size=(7, 5))
    path = Fourier(10.0, robot.home, a - a.mean(axis=1, keepdims=True), 0 * a, robot.dof_names)
    run = sy.simulate(robot, path, sample_hz=sampling, cartesian=False)
    out = preprocess(run, robot=robot)
    use = in_use(out)
    base = sy.base_parameters(robot)
    W = base.columns(sy.regressor(robot, out.q, out.qd, out.qdd))
    y = out.tau - sy.known_torque(robot, out.q, out.qd, out.qdd)
    beta = np.linalg.lstsq(W[use], y[use], rcond=None)[0]
    true = base.reduce(robot.parameters)
    # what is left is the spline's error at both ends, where the loop starts to move
    assert np.linalg.norm(beta - true) < 1e-3 * np.linalg.norm(true)


def test_rows_that_stand_still_move_with_the_motion(rng):
    """A joint that stands for a second, and a torque 0.2 s late: no row counts in which it stands after the move."""
    t = np.arange(0, 4, 0.01)
    q = np.where((t < 1) | (t >= 2), np.sin(3 * t), np.sin(3.0))[:, None]
    still = (t >= 1) & (t < 2)
    run = sy.Recording(t, q, np.roll(q, 20, axis=0), more={"use": np.where(still, 0.0, 1.0)[:, None]})
    moved = AlignMotion(-0.2).apply(run)
    stands = (t >= 1.2) & (t < 2.2)
    assert not in_use(moved)[stands].any()
    assert in_use(moved)[(t > 0.25) & (t < 0.98)].all()


@settings(max_examples=120, deadline=None)
@given(recording=odd_recordings(), steps=st.lists(st.sampled_from(STEPS), max_size=4))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_odd_recordings_are_mended_or_refused_in_our_own_words(recording, steps):
    for chosen in (None, steps):
        try:
            out = preprocess(recording, chosen)
        except sy.SteelyardError:
            continue
        for x in (out.q, out.qd, out.qdd, out.tau):
            assert np.isfinite(x).all()


def test_real_recordings_come_through(real_data):
    folder = real_data / "panda-gaz2019"
    names = ("positions", "torques", "velocity")
    q, tau, qd = (np.loadtxt(folder / f"exciting_traj_{name}.txt").reshape(-1, 7) for name in names)
    recording = Recording(np.loadtxt(folder / "exciting_traj_time.txt"), q, tau, qd)
    out = preprocess(recording)
    assert in_use(out).mean() > 0.85
    cutoff = next(s for s in out.about["preprocessing"] if s["step"] == "Butterworth")["found_cutoff_hz"]["q"]
    # The motion has its last harmonic below 1 Hz; jitter of the stamps makes noise from about 2 Hz on.
    assert 1.0 < cutoff < 10.0
    assert np.abs(out.qdd).max() < 10.0


def test_automatic_decimation_is_one_that_its_own_rate_can_carry():
    """A cut-off of 2.655 Hz is told as 2.66 Hz, of which every 188th row of 1000 Hz would be one too few."""
    t = np.arange(22600) / 1000.0
    q = np.sin(2 * np.pi * 0.2 * t)[:, None] + 0.3 * np.sin(2 * np.pi * 0.1 * t)[:, None]
    method = automatic_decimation(Recording(t, q, q))
    assert method is not None
    method.taps(1000.0)


def test_joints_that_stand_and_flicker_do_not_decide_where_the_motion_ends():
    t, q, _, _ = exact(1000.0)
    rng = np.random.default_rng(5)
    seen = q + 1e-5 * rng.normal(size=q.shape)
    alone = Butterworth().apply(Recording(t, seen, seen)).about["preprocessing"][-1]["found_cutoff_hz"]["q"]
    still = np.hstack([seen, 0.3 + 1e-5 * rng.normal(size=q.shape), np.zeros((len(t), 1))])
    assert Butterworth().apply(Recording(t, still, still)).about["preprocessing"][-1]["found_cutoff_hz"]["q"] == alone
    # A joint of which only the shape shows above the noise does not, either.
    faint = np.hstack([seen, 1e-4 * q[:, :1] + 1e-5 * rng.normal(size=(len(t), 1))])
    found = Butterworth().apply(Recording(t, faint, faint)).about["preprocessing"][-1]["found_cutoff_hz"]["q"]
    assert found == pytest.approx(alone, rel=0.3)
