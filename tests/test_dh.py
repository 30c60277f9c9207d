"""A DH table becomes a robot with the table's frames, in both conventions, and no gap in it is filled in silence."""

from pathlib import Path

import mujoco
import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.errors import ModelError
from steelyard.robot.dh import dh_limits
from steelyard.robot.sources import Source, read_source, stated_limits

CONVENTIONS = ("standard", "modified")
ROW = {"a": 0.3, "alpha": "pi/2", "d": 0.1}
PANDA = [  # a, alpha, d: modified, as in Gaz et al. 2019
    (0, 0, 0.333),
    (0, "-pi/2", 0),
    (0, "pi/2", 0.316),
    (0.0825, "pi/2", 0),
    (-0.0825, "-pi/2", 0.384),
    (0, "pi/2", 0),
    (0.088, "pi/2", 0),
]
UR10 = [  # a, alpha, d: standard
    (0, "pi/2", 0.1273),
    (-0.612, 0, 0),
    (-0.5723, 0, 0),
    (0, "pi/2", 0.163941),
    (0, "-pi/2", 0.1157),
    (0, 0, 0.0922),
]


def table(rows: list, convention: str = "modified", **more: object) -> dict:
    joints = [row if isinstance(row, dict) else dict(zip(("a", "alpha", "d"), row, strict=True)) for row in rows]
    return {"convention": convention, "joints": joints, **more}


def pose(source: Source, q: np.ndarray, body: str) -> np.ndarray:
    data = mujoco.MjData(source.model)
    data.qpos = q
    mujoco.mj_kinematics(source.model, data)
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = data.body(body).xmat.reshape(3, 3), data.body(body).xpos
    return out


def site(source: Source, q: object) -> np.ndarray:
    data = mujoco.MjData(source.model)
    data.qpos = q
    mujoco.mj_kinematics(source.model, data)
    return data.site("tool").xpos


def textbook(convention: str, a: float, alpha: float, d: float, theta: float) -> np.ndarray:
    """The homogeneous matrices as textbooks print them, element by element (Spong; Craig)."""
    ct, st_, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    if convention == "standard":
        rows = [[ct, -st_ * ca, st_ * sa, a * ct], [st_, ct * ca, -ct * sa, a * st_], [0, sa, ca, d], [0, 0, 0, 1]]
    else:
        rows = [[ct, -st_, 0, a], [st_ * ca, ct * ca, -sa, -d * sa], [st_ * sa, ct * sa, ca, d * ca], [0, 0, 0, 1]]
    return np.array(rows)


lengths = st.floats(-2, 2)
angles = st.floats(-6.28, 6.28)
rows = st.fixed_dictionaries(
    {"a": lengths, "alpha": angles, "d": lengths, "theta": angles, "type": st.sampled_from(["revolute", "prismatic"])}
)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(CONVENTIONS), st.lists(rows, min_size=1, max_size=7), st.data())
def test_every_body_frame_is_the_product_of_the_textbook_matrices(convention, joints, data):
    source = read_source(table(joints, convention))
    q = np.array([data.draw(angles) for _ in joints])
    expected = np.eye(4)
    for k, (row, position) in enumerate(zip(joints, q, strict=True), start=1):
        turns = row["type"] == "revolute"
        theta, d = row["theta"] + (position if turns else 0), row["d"] + (0 if turns else position)
        expected = expected @ textbook(convention, row["a"], row["alpha"], d, theta)
        # quaternions of length one on the way: a few roundings a joint, of lengths up to 10 m
        np.testing.assert_allclose(pose(source, q, f"link{k}"), expected, atol=1e-12)


def test_the_panda_of_gaz_has_its_flange_where_franka_has_it():
    source = read_source(table(PANDA, tool={"pos": [0, 0, 0.107]}))
    np.testing.assert_allclose(site(source, np.zeros(7)), [0.088, 0, 0.926], atol=1e-12)
    ready = [0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4]
    # libfranka's ready pose: the hand's tip at z = 0.4869, 0.1034 m below the flange
    np.testing.assert_allclose(site(source, ready), [0.30689, 0, 0.59028], atol=1e-5)


def test_the_ur10_has_its_flange_where_the_sum_of_its_lengths_puts_it():
    source = read_source(table(UR10, "standard"))
    np.testing.assert_allclose(site(source, np.zeros(6)), [-1.1843, -0.256141, 0.0116], atol=1e-12)


def test_standard_joints_turn_about_the_z_axis_of_the_frame_before():
    source = read_source(table(UR10, "standard"))
    q, data = np.linspace(-1, 1, 6), mujoco.MjData(source.model)
    data.qpos = q
    mujoco.mj_kinematics(source.model, data)
    for k in range(6):
        before = pose(source, q, f"link{k}" if k else "base")
        np.testing.assert_allclose(data.xaxis[k], before[:3, 2], atol=1e-12)
        offset = data.xanchor[k] - before[:3, 3]
        np.testing.assert_allclose(np.cross(offset, before[:3, 2]), 0, atol=1e-12)


def test_modified_joints_turn_about_the_z_axis_through_the_body_origin():
    model = read_source(table(PANDA)).model
    np.testing.assert_array_equal(model.jnt_pos, np.zeros((7, 3)))
    np.testing.assert_array_equal(model.jnt_axis, np.tile([0, 0, 1], (7, 1)))


def test_base_tool_and_gravity_are_placed():
    source = read_source(
        table([ROW], base={"pos": [1, 2, 3], "rpy": ["pi/2", 0, 0]}, tool={"pos": [0, 0, 1]}, gravity=[0, 9.81, 0])
    )
    # modified: frame 1 is 0.3 along x, then turned by alpha and moved 0.1 along the new z, which is -y of frame 0
    np.testing.assert_allclose(site(source, [0.0]), [1.3, 2, 3 - 1.1], atol=1e-12)
    assert source.model.opt.gravity.tolist() == [0, 9.81, 0]


def test_degrees_are_an_option_and_mean_the_same():
    degrees = {"a": 0.1, "alpha": -90, "d": 0.2, "theta": 30, "range": [-180, 90], "velocity": 180}
    radians = {"a": 0.1, "alpha": "-pi/2", "d": 0.2, "theta": "pi/6", "range": ["-pi", "pi/2"], "velocity": "pi"}
    one, other = read_source(table([degrees], unit="deg")), read_source(table([radians]))
    np.testing.assert_allclose(pose(one, [0.3], "link1"), pose(other, [0.3], "link1"), atol=1e-15)
    np.testing.assert_allclose(one.model.jnt_range, other.model.jnt_range)
    assert stated_limits(one)["joint1"]["velocity"] == pytest.approx(np.pi)
    assert stated_limits(other)["joint1"]["velocity"] == pytest.approx(np.pi)


def test_a_prismatic_range_is_metres_whatever_the_unit():
    row = {"type": "prismatic", "a": 0, "alpha": 90, "theta": 0, "range": [0, 0.5], "velocity": 0.2}
    source = read_source(table([row], unit="deg"))
    assert source.model.jnt_range[0].tolist() == [0, 0.5]
    assert stated_limits(source) == {"joint1": {"velocity": 0.2}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("pi", np.pi),
        ("-pi/2", -np.pi / 2),
        ("+pi", np.pi),
        ("2*pi/3", 2 * np.pi / 3),
        ("0.5 pi", np.pi / 2),
        ("1e-3", 1e-3),
        (" .5 ", 0.5),
        (1, 1.0),
        (np.float64(0.25), 0.25),
    ],
)
def test_angles_are_numbers_or_simple_fractions_of_pi(text, value):
    source = read_source(table([{**ROW, "range": [-100, text]}]))
    assert source.model.jnt_range[0, 1] == value


def test_physics_of_links_and_joints_arrives():
    row = {
        **ROW, "mass": 2, "com": [0.1, 0.2, 0.3], "inertia": {"Ixx": 0.3, "Iyy": 0.4, "Izz": 0.5, "Ixy": 0.01},
        "armature": 0.1, "damping": 0.2, "coulomb": 0.3, "torque": 9, "velocity": 3,
    }  # fmt: skip
    source = read_source(table([row]))
    model = source.model
    assert (model.dof_armature[0], model.dof_damping[0], model.dof_frictionloss[0]) == (0.1, 0.2, 0.3)
    assert model.jnt_actfrcrange[0].tolist() == [-9, 9]
    body, axes = model.body("link1"), np.empty(9)
    mujoco.mju_quat2Mat(axes, body.iquat)
    axes = axes.reshape(3, 3)
    expected = [[0.3, 0.01, 0], [0.01, 0.4, 0], [0, 0, 0.5]]
    np.testing.assert_allclose(axes @ np.diag(body.inertia) @ axes.T, expected, atol=1e-15)
    assert (body.mass[0], body.ipos.tolist()) == (2, [0.1, 0.2, 0.3])
    assert stated_limits(source) == {"joint1": {"velocity": 3.0, "torque": 9.0}}
    assert source.notes == ()


def test_inertia_may_be_three_moments_or_six_numbers_in_the_order_of_the_parameters():
    three = read_source(table([{**ROW, "mass": 1, "com": [0, 0, 0], "inertia": [0.3, 0.4, 0.5]}]))
    six = read_source(table([{**ROW, "mass": 1, "com": [0, 0, 0], "inertia": [0.3, 0, 0, 0.4, 0, 0.5]}]))
    for source in (three, six):
        np.testing.assert_allclose(np.sort(source.model.body("link1").inertia), [0.3, 0.4, 0.5], atol=1e-15)


def test_placeholder_masses_are_said_to_be_placeholders():
    source = read_source(table([ROW, ROW]))
    assert source.notes == (
        "no masses in the DH table for all links: nominal figures are placeholders, a 1 kg sphere of radius 0.05 m at "
        "the frame origin",
    )
    assert source.model.body_mass[1:].tolist() == [0, 1, 1]
    assert source.model.body("link1").inertia == pytest.approx([1e-3] * 3)


def test_partly_missing_figures_are_named():
    known = {**ROW, "mass": 1, "com": [0, 0, 0], "inertia": [1, 1, 1]}
    source = read_source(table([known, ROW, {**ROW, "mass": 2, "link": "hand"}]))
    said = " | ".join(source.notes)
    assert "no masses in the DH table for 'link2'" in said
    assert "'hand' without centre of mass" in said
    assert "'hand' without inertia" in said


def test_an_unphysical_inertia_is_named():
    source = read_source(table([{**ROW, "mass": 1, "com": [0, 0, 0], "inertia": [1, 1, 4]}]))
    assert "joint 1 ('joint1'): its inertia is that of no rigid body" in source.notes[0]


def test_a_file_and_a_mapping_are_the_same_robot(tmp_path: Path):
    path = tmp_path / "arm.yaml"
    text = "convention: modified\njoints:\n  - {name: shoulder, a: 0.3, alpha: pi/2, d: 1e-1, torque: 5}\n"
    path.write_text(text)
    from_file = read_source(path)
    from_mapping = read_source({"name": "arm", **yaml.safe_load(text)})
    assert (from_file.kind, from_file.name, from_file.path, from_file.text) == ("dh", "arm", path, text)
    assert (from_mapping.kind, from_mapping.name, from_mapping.path) == ("dh", "arm", None)
    np.testing.assert_array_equal(pose(from_file, [1.0], "link1"), pose(from_mapping, [1.0], "link1"))
    assert dh_limits(from_mapping.text) == {"shoulder": {"torque": 5.0}}


def test_numpy_rows_are_welcome():
    source = read_source(
        {"convention": "modified", "joints": ({"a": np.float64(0.1), "alpha": 0, "d": np.array(0.2)},)}
    )
    np.testing.assert_allclose(site(source, [0.0]), [0.1, 0, 0.2])


def test_the_base_cannot_float_without_mass():
    with pytest.raises(ModelError, match="'base' moves, but neither it nor anything welded to it has a mass"):
        read_source(table([ROW]), floating_base=True)


BAD = {
    "joint key": (table([{**ROW, "alfa": 1}]), "joint 1: no key 'alfa'; did you mean 'alpha'"),
    "top key": (table([ROW], units="deg"), "no key 'units'; did you mean 'unit'.* valid: name, convention"),
    "pose key": (table([ROW], base={"xyz": [0, 0, 0]}), "base: no key 'xyz'; valid: pos, rpy"),
    "moment key": (table([{**ROW, "mass": 1, "inertia": {"ixx": 1}}]), "no key 'ixx'; did you mean 'Ixx'"),
    "convention": (table([ROW], "craig"), "convention is 'craig'; give standard or modified"),
    "no convention": ({"joints": [ROW]}, "convention is nothing; give standard or modified"),
    "unit": (table([ROW], unit="grad"), "unit is 'grad'"),
    "no joints": (table([]), "joints must be a list of 1 to 200"),
    "not rows": (table([]) | {"joints": [1]}, "joint 1 is 1; give a mapping"),
    "no d": (table([{"a": 0, "alpha": 0}]), "joint 1 .'joint1'. has no d; give it, 0 where it is zero"),
    "type": (table([{**ROW, "type": "hinge"}]), "type is 'hinge'; give revolute or prismatic"),
    "words": (table([{**ROW, "d": "long"}]), "d is 'long'; give a finite number"),
    "pi length": (table([{**ROW, "d": "pi"}]), "d is 'pi'; give a finite number"),
    "code": (table([{**ROW, "alpha": "__import__('os')"}]), "alpha is '__import__"),
    "divided by zero": (table([{**ROW, "alpha": "pi/0"}]), "alpha is 'pi/0'"),
    "pi degrees": (table([{**ROW, "alpha": "pi/2"}], unit="deg"), "with pi, but unit is deg"),
    "nan": (table([{**ROW, "d": float("nan")}]), "d is nan"),
    "huge": (table([{**ROW, "d": 10**400}]), "d is a huge number"),
    "true": (table([{**ROW, "d": True}]), "d is True"),
    "range": (table([{**ROW, "range": [1, -1]}]), "range is from 1 to -1"),
    "short": (table([{**ROW, "range": [1]}]), "range is of type list; give 2 numbers"),
    "negative": (table([{**ROW, "armature": -1}]), "armature is -1; it is not negative"),
    "limit": (table([{**ROW, "velocity": 0}]), "velocity is 0; a limit is above zero"),
    "com only": (table([{**ROW, "com": [0, 0, 0]}]), "has com but no mass"),
    "mass": (table([{**ROW, "mass": -1}]), "mass is -1 kg"),
    "massless": (table([{**ROW, "mass": 0}]), "joint 1 .'joint1'.: mass is 0; a link that moves has one"),
    "offset": (table([{**ROW, "offset": 1}]), "no key 'offset'; the offset of a revolute joint is its theta"),
    "degrees": (table([{**ROW, "alpha": 90}]), "alpha is 90 rad, more than a full turn; for degrees write unit: deg"),
    "degrees of theta": (table([{**ROW, "theta": -90}]), "theta is -90 rad, more than a full turn"),
    "negative moment": (
        table([{**ROW, "mass": 1, "com": [0, 0, 0], "inertia": [0.05, 0.3, 0.3, 0.01, 0.02, 0.03]}]),
        r"principal moment of -0.3.* kg·m².*six numbers are \[Ixx, Ixy, Ixz, Iyy, Iyz, Izz\]",
    ),
    "twice": (table([{**ROW, "name": "j"}, {**ROW, "name": "j"}]), "joint name 'j' is taken"),
    "world": (table([{**ROW, "link": "world"}]), "link name 'world' is taken"),
    "name": (table([{**ROW, "name": True}]), "name is True; give a short name"),
    "object": (table([{**ROW, "d": object()}]), "type object has no place in a DH table"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_table_gets_one_sentence(case):
    given_table, sentence = BAD[case]
    with pytest.raises(ModelError, match=sentence) as error:
        read_source(given_table)
    assert "\n" not in str(error.value)


BAD_YAML = {
    "not a table": ("a: 1", "is not a DH table: it has no 'joints'"),
    "a list": ("- 1", "is not a DH table"),
    "broken": ("joints:\n  - {a: 1", "line 2: not YAML"),
    "given twice": (
        "convention: modified\nconvention: standard\njoints: []",
        "line 2: not YAML: 'convention' is given twice",
    ),
    "deep": ("joints: " + "[" * 3000, "nested too deeply"),
    "python": ("joints: !!python/object/apply:os.system [true]", "line 1: not YAML"),
    "many laughs": ("a: &a [x,x]\nb: &b [*a,*a]\njoints: [*b,*b]\n", "no key 'a'"),
    "odd key": ("joints: []\n1: 2", "no key '1'"),
    "long": ("joints: [" + "1," * 200_000 + "]", "characters, at most"),
    "huge number": ("joints: [" + "9" * 5000 + "]", "a value cannot be read"),
}


@pytest.mark.parametrize("case", BAD_YAML)
def test_bad_yaml_gets_one_sentence(tmp_path, case):
    text, sentence = BAD_YAML[case]
    (tmp_path / "arm.yaml").write_text(text)
    with pytest.raises(ModelError, match=sentence) as error:
        read_source(tmp_path / "arm.yaml")
    assert "\n" not in str(error.value)


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["pi/2", "deg"])
)
values = st.recursive(scalars, lambda v: st.lists(v, max_size=4) | st.dictionaries(st.text(max_size=5), v, max_size=3))
KEYS = ["name", "type", "a", "alpha", "d", "theta", "range", "mass", "com", "inertia", "armature", "velocity", "link"]


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(st.sampled_from(KEYS), values), st.dictionaries(st.sampled_from(["base", "unit", "name"]), values)
)
def test_random_tables_give_a_robot_or_a_model_error(row, top):
    try:
        source = read_source(table([{**ROW, **row}], "standard", **top))
    except ModelError:
        return
    assert source.model.nv == 1


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="joints: []{}&*!-#'\"\n\t0ae,?|>%@", max_size=60))
def test_random_yaml_gives_nothing_but_model_errors(text):
    from steelyard.robot.dh_table import parse_dh

    with pytest.raises(ModelError):
        read_source(parse_dh(text, "text"))
