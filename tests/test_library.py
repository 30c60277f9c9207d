"""The library's models hold the published figures, look at nothing but themselves, and stand at home unharmed."""

import itertools
import os
from functools import cache
from pathlib import Path

import mujoco
import numpy as np
import pytest
import yaml
from defusedxml.ElementTree import parse
from scipy.spatial.transform import Rotation

from steelyard.errors import ModelError
from steelyard.robot.library import library_names, library_path
from steelyard.robot.sidecar import read_sidecar

ARMS = ("iiwa14", "panda", "scara", "two_link", "tx40", "ur10", "ur5e")
PUBLISHED = ("panda", "iiwa14", "ur5e", "ur10")
OWN = ("two_link", "scara", "wheel_legged")
DATA = Path(os.environ.get("STEELYARD_DATA", Path(__file__).parents[2] / "shared" / "data"))
SHARED = DATA.parent

every_robot = pytest.mark.parametrize("name", library_names())


@cache
def compiled(name):
    return mujoco.MjModel.from_xml_path(str(library_path(name)))


def sidecar(name):
    return read_sidecar(library_path(name))


def shared(path):
    if not path.exists():
        pytest.skip(f"{path.name} is not here; STEELYARD_DATA names the folder of measurements")
    return path


def at_home(name):
    model = compiled(name)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key("home").id)
    mujoco.mj_forward(model, data)
    return model, data


def inertia_in_body_frame(model, body):
    turn = Rotation.from_quat(model.body_iquat[body], scalar_first=True).as_matrix()
    return turn @ np.diag(model.body_inertia[body]) @ turn.T


def tensor(xx, xy, xz, yy, yz, zz):
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=float)


def assert_inertia(model, body, expected):
    # MuJoCo keeps principal axes: one eigendecomposition lies between the figure and this tensor
    np.testing.assert_allclose(inertia_in_body_frame(model, body), expected, rtol=0, atol=1e-9 * np.trace(expected))


def assert_frame(model, body, pos, turn):
    # published quaternions have six digits
    np.testing.assert_allclose(model.body_pos[body], pos, rtol=0, atol=1e-12)
    ours = Rotation.from_quat(model.body_quat[body], scalar_first=True)
    assert (turn.inv() * ours).magnitude() < 2e-6


def touching(model, data):
    return {frozenset(model.body(model.geom_bodyid[g]).name for g in c.geom) for c in data.contact}


def test_library_holds_the_promised_robots():
    assert set(library_names()) == {*ARMS, "wheel_legged"}


def test_unknown_robot_is_refused_with_the_names_there_are():
    with pytest.raises(ModelError, match=r"no library robot 'pandas'; did you mean 'panda'\? valid: iiwa14, "):
        library_path("pandas")


@every_robot
def test_model_bears_its_name_and_has_a_sidecar_beside_it(name):
    assert compiled(name).names.split(b"\0")[0] == name.encode()
    assert library_path(name).with_name(f"{name}.steelyard.yaml").is_file()
    assert sidecar(name).description


@every_robot
def test_model_has_no_meshes_and_only_plain_joints(name):
    model = compiled(name)
    assert model.nmesh == model.neq == model.ntendon == 0
    assert not model.dof_frictionloss.any()
    assert not model.jnt_stiffness.any()


@pytest.mark.parametrize("name", ARMS)
def test_arm_has_no_actuators(name):
    assert compiled(name).nu == 0


@every_robot
def test_geoms_add_no_mass(name):
    bare = mujoco.MjSpec.from_file(str(library_path(name)))
    for geom in bare.geoms:
        bare.delete(geom)
    model = bare.compile()
    assert np.array_equal(model.body_mass, compiled(name).body_mass)
    assert np.array_equal(model.body_inertia, compiled(name).body_inertia)


@every_robot
def test_inertias_are_those_of_real_bodies(name):
    model = compiled(name)
    principal = np.sort(model.body_inertia[1:], axis=1)
    assert (model.body_mass[1:] > 0).all()
    assert (principal[:, 0] > 0).all()
    assert (principal[:, 0] + principal[:, 1] >= principal[:, 2]).all()


@pytest.mark.parametrize("name", PUBLISHED)
def test_figures_are_the_published_ones(name):
    bodies = yaml.safe_load(shared(SHARED / "robots.yaml").read_text(encoding="utf-8"))[name]
    model = compiled(name)
    massive = [body for body in bodies if body["mass"]]
    assert [model.body(k).name for k in range(1, model.nbody)] == [body["body"] for body in massive]
    for k, body in enumerate(massive, start=1):
        inertia = body["inertia_at_com"]
        assert model.body(model.body_parentid[k]).name == body["parent"]
        assert_frame(model, k, body["pos"], Rotation.from_quat(body["quat"], scalar_first=True))
        assert model.body_mass[k] == body["mass"]
        assert model.body_ipos[k].tolist() == body["com"]
        assert_inertia(model, k, tensor(*(inertia[part] for part in ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz"))))
    for k, joint in enumerate(body["joint"] for body in massive if "joint" in body):
        kind = {"hinge": mujoco.mjtJoint.mjJNT_HINGE, "slide": mujoco.mjtJoint.mjJNT_SLIDE}[joint["type"]]
        assert model.joint(k).name == joint["name"]
        assert model.jnt_type[k] == kind
        assert model.jnt_axis[k].tolist() == joint["axis"]
        assert model.jnt_range[k].tolist() == joint["range"]
        assert model.dof_armature[k] == joint["armature"]
        assert model.dof_damping[k] == joint["damping"]
    for frame in (body for body in bodies if not body["mass"]):
        site = model.site(frame["body"])
        assert model.body(site.bodyid[0]).name == frame["parent"]
        assert site.pos.tolist() == frame["pos"]


def test_tx40_is_its_urdf():
    root = parse(shared(DATA / "tx40" / "tx40_mdh_modified.urdf")).getroot()
    model, limits = compiled("tx40"), sidecar("tx40").limits
    for link in root.findall("link[inertial]"):
        body, inertial = model.body(link.get("name")).id, link.find("inertial")
        figures = {key: float(value) for key, value in inertial.find("inertia").attrib.items()}
        turn = Rotation.from_euler("xyz", numbers(inertial.find("origin"), "rpy")).as_matrix()
        published = turn @ tensor(*(figures[part] for part in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))) @ turn.T
        assert model.body_mass[body] == float(inertial.find("mass").get("value"))
        assert model.body_ipos[body].tolist() == numbers(inertial.find("origin"), "xyz")
        if published.any():
            assert_inertia(model, body, published)
        else:  # printed to three decimals, link_6 has none left; ours must print the same
            assert link.get("name") == "link_6"
            assert not np.round(inertia_in_body_frame(model, body), 3).any()
    for joint in root.findall("joint[@type='revolute']"):
        name, limit, origin = joint.get("name"), joint.find("limit"), joint.find("origin")
        body = model.body(joint.find("child").get("link")).id
        assert model.body(model.body_parentid[body]).name == joint.find("parent").get("link")
        assert_frame(model, body, numbers(origin, "xyz"), Rotation.from_euler("xyz", numbers(origin, "rpy")))
        assert model.joint(name).bodyid == body
        assert model.joint(name).axis.tolist() == numbers(joint.find("axis"), "xyz")
        assert model.joint(name).range.tolist() == [float(limit.get("lower")), float(limit.get("upper"))]
        assert limits[name].velocity == float(limit.get("velocity"))
        assert limits[name].torque == float(limit.get("effort"))


def numbers(element, key):
    return [float(number) for number in element.get(key).split()]


def test_tx40_recording_stays_within_ranges_and_touches_nothing():
    motors = np.loadtxt(shared(DATA / "tx40" / "pos_read_data.csv"), delimiter=",", skiprows=1)[::200]
    model, gear = compiled("tx40"), sidecar("tx40").gear
    joints = np.linalg.solve(gear.position_matrix, motors.T).T + gear.zero
    assert gear.joints == tuple(model.joint(k).name for k in range(model.njnt))
    assert (joints > model.jnt_range[:, 0]).all()
    assert (joints < model.jnt_range[:, 1]).all()
    assert np.allclose(joints[0], 0, atol=1e-4)  # the home pose is where the recording starts
    data = mujoco.MjData(model)
    for data.qpos[:] in joints:
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        assert data.ncon == 0


@every_robot
def test_names_in_the_sidecar_are_the_models(name):
    model, facts = compiled(name), sidecar(name)
    joints = {model.joint(k).name for k in range(model.njnt)}
    free = {model.joint(k).name for k in range(model.njnt) if model.jnt_type[k] == mujoco.mjtJoint.mjJNT_FREE}
    assert {*facts.lock, *facts.home, *facts.limits, *(facts.gear.joints if facts.gear else ())} <= joints
    assert set(facts.leave_out) <= {model.body(k).name for k in range(model.nbody)}
    assert set(facts.limits) == joints - free - set(facts.lock)
    assert set(facts.home) == set(facts.limits)


@every_robot
def test_home_is_the_same_in_the_sidecar_and_the_keyframe(name):
    model, facts = compiled(name), sidecar(name)
    pose = model.qpos0.copy()
    for joint, value in (facts.home | facts.lock).items():
        pose[model.joint(joint).qposadr[0]] = value
    assert np.array_equal(pose, model.key("home").qpos)


@every_robot
def test_home_lies_within_the_joint_ranges(name):
    model = compiled(name)
    limited = np.flatnonzero(model.jnt_limited)
    pose = model.key("home").qpos[model.jnt_qposadr[limited]]
    assert (model.jnt_range[limited, 0] <= pose).all()
    assert (pose <= model.jnt_range[limited, 1]).all()


@pytest.mark.parametrize("name", ARMS)
def test_every_arm_joint_has_a_range_and_nothing_touches_at_home(name):
    model, data = at_home(name)
    assert model.jnt_limited.all()
    assert touching(model, data) == set()


@pytest.mark.parametrize("name", ARMS)
def test_neighbouring_links_never_collide(name):
    model, rng = compiled(name), np.random.default_rng(0)
    data = mujoco.MjData(model)
    neighbours = {frozenset((model.body(k).name, model.body(model.body_parentid[k]).name)) for k in range(model.nbody)}
    for _ in range(100):
        data.qpos[:] = rng.uniform(*model.jnt_range.T)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        assert not touching(model, data) & neighbours


def test_folded_panda_meets_itself():
    """Links further apart do collide, so that a trajectory through the arm's own base can be found out."""
    model = compiled("panda")
    data = mujoco.MjData(model)
    data.qpos[:7] = [0, -1.7, 0, -3.0, 0, 0.2, 0]
    mujoco.mj_forward(model, data)
    assert data.ncon > 0


@pytest.mark.parametrize("name", OWN)
def test_limits_of_our_own_robots_are_complete(name):
    for limits in sidecar(name).limits.values():
        assert None not in (limits.velocity, limits.acceleration, limits.torque, limits.torque_rate)


@pytest.mark.parametrize("name", ["two_link", "scara"])
def test_torque_limits_of_our_own_arms_allow_full_acceleration_at_home(name):
    model, data = at_home(name)
    limits = [sidecar(name).limits[model.joint(k).name] for k in range(model.njnt)]
    for signs in itertools.product((-1, 1), repeat=model.nv):
        data.qacc[:] = signs * np.array([limit.acceleration for limit in limits])
        mujoco.mj_inverse(model, data)
        assert (np.abs(data.qfrc_inverse) <= [limit.torque for limit in limits]).all()


def test_two_link_has_the_textbook_dynamics():
    """Mass matrix and gravity against the closed form of the planar arm with its centres of mass in mid-link."""
    model, rng = compiled("two_link"), np.random.default_rng(1)
    data, g = mujoco.MjData(model), 9.81
    l1, m1, m2 = 0.5, 2.0, 1.2
    r1, r2 = l1 / 2, 0.4 / 2
    i1, i2 = model.body("link1").inertia.max(), model.body("link2").inertia.max()
    for q1, q2 in rng.uniform(-2, 2, (5, 2)):
        data.qpos[:] = q1, q2
        mujoco.mj_forward(model, data)
        mass = np.zeros((2, 2))
        mujoco.mj_fullM(model, data, mass)
        end = m2 * r2**2 + i2
        cross = m2 * l1 * r2 * np.cos(q2)
        expected = [[m1 * r1**2 + i1 + m2 * l1**2 + end + 2 * cross, end + cross], [end + cross, end]]
        tip = m2 * r2 * g * np.cos(q1 + q2)
        np.testing.assert_allclose(mass, expected, rtol=1e-9)  # inertias have nine digits
        np.testing.assert_allclose(data.qfrc_bias, [(m1 * r1 + m2 * l1) * g * np.cos(q1) + tip, tip], atol=1e-12)


def test_wheel_legged_stands_on_its_wheels_with_the_centre_of_mass_above_the_axle():
    model, data = at_home("wheel_legged")
    axle = (data.body("left_wheel").xpos + data.body("right_wheel").xpos) / 2
    assert touching(model, data) == {frozenset(("world", f"{side}_wheel")) for side in ("left", "right")}
    # home has nine decimals
    assert np.abs(data.subtree_com[model.body("trunk").id] - axle)[:2].max() < 1e-8
    assert abs(axle[2] - model.geom("left_tyre").size[0]) < 1e-8


def test_wheel_legged_is_planar_and_the_same_left_and_right():
    model, data = at_home("wheel_legged")
    mirror = np.array([1, -1, 1])
    assert model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE
    assert (model.jnt_axis[1:] == [0, 1, 0]).all()
    for part in ("thigh", "shin", "wheel"):
        left, right = model.body(f"left_{part}"), model.body(f"right_{part}")
        assert left.mass == right.mass
        np.testing.assert_allclose(data.xipos[left.id], mirror * data.xipos[right.id], atol=1e-12)
        flipped = np.outer(mirror, mirror) * inertia_in_body_frame(model, right.id)
        np.testing.assert_allclose(inertia_in_body_frame(model, left.id), flipped, atol=1e-12)


def test_wheel_legged_motors_are_plain_and_as_strong_as_the_limits_say():
    model, limits = compiled("wheel_legged"), sidecar("wheel_legged").limits
    driven = [model.joint(model.actuator_trnid[k, 0]).name for k in range(model.nu)]
    assert sorted(driven) == sorted(limits)
    assert (model.actuator_gear[:, 0] == 1).all()
    assert (model.actuator_dyntype == mujoco.mjtDyn.mjDYN_NONE).all()
    assert model.actuator_ctrlrange.tolist() == [[-limits[name].torque, limits[name].torque] for name in driven]
