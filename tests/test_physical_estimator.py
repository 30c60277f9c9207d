"""`Physical` on top of the other estimators: recordings in, possible robots out."""

import numpy as np
import pytest

import steelyard as sy
from steelyard.data.recording import Recording
from steelyard.dynamics import inverse_dynamics
from steelyard.identification.conclude import estimate
from steelyard.identification.estimators import IRLS, MAP, OLS, TLS, WLS, Physical, Ridge
from steelyard.identification.estimators.physical import information
from steelyard.identification.model import Experiment, Load
from steelyard.identification.physical import solve_physical
from steelyard.identification.problem import build_problem
from steelyard.identification.terms import SpringTerm
from steelyard.robot.inertia import from_mass_com_inertia, pseudo_inertia

INNER = {
    "OLS": OLS(),
    "WLS": WLS(),
    "WLS-full": WLS(noise="full"),
    "IRLS": IRLS(loss="tukey"),
    "TLS": TLS(regressor_noise=1e-3),
    "MAP": MAP(),
    "Ridge": Ridge(),
}


@pytest.fixture(scope="module")
def robot():
    return sy.load_robot("ur10", friction=("coulomb", "offset"))


@pytest.fixture(scope="module")
def off(robot):
    """The same robot with other masses, friction and armatures."""
    rng = np.random.default_rng(3)
    theta = robot.parameters.copy()
    theta[robot.layout.inertial] *= np.repeat(rng.uniform(0.85, 1.15, len(robot.layout.bodies)), 10)
    return robot.with_parameters(theta)


def recording_of(robot, rng, noise=0.0, samples=500):
    t = np.linspace(0.0, 8.0, samples)
    w, a = rng.uniform(0.5, 4.0, (robot.n, 5)), rng.uniform(0.1, 0.5, (robot.n, 5))
    phase = w * t[:, None, None] + rng.uniform(0, 6, (robot.n, 5))
    q, qd, qdd = (a * np.sin(phase)).sum(-1), (a * w * np.cos(phase)).sum(-1), -(a * w**2 * np.sin(phase)).sum(-1)
    tau = inverse_dynamics(robot, q, qd, qdd)
    return Recording(t, q, tau + noise * rng.normal(size=tau.shape), qd, qdd)


@pytest.mark.parametrize("inner", INNER.values(), ids=INNER)
def test_without_noise_the_truth_comes_back_and_with_noise_a_robot_that_can_exist(robot, off, inner, rng):
    exact = estimate(build_problem(off, recording_of(robot, rng)), Physical(inner=inner))
    truth = exact.model.base.reduce(robot.parameters)
    # 1e-6: a joint value that is truly zero lies on its bound, where an interior-point method ends near its tolerance
    np.testing.assert_allclose(exact.base_parameters, truth, atol=1e-6 * np.abs(truth).max())
    assert exact.converged, exact.message
    noisy = recording_of(robot, rng, noise=5.0)
    free, found = (estimate(build_problem(off, noisy), method) for method in (inner, Physical(inner=inner)))
    assert found.converged, found.message
    assert found.invalid == ()
    assert free.invalid
    assert found.about["fit"]["active"]
    assert "held by" in found.message
    np.testing.assert_allclose(found.base_parameters, found.model.base.reduce(found.parameters), atol=1e-12)
    np.testing.assert_array_equal(found.base_covariance.shape, free.base_covariance.shape)


def test_on_least_squares_it_is_the_constrained_fit_itself(robot, off, rng):
    problem = build_problem(off, recording_of(robot, rng, noise=3.0))
    A, y = problem.stacked()
    found = estimate(problem, Physical(inner=OLS(), weight=1e-3))
    variance = float(problem.factors.squares(OLS().fit(problem).beta).sum()) / (500 * 6 - problem.rank)
    direct = solve_physical(A, y, off, Physical(weight=1e-3), problem.model.base.projection, noise=variance**0.5)
    here = float(np.sum((A @ found.base_parameters - y) ** 2)) + direct.weight * found.about["fit"]["prior"]
    assert here == pytest.approx(direct.objective + direct.weight * direct.prior, rel=1e-6)


@pytest.mark.parametrize("inner", INNER.values(), ids=INNER)
def test_the_information_is_the_inverse_of_the_solutions(robot, off, inner, rng):
    solution = inner.fit(build_problem(off, recording_of(robot, rng, noise=0.1))).solution
    R = information(solution)
    scale = np.sqrt(np.diag(solution.inverse))
    product = (R.T @ R * scale[:, None] * scale) @ (solution.inverse / scale[:, None] / scale)
    np.testing.assert_allclose(product, np.eye(len(scale)), atol=1e-6)


def test_data_of_a_robot_that_moves_two_joints_give_a_whole_robot(robot, off, rng):
    """Most directions are unseen: they come from the prior, and their intervals stay infinite."""
    t = np.linspace(0, 5, 400)
    q, qd, qdd = (np.zeros((400, 6)) for _ in range(3))
    for j, w in ((1, 2.0), (2, 3.1)):
        q[:, j], qd[:, j], qdd[:, j] = np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t)
    tau = inverse_dynamics(robot, q, qd, qdd) + 0.5 * rng.normal(size=q.shape)
    found = estimate(build_problem(off, Recording(t, q, tau, qd, qdd)), Physical())
    assert found.converged, found.message
    assert found.invalid == ()
    assert np.isinf(found.base_deviation).any()
    assert "base parameters" in found.message


def test_terms_fixed_values_and_an_unknown_load_come_along(robot, off, rng):
    body = robot.layout.bodies[-1]
    theta = robot.parameters.copy()
    payload = from_mass_com_inertia(2.0, [0.05, 0.01, 0.1], np.diag([0.01, 0.012, 0.008]))
    theta[robot.layout.body(body)] += payload
    empty, loaded = recording_of(robot, rng), recording_of(robot.with_parameters(theta), rng)
    stiff = [12.0, 0.0, 3.0, 0.0, 0.0, 1.0]
    stretched = [Recording(r.t, r.q, r.tau + r.q * stiff, r.qd, r.qdd) for r in (empty, loaded)]
    known = {f"{robot.layout.bodies[1]}.m": float(robot.parameters[robot.layout.index(f"{robot.layout.bodies[1]}.m")])}
    problem = build_problem(
        off,
        [Experiment(stretched[0]), Experiment(stretched[1], Load(body))],
        terms=(SpringTerm(),),
        fixed=known,
    )
    found = estimate(problem, Physical())
    assert found.converged, found.message
    assert found.invalid == ()
    value = dict(zip(found.names, found.parameters.tolist(), strict=True))
    # The data are exact; what is left is the solver's tolerance.
    assert [value[f"{dof}.stiffness"] for dof in robot.dof_names] == pytest.approx(stiff, abs=1e-5)
    assert [value[name] for name in known] == list(known.values())
    carried = found.parameters[-10:]
    np.linalg.cholesky(pseudo_inertia(carried))
    np.testing.assert_allclose(carried[:4], payload[:4], atol=1e-4)
    np.testing.assert_allclose(
        found.base_parameters, found.model.base.reduce(found.parameters), atol=1e-9 * np.abs(found.parameters).max()
    )


def test_gross_errors_lose_their_say_before_bodies_are_made_possible(robot, off, rng):
    clean = recording_of(robot, rng, noise=0.3)
    tau = clean.tau.copy()
    hit = rng.random(tau.shape) < 0.05
    tau[hit] += rng.normal(scale=60.0, size=int(hit.sum()))
    problem = build_problem(off, Recording(clean.t, clean.q, tau, clean.qd, clean.qdd))
    truth = problem.model.base.reduce(robot.parameters)
    quiet = WLS().fit(build_problem(off, clean)).solution.inverse

    def error(inner):
        e = estimate(problem, Physical(inner=inner)).base_parameters - truth
        return float(e @ np.linalg.solve(quiet, e)) ** 0.5

    assert error(IRLS(loss="tukey")) < 0.5 * error(WLS())
