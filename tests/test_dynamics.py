"""The kernels against MuJoCo, Pinocchio and the laws of mechanics."""

import mujoco
import numpy as np
import pinocchio as pin
import pytest

import steelyard as sy
from steelyard.dynamics import reference_regressor, regressor_gradient
from steelyard.dynamics.kernels.lanes import LANES
from steelyard.dynamics.lagrange import lagrange_terms
from steelyard.robot.library import library_path
from steelyard.robot.states import random_states
from steelyard.robot.twin import twin
from trees import random_mjcf

# Only rounding separates two right ways to compute the same sum.
EXACT = 1e-9


def relative(value, reference):
    return np.abs(value - reference).max() / max(np.abs(reference).max(), 1e-300)


def random_tree(seed, **choices):
    rng = np.random.default_rng(seed)
    spec = mujoco.MjSpec.from_string(random_mjcf(rng, bodies=int(rng.integers(1, 9)), **choices))
    return sy.load_robot(spec, friction=("coulomb", "offset")), rng


def torque_of_twin(robot, q, qd, qdd):
    judge = twin(robot)
    return np.array([judge.inverse_dynamics(*sample) for sample in zip(q, qd, qdd, strict=True)])


@pytest.mark.parametrize("name", sy.library_names())
def test_regressor_times_parameters_is_mj_inverse_on_the_library(name, rng):
    robot = sy.load_robot(name, friction=("coulomb", "offset"))
    q, qd, qdd = random_states(robot, rng, 20)
    tau = sy.regressor(robot, q, qd, qdd) @ robot.parameters + sy.known_torque(robot, q, qd, qdd)
    assert relative(tau, torque_of_twin(robot, q, qd, qdd)) < EXACT


def test_regressor_times_parameters_is_mj_inverse_on_200_random_trees():
    kinds = set()
    for seed in range(200):
        robot, rng = random_tree(seed)
        kinds |= {joint.kind_name for joint in robot.joints}
        q, qd, qdd = random_states(robot, rng, 3)
        expected = torque_of_twin(robot, q, qd, qdd)
        tau = sy.regressor(robot, q, qd, qdd) @ robot.parameters + sy.known_torque(robot, q, qd, qdd)
        assert relative(tau, expected) < EXACT, seed
        assert relative(sy.inverse_dynamics(robot, q, qd, qdd), expected) < EXACT, seed
    assert kinds == {"hinge", "slide", "ball", "free"}


def test_every_kernel_obeys_mechanics_on_random_trees():
    for seed in range(200, 230):
        robot, _ = random_tree(seed)
        result = sy.check_model(robot, np.random.default_rng(seed), states=5)
        assert result.holds, (seed, [c for c in result.checks if not c.holds])


def test_the_reference_regressor_is_bilinear_with_the_christoffel_matrix_on_random_trees():
    """Y(q, q̇, v, a) θ = M a + C(q, q̇) v + g + friction at v, and with v = q̇ the regressor itself."""
    for seed in range(400, 440):
        robot, rng = random_tree(seed)
        robot = robot.with_layout(bodies=robot.bodies)
        q, qd, a = random_states(robot, rng, 3)
        v, joints = rng.normal(size=qd.shape), robot.joint_parameters
        Y = reference_regressor(robot, q, qd, v, a)
        expected = np.einsum("tij,tj->ti", sy.mass_matrix(robot, q), a) + sy.gravity(robot, q)
        expected += np.einsum("tij,tj->ti", sy.coriolis_matrix(robot, q, qd), v)
        expected += joints[:, 1] * v + joints[:, 2] * np.sign(v) + joints[:, 3]
        assert relative(Y @ robot.parameters, expected) < EXACT, seed
        assert relative(reference_regressor(robot, q, qd, qd, a), sy.regressor(robot, q, qd, a)) < EXACT, seed


def test_regressor_is_pinocchios_after_converting_the_order(rng):
    robot = sy.load_robot("ur10", armature=False, damping=False)
    model = pin.buildModelFromMJCF(str(library_path("ur10")))
    data = model.createData()
    # Ours: m mx my mz Ixx Ixy Ixz Iyy Iyz Izz; Pinocchio's: m mx my mz Ixx Ixy Iyy Ixz Iyz Izz.
    order = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]
    for q, qd, qdd in zip(*random_states(robot, rng, 20), strict=True):
        theirs = pin.computeJointTorqueRegressor(model, data, q, qd, qdd).reshape(6, 6, 10)
        assert relative(sy.regressor(robot, q, qd, qdd).reshape(6, 6, 10)[:, :, order], theirs) < EXACT


def test_panda_has_80_87_and_94_columns():
    assert sy.load_robot("panda", armature=False, damping=False).layout.size == 80
    assert sy.load_robot("panda", damping=False).layout.size == 87
    assert sy.load_robot("panda").layout.size == 94
    assert sy.load_robot("panda", friction=("coulomb", "offset")).layout.size == 108


def test_locked_joints_act_as_if_welded(rng):
    free = sy.load_robot("panda", lock=[])
    held = sy.load_robot("panda", lock={"finger_joint1": 0.03, "finger_joint2": 0.01, "joint3": 0.7})
    assert (free.n, held.n) == (9, 6)
    q, qd, qdd = random_states(held, rng, 10)
    wide = np.zeros((3, 10, 9))
    columns = [0, 1, 3, 4, 5, 6]
    wide[:, :, columns] = q, qd, qdd
    wide[0][:, [2, 7, 8]] = 0.7, 0.03, 0.01
    assert relative(sy.inverse_dynamics(held, q, qd, qdd), sy.inverse_dynamics(free, *wide)[:, columns]) < EXACT


def test_a_tilted_mounting_turns_gravity(rng):
    upright = sy.load_robot("ur5e")
    hanging = sy.load_robot("ur5e", mounting=np.diag([1.0, -1.0, -1.0]))
    q, _, _ = random_states(upright, rng, 5)
    assert np.allclose(sy.gravity(hanging, q), -sy.gravity(upright, q), atol=1e-12)
    assert np.allclose(sy.load_robot("ur5e", gravity=(0, 0, 9.81)).gravity, hanging.gravity)


def test_jacobians_and_their_rates_are_mujocos():
    for seed in range(300, 330):
        robot, rng = random_tree(seed)
        judge, body, offset = twin(robot), robot.bodies[-1], rng.normal(size=3)
        q, qd, _ = random_states(robot, rng, 3)
        J, rate = sy.jacobian(robot, q, body, offset), sy.jacobian_rate(robot, q, qd, body, offset)
        position, rotation = sy.pose(robot, q, body, offset)
        for t in range(3):
            data = judge.place(q[t], qd[t])
            mujoco.mj_forward(judge.model, data)
            b = judge.model.body(body).id
            frame = data.xmat[b].reshape(3, 3)
            point = data.xpos[b] + frame @ offset
            assert np.allclose(position[t], point, atol=1e-12)
            assert np.allclose(rotation[t], frame, atol=1e-12)
            theirs = np.zeros((2, 3, judge.model.nv))
            mujoco.mj_jac(judge.model, data, theirs[0], theirs[1], point, b)
            assert np.allclose(J[t], theirs.reshape(6, -1), atol=1e-12)
            mujoco.mj_jacDot(judge.model, data, theirs[0], theirs[1], point, b)
            assert np.allclose(rate[t], theirs.reshape(6, -1), atol=1e-10)
        assert np.allclose(sy.velocity(robot, q, qd, body, offset), np.einsum("tij,tj->ti", J, qd))


@pytest.mark.parametrize("seed", range(20))
def test_newton_euler_and_lagrange_agree(seed):
    robot, rng = random_tree(seed, kinds=("hinge", "slide", "none", "two hinges"), free=False)
    for q, qd, _ in zip(*random_states(robot, rng, 3), strict=True):
        terms = lagrange_terms(robot, q, qd)
        assert relative(sy.mass_matrix(robot, q), terms.M) < EXACT
        assert np.allclose(sy.coriolis_matrix(robot, q, qd), terms.C, atol=1e-11 * max(1, np.abs(terms.C).max()))
        assert np.allclose(sy.gravity(robot, q), terms.g, atol=1e-11)


def test_two_link_arm_has_the_closed_form_of_the_textbook(rng):
    """Seed 003, exercise 7.1: masses in the middle of the links."""
    robot = sy.load_robot("two_link", armature=False, damping=False)
    m1, m2 = robot.body_parameters[:, 0]
    l1 = sy.pose(robot, [0.0, 0.0], robot.bodies[1])[0][0]
    half1, half2 = robot.body_parameters[:, 1] / (m1, m2)
    assert np.isclose(half1, l1 / 2)
    l2 = 2 * half2
    # Inertia about the axis through the centre of mass; the axes are along y, and the arm swings down with gravity.
    I1, I2 = robot.body_parameters[:, 7] - np.array([m1, m2]) * np.array([half1, half2]) ** 2
    for q, qd, _ in zip(*random_states(robot, rng, 10), strict=True):
        # The textbook turns upwards from the horizontal, our axes are −y or y: compare up to that sign.
        up = np.sign(sy.pose(robot, [0.1, 0.0], robot.bodies[1])[0][2])
        (q1, q2), (w1, w2) = up * q, up * qd
        c2, s2, g = np.cos(q2), np.sin(q2), 9.81
        a = m2 * l2**2 / 4 + I2
        b = m2 * l1 * l2 * c2 / 2
        M = np.array([[m1 * l1**2 / 4 + m2 * l1**2 + a + I1 + 2 * b, a + b], [a + b, a]])
        h = m2 * l1 * l2 / 2 * s2
        C = up * np.array([[-h * w2, -h * (w1 + w2)], [h * w1, 0.0]])
        G1 = (m1 * l1 / 2 + m2 * l1) * g * np.cos(q1) + m2 * l2 / 2 * g * np.cos(q1 + q2)
        G = up * np.array([G1, m2 * l2 / 2 * g * np.cos(q1 + q2)])
        robot_M = sy.mass_matrix(robot, q) - np.diag(robot.joint_parameters[:, 0])
        assert np.allclose(robot_M, M)
        assert np.allclose(up * sy.coriolis_matrix(robot, q, qd), up * C)
        assert np.allclose(sy.gravity(robot, q), G)
        terms = lagrange_terms(robot, q, qd)
        assert np.allclose(terms.C, C)
        assert np.allclose(terms.g, G)


def test_batches_of_every_length_equal_single_samples(rng):
    robot = sy.load_robot("panda")
    for count in (1, LANES - 1, LANES, LANES + 1, 3 * LANES + 2):
        q, qd, qdd = random_states(robot, rng, count)
        Y, tau = sy.regressor(robot, q, qd, qdd), sy.inverse_dynamics(robot, q, qd, qdd)
        assert Y.shape == (count, 7, 94)
        for t in range(count):
            assert np.allclose(Y[t], sy.regressor(robot, q[t], qd[t], qdd[t]), rtol=0, atol=1e-12)
            assert np.allclose(tau[t], sy.inverse_dynamics(robot, q[t], qd[t], qdd[t]), rtol=0, atol=1e-12)


def test_many_samples_in_threads_equal_few_in_one(rng):
    robot = sy.load_robot("ur5e")
    q, qd, qdd = random_states(robot, rng, 5000)
    whole = sy.regressor(robot, q, qd, qdd)
    parts = np.concatenate([sy.regressor(robot, *(x[k : k + 200] for x in (q, qd, qdd))) for k in range(0, 5000, 200)])
    assert np.array_equal(whole, parts)
    buffer = np.full_like(whole, np.nan)
    assert sy.regressor(robot, q, qd, qdd, out=buffer) is buffer
    assert np.array_equal(buffer, whole)


def test_large_angles_lose_no_digit(rng):
    robot = sy.load_robot("ur5e")
    q, qd, qdd = random_states(robot, rng, 20)
    for turns in (10.0, 1e4, 1e7):
        turned = q + 2 * np.pi * np.round(turns)
        # The angle itself is only known to the rounding of the large number.
        scale = np.spacing(turned.max()) * 1e3
        assert relative(sy.inverse_dynamics(robot, turned, qd, qdd), sy.inverse_dynamics(robot, q, qd, qdd)) < scale
    with np.errstate(all="raise"):
        angles = np.concatenate([np.linspace(-50, 50, 4000), np.arange(-40, 40) * np.pi / 4, [1e5, -3e5, 1e-300, 0.0]])
    one = sy.load_robot("two_link")
    R = sy.pose(one, np.column_stack([angles, 0 * angles]), one.bodies[0])[1]
    assert np.abs(R[:, 0, 0] - np.cos(angles)).max() < 3e-16
    assert np.abs(np.abs(R[:, 0, 2]) - np.abs(np.sin(angles))).max() < 3e-16


def test_forward_dynamics_is_mj_forward(rng):
    robot = sy.load_robot("iiwa14")
    judge = twin(robot)
    q, qd, _ = random_states(robot, rng, 20)
    tau = rng.normal(size=(20, 7)) * 20
    ours = sy.forward_dynamics(robot, q, qd, tau)
    for t in range(20):
        data = judge.place(q[t], qd[t])
        data.qfrc_applied[:] = tau[t]
        mujoco.mj_forward(judge.model, data)
        assert relative(ours[t], data.qacc) < EXACT


@pytest.mark.parametrize("seed", range(12))
def test_regressor_gradient_is_the_difference_quotient(seed):
    robot, rng = random_tree(seed, kinds=("hinge", "slide", "none", "two hinges"), free=False)
    states = random_states(robot, rng, LANES + 1)
    G = rng.normal(size=(LANES + 1, robot.n, robot.layout.size))
    gradient = regressor_gradient(robot, *states, G)

    def value(*states):
        return np.einsum("tkc,tkc->t", G, sy.regressor(robot, *states))

    step, scale = 1e-6, np.abs(value(*states)).max()
    for which in range(3):
        for k in range(robot.n):
            up, down = ([x.copy() for x in states] for _ in range(2))
            up[which][:, k] += step
            down[which][:, k] -= step
            quotient = (value(*up) - value(*down)) / (2 * step)
            # The quotient itself is good to about 1e-9 of the function.
            assert np.abs(quotient - gradient[which][:, k]).max() < 1e-7 * scale


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda r: sy.inverse_dynamics(r, np.zeros(6), np.zeros(7), np.zeros(7)), r"q has shape \(6,\).*7 positions"),
        (lambda r: sy.inverse_dynamics(r, np.zeros((2, 7)), np.zeros((3, 7)), np.zeros((2, 7))), "qd has 3 samples"),
        (
            lambda r: sy.regressor(r, np.zeros((2, 7)), np.zeros((2, 7)), [[0] * 7, [0, np.nan] + [0] * 5]),
            "sample 1, column 1",
        ),
        (lambda r: sy.inverse_dynamics(r, [np.inf] + [0] * 6, np.zeros(7), np.zeros(7)), "q is inf at sample 0"),
        (lambda r: sy.inverse_dynamics(r, np.full(7, np.nan), np.zeros(7), np.zeros(7)), "q is nan at sample 0"),
        (lambda r: sy.mass_matrix(r, "home"), "not an array of numbers"),
        (lambda r: sy.mass_matrix(r, 1.0), r"shape \(\)"),
        (lambda r: r.with_parameters(np.zeros(93)), "94 parameters"),
        (lambda r: sy.pose(r, np.zeros(7), "elbow"), "no moving body 'elbow'"),
        (
            lambda r: sy.regressor(r, np.zeros((3, 7)), np.zeros((3, 7)), np.zeros((3, 7)), out=np.zeros(4)),
            "out must be",
        ),
    ],
)
def test_wrong_samples_give_one_clear_sentence(call, sentence):
    with pytest.raises(sy.SteelyardError, match=sentence) as caught:
        call(sy.load_robot("panda"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "q",
    [
        np.ma.masked_greater(np.arange(7.0), 5),
        np.ma.masked_greater(np.arange(14.0).reshape(2, 7), 5),
        np.zeros(7, complex),
        np.zeros(7, "datetime64[s]"),
        np.zeros(7, "timedelta64[s]"),
        ["0"] * 7,
        np.full(7, 1j, object),
    ],
)
def test_what_only_looks_like_numbers_is_refused(q):
    robot = sy.load_robot("panda")
    for call in (
        lambda: sy.mass_matrix(robot, q),
        lambda: sy.inverse_dynamics(robot, q, np.zeros(np.shape(q)), np.zeros(np.shape(q))),
        lambda: sy.inverse_dynamics(robot, np.zeros(np.shape(q)), q, np.zeros(np.shape(q))),
    ):
        with pytest.raises(sy.DataError, match=r"(q|qd) (is not an array|has complex|has a masked)"):
            call()


def test_samples_that_cannot_be_written_to_need_no_other_kernel():
    robot = sy.load_robot("panda")
    from steelyard.dynamics.kernels import newton_euler

    kernels = (newton_euler.one_sample, newton_euler.inverse_dynamics)
    for shape in ((7,), (3, 7)):
        x = np.zeros(shape)
        sy.inverse_dynamics(robot, x, x, x)
        before = [len(kernel.signatures) for kernel in kernels]
        fixed = np.zeros(shape)
        fixed.setflags(write=False)
        sy.inverse_dynamics(robot, fixed, x, fixed)
        assert [len(kernel.signatures) for kernel in kernels] == before
    plain = np.ma.masked_array(np.ones(7))
    assert np.array_equal(sy.gravity(robot, plain), sy.gravity(robot, np.ones(7)))


COUPLED = """<mujoco><option density="1.2" viscosity="0.1" wind="1 0 0"/><worldbody>
<body name="a" gravcomp="1"><joint name="h" axis="0 1 0" stiffness="5" springref="0.2" damping="1 2"/>
  <geom size=".1 .2" type="capsule"/>
  <body name="b" pos="0 0 .3"><joint name="k" axis="0 1 0" damping="1"/><geom size=".1"/><site name="s"/></body></body>
<body name="c" pos="1 0 0"><joint name="z" type="slide" axis="0 0 1"/><geom size=".1"/><site name="s2"/></body></worldbody>
<tendon>
  <spatial name="sp" stiffness="10" damping="3 1" armature="0.2" frictionloss="1"><site site="s"/><site site="s2"/></spatial>
  <fixed name="f" armature="0.4" damping="2" stiffness="3"><joint joint="h" coef="1"/><joint joint="k" coef="-1"/></fixed>
</tendon>
<equality><joint joint1="h" joint2="k" polycoef="0 2 0 0 0"/></equality>
<actuator><position joint="h" kp="10" kv="3" armature="0.3" damping="0.7 0.2"/><motor tendon="f" armature="0.1"/></actuator>
</mujoco>"""  # noqa: E501


def test_the_judge_has_nothing_that_the_equation_does_not_carry():
    result = sy.check_model(sy.load_robot(mujoco.MjSpec.from_string(COUPLED)), np.random.default_rng(0), 20)
    assert [check.claim for check in result.checks if not check.holds] == []


@pytest.mark.parametrize("states", [0, -3, 1.5, "many"])
def test_a_check_needs_states(states):
    with pytest.raises(sy.OptionError, match=r"states is .*; give a whole number of at least 1"):
        sy.check_model(sy.load_robot("two_link"), np.random.default_rng(0), states)


def test_a_zero_quaternion_is_refused():
    robot = sy.load_robot("wheel_legged")
    q = robot.home.copy()
    q[3:7] = 0
    with pytest.raises(sy.DataError, match="quaternion of joint 'trunk_free' is zero"):
        sy.gravity(robot, q)


def test_parameters_go_in_and_come_back():
    robot = sy.load_robot("panda", friction=("coulomb",))
    theta = robot.parameters + np.arange(robot.layout.size) * 1e-3
    assert np.array_equal(robot.with_parameters(theta).parameters, theta)
    assert np.array_equal(robot.parameters, sy.load_robot("panda", friction=("coulomb",)).parameters)
    with pytest.raises(ValueError, match="read-only"):
        robot.parameters[0] = 1.0


def test_the_twin_takes_parameters_that_its_compiler_did_not_expect(rng):
    """A free sphere is simple to MuJoCo's compiler; with its centre of mass moved it is not."""
    text = '<mujoco><worldbody><body name="ball"><freejoint name="j"/><geom size=".1"/></body></worldbody></mujoco>'
    robot = sy.load_robot(mujoco.MjSpec.from_string(text))
    theta = robot.parameters.copy()
    theta[:4] += [1.0, 0.1, 0.2, -0.1]
    theta[[4, 7, 9]] += 0.2
    moved = robot.with_parameters(theta)
    q, qd, qdd = random_states(moved, rng, 5)
    assert relative(sy.inverse_dynamics(moved, q, qd, qdd), torque_of_twin(moved, q, qd, qdd)) < EXACT
