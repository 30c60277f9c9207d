"""Trajectories: exact rates, exact ends, limits kept, and one sentence for what cannot be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.errors import DataError, OptionError, SteelyardError
from steelyard.excitation.chirp import Chirp
from steelyard.excitation.composition import Sequence, repeat, with_leads
from steelyard.excitation.splines import PointToPoint, Sampled, Spline, shortest_time
from steelyard.excitation.trajectory import Fourier, fourier_basis, rest_basis


def random_fourier(rng, n=3, harmonics=5, period=4.0):
    return Fourier(period, rng.normal(size=n), rng.normal(size=(n, harmonics)), rng.normal(size=(n, harmonics)))


def resting_fourier(rng, n=3, harmonics=5, period=4.0, start=None):
    rest = rest_basis(period, harmonics, start)
    return Fourier.from_coefficients(period, rest.coefficients(rng.normal(size=(n, rest.free))))


def every_kind(rng):
    times = np.array([0.0, 0.7, 1.1, 2.5, 3.0])
    t = np.linspace(0, 3, 61)
    wave = np.stack([np.sin(2 * t), np.cos(3 * t)], axis=1)
    rate = np.stack([2 * np.cos(2 * t), -3 * np.sin(3 * t)], axis=1)
    second = np.stack([-4 * np.sin(2 * t), -9 * np.cos(3 * t)], axis=1)
    point = PointToPoint([0.1, -1.0], [0.5, 2.0], 1.7)
    return {
        "fourier": random_fourier(rng, 2),
        "periods": repeat(random_fourier(rng, 2), 3),
        "point to point": point,
        "cubic": Spline(times, rng.normal(size=(5, 2)), 3),
        "quintic": Spline(times, rng.normal(size=(5, 2)), 5),
        "linear chirp": Chirp(3.0, [0, 1.0], [0.3, 0.2], [0.0, 0.2], [2.0, 0.1]),
        "exponential chirp": Chirp(3.0, [0, 1.0], [0.3, 0.2], [0.3, 2.0], [2.0, 2.0], "exponential", 0.3),
        "sampled positions": Sampled(t, wave),
        "sampled velocities": Sampled(t, wave, rate),
        "sampled accelerations": Sampled(t, wave, rate, second),
        "sequence": Sequence((point, PointToPoint([0.5, 2.0], [0.0, 0.0], 0.9))),
    }


KINDS = list(every_kind(np.random.default_rng(0)))


@pytest.mark.parametrize("kind", KINDS)
def test_rates_are_the_derivatives_of_positions(kind, rng):
    trajectory = every_kind(rng)[kind]
    # Away from knots, where a derivative above the second may jump and differences are of low order.
    t = 0.0137 + np.arange(1, 40) * (trajectory.duration - 0.03) / 40
    h = 1e-3
    weights = np.array([-1 / 60, 3 / 20, -3 / 4, 0, 3 / 4, -3 / 20, 1 / 60]) / h
    q, qd, qdd = (np.stack(x) for x in zip(*(trajectory.sample(t + k * h) for k in range(-3, 4)), strict=True))
    # The cubic's q̈ has corners, and a quintic's snap jumps where a difference happens to span a knot.
    far = np.ones(t.size, dtype=bool)
    knots = getattr(trajectory, "times", getattr(trajectory, "t", getattr(trajectory, "starts", None)))
    if knots is not None:
        far = np.abs(t[:, None] - knots).min(axis=1) > 4 * h
    if kind.endswith("chirp"):
        ramp = trajectory.ramp * trajectory.seconds
        far = np.abs(t[:, None] - np.array([ramp, trajectory.seconds - ramp])).min(axis=1) > 4 * h
    assert far.sum() > 20
    # Differences of order 6 with h = 1e-3: rounding 1e-16/h and truncation h⁶·f⁽⁷⁾ both stay below 1e-9.
    for x, rate in ((q, qd), (qd, qdd)):
        assert np.allclose(np.tensordot(weights, x, 1)[far], rate[3][far], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_a_trajectory_is_continuous_up_to_acceleration(kind, rng):
    trajectory = every_kind(rng)[kind]
    t = np.linspace(0, trajectory.duration, 60_001)
    q, qd, qdd = trajectory.sample(t)
    for x, steepest in ((q, np.abs(qd).max()), (qd, np.abs(qdd).max()), (qdd, 1e4)):
        assert np.abs(np.diff(x, axis=0)).max() <= 1.01 * steepest * t[1]


@pytest.mark.parametrize("kind", KINDS)
def test_one_time_is_a_row_of_many_and_the_ends_are_held_at_rest(kind, rng):
    trajectory = every_kind(rng)[kind]
    t = np.array([0.0, 0.3, trajectory.duration])
    for many, one in zip(trajectory.sample(t), trajectory.sample(0.3), strict=True):
        assert many.shape == (3, 2)
        assert one.shape == (2,)
        assert np.allclose(many[1], one, rtol=1e-15, atol=1e-15)
    for outside, end in ((-0.1, 0), (trajectory.duration + 0.1, 2)):
        q, qd, qdd = trajectory.sample(outside)
        assert np.allclose(q, trajectory.sample(t)[0][end], rtol=1e-15, atol=1e-15)
        assert not qd.any()
        assert not qdd.any()


@pytest.mark.parametrize("kind", KINDS)
def test_the_grid_covers_the_whole_duration(kind, rng):
    trajectory = every_kind(rng)[kind]
    for rate in (10.0, 7.3, 1000.0):
        t = trajectory.grid(rate)
        assert t[0] == 0
        assert np.allclose(np.diff(t), 1 / rate)
        assert trajectory.duration * (1 - 1e-8) <= t[-1] < trajectory.duration + 1 / rate


@pytest.mark.parametrize("kind", KINDS)
def test_joints_are_picked_by_name(kind, rng):
    trajectory = every_kind(rng)[kind].renamed(["a", "b"])
    swapped = trajectory.with_joints(["b", "a"])
    assert swapped.joints == ("b", "a")
    for x, y in zip(trajectory.sample(0.4), swapped.sample(0.4), strict=True):
        assert np.allclose(x[::-1], y, rtol=1e-14, atol=1e-14)
    assert trajectory.with_joints(["b"]).sample(0.4)[0] == pytest.approx(trajectory.sample(0.4)[0][1])
    with pytest.raises(DataError, match="no joint 'c'"):
        trajectory.with_joints(["a", "c"])
    assert every_kind(rng)[kind].with_joints(["x", "y"]).joints == ("x", "y")


def test_a_fourier_series_is_the_formula_written_out(rng):
    trajectory = random_fourier(rng, n=2, harmonics=3, period=5.0)
    t, w = 1.234, 2 * np.pi / 5
    for j in range(2):
        q = trajectory.offset[j] + sum(
            trajectory.a[j, k - 1] / (w * k) * np.sin(w * k * t) - trajectory.b[j, k - 1] / (w * k) * np.cos(w * k * t)
            for k in (1, 2, 3)
        )
        assert trajectory.sample(t)[0][j] == pytest.approx(q, abs=1e-14)


def test_a_fourier_series_repeats_to_the_last_bit(rng):
    trajectory = repeat(repeat(random_fourier(rng, period=3.7), 2), 2)
    assert trajectory.periods == 4
    assert trajectory.duration == pytest.approx(4 * 3.7)
    t = np.linspace(0, 3.7, 11)
    for first, third in zip(trajectory.sample(t), trajectory.sample(t + 2 * 3.7), strict=True):
        assert np.allclose(first, third, rtol=0, atol=1e-12)  # t + 7.4 itself is rounded by 1e-15
    for begin, end in zip(trajectory.sample(0.0), trajectory.sample(3.7), strict=True):
        assert (begin == end).all()


def test_the_basis_times_the_coefficients_is_the_series(rng):
    trajectory = random_fourier(rng)
    t = np.linspace(0, 4, 50)
    basis = fourier_basis(t, 4.0, 5)
    assert [B.shape for B in basis] == [(50, 11)] * 3
    for B, x in zip(basis, trajectory.sample(t), strict=True):
        assert np.allclose(B @ trajectory.coefficients.T, x, rtol=0, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    period=st.floats(0.5, 60.0),
    harmonics=st.integers(2, 20),
    start=st.one_of(st.none(), st.lists(st.floats(-3, 3), min_size=2, max_size=2)),
    seed=st.integers(0, 1000),
)
def test_whatever_is_free_the_rest_basis_rests_at_both_ends(period, harmonics, start, seed):
    rng = np.random.default_rng(seed)
    rest = rest_basis(period, harmonics, start)
    assert rest.free == 2 * harmonics + 1 - (2 if start is None else 3)
    assert np.allclose(rest.Z.T @ rest.Z, np.eye(rest.free), atol=1e-14)
    free = rng.normal(size=(2, rest.free))
    trajectory = Fourier.from_coefficients(period, rest.coefficients(free))
    assert np.allclose(rest.nearest(trajectory.coefficients), free, atol=1e-13)
    for t in (0.0, trajectory.duration):
        q, qd, qdd = trajectory.sample(t)
        assert np.abs(qd).max() <= 1e-12
        # Σ ωk b_k adds up numbers of the size ω N.
        assert np.abs(qdd).max() <= 1e-12 * max(1.0, 2 * np.pi / period * harmonics)
        if start is not None:
            assert np.allclose(q, start, rtol=0, atol=1e-12)


def test_nothing_free_stands_still_at_the_start():
    rest = rest_basis(4.0, 3, [0.5, -1.0])
    trajectory = Fourier.from_coefficients(4.0, rest.coefficients(np.zeros((2, rest.free))))
    q, qd, qdd = trajectory.sample(np.linspace(0, 4, 9))
    assert np.allclose(q, [0.5, -1.0], atol=1e-15)
    assert not qd.any()
    assert not qdd.any()


@settings(max_examples=40, deadline=None)
@given(
    way=st.lists(st.floats(-3, 3), min_size=3, max_size=3),
    velocity=st.floats(0.1, 5),
    acceleration=st.floats(0.1, 50),
)
def test_the_shortest_quintic_keeps_its_limits_and_reaches_one(way, velocity, acceleration):
    way = np.array(way)
    if not np.abs(way).max() > 1e-3:
        return
    seconds = shortest_time(np.zeros(3), way, velocity, acceleration)
    _, qd, qdd = PointToPoint(np.zeros(3), way, seconds).sample(np.linspace(0, seconds, 10_001))
    used = np.abs(qd).max() / velocity, np.abs(qdd).max() / acceleration
    assert max(used) <= 1
    assert max(used) > 1 - 1e-6  # a grid of 10,000 misses the peak by less


def test_limits_that_are_not_there_do_not_bind():
    assert shortest_time([0.0, 1.0], [0.0, 3.0], [np.inf, 1.0]) == pytest.approx(15 / 8 * 2)
    assert shortest_time([0.0], [1.0], None, 2.0) == pytest.approx(np.sqrt(10 / np.sqrt(3) / 2))
    assert shortest_time([1.0], [1.0]) == 0
    with pytest.raises(OptionError, match="joint 2 moves by 2 and has no velocity or acceleration limit"):
        shortest_time([0.0, 1.0], [0.0, 3.0], [1.0, np.inf])


@pytest.mark.parametrize("degree", [3, 5])
@pytest.mark.parametrize("points", [2, 3, 4, 9])
def test_a_spline_passes_its_points_and_rests_at_both_ends(degree, points, rng):
    times, way = np.cumsum(rng.uniform(0.2, 1.0, points)), rng.normal(size=(points, 2))
    spline = Spline(times, way, degree)
    assert np.allclose(spline.sample(times - times[0])[0], way, rtol=0, atol=1e-12)
    for t in (0.0, spline.duration):
        _, qd, qdd = spline.sample(t)
        assert np.abs(qd).max() <= 1e-11  # solved from a banded system; entries grow as 1/step²
        assert np.abs(qdd).max() <= 1e-9


def test_a_quintic_spline_through_two_points_is_point_to_point():
    t = np.linspace(0, 2, 21)
    spline, direct = Spline([0, 2], [[0.3], [1.0]]), PointToPoint([0.3], [1.0], 2.0)
    for x, y in zip(spline.sample(t), direct.sample(t), strict=True):
        assert np.allclose(x, y, rtol=0, atol=1e-13)


@pytest.mark.parametrize("sweep", ["linear", "exponential"])
def test_a_chirp_sweeps_from_the_first_frequency_to_the_last(sweep):
    chirp = Chirp(40.0, [0.0], [1.0], [0.5], [4.0], sweep, ramp=0.05)
    t = np.linspace(0, 40, 400_001)
    q, qd, qdd = chirp.sample(t)
    assert np.abs(q).max() <= 1
    zeros = t[np.flatnonzero(np.diff(np.signbit(q[:, 0])))][1:]
    middle, frequency = (zeros[1:] + zeros[:-1]) / 2, 0.5 / np.diff(zeros)
    wanted = 0.5 + 3.5 * middle / 40 if sweep == "linear" else 0.5 * 8 ** (middle / 40)
    # Zeros are found to 1e-4 s, a thousandth of the shortest half period.
    assert np.allclose(frequency, wanted, rtol=5e-3)
    for x in (q, qd, qdd):
        assert not x[[0, -1]].any()


def test_samples_with_rates_are_met_exactly_and_between_them_nearly():
    t = np.linspace(0, 2, 41)
    rows = [np.stack([f(3 * t)], axis=1) for f in (np.sin, lambda x: 3 * np.cos(x), lambda x: -9 * np.sin(x))]
    between = np.linspace(0.2, 1.8, 333)
    # The error between samples falls with step⁶, step⁴, step⁶ for the three.
    for known, error in ((1, 1e-6), (2, 1e-6), (3, 1e-8)):
        sampled = Sampled(t, *rows[:known])
        for x, y in zip(sampled.sample(t)[:known], rows, strict=False):
            assert np.allclose(x, y, rtol=0, atol=1e-12)
        assert np.allclose(sampled.sample(between)[0][:, 0], np.sin(3 * between), rtol=0, atol=error)


def test_two_samples_are_enough_and_time_counts_from_the_first():
    sampled = Sampled([100.0, 101.0], [[0.0], [1.0]], tau=[[2.0], [4.0]])
    assert sampled.duration == 1
    assert sampled.sample(0.25)[0] == pytest.approx([0.25])
    assert sampled.torque([0.5]) == pytest.approx(np.array([[3.0]]))


def test_leads_join_the_pose_and_the_trajectory_within_the_limits(rng):
    middle = repeat(resting_fourier(rng), 2)
    pose, velocity, acceleration = rng.normal(size=3), np.array([1.0, 2.0, 0.5]), np.array([3.0, 1.0, 2.0])
    whole = with_leads(middle, pose, velocity, acceleration)
    assert [type(part) for part in whole.parts] == [PointToPoint, Fourier, PointToPoint]
    for t in (0.0, whole.duration):
        q, qd, qdd = whole.sample(t)
        assert np.allclose(q, pose, rtol=0, atol=1e-12)
        assert not qd.any()
        assert not qdd.any()
    for lead in (whole.parts[0], whole.parts[2]):
        _, qd, qdd = lead.sample(np.linspace(0, lead.duration, 10_001))
        assert (np.abs(qd) <= velocity).all()
        assert (np.abs(qdd) <= acceleration).all()
    # Across a seam nothing jumps: one step of 1e-9 s moves it no further than the rates say.
    for seam in whole.starts[1:-1]:
        for before, after in zip(whole.sample(seam - 1e-9), whole.sample(seam + 1e-9), strict=True):
            assert np.allclose(before, after, rtol=0, atol=1e-6)
    for x, y in zip(whole.sample(whole.starts[1] + 1.3), middle.sample(1.3), strict=True):
        assert np.allclose(x, y, rtol=0, atol=1e-12)


def test_a_lead_without_a_way_is_left_out(rng):
    middle = resting_fourier(rng, start=np.zeros(3))
    begin = middle.sample(0.0)[0]
    assert with_leads(middle, begin, 1.0) is middle
    assert len(with_leads(middle, begin, 1.0, goal=np.ones(3)).parts) == 2


def test_repeating_what_does_not_return_is_refused():
    there = PointToPoint([0.0], [1.0], 1.0)
    back = PointToPoint([1.0], [0.0], 1.0)
    with pytest.raises(OptionError, match="position of joint 'j1' jumps from 1 to 0 between parts 1 and 2"):
        repeat(there, 2)
    assert len(repeat(Sequence((there, back)), 3).parts) == 6


def test_a_jump_in_velocity_is_named(rng):
    middle = random_fourier(rng, 1)
    with pytest.raises(OptionError, match="velocity of joint 'j1' jumps from 0 to"):
        with_leads(middle, [0.0], 1.0)


WRONG = {
    "period is 0; it must be above 0": lambda: Fourier(0, [0.0], [[1.0]], [[1.0]]),
    r"offset\[1\] is nan": lambda: Fourier(1, [0.0, np.nan], [[1.0]] * 2, [[1.0]] * 2),
    r"a has shape \(1, 0\)": lambda: Fourier(1, [0.0], np.zeros((1, 0)), np.zeros((1, 0))),
    "do not fit": lambda: Fourier(1, [0.0], [[1.0]], [[1.0, 2.0]]),
    "periods is 1.5": lambda: Fourier(1, [0.0], [[1.0]], [[1.0]], periods=1.5),
    "4 columns; 1 \\+ 2 × harmonics": lambda: Fourier.from_coefficients(1, np.zeros((2, 4))),
    "2 joint names for 1 joints: a, b": lambda: Fourier(1, [0.0], [[1.0]], [[1.0]], ("a", "b")),
    "joint name 'a' stands 2 times": lambda: PointToPoint([0, 0], [1, 1], 1.0, ("a", "a")),
    "joint name 'a\\\\n'": lambda: PointToPoint([0], [1], 1.0, ("a\n",)),
    "1 harmonic has no motion left": lambda: rest_basis(10, 1),
    "velocity, acceleration and position": lambda: rest_basis(10, 1, [0.0]),
    "harmonics is 0": lambda: rest_basis(10, 0),
    "duration is -1": lambda: PointToPoint([0], [1], -1.0),
    "start has 1 joints, goal has 2": lambda: PointToPoint([0], [1, 2], 1.0),
    "times does not advance at sample 2: 1 -> 1 s": lambda: Spline([0, 1, 1], [[0], [1], [2]]),
    "2 times for 3 way points": lambda: Spline([0, 1], [[0], [1], [2]]),
    "degree is 4": lambda: Spline([0, 1], [[0], [1]], 4),
    "no sweep 'sideways'": lambda: Chirp(1, [0], [1], [1], [2], "sideways"),
    "a frequency is 0 Hz": lambda: Chirp(1, [0], [1], [0], [2], "exponential"),
    "ramp is 0.6": lambda: Chirp(1, [0], [1], [1], [2], ramp=0.6),
    "rows of different lengths": lambda: Sampled([0, 1], [[0, 1], [2]]),
    "qdd is given without qd": lambda: Sampled([0, 1], [[0], [1]], qdd=[[0], [1]]),
    r"tau has shape \(1, 1\), q has \(2, 1\)": lambda: Sampled([0, 1], [[0], [1]], tau=[[0]]),
    "0 trajectories in a sequence": lambda: Sequence(()),
    "velocity limit of joint 1 is 0": lambda: shortest_time([0], [1], 0.0),
    "sampling rate is 0": lambda: PointToPoint([0], [1], 1.0).grid(0),
    "samples, at most": lambda: PointToPoint([0], [1], 1.0).grid(1e12),
    r"t\[1\] is nan": lambda: PointToPoint([0], [1], 1.0).sample([0.0, np.nan]),
}


@pytest.mark.parametrize("sentence", WRONG)
def test_what_cannot_be_is_said_in_one_sentence(sentence):
    with pytest.raises(SteelyardError, match=sentence) as caught:
        WRONG[sentence]()
    assert "\n" not in str(caught.value)
