"""What an inspection must find in recordings whose faults are known, and that nothing trips it."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import steelyard as sy
from odd_recordings import odd_recordings
from steelyard.cli.output import plain
from steelyard.data.quality import inspect_recording
from steelyard.data.recording import Recording, save_recording
from steelyard.excitation.trajectory import Fourier

RATE = 500.0


@pytest.fixture(scope="module")
def robot():
    return sy.load_robot("ur5e")


@pytest.fixture(scope="module")
def clean(robot):
    """Twenty seconds of a UR5e with friction and a little noise."""
    rng = np.random.default_rng(4)
    t = np.arange(int(20 * RATE)) / RATE
    a, b = 0.5 * rng.normal(size=(2, robot.n, 5))
    q, qd, qdd = Fourier(10.0, robot.home, a, b, robot.dof_names).sample(np.mod(t, 10.0))
    tau = sy.inverse_dynamics(robot, q, qd, qdd) + 2.0 * np.sign(qd) + 3.0 * qd
    tau += 0.1 * rng.normal(size=tau.shape)
    return Recording(t, q, tau, qd, joints=robot.dof_names)


def kinds(report, severity=None):
    return {finding.what for finding in report.findings if severity in (None, finding.severity)}


def test_a_good_recording_is_called_good(clean, robot):
    report = inspect_recording(clean, robot)
    assert report.verdict == "good", report.findings
    assert report.fit
    np.testing.assert_allclose(report.measures["torque_scale"][:3], 1.0, atol=0.05)
    # 0.1 N·m, and the part of friction's steps that lies above a quarter of the sampling rate
    assert 0.09 < min(report.measures["torque_noise"]) < max(report.measures["torque_noise"]) < 0.2
    assert report.measures["gravity_angle_degrees"] < 1.0
    assert abs(report.measures["torque_delay_s"]) < 4 * report.measures["torque_delay_deviation_s"] + 1e-4
    json.dumps(plain(report.as_dict()), allow_nan=False)


@pytest.mark.parametrize("late", [0.012, -0.008])
def test_a_delay_is_found_with_its_uncertainty(clean, robot, late):
    shifted = np.stack([np.interp(clean.t - late, clean.t, x) for x in clean.tau.T], axis=1)
    report = inspect_recording(replace(clean, tau=shifted), robot)
    found, sigma = report.measures["torque_delay_s"], report.measures["torque_delay_deviation_s"]
    assert found == pytest.approx(late, abs=1e-3)
    assert sigma < 1e-3
    assert "delay" in kinds(report, "warning")


def test_a_tilted_mounting_is_found(clean, robot):
    tilt = np.radians(25.0)
    tilted = replace(robot, gravity=9.81 * np.array([np.sin(tilt), 0.0, -np.cos(tilt)]))
    moved = sy.inverse_dynamics(tilted, clean.q, clean.qd, 0 * clean.q)
    upright = sy.inverse_dynamics(robot, clean.q, clean.qd, 0 * clean.q)
    report = inspect_recording(replace(clean, tau=clean.tau + moved - upright), robot)
    (finding,) = report.about("mounting")
    # the torque's noise and the smoothed corners of friction: a degree
    assert finding.number == pytest.approx(25.0, abs=1.0)


def test_a_flipped_sign_is_found_at_its_joint(clean, robot):
    tau = clean.tau.copy()
    tau[:, 1] *= -1
    report = inspect_recording(replace(clean, tau=tau), robot)
    assert [f.joint for f in report.about("sign") if f.severity == "error"] == [robot.dof_names[1]]
    assert not report.fit


def test_motor_torque_is_told_from_joint_torque(clean, robot):
    report = inspect_recording(replace(clean, tau=clean.tau / 100.0), robot)
    found = [f for f in report.about("scale") if f.severity == "error"]
    assert len(found) >= 3
    assert all(1 / f.number == pytest.approx(100.0, rel=0.15) for f in found[:3])


@pytest.mark.parametrize(("factor", "severity"), [(-1.0, "error"), (57.2958, "warning")])
def test_velocities_that_do_not_fit_positions_are_found(clean, factor, severity):
    qd = clean.qd.copy()
    qd[:, 2] *= factor
    (finding,) = inspect_recording(replace(clean, qd=qd)).about("velocity")
    assert finding.severity == severity
    assert finding.joint == clean.joints[2]
    assert finding.number == pytest.approx(factor, rel=0.01)


def test_missing_frozen_saturated_and_absurd_values_are_found_with_their_rows(clean):
    q, tau, qd = clean.q.copy(), clean.tau.copy(), clean.qd.copy()
    q[700:705, 0] = np.nan
    tau[:, 3] = 1.25
    tau[:, 1] = np.clip(tau[:, 1], -30.0, 30.0)
    qd[900, 4] = 1e7
    report = inspect_recording(replace(clean, q=q, tau=tau, qd=qd))
    (missing,) = report.about("missing")
    assert (missing.joint, missing.rows, missing.number) == (clean.joints[0], (700, 704), 5.0)
    (frozen,) = report.about("frozen")
    assert (frozen.joint, frozen.severity) == (clean.joints[3], "error")
    assert {f.joint for f in report.about("saturated")} == {clean.joints[1]}
    (absurd,) = report.about("absurd")
    assert absurd.rows == (900, 900)


def test_gaps_and_jitter_are_found(clean, rng):
    keep = (clean.t < 5.0) | (clean.t > 5.5)
    t = np.sort(clean.t[keep] + rng.uniform(0, 1e-3, size=keep.sum()))
    report = inspect_recording(Recording(t, clean.q[keep], clean.tau[keep]))
    (gap,) = report.about("gap")
    assert gap.number == pytest.approx(0.5, abs=0.01)
    assert gap.rows == (2499, 2500)
    assert "jitter" in kinds(report)


def test_standstill_is_found_from_when_to_when(clean):
    q, qd = clean.q.copy(), clean.qd.copy()
    q[6000:], qd[6000:] = q[6000], 0.0
    q = np.round(q / 1e-5) * 1e-5
    (finding,) = inspect_recording(replace(clean, q=q, qd=qd)).about("standstill")
    assert finding.seconds == pytest.approx((12.0, 20.0), abs=0.06)


def test_limits_of_the_model_are_held_against_the_recording(clean, robot):
    upper = robot.limits.upper.copy()
    upper[2] = np.quantile(clean.q[:, 2], 0.9)
    narrow = replace(robot, limits=replace(robot.limits, upper=upper))
    finding = next(f for f in inspect_recording(clean, narrow).about("limit") if "position" in f.text)
    assert finding.joint == robot.dof_names[2]


def test_a_motion_that_shows_little_says_what_it_does_not_show(clean, robot):
    q, qd = np.array(np.broadcast_to(robot.home, clean.q.shape)), np.zeros(clean.q.shape)
    q[:, 5], qd[:, 5] = clean.q[:, 5], clean.qd[:, 5]
    report = inspect_recording(replace(clean, q=q, qd=qd), robot)
    assert {"blind", "frozen"} <= kinds(report, "warning")


def test_another_robot_is_not_held_against_the_recording(clean):
    report = inspect_recording(clean, sy.load_robot("panda"))
    assert "6 joints and panda has 7" in report.about("model")[0].text


@settings(max_examples=80, deadline=None)
@given(recording=odd_recordings(), with_robot=st.booleans())
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_odd_recordings_get_a_report(recording, with_robot):
    report = inspect_recording(recording, sy.load_robot("two_link") if with_robot else None)
    assert report.verdict
    json.dumps(plain(report.as_dict()), allow_nan=False)


def test_the_command_prints_the_verdict_first(clean, tmp_path):
    path = save_recording(clean, tmp_path / "run.npz")
    command = [sys.executable, "-m", "steelyard", "inspect", str(path), "--model", "ur5e"]
    page = subprocess.run(command, capture_output=True, text=True, check=True)
    assert page.stdout.startswith("run.npz: good\n")
    machine = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(machine.stdout)["fit"] is True


REAL = {
    "tx40": ("tx40", "tx40.yaml", ("standstill", 7.5, 0.1)),
    "panda": ("panda-gaz2019", "panda_gaz2019.yaml", ("jitter", None, None)),
    "ur10": ("rosbags/ur10_exciting_trajectory", "ur10_bag.yaml", ("reader", None, None)),
}


@pytest.mark.parametrize("name", REAL)
def test_real_recordings_show_what_is_known_of_them(name, real_data, request):
    folder, mapping, (what, since, within) = REAL[name]
    examples = request.config.rootpath / "examples"
    model = sy.load_robot(name)
    run = sy.load_recording(real_data / folder, model, examples / mapping, repair=True)
    report = inspect_recording(run, model)
    finding = report.about(what)[0]
    if since is not None:
        assert finding.seconds[0] == pytest.approx(since, abs=within)
    if what == "jitter":
        assert "from 0.7 to 8.81 ms" in finding.text
    if what == "reader":
        assert "no metadata.yaml" in finding.text
    assert report.fit
    assert report.measures["condition"] < 100
