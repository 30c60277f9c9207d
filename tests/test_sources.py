"""Whatever is handed over becomes a model or one sentence, and nothing but what lies near it is read."""

import os
import struct
import tempfile
from contextlib import suppress
from pathlib import Path

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.errors import ModelError
from steelyard.robot.load import load_robot
from steelyard.robot.sources import Source, read_source, stated_limits
from steelyard.robot.urdf import urdf_limits
from trees import random_mjcf

DATA = Path(os.environ.get("STEELYARD_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
INERTIAL = '<inertial pos="0 0 .1" mass="1" diaginertia=".1 .1 .1"/>'
ARM = (
    '<mujoco model="arm"><worldbody><body name="b"><joint name="j" axis="0 1 0"/>'
    f"{INERTIAL}</body></worldbody></mujoco>"
)


def tetrahedron() -> bytes:
    corners = [(0, 0, 0), (0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1)]
    faces = [(0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)]
    body = b"".join(struct.pack("<12fH", 0, 0, 0, *(x for k in face for x in corners[k]), 0) for face in faces)
    return bytes(80) + struct.pack("<I", len(faces)) + body


def with_mesh(file: str, compiler: str = "", inertial: str = INERTIAL) -> str:
    return (
        f'<mujoco>{compiler}<asset><mesh name="m" file="{file}"/></asset><worldbody><body name="b"><joint name="j"/>'
        f'{inertial}<geom type="mesh" mesh="m"/><geom name="ball" size=".1" mass="0"/></body></worldbody></mujoco>'
    )


def link(name: str, inertial: str | None = None, more: str = "") -> str:
    default = '<mass value="1"/><inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/>'
    inside = "" if inertial == "" else f"<inertial>{inertial or default}</inertial>"
    return f'<link name="{name}">{inside}{more}</link>'


def joint(name: str, parent: str, child: str, kind: str = "revolute", more: str = '<axis xyz="0 0 1"/>') -> str:
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{more}</joint>'


def urdf(*elements: str) -> str:
    return '<robot name="r">' + "\n".join(elements) + "</robot>"


def collision(file: str) -> str:
    return f'<collision><geometry><mesh filename="{file}"/></geometry></collision>'


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(folder: Path, text: str | bytes, name: str = "near/robot.xml", **options: bool) -> Source:
    return read_source(write(folder, name, text), **options)


def inverse_dynamics(model: mujoco.MjModel, seed: int = 0, samples: int = 5) -> np.ndarray:
    """MuJoCo's inverse dynamics at random states, without constraints."""
    data, rng, out = mujoco.MjData(model), np.random.default_rng(seed), []
    for _ in range(samples):
        mujoco.mj_resetData(model, data)
        mujoco.mj_integratePos(model, data.qpos, rng.uniform(-1, 1, model.nv), 1.0)
        data.qvel, data.qacc = rng.uniform(-1, 1, (2, model.nv))
        disabled = model.opt.disableflags
        model.opt.disableflags = disabled | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        mujoco.mj_inverse(model, data)
        model.opt.disableflags = disabled
        out.append(data.qfrc_inverse.copy())
    return np.array(out)


# ---- MJCF


def test_an_mjcf_file_compiles_to_what_mujoco_itself_makes_of_it(tmp_path):
    text = random_mjcf(np.random.default_rng(3))
    source = read(tmp_path, text)
    ours, theirs = source.model, mujoco.MjModel.from_xml_string(text)
    assert source.kind == "mjcf"
    assert source.text == text
    assert source.notes == ()
    np.testing.assert_array_equal(inverse_dynamics(ours), inverse_dynamics(theirs))


def test_the_spec_is_ours_and_compiles_again_after_an_edit(tmp_path):
    source = read(tmp_path, ARM)
    source.spec.body("b").mass = 3.0
    assert source.spec.compile().body_mass[1] == 3.0
    assert source.model.body_mass[1] == 1.0


@pytest.mark.parametrize("name", ["near/robot.xml", "near/robot.mjcf", "near/robot", "near/a b%n é/robot.xml"])
def test_includes_and_meshes_beside_the_model_are_found_whatever_it_is_called(tmp_path, name):
    folder = (tmp_path / name).parent
    write(folder, "assets/t.stl", tetrahedron())
    write(folder, "arm.xml", with_mesh("t.stl", '<compiler meshdir="assets"/>'))
    source = read(tmp_path, '<mujoco model="scene"><include file="arm.xml"/></mujoco>', name)
    assert (source.name, source.model.nmesh, source.notes) == ("scene", 1, ())


@pytest.mark.parametrize("place", ["assets/sub/t.stl", "sub/assets/t.stl", "sub/t.stl", "assets/t.stl"])
def test_a_mesh_of_an_included_file_is_found_relative_to_either_file(tmp_path, place):
    write(tmp_path, f"near/{place}", tetrahedron())
    write(tmp_path, "near/sub/arm.xml", with_mesh("t.stl", '<compiler meshdir="assets"/>'))
    assert read(tmp_path, '<mujoco><include file="sub/arm.xml"/></mujoco>').model.nmesh == 1


def test_a_folder_next_to_the_models_own_may_be_named(tmp_path):
    write(tmp_path, "meshes/t.stl", tetrahedron())
    assert read(tmp_path, with_mesh("t.stl", '<compiler meshdir="../meshes"/>')).model.nmesh == 1


@pytest.mark.parametrize("tag", ["include", "Include", "INCLUDE"])
@pytest.mark.parametrize("file", ["/etc/passwd", "../../../../../../etc/passwd", "../../secret.xml", "link.xml"])
def test_an_include_from_elsewhere_is_refused_with_the_remedy(tmp_path, tag, file):
    write(tmp_path, "secret.xml", ARM)
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "link.xml").symlink_to(tmp_path / "secret.xml")
    with pytest.raises(ModelError, match=r"line 1: .*lies outside .*MjSpec\.from_file"):
        read(tmp_path, f'<mujoco><{tag} file="{file}"/></mujoco>', "a/b/robot.xml")


def test_a_model_at_the_top_of_the_disk_or_in_the_home_may_only_look_below(tmp_path, monkeypatch):
    from steelyard.robot.assets import root_folder

    monkeypatch.setenv("HOME", str(tmp_path))
    assert root_folder(tmp_path / "robot.xml") == tmp_path
    assert root_folder(tmp_path / "models" / "robot.xml") == tmp_path / "models"
    assert root_folder(tmp_path / "models" / "arm" / "robot.xml") == tmp_path / "models"
    assert root_folder(Path("/x/robot.xml")) == Path("/x")


def test_an_attached_model_from_elsewhere_is_refused(tmp_path):
    with pytest.raises(ModelError, match="lies outside"):
        read(tmp_path, '<mujoco><asset><model name="m" file="/etc/passwd"/></asset></mujoco>')


def test_an_attached_model_beside_it_is_read(tmp_path):
    write(tmp_path, "near/tool/t.stl", tetrahedron())
    write(tmp_path, "near/tool/tool.xml", with_mesh("t.stl").replace('<joint name="j"/>', ""))
    scene = (
        '<mujoco><asset><model name="tool" file="tool/tool.xml"/></asset><worldbody><body name="arm"><joint/>'
        f'{INERTIAL}<attach model="tool" body="b" prefix="t_"/></body></worldbody></mujoco>'
    )
    source = read(tmp_path, scene)
    assert (source.model.nmesh, source.notes) == (1, ())
    assert source.model.body("t_b").mass == 1


@pytest.mark.parametrize("file", ["/etc/hosts.stl", "../../../x.stl", "none.stl", "arm.dae", "lfs.stl", "pipe.stl"])
def test_a_mesh_that_cannot_be_read_is_left_out_and_the_dynamics_stay(tmp_path, file):
    write(tmp_path, "near/arm.dae", "<COLLADA/>")
    write(tmp_path, "near/lfs.stl", "version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 12345\n")
    os.mkfifo(tmp_path / "near" / "pipe.stl")
    source = read(tmp_path, with_mesh(file))
    assert (source.model.nmesh, source.model.ngeom) == (0, 1)
    assert source.model.body_mass[1] == 1
    (note,) = source.notes
    assert note.startswith(f"mesh '{Path(file).name}' ")
    assert note.endswith(": 1 geom left out")


def test_a_missing_mesh_from_which_the_mass_would_come_is_an_error_that_names_the_body(tmp_path):
    with pytest.raises(ModelError, match=r"body 'b' has no inertial.*mesh 'none.stl' is missing"):
        read(tmp_path, with_mesh("none.stl", inertial=""))


def test_a_mesh_that_only_the_compiled_model_shows_to_be_broken_is_left_out_too(tmp_path):
    corners = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nvn 0 0 1\n"
    write(tmp_path, "near/t.obj", corners + "f 1//9 3//9 2//9\nf 1//9 2//9 4//9\nf 2//9 3//9 4//9\nf 1//9 4//9 3//9\n")
    source = read(tmp_path, with_mesh("t.obj"))
    assert source.model.nmesh == 0
    assert source.notes[0].startswith("mesh 't.obj' cannot be read (Invalid model")


def test_missing_textures_heightfields_and_skins_do_not_stop_a_model(tmp_path):
    assets = (
        '<asset><texture name="t" type="2d" file="t.png"/><material name="m" texture="t"/>'
        '<hfield name="h" file="h.png" size="1 1 1 1"/></asset><worldbody><geom type="hfield" hfield="h"/>'
        '<body name="b"><joint/><geom size=".1" material="m"/></body></worldbody>'
        '<deformable><skin file="s.skn"/></deformable>'
    )
    source = read(tmp_path, f"<mujoco>{assets}</mujoco>")
    assert {note.split(" is missing")[0] for note in source.notes} == {
        "texture 't.png'",
        "hfield 'h.png'",
        "skin 's.skn'",
    }


def test_many_missing_meshes_are_one_note(tmp_path):
    meshes = "".join(f'<mesh name="m{k}" file="{k}.stl"/>' for k in range(9))
    geoms = "".join(f'<geom type="mesh" mesh="m{k}"/>' for k in range(9))
    text = f"<mujoco><asset>{meshes}</asset><worldbody><body><joint/>{INERTIAL}{geoms}</body></worldbody></mujoco>"
    assert read(tmp_path, text).notes == (
        "meshes '0.stl', '1.stl', '2.stl' and 6 more: each is missing: 9 geoms left out",
    )
    unused = f"<mujoco><asset>{meshes}</asset><worldbody><body><joint/>{INERTIAL}</body></worldbody></mujoco>"
    assert read(tmp_path, unused).notes == ("meshes '0.stl', '1.stl', '2.stl' and 6 more: each is missing: left out",)


def test_what_the_compiler_changes_about_stated_inertials_is_said_with_numbers(tmp_path):
    text = (
        '<mujoco><compiler balanceinertia="true" boundmass="0.5"/><worldbody>'
        '<body name="odd"><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 4"/></body>'
        '<body name="light"><joint/><inertial pos="0 0 0" mass="0.1" diaginertia="1 1 1"/></body></worldbody></mujoco>'
    )
    (note,) = read(tmp_path, text).notes
    assert "'odd' (2, 2, 2) kg·m², not (1, 1, 4)" in note
    assert "'light' 0.5 kg, not 0.1" in note


# ---- errors

BAD = {
    "empty": (b"", "is empty"),
    "blank": (b" \n", "is empty"),
    "noise": (b"\xff\xd8\xff\xe0\x00\x10JFIF", "byte 0 is not UTF-8"),
    "zeros": (b"abc\0def", "binary"),
    "latin-1": ("<mujoco model='é'/>".encode("latin-1"), "byte 15 is not UTF-8"),
    "truncated": (ARM[:60].encode() + b"\n<bo", "line 2: not well-formed XML"),
    "unclosed": (b"<mujoco>", "it ends before its elements are closed"),
    "mismatched": (b"<mujoco>\n<a>\n</mujoco>", "line 3: not well-formed XML: mismatched tag"),
    "doctype": (b'<!DOCTYPE m [<!ENTITY a "aaaa">]><mujoco model="&a;"/>', "DOCTYPE"),
    "external": (b'<!DOCTYPE m SYSTEM "file:///etc/passwd"><mujoco/>', "DOCTYPE"),
    "wrong root": (b"<sdf/>", "root element <sdf>.*convert it"),
    "included": (b"<mujocoinclude/>", "made to be included"),
    "not xml": (b"joints: 1", "is not XML"),
    "deep": (b"<mujoco>" + b"<a>" * 600 + b"</a>" * 600 + b"</mujoco>", "nest deeper than 500"),
    "unknown attribute": (b'<mujoco>\n<worldbody foo="1"/></mujoco>', "line 2: Schema violation: unrecognized.*'foo'"),
    "missing include": (b'<mujoco>\n<include file="x.xml"/></mujoco>', "line 2: .*'x.xml'> is missing"),
    "still": (b"<mujoco/>", "nothing in it moves"),
    "massless": (b'<mujoco><worldbody><body name="x"><joint/></body></worldbody></mujoco>', "'x' moves, but neither"),
    "nan": (ARM.replace('pos="0 0 .1"', 'pos="0 0 nan"').encode(), "line 1: a nan in pos='0 0 nan'"),
    "infinite": (ARM.replace('axis="0 1 0"', 'damping="inf"').encode(), "'j': its damping is not finite"),
    "negative mass": (ARM.replace('mass="1"', 'mass="-1"').encode(), "'b' has mass -1 kg; a mass is not negative"),
    "negative moment": (ARM.replace(".1 .1 .1", ".1 -.2 .1").encode(), "'b' has a moment of -0.2 kg·m².*correct it"),
    "impossible inertia": (ARM.replace(".1 .1 .1", "1 1 4").encode(), "inertia of 'b' is that of no rigid body"),
    "format": (ARM.replace('axis="0 1 0"', 'class="%n%n"').encode(), "line 1: '%' in class"),
    "too many copies": (
        b'<mujoco><worldbody><replicate count="1e4"><replicate count="99999"><geom size="1"/></replicate></replicate>'
        b"</worldbody></mujoco>",
        "<replicate> count is 1e.09",
    ),
    "huge texture": (
        b'<mujoco><asset><texture name="t" width="99999" height="99999"/></asset></mujoco>',
        "width × height",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_gets_one_sentence(tmp_path, case):
    content, sentence = BAD[case]
    with pytest.raises(ModelError, match=sentence) as error:
        read(tmp_path, content)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 600


def test_a_declared_encoding_cannot_make_two_parsers_read_two_documents(tmp_path):
    # In cp037 these bytes would be other characters, and the include would hide from a parser that believes it
    text = b'<?xml version="1.0" encoding="cp037"?><mujoco><include file="/etc/passwd"/></mujoco>'
    with pytest.raises(ModelError, match="lies outside"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("nowhere/robot.xml", "no such file: nowhere/robot.xml"),
        (Path("nowhere.urdf"), "no such file"),
        (".", "is a folder"),
        ("/dev/zero", "not a regular file"),
        ("a\0b", "cannot be read"),
        ("x" * 5000, "cannot be read"),
        ("<mujoco/>", "XML text, not a path"),
        (3, "type int is not a robot model"),
        (None, "type NoneType is not a robot model"),
    ],
)
def test_what_is_no_model_file_gets_one_sentence(model, sentence):
    with pytest.raises(ModelError, match=sentence) as error:
        read_source(model)
    assert len(str(error.value)) < 400


def test_compiled_and_packed_models_are_sent_back_with_the_way_to_load_them(tmp_path):
    with pytest.raises(ModelError, match="from_binary_path"):
        read(tmp_path, b"\0", "robot.mjb")


def test_a_file_that_is_too_large_is_refused_before_it_is_parsed(tmp_path, monkeypatch):
    monkeypatch.setattr("steelyard.robot.xmltree.MAX_BYTES", 100)
    with pytest.raises(ModelError, match="larger than"):
        read(tmp_path, ARM)


def test_nothing_is_printed_or_left_in_the_working_folder(tmp_path, monkeypatch, capfd):
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    for content, sentence in BAD.values():
        with pytest.raises(ModelError, match=sentence):
            read(tmp_path, content)
    shapes = '<collision><geometry><sphere radius="1"/></geometry></collision>' * 3
    read(tmp_path, urdf(link("a", more=shapes), link("b", more=shapes), joint("j", "a", "b")))
    assert os.listdir(work) == []
    assert capfd.readouterr() == ("", "")
    assert mujoco.get_mju_user_warning() is None


# ---- loops and the base


@pytest.mark.parametrize("kind", ["connect", "weld"])
def test_a_loop_closure_is_refused_by_name_unless_it_is_open(tmp_path, kind):
    anchor = 'anchor="0 0 0"' if kind == "connect" else ""
    closed = ARM.replace("</mujoco>", f'<equality><{kind} name="loop" body1="b" {anchor}/></equality></mujoco>')
    for model in (write(tmp_path, "r.xml", closed), mujoco.MjModel.from_xml_string(closed)):
        with pytest.raises(ModelError, match=f"the {kind} constraint 'loop' between 'b' and 'world' closes a loop"):
            read_source(model)
    assert read(tmp_path, closed.replace("<" + kind, f'<{kind} active="false"')).model.nv == 1


def test_a_fixed_root_floats_when_asked_and_only_then(tmp_path):
    robot = urdf(link("base"), link("arm"), joint("j", "base", "arm"))
    assert read(tmp_path, robot).model.nv == 1
    source = read(tmp_path, robot, floating_base=True)
    assert source.model.nv == 7
    assert source.model.joint(0).type == mujoco.mjtJoint.mjJNT_FREE
    assert "root body 'base' floats: free joint 'floating_base' added" in source.notes
    still = '<mujoco><worldbody><body name="b"><geom size=".1"/></body></worldbody><keyframe><key/></keyframe></mujoco>'
    assert read(tmp_path, still, floating_base=True).model.nv == 6


def test_a_base_that_floats_already_is_left_alone(tmp_path):
    text = f'<mujoco><worldbody><body name="b"><freejoint/>{INERTIAL}</body></worldbody></mujoco>'
    source = read(tmp_path, text, floating_base=True)
    assert source.model.nv == 6
    assert source.notes == ("a floating base was asked for, and nothing changes: root body 'b' floats already",)


def test_floating_base_refuses_a_model_with_two_roots_or_a_hanging_one(tmp_path):
    two = f'<mujoco><worldbody><body name="a">{INERTIAL}</body><body name="b">{INERTIAL}</body></worldbody></mujoco>'
    with pytest.raises(ModelError, match="exactly one root body, and there are 2: 'a', 'b'"):
        read(tmp_path, two, floating_base=True)
    with pytest.raises(ModelError, match="root body 'b' hangs on joint 'j'"):
        read(tmp_path, ARM, floating_base=True)
    cup = two.replace('<body name="b">', '<body name="b"><freejoint/>')
    with pytest.raises(ModelError, match="exactly one root body, and there are 2: 'a', 'b'"):
        read(tmp_path, cup, floating_base=True)


# ---- URDF


def random_urdf(rng: np.random.Generator, links: int = 6) -> str:
    """A random tree of every URDF joint that needs no root, with physical inertias."""

    def numbers(values: np.ndarray) -> str:
        return " ".join(repr(float(v)) for v in values)

    def origin() -> str:
        return f'<origin xyz="{numbers(rng.normal(size=3))}" rpy="{numbers(rng.normal(size=3))}"/>'

    elements = []
    for k in range(links):
        points = rng.normal(size=(8, 3))
        tensor = (points**2).sum() * np.eye(3) - points.T @ points
        names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        moments = " ".join(f'{n}="{v!r}"' for n, v in zip(names, tensor[np.triu_indices(3)].tolist(), strict=True))
        elements.append(link(f"l{k}", f'{origin()}<mass value="{rng.uniform(1, 3)!r}"/><inertia {moments}/>'))
    for k in range(1, links):
        kind = str(rng.choice(["revolute", "continuous", "prismatic", "fixed", "planar", "spherical"]))
        kind = kind if k > 1 else "revolute"
        physics = f'<dynamics damping="{rng.uniform(0, 1)!r}" friction="{rng.uniform(0, 1)!r}"/>'
        more = f'{origin()}<axis xyz="{numbers(rng.normal(size=3))}"/>{physics if kind != "fixed" else ""}'
        elements.append(joint(f"j{k}", f"l{rng.integers(max(0, k - 2), k)}", f"l{k}", kind, more))
    return urdf(*elements)


@pytest.mark.parametrize("seed", range(12))
def test_a_urdf_has_the_dynamics_that_mujocos_importer_gives_it(tmp_path, seed):
    text = random_urdf(np.random.default_rng(seed))
    theirs = mujoco.MjSpec.from_string(text)
    theirs.compiler.fusestatic = False
    source = read(tmp_path, text, "r.urdf")
    expected, found = inverse_dynamics(theirs.compile()), inverse_dynamics(source.model)
    # the same numbers through the same importer; rounding only where an inertia is diagonalised
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max())
    assert source.notes == ()
    assert (source.model.body(1).name, source.model.nbody) == ("l0", 7)


def test_a_welded_link_keeps_its_name_and_its_own_inertia(tmp_path):
    text = urdf(link("base"), link("arm"), link("hand"), link("tool0", ""), joint("j", "base", "arm"))
    text = text.replace(
        "</robot>", joint("w", "arm", "hand", "fixed") + joint("t", "hand", "tool0", "fixed") + "</robot>"
    )
    model = read(tmp_path, text).model
    assert [model.body(k).name for k in range(model.nbody)] == ["world", "base", "arm", "hand", "tool0"]
    assert model.body_mass.tolist() == [0, 1, 1, 1, 0]


def test_damping_friction_armature_range_and_effort_arrive(tmp_path):
    more = (
        '<axis xyz="0 0 1"/><dynamics damping="0.3" friction="0.2" armature="0.05"/>'
        '<limit lower="-1" upper="2" effort="50" velocity="3"/>'
    )
    source = read(tmp_path, urdf(link("base"), link("arm"), joint("j", "base", "arm", more=more)))
    model = source.model
    assert (model.dof_damping[0], model.dof_frictionloss[0], model.dof_armature[0]) == (0.3, 0.2, 0.05)
    assert model.jnt_range[0].tolist() == [-1, 2]
    assert model.jnt_actfrcrange[0].tolist() == [-50, 50]
    assert stated_limits(source) == {"j": {"velocity": 3.0, "torque": 50.0}}


def test_limits_of_zero_and_infinity_state_nothing():
    limits = '<limit effort="0" velocity="inf" lower="0" upper="0"/>'
    assert urdf_limits(urdf(link("a"), link("b"), joint("j", "a", "b", more=limits))) == {}


def test_a_continuous_joint_has_no_range_and_a_reversed_range_is_ignored_with_a_note(tmp_path):
    limits = '<limit effort="1" velocity="1" lower="1" upper="-1"/>'
    source = read(tmp_path, urdf(link("a"), link("b"), joint("j", "a", "b", more=limits)))
    assert not source.model.jnt_limited[0]
    assert "lower limit 1 is above its upper limit -1" in source.notes[0]
    forth = limits.replace('"1" upper="-1"', '"-1" upper="1"')
    assert not read(tmp_path, urdf(link("a"), link("b"), joint("j", "a", "b", "continuous", forth))).model.jnt_limited[
        0
    ]


@pytest.mark.parametrize(
    "uri",
    [
        "package://my_robot/meshes/t.stl",
        "../meshes/t.stl",
        "model://my_robot/meshes/t.stl",
        "package://other/t.stl",
        "file://{folder}/my_robot/meshes/t.stl",
        "{folder}/my_robot/meshes/t.stl",
    ],
)
def test_a_collision_mesh_is_found_by_its_uri(tmp_path, uri):
    write(tmp_path, "my_robot/meshes/t.stl", tetrahedron())
    write(tmp_path, "other/t.stl", tetrahedron())
    more = collision(uri.format(folder=tmp_path))
    source = read(tmp_path, urdf(link("a", more=more), link("b"), joint("j", "a", "b")), "my_robot/urdf/r.urdf")
    assert (source.model.nmesh, source.notes) == (1, ())


@pytest.mark.parametrize(
    "uri",
    [
        "package://elsewhere/t.stl",
        "package://etc/x.stl",
        "package://../../t.stl",
        "package://a/../../../../../../../../t.stl",
        "http://example.org/t.stl",
        "file:///etc/t.stl",
        "$(find r)/t.stl",
        "t.dae",
        "",
    ],
)
def test_a_urdf_loads_without_meshes_that_are_not_there(tmp_path, uri):
    robot = urdf(link("a", more=collision(uri)), link("b"), joint("j", "a", "b"))
    source = read(tmp_path, robot, "a/b/c/r.urdf")
    assert source.model.ngeom == 0
    assert source.notes[0].endswith("1 geom left out")


def test_collision_primitives_are_kept_and_absurd_ones_noted(tmp_path):
    def shape(text: str) -> str:
        return f'<collision name="same"><geometry>{text}</geometry></collision>'

    shapes = [
        '<box size="1 2 3"/>',
        '<cylinder radius="1" length="2"/>',
        '<sphere radius="1"/>',
        '<sphere radius="0"/>',
    ]
    more = "".join(map(shape, [*shapes, "<cone/>"]))
    source = read(tmp_path, urdf(link("a", more=more), link("b"), joint("j", "a", "b")))
    assert source.model.ngeom == 3
    assert source.model.geom_size[0].tolist() == [0.5, 1, 1.5]
    assert source.notes == (
        "link 'a': a collision sphere of size 0 left out",
        "link 'a': a collision shape of unknown kind left out",
    )


def test_two_meshes_of_one_name_stay_two(tmp_path):
    small, large = tetrahedron(), tetrahedron()
    write(tmp_path, "r/a/t.stl", small)
    write(tmp_path, "r/b/t.stl", large)
    scaled = collision("a/t.stl").replace("/></geometry>", ' scale="2 2 2"/></geometry>')
    more = collision("a/t.stl") + collision("b/t.stl") + scaled + collision("a/t.stl")
    source = read(tmp_path, urdf(link("a", more=more), link("b"), joint("j", "a", "b")), "r/r.urdf")
    assert source.model.nmesh == 3
    assert source.model.ngeom == 4


def test_a_link_that_moves_without_inertial_gets_a_placeholder_only_where_no_link_has_one(tmp_path):
    bare = read(
        tmp_path, urdf(link("a"), link("b", ""), link("t", ""), joint("j", "a", "b"), joint("w", "b", "t", "fixed"))
    )
    assert bare.model.body("b").mass == 1
    assert bare.model.body("t").mass == 0
    assert [note for note in bare.notes if "placeholders" in note and "'b'" in note]
    gimbal = urdf(link("a"), link("b", ""), link("c"), joint("j", "a", "b"), joint("k", "b", "c"))
    massless = read(tmp_path, gimbal)
    assert massless.model.body("b").mass == 1e-3
    assert massless.notes == (
        "'b' move without any <inertial>: read as next to massless, a sphere of 0.001 kg and radius 0.01 m at the "
        "link's origin",
    )


def test_a_moment_below_zero_by_the_digits_that_were_printed_is_mended_and_a_greater_one_refused(tmp_path):
    def moments(least):
        text = f'<mass value="0.01"/><inertia ixx="{least}" iyy="3.5e-8" izz="9e-8" ixy="0" ixz="0" iyz="0"/>'
        return urdf(link("a"), link("b", text), joint("j", "a", "b"))

    (note,) = read(tmp_path, moments(-3.5e-8)).notes
    assert "that of no rigid body" in note
    with pytest.raises(ModelError, match=r"principal moment of -3\.5e-07"):
        read(tmp_path, moments(-3.5e-7))


def test_geometry_gives_no_mass_to_a_link_without_inertial_whether_its_mesh_is_there_or_not(tmp_path):
    ball = '<collision><geometry><sphere radius="1"/></geometry></collision>'
    robot = urdf(link("a"), link("b"), link("c", "", ball), joint("j", "a", "b"), joint("w", "b", "c", "fixed"))
    source = read(tmp_path, robot)
    assert source.model.body("c").mass == 0
    assert source.notes == ("without <inertial>, so without mass, though with collision geometry: 'c'",)
    weighed = robot.replace('name="r">', 'name="r"><mujoco><compiler inertiafromgeom="auto"/></mujoco>')
    assert read(tmp_path, weighed).model.body("c").mass == pytest.approx(4000 / 3 * np.pi)


UNPHYSICAL = {  # moments, what the note says, what is read instead
    "triangle": ((1, 1, 4), "(A + B < C)", (1 + 2 / 3, 1 + 2 / 3, 4 - 2 / 3)),
    "point": ((0, 0, 0), "that of a point mass", (0, 0, 0)),
}


@pytest.mark.parametrize("case", UNPHYSICAL)
def test_an_inertia_of_no_rigid_body_loads_and_is_named_with_its_numbers(tmp_path, case):
    moments, sentence, nearest = UNPHYSICAL[case]
    xx, yy, zz = moments
    odd = f'<mass value="2"/><inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" iyz="0"/>'
    source = read(tmp_path, urdf(link("a"), link("odd", odd), joint("j", "a", "odd")))
    (note,) = source.notes
    assert note.startswith("link 'odd': its inertia")
    assert sentence in note
    np.testing.assert_allclose(np.sort(source.model.body("odd").inertia), nearest, atol=1e-7)
    assert source.model.body("odd").mass == 2


def test_a_negative_principal_moment_is_an_error_that_names_link_and_number(tmp_path):
    odd = '<mass value="2"/><inertia ixx="-1" iyy="2" izz="2" ixy="0" ixz="0" iyz="0"/>'
    with pytest.raises(ModelError, match=r"line 2: link 'odd': .* moment of -1 kg·m².*correct it"):
        read(tmp_path, urdf(link("a"), link("odd", odd), joint("j", "a", "odd")), "r.urdf")


def test_a_negative_moment_within_rounding_is_none(tmp_path):
    thin = '<mass value="2"/><inertia ixx="-1e-9" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    assert read(tmp_path, urdf(link("a"), link("b", thin), joint("j", "a", "b"))).notes == ()


def test_the_rounding_of_printed_digits_is_no_cause_for_a_note(tmp_path):
    plate = '<mass value="1"/><inertia ixx="0.1" iyy="0.2" izz="0.3" ixy="0" ixz="0" iyz="0"/>'  # A + B = C
    assert read(tmp_path, urdf(link("a"), link("b", plate), joint("j", "a", "b"))).notes == ()


def test_a_mimic_joint_is_noted(tmp_path):
    robot = urdf(link("a"), link("b"), link("c"), joint("j", "a", "b"), joint("k", "b", "c", more='<mimic joint="j"/>'))
    (note,) = read(tmp_path, robot).notes
    assert note.startswith("joint 'k' mimics 'j'")


def pair(second: str, kind: str = "revolute", more: str = "") -> tuple[str, ...]:
    return link("a"), second, joint("j", "a", "b", kind, more)


FULL = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
BAD_URDF = {
    "two parents": (
        (link("a"), link("b"), link("c"), joint("j", "a", "c"), joint("k", "a", "b"), joint("l", "b", "c")),
        "line 6: link 'c' has two parents, by joints 'j' and 'l'",
    ),
    "circle": (
        (link("r"), link("a"), link("b"), joint("j", "a", "b"), joint("k", "b", "a")),
        "go round in a circle through link '[ab]'",
    ),
    "itself": ((link("r"), link("a"), joint("j", "a", "a")), "circle"),
    "two roots": ((*pair(link("b")), link("c")), "2 links without a parent .'a', 'c'"),
    "unknown link": (
        (link("base"), joint("j", "base", "bose")),
        "line 2: joint 'j', child: no link 'bose'; did you mean",
    ),
    "unknown type": (pair(link("b"), "revolut"), "no joint type 'revolut'; did you mean"),
    "same link": ((link("a"), link("a")), "line 2: link 'a' of line 1 comes again"),
    "no name": ((link(""),), "a <link> has no name"),
    "no links": ((), "has no links"),
    "negative mass": (pair(link("b", f'<mass value="-1"/>{FULL}')), "mass -1 kg"),
    "no inertia": (pair(link("b", '<mass value="1"/>')), "<inertial> has no <inertia>"),
    "not a number": (pair(link("b"), more='<axis xyz="0 nan 1"/>'), "joint 'j': <axis> xyz must be 3 finite"),
    "zero axis": (pair(link("b"), more='<axis xyz="0 0 0"/>'), "its axis is zero"),
    "world below": ((link("a"), link("world"), joint("j", "a", "world")), "link 'world' has a parent"),
    "xacro": (("<xacro:macro/>",), "is a xacro file"),
    "xacro value": ((link("${prefix}base"),), "is a xacro file"),
    "only fixed": (pair(link("b"), "fixed"), "nothing in it moves"),
}


@pytest.mark.parametrize("case", BAD_URDF)
def test_a_bad_urdf_gets_one_sentence(tmp_path, case):
    elements, sentence = BAD_URDF[case]
    with pytest.raises(ModelError, match=sentence) as error:
        read(tmp_path, urdf(*elements), "r.urdf")
    assert "\n" not in str(error.value)


def test_mujocos_own_element_in_a_urdf_is_honoured_but_for_what_would_undo_our_promises(tmp_path):
    write(tmp_path, "r/sub/t.stl", tetrahedron())
    extension = (
        '<mujoco><compiler meshdir="sub" fusestatic="true" balanceinertia="true"/>'
        '<option gravity="0 0 -1"><flag contact="disable"/></option></mujoco>'
    )
    more = collision("package://gone/far/t.stl")
    source = read(tmp_path, urdf(extension, link("a", more=more), link("b"), joint("j", "a", "b")), "r/r.urdf")
    assert (source.model.nmesh, source.model.nbody) == (1, 3)
    assert source.model.opt.gravity.tolist() == [0, 0, -1]
    assert source.model.opt.disableflags == mujoco.mjtDisableBit.mjDSBL_CONTACT
    assert source.spec.compiler.balanceinertia


@pytest.mark.skipif(not (DATA / "tx40").is_dir(), reason=f"no measurements at {DATA}; set STEELYARD_DATA")
def test_a_real_urdf_without_its_meshes_loads():
    source = read_source(DATA / "tx40" / "tx40_mdh_modified.urdf")
    assert source.model.nv == 6
    assert [source.model.body(k).mass[0] for k in range(1, 4)] == [4.2, 10.5, 3.6]
    assert stated_limits(source)["joint_3"] == {"velocity": 7.504, "torque": 103.49}
    assert any("7 geoms left out" in note for note in source.notes)
    assert any("'link_6'" in note for note in source.notes)  # its inertia is zero in the file


# ---- the options of load_robot


def test_a_folder_does_not_hide_a_robot_of_the_library(tmp_path, monkeypatch):
    (tmp_path / "two_link").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load_robot("two_link").n == 2


BAD_OPTIONS = {
    "gravity": ({"gravity": "down"}, "gravity must be three finite numbers"),
    "ragged gravity": ({"gravity": [1, [2], 3]}, "gravity must be three finite numbers"),
    "mounting": ({"mounting": "wall"}, "mounting must be a 3×3 rotation matrix"),
    "lock word": ({"lock": {"joint1": "a"}}, "joint 'joint1' cannot be locked at 'a'; give a number"),
    "lock list": ({"lock": {"joint1": [0.1]}}, "joint 'joint1' cannot be locked at "),
    "lock number": ({"lock": 3}, "lock is a list of joints"),
    "lock of numbers": ({"lock": [3]}, "lock is a list of joints"),
    "bodies number": ({"bodies": 3}, "bodies is a list of names"),
    "bodies word": ({"bodies": "link1"}, r"give bodies=\['link1'\]"),
    "friction number": ({"friction": 3}, "friction is a list of names"),
    "friction of numbers": ({"friction": [3]}, "friction is a list of names"),
    "lock outside": ({"lock": {"joint1": 5}}, "joint 'joint1' cannot be locked at 5, outside its range -2.* … 2.*"),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_a_bad_option_of_load_robot_gets_one_sentence(case):
    options, sentence = BAD_OPTIONS[case]
    with pytest.raises(ModelError, match=sentence):
        load_robot("panda", **options)


def test_locks_with_and_without_a_value_go_together_and_are_noted_with_it():
    robot = load_robot("panda", lock={"joint1": None, "joint2": 0.5, "joint4": None})
    (note,) = [note for note in robot.notes if note.startswith("locked")]
    assert "joint1 at 0, joint2 at 0.5, joint4 at 0 (outside its range -3.072 … -0.0698)" in note
    assert load_robot("panda", lock={"joint4": 0.0}).n == 6  # where the model draws it, as an export writes it


def test_a_home_outside_the_range_of_the_model_is_an_error(tmp_path):
    path = write(tmp_path, "arm.xml", ARM.replace('name="j"', 'name="j" range="-90 90"'))
    write(tmp_path, "arm.steelyard.yaml", "home: {j: 2.5}")
    with pytest.raises(ModelError, match=r"home of 'j' is 2\.5, outside its range -1.571 … 1.571"):
        load_robot(path)


# ---- MjSpec and MjModel


@pytest.mark.parametrize("seed", range(12))
def test_a_compiled_model_comes_back_with_the_same_inverse_dynamics(seed):
    model = mujoco.MjModel.from_xml_string(random_mjcf(np.random.default_rng(seed)))
    model.opt.density, model.opt.viscosity, model.opt.wind[:] = 1.2, 0.1, (1, 0, 0)
    model.jnt_stiffness[:] = 2.0
    source = read_source(model)
    expected = inverse_dynamics(model)
    # inertial frames are normalised once more on the way
    np.testing.assert_allclose(inverse_dynamics(source.model), expected, atol=1e-11 * np.abs(expected).max())
    assert (source.kind, source.notes) == ("model", ())
    names = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, j) for j in range(model.njnt)]
    assert names == [mujoco.mj_id2name(source.model, mujoco.mjtObj.mjOBJ_JOINT, j) for j in range(model.njnt)]


def test_what_a_compiled_model_loses_is_named(tmp_path):
    text = with_mesh("t.stl").replace(
        "</mujoco>",
        '<actuator><motor name="drive" joint="j"/></actuator><tendon><fixed name="rope"><joint joint="j" coef="1"/>'
        '</fixed></tendon><keyframe><key name="home" qpos="0.5"/></keyframe></mujoco>',
    )
    model = mujoco.MjSpec.from_string(text, assets={"t.stl": tetrahedron()}).compile()
    source = read_source(model)
    assert source.model.key("home").qpos == 0.5
    assert source.model.ngeom == 1
    said = " ".join(source.notes)
    for name in ("'drive'", "'rope'", "'m'", "1 geom that is not a simple shape"):
        assert name in said


def test_a_spec_is_copied_and_keeps_its_assets():
    spec = mujoco.MjSpec.from_string(with_mesh("t.stl"), assets={"t.stl": tetrahedron()})
    source = read_source(spec, floating_base=False)
    assert (source.kind, source.model.nmesh, source.notes) == ("spec", 1, ())
    source.spec.body("b").name = "renamed"
    assert spec.body("b") is not None


def test_a_spec_whose_mesh_is_missing_loads_and_is_not_touched():
    spec = mujoco.MjSpec.from_string(with_mesh("none.stl"))
    source = read_source(spec)
    assert source.notes == ("mesh 'none.stl' is missing: 1 geom left out",)
    assert len(spec.meshes) == 1


# ---- anything at all


def only_model_errors(content: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), f"near/{name}", content)
        with suppress(ModelError):
            stated_limits(read_source(path))


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["r.xml", "r.urdf", "r.yaml", "r"]))
def test_random_bytes_give_nothing_but_model_errors(content, name):
    only_model_errors(content, name)


SEEDS = (
    random_mjcf(np.random.default_rng(1), bodies=3),
    with_mesh("t.stl", '<compiler meshdir="x"/>'),
    random_urdf(np.random.default_rng(2), links=4),
    urdf(link("a", more=collision("package://p/t.stl")), link("b"), joint("j", "a", "b", more='<limit effort="1"/>')),
)
WORDS = [
    "",
    "0",
    "-1",
    "1e308",
    "nan",
    "inf",
    "1 2 3",
    "b",
    "b1",
    "l1",
    "world",
    "%n%s",
    "99999999999",
    "x" * 3000,
    "é",
    "<",
    "&",
]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_mutated_models_give_nothing_but_model_errors(data):
    text = data.draw(st.sampled_from(SEEDS))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        quotes = [k for k, c in enumerate(text) if c == '"']
        match data.draw(st.sampled_from(["value", "cut", "insert", "end"])):
            case "value" if len(quotes) > 1:
                k = 2 * data.draw(st.integers(0, len(quotes) // 2 - 1))
                text = text[: quotes[k] + 1] + data.draw(st.sampled_from(WORDS)) + text[quotes[k + 1] :]
            case "cut":
                text = text[:start] + text[start + data.draw(st.integers(1, 40)) :]
            case "insert":
                text = (
                    text[:start] + data.draw(st.sampled_from([*WORDS, "<body>", "</body>", "<joint/>"])) + text[start:]
                )
            case _:
                text = text[:start]
    only_model_errors(text.encode("utf-8", "replace"), "r.xml")
