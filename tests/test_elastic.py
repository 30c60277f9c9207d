"""Flexible joints: poles, boundary layer, root locus and margins, and the simulated motion that follows them."""

import numpy as np
import pytest
import scipy.linalg
import scipy.signal

import steelyard as sy
from steelyard.control.elastic_loop import ElasticLoop, elastic_plant, root_locus, settling_time, stability_limit
from steelyard.control.elastic_study import disagreement, smooth_step, study_flexible
from steelyard.control.flexible import PrintedLaw, TwoTimeScale, closed_loop, pendulum, twist_damping
from steelyard.control.loop import Plant, run_controlled
from steelyard.physics.transmission import BoucWen, FlexibleJoint, modes
from steelyard.simulation.loop import SimulationError
from steelyard.simulation.sensors import Sensors

J, B, K, G = 1.0, 0.1, 100.0, 10.0
JOINT = FlexibleJoint(B, K)


@pytest.fixture(scope="module")
def robot():
    return pendulum(J, G)


@pytest.fixture(scope="module")
def plant(robot):
    return elastic_plant(robot, JOINT, [0.0])


def same_poles(found, expected, tolerance):
    order = scipy.optimize.linear_sum_assignment(np.abs(found[:, None] - expected[None, :]))[1]
    return np.abs(found - expected[order]).max() < tolerance


def test_the_pendulum_of_the_exercise_is_what_it_says(robot):
    np.testing.assert_allclose(sy.mass_matrix(robot, [0.3]), [[J]], rtol=1e-12)
    assert sy.gravity(robot, [0.7])[0] == pytest.approx(G * np.sin(0.7), rel=1e-9)  # MuJoCo keeps nine digits or more
    assert sy.gravity(pendulum(2.0, 0.0), [0.7])[0] == 0.0


def test_open_loop_poles_are_the_modes_of_the_free_joint(plant):
    poles = np.linalg.eigvals(plant.A)
    np.testing.assert_allclose(np.sort(poles[poles.imag > 0].imag), modes(J, B, K, G), rtol=1e-8)
    # Not the 3.16 and 33.2 that textbooks take, each mode alone.
    np.testing.assert_allclose(modes(J, B, K, G), [3.014, 33.18], rtol=1e-4)


def test_closed_loop_poles_are_the_roots_of_the_closed_form(robot, plant):
    """Of both laws, written out by hand as polynomials of s."""
    w, zeta = 5.0, 0.7
    mu = J * B / (J + B)
    fast = B / mu * 2 * zeta * np.sqrt(K * mu)
    kp, kv = w**2 * (J + B), 2 * w * (J + B)
    # (J s² + G + K) q = K θ;  (B s² + fast s + K) θ = (K − kp + G − (kv − fast) s) q
    link = np.array([J, 0.0, G + K])
    ours = np.polysub(np.polymul(link, [B, fast, K]), K * np.array([-(kv - fast), K - kp + G]))
    loop = closed_loop(plant, TwoTimeScale(robot, JOINT, w, zeta))
    assert same_poles(loop.poles, np.roots(ours), 1e-6)
    b = 2 * zeta * np.sqrt(K * B)
    # As printed: B θ̈ = −k θ − b θ̇ + 2k (q − θ); without its term k (q − θ): B θ̈ = −k θ − b θ̇ + k (q − θ).
    for spring, stiff, pull in ((True, 3 * K, 2 * K), (False, 2 * K, K)):
        printed = np.polysub(np.polymul(link, [B, b, stiff]), [K * pull])
        loop = closed_loop(plant, PrintedLaw(robot, JOINT, zeta, spring))
        assert same_poles(loop.poles, np.roots(printed), 1e-6)


def test_the_printed_law_leaves_the_link_swinging_and_off_its_aim(robot, plant):
    loop = closed_loop(plant, PrintedLaw(robot, JOINT))
    assert loop.is_stable
    assert loop.damping_ratios.min() == pytest.approx(0.076, abs=0.001)  # not the 0.7 that b was made for
    aim = 0.3
    reference = smooth_step([0.0], [aim], 0.1, 1.0, 15.0, 1000.0)
    run = run_controlled(Plant(robot, flexible=JOINT), PrintedLaw(robot, JOINT), reference)
    rest = scipy.optimize.brentq(lambda q: K * (aim - q) - 3 * G * np.sin(q) + 2 * G * np.sin(aim), 0.0, aim)
    assert run.q[-1, 0] == pytest.approx(rest, abs=2e-4)  # e^−7 of its swing is left after 14 s
    assert aim - rest == pytest.approx(G * np.sin(aim) / (K + 3 * G * np.cos(aim)), rel=0.01)


def test_the_boundary_layer_is_stable_just_where_its_damping_is_positive():
    """μ δ̈ + D δ̇ + K δ = 0 of many joints: D from the law gives every mode the asked ratio."""
    rng = np.random.default_rng(0)
    for n in (1, 3, 7):
        root = rng.normal(size=(n, n))
        M, Bn, Kn = root @ root.T + np.eye(n), np.diag(rng.uniform(0.1, 1, n)), np.diag(rng.uniform(1e2, 1e4, n))
        D, mu = twist_damping(M, Bn, Kn, 0.6)
        assert np.linalg.eigvalsh(D).min() > 0
        zero, one = np.zeros((n, n)), np.eye(n)
        for sign, stable in ((1.0, True), (-1.0, False)):
            A = np.block([[zero, one], [-np.linalg.solve(mu, Kn), -sign * np.linalg.solve(mu, D)]])
            poles = np.linalg.eigvals(A)
            np.testing.assert_allclose(-poles.real / np.abs(poles), sign * 0.6, rtol=1e-6)
            assert (poles.real.max() < 0) == stable


def test_without_fast_damping_the_slow_loop_shakes_the_springs_apart(robot, plant):
    loop = closed_loop(plant, TwoTimeScale(robot, JOINT, zeta=0.0))
    assert not loop.is_stable
    assert settling_time(loop.poles) == np.inf
    still = np.zeros((3, 4000, 1))
    with pytest.raises(SimulationError, match="ran away"):
        run_controlled(Plant(robot, flexible=JOINT, limit=1e6), TwoTimeScale(robot, JOINT, zeta=0.0), still + 0.0,
                       start=[0.5])  # fmt: skip


def test_the_root_locus_joins_poles_of_every_gain_without_a_jump(robot, plant):
    law = TwoTimeScale(robot, JOINT)
    gains = np.linspace(2.0, 20.0, 200)
    locus = root_locus(lambda w: closed_loop(plant, law.at(w)), gains)
    for w, poles in zip(gains[::40], locus[::40], strict=True):
        assert same_poles(poles, np.linalg.eigvals(closed_loop(plant, law.at(w)).A), 1e-9)
    # A branch moves on by less than it is away from the others, but where two of them meet and part.
    assert np.median(np.abs(np.diff(locus, axis=0)).max(axis=1)) < 0.5


def test_the_margin_is_the_gain_at_which_poles_stand_on_the_axis(robot, plant):
    law = TwoTimeScale(robot, JOINT)
    limit = stability_limit(lambda w: closed_loop(plant, law.at(w)).growth, 0.5)
    assert closed_loop(plant, law.at(0.99 * limit)).is_stable
    assert not closed_loop(plant, law.at(1.01 * limit)).is_stable
    assert abs(closed_loop(plant, law.at(limit)).growth) < 1e-6
    # Routh's array of the quartic changes sign there, too.
    w, mu = limit, J * B / (J + B)
    fast = B / mu * 2 * 0.7 * np.sqrt(K * mu)
    kp, kv = w**2 * (J + B), 2 * w * (J + B)
    a = np.polysub(
        np.polymul([J, 0, G + K], [B, fast, K]), K * np.array([-(kv - fast), K - kp + G])
    )  # fmt: skip
    assert a[1] * a[2] * a[3] == pytest.approx(a[0] * a[3] ** 2 + a[1] ** 2 * a[4], rel=1e-6)


@pytest.mark.parametrize("law", [TwoTimeScale, PrintedLaw])
def test_simulated_vibration_decays_as_the_poles_of_the_held_loop_say(robot, law):
    """The logarithmic decrement of the slowest swing, or the slowest decay, of the simulated link."""
    made = law(robot, JOINT)
    plant = Plant(robot, flexible=JOINT, sensors=Sensors(velocity="measured"))
    loop = closed_loop(elastic_plant(robot, JOINT, [0.0]), made)
    # Held torque and a linear plant: only 1e-4 rad of sin(q) and the integrator part them.
    assert disagreement(plant, made, loop, np.zeros(1)) < 1e-6
    run = run_controlled(plant, made, np.zeros((3, 4000, 1)), start=[1e-3])
    slowest = loop.sampled_poles(1e-3)[np.argmax(loop.sampled_poles(1e-3).real)]
    late = run.q[1500:, 0]
    if abs(slowest.imag) > 0:
        peaks, _ = scipy.signal.find_peaks(late)
        decrement = np.log(late[peaks[0]] / late[peaks[-1]]) / (len(peaks) - 1)
        period = 1e-3 * np.diff(peaks).mean()
        assert period == pytest.approx(2 * np.pi / abs(slowest.imag), rel=2e-3)
        assert decrement / period == pytest.approx(-slowest.real, rel=2e-3)  # peaks stand on ticks
    else:
        assert np.log(late[0] / late[500]) / 0.5 == pytest.approx(-slowest.real, rel=1e-3)


def test_held_poles_are_those_of_the_exact_discretisation(robot, plant):
    loop = closed_loop(plant, TwoTimeScale(robot, JOINT))
    A, E, *_ = scipy.signal.cont2discrete((plant.A, plant.E, np.eye(4), np.zeros((4, 1))), 1e-2)
    z = np.linalg.eigvals(A - E @ loop.feedback)
    assert same_poles(loop.sampled_poles(1e-2), np.log(z.astype(complex)) / 1e-2, 1e-6)
    assert same_poles(loop.sampled_poles(1e-6), loop.poles, 1e-2)


def test_two_joints_follow_on_two_time_scales():
    robot, joint = sy.load_robot("two_link"), FlexibleJoint(0.1, [2000.0, 500.0])
    study = study_flexible(robot, joint, bandwidth=10.0, step=0.3, seconds=3.0)
    ours = study.laws["two time scales"]
    assert ours.is_stable
    assert ours.disagreement < 1e-5
    assert ours.smooth.rms < 1e-3
    assert ours.step.overshoot < 0.02
    assert ours.step.offset < 1e-3
    assert not study.laws["slow part alone"].is_stable
    assert study.limit > 10.0
    # Friction of links is in the plant, and in the law.
    theta = robot.parameters.copy()
    theta[robot.layout.block("damping")] = [2.0, 1.0]
    damped = robot.with_parameters(theta)
    loop = closed_loop(elastic_plant(damped, joint, robot.home), TwoTimeScale(damped, joint, 10.0))
    there = Plant(damped, flexible=joint, sensors=Sensors(velocity="measured"))
    assert disagreement(there, TwoTimeScale(damped, joint, 10.0), loop, robot.home) < 1e-4


def test_what_has_no_poles_is_refused(robot):
    with pytest.raises(sy.OptionError, match="play and hysteresis"):
        elastic_plant(robot, FlexibleJoint(B, K, gap=0.01), [0.0])
    with pytest.raises(sy.OptionError, match="play and hysteresis"):
        elastic_plant(robot, FlexibleJoint(B, K, hysteresis=BoucWen(1, 1, 1)), [0.0])
    with pytest.raises(sy.OptionError, match="bandwidth is 0"):
        TwoTimeScale(robot, JOINT, 0.0)
    with pytest.raises(sy.OptionError, match="zeta is -1"):
        TwoTimeScale(robot, JOINT, 1.0, -1.0)
    with pytest.raises(sy.OptionError, match="link inertia is 0"):
        pendulum(0.0, 1.0)
    with pytest.raises(sy.OptionError, match="beyond its range"):
        study_flexible(sy.load_robot("two_link"), FlexibleJoint(B, K), step=10.0)
    with pytest.raises(sy.OptionError, match="root locus"):
        root_locus(lambda w: ElasticLoop(elastic_plant(robot, JOINT, [0.0]), np.zeros((1, 4))), [1.0])
