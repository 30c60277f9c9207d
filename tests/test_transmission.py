"""What stands between motor and link, against closed forms and scipy."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.optimize import minimize_scalar

from steelyard.errors import DataError, OptionError
from steelyard.physics import transmission as tr
from steelyard.physics.kernels.transmission import backlash_torque, bouc_wen, giving_joint
from steelyard.robot.sidecar import Gear

J, B, K, MGL = 1.0, 0.1, 100.0, 10.0  # the flexible joint of the textbook's exercise
TX40_WRIST = Gear(
    joints=("joint_5", "joint_6"),
    ratio=(45.0, 32.0),
    coupling=({"motor_of": "joint_6", "joint": "joint_5", "ratio": 32.0},),
    at_motor_zero=(0.1, -0.2),
)


def test_the_flexible_joint_of_the_textbook_shows_its_two_frequencies():
    assert np.sqrt(MGL / J) == pytest.approx(3.16, abs=5e-3)
    assert tr.resonance(J, B, K) == pytest.approx(33.2, abs=0.05)
    assert tr.antiresonance(J, K) == pytest.approx(10.0)


def test_exact_modes_are_the_eigenvalues_of_the_linearised_joint_and_what_the_doc_says():
    A = np.zeros((4, 4))
    A[:2, 2:] = np.eye(2)
    A[2:, :2] = [[-(K + MGL) / J, K / J], [K / B, -K / B]]
    slow, fast = np.unique(np.round(np.abs(scipy.linalg.eig(A)[0].imag), 9))
    np.testing.assert_allclose(tr.modes(J, B, K, MGL), [slow, fast], rtol=1e-8)
    np.testing.assert_allclose(tr.modes(J, B, K, MGL), [3.014, 33.18], rtol=1e-4)
    assert slow < np.sqrt(MGL / (J + B)) < np.sqrt(MGL / J)
    # rotor without inertia, or stiff joint: the textbook's rigid mode, and the free rotor's
    assert tr.modes(J, 1e-7, 1e6, MGL)[0] == pytest.approx(np.sqrt(MGL / J), rel=1e-5)
    assert tr.modes(J, B, 1e8, MGL)[0] == pytest.approx(np.sqrt(MGL / (J + B)), rel=1e-5)


def test_without_gravity_the_modes_are_a_free_turn_and_the_resonance():
    np.testing.assert_allclose(tr.modes(J, B, K), [0.0, tr.resonance(J, B, K)], rtol=1e-12)
    assert np.isnan(tr.modes(J, B, K, -MGL)[0])  # upright: it falls


def test_modes_of_coupled_links_are_those_of_its_generalised_eigenvalue_problem():
    M = np.array([[3.0, 0.8], [0.8, 0.5]])
    rotors, springs = np.array([0.1, 0.05]), np.array([400.0, 150.0])
    k = np.block([[np.diag(springs), -np.diag(springs)], [-np.diag(springs), np.diag(springs)]])
    squares = scipy.linalg.eig(k, scipy.linalg.block_diag(M, np.diag(rotors)))[0].real
    expected = np.sqrt(np.maximum(0, np.sort(squares)))
    np.testing.assert_allclose(tr.modes(M, rotors, springs), expected, atol=1e-5)


def test_the_antiresonance_is_where_the_motor_stands_still():
    """Transfer from motor torque to motor angle: numerator J s² + K."""
    joint = tr.FlexibleJoint(B, K)
    w = float(tr.antiresonance(J, K))
    response = np.linalg.solve(np.array([[K - J * w**2, -K], [-K, K - B * w**2]]), [0.0, 1.0])
    assert abs(response[1]) < 1e-12
    assert joint.fastest_rate(J)[0] == pytest.approx(tr.resonance(J, B, K))


def test_compiled_flexible_joint_is_the_array_one_and_keeps_its_energy():
    joint = tr.FlexibleJoint([B, 0.2], [K, 50.0], 0.0)
    table = joint.packed(2)

    def rates(t, x):
        theta, q, thetad, qd = x
        torque, _ = giving_joint(table[0], theta - q, thetad - qd, 0.0)
        return [thetad, qd, -torque / B, (torque - MGL * np.sin(q)) / J]

    y = solve_ivp(rates, (0, 3), [0.3, 0.2, 0.0, 1.0], rtol=1e-9, atol=1e-10).y
    theta, q, thetad, qd = (row[:, None] for row in y)
    energy = joint.energy(theta, q, thetad)[:, 0] + 0.5 * J * y[3] ** 2 - MGL * np.cos(y[1])
    np.testing.assert_allclose(energy, energy[0], rtol=1e-7)
    remembers = tr.BoucWen(20.0, 50.0, 3.0, 1.0)
    for damped in (
        tr.FlexibleJoint(B, K, 2.0),
        tr.FlexibleJoint(B, K, 2.0, 0.01),
        tr.FlexibleJoint(B, K, 2.0, 0.0, remembers),
    ):
        torque = damped.torque(theta, q, thetad, qd, 0.3)
        compiled = [giving_joint(damped.packed(1)[0], x[0] - x[1], x[2] - x[3], 0.3)[0] for x in y.T]
        np.testing.assert_allclose(compiled, torque[:, 0], rtol=1e-12, atol=1e-12)


def hysteresis_loop(law, amplitude, cycles=3):
    def rates(t, x):
        rate, z = amplitude * np.cos(t), x[0]
        torque, zdot = bouc_wen(law.packed(1)[0], amplitude * np.sin(t), rate, z)
        return [zdot, torque * rate, law.dissipated_power(rate, z)[0]]

    t = 2 * np.pi * np.linspace(0, cycles, cycles * 200 + 1)
    return solve_ivp(rates, (0, t[-1]), [0.0, 0.0, 0.0], t_eval=t, rtol=1e-8, atol=1e-9).y


@pytest.mark.parametrize(("gamma", "exponent"), [(0.0, 1.0), (1.5, 1.0), (-1.0, 2.0), (2.0, 1.5)])
def test_the_area_of_a_hysteresis_loop_is_the_energy_it_takes(gamma, exponent):
    law = tr.BoucWen(50.0, slope=40.0, beta=2.0, gamma=gamma, exponent=exponent)
    z, work, heat = hysteresis_loop(law, amplitude=1.0)
    assert np.abs(z).max() <= law.bound[0] * (1 + 1e-6)
    area, taken = work[-1] - work[-201], heat[-1] - heat[-201]  # the last cycle, when the loop is closed
    assert area > 0
    assert area == pytest.approx(taken, rel=1e-5)
    assert np.all(np.diff(heat) >= -1e-6)  # the solver's tolerance


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_hysteresis_takes_energy_at_every_instant_as_compiled(seed):
    rng = np.random.default_rng(seed)
    beta = rng.uniform(0.1, 5)
    law = tr.BoucWen(rng.uniform(0, 9), rng.uniform(0.1, 9), beta, rng.uniform(-0.99, 1) * beta, rng.uniform(1, 3))
    twist, rate, z = rng.normal(0, 3, (3, 20))
    compiled = np.array([bouc_wen(law.packed(1)[0], *x) for x in zip(twist, rate, z, strict=True)])
    np.testing.assert_allclose(compiled, np.stack([law.torque(twist, z), law.zdot(rate, z)], axis=1), rtol=1e-10)
    heat = z * rate - z * law.zdot(rate, z) / law.slope
    np.testing.assert_allclose(heat, law.dissipated_power(rate, z), rtol=1e-9, atol=1e-9)
    assert np.all(law.dissipated_power(rate, z) >= 0)


def test_a_harmonic_drive_loses_the_width_it_was_given():
    drive = tr.harmonic_drive(2e4, 100.0, 0.1)
    z, *_ = hysteresis_loop(drive, amplitude=0.01)
    assert drive.bound == pytest.approx(5.0)
    assert np.ptp(z) == pytest.approx(10.0, rel=1e-3)
    low, high = tr.HARMONIC_DRIVE_HYSTERESIS
    assert low <= 0.1 <= high


def test_backlash_is_dead_within_its_gap_and_never_pulls():
    law = tr.Backlash(1000.0, gap=0.02, damping=5.0)
    np.testing.assert_allclose(law.torque([-0.03, -0.01, 0.0, 0.01, 0.03]), [-20, 0, 0, 0, 20])
    twist, rate = np.random.default_rng(3).normal(0, [[0.02], [3.0]], (2, 300))
    torque = law.torque(twist, rate)
    assert np.all(torque * twist >= 0)
    compiled = [backlash_torque(law.packed(1)[0], a, b) for a, b in zip(twist, rate, strict=True)]
    np.testing.assert_allclose(compiled, torque, rtol=1e-12)
    np.testing.assert_allclose(tr.Backlash(1000.0, 0.0).torque(twist), 1000.0 * twist)


def test_a_pretensioned_belt_is_twice_as_stiff_until_one_span_is_slack():
    belt = tr.Belt(axial_stiffness=1e5, length=0.5, radius=0.02, pretension=100.0)
    k, r, slack = 1e5 / 0.5, 0.02, belt.slack_twist[0]
    assert belt.stiffness(0.5 * slack) == pytest.approx(2 * k * r**2)
    assert belt.stiffness(1.5 * slack) == pytest.approx(k * r**2)
    assert belt.natural_frequency(0.01) / belt.natural_frequency(0.01, 2 * slack) == pytest.approx(np.sqrt(2))
    twist = slack * np.array([-2.5, -0.7, 0.3, 0.9, 1.1, 3.0])
    h = 1e-6 * slack
    np.testing.assert_allclose((belt.torque(twist + h) - belt.torque(twist - h)) / (2 * h), belt.stiffness(twist), 1e-6)
    assert belt.tensions(slack)[1] == pytest.approx(0.0, abs=1e-9)
    assert tr.Belt(1e5, 0.5, 0.02, 0.0).stiffness() == pytest.approx(k * r**2)


@pytest.mark.parametrize("teeth", [5, 12, 17, 40])
def test_a_chain_runs_unevenly_by_its_polygon_and_evenly_on_average(teeth):
    chain = tr.Chain(teeth, pitch=0.0127)
    angle = 2 * np.pi * (np.arange(200_000) + 0.5) / 200_000
    speed = chain.speed(angle, 3.0)
    assert 1 - speed.min() / speed.max() == pytest.approx(chain.ripple, rel=1e-3)
    assert chain.ripple == pytest.approx(1 - np.cos(np.pi / teeth))
    assert speed.mean() == pytest.approx(3.0 * teeth * 0.0127 / (2 * np.pi), rel=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.5, 3.0])
def test_the_optimal_ratio_gives_the_largest_acceleration(share):
    def slowness(log_ratio):
        return -float(tr.load_acceleration(np.exp(log_ratio), 4.0, 1e-3, 0.5, share * 0.5))

    best = np.exp(minimize_scalar(slowness, bounds=(0, 8), method="bounded", options={"xatol": 1e-9}).x)
    assert tr.optimal_ratio(4.0, 1e-3, share) == pytest.approx(best, rel=1e-5)


def test_at_the_optimal_ratio_inertias_match():
    n = tr.optimal_ratio(4.0, 1e-3)
    assert tr.inertia_ratio(4.0, 1e-3, n) == pytest.approx(1.0)
    assert tr.reflected_inertia(4.0, n) == pytest.approx(1e-3)
    assert all(0 < rule.low < rule.high for rule in tr.RATIO_RULES.values())


def test_a_coupled_wrist_keeps_its_power_and_its_positions():
    rng = np.random.default_rng(7)
    joint, rate, torque = rng.normal(size=(3, 20, 2))
    motor = tr.motor_positions(TX40_WRIST, joint)
    np.testing.assert_allclose(motor[:, 1], 32 * (joint[:, 1] + 0.2) + 32 * (joint[:, 0] - 0.1), rtol=1e-12)
    np.testing.assert_allclose(tr.joint_positions(TX40_WRIST, motor), joint, atol=1e-12)
    motor_rate = tr.motor_velocities(TX40_WRIST, rate)
    np.testing.assert_allclose(tr.joint_velocities(TX40_WRIST, motor_rate), rate, atol=1e-12)
    power = np.sum(motor_rate * torque, axis=1)
    np.testing.assert_allclose(np.sum(rate * tr.joint_torques(TX40_WRIST, torque), axis=1), power, rtol=1e-10)
    np.testing.assert_allclose(tr.motor_torques(TX40_WRIST, tr.joint_torques(TX40_WRIST, torque)), torque, atol=1e-12)


def test_coupled_rotors_add_their_kinetic_energy_to_the_mass_matrix():
    rotors, rate = np.array([1e-4, 2e-4]), np.array([0.7, -1.3])
    energy = 0.5 * np.sum(rotors * tr.motor_velocities(TX40_WRIST, rate) ** 2)
    added = tr.rotor_inertia(TX40_WRIST, rotors)
    assert 0.5 * rate @ added @ rate == pytest.approx(energy)
    assert added[0, 1] == pytest.approx(32 * 32 * 2e-4)


def test_settings_that_cannot_be_used_are_refused_with_joint_and_number():
    refusals = {
        "stiffness of joint 2 is 0": lambda: tr.FlexibleJoint(0.1, [1, 0]),
        "gamma is 3, outside": lambda: tr.BoucWen(1, 1, 2, 3),
        "gamma is -2, -beta": lambda: tr.BoucWen(1, 1, 2, -2),
        "exponent is 0.5, below 1": lambda: tr.BoucWen(1, 1, 2, 1, 0.5),
        "gap is -0.1": lambda: tr.Backlash(1, -0.1),
        "2 teeth": lambda: tr.Chain(2, 0.01),
        "pitch is 0": lambda: tr.Chain(12, 0.0),
        "above 0": lambda: tr.harmonic_drive(1e4, 0.0),
        "set for 2 joints, the robot has 3": lambda: tr.FlexibleJoint([0.1, 0.2], 1).packed(3),
    }
    for sentence, attempt in refusals.items():
        with pytest.raises(OptionError, match=sentence):
            attempt()
    with pytest.raises(DataError, match="gear has 2 joints"):
        tr.joint_positions(TX40_WRIST, np.zeros((5, 3)))
