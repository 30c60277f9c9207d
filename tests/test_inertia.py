import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.errors import ModelError
from steelyard.robot import inertia
from steelyard.robot.parameters import INERTIAL

# The order of Pinocchio's toDynamicParameters, by name, and of its log-Cholesky parameters, which is ours.
PIN = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
FROM_PIN = [PIN.index(name) for name in INERTIAL]
TO_PIN = [INERTIAL.index(name) for name in PIN]
# Sums of a few products of numbers near 1; 1e-12 leaves room for the condition of thin clouds, not for a wrong term.
CLOSE = {"rtol": 1e-12, "atol": 1e-13}

seeds = st.integers(0, 2**32 - 1)
quick = settings(max_examples=25, deadline=None)


def cloud(seed=0, count=20):
    return inertia.random_inertias(np.random.default_rng(seed), count)


def frame(seed):
    return pin.SE3(pin.Quaternion(*unit(np.random.default_rng(seed).normal(size=4))), np.array([0.3, -1.2, 0.5]))


def unit(v):
    return v / np.linalg.norm(v)


def pin_body(theta):
    return pin.Inertia.FromDynamicParameters(theta[TO_PIN])


def central(f, x, step):
    """Central differences along the last axis of the result."""
    return np.stack([(f(x + h) - f(x - h)) / (2 * step) for h in step * np.eye(x.size)], axis=-1)


@quick
@given(seeds)
def test_every_form_leads_back_to_the_same_parameters(seed):
    theta = cloud(seed).reshape(4, 5, 10)
    np.testing.assert_allclose(inertia.from_mass_com_inertia(*inertia.mass_com_inertia(theta)), theta, **CLOSE)
    tensor = inertia.inertia_tensor(theta)
    np.testing.assert_array_equal(inertia.from_inertia_tensor(theta[..., 0], theta[..., 1:4], tensor), theta)
    np.testing.assert_allclose(inertia.from_pseudo_inertia(inertia.pseudo_inertia(theta)), theta, **CLOSE)
    np.testing.assert_allclose(inertia.from_log_cholesky(inertia.log_cholesky(theta)), theta, **CLOSE)


@quick
@given(seeds)
def test_forms_of_a_body_are_pinocchios(seed):
    for theta in cloud(seed, 4):
        body = pin_body(theta)
        mass, com, inertia_com = inertia.mass_com_inertia(theta)
        np.testing.assert_allclose(mass, body.mass, **CLOSE)
        np.testing.assert_allclose(com, body.lever, **CLOSE)
        np.testing.assert_allclose(inertia_com, body.inertia, **CLOSE)
        np.testing.assert_allclose(inertia.pseudo_inertia(theta), body.toPseudoInertia().toMatrix(), **CLOSE)


@quick
@given(st.lists(st.floats(-1.5, 1.5), min_size=10, max_size=10))
def test_log_cholesky_and_its_jacobian_are_pinocchios(eta):
    eta = np.array(eta)
    theirs = pin.LogCholeskyParameters(eta)
    np.testing.assert_allclose(inertia.from_log_cholesky(eta), theirs.toDynamicParameters()[FROM_PIN], **CLOSE)
    np.testing.assert_allclose(inertia.log_cholesky_jacobian(eta), theirs.calculateJacobian()[FROM_PIN], **CLOSE)


def test_log_cholesky_jacobian_is_central_differences_over_many_bodies():
    eta = inertia.log_cholesky(cloud(3))
    jacobian = inertia.log_cholesky_jacobian(eta)
    assert jacobian.shape == (20, 10, 10)
    for one, found in zip(eta, jacobian, strict=True):
        # Second order: a step of 1e-5 leaves 1e-10 of truncation and as much of rounding.
        np.testing.assert_allclose(found, central(inertia.from_log_cholesky, one, 1e-5), atol=1e-8)


@quick
@given(st.lists(st.floats(-2, 2), min_size=10, max_size=10))
def test_any_log_cholesky_numbers_are_a_physical_body(eta):
    J = inertia.pseudo_inertia(inertia.from_log_cholesky(eta))
    assert np.linalg.eigvalsh(J)[0] > -1e-15 * np.trace(J)
    # d ranges over e^±2, so J's condition number is up to about 1e5 and costs as many digits.
    np.testing.assert_allclose(inertia.log_cholesky(inertia.from_log_cholesky(eta)), eta, atol=1e-8)


def test_pseudo_basis_is_the_linear_map_to_the_pseudo_inertia():
    theta = cloud(5)
    J = np.einsum("nk,kab->nab", theta, inertia.PSEUDO_BASIS)
    np.testing.assert_allclose(J, inertia.pseudo_inertia(theta), **CLOSE)
    with pytest.raises(ValueError, match="read-only"):
        inertia.PSEUDO_BASIS[0, 0, 0] = 1.0


def test_off_diagonal_entries_are_tensor_entries():
    theta = np.arange(10.0)
    tensor = inertia.inertia_tensor(theta)
    for name, (i, j) in {"Ixy": (0, 1), "Ixz": (0, 2), "Iyz": (1, 2), "Iyy": (1, 1)}.items():
        assert tensor[i, j] == tensor[j, i] == theta[INERTIAL.index(name)]
    # One kilogram at (1, 2, 0): Ixy = -m x y.
    point = inertia.from_mass_com_inertia(1.0, [1.0, 2.0, 0.0], np.zeros((3, 3)))
    assert point[INERTIAL.index("Ixy")] == -2.0


@quick
@given(seeds)
def test_move_is_pinocchios_action_of_a_frame(seed):
    placement = frame(seed)
    moved = inertia.move(cloud(seed, 3), placement.rotation, placement.translation)
    for theta, found in zip(cloud(seed, 3), moved, strict=True):
        theirs = placement.act(pin_body(theta)).toDynamicParameters()[FROM_PIN]
        np.testing.assert_allclose(found, theirs, rtol=1e-11, atol=1e-12)


def test_bodies_fixed_together_add_in_one_frame():
    arm, tool = cloud(6, 2)
    placement = frame(6)
    merged = arm + inertia.move(tool, placement.rotation, placement.translation)
    theirs = pin_body(arm) + placement.act(pin_body(tool))
    np.testing.assert_allclose(merged, theirs.toDynamicParameters()[FROM_PIN], **CLOSE)


def test_move_refuses_what_is_not_a_rotation():
    with pytest.raises(ModelError, match="off the identity"):
        inertia.move(cloud(), 2 * np.eye(3), np.zeros(3))
    with pytest.raises(ModelError, match="mirrors"):
        inertia.move(cloud(), np.diag([1.0, 1.0, -1.0]), np.zeros(3))


def test_principal_axes_are_a_rotation_that_makes_the_inertia_diagonal():
    theta = cloud(7)
    moments, axes = inertia.principal_inertia(theta)
    _, _, inertia_com = inertia.mass_com_inertia(theta)
    assert np.all(np.diff(moments, axis=-1) >= 0)
    np.testing.assert_allclose(np.linalg.det(axes), 1.0)
    np.testing.assert_allclose(np.einsum("nia,na,nja->nij", axes, moments, axes), inertia_com, **CLOSE)


def test_equivalent_ellipsoid_of_a_uniform_ellipsoid_is_itself():
    semi_axes, com = np.array([0.3, 0.2, 0.1]), np.array([0.1, -0.4, 0.2])
    theirs = pin.Inertia.FromEllipsoid(2.5, *semi_axes)
    rotation = frame(8).rotation
    theta = inertia.from_mass_com_inertia(2.5, com, rotation @ theirs.inertia @ rotation.T)
    center, found, axes = inertia.equivalent_ellipsoid(theta)
    np.testing.assert_allclose(center, com)
    np.testing.assert_allclose(found, semi_axes)
    np.testing.assert_allclose(np.abs(axes.T @ rotation), np.eye(3), atol=1e-12)  # an axis has no sign


def test_equivalent_ellipsoid_of_a_plate_is_flat_and_of_an_impossible_body_is_none():
    plate = inertia.from_mass_com_inertia(1.0, [0.2, 0.0, 0.0], np.diag([1.0, 1.0, 2.0]))
    assert inertia.equivalent_ellipsoid(plate)[1].tolist() == pytest.approx([5**0.5, 5**0.5, 0.0])
    impossible = inertia.from_mass_com_inertia(1.0, np.zeros(3), np.diag([1.0, 1.0, 2.5]))
    assert np.isnan(inertia.equivalent_ellipsoid(impossible)[1]).tolist() == [False, False, True]
    assert np.isnan(inertia.equivalent_ellipsoid(-plate)[1]).all()


@pytest.mark.parametrize(
    ("moments", "like"),
    [
        ((0, 0, 0), "point mass"),
        ((0, 1, 1), "rod"),
        ((1, 1, 2), "plate"),
        ((1, 1, 1), "solid"),
        ((1, 1, 1.99), "solid"),
    ],
)
def test_extent_tells_thin_bodies_apart_wherever_they_are(moments, like):
    placement = frame(9)
    theta = inertia.from_mass_com_inertia(1.0, np.zeros(3), 0.01 * np.diag(moments).astype(float))
    for there in (theta, inertia.move(theta, placement.rotation, 3 * placement.translation)):
        assert inertia.EXTENTS[inertia.extent(there)] == like


@quick
@given(seeds)
def test_divergence_is_its_definition_and_zero_only_at_the_nominal(seed):
    theta, nominal = cloud(seed, 5), cloud(seed + 1, 5)
    J, J0 = inertia.pseudo_inertia(theta), inertia.pseudo_inertia(nominal)
    trace = np.trace(np.linalg.solve(J0, J), axis1=-2, axis2=-1)
    defined = -np.linalg.slogdet(J)[1] + np.linalg.slogdet(J0)[1] + trace - 4
    # J0's condition number reaches 1e5 for thin clouds.
    np.testing.assert_allclose(inertia.divergence(theta, nominal), defined, rtol=1e-9)
    assert np.all(inertia.divergence(theta, nominal) > 0)
    np.testing.assert_allclose(inertia.divergence(nominal, nominal), 0.0, atol=1e-14)


def test_divergence_and_metric_do_not_depend_on_the_frame():
    theta, nominal = cloud(10, 2)
    placement = frame(10)

    def elsewhere(body):
        return inertia.move(body, placement.rotation, placement.translation)

    there = inertia.divergence(elsewhere(theta), elsewhere(nominal))
    np.testing.assert_allclose(there, inertia.divergence(theta, nominal), rtol=1e-9)
    near, near_there = theta - nominal, elsewhere(theta) - elsewhere(nominal)
    length = near @ inertia.pullback_metric(nominal) @ near
    np.testing.assert_allclose(near_there @ inertia.pullback_metric(elsewhere(nominal)) @ near_there, length, rtol=1e-9)


def test_divergence_is_infinite_off_the_cone():
    nominal = cloud(11, 1)[0]
    assert np.isinf(inertia.divergence([-nominal, np.zeros(10)], nominal)).all()


def test_pullback_metric_is_its_definition():
    nominal = cloud(12, 6)
    inverse = np.linalg.inv(inertia.pseudo_inertia(nominal))
    B = inertia.PSEUDO_BASIS
    defined = np.einsum("nab,ibc,ncd,jda->nij", inverse, B, inverse, B)
    np.testing.assert_allclose(inertia.pullback_metric(nominal), defined, rtol=1e-8, atol=1e-8 * np.abs(defined).max())


def test_pullback_metric_is_the_hessian_of_the_divergence():
    # A body of size 1, so that one step suits all ten parameters: 1e-3 leaves 1e-6 of truncation.
    nominal = inertia.from_mass_com_inertia(2.0, [0.3, -0.2, 0.1], np.diag([1.0, 1.2, 1.5]) + 0.1)
    step = 1e-3

    def gradient(theta):
        return central(lambda x: inertia.divergence(x, nominal), theta, step)

    np.testing.assert_allclose(gradient(nominal), 0.0, atol=1e-5)
    hessian = central(gradient, nominal, step)
    np.testing.assert_allclose(inertia.pullback_metric(nominal), hessian, atol=1e-4)
    assert np.linalg.eigvalsh(inertia.pullback_metric(nominal))[0] > 0


def test_random_inertias_are_physical_of_the_asked_mass_and_size():
    theta = inertia.random_inertias(np.random.default_rng(0), 2000, mass_range=(0.1, 8.0), size=0.3)
    J = inertia.pseudo_inertia(theta)
    assert np.linalg.eigvalsh(J).min() > 0
    assert theta[:, 0].min() >= 0.1
    assert theta[:, 0].max() <= 8.0
    assert np.linalg.norm(theta[:, 1:4] / theta[:, :1], axis=1).max() < 0.3
    gyration = np.trace(J[:, :3, :3], axis1=1, axis2=2) / theta[:, 0]
    assert gyration.max() < 0.3**2
    again = inertia.random_inertias(np.random.default_rng(0), 2000, mass_range=(0.1, 8.0), size=0.3)
    np.testing.assert_array_equal(theta, again)


@pytest.mark.parametrize("moments", [(0, 0, 0), (0, 1, 1), (1, 1, 2), (1, 1, 2.1)])
def test_thin_and_impossible_bodies_have_no_log_cholesky_form_and_are_no_nominal(moments):
    theta = inertia.from_mass_com_inertia(1.0, [0.1, 0.2, 0.3], np.diag(moments).astype(float))
    with pytest.raises(ModelError, match="thinnest direction"):
        inertia.log_cholesky(theta)
    with pytest.raises(ModelError, match="nominal cannot be divided by"):
        inertia.divergence(cloud(), theta)
    with pytest.raises(ModelError, match="nominal cannot be divided by"):
        inertia.pullback_metric(theta)


def test_errors_say_which_body_and_what():
    theta = cloud(13, 3)
    theta[1, 0] = -0.5
    with pytest.raises(ModelError, match=r"body 1 has no log-Cholesky form: its mass is -0.5 kg"):
        inertia.log_cholesky(theta)
    theta[1, 0] = 0.0
    with pytest.raises(ModelError, match="body 1 has first moments but no mass"):
        inertia.mass_com_inertia(theta)
    theta[2, 5] = np.nan
    for ask in (inertia.log_cholesky, inertia.principal_inertia, inertia.equivalent_ellipsoid, inertia.extent):
        with pytest.raises(ModelError, match="body 2 has a parameter that is not a finite number"):
            ask(theta)
    with pytest.raises(ModelError, match=r"shape \(\.\.\., 10\), not \(3, 9\)"):
        inertia.pseudo_inertia(theta[:, :9])
    with pytest.raises(ModelError, match="0 < mass"):
        inertia.random_inertias(np.random.default_rng(0), 1, mass_range=(0.0, 1.0))


def test_a_massless_frame_has_its_centre_at_its_origin():
    mass, com, inertia_com = inertia.mass_com_inertia(np.zeros(10))
    assert mass == 0
    assert not com.any()
    assert not inertia_com.any()
