"""Complementarity and contact against enumeration, closed forms and each other."""

from itertools import product

import mujoco
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.control.environment import ExtendedKalman, Guess, RecursiveLeastSquares, estimate_environment
from steelyard.errors import DataError, OptionError
from steelyard.physics.complementarity import Lemke, ProjectedGaussSeidel, QuadraticProgram, solve_complementarity
from steelyard.physics.contact import Contacts, Convex, Coulomb, frame, free_body, step
from steelyard.physics.grasp import Grasp, hold

METHODS = (Lemke(), ProjectedGaussSeidel(), QuadraticProgram())
EVERY = pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)


def enumerated(M, q):
    """All complementary solutions with a regular basis, by trying each of the 2ⁿ."""
    found = []
    for choice in product((False, True), repeat=len(q)):
        a, z = np.array(choice), np.zeros(len(q))
        if a.any():
            block = M[np.ix_(a, a)]
            if abs(np.linalg.det(block)) < 1e-12:
                continue
            z[a] = np.linalg.solve(block, -q[a])
        if z.min(initial=0) >= -1e-9 and (M @ z + q).min(initial=0) >= -1e-9:
            found.append(z)
    return found


def well_posed(rng, n):
    A = rng.normal(size=(n, n))
    return A @ A.T / n + 0.3 * np.eye(n), rng.normal(size=n)


def test_three_methods_agree_on_random_well_posed_problems(rng):
    for n in rng.integers(1, 40, size=60):
        M, q = well_posed(rng, n)
        answers = [solve_complementarity(M, q, method) for method in METHODS]
        assert all(a.converged for a in answers)
        for other in answers[1:]:
            # Condition numbers stay below 1e3, and sweeps stop at a step of 1e-13.
            np.testing.assert_allclose(other.z, answers[0].z, rtol=0, atol=1e-8)


@EVERY
def test_small_problems_have_the_solution_that_enumeration_finds(method, rng):
    for n in range(1, 8):
        M, q = well_posed(rng, n)
        (expected,) = enumerated(M, q)  # a positive definite M has exactly one
        np.testing.assert_allclose(solve_complementarity(M, q, method).z, expected, rtol=0, atol=1e-8)


@EVERY
def test_a_diagonal_problem_has_its_closed_form(method):
    found = solve_complementarity(np.diag([2.0, 4.0, 1.0]), [-1.0, 3.0, 0.0], method)
    np.testing.assert_allclose(found.z, [0.5, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(found.w, [0.0, 3.0, 0.0], atol=1e-12)


def test_lemke_and_the_quadratic_program_agree_where_m_is_monotone_but_not_symmetric(rng):
    for n in rng.integers(2, 20, size=20):
        M, q = well_posed(rng, n)
        S = rng.normal(size=(n, n))
        M = M + S - S.T
        a, b = (solve_complementarity(M, q, method) for method in (Lemke(), QuadraticProgram()))
        assert a.converged
        assert b.converged
        np.testing.assert_allclose(a.z, b.z, rtol=0, atol=1e-8)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(0, 10_000))
def test_lemke_solves_what_has_a_solution_among_tied_and_singular_small_integers(n, seed):
    """Small integers tie all the time, and a Gram matrix of low rank is positive semidefinite: Lemke has to decide."""
    rng = np.random.default_rng(seed)
    A = rng.integers(-1, 2, size=(n, max(1, n - 1))).astype(float)
    M, q = A @ A.T, rng.integers(-2, 2, size=n).astype(float)
    found = solve_complementarity(M, q, Lemke())
    if found.converged:
        assert found.z.min() >= 0
        assert np.abs(np.minimum(found.z, found.w)).max() < 1e-9
    else:
        u = found.infeasible
        # Farkas: with this u no z >= 0 has M z + q >= 0.
        assert u.min() >= 0
        assert (M.T @ u).max() <= 1e-9
        assert q @ u < 0
        assert not enumerated(M, q)


def test_lemke_reports_the_ray_and_proves_that_nothing_solves():
    M, q = np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([-1.0, -1.0])  # w1 + w2 = -2 whatever z
    found = solve_complementarity(M, q, Lemke())
    assert not found.converged
    assert "ray" in found.message
    u = found.infeasible
    assert u.min() >= 0
    np.testing.assert_allclose(M.T @ u, 0, atol=1e-12)
    assert q @ u < 0
    assert not solve_complementarity(M, q, QuadraticProgram()).converged
    assert not solve_complementarity(M, q, ProjectedGaussSeidel(sweeps=50)).converged


def test_ties_do_not_make_lemke_cycle():
    """Murty's matrix with equal right sides: every first ratio ties, and 2ⁿ pivots would be the worst case."""
    n = 12
    M = np.tril(2 * np.ones((n, n)), -1).T + np.eye(n)
    found = solve_complementarity(M, -np.ones(n), Lemke())
    assert found.converged
    assert found.iterations <= 2 * n
    # Row by row from the last: z_n = 1 makes all rows above non-negative.
    np.testing.assert_allclose(found.z, np.r_[np.zeros(n - 1), 1.0], atol=1e-12)


@EVERY
def test_a_start_near_the_solution_saves_work(method, rng):
    M, q = well_posed(rng, 30)
    cold = solve_complementarity(M, q, method)
    warm = solve_complementarity(M, q, method, start=cold.z)
    np.testing.assert_allclose(warm.z, cold.z, rtol=0, atol=1e-10)
    assert warm.iterations <= max(1, cold.iterations // 5)
    moved = solve_complementarity(M, q + 1e-3 * rng.normal(size=30), method, start=cold.z)
    assert moved.converged
    assert moved.iterations < cold.iterations


def test_lemke_from_a_wrong_start_finds_the_same(rng):
    for _ in range(20):
        M, q = well_posed(rng, 15)
        wrong = rng.integers(0, 2, size=15).astype(float)
        cold, warm = solve_complementarity(M, q), solve_complementarity(M, q, start=wrong)
        np.testing.assert_allclose(warm.z, cold.z, rtol=0, atol=1e-10)


def test_relaxation_changes_the_work_and_not_the_answer(rng):
    M, q = well_posed(rng, 20)
    answers = [solve_complementarity(M, q, ProjectedGaussSeidel(omega)) for omega in (0.5, 1.0, 1.5)]
    for a in answers:
        np.testing.assert_allclose(a.z, answers[0].z, rtol=0, atol=1e-10)
    assert answers[1].iterations < answers[0].iterations


def test_regularisation_makes_forces_unique_and_is_part_of_the_problem():
    M, q = np.ones((2, 2)), -np.ones(2)  # any z with z1 + z2 = 1
    for method in METHODS:
        found = solve_complementarity(M, q, method, regularisation=0.1)
        np.testing.assert_allclose(found.z, 1 / 2.1, rtol=1e-8)


def test_what_cannot_be_solved_so_is_said():
    with pytest.raises(OptionError, match="monotone"):
        solve_complementarity([[0.0, 1.0], [1.0, 0.0]], [-1.0, 1.0], QuadraticProgram())
    with pytest.raises(OptionError, match=r"M\[0, 0\] is 0"):
        solve_complementarity([[0.0, 1.0], [1.0, 0.0]], [-1.0, 1.0], ProjectedGaussSeidel())
    with pytest.raises(DataError, match="M \\(n, n\\)"):
        solve_complementarity(np.eye(2), np.ones(3))
    with pytest.raises(OptionError, match="relaxation"):
        ProjectedGaussSeidel(2.0)
    empty = solve_complementarity(np.zeros((0, 0)), np.zeros(0))
    assert empty.converged


LAWS = [(Coulomb(4), Lemke()), (Coulomb(16), Lemke()), *((Convex(s), m) for s in (4, 6) for m in METHODS)]


@pytest.mark.parametrize(("law", "method"), LAWS)
def test_the_grasp_holds_the_cube_and_drops_it_when_friction_is_too_small(law, method):
    held = hold(Grasp(friction=0.3), 0.02, law=law, method=method)
    assert held.holds
    # The fingers' push goes through, and their friction carries the weight: 9.81 N of at most 12 N.
    np.testing.assert_allclose(held.normal, 10.0, rtol=1e-6)
    np.testing.assert_allclose(held.friction[..., 0].sum(axis=1), 9.81, rtol=1e-6)
    assert not hold(Grasp(friction=0.2), 0.02, law=law, method=method).holds
    assert Grasp().least_friction == pytest.approx(0.24525)


def test_the_dropped_cube_falls_as_fast_as_friction_lets_it():
    dropped = hold(Grasp(friction=0.2), 0.05, dt=1e-3)
    # g − 4 μ F/m = 9.81 − 8; facets lie along the fall, so the linearised cone is exact.
    np.testing.assert_allclose(dropped.velocity[-1], [0, 0, -1.81 * 0.05], atol=1e-12)


def test_the_next_step_of_a_held_cube_costs_no_pivot():
    warm, cold = (hold(Grasp(), 0.02, law=Convex(), warm=w).iterations for w in (True, False))
    assert warm[1:].sum() == 0
    assert cold[1:].min() > 0


def on_the_floor(friction, points=((0.1, 0, 0), (-0.1, 0.1, 0), (-0.1, -0.1, 0)), height=0.05):
    mass = np.diag([2.0, 2.0, 2.0, 0.01, 0.01, 0.02])
    return mass, free_body(points, np.tile([0, 0, 1.0], (len(points), 1)), [0, 0, height], friction)


@pytest.mark.parametrize(("law", "method"), LAWS)
def test_a_block_at_rest_stays_and_forces_are_inside_the_cone(law, method):
    M, contacts = on_the_floor(0.5)
    push = np.array([3.0, 1.0, -2 * 9.81, 0, 0, 0])  # sideways less than μ m g = 9.81
    done = step(M, 1e-3 * np.linalg.solve(M, push), contacts, 1e-3, law, method)
    np.testing.assert_allclose(done.velocity, 0, atol=1e-9)
    assert done.normal.sum() == pytest.approx(1e-3 * 2 * 9.81, rel=1e-6)
    assert (np.linalg.norm(done.friction, axis=1) <= 0.5 * done.normal * (1 + 1e-6) + 1e-12).all()


def test_a_sliding_block_slows_down_by_mu_g_and_stops_dead():
    M, contacts = on_the_floor(0.4, points=((0.0, 0, 0),), height=0.0)
    v, dt, speeds = np.array([0.1, 0, 0, 0, 0, 0]), 1e-3, []
    for _ in range(40):
        v = step(M, v + dt * np.array([0, 0, -9.81, 0, 0, 0]), contacts, dt).velocity
        speeds.append(v[0])
    expected = np.maximum(0, 0.1 - 0.4 * 9.81 * dt * np.arange(1, 41))
    np.testing.assert_allclose(speeds, expected, atol=1e-12)


def test_more_sides_bring_the_cone_nearer_to_the_circle():
    """Pushed between two corners friction is weaker by cos(π/sides) at most, and never stronger."""
    slowed = {}
    for sides in (4, 8, 32):
        M, contacts = on_the_floor(0.4, points=((0.0, 0, 0),), height=0.0)
        half = np.pi / sides
        v = np.array([np.cos(half), np.sin(half), -9.81e-3, 0, 0, 0])
        done = step(M, v, contacts, 1e-3, Coulomb(sides))
        force = done.friction[0] / (0.4 * done.normal[0])
        along = -force @ contacts.tangent[0, :, :2] @ v[:2]
        assert np.cos(half) - 1e-9 <= along <= 1 + 1e-9
        slowed[sides] = along
    assert slowed[32] > 0.995


def test_a_gap_lets_the_body_come_as_far_as_the_floor():
    M, contacts = on_the_floor(0.3, points=((0.0, 0, 0),), height=0.0)
    near = Contacts(contacts.normal, contacts.tangent, contacts.friction, np.array([1e-3]))
    assert step(M, np.array([0, 0, -0.5, 0, 0, 0]), near, 1e-3).normal[0] == 0.0
    fast = step(M, np.array([0, 0, -5.0, 0, 0, 0]), near, 1e-3)
    assert fast.velocity[2] == pytest.approx(-1.0)


def test_a_contact_frame_is_right_handed(rng):
    for normal in [*rng.normal(size=(20, 3)), [0, 0, 2.0], [0, 0, -1.0]]:
        R = frame(normal)
        np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-12)
        assert np.linalg.det(R) == pytest.approx(1)
    with pytest.raises(DataError, match="normal"):
        frame([0, 0, 0])


def test_coulombs_law_says_that_it_needs_lemke():
    M, contacts = on_the_floor(0.3)
    with pytest.raises(OptionError, match="needs Lemke"):
        step(M, np.zeros(6), contacts, 1e-3, Coulomb(), QuadraticProgram())
    with pytest.raises(OptionError, match="sides"):
        step(M, np.zeros(6), contacts, 1e-3, Coulomb(3))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(0, 10_000))
def test_the_quadratic_program_solves_what_is_degenerate_as_lemke_does(n, seed):
    """Made to have z_i = w_i = 0 and a singular M: interior points alone stop at the root of rounding there."""
    rng = np.random.default_rng(seed)
    A = rng.integers(-2, 3, size=(n, int(rng.integers(1, n + 1)))).astype(float)
    z = np.where(rng.random(n) < 0.5, rng.integers(0, 3, n), 0.0)
    M = A @ A.T
    q = np.where(z == 0, rng.integers(0, 2, n), 0.0) - M @ z
    lemke, program = (solve_complementarity(M, q, method) for method in (Lemke(), QuadraticProgram()))
    assert lemke.converged
    # w is unique where M is positive semidefinite and symmetric, z need not be.
    np.testing.assert_allclose(lemke.w, M @ z + q, rtol=0, atol=1e-8)
    if program.converged:  # two of 3000 are not, and say so
        np.testing.assert_allclose(program.w, M @ z + q, rtol=0, atol=1e-7)
    else:
        assert "missed by" in program.message


@EVERY
def test_least_squares_without_negative_unknowns_are_scipys(method, rng):
    """min |A z − b|, z >= 0 is the complementarity problem of M = AᵀA, q = −Aᵀb; Lawson and Hanson solve it."""
    for n in (3, 10, 30):
        A, b = rng.normal(size=(2 * n, n)), rng.normal(size=2 * n)
        found = solve_complementarity(A.T @ A, -A.T @ b, method)
        np.testing.assert_allclose(found.z, scipy.optimize.nnls(A, b)[0], rtol=0, atol=1e-8)


@pytest.mark.parametrize("condition", [1e3, 1e6])
def test_ill_conditioned_problems_are_solved_by_pivots_and_by_the_quadratic_program(condition, rng):
    for n in (5, 40):
        U = np.linalg.qr(rng.normal(size=(n, n)))[0]
        M = U * np.geomspace(1, condition, n) @ U.T
        z = np.where(rng.random(n) < 0.5, rng.random(n), 0.0)
        q = np.where(z == 0, rng.random(n), 0.0) - M @ z
        for method in (Lemke(), QuadraticProgram()):
            np.testing.assert_allclose(solve_complementarity(M, q, method).z, z, rtol=0, atol=1e-8)


def test_the_convex_law_of_many_sides_is_cvxpys_second_order_cone(rng):
    """The round cone, by another modeller and as another kind of program: min ½ fᵀAf + fᵀv, |ft| <= μ fn."""
    cvxpy = pytest.importorskip("cvxpy")
    M, contacts = on_the_floor(0.4, points=((0.1, 0.05, 0), (-0.1, 0.06, 0), (-0.08, -0.1, 0)))
    v = np.array([0.3, -0.2, -0.1, 0.2, 0.5, -0.4])
    rows = np.concatenate([contacts.normal[:, None], contacts.tangent], axis=1).reshape(-1, 6)
    f = cvxpy.Variable(9)
    root = np.linalg.cholesky(np.linalg.inv(M))
    cones = [cvxpy.SOC(0.4 * f[3 * k], f[3 * k + 1 : 3 * k + 3]) for k in range(3)]
    cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(root.T @ rows.T @ f) + (rows @ v) @ f), cones).solve()
    theirs = v + np.linalg.solve(M, rows.T @ f.value)
    ours = [step(M, v, contacts, 1e-3, Convex(sides), QuadraticProgram()).velocity for sides in (8, 32, 128)]
    errors = [np.abs(one - theirs).max() for one in ours]
    assert errors[2] < 1e-2 * np.abs(v).max()  # corners of 128 sides are 3° apart, and so may be the way of sliding
    assert errors[2] < errors[1] < errors[0]


BOX = """<mujoco><option timestep="0.0002" cone="elliptic" impratio="100" integrator="implicitfast"/>
 <worldbody><geom type="plane" size="5 5 1" friction="{mu} 0 0" condim="3"/>
  <body name="box" pos="0 0 {half}"><freejoint/>
   <geom type="box" size="0.1 0.08 {half}" mass="2" friction="{mu} 0 0" condim="3"/></body></worldbody></mujoco>"""


def boxes(mu, half=0.05):
    """The same box in MuJoCo and as contacts at its four lower corners."""
    model = mujoco.MjModel.from_xml_string(BOX.format(mu=mu, half=half))
    corners = [(x, y, 0.0) for x in (0.1, -0.1) for y in (0.08, -0.08)]
    contacts = free_body(corners, np.tile([0, 0, 1.0], (4, 1)), [0, 0, half], mu)
    return model, np.diag([*[model.body_mass[1]] * 3, *model.body_inertia[1]]), contacts


@pytest.mark.parametrize(("push", "slides"), [(6.0, False), (7.5, False), (8.3, True), (12.0, True)])
def test_a_pushed_box_sticks_and_slides_as_mujocos_does(push, slides):
    """μ m g = 0.4·2·9.81 = 7.85 N at the height of the centre; friction below it tips load onto the front corners."""
    model, M, contacts = boxes(0.4)
    data, front = mujoco.MjData(model), []
    while data.time < 0.1:  # settle
        mujoco.mj_step(model, data)
    data.xfrc_applied[1, 0] = push
    while data.time < 0.4:
        mujoco.mj_step(model, data)
        wrench, carried = np.zeros(6), 0.0
        for k in range(data.ncon):
            mujoco.mj_contactForce(model, data, k, wrench)
            carried += wrench[0] * (data.contact.pos[k, 0] > data.qpos[0])
        front.append(carried)
    v, dt = np.zeros(6), 1e-3
    for _ in range(300):
        done = step(M, v + dt * np.array([push / 2, 0, -9.81, 0, 0, 0]), contacts, dt)
        v = done.velocity
    assert (v[0] > 1e-6) == slides
    # One that slides rocks on MuJoCo's soft contacts, by half its weight: means over 0.25 s agree to a percent of it.
    assert v[0] == pytest.approx(data.qvel[0], abs=1e-2 if slides else 1e-4)
    assert done.normal[:2].sum() / dt == pytest.approx(np.mean(front[250:]), abs=0.2 if slides else 2e-3)
    assert done.normal.sum() / dt == pytest.approx(2 * 9.81, rel=1e-9)


def thrown_by_scipy(start, corners, height, mu, mass, inertia):
    """Sliding and turning of a plate on springs so stiff that loads are linear over it, until it is all but at rest."""

    def rate(_, state):
        (c, s), v = (np.cos(state[2]), np.sin(state[2])), state[3:]
        arms = corners[:, :2] @ np.array([[c, s], [-s, c]])
        slip = v[:2] + v[2] * np.column_stack([-arms[:, 1], arms[:, 0]])
        along = -mu * slip / np.maximum(np.linalg.norm(slip, axis=1), 1e-9)[:, None]
        plane = np.column_stack([np.ones(len(arms)), arms])
        # No tipping: moments of loads and of friction at the floor, `height` below the centre, cancel.
        balance = np.vstack([np.ones(len(arms)), arms.T - height * along.T]) @ plane
        force = along * (plane @ np.linalg.solve(balance, [mass * 9.81, 0.0, 0.0]))[:, None]
        moment = (arms[:, 0] * force[:, 1] - arms[:, 1] * force[:, 0]).sum()
        return np.concatenate([v, force.sum(axis=0) / mass, [moment / inertia]])

    def rests(_, state):
        return np.linalg.norm(state[3:]) - 1e-3

    rests.terminal = True
    done = scipy.integrate.solve_ivp(rate, (0, 2), [0, 0, 0, *start], events=rests, rtol=1e-8, atol=1e-10)
    assert done.status == 1
    return done.y[:3, -1]


def test_a_thrown_box_stops_where_scipys_and_mujocos_do():
    """How friction brakes a turn depends on what each corner carries, which four rigid contacts leave open and contacts
    that give a little share evenly.
    """
    model, M, _ = boxes(0.3, half=0.01)
    data = mujoco.MjData(model)
    while data.time < 0.1:  # settle
        mujoco.mj_step(model, data)
    v = np.array([0.8, 0.2, 0.0, 0.0, 0.0, 4.0])
    data.qvel[:], begun = v, data.qpos[:2].copy()
    while data.time < 0.6:
        mujoco.mj_step(model, data)
    plate = np.array([(x, y, 0.0) for x in (0.1, -0.1) for y in (0.08, -0.08)])
    scipys = thrown_by_scipy(v[[0, 1, 5]], plate, 0.01, 0.3, 2.0, model.body_inertia[1, 2])
    place, z, dt = np.zeros(3), None, 1e-3
    for _ in range(350):
        c, s = np.cos(place[2]), np.sin(place[2])
        corners = plate @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1.0]])
        contacts = free_body(corners, np.tile([0, 0, 1.0], (4, 1)), [0, 0, 0.01], 0.3)
        free = v + dt * np.array([0, 0, -9.81, 0, 0, 0])
        done = step(M, free, contacts, dt, Coulomb(32), start=z, regularisation=1e-3)
        v, z = done.velocity, done.solution.z
        place += dt * v[[0, 1, 5]]
    assert np.abs(v).max() < 1e-5
    np.testing.assert_allclose(place, scipys, atol=3e-3)  # m and rad: facets are 11° apart, and half a step of 1 ms
    mujocos = [*(data.qpos[:2] - begun), 2 * np.arctan2(data.qpos[6], data.qpos[3])]
    # There it rocks, and turns by 3 % more or less with steps of 0.05 to 0.2 ms.
    np.testing.assert_allclose(place, mujocos, rtol=0.06)


TRUE = {"stiffness": 2000.0, "damping": 30.0, "position": 0.05}


def pressed(rng, force, duration=2.0, dt=1e-3, mass=1.0, position_noise=1e-5):
    """A mass that a command presses against the environment: SciPy's integration, then noise."""
    k, b, place = TRUE.values()
    t = np.arange(0, duration, dt)
    command = force(t)

    def rate(time, state):
        held = command[min(int(time / dt + 1e-9), len(t) - 1)]
        return [state[1], (held - k * (state[0] - place) - b * state[1]) / mass]

    path = scipy.integrate.solve_ivp(rate, (0, t[-1]), [place, 0.0], t_eval=t, max_step=dt, rtol=1e-6, atol=1e-9).y
    acts = k * (path[0] - place) + b * path[1]
    noisy = {"x": path[0] + position_noise * rng.normal(size=len(t)), "force": acts + 0.1 * rng.normal(size=len(t))}
    return {"t": t, **noisy, "velocity": path[1] + 1e-4 * rng.normal(size=len(t)), "command": command}


def followed(data, method, **more):
    other = "velocity" if isinstance(method, RecursiveLeastSquares) else "command"
    return estimate_environment(data["t"], data["x"], data["force"], method, **{other: data[other]}, **more)


def shaken(t):
    return 12 + np.where(t > 0.5, 4.0, 0.0) + 3 * np.sin(2 * np.pi * 3 * t) + 3 * np.sin(2 * np.pi * 7.3 * t)


@pytest.mark.parametrize("method", [RecursiveLeastSquares(), ExtendedKalman(mass=1.0)], ids=["RLS", "EKF"])
def test_a_shaken_contact_tells_stiffness_damping_and_place(method, rng):
    found = followed(pressed(rng, shaken), method, guess=Guess(stiffness=500.0, damping=5.0, position=0.03))
    for name, (value, deviation) in found.found.items():
        assert abs(value - TRUE[name]) < 0.02 * TRUE[name], name
        assert abs(value - TRUE[name]) < 4 * deviation + 2e-3 * TRUE[name], name
    assert "estimated" in found.message


@pytest.mark.parametrize("method", [RecursiveLeastSquares(), ExtendedKalman(mass=1.0)], ids=["RLS", "EKF"])
def test_a_steady_push_cannot_tell_them_and_says_so(method, rng):
    data = pressed(rng, lambda t: 0 * t + 12.0)
    late = {name: column[1000:] for name, column in data.items()}  # after it has come to rest
    found = followed(late, method, guess=Guess(stiffness=500.0))
    assert "does not show" in found.message
    assert "stiffness" in found.message


def test_nothing_is_learnt_in_free_space(rng):
    t = np.arange(0, 0.2, 1e-3)
    data = {"t": t, "x": 0 * t, "force": 0.01 * rng.normal(size=len(t)), "velocity": 0 * t, "command": 0 * t}
    for method in (RecursiveLeastSquares(), ExtendedKalman(mass=1.0)):
        found = followed(data, method)
        assert found.values[-1, 0] == pytest.approx(1000.0, rel=1e-3)
        assert "never touched" in found.message


def test_the_filter_does_not_lock_in_on_a_wrong_stiffness_where_positions_are_noisy(rng):
    """0.1 mm is a fifteenth of the motion and 0.2 N of the force: a filter of first order ended 70 % off."""
    data = pressed(rng, shaken, position_noise=1e-4)
    method = ExtendedKalman(mass=1.0, position_noise=1e-4)
    found = followed(data, method, guess=Guess(stiffness=500.0, damping=5.0, position=0.03))
    for name, (value, deviation) in found.found.items():
        assert abs(value - TRUE[name]) < 4 * deviation + 2e-3 * TRUE[name], name
        assert deviation < 0.05 * TRUE[name], name


def test_a_wrong_mass_is_told_by_the_innovations(rng):
    data = pressed(rng, shaken)
    for mass, said in ((0.5, "not as assumed"), (1.0, "estimated"), (2.0, "not as assumed")):
        assert said in followed(data, ExtendedKalman(mass=mass)).message
