"""`steelyard com`: recordings in and out, the simulated robot, and what is said of bad input."""

import json

import mujoco
import numpy as np
import pytest
from defusedxml import ElementTree
from typer.testing import CliRunner

import steelyard as sy
from steelyard.balance.balancing import Load, balance, plant, true_upper_body
from steelyard.balance.comparison import SINGLE, compare
from steelyard.balance.demonstration import StandingSensors, Target, demonstrate, stand
from steelyard.balance.poses import Accuracy, poses_of
from steelyard.balance.posture import home_height
from steelyard.balance.stacked import Stacked, centre_of_mass
from steelyard.balance.stance import stance_of
from steelyard.balance.statics import Coupling
from steelyard.balance.table import as_csv
from steelyard.cli.main import app
from steelyard.errors import ModelError, SteelyardError
from steelyard.report.balance import comparison_picture

TARGETS = [Target(0.85, -0.5), Target(1.0, 0.0), Target(0.9, 0.3), Target(1.0, 0.7)]
LOAD = Load(5.0, (0.22, 0.02, 0.0))


@pytest.fixture(scope="module")
def stance():
    return stance_of(sy.load_robot("wheel_legged"))


@pytest.fixture(scope="module")
def shown(stance):
    return demonstrate(stance, TARGETS, np.random.default_rng(3), LOAD, seconds=2.0, settle=2.0)


def run(*arguments):
    result = CliRunner().invoke(app, ["com", *map(str, arguments)], catch_exceptions=False)
    return result.stdout


def test_the_load_is_where_it_was_put(stance):
    mass, com = true_upper_body(plant(stance, LOAD))
    assert mass == pytest.approx(25.0)
    np.testing.assert_allclose(com, [0.06, 0.004, 0.068], atol=1e-12)


def test_the_regulator_holds_a_push(stance):
    machine = plant(stance)
    hold = balance(machine, 0.9 * home_height(stance), 0.3)
    pushed = hold.qpos.copy()
    quiet = StandingSensors(0, 0, 0, 0, 0)
    turn = np.zeros(4)
    mujoco.mju_axisAngle2Quat(turn, [0, 1, 0], 0.3 + 0.05)
    pushed[3:7] = turn
    object.__setattr__(hold, "qpos", pushed)
    _, _, force = stand(machine, hold, 0.5, 6.0, quiet, np.random.default_rng(0))
    pitch = np.arctan2(-force[:, 0], force[:, 2])
    assert np.abs(pitch - 0.3).max() < 2e-3  # of a push of 0.05 rad
    heavy = plant(stance, Load(60.0, (0.5, 0.0, 0.3)))
    hold = balance(heavy, 0.9 * home_height(stance))
    with pytest.raises(ModelError, match="fell over"):
        stand(heavy, hold, 1.0, 3.0, quiet, np.random.default_rng(0))


@pytest.mark.parametrize(("size", "weight"), [(1.5, 2.5), (0.6, 0.25)])
def test_robots_of_other_sizes_and_weights_are_balanced_and_weighed_as_well(size, weight):
    """The library's robot, grown or shrunk: the regulator takes its measure from the model."""
    spec = mujoco.MjSpec.from_file(str(sy.robot.library.library_path("wheel_legged")))
    for key in list(spec.keys):
        spec.delete(key)
    for body in spec.bodies[1:]:
        body.pos, body.ipos = size * np.array(body.pos), size * np.array(body.ipos)
        body.mass, body.fullinertia = weight * body.mass, weight * size**2 * np.array(body.fullinertia)
        for geom in body.geoms:
            geom.size, geom.pos, geom.fromto = (size * np.array(x) for x in (geom.size, geom.pos, geom.fromto))
    stance = stance_of(sy.load_robot(spec))
    targets = [Target(0.85, -0.5), Target(0.8, 0.0), Target(0.85, 0.5)]
    shown = demonstrate(stance, targets, np.random.default_rng(1), Load(0.2 * 20 * weight, (0.1 * size, 0, 0)))
    found = centre_of_mass(stance, poses_of(stance, shown.recording))
    assert not found.blind
    low, high = found.interval("mass", 0.999)
    assert low < shown.mass < high
    error = np.abs(found.com - shown.com)[[0, 2]]
    assert error.max() < 4 * max(found.deviation[axis] for axis in "xz")


def test_a_body_that_meets_the_floor_before_the_wheels_is_named():
    spec = mujoco.MjSpec.from_file(str(sy.robot.library.library_path("wheel_legged")))
    spec.body("left_shin").add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.15, 0, 0], pos=[0, 0, -0.25])
    stance = stance_of(sy.load_robot(spec))
    with pytest.raises(ModelError, match="left_shin"):
        balance(plant(stance), 0.9 * home_height(stance))


def test_simulated_without_noise_the_stacked_poses_are_exact(stance):
    """The robot comes to rest, and what is left is what MuJoCo's soft contacts leave of statics."""
    quiet = StandingSensors(0, 0, 0, 0, 0, Accuracy(0, 0, 0, 0))
    rng = np.random.default_rng(0)
    still = demonstrate(stance, TARGETS[:3], rng, LOAD, quiet, seconds=1.0, settle=6.0, coupling=1.0)
    poses = poses_of(stance, still.recording)
    found = centre_of_mass(stance, poses, Stacked(coupling=Coupling(None)))
    np.testing.assert_allclose(found.com[[0, 2]], still.com[[0, 2]], atol=5e-5)
    assert found.mass == pytest.approx(still.mass, rel=1e-3)
    assert found.coupling == pytest.approx(1.0, abs=1e-3)


def test_leaning_sideways_on_both_legs_shows_all_three_coordinates(stance):
    targets = [Target(0.9, pitch, roll) for pitch, roll in ((-0.4, 0.1), (-0.1, -0.1), (0.2, 0.1), (0.6, -0.1))]
    shown = demonstrate(stance, targets, np.random.default_rng(2), Load(5.0, (0.1, 0.12, 0.05)))
    found = centre_of_mass(stance, poses_of(stance, shown.recording))
    assert found.misfit < 1.5
    error = np.abs(found.com - shown.com)
    assert error[[0, 2]].max() < 3e-3  # four poses
    assert error[1] < 0.012  # 24 mm beside the middle, on tyres 50 mm wide that stand on their edges
    low, high = found.interval("y")
    assert low < shown.com[1] < high


def test_with_noise_and_an_unknown_load_stacking_is_within_2_mm_where_one_pose_is_off_by_centimetres(stance):
    targets = [Target(h, p) for h, p in ((1.0, -0.6), (0.85, -0.3), (1.0, 0.0), (0.85, 0.3), (1.0, 0.6), (0.85, 0.8))]
    result = compare(stance, targets, np.random.default_rng(5), LOAD)
    assert result.final_error < 2e-3
    for name in SINGLE:
        assert np.median(result.errors[name]) > 0.02
    picture = ElementTree.fromstring(comparison_picture([result, result]))
    assert sum(1 for _ in picture.iter("{http://www.w3.org/2000/svg}polyline")) == 8


def test_a_recording_goes_through_csv_with_foreign_names_units_and_signs(tmp_path, stance, shown):
    ours = tmp_path / "ours.csv"
    ours.write_text(as_csv(shown.recording))
    facts = json.loads(run(ours, "--model", "wheel_legged", "--json"))
    np.testing.assert_allclose(facts["com"], shown.com, atol=0.02)
    assert np.linalg.norm((np.array(facts["com"]) - shown.com)[[0, 2]]) < 3e-3  # four poses of two seconds
    low, high = facts["interval_95"]["mass"]
    assert low < shown.mass < high
    assert len(facts["each_pose"]) == 4
    header, *rows = ours.read_text().splitlines()
    table = np.array([[float(x) for x in row.split(",")] for row in rows])
    names = header.split(",")
    for k, name in enumerate(names):
        if name.startswith("q_"):
            table[:, k] = np.degrees(table[:, k])
        if name.startswith("acc_"):
            table[:, k] /= 9.80665
        if name == "tau_left_hip":
            table[:, k] *= -1
    theirs = tmp_path / "theirs.csv"
    renamed = header.replace("acc_z", "imu.az")
    theirs.write_text("\n".join([renamed, *(",".join(f"{x:.9g}" for x in row) for row in table)]))
    options = ("--column", "acc_z=imu.az", "--angle-unit", "deg", "--acceleration-unit", "g", "--flip", "left_hip")
    same = json.loads(run(theirs, "--model", "wheel_legged", *options, "--json"))
    np.testing.assert_allclose(same["com"], facts["com"], atol=1e-5)  # seven digits in the table
    text = run(ours, "--model", "wheel_legged", "--mass", "25")
    assert "given" in text
    assert "mass-free" in text


def test_poses_are_found_by_stillness_where_they_are_not_numbered(tmp_path, stance, shown):
    path = tmp_path / "run.csv"
    lines = as_csv(shown.recording).splitlines()
    path.write_text("\n".join(line.rsplit(",", 1)[0] for line in lines))
    facts = json.loads(run(path, "--model", "wheel_legged", "--json"))
    assert facts["poses"] == 4
    assert np.linalg.norm((np.array(facts["com"]) - shown.com)[[0, 2]]) < 3e-3


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        (lambda text: text, ("--acceleration-unit", "g"), "acceleration-unit"),
        (lambda text: text, ("--angle-unit", "turn"), "angle-unit"),
        (lambda text: text, ("--angle-unit", "feet"), "unit of angles"),
        (lambda text: text.replace("acc_z", "az"), (), "acc_z"),
        (lambda text: text, ("--column", "acc_z=nothing"), "nothing"),
        (lambda text: text.replace("tau_left_knee", "x"), (), "tau_left_knee"),
        (lambda text: text.replace("\n0.016,", "\n0.016,oops", 1), (), "row 4"),
        (lambda text: text.splitlines()[0] + "\n", (), "no rows"),
        (lambda text: "", (), "cannot be read as CSV"),
        (lambda text: text, ("--flip", "nose"), "nose"),
        (lambda text: text, ("--mass", "-3"), "above 0"),
        (lambda text: text, ("--coupling", "much"), "coupling"),
        (lambda text: text, ("--demo",), "one of"),
        (lambda text: text, ("--figure", "x.svg"), "--demo"),
    ],
)
def test_com_says_what_is_wrong_with_a_recording_or_an_option(tmp_path, shown, change, options, said):
    path = tmp_path / "run.csv"
    path.write_text(change(as_csv(shown.recording)))
    with pytest.raises(SteelyardError, match=said):
        run(path, "--model", "wheel_legged", *options)


def test_the_demonstration_of_an_unknown_coupling_has_one(monkeypatch):
    monkeypatch.setattr("steelyard.cli.com_demo.default_targets", lambda stance: TARGETS)
    facts = json.loads(run("--demo", "--coupling", "estimate", "--json"))
    for one in facts["runs"]:
        assert one["true_coupling"] == 1.0
        assert one["coupling"] == pytest.approx(1.0, abs=0.1)
        assert "coupling" in one["interval_95"]


def test_suggestions_are_poses_for_the_joints(stance):
    facts = json.loads(run("--model", "wheel_legged", "--suggest", "3", "--json"))
    assert len(facts["poses"]) == 3
    assert set(facts["poses"][0]["joints"]) == set(stance.joints)
    assert not facts["expected"]["blind"]
