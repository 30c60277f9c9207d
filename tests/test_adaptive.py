"""Adaptive control: energy, projection, payloads found and payloads that cannot be found; computed torque."""

import dataclasses

import numpy as np
import pytest

import steelyard as sy
from steelyard.control.adaptation import adapt, errors_of, opponents
from steelyard.control.adaptive import SlotineLi, momentum_rows, noise_of_s
from steelyard.control.loop import Plant, Seen, Wanted, run_controlled
from steelyard.control.motions import reference_motion
from steelyard.control.tracking import ComputedTorque, ErrorRate, smoothing
from steelyard.control.unknowns import UnknownLoad, UnknownRobot, fully_known
from steelyard.identification.terms import StribeckTerm
from steelyard.robot.inertia import from_mass_com_inertia
from steelyard.robot.payload import with_payload
from steelyard.robot.states import random_states
from steelyard.simulation.sensors import Sensors

CENTRE = {"two_link": (0.3, 0.0, 0.0), "panda": (0.0, 0.0, 0.1), "ur5e": (0.0, 0.0, 0.1), "scara": (0.0, 0.0, -0.02)}
BODY = {"two_link": "link2", "panda": "hand", "ur5e": "wrist_3_link", "scara": "flange"}


def waves(robot, seconds=6.0, size=0.3):
    """Two sines a joint about home, that begin at rest."""
    t = np.arange(round(seconds * 1000)) / 1000
    q = np.zeros((3, len(t), robot.n))
    q[0] = robot.home
    for k in range(robot.n):
        reach = size if robot.dof_names[k] not in robot.layout.linear_dofs else 0.04
        for w in (2 * np.pi * (0.4 + 0.07 * k), 2 * np.pi * (0.7 + 0.05 * k)):
            q[0, :, k] += 0.5 * reach * (1 - np.cos(w * t))
            q[1, :, k] += 0.5 * reach * w * np.sin(w * t)
            q[2, :, k] += 0.5 * reach * w**2 * np.cos(w * t)
    return q


def carried(name, load, assume="mass", noise=1e-5, seconds=5.0, reference=None, seed=0, **settings):
    robot = fully_known(sy.load_robot(name))
    loaded = with_payload(robot, BODY[name], load, CENTRE[name])
    reference = waves(robot, seconds) if reference is None else reference
    unknown = UnknownLoad(BODY[name], assume, CENTRE[name])
    law = SlotineLi(robot, unknown, reference, position_noise=noise, **settings)
    plant = Plant(loaded, sensors=Sensors(position_noise=noise))
    return adapt(plant, law, rng=np.random.default_rng(seed)), plant


def test_momentum_rows_are_the_regressors_of_p_and_of_its_rate():
    for name in ("panda", "scara"):
        robot = fully_known(sy.load_robot(name))
        rng = np.random.default_rng(3)
        theta = robot.parameters.copy()
        for prop in ("damping", "coulomb", "offset"):
            theta[robot.layout.block(prop)] = rng.uniform(0.1, 1.0, robot.n)
        robot = robot.with_parameters(theta)
        q, qd, a = (x[0] for x in random_states(robot, rng, 1))
        Y, p, balance = momentum_rows(robot, q, qd, qd, a)
        # Rounding only.
        np.testing.assert_allclose(Y @ theta, sy.inverse_dynamics(robot, q, qd, a), atol=1e-9)
        np.testing.assert_allclose(p @ theta, sy.mass_matrix(robot, q) @ qd, atol=1e-10)
        C = sy.coriolis_matrix(robot, q, qd)
        still = sy.inverse_dynamics(robot, q, qd, np.zeros(robot.n)) - C @ qd
        np.testing.assert_allclose(balance @ theta, C.T @ qd - still, atol=1e-9)


@pytest.mark.parametrize("prediction", [0.0, 1.0])
def test_the_lyapunov_function_never_rises_without_noise_and_dead_zone(prediction):
    """V = ½ sᵀ M s + ½ φ̃ᵀ Γ⁻¹ φ̃; ticks of 0.1 ms leave a rise of rounding size where V̇ is nearly zero."""
    robot = fully_known(sy.load_robot("two_link"))
    loaded = with_payload(robot, "link2", 2.0, CENTRE["two_link"])
    t = np.arange(10_000) / 1e4
    reference = np.zeros((3, len(t), 2))
    w = 2 * np.pi * np.array([0.9, 1.3])
    phase = np.outer(t, w)
    reference[0] = robot.home + 0.3 * (1 - np.cos(phase))
    reference[1], reference[2] = 0.3 * w * np.sin(phase), 0.3 * w**2 * np.cos(phase)
    law = SlotineLi(
        robot, UnknownLoad("link2", "mass", CENTRE["two_link"]), reference, prediction=prediction, control_hz=1e4,
        velocity_cutoff_hz=2e3,
    )  # fmt: skip
    made = adapt(Plant(loaded, control_hz=1e4, limit=1e3), law, rng=np.random.default_rng(0))
    s, phi = made.run.signals["s"], made.run.signals["phi"]
    M = sy.mass_matrix(loaded, made.run.q)
    off = phi - 2.0
    V = 0.5 * np.einsum("ti,tij,tj->t", s, M, s) + 0.5 * np.einsum("ti,ij,tj->t", off, np.linalg.inv(law.gain), off)
    assert np.diff(V).max() < 1e-3 * V[0] / 100  # a thousandth of what V loses in a hundredth of the run
    assert V[-1] < 0.2 * V[0]  # in a second, at two a second


@pytest.mark.parametrize("name", ["two_link", "panda", "ur5e", "scara"])
@pytest.mark.parametrize("load", [0.5, 2.0])
def test_a_payload_is_found_within_two_percent_and_the_error_goes_to_the_dead_zone(name, load):
    made, _ = carried(name, load)
    (mass,) = made.found
    assert made.is_excited
    assert abs(mass.value / load - 1) < 0.02
    assert mass.interval()[0] <= load <= mass.interval()[1]
    assert made.within_dead_zone
    assert made.error[1].max() < 0.2 * made.error[0].max()


def test_controllers_that_do_not_learn_stay_off_and_the_one_that_knows_is_the_goal():
    made, plant = carried("panda", 2.0)
    others = {
        name: errors_of(run)[1].max() for name, run in opponents(plant, made.law, np.random.default_rng(1)).items()
    }
    ours = made.error[1].max()
    assert others["PD alone"] > 30 * ours
    assert others["computed torque, load unknown"] > 30 * ours
    assert ours < 5 * others["computed torque, load known"]


def test_mass_and_centre_of_a_point_and_ten_parameters_of_a_body_are_found():
    truth = from_mass_com_inertia(1.5, np.array(CENTRE["panda"]), np.zeros((3, 3)))
    for assume in ("point", "body"):
        made, _ = carried("panda", 1.5, assume, seconds=8.0)
        for one, true in zip(made.found, truth, strict=False):
            if one.shown:
                assert abs(one.value - true) < 3 * one.deviation + 1e-4, one
        assert made.found[0].shown
        assert made.is_excited == (assume == "point")  # these waves are too slow for all of an inertia
        assert abs(made.found[0].value / 1.5 - 1) < 0.02


def test_standing_still_it_says_that_the_motion_does_not_show_what_was_sought():
    robot = sy.load_robot("panda")
    still = reference_motion(robot, "still", 5.0)
    made, _ = carried("panda", 2.0, "body", reference=still)
    assert not made.is_excited
    assert "does not show" in made.verdict
    assert "not to be trusted" in made.verdict
    assert f"{made.rates[0]:.2g}/s" in made.verdict
    inertia = [one for one in made.found if one.name.startswith("load.I")]
    assert not any(one.shown for one in inertia)
    assert all(np.isinf(one.deviation) for one in inertia)
    # Gravity shows the mass of what is held still, and it is right.
    assert made.found[0].shown
    assert abs(made.found[0].value / 2.0 - 1) < 0.02
    assert made.within_dead_zone  # tracking does not wait for parameters


def test_a_motor_at_its_limit_does_not_spoil_what_is_learnt():
    made, _ = carried("panda", 2.0, reference=waves(sy.load_robot("panda"), 8.0, size=0.4))
    assert made.run.saturated.max() > 0.05
    (mass,) = made.found
    assert abs(mass.value / 2.0 - 1) < 0.05
    assert mass.interval()[0] <= 2.0 <= mass.interval()[1]


def test_without_gravity_nothing_is_found_of_what_stands_still_and_nothing_runs_away():
    robot = fully_known(sy.load_robot("two_link", gravity=(0, 0, 0)))
    still = reference_motion(robot, "still", 3.0)
    law = SlotineLi(robot, UnknownLoad("link2", "mass", (0.3, 0, 0)), still, position_noise=1e-5)
    plant = Plant(with_payload(robot, "link2", 2.0, (0.3, 0, 0)), sensors=Sensors(position_noise=1e-5))
    made = adapt(plant, law, rng=np.random.default_rng(0))
    assert not made.is_excited
    assert "load.m" in made.verdict
    assert np.abs(made.run.signals["phi"]).max() < 0.5
    # Deterministic limits of the same: no noise, no gravity, no motion.
    quiet = dataclasses.replace(law, position_noise=0.0)
    made = adapt(Plant(plant.robot), quiet, rng=np.random.default_rng(0))
    assert not made.is_excited
    assert made.run.signals["phi"][-1, 0] == 0.0


@pytest.mark.parametrize("assume", ["mass", "point", "body"])
def test_a_mass_is_never_negative_even_where_everything_says_so(assume):
    """The robot is lighter than its model: the best load would be negative."""
    robot = fully_known(sy.load_robot("two_link"))
    theta = robot.parameters.copy()
    theta[robot.layout.body("link2")] *= 0.5
    reference = waves(robot, 2.0)
    law = SlotineLi(robot, UnknownLoad("link2", assume, (0.2, 0, 0), guess=0.3), reference)
    made = adapt(Plant(robot.with_parameters(theta)), law, rng=np.random.default_rng(0))
    floor = law.unknown.not_negative(law.known)
    assert made.run.signals["phi"][:, floor].min() >= 0.0
    if assume == "mass":
        assert made.run.signals["phi"][-1, 0] == 0.0


def test_projection_never_takes_parameters_farther_from_a_truth_that_is_possible():
    robot = fully_known(sy.load_robot("panda"))
    law = SlotineLi(robot, UnknownLoad("hand", "body"), waves(robot, 2.0))
    memory, metric = law.start(robot.n, 1e-3), np.linalg.inv(law.gain)
    floor, rng = law.unknown.not_negative(robot), np.random.default_rng(0)
    size = np.sqrt(np.diag(law.gain))
    for _ in range(200):
        truth, phi = (rng.normal(size=10) * size for _ in range(2))
        truth[floor] = np.abs(truth[floor])
        there = memory.projected(phi)
        assert there[floor].min() >= 0
        before, after = ((x - truth) @ metric @ (x - truth) for x in (phi, there))
        assert after <= before * (1 + 1e-6)


def test_the_dead_zone_is_three_deviations_of_s_as_noise_makes_it():
    dt, cutoff, stiffness, noise = 1e-3, 60.0, 25.0, 1e-4
    rng, errors = np.random.default_rng(0), ErrorRate(1, cutoff, dt)
    zero = np.zeros(1)
    s = []
    for tick in range(20_000):
        q = noise * rng.standard_normal(1)
        error, rate = errors.read(Seen(tick, 0.0, q, zero, q, zero, zero), Wanted(zero, zero, zero))
        s.append((rate + stiffness * error)[0])
    predicted = float(noise_of_s(noise, smoothing(cutoff, dt), stiffness, dt))
    assert np.std(s[1000:]) == pytest.approx(predicted, rel=0.05)  # of a coloured series of 19,000: 2 %


def test_intervals_hold_the_truth_as_often_as_they_say_with_noisy_encoders():
    inside = [
        mass.interval()[0] <= 2.0 <= mass.interval()[1]
        for seed in range(6)
        for mass in carried("two_link", 2.0, noise=1e-4, seconds=3.0, seed=seed)[0].found
    ]
    assert sum(inside) >= 5


def test_all_parameters_of_a_robot_adapt_and_only_combinations_are_claimed():
    robot = fully_known(sy.load_robot("two_link"))
    loaded = with_payload(robot, "link2", 1.0, (0.3, 0, 0))
    law = SlotineLi(robot, UnknownRobot(robot), waves(robot, 4.0), position_noise=1e-6)
    made = adapt(Plant(loaded, sensors=Sensors(position_noise=1e-6)), law, rng=np.random.default_rng(0))
    base = sy.base_parameters(robot)
    assert 0 < made.combinations_shown <= base.rank
    assert not made.is_excited
    assert (
        made.error[1].max()
        < 0.05 * errors_of(opponents(Plant(loaded), law, np.random.default_rng(0))["PD alone"])[1].max()
    )
    # What is claimed of single parameters is true.
    for one, true in zip(made.found, loaded.parameters, strict=True):
        assert not one.shown or abs(one.value - true) < 4 * one.deviation + 1e-3, one


def test_computed_torque_by_an_estimate_follows_as_by_the_robot_it_found():
    robot = sy.load_robot("two_link")
    theta = robot.parameters.copy()
    theta[robot.layout.block("damping")] = 0.3
    real = with_payload(robot.with_parameters(theta), "link2", 0.5, (0.3, 0, 0))
    reference = waves(robot, 2.0)
    rows = (np.arange(reference.shape[1]) / 1000, reference[0], sy.inverse_dynamics(real, *reference))
    found = sy.identify(robot, sy.Recording(*rows, *reference[1:]), preprocessing=None)
    runs = [run_controlled(Plant(real), ComputedTorque(model), reference) for model in (found, found.robot, robot)]
    # The same model computed in two ways.
    np.testing.assert_allclose(runs[0].tau, runs[1].tau, atol=1e-6)
    assert runs[0].rms_error().max() < 0.01 * runs[2].rms_error().max()


def test_what_cannot_be_adapted_is_refused():
    robot = fully_known(sy.load_robot("two_link"))
    reference = waves(robot, 0.5)
    with pytest.raises(sy.OptionError, match="moving body to carry the load 'hand'"):
        SlotineLi(robot, UnknownLoad("hand"), reference)
    with pytest.raises(sy.OptionError, match="rate is -1"):
        SlotineLi(robot, UnknownLoad("link2"), reference, rate=-1)
    with pytest.raises(sy.OptionError, match="assumption on the load"):
        UnknownLoad("link2", "cube")
    with pytest.raises(sy.OptionError, match="position_noise"):
        SlotineLi(robot, UnknownLoad("link2"), reference, position_noise=-1e-5)
    with pytest.raises(sy.OptionError, match="made for 1000 Hz"):
        run_controlled(Plant(robot, control_hz=500.0), SlotineLi(robot, UnknownLoad("link2"), reference), reference)
    with pytest.raises(sy.DataError, match="reference has 10 ticks"):
        adapt(Plant(robot), SlotineLi(robot, UnknownLoad("link2"), reference[:, :10]), rng=np.random.default_rng(0))
    with pytest.raises(sy.OptionError, match="none of still, excite, and no file"):
        reference_motion(robot, "wiggle")


def test_terms_of_an_estimate_act_in_its_computed_torque():
    """A Stribeck term is no part of the robot; the controller has it all the same."""
    robot = sy.load_robot("two_link", friction=("coulomb",))
    reference = waves(robot, 1.0)
    rows = (np.arange(reference.shape[1]) / 1000, reference[0], sy.inverse_dynamics(robot, *reference))
    recording = sy.Recording(*rows, *reference[1:])
    found = sy.identify(robot, recording, preprocessing=None, terms=(StribeckTerm((0.1, 0.1)),))
    parameters = found.parameters.copy()
    parameters[-2:] = 0.7
    stuck = dataclasses.replace(found, parameters=parameters)
    q, qd = robot.home, np.array([0.02, -0.02])
    with_term, without = (
        ComputedTorque(model).start(2, 1e-3).step(Seen(0, 0.0, q, qd, q, qd, np.zeros(2)), Wanted(q, qd, np.zeros(2)))
        for model in (stuck, stuck.robot)
    )
    more = with_term - without
    assert more[0] > 0.1
    assert more[1] < -0.1
