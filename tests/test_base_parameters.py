"""Base parameters: the rank, the names, the way there and back."""

import mujoco
import numpy as np
import pytest

import steelyard as sy
from steelyard.dynamics import blind_directions
from steelyard.robot.states import random_states
from trees import random_mjcf


@pytest.mark.parametrize("name", sy.library_names())
def test_rank_is_the_same_from_three_seeds_with_a_clear_gap(name):
    robot = sy.load_robot(name)
    found = [sy.base_parameters(robot, np.random.default_rng(seed)) for seed in range(3)]
    assert len({base.rank for base in found}) == 1
    assert all(base.has_clear_gap for base in found)
    assert all(base.names == found[0].names for base in found)


@pytest.mark.parametrize("name", ["panda", "scara", "wheel_legged"])
def test_base_regressor_and_base_parameters_give_the_same_torque(name, rng):
    robot = sy.load_robot(name, friction=("coulomb", "offset"))
    base = sy.base_parameters(robot)
    Y = sy.regressor(robot, *random_states(robot, rng, 50))
    theta = rng.normal(size=robot.layout.size)
    assert np.allclose(base.columns(Y) @ base.reduce(theta), Y @ theta, atol=1e-10 * np.abs(Y @ theta).max())
    assert np.allclose(base.projection @ theta, base.reduce(theta))
    W = base.columns(Y).reshape(-1, base.rank)
    assert np.linalg.matrix_rank(W / np.linalg.norm(W, axis=0)) == base.rank


def test_rank_is_the_singular_value_rank_of_random_trees():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        spec = mujoco.MjSpec.from_string(random_mjcf(rng, bodies=int(rng.integers(1, 7))))
        robot = sy.load_robot(spec)
        base = sy.base_parameters(robot)
        W = sy.regressor(robot, *random_states(robot, rng, 150)).reshape(-1, robot.layout.size)
        norms = np.linalg.norm(W, axis=0)
        s = np.linalg.svd(W[:, norms > 0] / norms[norms > 0], compute_uv=False)
        assert base.rank == np.sum(s > 1e-10 * s[0]), seed


def test_panda_regroups_as_its_published_coefficients_do():
    """Gaz et al. 2019: c2y m2 − 0.316 (m3+…+m7) − c3z m3 and 0.0825 (m4+…+m7) + c3x m3 are base parameters."""
    names = sy.base_parameters(sy.load_robot("panda")).names
    assert "link2.my - 0.316·(link3.m + link4.m + link5.m + link6.m + link7.m + hand.m) - link3.mz" in names
    assert "link3.mx + 0.0825·(link4.m + link5.m + link6.m + link7.m + hand.m)" in names


def test_parameters_without_effect_are_named():
    robot = sy.load_robot("ur10")
    base = sy.base_parameters(robot)
    silent = {robot.parameter_names[k] for k in base.without_effect}
    # Of the first link, which turns about a vertical axis, only Izz can be felt.
    assert silent >= {"shoulder_link.m", "shoulder_link.mz", "shoulder_link.Ixx"}
    assert "shoulder_link.Izz" not in silent
    assert len(base.kept) + len(base.regrouped) + len(base.without_effect) == robot.layout.size


def test_expand_goes_back_to_full_parameters_that_move_alike(rng):
    robot = sy.load_robot("panda")
    base = sy.base_parameters(robot)
    beta = base.reduce(robot.parameters) + rng.normal(size=base.rank)
    theta = base.expand(beta, robot.parameters)
    assert np.allclose(base.reduce(theta), beta)
    untouched = [*base.regrouped, *base.without_effect]
    assert np.array_equal(theta[untouched], robot.parameters[untouched])
    assert np.array_equal(base.expand(base.reduce(robot.parameters), robot.parameters)[untouched], theta[untouched])
    for bad in (beta[:-1], theta):
        with pytest.raises(sy.DataError, match="base parameters"):
            base.expand(bad, robot.parameters)


def test_a_motion_of_one_joint_names_what_it_cannot_tell_apart(rng):
    robot = sy.load_robot("two_link")
    base = sy.base_parameters(robot)
    q = np.column_stack([np.linspace(-1, 1, 50), np.zeros(50)])
    moving = np.column_stack([np.ones(50), np.zeros(50)])
    Y = base.columns(sy.regressor(robot, q, moving, rng.normal(size=(50, 1)) * moving))
    blind = blind_directions(base.short_names, Y.reshape(-1, base.rank))
    named = {name for direction in blind for name, _ in direction.weights}
    # The second joint never moves: its rotor and its damping cannot be seen.
    assert {"joint2.armature", "joint2.damping"} <= named
    assert len(blind) == base.rank - np.linalg.matrix_rank(Y.reshape(-1, base.rank))
    assert all(str(direction) for direction in blind)


def test_general_motion_is_blind_to_nothing(rng):
    robot = sy.load_robot("panda")
    base = sy.base_parameters(robot)
    Y = base.columns(sy.regressor(robot, *random_states(robot, rng, 200)))
    assert blind_directions(base.short_names, Y.reshape(-1, base.rank)) == ()
