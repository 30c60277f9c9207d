"""The design of excitations: gradients, limits, honesty about what cannot be."""

import json
import subprocess
import sys
from dataclasses import replace

import mujoco
import numpy as np
import pytest

import steelyard as sy
from steelyard.dynamics import base_parameters
from steelyard.excitation.constraints import KeepWithin, Motion, NoCollision, joint_constraints, worst_violations
from steelyard.excitation.criteria import CRITERIA
from steelyard.excitation.design import design_excitation, requirements
from steelyard.excitation.exchange import read_trajectory
from steelyard.excitation.leads import lead_in_and_out
from steelyard.excitation.problem import DesignProblem
from steelyard.excitation.trajectory import Fourier

SMALL = {"starts": 1, "rounds": 3, "samples": 60, "harmonics": 3, "clearance": None}

TABLE = """<mujoco model="over_a_table"><option gravity="0 0 -9.81"/>
<worldbody><geom type="plane" size="2 2 .1"/>
  <body name="upper" pos="0 0 0.45"><joint name="a" axis="0 1 0" range="-180 180"/>
    <inertial pos=".15 0 0" mass="2" diaginertia=".01 .02 .02"/>
    <geom type="capsule" fromto=".05 0 0 .3 0 0" size=".03"/>
    <body name="lower" pos="0.35 0 0"><joint name="b" axis="0 1 0" range="-150 150"/>
      <inertial pos=".15 0 0" mass="1" diaginertia=".005 .01 .01"/>
      <geom type="capsule" fromto="0.05 0 0 .3 0 0" size=".03"/></body></body>
</worldbody></mujoco>"""


def problem(robot, criterion, harmonics=5, samples=100):
    bounded, constraints, _ = requirements(robot, clearance=None)
    base = base_parameters(bounded)
    return DesignProblem(
        bounded, base, CRITERIA[criterion], tuple(constraints), 10.0, harmonics, samples, np.ones(robot.n)
    )


def random_coefficients(task, rng):
    c = 0.3 * rng.normal(size=(task.robot.n, 2 * task.harmonics + 1))
    c[:, 0] = task.robot.home
    return task.free_numbers(c)


def directional(function, x, direction, step):
    return (function(x + step * direction)[0] - function(x - step * direction)[0]) / (2 * step)


@pytest.mark.parametrize("criterion", list(CRITERIA))
@pytest.mark.parametrize("name", ["two_link", "ur5e", "scara"])
def test_gradient_of_every_criterion_is_the_difference_quotient(criterion, name, rng):
    task = problem(sy.load_robot(name), criterion)
    x = random_coefficients(task, rng)
    _, gradient = task.objective(x)
    for _ in range(5):
        direction = rng.normal(size=x.size)
        direction /= np.linalg.norm(direction)
        quotient = directional(task.objective, x, direction, 1e-5)
        assert abs(quotient - gradient @ direction) < 1e-6 * max(1.0, np.linalg.norm(gradient))


def test_gradient_with_every_constraint_pressing_is_the_difference_quotient(rng):
    robot = sy.load_robot("panda")
    task = problem(robot, "logdet")
    task = replace(task, constraints=(*task.constraints, KeepWithin(robot, "hand", lower=(-np.inf, -np.inf, 0.9))))
    x = 6 * random_coefficients(task, rng)
    multipliers = [rng.uniform(0.1, 1, size=c.values(task.motion(x)).shape) for c in task.constraints]
    tightening = np.full(len(task.constraints), 0.01)

    def augmented(z):
        return task.augmented(z, multipliers, 0.5, tightening)

    _, gradient = augmented(x)
    for _ in range(5):
        direction = rng.normal(size=x.size)
        direction /= np.linalg.norm(direction)
        assert abs(directional(augmented, x, direction, 1e-6) - gradient @ direction) < 1e-6 * np.linalg.norm(gradient)


@pytest.mark.parametrize("name", ["panda", "iiwa14", "ur10", "tx40", "scara"])
def test_a_small_budget_gives_a_trajectory_that_keeps_every_limit_at_1_khz(name):
    robot = sy.load_robot(name)
    found = design_excitation(robot, period=5.0, criterion="cond", seed=1, margin=0.0, **SMALL)
    bounded, constraints, _ = requirements(robot, margin=0.0, clearance=None)
    t = np.linspace(0, 5.0, 5001)
    q, qd, qdd = found.sample(t)
    for violation in worst_violations(constraints, Motion(bounded, q, qd, qdd), t):
        assert violation.amount <= 0, violation
    assert found.feasible
    assert np.abs(qd[[0, -1]]).max() < 1e-10
    assert np.abs(qdd[[0, -1]]).max() < 1e-9


def test_the_same_seed_gives_the_same_answer_and_processes_do_not_change_it():
    robot = sy.load_robot("two_link")
    one, two, shared = (
        design_excitation(robot, seed=3, workers=workers, **{**SMALL, "starts": 2}) for workers in (1, 1, 2)
    )
    assert np.array_equal(one.trajectory.coefficients, two.trajectory.coefficients)
    assert np.allclose(one.trajectory.coefficients, shared.trajectory.coefficients, rtol=1e-6)


def test_a_design_beats_random_motions_that_keep_the_limits(rng):
    robot = sy.load_robot("ur5e")
    found = design_excitation(robot, criterion="cond", seed=0, **SMALL)
    task = problem(robot, "cond", harmonics=3, samples=60)
    best = np.inf
    for _ in range(100):
        x = random_coefficients(task, rng)
        motion = task.motion(x)
        if all(c.values(motion).max() <= 0 for c in task.constraints):
            eigenvalues = task.eigen(motion)[1]
            best = min(best, CRITERIA["cond"].value(eigenvalues))
    assert found.figures["cond"] < 0.5 * best


def test_boxes_and_the_floor_are_kept(tmp_path):
    robot = sy.load_robot(mujoco.MjSpec.from_string(TABLE))
    keep = KeepWithin(robot, "lower", upper=(np.inf, np.inf, 0.6))
    found = design_excitation(
        robot, keep=[keep], clearance=0.02, **{k: v for k, v in SMALL.items() if k != "clearance"}
    )
    t = np.linspace(0, 10, 2000)
    motion = Motion(robot, *found.sample(t))
    assert keep.values(motion).max() <= 0
    assert NoCollision(robot, 0.02).values(motion).max() <= 1e-4
    free = design_excitation(robot, **SMALL)
    assert NoCollision(robot, 0.02).values(Motion(robot, *free.sample(t))).max() > 0, "the floor would not matter"


def test_a_start_pose_is_met_and_leads_come_from_the_pose_within_limits():
    robot = sy.load_robot("panda")
    found = design_excitation(robot, start=robot.home, **SMALL)
    assert np.allclose(found.sample(0.0)[0], robot.home, atol=1e-12)
    elsewhere = design_excitation(robot, **SMALL)
    whole = lead_in_and_out(robot, elsewhere.trajectory, robot.home, clearance=None)
    assert np.allclose(whole.sample(0.0)[0], robot.home)
    assert np.allclose(whole.sample(whole.duration)[0], robot.home)
    t = np.linspace(0, whole.duration, 20_001)
    bounded, constraints, _ = requirements(robot, clearance=None)
    assert max(v.amount for v in worst_violations(constraints, Motion(bounded, *whole.sample(t)), t)) <= 0
    # Repetitions lie between the same leads, and are not looked at again.
    often = lead_in_and_out(robot, elsewhere.trajectory, robot.home, clearance=None, periods=1000)
    assert often.duration == pytest.approx(whole.duration + 999 * elsewhere.trajectory.duration)


def test_a_choice_of_parameters_is_made_more_visible_than_by_a_design_for_all():
    robot = sy.load_robot("ur5e")
    chosen = [f"{joint}.damping" for joint in robot.dof_names]
    narrow = design_excitation(robot, only=chosen, **SMALL)
    wide = design_excitation(robot, **SMALL)
    t = np.linspace(0, 10, 500)
    spread = [np.prod(np.mean(found.sample(t)[1] ** 2, axis=0)) for found in (narrow, wide)]
    assert spread[0] > spread[1]


def test_the_next_design_adds_what_the_last_recording_lacks():
    robot = sy.load_robot("two_link")
    t = np.arange(0, 10, 0.1)
    # A recording in which joint 2 stood still.
    still = Fourier(10.0, robot.home, [[1.0, -1.0], [0.0, 0.0]], [[0.5, -0.25], [0.0, 0.0]])
    before = still.sample(t)
    nxt = design_excitation(robot, criterion="e", already=[before], **SMALL)
    base = base_parameters(robot)

    def smallest(*motions):
        W = np.concatenate([base.columns(sy.regressor(robot, *m)).reshape(-1, base.rank) for m in motions])
        return np.linalg.svd(W, compute_uv=False)[-1]

    assert smallest(before) < 1e-8
    assert smallest(before, nxt.sample(t)) > 0.1


def test_a_robot_without_any_position_limit_gets_a_design():
    text = """<mujoco><worldbody><body name="a"><joint name="j" axis="0 1 0"/>
    <inertial pos=".2 0 0" mass="1" diaginertia=".01 .01 .01"/></body></worldbody></mujoco>"""
    robot = sy.load_robot(mujoco.MjSpec.from_string(text))
    found = design_excitation(robot, **SMALL)
    assert found.feasible
    assert any("no torque limit is known for j" in note for note in found.notes)


def test_a_dense_recording_counts_no_more_than_a_sparse_one():
    robot = sy.load_robot("two_link")
    path = Fourier(10.0, robot.home, [[1.0, -1.0], [0.5, -0.5]], [[0.5, -0.25], [0.2, -0.1]])
    sparse, dense = (
        design_excitation(robot, already=[path.sample(np.arange(0, 10, step))], **SMALL).value for step in (0.1, 0.001)
    )
    assert abs(sparse - dense) < 1e-3 * abs(sparse)


def without(robot, **changes):
    return replace(robot, limits=replace(robot.limits, **changes))


@pytest.mark.parametrize(
    ("change", "options", "sentence"),
    [
        (lambda r: without(r, upper=r.limits.lower), {}, "position range of joint1 has zero width"),
        (lambda r: without(r, velocity=0 * r.limits.velocity), {}, "velocity limit of joint1 is 0"),
        (
            lambda r: r,
            {"period": 0.01, "rate_hz": 1e4},
            "period of 0.01 s is too short: the acceleration limit of joint2",
        ),
        (lambda r: r, {"harmonics": 1}, "1 harmonic cannot start and end at rest"),
        (lambda r: r, {"period": 10.0, "harmonics": 600}, "above half the sampling rate of 100 Hz"),
        (lambda r: r, {"period": -1.0}, "period is -1.0 s"),
        (lambda r: r, {"criterion": "best"}, "no criterion 'best'"),
        (lambda r: r, {"margin": 1.5}, "margin is 1.5"),
        (lambda r: without(r, torque=r.limits.torque * 1e-3), {}, "even standing still .* breaks the torque limit"),
        (lambda r: r, {"start": np.zeros(7)}, "breaks the position limit"),
        (lambda r: r, {"start": np.zeros(6)}, "start has shape"),
        (lambda r: r, {"weights": np.zeros(7)}, "weights must be 7 positive numbers"),
        (lambda r: r, {"only": ["link1.m"]}, "none of the chosen parameters acts on any torque"),
    ],
)
def test_what_cannot_be_ends_in_a_sentence_that_names_it(change, options, sentence):
    robot = change(sy.load_robot("panda"))
    with pytest.raises(sy.SteelyardError, match=sentence) as caught:
        design_excitation(robot, **{**SMALL, "harmonics": 3, **options})
    assert "\n" not in str(caught.value)


def test_ball_and_free_joints_are_refused():
    with pytest.raises(sy.OptionError, match="designed for hinges and slides"):
        design_excitation(sy.load_robot("wheel_legged"))


def test_ctrl_c_returns_the_best_so_far():
    import signal

    robot = sy.load_robot("two_link")

    def interrupt(name, value, worst):
        signal.raise_signal(signal.SIGINT)

    found = design_excitation(robot, progress=interrupt, **{**SMALL, "starts": 50})
    assert found.interrupted
    assert found.feasible
    assert found.message.startswith("stopped early")


def test_joint_constraints_leave_a_margin():
    robot = sy.load_robot("panda")
    tight = joint_constraints(robot, 0.1)
    assert np.allclose(tight[1].limit, 0.9 * robot.limits.velocity)


def test_excite_writes_trajectory_and_plot(tmp_path):
    out, plot = tmp_path / "traj.csv", tmp_path / "plot.html"
    command = [sys.executable, "-m", "steelyard", "excite", "two_link", "--starts", "1", "--criterion", "cond"]
    command += ["--harmonics", "3", "--output", str(out), "--plot", str(plot), "--lead-in", "home", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["feasible"]
    trajectory = read_trajectory(out)
    robot = sy.load_robot("two_link")
    t = np.linspace(0, trajectory.duration, 50)
    assert np.allclose(trajectory.torque(t), sy.inverse_dynamics(robot, *trajectory.sample(t)), atol=0.05)
    text = plot.read_text()
    assert "<script src" not in text
    assert 'rel="stylesheet"' not in text
    assert "Excitation of two_link" in text


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [
        (["--criterion", "best"], "no criterion"),
        (["--keep", "hand above table"], "--keep takes BODY:AXIS"),
        (["--keep", "elbow:z>0"], "no moving body 'elbow'"),
        (["--output", "traj.doc"], "traj.doc"),
        (["--rate", "0"], "--rate is 0"),
        (["--only", "link9.m"], "no parameter 'link9.m'"),
        (["--after", "/nowhere.csv"], "no such file"),
    ],
)
def test_wrong_options_of_excite_get_one_sentence(extra, sentence, tmp_path):
    command = [sys.executable, "-m", "steelyard", "excite", "two_link", "--starts", "1", *extra]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
