"""Compensations of friction, and `steelyard compensate`."""

import json
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli.main import app
from steelyard.control.compensation import Adaptive, Compensated, Dither, DitherWarning, FeedForward, Pulse
from steelyard.control.disturbance import DisturbanceObserver
from steelyard.control.following import Following
from steelyard.control.friction_trial import (
    NONE,
    Trial,
    compare_compensations,
    moves_and_rests,
    turns,
    usual_torque_scale,
)
from steelyard.control.loop import Plant, Seen, Wanted, run_controlled
from steelyard.identification.friction.curve import curve_of
from steelyard.identification.friction.fit import StribeckFit, fit_friction
from steelyard.identification.friction.points import FrictionPoints
from steelyard.identification.friction.recorded import without_friction
from steelyard.identification.friction.saved import save_friction
from steelyard.physics.friction import CoulombViscous, LuGre, friction_named
from steelyard.simulation.controllers import Controller, computed_torque, pid_for
from steelyard.simulation.loop import ClosedLoop
from steelyard.simulation.sensors import Sensors
from trees import random_mjcf

NOISY = Sensors(position_noise=1e-5)


def trial_on(robot, law_name="lugre", wrong=1.0, trial=None, seconds=3.0, only=()):
    """Outcomes by name."""
    trial = Trial() if trial is None else trial
    reference = moves_and_rests(robot, seconds=seconds)
    scale = usual_torque_scale(robot, trial.stiffness(robot, reference))
    law = friction_named(law_name, scale)
    believed = curve_of(law, robot.n).scaled(wrong)
    found = compare_compensations(
        Plant(robot, law, sensors=NOISY), reference, believed, np.random.default_rng(0), trial, only=only
    )
    return {one.name: one for one in found}


def two_joints(friction=None, **more):
    robot = sy.load_robot("two_link")
    law = friction_named("lugre", robot.limits.torque) if friction is None else friction
    return robot, Plant(robot, law, **more), moves_and_rests(robot, seconds=2.0)


@pytest.mark.parametrize("model", ["none", "gravity", "computed torque"])
def test_following_moves_as_the_compiled_controller_does(model):
    robot, plant, reference = two_joints(CoulombViscous(0.5, 0.4), step=1e-4)
    gains = Controller(80.0, 8.0, model=model)
    loop = ClosedLoop(robot, reference, gains, 1000.0, step=1e-4, friction=CoulombViscous(0.5, 0.4))
    here = run_controlled(plant, Following(robot, gains), reference)
    # The same law in another language; rounding, which stiff dry friction multiplies.
    np.testing.assert_allclose(here.q, loop.run().q, atol=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_every_compensation_lowers_the_error_on_random_arms(seed, tmp_path):
    """Feed-forward, adaptation and observer by a third and more; dither and pulses only free joints that stick."""
    rng = np.random.default_rng(seed)
    path = tmp_path / "arm.xml"
    path.write_text(random_mjcf(rng, 2 + seed % 2, ("hinge", "slide"), free=False))
    outcomes = trial_on(without_friction(sy.load_robot(str(path))))
    best = {"feed-forward": 1.5, "feed-forward, measured": 1.0, "adaptive": 1.5, "observer": 1.5}
    for name, least in {**best, "dither": 0.99, "pulses": 1.0}.items():
        assert outcomes[name].overall >= least, name
        assert not outcomes[name].failed


@pytest.mark.parametrize("law", ["stribeck", "lugre"])
def test_every_compensation_lowers_the_error_of_the_library_arm(law):
    outcomes = trial_on(sy.load_robot("two_link"), law)
    better = {name: one.overall for name, one in outcomes.items() if name != NONE}
    assert better["feed-forward"] > 2.5
    assert better["feed-forward, measured"] > 1.1
    assert better["adaptive"] > 5
    assert better["observer"] > 5
    assert better["dither"] > 1.0
    assert better["pulses"] > 1.05
    assert not any(one.oscillates.any() for one in outcomes.values())


def test_over_compensation_of_the_measured_velocity_oscillates():
    """More than all of the friction makes damping negative; less does not: the textbook's third pitfall."""
    rest = {
        gain: trial_on(sy.load_robot("two_link"), trial=Trial(gain=gain), only=("feed-forward, measured",))[
            "feed-forward, measured"
        ]
        for gain in (0.8, 1.8)
    }
    assert not rest[0.8].oscillates.any()
    assert rest[1.8].oscillates.all()


def test_twice_the_friction_fed_forward_is_as_bad_as_none():
    robot = sy.load_robot("two_link")
    one = {"trial": Trial(gain=1.0), "only": ("feed-forward",)}
    errors = [trial_on(robot, wrong=wrong, **one)["feed-forward"].overall for wrong in (1.0, 2.0)]
    assert errors[0] > 4
    assert errors[1] < 1.5


def test_the_observer_finds_a_push_without_accelerations():
    robot, _, reference = two_joints()
    bare = without_friction(robot)
    push = np.zeros((reference.shape[1], 2))
    push[500:] = [1.5, -0.7]
    controller = Compensated(Following(bare, computed_torque(4.0)), (DisturbanceObserver(bare, 10.0, gain=0.0),))
    run = run_controlled(Plant(bare), controller, reference, push=push)
    seen = run.signals["disturbance"]
    # A low-pass of 10 Hz has 1 − e⁻¹ of a step after 1/(2π 10) s, and all of it a second later.
    assert seen[500 + 16, 0] == pytest.approx(1.5 * (1 - np.exp(-1)), rel=0.05)
    np.testing.assert_allclose(seen[-1], [1.5, -0.7], rtol=1e-2)
    np.testing.assert_allclose(seen[:500], 0.0, atol=0.02)


@pytest.mark.parametrize("bandwidth", [1.0, 100.0, 1e4])
def test_the_observer_itself_is_stable_at_any_bandwidth(bandwidth):
    robot, plant, reference = two_joints(sensors=NOISY)
    bare = without_friction(robot)
    controller = Compensated(
        Following(bare, pid_for(bare, integral=0.0, model="gravity")), (DisturbanceObserver(bare, bandwidth, gain=0.0),)
    )
    seen = run_controlled(plant, controller, reference, rng=np.random.default_rng(0)).signals["disturbance"]
    assert np.isfinite(seen).all()


def test_adaptation_finds_coulomb_and_viscous_friction():
    robot = sy.load_robot("two_link")
    bare, law = without_friction(robot), CoulombViscous([1.0, 0.5], [2.0, 1.0])
    t = np.arange(12001)[:, None] / 1000.0
    w = 2 * np.pi * np.array([0.4, 0.5])
    reference = np.stack([0.5 * (1 - np.cos(w * t)), 0.5 * w * np.sin(w * t), 0.5 * w**2 * np.cos(w * t)])
    gains = pid_for(bare, 4.0, integral=0.0, model="gravity")
    model = Following(bare, computed_torque(4.0))
    kp = gains.gains(2)[0]
    part = Adaptive(kp, 4 * np.pi, width=0.02)
    run = run_controlled(Plant(bare, law), Compensated(model, (part,)), reference)
    theta = run.signals["theta"][-5000:].mean(axis=0)
    # The offset and what is left of friction in the steps of sgn keep a part; a fifth is what is promised.
    np.testing.assert_allclose(theta[0], [1.0, 0.5], rtol=0.2)
    np.testing.assert_allclose(theta[1], [2.0, 1.0], rtol=0.2)
    assert (run.signals["theta"][:, :2] >= 0).all()


def steps_of(part, n=1, dt=1e-3):
    return part.start(n, dt)


def seen(tick, q=0.0, qd=0.0, dt=1e-3):
    one = np.ones(1)
    return Seen(tick, tick * dt, q * one, qd * one, q * one, qd * one, 0 * one)


def wanted(q=0.0, qd=0.0):
    one = np.ones(1)
    return Wanted(q * one, qd * one, 0 * one)


def test_within_the_dead_zone_nothing_is_learnt_and_dry_friction_never_gets_negative():
    part = steps_of(Adaptive(100.0, 10.0, dead_zone=0.1, smoothing=0.0))
    part.step(seen(0, qd=0.05), wanted(qd=0.0))
    assert not part.theta.any()
    for tick in range(50):  # faster than wanted: less friction than believed
        part.step(seen(tick, qd=1.0), wanted(qd=0.5))
    assert part.theta[0, 0] == 0.0
    assert part.theta[2, 0] < 0.0  # an offset may be


def test_a_pulse_comes_when_a_joint_is_stuck_off_its_place_and_never_else():
    law = CoulombViscous(2.0, 0.0)
    part = steps_of(Pulse(law, share=0.5, threshold=0.01, deadband=1e-3, length=0.01, pause=0.02, smoothing=0.0))
    pulses = np.array([part.step(seen(k), wanted(q=0.01))[0] for k in range(60)])
    np.testing.assert_array_equal(pulses, np.tile([1.0] * 10 + [0.0] * 20, 2))
    for q, qd in ((5e-4, 0.0), (0.01, 0.02)):  # in the dead band; on its way
        part = steps_of(Pulse(law, threshold=0.01, deadband=1e-3, smoothing=0.0))
        assert not any(part.step(seen(k, qd=qd), wanted(q=q))[0] for k in range(60))


def test_a_dither_is_a_sine_and_warns_where_it_cannot_be_one():
    law = CoulombViscous(2.0, 0.0)
    part = steps_of(Dither(law, 0.2, 100.0))
    torque = np.array([part.step(seen(k), wanted())[0] for k in range(1000)])
    spectrum = np.abs(np.fft.rfft(torque)) / 500
    assert spectrum.argmax() == 100
    assert spectrum.max() == pytest.approx(0.4, rel=1e-6)
    for frequency, said in ((500.0, "Nyquist"), (300.0, "distorted"), (15.0, "within reach")):
        with pytest.warns(DitherWarning, match=said):
            steps_of(Dither(law, 0.2, frequency, bandwidth_hz=4.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        steps_of(Dither(law, 0.2, 200.0, bandwidth_hz=4.0))


def test_feed_forward_is_a_share_of_the_law_with_a_straight_line_at_standstill():
    law = curve_of(CoulombViscous(2.0, 1.0), 1)
    part = steps_of(FeedForward(law, 0.8, width=0.01))
    for qd, torque in ((0.5, 0.8 * 2.5), (-0.5, -0.8 * 2.5), (0.0, 0.0), (0.005, 0.4 * 2.01)):
        assert part.step(seen(0), wanted(qd=qd))[0] == pytest.approx(torque, rel=1e-12)
        assert steps_of(FeedForward(law, 0.8, "measured", 0.01)).step(seen(0, qd=qd), wanted())[0] == pytest.approx(
            torque
        )


def test_turns_counts_swings_larger_than_a_height():
    t = np.linspace(0, 10, 5001)
    assert turns(np.sin(2 * np.pi * t), 0.5) == 20
    assert turns(0.2 * np.sin(2 * np.pi * t) + t, 0.5) == 0
    assert turns(np.zeros(10), 0.1) == 0


def test_moves_and_rests_are_derivatives_within_the_limits():
    for name in ("panda", "scara"):
        robot = sy.load_robot(name)
        q, qd, qdd = moves_and_rests(robot, 1000.0, 6.0)
        # Central differences of a polynomial of fifth degree; the acceleration has corners where moves begin.
        np.testing.assert_allclose(np.gradient(q, 1e-3, axis=0)[1:-1], qd[1:-1], atol=1e-6)
        np.testing.assert_allclose(np.gradient(qd, 1e-3, axis=0)[1:-1], qdd[1:-1], atol=1e-3)
        assert (q >= robot.limits.lower).all()
        assert (q <= robot.limits.upper).all()
        assert (np.abs(qd).max(axis=0) > 0).all()


def test_settings_that_make_no_sense_are_refused():
    law = LuGre(1.0, 1.5, 0.1, 500.0)
    robot = sy.load_robot("two_link")
    for make in (
        lambda: FeedForward(law, -1.0),
        lambda: FeedForward(law, velocity="guessed"),
        lambda: DisturbanceObserver(robot, 0.0),
        lambda: DisturbanceObserver(robot, gain=2.0),
        lambda: Dither(law, share=np.nan),
        lambda: Pulse(law, length=0.0),
        lambda: Following(robot, Controller(1.0, 1.0, 1.0)),
        lambda: Trial("magic"),
        lambda: steps_of(Adaptive([1.0, 2.0, 3.0], 1.0), 2),
        lambda: steps_of(FeedForward(curve_of(law, 3)), 2),
    ):
        with pytest.raises(sy.OptionError):
            make()


def run_command(*arguments):
    return CliRunner().invoke(app, ["compensate", "two_link", "--seconds", "1.5", *arguments], catch_exceptions=False)


def test_the_command_compares_and_takes_what_was_identified(tmp_path):
    rng, v = np.random.default_rng(0), np.concatenate([np.linspace(-1, -0.01, 40), np.linspace(0.01, 1, 40)])
    points = [
        FrictionPoints(name, v, size * (1 + 0.5 * np.exp(-((v / 0.1) ** 2))) * np.sign(v) + 0.5 * v + 0.1)
        for name, size in (("joint1", 1.0), ("joint2", 0.5))
    ]
    file = save_friction(fit_friction(points, StribeckFit(simulations=99), rng), tmp_path / "friction.yaml")
    told = json.loads(run_command("--result", str(file), "--friction", "lugre", "--json").stdout)
    assert {one["name"] for one in told["ways"]} >= {"none", "feed-forward", "adaptive", "observer", "dither", "pulses"}
    own = json.loads(run_command("--result", str(file), "--json").stdout)
    ways = {one["name"]: one for one in own["ways"]}
    assert ways["feed-forward"]["overall_improvement"] > 1.5
    shown = run_command("--friction", "lugre:coulomb=1/0.4,static=1.5/0.6,stribeck_velocity=0.1,bristle_stiffness=500")
    assert "rms error of each joint" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--friction", "glue"], "glue"),
        (["--friction", "stribeck:coulomb=1"], "static"),
        (["--friction", "stribeck:coulomb=x"], "takes a number"),
        (["--friction", "stribeck:grip=1"], "grip"),
        (["--friction", "coulomb:coulomb=1/2/3"], "joints"),
        (["--wrong-by", "much"], "--wrong-by"),
        (["--wrong-by", "-200%"], "--wrong-by"),
        (["--controller", "magic"], "magic"),
        (["--result", "nowhere.yaml"], "no such file"),
        (["--seconds", "0.2"], "ends before"),
        (["--gain", "-1"], "gain"),
        (["--dither", "0"], "frequency_hz"),
    ],
)
def test_options_that_cannot_be_are_one_sentence(arguments, said):
    with pytest.raises(sy.SteelyardError, match=said):
        run_command(*arguments)


def test_robots_that_this_loop_is_not_for_are_refused():
    for arguments in (["wheel_legged"], ["two_link", "--rate", "0"]):
        with pytest.raises(sy.OptionError):
            CliRunner().invoke(app, ["compensate", *arguments], catch_exceptions=False)


def test_cautions_are_told():
    assert "Nyquist" in run_command("--dither", "500").stdout
    held = run_command("--friction", "lugre:coulomb=50,static=60,stribeck_velocity=0.1,bristle_stiffness=1e5").stdout
    assert "hardly lets" in held
