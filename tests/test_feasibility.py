import mujoco
import numpy as np
import pytest

from steelyard.errors import ModelError
from steelyard.robot import inertia
from steelyard.robot.feasibility import (
    BOUNDARY_TOLERANCE,
    Ball,
    Box,
    invalidities,
    require_feasible,
    thin_bodies,
)

COM = (0.1, -0.2, 0.3)
TURN, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))  # some axes that are not the frame's
THIN = {"point mass": (0.0, 0.0, 0.0), "rod": (0.0, 0.02, 0.02), "plate": (0.01, 0.03, 0.04)}


def body(moments, mass=2.0, com=COM, axes=TURN):
    return inertia.from_mass_com_inertia(mass, com, axes @ np.diag(moments).astype(float) @ axes.T)


def report(theta, **options):
    return invalidities(["link"], [theta], **options)


def only(theta, **options):
    (one,) = report(theta, **options)
    return one


def test_a_cube_can_exist():
    assert report(body((0.1, 0.1, 0.1))) == ()
    require_feasible(["link"], [body((0.1, 0.1, 0.1))])


def test_random_bodies_can_exist():
    theta = inertia.random_inertias(np.random.default_rng(2), 200)
    names = [f"b{k}" for k in range(200)]
    assert invalidities(names, theta) == ()
    assert invalidities(names, theta.ravel()) == ()
    assert thin_bodies(names, theta) == {}


@pytest.mark.parametrize("like", THIN)
@pytest.mark.parametrize("com", [(0.0, 0.0, 0.0), COM, (3.0, -2.0, 1.0)])
def test_thin_bodies_can_exist_and_are_named(like, com):
    theta = body(THIN[like], com=com)
    assert report(theta) == ()
    assert thin_bodies(["link"], [theta]) == {"link": like}


@pytest.mark.parametrize("like", THIN)
def test_thin_bodies_stay_possible_in_seven_digits(like):
    theta = body(THIN[like], com=(0.0, 0.0, 0.0))
    assert report(theta.astype(np.float32)) == ()


@pytest.mark.parametrize("like", THIN)
def test_mujoco_takes_the_thin_bodies_too(like):
    moments = " ".join(str(m) for m in THIN[like])
    mujoco.MjModel.from_xml_string(
        f"""<mujoco><worldbody><body><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><joint/>
        <body><inertial pos="0.1 -0.2 0.3" mass="2" diaginertia="{moments}"/></body></body></worldbody></mujoco>"""
    )


def test_a_broken_triangle_is_measured():
    one = only(body((0.1, 0.2, 0.35)))
    assert (one.subject, one.condition, one.unit) == ("link", "triangle", "kg·m²")
    assert one.excess == pytest.approx(0.05)
    assert str(one) == (
        "body 'link': its principal moments (0.1, 0.2, 0.35) kg·m² break the triangle inequality by 0.05 kg·m², "
        "the largest must not exceed the sum of the other two"
    )


def test_a_triangle_broken_beyond_the_tolerance_is_found_and_within_it_is_not():
    trace = 0.04
    for share, count in ((0.5, 0), (2.0, 1)):
        off = share * BOUNDARY_TOLERANCE * trace
        assert len(report(body((0.01, 0.01, 0.02 + off), com=(0.0, 0.0, 0.0)))) == count


def test_mujoco_refuses_the_same_triangle():
    with pytest.raises(ValueError, match="A \\+ B >= C"):
        mujoco.MjModel.from_xml_string(
            """<mujoco><worldbody><body><inertial pos="0 0 0" mass="1" diaginertia="0.1 0.2 0.35"/><joint/></body>
            </worldbody></mujoco>"""
        )


def test_a_negative_principal_moment_is_measured_and_breaks_the_triangle_as_well():
    inertia_, triangle = report(body((-0.01, 0.2, 0.2)))
    assert (inertia_.condition, triangle.condition) == ("inertia", "triangle")
    assert inertia_.value == pytest.approx(-0.01)
    assert inertia_.excess == pytest.approx(0.01)
    assert triangle.excess == pytest.approx(0.01)


def test_the_triangle_fails_exactly_where_the_pseudo_inertia_is_not_positive():
    rng = np.random.default_rng(3)
    moments = rng.uniform(-0.02, 1.0, (300, 3))
    theta = np.array([body(m) for m in moments])
    indefinite = np.linalg.eigvalsh(inertia.pseudo_inertia(theta))[:, 0] < 0
    found = {one.subject for one in invalidities([str(k) for k in range(300)], theta) if one.condition == "triangle"}
    assert found == {str(k) for k in np.flatnonzero(indefinite)}
    assert 0 < len(found) < 300


def test_no_mass_is_an_invalidity_of_its_own():
    one = only(np.zeros(10))
    assert (one.condition, one.value, one.unit) == ("mass", 0.0, "kg")
    assert "must be greater than 0" in str(one)


def test_a_negative_mass_with_negative_moments_fails_in_its_pseudo_inertia_too():
    mass, pseudo = report(-body((0.1, 0.1, 0.1), com=(0.0, 0.0, 0.0)))
    assert (mass.condition, mass.excess) == ("mass", 2.0)
    assert (pseudo.condition, pseudo.unit) == ("pseudo-inertia", "kg·m²")
    assert pseudo.excess == pytest.approx(0.05)


def test_a_massless_body_with_first_moments_is_reported_not_raised():
    theta = body((0.1, 0.1, 0.1))
    theta[0] = 0.0
    assert report(theta)[0].condition == "mass"


def test_a_welded_frame_may_be_massless_but_then_has_ten_zeros():
    assert report(np.zeros(10), massless=["link"]) == ()
    almost = np.zeros(10)
    almost[4:] = (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)
    assert only(almost, massless=["link"]).condition == "mass"


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_number_that_is_not_finite_is_named_by_its_column(bad):
    theta = body((0.1, 0.1, 0.1))
    theta[5] = bad
    one = only(theta)
    assert one.condition == "finite"
    assert str(one) == f"body 'link': its Ixy is {bad} and must be a finite number"
    assert thin_bodies(["link"], [theta]) == {}


@pytest.mark.parametrize(
    ("bound", "distance"),
    [
        (Box((0.0, -0.3, 0.0), (0.2, 0.0, 0.4)), None),
        (Box((0.0, -0.3, 0.0), (0.2, 0.0, 0.25)), 0.05),
        (Box((-np.inf,) * 3, (0.07, -0.24, np.inf)), 0.05),
        (Ball(COM, 0.0), None),
        (Ball((0.0, -0.2, 0.3), 0.04), 0.06),
    ],
)
def test_a_centre_of_mass_out_of_bounds_is_measured_in_metres(bound, distance):
    found = report(body((0.1, 0.1, 0.1)), com_bounds={"link": bound})
    if distance is None:
        assert found == ()
    else:
        assert [(one.condition, one.unit) for one in found] == [("com", "m")]
        assert found[0].excess == pytest.approx(distance)
        assert f"its centre of mass (0.1, -0.2, 0.3) m is {distance:g} m outside" in str(found[0])


def test_bounds_that_bound_nothing_are_refused():
    with pytest.raises(ModelError, match="lower <= three upper"):
        Box((0.0, 0.0, 1.0), (1.0, 1.0, 0.0))
    with pytest.raises(ModelError, match="radius >= 0"):
        Ball((0.0, 0.0, 0.0), float("nan"))
    with pytest.raises(ModelError, match="no body 'lnk'; did you mean 'link'"):
        report(body((1, 1, 1)), com_bounds={"lnk": Ball(COM, 1.0)})


def test_joint_properties_must_not_be_negative_but_an_offset_may():
    joint = {
        "armature": {"elbow": 0.1, "slide": 0.0},
        "damping": {"elbow": -0.2, "slide": 1.0},
        "coulomb": {"elbow": 0.3, "slide": -0.4},
        "offset": {"elbow": -5.0, "slide": float("nan")},
    }
    damping, coulomb, offset = invalidities([], np.empty((0, 10)), joint, linear_dofs={"slide"})
    assert str(damping) == "joint 'elbow': its damping is -0.2 N·m·s/rad and must not be negative"
    assert (coulomb.condition, coulomb.excess, coulomb.unit) == ("sign", 0.4, "N")
    assert (offset.condition, offset.subject, offset.unit) == ("finite", "slide", "N")


def test_a_joint_property_at_its_bound_is_not_refused_for_rounding():
    assert invalidities([], np.empty((0, 10)), {"damping": {"a": -1e-9, "b": 1.0}}) == ()
    assert len(invalidities([], np.empty((0, 10)), {"damping": {"a": -1e-9, "b": 0.0}})) == 1


def test_unknown_joint_properties_and_wrong_shapes_are_refused():
    with pytest.raises(ModelError, match="no joint property 'dampng'; did you mean 'damping'"):
        invalidities([], np.empty((0, 10)), {"dampng": {"a": 1.0}})
    with pytest.raises(ModelError, match=r"2 bodies need parameters of shape \(2, 10\), not \(1, 10\)"):
        invalidities(["a", "b"], np.zeros((1, 10)))


def test_all_that_fails_is_listed_in_one_error():
    good, heavy = body((0.1, 0.1, 0.1)), body((0.1, 0.1, 0.3))
    with pytest.raises(ModelError) as error:
        require_feasible(["base", "arm", "tool"], [good, heavy, np.zeros(10)], {"armature": {"wrist": -0.1}})
    said = str(error.value)
    assert all(part in said for part in ("'arm'", "triangle", "'tool'", "0 kg", "'wrist'", "-0.1 kg·m²"))
    assert "base" not in said
