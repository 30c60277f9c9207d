"""The procedure of three rounds."""

import numpy as np
import pytest

import steelyard as sy
from steelyard.errors import OptionError
from steelyard.identification.conclude import estimate
from steelyard.identification.estimators import ML, WLS, Rounds
from steelyard.identification.problem import build_problem
from steelyard.identification.shapes import shapes_named
from test_nonlinear import motion, stribeck_recording


@pytest.fixture(scope="module")
def robot():
    return sy.load_robot("two_link", friction=("coulomb", "offset"))


def recording_of(robot, rng, noise=0.1):
    t, q, qd, qdd = motion(robot, rng)
    theta = robot.parameters * 1.2
    theta[robot.layout.block("coulomb")] = 1.0, 0.5
    tau = sy.inverse_dynamics(robot.with_parameters(theta), q, qd, qdd)
    return sy.Recording(t, q, tau + noise * rng.normal(size=tau.shape), qd, qdd)


def test_the_third_round_is_weighted_least_squares_and_each_leaves_less(robot, rng):
    problem = build_problem(robot, recording_of(robot, rng))
    found, whole = estimate(problem, Rounds()), estimate(problem, WLS())
    assert found.converged
    assert np.allclose(found.base_parameters, whole.base_parameters, rtol=1e-12)
    assert np.allclose(found.base_deviation, whole.base_deviation, rtol=1e-12)
    left = [one["relative_residual"] for one in found.about["fit"]["rounds"]]
    assert left[0] > left[1] > left[2]
    assert found.about["fit"]["moved"] > 5.0  # friction that round one did not know of passed for inertia
    assert "torque left after each round" in found.message


def test_friction_that_the_model_knows_leaves_the_bodies_where_they_are(robot, rng):
    theta = robot.parameters.copy()
    theta[robot.layout.block("coulomb")] = 1.0, 0.5
    true = robot.with_parameters(theta)
    t, q, qd, qdd = motion(robot, rng)
    tau = sy.inverse_dynamics(true, q, qd, qdd) + 0.1 * rng.normal(size=q.shape)
    found = estimate(build_problem(true, sy.Recording(t, q, tau, qd, qdd)), Rounds())
    assert found.about["fit"]["moved"] < 3.0


def test_rounds_end_in_shapes_where_they_are_asked_for(rng):
    robot = sy.load_robot("two_link", friction=("coulomb",))
    problem = build_problem(robot, stribeck_recording(robot, rng, 0.02))
    found = estimate(problem, Rounds(inner=ML(shapes=shapes_named(["stribeck"]))))
    assert found.converged, found.message
    assert [round(shape.value, 1) for shape in found.shapes] == [0.2, 0.1]
    assert np.isfinite(found.about["fit"]["moved"])


def test_a_round_without_friction_is_refused(rng):
    robot = sy.load_robot("two_link")
    bare = robot.with_layout(properties=("armature",))
    with pytest.raises(OptionError, match="no friction"):
        estimate(build_problem(bare, recording_of(sy.load_robot("two_link", friction=("coulomb",)), rng)), Rounds())
