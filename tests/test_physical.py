"""The physically consistent fit: against cvxpy, the truth and MuJoCo's compiler, and where data are bad."""

from dataclasses import replace

import cvxpy as cp
import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard import base_parameters, export_model, library_names, load_robot, regressor
from steelyard.errors import DataError, OptionError
from steelyard.identification.physical import PhysicalSettings, feasible_projection, solve_physical
from steelyard.identification.physical.limits import Equality, geom_boxes
from steelyard.identification.physical.metric import nominal_metric
from steelyard.identification.physical.priors import PRIORS
from steelyard.identification.scales import joint_scales
from steelyard.robot.feasibility import Ball, Box, invalidities
from steelyard.robot.inertia import PSEUDO_BASIS, from_mass_com_inertia, from_pseudo_inertia, pseudo_inertia
from steelyard.robot.states import random_states
from trees import random_mjcf


def perturbed(robot, rng, size=0.15):
    """The robot's parameters, each body stretched and turned by about `size`, joint values scaled by about as much."""
    theta, layout = robot.parameters.copy(), robot.layout
    U = nominal_metric(layout, theta, np.ones(layout.size - layout.inertial.stop)).factors
    U = U @ (np.eye(4) + 0.5 * size * rng.normal(size=U.shape))
    theta[layout.inertial] = from_pseudo_inertia(U @ np.swapaxes(U, 1, 2)).ravel()
    theta[layout.inertial.stop :] *= 1 + size * rng.uniform(-1, 1, layout.size - layout.inertial.stop)
    return theta


def factor(robot, base, rng, theta, noise=0.0, samples=150):
    """A triangular factor on base parameters of torques at random states, and its right-hand side."""
    W = base.columns(regressor(robot, *random_states(robot, rng, samples))).reshape(-1, base.rank)
    tau = W @ base.reduce(theta) + noise * rng.normal(size=len(W))
    Q, R = np.linalg.qr(W)
    return R, Q.T @ tau


def assert_possible(robot, fit):
    """Every body strictly inside the cone, and nothing that `feasibility` finds wrong."""
    bodies = fit.parameters[robot.layout.inertial]
    joints = {p: dict(enumerate(fit.parameters[robot.layout.block(p)])) for p in robot.layout.properties}
    assert invalidities(robot.layout.bodies, bodies, joints) == ()
    for block in bodies.reshape(-1, 10):
        np.linalg.cholesky(pseudo_inertia(block))
    assert all(margin > 0 for margin in fit.margins.values())


def oracle(W, y, robot, prior, weight, smallest=1e-6):
    """The same problem in plain parameters, as cvxpy states and solves it: data, prior."""
    theta0 = robot.parameters
    theta = cp.Variable(len(theta0))
    cost, constraints = 0, []
    for k, name in enumerate(robot.layout.bodies):
        body = robot.layout.body(name)
        J0 = pseudo_inertia(theta0[body])
        inverse = np.linalg.inv(np.linalg.cholesky(J0))
        X = sum(theta[10 * k + i] * (inverse @ PSEUDO_BASIS[i] @ inverse.T) for i in range(10))
        constraints.append(X >> smallest * np.eye(4))
        if prior == "entropic":
            cost += cp.trace(X) - cp.log_det(X) - 4
        elif prior == "pullback":
            cost += 0.5 * cp.sum_squares(X - np.eye(4))
        elif prior == "euclidean":
            cost += 0.5 * cp.sum_squares(theta[body] - theta0[body])
    data = cp.sum_squares(W @ theta - y)
    problem = cp.Problem(cp.Minimize(data + weight * cost), constraints)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return problem.value


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # said by cvxpy of its own last digits
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("rank", [20, 12])
@pytest.mark.parametrize("noise", [0.02, 1.0])
def test_the_objective_is_cvxpys_on_random_data_of_full_and_of_deficient_rank(rng, prior, rank, noise):
    robot = load_robot("two_link", armature=False, damping=False)
    W = rng.normal(size=(60, rank)) @ rng.normal(size=(rank, 20))
    y = W @ robot.parameters + noise * np.abs(W).mean() * rng.normal(size=60)
    fit = solve_physical(W, y, robot, PhysicalSettings(prior=prior, weight=1e-2))
    assert fit.converged, fit.message
    assert_possible(robot, fit)
    assert fit.objective + fit.weight * fit.prior == pytest.approx(oracle(W, y, robot, prior, 1e-2), rel=1e-6)


def test_the_least_squares_part_alone_is_cvxpys(rng):
    """With a weight that is nearly nothing; cvxpy's problem has none at all."""
    robot = load_robot("two_link", armature=False, damping=False)
    W = rng.normal(size=(60, 15)) @ rng.normal(size=(15, 20))
    y = W @ robot.parameters + rng.normal(size=60)
    for prior in PRIORS:
        fit = solve_physical(W, y, robot, PhysicalSettings(prior=prior, weight=1e-8))
        assert fit.converged
        assert fit.objective == pytest.approx(oracle(W, y, robot, None, 0.0), rel=1e-6)


@pytest.mark.parametrize("name", library_names())
def test_without_noise_the_truth_comes_back_in_base_parameters(rng, name):
    """From a nominal model 15 % off; what is left is the solver's tolerance."""
    robot = load_robot(name, friction=("coulomb",))
    base, truth = base_parameters(robot), robot.parameters
    A, y = factor(robot, base, rng, truth)
    beta, nominal = base.reduce(truth), perturbed(robot, rng)
    for noise in (None, 0.0):
        fit = solve_physical(A, y, robot, projection=base.projection, nominal=nominal, noise=noise)
        np.testing.assert_allclose(base.reduce(fit.parameters), beta, rtol=0, atol=1e-6 * np.abs(beta).max())
        assert fit.converged
        assert_possible(robot, fit)


@pytest.mark.parametrize("prior", PRIORS)
def test_without_noise_and_with_the_truth_as_nominal_all_of_it_comes_back(rng, prior):
    robot = load_robot("ur10")
    base = base_parameters(robot)
    A, y = factor(robot, base, rng, robot.parameters)
    fit = solve_physical(A, y, robot, PhysicalSettings(prior=prior), projection=base.projection)
    # Rotors and friction of zero lie on their bounds, where an interior-point method ends near its tolerance, 1e-8 of
    # the units in which what is unknown is counted; the bodies pay for it where nothing else tells them apart.
    np.testing.assert_allclose(fit.parameters, robot.parameters, rtol=0, atol=1e-5 * robot.parameters.max())
    np.testing.assert_allclose(list(fit.margins.values()), 1.0, atol=1e-3)


@pytest.mark.parametrize("name", library_names())
@pytest.mark.parametrize("suffix", [".xml", ".urdf"])
def test_models_of_noisy_data_are_accepted_by_mujoco(rng, tmp_path, name, suffix):
    """Noise so strong that unconstrained bodies would have negative masses."""
    robot = load_robot(name, friction=("coulomb",))
    base = base_parameters(robot)
    A, y = factor(robot, base, rng, robot.parameters, noise=10.0)
    beta = np.linalg.lstsq(A, y)[0]
    free = robot.with_parameters(base.expand(beta, robot.parameters))
    assert invalidities(robot.layout.bodies, free.parameters[robot.layout.inertial])
    fit = solve_physical(A, y, robot, projection=base.projection, noise=10.0)
    assert fit.converged, fit.message
    assert_possible(robot, fit)
    path = tmp_path / f"identified{suffix}"
    export_model(robot.with_parameters(fit.parameters), path)
    mujoco.MjModel.from_xml_path(str(path))
    again = load_robot(path, friction=("coulomb",))
    rows = [again.body_parameters[again.bodies.index(body)] for body in robot.layout.bodies]
    wanted = fit.parameters[robot.layout.inertial].reshape(-1, 10)
    np.testing.assert_allclose(rows, wanted, rtol=0, atol=1e-8 * np.abs(wanted).max())


def test_constraints_that_hold_are_named_and_cost_only_what_they_must(rng):
    robot = load_robot("panda", friction=("coulomb",))
    base = base_parameters(robot)
    A, y = factor(robot, base, rng, robot.parameters, noise=5.0)
    fits = [
        solve_physical(A, y, robot, PhysicalSettings(prior=prior, weight=1e-4), projection=base.projection, noise=5.0)
        for prior in PRIORS
    ]
    for fit in fits:
        assert fit.converged
        assert any(name.endswith("pseudo-inertia") for name in fit.active)
        assert any(name.endswith(">= 0") for name in fit.active)
    # The prior decides between parameters that fit alike: it may cost less than the noise of a few samples.
    costs = [fit.objective for fit in fits]
    assert max(costs) - min(costs) < 10 * 5.0**2


def test_columns_from_1_to_a_million_do_no_harm(rng):
    robot = load_robot("two_link")
    base = base_parameters(robot)
    scale = 10.0 ** rng.uniform(0, 6, base.rank)
    A = np.linalg.qr(rng.normal(size=(200, base.rank)) * scale, mode="r")
    beta = base.reduce(robot.parameters)
    fit = solve_physical(A, A @ beta, robot, projection=base.projection, nominal=perturbed(robot, rng))
    assert fit.converged
    # A true damping of zero is on its bound, where an interior-point method ends at the root of its tolerance.
    np.testing.assert_allclose(base.reduce(fit.parameters), beta, rtol=0, atol=3e-5)


def test_rods_and_plates_come_back_to_within_the_smallest_thickness(rng):
    """Bodies on the boundary: a rod, a plate and a point mass, from a nominal model of solid bodies."""
    robot = load_robot("scara")
    theta = robot.parameters.copy()
    thin = [np.diag([0.02, 0.02, 0.0]), np.diag([0.01, 0.02, 0.03]), np.zeros((3, 3))]
    for name, inertia in zip(robot.layout.bodies, thin, strict=False):
        theta[robot.layout.body(name)] = from_mass_com_inertia(2.0, [0.1, 0.02, 0.05], inertia)
    base = base_parameters(robot)
    A, y = factor(robot, base, rng, theta)
    for prior in PRIORS:
        fit = solve_physical(A, y, robot, PhysicalSettings(prior=prior), projection=base.projection)
        assert fit.converged
        assert_possible(robot, fit)
        beta = base.reduce(theta)
        np.testing.assert_allclose(base.reduce(fit.parameters), beta, rtol=0, atol=1e-5 * np.abs(beta).max())


def test_nominal_bodies_without_mass_or_thickness_are_named_and_do_not_break_the_prior(rng):
    robot = load_robot("ur10")
    base, truth = base_parameters(robot), robot.parameters
    A, y = factor(robot, base, rng, truth)
    theta, bodies = truth.copy(), robot.layout.bodies
    theta[robot.layout.body(bodies[1])] = 0.0
    theta[robot.layout.body(bodies[2])] = from_mass_com_inertia(1.0, [0.0, 0.1, 0.0], np.zeros((3, 3)))
    theta[robot.layout.body(bodies[3])] = from_mass_com_inertia(1.0, [0.0, 0.1, 0.0], np.diag([0.01, 0.01, 0.02]))
    for prior in PRIORS:
        settings = PhysicalSettings(prior=prior)
        fit = solve_physical(A, y, robot, settings, projection=base.projection, nominal=theta)
        assert fit.converged
        assert_possible(robot, fit)
        assert {said.split(":")[0] for said in fit.regularised} == set(bodies[1:4])
        beta = base.reduce(truth)
        np.testing.assert_allclose(base.reduce(fit.parameters), beta, rtol=0, atol=1e-5 * np.abs(beta).max())


def test_two_dozen_bodies_with_noise_and_few_data(rng):
    robot = load_robot(mujoco.MjSpec.from_string(random_mjcf(rng, bodies=24)))
    base = base_parameters(robot)
    A, y = factor(robot, base, rng, robot.parameters, noise=0.1, samples=8)  # fewer rows than parameters
    fit = solve_physical(A, y, robot, projection=base.projection, nominal=perturbed(robot, rng), noise=0.1)
    assert fit.converged, fit.message
    assert_possible(robot, fit)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    bodies=st.integers(1, 9),
    exponent=st.floats(-6, 2),
    samples=st.sampled_from([2, 10, 100]),
    prior=st.sampled_from(PRIORS),
    told=st.booleans(),
)
def test_any_tree_with_any_noise_and_few_data_gives_bodies_that_exist(seed, bodies, exponent, samples, prior, told):
    rng, noise = np.random.default_rng(seed), 10.0**exponent
    robot = load_robot(mujoco.MjSpec.from_string(random_mjcf(rng, bodies=bodies)), friction=("coulomb", "offset"))
    base = base_parameters(robot)
    A, y = factor(robot, base, rng, robot.parameters, noise, samples)
    nominal = perturbed(robot, rng, size=0.4)
    wanted = PhysicalSettings(prior=prior)
    fit = solve_physical(A, y, robot, wanted, base.projection, nominal, noise if told else None)
    assert_possible(robot, fit)
    if told:
        assert fit.converged, fit.message


def test_joints_alone_and_a_nominal_model_that_cannot_exist(rng):
    robot = load_robot("ur10", bodies=[], friction=("coulomb",))
    base = base_parameters(robot)
    A, y = factor(robot, base, rng, robot.parameters, noise=0.5)
    fit = solve_physical(A, y, robot, projection=base.projection, noise=0.5)
    assert fit.converged
    assert min(fit.parameters) >= 0
    robot = load_robot("two_link")
    base = base_parameters(robot)
    A, y = factor(robot, base, rng, robot.parameters, noise=0.1)
    nominal = robot.parameters.copy()
    nominal[0], nominal[14] = -1.0, -0.2
    fit = solve_physical(A, y, robot, projection=base.projection, nominal=nominal, noise=0.1)
    assert fit.converged
    assert len(fit.regularised) == 2
    assert_possible(robot, fit)


def fitted(robot, rng, noise=0.3, **options):
    base = base_parameters(robot)
    A, y = factor(robot, base, rng, robot.parameters, noise=noise, samples=60)
    fit = solve_physical(A, y, robot, PhysicalSettings(**options), base.projection, perturbed(robot, rng), noise)
    assert fit.converged, fit.message
    assert_possible(robot, fit)
    return fit, dict(zip(robot.parameter_names, fit.parameters.tolist(), strict=True))


def test_known_values_bounds_and_sums_are_kept(rng):
    robot = load_robot("two_link", friction=("coulomb",))
    a, b = robot.layout.bodies
    joint = robot.dof_names[0]
    fit, value = fitted(
        robot,
        rng,
        total_mass=3.0,
        fixed={f"{a}.m": 1.7, f"{joint}.damping": 0.25},
        bounds={f"{b}.Izz": (0.0, 1e-3), f"{joint}.armature": (0.3, np.inf)},
        equalities=(Equality({f"{a}.Ixx": 1.0, f"{a}.Iyy": -1.0}), Equality({f"{a}.Ixy": 1.0})),
    )
    assert value[f"{a}.m"] == 1.7
    assert value[f"{joint}.damping"] == 0.25
    assert value[f"{a}.m"] + value[f"{b}.m"] == pytest.approx(3.0, abs=1e-7)
    assert value[f"{a}.Ixx"] == pytest.approx(value[f"{a}.Iyy"], abs=1e-7)
    assert value[f"{a}.Ixy"] == pytest.approx(0.0, abs=1e-7)
    assert value[f"{b}.Izz"] <= 1e-3
    assert value[f"{joint}.armature"] >= 0.3
    assert any(name.startswith(f"{b}.Izz") for name in fit.active)


def test_a_body_that_is_known_whole_stays_as_it_is(rng):
    robot = load_robot("two_link")
    name = robot.layout.bodies[1]
    rod = from_mass_com_inertia(1.2, [0.2, 0, 0], np.diag([0.0, 0.01, 0.01]))
    known = {robot.parameter_names[k]: rod[k - 10] for k in range(10, 20)}
    base = base_parameters(robot)
    A, y = factor(robot, base, rng, robot.parameters)
    fit = solve_physical(A, y, robot, PhysicalSettings(fixed=known), projection=base.projection)
    assert fit.converged
    assert name not in fit.margins
    np.testing.assert_array_equal(fit.parameters[robot.layout.body(name)], rod)


def test_centres_of_mass_stay_in_boxes_balls_and_geoms(rng):
    robot = load_robot("ur10")
    first, second = robot.layout.bodies[:2]
    box = Box((-0.01, -0.02, -np.inf), (0.01, 0.02, np.inf))
    ball = Ball((0.0, 0.0, 0.3), 0.05)
    fit, _ = fitted(robot, rng, noise=3.0, com={first: box, second: ball}, region="com")
    boxes = {**geom_boxes(robot), first: box, second: ball}
    found = invalidities(robot.layout.bodies, fit.parameters[robot.layout.inertial], com_bounds=boxes)
    assert found == ()


@pytest.mark.parametrize("region", ["box", "ellipsoid"])
def test_mass_stays_in_the_region_of_the_geoms(rng, region):
    robot = load_robot("panda")
    free, _ = fitted(robot, rng, noise=3.0)
    kept, _ = fitted(robot, rng, noise=3.0, region=region)

    def outside(fit):
        worst = 0.0
        for name, box in geom_boxes(robot).items():
            J = pseudo_inertia(fit.parameters[robot.layout.body(name)])
            mass, com, middle = J[3, 3], J[:3, 3] / J[3, 3], 0.5 * np.add(box.lower, box.upper)
            spread = np.diag(J[:3, :3]) / mass - 2 * middle * com + middle**2  # about the middle of the geoms
            ratio = spread / (0.5 * np.subtract(box.upper, box.lower)) ** 2
            worst = max(worst, ratio.max() if region == "box" else ratio.sum() / 3)
        return worst

    assert outside(kept) <= 1 + 1e-6 < outside(free)


def test_the_prior_does_not_depend_on_units(rng):
    """Kilograms or grams for the same data: the same bodies, by the priors that promise it."""
    robot = load_robot("two_link", armature=False, damping=False)
    W = rng.normal(size=(12, 20))
    y = W @ robot.parameters
    nominal = perturbed(robot, rng)
    scaled = robot.with_parameters(1000 * robot.parameters)
    for prior in ("entropic", "pullback"):
        settings = PhysicalSettings(prior=prior, weight=1e-3)
        one = solve_physical(W, y, robot, settings, nominal=nominal)
        other = solve_physical(W / 1000, y, scaled, settings, nominal=1000 * nominal)
        np.testing.assert_allclose(other.parameters / 1000, one.parameters, rtol=0, atol=1e-5)


def test_no_data_give_the_nominal_model(rng):
    robot = load_robot("ur10", friction=("coulomb", "offset"))
    for prior in PRIORS:
        fit = solve_physical(np.zeros((0, robot.layout.size)), [], robot, PhysicalSettings(prior=prior))
        assert fit.converged
        np.testing.assert_allclose(fit.parameters, robot.parameters, rtol=0, atol=1e-5 * robot.parameters.max())


def test_the_nearest_physical_parameters_have_eigenvalues_cut_off(rng):
    """Its closed form in the pull-back metric; a body that is possible stays."""
    robot = load_robot("ur10")
    layout, theta = robot.layout, robot.parameters.copy()
    theta[layout.inertial] += 0.3 * rng.normal(size=layout.inertial.stop) * np.abs(theta[layout.inertial])
    theta[layout.body(layout.bodies[0])] = robot.parameters[layout.body(layout.bodies[0])]
    fit = feasible_projection(theta, robot)
    assert fit.converged
    assert_possible(robot, fit)
    U = nominal_metric(layout, robot.parameters, joint_scales(robot)).factors
    inverse = np.linalg.inv(U)
    values, axes = np.linalg.eigh(inverse @ pseudo_inertia(theta[layout.inertial].reshape(-1, 10)) @ inverse.mT)
    nearest = U @ (axes * np.maximum(values, 1e-6)[:, None]) @ axes.mT @ U.mT
    assert values.min() < 0
    found = inverse @ (pseudo_inertia(fit.parameters[layout.inertial].reshape(-1, 10)) - nearest) @ inverse.mT
    np.testing.assert_allclose(found, 0, atol=1e-4)  # the root of the solver's tolerance


def test_wishes_that_cannot_be_met_are_refused_in_words(rng):
    robot = load_robot("two_link")
    a, b = robot.layout.bodies
    A, y = np.eye(robot.layout.size), robot.parameters
    with pytest.raises(OptionError, match="contradict"):
        solve_physical(A, y, robot, PhysicalSettings(total_mass=1.0, fixed={f"{a}.m": 1.0, f"{b}.m": 1.0}))
    with pytest.raises(OptionError, match="no physical parameters"):
        solve_physical(A, y, robot, PhysicalSettings(bounds={f"{a}.m": (-2.0, -1.0)}))
    with pytest.raises(DataError, match="shapes"):
        solve_physical(A, y[1:], robot)
    with pytest.raises(DataError, match="noise"):
        solve_physical(A, y, robot, noise=-1.0)
    with pytest.raises(DataError, match="finite"):
        solve_physical(A, np.full(robot.layout.size, np.nan), robot)
    for wrong in (
        {"prior": "flat"},
        {"weight": 0.0},
        {"smallest": 2.0},
        {"region": "sphere"},
        {"total_mass": -1.0},
        {"nonnegative": ("offset",)},
        {"bounds": {"a.m": (2.0, 1.0)}},
        {"fixed": {"a.m": np.nan}},
    ):
        with pytest.raises(OptionError):
            replace(PhysicalSettings(), **wrong)


@pytest.mark.parametrize("inertia", [0.002, 0.02, 0.2])
def test_rotors_that_the_model_has_not_are_not_taken_for_small(rng, inertia):
    """A URDF has no rotors, and the prior no opinion of them: a slide's, in kg, as little as a wrist's."""
    robot = load_robot("scara")
    theta, rotors = robot.parameters.copy(), robot.layout.block("armature")
    theta[rotors] = 0.0
    nominal = robot.with_parameters(theta)
    theta[rotors] = np.where(np.array(robot.layout.units[rotors]) == "kg", 100.0, 1.0) * inertia
    A, y = factor(nominal, base_parameters(nominal), rng, theta, noise=0.05)
    base = base_parameters(nominal)
    sure = 0.05 * np.sqrt(np.diag(np.linalg.inv(A.T @ A)))
    fit = solve_physical(A, y, nominal, projection=base.projection, noise=0.05)
    assert fit.converged
    columns = [k for k, column in enumerate(base.kept) if rotors.start <= column < rotors.stop]
    assert columns
    off = np.abs(base.reduce(fit.parameters) - base.reduce(theta))[columns] / sure[columns]
    assert off.max() < 4.0  # deviations; a unit of the bodies' size draws them 36 towards zero
