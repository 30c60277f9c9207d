"""Estimators that simulate the loop, asked for on the command line."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli.main import app
from steelyard.data.recording import Recording
from steelyard.errors import SteelyardError
from steelyard.excitation.trajectory import Fourier
from steelyard.robot.export import export_model
from steelyard.simulation.controllers import pid_for
from steelyard.simulation.rig import run_rig
from steelyard.simulation.sensors import Sensors

RUN = CliRunner()


def asked(*arguments):
    done = RUN.invoke(app, ["identify", *(str(x) for x in arguments), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def refused(*arguments):
    done = RUN.invoke(app, ["identify", *(str(x) for x in arguments)])
    assert isinstance(done.exception, SteelyardError), done.output
    return str(done.exception)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A recording with three ticks of delay, the same without a word on how it was made, and a wrong model."""
    place = tmp_path_factory.mktemp("loop")
    robot = sy.load_robot("two_link")
    theta = robot.parameters.copy()
    theta[robot.layout.block("damping")], theta[robot.layout.block("armature")] = 0.4, 0.02
    robot = robot.with_parameters(theta)
    a = 0.5 * np.random.default_rng(1).normal(size=(2, 5))
    motion = Fourier(3.0, robot.home, a - a.mean(axis=1, keepdims=True), 0 * a, robot.dof_names)
    sensors = Sensors(position_noise=1e-6, torque_noise=0.01, delay_ticks=3)
    made = sy.simulate(robot, motion, sensors=sensors, rng=np.random.default_rng(0), cartesian=False)
    sy.save_recording(made, place / "run.npz")
    wanted = {name: made.more[name] for name in ("q_d", "qd_d", "qdd_d")}
    sy.save_recording(Recording(made.t, made.q, made.tau, joints=made.joints, more=wanted), place / "silent.npz")
    controller = pid_for(robot, integral=0.0, model="none")
    sy.save_recording(run_rig(robot, motion, controller=controller).recording, place / "rig.npz")
    theta[robot.layout.inertial] *= 1.15
    export_model(robot.with_parameters(theta), place / "wrong.xml")
    gains = "".join(f"{name}: {made.about['controller'][name]}\n" for name in ("kp", "kd", "ki"))
    (place / "loop.yaml").write_text(gains + "control_hz: 1000\nvelocity: differentiated\n")
    return place


MODEL = ("--model", "wrong.xml")


def test_the_recording_says_how_it_was_driven(folder, monkeypatch):
    monkeypatch.chdir(folder)
    found = asked("run.npz", *MODEL, "-a", "IDIM-IV,DIDIM,CLOE,CLIE,PC-IV,PC-DIDIM,PC-CLOE,Adaline,Hopfield")
    assert set(found["methods"]) == {
        "IV", "DIDIM", "CLOE", "CLIE", "PC-IV", "PC-DIDIM", "PC-CLOE", "Adaline", "HopfieldTank",
    }  # fmt: skip
    assert all(one["converged"] for one in found["methods"].values()), found["methods"]
    for score in found["validation"].values():
        assert score["relative"] < 0.25 * score["nominal_relative"]


def test_a_loop_file_and_the_delay_that_it_leaves_open(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert "loop" in refused("silent.npz", *MODEL, "-a", "DIDIM")
    wrong = asked("silent.npz", *MODEL, "-a", "CLOE", "--loop", "loop.yaml")
    assert "are no noise: the controller" in wrong["methods"]["CLOE"]["message"]
    found = asked("silent.npz", *MODEL, "-a", "CLOE", "--loop", "loop.yaml", "--seek", "delay")
    assert found["methods"]["CLOE"]["fit"]["delay_ticks"] == 3
    assert "whose delay is 3 ticks" in found["methods"]["CLOE"]["message"]


def test_without_a_controller_stretches_are_shot(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for more in ((), ("--horizon", "0.2")):
        found = asked("silent.npz", *MODEL, "-a", "CLOE", *more)
        assert "under the measured torques" in found["methods"]["CLOE"]["message"]


def test_mujoco_simulates_where_it_is_asked_to(folder, monkeypatch):
    monkeypatch.chdir(folder)
    found = asked("rig.npz", *MODEL, "-a", "CLOE", "--rollout", "mujoco", "--signals", "q,qd")
    assert "in MuJoCo" in found["methods"]["CLOE"]["message"]
    assert found["validation"]["CLOE"]["relative"] < 0.25 * found["validation"]["CLOE"]["nominal_relative"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("-a", "WLS", "--seek", "delay"), "add --algorithm CLOE"),
        (("-a", "WLS", "--loop", "loop.yaml"), "methods that simulate"),
        (("-a", "CLOE", "--rollout", "bullet"), "mujoco, own"),
        (("-a", "CLOE", "--seek", "luck"), "gains, delay, start"),
        (("-a", "CLOE", "--horizon", "-1"), "above zero"),
        (("-a", "CLOE", "--loop", "none.yaml"), "cannot be read"),
    ],
)
def test_options_are_checked(folder, monkeypatch, options, told):
    monkeypatch.chdir(folder)
    assert told in refused("run.npz", *MODEL, *options)


def test_motors_that_turn_two_joints_are_columns_of_real_recordings_only(tmp_path):
    robot = sy.load_robot("tx40")
    a = 0.2 * np.random.default_rng(1).normal(size=(6, 5))
    motion = Fourier(3.0, robot.home, a - a.mean(axis=1, keepdims=True), 0 * a, robot.dof_names)
    made = sy.simulate(robot, motion, cartesian=False)
    sy.save_recording(made, tmp_path / "run.npz")
    more = {name: made.more[name] for name in ("q_d", "qd_d", "qdd_d")}
    sy.save_recording(Recording(made.t, made.q, made.tau, joints=made.joints, more=more), tmp_path / "silent.npz")
    usual = ("--model", "tx40", "-a", "WLS")
    assert not any("+" in name.split(".")[0] for name in asked(tmp_path / "run.npz", *usual)["parameters"])
    assert "joint_6+joint_5.armature" in asked(tmp_path / "silent.npz", *usual)["parameters"]
    assert "joint_6+joint_5.armature" not in asked(tmp_path / "silent.npz", *usual, "--terms", "none")["parameters"]
