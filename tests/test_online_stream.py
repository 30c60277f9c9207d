"""Streaming on robots: the joint state, its derivatives, what stays physical, and what goes on after a restart."""

import numpy as np
import pytest

import steelyard as sy
from steelyard.excitation.trajectory import Fourier
from steelyard.identification import online
from steelyard.identification.online import kalman, recursive
from steelyard.identification.online.coordinates import CHOICES, Base, body_deviation, coordinates
from steelyard.identification.online.joint_state import Drive, JointModel
from steelyard.identification.online.prior import parameter_covariance
from steelyard.identification.online.stream import Sample, found, init, load_state, save_state, step
from steelyard.robot.feasibility import invalidities
from steelyard.robot.inertia import from_log_cholesky, log_cholesky
from steelyard.simulation.controllers import computed_torque
from steelyard.simulation.sensors import Sensors

KALMAN = ("EKF", "UKF", "CDKF", "SREKF", "SRUKF", "SRCDKF")


def wrong_by(robot, relative, seed=0):
    """The robot with bodies that can exist and are wrong by so much."""
    rng, theta, layout = np.random.default_rng(seed), robot.parameters.copy(), robot.layout
    for body in layout.bodies:
        eta = log_cholesky(theta[layout.body(body)])
        eta[0] += 0.5 * relative * rng.normal()
        eta[1:4] += relative * rng.normal(size=3)
        eta[7:] *= 1 + relative * rng.normal(size=3)
        theta[layout.body(body)] = from_log_cholesky(eta)
    theta[layout.inertial.stop :] *= np.exp(relative * rng.normal(size=theta.size - layout.inertial.stop))
    return robot.with_parameters(theta)


def recorded(robot, seconds, rate=250.0, noise=1e-4, torque_noise=0.05):
    rng = np.random.default_rng(1)
    a, b = 0.15 * rng.normal(size=(2, robot.n, 5))
    path = Fourier(seconds, robot.home, a, b, robot.dof_names)
    sensors = Sensors(position_noise=noise, torque_noise=torque_noise, velocity="measured")
    return sy.simulate(
        robot,
        path,
        sensors=sensors,
        controller=computed_torque(2.0),
        rng=np.random.default_rng(2),
        control_hz=rate,
        step=1e-3,
        cartesian=False,
    )


def torque_error(robot, theta):
    """How wrong the parameters are, as a share of the torque over fixed states."""
    rng = np.random.default_rng(5)
    Y = sy.regressor(robot, *(rng.normal(size=(50, robot.n)) for _ in range(3)))
    return np.linalg.norm(Y @ (theta - robot.parameters)) / np.linalg.norm(Y @ robot.parameters)


def samples(recording, rates=False):
    qd, qdd = recording.more["qd_true"], recording.more["qdd_true"]
    for i, t in enumerate(recording.t):
        q = recording.more["q_true"][i] if rates else recording.q[i]
        yield Sample(t, q, recording.tau[i], qd[i] if rates else None, qdd[i] if rates else None)


def run(state, some):
    for sample in some:
        state = step(state, sample)
    return state


@pytest.fixture(scope="module")
def two_link():
    robot = sy.load_robot("two_link")
    return robot, wrong_by(robot, 0.15), recorded(robot, 3.0)


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("name", ["two_link", "scara"])
def test_derivatives_of_the_step_are_its_differences(rng, name, choice):
    robot = sy.load_robot(name, friction=("coulomb", "offset"))
    model = JointModel(robot, coordinates(robot, choice))
    x = np.concatenate([0.3 * rng.normal(size=2 * robot.n), model.coordinates.start])
    drive = Drive(rng.normal(size=robot.n), np.tanh(rng.normal(size=robot.n)), 2e-3)
    ahead, F, G, _ = model.tangent(x, drive)
    np.testing.assert_allclose(ahead, model.transition(x, drive), atol=1e-14)
    # A step of ∛ε is coarse where a wrist of 1e-3 kg·m² makes rates of 400: 1e-4 of the largest entry is left.
    np.testing.assert_allclose(F, kalman.differences(model.transition, x, drive), atol=1e-4 * np.abs(F).max())
    by_tau = kalman.differences(lambda tau, u: model.transition(x, Drive(tau, *drive[1:])), drive.tau, None)
    np.testing.assert_allclose(G, by_tau, atol=1e-4 * np.abs(G).max())


@pytest.mark.parametrize("choice", CHOICES)
def test_the_step_is_forward_dynamics_integrated(rng, choice):
    """SciPy's integrator to 1e-12, and a step of 1 ms: the midpoint rule is off by h³."""
    from scipy.integrate import solve_ivp

    robot = sy.load_robot("two_link")
    model = JointModel(robot, coordinates(robot, choice))
    theta = model.coordinates.theta(model.coordinates.start)
    same = robot.with_parameters(theta)
    x = np.concatenate([rng.normal(size=4), model.coordinates.start])
    tau = rng.normal(size=2)

    def slope(_, y):
        return np.concatenate([y[2:], sy.forward_dynamics(same, y[:2], y[2:], tau)])

    wanted = solve_ivp(slope, (0, 1e-3), x[:4], rtol=1e-12, atol=1e-14).y[:, -1]
    got = model.transition(x, Drive(tau, np.zeros(2), 1e-3))
    np.testing.assert_allclose(got[:4], wanted, atol=2e-6)
    # Friction and rotors of nothing have no logarithm and begin at a small floor.
    np.testing.assert_allclose(theta[:20], robot.parameters[:20], atol=1e-9)


@pytest.mark.parametrize("method", KALMAN)
def test_every_kalman_filter_finds_a_two_link_that_begins_15_percent_wrong(two_link, method):
    robot, guess, recording = two_link
    settings = online.METHODS[method](on="joint", torque_noise=0.05, torque="held")
    state = run(init(guess, settings), samples(recording))
    assert torque_error(robot, found(state).parameters) < 0.25 * torque_error(robot, guess.parameters)
    layout = robot.layout
    bodies = found(state).parameters[layout.inertial].reshape(-1, 10)
    assert not invalidities(layout.bodies, bodies, {}, linear_dofs=layout.linear_dofs)


def test_square_root_filters_on_a_robot_equal_the_plain_ones(two_link):
    _, guess, recording = two_link
    for plain, root in (("EKF", "SREKF"), ("UKF", "SRUKF"), ("CDKF", "SRCDKF")):
        one, two = (
            run(
                init(guess, online.METHODS[name](on="joint", torque_noise=0.05, torque="held")),
                list(samples(recording))[:200],
            )
            for name in (plain, root)
        )
        # Relative to the prior's deviations, 1e-8: what rounding makes of covariances that span eight decades.
        np.testing.assert_allclose(one.belief.mean, two.belief.mean, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(one.belief.covariance, two.belief.covariance, atol=1e-8)


def test_particles_come_nearer_on_two_link(two_link):
    robot, guess, recording = two_link
    state = run(init(guess, online.PF(on="joint", torque_noise=0.05, torque="held")), list(samples(recording))[:250])
    assert torque_error(robot, found(state).parameters) < 0.6 * torque_error(robot, guess.parameters)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rls_finds_a_panda_that_begins_15_percent_wrong_in_three_seconds(seed):
    """Also where hardly any noise makes it sure of what it has seen; what it has not is as wrong as the prior says."""
    robot = sy.load_robot("panda")
    guess, recording = wrong_by(robot, 0.15, seed), recorded(robot, 3.0, noise=1e-5, torque_noise=0.01)
    state = run(init(guess, online.RLS(noise=0.01, relative=0.15)), samples(recording, rates=True))
    assert torque_error(robot, found(state).parameters) < 0.1 * torque_error(robot, guess.parameters)


def test_the_prior_of_a_robot_is_the_scatter_of_robots_that_are_so_wrong():
    """Of 4,000 robots whose bodies are 5 % off, by quantiles of their base parameters; floors make the prior wider."""
    robot, relative = sy.load_robot("ur5e"), 0.05
    layout, base, rng = robot.layout, sy.base_parameters(robot), np.random.default_rng(0)
    theta = np.tile(robot.parameters, (4000, 1))
    for body in layout.bodies:
        eta = log_cholesky(robot.parameters[layout.body(body)])
        scattered = eta + body_deviation(eta, relative) * rng.normal(size=(4000, 10))
        theta[:, layout.body(body)] = from_log_cholesky(scattered)
    theta[:, layout.inertial.stop :] *= 1 + relative * rng.normal(size=theta[:, layout.inertial.stop :].shape)
    B = base.projection
    wanted = np.cov(base.reduce(theta).T)
    said = B @ parameter_covariance(robot, relative) @ B.T
    narrow = np.linalg.eigvalsh(said - 0.8 * wanted)
    assert narrow.min() > -1e-3 * np.abs(wanted).max()
    varied = np.diag(wanted) > 0
    ratio = np.sqrt(np.diag(said)[varied] / np.diag(wanted)[varied])
    assert (ratio > 0.9).all()
    assert np.median(ratio) < 1.5


def test_a_body_that_cannot_exist_or_has_no_mass_still_has_a_prior():
    robot = sy.load_robot("two_link")
    theta = robot.parameters.copy()
    theta[robot.layout.index("link1.Ixx")] = -1.0
    theta[robot.layout.body("link2")] = 0.0
    P = parameter_covariance(robot.with_parameters(theta), 0.15)
    assert np.isfinite(P).all()
    assert np.linalg.eigvalsh(P).min() > 0
    rows = np.eye(3)[None]
    state = recursive.update(recursive.start_from(np.zeros(3), P[:3, :3], 3), rows, np.ones((1, 3)), 1e-6)
    np.testing.assert_allclose(state.estimate, 1.0, atol=1e-6)


def test_rls_on_a_panda_is_the_batch_answer(rng):
    robot = sy.load_robot("panda")
    guess = wrong_by(robot, 0.15)
    q, qd, qdd = (rng.normal(size=(200, 7)) for _ in range(3))
    tau = sy.inverse_dynamics(robot, q, qd, qdd) + 0.05 * rng.normal(size=q.shape)
    state = init(guess, online.RLS(noise=0.05, prior=1e4))
    for i in range(200):
        state = step(state, Sample(float(i), q[i], tau[i], qd[i], qdd[i]))
    base = sy.base_parameters(robot)
    W = base.columns(sy.regressor(robot, q, qd, qdd)).reshape(-1, base.rank) / 0.05
    y = (tau - sy.known_torque(robot, q, qd, qdd)).ravel() / 0.05
    A, b = np.vstack([W, np.eye(base.rank) / 100]), np.concatenate([y, base.reduce(guess.parameters) / 100])
    wanted = np.linalg.lstsq(A, b, rcond=None)[0]
    np.testing.assert_allclose(found(state).base_parameters, wanted, atol=1e-8)


def test_the_seeds_filter_on_parameters_is_rls(two_link):
    """Q = 0, P = 100 I, R = 0.1 on the base parameters."""
    _, guess, recording = two_link
    taken = list(samples(recording, rates=True))[:150]
    seed = online.EKF(on="parameters", coordinates="base", prior=100.0, torque_noise=np.sqrt(0.1), anneal=0.0)
    one = found(run(init(guess, seed), taken))
    # A filter has no input before its first sample, and begins with the second.
    two = found(run(init(guess, online.RLS(prior=100.0, noise=np.sqrt(0.1))), taken[1:]))
    np.testing.assert_allclose(one.base_parameters, two.base_parameters, atol=1e-8)
    np.testing.assert_allclose(one.base_covariance, two.base_covariance, atol=1e-7)


@pytest.mark.parametrize(
    "settings",
    [
        online.RLS(forgetting=0.99, noise=0.1),
        online.EKF(on="joint"),
        online.SRUKF(on="parameters"),
        online.PF(on="joint", particles=4),
    ],
    ids=lambda s: s.name,
)
def test_a_saved_state_goes_on_bit_for_bit(two_link, tmp_path, settings):
    _, guess, recording = two_link
    taken = list(samples(recording, rates=True))[:60]
    half = run(init(guess, settings), taken[:30])
    path = save_state(half, tmp_path / "state.npz")
    straight, resumed = run(half, taken[30:]), run(load_state(path, guess), taken[30:])
    for one, two in zip(straight.belief, resumed.belief, strict=True):
        assert np.array_equal(one, two)
    with pytest.raises(sy.DataError, match="other parameters"):
        load_state(path, sy.load_robot("scara"))


def test_a_step_leaves_the_state_before_it_alone(two_link):
    _, guess, recording = two_link
    taken = list(samples(recording, rates=True))[:3]
    for settings in (online.RLS(), online.EKF(on="joint"), online.SRCDKF(on="joint")):
        state = run(init(guess, settings), taken[:2])
        before = [np.array(x) for x in state.belief]
        step(state, taken[2])
        assert all(np.array_equal(a, b) for a, b in zip(before, state.belief, strict=True))


def test_a_missing_position_is_only_predicted(two_link):
    _, guess, recording = two_link
    taken = list(samples(recording))[:20]
    gap = [s._replace(q=np.full(2, np.nan)) if i in (7, 8) else s for i, s in enumerate(taken)]
    state = run(init(guess, online.EKF(on="joint")), gap)
    assert np.isfinite(state.belief.mean).all()
    assert np.isfinite(state.belief.covariance).all()


def test_thin_bodies_are_made_a_little_thick():
    text = """<mujoco><worldbody><body name="rod"><joint name="j" axis="0 1 0"/>
    <inertial pos="0 0 -.5" mass="1" diaginertia="0.02 0.02 1e-12"/>
    <body name="frame" pos="0 0 -1"><joint name="k" axis="0 1 0" armature="0.1"/><inertial pos="0 0 0" mass="0.5"
    diaginertia="1e-9 1e-9 1e-9"/></body></body></worldbody></mujoco>"""
    import mujoco

    robot = sy.load_robot(mujoco.MjSpec.from_string(text))
    physical = coordinates(robot, "physical")
    np.testing.assert_allclose(physical.theta(physical.start)[:20], robot.parameters[:20], atol=1e-5)


def test_what_cannot_be_meant_is_refused(two_link):
    _, guess, _ = two_link
    with pytest.raises(sy.OptionError, match="coordinates"):
        online.EKF(coordinates="polar")
    with pytest.raises(sy.OptionError, match="finite numbers above 0"):
        online.UKF(torque_noise=-1.0)
    with pytest.raises(sy.DataError, match="needs q̇ and q̈"):
        step(init(guess, online.RLS()), Sample(0.0, np.zeros(2), np.zeros(2)))
    state = step(init(guess, online.EKF(on="joint")), Sample(1.0, np.zeros(2), np.zeros(2)))
    with pytest.raises(sy.DataError, match="time does not advance"):
        step(state, Sample(1.0, np.zeros(2), np.zeros(2)))
    with pytest.raises(sy.DataError, match="has shape"):
        step(state, Sample(2.0, np.zeros(3), np.zeros(2)))


def test_base_coordinates_keep_what_no_torque_depends_on(rng):
    robot = sy.load_robot("scara")
    base = Base(robot, sy.base_parameters(robot))
    xi = base.start + rng.normal(size=base.start.size)
    theta = base.theta(xi)
    np.testing.assert_allclose(base.base.reduce(theta), xi, atol=1e-12)
    untouched = np.setdiff1d(np.arange(robot.layout.size), base.base.kept)
    assert np.array_equal(theta[untouched], robot.parameters[untouched])


def test_recursive_state_says_its_deviation(rng):
    state = recursive.update(recursive.start(np.zeros(3), 2.0), rng.normal(size=(9, 1, 3)), rng.normal(size=(9, 1)))
    np.testing.assert_allclose(state.deviation, np.sqrt(np.diag(state.covariance)), rtol=1e-12)
