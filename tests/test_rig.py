"""The rig is another robot: MuJoCo's physics, not ours, under the torque that it says."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from threading import Event

import mujoco
import numpy as np
import pytest

import steelyard as sy
from steelyard.data.recording import read_npz
from steelyard.excitation.exchange import write_trajectory
from steelyard.excitation.trajectory import Fourier
from steelyard.simulation.controllers import Controller, pid_for
from steelyard.simulation.rig import Noise, RigError, run_rig
from steelyard.simulation.rig_control import pd_for, timing
from steelyard.simulation.rig_model import Difference, Payload, rig_model


def wave(robot, rng, period=2.0, size=0.3):
    reach = np.minimum(robot.limits.upper - robot.home, robot.home - robot.limits.lower)
    size = np.minimum(size, 0.15 * reach)[:, None]
    a, b = (rng.normal(size=(robot.n, 3)) * size for _ in range(2))
    return Fourier(period, robot.home, a, b, robot.dof_names)


def still(robot):
    zero = np.zeros((robot.n, 2))
    return Fourier(1.0, robot.home, zero, zero, robot.dof_names)


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "steelyard", *map(str, arguments)], capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize("name", ["two_link", "panda", "ur5e", "scara"])
def test_the_rig_needs_the_torque_that_the_equation_of_motion_says(name, rng):
    robot = sy.load_robot(name)
    recording = run_rig(robot, wave(robot, rng), publish_rate_hz=1000).recording
    middle = slice(200, -1)
    qdd = (recording.qd[2:] - recording.qd[:-2]) / 2e-3
    rows = [x[1:-1][middle] for x in (recording.q, recording.qd)]
    tau = sy.inverse_dynamics(robot, *rows, qdd[middle])
    # Torque acts from its sample on, one step of 1 ms ahead of the central difference, and the step itself is of first
    # order: a thousandth of a second of the change of torque.
    allowed = 2e-3 * np.abs(np.diff(recording.tau, axis=0) / 1e-3)[200:].max(axis=0) + 1e-3
    assert (np.abs(tau - recording.tau[1:-1][middle]) < allowed).all()


def test_what_moves_is_mj_step_under_the_recorded_torque(rng):
    robot = sy.load_robot("two_link")
    recording = run_rig(robot, wave(robot, rng), publish_rate_hz=500, noise=Noise(1e-3, 1e-2, 0.1), rng=rng).recording
    model = mujoco.MjModel.__copy__(robot.source.model)
    model.opt.timestep = recording.about["step"]
    assert recording.about["step"] == pytest.approx(1 / 500)
    data = mujoco.MjData(model)
    data.qpos[:] = recording.more["q_true"][0]
    for k in range(len(recording) - 1):
        data.qfrc_applied[:] = recording.more["tau_commanded"][k]
        mujoco.mj_step(model, data)
        np.testing.assert_array_equal(data.qpos, recording.more["q_true"][k + 1])


def test_a_locked_joint_is_as_good_as_a_joint_that_is_not_there(rng):
    held = sy.load_robot("ur5e", lock={"elbow_joint": 0.7})
    spec = held.source.spec.copy()
    joint = spec.joint("elbow_joint")
    body, axis = joint.parent, np.array(joint.axis)
    turn = np.empty(4)
    mujoco.mju_axisAngle2Quat(turn, axis, 0.7)
    pose = np.empty(4)
    mujoco.mju_mulQuat(pose, np.array(body.quat), turn)
    assert np.allclose(joint.pos, 0)
    body.quat = pose
    spec.delete(joint)
    for key in list(spec.keys):
        spec.delete(key)
    for actuator in list(spec.actuators):
        spec.delete(actuator)
    welded = spec.compile()
    model, _, _ = rig_model(held, Difference())
    ours, theirs = mujoco.MjData(model), mujoco.MjData(welded)
    q, qd, tau = held.home + 0.1, rng.normal(size=held.n), rng.normal(size=held.n)
    ours.qpos[:] = held.model_position
    ours.qpos[held.model_coordinates], ours.qvel[held.model_dofs] = q, qd
    ours.qfrc_applied[held.model_dofs] = tau
    theirs.qpos[:], theirs.qvel[:], theirs.qfrc_applied[:] = q, qd, tau
    mujoco.mj_forward(model, ours)
    mujoco.mj_forward(welded, theirs)
    # The rotor that holds it is 1e10 times as heavy as the robot.
    scale = np.abs(theirs.qacc).max()
    np.testing.assert_allclose(ours.qacc[held.model_dofs], theirs.qacc, atol=1e-7 * scale)


def test_a_payload_weighs_what_it_weighs():
    robot = sy.load_robot("panda")
    heavy = Difference((Payload("hand", 2.0, (0.0, 0.0, 0.1)),))
    runs = [run_rig(robot, still(robot), difference=d, seconds=4.0).recording for d in (Difference(), heavy)]
    link = robot.source.model.body("hand").id
    data = mujoco.MjData(robot.source.model)
    data.qpos[:] = robot.model_position
    data.qpos[robot.model_coordinates] = runs[1].more["q_true"][-1]
    mujoco.mj_forward(robot.source.model, data)
    jacobian = np.zeros((3, robot.source.model.nv))
    point = data.xpos[link] + data.xmat[link].reshape(3, 3) @ [0, 0, 0.1]
    mujoco.mj_jac(robot.source.model, data, jacobian, None, point, link)
    expected = 2.0 * 9.81 * jacobian[2, robot.model_dofs]
    own = [sy.gravity(robot, run.more["q_true"][-1]) for run in runs]
    # After four seconds at a bandwidth of 4 Hz it stands still to within a hundredth of a newton metre.
    np.testing.assert_allclose(runs[1].tau[-1] - own[1], expected, atol=0.02)
    np.testing.assert_allclose(runs[0].tau[-1] - own[0], 0.0, atol=0.02)


def test_least_squares_on_the_rigs_recording_find_the_payload(rng):
    robot = sy.load_robot("panda")
    load = Payload("hand", 1.5, (0.02, -0.03, 0.1))
    path = wave(robot, rng, period=4.0, size=1.0)
    base = sy.base_parameters(robot)
    loaded = robot.parameters.copy()
    c = np.array(load.com)
    I = load.moment * np.eye(3) + load.mass * (c @ c * np.eye(3) - np.outer(c, c))
    loaded[robot.layout.body("hand")] += [load.mass, *(load.mass * c), *I[np.triu_indices(3)]]
    nominal, truth = base.reduce(robot.parameters), base.reduce(loaded)
    errors = []
    for rate in (1000, 2000):
        recording = run_rig(robot, path, difference=Difference((load,)), publish_rate_hz=rate).recording
        qdd = (recording.qd[2:] - recording.qd[:-2]) * rate / 2
        tau = 0.5 * (recording.tau[1:-1] + recording.tau[:-2])  # what acted before and after the sample
        pick = slice(rate // 2, None, rate // 200)
        motion = recording.q[1:-1][pick], recording.qd[1:-1][pick], qdd[pick]
        Y, y = sy.regressor(robot, *motion), tau[pick] - sy.known_torque(robot, *motion)
        found = np.linalg.lstsq(Y.reshape(-1, Y.shape[2])[:, base.kept], y.ravel(), rcond=None)[0]
        errors.append(np.abs(found - truth).max() / np.abs(truth - nominal).max())
    # MuJoCo's semi-implicit step is of first order: half the step, half the error, a few hundredths at 1 ms.
    assert errors[0] < 0.05
    assert 0.45 * errors[0] < errors[1] < 0.55 * errors[0]


def test_dry_friction_and_damping_are_those_asked_for(rng):
    robot = sy.load_robot("two_link")
    path = wave(robot, rng)
    runs = [
        run_rig(robot, path, difference=d, publish_rate_hz=1000).recording
        for d in (Difference(), Difference(damping_scale=3.0, coulomb=[0.3, 0.2]))
    ]
    model, _, coulomb = rig_model(robot, Difference(damping_scale=3.0, coulomb=[0.3, 0.2]))
    np.testing.assert_allclose(model.dof_damping, 3 * robot.source.model.dof_damping)
    np.testing.assert_allclose(coulomb, [0.3, 0.2])
    rubbed = runs[1]
    qdd = np.gradient(rubbed.qd, rubbed.t, axis=0)
    frictionless = replace(robot, joint_parameters=robot.joint_parameters * [1, 0, 0, 0])
    friction = rubbed.tau - sy.inverse_dynamics(frictionless, rubbed.q, rubbed.qd, qdd)
    damping = 3 * robot.source.model.dof_damping
    for j, dry in enumerate([0.3, 0.2]):
        moving = (np.abs(rubbed.qd[:, j]) > 0.1) & (np.arange(len(rubbed)) > 300)
        expected = dry * np.sign(rubbed.qd[:, j]) + damping[j] * rubbed.qd[:, j]
        # In the median, for at a turn of the other joint the differenced acceleration has a step in it.
        assert np.median(np.abs(friction - expected[:, None])[moving, j]) < 0.02


def test_the_true_model_may_be_another_file(tmp_path, rng):
    robot = sy.load_robot("two_link")
    heavy = robot.parameters.copy()
    heavy[robot.parameter_names.index(f"{robot.layout.bodies[-1]}.m")] *= 1.5
    path = tmp_path / "true.xml"
    sy.export_model(robot.with_parameters(heavy), path)
    truth = sy.load_robot(path)
    recording = run_rig(robot, still(robot), truth=truth, seconds=4.0).recording
    q = recording.more["q_true"][-1]
    np.testing.assert_allclose(recording.tau[-1], sy.gravity(truth, q), atol=1e-2 * np.abs(sy.gravity(truth, q)).max())
    with pytest.raises(sy.OptionError, match="joints"):
        run_rig(robot, still(robot), truth=sy.load_robot("panda"))


@pytest.mark.parametrize(("rate", "model_step"), [(100, 0.002), (1000, 0.002), (30, 0.002), (333, 0.001), (7, 0.0005)])
def test_a_sample_is_a_whole_number_of_steps_none_longer_than_the_models(rate, model_step):
    step, count = timing(rate, model_step)
    assert step * count == pytest.approx(1 / rate, rel=1e-12)
    assert step <= model_step * (1 + 1e-9)
    assert step > model_step / 2 or count == 1


@pytest.mark.parametrize("name", ["iiwa14", "panda", "scara", "tx40", "two_link", "ur10", "ur5e"])
def test_the_controller_follows_faster_where_it_is_asked_to_and_runs_away_nowhere(name, rng):
    robot = sy.load_robot(name)
    path = wave(robot, rng, period=4.0)
    worst = []
    for bandwidth in (4.0, 12.0):
        recording = run_rig(robot, path, controller=pd_for(robot, path, bandwidth), seconds=4.0).recording
        late = recording.t > 1.0  # it starts from rest in the midst of motion
        worst.append(np.abs(recording.more["q_true"] - recording.more["q_d"])[late].max())
    # Stiffness is nine times as much where the step allows it; the arm that stands straight up allows less.
    assert worst[1] < 0.8 * worst[0] < 0.1


def test_a_wrist_without_a_rotor_does_not_run_away():
    robot = sy.load_robot("ur5e")
    light = robot.parameters.copy()
    light[robot.layout.block("armature")] = 0.0
    light = robot.with_parameters(light)
    run = run_rig(light, still(light), controller=pd_for(light, still(light), 30.0), seconds=2.0)
    np.testing.assert_allclose(run.recording.more["q_true"][-1], light.home, atol=1e-3)


def test_noise_comes_from_the_seed_and_is_not_in_what_is_true(rng):
    robot = sy.load_robot("two_link")
    path = wave(robot, rng)
    one, same, other = (
        run_rig(robot, path, noise=Noise(1e-3, 0, [0.1, 0.2]), rng=np.random.default_rng(k)).recording
        for k in (3, 3, 4)
    )
    np.testing.assert_array_equal(one.tau, same.tau)
    np.testing.assert_array_equal(one.more["q_true"], other.more["q_true"])
    deviation = (one.tau - one.more["tau_commanded"]).std(axis=0)
    np.testing.assert_allclose(deviation, [0.1, 0.2], rtol=0.2)  # 201 samples: 5 % standard deviation, four of them
    np.testing.assert_array_equal(one.qd, one.more["qd_true"])


def test_a_robot_that_runs_away_is_reported_with_its_joint_and_time():
    robot = sy.load_robot("two_link")
    with pytest.raises(RigError, match=r"ran away at .* in .*bandwidth"):
        run_rig(robot, still(robot), controller=Controller(1e9, 1e7, limit=1e12), seconds=1.0)
    with pytest.raises(sy.OptionError, match="PD"):
        run_rig(robot, still(robot), controller=pid_for(robot))


def test_stopping_early_keeps_what_was_recorded():
    robot = sy.load_robot("two_link")
    stop = Event()
    run = run_rig(robot, still(robot), seconds=5.0, stop=stop, publish=lambda t, *_: t > 0.5 and stop.set())
    assert 50 <= len(run.recording) <= 55
    assert run.recording.about["ended_early"]


def test_publishing_keeps_to_the_clock_and_says_what_is_recorded():
    robot = sy.load_robot("two_link")
    sent = []
    start = time.monotonic()
    run = run_rig(
        robot,
        still(robot),
        seconds=0.5,
        real_time=True,
        publish=lambda *sample: sent.append((time.monotonic(), *sample)),
    )
    assert all(at - start >= t - 1e-3 for at, t, *_ in sent)
    np.testing.assert_array_equal([tau for *_, tau in sent], run.recording.tau)


def test_the_command_writes_what_it_says_and_takes_its_rate_from_a_configuration(tmp_path, rng):
    robot = sy.load_robot("panda")
    write_trajectory(tmp_path / "traj.csv", wave(robot, rng, 1.0, 0.1), rate_hz=100)
    (tmp_path / "node.yaml").write_text(
        "panda_sim_node:\n  ros__parameters:\n    publish_rate_hz: 250\n    model: panda\n"
    )
    done = command(
        "rig", "panda", "-t", tmp_path / "traj.csv", "-o", tmp_path / "run.npz", "--config", tmp_path / "node.yaml",
        "--payload", "hand=1,0,0,0.1", "--torque-noise", "0.1", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    recording = read_npz(tmp_path / "run.npz")
    assert said["samples"] == len(recording) == 251
    assert said["unread_settings"] == ["model"]
    assert recording.rate_hz == pytest.approx(250)
    assert recording.about["payloads"] == [{"body": "hand", "mass": 1.0, "com": [0.0, 0.0, 0.1]}]
    done = command("rig", "panda", "-t", tmp_path / "traj.csv", "-o", tmp_path / "run.csv")
    assert done.returncode == 0, done.stderr
    header = next(line for line in (tmp_path / "run.csv").read_text().splitlines() if not line.startswith("#"))
    own = ["time", *(f"{name}{j}" for name in ("q", "qd", "tau") for j in range(7))]
    assert header.split(",")[: len(own)] == own
    np.testing.assert_allclose(np.diff(sy.load_recording(tmp_path / "run.csv").t), 0.01, rtol=1e-9)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ([], "--output"),
        (["-o", "run.txt"], ".npz or .csv"),
        (["-o", "run.npz", "--payload", "hand"], "BODY=MASS"),
        (["-o", "run.npz", "--payload", "nose=1"], "no body 'nose'"),
        (["-o", "run.npz", "--payload", "hand=-1"], "above zero"),
        (["-o", "run.npz", "--publish-rate", "0"], "publish_rate_hz"),
        (["-o", "run.npz", "--damping-scale", "nan"], "damping"),
        (["-o", "run.npz", "--coulomb", "1,2"], "or 7, one a joint"),
        (["-o", "run.npz", "--seconds", "-1"], "above zero"),
        (["-o", "run.npz", "--config", "none.yaml"], "no such file"),
    ],
)
def test_a_wrong_option_is_one_sentence(options, word, tmp_path, rng, monkeypatch, capsys):
    from steelyard.cli import main

    monkeypatch.chdir(tmp_path)
    write_trajectory("traj.csv", still(sy.load_robot("panda")), rate_hz=100)
    monkeypatch.setattr(sys, "argv", ["steelyard", "rig", "panda", "-t", "traj.csv", *options])
    with pytest.raises(SystemExit) as left:
        main.main()
    said = capsys.readouterr().err
    assert left.value.code == 2
    assert word in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "text",
    ["", "a: [", "publish_rate_hz: fast", "publish_rate_hz: true", "- 1", "x:\n  ros__parameters: 3", "\x00"],
)
def test_a_broken_configuration_is_an_error_of_the_users(text, tmp_path):
    from steelyard.cli.rig import _configured_rate

    (tmp_path / "node.yaml").write_text(text)
    with pytest.raises(sy.DataError):
        _configured_rate(tmp_path / "node.yaml")


def test_ctrl_c_ends_the_rig_and_saves(tmp_path, monkeypatch, capsys):
    from steelyard.cli import main

    monkeypatch.chdir(tmp_path)
    write_trajectory("traj.csv", still(sy.load_robot("two_link")), rate_hz=100)
    arguments = ["rig", "two_link", "-t", "traj.csv", "-o", "run.npz", "--real-time", "--seconds", "60", "--json"]
    monkeypatch.setattr(sys, "argv", ["steelyard", *arguments])
    before = signal.getsignal(signal.SIGINT)

    def press():
        while signal.getsignal(signal.SIGINT) is before:
            time.sleep(0.02)
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    with pytest.raises(SystemExit) as left:
        main.main()
    assert not left.value.code
    said = json.loads(capsys.readouterr().out)
    assert said["ended_early"]
    assert len(read_npz("run.npz")) == said["samples"] > 5
    assert signal.getsignal(signal.SIGINT) is before
