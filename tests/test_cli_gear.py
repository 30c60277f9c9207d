"""`steelyard gear` against closed forms and MuJoCo."""

import json

import mujoco
import numpy as np
import pytest
import scipy.optimize
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli.main import app
from steelyard.errors import OptionError
from steelyard.robot.library import library_path


def run(*arguments):
    result = CliRunner().invoke(app, ["gear", *arguments, "--json"], catch_exceptions=False)
    return json.loads(result.stdout)


def test_resonances_are_the_poles_and_zeros_of_two_inertias_on_a_spring():
    facts = run("--load", "2", "--motor", "1e-4", "--ratio", "80", "--stiffness", "5e3")
    J, B, K = 2.0, 1e-4 * 80**2, 5e3
    free = np.sqrt(np.linalg.eigvals(np.linalg.solve(np.diag([J, B]), [[K, -K], [-K, K]])).max())
    # Closed forms of a 2×2 problem: only rounding may part them.
    assert facts["resonance"] == pytest.approx(free, rel=1e-12)
    assert facts["antiresonance"] == pytest.approx(np.sqrt(K / J), rel=1e-12)
    assert facts["inertia_ratio"] == pytest.approx(J / B, rel=1e-12)


def test_the_optimal_ratio_is_where_a_search_finds_the_largest_acceleration():
    facts = run("--load", "3", "--motor", "2e-4", "--motor-torque", "1.5", "--load-torque", "30")
    found = scipy.optimize.minimize_scalar(
        lambda n: -(n * 1.5 - 30) / (3 + n**2 * 2e-4), bounds=(1, 1000), method="bounded", options={"xatol": 1e-9}
    )
    # A search by values finds the place of a flat top to the root of rounding.
    assert facts["optimal_ratio"] == pytest.approx(found.x, rel=1e-6)
    assert facts["load_acceleration"] == pytest.approx(-found.fun, rel=1e-12)
    assert facts["ratio"] == facts["optimal_ratio"]


def test_the_load_of_a_joint_is_mujocos_mass_matrix_without_the_rotor():
    model = mujoco.MjModel.from_xml_path(str(library_path("two_link")))
    data, robot = mujoco.MjData(model), sy.load_robot("two_link")
    data.qpos[:] = robot.home
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    facts = run("--model", "two_link", "--joint", robot.dof_names[0], "--motor", "1e-4")
    assert facts["load_inertia"] == pytest.approx(M[0, 0] - model.dof_armature[0], rel=1e-9)


def test_a_slide_moves_a_mass_and_has_a_gear_with_a_length_in_it():
    facts = run("--model", "scara", "--joint", "joint3", "--motor", "1e-4", "--motor-torque", "1")
    model = mujoco.MjModel.from_xml_path(str(library_path("scara")))
    body = int(model.jnt_bodyid[model.joint("joint3").id])
    assert facts["slides"]
    assert facts["load_inertia"] == pytest.approx(model.body_subtreemass[body], rel=1e-12)
    assert facts["optimal_ratio"] == pytest.approx(np.sqrt(model.body_subtreemass[body] / 1e-4), rel=1e-12)
    assert facts["usual_ratios"] == {}  # rules for hinges
    shown = CliRunner().invoke(app, ["gear", "--model", "scara", "--joint", "joint3", "--motor", "1e-4"]).stdout
    assert "rad/m" in shown
    assert "kg·m²" in shown  # the motor's


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--load"),
        (["--load", "1"], "--motor"),
        (["--load", "-1", "--motor", "1"], "above 0"),
        (["--load", "1", "--motor", "nan"], "above 0"),
        (["--load", "1", "--motor", "1", "--load-torque", "3"], "--motor-torque"),
        (["--model", "two_link", "--motor", "1"], "--joint"),
        (["--model", "wheel_legged", "--joint", "trunk_free", "--motor", "1"], "trunk_free"),
        (["--model", "two_link", "--joint", "elbow9", "--motor", "1"], "elbow9"),
    ],
)
def test_gear_says_what_is_wrong_with_its_options(arguments, said):
    with pytest.raises(OptionError, match=said):
        CliRunner().invoke(app, ["gear", *arguments], catch_exceptions=False)
