"""An exported model reloads to the same dynamics, keeps what is the user's, and is not written where it is wrong."""

from dataclasses import replace

import mujoco
import numpy as np
import pinocchio
import pytest

from steelyard import inverse_dynamics, library_names, load_robot
from steelyard.errors import ModelError
from steelyard.robot.export import export_model
from steelyard.robot.inertia import from_log_cholesky, log_cholesky
from steelyard.robot.states import random_states
from trees import random_mjcf

FRICTION = ("coulomb", "offset")
ARM = """<mujoco model="arm">
  <!-- upper arm -->
  <compiler angle="degree"{compiler}/>
  <option gravity="0.5 0 -9.7"/>
  <default><joint armature="0.2" damping="1.5 0.1" frictionloss="0.3"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 .1"/>
    <body name="upper" pos="0 0 1" euler="10 20 30">
      <joint name="shoulder" axis="0 1 0" pos="0 0.1 0" ref="20" range="-90 90"/>
      <inertial pos="0 0 .1" mass="2" diaginertia=".03 .03 .01"/>
      <geom name="tube" type="capsule" fromto="0 0 0 0 0 .3" size=".03"/>
      <geom name="box" type="box" size=".1 .1 .1" pos="0 .1 0"/>
      <body name="lower" pos="0 0 .3">
        <joint name="elbow" type="slide" axis="0 1 0"/>
        <geom name="ball" size=".05" pos=".1 0 0"/>
        <site name="tool" pos="0 0 .1"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="drive" joint="shoulder" gear="50"/></actuator>
  <sensor><jointpos joint="shoulder"/></sensor>
  <keyframe><key name="home" qpos=".3 .1"/></keyframe>
</mujoco>
"""
LINK = (
    '<link name="{}"><inertial><mass value="1.5"/><origin xyz="0 .1 .2"/>'
    '<inertia ixx=".03" iyy=".02" izz=".02" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
URDF = (
    '<robot name="r">\n  <!-- ours: ü & all -->\n  <link name="base"/>\n  ' + LINK.format("a") + LINK.format("b") + "\n"
    '  <joint name="ja" type="{kind}"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/></joint>\n'
    '  <joint name="jb" type="revolute"><parent link="a"/><child link="b"/><axis xyz="1 0 0"/>'
    '<limit lower="-1" upper="2" effort="40" velocity="3"/>'
    "<dynamics  friction='0.1' comment=\" damping='9' \"/></joint>\n"
    '  <transmission name="t"><joint name="jb"/></transmission>\n</robot>\n'
).replace("&", "&amp;")


def varied(robot, seed=0, size=0.1):
    """The robot with other parameters, each possible: log-Cholesky coordinates moved, joint values scaled."""
    rng = np.random.default_rng(seed)
    theta = robot.parameters.copy()
    for body in robot.layout.bodies:
        eta = log_cholesky(theta[robot.layout.body(body)])
        theta[robot.layout.body(body)] = from_log_cholesky(eta + size * rng.normal(size=10))
    for prop in set(robot.layout.properties) - {"offset"}:
        for joint in robot.joints:  # one value for all axes of a joint, as model files have it
            theta[robot.layout.block(prop)][joint.dofs] *= rng.uniform(0.5, 1.5)
    return robot.with_parameters(theta)


def assert_same_dynamics(robot, copy, tolerance=1e-9):
    rng = np.random.default_rng(1)
    assert [joint.name for joint in copy.joints] == [joint.name for joint in robot.joints]
    states = random_states(robot, rng, 20, within_limits=False)
    tau = inverse_dynamics(robot, *states)
    np.testing.assert_allclose(inverse_dynamics(copy, *states), tau, rtol=0, atol=tolerance * np.abs(tau).max())


def assert_round_trip(robot, path, **options):
    """Export, reload, compare; MuJoCo alone takes the file too."""
    notes = export_model(robot, path)
    assert sorted(path.parent.glob(".*")) == []
    mujoco.MjModel.from_xml_path(str(path))
    copy = load_robot(path, friction=FRICTION, **options)
    assert_same_dynamics(robot, copy)
    return copy, notes


def file(folder, text, name="source.xml"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def arm(folder, compiler="", change=()):
    text = ARM.format(compiler=compiler)
    for old, new in change:
        assert old in text
        text = text.replace(old, new)
    return file(folder, text)


@pytest.mark.parametrize("name", library_names())
@pytest.mark.parametrize("suffix", [".xml", ".urdf"])
def test_every_library_robot_survives_a_round_trip_with_all_that_its_sidecar_says(name, suffix, tmp_path):
    robot = varied(load_robot(name, friction=FRICTION))
    copy, _ = assert_round_trip(robot, tmp_path / f"{name}{suffix}")
    assert copy.layout == robot.layout
    for key in vars(robot.limits):
        np.testing.assert_array_equal(getattr(copy.limits, key), getattr(robot.limits, key))
    np.testing.assert_array_equal(copy.home, robot.home)
    if suffix == ".xml":
        np.testing.assert_array_equal(copy.gravity, robot.gravity)
        np.testing.assert_allclose(copy.parameters, robot.parameters, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("seed", range(30))
def test_random_trees_of_all_joints_survive_as_mjcf(seed, tmp_path):
    source = file(tmp_path, random_mjcf(np.random.default_rng(seed)))
    for given in (source, mujoco.MjSpec.from_file(str(source)), mujoco.MjModel.from_xml_path(str(source)))[
        : 1 + seed % 3
    ]:
        robot = varied(load_robot(given, friction=FRICTION), seed)
        assert_round_trip(robot, tmp_path / "out.mjcf")


def pinocchio_torque(path, robot, q, qd, qdd):
    """The rigid part of the torque by another library, in MuJoCo's coordinates."""
    model = pinocchio.buildModelFromUrdf(str(path))
    model.gravity.linear[:] = robot.gravity
    Q, V, A, turns = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv), {}
    for joint in robot.joints:
        k = model.getJointId(joint.name)
        at, x = model.joints[k], q[joint.coordinates]
        v, a = qd[joint.dofs], qdd[joint.dofs]
        if joint.kind_name == "free":  # velocities: linear in the world; here all in the body
            R = pinocchio.Quaternion(x[3], *x[4:]).matrix()
            turns[joint.name] = R
            x = np.concatenate([np.zeros(3), pinocchio.Quaternion(model.jointPlacements[k].rotation.T @ R).coeffs()])
            linear = R.T @ v[:3]
            a = np.concatenate([R.T @ a[:3] - np.cross(v[3:], linear), a[3:]])
            v = np.concatenate([linear, v[3:]])
        elif at.nq == 2:
            x = np.array([np.cos(x[0]), np.sin(x[0])])
        Q[at.idx_q : at.idx_q + at.nq], V[at.idx_v : at.idx_v + at.nv], A[at.idx_v : at.idx_v + at.nv] = x, v, a
    tau = pinocchio.rnea(model, model.createData(), Q, V, A) - model.armature * A
    out = np.empty(robot.n)
    for joint in robot.joints:
        at = model.joints[model.getJointId(joint.name)]
        out[joint.dofs] = tau[at.idx_v : at.idx_v + at.nv]
        if joint.name in turns:
            out[joint.dof : joint.dof + 3] = turns[joint.name] @ out[joint.dof : joint.dof + 3]
    return out


@pytest.mark.parametrize("seed", range(30))
def test_random_trees_survive_as_urdf_and_pinocchio_reads_the_same_robot(seed, tmp_path):
    text = random_mjcf(np.random.default_rng(seed), kinds=("hinge", "slide", "none"))
    robot = varied(load_robot(file(tmp_path, text), friction=FRICTION), seed)
    copy, notes = assert_round_trip(robot, tmp_path / "one.urdf", gravity=robot.gravity)
    assert any("no gravity" in note for note in notes)
    again = varied(copy, seed + 1)
    assert_round_trip(again, tmp_path / "two.urdf", gravity=robot.gravity)
    assert_round_trip(again, tmp_path / "three.xml")
    states = random_states(again, np.random.default_rng(seed), 1, within_limits=False)
    q, qd, qdd = (x[0] for x in states)
    armature, damping, coulomb, _ = again.joint_parameters.T
    rigid = inverse_dynamics(again, q, qd, qdd) - armature * qdd - damping * qd - coulomb * np.sign(qd)
    theirs = pinocchio_torque(tmp_path / "two.urdf", again, q, qd, qdd)
    np.testing.assert_allclose(theirs, rigid, rtol=0, atol=1e-10 * np.abs(rigid).max())


def test_the_tx40_survives_from_urdf_to_both(real_data, tmp_path):
    source = real_data / "tx40" / "tx40_mdh_modified.urdf"
    robot = varied(load_robot(source, friction=FRICTION))
    export_model(robot, tmp_path / "tx40.urdf")  # its meshes are not here, so MuJoCo alone would refuse it
    assert_same_dynamics(robot, load_robot(tmp_path / "tx40.urdf", friction=FRICTION))
    assert_round_trip(robot, tmp_path / "tx40.xml")
    old, new = source.read_text().splitlines(), (tmp_path / "tx40.urdf").read_text().splitlines()
    changed = [line for line in set(old) - set(new) if not any(t in line for t in ("origin", "mass", "inertia", "dyn"))]
    assert changed == []


@pytest.mark.parametrize("suffix", [".xml", ".urdf"])
@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_a_dh_table_survives_as_both(convention, suffix, tmp_path):
    inertial = {"mass": 2.0, "com": [0.1, 0.02, 0.0], "inertia": [0.02, 0.03, 0.04], "armature": 0.1, "coulomb": 1.0}
    rows = [
        {"name": "turn", "a": 0.3, "alpha": "pi/2", "d": 0.2, "theta": 0.4, "range": [-1, 1], "torque": 50} | inertial,
        {"name": "push", "type": "prismatic", "a": 0.1, "alpha": 0.2, "d": 0.1, "theta": 0.5, "velocity": 2} | inertial,
    ]
    robot = varied(load_robot({"convention": convention, "joints": rows}, friction=FRICTION))
    copy, _ = assert_round_trip(robot, tmp_path / f"dh{suffix}")
    assert copy.limits.torque[0] == 50
    assert copy.limits.velocity[1] == 2


def test_tilted_gravity_is_written_into_mjcf_and_noted_for_urdf(tmp_path):
    tilt = np.array([[0.8, 0, 0.6], [0, 1, 0], [-0.6, 0, 0.8]])
    robot = load_robot("ur5e", mounting=tilt, friction=FRICTION)
    copy, notes = assert_round_trip(robot, tmp_path / "ur5e.xml")
    np.testing.assert_array_equal(copy.gravity, tilt.T @ [0, 0, -9.81])
    assert not any("gravity" in note for note in notes)
    assert any("gravity (5.886, 0, -7.848)" in note for note in export_model(robot, tmp_path / "ur5e.urdf"))


def test_gravity_that_the_model_switches_off_can_be_switched_on(tmp_path):
    option = '<option gravity="0.5 0 -9.7"/>'
    off = option.replace("/>", '><flag gravity="disable"/></option>')
    robot = load_robot(arm(tmp_path, change=[(option, off)]), gravity=[0, 0, -1.6])
    copy, _ = assert_round_trip(robot, tmp_path / "out.xml")
    np.testing.assert_array_equal(copy.gravity, [0, 0, -1.6])


def test_only_numbers_change_in_the_text_of_a_plain_mjcf(tmp_path):
    change = [('<geom name="ball"', '<inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/><geom name="ball"')]
    source = arm(tmp_path, change=change)
    robot = load_robot(source, friction=FRICTION)
    theta = robot.parameters.copy()
    theta[robot.layout.index("shoulder.damping")] = 0.0
    theta[robot.layout.index("lower.Ixx")] = 0.125
    _, notes = assert_round_trip(robot.with_parameters(theta), tmp_path / "out.xml")
    assert notes == ()
    expected = source.read_text()
    for old, new in (
        ('ref="20" range="-90 90"', 'ref="20" range="-90 90" armature="0.2" damping="0 0.1 0" frictionloss="0.3"'),
        ('mass="1" diaginertia=".1 .1 .1"', 'mass="1" fullinertia="0.125 0.1 0.1 0 0 0"'),
    ):
        assert old in expected
        expected = expected.replace(old, new)
    assert (tmp_path / "out.xml").read_text() == expected


@pytest.mark.parametrize("named", [True, False])
def test_a_floating_base_given_to_an_mjcf_is_written(named, tmp_path):
    change = [('<joint name="shoulder" axis="0 1 0" pos="0 0.1 0" ref="20" range="-90 90"/>', "")]
    change += [('<motor name="drive" joint="shoulder" gear="50"/>', ""), ('<jointpos joint="shoulder"/>', "")]
    change += [(' qpos=".3 .1"', "")] + ([] if named else [(' name="elbow"', "")])
    robot = varied(load_robot(arm(tmp_path, change=change), floating_base=True, friction=FRICTION))
    copy, _ = assert_round_trip(robot, tmp_path / "out.xml")
    assert copy.joints[0].kind_name == "free"


@pytest.mark.parametrize(
    "compiler",
    [
        'inertiafromgeom="true"',
        'settotalmass="7"',
        'balanceinertia="true"',
        'boundmass="3" boundinertia="0.1"',
        'fusestatic="true"',
        'discardvisual="true"',
        'inertiafromgeom="true" alignfree="true"',
    ],
)
def test_no_compiler_option_changes_the_numbers_again(compiler, tmp_path):
    robot = varied(load_robot(arm(tmp_path, " " + compiler), friction=FRICTION))
    assert_round_trip(robot, tmp_path / "out.xml")
    assert 'name="tube"' in (tmp_path / "out.xml").read_text()


def test_what_is_the_users_survives_being_written_from_the_spec(tmp_path):
    file(tmp_path, '<mujocoinclude><actuator><motor name="aux" joint="elbow"/></actuator></mujocoinclude>', "more.xml")
    change = [("<keyframe>", '<include file="more.xml"/><keyframe>'), ("<mujoco ", "<!-- licence -->\n<mujoco ")]
    robot = varied(load_robot(arm(tmp_path, change=change), friction=FRICTION))
    copy, notes = assert_round_trip(robot, tmp_path / "out.xml")
    old, new = robot.source.model, copy.source.model
    for count in ("ngeom", "nsite", "nu", "nsensor", "nkey", "nbody"):
        assert getattr(new, count) == getattr(old, count)
    for field in ("geom_size", "geom_pos", "site_pos", "key_qpos", "actuator_gear", "jnt_range", "dof_dampingpoly"):
        np.testing.assert_array_equal(getattr(new, field), getattr(old, field))
    text = (tmp_path / "out.xml").read_text()
    assert text.startswith("<!-- licence -->\n<mujoco ")
    assert 'euler="10 20 30"' in text
    assert '<joint armature="0.2" damping="1.5 0.1" frictionloss="0.3"/>' in text
    assert notes == ("comments inside the model are not kept", "what the model included is written into the one file")


def test_joint_values_of_zero_win_over_defaults(tmp_path):
    robot = load_robot(arm(tmp_path), friction=FRICTION)
    theta = robot.parameters.copy()
    for prop in ("armature", "damping", "coulomb"):
        theta[robot.layout.block(prop)] = 0.0
    file(tmp_path, "<mujocoinclude><statistic/></mujocoinclude>", "nothing.xml")
    for change in ([], [("<worldbody>", '<include file="nothing.xml"/><worldbody>')]):  # as text, and from the spec
        robot = load_robot(arm(tmp_path, change=change), friction=FRICTION)
        copy, _ = assert_round_trip(robot.with_parameters(theta), tmp_path / "out.xml")
        assert not copy.joint_parameters.any()


def test_replicated_attached_and_unnamed_bodies_are_written_one_by_one(tmp_path):
    file(
        tmp_path,
        '<mujoco model="c"><compiler angle="radian" inertiafromgeom="true"/><worldbody><body name="k" euler=".1 0 0">'
        '<joint name="kj" range="-1 1" ref=".2"/><geom size=".1"/></body></worldbody></mujoco>',
        "child.xml",
    )
    body = '<body><joint axis="0 1 0" springdamper=".1 1"/>{}<geom size=".1" pos=".1 0 0"/></body>'
    attach = '<attach model="c" body="k" prefix="z_"/>'
    source = file(
        tmp_path,
        '<mujoco><asset><model name="c" file="child.xml"/></asset><worldbody>'
        f'<replicate count="3" offset="1 0 0">{body.format("")}</replicate>'
        f'<frame pos="0 1 0" euler="10 0 0">{body.format(attach)}</frame></worldbody></mujoco>',
    )
    robot = varied(load_robot(source, friction=FRICTION))
    copy, _ = assert_round_trip(robot, tmp_path / "out.xml")
    assert copy.bodies == ("body1", "body2", "body3", "body4", "z_k")
    np.testing.assert_array_equal(copy.source.model.jnt_stiffness, robot.source.model.jnt_stiffness)


MESH = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


@pytest.mark.parametrize("where", ["same", "beside", "far"])
def test_meshes_are_found_from_the_folder_of_the_export(where, tmp_path):
    home = tmp_path / "project" / "model"
    (home / "meshes").mkdir(parents=True)
    (home / "meshes" / "m.obj").write_text(MESH)
    geom = '<geom name="box" type="box" size=".1 .1 .1" pos="0 .1 0"/>'
    change = [
        (geom, '<geom name="box" type="mesh" mesh="m" mass="0"/>'),
        ("<worldbody>", '<asset><mesh name="m" file="m.obj"/></asset><worldbody>'),
    ]
    robot = varied(load_robot(arm(home, ' meshdir="meshes"', change), friction=FRICTION))
    folder = {"same": home, "beside": home.parent / "export", "far": tmp_path / "elsewhere" / "export"}[where]
    folder.mkdir(exist_ok=True, parents=True)
    assert_round_trip(robot, folder / "out.xml")
    text = (folder / "out.xml").read_text()
    assert (str(tmp_path) in text) == (where == "far")
    assert mujoco.MjModel.from_xml_path(str(folder / "out.xml")).nmesh == 1


def test_files_that_are_in_memory_only_are_left_out_with_a_note(tmp_path):
    spec = mujoco.MjSpec.from_string(ARM.format(compiler=""))
    spec.assets = {"m.obj": MESH.encode()}
    spec.add_mesh(name="m", file="m.obj")
    spec.body("lower").add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="m")
    _, notes = assert_round_trip(varied(load_robot(spec, friction=FRICTION)), tmp_path / "out.xml")
    assert any("'m.obj'" in note for note in notes)


def with_missing_mesh(folder, more=()):
    geom = '<geom name="box" type="box" size=".1 .1 .1" pos="0 .1 0"/>'
    mesh = '<geom name="box" type="mesh" mesh="m" mass="0"/>'
    assets = '<asset><mesh name="m" file="gone.obj"/></asset><worldbody>'
    return arm(folder, change=[(geom, mesh), ("<worldbody>", assets), *more])


@pytest.mark.parametrize("folder", [".", "other"])
def test_a_mesh_that_is_missing_stays_in_the_text(folder, tmp_path):
    (tmp_path / "other").mkdir()
    inertial = '<inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/><geom name="ball"'
    source = with_missing_mesh(tmp_path, [('<geom name="ball"', inertial)])
    robot = varied(load_robot(source, friction=FRICTION))
    notes = export_model(robot, tmp_path / folder / source.name)
    text = (tmp_path / folder / source.name).read_text()
    assert '<mesh name="m" file="gone.obj"/>' in text
    assert 'type="mesh" mesh="m"' in text
    assert_same_dynamics(robot, load_robot(tmp_path / folder / source.name, friction=FRICTION))
    assert any("'gone.obj'" in note for note in notes) == (folder == "other")


def test_a_rewritten_model_without_its_missing_meshes_is_noted_and_never_takes_the_place_of_its_source(tmp_path):
    (tmp_path / "part.xml").write_text('<mujoco><option timestep="0.001"/></mujoco>')
    source = with_missing_mesh(tmp_path, [("<worldbody>", '<include file="part.xml"/><worldbody>')])
    before, robot = source.read_text(), varied(load_robot(source, friction=FRICTION))
    with pytest.raises(ModelError, match=r"without 'gone.obj' \(1 geom\).*give another path"):
        export_model(robot, source)
    link = tmp_path / "link.xml"
    link.symlink_to(source)
    with pytest.raises(ModelError, match="give another path"):
        export_model(robot, link)
    assert source.read_text() == before
    for name in ("out.xml", "out.urdf"):
        assert any("'gone.obj' (1 geom)" in note for note in export_model(robot, tmp_path / name)), name


def test_what_only_a_urdf_says_is_noted_on_the_way_to_mjcf(tmp_path):
    visual = "<visual><geometry><box size='1 1 1'/></geometry></visual></link>"
    text = URDF.format(kind="revolute").replace("</link>", visual)
    text = text.replace('<axis xyz="0 0 1"/>', '<axis xyz="0 0 1"/><mimic joint="jb"/>')
    text = text.replace("</robot>", '<gazebo reference="a"/><ros2_control name="c"/></robot>')
    robot = load_robot(file(tmp_path, text, "r.urdf"))
    (note,) = [note for note in export_model(robot, tmp_path / "out.xml") if "URDF" in note]
    for what in ("2 <visual>", "1 <mimic>", "1 <transmission>", "1 <gazebo>", "1 <ros2_control>"):
        assert what in note
    assert not any("<visual>" in note for note in export_model(robot, tmp_path / "out.urdf"))


def test_a_urdf_that_has_to_be_written_anew_does_not_take_the_place_of_its_source(tmp_path):
    text = URDF.format(kind="revolute").replace('"base"', '"world"')
    text = text.replace('type="revolute"><parent link="world"/>', 'type="fixed"><parent link="world"/>')
    source = file(tmp_path, text, "r.urdf")
    robot = load_robot(source, floating_base=True)
    with pytest.raises(ModelError, match="without 1 <transmission>; give another path"):
        export_model(robot, source)
    assert source.read_text() == text
    assert any("1 <transmission>" in note for note in export_model(robot, tmp_path / "out.urdf"))


@pytest.mark.parametrize("path", ["", None, 3])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(ModelError, match="give the path of a file"):
        export_model(load_robot("two_link"), path)


def test_relative_files_of_a_urdf_are_found_from_another_folder(tmp_path):
    (tmp_path / "a" / "meshes").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "meshes" / "m.obj").write_text(MESH)
    shape = '<collision><geometry><mesh filename="{}"/></geometry></collision></link>'
    text = URDF.format(kind="fixed").replace("</link>", shape.format("meshes/m.obj"), 1)
    text = text.replace("</link>", shape.format("package://p/m.obj"), 1)
    robot = varied(load_robot(file(tmp_path / "a", text, "r.urdf"), friction=FRICTION))
    export_model(robot, tmp_path / "b" / "r.urdf")
    new = (tmp_path / "b" / "r.urdf").read_text()
    assert 'filename="../a/meshes/m.obj"' in new
    assert 'filename="package://p/m.obj"' in new


def test_the_text_of_a_urdf_keeps_everything_but_the_numbers(tmp_path):
    robot = load_robot(file(tmp_path, URDF.format(kind="fixed"), "r.urdf"), friction=FRICTION)
    theta = robot.parameters.copy()
    theta[robot.layout.index("jb.armature")], theta[robot.layout.index("b.m")] = 0.25, 3.0
    copy, notes = assert_round_trip(robot.with_parameters(theta), tmp_path / "out.urdf")
    assert notes == ()
    new = (tmp_path / "out.urdf").read_text()
    assert new.startswith('<robot name="r">\n  <!-- ours: ü &amp; all -->\n')
    assert '<dynamics  friction="0.1" comment=" damping=\'9\' " damping="0" armature="0.25"/>' in new
    assert '<transmission name="t"><joint name="jb"/></transmission>' in new
    assert new.count('<mass value="1.5"/>') == 1
    assert copy.limits.velocity[0] == 3


@pytest.mark.parametrize("kind", ["floating", "planar", "spherical", "prismatic"])
def test_every_joint_of_a_urdf_is_written_back(kind, tmp_path):
    text = URDF.format(kind=kind).replace('"base"', '"world"')  # only children of the world may float
    robot = varied(load_robot(file(tmp_path, text, "r.urdf"), friction=FRICTION))
    theta = robot.parameters.copy()
    first = [k for k, dof in enumerate(robot.dof_names) if dof.startswith("ja")]
    theta[robot.layout.block("damping")][first] = np.arange(len(first))
    robot = robot.with_parameters(theta)
    notes = export_model(robot, tmp_path / "out.urdf")
    copy = load_robot(tmp_path / "out.urdf", friction=FRICTION)
    mean = np.mean(np.arange(len(first)))
    np.testing.assert_allclose(copy.parameters[robot.layout.block("damping")][first], mean)
    assert any("the mean" in note for note in notes) == (len(first) > 1)
    rest = np.ones(len(theta), dtype=bool)
    rest[robot.layout.block("damping")] = False
    np.testing.assert_allclose(copy.parameters[rest], theta[rest], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("root", ["base", "world"])
def test_a_base_that_was_let_float_floats_in_the_export(root, tmp_path):
    text = URDF.format(kind="fixed").replace('"base"', f'"{root}"')
    robot = varied(load_robot(file(tmp_path, text, "r.urdf"), floating_base=True, friction=FRICTION))
    for name in ("out.urdf", "out.xml"):
        assert_round_trip(robot, tmp_path / name)


def test_what_a_urdf_cannot_hold_is_refused_by_name(tmp_path):
    tree = random_mjcf(np.random.default_rng(3), kinds=("ball", "two hinges"), free=False)
    with pytest.raises(ModelError, match=r"URDF cannot hold the .*joint.* of body 'b\d'.*; export to MJCF") as error:
        export_model(load_robot(file(tmp_path, tree)), tmp_path / "out.urdf")
    assert "the ball joint 'j" in str(error.value)
    assert not (tmp_path / "out.urdf").exists()


def test_what_a_urdf_has_no_place_for_is_noted(tmp_path):
    notes = " | ".join(export_model(load_robot(arm(tmp_path), friction=FRICTION), tmp_path / "out.urdf"))
    for words in (
        "frames of upper were moved",
        "1 actuator, 1 sensor, 1 site, 1 keyframe, 1 plane geom, nonlinear damping of shoulder, elbow",
        "slide without limits: elbow",
        "gravity (0.5, 0, -9.7)",
        "limit of 0",
    ):
        assert words in notes


def test_simple_shapes_stand_where_they_stood(tmp_path):
    robot = load_robot(arm(tmp_path))
    export_model(robot, tmp_path / "out.urdf")
    copy = load_robot(tmp_path / "out.urdf", gravity=robot.gravity)
    old, new = robot.source.model, copy.source.model

    def placed(model, q):
        data = mujoco.MjData(model)
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        return {tuple(np.round([*p, *R[[2, 5, 8]]], 9)) for p, R in zip(data.geom_xpos, data.geom_xmat, strict=True)}

    # The plane has no place in a URDF; of the capsule, the cylinder is the same shape in the same place
    assert len(placed(old, [0.4, 0.2]) & placed(new, [0.4, 0.2])) == old.ngeom - 1
    assert new.ngeom == old.ngeom - 1 + 2


def test_offsets_are_kept_beside_the_model_and_noted(tmp_path):
    for change in ([], [("<worldbody>", '<include file="nothing.xml"/><worldbody>')]):
        file(tmp_path, "<mujocoinclude><statistic/></mujocoinclude>", "nothing.xml")
        robot = load_robot(arm(tmp_path, change=change), friction=FRICTION)
        for value in (0.7, 0.0):  # the second export forgets the first
            theta = robot.parameters.copy()
            theta[robot.layout.index("shoulder.offset")] = value
            notes = export_model(robot.with_parameters(theta), tmp_path / "out.xml")
            model = mujoco.MjModel.from_xml_path(str(tmp_path / "out.xml"))
            assert model.nnumeric == (value > 0)
            assert any("'shoulder' 0.7" in note for note in notes) == (value > 0)
            robot = load_robot(tmp_path / "out.xml", friction=FRICTION)
        assert list(mujoco.MjModel.from_xml_path(str(tmp_path / "out.xml")).numeric_data) == []


def test_axes_of_a_ball_joint_get_their_mean_with_a_note(tmp_path):
    text = ARM.format(compiler="").replace('type="slide"', 'type="ball"').replace('qpos=".3 .1"', "")
    robot = load_robot(file(tmp_path, text), friction=FRICTION)
    theta = robot.parameters.copy()
    theta[robot.layout.block("armature")][1:] = [0.1, 0.2, 0.6]
    notes = export_model(robot.with_parameters(theta), tmp_path / "out.xml")
    assert any("'elbow' has one armature for all its axes: the mean 0.3 of 0.1, 0.2, 0.6" in note for note in notes)
    copy = load_robot(tmp_path / "out.xml", friction=FRICTION)
    np.testing.assert_allclose(copy.parameters[robot.layout.block("armature")], [0.2, 0.3, 0.3, 0.3])


def test_everything_impossible_is_named_and_nothing_is_written(tmp_path):
    robot = load_robot("ur5e", friction=FRICTION)
    theta = robot.parameters.copy()
    first, second = robot.layout.bodies[:2]
    theta[robot.layout.index(f"{first}.m")] = -1.0
    theta[robot.layout.index(f"{second}.Ixx")] = 100.0
    theta[robot.layout.block("damping")][2] = -0.5
    before = file(tmp_path, "untouched", "out.xml")
    with pytest.raises(ModelError) as error:
        export_model(robot.with_parameters(theta), before)
    for words in (f"'{first}': its mass", f"'{second}': its principal moments", f"'{robot.dof_names[2]}': its damping"):
        assert words in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["out.xml"]
    assert before.read_text() == "untouched"


@pytest.mark.parametrize("suffix", [".xml", ".urdf"])
@pytest.mark.parametrize("shape", [(0, 1, 1), (1, 1, 2), (0, 0, 0), (2, 1, 1)])
def test_bodies_on_the_boundary_are_moved_inside_by_what_is_noted(shape, suffix, tmp_path):
    robot = load_robot("two_link")
    theta = robot.parameters.copy()
    # Not along the axes: rounding puts such a body on either side
    R = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    I, c = R @ np.diag(np.array(shape) * 0.01) @ R.T, np.array([0.1, 0.2, 0.3])
    I = I + 1.5 * (c @ c * np.eye(3) - np.outer(c, c))
    theta[robot.layout.body("link2")] = [1.5, *(1.5 * c), *I[np.triu_indices(3)]]
    robot = robot.with_parameters(theta)
    notes = export_model(robot, tmp_path / f"out{suffix}")
    assert any("'link2' lies on the boundary" in note and "e-1" in note for note in notes)
    mujoco.MjModel.from_xml_path(str(tmp_path / f"out{suffix}"))
    # The move is 1e-9 of the moments at most
    assert_same_dynamics(robot, load_robot(tmp_path / f"out{suffix}"), tolerance=1e-9)


def test_massless_frames_stay_massless(tmp_path):
    site = '<site name="tool" pos="0 0 .1"/>'
    frame = '<body name="frame" pos="0 0 .1"><geom name="mark" size=".01" mass="0"/></body>'
    robot = varied(load_robot(arm(tmp_path, change=[(site, site + frame)]), friction=FRICTION))
    for suffix, options in ((".xml", {}), (".urdf", {"gravity": robot.gravity})):
        copy, _ = assert_round_trip(robot, tmp_path / f"out{suffix}", **options)
        assert copy.bodies[-1] == "frame"
        assert not copy.body_parameters[-1].any()


@pytest.mark.parametrize("suffix", [".xml", ".urdf"])
def test_names_that_xml_has_to_escape_survive(suffix, tmp_path):
    spec = mujoco.MjSpec.from_string(ARM.format(compiler=""))
    spec.joint("shoulder").name = spec.body("upper").name = "a<b> & \"c\" 'd' ü"
    spec.delete(spec.actuators[0])
    spec.delete(spec.sensors[0])
    robot = varied(load_robot(spec, friction=FRICTION))
    copy, _ = assert_round_trip(robot, tmp_path / f"out{suffix}", gravity=robot.gravity)
    assert copy.bodies == robot.bodies
    spec.body("lower").name = "bell\x07"
    with pytest.raises(ModelError, match="XML has no way to write"):
        export_model(load_robot(spec), tmp_path / f"out{suffix}")


def test_held_joints_and_chosen_bodies_are_written_beside_the_model(tmp_path):
    robot = varied(load_robot("ur5e", lock={"wrist_1_joint": 0.3}, friction=FRICTION))
    left_out = robot.layout.bodies[0]
    robot = robot.with_layout(bodies=robot.layout.bodies[1:])
    for name in ("out.xml", "out.urdf"):
        copy, notes = assert_round_trip(robot, tmp_path / name)
        assert copy.layout.bodies == robot.layout.bodies
        assert copy.n == 5
        assert left_out in (tmp_path / "out.steelyard.yaml").read_text()
        assert any("out.steelyard.yaml" in note and "lock, leave_out" in note for note in notes)


def test_a_model_that_says_everything_gets_no_sidecar(tmp_path):
    export_model(load_robot(arm(tmp_path)), tmp_path / "out.xml")
    assert not (tmp_path / "out.steelyard.yaml").exists()
    file(tmp_path, "lock: {nobody: 1.0}", "out.steelyard.yaml")  # an old one beside it would spoil the new model
    export_model(load_robot(arm(tmp_path)), tmp_path / "out.xml")
    assert load_robot(tmp_path / "out.xml").n == 2


def test_a_model_can_be_written_over_itself_and_over_nothing_else_unasked(tmp_path):
    path = arm(tmp_path)
    robot = varied(load_robot(path, friction=FRICTION))
    with pytest.raises(ModelError, match="exists already"):
        export_model(robot, path, overwrite=False)
    assert_round_trip(robot, path)
    assert_round_trip(varied(load_robot(path, friction=FRICTION)), path)
    with pytest.raises(ModelError, match="no such folder"):
        export_model(robot, tmp_path / "none" / "out.xml")
    (tmp_path / "folder.xml").mkdir()
    with pytest.raises(ModelError, match="is a folder"):
        export_model(robot, tmp_path / "folder.xml")


@pytest.mark.parametrize("name", ["out.sdf", "out", "out.yaml"])
def test_an_unknown_suffix_is_refused_with_the_valid_ones(name, tmp_path):
    with pytest.raises(ModelError, match=r"\.xml \(MJCF\), \.mjcf \(MJCF\), \.urdf \(URDF\)"):
        export_model(load_robot("two_link"), tmp_path / name)


def test_a_failure_while_writing_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("steelyard.robot.export.os.replace", full)
    with pytest.raises(ModelError, match="No space left"):
        export_model(load_robot("panda"), tmp_path / "out.xml")
    assert list(tmp_path.iterdir()) == []


def test_a_free_body_that_mujoco_aligns_with_its_inertia_is_refused(tmp_path):
    body = '<body name="b"><freejoint align="true"/><geom size=".1" pos=".1 0 0"/></body>'
    text = f"<mujoco><worldbody>{body}</worldbody></mujoco>"
    robot = load_robot(file(tmp_path, text))
    with pytest.raises(ModelError, match="'b': MuJoCo aligns its free joint"):
        export_model(varied(robot), tmp_path / "out.xml")


def test_angles_near_the_pole_keep_all_their_digits(tmp_path):
    for pitch in (90, -90, 90 - 1e-6, -90 + 1e-12):
        change = [('euler="10 20 30"', f'euler="10 {pitch} 30"')]
        robot = load_robot(arm(tmp_path, change=change), friction=FRICTION)
        copy, _ = assert_round_trip(robot, tmp_path / "out.urdf", gravity=robot.gravity)
        assert_same_dynamics(robot, copy, tolerance=1e-13)


def test_a_robot_without_a_model_behind_it_is_refused(tmp_path):
    with pytest.raises(ModelError, match="no model file behind it"):
        export_model(replace(load_robot("two_link"), source=None), tmp_path / "out.xml")
