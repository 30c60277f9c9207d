"""Stribeck's law from points: `steelyard friction`."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import curve_fit
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli.main import app
from steelyard.identification.friction.curve import curve_of
from steelyard.identification.friction.fit import StribeckFit, _fit, _regression, fit_friction
from steelyard.identification.friction.points import FrictionPoints
from steelyard.identification.friction.recorded import friction_points
from steelyard.identification.friction.saved import read_friction, save_friction
from steelyard.identification.friction.table import read_points
from steelyard.physics.friction import CoulombViscous, Stribeck

QUICK = StribeckFit(simulations=199, starts=16)
SPEEDS = np.concatenate([np.linspace(-0.1, -0.002, 30), np.linspace(0.002, 0.1, 30)])


def stribeck(v, Fc=1.0, Fs=1.6, qs=0.02, Bv=3.0, delta=2.0, offset=0.0):
    return offset + (Fc + (Fs - Fc) * np.exp(-(np.abs(v / qs) ** delta))) * np.sign(v) + Bv * v


def fitted(v, tau, settings=QUICK, seed=0, **more):
    return fit_friction(FrictionPoints("joint", v, tau, **more), settings, np.random.default_rng(seed)).joints[0]


def noisy(seed, size, v=SPEEDS, **law):
    return stribeck(v, **law) + size * np.random.default_rng(seed).standard_normal(len(v))


@settings(max_examples=8, deadline=None)
@given(
    Fc=st.floats(0.1, 10), rise=st.floats(0.2, 2), qs=st.floats(0.01, 0.04), Bv=st.floats(0, 20),
    offset=st.floats(-1, 1), delta=st.floats(0.7, 3),
)  # fmt: skip
def test_without_noise_any_law_comes_back(Fc, rise, qs, Bv, offset, delta):
    law = {"coulomb": Fc, "static": Fc * (1 + rise), "stribeck_velocity": qs, "damping": Bv, "offset": offset}
    tau = stribeck(
        SPEEDS, *(law[name] for name in ("coulomb", "static", "stribeck_velocity", "damping")), delta, offset
    )
    for how in (StribeckFit(shape=delta, simulations=99), StribeckFit(shape=None, simulations=99)):
        both = fitted(SPEEDS, tau, how).both
        for name, value in law.items():
            # Residuals of 1e-16 of the torque; the curve is known to the condition of its columns, some 1e5.
            assert both.stribeck[name].value == pytest.approx(value, rel=1e-6, abs=1e-7 * Fc), name
        assert both.stribeck["shape"].value == pytest.approx(delta, rel=1e-6)


def test_the_fit_is_that_of_scipy():
    tau = noisy(3, 0.05, offset=0.1)
    found = fitted(SPEEDS, tau).both.stribeck
    theirs, _ = curve_fit(
        lambda v, Fc, Fs, qs, Bv, o: stribeck(v, Fc, Fs, qs, Bv, 2.0, o), SPEEDS, tau, [1, 1.5, 0.02, 3, 0], xtol=1e-14
    )
    ours = [found[name].value for name in ("coulomb", "static", "stribeck_velocity", "damping", "offset")]
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)  # both stop where the sum of squares is flat: half its digits


@pytest.mark.parametrize("noise", [0.03, 0.25])
def test_intervals_hold_the_truth_as_often_as_they_say(noise):
    truth = {"coulomb": 1.0, "static": 1.6, "stribeck_velocity": 0.02, "damping": 3.0, "offset": 0.1}
    runs, hits = 60, dict.fromkeys(truth, 0)
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        points = FrictionPoints("joint", SPEEDS, stribeck(SPEEDS, offset=0.1) + noise * rng.standard_normal(60))
        found = _fit(_regression(points, "both", 2.0), "both", StribeckFit(simulations=99, starts=4), rng)
        for name, value in truth.items():
            hits[name] += found.stribeck[name].low <= value <= found.stribeck[name].high
    # Of 60 intervals at 95 %, fewer than 51 hold the truth in 2 of 1000 studies.
    assert min(hits.values()) >= 51, hits


def test_points_without_a_dip_show_none():
    """At 1 % significance, 4 or more of 40 are found by chance in 1 of 1000 studies."""
    rng = np.random.default_rng(5)
    false = 0
    for _ in range(40):
        tau = stribeck(SPEEDS, Fs=1.0, offset=0.1) + 0.1 * rng.standard_normal(60)
        problem = _regression(FrictionPoints("joint", SPEEDS, tau), "both", 2.0)
        false += _fit(problem, "both", QUICK, rng).warranted
    assert false < 4
    exact = fitted(SPEEDS, stribeck(SPEEDS, Fs=1.0))
    assert not exact.both.warranted
    assert set(exact.both.values) == {"coulomb", "damping", "offset"}


def test_what_the_points_do_not_show_has_no_ends():
    slow = np.concatenate([np.linspace(-0.008, -0.001, 25), np.linspace(0.001, 0.008, 25)])
    inside = fitted(slow, noisy(0, 0.01, slow)).both
    assert inside.warranted
    assert set(inside.not_shown) == {"coulomb", "stribeck_velocity"}
    assert "where the dip ends" in inside.message
    assert inside.stribeck["static"].low <= 1.6 <= inside.stribeck["static"].high
    fast = np.concatenate([np.linspace(-0.5, -0.08, 25), np.linspace(0.08, 0.5, 25)])
    beyond = fitted(fast, noisy(1, 0.02, fast)).both
    assert not beyond.stribeck["static"].shown
    assert not beyond.warranted
    assert beyond.values["coulomb"].low <= 1.0 <= beyond.values["coulomb"].high
    assert "no Stribeck dip is visible" in beyond.message


def test_directions_that_differ_are_told_from_an_offset_and_from_none():
    verdicts = {}
    for name, forward, offset in (("same", 1.0, 0.0), ("offset", 1.0, 0.2), ("other", 1.4, 0.0)):
        scale = np.where(SPEEDS > 0, forward, 1.0)
        verdicts[name] = fitted(SPEEDS, scale * noisy(2, 0.03, offset=offset)).symmetry
    assert verdicts["same"].same > 0.01
    assert verdicts["offset"].same < 1e-6 < 0.01 < verdicts["offset"].but_offset
    assert verdicts["other"].but_offset < 1e-3
    assert [verdicts[name].symmetric for name in ("same", "offset", "other")] == [True, True, False]


def test_one_law_each_where_directions_differ():
    tau = np.where(SPEEDS > 0, 1.4, 1.0) * noisy(2, 0.01)
    joint = fitted(SPEEDS, tau)
    forward, backward = joint.chosen
    assert forward.values["coulomb"].value == pytest.approx(1.4, abs=0.05)
    assert backward.values["coulomb"].value == pytest.approx(1.0, abs=0.05)
    one_way = fitted(SPEEDS[30:], tau[30:])
    assert one_way.both is None
    assert "mirror image" in one_way.notes[0]


def test_gross_errors_are_left_out_where_asked():
    tau = noisy(4, 0.02)
    tau[::9] += 3.0
    joint = fitted(SPEEDS, tau, StribeckFit(robust=True, simulations=199))
    assert joint.left_out == 7
    for name, value in (("coulomb", 1.0), ("static", 1.6), ("damping", 3.0)):
        assert joint.both.values[name].value == pytest.approx(value, rel=0.2), name
    assert fitted(SPEEDS, tau).both.noise > 10 * joint.both.noise


def test_standing_points_only_say_how_large_static_friction_is_at_least():
    v = np.concatenate([SPEEDS, np.zeros(4)])
    tau = np.concatenate([noisy(6, 0.02), [1.5, -1.4, 0.0, 0.3]])
    joint = fitted(v, tau)
    assert joint.standing == 4
    assert joint.both.points == 60
    assert 1.4 < joint.static_at_least[0] < 1.5
    assert not joint.notes
    stuck = fitted(v, np.concatenate([tau[:60], [2.5, -1.4, 0.0, 0.3]]))
    assert "more of it at standstill" in stuck.notes[0]


def test_torques_against_the_motion_are_told():
    assert "is a sign wrong" in fitted(SPEEDS, -noisy(0, 0.02)).notes[0]
    assert not fitted(SPEEDS, noisy(0, 0.02)).notes


def test_a_law_of_another_shape_is_said_and_widens_intervals():
    v = np.linspace(0.01, 2.0, 80)
    v = np.concatenate([-v[::-1], v])
    joint = fitted(v, np.sign(v) * (1.0 + np.sqrt(np.abs(v))) + 0.003 * np.random.default_rng(0).standard_normal(160))
    assert joint.both.alike > 2
    assert "another shape" in joint.both.message


def test_friction_of_a_recording_is_that_of_the_simulated_joint(tmp_path):
    robot = sy.load_robot("two_link")
    law = Stribeck([1.2, 0.6], [1.9, 1.0], 0.1, [0.8, 0.4])
    motion = sy.design_excitation(robot, starts=1, seed=0)
    run = sy.simulate(
        robot, motion, friction=law, step=1e-4, rng=np.random.default_rng(0),
        sensors=sy.simulation.sensors.Sensors(position_noise=1e-6, torque_noise=0.02),
    )  # fmt: skip
    found = fit_friction(friction_points(robot, [run]), QUICK, np.random.default_rng(0))
    for k, joint in enumerate(found.joints):
        values = joint.chosen[0].values
        assert values["coulomb"].value == pytest.approx(law.coulomb[k], rel=0.1)
        assert values["damping"].value == pytest.approx(law.damping[k], rel=0.1)
    saved = read_friction(save_friction(found, tmp_path / "friction.yaml"))
    v = np.linspace(-1, 1, 21)[:, None] * np.ones(2)
    np.testing.assert_array_equal(saved.for_joints(robot.dof_names).torque(v), found.curve().torque(v))


def test_a_curve_is_the_law_it_was_made_of():
    v = np.linspace(-1, 1, 41)[:, None] * np.ones(2)
    away = np.abs(v).max(axis=1) > 0.02  # laws of simulation have a sign as wide as 1e-3
    for law in (Stribeck([1, 2], [1.5, 2.5], 0.1, 0.3), CoulombViscous([1, 2], 0.4, [0.1, -0.2])):
        np.testing.assert_allclose(curve_of(law, 2).torque(v)[away], law.torque(v)[away], atol=1e-12)


def table(path, text):
    path.write_text(text)
    return path


def test_tables_are_read_however_joints_are_written(tmp_path):
    v, tau = [0.1, 0.2], [1.0, 2.0]
    for name, text in {
        "pair": "velocity,torque\n0.1,1\n0.2,2\n",
        "bare": "0.1,1\n0.2,2\n",
        "unit": "velocity [mrad/s];friction\n100;1\n200;2\n",
    }.items():
        (one,) = read_points(table(tmp_path / f"{name}.csv", text))
        np.testing.assert_allclose([one.velocity, one.torque], [v, tau], rtol=1e-12, err_msg=name)
    for name, text, joints in (
        ("wide", "velocity1,torque1,velocity2,torque2\n0.1,1,0.3,3\n0.2,2,0.4,4\n", ["joint1", "joint2"]),
        ("long", "joint,velocity,torque\nhip,0.1,1\nknee,0.3,3\nhip,0.2,2\nknee,0.4,4\n", ["hip", "knee"]),
    ):
        found = read_points(table(tmp_path / f"{name}.csv", text))
        assert [one.joint for one in found] == joints
        np.testing.assert_allclose([one.torque for one in found], [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no rows"),
        ("velocity,torque\n", "no rows"),
        ("velocity,torque\n0.1,x\n0.2,1\n", "line 2"),
        ("velocity,torque\n" + "1e150,1e200\n" * 9, "is it a unit"),
        ("velocity,torque\n0.1,nan\n0.2,1\n", "line 2"),
        ("velocity,torque\n0.1\n0.2,1\n0.3,1\n", "line 2"),
        ("velocity,torque\n0.1,1\n", "different speeds"),
        ("velocity,torque\n" + "0,1\n" * 30, "different speeds"),
        ("velocity,torque\n" + "0.1,1\n" * 30, "different speeds"),
        ("velocity,current_a\n0.1,1\n", "no torque"),
        ("a,b\n0.1,1\n", "no columns of velocity and torque"),
        ("1,2,3\n1,2,3\n", "3 columns"),
        ("velocity1,torque2\n0.1,1\n", "no torque of joint"),
        ("t,q1,tau1\n0,0,1\n0.1,1,2\n", "--model"),
        ("joint,velocity,torque\n,0.1,1\na,0.2,2\n", "names no joint"),
        ("velocity,speed,torque\n0.1,0.1,1\n", "leave one out"),
        ("\x00\x01\x02\x03" * 50, "NUL"),
    ],
)
def test_a_table_that_cannot_be_used_is_one_sentence(tmp_path, text, said):
    path = table(tmp_path / "points.csv", text)
    with pytest.raises(sy.SteelyardError, match=said) as caught:
        CliRunner().invoke(app, ["friction", str(path)], catch_exceptions=False)
    assert "\n" not in str(caught.value)


def test_the_command_writes_laws_and_a_picture_and_prints_json(tmp_path):
    rows = "".join(f"{v:.6g},{tau:.6g}\n" for v, tau in zip(SPEEDS, noisy(0, 0.02), strict=True))
    path = table(tmp_path / "points.csv", "velocity,torque\n" + rows)
    files = [str(tmp_path / name) for name in ("laws.yaml", "laws.svg")]
    ran = CliRunner().invoke(
        app, ["friction", str(path), "-o", files[0], "--figure", files[1], "--json"], catch_exceptions=False
    )
    (joint,) = json.loads(ran.stdout)["joints"]
    assert joint["both"]["stribeck_warranted"]
    assert joint["both"]["parameters"]["static"]["low"] < 1.6 < joint["both"]["parameters"]["static"]["high"]
    assert read_friction(files[0]).curve.n == 1
    assert (tmp_path / "laws.svg").read_text().startswith("<svg")
    shown = CliRunner().invoke(app, ["friction", str(path)], catch_exceptions=False).stdout
    assert "stribeck velocity" in shown
    assert "symmetry: the directions do not differ" in shown
    for wrong in (["--delta", "9"], ["--confidence", "2"], ["-o", str(tmp_path / "x.txt")], ["--steady", "1"]):
        with pytest.raises(sy.OptionError):
            CliRunner().invoke(app, ["friction", str(path), *wrong], catch_exceptions=False)
