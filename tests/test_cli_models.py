"""The commands that look at models, as a user types them."""

import json
import subprocess
import sys

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
        (["info", "panda", "--lock", "joint1=up"], "--lock joint1 takes 1 numbers"),
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
    for command in ("robots", "info", "check", "compare"):
        done = steelyard(command, "--help")
        assert done.returncode == 0
        assert f"steelyard {command}" in done.stdout
