"""The commands that look at models, as a user types them."""

import json
import subprocess
import sys

import mujoco
import numpy as np
import pytest

import steelyard as sy

MASSLESS = '<mujoco><worldbody><body name="arm"><joint name="j"/></body></worldbody></mujoco>'
LOOP = """<mujoco><worldbody>
  <body name="a"><joint name="ja"/><geom size=".1"/>
    <body name="b" pos="1 0 0"><joint name="jb"/><geom size=".1"/></body></body>
  <body name="c" pos="2 0 0"><joint name="jc"/><geom size=".1"/></body>
</worldbody><equality><connect name="closing" body1="b" body2="c" anchor="0 0 0"/></equality></mujoco>"""


def steelyard(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "steelyard", *map(str, arguments)], capture_output=True, text=True, timeout=120
    )


def test_robots_lists_the_library():
    listed = json.loads(steelyard("robots", "--json").stdout)
    assert [row["name"] for row in listed] == list(sy.library_names())


def test_info_counts_parameters_and_names_the_base():
    facts = json.loads(steelyard("info", "panda", "--friction", "coulomb,offset", "--json").stdout)
    assert facts["parameters"]["total"] == 108
    assert facts["base_parameters"]["rank"] == 69
    shown = steelyard("info", "panda", "--base").stdout
    assert "link3.mx + 0.0825·(link4.m" in shown
    assert "55 base parameters" in shown


@pytest.mark.parametrize("name", ["panda", "wheel_legged"])
def test_check_holds_for_the_library(name):
    done = steelyard("check", name, "--json", "--states", 20)
    assert done.returncode == 0
    assert json.loads(done.stdout)["holds"]


def test_compare_says_where_two_models_part():
    same = json.loads(steelyard("compare", "ur10", "ur10", "--json").stdout)
    assert same["same"]
    assert same["verdict"] == "the models agree"
    other = json.loads(steelyard("compare", "ur10", "ur5e", "--json").stdout)
    assert not other["same"]
    assert "part at joint shoulder_lift_joint" in other["verdict"]


def test_compare_tells_kinematics_from_inertia(tmp_path):
    robot = sy.load_robot("ur5e")
    heavier = robot.with_parameters(robot.parameters * np.where(np.arange(robot.layout.size) < 60, 1.1, 1.0))
    result = sy.compare_models(robot, heavier, np.random.default_rng(0), states=50)
    assert all(joint.same_axis for joint in result.joints)
    assert "inertial parameters do not" in result.verdict


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["info", "/nowhere/arm.xml"], "no such file"),
        (["info", "pandas"], "did you mean 'panda'"),
        (["info", "panda", "--lock", "finger"], "no joint to lock 'finger'"),
        (["info", "panda", "--lock", "joint1=up"], "--lock joint1 takes a finite number, not"),
        (["info", "panda", "--bodies", "link9"], "no moving body 'link9'"),
        (["info", "panda", "--friction", "sticky"], "no friction term 'sticky'"),
        (["info", "panda", "--gravity", "0,0"], "--gravity takes 3 finite numbers"),
        (["check", "panda", "--gravity", "0,0,nan"], "--gravity takes 3 finite numbers"),
        (["compare", "panda", "ur5e"], "cannot be compared"),
        (["check", "panda", "--states", "0"], "Invalid value"),
        (["frobnicate"], "No such command"),
    ],
)
def test_wrong_input_gets_one_sentence_and_exit_code_2(arguments, sentence):
    done = steelyard(*arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("<mujoco><worldbody>", "line"),
        (MASSLESS, "'arm'"),
        (LOOP, "'closing'"),
        ("", ""),
        ("\x00\xff\x13", ""),
        ('<mujoco><worldbody><geom size="1"/></worldbody></mujoco>', "moves"),
    ],
)
def test_bad_models_get_one_sentence_and_exit_code_2(text, sentence, tmp_path):
    path = tmp_path / "model.xml"
    path.write_text(text)
    done = steelyard("check", path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: ")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == [path]


def test_every_command_has_help_with_an_example():
    for command in ("robots", "info", "check", "compare", "export"):
        done = steelyard(command, "--help")
        assert done.returncode == 0
        assert f"steelyard {command}" in done.stdout


ODD = """<mujoco model="o[/x]"><worldbody><body name="arm[left]"><joint name="j[/x]" axis="0 1 0"/>
<geom size=".1" pos=".1 0 0"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("arguments", [["info", "--base"], ["check"], ["compare"]])
def test_names_are_printed_as_they_are(arguments, tmp_path):
    path = tmp_path / "odd.xml"
    path.write_text(ODD)
    done = steelyard(arguments[0], path, *arguments[1:], *([path] if arguments[0] == "compare" else []))
    assert done.returncode == 0, done.stderr
    assert "o[/x]" in done.stdout
    if arguments[0] != "check":
        assert "j[/x]" in done.stdout
    if arguments[0] == "info":
        assert "arm[left]" in done.stdout


def test_compare_holds_a_joint_in_the_model_that_has_it(tmp_path):
    one, two = tmp_path / "one.xml", tmp_path / "two.xml"
    hand = '<body name="hand" pos="0 0 .3"><joint name="grip" axis="0 1 0"/><geom size=".05"/></body>'
    text = '<mujoco><worldbody><body name="a"><joint name="j" axis="0 1 0"/><geom size=".1" pos=".1 0 0"/>{}</body>{}'
    end = "</worldbody></mujoco>"
    one.write_text(text.format("", end))
    two.write_text(text.format(hand, end))
    assert "cannot be compared" in steelyard("compare", one, two).stderr
    held = steelyard("compare", one, two, "--lock", "grip", "--states", 5)
    assert held.returncode == 0, held.stderr
    nobody = steelyard("compare", one, two, "--lock", "grap")
    assert nobody.returncode == 2
    assert "no joint to lock 'grap'; did you mean 'grip'?" in nobody.stderr


def test_locks_with_and_without_a_value_may_be_mixed():
    done = steelyard("info", "panda", "--lock", "joint1", "--lock", "joint2=0.5", "--json")
    facts = json.loads(done.stdout)
    assert facts["degrees_of_freedom"] == 5
    assert "locked: joint1 at 0, joint2 at 0.5" in facts["notes"][-1] + " ".join(facts["notes"])


def test_a_full_disk_is_no_fault_of_ours():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "steelyard", "info", "two_link"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
        )
    assert done.returncode == 1
    assert done.stderr == "error: the output cannot be written: No space left on device\n"


MENDED = """<robot name="r"><link name="base"/><link name="a"><inertial><mass value="2"/>
<inertia ixx="1" iyy="1" izz="4" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/></joint></robot>"""


def test_check_says_that_it_judges_mended_inertias(tmp_path):
    path = tmp_path / "r.urdf"
    path.write_text(MENDED)
    done = steelyard("check", path, "--states", 5)
    assert done.returncode == 0, done.stderr
    assert "The dynamics of this model are right, of the inertias as mended (see notes)." in done.stdout
    assert json.loads(steelyard("check", path, "--states", 5, "--json").stdout)["mended"]
    assert "The dynamics of this model are right.\n" in steelyard("check", "two_link", "--states", 5).stdout


def test_check_does_not_call_impossible_inertias_right_without_a_word():
    robot = sy.load_robot("two_link")
    theta = robot.parameters.copy()
    theta[robot.layout.index("link2.Izz")] = 1e3
    result = sy.check_model(robot.with_parameters(theta), np.random.default_rng(0), 5)
    assert result.invalid
    assert result.verdict == "right, of inertias that no rigid body has (see warnings)"


def test_compare_tells_a_moved_base_from_other_dynamics():
    text = '<mujoco><worldbody><body name="base" pos="{}"><body name="a"><joint name="j" axis="0 1 0"/>{}</body></body>'
    spec = [
        sy.load_robot(mujoco.MjSpec.from_string(text.format(pos, GEOM) + "</worldbody></mujoco>"))
        for pos in ("0 0 0", "0 0 .3")
    ]
    result = sy.compare_models(*spec, np.random.default_rng(0), 10)
    assert not result.same
    assert result.verdict.startswith("the dynamics agree, the frames do not: ")
    assert "300 mm" in result.verdict


GEOM = '<geom size=".1" pos=".1 0 0"/>'


def test_compare_says_which_axes_turn_the_other_way():
    text = (
        '<mujoco><worldbody><body name="a"><joint name="j" axis="0 {} 0" pos="{} 0 0"/>{}</body></worldbody></mujoco>'
    )
    a, b = (
        sy.load_robot(mujoco.MjSpec.from_string(text.format(*numbers, GEOM)))
        for numbers in (("1", "0"), ("-1", "0.0357"))
    )
    verdict = sy.compare_models(a, b, np.random.default_rng(0), 10).verdict
    assert "differ by 180° (they turn opposite ways) and by 35.7 mm" in verdict


def test_compare_prints_units(tmp_path):
    shown = steelyard("compare", "ur10", "ur5e", "--states", 5).stdout
    for word in ("axis °", "axis mm", "gravity N·m", "torque N·m", "largest torque N·m"):
        assert word in shown


def test_tiny_gravity_is_printed_as_zero():
    shown = steelyard("info", "two_link", "--mounting", "0,90,0").stdout
    assert "gravity (9.81, 0, 0)" in shown.replace("-0", "0")
    assert "e-1" not in shown.splitlines()[0]


def test_notes_speak_to_both_users():
    shown = steelyard("info", "tx40").stdout + steelyard("info", "scara").stdout + steelyard("info", "panda").stdout
    assert "=(" not in shown
    assert "=True" not in shown


def test_export_writes_a_model_and_says_what_it_left_out(tmp_path):
    out = tmp_path / "arm.urdf"
    done = steelyard("export", "panda", "--output", out)
    assert done.returncode == 0, done.stderr
    assert f"wrote {out}" in done.stdout
    assert "note: " in done.stdout
    assert sy.load_robot(out).n == 7
    refused = steelyard("export", "panda", "--output", out, "--no-overwrite")
    assert refused.returncode == 2
    assert "exists already" in refused.stderr
    told = json.loads(steelyard("export", "panda", "-o", tmp_path / "arm.xml", "--lock", "joint7=0.5", "--json").stdout)
    assert told["written"][0] == str(tmp_path / "arm.xml")
    assert told["written"][1] == str(tmp_path / "arm.steelyard.yaml")
    assert sy.load_robot(tmp_path / "arm.xml").n == 6
